"""No screen, page or docstring says a bare "95 %": an interval is one of noise, or the whole."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_KINDS = ("*.py", "*.pyi", "*.html", "*.js", "*.md", "*.svg", "*.toml")
# of what it is 95 %; or how far noisy places go; or that a number is a quantile of measured errors
SAID = r"of|(?:and the 90 % )?quantiles?|within [\w{}:,.]+ m\b|sure"
_BARE = re.compile(rf"(?<![\d.])95(?: |&nbsp;|\u00a0|\\u00a0)?(?:%|per cent)(?! (?:{SAID}))")


def bare_percentages(text: str) -> Iterator[str]:
    """Where 95 % stands without what it is a share of; a quoted text may go on in the next line."""
    joined = re.sub(r'"\s*\n\s*f?"', "", text)
    line = " ".join(joined.replace("\n#", " ").split())
    for match in _BARE.finditer(line):
        yield line[max(match.start() - 40, 0) : match.end() + 30]


def pages() -> Iterator[Path]:
    yield ROOT / "README.md"
    for folder in ("src", "docs"):
        for kind in _KINDS:
            yield from sorted((ROOT / folder).rglob(kind))


def test_nothing_that_people_read_has_a_bare_percentage() -> None:
    known = list(pages())
    assert len(known) > 400
    bare = {
        f"{path.relative_to(ROOT)}: {words}"
        for path in known
        if "papers" not in path.parts
        for words in bare_percentages(path.read_text("utf-8"))
    }
    assert not bare, "\n".join(sorted(bare))


@pytest.mark.parametrize(
    "wrong",
    [
        'INTERVAL = "95 %"',
        "± 60 (95 %)",
        "with 95 % intervals",
        "at 95&nbsp;%",
        "95% within",
        "95 % in",
    ],
)
def test_a_bare_percentage_is_found(wrong: str) -> None:
    assert list(bare_percentages(f"a {wrong} b"))


@pytest.mark.parametrize(
    "right",
    [
        "in 95 % of all releases",
        "in 95 %\n  of releases",
        '"in 95 % "\n    "of releases"',
        "0.95 % in",
    ],
)
def test_what_says_of_what_it_is_a_share_passes(right: str) -> None:
    assert not list(bare_percentages(right))
