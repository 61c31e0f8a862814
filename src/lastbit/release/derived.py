"""Derived columns: formulas over released numbers, and what is known of the true ones.

Law      the value is the formula over the released values of the row, each operation rounded once
         to a double (IEEE 754: +, -, *, / and sqrt are the same on every machine), missing where
         an operand is, where it would be infinite, and where a division by 0 would be
Theorem  free of charge: it is a function of released numbers and of constants of the question
Theorem  the interval holds the formula over the true (bounded, noiseless) aggregates in at least
         95 % of all releases. Let the parts be made of j measures. Each entry is within
         accuracy(1/(20 j)) of its noisy integer except with probability 1/(20 j), so all are at
         once in 95 % (union bound); then each part is in the interval that its definition gives
         over that box, and the formula in what interval arithmetic gives over these, every end
         rounded outwards. True counts are not negative, true means lie within their bounds: so
         intervals are cut there. A quotient whose divisor may be 0 has none
         - a total over d rows: its noise has d times the variance of one entry, so by Chebyshev it
           is within sqrt(20 j d v) of its noisy value, and by the union bound within
           d accuracy(1/(20 j d)): the lesser of the two
         - a mean, variance or quantile has an interval of 95 % of its own, which serves where it is
           the only part of a formula. That of a quantile, minimum or maximum cannot be split:
           beside other parts there is none
         - a share of all rows, N/COUNT(*) with N a sum of values within [low, high] or a count,
           lies between min(low, 0) and max(high, 0): it is tested as a mean is (`reach.py`), where
           a formula has no other part
Differs  no standard error is given. Parts that several terms share are taken to vary apart, which
         only widens the interval
Checked  tests/release/test_derived.py
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from types import MappingProxyType
from typing import Any, TypeAlias

from lastbit.exact import lower, upper
from lastbit.kernel import Noisy
from lastbit.release.intervals import Cell, Column
from lastbit.release.reach import MeasureNoise, Reach, quotient_interval, reach_of
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

_BETA = Fraction(1, 20)
_UNITS = ("count_units", "count_distinct")
_FORMULAS = ("count", *_UNITS, "sum", "mean", "variance", "std")
_OF_ONE = ("count", *_UNITS, "sum")
_SHARE = ""  # no column has this name
_MOST_PLACES = 400

Interval: TypeAlias = tuple[float, float]
Enclosed: TypeAlias = Interval | bool | None
"""Where a number lies, what a condition is, or None where neither is known."""


def derived_columns(plan: Plan, noisy: Noisy, columns: Sequence[Column]) -> list[Column]:
    """The derived columns of a query, made of its released ones."""
    maker = _Maker(plan, noisy, columns)
    return [
        Column(name=one.name, function="derived", aggregate=one.name, cells=list(maker.cells(one)))
        for one in plan.query.derived
    ]


class _Maker:
    """All that the derived columns of one answer share."""

    def __init__(self, plan: Plan, noisy: Noisy, columns: Sequence[Column]) -> None:
        self.plan, self.noisy = plan, noisy
        self.columns = {column.name: column for column in columns}
        self.recipes = {recipe.aggregate.name: recipe for recipe in plan.recipes}
        self.noise: dict[str, MeasureNoise] = {}
        self.found: set[str] = set()
        for part in plan.parts:
            if not isinstance(part, RankPart) and part.measure is not None:
                self.noise[part.measure] = MeasureNoise(part.law)
                if isinstance(part, PartitionSelection | GaussianSelection):
                    self.found.add(part.measure)

    def cells(self, derived: Derived) -> Iterator[Cell]:
        names = list(dict.fromkeys(column.name for column in columns_in(derived.expression)))
        totals = {name: self._total(name) for name in names}
        parts = _Intervals(self, derived.expression, names)
        for i in range(len(self.noisy.keys)):
            row = {name: self.columns[name].cells[i].value for name in names}
            value = value_of(derived.expression, row, totals)
            ends = enclosed(parts.expression, parts.of_row(i), parts.totals)
            if not isinstance(ends, tuple) or not all(map(math.isfinite, ends)):
                yield Cell(value, None, None, None)
                continue
            low, high = ends
            if value is not None:
                low, high = min(low, value), max(high, value)
            yield Cell(value, None, low, high)

    def _total(self, name: str) -> float | None:
        values = [cell.value for cell in self.columns[name].cells]
        return total_of(values)


def total_of(values: Sequence[float | int | None]) -> float | None:
    """The sum of released numbers, rounded once, whatever their order; missing if one is."""
    try:
        known = [float(value) for value in values if value is not None]
        return math.fsum(known) if len(known) == len(values) else None
    except OverflowError:
        return None


def value_of(
    expression: Expression, row: Mapping[str, float | int | None], totals: Mapping[str, Any]
) -> float | None:
    """The formula over released numbers.

    >>> half = Call("/", (ColumnName("a"), ColumnName("b")))
    >>> value_of(half, {"a": 1, "b": 2}, {}), value_of(half, {"a": 1, "b": 0}, {})
    (0.5, None)
    """
    found = _value(expression, row, totals)
    return found if isinstance(found, float) else None


def _value(expression: Expression, row: Mapping[str, Any], totals: Mapping[str, Any]) -> Any:
    """A double, a truth value, or None."""
    try:
        match expression:
            case Constant(value):
                return value if value is None or isinstance(value, bool) else float(value)  # type: ignore[arg-type]
            case ColumnName(name):
                return None if row[name] is None else float(row[name])
            case Call("total", (ColumnName(name),)):
                return totals[name]
            case Call(function, arguments):
                values = [_value(argument, row, totals) for argument in arguments]
                found = _computed(function, values)
                return found if isinstance(found, bool) or found is None else _finite(found)
    except (ArithmeticError, ValueError):
        return None


def _computed(function: str, values: list[Any]) -> Any:
    match function:
        case "case":
            for test, value in zip(values[0::2], values[1::2], strict=False):
                if test is True:
                    return value
            return values[-1] if len(values) % 2 else None
        case "and" | "or":
            by = function == "or"
            return by if by in values else None if None in values else not by
        case "is_missing":
            return values[0] is None
    present = [value for value in values if value is not None]
    match function:
        case "coalesce":
            return present[0] if present else None
        case "least":
            return min(present, default=None)
        case "greatest":
            return max(present, default=None)
    if len(present) < len(values):
        return None
    return _FUNCTIONS[function](*values)


def _finite(number: float) -> float | None:
    return float(number) + 0.0 if math.isfinite(number) else None


def _sum(*terms: float) -> float:
    found = terms[0]
    for term in terms[1:]:
        found += term
    return found


def _product(*factors: float) -> float:
    found = factors[0]
    for factor in factors[1:]:
        found *= factor
    return found


def _rounded(value: float, places: float = 0.0) -> float:
    return float(round(value, int(min(max(places, -_MOST_PLACES), _MOST_PLACES))))


_FUNCTIONS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "+": _sum,
        "*": _product,
        "-": lambda a, b: a - b,
        "/": lambda a, b: a / b,
        "negate": lambda a: -a,
        "abs": abs,
        "floor": math.floor,
        "ceil": math.ceil,
        "round": _rounded,
        "sqrt": math.sqrt,
        "clamp": lambda value, low, high: min(max(value, low), high),
        "to_number": float,
        "to_integer": _rounded,
        "not": lambda a: not a,
        "=": lambda a, b: a == b,
        "<>": lambda a, b: a != b,
        "<": lambda a, b: a < b,
        "<=": lambda a, b: a <= b,
        ">": lambda a, b: a > b,
        ">=": lambda a, b: a >= b,
    }
)


def _totalled(expression: Expression) -> tuple[str, ...]:
    """The columns whose totals it names."""
    match expression:
        case Call("total", (ColumnName(name),)):
            return (name,)
        case Call(_, arguments):
            return tuple(dict.fromkeys(n for part in arguments for n in _totalled(part)))
    return ()


class _Intervals:
    """Where the true parts of one formula lie, at a common 95 %."""

    def __init__(self, maker: _Maker, expression: Expression, names: list[str]) -> None:
        self.maker, self.expression = maker, expression
        totalled = _totalled(expression)
        self.parts = {name: maker.recipes[name].aggregate for name in names}
        functions = [part.function for part in self.parts.values()]
        self.alone = len(names) == 1 and functions[0] not in _OF_ONE
        self.share = None if totalled else _share_in(expression, maker)
        if self.share is not None:
            self.expression = _replaced(expression, self.share.quotient)
        self.known = all(function in _FORMULAS for function in functions)
        used = [(n, False) for n in names] + [(n, True) for n in totalled]
        measures = dict.fromkeys(
            (measure, whole)
            for name, whole in used
            for measure in maker.recipes[name].measures.values()
        )
        self.beta = _BETA / max(len(measures), 1)
        self.totals: dict[str, Enclosed] = {name: self._total(name) for name in totalled}

    def of_row(self, place: int) -> dict[str, Enclosed]:
        """The interval of each part in one row."""
        maker = self.maker
        if self.share is not None:
            return {_SHARE: self.share.interval(maker.noisy, place)}
        if self.alone:
            (name,) = self.parts
            cell = maker.columns[name].cells[place]
            known = cell.low is not None and cell.high is not None
            return {name: (float(cell.low), float(cell.high)) if known else None}  # type: ignore[arg-type]
        if not self.known:
            return dict.fromkeys(self.parts)
        return {name: self._part(part, place) for name, part in self.parts.items()}

    def _part(self, part: Aggregate, place: int) -> Enclosed:
        """The aggregate over the box of its measures."""
        maker = self.maker
        names = maker.recipes[part.name].measures
        boxes: dict[str, Interval] = {}
        for kind, name in names.items():
            half = maker.noise[name].accuracy(self.beta)
            middle = maker.noisy.entries[name][place]
            boxes[kind] = _ends(middle - half, middle + half)
        return _aggregate(maker.plan, part, names, boxes)

    def _total(self, name: str) -> Enclosed:
        maker = self.maker
        part, names = self.parts[name], maker.recipes[name].measures
        if part.function not in _FORMULAS or maker.found & set(names.values()):
            return None
        boxes: dict[str, Interval] = {}
        for kind, measure in names.items():
            entries, noise = maker.noisy.entries[measure], maker.noise[measure]
            rows = max(len(entries), 1)
            each = rows * noise.accuracy(self.beta / rows)
            half = min(Fraction(each), _root_above(noise.variance * rows / self.beta))
            boxes[kind] = _ends(sum(entries) - half, sum(entries) + half)
        return _aggregate(maker.plan, part, names, boxes)


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
            reach=reach_of(noises, _BETA, ratios=[most]),
        )
    return None


def _multiple(expression: Expression) -> tuple[Fraction, str | None]:
    """A column times a constant."""
    match expression:
        case ColumnName(name):
            return Fraction(1), name
        case Call("*", arguments):
            factor, found = Fraction(1), None
            for part in arguments:
                match part:
                    case Constant(int() | Fraction() as value) if not isinstance(value, bool):
                        factor *= value
                    case ColumnName(name) if found is None:
                        found = name
                    case _:
                        return factor, None
            return factor, found
    return Fraction(1), None


def _calls(expression: Expression) -> Iterator[Call]:
    if isinstance(expression, Call):
        yield expression
        for part in expression.arguments:
            yield from _calls(part)


def _replaced(expression: Expression, quotient: Call) -> Expression:
    """The formula with the quotient named instead."""
    if expression == quotient:
        return ColumnName(_SHARE)
    if not isinstance(expression, Call):
        return expression
    parts = tuple(_replaced(part, quotient) for part in expression.arguments)
    return Call(expression.function, parts)


def _root_above(number: Fraction) -> Fraction:
    return Fraction(math.isqrt(math.ceil(number)) + 1)


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


def _aggregate(
    plan: Plan, part: Aggregate, names: Mapping[Any, str], boxes: Mapping[str, Interval]
) -> Enclosed:
    """What an aggregate can be, given where its measures lie."""
    one = _point(weight_one(plan.card))
    if part.function in _UNITS:
        return _from_zero(next(iter(boxes.values())))
    if part.function == "count":
        return _from_zero(_divided(boxes["rows"], one))
    measure = next(m for m in plan.measures if m.name == names["values"])
    step, centre = _point(measure.step), _point(measure.centre)
    if part.function == "sum":
        found = _divided(_times(step, boxes["values"]), one)
        if "rows" in boxes:
            found = _plus(found, _divided(_times(centre, _from_zero(boxes["rows"])), one))
        return found
    assert part.bounds is not None
    within = _point(part.bounds[0])[0], _point(part.bounds[1])[1]
    rows = _from_zero(boxes["rows"])
    if part.function == "mean":
        if rows[0] <= 0:
            return within
        mean = _plus(centre, _times(step, _divided(boxes["values"], rows)))
        return _cut(mean, within)
    half = _divided(_minus((within[1], within[1]), (within[0], within[0])), (2.0, 2.0))
    widest = _square(half)[1]
    variance = (0.0, widest)
    if rows[0] > 0:
        mean = _divided(boxes["values"], rows)
        squares = _divided(_from_zero(boxes["squares"]), rows)
        variance = _times(_times(step, step), _minus(squares, _square(mean)))
        variance = _cut(variance, (0.0, widest))
    if part.function == "variance":
        return variance
    return _monotone(math.sqrt, variance)


def _from_zero(interval: Interval) -> Interval:
    return max(interval[0], 0.0), max(interval[1], 0.0)


def _cut(interval: Interval, within: Interval) -> Interval:
    low, high = (min(max(end, within[0]), within[1]) for end in interval)
    return low, high


def _outwards(low: float, high: float) -> Interval:
    """One unit in the last place further: each end was rounded once, to nearest."""
    return math.nextafter(low, -math.inf), math.nextafter(high, math.inf)


def _plus(a: Interval, b: Interval) -> Interval:
    return _outwards(a[0] + b[0], a[1] + b[1])


def _minus(a: Interval, b: Interval) -> Interval:
    return _outwards(a[0] - b[1], a[1] - b[0])


def _times(a: Interval, b: Interval) -> Interval:
    ends = [x * y for x in a for y in b]
    return _signed(_outwards(min(ends), max(ends)), a, b)


def _signed(found: Interval, a: Interval, b: Interval) -> Interval:
    """A product or quotient of two that are not below 0 is not, whatever the rounding."""
    low, high = found
    if (a[0] >= 0 and b[0] >= 0) or (a[1] <= 0 and b[1] <= 0):
        return max(low, 0.0), high
    if (a[0] >= 0 and b[1] <= 0) or (a[1] <= 0 and b[0] >= 0):
        return low, min(high, 0.0)
    return found


def _square(a: Interval) -> Interval:
    near = 0.0 if a[0] <= 0 <= a[1] else min(abs(a[0]), abs(a[1]))
    far = max(abs(a[0]), abs(a[1]))
    low, high = _outwards(near * near, far * far)
    return max(low, 0.0), high


def _divided(a: Interval, b: Interval) -> Interval:
    """The quotient; b does not hold 0."""
    ends = [x / y for x in a for y in b]
    return _signed(_outwards(min(ends), max(ends)), a, b)


def _monotone(function: Callable[[float], float], a: Interval) -> Interval:
    low, high = _outwards(function(a[0]), function(a[1]))
    return (max(low, 0.0), high) if function is math.sqrt else (low, high)


def enclosed(
    expression: Expression, parts: Mapping[str, Enclosed], totals: Mapping[str, Enclosed]
) -> Enclosed:
    """Where the formula lies, given where its parts do; None where that is not known.

    >>> half = Call("/", (ColumnName("a"), ColumnName("b")))
    >>> enclosed(half, {"a": (1.0, 2.0), "b": (-1.0, 1.0)}, {}) is None     # b may be 0
    True
    """
    try:
        return _enclosed(expression, parts, totals)
    except (ArithmeticError, ValueError):
        return None


def _enclosed(
    expression: Expression, parts: Mapping[str, Enclosed], totals: Mapping[str, Enclosed]
) -> Enclosed:
    match expression:
        case Constant(value):
            if value is None or isinstance(value, bool):
                return value
            return _point(value)
        case ColumnName(name):
            return parts[name]
        case Call("total", (ColumnName(name),)):
            return totals[name]
        case Call("*", (one, other)) if one == other:
            found = enclosed(one, parts, totals)
            return _square(found) if isinstance(found, tuple) else None
        case Call(function, arguments):
            found = _bounded(function, [enclosed(part, parts, totals) for part in arguments])
            if isinstance(found, tuple) and any(map(math.isnan, found)):
                return None
            return found


def _bounded(function: str, values: list[Enclosed]) -> Enclosed:
    match function:
        case "case":
            return _chosen(values)
        case "and" | "or":
            by = function == "or"
            return by if by in values else None if None in values else not by
        case "not":
            return not values[0] if isinstance(values[0], bool) else None
        case "is_missing":
            return None
    intervals = [value for value in values if isinstance(value, tuple)]
    if function == "clamp" and values[0] is None and len(intervals) == 2:
        return intervals[0][0], max(intervals[0][0], intervals[1][1])  # wherever the first one is
    if len(intervals) < len(values):
        return None
    return _combined(function, intervals)


def _chosen(values: list[Enclosed]) -> Enclosed:
    """The branch of a CASE, where every condition before it is decided."""
    for test, value in zip(values[0::2], values[1::2], strict=False):
        if test is True:
            return value
        if test is not False:
            return None
    return values[-1] if len(values) % 2 else None


def _combined(function: str, given: list[Interval]) -> Enclosed:
    first, *rest = given
    match function:
        case "+" | "*":
            for other in rest:
                first = _plus(first, other) if function == "+" else _times(first, other)
            return first
        case "-":
            return _minus(first, rest[0])
        case "/":
            return None if rest[0][0] <= 0 <= rest[0][1] else _divided(first, rest[0])
        case "negate":
            return -first[1], -first[0]
        case "abs":
            near = 0.0 if first[0] <= 0 <= first[1] else min(abs(first[0]), abs(first[1]))
            return near, max(abs(first[0]), abs(first[1]))
        case "sqrt":
            return None if first[1] < 0 else _monotone(math.sqrt, _from_zero(first))
        case "floor" | "ceil" | "to_integer":
            step = {"floor": math.floor, "ceil": math.ceil}.get(function, _rounded)
            return float(step(first[0])), float(step(first[1]))
        case "round":
            if rest and rest[0][0] != rest[0][1]:
                return None
            places = rest[0][0] if rest else 0.0
            low, high = _rounded(first[0], places), _rounded(first[1], places)
            return _outwards(low, high) if places > 0 else (low, high)
        case "to_number":
            return first
        case "least" | "greatest" | "coalesce" | "clamp":
            return _picked(function, given)
    return _compared(function, first, rest[0])


def _picked(function: str, given: list[Interval]) -> Interval:
    lows, highs = [low for low, _ in given], [high for _, high in given]
    match function:
        case "least":
            return min(lows), min(highs)
        case "greatest":
            return max(lows), max(highs)
        case "clamp":
            return min(max(lows[0], lows[1]), lows[2]), min(max(highs[0], highs[1]), highs[2])
    return min(lows), max(highs)  # which one is missing is not known


def _compared(function: str, a: Interval, b: Interval) -> bool | None:
    below, above, apart = a[1] < b[0], a[0] > b[1], a[1] < b[0] or a[0] > b[1]
    match function:
        case "=" | "<>":
            return (function == "<>") if apart else None
        case "<" | ">=":
            if below or a[0] >= b[1]:
                return below == (function == "<")
        case "<=" | ">":
            if above or a[1] <= b[0]:
                return above == (function == ">")
    return None
