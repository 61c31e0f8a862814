"""What an answer shows of what is released: fewer columns, and functions of released keys.

SELECT UPPER(k), COUNT(*) ... GROUP BY k releases keys and counts, and shows UPPER(k) and counts.

Law      a row of the answer is a row of the record: some of its keys, expressions over its keys,
         and its released numbers or none of them. Two rows may look alike, as in SQL. They are
         sorted and cut as the question says; else they stand in the order of the record, which is
         that of its keys: as declared, or sorted where they were found
Theorem  post-processing: nothing but the record is read, which was released and paid for as a
         whole. The order tells of keys, which are released; and an answer is never less than shown
Theorem  an expression means what it means in WHERE, whatever engine holds the rows: DuckDB computes
         it, from the same spelling (`compile/expressions.py`), which no value can make fail
Differs  a number of doubles as a key is a double; it groups nothing
Checked  tests/tables/test_view.py, tests/release/test_views.py
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isfinite
from types import MappingProxyType
from typing import Any

from lastbit.errors import InvalidParameter
from lastbit.tables.compile.duckdb import DUCKDB
from lastbit.tables.compile.expressions import Spelling
from lastbit.tables.compile.steps import Steps, Typed
from lastbit.tables.query.derived import columns_in
from lastbit.tables.query.expression import (
    Call,
    ColumnName,
    ColumnType,
    Constant,
    Expression,
    Value,
    check_parts,
)
from lastbit.tables.query.query import OrderBy

_STORED: Mapping[ColumnType | None, str] = MappingProxyType(
    {
        "integer": "BIGINT",
        "number": "DOUBLE",
        "text": "VARCHAR",
        "boolean": "BOOLEAN",
        "date": "DATE",
        "timestamp": "TIMESTAMP",
        None: "VARCHAR",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownKey:
    """A column made of released keys, which its expression names."""

    name: str
    expression: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What is shown of an answer with these keys, by name and type.

    Without `numbers` only keys are. `order` and `limit` are those that need what is computed here;
    others are in the question itself. `sorts` are made of keys to sort by, and not shown.
    """

    released: tuple[tuple[str, ColumnType | None], ...]
    keys: tuple[ShownKey, ...]
    numbers: bool = True
    order: tuple[OrderBy, ...] = ()
    limit: int | None = None
    sorts: tuple[ShownKey, ...] = ()

    def __post_init__(self) -> None:
        names = [one.name for one in (*self.keys, *self.sorts)]
        check_parts(
            keys=len(names),
            joins=0,
            names=names,
            aggregates=0,
            edges=(),
            expressions=[one.expression for one in (*self.keys, *self.sorts)],
        )
        if len({name.lower() for name in names}) < len(names):
            problem = "gives two columns of the answer one name"
            raise InvalidParameter("query", problem=problem, remedy="name them with AS")

    @property
    def computed(self) -> tuple[str, ...]:
        """The names of columns that are not keys themselves."""
        return tuple(one.name for one in self.keys if not isinstance(one.expression, ColumnName))

    @property
    def hidden(self) -> tuple[str, ...]:
        """The names of released keys that are not shown."""
        shown = {one.expression for one in self.keys}
        return tuple(name for name, _ in self.released if ColumnName(name) not in shown)

    def shown(self, rows: Sequence[Sequence[Value]]) -> list[tuple[Value, ...]]:
        """What is shown of the keys of these rows."""
        places = {ColumnName(name): place for place, (name, _) in enumerate(self.released)}
        made = dict(zip(self.computed, zip(*self._computed(rows), strict=True), strict=False))
        columns = [
            made.get(one.name, ())
            if one.name in self.computed
            else [row[places[one.expression]] for row in rows]  # type: ignore[index]  # a key
            for one in self.keys
        ]
        return list(zip(*columns, strict=True)) if columns else [() for _ in rows]

    def sorted(self, rows: Sequence[Sequence[Value]]) -> list[tuple[Value, ...]]:
        """What these rows are sorted by, where it is not shown."""
        return replace(self, keys=self.sorts, sorts=()).shown(rows)

    def _computed(self, rows: Sequence[Sequence[Value]]) -> list[tuple[Value, ...]]:
        """The computed columns of these rows, by DuckDB; no table is opened."""
        if not (self.computed and rows):
            return []
        columns = {
            ColumnName(name): Typed(f"c{place}", kind)
            for place, (name, kind) in enumerate(self.released)
        }
        spelling = Spelling(columns.__getitem__, steps := Steps(evens=False), DUCKDB)
        parts = [one.expression for one in self.keys if one.name in self.computed]
        wanted = ", ".join(spelling.spelled(part).sql for part in parts)
        lists: dict[str, list[Any]] = {"place": list(range(len(rows)))}
        sources = ["unnest($place::BIGINT[]) AS place"]
        for place, (_, kind) in enumerate(self.released):
            lists[f"c{place}"] = [row[place] for row in rows]
            sources.append(f"unnest($c{place}::{_STORED[kind]}[]) AS c{place}")
        layers = [f"l0 AS (SELECT {', '.join(sources)})"]
        for step in steps.after_joins(0):
            layers.append(f"l{len(layers)} AS (SELECT {step} FROM l{len(layers) - 1})")
        last = len(layers) - 1
        sql = f"WITH {', '.join(layers)} SELECT {wanted} FROM l{last} ORDER BY place"
        from lastbit.tables.backends.duckdb.engine import EngineSession  # late: slow to load

        with EngineSession() as session:
            found = session.guarded(lambda connection: connection.execute(sql, lists).fetchall())
        return [tuple(map(_value, row)) for row in found]


def _value(value: Any) -> Value:
    """A value of the engine as a constant: a double exactly, and one that is none as missing."""
    if isinstance(value, float):
        return Fraction(value) if isfinite(value) else None
    return value  # type: ignore[no-any-return]


def over_keys(expression: Expression, keys: Mapping[Expression, str]) -> Expression | None:
    """An expression over rows as one over keys, each a whole part of it; None if there is more.

    >>> age = ColumnName("age")
    >>> over_keys(Call("+", (age, Constant(1))), {age: "how old"})
    Call(function='+', arguments=(ColumnName(name='how old', table=None), Constant(value=1)))
    """
    named = _over(expression, keys)
    return None if named is None or not any(True for _ in columns_in(named)) else named


def _over(expression: Expression, keys: Mapping[Expression, str]) -> Expression | None:
    match expression:
        case _ if expression in keys:
            return ColumnName(keys[expression])
        case Call(function, arguments):
            parts = tuple(_over(part, keys) for part in arguments)
            return None if None in parts else Call(function, parts)  # type: ignore[arg-type]
        case Constant():
            return expression
    return None
