"""Correct mechanisms of odd kinds: none may be accused, and nothing may fail on them.

Each is private by construction, whatever its bits. All runs are seeded; a verdict is wrong with
probability at most 1e-6 by the theorem of each attack.
"""

import os
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from lastbit.audit.attacks.noise import Cut, forked, threshold, timing
from lastbit.audit.attacks.registry import ATTACKS, run
from lastbit.audit.attacks.sums import not_a_number
from lastbit.audit.targets.target import SumTarget, Target
from lastbit.errors import InvalidParameter, WrongType
from tests.audit.attacks.leaky import generator

ON_VALUES = [name for name, attack in ATTACKS.items() if not attack.sums and name != "fork"]
HUGE = 1.7e308
DRAW = generator(3)


def target(name, release, claimed, **known):
    options: dict[str, Any] = {"scale": 1, "step": 1, "values": (0, 1)} | known
    return Target(name=name, release=release, claimed=claimed, **options)


def constant(value):
    return lambda _, size: np.full(size, value)


def pad(value, size):
    """A bit behind a one-time pad: nothing is lost, and 0 is claimed."""
    return DRAW.integers(0, 2, size) ^ value


def answers(value, size):
    """Randomised response with ln 3, said with infinities."""
    truth = DRAW.random(size) < 0.75
    return np.where(truth == bool(value), np.inf, -np.inf)


def withheld(value, size):
    """The same with NaN for no."""
    truth = DRAW.random(size) < 0.75
    return np.where(truth == bool(value), 1.0, np.nan)


def leaks_with_delta(value, size):
    """The truth, with probability 1/100; else nothing. That is (0, 1/100)."""
    return np.where(DRAW.random(size) < 0.01, float(value), 7.0)


def wide(value, size):
    """Noise on a grid that is far wider than the values."""
    return np.rint(DRAW.laplace(value, 2.0**60, size) / 2**12) * 2**12


def fine(value, size):
    """A grid of 2**-200, finer than any sum with 1 can be, for both values alike."""
    return np.rint(DRAW.laplace(0, 1, size)) * 2.0**-200 + 0 * value


LN_3 = Fraction("1.0986122886681099")
ODD = [
    target("always 0", constant(0.0), 0),
    target("always a third", constant(1 / 3), 0),
    target("always infinite", constant(np.inf), 0),
    target("always NaN", constant(np.nan), 0),
    target("always huge", constant(HUGE), 0),
    target("huge both ways", lambda _, size: np.resize([HUGE, -HUGE], size), 0),
    target("booleans", lambda _, size: np.zeros(size, bool), 0),
    target("one-time pad", pad, 0),
    target("infinities", answers, LN_3),
    target("withheld", withheld, LN_3),
    target("delta", leaks_with_delta, 0, delta="1/100"),
    target("wide", wide, Fraction(1, 2**59), scale=2.0**60, step=2**12),
    target("fine for both", fine, 0, step=Fraction(1, 2**200)),
    target("tiny scale", constant(1.0), 0, scale=1e-300, step=1e-300),
    target("far values", constant(1e300), 0, values=(1e300, 1e300), scale=1e-10),
    target("both answers 0", fine, 0, values=(0, 1), answers=(0.0, 0.0)),
]


@pytest.mark.thinned(one_in=4)
@pytest.mark.parametrize("name", ON_VALUES)
@pytest.mark.parametrize("odd", ODD, ids=lambda odd: odd.name)
def test_none_is_accused(odd, name):
    verdict = run(name, odd, samples=2_000)
    assert not verdict.broken and verdict.epsilon_lower <= odd.claimed * 2, str(verdict)


@pytest.mark.thinned(one_in=9)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("value", [0.0, np.nan, np.inf])
def test_a_constant_is_no_repeated_noise(value):
    """Parent and child agree, whatever the inputs: nothing is learnt from it."""
    assert not forked(target("constant", constant(value), 0), samples=20).broken


# ---------------------------------------------------------------- and what is wrong is still seen


def test_an_answer_that_is_withheld_is_an_answer():
    """NaN for one value, a number for the other; 0 or NaN; numbers against infinity."""
    for first, second in ((np.nan, 5.0), (0.0, np.nan), (5.0, np.inf), (-np.inf, 5.0)):
        leak = target("leak", lambda v, n, f=first, s=second: np.full(n, s if v else f), 1)
        verdict = threshold(leak, samples=1_000)
        assert verdict.broken and verdict.epsilon_lower > 2


def test_neighbouring_floats_are_told_apart():
    above = np.nextafter(1.0, 2)
    leak = target("leak", lambda v, n: np.full(n, above if v else 1.0), 1)
    assert threshold(leak, samples=1_000).broken


def test_a_cut_says_what_it_holds():
    """Not above is not the same as below, where there is NaN."""
    cut = Cut(place=0.0, above=False, likely=0)
    assert cut.event(np.array([np.nan, -1.0, 1.0])).tolist() == [True, True, False]
    assert str(cut) == "output <= 0.0 or NaN"


def test_a_given_cut_uses_every_sample():
    cut = Cut(place=0.5, above=True, likely=1)
    bare = target("bare", lambda v, n: np.full(n, float(v)), 1)
    verdict = threshold(bare, samples=100, cut=cut)
    assert verdict.samples == 100 and verdict.details["event seen"] == "1 against 0"
    assert verdict.epsilon_lower > threshold(bare, samples=100).epsilon_lower


# ---------------------------------------------------------------- bad parameters, before any draw


def never(*_):
    raise AssertionError("drawn")


@pytest.mark.parametrize("error", [0, 1, -1, 2, "nan"])
@pytest.mark.parametrize("name", ATTACKS)
def test_a_bad_error_is_refused_before_anything_is_drawn(name, error):
    if not ATTACKS[name].sums:
        tried = target("never", never, 1)
    else:
        tried = SumTarget(name="never", release=never, claimed=1, dtype=ATTACKS[name].sums[0])
    with pytest.raises(InvalidParameter, match="error"):
        run(name, tried, error=error)


def test_the_clock_is_not_for_silence():
    verdict = timing(target("silent", constant(np.nan), 0), samples=50)
    assert not verdict.broken and verdict.details["chance if independent"] == "at most 1"


@pytest.mark.parametrize("outputs", [[[1.0]], "text", []])
def test_what_is_no_list_of_numbers_is_an_error_and_no_refusal(outputs):
    wrong = SumTarget(name="wrong", release=lambda data, bounds, size: outputs, claimed=1)
    with pytest.raises((InvalidParameter, WrongType), match="release"):
        not_a_number(wrong)
    with pytest.raises((InvalidParameter, WrongType), match="release"):
        timing(target("wrong", lambda v, n: outputs, 0), samples=50)


# ---------------------------------------------------------------- witnesses


def test_the_precision_witness_is_true_where_there_is_no_grid():
    """Every double is a sum with 0: the witness may not speak of sums."""
    leak = target("leak", lambda v, n: np.full(n, 1e-30 if v == 0 else 0.0), 1, answers=(0.0, 0.0))
    verdict = run("precision", leak, samples=1_000)
    assert verdict.broken and "sum" not in verdict.witness


def test_witnesses_show_all_digits():
    leak = target(
        "leak",
        lambda v, n: np.full(n, float(v)) + 2.0**-60 * (v < 1),
        1,
        values=(0.123456789, 1.123456788),
    )
    assert "1.123456788" in run("precision", leak, samples=1_000).witness
