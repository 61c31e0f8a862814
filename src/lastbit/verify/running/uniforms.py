"""Models of a generator of uniform floats: which floats, in which order, how likely each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import floor_log2, rational, whole
from lastbit.sampling import uniform_below

_FINE = 62
_DECIMALS = 16


@dataclass(frozen=True, slots=True)
class FullPrecision:
    """A uniform real, rounded down to a float, and up to the least normal float below that.

    Law      the floats of [2**least_exponent, 1) with `significand` bits; P(u < a) = a for each of
             them but the least, which takes all of [0, its successor)
    Theorem  rounding down maps U < a to u < a and U >= a to u >= a, for every float a. What is
             below 2**least_exponent, a share of just that size, becomes the least float: a
             generator that counts zeros for the exponent stops somewhere
    Source   Mironov 2012, section 5.2; paper 000, section 1.1
    Checked  tests/verify/test_uniforms.py

    >>> uniform = FullPrecision()
    >>> uniform.point(0) == 2.0**-1022, uniform.point(uniform.size - 1) == 1 - 2.0**-53
    (True, True)
    >>> uniform.below(index_of(uniform, 0.25))
    Fraction(1, 4)
    """

    significand: int = 53
    least_exponent: int = -1022

    def __post_init__(self) -> None:
        if whole(self.significand, "significand", least=1) > 53:
            raise InvalidParameter("significand", problem="is above 53", remedy="pass 53 or less")
        if type(self.least_exponent) is not int or not -1022 <= self.least_exponent <= -1:
            problem = "is not an int from -1022 to -1"
            raise InvalidParameter("least_exponent", problem=problem, remedy="pass, say, -1022")

    @property
    def size(self) -> int:
        return -self.least_exponent << (self.significand - 1)

    def point(self, index: int) -> float:
        exponent, mantissa = divmod(index, 1 << (self.significand - 1))
        front = (1 << (self.significand - 1)) + mantissa
        return math.ldexp(front, self.least_exponent + exponent - self.significand + 1)

    def below(self, index: int) -> Fraction:
        return Fraction(self.point(index)) if index > 0 else Fraction(0)

    def number(self, real: Fraction) -> int:
        least, places = self.least_exponent, self.significand - 1
        top, bottom = real.numerator, real.denominator
        if top << -least < bottom:
            return 0
        exponent = floor_log2(real)
        front = (top << (places - exponent)) // bottom
        return ((exponent - least - 1) << places) + front

    def near(self, real: float) -> int:
        """About the number of a real, without exact arithmetic: to look there, not to count."""
        mantissa, exponent = math.frexp(real)
        front = int(math.ldexp(mantissa, self.significand))
        found = ((exponent - self.least_exponent - 2) << (self.significand - 1)) + front
        return min(max(found, 0), self.size - 1)

    def landmarks(self) -> list[int]:
        powers = [e << (self.significand - 1) for e in range(-self.least_exponent)]
        return _distinct(self, powers)

    def written(self) -> dict[str, Any]:
        exponent = self.least_exponent
        return {"model": "full", "significand": self.significand, "least_exponent": exponent}


@dataclass(frozen=True, slots=True, init=False)
class Grid:
    """The numbers (k + offset)/2**bits, k = first ... 2**bits - 1, all alike.

    Law      each has the probability 1/(2**bits - first)
    Differs  offset 0 and first 0 is what most libraries draw; first 1 draws again at 0; offset 1
             has 1 in place of 0; offset 1/2 has neither
    Checked  tests/verify/test_uniforms.py

    >>> [Grid(2, offset="1/2").point(k) for k in range(4)]
    [0.125, 0.375, 0.625, 0.875]
    """

    bits: int
    offset: Fraction
    first: int

    def __init__(self, bits: int, *, offset: object = 0, first: int = 0) -> None:
        shift = rational(offset, "offset")
        if shift not in (0, Fraction(1, 2), 1):
            raise InvalidParameter("offset", problem="is none of 0, 1/2, 1", remedy="pass one")
        most = 52 if shift == Fraction(1, 2) else 53
        if not 1 <= whole(bits, "bits") <= most:
            problem = f"is not from 1 to {most}"
            remedy = f"pass a whole number from 1 to {most}"
            raise InvalidParameter("bits", problem=problem, remedy=remedy)
        if whole(first, "first") > 1:
            raise InvalidParameter("first", problem="is above 1", remedy="pass 0 or 1")
        object.__setattr__(self, "bits", int(bits))
        object.__setattr__(self, "offset", shift)
        object.__setattr__(self, "first", int(first))

    @property
    def size(self) -> int:
        return (1 << self.bits) - self.first

    def point(self, index: int) -> float:
        twice = 2 * self.offset.numerator // self.offset.denominator
        return math.ldexp(2 * (index + self.first) + twice, -self.bits - 1)

    def below(self, index: int) -> Fraction:
        return Fraction(index, self.size)

    def number(self, real: Fraction) -> int:
        return math.floor(real * self.size)

    def near(self, real: float) -> int:
        return min(max(int(real * self.size), 0), self.size - 1)

    def landmarks(self) -> list[int]:
        powers = [1 << k for k in range(self.bits)]
        return _distinct(self, [k - self.first for k in (*powers, *(3 * k for k in powers[:-1]))])

    def written(self) -> dict[str, Any]:
        offset = str(self.offset)
        return {"model": "grid", "bits": self.bits, "offset": offset, "first": self.first}


Uniform: TypeAlias = FullPrecision | Grid
"""`size` floats in increasing order: `point(k)` is that of the number k, `below(k)` is exactly
P(the draw's number < k), `number(real)` is that of the float which a uniform real is drawn as, and
at the numbers of `landmarks()` code is likely to change its ways: probes begin there."""


def draw_error(uniform: Uniform) -> Fraction:
    """How far a draw can be from the uniform real that it stands for.

    Theorem  the reals from below(k) to below(k + 1) become point(k). How far their ends are from it
             is linear in k on a grid, and never falls with k for full precision but for k = 0: the
             first float and the last are the farthest from their reals

    >>> draw_error(Grid(3)), draw_error(FullPrecision(53))
    (Fraction(1, 8), Fraction(1, 9007199254740992))
    """
    ends = (0, uniform.size - 1)
    return max(
        abs(uniform.below(k + after) - Fraction(uniform.point(k))) for k in ends for after in (0, 1)
    )


def model_of(uniform: object) -> Uniform:
    """The model that was passed, or full precision for None."""
    found = FullPrecision() if uniform is None else uniform
    if not isinstance(found, Uniform):
        remedy = "pass FullPrecision() or Grid(53)"
        raise WrongType("uniform", problem="is not a model of a generator", remedy=remedy)
    return found


def stratified(uniform: Uniform, first: int, last: int, *, strata: int) -> list[int]:
    """Numbers from `first` to `last`: one at random in each of `strata` stretches.

    Law      the stretches are equally likely, and each draw has the law of the model there
    Theorem  uniforms that are neighbours, with 2/strata of the probability or more, cover one whole
             stretch, and so one of the numbers, whatever was drawn
    """
    low, high = uniform.below(first), uniform.below(last + 1)
    draws = uniform_below(1 << _FINE, size=strata).tolist() if strata else []
    found = []
    for k, draw in enumerate(draws):
        real = low + (high - low) * Fraction((k << _FINE) + int(draw), strata << _FINE)
        found.append(uniform.number(real))
    return found


def _distinct(uniform: Uniform, powers: list[int]) -> list[int]:
    """Powers of two, and what people write into code: hundredths, 10**-k, 1 - 10**-k, 1 - 2**-k."""
    written = [Fraction(k, 100) for k in range(1, 100)]
    near = [Fraction(1, 10**k) for k in range(3, _DECIMALS)]
    near += [Fraction(1, 1 << k) for k in range(1, 53)]
    written += [*near, *(1 - x for x in near)]
    numbers = {*powers, *(uniform.number(x) for x in written)}
    return sorted(number for number in numbers if 0 <= number < uniform.size)


def index_of(uniform: Uniform, u: float | Fraction) -> int:
    """The number of the least float of the model that is not below u; its size if there is none."""
    low, high = 0, uniform.size
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if uniform.point(middle) >= u else (middle + 1, high)
    return low
