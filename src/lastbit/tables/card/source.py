"""Where rows come from, by its name: files, folders, DuckDB files, servers, tables of Spark."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Literal, cast

from lastbit.addresses import Address
from lastbit.errors import InvalidParameter
from lastbit.place_names import is_address
from lastbit.tables.backends.duckdb.files import ENDINGS, files_below, is_delta
from lastbit.tables.card.schema import Source


def source_of(*paths: str, table: str | None = None) -> Source:
    """Files, folders, or a table of a DuckDB file or a server, as the names begin and end.

    >>> source_of("a.parquet", "b.parquet").kind, source_of("a.duckdb", table="visits").kind
    ('parquet', 'duckdb')
    >>> source_of("postgresql://reader@db/clinic?table=public.visits").table
    'public.visits'
    """
    if any(path.startswith(ON_SPARK) for path in paths):
        return spark_source(*paths)
    if any(map(is_address, paths)):
        read = [Address.read(path, "table", what="source") for path in paths]
        table = table or read[0].extra.get("table")
        if len(paths) == 1 and table:
            place = str(replace(read[0], extra=MappingProxyType({})))
            return Source(kind="postgres", paths=(place,), table=table)
        problem, remedy = "has many tables", "name one server, and its table by {table}"
        raise InvalidParameter("a server", problem=problem, remedy=remedy, table="public.visits")
    if any(path.lower().endswith(DATABASES) for path in paths):
        if len(paths) == 1 and table:
            return Source(kind="duckdb", paths=paths, table=table)
        remedy = "name one file, and its table by {table}"
        raise InvalidParameter(
            "a DuckDB file", problem="has many tables", remedy=remedy, table="visits"
        )
    if table is not None:
        problem, remedy = "is for DuckDB files, servers and connections", "leave it out"
        raise InvalidParameter("table", problem=problem, remedy=remedy)
    kinds = {_kind(path) for path in paths}
    if len(kinds) == 1 and (kind := kinds.pop()) is not None:
        return Source(kind=kind, paths=paths)
    for path in paths:
        for ending, remedy in _OTHERS.items():
            if path.lower().endswith(ending):
                problem = f"ends in {ending}, which is not read here"
                raise InvalidParameter(f"source {path}", problem=problem, remedy=remedy)
        if "://" in path:  # behind which there may be a password
            problem, remedy = "is not a file here", "download it first, and name the file"
            scheme = path.partition("://")[0][:60]
            raise InvalidParameter(f"source {scheme}://", problem=problem, remedy=remedy)
        if os.path.isdir(path):
            problem = "is a folder without Parquet and CSV files, or with both"
            remedy = "name a folder of one kind, or the files: visits/*.parquet"
            raise InvalidParameter(f"source {path}", problem=problem, remedy=remedy)
    remedy = "name files that all end in .csv, .tsv or .csv.gz, or all in .parquet; or a folder"
    raise InvalidParameter("source", problem="is of no one known kind", remedy=remedy)


ON_SPARK = "spark:"


def spark_source(*texts: str, folder: str = "") -> Source:
    """A table of Spark, or Parquet files that it reads: a path has a slash, or ends in .parquet.

    >>> spark_source("spark:lake.clinic.visits").table, spark_source("spark:/data/visits").paths
    ('lake.clinic.visits', ('/data/visits',))
    """
    places = [text.removeprefix(ON_SPARK) for text in texts if text.startswith(ON_SPARK)]
    files = [place for place in places if "/" in place or place.lower().endswith(_PARQUET)]
    if len(files) == len(texts):
        paths = (p if "://" in p else os.path.abspath(os.path.join(folder, p)) for p in files)
        return Source(kind="spark", paths=tuple(paths))
    if len(texts) == len(places) == 1 and places[0]:
        return Source(kind="spark", table=places[0])
    problem = "is neither one table of Spark nor Parquet files that it reads"
    remedy = 'write "spark:catalog.db.table", or "spark:/data/visits.parquet"'
    raise InvalidParameter("source", problem=problem, remedy=remedy)


def _kind(path: str) -> Literal["csv", "parquet"] | None:
    name = path.lower()
    if name.removesuffix(".gz").endswith((".csv", ".tsv")):
        return "csv"
    if name.endswith(_PARQUET):
        return "parquet"
    return kind_of_folder(path) if os.path.isdir(path) else None


def kind_of_folder(folder: str) -> Literal["csv", "parquet"] | None:
    """What the data files of a folder are; None if there are none, or of both kinds."""
    if is_delta(folder):
        return "parquet"
    kinds = [kind for kind in ENDINGS if files_below(folder, kind)]
    return cast(Any, kinds[0]) if len(kinds) == 1 else None


DATABASES = (".duckdb", ".ddb", ".db")
_PARQUET = (".parquet", ".pq")
_OTHERS: Mapping[str, str] = MappingProxyType(
    {
        ".xlsx": "save it as CSV; in Python, pass pandas.read_excel(...)",
        ".xls": "save it as CSV; in Python, pass pandas.read_excel(...)",
        ".json": "write it as Parquet; in Python, pass duckdb.read_json(...)",
        ".jsonl": "write it as Parquet; in Python, pass duckdb.read_json(...)",
        ".ndjson": "write it as Parquet; in Python, pass duckdb.read_json(...)",
        ".feather": "write it as Parquet; in Python, pass pandas.read_feather(...)",
        ".arrow": "write it as Parquet; in Python, pass polars.read_ipc(...)",
        ".sqlite": "write the table as Parquet; in Python, pass pandas.read_sql(...)",
        ".sqlite3": "write the table as Parquet; in Python, pass pandas.read_sql(...)",
        ".txt": "rename it to .csv if it is one",
        ".zip": "unpack it first; .csv.gz is read as it is",
    }
)
