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
from lastbit.privacy.accounting.single import closed
from lastbit.privacy.accounting.subsampling import SampledLaplace, SampledNormal

# Second differences of neighbouring values cancel.
_DOT_PRECISION = 512
_MOST_DOTS = 1 << 13
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
def _masses(dots: Dots) -> tuple[list[arb], arb]:
    """The masses of the dots, and what is told."""
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
        return found_masses, heights[-1].upper()


@dataclass(frozen=True, slots=True)
class Connected:
    """A composition of connected dots."""

    listed: Lattice
    told: arb
    shift: Fraction | None

    def bounds(self, x: Fraction) -> tuple[arb, arb]:
        """D(x) from below and from above."""
        low = arb(0) if self.shift is None else self.listed.bounds(x + self.shift)[0]
        with working_precision(PRECISION):
            return low, (self.listed.bounds(x)[1] + self.told).upper()


def connected(composition: Composition, order: float, chance: float) -> Connected | None:
    """The composition with every release replaced by its dots; None if they are too many."""
    releases = composition.releases
    if composition.told or releases > MOST_SAMPLES:
        return None
    sampled = []
    for part, count in composition.parts:
        if not isinstance(part, SampledNormal | SampledLaplace):
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
        return Connected(listed, replaced.infinite().upper(), shift)


def _starts_below(dots: Dots) -> bool:
    """Whether the first dot is certainly not above the least loss."""
    least = dots.inner.least()
    return least is not None and bool(arb_of(dots.first * dots.spacing) <= least)


def _range(part: SampledNormal | SampledLaplace, chance: float) -> tuple[float, float]:
    """Dots from the least loss, or where delta is nearly 1 - exp(x), to where it is nothing."""
    with working_precision(128):
        high, low = 0.25, -0.25
        goal = arb(chance) * arb(2) ** -40
        while high < 1e4 and not _height(part, high).upper() < goal:
            high *= 1.25
        least = part.least()
        if least is not None:
            return float(least.mid()) - 0.001, high
        while low > -40.0 and not (_height(part, low) + arb(low).expm1()).upper() < arb(2) ** -30:
            low *= 1.25
    return low, high


def _height(part: Component, x: float) -> arb:
    found = closed(part, Fraction(x))
    assert found is not None
    return found
