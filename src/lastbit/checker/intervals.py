"""The checker's intervals, tables of steps, and the machine's numbers.

Intervals hold all values of an operation over all numbers of its operands. ln, exp and roots are a
little wider than they are; where they are rational (ln 1, exp 0), they are exact.

Believed of the machine: IEEE 754's rounding to the nearest, ties to even, which is monotone.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from types import MappingProxyType
from typing import Any, TypeAlias

from .numbers import Interval, Json, Rejected, exp_bounds, ln_bounds, number, require, sqrt_bounds

Rows: TypeAlias = Sequence[Sequence[Any]]
"""A table of steps: a rule, the places of the steps that it uses, and what else it needs."""

ONE: Interval = (Fraction(1), Fraction(1))
ZERO: Interval = (Fraction(0), Fraction(0))
ARITHMETIC: Mapping[str, Callable[[Any, Any], Any]] = MappingProxyType(
    {"ADD": operator.add, "SUB": operator.sub, "MUL": operator.mul, "DIV": operator.truediv}
)
_LEAST_EXPONENT = Fraction(-1400)


def reached(rows: Rows, top: int) -> list[int]:
    """The steps that one uses, itself included, in order and each once: tables may share them."""
    used = {top}
    for index in range(top, -1, -1):
        if index in used:
            used.update(part for part in rows[index][1:] if type(part) is int)
    return sorted(used)


# ---------------------------------------------------------------- enclosures


def interval_of(ends: Any) -> Interval:
    """An interval as certificates write it."""
    require(isinstance(ends, list) and len(ends) == 2, "an interval has not two ends")
    low, high = number(ends[0]), number(ends[1])
    require(low <= high, "an interval is empty")
    return low, high


def minus(x: Interval) -> Interval:
    """All -x."""
    return -x[1], -x[0]


def plus(x: Interval, y: Interval) -> Interval:
    """All sums of two numbers of two intervals."""
    return x[0] + y[0], x[1] + y[1]


def times(x: Interval, y: Interval) -> Interval:
    """All products of two numbers of two intervals."""
    corners = [a * b for a in x for b in y]
    return min(corners), max(corners)


def inverse(x: Interval) -> Interval:
    """All 1/x."""
    require(x[0] > 0 or x[1] < 0, "a divisor may be 0")
    return 1 / x[1], 1 / x[0]


def size(x: Interval) -> Interval:
    """All abs(x)."""
    return max(x[0], -x[1], Fraction(0)), max(-x[0], x[1])


def ln(x: Interval) -> Interval:
    """All ln x."""
    require(x[0] > 0, "a logarithm of what may not be above 0")
    low, high = (ln_bounds(end) if end != 1 else ZERO for end in x)
    return low[0], high[1]


def exp(x: Interval) -> Interval:
    """All exp x; 0 stands for what is below e**-1400."""
    require(x[1] <= 10**5, "an exponential may overflow")
    ends = [max(end, _LEAST_EXPONENT) for end in x]
    low, high = (exp_bounds(end) if end != 0 else ONE for end in ends)
    return (low[0] if x[0] >= _LEAST_EXPONENT else Fraction(0)), high[1]


def sqrt(x: Interval) -> Interval:
    """All square roots, rational ones exactly."""
    require(x[0] >= 0, "a square root of what may be below 0")
    found = []
    for end in x:
        top, bottom = isqrt(end.numerator), isqrt(end.denominator)
        exact = top * top == end.numerator and bottom * bottom == end.denominator
        found.append((Fraction(top, bottom),) * 2 if exact else sqrt_bounds(end))
    return found[0][0], found[1][1]


def each(function: Callable[[Fraction], Fraction | int], x: Interval) -> Interval:
    """An interval of the values at both ends."""
    return Fraction(function(x[0])), Fraction(function(x[1]))


def hull_distance(x: Interval, y: Interval) -> Fraction:
    """The greatest distance of a number of one interval from one of the other."""
    return max(y[1] - x[0], x[1] - y[0])


# ---------------------------------------------------------------- formats


def power(exponent: int) -> Fraction:
    """2**exponent, exactly."""
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)


def exponent_of(x: Fraction) -> int:
    """The greatest e with 2**e <= x, for x > 0."""
    e = x.numerator.bit_length() - x.denominator.bit_length()
    return e if power(e) <= x else e - 1


def is_power_of_two(x: Fraction) -> bool:
    """Whether a number is a power of two, of either sign."""
    return x != 0 and power(exponent_of(abs(x))) == abs(x)


@dataclass(frozen=True)
class NumberFormat:
    """Steps of 2**(e - bits + 1) in the binade of 2**e, not below `least`; equal ones if fixed."""

    bits: int
    least: Fraction
    largest: Fraction
    fixed: bool

    def step(self, x: Fraction) -> Fraction:
        """The distance between the numbers around x."""
        if self.fixed or abs(x) < self.least:
            return self.least
        return max(self.least, power(exponent_of(abs(x)) - self.bits + 1))

    @property
    def least_normal(self) -> Fraction:
        return self.least * power(self.bits - 1)

    def holds(self, x: Fraction) -> bool:
        return abs(x) <= self.largest and (x / self.step(x)).denominator == 1

    def nearest(self, x: Fraction) -> Fraction:
        """The rounded number; rejected where a machine would answer infinity."""
        step = self.step(x)
        near = round(x / step) * step
        require(abs(near) <= self.largest, "a step may overflow")
        return near

    def half(self, x: Interval) -> Fraction:
        """How far rounding can move a number of the interval.

        Half a step of the largest binade that the interval enters beyond its least number, which is
        itself in the format; and never more than the number, since 0 is in every format.
        """
        if x[0] == x[1]:
            return abs(self.nearest(x[0]) - x[0])
        most = max(-x[0], x[1])
        step = self.step(most)
        if is_power_of_two(most) and not self.fixed and step > self.least:
            step /= 2
        return min(step / 2, most)


def number_format(written: Json) -> NumberFormat:
    """The format that a certificate names."""
    require(isinstance(written, Mapping) and len(written) == 1, "the format is unknown")
    ((kind, parts),) = written.items()
    require(isinstance(parts, list), "the format is unknown")
    require(all(type(part) is int and abs(part) <= 10**5 for part in parts), "the format is absurd")
    if kind == "binary" and len(parts) == 3:
        bits, least, greatest = parts
        require(2 <= bits <= 10**4 and least < greatest, "the format is absurd")
        largest = (2 - power(1 - bits)) * power(greatest)
        return NumberFormat(bits, power(least - bits + 1), largest, fixed=False)
    if kind == "fixed" and len(parts) == 2:
        fraction, integer = parts
        require(0 <= fraction <= 10**4 and 1 <= integer <= 10**4, "the format is absurd")
        least = Fraction(1, 2**fraction)
        return NumberFormat(1, least, 2**integer - least, fixed=True)
    raise Rejected("the format is unknown")


def quotient_error(form: Json, region: Interval, cell: Fraction) -> Fraction:
    """How far the rounding of sum/cell can move the edge of a cell; none for a power of two.

    The machine divides by the number c of its format nearest to the cell L. The quotient x/c times
    L is off by x (L/c - 1), and its rounding by half a step, or relatively by 2**-bits, times L.
    Rejected where a quotient overflows, up to one cell beyond the region.
    """
    far, machine = size(region)[1], number_format(form)
    # the machine's cell may be smaller
    require(far / cell + 2 <= machine.largest, "the quotient by the cell may overflow")
    near = machine.nearest(cell)
    require(near > 0, "the cell is 0 in this format")
    grown = cell / near
    off = (far + cell) * abs(grown - 1)
    if machine.fixed:
        return off + cell * machine.least / 2
    return off if is_power_of_two(cell) else off + (far + cell) * grown * power(-machine.bits)


# ---------------------------------------------------------------- generators of uniforms


def check_model(uniform: Json) -> None:
    """Reject what is neither every float from 2**least_exponent to 1 nor a grid, within doubles."""
    known = False
    if uniform["model"] == "full" and set(uniform) == {"model", "significand", "least_exponent"}:
        bits, least = uniform["significand"], uniform["least_exponent"]
        known = type(bits) is type(least) is int and 1 <= bits <= 53 and -1022 <= least <= -1
    elif uniform["model"] == "grid" and set(uniform) == {"model", "bits", "offset", "first"}:
        bits, offset, first = uniform["bits"], number(uniform["offset"]), uniform["first"]
        known = type(bits) is type(first) is int and first in (0, 1)
        known = known and offset in (0, Fraction(1, 2), 1) and 1 <= bits <= 53 - offset % 1
    require(known, "the model of the generator is unknown")


def check_uniform(uniform: Json, form: Json) -> None:
    """Reject unless every float of the model is one of the format."""
    machine = number_format(form)
    if uniform["model"] == "within":
        _delta_0(uniform)
        return
    check_model(uniform)
    if uniform["model"] == "full":
        require(not machine.fixed, "full precision needs binary floats")
        fits = uniform["significand"] <= machine.bits and _least(uniform) >= machine.least_normal
        require(fits, "u is not a float")
    else:
        offset, step = number(uniform["offset"]), Fraction(1, 1 << uniform["bits"])
        ends = (offset or 1) * step, 1 - (1 - offset if offset < 1 else 1) * step
        require(all(map(machine.holds, ends)), "u is not a float")


def require_listed(uniform: Json) -> None:
    """Reject a generator known up to an error where the proof needs to know what is drawn."""
    require(uniform["model"] != "within", "of this generator too little is known for this proof")


def uniform_range(uniform: Json) -> Interval:
    """The least and the greatest number that a generator draws."""
    if uniform["model"] == "within":
        return Fraction(0), Fraction(1)
    check_model(uniform)
    if uniform["model"] == "full":
        return power(uniform["least_exponent"]), 1 - power(-uniform["significand"])
    unit, offset = power(-uniform["bits"]), number(uniform["offset"])
    return (uniform["first"] + offset) * unit, 1 - (1 - offset) * unit


def draw_error(uniform: Json) -> Fraction:
    """How far a draw can be from the real number it stands for.

    A full-precision draw is that number rounded down, or up to the least normal float. A grid is
    off by its step or half of it; without its first point the others are spread over all of (0, 1),
    which moves them by up to a step more. Of a generator "within" this is all that is known.
    """
    if uniform["model"] == "within":
        return _delta_0(uniform)
    if uniform["model"] == "full":
        return max(Fraction(1, 1 << uniform["significand"]), _least(uniform))
    offset = number(uniform["offset"])
    off = 1 + offset if uniform["first"] else max(offset, 1 - offset)
    return off * Fraction(1, 1 << uniform["bits"])


def spread(uniform: Json, alpha: Fraction, beta: Fraction, cut: Fraction) -> Interval:
    """For t = alpha + beta u: from where on its draw t' reaches the cut, and then max t/t', t'/t.

    A full-precision draw is relatively near if t is proportional to u. Otherwise t and t' are apart
    by beta times what draws are off, and their quotient is farthest from 1 at the cut. Models are
    monotone but "within": there a draw at the cut may stand for a smaller t, so t'/t is the larger
    quotient; and t beyond the boundary may be drawn within the cut, never the other way round.
    """
    if uniform["model"] == "full" and alpha == 0:
        require(cut >= _least(uniform) * beta, "a cut lies below the least u")
        ratio = 1 + Fraction(2, 1 << uniform["significand"])
        return cut * ratio, ratio
    stray = abs(beta) * draw_error(uniform)
    boundary = cut + stray
    if uniform["model"] == "within":
        require(cut > stray, "a cut lies nearer to 0 than the draws are known")
        return boundary, cut / (cut - stray)
    return boundary, boundary / cut


def _delta_0(uniform: Json) -> Fraction:
    require(set(uniform) == {"model", "delta_0"}, "the model of the generator is unknown")
    off = number(uniform["delta_0"])
    require(0 < off < Fraction(1, 2), "delta_0 is not between 0 and 1/2")
    return off


def _least(uniform: Json) -> Fraction:
    return Fraction(1, 1 << -uniform["least_exponent"])
