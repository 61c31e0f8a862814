"""Several promises about the same people, together."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
from flint import arb

from lastbit.arguments import listed
from lastbit.errors import IncompatibleGuarantees, InvalidParameter, WrongType
from lastbit.exact import arb_of, floor_log2, nearest, probability, upper, working_precision
from lastbit.privacy.accounting.composition import common
from lastbit.privacy.accounting.losses import GaussianLoss, black_box
from lastbit.privacy.accounting.profile import Profile
from lastbit.privacy.convert import PRECISION, concentrated, epsilon_upper
from lastbit.privacy.guarantees import (
    ZCDP,
    ApproxDP,
    Guarantee,
    Loss,
    MetricDP,
    ProbabilisticDP,
    PureDP,
    RenyiDP,
    plus,
    times,
)

# Exact optimal composition looks at every total loss; beyond this many, or if adding them up one
# guarantee after the other takes more steps than this, it is not tried.
MOST_LOSSES = 50_000
MOST_STEPS = 1_000_000
MOST_LOSS = 10**9
MOST_DIFFERENT = 200
_LEAST_ORDER, _GREATEST_ORDER = 1e-9, 1e12


def added(one: Guarantee, other: Guarantee) -> Any:
    """Basic composition of two guarantees of one kind: the parameters add up.

    Theorem  paper 003 Propositions 3 and 8; for probabilistic ones the bad sets unite; Renyi
             divergences of one order add up, hence concentrated ones do; metric ones add up at
             every distance
    Checked  tests/privacy/test_compose.py
    """
    if not hasattr(other, "neighbours"):
        return NotImplemented
    if type(one) is not type(other):
        raise IncompatibleGuarantees(
            f"{type(one).__name__} and {type(other).__name__} do not add up; convert both to one "
            f"kind by .to(ApproxDP, delta=...), or use best_composition"
        )
    if one.neighbours != other.neighbours:
        raise IncompatibleGuarantees(_different_neighbours(one, other))
    match one, other:
        case PureDP(), PureDP():
            return PureDP(plus(one.epsilon, other.epsilon), neighbours=one.neighbours)
        case ((ApproxDP() | ProbabilisticDP()), (ApproxDP() | ProbabilisticDP())):
            delta = min(one.delta + other.delta, Fraction(1))
            loss = plus(one.epsilon, other.epsilon)
            return type(one)(loss, delta, neighbours=one.neighbours)
        case ZCDP(), ZCDP():
            return ZCDP(plus(one.rho, other.rho), neighbours=one.neighbours)
        case RenyiDP(), RenyiDP():
            if one.alpha != other.alpha:
                words = "Renyi guarantees of different orders do not add up"
                raise IncompatibleGuarantees(f"{words}; start from ZCDP or PureDP")
            loss = plus(one.epsilon, other.epsilon)
            return RenyiDP(one.alpha, loss, neighbours=one.neighbours)
        case MetricDP(), MetricDP():
            return _metric_sum(one, other)
    raise AssertionError(one)


def _metric_sum(one: MetricDP, other: MetricDP) -> MetricDP:
    """The sum at every distance: r1 (d + s1) + r2 (d + s2) = (r1 + r2) (d + s), rates r = e/per.

    So s = (r1 s1 + r2 s2)/(r1 + r2), the mean of the slacks; where nothing or everything is lost at
    any distance above 0 no slack makes a difference, and 0 stands for it.
    """
    if one.unit != other.unit:
        raise IncompatibleGuarantees(f"{one.unit} and {other.unit} do not add up")
    more = times(one.per / other.per, other.epsilon)  # both losses for the same distance
    total = plus(one.epsilon, more)
    slack = Fraction(0)
    if total and isinstance(total, Fraction):
        lost = plus(times(one.slack, one.epsilon), times(other.slack, more))
        assert isinstance(lost, Fraction)  # parts of a finite sum
        slack = lost / total
    return MetricDP(total, one.per, one.unit, slack=slack, neighbours=one.neighbours)


def _different_neighbours(one: Guarantee | GaussianLoss, other: Guarantee | GaussianLoss) -> str:
    pair = {one.neighbours.relation, other.neighbours.relation}
    if pair == {"add-remove", "change-one"} and one.neighbours.unit == other.neighbours.unit:
        remedy = "changing one is removing and adding one: take changed_one() of the former"
    elif "as-declared" in pair:
        remedy = "name the relation: .under(ADD_REMOVE) or .under(CHANGE_ONE)"
    else:
        remedy = "state both for the same unit"
    return f"one is about {one.neighbours}, the other about {other.neighbours}; {remedy}"


def best_composition(guarantees: Iterable[Guarantee | GaussianLoss], delta: object) -> ApproxDP:
    """The tightest (epsilon, delta) that the composition theorems here give for all together.

    Gaussian noise is given by its loss, of which more is known than of its zCDP guarantee:

    >>> round(float(best_composition([GaussianLoss("1/100")] * 50, "1e-6").epsilon), 4)
    3.3076
    >>> round(float(best_composition([ZCDP("1/200")] * 50, "1e-6").epsilon), 4)
    3.5423
    """
    found = compositions(guarantees, delta)
    return min(found.values(), key=lambda guarantee: guarantee.epsilon)


def compositions(
    guarantees: Iterable[Guarantee | GaussianLoss], delta: object
) -> dict[str, ApproxDP]:
    """What each composition theorem that applies gives, at the same total delta.

    Theorem  *basic*: losses and deltas add up (paper 003 Prop. 8). *advanced*: with a slack d,
             sqrt(2 ln(1/d) sum e_i**2) + sum e_i (exp(e_i) - 1) (Dwork, Rothblum, Vadhan 2010).
             *optimal*: an (e, d) mechanism is no worse than one that reveals all with probability d
             and otherwise answers by randomised response; the product of those is computed exactly
             (Kairouz, Oh, Viswanath 2015; Murtagh, Vadhan 2016). *concentrated*: e tanh(e/2) for
             pure ones, sums, then the best order; approximate ones are added on top. *tight*: the
             same product as in optimal, by its `Profile`, also where there are too many different
             losses to list; a zCDP guarantee alone says too little for it. *moments*: `_moments`,
             which takes zCDP guarantees and all others together. Gaussian noise, given by its loss,
             is mu**2/2-zCDP (Bun, Steinke 2016, Proposition 1.6), and N(0, 1) against N(mu, 1) is
             its exact pair in *tight*
    Checked  tests/privacy/test_compose.py

    >>> found = compositions([PureDP("0.1")] * 100, "1e-6")
    >>> [(theorem, round(float(found[theorem].epsilon), 2)) for theorem in ("basic", "tight")]
    [('basic', 10.0), ('tight', 4.77)]
    """
    parts = listed(guarantees, "guarantees", remedy="pass a list of guarantees")
    level = probability(delta, "delta", one=False, remedy="pass, say, 1e-9")
    if not parts:
        raise InvalidParameter("guarantees", problem="are empty", remedy="pass at least one")
    for part in parts:
        if not isinstance(part, Guarantee | GaussianLoss):
            raise WrongType(
                "guarantees", problem="hold something else", remedy="pass, say, PureDP(1)"
            )
        if part.neighbours != parts[0].neighbours:
            raise IncompatibleGuarantees(_different_neighbours(parts[0], part))
        if isinstance(part, MetricDP | RenyiDP):
            raise IncompatibleGuarantees(
                f"{type(part).__name__} is not taken here; add those up with + first and convert"
            )
    neighbours = parts[0].neighbours
    plain = [_plain(part) for part in parts if not isinstance(part, ZCDP | GaussianLoss)]
    rho = _total(_density(part) for part in parts if isinstance(part, ZCDP | GaussianLoss))
    found: dict[str, Loss] = {}
    spent = sum((d for _, d in plain), Fraction(0))
    if rho == 0:
        if spent <= level:
            found["basic"] = _total(e for e, _ in plain)
            found["advanced"] = _advanced([e for e, _ in plain], level - spent)
        found["optimal"] = optimal_epsilon(plain, level)
    tight = tight_profile(parts)
    if tight is not None:
        found["tight"] = _exact(tight.epsilon(level)[1])
    if spent <= level:
        pure = _total(concentrated(e) for e, d in plain if d == 0)
        rest = _total(e for e, d in plain if d > 0)
        found["concentrated"] = plus(epsilon_upper(ZCDP(plus(rho, pure)), level - spent), rest)
        if rho:
            side = _total(e for e, _ in plain)
            loss = epsilon_upper(ZCDP(rho), level - spent)
            found["concentrated and basic"] = plus(side, loss)
    by_moments = _moments(plain, rho, level)
    if by_moments is not None:
        found["moments"] = by_moments
    if not found:
        found["none"] = math.inf
    return {name: ApproxDP(loss, level, neighbours=neighbours) for name, loss in found.items()}


def tight_profile(guarantees: Iterable[Guarantee | GaussianLoss]) -> Profile | None:
    """The profile of pure and approximate guarantees and of Gaussian noise; None where it says
    nothing or takes long.

    >>> tight_profile([PureDP("0.1")] * 100).epsilon("1e-6")
    (4.774567588107..., 4.774567588107...)
    """
    counts = Counter(guarantees)
    known = all(
        isinstance(part, GaussianLoss)
        or (isinstance(part, PureDP | ApproxDP | ProbabilisticDP) and part.epsilon <= MOST_LOSS)
        for part in counts
    )
    if not known or len(counts) > MOST_DIFFERENT:
        return None
    return Profile(
        (part if isinstance(part, GaussianLoss) else black_box(part), times)
        for part, times in counts.items()
    )


def _exact(loss: float) -> Loss:
    return loss if loss == math.inf else Fraction(loss)


def _total(losses: Iterable[Loss]) -> Loss:
    total: Loss = Fraction(0)
    for loss in losses:
        total = plus(total, loss)
    return total


def _density(part: ZCDP | GaussianLoss) -> Loss:
    return part.mu_squared / 2 if isinstance(part, GaussianLoss) else part.rho


def _plain(guarantee: Guarantee | GaussianLoss) -> tuple[Loss, Fraction]:
    match guarantee:
        case PureDP():
            return guarantee.epsilon, Fraction(0)
        case ApproxDP() | ProbabilisticDP():
            return guarantee.epsilon, guarantee.delta
    raise AssertionError(guarantee)


def _moments(plain: Sequence[tuple[Loss, Fraction]], rho: Loss, delta: Fraction) -> Fraction | None:
    """The epsilon that moments of one order prove for all together; None where they prove none.

    Theorem  D + k(c) exp(-c epsilon) exp(R) <= delta proves (epsilon, delta) for every c > 0, with
             k(c) = c**c/(1+c)**(1+c), D = 1 - prod(1 - d_i), R = c(c+1) rho + sum r(e_i), r(e) =
             ln((exp((c+1)e) + exp(-c e))/(1 + exp(e))), the moment of randomised response. So
             epsilon = (ln k(c) + R - ln(delta - D))/c
    Proof    `checker/composition.py`: (1 - exp(-y))_+ <= k(c) exp(c y), for y = loss - epsilon
    Differs  the best order by floats: c epsilon is a convex function of c, so epsilon has one least
             value, and any order proves a true bound; evaluated in balls, and rounded up
    """
    kept = math.prod((1 - d for _, d in plain), start=Fraction(1))
    counts = Counter(e for e, _ in plain if e)
    if not 1 - delta < kept or any(isinstance(e, float) or e > MOST_LOSS for e in (*counts, rho)):
        return None
    losses: list[tuple[Fraction, int]] = [(Fraction(e), n) for e, n in counts.items()]
    density = Fraction(rho)
    if not losses and not density:
        return Fraction(0)
    order = _best_order(losses, density, 1 - (1 - delta) / kept)
    with working_precision(PRECISION + 2 * floor_log2(1 + order)):
        c = arb_of(order)
        total = c * c.log() - (1 + c) * c.log1p() - arb_of(delta - (1 - kept)).log()
        total += arb_of(order * (order + 1) * density)
        for e, n in losses:
            total += n * _response_moment(arb_of(e), c)
        bound = upper(total / c)
    return Fraction(max(bound, 0.0)) if bound < math.inf else None


def _response_moment(e: arb, c: arb) -> arb:
    """The logarithm of the moment of order c of randomised response."""
    if e * (1 + c) < 1:  # the other form would lose the digits of a small number
        return ((c * e).expm1() * -(-(1 + c) * e).expm1() / (1 + (-e).exp())).log1p()
    return c * e + (-(2 * c + 1) * e).exp().log1p() - (-e).exp().log1p()


def _best_order(losses: Sequence[tuple[Fraction, int]], rho: Fraction, room: Fraction) -> Fraction:
    """About the order that proves the least epsilon; floats choose, and prove nothing."""
    near = np.array([nearest(e) for e, _ in losses])
    counts = np.array([float(n) for _, n in losses])
    level = math.log(room.numerator) - math.log(room.denominator)
    density = nearest(rho)

    def epsilon(place: float) -> float:
        c = math.exp(place)
        with np.errstate(all="ignore"):
            small = np.expm1(np.minimum(c * near, 30)) * -np.expm1(-(1 + c) * near)
            large = c * near + np.log1p(np.exp(-(2 * c + 1) * near)) - np.log1p(np.exp(-near))
            moments = np.where(c * near < 1, np.log1p(small / (1 + np.exp(-near))), large)
        kappa = -c * math.log1p(1 / c) - math.log1p(c)
        return (float(counts @ moments) + c * (c + 1) * density + kappa - level) / c

    low, high = math.log(_LEAST_ORDER), math.log(_GREATEST_ORDER)
    for _ in range(90):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        if epsilon(left) <= epsilon(right):
            high = right
        else:
            low = left
    return Fraction(math.exp((low + high) / 2))


def _advanced(losses: Sequence[Loss], slack: Fraction) -> Loss:
    epsilons = [e for e in losses if isinstance(e, Fraction) and e <= 100]
    if slack == 0 or len(epsilons) < len(losses):
        return math.inf
    with working_precision(PRECISION):
        squares = arb_of(sum((e * e for e in epsilons), Fraction(0)))
        drift = sum((arb_of(e) * arb_of(e).expm1() for e in epsilons), arb(0))
        return Fraction(upper((-2 * arb_of(slack).log() * squares).sqrt() + drift))


def optimal_epsilon(parts: Sequence[tuple[Loss, Fraction]], delta: Fraction) -> Loss:
    """The least epsilon for which the composition of (epsilon_i, delta_i) has this delta; exact.

    Theorem  with P the product of randomised responses, delta is reached at epsilon iff
             A_m - exp(epsilon) B_m <= d' for every m, A_m and B_m the masses of the m largest
             losses under the two inputs, d' = 1 - (1-delta)/prod(1-delta_i). So epsilon is the
             greatest of ln((A_m - d')/B_m), each rounded up
    """
    outcomes = _outcomes(parts)
    if outcomes is None:
        return math.inf
    kept = math.prod(((1 - d) for _, d in parts), start=Fraction(1))
    if kept < 1 - delta:
        return math.inf
    left = 1 - (1 - delta) / kept
    best = 0.0
    with working_precision(PRECISION):
        a, b, target = arb(0), arb(0), arb_of(left)
        for loss, mass in outcomes:
            a += mass
            b += mass * (-arb_of(loss)).exp()
            rest = (a - target).upper()
            if rest > 0:
                best = max(best, upper((rest / b).log()))
    return Fraction(best)


def optimal_delta(parts: Sequence[tuple[Loss, Fraction]], epsilon: Fraction) -> Fraction:
    """The exact delta of the composition of (epsilon_i, delta_i) at this epsilon, rounded up."""
    outcomes = _outcomes(parts)
    if outcomes is None:
        return Fraction(1)
    kept = math.prod(((1 - d) for _, d in parts), start=Fraction(1))
    with working_precision(PRECISION):
        delta = sum(
            (mass * -arb_of(epsilon - loss).expm1() for loss, mass in outcomes if loss > epsilon),
            arb(0),
        )
        return min(Fraction(upper(arb_of(1 - kept) + arb_of(kept) * delta)), Fraction(1))


def _outcomes(parts: Sequence[tuple[Loss, Fraction]]) -> list[tuple[Fraction, arb]] | None:
    """Total losses of a product of randomised responses with their masses, largest loss first.

    Theorem  with g the greatest number of which all epsilons are multiples, all totals of some of
             them lie 2g apart or more, between minus and plus their sum: at most sum/g + 1 of them.
             So many different epsilons have few totals if they have few digits
    """
    if any(e > MOST_LOSS for e, _ in parts):
        return None
    counts: Counter[Fraction] = Counter(Fraction(e) for e, _ in parts if e)
    unit = reduce(common, counts, Fraction(0))
    if not _few(counts, unit):
        return None
    total: dict[int, arb] = {0: arb(1)}
    with working_precision(PRECISION):
        for epsilon, n in counts.items():
            ratio = (-arb_of(epsilon)).exp()
            yes, no = 1 / (1 + ratio), ratio / (1 + ratio)
            steps = int(epsilon / unit)
            single = [
                ((n - 2 * k) * steps, arb.bin_uiui(n, k) * yes ** (n - k) * no**k)
                for k in range(n + 1)
            ]
            merged: dict[int, arb] = {}
            for loss, mass in total.items():
                for more, share in single:
                    merged[loss + more] = merged.get(loss + more, arb(0)) + mass * share
            total = merged
    return [(loss * unit, mass) for loss, mass in sorted(total.items(), reverse=True)]


def _few(counts: Mapping[Fraction, int], unit: Fraction) -> bool:
    """Whether the totals are few enough to list, and so are the steps that lead to them."""
    size, steps, reach = 1, 0, Fraction(0)
    for epsilon, n in counts.items():
        steps += size * (n + 1)
        reach += n * epsilon
        size = min(size * (n + 1), int(reach / unit) + 1)
    return size <= MOST_LOSSES and steps <= MOST_STEPS
