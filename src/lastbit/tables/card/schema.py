"""What a steward declares of a table, as values: unit, limits, budget, sources, other tables.

`read.py` makes these of TOML, Python programs of the arguments of `lastbit.table`; the rules are
here, for both. Nothing looks at the data. Of columns, what runs takes names and types alone: what
else is publicly known of them (`column.py`) is for planners.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from lastbit.errors import InvalidParameter
from lastbit.privacy import ADD_REMOVE, Neighbours
from lastbit.tables.limits import MOST_MATCHES
from lastbit.tables.query.expression import ColumnType, StoredType

if TYPE_CHECKING:
    from lastbit.tables.card.budget import Budget
    from lastbit.tables.card.column import Column

EngineName: TypeAlias = Literal["duckdb", "postgres", "spark"]
"""The engines that run statements."""

_MOST_ROWS = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where rows are: files that DuckDB reads, a table of a DuckDB file, or a frame in memory; a
    table of a PostgreSQL server, whose address is the path; or a table, files or frame of Spark.

    >>> Source(kind="csv", paths=("visits.csv",)).engine
    'duckdb'
    """

    kind: Literal["csv", "parquet", "duckdb", "frame", "postgres", "spark"]
    paths: tuple[str, ...] = ()
    table: str | None = None
    frame: Any = field(default=None, repr=False, compare=False)

    @property
    def engine(self) -> EngineName:
        """The engine that runs the statements on it, where the data are."""
        return self.kind if self.kind in ("postgres", "spark") else "duckdb"

    def may_be_table_of(self, other: Source) -> bool:
        """Whether two names in one file may mean one table: as far as both say, they are alike.

        >>> one = Source(kind="duckdb", table="visits")
        >>> one.may_be_table_of(Source(kind="duckdb", table="main.Visits"))
        True
        """
        names = [(source.table or "").replace('"', "").casefold() for source in (self, other)]
        ends = [list(reversed(name.split("."))) for name in names]
        return all(a == b for a, b in zip(*ends, strict=False))


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicTable:
    """A table that everybody may see: joined with, never protected.

    >>> source = Source(kind="csv", paths=("regions.csv",))
    >>> PublicTable(name="regions", source=source, columns={"region": "text"}).columns["region"]
    'text'
    """

    name: str
    source: Source
    columns: Mapping[str, ColumnType]


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateTable:
    """Another table with rows of the same units: joined on the unit, protected as the card's own.

    `unit` is its column that says whose row it is. Of one unit at most `max_rows` rows meet those
    of the card's table, chosen by a keyed hash where there are more. That limits the work that one
    unit can cause, not what it counts for: joined rows are weighed by the card's `max_rows`.

    >>> from lastbit.tables import Column
    >>> who = Column(name="patient", type="integer")
    >>> stays = PrivateTable(name="stays", source=Source(kind="csv", paths=("stays.csv",)),
    ...                      unit="patient", max_rows=3, columns={"patient": who})
    >>> stays.max_rows
    3
    """

    name: str
    source: Source
    unit: str
    max_rows: int
    columns: Mapping[str, Column]

    def __post_init__(self) -> None:
        what = f"private table {str(self.name)[:60]}"
        if type(self.max_rows) is not int or not 1 <= self.max_rows <= MOST_MATCHES:
            problem = f"is not a whole number from 1 to {MOST_MATCHES}"
            remedy = "declare how many of one unit's rows a join may use"
            raise InvalidParameter(f"{what}: max_rows", problem=problem, remedy=remedy)
        _check_apart(self.columns)
        _check_unit(f"{what}: unit", self.column(self.unit))

    def column(self, name: str) -> Column:
        """The column of this name, in whatever case it is written."""
        return _column_named(self.columns, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedTable:
    """A table on the way from rows to their unit, and how rows of the table before it reach it.

    `on` has pairs that are equal: a column of the card, in the table before, and one of this
    source. `columns` are those of the card that are here, each with its name in the source. Where
    one unit has several rows with equal join columns, `max_rows` of them are met, chosen by a
    hash. That limits the work that one unit can cause, not what it counts for.

    >>> orders = LinkedTable(name="orders", source=Source(kind="csv", paths=("orders.csv",)),
    ...                      on=(("order_id", "id"),), columns={"customer": "customer_id"})
    >>> orders.own_name("Customer")
    'customer_id'
    """

    name: str
    source: Source
    on: tuple[tuple[str, str], ...]
    columns: Mapping[str, str]
    max_rows: int = 1

    def own_name(self, name: str) -> str:
        """The name in the source of a column of the card."""
        return next(own for known, own in self.columns.items() if known.lower() == name.lower())


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLimits:
    """What the database may use while it answers; none of it changes an answer.

    None leaves the choice to the program: a share of the memory, all cores, the system's folder for
    temporary files, and what is free there. Sizes are texts: "500MB", "8GB", "2TB", by thousands.
    """

    max_memory: str | None = None
    threads: int | None = None
    spill_folder: str | None = None
    """Where rows go that do not fit into memory, into a folder for this user alone."""
    max_spill: str | None = None
    index: bool = True
    """Whether the numbers of rows of units are kept beside the ledger, for the next question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataCard:
    """A table, as its steward describes it: all that a plan may depend on.

    `unit` names the column that says whose row it is; None: each row is a different person.
    One unit counts for at most `max_rows` rows in all, and contributes to at most `max_groups`
    groups of undeclared keys. Names of columns are compared without regard to case, as SQL does.

    >>> from lastbit.tables import Column
    >>> columns = {"patient": Column(name="patient", type="integer")}
    >>> card = DataCard(name="visits", source=Source(kind="csv", paths=("visits.csv",)),
    ...                 unit="patient", max_rows=5, columns=columns)
    >>> card.neighbours
    Neighbours(relation='add-remove', unit='record')
    """

    name: str
    source: Source
    unit: str | None
    max_rows: int
    columns: Mapping[str, Column]
    max_groups: int | None = None
    max_groups_assumed: bool = False
    """Whether max_groups was not declared: then undeclared keys are looked for with fewer."""
    max_rows_open: bool = False
    """Whether max_rows was not declared: a profile chooses it before anything is planned."""
    neighbours: Neighbours = ADD_REMOVE
    budget: Budget | None = None
    ledger: str | None = None
    users: tuple[str, ...] | None = None
    accepted_data: bool = False
    """Whether only data that a steward has accepted may be asked about."""
    account: str | None = None
    """What the ledger calls the budget that tables of the same people share; None: `name`."""
    public: Mapping[str, PublicTable] = field(default_factory=dict)
    engine_limits: EngineLimits = EngineLimits()
    private: Mapping[str, PrivateTable] = field(default_factory=dict)
    """Further tables of the same units. Neighbours differ in one unit's rows in all of them."""
    through: tuple[LinkedTable, ...] = ()
    """The tables through which rows reach their unit, in this order; `compile/reached.py`."""
    rows: int | None = None
    """About how many rows the table has, as is publicly known: by this the server sizes its slots,
    and a plan says how much of a group an error is; never by the rows that are there."""
    at_most: int | None = None
    """No unit has more rows, as is publicly known; whole intervals rest on it, and no plan does."""
    prepared: str | None = None
    """The folder for rows made ready once, if the card names one; `duckdb/prepared.py`."""
    file: str | None = field(default=None, compare=False)
    """Where the card was read, if it was: a file that nothing may be written over."""
    unrolled: str | None = None
    """The column of lists of whose elements the question at hand makes rows: never declared."""
    unnamed: bool = field(default=False, compare=False)
    """Whether nobody named the table: a statement may then call it as it likes."""

    def __post_init__(self) -> None:
        if self.neighbours.relation not in ("add-remove", "change-one"):
            problem, remedy = "is open", "declare add-remove or change-one"
            raise InvalidParameter("neighbours", problem=problem, remedy=remedy)
        if self.unit is None and (self.max_rows != 1 or self.max_groups not in (None, 1)):
            problem = "is not 1 although each row is a unit"
            remedy = "name the unit's column, or leave max_rows at 1"
            raise InvalidParameter("max_rows", problem=problem, remedy=remedy)
        for name, most in (("max_rows", self.max_rows), ("max_groups", self.max_groups)):
            if name == "max_groups" and most is None:
                continue
            if type(most) is not int or not 1 <= most <= _MOST_ROWS:
                problem = "is not a whole number from 1 to 2**20"
                raise InvalidParameter(name, problem=problem, remedy="declare a smaller number")
        _check_apart(self.columns)
        self._check_lists()
        self._check_private()
        self._check_engine()
        if self.unit is not None:
            _check_unit("unit: column", self.column(self.unit))

    @property
    def account_name(self) -> str:
        """The account in the ledger that answers about this table are charged to."""
        return self.name if self.account is None else self.account

    def column(self, name: str) -> Column:
        """The column of this name, in whatever case it is written."""
        return _column_named(self.columns, name)

    @property
    def protected(self) -> dict[str, Source]:
        """Where protected rows are beside the table's own, by the names of these tables."""
        linked = {one.name: one.source for one in self.through}
        return {**{name: one.source for name, one in self.private.items()}, **linked}

    def columns_at(self, place: int) -> dict[str, StoredType]:
        """The columns that are read of the table (0), or of a step (1, 2 ...), as sources name."""
        there = {name.lower() for one in self.through for name in one.columns}
        if type(place) is not int or not 0 <= place <= len(self.through):
            remedy = f"pass 0, or the place of a step up to {len(self.through)}"
            raise InvalidParameter("place", problem="is no step of the card", remedy=remedy)
        if place == 0:
            own = (c for c in self.columns.values() if c.name.lower() not in there)
            return {column.name: column.stored_type for column in own}
        step = self.through[place - 1]
        found: dict[str, StoredType] = {
            own: self.column(name).type for name, own in step.columns.items()
        }
        return {**{other: self.column(own).type for own, other in step.on}, **found}

    def way(self) -> list[dict[str, Any]]:
        """How rows reach their unit, as plans and the books have it: every step, and by what."""
        wanted = [*([own.lower() for own, _ in one.on] for one in self.through[1:])]
        wanted.append([(self.unit or "").lower()])
        return [
            {
                "table": one.name,
                "on": [list(pair) for pair in one.on],
                "max_rows": one.max_rows,
                "columns": {a: b for a, b in sorted(one.columns.items()) if a.lower() in names},
            }
            for one, names in zip(self.through, wanted, strict=False)
        ]

    def reached_by(self) -> list[list[str | None]]:
        """Of the table, and of those on the way: the columns there by which the unit is reached."""
        if not self.through:
            return [[self.unit]]
        first: list[str | None] = [own for own, _ in self.through[0].on]
        linked = [[*one["columns"].values(), *dict(one["on"]).values()] for one in self.way()]
        return [first, *linked]

    def _check_lists(self) -> None:
        """That lists are where their elements can be read, and belong to a named unit."""
        there = {name.lower() for one in self.through for name in one.columns}
        for column in self.columns.values():
            what = f"column {column.name[:60]}: type"
            if column.is_list and self.source.kind in ("csv", "postgres", "spark"):
                problem = f"is a list, and lists are not read of {self.source.kind}"
                remedy = "write the table as Parquet, or leave the column out"
                raise InvalidParameter(what, problem=problem, remedy=remedy)
            if column.is_list and column.name.lower() in there:
                problem = "is a list, in another table than the one asked about"
                raise InvalidParameter(what, problem=problem, remedy="leave the column out")
        for table in self.private.values():
            lists = [column.name for column in table.columns.values() if column.is_list]
            if lists:
                what = f"private table {table.name[:60]}: column {lists[0][:60]}"
                problem = "is a list, and only the table's own lists can be asked about"
                raise InvalidParameter(what, problem=problem, remedy="leave the column out")

    def _check_engine(self) -> None:
        """That all tables are on one engine, since one statement reads them all."""
        others = {f"public table {name[:60]}": one.source for name, one in self.public.items()}
        others |= {f"private table {name[:60]}": one for name, one in self.protected.items()}
        for what, source in others.items():
            if source.engine != self.source.engine:
                problem = f"is on {source.engine}, and the table on {self.source.engine}"
                raise InvalidParameter(what, problem=problem, remedy="copy it beside the table")

    def _check_private(self) -> None:
        """That private tables have names of their own, and units of the type of the card's."""
        others = (self.name, *self.public, *(one.name for one in self.through))
        taken = [name.lower() for name in others]
        for name, table in self.private.items():
            what = f"private table {str(name)[:60]}"
            if name != table.name or table.name.lower() in taken:
                problem = "has the name of another table"
                raise InvalidParameter(what, problem=problem, remedy="rename one of them")
            taken.append(table.name.lower())
            if self.unit is None:
                problem = "has a unit, and the table has none: each row is one"
                remedy = "name the unit's column of the table too"
                raise InvalidParameter(what, problem=problem, remedy=remedy)
            kinds = self.column(self.unit).type, table.column(table.unit).type
            if kinds[0] != kinds[1]:
                problem = f"has units of type {kinds[1]}, and the table has {kinds[0]}"
                remedy = "declare both columns of one type, so that units match"
                raise InvalidParameter(what, problem=problem, remedy=remedy)


def _column_named(columns: Mapping[str, Column], name: str) -> Column:
    named = isinstance(name, str)
    for column in columns.values() if named else ():
        if column.name.lower() == name.lower():
            return column
    known = ", ".join(column.name for column in columns.values())
    what, problem = f"column {name[:60]}" if named else "column", "is not on the card"
    raise InvalidParameter(what, problem=problem, remedy=f"use one of {known}")


def _check_unit(what: str, column: Column) -> None:
    if column.stored_type not in ("integer", "text"):
        problem, remedy = f"is of type {column.stored_type}", "use a column of integers or text"
        raise InvalidParameter(what, problem=problem, remedy=remedy)


def _check_apart(columns: Mapping[str, Column]) -> None:
    lowered = [name.lower() for name in columns]
    if len(set(lowered)) != len(lowered):
        problem = "are two whose names differ in case only"
        raise InvalidParameter("columns", problem=problem, remedy="rename one in the source")
