"""What a steward declares of a table, as values: columns, unit, bounds, budget, source.

`card.py` reads these from TOML; Python programs make them through `lastbit.table`. Nothing here
looks at the data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from lastbit.errors import InvalidParameter
from lastbit.exact import probability, rational
from lastbit.privacy import ADD_REMOVE, Neighbours
from lastbit.tables.query.expression import Value

ColumnType: TypeAlias = Literal["integer", "number", "text", "boolean", "date", "timestamp"]
_TYPES = ("integer", "number", "text", "boolean", "date", "timestamp")
_MOST_ROWS = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column: its type, and what is publicly known of it.

    `bounds` limit a number: a value outside counts as the nearer bound. `keys` are the values a
    group may have; rows with another belong to no group. `step` is the grid on which numbers are
    summed: 1 for integers, 2**-20 of the range otherwise unless declared. A column that is not
    `nullable` has no missing values; if it has one nevertheless, that counts as nothing in a sum
    and as the middle of the bounds in a mean.
    """

    name: str
    type: ColumnType
    bounds: tuple[Fraction, Fraction] | None = None
    step: Fraction | None = None
    keys: tuple[Value, ...] | None = None
    nullable: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InvalidParameter("column", problem="has no name", remedy="name it")
        if self.type not in _TYPES:
            raise InvalidParameter(
                f"column {self.name}: type",
                problem="is unknown",
                remedy=f"use one of {', '.join(_TYPES)}",
            )
        if self.bounds is not None:
            low, high = self.bounds
            object.__setattr__(self, "bounds", (rational(low, "low"), rational(high, "high")))
            if self.type not in ("integer", "number"):
                raise InvalidParameter(
                    f"column {self.name}: bounds", problem="are for numbers", remedy="drop them"
                )
            if not self.bounds[0] < self.bounds[1]:
                raise InvalidParameter(
                    f"column {self.name}: bounds",
                    problem="do not rise",
                    remedy="write [low, high] with low < high",
                )
        if self.step is not None:
            object.__setattr__(self, "step", rational(self.step, "step"))
        if self.step is not None and not self.step > 0:
            raise InvalidParameter(
                f"column {self.name}: step", problem="is not above 0", remedy="pass, say, 0.01"
            )
        if self.keys is not None:
            if self.type in ("number", "timestamp"):
                raise InvalidParameter(
                    f"column {self.name}: keys",
                    problem=f"cannot be of type {self.type}",
                    remedy="group by integers, text, dates or truth values, or by bin(...)",
                )
            if not self.keys or len(set(self.keys)) != len(self.keys):
                raise InvalidParameter(
                    f"column {self.name}: keys",
                    problem="are none, or two are equal",
                    remedy="list each key once",
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where rows are: files that DuckDB reads, a table of a DuckDB file, or a frame in memory."""

    kind: Literal["csv", "parquet", "duckdb", "frame"]
    paths: tuple[str, ...] = ()
    table: str | None = None
    frame: Any = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicTable:
    """A table that everybody may see: joined with, never protected."""

    name: str
    source: Source
    columns: Mapping[str, ColumnType]


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What all answers together may cost: epsilon, epsilon and delta, or rho.

    >>> Budget(kind="approx", epsilon=Fraction(3), delta=Fraction(1, 10**6)).kind
    'approx'
    """

    kind: Literal["pure", "approx", "zcdp"]
    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        for name in ("epsilon", "delta", "rho"):  # exact, however they were written
            object.__setattr__(self, name, rational(getattr(self, name), name))
        meant = {"pure": ("epsilon",), "approx": ("epsilon", "delta"), "zcdp": ("rho",)}
        if self.kind not in meant:
            raise InvalidParameter(
                "budget", problem="is of no known kind", remedy="declare epsilon, or rho"
            )
        for name in ("epsilon", "delta", "rho"):
            value = getattr(self, name)
            if (value > 0) != (name in meant[self.kind]) or value < 0:
                raise InvalidParameter(
                    f"budget: {name}",
                    problem=f"does not suit a budget of kind {self.kind}",
                    remedy=f"declare {' and '.join(meant[self.kind])}, above 0, and nothing else",
                )
        probability(self.delta, "budget: delta", one=False, remedy="declare, say, 1e-6")


@dataclass(frozen=True, slots=True, kw_only=True)
class DataCard:
    """A table, as its steward describes it: all that a plan may depend on.

    `unit` names the column that says whose row it is; None: each row is a different person.
    One unit counts for at most `max_rows` rows in all, and can bring at most `max_groups` keys to
    light. Names of columns are compared without regard to case, as SQL does.
    """

    name: str
    source: Source
    unit: str | None
    max_rows: int
    columns: Mapping[str, Column]
    max_groups: int | None = None
    neighbours: Neighbours = ADD_REMOVE
    budget: Budget | None = None
    ledger: str | None = None
    users: tuple[str, ...] | None = None
    public: Mapping[str, PublicTable] = field(default_factory=dict)
    file: str | None = field(default=None, compare=False)
    """Where the card was read, if it was: a file that nothing may be written over."""

    def __post_init__(self) -> None:
        if self.neighbours.relation not in ("add-remove", "change-one"):
            raise InvalidParameter(
                "neighbours", problem="is open", remedy="declare add-remove or change-one"
            )
        if self.unit is None and (self.max_rows != 1 or self.max_groups not in (None, 1)):
            raise InvalidParameter(
                "max_rows",
                problem="is not 1 although each row is a unit",
                remedy="name the unit's column, or leave max_rows at 1",
            )
        if not 1 <= self.max_rows <= _MOST_ROWS:
            raise InvalidParameter(
                "max_rows", problem="is not between 1 and 2**20", remedy="declare a smaller number"
            )
        if self.max_groups is not None and not 1 <= self.max_groups <= _MOST_ROWS:
            raise InvalidParameter(
                "max_groups", problem="is not between 1 and 2**20", remedy="declare a smaller one"
            )
        lowered = [name.lower() for name in self.columns]
        if len(set(lowered)) != len(lowered):
            raise InvalidParameter(
                "columns",
                problem="are two whose names differ in case only",
                remedy="rename one in the source",
            )
        if self.unit is not None:
            unit = self.column(self.unit)
            if unit.type not in ("integer", "text"):
                raise InvalidParameter(
                    "unit",
                    problem=f"column is of type {unit.type}",
                    remedy="use a column of integers or text that names the unit",
                )

    def column(self, name: str) -> Column:
        """The column of this name, in whatever case it is written."""
        for column in self.columns.values():
            if column.name.lower() == name.lower():
                return column
        known = ", ".join(column.name for column in self.columns.values())
        raise InvalidParameter(
            f"column {name[:60]}", problem="is not on the card", remedy=f"use one of {known}"
        )
