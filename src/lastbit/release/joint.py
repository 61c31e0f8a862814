"""Intervals of smooth formulas over several noisy numbers, by their joint noise.

Law      f is a formula over true integers y = (y_1, ..., y_j) of one row, Y = y + X is released, X
         has independent entries of known laws. `smooth_intervals` says where f(y) lies
Theorem  (coverage) the interval holds f(y) in at least 1 - beta of all releases.
Proof    Let b = beta/20, s_i the scale (Laplace) or deviation (Gaussian) of X_i, u_i = X_i/s_i, and
         D the event that abs(X_i) <= h_i for all i (chance of failure b/2 by the exact laws and the
         union bound) and that u lies in a ball (b/2):
         - Laplace: P[abs(X) >= x] <= exp(-(x - 1/2)/s), as 2/(1 + q) = exp(1/(2s))/cosh(1/(2s)), so
           the sum of abs(u_i) is stochastically at most a Gamma(j) variable and the sum of
           1/(2 s_i): at most T except with chance b/2 (`_gamma_quantile`);
         - Gaussian: E exp(l u**2/2) <= (1 - l)**(-1/2), as for normal variables (the sum of
           exp(-k**2/(2v)) over the integers k, over sqrt(2 pi v), falls with v: Poisson summation;
           for sums of copies: they are sub-Gaussian), so by Chernoff the sum of u_i**2 is at most
           T**2 except with chance b/2 if (T**2/j)**(j/2) exp((j - T**2)/2) <= b/2.
         A test for each y, chosen by y alone: where f is smooth over y +- 17/8 h, reject unless D
         holds and abs(g X) <= t(g) for the gradient g of f at y, with t of failure beta - b
         (`linear_reach`); elsewhere reject unless abs(X_i) <= a_i, of failure beta/j each. No test
         rejects the true y in more than beta. The interval holds f of all y that are not rejected:
         - of the first kind, with Taylor's theorem on the way from y to Y: abs(f(Y) - f(y)) <= t(g)
           + r, r the most of u'Mu/2 over D, M_ik = most of abs(s_i s_k f_ik) over Y +- h, and
           abs(s_i g_i) is at most its value at Y and the most of abs(M u)_i over D; t grows with
           each. In the Laplace ball u'Mu <= T**2 max M and (M u)_i <= T max_k M_ik; in the
           Gaussian one T**2 and T times Frobenius norms; in the box the sums over h_k/s_k;
         - of the second kind: the box of a_i, as `derived.py` has it.
         Such y lie in Y +- h. If f is smooth over Y +- 25/8 h all of them are of the first kind; if
         it is not over Y +- h none is, as y +- 17/8 h holds that: interval arithmetic rounded
         outwards is monotone, so this is decided by what it can show. Between the two, both.
         Where f is linear, M = 0: D is not needed, and t has failure beta
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
from typing import Any, TypeAlias

import numpy as np
from flint import arb

from lastbit.exact import arb_of, root_above, upper, working_precision
from lastbit.laws import DiscreteGaussian, DiscreteLaplace, normal_reach
from lastbit.release.reach import MeasureNoise
from lastbit.release.taylor import Box, Taylor, is_finite

Array: TypeAlias = Any  # of numpy, floats

_EXACT_TERMS = 6
_APART = 1 / 96  # of equal scales; weights then stay below 2**31, far from 2**52
_FLOOR = 2.0**-10  # of the largest scale: smaller ones are moved up to it
_ROUNDING = 2.0**-40
_HALVINGS = 36
_SHARPENED = 4
_MOST_BENT = 12  # r over the steepest abs(s_i g_i): beyond, a box of the noises is narrower
_LOCAL = Fraction(1, 20)  # the part of beta that localizes Y


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
            return _up(float(law.scale))
        return _up(float(root_above(law.variance * self.copies)))

    def accuracy(self, beta: Fraction) -> int:
        """An a with P[abs(noise) > a] <= beta."""
        if self.copies == 1:
            return self.noise.accuracy(beta)
        apart = self.copies * self.noise.accuracy(beta / self.copies)
        spread = math.isqrt(math.ceil(self.noise.variance * self.copies / beta)) + 1
        one = np.ones((1, 1))
        return min(apart, spread, math.ceil(_chernoff(one, [self], beta)[0]))


def _up(number: Any) -> Any:
    return number * (1 + 2.0**-50)


def known_laws(coordinates: Sequence[Coordinate]) -> bool:
    """Whether all noises are of one family, for which the theorem speaks."""
    laws = [one.noise.law for one in coordinates]
    return any(
        all(isinstance(law, kind) for law in laws) for kind in (DiscreteLaplace, DiscreteGaussian)
    )


# ---------------------------------------------------------------- linear forms


def linear_reach(sizes: Array, coordinates: Sequence[Coordinate], beta: Fraction) -> Array:
    """t(c) of each row; `sizes` has abs(c_i) times the scale of coordinate i, a line for each."""
    steps = _up(sizes / np.array([[one.scale] for one in coordinates]))
    split = beta / len(coordinates)
    apart = sum(_up(step * one.accuracy(split)) for step, one in zip(steps, coordinates, strict=True))
    if isinstance(coordinates[0].noise.law, DiscreteGaussian):
        found = _gaussian_reach(sizes, steps, coordinates, beta)
    else:
        found = _laplace_reach(sizes, steps, coordinates, beta)
    return _up(np.fmin(apart, found))


def _gaussian_reach(
    sizes: Array, steps: Array, coordinates: Sequence[Coordinate], beta: Fraction
) -> Array:
    widths: list[Fraction] = []
    for one in coordinates:
        variance = one.noise.variance
        widths.append(1 / (1 / variance + 4))
        widths += [variance / 2] * (one.copies - 1)  # what was added before is at least as wide
    z = normal_reach(beta, widths)
    if z is None:
        return np.full(sizes.shape[1], np.inf)
    blur = np.max(steps, axis=0) / 2
    return _up(3 * blur + _up(float(z)) * np.sqrt(_up(blur**2 + np.sum(sizes**2, axis=0))))


def _laplace_reach(
    sizes: Array, steps: Array, coordinates: Sequence[Coordinate], beta: Fraction
) -> Array:
    single = [i for i, one in enumerate(coordinates) if one.copies == 1]
    several = [i for i, one in enumerate(coordinates) if one.copies > 1]
    order = sorted(single, key=lambda i: -float(np.max(sizes[i], initial=0.0)))
    first, rest = order[:_EXACT_TERMS], order[_EXACT_TERMS:] + several
    if not rest:
        return _exact_reach(sizes[first], steps[first], [coordinates[i] for i in first], beta)
    best = np.full(sizes.shape[1], np.inf)
    for part in (Fraction(1, 10), Fraction(1, 50)):
        far = _chernoff(steps[rest], [coordinates[i] for i in rest], beta * part)
        if first:
            left = [coordinates[i] for i in first]
            far = far + _exact_reach(sizes[first], steps[first], left, beta * (1 - part))
        best = np.fmin(best, far)
    return _up(best)


def _exact_reach(
    sizes: Array, steps: Array, coordinates: Sequence[Coordinate], beta: Fraction
) -> Array:
    """Of a few Laplace noises."""
    far = laplace_quantile(sizes, beta)
    for step, one in zip(steps, coordinates, strict=True):
        far = far + _up(step * _shift(one.noise))
    if len(coordinates) == 1:  # its own law, which knows its steps
        far = np.fmin(far, steps[0] * coordinates[0].accuracy(beta))
    return _up(far)


def _shift(noise: MeasureNoise) -> float:
    """1 - s tanh(1/(2s)), rounded up."""
    assert isinstance(noise.law, DiscreteLaplace)
    with working_precision(128):
        scale = arb_of(noise.law.scale)
        return min(upper(1 - scale * (1 / (2 * scale)).tanh()), 1.0)


def laplace_quantile(scales: Array, beta: Fraction) -> Array:
    """The t with P[abs(sum of p_i L_i) >= t] = beta, rounded up; a column for each sum."""
    p = np.sort(_up(scales), axis=0)
    largest = p[-1]
    below = p[0] = np.maximum(p[0], largest * _FLOOR)
    for i in range(1, len(p)):
        below = p[i] = np.maximum(p[i], below * (1 + _APART))
    safe = np.where(largest > 0, p, 1.0 + np.arange(len(p))[:, None])
    squares = safe * safe
    weights = np.ones_like(safe)
    for i in range(len(p)):
        for k in range(len(p)):
            if i != k:
                weights[i] *= squares[i] / (squares[i] - squares[k])
    total, limit = np.abs(weights), float(beta) * (1 - 2.0**-50)

    def is_enough(t: Array) -> Array:
        tails = np.exp(-t / safe)
        return np.sum(weights * tails, axis=0) + _ROUNDING * np.sum(total * tails, axis=0) <= limit

    high = np.log(2.0 * len(p) / float(beta)) * np.sum(safe, axis=0)  # the union bound
    low = np.zeros_like(high)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        enough = is_enough(middle)
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.where(largest > 0, high, 0.0)


def _chernoff(steps: Array, coordinates: Sequence[Coordinate], beta: Fraction) -> Array:
    """The least of some (ln(2/beta) + ln E exp(l S))/l for S the sum of steps_i X_i."""
    variances = [_up(float(one.noise.variance)) for one in coordinates]
    spread = np.sqrt(
        sum(v * one.copies * step**2 for v, one, step in zip(variances, coordinates, steps, strict=True))
    )
    safe = np.where(spread > 0, spread, 1.0)
    start = _up(math.log(2 / float(beta)))
    best = np.full_like(safe, np.inf)
    for rate in (0.25, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 1.8, 2.2, 2.6, 3.0, 3.5, 4.2, 5.0):
        at = rate / safe
        logs = np.zeros_like(safe)
        for v, one, step in zip(variances, coordinates, steps, strict=True):
            with np.errstate(over="ignore"):
                inside = 1 - v * 2 * np.sinh(np.minimum(at * step, 600.0) / 2) ** 2
            known = inside > _FLOOR
            logs += np.where(known, -one.copies * np.log(np.where(known, inside, 1.0)), np.inf)
        best = np.minimum(best, (start + logs) / at * (1 + 2.0**-30))
    return np.where(spread > 0, best, 0.0)


# ---------------------------------------------------------------- regions


def _gamma_quantile(terms: int, beta: Fraction) -> float:
    """A T with P[Gamma(terms) > T] = exp(-T) (1 + T + ... + T**(terms-1)/(terms-1)!) <= beta."""
    if terms == 0:
        return 0.0
    high = Fraction(1)
    with working_precision(128):
        while not _gamma_tail(terms, high) <= arb_of(beta):
            high *= Fraction(33, 32)
    return _up(float(high))


def _gamma_tail(terms: int, far: Fraction) -> arb:
    t, total, term = arb_of(far), arb(0), arb(1)
    for k in range(terms):
        total += term
        term = term * t / (k + 1)
    return total * (-t).exp()


def _chi_quantile(terms: int, beta: Fraction) -> float:
    """A T with (T**2/j)**(j/2) exp((j - T**2)/2) <= beta."""
    square = Fraction(terms)
    with working_precision(128):
        while not (arb_of(square / terms).log() * terms + terms - arb_of(square)) / 2 <= arb_of(
            beta
        ).log():
            square *= Fraction(33, 32)
    return _up(math.sqrt(_up(float(square))))


@dataclass(frozen=True, slots=True)
class Region:
    """The event D: a box of `halves`, and a ball of this radius in units of the scales."""

    coordinates: tuple[Coordinate, ...]
    halves: tuple[float, ...]
    radius: float
    gaussian: bool

    @classmethod
    def of(cls, coordinates: Sequence[Coordinate], beta: Fraction) -> Region:
        """The region that holds all noises but with this chance."""
        part = beta / 2
        halves = [_up(float(one.accuracy(part / len(coordinates)))) for one in coordinates]
        gaussian = isinstance(coordinates[0].noise.law, DiscreteGaussian)
        if gaussian:
            radius = _chi_quantile(len(coordinates), part)
        else:
            single = [one for one in coordinates if one.copies == 1]
            radius = _gamma_quantile(len(single), part)
            radius += sum(_up(0.5 / one.scale) * 1.001 for one in single)
            radius += sum(
                h / one.scale for h, one in zip(halves, coordinates, strict=True) if one.copies > 1
            )
        return cls(tuple(coordinates), tuple(halves), _up(radius), gaussian)

    def box(self, middles: Sequence[Box], factor: float) -> list[Box]:
        """Y +- factor h, outwards."""
        return [
            (np.nextafter(low - factor * h, -np.inf), np.nextafter(high + factor * h, np.inf))
            for (low, high), h in zip(middles, self.halves, strict=True)
        ]

    def bend(self, bends: Mapping[tuple[int, int], Array], size: int) -> tuple[Array, Array]:
        """r, and the most of abs(M u)_i in a line each; from the entries of M above."""
        j = len(self.coordinates)
        m = np.zeros((j, j, size))
        for (i, k), most in bends.items():
            m[i, k] = m[k, i] = most * self.coordinates[i].scale * self.coordinates[k].scale
        far = np.array(
            [h / one.scale for h, one in zip(self.halves, self.coordinates, strict=True)]
        )
        lines = np.einsum("ikg,k->ig", m, far)
        box = np.einsum("ig,i->g", lines, far)
        if self.gaussian:
            norms = np.sqrt(np.sum(m * m, axis=1))
            ball, rows = np.sqrt(np.sum(m * m, axis=(0, 1))), norms
        else:
            ball, rows = np.max(m, axis=(0, 1)), np.max(m, axis=1)
        remainder = np.fmin(box, ball * self.radius**2) / 2
        grown = np.fmin(lines, rows * self.radius)
        return remainder * (1 + 2.0**-40), grown * (1 + 2.0**-40)


# ---------------------------------------------------------------- formulas


@dataclass(frozen=True, slots=True)
class Smooth:
    """Of each row: the interval, and whether it is all (`alone`), a part (`partly`) or nothing."""

    low: Array
    high: Array
    alone: Array
    partly: Array


Quotient: TypeAlias = tuple[Taylor, Taylor | None]
"""A formula, or its numerator and its denominator."""


def smooth_intervals(
    formula: Callable[[list[Taylor]], Quotient],
    middles: Sequence[Box],
    coordinates: Sequence[Coordinate],
    beta: Fraction,
) -> Smooth:
    """Where the formula lies; it takes a Taylor for each coordinate.

    `middles` holds the noisy integers, as enclosed by doubles.
    """
    with np.errstate(all="ignore"):
        made = _Rows(formula, middles, coordinates, beta)
        far, alone, partly = made.far()
        low, high = made.value
        low, high = np.nextafter(low - far, -np.inf), np.nextafter(high + far, np.inf)
    known = np.isfinite(low) & np.isfinite(high)
    return Smooth(low, high, alone & known, partly & known)


class _Rows:
    """All rows of one formula."""

    def __init__(
        self,
        formula: Callable[[list[Taylor]], Quotient],
        middles: Sequence[Box],
        coordinates: Sequence[Coordinate],
        beta: Fraction,
    ) -> None:
        self.formula, self.middles, self.coordinates, self.beta = (
            formula, middles, coordinates, beta,
        )  # fmt: skip
        self.rows = len(middles[0][0])
        self.here = formula(Taylor.variables(middles, order=1))
        self.value = _whole(self.here).value

    def far(self) -> tuple[Array, Array, Array]:
        """How far the formula may be from its value, and where that is all, and a part."""
        region = Region.of(self.coordinates, self.beta * _LOCAL)
        near = self.formula(Taylor.variables(region.box(self.middles, 1.0), order=2))
        every = np.ones(self.rows, dtype=bool)
        if not _whole(near).bend:
            at = self._sizes(_whole(self.here).slope)
            return linear_reach(at, self.coordinates, self.beta), every, every
        far = self._reach(region, _whole(self.here).slope, _whole(near).bend)
        over = _whole(near).value
        far = np.fmin(far, np.fmax(over[1] - self.value[0], self.value[1] - over[0]))
        if near[1] is not None:
            far = self._sharper(region, near, far)
        wide = self.formula(Taylor.variables(region.box(self.middles, 3.125), order=2))
        partly = self._is_smooth(region, near)
        return far * (1 + 2.0**-40), partly & self._is_smooth(region, wide), partly

    def _sharper(self, region: Region, near: Quotient, far: Array) -> Array:
        """By the test of N - v D for the v that are left, of which there are fewer each time."""
        (top, bottom), (top_near, bottom_near) = self.here, near
        assert bottom is not None and bottom_near is not None
        divisor = np.minimum(np.abs(bottom.value[0]), np.abs(bottom.value[1]))
        for _ in range(_SHARPENED):
            within = Taylor((self.value[0] - far, self.value[1] + far), {}, {}, 2)
            slope, bend = (top - within * bottom).slope, (top_near - within * bottom_near).bend
            again = self._reach(region, slope, bend) / divisor * (1 + 2.0**-40)
            far = np.fmin(far, again)
        return far

    def _reach(self, region: Region, slope: Mapping[int, Box], bend: Mapping[Any, Box]) -> Array:
        """t(g) + r."""
        remainder, grown = region.bend({pair: _most(ends) for pair, ends in bend.items()}, self.rows)
        at = _up(self._sizes(slope) + grown)
        left = self.beta - self.beta * _LOCAL
        return _up(linear_reach(at, self.coordinates, left) + remainder)

    def _sizes(self, slope: Mapping[int, Box]) -> Array:
        """The most of each abs(s_i g_i)."""
        sizes = np.zeros((len(self.coordinates), self.rows))
        for i, ends in slope.items():
            sizes[i] = _up(_most(ends) * self.coordinates[i].scale)
        return sizes

    def _is_smooth(self, region: Region, over: Quotient) -> Array:
        """Where it is known to be smooth over a box, and hardly bent there beside its slope."""
        (top, bottom), whole = over, _whole(over)
        flat = self._is_flat(region, whole)
        if bottom is not None:
            flat = flat | self._is_flat(region, top - Taylor(whole.value, {}, {}, 2) * bottom)
        return is_finite(whole.value) & flat

    def _is_flat(self, region: Region, over: Taylor) -> Array:
        remainder, _ = region.bend({p: _most(ends) for p, ends in over.bend.items()}, self.rows)
        steepest = np.zeros(self.rows)
        for i, (low, high) in over.slope.items():
            least = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(np.abs(low), np.abs(high)))
            steepest = np.fmax(steepest, least * self.coordinates[i].scale)
        return remainder <= _MOST_BENT * steepest


def _whole(quotient: Quotient) -> Taylor:
    top, bottom = quotient
    return top if bottom is None else top / bottom


def _most(ends: Box) -> Array:
    return np.maximum(np.abs(ends[0]), np.abs(ends[1]))
