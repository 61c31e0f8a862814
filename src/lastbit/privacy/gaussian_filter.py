"""The Gaussian filter: when to stop, if every answer has a proved Gaussian privacy mu_i.

Law      delta' < delta and mu are fixed before the first answer, with delta_mu(epsilon) <=
         delta - delta', delta_mu the profile of N(0, 1) against N(mu, 1). A step is paid for by
         the square of its mu and by its additive delta d:
         - mu-GDP:                    mu**2
         - discrete Gaussian noise:   D x, x (1 - x/12) >= 1/v, for variance v and an L2 distance
                                      squared D, in steps (accounting/gaussian_pair.py)
         - of which rho is known:     x, x (1 - x/12) >= 2 rho
         - pure epsilon e:            4 t**2, t the normal quantile at exp(e)/(1 + exp(e))
         - (e, d):                    the same, and d
         An answer is given as long as afterwards, its own price included, sum mu_i**2 <= mu**2 and
         sum d_i <= delta'
Theorem  all answers together are (epsilon, delta)-private, though every mechanism and every price
         is chosen from the earlier answers, as is the moment to stop
Proof    As for the moment filter (`filter.py`, steps 1 and 2), an (e, d) step tosses a coin, with
         the same odds on both neighbours; if it falls well its laws are those of a pure step, and
         all bad coins together cost delta'. Left to show: steps that are mu_i-GDP, whatever was
         answered before, with sum mu_i**2 <= mu**2 on every path, are together mu-GDP.

         1. *One step.* A pair of laws is mu_i-GDP iff both come from one draw of N(0, 1) or
         N(mu_i, 1) by one randomised rule (Blackwell 1953), which may depend on earlier answers.
         2. *One path.* Let B be a Brownian motion with drift 0 on one neighbour and 1 on the other.
         Its increment over a time s = mu_i**2, divided by mu_i, has the law N(0, 1) or N(mu_i, 1).
         So give step i the next increment of length mu_i**2. Where it begins and how long it is
         are functions of the past, and increments after such a time do not depend on it (strong
         Markov property). All answers are thus made of B up to the time mu**2, and of coins.
         3. *The end.* B up to the time mu**2 tells no more than its last value: given that value
         the path has the same law with and without drift. It is N(0 or mu**2, mu**2), mu-GDP.
         4. Pure steps: the worst is randomised response, whose best tests are linear between one
         point, level 1/(1 + exp(e)) and power exp(e)/(1 + exp(e)), and the trivial ones. The power
         of N(2t, 1) at that level, T(t), is T(-t), the same; being concave, it is above.
         5. Discrete Gaussian noise by its rho = D/(2v), or the sum of several: inputs differ by
         whole steps, so D >= 1 or nothing moves. The least x is a convex function X(1/v) with
         X(0) = 0, so D X(2 rho/D) <= X(2 rho), and several X add up to at most X of the sum.  []
Theorem  (budgets that change) as for the moment filter, while delta' stays; there is no order here
Differs  prices are rounded up, and mu**2 down, to multiples of 2**-64; the profile of the limit was
         evaluated at the very mu**2 that is used.
         For Gaussian answers alone this allows about an eighth more than the moment filter; pure
         answers cost half as much again as there. A zCDP guarantee has no price here: it bounds no
         mu. So the ledger takes a price in rho only if it is told that all noise was Gaussian;
         ranks, by the exponential mechanism, are paid in rho as well, and are refused
Source   Smith, Thakurta 2022 and Koskela, Tobaben, Honkela 2023 (the filter); Dong, Roth, Su 2022
Checked  tests/privacy/test_gaussian_filter.py: the worst adaptive adversary, by backward induction
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, cast

from flint import arb

from lastbit.errors import InvalidParameter
from lastbit.exact import (
    Number,
    arb_of,
    ends,
    lower,
    nonnegative,
    positive,
    probability,
    root_above,
    upper,
    whole,
    working_precision,
)
from lastbit.privacy.accounting.gaussian_pair import step_mu_squared
from lastbit.privacy.filter import check_amounts, grid_ceiling, grid_floor
from lastbit.privacy.least_noise import least_noise
from lastbit.privacy.neighbours import AS_DECLARED, Neighbours, check_neighbours

if TYPE_CHECKING:
    from lastbit.privacy.accounting.losses import PrivacyLoss
    from lastbit.privacy.guarantees import Guarantee

_EXTREME = 10**6
_MOST_RHO = Fraction(3, 2)
_PRECISION = 192
_MOST_PRECISION = 1 << 14
_BITS = 48


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianCost:
    """What one answer costs under a Gaussian filter, or several together: exact sums.

    `epsilon` and `rho` are the plain sums, for people; mu_squared and delta are what counts.
    """

    mu_squared: Fraction = Fraction(0)
    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        check_amounts((getattr(self, f.name) for f in fields(self)), "GaussianFilter")

    def __add__(self, other: GaussianCost) -> GaussianCost:
        return GaussianCost(
            **{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)}
        )

    def __mul__(self, times: int) -> GaussianCost:
        whole(times, "times", least=0)
        return GaussianCost(**{f.name: getattr(self, f.name) * times for f in fields(self)})

    __rmul__ = __mul__

    def to_json(self) -> dict[str, str]:
        """Exact fractions as text."""
        return {f.name: str(getattr(self, f.name)) for f in fields(self)}


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class GaussianFilter:
    """A budget of (epsilon, delta) for answers with Gaussian noise, chosen along the way.

    `delta_kept` is delta' of the theorem, for answers with a delta of their own.

    >>> from lastbit.privacy import DiscreteGaussianVectorLoss
    >>> kept = GaussianFilter(epsilon=5, delta="1e-6")
    >>> kept.answers_left(GaussianCost(), kept.price_of(DiscreteGaussianVectorLoss(100, 1)))
    104
    """

    epsilon: Fraction
    delta: Fraction
    delta_kept: Fraction
    neighbours: Neighbours

    def __init__(
        self,
        *,
        epsilon: Number,
        delta: Number,
        delta_kept: Number = 0,
        neighbours: Neighbours = AS_DECLARED,
    ) -> None:
        loss = positive(epsilon, "epsilon")
        if loss >= _EXTREME:
            problem = "is beyond 10**6"
            raise InvalidParameter("epsilon", problem=problem, remedy="pass a smaller one")
        level = probability(delta, "delta", zero=False, one=False, remedy="pass, say, 1e-6")
        kept = probability(delta_kept, "delta_kept", one=False, remedy="pass delta/10, or 0")
        if kept >= level:
            raise InvalidParameter(
                "delta_kept", problem="is not below delta", remedy="pass delta/10, or 0"
            )
        check_neighbours(neighbours)
        object.__setattr__(self, "neighbours", neighbours)
        for name, value in (("epsilon", loss), ("delta", level), ("delta_kept", kept)):
            object.__setattr__(self, name, value)

    @property
    def limit(self) -> Fraction:
        """The mu**2 of the theorem, rounded down."""
        return _limit(self.epsilon, self.delta - self.delta_kept)

    def price(
        self, *, mu_squared: Number = 0, epsilon: Number = 0, delta: Number = 0, rho: Number = 0
    ) -> GaussianCost:
        """What an answer costs that is mu-GDP and (epsilon, delta)-private in its parts.

        `rho` is that of discrete Gaussian noise, and of nothing else: a zCDP guarantee bounds no
        mu.
        """
        spread, loss = nonnegative(mu_squared, "mu_squared"), nonnegative(epsilon, "epsilon")
        density = nonnegative(rho, "rho")
        if loss >= _EXTREME:
            raise InvalidParameter("epsilon", problem="is beyond 10**6", remedy="ask for less")
        if density > _MOST_RHO:
            problem = "is above 3/2, where no Gaussian pair is proved"
            raise InvalidParameter("rho", problem=problem, remedy="ask for less")
        if density:
            spread += step_mu_squared(1 / (2 * density))
        return GaussianCost(
            mu_squared=grid_ceiling(spread) + _pure_price(loss),
            epsilon=loss,
            delta=probability(delta, "delta", remedy="pass, say, 1e-9"),
            rho=density,
        )

    def price_of(self, promise: PrivacyLoss | Guarantee) -> GaussianCost:
        """The price of a loss of Gaussian noise, or of a pure or approximate guarantee.

        >>> from lastbit.privacy import PureDP
        >>> kept = GaussianFilter(epsilon=5, delta="1e-6", delta_kept="1e-7")
        >>> float(kept.price_of(PureDP("0.1")).mu_squared)
        0.01570...
        """
        # found by name: a filter that keeps an account has its prices from the ledger
        prices = import_module("lastbit.privacy.promised_prices")
        return cast(GaussianCost, prices.gaussian_price(self, promise))

    def within(self, spent: GaussianCost) -> bool:
        """Whether this may be spent in all; exact."""
        return spent.mu_squared <= self.limit and spent.delta <= self.delta_kept

    def allows(self, spent: GaussianCost, price: GaussianCost) -> bool:
        """Whether an answer of this price may be given after what was spent."""
        return self.within(spent + price)

    def answers_left(self, spent: GaussianCost, price: GaussianCost) -> int | None:
        """How many answers of this price still fit; None if it costs nothing, and any number do."""
        if not self.within(spent):
            return 0
        ways = (
            (self.limit - spent.mu_squared, price.mu_squared),
            (self.delta_kept - spent.delta, price.delta),
        )
        return min((int(room / each) for room, each in ways if each), default=None)

    def left(self, spent: GaussianCost) -> GaussianCost:
        """The most that a single further answer may cost, for each way to pay by itself.

        `epsilon` is what a pure answer may cost, 6 digits rounded down, `rho` one with Gaussian
        noise, a multiple of 2**-64; `delta` is what is left of delta_kept.
        """
        if not self.within(spent):
            return GaussianCost()
        room = self.limit - spent.mu_squared
        return GaussianCost(
            mu_squared=room,
            epsilon=_epsilon_below(room),
            delta=self.delta_kept - spent.delta,
            rho=_rho_below(room),
        )

    def epsilon_spent(self, spent: GaussianCost) -> Fraction:
        """The least epsilon of a filter, else like this one, that allows what was spent.

        For people, as `MomentFilter.epsilon_spent`.
        """
        if not spent.mu_squared:
            return Fraction(0)
        prices = import_module("lastbit.privacy.promised_prices")
        least = cast(Fraction, prices.gaussian_epsilon(self, spent.mu_squared))
        return min(least, self.epsilon) if self.within(spent) else least

    def odometer(self, spent: GaussianCost) -> Fraction:
        """A loss that was not exceeded at any time so far, except with probability delta.

        Theorem  for any c > 0 fixed beforehand exp(c L_t - c (c+1) sum mu_i**2/2) is a
                 supermartingale under P of mean at most 1, for each factor is at most that of the
                 Gaussian pair: by Ville's inequality L_t <= (c+1)/2 sum mu_i**2 + ln(1/d)/c at all
                 times with probability 1 - d. Here c is a function of the limit alone
        """
        level = self.delta - self.delta_kept
        with working_precision(_PRECISION):
            far = -arb_of(level).log()
            best = (2 * far / arb_of(self.limit)).sqrt() if self.limit else arb(1)
            order = Fraction(upper(best)).limit_denominator(1000) or Fraction(1)
            loss = arb_of((order + 1) / 2 * spent.mu_squared) + far / arb_of(order)
            return grid_ceiling(ends(loss)[1])


@lru_cache(maxsize=64)
def _limit(epsilon: Fraction, level: Fraction) -> Fraction:
    """About the greatest mu**2, a multiple of 2**-64, whose profile is within the level."""

    def meets(noise: Fraction) -> bool:
        return gaussian_delta(grid_floor(1 / noise), epsilon) <= level

    return grid_floor(1 / least_noise(meets, start=Fraction(1), bits=_BITS))


def gaussian_delta(mu_squared: Fraction, epsilon: Fraction) -> Fraction:
    """delta_mu(epsilon) of N(0, 1) against N(mu, 1), rounded up to a float.

    Law      T(epsilon/mu - mu/2) - exp(epsilon) T(epsilon/mu + mu/2), T the normal upper tail
    Differs  the two terms may be nearly equal: the precision doubles until 60 bits of their
             difference are known, or is the highest; the end of every ball is a true bound
    Checked  tests/privacy/test_gaussian_filter.py: the accountant's own profile is never above it
    """
    if mu_squared == 0:
        return Fraction(0)
    least, precision = Fraction(1), 128
    while precision <= _MOST_PRECISION:
        with working_precision(precision):
            x, mu, root = arb_of(epsilon), arb_of(mu_squared).sqrt(), arb(2).sqrt()
            near, far = (((x / mu + side * mu / 2) / root).erfc() / 2 for side in (-1, 1))
            ball = near - x.exp() * far
        if ball.is_finite():
            least = min(least, Fraction(max(upper(ball), 0.0)))
            if ball.rel_accuracy_bits() > 60:
                break
        precision *= 2
    return least


@lru_cache(maxsize=1024)
def _pure_price(epsilon: Fraction) -> Fraction:
    """4 t**2, t the normal quantile at exp(e)/(1 + exp(e)), rounded up.

    Theorem  T(t) <= exp(-t**2/2)/2 and 1/(1 + exp(e)) >= exp(-e)/2: t is at most sqrt(2e). The t
             used was evaluated: its tail is at most 1/(1 + exp(e))
    """
    if epsilon == 0:
        return Fraction(0)
    low, high = Fraction(0), root_above(2 * epsilon)
    with working_precision(_PRECISION):
        level = 1 / (1 + arb_of(epsilon).exp())
        for _ in range(_PRECISION // 2):
            middle = (low + high) / 2
            enough = (arb_of(middle) / arb_of(Fraction(2)).sqrt()).erfc() / 2 <= level
            low, high = (low, middle) if enough else (middle, high)
    return grid_ceiling(4 * high * high)


def _epsilon_below(room: Fraction) -> Fraction:
    """About the largest epsilon whose price is within the room: 6 digits, rounded down."""
    with working_precision(_PRECISION):
        half = (arb_of(room) / 8).sqrt()
        loss = Fraction(max(lower(((-half).erfc() / half.erfc()).log()), 0.0))
    if loss == 0:
        return loss
    unit = Fraction(10) ** (math.floor(math.log10(loss)) - 5)
    found = min(loss, Fraction(_EXTREME - 1)) // unit * unit
    return found if _pure_price(found) <= room else max(found - unit, Fraction(0))


def _rho_below(room: Fraction) -> Fraction:
    """About the largest rho of Gaussian noise within the room: x (1 - x/12)/2, up to x = 6."""
    x = min(room, Fraction(6)) * (1 - Fraction(1, 1 << 60))
    found = grid_floor(x * (1 - x / 12) / 2)
    fits = not found or grid_ceiling(step_mu_squared(1 / (2 * found))) <= room
    return found if fits else Fraction(0)
