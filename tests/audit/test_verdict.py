import json
import math
import pickle
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, strategies as st

from lastbit.audit.bounds import exceeds
from lastbit.audit.result import Verdict
from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import rounded_down, rounded_up


def verdict(**changes):
    given: dict[str, Any] = dict(
        name="precision",
        target="noise",
        broken=True,
        epsilon_lower=2.0,
        claimed=Fraction(1),
        error=Fraction(1, 10**6),
        samples=100,
        seconds=0.5,
        witness="a number",
        details={"seen": "often"},
    )
    return Verdict(**(given | changes))


def test_it_says_what_it_found():
    text = str(verdict())
    for part in ("precision on noise: BROKEN", "at least 2", "claimed was 1", "1e-6", "a number"):
        assert part in text
    assert "resisted" in str(verdict(broken=False, epsilon_lower=0.5))
    assert "nothing shown" in str(verdict(claimed=None, broken=False, epsilon_lower=0.0))


def test_it_becomes_json_and_pickles():
    plain = json.loads(json.dumps(verdict().to_dict()))
    assert plain["claimed"] == "1" and plain["error"] == "1/1000000" and plain["broken"] is True
    infinite = verdict(epsilon_lower=math.inf).to_dict()
    assert json.loads(json.dumps(infinite, allow_nan=False))["epsilon_lower"] == "inf"
    assert pickle.loads(pickle.dumps(verdict())) == verdict()


@pytest.mark.parametrize(
    "changes",
    [
        dict(broken=False),
        dict(epsilon_lower=1.0),
        dict(epsilon_lower=0.5),
        dict(epsilon_lower=math.nan, broken=False),
        dict(epsilon_lower=-1.0, broken=False),
        dict(error=Fraction(1)),
        dict(error=Fraction(-1)),
        dict(samples=-1),
        dict(samples=1.5),
        dict(broken=1),
        dict(witness=None),
    ],
)
def test_an_inconsistent_verdict_is_refused(changes):
    with pytest.raises((InvalidParameter, WrongType)):
        verdict(**changes)


@given(st.floats(0, 1e6), st.fractions(0, 10**6))
def test_the_comparison_is_exact(lower, claimed):
    assert exceeds(lower, claimed) == (Fraction(lower) > claimed)


def test_one_third_is_not_exceeded_by_its_float():
    """A float just below 1/3: a comparison in floats would call it equal."""
    assert not exceeds(1 / 3, Fraction(1, 3))
    assert exceeds(math.nextafter(1 / 3, 1), Fraction(1, 3))


@given(st.floats(1e-9, 1e9))
def test_what_is_shown_is_never_more(epsilon):
    assert Fraction(rounded_down(epsilon, 4)) <= Fraction(epsilon) * (1 + Fraction(1, 10**15))
    assert Fraction(rounded_down(epsilon, 4)) >= Fraction(epsilon) * Fraction(998, 1000)


@given(st.fractions(0, 1) | st.integers(1, 10**40).map(lambda n: Fraction(1, n)))
def test_the_error_shown_is_never_less(error):
    assert Fraction(rounded_up(error, 3)) >= error
    assert Fraction(rounded_up(error, 3)) <= error * Fraction(101, 100)


def test_numbers_beyond_floats_are_shown():
    text = str(verdict(claimed=Fraction(10**400), broken=False, error=Fraction(1, 10**400)))
    assert "at most 1e-400" in text and "claimed was 1e+400" in text
    assert rounded_up(Fraction(100_001, 10**11), 3) == "1.01e-6"


def test_details_are_its_own():
    details = {"a": "b"}
    held = verdict(details=details)
    details["a"] = "c"
    assert held.details["a"] == "b"
