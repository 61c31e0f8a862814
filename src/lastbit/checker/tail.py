"""Upper bounds of tails of Gaussian laws, discrete or not, with nothing but fractions and exp.

P[X >= m], m >= 1, is the sum of f(k) over k >= m, f(k) = exp(-k**2/(2v)), divided by Z, the sum
over all integers.

Few terms (v < 2**16): the terms are added up, each rounded up. From the term f(k) on, successive
ratios are at most r = f(k+1)/f(k), so what is left is at most f(k)/(1 - r). Z is at least
sqrt(2 pi v) (Poisson summation: all terms are positive), and at least any of its partial sums.

Many terms: f is convex for t >= sqrt(v), so f(k) is at most its integral over [k - 1/2, k + 1/2].
With x = (m - 1/2)/sqrt(v) >= 1 the tail is at most Q(x) = exp(-x**2/2)/sqrt(2 pi) R(x), where
R(x) = 1/(x + 1/(x + 2/(x + 3/(x + ...)))) (Laplace), and stopping at x after an even number is not
below it. Q falls, so x may be rounded down.

mu-GDP implies (epsilon, delta) with delta = Q(a) - exp(epsilon) Q(b), a = epsilon/mu - mu/2 and
b = epsilon/mu + mu/2. With q the density, exp(epsilon) q(b) = q(a), so that is q(a) (R(a) - R(b)).
q and R fall and the difference is not negative: a may be rounded down, b up, R(a) is bounded by
stopping after an even number, R(b) after an odd one.
"""

from __future__ import annotations

from fractions import Fraction

from .numbers import FARTHEST, exp_above, exp_bounds, require, sqrt_bounds

_FEW = 1 << 16
_BITS = 256
_LEVELS = 64
_PI = Fraction(314159265358979323846264338327950288419, 10**38)  # not above pi


def gaussian_tail(variance: Fraction, distance: int) -> Fraction:
    """Not below P[X >= distance].

    >>> float(gaussian_tail(Fraction(100), 50)), float(gaussian_tail(Fraction(10**8), 50000))
    (3.67159594...e-07, 2.86725917...e-07)
    """
    require(distance >= 1, "a tail starts below 1")
    if Fraction(distance**2) / (2 * variance) > FARTHEST:
        return exp_above(-FARTHEST)
    tail = _by_terms if variance < _FEW else _by_integral
    return _rounded_up(tail(variance, distance))


def _rounded_up(x: Fraction) -> Fraction:
    """Not below x, and above it by less than 2**-199 of it: powers of thousands of bits take long.

    >>> Fraction(1, 3) < _rounded_up(Fraction(1, 3)) < Fraction(1, 3) * (1 + Fraction(1, 1 << 199))
    True
    """
    shift = max(200 + x.denominator.bit_length() - x.numerator.bit_length(), 0)
    return Fraction(-((-x.numerator << shift) // x.denominator), 1 << shift)


def _by_terms(variance: Fraction, start: int) -> Fraction:
    one = 1 << _BITS
    first = exp_above(-(start**2) / (2 * variance))
    ratio = _up(exp_above(-(2 * start + 1) / (2 * variance)))
    shrink = _up(exp_above(-1 / variance))
    term, total = one, 0  # in parts of the first
    while term > 1 << (_BITS - 120) and ratio:
        total += term
        term = (term * ratio >> _BITS) + 1
        ratio = min((ratio * shrink >> _BITS) + 1, one - 1)
    total += term * one // (one - ratio) + 1
    return first * Fraction(total, one) / _whole(variance)


def _whole(variance: Fraction) -> Fraction:
    """Not above the sum over all integers."""
    exponents = (k * k / (2 * variance) for k in range(1, 9))
    few = 1 + 2 * sum((exp_bounds(-x)[0] for x in exponents if x <= FARTHEST), Fraction(0))
    return max(few, sqrt_bounds(2 * _PI * variance)[0])


def _up(number: Fraction) -> int:
    return min(-(-(number.numerator << _BITS) // number.denominator), (1 << _BITS) - 1)


def _by_integral(variance: Fraction, start: int) -> Fraction:
    x = _short((start - Fraction(1, 2)) / sqrt_bounds(variance)[1])
    require(x >= 1, "a threshold is so low that its tail is not bounded here")
    return _density(x) * _ratio(x, _LEVELS)


def pair_delta(mu: Fraction, epsilon: Fraction) -> Fraction:
    """Not below the delta that mu-GDP implies at epsilon.

    >>> float(pair_delta(Fraction(1, 4), Fraction(1)))
    2.92427...e-06
    """
    require(mu > 0 and epsilon > 0, "the conversion has no meaning")
    low, high = _short(epsilon / mu - mu / 2), _short(epsilon / mu + mu / 2) + Fraction(1, 1 << 64)
    require(low >= 1, "a mu is so large that its delta is not bounded here")
    if low * low / 2 > FARTHEST:
        return exp_above(-FARTHEST)
    far = Fraction(0) if high > _FEW else _ratio(high, _LEVELS + 1)  # R is above 0
    return _density(low) * (_ratio(low, _LEVELS) - far)


def _short(x: Fraction) -> Fraction:
    """Rounded down."""
    return Fraction(x.numerator * (1 << 64) // x.denominator, 1 << 64)


def _density(x: Fraction) -> Fraction:
    """Not below that of N(0, 1)."""
    return exp_above(-x * x / 2) / sqrt_bounds(2 * _PI)[0]


def _ratio(x: Fraction, levels: int) -> Fraction:
    """R(x), stopped after so many levels: not below it if they are even, not above if odd."""
    (top, bottom), (x_top, x_bottom) = [x.as_integer_ratio()] * 2
    for level in range(levels, 0, -1):  # x + level/quotient; to reduce each would take longer
        top, bottom = x_top * top + level * bottom * x_bottom, x_bottom * top
    return Fraction(bottom, top)
