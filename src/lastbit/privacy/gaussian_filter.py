"""The Gaussian filter: when to stop, if every answer has a proved Gaussian privacy mu_i.

Law      delta' < delta and mu are fixed before the first answer, with delta_mu(epsilon) <=
         delta - delta', delta_mu the profile of N(0, 1) against N(mu, 1). A step is paid for by
         the square of its mu and by its additive delta d:
         - mu-GDP:                    mu**2
         - discrete Gaussian noise:   D x, x (1 - x/12) >= 1/v, for variance v and an L2 distance
                                      squared D, in steps (gaussian_pair.py)
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
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

from lastbit.errors import InvalidParameter
from lastbit.exact import (
    Number,
    exp_between,
    floor_log2,
    mills_between,
    nonnegative,
    positive,
    probability,
    product,
    root_above,
    root_two_pi_between,
)
from lastbit.privacy.filter import Amounts, Filter, grid_ceiling, grid_floor
from lastbit.privacy.gaussian_pair import step_mu_squared
from lastbit.privacy.least_noise import least_noise
from lastbit.privacy.neighbours import AS_DECLARED, Neighbours, check_neighbours

_EXTREME = 10**6
_MOST_RHO = Fraction(3, 2)
_PLACES = 256
_BITS = 48


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianCost(Amounts):
    """What one answer costs under a Gaussian filter, or several together: exact sums.

    `epsilon` and `rho` are the plain sums, for people; mu_squared and delta are what counts.
    """

    mu_squared: Fraction = Fraction(0)
    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class GaussianFilter(Filter[GaussianCost]):
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
    _KIND: ClassVar[str] = "gaussian"

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
            mu_squared=grid_ceiling(spread) + pure_price(loss),
            epsilon=loss,
            delta=probability(delta, "delta", remedy="pass, say, 1e-9"),
            rho=density,
        )

    def within(self, spent: GaussianCost) -> bool:
        """Whether this may be spent in all; exact."""
        return spent.mu_squared <= self.limit and spent.delta <= self.delta_kept


@lru_cache(maxsize=64)
def _limit(epsilon: Fraction, level: Fraction) -> Fraction:
    """About the greatest mu**2, a multiple of 2**-64, whose profile is within the level.

    The level is first rounded down to a float, as it was when the first ledgers were kept.
    """
    nearest = level.numerator / level.denominator
    within = Fraction(nearest if Fraction(nearest) <= level else math.nextafter(nearest, 0.0))
    if within == 0:
        return Fraction(0)
    places = _PLACES - floor_log2(within)

    def meets(noise: Fraction) -> bool:
        return gaussian_delta(grid_floor(1 / noise), epsilon, places) <= within

    return grid_floor(1 / least_noise(meets, start=Fraction(1), bits=_BITS))


def gaussian_delta(mu_squared: Fraction, epsilon: Fraction, places: int) -> Fraction:
    """delta_mu(epsilon) of N(0, 1) against N(mu, 1), rounded up, by about 2**-places.

    Law      T(a) - exp(epsilon) T(b), a = epsilon/mu - mu/2, b = a + mu, T the normal upper tail
    Theorem  b**2 - a**2 = 2 epsilon, so exp(epsilon) phi(b) = phi(a), phi the density. With
             R = T/phi the profile is phi(a) (R(a) - R(b)), and for a < 0, where T(a) = 1 - T(-a),
             it is 1 - phi(a) (R(-a) + R(b)). If a >= sqrt(2 places) it is at most
             T(a) < exp(-places)
    Differs  mu is rounded up to a rational: the profile grows with mu
    Checked  tests/privacy/test_gaussian_filter.py: the accountant's own profile is never above it
    """
    if mu_squared == 0:
        return Fraction(0)
    mu, one = root_above(mu_squared, places), 1 << places
    a, b = (epsilon / mu + side * mu / 2 for side in (-1, 1))
    if a * a >= 2 * places:
        return Fraction(1, one) if a > 0 else Fraction(1)
    shrunk, root = exp_between(a * a / 2, places), root_two_pi_between(places)
    near, far = mills_between(abs(a), places), mills_between(b, places)
    if a >= 0:
        above = -(-shrunk[1] * (near[1] - far[0]) // root[0])
    else:
        above = one - shrunk[0] * (near[0] + far[0]) // root[1]
    return Fraction(above, one)


@lru_cache(maxsize=1024)
def pure_price(epsilon: Fraction) -> Fraction:
    """4 t**2, t the normal quantile at exp(e)/(1 + exp(e)), rounded up.

    Theorem  T(t) <= exp(-t**2/2)/2 and 1/(1 + exp(e)) >= exp(-e)/2: t is at most sqrt(2e). The t
             used was evaluated, or is that bound: its tail is at most 1/(1 + exp(e)), which says
             R(t) (1 + exp(-e)) <= sqrt(2 pi) exp(t**2/2 - e), R = T/phi
    """
    if epsilon == 0:
        return Fraction(0)
    low, high, one = Fraction(0), root_above(2 * epsilon), 1 << _PLACES
    rest = exp_between(epsilon, _PLACES)
    for _ in range(96):
        middle = (low + high) / 2
        gap = max(epsilon - middle * middle / 2, Fraction(0))
        tail = product(mills_between(middle, _PLACES), (one + rest[0], one + rest[1]), _PLACES)
        room = product(root_two_pi_between(_PLACES), exp_between(gap, _PLACES), _PLACES)
        low, high = (low, middle) if tail[1] <= room[0] else (middle, high)
    return grid_ceiling(4 * high * high)
