"""Several releases of bounded range: bounds for adaptive choices, and choices that attain them.

A release of bounded range e has losses in an interval [t-e, t]. Which t, the mechanism and the
neighbours choose, anew at every release and after all earlier answers. One pair that dominates one
release (`component.Tilted`) dominates several too, and is then far from tight.

Law      D_R(y), the greatest E[(1 - exp(y - L))_+] over all ways to choose the releases of a list R
Theorem  (recursion) D of no release is (1 - exp(y))_+, and D_R(y) is the greatest, over a release
         of R that comes first and t in [0, e], of p D_R'(y - t) + (1-p) D_R'(y - t + e), where R'
         is the rest and p = (1 - exp(t-e))/(1 - exp(-e)). Beside other releases, whose pairs do not
         depend on answers, the whole has at most E[D_R(x - L)], L the loss of all others
Proof    Given the first answer, the rest adds at most D_R'(y - loss). r D_R'(y - ln r) is the
         greatest r P[S] - exp(y) Q[S] over strategies and events, so it is convex in r = dP/dQ: of
         all laws of r with mean 1 under Q and r in [exp(t-e), exp(t)], the one on the two ends has
         the most. An end t outside [0, e] has no law. Others: who sees their draws first has no
         fewer strategies.  []

Theorem  (Gaussian) let A_i = e_i**2/4, A the greatest, s >= 3A, A <= 8. Then D_R is at most the
         profile of one Gaussian loss of variance s + sum A_i + A ln((s - 2A + sum A_i)/(s - 2A))
Proof    Let U(y, s) be the profile of a Gaussian loss of variance s, H = exp(-y/2) U and f the
         density of N(0, s). H(y, s) = exp(-s/8) E[2 sinh((Z-y)/2)_+], Z normal with variance s, so
         H'' - H/4 = exp(-s/8) f(y) = 2 dH/ds (1).
         One step. The recursion in terms of H has the weights a = sinh((e-t)/2)/sinh(e/2) at y-t
         and b = sinh(t/2)/sinh(e/2) at y-t+e. They leave exp(y/2) and exp(-y/2) as they are, so for
         every smooth H: a H(y-t) + b H(y-t+e) - H(y) = int K(r) (H'' - H/4)(y+r) dr (2), K >= 0 the
         Green's function of that operator on [-t, e-t].
         Let k(w) = ln(a exp(wt) + b exp(w(t-e))). It is 0 at w = 1/2 and -1/2, and k'' is a
         variance on two points e apart, at most A. So k(w) - (w**2 - 1/4) A/2 is concave with two
         zeros: not above 0 outside [-1/2, 1/2], not below 0 inside. With (2) for H = exp(-wy),
           int K(r) exp(-wr) dr = (exp(k(w)) - 1)/(w**2 - 1/4)
                               <= (1/2) int_0^A exp((w**2 - 1/4) u/2) du.
         By (1), (2) and f(y+r) <= f(y) exp(-wr), w = y/s, a step adds to H at most
         exp(-s/8) f(y) times that. Growing s by v = sA/(s-A) adds, with u = sc/(s+c),
           exp(-s/8) f(y) (1/2) int_0^v exp(-c/8) (s/(s+c))**(1/2) exp(w**2 u/2) dc
           = exp(-s/8) f(y) (1/2) int_0^A g(u) exp((w**2 - 1/4) u/2) du,
         g(u) = (1-u/s)**(-3/2) exp(-u**2/(8(s-u))), which is at least 1: -ln(1-u/s) >= u/s and
         12 (s-u) >= s u, as u <= A <= s/3 and A <= 8. So the step is within U(y, s + v),
         v = A + A**2/(s-A).
         All steps. U grows with s, so start with U(y, s) instead of (1 - exp(y))_+. In any order,
         also one chosen on the way, step i adds at most A_i + A A_i/(s' - A), s' >= s + the sum of
         the A_j before. Let S = s - A + that sum: A_i/S is at most int dz/(z - A) from S to
         S + A_i, and these add up to ln((s - 2A + sum A_i)/(s - 2A)).  []
Theorem  (moments) E[exp(c L)] <= prod exp(c (c+1) A_i/2), whatever is chosen: k(c + 1/2) above
Source   Dong, Durfee, Rogers 2020 (two points, and that adaptive choices gain); Cesar, Rogers 2021
         (the moments). The Gaussian theorem is ours
Differs  `Steps` evaluates the recursion on a grid for equal releases, from both sides. Lower bounds
         are those of mechanisms: two answers each, t on the grid or fixed
Checked  tests/privacy/accounting/test_bounded_range.py
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb

from lastbit.exact import arb_of, lower, nearest, upper, working_precision
from lastbit.privacy.accounting.component import Component, Floats, Normal, Tilted, TwoLosses
from lastbit.privacy.accounting.composition import Composition

_PRECISION = 128
_LARGEST_SPREAD = 8
_MOST_UPDATES = 1.5e7  # of cells: some 0.1 s
_FEWEST_CELLS, _MOST_CELLS = 8, 512
_CRUMB = 2.0**-46  # more than all rounding of one update
_TINY = 2.0**-1000  # more than all underflow
_FAR = 24.0  # the window ends where a tail is exp(-24) of what is asked


def ranges(composition: Composition) -> list[tuple[Fraction, int]]:
    """The releases of bounded range, if there are several."""
    found = [(part.epsilon, n) for part, n in composition.parts if isinstance(part, Tilted)]
    return found if sum(n for _, n in found) > 1 else []


def _spread(epsilon: Fraction) -> Fraction:
    return epsilon * epsilon / 4


def _replaced(composition: Composition, others: dict[Fraction, Component]) -> Composition:
    """The same with something else for every release of bounded range; with nothing, the same."""
    return (
        composition
        if not others
        else Composition.of(
            (others[part.epsilon] if isinstance(part, Tilted) else part, n)
            for part, n in (*composition.parts, *composition.told)
        )
    )


def concentrated(composition: Composition) -> Composition:
    """A composition whose moments are upper bounds; it need not dominate."""
    return _replaced(composition, {e: Normal(_spread(e)) for e, _ in ranges(composition)})


def gaussian_form(composition: Composition) -> Composition | None:
    """A composition that dominates: all of bounded range as one Gaussian loss."""
    listed = ranges(composition)
    most = max((_spread(e) for e, _ in listed), default=Fraction(0))
    if not 0 < most <= _LARGEST_SPREAD:
        return None
    total = sum((n * _spread(e) for e, n in listed), Fraction(0))
    start = 3 * most
    with working_precision(_PRECISION):
        more = arb_of(most) * arb_of((start - 2 * most + total) / (start - 2 * most)).log()
        spread = start + total + Fraction(upper(more))
    rest = [(p, n) for p, n in (*composition.parts, *composition.told) if not isinstance(p, Tilted)]
    return Composition.of([*rest, (Normal(spread), 1)])


# ---------------------------------------------------------------- mechanisms that attain


def two_loss_forms(composition: Composition, order: float, x: float) -> Iterator[Composition]:
    """Compositions of mechanisms with two answers each: what they lose is lost.

    The t of the largest moment of an order; where all are alike, also those next to it of the best
    choices that do not look at answers, (x + j e)/(k + 1) (Dong, Durfee, Rogers 2020).
    """
    listed = ranges(composition)
    yield _replaced(composition, {e: TwoLosses(e, _best_end(e, order)) for e, _ in listed})
    if len(listed) == len(composition.parts) == 1 and math.isfinite(x):
        ((epsilon, count),) = listed
        middle = ((count + 1) * nearest(_best_end(epsilon, order)) - x) / nearest(epsilon)
        for j in {math.floor(middle), math.ceil(middle)}:
            end = Fraction((x + j * nearest(epsilon)) / (count + 1))
            if epsilon / 2 <= end < epsilon:
                yield _replaced(composition, {epsilon: TwoLosses(epsilon, end)})


def _best_end(epsilon: Fraction, order: float) -> Fraction:
    """About the t in [e/2, e) of the largest moment; floats may be careless."""
    e, w = nearest(epsilon), order + 0.5
    t = e * np.arange(512, 1024) / 1024
    with np.errstate(all="ignore"):
        high = w * t + np.log(-np.expm1(t - e)) - t / 2
        low = w * (t - e) + np.log(-np.expm1(-t)) - (e - t) / 2
        value = np.logaddexp(high, low)
    index = int(np.argmax(np.where(np.isfinite(value), value, -1e300)))
    return epsilon * Fraction(512 + index, 1024)


# ---------------------------------------------------------------- the recursion


@dataclass(frozen=True, slots=True)
class Steps:
    """D of k equal releases at y = origin + i step, for i from `first` on, from both sides.

    Theorem  the recursion is monotone in D, and keeps D(ln w) convex in w: the chord through upper
             bounds at the points is one everywhere. On a chord, with u = exp(t) between points
             a and b, the value is linear in u and 1/u: at most the larger end and
             (D_b - D_a - exp(-e) (E_b - E_a))_+ exp(h) (exp(h) - 1)/(4 (1 - exp(-e))) more, D_a =
             D(y-a), E_a = D(y-a+e), h = b - a: the curvature of its term in 1/u. Beyond the points
             D is at most its last value, or 1. From below: the best t among the points is a choice
             that a mechanism can make
    """

    origin: Fraction
    step: Fraction
    first: int
    above: Floats
    below: Floats

    def bounds_at_origin(self) -> tuple[float, float]:
        """D(origin) from below and from above."""
        return float(self.below[-self.first]), float(self.above[-self.first])

    def epsilon_bounds(self, chance: arb) -> tuple[float, float]:
        """Where D falls to a chance: not below the first point, not above the second."""
        least, most = lower(chance), upper(chance)
        proved = np.flatnonzero(self.below > most)
        low = self._place(int(proved[-1])) if proved.size else Fraction(0)
        reached = np.flatnonzero(self.above <= least)
        if not reached.size or reached[0] == 0:
            return max(lower(low), 0.0), math.inf
        index = int(reached[0])
        with working_precision(_PRECISION):
            # the chord: exp(x) = exp(left) + share (exp(right) - exp(left))
            high, end = arb(self.above[index - 1]), arb(self.above[index])
            share = (high - arb(least)) / (high - end)
            left = arb_of(self._place(index - 1))
            place = left + (share * arb_of(self.step).expm1()).log1p()
        return max(lower(low), 0.0), max(upper(place), 0.0)

    def _place(self, index: int) -> Fraction:
        return self.origin + (self.first + index) * self.step


def steps(composition: Composition, low: Fraction, chance: float) -> Steps | None:
    """The recursion about the point `low`, for chances of about so much; None if it is long."""
    listed = ranges(composition)
    if len(listed) != 1 or len(composition.parts) != 1 or not 1e-200 < chance < 1:
        return None
    ((epsilon, count),) = listed
    e, spread = nearest(epsilon), count * nearest(_spread(epsilon))
    past = max(nearest(low) - spread / 2, 0.0)
    far = 2 * spread * (_FAR + max(-math.log(chance) - past * past / (2 * spread), 0.0))
    top = min(spread / 2 + math.sqrt(past * past + far), count * e) + e
    if not math.isfinite(top):
        return None
    width = (2 * top - nearest(low)) / e + 2
    cells = int(min(math.sqrt(_MOST_UPDATES / (count * width)), _MOST_CELLS))
    if cells < max(_FEWEST_CELLS, 2 * e):
        return None
    # a path from `low` to y has the loss low - y, and one above `top` is next to impossible
    h = e / cells
    first, last = -math.ceil(top / h), max(math.ceil((top - nearest(low)) / h), 1)
    above, below = _recursion(_Grid(epsilon, cells, low, first, last), count)
    return Steps(low, epsilon / cells, first, above, below)


@dataclass(frozen=True, slots=True)
class _Grid:
    epsilon: Fraction
    cells: int
    origin: Fraction
    first: int
    last: int

    def start(self) -> tuple[Floats, Floats]:
        """(1 - exp(y))_+ at all points, from above and from below."""
        with working_precision(_PRECISION):
            step = self.epsilon / self.cells
            places = (arb_of(self.origin + i * step) for i in range(self.first, self.last + 1))
            exact = [(-place.expm1()).nonnegative_part() for place in places]
            return np.array([upper(d) for d in exact]), np.array([lower(d) for d in exact])

    def chances(self) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
        """The chances p and 1-p at every t of the grid, from above and from below."""
        with working_precision(_PRECISION):
            whole = -(-arb_of(self.epsilon)).expm1()
            ends = [self.epsilon * Fraction(j, self.cells) for j in range(self.cells + 1)]
            p = [-arb_of(t - self.epsilon).expm1() / whole for t in ends]
            rest = [(-arb_of(self.epsilon - t)).exp() * -(-arb_of(t)).expm1() / whole for t in ends]
            pairs = list(zip(p, rest, strict=True))
            return (
                [(upper(a), upper(b)) for a, b in pairs],
                [(max(lower(a), 0.0), max(lower(b), 0.0)) for a, b in pairs],
            )

    def bend(self) -> tuple[float, float]:
        """exp(-e) from below; exp(h) (exp(h) - 1)/(4 (1 - exp(-e))) from above."""
        with working_precision(_PRECISION):
            shrink, h = (-arb_of(self.epsilon)).exp(), arb_of(self.epsilon / self.cells)
            return lower(shrink), upper(h.exp() * h.expm1() / (4 * (1 - shrink)))


def _recursion(grid: _Grid, count: int) -> tuple[Floats, Floats]:
    """D after `count` steps at all points, from above and from below."""
    (above, below), (most, least) = grid.start(), grid.chances()
    shrink, bend = grid.bend()
    for _ in range(count):
        above = _raised(above, most, shrink, bend)
        below = _lowered(below, least)
    return above, below


def _raised(
    values: Floats, chances: list[tuple[float, float]], shrink: float, bend: float
) -> Floats:
    cells, size = len(chances) - 1, len(values)
    padded = np.concatenate([np.ones(cells), values, np.full(cells, values[-1])])
    best, before = np.zeros(size), None
    for j, (p, rest) in enumerate(chances):
        near = padded[cells - j : cells - j + size]
        far = padded[2 * cells - j : 2 * cells - j + size]
        value = p * near + rest * far
        if before is not None:
            near_before, far_before, value_before = before
            more = (near - near_before) - shrink * (far - far_before) + _CRUMB * near
            np.maximum(best, np.maximum(value, value_before) + bend * np.maximum(more, 0), out=best)
        before = near, far, value
    found = np.minimum(best * (1 + _CRUMB) + _TINY, 1.0)
    # D falls, and so shall its upper bounds: the crumb above counts on it
    return np.maximum.accumulate(found[::-1])[::-1]


def _lowered(values: Floats, chances: list[tuple[float, float]]) -> Floats:
    cells, size = len(chances) - 1, len(values)
    padded = np.concatenate([np.full(cells, values[0]), values, np.zeros(cells)])
    best = np.zeros(size)
    for j, (p, rest) in enumerate(chances):
        near = padded[cells - j : cells - j + size]
        far = padded[2 * cells - j : 2 * cells - j + size]
        np.maximum(best, p * near + rest * far, out=best)
    return np.maximum(best * (1 - _CRUMB) - _TINY, 0.0)
