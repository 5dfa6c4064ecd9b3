"""What the tests of zklock share: the program, started with pipes, and a connection that can be cut."""

import contextlib
import itertools
import json
import os
import select
import selectors
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import unittest

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from pace import paced_ms

PROGRAM = os.environ.get("ZKLOCK", "zklock")
SERVERS = os.environ.get("ZKASIO_TEST_SERVERS", "")
PATIENCE = 60  # seconds; longer than anything here takes, on a machine that is busy

_numbers = itertools.count()


class Process:
    """zklock with pipes. Lines of its output, and of its command's, are read one by one."""

    def __init__(self, arguments, environment=None, **how):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("ZKLOCK_", "ZK_HOSTS", "NO_COLOR"))}
        env["ZK_HOSTS"] = SERVERS
        env.update(environment or {})
        how.setdefault("stdin", subprocess.PIPE)
        self.process = subprocess.Popen([PROGRAM, *arguments], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        **how)
        self.pid = self.process.pid
        self._rest = {self.process.stdout: b"", self.process.stderr: b""}

    def _line(self, stream):
        give_up = time.monotonic() + PATIENCE
        while b"\n" not in self._rest[stream]:
            ready, _, _ = select.select([stream], [], [], max(0, give_up - time.monotonic()))
            if not ready:
                raise AssertionError(f"no line came: {self._rest[stream]!r}")
            chunk = os.read(stream.fileno(), 4096)
            if not chunk:
                raise AssertionError(f"ended before a line came: {self._rest[stream]!r} {self.process.poll()}")
            self._rest[stream] += chunk
        line, self._rest[stream] = self._rest[stream].split(b"\n", 1)
        return line.decode()

    def line(self):
        return self._line(self.process.stdout)

    def error_line(self, containing=""):
        """The next line of the standard error that contains this."""
        said = []
        while not said or containing not in said[-1]:
            try:
                said.append(self._line(self.process.stderr))
            except AssertionError as e:
                raise AssertionError(f"{e}; before that: {said}") from None
        return said[-1]

    def say(self, text=""):
        self.process.stdin.write(text.encode() + b"\n")
        self.process.stdin.flush()

    def signal(self, number):
        self.process.send_signal(number)

    def end(self):
        """Its exit status; negative: the signal that has ended it."""
        return self.process.wait(PATIENCE)

    def output(self):
        """All that is left of both, when it has ended."""
        out, err = self.process.communicate(timeout=PATIENCE)
        return (self._rest[self.process.stdout] + out).decode(), (self._rest[self.process.stderr] + err).decode()

    def kill(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            try:
                if stream:
                    stream.close()
            except BrokenPipeError:
                pass


class Cut:
    """A way to the first server that can be cut: nothing comes through any more, and nobody is told. `change` is what
    becomes of all that comes through."""

    def __init__(self, change=lambda data: data):
        self._change = change
        host, port = SERVERS.split(",")[0].rsplit(":", 1)
        self._server = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.servers = "127.0.0.1:%d" % self._listener.getsockname()[1]
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ, None)
        self._wake, wake = socket.socketpair()
        self._selector.register(wake, selectors.EVENT_READ, None)
        self._woken = wake
        self._open = threading.Event()
        self._open.set()
        self._ended = False
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def cut(self):
        self._open.clear()

    def heal(self):
        self._open.set()

    def close(self):
        self._ended = True
        self._open.set()
        self._wake.send(b"x")
        self._thread.join()
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()
        self._wake.close()
        self._selector.close()

    def _accept(self):
        ours, _ = self._listener.accept()
        theirs = socket.create_connection(self._server)
        self._selector.register(ours, selectors.EVENT_READ, theirs)
        self._selector.register(theirs, selectors.EVENT_READ, ours)

    def _forward(self, source, to):
        try:
            data = source.recv(65536)
            if self._open.wait() and data:  # what was on its way when it was cut comes late
                to.sendall(self._change(data))
                return
        except OSError:
            pass
        for end in (source, to):
            if end.fileno() >= 0:
                self._selector.unregister(end)
                end.close()

    def _run(self):
        while not self._ended:
            for key, _ in self._selector.select():
                self._open.wait()
                if self._ended:
                    return
                if key.fileobj is self._listener:
                    self._accept()
                elif key.data is not None and key.fileobj.fileno() >= 0:
                    self._forward(key.fileobj, key.data)


def ephemeral_sequential(path):
    """A node with this prefix, as a program without a library of ours makes it. Its session is the returned socket."""
    session = socket.create_connection(SERVERS.split(",")[0].rsplit(":", 1))

    def request(content):
        session.sendall(struct.pack(">i", len(content)) + content)
        size = struct.unpack(">i", session.recv(4, socket.MSG_WAITALL))[0]
        return session.recv(size, socket.MSG_WAITALL)

    def text(value):
        return struct.pack(">i", len(value)) + value.encode()

    request(struct.pack(">iqiqi16sb", 0, 0, paced_ms(20_000), 0, 16, b"", 0))
    anyone_may_do_all = struct.pack(">ii", 1, 31) + text("world") + text("anyone")
    answer = request(struct.pack(">ii", 1, 1) + text(path) + text("") + anyone_may_do_all + struct.pack(">i", 3))
    failed = struct.unpack(">i", answer[12:16])[0]
    if failed:
        raise AssertionError(f"create {path}: {failed}")
    return session


def free_ports(count):
    """Ports of the loopback that nobody listens at, all different."""
    with contextlib.ExitStack() as open_until_all_are_known:
        listeners = [open_until_all_are_known.enter_context(socket.create_server(("127.0.0.1", 0)))
                     for _ in range(count)]
        return [listener.getsockname()[1] for listener in listeners]


def wait_for_end(pid):
    """Until that process, which need not be ours, has ended (a zombie has)."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        ready, _, _ = select.select([fd], [], [], PATIENCE)
        if not ready:
            raise AssertionError(f"process {pid} does not end")
    finally:
        os.close(fd)


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return [int(c) for c in f.read().split()]


def name_of(pid):
    with open(f"/proc/{pid}/comm") as f:
        return f.read().strip()


def watchdog_of(process):
    return next(c for c in children(process.pid) if name_of(c) == "lease-watchdog")


class Crowd:
    """A session of its own at the first server that creates thousands of nodes in a moment, which zklock would make
    one by one. Its ephemeral nodes go with close()."""

    _OPEN_ACL = struct.pack(">ii5si6s", 31, 5, b"world", 6, b"anyone")
    _CREATE, _MULTI, _CLOSE = 1, 14, -11

    def __init__(self):
        host, port = SERVERS.split(",")[0].rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)), timeout=PATIENCE)
        self._send(struct.pack(">iqiqi16s?", 0, 0, 600_000, 0, 16, bytes(16), False))
        self.session = hex(struct.unpack_from(">q", self._frame(), 8)[0])
        self._number = 0

    def create(self, paths, ephemeral=False):
        for begin in range(0, len(paths), 1000):
            steps = b""
            for path in paths[begin:begin + 1000]:
                name = path.encode()
                steps += struct.pack(">i?ii", self._CREATE, False, -1, len(name)) + name + struct.pack(">ii", 0, 1)
                steps += self._OPEN_ACL + struct.pack(">i", int(ephemeral))
            self._ask(self._MULTI, steps + struct.pack(">i?i", -1, True, -1))

    def close(self):
        try:
            self._ask(self._CLOSE, b"")
        except (AssertionError, OSError):  # a server that was asked nothing for long has ended the session itself
            pass
        self._socket.close()

    def _ask(self, what, body):
        self._number += 1
        self._send(struct.pack(">ii", self._number, what) + body)
        number, _, code = struct.unpack_from(">iqi", self._frame())
        if (number, code) != (self._number, 0):
            raise AssertionError(f"request {self._number} is answered as {number}, with the code {code}")

    def _send(self, body):
        self._socket.sendall(struct.pack(">i", len(body)) + body)

    def _frame(self):
        return self._read(struct.unpack(">i", self._read(4))[0])

    def _read(self, size):
        data = b""
        while len(data) < size:
            some = self._socket.recv(size - len(data))
            if not some:
                raise AssertionError("the server has closed the connection")
            data += some
        return data


class CliTest(unittest.TestCase):
    def setUp(self):
        self.path = f"/test-cli-{os.getpid()}-{next(_numbers)}"
        self._started = []

    def tearDown(self):
        for p in self._started:
            p.kill()
        self.zklock("rm", "-r", "--yes", self.path)

    def start(self, *arguments, environment=None, **how):
        self._started.append(Process(arguments, environment, **how))
        return self._started[-1]

    def zklock(self, *arguments, environment=None, text=None):
        """Runs it to its end: exit status, output, errors."""
        p = Process(arguments, environment)
        self.addCleanup(p.kill)
        out, err = p.process.communicate(None if text is None else text.encode(), timeout=PATIENCE)
        return p.process.returncode, out.decode(errors="replace"), err.decode()

    def hold(self, *options, path=None, servers=None, verb="run"):
        """Holds the lock until it gets a line, and ends with status 0 then. Returns when it holds."""
        environment = {"ZK_HOSTS": servers} if servers else None
        p = self.start(verb, *options, path or self.path, "--", "sh", "-c", "echo held by $$; read line",
                       environment=environment)
        p.command = int(p.line().removeprefix("held by "))
        return p

    def locks(self, path=None):
        status, out, err = self.zklock("locks", "--json", path or self.path)
        return json.loads(out) if status == 0 else {"holders": [], "waiters": []}

    def eventually(self, condition):
        give_up = time.monotonic() + PATIENCE
        while not condition():
            self.assertLess(time.monotonic(), give_up, "the condition was not reached in time")
            time.sleep(0.01)


def main():
    if not SERVERS:
        print("SKIPPED: there is no ZooKeeper: ZKASIO_TEST_SERVERS is not set")
        sys.exit(77)
    unittest.main(verbosity=2)
