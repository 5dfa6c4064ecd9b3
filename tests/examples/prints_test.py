"""The examples print what examples/README.md says.

A block of that page begins with the command, "$ build/demo/examples/NAME 127.0.0.1:2181". The lines behind it are what
the program prints: the same words, but for those that contain a digit on both sides, which may differ. The word "…"
stands for any word, a line "..." for any lines. The order of the lines counts, except below a comment "<!-- some of these
lines -->": there, each line that is printed is one of the page's.
"""

import os
import re
import subprocess
import sys
import unittest

SERVERS = os.environ.get("ZKASIO_TEST_SERVERS", "")
PROGRAMS = os.environ["ZKASIO_EXAMPLES_DIR"]
PAGE = os.environ["ZKASIO_EXAMPLES_PAGE"]
PATIENCE = 120  # seconds
COMMAND = re.compile(r"\$ build/demo/examples/(\w+) 127\.0\.0\.1:2181$")


def blocks():
    """The name of each program, what compares, and the lines that the page has for it."""
    with open(PAGE, encoding="utf-8") as page:
        fenced = re.findall(r"^(<!-- some of these lines -->\n)?```console\n(.*?)^```$", page.read(), re.M | re.S)
    for some, block in fenced:
        first, *lines = block.splitlines()
        yield COMMAND.match(first)[1], some_match if some else matches, lines


def same(expected, printed):
    """Whether two lines differ only in words with digits, and where any word may stand."""
    words = list(zip(expected.split(), printed.split()))
    return len(expected.split()) == len(printed.split()) and all(
        e in ("…", p) or (re.search(r"\d", e) and re.search(r"\d", p)) for e, p in words)


def matches(expected, printed):
    if not expected:
        return not printed
    if expected[0] == "...":
        return any(matches(expected[1:], printed[n:]) for n in range(len(printed) + 1))
    return bool(printed) and same(expected[0], printed[0]) and matches(expected[1:], printed[1:])


def some_match(expected, printed):
    return bool(printed) and all(any(same(e, p) for e in expected) for p in printed)


class Prints(unittest.TestCase):
    def test_what_the_page_says(self):
        seen = 0
        for name, compare, expected in blocks():
            with self.subTest(name):
                done = subprocess.run([os.path.join(PROGRAMS, name), SERVERS], capture_output=True, text=True,
                                      timeout=PATIENCE)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertTrue(compare(expected, done.stdout.splitlines()),
                                f"{name} prints\n{done.stdout}\ninstead of\n" + "\n".join(expected))
            seen += 1
        self.assertGreater(seen, 4)

    def test_how_lines_are_compared(self):
        self.assertTrue(same("visit number 3", "visit number 17"))
        self.assertFalse(same("visit number 3", "visit number many"))
        self.assertFalse(same("two readers", "three readers"))
        self.assertTrue(same("… leads", "alice leads"))
        self.assertFalse(same("… leads", "leads"))
        self.assertTrue(matches(["a", "...", "c"], ["a", "b", "b", "c"]))
        self.assertFalse(matches(["a", "..."], ["b"]))
        self.assertFalse(matches(["a"], ["a", "b"]))
        self.assertTrue(some_match(["a", "b", "c"], ["b", "a", "c"]))
        self.assertFalse(some_match(["a", "b", "c"], ["a", "d", "c"]))
        self.assertFalse(some_match(["a"], []))


if __name__ == "__main__":
    if not SERVERS:
        print("SKIPPED: no ZKASIO_TEST_SERVERS")
        sys.exit(77)
    unittest.main(verbosity=2)
