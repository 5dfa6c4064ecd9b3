#!/usr/bin/python3
"""kazoo's Election, TreeCache, Counter and queues, measured: README.md."""
import gc
import logging
import os
import sys
import threading
import time
import traceback

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.recipe.cache import TreeCache, TreeEvent

logging.disable(logging.WARNING)  # of connections that break
output = threading.Lock()


def say(*words):
    with output:
        print(*words, flush=True)


def resident():
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as pages:
        return int(pages.read().split()[1]) * os.sysconf("SC_PAGESIZE")


class Candidate:
    def __init__(self, zk, path):
        self.election = zk.Election(path)
        self.resigned = threading.Event()
        threading.Thread(target=self.election.run, args=(self.lead,), daemon=True).start()

    def lead(self):
        say("leads", time.monotonic())
        self.resigned.wait()


def count(cache, path):
    children = cache.get_children(path)
    if children is None:
        return 0
    return 1 + sum(count(cache, path + "/" + name) for name in children)


def tree_cache(zk, path):
    before = resident()
    began = time.monotonic()
    ready = threading.Event()
    cache = TreeCache(zk, path)
    cache.listen(lambda event: ready.set() if event.event_type == TreeEvent.INITIALIZED else None)
    cache.start()
    ready.wait()
    took = time.monotonic() - began
    say("cached", took, count(cache, path), resident() - before)
    return cache


def add(zk, path, threads, times):
    def some():
        counter = zk.Counter(path)
        for _ in range(times):
            while True:  # what fails is tried again
                try:
                    counter += 1
                    break
                except KazooException:
                    pass

    began = time.monotonic()
    everybody = [threading.Thread(target=some) for _ in range(threads)]
    for one in everybody:
        one.start()
    for one in everybody:
        one.join()
    took = time.monotonic() - began
    say("added", took, zk.Counter(path).value)


def queue(zk, kind, path):
    return zk.LockingQueue(path) if kind == "locking" else zk.Queue(path)


def fill(zk, kind, path, n):
    began = time.monotonic()
    items = queue(zk, kind, path)
    if kind == "locking":
        items.put_all([str(i).encode() for i in range(n)])
    else:
        for i in range(n):
            items.put(str(i).encode())
    say("filled", time.monotonic() - began)


class Consumers:
    def __init__(self, zk, kind, path, threads):
        self.items, self.stopped, self.kind = [], False, kind
        self.threads = [threading.Thread(target=self.run, args=(queue(zk, kind, path),)) for _ in range(threads)]
        for one in self.threads:
            one.start()

    def run(self, source):
        while not self.stopped:
            try:
                item = source.get(0.5) if self.kind == "locking" else source.get()
                if item is None:
                    if self.kind != "locking":
                        time.sleep(0.05)  # its get() does not wait
                    continue
                self.items.append(item.decode())
                if self.kind == "locking":
                    source.consume()
            except KazooException:  # the connection: once more
                time.sleep(0.01)

    def stop(self):
        self.stopped = True
        for one in self.threads:
            one.join()
        say("consumed", *self.items)


def main():
    zk = KazooClient(hosts=sys.argv[1], timeout=int(sys.argv[2]) / 1000)
    zk.start(timeout=30)
    say("ready")
    candidate = cache = consumers = None
    for line in sys.stdin:
        command, *words = line.split()
        if command == "elect":
            candidate = Candidate(zk, words[0])
        elif command == "resign":
            began = time.monotonic()
            candidate.resigned.set()
            say("resigned", began)
        elif command == "cache":
            cache = tree_cache(zk, words[0])
        elif command == "observe":
            zk.ChildrenWatch(words[0], lambda names: None)
            say("observing")
        elif command == "add":
            add(zk, words[0], int(words[1]), int(words[2]))
        elif command == "fill":
            fill(zk, words[0], words[1], int(words[2]))
        elif command == "consume":
            consumers = Consumers(zk, words[0], words[1], int(words[2]))
        elif command == "stop":
            consumers.stop()
        else:
            raise ValueError("no command " + command)
    del cache
    zk.stop()
    zk.close()


try:
    main()
except Exception:  # pylint: disable=broad-except
    traceback.print_exc()
    os._exit(1)
