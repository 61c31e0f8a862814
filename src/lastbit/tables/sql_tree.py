"""Walking a parsed statement so that no part of it is overlooked.

What the parser understood and we did not look at would be a part of the question that the answer
silently ignores. So every node is taken apart by `taken`, which refuses whatever is not asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from lastbit.errors import QueryRefused
from lastbit.tables.limits import LARGEST_EXPONENT, LONGEST_DIGITS

__all__ = ["integer_of", "kind_of", "name_of", "names", "number_of", "place_of", "refused", "taken"]

_LONGEST = 60
_NEAREST: Mapping[str, str] = MappingProxyType(
    {
        "distinct": "GROUP BY the columns instead: SELECT x, COUNT(*) ... GROUP BY x",
        "offset": "take the first rows with LIMIT",
        "qualify": "use HAVING",
        "recursive": "ask without it",
        "sample": "ask about all rows",
        "windows": "GROUP BY instead",
    }
)


def refused(what: str, problem: str, remedy: str) -> QueryRefused:
    """A refusal; `what` is the analyst's own text, cut."""
    return QueryRefused(what[:_LONGEST], problem=problem, remedy=remedy)


def kind_of(node: Any) -> str:
    """The name of a node's class."""
    return type(node).__name__


def taken(node: Any, *wanted: str, ignored: tuple[str, ...] = ()) -> list[Any]:
    """The named parts of a node, in this order; any other part is refused.

    `ignored` names parts that mean nothing here (hints of the parser about dialects).
    """
    for name, value in node.args.items():
        empty = value is None or value is False or value == "" or value == []
        if not empty and name not in wanted and name not in ignored:
            raise refused(
                name.strip("_").upper().replace("_", " "),
                f"has no meaning here (in {kind_of(node).upper()})",
                _NEAREST.get(name, "leave it out"),
            )
    return [node.args.get(name) for name in wanted]


def name_of(identifier: Any) -> str:
    """The text of an identifier."""
    if kind_of(identifier) != "Identifier":
        raise refused("name", "is no plain name", "write a name")
    (text,) = taken(identifier, "this", ignored=("quoted",))
    if not isinstance(text, str) or not text:
        raise refused("name", "is empty", "write a name")
    return text


def names(identifier: Any, known: str) -> bool:
    """Whether the identifier means this name: letter for letter in quotes, else in any case."""
    text = name_of(identifier)
    return text == known if identifier.args.get("quoted") else text.lower() == known.lower()


def number_of(node: Any) -> Fraction | None:
    """The exact number that a literal writes, with its sign; None for anything else."""
    sign = 1
    while kind_of(node) in ("Neg", "Paren"):
        sign = -sign if kind_of(node) == "Neg" else sign
        (node,) = taken(node, "this")
    if kind_of(node) != "Literal" or node.args.get("is_string"):
        return None
    return sign * _number(str(node.this))


def integer_of(node: Any) -> int | None:
    """The whole number that a literal writes; None for anything else."""
    number = number_of(node)
    return int(number) if number is not None and number.denominator == 1 else None


def place_of(node: Any) -> int | None:
    """The place that a bare whole number names, as in ORDER BY 2; None for anything else."""
    while kind_of(node) == "Paren":
        (node,) = taken(node, "this")
    if kind_of(node) == "Literal" and not node.args.get("is_string") and str(node.this).isdigit():
        return integer_of(node)
    return None


def _number(text: str) -> Fraction:
    mantissa, _, exponent = text.lower().replace("_", "").partition("e")
    if len(mantissa) > LONGEST_DIGITS or len(exponent) > 4:
        raise refused("number", "is written with too many digits", "write a shorter one")
    try:
        power = int(exponent or "0")
        number = Fraction(mantissa)
    except (ValueError, ZeroDivisionError):
        raise refused("number", "is not understood", "write digits") from None
    if abs(power) > LARGEST_EXPONENT:
        raise refused("number", "is too large or too small", "write one that a double can hold")
    return number * Fraction(10) ** power
