"""Joins on the privacy unit, lists made rows, and sub-queries grouped by the unit, as data.

Set-up. Neighbours differ in the rows of one unit, in all private tables of the card at once.

Theorem  (join on the unit) let rows r of the table and s of another private table meet only where
         unit(r) = unit(s), perhaps with further conditions. Then the joined rows of a unit are a
         function of its own rows in both tables, of public tables and of the secret
Proof    a pair (r, s) that meets has one unit, by the first condition. Whether it meets, and what
         it says, depends on r and s alone; which rows s are there, on the unit's own and on the
         secret (`compile/units.py`). A missing unit equals nothing
Theorem  (UNNEST) let each row r of the table become a row for each element of its list: the bag
         f(r), in which all else is as in r. Then the rows of a unit are a function of its own rows
Proof    f looks at r alone: nothing of NULL and [], equal elements as often as they are there, the
         first MOST_ELEMENTS of a longer list. The unit is another column, so it is that of r; and
         the bag of all is the sum of the f(r), in which those of another unit are what they were
So       max_rows and max_groups are of elements: a unit whose lists have n elements in all counts
         with the weight min(1, max_rows / n) for each, and is in a group for each different one
Theorem  inner joins, filters and ways to the unit may come before or after: each makes of a row a
         bag of rows, or reads it, and sums of bags do not depend on the order
Theorem  (sub-query grouped by the unit) let rows be grouped by the unit, and perhaps by more. Then
         a row of the result belongs to one unit, and a unit's rows of the result are a function of
         its own rows
Proof    a group holds rows of one unit. Its keys are values of these rows, its columns functions
         of the multiset of these rows: counts, sums of integers, quotients of two of those, least
         and greatest values. None depends on an order
Corollary  all of `measures.py` holds unchanged: it asks that what a unit contributes depend
         on its own rows, public tables and the secret, and weighs the rows that are left, n of
         them, by max_rows. A unit with n rows here and m there has n m joined rows, each of which
         counts for min(1, max_rows / (n m)): nothing is paid for that but bias
Theorem  where the only key is the unit, and nothing is joined afterwards, a unit has one row. So
         max_rows = 1 and max_groups = 1 leave every row at its full weight (`counted_card`, which
         also says what holds where there are further keys)
Checked  tests/stability/ (on the real engine, with mutants), tests/tables/test_units.py

Values. A sum is of integers: whole numbers themselves, or numbers clamped to bounds and put on a
grid, as in a measure. A mean is the double that division gives for the sum and the number of
values, so that of whole sums below 2**53 it is the exact quotient, rounded once; on a grid it is
multiplied by the step. 0 and -0, which are equal and not the same, are made 0 before they meet. So
no engine, and no order of rows, can change a value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from lastbit.tables.query.expression import ColumnName, Expression, from_json

UnitFunction: TypeAlias = Literal["count", "count_distinct", "sum", "mean", "min", "max"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicJoin:
    """An inner join with a public table: rows match where all pairs of columns are equal."""

    table: str
    on: tuple[tuple[Expression, ColumnName], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitJoin:
    """An inner join with a private table: one of the pairs is the unit of both."""

    table: str
    on: tuple[tuple[Expression, ColumnName], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListJoin:
    """Each row with every element of its own list: in this scan, the column is the element."""

    column: ColumnName

    @property
    def table(self) -> str:
        """No table: no name of one is empty."""
        return ""

    @property
    def on(self) -> tuple[tuple[Expression, ColumnName], ...]:
        """No columns are compared."""
        return ()


Join: TypeAlias = PublicJoin | UnitJoin | ListJoin


def join_from_json(data: Mapping[str, Any]) -> Join:
    """The join that `writing.join_json` wrote."""
    if "unnest" in data:
        return ListJoin(column=from_json(data["unnest"]))  # type: ignore[arg-type]  # checked there
    kind = UnitJoin if data.get("private") else PublicJoin
    pairs = ((from_json(own), from_json(other)) for own, other in data["on"])
    return kind(table=data["table"], on=tuple(pairs))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitKey:
    """What a sub-query groups by beside the unit, and its name there."""

    name: str
    expression: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitColumn:
    """A function of one unit's rows in a group, and its name in the sub-query.

    `expression` is None for the number of rows. `bounds` and `step` are the grid of sums and means
    of numbers; whole numbers may be summed without. Of the others, `bounds` only say what is known.
    """

    name: str
    function: UnitFunction
    expression: Expression | None = None
    bounds: tuple[Fraction, Fraction] | None = None
    step: Fraction | None = None
    nullable: bool = True


def function_from_json(data: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that `writing.function_json` wrote."""
    bounds, step = data["bounds"], data["step"]
    return {
        "name": data["name"],
        "function": data["function"],
        "expression": None if data["expression"] is None else from_json(data["expression"]),
        "bounds": None if bounds is None else (Fraction(bounds[0]), Fraction(bounds[1])),
        "step": None if step is None else Fraction(step),
        "nullable": data["nullable"],
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class PerUnit:
    """A sub-query grouped by the unit and by `keys`: one row for each unit and key."""

    columns: tuple[UnitColumn, ...] = ()
    keys: tuple[UnitKey, ...] = ()
    where: Expression | None = None
    joins: tuple[Join, ...] = ()

    @property
    def names(self) -> list[str]:
        """Of keys, then of columns."""
        return [key.name for key in self.keys] + [part.name for part in self.columns]

    def expressions(self) -> Iterator[Expression]:
        """Every expression in it."""
        yield from (key.expression for key in self.keys)
        yield from (part.expression for part in self.columns if part.expression is not None)
        yield from (own for join in self.joins for own, _ in join.on)
        yield from () if self.where is None else (self.where,)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> PerUnit:
        """The sub-query that `writing.sub_query_json` wrote."""
        return cls(
            columns=tuple(UnitColumn(**function_from_json(part)) for part in data["columns"]),
            keys=tuple(
                UnitKey(name=key["name"], expression=from_json(key["expression"]))
                for key in data["keys"]
            ),
            where=None if data["where"] is None else from_json(data["where"]),
            joins=tuple(map(join_from_json, data["joins"])),
        )
