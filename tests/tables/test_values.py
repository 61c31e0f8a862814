"""Every function against a reference in Python, on the values where engines go wrong.

Whole numbers at both ends of 64 bits, infinities, both zeros, the least double, dates at both ends,
texts that are almost numbers or dates, letters that grow. Each row is compared bit by bit.
"""

import math
import operator
import re
import struct
from datetime import date, datetime, timedelta
from fractions import Fraction
from itertools import product
from typing import Any

import pytest

from lastbit.release.formulas import EXACT, evaluate
from lastbit.tables.limits import LONGEST_TEXT
from lastbit.tables.query.expression import Call, ColumnName, Constant
from lastbit.tables.query.rules import FUNCTIONS
from tests.tables.connecting import connected
from tests.tables.stepping import stepped

HALF = Fraction(1, 2)
LEAST, MOST = -(2**63), 2**63 - 1
INTEGERS = [None, 0, 1, -1, 2, -2, 7, 400, -400, 2**32, -(2**32) - 1, 2**53 + 1, 2**62, MOST, LEAST]
DOUBLES = [
    None,
    0.0,
    -0.0,
    math.inf,
    -math.inf,
    1e308,
    -1e308,
    5e-324,
    -5e-324,
    1.5,
    -2.5,
    0.5,
    2.0**63,
    -(2.0**63),
    0.1,
]
TEXTS = [
    None,
    "",
    "a",
    "A",
    "'",
    "%_\\",
    "\0",
    "[",
    "1e999",
    "2024-02-30",
    "ß",
    "\U0001f600",
    "a\nb",
    "  x ",
    "ab" * 40,
    "12",
    "-1",
    "^a$",
    "a.b",
]
TRUTHS = [None, True, False]
DAYS = [None, date(1, 1, 1), date(9999, 12, 31), date(2024, 2, 29), date(1969, 12, 31)]
TIMES = [
    None,
    datetime(1, 1, 1),
    datetime(9999, 12, 31, 23, 59, 59, 999999),
    datetime(1969, 12, 31, 23),
]
KINDS: dict[str, tuple[str, list[Any]]] = {
    "integer": ("BIGINT", INTEGERS),
    "number": ("DOUBLE", DOUBLES),
    "text": ("VARCHAR", TEXTS),
    "boolean": ("BOOLEAN", TRUTHS),
    "date": ("DATE", DAYS),
    "timestamp": ("TIMESTAMP", TIMES),
}
N, D, S, B, Y, T = KINDS  # short names of the kinds


@pytest.fixture(scope="module")
def engine():
    with connected() as connection:
        connection.execute("SET threads = 1")
        yield connection


# ---------------------------------------------------------------- the reference


def strict(function):
    """Missing where an argument is, where the function fails, and where it gives NaN."""

    def found(*values):
        if None in values:
            return None
        try:
            value = function(*values)
        except (ValueError, OverflowError, ZeroDivisionError):
            return None
        return None if value != value else value

    return found


def fits(value):
    return value if LEAST <= value <= MOST else None


def fold(step):
    def found(*values):
        total = values[0]
        for value in values[1:]:
            total = strict(step)(total, value)
        return total

    return found


def double(step):
    """A step of doubles as IEEE 754 has it: Python raises where it is infinite."""

    def found(a, b):
        a, b = float(a), float(b)
        try:
            return step(a, b)
        except OverflowError:
            return math.inf

    return found


def divided(a, b):
    return float(a) / float(b)


def remainder(a, b):
    return math.fmod(float(a), float(b))


def exponential(x):
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def known(choice):
    def found(*values):
        there = [value for value in values if value is not None]
        return choice(there) if there else None

    return found


def matched(text, pattern):
    signs = {"%": ".*", "_": "."}
    return bool(re.fullmatch("".join(signs.get(c, re.escape(c)) for c in pattern), text, re.S))


def kleene(stop):
    def found(*values):
        if stop in values:
            return stop
        return None if None in values else not stop

    return found


def clamped(value, low, high):
    if value is None:
        return None
    if low is not None and value < low:
        return low
    return high if high is not None and value > high else value


def joined(*texts):
    text = "".join(t for t in texts if t is not None)
    return text if len(text.encode()) <= LONGEST_TEXT else None


COMPARED = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
CODES = "%Y-%m-%d %H:%M:%S %y %j %V %G %w %u %p %I %A %a %B %b 100%%"


def written(day, codes=CODES):
    """As HAVING writes it: so the engine and Python agree on every code."""
    return evaluate(Call("strftime", (Constant(day), Constant(codes))), {}, EXACT)


def quarter(day):
    return day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)


# function: the kinds of its arguments and what it should give; constants stand for themselves
REFERENCE = [
    *((f, (k, k), strict(step)) for f, step in COMPARED.items() for k in (N, D, S, B, Y, T)),
    ("+", (N, N), fold(lambda a, b: fits(a + b))),
    ("+", (N, N, N), fold(lambda a, b: fits(a + b))),
    ("-", (N, N), fold(lambda a, b: fits(a - b))),
    ("*", (N, N), fold(lambda a, b: fits(a * b))),
    ("*", (N, N, N), fold(lambda a, b: fits(a * b))),
    ("%", (N, N), strict(lambda a, b: int(math.copysign(1, a)) * (abs(a) % abs(b)))),
    ("negate", (N,), strict(lambda a: fits(-a))),
    ("abs", (N,), strict(lambda a: fits(abs(a)))),
    ("floor", (N,), strict(int)),
    ("ceil", (N,), strict(int)),
    ("+", (D, D), strict(double(operator.add))),
    ("-", (D, D), strict(double(operator.sub))),
    ("*", (D, D), strict(double(operator.mul))),
    ("*", (D, N), strict(double(operator.mul))),
    ("/", (D, D), strict(divided)),
    ("/", (N, N), strict(divided)),
    ("%", (D, D), strict(remainder)),
    ("negate", (D,), strict(operator.neg)),
    ("abs", (D,), strict(abs)),
    ("sqrt", (D,), strict(math.sqrt)),
    ("floor", (D,), strict(lambda x: x if math.isinf(x) else math.copysign(math.floor(x), x))),
    ("ceil", (D,), strict(lambda x: x if math.isinf(x) else math.copysign(math.ceil(x), x))),
    ("ln", (D,), strict(math.log)),
    ("exp", (D,), strict(exponential)),
    ("and", (B, B, B), kleene(False)),
    ("or", (B, B, B), kleene(True)),
    ("not", (B,), strict(operator.not_)),
    *(("is_missing", (k,), lambda v: v is None) for k in KINDS),
    *(("coalesce", (k, k), known(lambda values: values[0])) for k in KINDS),
    *(("least", (k, k), known(min)) for k in (N, S, Y)),
    *(("greatest", (k, k), known(max)) for k in (N, S, Y)),
    ("clamp", (N, N, N), clamped),
    ("in", (N, Constant(1), Constant(MOST)), strict(lambda v, *among: v in among)),
    (
        "bin",
        (N, Constant(-5), Constant(0), Constant(5)),
        strict(lambda v, a, b, c: None if not a <= v < c else a if v < b else b),
    ),
    ("case", (B, N, N), lambda test, yes, no: yes if test else no),
    ("case", (B, D), lambda test, yes: yes if test else None),
    *(
        ("like", (S, Constant(p)), strict(matched))
        for p in (
            "",
            "%",
            "_",
            "%a%",
            "a_%",
            "[",
            "%.%",
            "%\n%",
            "^a$",
            "a|b",
            "'",
            "__",
            "\\",
            "%\\",
        )
    ),
    *(
        ("ilike", (S, Constant(p)), strict(lambda t, p: matched(t.lower(), p.lower())))
        for p in ("A%", "%AB", "_A%", "SS")
    ),
    *(
        ("contains", (S, Constant(p)), strict(lambda t, p: p in t))
        for p in ("", "a", "%", "ab" * 30)
    ),
    ("starts_with", (S, S), strict(str.startswith)),
    ("length", (S,), strict(len)),
    ("lower", (S,), strict(str.lower)),
    ("trim", (S,), strict(lambda t: t.strip(" "))),
    ("concat", (S, S, S), joined),
    (
        "substring",
        (S, Constant(2), Constant(3)),
        strict(lambda t, start, length: t[start - 1 : start - 1 + length]),
    ),
    ("substring", (S, Constant(2**32)), lambda t, start: None),
    ("substring", (S, Constant(1), Constant(-(2**32) - 1)), lambda *_: None),
    *((f, (k,), strict(operator.attrgetter(f))) for f in ("year", "month", "day") for k in (Y, T)),
    ("hour", (T,), strict(lambda t: t.hour)),
    ("weekday", (Y,), strict(lambda d: d.isoweekday() % 7)),
    ("quarter", (Y,), strict(lambda d: (d.month + 2) // 3)),
    ("start_of_month", (Y,), strict(lambda d: d.replace(day=1))),
    ("start_of_month", (T,), strict(lambda t: t.date().replace(day=1))),
    ("minute", (T,), strict(lambda t: t.minute)),
    ("second", (T,), strict(lambda t: t.second)),
    ("week", (Y,), strict(lambda d: d.isocalendar().week)),
    ("week", (T,), strict(lambda t: t.isocalendar().week)),
    ("day_of_year", (Y,), strict(lambda d: d.timetuple().tm_yday)),
    ("iso_weekday", (Y,), strict(lambda d: d.isoweekday())),
    ("iso_year", (Y,), strict(lambda d: d.isocalendar().year)),
    ("iso_year", (T,), strict(lambda t: t.isocalendar().year)),
    ("start_of_year", (Y,), strict(lambda d: d.replace(month=1, day=1))),
    ("start_of_quarter", (T,), strict(lambda t: quarter(t.date()))),
    ("start_of_week", (Y,), strict(lambda d: d - timedelta(days=d.weekday()))),
    ("start_of_hour", (T,), strict(lambda t: t.replace(minute=0, second=0, microsecond=0))),
    ("start_of_minute", (T,), strict(lambda t: t.replace(second=0, microsecond=0))),
    *(("strftime", (k, Constant(CODES)), strict(written)) for k in (Y, T)),
    ("days_between", (Y, Y), strict(lambda a, b: (b - a).days)),
    ("days_between", (T, Y), strict(lambda a, b: (b - a.date()).days)),
    ("to_date", (T,), strict(datetime.date)),
    ("to_integer", (D,), strict(lambda x: fits(round(x)))),
    ("to_number", (N,), strict(float)),
    ("to_integer", (B,), strict(int)),
    ("to_integer", (S,), strict(lambda t: fits(int(t)) if re.fullmatch("-?[0-9]+", t) else None)),
    ("to_date", (S,), strict(lambda t: None if len(t) != 10 else date.fromisoformat(t))),
    ("to_text", (N,), strict(str)),
    ("to_text", (Y,), strict(date.isoformat)),
    ("to_boolean", (N,), strict(bool)),
    (
        "round",
        (D,),
        strict(
            lambda x: x if math.isinf(x) else math.copysign(math.floor(abs(Fraction(x)) + HALF), x)
        ),
    ),
]


def same(found, wanted):
    if isinstance(found, float) and isinstance(wanted, float | int):
        return struct.pack("d", found) == struct.pack("d", float(wanted))
    return found == wanted and (found is None) == (wanted is None)


@pytest.mark.parametrize(
    ("function", "kinds", "reference"),
    REFERENCE,
    ids=[f"{f}-{place}" for place, (f, _, _) in enumerate(REFERENCE)],
)
def test_is_what_python_says(engine, function, kinds, reference):
    names = [f"c{place}" for place, kind in enumerate(kinds) if isinstance(kind, str)]
    typed = dict(zip(names, [kind for kind in kinds if isinstance(kind, str)], strict=True))
    constants = [kind for kind in kinds if not isinstance(kind, str)]
    asked = Call(function, (*map(ColumnName, names), *constants))
    rows = list(product(*(KINDS[kind][1] for kind in typed.values())))
    columns = ", ".join(f"CAST(? AS {KINDS[kind][0]}[]) AS {n}" for n, kind in typed.items())
    each = ", ".join(f"unnest({name}) AS {name}" for name in names)
    origin = f"(SELECT {each} FROM (SELECT {columns}))"
    sql = stepped([*map(ColumnName, names), asked], typed, origin)
    found = engine.execute(sql, [list(column) for column in zip(*rows, strict=True)]).fetchall()
    assert len(found) == len(rows)
    for *given, value in found:
        wanted = reference(*given, *(constant.value for constant in constants))
        near = function in ("ln", "exp") and value is not None and wanted is not None
        assert math.isclose(value, wanted, rel_tol=1e-15) if near else same(value, wanted), given


def test_every_function_is_compared_but_two():
    """power and upper are not: Python's differ on purpose (errors, and letters that become two)."""
    compared = {function for function, _, _ in REFERENCE}
    assert set(FUNCTIONS) - compared == {"power", "upper"}


def test_rounding_to_a_missing_number_of_places_is_missing(engine):
    asked = Call("round", (ColumnName("x"), ColumnName("n")))
    sql = stepped([asked], {"x": D, "n": N}, "(SELECT 1.25::DOUBLE AS x, unnest([NULL, 1]) AS n)")
    assert sorted(engine.execute(sql).fetchall(), key=str) == [(1.3,), (None,)]


LONG = [
    "a" * LONGEST_TEXT,
    "a" * (LONGEST_TEXT - 1),
    "ɐ" * (LONGEST_TEXT // 2),
    "é" * (LONGEST_TEXT // 2),
]


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        (
            Call("upper", (ColumnName("s"),)),
            [LONG[0].upper(), LONG[1].upper(), None, LONG[3].upper()],
        ),
        (Call("concat", (ColumnName("s"), Constant("b"))), [None, LONG[1] + "b", None, None]),
        (Call("concat", (ColumnName("s"),) * 900), [None] * 4),
        (Call("length", (ColumnName("s"),)), [4096, 4095, 2048, 2048]),
        (
            Call("coalesce", (Call("concat", (ColumnName("s"), ColumnName("s"))), Constant("x"))),
            ["x"] * 4,
        ),
    ],
    ids=lambda x: x.function if isinstance(x, Call) else "",
)
def test_texts_that_would_be_too_long_are_missing(engine, asked, wanted):
    sql = stepped([asked], {"s": "text"}, "(SELECT unnest(CAST(? AS VARCHAR[])) AS s)")
    assert [value for (value,) in engine.execute(sql, [LONG]).fetchall()] == wanted
