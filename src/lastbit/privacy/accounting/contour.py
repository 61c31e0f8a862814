"""Compositions of losses, by a sum along a vertical line.

Law      D(x) = E[(1 - exp(x-L))_+; L < oo] for the sum L of independent losses, M the product of
         their moments: delta(x) = P[L = oo] + D(x). kappa(c) = c**c/(1+c)**(1+c)
Theorem  (moment bound) (1 - exp(-y))_+ <= kappa(c) exp(cy), as (1 - exp(-y)) exp(-cy) is largest
         at exp(-y) = c/(1+c). So D(x) <= kappa(c) exp(-cx) M(c) for every c > 0
Theorem  (line sum) for c, W > 0, z_n = c + 2 pi i n/W:
             (1/W) sum over n of exp(-z_n x) M(z_n)/(z_n(z_n+1)) = sum over j of exp(cjW) D(x + jW)
         The integral of exp(zx)(1 - exp(x-L))_+ is exp(zL)/(z(z+1)); exp(cx) D(x) is continuous
         and decays exponentially both ways, its transform is O(t**-2): Poisson's formula holds.
         All terms on the right are >= 0 and the one of j = 0 is D(x), so the left side is an upper
         bound; it is too large by at most the sum, over one order above and one below c, of
         kappa(y) M(y) exp(-yx) r/(1-r), r = exp(-W abs(y-c)): the moment bound of D(x + jW), summed
Theorem  (on a lattice) if all losses lie on o + gZ and W = Ng the terms n, n + N, ... add up:
             (1/N) sum over n < N of M(z_n) exp(-z_n y)
                   [1/(1 - exp(-z_n g)) - exp(x-y)/(1 - exp(-(z_n+1)g))]
         is the same sum over j, y the least lattice point >= x. For (1/N) sum of M(z_n) exp(-z_n u)
         is the sum over j of exp(cjW) P[L = u + jW]; sum over u = y, y + g, ..., once with weights
         1 and once with exp(x - u)
Theorem  (what is left out) abs(M(c+it)) <= M(c) and abs(z(z+1)) >= t**2: the terms beyond
         t = T, both signs, are at most exp(-cx)/(pi T) times a bound of abs(M) for t >= T. Between,
         runs of terms are left out and paid by a bound of abs(M) over the run
Theorem  (smoothing) let G be a Gaussian loss of variance s, independent of L, and f the density of
         L + G at x. Then D_{L+G}(x) - s exp(s/8) f <= D_L(x) <= D_{L+G}(x)
         Proof: for G_u of variance u, d/du D_{L+G_u}(x) = f_u(x)/2 (differentiate the closed form
         of one Gaussian, and average over L): >= 0. f_u = exp(-u/8) E[exp(y/2) exp(-y**2/(2u))]/
         sqrt(2 pi u) with y = x - L, so f_u <= exp((s-u)/8) sqrt(s/u) f_s for u <= s; integrate
         The moment gains exp(s z(z+1)/2), which decays. f itself is at most its own line sum
Source   the line sum: Abate, Whitt 1992 for probabilities; Zhu, Dong, Wang 2022 for pairs
Differs  both bounds, in balls; floats choose c, W and s, and no claim rests on them
Checked  tests/privacy/accounting/test_truths.py, test_engines.py
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from flint import acb, arb, ctx

from lastbit.exact import arb_of, nearest, working_precision
from lastbit.privacy.accounting.component import Grid
from lastbit.privacy.accounting.composition import Composition
from lastbit.privacy.accounting.subsampling import LEAST_REACH

LN2 = math.log(2)
# Terms are summed to a relative error of about 2**-GOAL.
GOAL = 58
LOW_GOAL = 42
MOST_TERMS = 24_000
SMOOTHED_TERMS = 12_000
FAR = (1_000_000, 100_000)
FAR_TERMS = 4_000
FAR_PARTS = 30
MOST_CELLS = 60_000
# Terms that are float sums over thousands of nodes take longer.
MOST_FLOAT_TERMS = 4_000
MOST_FLOAT_CELLS = 300
SMOOTHED_FLOAT_TERMS = 4_000
SMOOTHED_GOAL = 18
SMOOTHED_TOLERANCE = 1e-4
LEAST_PRECISION = 128


class TooManyTerms(Exception):
    """The sum does not close: another way is taken."""


class Term(NamedTuple):
    """A node, and what exp(-zx) is multiplied by: for D, and on a lattice or smoothed for more."""

    node: acb
    first: acb
    second: acb


class _Plan(NamedTuple):
    """Choices of floats."""

    order: float
    width: float
    deviation: float
    lost: float
    x: float


@dataclass(frozen=True, slots=True)
class Contour:
    """The terms of a sum, good for every x; tight near the one it was planned for."""

    order: arb
    terms: tuple[Term, ...]
    rest: arb
    rest_density: arb
    aliases: tuple[tuple[arb, arb], ...]
    smoothing: Fraction
    grid: Grid | None
    precision: int

    def bounds(self, x: Fraction) -> tuple[arb, arb]:
        """D(x) from below and from above."""
        with working_precision(self.precision):
            found = self._on_grid(x) if self.grid else self._off_grid(x)
            return found[0].lower().max(arb(0)), found[1].upper()

    def _on_grid(self, x: Fraction) -> tuple[arb, arb]:
        assert self.grid is not None
        steps = math.ceil((x - self.grid.offset) / self.grid.spacing)
        point = self.grid.offset + self.grid.spacing * steps
        at, ratio = arb_of(point), arb_of(x - point).exp()
        total = arb(0)
        for node, first, second in self.terms:
            total += ((-node * at).exp() * (first - ratio * second)).real
        cut = self.rest * (-self.order * at).exp()
        return total - cut - self._alias(arb_of(x)), total + cut

    def _off_grid(self, x: Fraction) -> tuple[arb, arb]:
        at = arb_of(x)
        total, density = arb(0), arb(0)
        for node, first, second in self.terms:
            raised = (-node * at).exp()
            total += (raised * first).real
            if self.smoothing:
                density += (raised * second).real
        scale = (-self.order * at).exp()
        low, high = total - self.rest * scale - self._alias(at), total + self.rest * scale
        if self.smoothing:
            s = arb_of(self.smoothing)
            low -= s * (s / 8).exp() * (density + self.rest_density * scale).upper()
        return low, high

    def _alias(self, at: arb) -> arb:
        return sum((a * (-order * at).exp() for order, a in self.aliases), arb(0)).upper()


def contour(composition: Composition, order: float, x: float, size: float) -> Contour:
    """The line sum of a composition for D(x), which is about exp(size), at about this order.

    TooManyTerms is raised if it does not close.
    """
    if composition.furthest(order) < LEAST_REACH:
        raise TooManyTerms
    grid = composition.grid()
    planned = _planned if composition.exact_lines else _planned_for_floats
    for goal in (GOAL, LOW_GOAL) if composition.exact_lines else (LOW_GOAL,):
        plan = planned(composition, order, x, size, goal)
        for way in (grid, None) if grid is not None else (None,):
            try:
                return _Builder(composition, plan, way, goal).contour()
            except TooManyTerms:
                continue
    raise TooManyTerms


def smoothed(composition: Composition, order: float, x: float, size: float) -> Contour:
    """The same with a Gaussian loss that is added from above, and taken off from below."""
    plan = _planned(composition, order, x, size, LOW_GOAL)
    # the further, the less smoothing; most terms may lie in runs that are left out
    for terms in FAR if len(composition.parts) <= FAR_PARTS else ():
        builder = _Builder(composition, plan, None, LOW_GOAL, terms)
        builder.most_terms = builder.most_cells = FAR_TERMS
        try:
            return builder.contour()
        except TooManyTerms:
            continue
    return _Builder(composition, plan, None, LOW_GOAL, SMOOTHED_TERMS).contour()


def smoothed_floats(composition: Composition, order: float, x: float, size: float) -> Contour:
    """The same where moments are float sums that do not decay.

    Smoothing by a variance s moves x by about s (c+1)/2, up or down.
    """
    plan = _planned_for_floats(composition, order, x, size, SMOOTHED_GOAL)
    if not all(map(math.isfinite, plan)):  # the floats that look for an order have failed
        raise TooManyTerms
    smooth = _smoothed_floats(composition, plan, x, plan.order)
    slope = slope_at(smooth.bounds, x, plan.order)
    steep = 2 * plan.order < slope < math.inf
    return _smoothed_floats(composition, plan, x, slope) if steep else smooth


def slope_at(bounds: Callable[[Fraction], tuple[arb, arb]], x: float, order: float) -> float:
    """About how steep ln D is at a place; the order where that cannot be seen."""
    step = 0.01 * max(x, 1 / order)
    near, far = bounds(Fraction(x))[1], bounds(Fraction(x + step))[1]
    with working_precision(64):
        fallen = float((near / far).log().mid()) if near > 0 and far > 0 else 0.0
    return fallen / step if fallen > 0 else order


def _smoothed_floats(composition: Composition, plan: _Plan, x: float, slope: float) -> Contour:
    spread = 2 * SMOOTHED_TOLERANCE * min(max(x, 1 / slope), 1.0) / (slope + 1)
    end = math.sqrt(2 * ((SMOOTHED_GOAL + 4 + plan.lost) * LN2 + 3) / spread)
    terms = min(max(math.ceil(end * plan.width / (2 * math.pi)), 400), SMOOTHED_FLOAT_TERMS)
    builder = _Builder(composition, plan, None, SMOOTHED_GOAL, terms)
    builder.most_terms = builder.most_cells = 2 * SMOOTHED_FLOAT_TERMS
    return builder.contour()


def _planned(composition: Composition, order: float, x: float, size: float, goal: int) -> _Plan:
    """An order and a width for which few terms are enough: the saddle, or somewhat below it.

    Below the saddle the sum cancels, by `lost` bits; the width needed may be much smaller.
    """
    guide = composition.guide
    best: tuple[float, _Plan] | None = None
    for factor in (1.0, 0.85, 0.7, 0.55, 0.4):
        c = order * factor
        here, deviation = guide.size(c, x)
        lost = max((here - size) / LN2, 0.0)
        if best is not None and lost > 150:
            break
        width = guide.width(c, x, size - goal * LN2)
        if best is None and width * _gaussian_reach(goal, lost, deviation) < 400:
            return _Plan(c, width, deviation, lost, x)
        cost = width * _reach(composition, c, (goal + lost) * LN2, deviation)
        if best is None or cost < best[0]:
            best = cost, _Plan(c, width, deviation, lost, x)
    assert best is not None
    return best[1]


def _planned_for_floats(
    composition: Composition, order: float, x: float, size: float, goal: int
) -> _Plan:
    """The same where moments are float sums: lost bits are dear, and the width decides the rest."""
    guide = composition.guide
    best: tuple[float, _Plan] | None = None
    for factor in (1.0, 0.85, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.12):
        c = order * factor
        here, deviation = guide.size(c, x)
        lost = max((here - size) / LN2, 0.0)
        width = guide.width(c, x, size - goal * LN2)
        plan = _Plan(c, width, deviation, lost, x)
        reach = _gaussian_reach(goal, lost, deviation)
        short = best is None and width * reach < 400 and lost < 2
        short = short and 2 * reach < composition.furthest(c)
        if short and _fallen(composition, c, 2 * reach) > goal * LN2 / 2:
            return plan
        cost = math.log(width) + lost / 4 * LN2
        if best is None or cost < best[0]:
            best = cost, plan
    assert best is not None
    return best[1]


def _gaussian_reach(goal: int, lost: float, deviation: float) -> float:
    """How far a Gaussian moment of this deviation stays above 2**-(goal + lost)."""
    return math.sqrt(2 * (goal + lost) * LN2) / deviation


def _reach(composition: Composition, order: float, need: float, deviation: float) -> float:
    """About how far the product stays above exp(-need) of its value on the real axis."""
    t = 0.5 / deviation
    for _ in range(40):
        if _fallen(composition, order, t) > need:
            return t
        t *= 1.7
    return t


def _fallen(composition: Composition, order: float, t: float) -> float:
    """About -ln abs(M(c + it)/M(c))."""
    total = 0.0
    with working_precision(64):
        for part, count in composition.parts:
            line = part.along(arb(order))
            size = (line.values(arb(t), 1, 1)[0].abs_upper() / line.real).mid()
            total -= count * float(size.log()) if size > 0 else -1e9
    return total


class _Builder:
    """Sums the terms of a plan."""

    def __init__(
        self,
        composition: Composition,
        plan: _Plan,
        grid: Grid | None,
        goal: int,
        smoothed_terms: int = 0,
    ) -> None:
        self.composition, self.plan, self.goal = composition, plan, goal
        more = composition.releases.bit_length() + int(plan.lost)
        self.precision = LEAST_PRECISION + 2 * more
        self.bits = goal + 4 + plan.lost
        self.grid = grid
        self.smoothed_terms = smoothed_terms
        self.count = 0
        if grid is not None:
            self.count = max(math.ceil(plan.width / nearest(grid.spacing)) | 1, 3)
        self.smoothing = Fraction(0)
        exact = composition.exact_lines
        self.most_terms = MOST_TERMS if exact else MOST_FLOAT_TERMS
        self.most_cells = MOST_CELLS if exact else MOST_FLOAT_CELLS

    def contour(self) -> Contour:
        with working_precision(self.precision):
            self.order = arb(self.plan.order)
            self.lines = [(part.along(self.order), n) for part, n in self.composition.parts]
            self.height = math.prod((line.real**n for line, n in self.lines), start=arb(1))
            self.height *= self.composition.constant()
            if self.grid is not None:
                self.width = arb_of(self.grid.spacing) * self.count
                self.step = 2 * arb.pi() / self.width
                self.last = self.count // 2
            else:
                self.width = arb(self.plan.width)
                self.step = 2 * arb.pi() / self.width
                self.last = self._end()
            nodes, rest, rest_density = self._nodes()
            if self.grid is None:
                beyond, density = self._beyond()
                rest, rest_density = rest + beyond, rest_density + density
            return Contour(
                self.order,
                tuple(self._term(node, moment, n == 0) for n, node, moment in nodes),
                (rest * self.height).upper(),
                (rest_density * self.height).upper(),
                tuple(self._aliases()),
                self.smoothing,
                self.grid,
                self.precision,
            )

    # -- where to end --
    def _end(self) -> int:
        """The last term: beyond it the bounds of the components, or smoothing, close the sum."""
        step, need = float(self.step), self.bits * LN2
        c, deviation = self.plan.order, self.plan.deviation
        t, most = max(2 / deviation, step), self.most_terms * step
        furthest = min(40 * most, self.composition.furthest(c))
        while not self.smoothed_terms and t <= furthest:
            fallen = sum(-n * float(line.decay(arb(t)).log()) for line, n in self.lines)
            if fallen + math.log(t * 3.14 / (deviation * 2.5 * c * (c + 1))) > need:
                return math.ceil(t / step)
            t *= 1.2
        if not self.smoothed_terms:
            raise TooManyTerms
        end = min(self.smoothed_terms * step, self.composition.furthest(c))
        self.smoothing = Fraction(2 * (need + 3) / end**2).limit_denominator(1 << 60)
        return math.ceil(end / step)

    def _smoothed(self, z: acb) -> acb:
        return (arb_of(self.smoothing / 2) * z * (z + 1)).exp()

    def _damping(self, time: arb) -> arb:
        """Abs of the smoothing factor for t >= time."""
        if not self.smoothing:
            return arb(1)
        c = self.order
        return (arb_of(self.smoothing / 2) * (c * (c + 1) - time * time)).exp()

    def _beyond(self) -> tuple[arb, arb]:
        """What the terms beyond the last one amount to: for D and for the density."""
        end = (self.last * self.step).lower()
        envelope = math.prod((line.decay(end) ** n for line, n in self.lines), start=arb(1))
        envelope *= self._damping(end)
        density = envelope / (arb.pi() * end * arb_of(self.smoothing)) if self.smoothing else arb(0)
        return envelope / (arb.pi() * end), density

    # -- the terms --
    def _nodes(self) -> tuple[list[tuple[int, acb, acb]], arb, arb]:
        """The terms that count, and bounds of all others up to the last."""
        small = arb(2) ** int(-(self.bits + 6))
        c = self.order
        scale = arb(self.plan.deviation * 2.51) * c * (c + 1)
        found: list[tuple[int, acb, acb]] = []
        n, block = 0, 16 if self.composition.exact_lines else 64
        while n <= self.last and len(found) < self.most_terms:
            count = min(block, self.last + 1 - n)
            sizes = []
            for i, moment in enumerate(self._products(n, count), n):
                found.append((i, acb(c, self.step * i), moment))
                weight = self._weight(self.step * max(i, 1))
                sizes.append((moment.abs_upper() / self.height * weight * scale).upper())
            n += count
            dead = [size < small for size in sizes]
            if all(dead[-4:]) or (n > 4 * block and sum(dead) > count // 2):
                break
        rest, density = self._skipped(found, n, small, scale)
        found = [term for term in found if not term[2].is_zero()]
        return found, rest, density

    def _products(self, first: int, count: int) -> list[acb]:
        values = [(line.values(self.step, first, count), n) for line, n in self.lines]
        constant = self.composition.constant()
        return [constant * _product([(v[i], n) for v, n in values]) for i in range(count)]

    def _weight(self, time: arb) -> arb:
        """What the modulus of a moment is multiplied by in the sum, at most, for t >= time."""
        if self.grid is not None:
            c, g = self.order, arb_of(self.grid.spacing)
            both = 1 / (1 - (-c * g).exp()) + 1 / (1 - (-(c + 1) * g).exp())
            return (2 * both / self.count).upper()
        return (self._damping(time) * self.step / arb.pi() / (time * time)).upper()

    def _skipped(
        self, found: list[tuple[int, acb, acb]], first: int, small: arb, scale: arb
    ) -> tuple[arb, arb]:
        """Bounds of runs of terms; a term that no bound makes small is added to those found."""
        rest, density = arb(0), arb(0)
        n, run, good, patience, cells = first, 1, 0, 0, 0
        while n <= self.last:
            run = min(run, self.last + 1 - n)
            left, right = n * self.step, (n + run - 1) * self.step
            times = left.union(right)
            weight = self._weight(left.lower()) * run
            bound = self._ratio(times, (small / (weight * scale)).lower())
            cells += 1
            if (bound * weight * scale).upper() < small * 64:
                rest += bound * weight
                if self.smoothing:
                    density += bound * self._damping(left.lower()) * self.step / arb.pi() * run
                n += run
                good += 1
                if good > patience:
                    run, good = run * 2, 0
            elif run > 1:
                run, good, patience = max(run // 2, 1), 0, 6
            else:
                found.append((n, acb(self.order, left), self._products(n, 1)[0]))
                n += 1
                good = 0
            if cells > self.most_cells or len(found) > self.most_terms:
                raise TooManyTerms
        return rest, density

    def _ratio(self, times: arb, enough: arb) -> arb:
        """abs(M)/M(c) over a run of times, at most."""
        total = arb(1)
        before, ctx.prec = ctx.prec, 64
        try:
            for line, n in self.lines:
                total = (total * line.bound(times) ** n).upper()
                if total < enough:
                    break
        finally:
            ctx.prec = before
        return total

    def _term(self, z: acb, moment: acb, middle: bool) -> Term:
        """Conjugate nodes are one term, twice the real part; the middle node is alone."""
        if self.grid is not None:
            g = arb_of(self.grid.spacing)
            weighted = moment * (1 if middle else 2) / self.count
            return Term(z, weighted / (1 - (-z * g).exp()), weighted / (1 - (-(z + 1) * g).exp()))
        weighted = moment * self.step / (arb.pi() * (2 if middle else 1))
        if self.smoothing:
            weighted *= self._smoothed(z)
        return Term(z, weighted / (z * (z + 1)), weighted)

    def _aliases(self) -> list[tuple[arb, arb]]:
        found = []
        guide, c = self.composition.guide, self.plan.order
        for order in guide.alias_orders(c, self.plan.x, float(self.width)):
            y = arb(order)
            moment = self.composition.moment(acb(y)).real * self._smoothed(acb(y)).real
            r = (-self.width * abs(y - self.order)).exp()
            found.append((y, (kappa(y) * moment * r / (1 - r)).upper()))
        return found


def kappa(order: arb) -> arb:
    """c**c/(1+c)**(1+c)."""
    return (order * order.log() - (1 + order) * (1 + order).log()).exp()


def _product(factors: Sequence[tuple[acb, int]]) -> acb:
    """The product of powers, by logarithms: rectangles would swell under repeated rotation."""
    total, rest = acb(0), acb(1)
    for value, power in factors:
        if value.contains(acb(0)) or not value.is_finite():
            around = arb(0, (value.abs_upper() ** power).upper())
            rest *= acb(around, around)
            continue
        turned = value.real.mid() < 0  # away from the branch cut; the power is whole
        total += power * (-value if turned else value).log()
        if turned and power % 2:
            rest = -rest
    return total.exp() * rest


def moment_epsilon(composition: Composition, order: float, chance: arb) -> arb:
    """An x with D(x) <= chance, by the moment bound of one order."""
    c = arb(order)
    return (composition.moment(acb(c)).real.log() + kappa(c).log() - chance.log()) / c
