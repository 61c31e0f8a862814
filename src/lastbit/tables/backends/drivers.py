"""The words for a driver that is not installed."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from lastbit.errors import InvalidParameter
from lastbit.tables.backends.engines import dialect_of
from lastbit.tables.card.schema import EngineName

_DRIVERS: Mapping[str, EngineName] = MappingProxyType({"psycopg": "postgres", "pyspark": "spark"})


def refuse_missing(engine: EngineName, error: ModuleNotFoundError) -> None:
    """Refuse a source on this engine if it is the engine's driver that was not found."""
    missing = (error.name or "").partition(".")[0]
    if _DRIVERS.get(missing) == engine:
        problem = f"is on {dialect_of(engine).title}, and {missing} is not installed"
        remedy = f"pip install 'lastbit[{engine}]'"
        raise InvalidParameter("source", problem=problem, remedy=remedy) from None
