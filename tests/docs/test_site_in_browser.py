"""The built site in a real browser, as `lastbit docs` serves it; skips where it is not built."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from threading import Thread
from typing import Any

import pytest

from docs.conf import ROOT
from lastbit.cli.docs import Server, Site
from tests.evidence import Extent

playwright = pytest.importorskip(
    "playwright.sync_api", reason="no browser's driver here: make serve-tests"
)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
if CHROMIUM is None:
    pytest.skip("no chromium here; on Debian: apt install chromium", allow_module_level=True)
BUILT = ROOT / "build" / "site"
if not (BUILT / "docs" / "index.html").is_file():
    pytest.skip("the site has not been built: make site", allow_module_level=True)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(Site(BUILT)) as one:
        Thread(target=one.serve_forever, args=(0.01,), daemon=True).start()
        yield one
        one.shutdown()


@pytest.fixture(scope="module")
def phone(server: Server) -> Iterator[Any]:
    """A page of a phone, which collects what goes wrong."""
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 390, "height": 844}, color_scheme="dark")
        page.wrong = []
        page.on("console", lambda said: page.wrong.append(said.text))
        page.on("pageerror", lambda error: page.wrong.append(str(error)))
        page.on("request", lambda one: _elsewhere(page, one.url, server.address))
        yield page
        browser.close()


def _elsewhere(page: Any, url: str, address: str) -> None:
    if not url.startswith((address, "data:")):
        page.wrong.append(f"asked for {url}")


def _wider(page: Any) -> bool:
    """Whether the text must be moved sideways; it has a box of its own."""
    return bool(page.evaluate("document.querySelector('.content').scrollWidth > innerWidth"))


def test_every_page_fits_a_phone_and_stays_at_home(
    server: Server, phone: Any, extent: Extent
) -> None:
    """No page is wider than its window, says anything in the console, or asks another server."""
    wide = []
    pages = [path for path in Site(BUILT).pages if path != "/index.html"]  # which only leads on
    for path in extent.cases(pages, one_in=10):
        phone.goto(server.address + path, wait_until="domcontentloaded")
        if _wider(phone):
            wide.append(path)
    assert wide == []
    assert phone.wrong == []


def test_search_finds_a_page(server: Server, phone: Any) -> None:
    phone.goto(server.address + Site(BUILT).page("threat model"))
    phone.get_by_role("link", name="Threat model").first.wait_for()
    assert phone.wrong == []


def test_a_page_that_does_not_is_seen(server: Server, phone: Any) -> None:
    phone.goto(server.address + "/docs/index.html")
    assert not _wider(phone)
    phone.evaluate("document.querySelector('article h1').style.width = '500px'")
    assert _wider(phone)
    phone.evaluate("fetch('//stats.example.org/').catch(() => null)")
    refused = phone.wrong.pop()
    assert "Content Security Policy" in refused
    phone.wrong.clear()
