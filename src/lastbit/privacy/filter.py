"""The moment filter: when to stop answering, if prices are chosen from the answers so far.

Law      c > 0 and delta' < delta are fixed before the first answer. A step is paid for by its
         moment r and its additive delta d:
         - pure epsilon e:   r = ln((exp((c+1) e) + exp(-c e))/(1 + exp(e))), d = 0
         - (e, d):           the same r, and d
         - concentrated rho: r = c (c+1) rho, d = 0
         - d-approximately concentrated rho: the same r, and d
         An answer is given as long as afterwards, its own price included,
             sum d <= delta', and
             sum r <= B, or no rho was spent and sum e <= epsilon,
         B = c epsilon + ln(delta - delta') - ln k, k = c**c/(1+c)**(1+c)
Theorem  all answers together are (epsilon, delta)-private, though every mechanism and every price
         is chosen from the earlier answers, as is the moment to stop
Proof    Fix two neighbours x, y in either order; every step's promise holds for both orders, so one
         order is enough. P and Q are the laws of all answers on x and on y.

         1. *Splitting.* If laws p, q have p(S) <= exp(e) q(S) + d and q(S) <= exp(e) p(S) + d for
         all S, d < 1, then p = (1-d) p' + d p'' and q = (1-d) q' + d q'' with p' <= exp(e) q' and
         q' <= exp(e) p' (Kairouz, Oh, Viswanath 2015; Murtagh, Vadhan 2016). In densities: let
         f = min(p, exp(e) q) and g = min(q, exp(e) p). Then f <= exp(e) g and g <= exp(e) f, and
         their masses 1-a and 1-b have a, b <= d. Say a <= b. The pair (min(f, g), g) has the same
         two properties and its first mass is at most 1-b; both are kept by mixtures, so a mixture
         of it and (f, g) has the masses (1-b, 1-b), and (1-d)/(1-b) times that is
         ((1-d) p', (1-d) q'). What is missing of p and q is d p'' and d q''.
         So step i may be taken to toss a coin, with the same odds on x and on y: with d_i it
         answers by p'' or q'', else by p' or q'. Seeing the coins too can only help the adversary.

         2. *The coins.* Follow one path of answers whose coins all fell well: P' is the law of
         paths if they always do, its steps are the p'. A path of P' has in P the density
         prod(1-d_i), so for every S, with L = sum ln(p'_i/q'_i),
             P(S) - exp(epsilon) Q(S) <= E'[1 - prod(1-d_i)] + E'[(1 - exp(epsilon - L))_+]
         (paths with a bad coin are counted in full: their probability is the first term). Since
         1 - prod(1-d_i) <= sum d_i <= delta' on every path, the first term is at most delta'.

         3. *The moments.* Whatever happened before, E'[exp(c ln(p'_i/q'_i))] <= exp(r_i): the
         ratio z = p'_i/q'_i lies in [exp(-e), exp(e)] and has mean 1 under q'_i; z**(c+1) is
         convex, so its mean is greatest if z takes the two ends only, which is randomised response
         and gives the formula. For concentrated steps p' = p, q' = q, and ln E[z**c] is c times
         the divergence of order 1 + c, at most c (1+c) rho. Approximately concentrated ones have
         p' and q' by definition: the laws given events of probability 1 - d. So
         exp(c L_t - sum r_i) is a supermartingale under P' with mean at most 1, also at the
         (random) end.

         4. *The end.* On paths that end with no rho and sum e_i <= epsilon, L <= epsilon and
         (1 - exp(epsilon - L))_+ = 0. On the others sum r_i <= B. For every real y,
         (1 - exp(-y))_+ <= k exp(c y): at y > 0 the ratio of the left to exp(c y) is greatest where
         exp(y) = (1+c)/c, and is k there. Hence
             E'[(1 - exp(epsilon - L))_+] <= k exp(-c epsilon) E'[exp(c L); sum r <= B]
                                          <= k exp(-c epsilon) exp(B) = delta - delta'
         by step 3. Together with step 2: delta. Interaction without end: the bound holds for every
         event that a finite number of answers decides, hence for all limits of such events.  []
Theorem  (budgets that change) if epsilon and delta are changed along the way, even because of the
         answers, while c and delta' stay, the whole is (epsilon, delta)-private for the greatest of
         each that any path may come to: B grows with both, so every path ends within their limits
Theorem  (odometer) with probability 1 - delta under P, no coin falls badly and at every time
         L <= e_t, where e_t is sum e (if no rho was spent) or (sum r + ln(1/(delta - delta')))/c,
         whichever is less. By Ville's inequality for the supermartingale of step 3; sum e bounds L
         on every path
Not so   - "Compose the privacy loss distributions of the answers so far, stop before their delta
         exceeds the budget" is *not* private: an adversary pays with an additive delta after a
         harmless answer and with epsilon after a telling one, and has nearly 3/2 delta from
         two steps.
         - delta' must be fixed beforehand for the same reason. If a path may choose how to divide
         delta between sum d and the moments, harmless paths take all of it as sum d while telling
         paths take all of it as moments, and the sum comes near 2 delta. So the basic branch, too,
         has delta' only and not delta: its paths are the harmless ones.
         - c must be fixed beforehand: step 4 would need a share of delta for each order that a
         path may come to choose
Differs  r is rounded up to a multiple of 2**-64 (correctly: the least one that is not below), and B
         down, so sums are exact and short, and a recorded price can be computed again and compared
         Where all answers have Gaussian noise, `gaussian_filter.py` is tighter
Source   Feldman, Zrnic 2021 and Whitehouse, Ramdas, Rogers, Wu 2023 (filters and odometers);
         Canonne, Kamath, Steinke 2020, Proposition 12 (the inequality of step 4)
Checked  tests/privacy/test_filter.py: the worst adaptive adversary, by backward induction, stays
         within delta, and finds every mutant
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar, cast

from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import (
    Number,
    Pair,
    exp_between,
    ln_between,
    nonnegative,
    positive,
    probability,
    rational_between,
)
from lastbit.privacy.neighbours import AS_DECLARED, Neighbours, check_neighbours

if TYPE_CHECKING:
    from lastbit.privacy.accounting.losses import PrivacyLoss
    from lastbit.privacy.guarantees import Guarantee

PLACES = 64
"""The moment of an epsilon is a multiple of 2**-64; that of a rho is exact."""

SHARE_KEPT = Fraction(1, 10)
"""The part of delta that is kept for additive deltas, where nothing else is said."""

_MOST_DIGITS = 12
EXTREME = Fraction(10**12)
"""No epsilon or rho is as large as this, and no order beyond it is proposed."""
_WORKING = tuple(192 << n for n in range(6))
"""Places to work with, one after the other, until it is decided to which side a number rounds."""


class Amounts:
    """What one answer costs under a filter, or several together: exact sums, amount by amount."""

    __slots__ = ()

    def __post_init__(self) -> None:
        for amount in self._named().values():
            if not isinstance(amount, Fraction):
                remedy = "take it from the filter's price"
                raise WrongType("cost", problem="is not in exact fractions", remedy=remedy)
            if amount < 0:
                problem, remedy = "is negative", "pass numbers from 0 up"
                raise InvalidParameter("cost", problem=problem, remedy=remedy)

    def _named(self) -> dict[str, Fraction]:
        these: Any = self
        return {one.name: getattr(self, one.name) for one in fields(these) if one.compare}

    def _with(self, amounts: dict[str, Fraction]) -> Self:
        these: Any = self
        return cast(Self, replace(these, **amounts))

    def __add__(self, other: Self) -> Self:
        return self._with({name: n + getattr(other, name) for name, n in self._named().items()})

    def __mul__(self, times: int) -> Self:
        import_module("lastbit.exact.written").whole(times, "times")  # no charge comes by this
        return self._with({name: n * times for name, n in self._named().items()})

    __rmul__ = __mul__

    def to_json(self) -> dict[str, str]:
        """Exact fractions as text."""
        return {name: str(n) for name, n in self._named().items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentCost(Amounts):
    """What one answer costs under a moment filter, or several together.

    >>> (MomentCost(epsilon=Fraction(1, 3)) * 2 + MomentCost(rho=Fraction(1))).epsilon
    Fraction(2, 3)
    """

    moment: Fraction = Fraction(0)
    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)
    order: Fraction | None = field(default=None, repr=False, compare=False)
    """The order that the moment is of, where it is known: moments of two orders do not add up."""

    def __add__(self, other: MomentCost) -> MomentCost:
        check_order(self, other.order)
        order = other.order if self.order is None else self.order
        return replace(Amounts.__add__(self, other), order=order)


def check_order(cost: MomentCost, order: Fraction | None) -> None:
    """Refuse a price of a filter of another order."""
    if None not in (cost.order, order) and cost.order != order:
        problem = "is a price of a filter of another order"
        raise InvalidParameter("cost", problem=problem, remedy="ask this filter for the price")


NOTHING_SPENT = MomentCost()
Spent = TypeVar("Spent", bound=Amounts)


class Filter(Generic[Spent]):
    """What every filter tells people, found by name: what an account charges rests on none of it.

    `remaining.py` has the words, `promised_prices.py` the prices of guarantees.
    """

    __slots__ = ()
    _KIND: ClassVar[str]

    def _tell(self, what: str, *given: object) -> Any:
        place = (
            "lastbit.privacy.promised_prices" if what == "price" else "lastbit.privacy.remaining"
        )
        return getattr(import_module(place), f"{self._KIND}_{what}")(self, *given)

    def price_of(self, promise: Guarantee | PrivacyLoss) -> Spent:
        """The price of what a guarantee promises, or of a loss of Gaussian noise."""
        return cast(Spent, self._tell("price", promise))

    def allows(self, spent: Spent, price: Spent) -> bool:
        """Whether an answer of this price may be given after what was spent."""
        kept: Any = self
        return bool(kept.within(spent + price))

    def answers_left(self, spent: Spent, price: Spent) -> int | None:
        """How many answers of this price still fit; None if it costs nothing, and any number do."""
        return cast("int | None", self._tell("answers", spent, price))

    def left(self, spent: Spent) -> Spent:
        """The most that a single further answer may cost, for each way to pay by itself."""
        return cast(Spent, self._tell("left", spent))

    def epsilon_spent(self, spent: Spent) -> Fraction:
        """The least epsilon of a filter, else like this one, that allows what was spent."""
        return cast(Fraction, self._tell("epsilon_spent", spent))

    def odometer(self, spent: Spent) -> Fraction:
        """A loss that was not exceeded at any time so far, except with probability delta."""
        return cast(Fraction, self._tell("odometer", spent))


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentFilter(Filter[MomentCost]):
    """A budget of (epsilon, delta) for answers whose prices are chosen along the way.

    `order` is c of the theorem, `delta_kept` is delta'. `moment_filter` chooses both.

    >>> kept = moment_filter("5.1", "1e-6")
    >>> kept.answers_left(NOTHING_SPENT, kept.price(epsilon="0.1"))
    100
    """

    epsilon: Fraction
    delta: Fraction
    order: Fraction
    delta_kept: Fraction
    neighbours: Neighbours = field(default=AS_DECLARED)
    _KIND: ClassVar[str] = "moment"

    def __post_init__(self) -> None:
        epsilon, delta = _budget(self.epsilon, self.delta)
        kept = probability(self.delta_kept, "delta_kept", one=False, remedy="pass delta/10")
        if kept >= delta:
            raise InvalidParameter(
                "delta_kept", problem="is not below delta", remedy="pass delta/10, or 0"
            )
        check_neighbours(self.neighbours)
        for name, value in (
            ("epsilon", epsilon),
            ("delta", delta),
            ("delta_kept", kept),
            ("order", _order(self.order)),
        ):
            object.__setattr__(self, name, value)

    @property
    def limit(self) -> Fraction:
        """B of the theorem, rounded down; not above 0 if nothing can be paid by moments."""
        return _limit(self.epsilon, self.delta - self.delta_kept, self.order)

    def price(self, *, epsilon: Number = 0, delta: Number = 0, rho: Number = 0) -> MomentCost:
        """What an answer costs that is (epsilon, delta)-private and rho-concentrated in its parts.

        >>> moment_filter(3, "1e-6").price(rho="1/200").moment
        Fraction(718301, 2000000)
        """
        loss = nonnegative(epsilon, "epsilon")
        density = nonnegative(rho, "rho")
        for name, value in (("epsilon", loss), ("rho", density)):
            if value >= EXTREME:
                raise InvalidParameter(name, problem="is beyond 10**12", remedy="ask for less")
        return MomentCost(
            moment=response_moment(loss, self.order) + self.order * (self.order + 1) * density,
            epsilon=loss,
            delta=probability(delta, "delta", remedy="pass, say, 1e-9"),
            rho=density,
            order=self.order,
        )

    def within(self, spent: MomentCost) -> bool:
        """Whether this may be spent in all; exact."""
        check_order(spent, self.order)
        return spent.delta <= self.delta_kept and (
            spent.moment <= self.limit or (not spent.rho and spent.epsilon <= self.epsilon)
        )


def moment_filter(
    epsilon: Number,
    delta: Number,
    *,
    delta_kept: Number | None = None,
    order: Number | None = None,
    neighbours: Neighbours = AS_DECLARED,
) -> MomentFilter:
    """The filter of a budget; its order lets the most through if single prices are small.

    A tenth of delta is kept for additive deltas unless `delta_kept` says otherwise. Order and
    share are functions of the budget alone, never of what is asked.

    >>> moment_filter("5.1", "1e-6").order, moment_filter(1, "1e-9").order
    (Fraction(101, 20), Fraction(341, 10))
    """
    loss, level = _budget(epsilon, delta)
    kept = level * SHARE_KEPT if delta_kept is None else probability(delta_kept, "delta_kept")
    if order is None and kept < level:
        # found by name: every order gives a sound filter
        choice = import_module("lastbit.privacy.best_order")
        order = cast(Fraction, choice.best_order(loss, level - kept))
    return MomentFilter(
        epsilon=loss,
        delta=level,
        order=_order(1 if order is None else order),
        delta_kept=kept,
        neighbours=neighbours,
    )


def _budget(epsilon: object, delta: object) -> tuple[Fraction, Fraction]:
    loss = positive(epsilon, "epsilon")
    if loss >= EXTREME:
        raise InvalidParameter("epsilon", problem="is beyond 10**12", remedy="pass a smaller one")
    level = probability(delta, "delta", one=False, remedy="pass, say, 1e-6")
    if level == 0:
        raise InvalidParameter(
            "delta",
            problem="is 0, and only plain sums hold without a delta",
            remedy="pass, say, 1e-6, or add up the epsilons",
        )
    return loss, level


def _order(value: object) -> Fraction:
    """Of few digits: it is written down with every account, and multiplies every rho."""
    order = positive(value, "order")
    longest = 10**_MOST_DIGITS
    if order.numerator > longest or order.denominator > longest:
        raise InvalidParameter(
            "order", problem="has more than 12 digits", remedy="round it to 3 digits; all are sound"
        )
    return order


# -- the two numbers that are not rational --


@lru_cache(maxsize=1024)
def response_moment(epsilon: Fraction, order: Fraction) -> Fraction:
    """The moment of randomised response, rounded up to the grid.

    Theorem  ln M = c e + ln(1 + exp(-(2c+1) e)) - ln(1 + exp(-e)), above 0 and below c e. It is
             never on the grid: exp((c+1)e) + exp(-c e) = exp(r) + exp(r+e) for a rational r is
             impossible by Lindemann and Weierstrass, as the exponents differ. So more precision
             always decides to which side it rounds
    """
    if epsilon == 0:
        return Fraction(0)
    most = grid_ceiling(order * epsilon)
    for places in _WORKING:
        plain = rational_between(order * epsilon, places)
        large, small = (_ln_one_and_exp(m * epsilon, places) for m in (2 * order + 1, Fraction(1)))
        low = Fraction(plain[0] + large[0] - small[1], 1 << places)
        high = Fraction(plain[1] + large[1] - small[0], 1 << places)
        above = min(grid_ceiling(high), most)
        if max(grid_ceiling(low), Fraction(1, 1 << PLACES)) >= above:
            return above
    return most  # a price that is too high is a price


def _ln_one_and_exp(exponent: Fraction, places: int) -> Pair:
    """Integers around 2**places ln(1 + exp(-x)) for a rational x from 0 up."""
    one = 1 << places
    low, high = (Fraction(one + end, one) for end in exp_between(exponent, places))
    return ln_between(low, places)[0], ln_between(high, places)[1]


@lru_cache(maxsize=256)
def _limit(epsilon: Fraction, level: Fraction, order: Fraction) -> Fraction:
    """B = c epsilon + ln(level) - ln k, rounded down to the grid.

    If it lies on the grid, as for level = 1/4 and c = 1, it comes out one step too low.
    """
    low = Fraction(0)
    for places in _WORKING:
        log, small, large = (ln_between(x, places) for x in (level, order, 1 + order))
        low, high = (
            order * epsilon
            + Fraction(1, 1 << places)
            * (log[end] - order * small[1 - end] + (1 + order) * large[end])
            for end in (0, 1)
        )
        if grid_floor(low) == grid_floor(high):
            break
    return grid_floor(low)


def grid_ceiling(number: Fraction) -> Fraction:
    """The least multiple of 2**-64 that is not below a number."""
    return Fraction(-((-number.numerator << PLACES) // number.denominator), 1 << PLACES)


def grid_floor(number: Fraction) -> Fraction:
    """The greatest multiple of 2**-64 that is not above a number."""
    return Fraction((number.numerator << PLACES) // number.denominator, 1 << PLACES)
