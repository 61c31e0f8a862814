"""A law is an object's own word; its releases are held against it, and seldom wrongly so."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb

from lastbit.audit.blackbox.distinguish import distinguish, distinguish_by_law
from lastbit.audit.blackbox.exact_laws import exact_finding
from lastbit.audit.blackbox.releases import (
    MOST_FITTED,
    _contradiction,
    _off,
    _stated,
    fitted_to_list,
    fitted_to_multiples,
    law_trial,
    release_of,
)
from lastbit.audit.targets.target import as_release
from lastbit.errors import InvalidParameter
from lastbit.exact.ball import working_precision
from lastbit.laws.discrete import DiscreteLaplace
from lastbit.laws.transformed import Shifted
from lastbit.mechanisms.exponential import Exponential
from lastbit.mechanisms.gaussian import Gaussian
from lastbit.mechanisms.laplace import Laplace
from lastbit.mechanisms.noisy_max import ReportNoisyMax
from lastbit.mechanisms.permute_and_flip import PermuteAndFlip
from lastbit.mechanisms.randomized_response import RandomizedResponse
from lastbit.sampling.deterministic import Seeded
from tests.evidence import late

TRUE = Laplace(sensitivity=1, epsilon="1/2")


class Stated:
    """Releases by one rule and states the law of another mechanism."""

    def __init__(self, release: Callable[[Any], Any], law: Callable[[Any], Any] = TRUE.law) -> None:
        self.release, self.law = release, law


def coins(seed: int, p: float) -> Callable[[], bool]:
    bits = Seeded(seed)
    return lambda: bool(bits.fill(4).view(np.uint32)[0] < p * 2.0**32)


def noise(epsilon: str) -> Callable[[int], int]:
    return Laplace(sensitivity=1, epsilon=epsilon).release


def signed(value: int) -> float:
    found = float(TRUE.release(value))
    return -0.0 if found == 0 and value else found


tenth = coins(5, 0.1)
LIARS: dict[str, Callable[[Any], Any]] = {
    "releases the value": lambda value: value,
    "half the noise": noise("1"),
    "noise a quarter narrower": noise("0.65"),
    "twice the noise": noise("1/4"),
    "noise times two": lambda value: value + 2 * (noise("1")(0)),
    "rounds it to even": lambda value: 2 * (TRUE.release(value) // 2),
    "one tenth the value": lambda value: value if tenth() else TRUE.release(value),
    "off the grid": lambda value: TRUE.release(value) + 0.5 * value,
    "a word": lambda value: str(TRUE.release(value)),
    "nothing": lambda value: None,
    "not a number": lambda value: math.nan,
    "minus zero": signed,
    "another type for each input": lambda value: (float if value else int)(TRUE.release(value)),
    "a truth value": lambda value: TRUE.release(value) > 0,
    "shifted by one": lambda value: TRUE.release(value) + 1,
    "one-sided": lambda value: value + abs(TRUE.release(0)),
}


@pytest.mark.thinned(one_in=20)
@pytest.mark.parametrize("name", LIARS)
def test_a_false_law_is_contradicted_and_samples_decide(name):
    result = distinguish(
        Stated(LIARS[name]), (0, 1), epsilon="1/2", samples=400, seconds=1, processes=1
    )
    assert result.contradiction is not None
    assert result.basis == "samples" and not result.exact
    assert result.error == Fraction(1, 10**6)
    assert "the law is not that of release" in result.rests_on
    assert str(result).startswith("THE LAW IS NOT THAT OF RELEASE")
    assert result.to_dict()["contradiction"] == result.contradiction


def test_an_object_that_releases_its_input_is_convicted_whatever_law_it_states():
    result = distinguish(
        Stated(lambda value: value), (0, 1), epsilon="1/2", samples=2000, processes=1
    )
    assert result.broken and result.epsilon_lower > 4
    by_law = distinguish_by_law(Stated(lambda value: value), (0, 1), epsilon="1/2")
    assert by_law is not None and not by_law.broken
    assert by_law.rests_on.startswith("the law alone")


UTILITIES = ([0, 1, 3], [1, 1, 2])
HONEST: dict[str, tuple[Any, Any]] = {
    "Laplace": (TRUE, (0, 1)),
    "Laplace on a grid": (Laplace(sensitivity=1, epsilon=1, grid="1/8"), (0.25, 1.25)),
    "Gaussian": (Gaussian(sensitivity=1, rho="1/2"), (3, 4)),
    "randomized response": (RandomizedResponse(epsilon=1), (0, 1)),
    "exponential": (Exponential(sensitivity=1, epsilon=1), UTILITIES),
    "noisy max": (ReportNoisyMax(sensitivity=1, epsilon=1), UTILITIES),
    "permute and flip": (PermuteAndFlip(sensitivity=1, epsilon=1), UTILITIES),
}


@pytest.mark.thinned(one_in=4)
@pytest.mark.parametrize("name", HONEST)
def test_our_own_mechanisms_are_not_contradicted(name):
    mechanism, pair = HONEST[name]
    trial = law_trial(
        as_release(mechanism.release), mechanism.law, [pair], error=Fraction(1, 10**6)
    )
    if trial.unheard is None:
        assert trial.contradiction is None
        assert trial.releases == 4096
    else:
        assert exact_finding(*map(mechanism.law, pair), epsilon=None, delta=Fraction(0)) is None


def test_what_a_verdict_rests_on_is_said():
    assert distinguish(TRUE, (0, 1)).rests_on == "the law, which 4,096 releases do not contradict"

    class OnlyALaw:
        law = staticmethod(TRUE.law)

    assert "no release" in distinguish(OnlyALaw(), (0, 1)).rests_on

    class Refusing(OnlyALaw):
        def release(self, value):
            raise ValueError

    assert distinguish(Refusing(), (0, 1)).rests_on.endswith("release raises ValueError")


@pytest.mark.evidence
def test_many_inputs_share_the_releases():
    drawn: list[int] = []

    def counting(value):
        drawn.append(value)
        return TRUE.release(value)

    pairs = [(k, k + 1) for k in range(100)]
    result = distinguish(Stated(counting), pairs)
    assert result.contradiction is None
    assert result.releases == len(drawn) <= 4096
    assert len(set(drawn)) <= 16 and result.inputs[0] in drawn


def test_masses_must_fit_the_cumulative_function():
    class Crooked(Shifted):
        def mass(self, value):
            return super().mass(value) / 2

    crooked = Crooked(DiscreteLaplace(2), 0)
    with pytest.raises(InvalidParameter, match="masses"):
        exact_finding(crooked, crooked, epsilon=None, delta=Fraction(0))


def test_releases_come_from_the_method_or_from_the_call():
    assert release_of(TRUE) == TRUE.release
    assert release_of(len) is len
    assert release_of(3) is None


# ---------------------------------------------------------------- how often it is wrong


def binomial(trials: int, p: Fraction) -> list[Fraction]:
    return [math.comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(trials + 1)]


@pytest.mark.thinned(one_in=9)
@pytest.mark.parametrize("share", [late(Fraction(1, 2)), Fraction(1, 7), late(Fraction(99, 100))])
@pytest.mark.parametrize("error", [late(Fraction(1, 3)), Fraction(1, 50)])
def test_a_true_law_is_contradicted_as_seldom_as_promised(share, error):
    """Summed over all counts in both halves of 60 releases of a coin, whose law lists two outputs.

    Events are fitted to the first half; the order within a half does not matter.
    """
    law = {1: share, 0: 1 - share}
    with working_precision(128):
        stated = _stated(law, 0)
    assert stated is not None
    wrong, half = Fraction(0), binomial(30, share)
    for hits, chance in enumerate(half):
        for more, other in enumerate(half):
            outputs = [1] * hits + [0] * (30 - hits) + [1] * more + [0] * (30 - more)
            wrong += chance * other * (_contradiction(stated, outputs, {}, error) is not None)
    assert wrong <= error


def test_events_fitted_to_what_is_counted_would_contradict_true_laws():
    """The mutant that does not split: what was seen is seen again, always."""
    keys = [3 * k for k in range(64)]
    shares = {k: arb(1) / 1000 for k in range(1000)}
    events = fitted_to_list(shares, keys)
    assert _off(events, keys, Fraction(1, 10**6)) is not None


def test_a_mutant_that_looks_at_estimates_would_contradict_every_law():
    share = Fraction(1, 2)
    wrong = sum(
        chance for hits, chance in enumerate(binomial(60, share)) if Fraction(hits, 60) != share
    )
    assert wrong > Fraction(4, 5)


@pytest.mark.evidence
def test_a_hundred_trials_of_a_true_law_contradict_few():
    """With an error of 1/20: more than 30 of 100 have a chance below 2**-40 (exact tail)."""
    assert sum(binomial(100, Fraction(1, 20))[31:]) < Fraction(1, 2**40)
    found = sum(
        law_trial(
            as_release(TRUE.release), TRUE.law, [(0, 1)], error=Fraction(1, 20), releases=200
        ).contradiction
        is not None
        for _ in range(100)
    )
    assert found <= 30


# ---------------------------------------------------------------- wide laws

THOUSAND = Laplace(sensitivity=1, epsilon="1/1000")
MIDDLE = Laplace(sensitivity=1, epsilon="1/200")


def classes(mechanism: Laplace, modulus: int) -> Callable[[Any, int], Any]:
    """The noise brought to multiples of a modulus, beside the value."""

    def release(value: int, size: int) -> Any:
        drawn = np.asarray(mechanism.release(np.full(size, value)))
        return drawn - (drawn - value) % modulus

    return release


def hollow(value: int, size: int) -> Any:
    drawn = np.asarray(THOUSAND.release(np.zeros(size, int)))
    return value + np.where(abs(drawn) < 150, 400, drawn)


def even(names: list[Any]) -> Callable[[Any], dict[Any, Fraction]]:
    return lambda value: dict.fromkeys(names, Fraction(1, len(names)))


NAMES = [f"name{k}" for k in range(1000)]
generator = np.random.default_rng(7)
WIDE: dict[str, tuple[Callable[[Any, int], Any], Callable[[Any], Any]]] = {
    "one of 10,000 numbers": (
        lambda value, size: np.full(size, 5000 + value), even(list(range(10_000)))),
    "one of 1,000 names": (lambda value, size: [f"name{900 + value}"] * size, even(NAMES)),
    "a tenth of 1,000 names": (
        lambda value, size: [NAMES[k] for k in generator.integers(0, 100, size)], even(NAMES)),
    "the lower half of 10,000": (
        lambda value, size: generator.integers(0, 5000, size), even(list(range(10_000)))),
    "every third of 10,000": (
        lambda value, size: 3 * generator.integers(0, 3333, size), even(list(range(10_000)))),
    "parity at scale 1000": (classes(THOUSAND, 2), THOUSAND.law),
    "residues modulo 3 at scale 1000": (classes(THOUSAND, 3), THOUSAND.law),
    "residues modulo 13 at scale 200": (classes(MIDDLE, 13), MIDDLE.law),
    "nothing near the value": (hollow, THOUSAND.law),
}  # fmt: skip


@pytest.mark.thinned(one_in=27)
@pytest.mark.parametrize("name", WIDE)
def test_a_wide_law_with_releases_of_few_outputs_is_contradicted(name):
    """None of these outputs is likely by the law, and no event fixed beforehand saw them."""
    release, law = WIDE[name]
    for _ in range(3):
        trial = law_trial(release, law, [(0, 1)], error=Fraction(1, 8 * 10**6))
        assert trial.contradiction is not None


def test_residues_are_seen_where_outputs_do_not_come_again():
    """Half of the releases of 4,096 are not enough to see outputs twice at scale 4000."""
    keys = list(range(-3000, 3000, 2))
    with working_precision(128):
        events = fitted_to_multiples(DiscreteLaplace(1500), Fraction(1), keys)
    assert len(events) <= MOST_FITTED
    by_name = {event.name: event for event in events}
    assert abs(by_name["0 modulo 2"].low - Fraction(1, 2)) < Fraction(1, 1000)
    assert by_name["0 modulo 2"].high - by_name["0 modulo 2"].low < Fraction(1, 1000)


def shares_of(law: DiscreteLaplace, holds: Callable[[int], bool]) -> float:
    with working_precision(128):
        return sum(float(law.mass(k).mid()) for k in range(-800, 801) if holds(k))


def test_the_probabilities_of_fitted_events_are_those_of_the_law():
    law = DiscreteLaplace(20)
    drawn = np.random.default_rng(3).laplace(0, 20, 500).round().astype(int).tolist()
    with working_precision(128):
        events = fitted_to_multiples(law, Fraction(1), drawn)
        listed = fitted_to_list({k: law.mass(k) for k in range(-800, 801)}, drawn)
    assert 10 < len(events) <= MOST_FITTED and 10 < len(listed) <= MOST_FITTED
    for event in (*events, *listed):
        truth = shares_of(law, event.holds)
        assert event.low - Fraction(1, 10**8) <= truth <= event.high + Fraction(1, 10**8)
        assert event.high - event.low < Fraction(1, 1000)


RIGHT: dict[str, tuple[Any, Any]] = {
    **HONEST,
    "Laplace of scale 1000": (THOUSAND, (0, 1)),
    "Laplace of scale 1/3": (Laplace(sensitivity=1, epsilon=3), (0, 1)),
}


@pytest.mark.thinned(one_in=16)
@pytest.mark.parametrize("name", RIGHT)
def test_right_mechanisms_are_contradicted_no_oftener_than_promised(name):
    """30 trials with an error of .3: more than 27 have a chance below 1e-12 if it is attained."""
    assert sum(binomial(30, Fraction(3, 10))[28:]) < Fraction(1, 10**12)
    mechanism, pair = RIGHT[name]
    trials = [
        law_trial(
            as_release(mechanism.release), mechanism.law, [pair],
            error=Fraction(3, 10), releases=256,
        )
        for _ in range(30 if name != "Laplace of scale 1000" else 6)
    ]  # fmt: skip
    assert sum(trial.contradiction is not None for trial in trials) <= 27


@pytest.mark.evidence
def test_a_law_in_balls_is_believed_as_far_as_its_balls_say():
    """Wide enclosures widen every event: no contradiction comes of them."""
    wide = arb(0.5, 0.1)
    with working_precision(128):
        events = fitted_to_list({0: wide, 1: wide}, [0] * 40 + [1] * 60)
    assert all(event.low <= Fraction(4, 10) or event.high >= Fraction(6, 10) for event in events)
    assert _off(events, [0] * 430 + [1] * 570, Fraction(1, 3)) is None
