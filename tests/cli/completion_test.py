"""Completion of zklock in zsh and fish: the commands and options of --help, their values, nodes, commands to run.

For bash see manual_test.py. A test is skipped, and says so, only where the shell is not installed.
"""

import os
import pty
import select
import shutil
import subprocess
import tempfile
import time
import unittest

import support

SOURCES = os.environ["ZKLOCK_SOURCES"]

# What is around _zklock in a line editor: functions that print what they are given.
ZSH = r"""
script=$1; shift
compadd() {
    local name
    while [[ $1 == -* ]]; do
        [[ $1 == -- ]] && { shift; break }
        [[ $1 == -S ]] && shift
        shift
    done
    for name in "$@"; do [[ $name == ${words[CURRENT]}* ]] && print -r -- $name; done
}
_describe() {
    local one
    [[ $1 == -o ]] && shift
    for one in "${(@P)2}"; do
        one=${one%%:*}
        [[ $one == ${words[CURRENT]}* ]] && print -r -- $one
    done
}
_files() { print -r -- /etc/ }
_normal() { print -r -- normal $words }
_message() { : }
words=("$@") CURRENT=$#words
source $script
"""


class Shell:
    """What the tests have in common; complete() is the shell's."""

    def known(self, *verb):
        out = self.zklock(*verb, "--help")[1]
        lines = [line.split()[0] for line in out.split("Examples:")[0].splitlines() if line.startswith("  ")]
        return {name for word in lines if word.startswith("-") for name in word.split(",") if name.startswith("--")}

    def test_commands_and_options(self):
        listing = self.zklock("--help")[1].split("Subcommands:\n")[1].split("\n\n")[0]
        verbs = {line.split()[0] for line in listing.splitlines()}
        self.assertEqual(set(self.complete("")), verbs)
        self.assertEqual(self.complete("re"), ["revoke"])
        self.assertEqual(set(self.complete("queue", "")), {"ls", "put", "dead", "revive"})
        for verb in [[v] for v in sorted(verbs)] + [["queue", "put"], ["counter", "get"]]:
            options = self.known(*verb) | self.known()
            self.assertEqual(set(self.complete(*verb, "--")) ^ options, set(), verb)

    def test_values(self):
        self.assertEqual(self.complete("run", "--on-loss", ""), ["kill", "term", "warn"])
        self.assertIn("curator-delay", self.complete("queue", "put", "--layout", "cur"))
        self.assertEqual(self.complete("--connect", "host:1", "ge"), ["get"])
        self.assertEqual(self.complete("create", "--mode", "cont"), ["container"])
        self.assertIn("/etc/", self.complete("get", "--auth-file", "/et"))
        self.assertEqual(self.complete("run", "-vw", ""), [])  # a duration

    def test_nodes(self):
        for name in ("apple", "pear", "peach tree"):
            self.zklock("create", "-p", f"{self.path}/{name}")
        self.assertEqual(sorted(self.complete("get", self.path + "/pe")),
                         [self.path + "/peach tree", self.path + "/pear"])
        self.assertEqual(len(self.complete("run", "-w", "3", self.path + "/")), 3)
        self.assertIn(self.path, self.complete("locks", "-r", self.path[:-2]))
        self.assertEqual(self.complete("--connect", "127.0.0.1:1", "get", "/"), [])  # nobody is there to be asked

    def test_commands_to_run(self):
        for before in (["run", "/a", "--"], ["run", "/a"], ["run", "--wait", "3s", "/a"],
                       ["run", "/a", "-w", "3", "-v"], ["--connect", "host:1", "elect", "/a"]):
            self.assertIn(self.runs("printf"), self.complete(*before, "printf"), before)
        self.assertIn("--wait", self.complete("run", "/a", "--"))
        self.assertNotIn("--wait", self.complete("run", "/a", "printf", "--"))


@unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
class Zsh(Shell, support.CliTest):
    def complete(self, *words):
        done = subprocess.run(["zsh", "-f", "-c", ZSH, "zsh", os.path.join(SOURCES, "zklock.zsh"), support.PROGRAM,
                               *words], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              env={**os.environ, "ZK_HOSTS": support.SERVERS})
        self.assertEqual(done.stderr, "")
        return done.stdout.splitlines()

    def runs(self, command):
        return f"normal {command}"

    def test_in_an_editor(self):
        """As a user has it: compinit finds the file, and the Tab key completes."""
        with tempfile.TemporaryDirectory() as directory:
            shutil.copy(os.path.join(SOURCES, "zklock.zsh"), os.path.join(directory, "_zklock"))
            os.symlink(support.PROGRAM, os.path.join(directory, "zklock"))
            pid, terminal = pty.fork()
            if pid == 0:
                os.environ.update(ZK_HOSTS=support.SERVERS, TERM="xterm", PS1="ready> ", ZDOTDIR=directory,
                                  PATH=directory + ":" + os.environ["PATH"])
                os.execvp("zsh", ["zsh", "-f", "-i"])
            self.addCleanup(os.close, terminal)
            self.addCleanup(os.waitpid, pid, 0)
            self.addCleanup(os.kill, pid, 9)
            self.text = ""
            self.read_until(terminal, "ready> ")
            load = f"fpath=({directory} $fpath); autoload -Uz compinit; compinit -u -D; echo a''gain\n"
            os.write(terminal, load.encode())
            self.read_until(terminal, "again")
            self.read_until(terminal, "ready> ")
            os.write(terminal, b"zklock rev\t")
            self.read_until(terminal, "revoke")
            os.write(terminal, b" --conn\t")
            self.read_until(terminal, "--connect")

    def read_until(self, terminal, text):
        give_up = time.monotonic() + support.PATIENCE
        while text not in self.text:
            ready, _, _ = select.select([terminal], [], [], max(0, give_up - time.monotonic()))
            self.assertTrue(ready, f"{text!r} did not come, but {self.text!r}")
            self.text += os.read(terminal, 4096).decode(errors="replace")
        self.text = self.text.split(text, 1)[1]


@unittest.skipUnless(shutil.which("fish"), "fish is not installed")
class Fish(Shell, support.CliTest):
    def complete(self, *words):
        with tempfile.TemporaryDirectory() as directory:
            os.symlink(support.PROGRAM, os.path.join(directory, "zklock"))
            script = ('source $argv[1]; '
                      'complete -C (string join -- " " zklock (string escape -- $argv[2..-2]) $argv[-1])')
            done = subprocess.run(["fish", "--no-config", "-c", script, os.path.join(SOURCES, "zklock.fish"), *words],
                                  capture_output=True, text=True, stdin=subprocess.DEVNULL,
                                  env={**os.environ, "ZK_HOSTS": support.SERVERS, "HOME": directory,
                                       "PATH": directory + ":" + os.environ["PATH"]})
        self.assertEqual(done.stderr, "")
        return [line.split("\t")[0].replace("\\ ", " ") for line in done.stdout.splitlines()]

    def runs(self, command):
        return command


if __name__ == "__main__":
    support.main()
