"""Formulas over released numbers: derived columns computed again, and the rows that may be shown.

A formula of a derived column is made of constants, of aggregates of the same query and of the
functions of `_FORMULAS`; `total` is the sum of one of them over all rows of the answer. A condition
of HAVING is over all columns of the answer. One interpreter reads both; `_Arithmetic` says in which
numbers.

Theorem  a derived number is computed here again from the numbers in the answer, in doubles, an
         operation at a time: so it is post-processing, and nothing that was not paid for can hide
         in it. Logarithms, exponentials and powers are made of decimals of 60 digits, whose ln and
         exp are correctly rounded on every machine, and rounded once more to doubles
Differs  the interval is not derived again, only that it holds the value
Checked  tests/release/test_derived.py

Whether the rows of an answer are those that its question lets through, in that order:

| part of the question | rejected | said in a remark |
|---|---|---|
| declared keys, no HAVING, no LIMIT | a group is missing | |
| HAVING | a row for which it is not true | a function that is not computed here |
| ORDER BY | a row before one that must come first | |
| LIMIT, declared keys, no HAVING | fewer rows than there must be | |
| HAVING, or a LIMIT that was reached | | which groups are left out is not checked |

Law      numbers are the released ones, of the row itself; keys are values of their type. Sums,
         differences and products are those of Python's integers, fractions and doubles, quotients
         are exact. What cannot be computed is missing, and HAVING keeps a row only where it is true
Theorem  `HAVING` of functions in `_EXACT` has one value, so no honest row is rejected; of others
         nothing is concluded
Differs  numbers of groups that were left out are not in the file: that they had to be left out, and
         that LIMIT kept the first, is believed
Checked  tests/release/test_shown_rows.py
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import ROUND_HALF_EVEN, Context, Decimal, DivisionByZero, InvalidOperation
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from .numbers import Json, ratio, require

if TYPE_CHECKING:  # which checks formulas
    from .shown import ShownQuestion

_MANY = 10**6
_MOST_NAMED = 3
_MOST_PLACES = 400
_MOST_BITS = 1 << 16  # honest numbers have some hundred; forged ones must not take for ever
_FARTHEST = 750  # of which the exponential is a double
_DIGITS = Context(
    prec=60,
    rounding=ROUND_HALF_EVEN,
    Emin=-(10**6),
    Emax=10**6,
    traps=[InvalidOperation, DivisionByZero],
)

Functions: TypeAlias = Mapping[str, Callable[..., Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Arithmetic:
    """What constants and columns are, and what functions give."""

    constant: Callable[[Json], Any]
    column: Callable[[Any], Any]
    functions: Functions
    result: Callable[[Any], Any]


def evaluate(expression: Any, row: Mapping[Any, Any], arithmetic: _Arithmetic) -> Any:
    """The value over one row, whose columns are named in small letters; None where it is missing.

    Totals are in the row as ("total", name). The form of the expression was checked.
    """
    if not isinstance(expression, list):
        if "column" in expression:
            return arithmetic.column(row[expression["column"].lower()])
        return arithmetic.constant(expression)
    function, *arguments = expression
    if function == "total":
        return row["total", arguments[0]["column"].lower()]
    values = [evaluate(argument, row, arithmetic) for argument in arguments]
    if None in values and function not in _LENIENT:
        return None
    try:
        return arithmetic.result(arithmetic.functions[function](*values))
    except (ArithmeticError, AttributeError, TypeError, ValueError):
        return None


# ---------------------------------------------------------------- functions


def _constant(written: Json) -> Any:
    match written["type"], written["value"]:
        case "number", text:
            return ratio(text)
        case "date", text:
            return date.fromisoformat(text)
        case "timestamp", text:
            return datetime.fromisoformat(text)
        case _, value:
            return value


def _double(written: Json) -> Any:
    if written["type"] in ("boolean", "missing"):
        return written["value"]
    return _as_double(ratio(str(written["value"])))


def _as_double(value: Any) -> float | None:
    try:
        return None if value is None else float(value)
    except (ArithmeticError, ValueError):
        return None


def _finite(value: Any) -> Any:
    if isinstance(value, bool | None):
        return value
    return float(value) + 0.0 if math.isfinite(value) else None


def _short(value: Any) -> Any:
    """The value; a number of so many digits that no honest formula has it is rejected."""
    if isinstance(value, int | Fraction):
        bits = value.numerator.bit_length() + value.denominator.bit_length()
        require(bits <= _MOST_BITS, "a number of a formula is too long")
    return value


def _all_true(*values: Any) -> bool | None:
    return False if False in values else None if None in values else True


def _any_true(*values: Any) -> bool | None:
    return True if True in values else None if None in values else False


def _in(first: Any, *others: Any) -> bool | None:
    same = (None if other is None else first == other for other in others)
    return None if first is None else _any_true(*same)


def _case(*values: Any) -> Any:
    for test, result in zip(values[0::2], values[1::2], strict=False):
        if test is True:
            return result
    return values[-1] if len(values) % 2 else None


def _present(values: Sequence[Any]) -> list[Any]:
    return [value for value in values if value is not None]


def _round_to(value: Any, places: int = 0) -> Any:
    return round(value, min(max(places, -_MOST_PLACES), _MOST_PLACES))


def _ln(x: Any) -> Decimal:
    number = float(x)
    if not 0 < number < math.inf:
        raise ValueError
    return _DIGITS.ln(Decimal(number))


def _exp(x: Decimal) -> float:
    if x <= -_FARTHEST:
        return 0.0
    value = float(_DIGITS.exp(x)) if x < _FARTHEST else math.inf
    if value == math.inf:
        raise OverflowError
    return value


def _power(x: Any, y: Any) -> float:
    base, exponent = float(x), float(y)
    if not exponent or not base:
        if exponent < 0:
            raise ZeroDivisionError
        return 0.0 if exponent else 1.0
    if base < 0 and exponent % 1:
        raise ValueError
    size = _exp(_DIGITS.multiply(Decimal(exponent), _ln(abs(base))))
    return -size if base < 0 and exponent % 2 else size


_LENIENT: Functions = MappingProxyType({
    "and": _all_true,
    "or": _any_true,
    "in": _in,
    "case": _case,
    "is_missing": lambda value: value is None,
    "coalesce": lambda *values: next(iter(_present(values)), None),
    "least": lambda *values: min(_present(values), default=None),
    "greatest": lambda *values: max(_present(values), default=None),
})  # fmt: skip
"""Functions that say something of missing values too."""
_EXACT: Functions = MappingProxyType({
    **_LENIENT,
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge, "not": operator.not_,
    "+": lambda *terms: reduce(lambda a, b: _short(a + b), terms),
    "*": lambda *factors: reduce(lambda a, b: _short(a * b), factors),
    "-": operator.sub, "/": lambda a, b: Fraction(a) / Fraction(b), "negate": operator.neg,
    "abs": abs, "floor": math.floor, "ceil": math.ceil, "round": _round_to,
    "ln": lambda a: float(_ln(a)), "exp": lambda a: _exp(Decimal(float(a))), "power": _power,
    "clamp": lambda value, low, high: min(max(value, low), high),
    "starts_with": str.startswith, "contains": operator.contains, "length": len,
    "year": lambda day: day.year, "month": lambda day: day.month, "day": lambda day: day.day,
})  # fmt: skip
_DOUBLES: Functions = MappingProxyType({
    **_EXACT,
    "/": operator.truediv, "sqrt": math.sqrt, "to_number": float, "to_integer": round,
    "log": lambda base, a: float(_DIGITS.divide(_ln(a), _ln(base))),
    "round": lambda value, places=0.0: _round_to(value, int(places)),
})  # fmt: skip
EXACT = _Arithmetic(
    constant=_constant,
    column=lambda x: x,
    functions=_EXACT,
    result=_short,
)
DOUBLES = _Arithmetic(
    constant=_double,
    column=_as_double,
    functions=_DOUBLES,
    result=_finite,
)
# functions of derived columns: the least and the greatest number of their arguments
_FORMULAS: Mapping[str, tuple[int, int]] = MappingProxyType({
    **dict.fromkeys(("+", "*", "and", "or", "case", "least", "greatest"), (2, _MANY)),
    **dict.fromkeys(("-", "/", "=", "<>", "<", "<=", ">", ">=", "log", "power"), (2, 2)),
    **dict.fromkeys(("negate", "abs", "floor", "ceil", "sqrt", "to_number", "to_integer"), (1, 1)),
    **dict.fromkeys(("not", "is_missing", "total", "ln", "exp"), (1, 1)),
    "round": (1, 2),
    "clamp": (3, 3),
    "coalesce": (1, _MANY),
})  # fmt: skip


# ---------------------------------------------------------------- derived columns


def check_formula(expression: Any, released: Collection[str]) -> int:
    """That it is made of these columns and of known functions; how many columns it names."""
    if isinstance(expression, list):
        require(bool(expression) and isinstance(expression[0], str), "a formula is malformed")
        function, *arguments = expression
        require(function in _FORMULAS, "a formula uses a function that is not known for it")
        least, most = _FORMULAS[function]
        require(least <= len(arguments) <= most, "a formula has the wrong arguments")
        if function == "total":
            column = isinstance(arguments[0], Mapping) and set(arguments[0]) == {"column"}
            require(column, "a total is not of a column")
        return sum(check_formula(argument, released) for argument in arguments)
    require(isinstance(expression, Mapping), "a formula is malformed")
    if "column" in expression:
        require(set(expression) == {"column"}, "a formula names a column of a table")
        require(expression["column"] in released, "a formula is made of what is not released")
        return 1
    require(set(expression) == {"type", "value"}, "a formula is malformed")
    kinds = ("integer", "number", "boolean", "missing")
    require(expression["type"] in kinds, "a formula holds something that is not a number")
    return 0


def has_total(expression: Any) -> bool:
    """Whether it adds up all rows of the answer."""
    return "total" in _functions_in(expression)


def _functions_in(expression: Any) -> set[str]:
    waiting, names = [expression], set()
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            names.add(part[0])
            waiting += part[1:]
    return names


def released_values(question: ShownQuestion, rows: Sequence[Json]) -> list[dict[Any, Any]]:
    """The numbers of each row by name in small letters, shown or not: released, and formulas."""
    numbers = [_released(question, row) for row in rows]
    names = [] if not numbers else list(numbers[0])
    totals = {("total", name): _total([row[name] for row in numbers]) for name in names}
    for row in numbers:
        every = {**row, **totals}
        values = {name: evaluate(formula, every, DOUBLES) for name, formula in question.derived}
        row |= {name.lower(): x if isinstance(x, float) else None for name, x in values.items()}
    return numbers


def check_values(question: ShownQuestion, rows: list[Json]) -> None:
    """That every derived cell holds the formula over the other cells of its row."""
    numbers = released_values(question, rows)
    for name, _ in question.derived:
        if name not in question.selected:
            continue  # only sorted by
        place = _place(question, name)
        for row, values in zip(rows, numbers, strict=True):
            cell, expected = row["cells"][place], values[name.lower()]
            value = cell["value"]
            same = value is None if expected is None else type(value) is float and value == expected
            require(same, "a derived number does not follow from others")
            require(cell["standard_error"] is None, "a derived number has a standard error")
            low, high = cell["low"], cell["high"]
            require((low is None) == (high is None), "an interval has one end")
            if low is not None:
                inside = low <= high and (expected is None or low <= expected <= high)
                require(inside, "an interval does not hold its number")


def _place(question: ShownQuestion, wanted: str) -> int:
    """At which cell of a row the column stands; a histogram has one for each bin."""
    widths = {part.name: max(len(part.edges) - 1, 1) for part in question.aggregates}
    before = question.selected[: question.selected.index(wanted)]
    return sum(widths.get(name, 1) for name in before)


def _released(question: ShownQuestion, row: Json) -> dict[Any, Any]:
    """The released numbers of a row by the names of the aggregates, shown or not."""
    single = [part.name for part in question.aggregates if part.function != "histogram"]
    hidden = [name for name in single if name not in question.selected]
    parts = row.get("parts", [])
    require(len(parts) == len(hidden), "a row has another number of parts")
    cells = dict(zip(hidden, parts, strict=True))
    for name in single:
        if name not in hidden:
            cells[name] = row["cells"][_place(question, name)]
    return {name.lower(): cell["value"] for name, cell in cells.items()}


def _total(values: list[Any]) -> float | None:
    if any(value is None for value in values):
        return None
    try:
        return math.fsum(float(value) for value in values)
    except OverflowError:
        return None


# ---------------------------------------------------------------- rows that are shown


def check_shown(question: ShownQuestion, rows: Sequence[Json]) -> None:
    """Raise `Rejected` where the rows contradict the question."""
    groups, limit = question.groups, question.limit
    if groups is not None and question.having is None:
        expected = groups if limit is None else min(groups, limit)
        require(len(rows) >= expected, "a group that the question declares is missing")
    if question.having is None and not question.order:
        return
    values = list(_columns_of(question, rows))
    test = question.having
    if test is not None and not _not_computed(test):
        kept = all(evaluate(test, row, EXACT) is True for row in values)
        require(kept, "a row contradicts HAVING")
    in_order = all(_may_follow(question.order, *pair) for pair in pairwise(values))
    require(in_order, "the rows contradict ORDER BY")


def remarks_on_shown(question: ShownQuestion, rows: Sequence[Json]) -> Iterator[str]:
    """What a reader should know of rows that were not shown, or not checked."""
    others = [] if question.having is None else _not_computed(question.having)
    if others:
        more = " and others" if len(others) > _MOST_NAMED else ""
        names = ", ".join(others[:_MOST_NAMED])
        yield f"Rows may contradict HAVING: it uses {names}{more}, which is not computed here."
    reached = question.limit is not None and len(rows) == question.limit
    if question.having is None and not reached:
        return
    parts = [] if question.having is None else ["HAVING"]
    parts += ["LIMIT"] if reached else []
    if question.groups is None:
        yield (
            f"Groups that {' and '.join(parts)} left out are not in the file: that they had to be "
            "is not checked."
        )
    elif len(rows) < question.groups:
        yield (
            f"{' and '.join(parts)} left out {question.groups - len(rows)} of {question.groups} "
            "declared groups. Their numbers are not here: that they had to be is not checked."
        )


def _columns_of(question: ShownQuestion, rows: Sequence[Json]) -> Iterator[dict[Any, Any]]:
    """The columns of each row by their names in small letters, shown or not."""
    for row, numbers in zip(rows, released_values(question, rows), strict=True):
        keys = zip(question.names, map(_constant, row["keys"]), strict=True)
        yield {**{name.lower(): value for name, value in keys}, **numbers}


def _may_follow(order: Sequence[tuple[str, bool]], one: Json, other: Json) -> bool:
    """Whether a row may stand before another: missing values come last, rising or falling."""
    for name, falls in order:
        first, second = one[name.lower()], other[name.lower()]
        if first is None or second is None:
            if (first is None) != (second is None):
                return second is None
        elif first != second:
            return bool(first > second) == falls
    return True


def _not_computed(expression: Any) -> list[str]:
    """The functions of an expression that are not computed here."""
    return sorted(_functions_in(expression) - _EXACT.keys())
