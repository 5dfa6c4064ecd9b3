"""zklock run and signals, with and without a terminal."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

import support


class Forwarded(support.CliTest):
    def test_to_the_command(self):
        script = "for s in INT TERM HUP QUIT USR1 USR2; do trap \"echo $s\" $s; done; echo ready; " \
                 "while :; do read line && exit 3; done"
        p = self.start("run", self.path, "--", "sh", "-c", script)
        self.assertEqual(p.line(), "ready")
        for s in ("INT", "TERM", "HUP", "QUIT", "USR1", "USR2"):
            p.signal(getattr(signal, "SIG" + s))
            self.assertEqual(p.line(), s)
        p.say()
        self.assertEqual(p.end(), 3)

    def test_to_the_whole_group(self):
        p = self.start("run", self.path, "--", "sh", "-c", "sleep 1000 & echo $!; cat; wait")
        background = int(p.line())
        p.signal(signal.SIGTERM)
        support.wait_for_end(background)
        self.assertEqual(p.end(), 128 + signal.SIGTERM)

    def test_while_it_waits(self):
        self.hold()
        for number in (signal.SIGINT, signal.SIGTERM):
            p = self.start("run", "-v", self.path, "--", "echo", "ran")
            p.error_line("waiting behind 1")
            p.signal(number)
            self.assertEqual(p.end(), -number)  # as a shell sees it: 128 and the number
            self.assertEqual(p.output()[0], "")
            self.assertEqual(self.locks()["waiters"], [])

    def test_ignored_ones_stay_ignored(self):
        ignore = lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)
        first = self.hold()
        p = self.start("run", "-v", self.path, "--", "sh", "-c", "echo ready; read line", preexec_fn=ignore)
        p.error_line("waiting behind 1")
        p.signal(signal.SIGHUP)
        first.say()
        self.assertEqual(p.line(), "ready")
        p.signal(signal.SIGHUP)
        p.say()
        self.assertEqual(p.end(), 0)

    def test_others_are_as_they_were(self):
        _, out, _ = self.zklock("run", self.path, "--", "grep", "-E", "SigIgn|SigBlk", "/proc/self/status")
        values = [int(line.split()[1], 16) for line in out.splitlines()]
        self.assertEqual(values, [0, 0])


class Terminal(support.CliTest):
    """In the foreground of a terminal, as from an interactive shell."""

    def open(self, *arguments, **environment):
        return self.open_program([support.PROGRAM, *arguments], **environment)

    def open_shell(self):
        return self.open_program(["/bin/bash", "--norc", "-i"], PS1="shell> ")

    def open_program(self, arguments, **environment):
        pid, terminal = pty.fork()
        if pid == 0:
            os.environ.update({"ZK_HOSTS": support.SERVERS, "TERM": "xterm", **environment})
            os.execv(arguments[0], arguments)
        self.addCleanup(os.close, terminal)
        self.addCleanup(self.end, pid)
        self.status = None
        self.terminal, self.text = terminal, ""
        return pid

    def end(self, pid):
        if self.status is None:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    def read_until(self, text):
        give_up = time.monotonic() + support.PATIENCE
        while text not in self.text:
            ready, _, _ = select.select([self.terminal], [], [], max(0, give_up - time.monotonic()))
            self.assertTrue(ready, f"{text!r} did not come, but {self.text!r}")
            self.text += os.read(self.terminal, 4096).decode()
        self.text = self.text.split(text, 1)[1]

    def wait(self, pid, options=0):
        _, status = os.waitpid(pid, options)
        if not os.WIFSTOPPED(status):
            self.status = status
        return status

    def type(self, text):
        os.write(self.terminal, text.encode())

    def test_a_command_reads_from_it(self):
        pid = self.open("run", self.path, "--", "sh", "-c", "echo ready; read line; echo got $line")
        self.read_until("ready")
        self.type("something\n")
        self.read_until("got something")
        self.assertEqual(self.wait(pid), 0)

    def test_interrupt_reaches_the_command(self):
        pid = self.open("run", self.path, "--", "sh", "-c", "trap 'echo caught; exit 9' INT; echo ready; read line")
        self.read_until("ready")
        self.type("\x03")
        self.read_until("caught")
        self.assertEqual(os.waitstatus_to_exitcode(self.wait(pid)), 9)

    def test_stop_and_continue(self):
        pid = self.open("run", self.path, "--", "sh", "-c", "echo ready; read line; echo got $line")
        self.read_until("ready")
        self.type("\x1a")  # nobody is there who could continue us: only the command is stopped, for a moment
        self.type("something\n")
        self.read_until("got something")
        self.assertEqual(self.wait(pid), 0)

    def test_a_shell_with_job_control(self):
        pid = self.open_shell()
        self.read_until("shell> ")
        self.type(f"{support.PROGRAM} run {self.path} -- sh -c 'echo re\"\"ady; read line; echo got $line'; echo $?\n")
        self.read_until("ready")
        self.type("\x1a")
        self.read_until("Stopped")
        self.assertEqual(len(self.locks()["holders"]), 1)
        self.type("fg\n")
        self.read_until("sh -c")
        self.type("something\n")
        self.read_until("got something")
        self.type("exit 5\n")
        self.assertEqual(os.waitstatus_to_exitcode(self.wait(pid)), 5)

    def test_a_question(self):
        holder = self.hold()
        pid = self.open("break", self.path)
        self.read_until("[y/N]")
        self.type("n\n")
        self.assertEqual(os.waitstatus_to_exitcode(self.wait(pid)), 1)
        self.assertEqual(len(self.locks()["holders"]), 1)
        pid = self.open("break", self.path)
        self.read_until("[y/N]")
        self.type("y\n")
        self.read_until("Taken away")
        self.assertEqual(self.wait(pid), 0)
        self.assertEqual(holder.end(), 122)

    def test_what_controls_a_terminal_is_escaped(self):
        self.zklock("create", self.path, "\x1b[31mred\nline")
        pid = self.open("get", self.path)
        self.read_until("\\x1b[31mred\r\nline")
        self.assertEqual(self.wait(pid), 0)

    def test_bytes_that_are_no_text_are_escaped(self):
        self.zklock("create", self.path)
        p = support.Process(["set", "-f", "-", self.path])
        p.process.communicate(b"\x9b31m \xff\x1b]0;title\x07 \xc3\xbc\tx")
        pid = self.open("get", self.path)
        self.read_until("\\x9b31m \\xff\\x1b]0;title\\x07 \u00fc")
        self.assertEqual(self.wait(pid), 0)

    def modes(self):
        return termios.tcgetattr(self.terminal)[3] & (termios.ICANON | termios.ECHO)

    def test_q_ends_what_watches(self):
        holder = self.hold()
        pid = self.open("locks", "--watch", self.path)
        self.read_until("mutex, 1 and 0 waiting")
        self.read_until("q ends")
        self.assertEqual(self.modes(), 0)
        self.type("xyz")
        holder.say()
        self.read_until("free")
        self.type("q")
        self.assertEqual(os.waitstatus_to_exitcode(self.wait(pid)), 0)
        self.assertEqual(self.modes(), termios.ICANON | termios.ECHO)

    def test_what_watches_in_the_background_leaves_the_terminal_alone(self):
        pid = self.open_shell()
        self.read_until("shell> ")
        self.type(f"{support.PROGRAM} locks --watch {self.path}\n")
        self.read_until("q ends")
        self.type("\x1a")
        self.read_until("Stopped")
        self.type("bg\n")
        self.read_until(" &")
        self.type("echo sp\"\"oken\n")  # is read by the shell
        self.read_until("spoken")
        self.read_until("q ends")  # it goes on
        self.type("jobs\n")
        self.read_until("Running")
        self.type("fg; echo ba\"\"ck\n")
        self.read_until("locks --watch")
        self.eventually(lambda: self.modes() == 0)
        self.type("q")
        self.read_until("back")
        self.type(f"{support.PROGRAM} locks --watch {self.path}\n")
        self.read_until("q ends")
        self.type("\x1a")
        self.read_until("Stopped")
        self.type("bg; kill -TERM %%; wait %%; echo st\"\"atus $?\n")
        self.read_until("status 143")
        self.type("exit 5\n")
        self.assertEqual(os.waitstatus_to_exitcode(self.wait(pid)), 5)

    def test_interrupt_ends_what_watches(self):
        pid = self.open("locks", "--watch", self.path)
        self.read_until("q ends")
        self.type("\x03")
        self.assertEqual(os.waitstatus_to_exitcode(self.wait(pid)), -signal.SIGINT)
        self.assertEqual(self.modes(), termios.ICANON | termios.ECHO)

    def test_a_stop_leaves_the_terminal_as_it_was(self):
        pid = self.open("locks", "--watch", self.path)
        self.read_until("q ends")
        self.assertEqual(self.modes(), 0)
        os.kill(pid, signal.SIGTSTP)  # as Ctrl-Z; nobody else sets the terminal
        self.assertTrue(os.WIFSTOPPED(self.wait(pid, os.WUNTRACED)))
        self.assertEqual(self.modes(), termios.ICANON | termios.ECHO)
        os.kill(pid, signal.SIGCONT)
        self.eventually(lambda: self.modes() == 0)
        self.type("q")
        self.assertEqual(os.waitstatus_to_exitcode(self.wait(pid)), 0)

    def test_q_ends_what_watches_after_a_pause(self):
        pid = self.open("locks", "--watch", self.path)
        self.read_until("q ends")
        os.kill(pid, signal.SIGSTOP)
        self.assertTrue(os.WIFSTOPPED(self.wait(pid, os.WUNTRACED)))
        cooked = termios.tcgetattr(self.terminal)
        cooked[3] |= termios.ICANON | termios.ECHO
        termios.tcsetattr(self.terminal, termios.TCSANOW, cooked)  # as a shell does then
        os.kill(pid, signal.SIGCONT)
        self.eventually(lambda: self.modes() == 0)
        self.type("q")
        self.assertEqual(os.waitstatus_to_exitcode(self.wait(pid)), 0)

    def resize(self, rows, columns):
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def screen(self):
        """What is drawn next, without escape sequences: its lines and the footer."""
        self.read_until("\x1b[H")
        self.read_until_before("\x1b[H")
        return re.sub(r"\x1b\[[0-9;]*[A-Za-z]|\r", "", self.drawn).split("\n")

    def draws(self, condition):
        """The first screen from now on that fulfils the condition."""
        give_up = time.monotonic() + support.PATIENCE
        lines = self.screen()
        while not condition(lines):
            self.assertLess(time.monotonic(), give_up, f"not drawn in time, but {lines}")
            lines = self.screen()
        return lines

    def read_until_before(self, text):
        self.drawn = ""
        give_up = time.monotonic() + support.PATIENCE
        while text not in self.text:
            ready, _, _ = select.select([self.terminal], [], [], max(0, give_up - time.monotonic()))
            self.assertTrue(ready, f"{text!r} did not come, but {self.text!r}")
            self.text += os.read(self.terminal, 4096).decode()
        self.drawn, rest = self.text.split(text, 1)
        self.text = text + rest

    def test_a_screen_of_many_locks(self):
        for i in range(12):
            self.hold(path=f"{self.path}/{i:02}")
        self.start("run", "-v", self.path + "/07", "--", "true").error_line("waiting behind 1")
        pid = self.open("locks", "-r", "--watch", self.path)
        lines = self.screen()
        self.assertIn("12 locks in 13 nodes", lines[0])
        self.assertRegex(lines[1], r"^grants/s +hold +wait +held +kind +lock +holder")
        self.assertEqual([line.split()[6] for line in lines[2:14]], [f"{self.path}/{i:02}" for i in range(12)])
        self.assertIn("q ends", lines[-1])
        self.resize(8, 40)
        lines = self.draws(lambda lines: len(lines) == 8)
        self.assertEqual([line for line in lines if len(line) >= 40], [])
        self.assertRegex(lines[2], r"^ +0\.0 +1 +1 ")  # the one that somebody waits for is first
        self.assertIn("more lines", lines[-2])
        for size in ((1, 1), (2, 2), (3, 1000), (500, 3)):
            self.resize(*size)
            rows, columns = max(2, size[0]), max(2, size[1])
            self.draws(lambda lines: len(lines) <= rows and max(len(line) for line in lines) < columns)
        self.type("q")
        self.assertEqual(os.waitstatus_to_exitcode(self.wait(pid)), 0)
        self.assertEqual(self.modes(), termios.ICANON | termios.ECHO)

    def test_locks_that_come_and_go_on_a_screen(self):
        lock = self.path + "/comes"
        self.zklock("create", "--parents", lock)  # without it, the lock makes a container, which the server removes
        pid = self.open("locks", "-r", "--watch", self.path)
        self.read_until("0 locks in 2 nodes")
        holder = self.hold(path=lock)
        self.read_until("1 locks in ")
        self.read_until(lock)
        holder.say()
        self.assertEqual(holder.end(), 0)
        self.draws(lambda lines: any(re.search(r" free +" + lock + " +-", line) for line in lines))
        self.zklock("rm", "-r", "--yes", self.path)
        lines = self.draws(lambda lines: self.path + ": no such node" in lines[0])
        self.assertFalse(any("/comes" in line for line in lines))
        self.type("q")
        self.assertEqual(os.waitstatus_to_exitcode(self.wait(pid)), 0)

    def test_a_screen_goes_on_through_an_outage(self):
        cut = support.Cut()
        self.addCleanup(cut.close)
        self.hold()
        for how in ([], ["-r"]):
            pid = self.open("locks", *how, "--session-timeout", "4s", "--watch", self.path, ZK_HOSTS=cut.servers)
            self.read_until("q ends")
            cut.cut()
            self.read_until("no connection for ")
            self.read_until("mutex")  # as it was
            cut.heal()
            lines = self.draws(lambda lines: not any("no connection" in line for line in lines))
            self.assertTrue(any("mutex" in line for line in lines))
            cut.cut()
            self.read_until("no connection for ")
            self.type("q")
            self.assertEqual(os.waitstatus_to_exitcode(self.wait(pid)), 0)
            self.assertEqual(self.modes(), termios.ICANON | termios.ECHO)
            cut.heal()

    def test_no_screen_without_a_kind_of_terminal(self):
        for kind in ("", "dumb"):
            pid = self.open("locks", "--watch", self.path, TERM=kind)
            self.read_until("free")
            self.assertEqual(self.modes(), 0)
            holder = self.hold()
            self.read_until("mutex, 1 and 0 waiting")
            self.assertNotIn("\x1b", self.text)
            self.type("q")
            self.assertEqual(os.waitstatus_to_exitcode(self.wait(pid)), 0)
            holder.say()
            self.assertEqual(holder.end(), 0)

    def test_no_server_for_a_screen(self):
        pid = self.open("locks", "--watch", "--connect-timeout", "300ms", self.path, ZK_HOSTS="127.0.0.1:1")
        self.read_until("not connected")
        self.assertEqual(os.waitstatus_to_exitcode(self.wait(pid)), 123)
        self.assertEqual(self.modes(), termios.ICANON | termios.ECHO)

    def test_a_signal_ends_a_screen(self):
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            pid = self.open("locks", "--watch", self.path)
            self.read_until("q ends")
            os.kill(pid, number)
            self.assertEqual(os.waitstatus_to_exitcode(self.wait(pid)), -number)
            self.assertEqual(self.modes(), termios.ICANON | termios.ECHO)

    def test_how_long_and_how_often(self):
        first = self.hold()
        pid = self.open("locks", "--watch", self.path, NO_COLOR="1")
        self.read_until(" grants/s, 0 in ")
        self.read_until("holds  >")
        first.say()
        self.assertEqual(first.end(), 0)
        second = self.hold()
        self.read_until(" grants/s, 1 in ")
        self.read_until("holds  ")
        held = r"holds  \d+ (ms|s) .*pid " + str(second.pid)
        self.draws(lambda lines: any(re.search(held, line) for line in lines))
        self.type("q")
        self.assertEqual(os.waitstatus_to_exitcode(self.wait(pid)), 0)

    def test_how_often_in_a_directory_that_was_created_again(self):
        first = self.hold()
        pid = self.open("locks", "--watch", self.path, NO_COLOR="1")
        self.read_until(" grants/s, 0 in ")
        first.say()
        self.assertEqual(first.end(), 0)
        self.eventually(lambda: self.zklock("stat", self.path)[0] != 0)  # a container: the server removes it
        second = self.hold()
        self.read_until(" grants/s, 1 in ")
        self.type("q")
        self.assertEqual(os.waitstatus_to_exitcode(self.wait(pid)), 0)
        second.say()

    def test_colours(self):
        pid = self.open("stat", "/")
        self.read_until("\x1b[2m")
        self.assertEqual(self.wait(pid), 0)
        os.environ["NO_COLOR"] = "1"
        self.addCleanup(os.environ.pop, "NO_COLOR")
        pid = self.open("stat", "/")
        self.read_until("created         ")
        self.assertEqual(self.wait(pid), 0)


if __name__ == "__main__":
    support.main()
