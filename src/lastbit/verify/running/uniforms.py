"""Models of a generator of uniform floats: which floats, in which order, how likely each."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import Number, floor_log2, nonnegative, positive, probability, rational, whole
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


@dataclass(frozen=True, slots=True, init=False)
class Within:
    """A generator of which one thing is known: a draw is within delta_0 of a uniform real.

    Law      draws are numbers of the format from 0 to 1. Each of them, u', whatever those before
             it were, has a joint law with a uniform real u, independent of those before, under
             which abs(u' - u) <= delta_0 always
    Theorem  (distribution) that is so iff abs(P[u' <= x] - x) <= delta_0 for all x, given those
             before. (several draws) the reals of all draws are then independent, so q draws are
             within delta_0 of q independent uniforms in the maximum norm, as equation (1) asks
    Proof    If, take u with P[u' < x] <= u <= P[u' <= x] at x = u': both ends are within delta_0 of
             x. Only if: u' <= x implies u <= x + delta_0, and u <= x - delta_0 implies u' <= x.
             Draw by draw, each real is uniform given all before: so they are independent
    Source   paper 000, section 4.1; Wasserstein's distance of a law from the uniform one
    Differs  neither monotone in u nor of known values, so a cut of the noise needs room on both
             sides: docs/theory/generators.md
    Checked  tests/verify/test_within.py; the checker, `spread` in `checker/intervals.py`

    >>> Within("1e-12").delta_0 == Fraction(1, 10**12)
    True
    """

    delta_0: Fraction

    def __init__(self, delta_0: Number) -> None:
        off = positive(delta_0, "delta_0")
        if off >= Fraction(1, 2):
            remedy = "pass, say, 2**-40"
            raise InvalidParameter("delta_0", problem="is 1/2 or more: a constant", remedy=remedy)
        object.__setattr__(self, "delta_0", off)

    @classmethod
    def of_law(cls, law: Mapping[Any, Any]) -> Within:
        """A generator whose values and probabilities are known: a bias, values that never come.

        >>> Within.of_law({0: "1/4", "1/4": "1/4", "1/2": "3/8", "3/4": "1/8"})
        Within(delta_0=Fraction(3, 8))
        """
        chances = {
            rational(x, "law"): probability(p, "law", remedy="pass, say, 1/4")
            for x, p in law.items()
        }
        if sum(chances.values()) != 1 or min(chances) < 0 or max(chances) > 1:
            problem = "is not one of numbers from 0 to 1 with probabilities that add up to 1"
            raise InvalidParameter("law", problem=problem, remedy="pass all of them")
        far, below = Fraction(0), Fraction(0)
        for x, chance in sorted(chances.items()):
            if chance:
                far = max(far, abs(x - below), abs(x - below - chance))
                below += chance
        return cls(far)

    @classmethod
    def of_bits(cls, bits: int, bias: Number) -> Within:
        """Numbers k/2**bits made of bits that are 1 with a probability within `bias` of 1/2.

        Each bit so, whatever those before it were: they may depend on one another.

        Theorem  delta_0 = 2 c/(1 - 2 c) + (1/2 + c)**bits, c the bias. Let D(n) bound
                 abs(P[u' <= x] - x) for n bits. The first bit halves the range: for both halves
                 D(n) <= c + (1/2 + c) D(n-1), and D(0) = 1

        >>> float(Within.of_bits(53, Fraction(1, 2**60)).delta_0)
        1.12...e-16
        """
        count, off = whole(bits, "bits", least=1), nonnegative(bias, "bias")
        if count > 53 or off >= Fraction(1, 2):
            problem, remedy = "or bias is too large", "pass at most 53 bits, a bias below 1/2"
            raise InvalidParameter("bits", problem=problem, remedy=remedy)
        far = 2 * off / (1 - 2 * off) + (Fraction(1, 2) + off) ** count
        unit = Fraction(1, 1 << 128)
        return cls(-(-far // unit) * unit)  # rounded up: its digits would fill a page

    def written(self) -> dict[str, Any]:
        return {"model": "within", "delta_0": str(self.delta_0)}


Uniform: TypeAlias = FullPrecision | Grid
"""`size` floats in increasing order: `point(k)` is that of the number k, `below(k)` is exactly
P(the draw's number < k), `number(real)` is that of the float which a uniform real is drawn as, and
at the numbers of `landmarks()` code is likely to change its ways: probes begin there."""


Generator: TypeAlias = Uniform | Within


def listed_uniform(uniform: Generator) -> Uniform:
    """The generator, if all that it draws is known: some proofs need more than an error."""
    if isinstance(uniform, Within):
        problem = "is known up to an error, which is too little for this proof"
        raise InvalidParameter("uniform", problem=problem, remedy="pass Grid or FullPrecision")
    return uniform


"""What certificates of rounded noise can be about: exact models, or an error alone."""


def draw_range(uniform: Generator) -> tuple[Fraction, Fraction]:
    """The least and the greatest number that may be drawn."""
    if isinstance(uniform, Within):
        return Fraction(0), Fraction(1)
    return Fraction(uniform.point(0)), Fraction(uniform.point(uniform.size - 1))


def draw_error(uniform: Generator) -> Fraction:
    """How far a draw can be from the uniform real that it stands for.

    Theorem  the reals from below(k) to below(k + 1) become point(k). How far their ends are from it
             is linear in k on a grid, and never falls with k for full precision but for k = 0: the
             first float and the last are the farthest from their reals

    >>> draw_error(Grid(3)), draw_error(FullPrecision(53))
    (Fraction(1, 8), Fraction(1, 9007199254740992))
    """
    if isinstance(uniform, Within):
        return uniform.delta_0
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
