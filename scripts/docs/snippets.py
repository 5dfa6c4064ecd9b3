#!/usr/bin/python3
"""Copies code into the pages: snippets.py [--check]. With --check it only tells where a page differs.

README.md, the pages in docs/ and the READMEs of the examples contain the code that they show, so that it can be read
where the Markdown is read. A line in front of each piece of code names the file and the section that it was copied from:

    [examples/locks.cpp: permits](../examples/locks.cpp)
    ```cpp
    zkasio::semaphore pool(zk, "/tour/pool", zkasio::permits::fixed(3));
    ```

The section stands in that file between the lines "// [permits]" and "// [/permits]"; in Python and CMake these are
"# [...]". To add code to a page, write the line in front, and run this script.
"""

import functools
import re
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LANGUAGES = {".cpp": "cpp", ".hpp": "cpp", ".py": "python", ".java": "java", ".txt": "cmake"}
SOURCE = re.compile(r"^\[(?P<file>[^\]:]+): (?P<section>[\w-]+)\]\((?P<link>[^)]+)\)$")
FENCE = re.compile(r"^ *```(?P<language>[\w+]*)")
COMPILED = ("cpp", "c++", "java", "python")


@functools.cache
def pages_of_the_site():
    """The pages in docs/, and the READMEs of the examples."""
    return sorted([*(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("README.md")])


class Snippet:
    """Code in a page, and the line in front of it: together lines[begin:end] of the page."""

    def __init__(self, lines, begin):
        source = SOURCE.match(lines[begin])
        self.file, self.section, self.link = source["file"], source["section"], source["link"]
        self.begin, self.end = begin, begin + 1
        self.fence = "```" + LANGUAGES.get(Path(self.file).suffix, "text")
        self.code = None  # there is no code behind the line in front
        if self.end < len(lines) and lines[self.end] == self.fence:
            self.end = end_of_fence(lines, self.end)
            self.code = "\n".join(lines[begin + 2:self.end - 1])

    def fenced(self, code):
        return [self.fence, *code.split("\n"), "```"]


def end_of_fence(lines, begin):
    """The number of the line behind the fenced code that begins at a line."""
    for number in range(begin + 1, len(lines)):
        if lines[number].strip() == "```":
            return number + 1
    return len(lines)


def snippets(lines):
    """All snippets of a page."""
    number = 0
    while number < len(lines):
        if SOURCE.match(lines[number]):
            snippet = Snippet(lines, number)
            yield snippet
            number = snippet.end
        else:
            number = end_of_fence(lines, number) if FENCE.match(lines[number]) else number + 1


def section(file, name):
    """(code, number of its first line). Raises ValueError where the project has no such section."""
    path = ROOT / file
    if not path.is_file():
        raise ValueError(f"there is no {file}")
    lines = path.read_text(encoding="utf-8").split("\n")
    bare = [line.strip() for line in lines]
    for comment in ("//", "#"):
        begin, end = f"{comment} [{name}]", f"{comment} [/{name}]"
        if bare.count(begin) == 1 and bare.count(end) == 1:
            first = bare.index(begin) + 1
            return textwrap.dedent("\n".join(lines[first:bare.index(end)])).rstrip("\n"), first + 1
    raise ValueError(f"{file} has no section [{name}], or several")


def mistakes(page, lines):
    """(number of the line, mistake) for all code of a page."""
    inside = set()
    for snippet in snippets(lines):
        inside.update(range(snippet.begin, snippet.end))
        try:
            expected, _ = section(snippet.file, snippet.section)
            if (page.parent / snippet.link).resolve() != ROOT / snippet.file:
                yield snippet.begin + 1, f"the link leads to {snippet.link}, which is not {snippet.file}"
            elif snippet.code != expected:
                yield snippet.begin + 1, f"not the code of {snippet.file}: {snippet.section} (scripts/docs.sh --code)"
        except ValueError as error:
            yield snippet.begin + 1, str(error)
    for number, line in enumerate(lines):
        fence = FENCE.match(line)
        if number not in inside and fence and fence["language"] in COMPILED:
            yield number + 1, "code without a line in front that names its file, see scripts/docs/snippets.py"


def with_copied_code(lines):
    """The lines of a page, with the code as it is in the files."""
    copied, done = [], 0
    for snippet in snippets(lines):
        copied += lines[done:snippet.begin + 1] + snippet.fenced(section(snippet.file, snippet.section)[0])
        done = snippet.end
    return copied + lines[done:]


def main(arguments):
    if arguments not in ([], ["--check"]):
        sys.exit(__doc__)
    failed = False
    for page in [ROOT / "README.md", *pages_of_the_site()]:
        before = page.read_text(encoding="utf-8")
        lines = before.split("\n")
        if not arguments:
            try:
                lines = with_copied_code(lines)
            except ValueError:
                pass  # is reported below
            if "\n".join(lines) != before:
                page.write_text("\n".join(lines), encoding="utf-8")
                print(f"{page.relative_to(ROOT)}: code copied")
        for number, mistake in mistakes(page, lines):
            failed = True
            print(f"{page.relative_to(ROOT)}:{number}: {mistake}", file=sys.stderr)
    sys.exit(failed)


if __name__ == "__main__":
    main(sys.argv[1:])
