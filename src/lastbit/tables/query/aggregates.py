"""What can be asked of a column, in Python: `lb.mean("cost", 0, 500)` and its like.

Each gives an `AggregateSpec`: what is asked for, with SQL text for the expression. A table's
card makes an `Aggregate` of it (`aggregate_of`), by the same rules as SQL.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias

from lastbit.arguments import check_flags, listed, two
from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import Number, probability, rational, shown
from lastbit.tables.query.derived import Arithmetic, Derived, DerivedSpec
from lastbit.tables.query.expression import Constant, Expression
from lastbit.tables.query.query import Aggregate, Function
from lastbit.tables.query.rules import call
from lastbit.tables.sql.aggregates import bounded, counted, distinct, level_name, point_name
from lastbit.tables.sql.derived import Parts
from lastbit.tables.sql.rows import SelectedRows
from lastbit.tables.sql.statement import expression_of

Bounds = tuple[Fraction, Fraction]
Limit: TypeAlias = Number | None
Spec: TypeAlias = "AggregateSpec | DerivedSpec | PairSpec"


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateSpec(Arithmetic):
    """Something to release for every group; made by the functions of this file."""

    function: Function
    expression: str | None = None
    bounds: Bounds | None = None
    nullable: bool | None = None
    level: Fraction | None = None
    edges: tuple[Fraction, ...] | None = None
    intervals: bool = True
    levels: tuple[Fraction, ...] | None = None
    """Of several quantiles; `agg` makes a column of each."""

    def __str__(self) -> str:
        """As it would be written: mean(cost, 0, 500)."""
        numbers = (self.level, *(self.levels or ()), *(self.bounds or ()), *(self.edges or ()))
        parts = [self.expression, *(shown(n) for n in numbers if n is not None)]
        return f"{self.function}({', '.join(part for part in parts if part is not None)})"


Wanted = AggregateSpec
"""What `count()`, `mean()` and the others give: the first name of `AggregateSpec`."""


def count(expression: str | None = None) -> AggregateSpec:
    """How many rows there are, or how many have a value.

    >>> count()
    AggregateSpec(function='count', expression=None, bounds=None, nullable=None, ...)
    """
    return AggregateSpec(function="count", expression=expression)


def count_units() -> AggregateSpec:
    """How many different units (patients, households) have a row.

    >>> print(count_units())
    count_units()
    """
    return AggregateSpec(function="count_units")


def count_distinct(expression: str) -> AggregateSpec:
    """How many different values there are, where one unit names a limited number of its own.

    >>> print(count_distinct("dest"))
    count_distinct(dest)
    """
    return AggregateSpec(function="count_distinct", expression=expression)


def sum(
    expression: str, low: Limit = None, high: Limit = None, *, nullable: bool | None = None
) -> AggregateSpec:
    """The sum of values, each clamped to [low, high]; without bounds, the card's hold.

    >>> import lastbit as lb
    >>> print(lb.sum("cost", 0, 500))
    sum(cost, 0, 500)
    """
    return _number("sum", expression, low, high, nullable)


def mean(
    expression: str, low: Limit = None, high: Limit = None, *, nullable: bool | None = None
) -> AggregateSpec:
    """The mean of the values that are there. With nullable=False the count of rows is shared.

    >>> mean("cost", 0, 500).bounds
    (Fraction(0, 1), Fraction(500, 1))
    """
    return _number("mean", expression, low, high, nullable)


def variance(
    expression: str, low: Limit = None, high: Limit = None, *, nullable: bool | None = None
) -> AggregateSpec:
    """The variance of the values themselves (divided by n, not by n - 1).

    >>> print(variance("age", 0, 120))
    variance(age, 0, 120)
    """
    return _number("variance", expression, low, high, nullable)


def std(
    expression: str, low: Limit = None, high: Limit = None, *, nullable: bool | None = None
) -> AggregateSpec:
    """The standard deviation of the values themselves: the root of the variance.

    >>> print(std("age", 0, 120))
    std(age, 0, 120)
    """
    return _number("std", expression, low, high, nullable)


def median(
    expression: str, low: Limit = None, high: Limit = None, *, intervals: bool = True
) -> AggregateSpec:
    """The value in the middle.

    >>> print(median("age", 0, 120))
    quantile(age, '0.5', 0, 120)
    """
    return quantile(expression, "1/2", low, high, intervals=intervals)


def quantile(
    expression: str,
    level: Number,
    low: Limit = None,
    high: Limit = None,
    *,
    intervals: bool = True,
) -> AggregateSpec:
    """The value below which the share `level` of values lies.

    Its confidence interval takes more than half of the price; with intervals=False the value gets
    all of it.

    >>> print(quantile("age", "0.9", 0, 120))
    quantile(age, '0.9', 0, 120)
    """
    check_flags(intervals=intervals)
    return AggregateSpec(
        function="quantile",
        expression=expression,
        bounds=_bounds(low, high),
        level=_level(level),
        intervals=intervals,
    )


def quantiles(
    expression: str,
    levels: Iterable[Number],
    low: Limit = None,
    high: Limit = None,
    *,
    intervals: bool = True,
) -> AggregateSpec:
    """Several quantiles at one price, in order: a column for each, named after its percentage.

    >>> [name for name, _ in specs_of("age", quantiles("age", ["0.25", "0.5", "0.975"], 0, 100))]
    ['age_25', 'age_50', 'age_97_5']
    """
    check_flags(intervals=intervals)
    remedy = 'pass, say, ["0.25", "0.5", "0.75"]'
    shares = tuple(_level(level) for level in listed(levels, "levels", remedy=remedy))
    if not shares or len(set(shares)) < len(shares):
        raise InvalidParameter(
            "levels", problem="are none, or one comes twice", remedy="name each level once"
        )
    return AggregateSpec(
        function="quantile",
        expression=expression,
        bounds=_bounds(low, high),
        levels=shares,
        intervals=intervals,
    )


def cdf(
    expression: str, points: Iterable[Number], low: Limit = None, high: Limit = None
) -> AggregateSpec:
    """The share of values up to each point, never falling: a column for each, named after it.

    Read off the noisy tree of ranges that quantiles of the same expression and bounds share.

    >>> [name for name, _ in specs_of("wait", cdf("wait", [10, "22.5", -1], -9, 240))]
    ['wait_10', 'wait_22_5', 'wait_minus_1']
    """
    asked = listed(points, "points", remedy="pass, say, [10, 30, 60]")
    edges = tuple(rational(point, "points") for point in asked)
    if not edges or len(set(edges)) < len(edges):
        raise InvalidParameter(
            "points", problem="are none, or one comes twice", remedy="name each point once"
        )
    return AggregateSpec(
        function="cdf", expression=expression, bounds=_bounds(low, high), edges=edges
    )


def specs_of(name: str, wanted: Spec) -> Iterator[tuple[str, Spec]]:
    """One name and thing to release for every column: several for `quantiles` and `cdf`."""
    if isinstance(wanted, AggregateSpec) and wanted.function == "cdf":
        for point in wanted.edges or ():
            yield f"{name}_{point_name(point)}", replace(wanted, edges=(point,))
        return
    if not isinstance(wanted, AggregateSpec) or wanted.levels is None:
        yield name, wanted
        return
    for level in wanted.levels:
        yield f"{name}_{level_name(level)}", replace(wanted, level=level, levels=None)


def number_texts(wanted: Any) -> Iterator[str]:
    """The expressions that a thing to release uses as numbers."""
    match wanted:
        case AggregateSpec(function=function, expression=str(text)):
            if function not in ("count", "count_units", "count_distinct"):
                yield text
        case PairSpec(y=y, x=x):
            yield from (y, x)
        case DerivedSpec(arguments=parts):
            for part in parts:
                yield from number_texts(part)


def _level(level: Number) -> Fraction:
    remedy = 'pass, say, "0.9"; or use min and max'
    return probability(level, "level", zero=False, one=False, remedy=remedy)


def min(expression: str, low: Limit = None, high: Limit = None) -> AggregateSpec:
    """A value near the least: private, so some rows lie below it.

    >>> import lastbit as lb
    >>> print(lb.min("age", 0, 120))
    min(age, 0, 120)
    """
    return _number("min", expression, low, high)


def max(expression: str, low: Limit = None, high: Limit = None) -> AggregateSpec:
    """A value near the greatest: private, so some rows lie above it.

    >>> import lastbit as lb
    >>> print(lb.max("age", 0, 120))
    max(age, 0, 120)
    """
    return _number("max", expression, low, high)


def histogram(expression: str, edges: Iterable[Number]) -> AggregateSpec:
    """How many values lie in each bin [e_0, e_1), [e_1, e_2) ...; the last is closed.

    >>> histogram("age", [0, 18, 65]).edges
    (Fraction(0, 1), Fraction(18, 1), Fraction(65, 1))
    """
    ends = listed(edges, "edges", remedy="pass, say, [0, 18, 65]")
    return AggregateSpec(
        function="histogram",
        expression=expression,
        edges=tuple(rational(edge, "edges") for edge in ends),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PairSpec(Arithmetic):
    """A statistic of two columns, made of sums; by `correlation`, `slope` and their like."""

    kind: str
    y: str
    x: str
    y_bounds: Bounds | None = None
    x_bounds: Bounds | None = None

    def __str__(self) -> str:
        return f"{self.kind}({self.y}, {self.x})"


Interval: TypeAlias = tuple[Number, Number] | None


def covariance(x: str, y: str, *, x_bounds: Interval = None, y_bounds: Interval = None) -> PairSpec:
    """The covariance of two columns over the rows that have both (divided by n, not n - 1).

    >>> print(covariance("age", "income"))
    covariance(age, income)
    """
    return _pair("covariance", x, y, x_bounds, y_bounds)


def correlation(
    x: str, y: str, *, x_bounds: Interval = None, y_bounds: Interval = None
) -> PairSpec:
    """Pearson's correlation of two columns, between -1 and 1.

    >>> print(correlation("age", "income", x_bounds=(0, 100), y_bounds=(0, 10**6)))
    correlation(age, income)
    """
    return _pair("correlation", x, y, x_bounds, y_bounds)


def slope(y: str, x: str, *, y_bounds: Interval = None, x_bounds: Interval = None) -> PairSpec:
    """By how much y grows with x, on the line of least squares.

    >>> print(slope("income", "age"))
    slope(income, age)
    """
    return _pair("slope", y, x, y_bounds, x_bounds)


def intercept(y: str, x: str, *, y_bounds: Interval = None, x_bounds: Interval = None) -> PairSpec:
    """Where the line of least squares is at x = 0.

    >>> print(intercept("income", "age"))
    intercept(income, age)
    """
    return _pair("intercept", y, x, y_bounds, x_bounds)


def regression(
    y: str, x: str, *, y_bounds: Interval = None, x_bounds: Interval = None
) -> dict[str, PairSpec]:
    """The line of least squares, for agg: `.agg(**lb.regression("delay", "distance"))`.

    >>> list(regression("delay", "distance"))
    ['slope', 'intercept', 'r_squared']
    """
    kinds = ("slope", "intercept", "r_squared")
    return {kind: _pair(kind, y, x, y_bounds, x_bounds) for kind in kinds}


def _pair(kind: str, first: str, second: str, one: Interval, other: Interval) -> PairSpec:
    remedy = "pass y_bounds=(0, 500), say"
    both = [
        None if pair is None else _bounds(*two(pair, "bounds", remedy=remedy))
        for pair in (one, other)
    ]
    return PairSpec(kind=kind, y=first, x=second, y_bounds=both[0], x_bounds=both[1])


def columns_asked(
    asked: Iterable[tuple[str, AggregateSpec | DerivedSpec | PairSpec]], rows: SelectedRows
) -> tuple[tuple[Aggregate, ...], tuple[Derived, ...], tuple[str, ...] | None]:
    """What was asked by name: aggregates, formulas over them, and which of them are shown."""
    wanted = list(asked)
    parts = Parts(rows, [name for name, _ in wanted])
    for name, one in wanted:
        if not isinstance(one, DerivedSpec | PairSpec):
            parts.aggregates.append(aggregate_of(name, one, rows))
    for name, one in wanted:
        if isinstance(one, DerivedSpec | PairSpec):
            expression = parts.typed(_formula(one, parts))
            parts.derived.append(Derived(name=name, expression=expression))
    shown = parts.shown([name for name, _ in wanted])
    return tuple(parts.aggregates), tuple(parts.derived), shown


def _formula(spec: Any, parts: Parts) -> Expression:
    match spec:
        case AggregateSpec():
            return parts.column(aggregate_of("part", spec, parts.rows))
        case PairSpec():
            first, second = (expression_of(text, parts.rows) for text in (spec.y, spec.x))
            return parts.statistic(spec.kind, first, second, (spec.y_bounds, spec.x_bounds))
        case DerivedSpec(function, arguments):
            return call(function, *(_formula(part, parts) for part in arguments))
        case int() | Fraction():
            return Constant(spec)
    raise WrongType("formula", problem="is malformed", remedy="combine aggregates and numbers")


def aggregate_of(name: str, wanted: AggregateSpec, rows: SelectedRows) -> Aggregate:
    """What was asked, under this name, of the card's table."""
    card = rows.card
    if not isinstance(wanted, AggregateSpec):
        problem = "is not an aggregate"
        raise InvalidParameter(name, problem=problem, remedy='pass, say, lb.mean("cost", 0, 500)')
    if wanted.nullable not in (None, True, False):
        raise WrongType(name, problem="has a nullable that is neither", remedy="pass True or False")
    if wanted.function == "count_units":
        if card.unit is None:
            raise InvalidParameter(
                name, problem="counts units, and each row is one", remedy="use count()"
            )
        return Aggregate(name=name, function="count_units")
    if wanted.expression is None:
        return Aggregate(name=name, function="count", nullable=False)
    expression = expression_of(wanted.expression, rows)
    if wanted.function == "count":
        return counted(name, expression, card)
    if wanted.function == "count_distinct":
        return distinct(name, expression, card)
    return bounded(
        name,
        wanted.function,
        expression,
        card,
        bounds=wanted.bounds,
        nullable=wanted.nullable,
        level=wanted.level,
        edges=wanted.edges,
        intervals=wanted.intervals,
    )


def _number(
    function: Function, expression: str, low: Limit, high: Limit, nullable: bool | None = None
) -> AggregateSpec:
    bounds = _bounds(low, high)
    return AggregateSpec(function=function, expression=expression, bounds=bounds, nullable=nullable)


def _bounds(low: Number | None, high: Number | None) -> Bounds | None:
    if low is None and high is None:
        return None
    if low is None or high is None:
        raise InvalidParameter(
            "bounds", problem="are only one", remedy='pass both: lb.mean("cost", 0, 500)'
        )
    return rational(low, "low"), rational(high, "high")
