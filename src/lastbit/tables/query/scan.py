"""Which rows a question looks at, and by which keys it groups them, as data.

A `Scan` is the part of a question that meets the table: everything else (`query.py`) is about
numbers that are released already. So it is all that a statement is made of, beside the measures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

from lastbit.tables.query.expression import Expression, Value, from_json, value_from_json
from lastbit.tables.query.units import Join, PerUnit, join_from_json

Marginal: TypeAlias = tuple[int, ...]
"""A set of columns, by their places among the keys of a question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupKey:
    """One thing to group by: its name in the answer, and its public values if they are known."""

    name: str
    expression: Expression
    values: tuple[Value, ...] | None = None

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> GroupKey:
        """The key that `writing.key_json` wrote."""
        values = None if data["values"] is None else tuple(map(value_from_json, data["values"]))
        return cls(name=data["name"], expression=from_json(data["expression"]), values=values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """The rows of a table, or of a sub-query about it, that pass a filter; and their keys.

    With `per_unit` the rows are those of that sub-query, whose columns the other expressions name.
    """

    table: str
    keys: tuple[GroupKey, ...] = ()
    where: Expression | None = None
    joins: tuple[Join, ...] = ()
    per_unit: PerUnit | None = None

    @property
    def groups(self) -> int | None:
        """The number of all possible keys: 1 without GROUP BY, None where one is undeclared."""
        if any(key.values is None for key in self.keys):
            return None
        return prod(len(key.values or ()) for key in self.keys)

    @property
    def all_joins(self) -> tuple[Join, ...]:
        """Those of the sub-query and its own."""
        return self.joins if self.per_unit is None else (*self.per_unit.joins, *self.joins)

    @property
    def joined_tables(self) -> tuple[str, ...]:
        """The names of all tables that are joined, each once."""
        return tuple(dict.fromkeys(join.table for join in self.all_joins if join.table))

    def expressions(self) -> Iterator[Expression]:
        """Every expression in it."""
        yield from (key.expression for key in self.keys)
        yield from (own for join in self.joins for own, _ in join.on)
        yield from () if self.where is None else (self.where,)
        yield from () if self.per_unit is None else self.per_unit.expressions()


def scan_fields(data: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a scan, from the JSON of a query."""
    inner = data.get("per_unit")
    return {
        "table": data["table"],
        "keys": tuple(map(GroupKey.from_json, data["keys"])),
        "where": None if data["where"] is None else from_json(data["where"]),
        "joins": tuple(map(join_from_json, data["joins"])),
        "per_unit": None if inner is None else PerUnit.from_json(inner),
    }
