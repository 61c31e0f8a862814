"""Intervals of smooth formulas over several noisy numbers, by their joint noise.

Law      f is a formula over true integers y = (y_1, ..., y_j) of one row, Y = y + X is released, X
         has independent entries of known laws. `Joint` says where f(y) lies
Theorem  (coverage) the interval holds f(y) in at least 1 - beta of all releases.
Proof    Let b = beta/20, s_i the scale (Laplace) or deviation (Gaussian) of X_i, and D the event
         that abs(X_i) <= h_i for all i, of failure b by the exact laws and the union bound.
         A test for each y, chosen by y alone: where f is smooth over y +- 17/8 h, and r there at
         most `_MOST_BENT` times the steepest abs(s_i g_i) (of f, or of N - v D), reject unless D
         holds and abs(g X) <= t(g) for the gradient g of f at y, with t of failure beta - b
         (`linear_reach`); elsewhere reject unless abs(X_i) <= a_i, of failure beta/j each. No test
         rejects the true y in more than beta. The interval holds f of all y that are not rejected:
         - of the first kind, with Taylor's theorem on the way from y to Y: abs(f(Y) - f(y)) <= t(g)
           + r, r = the sum of M_ik h_i h_k/(2 s_i s_k), M_ik the most of abs(s_i s_k f_ik) over
           Y +- h, and abs(s_i g_i) is at most its value at Y and the sum of M_ik h_k/s_k; t grows
           with each. For f = N/D the same test is one of N - v D, v = f(y), as its gradient is
           D(y) g: so abs(f(Y) - v) <= (t + r)/abs(D(Y)), of N - v D for the v that are left;
         - of the second kind: what interval arithmetic gives over the box of a_i.
         Such y lie in Y +- h. If f is smooth over Y +- 25/8 h all of them are of the first kind; if
         it is not over Y +- h none is, as y +- 17/8 h holds that: interval arithmetic rounded
         outwards is monotone, so this is decided by what it can show. Between the two, both.
         Where f is linear, M = 0: D is not needed, and t has failure beta. Nor is it for f = N/D of
         linear N, D (Fieller): v = f(Y) + x is not rejected only if abs(x D(Y)) <= t(a + abs(x) d),
         a and d the sizes of N - f(Y) D and of D; as t is homogeneous and grows, all x beyond one
         that is rejected are
Theorem  (linear_reach) P[abs(sum of c_i X_i) > t(c)] <= beta
         - Laplace: sum of c_i (1 - s_i tanh(1/(2 s_i))) and the t of P[abs(sum of c_i s_i L_i) >=
           t] = beta, L_i continuous (`reach.py`, L). With p_i = c_i s_i, all different, that chance
           is the sum of w_i exp(-t/p_i), w_i = product over k of p_i**2/(p_i**2 - p_k**2) (partial
           fractions of the transform); it grows with each p_i (Anderson), so equal ones are moved
           apart upwards. Beyond the `_EXACT_TERMS` largest, and for sums of copies, Chernoff with
           the exact transform 1/(1 - v (cosh(l c) - 1)), v the variance, at a small part of beta;
         - Gaussian: `laws/sums.py` with a blur of a quarter of the largest c_i**2;
         - any: the union bound, where it is shorter
Source   Fieller 1954 (tests inverted); Taylor models: Moore 1966; Anderson 1955
Differs  totals over d rows count their own row and d - 1 copies of its noise
Checked  tests/release/test_joint.py
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations
from typing import Any, TypeAlias

import numpy as np

from lastbit.exact import arb_of, root_above, upper, working_precision
from lastbit.laws import DiscreteGaussian, DiscreteLaplace, normal_reach
from lastbit.release.reach import MeasureNoise
from lastbit.release.taylor import Array, Box, Taylor, outwards

Quotient: TypeAlias = tuple[Taylor, Taylor | None]
"""A formula, or its numerator and its denominator."""
Formula: TypeAlias = Callable[[list[Taylor]], Quotient]

_EXACT_TERMS = 6
_APART = 1 / 96  # of equal scales; weights then stay below 2**31, far from 2**52
_FLOOR = 2.0**-10  # of the largest scale: smaller ones are moved up to it
_HALVINGS = 36
_RATES = (0.25, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 1.8, 2.2, 2.6, 3.0, 3.5, 4.2, 5.0)
_SHARPENED, _STEPS = 4, 8
_MOST_BENT = 12  # r over the steepest abs(s_i g_i): beyond, a box of the noises is narrower
_LOCAL = Fraction(1, 20)  # the part of beta that says where y may be


def _up(number: Any) -> Any:
    """More than what a few roundings took."""
    return number * (1 + 2.0**-45)


@dataclass(frozen=True, slots=True)
class Coordinate:
    """One noisy integer of every row, or the sum of `copies` with independent noises."""

    noise: MeasureNoise
    copies: int = 1

    @property
    def scale(self) -> float:
        """What its noise is measured in: s_i, rounded up."""
        law = self.noise.law
        if isinstance(law, DiscreteLaplace):
            return float(_up(float(law.scale)))
        return float(_up(float(root_above(law.variance * self.copies))))

    def accuracy(self, beta: Fraction) -> int:
        """An a with P[abs(noise) > a] <= beta: exact of one, else by union, Chernoff, Chebyshev."""
        if self.copies == 1:
            return self.noise.accuracy(beta)
        apart = self.copies * self.noise.accuracy(beta / self.copies)
        spread = math.isqrt(math.ceil(self.noise.variance * self.copies / beta)) + 1
        return min(apart, spread, math.ceil(float(_chernoff(np.ones((1, 1)), [self], beta)[0])))


# ---------------------------------------------------------------- linear forms


def linear_reach(sizes: Array, coordinates: Sequence[Coordinate], beta: Fraction) -> Array:
    """t(c) of each row; `sizes` has abs(c_i) times the scale of coordinate i, a line for each."""
    steps = _up(sizes / np.array([[one.scale] for one in coordinates]))
    halves = np.array([float(one.accuracy(beta / len(coordinates))) for one in coordinates])
    gaussian = isinstance(coordinates[0].noise.law, DiscreteGaussian)
    reach = _gaussian_reach if gaussian else _laplace_reach
    return _up(np.fmin(halves @ steps, reach(sizes, steps, coordinates, beta)))


def linear_half(
    factors: Sequence[Fraction], noises: Sequence[MeasureNoise], beta: Fraction
) -> Fraction:
    """How far the sum of factors times noises strays, but with beta; one alone exactly."""
    kept = [(factor, noise) for factor, noise in zip(factors, noises, strict=True) if factor]
    if len(kept) == 1:
        return kept[0][0] * kept[0][1].accuracy(beta)
    sizes = np.array([[_up(float(f) * Coordinate(noise).scale)] for f, noise in kept])
    return Fraction(float(linear_reach(sizes, [Coordinate(noise) for _, noise in kept], beta)[0]))


def _gaussian_reach(
    sizes: Array, steps: Array, coordinates: Sequence[Coordinate], beta: Fraction
) -> Array:
    widths: list[Fraction] = []
    for one in coordinates:
        widths.append(1 / (1 / one.noise.variance + 4))
        # of copies what was added before is at least as wide
        widths += [one.noise.variance / 2] * (one.copies - 1)
    z, blur = normal_reach(beta, widths), np.max(steps, axis=0) / 2
    far = math.inf if z is None else float(z)
    return _up(3 * blur + far * np.sqrt(blur**2 + np.sum(sizes**2, axis=0)))


def _laplace_reach(
    sizes: Array, steps: Array, coordinates: Sequence[Coordinate], beta: Fraction
) -> Array:
    single = [i for i, one in enumerate(coordinates) if one.copies == 1]
    single.sort(key=lambda i: -float(np.max(sizes[i], initial=0.0)))
    first = single[:_EXACT_TERMS]
    rest = [i for i in range(len(coordinates)) if i not in first]
    best = np.inf
    for part in (Fraction(1, 10), Fraction(1, 50)) if rest else (Fraction(0),):
        far = laplace_quantile(sizes[first], beta * (1 - part)) if first else 0.0
        for i in first:
            far = far + steps[i] * _shift(coordinates[i].noise)
        if len(first) == 1:  # its own law, which knows its steps
            far = np.fmin(far, steps[first[0]] * coordinates[first[0]].accuracy(beta * (1 - part)))
        if rest:
            far = far + _chernoff(steps[rest], [coordinates[i] for i in rest], beta * part)
        best = np.fmin(best, far)
    return _up(best)


def _shift(noise: MeasureNoise) -> float:
    """1 - s tanh(1/(2s)), rounded up."""
    assert isinstance(noise.law, DiscreteLaplace)
    with working_precision(128):
        scale = arb_of(noise.law.scale)
        return min(upper(1 - scale * (1 / (2 * scale)).tanh()), 1.0)


def laplace_quantile(scales: Array, beta: Fraction) -> Array:
    """The t with P[abs(sum of p_i L_i) >= t] = beta, rounded up; a column for each sum."""
    p = np.sort(_up(scales), axis=0)
    largest = p[-1].copy()
    p[0] = np.maximum(p[0], np.where(largest > 0, largest * _FLOOR, 1.0))
    for i in range(1, len(p)):
        p[i] = np.maximum(p[i], p[i - 1] * (1 + _APART))
    squares = (p * p)[:, None] / (p * p)[None]
    weights = np.ones_like(p)
    for i, k in permutations(range(len(p)), 2):
        weights[i] *= squares[i, k] / (squares[i, k] - 1)
    above = weights + 2.0**-40 * np.abs(weights)

    high = np.log(2.0 * len(p) / float(beta)) * np.sum(p, axis=0)  # the union bound
    low = np.zeros_like(high)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        enough = np.sum(above * np.exp(-middle / p), axis=0) <= float(beta) * (1 - 2.0**-50)
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.where(largest > 0, high, 0.0)


def _chernoff(steps: Array, coordinates: Sequence[Coordinate], beta: Fraction) -> Array:
    """The least of some (ln(2/beta) + ln E exp(l S))/l for S the sum of steps_i X_i."""
    copies = np.array([[float(one.copies)] for one in coordinates])
    variances = np.array([[_up(float(one.noise.variance))] for one in coordinates])
    spread = np.sqrt(np.sum(variances * copies * steps**2, axis=0))
    best = np.full_like(spread, np.inf)
    with np.errstate(all="ignore"):
        for rate in _RATES:
            inside = 1 - variances * 2 * np.sinh(rate / spread * steps / 2) ** 2
            logs = np.sum(-copies * np.log(np.where(inside > _FLOOR, inside, 0.0)), axis=0)
            far = (math.log(2 / float(beta)) + logs) * spread / rate * (1 + 2.0**-30)
            best = np.fmin(best, far)
    return np.where(spread > 0, best, 0.0)


# ---------------------------------------------------------------- formulas


class Joint:
    """Noisy integers of many rows, enclosed by doubles, and the events that the proof speaks of."""

    def __init__(
        self, middles: Sequence[Box], coordinates: Sequence[Coordinate], beta: Fraction
    ) -> None:
        self.middles, self.coordinates, self.beta = middles, coordinates, beta
        self.scales = np.array([one.scale for one in coordinates])
        self.halves = self._accuracies(beta * _LOCAL)
        self.box = self._variables(self._accuracies(beta))
        """The variables over the box of a_i."""

    def intervals(self, formula: Formula) -> Box:
        """Where a formula lies; it takes a Taylor for each coordinate. NaN: it may be anywhere."""
        with np.errstate(all="ignore"):
            low, high = _whole(formula(self.box)).value
            if len({type(one.noise.law) for one in self.coordinates}) > 1:
                return low, high
            here = formula(Taylor.variables(self.middles))
            far, alone, partly = self._far(formula, here)
            first, last = outwards(_whole(here).value[0] - far, _whole(here).value[1] + far)
            low = np.where(alone, first, np.where(partly, np.minimum(low, first), low))
            high = np.where(alone, last, np.where(partly, np.maximum(high, last), high))
        return low, high

    def _accuracies(self, beta: Fraction) -> list[float]:
        split = beta / len(self.coordinates)
        return [_up(float(one.accuracy(split))) for one in self.coordinates]

    def _variables(self, halves: Sequence[float]) -> list[Taylor]:
        pairs = zip(self.middles, halves, strict=True)
        return Taylor.variables([outwards(low - h, high + h) for (low, high), h in pairs])

    def _far(self, formula: Formula, here: Quotient) -> tuple[Array, Array, Array]:
        """How far the formula may be from its value, and where that is all, and a part."""
        (top, bottom), whole = here, _whole(here)
        value = whole.value
        every = np.ones(len(self.middles[0][0]), dtype=bool)
        if not whole.bend:
            return linear_reach(self._sizes(whole.slope), self.coordinates, self.beta), every, every
        if bottom is not None and not (top.bend or bottom.bend):
            return self._ratio(value, top, bottom), every, every
        near = formula(self._variables(self.halves))
        over = _whole(near)
        far = self._reach(whole.slope, over.bend)
        far = np.fmin(far, np.fmax(over.value[1] - value[0], value[1] - over.value[0]))
        if bottom is not None and near[1] is not None:
            for _ in range(_SHARPENED):
                v = Taylor((value[0] - far, value[1] + far), {}, {})
                at = self._reach((top - v * bottom).slope, (near[0] - v * near[1]).bend)
                far = np.fmin(far, _up(at / _least(bottom.value)))
        partly = self._is_smooth(near) & np.isfinite(far)
        wide = formula(self._variables([3.125 * half for half in self.halves]))
        return far, partly & self._is_smooth(wide), partly

    def _ratio(self, value: Box, top: Taylor, bottom: Taylor) -> Array:
        """Fieller's: a distance that is rejected, found by steps and then shown to be."""
        at = self._sizes((top - Taylor(value, {}, {}) * bottom).slope)
        below, divisor = self._sizes(bottom.slope), _least(bottom.value)

        def reach(far: Array) -> Array:
            return _up(linear_reach(at + far * below, self.coordinates, self.beta) / divisor)

        near = reach(0.0)
        for _ in range(_STEPS):
            near = reach(near)
        far = np.full_like(near, np.inf)
        for trial in (4 * near, 1.1 * near, 1.0001 * near):
            far = np.where(reach(trial) < trial, trial, far)
        return far

    def _sizes(self, slope: Mapping[int, Box]) -> Array:
        """The most of each abs(s_i g_i)."""
        sizes = np.zeros((len(self.scales), len(self.middles[0][0])))
        for i, ends in slope.items():
            sizes[i] = _up(np.max(np.abs(ends), axis=0) * self.scales[i])
        return sizes

    def _bent(self, bend: Mapping[tuple[int, int], Box]) -> tuple[Array, Array]:
        """r, and how much larger abs(s_i g_i) may be, in a line each."""
        lines = self._sizes({})
        for (i, k), ends in bend.items():
            most = _up(np.max(np.abs(ends), axis=0))
            lines[i] += most * self.scales[i] * self.halves[k]
            lines[k] += most * self.scales[k] * self.halves[i] * (i != k)
        return _up((np.array(self.halves) / self.scales) @ lines / 2), _up(lines)

    def _reach(self, slope: Mapping[int, Box], bend: Mapping[tuple[int, int], Box]) -> Array:
        """t(g) + r."""
        remainder, grown = self._bent(bend)
        left = self.beta * (1 - _LOCAL)
        return _up(linear_reach(self._sizes(slope) + grown, self.coordinates, left) + remainder)

    def _is_smooth(self, over: Quotient) -> Array:
        """Where it is known to be smooth over a box, and hardly bent there beside its slope."""
        (top, bottom), whole = over, _whole(over)
        flat = self._is_flat(whole)
        if bottom is not None:
            flat = flat | self._is_flat(top - Taylor(whole.value, {}, {}) * bottom)
        return np.isfinite(whole.value[0]) & np.isfinite(whole.value[1]) & flat

    def _is_flat(self, over: Taylor) -> Array:
        steepest = self._sizes({})
        for i, ends in over.slope.items():
            steepest[i] = _least(ends) * self.scales[i]
        return self._bent(over.bend)[0] <= _MOST_BENT * np.max(steepest, axis=0)


def _least(ends: Box) -> Array:
    """The least absolute value."""
    return np.fmax(np.fmax(ends[0], -ends[1]), 0.0)


def _whole(quotient: Quotient) -> Taylor:
    top, bottom = quotient
    return top if bottom is None else top / bottom
