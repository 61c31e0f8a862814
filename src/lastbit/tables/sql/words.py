"""What a refusal calls a piece of SQL: as people write it, and not by the parser's own names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from sqlglot import ErrorLevel

_WRITTEN: Mapping[str, str] = MappingProxyType(
    {
        "Anonymous": "",
        "Alias": "AS",
        "Array": "[...]",
        "ArrayAgg": "ARRAY_AGG",
        "Between": "BETWEEN",
        "BitwiseAnd": "&",
        "BitwiseOr": "|",
        "BitwiseXor": "xor",
        "Bracket": "x[...]",
        "Case": "CASE",
        "Cast": "CAST",
        "DPipe": "||",
        "Dot": "a.b",
        "Exists": "EXISTS",
        "From": "FROM",
        "GroupConcat": "STRING_AGG",
        "Group": "GROUP BY",
        "In": "IN",
        "Interval": "INTERVAL",
        "IntDiv": "//",
        "Is": "IS",
        "Join": "JOIN",
        "Lambda": "x -> ...",
        "Limit": "LIMIT",
        "Order": "ORDER BY",
        "Ordered": "ORDER BY",
        "Paren": "( ... )",
        "Parameter": "a parameter",
        "Placeholder": "a parameter",
        "RegexpLike": "REGEXP_MATCHES",
        "Select": "SELECT",
        "SimilarTo": "SIMILAR TO",
        "Star": "*",
        "Struct": "{...}",
        "Subquery": "(SELECT ...)",
        "Table": "a table",
        "TableAlias": "AS",
        "Tuple": "(a, b)",
        "Union": "UNION",
        "Where": "WHERE",
        "Window": "OVER (...)",
        "With": "WITH",
    }
)
_FUNCTION = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def written(node: Any) -> str:
    """The word of SQL that a node was written with, or the nearest to it.

    >>> from sqlglot import parse_one
    >>> for sql in ("string_agg(a, ',')", "count(*) OVER ()", "frob(a)", "strftime(a, '%Y')"):
    ...     print(written(parse_one(sql, dialect="duckdb")))
    STRING_AGG
    OVER (...)
    FROB
    STRFTIME
    """
    kind = type(node).__name__
    if kind == "Anonymous":
        return str(node.this).upper()
    if kind in _WRITTEN:
        return _WRITTEN[kind]
    try:  # functions have names of their own inside the parser: DuckDB's is what it would write
        quiet = ErrorLevel.IGNORE  # it would say on stderr what DuckDB cannot write
        name = str(node.sql(dialect="duckdb", unsupported_level=quiet)).partition("(")[0]
    except Exception:  # a writer that is surprised may raise anything
        name = ""
    return name.upper() if _FUNCTION.fullmatch(name) else _HUMP.sub("_", kind).upper()
