"""Choice by rational weights and by exponentials."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lastbit.errors import WrongType
from lastbit.exact.rational import rational
from lastbit.sampling.choice import (
    Majorant,
    Wheel,
    choice as choice_function,
    choice_exp,
    majorant,
    wheel,
)
from lastbit.sampling.deterministic import Seeded
from lastbit.sampling.uniform import UniformBelow
from tests.laws.oracle import Refused, decimals, exp


def spin(monkeypatch: pytest.MonkeyPatch, sums: Wheel, targets: list[int]) -> list[int]:
    """Where the wheel stops for given uniform integers."""
    given_targets = np.array(targets, object if sums.total >= 1 << 62 else np.int64)
    with monkeypatch.context() as patch:
        patch.setattr(UniformBelow, "draw", lambda self, bits, size: given_targets)
        return sums.draw(Seeded(0), len(targets)).tolist()


@pytest.mark.parametrize(
    "weights", [[1], [3, 1, 2], [0, 0, 5, 0, 1, 0], ["1/3", 0.25, 2], [7] * 33]
)
def test_every_integer_below_the_sum(weights: list, monkeypatch: pytest.MonkeyPatch) -> None:
    """All equally likely uniform integers, so the counts are the weights exactly."""
    sums = wheel(weights)
    exact = [rational(w) for w in weights]
    counts = np.bincount(spin(monkeypatch, sums, list(range(sums.total))), minlength=len(weights))
    assert [Fraction(int(c), sums.total) for c in counts] == [w / sum(exact) for w in exact]


@given(st.lists(st.integers(0, 2**200), min_size=1, max_size=40).filter(any))
def test_edges_of_large_weights(weights: list[int]) -> None:
    """Just below and at every running sum, through as many limbs as it takes."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        sums = wheel(weights)
        ends = list(accumulate(weights))
        targets = sorted({t for e in ends for t in (e - 1, e) if 0 <= t < sums.total} | {0})
        expected = [next(i for i, e in enumerate(ends) if e > t) for t in targets]
        assert spin(monkeypatch, sums, targets) == expected


def test_numpy_weights_are_the_same_weights() -> None:
    weights = np.random.default_rng(0).integers(0, 1000, 5000)
    by_array, by_list = wheel(weights), wheel(weights.tolist())
    assert by_array.total == by_list.total == int(weights.sum())
    assert by_array.draw(Seeded(3), 50).tolist() == by_list.draw(Seeded(3), 50).tolist()


def check_majorant(sampler: Majorant) -> None:
    """Integer weights not below the exponential ones; acceptance at once not above the exact."""
    for i, weight in enumerate(sampler.weights.tolist()):
        distance = sampler.rate * (sampler.greatest - rational(sampler.exponents[i]))
        exact = exp(-min(distance, Fraction(600))) * (1 << sampler.scale_bits)
        if Decimal(weight) < exact:
            raise Refused(f"weight {i} is below the exponential one")
        at_once = Decimal(float(sampler.accept_low[i])) + 1  # words below accept_low
        if at_once > exact / weight * (1 << 53) and at_once > 1:
            raise Refused(f"candidate {i} is accepted too often")
        if distance < 30 and at_once < exact / weight * (1 << 53) - 2**15:
            raise Refused(f"candidate {i} is refined too often")


EXPONENTS = [
    [0, -1, "1/3", -5.25, 10],
    np.random.default_rng(1).normal(size=400) * 20,
    np.random.default_rng(2).integers(-100, 100, 300),
    np.random.default_rng(3).random(300).astype(np.float32),
    [0, -43, -44, -511, -512, -513, -(10**9)],
    [Fraction(10**400), 0],
    np.array([1e308, -1e308]),
    np.array([2**63 - 1, -(2**63)]),
]


@pytest.mark.parametrize("exponents", EXPONENTS, ids=range(len(EXPONENTS)))
@pytest.mark.parametrize("rate", [Fraction(1), Fraction(1, 7), Fraction(10**6)], ids=str)
def test_majorants(exponents, rate: Fraction) -> None:
    with decimals():
        check_majorant(majorant(exponents, rate))


def test_mutants_of_the_majorant_are_rejected() -> None:
    exponents = np.linspace(-5, 0, 200)
    sampler = majorant(exponents, Fraction(1))
    with decimals():
        check_majorant(sampler)
        for mutant in (
            replace(sampler, weights=sampler.weights - (sampler.weights >> 40)),
            replace(sampler, accept_low=sampler.accept_low + 2.0**20),
            replace(sampler, rate=Fraction(1001, 1000)),
        ):
            with pytest.raises(Refused):
                check_majorant(mutant)


def test_undecided_candidates_are_decided_exactly() -> None:
    sampler = majorant([0, -1, -50], Fraction(1))
    for i, distance in enumerate((0, 1, 50)):
        with decimals():
            exact = exp(-distance) * (1 << sampler.scale_bits) / int(sampler.weights[i]) * (1 << 53)
        assert not sampler._accepts(Seeded(0), i, min(int(exact) + 1, (1 << 53) - 1)) or i == 0
        assert int(exact) == 0 or sampler._accepts(Seeded(0), i, int(exact) - 1)


def test_rejected_candidates_are_drawn_again() -> None:
    """With weights far too large the law stays: rejection corrects them."""
    good = majorant([0, -1, -2], Fraction(1))
    heavy = good.weights * np.array([1, 2, 4])
    loose = replace(
        good,
        wheel=wheel(heavy),
        weights=heavy,
        accept_low=good.accept_low / np.array([1, 2, 4]) - 1,
    )
    draws = loose.draw(Seeded(4), 40_000)
    with decimals():
        total = sum(exp(-d) for d in range(3))
        for i in range(3):
            share = float(exp(-i) / total)
            assert abs(np.mean(draws == i) - share) < 0.02  # 2 exp(-2 * 40000 * 0.02**2) < 2**-45


def test_a_million_candidates() -> None:
    exponents = np.zeros(10**6)
    exponents[123_456] = 1000
    assert choice_exp(exponents) == 123_456
    weights = np.zeros(10**6, np.int64)
    weights[7] = 3
    assert choice_function(weights, size=3).tolist() == [7, 7, 7]


@pytest.mark.parametrize(
    "values", [{0: 5, 1: 5}, {1, 2}, b"12", "12", np.ma.array([1, 2], mask=[False, True]), 3, None]
)
def test_what_has_no_order_is_refused(values: object) -> None:
    with pytest.raises(WrongType, match="are not a sequence"):
        choice_function(values)  # type: ignore[call-overload]
    with pytest.raises(WrongType, match="are not a sequence"):
        choice_exp(values)  # type: ignore[call-overload]


def test_the_callers_array_is_neither_changed_nor_read_again() -> None:
    exponents = np.array([1.0, 2.0, 3.0])
    sampler = majorant(exponents, Fraction(5))
    assert exponents.tolist() == [1.0, 2.0, 3.0]
    exponents[:] = 0
    assert sampler.exponents[2] == 3.0
