"""No whole interval of any kind of column is accepted if it is narrower than what is proved."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

import lastbit as lb
from lastbit.checker import problem_of
from lastbit.checker.enclosed import enclosure
from lastbit.checker.formulas import DOUBLES, evaluate
from lastbit.release.enclosures import INTERVALS, for_intervals
from lastbit.release.formulas import evaluate as evaluate_own
from lastbit.tables import Call, ColumnName, Constant, Expression
from lastbit.tables.query.writing import to_json
from tests.evidence import Extent
from tests.release.test_whole import BOOKS, bolder_columns, buy_profile, forged, visits

__all__ = ["visits"]

COLUMNS = (
    lb.Column(name="cost", type="number", bounds=(0, 50)),
    lb.Column(name="change", type="integer", bounds=(-4, 4)),
)
NUMBERS = (
    "COUNT(*) AS n, COUNT(cost) AS known, COUNT(DISTINCT id) AS people, SUM(cost) AS total",
    "SUM(change) AS moved, AVG(cost) AS average, VAR_POP(cost) AS variance",
    "STDDEV_POP(cost) AS spread, MEDIAN(cost) AS middle, COUNT(DISTINCT change) AS several",
    "AVG(CASE WHEN cost > 20 THEN 1 ELSE 0 END) AS share, MIN(cost) AS least, COUNT(*) AS n",
)
FORMULAS = (
    "SUM(cost) / COUNT(*)",
    "100.0 * COUNT(DISTINCT id) / COUNT(*)",
    "CORR(cost, change)",
    "REGR_SLOPE(cost, change)",
    "SUM(cost) - 3 * COUNT(*)",
    "COUNT(DISTINCT id) * 2 + 1",
    "SQRT(ABS(COUNT(*) - 5000)) * 2",
    "POWER(COUNT(*) - 4000, 2)",
    "(COUNT(*) - 4000) * (COUNT(*) - 4000)",
    "CASE WHEN COUNT(*) > 3 THEN SUM(cost) ELSE 0 END * 0.1",
    "CASE WHEN COUNT(*) > 5000 THEN SUM(cost) ELSE 0 END * 0.1",
    "LN(SUM(cost)) - LN(COUNT(*))",
    "ROUND(SUM(cost) / 7.0, 1) + FLOOR(COUNT(*) / 3.0)",
    "GREATEST(SUM(cost), COUNT(*) * 20) + 1",
    "AVG(cost) * COUNT(*)",
    "MEDIAN(cost) * 3",
    "AVG(cost) * 7",
    "EXP(COUNT(*) / 1000.0) / SUM(cost)",
    "COUNT(*) * 1.0 / SUM(COUNT(*)) OVER ()",
    "clamp(COUNT(*) * 1.0 / SUM(COUNT(*)) OVER (), 0, 1)",
    "1.0 * COUNT(DISTINCT change) / COUNT(*)",
)


def every_answer(table: lb.release.Table) -> Iterator[tuple[str, dict[str, Any]]]:
    """All kinds of columns, by group and of all rows."""
    named = [f"{formula} AS d" for formula in FORMULAS]
    for number, columns in enumerate((*NUMBERS, *named)):
        sql = f"SELECT region, {columns} FROM visits GROUP BY region"
        if number % 3 == 0 and "OVER" not in columns:
            sql = f"SELECT {columns} FROM visits"
        yield columns, table.sql(sql).release(epsilon=5, ledger=BOOKS).record


def narrower_cells(record: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Ends moved inwards, a hair, half way to the noise, to it; known where they are not."""
    hidden = any(said["hidden"] for said in record["whole"]["columns"].values())
    for part in ("cells", "parts"):
        for place, cell in enumerate(record["rows"][0].get(part, ())):
            for end, noise, sign in (("whole_low", "low", 1), ("whole_high", "high", -1)):
                path = ["rows", 0, part, place]
                for step in moved_ends(cell[end], cell[noise], sign, hidden=hidden):
                    yield f"{part} {place}: {end} {step}", forged(record, [*path, end], step)
            if cell["whole_low"] is not None and cell["whole_high"] is not None:
                width = cell["whole_high"] - cell["whole_low"]
                for shift in filter(None, (width, -width, math.ceil(width / 2) + 1)):
                    ends = {name: cell[name] + shift for name in ("whole_low", "whole_high")}
                    yield f"{part} {place}: {shift}", forged(record, path, {**cell, **ends})


def moved_ends(end: Any, noise: Any, sign: int, *, hidden: bool) -> Iterator[Any]:
    """What units hidden in the noise lose is an estimate, and only the rest is proved."""
    if end is None:
        yield 0.0 if noise is None else noise
        return
    if not hidden:
        yield end + sign if isinstance(end, int) else end + sign * max(abs(end), 1e-3) * 1e-9
        if noise is not None and abs(noise - end) > 2:
            yield end + (noise - end) / 2
    if noise is not None:
        yield noise + sign * max(abs(noise), 1) * 1e-6
        if not hidden and abs(noise - end) > 1:
            yield noise


def bolder_profiles(record: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Louder noise, or half of the light units, prove less than the record says."""
    for name in ("profile", "groups"):
        quoted = record["whole"][name]
        if quoted is None:
            continue
        counts, noise = quoted["counts"], quoted["noise"]
        louder = {**noise, "one": max(noise["one"] >> 6, 1)}
        yield f"{name}: louder", forged(record, ["whole", name, "noise"], louder)
        lighter = [count // 2 if place < 2 else count for place, count in enumerate(counts)]
        yield f"{name}: lighter", forged(record, ["whole", name, "counts"], lighter)
        heavier = [*counts[:-1], counts[-1] + 10**6]
        yield f"{name}: heavier", forged(record, ["whole", name, "counts"], heavier)


@pytest.mark.parametrize("more", [{"at_most": 120}, {"max_groups": 2}, {}])
def test_nothing_narrower_than_what_is_proved_is_accepted(visits, more, extent: Extent) -> None:
    table = visits(columns=COLUMNS, **more)
    buy_profile(table)
    tried = 0
    for words, record in every_answer(table):
        assert problem_of(record) is None, words
        if "whole" not in record:
            assert "DISTINCT id" in words
            continue
        bold = [*narrower_cells(record), *bolder_columns(record)]
        if "about" in str(record["whole"]) and words == NUMBERS[0]:
            bold += bolder_profiles(record)
        for name, made in extent.cases(bold, one_in=4):
            tried += 1
            assert problem_of(made) is not None, f"{words}: {name}"
    assert tried > 50


def test_without_a_profile_nothing_is_known_of_what_was_lost(visits) -> None:
    for words, record in every_answer(visits(columns=COLUMNS)):
        assert problem_of(record) is None, words
        assert record.get("whole", {"profile": None})["profile"] is None
        for name, made in narrower_cells(record) if "whole" in record else ():
            assert problem_of(made) is not None, f"{words}: {name}"


# ---------------------------------------------------------------- formulas by both arithmetics

NAMES = ("a", "b")


def random_formula(source: random.Random, depth: int) -> Expression:
    """Any of the functions that formulas know, on columns and constants."""
    if depth == 0 or source.random() < 0.15:
        if source.random() < 0.6:
            return ColumnName(source.choice(NAMES))
        return Constant(source.choice([0, 1, 2, 3, -1, 10, 100]))

    def inner() -> Expression:
        return random_formula(source, depth - 1)

    one = ("negate", "abs", "floor", "ceil", "sqrt", "to_number", "to_integer", "ln")
    match source.randrange(8):
        case 0 | 1:
            return Call(source.choice(one), (inner(),))
        case 2:
            test = Call(source.choice(("<", "<=", ">", ">=", "=", "<>")), (inner(), inner()))
            both = Call(source.choice(("and", "or")), (test, Call("not", (test,))))
            return Call("case", (source.choice((test, both)), inner(), inner()))
        case 3:
            return Call("clamp", (inner(), Constant(-5), Constant(50)))
        case 4:
            same = inner()
            power = Call("power", (same, Constant(source.choice((2, 3, 4)))))
            return source.choice((Call("*", (same, same)), power, Call("round", (same,))))
        case 5:
            names = ("least", "greatest", "coalesce", "+", "*")
            return Call(source.choice(names), (inner(), inner(), inner()))
    if source.random() < 0.1:  # of more, numbers are too large for doubles, and so missing
        return Call("exp", (Call("clamp", (inner(), Constant(-5), Constant(5))),))
    return Call(source.choice(("+", "-", "*", "/")), (inner(), inner()))


def ends_of(found: Any) -> Sequence[float] | None:
    finite = isinstance(found, tuple) and all(map(math.isfinite, found))
    return found if finite else None


def test_the_checker_encloses_formulas_and_rejects_no_honest_interval(extent: Extent) -> None:
    """Its interval holds the formula all over the box, and lies within that of the release."""
    source, known = random.Random(5), 0
    for _ in range(extent.generated(3_000, 100_000)):
        formula = random_formula(source, 3)
        box = {}
        for name in NAMES:
            low = source.choice((source.uniform(-40, 40), float(source.randint(-9, 9))))
            box[name] = low, low + source.choice((0.0, 1.0, source.uniform(0, 60)))
        ours = ends_of(evaluate_own(for_intervals(formula), box, INTERVALS))
        written = to_json(formula)
        theirs = ends_of(enclosure(written, box))
        if ours is None or theirs is None:
            assert ours is None, (formula, box, ours)
            continue
        known += 1
        assert ours[0] <= theirs[0] <= theirs[1] <= ours[1], (formula, box)
        slack = 1e-9 * max(abs(theirs[0]), abs(theirs[1]), 1)
        for _ in range(4):
            row = {
                name: source.choice((*ends, source.uniform(*ends))) for name, ends in box.items()
            }
            value = evaluate(written, row, DOUBLES)
            if isinstance(value, float):
                assert theirs[0] - slack <= value <= theirs[1] + slack, (written, box, row)
    assert known > 300
