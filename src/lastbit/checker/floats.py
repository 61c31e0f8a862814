"""The machine as certificates describe it: formats, intervals, its uniform generator, its quotient.

What is believed: IEEE 754's rounding to the nearest. `nearest` is the number of the format nearest
to a real one, ties to even; it is monotone. `half` is how far it can move any number of an
interval: half a step of the largest binade the interval enters beyond its least number, and never
more than the number itself, since 0 is in every format.

Intervals hold all values of an operation over all numbers of its operands. ln, exp and roots are a
little wider than they are (`numbers.py`); where they are rational (ln 1, exp 0), they are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Any

from .numbers import Rejected, exp_bounds, ln_bounds, number, require, sqrt_bounds

Interval = tuple[Fraction, Fraction]


@dataclass(frozen=True)
class NumberFormat:
    """Steps of 2**(e - bits + 1) in the binade of 2**e, not below `least`; equal ones if fixed."""

    bits: int
    least: Fraction
    largest: Fraction
    fixed: bool

    def step(self, x: Fraction) -> Fraction:
        """The distance between the numbers around x."""
        size = abs(x)
        if self.fixed or size < self.least:
            return self.least
        exponent = size.numerator.bit_length() - size.denominator.bit_length()
        if power(exponent) > size:
            exponent -= 1
        return max(self.least, power(exponent - self.bits + 1))

    @property
    def least_normal(self) -> Fraction:
        """Where full precision begins."""
        return self.least * power(self.bits - 1)

    def holds(self, x: Fraction) -> bool:
        """Whether x is a number of the format."""
        return abs(x) <= self.largest and (x / self.step(x)).denominator == 1

    def nearest(self, x: Fraction) -> Fraction:
        """The rounded number; rejected where a machine would answer infinity."""
        step = self.step(x)
        near = round(x / step) * step
        require(abs(near) <= self.largest, "a step may overflow")
        return near

    def half(self, x: Interval) -> Fraction:
        """The most that rounding moves a number of the interval."""
        if x[0] == x[1]:
            return abs(self.nearest(x[0]) - x[0])
        most = max(-x[0], x[1])
        step = self.step(most)
        # a power of two is itself in the format: the numbers below it have half its step
        power = (
            most.denominator & (most.denominator - 1) == 0 == most.numerator & (most.numerator - 1)
        )
        if power and not self.fixed and step > self.least:
            step /= 2
        return min(step / 2, most)


def power(exponent: int) -> Fraction:
    """2**exponent, exactly."""
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)


def number_format(written: Mapping[str, Any]) -> NumberFormat:
    """The format that a certificate names."""
    require(isinstance(written, Mapping) and len(written) == 1, "the format is unknown")
    ((kind, parts),) = written.items()
    require(isinstance(parts, list), "the format is unknown")
    require(all(type(part) is int and abs(part) <= 10**5 for part in parts), "the format is absurd")
    if kind == "binary" and len(parts) == 3:
        bits, least, greatest = parts
        require(2 <= bits <= 10**4 and least < greatest, "the format is absurd")
        largest = (2 - Fraction(2) ** (1 - bits)) * Fraction(2) ** greatest
        return NumberFormat(bits, Fraction(2) ** (least - bits + 1), largest, fixed=False)
    if kind == "fixed" and len(parts) == 2:
        fraction, integer = parts
        require(0 <= fraction <= 10**4 and 1 <= integer <= 10**4, "the format is absurd")
        least = Fraction(1, 2**fraction)
        return NumberFormat(1, least, 2**integer - least, fixed=True)
    raise Rejected("the format is unknown")


LEAST_EXPONENT = Fraction(-1400)
ONE: Interval = (Fraction(1), Fraction(1))
ZERO: Interval = (Fraction(0), Fraction(0))


def minus(x: Interval) -> Interval:
    """All -x."""
    return -x[1], -x[0]


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
    least = max(x[0], -x[1], Fraction(0))
    return least, max(-x[0], x[1])


def ln(x: Interval) -> Interval:
    """All ln x."""
    require(x[0] > 0, "a logarithm of what may not be above 0")
    low, high = (ln_bounds(end) if end != 1 else (Fraction(0),) * 2 for end in x)
    return low[0], high[1]


def exp(x: Interval) -> Interval:
    """All exp x; 0 stands for what is below e**-1400."""
    require(x[1] <= 10**5, "an exponential may overflow")
    ends = [max(end, LEAST_EXPONENT) for end in x]
    low, high = (exp_bounds(end) if end != 0 else ONE for end in ends)
    return (low[0] if x[0] >= LEAST_EXPONENT else Fraction(0)), high[1]


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


def power_of_two(x: Interval) -> bool:
    """Whether an interval is one power of two, of either sign."""
    top, bottom = abs(x[0].numerator), x[0].denominator
    return x[0] == x[1] and top > 0 and top & (top - 1) == 0 and bottom & (bottom - 1) == 0


def hull_distance(x: Interval, y: Interval) -> Fraction:
    """The greatest distance of a number of one interval from one of the other."""
    return max(y[1] - x[0], x[1] - y[0])


Model = Mapping[str, Any]


def check_uniform(uniform: Model, form: Model) -> None:
    """Every float of the model must be one of the format."""
    number_format(form)
    if uniform["model"] == "full":
        require(set(uniform) == {"model", "significand", "least_exponent"}, "the model is unknown")
        bits, least = uniform["significand"], uniform["least_exponent"]
        require(type(bits) is int and type(least) is int and bits >= 1, "the model is unknown")
        require("binary" in form, "full precision needs binary floats")
        require(bits <= form["binary"][0], "u is not a float")
        require(form["binary"][1] <= least <= -1, "u is not a float")
    else:
        require(set(uniform) == {"model", "bits", "offset", "first"}, "the model is unknown")
        bits, offset = uniform["bits"], number(uniform["offset"])
        first = uniform["first"]
        require(type(first) is int and first in (0, 1), "the model is unknown")
        require(uniform["model"] == "grid" and type(bits) is int, "the model is unknown")
        require(offset in (0, Fraction(1, 2), 1) and 1 <= bits <= 4000, "the model is unknown")
        require(holds(form, (offset or Fraction(1)) / (1 << bits)), "u is not a float")
        require(
            holds(form, 1 - (1 - offset if offset < 1 else 1) / Fraction(1 << bits)),
            "u is not a float",
        )


def holds(form: Model, x: Fraction) -> bool:
    """Whether a number belongs to the format."""
    return number_format(form).holds(x)


def draw_error(uniform: Model) -> Fraction:
    """How far a draw can be from the real number it stands for.

    A full-precision draw is that number rounded down, or up to the least normal float. A grid is
    off by its step or half of it; without its first point the others are spread over (0, 1) anew,
    which moves them by up to a step more.
    """
    if uniform["model"] == "full":
        return max(Fraction(1, 1 << uniform["significand"]), _least(uniform))
    offset = number(uniform["offset"])
    off = 1 + offset if uniform["first"] else max(offset, 1 - offset)
    return off * Fraction(1, 1 << uniform["bits"])


def spread(
    uniform: Model, alpha: Fraction, beta: Fraction, cut: Fraction
) -> tuple[Fraction, Fraction]:
    """For t = alpha + beta u: from where on its draw t' reaches the cut, and then max t/t', t'/t.

    A full-precision draw is relatively near if t is proportional to u. Otherwise t and t' are apart
    by beta times what draws are off, and their quotient is farthest from 1 at the cut.
    """
    if uniform["model"] == "full" and alpha == 0:
        require(cut >= _least(uniform) * beta, "a cut lies below the least u")
        ratio = 1 + Fraction(2, 1 << uniform["significand"])
        return cut * ratio, ratio
    boundary = cut + abs(beta) * draw_error(uniform)
    return boundary, boundary / cut


def _least(uniform: Model) -> Fraction:
    return Fraction(1, 1 << -uniform["least_exponent"])


def quotient_error(form: Model, region: tuple[Fraction, Fraction], cell: Fraction) -> Fraction:
    """How far the rounding of sum/cell can move the edge of a cell; none for a power of two.

    The machine divides by the number c of its format nearest to the cell L. The quotient x/c times
    L is off by x (L/c - 1), and its rounding by half a step, or relatively by 2**-bits, times L.
    """
    ends = max(abs(region[0]), abs(region[1])) + cell
    near = number_format(form).nearest(cell)
    require(near > 0, "the cell is 0 in this format")
    grown = cell / near
    off = ends * abs(grown - 1)
    if "fixed" in form:
        return off + cell * Fraction(1, 2 << form["fixed"][0])
    power = cell.numerator & (cell.numerator - 1) == cell.denominator & (cell.denominator - 1) == 0
    return off if power else off + ends * grown / (1 << form["binary"][0])


def check_quotient(form: Model, region: tuple[Fraction, Fraction], cell: Fraction) -> None:
    """No quotient by the cell overflows, up to one cell beyond the region."""
    most = max(abs(region[0]), abs(region[1])) / cell + 2  # the machine's cell may be smaller
    require(most <= number_format(form).largest, "the quotient by the cell may overflow")
