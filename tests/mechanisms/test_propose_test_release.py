"""Propose, test, release: the promise for all neighbouring pairs and all outputs."""

from __future__ import annotations

import pickle
from decimal import Decimal
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import pytest

from lastbit.errors import InvalidParameter, WrongType
from lastbit.mechanisms.laplace import Laplace
from lastbit.mechanisms.stable_value import BOTTOM, Passed, ProposeTestRelease
from lastbit.privacy.neighbours import ADD_REMOVE, CHANGE_ONE
from lastbit.sensitivity.neighbours import Proposal, propose
from tests.laws.frequency import assert_frequency
from tests.laws.oracle import decimal, decimals, exp
from tests.mechanisms.divergence import mass
from tests.mechanisms.test_stable_value import release_probability

LOWER, UPPER = 0, 4
WINDOW = range(-60, 100)


def databases(size: int) -> list[tuple[int, ...]]:
    return list(combinations_with_replacement(range(LOWER, UPPER + 1), size))


def changes(x: tuple[int, ...]) -> set[tuple[int, ...]]:
    out = set()
    for i in range(len(x)):
        for v in range(LOWER, UPPER + 1):
            out.add(tuple(sorted((*x[:i], v, *x[i + 1 :]))))
    return out - {x}


def law(
    ask: ProposeTestRelease, proposal: Proposal, threshold: int, epsilon: Fraction
) -> dict[Any, Decimal]:
    """The exact law of the outputs: ⊥, and (bound, step) in a window, the rest in two tails."""
    out: dict[Any, Decimal] = {}
    with decimals():
        fresh = Decimal(1)
        for bound, distance, noise in zip(ask.bounds, proposal.distances, ask._noises, strict=True):
            passed = release_probability(distance, threshold, epsilon)
            given = noise.law(proposal.value).law
            for k in WINDOW:
                out[bound, k] = fresh * passed * mass(given, k)
            for side, ball in (
                ("below", given.cdf(WINDOW[0] - 1)),
                ("above", 1 - given.cdf(WINDOW[-1])),
            ):
                out[bound, side] = fresh * passed * decimal(Fraction(sum(ball.ends) / 2))
            fresh *= 1 - passed
        out[BOTTOM] = fresh
    return out


def worst_excess(ask: ProposeTestRelease, threshold: int) -> Decimal:
    """Over all databases of three records and all their neighbours."""
    proposals = {
        x: propose("median", x, bounds=ask.bounds, lower=LOWER, upper=UPPER) for x in databases(3)
    }
    laws = {x: law(ask, p, threshold, ask.test_epsilon) for x, p in proposals.items()}
    with decimals():
        factor = exp(Fraction(ask.guarantee.epsilon))
        return max(
            sum((max(Decimal(0), laws[x][o] - factor * laws[y][o]) for o in laws[x]), Decimal(0))
            for x in laws
            for y in changes(x)
        )


@pytest.mark.thinned(one_in=9)
@pytest.mark.parametrize("bounds", [[1], [1, 2]])
def test_the_promise_holds_for_all_neighbours_and_outputs(bounds: list[int]) -> None:
    ask = ProposeTestRelease(
        bounds=bounds, epsilon=4, delta="1/50", grid="1/4", neighbours=CHANGE_ONE
    )
    assert worst_excess(ask, ask.threshold) <= decimal(ask.delta)


def test_a_threshold_one_too_small_is_refused() -> None:
    # epsilon so large that only delta can carry the answers far apart
    ask = ProposeTestRelease(bound=1, epsilon=4, delta="1/50", grid="1/4", neighbours=CHANGE_ONE)
    smaller = ask.threshold - 1
    assert release_probability(0, smaller, ask.test_epsilon) > decimal(ask.delta)
    far = Proposal(0, [0]), Proposal(1000, [1])  # what a local sensitivity of 1000 allows
    one, other = (law(ask, p, smaller, ask.test_epsilon) for p in far)
    with decimals():
        factor = exp(Fraction(ask.guarantee.epsilon))
        excess = sum(max(Decimal(0), one[o] - factor * other[o]) for o in one)
    assert excess > decimal(ask.delta)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_all_tests_are_paid_for(count: int) -> None:
    bounds = list(range(1, count + 1))
    ask = ProposeTestRelease(bounds=bounds, epsilon=3, delta="1e-5", share="1/3")
    assert ask.guarantee.epsilon == 3 == count * ask.test_epsilon + ask.release_epsilon
    assert ask.test_epsilon == Fraction(1, count)
    each = decimal(ask.delta / count)
    assert release_probability(0, ask.threshold, ask.test_epsilon) <= each
    assert release_probability(0, ask.threshold - 1, ask.test_epsilon) > each


def test_the_first_bound_that_passes_sets_the_noise() -> None:
    ask = ProposeTestRelease(bounds=[1, 2, 4], epsilon=6, delta="1/10", grid="1/8")
    far = ask.threshold + 200
    answer = ask.release(Proposal(100, [0, far, far]))
    assert isinstance(answer, Passed)
    assert answer.bound in (1, 2)
    assert (answer.value * 8).is_integer()
    chances = ask.release_probabilities([0, far, far])
    trials = 4000
    answers = [ask.release(Proposal(100, [0, far, far])) for _ in range(trials)]
    hits = sum(isinstance(a, Passed) and a.bound == 1 for a in answers)
    probability = float(sum(chances[0].ends) / 2)
    assert_frequency(hits, trials=trials, probability=probability, false_alarm=2.0**-30)


def test_data_near_instability_get_no_answer() -> None:
    ask = ProposeTestRelease(bound="1/1000", epsilon=1, delta="1e-12", neighbours=CHANGE_ONE)
    spread = propose("median", range(101), bounds=ask.bounds, lower=0, upper=100)
    assert spread.distances == (0,)
    assert ask.release(spread) is BOTTOM


@pytest.mark.parametrize("statistic", ["median", "iqr", "mean"])
@pytest.mark.parametrize("neighbours", [CHANGE_ONE, ADD_REMOVE])
def test_statistics_that_are_usually_stable(statistic: str, neighbours: Any) -> None:
    ask = ProposeTestRelease(bound=10, epsilon=4, delta="1e-6", neighbours=neighbours)
    data = [40.0] * 500 + [41.0] * 500
    proposal = propose(statistic, data, bounds=[10], lower=0, upper=100, neighbours=neighbours)
    answer = ask.release(proposal)
    assert isinstance(answer, Passed)
    assert abs(answer.value - float(proposal.value)) < 200


def test_accuracy_is_that_of_the_noise() -> None:
    ask = ProposeTestRelease(bounds=[1, 2], epsilon=2, delta="1e-6", grid="1/16")
    noise = Laplace(sensitivity=2, epsilon=1, grid="1/16")
    assert ask.accuracy("0.05") == noise.accuracy("0.05")
    assert pickle.loads(pickle.dumps(ask)) == ask


@pytest.mark.parametrize(
    "parameters",
    [
        {"bound": 1, "epsilon": 0, "delta": "1e-6"},
        {"bound": 1, "epsilon": 1, "delta": 0},
        {"bound": 0, "epsilon": 1, "delta": "1e-6"},
        {"bound": float("nan"), "epsilon": 1, "delta": "1e-6"},
        {"bounds": [], "epsilon": 1, "delta": "1e-6"},
        {"bounds": [2, 1], "epsilon": 1, "delta": "1e-6"},
        {"bounds": [1, 1], "epsilon": 1, "delta": "1e-6"},
        {"bounds": "12", "epsilon": 1, "delta": "1e-6"},
        {"bound": 1, "bounds": [1], "epsilon": 1, "delta": "1e-6"},
        {"epsilon": 1, "delta": "1e-6"},
        {"bound": 1, "epsilon": 1, "delta": "1e-6", "share": 0},
        {"bound": 1, "epsilon": 1, "delta": "1e-6", "grid": "1/3"},
        {"bound": 1, "epsilon": 1, "delta": "1e-6", "grid": None},
    ],
)
def test_bad_parameters_are_refused(parameters: dict[str, Any]) -> None:
    with pytest.raises((InvalidParameter, WrongType)):
        ProposeTestRelease(**parameters)


def test_proposals_of_another_kind_are_refused() -> None:
    ask = ProposeTestRelease(bound=1, epsilon=1, delta="1e-6", neighbours=CHANGE_ONE)
    with pytest.raises(WrongType, match="proposal"):
        ask.release(41)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="bounds"):
        ask.release(Proposal(41, [1, 2]))
    with pytest.raises(InvalidParameter, match="other bounds"):
        ask.release(Proposal(41, [1], bounds=[2]))
    with pytest.raises(InvalidParameter, match="neighbours"):
        ask.release(Proposal(41, [1], neighbours=ADD_REMOVE))
    with pytest.raises((InvalidParameter, WrongType), match="distances"):
        Proposal(41, [-1])
    with pytest.raises((InvalidParameter, WrongType), match="distances"):
        Proposal(41, 3)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="value"):
        Proposal(float("nan"), [3])
    assert "41" not in repr(Proposal(41, [7]))
    with pytest.raises(InvalidParameter, match="value") as caught:
        Proposal("41 years", [7])
    assert "41" not in str(caught.value)
    unfit: list[Any] = [5, "12", [], None]
    for bad in unfit:
        with pytest.raises(WrongType, match="bounds"):
            propose("median", [1, 2], bounds=bad, lower=0, upper=9)
    with pytest.raises(InvalidParameter, match="one patient changed"):
        ask.release(Proposal(41, [1], neighbours=CHANGE_ONE.by("patient")))
