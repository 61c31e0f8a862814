"""A query, as data: what was asked, in whatever language.

The SQL front end (`sql.py`) and the Python one (`lastbit.table`) both make a `Query`; derived
columns are already written out, so its expressions mention columns of the table and of public
tables only. Equal questions are equal values with equal `digest`s.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, Literal, TypeAlias

from lastbit.canonical import digest_of
from lastbit.errors import InvalidParameter
from lastbit.exact import probability
from lastbit.tables.limits import refused
from lastbit.tables.query.derived import Derived, check_derived
from lastbit.tables.query.expression import Call, Expression, check_parts, from_json
from lastbit.tables.query.rules import (
    FORMULAS,
    FUNCTIONS,
    call,
    check_bounds,
    check_functions,
    check_key,
    check_sub_query,
)
from lastbit.tables.query.scan import Scan, scan_fields
from lastbit.tables.query.units import PerUnit, function_from_json
from lastbit.tables.query.writing import (
    function_json,
    join_json,
    key_json,
    sub_query_json,
    to_json,
)

Function: TypeAlias = Literal[
    "count",
    "count_units",
    "count_distinct",
    "sum",
    "mean",
    "variance",
    "std",
    "quantile",
    "cdf",
    "min",
    "max",
    "histogram",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """One thing to release for every group.

    `expression` is None for `count` of all rows and for `count_units`. `bounds` and `step` are
    those of the column or declared in the query; every function but the counts needs bounds.
    `nullable` False promises that the expression is never missing. `level` is a quantile's: the
    median has 1/2, and `intervals` says whether its confidence interval is paid for too. `edges`
    are the public bins of a histogram, and the one point of a cdf: the share of values up to it.
    `ends` are the levels at which the interval of a quantile aims, where rows may be missing that
    would move it: the level lies between them.
    """

    name: str
    function: Function
    expression: Expression | None = None
    bounds: tuple[Fraction, Fraction] | None = None
    step: Fraction | None = None
    nullable: bool = True
    level: Fraction | None = None
    edges: tuple[Fraction, ...] | None = None
    intervals: bool = True
    ends: tuple[Fraction, Fraction] | None = None

    def __post_init__(self) -> None:
        bare = self.function in ("count", "count_units")
        if (
            self.function != "count_distinct"
            and not bare
            and self.function != "histogram"
            and self.bounds is None
        ):
            raise InvalidParameter(
                self.name,
                problem="has no bounds: one row could count for any amount",
                remedy="declare bounds on the card, or write clamp(expression, low, high)",
            )
        check_bounds(self)
        if self.function == "quantile":
            remedy = "pass, say, 1/2; for the ends use min and max"
            level = 0 if self.level is None else self.level
            probability(level, f"{self.name}: level", zero=False, one=False, remedy=remedy)
        edges = self.edges or ()
        rising = len(edges) > 1 and all(a < b for a, b in pairwise(edges))
        if self.function == "histogram" and not rising:
            raise InvalidParameter(
                f"{self.name}: bins", problem="do not rise", remedy="pass two or more rising edges"
            )
        if self.function == "cdf" and not (
            len(edges) == 1 and self.bounds and self.bounds[0] <= edges[0] <= self.bounds[1]
        ):
            raise InvalidParameter(
                f"{self.name}: point", problem="is outside of the bounds", remedy="pass one within"
            )
        if self.expression is None and not bare:
            raise InvalidParameter(self.name, problem="has no column", remedy="name one")
        if not self.intervals and self.function != "quantile":
            raise InvalidParameter(
                f"{self.name}: intervals",
                problem="cost nothing here",
                remedy="leave them out of quantiles only",
            )
        if self.ends is not None:
            low, high = self.ends
            known = self.level is not None and 0 < low <= self.level <= high < 1
            if not (known and self.function == "quantile" and self.intervals):
                problem = "are not on both sides of a quantile's level"
                raise InvalidParameter(f"{self.name}: ends", problem=problem, remedy="drop them")

    def to_json(self) -> dict[str, Any]:
        """Plain JSON; fractions as text. `intervals` and `ends` are written where they are set."""
        bare: dict[str, Any] = {} if self.intervals else {"intervals": False}
        bare |= {} if self.ends is None else {"ends": [str(level) for level in self.ends]}
        return {
            **function_json(self),
            "level": None if self.level is None else str(self.level),
            "edges": None if self.edges is None else [str(edge) for edge in self.edges],
            **bare,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Aggregate:
        """The aggregate that `to_json` wrote."""
        level, edges, ends = data["level"], data["edges"], data.get("ends")
        return cls(
            **function_from_json(data),
            level=None if level is None else Fraction(level),
            edges=None if edges is None else tuple(map(Fraction, edges)),
            intervals=data.get("intervals", True),
            ends=None if ends is None else (Fraction(ends[0]), Fraction(ends[1])),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderBy:
    """A column of the answer to sort by."""

    name: str
    descending: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Query(Scan):
    """What was asked. `derived`, `having`, `order` and `limit` see released values only.

    `shown` are the names of aggregates and derived columns in the order of SELECT; aggregates that
    are not among them are parts of derived columns, or of HAVING and ORDER BY. None: all of them.
    """

    aggregates: tuple[Aggregate, ...]
    having: Expression | None = None
    order: tuple[OrderBy, ...] = ()
    limit: int | None = None
    derived: tuple[Derived, ...] = ()
    shown: tuple[str, ...] | None = None
    _digest: str | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        released = [part.name for part in self.aggregates] + [one.name for one in self.derived]
        names = [key.name for key in self.keys] + released
        inner = PerUnit() if self.per_unit is None else self.per_unit
        check_parts(
            keys=len(self.keys) + len(inner.keys),
            joins=len(self.all_joins),
            names=[*names, *inner.names],
            aggregates=len(self.aggregates) + len(self.derived) + len(inner.columns),
            edges=[part.edges for part in self.aggregates if part.edges is not None],
            expressions=self.expressions(),
        )
        every = list(self.expressions())
        rows = len(every) - len(self.derived)
        check_functions(every[:rows], FUNCTIONS)
        check_functions(every[rows:], FORMULAS)
        for key in self.keys:
            check_key(key)
        check_sub_query(inner)
        if not self.aggregates:
            raise InvalidParameter(
                "query", problem="asks for nothing", remedy="add an aggregate, say COUNT(*)"
            )
        lowered = [name.lower() for name in names]
        if len(set(lowered)) != len(lowered) or not all(names):
            problem = "gives two columns of the answer one name"
            raise InvalidParameter("query", problem=problem, remedy="name them with AS")
        for order in self.order:
            if order.name not in names:
                problem = "names no column of the answer"
                remedy = f"use one of {', '.join(names)}"
                raise InvalidParameter("ORDER BY", problem=problem, remedy=remedy)
        if self.limit is not None and self.limit < 0:
            raise InvalidParameter("LIMIT", problem="is negative", remedy="pass 0 or more")
        self._check_derived(released)

    def _check_derived(self, released: list[str]) -> None:
        single = {part.name for part in self.aggregates if part.function != "histogram"}
        for one in self.derived:
            check_derived(one, single)
        totals = any(_has_total(one.expression) for one in self.derived)
        if totals and (self.having is not None or self.limit is not None):
            problem = "adds up all rows of the answer, and HAVING or LIMIT leaves some out"
            raise refused("SUM(...) OVER ()", problem, "leave HAVING and LIMIT out")
        if self.shown is None:
            if self.derived:
                raise InvalidParameter("shown", problem="is missing", remedy="list what is shown")
            return
        if not self.shown or len(set(self.shown)) < len(self.shown):
            raise InvalidParameter(
                "shown", problem="is empty, or lists a column twice", remedy="list each once"
            )
        if not set(self.shown) <= set(released):
            raise InvalidParameter(
                "shown", problem="lists what is not released", remedy=f"use {', '.join(released)}"
            )

    @property
    def selected(self) -> tuple[str, ...]:
        """The names of the released columns that the answer shows, in order."""
        return tuple(part.name for part in self.aggregates) if self.shown is None else self.shown

    @property
    def hidden(self) -> tuple[Aggregate, ...]:
        """Aggregates that are released as parts of others, and not shown by themselves."""
        return tuple(part for part in self.aggregates if part.name not in self.selected)

    def without_intervals(self) -> Query:
        """The same question, its quantiles without confidence intervals: all buys the values."""
        parts = [
            replace(part, intervals=False) if part.function == "quantile" else part
            for part in self.aggregates
        ]
        return replace(self, aggregates=tuple(parts))

    def expressions(self) -> Iterator[Expression]:
        """Every expression in it."""
        yield from Scan.expressions(self)
        yield from (part.expression for part in self.aggregates if part.expression is not None)
        yield from () if self.having is None else (self.having,)
        yield from (one.expression for one in self.derived)

    def to_json(self) -> dict[str, Any]:
        """The query as plain JSON; equal queries give equal text when written with sorted keys."""
        more: dict[str, Any] = {}
        if self.shown is not None:
            more = {"derived": [one.to_json() for one in self.derived], "shown": list(self.shown)}
        return {
            "table": self.table,
            "where": None if self.where is None else to_json(self.where),
            "joins": list(map(join_json, self.joins)),
            "keys": list(map(key_json, self.keys)),
            "aggregates": [part.to_json() for part in self.aggregates],
            "having": None if self.having is None else to_json(self.having),
            "order": [[order.name, order.descending] for order in self.order],
            "limit": self.limit,
            **more,
            **({} if self.per_unit is None else {"per_unit": sub_query_json(self.per_unit)}),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Query:
        """The query that `to_json` wrote; everything is checked again."""
        shown = data.get("shown")
        return cls(
            **scan_fields(data),
            aggregates=tuple(map(Aggregate.from_json, data["aggregates"])),
            having=None if data["having"] is None else from_json(data["having"]),
            order=tuple(OrderBy(name=name, descending=falls) for name, falls in data["order"]),
            limit=data["limit"],
            derived=tuple(
                Derived(name=one["name"], expression=from_json(one["expression"]))
                for one in data.get("derived", ())
            ),
            shown=None if shown is None else tuple(shown),
        )

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical text; computed once, as nothing in a query can change."""
        if self._digest is None:
            object.__setattr__(self, "_digest", digest_of(self.to_json()))
        assert self._digest is not None
        return self._digest


def all_of(tests: Iterable[Expression]) -> Expression | None:
    """All conditions in one; None where there is none."""
    found: list[Expression] = []
    for test in tests:
        both = isinstance(test, Call) and test.function == "and"
        found += test.arguments if both else (test,)  # type: ignore[union-attr]
    return call("and", *found) if len(found) > 1 else next(iter(found), None)


def _has_total(expression: Expression) -> bool:
    if not isinstance(expression, Call):
        return False
    return expression.function == "total" or any(map(_has_total, expression.arguments))
