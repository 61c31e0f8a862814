"""Checks the built site: every link leads somewhere, nothing is loaded from elsewhere.

python docs/check_site.py      the site of this checkout, or that of the installed package
"""

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from urllib.parse import unquote, urljoin, urlsplit

from lastbit.cli.docs import Site, site_folder

STYLE = re.compile(r"""url\(\s*["']?(?P<url>[^"')]+)|@import\s+["'](?P<imported>[^"']+)""")


def loaded_by_style(text: str) -> list[str]:
    """What a style sheet loads."""
    return [match["url"] or match["imported"] for match in STYLE.finditer(text)]


class Page(HTMLParser):
    """What a page loads, where it links to, and the places in it that can be linked to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: set[str] = set()
        self.links: set[str] = set()
        self.places: set[str] = {""}
        self._styling = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._styling = tag == "style"
        for name, value in attrs:
            match name:
                case "id" | "name":
                    self.places.add(value or "")
                case "href" if tag in {"a", "area"}:
                    self.links.add(value or "")
                case "href" | "xlink:href" | "src" | "data" | "poster" | "background":
                    self.loads.add(value or "")
                case "srcset":
                    self.loads |= {part.split()[0] for part in (value or "").split(",")}
                case "style":
                    self.loads |= {*loaded_by_style(value or "")}

    def handle_data(self, data: str) -> None:
        if self._styling:
            self.loads |= {*loaded_by_style(data)}

    def handle_endtag(self, tag: str) -> None:
        self._styling = False


def problems(site: Site) -> Iterator[str]:
    """What a page loads from elsewhere, and links of its own that lead nowhere."""
    pages = {path: Page(site.files[path].read_text("utf-8")) for path in site.pages}

    def leads(path: str, target: str) -> bool:
        """Whether it leads to a file of the site, and to a place in it if it names one."""
        parts = urlsplit(target)
        if parts.scheme or parts.netloc:
            return False
        file = unquote(urlsplit(urljoin(path, target)).path)
        if not parts.fragment or file not in pages:
            return file in site.files
        return unquote(parts.fragment) in pages[file].places

    for path, page in pages.items():
        for target in page.loads:
            if not target.startswith("data:") and not leads(path, target):
                yield f"{path} loads {target}"
        for target in page.links:
            if not urlsplit(target).scheme and not leads(path, target):
                yield f"{path} links to {target}"
    for path, file in site.files.items():
        if path.endswith(".css"):
            for target in loaded_by_style(file.read_text("utf-8")):
                if not target.startswith("data:") and not leads(path, target):
                    yield f"{path} loads {target}"


def main() -> None:
    """Print what is wrong, and end with 1; or how many pages hold."""
    folder = site_folder()
    if folder is None:
        sys.exit("The site has not been built; run make site")
    site = Site(folder)
    wrong = sorted(problems(site))
    print(*wrong, sep="\n", end="\n" if wrong else "")
    if wrong:
        sys.exit("The site has problems; run make site again")
    print(f"{len(site.pages)} pages hold")


if __name__ == "__main__":
    main()
