"""State kept between calls is noticed where running code is judged, and where that is checked."""

from __future__ import annotations

import copy
import math

import pytest

from lastbit.checker.dispatch import problem_of
from lastbit.checker.numbers import digest
from lastbit.errors import InvalidParameter, LastbitError
from lastbit.verify.running.code import Calls, Code
from lastbit.verify.running.law import exact_law, exact_loss
from lastbit.verify.running.uniforms import Grid
from lastbit.verify.running.witness import refute
from tests.verify.sloppy import kept
from tests.verify.sloppy.noise import afresh

COARSE = Grid(6, first=1)


def after(calls):
    """A function that is right for so many calls, and releases the value from then on."""
    made = 0

    def changing(value: float, u: float, sign: int) -> float:
        nonlocal made
        made += 1
        noise = sign * math.log(u) if made <= calls else 0.0
        return min(max(float(round(value + noise)), -4.0), 4.0)

    return changing


@pytest.mark.parametrize("calls", [1, 3, 17, 120, 400])
@pytest.mark.parametrize("judge", [exact_loss, refute])
def test_code_that_changes_its_ways_is_refused(judge, calls):
    with pytest.raises(LastbitError):
        judge(after(calls), 2.5, 3.5, uniform=COARSE)


def test_the_last_call_of_all_is_made_again():
    counting = [0]

    def counted(value: float, u: float, sign: int) -> float:
        counting[0] += 1
        return 1.0

    exact_law(counted, 2.5, uniform=COARSE)
    total = counting[0]
    with pytest.raises(InvalidParameter, match="what was called before"):
        exact_law(_fails_at(total // 2), 2.5, uniform=COARSE)


def _fails_at(call):
    counting = [0]

    def function(value: float, u: float, sign: int) -> float:
        counting[0] += 1
        return 1.0 if counting[0] < call else 2.0

    return function


def wrapped(function):
    def floats(value: float, u: float, sign: int) -> float:
        return float(function(value, u, float(sign)))

    return floats


NAMES = [
    name
    for name, function in vars(kept).items()
    if any(function is one for one in kept.ALL) and name != "memo"
]


@pytest.mark.parametrize("name", NAMES)
def test_the_careless_ones_are_refused(name):
    with pytest.raises(LastbitError):
        exact_loss(wrapped(getattr(afresh(kept), name)), 2.5, 3.5, uniform=COARSE)


def test_calls_are_kept_within_bounds():
    calls = Calls(lambda value, u, sign: value)
    for k in range(20_000):
        calls.at(float(k), 0.5, 1)
    assert len(calls.kept) <= 4097
    calls.check_again()
    zeros = Calls(lambda value, u, sign: math.copysign(1.0, value))
    assert [zeros.at(x, 0.5, 1) for x in (0.0, -0.0)] == [1.0, -1.0]  # two inputs
    zeros.check_again()


TURNED = [0]


def turning(value: float, u: float, sign: int) -> float:
    """Right until it is told to turn: then it answers by how often it was called."""
    if TURNED[0]:
        TURNED[0] += 1
        return 5.0 if TURNED[0] > 9000 else float(round(value + sign))
    return float(round(value + sign))


def test_the_checker_makes_calls_again():
    code = Code("tests.verify.test_stateful:turning")
    certificate = exact_loss(code, 2.0, 3.0, uniform=COARSE).certificate(code)
    assert problem_of(certificate) is None
    TURNED[0] = 1
    try:
        assert problem_of(certificate) is None  # each is called a few times
        TURNED[0] = 8900
        many = copy.deepcopy(certificate)
        many["digest"] = digest(many)
        assert problem_of(many) is not None
    finally:
        TURNED[0] = 0
