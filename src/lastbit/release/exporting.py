"""The record of an answer as flat columns, for other programs.

Arrow and Parquet come from DuckDB, which is here anyway: the answer is handed to it as a few typed
lists, and it writes the rest.
"""

from __future__ import annotations

import csv
import io
from datetime import date
from typing import Any

from lastbit.tables.expression import Constant, from_json

__all__ = ["columns_for_export", "csv_text", "duckdb_relation"]

_SUFFIXES = (("", "value"), ("_se", "standard_error"), ("_low", "low"), ("_high", "high"))
_LARGEST = 1 << 63


def columns_for_export(record: dict[str, Any]) -> tuple[list[str], list[list[Any]]]:
    """Names and rows: the keys, then four columns for every released one."""
    columns = record["columns"]
    taken = {column["name"].lower() for column in columns}
    names = [column["name"] for column in columns if column["role"] == "key"]
    for column in columns:
        if column["role"] == "value":
            names += [column["name"], *_free(column["name"], taken)]
    rows = [
        [_constant(key) for key in row["keys"]]
        + [cell[field] for cell in row["cells"] for _, field in _SUFFIXES]
        for row in record["rows"]
    ]
    return names, rows


def _free(name: str, taken: set[str]) -> list[str]:
    """Names for the error columns that no other column has."""
    found = []
    for suffix, _ in _SUFFIXES[1:]:
        free = name + suffix
        while free.lower() in taken:
            free += "_"
        taken.add(free.lower())
        found.append(free)
    return found


def _constant(data: Any) -> Any:
    constant = from_json(data)
    assert isinstance(constant, Constant)
    return constant.value


def csv_text(record: dict[str, Any]) -> str:
    """Comma-separated text with a header; missing numbers are empty."""
    names, rows = columns_for_export(record)
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        writer.writerow([_plain(value) for value in row])
    return out.getvalue()


def _plain(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if isinstance(value, date) else value


def duckdb_relation(record: dict[str, Any]) -> Any:
    """The answer as a relation of a connection of its own."""
    import duckdb

    names, rows = columns_for_export(record)
    kinds = _kinds(record)
    lists = [[row[i] for row in rows] for i in range(len(names))]
    selected = ", ".join(
        f"unnest($c{i}::{_type(kind, values)}[]) AS {_quoted(name)}"
        for i, (name, kind, values) in enumerate(zip(names, kinds, lists, strict=True))
    )
    connection = duckdb.connect(":memory:")
    numbers = {f"c{i}": [_number(v) for v in values] for i, values in enumerate(lists)}
    return connection.sql(f"SELECT {selected}", params=numbers)


def _kinds(record: dict[str, Any]) -> list[str]:
    """Of every exported column: the type of the key, or that of the number."""
    kinds = []
    place = 0
    for column in record["columns"]:
        if column["role"] == "key":
            found = {row["keys"][place]["type"] for row in record["rows"]} - {"missing"}
            kinds.append(found.pop() if len(found) == 1 else "text")
            place += 1
        else:
            whole = column["function"] in ("count", "count_units", "histogram")
            number = "integer" if whole else "number"
            kinds += [number, "number", number, number]
    return kinds


def _type(kind: str, values: list[Any]) -> str:
    if kind == "integer":
        wide = any(value is not None and not -_LARGEST <= value < _LARGEST for value in values)
        return "DOUBLE" if wide else "BIGINT"
    names = {"number": "DOUBLE", "boolean": "BOOLEAN", "date": "DATE", "timestamp": "TIMESTAMP"}
    return names.get(kind, "VARCHAR")


def _number(value: Any) -> Any:
    """Integers beyond 64 bits as floats, fractions too: DuckDB's lists are of one type."""
    if isinstance(value, int) and not -_LARGEST <= value < _LARGEST:
        return float(value)
    return value if value is None or isinstance(value, str | int | date) else float(value)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
