"""Few releases with densities: their laws in polynomials, convolved without any error.

Law      a law with atoms and a density that is a polynomial on each of a few cells has the moment
             M(z) = sum over ends y of cells of exp(zy) R_y(1/z)
         with polynomials R_y: an atom of mass m at y is m, and (y-l)**k/k! for all l <= y is
         z**-(k+1). A cell is what begins at its upper end less what goes on below its lower one
Theorem  (convolution) ends add, polynomials are multiplied: nothing is truncated. With v = 1/z and
         v R(v) = (1+v) Q(v) + a, the residues of exp(z(y-x)) R(1/z)/(z(z+1)) at 0 and -1 give
             D(x) = sum over y > x of [sum over n of Q_n (y-x)**n/n! + a exp(x-y)]
Theorem  (densities in polynomials) let f be analytic on the disc of radius s about the middle of a
         cell of radius r < s, abs(f) <= B there. Its Taylor polynomial of degree p is off by at
         most B (r/s)**(p+1)/(1 - r/s) in the cell (Cauchy). If the i-th law is off by a measure of
         tilted mass e_i, integral of exp(cl) abs(error), and has the moment M_i at c, the product
         is off by at most prod(M_i + e_i) - prod(M_i), and D(x) by kappa(c) exp(-cx) times that:
         the moment bound (`contour.py`) holds for every measure
Theorem  (moved losses) if losses are moved up, by at most g together, D does not fall, and D(x+g)
         after that is at most D(x) before: atoms and ends at irrational places are moved up to
         rational ones
Source   the calculus of residues; splines as sums of truncated powers (Schoenberg)
Checked  tests/privacy/accounting/test_few.py
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import NamedTuple, Protocol

from flint import acb, arb, arb_poly, arb_series, ctx

from lastbit.exact import arb_of, nearest, working_precision
from lastbit.privacy.accounting.component import Component, DoubleExponential, Tilted
from lastbit.privacy.accounting.composition import Composition
from lastbit.privacy.accounting.contour import kappa
from lastbit.privacy.accounting.subsampling import SampledLaplace

DEGREE = 32
MOST_PRODUCTS = 300_000
_MOST_CELLS = 80
_FIXED = 200  # places are multiples of 2**-_FIXED
_LIFT = Fraction(2) ** (1 - _FIXED)
_BITS = 52  # what is left out, relative to a moment
_MESH_PRECISION = 192
_HIGHEST_PRECISION = 1 << 13
_WIDER = (1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 9.0, 14.0, 20.0)

Ends = dict[Fraction, arb_poly]
# Masses are computed again at every precision: carried on, polynomials cancel.
Atom = tuple[Fraction, Callable[[], arb]]


class Density(Protocol):
    """An analytic density."""

    def series(self, middle: arb) -> arb_series:
        """Its power series about a place."""

    def bound(self, middle: arb, radius: arb) -> arb | None:
        """An upper bound on a disc; None if it is not analytic there."""


class Cell(NamedTuple):
    """The density between two places."""

    low: Fraction
    high: Fraction


class Mesh(NamedTuple):
    """A law in cells: atoms beside the density, and what is left out or moved."""

    atoms: tuple[Atom, ...]
    density: Density | None
    cells: tuple[Cell, ...]
    off: arb
    moved: Fraction


@dataclass(frozen=True, slots=True)
class Splines:
    """A composition in polynomials, at one precision."""

    ends: tuple[tuple[Fraction, arb_poly, arb], ...]
    order: arb
    off: arb
    moved: Fraction
    constant: arb
    precision: int

    def bounds(self, x: Fraction) -> tuple[arb, arb]:
        """D(x) from below and from above; D falls by at most what x grows."""
        with working_precision(self.precision):
            above = self._value(x)
            below = above - arb_of(self.moved)
            if not above * arb(2) ** -60 > arb_of(self.moved):
                below = self._value(x + self.moved)
            slack = self.off * (-self.order * arb_of(x)).exp()
            low, high = below - slack, above + slack
            return (self.constant * low).lower().max(arb(0)), (self.constant * high).upper()

    def narrow(self, x: Fraction) -> bool:
        """Whether the arithmetic, not what is left out, decides the width at x."""
        with working_precision(self.precision):
            value = self._value(x)
            return bool(value.rad() < arb(2) ** -48 * abs(value.mid()))

    def _value(self, x: Fraction) -> arb:
        total = arb(0)
        for place, polynomial, share in self.ends:
            if place <= x:
                break
            far = arb_of(place - x)
            total += polynomial(far) + share * (-far).exp()
        return total


def splines(composition: Composition, order: float, x: float) -> Splines | None:
    """A composition in polynomials; None if some part has none, or if they are too many."""
    with working_precision(_MESH_PRECISION):
        meshes = []
        for part, _ in composition.parts:
            order = min(order, _steep(part))
        for part, count in composition.parts:
            mesh = _mesh(part, order)
            if mesh is None:
                return None
            meshes.append((mesh, count))
        precision = 160 + int(sum(n * _bits(mesh, composition, x) for mesh, n in meshes))
    if _products(meshes) > MOST_PRODUCTS:
        return None
    while precision <= _HIGHEST_PRECISION:
        found = _composed(composition, meshes, order, precision)
        if found.narrow(Fraction(max(x, 0.0))):
            return found
        precision *= 2
    return None


def _steep(part: Component) -> float:
    """An order from which on nearly all of the tilted mass is at the greatest loss."""
    if not isinstance(part, SampledLaplace):
        return math.inf
    most, least = part.ceiling(), part.least()
    assert most is not None and least is not None
    return 64 / float((most - least).mid())


def _bits(mesh: Mesh, composition: Composition, x: float) -> float:
    """About what cancels when a polynomial is carried on from its cell to the others."""
    if not mesh.cells:
        return 0.0
    high = sum(n * max(_top(part), 0.0) for part, n in composition.parts)
    least = min(nearest(cell.high - cell.low) for cell in mesh.cells)
    return 0.75 * DEGREE * math.log2(max(4 * (high - x) / least, 8.0))


def _top(part: Component) -> float:
    ceiling = part.ceiling()
    return 8.0 if ceiling is None else float(ceiling.mid())


def _products(meshes: list[tuple[Mesh, int]]) -> int:
    """How many products of coefficients there will be, over the degree."""
    total, sums, length = 0, {Fraction(0)}, 1
    for mesh, count in meshes:
        places = {place for place, _ in mesh.atoms} | {p for cell in mesh.cells for p in cell}
        longer = DEGREE if mesh.cells else 1
        for _ in range(count):
            total += len(sums) * len(places) * length
            if total > MOST_PRODUCTS:
                return total
            sums = {a + b for a in sums for b in places}
            length += longer
    return total


def _composed(
    composition: Composition, meshes: list[tuple[Mesh, int]], order: float, precision: int
) -> Splines:
    with working_precision(precision):
        c, total = arb(order), {Fraction(0): arb_poly([1])}
        growth, moment, moved = arb(0), arb(1), Fraction(0)
        for (part, count), (mesh, _) in zip(composition.parts, meshes, strict=True):
            ends = _ends(mesh)
            for _ in range(count):
                total = _product(total, ends)
            here = part.moment(acb(c)).real * (c * arb_of(mesh.moved)).exp()
            growth += count * (mesh.off / here).log1p()
            moment *= here**count
            moved += count * mesh.moved
        off = (kappa(c) * moment * growth.expm1()).upper()
        places = sorted(total, reverse=True)
        listed = tuple((place, *_residues(total[place])) for place in places)
        return Splines(listed, c, off, moved, composition.constant(), precision)


def _residues(polynomial: arb_poly) -> tuple[arb_poly, arb]:
    """Q, its coefficients over factorials, and a, of the theorem on convolution."""
    share = -polynomial(arb(-1))
    given = [arb(0), *polynomial]
    quotient, carried = [arb(0)] * (len(given) - 1), arb(0)
    for n in range(len(given) - 1, 0, -1):
        carried = given[n] - carried
        quotient[n - 1] = carried
    return arb_poly([q / arb.fac_ui(n) for n, q in enumerate(quotient)]), share


def _product(one: Ends, other: Ends) -> Ends:
    total: Ends = {}
    for place, polynomial in one.items():
        for far, factor in other.items():
            end = place + far
            product = polynomial * factor
            total[end] = total[end] + product if end in total else product
    return total


def _ends(mesh: Mesh) -> Ends:
    """The polynomials R at the working precision."""
    total: Ends = {}

    def add(place: Fraction, polynomial: arb_poly) -> None:
        total[place] = total[place] + polynomial if place in total else polynomial

    for place, mass in mesh.atoms:
        add(place, arb_poly([mass()]))
    for low, high in mesh.cells:
        assert mesh.density is not None
        middle = (low + high) / 2
        curve = arb_poly(list(_series(mesh.density, arb_of(middle))))
        for place, sign in ((high, 1), (low, -1)):
            shifted = curve(arb_poly([arb_of(place - middle), -1]))
            add(place, arb_poly([0, *(sign * arb.fac_ui(k) * x for k, x in enumerate(shifted))]))
    return total


def _series(density: Density, middle: arb) -> arb_series:
    before, ctx.cap = ctx.cap, DEGREE + 1
    try:
        return density.series(middle)
    finally:
        ctx.cap = before


# -- laws in cells --
def _mesh(part: Component, order: float) -> Mesh | None:
    """The law of one loss in cells, for an order."""
    match part:
        case SampledLaplace():
            return _sampled_laplace(part, order)
        case DoubleExponential():
            loss = part.epsilon
            atoms = (
                (loss, lambda: arb(1) / 2),
                (-loss, lambda: (-arb_of(loss)).exp() / 2),
            )
            flat = _Exponential(lambda: (-arb_of(loss / 2)).exp() / 4)
            return _in_cells(atoms, flat, (-loss, loss), part, order)
        case Tilted():
            loss = part.epsilon
            flat = _Exponential(lambda: 1 / (4 * arb_of(loss / 2).sinh()))
            return _in_cells((), flat, (-loss, loss), part, order)
    return _only_atoms(part)


def _only_atoms(part: Component) -> Mesh | None:
    with working_precision(_FIXED + 64):
        pieces = part.pieces()
        if pieces is None or any(piece.poles for piece in pieces):
            return None
        places = [x if isinstance(x, Fraction) else _up(x) for _, x, *_ in pieces]
        rational = all(isinstance(piece.shift, Fraction) for piece in pieces)

    def mass(index: int) -> arb:
        again = part.pieces()
        assert again is not None
        return again[index].weight

    atoms = tuple((place, partial(mass, index)) for index, place in enumerate(places))
    return Mesh(atoms, None, (), arb(0), Fraction(0) if rational else _LIFT)


def _in_cells(
    atoms: tuple[Atom, ...],
    density: Density,
    ends: tuple[Fraction, Fraction],
    part: Component,
    order: float,
    off: arb | None = None,
    moved: Fraction = Fraction(0),
) -> Mesh | None:
    """Cells that are halved until what their polynomials leave out is little."""
    goal = part.moment(acb(order)).real * arb(2) ** -_BITS
    total, cells, left = off or arb(0), [], [Cell(*ends)]
    while left:
        cell = left.pop()
        error = _left_out(density, cell, order)
        if error is not None and error < goal:
            cells.append(cell)
            total += error
            continue
        middle = (cell.low + cell.high) / 2
        left += [Cell(cell.low, middle), Cell(middle, cell.high)]
        if len(cells) + len(left) > _MOST_CELLS:
            return None
    return Mesh(atoms, density, tuple(cells), total.upper(), moved)


def _left_out(density: Density, cell: Cell, order: float) -> arb | None:
    """The tilted mass of what a Taylor polynomial leaves out in a cell; None if unknown."""
    middle, radius = arb_of((cell.low + cell.high) / 2), arb_of((cell.high - cell.low) / 2)
    best: arb | None = None
    for wider in _WIDER:
        bound = density.bound(middle, radius * wider)
        if bound is None:
            break
        error = bound * arb(wider) ** -(DEGREE + 1) / (1 - 1 / arb(wider))
        best = error if best is None else best.min(error)
    if best is None:
        return None
    return (best * 2 * radius * (arb(order) * arb_of(cell.high)).exp()).upper()


@dataclass(frozen=True, slots=True)
class _Exponential:
    """height * exp(l/2)."""

    height: Callable[[], arb]

    def series(self, middle: arb) -> arb_series:
        return self.height() * (arb_series([middle, 1]) / 2).exp()

    def bound(self, middle: arb, radius: arb) -> arb | None:
        return (self.height() * ((middle + radius) / 2).exp()).upper()


@dataclass(frozen=True, slots=True)
class _OnSample:
    """The density of a loss about a sample, Laplace noise.

    Law      l is the loss of the noise, b = 1 - q + q exp(l), u = ln b. Under Q, l has the density
             exp(-(l + epsilon)/2)/4, so u has g(u) = exp(-(l + epsilon)/2)/4 exp(u)/(exp(u) - 1 +
             q), exp(l) = (exp(u) - 1 + q)/q. A removed record has the loss u and the density
             exp(u) g(u), an added one the loss -u and g(u)
    Theorem  on a disc of radius s about a real m with exp(m-s) > 1-q, abs(exp(u) - 1 + q) is at
             least exp(m-s) - 1 + q > 0, as abs(exp(u)) >= exp(m-s): g is analytic there, and
             abs(exp(-l/2)) = sqrt(q/abs(exp(u) - 1 + q))
    """

    part: SampledLaplace

    def series(self, middle: arb) -> arb_series:
        sign = 1 if self.part.removed else -1
        place = arb_series([sign * middle, sign])
        raised = place.exp()
        rest = raised - arb_of(1 - self.part.rate)
        loss = (rest / arb_of(self.part.rate)).log()
        density = raised / rest * (-(loss + arb_of(self.part.epsilon)) / 2).exp() / 4
        return density * raised if self.part.removed else density

    def bound(self, middle: arb, radius: arb) -> arb | None:
        part = self.part
        at, q, base = middle if part.removed else -middle, arb_of(part.rate), arb_of(1 - part.rate)
        least = (at - radius).exp() - base
        if not least > 0:
            return None
        top = (at + radius).exp()
        found = top / least * (top if part.removed else arb(1))
        return (found * (q / least).sqrt() * (-arb_of(part.epsilon) / 2).exp() / 4).upper()


def _up(place: arb) -> Fraction:
    """The next place above a number."""
    scaled = (place * arb(2) ** _FIXED).upper().ceil()
    return Fraction(int(scaled.unique_fmpz()), 1 << _FIXED)  # type: ignore[arg-type]


def _sampled_laplace(part: SampledLaplace, order: float) -> Mesh | None:
    """Both atoms are moved up; so are the ends, and the density on what they move by is left out.

    The density is at most its bound on a disc about the place.
    """

    def base(sign: int) -> arb:
        return part.ratio(sign * arb_of(part.epsilon))

    def mass(sign: int) -> arb:
        found = (-arb_of(part.epsilon)).exp() / 2 if sign > 0 else arb(1) / 2
        return found * base(sign) if part.removed else found

    density, off = _OnSample(part), arb(0)
    with working_precision(_FIXED + 64):
        places = {sign: _up(base(sign).log() * (1 if part.removed else -1)) for sign in (1, -1)}
        for place in places.values():
            bound = density.bound(arb_of(place), arb_of(4 * _LIFT))
            if bound is None:
                return None
            off += bound * arb_of(_LIFT) * (arb(order) * arb_of(place)).exp()
    atoms = tuple((place, partial(mass, sign)) for sign, place in places.items())
    ends = (min(places.values()), max(places.values()))
    return _in_cells(atoms, density, ends, part, order, off, _LIFT)
