"""Formulas over released columns: what HAVING tests, and what derived columns are made of.

The expressions are those of `tables/query/expression.py`, over the columns of the answer
instead of the table's. They are total: what cannot be computed is missing, and HAVING keeps a row
iff its condition is true. All of it is post-processing: it sees what everybody may see.

It runs on numbers that are not settled yet. If some value made it fail, or run for hours, then to
ask, look and give up would reveal something about that number, free of charge. So no value does:
any error is a missing value, and the time grows with the sizes of the question and of the values by
a small power, never with what the values say.

One interpreter reads them; a `Meaning` says what numbers and functions are:

| meaning | numbers | where |
|---|---|---|
| `EXACT` | as released; quotients are fractions | HAVING |
| `DOUBLES` | doubles, each operation rounded once | derived columns |
| `enclosures.INTERVALS` | where the true ones lie | the intervals of derived columns |

Checked  tests/release/test_having.py, tests/release/test_derived.py
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from fractions import Fraction
from functools import reduce
from types import MappingProxyType
from typing import Any, TypeAlias

from lastbit.exact import decimal_exp, decimal_ln, decimal_log, decimal_power
from lastbit.tables import DATE_VALUES, Call, ColumnName, Constant, Expression, OrderBy, Query

_LONGEST_NUMBER = 400
_MOST_DIGITS = 400

_LENIENT = frozenset(
    {"and", "or", "in", "case", "clamp", "is_missing", "coalesce", "concat", "least", "greatest"}
)
"""Functions that may say something of missing values too; of one, others give none."""

Functions: TypeAlias = Mapping[str, Callable[..., Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """What the numbers of an expression are, and what its functions give."""

    number: Callable[[Any], Any]
    """Of a constant or of a column."""
    functions: Functions
    result: Callable[[Any], Any]


def evaluate(expression: Expression, row: Mapping[Any, Any], meaning: Meaning) -> Any:
    """The value of an expression over released columns; None if there is none.

    `row` has the columns by their names in lower case, and totals as ("total", name).

    >>> from lastbit.tables.query.rules import call
    >>> evaluate(call(">", ColumnName("n"), Constant(100)), {"n": 120}, EXACT)
    True
    >>> evaluate(call("/", ColumnName("n"), Constant(0)), {"n": 120}, EXACT) is None
    True
    """
    try:
        match expression:
            case Constant(value):
                return meaning.number(value)
            case ColumnName(name):
                return meaning.number(row[name.lower()])
            case Call("total", (ColumnName(name),)):
                return meaning.number(row["total", name.lower()])
            case Call(function, arguments):
                values = [evaluate(argument, row, meaning) for argument in arguments]
                if None in values and function not in _LENIENT:
                    return None
                return meaning.result(meaning.functions[function](*values))
    except Exception:  # of whatever kind: an error would tell something that is not paid for
        return None


def shown_rows(query: Query, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[int]:
    """Which rows of the answer are left, and in which order: HAVING, ORDER BY, LIMIT.

    `names` are the columns, `rows` their released values.
    """
    places = {name.lower(): i for i, name in enumerate(names)}
    left = list(range(len(rows)))
    if (test := query.having) is not None:
        named = [{name: row[place] for name, place in places.items()} for row in rows]
        left = [i for i in left if evaluate(test, named[i], EXACT) is True]
    if query.order:
        columns = {name: [row[place] for row in rows] for name, place in places.items()}
        left = sorted_rows(left, query.order, columns)
    return left if query.limit is None else left[: query.limit]


def sorted_rows(
    rows: Sequence[int], order: Sequence[OrderBy], columns: Mapping[str, Sequence[Any]]
) -> list[int]:
    """The rows as ORDER BY puts them; `columns` have the values of all rows, by small names."""
    left = list(rows)
    for one in reversed(order):  # sorting is stable: the first name decides last
        values = columns[one.name.lower()]
        known = sorted(
            (i for i in left if values[i] is not None),
            key=values.__getitem__,
            reverse=one.descending,
        )
        left = known + [i for i in left if values[i] is None]  # the missing ones last either way
    return left


# ---------------------------------------------------------------- functions


def all_true(*values: Any) -> bool | None:
    """AND: decided by one False; else a missing value leaves it open."""
    return False if False in values else None if None in values else True


def any_true(*values: Any) -> bool | None:
    """OR: decided by one True; else a missing value leaves it open."""
    return True if True in values else None if None in values else False


def _case(*values: Any) -> Any:
    for test, value in zip(values[0::2], values[1::2], strict=False):
        if test is True:
            return value
    return values[-1] if len(values) % 2 else None


def _in(first: Any, *others: Any) -> bool | None:
    return None if first is None else any_true(*(None if x is None else first == x for x in others))


def _present(values: Sequence[Any]) -> list[Any]:
    return [value for value in values if value is not None]


def _like(text: str, pattern: str) -> bool:
    """As LIKE, in time len(text) * len(pattern): only the last % before a miss can take up more."""
    place = at = 0
    last: tuple[int, int] | None = None  # where to go on in the pattern, and in the text
    while at < len(text):
        letter = pattern[place] if place < len(pattern) else None
        if letter == "%":
            place += 1
            last = place, at
        elif letter is not None and letter in ("_", text[at]):
            place, at = place + 1, at + 1
        elif last is not None:
            place, at = last[0], last[1] + 1
            last = place, at
        else:
            return False
    return not pattern[place:].strip("%")


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return value.isoformat() if isinstance(value, date) else str(value)


def _number(value: Any) -> Any:
    if not isinstance(value, str):
        return +value
    # 1e999999999 is a short text and a long number: as a double it is none
    plain = len(value) <= _LONGEST_NUMBER and "e" not in value.lower()
    number = Fraction(value) if plain else float(value)
    return number if math.isfinite(number) else None


def _day(value: Any) -> date:
    if isinstance(value, str):
        return date.fromisoformat(value)
    return value.date() if isinstance(value, datetime) else value


def _bin(value: Any, *edges: Any) -> Any:
    inside = [edge for edge in edges if edge <= value]
    if not inside or value > edges[-1]:
        return None
    return edges[-2] if value == edges[-1] else inside[-1]


def _substring(text: str, start: int, length: int | None = None) -> str:
    first = max(start - 1, 0)
    return text[first:] if length is None else text[first : max(start - 1 + length, 0)]


def _round_to(value: Any, digits: int = 0) -> Any:
    return round(value, min(max(digits, -_MOST_DIGITS), _MOST_DIGITS))


def _strftime(day: date, written: str) -> str:
    """As the engine writes it: in English, and years with four digits, on every system."""
    time = day if isinstance(day, datetime) else datetime(day.year, day.month, day.day)
    iso, sunday = time.isocalendar(), time.isoweekday() % 7
    codes = {
        "%": "%",
        "Y": f"{time.year:04}",
        "G": f"{iso.year:04}",
        "y": f"{time.year % 100:02}",
        "j": f"{time.timetuple().tm_yday:03}",
        "V": f"{iso.week:02}",
        "m": f"{time.month:02}",
        "d": f"{time.day:02}",
        "H": f"{time.hour:02}",
        "I": f"{time.hour % 12 or 12:02}",
        "M": f"{time.minute:02}",
        "S": f"{time.second:02}",
        "p": "AM" if time.hour < 12 else "PM",
        "w": str(sunday),
        "u": str(iso.weekday),
        **{code: DATE_VALUES[code][sunday] for code in "Aa"},
        **{code: DATE_VALUES[code][time.month - 1] for code in "Bb"},
    }
    return re.sub("%(.)", lambda code: codes[code[1]], written)


def _boolean(value: Any) -> bool:
    if isinstance(value, str):
        return {"true": True, "false": False}[value.lower()]
    return bool(value)


_FUNCTIONS: Functions = MappingProxyType(
    {
        "and": all_true,
        "or": any_true,
        "in": _in,
        "case": _case,
        "is_missing": lambda value: value is None,
        "coalesce": lambda *values: next(iter(_present(values)), None),
        "concat": lambda *values: "".join(map(_text, _present(values))),
        "least": lambda *values: min(_present(values), default=None),
        "greatest": lambda *values: max(_present(values), default=None),
        "=": operator.eq,
        "<>": operator.ne,
        "<": operator.lt,
        "<=": operator.le,
        ">": operator.gt,
        ">=": operator.ge,
        "not": operator.not_,
        "-": operator.sub,
        "negate": operator.neg,
        "%": math.fmod,
        "power": lambda a, b: decimal_power(float(a), float(b)),
        "abs": abs,
        "floor": math.floor,
        "ceil": math.ceil,
        "round": _round_to,
        "sqrt": math.sqrt,
        "ln": lambda a: decimal_ln(float(a)),
        "exp": lambda a: decimal_exp(float(a)),
        "log": lambda base, a: decimal_log(float(base), float(a)),
        "bin": _bin,
        "length": len,
        "lower": str.lower,
        "upper": str.upper,
        "substring": _substring,
        "starts_with": str.startswith,
        "contains": operator.contains,
        "like": _like,
        "to_number": _number,
        "to_text": _text,
        "to_boolean": _boolean,
        "to_date": _day,
        "+": lambda *terms: reduce(operator.add, terms),
        "*": lambda *terms: reduce(operator.mul, terms),
        "/": lambda a, b: Fraction(a) / Fraction(b),
        "clamp": lambda value, low, high: min(max(value, low), high),
        "to_integer": lambda value: round(_number(value)),
        "ilike": lambda text, pattern: _like(text.lower(), pattern.lower()),
        "trim": lambda text: text.strip(" "),
        "year": lambda day: day.year,
        "quarter": lambda day: (day.month + 2) // 3,
        "month": lambda day: day.month,
        "day": lambda day: day.day,
        "hour": lambda time: time.hour,
        "weekday": lambda day: day.isoweekday() % 7,
        "days_between": lambda first, last: (_day(last) - _day(first)).days,
        "start_of_month": lambda day: _day(day).replace(day=1),
        "minute": lambda time: time.minute,
        "second": lambda time: time.second,
        "week": lambda day: day.isocalendar().week,
        "day_of_year": lambda day: day.timetuple().tm_yday,
        "iso_weekday": lambda day: day.isoweekday(),
        "iso_year": lambda day: day.isocalendar().year,
        "start_of_year": lambda day: _day(day).replace(month=1, day=1),
        "start_of_quarter": lambda day: _day(day).replace(
            month=(day.month - 1) // 3 * 3 + 1, day=1
        ),
        "start_of_week": lambda day: _day(day) - timedelta(days=day.weekday()),
        "start_of_hour": lambda time: time.replace(minute=0, second=0, microsecond=0),
        "start_of_minute": lambda time: time.replace(second=0, microsecond=0),
        "strftime": _strftime,
    }
)


def _finite(value: Any) -> Any:
    if isinstance(value, bool | None):
        return value
    return float(value) + 0.0 if math.isfinite(value) else None


EXACT = Meaning(number=lambda value: value, functions=_FUNCTIONS, result=lambda value: value)
DOUBLES = Meaning(
    number=lambda value: value if isinstance(value, bool | None) else float(value),
    functions=MappingProxyType(
        {
            **_FUNCTIONS,
            "/": operator.truediv,
            "round": lambda value, digits=0.0: _round_to(value, int(digits)),
        }
    ),
    result=_finite,
)
