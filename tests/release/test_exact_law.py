"""The exact law of a release, for tiny tables and all their neighbours, against the price claimed.

Every price must hold for every pair, and be reached by one: else the test would not see a noise
that is too small. Mutants (a row too many, a key too many, half the noise, L2 for L1, a threshold
too low) must cost more than is claimed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import pytest

from lastbit.laws.discrete import DiscreteGaussian, DiscreteLaplace
from lastbit.mechanisms.histogram import ThresholdedHistogram
from lastbit.privacy.neighbours import ADD_REMOVE, CHANGE_ONE, Neighbours
from lastbit.tables.card.schema import DataCard
from lastbit.tables.plan.conversion import PairConversion, pair_variance
from lastbit.tables.plan.parts import GaussianSelection, LaplacePart, PartitionSelection, RankPart
from lastbit.tables.plan.plan import Plan, planned
from lastbit.tables.plan.selection import Finder
from tests.release.exactly import (
    Engine,
    Rows,
    Units,
    asked,
    card_of,
    hockey_stick,
    neighbours,
    noise_loss,
    query_of,
    rank_loss,
)

duckdb = pytest.importorskip("duckdb")

RELATIONS = {"add-remove": ADD_REMOVE, "change-one": CHANGE_ONE}
A, B, OTHER = ("a", 3), ("b", 3), ("z", 3)
FEW: tuple[Rows, ...] = (
    (), (("a", 0), ("b", None)), (A, A), (B, B), (A, B, OTHER), (A,) * 3, (B, (None, 1)), (OTHER,),
)  # fmt: skip
TABLES: tuple[Units, ...] = tuple((*pair, (A, A, B)) for pair in product(FEW, FEW))


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    made = Engine()
    yield made
    made.close()


@pytest.fixture(params=RELATIONS)
def relation(request: pytest.FixtureRequest) -> Neighbours:
    return RELATIONS[request.param]


# ---------------------------------------------------------------- noise on declared keys

QUESTIONS: dict[str, tuple[Any, ...]] = {
    "count": (asked("count", "n"),),
    "units": (asked("count_units", "u"),),
    "count and sum": (asked("count", "n"), asked("sum", "s")),
    "variance": (asked("variance", "v"),),
    "histogram": (asked("histogram", "h", edges=tuple(map(Fraction, (0, 1, 3)))),),
}


def worst(engine: Engine, plan: Plan, *, card: DataCard | None = None) -> tuple[Fraction, Fraction]:
    """The greatest loss, and the greatest rho, over all pairs of neighbours."""
    losses = [
        noise_loss(plan, engine.raw(plan, a, card=card), engine.raw(plan, b, card=card))
        for a, b in neighbours(TABLES, relation=plan.card.neighbours.relation)
    ]
    return max(loss for loss, _ in losses), max(rho for _, rho in losses)


@pytest.mark.thinned(one_in=20)
@pytest.mark.parametrize("name", QUESTIONS)
def test_noise_costs_what_it_says_and_all_of_it(
    engine: Engine, relation: Neighbours, name: str
) -> None:
    card = card_of(max_rows=2, max_groups=2, neighbours=relation)
    query = query_of(*QUESTIONS[name], keys=("a", "b"))
    pure = planned(query, card, epsilon="3/2")
    assert worst(engine, pure) == (Fraction(3, 2), Fraction(0))
    weighted = planned(query, card, epsilon=1, weights={query.aggregates[0].name: 5})
    assert worst(engine, weighted)[0] == 1
    concentrated = planned(query, card, rho="1/3")
    rho = worst(engine, concentrated)[1]
    assert rho <= Fraction(1, 3)
    # values from -1 to 2: no row can go from one end to as far on the other
    assert rho == Fraction(1, 3) or (name == "variance" and relation is CHANGE_ONE)


@pytest.mark.thinned(one_in=9)
def test_a_choice_of_keys_for_units(engine: Engine, relation: Neighbours) -> None:
    card = card_of(max_rows=2, max_groups=1, neighbours=relation)
    query = query_of(asked("count_units", "u"), asked("count", "n"), keys=("a", "b"))
    plan = planned(query, card, epsilon=1)
    assert worst(engine, plan)[0] == 1
    wider = replace(card, max_groups=2)
    assert worst(engine, plan, card=wider)[0] > 1 or relation is CHANGE_ONE  # two keys move anyway


@pytest.mark.thinned(one_in=12)
@pytest.mark.parametrize("name", QUESTIONS)
def test_mutants_of_noise_cost_more(engine: Engine, relation: Neighbours, name: str) -> None:
    card = card_of(max_rows=2, max_groups=2, neighbours=relation)
    query = query_of(*QUESTIONS[name], keys=("a", "b"))
    plan = planned(query, card, epsilon=1)
    for place, part in enumerate(plan.parts):
        assert isinstance(part, LaplacePart)
        parts = list(plan.parts)
        parts[place] = replace(part, scale=part.scale * len(parts) / (len(parts) + 1))
        assert worst(engine, replace(plan, parts=tuple(parts)))[0] > 1  # a share too large
    if name != "units":  # a unit with three rows in place of two
        assert worst(engine, plan, card=replace(card, max_rows=3))[0] > 1
    else:  # L2, of two keys that move by 1, for L1
        (part,) = plan.parts
        assert isinstance(part, LaplacePart) and part.l1_sensitivity == 2
        mutant = replace(plan, parts=(replace(part, scale=part.scale * Fraction(71, 100)),))
        assert worst(engine, mutant)[0] > 1


def test_the_losses_are_those_of_the_laws() -> None:
    """That the exact formulas of `noise_loss` speak of the laws that the parts have."""
    law = DiscreteLaplace("5/3")
    for y in (-4, 0, 2, 9):
        ratio = law.probability(y - 0) / law.probability(y - 2)
        loss = (abs(y - 2) - abs(y)) / law.scale
        assert abs(float(ratio.ends[0]) / math.e ** float(loss) - 1) < 1e-12
        assert loss <= Fraction(2) / law.scale
    law_, total = DiscreteGaussian(4), 0.0
    for y in range(-60, 61):
        here, there = (float(law_.probability(y - shift).ends[0]) for shift in (0, 3))
        total += here**2 / there if there else 0.0
    assert abs(total / math.e ** (2 * 9 / 8) - 1) < 1e-9  # order 2: exp(2 rho)


def test_gaussian_noise_by_epsilon_and_delta(engine: Engine, relation: Neighbours) -> None:
    """All rhos together come near the mu that was converted, and that mu keeps to its delta."""
    card = card_of(unit=None, max_rows=1, neighbours=relation)
    pairs = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    bounds = [(Fraction(low), Fraction(high)) for low, high in pairs]
    sums = [asked("sum", f"s{i}", bounds=pair) for i, pair in enumerate(bounds)]
    query = query_of(asked("count", "n"), *sums, keys=("a", "b"))
    plan = planned(query, card, epsilon=1, delta="1/1000")
    assert isinstance(plan.conversion, PairConversion) and plan.composition == "concentrated"
    rhos = [
        noise_loss(plan, engine.raw(plan, first), engine.raw(plan, second))[1]
        for first, second in neighbours(SINGLE, relation=relation.relation)
    ]
    assert Fraction(9, 10) < max(rhos) / plan.conversion.rho <= 1  # all but what the grid costs
    law = DiscreteGaussian(pair_variance(1, plan.conversion.mu**2))
    here = [float(law.probability(y).ends[0]) for y in range(-40, 41)]
    excess = sum(max(p - math.e * q, 0.0) for p, q in pairwise(here))
    assert 5e-4 < excess <= 1e-3


SINGLE: tuple[Units, ...] = tuple(
    tuple(((row,) if row else ()) for row in rows)
    for rows in product((None, A, ("a", 0), B), repeat=3)
)


# ---------------------------------------------------------------- undeclared keys


def found_plan(card: DataCard, *parts: Any, epsilon: Any, share: Fraction) -> Plan:
    """With a delta that its threshold needs to the last bit: so that it can be reached."""
    query = query_of(*parts, keys="found")
    plan = by_laplace(planned(query, card, epsilon=epsilon, delta=share))
    assert plan.composition == "basic"
    part = plan.partition_selection
    assert isinstance(part, PartitionSelection)
    needed = ThresholdedHistogram(
        keys_per_person=part.keys_per_person,
        scale=part.scale,
        threshold=part.threshold,
        neighbours=card.neighbours,
    ).delta
    tight = by_laplace(planned(query, card, epsilon=epsilon, delta=needed))
    assert (
        tight.partition_selection is not None
        and tight.partition_selection.threshold == part.threshold
    )
    return tight


def by_laplace(plan: Plan) -> Plan:
    """The same with keys found by Laplace noise; tests/tables/test_selection.py has Gaussian."""
    part = plan.partition_selection
    if not isinstance(part, GaussianSelection):
        return plan
    assert part.conversion is not None
    served = next(measure for measure in plan.measures if measure.name == part.measure)
    finder = Finder(card=plan.card, serves=served, name="")
    price = part.conversion.epsilon, part.delta
    laplace = finder._laplace(part.keys_per_person, *price).part
    return replace(plan, parts=(laplace, *plan.parts[1:]))


def worst_delta(engine: Engine, plan: Plan, tables: Any, **given: Any) -> Fraction:
    return max(
        hockey_stick(plan, engine.raw(plan, a, **given), engine.raw(plan, b, **given))
        for a, b in neighbours(tables, relation=plan.card.neighbours.relation)
    )


def lowered(plan: Plan) -> Plan:
    parts = [
        replace(p, threshold=p.threshold - 1) if isinstance(p, PartitionSelection) else p
        for p in plan.parts
    ]
    return replace(plan, parts=tuple(parts))


@pytest.mark.evidence
def test_found_keys_with_two_keys_a_unit(engine: Engine, relation: Neighbours) -> None:
    """Units that choose two keys of three, one of them missing; the noisy units are released."""
    card = card_of(max_rows=5, max_groups=2, neighbours=relation)
    plan = found_plan(card, asked("count_units", "u"), epsilon=2, share=Fraction(1, 20))
    bundles: tuple[Rows, ...] = ((), (A, B), (A, B, (None, 1)), ((None, 1),), (A,), (OTHER,))
    tables = list(product(bundles, bundles))
    claimed = plan.cost.delta
    for secret in ("s", "another"):
        delta = worst_delta(engine, plan, tables, secret=secret)
        assert delta <= claimed
        assert delta >= claimed * Fraction(999, 1000)
        assert worst_delta(engine, lowered(plan), tables, secret=secret) > claimed
        wider = replace(card, max_groups=3)
        assert worst_delta(engine, plan, tables, secret=secret, card=wider) > claimed
    part = plan.parts[0]
    assert isinstance(part, PartitionSelection)
    less = replace(plan, parts=(replace(part, scale=part.scale * Fraction(9, 10)),))
    many: list[Units] = [((A, B),) * 9, (*((A, B),) * 8, ())]
    raw = [engine.raw(plan, units) for units in many]
    assert max(hockey_stick(plan, *raw), hockey_stick(plan, *raw[::-1])) <= claimed
    if relation is ADD_REMOVE:
        assert max(hockey_stick(less, *raw), hockey_stick(less, *raw[::-1])) > claimed


def test_found_keys_with_counts_of_shown_ones(engine: Engine, relation: Neighbours) -> None:
    """Keys, the units that decide on them and other measures of shown keys, all together."""
    card = card_of(unit=None, max_rows=1, neighbours=relation)
    parts = (asked("count_units", "u"), asked("sum", "s"))
    plan = found_plan(card, *parts, epsilon=3, share=Fraction(1, 500))
    tables = [
        tuple((row,) if row else () for row in rows) for rows in product((None, A, B), repeat=3)
    ]
    delta = worst_delta(engine, plan, tables)
    assert plan.cost.delta * Fraction(999, 1000) <= delta <= plan.cost.delta
    assert worst_delta(engine, lowered(plan), tables) > plan.cost.delta
    many = ((A,),) * 12 + ((B,),) * 12
    full: list[Units] = [(*many, (A,)), (*many, (B,)), (*many, ())]
    assert worst_delta(engine, plan, full) <= plan.cost.delta
    less = [replace(p, scale=p.scale / 2) if isinstance(p, LaplacePart) else p for p in plan.parts]
    assert worst_delta(engine, replace(plan, parts=tuple(less)), full) > plan.cost.delta


# ---------------------------------------------------------------- quantiles, least, greatest


def many(group: str, x: int) -> Rows:
    return ((group, x),) * 2


def rank_tables(groups: str) -> list[Units]:
    """A unit of any kind, one that may hold the middle and one that does: ranks lie inside it."""
    own = [(), *(many(g, x) for g in groups for x in (0, 1, 39)), (("a", 0), ("a", 39))]
    middle = [(), *(many(g, 1) for g in groups)]
    return list(product(own, middle, [many("a", 1)]))


HALF, THIRD = Fraction(1, 2), Fraction(1, 3)


@pytest.mark.thinned(one_in=4)
@pytest.mark.parametrize(
    ("groups", "level"), [("a", HALF), ("a", THIRD), ("a", 0), ("ab", HALF), ("ab", 1)], ids=str
)
def test_ranks_cost_what_they_say(
    engine: Engine, relation: Neighbours, groups: str, level: Fraction
) -> None:
    """All draws of a quantile, of a least and a greatest value, among 40 candidates.

    The draw of the value reaches its price nearly: all candidates on one side come nearer, the one
    on the other side goes away, and between them is one that stays.
    """
    card = card_of(max_rows=2, neighbours=relation)
    function = {0: "min", 1: "max"}.get(level, "quantile")  # type: ignore[call-overload]
    more = {"level": level} if function == "quantile" else {}
    part = asked(function, "q", bounds=(Fraction(0), Fraction(40)), **more)
    plan = planned(query_of(part, keys=tuple(groups)), card, epsilon=1)
    pairs = [
        (engine.raw(plan, a), engine.raw(plan, b))
        for a, b in neighbours(rank_tables(groups), relation=relation.relation)
    ]
    for draw in plan.parts:
        assert isinstance(draw, RankPart)
        most = max(rank_loss(draw, first, second) for first, second in pairs)
        assert most <= draw.epsilon
        assert most >= draw.epsilon / 4
        if function == "quantile" and draw.role == "value":
            assert most >= draw.epsilon * Fraction(9, 10)
            wrong = replace(  # so that the rate is too high
                draw, distance_sensitivity=draw.distance_sensitivity * 5 // 6
            )
            assert any(rank_loss(wrong, *pair) > draw.epsilon for pair in pairs)
