"""Another site's page in the browser of one who is signed in: what it tries, the browser does not
send, or the server does not do."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from lastbit.serve.identity import COOKIE
from tests.evidence import late
from tests.serve.serving import Serving, served

playwright = pytest.importorskip(
    "playwright.sync_api", reason="no browser's driver here: make serve-tests"
)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
if CHROMIUM is None:
    pytest.skip("no chromium here; on Debian: apt install chromium", allow_module_level=True)

TRIES = """async (address) => {
  const told = {};
  const form = new URLSearchParams({name: "eve", role: "steward"});
  for (const mode of ["no-cors", "cors"])
    for (const path of ["/users", "/sign-out", "/api/v1/users"])
      told[`${mode} POST ${path}`] = await fetch(address + path,
        {method: "POST", mode, credentials: "include", body: form})
        .then(found => found.type + (found.status || ""), () => "nothing");
  told["GET /audit"] = await fetch(address + "/audit", {credentials: "include"})
    .then(found => found.text(), () => "nothing");
  told["DELETE"] = await fetch(address + "/api/v1/users/ana",
    {method: "DELETE", credentials: "include"}).then(() => "something", () => "nothing");
  const frame = document.createElement("iframe");
  frame.src = address + "/me";
  document.body.append(frame);
  await new Promise(done => { frame.onload = done; setTimeout(done, 2000); });
  try { told.frame = frame.contentDocument.body.innerText; } catch { told.frame = "nothing"; }
  told.script = await new Promise(done => {
    const script = document.createElement("script");
    script.src = address + "/api/v1/openapi.json";
    script.onload = () => done("something");
    script.onerror = () => done("nothing");
    document.body.append(script);
  });
  return told;
}"""
FORM = """<form method="post" action="{address}{path}"><input name="name" value="eve">
<input name="role" value="steward"><button>Win a prize</button></form>"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        one = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield one
        one.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Serving]:
    with served(tmp_path) as running:
        yield running


@pytest.fixture(params=["localhost", "127.0.0.1"])
def other_site(request: pytest.FixtureRequest, server: Serving) -> Iterator[str]:
    """Pages of another site, or only of another port: to a browser then the same site, and the
    cookie is sent."""

    class Pages(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(FORM.format(address=server.address, path=self.path).encode())

        def log_message(self, *_: Any) -> None: ...

    pages = HTTPServer(("127.0.0.1", 0), Pages)
    thread = threading.Thread(target=pages.serve_forever, daemon=True)
    thread.start()
    yield f"http://{request.param}:{pages.server_port}"
    pages.shutdown()
    thread.join()
    pages.server_close()


@pytest.fixture
def signed_in(browser: Any, server: Serving) -> Iterator[Any]:
    """A browser in which the steward has signed in, as people do."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(server.address + server.gate.link_made("stella"))
    page.locator("main button").first.click()
    page.goto(f"{server.address}/me")
    assert "stella" in page.inner_text("body")
    (cookie,) = context.cookies()
    assert (cookie["name"], cookie["sameSite"], cookie["httpOnly"]) == (COOKIE, "Strict", True)
    assert page.evaluate("document.cookie") == ""
    yield page
    assert page.goto(f"{server.address}/me").status == 200  # still signed in
    context.close()


def test_scripts_of_another_site(signed_in: Any, server: Serving, other_site: str) -> None:
    before = server.digest()
    signed_in.goto(f"{other_site}/users")
    told = signed_in.evaluate(TRIES, server.address)
    reads = {name: seen for name, seen in told.items() if not name.startswith("no-cors")}
    assert set(reads.values()) == {"nothing"}, told
    assert {told[name] for name in told if name.startswith("no-cors")} <= {"opaque", "nothing"}
    assert server.digest() == before


@pytest.mark.parametrize("path", ["/users", late("/sign-out"), late("/sign-in")])
def test_a_form_of_another_site(
    signed_in: Any, server: Serving, other_site: str, path: str
) -> None:
    before = server.digest()
    signed_in.goto(other_site + path)
    with signed_in.expect_navigation() as sent:
        signed_in.locator("button").click()
    assert sent.value.status == 403
    assert "page of this server" in signed_in.inner_text("body")
    assert server.digest() == before
