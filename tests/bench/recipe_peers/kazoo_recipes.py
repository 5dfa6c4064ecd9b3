#!/usr/bin/python3
"""kazoo's Election, TreeCache and Counter, measured: README.md."""
import gc
import os
import sys
import threading
import time
import traceback

from kazoo.client import KazooClient
from kazoo.recipe.cache import TreeCache, TreeEvent

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
            counter += 1

    began = time.monotonic()
    everybody = [threading.Thread(target=some) for _ in range(threads)]
    for one in everybody:
        one.start()
    for one in everybody:
        one.join()
    took = time.monotonic() - began
    say("added", took, zk.Counter(path).value)


def main():
    zk = KazooClient(hosts=sys.argv[1], timeout=int(sys.argv[2]) / 1000)
    zk.start(timeout=30)
    say("ready")
    candidate = cache = None
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
        elif command == "add":
            add(zk, words[0], int(words[1]), int(words[2]))
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
