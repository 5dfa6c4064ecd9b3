#!/usr/bin/python3
"""What scripts/docs notices: each mistake is made in a copy of the pages, and has to be an error."""

import os
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
                              text=True, capture_output=True, check=False)
        self.assertEqual(done.returncode != 0, bool(done.stderr), done.stderr)
        return done.stderr

    def with_line(self, page, line):
        """The errors when `page` has one more line."""
        file = self.copy / page
        before = file.read_text(encoding="utf-8")
        try:
            file.write_text(f"{before}\n{line}\n", encoding="utf-8")
            return self.errors()
        finally:
            file.write_text(before, encoding="utf-8")

    def test_nothing_is_wrong(self):
        self.assertEqual(self.errors(), "")

    def test_a_snippet_that_is_not_there(self):
        line = "[examples/locks.cpp: no-such](../examples/locks.cpp)"
        self.assertIn("has no snippet [no-such]", self.with_line("docs/locks.md", line))
        line = "[examples/no_such.cpp: any](../examples/no_such.cpp)"
        self.assertIn("there is no examples/no_such.cpp", self.with_line("docs/locks.md", line))

    def test_code_that_nobody_compiles(self):
        self.assertIn("not of a compiled file", self.with_line("docs/locks.md", "```cpp\nint x;\n```"))

    def test_a_header_that_is_not_there(self):
        self.assertIn("no documented header lib/zkasio/locks/mutx.hpp",
                      self.with_line("docs/recipes.md", "[mutex](../lib/zkasio/locks/mutx.hpp)"))
        self.assertIn("there is no header zkasio/locks/mutx.hpp",
                      self.with_line("docs/recipes.md", "it is in `zkasio/locks/mutx.hpp`"))

    def test_a_file_that_is_not_there(self):
        self.assertIn("there is no examples/nothing.cpp",
                      self.with_line("docs/locks.md", "see [it](../examples/nothing.cpp)"))

    def test_the_readme(self):
        self.assertIn("there is no docs/nothing.md", self.with_line("README.md", "[it](docs/nothing.md)"))
        self.assertIn("docs/locks.md has no heading #nothing",
                      self.with_line("README.md", "[it](docs/locks.md#nothing)"))

    def test_a_page_that_a_source_names(self):
        self.assertIn("lib/zkasio/acl.hpp: there is no docs/nothing.md",
                      self.with_line("lib/zkasio/acl.hpp", "// see docs/nothing." + "md"))

    def test_a_page_outside_of_the_navigation(self):
        page = self.copy / "docs/forgotten.md"
        page.write_text("# Forgotten\n", encoding="utf-8")
        try:
            self.assertIn("docs/forgotten.md: is not in the navigation", self.errors())
        finally:
            page.unlink()

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
