"""Quantiles, least and greatest values: which ranks are aimed at, and how far distances move.

Set-up. In a group, bin i holds the weight b_i (integers, `measures.py`), N in all; public weights
may stand before the first and behind the last bin (`ends`), each a candidate of its own. Let B_i be
the weight before candidate i and U_i = B_i + b_i. For a level q = a/d and a public shift s the rank
aimed at is T = q N + s, and the distance of a candidate is

    D_i = d max(B_i - T, T - U_i, 0),    an integer.

Law      candidate i with probability proportional to exp(-rate D_i), in each group on its own

Theorem 1 (how far distances move). Let one unit have the weights A_g >= 0 in group g, adding up to
at most S = k W (`sensitivity.py`). When it comes or goes, B_i - q N moves by x - q A_g for some x
between 0 and A_g, and q N - U_i by q A_g - x: both by at most max(q, 1-q) A_g. The maximum of
numbers moves no further than the one that moves most, the ends are public, so D_i moves by at most
max(a, d-a) A_g, and over all groups these add up to at most M = max(a, d-a) S.
Where one unit changes from A to A', B_i - q N moves by (x' - q A'_g) - (x - q A_g), so by at most
max((1-q) A'_g + q A_g, (1-q) A_g + q A'_g). In a single group that is at most S, and M = d S. Over
several groups the two cases can take turns (A in one group, A' in another), and all that is left is
the sum of coming and going: M = 2 max(a, d-a) S.

Theorem 2 (what the draws cost). In group g the log-likelihood ratio of a candidate is
-rate (D'_i - D_i) plus a number that does not depend on i, so it stays within an interval of length
e_g = 2 rate M_g, M_g the group's part of M. Its exponential is 1 on average, so 0 lies within, and
it is at most e_g in size. The groups are drawn independently, so all together cost the sum of the
e_g: epsilon = 2 rate M.
In concentrated privacy a ratio L within an interval of length e costs e**2/8: K(t) = ln E[exp(t L)]
has K(0) = K(1) = 0, and K'' is a variance on an interval of length e, so at most e**2/4. Then
K(t) - e**2 t (t-1)/8 is concave, 0 at 0 and at 1, so at most 0 for t > 1, and the divergence of
order t is K(t)/(t-1) <= t e**2/8. Sums of squares are at most squares of sums, so all groups
together cost at most rho = epsilon**2/8.

Theorem 3 (intervals). All ranks from 0 to N + ends are covered by candidates and T is one of them,
so some D_i is 0, and with n candidates P[D >= t] <= beta for t = ln((n-1)(1-beta)/beta)/rate
(`mechanisms/exponential.py`). Let r be the least integer with d r >= t, and v a quantile: the
weight of values below v is at most q N, that of values up to v at least q N. v lies in bin j, say.
- low: ends (r, r), s = 0. If the candidate drawn lies behind j, then B >= r + q N, as all values up
  to v lie before it, so D >= d r: that has probability at most beta. Its lower edge is at most v.
- high: ends (r, r), s = 2 r. If it lies before j, then U <= r + q N, D >= d r again. Its upper edge
  is at least v.
- min: level 0, ends (0, r), s = r: a bin before the least value has U = 0, D >= r. So the upper
  edge of the bin drawn is at least the minimum with probability 1 - beta; as often the weight below
  its lower edge is less than 2 r, since the rank aimed at lies r inside.
- max: level 1, ends (r, 0), s = 0, the mirror image: T = N, and r lies before the first bin.
Where the ends aim at other levels, q is that of each: a quantile of a lower level lies no higher.
Nothing but the bound itself is below the minimum for certain, since one row may be the minimum: so
the other end of the interval of a minimum or maximum is the bound.

Source   McSherry, Talwar 2007; Smith 2011; bounded range: Cesar, Rogers 2021
Differs  weights of fractional rows, in exact integers; one price for all groups; public ends
Checked  tests/tables/test_ranks.py
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from lastbit.mechanisms import Exponential
from lastbit.tables.measures import Measure
from lastbit.tables.plan.parts import RankPart, Role
from lastbit.tables.query.query import Aggregate

_BETA = Fraction(1, 20)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankDraw:
    """One of the draws that an aggregate takes, before it is priced."""

    role: Role
    share: Fraction
    """Its share of the price of the aggregate."""
    level: Fraction
    beta: Fraction
    """How often its end of the interval may miss; also for `value` of a minimum or maximum."""


def rank_draws(part: Aggregate) -> tuple[RankDraw, ...]:
    """A quantile takes three draws, two fifths of its price for the value; without its interval
    one, as a minimum or maximum does.
    """
    if part.function in ("min", "max"):
        level = Fraction(0 if part.function == "min" else 1)
        return (RankDraw(role="value", share=Fraction(1), level=level, beta=_BETA),)
    if part.function == "cdf":
        return (RankDraw(role="value", share=Fraction(1), level=Fraction(1, 2), beta=_BETA),)
    assert part.level is not None
    if not part.intervals:
        return (RankDraw(role="value", share=Fraction(1), level=part.level, beta=_BETA),)
    low, high = part.ends or (part.level, part.level)
    return (
        RankDraw(role="value", share=Fraction(2, 5), level=part.level, beta=_BETA),
        RankDraw(role="low", share=Fraction(3, 10), level=low, beta=_BETA / 2),
        RankDraw(role="high", share=Fraction(3, 10), level=high, beta=_BETA / 2),
    )


def rank_sensitivity(level: Fraction, total: int, *, change_one: bool, groups: int | None) -> int:
    """How far the distances of all groups together can move: Theorem 1.

    >>> rank_sensitivity(Fraction(9, 10), 1, change_one=False, groups=None)
    9
    >>> [rank_sensitivity(Fraction(9, 10), 1, change_one=True, groups=n) for n in (1, 2)]
    [10, 18]
    """
    a, d = level.numerator, level.denominator
    if not change_one:
        return max(a, d - a) * total
    return d * total if groups == 1 else 2 * max(a, d - a) * total


def rank_accuracy(sensitivity: int, epsilon: Fraction, *, beta: Fraction, candidates: int) -> int:
    """The least whole distance t with P[D >= t] <= beta, or a trace more."""
    pick = Exponential(sensitivity=sensitivity, epsilon=epsilon)
    return max(1, ceil(Fraction(pick.accuracy(beta, candidates=candidates))))


def rank_part(
    aggregate: Aggregate,
    measure: Measure,
    draw: RankDraw,
    *,
    sensitivity: int,
    epsilon: Fraction,
    rho: Fraction | None,
) -> RankPart:
    """The draw with its public ends and the rank it aims at: Theorem 3."""
    bins = len(measure.edges) - 1
    extreme = aggregate.function in ("min", "max")
    ends = 1 if extreme else 2
    inside = 0
    if extreme or draw.role != "value":
        far = rank_accuracy(sensitivity, epsilon, beta=draw.beta, candidates=bins + ends)
        inside = ceil(Fraction(far, draw.level.denominator))
    match aggregate.function, draw.role:
        case "min", _:
            pair, shift = (0, inside), inside
        case "max", _:
            pair, shift = (inside, 0), 0
        case _, "value":
            pair, shift = (0, 0), 0
        case _, "low":
            pair, shift = (inside, inside), 0
        case _:
            pair, shift = (inside, inside), 2 * inside
    return RankPart(
        aggregate=aggregate.name,
        measure=measure.name,
        role=draw.role,
        level=draw.level,
        shift=shift,
        ends=pair,
        candidates=bins + sum(end > 0 for end in pair),
        distance_sensitivity=sensitivity,
        epsilon=epsilon,
        rho=rho,
    )
