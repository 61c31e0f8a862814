"""Refuses a declared rate that the noise has not got, wherever that shows.

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

Values and both derivatives are intervals of fractions, so whatever is refused is false.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

from .floats import ONE, ZERO, Interval, exp, inverse, ln, minus, size, sqrt, times
from .numbers import Rejected, number, require
from .shape import reached

_BITS = 256
_FINE = 32  # every multiple of 1/32
_SMALL = (6, 7, 8, 10, 12, 16, 20, 24, 32, 40, 48, 56, 64, 96, 128, 192, 256)
_NEAR = Fraction(1, 10**30)
_FALSE = "the noise has no such rate: its density changes faster"
_BLIND = (
    "the rate of the noise cannot be judged: its derivatives cannot be enclosed at some uniform"
)
_FAR = Fraction(1, 1 << 20)
_NARROW = Fraction(1, 1 << 20)
_MOST_EXPONENT = 10**5
_NO_DENSITY = "the noise has no density: it is constant somewhere"


@dataclass(frozen=True, slots=True)
class _Jet:
    """A step at one uniform with its first and second derivative, each in an interval."""

    value: Interval
    first: Interval
    second: Interval


def check_rate(rows: Sequence[Sequence[Any]], top: int, rate: Fraction) -> None:
    """Reject if the noise, the step `top` of these, certainly has not got the declared rate."""
    seen: list[tuple[Fraction, Interval]] = []
    for u in _points():
        try:
            jet = _jet_at(rows, top, u)
        except _Overflow:
            require(min(u, 1 - u) < _FAR, _BLIND)
            continue
        require(jet.first != ZERO, _NO_DENSITY)
        slope, bend = size(jet.first), size(jet.second)
        require(bend[0] <= rate * slope[1] ** 2, _FALSE)
        require(slope[0] > 0 and slope[1] - slope[0] <= _NARROW * slope[0], _BLIND)
        require(bend[1] - bend[0] <= _NARROW * max(bend[1], rate * slope[0] ** 2), _BLIND)
        seen.append((u, inverse(slope)))
    for (u, one), (w, two) in pairwise(seen):
        apart = max(one[0] - two[1], two[0] - one[1])
        require(apart <= rate * (w - u), _FALSE)


def _points() -> Iterator[Fraction]:
    """From 0 to 1, dense towards both."""
    small = [Fraction(1, 1 << k) for k in reversed(_SMALL)]
    yield from small
    yield from (Fraction(k, _FINE) for k in range(1, _FINE))
    yield from (1 - t for t in reversed(small))


def _jet_at(rows: Sequence[Sequence[Any]], top: int, u: Fraction) -> _Jet:
    """The noise at a uniform."""
    known: dict[int, _Jet] = {}
    try:
        for index in reached(rows, top):
            known[index] = _short(_step(rows[index], known, u))
    except _Constant:
        raise Rejected(_NO_DENSITY) from None
    except Rejected:
        raise Rejected(_BLIND) from None
    return known[top]


class _Constant(Exception):
    """A step that rounds or clamps: it does not move with its argument."""


class _Overflow(Exception):
    """An exponential beyond all numbers."""


def _step(row: Sequence[Any], known: dict[int, _Jet], u: Fraction) -> _Jet:
    match list(row):
        case ["CONST", value]:
            return _Jet((number(value),) * 2, ZERO, ZERO)
        case ["VAR", "u"]:
            return _Jet((u, u), ONE, ZERO)
        case ["CLAMP", argument, low, high]:
            return _clamped(known[argument], low, high)
        case ["ROUND", *_]:
            raise _Constant
        case [str(rule), argument]:
            return _unary(rule, known[argument])
        case [str(rule), left, right]:
            return _dyadic(rule, known[left], known[right])
    raise Rejected("a step is not of the kind that can be followed")


def _clamped(x: _Jet, low: Any, high: Any) -> _Jet:
    """The argument where the clamp leaves it alone; a constant where it does not."""
    if low is not None and x.value[1] < number(low):
        raise _Constant
    if high is not None and x.value[0] > number(high):
        raise _Constant
    inside = (low is None or x.value[0] > number(low)) and (
        high is None or x.value[1] < number(high)
    )
    require(inside, "a clamp that may or may not act")
    return x


def _unary(rule: str, x: _Jet) -> _Jet:
    if rule == "NEG":
        return _Jet(minus(x.value), minus(x.first), minus(x.second))
    if rule == "LN":
        slope = times(x.first, inverse(x.value))
        bend = _plus(times(x.second, inverse(x.value)), minus(_square(slope)))
        return _Jet(_ln(x.value), slope, bend)
    if rule == "EXP":
        if x.value[1] > _MOST_EXPONENT:
            raise _Overflow
        value = exp(x.value)
        return _Jet(value, times(value, x.first), times(value, _plus(_square(x.first), x.second)))
    require(rule == "SQRT", "a step is not of the kind that can be followed")
    root = sqrt(x.value)
    half = inverse(times((Fraction(2),) * 2, root))
    slope = times(x.first, half)
    bend = _plus(times(x.second, half), minus(times(_square(slope), inverse(root))))
    return _Jet(root, slope, bend)


def _dyadic(rule: str, x: _Jet, y: _Jet) -> _Jet:
    if rule == "ADD":
        return _Jet(*(_plus(a, b) for a, b in _parts(x, y)))
    if rule == "SUB":
        return _Jet(*(_plus(a, minus(b)) for a, b in _parts(x, y)))
    if rule == "DIV":
        return _product(x, _reciprocal(y))
    require(rule == "MUL", "a step is not of the kind that can be followed")
    return _product(x, y)


def _ln(x: Interval) -> Interval:
    """All ln x; next to 1 by t - t**2 <= ln(1 + t) <= t, |t| <= 1/2: decimals are blind there."""
    low, high = x[0] - 1, x[1] - 1
    near = max(abs(low), abs(high)) < _NEAR
    return (low - low * low, high) if near else ln(x)


def _parts(x: _Jet, y: _Jet) -> tuple[tuple[Interval, Interval], ...]:
    return (x.value, y.value), (x.first, y.first), (x.second, y.second)


def _product(x: _Jet, y: _Jet) -> _Jet:
    mixed = times((Fraction(2),) * 2, times(x.first, y.first))
    return _Jet(
        times(x.value, y.value),
        _plus(times(x.first, y.value), times(x.value, y.first)),
        _plus(_plus(times(x.second, y.value), mixed), times(x.value, y.second)),
    )


def _reciprocal(x: _Jet) -> _Jet:
    over = inverse(x.value)
    slope = minus(times(x.first, _square(over)))
    twice = times((Fraction(2),) * 2, times(_square(x.first), times(over, _square(over))))
    return _Jet(over, slope, _plus(twice, minus(times(x.second, _square(over)))))


def _plus(x: Interval, y: Interval) -> Interval:
    return x[0] + y[0], x[1] + y[1]


def _square(x: Interval) -> Interval:
    low, high = size(x)
    return low * low, high * high


def _short(jet: _Jet) -> _Jet:
    """The same, a little wider, in fractions of few digits."""
    return _Jet(_outward(jet.value), _outward(jet.first), _outward(jet.second))


def _outward(x: Interval) -> Interval:
    return _down(x[0]), -_down(-x[1])


def _down(x: Fraction) -> Fraction:
    """A number not above x, relatively 2**-255 from it or nearer; short numbers as they are."""
    if x == 0 or max(x.numerator.bit_length(), x.denominator.bit_length()) <= 2 * _BITS:
        return x
    shift = _BITS - x.numerator.bit_length() + x.denominator.bit_length()
    if shift >= 0:
        return Fraction((x.numerator << shift) // x.denominator, 1 << shift)
    return Fraction(x.numerator // (x.denominator << -shift) << -shift)
