"""Losses on a lattice, as tilted masses in whole numbers: another way to what the line sum says.

Theorem  let the masses m_x exp(c x) be rounded down, or dropped, and convolved exactly, again and
         again. With S the sum of what is left, and M the product of the moments at c,
             D_left(x) <= D(x) <= D_left(x) + kappa(c) exp(-cx) (M - S)
         What is missing is a measure with the tilted mass M - S, and the moment bound
         (`contour.py`) holds for every measure. One number certifies all rounding and truncation
Differs  no sum along a line, no aliases, no float: nothing is shared with `contour.py` but moments
Checked  test_engines.py
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from flint import acb, arb, arb_poly, fmpz, fmpz_poly
from numpy.typing import NDArray

from lastbit.exact import arb_of, working_precision
from lastbit.privacy.accounting.component import Component, Grid
from lastbit.privacy.accounting.composition import Composition
from lastbit.privacy.accounting.contour import kappa

_BITS = 62
_MOST_CELLS = 1 << 18
_PRECISION = 192


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
    grid: Grid
    missing: arb
    constant: arb

    def bounds(self, x: Fraction) -> tuple[arb, arb]:
        """D(x) from below and from above."""
        with working_precision(_PRECISION):
            c, g = self.order, arb_of(self.grid.spacing)
            first = math.ceil((x - self.grid.offset) / self.grid.spacing) - self.masses.low
            skip = max(first, 0)
            start = self.grid.offset + self.grid.spacing * (self.masses.low + skip)
            cells = arb_poly(fmpz_poly(self.masses.cells[skip:].tolist()))
            above, below = cells((-c * g).exp()), cells((-(c + 1) * g).exp())
            scale = arb(2) ** self.masses.exponent * (-c * arb_of(start)).exp()
            left = scale * (above - arb_of(x - start).exp() * below)
            slack = kappa(c) * (-c * arb_of(x)).exp() * self.missing
            high = self.constant * (left + slack)
            return (self.constant * left).lower().max(arb(0)), high.upper()


def lattice(composition: Composition, order: float) -> Lattice | None:
    """The masses of a composition on a lattice, tilted by an order; None if they are too many."""
    grid = composition.grid()
    if grid is None:
        return None
    with working_precision(_PRECISION):
        c = arb(order)
        parts, size = [], 1
        for part, count in composition.parts:
            assert part.grid is not None
            atoms = _atoms(part, part.grid)
            stride = int(part.grid.spacing / grid.spacing)
            size += (max(atoms) - min(atoms)) * stride * count
            if size > _MOST_CELLS:
                return None
            offset, spacing = part.grid
            tilted = {
                n * stride: mass * (c * arb_of(offset + n * spacing)).exp()
                for n, mass in atoms.items()
            }
            parts.append((tilted, part, count))
        total, moment = Masses(np.ones(1, np.uint64), 0, 0), arb(1)
        for tilted, part, count in parts:
            total = _convolved(total, _power(_rounded(tilted), count))
            moment *= part.moment(acb(c)).real ** count
        left = arb(fmpz(sum(total.cells.tolist()))) * arb(2) ** total.exponent
        missing = (moment - left).upper().max(arb(0))
        return Lattice(total, c, grid, missing, composition.constant())


def _atoms(part: Component, grid: Grid) -> dict[int, arb]:
    """P[L = offset + n spacing] by n."""
    atoms = {}
    for piece in part.pieces() or ():
        assert isinstance(piece.shift, Fraction)
        atoms[int((piece.shift - grid.offset) / grid.spacing)] = piece.weight
    return atoms


def _rounded(tilted: dict[int, arb]) -> Masses:
    most = max(float(mass.log().mid()) for mass in tilted.values() if mass > 0)
    exponent = math.ceil(most / math.log(2)) - _BITS
    low = min(tilted)
    cells = np.zeros(max(tilted) - low + 1, np.uint64)
    for place, mass in tilted.items():
        scaled = (mass * arb(2) ** -exponent).lower().max(arb(0))
        cells[place - low] = int(scaled.floor().unique_fmpz())  # type: ignore[arg-type]
    return Masses(cells, exponent, low)


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
    # a cell holds a sum of at most 2**18 products of 62 bits: 142 bits, in 192
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
