"""Discrete Gaussian noise as Gaussian noise: the mu with which a vector of it is mu-GDP.

Law      P[X = k] proportional to exp(-k**2/(2v)) on the integers; mu-GDP says that no test tells
         two inputs apart better than N(0, 1) from N(mu, 1)
Theorem  (one step) let 0 < x <= 12 with x (1 - x/12) >= 1/v. Then X and X + 1 are sqrt(x)-GDP.
         (vectors) independent noise in any number of coordinates, inputs that differ by whole steps
         d_i with sum d_i**2 <= D: the release is sqrt(D x)-GDP
Proof    Let p_k = P[X = k], Q(k) = P[X >= k], T the upper tail of N(0, 1), t_k with T(t_k) = Q(k),
         m = sqrt(x). Half-lines are the best tests, so the greatest power at level Q(k) is Q(k-1),
         and it is linear between those levels; the power of N(m, 1) against N(0, 1) at level T(t)
         is T(t - m), concave in the level. So it is enough that t_(k+1) - t_k <= m for every k.

         1. *Short intervals.* w(y) = T(y) - T(y+m) is the mass of [y, y+m]. Then
         (ln w)'' = -1 + Var(U), U with density proportional to exp(-y u - u**2/2) on [0, m]. It is
         log-concave; compare it with the density proportional to exp(c u) on [0, m] of the same
         mean. The ratio of the two is log-concave too, so the latter is the larger one near both
         ends and the smaller one between: with equal masses and means, its variance is larger. It
         is m**2/4 (1/s**2 - 1/sinh(s)**2), s = c m/2, and at most m**2/12: the series
         1/sinh(s)**2 = 1/s**2 + 2 sum over n >= 1 of (s**2 - a)/(s**2 + a)**2, a = pi**2 n**2, has
         terms of at least -1/a each, and 2 sum 1/(pi**2 n**2) = 1/3. Hence (ln w)'' <= x/12 - 1,
         and ln w(y+m) - 2 ln w(y) + ln w(y-m) <= -x (1 - x/12) <= -1/v.

         2. *A convex ratio.* Fix k and cut the line at t_k + j m, j in Z, into the masses
         r_j = w(t_k + j m). The second difference of ln p_(k+j) in j is -1/v, so
         L_j = ln(p_(k+j)/r_j) is convex in j.

         3. *Its sign.* By the choice of t_k the sum of p_(k+j) - r_j over j >= 0 is 0, and so it is
         over j < 0. If L_0 > 0, then L_j < 0 for some j > 0 and L_j <= 0 for some j < 0, which no
         convex L does. So p_k <= r_0, Q(k+1) = Q(k) - p_k >= T(t_k) - r_0 = T(t_k + m), and
         t_(k+1) <= t_k + m.

         Vectors: d steps in one coordinate are d tests one after the other, each of power at most
         that of m: together at most that of d m, for T(t) goes to T(t - d m). Coordinates are
         independent, and Gaussian pairs add up by their squares (Dong, Roth, Su 2022).  []
Differs  the least x is 6 - 6 sqrt(1 - 1/(3v)); for v < 1/3 there is none. The step in the middle is
         about (1 + 1/(24v))/sqrt(v), and no smaller mu is true; for v = 1, 4, 25 the root of x is
         above it by 0.34 %, 0.016 %, 0.0004 %. Here x is rounded up to 64 binary digits, and the
         inequality of the theorem is evaluated, in fractions, at the very x that is returned
Checked  tests/privacy/test_gaussian_pair.py
"""

from __future__ import annotations

from fractions import Fraction

from lastbit.errors import InvalidParameter
from lastbit.exact import floor_log2, root_below

LEAST_VECTOR_VARIANCE = Fraction(1, 3)
"""Of the noise, in steps squared: below it no Gaussian pair is proved."""

_BITS = 64


def step_mu_squared(variance: Fraction) -> Fraction:
    """About the least x of the theorem: mu**2 for inputs one step apart.

    >>> float(step_mu_squared(Fraction(4)))
    0.255437...
    """
    if variance < LEAST_VECTOR_VARIANCE:
        raise InvalidParameter(
            "variance",
            problem="is below 1/3 of a step squared, where no Gaussian pair is proved for vectors",
            remedy="add more noise, or compose the ZCDP guarantees",
        )
    least = 2 / (variance * (1 + root_below(1 - LEAST_VECTOR_VARIANCE / variance, 2 * _BITS)))
    unit = Fraction(2) ** (floor_log2(least) - _BITS)
    found = -(-least // unit) * unit
    assert 0 < found <= 12 and found * (1 - found / 12) >= 1 / variance
    return found
