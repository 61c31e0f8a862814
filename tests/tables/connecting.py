"""A connection to DuckDB, as the engine makes one for a call; and single calls of any engine."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lastbit.tables.backends import rehearsal
from lastbit.tables.backends.duckdb.engine import EngineSession
from lastbit.tables.backends.engines import open_session
from lastbit.tables.card.schema import EngineLimits


@contextmanager
def connected(limits: EngineLimits | None = None) -> Iterator[Any]:
    """With its settings, and gone at the end."""
    with EngineSession() as session, session.connected(limits or EngineLimits()) as connection:
        yield connection


def aggregates(query: Any, card: Any, measures: Any, *, secret: str | None) -> Any:
    """The measures of a query, raw, in a session of their own."""
    with open_session(card) as session:
        return session.aggregates(query, card, measures, secret=secret)


def marginal_counts(query: Any, card: Any, marginals: Any) -> Any:
    """The marginals of a query, raw, in a session of their own."""
    with open_session(card) as session:
        return session.marginal_counts(query, card, marginals)


def rehearse(query: Any, card: Any, measures: Any) -> None:
    """Run the statement on a table without rows, in a session of its own."""
    with open_session(card) as session:
        rehearsal.rehearse(session, query, card, measures)
