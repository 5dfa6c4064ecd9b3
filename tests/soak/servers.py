"""Three ZooKeeper servers that can be killed, stopped, parted and deprived of their disks.

With a network and mounts of its own (scripts/soak.sh: `unshare --net --mount`), each server gets a network namespace
and a small file system; otherwise they share the loopback interface, and cannot be parted. Nothing outlives the process
that has made it.
"""

import collections
import os
import re
import shutil
import signal
import socket
import subprocess
import time

SIZE = 3


def run(*command):
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


def ask(address, command, limit=2.0):
    """A server's answer to a four-letter word; empty if there is none."""
    try:
        with socket.create_connection(address, timeout=limit) as connection:
            connection.settimeout(limit)
            connection.sendall(command.encode())
            answer = b""
            while chunk := connection.recv(65536):
                answer += chunk
            return answer.decode(errors="replace")
    except OSError:
        return ""


class Server:
    """One of the three."""

    def __init__(self, number, directory, script, own_network, ports, environment):
        self.number, self.directory, self.script = number, directory, script
        self.own_network, self.ports = own_network, ports
        self.environment = environment
        self.process = self.network = None
        self.cut = None
        self.full = False
        os.makedirs(os.path.join(directory, "data"))
        if own_network:
            run("mount", "-t", "tmpfs", "-o", "size=1g", f"soak-{number}", self.data)

    @property
    def data(self):
        return os.path.join(self.directory, "data")

    @property
    def address(self):
        return (f"10.213.{self.number}.2", 2181) if self.own_network else (f"127.0.0.{self.number + 1}", self.ports[0])

    def peer(self):
        return f"10.213.9.{self.number + 1}" if self.own_network else f"127.0.0.{self.number + 1}"

    def member(self):
        quorum, election = (2888, 3888) if self.own_network else self.ports[1:]
        return f"server.{self.number + 1}={self.peer()}:{quorum}:{election}"

    def within(self, *command):
        """The command that runs in this server's network."""
        return ["nsenter", f"--net=/proc/{self.network.pid}/ns/net", *command] if self.network else list(command)

    def connect(self):
        """Makes this server's network, with a link to the clients and one to its peers."""
        mine = os.readlink("/proc/self/ns/net")
        self.network = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sleep", "infinity"])
        while os.readlink(f"/proc/{self.network.pid}/ns/net") == mine:
            time.sleep(0.01)
        n, pid = self.number, str(self.network.pid)
        for link in ("clients", "peers"):
            run("ip", "link", "add", "name", f"{link}{n}", "type", "veth", "peer", "name", link, "netns", pid)
            run("ip", "link", "set", f"{link}{n}", "up")
        run("ip", "link", "set", f"peers{n}", "master", "between")
        run("ip", "addr", "add", f"10.213.{n}.1/30", "dev", f"clients{n}")
        for link, address in (("clients", f"10.213.{n}.2/30"), ("peers", f"{self.peer()}/24")):
            run(*self.within("ip", "addr", "add", address, "dev", link))
            run(*self.within("ip", "link", "set", link, "up"))
        run(*self.within("ip", "link", "set", "lo", "up"))

    def start(self, members):
        host, port = self.address
        arguments = [self.script, self.directory, host, str(port), str(self.number + 1), *members]
        self.process = subprocess.Popen(self.within("setpriv", "--pdeathsig", "KILL", *arguments),
                                        env={**os.environ, **self.environment}, stdin=subprocess.DEVNULL)

    def signal(self, number):
        if self.process.poll() is None:
            self.process.send_signal(number)

    def kill(self):
        self.signal(signal.SIGKILL)
        self.process.wait()

    def mode(self):
        """leader or follower; empty while it does not serve."""
        found = re.search(r"^Mode: (leader|follower)", ask(self.address, "srvr"), re.MULTILINE)
        return found[1] if found else ""

    def fill_disk(self):
        usage = os.statvfs(self.data)
        used = (usage.f_blocks - usage.f_bfree) * usage.f_frsize
        run("mount", "-o", f"remount,size={used + 4096}", self.data)
        self.full = True

    def free_disk(self):
        run("mount", "-o", "remount,size=1g", self.data)
        self.full = False

    def reach_clients(self, on):
        run("ip", "link", "set", f"clients{self.number}", "up" if on else "down")
        if on:  # the address stays, the route does not in all kernels
            subprocess.run(["ip", "addr", "replace", f"10.213.{self.number}.1/30", "dev", f"clients{self.number}"],
                           check=True)


class Ensemble:
    """The three servers."""

    def __init__(self, directory, script, ports, own_network, environment):
        self.own_network = own_network
        self.cuts = collections.Counter()  # by the numbers of two servers: faults that cut the way from one to the other
        if own_network:
            run("ip", "link", "set", "lo", "up")
            run("ip", "link", "add", "name", "between", "type", "bridge")
            run("ip", "link", "set", "between", "up")
        self.servers = [
            Server(i, os.path.join(directory, f"zk{i}"), script, own_network,
                   [int(port) for port in ports[3 * i:3 * i + 3]], environment) for i in range(SIZE)]
        for server in self.servers:
            if own_network:
                server.connect()
            self.start(server)

    def start(self, server):
        server.start([*(s.member() for s in self.servers), "autopurge.purgeInterval=1"])

    @property
    def connect_string(self):
        return ",".join(f"{host}:{port}" for host, port in (s.address for s in self.servers))

    def leader(self):
        return next((s for s in self.servers if s.mode() == "leader"), None)

    def await_all(self, limit=1800.0):
        """Waits until all serve. A server that has ended (a full disk ends it), or that lives and does not serve for
        two minutes, is started again, at the third time without its data if the two others serve. Returns the numbers
        of these."""
        begin = last_start = time.monotonic()
        restarted = []
        while True:
            waiting = [s for s in self.servers if not s.mode()]
            if not waiting:
                return restarted
            now = time.monotonic()
            if now - begin > limit:
                raise RuntimeError(f"servers {[s.number for s in waiting]} do not serve")
            for s in waiting:
                if s.process.poll() is not None or now - last_start > 120:
                    restarted.append(s.number)
                    last_start = now
                    s.kill()
                    if len(waiting) == 1 and restarted.count(s.number) == 3:
                        self._empty(s)
                    self.start(s)
            time.sleep(0.3)

    def _empty(self, server):
        """What an operator does with a server that does not come up again, while the others serve: it begins without
        data, and gets them from the leader."""
        shutil.rmtree(os.path.join(server.data, "version-2"), ignore_errors=True)

    def part(self, server, direction):
        """Cuts one server off from its peers: both, incoming or outgoing, as seen from that server."""
        self._routes(server, direction, "add")
        server.cut = direction

    def heal(self, server):
        if server.cut:
            self._routes(server, server.cut, "del")
        server.cut = None

    def _routes(self, server, direction, verb):
        for other in self.servers:
            if other is server:
                continue
            if direction != "incoming":
                self._route(server, other, verb)
            if direction != "outgoing":
                self._route(other, server, verb)

    def _route(self, at, to, verb):
        """Two faults may want the same route: it goes with the last one."""
        before = self.cuts[at.number, to.number]
        self.cuts[at.number, to.number] += 1 if verb == "add" else -1
        if not before or not self.cuts[at.number, to.number]:
            run(*at.within("ip", "route", verb, "blackhole", f"{to.peer()}/32"))

    def end(self):
        for server in self.servers:
            if server.process:
                server.kill()
            if server.network:
                server.network.kill()
                server.network.wait()
