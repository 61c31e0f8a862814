"""Whether the contingency tables of a saved answer are what they say, and agree.

A saved answer must have a row for every cell, in order; noisy counts whose rounded value is
shown; *consistent* counts that minimise the sum over tables of (noisy - consistent)**2/v under
agreement; and *whole* counts from 0 up that agree. Agreement: the sums of a two-way table over
either column are the same numbers wherever they occur, as one-way tables or as sums of others; all
totals are one. The standard error of a consistent count is at least that of the closed form, or
that of the noisy count.

Standard errors of noisy counts and the width of their intervals are derived again from the noise:
the error is the root of the variance (v; of Laplace noise 2q/(1-q)**2, q = exp(-1/s)), to one part
in 10**9. Ends are (count - a) rounded down and (count + a) rounded up to whole rows, with one a for
a table: the least with P[abs(X) > a] <= 1/20. That a must fit every cell of the table, and its
tail, 2q**(a+1)/(1+q) for Laplace noise and by `tail.py` for Gaussian noise, that claim to one part
in 500. Where a row counts as more than 1, ends tell a to less than one row.

Theorem  agreeing tables are optimal if and only if, for every set B of columns and with r_A =
         (noisy - consistent) of table A, the sum over tables A that contain B of (r_A summed over
         A - B) / (v_A prod(n_i, i in A - B)) is 0 once it is centred along every column of B. That
         is the derivative, up to a factor, as the table of all columns moves by one that is centred
         along B and constant along all else: in table A it is constant along A - B, and prod(n_i, i
         not in A) times as large; where A does not contain B it is 0. These directions span all
Checked  tests/verify/test_check_marginals.py
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations, product
from math import isfinite, prod
from typing import Any

from .marginals import cell_count, column_places, column_sets, counted_question, sizes_of
from .numbers import Json, exp_bounds, number, require
from .query import Question, constant_of
from .release import positive, same
from .tail import gaussian_tail

_ROW = frozenset({"marginal", "keys", "noisy", "cells", "consistent", "consistent_error", "whole"})
_ROUNDING = Fraction(1, 10**9)  # of a root that was written as a double
_TRACE = Fraction(1, 1 << 500)  # so little that doubles round it to anything
_BETA = Fraction(1, 20)
_TAIL = Fraction(1, 500)  # `tail.py` is above the exact tail by no more, from one deviation on
_WIDE = 4
_FLAT = Fraction(1, 10**10)
_FARTHEST = Fraction(1000)

Cells = dict[tuple[int, ...], Fraction]


def check_tables(rows: Any, body: Json) -> None:
    """Raise `Rejected` unless there is a row for every cell, and tables are what they say."""
    plan, question = body["plan"], counted_question(body["query"])
    require(isinstance(rows, list), "there are no rows")
    sizes, one = sizes_of(question), plan["weight_one"]
    sets = column_sets(plan, question)
    fixed = len(sets)
    sets += _drawn(rows, plan, question, fixed)
    cells = sum(cell_count(columns, sizes) for columns in sets)
    require(len(rows) == cells, "a cell is missing")
    noisy: dict[tuple[int, ...], Cells] = {}
    near: dict[tuple[int, ...], Cells] = {}
    counts: dict[tuple[int, ...], Cells] = {}
    left = iter(rows)
    for place, columns in enumerate(sets):
        for found in (noisy, near, counts):
            found[columns] = {}
        for at in product(*(range(sizes[column]) for column in columns)):
            row = next(left)
            keys = [(question.values[c] or ())[i] for c, i in zip(columns, at, strict=True)]
            drawn = [question.names[c] for c in columns] if place >= fixed else None
            _check_row(row, place, keys, one, drawn)
            noisy[columns][at] = number(row["noisy"])
            near[columns][at] = number(row["consistent"]) * one
            counts[columns][at] = Fraction(row["whole"])
    _check_agreement(near, "consistent")
    _check_agreement(counts, "whole")
    noise = [part for part in plan["parts"] if part["part"] == "noise"]
    spread = dict(zip(sets, map(_variance, noise), strict=True))
    _check_nearest(noisy, near, spread, sizes)
    for place, part in enumerate(noise):
        _check_cells([row for row in rows if row["marginal"] == place], part, one)
    least = {place: _consistent_variance(s, spread, sizes) for place, s in enumerate(sets)}
    for row in rows:
        error, own = row["consistent_error"], row["cells"][0]["standard_error"]
        claimed = (Fraction(error) * one) ** 2
        enough = claimed >= least[row["marginal"]] * (1 - _ROUNDING)
        require(enough or same(error, own), "a consistent count is less sure than it says")


def _check_cells(rows: Sequence[Json], part: Json, one: int) -> None:
    """Standard errors and intervals of one table are those of its noise."""
    variance = _exact_variance(part)
    narrow, wide = -1, None
    for row in rows:
        cell, noisy = row["cells"][0], int(number(row["noisy"]))
        claimed = (Fraction(cell["standard_error"]) * one) ** 2
        off = abs(claimed - variance)
        require(off <= variance * _ROUNDING + _TRACE, "a standard error is not that of the noise")
        below, above = noisy - cell["low"] * one, cell["high"] * one - noisy
        narrow = max(narrow, below - one + 1, above - one + 1)
        wide = min(below, above) if wide is None else min(wide, below, above)
    require(wide is not None and narrow <= wide, "intervals of one table differ in width")
    assert wide is not None
    enough = _misses(part, wide)[0] <= _BETA
    require(enough, "an interval is narrower than the noise allows")
    needed = narrow < 1 or _misses(part, narrow - 1)[1] > _BETA
    require(needed, "an interval is wider than the noise asks for")


def _exact_variance(part: Json) -> Fraction:
    """Of Gaussian noise its parameter, of Laplace noise 2q/(1-q)**2."""
    if part["mechanism"] == "gaussian":
        return positive(part["variance"])
    rate = min(1 / positive(part["scale"]), _FARTHEST)
    if rate < _FLAT:  # 1/(2 sinh**2(rate/2)) is within rate**2/12 of this
        return 2 / rate**2
    chance = exp_bounds(-rate)[0]
    return 2 * chance / (1 - chance) ** 2


def _misses(part: Json, half: int) -> tuple[Fraction, Fraction]:
    """Bounds of P[abs(X) > half], not below 0."""
    if part["mechanism"] == "gaussian":
        variance = positive(part["variance"])
        if variance >= _WIDE and half**2 < variance:
            return Fraction(1, 5), Fraction(1)  # within one deviation: missed by far more
        high = 2 * gaussian_tail(variance, half + 1)
        return high * (1 - _TAIL), high
    rate = 1 / positive(part["scale"])
    low, high = exp_bounds(-min(rate * (half + 1), _FARTHEST))
    chance = exp_bounds(-min(rate, _FARTHEST))
    return 2 * low / (1 + chance[1]), 2 * high / (1 + chance[0])


def _consistent_variance(
    columns: tuple[int, ...], variances: Mapping[tuple[int, ...], Fraction], sizes: Sequence[int]
) -> Fraction:
    """Of a cell of a consistent table: its components, one for each set of columns, add up."""
    total = Fraction(0)
    for size in range(len(columns) + 1):
        for kept in combinations(columns, size):
            known = Fraction(
                0
            )  # one over the variance of the component, by all tables that have it
            for table, variance in variances.items():
                if set(kept) <= set(table):
                    known += 1 / (variance * prod(sizes[c] for c in table if c not in kept))
            apart = prod(sizes[c] for c in columns if c not in kept)
            total += prod((1 - Fraction(1, sizes[c]) for c in kept), start=1 / known) / apart**2
    return total


def _drawn(rows: list[Any], plan: Json, question: Question, fixed: int) -> list[tuple[int, ...]]:
    """The pairs that were drawn, as their rows name them: so many candidates, each once."""
    choice = plan["parts"][-1]
    if choice["part"] != "choice":
        return []
    named = {row["marginal"]: row["columns"] for row in rows if row["marginal"] >= fixed}
    require(list(named) == list(range(fixed, fixed + choice["picks"])), "other pairs were drawn")
    require(all(names in choice["candidates"] for names in named.values()), "a pair is none")
    return column_places(list(named.values()), question)


def _check_row(
    row: Any, place: int, keys: Sequence[object], one: int, drawn: list[str] | None
) -> None:
    fields = _ROW if drawn is None else _ROW | {"columns"}
    require(isinstance(row, Mapping) and set(row) == fields, "a row is malformed")
    require(drawn is None or row["columns"] == drawn, "a row is of another pair")
    require(same(row["marginal"], place), "a row is of another table")
    require([constant_of(key) for key in row["keys"]] == list(keys), "a row has another key")
    noisy, cells = number(row["noisy"]), row["cells"]
    require(noisy.denominator == 1, "a noisy count is not whole")
    require(isinstance(cells, list) and len(cells) == 1, "a row has another number of cells")
    (cell,) = cells
    own = set(cell) - {"whole_low", "whole_high"}  # of which `whole.py` knows
    require(own == {"value", "standard_error", "low", "high"}, "a cell is malformed")
    require(same(cell["value"], round(noisy / one)), "a count is not the noisy one")
    ends = type(cell["low"]) is int and type(cell["high"]) is int
    require(ends and cell["low"] <= noisy / one <= cell["high"], "an interval is another's")
    for error in (cell["standard_error"], row["consistent_error"]):
        require(type(error) is float and isfinite(error) and error >= 0, "an error is not a number")
    require(row["consistent_error"] <= cell["standard_error"], "a consistent count is less sure")
    require(type(row["whole"]) is int and row["whole"] >= 0, "a whole count is below 0")


def _variance(part: Json) -> Fraction:
    if part["mechanism"] == "gaussian":
        return positive(part["variance"])
    return 2 * positive(part["scale"]) ** 2


def _summed(cells: Cells, axes: Sequence[int]) -> Cells:
    found: Cells = {}
    for at, value in cells.items():
        kept = tuple(at[axis] for axis in axes)
        found[kept] = found.get(kept, Fraction(0)) + value
    return found


def _check_agreement(tables: Mapping[tuple[int, ...], Cells], what: str) -> None:
    """Every sum over columns that two tables have in common is the same in both."""
    seen: dict[tuple[int, ...], Cells] = {}
    for columns, cells in tables.items():
        for size in range(len(columns) + 1):
            for axes in combinations(range(len(columns)), size):
                kept = tuple(columns[axis] for axis in axes)
                sums = _summed(cells, axes)
                require(seen.setdefault(kept, sums) == sums, f"{what} tables do not agree")


def _check_nearest(
    noisy: Mapping[tuple[int, ...], Cells],
    near: Mapping[tuple[int, ...], Cells],
    variances: Mapping[tuple[int, ...], Fraction],
    sizes: Sequence[int],
) -> None:
    """The derivative along every direction in which agreeing tables can move is 0."""
    slopes: dict[tuple[int, ...], Cells] = {}
    for columns, cells in noisy.items():
        rest = {at: (value - near[columns][at]) / variances[columns] for at, value in cells.items()}
        for size in range(len(columns) + 1):
            for axes in combinations(range(len(columns)), size):
                kept = tuple(columns[axis] for axis in axes)
                many = prod(sizes[column] for column in columns if column not in kept)
                sums = slopes.setdefault(kept, {})
                for at, value in _summed(rest, axes).items():
                    sums[at] = sums.get(at, Fraction(0)) + value / many
    for columns, slope in slopes.items():
        for axis, column in enumerate(columns):
            others = [other for other in range(len(columns)) if other != axis]
            means = _summed(slope, others)
            slope = {  # noqa: PLW2901  centred along one column after the other
                at: value - means[tuple(at[other] for other in others)] / sizes[column]
                for at, value in slope.items()
            }
        require(not any(slope.values()), "consistent tables are not the nearest")
