"""Which of the parser's names mean which of our functions.

A name that is in none of these tables, and has no handler in `sql_expression.py`, is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

KNOWN_FUNCTIONS = (
    "COUNT, SUM, AVG, VARIANCE, STDDEV, MEDIAN, QUANTILE_CONT, MIN, MAX or HISTOGRAM of columns, "
    "arithmetic, comparisons, CASE; docs/queries.md has them all"
)
"""What a refusal of another function recommends."""

BINARY: Mapping[str, str] = MappingProxyType(
    {
        "Sub": "-",
        "Div": "/",
        "Mod": "%",
        "EQ": "=",
        "NEQ": "<>",
        "LT": "<",
        "LTE": "<=",
        "GT": ">",
        "GTE": ">=",
        "Like": "like",
        "ILike": "ilike",
        "Pow": "power",
        "StartsWith": "starts_with",
        "Contains": "contains",
    }
)
OURS = ("bin", "clamp", "days_between", "start_of_month", "weekday")
PARTS = ("year", "quarter", "month", "day", "hour", "weekday")
NARY: Mapping[str, str] = MappingProxyType({"Add": "+", "Mul": "*", "And": "and", "Or": "or"})
UNARY: Mapping[str, str] = MappingProxyType(
    {
        "Neg": "negate",
        "Not": "not",
        "Abs": "abs",
        "Floor": "floor",
        "Ceil": "ceil",
        "Sqrt": "sqrt",
        "Ln": "ln",
        "Exp": "exp",
        "Length": "length",
        "Lower": "lower",
        "Upper": "upper",
        "Trim": "trim",
        "Year": "year",
        "Quarter": "quarter",
        "Month": "month",
        "Day": "day",
        "DayOfMonth": "day",
        "Hour": "hour",
        "DayOfWeek": "weekday",
    }
)
CASTS: Mapping[str, str] = MappingProxyType(
    {
        "INT": "to_integer",
        "BIGINT": "to_integer",
        "DOUBLE": "to_number",
        "TEXT": "to_text",
        "VARCHAR": "to_text",
        "DATE": "to_date",
        "BOOLEAN": "to_boolean",
    }
)


def quoted(name: str) -> str:
    """A column's name as SQL wants it written.

    >>> quoted("city"), quoted("customer id")
    ('city', '"customer id"')
    """
    plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name)
    return name if plain else '"' + name.replace('"', '""') + '"'
