"""Ranks: how far distances move, what draws cost, and whom the intervals hold."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from hypothesis import assume, given, settings, strategies as st

from lastbit.kernel.noise import rank_distances
from lastbit.tables.measures import Measure
from lastbit.tables.plan.parts import RankPart
from lastbit.tables.plan.ranks import rank_accuracy, rank_draws, rank_part, rank_sensitivity
from lastbit.tables.query.expression import ColumnName
from lastbit.tables.query.query import Aggregate
from tests.evidence import Extent
from tests.kernel.unsealing import rank_draw

LEVELS = st.sampled_from(
    [Fraction(0), Fraction(1), Fraction(1, 2), Fraction(9, 10), Fraction(1, 3)]
)


def part_at(level: Fraction, shift: int = 0, ends: tuple[int, int] = (0, 0)) -> RankPart:
    return RankPart(
        aggregate="x",
        measure="m",
        role="value",
        level=level,
        shift=shift,
        ends=ends,
        candidates=2,
        distance_sensitivity=1,
        epsilon=Fraction(1, 10**30),  # so that nothing is cut off
        rho=None,
    )


def weights(total: int, groups: int, bins: int) -> st.SearchStrategy[list[list[int]]]:
    """One unit's weights over groups and bins, at most `total` in all."""
    cells = st.lists(st.integers(0, total), min_size=groups * bins, max_size=groups * bins)

    def cut(numbers: list[int]) -> list[list[int]]:
        left, out = total, []
        for number in numbers:
            out.append(min(number, left))
            left -= out[-1]
        return [out[g * bins : (g + 1) * bins] for g in range(groups)]

    return cells.map(cut)


def moved_by(part: RankPart, before: list[list[int]], after: list[list[int]]) -> int:
    """The greatest move of any candidate's distance, added up over groups."""
    total, draw = 0, rank_draw(part)
    for x, y in zip(before, after, strict=True):
        total += int(np.abs(rank_distances(draw, [x]) - rank_distances(draw, [y])).max())
    return total


def added(one: list[list[int]], other: list[list[int]]) -> list[list[int]]:
    return [[a + b for a, b in zip(x, y, strict=True)] for x, y in zip(one, other, strict=True)]


def test_distances_move_no_further(extent: Extent) -> None:
    @settings(max_examples=extent.generated(100, 400))
    @given(st.data(), LEVELS, st.integers(1, 3), st.integers(0, 20), st.booleans())
    def holds(data: st.DataObject, level: Fraction, groups: int, shift: int, ends: bool) -> None:
        total, bins = 6, 4
        part = part_at(level, shift, (shift, shift) if ends else (0, 0))
        rest = data.draw(weights(30, groups, bins))
        own, other = (data.draw(weights(total, groups, bins)) for _ in range(2))
        come = rank_sensitivity(level, total, change_one=False, groups=groups)
        change = rank_sensitivity(level, total, change_one=True, groups=groups)
        assert moved_by(part, rest, added(rest, own)) <= come
        assert moved_by(part, added(rest, own), added(rest, other)) <= change

    holds()


def test_changing_a_unit_over_groups_costs_both_ways() -> None:
    """The mutant: the bound of one group, d S, taken for several groups, is false."""
    level, total = Fraction(9, 10), 10
    rest = [[0, 50, 50], [50, 50, 0]]
    here, there = [[0, 0, total], [0, 0, 0]], [[0, 0, 0], [0, 0, total]]
    moved = moved_by(part_at(level), added(rest, here), added(rest, there))
    assert moved > rank_sensitivity(level, total, change_one=True, groups=1)
    assert moved <= rank_sensitivity(level, total, change_one=True, groups=2)


def law(part: RankPart, rate: float, bins: list[int]) -> list[float]:
    raw = [math.exp(-rate * int(d)) for d in rank_distances(rank_draw(part), [bins])[0]]
    return [w / sum(raw) for w in raw]


@settings(max_examples=200)
@given(st.data(), LEVELS, st.booleans())
def test_what_the_draws_cost(data: st.DataObject, level: Fraction, change_one: bool) -> None:
    """Pure epsilon, and rho = epsilon**2/8 at several orders, over two groups together."""
    total, epsilon = 5, 1.5
    rest, own, other = (data.draw(weights(w, 2, 3)) for w in (20, total, total))
    moved = rank_sensitivity(level, total, change_one=change_one, groups=2)
    rate = epsilon / (2 * moved)
    before = added(rest, other) if change_one else rest
    after = added(rest, own)
    part = part_at(level)
    pairs = [(law(part, rate, x), law(part, rate, y)) for x, y in zip(before, after, strict=True)]
    worst = sum(max(abs(math.log(a / b)) for a, b in zip(p, q, strict=True)) for p, q in pairs)
    assert worst <= epsilon + 1e-9
    for order in (1.1, 2.0, 5.0, 40.0):
        divergence = sum(
            math.log(sum(a**order * b ** (1 - order) for a, b in zip(p, q, strict=True)))
            / (order - 1)
            for p, q in pairs
        )
        assert divergence <= order * epsilon**2 / 8 + 1e-9


def quantile_of(function: str, level: Fraction | None) -> Aggregate:
    return Aggregate(
        name="x",
        function=function,  # type: ignore[arg-type]
        expression=ColumnName("x"),
        bounds=(Fraction(0), Fraction(8)),
        step=Fraction(1),
        level=level,
    )


def parts_of(aggregate: Aggregate, bins: int, epsilon: Fraction) -> dict[str, RankPart]:
    edges = tuple(Fraction(i) for i in range(bins + 1))
    measure = Measure(name="m", kind="bins", expression=ColumnName("x"), edges=edges)
    found: dict[str, RankPart] = {}
    for draw in rank_draws(aggregate):
        moved = rank_sensitivity(draw.level, 4, change_one=False, groups=None)
        found[draw.role] = rank_part(
            aggregate, measure, draw, sensitivity=moved, epsilon=epsilon * draw.share, rho=None
        )
    return found


def missed(part: RankPart, bins: list[int], holds: Callable[[int], bool]) -> float:
    """The exact probability that the candidate drawn does not serve."""
    chances = law(part, float(part.rate), bins)
    first = -1 if part.ends[0] else 0
    return sum(p for i, p in enumerate(chances, start=first) if not holds(i))


@settings(max_examples=150)
@given(
    st.lists(st.integers(0, 40), min_size=8, max_size=8),
    st.sampled_from([Fraction(1, 2), Fraction(9, 10), Fraction(1, 100)]),
    st.sampled_from([Fraction(1, 3), Fraction(2), Fraction(20)]),
)
def test_intervals_of_quantiles_hold(bins: list[int], level: Fraction, epsilon: Fraction) -> None:
    assume(sum(bins))
    parts = parts_of(quantile_of("quantile", level), 8, epsilon)
    below = [sum(bins[:i]) for i in range(8)]
    target = level * sum(bins)
    # every bin in which a quantile can lie
    homes = [i for i in range(8) if bins[i] and below[i] <= target <= below[i] + bins[i]]
    for home in homes:
        assert missed(parts["low"], bins, functools.partial(operator.ge, home)) <= 1 / 40 + 1e-12
        assert missed(parts["high"], bins, functools.partial(operator.le, home)) <= 1 / 40 + 1e-12


@settings(max_examples=100)
@given(
    st.lists(st.integers(0, 40), min_size=8, max_size=8),
    st.sampled_from([Fraction(1, 3), Fraction(2), Fraction(20)]),
)
def test_intervals_of_extremes_hold(bins: list[int], epsilon: Fraction) -> None:
    assume(sum(bins))
    filled = [i for i, weight in enumerate(bins) if weight]
    least = parts_of(quantile_of("min", None), 8, epsilon)["value"]
    assert missed(least, bins, lambda i: i >= filled[0]) <= 1 / 20 + 1e-12
    most = parts_of(quantile_of("max", None), 8, epsilon)["value"]
    assert missed(most, bins, lambda i: i <= filled[-1]) <= 1 / 20 + 1e-12


def test_half_the_public_weight_would_not_do() -> None:
    """The mutant: ends half as heavy miss too often."""
    bins, level, epsilon = [0, 0, 0, 0, 0, 0, 40, 0], Fraction(1, 2), Fraction(1, 3)
    part = parts_of(quantile_of("quantile", level), 8, epsilon)["high"]
    short = part.ends[0] // 2
    half = part_at(level, 2 * short, (short, short))
    rate = float(part.rate)
    chances = law(half, rate, bins)
    assert sum(p for i, p in enumerate(chances, start=-1) if i < 6) > 1 / 40


def test_large_weights_stay_exact() -> None:
    part = part_at(Fraction(1, 3))
    bins = [1 << 62, (1 << 62) + 1, 5]
    third = sum(bins)  # the target, in thirds
    expected = []
    for i, own in enumerate(bins):
        before = 3 * sum(bins[:i])
        expected.append(min(max(before - third, third - before - 3 * own, 0), (1 << 62) - 1))
    assert rank_distances(rank_draw(part), [bins]).tolist() == [expected]


def test_distances_are_cut_at_a_public_number() -> None:
    far = RankPart(
        aggregate="x", measure="m", role="value", level=Fraction(1, 2), shift=0, ends=(0, 0),
        candidates=3, distance_sensitivity=1, epsilon=Fraction(2), rho=None,
    )  # fmt: skip
    assert rank_distances(rank_draw(far), [[10**9, 0, 10**9, 1]]).max() == 1 << 12
    assert rank_accuracy(1, Fraction(2), beta=Fraction(1, 20), candidates=100) == 8
