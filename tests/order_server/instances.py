"""Order servers in processes of their own, and what tests ask of them and of ZooKeeper. Python's library is enough."""

import contextlib
import http.client
import json
import os
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import uuid

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from pace import paced_ms

LONG = 60_000  # milliseconds: nothing that waits so long ends by itself within a test


def eventually(what, limit=60.0, of=""):
    """Waits until what() is true, and returns that."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        with contextlib.suppress(OSError, http.client.HTTPException, sqlite3.OperationalError):
            value = what()
            if value:
                return value
        time.sleep(0.02)  # between two looks: nothing relies on its length
    raise AssertionError(f"not within {limit} s: {of or what.__name__}")


def free_port(count=1):
    """The first of so many. Below those that the system gives to outgoing connections: nobody takes it meanwhile."""
    while True:
        first = random.randrange(15_000, 32_000)
        with contextlib.suppress(OSError), contextlib.ExitStack() as sockets:
            for port in range(first, first + count):
                sockets.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first


class Call(threading.Thread):
    """A request that is under way. get() waits for its answer: (status, body); (None, reason) if there is none."""

    def __init__(self, port, method, path, body=None, headers=None):
        super().__init__(daemon=True)
        self.request = (method, path, body, headers or {})
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=90)
        self.answer = None
        self.start()

    def run(self):
        try:
            self.connection.request(*self.request)
            answer = self.connection.getresponse()
            self.answer = (answer.status, answer.read().decode())
        except (OSError, http.client.HTTPException) as e:
            self.answer = (None, repr(e))
        finally:
            self.connection.close()

    def get(self, limit=90):
        self.join(limit)
        if self.is_alive():
            raise AssertionError(f"no answer: {self.request[:2]}")
        return self.answer

    def done(self):
        return not self.is_alive()


class Instance:
    def __init__(self, test, name, **options):
        self.test, self.name, self.options = test, name, options
        self.port = options.get("port", free_port())
        self.process, self.moved = None, False
        self.start()

    def start(self):
        options = {"connect": os.environ.get("ZKASIO_TEST_SERVERS", ""), "root": self.test.root,
                   "store": self.test.store, "name": self.name, "port": self.port, "session-timeout": paced_ms(4000),
                   "bank-time": 50, "settle-every": LONG, **self.options}
        command = [os.environ["ZKASIO_ORDER_SERVER"]]
        for key, value in options.items():
            command += [f"--{key}"] if value is True else [f"--{key}", str(value)]
        self.process = subprocess.Popen(command)

    def ask(self, method, path, body=None, headers=None):
        return Call(self.port, method, path, body if body is None else json.dumps(body), headers).get()

    def begin(self, method, path):
        return Call(self.port, method, path)

    def pay(self, order, deadline=30_000):
        return self.begin("POST", f"/orders/{order}/pay?deadline_ms={deadline}")

    def ready(self):
        def is_ready():
            if self.process.poll() == 1 and not self.moved:  # somebody else has taken the port meanwhile
                self.moved, self.port = True, free_port()
                self.start()
            return self.ask("GET", "/readyz")[0] == 200

        eventually(is_ready, of=f"{self.name} is ready")
        return self

    def signal(self, number):
        self.process.send_signal(number)

    def stop(self):
        """Stopped, in all its threads, when this returns."""
        self.signal(signal.SIGSTOP)
        eventually(lambda: self.state() == "T", of="it is stopped")

    def state(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as f:
            return f.read().rpartition(")")[2].split()[0]

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def terminate(self):
        self.signal(signal.SIGTERM)
        return self.process.wait(60)


class OrderServerTest(unittest.TestCase):
    """Each test has nodes and a store of its own."""

    def setUp(self):
        self.root = f"/test-order-server-{uuid.uuid4().hex[:12]}"
        self.directory = tempfile.TemporaryDirectory(prefix="zkasio-orders.")
        self.addCleanup(self.directory.cleanup)
        self.store = os.path.join(self.directory.name, "orders.sqlite")

    def instance(self, name, **options):
        i = Instance(self, name, **options)
        self.addCleanup(i.kill)
        return i

    def nodes(self, below):
        """The ephemeral nodes below root/below, as the server tells them."""
        host, port = os.environ["ZKASIO_TEST_SERVERS"].split(",")[0].split("/")[0].rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=10) as s:
            s.sendall(b"dump")
            text = b""
            while part := s.recv(65536):
                text += part
        prefix = f"{self.root}/{below}"
        return [line.strip() for line in text.decode().splitlines() if line.strip().startswith(prefix)]

    def rows(self, sql):
        with contextlib.closing(sqlite3.connect(f"file:{self.store}?mode=ro", uri=True, timeout=10)) as db:
            return db.execute(sql).fetchall()

    def at_the_bank(self, order):
        """Somebody has read the order, and not yet paid."""
        eventually(lambda: self.rows(f"SELECT 1 FROM orders WHERE id = '{order}' AND fence > 0 AND state = 0"),
                   of=f"{order} is being paid")

    def assert_paid_once(self, *orders):
        paid = self.rows("SELECT order_id, count(*) FROM payments GROUP BY order_id")
        self.assertEqual(sorted(paid), sorted((o, 1) for o in orders))


def main():
    if not os.environ.get("ZKASIO_TEST_SERVERS"):
        print("SKIPPED: no ZKASIO_TEST_SERVERS")
        raise SystemExit(77)
    unittest.main(verbosity=2)
