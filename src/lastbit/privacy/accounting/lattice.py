"""Losses on a lattice, as tilted masses in whole numbers: a second engine, to check the first.

Theorem  let the masses m_x exp(c x) be rounded down, or dropped, and convolved exactly, again and
         again. With S the sum of what is left, and M the product of the moments at c,
             D_left(x) <= D(x) <= D_left(x) + kappa(c) exp(-cx) (M - S)
         What is missing is a measure with the tilted mass M - S, and the moment bound
         (`contour.py`) holds for every measure. One number certifies all rounding and truncation
Differs  no sum along a line, no aliases, no float: nothing is shared with `contour.py` but moments
Checked  tests/privacy/accounting/test_engines.py
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from flint import acb, arb, fmpz
from numpy.typing import NDArray

from lastbit.errors import InvalidParameter
from lastbit.exact import arb_of, working_precision
from lastbit.privacy.accounting.composition import Composition
from lastbit.privacy.accounting.contour import kappa

_BITS = 62
MOST_CELLS = 1 << 22
PRECISION = 192


class Masses(NamedTuple):
    """cells[i] 2**exponent is the tilted mass i steps above the least loss."""

    cells: NDArray[np.uint64]
    exponent: int
    low: int


@dataclass(frozen=True, slots=True)
class Lattice:
    """The tilted masses of a composition, and what is missing of them."""

    masses: Masses
    order: arb
    least: Fraction
    spacing: Fraction
    missing: arb
    constant: arb

    def bounds(self, x: Fraction) -> tuple[arb, arb]:
        """D(x) from below and from above."""
        with working_precision(PRECISION):
            c, g = self.order, arb_of(self.spacing)
            first = math.ceil((x - self.least) / self.spacing) - self.masses.low
            skip = max(first, 0)
            start = self.least + self.spacing * (self.masses.low + skip)
            down, steep = (-c * g).exp(), (-(c + 1) * g).exp()
            above, below = arb(0), arb(0)
            for cell in self.masses.cells[skip:][::-1].tolist():
                above, below = above * down + cell, below * steep + cell
            scale = arb(2) ** self.masses.exponent * (-c * arb_of(start)).exp()
            left = scale * (above - arb_of(x - start).exp() * below)
            slack = kappa(c) * (-c * arb_of(x)).exp() * self.missing
            high = self.constant * (left + slack)
            return (self.constant * left).lower().max(arb(0)), high.upper()


def lattice(composition: Composition, order: float) -> Lattice:
    """The masses of a composition on a lattice, tilted by an order."""
    grid, greatest = composition.grid(), composition.greatest()
    if grid is None or greatest is None:
        raise InvalidParameter(
            "composition", problem="does not lie on a lattice", remedy="use the line sum"
        )
    with working_precision(PRECISION):
        c = arb(order)
        total: Masses | None = None
        least, moment = Fraction(0), arb(1)
        for part, count in composition.parts:
            assert part.grid is not None and part.greatest is not None
            stride = int(part.grid.spacing / grid.spacing)
            steps = int(2 * part.greatest / part.grid.spacing)  # from the greatest to its negative
            masses = part.masses(steps + 1)
            assert masses is not None
            least -= part.greatest * count
            tilted = {
                (steps - j) * stride: m * (c * arb_of(part.greatest - j * part.grid.spacing)).exp()
                for j, m in enumerate(masses)
            }
            found = _power(_rounded(tilted), count)
            total = found if total is None else _convolved(total, found)
            moment *= part.moment(acb(c)).real ** count
        assert total is not None
        left = arb(int(total.cells.astype(object).sum())) * arb(2) ** total.exponent
        missing = (moment - left).upper().max(arb(0))
        return Lattice(total, c, least, grid.spacing, missing, composition.constant())


def _rounded(tilted: dict[int, arb]) -> Masses:
    most = max(float(mass.log().mid()) for mass in tilted.values())
    exponent = math.ceil(most / math.log(2)) - _BITS
    cells = np.zeros(max(tilted) + 1, np.uint64)
    for place, mass in tilted.items():
        cells[place] = int((mass * arb(2) ** -exponent).lower().floor().unique_fmpz())  # type: ignore[arg-type]
    return Masses(cells, exponent, 0)


def _power(masses: Masses, count: int) -> Masses:
    total: Masses | None = None
    while count:
        if count & 1:
            total = masses if total is None else _convolved(total, masses)
        count >>= 1
        if count:
            masses = _convolved(masses, masses)
    assert total is not None
    return total


def _convolved(one: Masses, other: Masses) -> Masses:
    """The exact convolution, by one product of long integers, rounded down to 62 bits a cell."""
    size = len(one.cells) + len(other.cells) - 1
    if size > MOST_CELLS:
        raise InvalidParameter(
            "composition", problem="has too many losses to list", remedy="use the line sum"
        )
    # a cell holds a sum of at most 2**22 products of 62 bits: 146 bits, in 192
    product = int(_packed(one.cells) * _packed(other.cells))
    words = np.frombuffer(product.to_bytes(24 * size + 24, "little"), np.uint64)
    cells = words.reshape(-1, 3)[:size]
    used = next(w for w in (2, 1, 0) if cells[:, w].any())
    shift = max(64 * used + int(cells[:, used].max()).bit_length() - _BITS, 0)
    skip, bits = divmod(shift, 64)
    padded = np.concatenate([cells, np.zeros((size, 2), np.uint64)], axis=1)
    found = padded[:, skip] >> np.uint64(bits)
    if bits:
        found = found | padded[:, skip + 1] << np.uint64(64 - bits)
    places = np.flatnonzero(found)
    first, last = int(places[0]), int(places[-1]) + 1
    exponent = one.exponent + other.exponent + shift
    return Masses(found[first:last].copy(), exponent, one.low + other.low + first)


def _packed(cells: NDArray[np.uint64]) -> fmpz:
    wide = np.zeros((len(cells), 3), np.uint64)
    wide[:, 0] = cells
    return fmpz(int.from_bytes(wide.tobytes(), "little"))
