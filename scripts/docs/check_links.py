"""Every link within a site leads somewhere: check_links.py SITE. Links to elsewhere are not followed."""

import sys
import urllib.parse
from html.parser import HTMLParser
from pathlib import Path

ELSEWHERE = ("http", "https", "mailto", "data", "javascript")
# Places that need not be there: of Material without JavaScript, and of Doxygen for classes whose only nested ones are
# private.
OPTIONAL = ("__skip", "nested-classes")
# From the network, at the moment at which a page is opened, comes nothing.
LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "srcset"}


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.anchors, self.links, self.loaded = set(), set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.anchors.update(attrs[a] for a in ("id", "name") if attrs.get(a))
        target = attrs.get(LOADED.get(tag, ""))
        if target and not (tag == "link" and attrs.get("rel") == "canonical"):
            self.loaded.add(target)
            self.links.add(target)
        if tag in ("a", "area") and attrs.get("href"):
            self.links.add(attrs["href"])


def wrong(site, file, page, pages):
    for link in sorted(page.links):
        url = urllib.parse.urlsplit(link)
        if url.scheme in ELSEWHERE or url.netloc:
            if link in page.loaded and url.scheme not in ("data", "javascript"):
                yield f"{link} would be loaded from the network"
            continue
        if not url.path and not url.fragment:
            continue
        target = (file.parent / urllib.parse.unquote(url.path)).resolve() if url.path else file
        if target.is_dir():
            target /= "index.html"
        if not target.is_file() or not target.is_relative_to(site):
            yield f"{link} leads nowhere"
        elif url.fragment and target in pages:
            if urllib.parse.unquote(url.fragment) not in pages[target].anchors \
                    and url.fragment not in OPTIONAL:
                yield f"{link}: there is no such place in {target.relative_to(site)}"


def main(site):
    site = Path(site).resolve()
    pages = {f: Page(f.read_text(encoding="utf-8")) for f in site.rglob("*.html") if f.name != "404.html"}
    count = 0
    for file, page in sorted(pages.items()):
        for text in wrong(site, file, page, pages):
            count += 1
            print(f"{file.relative_to(site)}: {text}", file=sys.stderr)
    links = sum(len(p.links) for p in pages.values())
    print(f"{len(pages)} pages, {links} links, {count} of them broken")
    sys.exit(1 if count or not links else 0)


if __name__ == "__main__":
    main(sys.argv[1])
