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
         once in 95 % (union bound); then each part is in the interval that its definition gives
         over that box, and the formula in what interval arithmetic gives over these, every end
         rounded outwards. True counts are not negative, true means lie within their bounds: so
         intervals are cut there. A quotient whose divisor may be 0 has none. Which of the two it
         is depends on the noise; `joint.py` says why at least 95 % hold all the same
         - a total over d rows: its noise has d times the variance of one entry, so by Chebyshev it
           is within sqrt(20 j d v) of its noisy value, and by the union bound within
           d accuracy(1/(20 j d)): the lesser of the two
         - a mean, variance or quantile has an interval of 95 % of its own, which serves where it is
           the only part of a formula. That of a quantile, minimum or maximum cannot be split:
           beside other parts there is none
         - a share of all rows, N/COUNT(*) with N a sum of values within [low, high] or a count,
           lies between min(low, 0) and max(high, 0): it is tested as a mean is (`reach.py`), where
           a formula has no other part
Differs  no standard error is given. In the box, parts that several terms share are taken to vary
         apart, which only widens the interval
Checked  tests/release/test_derived.py
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, reduce
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from lastbit.exact import lower, upper
from lastbit.kernel import Noisy
from lastbit.release.formulas import DOUBLES, Functions, Meaning, all_true, any_true, evaluate
from lastbit.release.intervals import BETA, Cell, Column
from lastbit.release.joint import Coordinate, Quotient, Smooth, known_laws, smooth_intervals
from lastbit.release.reach import MeasureNoise, Reach, quotient_interval, reach_of
from lastbit.release.taylor import Box, Taylor, taylor_of
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
_SHARE = ""  # no column has this name
_MOST_PLACES = 400
_FAR, _NEAR = 1e100, 1e-300  # beyond all true numbers, and below all that are not 0

Interval: TypeAlias = tuple[float, float]
Enclosed: TypeAlias = Interval | bool | None
"""Where a number lies, what a condition is, or None where neither is known."""


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

    def __init__(
        self, plan: Plan, noisy: Noisy, columns: Sequence[Column], beta: Fraction
    ) -> None:
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
    """Where the true parts of one formula lie, at a common 95 %."""

    def __init__(self, maker: _Maker, expression: Expression, names: list[str]) -> None:
        self.maker = maker
        totalled = dict.fromkeys(
            column.name
            for part in _calls(expression)
            if part.function == "total"
            for column in columns_in(part)
        )
        self.parts = {name: maker.recipes[name].aggregate for name in names}
        functions = [part.function for part in self.parts.values()]
        self.alone = len(names) == 1 and functions[0] not in _OF_ONE
        self.share = None if totalled else _share_in(expression, maker)
        quotient = None if self.share is None else self.share.quotient
        self.expression = for_intervals(expression, quotient)
        self.known = all(function in _FORMULAS for function in functions)
        used = [(n, False) for n in names] + [(n, True) for n in totalled]
        measures = dict.fromkeys(
            (measure, whole)
            for name, whole in used
            for measure in maker.recipes[name].measures.values()
        )
        self.beta = maker.beta / max(len(measures), 1)
        self.totals = {("total", name.lower()): self._total(name) for name in totalled}
        self.outer: Expression = self.expression
        self.smooth: Smooth | None = None
        if self.share is None and not self.alone and self.known and None not in self.totals.values():
            self.smooth = self._smooth(list(measures))
        self.natural = self._natural()

    def ends(self, place: int) -> Enclosed:
        """Where the formula lies in one row."""
        smooth, interval = self.smooth, None
        if smooth is not None and smooth.partly[place]:
            inner = float(smooth.low[place]), float(smooth.high[place])
            interval = self._cut(evaluate(self.outer, {_SHARE: inner}, INTERVALS))
            if smooth.alone[place]:
                return interval
        box = evaluate(self.expression, {**self.of_row(place), **self.totals}, INTERVALS)
        if interval is None or not isinstance(box, tuple):
            return box
        return min(interval[0], box[0]), max(interval[1], box[1])

    def _smooth(self, measures: list[tuple[str, bool]]) -> Smooth | None:
        """The intervals of all rows by their joint noise, where the formula is a smooth one."""
        maker = self.maker
        inner, self.outer = _peeled(self.expression)
        own = list(dict.fromkeys(name for name, _ in measures))
        rows = len(maker.noisy.keys)
        others = [name for name, whole in measures if whole] if rows > 1 else []
        coordinates = [Coordinate(maker.noise[name]) for name in own]
        coordinates += [Coordinate(maker.noise[name], rows - 1) for name in others]
        if not rows or not coordinates or not known_laws(coordinates):
            return None
        entries = {name: maker.noisy.entries[name] for name in own}
        middles = [_doubles(entries[name]) for name in own]
        for name in others:
            total = sum(entries[name])
            middles.append(_doubles([total - entry for entry in entries[name]]))

        def formula(variables: list[Taylor]) -> Quotient:
            mine = dict(zip(own, variables, strict=False))
            whole = {**mine}
            for name, rest in zip(others, variables[len(own) :], strict=True):
                whole[name] = mine[name] + rest
            parts: dict[Any, Taylor] = {}
            for name, part in self.parts.items():
                parts[name.lower()] = _part_taylor(maker, part, mine)
                parts["total", name.lower()] = _part_taylor(maker, part, whole)
            match inner:
                case Call("/", (top, bottom)):
                    return taylor_of(top, parts), taylor_of(bottom, parts)
            return taylor_of(inner, parts), None

        try:
            return smooth_intervals(formula, middles, coordinates, maker.beta)
        except Exception:  # of whatever kind: an error would tell something that is not paid for
            return None

    def _natural(self) -> Enclosed:
        """What the formula can be at all, by what counts, means and variances can be."""
        ends: dict[Any, Enclosed] = {}
        for name, part in self.parts.items():
            within: Enclosed = (-_FAR, _FAR)
            if part.function in ("count", *_UNITS):
                within = (_NEAR, _FAR)
            elif part.function in ("mean", "variance", "std"):
                within = _aggregate(self.maker, part, {"rows": (0.0, 0.0)})
            ends[name.lower()] = ends["total", name.lower()] = within
        return evaluate(self.expression, ends, INTERVALS) if self.share is None else None

    def _cut(self, interval: Enclosed) -> Interval | None:
        if not isinstance(interval, tuple) or not isinstance(self.natural, tuple):
            return interval if isinstance(interval, tuple) else None
        low, high = self.natural
        low = 0.0 if 0 < low < 1 / _FAR else low
        return _clip(interval, (low, high)) if low <= high else interval

    def of_row(self, place: int) -> dict[str, Enclosed]:
        """The interval of each part in one row."""
        maker = self.maker
        if self.share is not None:
            return {_SHARE: self.share.interval(maker.noisy, place)}
        if self.alone:
            (name,) = self.parts
            cell = maker.columns[name].cells[place]
            known = cell.low is not None and cell.high is not None
            ends = (float(cell.low), float(cell.high)) if known else None  # type: ignore[arg-type]
            return {name.lower(): ends}
        return {
            name.lower(): self._part(part, place) if self.known else None
            for name, part in self.parts.items()
        }

    def _part(self, part: Aggregate, place: int) -> Enclosed:
        """The aggregate over the box of its measures."""
        maker, boxes = self.maker, {}
        for kind, measure in maker.recipes[part.name].measures.items():
            middle, half = (
                maker.noisy.entries[measure][place],
                maker.noise[measure].accuracy(self.beta),
            )
            boxes[kind] = _ends(middle - half, middle + half)
        return _aggregate(maker, part, boxes)

    def _total(self, name: str) -> Enclosed:
        maker, boxes = self.maker, {}
        part, measures = self.parts[name], maker.recipes[name].measures
        if part.function not in _FORMULAS or maker.selecting & set(measures.values()):
            return None
        for kind, measure in measures.items():
            entries, noise = maker.noisy.entries[measure], maker.noise[measure]
            rows = max(len(entries), 1)
            spread = Fraction(math.isqrt(math.ceil(noise.variance * rows / self.beta)) + 1)
            half = min(Fraction(rows * noise.accuracy(self.beta / rows)), spread)
            boxes[kind] = _ends(sum(entries) - half, sum(entries) + half)
        return _aggregate(maker, part, boxes)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Share:
    """A quotient whose divisor counts all rows: `reach.py` says which shares are possible."""

    quotient: Call
    values: str
    rows: str
    bounds: tuple[int, int]
    unit: Fraction
    reach: Reach

    def interval(self, noisy: Noisy, place: int) -> Interval:
        """Where it lies in one row, at 95 %."""
        top, rows = noisy.entries[self.values][place], noisy.entries[self.rows][place]
        ends = quotient_interval(top, rows, self.bounds, self.reach)
        low, high = sorted(end * self.unit for end in ends)
        return _ends(low, high)


def _share_in(expression: Expression, maker: _Maker) -> _Share | None:
    """The one quotient by COUNT(*) that holds all columns of a formula, if there is such a one."""
    quotients = [part for part in _calls(expression) if part.function == "/"]
    for quotient in quotients:
        match quotient.arguments:
            case (top, ColumnName(rows)):
                factor, name = _multiple(top)
            case _:
                continue
        named = [column.name for column in columns_in(expression)]
        if name is None or name == rows or sorted(named) != sorted([name, rows]):
            continue
        measures = {measure.name: measure for measure in maker.plan.measures}
        above, below = (
            [measures[m] for m in maker.recipes[part].measures.values()] for part in (name, rows)
        )
        counted = len(below) == 1 and below[0].kind == "rows" and below[0].expression is None
        if not counted or len(above) != 1 or above[0].kind not in ("rows", "values"):
            continue
        if above == below:
            continue
        noises = [maker.noise[above[0].name], maker.noise[below[0].name]]
        count = above[0].kind == "rows"
        bounds = (0, 1) if count else (min(above[0].lowest, 0), max(above[0].highest, 0))
        most = max(map(abs, bounds))
        return _Share(
            quotient=quotient,
            values=above[0].name,
            rows=below[0].name,
            bounds=bounds,
            unit=factor * (Fraction(1) if count else above[0].step) / (1 << 20),
            reach=reach_of(noises, maker.beta, ratios=[most]),
        )
    return None


def _multiple(expression: Expression) -> tuple[Fraction, str | None]:
    """A column times a constant."""
    match expression:
        case ColumnName(name):
            return Fraction(1), name
        case Call("*", arguments):
            factor, column = Fraction(1), None
            for part in arguments:
                match part:
                    case Constant(int() | Fraction() as value) if not isinstance(value, bool):
                        factor *= value
                    case ColumnName(name) if column is None:
                        column = name
                    case _:
                        return factor, None
            return factor, column
    return Fraction(1), None


_AROUND = frozenset(
    {"clamp", "round", "floor", "ceil", "to_integer", "to_number", "sqrt", "negate", "abs"}
    | {"+", "-", "*", "/", "least", "greatest"}
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
    return expression, ColumnName(_SHARE)


def _doubles(integers: Sequence[int]) -> Box:
    """Doubles around integers."""
    near = np.array([float(integer) for integer in integers], dtype=float)
    if all(abs(integer) <= 1 << 53 for integer in integers):
        return near, near
    return np.nextafter(near, -np.inf), np.nextafter(near, np.inf)


def _part_taylor(maker: _Maker, part: Aggregate, measured: Mapping[str, Taylor]) -> Taylor:
    """An aggregate as a formula over its measures."""
    recipe = maker.recipes[part.name].measures
    of = {kind: measured[name] for kind, name in recipe.items()}
    some = next(iter(of.values()))
    if part.function in _UNITS:
        return some
    one = some.constant(weight_one(maker.plan.card))
    if part.function == "count":
        return some / one
    measure = next(m for m in maker.plan.measures if m.name == recipe["values"])
    step, centre = some.constant(measure.step), some.constant(measure.centre)
    if part.function == "sum":
        total = step * of["values"]
        return (total + centre * of["rows"] if "rows" in of else total) / one
    mean = of["values"] / of["rows"]
    if part.function == "mean":
        return centre + step * mean
    variance = step.square() * (of["squares"] / of["rows"] - mean.square())
    return variance if part.function == "variance" else variance.sqrt()


def _calls(expression: Expression) -> Iterator[Call]:
    if isinstance(expression, Call):
        yield expression
        for part in expression.arguments:
            yield from _calls(part)


def for_intervals(expression: Expression, quotient: Call | None = None) -> Expression:
    """The formula with x * x as the square of x, never below 0, and a share under its name.

    >>> for_intervals(Call("*", (ColumnName("n"), ColumnName("n")))).function
    'square'
    """
    if expression == quotient:
        return ColumnName(_SHARE)
    match expression:
        case Call("*", (one, other)) if one == other:
            return Call("square", (for_intervals(one, quotient),))
        case Call(function, arguments):
            return Call(function, tuple(for_intervals(part, quotient) for part in arguments))
    return expression


def _ends(low: Fraction | int, high: Fraction | int) -> Interval:
    """The doubles next to these, outwards."""
    if isinstance(low, int) and isinstance(high, int):  # compared with a double exactly
        start, end = float(low), float(high)
        start = math.nextafter(start, -math.inf) if start > low else start
        return start, math.nextafter(end, math.inf) if end < high else end
    return lower(Fraction(low)), upper(Fraction(high))


@lru_cache(maxsize=1024)
def _point(number: Fraction | int) -> Interval:
    return _ends(number, number)


def _aggregate(maker: _Maker, part: Aggregate, boxes: Mapping[Any, Interval]) -> Enclosed:
    """What an aggregate can be, given where its measures lie."""
    one = _point(weight_one(maker.plan.card))
    if part.function in _UNITS:
        return _from_zero(next(iter(boxes.values())))
    if part.function == "count":
        return _from_zero(_quotient(boxes["rows"], one))
    values = maker.recipes[part.name].measures["values"]
    measure = next(measure for measure in maker.plan.measures if measure.name == values)
    step, centre = _point(measure.step), _point(measure.centre)
    if part.function == "sum":
        total = _quotient(_product(step, boxes["values"]), one)
        if "rows" in boxes:
            total = _sum(total, _quotient(_product(centre, _from_zero(boxes["rows"])), one))
        return total
    assert part.bounds is not None
    within = _point(part.bounds[0])[0], _point(part.bounds[1])[1]
    rows = _from_zero(boxes["rows"])
    if part.function == "mean":
        if rows[0] <= 0:
            return within
        mean = _sum(centre, _product(step, _quotient(boxes["values"], rows)))
        return _clip(mean, within)
    half = _quotient(_difference((within[1], within[1]), (within[0], within[0])), (2.0, 2.0))
    widest = _square(half)[1]
    variance = (0.0, widest)
    if rows[0] > 0:
        mean = _quotient(boxes["values"], rows)
        squares = _quotient(_from_zero(boxes["squares"]), rows)
        variance = _product(_product(step, step), _difference(squares, _square(mean)))
        variance = _clip(variance, (0.0, widest))
    return variance if part.function == "variance" else _root(variance)


def _from_zero(interval: Interval) -> Interval:
    return max(interval[0], 0.0), max(interval[1], 0.0)


def _clip(interval: Interval, within: Interval) -> Interval:
    low, high = (min(max(end, within[0]), within[1]) for end in interval)
    return low, high


def _widen(low: float, high: float) -> Interval:
    """One unit in the last place further: each end was rounded once, to nearest."""
    return math.nextafter(low, -math.inf), math.nextafter(high, math.inf)


def _sum(a: Interval, b: Interval) -> Interval:
    return _widen(a[0] + b[0], a[1] + b[1])


def _difference(a: Interval, b: Interval) -> Interval:
    return _widen(a[0] - b[1], a[1] - b[0])


def _product(a: Interval, b: Interval) -> Interval:
    ends = [x * y for x in a for y in b]
    return _with_sign(_widen(min(ends), max(ends)), a, b)


def _with_sign(ends: Interval, a: Interval, b: Interval) -> Interval:
    """A product or quotient of two that are not below 0 is not, whatever the rounding."""
    low, high = ends
    if (a[0] >= 0 and b[0] >= 0) or (a[1] <= 0 and b[1] <= 0):
        return max(low, 0.0), high
    if (a[0] >= 0 and b[1] <= 0) or (a[1] <= 0 and b[0] >= 0):
        return low, min(high, 0.0)
    return ends


def _square(a: Interval) -> Interval:
    near, far = _absolute(a)
    low, high = _widen(near * near, far * far)
    return max(low, 0.0), high


def _quotient(a: Interval, b: Interval) -> Interval:
    """The quotient; b does not hold 0."""
    ends = [x / y for x in a for y in b]
    return _with_sign(_widen(min(ends), max(ends)), a, b)


def _root(a: Interval) -> Interval:
    low, high = _widen(math.sqrt(a[0]), math.sqrt(a[1]))
    return max(low, 0.0), high


def _chosen_branch(*values: Enclosed) -> Enclosed:
    """The branch of a CASE, where every condition before it is decided."""
    for test, value in zip(values[0::2], values[1::2], strict=False):
        if test is True:
            return value
        if test is not False:
            return None
    return values[-1] if len(values) % 2 else None


def _between(value: Enclosed, low: Enclosed, high: Enclosed) -> Enclosed:
    """CLAMP, also where nothing is known of what is clamped."""
    if not isinstance(low, tuple) or not isinstance(high, tuple):
        return None
    if value is None:
        return low[0], max(low[0], high[1])
    assert isinstance(value, tuple)
    return min(max(value[0], low[0]), high[0]), min(max(value[1], low[1]), high[1])


def _absolute(a: Interval) -> Interval:
    near = 0.0 if a[0] <= 0 <= a[1] else min(abs(a[0]), abs(a[1]))
    return near, max(abs(a[0]), abs(a[1]))


def _rounding(function: Callable[[float], float]) -> Callable[[Interval], Interval]:
    return lambda a: (float(function(a[0])), float(function(a[1])))


def _round(a: Interval, places: Interval = (0.0, 0.0)) -> Interval | None:
    if places[0] != places[1]:
        return None
    digits = int(min(max(places[0], -_MOST_PLACES), _MOST_PLACES))
    low, high = round(a[0], digits), round(a[1], digits)
    return _widen(low, high) if places[0] > 0 else (low, high)


def _hull(pick: Callable[[Iterable[float]], float]) -> Callable[..., Interval]:
    """The least or the greatest of some numbers."""
    return lambda *given: (pick(low for low, _ in given), pick(high for _, high in given))


def _is_equal(a: Interval, b: Interval) -> bool | None:
    return False if a[1] < b[0] or a[0] > b[1] else None


def _is_less(a: Interval, b: Interval) -> bool | None:
    return True if a[1] < b[0] else False if a[0] >= b[1] else None


def _opposite(value: Enclosed) -> bool | None:
    return not value if isinstance(value, bool) else None


_FUNCTIONS: Functions = MappingProxyType(
    {
        "and": all_true,
        "or": any_true,
        "not": _opposite,
        "case": _chosen_branch,
        "clamp": _between,
        "is_missing": lambda _: None,
        "+": lambda *terms: reduce(_sum, terms),
        "*": lambda *factors: reduce(_product, factors),
        "-": _difference,
        "/": lambda a, b: None if b[0] <= 0 <= b[1] else _quotient(a, b),
        "square": _square,
        "negate": lambda a: (-a[1], -a[0]),
        "abs": _absolute,
        "sqrt": lambda a: None if a[1] < 0 else _root(_from_zero(a)),
        "floor": _rounding(math.floor),
        "ceil": _rounding(math.ceil),
        "to_integer": _round,
        "round": _round,
        "to_number": lambda a: (a[0], a[1]),
        "least": _hull(min),
        "greatest": _hull(max),
        # which one is missing is not known
        "coalesce": lambda *given: (_hull(min)(*given)[0], _hull(max)(*given)[1]),
        "=": _is_equal,
        "<>": lambda a, b: _opposite(_is_equal(a, b)),
        "<": _is_less,
        ">=": lambda a, b: _opposite(_is_less(a, b)),
        ">": lambda a, b: _is_less(b, a),
        "<=": lambda a, b: _opposite(_is_less(b, a)),
    }
)
INTERVALS = Meaning(
    number=lambda value: value if isinstance(value, bool | tuple | None) else _point(value),
    functions=_FUNCTIONS,
    result=lambda ends: None if isinstance(ends, tuple) and any(map(math.isnan, ends)) else ends,
)
