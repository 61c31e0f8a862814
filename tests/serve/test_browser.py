"""People at work, in a real browser: Debian's chromium, driven by Playwright.

Every page that is opened is photographed at 1280 and at 390 pixels (LASTBIT_SCREENSHOTS names a
folder that keeps them), is nowhere wider than the window, and breaks no rule of the server's
Content-Security-Policy.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import succeeded
from tests.evidence import late
from tests.serve.commands import Process, hospital, running

playwright = pytest.importorskip(
    "playwright.sync_api", reason="no browser's driver here: make serve-tests"
)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
if CHROMIUM is None:
    pytest.skip("no chromium here; on Debian: apt install chromium", allow_module_level=True)

WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
SQL = "SELECT region, COUNT(*) AS visits FROM visits GROUP BY region"
SLOT = "2"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        one = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield one
        one.close()


@pytest.fixture
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Process]:
    """A new server with slots of SLOT seconds, or of a parameter."""
    hospital(tmp_path)
    slot = getattr(request, "param", SLOT)
    with running(tmp_path, "serve", "visits.toml", "--port", "0", "--slot", slot) as one:
        yield one


class Person:
    """A browser of its own, whose pages are looked at as they are opened."""

    def __init__(self, browser: Any, address: str, *, script: bool, album: Path) -> None:
        self.context = browser.new_context(
            java_script_enabled=script, viewport=WIDE, accept_downloads=True
        )
        self.page = self.context.new_page()
        self.page.set_default_timeout(20_000)
        self.address, self.album, self.script = address, album, script
        self.said: list[str] = []
        self.page.on("console", lambda message: self._heard(message.type, message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))

    def _heard(self, kind: str, words: str) -> None:
        if kind in ("error", "warning") and "Failed to load resource" not in words:
            self.said.append(words)

    def opens(self, place: str) -> int:
        """The status of what came."""
        found = self.page.goto(place if place.startswith("http") else self.address + place)
        return int(found.status)

    def looks(self, name: str) -> None:
        """Photograph the page, and check it, at both widths and in the dark."""
        for size, words in ((WIDE, "1280"), (PHONE, "390")):
            self.page.set_viewport_size(size)
            self.page.screenshot(path=self.album / f"{name}-{words}.png", full_page=True)
            wide = self.page.locator("html").evaluate("e => [e.scrollWidth, innerWidth]")
            assert wide[0] <= wide[1], f"{name} is {wide[0]} pixels wide at {words}"
        self.page.emulate_media(color_scheme="dark")
        self.page.wait_for_timeout(300)  # colours fade
        self.page.screenshot(path=self.album / f"{name}-dark.png")
        self.page.emulate_media(color_scheme="light")
        self.page.set_viewport_size(WIDE)
        assert self.said == [], name

    def presses(self, name: str | re.Pattern[str], role: str = "button") -> None:
        self.page.get_by_role(role, name=name).first.click()

    def reads(self, words: str | re.Pattern[str]) -> None:
        self.page.get_by_text(words).first.wait_for()

    def closes(self) -> None:
        assert self.said == []
        self.context.close()


@pytest.fixture
def person(browser: Any, server: Process, tmp_path: Path) -> Iterator[Callable[..., Person]]:
    album = Path(os.environ.get("LASTBIT_SCREENSHOTS", tmp_path / "album"))
    album.mkdir(parents=True, exist_ok=True)
    people: list[Person] = []

    def new(*, script: bool = True) -> Person:
        people.append(Person(browser, server.address, script=script, album=album))
        return people[-1]

    yield new
    for one in people:
        one.closes()


def becomes_steward(steward: Person, server: Process) -> None:
    steward.opens(server.links[0])
    steward.looks("first-steward")
    steward.page.get_by_label("Your name").fill("sofia")
    steward.presses("Begin")
    steward.reads("Tables")


def adds(steward: Person, name: str, role: str) -> str:
    """The new user's one-time link."""
    steward.opens("/users")
    steward.page.get_by_label("Add a user").fill(name)
    steward.page.locator("#new-role").select_option(role)
    steward.presses("Add, and make a sign-in link")
    link = steward.page.locator("#secret").text_content().strip()
    assert link.startswith(steward.address + "/link/")
    return link


def allows(steward: Person, epsilon: str, delta: str) -> None:
    steward.opens("/users")
    form = steward.page.locator("form[action='/allowances']").last
    form.locator("[name=epsilon]").fill(epsilon)
    form.locator("[name=delta]").fill(delta)
    form.locator("[name=period]").select_option("month")
    form.get_by_role("button", name="Set").click()
    steward.reads(re.compile(r"left of"))


def previews(analyst: Person, sql: str, epsilon: str) -> None:
    analyst.opens("/tables/visits/ask")
    analyst.page.locator("#sql").fill(sql)
    analyst.page.locator("#price").fill(epsilon)
    analyst.presses("Preview")


def signs_in(one: Person, link: str) -> None:
    one.opens(link)
    one.presses("Sign in")
    one.page.get_by_role("heading", name="Tables").wait_for()


@pytest.mark.parametrize("script", [True, late(False)], ids=["script", "no script"])
def test_from_the_first_link_to_revocation(server, person, tmp_path, script):
    steward = person(script=script)
    becomes_steward(steward, server)
    steward.looks("catalogue-steward")
    link = adds(steward, "ana", "analyst")
    steward.looks("link-shown-once")
    allows(steward, "1", "1e-9")
    steward.looks("users")

    analyst = person(script=script)
    analyst.opens(link)
    analyst.looks("link")
    signs_in(analyst, link)
    analyst.looks("catalogue")
    analyst.page.get_by_role("heading", name="visits").get_by_role("link").click()
    analyst.reads("What is protected")
    analyst.looks("table")
    analyst.presses(re.compile("Try on made-up rows"))
    analyst.reads(re.compile("rows that were made up"))
    analyst.looks("made-up")

    previews(analyst, SQL, "0.5")
    pay = analyst.page.get_by_role("button", name=re.compile("^Pay .*0.5.* and ask"))
    pay.wait_for()
    analyst.looks("ask")
    pay.click()
    analyst.page.wait_for_url(re.compile(r"/(jobs|answers)/"))
    analyst.page.wait_for_url(re.compile(r"/answers/\d+"))
    analyst.reads("Accepted by the independent checker")
    analyst.looks("answer")
    answer = analyst.page.url
    saved = downloaded(analyst, tmp_path)
    assert saved[".csv"].read_text("utf-8").count("\n") == 9  # a heading and eight regions
    record = json.loads(saved[".json"].read_text("utf-8"))
    assert len(record["rows"]) == 8
    assert "ACCEPTED" in succeeded("check", str(saved[".json"]))

    previews(analyst, SQL, "0.5")
    analyst.presses("Show the answer", role="link")
    analyst.page.wait_for_url(answer)
    previews(analyst, "SELECT AVG(cost) AS cost FROM visits", "0.75")
    analyst.page.locator("#preview .notice.bad").wait_for()
    assert analyst.page.get_by_role("button", name=re.compile("^Pay")).count() == 0
    analyst.looks("over-allowance")
    for place in ("answers", "budget", "me"):
        analyst.opens(f"/{place}")
        analyst.looks(place)
    for place in ("ledger", "audit", "users"):
        assert analyst.opens(f"/{place}") == 403
    analyst.looks("not-allowed")

    for place in ("ledger", "audit", "budget", "answers", "tables/visits"):
        steward.opens(f"/{place}")
        steward.looks(f"{place.replace('/', '-')}-steward")
    steward.opens("/users")
    ana = steward.page.locator(".people .card", has=steward.page.get_by_text("ana", exact=True))
    ana.get_by_text("Sign-in, role, removal").click()
    ana.get_by_role("button", name=re.compile("Sign ana out")).click()
    steward.reads("Users")
    for place in ("/", answer, "/tables/visits/ask", "/me"):
        assert analyst.opens(place) == 401 or analyst.page.url.endswith("/sign-in"), place
        assert analyst.page.get_by_role("button", name="Sign out").count() == 0
    analyst.opens("/sign-in")
    analyst.looks("sign-in")
    analyst.opens(link)  # was used
    analyst.reads(re.compile("used|expired"))
    analyst.looks("link-used")
    assert "link/" not in server.text.replace(server.links[0], "").replace("/link/{code}", "")


@pytest.mark.evidence
@pytest.mark.parametrize("server", ["30"], indirect=True, ids=["long slots"])
def test_pages_that_are_seldom_seen(server, person):
    """A question that waits, a token that is shown once, what is not there, an auditor's books."""
    steward = person()
    becomes_steward(steward, server)
    link = adds(steward, "otto", "auditor")
    previews(steward, SQL, "0.5")
    steward.presses(re.compile("^Pay .* and ask"))
    steward.page.wait_for_url(re.compile("/jobs/"))
    steward.page.locator("progress").wait_for()
    steward.looks("job")
    steward.opens("/me")
    steward.page.get_by_label("What it is for").fill("notebook")
    steward.presses("Make it, and show it once")
    assert steward.page.locator("#secret").text_content().strip().startswith("lbt_")
    steward.looks("token-shown-once")
    steward.opens("/me")
    steward.looks("me-with-a-token")
    assert steward.opens("/tables/nothing") == 404
    steward.looks("not-found")
    auditor = person()
    signs_in(auditor, link)
    for place in ("ledger", "audit", "budget", ""):
        assert auditor.opens(f"/{place}") == 200
        auditor.looks(f"{place or 'catalogue'}-auditor")
    assert auditor.opens("/users") == auditor.opens("/tables/visits/ask") == 403


def downloaded(analyst: Person, folder: Path) -> dict[str, Path]:
    """CSV and JSON of the answer that is open, by their endings."""
    found = {}
    for words in ("CSV", "JSON"):
        with analyst.page.expect_download() as waiting:
            analyst.presses(re.compile(words), role="link")
        path = folder / waiting.value.suggested_filename
        waiting.value.save_as(path)
        found[path.suffix] = path
    return found


@pytest.mark.evidence
def test_by_keyboard_alone(server, person):
    """From the link to a paid answer without a mouse: every step is reached by Tab."""
    steward = person()
    becomes_steward(steward, server)
    link = adds(steward, "ana", "analyst")
    allows(steward, "1", "1e-9")
    analyst = person()
    analyst.opens(link)
    tab_to(analyst, "Sign in")
    analyst.page.keyboard.press("Enter")
    analyst.page.get_by_role("heading", name="Tables").wait_for()
    tab_to(analyst, "Ask")
    analyst.page.keyboard.press("Enter")
    analyst.page.wait_for_url(re.compile("/ask"))
    tab_to(analyst, "Question, in SQL")
    analyst.page.keyboard.press("Control+A")
    analyst.page.keyboard.type(SQL)
    tab_to(analyst, "Price in ε")
    analyst.page.keyboard.press("Control+A")
    analyst.page.keyboard.type("0.5")
    analyst.page.get_by_role("button", name=re.compile("^Pay .*0.5")).wait_for()
    analyst.page.wait_for_function("!document.querySelector('#preview').matches('.stale')")
    tab_to(analyst, "Pay")
    analyst.page.keyboard.press("Enter")
    analyst.page.wait_for_url(re.compile(r"/answers/\d+"))
    analyst.reads("Accepted by the independent checker")


def chooses(one: Person, label: str, letters: str) -> None:
    """A choice of a list, by the keyboard: its first letters."""
    tab_to(one, label)
    one.page.keyboard.type(letters)


BUILT = """\
SELECT region, COUNT(*) AS n, AVG(cost) AS mean_cost
FROM visits
WHERE age >= 18
GROUP BY region"""


def test_a_question_is_built_by_keyboard_and_without_script(server, person, tmp_path):
    """Lists become SQL; words are completed and inserted; paid, checked; then without script."""
    steward = person()
    becomes_steward(steward, server)
    link = adds(steward, "ana", "analyst")
    steward.presses("Give ana an allowance", role="link")
    allows(steward, "1", "1e-9")
    steward.opens("/tables/visits/ask")
    for label, letters in (
        ("What to compute, line 2", "the mean of"),
        ("Of which column, line 2", "cost"),
        ("Group by, line 1", "region"),
        ("Rows where, line 1", "age"),
        ("Comparison, line 1", "is at least"),
        ("Value, line 1", "18"),
    ):
        chooses(steward, label, letters)
    tab_to(steward, "Write the SQL")
    steward.page.keyboard.press("Enter")
    steward.page.get_by_role("button", name=re.compile("^Pay ε = 0.5")).wait_for()
    box = steward.page.locator("#sql")
    assert box.input_value() == BUILT
    steward.looks("built")
    assert steward.page.locator(".editor .sql-word").first.text_content() == "SELECT"

    box.click()
    steward.page.keyboard.press("Control+End")
    steward.page.keyboard.type(" HAVING n > 10 ORDER BY ag")
    steward.page.locator("#completions [aria-selected=true]", has_text="age").wait_for()
    steward.page.keyboard.press("Escape")
    steward.page.keyboard.press("Backspace")
    steward.page.keyboard.press("Backspace")
    steward.page.keyboard.type("re")
    steward.page.locator("#completions [aria-selected=true]", has_text="region").wait_for()
    steward.page.keyboard.press("Tab")
    assert box.input_value() == f"{BUILT} HAVING n > 10 ORDER BY region"
    assert steward.page.evaluate("document.activeElement.id") == "sql"
    steward.page.keyboard.press("Tab")  # the list is closed: the focus goes on
    assert steward.page.evaluate("document.activeElement.id") == "by-price"
    box.fill("SELECT COUNT(*) AS n FROM visits WHERE ")
    box.press("Control+End")
    steward.page.locator("button.insert", has_text="wait").first.click()
    steward.page.keyboard.type(" > 3")
    assert box.input_value() == "SELECT COUNT(*) AS n FROM visits WHERE wait > 3"
    box.fill("MARGINALS region, age > 64 AS old FROM visits")
    steward.page.get_by_role("button", name=re.compile("^Pay")).click()
    steward.page.wait_for_url(re.compile(r"/answers/\d+"))
    steward.reads("Accepted by the independent checker")
    steward.looks("tables-of-two")

    analyst = person(script=False)
    signs_in(analyst, link)
    analyst.opens("/tables/visits/ask")
    for field, choice in (("what2", "mean"), ("of2", "cost"), ("by1", "region"), ("where1", "age")):
        analyst.page.locator(f"#{field}").select_option(choice)
    analyst.page.locator("#is1").select_option(">=")
    analyst.page.locator("#value1").fill("old")
    analyst.presses("Write the SQL")
    analyst.reads("age is a number: write 12 or 0.5.")
    assert analyst.page.locator("[aria-invalid=true]").get_attribute("id") == "value1"
    analyst.looks("builder-refused")
    analyst.page.locator("#value1").fill("18")
    analyst.presses("Write the SQL")
    assert analyst.page.locator("#sql").input_value() == BUILT
    analyst.presses("Preview")
    analyst.presses(re.compile("^Pay .* and ask"))
    analyst.page.wait_for_url(re.compile(r"/answers/\d+"))
    analyst.reads("Accepted by the independent checker")
    assert "ACCEPTED" in succeeded("check", str(downloaded(analyst, tmp_path)[".json"]))
    analyst.opens("/help")
    analyst.looks("help")


FOCUSED = """() => {
  const e = document.activeElement;
  if (!e || e === document.body) return "";
  const style = getComputedStyle(e);
  const seen = style.outlineStyle !== "none" || style.boxShadow !== "none";
  const label = e.labels && e.labels[0] ? e.labels[0].textContent : "";
  return (seen ? "" : "unseen: ") + (e.getAttribute("aria-label") || label || e.textContent).trim();
}"""


def tab_to(one: Person, name: str) -> None:
    """Press Tab until the focus is on what is called so, which must show that it has it."""
    for _ in range(80):
        one.page.keyboard.press("Tab")
        found = one.page.evaluate(FOCUSED)
        assert not found.startswith("unseen"), found
        if found.startswith(name):
            return
    raise AssertionError(f"no way to {name!r} by Tab")


@pytest.mark.evidence
def test_the_demo_has_three_users(browser, tmp_path):
    words = ("demo", "--serve", "--rows", "20000", "--port", "0")
    for _ in range(2):  # it begins afresh
        with running(tmp_path, *words) as one:
            links = one.links
            assert len(links) == 3
            for link, role in zip(links, ("steward", "analyst", "auditor"), strict=True):
                visitor = Person(browser, one.address, script=True, album=tmp_path)
                signs_in(visitor, link)
                visitor.reads(role)
                visitor.closes()
            assert one.ended() == 0
