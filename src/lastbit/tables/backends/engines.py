"""Which engine runs a question: the one that its sources are on; each is loaded when it is needed.

Every engine's folder has the same two files: `engine.py`, with the functions of `Engine` below, and
`sources.py`, with the columns and types that it finds. The functions here hand over to them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Protocol, TypeAlias, cast

from lastbit.errors import InvalidParameter, LastbitError
from lastbit.tables.backends.aggregated import Aggregates
from lastbit.tables.card.schema import DataCard, EngineName, Source
from lastbit.tables.compile.dialect import Dialect
from lastbit.tables.compile.marginals import marginals_statement
from lastbit.tables.compile.statement import statement
from lastbit.tables.limits import nameable
from lastbit.tables.plan.marginals import Marginal, MarginalsPlan
from lastbit.tables.plan.plan import Plan
from lastbit.tables.plan.sensitivity import Measure
from lastbit.tables.query.expression import ColumnType, Value
from lastbit.tables.query.query import Query

_DRIVERS: Mapping[str, EngineName] = MappingProxyType({"psycopg": "postgres", "pyspark": "spark"})
_PLACES: Mapping[EngineName, tuple[str, str]] = MappingProxyType(
    {
        "duckdb": ("duckdb", "DUCKDB"),
        "postgres": ("postgres", "POSTGRES"),
        "spark": ("spark", "SPARK"),
    }
)


class Engine(Protocol):
    """What every `backends/<engine>/engine.py` has."""

    def version(self, card: DataCard) -> str:
        """Of the program that runs the statement, as it says itself."""

    def one_database(self) -> AbstractContextManager[None]:
        """Inside, the calls of this thread share what is slow to open."""

    def fingerprint(self, card: DataCard) -> bytes:
        """Differs if the data do. Refuses what no question could be answered from."""

    def columns_of(self, source: Source) -> dict[str, ColumnType]:
        """The names and types of the source's columns; no value is looked at."""

    def public_values(
        self, card: DataCard, table: str, column: tuple[str, ColumnType], *, most: int
    ) -> tuple[Value, ...]:
        """The first different values of a public table's column, in order."""

    def rehearse(self, query: Query, card: DataCard, measures: tuple[Measure, ...]) -> None:
        """Refuse, without reading a row, what the engine cannot run."""

    def rehearse_marginals(
        self, query: Query, card: DataCard, marginals: Sequence[Marginal]
    ) -> None:
        """The same for all marginals of a question."""

    def aggregates(
        self, query: Query, card: DataCard, measures: tuple[Measure, ...], *, secret: str | None
    ) -> Aggregates:
        """The measures of the query, raw. What fails, fails before anything is released."""

    def marginal_counts(
        self, query: Query, card: DataCard, marginals: Sequence[Marginal]
    ) -> Aggregates:
        """The marginals of the query, raw, by the names m1, m2 ..."""


def engine_of(source: Source) -> Engine:
    """The engine that this source is on; refused where its driver is not installed."""
    name = source.engine
    try:
        return cast(Engine, import_module(f"lastbit.tables.backends.{name}.engine"))
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
    file, constant = _PLACES[name]
    return cast(Dialect, getattr(import_module(f"lastbit.tables.compile.{file}"), constant))


_SHOWN = "lastbit_table stands for the table"
_UNDRAWN = "drawn afresh for every answer"


def printed_statement(plan: Plan | MarginalsPlan, name: str | None = None) -> str:
    """The statement of a plan, for review, in the text of this engine or of the card's own.

    Its first line says what it is. Nothing is read: columns are taken to be as the card says, and
    sources stand under the names that an engine shows them by.
    """
    own = plan.card.source.engine
    name = name or own
    dialect = dialect_of(cast(EngineName, name))
    if isinstance(plan, MarginalsPlan):
        sql = marginals_statement(plan.query, plan.card, plan.scanned, dialect=dialect)
    else:
        asked = plan.query, plan.card, plan.measures
        sql = statement(*asked, secret=_UNDRAWN, dialect=dialect).sql
    if name == own:
        words = f"{dialect.title}, dialect {dialect.version}: as lastbit runs it; {_SHOWN}"
    else:
        words = f"{dialect.title}, dialect {dialect.version}: the source is on {own}"
    return f"-- {words}\n{sql}"


def engine_record(card: DataCard) -> dict[str, str | int]:
    """What a record and a certificate say of the engine: name, version, and that of the dialect."""
    name = card.source.engine
    # a vendor may call its own version anything; the checker takes a plain word
    version = re.sub(r"[^0-9A-Za-z.+!_-]", "_", engine_of(card.source).version(card))[:60] or "_"
    return {"name": name, "version": version, "dialect": dialect_of(name).version}


def one_database(card: DataCard) -> AbstractContextManager[None]:
    """Inside, the calls of this thread about this card share what is slow to open."""
    return engine_of(card.source).one_database()


def keeping_units(card: DataCard, ledger: object) -> AbstractContextManager[None]:
    """Inside, DuckDB keeps which units have many rows, if the card lets it, beside this ledger.

    A ledger on a server has no place for it.
    """
    indexed = card.source.engine == "duckdb" and card.engine_limits.index
    if not indexed or not isinstance(ledger, Path):
        return nullcontext()
    from lastbit.tables.backends.duckdb import engine  # each engine is loaded when it is needed

    return engine.keeping_units(f"{ledger}.units")


def fingerprint(card: DataCard) -> bytes:
    """Differs if the data do. Refuses what no question could be answered from."""
    return engine_of(card.source).fingerprint(card)


def columns_of(source: Source) -> dict[str, ColumnType]:
    """The names and types of the source's columns; no value is looked at."""
    return engine_of(source).columns_of(source)


def public_values(
    card: DataCard, table: str, column: str, *, most: int
) -> tuple[Value, ...] | None:
    """The different values of a public table's column, in order.

    None if there are more than `most`, or some that no query can name, or the table cannot be read:
    then it is refused where the question is rehearsed.

    Theorem  they are a function of a public table, which is another file than the protected one
             (`check_apart`): a query that names them as its keys has not looked at the data
    """
    kinds, engine = card.public[table].columns, engine_of(card.source)
    found = next(pair for pair in kinds.items() if pair[0].lower() == column.lower())
    try:
        values = engine.public_values(card, table, found, most=most + 1)
    except LastbitError:
        return None
    return values if nameable(values, most=most) else None


def rehearse(query: Query, card: DataCard, measures: tuple[Measure, ...]) -> None:
    """Refuse, without reading a row, what the engine cannot run."""
    engine_of(card.source).rehearse(query, card, measures)


def rehearse_marginals(query: Query, card: DataCard, marginals: Sequence[Marginal]) -> None:
    """The same for all marginals of a question."""
    engine_of(card.source).rehearse_marginals(query, card, marginals)


def aggregates(
    query: Query, card: DataCard, measures: tuple[Measure, ...], *, secret: str | None
) -> Aggregates:
    """The measures of the query, raw. What fails, fails before anything is released."""
    return engine_of(card.source).aggregates(query, card, measures, secret=secret)


def marginal_counts(query: Query, card: DataCard, marginals: Sequence[Marginal]) -> Aggregates:
    """The marginals of the query, raw, by the names m1, m2 ..."""
    return engine_of(card.source).marginal_counts(query, card, marginals)


Tell: TypeAlias = Callable[[float, str], None]
_TELL: ContextVar[Tell | None] = ContextVar("tell", default=None)


@contextmanager
def progress(tell: Tell) -> Iterator[None]:
    """Inside, engines that know how far they are say so: the share done, and what they do."""
    before = _TELL.set(tell)
    try:
        yield
    finally:
        _TELL.reset(before)


def told(share: Callable[[], float], words: str) -> None:
    """For engines: tell how far the work is, where that is asked for at all."""
    tell = _TELL.get()
    if tell is not None:
        tell(share(), words)
