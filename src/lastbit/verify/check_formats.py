"""The checker's own number formats. What it believes: IEEE 754's rounding to the nearest.

`nearest` is the number of the format nearest to a real one, ties to even; it is monotone. `half` is
how far it can move any number of an interval: half a step of the largest binade the interval enters
beyond its least number, and never more than the number itself, since 0 is in every format.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from lastbit.verify.arithmetic import Rejected, require

__all__ = ["NumberFormat", "number_format"]

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
        if _power(exponent) > size:
            exponent -= 1
        return max(self.least, _power(exponent - self.bits + 1))

    @property
    def least_normal(self) -> Fraction:
        """Where full precision begins."""
        return self.least * _power(self.bits - 1)

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


def _power(exponent: int) -> Fraction:
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
