"""The made-up tables of `tables.py`: the same in every run, on every machine.

visits  N/10 units, each row of a random one: 10 rows each on average, and 42 % have more. 100
        groups, skewed: the largest has 22 % of all rows, the smallest 0.3 %
even    the same, but every unit has exactly 10 rows
named   the same as visits, but groups have names instead of numbers
heavy   N/10 units, the largest of which has 6 % of all rows; half of the rows lie in their unit's
        own group, and costs differ from unit to unit

Numbers come from a hash of the row's number, so no generator and no order of threads matters.
"""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "build" / "bench-tables"
GROUPS = 100
MAX_ROWS = 10
LOW, HIGH = 0, 500
NAMES = tuple(f"region {number:02}" for number in range(GROUPS))

_GROUP = f"CAST(floor({GROUPS} * {{}} ** 3) AS INTEGER)"


def _uniform(salt: int, of: str = "i") -> str:
    """A number of [0, 1) that depends on `of` alone; 53 bits of a hash.

    Of one integer, another for every salt: DuckDB's hash of two numbers, hash(i, 1), differs from
    hash(i, 2) by the same bits for every i.
    """
    return f"((hash(16 * CAST({of} AS BIGINT) + {salt}) >> 11) / 9007199254740992.0)"


def _visits(rows: int, unit: str | None = None) -> str:
    unit = unit or f"CAST(floor({rows // 10} * {_uniform(1)}) AS BIGINT)"
    cost = f"{HIGH} * {_uniform(3)} * {_uniform(4)}"
    group = _GROUP.format(_uniform(2))
    return f"SELECT {unit} AS user_id, {group} AS region, {cost} AS cost FROM range({rows}) r(i)"


def _even(rows: int) -> str:
    return _visits(rows, f"CAST(i * 7919 % {rows // 10} AS BIGINT)")


def _named(rows: int) -> str:
    name = "'region ' || lpad(CAST(region AS VARCHAR), 2, '0') AS region"
    return f"SELECT user_id, {name}, cost FROM ({_visits(rows)})"


def _heavy(rows: int) -> str:
    unit = f"CAST(floor({rows // 10} * {_uniform(1)} ** 4) AS BIGINT)"
    own, other = _GROUP.format(_uniform(5, "user_id")), _GROUP.format(_uniform(2))
    group = f"CASE WHEN {_uniform(6)} < 0.5 THEN {own} ELSE {other} END"
    cost = f"{HIGH} * {_uniform(3)} * {_uniform(7, 'user_id')}"
    return (
        f"SELECT user_id, {group} AS region, {cost} AS cost"
        f" FROM (SELECT i, {unit} AS user_id FROM range({rows}) r(i))"
    )


TABLES = {"visits": _visits, "even": _even, "named": _named, "heavy": _heavy}


def table_file(name: str, rows: int) -> Path:
    """The Parquet file of a table, made unless it is there."""
    import duckdb

    path = FOLDER / f"{name}-{rows}.parquet"
    if not path.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}")
        with duckdb.connect() as connection:
            connection.execute(f"COPY ({TABLES[name](rows)}) TO '{part}' (FORMAT parquet)")
        part.rename(path)
    return path
