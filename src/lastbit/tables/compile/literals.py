"""Names and values as SQL text, so that no text can become code.

A name stands in double quotes and a text in single quotes, each with its own quote doubled; there
is no other escape in either, so nothing but the closing quote ends them. What cannot be written so
(a NUL, half of a surrogate pair) is refused.
"""

from __future__ import annotations

from datetime import date, datetime
from fractions import Fraction
from math import inf, isinf, nextafter

from lastbit.tables.limits import refused
from lastbit.tables.query.expression import Value

_BIGGEST = 2**63 - 1


def identifier(name: str) -> str:
    """A name of a column or table.

    >>> identifier('a "b" c')
    '"a ""b"" c"'
    """
    return f'"{_plain(name).replace(chr(34), chr(34) * 2)}"'


def string(value: str) -> str:
    """A text.

    >>> string("it's")
    "'it''s'"
    """
    return f"'{_plain(value).replace(chr(39), chr(39) * 2)}'"


def double(value: Fraction | int | float) -> str:
    """The double nearest to a number.

    >>> double(Fraction(1, 10))
    '0.1e0'
    """
    try:
        near = float(value)
    except OverflowError:
        near = inf
    if isinf(near):
        raise refused("a number", "is beyond the range of doubles", "use a smaller one")
    written = repr(near)
    return f"({written})" if "e" in written else f"{written}e0" if near >= 0 else f"({written}e0)"


def least_double_from(value: Fraction) -> float:
    """The least double >= value: a double x is >= value just if it is >= this one.

    >>> least_double_from(Fraction(1, 10)) == 0.1, least_double_from(Fraction(1, 3)) > 1/3
    (True, True)
    """
    try:
        near = float(value)
    except OverflowError:
        raise refused("an edge", "is beyond the range of doubles", "use a smaller one") from None
    return near if Fraction(near) >= value else nextafter(near, inf)


def literal(value: Value) -> str:
    """A constant, of its own SQL type.

    >>> literal(5), literal(None), literal(date(2026, 1, 31)), literal(True)
    ('CAST(5 AS BIGINT)', 'NULL', "CAST('2026-01-31' AS DATE)", 'TRUE')
    """
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            if not -_BIGGEST <= value <= _BIGGEST:
                raise refused("a whole number", "has more than 63 bits", "use a smaller one")
            return f"CAST({value} AS BIGINT)"
        case Fraction():
            return double(value)
        case str():
            return string(value)
        case datetime():
            if value.tzinfo is not None:
                raise refused("a time", "has a time zone", "write it in UTC, without one")
            return f"CAST('{value.isoformat(sep=' ')}' AS TIMESTAMP)"
        case date():
            return f"CAST('{value.isoformat()}' AS DATE)"


def _plain(value: str) -> str:
    if "\0" in value or any("\ud800" <= letter <= "\udfff" for letter in value):
        raise refused(
            "a text or name", "holds a NUL or half of a surrogate pair", "leave such characters out"
        )
    return value
