"""Spellings of other products, read as ours: schemas before a table's name, STD, VAR, TOP 5.

Law      a text or a tree is made into one that `statement.py` reads; what has no such reading stays
         as it was, and is refused there
Checked  tests/tables/test_sql_spellings.py, tests/release/test_sql_spellings.py
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from sqlglot import exp

from lastbit.tables.limits import refused

_SCHEMA = ("db", "catalog")
_SPELLED: Mapping[str, type[exp.Expression]] = MappingProxyType(
    {
        "mean": exp.Avg,
        **dict.fromkeys(("std", "std_samp", "stdev_samp"), exp.Stddev),
        **dict.fromkeys(("stdevp", "std_pop", "stdev_pop"), exp.StddevPop),
        "var": exp.Variance,
        "varp": exp.VariancePop,
    }
)
"""Names of aggregates that DuckDB's dialect does not know."""


def remove_schemas(tree: Any) -> None:
    """Take the schema off names: a card has no schemas, so the last part says which table it is.

    A column's schema must be that of a table in the question; a table with a schema is never one
    of WITH.
    """
    tables = [table for table in tree.find_all(exp.Table) if table.args.get("db") is not None]
    defined = {common.alias.lower() for common in tree.find_all(exp.CTE)}
    written = {_path(table, table.this) for table in tables}
    for column in list(tree.find_all(exp.Column)):
        if column.args.get("db") is None:
            continue
        path = _path(column, column.args.get("table"))
        if not any(path == known[-len(path) :] for known in written):
            problem = "has a schema that no table in FROM has"
            raise refused(column.name, problem, "write the name alone")
        _drop(column)
    for table in tables:
        if table.name.lower() in defined:
            problem = "has a schema, and WITH defines the name too"
            raise refused(f"FROM {table.name}", problem, "give one of them another name")
        _drop(table)


def _path(node: Any, last: Any) -> tuple[str, ...]:
    """The names before a column, or of a table, from the first to the last."""
    parts = [node.args.get("catalog"), node.args.get("db"), last]
    return tuple(part.name.lower() for part in parts if part is not None)


def _drop(node: Any) -> None:
    for name in _SCHEMA:
        node.set(name, None)


def rename_aggregates(tree: Any) -> None:
    """Give STD, STDEV, VAR and the like the names that are known here.

    All of them are of the rows themselves, divided by n, as STDDEV and VARIANCE are here.
    """
    for node in list(tree.find_all(exp.Anonymous)):
        known = _SPELLED.get(str(node.this).lower())
        if known is not None and len(node.expressions) == 1:
            node.replace(known(this=node.expressions[0]))
