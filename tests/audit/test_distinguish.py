"""Broken mechanisms are found, right ones are not accused, and every run can be repeated."""

import dataclasses
import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from auditing.benchmarks import benchmark

from lastbit.audit import result as results
from lastbit.audit.blackbox import sampled
from lastbit.audit.blackbox.distinguish import (
    distinguish,
    distinguish_by_law,
    distinguish_by_sampling,
)
from lastbit.audit.blackbox.events import epsilon_objective
from lastbit.audit.bounds import epsilon_lower, ratio_lower
from lastbit.audit.inputs import SeededRandom
from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import probability_lower
from lastbit.mechanisms.laplace import Laplace
from lastbit.mechanisms.randomized_response import RandomizedResponse
from lastbit.sampling.deterministic import Seeded
from tests.audit.fitting import best_events


def seeded(name: str, seed: int = 0):
    """A benchmark that draws from a fixed stream."""
    found, bits = benchmark(name), Seeded(seed)
    return lambda value, size: found.sampler(value, size, bits)


def coin(seed: int, p: float, q: float):
    """True with probability p for input 0, with q for input 1."""
    bits = Seeded(seed)

    def flip(value, size):
        words = bits.fill(8 * size).view(np.uint64)
        return words < np.uint64(int((q if value else p) * 2**63) * 2)

    return flip


def audit(mechanism, pairs, **options):
    options = {"samples": 6000, "processes": 1, **options}
    return distinguish_by_sampling(mechanism, pairs, **options)


# ---------------------------------------------------------------- what is found


def test_textbook_laplace_noise_is_broken_by_its_last_bits():
    result = audit(seeded("float Laplace"), (0.0, 1.0), epsilon="0.1", samples=20_000)
    assert result.broken
    assert result.epsilon_lower > 3
    assert result.delta_lower > 0
    assert "REFUTED" in str(result)


@pytest.mark.evidence
def test_noise_of_the_wrong_scale_is_found():
    result = audit(seeded("histogram 2"), list(benchmark("histogram 2").pairs))
    assert 4.6 < result.epsilon_lower < 10


@pytest.mark.evidence
def test_control_flow_is_found():
    result = audit(seeded("sparse vector 5"), list(benchmark("sparse vector 5").pairs))
    assert result.epsilon_lower > 2


def test_the_bound_comes_close_where_the_truth_is_plain():
    result = audit(coin(1, 0.75, 0.25), (0, 1), samples=200_000)
    assert 0.97 * math.log(3) < result.epsilon_lower < math.log(3)


def test_the_inputs_are_named_in_the_order_of_the_event():
    loud = coin(1, 0.01, 0.9)
    result = audit(loud, (0, 1))
    assert result.inputs == (1, 0)
    assert result.hits > result.other_hits
    assert result.trials + result.other_trials == 12_000
    assert 5600 < result.trials < 6400  # a coin decides each: eight deviations


def test_delta_is_what_happens_beyond_epsilon():
    """The truth is published once in a hundred runs: delta is 1/100, whatever epsilon."""
    bits = Seeded(5)

    def leaky(value, size):
        words = bits.fill(8 * size).view(np.uint64)
        return np.where(words % 100 == 0, value, -1)

    result = audit(leaky, (3, 4), epsilon=1, delta="0.02", samples=60_000)
    assert result.epsilon_lower == 0.0
    assert 0.005 < result.delta_lower < 0.01
    assert not result.broken


@pytest.mark.evidence
def test_words_and_lists_are_outputs_too():
    flip = coin(2, 0.8, 0.1)
    say = audit(lambda v, n: ["yes" if b else "no" for b in flip(v, n)], (0, 1), samples=4000)
    assert say.epsilon_lower > 1
    long = audit(lambda v, n: [[1] * (1 + int(b)) for b in flip(v, n)], (0, 1), samples=4000)
    assert long.epsilon_lower > 1


ANSWERS = {
    "words": ("yes", "no"),
    "bytes": (b"yes", b"no"),
    "nothing": (None, 1.0),
    "mixed": (("a", 0.5, None), ("b", 0.5, None)),
    "lengths": ([1.0, 2.0], [1.0]),
    "empty": ([], [1]),
    "nan": (math.nan, 1.0),
    "infinite": (math.inf, -math.inf),
    "huge": (10**400, 10**401),
    "beyond a word": (2**70, -(2**70)),
    "scalars": (np.float32(1.5), np.int8(3)),
    "mappings": ({"a": 1, "b": 2}, {"b": 2, "a": 2}),
    "sets": ({1, 2}, {1}),
    "rationals": (Fraction(1, 3), Fraction(2, 3)),
    "complex": (1j, 1 + 0j),
    "least": (5e-324, 0.0),
    "greatest": (1.7e308, -1.7e308),
    "arrays": (np.ones(2), np.zeros(3)),
}


@pytest.mark.thinned(one_in=12)
@pytest.mark.parametrize("answers", ANSWERS.values(), ids=ANSWERS)
def test_outputs_of_any_kind_are_told_apart(answers):
    flip = coin(4, 0.9, 0.2)
    result = audit(lambda v, n: [answers[int(b)] for b in flip(v, n)], (0, 1), samples=400)
    assert result.epsilon_lower > 0.5
    json.dumps(result.to_dict(), allow_nan=False)


@pytest.mark.evidence
def test_generators_without_an_end_and_tiny_budgets():
    flip = coin(4, 0.9, 0.2)

    def endless():
        while True:
            yield 0, 1

    assert audit(flip, endless(), samples=50).samples > 0
    assert audit(flip, (0, 1), samples=1).epsilon_lower == 0.0
    hurried = distinguish_by_sampling(flip, (0, 1), seconds=1e-9, processes=1)
    assert hurried.samples < 2000


def test_equal_inputs_are_never_told_apart():
    result = audit(hiding(1), (0, 0), epsilon=0)
    assert result.epsilon_lower == result.delta_lower == 0.0
    assert not result.broken


def test_a_mechanism_of_one_output_is_called_again_and_again():
    flip = coin(3, 0.9, 0.1)
    result = audit(lambda value: bool(flip(value, 1)[0]), (0, 1), samples=1500)
    assert result.epsilon_lower > 0.5


# ---------------------------------------------------------------- nobody is accused wrongly


@pytest.mark.thinned(one_in=36)
@pytest.mark.parametrize("name", ["histogram 1", "truncated geometric", "RAPPOR", "noisy max 1"])
def test_right_mechanisms_are_not_accused(name):
    found = benchmark(name)
    result = audit(seeded(name), list(found.pairs)[:2], epsilon=found.epsilon, samples=3000)
    assert not result.broken


def hiding(seed: int):
    """A mechanism whose output has nothing to do with its input: every true bound is 0."""
    bits = Seeded(seed)
    return lambda value, size: bits.fill(4 * size).reshape(size, 4).astype(float)


def reused(seed: int) -> float:
    """A mutant: the event is counted on outputs that it was fitted to."""
    draw = hiding(seed)
    x, y = draw(0, 300), draw(1, 300)
    goal = epsilon_objective(300, 0.0)
    # each row thrice, so that the three parts of the search are all alike
    one, two = (np.repeat(side, 3, axis=0) for side in (x, y))
    event = best_events(one, two, [goal], SeededRandom(0))[0][0]
    sides = (y, x) if event.swapped else (x, y)
    hits, others = (int(event.holds(side).sum()) for side in sides)
    return epsilon_lower(hits, 300, others, 300, error=Fraction(1, 20))


@pytest.mark.evidence
def test_the_error_budget_covers_all_that_was_tried():
    """Hundreds of events are tried; were that not paid for, most runs would accuse."""
    runs, certain = 12, Fraction(1, 10**9)
    honest = mutant = 0
    for seed in range(runs):
        result = audit(hiding(seed), (0, 1), samples=300, error=Fraction(1, 20), seed=seed)
        honest += result.epsilon_lower > 0
        mutant += reused(seed) > 0
    assert probability_lower(honest, runs, error=certain) <= 1 / 20
    assert probability_lower(mutant, runs, error=certain) > 1 / 20


def test_every_reading_has_its_share_of_the_error(monkeypatch):
    shares = {}

    def noting(true):
        def noted(*counts, error, **options):  # one that has priors is for all rounds
            shares[options.get("prior"), options.get("priors"), error] = error
            return true(*counts, error=error, **options)

        return noted

    monkeypatch.setattr(results, "epsilon_lower", noting(epsilon_lower))
    monkeypatch.setattr(results, "ratio_lower", noting(ratio_lower))
    monkeypatch.setattr(results, "delta_lower", lambda *counts, **options: 0.0)  # the same ends
    monkeypatch.setattr(sampled, "_settled", lambda *facts: False)
    budget = Fraction(1, 1000)
    options: dict[str, Any] = {"epsilon": 1, "seconds": 0.2, "error": budget, "processes": 1}
    for delta, chances in ((0, (0.6, 0.5)), ("0.01", (0.6, 0.5)), (0, (0.02, 0.01))):
        shares.clear()
        distinguish_by_sampling(coin(1, *chances), (0, 1), delta=delta, **options)
        assert len(shares) >= 2  # two events, at the end and after all rounds
        assert 0 < sum(shares.values()) <= budget


# ---------------------------------------------------------------- again, and in parallel


def facts(result):
    return {**result.to_dict(), "seconds": None}


@pytest.mark.evidence
def test_a_seed_and_a_repeating_mechanism_repeat_the_audit():
    pairs = list(benchmark("prefix sums").pairs)[:2]
    one, two = (audit(seeded("prefix sums"), pairs, seed=7, samples=1000) for _ in range(2))
    assert facts(one) == facts(two)
    json.dumps(one.to_dict())


def test_processes_share_the_error_and_the_pairs():
    pairs = [(0, 0), (0, 0), (0, 1), (1, 1)]
    result = audit(coin(1, 0.9, 0.1), pairs, processes=2, epsilon=1)
    assert set(result.inputs) == {0, 1}
    assert result.broken
    again = audit(coin(1, 0.9, 0.1), pairs, processes=2, epsilon=1)
    assert facts(again) == facts(result)


def test_a_failure_in_a_process_is_told():
    def failing(value, size):
        raise ZeroDivisionError("no")

    for processes in (1, 2):
        with pytest.raises(ZeroDivisionError):
            audit(failing, [(0, 1), (1, 2)], processes=processes)


class Stubborn(Exception):
    """Cannot be made again from its message alone."""

    def __init__(self, one, two):
        super().__init__(one)


@pytest.mark.parametrize("failure", [Stubborn(1, 2), KeyError(lambda: 0)])
def test_a_failure_that_cannot_be_sent_is_told_by_its_kind(failure):
    def failing(value, size):
        raise failure

    with pytest.raises(RuntimeError, match=type(failure).__name__):
        audit(failing, [(0, 1), (1, 2)], processes=2)


def test_progress_is_told():
    told = []
    audit(coin(1, 0.9, 0.1), [(0, 1)] * 5, progress=lambda share, text: told.append((share, text)))
    shares = [share for share, _ in told]
    assert shares[-1] == 1.0
    assert all(0 <= share <= 1 for share in shares)


def test_time_is_a_limit_too():
    result = distinguish_by_sampling(coin(1, 0.9, 0.1), (0, 1), seconds=0.5, processes=1)
    assert result.epsilon_lower > 1


# ---------------------------------------------------------------- by law


def test_our_own_laws_decide():
    result = distinguish(Laplace(sensitivity=1, epsilon="0.1"), [(0, 1), (5, 4)], epsilon="0.1")
    assert result.exact
    assert not result.broken
    assert result.epsilon_lower == pytest.approx(0.1, rel=1e-12)
    response = distinguish(RandomizedResponse(epsilon=1), (0, 1), epsilon="0.99")
    assert response.broken


def test_a_curator_passes_the_black_box_and_not_the_law():
    tiny = Fraction(1, 2**60)
    bits = Seeded(1)

    class Curator:
        def __call__(self, value, size):
            words = bits.fill(8 * size).view(np.uint64)
            return np.where(words < 16, value, (words & np.uint64(1)).astype(float))

        def law(self, value):
            fair = {0: Fraction(1, 2) - tiny / 2, 1: Fraction(1, 2) - tiny / 2}
            return {**fair, value: fair.get(value, 0) + tiny}

    assert audit(Curator(), (5, 6), epsilon=1).epsilon_lower == 0.0
    result = distinguish(Curator(), (5, 6), epsilon=1)
    assert result.epsilon_lower == math.inf
    assert result.broken
    assert 0 < (result.delta_lower or 0) <= tiny
    assert result.to_dict()["epsilon_lower"] == "inf"


def test_a_law_of_unknown_kind_falls_back_on_samples():
    class Odd:
        def __call__(self, value, size):
            return np.full(size, value)

        def law(self, value):
            return object()

    result = distinguish(Odd(), (0, 1), samples=2000, processes=1)
    assert not result.exact
    assert result.epsilon_lower > 3


def test_no_law_no_verdict_by_law():
    with pytest.raises(InvalidParameter):
        distinguish_by_law(lambda value: value, (0, 1))


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": -1},
        {"epsilon": math.nan},
        {"epsilon": "much"},
        {"delta": 1},
        {"delta": -1},
        {"error": 0},
        {"error": 1},
        {"error": True},
        {"seconds": 0},
        {"seconds": math.inf},
        {"samples": 0},
        {"samples": 2**40},
        {"samples": 1.5},
        {"seed": -1},
        {"processes": 0},
        {"processes": True},
    ],
)
def test_parameters_without_meaning_are_refused_before_a_draw(options):
    def never(value, size):
        raise AssertionError("drawn")

    with pytest.raises(InvalidParameter):
        audit(never, (0, 1), **options)


@pytest.mark.parametrize("mechanism", [None, 5, "laplace"])
def test_what_cannot_be_called_is_refused(mechanism):
    with pytest.raises(WrongType):
        audit(mechanism, (0, 1))


def test_too_few_outputs_are_refused():
    with pytest.raises(InvalidParameter):
        audit(lambda value, size: np.zeros(3), (0, 1))


def test_a_mechanism_without_noise_and_without_a_difference():
    result = audit(lambda value, size: np.zeros(size), (0, 1), epsilon=1)
    assert result.epsilon_lower == result.delta_lower == 0.0
    assert result.event == "none"
    assert dataclasses.is_dataclass(result)
