"""Columns that are formulas over released numbers: that they are no more than that, and right.

Law      a formula is made of constants, of aggregates of the same query and of the functions of
         `_FUNCTIONS`; `total` is the sum of one of them over all rows of the answer
Theorem  its value is computed here again from the numbers in the answer, in doubles, an operation
         at a time: so it is post-processing, and nothing that was not paid for can hide in it
Differs  the interval is not derived again, only that it holds the value
Checked  tests/release/test_derived.py
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from .numbers import Json, number, require

_MANY = 10**6
_MOST_PLACES = 400


def _rounded(value: float, places: float = 0.0) -> float:
    return float(round(value, int(min(max(places, -_MOST_PLACES), _MOST_PLACES))))


def _sum(*terms: float) -> float:
    found = terms[0]
    for term in terms[1:]:
        found = found + term
    return found


def _product(*factors: float) -> float:
    found = factors[0]
    for factor in factors[1:]:
        found = found * factor
    return found


# function: the least and the greatest number of its arguments, and what it gives
_PLAIN: Mapping[str, tuple[int, int, Callable[..., Any]]] = MappingProxyType({
    "+": (2, _MANY, _sum),
    "*": (2, _MANY, _product),
    "-": (2, 2, lambda a, b: a - b),
    "/": (2, 2, lambda a, b: a / b),
    "negate": (1, 1, lambda a: -a),
    "abs": (1, 1, abs),
    "floor": (1, 1, math.floor),
    "ceil": (1, 1, math.ceil),
    "sqrt": (1, 1, math.sqrt),
    "round": (1, 2, _rounded),
    "clamp": (3, 3, lambda x, low, high: min(max(x, low), high)),
    "to_number": (1, 1, float),
    "to_integer": (1, 1, _rounded),
    "not": (1, 1, lambda a: not a),
    "=": (2, 2, lambda a, b: a == b),
    "<>": (2, 2, lambda a, b: a != b),
    "<": (2, 2, lambda a, b: a < b),
    "<=": (2, 2, lambda a, b: a <= b),
    ">": (2, 2, lambda a, b: a > b),
    ">=": (2, 2, lambda a, b: a >= b),
})  # fmt: skip
# those that say something of missing values too
_OTHERS: Mapping[str, tuple[int, int]] = MappingProxyType(
    {
        **dict.fromkeys(("and", "or", "case", "least", "greatest"), (2, _MANY)),
        **dict.fromkeys(("is_missing", "total"), (1, 1)),
        "coalesce": (1, _MANY),
    }
)


def check_formula(expression: Any, released: Collection[str]) -> int:
    """That it is made of these columns and of known functions; how many columns it names."""
    if isinstance(expression, list):
        require(bool(expression) and isinstance(expression[0], str), "a formula is malformed")
        function, *arguments = expression
        known = _PLAIN[function][:2] if function in _PLAIN else _OTHERS.get(function)
        require(known is not None, "a formula uses a function that is not known for it")
        assert known is not None
        require(known[0] <= len(arguments) <= known[1], "a formula has the wrong arguments")
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
    if not isinstance(expression, list):
        return False
    return expression[0] == "total" or any(map(has_total, expression[1:]))


def released_values(question: Any, rows: Sequence[Json]) -> list[dict[str, Any]]:
    """The numbers of each row by name, shown or not: released ones, and formulas over them."""
    numbers = [_released(question, row) for row in rows]
    names = [part.name for part in question.aggregates if part.function != "histogram"]
    totals = {name: _total([row[name] for row in numbers]) for name in names}
    for row in numbers:
        values = {name: _value(formula, row, totals) for name, formula in question.derived}
        row |= {name: x if isinstance(x, float) else None for name, x in values.items()}
    return numbers


def check_values(question: Any, rows: list[Json]) -> None:
    """That every derived cell holds the formula over the other cells of its row."""
    numbers = released_values(question, rows)
    for name, _ in question.derived:
        if name not in question.selected:
            continue  # only sorted by
        place = _place(question, name)
        for row, values in zip(rows, numbers, strict=True):
            cell, expected = row["cells"][place], values[name]
            require(_same(cell["value"], expected), "a derived number does not follow from others")
            require(cell["standard_error"] is None, "a derived number has a standard error")
            low, high = cell["low"], cell["high"]
            require((low is None) == (high is None), "an interval has one end")
            if low is not None:
                inside = low <= high and (expected is None or low <= expected <= high)
                require(inside, "an interval does not hold its number")


def _same(one: Any, other: float | None) -> bool:
    return one is None if other is None else type(one) is float and one == other


def _place(question: Any, wanted: str) -> int:
    """At which cell of a row the column stands; a histogram has one for each bin."""
    widths = {part.name: max(len(part.edges) - 1, 1) for part in question.aggregates}
    before = question.selected[: question.selected.index(wanted)]
    return sum(widths.get(name, 1) for name in before)


def _released(question: Any, row: Json) -> dict[str, Any]:
    """The released numbers of a row by the names of the aggregates, shown or not."""
    single = [part.name for part in question.aggregates if part.function != "histogram"]
    hidden = [name for name in single if name not in question.selected]
    parts = row.get("parts", [])
    require(len(parts) == len(hidden), "a row has another number of parts")
    found = {name: cell["value"] for name, cell in zip(hidden, parts, strict=True)}
    for name in single:
        if name not in hidden:
            found[name] = row["cells"][_place(question, name)]["value"]
    return found


def _total(values: list[Any]) -> float | None:
    if any(value is None for value in values):
        return None
    try:
        return math.fsum(float(value) for value in values)
    except OverflowError:
        return None


def _value(formula: Any, row: Mapping[str, Any], totals: Mapping[str, Any]) -> Any:
    try:
        if isinstance(formula, list):
            if formula[0] == "total":
                return totals[formula[1]["column"]]
            found = _called(formula[0], [_value(part, row, totals) for part in formula[1:]])
            if found is None or isinstance(found, bool):
                return found
            return float(found) + 0.0 if math.isfinite(found) else None
        if "column" in formula:
            value = row[formula["column"]]
            return None if value is None else float(value)
        if formula["type"] in ("boolean", "missing"):
            return formula["value"]
        exact = number(str(formula["value"]))
        return exact.numerator / exact.denominator
    except (ArithmeticError, ValueError):
        return None


def _called(function: str, values: list[Any]) -> Any:
    present = [value for value in values if value is not None]
    match function:
        case "case":
            tests, results = values[0::2], values[1::2]
            for test, result in zip(tests, results, strict=False):
                if test is True:
                    return result
            return tests[-1] if len(values) % 2 else None
        case "and":
            return False if False in values else True if len(present) == len(values) else None
        case "or":
            return True if True in values else False if len(present) == len(values) else None
        case "is_missing":
            return not present
        case "coalesce":
            return present[0] if present else None
        case "least" | "greatest":
            return (min if function == "least" else max)(present, default=None)
    return _PLAIN[function][2](*values) if len(present) == len(values) else None
