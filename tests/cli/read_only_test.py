"""zklock --read-only: what it reads from a server without a quorum, and which commands refuse it."""

import json
import os
import pty
import select
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import support

SCRIPT = os.path.join(os.environ["ZKLOCK_SOURCES"], "..", "..", "scripts", "zookeeper_server.sh")
CLASSES = os.environ.get("ZKASIO_ZOOKEEPER_CLASSPATH", "/usr/share/java/zookeeper.jar")
NOTE = "zklock: read from a server without a quorum: it may be old\n"


@unittest.skipUnless(shutil.which("java") and os.path.exists(CLASSES.split(":")[0]), "there is no ZooKeeper to start")
class WithoutQuorum(support.CliTest):
    """One server of two, of which the other one never runs."""

    @classmethod
    def setUpClass(cls):
        directory = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, directory)
        client, *peers = support.free_ports(5)
        members = [f"server.{i + 1}=127.0.0.1:{peers[2 * i]}:{peers[2 * i + 1]}" for i in range(2)]
        server = subprocess.Popen(["bash", SCRIPT, directory, "127.0.0.1", str(client), "1", *members],
                                  env={**os.environ, "READ_WITHOUT_QUORUM": "1"}, stdin=subprocess.DEVNULL)
        cls.addClassCleanup(server.wait)
        cls.addClassCleanup(server.kill)
        cls.servers = f"127.0.0.1:{client}"
        give_up = time.monotonic() + support.PATIENCE
        command = [support.PROGRAM, "ls", "--read-only", "--connect", cls.servers, "/"]
        while subprocess.run(command, capture_output=True).returncode != 0:
            if server.poll() is not None or time.monotonic() > give_up:
                with open(os.path.join(directory, "log")) as log:
                    raise AssertionError("the server does not read: " + log.read())

    def read(self, *arguments):
        return self.zklock(*arguments, "--read-only", "--connect", self.servers)

    def test_what_only_reads(self):
        for command, seen in ((("get", "/zookeeper/config"), "server.2="), (("ls", "/"), "zookeeper\n"),
                              (("ls", "-l", "/"), "2 children"), (("stat", "/zookeeper"), "(children)"),
                              (("acl", "/"), "world:anyone:cdrwa\n"), (("tree", "/"), "`-- zookeeper"),
                              (("locks", "/"), "no lock"), (("counter", "get", "/none"), "0\n")):
            status, out, err = self.read(*command)
            self.assertEqual((status, err), (0, NOTE), command)
            self.assertIn(seen, out, command)
        status, out, err = self.read("locks", "-r", "--json", "/")
        self.assertEqual((status, json.loads(out)["locks"], err), (0, [], NOTE))

    def test_what_is_not_there(self):
        status, out, err = self.read("get", "/none")
        self.assertEqual((status, out), (1, ""))
        self.assertTrue(err.endswith("no such node\n" + NOTE), err)

    def test_what_goes_on(self):
        watching = self.start("watch", "--read-only", "--connect", self.servers, "/zookeeper")
        watching.error_line("watching /zookeeper")
        watching.process.terminate()
        watching.end()
        self.assertIn(NOTE, watching.output()[1])

    def test_a_screen_says_so(self):
        pid, terminal = pty.fork()
        if pid == 0:
            os.environ["TERM"] = "xterm"
            os.execv(support.PROGRAM, [support.PROGRAM, "locks", "--watch", "--read-only", "--connect", self.servers,
                                       "/"])
        self.addCleanup(os.close, terminal)
        self.addCleanup(os.waitpid, pid, 0)
        self.addCleanup(os.kill, pid, signal.SIGKILL)
        text, give_up = b"", time.monotonic() + support.PATIENCE
        while b"no quorum: this is what one server has, and may be old" not in text:
            ready, _, _ = select.select([terminal], [], [], max(0, give_up - time.monotonic()))
            self.assertTrue(ready, text[-400:])
            text += os.read(terminal, 4096)

    def test_without_the_option(self):
        status, out, err = self.zklock("ls", "--connect", self.servers, "--connect-timeout", "1s", "/")
        self.assertEqual((status, out), (123, ""))
        self.assertIn("not connected", err)
        self.assertNotIn(NOTE, err)


class WithQuorum(support.CliTest):
    def test_nothing_is_said(self):
        self.zklock("create", self.path, "data")
        self.assertEqual(self.zklock("get", "--read-only", self.path), (0, "data", ""))

    def test_what_needs_a_quorum_refuses_it(self):
        for command, why in (("run PATH true", "takes a lock"), ("run -s PATH true", "takes a lock"),
                             ("elect PATH true", "takes a lock"), ("break PATH", "writes"), ("revoke PATH", "writes"),
                             ("set PATH data", "writes"), ("create PATH", "writes"), ("rm PATH", "writes"),
                             ("acl PATH --set open", "writes"), ("barrier set PATH", "writes"),
                             ("barrier remove PATH", "writes"), ("barrier wait PATH", "must not answer from old data"),
                             ("counter add PATH 1", "writes"), ("queue ls PATH", "writes"),
                             ("queue put PATH item", "writes"), ("queue dead PATH", "needs a session"),
                             ("queue revive PATH --all", "writes"), ("doctor", "asks the leader"), ("whoami", "asks for what such a server is not asked"),
                             ("watch -r PATH", "with -r needs a watch that stands"),
                             ("tree --count PATH", "with --count asks for what such a server is not asked"),
                             ("bench", "writes")):
            name = command.split(" PATH")[0].replace(" -s", "").replace(" -r", "").replace(" --count", "") + (" --set" if "--set" in command else "")
            words = command.replace("PATH", self.path).split()
            status, out, err = self.zklock("--read-only", *words)
            self.assertEqual((status, out), (120, ""), command)
            self.assertIn(f"--read-only: not for `zklock {name}`, which {why}; see `zklock {words[0]} --help`\n", err)
        self.assertEqual(self.zklock("stat", self.path)[0], 1)  # nothing was written


if __name__ == "__main__":
    support.main()
