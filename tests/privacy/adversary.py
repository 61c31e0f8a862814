"""An adversary who chooses each next mechanism from the answers so far, against a stopping rule.

Everything is enumerated: a mechanism is a short list of outcomes with its probabilities on two
neighbours, in Decimals of 120 digits. A rule says of a multiset of mechanisms whether it may be
spent; the adversary asks `MOST` times at most. `worst_delta` is the greatest delta of *all*
adaptive strategies on a menu, by backward induction: delta(epsilon) is the expectation of
(1 - exp(epsilon) Q/P)_+ under P, so what is best after some answers depends on their likelihood
ratio and on what was used, and on nothing else.
`tree_delta` multiplies out one strategy that may look at the whole history.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache

from tests.privacy.truth import decimal, exp, hockey_stick, worst_pair

ZERO, ONE = Decimal(0), Decimal(1)
MOST = 6
"""So many answers at most, so that trees stay small; menus are made to use up a budget sooner."""


@dataclass(frozen=True)
class Step:
    """A mechanism on two neighbours, and the promise that it is charged for."""

    epsilon: Fraction
    delta: Fraction
    rho: Fraction
    outcomes: tuple[tuple[Decimal, Decimal], ...]

    def turned(self) -> Step:
        """The same mechanism on the neighbours in the other order."""
        return Step(self.epsilon, self.delta, self.rho, tuple((q, p) for p, q in self.outcomes))


Rule = Callable[[Sequence[tuple[Step, int]]], bool]


def response(epsilon: Fraction, delta: Fraction = Fraction(0)) -> Step:
    """Reveal all with probability delta, else randomised response."""
    one, other = worst_pair(epsilon, delta)
    pairs = ((one[key], other[key]) for key in one)
    return Step(epsilon, delta, Fraction(0), tuple(pair for pair in pairs if any(pair)))


def gaussian(rho: Fraction, cut: int = 0) -> Step:
    """A discrete Gaussian of variance 1/(2 rho) at 1 or at 0, seen in three cells."""
    masses = _gaussian(rho)
    cells = []
    for low, high in ((-(10**9), -cut), (1 - cut, cut), (1 + cut, 10**9)):
        inside = [(k, mass) for k, mass in masses if low <= k <= high]
        there = sum((mass for k, mass in masses if low <= k + 1 <= high), ZERO)
        cells.append((there, sum((mass for _, mass in inside), ZERO)))
    return Step(Fraction(0), Fraction(0), rho, tuple(cell for cell in cells if any(cell)))


@cache
def _gaussian(rho: Fraction) -> list[tuple[int, Decimal]]:
    reach = 3 + int(20 / float(2 * rho) ** 0.5)  # what lies beyond is below exp(-200)
    weights = [(k, exp(-rho * k * k)) for k in range(-reach, reach + 1)]
    whole = sum((weight for _, weight in weights), ZERO)
    return [(k, weight / whole) for k, weight in weights]


def worst_delta(rule: Rule, menu: Sequence[Step], epsilon: Fraction) -> Decimal:
    """The greatest delta(epsilon) of a strategy on this menu, neighbours in this order."""
    factor = exp(epsilon)

    def stopped(ratio: Decimal, used: tuple[int, ...]) -> Decimal:
        return max(ONE - factor * ratio, ZERO)

    return _best(rule, menu, stopped)


def worst_excess(
    rule: Rule, menu: Sequence[Step], bound: Callable[[tuple[int, ...]], Fraction]
) -> Decimal:
    """The greatest probability, over strategies, that the loss ever exceeds a bound on it."""

    def exceeded(ratio: Decimal, used: tuple[int, ...]) -> Decimal:
        return ONE if ratio * exp(bound(used)) < 1 - Decimal(10) ** -40 else ZERO

    return _best(rule, menu, exceeded, ends_at=ONE)


def _best(
    rule: Rule,
    menu: Sequence[Step],
    stopped: Callable[[Decimal, tuple[int, ...]], Decimal],
    ends_at: Decimal | None = None,
) -> Decimal:
    @cache
    def allowed(used: tuple[int, ...]) -> bool:
        return sum(used) <= MOST and rule(list(zip(menu, used, strict=True)))

    ratios = [[q / p if p else None for p, q in step.outcomes] for step in menu]

    @cache
    def value(seen: tuple[tuple[int, ...], ...]) -> Decimal:
        ratio = ONE
        for counts, factors in zip(seen, ratios, strict=True):
            for count, factor in zip(counts, factors, strict=True):
                if count:
                    assert factor is not None
                    ratio *= factor**count
        used = tuple(sum(counts) for counts in seen)
        best = stopped(ratio, used)
        if best == ends_at:
            return best
        for i, step in enumerate(menu):
            if allowed((*used[:i], used[i] + 1, *used[i + 1 :])):
                best = max(best, sum(_parts(seen, i, step), ZERO))
        return best

    def _parts(seen: tuple[tuple[int, ...], ...], i: int, step: Step) -> Iterator[Decimal]:
        for j, (p, q) in enumerate(step.outcomes):
            if p and not q:
                yield p  # an infinite loss: nothing can undo it
            elif p:
                counts = seen[i]
                more = (*counts[:j], counts[j] + 1, *counts[j + 1 :])
                yield p * value((*seen[:i], more, *seen[i + 1 :]))

    return value(tuple((0,) * len(step.outcomes) for step in menu))


def tree_delta(
    rule: Rule, menu: Sequence[Step], epsilon: Fraction, choices: random.Random
) -> tuple[Decimal, Decimal]:
    """The two delta(epsilon) of a strategy that draws its next step after every history at random.

    It goes on as long as anything is allowed, 4 times at most, but now and then stops early.
    """

    @cache
    def allowed(used: tuple[int, ...]) -> bool:
        return sum(used) <= 4 and rule(list(zip(menu, used, strict=True)))

    here: dict[tuple[int, ...], Decimal] = {}
    there: dict[tuple[int, ...], Decimal] = {}

    def grow(history: tuple[int, ...], used: tuple[int, ...], p: Decimal, q: Decimal) -> None:
        more = [(*used[:i], used[i] + 1, *used[i + 1 :]) for i in range(len(menu))]
        open_ = [i for i, next_ in enumerate(more) if allowed(next_)]
        if not open_ or not (p and q) or choices.random() < 0.05:
            here[history], there[history] = p, q
            return
        i = choices.choice(open_)
        for j, (a, b) in enumerate(menu[i].outcomes):
            grow((*history, i, j), more[i], p * a, q * b)

    grow((), (0,) * len(menu), ONE, ONE)
    loss = decimal(epsilon)
    return hockey_stick(here, there, loss), hockey_stick(there, here, loss)


def composed_delta_of(steps: Sequence[tuple[Step, int]], epsilon: Fraction) -> Decimal:
    """The delta of these mechanisms if they were fixed beforehand; the larger of both orders."""
    return max(
        _composed(tuple(steps), epsilon),
        _composed(tuple((step.turned(), count) for step, count in steps), epsilon),
    )


@cache
def _composed(steps: tuple[tuple[Step, int], ...], epsilon: Fraction) -> Decimal:
    masses: dict[Decimal, Decimal] = {ONE: ONE}
    lost = ZERO
    for step, count in steps:
        for _ in range(count):
            grown: dict[Decimal, Decimal] = {}
            for ratio, mass in masses.items():
                for p, q in step.outcomes:
                    if p and not q:
                        lost += mass * p
                    elif p:
                        key = ratio * q / p
                        grown[key] = grown.get(key, ZERO) + mass * p
            masses = grown
    factor = exp(epsilon)
    return lost + sum((m * max(ONE - factor * r, ZERO) for r, m in masses.items()), ZERO)


def largest(holds: Callable[[Fraction], bool], high: Fraction, parts: int = 4000) -> Fraction:
    """The largest of high/parts, 2 high/parts, ..., high for which something still holds; or 0."""
    low, above = 0, parts + 1
    while above - low > 1:
        middle = (low + above) // 2
        low, above = (middle, above) if holds(high * middle / parts) else (low, middle)
    return high * low / parts


def menu_for(rule: Rule, epsilon: Fraction, delta: Fraction, choices: random.Random) -> list[Step]:
    """A first step, and the largest steps of each kind that the rule allows after it."""
    first = response(epsilon * choices.randint(1, 30) / 20)
    if not rule([(first, 1)]):
        first = response(epsilon / choices.randint(2, 9))
    if choices.random() < 0.2:
        first = gaussian(Fraction(1, choices.randint(4, 60)))
    before = [(first, 1)] if rule([(first, 1)]) else []
    share = choices.randint(1, 2)

    def fits(step: Step) -> bool:
        return rule([*before, (step, share)])

    loss = largest(lambda e: fits(response(e)), 3 * epsilon + 3)
    alone = largest(lambda e: rule([(response(e), 1)]), 3 * epsilon + 3)
    level = largest(lambda d: fits(response(Fraction(0), d)), delta)
    density = largest(lambda rho: fits(_charged(rho)), (epsilon + 2) ** 2)
    menu = [
        first,
        response(loss),
        response(alone),
        response(Fraction(0), level),
        response(loss / 2, level / 2),
    ]
    if density:
        variance = min(max(float(1 / (2 * density)), 0.01), 400.0)
        menu.append(gaussian(density, cut=choices.randint(0, 1 + int(2 * variance**0.5))))
    chosen = [step for step in menu if step.epsilon or step.delta or step.rho]
    return chosen[:1] + choices.sample(chosen[1:], min(3, len(chosen) - 1))


def _charged(rho: Fraction) -> Step:
    """Only what it costs: a rule does not look at outcomes."""
    return Step(Fraction(0), Fraction(0), rho, ())
