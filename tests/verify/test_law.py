"""Exact laws against enumeration, the five reproductions, and code that must be refused."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from lastbit.checker.dispatch import problem_of
from lastbit.errors import InvalidParameter, LastbitError, NotMonotone, TooManyOutputs, WrongType
from lastbit.mechanisms.snapping import snapped
from lastbit.verify.running import law as module
from lastbit.verify.running.code import Code, order
from lastbit.verify.running.law import Cell, Worst, exact_law, exact_loss
from lastbit.verify.running.uniforms import FullPrecision, Grid, Uniform
from tests.verify.judged import naive_laplace, rounded_laplace, unsnapped_zero, wave, wide_snapped

UNIT = Fraction(1, 1 << 53)
SNAPPED = "lastbit.mechanisms.snapping:snapped"
SMALL: list[Uniform] = [
    FullPrecision(5, -6),
    FullPrecision(1, -9),
    Grid(9, first=1),
    Grid(8, offset="1/2"),
]


# ---------------------------------------------------------------- laws


def enumerated(function, value, uniform, signs=(-1, 1)) -> dict[int, Fraction]:
    """The law by calling the function for every uniform there is."""
    law: dict[int, Fraction] = {}
    for sign in signs if signs is not None else (None,):
        for i in range(uniform.size):
            u = uniform.point(i)
            output = function(value, u) if sign is None else function(value, u, sign)
            share = (uniform.below(i + 1) - uniform.below(i)) / (len(signs) if signs else 1)
            law[order(output)] = law.get(order(output), Fraction(0)) + share
    return law


def listed(law) -> dict[int, Fraction]:
    return {order(r): p for r, p in zip(law.outputs, law.probabilities, strict=True)}


@pytest.mark.thinned(one_in=36)
@pytest.mark.parametrize("uniform", SMALL)
@given(st.floats(-9, 9), st.sampled_from([1.0, 0.7, 0.3, 2.5]), st.sampled_from([4.0, 8.5]))
@settings(max_examples=15)
def test_law_by_enumeration(uniform, value, epsilon, bound):
    code = partial(snapped, epsilon=epsilon, bound=bound)
    law = exact_law(code, value, uniform=uniform)
    assert listed(law) == enumerated(code, value, uniform)
    assert sum(law.probabilities) == 1
    assert list(law.outputs) == sorted(law.outputs)


@pytest.mark.parametrize("uniform", [Grid(9, first=1), Grid(8, offset="1/2")])
@pytest.mark.parametrize("value", [0.0, 1.3, -7.9])
def test_law_without_signs(uniform, value):
    code = partial(rounded_laplace, step=0.5)
    law = exact_law(code, value, uniform=uniform, signs=None)
    assert listed(law) == enumerated(code, value, uniform, None)


def test_a_mutant_boundary_is_found_out(monkeypatch):
    cells_of = module._cells

    def shifted(*arguments):
        cells = cells_of(*arguments) or []
        moved = [Cell(c.output, c.first - (i > 0), c.last) for i, c in enumerate(cells)]
        return [*(Cell(c.output, c.first, d.first - 1) for c, d in pairwise(moved)), moved[-1]]

    code = partial(snapped, epsilon=1.0, bound=4.0)
    uniform = SMALL[0]
    assert listed(exact_law(code, 0.3, uniform=uniform)) == enumerated(code, 0.3, uniform)
    monkeypatch.setattr(module, "_cells", shifted)
    monkeypatch.setattr(module, "_probe", lambda *_: None)
    assert listed(exact_law(code, 0.3, uniform=uniform)) != enumerated(code, 0.3, uniform)


def test_the_probes_find_a_wrong_boundary(monkeypatch):
    cells_of = module._cells

    def longer(*arguments):
        return [Cell(c.output, c.first, c.last + 2) for c in cells_of(*arguments) or ()]

    monkeypatch.setattr(module, "_cells", longer)
    with pytest.raises(LastbitError, match="two outputs"):
        exact_law(partial(snapped, epsilon=1.0, bound=4.0), 0.3)


@pytest.mark.parametrize("value", [0.0, 25.78, -63.5, 64.0])
def test_probabilities_of_doubles(value):
    """Every tail is within the proved distance of the exponential law."""
    law = exact_law(partial(snapped, epsilon=1.0, bound=64.0), value)
    assert sum(law.probabilities) == 1
    assert law.outputs == tuple(float(k) for k in range(-64, 65))
    below = Fraction(0)
    for output, share in zip(law.outputs, law.probabilities, strict=True):
        below += share
        if output < value - 2:
            ideal = math.exp(output + 0.5 - value) / 2
            assert abs(float(below) / ideal - 1) < 1e-12


def test_negative_zero_is_an_output_of_its_own():
    law = exact_law(partial(unsnapped_zero, epsilon=1.0, bound=4.0), 0.1)
    zeros = [r for r in law.outputs if r == 0]
    assert [math.copysign(1, r) for r in zeros] == [-1, 1]
    assert law.probability(-0.0) != law.probability(0.0) > 0
    assert law.probability(0.123) == 0


# ---------------------------------------------------------------- code that is not monotone


def test_waves_are_refused_or_split():
    with pytest.raises(NotMonotone, match="uniforms"):
        exact_law(wave, 0.0, signs=None, uniform=Grid(20))
    law = exact_law(wave, 0.0, signs=None, pieces=[0.5], uniform=Grid(12))
    assert listed(law) == enumerated(wave, 0.0, Grid(12), None)
    assert law.splits == [1 << 11]
    assert [branch.sign for branch in law.branches] == [None, None]


def test_a_dent_at_a_binade_is_found():
    def dented(value: float, u: float) -> float:
        return 1.0 if u == 0.0625 else 0.0

    with pytest.raises(NotMonotone):
        exact_law(dented, 0.0, signs=None)


def truth_or_coin(x: float, u: float) -> float:
    """Randomised response in one draw: at the input 1 the output is 1, then 0, then 1 again."""
    return 1.0 if u < 0.3 else 0.0 if u < 0.4 else x


def flipped(x: float, u: float) -> float:
    return 1 - x if 0.6 < u < 0.9 else x


def hidden(x: float, u: float) -> float:
    return 1 - x if 0.6131 < u < 0.6152 else x


def reset(x: float, u: float) -> float:
    """Tail noise is thrown away, as a guard against large results."""
    noisy = x + 4 * math.log(u)
    return float(round(noisy)) if noisy > -40 else x


def wrapped(x: float, u: float) -> float:
    return float(round(x + 20 * math.log(u)) % 16)


@pytest.mark.parametrize("function", [truth_or_coin, flipped, hidden, reset, wrapped])
@pytest.mark.parametrize("uniform", [FullPrecision(), Grid(53, first=1)], ids=str)
def test_turns_of_plausible_code_are_found(function, uniform):
    """Between the ends such code seems constant, or steady; the probes are always enough."""
    with pytest.raises(NotMonotone, match="pieces"):
        exact_law(function, 1.0, signs=None, uniform=uniform)


def test_split_code_has_its_law():
    law = exact_law(truth_or_coin, 1.0, signs=None, pieces=[0.3])
    assert law.probability(0.0) == Fraction(0.4) - Fraction(0.3)
    loss = exact_loss(truth_or_coin, 1.0, 0.0, signs=None, pieces=[0.3, 0.4])
    assert float(loss.worst.probability / loss.worst.other) == pytest.approx(7)


@pytest.mark.parametrize("spread", [1.0, 1e-3, 1e-9])
def test_code_with_randomness_of_its_own_is_refused(spread):
    generator = random.Random(1)

    def noisy(value: float, u: float, sign: int) -> float:
        return float(round(value + sign * math.log(u) + generator.gauss(0, spread)))

    with pytest.raises(InvalidParameter, match="two outputs for the same uniform"):
        exact_law(noisy, 0.3, uniform=FullPrecision(53, -9))


def test_too_many_outputs():
    with pytest.raises(TooManyOutputs, match=r"more than 100 outputs.*refute"):
        exact_law(naive_laplace, 0.0, signs=None, uniform=Grid(53, first=1), most_cells=100)
    code = partial(snapped, epsilon=1.0, bound=4.0)
    with pytest.raises(TooManyOutputs, match="more than 5 outputs"):
        exact_law(code, 0.0, most_cells=5)  # four for one sign, five for the other
    assert len(exact_law(code, 0.0, most_cells=10).outputs) == 9


@pytest.mark.parametrize(
    ("function", "error"),
    [
        (lambda value, u, sign: math.nan, InvalidParameter),
        (lambda value, u, sign: 3, WrongType),
        (lambda value, u, sign: None, WrongType),
        (lambda value, u, sign: math.log(u - 0.5), InvalidParameter),
        (lambda value, u, sign: 1 / (u - u), InvalidParameter),
        (lambda value: value, WrongType),
        (lambda value, u, sign: value + "1", WrongType),
        (3, WrongType),
        (Code("math:pi"), WrongType),
        (Code("math:sqrt"), WrongType),
    ],
)
def test_functions_that_fail(function, error):
    with pytest.raises(error, match="function"):
        exact_law(function, 0.0)


def test_who_made_the_type_error():
    with pytest.raises(WrongType, match="cannot be called so"):
        exact_law(lambda value: value, 0.0)
    with pytest.raises(WrongType, match="raises TypeError"):
        exact_law(lambda value, u, sign: value + "1", 0.0)


@pytest.mark.parametrize("signs", [(), (1, 1), (1,), (0, 1), (-1.0, 1.0), "ab", (True, -1)])
def test_bad_signs(signs):
    """Every law that is found can be certified: the checker knows no other signs."""
    with pytest.raises(InvalidParameter):
        exact_law(wave, 0.0, signs=signs)


@pytest.mark.parametrize("pieces", [[0.0], [1.5], [math.nan], ["x"], 0.5, "0.5", [True]])
def test_bad_pieces(pieces):
    with pytest.raises(LastbitError, match="pieces"):
        exact_law(wave, 0.0, signs=None, pieces=pieces)


@pytest.mark.parametrize("value", [math.nan, math.inf, "x", None, True, Fraction(1, 3), 2**2000])
def test_bad_inputs(value):
    code = partial(snapped, epsilon=1.0, bound=4.0)
    with pytest.raises(LastbitError, match="value"):
        exact_law(code, value)
    with pytest.raises(LastbitError, match="y "):
        exact_loss(code, 0.0, value)


def test_whole_numbers_are_inputs_too():
    code = Code(SNAPPED, epsilon=1.0, bound=4.0)
    loss = exact_loss(code, 0, np.float32(1))  # type: ignore[arg-type]
    assert loss.inputs == (0.0, 1.0)
    assert [type(x) for x in loss.inputs] == [float, float]
    assert problem_of(loss.certificate(code)) is None
    assert math.copysign(1, exact_loss(code, -0.0, 1.0).inputs[0]) == -1


@pytest.mark.parametrize("uniform", [53, "full", FullPrecision, {"model": "full"}])
def test_bad_models(uniform):
    with pytest.raises(LastbitError, match="uniform"):
        exact_law(wave, 0.0, signs=None, uniform=uniform)


BAD_NAMES = ["x", "a:b:c", 3, "nowhere:f", "math:nothing", ":f", "math:", "__main__:f", "json:_x"]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_code_that_is_not_there(name):
    with pytest.raises(InvalidParameter):
        Code(name)


def test_code():
    code = Code(SNAPPED, epsilon=1.0, bound=64.0)
    assert code(3.0, 0.5, 1) == snapped(3.0, 0.5, 1, epsilon=1.0, bound=64.0)
    assert repr(code) == f"Code(name='{SNAPPED}', parameters=(('bound', 64.0), ('epsilon', 1.0)))"
    with pytest.raises(WrongType):
        Code(SNAPPED, epsilon="1")  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="NaN"):
        Code(SNAPPED, epsilon=math.nan)


# ---------------------------------------------------------------- losses


@pytest.mark.evidence
@given(st.floats(-9, 9), st.floats(-9, 9))
@settings(max_examples=25)
def test_loss_by_enumeration(x, y):
    code = partial(snapped, epsilon=0.7, bound=8.0)
    uniform = FullPrecision(4, -30)
    loss = exact_loss(code, x, y, uniform=uniform)
    one, two = (enumerated(code, value, uniform) for value in (x, y))
    for law, other, worst in ((one, two, loss.forward), (two, one, loss.backward)):
        assert law[order(worst.output)] == worst.probability
        assert other.get(order(worst.output), 0) == worst.other
        for output, p in law.items():
            assert p * worst.other <= worst.probability * other.get(output, 0)
    if not loss.infinite:
        ratio = float(loss.worst.probability / loss.worst.other)
        assert loss.loss is not None
        assert abs(float(loss.loss.ends[0]) - math.log(ratio)) < 1e-9
    delta = sum(max(float(p) - math.e * float(two.get(r, 0)), 0) for r, p in one.items())
    assert delta <= float(loss.delta(1).ends[1]) + 1e-12


def test_directions():
    code = partial(snapped, epsilon=1.0, bound=4.0)
    loss, swapped = exact_loss(code, 0.25, 1.0), exact_loss(code, 1.0, 0.25)
    assert (loss.forward, loss.backward) == (swapped.backward, swapped.forward)
    assert {loss.direction, swapped.direction} == {"forward", "backward"}
    same = exact_loss(code, 1.0, 1.0)
    assert same.loss is not None
    assert same.loss.contains(0)
    assert same.delta(0).contains(0)


# ---------------------------------------------------------------- what must be reproduced


def over(code: Code, x: float, y: float, epsilon: Fraction) -> float:
    assert abs(Fraction(x) - Fraction(y)) <= 1
    excess = exact_loss(code, x, y, probes=0).excess(epsilon)
    assert excess is not None
    return float(excess.ends[1] / UNIT)


@pytest.mark.evidence
def test_1_the_theorem_allows_far_more_than_is_lost():
    """At epsilon 1, B 64: 53 units where 12 B + 2 = 770 are allowed."""
    code = Code(SNAPPED, epsilon=1.0, bound=64.0)
    inputs = [(-23.105775668809606, -22.105775668809606), (3.0, 4.0), (-40.3, -39.3), (0.2, 0.9)]
    found = [over(code, x, y, Fraction(1)) for x, y in inputs]
    assert 52 < max(found) < 54
    assert max(found) < 770 / 14


def test_2_theorem_2_with_the_output_is_false():
    """epsilon + 12 x epsilon h + 2h at the output x = 0 would be 2h = 2.2e-16 above epsilon."""
    code = Code(SNAPPED, epsilon=0.7, bound=32.0)
    one, two = (exact_law(code, value) for value in (24.780016821252616, 25.780016821252616))
    worst = Worst(output=0.0, probability=one.probability(0.0), other=two.probability(0.0))
    assert worst.loss is not None
    excess = worst.loss - Fraction(0.7)
    assert Fraction(41, 10**16) < excess.ends[0] <= excess.ends[1] < Fraction(42, 10**16)
    assert excess > 18 * (2 * UNIT)
    assert excess < (12 * 32 * Fraction(0.7) + 2) * UNIT  # with B in place of x it holds here


def test_3_a_grid_of_53_bits_loses_everything_at_bound_32():
    code = Code(SNAPPED, epsilon=1.0, bound=32.0)
    loss = exact_loss(code, 20.0, 21.0, uniform=Grid(53, first=1))
    assert loss.infinite
    assert loss.worst.other == 0 < loss.worst.probability
    assert not exact_loss(code, 20.0, 21.0).infinite  # the same code with all bits


@pytest.mark.evidence
def test_4_the_range_of_the_exponent():
    """At epsilon 1, B 1024 an output is out of reach of one input; delta is near 2**-1022."""
    code = Code(SNAPPED, epsilon=1.0, bound=1024.0)
    loss = exact_loss(code, 3.0, 4.0, probes=0)
    assert loss.infinite
    assert loss.excess(1) is None
    assert loss.worst.probability < Fraction(1, 2**1018)
    delta = loss.delta(Fraction(1) + 10**6 * UNIT)
    assert 0 < delta.ends[1] < Fraction(1, 2**1018)


@pytest.mark.evidence
@pytest.mark.thinned(one_in=9)
@pytest.mark.parametrize(
    ("epsilon", "bound", "x", "least"),
    [(1.0, 16.0, 5.471745083878428, 14), (0.7, 32.0, 18.48616372446967, 48)],
)
def test_5_wide_logarithms_that_are_rounded_are_no_better(epsilon, bound, x, least):
    """Who computes with 118 bits and rounds to doubles must not claim h = 2**-118."""
    code = Code("tests.verify.judged:wide_snapped", epsilon=epsilon, bound=bound)
    claimed = Fraction(epsilon) + (12 * Fraction(bound) * Fraction(epsilon) + 2) / 2**118
    assert over(code, x, x + 1.0, claimed) > least
    plain = Code(SNAPPED, epsilon=epsilon, bound=bound)
    assert over(plain, x, x + 1.0, claimed) == pytest.approx(over(code, x, x + 1.0, claimed))


def test_wide_and_correctly_rounded_agree():
    for u in (0.1, 0.7, 1 - 2.0**-53, 2.0**-1000):
        for sign in (-1, 1):
            assert wide_snapped(3.3, u, sign, epsilon=0.7, bound=900.0) == snapped(
                3.3, u, sign, epsilon=0.7, bound=900.0
            )
