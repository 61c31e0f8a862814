"""Closed forms: one release, and any number of Gaussian ones.

Theorem  Gaussian losses of total variance v = m**2: D(x) = P[N > x/m - m/2] - exp(x) P[N > x/m +
         m/2]. Discrete Gaussian noise: the loss falls with X, so the best event is a half-line, and
         D(x) = P[X >= k] - exp(x) P[X >= k + d], k the least whole number above xv/d - d/2.
         Discrete Laplace noise: linear in exp(x) between its lattice points, where it is that of
         continuous noise. Bounded range: (1 - exp((x-epsilon)/2))**2/(1 - exp(-epsilon)). Finite
         laws: the sum of (p - exp(x) q)_+. Keys from a threshold up: `thresholds.py`. On a sample:
         the ratio b rises with the loss l of the noise, so the best event is l above (record
         removed) or below (added) the place where b is exp(x), or exp(-x)
Checked  tests/privacy/accounting/test_truths.py, test_single.py
"""

from __future__ import annotations

import math
from fractions import Fraction

from flint import arb

from lastbit.exact import arb_of
from lastbit.laws import tail_weight, theta
from lastbit.privacy.accounting.component import (
    Atoms,
    Component,
    Normal,
    ThetaNormal,
    Tilted,
    TwoSidedGeometric,
)
from lastbit.privacy.accounting.subsampling import SampledLaplace, SampledNormal, normal_tail
from lastbit.privacy.accounting.thresholds import Threshold, closed_threshold

Closed = Normal | ThetaNormal | TwoSidedGeometric | Tilted | Atoms | SampledNormal | SampledLaplace


def closed(component: Component, x: Fraction) -> arb | None:
    """D(x) of one release at the working precision, where it is known in closed form."""
    at = arb_of(x)
    if isinstance(component, SampledNormal | SampledLaplace):
        return closed_at(component, at)
    match component:
        case Normal():
            m = arb_of(component.spread).sqrt()
            return normal_tail(at / m - m / 2) - at.exp() * normal_tail(at / m + m / 2)
        case Tilted():
            if x >= component.epsilon:
                return arb(0)
            if x <= -component.epsilon:
                return -at.expm1()
            half = -arb_of((x - component.epsilon) / 2).expm1()
            return half * half / -(-arb_of(component.epsilon)).expm1()
        case ThetaNormal():
            return _half_line(component, x)
        case Threshold():
            return closed_threshold(component, x)
        case TwoSidedGeometric():
            return _geometric(component, x)
        case Atoms():
            return _above(component, at)
    return None


def _half_line(component: ThetaNormal, x: Fraction) -> arb:
    v, d = component.spread, component.distance
    first = math.floor(x * v / d - Fraction(d, 2)) + 1
    best = tail_weight(first, v) - arb_of(x).exp() * tail_weight(first + d, v)
    return best / theta(v)


def _geometric(component: TwoSidedGeometric, x: Fraction) -> arb:
    """In the cell below the lattice point epsilon - 2j/scale, j steps from the greatest loss."""
    most = component.greatest
    if x >= most:
        return arb(0)
    if x <= -most:
        return -arb_of(x).expm1()
    j = math.floor((most - x) * component.scale / 2)
    above = most - 2 * j / component.scale
    ratio, reached = (-arb_of(1 / component.scale)).exp(), -arb_of(j / component.scale)
    inside = reached.exp() * -arb_of(x - above).expm1() / (1 + ratio)
    return inside - reached.expm1()


def _above(component: Atoms, at: arb) -> arb:
    raised = at.exp()
    gains = ((arb_of(p) - raised * arb_of(q)).nonnegative_part() for p, q in component.pairs if q)
    return sum(gains, arb(0))


def closed_at(component: SampledNormal | SampledLaplace, at: arb) -> arb:
    """D of one release about a sample, for every x in a ball."""
    if isinstance(component, SampledNormal):
        return _sampled_normal(component, at)
    return _sampled_laplace(component, at)


def _where(rate: Fraction, ratio: arb) -> arb | None:
    """The l with 1 - q + q exp(l) = ratio; None if it is certain that every l has a larger one."""
    rest = (ratio - arb_of(1 - rate)) / arb_of(rate)
    return None if rest <= 0 else rest.log()


def _sampled_normal(component: SampledNormal, at: arb) -> arb:
    q, v = component.rate, arb_of(1 / component.mu_squared)
    s = v.sqrt()
    ratio = at.exp() if component.removed else (-at).exp()
    loss = _where(q, ratio)
    if loss is None:  # b > exp(x) everywhere, or b < exp(-x) nowhere
        return -at.expm1() if component.removed else arb(0)
    if loss.is_nan():  # at the end of the losses, as far as the ball says
        if component.removed:  # D falls from 1 - exp(x) at the least loss, and is not below that
            return -at.expm1()
        most = ((ratio - arb_of(1 - q)) / arb_of(q)).upper().log() * v + arb(1) / 2
        return arb(0).union(normal_tail(-most / s))  # D(x) <= P[L > x]
    x = loss * v + arb(1) / 2
    if component.removed:
        without, with_it = normal_tail(x / s), normal_tail((x - 1) / s)
        return arb_of(q) * with_it + (arb_of(1 - q) - at.exp()) * without
    without, with_it = normal_tail(-x / s), normal_tail(-(x - 1) / s)
    return without - at.exp() * (arb_of(1 - q) * without + arb_of(q) * with_it)


def _sampled_laplace(component: SampledLaplace, at: arb) -> arb:
    """Under Q, P[l > y] = exp(-(y+epsilon)/2)/2 on (-epsilon, epsilon); under P, 1 - exp(...)/2."""
    q, loss = component.rate, arb_of(component.epsilon)
    y = _where(q, at.exp() if component.removed else (-at).exp())
    all_of_it, none = -at.expm1(), arb(0)
    low, high = (all_of_it, none) if component.removed else (none, all_of_it)
    if y is None or y < -loss:
        return low
    if y > loss:
        return high
    above, above_with = (-(y + loss) / 2).exp() / 2, 1 - ((y - loss) / 2).exp() / 2
    if component.removed:
        found = arb_of(q) * above_with + (arb_of(1 - q) - at.exp()) * above
    else:
        without, with_it = 1 - above, 1 - above_with
        found = without - at.exp() * (arb_of(1 - q) * without + arb_of(q) * with_it)
    if not y >= -loss:  # which of the two it is, the ball does not say
        found = found.union(low)
    if not y <= loss:
        found = found.union(high)
    return found
