"""Planar Laplace draws: exact on the integer points, and in floats with a proved error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import factorial
from typing import Any, overload

import numpy as np
from flint import arb
from numpy.typing import NDArray

from lastbit.errors import InvalidParameter
from lastbit.exact import (
    LARGEST_ARGUMENT,
    Number,
    alternating,
    arb_of,
    cos_sin_turn,
    enclosure_of,
    exp_negative,
    nearest,
    positive,
    working_precision,
)
from lastbit.sampling.bernoulli import Coin, coin
from lastbit.sampling.bits import Bits, words
from lastbit.sampling.draw import Shape, Size, cached, drawn
from lastbit.sampling.laplace_tables import Digits, digits
from lastbit.sampling.lazy import LazyUniform, accepted, proposals
from lastbit.sampling.uniform import UniformBelow, below_each

MOST_STEPS = 1 << 22
# Two integers side by side: one draw to the machinery, a tuple where a single one is asked for.
POINT = np.dtype([("i", np.int64), ("j", np.int64)])
_MOST_DIMENSIONS = 63
_SIDE = np.uint64(3)
_UNIFORM_SHIFT = np.uint64(11)
_ACCEPTANCE = 0.77  # at least
# `below_each` takes numbers below 2**32: so far reach the shells that it serves.
_FAR_SHELL = 1 << 31
# Temporary arrays of this many proposals stay in the caches.
_BLOCK = 1 << 15


@overload
def planar_laplace(rate: Number, size: None = None) -> tuple[int, int]: ...
@overload
def planar_laplace(rate: Number, size: Shape) -> NDArray[np.int64]: ...
def planar_laplace(rate: Number, size: Size = None) -> tuple[int, int] | NDArray[np.int64]:
    """Exact draws from the planar Laplace law on the integer points.

    Law      P[X = (i, j)] proportional to exp(-rate sqrt(i**2 + j**2))
    Theorem  see `Shells`
    Source   Andres et al. 2013 for the continuous law
    Differs  on the lattice and exact. One point is a tuple; with a size, the two coordinates are
             the last axis of an array. A noise 1/rate above 2**22 steps is refused
    Checked  tests/sampling/test_planar.py

    >>> planar_laplace("1/1000", size=(5, 3)).shape
    (5, 3, 2)
    >>> planar_laplace(1000)
    (0, 0)
    >>> planar_laplace("1e-9")
    Traceback (most recent call last):
        ...
    lastbit.errors.InvalidParameter: rate is below 2**-22; pass the loss for a larger step
    """
    sampler = cached(planar_sampler, rate)
    if size is None:
        return drawn(sampler, None)  # type: ignore[no-any-return]
    if isinstance(size, tuple) and len(size) > _MOST_DIMENSIONS:
        problem = f"has more than {_MOST_DIMENSIONS} dimensions"
        raise InvalidParameter("size", problem=problem, remedy="pass fewer")
    return coordinates(drawn(sampler, size))


def coordinates(points: NDArray[Any]) -> NDArray[np.int64]:
    """Drawn points as plain integers, the two coordinates along a new last axis."""
    return np.ascontiguousarray(points).ravel().view(np.int64).reshape(*points.shape, 2)


@lru_cache(maxsize=32, typed=True)
def planar_sampler(rate: Number) -> Shells:
    """The prepared sampler of a rate."""
    exact = positive(rate, "rate")
    if exact * MOST_STEPS < 1:
        remedy = "pass the loss for a larger step"
        raise InvalidParameter("rate", problem="is below 2**-22", remedy=remedy)
    return shells(exact)


@dataclass(frozen=True, slots=True, eq=False)
class Shells:
    """Proposals from squares around 0, accepted according to how much further out they lie.

    Law      P[X = x] = exp(-a abs(x))/Z on the integer points, a the rate
    Theorem  Shell k holds the points with max(abs(i), abs(j)) = k: one for k = 0, else 8k. Propose
             x with probability proportional to exp(-a k), accept with exp(-a (abs(x) - k)), which
             is at most 1 as abs(x) >= k: accepted points have the law. *Shell*: the weights are 1
             and 8k q**k, q = exp(-a), with sum 1 + 8q/(1-q)**2. So k = 0 with probability
             (1-q)**2/((1-q)**2 + 8q), a coin; else k = 1 + G + H, both geometric of scale 1/a:
             P[G + H = k-1] = k (1-q)**2 q**(k-1). *Place*: m uniform from -k to k-1 and one of
             four quarter turns of (k, m): every point of the shell once, since each turn leaves
             out the corner with which the next begins. More than 64 bits are needed for m with
             probability below 2k/2**64: below 2**-39 even for the smallest rate.
             *Accept*: U < p = exp(-d), d = a e, e = abs(x) - k = m**2/(sqrt(k**2 + m**2) + k)
             without cancellation. In floats, u = 2**-53: k and m are exact (below 2**40, see
             below); m**2 is off by u relatively, the root by 2u, the divisor by 3u, e by 5u, the
             float of a and the product add 2u, and second orders are covered by taking 8u. So y,
             exp_negative of that float, is off relatively by at most (8 d + 16) u
             (`exp_negative`: 8u), and with the roundings of the bounds themselves
             y (1 - s) <= p <= y (1 + s), s = (16 d + 32) u. The first 53 bits w of U decide unless
             2**53 y (1 - s) < w + 1 and w < 2**53 y (1 + s): a share below 2**-46, since
             (16 d + 32) exp(-d) <= 32; more bits of U and balls decide those. Where d > 512, 512
             stands for it: nothing is surely accepted then. For a > 2**64 that number stands for
             it: as k < 2**40, d > 512 unless m = 0, d = 0.
             *Range*: a geometric draw gives up when 2**16 bits do not decide it (`LazyUniform`),
             so G < 45500/a + 8/a < 2**38 and k < 2**40
    Source   rejection from the maximum norm; Andres et al. 2013 for the continuous law
    Differs  the acceptance, at least 0.77 (pi/4 for small a), makes the number of words random;
             here it is constant for a size: so many proposals are drawn that, except with
             probability 2**-48, enough are accepted; then another batch is drawn
    Checked  tests/sampling/test_planar.py
    """

    rate: Fraction
    centre: Coin
    digits: Digits

    def draw(self, bits: Bits, size: int) -> NDArray[Any]:
        out = np.empty(size, POINT)
        count, done = proposals(size, _ACCEPTANCE), 0
        while done < size:
            for start in range(0, count, _BLOCK):
                found = self._accepted(bits, min(_BLOCK, count - start), size - done)
                out[done : done + found.size] = found
                done += found.size
        return out

    def _accepted(self, bits: Bits, count: int, need: int) -> NDArray[Any]:
        """The first `need` accepted ones of `count` proposals, or all if fewer."""
        shell, across = self._proposed(bits, count)
        word = words(bits, count, np.uint64)
        side = (word & _SIDE).view(np.int64)  # bits that the uniform below does not use
        uniform = (word >> _UNIFORM_SHIFT).view(np.int64)
        chosen = accepted(
            uniform,
            self._acceptance(shell, across),
            need,
            lambda n: self._decided(bits, int(shell[n]), int(across[n]), int(uniform[n])),
        )
        return turned(shell[chosen], across[chosen], side[chosen])

    def _proposed(self, bits: Bits, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The shells k, and along one side of each a place m from -k to k-1."""
        shell = self.digits.draw(bits, count).astype(np.int64, copy=False)
        shell += self.digits.draw(bits, count).astype(np.int64, copy=False)
        shell += 1
        shell[self.centre.draw(bits, count)] = 0
        far = np.flatnonzero(shell >= _FAR_SHELL)
        lengths = (2 * shell).astype(np.uint64)
        lengths[far] = 0
        across = below_each(bits, lengths)
        for n in far:
            across[n] = UniformBelow(2 * int(shell[n])).draw(bits, 1)[0]
        across -= shell
        return shell, across

    def _acceptance(
        self, shell: NDArray[np.int64], across: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Floats that enclose 2**53 times the probability of accepting each proposal."""
        k, square = shell.astype(np.float64), across.astype(np.float64)
        square *= square
        divisor = k * k
        divisor += square
        np.sqrt(divisor, out=divisor)
        divisor += k
        np.maximum(divisor, 1.0, out=divisor)  # 0 at the point 0 only
        square /= divisor
        square *= nearest(min(self.rate, Fraction(1 << 64)))
        np.minimum(square, LARGEST_ARGUMENT, out=square)
        slack = square * (16.0 * 2.0**-53)
        slack += 32.0 * 2.0**-53
        y = exp_negative(square)
        y *= 2.0**53
        slack *= y
        return y - slack, y + slack

    def _decided(self, bits: Bits, shell: int, across: int, uniform: int) -> bool:
        """Accept or not, exactly."""
        if across == 0:
            return True
        square = across * across

        def probability() -> arb:
            further = square / (arb(shell * shell + square).sqrt() + shell)
            return (-arb_of(self.rate) * further).exp()

        return LazyUniform(bits, uniform, 53).below(enclosure_of(probability))


def shells(rate: Fraction) -> Shells:
    """The tables of a rate."""

    def centre() -> arb:
        q = (-arb_of(rate)).exp()
        none = (-arb_of(rate)).expm1() ** 2
        return none / (none + 8 * q)

    return Shells(rate, coin(enclosure_of(centre)), digits(1 / rate, signed=False))


def turned(
    shell: NDArray[np.int64], across: NDArray[np.int64], side: NDArray[np.int64]
) -> NDArray[Any]:
    """The points (k, m) after `side` quarter turns: (k, m), (-m, k), (-k, -m), (m, -k)."""
    odd = (side & 1).astype(np.bool_)
    out = np.empty(shell.size, POINT)
    sign = 1 - (side & 2)  # a half turn changes both signs
    out["i"] = np.where(odd, -across, shell) * sign
    out["j"] = np.where(odd, shell, across) * sign
    return out


PLACES = 53
RADIUS_ERROR = Fraction(1, 1 << 47)  # of `unit_radius`, whose results stay below 42
_CLOSE = 2.0**-28  # how near a guess must be for the last step to be proved
_SERIES = tuple(1 / (factorial(k) * (k + 2)) for k in range(24))
_PRECISION = 192

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Words = NDArray[np.uint64]


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


def _radius_by_balls(share: Fraction, *, tail: bool) -> float:
    with working_precision(_PRECISION):
        target = arb_of(1 - share if tail else share)
        return float(least(lambda x: 1 - survival(x) >= target, places=60))


def _below_median(share: Floats) -> tuple[Floats, Mask]:
    root = np.sqrt(share + share)
    guess = root * (1 + root * (1 / 3 + root * (0.153 + root * 0.192)))
    for _ in range(3):
        guess, _ = _step_below(share, _within(guess, 1e-9, 1.7))
    return _step_below(share, _within(guess, 1e-9, 1.7))


def _step_below(share: Floats, guess: Floats) -> tuple[Floats, Mask]:
    """One Newton step in ln x: C = x**2 series(x), and d ln C/d ln x = (1-C)/((1+x) series(x))."""
    series = alternating(_SERIES, guess)
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


def survival(radius: Fraction) -> arb:
    """P[radius > x] = (1+x) e**-x, at the working precision."""
    x = arb_of(radius)
    return (1 + x) * (-x).exp()


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
