"""Few releases about samples: the profile of one of them, connected dot by dot.

Law      H(y) = delta(ln y) of one release is convex and falling, H(0) = 1. Join its exact values at
         the dots y_j = exp(x_j), x_j = jh, by straight lines, from (0, 1) on; beyond the last dot H
         stays what it is there
Theorem  the lines lie above H, so the pair they belong to dominates: its losses are the x_j, with
         P[L = x_j] = y_j (s_(j+1) - s_j), s_j the slope before dot j, and P[L = oo] is H at the
         last dot. They lie on a lattice, and compose in whole numbers (`lattice.py`)
Theorem  if the first dot is not above the least loss, the lines at x + h are not above delta(x):
         there is a dot between x and x + h, where both agree, or both are at most 1 - exp(x). So n
         releases have at least the D(x + nh) of the finite losses of their dots
Theorem  (closer) let t_i be P[L = oo] of the dots of release i, and T_i >= P[L_i > its last dot].
         With U at least the probability that the finite sum of the dots is within (n+1)h of x,
             D_dots(x) - D(x) <= sum of t_i + n (exp(h) - 1)/4 (U + sum of T_i)
         Proof: replace one release after the other by its dots. Each time D grows by E[e(x - R)],
         R the sum of the others, e the chord less H. In the cell from x_j to x_(j+1) a chord of a
         convex function is above it by at most a quarter of the cell, y_j (exp(h) - 1), times the
         growth of the slope, Q[x_j < L < x_(j+1)] <= P[...]/y_j; beyond the last dot e is at most
         t_i, before the first it is 0. So E[e(x - R)] is at most t_i + (exp(h) - 1)/4 P[abs(L + R -
         x) < h].
         The dots take every loss to one of the two ends of its cell, so that each loss moves by at
         most h, unless it is above the last dot. P[L > last] <= H(last - h)/(1 - exp(-h))
Source   Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022
Differs  exact values in balls, rounded outward
Checked  tests/privacy/accounting/test_subsampling.py
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from flint import acb, arb

from lastbit.exact import arb_of, working_precision
from lastbit.privacy.accounting.component import Component, Grid
from lastbit.privacy.accounting.composition import Composition
from lastbit.privacy.accounting.lattice import MOST_CELLS, PRECISION, Lattice, lattice
from lastbit.privacy.accounting.pair import as_sampled
from lastbit.privacy.accounting.single import closed
from lastbit.privacy.accounting.subsampling import SampledLaplace, SampledNormal

# Second differences of neighbouring values cancel.
_DOT_PRECISION = 256
_MOST_DOTS = 1 << 14
MOST_SAMPLES = 200


@dataclass(frozen=True, slots=True)
class Dots(Component):
    """The pair of the connected dots first, ..., last, spacing apart."""

    inner: SampledNormal | SampledLaplace
    spacing: Fraction
    first: int
    last: int

    def told_exactly(self) -> None:
        return None

    def infinite(self) -> arb:
        return _masses(self)[1]

    @property
    def grid(self) -> Grid:
        return Grid(Fraction(0), self.spacing)

    def atoms(self, order: float) -> dict[int, arb]:
        return dict(enumerate(_masses(self)[0], self.first))

    def moment(self, z: acb) -> acb:
        terms = (m * (z * arb_of(n * self.spacing)).exp() for n, m in self.atoms(0.0).items())
        return sum(terms, acb(0))


@lru_cache(maxsize=8)
def _masses(dots: Dots) -> tuple[list[arb], arb, arb]:
    """The masses of the dots, what is told, and at most P[L > last dot]."""
    with working_precision(_DOT_PRECISION):
        places = [n * dots.spacing for n in range(dots.first, dots.last + 1)]
        heights = [arb(1)]
        for x in places:
            found = closed(dots.inner, x)
            assert found is not None
            heights.append(found.nonnegative_part())
        points = [arb(0), *(arb_of(x).exp() for x in places)]
        slopes = [
            (heights[j + 1] - heights[j]) / (points[j + 1] - points[j]) for j in range(len(places))
        ]
        slopes.append(arb(0))
        found_masses = [
            points[j + 1] * (slopes[j + 1] - slopes[j]).nonnegative_part()
            for j in range(len(places))
        ]
        beyond = heights[-2] / -(-arb_of(dots.spacing)).expm1()
        return found_masses, heights[-1].upper(), beyond.upper()


@dataclass(frozen=True, slots=True)
class Connected:
    """A composition of connected dots."""

    listed: Lattice
    told: arb
    shift: Fraction | None
    beyond: tuple[arb, arb]

    def bounds(self, x: Fraction) -> tuple[arb, arb]:
        """D(x) from below and from above."""
        below, above = self.listed.bounds(x)
        with working_precision(PRECISION):
            high = (above + self.told).upper()
            if self.shift is None:
                return arb(0), high
            low = self.listed.bounds(x + self.shift)[0]
            return low.max((below - self._above(x)).lower()), high

    def _above(self, x: Fraction) -> arb:
        """By how much D(x) of the dots is too large, at most: the last theorem."""
        assert self.shift is not None
        step = self.listed.grid.spacing
        near = self.listed.window(x - self.shift - step, x + self.shift + step)
        releases = arb_of(self.shift / step)
        return self.beyond[0] + releases * arb_of(step).expm1() / 4 * (near + self.beyond[1])


def connected(composition: Composition, order: float, chance: float) -> Connected | None:
    """The composition with every release replaced by its dots; None if they are too many."""
    releases = composition.releases
    if composition.told or releases > MOST_SAMPLES:
        return None
    sampled = []
    for given, count in composition.parts:
        part = as_sampled(given)
        if part is None:
            return None
        sampled.append((part, count, *_range(part, chance / releases)))
    wide = max(high - low for _, _, low, high in sampled)
    dots = min(_MOST_DOTS, MOST_CELLS // (2 * releases))
    spacing = Fraction(1, 1 << max(math.floor(math.log2(dots / wide)), 0))
    parts = [
        (Dots(part, spacing, math.floor(low / spacing), math.ceil(high / spacing)), count)
        for part, count, low, high in sampled
    ]
    replaced = Composition(tuple(parts), (), composition.guide)
    listed = lattice(replaced, order)
    if listed is None:
        return None
    with working_precision(PRECISION):
        bounded = all(_starts_below(dots) for dots, _ in parts)
        shift = releases * spacing if bounded else None
        told = sum((n * _masses(dots)[1] for dots, n in parts), arb(0))
        beyond = sum((n * _masses(dots)[2] for dots, n in parts), arb(0))
        return Connected(listed, replaced.infinite().upper(), shift, (told, beyond))


def _starts_below(dots: Dots) -> bool:
    """Whether the first dot is certainly not above the least loss."""
    least = dots.inner.least()
    return least is not None and bool(arb_of(dots.first * dots.spacing) <= least)


def _range(part: SampledNormal | SampledLaplace, chance: float) -> tuple[float, float]:
    """Dots from the least loss, or where delta is nearly 1 - exp(x), to where it is nothing."""
    with working_precision(128):
        high, low = 2.0**-30, -(2.0**-30)
        goal = arb(chance) * arb(2) ** -40
        while high < 1e4 and not _height(part, high).upper() < goal:
            high *= 1.25 if high > 0.01 else 2
        least = part.least()
        if least is not None:
            return float(least.mid()) * (1 + 1e-12), high
        while low > -40.0 and not (_height(part, low) + arb(low).expm1()).upper() < arb(2) ** -30:
            low *= 1.25 if low < -0.01 else 2
    return low, high


def _height(part: Component, x: float) -> arb:
    found = closed(part, Fraction(x))
    assert found is not None
    return found
