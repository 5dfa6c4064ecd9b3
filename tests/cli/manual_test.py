"""What is written about zklock is true: the manual page, the completion and --help know the same commands and options."""

import gzip
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import support

SOURCES = os.environ["ZKLOCK_SOURCES"]
INSTALL = os.environ.get("ZKLOCK_INSTALL", "")  # the command that installs zklock


def read(name):
    with open(os.path.join(SOURCES, name)) as f:
        return f.read()


class Manual(support.CliTest):
    def verbs(self, *of):
        """The commands, or those of one command: `zklock queue ls`."""
        listing = re.split(r"(?i)subcommands:\n", self.zklock(*of, "--help")[1])
        lines = listing[1].split("\n\n")[0].splitlines() if len(listing) > 1 else []
        return [line.split()[0] for line in lines if line.startswith("  ") and line[2] != " "]

    def options(self, *verb):
        """Long and short ones, as --help lists them, also those of its own commands."""
        status, out, _ = self.zklock(*verb, "--help")
        self.assertEqual(status, 0)
        names = [re.match(r" +((-\w|--[\w-]+)(,(-\w|--[\w-]+))*)", line) for line in out.splitlines()]
        own = {name for match in names if match for name in match.group(1).split(",")}
        return own.union(*(self.options(*verb, action) for action in self.verbs(*verb) if verb))

    def test_the_manual_has_everything(self):
        page = read("zklock.1.in").replace("\\-", "-")
        for verb in self.verbs():
            self.assertRegex(page, rf"(?m)[ ,B]{verb}\b")
            for option in self.options(verb):
                self.assertRegex(page, rf"(?<![\w-]){option}(?![\w-])", f"{verb} {option}")

    def test_the_manual_speaks_of_nothing_else(self):
        page = read("zklock.1.in").replace("\\-", "-")
        known = self.options().union(*(self.options(verb) for verb in self.verbs()))
        self.assertLessEqual(set(re.findall(r"(?<![\w-])--[a-z-]+", page)) - {"--active"}, known)

    @unittest.skipUnless(shutil.which("groff"), "groff is not installed")
    def test_the_manual_is_well_formed(self):
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", os.path.join(SOURCES, "zklock.1.in")],
                              capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    @unittest.skipUnless(INSTALL, "zklock is not installed from this build")
    def test_the_schema_is_installed_where_the_manual_says(self):
        with tempfile.TemporaryDirectory() as root:
            done = subprocess.run(INSTALL.split(), capture_output=True, text=True, env={**os.environ, "DESTDIR": root})
            self.assertEqual(done.returncode, 0, done.stderr)
            pages = [os.path.join(d, name) for d, _, names in os.walk(root) for name in names
                     if re.fullmatch(r"zklock\.1(\.gz)?", name)]
            self.assertEqual(len(pages), 1)
            page = gzip.open(pages[0], "rt") if pages[0].endswith(".gz") else open(pages[0])
            with page:
                path = re.search(r"/\S*zklock\.schema\.json", page.read().replace("\\-", "-")).group()
            with open(root + path) as installed, open(os.path.join(SOURCES, "../../docs/zklock.schema.json")) as ours:
                self.assertEqual(installed.read(), ours.read())

    def test_examples_of_help_are_right(self):
        for verb in self.verbs():
            examples = re.findall(r"^  zklock (.*?)(?: \||  +#|$)", self.zklock(verb, "--help")[1], re.M)
            self.assertTrue(examples, verb)
            for example in examples:
                # A server that is not there: what the parser takes ends with 123, and what it refuses with 120.
                line = f"{support.PROGRAM} --connect 127.0.0.1:1 --connect-timeout 1ms {example}"
                done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, cwd=SOURCES,
                                      stdin=subprocess.DEVNULL)
                reached = done.returncode == 123 or "limits.json" in done.stderr
                self.assertTrue(reached, f"{line}: {done}")


class Completion(support.CliTest):
    def complete(self, *words):
        script = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _zklock 2> /dev/null; '
                  'printf "%s\\n" "${COMPREPLY[@]}"')
        done = subprocess.run(["bash", "--norc", "-c", script, "bash", os.path.join(SOURCES, "zklock.bash"),
                               support.PROGRAM, *words], capture_output=True, text=True,
                              env={**os.environ, "ZK_HOSTS": support.SERVERS})
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_commands(self):
        manual = Manual("verbs")
        manual.setUp()
        self.assertLessEqual(set(manual.verbs()), set(self.complete("")))
        self.assertEqual(self.complete("re"), ["revoke"])
        common = {o for o in manual.options() if o.startswith("--")}
        self.assertLessEqual(common, set(self.complete("-")))
        for verb in manual.verbs():
            for words in [[verb, action] for action in manual.verbs(verb)] or [[verb]]:
                known = {o for o in manual.options(*words) if o.startswith("--")}
                self.assertLessEqual(known | common, set(self.complete(*words, "-")), words)
        manual.doCleanups()

    def test_values(self):
        self.assertEqual(self.complete("run", "--on-loss", ""), ["kill", "term", "warn"])
        self.assertEqual(self.complete("--connect", "host:1", "ge"), ["get"])

    def test_paths(self):
        for name in ("apple", "pear", "peach"):
            self.zklock("create", "-p", f"{self.path}/{name}")
        self.assertEqual(self.complete("get", self.path + "/pe"), [self.path + "/peach", self.path + "/pear"])
        self.assertEqual(len(self.complete("run", self.path + "/")), 3)
        self.assertIn(self.path, self.complete("run", self.path[:-2]))

    def test_commands_to_run(self):
        for before in (["run", "/a", "--"], ["run", "/a"], ["run", "--wait", "3s", "/a"],
                       ["run", "/a", "-w", "3", "-v"], ["--connect", "host:1", "elect", "/a"]):
            self.assertIn("printf", self.complete(*before, "print"), before)
        self.assertIn("--wait", self.complete("run", "/a", "--"))
        self.assertNotIn("--wait", self.complete("run", "/a", "printf", "--"))
        self.assertIn("--count", self.complete("watch", "/a", "--c"))


if __name__ == "__main__":
    support.main()
