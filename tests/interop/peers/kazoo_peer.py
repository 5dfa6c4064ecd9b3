#!/usr/bin/python3
"""kazoo's locks, driven by lines on the standard input: README.md."""
import queue
import sys
import threading
import time

from kazoo.client import KazooClient
from kazoo.exceptions import BadVersionError, LockTimeout
from kazoo.recipe.lock import Lock

output = threading.Lock()


def say(line):
    with output:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


class CuratorNamesLock(Lock):
    """kazoo's algorithm with nodes that Curator, go-zk and zkasio can order: <32 hex digits>-lock-<sequence>."""

    _NODE_NAME = "-lock-"
    _EXCLUDE_NAMES = ["-lock-"]


class Leader:
    """kazoo's Election as a lock: who holds it leads."""

    def __init__(self, zk, path, lock=None):
        self.path = path
        self.election = zk.Election(path, "kazoo-peer")
        if lock:
            self.election.lock = lock
        self.elected = self.resigned = self.thread = None

    @property
    def node(self):
        return self.election.lock.node

    def lead(self):
        self.elected.set()
        self.resigned.wait()

    def acquire(self, timeout=None):
        self.elected, self.resigned = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self.election.run, args=(self.lead,), daemon=True)
        self.thread.start()
        if self.elected.wait(timeout):
            return True
        self.election.cancel()
        self.resigned.set()
        self.thread.join()
        return False

    def release(self):
        self.resigned.set()
        self.thread.join()


def make(zk, kind, path, identifier="kazoo-peer"):
    if kind == "election":
        return Leader(zk, path)
    if kind == "election-curator-names":
        return Leader(zk, path, CuratorNamesLock(zk, path, "kazoo-peer"))
    if kind == "party":
        return Member(zk.Party(path, identifier))
    if kind == "shallow-party":
        return Member(zk.ShallowParty(path, identifier))
    if kind == "lock":
        return zk.Lock(path, "kazoo-peer")
    if kind == "lock-curator":
        return zk.Lock(path, "kazoo-peer", extra_lock_patterns=["-lock-"])
    if kind == "curator-names":
        return CuratorNamesLock(zk, path, "kazoo-peer")
    if kind == "read":
        return zk.ReadLock(path, "kazoo-peer")
    if kind == "write":
        return zk.WriteLock(path, "kazoo-peer")
    raise ValueError("no kind " + kind)


class Member:
    """A party, as a lock that is held by whoever is in it."""

    def __init__(self, party):
        self.party = party

    def acquire(self, timeout=None):
        self.party.join()
        return True

    def release(self):
        self.party.leave()


class Share(threading.Thread):
    """A member of a SetPartitioner that does what it is told to do."""

    def __init__(self, zk, path, identifier, partitions):
        super().__init__(daemon=True)
        self.partitioner = zk.SetPartitioner(path, set=partitions, identifier=identifier, time_boundary=0.1)
        self.finished = False
        self.start()

    def run(self):
        while not self.finished:
            if self.partitioner.failed:
                return
            if self.partitioner.release:
                self.partitioner.release_set()
            elif self.partitioner.allocating:
                self.partitioner.wait_for_acquire(0.1)
            else:
                time.sleep(0.02)

    def owned(self):
        return sorted(self.partitioner) if self.partitioner.acquired else []

    def finish(self):
        self.finished = True
        self.join()
        self.partitioner.finish()


def node_of(lock):
    if isinstance(lock, Member):
        return lock.party.create_path
    return lock.path + "/" + lock.node


def violates_record(zk, record, node):
    data, stat = zk.get(record)
    count, last = data.decode().split(" ")
    mine = node[-10:]
    try:
        zk.set(record, "{} {}".format(int(count) + 1, mine).encode(), version=stat.version)
    except BadVersionError:  # two were inside
        return True
    return last != "-" and int(mine) <= int(last)


class Contender(threading.Thread):
    """The commands of one ID, one after another."""

    def __init__(self, zk, name):
        super().__init__(daemon=True)
        self.zk = zk
        self.id = name
        self.commands = queue.Queue()
        self.lock = None
        self.share = None
        self.start()

    def run(self):
        while True:
            words = self.commands.get()
            try:
                say("{} {}".format(self.id, self.answer(*words)))
            except Exception as e:  # pylint: disable=broad-except
                say("{} failed {!r}".format(self.id, e))

    def answer(self, command, *words):
        if command == "acquire":
            return self.acquired(make(self.zk, *words), None)
        if command == "try":
            return self.acquired(make(self.zk, words[1], words[2]), int(words[0]) / 1000)
        if command == "release":
            if self.lock is None:
                raise ValueError("nothing held")
            self.lock.release()
            self.lock = None
            return "released"
        if command == "candidates":
            return " ".join(["candidates"] + make(self.zk, words[0], words[1]).election.contenders())
        if command == "load":
            return self.load(make(self.zk, words[0], words[1]), int(words[2]), words[3])
        if command == "members":
            return ",".join(["members"] + sorted(self.lock.party))
        if command == "share":
            self.share = Share(self.zk, words[0], words[1], words[2].split(","))
            return "sharing"
        if command == "owned":
            return ",".join(["owned"] + self.share.owned())
        if command == "finish":
            self.share.finish()
            return "finished"
        raise ValueError("no command " + command)

    def acquired(self, lock, limit):
        try:
            if not lock.acquire(timeout=limit):
                return "timeout"
        except LockTimeout:
            return "timeout"
        self.lock = lock
        return "acquired " + node_of(lock)

    def load(self, lock, rounds, record):
        violations = 0
        for _ in range(rounds):
            lock.acquire()
            try:
                violations += violates_record(self.zk, record, node_of(lock))
            finally:
                lock.release()
        return "done {} {}".format(rounds, violations)


def main():
    zk = KazooClient(hosts=sys.argv[1], timeout=10.0)
    zk.start(timeout=30)
    say("ready")
    contenders = {}
    for line in sys.stdin:
        words = line.split()
        if words == ["exit"]:
            break
        if words[0] not in contenders:
            contenders[words[0]] = Contender(zk, words[0])
        contenders[words[0]].commands.put(words[1:])
    zk.stop()
    zk.close()


main()
