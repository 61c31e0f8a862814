"""The largest losses of a lattice, one by one.

Theorem  if the losses of every part are its greatest one less whole multiples of g, those of the
         sum are the sum G of the greatest less jg, with the coefficients of the product of the
         power series sum of P[L_i = g_i - jg] v**j as masses. D(x) needs only j < (G - x)/g
Checked  tests/privacy/accounting/test_engines.py
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from flint import arb, arb_series, ctx

from lastbit.exact import arb_of, working_precision
from lastbit.privacy.accounting.composition import Composition

MOST_LOSSES = 200
_ENOUGH_BITS = 64
_HIGHEST_PRECISION = 1 << 12


@dataclass(frozen=True, slots=True)
class Top:
    """The greatest loss, the spacing, and the masses from there downwards."""

    greatest: Fraction
    spacing: Fraction
    masses: tuple[arb, ...]
    precision: int

    def bounds(self, x: Fraction) -> tuple[arb, arb] | None:
        """D(x) from below and from above; None if x is below all the losses that are known."""
        count = max(math.ceil((self.greatest - x) / self.spacing), 0)
        if count > len(self.masses) <= 2 * self.greatest / self.spacing:
            return None
        count = min(count, len(self.masses))
        with working_precision(self.precision):
            total = arb(0)
            for j in range(count):
                total -= self.masses[j] * arb_of(x - self.greatest + j * self.spacing).expm1()
            return total.lower().max(arb(0)), total.upper()


def top(composition: Composition, count: int) -> Top | None:
    """The largest losses of a composition, if it has a greatest one and lies on a lattice."""
    grid, greatest = composition.grid(), composition.greatest()
    if grid is None or greatest is None or not 0 < count <= MOST_LOSSES:
        return None
    count = min(count, int(2 * greatest / grid.spacing) + 1)  # losses end at -greatest
    precision = 128 + 4 * composition.releases.bit_length()
    while precision <= _HIGHEST_PRECISION:
        found = _masses(composition, grid.spacing, count, precision)
        if found is None:
            return None
        if all(mass.rel_accuracy_bits() > _ENOUGH_BITS or mass == 0 for mass in found):
            return Top(greatest, grid.spacing, tuple(found), precision)
        precision *= 2
    return None


def _masses(
    composition: Composition, spacing: Fraction, count: int, precision: int
) -> list[arb] | None:
    """The masses of the largest losses; None if some part does not know its own."""
    with working_precision(precision):
        before, ctx.cap = ctx.cap, count
        try:
            total = arb_series([0], prec=count)
            for part, times in composition.parts:
                assert part.grid is not None
                stride = int(part.grid.spacing / spacing)
                masses = part.masses(-(-count // stride))
                if masses is None:
                    return None
                spread = [arb(0)] * ((len(masses) - 1) * stride + 1)
                spread[::stride] = masses
                total += arb_series(spread[:count], prec=count).log() * times
            found = list(total.exp() * composition.constant())
        finally:
            ctx.cap = before
    return (found + [arb(0)] * count)[:count]
