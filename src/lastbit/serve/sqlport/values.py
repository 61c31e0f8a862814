"""Values of results and parameters: PostgreSQL's types, in text and in binary.

Law      a value is None, bool, int, float, str, date, datetime or a list of these. What a type
         cannot hold is refused on the way in, and is text on the way out
Source   PostgreSQL 17, "Frontend/Backend Protocol"; src/include/catalog/pg_type.dat for numbers
Checked  tests/serve/test_sqlport_messages.py (psycopg reads what is written, and writes)
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from lastbit.serve.sqlport.messages import BadText, Column

BOOL, BYTEA, CHAR, NAME, INT8, INT2, INT4, TEXT, OID = 16, 17, 18, 19, 20, 21, 23, 25, 26
FLOAT4, FLOAT8, UNKNOWN, VARCHAR, BPCHAR = 700, 701, 705, 1043, 1042
DATE, TIMESTAMP, TIMESTAMPTZ, NUMERIC, JSON, REGTYPE = 1082, 1114, 1184, 1700, 114, 2206
ARRAYS: Mapping[int, int] = MappingProxyType(
    {1000: BOOL, 1005: INT2, 1007: INT4, 1009: TEXT, 1016: INT8, 1022: FLOAT8, 1028: OID}
)
"""Types of lists, and the type of what is in them."""
SIZES: Mapping[int, int] = MappingProxyType(
    {BOOL: 1, CHAR: 1, NAME: 64, INT2: 2, INT4: 4, INT8: 8, OID: 4, FLOAT4: 4, FLOAT8: 8}
    | {DATE: 4, TIMESTAMP: 8, TIMESTAMPTZ: 8}
)
OF_KINDS: Mapping[str, int] = MappingProxyType(
    {
        "integer": INT8,
        "number": FLOAT8,
        "text": TEXT,
        "boolean": BOOL,
        "date": DATE,
        "timestamp": TIMESTAMP,
    }
)
"""The type of a column of a card, or of an answer."""
_TEXTS = frozenset({TEXT, VARCHAR, BPCHAR, NAME, UNKNOWN, CHAR, JSON, 0})
_WHOLE: Mapping[int, str] = MappingProxyType(
    {INT2: ">h", INT4: ">i", INT8: ">q", OID: ">I", REGTYPE: ">I"}
)
_EPOCH, _DAY_ZERO = datetime(2000, 1, 1), date(2000, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
_MOST_DIGITS = 1000


class WrongValue(Exception):
    """A parameter is not of its type, or of a type that is not known here."""


# ---------------------------------------------------------------- out


def encoded(value: Any, column: Column, form: int) -> bytes | None:
    """A value of a column, in text (0) or in binary (1)."""
    if value is None:
        return None
    return in_binary(value, column.type) if form == 1 else in_text(value).encode("utf-8", "replace")


def in_text(value: Any) -> str:
    """As PostgreSQL prints it."""
    match value:
        case bool():
            return "t" if value else "f"
        case float():
            return _float_text(value)
        case datetime():
            return value.isoformat(" ")
        case list():
            return "{" + ",".join(map(_item_text, value)) + "}"
    return str(value).replace("\x00", "")


def _float_text(value: float) -> str:
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if math.isnan(value):
        return "NaN"
    words = repr(value)
    return words.removesuffix(".0")


def _item_text(value: Any) -> str:
    if value is None:
        return "NULL"
    words = in_text(value)
    plain = words and words.upper() != "NULL" and not set(words) & set('{}",\\ \t\n\r\v\f')
    if plain or isinstance(value, list):
        return words
    return '"' + words.replace("\\", "\\\\").replace('"', '\\"') + '"'


def in_binary(value: Any, kind: int) -> bytes:
    """As PostgreSQL sends it in binary; texts are the same in both."""
    if kind == BOOL:
        return b"\x01" if value else b"\x00"
    if kind in _WHOLE:
        return struct.pack(_WHOLE[kind], int(value))
    if kind in (FLOAT4, FLOAT8):
        return struct.pack(">f" if kind == FLOAT4 else ">d", float(value))
    if kind == DATE:
        return struct.pack(">i", (date.fromisoformat(str(value)) - _DAY_ZERO).days)
    if kind in (TIMESTAMP, TIMESTAMPTZ):
        moment = datetime.fromisoformat(str(value)).replace(tzinfo=None)
        return struct.pack(">q", (moment - _EPOCH) // _MICROSECOND)
    if kind == NUMERIC:
        return _numeric(value)
    if kind in ARRAYS and isinstance(value, list):
        return _array(value, ARRAYS[kind])
    return in_text(value).encode("utf-8", "replace")


def _numeric(value: Any) -> bytes:
    """Groups of four digits, base 10000."""
    number = Decimal(str(value))
    if not number.is_finite():
        return struct.pack(">hhHh", 0, 0, 0xC000, 0)
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    scale = max(-exponent, 0)
    words = "".join(map(str, digits)) + "0" * max(exponent, 0)
    whole, part = (words[:-scale], words[-scale:]) if scale else (words, "")
    part = part.rjust(scale, "0")
    whole = whole.rjust(-(-len(whole) // 4) * 4, "0")
    part = part.ljust(-(-len(part) // 4) * 4, "0")
    groups = [int(words) for words in _fours(whole) + _fours(part)]
    weight = len(whole) // 4 - 1
    while groups and groups[0] == 0:
        groups, weight = groups[1:], weight - 1
    while groups and groups[-1] == 0:
        groups.pop()
    head = struct.pack(">hhHh", len(groups), weight if groups else 0, 0x4000 * sign, scale)
    return head + b"".join(struct.pack(">h", group) for group in groups)


def _fours(digits: str) -> list[str]:
    return [digits[place : place + 4] for place in range(0, len(digits), 4)]


def _array(values: list[Any], kind: int) -> bytes:
    if not values:
        return struct.pack(">iii", 0, 0, kind)
    parts = [struct.pack(">iiiii", 1, int(None in values), kind, len(values), 1)]
    for value in values:
        if value is None:
            parts.append(b"\xff\xff\xff\xff")
            continue
        one = in_binary(value, kind)
        parts.append(struct.pack(">i", len(one)) + one)
    return b"".join(parts)


# ---------------------------------------------------------------- in


def parameter(value: bytes | None, kind: int, form: int, place: int) -> Any:
    """The value of a parameter: bool, int, float, str, a date as its text, or None."""
    if value is None:
        return None
    try:
        return _from_binary(value, kind) if form == 1 else _from_text(value.decode(), kind)
    except UnicodeDecodeError:
        raise BadText("a parameter is not UTF-8") from None
    except (ValueError, OverflowError, struct.error, ArithmeticError):
        raise WrongValue(f"parameter ${place} is not of the type that it is sent as") from None
    except KeyError:
        words = f"parameter ${place} is of a type that is not known here (number {kind})"
        raise WrongValue(words) from None


def _from_text(words: str, kind: int) -> Any:
    if "\x00" in words:
        raise BadText("a parameter holds a NUL")
    if kind in _TEXTS:
        return words
    if kind in _WHOLE:
        if len(words) > _MOST_DIGITS:
            raise ValueError
        return int(words)
    if kind in (FLOAT4, FLOAT8, NUMERIC):
        return _finite(float(words))
    if kind == BOOL:
        return {"t": True, "true": True, "1": True, "on": True, "yes": True, "y": True}.get(
            words.strip().lower()
        ) or _false(words)
    if kind == DATE:
        return date.fromisoformat(words).isoformat()
    if kind in (TIMESTAMP, TIMESTAMPTZ):
        return _moment(datetime.fromisoformat(words))
    raise KeyError(kind)


def _false(words: str) -> bool:
    if words.strip().lower() not in ("f", "false", "0", "off", "no", "n"):
        raise ValueError
    return False


def _from_binary(value: bytes, kind: int) -> Any:
    if kind in _TEXTS:
        return _from_text(value.decode(), kind)
    if kind in _WHOLE:
        return struct.unpack(_WHOLE[kind], value)[0]
    if kind in (FLOAT4, FLOAT8):
        return _finite(struct.unpack(">f" if kind == FLOAT4 else ">d", value)[0])
    if kind == BOOL:
        if value not in (b"\x00", b"\x01"):
            raise ValueError
        return value == b"\x01"
    if kind == DATE:
        return (_DAY_ZERO + timedelta(days=struct.unpack(">i", value)[0])).isoformat()
    if kind in (TIMESTAMP, TIMESTAMPTZ):
        return _moment(_EPOCH + struct.unpack(">q", value)[0] * _MICROSECOND)
    if kind == NUMERIC:
        return _finite(float(_decimal(value)))
    raise KeyError(kind)


def _finite(number: float) -> float:
    if not math.isfinite(number):
        raise ValueError
    return number


def _moment(moment: datetime) -> str:
    if moment.tzinfo is not None and moment.utcoffset():
        raise ValueError  # a card's times have no zone
    return moment.replace(tzinfo=None).isoformat(" ")


def _decimal(value: bytes) -> Decimal:
    count, weight, sign, scale = struct.unpack(">hhHh", value[:8])
    groups = struct.unpack(f">{count}h", value[8:])
    if sign not in (0, 0x4000) or abs(weight) > _MOST_DIGITS or not 0 <= scale <= _MOST_DIGITS:
        raise ValueError
    total = Decimal(0)
    for place, group in enumerate(groups):
        total += Decimal(group).scaleb(4 * (weight - place))
    return -total if sign else total
