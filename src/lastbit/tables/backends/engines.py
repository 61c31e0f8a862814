"""Which engine runs a question: the one that its sources are on; each is loaded when it is needed.

Every engine's folder has the same files: `engine.py`, with its `Session`; `sources.py`, with the
columns and types that it finds; and `columns.py`, for those who draft cards.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Self, cast

from lastbit.errors import InvalidParameter
from lastbit.tables.backends.aggregated import Aggregates
from lastbit.tables.card.schema import DataCard, EngineName, Source
from lastbit.tables.compile.dialect import Dialect
from lastbit.tables.plan.marginals import Marginal
from lastbit.tables.plan.sensitivity import Measure
from lastbit.tables.query.query import Query

_DRIVERS: Mapping[str, EngineName] = MappingProxyType({"psycopg": "postgres", "pyspark": "spark"})

_MOST_STATES = 64


class Session(ABC):
    """An engine, open for the calls of one question, by one thread at a time.

    What is slow to open is opened once, when it is first needed, and closed with the session. What
    two calls of a session share is never a row, but on PostgreSQL the state of the tables.
    """

    def __init__(self, *, units: str | None = None) -> None:
        self.units = units
        """The folder of the index of rows per unit, where one is kept."""
        self.held = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all that was opened; the session may be used again, and opens it anew."""
        self.held.close()

    @abstractmethod
    def version(self, card: DataCard) -> str:
        """Of the program that runs the statement, as it says itself."""

    @abstractmethod
    def fingerprint(self, card: DataCard) -> bytes:
        """Differs if the data do. Refuses what no question could be answered from."""

    @abstractmethod
    def rehearse(self, query: Query, card: DataCard, measures: tuple[Measure, ...]) -> None:
        """Refuse, without reading a row, what the engine cannot run."""

    @abstractmethod
    def rehearse_marginals(
        self, query: Query, card: DataCard, marginals: Sequence[Marginal]
    ) -> None:
        """The same for all marginals of a question."""

    @abstractmethod
    def aggregates(
        self, query: Query, card: DataCard, measures: tuple[Measure, ...], *, secret: str | None
    ) -> Aggregates:
        """The measures of the query, raw. What fails, fails before anything is released."""

    @abstractmethod
    def marginal_counts(
        self, query: Query, card: DataCard, marginals: Sequence[Marginal]
    ) -> Aggregates:
        """The marginals of the query, raw, by the names m1, m2 ..."""


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
    name = source.engine
    try:
        engine = import_module(f"lastbit.tables.backends.{name}.engine")
        return cast(Session, engine.EngineSession(units=units))
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if _DRIVERS.get(missing) != name:
            raise
    raise InvalidParameter(
        "source",
        problem=f"is on {dialect_of(name).title}, and {missing} is not installed",
        remedy=f"pip install 'lastbit[{name}]'",
    )


def dialect_of(name: EngineName) -> Dialect:
    """How statements are written for this engine; its driver is not needed."""
    return cast(Dialect, vars(import_module(f"lastbit.tables.compile.{name}"))[name.upper()])


def engine_record(card: DataCard) -> dict[str, str | int]:
    """What a record and a certificate say of the engine: name, version, and that of the dialect."""
    name = card.source.engine
    with _current(card) as session:
        said = session.version(card)
    # a vendor may call its own version anything; the checker takes a plain word
    version = re.sub(r"[^0-9A-Za-z.+!_-]", "_", said)[:60] or "_"
    return {"name": name, "version": version, "dialect": dialect_of(name).version}


_OPEN: ContextVar[Mapping[EngineName, Session]] = ContextVar("open", default=MappingProxyType({}))


@contextmanager
def one_database(card: DataCard) -> Iterator[None]:
    """Inside, the calls below share one session on the engine of this card."""
    with _current(card) as session:
        before = _OPEN.set({**_OPEN.get(), card.source.engine: session})
        try:
            yield
        finally:
            _OPEN.reset(before)


@contextmanager
def keeping_units(card: DataCard, ledger: object) -> Iterator[None]:
    """The same, in a session that keeps which units have many rows beside this ledger."""
    with one_database(card):
        session = _OPEN.get()[card.source.engine]
        before, session.units = session.units, open_session(card, units_beside=ledger).units
        try:
            yield
        finally:
            session.units = before


@contextmanager
def _current(card: DataCard) -> Iterator[Session]:
    """The session that `one_database` has opened, or one that is closed at the end."""
    known = _OPEN.get().get(card.source.engine)
    if known is not None:  # the outermost decides when it ends
        yield known
        return
    with open_session(card) as session:
        yield session


def fingerprint(card: DataCard) -> bytes:
    """Differs if the data do. Refuses what no question could be answered from."""
    with _current(card) as session:
        return session.fingerprint(card)


def rehearse(query: Query, card: DataCard, measures: tuple[Measure, ...]) -> None:
    """Refuse, without reading a row, what the engine cannot run."""
    with _current(card) as session:
        session.rehearse(query, card, measures)


def rehearse_marginals(query: Query, card: DataCard, marginals: Sequence[Marginal]) -> None:
    """The same for all marginals of a question."""
    with _current(card) as session:
        session.rehearse_marginals(query, card, marginals)


def aggregates(
    query: Query, card: DataCard, measures: tuple[Measure, ...], *, secret: str | None
) -> Aggregates:
    """The measures of the query, raw. What fails, fails before anything is released."""
    with _current(card) as session:
        return session.aggregates(query, card, measures, secret=secret)


def marginal_counts(query: Query, card: DataCard, marginals: Sequence[Marginal]) -> Aggregates:
    """The marginals of the query, raw, by the names m1, m2 ..."""
    with _current(card) as session:
        return session.marginal_counts(query, card, marginals)
