"""Several quantiles of one expression from one noisy tree of bins.

Set-up. The bins of a measure are leaves; f neighbours make a node of the next level, and so on,
over L levels with node sizes 1, f, ..., f**(L-1). Bins that are missing in the last nodes are
empty, and publicly so. Every node's weight gets independent noise, at all levels of the same law.

Theorem 1 (sensitivity). On each level every row is in one node. So the nodes of a level are bins
like any other, and by `sensitivity.py` a unit moves them by no more than it moves bins, in every
norm of that table. Over L levels L1 is at most L times, the square of L2 at most L times that.

Law      F_p, the estimate of the weight of the first p bins, is the least-squares one given all
         noisy nodes: the best linear unbiased estimate, exact in rationals (`release/trees.py`)

Theorem 2 (its error). Let a be a vector over the leaves. Counted in the variance of one node's
noise, that of the estimate of a is v(a) = sum over l = 1 ... L-1 of (E_(l-1) - E_l)/s_l +
E_(L-1)/s_L, s_l = 1 + f + ... + f**(l-1), where E_l is the squared length of a averaged over the
nodes of size f**l.
Proof    let H be the matrix from leaves to nodes. Vectors that are constant on nodes of size
         f**(l-1) and add up to 0 on nodes of size f**l are eigenvectors of H'H: level k < l maps
         such a vector to its sums over nodes of size f**k, which H' spreads again, a factor f**k;
         higher levels map it to 0. So the eigenvalue is s_l, and s_L for vectors constant on the
         largest nodes. These spaces are orthogonal and span all, and the variance of the estimate
         of a is a'(H'H)^-1 a. The part of a in the space of l has squared length E_(l-1) - E_l

Theorem 3 (coefficients). Each noise enters the estimate of a, for a within [-q, 1-q], with a
coefficient of at most 1. Proof. With w = (H'H)^-1 a, that of a node u of size f**k is the sum of w
over u. With m_l the average of a over the node of size f**l that holds u, it is f**k (m_k/s_(k+1) -
sum over l > k of m_l (1/s_l - 1/s_(l+1))), so at most f**k/s_(k+1) <= 1: the m lie within [-q, 1-q]
and the sum of 1/s_l - 1/s_(l+1) is at most 1/s_(k+1).

Theorem 4 (reach). Let S be the error of F_p - q F_all, for a = 1 on the first p leaves, less q.
P[abs(S) > t] <= 1/20 for
- Gaussian nodes of variance b: t = sqrt(v(a)) (3 sqrt(c) + z sqrt(b + c)), by `laws/sums.py` for
  S over its largest coefficient, which is at most sqrt(v(a)); others, in falling order, have
  widths of at least b/2;
- Laplace nodes of scale s: t = s (ln 40 - v(a) ln(1 - x**2))/x for any 0 < x < 1 (Chernoff): at
  x/s the moment generating function of discrete Laplace noise times c <= 1 is at most
  1/(1 - c**2 x**2) <= (1 - x**2)**-(c**2).
  Proof. It is 1/(1 - (cosh y - 1)/(cosh(1/s) - 1)), y = c x/s, and (cosh y - 1)/y**2 rises; and
  -ln(1 - x)/x rises too.

Theorem 5 (intervals). Let a quantile v of level q lie in bin j: the weight of the first j bins is
at most q N, that of the first j+1 at least q N. So in all but 1/20 of releases F_j - q F_all <= t_j
and F_(j+1) - q F_all >= -t_(j+1): each fails on its own side in 1/40, as S is symmetric. So v is
not before the first bin for which the second holds, nor behind the last for which the first does;
and each end may be that of another level, the lower one of a lower level, the upper of a higher

Theorem 6 (shares). Let m = F/N be the true share of the first p bins. All m of [0, 1] with F_p - m
F_all <= t(m), where t(m) is that of Theorem 4 for the level m, hold it in all but 1/40 of releases,
and likewise on the other side. v(a) is a quadratic in the level that is nowhere negative, so its
root is convex, and so is t (for Laplace nodes with one x for all m): those that are excluded form
an interval, as in `release/reach.py`. Values up to a point lie in the bins before it and in its
own, so the share up to it is between those of two running sums

Source   hierarchies and consistency: Hay, Rastogi, Miklau, Suciu 2010; Honaker 2015
Differs  error and intervals are exact or certified, for any level; the shape is chosen by them
Checked  tests/tables/test_tree.py
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache

from flint import fmpq

from lastbit.exact import arb_of, root_above, upper, working_precision
from lastbit.laws import DiscreteGaussian, DiscreteLaplace, normal_reach

_BETA = Fraction(1, 20)
_BRANCHINGS = (2, 3, 4, 6, 8, 16, 32)
_NARROW = Fraction(1, 1 << 16)
_RATES = tuple(Fraction(n, 16) for n in range(2, 16))
_TRIED = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """The shape of a tree over bins; `levels` counts that of the bins too."""

    bins: int
    branching: int
    levels: int

    @property
    def sizes(self) -> tuple[int, ...]:
        """Of the nodes, level by level."""
        return tuple(self.branching**level for level in range(self.levels))

    @property
    def leaves(self) -> int:
        """The bins, and empty ones that fill the last largest node."""
        return -(-self.bins // self.sizes[-1]) * self.sizes[-1]

    @property
    def nodes(self) -> int:
        """On all levels."""
        return sum(self.leaves // size for size in self.sizes)

    def sums(self, weights: Sequence[int]) -> list[list[int]]:
        """The weights of the nodes, level by level from the leaves.

        >>> Tree(bins=5, branching=2, levels=3).sums([1, 2, 3, 4, 5])
        [[1, 2, 3, 4, 5, 0, 0, 0], [3, 7, 5, 0], [10, 5]]
        """
        found = [[*weights, *[0] * (self.leaves - len(weights))]]
        for _ in range(self.levels - 1):
            below = found[-1]
            step = self.branching
            found.append([sum(below[i : i + step]) for i in range(0, len(below), step)])
        return found

    def variance(self, first: int, level: Fraction) -> Fraction:
        """v(a) of Theorem 2 for a = 1 on the first leaves, less the level on all.

        In fmpq, flint's rationals: as exact as Fractions, and quicker.
        """
        a, d, leaves = level.numerator, level.denominator, self.leaves
        seen, size, total, before = 0, 1, fmpq(0), None
        for _ in range(self.levels):
            full, rest = divmod(first, size)
            empty = leaves // size - full - (rest > 0)
            # the squared length of d a, averaged over nodes of this size
            energy = fmpq(size * (full * (d - a) ** 2 + empty * a**2))
            if rest:
                energy += fmpq((rest * d - size * a) ** 2, size)
            if before is not None:
                total += (before - energy) / seen
            before, seen, size = energy, seen + size, size * self.branching
        assert before is not None
        total = (total + before / seen) / d**2
        return Fraction(int(total.p), int(total.q))


@cache
def tree_over(bins: int, *, gaussian: bool) -> Tree:
    """The shape with the least worst error of a median at one price, or hardly more.

    Of shapes within a twentieth of the least variance, the one with the fewest levels.
    """
    found = []
    for branching in _BRANCHINGS:
        levels = 1
        while branching ** (levels - 1) < bins:
            levels += 1
        for shape in (
            Tree(bins=bins, branching=branching, levels=depth)
            for depth in {levels, max(levels - 1, 1)}
        ):
            places = range(0, bins + 1, max(1, bins // _TRIED))
            worst = max(shape.variance(place, Fraction(1, 2)) for place in places)
            price = shape.levels if gaussian else shape.levels**2
            found.append((worst * price, shape))
    enough = min(error for error, _ in found) * Fraction(21, 20)
    good = [(shape.levels, error, shape.branching) for error, shape in found if error <= enough]
    levels, _, branching = min(good)
    return Tree(bins=bins, branching=branching, levels=levels)


@cache
def tree_variances(tree: Tree, level: Fraction) -> tuple[Fraction, ...]:
    """The v(a) for the first 0, 1, ... bins less the level."""
    return tuple(tree.variance(first, level) for first in range(tree.bins + 1))


@lru_cache(maxsize=64)
def tree_reach(
    tree: Tree, law: DiscreteGaussian | DiscreteLaplace, level: Fraction
) -> tuple[Fraction, ...] | None:
    """The t of Theorem 4 for the first 0, 1, ... bins; None where noise is too coarse for it."""
    variances = tree_variances(tree, level)
    if isinstance(law, DiscreteGaussian):
        factor = _gaussian_factor(tree, law.variance)
        return None if factor is None else tuple(factor * root_above(v, 32) for v in variances)
    return tuple(law.scale * _laplace_reach(variance) for variance in variances)


def worst_reach(
    tree: Tree, law: DiscreteGaussian | DiscreteLaplace, level: Fraction
) -> Fraction | None:
    """The greatest of them."""
    worst = max(tree_variances(tree, level))
    if isinstance(law, DiscreteLaplace):
        return law.scale * _laplace_reach(worst)
    factor = _gaussian_factor(tree, law.variance)
    return None if factor is None else factor * root_above(worst, 32)


@dataclass(frozen=True, slots=True)
class ShareReach:
    """The t(m) of Theorem 6 for the first p bins: how far F_p - m F_all may be off.

    In fmpq. `factor` is the square of what the root of v is multiplied by, or None for a line in v.
    """

    quadratic: tuple[fmpq, fmpq, fmpq]
    factor: fmpq | None
    line: tuple[fmpq, fmpq]

    def exceeded(self, gap: fmpq, share: fmpq) -> bool:
        """Whether the gap is beyond t(share), exactly."""
        if gap <= 0:
            return False
        a, b, c = self.quadratic
        variance = a + share * (b + share * c)
        if self.factor is not None:
            return bool(gap * gap > self.factor * variance)
        return bool(gap > self.line[0] + self.line[1] * variance)

    def mirrored(self) -> ShareReach:
        """That of the bins behind: m becomes 1 - m."""
        a, b, c = self.quadratic
        return ShareReach((a + b + c, -b - 2 * c, c), self.factor, self.line)


def share_reach(
    tree: Tree, law: DiscreteGaussian | DiscreteLaplace, first: int
) -> ShareReach | None:
    """That of the first bins; None where noise is too coarse for it."""
    found = (tree.variance(first, Fraction(n, 2)) for n in range(3))
    low, middle, high = (fmpq(v.numerator, v.denominator) for v in found)
    square = 2 * (low + high) - 4 * middle
    quadratic = (low, high - low - square, square)
    if isinstance(law, DiscreteGaussian):
        factor = _gaussian_factor(tree, law.variance)
        if factor is None:
            return None
        squared = factor**2
        return ShareReach(quadratic, fmpq(squared.numerator, squared.denominator), (fmpq(0),) * 2)
    scale = fmpq(law.scale.numerator, law.scale.denominator)
    start, slope = min(_chernoff_lines(), key=lambda line: line[0] + middle * line[1])
    return ShareReach(quadratic, None, (scale * start, scale * slope))


def _gaussian_factor(tree: Tree, variance: Fraction) -> Fraction | None:
    blur = max(Fraction(1, 4), variance * _NARROW)
    widths = [variance * blur / (variance + blur), *[variance / 2] * (tree.nodes - 1)]
    z = normal_reach(_BETA, widths)
    return None if z is None else 3 * root_above(blur, 32) + z * root_above(variance + blur, 32)


def _laplace_reach(variance: Fraction) -> Fraction:
    """The least (ln 40 - v ln(1 - x**2))/x over some x, rounded up."""
    v = fmpq(variance.numerator, variance.denominator)
    best = min(start + v * slope for start, slope in _chernoff_lines())
    return Fraction(int(best.p), int(best.q))


@cache
def _chernoff_lines() -> tuple[tuple[fmpq, fmpq], ...]:
    """For each x, ln 40/x and -ln(1 - x**2)/x, rounded up."""
    with working_precision(64):
        lines = [
            (arb_of(2 / _BETA).log() / arb_of(x), -arb_of(1 - x**2).log() / arb_of(x))
            for x in _RATES
        ]
    pairs = [[Fraction(upper(number)) for number in line] for line in lines]
    return tuple(
        (fmpq(a.numerator, a.denominator), fmpq(b.numerator, b.denominator)) for a, b in pairs
    )
