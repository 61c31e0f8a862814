"""Constants of another type than what they are compared with: educ = '8', married = 1, sex = TRUE.

Law      as in DuckDB: a text in quotes is read as the number or truth value that it is compared
         with; TRUE and FALSE beside whole numbers are 1 and 0. A text that is none is refused;
         DuckDB would stop
Differs  a text must write a number in digits: '8' and '8.0', not '3.6' for a whole number, which
         DuckDB rounds. Columns of texts are never read as numbers: that could fail at a row
Checked  tests/tables/test_comparing.py, against DuckDB
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType

from lastbit.tables.limits import refused
from lastbit.tables.query.expression import Call, ColumnType, Constant, Expression

_DIGITS = re.compile(r"\s*[+-]?(\d{1,40}(\.\d{0,40})?|\.\d{1,40})\s*", re.ASCII)
_TRUTHS: Mapping[str, bool] = MappingProxyType(
    {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}
)


def comparable(
    arguments: Sequence[Expression], types: Sequence[ColumnType | None]
) -> list[Expression]:
    """The arguments of one comparison, with constants read by the type of what is no text.

    >>> comparable([Constant(7), Constant("8")], ["integer", "text"])
    [Constant(value=7), Constant(value=8)]
    """
    kinds = set(types) - {None}
    read = list(arguments)
    if "text" in kinds:
        for place, part in enumerate(read):
            if isinstance(part, Constant) and isinstance(part.value, str):
                if kinds - {"text"} and kinds <= {"integer", "number", "text"}:
                    read[place] = _number(part.value, whole="number" not in kinds)
                elif kinds == {"boolean", "text"}:
                    read[place] = _truth(part.value)
    if kinds == {"boolean", "integer"}:  # of fractions DuckDB compares some, and stops at others
        return _without_truths(read, types)
    return read


def _without_truths(
    arguments: Sequence[Expression], types: Sequence[ColumnType | None]
) -> list[Expression]:
    """The same as truth values, where the numbers are 0 and 1, else as numbers."""
    others = [part for part, kind in zip(arguments, types, strict=True) if kind == "integer"]
    if all(isinstance(part, Constant) and part.value in (0, 1) for part in others):
        return [
            Constant(bool(part.value)) if part in others else part  # type: ignore[union-attr]
            for part in arguments
        ]
    return [
        _as_number(part) if kind == "boolean" else part
        for part, kind in zip(arguments, types, strict=True)
    ]


def _as_number(truth: Expression) -> Expression:
    if isinstance(truth, Constant):
        return Constant(int(truth.value))  # type: ignore[arg-type]  # True or False
    return Call("to_integer", (truth,))


def _number(text: str, *, whole: bool) -> Constant:
    if _DIGITS.fullmatch(text) is None:
        remedy = "write the number without quotes, or convert the column with CAST(... AS TEXT)"
        raise refused("a comparison", "sets a number beside a text that is none", remedy)
    value = Fraction(text.strip())
    if value.denominator == 1:
        return Constant(int(value))
    if whole:
        problem = "is of whole numbers with a text that has a fraction"
        raise refused("a comparison", problem, "write the number without quotes")
    return Constant(value)


def _truth(text: str) -> Constant:
    value = _TRUTHS.get(text.strip().lower())
    if value is None:
        problem = "is of TRUE or FALSE with a text that is neither"
        raise refused("a comparison", problem, "write TRUE or FALSE, without quotes")
    return Constant(value)
