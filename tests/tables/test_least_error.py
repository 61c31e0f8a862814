"""Shares of a price by least error: against every split of a fine grid, and what they buy."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from lastbit.checker import check_price
from lastbit.errors import NotCertified
from lastbit.privacy.neighbours import CHANGE_ONE
from lastbit.release.certifying import certificate_of
from lastbit.tables.plan.conversion import conversion_to
from lastbit.tables.plan.least_error import least_worst, worst_error
from lastbit.tables.plan.parts import GaussianPart, LaplacePart, RankPart, TreePart
from lastbit.tables.plan.plan import Plan, planned
from tests.release.pretend import card_of, part, query_of

GRID = 60
ERRORS = st.one_of(st.just(Fraction(0)), st.integers(1, 900).map(Fraction))


def splits(parts: int) -> list[tuple[Fraction, ...]]:
    """Every split of 1 into this many parts of a sixtieth or more."""
    whole = product(range(1, GRID), repeat=parts - 1)
    return [
        (*(Fraction(n, GRID) for n in some), Fraction(GRID - sum(some), GRID))
        for some in whole
        if sum(some) < GRID
    ]


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 3), st.integers(1, 2), st.data())
def test_no_split_of_a_fine_grid_is_better(parts: int, power: int, data: st.DataObject) -> None:
    """By more than 1 %, whatever numbers are made of whatever."""
    rows = data.draw(st.lists(st.lists(ERRORS, min_size=parts, max_size=parts), max_size=3))
    rows += [[Fraction(int(i == j)) for i in range(parts)] for j in range(parts)]
    errors = [row for row in rows if any(row)]
    shares = least_worst(errors, power=power)
    assert sum(shares) == 1
    best = min(worst_error(errors, split, power=power) for split in splits(parts))
    assert worst_error(errors, shares, power=power) <= best * Fraction(102, 100)  # of squares


def test_a_mutant_is_worse() -> None:
    """Equal shares, where one number is three times as noisy, are not the least."""
    errors = [[Fraction(1), Fraction(0)], [Fraction(0), Fraction(9)]]
    found = worst_error(errors, least_worst(errors, power=2), power=2)
    equal = worst_error(errors, [Fraction(1, 2)] * 2, power=2)
    assert found < equal * Fraction(1, 2)


# ---------------------------------------------------------------- what is bought


def noises(plan: Plan) -> dict[str, Fraction]:
    """The variance of the noise on each measure in full rows, by kind."""
    kinds = {measure.name: measure for measure in plan.measures}
    found: dict[str, Fraction] = {}
    for one in plan.parts:
        if isinstance(one, LaplacePart | GaussianPart):
            measure = kinds[one.measure]
            variance = 2 * one.scale**2 if isinstance(one, LaplacePart) else one.variance
            found[measure.kind] = variance / measure.largest**2
    return found


FIXED: dict[str, Any] = {"nullable": False}


@pytest.mark.parametrize("relation", [None, CHANGE_ONE], ids=["add-remove", "change-one"])
def test_a_count_and_a_mean_have_half_the_variance_of_equal_shares(relation: Any) -> None:
    """Laplace noise: the price that bought one of the two buys both."""
    card = card_of(**({} if relation is None else {"neighbours": relation}))
    query = query_of(part("count", "n"), part("mean", "m", **FIXED))
    plan = planned(query, card, epsilon=1)
    found = noises(plan)
    assert sorted(found) == ["above", "below"]
    apart = noises(planned(query, card, epsilon=1, weights={"n": 1, "m": 1}))
    assert 2 * sum(found.values()) == apart["rows"] == apart["values"]


def test_ends_are_for_laplace_noise_and_for_changes() -> None:
    """It gains nothing where units come and go; where one changes, no end is signed."""
    query = query_of(part("count", "n"), part("mean", "m", **FIXED))
    assert sorted(noises(planned(query, card_of(), rho=1))) == ["rows", "values"]
    changed = planned(query, card_of(neighbours=CHANGE_ONE), rho=1)
    assert sorted(noises(changed)) == ["above", "below"]


def test_bounds_with_steps_that_only_the_middle_can_count() -> None:
    """Failed before: refused, since there are too many steps from one end to the other."""
    wide = part("mean", "m", bounds=(Fraction(0), Fraction(2**45)), **FIXED)
    assert sorted(noises(planned(query_of(wide), card_of(), epsilon=1))) == ["rows", "values"]


def test_several_means_over_one_count_share_by_error() -> None:
    """The count is noise in each of the means, a third as much as their sums are."""
    asked = [
        part("mean", f"m{n}", bounds=(Fraction(-100 * n), Fraction(100)), **FIXED)
        for n in range(1, 3)
    ]
    plan = planned(query_of(*asked), card_of(), epsilon=1)
    kinds = {measure.name: measure.kind for measure in plan.measures}
    paid = sorted((kinds[p.measure], p.epsilon) for p in plan.parts if isinstance(p, LaplacePart))
    (rows, count), (_, first), (_, second) = paid
    assert rows == "rows" and count < first == second

    def worst(count: Fraction) -> Fraction:
        return 1 / ((1 - count) / 2) ** 2 + Fraction(1, 3) / count**2

    assert worst(count) <= min(worst(Fraction(n, 200)) for n in range(1, 200)) * Fraction(102, 100)


def test_units_get_what_their_groups_cost() -> None:
    """Five keys a unit move a count of units five times as far as rows, in parts of a unit."""
    card = card_of(unit="person", max_rows=20, max_groups=5)
    query = query_of(part("count", "n"), part("count_units", "u"), keys=[("k", tuple("abcdefgh"))])
    rows, units = planned(query, card, epsilon=1).parts
    assert isinstance(rows, LaplacePart) and isinstance(units, LaplacePart)
    assert Fraction(49, 10) < units.epsilon / rows.epsilon < Fraction(51, 10)


def test_trees_of_quantiles_add_up_mu() -> None:
    """All noise is Gaussian where quantiles are read off a tree: an eighth less variance.

    Failed before: rho was added up, and no part had a mu.
    """
    wide = {"bounds": (Fraction(0), Fraction(1024)), "step": None}
    asked = [part("quantile", f"q{n}", level=Fraction(n, 8), **wide) for n in range(1, 8)]
    query = query_of(part("cdf", "c", edges=(Fraction(8),), **wide), *asked)
    plan = planned(query, card_of(unit="person", max_rows=4), epsilon=1, delta="0.01")
    (tree,) = plan.parts
    assert isinstance(tree, TreePart) and isinstance(tree.noise, GaussianPart)
    assert tree.noise.mu_squared is not None and plan.conversion is not None
    certificate = certificate_of(plan, columns=[], rows=[], head=None, engine=None)
    check_price("release", certificate["claim"], certificate["body"])
    by_rho = conversion_to(Fraction(1), Fraction(1, 100)).rho
    assert tree.noise.variance < tree.sensitivity / (2 * by_rho) * Fraction(95, 100)


def changed_parts(plan: Plan, **numbers: Any) -> Plan:
    """The plan with other numbers in its last part."""
    return replace(plan, parts=(*plan.parts[:-1], replace(plan.parts[-1], **numbers)))


def test_the_checker_sees_less_noise_on_one_end() -> None:
    """One end at half the noise, or noise on the ends of another column, is not paid for."""
    query = query_of(part("count", "n"), part("mean", "m", **FIXED))
    plan = planned(query, card_of(), epsilon=1)
    part_of = plan.parts[-1]
    assert isinstance(part_of, LaplacePart)
    certificate_of(plan, columns=[], rows=[], head=None, engine=None)
    for mutant in (
        changed_parts(plan, scale=part_of.scale / 2, epsilon=2 * part_of.epsilon),
        changed_parts(plan, scale=part_of.scale / 2),
        replace(plan, parts=plan.parts[:1]),
    ):
        with pytest.raises(NotCertified):
            certificate_of(mutant, columns=[], rows=[], head=None, engine=None)


def test_the_checker_sees_a_draw_that_names_an_end() -> None:
    """Ends are paid for once; a draw that says it is of one of them is not thereby free.

    Failed before: such a draw was neither checked nor paid for, however sharp it was.
    """
    query = query_of(part("mean", "m", **FIXED), part("quantile", "q"))
    plan = planned(query, card_of(), epsilon=1)
    kinds = {measure.name: measure.kind for measure in plan.measures}
    certificate_of(plan, columns=[], rows=[], head=None, engine=None)
    drawn = plan.parts[-1]
    assert isinstance(drawn, RankPart) and "below" in kinds.values()
    for name in kinds:
        with pytest.raises(NotCertified):
            free = changed_parts(plan, epsilon=1000 * drawn.epsilon, measure=name)
            certificate_of(free, columns=[], rows=[], head=None, engine=None)
