"""Makes what mkdocs reads of the pages in docs/ and the READMEs of the examples: pages.py API_TAGS OUT.

Pages contain their code: snippets.py compares it with the files. Snippets with nothing but empty lines between them are
shown side by side, as tabs: zkasio, Curator, kazoo. Links to public headers become links into the API reference, links
to other files of the project links to a page with that file. On the site a page of docs/ has its path without "docs/",
and a README of the examples its whole path.

An error is a link to a file or heading that does not exist, the name of a source or header that does not exist, code
that differs from its file, a page that the navigation has forgotten, and a law of cost without a test.
"""

import html
import os
import re
import shutil
import sys
import textwrap
import xml.etree.ElementTree
from pathlib import Path

import pygments
import pygments.formatters
import pygments.lexers

import snippets

ROOT = snippets.ROOT
DOCS = ROOT / "docs"
LINK = re.compile(r"(?P<before>\]\(|src=\")(?![a-z]+:|#)(?P<path>[^)#\"]+)(?P<anchor>#[^)\"]*)?(?P<after>[)\"])")
HEADER = re.compile(r"(?<!\[)`(zkasio/[\w/]+\.hpp)`")
NAMED_SOURCE = re.compile(r"`(?!zkasio/)([\w/]+\.[ch]pp)`")
TABS = {".cpp": "zkasio", ".java": "Curator", ".py": "kazoo"}

errors = []


def error(where, text):
    errors.append(f"{where}: {text}")


class Sources:
    """Pages with files of the project; made for those that are linked to."""

    def __init__(self, out):
        self.out, self.known = out, {}
        self.all = [f"/{path.relative_to(ROOT)}" for room in ("lib", "examples", "tests", "scripts")
                    for path in (ROOT / room).rglob("*.[ch]pp")]

    def link(self, path):
        """The page of a file or directory, seen from the pages of the site; None where there is no such thing."""
        path = path.rstrip("/")
        file = ROOT / path
        if not file.exists():
            return None
        if path not in self.known:
            self.known[path] = f"source/{path}/index.html" if file.is_dir() else f"source/{path}.html"
            self.make(path, file)
        return self.known[path]

    def make(self, path, file):
        up = "../" * (path.count("/") + 1 + file.is_dir())
        if file.is_dir():
            below = sorted(p for p in file.iterdir() if p.is_file() and not p.name.startswith("."))
            for p in below:
                self.link(str(p.relative_to(ROOT)))
            body = "<ul>" + "".join(f'<li><a href="{p.name}.html">{html.escape(p.name)}</a></li>' for p in below)
            body += "</ul>"
        else:
            text = file.read_text(encoding="utf-8")
            try:
                lexer = pygments.lexers.get_lexer_for_filename(file.name, text, stripnl=False)
            except pygments.util.ClassNotFound:
                lexer = pygments.lexers.get_lexer_by_name("text")
            body = pygments.highlight(text, lexer, pygments.formatters.HtmlFormatter(lineanchors="L", nowrap=False))
        target = self.out / self.known[path]
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(
            f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(path)}</title>'
            f'<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="{up}source.css"></head>'
            f'<body><p><a href="{up}index.html">zkasio</a> / {html.escape(path)}</p>{body}</body></html>\n',
            encoding="utf-8")


def source_style():
    style = pygments.formatters.HtmlFormatter(style="default").get_style_defs(".highlight")
    dark = pygments.formatters.HtmlFormatter(style="monokai").get_style_defs(".highlight")
    return ("body { font: 15px/1.4 system-ui, sans-serif; margin: 1em auto; max-width: 125ch; padding: 0 1em; }\n"
            "pre { overflow-x: auto; font: 13px/1.4 ui-monospace, monospace; }\n"
            f"{style}\n.highlight {{ background: none; }}\n@media (prefers-color-scheme: dark) {{\n"
            "body { background: #1e2129; color: #ddd; } a { color: #80cbc4; }\n"
            f"{dark}\n.highlight {{ background: none; }}\n}}\n")


def api_pages(tags):
    """Of each public header, the page of the API reference: that of its class, where it has a single one."""
    pages, classes = {}, {}
    compounds = list(xml.etree.ElementTree.parse(tags).getroot().iter("compound"))
    for compound in compounds:
        if compound.get("kind") in ("class", "struct"):
            classes[compound.findtext("name")] = "api/" + compound.findtext("filename")
    for compound in compounds:
        if compound.get("kind") == "file" and compound.findtext("name").endswith(".hpp"):
            header = str(Path(compound.findtext("path", "")).relative_to(ROOT / "lib") / compound.findtext("name"))
            filename = compound.findtext("filename")
            if not filename.endswith(".html"):  # doxygen leaves it out of those
                filename += ".html"
            pages[header] = classes.get("zkasio::" + Path(header).stem, "api/" + filename)
    return pages


def on_site(path):
    """Where a page, or another file of docs/, is on the site. The path is that in the project."""
    return path.removeprefix("docs/")


def staged(page, sources, headers):
    """The text of a page, for mkdocs."""
    lines = page.read_text(encoding="utf-8").split("\n")
    for number, mistake in snippets.mistakes(page, lines):
        error(f"{page.relative_to(ROOT)}:{number}", mistake)
    out, done = [], 0
    for group in side_by_side(lines):
        out += prose(page, lines, done, group[0].begin, sources, headers)
        for snippet in group:
            shown = with_source(page, snippet, sources)
            if len(group) > 1:
                shown = f'=== "{TABS[Path(snippet.file).suffix]}"\n\n' + textwrap.indent(shown, "    ")
            out += [shown, ""]
        done = group[-1].end
    return "\n".join(out + prose(page, lines, done, len(lines), sources, headers))


def side_by_side(lines):
    """The snippets of a page; those without text between them in one group."""
    groups, end = [], 0
    for snippet in snippets.snippets(lines):
        if groups and not "".join(lines[end:snippet.begin]).strip():
            groups[-1].append(snippet)
        else:
            groups.append([snippet])
        end = snippet.end
    return groups


def prose(page, lines, begin, end, sources, headers):
    return [to_site(page, number, lines[number], sources, headers) for number in range(begin, end)]


def seen_from(page, target):
    """A target, which is a path on the site, as a link from a page."""
    return os.path.relpath(target, os.path.dirname(on_site(str(page.relative_to(ROOT)))) or ".")


def to_site(page, number, line, sources, headers):
    """A line whose links lead to where things are in the site. A header that is only named becomes one."""
    where = f"{page.relative_to(ROOT)}:{number + 1}"

    def link(found):
        path = os.path.relpath((page.parent / found["path"]).resolve(), ROOT)
        public = re.fullmatch(r"lib/(zkasio/(?!.*detail/).+\.hpp)", path)
        if path.startswith("docs/") or ROOT / path in snippets.pages_of_the_site():
            target = on_site(path)
        else:
            target = headers.get(public[1]) if public else sources.link(path)
        if target is None:
            error(where, f"there is no {path}" if not public else f"no documented header {path}")
            return found[0]
        return f"{found['before']}{seen_from(page, target)}{found['anchor'] or ''}{found['after']}"

    def named(found):
        header = found[1]
        if not (ROOT / "lib" / header).is_file():
            error(where, f"there is no header {header}")
        return f"[`{header}`]({seen_from(page, headers[header])})" if header in headers else found[0]

    for source in NAMED_SOURCE.findall(line):
        if not any(path.endswith("/" + source) for path in sources.all):
            error(where, f"there is no file {source}")
    return HEADER.sub(named, LINK.sub(link, line))


def with_source(page, snippet, sources):
    """The code of a snippet, and below it a link to its place in the file."""
    try:
        _, first = snippets.section(snippet.file, snippet.section)
    except ValueError:
        return ""  # is one of the mistakes
    source = f"[{snippet.file}]({seen_from(page, sources.link(snippet.file))}#L-{first}){{ .source }}"
    return "\n".join([*snippet.fenced(snippet.code or ""), "", source])


def slug(heading):
    """As Python-Markdown, and GitHub, name the anchor of a heading."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", text).strip().lower())


def without_code(lines):
    """The lines of a page; those of fenced code are empty."""
    inside = False
    for line in lines:
        fence = line.lstrip().startswith("```")
        yield "" if inside or fence else line
        inside ^= fence


def check_reference():
    """The page of the reference names each public header."""
    named, room = set(), ""
    for path in re.findall(r"`([\w/]+\.hpp)`", (DOCS / "reference.md").read_text(encoding="utf-8")):
        if path.startswith("zkasio/"):
            room = path.rpartition("/")[0]
        named.add(path if path.startswith("zkasio/") else f"{room}/{path}")
    for header in sorted((ROOT / "lib/zkasio").rglob("*.hpp")):
        path = str(header.relative_to(ROOT / "lib"))
        if "/detail/" not in path and path not in named:
            error("docs/reference.md", f"does not name {path}")


def check_laws():
    """Each row of a table of docs/cost.md with the column "kept by" begins the name of one test, and each test of a
    cost has a row."""
    tests = {}
    for file in (ROOT / "tests").rglob("*_test.cpp"):
        for name, tags in re.findall(r'TEST_CASE\(\s*"([^"]+)",\s*"([^"]*)"', file.read_text(encoding="utf-8")):
            tests[name] = tags
    rows, inside = [], False
    for number, line in enumerate((DOCS / "cost.md").read_text(encoding="utf-8").split("\n"), 1):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|"):
            inside = False
        elif cells[-1] == "kept by":
            inside = True
        elif inside and not set(line) <= set("|-"):
            rows.append(cells[-1])
            found = [name for name in tests if cells[-1] and name.startswith(cells[-1])]
            if len(found) != 1:
                error(f"docs/cost.md:{number}", f"{len(found)} tests begin with \"{cells[-1]}\"")
    for name, tags in tests.items():
        if re.match(r"cost of |work_queue, cost", name) and "[numbers]" in tags:
            if not any(row and name.startswith(row) for row in rows):
                error("docs/cost.md", f"has no row for the test \"{name}\"")


def check_links_of_the_project():
    """README and the like link to pages, headings and files; sources name pages."""
    for page in [*ROOT.glob("*.md"), *ROOT.glob("tests/**/*.md"), *ROOT.glob(".github/**/*.md")]:
        for number, line in enumerate(without_code(page.read_text(encoding="utf-8").split("\n")), 1):
            shown = re.sub(r"`[^`]*`", "", line)
            for target in re.findall(r"\]\(([^)]+)\)|(?:src|srcset|href)=\"([^\"]+)\"", shown):
                target = target[0] or target[1]
                if re.match(r"[a-z]+:", target):
                    continue
                path, _, anchor = target.partition("#")
                file = (page.parent / path) if path else page
                where = f"{page.relative_to(ROOT)}:{number}"
                if not file.exists():
                    error(where, f"there is no {path}")
                elif anchor and file.suffix == ".md":
                    headings = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
                    if anchor not in map(slug, headings):
                        error(where, f"{path} has no heading #{anchor}")
    for directory in ("lib", "examples", "tests", "scripts"):
        for file in (ROOT / directory).rglob("*"):
            ours = ROOT / "tests/docs" not in file.parents  # names pages that are not there, on purpose
            if ours and file.suffix in (".hpp", ".cpp", ".py", ".sh", ".txt") and file.is_file():
                for named in re.findall(r"(?:docs|examples)/[\w/-]+\.md", file.read_text(encoding="utf-8")):
                    if not (ROOT / named).exists():
                        error(file.relative_to(ROOT), f"there is no {named}")


def main(tags, out):
    pages = Path(out) / "pages"
    shutil.copytree(DOCS, pages, ignore=shutil.ignore_patterns("*.md", "mkdocs.yml", "Doxyfile", "api.*"))
    sources, headers = Sources(pages), api_pages(tags)
    navigation = (DOCS / "mkdocs.yml").read_text(encoding="utf-8")
    for page in snippets.pages_of_the_site():
        path = str(page.relative_to(ROOT))
        (pages / on_site(path)).parent.mkdir(parents=True, exist_ok=True)
        (pages / on_site(path)).write_text(staged(page, sources, headers), encoding="utf-8")
        if not re.search(rf"[ :]{re.escape(on_site(path))}$", navigation, re.MULTILINE):
            error(path, "is not in the navigation of docs/mkdocs.yml")
    (pages / "source.css").write_text(source_style(), encoding="utf-8")
    shutil.copyfile(DOCS / "mkdocs.yml", Path(out) / "mkdocs.yml")
    check_links_of_the_project()
    check_reference()
    check_laws()
    for mistake in errors:
        print(mistake, file=sys.stderr)
    sys.exit(1 if errors else 0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
