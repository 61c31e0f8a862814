"""The plan of contingency tables: exact prices, shares and variances."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from lastbit.errors import InvalidParameter, QueryRefused
from lastbit.privacy.neighbours import CHANGE_ONE
from lastbit.tables.card.budget import Budget
from lastbit.tables.plan.marginals import (
    consistent_variances,
    marginals_query,
    planned_marginals,
    variance_of,
)
from lastbit.tables.plan.parts import GaussianPart, LaplacePart
from lastbit.tables.query.expression import ColumnName
from lastbit.tables.query.scan import GroupKey
from tests.verify.test_check_marginals import SIZES, card_of

ONE = 1 << 20


def plan_of(card: Any = None, **price: Any) -> Any:
    card = card_of() if card is None else card
    keys = [GroupKey(name=n, expression=ColumnName(n), values=v) for n, v in SIZES.items()]
    return planned_marginals(marginals_query(card, keys), card, **price)


def test_shares_add_up_to_the_price() -> None:
    for weights in (None, {"sex:region": 5}, "balanced"):
        pure = plan_of(epsilon=1, weights=weights)
        assert sum(part.epsilon for part in pure.parts) == 1
        assert all(part.scale == 1 / part.epsilon for part in pure.parts)
        rho = plan_of(rho="1/3", weights=weights)
        assert sum(part.rho for part in rho.parts) == Fraction(1, 3)
        assert all(part.variance == 1 / (2 * part.rho) for part in rho.parts)


def test_sensitivities_are_those_of_a_count() -> None:
    card = card_of(unit="person", max_rows=3)
    (first, *_), total = plan_of(card, epsilon=1).parts, 3 * ONE
    assert first.l1_sensitivity == total
    (first, *_) = plan_of(card_of(unit="person", max_rows=3, neighbours=CHANGE_ONE), rho=1).parts
    assert first.squared_l2_sensitivity == 2 * total**2


def test_the_better_noise_is_taken() -> None:
    assert all(isinstance(p, LaplacePart) for p in plan_of(epsilon=1, delta="1e-12").parts)
    loose = plan_of(epsilon="1/10", delta="1/10")
    assert all(isinstance(part, GaussianPart) for part in loose.parts)
    assert loose.cost.delta == Fraction(1, 10)


def test_a_balanced_price_has_no_larger_worst_error() -> None:
    def worst(plan: Any) -> Fraction:
        spread = [variance_of(part) for part in plan.parts]
        return max(consistent_variances(plan.sizes, plan.marginals, spread))

    for price in ({"epsilon": 1}, {"rho": 1}):
        assert worst(plan_of(**price, weights="balanced")) <= worst(plan_of(**price))


def test_what_cannot_be_asked_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="weights"):
        plan_of(epsilon=1, weights={"income": 2})
    with pytest.raises(InvalidParameter, match="weights"):
        plan_of(epsilon=1, weights="equal")
    with pytest.raises(InvalidParameter, match="up_to"):
        plan_of(epsilon=1, up_to=0)
    with pytest.raises(InvalidParameter, match="rho"):
        plan_of(card_of(budget=Budget(kind="pure", epsilon=Fraction(1))), rho=1)
    wide = GroupKey(name="x", expression=ColumnName("person"), values=tuple(range(10**4)))
    other = GroupKey(name="y", expression=ColumnName("region"), values=tuple("abcdefghijklmnopqr"))
    with pytest.raises(QueryRefused, match=r"2\*\*15 cells"):
        planned_marginals(marginals_query(card_of(), [wide, other]), card_of(), epsilon=1)
    found = GroupKey(name="x", expression=ColumnName("region"), values=None)
    with pytest.raises(QueryRefused, match="declare its keys"):
        marginals_query(card_of(), [found])


def test_a_plan_has_seen_no_data_and_has_one_digest() -> None:
    assert plan_of(epsilon=1).digest == plan_of(epsilon=1).digest
    assert plan_of(epsilon=1).digest != plan_of(epsilon=1, up_to=1).digest


@pytest.mark.parametrize(
    "price", [{"epsilon": 1}, {"rho": 1}, {"epsilon": "1/10", "delta": "1/10"}]
)
def test_pairs_are_chosen_within_the_price(price: dict[str, Any]) -> None:
    plan = plan_of(**price, pairs=2)
    draws = plan.selection
    assert draws.picks == 2 and len(draws.candidates) == 3 and len(plan.parts) == 5
    each = 2 * draws.rate * draws.distance_sensitivity
    if "rho" in price or "delta" in price:
        total = sum(part.rho for part in plan.parts) + draws.rho
        assert draws.rho == 2 * each**2 / 8
        assert total <= (1 if "rho" in price else plan.base.conversion.rho)
    else:
        assert draws.epsilon == 2 * each
        assert sum(part.epsilon for part in plan.parts) + draws.epsilon == 1


def test_pairs_that_are_all_there_are_not_chosen() -> None:
    assert plan_of(epsilon=1, pairs=3) == plan_of(epsilon=1)
    with pytest.raises(InvalidParameter, match="weights"):
        plan_of(epsilon=1, pairs=1, weights="balanced")
    with pytest.raises(InvalidParameter, match="pairs"):
        plan_of(epsilon=1, pairs=0)
