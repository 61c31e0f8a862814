"""PostgreSQL runs the statement, where the data are.

Every call is in a transaction that reads one state and writes nothing; the calls of a session share
one, so that what is fingerprinted is what is answered, whatever others write in between. Ctrl-C
ends the statement on the server too. An error of the server keeps its words here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from math import prod
from typing import Any, TypeVar

import psycopg

from lastbit.addresses import Address
from lastbit.errors import EngineFailed, InvalidParameter
from lastbit.tables.backends.engines import RawRows, Session, Spelled, check_owners, plain_types
from lastbit.tables.backends.postgres.sources import (
    Found,
    contents,
    found,
    origins,
    transaction,
)
from lastbit.tables.card.schema import DataCard, Source
from lastbit.tables.compile.dialect import Shown
from lastbit.tables.compile.postgres import POSTGRES
from lastbit.tables.compile.rows import CompiledRows, private_relation, relation
from lastbit.tables.compile.units import check_matches
from lastbit.tables.limits import sealed
from lastbit.tables.query.expression import ColumnType
from lastbit.tables.query.scan import Scan

Result = TypeVar("Result")


class EngineSession(Session):
    """One transaction for each database, begun when it is first needed."""

    def __init__(self, *, units: str | None = None) -> None:
        super().__init__(units=units)
        self._transactions: dict[str, Any] = {}

    def run(self, query: Scan, card: DataCard, spelled: Spelled) -> RawRows:
        def run(connection: Any) -> RawRows:
            actual = actual_tables(connection, query, card)
            wanted = spelled(dialect=POSTGRES, actual=actual)
            return RawRows(wanted, connection.execute(wanted.sql, prepare=False))

        return self.guarded(card.source, run)

    def fingerprint(self, card: DataCard) -> bytes:
        """Differs if a row of a table does, or its columns do (`sources.contents`).

        Refuses, before anything is charged, what no question could be answered from.
        """

        def run(connection: Any) -> bytes:
            found = tables(connection, card, [*card.public, *card.private])
            places = [(name or "", there) for name, there in found.items()]
            rows = contents(connection, [there for _, there in places])
            seen = [
                (name, sorted(there.tree), row)  # not what this user may read of it
                for (name, there), row in zip(places, rows, strict=True)
            ]
            return hashlib.sha256(repr(seen).encode()).digest()

        return self.guarded(card.source, run)

    def guarded(self, source: Source, run: Callable[[Any], Result]) -> Result:
        """What `run` gives; of the server's own errors no word, of any other no frame."""
        address = _address(source)

        def caught() -> Result:
            with self.lock:
                return in_turn()

        def in_turn() -> Result:
            connection = self._transactions.get(str(address))
            if connection is None:
                connection = self.held.enter_context(transaction(address))
                self._transactions[str(address)] = connection
                self.held.callback(self._transactions.clear)
            try:
                return run(connection)
            except BaseException:  # the transaction is over: the next call begins another
                self._transactions.pop(str(address), None)
                connection.close()
                raise

        def told() -> Result:
            try:
                return caught()
            except psycopg.Error as error:  # its text may hold values: it must not be a cause
                state, lost = error.sqlstate or "", isinstance(error, psycopg.OperationalError)
            raise EngineFailed(_told(state, lost=lost))

        return sealed(told, words=_told("", lost=False))


def actual_tables(
    connection: Any, query: Scan, card: DataCard, *, empty: bool = False
) -> dict[str, Shown]:
    """The tables of a question as the statement names them; `empty`: private ones without rows."""
    joined = query.joined_tables
    asked = {None, *joined, *(one.name for one in card.through)}
    found_tables = tables(connection, card, joined)
    actual = {
        (
            private_relation(name) if name and name in card.protected else relation(name)
        ): there.shown(empty=empty and (name is None or name in card.protected))
        for name, there in found_tables.items()
        if name in asked
    }
    counts = CompiledRows(query, card, dialect=POSTGRES, actual=actual).matches()
    most = prod(connection.execute(sql, prepare=False).fetchone()[0] for sql in counts)
    check_matches(query, card, most)
    return actual


def tables(connection: Any, card: DataCard, names: Iterable[str]) -> dict[str | None, Found]:
    """The table (None), those on the way to the unit, all private ones and these public ones.

    A public one is none of the others, and no two of the way are made of one (`check_owners`):
    joined or not, each private one is looked at for that.
    """
    known: dict[str | None, Found] = {
        None: found(connection, card.source, plain_types(card.columns_at(0)))
    }
    for place, step in enumerate(card.through, start=1):
        what, kinds = f"linked table {step.name}", plain_types(card.columns_at(place))
        known[step.name] = _beside(connection, card, step.source, what, kinds)
    for name, one in card.private.items():
        kinds = {column.name: column.type for column in one.columns.values()}
        known[name] = _beside(connection, card, one.source, f"private table {name}", kinds)
    if card.through or card.private:
        made = {name: origins(connection, there) for name, there in known.items()}
        way = [made[name] for name in (None, *(one.name for one in card.through))]
        private_ones = {name: made[name] for name in card.private}
        check_owners(card, way, private_ones, lambda one, other: not one.isdisjoint(other))
    private = frozenset().union(*(there.tree for there in known.values()))
    for name in names:
        if name not in known:
            public = card.public[name]
            what = f"public table {name}"
            there = _beside(connection, card, public.source, what, public.columns)
            if there.tree & private:
                problem = "is the table itself, a private one, or a part of one"
                remedy = "name only what everybody may see"
                raise InvalidParameter(what[:80], problem=problem, remedy=remedy)
            known[name] = there
    return known


def _beside(
    connection: Any, card: DataCard, source: Source, what: str, wanted: Mapping[str, ColumnType]
) -> Found:
    if not _address(source).leads_to(_address(card.source)):
        problem, remedy = "is in another database than the table", "copy it beside the table"
        raise InvalidParameter(what[:80], problem=problem, remedy=remedy)
    return found(connection, source, wanted)


def _address(source: Source) -> Address:
    return Address.read(source.paths[0], what="source")


def _told(state: str, *, lost: bool) -> str:
    """By the class of an error, as the SQL standard and PostgreSQL number them."""
    match state[:2], state:
        case _, "42501":
            return "the table may not be read by this user; GRANT SELECT on it"
        case _, "42P01" | "3F000":
            return "a table of the source is not there any more; name one that is"
        case _, "57014":
            return "the statement took longer than the server allows; raise statement_timeout"
        case _, "57P05":
            return "the server ends sessions too soon; raise idle_session_timeout"
        case _, "25P04":
            return "the transaction took longer than the server allows; raise transaction_timeout"
        case _, "53400":
            return "the statement needs more disk than the server allows; raise temp_file_limit"
        case _, "55P03":
            return "another transaction holds a lock on the table; ask again later"
        case "53", _:
            return (
                "the server ran out of memory, disk or connections; ask later, or for fewer groups"
            )
        case "54", _:
            return "the statement is too large for the server; simplify the question"
        case "40", _:
            return "the server gave the statement up for another one; ask again"
        case (("08" | "57" | "58"), _):
            return "the server stopped, or the connection was lost; ask again"
        case "", _ if lost:
            return "the server stopped, or the connection was lost; ask again"
    return "the server could not run the statement; nothing was released"
