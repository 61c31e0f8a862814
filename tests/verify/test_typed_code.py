"""Python's numbers are not all floats: code that an expression of floats does not describe.

Whole numbers and fractions are exact until they meet a float, numpy's whole numbers wrap around,
results of two types tell more than one number, round fails at an infinity, and a step that nothing
uses may fail by the value. The functions here had certificates, all of them false. Prover and
checker refuse them, each alone.
"""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from lastbit.checker.careful import Careful, check_use
from lastbit.checker.numbers import Rejected
from lastbit.checker.steps import last_type
from lastbit.errors import LastbitError, NotCertified, Untraceable
from lastbit.verify import rounded_code
from lastbit.verify.error_bounds.semantics import analyse
from lastbit.verify.language.evaluation import real_value
from lastbit.verify.one_rounding import Parts
from lastbit.verify.rounded_code import certified_code
from lastbit.verify.rounding import Query, rounding_certificate
from lastbit.verify.running.uniforms import Grid
from lastbit.verify.tracing import trace as tracing
from lastbit.verify.tracing.steps import Typed
from lastbit.verify.tracing.trace import followed, trace
from tests.verify import typed_programs
from tests.verify.rounding_examples import with_sign

CELL = 2.0**1018
DRAWN = Grid(53, first=1)


def by_type(value, u, sign):
    return min(max(10.0 * round((value + sign * math.log(u)) / 10.0), -20), 20)


def overflowing(value, u, sign):
    total = value + sign * 4.88e306 * math.log(u)
    return min(max(CELL * round(total / CELL), -4 * CELL), 4 * CELL)


def wrapped(x):
    return np.multiply(round(x), 2**61) / 2.0**61


def clipped(x):
    return np.clip(round(x), 0, 10) * 2**61 / 2.0**61


def unrounded(x):
    tripled = round(x) * 3
    return (tripled - 2**54) - (tripled * 1.0 - 2**54)


def failing(value, u, sign):
    _ = 1.0 / (value - 3.0371)
    return min(max(0.25 * round((value + sign * math.log(u)) / 0.25), -8.0), 8.0)


def failing_by_function(value, u, sign):
    _ = math.log(abs(value - 3.0371))
    return min(max(0.25 * round((value + sign * math.log(u)) / 0.25), -8.0), 8.0)


def right_though_it_has_both(value, u):
    low, high = math.log(2 * u), math.log(2 - 2 * u)
    return min(max(0.5 * round((value + (low if u < 0.5 else -high)) / 0.5), -4.0), 4.0)


UNUSED: dict[Any, dict[str, Any]] = {
    failing: dict(sensitivity=1),
    failing_by_function: dict(sensitivity=1),
}
MECHANISMS: dict[Any, dict[str, Any]] = {
    by_type: dict(sensitivity=10, uniform=DRAWN),
    overflowing: dict(sensitivity=CELL, uniform=DRAWN),
}
RANGES = {wrapped: (0, 8), clipped: (0, 8), unrounded: (2**52, 2**53)}


def test_they_do_what_no_certificate_allows():
    least = 2.0**-53  # the largest noise takes one value beyond the end, and not its neighbour
    assert repr(by_type(20.0, least, 1.0)) == "-20.0" and repr(by_type(10.0, least, 1.0)) == "-20"
    assert overflowing(-4 * CELL, least, -1.0) == 4 * CELL
    with pytest.raises(OverflowError):
        overflowing(4 * CELL, least, -1.0)
    with np.errstate(over="ignore"):
        assert wrapped(3.0) == 3.0 and wrapped(4.0) == clipped(4.0) == -4.0
    with pytest.raises(ZeroDivisionError):
        failing(3.0371, 0.5, 1.0)
    assert failing(3.0372, 0.5, 1.0) == 2.25
    assert unrounded(2.0**52 + 1) == -1.0  # 0 in exact numbers, and the bound was 1/4


@pytest.mark.parametrize("code", MECHANISMS, ids=lambda f: f.__name__)
def test_the_prover_refuses_these_mechanisms(code):
    with pytest.raises(NotCertified, match=r"returns float or int.*; |beyond all floats.*; "):
        certified_code(code, **MECHANISMS[code])


@pytest.mark.parametrize("code", UNUSED, ids=lambda f: f.__name__)
def test_the_prover_refuses_what_fails_unused(code):
    with pytest.raises(Untraceable, match=r"line \d+: .* does not use the result; leave that out"):
        certified_code(code, **UNUSED[code])


def test_what_fails_by_the_draw_alone_is_certified():
    found = certified_code(right_though_it_has_both, sensitivity=1, uniform=DRAWN)
    assert len(found.named) == 1 and found.epsilon < Fraction(1001, 1000)


@pytest.mark.parametrize("code", RANGES, ids=lambda f: f.__name__)
def test_the_prover_refuses_these_queries(code):
    with pytest.raises(Untraceable, match=r"line \d+: the function (calls|computes) .*; write"):
        trace(code)
    query = Query(function=code, ranges={"x": RANGES[code]})
    with pytest.raises(Untraceable):
        rounding_certificate(with_sign, sensitivity=1, cell="1/4", region=(-8, 8), query=query)


@pytest.mark.parametrize("code", [*MECHANISMS, *UNUSED, *RANGES], ids=lambda f: f.__name__)
def test_the_checker_rejects_them_alone(code, monkeypatch):
    plain = Typed(frozenset({"float"}))
    monkeypatch.setattr(tracing, "typed", lambda rows, place, *, rounded: [plain] * len(rows))
    monkeypatch.setattr(tracing, "failing_on", lambda made, step: set())
    monkeypatch.setattr(rounded_code, "_overflows", lambda program, region: False)
    monkeypatch.setattr(Parts, "is_modest", True)
    with pytest.raises(NotCertified, match="the independent checker rejects"):
        if code not in RANGES:
            certified_code(code, **(MECHANISMS | UNUSED)[code])
        else:
            query = Query(function=code, ranges={"x": RANGES[code]})
            rounding_certificate(with_sign, sensitivity=1, cell="1/4", region=(-8, 8), query=query)


def test_integers_of_numpy_do_not_pass_for_monotone():
    def turning(value, u):  # 0, 2**62, then -2**63
        return 1.0 * min(np.multiply(round(value + 5.0 * u), 2**62), 2.0**62)

    with pytest.raises(Untraceable, match="wrap around"):
        followed(turning, {"value": "value", "u": "u"}, {})


@pytest.mark.parametrize(
    "code",
    [
        lambda x: 10 * round(x / 10) + 0.5,
        lambda x: round(x * 10) / 10 + 1,
        lambda x: min(max(x, 0), 10) * 2 + 1,
        lambda x: np.clip(1.0 * round(x), 0, 10) * 3 - 1,
        lambda x: -abs(round(x)) * 0.1 + round(x) * 2,
        lambda x: np.rint(x) * Fraction(1, 3),
    ],
)
def test_right_code_is_not_refused(code):
    rows = followed(code, {"x": "x"}, {}).rows
    assert trace(code) is not None and last_type(rows, True)


def test_both_sides_name_the_same_types():
    random_ = random.Random("types")
    refused = 0
    for _ in range(160):
        code = typed_programs.function(typed_programs.query(random_))
        try:
            found = followed(code, {"x": "x"}, {})
        except LastbitError:
            continue
        assert last_type(found.rows, False) == found.typed()[-1].kinds
        here = there = False
        try:
            found.typed(rounded=True)
        except Untraceable:
            here = True
        try:
            last_type(found.rows, True)
        except Rejected:
            there = True
        assert here == there
        refused += here
    assert refused > 2


BOXES = ((0, 1), (-2, 3), (2**52, 2**52 + 4096), (2**53, 2**54), (10**17, 10**17 + 10**4))


def false_bound(count: int) -> tuple[int, str | None]:
    """At how many points random programs were tried, and the first that is off by more."""
    random_, tried = random.Random("e"), 0
    for _ in range(count):
        text = typed_programs.query(random_)
        code, box = typed_programs.function(text), random_.choice(BOXES)
        try:
            steps = trace(code)
            found = analyse(steps, {"x": box})
        except LastbitError:
            continue
        for _ in range(8):
            x = random_.uniform(*box)
            x = min(max(random_.choice([x, float(round(x)), math.floor(x) + 0.5]), box[0]), box[1])
            try:
                with np.errstate(all="ignore"):
                    result = Fraction(float(code(float(x))))
                low, high = real_value(steps, {"x": Fraction(x)}, precision=256).ends
            except TypeError:  # numpy's functions of whole numbers beyond 64 bits
                return tried, text
            except LastbitError:  # too near to a jump
                continue
            tried += 1
            inside = found.conclusion.computed[0] <= result <= found.conclusion.computed[1]
            if max(low - result, result - high) > found.error or not inside:
                return tried, text
    return tried, None


def test_the_bounds_of_random_code_hold():
    tried, wrong = false_bound(160)
    assert tried > 300 and wrong is None


def test_without_the_rule_the_same_random_code_has_false_bounds(monkeypatch):
    monkeypatch.setattr(tracing, "typed", lambda rows, place, *, rounded: [])
    assert false_bound(160)[1] is not None


def test_losses_of_random_mechanisms_hold_for_all_that_can_be_seen():
    random_, certified = random.Random("mechanisms"), 0
    while certified < 8:
        text, signed = typed_programs.mechanism(random_)
        code, uniform = typed_programs.function(text), Grid(10, offset="1/2")
        try:
            found = certified_code(code, sensitivity=1, uniform=uniform)
        except LastbitError:
            continue
        certified += 1
        most = math.exp(float(found.epsilon)) * (1 + 1e-9)
        for value in (-4.0, 0.5, math.nextafter(3.0, 4.0)):
            one, two = (
                typed_programs.outcomes(code, x, uniform, signed=signed) for x in (value, value + 1)
            )
            assert all(one[seen] <= most * two[seen] for seen in one), text
            assert all(two[seen] <= most * one[seen] for seen in two), text


@pytest.mark.parametrize(
    "run",
    [lambda x: x // 1.0, lambda x: 1.0 // x, lambda x: x % 1.0, lambda x: 1.0 % x,
     lambda x: divmod(x, 1.0), lambda x: divmod(1.0, x), int, float],
    ids=["//", "// by", "%", "% by", "divmod", "divmod by", "int", "float"],
)  # fmt: skip
def test_what_the_checker_cannot_follow_does_not_hide_what_comes_later(run):
    """Failed before for all but float: a TypeError ended the run, and the checker saw no more."""
    with pytest.raises(Rejected, match="may fail by its value"):
        check_use(run, [Careful(3.5)], {})
