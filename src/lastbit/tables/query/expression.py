"""Expressions over one row: what may be filtered by, grouped by and summed.

A row's expression is a function of that row alone (and of public tables): it cannot see another
row, so it cannot carry one person's data into another's. The language is closed: a function that
is not in `rules.FUNCTIONS` does not exist. Every function is total: where SQL would stop with an
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
from typing import Any, Literal, TypeAlias

from lastbit.errors import QueryRefused, WrongType
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
StoredType: TypeAlias = (
    ColumnType | Literal["integer[]", "number[]", "text[]", "boolean[]", "date[]", "timestamp[]"]
)
"""The type of a column in its table: a value, or a list of such values."""
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
        if isinstance(value, int | Fraction):
            bits = max(value.numerator.bit_length(), value.denominator.bit_length())
        elif isinstance(value, str):  # cut first: a long one need not be encoded
            start = value[: LONGEST_CONSTANT + 1].encode(errors="surrogatepass")
            size = max(len(value), len(start))
        if bits > _MOST_BITS or size > LONGEST_CONSTANT:
            problem = f"is longer than {LONGEST_CONSTANT} bytes, or has too many digits"
            raise refused("a constant", problem, "write a shorter one")


_MOST_BITS = 4_096
_RATIO = re.compile(r"-?[0-9]{1,1300}(/[0-9]{1,1300})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Call:
    """A function, applied. One that would be too large cannot be made at all.

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


def _too_large(problem: str) -> QueryRefused:
    return refused(
        "expression",
        problem,
        "simplify it, or ask several questions (derived columns count where they are named)",
    )


def starts_of_times(expression: Expression) -> bool:
    """Whether these are times that many rows share, such as date_trunc('hour', t)."""
    starts = ("start_of_hour", "start_of_minute")
    return isinstance(expression, Call) and expression.function in starts


def value_to_json(value: Value) -> dict[str, Any]:
    """A value with its type: plain JSON, the same for equal values of one type.

    >>> value_to_json(Fraction(1, 2))
    {'type': 'number', 'value': '1/2'}
    """
    kind, written = value_type(value) or "missing", value
    if isinstance(value, date | Fraction):
        written = value.isoformat() if isinstance(value, date) else str(value)
    return {"type": kind, "value": written}


def from_json(data: Any, depth: int = 0) -> Expression:
    """The expression that `writing.to_json` wrote; which functions there are is judged elsewhere:
    by the checker of a certificate, and by `rules.py` for a question as it is made.
    """
    match data:
        case {"column": str(name), "table": str(table)}:
            return ColumnName(name, table)
        case {"column": str(name)}:
            return ColumnName(name)
        case {"type": str(), "value": _}:
            return Constant(value_from_json(data))
        case [str(function), *arguments]:
            if depth > DEEPEST:
                raise _too_large("is nested too deeply")
            return Call(function, tuple(from_json(part, depth + 1) for part in arguments))
    raise WrongType("expression", problem="is malformed", remedy="pass what to_json wrote")


_TYPES: tuple[tuple[type, ColumnType], ...] = (
    *((bool, "boolean"), (int, "integer"), (Fraction, "number"), (str, "text")),
    *((datetime, "timestamp"), (date, "date")),  # a datetime is a date too
)


def value_type(value: Value) -> ColumnType | None:
    """The type of a constant; None for a missing one."""
    if value is None:
        return None
    for kind, name in _TYPES:
        if isinstance(value, kind):
            return name
    problem = "is of a kind that has no meaning here"
    raise WrongType("constant", problem=problem, remedy="pass text or a number")


def value_from_json(data: Mapping[str, Any]) -> Value:
    """The value that `value_to_json` wrote."""
    kind, value = data["type"], data["value"]
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
    return Constant(read).value  # if it is short


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
    for part in calls_in([expression]):
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
    texts = sum(part.function in (*_OF_TEXTS, *_CASTS) for part in calls_in(found))
    if texts > limits.MOST_TEXT_FUNCTIONS:
        raise refused(
            "query",
            f"has more than {limits.MOST_TEXT_FUNCTIONS} functions of texts and casts",
            "ask several questions",
        )
    for expression in found:
        check_expression(expression)


def calls_in(expressions: Iterable[Expression]) -> Iterator[Call]:
    """Every call in them, inner ones too."""
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
