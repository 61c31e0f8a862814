"""HAVING and ORDER BY: names of what is released, and of nothing else."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from lastbit.tables.expression import ColumnName, Expression
from lastbit.tables.query import Aggregate, GroupKey, OrderBy, Query
from lastbit.tables.schema import ColumnType
from lastbit.tables.sql_aggregates import aggregate_from, is_aggregate
from lastbit.tables.sql_expression import translated
from lastbit.tables.sql_rows import Rows
from lastbit.tables.sql_tree import kind_of, names, place_of, refused, taken
from lastbit.tables.types import card_types, type_of, typed

__all__ = ["Released"]


@dataclass(frozen=True, slots=True)
class Released:
    """The columns of an answer. `selected` are their names in the order of SELECT."""

    query: Query
    rows: Rows
    selected: tuple[str, ...] = ()

    def condition(self, node: Any) -> Expression:
        """A condition over the columns of the answer."""
        found = typed(translated(node, self._resolved), self._type)
        if type_of(found, self._type) not in ("boolean", None):
            raise refused("HAVING", "is neither true nor false", "write a comparison")
        return found

    def sorted_by(self, item: Any) -> OrderBy:
        """One item of ORDER BY."""
        node, descending, first = taken(item, "this", "desc", "nulls_first")
        if first:
            raise refused("NULLS FIRST", "is not known here: they come last", "leave it out")
        place = place_of(node)
        if place is None:
            return OrderBy(name=self._one(self._found(node)), descending=bool(descending))
        if not 1 <= place <= len(self.selected):
            raise refused("ORDER BY", "counts beyond the columns", "name the column")
        return self.named(self.selected[place - 1], descending=bool(descending))

    def named(self, name: str, *, descending: bool) -> OrderBy:
        """The column of this name, in any case, to sort by."""
        for output in self._outputs():
            if output.name.lower() == name.lower():
                return OrderBy(name=self._one(output), descending=descending)
        raise self._unknown()

    def _resolved(self, node: Any) -> Expression:
        return ColumnName(self._one(self._found(node)))

    def _type(self, column: ColumnName) -> ColumnType:
        for output in self._outputs():
            if output.name == column.name:
                break
        if isinstance(output, Aggregate):
            return "integer" if output.function in ("count", "count_units") else "number"
        kind = type_of(output.expression, card_types(self.rows.card))
        return "text" if kind is None else kind

    def _outputs(self) -> list[GroupKey | Aggregate]:
        return [*self.query.keys, *self.query.aggregates]

    def _found(self, node: Any) -> GroupKey | Aggregate:
        """The column of the answer that this node means: by its name, or by what it is."""
        if kind_of(node) == "Column":
            what, table = taken(node, "this", "table")
            if table is None and kind_of(what) == "Identifier":
                for output in self._outputs():
                    if names(what, output.name):
                        return output
            expression = self._behind(node)
            for key in self.query.keys:
                if key.expression == expression:
                    return key
        elif is_aggregate(node):
            asked = aggregate_from(node, "asked", self.rows.card, self.rows.resolve)
            for part in self.query.aggregates:
                if replace(part, name="asked") == asked:
                    return part
        raise self._unknown()

    def _behind(self, node: Any) -> Expression | None:
        """The column of the table that a name such as visits.region means, if there is one."""
        return next(iter(self.rows.meant(*taken(node, "this", "table"))), None)

    def _one(self, output: GroupKey | Aggregate) -> str:
        if isinstance(output, Aggregate) and output.function == "histogram":
            raise refused(
                output.name, "is many columns", "sort and choose by another column of the answer"
            )
        return output.name

    def _unknown(self) -> Exception:
        known = ", ".join(output.name for output in self._outputs())
        return refused(
            "HAVING or ORDER BY",
            "looks at something that is not released",
            f"select it and name it; released are {known}",
        )
