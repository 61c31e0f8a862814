"""Expressions over aggregates: which parts they are made of, and what statistics of pairs mean.

Law      with x and y moved to around 0 by the middles of their bounds, and n, X, Y, XX, YY, XY the
         count and the sums over rows in which both have a value, the covariance is
         (XY - X Y/n)/n, the slope (XY - X Y/n)/(XX - X X/n), the correlation
         (XY - X Y/n)/sqrt((XX - X X/n)(YY - Y Y/n)). Moving changes none of them
Theorem  x within [-a, a] and y within [-b, b] give products within [-ab, ab] and squares within
         [0, a**2]: so each sum is one of bounded values, and costs what such a sum costs
         (`plan/sensitivity.py`). All else is post-processing of released sums
Differs  values beyond their bounds count as the bound, in the products too
Checked  tests/release/test_derived.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import floor
from types import MappingProxyType
from typing import Any

from lastbit.tables.card.schema import DataCard
from lastbit.tables.limits import refused
from lastbit.tables.query.derived import Derived, columns_in, hidden_name
from lastbit.tables.query.expression import (
    Call,
    ColumnName,
    ColumnType,
    Constant,
    Expression,
)
from lastbit.tables.query.query import Aggregate
from lastbit.tables.query.rules import call
from lastbit.tables.query.types import card_types, known_of, type_of, typed, whole_quotient
from lastbit.tables.sql.aggregates import (
    aggregate_from,
    bounded,
    is_aggregate,
    is_histogram,
    is_of_distinct,
    unbounded,
)
from lastbit.tables.sql.distinct import of_distinct
from lastbit.tables.sql.expressions import translated
from lastbit.tables.sql.parse import kind_of, names, taken
from lastbit.tables.sql.rows import SelectedRows
from lastbit.tables.sql.words import written

COUNTS = ("count", "count_units", "count_distinct")
_ADDED = (*COUNTS, "sum")
_WHOLE = ("sum", "min", "max")

Bounds = tuple[Fraction, Fraction]


def has_aggregate(node: Any) -> bool:
    """Whether an aggregate, or a statistic made of some, stands anywhere in it."""
    return any(
        is_aggregate(part) or is_of_distinct(part) or kind_of(part) in _KINDS
        for part in node.walk()
    )


def released_type(part: Aggregate, card: DataCard) -> ColumnType:
    """Whether it is whole without its noise, as DuckDB's is: that decides what a // b means."""
    if part.function in COUNTS:
        return "integer"
    whole = part.expression and type_of(part.expression, card_types(card)) == "integer"
    return "integer" if whole and part.function in _WHOLE else "number"


class Parts:
    """The released columns of a query while it is read; a part that is new is added, unseen."""

    def __init__(self, rows: SelectedRows, names: Iterable[str]) -> None:
        self.rows = rows
        self.used = set(names)
        self.aggregates: list[Aggregate] = []
        self.derived: list[Derived] = []
        self.formulas: list[str] = []
        """The names of derived columns that will be there."""

    def column(self, asked: Aggregate, plain: str | None = None) -> ColumnName:
        """The column that releases this aggregate; `plain` is its name if it is new."""
        for part in self.aggregates:
            if replace(part, name=asked.name) == asked:
                return ColumnName(part.name)
        name = hidden_name(plain or asked.function, None if plain else asked.expression, self.used)
        self.used.add(name)
        self.aggregates.append(replace(asked, name=name))
        return ColumnName(name)

    def named(self, expression: Expression) -> Derived:
        """A derived column that is not shown, to sort by."""
        name = hidden_name("sorted_by", None, self.used)
        self.used.add(name)
        self.derived.append(Derived(name=name, expression=expression))
        return self.derived[-1]

    def shown(self, selected: Iterable[str]) -> tuple[str, ...] | None:
        """The columns of the answer in this order; None where they are the aggregates, as ever."""
        every = [part.name for part in self.aggregates] + [one.name for one in self.derived]
        found = tuple(name for name in selected if name in every)
        plain = not self.derived and list(found) == [part.name for part in self.aggregates]
        return None if plain else found

    def expression(self, node: Any) -> Expression:
        """An expression over aggregates."""
        if any(map(is_histogram, node.walk())):
            raise refused("HISTOGRAM", "is many columns", "select it by itself")
        return self.typed(translated(node, self._resolve))

    def typed(self, expression: Expression) -> Expression:
        """The expression, if it is a number."""
        found = _quotients_by_rounding(typed(expression, self.type_of))
        if type_of(found, self.type_of) not in ("integer", "number"):
            raise refused(
                "an expression over aggregates", "is not a number", "compare them in HAVING instead"
            )
        return found

    def type_of(self, column: ColumnName) -> ColumnType:
        """The type of a released column."""
        found = (part for part in self.aggregates if part.name == column.name)
        return next((released_type(part, self.rows.card) for part in found), "number")

    def _resolve(self, node: Any) -> Expression:
        kind = kind_of(node)
        if is_aggregate(node):
            asked = aggregate_from(node, "part", self.rows.card, self.rows.resolve)
            return self.column(asked)
        if is_of_distinct(node):
            return of_distinct(node, self)
        if kind in _KINDS:
            first, second = (
                translated(part, self.rows.resolve) for part in taken(node, "this", "expression")
            )
            return self.statistic(_KINDS[kind], first, second)
        if kind == "Window":
            return self._total(node)
        if kind == "Log":
            return self._logarithm(node)
        if kind == "Column":
            for known in self._named(node):
                return self._released(known)
            remedy = "aggregate it; a key stands by itself"
            raise refused(str(node.name), "stands beside aggregates row by row", remedy)
        return self.rows.resolve(node)

    def names_released(self, node: Any) -> bool:
        """Whether it names an aggregate by its alias, as in SUM(a) AS s, COUNT(*) AS n, s / n."""
        return any(self._named(part) for part in node.walk() if kind_of(part) == "Column")

    def _named(self, node: Any) -> list[str]:
        """The aggregate or formula whose alias this is, unless it is a column of the table."""
        what, table = taken(node, "this", "table")
        if table is not None or kind_of(what) != "Identifier" or any(self.rows.meant(what, None)):
            return []
        single = [part.name for part in self.aggregates if part.function != "histogram"]
        return [name for name in (*single, *self.formulas) if names(what, name)]

    def _released(self, name: str) -> Expression:
        """A released column by its name; a formula is written out."""
        for one in self.derived:
            if one.name == name:
                return one.expression
        if name in self.formulas:
            raise refused(name, "is named before it is computed", "select it further to the left")
        return ColumnName(name)

    def _logarithm(self, node: Any) -> Expression:
        """LOG(x), which is to base 10, LOG2(x) or LOG(base, x)."""
        parts = [part for part in taken(node, "this", "expression") if part is not None]
        base, value = [Constant(10), *(translated(part, self._resolve) for part in parts)][-2:]
        return Call("log", (base, value))

    def _total(self, node: Any) -> Expression:
        """SUM(aggregate) OVER (): over all rows of the answer."""
        _check_window(node)
        inner, over = taken(node, "this", "over")
        if kind_of(inner) == "Sum" and over == "OVER":
            (value,) = taken(inner, "this")
            if is_aggregate(value):
                asked = aggregate_from(value, "part", self.rows.card, self.rows.resolve)
                if asked.function in _ADDED:
                    return Call("total", (self.column(asked),))
        raise refused(
            "a window function",
            "is known as a sum over the whole answer only",
            "write SUM(COUNT(*)) OVER (), or group instead",
        )

    def statistic(
        self,
        kind: str,
        first: Expression,
        second: Expression,
        bounds: tuple[Bounds | None, Bounds | None] = (None, None),
    ) -> Expression:
        """A statistic of two columns; of REGR_ functions the first is y, the second x."""
        pair = _Pair(self, first, second, bounds, kind)
        return _STATISTICS[kind](pair)


@dataclass(frozen=True, slots=True)
class _Side:
    """One of the two columns: clamped, and moved to around 0 by its centre."""

    expression: Expression
    centre: Fraction
    bounds: Bounds


class _Pair:
    """The count and the sums that statistics of two columns are made of, each asked for once."""

    def __init__(
        self,
        parts: Parts,
        first: Expression,
        second: Expression,
        bounds: tuple[Bounds | None, Bounds | None],
        kind: str,
    ) -> None:
        self.parts = parts
        card = parts.rows.card
        self.y, own, first_may_miss = _centred(first, card, bounds[0], kind)
        self.x, other, second_may_miss = _centred(second, card, bounds[1], kind)
        sides = ((own, first_may_miss), (other, second_may_miss))
        missing = [call("is_missing", value) for value, nullable in sides if nullable]
        # in one order, so that CORR(x, y) and REGR_SLOPE(y, x) share their parts
        there = [call("not", part) for part in sorted(dict.fromkeys(missing), key=repr)]
        self.there = there[0] if len(there) == 1 else call("and", *there) if there else None

    @property
    def n(self) -> Expression:
        if self.there is None:
            return self.parts.column(Aggregate(name="part", function="count", nullable=False))
        both = call("case", self.there, Constant(1))
        both_there = Aggregate(name="part", function="count", expression=both)
        return self.parts.column(both_there, "pairs")

    def sum(self, *sides: _Side) -> Expression:
        """The sum of one side, or of a product of two."""
        sides = tuple(sorted(sides, key=repr))
        value, (low, high) = sides[0].expression, sides[0].bounds
        if len(sides) == 2:
            value = call("*", value, sides[1].expression)
            ends = [a * b for a in (low, high) for b in sides[1].bounds]
            low, high = (Fraction(0) if sides[0] == sides[1] else min(ends)), max(ends)
        if self.there is not None:
            value = call("case", self.there, value)
        card = self.parts.rows.card
        named = "_".join(["sum", *(first_column(side.expression) for side in sides)])
        return self.parts.column(bounded("part", "sum", value, card, bounds=(low, high)), named)

    def moment(self, one: _Side, other: _Side) -> Expression:
        """XY - X Y/n: n times the covariance."""
        product = call("*", self.sum(one), self.sum(other))
        return call("-", self.sum(one, other), call("/", product, self.n))

    def mean(self, side: _Side) -> Expression:
        middle = call("/", self.sum(side), self.n)
        return middle if not side.centre else call("+", _number(side.centre), middle)

    def covariance(self, *, less: int = 0) -> Expression:
        count = call("-", self.n, Constant(less)) if less else self.n
        return call("/", self.moment(self.x, self.y), count)

    def slope(self) -> Expression:
        return call("/", self.moment(self.x, self.y), self.moment(self.x, self.x))

    def intercept(self) -> Expression:
        return call("-", self.mean(self.y), call("*", self.slope(), self.mean(self.x)))

    def correlation(self) -> Expression:
        root = call("sqrt", call("*", self.moment(self.x, self.x), self.moment(self.y, self.y)))
        quotient = call("/", self.moment(self.x, self.y), root)
        return call("clamp", quotient, Constant(-1), Constant(1))

    def determination(self) -> Expression:
        both = self.moment(self.x, self.y)
        spread = call("*", self.moment(self.x, self.x), self.moment(self.y, self.y))
        return call("clamp", call("/", call("*", both, both), spread), Constant(0), Constant(1))


def _quotients_by_rounding(expression: Expression) -> Expression:
    """The same with a // b of counts as a / b cut off towards 0: released numbers have no rest."""
    if not isinstance(expression, Call):
        return expression
    if (parts := whole_quotient(expression)) is not None:
        exact = call("/", *map(_quotients_by_rounding, parts))
        above = call(">=", exact, Constant(0))
        return call("case", above, call("floor", exact), call("ceil", exact))
    return Call(expression.function, tuple(map(_quotients_by_rounding, expression.arguments)))


def first_column(expression: Expression) -> str:
    """What a part is called after."""
    return next((column.name for column in columns_in(expression)), "constant")


def _number(value: Fraction) -> Constant:
    return Constant(int(value) if value.denominator == 1 else value)


def _check_window(node: Any) -> None:
    """Refuse ranks, shifted rows and windows of their own by the function's name."""
    inner = node.args.get("this")
    while kind_of(inner) in ("IgnoreNulls", "RespectNulls", "Filter"):
        inner = inner.args.get("this")
    given = [node.args.get(name) for name in ("partition_by", "order", "spec")]
    if kind_of(inner) == "Sum" and not any(given):
        return
    problem = "is a window function, and only sums over the whole answer are known"
    remedy = "write SUM(COUNT(*)) OVER (); ORDER BY n DESC puts the groups of the answer in order"
    raise refused(f"{written(inner)}(...) OVER (...)", problem, remedy)


def _centred(
    expression: Expression, card: DataCard, given: Bounds | None, kind: str
) -> tuple[_Side, Expression, bool]:
    """The side, the expression that it was, and whether that may be missing."""
    lookup = card_types(card)
    known = known_of(typed(expression, lookup), card)
    bounds = known.bounds if given is None else given
    of = type_of(known.expression, lookup)
    if of not in ("integer", "number"):
        raise refused(
            kind, f"needs numbers, not {of or 'nothing'}", "give it two columns of numbers"
        )
    if bounds is None:
        raise unbounded(kind, kind, known.expression)
    low, high = bounds
    centre = (low + high) / 2
    if of == "integer" and low.denominator == high.denominator == 1:
        centre = Fraction(floor(centre))
    value: Expression = call("clamp", known.expression, _number(low), _number(high))
    if centre:
        value = call("-", value, _number(centre))
    return _Side(value, centre, (low - centre, high - centre)), known.expression, known.nullable


_STATISTICS: Mapping[str, Callable[[_Pair], Expression]] = MappingProxyType(
    {
        "correlation": _Pair.correlation,
        "covariance": _Pair.covariance,
        "sample_covariance": lambda pair: pair.covariance(less=1),
        "slope": _Pair.slope,
        "intercept": _Pair.intercept,
        "r_squared": _Pair.determination,
        "pairs": lambda pair: pair.n,
        "mean_x": lambda pair: pair.mean(pair.x),
        "mean_y": lambda pair: pair.mean(pair.y),
    }
)
_KINDS: Mapping[str, str] = MappingProxyType(
    {
        "Corr": "correlation",
        "CovarPop": "covariance",
        "CovarSamp": "sample_covariance",
        "RegrSlope": "slope",
        "RegrIntercept": "intercept",
        "RegrR2": "r_squared",
        "RegrCount": "pairs",
        "RegrAvgx": "mean_x",
        "RegrAvgy": "mean_y",
    }
)
