"""Smooth bounds: above the local sensitivity, smooth between all neighbours, and no larger."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lastbit.errors import InvalidParameter, LastbitError, WrongType
from lastbit.privacy.neighbours import ADD_REMOVE, AS_DECLARED, CHANGE_ONE, Neighbours
from lastbit.sensitivity.neighbours import sensitivity_at
from lastbit.sensitivity.smooth import SmoothBound, from_distance, smooth_sensitivity
from lastbit.sensitivity.statistics import Mean, Quantile, Statistic, Variance
from tests.laws.oracle import decimals, exp
from tests.sensitivity.databases import (
    BOUNDS,
    LARGEST,
    ORDERED,
    QUESTIONS,
    TRIMMED,
    Database,
    databases,
    local,
    neighbours_of,
    plain,
    within,
)

BETAS = [Fraction(1, 50), Fraction(1, 3), Fraction(2)]
CLOSE = Fraction(1, 2**30)


@cache
def below_exp(beta: Fraction) -> Fraction:
    """A rational just below exp(beta): Decimals of 80 digits, less a margin."""
    with decimals():
        return Fraction(exp(beta) * (1 - Decimal(10) ** -70))


def table(
    statistic: Statistic, relation: Neighbours, beta: Fraction, largest: int
) -> dict[Database, Fraction]:
    return {
        rows: smooth_sensitivity(
            statistic, list(rows), beta=beta, **BOUNDS, neighbours=relation
        ).bound
        for rows in databases(relation, largest)
    }


def bounds(found: dict[Database, Fraction], statistic: Statistic, relation: Neighbours) -> bool:
    return all(bound >= local(statistic, rows, relation) for rows, bound in found.items())


def smooth(found: dict[Database, Fraction], relation: Neighbours, beta: Fraction) -> bool:
    factor = below_exp(beta)
    return all(
        bound <= factor * found[near]
        for rows, bound in found.items()
        for near in neighbours_of(rows, relation)
        if near in found
    )


@pytest.mark.parametrize("beta", BETAS, ids=str)
@pytest.mark.thinned(one_in=6)
@pytest.mark.parametrize(("statistic", "relation"), QUESTIONS, ids=str)
def test_all_small_databases(statistic: Statistic, relation: Neighbours, beta: Fraction) -> None:
    found = table(statistic, relation, beta, LARGEST if beta == BETAS[1] else 4)
    assert bounds(found, statistic, relation)
    assert smooth(found, relation, beta)


@pytest.mark.parametrize("beta", BETAS, ids=str)
@pytest.mark.thinned(one_in=6)
@pytest.mark.parametrize("statistic", [*ORDERED, *TRIMMED, Mean()], ids=str)
def test_no_larger_than_the_smooth_sensitivity(statistic: Statistic, beta: Fraction) -> None:
    """The least smooth bound is the greatest discounted local sensitivity of all databases."""
    for rows in databases(CHANGE_ONE, 4):
        with decimals():
            least = max(
                local(statistic, near, CHANGE_ONE) * Fraction(exp(-k * beta))
                for k, shell in enumerate(within(rows, len(rows), CHANGE_ONE))
                for near in shell
            )
        bound = smooth_sensitivity(statistic, list(rows), beta=beta, **BOUNDS).bound
        assert least * (1 - CLOSE**2) <= bound <= least * (1 + CLOSE)


@pytest.mark.thinned(one_in=6)
@pytest.mark.parametrize(("statistic", "relation"), QUESTIONS, ids=str)
def test_the_bound_is_the_discounted_maximum(statistic: Statistic, relation: Neighbours) -> None:
    """Where few distances are tried, no other one is greater."""
    for beta in (Fraction(1, 20), Fraction(1, 2)):
        for rows in databases(relation, 3):
            with decimals():
                most = max(
                    sensitivity_at(statistic, list(rows), distance=k, **BOUNDS, neighbours=relation)
                    * Fraction(exp(-k * beta))
                    for k in range(len(rows) + 2)
                )
            bound = smooth_sensitivity(
                statistic, list(rows), beta=beta, **BOUNDS, neighbours=relation
            ).bound
            assert most * (1 - CLOSE**2) <= bound <= most * (1 + CLOSE)


@given(
    st.lists(st.floats(0, 10), min_size=1, max_size=60),
    st.sampled_from(["0.001", "0.03", "0.2", "1"]),
    st.sampled_from(
        [(Variance(), CHANGE_ONE), (Mean(), ADD_REMOVE), (Quantile("0.7"), ADD_REMOVE)]
    ),
)
def test_closed_forms_skip_nothing(
    rows: list[float], beta: str, question: tuple[Statistic, Neighbours]
) -> None:
    statistic, relation = question
    with decimals():
        most = max(
            sensitivity_at(statistic, rows, distance=k, lower=0, upper=10, neighbours=relation)
            * Fraction(exp(-k * Fraction(beta)))
            for k in range(len(rows) + 2)
        )
    bound = smooth_sensitivity(
        statistic, rows, beta=beta, lower=0, upper=10, neighbours=relation
    ).bound
    assert most * (1 - CLOSE**2) <= bound <= most * (1 + CLOSE)


@pytest.mark.parametrize("relation", [CHANGE_ONE, ADD_REMOVE], ids=str)
def test_mutants_are_rejected(relation: Neighbours) -> None:
    median, beta = Quantile("1/2"), BETAS[1]
    honest = table(median, relation, beta, LARGEST)
    assert bounds(honest, median, relation)
    assert smooth(honest, relation, beta)
    assert not smooth(table(median, relation, 2 * beta, LARGEST), relation, beta)
    assert not smooth(table(median, relation, beta * Fraction(101, 100), 5), relation, beta)
    local_only = {rows: local(median, rows, relation) for rows in honest}
    assert not smooth(local_only, relation, beta)
    less = {rows: bound * (1 - CLOSE) for rows, bound in honest.items()}
    assert not bounds(less, median, relation)


@given(
    st.lists(st.integers(0, 2**45), min_size=1, max_size=40),
    st.integers(0, 2**45),
    st.integers(0, 39),
    st.sampled_from([Fraction(1, 2**20), Fraction(1, 1000), Fraction(1, 4), Fraction(20)]),
    st.sampled_from([*ORDERED, *TRIMMED, Variance(), Mean()]),
)
def test_smooth_on_random_neighbours(
    rows: list[int], value: int, at: int, beta: Fraction, statistic: Statistic
) -> None:
    other = [*rows]
    other[at % len(rows)] = value
    here, there = (
        smooth_sensitivity(statistic, data, beta=beta, lower=0, upper=2**45).bound
        for data in (rows, other)
    )
    factor = below_exp(beta)
    assert here <= factor * there
    assert there <= factor * here


def test_value_and_range() -> None:
    rows = (1, 2, 2, 4)
    for statistic, relation in QUESTIONS:
        bound = smooth_sensitivity(statistic, rows, beta=1, **BOUNDS, neighbours=relation)
        assert bound.value == plain(statistic, rows)
        assert bound.neighbours == relation
        if bound.lower is not None and bound.upper is not None:
            assert bound.lower <= bound.value <= bound.upper
    spread = smooth_sensitivity("variance", [100, 200], beta=1, lower=100, upper=200)
    assert spread.value == 2500
    assert spread.lower == 0
    assert spread.upper == 2500


def test_nothing_secret_is_shown() -> None:
    bound = smooth_sensitivity("median", [17], beta=1, lower=0, upper=100)
    assert repr(bound) == str(bound)
    assert "17" not in repr(bound)
    assert repr(bound).startswith("SmoothBound(beta=1, neighbours=")


def test_never_above_the_global_sensitivity_nor_zero() -> None:
    equal = smooth_sensitivity("median", np.full(5000, 50.0), beta=1, lower=0, upper=100)
    assert 0 < equal.bound < Fraction(1, 2**300)
    apart = smooth_sensitivity("median", [0, 100], beta="0.01", lower=0, upper=100)
    assert apart.bound == 100
    assert smooth_sensitivity("count", [1], beta=1, lower=0, upper=1).bound == 0
    assert (
        smooth_sensitivity("median", [], beta=1, lower=0, upper=3, neighbours=ADD_REMOVE).bound == 3
    )


@pytest.mark.parametrize(
    "beta", [0, -1, Fraction(1, 2**21), float("nan"), float("inf"), None, True]
)
def test_a_bad_beta_is_refused(beta: object) -> None:
    with pytest.raises(LastbitError, match="beta"):
        smooth_sensitivity("median", [1], beta=beta, lower=0, upper=1)  # type: ignore[arg-type]
    with pytest.raises(LastbitError, match="beta"):
        from_distance([1], value=0, beta=beta, neighbours=CHANGE_ONE)  # type: ignore[arg-type]


def test_extreme_betas() -> None:
    rows = [1.0, 2.0, 4.0]
    least = smooth_sensitivity("median", rows, beta=Fraction(1, 2**20), lower=0, upper=10)
    assert 9 < least.bound <= 10
    huge = smooth_sensitivity("median", rows, beta=10**400, lower=0, upper=10)
    assert abs(huge.bound - 2) < CLOSE


class TestFromDistance:
    def bound(self, widths: object, **options: object) -> SmoothBound:
        known = {"value": 3, "beta": "1/4", "neighbours": CHANGE_ONE} | options
        return from_distance(widths, **known)  # type: ignore[arg-type]

    def test_the_median_by_hand(self) -> None:
        rows = [1, 2, 3, 3, 9, 9, 10]
        options: dict[str, Any] = {"lower": 0, "upper": 10}
        widths = [sensitivity_at("median", rows, distance=k, **options) for k in range(9)]
        built_in = smooth_sensitivity("median", rows, beta="1/4", **options)
        for own in (
            self.bound(widths),
            self.bound(widths.__getitem__, distances=8),
            self.bound(lambda k: widths[min(k, 8)], most=10),
            self.bound(widths, most=10, distances=100),
        ):
            assert own.bound == built_in.bound
            assert own.value == 3
            assert own.lower is None

    def test_it_stops_where_nothing_can_follow(self) -> None:
        asked: list[int] = []

        def widths(k: int) -> int:
            asked.append(k)
            return 1 if k == 0 else 2

        self.bound(widths, most=2)
        assert asked == [0, 1]  # 2 exp(-1/2) < 2 exp(-1/4)

    def test_all_zero(self) -> None:
        assert self.bound([0, 0]).bound == 0
        assert 0 < self.bound(lambda _: 0, most=1, beta=8).bound < CLOSE

    @pytest.mark.parametrize(
        ("widths", "options"),
        [
            ([], {}),
            ("12", {}),
            (None, {}),
            (3, {}),
            (lambda k: k, {}),
            ([1, -1], {}),
            ([float("nan")], {}),
            (["x"], {}),
            ([1, 5], {"most": 4}),
            ([1], {"most": 0}),
            ([1], {"most": -1}),
            ([1], {"distances": -1}),
            ([1], {"distances": 1.5}),
            ([1], {"value": "x"}),
            ([1], {"neighbours": AS_DECLARED}),
            ([1], {"neighbours": "change-one"}),
            ([1] * 1000, {"beta": 1}),
        ],
    )
    def test_bad_input_is_refused(self, widths: object, options: dict[str, object]) -> None:
        with pytest.raises((InvalidParameter, WrongType)):
            self.bound(widths, **options)

    def test_no_value_in_a_message(self) -> None:
        with pytest.raises(InvalidParameter) as caught:
            self.bound([1, 98765], most=4)
        assert "98765" not in str(caught.value)
