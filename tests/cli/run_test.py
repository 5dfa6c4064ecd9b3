"""zklock run: kinds of lock, waiting, exit statuses, what a command is given."""

import os
import signal
import socket
import sys
import tempfile
import time

import support


class Statuses(support.CliTest):
    def run_shell(self, script, *options):
        return self.zklock("run", *options, self.path, "--", "sh", "-c", script)

    def test_status_of_the_command(self):
        for status in (0, 1, 7, 255):
            self.assertEqual(self.run_shell(f"exit {status}")[0], status)

    def test_a_command_that_is_killed(self):
        self.assertEqual(self.run_shell("kill -9 $$")[0], 128 + signal.SIGKILL)

    def test_no_such_command(self):
        status, _, err = self.zklock("run", self.path, "--", "/no/such/command")
        self.assertEqual((status, err), (127, "zklock: /no/such/command: No such file or directory\n"))
        self.assertEqual(self.locks()["holders"], [])

    def test_a_command_that_cannot_be_executed(self):
        self.assertEqual(self.zklock("run", self.path, "--", "/etc/passwd")[0], 126)

    def test_usage(self):
        for wrong in (["run", self.path], ["run", self.path, "--"], ["run", "--", "true"], ["run", "a", "--", "true"],
                      ["run", self.path, "-c", "true", "--", "true"], ["run", "-z", self.path, "true"],
                      ["run", "--wait", "3x", self.path, "--", "true"],
                      ["run", "--semaphore", "0", self.path, "--", "x"],
                      ["run", "--wait", "1s", "--no-wait", self.path, "--", "true"],
                      ["run", "--shared", "--exclusive", self.path, "--", "true"], ["fly"], []):
            self.assertEqual(self.zklock(*wrong)[0], 120, wrong)

    def test_what_is_wrong_is_said_with_the_command_that_helps(self):
        for wrong, words in ((["fly"], "there is no command \"fly\""), (["lcoks", "/"], "do you mean `zklock locks`?"),
                             (["lock", "/a", "true"], "do you mean `zklock run`?"),  # etcdctl's
                             (["put", "/a", "b"], "do you mean `zklock set`?"),
                             (["deleteall", "/a"], "do you mean `zklock rm -r`?"),   # zkCli.sh's
                             ([], "which command? `zklock --help`"), (["run"], "`zklock run --help`"),
                             (["-v"], "`zklock --help`"), (["ls", "-z", "/"], "`zklock ls --help`"),
                             (["run", "/a"], "what is to be run? zklock run PATH COMMAND"),
                             (["run", "--", "true"], "PATH"), (["\x1b[31m"], "\"\\x1b[31m\"")):
            status, out, err = self.zklock(*wrong)
            self.assertEqual((status, out), (120, ""), wrong)
            self.assertTrue(err.startswith("zklock: ") and err.count("\n") == 1, err)
            self.assertIn(words, err)

    def test_help_is_no_error(self):
        for asked in (["--help"], ["run", "--help"], ["-h"], ["--version"]):
            status, out, err = self.zklock(*asked)
            self.assertEqual((status, err), (0, ""), asked)
            self.assertIn("zklock", out)

    def test_nothing_is_said_of_what_we_hold_where_there_is_nothing(self):
        # Somebody listens, and does not answer: so no server can be told of our end.
        with socket.create_server(("127.0.0.1", 0)) as silent:
            servers = f"127.0.0.1:{silent.getsockname()[1]}"
            for what in (["ls", "/"], ["run", self.path, "true"]):
                p = self.start(*what, environment={"ZK_HOSTS": servers})
                connection, _ = silent.accept()
                with connection:
                    self.assertTrue(connection.recv(4096))
                    p.signal(signal.SIGINT)
                    self.assertEqual(p.end(), -signal.SIGINT)
                self.assertEqual(p.output(), ("", ""))

    def test_what_cannot_be_told_stays(self):
        way = support.Cut()
        self.addCleanup(way.close)
        p = self.hold("--session-timeout", "40s", servers=way.servers)
        way.cut()
        p.say()
        self.assertEqual(p.end(), 0)
        self.assertIn("what we hold stays until the session times out", p.output()[1])
        self.assertEqual(len(self.locks()["holders"]), 1)

    def test_no_server(self):
        with socket.create_server(("127.0.0.1", 0)) as closed:
            port = closed.getsockname()[1]
        status, _, err = self.zklock("run", "--connect", f"127.0.0.1:{port}", "--connect-timeout", "300ms", self.path,
                                     "--", "true")
        self.assertEqual(status, 123)
        self.assertIn("not connected", err)

    def test_the_time_to_wait_covers_the_servers(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            servers = {"ZK_HOSTS": f"127.0.0.1:{silent.getsockname()[1]}"}
            begin = time.monotonic()
            status, out, err = self.zklock("run", "--connect-timeout", "1h", "-w", "3", "-E", "7", self.path, "--",
                                           "echo", "ran", environment=servers)
            took = time.monotonic() - begin
        self.assertEqual((status, out), (123, ""))
        self.assertIn("no server has answered for 3 s", err)
        self.assertGreaterEqual(took, 3)

    def test_the_time_to_wait_covers_an_outage(self):
        way = support.Cut()
        self.addCleanup(way.close)
        self.hold()
        begin = time.monotonic()
        p = self.start("run", "-v", "--connect-timeout", "1h", "--session-timeout", "40s", "-w", "3", self.path, "--",
                       "echo", "ran", environment={"ZK_HOSTS": way.servers})
        p.error_line("waiting behind 1")
        way.cut()
        self.assertEqual(p.end(), 121)
        self.assertGreaterEqual(time.monotonic() - begin, 3)
        self.assertLess(time.monotonic() - begin, 30)
        self.assertEqual(p.output()[0], "")

    def test_somebody_else_has_it(self):
        self.hold()
        for how in (["--no-wait"], ["--wait", "200ms"]):
            status, out, err = self.zklock("run", *how, self.path, "--", "echo", "ran")
            self.assertEqual((status, out), (121, ""))
            self.assertIn("is held by somebody else", err)
        self.assertEqual(len(self.locks()["holders"]), 1)
        self.assertEqual(self.locks()["waiters"], [])


class Habits(support.CliTest):
    """What users of flock and etcdctl type."""

    def test_words_behind_the_path_are_the_command(self):
        for arguments in ([self.path, "printf", "%s|", "-n", "--wait", "ls", "a b"],
                          ["--wait", "3", self.path, "printf", "%s|", "-n", "--wait", "ls", "a b"],
                          [self.path, "--wait=3s", "-v", "printf", "%s|", "-n", "--wait", "ls", "a b"],
                          [self.path, "-vw", "3", "--", "printf", "%s|", "-n", "--wait", "ls", "a b"]):
            status, out, _ = self.zklock("run", *arguments)
            self.assertEqual((status, out), (0, "-n|--wait|ls|a b|"), arguments)
        _, out, _ = self.zklock("elect", self.path + "-leader", "printf", "%s|", "--", "run")
        self.addCleanup(self.zklock, "rm", "-r", "--yes", self.path + "-leader")
        self.assertEqual(out, "--|run|")
        self.assertEqual(self.zklock("--color", "never", "run", self.path, "echo", "run")[1], "run\n")

    def test_not_at_all_and_so_many_seconds(self):
        self.hold()
        for how in (["-n"], ["-w", "0.2"], ["-w0.2"], ["-vn"]):
            self.assertEqual(self.zklock("run", *how, self.path, "true")[0], 121, how)
        for wrong, words in ((["-n", "-w", "3"], "--wait and --no-wait exclude each other"),
                             (["-s", "-x"], "--exclusive and --shared exclude each other"),
                             (["-F"], "it keeps the lock"), (["-u"], "zklock break"),
                             (["-w", "."], "is no duration"), (["-w", "-1"], "is no duration"),
                             (["-E", "256"], "256"), (["-E", "-1"], "-1"), (["-E", "one"], "one")):
            status, out, err = self.zklock("run", *wrong, self.path, "true")
            self.assertEqual((status, out), (120, ""), wrong)
            self.assertIn(words, err)

    def test_as_the_manual_of_flock_has_it(self):
        self.hold()
        for how in (["--nonblock"], ["--nb"], ["--timeout", "0.1"], ["--wait=.007"], ["-w", "0"], ["-w.007"]):
            self.assertEqual(self.zklock("run", *how, self.path, "true")[0], 121, how)
        for status in (0, 1, 9, 255):
            self.assertEqual(self.zklock("run", "-n", "-E", str(status), self.path, "true")[0], status)
        self.assertEqual(self.zklock("run", "-w", ".1", "--conflict-exit-code=7", self.path, "-c", "true")[0], 7)
        self.assertEqual(self.zklock("run", "-E", "7", self.path + "-free", "-c", "exit 5")[0], 5)
        self.addCleanup(self.zklock, "rm", self.path + "-free")
        status, _, err = self.zklock("-n", self.path, "true")
        self.assertEqual(status, 120)
        self.assertIn(f"do you mean `zklock run {self.path}`?", err)

    def test_closed(self):
        """The lock ends with the command, and not with what it leaves running."""
        with tempfile.TemporaryDirectory() as directory:
            gate = os.path.join(directory, "gate")
            os.mkfifo(gate)
            p = self.start("run", "-o", self.path, "--", "sh", "-c", f"cat {gate} & echo $!; exit 5")
            left = int(p.line())
            with open(gate, "w") as f:
                self.assertEqual(p.process.wait(support.PATIENCE), 5)
                self.assertTrue(support.is_alive(left))
                self.assertEqual(self.zklock("run", "-n", self.path, "true")[0], 0)
                f.write("it goes on")
            self.assertEqual(p.output()[0], "it goes on")

    def test_shared_and_exclusive(self):
        self.hold("-s")
        self.assertEqual(self.zklock("run", "-s", "-n", self.path, "true")[0], 0)
        for alone in ("-x", "-e"):
            self.assertEqual(self.zklock("run", alone, "-n", self.path, "true")[0], 121)

    def test_a_line_for_a_shell(self):
        for arguments in ([self.path, "-c", "echo $((1 + 2)); exit 4"], ["-c", "echo $((1 + 2)); exit 4", self.path]):
            status, out, _ = self.zklock("run", *arguments, environment={"SHELL": "/bin/sh"})
            self.assertEqual((status, out), (4, "3\n"))
        for shell, said in (("/bin/echo", "-c echo sh\n"), ("", "sh\n")):
            out = self.zklock("run", self.path, "-c", "echo sh", environment={"SHELL": shell})[1]
            self.assertEqual(out, said)


class Kinds(support.CliTest):
    def test_waits_for_its_turn(self):
        first = self.hold()
        second = self.start("run", "-v", self.path, "--", "echo", "ours")
        second.error_line("waiting behind 1")
        self.assertEqual([w["pid"] for w in self.locks()["waiters"]], [second.pid])
        first.say()
        self.assertEqual(first.end(), 0)
        self.assertEqual(second.line(), "ours")
        self.assertEqual(second.end(), 0)

    def test_readers_and_writers(self):
        self.hold("--shared")
        second = self.hold("--shared")
        self.assertEqual(self.zklock("run", "--exclusive", "--no-wait", self.path, "--", "true")[0], 121)
        self.assertEqual(len(self.locks()["holders"]), 2)
        second.say()
        self.assertEqual(second.end(), 0)

    def test_semaphore(self):
        first = self.hold("--semaphore", "2")
        self.hold("--semaphore", "2")
        self.assertEqual(self.zklock("run", "--semaphore", "2", "--no-wait", self.path, "--", "true")[0], 121)
        first.say()
        self.assertEqual(first.end(), 0)
        self.assertEqual(self.zklock("run", "--semaphore", "2", "--no-wait", self.path, "--", "true")[0], 0)

    def test_another_kind_of_lock_is_there(self):
        self.hold("--shared")
        status, _, err = self.zklock("run", self.path, "--", "true")
        self.assertEqual(status, 1)
        self.assertIn("--exclusive or --shared", err)

    def test_kazoo_names(self):
        self.hold("--kazoo")
        self.assertIn("__lock__", self.locks()["holders"][0]["node"])


class Command(support.CliTest):
    def test_environment(self):
        script = "echo $ZKLOCK_TOKEN; echo $ZKLOCK_PATH; echo $ZKLOCK_NODE; read line"
        p = self.start("run", self.path, "--", "sh", "-c", script)
        token, path, node = p.line(), p.line(), p.line()
        holder = self.locks()["holders"][0]
        self.assertEqual((int(token), path, node), (holder["token"], self.path, holder["node"]))

    def test_tokens_rise(self):
        run = lambda: int(self.zklock("run", self.path, "--", "sh", "-c", "echo $ZKLOCK_TOKEN")[1])
        self.assertLess(run(), run())

    def test_arguments_are_its_own(self):
        _, out, _ = self.zklock("run", self.path, "--", "printf", "%s|", "--no-wait", "--", "run", "-h", "a b")
        self.assertEqual(out, "--no-wait|--|run|-h|a b|")

    def test_standard_input_is_its_own(self):
        self.assertEqual(self.zklock("run", self.path, "--", "cat", text="through\n")[1], "through\n")

    def test_no_descriptors_of_ours(self):
        _, out, _ = self.zklock("run", self.path, "--", "ls", "/proc/self/fd")
        self.assertEqual(out.split(), ["0", "1", "2", "3"])  # the last one is of ls itself

    def test_the_lock_is_held_until_the_group_has_ended(self):
        with tempfile.TemporaryDirectory() as directory:
            gate = os.path.join(directory, "gate")
            os.mkfifo(gate)
            script = f"cat {gate} > /dev/null & echo started; exit 5"
            p = self.start("run", self.path, "--", "sh", "-c", script)
            self.assertEqual(p.line(), "started")
            with open(gate, "w"):
                self.assertEqual(self.zklock("run", "--no-wait", self.path, "--", "true")[0], 121)
                self.assertIsNone(p.process.poll())
            self.assertEqual(p.end(), 5)

    def test_a_daemon_does_not_keep_the_lock(self):
        # It leaves the group when the command has ended already: nobody is told of that.
        script = """import os, sys
command = os.getpid()
if os.fork():
    os._exit(3)
try:
    while True:
        os.kill(command, 0)
except ProcessLookupError:
    print("the command has ended", flush=True)
sys.stdin.readline()
os.setsid()
sys.stdin.read()
"""
        p = self.start("run", self.path, "--", sys.executable, "-c", script)
        self.assertEqual(p.line(), "the command has ended")
        self.assertEqual(self.zklock("run", "--no-wait", self.path, "--", "true")[0], 121)
        p.say()
        self.assertEqual(p.process.wait(support.PATIENCE), 3)

    LEAVER = """import os, sys
if os.fork() == 0:
    if os.fork() == 0:  # the last one in the group, and no child of the command
        sys.stdin.readline()
        os._exit(0)
    os.setsid()
    print("left", flush=True)
    {then}
    open("{gate}").read()  # goes on, without the lock
    os._exit(0)
os._exit(4)
"""

    def leave_the_group(self, then):
        with tempfile.TemporaryDirectory() as directory:
            gate = os.path.join(directory, "gate")
            os.mkfifo(gate)
            script = self.LEAVER.format(gate=gate, then=then)
            p = self.start("run", self.path, "--", sys.executable, "-c", script)
            try:
                self.assertEqual(p.line(), "left")
                self.assertEqual(self.zklock("run", "--no-wait", self.path, "--", "true")[0], 121)
                p.say()
                self.assertEqual(p.process.wait(support.PATIENCE), 4)
            finally:
                os.close(os.open(gate, os.O_RDWR | os.O_NONBLOCK))  # whoever waits for it goes on

    def test_who_leaves_the_group_does_not_keep_the_lock_while_it_runs(self):
        self.leave_the_group("os.wait()")

    def test_who_leaves_the_group_does_not_keep_the_lock_by_its_zombie(self):
        self.leave_the_group("")

    def test_a_process_whose_first_thread_has_ended_keeps_the_lock(self):
        script = """import ctypes, os, platform, sys, threading
if os.fork() == 0:
    def read():
        sys.stdin.readline()
        os._exit(0)
    threading.Thread(target=read).start()
    print(os.getpid(), flush=True)
    ctypes.CDLL(None).syscall(60 if platform.machine() == "x86_64" else 93, 0)  # exit, of this thread
os._exit(4)
"""
        p = self.start("run", self.path, "--", sys.executable, "-c", script)
        pid = int(p.line())
        self.eventually(lambda: not support.is_alive(pid))  # so it looks
        self.assertEqual(self.zklock("run", "--wait", "500ms", self.path, "--", "true")[0], 121)
        self.assertIsNone(p.process.poll())
        p.say()
        self.assertEqual(p.end(), 4)

    def test_who_holds_it(self):
        p = self.hold()
        holder = self.locks()["holders"][0]
        self.assertEqual((holder["pid"], holder["host"], holder["command"]), (p.pid, socket.gethostname(), "sh"))


class Credentials(support.CliTest):
    def file(self, text, mode=0o600):
        f = tempfile.NamedTemporaryFile("w", delete=False)
        self.addCleanup(os.unlink, f.name)
        with f:
            f.write(text)
        os.chmod(f.name, mode)
        return f.name

    def test_file_and_environment(self):
        file = self.file("# who we are\njoe:secret\n")
        status, _, err = self.zklock("create", "--auth-file", file, "--acl", "creator", self.path, "mine")
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(self.zklock("get", self.path)[0], 1)
        self.assertEqual(self.zklock("get", self.path, environment={"ZKLOCK_AUTH": "joe:secret"})[1], "mine")
        self.assertEqual(self.zklock("get", self.path, environment={"ZKLOCK_AUTH_FILE": file})[1], "mine")
        self.assertEqual(self.zklock("get", self.path, environment={"ZKLOCK_AUTH": "joe:wrong"})[0], 1)
        self.assertEqual(self.zklock("rm", "--auth-file", file, self.path)[0], 0)

    def test_a_file_that_others_can_read(self):
        status, _, err = self.zklock("ls", "--auth-file", self.file("joe:secret\n", 0o644), "/")
        self.assertEqual(status, 125)
        self.assertIn("chmod 600", err)

    def test_a_file_that_is_none(self):
        self.assertEqual(self.zklock("ls", "--auth-file", self.file("secret\n"), "/")[0], 125)
        self.assertEqual(self.zklock("ls", "--auth-file", "/no/such/file", "/")[0], 125)

    def test_nodes_that_are_open_in_spite_of_them(self):
        self.zklock("create", self.path)
        joe = {"ZKLOCK_AUTH": "joe:secret"}
        for words in ("run PATH true", "elect PATH true", "create PATH", "barrier set PATH", "counter add PATH 1",
                      "queue put PATH item"):
            path = f"{self.path}/{words.split()[0]}"
            status, _, err = self.zklock(*words.replace("PATH", path).split(), environment=joe)
            self.assertEqual((status, err.count("\n")), (0, 1), err)
            self.assertIn(f"zklock: {path}: nodes are open to everybody; --acl creator ", err)
            for acl in ("creator", "open"):
                command = words.replace("PATH", f"--acl {acl} {path}-{acl}").split()
                self.assertEqual(self.zklock(*command, environment=joe)[::2], (0, ""), command)
            self.assertEqual(self.zklock(*words.replace("PATH", path + "-without").split())[::2], (0, ""), words)
        for command in (["get"], ["set", "--version", "0"], ["locks"], ["rm"]):
            data = ["data"] if command[0] == "set" else []
            self.assertEqual(self.zklock(*command, f"{self.path}/create", *data, environment=joe)[::2], (0, ""))
        file = self.file("joe:secret\n")
        self.assertIn("open to everybody", self.zklock("create", "--auth-file", file, f"{self.path}/file")[2])
        none = self.file("# nobody\n")
        self.assertEqual(self.zklock("create", "--auth-file", none, f"{self.path}/nobody")[2], "")
        self.zklock("rm", "-r", "--yes", self.path, environment=joe)

    def test_the_command_does_not_see_them(self):
        _, out, _ = self.zklock("run", self.path, "--", "env", environment={"ZKLOCK_AUTH": "joe:secret"})
        self.assertIn("ZKLOCK_TOKEN", out)
        self.assertNotIn("secret", out)


if __name__ == "__main__":
    support.main()
