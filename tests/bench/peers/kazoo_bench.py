#!/usr/bin/python3
"""kazoo's Lock, measured: README.md."""
import os
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

from kazoo.client import KazooClient


def connect():
    zk = KazooClient(hosts=sys.argv[1], timeout=10.0)
    zk.start(timeout=30)
    return zk


def new_lock(zk, directory):
    # The first holder of a queue has a name of Curator's kind.
    return zk.Lock(directory, extra_lock_patterns=["-lock-"])


def queue(zk, directory, n):
    def waiter():
        lock = new_lock(zk, directory)
        lock.acquire()
        lock.release()

    with ThreadPoolExecutor(n) as threads:
        for waited in [threads.submit(waiter) for _ in range(n)]:
            waited.result()


def cycles(zk, directory, seconds):
    lock = new_lock(zk, directory)
    end = time.perf_counter() + seconds
    count = 0
    while time.perf_counter() < end:
        lock.acquire()
        lock.release()
        count += 1
    return count


def hand_offs(clients, directory, count, idle_ms, settling):
    locks = [new_lock(zk, directory) for zk in clients]

    def take(lock):
        lock.acquire()
        return time.perf_counter()

    holder = exists = 0
    times = []
    locks[holder].acquire()
    with ThreadPoolExecutor(1) as thread:
        for _ in range(count):
            waiter = 1 - holder
            granted = thread.submit(take, locks[waiter])
            k = queued = 0
            while k < settling or queued < 2:
                queued = clients[waiter].exists(directory).numChildren
                k += 1
            exists += k
            time.sleep(idle_ms / 1000)
            start = time.perf_counter()
            locks[holder].release()
            times.append(granted.result() - start)
            holder = waiter
    locks[holder].release()
    return exists, times


def main():
    clients = [connect()]
    print("ready", flush=True)
    for line in sys.stdin:
        command, directory, *words = line.split()
        if command == "queue":
            queue(clients[0], directory, int(words[0]))
            print("done", flush=True)
        elif command == "cycles":
            print("done", cycles(clients[0], directory, float(words[0])), flush=True)
        elif command == "handoffs":
            if len(clients) == 1:
                clients.append(connect())
            exists, times = hand_offs(clients, directory, *map(int, words))
            print("done", exists, *times, flush=True)
        else:
            raise ValueError("no command " + command)
    for zk in clients:
        zk.stop()
        zk.close()


try:
    main()
except Exception:  # pylint: disable=broad-except
    traceback.print_exc()
    os._exit(1)  # with threads that still wait for the lock
