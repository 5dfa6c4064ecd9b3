#!/usr/bin/python3
"""What a session, a node and a watch take of a server's memory: the figures of docs/cost.md.

    server_memory.py HOST:PORT [NODES]

The server runs here, is to be thrown away, and is asked by jcmd for all objects that live. Other libraries' clients
(kazoo's) do what is counted: 200 sessions, and NODES (20 000) of each kind, with paths of 55 bytes and data of 50.
"""

import subprocess
import sys

from kazoo.client import KazooClient

SESSIONS = 200


def pid_of(port):
    listening = subprocess.run(["ss", "-ltnpH", f"sport = :{port}"], capture_output=True, text=True, check=True).stdout
    return listening.split("pid=")[1].split(",")[0]


class Meter:
    def __init__(self, pid):
        self.pid, self.before = pid, 0
        self.look()

    def live(self):
        command = ["jcmd", self.pid, "GC.class_histogram"]  # collects garbage first
        outs = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(2)]
        return int(outs[-1].strip().splitlines()[-1].split()[-1])

    def look(self):
        self.before = self.live()

    def say(self, what, n):
        now = self.live()
        print(f"{what}: {(now - self.before) / n:.0f} bytes", flush=True)
        self.before = now


def in_batches(n, start):
    for first in range(0, n, 1000):
        for begun in [start(i) for i in range(first, min(n, first + 1000))]:
            begun.get()


def path_of(i):
    return f"/memory/{i:047d}"


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    servers, nodes = sys.argv[1], int(sys.argv[2]) if len(sys.argv) == 3 else 20000
    meter = Meter(pid_of(servers.rsplit(":", 1)[1]))
    sessions = [KazooClient(hosts=servers, timeout=40) for _ in range(SESSIONS)]
    for one in sessions:
        one.start()
    meter.say("a session and its connection", SESSIONS)
    first = sessions[0]
    first.ensure_path("/memory")
    meter.look()

    def watch(_):
        pass

    in_batches(nodes, lambda i: sessions[i % SESSIONS].create_async(path_of(i), b"x" * 50, ephemeral=True))
    meter.say("an ephemeral node", nodes)
    in_batches(nodes, lambda i: sessions[i % SESSIONS].exists_async(path_of(i), watch=watch))
    meter.say("a watch, alone at its node", nodes)
    in_batches(nodes, lambda i: sessions[i % SESSIONS].exists_async(path_of(i // SESSIONS), watch=watch))
    meter.say(f"a watch, one of {SESSIONS} at its node", nodes)
    in_batches(nodes, lambda i: first.create_async(path_of(i) + "p", b"x" * 50))
    meter.say("a node that stays", nodes)
    in_batches(nodes, lambda i: first.delete_async(path_of(i) + "p"))
    for one in sessions:
        one.stop()


if __name__ == "__main__":
    main()
