"""Questions of other products, unchanged: DuckDB's numbers, or refused for a reason."""

from __future__ import annotations

import re
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from math import isclose, isnan
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pytest

from lastbit.errors import LastbitError
from tests.release.peers.tables import Peers

_FILE = Path(__file__).with_name("peers") / "questions.txt"
_REASONS = {"rows", "units", "other people's rows", "chance", "no SQL", "no such column"}
_REASONS |= {"no such table"}


class Asked(NamedTuple):
    """One line of the file."""

    source: str
    table: str
    verdict: str
    text: str


def _lines() -> list[Asked]:
    lines = _FILE.read_text(encoding="utf-8").splitlines()
    return [Asked(*line.split(" ⇒ ")) for line in lines if not line.startswith("#")]


EVERY = _lines()
ANSWERED = [one for one in EVERY if one.verdict == "answered"]
REFUSED = [one for one in EVERY if one.verdict != "answered"]


@pytest.fixture(scope="module")
def peers() -> Peers:
    return Peers()


def test_nine_in_ten_of_those_that_can_be_private_are_answered() -> None:
    kinds = Counter(one.verdict.partition(":")[0] for one in EVERY)
    assert set(kinds) == {"answered", "cannot", "could"}
    assert kinds["answered"] >= 300 and len({one.source.split()[0] for one in EVERY}) == 3
    assert 10 * kinds["answered"] >= 9 * (kinds["answered"] + kinds["could"])
    reasons = {one.verdict[8:] for one in EVERY if one.verdict.startswith("cannot")}
    assert reasons <= _REASONS
    assert len({one.text.lower() for one in EVERY}) == len(EVERY)


def in_duckdb(text: str) -> str:
    """The question in DuckDB's words: deviations divided by n, LIMIT, and no name of its schema."""
    for names, name in (("STDDEV|STDEV|STD", "stddev_pop"), ("VARIANCE|VAR", "var_pop")):
        text = re.sub(rf"\b(?:{names})\s*\(", f"{name}(", text, flags=re.IGNORECASE)
    text = text.replace("PUMS.PUMS.PUMS", "PUMS.PUMS")
    top = re.match(r"SELECT TOP (\d+)", text)
    return text if top is None else f"SELECT{text[top.end() :]} LIMIT {top[1]}"


def _plain(value: Any) -> Any:
    """A number as a double; a missing one is none."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float | Fraction | Decimal):
        number = float(value)
        return None if isnan(number) else number
    return str(value)


def _sorted(row: list[Any]) -> list[Any]:
    """In one order: our columns stand keys first, DuckDB's as they are written."""
    return sorted(
        row, key=lambda v: (type(v).__name__, v if isinstance(v, float | bool) else str(v))
    )


def _same(mine: list[Any], truth: list[Any]) -> bool:
    return len(mine) == len(truth) and all(map(_near, mine, truth))


def _near(mine: Any, truth: Any) -> bool:
    """Whether they are one number but for the noise; of no rows a sum is 0, in SQL NULL."""
    if isinstance(mine, float) and (isinstance(truth, float) or truth is None):
        return isclose(mine, truth or 0.0, rel_tol=1e-4, abs_tol=0.05)
    return bool(mine == truth)


def left_over(mine: list[list[Any]], truth: list[list[Any]]) -> tuple[list[int], list[Any]]:
    """The places of our rows that are none of DuckDB's, and its rows that are none of ours."""
    left = dict(enumerate(mine))
    without = []
    for row in truth:
        place = next((place for place, one in left.items() if _same(one, row)), None)
        if place is None:
            without.append(row)
        else:
            del left[place]
    return list(left), without


@pytest.mark.thinned(one_in=8)
@pytest.mark.parametrize("asked", ANSWERED, ids=lambda one: one.text[:60])
def test_answered_as_by_duckdb(asked: Asked, peers: Peers) -> None:
    question = peers.table(asked.table).sql(asked.text)
    found = any(key.values is None for key in question.query.keys)
    delta = {"delta": "1e-9"} if found else {}
    answer = question.release(epsilon=10**6, **delta)
    cells = [[_plain(cell.value) for cell in row.cells] for row in answer]
    mine = [[*map(_plain, row.keys), *own] for row, own in zip(answer, cells, strict=True)]
    cursor = peers.engine.cursor()
    cursor.execute(f"SET search_path = '{'Telemetry' if asked.table == 'telemetry' else 'main'}'")
    rows = cursor.execute(in_duckdb(asked.text)).fetchall()
    more, without = left_over(
        [_sorted(row) for row in mine], [_sorted([*map(_plain, row)]) for row in rows]
    )
    assert without == []
    # a key that is known, and that no row has, is listed with nothing; DuckDB leaves it out
    assert all(_near(value, None) or value is None for place in more for value in cells[place])


@pytest.mark.thinned(one_in=8)
@pytest.mark.parametrize("asked", REFUSED, ids=lambda one: one.text[:60])
def test_refused_for_a_reason(asked: Asked, peers: Peers) -> None:
    table = peers.table(asked.table)
    with pytest.raises(LastbitError) as refusal:
        table.sql(asked.text)
    if asked.verdict.startswith("could: "):
        assert asked.verdict[7:] in str(refusal.value)
    if asked.verdict == "cannot: no SQL":
        with pytest.raises(duckdb.Error):
            peers.engine.execute(asked.text)
