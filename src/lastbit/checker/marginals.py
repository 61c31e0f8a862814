"""Re-derives the price of released contingency tables, and that the tables agree.

The question is a count of rows by columns whose keys are all declared; its tables are marginals: of
each named set of columns, the number of rows at every combination of their keys. Every marginal is
a measure of kind rows: one unit moves it by at most k W in L1 (`query.py`), since in one table each
of its rows is in one cell. Each has one mechanism,

| noise | loss |
|---|---|
| Laplace of scale s | epsilon = L1/s |
| Gaussian of variance v | rho = L2**2/(2v) |

and losses add up as in `release.py`. Where only some pairs are measured, the last part draws them
by the exponential mechanism: a draw with exp(rate score) costs epsilon = 2 rate L1 and rho =
epsilon**2/8, since a score is the distance of the pair's table from a public one. No set of columns
may be named twice: a table released twice is paid for twice.

A saved answer must also have a row for every cell, in order; noisy counts whose rounded value is
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

from .numbers import Json, digest, exp_bounds, number, require
from .query import Facts, Measured, Question, constant_of, facts_of, moves_of, question_of
from .release import (
    HASH,
    _check_price as check_price,
    _Loss as Loss,
    _positive as positive,
    _stated as stated,
    _total as total_of,
    check_parts,
    same,
)
from .tail import gaussian_tail

_CLAIM = frozenset({"table", "unit", "neighbours", "query", "rows", "epsilon", "delta", "rho"})
_PLAN = frozenset(
    {"query", "table", "unit", "max_rows", "max_groups", "neighbours", "weight_one", "groups"}
    | {"asked", "composition", "conversion", "cost", "measures", "recipes", "parts", "marginals"}
)
_ROW = frozenset({"marginal", "keys", "noisy", "cells", "consistent", "consistent_error", "whole"})
_MOST_COLUMNS = 2
_ROUNDING = Fraction(1, 10**9)  # of a root that was written as a double
_TRACE = Fraction(1, 1 << 500)  # so little that doubles round it to anything
_BETA = Fraction(1, 20)
_TAIL = Fraction(1, 500)  # `tail.py` is above the exact tail by no more, from one deviation on
_WIDE = 4
_FLAT = Fraction(1, 10**10)
_FARTHEST = Fraction(1000)
_ROWS = Measured(kind="rows", nullable=False)


def check_marginals(claim: Json, body: Json) -> None:
    """Raise `Rejected` unless the tables cost no more than is claimed."""
    require(set(claim) == _CLAIM, "the claim lacks a part, or has one too many")
    check_parts(body)
    plan = body["plan"]
    require(isinstance(plan, Mapping) and set(plan) == _PLAN, "the plan lacks a part")
    for name in ("table", "unit", "neighbours", "query"):
        require(same(claim[name], plan[name]), f"claim and plan differ in {name}")
    require(isinstance(plan["table"], str) and bool(plan["table"]), "the table has no name")
    require(body["query"]["table"] == plan["table"], "the query is about another table")
    require(plan["query"] == digest(body["query"]), "the plan is for another query")
    require(body["plan_digest"] == digest(plan), "the plan was changed after it was written")
    for text in (claim["rows"], *([] if body["ledger"] is None else [body["ledger"]])):
        require(isinstance(text, str) and bool(HASH.fullmatch(text)), "a digest is malformed")
    question = _counting(body["query"])
    sets = _sets(plan, question)
    facts = facts_of(plan, question)
    sizes = sizes_of(question)
    parts = plan["parts"]
    require(isinstance(parts, list) and bool(parts), "a table has no noise")
    choice = parts[-1] if parts[-1].get("part") == "choice" else None
    picks, candidates = (0, []) if choice is None else _candidates(choice, question, sets)
    largest = sorted((_cells(one, sizes) for one in candidates), reverse=True)[:picks]
    cells = sum(_cells(one, sizes) for one in sets) + sum(largest)
    require(same(plan["groups"], cells), "the number of cells is another")
    require(same(plan["weight_one"], facts.weight_one), "the weight 1 is another")
    names = [f"m{place}" for place in range(1, len(sets) + picks + 1)]
    expected = [_ROWS.json(name) for name in names]
    require(same(plan["measures"], expected), "the tables need other measures")
    titles = [":".join(one) for one in plan["marginals"]]
    titles += [f"pair {number}" for number in range(1, picks + 1)]
    require(len(set(titles)) == len(titles), "two tables have one name")
    recipes = [
        {"aggregate": title, "function": "count", "measures": {"rows": name}}
        for title, name in zip(titles, names, strict=True)
    ]
    require(same(plan["recipes"], recipes), "the tables are made of other measures")
    moved = {norm: str(size) for norm, size in moves_of(_ROWS, facts).items()}
    require(same(body["moves"], dict.fromkeys(names, moved)), "one unit moves a table otherwise")
    require(plan["composition"] in ("basic", "concentrated"), "the composition is unknown")
    noise = parts if choice is None else parts[:-1]
    require(len(noise) == len(names), "a table has no noise")
    concentrated = plan["composition"] == "concentrated"
    losses = [
        _noise(part, name, facts, concentrated=concentrated)
        for part, name in zip(noise, names, strict=True)
    ]
    if choice is not None:
        losses.append(_choice(choice, picks, facts, concentrated=concentrated))
    check_price(claim, plan, total_of(plan, losses))


def _counting(query: Any) -> Question:
    """The question, if it is a count of all rows by declared keys and nothing else."""
    question = question_of(query)
    require(not {"per_unit", "derived", "shown"} & set(query), "it is not a count of rows")
    require(not any("private" in join for join in query["joins"]), "private tables are joined")
    (count,) = question.aggregates
    require(count.function == "count" and count.expression is None, "it is not a count of rows")
    require(bool(question.names), "there are no columns")
    require(all(values is not None for values in question.values), "keys are not declared")
    after = (query["having"], query["order"], query["limit"])
    require(after == (None, [], None), "tables are filtered or cut")
    return question


def sizes_of(question: Question) -> list[int]:
    """How many keys each column has."""
    return [len(values or ()) for values in question.values]


def _cells(one: tuple[int, ...], sizes: Sequence[int]) -> int:
    return prod(sizes[place] for place in one)


def _candidates(
    choice: Json, question: Question, sets: list[tuple[int, ...]]
) -> tuple[int, list[tuple[int, ...]]]:
    """How many pairs are drawn, and among which: none that is released anyway."""
    fields = {"part", "mechanism", "candidates", "picks", "penalty", "sensitivity", "rate"}
    require(set(choice) == fields | {"epsilon", "rho"}, "a part lacks a number")
    require(choice["mechanism"] == "exponential", "a mechanism is unknown")
    candidates = _places(choice["candidates"], question)
    require(all(len(one) == _MOST_COLUMNS for one in candidates), "a pair is none")
    require(not set(candidates) & set(sets), "a pair is released twice")
    picks = choice["picks"]
    require(type(picks) is int and 1 <= picks < len(candidates), "too many pairs are drawn")
    require(number(choice["penalty"]).denominator == 1, "a penalty is not whole")
    return picks, candidates


def _choice(part: Json, picks: int, facts: Facts, *, concentrated: bool) -> Loss:
    """The score of a pair is a distance from its table, less a public number: it moves by L1."""
    moved = moves_of(_ROWS, facts)["l1"]
    require(same(part["sensitivity"], {"distance": str(moved)}), "a sensitivity is wrong")
    each = 2 * positive(part["rate"]) * moved
    epsilon = stated(part["epsilon"], picks * each)
    if concentrated:
        return Loss(rho=stated(part["rho"], picks * each**2 / 8))
    require(part["rho"] is None, "a part is paid for twice")
    return Loss(epsilon=epsilon)


def _sets(plan: Json, question: Question) -> list[tuple[int, ...]]:
    """The sets of columns that are released whatever the data are."""
    return _places(plan["marginals"], question)


def _places(written: Any, question: Question) -> list[tuple[int, ...]]:
    """The sets of columns by their places, each once, each in the order of the question."""
    require(isinstance(written, list) and bool(written), "there are no tables")
    found = []
    for names in written:
        require(isinstance(names, list), "a table has no columns")
        require(all(name in question.names for name in names), "a table has an unknown column")
        places = tuple(question.names.index(name) for name in names)
        require(1 <= len(places) <= _MOST_COLUMNS, "a table has no columns, or too many")
        require(list(places) == sorted(set(places)), "the columns of a table are in disorder")
        found.append(places)
    require(len(set(found)) == len(found), "a table is released twice")
    return found


def _noise(part: Json, name: str, facts: Facts, *, concentrated: bool) -> Loss:
    require(isinstance(part, Mapping), "a part is malformed")
    parameter = "variance" if concentrated else "scale"
    fields = {"part", "measure", "mechanism", "sensitivity", parameter, "epsilon", "rho"}
    require(set(part) == fields, "a part lacks a number, or has one too many")
    told = part["part"], part["measure"], part["mechanism"]
    expected = ("noise", name, "gaussian" if concentrated else "laplace")
    require(told == expected, "a table has noise that is another's")
    norm = "l2_squared" if concentrated else "l1"
    moved = moves_of(_ROWS, facts)[norm]
    require(same(part["sensitivity"], {norm: str(moved)}), "a sensitivity is wrong")
    noise = positive(part[parameter])
    if concentrated:
        require(part["epsilon"] is None, "Gaussian noise has no epsilon")
        return Loss(rho=stated(part["rho"], moved / (2 * noise)))
    require(part["rho"] is None, "a part is paid for twice")
    return Loss(epsilon=stated(part["epsilon"], moved / noise))


# ---------------------------------------------------------------- the tables of a saved answer

Cells = dict[tuple[int, ...], Fraction]


def check_tables(rows: Any, body: Json) -> None:
    """Raise `Rejected` unless there is a row for every cell, and tables are what they say."""
    plan, question = body["plan"], _counting(body["query"])
    require(isinstance(rows, list), "there are no rows")
    sizes, one = sizes_of(question), plan["weight_one"]
    sets = _sets(plan, question)
    fixed = len(sets)
    sets += _drawn(rows, plan, question, fixed)
    cells = sum(_cells(columns, sizes) for columns in sets)
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
    return _places(list(named.values()), question)


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
    require(set(cell) == {"value", "standard_error", "low", "high"}, "a cell is malformed")
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
