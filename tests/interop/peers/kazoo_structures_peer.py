#!/usr/bin/python3
"""kazoo's barriers, counters and queues, driven by lines on the standard input: README.md."""
import queue
import sys
import threading

from kazoo.client import KazooClient

output = threading.Lock()


def say(line):
    with output:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


class Commands(threading.Thread):
    """The commands of one ID, one after another."""

    def __init__(self, zk, name):
        super().__init__(daemon=True)
        self.zk = zk
        self.id = name
        self.lines = queue.Queue()
        self.inside = None  # a double barrier
        self.start()

    def run(self):
        while True:
            words = self.lines.get()
            try:
                say("{} {}".format(self.id, getattr(self, words[0].replace("-", "_"))(*words[1:])))
            except Exception as e:  # pylint: disable=broad-except
                say("{} failed {!r}".format(self.id, e))

    def barrier(self, what, path):
        barrier = self.zk.Barrier(path)
        if what == "set":
            barrier.create()
            return "set"
        if what == "remove":
            barrier.remove()
            return "removed"
        return "passed" if barrier.wait(60) else "timeout"

    def enter(self, path, members, _limit):
        barrier = self.zk.DoubleBarrier(path, int(members))
        barrier.enter()
        self.inside = barrier
        return "entered"

    def leave(self):
        self.inside.leave()
        return "left"

    def add(self, path, delta):
        counter = self.zk.Counter(path)
        counter += int(delta)
        return "number {}".format(counter.value)

    def number(self, path):
        return "number {}".format(self.zk.Counter(path).value)

    def shared_count(self, path, number=None):
        counter = self.zk.Counter(path, support_curator=True)
        if number is not None:
            counter += int(number) - counter.value
        return "number {}".format(counter.value)

    def put(self, kind, path, item, priority="100"):
        self.queue(kind, path).put(item.encode(), int(priority))
        return "put"

    def consume(self, kind, path, n):
        waiting, got = self.queue(kind, path), []
        while len(got) < int(n):
            item = waiting.get() if kind == "queue" else waiting.get(30)
            if item is None:
                if kind == "locking":
                    raise ValueError("nothing within 30 seconds")
                continue
            got.append(item.decode())
            if kind == "locking":
                waiting.consume()
        return ",".join(["consumed"] + got)

    def queue(self, kind, path):
        return self.zk.Queue(path) if kind == "queue" else self.zk.LockingQueue(path)


def main():
    zk = KazooClient(hosts=sys.argv[1], timeout=10.0)
    zk.start(timeout=30)
    say("ready")
    everybody = {}
    for line in sys.stdin:
        words = line.split()
        if words == ["exit"]:
            break
        if words[0] not in everybody:
            everybody[words[0]] = Commands(zk, words[0])
        everybody[words[0]].lines.put(words[1:])
    zk.stop()
    zk.close()


main()
