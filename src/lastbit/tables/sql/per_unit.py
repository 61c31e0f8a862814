"""Sub-queries grouped by the unit: SELECT patient, SUM(cost) AS total ... GROUP BY patient.

What is selected there becomes a key, a column of `PerUnit`, or an expression over these; HAVING
becomes a condition on the rows of the sub-query. `query/units.py` says why that is private.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Protocol

from lastbit.tables.card.schema import DataCard
from lastbit.tables.limits import refused
from lastbit.tables.query.expression import ColumnName, Constant, Expression
from lastbit.tables.query.known_keys import bounded_key
from lastbit.tables.query.query import all_of
from lastbit.tables.query.rules import call
from lastbit.tables.query.sub_query import derived_card
from lastbit.tables.query.types import card_types, known_of, type_of, typed
from lastbit.tables.query.units import Join, PerUnit, UnitColumn, UnitFunction, UnitKey
from lastbit.tables.sql.aggregates import (
    condition,
    is_aggregate,
    is_of_distinct,
    resolve_unit,
    without_distinct,
)
from lastbit.tables.sql.expressions import translated
from lastbit.tables.sql.parse import kind_of, name_of, names, place_of, taken

_PLAIN: Mapping[str, UnitFunction] = MappingProxyType(
    {"Sum": "sum", "Avg": "mean", "Min": "min", "Max": "max"}
)
_KNOWN = "use COUNT, COUNT(DISTINCT x), SUM, AVG, MIN or MAX in the sub-query"


class Rows(Protocol):
    """What is needed of the rows that a sub-query groups."""

    @property
    def base(self) -> DataCard: ...
    @property
    def where(self) -> tuple[Expression, ...]: ...
    @property
    def joins(self) -> tuple[Join, ...]: ...
    @property
    def per_unit(self) -> PerUnit | None: ...
    def resolve(self, node: Any) -> Expression: ...
    def meant(self, what: Any, table: Any) -> Any: ...


def unit_column(
    name: str,
    function: UnitFunction,
    expression: Expression,
    card: DataCard,
    *,
    bounds: tuple[Fraction, Fraction] | None = None,
) -> UnitColumn:
    """The column of a sub-query; its bounds are those given, of a clamp, or of the card."""
    lookup = card_types(card)
    asked = typed(expression, lookup)
    kind, known = type_of(asked, lookup), known_of(asked, card)
    if function in ("count", "count_distinct"):
        return UnitColumn(name=name, function=function, expression=asked, nullable=False)
    summed = function in ("sum", "mean")
    if kind is None or (summed and kind not in ("integer", "number")):
        raise refused(
            name, f"needs numbers, not {kind or 'nothing'}", "aggregate numbers, or count"
        )
    inner = known.expression if summed and bounds is None else asked
    limits = known.bounds if bounds is None else bounds
    if summed and limits is None and kind == "number":
        problem = "has no bounds: an exact sum of numbers is made on a grid between them"
        raise refused(name, problem, "declare bounds on the card, or write clamp(x, low, high)")
    if kind not in ("integer", "number"):
        limits = None
    return UnitColumn(
        name=name,
        function=function,
        expression=inner,
        bounds=limits,
        step=known.step if limits is not None else None,
        nullable=known.nullable,
    )


def is_by_unit(rows: Rows, listed: list[Any], named: list[tuple[str | None, Any]]) -> bool:
    """Whether one of the items of GROUP BY is the unit: by its name, a place or an alias."""
    if rows.base.unit is None:
        return False
    unit = resolve_unit(rows.base)
    for node in listed:
        place = place_of(node)
        if place is not None and 1 <= place <= len(named):
            node = named[place - 1][1]  # noqa: PLW2901
        if kind_of(node) != "Column" or kind_of(node.this) != "Identifier":
            continue
        what, table = taken(node, "this", "table")
        meant = list(rows.meant(what, table))
        for name, value in named:
            plain = kind_of(value) == "Column" and kind_of(value.this) == "Identifier"
            if not meant and table is None and plain and name is not None and names(what, name):
                meant = list(rows.meant(*taken(value, "this", "table")))
        if unit in meant:
            return True
    return False


class UnitColumns:
    """Gathers keys and columns of a sub-query as its SELECT and HAVING mention them."""

    def __init__(
        self, rows: Rows, listed: list[Any], named: list[tuple[str, Any]], remedy: str
    ) -> None:
        if rows.per_unit is not None:
            problem = "is made of another one that is grouped by the unit"
            raise refused("a sub-query with GROUP BY", problem, "group once, by the unit and more")
        if rows.base.unit is None:
            problem = "would mix rows of many units"
            raise refused("a sub-query with GROUP BY", problem, remedy)
        self.rows, self.named = rows, named
        self.unit = resolve_unit(rows.base)
        assert isinstance(self.unit, ColumnName)
        self._taken = {self.unit.name.lower()}
        self._keys: dict[Expression, str] = {self.unit: self.unit.name}
        self._columns: dict[UnitColumn, str] = {}
        found = [self._grouped(node) for node in listed]
        if self.unit not in found:
            raise refused("a sub-query with GROUP BY", "would mix rows of many units", remedy)
        for expression in found:
            if expression not in self._keys:
                self._keys[expression] = self._free(self._called(expression))

    @property
    def per_unit(self) -> PerUnit:
        """The sub-query as gathered so far."""
        rows = self.rows
        return PerUnit(
            columns=tuple(replace(part, name=name) for part, name in self._columns.items()),
            keys=tuple(
                UnitKey(name=name, expression=bounded_key(expression, rows.base, *rows.where))
                for expression, name in self._keys.items()
                if expression != self.unit
            ),
            where=all_of(self.rows.where),
            joins=self.rows.joins,
        )

    def selected(self, name: str, value: Any) -> Expression:
        """What an item of the sub-query's SELECT means, in its keys and columns."""
        for node in filter(is_of_distinct, value.walk()):
            without_distinct(node.this, kind_of(node))
        if is_aggregate(value):
            return ColumnName(self._column(value, name))
        if not any(is_aggregate(node) for node in value.walk()):
            expression = self._plain(value)
            if expression in self._keys:
                return ColumnName(self._keys[expression])
        return self._typed(translated(value, self.resolve))

    def condition(self, node: Any) -> Expression:
        """A condition of HAVING, over the rows of the sub-query."""
        found = translated(node, self._in_having)
        return condition(found, derived_card(self.rows.base, self.per_unit), "HAVING")

    def resolve(self, node: Any) -> Expression:
        """A column or an aggregate inside an expression of the sub-query."""
        if is_aggregate(node):
            return ColumnName(self._column(node, "value"))
        expression = self.rows.resolve(node)
        if expression in self._keys:
            return ColumnName(self._keys[expression])
        what = name_of(node.this) if kind_of(node) == "Column" else kind_of(node).upper()
        raise refused(what, "is neither grouped by nor aggregated", "add it to GROUP BY")

    def _in_having(self, node: Any) -> Expression:
        """Likewise in HAVING, where a name can also be one that SELECT gives."""
        if kind_of(node) == "Column" and kind_of(node.this) == "Identifier":
            what, table = taken(node, "this", "table")
            given = [(n, v) for n, v in self.named if table is None and names(what, n)]
            columns = list(self.rows.meant(what, table))
            if len(given) == 1 and not any(column in self._keys for column in columns):
                if columns:
                    problem = "is a column, and what is selected under its name is another thing"
                    raise refused(
                        f"HAVING {given[0][0]}", problem, "select that under a name of its own"
                    )
                return self.selected(*given[0])
        return self.resolve(node)

    def _plain(self, node: Any) -> Expression:
        """An expression over one row."""
        return typed(translated(node, self.rows.resolve), card_types(self.rows.base))

    def _typed(self, expression: Expression) -> Expression:
        return typed(expression, card_types(derived_card(self.rows.base, self.per_unit)))

    def _grouped(self, node: Any) -> Expression:
        """What an item of GROUP BY means: a place, a column or, if there is none, an alias."""
        place = place_of(node)
        if place is not None:
            if not 1 <= place <= len(self.named):
                raise refused("GROUP BY", "counts beyond the columns", "name the column")
            node = self.named[place - 1][1]
        elif kind_of(node) == "Column" and not list(self.rows.meant(*taken(node, "this", "table"))):
            for name, value in self.named:
                if node.args.get("table") is None and names(node.this, name):
                    node = value
                    break
        if any(is_aggregate(part) for part in node.walk()):
            raise refused("GROUP BY", "names an aggregate", "group by a column")
        found = self._plain(node)
        if isinstance(found, Constant):
            raise refused("GROUP BY", "has a key that is the same in every row", "leave it out")
        return found

    def _called(self, expression: Expression) -> str:
        """The name that SELECT gives a key, or that of its column."""
        for name, value in self.named:
            if any(is_aggregate(node) for node in value.walk()):
                continue
            if (
                typed(translated(value, self.rows.resolve), card_types(self.rows.base))
                == expression
            ):
                return name
        return expression.name if isinstance(expression, ColumnName) else "key"

    def _free(self, name: str) -> str:
        """The name, or one like it that nothing else has."""
        options = (name, *(f"{name}_{number}" for number in range(2, len(self._taken) + 3)))
        found = next(option for option in options if option.lower() not in self._taken)
        self._taken.add(found.lower())
        return found

    def _column(self, node: Any, name: str) -> str:
        """The name of the column that is this aggregate; equal ones are one column."""
        part = replace(self._aggregate(node, name), name="")
        if part not in self._columns:
            self._columns[part] = self._free(name)
        return self._columns[part]

    def _aggregate(self, node: Any, name: str) -> UnitColumn:
        card, kind = self.rows.base, kind_of(node)
        if kind in _PLAIN:
            (value,) = taken(node, "this")
            if kind_of(value) == "Distinct":
                value = without_distinct(value, kind)
            return unit_column(name, _PLAIN[kind], translated(value, self.rows.resolve), card)
        if kind == "Filter":
            inner, test = taken(node, "this", "expression")
            only = translated(taken(test, "this")[0], self.rows.resolve)
            return self._filtered(self._aggregate(inner, name), condition(only, card, "FILTER"))
        if kind == "CountIf":
            only = translated(taken(node, "this")[0], self.rows.resolve)
            whole = UnitColumn(name=name, function="count", nullable=False)
            return self._filtered(whole, condition(only, card, "COUNT_IF"))
        if kind == "Count":
            return self._count(node, name)
        raise refused(f"{kind.upper()} in a sub-query", "is not known there", _KNOWN)

    def _count(self, node: Any, name: str) -> UnitColumn:
        (what,) = taken(node, "this", ignored=("big_int",))
        if what is None or kind_of(what) == "Star":
            if what is not None:
                taken(what)
            return UnitColumn(name=name, function="count", nullable=False)
        function: UnitFunction = "count"
        if kind_of(what) == "Distinct":
            (columns,) = taken(what, "expressions")
            if len(columns) != 1:
                raise refused("COUNT(DISTINCT a, b)", "is not known here", "count one column")
            what, function = columns[0], "count_distinct"
        return unit_column(name, function, translated(what, self.rows.resolve), self.rows.base)

    def _filtered(self, part: UnitColumn, only: Expression) -> UnitColumn:
        value = Constant(1) if part.expression is None else part.expression
        missing = not part.function.startswith("count")
        return replace(part, expression=call("case", only, value), nullable=missing)
