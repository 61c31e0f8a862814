"""Releases about samples, their noise in cells: one pair that they dominate, one above them.

Law      noise has the laws Q and P with the ratio e = exp(l), which rises from place to place. Cut
         the places into cells. *Joined*: every cell becomes one outcome. *Split*: every outcome
         moves to the two ends of its cell, with the chances that keep both masses of the cell. The
         first cell begins at e = 0, or is an atom; the last one has no right end: its outcomes move
         to its left end, and what is left over of P is an infinite loss
Theorem  sampled at a rate q, a release has at least the delta of the joined pair and at most that
         of the split one, in both directions, alone and composed with anything
         Proof: with b = 1 - q + q e, delta is E_Q[(b - y)_+] for a record removed, E_Q[(1 - y b)_+]
         for one added, y > 0. Both are convex in e. A joined cell has for e its mean under Q
         (Jensen); a split one a law of that mean on the ends of an interval that holds e (the
         chord; in the last cell its limit, as the right end goes to oo). And delta(y) of two
         releases is the mean, over the loss of one of them, of a delta of the other: it keeps the
         order
Theorem  of a cell with the masses Q_j and P_j, and the ratios e < e' at its ends, the right end
         gets the mass (P_j - e Q_j)/(e' - e) of Q, the left end the rest. Then M(z) is the sum over
         all atoms of their mass under Q times b**(z+1), or b**-z if added
Source   Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022: chords over a lattice of losses
Differs  cells are narrow where the losses that decide lie, and on no lattice. Where samples are
         rare, moments of the release itself are no help: at the orders that matter they are about
         losses that nobody will ever see. Here these are infinite, with next to no probability.
         Moments of atoms do not decay along a line, so the sum is smoothed (`contour.py`)
Checked  tests/privacy/accounting/test_cells.py
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from flint import acb, arb

from lastbit.exact import arb_of, nearest, working_precision
from lastbit.privacy.accounting.component import Component, Floats
from lastbit.privacy.accounting.composition import Composition, Guide
from lastbit.privacy.accounting.contour import TooManyTerms
from lastbit.privacy.accounting.subsampling import (
    BLOCK,
    CHUNK,
    Rule,
    SampledLine,
    SampledNoise,
    float_sums,
    phases_of,
)

_PRECISION = 192
# Phases along a line are taken from the middle of a logarithm.
_KNOWN_BITS = 100
_SERIES = 15
_ROUGH_PLACES = 1500
_LEAST_SIZE = -750.0  # of ln D: below it D is 0 as a float
# Of what is asked for: the probability of a loss that is taken for infinite.
_BEYOND = 1e-4
# Losses beyond so many x, and so many times what halves D, are told or left out: alone they decide.
_FAR, _STEEP = 4.0, 10.0
# How far off cells may be, relative to x; and how many there are.
_TOLERANCE = 3e-5
_FEWEST, _NEAR, _MOST = 200, 600, 3000


@dataclass(frozen=True)
class Cells(SampledNoise):
    """A release about a sample with its noise in cells between these places, joined or split."""

    inner: SampledNoise
    places: tuple[float, ...]
    split: bool

    @cached_property
    def outcomes(self) -> _Atoms:
        """What there is in place of the noise; made once, as long as the cells are in use."""
        return _atoms(self)

    def told_exactly(self) -> None:
        return None

    def infinite(self) -> arb:
        if not (self.split and self.removed):
            return arb(0)
        return arb_of(self.rate) * self.outcomes.told

    def last_masses(self) -> tuple[arb, arb]:
        """(Q, P) of the last cell, where the joined pair leaves it out."""
        if not self.removed:
            return arb(0), arb(0)
        q, p = self.outcomes.last
        return q, arb_of(1 - self.rate) * q + arb_of(self.rate) * p

    def ceiling(self) -> arb:
        logs = self.outcomes.rule.logs
        return logs[-1].upper() if self.removed else -logs[0].lower()

    def rule(self, order: float, time: float) -> Rule:
        return self.outcomes.rule

    def level(self, time: float) -> float:
        return 0.0

    def errors(self, rule: Rule, order: arb, total: arb) -> tuple[arb, arb]:
        """The sum has no error but the radii of its balls, which floats do not carry."""
        return arb(0), arb(total.rad())

    def cumulant(self, orders: Floats) -> Floats:
        return _cumulant(*self.outcomes.floats, orders, self.removed)

    def slope(self, order: arb, middle: arb) -> arb:
        power, centre = self.power(order), middle if self.removed else -middle
        rule = self.outcomes.rule
        terms = (
            (w * (power * x).exp() * abs(x - centre)).upper()
            for w, x in zip(rule.weights, rule.logs, strict=True)
        )
        return sum(terms, arb(0)).upper()

    def furthest(self, order: float) -> float:
        return math.inf

    def along(self, order: arb) -> SampledLine:
        return _CellLine(self, order)


class _CellLine(SampledLine):
    """The moments of atoms on a vertical line: small losses by a series in balls, others by floats.

    Theorem  for losses with t abs(ln b) <= 1/4 the sum of share exp(it ln b) is that of
             (it)**k/k! times the sums of share (ln b)**k, k <= K, off by at most their shares times
             4**-(K+1)/(K+1)!. The error of the floats (`SampledLine`) is relative to the shares of
             the others. Rare samples have nearly all of their shares in small losses, and a power
             of 10**6 takes whatever is wrong with a moment 10**6 times
    """

    __slots__ = ("_by_size", "_prefixes", "_sizes")

    def __init__(self, component: Cells, order: arb) -> None:
        super().__init__(component, order)
        tilt = self._tilted(0.0)
        sizes = np.abs(tilt.logs)
        self._by_size = np.argsort(sizes, kind="stable")
        self._sizes = sizes[self._by_size]
        self._prefixes: list[list[arb]] = []

    def _sums(self, small: int) -> list[arb]:
        """The sums of share (ln b)**k over so many of the smallest losses."""
        if not self._prefixes:
            rule, power = self._tilted(0.0).rule, self.sampled.power(self.order)
            sums = [arb(0)] * (_SERIES + 1)
            self._prefixes.append(sums)
            for index in self._by_size.tolist():
                log = rule.logs[index]
                term = rule.weights[index] * (power * log).exp()
                sums = [*sums]
                for k in range(_SERIES + 1):
                    sums[k] += term
                    term *= log
                self._prefixes.append(sums)
        return self._prefixes[small]

    def values(self, step: arb, first: int, count: int) -> list[acb]:
        tilt = self._tilted(0.0)
        furthest = float((step * (first + count)).upper())
        # 0.24: these floats are right to 15 digits
        small = int(np.searchsorted(self._sizes, 0.24 / furthest, side="right"))
        sums, others = self._sums(small), self._by_size[small:]
        shares, phases = tilt.shares[others], phases_of(tilt.rule, step, others.tolist())
        blocks = -(-len(others) // BLOCK)
        weight = tilt.total * arb(float(np.abs(shares).sum()) * 1.001)
        rest = abs(sums[0]) * arb(4) ** -(_SERIES + 1) / arb.fac_ui(_SERIES + 1)
        found: list[acb] = []
        rows = max(CHUNK // max(len(phases), 1), 1)
        for start in range(first, first + count, rows):
            stop = min(start + rows, first + count)
            real = imaginary = [0.0] * (stop - start)
            if len(others):
                real, imaginary = float_sums(shares, phases, start, stop)
            for n, x, y in zip(range(start, stop), real, imaginary, strict=True):
                floats = weight * (arb(7 * n) * arb(2) ** -62 + arb(60 + blocks) * arb(2) ** -53)
                error = arb(0, (floats + rest + tilt.cut).upper())
                near = _series(sums, step * n)
                whole = near + acb(tilt.total * arb(x) + error, tilt.total * arb(y) + error)
                found.append(whole if self.sampled.removed else whole.conjugate())
        return found


def _series(sums: list[arb], time: arb) -> acb:
    """The sum of (it)**k/k! sums[k]."""
    parts, factor = [arb(0), arb(0)], arb(1)
    for k, value in enumerate(sums):
        signed = -value if k & 2 else value
        parts[k & 1] += factor * signed
        factor = factor * time / (k + 1)
    return acb(*parts)


def _cumulant(masses: Floats, logs: Floats, orders: Floats, removed: bool) -> Floats:
    """About ln of the sum of exp(masses) * b**p."""
    powers = orders + 1 if removed else -orders
    exponents = masses + powers[:, None] * logs
    peaks = exponents.max(axis=1)
    return np.asarray(peaks + np.log(np.exp(exponents - peaks[:, None]).sum(axis=1)))


@dataclass(frozen=True, slots=True)
class _Atoms:
    """The atoms of a pair of cells, in balls and about in floats.

    And of the noise: P[l = oo], and both masses of the last cell.
    """

    rule: Rule
    floats: tuple[Floats, Floats]
    told: arb
    last: tuple[arb, arb]


def _atoms(cells: Cells) -> _Atoms:
    with working_precision(_PRECISION):
        tails, ratios = [(arb(1), arb(1))], [arb(0)]
        for place in cells.places:
            tails.append(cells.inner.noise_tails(place))
            ratios.append(cells.inner.noise_loss(arb(place)).exp())
        if cells.inner.noise_begins_with_an_atom:
            ratios[0] = ratios[1]
        inside = [(q - q1, p - p1) for (q, p), (q1, p1) in pairwise(tails)]
        told = arb(0)
        if cells.split:
            masses, told = _split(inside, tails[-1], ratios)
        else:
            masses = _joined(inside if cells.removed else [*inside, tails[-1]])
        base, rate = arb_of(1 - cells.rate), arb_of(cells.rate)
        if not masses:
            raise TooManyTerms  # than these bits can tell apart
        logs = [(base + rate * e).log() for _, e in masses]
        weights = [q for q, _ in masses]
        rule = Rule(tuple(weights), tuple(logs), arb(0), Fraction(0), Fraction(0), Fraction(0))
        log_masses = [max(float(q.mid().log().mid()), -1e300) if q > 0 else -1e300 for q in weights]
        about = np.array(log_masses), np.array([float(x.mid()) for x in logs])
        return _Atoms(rule, about, told, tails[-1])


Masses = list[tuple[arb, arb]]


def _joined(inside: Masses) -> Masses:
    """The mass of every cell under Q, with its mean ratio.

    What balls do not know well is left out: less of a pair has less of a delta.
    """
    found = ((q, p / q) for q, p in inside if q > 0)
    return [(q, e) for q, e in found if e.rel_accuracy_bits() >= _KNOWN_BITS]


def _split(inside: Masses, last: tuple[arb, arb], ratios: list[arb]) -> tuple[Masses, arb]:
    """The mass of every place under Q, with its ratio, and what is told."""
    masses = [arb(0) for _ in ratios]
    for j, (q, p) in enumerate(inside):
        right = q  # an atom, if both ends are one
        if ratios[j] is not ratios[j + 1]:
            right = (p - ratios[j] * q) / (ratios[j + 1] - ratios[j])
        masses[j] += q - right
        masses[j + 1] += right
    masses[-1] += last[0]
    told = (last[1] - ratios[-1] * last[0]).nonnegative_part().upper()
    return list(zip(masses, ratios, strict=True)), told


# ---------------------------------------------------------------- where to cut


class _Rough(Component):
    """Floats about a release whose noise ends somewhere: they choose, and prove nothing."""

    def __init__(self, part: SampledNoise, low: float, high: float) -> None:
        self.removed = part.removed
        self.places = np.linspace(low, high, _ROUGH_PLACES)
        self.weights, losses = part.noise_floats(self.places)
        rate = nearest(part.rate)
        self.logs = np.logaddexp(math.log1p(-rate), math.log(rate) + losses)
        small = losses < 1
        self.logs[small] = np.log1p(rate * np.expm1(losses[small]))

    def cumulant(self, orders: Floats) -> Floats:
        return _cumulant(self.weights, self.logs, orders, self.removed)

    def cuts(self, order: float, x: float, count: int, tolerance: float) -> tuple[float, ...]:
        """Places such that so many releases are off by about a tolerance.

        Theorem  cells of the widths w of losses raise ln M by about c(c+1)/12 times the sum of w**2
                 over the tilted mass m, so their best density is that of (m (dL)**2)**(1/3)
        Differs  where one large loss decides, that is blind to what lies about x: losses of up to
                 2x get as many even cells again
        """
        power = order + 1 if self.removed else -order
        exponents: Floats = self.weights + power * self.logs
        tilted: Floats = np.exp(exponents - exponents.max())
        slopes = np.abs(np.gradient(self.logs))
        density = np.cbrt(tilted / tilted.sum() * slopes**2)
        if not density.sum() > 0:  # beyond what floats tell apart
            density = np.ones_like(density)
        size = math.sqrt(count * (order + 1) * float(density.sum()) ** 3 / (12 * tolerance))
        near = np.where(np.abs(self.logs) < 2 * x, slopes, 0.0)
        density = density / density.sum() + near / max(near.sum(), 1e-300) + 0.05 / len(density)
        cells = math.ceil(min(max(size, _FEWEST) + _NEAR, _MOST)) if size >= 0 else _MOST
        reached = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
        places = np.interp(np.linspace(0, reached[-1], cells), reached, self.places)
        return tuple(np.unique(places).tolist())


class Target(NamedTuple):
    """What the cells are for: D at x or a D, and how steep ln D is there, as far as known."""

    x: float | None = None
    log_delta: float | None = None
    slope: float | None = None


class InCells(NamedTuple):
    """A composition with all samples in cells, and what is left out of the joined one."""

    joined: Composition
    split: Composition

    def beyond(self, x: Fraction) -> arb:
        """At least what the outcomes beyond all cells add to D(x) of the joined composition.

        Theorem  take all outcomes with some noise in its last cell, and no infinite loss, for one
                 outcome. It adds (k P' - exp(x) Q')_+ at least: k the probability that no loss is
                 infinite, 1 - P' and 1 - Q' the products of what other cells have. Q' may count
                 outcomes with an infinite loss, which only takes away
        """
        inside, bare = arb(1), arb(1)
        for part, n in self.joined.parts:
            if isinstance(part, Cells):
                q, p = part.last_masses()
                inside, bare = inside * (1 - p) ** n, bare * (1 - q) ** n
        kept = 1 - self.joined.infinite()
        return (kept * (1 - inside) - arb_of(x).exp() * (1 - bare)).lower().max(arb(0))


def in_cells(composition: Composition, target: Target) -> InCells:
    """A composition with all its samples in cells that are good for a target."""
    size = -60.0 if target.log_delta is None else max(target.log_delta, _LEAST_SIZE)
    rough = _rough(composition, size, math.inf)
    guide = Guide(tuple(rough))
    if target.x is None:
        order, x = guide.for_delta(size)
    else:
        x = target.x
        order = guide.for_epsilon(x)
    if target.slope is not None:
        # all other losses together may be below 0 by about this
        dip = sum(
            nearest(part.rate) * min(n, 10 * math.sqrt(n))
            for part, n in composition.parts
            if isinstance(part, SampledNoise)
        )
        rough = _rough(composition, size, _FAR * x + _STEEP / target.slope + 2 * dip)
        order = Guide(tuple(rough)).for_epsilon(x)
    elif target.log_delta is None:
        rough = _rough(composition, _size(guide, order, x), math.inf)
        order = Guide(tuple(rough)).for_epsilon(x)
    x = max(x, 1 / order) if math.isfinite(x) else 1 / order
    count = sum(n for part, n in rough if isinstance(part, _Rough))
    joined: list[tuple[Component, int]] = list(composition.told)
    split: list[tuple[Component, int]] = list(composition.told)
    for (part, n), (about, _) in zip(composition.parts, rough, strict=True):
        if isinstance(about, _Rough):
            assert isinstance(part, SampledNoise)
            places = about.cuts(order, x, count, _TOLERANCE * min(x, 1.0))
            joined.append((Cells(part.rate, part.removed, part, places, split=False), n))
            split.append((Cells(part.rate, part.removed, part, places, split=True), n))
        else:
            joined.append((part, n))
            split.append((part, n))
    return InCells(Composition.of(joined), Composition.of(split))


def _size(guide: Guide, order: float, x: float) -> float:
    """About ln D(x), or the least that matters."""
    size = guide.size(order, x)[0]
    return min(max(size, _LEAST_SIZE), 0.0) if math.isfinite(size) else _LEAST_SIZE


def _rough(
    composition: Composition, log_delta: float, furthest: float
) -> list[tuple[Component, int]]:
    """Floats about all parts: samples up to what has next to no chance, or the furthest loss."""
    parts: list[tuple[Component, int]] = []
    for part, n in composition.parts:
        if not isinstance(part, SampledNoise):
            parts.append((part, n))
            continue
        chance = math.log(_BEYOND) + log_delta - math.log(composition.releases)
        low, high = part.noise_span(chance - math.log(nearest(part.rate)))
        about = _Rough(part, low, high)
        if part.removed and about.logs[-1] > furthest:
            high = float(np.interp(furthest, about.logs, about.places))
            about = _Rough(part, low, high)
        parts.append((about, n))
    return parts
