"""A backend without an engine: raw aggregates as a test wants them, and queries to go with them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from importlib import import_module
from typing import Any

import pytest

from lastbit.kernel.sealed import Aggregates
from lastbit.release import paying
from lastbit.sampling.deterministic import Seeded
from lastbit.tables.backends.duckdb.engine import EngineSession
from lastbit.tables.backends.engines import Session
from lastbit.tables.card.column import Column
from lastbit.tables.card.schema import DataCard, Source
from lastbit.tables.query.expression import ColumnName
from lastbit.tables.query.query import Aggregate, Query
from lastbit.tables.query.scan import GroupKey
from tests.kernel.unsealing import rows_of

ONE = 1 << 20
ROWS = Source(kind="csv", paths=("rows.csv",))
COLUMNS = {
    "person": Column(name="person", type="integer"),
    "region": Column(name="region", type="text"),
    "x": Column(name="x", type="number"),
}


def card_of(**values: Any) -> DataCard:
    given = {"unit": None, "max_rows": 1, "name": "visits"} | values
    return DataCard(source=ROWS, columns=COLUMNS, **given)


def part(function: str, name: str, **values: Any) -> Aggregate:
    if function not in ("count", "count_units", "histogram"):
        values.setdefault("bounds", (Fraction(0), Fraction(16)))
    if function not in ("count", "count_units"):
        values.setdefault("expression", ColumnName("x"))
        values.setdefault("step", Fraction(1))
        values.setdefault("nullable", False)
    if function == "quantile":
        values.setdefault("level", Fraction(1, 2))
    return Aggregate(name=name, function=function, **values)  # type: ignore[arg-type]


def query_of(*parts: Aggregate, keys: Any = (), **values: Any) -> Query:
    named = tuple(
        GroupKey(name=name, expression=ColumnName("region"), values=v) for name, v in keys
    )
    return Query(table="visits", aggregates=parts, keys=named, **values)


class RawNumbers(Aggregates):
    """What a backend gives."""

    def __init__(
        self,
        keys: Sequence[Any],
        entries: dict[str, list[int]] | None = None,
        bins: dict[str, list[list[int]]] | None = None,
        units: list[int] | None = None,
    ) -> None:
        units = units or []  # where units with one key are counted apart, as many again
        super().__init__(
            keys=keys, entries=entries or {}, bins=bins or {}, units=units, single=units
        )


class Engine:
    """Stands in for DuckDB; counts how often it was run."""

    def __init__(self, raw: Any, data: bytes = b"data") -> None:
        self.raw, self.data, self.runs = raw, data, 0

    def aggregates(self, query: Any, card: Any, measures: Any, *, secret: str) -> Any:
        assert len(secret) == 64
        self.runs += 1
        if isinstance(self.raw, Exception):
            raise self.raw
        return rows_of(query, card, measures, self.raw)

    def fingerprint(self, card: Any, session: Any = None) -> bytes:
        return self.data


def plug_in(monkeypatch: pytest.MonkeyPatch, raw: Any) -> Engine:
    """Put an engine in the place of DuckDB."""
    engine = Engine(raw)
    monkeypatch.setattr(Session, "aggregates", engine.aggregates)
    monkeypatch.setattr(EngineSession, "fingerprint", lambda _, card: engine.fingerprint(card))
    monkeypatch.setattr(paying, "fingerprint", engine.fingerprint)
    monkeypatch.setattr("lastbit.release.release.rehearse", lambda *_: None)
    return engine


def seed(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Let all noise come from a stream anybody can repeat."""
    source = Seeded(number)
    for room in ("laplace", "gaussian", "rows"):
        monkeypatch.setattr(
            import_module(f"lastbit.sampling.{room}"), "secure_bits", lambda: source
        )
