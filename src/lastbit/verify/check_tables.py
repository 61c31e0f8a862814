"""How certificates of kind "error-bound" are written: tables of steps, boxes, numbers."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from lastbit.verify.arithmetic import number, require
from lastbit.verify.check_formats import Interval, NumberFormat

__all__ = [
    "Box",
    "INPUTS",
    "SHAPES",
    "below",
    "box_of",
    "interval_of",
    "rows_of",
    "ulps_of",
    "within",
]

INPUTS = ("VAR", "SAMPLE")
# rule: how many steps it uses, and how many other parts it is written with
SHAPES: Mapping[str, tuple[int, int]] = MappingProxyType({
    "CONST": (0, 1), "VAR": (0, 1), "ADD": (2, 0), "SUB": (2, 0), "MUL": (2, 0), "DIV": (2, 0),
    "NEG": (1, 0), "LN": (1, 0), "EXP": (1, 0), "SQRT": (1, 0), "ABS": (1, 0), "SGN": (1, 0),
    "CLAMP": (1, 2), "ROUND": (1, 1), "CASES": (2, 3),
})  # fmt: skip

Box = dict[str, Interval]


def rows_of(written: Any) -> list[list[Any]]:
    """The expression's table: every step uses only steps before it."""
    require(isinstance(written, list) and bool(written), "there is no expression")
    for index, row in enumerate(written):
        require(isinstance(row, list) and bool(row), "a row of the expression is empty")
        if row[0] == "SAMPLE":
            require(all(isinstance(part, str) for part in row[1:]) and len(row) > 2, "bad sample")
            _require_name(row[1])
            continue
        uses, others = SHAPES[row[0]]
        require(len(row) == 1 + uses + others, "a row of the expression has the wrong length")
        for place in row[1 : 1 + uses]:
            require(type(place) is int and 0 <= place < index, "a row uses one not before it")
        _check_parts(row)
    return list(written)


def _check_parts(row: list[Any]) -> None:
    """What a row is written with, whether the proof comes to it or not."""
    match row:
        case ["VAR", name]:
            _require_name(name)
        case ["CONST", value]:
            number(value)
        case ["ROUND", _, step]:
            require(number(step) > 0, "a grid has no step")
        case ["CLAMP", _, low, high]:
            ends = [number(end) for end in (low, high) if end is not None]
            require(ends == sorted(ends), "a clamp has its ends in the wrong order")
        case ["CASES", _, _, name, relation, bound]:
            _require_name(name)
            number(bound)
            require(relation in ("<", "<=", "=="), "a condition is unknown")


def _require_name(name: Any) -> None:
    require(isinstance(name, str) and name.isidentifier(), "an input has no name")


def below(row: list[Any]) -> list[int]:
    """The steps that a step uses."""
    return row[1 : 1 + SHAPES[row[0]][0]] if row[0] != "SAMPLE" else []


def within(place: Any, among: list[Any]) -> int:
    """A place in a list, from its start."""
    require(type(place) is int and 0 <= place < len(among), "a step names what is not there")
    return int(place)


def interval_of(ends: Any) -> Interval:
    """An interval as certificates write it."""
    require(isinstance(ends, list) and len(ends) == 2, "an interval has not two ends")
    low, high = number(ends[0]), number(ends[1])
    require(low <= high, "an interval is empty")
    return low, high


def box_of(written: Any) -> Box:
    """The range of every input."""
    require(isinstance(written, Mapping), "a box is no table of ranges")
    return {name: interval_of(ends) for name, ends in written.items()}


def ulps_of(written: Any, form: NumberFormat) -> dict[str, Fraction]:
    """How far ln, exp and sqrt may be off."""
    ulps = {name: number(text) for name, text in written.items()}
    require(set(ulps) == {"exp", "ln", "sqrt"}, "the library's ulps are incomplete")
    most = Fraction(2**20) if form.fixed else Fraction(2) ** (form.bits - 2)
    require(
        all(Fraction(1, 2) <= u <= most for u in ulps.values()), "the library's ulps are absurd"
    )
    return ulps
