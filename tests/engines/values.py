"""Values on which engines disagree, in tables of all pairs, and every call of the language.

| table | its rows |
|---|---|
| pairs | a, b: every two values of a kind, and of two kinds; c: a third one |
| sources | every type that a column of an engine may have, with values at its edges |

The calls come from the language itself: each function of `FUNCTIONS`, with arguments of every type
that `type_of` accepts, and constants; and those that tests/tables knows a reference of in Python.
"""

import math
import struct
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any

from lastbit.errors import LastbitError
from lastbit.tables.query.expression import Call, ColumnName, Constant, check_expression
from lastbit.tables.query.rules import FUNCTIONS
from lastbit.tables.query.types import type_of
from tests.tables.test_values import LEAST, MOST, REFERENCE

EPOCH = date(1970, 1, 1)
LARGEST, SMALLEST, NORMAL = 1.7976931348623157e308, 5e-324, 2.2250738585072014e-308

INTEGERS = [
    *(None, 0, 1, -1, 2, -2, 3, 7, -7, 400, -400, 2**31, 2**32 + 1, 10**18),
    *(3037000499, 3037000500, -3037000500),  # whose squares are on both sides of 2**63
    *(2**53 - 1, 2**53, 2**53 + 1, -(2**53) - 1, 2**62, -(2**62), MOST, -MOST, LEAST),
]
DOUBLES = [
    *(None, math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 3.0, -3.0, 7.0, 0.1, 1 / 3),
    *(0.5, -0.5, 1.5, 2.5, -2.5, 9.999, 0.49999999999999994, -0.49999999999999994),
    *(1e15 + 0.5, 2.0**52 - 0.5, 2.0**52 + 1, 2.0**53 - 1, 2.0**53, 2.0**53 + 2),
    *(2.0**62, 9.2e18, 2.0**63 - 1024, 2.0**63, -(2.0**63), -(2.0**63) - 2048, 1e19),
    *(1e150, 1e-150, 1e154, 1.4e154, 1e155, 1e200, 1e-200, 1e300, 1e308, 8.98846567431158e307),
    *(LARGEST, -LARGEST, NORMAL, 1e-310, SMALLEST, -SMALLEST, 1e-162, 1.5e-162),
]
TEXTS = [
    *(None, "", "a", "A", "b", "ab", "B", "z", "Z", " a", "a ", "a  ", "\t", "\n", "a\n", "a\nb"),
    *("\r\n", "\\", "a\\b", "\\n", "%", "_", "a%b", "a_b", "'", '"', "'; --", "$1", "{}", "^a$"),
    *("a.b", "[", "ß", "ss", "ẞ", "é", "e\u0301", "\u212b", "Å", "İ", "i", "ı", "ä", "\ufeffa"),
    *("\u200b", "\U0001f600", "\U0001f468\u200d\U0001f469", "٣", "\uff11\uff12", "12", "-1"),
    *("1.5", "nan", "true", "2024-02-29", "2024-02-30", "a" * 4096, "a" * 4097, "é" * 2048),
    *("é" * 2049, "ab" * 40, "1e999"),
]
TRUTHS = [None, True, False]
YEARS = [
    *(date(1, 1, 1), date(1, 12, 31), date(4, 2, 29), date(100, 2, 28), date(1500, 3, 1)),
    *(date(1582, 10, 4), date(1582, 10, 10), date(1582, 10, 15), date(1699, 12, 31)),
    *(date(1900, 2, 28), date(1900, 3, 1), date(1969, 12, 31), EPOCH, date(2000, 2, 29)),
    *(date(2005, 1, 1), date(2008, 12, 29), date(2010, 1, 3), date(2015, 12, 31)),
    *(date(2020, 12, 31), date(2021, 1, 3), date(2024, 2, 29), date(2024, 3, 31)),
    *(date(2024, 10, 27), date(9999, 12, 27), date(9999, 12, 31)),
]
DAYS = [None, -719163, 2932897, -1_000_000, 2_000_000 * 2, *((day - EPOCH).days for day in YEARS)]
"""Days from 1970 on. Before the year 1 and after 9999 are missing."""

_MOMENTS = [
    *(datetime(1, 1, 1), datetime(1, 1, 1, 0, 0, 0, 1), datetime(99, 12, 31, 23, 59, 59)),
    *(datetime(1582, 10, 4, 23, 59, 59, 999999), datetime(1582, 10, 15)),
    *(datetime(1883, 11, 18, 12, 3, 58), datetime(1969, 12, 31, 23, 59, 59, 999999)),
    *(datetime(1970, 1, 1), datetime(1970, 1, 1, 0, 0, 0, 1), datetime(2000, 2, 29, 12)),
    *(datetime(2016, 12, 31, 23, 59, 59, 500000), datetime(2024, 2, 29, 12, 34, 56, 789012)),
    *(datetime(2024, 3, 10, 2, 30), datetime(2024, 10, 27, 1, 30), datetime(2005, 1, 2)),
    datetime(9999, 12, 31, 23, 59, 59, 999999),
]
_MICROSECOND = timedelta(microseconds=1)
TIMES = [
    *(None, -62_135_596_800_000_001, 253_402_300_800_000_000, -(10**17), 4 * 10**17),
    *((moment - datetime(1970, 1, 1)) // _MICROSECOND for moment in _MOMENTS),
]
"""Microseconds from 1970 on."""

_DIGITS = ("0", "2.5", "-2.5", "3.5", "0.5", "0.4999999999", "1.7", "-0.5000000001", "0.1")
_WIDE = ("9223372036854775807.4999999999", "9223372036854775807.5", "-9223372036854775808.5")
DECIMALS = [
    *map(Decimal, (*_DIGITS, *_WIDE, "-9223372036854775808.5000000001", "9007199254740993.5")),
    *(Decimal("9999999999999999999999999999.9999999999"), Decimal("1e-10"), None),
    *(Decimal(3**power).scaleb(-10) for power in range(30, 80, 3)),  # of 15 to 38 digits
]
WHOLE_DECIMALS = [
    None,
    *map(
        Decimal,
        (
            0,
            7,
            MOST,
            MOST + 1,
            LEAST,
            LEAST - 1,
            10**38 - 1,
            2**70,
            *(7**n for n in range(20, 45, 4)),
        ),
    ),
]
SINGLES = [None, math.nan, math.inf, -math.inf, 0.0, -0.0, 2.5, 3.4028234663852886e38, 1.0e-45]
SINGLES = [x and struct.unpack("f", struct.pack("f", x))[0] for x in (*SINGLES, 0.1, 16777216.0)]

KINDS: dict[str, tuple[str, list[Any]]] = {
    "integer": ("bigint", INTEGERS),
    "number": ("double", DOUBLES),
    "text": ("text", TEXTS),
    "boolean": ("boolean", TRUTHS),
    "date": ("date", DAYS),
    "timestamp": ("timestamp", TIMES),
}
"""By type of a card: the type of a source that holds all its values, and these."""

SOURCES: dict[str, list[Any]] = {
    **dict(KINDS.values()),
    "smallint": [None, 0, -1, 2**15 - 1, -(2**15)],
    "integer": [None, 0, -1, 2**31 - 1, -(2**31)],
    "real": SINGLES,
    "decimal": DECIMALS,
    "whole decimal": WHOLE_DECIMALS,
    "timestamptz": TIMES,
}
"""By type of a source: its values."""


def pairs(few: int | None = None) -> tuple[dict[str, str], list[tuple[Any, ...]]]:
    """The table of all pairs: the types of its columns, and rows. `few` values of each kind."""
    lists = {kind: _some(values, few) for kind, (_, values) in KINDS.items()}
    most = max(map(len, lists.values()))
    types = {"i": "bigint"}
    types |= {f"{place}_{kind}": KINDS[kind][0] for place in "abc" for kind in KINDS}
    rows: list[tuple[Any, ...]] = []
    for first, second in product(range(most), repeat=2):
        at = (first, second, 7 * first + 3 * second + 1)
        found = (values[place % len(values)] for place in at for values in lists.values())
        rows.append((len(rows), *found))
    return types, rows


def sources() -> tuple[dict[str, str], list[tuple[Any, ...]]]:
    """The table of all types of sources, a column each."""
    most = max(map(len, SOURCES.values()))
    types = {"i": "bigint"} | {f"s_{name.replace(' ', '_')}": name for name in SOURCES}
    rows = [(i, *(values[i % len(values)] for values in SOURCES.values())) for i in range(most)]
    return types, rows


def _some(values: list[Any], few: int | None) -> list[Any]:
    """The first ones, the last, and others from all over the list."""
    if few is None or len(values) <= few:
        return values
    half, rest = few - few // 2, values[few // 2 :][::-1]
    return values[: few // 2] + [rest[place * len(rest) // half] for place in range(half)]


# ---------------------------------------------------------------- calls


_PATTERNS = (
    *("", "%", "_", "__", "a%", "%a", "%a%", "a_", "a%b", "_\n", "%\n%", "SS", "%é", "%ß%"),
    *("\\", "%\\%", "a\\_b", "[", "%.%", "^a$", "'"),
)
_CONSTANTS: dict[str, tuple[Any, ...]] = {
    "integer": (0, -7, 3, MOST),
    "number": (Fraction(0), Fraction(-5, 2), Fraction(10) ** 300),
    "text": ("a", "\\", "é"),
    "boolean": (True, False),
    "date": (date(2024, 2, 29), date(1, 1, 1)),
    "timestamp": (datetime(1969, 12, 31, 23, 59, 59, 999999),),
}
_OWN: dict[str, list[tuple[Any, ...]]] = {
    "like": [("text", pattern) for pattern in _PATTERNS],
    "ilike": [("text", pattern) for pattern in _PATTERNS],
    "contains": [("text", pattern) for pattern in ("", "a", "%", "\\", "é", "\u0301", "\n")],
    "strftime": [(kind, f"%{code}") for kind in ("date", "timestamp") for code in "YmdHMSjAbVG"],
    "bin": [(kind, -3, 0, 7, 2**53 + 1) for kind in ("integer", "number")]
    + [("number", Fraction(-1, 2), Fraction(1, 3), Fraction(5, 2))],
    "in": [(kind, *_CONSTANTS[kind]) for kind in _CONSTANTS] + [("integer", Fraction(5, 2), None)],
    "substring": [("text", *places) for places in ((1,), (2, 3), (0, 2), (-2, 2), (2, -1), (5,))],
    "round": [("number",), ("integer",), ("number", 2), ("number", -2)],
}
"""Functions whose later arguments are constants by their nature, with such constants."""


def calls() -> Iterator[Call]:
    """Every function with every choice of types; columns a, b, c, and a constant on either side."""
    seen = set()
    for call in (*_derived(), *(one for one, _ in known())):
        if call not in seen:
            seen.add(call)
            yield call


def known() -> Iterator[tuple[Call, Any]]:
    """Calls that have a reference in Python, with it."""
    for function, kinds, reference in REFERENCE:
        arguments = [
            ColumnName(f"{place}_{kind}") if isinstance(kind, str) else kind
            for place, kind in zip("abcdefgh", kinds, strict=False)
        ]
        yield Call(function, tuple(arguments)), reference


def _derived() -> Iterator[Call]:
    for function, (least, most) in FUNCTIONS.items():
        for kind, *constants in _OWN.get(function, ()):
            yield Call(function, (ColumnName(f"a_{kind}"), *map(Constant, constants)))
        if function in ("like", "ilike", "contains", "strftime", "round"):
            continue
        for number in range(least, min(most or least + 1, 3) + 1):
            for kinds in product(KINDS, repeat=number):
                yield from _typed(function, kinds)


def _typed(function: str, kinds: tuple[str, ...]) -> Iterator[Call]:
    columns = [ColumnName(f"{place}_{kind}") for place, kind in zip("abc", kinds, strict=False)]
    found = [Call(function, tuple(columns))]
    for place in range(1, len(kinds)):
        for value in _CONSTANTS[kinds[place]] if len(kinds) == 2 else ():
            found.append(Call(function, (*columns[:place], Constant(value))))
            found.append(Call(function, (Constant(value), *columns[1:])))
        found.append(Call(function, (*columns[:place], Constant(None), *columns[place + 1 :])))
    for call in found:
        try:
            check_expression(call)
            type_of(call, lambda column: column.name.partition("_")[2])  # type: ignore[arg-type, return-value]
        except LastbitError:
            continue
        yield call
