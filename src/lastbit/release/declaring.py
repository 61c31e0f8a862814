"""A data card declared in Python, for `lastbit.table`: what a TOML card says, as arguments."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact.rational import whole
from lastbit.privacy.neighbours import ADD_REMOVE, CHANGE_ONE, Neighbours
from lastbit.tables.card import source_of
from lastbit.tables.drafting import check_names
from lastbit.tables.price_grid import check_admitted
from lastbit.tables.schema import Budget, Column, ColumnType, DataCard, PublicTable, Source
from lastbit.tables.sealing import sealed
from lastbit.tables.types import value_type

__all__ = ["card_of", "held"]


def card_of(
    source: Any,
    *,
    unit: str | None,
    each_row: bool,
    max_rows: int | None,
    max_groups: int | None,
    columns: Mapping[str, Column] | Iterable[Column] | None,
    keys: Mapping[str, Iterable[Any]] | None,
    public: Mapping[str, Any] | None,
    neighbours: Neighbours | str,
    budget: Budget | None,
    name: str | None,
) -> DataCard:
    """The card of a source; whose row is whose and how many count must be said."""
    if (unit is None) != (each_row is True):
        raise InvalidParameter(
            "unit",
            problem="is not declared: whose row is whose?",
            remedy='pass unit="patient_id", or each_row=True if every row is somebody else\'s',
        )
    if unit is not None and max_rows is None:
        raise InvalidParameter(
            "max_rows", problem="is missing", remedy="pass how many rows of one unit may count"
        )
    if budget is not None and not isinstance(budget, Budget):
        raise WrongType("budget", problem="is none", remedy="pass a Budget")
    if budget is not None:
        for part in ("epsilon", "delta", "rho"):
            check_admitted(getattr(budget, part), f"budget: {part}")
    place, called = _source(source, name)
    rows = 1 if max_rows is None else whole(max_rows, "max_rows", least=1)
    groups = None if max_groups is None else whole(max_groups, "max_groups", least=1)
    if unit is not None and groups is None:
        groups = rows
    return DataCard(
        name=called,
        source=place,
        unit=unit,
        max_rows=rows,
        max_groups=groups,
        columns=_columns(place, columns, keys),
        neighbours=_neighbours(neighbours),
        budget=budget,
        public={table: _public(table, other) for table, other in (public or {}).items()},
    )


def _neighbours(given: Neighbours | str) -> Neighbours:
    if isinstance(given, Neighbours):
        return given
    for known in (ADD_REMOVE, CHANGE_ONE):
        if given == known.relation:
            return known
    raise InvalidParameter(
        "neighbours", problem="is unknown", remedy='pass "add-remove" or "change-one"'
    )


def _source(source: Any, name: str | None) -> tuple[Source, str]:
    if name is not None and (not isinstance(name, str) or not name):
        raise WrongType("name", problem="is no name", remedy='pass, say, "visits"')
    if isinstance(source, str | Path | list | tuple):
        paths = [source] if isinstance(source, str | Path) else source
        return source_of(*map(str, paths)), name or Path(paths[0]).name.split(".")[0] or "rows"
    if _is_frame(source.frame if isinstance(source, Source) else source):
        return held(source), name or "rows"
    raise WrongType(
        "source",
        problem="is no file and no frame",
        remedy="pass a card, a path that ends in .csv or .parquet, or a DataFrame",
    )


def held(source: Any) -> Any:
    """Paths as they are; anything else in a value whose repr hides it, as errors show locals."""
    paths = [source] if isinstance(source, str | Path) else source
    if isinstance(paths, list | tuple) and paths and all(isinstance(p, str | Path) for p in paths):
        return source
    return source if isinstance(source, Source) else Source(kind="frame", frame=source)


def _is_frame(frame: Any) -> bool:
    return hasattr(frame, "__arrow_c_stream__") or type(frame).__module__.startswith("pandas")


def _public(name: str, source: Any) -> PublicTable:
    place, called = _source(held(source), name)
    return PublicTable(name=called, source=place, columns=_types(place, declared=None))


def _types(source: Source, *, declared: Collection[str] | None) -> dict[str, ColumnType]:
    """The columns of a source. If its names look like values, no error and no frame holds them."""
    from lastbit.tables.backends.duckdb import columns_of

    def checked() -> dict[str, ColumnType]:
        types = columns_of(source)
        if declared is not None:
            check_names(source, [name for name in types if name.lower() not in declared])
        return types

    return sealed(checked, words="the source could not be read; check that it is whole")


def _columns(
    source: Source,
    columns: Mapping[str, Column] | Iterable[Column] | None,
    keys: Mapping[str, Iterable[Any]] | None,
) -> dict[str, Column]:
    """The columns as declared, the others as the source names and types them."""
    given = list(columns.values() if isinstance(columns, Mapping) else columns or ())
    if not all(isinstance(column, Column) for column in given):
        raise WrongType("columns", problem="are not declared as columns", remedy="pass Column(...)")
    declared = {column.name.lower(): column for column in given}
    listed = {column.lower(): values for column, values in (keys or {}).items()}
    types = _types(source, declared=declared)
    known = {column.lower() for column in types}
    for lower in (*declared, *listed):
        if lower not in known:
            raise InvalidParameter(
                f"column {lower}",
                problem="is not in the source, or of a type that cannot be read there (nested, a"
                " time of day, a duration)",
                remedy="check its name; convert it to a number, text, date or timestamp",
            )
    found = {}
    for column, kind in types.items():
        step = Fraction(1) if kind == "integer" else None
        one = declared.get(column.lower()) or Column(name=column, type=kind, step=step)
        if column.lower() in listed:
            one = replace(one, keys=_keys(one.name, one.type, listed[column.lower()]))
        found[one.name] = one
    return found


def _keys(name: str, kind: ColumnType, values: Iterable[Any]) -> tuple[Any, ...]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise WrongType(f"keys of {name}", problem="are no list", remedy='pass ["north", "south"]')
    found = tuple(values)
    for value in found:
        plain = value is None or type(value).__name__ in ("int", "str", "bool", "date")
        if not plain or value_type(value) not in (kind, None):
            raise WrongType(
                f"keys of {name}", problem=f"are not all of type {kind}", remedy="list such values"
            )
    return found
