"""SUM, AVG, VARIANCE and STDDEV of distinct values, made of counts of distinct values.

Law      with s = x - low for whole numbers x from low to high, the sum over distinct values of s is
         the sum over b of 2**b times the number of distinct values whose s has the binary digit b;
         that of s*s likewise, by the digits of s*s. With n the number of distinct values, S and Q
         these sums: SUM is n low + S, AVG is low + S/n, VARIANCE (Q - S S/n)/n, STDDEV its root
Theorem  each number is a COUNT(DISTINCT CASE WHEN ... THEN x END), which has a price and a rule of
         its own (`tables/measures.py`); all else is post-processing of released counts
Differs  values beyond the bounds count as the bound; VARIANCE and STDDEV are divided by n. A
         measure of its own would have a third to a sixth of the noise; none is in the kernel
Checked  tests/release/test_sql_distinct.py, against DuckDB
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil, floor
from types import MappingProxyType
from typing import Any, Protocol

from lastbit.tables.card.schema import DataCard
from lastbit.tables.limits import refused
from lastbit.tables.query.derived import columns_in
from lastbit.tables.query.expression import ColumnName, Constant, Expression
from lastbit.tables.query.query import Aggregate
from lastbit.tables.query.rules import call
from lastbit.tables.query.types import card_types, check_bounds, known_of, type_of, typed
from lastbit.tables.sql.aggregates import unbounded
from lastbit.tables.sql.expressions import translated
from lastbit.tables.sql.parse import kind_of, taken
from lastbit.tables.sql.rows import SelectedRows

_MOST_DIGITS = 24


class Counts(Protocol):
    """Where counts are asked for, each once."""

    rows: SelectedRows

    def column(self, asked: Aggregate, plain: str | None = None) -> ColumnName:
        """The column that releases this aggregate."""


def of_distinct(node: Any, parts: Counts) -> Expression:
    """The statistic as a formula over counts of distinct values."""
    (values,) = taken(taken(node, "this")[0], "expressions")
    name = f"{kind_of(node).upper()}(DISTINCT ...)"
    if len(values) != 1 or kind_of(values[0]) == "Tuple":
        raise refused(name, "is of one column", "name one")
    digits = _digits(translated(values[0], parts.rows.resolve), parts, name)
    return _STATISTICS[kind_of(node)](digits)


@dataclass(frozen=True, slots=True)
class _Digits:
    """The distinct values of a whole number, and the counts by their digits."""

    parts: Counts
    value: Expression
    """Between its bounds."""
    low: int
    high: int
    called: str

    @property
    def n(self) -> Expression:
        return self._count(self.value, self.called)

    def sum(self, power: int) -> Expression:
        """The sum over distinct values of (x - low) to this power, of 1 and 2."""
        plain = call("-", self.value, Constant(self.low)) if self.low else self.value
        made = plain if power == 1 else call("*", plain, plain)
        terms: list[Expression] = []
        for digit in range(((self.high - self.low) ** power).bit_length()):
            ones = call("%", made, Constant(2 << digit))
            has_it = call(">=", ones, Constant(1 << digit))
            name = f"{self.called}_digit_{digit}" if power == 1 else f"{self.called}_square_{digit}"
            count = self._count(call("case", has_it, self.value), name)
            terms.append(count if digit == 0 else call("*", Constant(1 << digit), count))
        return terms[0] if len(terms) == 1 else call("+", *terms)

    def _count(self, value: Expression, name: str) -> Expression:
        asked = Aggregate(name="part", function="count_distinct", expression=value)
        return self.parts.column(asked, name)


def _total(values: _Digits) -> Expression:
    shifted = values.sum(1)
    return call("+", call("*", Constant(values.low), values.n), shifted) if values.low else shifted


def _mean(values: _Digits) -> Expression:
    middle = call("/", values.sum(1), values.n)
    return call("+", Constant(values.low), middle) if values.low else middle


def _variance(values: _Digits) -> Expression:
    first, n = values.sum(1), values.n
    spread = call("-", values.sum(2), call("/", call("*", first, first), n))
    return call("greatest", call("/", spread, n), Constant(0))


_STATISTICS: Mapping[str, Callable[[_Digits], Expression]] = MappingProxyType(
    {
        "Sum": _total,
        "Avg": _mean,
        **dict.fromkeys(("Variance", "VariancePop"), _variance),
        **dict.fromkeys(
            ("Stddev", "StddevPop", "StddevSamp"), lambda values: call("sqrt", _variance(values))
        ),
    }
)


def _digits(expression: Expression, parts: Counts, name: str) -> _Digits:
    card: DataCard = parts.rows.card
    lookup = card_types(card)
    known = known_of(typed(expression, lookup), card)
    kind = type_of(known.expression, lookup)
    if kind != "integer":
        problem = f"is known for whole numbers, and not for {kind or 'nothing'}"
        raise refused(name, problem, "round it: CAST(x AS BIGINT)")
    if known.bounds is None:
        raise unbounded(name, "sum", known.expression)
    check_bounds(name, known.bounds)
    low, high = ceil(known.bounds[0]), floor(known.bounds[1])
    if not 0 < high - low < 1 << _MOST_DIGITS:
        problem = "has bounds that are too far apart, or hold one value"
        raise refused(name, problem, "write clamp(x, low, high)")
    value = call("clamp", known.expression, Constant(low), Constant(high))
    column = next((one.name for one in columns_in(expression)), "constant")
    return _Digits(parts, value, low, high, f"distinct_{column}")
