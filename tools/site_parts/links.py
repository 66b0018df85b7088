"""Whether every link of a built site leads somewhere in it: to a file, and to a place there."""

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The links of a page, and the names that links may lead to."""

    def __init__(self, text):
        super().__init__()
        self.links, self.names = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.names |= {found[key] for key in ("id", "name") if found.get(key)}
        self.links += [found[key] for key in ("href", "src") if found.get(key)]


def broken_links(site):
    """(page, link, why) of each link that leads nowhere, or to the web where the site needs it."""
    site = Path(site).resolve()
    pages = {path: Page(path.read_text()) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        if path.name == "404.html":
            continue  # its links begin at the root of a server
        for link in page.links:
            why = fault_of(path, link, pages)
            if why:
                yield str(path.relative_to(site)), link, why


def fault_of(path, link, pages):
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return ""
    there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if there.is_dir():
        there /= "index.html"
    if not there.is_file():
        return "no such file"
    name = unquote(parts.fragment)
    if name and there in pages and name not in pages[there].names:
        return "no such place in it"
    return ""
