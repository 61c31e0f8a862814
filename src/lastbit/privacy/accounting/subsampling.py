"""Noise on a Poisson sample: moments by quadrature with proved error bounds.

Two laws Q, P with the ratio exp(l), sampled at a rate q, become (1-q) Q + q P against Q when a
record is removed, and the reverse when one is added. With b = 1 - q + q exp(l) the moments are
E_Q[b**(z+1)] and E_Q[b**-z]. A quadrature rule writes both as a sum of w_j exp(p ln b_j), p = z+1
or -z. Weights and logarithms are balls, made once; the values along a line are then sums of floats
with a proved error bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from flint import acb, arb
from numpy.typing import NDArray

from lastbit.exact import arb_of, cos_sin_turn, nearest, working_precision
from lastbit.privacy.accounting.component import Component, Floats, Line, below_one

# Quadrature is good for about this many bits; sums of floats for 45.
BITS = 72
_PRECISION = 128
BLOCK = 32
CHUNK = 1 << 20
_CELLS = 400
_MOST_NODES = 4000
# Rules that do not reach so far have too many nodes.
LEAST_REACH = 8.0
# How often moments are integrated by parts, and in how many cells.
_PARTS = (2, 4, 6, 9, 12)
_PART_CELLS = 240


class Rule(NamedTuple):
    """M(z) is the sum of weights * exp(p logs), within slack * exp(grows * abs(Im z)) + cut."""

    weights: tuple[arb, ...]
    logs: tuple[arb, ...]
    grows: arb
    low: Fraction
    high: Fraction
    spacing: Fraction


@dataclass(frozen=True, slots=True)
class SampledNoise(Component):
    """What noise on a sample shares: a rule for orders and times up to a level, and its errors."""

    rate: Fraction
    removed: bool

    def ratio(self, loss: arb) -> arb:
        """b, where the noise has this loss."""
        return arb_of(1 - self.rate) + arb_of(self.rate) * loss.exp()

    def power(self, order: arb) -> arb:
        """The real part of p: the sum is over w exp(p ln b)."""
        return order + 1 if self.removed else -order

    def rule(self, order: float, time: float) -> Rule:
        """A quadrature rule for orders and times up to these."""
        return _rule(self, _level(order), _level(time))

    def new_rule(self, order: float, time: float) -> Rule:
        raise NotImplementedError

    def level(self, time: float) -> float:
        """Times with the same level share a rule."""
        return _level(time)

    def errors(self, rule: Rule, order: arb, total: arb) -> tuple[arb, arb]:
        """The slack and the cut of a rule at this order; total is its sum there."""
        raise NotImplementedError

    def slope(self, order: arb, middle: arb) -> arb:
        """An upper bound of E[exp(cL) abs(L - middle)]."""
        raise NotImplementedError

    def moment(self, z: acb) -> acb:
        times = abs(z.imag).upper()
        rule = self.rule(float(z.real.upper()), float(times))
        power = self.power(z.real)
        tilted = [w * (power * x).exp() for w, x in zip(rule.weights, rule.logs, strict=True)]
        total = sum(tilted, arb(0))
        slack, cut = self.errors(rule, z.real, total)
        error = arb(0, (slack * (times * rule.grows).exp() + cut).upper())
        if z.imag == 0:
            return acb(total + error)
        turn = acb(0, z.imag if self.removed else -z.imag)
        terms = (w * (turn * x).exp() for w, x in zip(tilted, rule.logs, strict=True))
        return sum(terms, acb(0)) + acb(error, error)

    def along(self, order: arb) -> SampledLine:
        return SampledLine(self, order)

    def furthest(self, order: float) -> float:
        """The largest time for which a rule has no more than some ten thousand nodes."""
        return 1e4

    # -- the noise before sampling, by places at which its loss rises --
    @property
    def noise_begins_with_an_atom(self) -> bool:
        """Whether no noise lies before the first place of its span, which is an atom."""
        return False

    def noise_tails(self, place: float) -> tuple[arb, arb]:
        """(Q, P)[the noise is beyond a place]."""
        raise NotImplementedError

    def noise_loss(self, place: arb) -> arb:
        """The loss l of the noise at a place."""
        raise NotImplementedError

    def noise_span(self, log_chance: float) -> tuple[float, float]:
        """Places between which noise lies, but for about this chance under P."""
        raise NotImplementedError

    def noise_floats(self, places: Floats) -> tuple[Floats, Floats]:
        """About the logarithms of the masses of Q near even places, and the losses there."""
        raise NotImplementedError


@lru_cache(maxsize=32)
def _rule(component: SampledNoise, order: float, time: float) -> Rule:
    with working_precision(_PRECISION):
        return component.new_rule(order, time)


def _level(number: float) -> float:
    """The next power of two from 8 up: what lies below shares a rule."""
    return 8.0 if number <= 8 else 2.0 ** math.ceil(math.log2(number))


class _Tilted(NamedTuple):
    """A rule at one order: tilted weights over their sum, as floats."""

    rule: Rule
    shares: Floats
    logs: Floats
    total: arb
    slack: arb
    cut: arb


class SampledLine(Line):
    """The moments on a vertical line, by floats.

    Law      every value is a ball that holds the moment
    Theorem  the phase of node j at t = n step is n a_j turns, a_j = step ln(b_j)/(2 pi). a_j is
             kept modulo 1 as a whole number of 2**-64, off by less than 2 of them, so n a_j modulo
             1 is off by less than n 2**-63; as a float, by 2**-53 more; cosine and sine by 2**-51
             more (`cos_sin_turn`). In all 2 pi (n 2**-63 + 2**-53) + 2**-51 at most. A share is off
             by at most 2**-52 of itself (what its ball leaves open is in `cut`), a product adds
             2**-53, and summing 32 numbers, then the m sums, adds (31 + m - 1) 2**-53 of the sum of
             the sizes, in whatever order. The shares add up to at most 1 + 2**-40. Together below
             7 n 2**-63 + (50 + m) 2**-53, times 1 + 2**-40: below 7 n 2**-62 + (60 + m) 2**-53
    Checked  tests/privacy/accounting/test_subsampling.py
    """

    __slots__ = ("_slope", "_tilts", "sampled")

    sampled: SampledNoise

    def __init__(self, component: SampledNoise, order: arb) -> None:
        self.sampled = component
        self._tilts: dict[float, _Tilted] = {}
        self._slope: arb | None = None
        super().__init__(component, order)

    def _tilted(self, time: float) -> _Tilted:
        level = self.sampled.level(time)
        if level not in self._tilts:
            rule = self.sampled.rule(float(self.order.upper()), level)
            power = self.sampled.power(self.order)
            tilted = [w * (power * x).exp() for w, x in zip(rule.weights, rule.logs, strict=True)]
            total = sum(tilted, arb(0))
            with working_precision(_PRECISION):  # a share is a middle: its ball must be narrow
                shares = np.array([float((x / total).mid()) for x in tilted])
            logs = np.array([float(x.mid()) for x in rule.logs])
            found = _Tilted(
                rule, shares, logs, total, *self.sampled.errors(rule, self.order, total)
            )
            self._tilts[level] = found
        return self._tilts[level]

    def values(self, step: arb, first: int, count: int) -> list[acb]:
        tilt = self._tilted(float((step * (first + count)).upper()))
        phases = phases_of(tilt.rule, step, range(len(tilt.rule.logs)))
        found: list[acb] = []
        rows = max(CHUNK // len(phases), 1)
        for start in range(first, first + count, rows):
            stop = min(start + rows, first + count)
            real, imaginary = float_sums(tilt.shares, phases, start, stop)
            found += [
                self._ball(tilt, n, step * n, x, y)
                for n, x, y in zip(range(start, stop), real, imaginary, strict=True)
            ]
        return found

    def _ball(self, tilt: _Tilted, n: int, time: arb, x: float, y: float) -> acb:
        blocks = -(-len(tilt.shares) // BLOCK)
        floats = tilt.total * (arb(7 * n) * arb(2) ** -62 + arb(60 + blocks) * arb(2) ** -53)
        error = arb(0, (floats + tilt.slack * (time * tilt.rule.grows).exp() + tilt.cut).upper())
        imaginary = y if self.sampled.removed else -y
        return acb(tilt.total * arb(x) + error, tilt.total * arb(imaginary) + error)

    def bound(self, times: arb) -> arb:
        """The value near the middle, by floats, and the steepest slope times the radius.

        exp(-iat) M(c + it) has the modulus of M and a derivative of at most E[exp(cL) abs(L - a)].
        """
        middle = float(abs(times.mid()))
        tilt = self._tilted(middle)
        turns = tilt.logs * (middle / (2 * math.pi))
        if not float(np.max(np.abs(turns))) < 1e5:
            return arb(1)
        cosine, sine = cos_sin_turn(np.minimum(turns - np.floor(turns), 1 - 2.0**-53))
        x, y = float(tilt.shares @ cosine), float(tilt.shares @ sine)
        size = math.sqrt(x * x + y * y)  # a correctly rounded root, which hypot need not be
        # phases of less than 1e5 turns are right to 1e-9 of one, and so is everything after them
        left_out = tilt.slack * (arb(middle) * tilt.rule.grows).exp() + tilt.cut
        value = tilt.total * arb(size + 1e-8) + 2 * left_out
        if self._slope is None:
            mean = arb(float(tilt.shares @ tilt.logs))
            self._slope = self.sampled.slope(self.order, mean if self.sampled.removed else -mean)
        return below_one((value + self._slope * (times.rad() + arb(2) ** -40 * middle)) / self.real)


def phases_of(rule: Rule, step: arb, places: Iterable[int]) -> NDArray[np.uint64]:
    """The turns step ln(b_j)/(2 pi) modulo 1, in units of 2**-64."""
    with working_precision(_PRECISION):  # radii are dropped: they must be far below a unit
        unit = step / (2 * arb.pi()) * arb(2) ** 64
        found = [int((rule.logs[j] * unit).mid().floor().unique_fmpz()) for j in places]  # type: ignore[arg-type]
    return np.array([number % (1 << 64) for number in found], np.uint64)


def float_sums(
    shares: Floats, phases: NDArray[np.uint64], start: int, stop: int
) -> tuple[list[float], list[float]]:
    """The sums of shares * exp(2 pi i n phase) for start <= n < stop."""
    times = np.arange(start, stop, dtype=np.uint64)
    turns = (times[:, None] * phases[None, :] >> np.uint64(11)).astype(np.float64) * 2.0**-53
    blocks = -(-len(shares) // BLOCK)
    padded = np.zeros((stop - start, blocks * BLOCK))
    sums = []
    for wave in cos_sin_turn(turns):
        padded[:, : len(shares)] = wave * shares
        sums.append(padded.reshape(-1, blocks, BLOCK).sum(axis=2).sum(axis=1).tolist())
    return sums[0], sums[1]


@dataclass(frozen=True, slots=True)
class SampledNormal(SampledNoise):
    """Gaussian noise on a Poisson sample.

    Law      Q = N(0, s**2), P = N(1, s**2), s = 1/mu: b(x) = 1 - q + q exp((2x-1)/(2 s**2))
    Theorem  phi b**p is analytic for abs(Im x) < pi s**2, and there, at x + iy, abs(b) <= b(x),
             abs(arg b) <= abs(y)/s**2, and abs(b) >= b(x) cos(y/(2 s**2)). So the trapezoidal rule
             with nodes h apart errs, for every th < pi, by at most
             2 exp(th**2 s**2/2 + abs(t) th) M(c)/(exp(2 pi th s**2/h) - 1) if removed; with a
             factor cos(th/2)**-c if added (Trefethen, Weideman 2014, Theorem 5.1). Nodes left out,
             removed: with e = exp((2x-1)/(2 s**2)), by convexity b**(c+1) is at most
             1 - q + q e**(c+1), and at most 2**c ((1-q)**(c+1) + (q e)**(c+1)): Gaussian tails on
             the right; b <= 1 on the left. Added: b**-c <= (1-q)**-c
    Decay    integrating by parts, abs(M(c+it)) <= TV(g)/t, g = phi b**(p+1) s**2/(b - 1 + q) with
             p = c+1 or -c. ln g has the derivative (-x - 1 + (p+1) r(x))/s**2 with r rising from 0
             to 1, a logistic curve: at most 3 zeros, all in [-1, c+1] or [-max(1,c), 0]. So
             TV(g) <= 4 sup(g), and the supremum is there. Again and again: (ln b)' = r/s**2 with
             1/r = 1 + E, E = (1-q)/q exp((1-2x)/(2 s**2)), and by parts k times abs(M(c+it)) <=
             t**-k times the integral of phi b**p abs(h_k), p = c+1 or -c, h_0 = 1,
             h_(k+1) = -x h (1+E) + p h + (s**2 dh/dx - E dh/dE)(1+E) - h E, a polynomial in x and
             E. The integral is taken by cells. Beyond them abs(x)**n <= n! s**n exp(abs(x)/s), and
             squares are completed: on the left b**p is at most its value 1 or (1-q)**p, on the
             right b <= exp(x/s**2), or b >= 1, and E is at most its value at the end
    Checked  tests/privacy/accounting/test_subsampling.py
    """

    mu_squared: Fraction

    def ceiling(self) -> arb | None:
        return None if self.removed else -arb_of(1 - self.rate).log()

    def least(self) -> arb | None:
        """The infimum of the losses; None if there is none."""
        return arb_of(1 - self.rate).log() if self.removed and self.rate < 1 else None

    def deviation(self) -> arb:
        return arb_of(1 / self.mu_squared).sqrt()

    def cumulant(self, orders: Floats) -> Floats:
        s, q = 1 / math.sqrt(nearest(self.mu_squared)), nearest(self.rate)
        return np.array([self._cumulant(order, s, q) for order in orders.tolist()])

    def _cumulant(self, order: float, s: float, q: float) -> float:
        """The trapezoidal rule, where the weight is; far out the larger of the two extremes."""
        power = order + 1 if self.removed else -order
        if order > 400 * max(s, 1):
            if not self.removed:
                return -order * math.log1p(-q)
            far = order * (order + 1) / (2 * s * s) + power * math.log(q)
            return float(np.logaddexp(power * math.log1p(-q), far))
        left = 0.0 if self.removed else min(order, s * s * (2 + math.log1p(order * q / (1 - q))))
        x = np.arange(-left - 9 * s, (order + 1 if self.removed else 0) + 9 * s, s / 4)
        logs = power * np.logaddexp(math.log1p(-q), math.log(q) + (2 * x - 1) / (2 * s * s))
        logs -= x * x / (2 * s * s)
        peak = float(logs.max())
        return peak + math.log(float(np.exp(logs - peak).sum()) / 4 / math.sqrt(2 * math.pi))

    def new_rule(self, order: float, time: float) -> Rule:
        s, need = 1 / math.sqrt(nearest(self.mu_squared)), BITS * math.log(2)
        angle = 3.0 if self.removed else min(1.57, math.sqrt(8 * need / order))
        narrower = 0 if self.removed else -order * math.log(math.cos(angle / 2))
        extra = (need + narrower + angle**2 * s * s / 2) / angle
        spacing = Fraction(2 * math.pi * s * s / (time + extra)).limit_denominator(1 << 40)
        reach = s * math.sqrt(2 * (need + (0 if self.removed else order * nearest(self.rate) * 2)))
        first = -math.ceil(reach / spacing) - 1
        last = math.ceil(((order + 1 if self.removed else 0) + reach) / spacing) + 1
        v, h = arb_of(1 / self.mu_squared), arb_of(spacing)
        norm = h / (2 * arb.pi() * v).sqrt()
        x = arb_of(spacing * first)
        # neighbouring weights differ by factors that are a geometric sequence themselves
        weight, ratio = norm * (-x * x / (2 * v)).exp(), (-(2 * x * h + h * h) / (2 * v)).exp()
        shrink, tilt = (-h * h / v).exp(), arb_of(self.rate) * ((2 * x - 1) / (2 * v)).exp()
        grow, base = (h / v).exp(), arb_of(1 - self.rate)
        weights, logs = [], []
        for _ in range(first, last + 1):
            weights.append(weight)
            logs.append((base + tilt).log())
            weight, ratio, tilt = weight * ratio, ratio * shrink, tilt * grow
        low, high = spacing * first, spacing * last
        return Rule(tuple(weights), tuple(logs), arb(angle), low, high, spacing)

    def errors(self, rule: Rule, order: arb, total: arb) -> tuple[arb, arb]:
        v = arb_of(1 / self.mu_squared)
        strip = 2 * arb.pi() * rule.grows * v / arb_of(rule.spacing)
        share = 2 * (rule.grows * rule.grows * v / 2).exp() / strip.expm1()
        if not self.removed:
            share /= (rule.grows / 2).cos() ** order
        cut = self._left_out(rule, order)
        most = (total.upper() + cut) / (1 - share)  # M(c) <= total + cut + share M(c)
        if not share < arb(1) / 2:
            return arb("inf"), arb("inf")
        return (share * most).upper(), cut.upper()

    def _left_out(self, rule: Rule, order: arb) -> arb:
        s = self.deviation()
        left, right = normal_tail(-arb_of(rule.low) / s), normal_tail(arb_of(rule.high) / s)
        if not self.removed:
            return arb_of(1 - self.rate) ** -order * (left + right)
        if not arb_of(rule.high) > order + 1:
            return arb("inf")
        beyond = (order * (order + 1) * arb_of(self.mu_squared) / 2).exp()
        beyond *= normal_tail((arb_of(rule.high) - order - 1) / s)
        q, most = arb_of(self.rate), arb(2) ** order
        return left + (right + q * beyond).min(most * (right + q ** (order + 1) * beyond))

    def furthest(self, order: float) -> float:
        s = 1 / math.sqrt(nearest(self.mu_squared))
        return 2e5 * s * s / ((order + 1 if self.removed else 0) + 20 * s)

    def noise_tails(self, place: float) -> tuple[arb, arb]:
        s = self.deviation()
        return normal_tail(arb(place) / s), normal_tail((arb(place) - 1) / s)

    def noise_loss(self, place: arb) -> arb:
        return (2 * place - 1) * arb_of(self.mu_squared / 2)

    def noise_span(self, log_chance: float) -> tuple[float, float]:
        s = 1 / math.sqrt(nearest(self.mu_squared))
        reach = math.sqrt(max(-2 * log_chance, 1.0))  # P[N > x] <= exp(-x**2/2)/2
        return -s * max(reach, 8.0), 1 + s * reach

    def noise_floats(self, places: Floats) -> tuple[Floats, Floats]:
        mu = math.sqrt(nearest(self.mu_squared))
        step = (places[1] - places[0]) * mu / math.sqrt(2 * math.pi)
        return math.log(step) - (places * mu) ** 2 / 2, (2 * places - 1) * mu * mu / 2

    def _logarithm(self, x: arb) -> arb:
        v = arb_of(1 / self.mu_squared)
        return (arb_of(1 - self.rate) + arb_of(self.rate) * ((2 * x - 1) / (2 * v)).exp()).log()

    def decay(self, order: arb, time: arb) -> arb:
        return (4 * self._supremum(order) / time).upper()

    def _supremum(self, order: arb) -> arb:
        """sup(g), at most 3/2 of it: cells are halved until none can be much above the best."""
        v, s = arb_of(1 / self.mu_squared), self.deviation()
        power, rest, q = self.power(order) + 1, arb_of(1 - self.rate), arb_of(self.rate)
        top = float(order.upper())

        def value(x: arb) -> arb:
            # x**2 + 2x - 1 = (x+1)**2 - 2 keeps the balls narrow
            log_b = (rest + q * ((2 * x - 1) / (2 * v)).exp()).log()
            return (power * log_b - ((x + 1) * (x + 1) - 2) / (2 * v)).exp()

        cells = _cells(*((-1.0, top + 1) if self.removed else (-max(1.0, top), 0.0)), 64)
        best = arb(0)
        for cell in cells:
            best = best.max(value(cell.mid()).lower())
        most = arb(0)
        while cells:
            cell = cells.pop()
            bound = value(cell).upper()
            if bound < best * arb(1.5) or cell.rad() < arb(2) ** -30:
                most = most.max(bound)
                continue
            half = cell.rad() / 2
            for middle in (cell.mid() - half, cell.mid() + half):
                best = best.max(value(middle.mid()).lower())
                cells.append(arb(middle.mid(), half * arb(1.0001)))
        return most * v / q / (s * (2 * arb.pi()).sqrt())

    def slope(self, order: arb, middle: arb) -> arb:
        """By cells of x, and beyond them by abs(ln b - a) <= b + abs(a) - ln(1-q) + 1."""
        v, s = arb_of(1 / self.mu_squared), self.deviation()
        rule = self.rule(float(order.upper()) + 1, 8.0)
        power, centre = self.power(order), middle if self.removed else -middle
        total = arb(0)
        for x in _cells(float(rule.low), float(rule.high), _CELLS):
            log_b = self._logarithm(x)
            value = (power * log_b - x * x / (2 * v)).exp() * abs(log_b - centre)
            total += value.upper() * 2 * x.rad()
        most = 2 + abs(centre) - arb_of(1 - self.rate).log()
        left_out = self._left_out(rule, order + 1) * most
        end = arb_of(rule.high)
        if not self.removed:  # there ln b <= ln 2 + x/s**2, and phi x/s**2 is -phi'
            left_out += (-end * end / (2 * v)).exp()
        return ((total + left_out) / (s * (2 * arb.pi()).sqrt()) + left_out).upper()

    def along(self, order: arb) -> SampledLine:
        return _NormalLine(self, order)


class _NormalLine(SampledLine):
    """With the constants of its decay, each found when a time first asks for it."""

    __slots__ = ("_found", "_more")

    def __init__(self, component: SampledNormal, order: arb) -> None:
        self._found: list[tuple[int, arb]] = []
        self._more = by_parts(component, order)
        super().__init__(component, order)

    def decay(self, time: arb) -> arb:
        """The least bound; a k at which they stop falling is the last one that is looked at."""
        best = arb(1)
        for times, constant in self._constants():
            bound = below_one(constant / self.real / time**times)
            if times > 1 and not bound < best:
                break
            best = best.min(bound)
        return best

    def _constants(self) -> Iterator[tuple[int, arb]]:
        if not self._found:
            assert isinstance(self.sampled, SampledNormal)
            self._found = [(1, 4 * self.sampled._supremum(self.order))]
        yield from self._found
        for found in self._more:
            self._found.append(found)
            yield found


Polynomial = dict[tuple[int, int], arb]


def by_parts(part: SampledNormal, order: arb) -> Iterator[tuple[int, arb]]:
    """Some k, each with a C_k for which abs(M(c + it)) <= C_k t**-k."""
    polynomial: Polynomial = {(0, 0): arb(1)}
    for before, times in pairwise((0, *_PARTS)):
        with working_precision(64):
            s, p = part.deviation(), part.power(order)
            for _ in range(before, times):
                polynomial = _next(polynomial, p, s * s)
            found = _size(part, p, polynomial)
        yield times, found


def _next(h: Polynomial, p: arb, v: arb) -> Polynomial:
    """h_(k+1) of the theorem; keys are powers of x and E."""
    total: Polynomial = {}

    def add(n: int, m: int, value: arb) -> None:
        total[n, m] = total.get((n, m), arb(0)) + value

    for (n, m), value in h.items():
        add(n, m, (p - m) * value)
        add(n + 1, m, -value)
        add(n + 1, m + 1, -value)
        add(n, m + 1, -(1 + m) * value)
        if n:
            add(n - 1, m, n * v * value)
            add(n - 1, m + 1, n * v * value)
    return total


def _size(part: SampledNormal, p: arb, h: Polynomial) -> arb:
    """At most the integral of phi b**p abs(h)."""
    s, v, ratio = part.deviation(), part.deviation() ** 2, arb_of((1 - part.rate) / part.rate)
    degree = max(max(powers) for powers in h)
    wide, most = float(s.upper()), max(float(p.upper()), 0.0)
    low, high = -(degree + 10 * wide + 1), most + 10 * wide + 1
    norm = 1 / (2 * arb.pi() * v).sqrt()
    total = arb(0)
    for x in _cells(low, high, _PART_CELLS):
        e = ratio * ((1 - 2 * x) / (2 * v)).exp()
        xs, es = ([base**k for k in range(degree + 1)] for base in (x, e))
        value = sum((c * xs[n] * es[m] for (n, m), c in h.items()), arb(0))
        raised = p * part._logarithm(x) - x * x / (2 * v)
        total += abs(value).upper() * raised.exp().upper() * 2 * x.rad()
    first, last = arb(low), arb(high)
    growth = arb(1) if part.removed else arb_of(1 - part.rate) ** p
    edge = ratio * ((1 - 2 * last) / (2 * v)).exp()
    for (n, m), c in h.items():
        scale = abs(c) * arb.fac_ui(n) * s**n
        shift = m + s  # exp(-x**2/(2v) - m x/v - x/s), x below the first
        left = (shift * shift / (2 * v)).exp() * normal_tail((-first - shift) / s)
        left *= growth * (ratio * (1 / (2 * v)).exp()) ** m
        shift = s + (p if part.removed else 0)
        right = (shift * shift / (2 * v)).exp() * normal_tail((last - shift) / s) * edge**m
        total += scale * (left + right) / norm
    return (total * norm).upper()


@dataclass(frozen=True, slots=True)
class SampledLaplace(SampledNoise):
    """Continuous Laplace noise on a Poisson sample.

    Law      under Q the loss l is -epsilon with probability 1/2, epsilon with exp(-epsilon)/2, and
             has the density exp(-(l + epsilon)/2)/4 between; b = 1 - q + q exp(l)
    Theorem  the integral by Gauss-Legendre with n nodes errs by at most
             64/15 epsilon S/((1 - r**-2) r**(2n)), S the supremum of the integrand on the Bernstein
             ellipse of parameter r (Trefethen 2013, Theorem 19.3). There abs(Re l) <= epsilon
             (r + 1/r)/2 and y = abs(Im l) <= epsilon (r - 1/r)/2 <= pi/2, abs(arg b) <= y,
             abs(b) <= 1 - q + q exp(Re l) and Re b >= 1 - q
    Decay    the two atoms do not decay; the rest does, by parts, as in `SampledNormal`: the factor
             exp(-3l/2) b**(p+1) has one critical point at most
    Checked  tests/privacy/accounting/test_subsampling.py
    """

    epsilon: Fraction

    @property
    def noise_begins_with_an_atom(self) -> bool:
        return True

    def noise_tails(self, place: float) -> tuple[arb, arb]:
        if place >= 1:
            return arb(0), arb(0)
        loss, half = arb_of(self.epsilon), arb(place) * arb_of(self.epsilon / 2)
        return (-half - loss / 2).exp() / 2, 1 - (half - loss / 2).exp() / 2

    def noise_loss(self, place: arb) -> arb:
        return place * arb_of(self.epsilon)

    def noise_span(self, log_chance: float) -> tuple[float, float]:
        return -1.0, 1.0  # the ends are atoms

    def noise_floats(self, places: Floats) -> tuple[Floats, Floats]:
        loss = nearest(self.epsilon)
        masses = math.log((places[1] - places[0]) * loss / 4) - (places + 1) * loss / 2
        masses[0], masses[-1] = -math.log(2), -math.log(2) - loss
        return masses, places * loss

    def _ratio(self, order: float, time: float) -> tuple[float, int]:
        """The parameter of the ellipse, and how many nodes are enough."""
        loss, best = nearest(self.epsilon), (2.0, 1 << 30)
        for y in (1.5, 1.0, 0.5, 0.25, 0.1, 0.05, 0.02):
            half = min(y / loss, 1e6)
            r = half + math.sqrt(1 + half * half)
            wide = loss * (r + 1 / r) / 2
            need = BITS * math.log(2) + time * min(y, loss * half) + wide + 10
            need += (order + 1) * wide if self.removed else order * -math.log1p(-nearest(self.rate))
            best = min(best, (r, math.ceil(need / (2 * math.log(r)))), key=lambda pair: pair[1])
        return best

    def ceiling(self) -> arb | None:
        loss = arb_of(self.epsilon)
        return self.ratio(loss).log() if self.removed else -self.ratio(-loss).log()

    def least(self) -> arb | None:
        """The infimum of the losses."""
        loss = arb_of(self.epsilon)
        return self.ratio(-loss).log() if self.removed else -self.ratio(loss).log()

    def new_rule(self, order: float, time: float) -> Rule:
        r, count = self._ratio(order, time)
        loss = arb_of(self.epsilon)
        weights, logs = (
            [arb(1) / 2, (-loss).exp() / 2],
            [self.ratio(-loss).log(), self.ratio(loss).log()],
        )
        for k in range(count):
            node, weight = arb.legendre_p_root(count, k, weight=True)
            x = loss * node
            weights.append(weight * loss * (-(x + loss) / 2).exp() / 4)
            logs.append(self.ratio(x).log())
        height = self.epsilon * (Fraction(r) - 1 / Fraction(r)) / 2
        return Rule(
            tuple(weights), tuple(logs), arb_of(height), Fraction(r), Fraction(count), height
        )

    def errors(self, rule: Rule, order: arb, total: arb) -> tuple[arb, arb]:
        r, n, loss = arb_of(rule.low), int(rule.high), arb_of(self.epsilon)
        wide = loss * (r + 1 / r) / 2
        most = self.ratio(wide) ** (order + 1) if self.removed else arb_of(1 - self.rate) ** -order
        if not rule.grows < arb.pi() / 2:
            return arb("inf"), arb("inf")
        top = ((wide - loss) / 2).exp() / 4 * most
        return (arb(64) / 15 * loss * top / (1 - r**-2) / r ** (2 * n)).upper(), arb(0)

    def cumulant(self, orders: Floats) -> Floats:
        masses, losses = self.noise_floats(np.linspace(-1, 1, 2001))
        logs = np.logaddexp(math.log1p(-nearest(self.rate)), math.log(nearest(self.rate)) + losses)
        powers = orders + 1 if self.removed else -orders
        return np.asarray(np.logaddexp.reduce(masses + powers[:, None] * logs, axis=1))

    def furthest(self, order: float) -> float:
        return 1e4 if self._ratio(order, LEAST_REACH)[1] < _MOST_NODES else 0.0

    def decay(self, order: arb, time: arb) -> arb:
        loss, power = arb_of(self.epsilon), self.power(order)
        low, high = self.ratio(-loss), self.ratio(loss)
        atoms = low**power / 2 + (-loss).exp() * high**power / 2
        steep = (low ** (power + 1)).max(high ** (power + 1)) * loss.exp()
        return (atoms + steep / arb_of(self.rate) / time).upper()

    def slope(self, order: arb, middle: arb) -> arb:
        """L lies between the logarithms at both ends, so abs(L - a) is at most at one of them."""
        loss = arb_of(self.epsilon)
        ends = [self.ratio(x).log() for x in (-loss, loss)]
        sign = 1 if self.removed else -1
        far = abs(sign * ends[0] - middle).max(abs(sign * ends[1] - middle))
        return (self.moment(acb(order)).real * far).upper()


def normal_tail(x: arb) -> arb:
    """P[N > x]."""
    return (x / arb(2).sqrt()).erfc() / 2


def _cells(left: float, right: float, count: int) -> list[arb]:
    """Balls that cover an interval."""
    width = (right - left) / count
    return [arb(left + (i + 0.5) * width, width * 0.5000001) for i in range(count)]
