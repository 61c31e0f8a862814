"""`lastbit query --marginals`: contingency tables of some columns, on the command line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lastbit.cli.options import refusal
from lastbit.cli.output import Columns, Part, printable
from lastbit.release import Table
from lastbit.report import cross_table, marginal_tables
from lastbit.tables import DataCard, MarginalsPlan, rows_of

_MOST_TABLES = 12


def marginals_plan(card: DataCard, text: str, *, pairs: int | None, **asked: Any) -> MarginalsPlan:
    """The plan for tables of these columns: region,old or band=bin(age, 0, 18, 65)."""
    columns: dict[str, str] = {}
    for item in _items(text):
        name, equals, expression = (part.strip() for part in item.partition("="))
        named = equals and name.isidentifier()
        if (name if named else item) in columns:
            raise refusal("--marginals", "names a column twice", "name each once")
        columns[name if named else item] = expression if named else item
    if not columns:
        raise refusal("--marginals", "names no column", "write --marginals region,old")
    return Table(rows=rows_of(card)).marginals(columns, pairs=pairs).plan(**asked)


def _items(text: str) -> Iterator[str]:
    """What stands between commas that are in no brackets."""
    depth, item = 0, ""
    for letter in text + ",":
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            if item.strip():
                yield item.strip()
            item = ""
        else:
            item += letter


def marginals_parts(record: Mapping[str, Any], *, width: int) -> Iterator[Part]:
    """A table for each marginal that fits the width: whole counts, with their sums."""
    tables = marginal_tables(record)
    for names, keys, rows in tables[:_MOST_TABLES]:
        head, *lines = cross_table(names, keys, rows)
        wide = sum(max(map(len, column)) + 2 for column in zip(head, *lines, strict=True))
        if wide > width:
            title = printable(" by ".join(names), 40)
            yield f"{title}: {len(rows):,} cells, too wide; --out or --report has them"
        else:
            yield Columns(head, lines, numbers=range(1, len(head)))
    if len(tables) > _MOST_TABLES:
        yield f"... and {len(tables) - _MOST_TABLES} more tables: --out tables.csv has them all"
