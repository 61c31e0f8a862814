"""The error index has every class, and the words that people see."""

import re

import pytest

import lastbit as lb
from docs import generate_errors as index
from lastbit import errors
from lastbit.errors import LastbitError
from lastbit.exact import rational
from lastbit.privacy import compositions
from lastbit.tables.card.read import read_card
from lastbit.verify import Grid, certified_code


@pytest.fixture(scope="module")
def pages():
    return index.pages()


def test_the_pages_are_up_to_date(pages):
    written = {page.name: page.read_text("utf-8") for page in index.PAGES.iterdir()}
    assert written == pages, "run `make reference`"


def test_every_class_is_listed_with_an_example(pages):
    assert set(errors.__all__) <= set(index.kinds())
    for name in errors.__all__:
        entry = pages["README.md"].partition(f"### {name}\n")[2].partition("### ")[0]
        assert "```python\n>>> " in entry, name


def test_most_places_that_raise_are_told():
    """A few messages are known only when they run; a form that is not followed would add more."""
    silent = [one for one in index.messages() if len(re.findall("[a-z]{2,}", one.problem)) < 2]
    assert len(silent) <= 30


@pytest.mark.parametrize(
    ("room", "failing"),
    [
        ("exact", lambda: rational(float("nan"))),
        ("exact", lambda: lb.PureDP("x")),
        ("privacy", lambda: compositions([], "1e-6")),
        ("privacy", lambda: lb.PureDP(1) + lb.PureDP(1, neighbours=lb.ADD_REMOVE)),
        ("mechanisms", lambda: lb.Laplace(sensitivity=1)),
        ("sensitivity", lambda: lb.local_sensitivity("median", [1], lower=1, upper=0)),
        ("tables", lambda: read_card("visits.csv")),
        ("tables", lambda: lb.quantiles("age", "0.5")),
        ("tables", lambda: lb.Column(name="cost", type="number", bounds=(1, 0))),
        ("release", lambda: lb.table("visits.csv")),
        ("verify", lambda: Grid(0)),
        ("verify", lambda: certified_code(lambda value, u: u, sensitivity=1, region=(0, 1))),
    ],
)
def test_what_people_see_is_found(pages, room, failing):
    with pytest.raises(LastbitError) as raised:
        failing()
    lines = re.findall(r"^\| (.*) \| .* \|$", pages[f"{room}.md"], re.M)
    told = [re.sub(r"\\(.)", r"\1", line) for line in lines]
    seen = getattr(raised.value, "problem", str(raised.value))  # several parameters share a line
    patterns = [re.escape(line).replace(index.GAP, ".*") for line in told]
    found = (
        seen in line or re.match(p, str(raised.value))
        for line, p in zip(told, patterns, strict=True)
    )
    assert any(found), raised.value
