"""Noise: 100,000 releases of one cell against the exact law, and mutants that it must see."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from lastbit.kernel.noise import noisy_numbers, rank_distances
from lastbit.laws.discrete import DiscreteGaussian, DiscreteLaplace, ExpWeighted
from lastbit.laws.law import Law
from lastbit.release.certifying import program_of
from lastbit.tables.plan.parts import LaplacePart, RankPart
from lastbit.tables.plan.plan import Plan, planned
from tests.kernel.unsealing import noised_unchecked, rank_draw, step_of
from tests.laws.frequency import assert_frequency, suspicious
from tests.release.pretend import RawNumbers, card_of, part, query_of, seed

CELLS = 1000
KEYS = tuple(f"k{i}" for i in range(CELLS))
TRIALS = 100_000


def counts_of(plan: Plan, raw: RawNumbers, name: str) -> dict[int, int]:
    """How often each noise was drawn, over 100,000 releases of a cell with the value 7."""
    hits: dict[int, int] = {}
    for _ in range(TRIALS // CELLS):
        for value in noised_unchecked(plan, raw).entries[name]:
            hits[value - 7] = hits.get(value - 7, 0) + 1
    return hits


def differs(hits: dict[int, int], law: Law) -> bool:
    return any(
        suspicious(
            hits.get(k, 0),
            trials=TRIALS,
            probability=float(law.probability(k).ends[0]),
            false_alarm=2.0**-40,
        )
        for k in range(-12, 13)
    )


JOBS: list[tuple[dict[str, Any], Law]] = [
    # two measures share epsilon 1 (rows count once, units once): 1/2 for each
    ({"epsilon": 1}, DiscreteLaplace(2)),
    ({"epsilon": 3, "weights": {"n": 2}}, DiscreteLaplace("1/2")),
    ({"rho": "1/4"}, DiscreteGaussian(4)),
]


@pytest.mark.parametrize(("asked", "law"), JOBS, ids=["laplace", "weighted", "gaussian"])
def test_the_law_of_a_release(
    monkeypatch: pytest.MonkeyPatch, asked: dict[str, Any], law: Law
) -> None:
    seed(monkeypatch, 11)
    query = query_of(part("count", "n"), part("count_units", "u"), keys=[("region", KEYS)])
    plan = planned(query, card_of(), **asked)
    raw = RawNumbers(keys=[(k,) for k in KEYS], entries={"m1": [7] * CELLS, "m2": [7] * CELLS})
    assert program_of(plan).steps == tuple(map(step_of, plan.parts))
    hits = counts_of(plan, raw, "m1")
    for k in range(-4, 5):
        probability = float(law.probability(k).ends[0])
        assert_frequency(
            hits.get(k, 0),
            trials=TRIALS,
            probability=probability,
            detects=Fraction(3, 10) if probability > 0.01 else None,
        )
    assert not differs(hits, law)
    for wrong in (Fraction(11, 10), Fraction(9, 10)):
        other: Law = (
            DiscreteLaplace(law.scale * wrong)
            if isinstance(law, DiscreteLaplace)
            else DiscreteGaussian(law.variance * wrong)  # type: ignore[attr-defined]
        )
        assert differs(hits, other)


def test_mutants_of_the_scale_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scale from Linf instead of L1, and the whole epsilon instead of a share."""
    seed(monkeypatch, 12)
    card = card_of(unit="person", max_rows=1, max_groups=4)
    query = query_of(part("count_units", "u"), part("count", "n"), keys=[("region", KEYS)])
    plan = planned(query, card, epsilon=2, weights={"n": 1})
    raw = RawNumbers(keys=[(k,) for k in KEYS], entries={"m1": [7] * CELLS, "m2": [7] * CELLS})
    law = DiscreteLaplace(4)  # four keys move by 1 each, at epsilon 1
    assert not differs(counts_of(plan, raw, "m1"), law)
    units, rows = plan.parts
    assert isinstance(units, LaplacePart)
    for scale in (1 / Fraction(1), 4 / Fraction(2)):
        mutant = replace(plan, parts=(replace(units, scale=scale), rows))
        assert differs(counts_of(mutant, raw, "m1"), law)


def test_each_entry_has_noise_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    seed(monkeypatch, 13)
    edges = tuple(map(Fraction, (0, 4, 8, 16)))
    query = query_of(part("histogram", "h", edges=edges), keys=[("region", KEYS)])
    plan = planned(query, card_of(), epsilon=1)
    raw = RawNumbers(keys=[(k,) for k in KEYS], bins={"m1": [[5, 0, 9]] * CELLS})
    noisy = noisy_numbers(program_of(plan), raw).bins["m1"]
    assert len({tuple(row) for row in noisy}) > 200
    for i, exact in enumerate((5, 0, 9)):
        drawn = [row[i] - exact for row in noisy]
        assert abs(sum(drawn)) < 300 and len(set(drawn)) > 5
    same = sum(a - 5 == b == c - 9 for a, b, c in noisy)
    assert same < 200  # the three noises of a row are independent: about 10 %


def test_the_law_of_a_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    seed(monkeypatch, 14)
    query = query_of(part("quantile", "q", bounds=(Fraction(0), Fraction(4))))
    plan = planned(query, card_of(), epsilon=2)
    weights = [3, 0, 2, 1]
    raw = RawNumbers(keys=[()], bins={"m1": [weights]})
    first = next(p for p in plan.parts if isinstance(p, RankPart))
    law = ExpWeighted(
        [-first.rate * int(d) for d in rank_distances(rank_draw(first), [weights])[0]]
    )
    trials = 4000
    hits, program = [0, 0, 0, 0], program_of(plan)
    for _ in range(trials):
        hits[noisy_numbers(program, raw).ranks["q", "value"][0]] += 1
    for i, count in enumerate(hits):
        assert_frequency(count, trials=trials, probability=float(law.probability(i).ends[0]))
    assert hits[0] > hits[3] > 0


def test_keys_below_the_threshold_do_not_appear() -> None:
    card = card_of(unit="person", max_rows=3, max_groups=2)
    query = query_of(part("count_units", "u"), part("count", "n"), keys=[("region", None)])
    plan = planned(query, card, epsilon=4, delta="1e-9")
    raw = RawNumbers(
        keys=[(None,), ("large",), ("small",)],
        entries={"m1": [900, 1000, 1], "m2": [900 << 20, 1000 << 20, 1 << 20]},
        units=[900, 1000, 1],
    )
    noisy = noisy_numbers(program_of(plan), raw)
    assert noisy.keys == [(None,), ("large",)]
    assert len(noisy.entries["m1"]) == len(noisy.entries["m2"]) == 2
    assert plan.partition_selection is not None
    assert min(noisy.entries["m1"]) >= plan.partition_selection.threshold


def test_nothing_in_nothing_out() -> None:
    card = card_of(unit="person", max_rows=3, max_groups=2)
    query = query_of(
        part("mean", "m"), part("quantile", "q"), part("count", "n"), keys=[("region", None)]
    )
    plan = planned(query, card, epsilon=4, delta="1e-9")
    names = {m.name: m.kind for m in plan.measures}
    raw = RawNumbers(
        keys=[],
        entries={name: [] for name, kind in names.items() if kind != "bins"},
        bins={name: [] for name, kind in names.items() if kind == "bins"},
        units=[],
    )
    assert noisy_numbers(program_of(plan), raw).keys == []


def test_huge_numbers_stay_exact() -> None:
    query = query_of(part("sum", "s", bounds=(Fraction(0), Fraction(1 << 40))))
    plan = planned(query, card_of(), epsilon=1)
    exact = 3 << 80
    raw = RawNumbers(keys=[()], entries={"m1": [exact]})
    noisy = noisy_numbers(program_of(plan), raw).entries["m1"][0]
    assert isinstance(noisy, int) and 0 < abs(noisy - exact) < 1 << 50
