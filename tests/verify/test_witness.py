"""Refutations: concrete outputs, exact probabilities, and code that must not be refuted."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import pytest

from lastbit.checker.law import check_refutation
from lastbit.errors import LastbitError, NotMonotone
from lastbit.mechanisms.snapping import snapped
from lastbit.verify.running.code import Code, order
from lastbit.verify.running.law import exact_law, exact_loss
from lastbit.verify.running.uniforms import FullPrecision, Grid
from lastbit.verify.running.witness import _float, refute
from tests.evidence import late
from tests.verify.judged import naive_laplace, rounded_laplace, unsnapped_zero

NUMPY = Grid(53, first=1)


@pytest.mark.parametrize("scale", [1.0, late(0.7), late(10.0)])
def test_naive_laplace_is_refuted(scale):
    code = Code("tests.verify.judged:naive_laplace", scale=scale)
    found = refute(code, 0.0, 1.0, uniform=NUMPY, signs=None, tries=30)
    assert found is not None
    assert found.infinite
    assert found.loss is None
    p, q = found.probabilities
    assert p > 0 == q
    sealed = found.certificate(code)
    check_refutation(sealed["claim"], sealed["body"])
    assert sealed["claim"]["loss"] == "infinite"
    # look once more, around both preimages: one reaches the outputs, the other skips them
    one, two = (part[0] for part in found.preimages)
    for value, part, inside in ((found.inputs[0], one, True), (found.inputs[1], two, False)):
        near = range(max(part.first - 300, 0), min(part.last + 300, NUMPY.size))
        for index in near:
            output = naive_laplace(value, NUMPY.point(index), scale=scale)
            reached = found.low <= output <= found.high
            assert reached == (inside and part.first <= index <= part.last)


@pytest.mark.parametrize("uniform", [Grid(10, first=1), Grid(9, offset="1/2")])
def test_probabilities_by_enumeration(uniform):
    """Over a small generator every number of a witness is counted."""
    found = refute(naive_laplace, 0.0, 1.0, uniform=uniform, signs=None, tries=20)
    assert found is not None
    for value, share in zip(found.inputs, found.probabilities, strict=True):
        outputs = [naive_laplace(value, uniform.point(i)) for i in range(uniform.size)]
        inside = [r for r in outputs if found.low <= r <= found.high]
        assert Fraction(len(inside), uniform.size) == share


def test_private_code_has_no_infinite_witness():
    code = Code("lastbit.mechanisms.snapping:snapped", epsilon=1.0, bound=8.0)
    found = refute(code, 3.0, 4.0, tries=5)
    assert found is not None
    assert not found.infinite
    exact = exact_loss(code, 3.0, 4.0)
    p, q = found.probabilities
    assert p * exact.worst.other == exact.worst.probability * q
    sealed = found.certificate(code)
    check_refutation(sealed["claim"], sealed["body"])
    one = exact_law(code, found.inputs[0])
    assert one.probability(found.low) == found.probabilities[0]


def test_equal_inputs_are_not_told_apart():
    code = partial(snapped, epsilon=1.0, bound=8.0)
    assert refute(code, 3.0, 3.0, tries=5) is None
    assert refute(naive_laplace, 0.5, 0.5, uniform=NUMPY, signs=None, tries=5) is None


def test_negative_zero_tells():
    code = partial(unsnapped_zero, epsilon=1.0, bound=4.0)
    found = refute(code, 0.5, -0.5, tries=10)
    assert found is not None
    loss = exact_loss(code, 0.5, -0.5).loss
    assert loss is not None
    assert loss > 1


def test_a_coarse_generator_is_refuted():
    code = partial(snapped, epsilon=1.0, bound=32.0)
    found = refute(code, 20.0, 21.0, uniform=NUMPY, tries=20)
    assert found is not None
    assert found.infinite
    fine = refute(code, 20.0, 21.0, uniform=FullPrecision(), tries=2)
    assert fine is not None
    assert not fine.infinite


def test_falling_branches_and_pieces():
    def falling(value: float, u: float) -> float:
        return value - u if u < 0.5 else value - 1.5 + u

    found = refute(falling, 0.0, 2.0**-30, uniform=Grid(20), signs=None, pieces=[0.5], tries=5)
    assert found is not None
    assert found.infinite
    assert found.splits == (1 << 19,)
    assert [part.rises for part in found.preimages[0]] == [False, True]


def test_rounded_code_is_not_refuted_infinitely():
    code = partial(rounded_laplace, step=0.5)
    found = refute(code, 0.0, 1.0, uniform=NUMPY, signs=None, tries=10)
    assert found is not None
    assert not found.infinite


def test_unsteady_code_is_not_believed():
    """Code that jitters from float to float gives no witness."""

    def jitter(value: float, u: float) -> float:
        return value + u + (3e-6 if int(u * 2**20) % 2 else 0.0)

    with pytest.raises(NotMonotone):
        refute(jitter, 0.0, 1e-9, uniform=Grid(20), signs=None, tries=10)


@pytest.mark.parametrize("uniform", [FullPrecision(), NUMPY], ids=str)
def test_private_code_that_turns_is_not_accused(uniform):
    """Randomised response loses ln 7; taken for monotone it would seem to lose everything."""

    def truth_or_coin(x: float, u: float) -> float:
        return 1.0 if u < 0.3 else 0.0 if u < 0.4 else x

    with pytest.raises(NotMonotone, match="pieces"):
        refute(truth_or_coin, 1.0, 0.0, uniform=uniform, signs=None, tries=10)
    found = refute(
        truth_or_coin, 1.0, 0.0, uniform=uniform, signs=None, tries=10, pieces=[0.3, 0.4]
    )
    assert found is not None
    assert not found.infinite
    p, q = found.probabilities
    assert float(p / q) == pytest.approx(7)


def test_whole_numbers_are_inputs_too():
    code = Code("tests.verify.judged:naive_laplace", scale=1.0)
    found = refute(code, 0, 1, uniform=NUMPY, signs=None, tries=2)
    assert found is not None
    assert {type(x) for x in found.inputs} == {float}
    sealed = found.certificate(code)
    check_refutation(sealed["claim"], sealed["body"])
    with pytest.raises(LastbitError, match="x "):
        refute(code, float("nan"), 1.0)


def test_order_and_back():
    for x in (0.0, -0.0, 1.5, -1.5, 5e-324, -5e-324, float("inf"), float("-inf")):
        assert order(_float(order(x))) == order(x)
    with pytest.raises(LastbitError):
        _float(order(float("inf")) + 1)


@pytest.mark.parametrize("tries", [0, -1, 1.5, True])
def test_bad_tries(tries):
    with pytest.raises(LastbitError):
        refute(naive_laplace, 0.0, 1.0, tries=tries)
