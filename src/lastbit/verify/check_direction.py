"""The checker's own look at the direction of code: does each step rise or fall with u?

The steps of a program, at one value and for all floats u between two, are followed one by one. For
each step two floats are found between which it stays, and whether it never falls (+1), never rises
(-1) or does not move (0). A correctly rounded operation moves with each of its operands as the
exact one does, so its extremes are at the extremes of the operands; where the operands pull it
different ways, or a factor may be 0, nothing is concluded and the program is rejected. The
library's ln and exp are believed to be monotone, and within four ulps of those of the machine that
checks. Cases of u are worked out on either side, and at the two floats where they meet. Zeros have
two signs, and the lower one is -0.0: a clamp at 0 and a meeting of cases at 0 are rejected.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any, TypeAlias

from lastbit.verify.arithmetic import Rejected, number, require

__all__ = ["check_monotone", "reaches"]

Rows: TypeAlias = Sequence[Sequence[Any]]
Range: TypeAlias = tuple[float, float, int]
_MOST_STEPS = 2000
_MOST_WORK = 200_000  # steps followed: cases in cases could take for ever
_ZERO = "a factor or divisor may be 0, so no direction follows"
_SPLIT = "parts of a step go different ways"


def check_monotone(rows: Rows, value: float, low: float, high: float) -> None:
    """Reject unless the last step never falls, or never rises, as u goes from low to high."""
    require(isinstance(rows, list) and 0 < len(rows) <= _MOST_STEPS, "the steps are missing")
    require(low <= high, "a stretch of uniforms is empty")
    _Stretch(rows, value, low, high, [0]).at(len(rows) - 1)


def reaches(rows: Rows, value: float, u: float) -> tuple[float, float]:
    """Two floats between which the last step lies at this uniform."""
    low, high, _ = _Stretch(rows, value, u, u, [0]).at(len(rows) - 1)
    return low, high


@dataclass(frozen=True, slots=True)
class _Stretch:
    rows: Rows
    value: float
    low: float
    high: float
    work: list[int]

    def at(self, top: int) -> Range:
        """The range and the direction of a step."""
        known: dict[int, Range] = {}
        for index in sorted(self._needed(top)):
            self.work[0] += 1
            require(self.work[0] <= _MOST_WORK, "its cases are too many to be followed")
            known[index] = self._one(index, known)
            low, high, _ = known[index]
            require(math.isfinite(low) and math.isfinite(high), "a step may overflow")
        return known[top]

    def _needed(self, top: int) -> set[int]:
        """The steps that a step uses; below cases of u they are followed apart."""
        found = {top}
        for index in range(top, -1, -1):
            if index not in found:
                continue
            for part in self._below(index):
                require(type(part) is int and 0 <= part < index, "a step uses one not before it")
                found.add(part)
        return found

    def _below(self, index: int) -> list[Any]:
        row = list(self.rows[index])
        count = {"CONST": 0, "VAR": 0, "ADD": 2, "SUB": 2, "MUL": 2, "DIV": 2, "CASES": 0}
        if row[0] == "CASES" and row[3] == "value":
            return [self._chosen(row)]
        return row[1 : 1 + count.get(row[0], 1)]

    def _chosen(self, row: list[Any]) -> Any:
        return row[1] if _holds(row[4], Fraction(self.value), number(row[5])) else row[2]

    def _one(self, index: int, known: Mapping[int, Range]) -> Range:
        match list(self.rows[index]):
            case ["CONST", text]:
                constant = float(number(text))
                return constant, constant, 0
            case ["VAR", "u"]:
                return self.low, self.high, 1
            case ["VAR", "value"]:
                return self.value, self.value, 0
            case ["CASES", _, _, "value", _, _] as row:
                return known[self._chosen(row)]
            case ["CASES", yes, no, "u", relation, bound]:
                return self._cases(index, (yes, no), relation, number(bound))
            case ["CLAMP", argument, low, high]:
                return _clamp(known[argument], low, high)
            case ["ROUND", argument, step]:
                return _rounded(known[argument], number(step))
            case [str(rule), argument] if rule in _UNARY:
                return _UNARY[rule](*known[argument])
            case [str(rule), left, right] if rule in _DYADIC:
                return _DYADIC[rule](known[left], known[right])
        raise Rejected("a step is not of the kind that can be followed")

    def _cases(self, index: int, steps: tuple[Any, Any], relation: Any, bound: Fraction) -> Range:
        for step in steps:
            require(type(step) is int and 0 <= step < index, "a step uses one not before it")
        yes, no = steps
        if relation == "==":
            inside = Fraction(self.low) <= bound <= Fraction(self.high)
            require(not inside, "the code singles out one uniform")
            return self._part(no, self.low, self.high)
        if not _holds(relation, Fraction(self.low), bound):
            return self._part(no, self.low, self.high)
        if _holds(relation, Fraction(self.high), bound):
            return self._part(yes, self.low, self.high)
        last = float(bound)
        while not _holds(relation, Fraction(last), bound):
            last = math.nextafter(last, -math.inf)
        first = math.nextafter(last, math.inf)
        one, two = self._part(yes, self.low, last), self._part(no, first, self.high)
        before, after = self._part(yes, last, last), self._part(no, first, first)
        ways = {one[2], two[2]}
        if before[1] < after[0]:
            ways.add(1)
        elif before[0] > after[1]:
            ways.add(-1)
        else:
            same = {*before[:2], *after[:2]}
            require(len(same) == 1 and 0.0 not in same, "where cases meet their order is not seen")
        return min(one[0], two[0]), max(one[1], two[1]), _joined(ways)

    def _part(self, step: int, low: float, high: float) -> Range:
        return _Stretch(self.rows, self.value, low, high, self.work).at(step)


def _holds(relation: Any, x: Fraction, bound: Fraction) -> bool:
    require(relation in ("<", "<=", "=="), "a condition is unknown")
    return x < bound or (x == bound and relation != "<") if relation != "==" else x == bound


def _joined(ways: set[int]) -> int:
    moving = ways - {0}
    require(len(moving) <= 1, _SPLIT)
    return moving.pop() if moving else 0


def _sign(x: Range) -> int:
    require(x[0] > 0 or x[1] < 0, _ZERO)
    return 1 if x[0] > 0 else -1


def _sum(a: Range, b: Range) -> Range:
    return a[0] + b[0], a[1] + b[1], _joined({a[2], b[2]})


def _negated(low: float, high: float, way: int) -> Range:
    return -high, -low, -way


def _product(a: Range, b: Range) -> Range:
    ways = {a[2] and a[2] * _sign(b), b[2] and b[2] * _sign(a)}
    ends = [x * y for x in a[:2] for y in b[:2]]
    return min(ends), max(ends), _joined(ways)


def _quotient(a: Range, b: Range) -> Range:
    ways = {a[2] * _sign(b), b[2] and -b[2] * _sign(a)}
    ends = [x / y for x in a[:2] for y in b[:2]]
    return min(ends), max(ends), _joined(ways)


def _logarithm(low: float, high: float, way: int) -> Range:
    require(low > 0, "a logarithm of what may not be above 0")
    return _wider(math.log(low), math.log(high), way)


def _exponential(low: float, high: float, way: int) -> Range:
    require(high < 700, "an exponential may overflow")
    return _wider(math.exp(low), math.exp(high), way)


def _root(low: float, high: float, way: int) -> Range:
    require(low >= 0, "a square root of what may be below 0")
    return math.sqrt(low), math.sqrt(high), way


def _absolute(low: float, high: float, way: int) -> Range:
    require(low >= 0 or high <= 0, "an absolute value of what may have either sign")
    return (abs(low), abs(high), way) if low >= 0 else (abs(high), abs(low), -way)


def _sgn(low: float, high: float, way: int) -> Range:
    return float((low > 0) - (low < 0)), float((high > 0) - (high < 0)), way


def _wider(low: float, high: float, way: int) -> Range:
    for _ in range(4):
        low, high = math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
    return low, high, way


def _rounded(x: Range, step: Fraction) -> Range:
    require(step > 0, "a step is not above 0")
    return *(float(round(Fraction(end) / step) * step) for end in x[:2]), x[2]  # type: ignore[return-value]


def _clamp(x: Range, low: Any, high: Any) -> Range:
    ends = list(x[:2])
    for bound, of, clear in ((low, max, x[0] > 0), (high, min, x[1] < 0)):
        if bound is not None:
            limit = float(number(bound))
            require(limit != 0 or clear, "a clamp at 0, where zeros have two signs")
            ends = [of(end, limit) for end in ends]
    return ends[0], ends[1], x[2]


_UNARY: Mapping[str, Callable[[float, float, int], Range]] = MappingProxyType(
    {
        "NEG": _negated,
        "LN": _logarithm,
        "EXP": _exponential,
        "SQRT": _root,
        "ABS": _absolute,
        "SGN": _sgn,
    }
)
_DYADIC: Mapping[str, Callable[[Range, Range], Range]] = MappingProxyType(
    {
        "ADD": _sum,
        "SUB": lambda a, b: _sum(a, _negated(*b)),
        "MUL": _product,
        "DIV": _quotient,
    }
)
