"""What a table of steps means on an interval of the uniform: value + k ln(alpha + beta u)?

A second look at traced code, by fractions alone. Real meaning: every step is worked out exactly as
a sum `value * v + constant + slope * u + k ln(alpha + beta u)`; what leaves this family is
rejected, and so is a step whose sign changes inside the interval. Computed meaning: the direction
in which the step's float moves when u grows. A correctly rounded operation is monotone in each
operand, so directions follow the steps; the library's logarithm is believed to be monotone too.
What holds inside the interval must hold at its ends, which are drawn as well: code that singles
out one uniform there (`u == 0`) is rejected.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from .numbers import Rejected, number, require

Rows: TypeAlias = Sequence[Sequence[Any]]
Interval: TypeAlias = tuple[Fraction, Fraction]
ZERO = Fraction(0)


class SignChange(Rejected):
    """A step changes its sign, or a condition its answer, inside the interval: at `point`."""

    def __init__(self, point: Fraction) -> None:
        super().__init__("a step changes its sign or its case inside an interval")
        self.point = point


@dataclass(frozen=True, slots=True)
class Shape:
    """value * v + constant + slope * u + k ln(alpha + beta u), log = (k, alpha, beta) or None.

    `direction` is that of the computed number as u grows: 1, -1, 0 for no change, None unknown.
    """

    value: Fraction = ZERO
    constant: Fraction = ZERO
    slope: Fraction = ZERO
    log: tuple[Fraction, Fraction, Fraction] | None = None
    direction: int | None = 0

    @property
    def is_constant(self) -> bool:
        """Whether it is a known number, in floats too."""
        return not self.value and not self.slope and self.log is None and self.direction == 0


def shape(rows: Rows, interval: Interval, region: Interval) -> Shape:
    """The meaning of the last step for u inside the open interval and values in the region."""
    whole = _followed(rows, interval, region)[len(rows) - 1]
    for end in interval:
        beside = [_taken(rows, end, way) for way in (-1, 1) if 0 < end < 1 or way == 1 - 2 * end]
        require(_taken(rows, end, 0) in beside, "the code singles out one uniform")
    return whole


def reached(rows: Rows, top: int) -> list[int]:
    """The steps that one uses, itself included, in order and each once: tables may share them."""
    used = {top}
    for index in range(top, -1, -1):
        if index in used:
            used.update(part for part in rows[index][1:] if type(part) is int)
    return sorted(used)


def _taken(rows: Rows, point: Fraction, way: int) -> set[int]:
    """The steps used for u at a point (way 0), just below it (-1) or just above it (1)."""
    found = {len(rows) - 1}
    for index in range(len(rows) - 1, -1, -1):
        if index not in found:
            continue
        match list(rows[index]):
            case ["CASES", yes, no, "u", relation, bound]:
                at = number(bound)
                side = (point > at) - (point < at) or way  # the sign of u - at
                holds = {"<": side < 0, "<=": side <= 0, "==": side == 0}[relation]
                found.add(yes if holds else no)
            case [_, *parts]:
                found.update(part for part in parts if type(part) is int)
    return found


def _followed(rows: Rows, interval: Interval, region: Interval) -> dict[int, Shape]:
    """The steps that the last one uses, those of untaken cases left out, with their meaning."""
    known: dict[int, Shape] = {}

    def below(index: object, top: int) -> Shape:
        require(type(index) is int and 0 <= index < top, "a step uses one that is not before it")
        assert isinstance(index, int)
        if index not in known:
            known[index] = step(index)
        return known[index]

    def step(index: int) -> Shape:
        match list(rows[index]):
            case ["CASES", yes, no, "u", str(relation), bound]:
                return below(yes if _holds(relation, number(bound), interval) else no, index)
            case ["CONST", value]:
                return Shape(constant=number(value))
            case ["VAR", "u"]:
                return Shape(slope=Fraction(1), direction=1)
            case ["VAR", "value"]:
                return Shape(value=Fraction(1))
            case ["CLAMP", argument, low, high]:
                return _clamped(below(argument, index), low, high, region)
            case ["ROUND", *_]:
                raise Rejected("a part of the sum is rounded; round the whole sum once, at the end")
            case [str(rule), argument]:
                return _unary(rule, below(argument, index), interval)
            case [str(rule), left, right]:
                return _dyadic(rule, below(left, index), below(right, index))
        raise Rejected("a step is not of the kind that can be followed")

    below(len(rows) - 1, len(rows))
    return known


def _dyadic(rule: str, left: Shape, right: Shape) -> Shape:
    if rule == "ADD":
        return _sum(left, right)
    if rule == "SUB":
        return _sum(left, _scaled(right, Fraction(-1)))
    if rule == "MUL":
        factor, other = (left, right) if left.is_constant else (right, left)
        require(factor.is_constant, "a product of two things that both vary")
        return _scaled(other, factor.constant)
    require(rule == "DIV", "a step is not of the kind that can be followed")
    require(right.is_constant and right.constant != 0, "a quotient by something that varies")
    return _scaled(left, 1 / right.constant)


def _unary(rule: str, x: Shape, interval: Interval) -> Shape:
    if rule == "NEG":
        return _scaled(x, Fraction(-1))
    if rule == "ABS":
        return _scaled(x, Fraction(_sign(x, interval)))
    if rule == "SGN":  # that its float does not change either is for `steady` to see
        return Shape(constant=Fraction(_sign(x, interval)))
    require(rule == "LN", "a step is not of the kind that can be followed")
    require(not x.value and x.log is None, "a logarithm of something else than the uniform")
    require(x.slope != 0 and _sign(x, interval) > 0, "a logarithm of a number not above 0")
    log = (Fraction(1), x.constant, x.slope)
    return Shape(log=log, direction=x.direction)


def _clamped(x: Shape, low: object, high: object, region: Interval) -> Shape:
    """The value as it is, if the clamp leaves the whole region alone."""
    require(x == Shape(value=Fraction(1)), "something else than the value is clamped")
    wide = (low is None or number(low) <= region[0]) and (high is None or number(high) >= region[1])
    require(wide, "the value is clamped to less than the region")
    return x


def _sum(left: Shape, right: Shape) -> Shape:
    if left.log is None or right.log is None:
        log = left.log or right.log
    else:
        require(left.log[1:] == right.log[1:], "two different logarithms are added")
        log = (left.log[0] + right.log[0], *left.log[1:])
    ways = {left.direction, right.direction} - {0}
    return Shape(
        left.value + right.value,
        left.constant + right.constant,
        left.slope + right.slope,
        log if log is None or log[0] else None,
        None if len(ways) > 1 else next(iter(ways), 0),
    )


def _scaled(x: Shape, factor: Fraction) -> Shape:
    if factor == 0:
        require(x.log is None, "nothing times a logarithm, which may be infinite")
        return Shape()
    log = None if x.log is None else (x.log[0] * factor, *x.log[1:])
    way = x.direction if x.direction is None or factor > 0 else -x.direction
    return Shape(x.value * factor, x.constant * factor, x.slope * factor, log, way)


def _sign(x: Shape, interval: Interval) -> int:
    """The sign on the open interval: 1 or -1."""
    require(not x.value, "a sign that depends on the value")
    if x.log is None:
        return _sign_of_line(x, interval)
    require(not x.constant and not x.slope, "a sign that cannot be seen")
    line = Shape(constant=x.log[1] - 1, slope=x.log[2])  # ln t has the sign of t - 1
    return _sign_of_line(line, interval) * (1 if x.log[0] > 0 else -1)


def _sign_of_line(line: Shape, interval: Interval) -> int:
    first, last = (line.constant + line.slope * end for end in interval)
    require(first != 0 or last != 0, "a step is 0 throughout")
    if min(first, last) >= 0:
        return 1
    if max(first, last) <= 0:
        return -1
    raise SignChange(-line.constant / line.slope)


def _holds(relation: str, bound: Fraction, interval: Interval) -> bool:
    require(relation in ("<", "<=", "=="), "a condition is unknown")
    if interval[0] < bound < interval[1]:
        raise SignChange(bound)
    return relation != "==" and interval[1] <= bound


def steady(
    rows: Rows,
    interval: Interval,
    region: Interval,
    tail: Interval,
    holds: Callable[[Fraction], bool],
) -> None:
    """Reject unless signs of floats stay the same in the tail: from the cut to the end given.

    Below each ABS and SGN the steps are worked out at the cut: if each of them is a number of the
    format, the machine computes exactly these. The sign there is not 0, and the operand is
    monotone in u and moves away from 0, so its float keeps that sign.
    """
    known = _followed(rows, interval, region)
    cut, far = tail
    for index in known:
        if rows[index][0] in ("ABS", "SGN"):
            below = rows[index][1]
            operand = known[below]
            require(operand.log is None, "a sign of a logarithm")
            require(operand.direction in (1, -1), "a sign of something that is not monotone")
            at_cut = _exact(rows, below, cut, holds)
            require(at_cut != 0, "a sign is not settled at the cut")
            growth = operand.slope * (far - cut)
            require(growth * at_cut > 0, "a step turns back to 0 beyond the cut")


def _exact(rows: Rows, top: int, u: Fraction, holds: Callable[[Fraction], bool]) -> Fraction:
    """The step at this u, if the machine computes it without any rounding."""
    known: dict[int, Fraction] = {}
    for index in reached(rows, top):
        known[index] = _exact_step(rows[index], known, u)
        require(holds(known[index]), "a sign depends on a step that is rounded")
    return known[top]


def _exact_step(row: Sequence[Any], known: Mapping[int, Fraction], u: Fraction) -> Fraction:
    values: Mapping[str, Callable[[Fraction, Fraction], Fraction]] = {
        "ADD": lambda a, b: a + b,
        "SUB": lambda a, b: a - b,
        "MUL": lambda a, b: a * b,
        "DIV": lambda a, b: a / b,
    }
    match list(row):
        case ["CONST", value]:
            return number(value)
        case ["VAR", "u"]:
            return u
        case ["NEG", argument]:
            return -known[argument]
        case ["ABS", argument]:
            return abs(known[argument])
        case [str(rule), left, right] if rule in values:
            return values[rule](known[left], known[right])
    raise Rejected("a sign depends on a step that is rounded")
