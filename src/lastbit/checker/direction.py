"""The checker's own look at the direction of code: does each step rise or fall with u?

The steps of a program, at one value and for all floats u between two, are followed one by one. For
each step two floats are found between which it stays, and whether it never falls (+1), never rises
(-1) or does not move (0). A correctly rounded operation moves with each of its operands as the
exact one does, so its extremes are at the extremes of the operands; where the operands pull it
different ways, or a factor may be 0, nothing is concluded and the program is rejected. The
library's ln and exp are believed to be monotone, and within four ulps of those of the machine that
checks. Cases of u are worked out on either side, and at the two floats where they meet. Zeros have
two signs, and the lower one is -0.0: a clamp at 0 and a meeting of cases at 0 are rejected.

Which constants are floats, whole numbers or fractions the steps do not say, and what Python makes
of whole numbers and fractions alone it does not round. So all ranges are of exact fractions. A step
of an operand that is a float for certain is one of floats. Every other arithmetic step must come
out the same, rounded or not: its results are whole multiples of a power of two, at most 2**53 of
them. If not, and if no operand changes its type with u as the outcome of a clamp or of cases may,
it is rounded for all u or for none, and its range is wide enough for both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from .intervals import ARITHMETIC, Rows, size
from .numbers import Rejected, number, require


@dataclass(frozen=True, slots=True)
class Range:
    """From `low` to `high`, the direction, and what is known of the type.

    `machine`: a float for certain. `steady`: of one type for all u. `unit`: a power of two of which
    all values are whole multiples, at most 2**53 of it.
    """

    low: Fraction
    high: Fraction
    way: int
    machine: bool = False
    steady: bool = True
    unit: Fraction | None = None


_MOST_STEPS = 2000
_MOST_WORK = 200_000  # steps followed: cases in cases could take for ever
_LARGEST = 2**53
_FINEST = Fraction(1, 2**1000)
_TYPES = "a step may be rounded or not, by types that the steps do not tell"
_ZERO = "a factor or divisor may be 0, so no direction follows"
_SPLIT = "parts of a step go different ways"


def check_monotone(rows: Rows, value: float, low: float, high: float) -> None:
    """Reject unless the last step never falls, or never rises, as u goes from low to high."""
    require(isinstance(rows, list) and 0 < len(rows) <= _MOST_STEPS, "the steps are missing")
    require(low <= high, "a stretch of uniforms is empty")
    _Stretch(rows, value, low, high, [0]).at(len(rows) - 1)


def reaches(rows: Rows, value: float, u: float) -> tuple[float, float]:
    """Two floats between which the last step lies at this uniform."""
    found = _Stretch(rows, value, u, u, [0]).at(len(rows) - 1)
    low, high = float(found.low), float(found.high)
    if low > found.low:
        low = math.nextafter(low, -math.inf)
    if high < found.high:
        high = math.nextafter(high, math.inf)
    return low, high


@dataclass(frozen=True, slots=True)
class _Stretch:
    rows: Rows
    value: float
    low: float
    high: float
    work: list[int]

    def at(self, top: int) -> Range:
        known: dict[int, Range] = {}
        for index in sorted(self._needed(top)):
            self.work[0] += 1
            require(self.work[0] <= _MOST_WORK, "its cases are too many to be followed")
            try:
                known[index] = self._one(index, known)
            except (OverflowError, ZeroDivisionError):
                raise Rejected("a step may overflow") from None
        return known[top]

    def _needed(self, top: int) -> set[int]:
        """The steps that a step uses; below cases of u they are followed apart."""
        found = {top}
        for index in range(top, -1, -1):
            if index in found:
                row = list(self.rows[index])
                count = {"CONST": 0, "VAR": 0, "ADD": 2, "SUB": 2, "MUL": 2, "DIV": 2, "CASES": 0}
                below = row[1 : 1 + count.get(row[0], 1)]
                if row[0] == "CASES" and row[3] == "value":
                    below = [self._chosen(row)]
                for part in below:
                    known = type(part) is int and 0 <= part < index
                    require(known, "a step uses one not before it")
                    found.add(part)
        return found

    def _chosen(self, row: list[Any]) -> Any:
        return row[1] if _holds(row[4], Fraction(self.value), number(row[5])) else row[2]

    def _one(self, index: int, known: Mapping[int, Range]) -> Range:
        match list(self.rows[index]):
            case ["CONST", text]:
                return _given(number(text))
            case ["VAR", "u"]:
                return _machine(self.low, self.high, 1)
            case ["VAR", "value"]:
                return _machine(self.value, self.value, 0)
            case ["CASES", _, _, "value", _, _] as row:
                return known[self._chosen(row)]
            case ["CASES", yes, no, "u", relation, bound]:
                return self._cases(index, (yes, no), relation, number(bound))
            case ["CLAMP", argument, low, high]:
                return _clamp(known[argument], low, high)
            case ["ROUND", argument, step]:
                return _rounded(known[argument], number(step))
            case [str(rule), argument]:
                return _unary(rule, known[argument])
            case [str(rule), left, right] if rule in ARITHMETIC:
                return _combined(rule, known[left], known[right])
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
        ways = {one.way, two.way}
        if before.high < after.low:
            ways.add(1)
        elif before.low > after.high:
            ways.add(-1)
        else:
            same = {before.low, before.high, after.low, after.high}
            require(len(same) == 1 and 0 not in same, "where cases meet their order is not seen")
        machine = one.machine and two.machine
        return _counted(
            Range(min(one.low, two.low), max(one.high, two.high), _joined(ways), machine, machine),
            one.unit,
            two.unit,
        )

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
    require(x.low > 0 or x.high < 0, _ZERO)
    return 1 if x.low > 0 else -1


def _machine(low: float, high: float, way: int) -> Range:
    require(math.isfinite(low) and math.isfinite(high), "a step may overflow")
    return Range(Fraction(low), Fraction(high), way, machine=True)


def _nearest(x: Fraction) -> Fraction:
    return Fraction(float(x))


def _unit_of(x: Fraction) -> Fraction | None:
    """The greatest power of two that divides a number, if a float is that number."""
    if x == 0:
        return Fraction(1)
    if _nearest(x) != x:
        return None
    unit = Fraction(1, x.denominator)
    while (x / (2 * unit)).denominator == 1:
        unit *= 2
    return unit


def _counted(x: Range, *units: Fraction | None) -> Range:
    """With the least of these units, where none is missing and it is not too small."""
    known = [unit for unit in units if unit is not None]
    unit = min(known) if len(known) == len(units) else None
    if unit is not None and (size((x.low, x.high))[1] > _LARGEST * unit or unit < _FINEST):
        unit = None
    return replace(x, unit=unit)


def _given(constant: Fraction) -> Range:
    low, high = sorted((_nearest(constant), constant))
    return Range(low, high, 0, unit=_unit_of(constant))


def _combined(rule: str, a: Range, b: Range) -> Range:
    run = ARITHMETIC[rule]
    if rule == "ADD":
        way = _joined({a.way, b.way})
    elif rule == "SUB":
        way = _joined({a.way, -b.way})
    elif rule == "MUL":
        way = _joined({a.way and a.way * _sign(b), b.way and b.way * _sign(a)})
    else:
        way = _joined({a.way * _sign(b), b.way and -b.way * _sign(a)})
    ends = [run(float(x), float(y)) for x in (a.low, a.high) for y in (b.low, b.high)]
    rounded = _machine(min(ends), max(ends), way)
    if a.machine or b.machine:
        return rounded
    require(a.unit is not None and b.unit is not None, _TYPES)
    assert a.unit is not None and b.unit is not None
    whole = [run(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    plain = Range(min(whole), max(whole), way, steady=a.steady and b.steady)
    unit: Fraction | None = a.unit * b.unit if rule == "MUL" else min(a.unit, b.unit)
    if rule == "DIV":  # by one power of two, or the quotients have no unit
        unit = a.unit / abs(b.low) if b.low == b.high and abs(b.low) == b.unit else None
    exact = _counted(plain, unit)
    if exact.unit is not None:
        return exact
    small = max(abs(plain.low), abs(plain.high)) <= _LARGEST
    require(plain.steady and small, _TYPES)
    return Range(min(plain.low, rounded.low), max(plain.high, rounded.high), way)


def _unary(rule: str, x: Range) -> Range:
    low, high = float(x.low), float(x.high)
    match rule:
        case "NEG":
            return Range(-x.high, -x.low, -x.way, x.machine, x.steady, x.unit)
        case "LN":
            require(low > 0, "a logarithm of what may not be above 0")
            return _wider(math.log(low), math.log(high), x.way)
        case "EXP":
            require(high < 700, "an exponential may overflow")
            return _wider(math.exp(low), math.exp(high), x.way)
        case "SQRT":
            require(x.low >= 0, "a square root of what may be below 0")
            return _machine(math.sqrt(low), math.sqrt(high), x.way)
        case "ABS":  # by abs, which keeps the type, or by fabs, which makes it a float
            require(x.low >= 0 or x.high <= 0, "an absolute value of what may have either sign")
            size = x if x.low >= 0 else _unary("NEG", x)
            least, most = min(size.low, _nearest(size.low)), max(size.high, _nearest(size.high))
            return Range(least, most, size.way, x.machine, x.steady, x.unit)
        case "SGN":
            least, most = (Fraction((end > 0) - (end < 0)) for end in (x.low, x.high))
            return Range(least, most, x.way, x.machine, x.steady, Fraction(1))
    raise Rejected("a step is not of the kind that can be followed")


def _wider(low: float, high: float, way: int) -> Range:
    for _ in range(4):
        low, high = math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
    return _machine(low, high, way)


def _rounded(x: Range, step: Fraction) -> Range:
    """Python's round gives whole numbers, `round_to` and numpy floats."""
    require(step > 0, "a step is not above 0")
    low, high = (round(end / step) * step for end in (x.low, x.high))
    near = _machine(float(low), float(high), x.way)
    if step != 1:
        return near
    return _counted(Range(min(low, near.low), max(high, near.high), x.way), Fraction(1))


def _clamp(x: Range, low: Any, high: Any) -> Range:
    """At a bound the outcome is the bound itself, of its own type."""
    found = x
    for bound, of, clear in ((low, max, x.low > 0), (high, min, x.high < 0)):
        if bound is not None:
            limit = _given(number(bound))
            require(number(bound) != 0 or clear, "a clamp at 0, where zeros have two signs")
            least, most = of(found.low, limit.low), of(found.high, limit.high)
            least, most = min(least, _nearest(least)), max(most, _nearest(most))
            steady = x.steady and x.way == 0
            found = _counted(Range(least, most, x.way, steady=steady), found.unit, limit.unit)
    if found.steady and not found.machine and found.low == found.high:
        return _counted(found, _unit_of(found.low))
    return found
