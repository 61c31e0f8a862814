"""Expressions over one row: what may be filtered by, grouped by and summed.

A row's expression is a function of that row alone (and of public tables): it cannot see another
row, so it cannot carry one person's data into another's. The language is closed: a function that
is not in `FUNCTIONS` does not exist here. Every function is total: where SQL would stop with an
error (a division by 0, a text that is not a number, an overflow) the value is missing, since an
error would tell about somebody's row. What one expression may be is decided where it is made
(`Call`); what a whole question may be, by `check_parts`, however it was made: in SQL, in Python,
from JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass, field
from datetime import date, datetime
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from lastbit.errors import InvalidParameter, QueryRefused, WrongType
from lastbit.tables import limits
from lastbit.tables.limits import (
    DEEPEST,
    LONGEST_CONSTANT,
    MOST_CALLS,
    MOST_ITEMS,
    MOST_NODES,
    refused,
)

ColumnType: TypeAlias = Literal["integer", "number", "text", "boolean", "date", "timestamp"]
"""The types of columns, on a card and in expressions."""

Value: TypeAlias = int | Fraction | str | bool | date | datetime | None
"""What a constant or a key may be; never a float, whose text differs from machine to machine."""


@dataclass(frozen=True, slots=True)
class ColumnName:
    """A column of the table, or of a joined public table (then `table` is that table's name)."""

    name: str
    table: str | None = None


@dataclass(frozen=True, slots=True)
class Constant:
    """A public value, written in the query; 1, 1.0 and true are three of them."""

    value: Value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Constant):
            return NotImplemented
        return type(self.value) is type(other.value) and self.value == other.value

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))

    def __post_init__(self) -> None:
        value, size, bits = self.value, 0, 0
        if type(value) is int:  # as most keys are: the quick way
            bits = value.bit_length()
        elif isinstance(value, int | Fraction):
            bits = max(value.numerator.bit_length(), value.denominator.bit_length())
        elif isinstance(value, str):  # cut first: a long one need not be encoded
            start = value[: LONGEST_CONSTANT + 1].encode(errors="surrogatepass")
            size = max(len(value), len(start))
        if bits > _MOST_BITS or size > LONGEST_CONSTANT:
            problem = f"is longer than {LONGEST_CONSTANT} bytes, or has too many digits"
            raise refused("a constant", problem, "write a shorter one")


_MOST_BITS = 4_096
_SHORT = 1 << 63
_RATIO = re.compile(r"-?[0-9]{1,1300}(/[0-9]{1,1300})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Call:
    """A function of `FUNCTIONS`, applied. One that would be too large cannot be made at all.

    Sizes are counted as if every part were written out, so that a part that occurs twice in a
    part that occurs twice is seen here, before anything walks it.
    """

    function: str
    arguments: tuple[Expression, ...]
    nodes: int = field(init=False, repr=False, compare=False)
    calls: int = field(init=False, repr=False, compare=False)
    depth: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        inner = [part for part in self.arguments if isinstance(part, Call)]
        calls = 1 + sum(part.calls for part in inner)
        nodes = 1 + len(self.arguments) + sum(part.nodes - 1 for part in inner)
        depth = 1 + max((part.depth for part in inner), default=0)
        most = MOST_ITEMS if self.function == "in" else limits.MOST_TERMS
        if len(self.arguments) > most:
            raise _too_large(f"is too long: {self.function[:20]} takes {most} parts at most")
        if depth > DEEPEST:
            raise _too_large(f"is nested too deeply: {DEEPEST} functions inside each other at most")
        if nodes > MOST_NODES or calls > MOST_CALLS:
            raise _too_large(f"is too long: {MOST_NODES} parts, {MOST_CALLS} functions at most")
        object.__setattr__(self, "nodes", nodes)
        object.__setattr__(self, "calls", calls)
        object.__setattr__(self, "depth", depth)


Expression: TypeAlias = ColumnName | Constant | Call


FUNCTIONS: Mapping[str, tuple[int, int | None]] = MappingProxyType(
    {
        **dict.fromkeys(("-", "/", "%", "=", "<>", "<", "<=", ">", ">=", "like", "ilike"), (2, 2)),
        **dict.fromkeys(("power", "starts_with", "contains", "days_between"), (2, 2)),
        **dict.fromkeys(("negate", "not", "is_missing", "abs", "floor", "ceil", "sqrt"), (1, 1)),
        **dict.fromkeys(("ln", "exp", "length", "lower", "upper", "trim"), (1, 1)),
        **dict.fromkeys(("to_integer", "to_number", "to_text", "to_date", "to_boolean"), (1, 1)),
        **dict.fromkeys(("year", "quarter", "month", "day", "hour", "weekday"), (1, 1)),
        **dict.fromkeys(("minute", "second", "week", "day_of_year", "iso_weekday"), (1, 1)),
        **dict.fromkeys(("iso_year", "start_of_year", "start_of_quarter"), (1, 1)),
        **dict.fromkeys(("start_of_week", "start_of_hour", "start_of_minute"), (1, 1)),
        **dict.fromkeys(("+", "*", "and", "or", "least", "greatest"), (2, None)),
        **dict.fromkeys(("coalesce", "concat"), (1, None)),
        "in": (2, None),  # the value, then the constants
        "case": (2, None),  # condition, value, condition, value ... and perhaps the value otherwise
        "bin": (3, None),  # value, then rising edges: the lower edge of its bin [e_i, e_i+1)
        "clamp": (3, 3),  # value, low, high
        "substring": (2, 3),
        "round": (1, 2),
        "start_of_month": (1, 1),
        "strftime": (2, 2),  # a date or time, and a constant of the codes of DATE_CODES
    }
)
"""Each function with the least and the greatest number of its arguments (None: any)."""


def _too_large(problem: str) -> QueryRefused:
    return refused(
        "expression",
        problem,
        "simplify it, or ask several questions (derived columns count where they are named)",
    )


def call(function: str, *arguments: Expression) -> Call:
    """The function applied, checked to exist and to take that many arguments.

    >>> call("+", ColumnName("age"), Constant(1))
    Call(function='+', arguments=(ColumnName(name='age', table=None), Constant(value=1)))
    """
    if function not in FUNCTIONS:
        problem = f"uses a function that is not known: {function[:40]}"
        remedy = f"use one of {', '.join(sorted(FUNCTIONS))}"
        raise InvalidParameter("expression", problem=problem, remedy=remedy)
    least, most = FUNCTIONS[function]
    if len(arguments) < least or (most is not None and len(arguments) > most):
        problem = f"gives {function} the wrong number of arguments"
        remedy = f"give it {least}" + ("" if most == least else " or more")
        raise InvalidParameter("expression", problem=problem, remedy=remedy)
    return Call(function, arguments)


def starts_of_times(expression: Expression) -> bool:
    """Whether these are times that many rows share, such as date_trunc('hour', t)."""
    starts = ("start_of_hour", "start_of_minute")
    return isinstance(expression, Call) and expression.function in starts


def value_to_json(value: Value) -> dict[str, Any]:
    """A value with its type: plain JSON, the same for equal values of one type.

    >>> value_to_json(Fraction(1, 2))
    {'type': 'number', 'value': '1/2'}
    """
    plain = _PLAIN.get(type(value))
    if plain is not None:
        return {"type": plain, "value": value}
    written: Any = value.isoformat() if isinstance(value, date) else value
    written = str(value) if isinstance(value, Fraction) else written
    return {"type": value_type(value) or "missing", "value": written}


def values_to_json(values: Iterable[Value]) -> list[Any]:
    """`value_to_json` of each as a constant, quickly where they are short integers or texts.

    >>> values_to_json([1, "1", None]) == [value_to_json(one) for one in (1, "1", None)]
    True
    """
    return [
        {"type": "integer", "value": value}
        if type(value) is int and -_SHORT < value < _SHORT
        else {"type": "text", "value": value}
        if type(value) is str and len(value) < LONGEST_CONSTANT // 4  # at most 4 bytes a letter
        else value_to_json(Constant(value).value)
        for value in values
    ]


def from_json(data: Any, *, total: bool = False) -> Expression:
    """The expression that `writing.to_json` wrote; everything is checked again.

    `total` lets the sum of a released column over all rows be one, for formulas.
    """
    return _from_json(data, 0, total)


def _from_json(data: Any, depth: int, total: bool) -> Expression:
    match data:
        case {"column": str(name), "table": str(table)}:
            return ColumnName(name, table)
        case {"column": str(name)}:
            return ColumnName(name)
        case {"type": str(kind), "value": value}:
            return Constant(_read(kind, value))
        case [str(function), *arguments] if depth <= DEEPEST and len(arguments) <= MOST_ITEMS:
            parts = tuple(_from_json(part, depth + 1, total) for part in arguments)
            return Call("total", parts) if total and function == "total" else call(function, *parts)
        case [str(_), *_]:
            raise _too_large("is too long, or nested too deeply")
    raise WrongType("expression", problem="is malformed", remedy="pass what to_json wrote")


_PLAIN: Mapping[type, ColumnType] = MappingProxyType({bool: "boolean", int: "integer", str: "text"})
"""Types of values that JSON writes as they are; `value_type` says the same of them."""


def value_type(value: Value) -> ColumnType | None:
    """The type of a constant; None for a missing one."""
    match value:
        case None:
            return None
        case bool():
            return "boolean"
        case int():
            return "integer"
        case Fraction():
            return "number"
        case str():
            return "text"
        case datetime():
            return "timestamp"
        case date():
            return "date"
    raise WrongType(
        "constant", problem="is of a kind that has no meaning here", remedy="pass text or a number"
    )


def _read(kind: str, value: Any) -> Value:
    read: Value = None
    try:
        match kind:
            case "number" if _RATIO.fullmatch(value):  # not 1e999999, a short text of a long number
                read = Fraction(value)
            case "date":
                read = date.fromisoformat(value)
            case "timestamp":
                read = datetime.fromisoformat(value)
            case "integer" | "text" | "boolean" | "missing":
                read = value
    except (TypeError, ValueError, ZeroDivisionError):
        pass
    if (value_type(read) or "missing") != kind:
        raise WrongType("constant", problem="is malformed", remedy="pass what to_json wrote")
    return read


DATE_CODES = frozenset("ABGHIMSVYabdjmpuwy")
"""What strftime may write (`types.DATE_VALUES`); %% is a plain %."""

_PATTERNS = ("contains", "ilike", "like")
_OF_TEXTS = (
    *_PATTERNS,
    *("concat", "length", "lower", "starts_with", "strftime", "substring", "trim", "upper"),
)
_CASTS = ("to_boolean", "to_date", "to_integer", "to_number", "to_text")


def check_expression(expression: Expression) -> None:
    """That patterns are short constants, with few signs that cost more than one step a letter."""
    for part in _calls([expression]):
        if part.function in _PATTERNS:
            _check_pattern(part)
        if part.function == "strftime":
            _check_format(part)


def check_parts(
    *,
    keys: int,
    joins: int,
    names: Iterable[str],
    aggregates: int,
    edges: Iterable[Sized],
    expressions: Iterable[Expression],
) -> None:
    """That a query as a whole is small enough, and each of its expressions."""
    found = list(expressions)
    for what, number, most in (
        ("GROUP BY", keys, limits.MOST_KEYS),
        ("JOIN", joins, limits.MOST_JOINS),
        ("SELECT", aggregates, limits.MOST_AGGREGATES),
        ("HISTOGRAM", max(map(len, edges), default=0), limits.MOST_EDGES),
    ):
        if number > most:
            raise refused(what, f"lists more than {most} things", "ask several questions")
    if any(len(name) > limits.LONGEST_NAME for name in names):
        raise refused(
            "a name of the answer",
            f"has more than {limits.LONGEST_NAME} characters",
            "name it with AS",
        )
    nodes = sum(part.nodes if isinstance(part, Call) else 1 for part in found)
    if nodes > MOST_NODES or sum(isinstance(p, Call) and p.calls for p in found) > MOST_CALLS:
        problem = f"is too long: {MOST_NODES} parts, {MOST_CALLS} functions in all at most"
        raise refused("query", problem, "ask several questions")
    texts = sum(part.function in (*_OF_TEXTS, *_CASTS) for part in _calls(found))
    if texts > limits.MOST_TEXT_FUNCTIONS:
        raise refused(
            "query",
            f"has more than {limits.MOST_TEXT_FUNCTIONS} functions of texts and casts",
            "ask several questions",
        )
    for expression in found:
        check_expression(expression)


def _calls(expressions: Iterable[Expression]) -> Iterator[Call]:
    waiting = list(expressions)
    while waiting:
        part = waiting.pop()
        if isinstance(part, Call):
            yield part
            waiting += part.arguments


def _check_format(part: Call) -> None:
    match part.arguments[1]:
        case Constant(str(written)) if len(written) <= limits.LONGEST_PATTERN:
            codes = written.replace("%%", "").split("%")[1:]
            if all(code[:1] in DATE_CODES for code in codes):
                return
    listed = ", ".join(f"%{code}" for code in sorted(DATE_CODES))
    raise refused(
        "strftime", "has a format that is not known here", f"write a text in quotes with {listed}"
    )


def _check_pattern(part: Call) -> None:
    what = part.function.upper()
    match part.arguments[1:]:
        case (Constant(str(pattern)),):
            pass
        case (Constant(),):
            return  # missing, or of the wrong type, which is refused elsewhere
        case _:
            problem = "looks for a text that is not a constant"
            raise refused(what, problem, "write the text into the question, in quotes")
    if len(pattern) > limits.LONGEST_PATTERN:
        problem = f"has a pattern of more than {limits.LONGEST_PATTERN} characters"
        raise refused(what, problem, "look for a part of it")
    mixed = part.function != "contains" and "%" in pattern
    if mixed and pattern.count("_") > limits.MOST_SINGLE_WILDCARDS:
        problem = f"has more than {limits.MOST_SINGLE_WILDCARDS} signs _ in a pattern with %"
        raise refused(what, problem, "write two patterns with AND, or compare substring(...)")
