#!/usr/bin/python3
"""docs/coming-from.md: how it is done with kazoo, run: coming_from.py SERVERS"""
import sys

from kazoo.client import KazooClient
from kazoo.exceptions import LockTimeout


def work(what):
    print("kazoo:", what)


# [connect]
def connect(servers):
    zk = KazooClient(hosts=servers, timeout=10)
    zk.start()
    return zk
# [/connect]


# [lock]
def lock(zk):
    lock = zk.Lock("/guide/kazoo-lock", "host-7")
    try:
        lock.acquire(timeout=5)
    except LockTimeout:
        return False
    try:
        work("under the lock")
    finally:
        lock.release()
    return True
# [/lock]


# [readers]
def readers(zk):
    with zk.ReadLock("/guide/kazoo-prices", "host-7"):
        work("as a reader")
# [/readers]


# [semaphore]
def permit(zk):
    with zk.Semaphore("/guide/kazoo-pool", "host-7", max_leases=3):
        work("with one of three permits")
# [/semaphore]


# [election]
def lead(zk):
    def work_as_leader():  # runs on, also when the session is lost: a listener has to tell it
        work("as the leader")

    zk.Election("/guide/kazoo-leader", "host-7").run(work_as_leader)
# [/election]


# [group]
def join(zk):
    party = zk.Party("/guide/kazoo-party", "host-7")
    party.join()
    work(f"one of {len(party)}")
    party.leave()
# [/group]


# [cache]
def cache(zk):
    @zk.DataWatch("/guide/shared-tree")
    def changed(data, stat):  # called at once, and after each change, on a thread of kazoo's
        work(data)
# [/cache]


def main(servers):
    zk = connect(servers)
    if not lock(zk):
        raise SystemExit("the lock was free")
    for part in (readers, permit, lead, join, cache):
        part(zk)
    zk.stop()


main(sys.argv[1])
