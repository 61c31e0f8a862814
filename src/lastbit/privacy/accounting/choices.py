"""Where one release may be of several pairs: the least upper bound, and what is attained.

The product of pairs (`engine.py`) is one upper bound. It is not tight if each of the pairs is the
worst of several, of which a mechanism (bounded range) or the data (thresholds) choose one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from flint import acb, arb

from lastbit.exact import arb_of, nearest, upper, working_precision
from lastbit.privacy.accounting import engine
from lastbit.privacy.accounting.bounded_range import (
    concentrated,
    gaussian_form,
    ranges,
    steps,
    two_loss_forms,
)
from lastbit.privacy.accounting.composition import Composition
from lastbit.privacy.accounting.contour import kappa, moment_epsilon
from lastbit.privacy.accounting.thresholds import attained_forms, has_thresholds, tight_pairs

_PRECISION = 192


def delta_bounds(composition: Composition, x: Fraction) -> tuple[arb, arb]:
    """delta(x) of one direction, from below and from above."""
    low, high = engine.delta_bounds(composition, x)
    if _is_exact(composition) or composition.infinite() == 1:
        return low, high
    order = concentrated(composition).guide.for_epsilon(nearest(x))
    highs = [high, *(engine.delta_bounds(form, x)[1] for form in _upper_forms(composition))]
    lows = [
        engine.delta_bounds(form, x + shift)[0]
        for form, shift in _lower_forms(composition, order, nearest(x))
    ]
    with working_precision(_PRECISION):
        told, c = composition.infinite(), arb(order)
        moment = concentrated(composition).moment(acb(c)).real * (-c * arb_of(x)).exp()
        highs.append((told + kappa(c) * moment).upper())
        chance = float((min(highs) - told).mid())
    listed = steps(composition, x, chance)
    if listed is not None:
        below, above = listed.bounds_at_origin()
        with working_precision(_PRECISION):
            constant = composition.constant()
            lows.append((told + constant * arb(below)).lower())
            highs.append((told + constant * arb(above)).upper())
    return max(lows), min(highs)


def epsilon_bounds(composition: Composition, delta: Fraction) -> tuple[float, float]:
    """The least x >= 0 with delta(x) <= delta, of one direction, from below and from above."""
    low, high = engine.epsilon_bounds(composition, delta)
    with working_precision(_PRECISION):
        rest = arb_of(delta) - composition.infinite()
        decided = _is_exact(composition) or not 0 < high < math.inf or not rest > 0
        if decided:
            return low, high
        chance = rest / composition.constant()
        bounding = concentrated(composition)
        order, _ = bounding.guide.for_delta(float(rest.mid().log()))
        bound = moment_epsilon(bounding, order, rest)
        high = min(high, max(upper(bound), 0.0)) if bound.is_finite() else high
    for form in _upper_forms(composition):
        high = min(high, engine.epsilon_bounds(form, delta)[1])
    low = 0.0
    for form, shift in _lower_forms(composition, order, high):
        attained = Fraction(min(engine.epsilon_bounds(form, delta)[0], high)) - shift
        low = max(low, math.nextafter(nearest(attained), -math.inf))
    listed = steps(composition, Fraction(low), float(chance))
    if listed is not None:
        below, above = listed.epsilon_bounds(chance)
        low, high = max(low, below), min(high, above)
    return min(low, high), high


def _is_exact(composition: Composition) -> bool:
    """Whether the product of the pairs is what is attained, or has a closed form."""
    chosen = ranges(composition) or has_thresholds(composition)
    return not chosen or engine.one_release(composition) is not None


def _upper_forms(composition: Composition) -> Iterator[Composition]:
    """Compositions that dominate."""
    for form in (gaussian_form(composition), tight_pairs(composition)):
        if form is not None:
            yield form


def _lower_forms(
    composition: Composition, order: float, x: float
) -> Iterator[tuple[Composition, Fraction]]:
    """Compositions that are attained at x + the shift."""
    for form in two_loss_forms(composition, order, x) if ranges(composition) else (composition,):
        yield from attained_forms(form)
