"""What a filter tells people: how much is left, and how much was lost so far.

The methods of `MomentFilter` and `GaussianFilter` of these names come here. What an account is
charged, and whether it is, rests on none of this.
"""

from __future__ import annotations

import math
from fractions import Fraction
from importlib import import_module
from typing import cast

from flint import arb

from lastbit.exact import arb_of, ends, lower, upper, working_precision
from lastbit.privacy.filter import (
    NOTHING_SPENT,
    MomentCost,
    MomentFilter,
    check_order,
    grid_ceiling,
    grid_floor,
    response_moment,
)
from lastbit.privacy.gaussian_filter import GaussianCost, GaussianFilter, pure_price
from lastbit.privacy.gaussian_pair import step_mu_squared

_PRECISION = 192
_MOST_EPSILON = 10**6

# ---------------------------------------------------------------- the moment filter


def moment_answers(kept: MomentFilter, spent: MomentCost, price: MomentCost) -> int | None:
    """How many answers of this price still fit; None if it costs nothing, and any number does.

    Every condition of `within` is a straight line in the number of answers.
    """
    check_order(price, kept.order)
    if price == NOTHING_SPENT:
        return None
    if not kept.within(spent):
        return 0
    ways = [_most(spent.moment, price.moment, kept.limit)]
    if not spent.rho and not price.rho:
        ways.append(_most(spent.epsilon, price.epsilon, kept.epsilon))
    room = None if None in ways else max(way for way in ways if way is not None)
    additive = _most(spent.delta, price.delta, kept.delta_kept)
    return min((most for most in (room, additive) if most is not None), default=None)


def moment_left(kept: MomentFilter, spent: MomentCost) -> MomentCost:
    """The most that a single further answer may cost, for each way to pay by itself.

    `epsilon` is what a pure answer may cost, a decimal of 6 digits rounded down unless plain
    sums leave more; `rho` is exact; `delta` is what is left of delta_kept.

    >>> from lastbit.privacy import moment_filter
    >>> kept = moment_filter("5.1", "1e-6")
    >>> float(kept.left(90 * kept.price(epsilon="0.1")).epsilon)
    0.388202
    """
    room = max(kept.limit - spent.moment, Fraction(0))
    if not kept.within(spent):
        return NOTHING_SPENT
    plain = Fraction(0) if spent.rho else max(kept.epsilon - spent.epsilon, Fraction(0))
    return MomentCost(
        moment=room,
        epsilon=max(_epsilon_of_moment(room, kept.order), plain),
        delta=kept.delta_kept - spent.delta,
        rho=room / (kept.order * (kept.order + 1)),
    )


def moment_epsilon_spent(kept: MomentFilter, spent: MomentCost) -> Fraction:
    """The least epsilon of a filter, else like this one, that allows what was spent.

    For people: what was spent is within this filter iff this is not above its epsilon (where
    it is within, rounding up stops there). It promises nothing by itself, since it was not
    fixed beforehand; `odometer` does.

    >>> from lastbit.privacy import moment_filter
    >>> kept = moment_filter("5.1", "1e-6")
    >>> float(kept.epsilon_spent(100 * kept.price(epsilon="0.1")))
    5.099...
    """
    with working_precision(_PRECISION):
        ball = arb_of(grid_ceiling(spent.moment)) + _log_factor(kept.order)
        ball -= arb_of(kept.delta - kept.delta_kept).log()
        loss = max(grid_ceiling(ends(ball / arb_of(kept.order))[1]), Fraction(0))
    least = loss if spent.rho else min(loss, spent.epsilon)
    return min(least, kept.epsilon) if kept.within(spent) else least


def moment_odometer(kept: MomentFilter, spent: MomentCost) -> Fraction:
    """A loss that was not exceeded at any time so far, but with probability delta.

    >>> from lastbit.privacy import moment_filter
    >>> kept = moment_filter("5.1", "1e-6")
    >>> float(kept.odometer(100 * kept.price(epsilon="0.1")))
    5.63...
    """
    with working_precision(_PRECISION):
        ball = arb_of(spent.moment) - arb_of(kept.delta - kept.delta_kept).log()
        loss = grid_ceiling(ends(ball / arb_of(kept.order))[1])
    return loss if spent.rho else min(loss, spent.epsilon)


def _most(spent: Fraction, price: Fraction, limit: Fraction) -> int | None:
    """The greatest n >= 0 with spent + n price <= limit, 0 if there is none; None: all of them."""
    if spent > limit:
        return 0
    return None if price == 0 else int((limit - spent) / price)


def _epsilon_of_moment(room: Fraction, order: Fraction) -> Fraction:
    """About the largest epsilon whose moment is within the room: 6 digits, rounded down.

    The moment is above c epsilon - ln 2, so the largest is below (room + 1)/c.
    """
    most = (room + 1) / order
    unit = Fraction(10) ** (len(str(int(most))) - 6)
    while unit * 10**5 > most:
        unit /= 10
    low, high = 0, int(most / unit) + 1
    while high - low > 1:
        middle = (low + high) // 2
        fits = response_moment(middle * unit, order) <= room
        low, high = (middle, high) if fits else (low, middle)
    return low * unit


def _log_factor(order: Fraction) -> arb:
    """The logarithm of k = c**c/(1+c)**(1+c)."""
    c = arb_of(order)
    return c * c.log() - (1 + c) * (1 + c).log()


# ---------------------------------------------------------------- the Gaussian filter


def gaussian_answers(kept: GaussianFilter, spent: GaussianCost, price: GaussianCost) -> int | None:
    """How many answers of this price still fit; None if it costs nothing, and any number do."""
    if not kept.within(spent):
        return 0
    ways = (
        (kept.limit - spent.mu_squared, price.mu_squared),
        (kept.delta_kept - spent.delta, price.delta),
    )
    return min((int(room / each) for room, each in ways if each), default=None)


def gaussian_left(kept: GaussianFilter, spent: GaussianCost) -> GaussianCost:
    """The most that a single further answer may cost, for each way to pay by itself.

    `epsilon` is what a pure answer may cost, 6 digits rounded down, `rho` one with Gaussian
    noise, a multiple of 2**-64; `delta` is what is left of delta_kept.
    """
    if not kept.within(spent):
        return GaussianCost()
    room = kept.limit - spent.mu_squared
    return GaussianCost(
        mu_squared=room,
        epsilon=_epsilon_of_spread(room),
        delta=kept.delta_kept - spent.delta,
        rho=_rho_below(room),
    )


def gaussian_epsilon_spent(kept: GaussianFilter, spent: GaussianCost) -> Fraction:
    """The least epsilon of a filter, else like this one, that allows what was spent.

    For people, as `MomentFilter.epsilon_spent`.
    """
    if not spent.mu_squared:
        return Fraction(0)
    prices = import_module("lastbit.privacy.promised_prices")
    least = cast(Fraction, prices.gaussian_epsilon(kept, spent.mu_squared))
    return min(least, kept.epsilon) if kept.within(spent) else least


def gaussian_odometer(kept: GaussianFilter, spent: GaussianCost) -> Fraction:
    """A loss that was not exceeded at any time so far, except with probability delta.

    Theorem  for any c > 0 fixed beforehand exp(c L_t - c (c+1) sum mu_i**2/2) is a
             supermartingale under P of mean at most 1, for each factor is at most that of the
             Gaussian pair: by Ville's inequality L_t <= (c+1)/2 sum mu_i**2 + ln(1/d)/c at all
             times with probability 1 - d. Here c is a function of the limit alone
    """
    level = kept.delta - kept.delta_kept
    with working_precision(_PRECISION):
        far = -arb_of(level).log()
        best = (2 * far / arb_of(kept.limit)).sqrt() if kept.limit else arb(1)
        order = Fraction(upper(best)).limit_denominator(1000) or Fraction(1)
        loss = arb_of((order + 1) / 2 * spent.mu_squared) + far / arb_of(order)
        return grid_ceiling(ends(loss)[1])


def _epsilon_of_spread(room: Fraction) -> Fraction:
    """About the largest epsilon whose price is within the room: 6 digits, rounded down."""
    with working_precision(_PRECISION):
        half = (arb_of(room) / 8).sqrt()
        loss = Fraction(max(lower(((-half).erfc() / half.erfc()).log()), 0.0))
    if loss == 0:
        return loss
    unit = Fraction(10) ** (math.floor(math.log10(loss)) - 5)
    found = min(loss, Fraction(_MOST_EPSILON - 1)) // unit * unit
    return found if pure_price(found) <= room else max(found - unit, Fraction(0))


def _rho_below(room: Fraction) -> Fraction:
    """About the largest rho of Gaussian noise within the room: x (1 - x/12)/2, up to x = 6."""
    x = min(room, Fraction(6)) * (1 - Fraction(1, 1 << 60))
    found = grid_floor(x * (1 - x / 12) / 2)
    fits = not found or grid_ceiling(step_mu_squared(1 / (2 * found))) <= room
    return found if fits else Fraction(0)
