"""How far sums of discrete Gaussian noises stray: hardly further than normal ones.

Law      S = X_1 + c_2 X_2 + ... + c_j X_j, X_i discrete Gaussian of variance a_i, independent; Z is
         normal noise of a variance v > 0
Theorem  P[abs(S) > t] <= beta for t = 3 sqrt(v) + z sqrt(a_1 + v + the sum of c_i**2 a_i), if
         2 Q(z) (1 + n_1) ... (1 + n_j) <= beta Phi(3), where Q = 1 - Phi is the normal tail and
         n_i = 2 sum over k >= 1 of exp(-2 pi**2 k**2 w_i), for widths w_i with
         1/w_1 >= 1/a_1 + 1/v and 1/w_i >= 1/a_i + c_i**2/(v + a_1 + the c_k**2 a_k before i)
Proof    let g_a be the normal density of variance a. P[X_i = k] <= g_a(k), as the sum of g_a over
         the integers is at least 1 (Poisson summation). If the density of Y is at most C g_A, that
         of Y + c X is at most C times the sum over k of g_a(k) g_A(s - c k) =
         g_(A + c**2 a)(s) g_w(k - k_0), 1/w = 1/a + c**2/A, for some k_0; and the sum of
         g_w(k - k_0) over k is, by Poisson again, at most 1 + 2 sum of exp(-2 pi**2 k**2 w), which
         falls with w. From Z on, X_1 and all others in turn: the density of S + Z is at most
         (1+n_1)...(1+n_j) times that of a normal variable of variance a_1 + v + sum of c_i**2 a_i.
         Where S > t and Z >= -d, S + Z > t - d, and likewise below: so
         P[abs(S) > t] Phi(d/sqrt(v)) <= P[abs(S + Z) > t - d], here for d = 3 sqrt(v)
Source   Poisson summation of Gaussians: CKS20, Fact 18
Checked  tests/release/test_reach.py (joint laws of two noises, exactly)
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from statistics import NormalDist

from flint import arb

from lastbit.exact import arb_of, working_precision

_MOST_FACTOR = 2


def normal_reach(beta: Fraction, widths: Sequence[Fraction]) -> Fraction | None:
    """A z as the theorem asks for; None where the lattices are too coarse for it to be of use."""
    with working_precision(128):
        factor = arb(1)
        for width in set(widths):
            rate = 2 * arb.pi() ** 2 * arb_of(width)
            # k**2 >= 1 + 3 (k - 1)
            factor *= (1 + 2 * (-rate).exp() / -(-3 * rate).expm1()) ** widths.count(width)
        root_two = arb(2).sqrt()
        inside = 1 - (3 / root_two).erfc() / 2
        if not factor < _MOST_FACTOR:
            return None
        allowed = arb_of(beta) * inside / factor
        z = Fraction(NormalDist().inv_cdf(1 - float(allowed) / 2)) + Fraction(1, 1 << 30)
        while not (arb_of(z) / root_two).erfc() <= allowed:
            z *= 1 + Fraction(1, 1 << 20)
        return z
