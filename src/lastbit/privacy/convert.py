"""What a guarantee implies: another kind, a group, a belief.

Every result is rounded to the safe side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Any, TypeVar, assert_never

from flint import arb

from lastbit.errors import IncompatibleGuarantees, InvalidParameter, WrongType
from lastbit.exact import (
    arb_of,
    lower,
    nearest,
    nonnegative,
    probability,
    rational,
    upper,
    working_precision,
)
from lastbit.privacy.guarantees import (
    ZCDP,
    ApproxDP,
    Guarantee,
    Loss,
    MetricDP,
    ProbabilisticDP,
    PureDP,
    RenyiDP,
    times,
)

Kind = TypeVar("Kind")
PRECISION = 160
PARAMETERS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "ApproxDP": frozenset({"epsilon", "delta"}),
        "RenyiDP": frozenset({"alpha"}),
        "PureDP": frozenset({"distance"}),
    }
)


def converted(guarantee: Guarantee, kind: type[Kind], **parameters: object) -> Kind:
    """The same promise as another kind; see `Guarantee.to`.

    | from | to | parameters | rule |
    |---|---|---|---|
    | pure | approximate, probabilistic | none: delta = 0 | definition |
    | pure | approximate | `epsilon=` or `delta=` | randomised response is the worst case |
    | pure | concentrated | | rho = epsilon tanh(epsilon/2): `concentrated` |
    | pure | Renyi | `alpha=` | randomised response is the worst case: `renyi_divergence` |
    | concentrated | Renyi | `alpha=` | alpha * rho |
    | approximate | approximate | `epsilon=` or `delta=` | sharpens paper 003 Prop. 9 |
    | probabilistic | approximate | | paper 003 Prop. 5 |
    | concentrated, Renyi | approximate | `delta=` or `epsilon=` | CKS20 Prop. 12, best order |
    | metric | pure | `distance=` | its own slack included |

    >>> converted(PureDP(1), ZCDP)
    ZCDP(rho=0.4621171572600098)
    """
    if not isinstance(kind, type):
        raise WrongType("kind", problem="is not a kind of guarantee", remedy="pass, say, ApproxDP")
    unknown = set(parameters) - PARAMETERS.get(kind.__name__, frozenset())
    if unknown:
        raise InvalidParameter(
            min(unknown), problem="has no meaning in this conversion", remedy="leave it out"
        )
    match guarantee, kind.__name__:
        case ((PureDP() | ZCDP()), "RenyiDP"):
            return _renyi(guarantee, **parameters)  # type: ignore[return-value]
        case MetricDP(), "PureDP" if not parameters:
            raise InvalidParameter(
                "distance", problem="is needed", remedy="pass distance=, how far apart inputs are"
            )
        case MetricDP(), "PureDP":
            return guarantee.at(**parameters)  # type: ignore[return-value]
        case _, "ApproxDP" if parameters and not isinstance(guarantee, MetricDP):
            return _approximate(guarantee, **parameters)  # type: ignore[return-value]
        case _ if parameters:
            names = ", ".join(parameters)
            raise InvalidParameter(
                names, problem="has no meaning in this conversion", remedy="leave it out"
            )
        case _ if isinstance(guarantee, kind):
            return guarantee
        case PureDP(), "ApproxDP" | "ProbabilisticDP":
            return kind(guarantee.epsilon, Fraction(0), neighbours=guarantee.neighbours)  # type: ignore[call-arg]
        case PureDP(), "ZCDP":
            return kind(concentrated(guarantee.epsilon), neighbours=guarantee.neighbours)  # type: ignore[call-arg]
        case ProbabilisticDP(), "ApproxDP":
            return guarantee.post_processed()  # type: ignore[return-value]
        case ((ZCDP() | RenyiDP()), "ApproxDP"):
            raise InvalidParameter(
                "delta",
                problem="or epsilon is needed",
                remedy="pass {delta} or {epsilon}",
                delta="",
                epsilon="",
            )
    raise IncompatibleGuarantees(
        f"{type(guarantee).__name__} does not convert to {kind.__name__}; "
        "convert both sides to ApproxDP, the weakest common kind"
    )


def _renyi(guarantee: PureDP | ZCDP, alpha: object = None) -> RenyiDP:
    if alpha is None:
        raise InvalidParameter("alpha", problem="is needed", remedy="pass alpha=, an order above 1")
    order = rational(alpha, "alpha")
    if isinstance(guarantee, ZCDP):
        loss = times(order, guarantee.rho)
        return RenyiDP(order, loss, neighbours=guarantee.neighbours)
    return RenyiDP(
        order, renyi_divergence(guarantee.epsilon, order), neighbours=guarantee.neighbours
    )


def concentrated(epsilon: Loss) -> Loss:
    """The rho of a pure epsilon, rounded up.

    Law      rho = epsilon tanh(epsilon/2), which is below epsilon**2/2 and below epsilon
    Theorem  the divergence of order a is at most that of randomised response, D(a) =
             ln(cosh((a-1/2) epsilon)/cosh(epsilon/2))/(a-1). With v = (a-1/2)**2, so that
             a (a-1) = v - 1/4, and G(v) = ln cosh(epsilon sqrt(v)): D(a)/a =
             (G(v) - G(1/4))/(v - 1/4). G'(v) = epsilon**2/2 tanh(x)/x, x = epsilon sqrt(v), falls
             as tanh(x)/x does: G is concave, and its slopes from 1/4 on are greatest in the limit
             v -> 1/4: G'(1/4) = epsilon tanh(epsilon/2). So D(a) <= a rho for all a > 1, and no
             smaller rho will do
    Source   Bun, Steinke 2016, Proposition 14: epsilon**2/2
    Differs  the exact supremum, 7.6 % less at epsilon = 1 and 40 % less at 3
    Checked  tests/privacy/test_convert.py
    """
    square = times(epsilon, epsilon) / 2
    if isinstance(epsilon, float):
        return square
    with working_precision(PRECISION):
        return min(epsilon, square, _at_least_zero(arb_of(epsilon) * arb_of(epsilon / 2).tanh()))


def renyi_divergence(epsilon: Loss, order: Fraction) -> Loss:
    """The divergence of an order above 1 that a pure epsilon allows, rounded up.

    Law      ln(cosh((a-1/2) epsilon)/cosh(epsilon/2))/(a-1)
    Theorem  that of randomised response, of which every pure mechanism is a function. cosh x -
             cosh y = 2 sinh((x+y)/2) sinh((x-y)/2) avoids the difference of nearly equal numbers,
             and where exp(a epsilon) is huge, epsilon + (ln(1 + exp((1-2a) epsilon)) -
             ln(1 + exp(-epsilon)))/(a-1) the huge numbers
    Checked  tests/privacy/test_convert.py
    """
    if isinstance(epsilon, float) or epsilon == 0:
        return epsilon
    with working_precision(PRECISION):
        loss, beyond = arb_of(epsilon), arb_of(order - 1)
        if order * epsilon < 100:
            odds = 2 * arb_of(order * epsilon / 2).sinh() * arb_of((order - 1) * epsilon / 2).sinh()
            exact = (odds / (loss / 2).cosh()).log1p() / beyond
        else:
            far = arb_of((1 - 2 * order) * epsilon)
            exact = loss + (far.exp().log1p() - (-loss).exp().log1p()) / beyond
        least = min(epsilon, times(order, concentrated(epsilon)))
        return min(least, _at_least_zero(exact))


def _approximate(guarantee: Guarantee, *, epsilon: object = None, delta: object = None) -> ApproxDP:
    if (epsilon is None) == (delta is None):
        raise InvalidParameter(
            "delta",
            problem="or epsilon, exactly one, is needed",
            remedy="pass {delta} or {epsilon}",
            delta="",
            epsilon="",
        )
    if delta is not None:
        level = rational(delta, "delta")
        return ApproxDP(epsilon_upper(guarantee, level), level, neighbours=guarantee.neighbours)
    loss = rational(epsilon, "epsilon")
    return ApproxDP(loss, delta_upper(guarantee, loss), neighbours=guarantee.neighbours)


def delta_upper(guarantee: Guarantee, epsilon: Fraction) -> Fraction:
    """The least delta known for this epsilon, rounded up.

    Theorem  Pure epsilon0 is dominated by randomised response, so delta =
             (e**epsilon0 - e**epsilon)/(1 + e**epsilon0), exactly. Approximate (epsilon0, delta0):
             delta0 + (1 - delta0) times that (Kairouz, Oh, Viswanath 2015). Both are below paper
             003 Prop. 9. Renyi of order a: exp((a-1)(loss - epsilon))/(a-1) (1-1/a)**a for every
             a, and the best of all orders for a concentrated guarantee (CKS20 Prop. 12)
    Checked  tests/privacy/test_convert.py
    """
    nonnegative(epsilon, "epsilon")
    match guarantee:
        case PureDP():
            return _worst_case(guarantee.epsilon, Fraction(0), epsilon)
        case ApproxDP() | ProbabilisticDP():
            return _worst_case(guarantee.epsilon, guarantee.delta, epsilon)
        case RenyiDP():
            return _capped(_renyi_delta(guarantee.alpha, guarantee.epsilon, epsilon))
        case ZCDP():
            return _concentrated_delta(guarantee.rho, epsilon)
    raise IncompatibleGuarantees("metric privacy has no delta; take at(distance) first")


def epsilon_upper(guarantee: Guarantee, delta: Fraction) -> Loss:
    """The least epsilon known for this delta, rounded up; the inverse of `delta_upper`."""
    probability(delta, "delta")
    match guarantee:
        case PureDP():
            return _worst_case_epsilon(guarantee.epsilon, Fraction(0), delta)
        case ApproxDP() | ProbabilisticDP():
            return _worst_case_epsilon(guarantee.epsilon, guarantee.delta, delta)
        case RenyiDP():
            return _renyi_epsilon(guarantee.alpha, guarantee.epsilon, delta)
        case ZCDP():
            return _concentrated_epsilon(guarantee.rho, delta)
    raise IncompatibleGuarantees("metric privacy has no delta; take at(distance) first")


# -- pure and approximate: randomised response is the worst case --


def _worst_case(epsilon0: Loss, delta0: Fraction, epsilon: Fraction) -> Fraction:
    if epsilon >= epsilon0:
        return delta0
    if isinstance(epsilon0, float):
        return Fraction(1)
    with working_precision(PRECISION):
        # (e**a - e**b)/(1 + e**a) without large numbers: (1 - e**(b-a))/(1 + e**-a)
        share = -arb_of(epsilon - epsilon0).expm1() / (1 + (-arb_of(epsilon0)).exp())
        return _capped(arb_of(delta0) + arb_of(1 - delta0) * share)


def _worst_case_epsilon(epsilon0: Loss, delta0: Fraction, delta: Fraction) -> Loss:
    if delta < delta0:
        return math.inf
    if delta == 1:
        return Fraction(0)
    if delta == delta0 or isinstance(epsilon0, float):
        return epsilon0
    share = (delta - delta0) / (1 - delta0)
    with working_precision(PRECISION):
        # e**epsilon = e**epsilon0 (1 - lost), lost = share (1 + e**-epsilon0)
        change = (-(arb_of(share) * (1 + (-arb_of(epsilon0)).exp()))).upper()
        if not change > -1:
            return Fraction(0)
        return min(_at_least_zero(arb_of(epsilon0) + change.log1p()), epsilon0)


# -- Renyi and concentrated: Canonne, Kamath, Steinke 2020, Proposition 12 --


def _renyi_delta(alpha: Fraction, loss: Loss, epsilon: Fraction) -> arb:
    """exp((a-1)(loss - epsilon))/(a-1) * (1-1/a)**a, at the order a <= alpha where it is least.

    The divergence grows with the order, so what holds at alpha holds at every smaller order.
    """
    if isinstance(loss, float):
        return arb(1)
    if loss > epsilon:
        alpha = min(alpha, 1 + _guess(lambda: 1 / math.expm1(nearest(loss - epsilon))))
    with working_precision(PRECISION):
        order = arb_of(alpha)
        exponent = arb_of((alpha - 1) * (loss - epsilon)) - order * (1 / arb_of(alpha - 1)).log1p()
        return exponent.exp() / arb_of(alpha - 1)


def _renyi_epsilon(alpha: Fraction, loss: Loss, delta: Fraction) -> Loss:
    """Loss + (ln(1/(delta (a-1))) + a ln(1-1/a))/(a-1), at the order a <= alpha where it is least.

    That order is 1/delta, if alpha reaches it.
    """
    if delta == 0 or isinstance(loss, float):
        return math.inf
    if delta == 1:
        return Fraction(0)
    alpha = min(alpha, 1 / delta)
    with working_precision(PRECISION):
        order = arb_of(alpha)
        ratio = -order * (1 / arb_of(alpha - 1)).log1p() - arb_of(delta * (alpha - 1)).log()
        return _at_least_zero(arb_of(loss) + ratio / arb_of(alpha - 1))


def _concentrated_delta(rho: Loss, epsilon: Fraction) -> Fraction:
    if rho == 0:
        return Fraction(0)
    if isinstance(rho, float):
        return Fraction(1)
    order = best_order_for_epsilon(rho, epsilon)
    return _capped(_renyi_delta(order, order * rho, epsilon))


def _concentrated_epsilon(rho: Loss, delta: Fraction) -> Loss:
    if rho == 0 or delta == 1:
        return Fraction(0)
    if delta == 0 or isinstance(rho, float):
        return math.inf
    order = best_order_for_delta(rho, delta)
    return _renyi_epsilon(order, order * rho, delta)


def best_order_for_epsilon(rho: Fraction, epsilon: Fraction) -> Fraction:
    """About the order 1 + x whose divergence proves the least delta at this epsilon.

    Theorem  there (1 + 2x) rho - ln(1 + 1/x) = epsilon. Every order proves a true bound, the best
             one a tight one, so floats may be careless
    """
    density, loss = nearest(rho), nearest(epsilon)
    return 1 + _root(lambda x: (1 + 2 * x) * density - math.log1p(1 / x) - loss)


def best_order_for_delta(rho: Fraction, delta: Fraction) -> Fraction:
    """About the order 1 + x whose divergence proves the least epsilon at this delta.

    Theorem  there rho x**2 + ln(1 + x) = ln(1/delta); floats may be careless here too
    """
    density = nearest(rho)
    need = math.log(delta.denominator) - math.log(delta.numerator)
    return 1 + _root(lambda x: density * x * x + math.log1p(x) - need)


def _root(increasing: Callable[[float], float]) -> Fraction:
    """Where an increasing function of a positive number passes 0, nearly."""
    low, high = -700.0, 700.0
    for _ in range(80):
        middle = (low + high) / 2
        try:
            below = increasing(math.exp(middle)) < 0
        except OverflowError:
            below = False
        low, high = (middle, high) if below else (low, middle)
    return Fraction(math.exp((low + high) / 2))


def _guess(number: Callable[[], float]) -> Fraction:
    """A rational near a positive float expression; its range ends are as good as what is beyond."""
    try:
        value = number()
    except (OverflowError, ZeroDivisionError):
        value = 1e-300
    return Fraction(min(max(value, 1e-300), 1e300))


def _capped(ball: arb) -> Fraction:
    bound = upper(ball) if ball.is_finite() else 1.0
    return Fraction(min(max(bound, 0.0), 1.0))


def _at_least_zero(ball: arb) -> Loss:
    bound = upper(ball)
    return math.inf if bound == math.inf else Fraction(max(bound, 0.0))


def implies(one: Guarantee, other: Guarantee) -> bool:
    """Whether one guarantee proves another by the rules of this file, and nothing is rounded away.

    >>> implies(PureDP(1), ApproxDP("0.9", "0.1")), implies(ApproxDP(1, "1e-6"), PureDP(9))
    (True, False)
    """
    if not isinstance(other, Guarantee):
        raise WrongType("other", problem="is not a guarantee", remedy="pass, say, PureDP(1)")
    if one.neighbours != other.neighbours:
        return False
    if isinstance(other, MetricDP) or isinstance(one, MetricDP):
        return _metric_implies(one, other)
    match other:
        case ApproxDP():
            if isinstance(other.epsilon, float) or other.delta == 1:
                return True
            return delta_upper(one, other.epsilon) <= other.delta
        case PureDP():
            return isinstance(one, PureDP) and one.epsilon <= other.epsilon
        case ProbabilisticDP():
            if not isinstance(one, PureDP | ProbabilisticDP):
                return False
            delta = one.delta if isinstance(one, ProbabilisticDP) else 0
            return one.epsilon <= other.epsilon and delta <= other.delta
        case ZCDP():
            strong = one.to(ZCDP) if isinstance(one, PureDP) else one
            return isinstance(strong, ZCDP) and strong.rho <= other.rho
        case RenyiDP():
            return _renyi_implies(one, other)


def _metric_implies(one: Any, other: Any) -> bool:
    """Two losses that are straight lines in the distance: compared at both ends of (0, infinity).

    r1 (d + s1) <= r2 (d + s2) for all d > 0 iff r1 <= r2 and r1 s1 <= r2 s2.
    """
    if not isinstance(one, MetricDP) or not isinstance(other, MetricDP):
        return False
    if one.unit != other.unit:
        return False
    if isinstance(one.epsilon, float) or isinstance(other.epsilon, float):
        return isinstance(other.epsilon, float)
    mine, yours = one.epsilon / one.per, other.epsilon / other.per
    return mine <= yours and mine * one.slack <= yours * other.slack


def _renyi_implies(one: Guarantee, other: RenyiDP) -> bool:
    """The divergence grows with the order: a larger order proves a smaller one."""
    if isinstance(one, RenyiDP):
        return one.alpha >= other.alpha and one.epsilon <= other.epsilon
    if not isinstance(one, PureDP | ZCDP):
        return False
    return _renyi(one, other.alpha).epsilon <= other.epsilon


def grouped(guarantee: Guarantee, size: int) -> Guarantee:
    """What one unit's guarantee promises to `size` units together.

    Law      pure: k epsilon. Approximate: (k epsilon, delta (e**(k epsilon) - 1)/(e**epsilon - 1)).
             Concentrated: k**2 rho. Metric: k epsilon, for k units that move by d each
    Theorem  go from x to y in k steps, one unit each, and apply the guarantee to every step
    Source   paper 003 Propositions 1 and 6, equation (28); Bun, Steinke 2016 Proposition 27
    Differs  probabilistic becomes approximate: the bad sets of the steps belong to different laws,
             and only the approximate inequality chains. Renyi of one order has no group rule here
    Checked  tests/privacy/test_group.py

    >>> grouped(PureDP("1/2"), 3)
    PureDP(epsilon='1.5')
    """
    match guarantee:
        case PureDP():
            return PureDP(times(Fraction(size), guarantee.epsilon), neighbours=guarantee.neighbours)
        case ApproxDP():
            return _grouped_approximate(guarantee, size)
        case ProbabilisticDP():
            return _grouped_approximate(guarantee.post_processed(), size)
        case ZCDP():
            return ZCDP(
                times(Fraction(size * size), guarantee.rho), neighbours=guarantee.neighbours
            )
        case MetricDP():
            return MetricDP(
                times(Fraction(size), guarantee.epsilon),
                guarantee.per,
                guarantee.unit,
                slack=guarantee.slack,
                neighbours=guarantee.neighbours,
            )
        case RenyiDP():
            raise IncompatibleGuarantees(
                "a Renyi guarantee of one order has no group rule; start from ZCDP or PureDP"
            )
        case _:
            assert_never(guarantee)


def _grouped_approximate(guarantee: ApproxDP, size: int) -> ApproxDP:
    epsilon, delta = guarantee.epsilon, guarantee.delta
    total = times(Fraction(size), epsilon)
    if size == 1 or delta == 0:
        return ApproxDP(total, delta, neighbours=guarantee.neighbours)
    if epsilon == 0:
        grown = size * delta
    elif isinstance(epsilon, float) or epsilon * size > 1000:
        grown = Fraction(1)  # exp(1000) delta: nothing is left, and the ball could be huge
    else:
        grown = _grown_delta(delta, epsilon, size)
    return ApproxDP(total, min(grown, Fraction(1)), neighbours=guarantee.neighbours)


def _grown_delta(delta: Fraction, epsilon: Fraction, size: int) -> Fraction:
    with working_precision(128):
        one, many = arb_of(epsilon).expm1(), arb_of(epsilon * size).expm1()
        bound = upper(arb_of(delta) * many / one)
    return Fraction(bound) if bound < math.inf else Fraction(1)


def posterior_bounds(prior: object, guarantee: PureDP) -> tuple[float, float]:
    """Between which probabilities a belief lies after one release, if it was `prior` before.

    Law      p / (e + (1-e) p) and e p / (1 + (e-1) p), e = exp(epsilon)
    Theorem  Bayes' rule with a likelihood ratio between exp(-epsilon) and exp(epsilon)
    Source   paper 003 equation (5)
    Differs  the lower bound is rounded down, the upper one up
    Checked  tests/privacy/test_posterior.py

    >>> posterior_bounds("1/2", PureDP(0))
    (0.5, 0.5)
    >>> posterior_bounds("0.01", PureDP(1))
    (0.003702..., 0.026723...)
    """
    p = probability(prior, "prior")
    if not isinstance(guarantee, PureDP):
        raise InvalidParameter(
            "guarantee", problem="is not pure", remedy="the bound holds for PureDP only"
        )
    if p in (0, 1) or guarantee.epsilon == 0:
        return lower(p), upper(p)
    if not isinstance(guarantee.epsilon, Fraction):
        return 0.0, 1.0
    with working_precision(160):
        shrink = (-arb_of(guarantee.epsilon)).exp()
        mine, rest = arb_of(p), arb_of(1 - p)
        return (
            max(lower(mine * shrink / (rest + mine * shrink)), 0.0),
            min(upper(mine / (mine + rest * shrink)), 1.0),
        )
