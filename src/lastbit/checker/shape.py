"""What a table of steps means as noise: value + k ln(alpha + beta u), or noise of a declared rate.

A second look at traced code, by fractions alone. Real meaning: every step is worked out exactly as
a sum `value * v + constant + slope * u + k ln(alpha + beta u)`; what leaves this family is
rejected, and so is a step whose sign changes inside the interval. Computed meaning: the direction
in which the step's float moves when u grows. A correctly rounded operation is monotone in each
operand, so directions follow the steps; the library's logarithm is believed to be monotone too.
What holds inside the interval must hold at its ends, which are drawn as well: code that singles
out one uniform there (`u == 0`) is rejected.

`check_rate` refuses a declared rate that the noise has not got, wherever that shows.

Law      noise N(u) of a uniform u, strictly monotone and twice differentiable, has the density
         p(N(u)) = g(u) = 1/abs(N'(u)); with x = N(u), d ln p(x)/dx = g'(u) up to its sign
Theorem  p(x) <= exp(rate |x - y|) p(y) for all x, y iff |g(u) - g(w)| <= rate |u - w| for all u, w
         in (0, 1): both say that ln p has a slope of at most the rate, since g' = (ln p)' at N(u).
         At a point this reads |N''| <= rate N'**2. So a point, or two, where it certainly fails
         proves the declaration false; noise that is constant somewhere has no density at all
Differs  a proof of the rate it is not: 65 points are tried, towards both ends as far as 2**-256,
         and each with its neighbour. That it holds elsewhere is declared. Every point must be
         judged: where the derivatives cannot be enclosed, or not narrowly, the noise is refused.
         Only nearer to an end than 2**-20 an exponential that overflows is passed over
Checked  tests/verify/test_check_rate.py
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

from .intervals import (
    ARITHMETIC,
    ONE,
    ZERO,
    Rows,
    exp,
    inverse,
    ln,
    minus,
    plus,
    reached,
    size,
    sqrt,
    times,
)
from .numbers import Interval, Rejected, number, require

_UNKNOWN = "a step is not of the kind that can be followed"
_TURNS = "a step changes its sign or its case inside an interval"


Log: TypeAlias = tuple[Fraction, Fraction, Fraction]
"""k, alpha, beta: k ln(alpha + beta u)."""


@dataclass(frozen=True, slots=True)
class Shape:
    """value * v + constant + slope * u + k ln(alpha + beta u), log = (k, alpha, beta) or None.

    `direction` is that of the computed number as u grows: 1, -1, 0 for no change, None unknown.
    """

    value: Fraction = Fraction(0)
    constant: Fraction = Fraction(0)
    slope: Fraction = Fraction(0)
    log: Log | None = None
    direction: int | None = 0

    @property
    def is_constant(self) -> bool:
        return not self.value and not self.slope and self.log is None and self.direction == 0


def shape(rows: Rows, interval: Interval, values: Interval) -> Shape:
    """The meaning of the last step for u inside the open interval and these values."""
    whole = shapes(rows, interval, values)[len(rows) - 1]
    for end in interval:
        beside = [_taken(rows, end, way) for way in (-1, 1) if 0 < end < 1 or way == 1 - 2 * end]
        require(_taken(rows, end, 0) in beside, "the code singles out one uniform")
    return whole


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


def noise_chain(
    rows: Rows, at: int, taken: Callable[[int], int], signs: Sequence[str] = ()
) -> tuple[list[tuple[str, Fraction]], list[str], int]:
    """Numbers by which a logarithm is multiplied and divided, from the sum down; and its argument.

    Between them are the signs that were drawn. Of minus signs and factors of size 1 nothing is
    kept: they round nothing. `taken` leads through cases.
    """
    chain: list[tuple[str, Fraction]] = []
    found: list[str] = []
    at = taken(at)
    while rows[at][0] != "LN":
        rule, *below = rows[at]
        require(rule in ("NEG", "MUL", "DIV"), "MUL: noise is no chain of products and quotients")
        if rule != "NEG":
            known = [_factor(rows[k], signs) for k in below]
            if rule == "MUL" and known[1] is None:
                known, below = known[::-1], below[::-1]
            factor = known[1]
            fine = known[0] is None and factor is not None and factor != 0
            require(fine and (rule == "MUL" or factor not in signs), "MUL: noise is no such chain")
            if isinstance(factor, str):
                found.append(factor)
            elif factor is not None and (rule == "DIV" or abs(factor) != 1):
                chain.append((rule, abs(factor)))
        at = taken(below[0])
    return chain, found, rows[at][1]


def _factor(row: Sequence[Any], signs: Sequence[str]) -> Fraction | str | None:
    """A number, or the name of a sign."""
    if row[0] == "CONST":
        return number(row[1])
    return str(row[1]) if row[0] == "VAR" and row[1] in signs else None


def shapes(rows: Rows, interval: Interval, values: Interval) -> dict[int, Shape]:
    """The steps that the last one uses, those of untaken cases left out, with their meaning."""
    known: dict[int, Shape] = {}

    def below(index: object, top: int) -> Shape:
        require(type(index) is int and 0 <= index < top, "a step uses one that is not before it")
        assert isinstance(index, int)
        if index not in known:
            known[index] = made = step(index)
            numbers = (made.value, made.constant, made.slope, *(made.log or ()))
            lengths = [x.numerator.bit_length() + x.denominator.bit_length() for x in numbers]
            require(max(lengths) <= _LONG, "a product is too long")  # squares of squares
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
                x = below(argument, index)
                require(x == Shape(value=Fraction(1)), "something else than the value is clamped")
                wide = low is None or number(low) <= values[0]
                wide = wide and (high is None or number(high) >= values[1])
                require(wide, "a value of the claim is clamped")
                return x
            case ["ROUND", *_]:
                raise Rejected("a part of the sum is rounded; round the whole sum once, at the end")
            case [str(rule), argument]:
                return _unary(rule, below(argument, index), interval)
            case [str(rule), left, right]:
                return _dyadic(rule, below(left, index), below(right, index))
        raise Rejected(_UNKNOWN)

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
    require(rule == "DIV", _UNKNOWN)
    require(right.is_constant and right.constant != 0, "a quotient by something that varies")
    return _scaled(left, 1 / right.constant)


def _unary(rule: str, x: Shape, interval: Interval) -> Shape:
    if rule == "NEG":
        return _scaled(x, Fraction(-1))
    if rule == "ABS":
        return _scaled(x, Fraction(_sign(x, interval)))
    if rule == "SGN":  # that its float does not change either is for `steady` to see
        return Shape(constant=Fraction(_sign(x, interval)))
    require(rule == "LN", _UNKNOWN)
    require(not x.value and x.log is None, "a logarithm of something else than the uniform")
    require(x.slope != 0 and _sign(x, interval) > 0, "a logarithm of a number not above 0")
    return Shape(log=(Fraction(1), x.constant, x.slope), direction=x.direction)


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
    constant, slope, sign = x.constant, x.slope, 1
    if x.log is not None:  # k ln t has the sign of k (t - 1)
        require(not x.constant and not x.slope, "a sign that cannot be seen")
        constant, slope, sign = x.log[1] - 1, x.log[2], 1 if x.log[0] > 0 else -1
    first, last = (constant + slope * end for end in interval)
    require(first != 0 or last != 0, "a step is 0 throughout")
    if min(first, last) < 0 < max(first, last):
        raise Rejected(_TURNS)
    return sign if first + last > 0 else -sign


def _holds(relation: str, bound: Fraction, interval: Interval) -> bool:
    require(relation in ("<", "<=", "=="), "a condition is unknown")
    if interval[0] < bound < interval[1]:
        raise Rejected(_TURNS)
    return relation != "==" and interval[1] <= bound


def steady(
    rows: Rows,
    interval: Interval,
    values: Interval,
    tail: Interval,
    holds: Callable[[Fraction], bool],
) -> None:
    """Reject unless signs of floats stay the same in the tail: from the cut to the end given.

    Below each ABS and SGN the steps are worked out at the cut: if each of them is a number of the
    format, the machine computes exactly these. The sign there is not 0, and the operand is
    monotone in u and moves away from 0, so its float keeps that sign.
    """
    known = shapes(rows, interval, values)
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
        match list(rows[index]):
            case ["CONST", value]:
                known[index] = number(value)
            case ["VAR", "u"]:
                known[index] = u
            case ["NEG", argument]:
                known[index] = -known[argument]
            case ["ABS", argument]:
                known[index] = abs(known[argument])
            case [str(rule), left, right] if rule in ARITHMETIC:
                known[index] = ARITHMETIC[rule](known[left], known[right])
            case _:
                raise Rejected("a sign depends on a step that is rounded")
        require(holds(known[index]), "a sign depends on a step that is rounded")
    return known[top]


_BITS = 256
_LONG = 1 << 19
_SMALL = (256, 192, 128, 96, 64, 56, 48, 40, 32, 24, 20, 16, 12, 10, 8, 7, 6)
_ENDS = tuple(Fraction(1, 1 << k) for k in _SMALL)
_POINTS = (*_ENDS, *(Fraction(k, 32) for k in range(1, 32)), *(1 - t for t in reversed(_ENDS)))
_NEAR = Fraction(1, 10**30)
_FAR = _NARROW = Fraction(1, 1 << 20)
_TWO: Interval = (Fraction(2), Fraction(2))
_FALSE = "the noise has no such rate: its density changes faster"
_NO_DENSITY = "the noise has no density: it is constant somewhere"
_BLIND = (
    "the rate of the noise cannot be judged: its derivatives cannot be enclosed at some uniform"
)


class _Jet(NamedTuple):
    """A step at one uniform with its first and second derivative, each in an interval."""

    value: Interval
    first: Interval
    second: Interval


class _Constant(Exception):
    """A step that rounds or clamps: it does not move with its argument."""


class _Overflow(Exception):
    """An exponential beyond all numbers."""


def check_rate(rows: Rows, top: int, rate: Fraction) -> None:
    """Reject if the noise, the step `top` of these, certainly has not got the declared rate."""
    seen: list[tuple[Fraction, Interval]] = []
    for u in _POINTS:
        known: dict[int, _Jet] = {}
        try:
            for index in reached(rows, top):
                known[index] = _Jet(*map(_outward, _jet(rows[index], known, u)))
        except _Constant:
            raise Rejected(_NO_DENSITY) from None
        except Rejected:
            raise Rejected(_BLIND) from None
        except _Overflow:
            require(min(u, 1 - u) < _FAR, _BLIND)
            continue
        jet = known[top]
        require(jet.first != ZERO, _NO_DENSITY)
        slope, bend = size(jet.first), size(jet.second)
        require(bend[0] <= rate * slope[1] ** 2, _FALSE)
        require(slope[0] > 0 and slope[1] - slope[0] <= _NARROW * slope[0], _BLIND)
        require(bend[1] - bend[0] <= _NARROW * max(bend[1], rate * slope[0] ** 2), _BLIND)
        seen.append((u, inverse(slope)))
    for (u, one), (w, two) in pairwise(seen):
        require(max(one[0] - two[1], two[0] - one[1]) <= rate * (w - u), _FALSE)


def _jet(row: Sequence[Any], known: Mapping[int, _Jet], u: Fraction) -> _Jet:
    match list(row):
        case ["CONST", value]:
            return _Jet((number(value),) * 2, ZERO, ZERO)
        case ["VAR", "u"]:
            return _Jet((u, u), ONE, ZERO)
        case ["CLAMP", argument, low, high]:
            return _clamped(known[argument], low, high)
        case ["ROUND", *_]:
            raise _Constant
        case ["NEG", argument]:
            return _Jet(*map(minus, known[argument]))
        case [("LN" | "EXP" | "SQRT") as rule, argument]:
            return _library(rule, known[argument])
        case ["ADD", left, right]:
            return _Jet(*map(plus, known[left], known[right]))
        case ["SUB", left, right]:
            return _Jet(*map(plus, known[left], map(minus, known[right])))
        case ["MUL", left, right]:
            return _product(known[left], known[right])
        case ["DIV", left, right]:
            return _product(known[left], _reciprocal(known[right]))
    raise Rejected(_UNKNOWN)


def _clamped(x: _Jet, low: Any, high: Any) -> _Jet:
    """The argument where the clamp leaves it alone; a constant where it does not."""
    for (inner, outer), end, way in ((x.value, low, 1), (x.value[::-1], high, -1)):
        if end is not None:
            if way * outer < way * number(end):
                raise _Constant
            require(way * inner > way * number(end), "a clamp that may or may not act")
    return x


def _library(rule: str, x: _Jet) -> _Jet:
    if rule == "LN":
        slope = times(x.first, inverse(x.value))
        bend = plus(times(x.second, inverse(x.value)), minus(_square(slope)))
        return _Jet(_ln(x.value), slope, bend)
    if rule == "EXP":
        if x.value[1] > 10**5:
            raise _Overflow
        value = exp(x.value)
        return _Jet(value, times(value, x.first), times(value, plus(_square(x.first), x.second)))
    root = sqrt(x.value)
    half = inverse(times(_TWO, root))
    slope = times(x.first, half)
    bend = plus(times(x.second, half), minus(times(_square(slope), inverse(root))))
    return _Jet(root, slope, bend)


def _ln(x: Interval) -> Interval:
    """All ln x; next to 1 by t - t**2 <= ln(1 + t) <= t, |t| <= 1/2: decimals are blind there."""
    low, high = x[0] - 1, x[1] - 1
    near = max(abs(low), abs(high)) < _NEAR
    return (low - low * low, high) if near else ln(x)


def _product(x: _Jet, y: _Jet) -> _Jet:
    mixed = times(_TWO, times(x.first, y.first))
    return _Jet(
        times(x.value, y.value),
        plus(times(x.first, y.value), times(x.value, y.first)),
        plus(plus(times(x.second, y.value), mixed), times(x.value, y.second)),
    )


def _reciprocal(x: _Jet) -> _Jet:
    over = inverse(x.value)
    slope = minus(times(x.first, _square(over)))
    twice = times(_TWO, times(_square(x.first), times(over, _square(over))))
    return _Jet(over, slope, plus(twice, minus(times(x.second, _square(over)))))


def _square(x: Interval) -> Interval:
    low, high = size(x)
    return low * low, high * high


def _outward(x: Interval) -> Interval:
    """The same, a little wider, in fractions of few digits."""
    return _down(x[0]), -_down(-x[1])


def _down(x: Fraction) -> Fraction:
    """A number not above x, relatively 2**-255 from it or nearer; short numbers as they are."""
    if x == 0 or max(x.numerator.bit_length(), x.denominator.bit_length()) <= 2 * _BITS:
        return x
    shift = _BITS - x.numerator.bit_length() + x.denominator.bit_length()
    if shift >= 0:
        return Fraction((x.numerator << shift) // x.denominator, 1 << shift)
    return Fraction(x.numerator // (x.denominator << -shift) << -shift)
