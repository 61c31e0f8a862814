"""One direction of one loss, as the engines see it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from flint import acb, arb, ctx
from numpy.typing import NDArray

from lastbit.exact import arb_of, nearest, working_precision

Floats = NDArray[np.float64]


class Grid(NamedTuple):
    """Every finite loss is offset + spacing * (a whole number)."""

    offset: Fraction
    spacing: Fraction


class Piece(NamedTuple):
    """A summand weight * exp(z shift) * (z+1)**up * z**down / (2z+1)**poles of a moment."""

    weight: arb
    shift: Fraction | arb
    up: int = 0
    down: int = 0
    poles: int = 0


class Component:
    """A pair of laws (P, Q): the loss L = ln(P/Q) under P, known by its moments.

    Law      moment(z) = M(z) = E[exp(z L); L < oo] for Re z >= 0, infinite() = P[L = oo]
    Theorem  the loss of a composition of independent components is the sum of theirs, so its
             moment is the product; and abs(M(c + it)) <= M(c)
    """

    __slots__ = ()

    def moment(self, z: acb) -> acb:
        """M(z), enclosed at the working precision; z may be a wide ball."""
        raise NotImplementedError

    def cumulant(self, orders: Floats) -> Floats:
        """About ln M(c) for every c of an array: floats choose where to compute, no more."""
        raise NotImplementedError

    def infinite(self) -> arb:
        """P[L = oo], enclosed."""
        told = self.told_exactly()
        assert told is not None
        return arb_of(told)

    def told_exactly(self) -> Fraction | None:
        """P[L = oo], where it is rational."""
        return Fraction(0)

    @property
    def grid(self) -> Grid | None:
        """The lattice on which all finite losses lie, if there is one."""
        return None

    @property
    def greatest(self) -> Fraction | None:
        """The greatest finite loss, where there is one and it is rational."""
        return None

    def ceiling(self) -> arb | None:
        """An upper bound of all finite losses; None where there is none."""
        return None if self.greatest is None else arb_of(self.greatest)

    def variance(self) -> Fraction | None:
        """The v of a Gaussian loss, M(z) = exp(v z (z+1)/2); None for all others."""
        return None

    def pieces(self) -> list[Piece] | None:
        """The moment as a short sum of exponentials times powers of z, z+1 and 2z+1."""
        return None

    def along(self, order: arb) -> Line:
        """The moments on the vertical line of an order."""
        return Line(self, order)

    def bound(self, order: arb, times: arb) -> arb:
        """An upper bound of abs(M(order + it)) for every t in a ball."""
        return self.moment(acb(order, times)).abs_upper()

    def decay(self, order: arb, time: arb) -> arb:
        """An upper bound of abs(M(order + it)) for every t >= time."""
        return self.moment(acb(order)).real.upper()


class Line:
    """The moments of a component at order + it, for real t."""

    __slots__ = ("component", "order", "real")

    def __init__(self, component: Component, order: arb) -> None:
        self.component, self.order = component, order
        self.real = component.moment(acb(order)).real

    def values(self, step: arb, first: int, count: int) -> list[acb]:
        """The moments at t = n step, first <= n < first + count."""
        moment, order = self.component.moment, self.order
        return [moment(acb(order, step * n)) for n in range(first, first + count)]

    def bound(self, times: arb) -> arb:
        """An upper bound of abs(M)/M(order) for every t in a ball."""
        return below_one(self.component.bound(self.order, times) / self.real)

    def decay(self, time: arb) -> arb:
        """An upper bound of abs(M)/M(order) for every t >= time."""
        return below_one(self.component.decay(self.order, time) / self.real)


def below_one(ratio: arb) -> arb:
    """An upper bound of a ratio that is at most 1, whatever the ball says."""
    most = ratio.upper()
    return most if most < 1 else arb(1)


@dataclass(frozen=True, slots=True)
class Normal(Component):
    """A Gaussian loss.

    Law      N(0, 1) against N(mu, 1): L is normal with mean v/2 and variance v = mu**2
    Theorem  M(z) = exp(v z (z+1)/2); k of them are one of variance k v
    Checked  tests/privacy/accounting/test_truths.py
    """

    spread: Fraction

    def variance(self) -> Fraction:
        return self.spread

    def moment(self, z: acb) -> acb:
        return (arb_of(self.spread / 2) * z * (z + 1)).exp()

    def cumulant(self, orders: Floats) -> Floats:
        return orders * (orders + 1) * (nearest(self.spread) / 2)

    def bound(self, order: arb, times: arb) -> arb:
        return self.decay(order, abs(times).lower())

    def decay(self, order: arb, time: arb) -> arb:
        return (arb_of(self.spread / 2) * (order * (order + 1) - time * time)).exp().upper()


@dataclass(frozen=True, slots=True)
class Response(Component):
    """Randomised response with k answers, and all told with probability `told`.

    Law      with probability told L = oo. Else L is epsilon, 0, -epsilon with probabilities
             e, k - 2, 1 over e + k - 1, where e = exp(epsilon)
    Theorem  for k = 2 this is the worst of all (epsilon, told)-private pairs (Kairouz, Oh,
             Viswanath 2015): its delta(x) = told + (1-told)(e - exp(x))/(1+e) is the largest that
             the definition allows
    Checked  tests/privacy/accounting/test_truths.py
    """

    epsilon: Fraction
    told: Fraction = Fraction(0)
    answers: int = 2

    def told_exactly(self) -> Fraction:
        return self.told

    def moment(self, z: acb) -> acb:
        loss, up, level, down = _response(self, ctx.prec)
        raised = (z * loss).exp()
        return up * raised + level + down / raised

    def cumulant(self, orders: Floats) -> Floats:
        loss, rest = nearest(self.epsilon), np.log1p(-nearest(self.told))
        most = -np.log1p((self.answers - 1) * np.exp(-loss))
        ends = np.logaddexp(orders * loss, -(orders + 1) * loss)
        if self.answers == 2:
            return np.asarray(ends + most + rest)
        level = np.log(self.answers - 2.0) - loss
        return np.asarray(np.logaddexp(ends, level) + most + rest)

    @property
    def grid(self) -> Grid | None:
        return Grid(self.epsilon, self.epsilon * (2 if self.answers == 2 else 1))

    @property
    def greatest(self) -> Fraction:
        return self.epsilon

    def pieces(self) -> list[Piece]:
        _, up, level, down = _response(self, ctx.prec)
        ends = [Piece(up, self.epsilon), Piece(down, -self.epsilon)]
        return ends if self.answers == 2 else [*ends, Piece(level, Fraction(0))]


@lru_cache(maxsize=64)
def _response(part: Response, precision: int) -> tuple[arb, arb, arb, arb]:
    """Its loss, and P[L = loss], P[L = 0] and P[L = -loss]."""
    with working_precision(precision):
        loss = arb_of(part.epsilon)
        shrink = (-loss).exp()
        best = arb_of(1 - part.told) / (1 + (part.answers - 1) * shrink)
        return loss, best, (part.answers - 2) * shrink * best, shrink * best


@dataclass(frozen=True, slots=True)
class DoubleExponential(Component):
    """Continuous Laplace noise.

    Law      densities exp(-abs(x))/2 and exp(-abs(x - epsilon))/2: L is epsilon with probability
             1/2, -epsilon with exp(-epsilon)/2, and has the density exp((l - epsilon)/2)/4 between
    Theorem  M(z) = ((z+1) exp(z epsilon) + z exp(-(z+1) epsilon))/(2z+1); one release has
             delta(x) = 1 - exp((x-epsilon)/2) for -epsilon <= x <= epsilon
    Checked  tests/privacy/accounting/test_truths.py
    """

    epsilon: Fraction

    def moment(self, z: acb) -> acb:
        loss = arb_of(self.epsilon)
        up, down = (z * loss).exp(), (-(z + 1) * loss).exp()
        # the same as in the docstring, without z + 1 over a nearly equal number in wide balls
        return (up + down) / 2 + (up - down) / (2 * (2 * z + 1))

    def cumulant(self, orders: Floats) -> Floats:
        loss = nearest(self.epsilon)
        up, down = orders * loss + np.log1p(orders), np.log(orders) - (orders + 1) * loss
        return np.asarray(np.logaddexp(up, down) - np.log1p(2 * orders))

    @property
    def greatest(self) -> Fraction:
        return self.epsilon

    def pieces(self) -> list[Piece]:
        shrink = (-arb_of(self.epsilon)).exp()
        return [Piece(arb(1), self.epsilon, 1, 0, 1), Piece(shrink, -self.epsilon, 0, 1, 1)]

    def bound(self, order: arb, times: arb) -> arb:
        loss = arb_of(self.epsilon)
        up, down = (order * loss).exp(), (-(order + 1) * loss).exp()
        mixed = 2 * up * down * (2 * times * loss).cos()
        squares = up * up + down * down
        far = (1 + 4 * times * times).nonnegative_part().sqrt()
        near_by, across = (squares + mixed).nonnegative_part(), (squares - mixed).nonnegative_part()
        return ((near_by.sqrt() + across.sqrt() / far) / 2).upper()

    def decay(self, order: arb, time: arb) -> arb:
        loss = arb_of(self.epsilon)
        up, down = (order * loss).exp(), (-(order + 1) * loss).exp()
        return ((up + down) / 2 * (1 + 1 / (4 * time * time + 1).sqrt())).upper()


@dataclass(frozen=True, slots=True)
class TwoSidedGeometric(Component):
    """Discrete Laplace noise at a distance of d whole steps.

    Law      P[X = k] ~ q**abs(k), q = exp(-1/scale), against X + d. L is (d - 2j)/scale with the
             probabilities 1/(1+q), (1-q)/(1+q) q**j for 0 < j < d, and q**d/(1+q) for j = d
    Theorem  at its lattice points delta(x) is 1 - exp((x - epsilon)/2), epsilon = d/scale, exactly
             that of continuous Laplace noise, and between them it is linear in exp(x): the chord
             of a convex function. So d = 1 is randomised response; the profile falls when a
             lattice is refined; and continuous noise of epsilon is dominated by this, which is
             dominated by continuous noise of epsilon + 2 ln cosh(1/(2 scale)), since over a cell
             of width h = 2/scale the chord of sqrt(y) is at least sqrt(y)/cosh(h/4)
             Proof of the first: D(x_j) = sum over i < j of p_i (1 - q**(2(j-i))); for j = 1 it is
             (1-q**2)/(1+q) = 1 - q, and D(x_(j+1)) - D(x_j) telescopes to q**j (1-q)
    Checked  tests/privacy/accounting/test_truths.py, test_domination.py
    """

    scale: Fraction
    distance: int

    def _kept(self) -> arb:
        return 1 - self.infinite()

    def moment(self, z: acb) -> acb:
        step, loss, before, ratio, share, kept = _geometric(self, ctx.prec)
        up = (z * loss).exp()
        total = (up + (-loss).exp() / up) / (1 + ratio)
        if self.distance > 1:
            turn = ratio * (-2 * z * step).exp()
            last = (-(2 * z + 1) * before).exp()
            total += share * up * turn * (1 - last) / (1 - turn)
        return total * kept

    def cumulant(self, orders: Floats) -> Floats:
        step, loss = nearest(1 / self.scale), nearest(self.distance / self.scale)
        ratio = np.exp(-step)
        ends = (1 + np.exp(-(2 * orders + 1) * loss)) / (1 + ratio)
        if self.distance > 1:
            rate = (2 * orders + 1) * step
            last = -np.expm1(-(2 * orders + 1) * nearest((self.distance - 1) / self.scale))
            ends = ends + np.tanh(step / 2) * last / np.expm1(np.minimum(rate, 700.0))
        return np.asarray(orders * loss + np.log(ends))

    @property
    def grid(self) -> Grid:
        return Grid(self.distance / self.scale, 2 / self.scale)

    @property
    def greatest(self) -> Fraction:
        return self.distance / self.scale

    def pieces(self) -> list[Piece] | None:
        if self.distance > 8:
            return None
        ratio, kept = (-arb_of(1 / self.scale)).exp(), self._kept()
        inner = kept * arb_of(1 / (2 * self.scale)).tanh()
        masses = [inner * (-arb_of(j / self.scale)).exp() for j in range(self.distance + 1)]
        masses[0] = kept / (1 + ratio)
        masses[-1] = kept * (-arb_of(self.distance / self.scale)).exp() / (1 + ratio)
        return [Piece(m, (self.distance - 2 * j) / self.scale) for j, m in enumerate(masses)]


@lru_cache(maxsize=64)
def _geometric(part: TwoSidedGeometric, precision: int) -> tuple[arb, arb, arb, arb, arb, arb]:
    """What its moments at all z share: a step, d and d - 1 of them, q, (1-q)/(1+q), P[L < oo]."""
    with working_precision(precision):
        step = arb_of(1 / part.scale)
        steps = step, arb_of(part.distance / part.scale), arb_of((part.distance - 1) / part.scale)
        return *steps, (-step).exp(), arb_of(1 / (2 * part.scale)).tanh(), part._kept()


@dataclass(frozen=True, slots=True)
class ThetaNormal(Component):
    """Discrete Gaussian noise at a distance of d whole steps.

    Law      P[X = k] ~ exp(-k**2/(2v)) against X + d: L = d**2/(2v) - (d/v) X
    Theorem  M(z) = exp(d**2 z(z+1)/(2v)) S(z d)/S(0), S(a) = sum of exp(-(k+a)**2/(2v)) over the
             integers, by completing the square. S has the period 1, and
             S(a) = sqrt(2 pi v) (1 + 2 sum of exp(-2 pi**2 v m**2) cos(2 pi m a)) over m >= 1
             (Poisson). M(z + 2 pi i v/d) = (-1)**d M(z), as 2 pi i v/d is a period of the lattice,
             so Im z is first brought near 0: there abs(Im a) <= pi v, and the m-th term is at most
             exp(-2 pi**2 v m(m-1)). For small v the terms of S itself are few
    Source   CKS20 Definition 1
    Checked  tests/privacy/accounting/test_truths.py
    """

    spread: Fraction
    distance: int

    @property
    def grid(self) -> Grid:
        return Grid(
            Fraction(self.distance * self.distance) / (2 * self.spread), self.distance / self.spread
        )

    def moment(self, z: acb) -> acb:
        v, d = arb_of(self.spread), self.distance
        period = 2 * arb.pi() * v / d
        whole_periods = round(float((z.imag.mid() / period.mid()).mid()))
        near_by = acb(z.real, z.imag - whole_periods * period)
        growth = (arb_of(Fraction(d * d) / (2 * self.spread)) * near_by * (near_by + 1)).exp()
        found = growth * _theta(near_by * d, self.spread) / _theta(acb(0), self.spread).real
        return -found if whole_periods * d % 2 else found

    def cumulant(self, orders: Floats) -> Floats:
        return orders * (orders + 1) * nearest(Fraction(self.distance**2) / (2 * self.spread))

    def bound(self, order: arb, times: arb) -> arb:
        """abs(M) for t in one half-period, by the sizes of the terms of S."""
        v, d = arb_of(self.spread), self.distance
        period = 2 * arb.pi() * v / d
        shift = round(float((times.mid() / period.mid()).mid()))
        reduced = abs(times - shift * period)
        first, last = reduced.lower().max(arb(0)), reduced.upper()
        if self.spread < _FEW_TERMS or not last < period * arb(0.51):
            return self.moment(acb(order)).real.upper()
        growth = arb_of(Fraction(d * d) / (2 * self.spread)) * (order * (order + 1) - first * first)
        sizes = _poisson(acb(0, last * d), self.spread).real
        return (growth.exp() * sizes / _theta(acb(0), self.spread).real).upper()


def _theta(a: acb, spread: Fraction) -> acb:
    """S(a), up to a factor that is the same for all a, for abs(Im a) at most about pi v."""
    return _few_terms(a, spread) if spread < _FEW_TERMS else _poisson(a, spread)


def _poisson(a: acb, spread: Fraction) -> acb:
    """1 + 2 sum exp(-2 pi**2 v m**2) cos(2 pi m a); the rest by a geometric sum of ratio 1/2."""
    rate = 2 * arb.pi() ** 2 * arb_of(spread)
    turn = (2 * arb.pi() * acb(0, 1) * a).exp()
    back = 1 / turn
    growth = max(turn.abs_upper(), back.abs_upper())
    total, forth, again = acb(1), turn, back
    small = arb(2) ** -(ctx.prec + 4)
    for m in range(1, 4096):
        factor = (-rate * m * m).exp()
        size = (factor * growth**m).upper()
        ratio = ((-rate * (2 * m + 1)).exp() * growth).upper()
        if size < small and ratio < arb(1) / 2:
            rest = arb(0, (4 * size).upper())
            return total + acb(rest, rest)
        total += factor * (forth + again)
        forth *= turn
        again *= back
    return acb(arb("nan"), arb("nan"))


def _few_terms(a: acb, spread: Fraction) -> acb:
    """Sum of exp(-(k+a)**2/(2v)); beyond abs(k + Re a) >= j - 1/2 ratios are below exp(-4(j-1))."""
    middle = -round(float(a.real.mid()))
    total = acb(0)
    double = arb_of(2 * spread)
    for j in range(4096):
        for k in {middle + j, middle - j}:
            total += (-((a + k) * (a + k)) / double).exp()
        far = arb(j + 1) - arb_of(Fraction(1, 2)) - a.real.rad()
        size = ((a.imag * a.imag - far * far) / double).exp().upper()
        if j > 1 and size < arb(2) ** -(ctx.prec + 4) * total.abs_lower():
            rest = arb(0, (4 * size).upper())
            return total + acb(rest, rest)
    return acb(arb("nan"), arb("nan"))


# Below this variance the terms of the sum itself are fewer than those of its transform.
_FEW_TERMS = Fraction(1, 4)


@dataclass(frozen=True, slots=True)
class Tilted(Component):
    """The worst of all pairs whose losses lie in an interval of length epsilon.

    Law      L has the density exp(l/2)/(4 sinh(epsilon/2)) on [-epsilon, epsilon]
    Theorem  delta(x) = E_Q[(r - exp(x))_+], r = dP/dQ, is convex in r, and E_Q[r] = 1. So a pair
             with losses in [t - epsilon, t] has at most the delta of the pair with the two losses t
             and t - epsilon: (1 - exp(t-epsilon))(1 - exp(x-t))/(1 - exp(-epsilon)). At the worst
             t = (x + epsilon)/2 it is (1 - exp((x-epsilon)/2))**2/(1 - exp(-epsilon)), which is the
             profile of the law above. M(z) = sinh((z+1/2) epsilon)/((2z+1) sinh(epsilon/2))
    Source   Durfee, Rogers 2019; Dong, Durfee, Rogers 2020
    Differs  one pair for all t: valid for adaptive composition, not tight for it, see
             `bounded_range.py`
    Checked  tests/privacy/accounting/test_truths.py, test_domination.py
    """

    epsilon: Fraction

    def moment(self, z: acb) -> acb:
        loss = arb_of(self.epsilon)
        up = ((z + arb_of(Fraction(1, 2))) * loss).exp()
        return (up - 1 / up) / 2 / ((2 * z + 1) * (loss / 2).sinh())

    def cumulant(self, orders: Floats) -> Floats:
        loss = nearest(self.epsilon)

        def log_sinh(x: Floats) -> Floats:
            return np.asarray(x + np.log(-np.expm1(-2 * x) / 2))

        raised = log_sinh((orders + 0.5) * loss) - np.log1p(2 * orders)
        return np.asarray(raised - log_sinh(np.asarray(loss / 2)))

    @property
    def greatest(self) -> Fraction:
        return self.epsilon

    def pieces(self) -> list[Piece]:
        half = arb_of(self.epsilon / 2)
        up, down = half.exp() / (2 * half.sinh()), -(-half).exp() / (2 * half.sinh())
        return [Piece(up, self.epsilon, poles=1), Piece(down, -self.epsilon, poles=1)]

    def decay(self, order: arb, time: arb) -> arb:
        loss = arb_of(self.epsilon)
        top = ((order + arb_of(Fraction(1, 2))) * loss).cosh() / (2 * time * (loss / 2).sinh())
        real = self.moment(acb(order)).real.upper()
        return top.upper() if top.upper() < real else real


@dataclass(frozen=True, slots=True)
class TwoLosses(Component):
    """A mechanism of bounded range with two answers, of losses `end` and `end` - epsilon.

    Law      L is t with probability p = (1 - exp(t-epsilon))/(1 - exp(-epsilon)), else t - epsilon;
             epsilon/2 <= t < epsilon
    Theorem  the one p with which both laws have the mass 1
    Checked  tests/privacy/accounting/test_bounded_range.py
    """

    epsilon: Fraction
    end: Fraction

    def _chance(self) -> arb:
        return arb_of(self.end - self.epsilon).expm1() / (-arb_of(self.epsilon)).expm1()

    def moment(self, z: acb) -> acb:
        p, end = self._chance(), arb_of(self.end)
        return (z * end).exp() * (p + (1 - p) * (-z * arb_of(self.epsilon)).exp())

    def cumulant(self, orders: Floats) -> Floats:
        e, t = nearest(self.epsilon), nearest(self.end)
        p = np.expm1(t - e) / np.expm1(-e)
        return np.asarray(orders * t + np.log(p + (1 - p) * np.exp(-orders * e)))

    @property
    def grid(self) -> Grid:
        return Grid(self.end, self.epsilon)

    @property
    def greatest(self) -> Fraction:
        return self.end

    def pieces(self) -> list[Piece]:
        p = self._chance()
        return [Piece(p, self.end), Piece(1 - p, self.end - self.epsilon)]


@dataclass(frozen=True, slots=True)
class Atoms(Component):
    """A finite pair of laws with rational masses.

    Law      L = ln(p/q) with probability p; oo where q = 0
    Theorem  M(z) = sum of p exp(z ln(p/q)), exactly
    Checked  tests/privacy/accounting/test_truths.py
    """

    pairs: tuple[tuple[Fraction, Fraction], ...]

    def told_exactly(self) -> Fraction:
        return sum((p for p, q in self.pairs if not q), Fraction(0))

    def losses(self) -> list[tuple[arb, arb]]:
        """(mass, loss) of every outcome with a finite loss."""
        return [(arb_of(p), arb_of(p / q).log()) for p, q in self.pairs if p and q]

    def moment(self, z: acb) -> acb:
        return sum((mass * (z * loss).exp() for mass, loss in self.losses()), acb(0))

    def cumulant(self, orders: Floats) -> Floats:
        found = [
            np.log(nearest(p)) + orders * np.log(nearest(p / q)) for p, q in self.pairs if p and q
        ]
        return np.asarray(np.logaddexp.reduce(found))

    def ceiling(self) -> arb | None:
        return max((loss.upper() for _, loss in self.losses()), default=arb(0))

    def pieces(self) -> list[Piece] | None:
        if len(self.pairs) > 8:
            return None
        return [Piece(mass, loss) for mass, loss in self.losses()]
