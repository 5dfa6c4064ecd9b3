#!/usr/bin/python3
"""What scripts/docs notices: each mistake is made in a copy of the pages, and has to be an error."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class Pages(unittest.TestCase):
    """scripts/docs/pages.py, in a copy of what it reads."""

    @classmethod
    def setUpClass(cls):
        cls.work = Path(tempfile.mkdtemp(prefix="zkasio-docs-"))
        cls.copy = cls.work / "zkasio"
        cls.copy.mkdir()
        for name in ("docs", "examples", "lib", "scripts", "tests"):
            shutil.copytree(ROOT / name, cls.copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        for page in ROOT.glob("*.md"):
            shutil.copy(page, cls.copy)
        shutil.copy(ROOT / "CMakeLists.txt", cls.copy)
        doxyfile = (cls.copy / "docs/Doxyfile").read_text() + (
            f"\nOUTPUT_DIRECTORY = {cls.work}\nGENERATE_HTML = YES\nGENERATE_TAGFILE = {cls.work}/api.tags\n")
        subprocess.run(["doxygen", "-"], input=doxyfile, text=True, cwd=cls.copy, check=True, capture_output=True)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.work)

    def errors(self):
        out = Path(tempfile.mkdtemp(dir=self.work)) / "out"
        done = subprocess.run([sys.executable, self.copy / "scripts/docs/pages.py", self.work / "api.tags", out],
                              text=True, capture_output=True, check=False,
                              env={"PATH": ""})  # it needs no other program: no git, in an unpacked archive
        self.assertEqual(done.returncode != 0, bool(done.stderr), done.stderr)
        return done.stderr

    def test_nothing_is_wrong(self):
        self.assertEqual(self.errors(), "")

    def test_mistakes(self):
        mistakes = [  # the page, a line that it gets, and what is said about that
            ("docs/locks.md", "[examples/locks.cpp: no-such](../examples/locks.cpp)\n```cpp\nint x;\n```",
             "examples/locks.cpp has no section [no-such]"),
            ("docs/locks.md", "[examples/no_such.cpp: any](../examples/no_such.cpp)",
             "there is no examples/no_such.cpp"),
            ("docs/locks.md", "[examples/locks.cpp: permits](../examples/locks.cpp)\n```cpp\nint x;\n```",
             "not the code of examples/locks.cpp: permits"),
            ("docs/locks.md", "[examples/locks.cpp: flag](../examples/locks.cpp)",
             "not the code of examples/locks.cpp: flag"),
            ("docs/locks.md", "[examples/locks.cpp: several](../examples/flags.cpp)",
             "the link leads to ../examples/flags.cpp, which is not examples/locks.cpp"),
            ("docs/locks.md", "```cpp\nint x;\n```", "code without a line in front"),
            ("docs/locks.md", "see [it](../examples/nothing.cpp)", "there is no examples/nothing.cpp"),
            ("docs/recipes.md", "[mutex](../lib/zkasio/locks/mutx.hpp)",
             "no documented header lib/zkasio/locks/mutx.hpp"),
            ("docs/recipes.md", "it is in `zkasio/locks/mutx.hpp`", "there is no header zkasio/locks/mutx.hpp"),
            ("docs/architecture.md", "in `detail/client/cores.cpp`", "there is no file detail/client/cores.cpp"),
            ("README.md", "[it](docs/nothing.md)", "there is no docs/nothing.md"),
            ("README.md", "[it](docs/locks.md#nothing)", "docs/locks.md has no heading #nothing"),
            ("lib/zkasio/acl.hpp", "// see docs/nowhere.md", "lib/zkasio/acl.hpp: there is no docs/nowhere.md"),
            ("docs/forgotten.md", "# Forgotten", "docs/forgotten.md: is not in the navigation"),
            ("docs/cost.md", "| what | kept by |\n|---|---|\n| a lock | no such test |",
             '0 tests begin with "no such test"'),
        ]
        before = {self.copy / page: None for page, _, _ in mistakes}
        try:
            for file in before:
                before[file] = file.read_text(encoding="utf-8") if file.exists() else None
            for page, line, _ in mistakes:
                with (self.copy / page).open("a", encoding="utf-8") as file:
                    file.write(f"\n{line}\n")
            said = self.errors().splitlines()
            for page, _, text in mistakes:
                self.assertEqual(len([s for s in said if s.startswith(page) and text in s]), 1, (page, text, said))
            self.assertEqual(len(said), len(mistakes), said)
        finally:
            for file, text in before.items():
                file.write_text(text, encoding="utf-8") if text is not None else file.unlink()

    def test_a_header_that_the_reference_does_not_name(self):
        page = self.copy / "docs/reference.md"
        before = page.read_text(encoding="utf-8")
        try:
            page.write_text(before.replace("`zkasio/back_off.hpp`", "pauses").replace(", `watch.hpp`", ""),
                            encoding="utf-8")
            self.assertEqual(self.errors(), "docs/reference.md: does not name zkasio/back_off.hpp\n"
                                            "docs/reference.md: does not name zkasio/watch.hpp\n")
        finally:
            page.write_text(before, encoding="utf-8")

    def test_tabs(self):
        """Snippets side by side become tabs; one alone does not."""
        self.assertEqual(self.errors(), "")
        site = max(self.work.glob("*/out"), key=os.path.getmtime) / "pages"
        tabs = (site / "coming-from.md").read_text(encoding="utf-8")
        self.assertTrue(re.search(r'=== "zkasio"\n\n    ```cpp\n[^`]+    ```\n\n'
                                  r'    \[examples/guide/coming_from.cpp\]\(source/[^)]+#L-\d+\)\{ .source \}\n\n'
                                  r'=== "Curator"\n\n    ```java\n', tabs))
        self.assertTrue('=== "kazoo"' in tabs)
        self.assertFalse("===" in (site / "locks.md").read_text(encoding="utf-8"))

    def test_code_is_copied(self):
        page, locks = self.copy / "docs/locks.md", self.copy / "examples/locks.cpp"
        before, changed = page.read_text(encoding="utf-8"), locks.read_text(encoding="utf-8")
        command = [sys.executable, "-B", self.copy / "scripts/docs/snippets.py"]
        try:
            locks.write_text(changed.replace("// [permits]\n", "// [permits]\n// new\n"), encoding="utf-8")
            page.write_text(before + "\n[examples/locks.cpp: flag](../examples/locks.cpp)\n", encoding="utf-8")
            check = subprocess.run([*command, "--check"], text=True, capture_output=True, check=False)
            self.assertEqual(check.returncode, 1)
            self.assertEqual(len(check.stderr.splitlines()), 2, check.stderr)  # one differs, and one is missing
            copied = subprocess.run(command, text=True, capture_output=True, check=False)
            self.assertEqual((copied.returncode, copied.stdout), (0, "docs/locks.md: code copied\n"), copied.stderr)
            self.assertTrue("\n// new\n" in page.read_text(encoding="utf-8"))
            self.assertEqual(subprocess.run([*command, "--check"], check=False).returncode, 0)
        finally:
            page.write_text(before, encoding="utf-8")
            locks.write_text(changed, encoding="utf-8")

    def test_a_contract_that_doxygen_does_not_understand(self):
        header = self.copy / "lib/zkasio/acl.hpp"
        before = header.read_text(encoding="utf-8")
        try:
            header.write_text(before + "\nnamespace zkasio {\n/// @param nothing there is no such thing\n"
                              "void f(int something);\n}\n", encoding="utf-8")
            doxyfile = (self.copy / "docs/Doxyfile").read_text() + f"\nOUTPUT_DIRECTORY = {self.work}/again\n"
            done = subprocess.run(["doxygen", "-"], input=doxyfile, text=True, cwd=self.copy, check=False,
                                  capture_output=True)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("nothing", done.stderr)
        finally:
            header.write_text(before, encoding="utf-8")


class Links(unittest.TestCase):
    """scripts/docs/check_links.py"""

    def broken(self, **pages):
        with tempfile.TemporaryDirectory(prefix="zkasio-links-") as site:
            for name, body in pages.items():
                Path(site, name + ".html").write_text(f"<html><body>{body}</body></html>", encoding="utf-8")
            done = subprocess.run([sys.executable, ROOT / "scripts/docs/check_links.py", site], text=True,
                                  capture_output=True, check=False)
            self.assertEqual(done.returncode != 0, bool(done.stderr), done.stderr)
            return done.stderr

    def test_links_that_are_whole(self):
        self.assertEqual(self.broken(a='<a href="b.html#there">b</a> <a href="https://example.com/x#y">e</a>',
                                     b='<h2 id="there"><a href="#there">x</a></h2>'), "")

    def test_links_that_are_broken(self):
        self.assertIn("a.html: c.html leads nowhere", self.broken(a='<a href="c.html">c</a>'))
        self.assertIn("there is no such place in b.html", self.broken(a='<a href="b.html#x">b</a>', b="<p>b</p>"))
        self.assertIn("a.html: no.png leads nowhere", self.broken(a='<img src="no.png">'))

    def test_what_comes_from_the_network(self):
        self.assertIn("would be loaded from the network",
                      self.broken(a='<script src="https://example.com/x.js"></script>'))


if __name__ == "__main__":
    os.environ.pop("PYTHONPATH", None)
    unittest.main()
