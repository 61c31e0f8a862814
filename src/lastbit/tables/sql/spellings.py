"""Spellings of other products, read as ours: schemas, brackets around tables, STD, VAR, TOP 5.

Law      a text or a tree is made into one that `statement.py` reads; what has no such reading stays
         as it was, and is refused there
Checked  tests/tables/test_sql_spellings.py, tests/release/test_sql_spellings.py
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import SqlglotError

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


def open_brackets(tree: Any) -> None:
    """Read FROM (t) AS q and FROM (t JOIN s USING (k)) AS q as FROM (SELECT * FROM ...) AS q.

    Without a name the brackets around what FROM begins with mean nothing: names of tables in them
    are known outside.
    """
    for node in list(tree.find_all(exp.Subquery)):
        inner = node.this
        if not isinstance(inner, exp.Table | exp.Subquery) or set(_given(node)) - {"this", "alias"}:
            continue
        joins = inner.args.get("joins") or []
        source = node.parent
        if node.args.get("alias") is None and isinstance(source, exp.From):
            inner.set("joins", None)
            node.replace(inner)
            select: Any = source.parent
            select.set("joins", [*joins, *(select.args.get("joins") or [])] or None)
        elif isinstance(inner, exp.Table) or joins:
            inner.set("joins", None)
            rows = exp.Select(expressions=[exp.Star()], from_=exp.From(this=inner))
            rows.set("joins", joins or None)
            node.set("this", rows)


def _given(node: Any) -> list[str]:
    return [name for name, value in node.args.items() if value]


_TOP = re.compile(r"\btop\b", re.IGNORECASE)
_AFTER_A_CALL = frozenset(
    {"", ",", "FROM", "AS", "IS", "IN", "AND", "OR", "NOT", "BETWEEN", "OVER"}
)
"""What follows top(5) where that is a call; after T-SQL's TOP (5) the first column stands."""


def top_as_limit(text: str) -> str:
    """The statement with SELECT TOP 5 of its outermost SELECT as LIMIT 5 at its end.

    Theorem  DuckDB's grammar has no SELECT TOP 5; of SELECT TOP (5) k it makes a column k of a
             function that is not known here. So no question that had an answer means another thing
    Differs  without ORDER BY the first rows are those of the first keys

    >>> top_as_limit("SELECT TOP 5 region, COUNT(*) FROM visits GROUP BY region;")
    'SELECT       region, COUNT(*) FROM visits GROUP BY region LIMIT 5;'
    """
    if _TOP.search(text) is None:
        return text
    try:
        tokens = [one for one in DuckDB().tokenize(text) if one.token_type.name != "SEMICOLON"]
    except SqlglotError:
        return text  # is refused where it is parsed
    depth, outer = 0, list[int]()
    for place, token in enumerate(tokens):
        sign = token.token_type.name
        depth += (sign == "L_PAREN") - (sign == "R_PAREN")
        outer += [place] if depth == 0 else []
    start = next((place for place in outer if tokens[place].token_type.name == "SELECT"), None)
    if start is None:
        return text
    start += 1 + (_word(tokens, start + 1) == "DISTINCT")
    number = _number_after_top(tokens, start)
    if number is None:
        return text
    if any(_word(tokens, place) in ("LIMIT", "FETCH") for place in outer):
        raise refused("TOP", "stands beside LIMIT", "write one of them")
    first, last, end = tokens[start], tokens[number[1]], tokens[-1]
    blank = re.sub(r"\S", " ", text[first.start : last.end + 1])
    columns = text[last.end + 1 : end.end + 1]
    return f"{text[: first.start]}{blank}{columns} LIMIT {number[0]}{text[end.end + 1 :]}"


def _number_after_top(tokens: Sequence[Any], start: int) -> tuple[str, int] | None:
    """The number of TOP 5 or TOP (5), and where it ends; None where TOP is something else."""
    if _word(tokens, start) != "TOP" or tokens[start].token_type.name == "IDENTIFIER":
        return None
    in_brackets = _word(tokens, start + 1) == "("
    place, end = (start + 2, start + 3) if in_brackets else (start + 1, start + 1)
    if place >= len(tokens) or tokens[place].token_type.name != "NUMBER":
        return None
    following = _word(tokens, end + 1)
    if in_brackets:
        name = re.fullmatch(r"\w+|\*", following) is not None
        quoted = end + 1 < len(tokens) and tokens[end + 1].token_type.name == "IDENTIFIER"
        if _word(tokens, end) != ")" or not (name or quoted) or following in _AFTER_A_CALL:
            return None
    shared = following == "PERCENT" and _word(tokens, end + 2) not in (",", "FROM", ".", "AS")
    if shared or (following == "WITH" and _word(tokens, end + 2) == "TIES"):
        raise refused(f"TOP ... {following}", "is not known here", "write, say, TOP 10")
    return tokens[place].text, end


def _word(tokens: Sequence[Any], place: int) -> str:
    return str(tokens[place].text).upper() if place < len(tokens) else ""
