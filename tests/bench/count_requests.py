#!/usr/bin/python3
"""What caches of other libraries ask of a server, counted by a proxy: the figures of docs/cost.md.

    count_requests.py PEER HOST:PORT COMMAND [NODES]

PEER is a program of recipe_peers/ (curator, kazoo), or zkasio_recipe_worker, as scripts/bench.sh has built them in
build/release/tests/bench; COMMAND is "cache", of Curator also "curatorcache". The server is one of your own, of 3.6 or
later. Prints requests, pings and bytes of: three session timeouts without anything; a cache of NODES nodes (100)
begins; the data of one changes; one more; one less; another connection. The nodes are changed by kazoo, which is not
counted.
"""

import collections
import socket
import struct
import subprocess
import sys
import threading
import time

from kazoo.client import KazooClient

SESSION_TIMEOUT = 10
PING = 11


class Proxy:
    """Counts what one client and its server exchange."""

    def __init__(self, server):
        host, port = server.rsplit(":", 1)
        self.server, self.listener = (host, int(port)), socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.counts, self.sockets = collections.Counter(), []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            server = socket.create_connection(self.server)
            self.sockets = [client, server]
            for way in ((client, server, True), (server, client, False)):
                threading.Thread(target=self.pass_on, args=way, daemon=True).start()

    def pass_on(self, source, to, is_request):
        data, first = b"", True
        try:
            while chunk := source.recv(65536):
                to.sendall(chunk)
                data += chunk
                self.counts["bytes"] += len(chunk)
                while len(data) >= 4 and len(data) >= 4 + (size := struct.unpack(">i", data[:4])[0]):
                    if is_request and not first:
                        self.counts["pings" if struct.unpack(">i", data[8:12])[0] == PING else "requests"] += 1
                    data, first = data[4 + size:], False
        except OSError:
            pass
        self.cut()

    def cut(self):
        for one in self.sockets:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def count(self, what, do, seconds=2.0):
        self.counts.clear()
        do()
        time.sleep(seconds)
        print(f"{what}: {self.counts['requests']} requests, {self.counts['pings']} pings, {self.counts['bytes']} bytes")


def main(peer, server, command, nodes="100"):
    zk = KazooClient(server)
    zk.start()
    root = "/count-requests"
    if zk.exists(root):
        zk.delete(root, recursive=True)
    for i in range(int(nodes)):
        zk.create(f"{root}/{i}", b"1234567890", makepath=True)
    proxy = Proxy(server)
    with subprocess.Popen([peer, proxy.address, str(SESSION_TIMEOUT * 1000)], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"

        def begin():
            process.stdin.write(f"{command} {root}\n")
            process.stdin.flush()
            process.stdout.readline()
        time.sleep(1)
        proxy.count("idle for three session timeouts", lambda: None, 3 * SESSION_TIMEOUT)
        proxy.count(f"a cache of {nodes} nodes begins", begin)
        proxy.count("the data of one changes", lambda: zk.set(f"{root}/1", b"x"))
        proxy.count("one more", lambda: zk.create(f"{root}/more", b"x"))
        proxy.count("one less", lambda: zk.delete(f"{root}/more"))
        proxy.count("another connection", proxy.cut, 5)
        process.stdin.close()
        process.kill()
    zk.delete(root, recursive=True)
    zk.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
