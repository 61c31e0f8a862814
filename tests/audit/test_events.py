"""The events found are the ones that theory says are best."""

import math

import numpy as np
import pytest

from lastbit.audit.blackbox.events import (
    Reached,
    cuts_of,
    delta_objective,
    epsilon_objective,
)
from lastbit.audit.blackbox.features import rows
from lastbit.audit.blackbox.tables import Finder
from lastbit.audit.inputs import SeededRandom
from tests.audit.fitting import best_events

SIZE = 60_000


def uniforms(seed: int, columns: int = 1) -> np.ndarray:
    """Uniform numbers that repeat: the auditor's own choices will do here."""
    step = math.sqrt(2) if seed else math.sqrt(3)
    offset = SeededRandom(seed).word() / 2**64
    places = np.arange(SIZE * columns).reshape(columns, SIZE).T
    primes = np.sqrt(np.array([2, 3, 5, 7, 11, 13, 17, 19])[:columns])
    return np.modf(offset + places * primes + step * seed)[0]


def best(x, y, objective=None):
    goal = epsilon_objective(1 << 22, 0.0) if objective is None else objective
    return best_events(rows(x, SIZE), rows(y, SIZE), [goal], SeededRandom(0))[0][0]


def rate(event, outputs):
    return event.holds(rows(outputs, len(outputs))).mean()


def test_a_coin_is_told_by_its_faces():
    x, y = uniforms(1) < 0.6, uniforms(2) < 0.3
    event = best(x, y)
    # heads: ln(0.6/0.3) = 0.69; tails, exchanged: ln(0.7/0.4) = 0.56
    assert not event.swapped
    assert rate(event, np.array([True])) == 1.0
    assert rate(event, np.array([False])) == 0.0
    assert math.log(2) - 0.1 < event.promise < math.log(2)  # a cautious guess
    told = event.described().sentence
    assert told == "the output is 1" or "[1, inf)" in told


def test_laplace_noise_is_told_by_a_half_line():
    u = uniforms(1)[:, 0], uniforms(2)[:, 0]
    noise = [np.sign(v - 0.5) * -np.log(1 - 2 * np.abs(v - 0.5)) for v in u]
    # on a grid: else its last bits would tell more
    one, two = (np.round(n * 2**10) / 2**10 for n in (noise[0] + 1, noise[1]))
    event = best(one, two)
    assert 0.9 < event.promise < 1
    far = math.pi * 5
    assert rate(event, np.array([far, -far])) == 0.5  # one of the two tails


def test_last_bits_are_seen():
    """Even against odd multiples of 2**-30: no magnitude shows it."""
    whole = np.floor(uniforms(1) * 2**20)
    event = best(whole * 2 * 2.0**-30, (whole * 2 + 1) * 2.0**-30)
    assert event.promise > 5
    told = event.described().sentence
    assert "binary place" in told or "modulo" in told or "bits" in told


def test_structure_is_seen():
    """Equal entries against independent ones: every single entry has the same law."""
    u = uniforms(1, 2) < 0.5
    event = best(np.stack([u[:, 0], u[:, 0]], axis=1), u)
    assert event.swapped
    assert event.promise > 5


def test_the_objective_decides():
    """A rare certain event is best for epsilon, a frequent one for delta."""
    u, v = uniforms(1)[:, 0], uniforms(2)[:, 0]
    x = np.where(u < 0.02, 2.0, np.where(u < 0.7, 1.0, 0.0))
    y = np.where(v < 0.3, 1.0, 0.0)
    rare = best(x, y)
    frequent = best(x, y, delta_objective(1 << 22, 0.1))
    assert rate(rare, np.array([0.0, 1.0, 2.0])) == pytest.approx(1 / 3)
    assert rate(frequent, np.array([0.0, 1.0, 2.0])) == pytest.approx(2 / 3)
    best_possible = 0.7 - math.exp(0.1) * 0.3
    assert best_possible - 0.05 < frequent.promise < best_possible  # a cautious guess


def test_an_event_is_a_set_of_outputs():
    u, v = uniforms(1, 3), uniforms(2, 3)
    event = best(u + 0.1, v)
    table = rows(u, SIZE)
    together = event.holds(table)
    assert np.array_equal(together[:100], event.holds(table[:100]))
    assert np.array_equal(together[::-1], event.holds(table[::-1]))


def test_nothing_tells_constants_apart():
    same, goal = np.ones(SIZE), epsilon_objective(9, 0.0)
    assert best_events(rows(same, SIZE), rows(same, SIZE), [goal], SeededRandom(0)) == [[]]


def test_a_threshold_is_refined_on_fresh_scores():
    u, v = uniforms(1)[:, 0] + 0.2, uniforms(2)[:, 0]
    goal = epsilon_objective(1 << 22, 0.0)
    event = best(u, v, goal)
    scores = event.score(rows(u, SIZE), {}), event.score(rows(v, SIZE), {})
    tally = Reached(event.tables, cuts_of(*(score[: SIZE // 2] for score in scores)))
    for side, score in enumerate(scores):
        tally.add(side, score[: SIZE // 3])
        tally.add(side, score[SIZE // 3 :])
    again = next(e for e in tally.best(goal) if e.swapped == event.swapped)
    assert again.promise > event.promise  # three times the outputs: less caution is needed


@pytest.mark.parametrize("kind", ["even", "tails", "far apart", "crowded", "few"])
def test_a_finder_finds_what_bisection_finds(kind):
    """At the edges, beside them, between and beyond, for edges of every kind."""
    even = np.arange(300) / 7
    edges = {
        "even": even,
        "tails": np.sort(np.concatenate([-(2.0 ** np.arange(9)), even, [1e4]])),
        "far apart": np.sort(np.concatenate([[-(2.0**1000), 2.0**1001], even])),
        "crowded": np.sort(np.concatenate([np.nextafter(even, 1e9), even])),
        "few": even[:3],
    }[kind]
    beside = [np.nextafter(edges, np.inf), np.nextafter(edges, -np.inf), edges + 0.01]
    values = np.concatenate([edges, *beside, [-1e300, 1e300, 2.0**1002, -(2.0**1002)]])
    find = Finder.of(edges)
    assert np.array_equal(find(values), np.searchsorted(edges, values, side="right"))
    assert (find.below is None) == (kind in ("far apart", "few"))


@pytest.mark.parametrize("columns", [1, 3])
def test_a_compiled_event_is_the_same_set(columns):
    u, v = uniforms(1, columns), uniforms(2, columns)
    sides, goal = (rows(u + 0.1, SIZE), rows(v, SIZE)), epsilon_objective(1 << 22, 0.0)
    for event in best_events(*sides, [goal], SeededRandom(0), most=2)[0]:
        table = rows(u, SIZE)
        assert np.array_equal(event.compiled().holds(table), event.holds(table))
