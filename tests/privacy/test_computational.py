"""Computational differential privacy: what follows from it, and what does not."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product

import pytest

from lastbit.errors import IncompatibleGuarantees, LastbitError
from lastbit.exact import Ball
from lastbit.privacy import (
    ADD_REMOVE,
    CHANGE_ONE,
    KEYSTREAM,
    ZCDP,
    ApproxDP,
    ComputationalDP,
    PureDP,
)

SMALL = Fraction(1, 2**89)


def test_from_true_random_bits_by_exact_laws() -> None:
    """Every one-bit adversary, against bits that are off by the advantage: (1 + e) g is needed."""
    gain = Fraction(1, 50)
    keep = Fraction(73, 100)  # below e/(1 + e): 1-private
    promised = ComputationalDP.of(PureDP(1), advantage=gain)
    worst = Fraction(0)
    for one, other in product((-gain, gain), repeat=2):  # the real bits favour either answer
        laws = [(keep + one, 1 - keep - one), (1 - keep + other, keep - other)]
        for p, q in zip(*laws, strict=True):
            for here, there in ((p, q), (q, p)):
                assert here <= Ball.of(1).exp() * there + promised.delta
                worst = max(worst, here - Fraction(math.e) * there)
    assert worst > gain  # a mutant that adds the advantage once would be false
    assert promised.delta >= gain
    assert promised.delta <= gain * (1 + Fraction(math.e) + Fraction(1, 10**12))


def test_what_is_kept() -> None:
    real = ComputationalDP.of(ApproxDP(1, "1e-6", neighbours=CHANGE_ONE), advantage=SMALL)
    assert real.post_processed() is real
    assert real.assumptions == (KEYSTREAM,)
    assert real.bound.neighbours == CHANGE_ONE
    assert (real.epsilon, real.group(3).epsilon) == (1, 3)
    assert real.group(3).delta == real.bound.group(3).delta > 3 * real.delta
    twice = real + real
    assert twice.epsilon == 2
    # d2 + exp(e2) d1: more than the sum, which needs tests that are not feasible
    grown = real.delta * (1 + Fraction(math.e))
    assert 2 * real.delta < twice.delta
    assert abs(twice.delta - grown) < Fraction(1, 10**20)
    before = ComputationalDP.of(
        ApproxDP(1, "1e-6", neighbours=CHANGE_ONE) + ApproxDP(1, "1e-6", neighbours=CHANGE_ONE),
        advantage=SMALL,
    )
    assert before.delta < twice.delta


def test_assumptions_add_up() -> None:
    ideal = ComputationalDP.of(PureDP(1), advantage=0, assumption="none is needed")
    both = ideal + ComputationalDP.of(PureDP(1), advantage=0)
    assert both.assumptions == tuple(sorted((KEYSTREAM, "none is needed")))
    assert both.delta == 0
    assert ideal.implies(ComputationalDP(ApproxDP(2, 0), assumptions=("none is needed", "more")))
    assert not both.implies(ideal)
    assert not ideal.implies(ComputationalDP(ApproxDP("1/2", 0), assumptions=("none is needed",)))


def test_nothing_against_unbounded_adversaries() -> None:
    real = ComputationalDP.of(PureDP(1), advantage=SMALL)
    assert not real.implies(PureDP(100))
    assert not real.implies(ApproxDP(100, "0.9"))
    assert not hasattr(real, "to")
    assert "unbounded" in str(real)
    assert KEYSTREAM in str(real)
    assert ComputationalDP.of(PureDP(1), advantage=1).delta == 1


@pytest.mark.parametrize(
    "call",
    [
        lambda: ComputationalDP(PureDP(1)),  # type: ignore[arg-type]
        lambda: ComputationalDP(ApproxDP(math.inf, 0)),
        lambda: ComputationalDP(ApproxDP(1, 0), assumptions=()),
        lambda: ComputationalDP(ApproxDP(1, 0), assumptions="AES"),  # type: ignore[arg-type]
        lambda: ComputationalDP(ApproxDP(1, 0), assumptions=("",)),
        lambda: ComputationalDP.of(ZCDP(1), advantage=0),  # type: ignore[arg-type]
        lambda: ComputationalDP.of(PureDP(math.inf), advantage=0),
        lambda: ComputationalDP.of(PureDP(1), advantage=2),
        lambda: ComputationalDP.of(PureDP(1), advantage=math.nan),
        lambda: ComputationalDP.of(PureDP(1), advantage=0) + PureDP(1),
        lambda: (
            ComputationalDP.of(PureDP(1, neighbours=ADD_REMOVE), advantage=0)
            + ComputationalDP.of(PureDP(1, neighbours=CHANGE_ONE), advantage=0)
        ),
        lambda: PureDP(1) + ComputationalDP(ApproxDP(1, 0)),
        lambda: ApproxDP(1, 0) + ComputationalDP(ApproxDP(1, 0)),
    ],
)
def test_bad_input_is_refused(call: Callable[[], object]) -> None:
    with pytest.raises((LastbitError, IncompatibleGuarantees)):
        call()
