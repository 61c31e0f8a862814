"""`lastbit docs`: the documentation, from the installed package, in a browser.

The site lies in the package (`make dist` puts it there) or, in a checkout, where `make site` wrote
it. Where there is none, the pages that it is made of are shown in the terminal. It is served on the
loopback address, by name only: a request is looked up among the files that were there at the start,
so no path leads out of the folder, and no folder is listed.
"""

from __future__ import annotations

import webbrowser
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import MappingProxyType
from urllib.parse import quote, unquote, urlsplit

import click

from lastbit import __version__
from lastbit.cli.options import command, flag, option, refusal
from lastbit.cli.output import Heading, show
from lastbit.cli.pages import show_page

INSTALLED = Path(__file__).parents[1] / "site"
WRITTEN = Path(__file__).parents[1] / "pages"
CHECKOUT = Path(__file__).parents[3]
FIRST = "/docs/index.html"
KINDS: Mapping[str, str] = MappingProxyType(
    {
        ".css": "text/css; charset=utf-8",
        ".html": "text/html; charset=utf-8",
        ".js": "text/javascript; charset=utf-8",
        ".png": "image/png",
        ".svg": "image/svg+xml",
    }
)
PLAIN = "text/plain; charset=utf-8"
# The theme switches colours before the page is painted, by a script and styles in the page itself.
POLICY = "default-src 'self' 'unsafe-inline'; img-src 'self' data:; base-uri 'none'"
HEADERS: Mapping[str, str] = MappingProxyType(
    {
        "Content-Security-Policy": POLICY,
        "Cache-Control": "max-age=60",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
    }
)


@command("docs verify --open")
@click.argument("words", nargs=-1, metavar="[PAGE]...")
@option("--port", "Where to listen; 0 takes a free one.", click.IntRange(0, 65535), default=0)
@flag("--open", "Open it in a browser.", dest="opening")
@flag("--terminal", "Show the page in the terminal.")
def docs(words: tuple[str, ...], port: int, opening: bool, terminal: bool) -> None:
    """Read the documentation in a browser, without a network.

    Serves the pages of this version on this machine only, until Ctrl-C, and prints the address.
    PAGE is a page (choosing, theory/laplace), or words to search for. With --terminal, and where
    no site was built, the page is shown here.
    """
    folder = site_folder()
    if terminal or folder is None:
        show_page(written_folder(), " ".join(words))
        return
    site = Site(folder)
    try:
        server = Server(site, port)
    except OSError as error:
        raise refusal("--port", f"cannot be used ({error.strerror})", "leave it out") from None
    address = server.address + site.page(" ".join(words))
    with server, suppress(KeyboardInterrupt):
        show(Heading(f"Documentation of lastbit {__version__}", "Ctrl-C ends it"))
        click.echo(f"\n  {address}\n")  # not folded: it is to be clicked
        if opening:
            # beside the server: some browsers take the terminal until they are closed
            Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        server.serve_forever()


def site_folder() -> Path | None:
    """Where the built site lies, in a checkout or in the installed package; None if nowhere."""
    folder = CHECKOUT / "build" / "site" if _is_checkout() else INSTALLED
    return folder if (folder / FIRST.lstrip("/")).is_file() else None


def written_folder() -> Path:
    """Where the pages lie as they were written, in a checkout or in the installed package."""
    return CHECKOUT / "docs" if _is_checkout() else WRITTEN


def _is_checkout() -> bool:
    return (CHECKOUT / "docs" / "conf.py").is_file()


# ---------------------------------------------------------------- the pages


class Site:
    """The files below a folder, each by the path that a browser asks for."""

    def __init__(self, folder: Path) -> None:
        found = (file for file in sorted(folder.rglob("*")) if file.is_file())
        self.files: Mapping[str, Path] = {f"/{f.relative_to(folder).as_posix()}": f for f in found}
        self.pages = [path for path in self.files if path.endswith(".html")]

    def page(self, words: str) -> str:
        """The page of that name, else a search for the words; the first page without any."""
        if not words:
            return FIRST
        ends = f"/{words.strip('/').removesuffix('.md').lower().replace(' ', '-')}.html"
        named = [path for path in self.pages if path.lower().endswith(ends)]
        # the shortest: `laplace` is docs/laplace.html rather than a page further down
        return min(named, key=len) if named else f"/search.html?q={quote(words)}"


# ---------------------------------------------------------------- the server


class Server(ThreadingHTTPServer):
    """The pages on the loopback address."""

    daemon_threads = True

    def __init__(self, site: Site, port: int = 0) -> None:
        self.files = site.files
        super().__init__(("127.0.0.1", port), _Request)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Request(BaseHTTPRequestHandler):
    server: Server
    server_version, sys_version = "lastbit", ""
    timeout = 30  # seconds that a client may keep a thread waiting

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def _answer(self, *, with_body: bool) -> None:
        port = self.server.server_port
        path = unquote(urlsplit(self.path).path)
        status, kind, body = HTTPStatus.NOT_FOUND, PLAIN, b"There is no such page.\n"
        if self.headers["Host"] not in {f"127.0.0.1:{port}", f"localhost:{port}"}:
            # a page of another name that points to this address
            status, body = HTTPStatus.MISDIRECTED_REQUEST, b"Use the address that was printed.\n"
        elif path in ("/", "/docs", "/docs/"):
            status = HTTPStatus.FOUND
        elif path in self.server.files:
            with suppress(OSError):  # removed since
                body = self.server.files[path].read_bytes()
                status, kind = HTTPStatus.OK, KINDS.get(Path(path).suffix, PLAIN)
        self.send_response(status)
        headers = {**HEADERS, "Content-Type": kind, "Content-Length": str(len(body))}
        if status is HTTPStatus.FOUND:
            headers["Location"] = FIRST
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if with_body:
            with suppress(OSError):  # the browser went away
                self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the terminal shows the address and stays quiet."""
