"""Derived columns: formulas over released numbers, and what is known of the true ones.

Law      the value is the formula over the released values of the row, each operation rounded once
         to a double (IEEE 754: +, -, *, / and sqrt are the same on every machine), missing where
         an operand is, where it would be infinite, and where a division by 0 would be
Theorem  free of charge: it is a function of released numbers and of constants of the question
Theorem  the interval holds the formula over the true (bounded, noiseless) aggregates in at least
         95 % of all releases. Where the formula is smooth around the noisy integers, its interval
         is that of their joint noise (`joint.py`), in which a measure that several parts share is
         one. Functions of one argument around it (ROUND, CLAMP, SQRT, ...) are applied to its ends.
         Elsewhere let the parts be made of j measures. Each entry is within
         accuracy(1/(20 j)) of its noisy integer except with probability 1/(20 j), so all are at
         once in 95 % of releases; then each part is in the interval that its definition gives
         over that box, and the formula in what interval arithmetic gives over these, every end
         rounded outwards. True counts are not negative, true means lie within their bounds: so
         intervals are cut there. A quotient whose divisor may be 0 has none. Which of the two it
         is depends on the noise; `joint.py` says why that is as often all the same
         - a total over d rows: its noise has d times the variance of one entry, so by Chebyshev it
           is within sqrt(20 j d v) of its noisy value, and by the union bound within
           d accuracy(1/(20 j d)): the lesser of the two
         - a mean, variance or quantile has a noise interval of its own, which serves where it is
           the only part of a formula. That of a quantile, minimum or maximum cannot be split:
           beside other parts there is none
Differs  no standard error is given. In the box, parts that several terms share are taken to vary
         apart, which only widens the interval
Checked  tests/release/test_derived.py
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Any

import numpy as np

from lastbit.kernel import Noisy
from lastbit.release.enclosures import (
    INTERVALS,
    Enclosed,
    Interval,
    ends_around,
    for_intervals,
    point,
)
from lastbit.release.formulas import DOUBLES, evaluate
from lastbit.release.intervals import Cell, Column
from lastbit.release.joint import Coordinate, Joint, Quotient
from lastbit.release.reach import BETA, MeasureNoise
from lastbit.release.taylor import Box, NotSmooth, Taylor, doubles, taylor_of
from lastbit.tables import (
    Aggregate,
    Call,
    ColumnName,
    Constant,
    Derived,
    Expression,
    GaussianSelection,
    PartitionSelection,
    Plan,
    RankPart,
    columns_in,
    weight_one,
)

_UNITS = ("count_units", "count_distinct")
_FORMULAS = ("count", *_UNITS, "sum", "mean", "variance", "std")
_OF_ONE = ("count", *_UNITS, "sum")
_INNER = ""  # no column has this name
_FAR, _NEAR = 1e100, 1e-300  # beyond all true numbers, and below all that are not 0


def derived_columns(
    plan: Plan, noisy: Noisy, columns: Sequence[Column], beta: Fraction = BETA
) -> list[Column]:
    """The derived columns of a query, made of its released ones; intervals miss with beta."""
    maker = _Maker(plan, noisy, columns, beta)
    return [
        Column(name=one.name, function="derived", aggregate=one.name, cells=list(maker.cells(one)))
        for one in plan.query.derived
    ]


class _Maker:
    """All that the derived columns of one answer share."""

    def __init__(self, plan: Plan, noisy: Noisy, columns: Sequence[Column], beta: Fraction) -> None:
        self.plan, self.noisy, self.beta = plan, noisy, beta
        self.columns = {column.name: column for column in columns}
        self.recipes = {recipe.aggregate.name: recipe for recipe in plan.recipes}
        self.noise: dict[str, MeasureNoise] = {}
        self.selecting: set[str] = set()
        for part in plan.parts:
            if not isinstance(part, RankPart) and part.measure is not None:
                self.noise[part.measure] = MeasureNoise(part.law)
                if isinstance(part, PartitionSelection | GaussianSelection):
                    self.selecting.add(part.measure)

    def cells(self, derived: Derived) -> Iterator[Cell]:
        names = list(dict.fromkeys(column.name for column in columns_in(derived.expression)))
        totals = {("total", name.lower()): self._total(name) for name in names}
        parts = _Intervals(self, derived.expression, names)
        for i in range(len(self.noisy.keys)):
            row = {name.lower(): self.columns[name].cells[i].value for name in names}
            number = evaluate(derived.expression, {**row, **totals}, DOUBLES)
            value = number if isinstance(number, float) else None
            ends = parts.ends(i)
            if not isinstance(ends, tuple) or not all(map(math.isfinite, ends)):
                yield Cell(value, None, None, None)
                continue
            low, high = ends
            if value is not None:
                low, high = min(low, value), max(high, value)
            yield Cell(value, None, low, high)

    def _total(self, name: str) -> float | None:
        """The sum of released numbers, rounded once, whatever their order; missing if one is."""
        values = [cell.value for cell in self.columns[name].cells]
        try:
            return None if None in values else math.fsum(map(float, values))  # type: ignore[arg-type]
        except OverflowError:
            return None


class _Intervals:
    """Where one formula lies in every row, in 95 % of releases."""

    def __init__(self, maker: _Maker, expression: Expression, names: list[str]) -> None:
        self.maker, self.expression = maker, for_intervals(expression)
        calls = [part for part in _calls(expression) if part.function == "total"]
        totalled = {column.name for part in calls for column in columns_in(part)}
        self.parts = {name.lower(): maker.recipes[name].aggregate for name in names}
        functions = {part.function for part in self.parts.values()}
        self.alone = len(names) == 1 and not functions & {*_OF_ONE}
        self.boxes: dict[Any, Box] = {}
        self.smooth: Box | None = None
        measures = {name: maker.recipes[name].measures.values() for name in names}
        summed = {measure for name in totalled for measure in measures[name]}
        if self.alone or not functions <= {*_FORMULAS} or summed & maker.selecting or not names:
            return
        entries = {m: maker.noisy.entries[m] for name in names for m in measures[name]}
        rows = len(maker.noisy.keys)
        self.own, self.rest = list(entries), [m for m in entries if m in summed and rows > 1]
        coordinates = [Coordinate(maker.noise[m]) for m in self.own]
        coordinates += [Coordinate(maker.noise[m], rows - 1) for m in self.rest]
        middles = [doubles(entries[m]) for m in self.own]
        middles += [doubles([sum(entries[m]) - x for x in entries[m]]) for m in self.rest]
        self._measure(Joint(middles, coordinates, maker.beta))

    def _measure(self, joint: Joint) -> None:
        """The boxes of all parts; and the formula by its joint noise, where it is smooth."""
        natural = {key: _possible(part) for key, part in self.parts.items()}
        with np.errstate(all="ignore"):
            for key, made in self._taylors(joint.box).items():
                least, most = natural[key if isinstance(key, str) else key[1]]
                # NaN where rows may be 0, or a variance: then all that is possible
                self.boxes[key] = np.fmax(made.value[0], least), np.fmin(made.value[1], most)
        inner, self.outer = _peeled(self.expression)

        def formula(variables: list[Taylor]) -> Quotient:
            parts = self._taylors(variables)
            match inner:
                case Call("/", (top, bottom)):
                    return taylor_of(top, parts), taylor_of(bottom, parts)
            return taylor_of(inner, parts), None

        above = {key: (least or _NEAR, most) for key, (least, most) in natural.items()}
        totals = {("total", key): ends for key, ends in above.items()}
        self.natural = evaluate(self.expression, {**above, **totals}, INTERVALS)
        if (share := self._share(inner)) is not None:
            self.natural = evaluate(self.outer, {_INNER: share}, INTERVALS)
        with suppress(NotSmooth):
            self.smooth = joint.intervals(formula)

    def _share(self, inner: Expression) -> Any:
        """Between what one row can add and 0: a multiple of a sum or a count over all rows."""
        match inner:
            case Call(
                "/",
                (
                    ColumnName(top) | Call("*", (Constant(), ColumnName(top))) as multiple,
                    ColumnName(rows),
                ),
            ):
                above, below = (
                    [*self.maker.recipes[name].measures.values()] for name in (top, rows)
                )
                known = {measure.name: measure for measure in self.maker.plan.measures}
                every = known[below[0]].kind == "rows" and known[below[0]].expression is None
                if not every or len(above) > 1 or known[above[0]].kind not in ("rows", "values"):
                    return None
                low, high = self.parts[top.lower()].bounds or (0, 1)
                return evaluate(
                    multiple, {top.lower(): ends_around(min(low, 0), max(high, 0))}, INTERVALS
                )
        return None

    def _taylors(self, variables: list[Taylor]) -> dict[Any, Taylor]:
        """All parts, and their totals, as formulas over the measures."""
        mine = dict(zip(self.own, variables, strict=False))
        rest = dict(zip(self.rest, variables[len(self.own) :], strict=True))
        whole = {name: one + rest[name] if name in rest else one for name, one in mine.items()}
        made: dict[Any, Taylor] = {}
        for key, part in self.parts.items():
            made[key] = _part_taylor(self.maker, part, mine)
            made["total", key] = _part_taylor(self.maker, part, whole)
        return made

    def ends(self, place: int) -> Any:
        """Where the formula lies in one row."""
        if self.smooth is None:
            return evaluate(self.expression, self._row(place), INTERVALS)
        low, high = (float(ends[place]) for ends in self.smooth)
        inner = (low, high) if low <= high else (-math.inf, math.inf)  # NaN by a divisor of 0
        interval = evaluate(self.outer, {_INNER: inner}, INTERVALS)
        if not isinstance(interval, tuple) or not isinstance(self.natural, tuple):
            return interval
        least, most = (0.0 if abs(end) <= 1 / _FAR else end for end in self.natural)
        return _clip(interval, (least, max(least, most)))

    def _row(self, place: int) -> Mapping[Any, Enclosed]:
        """The interval of each part in one row."""
        if self.alone:
            ((key, part),) = self.parts.items()
            cell = self.maker.columns[part.name].cells[place]
            known = cell.low is not None and cell.high is not None
            return {key: (float(cell.low), float(cell.high)) if known else None}  # type: ignore[arg-type]
        boxes = {key: (float(a[place]), float(b[place])) for key, (a, b) in self.boxes.items()}
        return boxes or dict.fromkeys(self.parts)


_AROUND = frozenset(
    {"clamp", "round", "floor", "ceil", "to_integer", "to_number", "sqrt", "negate", "abs"}
    | {"+", "-", "*", "/", "least", "greatest", "ln", "exp", "log", "power"}
)
"""Functions that are applied to the ends of an interval, where their other arguments are fixed."""


def _peeled(expression: Expression) -> tuple[Expression, Expression]:
    """The formula inside of functions of one changing argument, and these, of that under a name."""
    match expression:
        case Call(function, arguments) if function in _AROUND:
            moving = [part for part in arguments if any(True for _ in columns_in(part))]
            divides = function == "/" and arguments[0] not in moving
            if len(moving) == 1 and not divides:
                inner, outer = _peeled(moving[0])
                made = tuple(outer if part == moving[0] else part for part in arguments)
                return inner, Call(function, made)
    return expression, ColumnName(_INNER)


def _part_taylor(maker: _Maker, part: Aggregate, measured: Mapping[str, Taylor]) -> Taylor:
    """An aggregate as a formula over its measures."""
    recipe = maker.recipes[part.name].measures
    of = {kind: measured[name] for kind, name in recipe.items()}
    if part.function in _UNITS:
        return next(iter(of.values()))
    one = Taylor.constant(weight_one(maker.plan.card))
    if part.function == "count":
        return of["rows"] / one
    measure = next(m for m in maker.plan.measures if m.name == recipe["values"])
    step, centre = Taylor.constant(measure.step), Taylor.constant(measure.centre)
    if part.function == "sum":
        total = step * of["values"]
        return (total + centre * of["rows"] if "rows" in of else total) / one
    mean = of["values"] / of["rows"]
    if part.function == "mean":
        return centre + step * mean
    variance = step * step * (of["squares"] / of["rows"] - mean * mean)
    return variance if part.function == "variance" else variance.sqrt()


def _calls(expression: Expression) -> Iterator[Call]:
    if isinstance(expression, Call):
        yield expression
        for part in expression.arguments:
            yield from _calls(part)


def _possible(part: Aggregate) -> Interval:
    """What an aggregate can be, whatever the rows are."""
    low, high = (0, 0) if part.bounds is None else part.bounds
    half = (high - low) / 2
    match part.function:
        case "mean":
            return point(low)[0], point(high)[1]
        case "variance":
            return 0.0, point(Fraction(half**2))[1]
        case "std":
            return 0.0, point(Fraction(half))[1]
    return (0.0 if low >= 0 else -_FAR), _FAR


def _clip(interval: Interval, within: Interval) -> Interval:
    low, high = (min(max(end, within[0]), within[1]) for end in interval)
    return low, high
