"""Rows made up from a card alone, and answers about them: to try a question, or a machine, on.

Law      each value is a function of the seed, the table, the column, the unit and the number of the
         row: a hash of these picks one of the declared keys, a number within the bounds, on its
         step, or else a value of the type. A column that may be missing is so in one row of 50. A
         unit has from 1 to max_rows rows, more of them few than many; in private tables also none,
         and the same names. Public tables are those of the card, which anybody may see, and a
         column of the same name and type takes its values from there, so that joins find partners;
         on a server they are made up as well
Theorem  nothing of a protected table is in the rows: no file, server or frame of it is opened, and
         a public table that is one of its files is refused. So an answer about them tells nothing,
         costs nothing, and is no answer about the table
Differs  `hash` is DuckDB's: another version of it may make other rows. What is made up is simple:
         columns do not depend on each other
Checked  tests/release/test_made_up.py
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from math import ceil, floor, isqrt
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, TypeAlias, cast

import duckdb

from lastbit.errors import InvalidParameter
from lastbit.exact import whole
from lastbit.ledger import spared_by
from lastbit.release.answer import Answer, quoted
from lastbit.release.paying import unrecorded
from lastbit.tables import (
    Column,
    ColumnType,
    Cost,
    DataCard,
    MarginalsPlan,
    Plan,
    PublicTable,
    Source,
    StoredType,
    check_public_apart,
    open_session,
    public_values,
)

MADE_UP = (
    "These rows are made up, from the data card alone: the numbers tell nothing of the table. "
    "Nothing was read, charged or recorded."
)
_PROMISE = "Nothing is promised: the rows are made up, and about no real person."
MADE_UP_ROWS = 10_000
_TYPES: Mapping[ColumnType, str] = MappingProxyType(
    {
        "integer": "BIGINT",
        "number": "DOUBLE",
        "text": "VARCHAR",
        "boolean": "BOOLEAN",
        "date": "DATE",
        "timestamp": "TIMESTAMP",
    }
)
_MOST_VALUES = 10_000  # of a column of a public table, to take values from
_MOST_PUBLIC = 1_000  # rows of a public table that is made up
_LARGEST = 2**63 - 1
_FARTHEST = Fraction(10**300)  # of a number, so that it is a float
_FIRST, _DAYS, _NUMBERS, _TEXTS = datetime(2020, 1, 1), 2_192, 100, 50
_MISSING_IN = 50
Values: TypeAlias = Sequence[Any]
Pick: TypeAlias = Callable[[int], str]
"""SQL for a number from 0 on, below the given one."""


def made_up(
    card: DataCard, *, rows: int, seed: int = 0, folder: str | os.PathLike[str]
) -> DataCard:
    """The card on rows that are made up, as Parquet files in this folder; it has no ledger.

    Questions about it read nothing of the real table.
    """
    count, place = whole(rows, "rows"), Path(folder).resolve()
    if not place.is_dir():
        raise InvalidParameter("folder", problem="is not there", remedy="make it first")
    protected: dict[str | None, Mapping[str, StoredType]] = {None: card.columns_at(0)}
    protected |= {one.name: card.columns_at(i) for i, one in enumerate(card.through, start=1)}
    protected |= {n: {c.name: c.type for c in t.columns.values()} for n, t in card.private.items()}
    files = {name: place / f"made-up-{i}.parquet" for i, name in enumerate(protected)}
    if card.public and card.source.engine == "duckdb":
        check_public_apart(card)  # since these are read as they are
    public = {} if card.source.engine == "duckdb" else dict(card.public)
    other = {name: place / f"made-up-public-{i}.parquet" for i, name in enumerate(public)}
    for path in (*files.values(), *other.values()):
        if path.exists():
            raise InvalidParameter(
                "folder", problem="has files of made-up rows", remedy="name an empty one"
            )
    settings = dict.fromkeys(("autoinstall_known_extensions", "autoload_known_extensions"), False)
    with duckdb.connect(
        ":memory:", config={**settings, "temp_directory": str(place)}
    ) as connection:
        for name, columns in protected.items():
            _write(connection, files[name], _no_rows(columns))
        for name, path in other.items():
            _write(connection, path, _public(card, public[name], seed))
        empty = replace(
            card,
            source=_source(files[None]),
            private={n: replace(t, source=_source(files[n])) for n, t in card.private.items()},
            through=tuple(replace(one, source=_source(files[one.name])) for one in card.through),
            public={n: replace(t, source=_source(other[n])) for n, t in public.items()}
            or card.public,
            budget=None,
            ledger=None,
            users=None,
            account=None,
            accepted_data=False,
            prepared=None,
            file=None,
        )
        if count:
            _fill_files(connection, empty, files, rows=count, seed=seed)
    return empty


def in_own_format(made: DataCard, card: DataCard) -> DataCard:
    """The made-up rows as CSV, where the card's own files are: to read that takes far longer."""

    def again(source: Source, own: Source) -> Source:
        if own.kind != "csv":
            return source
        path = Path(source.paths[0]).with_suffix(".csv")
        rows, options = f"FROM read_parquet({_literal(source.paths[0])})", "FORMAT csv, HEADER"
        with duckdb.connect(":memory:") as connection:
            connection.execute(f"COPY ({rows}) TO {_literal(str(path))} ({options})")
        return Source(kind="csv", paths=(str(path),))

    private = {
        name: replace(table, source=again(table.source, card.private[name].source))
        for name, table in made.private.items()
    }
    through = tuple(
        replace(one, source=again(one.source, own.source))
        for one, own in zip(made.through, card.through, strict=True)
    )
    return replace(made, source=again(made.source, card.source), private=private, through=through)


@contextmanager
def without_source(card: DataCard) -> Iterator[DataCard]:
    """The card, to try a statement on; on empty tables where its data must be accepted.

    What a server has is looked at all the same: names and types of columns.
    """
    if not card.accepted_data or card.source.engine != "duckdb":
        yield card
        return
    with TemporaryDirectory(prefix="lastbit-") as folder:
        yield made_up(card, rows=0, folder=folder)


def made_up_answer(
    plan: Plan | MarginalsPlan,
    card: DataCard,
    *,
    sql: str | None = None,
    rows: int = MADE_UP_ROWS,
    seed: int = 0,
) -> Answer:
    """What the plan would give on rows made up from the card, with its noise; in no ledger.

    The record says in its title, notes and promise what it is, and holds no certificate.
    """
    with TemporaryDirectory(prefix="lastbit-") as folder:
        made = made_up(card, rows=rows, seed=seed, folder=folder)
        rows_of, groups_of = plan.card.max_rows, plan.card.max_groups  # others for a sub-query
        counted = replace(made, max_rows=rows_of, max_groups=groups_of)
        on_these: Plan | MarginalsPlan
        if isinstance(plan, MarginalsPlan):
            on_these = replace(plan, base=replace(plan.base, card=counted))
        else:
            on_these = replace(plan, card=counted)
        with open_session(made) as session:
            record = unrecorded(on_these, MADE_UP, session, sql=sql)
    marks = {"made_up": {"rows": rows, "seed": seed}, "certificate": {}, "guarantee": _PROMISE}
    priceless = {"question": "made up", "cost": Cost().to_json()}
    return Answer({**record, **priceless, **marks}, spared_by(card), charged=False)


def _fill_files(
    connection: Any, card: DataCard, files: Mapping[str | None, Path], *, rows: int, seed: int
) -> None:
    """Write the rows of all protected tables."""
    known = _public_values_of(card)
    most = min(card.max_rows, max(isqrt(rows), 1))  # else few units would have all rows
    few = _row_count(most, _salt(seed, "rows"))
    units = f"SELECT u, unnest(range({few})) AS k FROM range({rows}) AS units(u)"
    connection.execute(f"CREATE TABLE places AS SELECT u, k FROM ({units}) LIMIT {rows}")
    for at, to in enumerate([None, *(one.name for one in card.through)]):
        columns = _columns_at(card, at, known, str(seed), most)
        _write(connection, files[to], f"SELECT {columns} FROM places")
    for name, table in card.private.items():
        salt = _salt(seed, "rows", name)
        some = _row_count(table.max_rows, salt)
        few = f"CASE WHEN hash({salt}, u, 1) % 8 = 0 THEN 0 ELSE {some} END"
        units = f"SELECT u, unnest(range({few})) AS k FROM places WHERE k = 0"
        columns = _columns(table.columns, table.unit, known, f"{seed} {name}")
        _write(connection, files[name], f"SELECT {columns} FROM ({units})")


def _row_count(most: int, salt: int) -> str:
    """How many rows the unit u has: from 1 to `most`, each doubling as likely as the next."""
    return f"CAST(least({most}, floor(pow({most + 1}, {_share(salt, 'u')}))) AS BIGINT)"


def _columns_at(
    card: DataCard, place: int, known: Mapping[Any, Values], salt: str, most: int
) -> str:
    """Columns of the table, or of one on the way to the unit: a row of each for each other."""
    step = card.through[place - 1] if place else None
    values = _values_of(card.columns, card.unit, known, salt)
    for own in (own for one in card.through for own, _ in one.on):
        row = f"u * {most} + k"
        whole = card.column(own).type == "integer"
        values[card.column(own).name] = row if whole else f"'row ' || ({row})"
    if step is None:
        here = {name: name for name in card.columns_at(0)}
    else:
        here = {other: card.column(own).name for own, other in step.on}
        here |= {own: card.column(name).name for name, own in step.columns.items()}
    return ", ".join(f"{values[name]} AS {quoted(own)}" for own, name in here.items())


def _columns(
    columns: Mapping[str, Column], unit: str | None, known: Mapping[Any, Values], salt: str
) -> str:
    values = _values_of(columns, unit, known, salt)
    return ", ".join(f"{value} AS {quoted(name)}" for name, value in values.items())


def _values_of(
    columns: Mapping[str, Column], unit: str | None, known: Mapping[Any, Values], salt: str
) -> dict[str, str]:
    """The value of each column in row k of unit u."""
    values = {
        c.name: _random_list(c, known, salt) if c.is_list else _random_value(c, known, salt)
        for c in columns.values()
    }
    for column in columns.values():
        if unit and column.name.lower() == unit.lower():
            values[column.name] = "u + 1" if column.type == "integer" else "'unit ' || (u + 1)"
    return values


def _random_list(column: Column, known: Mapping[Any, Values], salt: str) -> str:
    """Up to three such values."""
    some = [_random_value(column, known, f"{salt} {place}") for place in range(3)]
    return f"[{', '.join(some)}][1:hash({_salt(salt, column.name, 4)}, u, k) % 4]"


def _random_value(column: Column, known: Mapping[Any, Values], salt: str) -> str:
    """A value of the column in row k of unit u."""
    first, second = _salt(salt, column.name), _salt(salt, column.name, 2)
    plain, again = _share(first, "u, k"), _share(second, "u, k")
    values = column.keys or known.get((column.name.lower(), column.type))
    # of values the first are more frequent, of numbers those in the middle
    shape = f"{plain} * {plain}" if values else f"({plain} + {again}) / 2"

    def pick(count: int) -> str:
        return f"CAST(least({count - 1}, floor({count} * ({shape}))) AS BIGINT)"

    found = _value(column, values, pick)
    missing = f"hash({_salt(salt, column.name, 3)}, u, k) % {_MISSING_IN} = 0"
    return f"CASE WHEN {missing} THEN NULL ELSE {found} END" if column.nullable else found


def _value(column: Column, values: Values | None, pick: Pick) -> str:
    """The value that is picked of those that the column may have."""
    kind = _TYPES[column.type]
    if values:
        return f"CAST([{', '.join(map(_literal, values))}] AS {kind}[])[1 + {pick(len(values))}]"
    match column.type:
        case "integer":
            low, high = column.number_bounds or (Fraction(0), Fraction(_NUMBERS - 1))
            start, end = max(ceil(low), -_LARGEST), min(floor(high), _LARGEST)
            span = min(max(end - start + 1, 1), _LARGEST)
            return f"CAST({start}::HUGEINT + {pick(span)} AS BIGINT)"
        case "number":
            low, high = column.number_bounds or (Fraction(0), Fraction(_NUMBERS))
            low, high = max(low, -_FARTHEST), min(high, _FARTHEST)
            step = column.step or (high - low) / 1000
            steps = min(floor((high - low) / step) + 1, _LARGEST)
            return (
                f"least({float(high)!r}::DOUBLE, {float(low)!r}::DOUBLE"
                f" + {pick(steps)} * {float(step)!r}::DOUBLE)"
            )
        case "boolean":
            return f"{pick(2)} = 0"
        case "date" | "timestamp":
            unit = timedelta(days=1) if column.type == "date" else timedelta(seconds=1)
            first, last = column.bounds or (_FIRST, _FIRST + timedelta(days=_DAYS) - unit)
            steps = (last - first) // unit + 1  # type: ignore[operator]
            after = f"to_seconds({unit.total_seconds():.0f} * {pick(steps)})"
            return f"CAST(TIMESTAMP '{first}' + {after} AS {kind})"
        case "text":
            return f"{_literal(column.name + ' ')} || (1 + {pick(_TEXTS)})"


def _public_values_of(card: DataCard) -> dict[tuple[str, ColumnType], Values]:
    """Values of public tables, by the name and type of their column."""
    declared = {c.name.lower() for c in card.columns.values()}
    declared |= {c.name.lower() for table in card.private.values() for c in table.columns.values()}
    found: dict[tuple[str, ColumnType], Values] = {}
    for name, table in card.public.items():
        for column, kind in table.columns.items():
            if column.lower() in declared and (column.lower(), kind) not in found:
                values = public_values(card, name, column, most=_MOST_VALUES)
                if values:
                    found[column.lower(), kind] = values
    return found


def _public(card: DataCard, table: PublicTable, seed: int) -> str:
    """Rows of a public table: each value of its first column that the card knows too, once."""
    own = {c.name.lower(): c for c in card.columns.values()}
    for private in card.private.values():
        own |= {c.name.lower(): c for c in private.columns.values()}
    columns = [
        own[name.lower()]
        if name.lower() in own and own[name.lower()].type == kind
        else Column(name=name, type=kind)
        for name, kind in table.columns.items()
    ]
    if not columns:
        return "SELECT 1 AS nothing"
    first = next((c for c in columns if c.name.lower() in own), columns[0])
    sizes: list[int] = []

    def pick(count: int) -> str:
        sizes.append(min(count, _MOST_PUBLIC))
        return "u"

    once = _value(first, first.keys, pick)
    parts = [
        f"{once if c is first else _random_value(c, {}, f'{seed} {table.name}')} AS {quoted(name)}"
        for c, name in zip(columns, table.columns, strict=True)
    ]
    return f"SELECT {', '.join(parts)} FROM (SELECT range AS u, 0 AS k FROM range({sizes[0]}))"


def _stored(kind: StoredType) -> str:
    """DuckDB's type for it."""
    element = cast(ColumnType, kind.removesuffix("[]"))
    return _TYPES[element] + "[]" * (element != kind)


def _no_rows(columns: Mapping[str, StoredType]) -> str:
    parts = [f"CAST(NULL AS {_stored(kind)}) AS {quoted(name)}" for name, kind in columns.items()]
    return f"SELECT {', '.join(parts)} LIMIT 0"


def _write(connection: Any, path: Path, sql: str) -> None:
    connection.execute(f"COPY ({sql}) TO {_literal(str(path))} (FORMAT parquet)")


def _source(path: Path) -> Source:
    return Source(kind="parquet", paths=(str(path),))


def _salt(*parts: object) -> int:
    """A number for hash() that these parts decide."""
    digest = hashlib.sha256("\0".join(map(str, parts)).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:7], "big")


def _share(salt: int, places: str) -> str:
    """A number from 0 on, below 1, for these places."""
    mixed = f"hash(hash({salt}, {places}))"  # twice: the first leaves neighbours alike
    return f"(CAST({mixed} >> 11 AS DOUBLE) / {2**53})"


def _literal(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case bool() | int():
            return str(value)
        case date():
            return f"DATE '{value.isoformat()}'"
        case _:
            return "'" + str(value).replace("'", "''") + "'"
