"""Whether a question is small enough: its expressions, and all of them together.

What one expression may be is decided where it is made (`expression.Call`); here is the rest: the
patterns in it, and a whole query, however it was made (in SQL, in Python, from a record).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction

from lastbit.errors import QueryRefused
from lastbit.tables.limits import (
    LONGEST_NAME,
    LONGEST_PATTERN,
    MOST_AGGREGATES,
    MOST_CALLS,
    MOST_EDGES,
    MOST_JOINS,
    MOST_KEYS,
    MOST_NODES,
    MOST_SINGLE_WILDCARDS,
    MOST_TEXT_FUNCTIONS,
)
from lastbit.tables.query.expression import Call, Constant, Expression

_PATTERNS = ("contains", "ilike", "like")
_OF_TEXTS = (*_PATTERNS, "concat", "length", "lower", "starts_with", "substring", "trim", "upper")
_CASTS = ("to_boolean", "to_date", "to_integer", "to_number", "to_text")


def check_expression(expression: Expression) -> None:
    """That patterns are short constants, with few signs that cost more than one step a letter."""
    for part in _calls([expression]):
        if part.function in _PATTERNS:
            _check_pattern(part)


def check_parts(
    *,
    keys: int,
    joins: int,
    names: Iterable[str],
    aggregates: int,
    edges: Iterable[tuple[Fraction, ...]],
    expressions: Iterable[Expression],
) -> None:
    """That a query as a whole is small enough, and each of its expressions."""
    found = list(expressions)
    for what, number, most in (
        ("GROUP BY", keys, MOST_KEYS),
        ("JOIN", joins, MOST_JOINS),
        ("SELECT", aggregates, MOST_AGGREGATES),
        ("HISTOGRAM", max(map(len, edges), default=0), MOST_EDGES),
    ):
        if number > most:
            raise _too_many(what, f"lists more than {most} things")
    if any(len(name) > LONGEST_NAME for name in names):
        raise QueryRefused(
            "a name of the answer",
            problem=f"has more than {LONGEST_NAME} characters",
            remedy="name it with AS",
        )
    nodes = sum(part.nodes if isinstance(part, Call) else 1 for part in found)
    if nodes > MOST_NODES or sum(isinstance(p, Call) and p.calls for p in found) > MOST_CALLS:
        problem = f"is too long: {MOST_NODES} parts, {MOST_CALLS} functions in all at most"
        raise _too_many("query", problem)
    texts = sum(part.function in (*_OF_TEXTS, *_CASTS) for part in _calls(found))
    if texts > MOST_TEXT_FUNCTIONS:
        raise _too_many(
            "query", f"has more than {MOST_TEXT_FUNCTIONS} functions of texts and casts"
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


def _check_pattern(part: Call) -> None:
    what = part.function.upper()
    match part.arguments[1:]:
        case (Constant(None),):
            return
        case (Constant(str(pattern)),):
            pass
        case (Constant(),):
            return  # of the wrong type, which is refused elsewhere
        case _:
            raise QueryRefused(
                what,
                problem="looks for a text that is no constant",
                remedy="write the text into the question, in quotes",
            )
    if len(pattern) > LONGEST_PATTERN:
        raise QueryRefused(
            what,
            problem=f"has a pattern of more than {LONGEST_PATTERN} characters",
            remedy="look for a part of it",
        )
    mixed = part.function != "contains" and "%" in pattern
    if mixed and pattern.count("_") > MOST_SINGLE_WILDCARDS:
        raise QueryRefused(
            what,
            problem=f"has more than {MOST_SINGLE_WILDCARDS} signs _ in a pattern with %",
            remedy="write two patterns with AND, or compare substring(...)",
        )


def _too_many(what: str, problem: str) -> QueryRefused:
    return QueryRefused(what, problem=problem, remedy="ask several questions")
