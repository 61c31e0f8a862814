"""What a program costs, worked out anew from what will run: no planner and no checker has a say.

How far one unit moves a measure follows the proof in `tables/measures.py`, written again; what
noise and draws cost, the theorems of the mechanisms. All bounds are upper bounds of the true loss.

| step | epsilon | rho |
|---|---|---|
| Laplace noise of scale s | L1/s | epsilon**2/2 |
| Gaussian noise of variance v | | L2**2/(2v) |
| a draw by exp(-rate distance) | 2 rate M | epsilon**2/8 |

rho implies (epsilon, delta) by the best order (CKS20, Proposition 12); Gaussian noise on integers
is no easier to tell than a Gaussian pair of mu**2 = L2**2 x with x (1 - x/12) = 1/v
(`privacy/gaussian_pair.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isqrt
from typing import Any

from flint import arb, ctx, fmpq

from lastbit.kernel import Program
from lastbit.kernel.program import KeySelection, Noise, PairDraws, RankDraw, TreeNoise
from lastbit.tables import Measure

WHOLE = 1 << 20
ENDLESS = arb("inf")
_SLACK = Fraction(1, 10**12)  # of the search for the best order, which is done in floats


@dataclass(frozen=True)
class Moves:
    """How far one unit moves a vector: L1, and the square of L2."""

    l1: int
    l2_squared: int


def changes_one(program: Program) -> bool:
    return program.card.neighbours.relation == "change-one"


def keys_of_a_unit(program: Program) -> int | None:
    """To how many keys a unit counts among units; None if nothing limits it."""
    card, groups = program.card, program.groups
    if card.unit is None:
        return 1
    limits = [m.highest for m in program.measures if m.kind in ("units", "shares") and m.highest]
    known = [min(limits), groups] if limits else [card.max_groups, groups]
    return min((number for number in known if number is not None), default=None)


def moves_of(measure: Measure, program: Program) -> Moves:
    """By the proof: what one unit has in all entries, and what follows if it becomes another."""
    card, twice = program.card, changes_one(program)
    weight = 1 if card.unit is None else WHOLE
    if measure.kind in ("units", "shares"):
        keys = keys_of_a_unit(program)
        assert keys is not None, "a unit could bring any number of keys"
        if measure.kind == "shares":
            times = 2 if twice else 1
            return Moves(times * isqrt(WHOLE**2 * keys), times * WHOLE**2)
        moved = keys * (2 if twice else 1)
        moved = moved if program.groups is None else min(moved, program.groups)
        return Moves(moved, moved)
    if measure.kind == "distinct":
        named = [n for n in (card.max_rows, card.max_groups) if n is not None]
        total = min(named)
    else:
        furthest = max(abs(measure.lowest), abs(measure.highest))
        one_row = {"rows": 1, "bins": 1, "squares": furthest**2}.get(measure.kind, furthest)
        assert measure.kind in ("rows", "bins", "squares", "values", "above", "below")
        total = card.max_rows * weight * one_row
    if not twice:
        return Moves(total, total**2)
    either_way = measure.kind == "values" and measure.lowest < 0 < measure.highest
    return Moves(2 * total, (4 if either_way else 2) * total**2)


def rank_moves(draw: RankDraw, program: Program) -> int:
    """By how much the distances of all candidates move, over all groups."""
    weight = 1 if program.card.unit is None else WHOLE
    total, a, d = program.card.max_rows * weight, draw.level.numerator, draw.level.denominator
    once = max(a, d - a) * total
    if not changes_one(program):
        return once
    return d * total if program.groups == 1 else 2 * once


# ---------------------------------------------------------------- laws


def real(number: Fraction | int) -> arb:
    fraction = Fraction(number)
    return arb(fmpq(fraction.numerator, fraction.denominator))


def laplace_from(scale: Fraction, least: int) -> arb:
    """P[X >= least] of discrete Laplace noise."""
    q = (-1 / real(scale)).exp()
    if least >= 1:
        return q**least / (1 + q) if least < 10**6 else (-real(least) / real(scale)).exp()
    return 1 - q ** (1 - least) / (1 + q)


def gaussian_from(variance: Fraction, least: int) -> arb:
    """An upper bound of P[X >= least], least >= 1: by terms, or by an integral for large v."""
    if variance >= 1 << 16:
        x = (real(least) - arb("0.5")) / real(variance).sqrt()
        return (x / arb(2).sqrt()).erfc() / 2
    total, place = arb(0), least
    while True:
        term = (-real(Fraction(place * place) / (2 * variance))).exp()
        total += term
        place += 1
        if place > least + 40 * (isqrt(int(variance)) + 2):
            break
    whole = arb(1) + 2 * sum(
        ((-real(Fraction(k * k) / (2 * variance))).exp() for k in range(1, 12)), arb(0)
    )
    floor = (2 * arb.pi() * real(variance)).sqrt()
    return total * (1 + arb(2) ** -60) / (whole if whole > floor else floor)


def some_of(chance: arb, keys: int) -> arb:
    """1 - (1-p)**c."""
    return -(keys * (1 - chance).log()).expm1() if chance < 1 else arb(1)


def delta_of_rho(rho: Fraction, epsilon: Fraction) -> arb:
    """The least delta that any order proves."""
    if rho <= 0:
        return arb(0)
    if epsilon <= 0:
        return arb(1)
    r, e = float(rho), float(epsilon)

    def exponent(t: float) -> float:
        a = 1 + math.exp(t)
        return (a - 1) * (a * r - e) + a * math.log1p(-1 / a) - math.log(a - 1)

    low, high = -30.0, 30.0
    for _ in range(300):
        one, two = low + (high - low) * 0.382, low + (high - low) * 0.618
        low, high = (low, two) if exponent(one) < exponent(two) else (one, high)
    a = 1 + Fraction(math.exp((low + high) / 2))
    found = real((a - 1) * (a * rho - epsilon)) + real(a) * (1 - 1 / real(a)).log()
    return (found - real(a - 1).log()).exp()


def delta_of_pair(mu_squared: arb, epsilon: Fraction) -> arb:
    """What mu-GDP implies: Q(e/mu - mu/2) - exp(e) Q(e/mu + mu/2)."""
    if epsilon <= 0:
        return arb(1)
    mu, e, root = mu_squared.sqrt(), real(epsilon), arb(2).sqrt()
    above = ((e / mu - mu / 2) / root).erfc() / 2
    return above - e.exp() * ((e / mu + mu / 2) / root).erfc() / 2


# ---------------------------------------------------------------- what runs


@dataclass(frozen=True)
class Spent:
    """One step: in epsilon, or in rho (and as a pair), and a delta of its own."""

    epsilon: Fraction | None = None
    rho: Fraction = Fraction(0)
    mu_squared: arb | None = None
    delta: arb = arb(0)  # noqa: RUF009
    least: tuple[Fraction, arb] | None = None
    """What an alternative of the same step costs: units are in one of two counts."""


def noise_spent(noise: Noise, moves: Moves, levels: int = 1) -> Spent:
    if noise.mechanism == "laplace":
        epsilon = Fraction(levels * moves.l1) / noise.parameter
        return Spent(epsilon=epsilon, rho=epsilon**2 / 2)
    return gaussian_spent(noise.parameter, levels * moves.l2_squared)


def gaussian_spent(variance: Fraction, squared: int, **more: Any) -> Spent:
    pair = None
    if variance > Fraction(1, 3):
        pair = real(squared) * 6 * (1 - (1 - 1 / (3 * real(variance))).sqrt())
    return Spent(rho=Fraction(squared) / (2 * variance), mu_squared=pair, **more)


def selection_spent(step: KeySelection, program: Program) -> Spent:
    keys = keys_of_a_unit(program)
    assert keys is not None, "a unit could bring any number of keys"
    shares = [m for m in program.measures if m.kind == "shares"]
    apart = any(m.lowest == 2 for m in shares)
    weights = {k: isqrt(WHOLE**2 // k) for k in range(2 if apart else 1, keys + 1)}
    weights = weights if shares else {keys: 1}
    moves = moves_of(Measure(name="", kind="shares" if shares else "units"), program)
    noise, people = step.noise, 2 if changes_one(program) else 1
    assert all(step.threshold > weight for weight in weights.values())
    if noise.mechanism == "laplace":
        found = [
            laplace_keys(noise.parameter, step.threshold - w + 1, k, people)
            for k, w in weights.items()
        ]
        assert not shares and step.single is None
        return Spent(epsilon=max(e for e, _ in found), delta=largest(d for _, d in found))
    tails = (
        some_of(gaussian_from(noise.parameter, step.threshold - w), k) for k, w in weights.items()
    )
    least = None
    if apart:
        assert step.single is not None and not changes_one(program)
        single, threshold = step.single
        least = laplace_keys(single.parameter, threshold, 1, 1)
    else:
        assert step.single is None
    delta = largest(tails)
    return gaussian_spent(noise.parameter, moves.l2_squared, delta=delta, least=least)


def laplace_keys(scale: Fraction, threshold: int, keys: int, people: int) -> tuple[Fraction, arb]:
    """Keys of one unit alone: shown by chance, and hidden with a ratio that must be paid too."""
    chance = laplace_from(scale, threshold - 1)
    assert chance <= 1 - (-1 / real(scale)).exp(), "not seeing a key tells too much"
    return Fraction(people * keys) / scale, some_of(chance, keys)


def largest(numbers: Any) -> arb:
    found = arb(0)
    for number in numbers:
        found = number if number > found else found
    return found


def spending(program: Program) -> Iterator[Spent]:
    """Every step that `noisy_numbers` runs."""
    measures = {measure.name: measure for measure in program.measures}
    if program.marginals is not None:
        yield from _marginals_spent(program)
        return
    selections = [step for step in program.steps if isinstance(step, KeySelection)]
    assert selections or program.groups is not None, "keys of the data are shown as they are"
    if program.groups is None:
        yield selection_spent(selections[0], program)
    ends: dict[Measure, dict[str, Noise]] = {}
    for step in program.steps:
        match step:
            case Noise(measure=str(name)) if measures[name].kind in ("above", "below"):
                ends.setdefault(replace(measures[name], name="", kind="above"), {})[name] = step
            case Noise(measure=str(name)):
                yield noise_spent(step, moves_of(measures[name], program))
            case TreeNoise(noise=Noise(measure=str(name)) as noise):
                yield noise_spent(noise, moves_of(measures[name], program), step.levels)
            case RankDraw():
                assert measures[step.measure].kind == "bins"
                epsilon = 2 * step.rate * rank_moves(step, program)
                yield Spent(epsilon=epsilon, rho=epsilon**2 / 8)
    for both in ends.values():
        # a row's two integers add up to the number of steps: what moves one end, leaves the other
        assert sorted(measures[name].kind for name in both) == ["above", "below"]
        assert all(measures[name].lowest == 0 for name in both)
        spent = [
            noise_spent(step, moves_of(measures[name], program)) for name, step in both.items()
        ]
        assert len({step.mechanism for step in both.values()}) == 1
        yield max(spent, key=lambda one: one.rho)


def _marginals_spent(program: Program) -> Iterator[Spent]:
    rows = Measure(name="", kind="rows", nullable=False)
    moves = moves_of(rows, program)
    noises = {step.measure: step for step in program.steps if isinstance(step, Noise)}
    draws = [step for step in program.steps if isinstance(step, PairDraws)]
    tables = len(program.marginals or ()) + sum(step.picks for step in draws)
    for number in range(1, tables + 1):
        yield noise_spent(noises[f"m{number}"], moves)
    for step in draws:
        each = 2 * step.rate * moves.l1
        yield Spent(epsilon=step.picks * each, rho=step.picks * each**2 / 8)


def overspends(program: Program) -> str | None:
    """Why the true loss may exceed the price; None if it does not."""
    before, ctx.prec = ctx.prec, 300
    try:
        return _overspends(program)
    except AssertionError as error:
        return f"no bound: {error}"
    finally:
        ctx.prec = before


def _overspends(program: Program) -> str | None:
    cost, parts = program.cost, list(spending(program))
    own = sum((part.delta for part in parts), arb(0))
    if cost.rho:
        if any(part.least for part in parts):
            return "units with one key apart are not paid for in rho"
        rho = sum((part.rho for part in parts), Fraction(0))
        fits = rho <= cost.rho and own <= real(cost.delta)
        return None if fits else f"rho {float(rho)} delta {own}"
    pure = sum((part.epsilon for part in parts if part.epsilon is not None), Fraction(0))
    noisy = [part for part in parts if part.epsilon is None]
    if not noisy:
        fits = pure <= cost.epsilon and own <= real(cost.delta)
        return None if fits else f"epsilon {float(pure)} delta {own}"
    rho = sum((part.rho for part in noisy), Fraction(0))
    left = cost.epsilon - pure
    deltas = [delta_of_rho(rho, left)]
    pairs = [part.mu_squared for part in noisy]
    if all(pair is not None for pair in pairs):
        deltas.append(delta_of_pair(sum((p for p in pairs if p is not None), arb(0)), left))
    every = sum((part.rho for part in parts), Fraction(0))
    deltas.append(delta_of_rho(every, cost.epsilon))
    allowed = real(cost.delta * (1 + _SLACK))
    apart = [part.least for part in parts if part.least]
    within = all(epsilon <= left and delta <= allowed for epsilon, delta in apart)
    fits = any(delta + own <= allowed for delta in deltas)
    return None if fits and within else f"epsilon {cost.epsilon} delta {deltas} + {own}"
