"""A connection to DuckDB, as the engine makes one for a call."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lastbit.tables.backends.duckdb.engine import EngineSession
from lastbit.tables.card.schema import EngineLimits


@contextmanager
def connected(limits: EngineLimits | None = None) -> Iterator[Any]:
    """With its settings, and gone at the end."""
    with EngineSession() as session, session.connected(limits or EngineLimits()) as connection:
        yield connection
