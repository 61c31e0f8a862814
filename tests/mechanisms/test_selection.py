"""What every mechanism that picks a candidate promises: its error, its declarations, its input."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lastbit.errors import InvalidParameter, LastbitError, WrongType
from lastbit.mechanisms.exponential import Exponential
from lastbit.mechanisms.noisy_max import ReportNoisyMax
from lastbit.mechanisms.permute_and_flip import PermuteAndFlip
from lastbit.privacy.neighbours import ADD_REMOVE, CHANGE_ONE
from lastbit.sampling.bits import KeyStream
from tests.laws.oracle import decimals
from tests.mechanisms.divergence import mass
from tests.mechanisms.selection import BAD_UTILITIES, EPSILONS, MARK

KINDS: list[Any] = [Exponential, PermuteAndFlip, ReportNoisyMax]
pytestmark = pytest.mark.parametrize("kind", KINDS)


def test_one_an_index_many_an_array(kind: Any) -> None:
    pick = kind(sensitivity=1, epsilon=1, neighbours=ADD_REMOVE)
    assert type(pick.release(np.array([0, 10_000]))) is int
    near: Any = 5 if kind is ReportNoisyMax else 0.5
    many = pick.release([near, 10_000, 2], size=(2, 3))
    assert many.shape == (2, 3)
    assert (many == 1).all()
    far = np.zeros(10**6, np.int64)
    far[123_456] = 10**6
    assert pick.release(far) == 123_456


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=6), st.sampled_from(EPSILONS))
def test_expected_error(kind: Any, utilities: list[int], epsilon: Fraction) -> None:
    pick = kind(sensitivity=1, epsilon=epsilon)
    law, best = pick.law(utilities), max(utilities)
    with decimals():
        exact = sum((mass(law, i) * (best - u) for i, u in enumerate(utilities)), Decimal(0))
        above = Decimal(pick.expected_error(utilities)) - exact
        assert -Decimal("1e-50") <= above <= exact * Decimal(2) ** -52
    bound = pick.expected_error_bound(candidates=len(utilities))
    assert pick.expected_error(utilities) <= bound
    if kind is PermuteAndFlip:
        weighed = Exponential(sensitivity=1, epsilon=epsilon)
        assert bound <= weighed.expected_error_bound(candidates=len(utilities))


def test_errors_in_corner_cases(kind: Any) -> None:
    pick = kind(sensitivity=1, epsilon=1)
    assert pick.accuracy("0.01", candidates=1) == 0
    assert pick.beta(0, candidates=1) == 0
    assert pick.expected_error([17]) == 0
    assert pick.expected_error_bound(candidates=1) == 0
    assert 0 <= pick.beta(10**30, candidates=10**6) < 1e-300
    assert pick.beta(0, candidates=10**6) <= 1


# ---------------------------------------------------------------- declarations and input


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"epsilon": 1, "rate": 1, "scale": 1},
        {"sensitivity": 0, "epsilon": 1},
        {"epsilon": 0},
        {"epsilon": -1},
        {"rate": float("nan"), "scale": -1},
        {"rate": Fraction(1 << 1001), "scale": Fraction(1 << 1001)},
        {"epsilon": Fraction(1, 1 << 1001)},
        {"epsilon": 1, "monotone": 1},
        {"rate": 1, "scale": 1, "monotone": "no"},
    ],
    ids=range(10),
)
def test_bad_declarations(kind: Any, parameters: dict) -> None:
    other = "rate" if kind is ReportNoisyMax else "scale"  # what it does not take
    known = {name: value for name, value in parameters.items() if name != other}
    with pytest.raises(LastbitError):
        kind(**{"sensitivity": 1, **known})


@pytest.mark.parametrize("relation", ["x", None, 3])
@pytest.mark.parametrize("monotone", [False, True])
def test_neighbours_are_a_relation(kind: Any, relation: Any, monotone: bool) -> None:
    with pytest.raises(WrongType, match=r"neighbours.*pass ADD_REMOVE or CHANGE_ONE"):
        kind(sensitivity=1, epsilon=1, monotone=monotone, neighbours=relation)


def test_one_record_changed_is_not_monotone(kind: Any) -> None:
    for relation in (CHANGE_ONE, CHANGE_ONE.by("patient")):
        with pytest.raises(InvalidParameter, match="monotone"):
            kind(sensitivity=1, epsilon=1, monotone=True, neighbours=relation)
        assert kind(sensitivity=1, epsilon=1, neighbours=relation).epsilon == 1
    added = kind(sensitivity=1, epsilon=1, monotone=True, neighbours=ADD_REMOVE)
    assert added.guarantee.neighbours == ADD_REMOVE


@pytest.mark.parametrize("utilities", BAD_UTILITIES, ids=range(len(BAD_UTILITIES)))
def test_bad_utilities(kind: Any, utilities: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused by name, before any bit is drawn, and without a word of the data."""
    monkeypatch.setattr(KeyStream, "fill", lambda self, count: pytest.fail("bits were drawn"))
    pick = kind(sensitivity=1, epsilon=1)
    for question in (pick.release, pick.law, pick.expected_error):
        with pytest.raises(LastbitError) as failure:
            question(utilities)
        assert "utilities" in str(failure.value)
        assert MARK not in str(failure.value)
        assert failure.value.__context__ is None


@pytest.mark.parametrize("call", ["accuracy", "beta", "expected_error_bound", "guarantee_at"])
def test_bad_questions(kind: Any, call: str) -> None:
    pick = kind(sensitivity=1, epsilon=1)
    counts: list[Any] = [0, -1, 1.5, 2.0, "3", True]
    bad: list[Any]
    match call:
        case "accuracy":
            bad = [lambda b=b: pick.accuracy(b, candidates=3) for b in (0, 1, -1, 2, "x", None)]
            bad += [lambda n=n: pick.accuracy("0.1", candidates=n) for n in counts]
        case "beta":
            bad = [lambda e=e: pick.beta(e, candidates=3) for e in (-1, "x", float("nan"))]
            bad += [lambda n=n: pick.beta(1, candidates=n) for n in counts]
        case "expected_error_bound":
            bad = [lambda n=n: pick.expected_error_bound(candidates=n) for n in counts]
        case _:
            bad = [lambda d=d: pick.guarantee_at(d) for d in (-1, "x", None)]
    for question in bad:
        with pytest.raises(LastbitError):
            question()
