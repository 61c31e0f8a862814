"""Which engine runs a question: the one that its sources are on; each is loaded when it is needed.

Every engine's folder has the same files: `engine.py`, with its `Session`; `sources.py`, with the
columns and types that it finds; `rehearsal.py`, which runs a statement without rows before it is
paid for; and `columns.py`, for those who draft cards.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from threading import RLock
from typing import Any, Self, TypeAlias, TypeVar, cast

from lastbit.errors import InvalidParameter
from lastbit.tables.card.schema import DataCard, Source
from lastbit.tables.compile.marginals import marginals_statement
from lastbit.tables.compile.rows import private_relation, relation
from lastbit.tables.compile.statement import Statement, statement
from lastbit.tables.measures import Measure
from lastbit.tables.query.expression import ColumnType, StoredType
from lastbit.tables.query.scan import Marginal, Scan

_MOST_STATES = 64

Opened = TypeVar("Opened")
Tables: TypeAlias = list[tuple[str | None, Opened, dict[str, StoredType]]]
Spelled: TypeAlias = Callable[..., Statement]
"""The statement, by what the engine says of itself and of its sources (`compile/statement.py`)."""


class RawRows:
    """What a statement gave. Only `kernel/sealed.py` reads it; it shows itself to nobody."""

    __slots__ = ("statement", "unsealed_rows")

    def __init__(self, statement: Statement, rows: Iterable[tuple[Any, ...]]) -> None:
        self.statement = statement
        self.unsealed_rows = list(rows)

    def __repr__(self) -> str:
        return "<RawRows: not private, not shown>"


class Session(ABC):
    """An engine, open for the calls of one question, by one thread at a time.

    What is slow to open is opened once, when it is first needed, and closed with the session. What
    two calls of a session share is never a row, but on PostgreSQL the state of the tables.
    """

    def __init__(self, *, units: str | None = None) -> None:
        self.units = units
        """The folder of the index of rows per unit, where one is kept."""
        self.held = ExitStack()
        self.lock = RLock()
        """Threads that share a session take turns: what one shows must not be read by another."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all that was opened; the session may be used again, and opens it anew."""
        self.held.close()

    @abstractmethod
    def fingerprint(self, card: DataCard) -> bytes:
        """Differs if the data do. Refuses what no question could be answered from."""

    def aggregates(
        self, query: Scan, card: DataCard, measures: tuple[Measure, ...], *, secret: str | None
    ) -> RawRows:
        """The measures of the query, raw. What fails, fails before anything is released."""
        return self.run(query, card, partial(statement, query, card, measures, secret=secret))

    def marginal_counts(
        self, query: Scan, card: DataCard, marginals: Sequence[Marginal]
    ) -> RawRows:
        """The marginals of the query, raw, by the names m1, m2 ..."""
        return self.run(query, card, partial(marginals_statement, query, card, marginals))

    @abstractmethod
    def run(self, query: Scan, card: DataCard, spelled: Spelled) -> RawRows:
        """What the statement gives, of one state of the data."""


def tables_of(
    card: DataCard,
    names: Iterable[str],
    opened: Callable[[Source], Opened],
    check_unit: Callable[[Opened, str | None], None],
    check_apart: Callable[[Opened, Iterable[tuple[str, Opened]]], None],
    alike: Callable[[Opened, Opened], bool],
) -> Tables[Opened]:
    """The table (None) and these others: opened, and the columns that the card declares.

    A public table that is the table itself, or a private one, is refused: joined or not, each
    private one is looked at for that. Tables on the way are always there; see `check_owners`.
    """
    found: Tables[Opened] = [(None, opened(card.source), card.columns_at(0))]
    way = [opened(one.source) for one in card.through]
    found += [
        (one.name, there, card.columns_at(place))
        for place, (one, there) in enumerate(zip(card.through, way, strict=True), start=1)
    ]
    public: list[tuple[str, Opened]] = []
    private = {name: opened(one.source) for name, one in card.private.items()}
    check_owners(card, [there for _, there, _ in found], private, alike)
    for name in names:
        if name in private:
            columns = card.private[name].columns.values()
            found.append((name, private[name], {column.name: column.type for column in columns}))
        else:
            public.append((name, opened(card.public[name].source)))
            found.append((*public[-1], dict(card.public[name].columns)))
    for here, joined_by in zip((found[0][1], *way), card.reached_by(), strict=True):
        for column in joined_by:
            check_unit(here, column)
    for name, there in private.items():
        check_unit(there, card.private[name].unit)
    for protected in (found[0][1], *way, *private.values()):
        check_apart(protected, public)
    return found


def plain_types(columns: Mapping[str, StoredType]) -> dict[str, ColumnType]:
    """The same, on an engine that reads no lists; the card has refused them by then."""
    lists = [name for name, kind in columns.items() if kind.endswith("[]")]
    if lists:
        problem = "is a list, which is read on DuckDB alone"
        remedy = "write the table as Parquet, or leave the column out"
        raise InvalidParameter(f"column {lists[0][:60]}", problem=problem, remedy=remedy)
    return cast(dict[str, ColumnType], dict(columns))


def check_owners(
    card: DataCard,
    way: Sequence[Opened],
    private: Mapping[str, Opened],
    alike: Callable[[Opened, Opened], bool],
) -> None:
    """Refuse a table that is there twice, if a row of it is not the same unit's in both places.

    Whoever takes a unit's rows out of one place takes them out of the other too, where they are on
    the ways of others, or theirs: messages by who sent them, and by who got them. `way` are the
    table and those on the way to the unit; the unit is a column of the last one alone.
    """
    for place, one in enumerate(card.through, start=1):
        if any(alike(before, way[place]) for before in way[:place]):
            problem = "is on the way to the unit twice, or is the table itself"
            remedy = "take another unit: a row of one unit would be on the way to others"
            raise InvalidParameter(f"linked table {one.name[:60]}", problem=problem, remedy=remedy)
    unit = card.unit and (card.through[-1].own_name(card.unit) if card.through else card.unit)
    owners = [*((there, None) for there in way[:-1]), (way[-1], unit and unit.lower())]
    for name, there in private.items():
        own = card.private[name].unit.lower()
        if any(alike(other, there) and owner != own for other, owner in owners):
            problem = "is another table of the card as well, where its rows are other units'"
            remedy = "name the same column as the unit in both, or leave it out"
            raise InvalidParameter(f"private table {name[:60]}", problem=problem, remedy=remedy)
        owners.append((there, own))


def names_in_statement(
    card: DataCard, tables: Tables[Opened]
) -> list[tuple[str, Opened, dict[str, StoredType]]]:
    """The same tables, each by the name under which the statement asks for it."""
    return [
        (private_relation(name or "") if name in card.protected else relation(name), there, columns)
        for name, there, columns in tables
    ]


class LookedThrough:
    """States of files that were looked through in this process, the latest ones."""

    def __init__(self) -> None:
        self._states: dict[object, None] = {}

    def holds(self, state: object) -> bool:
        """Whether this state was looked through."""
        return state in self._states

    def add(self, state: object) -> None:
        """That it was; the oldest are looked through again."""
        self._states[state] = None
        for old in list(self._states)[:-_MOST_STATES]:
            self._states.pop(old, None)


def open_session(card: DataCard, *, units_beside: object = None) -> Session:
    """A session on the engine of this card, to be closed; nothing is opened as yet.

    DuckDB keeps which units have many rows, if the card lets it, beside the ledger at this path. A
    ledger on a server has no place for it.
    """
    indexed = card.source.engine == "duckdb" and card.engine_limits.index
    beside = indexed and isinstance(units_beside, Path)
    return session_on(card.source, units=f"{units_beside}.units" if beside else None)


def session_on(source: Source, *, units: str | None = None) -> Session:
    """A session on the engine of this source; refused where its driver is not installed."""
    try:
        engine = import_module(f"lastbit.tables.backends.{source.engine}.engine")
    except ModuleNotFoundError as error:
        import_module("lastbit.tables.backends.drivers").refuse_missing(source.engine, error)
        raise
    return cast(Session, engine.EngineSession(units=units))


@contextmanager
def session_for(
    card: DataCard, session: Session | None, *, units_beside: object = None
) -> Iterator[Session]:
    """The session given; or, where there is none, one on the engine of the card until the end."""
    if session is not None:
        yield session
        return
    with open_session(card, units_beside=units_beside) as own:
        yield own
