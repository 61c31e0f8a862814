"""Which keys an expression can have by itself, and what of it rows are grouped by.

Law      `known_values` lists every value of the key of a row that belongs to a group: by the card,
         by the constants of the expression, or by bounds of whole numbers, of FLOOR(x / a) * b and
         of x // a * b. `key_of` brings numbers beyond such bounds to the nearest value listed
Theorem  public: functions of the card and of the expression, and of no row
Checked  tests/tables/test_public_keys.py, tests/tables/test_computed_bounds.py
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor

from lastbit.tables.card.schema import DataCard
from lastbit.tables.query.computed import quotient_bounds
from lastbit.tables.query.expression import Call, ColumnName, Constant, Expression, Value
from lastbit.tables.query.types import (
    DATE_PARTS,
    DATE_VALUES,
    TRUTHS,
    card_types,
    case_results,
    protected_column,
    reach_of,
    rising_ends,
    type_of,
    whole_quotient,
)

_MOST_MULTIPLES = 1_000
_FEW_NUMBERS = 256


def known_values(expression: Expression, card: DataCard) -> tuple[Value, ...] | None:
    """The values that a key can have, where the card or the expression says so; else None.

    Rows with another value, a missing one included, then belong to no group. Whole numbers between
    bounds are such values, if they are few; of public tables `sql/statement.py` knows them.
    """
    match expression:
        case ColumnName():
            column = protected_column(card, expression)
            if column is not None and column.type == "boolean" and column.keys is None:
                return (False, True)
            if column is None or column.keys is not None:
                return None if column is None else column.keys
            if column.type == "integer" and not column.bounds_chosen:
                bounds = column.number_bounds
                return None if bounds is None else _whole_numbers(*bounds)
            return None
        case Call("clamp", (inner, Constant(low), Constant(high))):
            steps = (known_values(inner, card) if _is_made(inner) else None) or ()
            if {low, high} <= set(steps):
                return steps[steps.index(low) : steps.index(high) + 1]
            whole = type_of(inner, card_types(card)) == "integer"
            return _whole_numbers(*rising_ends(low, high)) if whole else None
        case Call("case"):
            branches = case_results(expression)
            values = [part.value for part in branches if isinstance(part, Constant)]
            return tuple(dict.fromkeys(values)) if len(values) == len(branches) else None
        case Call("strftime", (_, Constant(str(written)))) if len(written) == 2:
            return DATE_VALUES.get(written[1]) if written[0] == "%" else None
        case Call() if (quotient := _multiple_of_quotient(expression)) is not None:
            return _quotients(*quotient, card)
        case Call("to_integer", (inner,)) if is_whole(inner):
            return _multiples(inner, card)
        case Call("bin", (_, *edges)):
            lower = [edge.value for edge in edges[:-1] if isinstance(edge, Constant)]
            return tuple(lower) if len(lower) == len(edges) - 1 else None
        case Call(function, _):
            if function in TRUTHS:
                return (False, True)
            for part, first, last in DATE_PARTS:
                if part == function:
                    return tuple(range(first, last + 1))
    return None


def key_of(expression: Expression, card: DataCard) -> Expression:
    """What rows are grouped by: whole if it is made so; beyond its bounds, as the nearer one.

    Bounds are those of a whole number, and of x in FLOOR(x / 250) * 250 or x // 250. Keys of a card
    are a list: rows with another value belong to no group.
    """
    column = protected_column(card, expression) if isinstance(expression, ColumnName) else None
    kind = type_of(expression, card_types(card))
    if kind == "number" and is_whole(expression):
        expression = Call("to_integer", (expression,))
    whole = column is not None and column.keys is None and kind == "integer"
    if whole or _is_made(expression):
        values = known_values(expression, card) or ()
        if len(values) > 1:
            return Call("clamp", (expression, Constant(values[0]), Constant(values[-1])))
    return expression


def _is_made(expression: Expression) -> bool:
    """Whether a whole number is made by a cast, or by a // b."""
    made = isinstance(expression, Call) and expression.function == "to_integer"
    return made or _multiple_of_quotient(expression) is not None


def _multiple_of_quotient(expression: Expression) -> tuple[Expression, int, int] | None:
    """The x, a and b of x // a * b, and of x // a with b = 1."""
    quotient, times = expression, 1
    match expression:
        case Call("*", (part, Constant(int(factor)))) | Call("*", (Constant(int(factor)), part)):
            quotient, times = part, factor
    match whole_quotient(quotient):
        case (value, Constant(int(width))) if width > 0 and times > 0:
            return value, width, times
    return None


def _quotients(
    value: Expression, width: int, times: int, card: DataCard
) -> tuple[Value, ...] | None:
    """The values of x // width * times, where x has bounds and they are not too many."""
    ends = quotient_bounds(reach_of(value, card), (Fraction(width), Fraction(width)))
    if ends is None or ends[1] - ends[0] >= _MOST_MULTIPLES:
        return None
    return tuple(times * number for number in range(int(ends[0]), int(ends[1]) + 1))


def is_whole(expression: Expression) -> bool:
    """Whether a number is whole by the way it is made, as FLOOR(x / 250) * 250 is."""
    match expression:
        case Call("floor" | "ceil" | "to_integer", _) | Call("round", (_,)):
            return True
        case Call("+" | "-" | "*" | "negate", arguments):
            return all(map(is_whole, arguments))
        case Constant(value):
            return type(value) is int
    return False


def _multiples(expression: Expression, card: DataCard) -> tuple[Value, ...] | None:
    """The values of FLOOR(x / 250) * 250, where x has bounds and they are not too many."""
    match expression:
        case Call("*", (Call("floor"), Constant(int(width)))):
            pass
        case Call("*", (Constant(int(width)), Call("floor"))):
            pass
        case Call("floor"):
            width = 1
        case _:
            return None
    reach = reach_of(expression, card)
    if reach is None or width < 1 or (reach[1] - reach[0]) / width >= _MOST_MULTIPLES:
        return None
    return tuple(range(int(reach[0]), int(reach[1]) + 1, width))


def _whole_numbers(low: Fraction, high: Fraction) -> tuple[Value, ...] | None:
    """All whole numbers between the bounds, if they are few."""
    first, last = ceil(low), floor(high)
    return tuple(range(first, last + 1)) if 0 <= last - first < _FEW_NUMBERS else None
