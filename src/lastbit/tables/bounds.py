"""What is publicly known of an expression: its bounds, its grid, the values it can have."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from lastbit.errors import QueryRefused
from lastbit.tables.expression import Call, ColumnName, Constant, Expression, Value
from lastbit.tables.schema import DataCard
from lastbit.tables.types import card_types, type_of

__all__ = ["Known", "check_bounds", "known_of", "known_values"]

_PARTS = (("month", 1, 12), ("quarter", 1, 4), ("day", 1, 31), ("hour", 0, 23), ("weekday", 0, 6))
_LARGEST = Fraction(10**300)
_COMPARED = ("=", "<>", "<", "<=", ">", ">=", "in", "like", "ilike", "starts_with", "contains")
_TRUTHS = (*_COMPARED, "and", "or", "not", "is_missing", "to_boolean")

Bounds = tuple[Fraction, Fraction]


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """An expression without its outer clamp, and what is known of it."""

    expression: Expression
    bounds: Bounds | None = None
    step: Fraction | None = None
    nullable: bool = True


def known_of(expression: Expression, card: DataCard) -> Known:
    """Bounds from clamp(x, low, high), from the card, or from the constants of a CASE.

    An outer clamp is taken off: the measure clamps by itself, in integers. LEAST(GREATEST(x, low),
    high) stays, since it makes `low` of a missing value, as SQL says; so it is never missing.
    """
    match expression:
        case ColumnName(name, None):
            column = card.column(name)
            return Known(
                expression=expression,
                bounds=column.bounds,
                step=column.step,
                nullable=column.nullable,
            )
        case Call("clamp", (inner, Constant(low), Constant(high))):
            known = known_of(inner, card) if isinstance(inner, ColumnName) else None
            return Known(
                expression=inner,
                bounds=_ordered(low, high),
                step=None if known is None else known.step,
                nullable=known is None or known.nullable,
            )
        case Call("least" | "greatest"):
            limits = _limits(expression)
            if limits is not None:
                return Known(expression=expression, bounds=limits, nullable=False)
    return Known(expression=expression, bounds=_range(expression, card))


def _limits(expression: Call) -> Bounds | None:
    """The limits of LEAST(GREATEST(x, low), high), in whatever order they are written."""
    outer = _with_constant(expression)
    if outer is None or not isinstance(outer[0], Call) or outer[0].function == expression.function:
        return None
    inner = _with_constant(outer[0]) if outer[0].function in ("least", "greatest") else None
    if inner is None:
        return None
    both = (inner[1], outer[1]) if expression.function == "least" else (outer[1], inner[1])
    return _ordered(*both)


def _with_constant(expression: Call) -> tuple[Expression, Value] | None:
    match expression.arguments:
        case (inner, Constant(limit)) | (Constant(limit), inner) if not isinstance(inner, Constant):
            return inner, limit
    return None


def _range(expression: Expression, card: DataCard) -> Bounds | None:
    """Bounds that the expression has by itself: constants of a CASE, parts of a date, 0 and 1."""
    match expression:
        case Call("case"):
            branches = known_values(expression, card) or ()
            values = [Fraction(v) for v in branches if _number(v)]  # type: ignore[arg-type]
            return (min(values), max(values)) if len(set(values)) > 1 else None
        case Call("to_integer" | "to_number", (inner,)):
            return _truth(inner, card)
        case Call(function):
            for part, first, last in _PARTS:
                if part == function:
                    return Fraction(first), Fraction(last)
    return None


def _truth(inner: Expression, card: DataCard) -> Bounds | None:
    is_truth = type_of(inner, card_types(card)) == "boolean"
    return (Fraction(0), Fraction(1)) if is_truth else None


def _ordered(low: Value, high: Value) -> Bounds:
    if not _number(low) or not _number(high):
        raise QueryRefused("clamp", problem="needs two numbers", remedy="write clamp(x, 0, 100)")
    bounds = Fraction(low), Fraction(high)  # type: ignore[arg-type]
    if not bounds[0] < bounds[1]:
        raise QueryRefused("clamp", problem="has bounds that do not rise", remedy="write low first")
    return bounds


def check_bounds(name: str, numbers: tuple[Fraction, ...]) -> None:
    """That doubles can hold the bounds or edges of an aggregate."""
    if any(abs(number) > _LARGEST for number in numbers):
        raise QueryRefused(name, problem="has bounds beyond 1e300", remedy="declare smaller ones")


def _number(value: Value) -> bool:
    return isinstance(value, int | Fraction) and not isinstance(value, bool)


def known_values(expression: Expression, card: DataCard) -> tuple[Value, ...] | None:
    """The values that a key can have, where the card or the expression says so; else None.

    Rows with another value, a missing one included, then belong to no group.
    """
    match expression:
        case ColumnName(name, None):
            column = card.column(name)
            if column.type == "boolean" and column.keys is None:
                return (False, True)
            return column.keys
        case Call("case", arguments):
            pairs = len(arguments) // 2 * 2
            branches = [*arguments[1:pairs:2], *(arguments[pairs:] or (Constant(None),))]
            values = [part.value for part in branches if isinstance(part, Constant)]
            return tuple(dict.fromkeys(values)) if len(values) == len(branches) else None
        case Call("bin", (_, *edges)):
            lower = [edge.value for edge in edges[:-1] if isinstance(edge, Constant)]
            return tuple(lower) if len(lower) == len(edges) - 1 else None
        case Call(function, _):
            if function in _TRUTHS:
                return (False, True)
            for part, first, last in _PARTS:
                if part == function:
                    return tuple(range(first, last + 1))
    return None
