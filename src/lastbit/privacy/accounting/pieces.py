"""Few atoms, Laplace noise and bounded range, by residues: on no lattice, nothing truncated.

Law      M(z) = sum of w exp(zy) (z+1)**a z**b/(2z+1)**K over few (w, y, a, b): K losses of Laplace
         noise or bounded range, each of which has two summands, and finite laws
Theorem  D(x) is the sum of w R(y - x), R(Y) = 0 for Y <= 0, and for Y > 0 the sum of the residues
         of exp(zY) (z+1)**(a-1) z**(b-1)/(2z+1)**K: the integral whose discrete form is the line
         sum (`contour.py`) can be closed, to the right, where there is no pole, if Y <= 0, else to
         the left. At -1/2 the residue is
             exp(-Y/2) 2**(1-a-b) sum over m < K of p_m (Y/2)**(K-1-m)/(K-1-m)!
         with p_m the coefficients of (v+1)**(a-1) (v-1)**(b-1), as a power series if a or b is 0;
         at 0 it is 1 if b = 0; at -1 it is (-1)**(K-b+1) exp(-Y) if a = 0
Source   the calculus of residues
Checked  tests/privacy/accounting/test_truths.py, test_engines.py
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from flint import arb, arb_poly, fmpz_poly

from lastbit.exact import arb_of, working_precision
from lastbit.privacy.accounting.component import Piece
from lastbit.privacy.accounting.composition import Composition

FEW_PIECES = 300
MOST_ATOMS = 20_000
MOST_PIECES = 4_000
MOST_POLES = 400

Shift = Fraction | arb


class Entry(NamedTuple):
    """A summand: weight * exp(z shift) * (z+1)**up * z**down, over (2z+1)**K."""

    shift: Shift
    up: int
    down: int
    weight: arb


Entries = dict[object, Entry]


@dataclass(frozen=True, slots=True)
class Pieces:
    """The expanded moment of a composition, at one precision."""

    entries: tuple[Entry, ...]
    curves: dict[tuple[int, int], arb_poly]
    poles: int
    precision: int

    def bounds(self, x: Fraction) -> tuple[arb, arb]:
        """D(x) from below and from above."""
        with working_precision(self.precision):
            total, at = arb(0), arb_of(x)
            for entry in self.entries:
                shift = entry.shift
                if isinstance(shift, Fraction):
                    if shift > x:
                        total += entry.weight * self._residues(arb_of(shift - x), entry)
                    continue
                far = shift - at
                if not far <= 0:
                    share = entry.weight * self._residues(far, entry)
                    total += share if far > 0 else share.union(arb(0))
            return total.lower().max(arb(0)), total.upper()

    def _residues(self, far: arb, entry: Entry) -> arb:
        found = arb(0)
        if self.poles:
            found = (-far / 2).exp() * self.curves[entry.up, entry.down](far / 2)
        if not entry.down:
            found += 1
        if not entry.up:
            found += (-1) ** (self.poles - entry.down + 1) * (-far).exp()
        return found


def few_pieces(composition: Composition) -> bool:
    """Whether residues are the shortest way, also where there is a lattice."""
    with working_precision(64):
        found = _size([(part.pieces(), count) for part, count in composition.parts])
    return found is not None and found[0] <= FEW_PIECES


def _size(parts: list[tuple[list[Piece] | None, int]]) -> tuple[int, int] | None:
    """How many summands there are, and the order of the pole; None if they are too many."""
    size, poles = 1, 0
    for found, count in parts:
        if found is None or count > MOST_ATOMS:
            return None
        poles += count * found[0].poles
        size *= math.comb(count + len(found) - 1, count)
        if size > (MOST_PIECES if poles else MOST_ATOMS) or poles > MOST_POLES:
            return None
    return size, poles


def pieces(composition: Composition, precision: int) -> Pieces | None:
    """The composition in pieces, if these are few enough."""
    with working_precision(precision):
        parts = [(part.pieces(), count) for part, count in composition.parts]
        counted = _size(parts)
        if counted is None:
            return None
        poles = counted[1]
        merged: Entries = {0: Entry(Fraction(0), 0, 0, composition.constant())}
        for found, count in parts:
            assert found is not None
            merged = _merged(merged, list(_powers(found, count)))
        entries = tuple(merged.values())
        kinds = {(entry.up, entry.down) for entry in entries} if poles else set()
        curves = {kind: _curve(*kind, poles) for kind in kinds}
        return Pieces(entries, curves, poles, precision)


def _powers(found: list[Piece], count: int) -> Iterator[Entry]:
    """The summands of (sum of pieces)**count."""
    first, *others = found
    if not others:
        yield Entry(first.shift * count, first.up * count, first.down * count, first.weight**count)
        return
    for k in range(count + 1):
        share = arb.bin_uiui(count, k) * first.weight**k
        for rest in _powers(others, count - k):
            shift = _plus(first.shift * k, rest.shift)
            up, down = first.up * k + rest.up, first.down * k + rest.down
            yield Entry(shift, up, down, share * rest.weight)


def _plus(one: Shift, other: Shift) -> Shift:
    if isinstance(one, Fraction) and isinstance(other, Fraction):
        return one + other
    return sum((arb_of(x) if isinstance(x, Fraction) else x for x in (one, other)), arb(0))


def _merged(have: Entries, more: list[Entry]) -> Entries:
    """The product; summands with the same rational shift are one."""
    total: Entries = {}
    for one in have.values():
        for other in more:
            shift, weight = _plus(one.shift, other.shift), one.weight * other.weight
            up, down = one.up + other.up, one.down + other.down
            key: object = (shift, up, down) if isinstance(shift, Fraction) else len(total)
            if key in total:
                weight += total[key].weight
            total[key] = Entry(shift, up, down, weight)
    return total


def _curve(up: int, down: int, poles: int) -> arb_poly:
    """The polynomial in Y/2 of the residue at -1/2."""
    expanded = fmpz_poly([1, 1]) ** max(up - 1, 0) * fmpz_poly([-1, 1]) ** max(down - 1, 0)
    whole = [int(p) for p in expanded][:poles]
    whole += [0] * (poles - len(whole))
    if down == 0:  # over v - 1
        whole = [-p for p in _running(whole, 1)]
    if up == 0:  # over v + 1
        whole = _running(whole, -1)
    scale = arb(2) ** (1 - up - down)
    return arb_poly([scale * arb(whole[poles - 1 - j]) / arb.fac_ui(j) for j in range(poles)])


def _running(numbers: list[int], sign: int) -> list[int]:
    """The coefficients of p(v)/(1 - sign v)."""
    total, found = 0, []
    for number in numbers:
        total = number + sign * total
        found.append(total)
    return found
