"""Engines by name: how each writes statements, and the words for a driver that is not installed."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import cast

from lastbit.errors import InvalidParameter
from lastbit.tables.card.schema import EngineName
from lastbit.tables.compile.dialect import Dialect

_DRIVERS: Mapping[str, EngineName] = MappingProxyType({"psycopg": "postgres", "pyspark": "spark"})


def dialect_of(name: EngineName) -> Dialect:
    """How statements are written for this engine; its driver is not needed."""
    return cast(Dialect, vars(import_module(f"lastbit.tables.compile.{name}"))[name.upper()])


def refuse_missing(engine: EngineName, error: ModuleNotFoundError) -> None:
    """Refuse a source on this engine if it is the engine's driver that was not found."""
    missing = (error.name or "").partition(".")[0]
    if _DRIVERS.get(missing) == engine:
        problem = f"is on {dialect_of(engine).title}, and {missing} is not installed"
        remedy = f"pip install 'lastbit[{engine}]'"
        raise InvalidParameter("source", problem=problem, remedy=remedy) from None
