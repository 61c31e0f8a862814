"""The true value of every privacy number, in Decimals of 120 digits: no flint, none of our code.

`judge` is the one who says whether a claimed number is safe (not on the wrong side of the truth)
and tight (not far on the safe side).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

DIGITS = 120
# What the Decimals themselves may be off by, relatively: cancellation eats some of the digits.
MARGIN = Decimal(10) ** -60
LEAST_FLOAT = Decimal(2) ** -1074
TIGHT = Decimal(2) ** -40

Law = dict[Any, Decimal]
Number = Fraction | int | float


@contextmanager
def decimals(digits: int = DIGITS) -> Iterator[None]:
    """Compute with so many digits inside the block; more where tiny numbers are subtracted."""
    with localcontext() as context:
        context.prec = digits
        context.Emin, context.Emax = -(10**15), 10**15
        yield


def decimal(number: Number) -> Decimal:
    if isinstance(number, float):
        return Decimal(number)
    exact = Fraction(number)
    return Decimal(exact.numerator) / Decimal(exact.denominator)


def exp(number: Number) -> Decimal:
    return decimal(number).exp()


# ---------------------------------------------------------------- the judge


class Refused(AssertionError):
    """A number that promises more than is true, or much less."""


def judge(
    claim: Fraction | float, truth: Decimal, *, side: str = "upper", tight: Decimal = TIGHT
) -> None:
    """Refuse an upper bound below the truth, a lower bound above it, and a loose one of either."""
    number = decimal(claim)
    slack = abs(truth) * MARGIN
    distance = number - truth if side == "upper" else truth - number
    if distance < -slack:
        raise Refused(f"the {side} bound {number:.25g} is on the wrong side of {truth:.25g}")
    if distance > abs(truth) * tight + LEAST_FLOAT:
        raise Refused(f"the {side} bound {number:.25g} is loose: the truth is {truth:.25g}")


# ---------------------------------------------------------------- laws of finite mechanisms


def hockey_stick(one: Law, other: Law, epsilon: Decimal) -> Decimal:
    """The least delta for this pair and this epsilon: the sum of max(0, p - exp(epsilon) q)."""
    factor = epsilon.exp()
    zero = Decimal(0)
    return sum((max(p - factor * other.get(x, zero), zero) for x, p in one.items()), zero)


def worst_pair(epsilon: Number, delta: Number = 0) -> tuple[Law, Law]:
    """Reveal all with probability delta, else randomised response: outcomes 0, 1 and 2, 3."""
    yes, kept = 1 / (1 + exp(-epsilon)), 1 - decimal(delta)
    no = exp(-epsilon) / (1 + exp(-epsilon))
    one = {(0,): decimal(delta), (1,): kept * yes, (2,): kept * no, (3,): Decimal(0)}
    other = {(0,): Decimal(0), (1,): kept * no, (2,): kept * yes, (3,): decimal(delta)}
    return one, other


def product(laws: Sequence[Law]) -> Law:
    """The joint law of independent outcomes, all of them enumerated."""
    joint = {}
    for outcomes in itertools.product(*(law.items() for law in laws)):
        key = tuple(itertools.chain.from_iterable(key for key, _ in outcomes))
        joint[key] = math.prod((p for _, p in outcomes), start=Decimal(1))
    return joint


def composed_delta(parts: Sequence[tuple[Fraction, Fraction]], epsilon: Decimal) -> Decimal:
    """By brute force: the hockey-stick divergence of the product of the worst pairs."""
    pairs = [worst_pair(e, d) for e, d in parts]
    return hockey_stick(product([p for p, _ in pairs]), product([q for _, q in pairs]), epsilon)


# ---------------------------------------------------------------- closed formulas


def pure_delta(epsilon0: Number, delta0: Number, epsilon: Number) -> Decimal:
    """What (epsilon0, delta0) leaves at a smaller epsilon, from the laws of the worst pair."""
    one, other = worst_pair(epsilon0, delta0)
    return hockey_stick(one, other, decimal(epsilon))


def pure_epsilon(epsilon0: Number, delta0: Number, delta: Number) -> Decimal:
    share = decimal((Fraction(delta) - delta0) / (1 - Fraction(delta0)))
    odds = exp(epsilon0) - share * (1 + exp(epsilon0))
    return max(odds.ln(), Decimal(0)) if odds > 0 else Decimal(0)


def renyi_delta(alpha: Decimal, loss: Decimal, epsilon: Decimal) -> Decimal:
    return _delta_at(alpha - 1, loss, epsilon)


def renyi_epsilon(alpha: Decimal, loss: Decimal, delta: Decimal) -> Decimal:
    return _epsilon_at(alpha - 1, loss, delta)


def _delta_at(x: Decimal, loss: Decimal, epsilon: Decimal) -> Decimal:
    """At the order 1 + x, where x may be far too small to be seen beside 1."""
    return min((x * (loss - epsilon) + x * x.ln() - (1 + x) * (1 + x).ln()).exp(), Decimal(1))


def _epsilon_at(x: Decimal, loss: Decimal, delta: Decimal) -> Decimal:
    return max(loss + (x * x.ln() - (1 + x) * (1 + x).ln() - delta.ln()) / x, Decimal(0))


def up_to_order_delta(alpha: Number, loss: Number, epsilon: Number) -> Decimal:
    """The best of all orders up to alpha: a divergence bounds those of smaller orders.

    The derivative of the logarithm vanishes where 1/order = 1 - exp(epsilon - loss).
    """
    order = decimal(alpha)
    if loss > epsilon:
        order = min(order, 1 / (1 - exp(Fraction(epsilon) - loss)))
    return renyi_delta(order, decimal(loss), decimal(epsilon))


def up_to_order_epsilon(alpha: Number, loss: Number, delta: Number) -> Decimal:
    """The best of all orders up to alpha; beyond order 1/delta nothing is gained."""
    order = min(Fraction(alpha), 1 / Fraction(delta))
    return renyi_epsilon(decimal(order), decimal(loss), decimal(delta))


def concentrated(epsilon: Number) -> Decimal:
    """epsilon tanh(epsilon/2)."""
    loss = decimal(epsilon)
    with localcontext() as context:
        context.prec += 2 * max(0, -loss.adjusted())  # 1 - exp(-epsilon) keeps its digits
        shrink = (-loss).exp()
        return loss * (1 - shrink) / (1 + shrink)


def pure_divergence(epsilon: Number, alpha: Number) -> Decimal:
    """That of randomised response, from its two probabilities."""
    loss, order = decimal(epsilon), decimal(alpha)
    with localcontext() as context:
        context.prec += 2 * max(0, -loss.adjusted()) + max(0, -(order - 1).adjusted())
        shrink, far = (-loss).exp(), ((1 - 2 * order) * loss).exp()
        return loss + ((1 + far).ln() - (1 + shrink).ln()) / (order - 1)


def concentrated_epsilon(rho: Number, delta: Number) -> Decimal:
    """The infimum over all orders; its derivative is rho + (ln(alpha) - ln(1/delta))/(alpha-1)**2.

    So the best order is the one root of rho x**2 + ln(1+x) = ln(1/delta), x = alpha - 1.
    """
    density, need = decimal(rho), -decimal(delta).ln()
    x = _root(lambda x: density * x * x + (1 + x).ln() - need)
    return _epsilon_at(x, (1 + x) * density, decimal(delta))


def concentrated_delta(rho: Number, epsilon: Number) -> Decimal:
    """The infimum over all orders: the root of (1 + 2x) rho - epsilon + ln(x/(1+x))."""
    density, loss = decimal(rho), decimal(epsilon)
    x = _root(lambda x: (1 + 2 * x) * density - loss + (x / (1 + x)).ln())
    return _delta_at(x, (1 + x) * density, loss)


def _root(rising: Callable[[Decimal], Decimal]) -> Decimal:
    """Where an increasing function of x > 0 crosses zero, to 25 digits and more."""
    low, high = Decimal(-20_000), Decimal(2_000)
    with localcontext() as context:
        context.prec = 60
        for _ in range(100):
            middle = (low + high) / 2
            if rising(middle.exp()) < 0:
                low = middle
            else:
                high = middle
        return ((low + high) / 2).exp()


def group_delta(epsilon: Number, delta: Number, size: int) -> Decimal:
    """Equation (28) as the geometric sum it comes from."""
    steps = (exp(epsilon * j) for j in range(size))
    return min(decimal(delta) * sum(steps, Decimal(0)), Decimal(1))


def posterior(prior: Number, epsilon: Number) -> tuple[Decimal, Decimal]:
    """Equation (5), as printed."""
    p, e = decimal(prior), exp(epsilon)
    return p / (e + (1 - e) * p), e * p / (1 + (e - 1) * p)


def advanced_epsilon(epsilons: Sequence[Fraction], slack: Fraction) -> Decimal:
    """Dwork, Rothblum, Vadhan 2010, for losses that differ."""
    squares = decimal(sum((e * e for e in epsilons), Fraction(0)))
    drift = sum((decimal(e) * (exp(e) - 1) for e in epsilons), Decimal(0))
    return (-2 * decimal(slack).ln() * squares).sqrt() + drift


def kov_delta(epsilon: Fraction, delta: Fraction, count: int, step: int) -> Decimal:
    """Kairouz, Oh, Viswanath 2015: the delta of `count` releases at (count - 2 step) epsilon."""
    bottom = (1 + exp(epsilon)) ** count
    top = sum(
        (
            math.comb(count, j)
            * (exp((count - j) * epsilon) - exp((count - 2 * step + j) * epsilon))
            for j in range(step)
        ),
        Decimal(0),
    )
    return 1 - decimal(1 - delta) ** count * (1 - top / bottom)
