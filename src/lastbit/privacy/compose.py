"""Several promises about the same people, together."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from flint import arb

from lastbit.errors import IncompatibleGuarantees, InvalidParameter, WrongType
from lastbit.exact import arb_of, probability, upper, working_precision
from lastbit.privacy.accounting.losses import black_box
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

# Exact optimal composition looks at every total loss; beyond this many it is not tried.
MOST_LOSSES = 50_000
MOST_LOSS = 10**9
MOST_DIFFERENT = 200


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
            "kind first, for example with .to(ApproxDP, delta=...), or use best_composition"
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
                raise IncompatibleGuarantees("Renyi guarantees of different orders do not add up")
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


def _different_neighbours(one: Guarantee, other: Guarantee) -> str:
    pair = {one.neighbours.relation, other.neighbours.relation}
    if pair == {"add-remove", "change-one"} and one.neighbours.unit == other.neighbours.unit:
        remedy = "changing one is removing and adding one: take changed_one() of the former"
    elif "as-declared" in pair:
        remedy = "name the relation: .under(ADD_REMOVE) or .under(CHANGE_ONE)"
    else:
        remedy = "state both for the same unit"
    return f"one is about {one.neighbours}, the other about {other.neighbours}; {remedy}"


def best_composition(guarantees: Iterable[Guarantee], delta: object) -> ApproxDP:
    """The tightest (epsilon, delta) that the composition theorems here give for all together.

    >>> best_composition([PureDP("0.1")] * 100, "1e-6").epsilon < 5
    True
    """
    found = compositions(guarantees, delta)
    return min(found.values(), key=lambda guarantee: guarantee.epsilon)


def compositions(guarantees: Iterable[Guarantee], delta: object) -> dict[str, ApproxDP]:
    """What each composition theorem that applies gives, at the same total delta.

    Theorem  *basic*: losses and deltas add up (paper 003 Prop. 8). *advanced*: with a slack d,
             sqrt(2 ln(1/d) sum e_i**2) + sum e_i (exp(e_i) - 1) (Dwork, Rothblum, Vadhan 2010).
             *optimal*: an (e, d) mechanism is no worse than one that reveals all with probability d
             and otherwise answers by randomised response; the product of those is computed exactly
             (Kairouz, Oh, Viswanath 2015; Murtagh, Vadhan 2016). *concentrated*: e tanh(e/2) for
             pure ones, sums, then the best order; approximate ones are added on top. *tight*: the
             same product as in optimal, by its `Profile`, also where there are too many different
             losses to list; a zCDP guarantee alone says too little for it
    Checked  tests/privacy/test_compose.py
    """
    if not isinstance(guarantees, Iterable):
        raise WrongType("guarantees", problem="are not a list", remedy="pass a list of guarantees")
    parts = list(guarantees)
    level = probability(delta, "delta", one=False, remedy="pass, say, 1e-9")
    if not parts:
        raise InvalidParameter("guarantees", problem="are empty", remedy="pass at least one")
    for part in parts:
        if not isinstance(part, Guarantee):
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
    plain = [_plain(part) for part in parts if not isinstance(part, ZCDP)]
    rho = _total(part.rho for part in parts if isinstance(part, ZCDP))
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
    if not found:
        found["none"] = math.inf
    return {name: ApproxDP(loss, level, neighbours=neighbours) for name, loss in found.items()}


def tight_profile(guarantees: Iterable[Guarantee]) -> Profile | None:
    """The profile of pure and approximate guarantees; None where it says nothing or takes long.

    >>> tight_profile([PureDP("0.1")] * 100).epsilon("1e-6")
    (4.774567588107..., 4.774567588107...)
    """
    counts = Counter(guarantees)
    known = all(
        isinstance(part, PureDP | ApproxDP | ProbabilisticDP) and part.epsilon <= MOST_LOSS
        for part in counts
    )
    if not known or len(counts) > MOST_DIFFERENT:
        return None
    return Profile([(black_box(part), times) for part, times in counts.items()])


def _exact(loss: float) -> Loss:
    return loss if loss == math.inf else Fraction(loss)


def _total(losses: Iterable[Loss]) -> Loss:
    total: Loss = Fraction(0)
    for loss in losses:
        total = plus(total, loss)
    return total


def _plain(guarantee: Guarantee) -> tuple[Loss, Fraction]:
    match guarantee:
        case PureDP():
            return guarantee.epsilon, Fraction(0)
        case ApproxDP() | ProbabilisticDP():
            return guarantee.epsilon, guarantee.delta
    raise AssertionError(guarantee)


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
    """Total losses of a product of randomised responses with their masses, largest loss first."""
    if any(e > MOST_LOSS for e, _ in parts):
        return None
    counts = Counter(e for e, _ in parts if e)
    if math.prod(n + 1 for n in counts.values()) > MOST_LOSSES:
        return None
    total: dict[Fraction, arb] = {Fraction(0): arb(1)}
    with working_precision(PRECISION):
        for epsilon, n in counts.items():
            assert isinstance(epsilon, Fraction)
            ratio = (-arb_of(epsilon)).exp()
            yes, no = 1 / (1 + ratio), ratio / (1 + ratio)
            single = [
                ((n - 2 * k) * epsilon, arb.bin_uiui(n, k) * yes ** (n - k) * no**k)
                for k in range(n + 1)
            ]
            merged: dict[Fraction, arb] = {}
            for loss, mass in total.items():
                for more, share in single:
                    merged[loss + more] = merged.get(loss + more, arb(0)) + mass * share
            total = merged
    return sorted(total.items(), reverse=True, key=lambda pair: pair[0])
