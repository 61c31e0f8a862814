"""Planar Laplace noise in polar coordinates and plain floats, with a proved error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import factorial

import numpy as np
from flint import arb
from numpy.typing import NDArray

from lastbit.exact import arb_of, cos_sin_turn, exp_negative, working_precision
from lastbit.sampling.bits import Bits, words

PLACES = 53
RADIUS_ERROR = Fraction(1, 1 << 47)  # of `unit_radius`, whose results stay below 42
_CLOSE = 2.0**-28  # how near a guess must be for the last step to be proved
_SERIES = tuple(1 / (factorial(k) * (k + 2)) for k in range(24))
_PRECISION = 192

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Words = NDArray[np.uint64]


# ---------------------------------------------------------------- the radius


def unit_radius(share: Floats, tail: Mask) -> Floats:
    """The radius x with C(x) = share, or 1 - C(x) = share in the tail; C(x) = 1 - (1+x) e**-x.

    Law      |result - x| <= RADIUS_ERROR = 2**-47 for every share from 2**-54 to below 1/2
    Theorem  The last Newton step is proved by its own residual: if C(guess)/share (or 1-C) was
             computed within 2**-28 of 1, the step's second-order error is below 2**-53; the
             quotient's own error is at most 29 units of 2**-53, in the tail 12. Together at most
             32 x, or 20 + x units. Other elements are solved by balls. Proof: docs/theory/polar.md
    Differs  a library logarithm serves for guesses only; nothing rests on its accuracy
    Checked  tests/mechanisms/test_polar.py
    """
    low, low_close = _below_median(share)
    high, high_close = _above_median(share)
    radius = np.where(tail, high, low)
    close = np.where(tail, high_close, low_close)
    for i in np.flatnonzero(~close):
        radius[i] = _radius_by_balls(Fraction(float(share[i])), tail=bool(tail[i]))
    return radius


def _below_median(share: Floats) -> tuple[Floats, Mask]:
    root = np.sqrt(share + share)
    guess = root * (1 + root * (1 / 3 + root * (0.153 + root * 0.192)))
    for _ in range(3):
        guess, _ = _step_below(share, _within(guess, 1e-9, 1.7))
    return _step_below(share, _within(guess, 1e-9, 1.7))


def _step_below(share: Floats, guess: Floats) -> tuple[Floats, Mask]:
    """One Newton step in ln x: C = x**2 series(x), and d ln C/d ln x = (1-C)/((1+x) series(x))."""
    series = np.full_like(guess, _SERIES[-1])
    for coefficient in reversed(_SERIES[:-1]):
        series *= guess
        np.subtract(coefficient, series, out=series)
    mass = guess * guess * series
    excess = 1 - mass / share
    slope = (1 - mass) / ((1 + guess) * series)
    return guess + guess * (excess / slope), np.abs(excess) <= _CLOSE


def _above_median(share: Floats) -> tuple[Floats, Mask]:
    target = -np.log(share)
    guess = target + np.log(1 + target + np.log(1 + target))
    for _ in range(3):
        guess -= (guess - np.log(1 + guess) - target) * (1 + guess) / guess
    guess = _within(guess, 1.6, 64.0)
    excess = (1 + guess) * exp_negative(guess) / share - 1
    return guess + excess * ((1 + guess) / guess), np.abs(excess) <= _CLOSE


def _within(guess: Floats, least: float, most: float) -> Floats:
    """The guess where it is of use; elsewhere, NaN too, a number that the check will refuse."""
    return np.where((guess >= least) & (guess <= most), guess, least)


def _radius_by_balls(share: Fraction, *, tail: bool) -> float:
    with working_precision(_PRECISION):
        target = arb_of(1 - share if tail else share)
        return float(least(lambda x: 1 - survival(x) >= target, places=60))


def survival(radius: Fraction) -> arb:
    """P[radius > x] = (1+x) e**-x, at the working precision."""
    x = arb_of(radius)
    return (1 + x) * (-x).exp()


# ---------------------------------------------------------------- the noise


def polar_noise(
    radius_words: Words, angle_words: Words, *, places: int, scale: float
) -> NDArray[np.complex128]:
    """One point of the plane for each pair of words of `places` random bits, at most 53.

    Law      a word k stands for (k + 1/2)/2**places, within delta_0 = 2**-(places+1) of the uniform
             number that begins so. Its leading bit chooses the half of the radii (at the median)
             or of the turn, the others a number of (0, 1/2), a float exactly; the upper half of the
             radii is counted from 1 downwards
    Theorem  the point is within RADIUS_ERROR scale + 10u (r + scale), u = 2**-53, of the exact
             (r cos, r sin) of these numbers, for r = C**-1 over the exact rate, 1/scale rounded
    Checked  tests/mechanisms/test_polar.py
    """
    tail, share = _halves(radius_words, places)
    turned, turn = _halves(angle_words, places)
    radius = unit_radius(share, tail) * scale
    np.negative(radius, out=radius, where=turned)  # half a turn more
    cosine, sine = cos_sin_turn(turn)
    point = np.empty(radius.shape, np.complex128)
    point.real = radius * cosine
    point.imag = radius * sine
    return point


def _halves(word: Words, places: int) -> tuple[Mask, Floats]:
    rest = word & np.uint64((1 << (places - 1)) - 1)
    share = (rest.astype(np.float64) * 2 + 1) * 2.0 ** -(places + 1)
    return (word >> np.uint64(places - 1)).astype(np.bool_), share


@dataclass(frozen=True, slots=True)
class PolarNoise:
    """Planar Laplace noise in floats, as complex numbers; two words of 64 bits a point."""

    scale: float

    def draw(self, bits: Bits, size: int) -> NDArray[np.complex128]:
        spare = np.uint64(64 - PLACES)
        radius, angle = (words(bits, size, np.uint64) >> spare for _ in range(2))
        return polar_noise(radius, angle, places=PLACES, scale=self.scale)


def least(holds: Callable[[Fraction], bool], *, places: int = 20) -> Fraction:
    """A number at which an increasing condition is proved, the least up to 2**-places of it."""
    high = Fraction(1, 1 << 64)
    while not holds(high):
        high *= 2
    low = high / 2
    for _ in range(places):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
