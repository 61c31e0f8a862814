"""How far sums of many noises stray: half-widths of intervals for what levels were made to agree.

Law      S = sum of c_i X_i, independent noises X_i that are discrete Laplace, of scales s_i, or
         discrete Gaussian, of variances v_i; abs(c_i) as small and as many as may be
Theorem  P[abs(S) > t] <= 1/20 for the t below

(L) Discrete Laplace. t = d + z root(A), with A = sum of c_i**2 (v_i + 1/2), v_i the variance of
    X_i, d = 3 root(sum of c_i**2 / 12), and the z of `_TABLE` for a D not below the sum of
    (c_i**2 (v_i + 1/2))**2 over A**2.
    Proof. Let U_i be uniform on [-1/2, 1/2], h_i = 1/(2 s_i). At x = k + u, k = 0, 1 ...,
    abs(u) <= 1/2, P[abs(X_i + U_i) >= x] = exp(-2 h k)(1 - 2u tanh h) (`reach.py`, L). Let L_i be a
    continuous Laplace variable with P[abs(L_i) >= x] = exp(-2 x tanh h). Since tanh h <= h and
    1 - y <= exp(-y), the former is at most the latter: abs(X_i + U_i) is stochastically at most
    abs(L_i). All of these are symmetric and unimodal, so the same holds for their sums with weights
    c_i (Birnbaum, Anderson). The variance of L_i is 1/(2 tanh(h)**2) = 1/(2 sinh(h)**2) + 1/2 =
    v_i + 1/2.
    L_i is root(2 E_i) N_i over 2 tanh h, E_i exponential, N_i normal: so the sum of c_i L_i is
    root(W) N, N normal, W = sum of c_i**2 (v_i + 1/2) E_i, of mean A and E[W**2] <= A**2 (1 + D).
    A row (D, z, a, b, c) has a + b w + c w**2 >= 2 Q(z/root(w)) for all w >= 0, Q the normal tail,
    and a + b + c (1 + D) <= (1 - exp(-9/2))/20. So P[abs(sum of c_i L_i) > z root(A)] is at most
    that. Last, R = sum of c_i U_i is symmetric and independent of S, and P[R > d] <= exp(-9/2),
    since E[exp(r U)] = sinh(r/2)/(r/2) <= exp(r**2/24) (Chernoff). Where abs(S) > t, and R does not
    bring it back by more than d, abs(S + R) > t - d:
    P[abs(S) > t] (1 - exp(-9/2)) <= P[abs(S + R) > t - d] <= (1 - exp(-9/2))/20

(G) Discrete Gaussian. t = 3 root(v) m + z root(V + m**2 v), with m not below the largest abs(c_i),
    V = sum of c_i**2 v_i, v = max(1/4, the least v_i / 2**16), z as `laws/sums.py` asks for.
    Proof. Its theorem for S/m' with m' the largest abs(c_i), and that noise first: other c_i over
    m' are at most 1, so 1/w_i may be 2/(least v_i); t grows with m. Where noise is too fine for
    that z, t = root(2 ln(40) V) (Chernoff), as E[exp(r X_i)] <= exp(r**2 v_i/2): it is that times
    a sum of normal densities over shifted integers, over the one that is not shifted, the largest

Rounding. Where rows weigh 1 << 20 in the noisy numbers and answers show whole rows, each number is
off by 1/2 more at most: t + sum of abs(c_i)/2.
Source   peakedness: Birnbaum 1948, Anderson 1955; discrete Gaussian noise: CKS20
Differs  floats with positive terms alone, then 2**-30 of it more than all roundings together
Checked  tests/release/test_levels_reach.py: the table in balls; laws of sums, exactly
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from lastbit.exact import arb_of, root_above, upper, working_precision
from lastbit.laws import DiscreteGaussian, DiscreteLaplace, normal_reach
from lastbit.release.levels_tree import LevelTree, TreeWeights, noise_sums
from lastbit.release.reach import BETA, MeasureNoise

_MORE = 1 + 2.0**-30
_HALF = Fraction(1, 2)

_TABLE: tuple[tuple[str, str, str, str, str], ...] = (
    ("0", "1.965", "0.001128910", "-0.017169181", "0.065457515"),
    ("1/64", "1.974", "0.001010102", "-0.015975853", "0.063364467"),
    ("1/32", "1.983", "0.000923109", "-0.015049672", "0.061546304"),
    ("3/64", "1.991", "0.000820159", "-0.013973726", "0.059745951"),
    ("1/16", "1.999", "0.000739341", "-0.013085557", "0.058138056"),
    ("3/32", "2.015", "0.000585359", "-0.011320659", "0.055019952"),
    ("1/8", "2.031", "0.000457528", "-0.009737647", "0.052162842"),
    ("3/16", "2.061", "0.000258196", "-0.006942353", "0.047215087"),
    ("1/4", "2.089", "0.000123979", "-0.004563645", "0.043065042"),
    ("5/16", "2.115", "0.000045809", "-0.002603782", "0.039620624"),
    ("3/8", "2.141", "0.000009767", "-0.000993985", "0.036619403"),
    ("1/2", "2.187", "0.000003027", "0.002458832", "0.031316949"),
    ("5/8", "2.23", "0.000003059", "0.005806490", "0.026809536"),
    ("3/4", "2.268", "0.000003095", "0.008827691", "0.023183084"),
    ("7/8", "2.303", "0.000003085", "0.011843213", "0.020021285"),
    ("1", "2.334", "0.000003081", "0.014508871", "0.017461486"),
)
"""D, z and the quadratic a + b w + c w**2 of (L), found by linear programming; rows by D."""


def half_widths(
    tree: LevelTree,
    weights: TreeWeights,
    noises: Sequence[MeasureNoise | None],
    one: int,
) -> list[NDArray[np.float64]]:
    """Half of the width of each estimate's interval, in rows, by level.

    `noises` has that of each level, None where numbers are given; `one` is what a row weighs.
    """
    known = [noise for noise in noises if noise is not None]
    largest = max(noise.variance for noise in known) + _HALF
    variances = [Fraction(0) if noise is None else noise.variance for noise in noises]

    def sums(power: int, each: Sequence[Fraction]) -> list[NDArray[np.float64]]:
        return noise_sums(tree, weights, power, each)

    present = [Fraction(noise is not None) for noise in noises]
    if all(isinstance(noise.law, DiscreteLaplace) for noise in known):
        wide = [p * (v + _HALF) / largest for v, p in zip(variances, present, strict=True)]
        halves = _laplace(sums(2, wide), sums(4, [w * w for w in wide]), sums(2, present), largest)
    elif all(isinstance(noise.law, DiscreteGaussian) for noise in known):
        scaled = [v / largest for v in variances]
        least = min(noise.variance for noise in known)
        number = sum(size for size, p in zip(tree.sizes, present, strict=True) if p)
        halves = _gaussian(sums(2, scaled), sums(4, present), (largest, least), number)
    else:
        raise AssertionError("levels have noise of one kind")  # prices are of one kind
    more = sums(1, present) if one != 1 else [np.zeros(size) for size in tree.sizes]
    return [(half / one + off / 2) * _MORE for half, off in zip(halves, more, strict=True)]


def _laplace(
    spread: list[NDArray[np.float64]],
    fourth: list[NDArray[np.float64]],
    plain: list[NDArray[np.float64]],
    largest: Fraction,
) -> list[NDArray[np.float64]]:
    """(L); `spread` and `fourth` are over `largest` and its square."""
    ends = np.array([float(Fraction(row[0])) for row in _TABLE])
    reaches = np.array([float(Fraction(row[1])) * _MORE for row in _TABLE])
    found = []
    for a, b, c in zip(spread, fourth, plain, strict=True):
        with np.errstate(invalid="ignore"):
            excess = np.where(a > 0, b / (a * a), 0.0)
        place = np.searchsorted(ends, np.minimum(excess * _MORE, 1.0))
        found.append(
            3 * np.sqrt(c / 12) + reaches[place] * np.sqrt(a) * float(root_above(largest)) * _MORE
        )
    return found


def laplace_reach(excess: Fraction) -> Fraction:
    """The z of (L) for a D from 0 to 1."""
    place = bisect_left([Fraction(row[0]) for row in _TABLE], min(excess, Fraction(1)))
    return Fraction(_TABLE[place][1])


def _gaussian(
    spread: list[NDArray[np.float64]],
    fourth: list[NDArray[np.float64]],
    ends: tuple[Fraction, Fraction],
    number: int,
) -> list[NDArray[np.float64]]:
    """(G); `spread` is over the first of `ends`."""
    largest, least = ends
    blur = max(Fraction(1, 4), least / (1 << 16))
    widths = [least * blur / (least + blur), *[least / 2] * (number - 1)]
    z = normal_reach(BETA, widths)
    root = float(root_above(largest)) * _MORE
    if z is None:
        with working_precision(128):
            steep = upper((2 * arb_of(2 / BETA).log()).sqrt())
        return [np.sqrt(a) * (steep * root) for a in spread]
    far, wide = 3 * math.sqrt(blur), float(z) * root
    share = float(blur / largest)
    # the largest coefficient is at most the fourth root of the sum of fourth powers
    return [
        far * np.sqrt(np.sqrt(b)) + wide * np.sqrt(a + np.sqrt(b) * share)
        for a, b in zip(spread, fourth, strict=True)
    ]
