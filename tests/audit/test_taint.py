"""Noise is followed exactly as far as a shift of it has a price."""

import operator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import lastbit as lb
from lastbit.audit.replay.replay import audit_program, record, replay
from lastbit.audit.replay.taint import Spread

RNG = np.random.default_rng(3)
INFINITE = float("inf")


def cost(program, here, there):
    """What it costs to move the input of a program, one that shows nothing else."""
    with record() as tape:
        tape.keep(program(here))
    found = replay(program, there, tape)
    assert found.clean, found.findings
    total = sum((part.epsilon for part in found.cost if isinstance(part, lb.PureDP)), Fraction(0))
    return total + sum(part.rho for part in found.cost if isinstance(part, lb.ZCDP))


EXACT = [
    (lambda x: x + RNG.laplace(0, 4), Fraction(3, 4)),
    (lambda x: RNG.laplace(0, 4) + x, Fraction(3, 4)),
    (lambda x: x - RNG.laplace(0, 4), Fraction(3, 4)),
    (lambda x: RNG.laplace(0, 4) - x, Fraction(3, 4)),
    (lambda x: RNG.laplace(x, 4), Fraction(3, 4)),
    (lambda x: RNG.laplace(loc=x, scale=4), Fraction(3, 4)),
    (lambda x: x + 4 * RNG.laplace(), Fraction(3, 4)),
    (lambda x: x + -RNG.laplace() * 8 / 2, Fraction(3, 4)),
    (lambda x: 2 * x + RNG.laplace(0, 4), Fraction(6, 4)),
    (lambda x: x + round(4 * RNG.laplace()), Fraction(3, 4)),
    (lambda x: x + RNG.logistic(0, 4), Fraction(3, 4)),
    (lambda x: x + RNG.normal(0, 2), Fraction(9, 8)),
    (lambda x: x + 2 * RNG.standard_normal(), Fraction(9, 8)),
    (lambda x: np.random.normal(x, 2), Fraction(9, 8)),
    (lambda x: x + np.random.randn(1) * 2, Fraction(9, 8)),
    (lambda x: np.float64(x) + RNG.laplace(0, 4), Fraction(3, 4)),
    (lambda x: np.array([x, 0, x]) + RNG.laplace(0, 4, 3), Fraction(6, 4)),
    (lambda x: np.array([x, 0]) + RNG.laplace(0, [4, 1]), Fraction(3, 4)),
    (lambda x: np.rint(RNG.laplace(0, 4, 2)).astype(int) + np.array([x, 0]), Fraction(3, 4)),
    (lambda x: [x + part for part in RNG.laplace(0, 4, (2, 2)).reshape(4)[1:3]], Fraction(6, 4)),
    (lambda x: x + RNG.laplace(0, 4, 1).copy(), Fraction(3, 4)),
    (lambda x: np.array([x, 0]) + RNG.laplace(0, [[4], [1]]).T.ravel(), Fraction(3, 4)),
    (lambda x: np.array([x, 0]) + np.squeeze(RNG.laplace(0, 4, (2, 1))), Fraction(3, 4)),
    (lambda x: RNG.laplace(0, 4, 2) - np.array([x - 10, 0], np.uint8), Fraction(3, 4)),
    (lambda x: (x > 11) + RNG.laplace(0, 4), Fraction(1, 4)),
    (lambda x: RNG.laplace(0, 4, 2) - np.array([x > 11, True]), Fraction(1, 4)),
    (lambda x: RNG.laplace(x, 4, 3), Fraction(9, 4)),
    (lambda x: RNG.laplace([0, x], [1, 4]), Fraction(3, 4)),
    (lambda x: x + (lb.discrete_laplace(1) + RNG.laplace(0, 4)), Fraction(3, 4)),
    (lambda x: x + (RNG.exponential(4) - RNG.exponential(4)), Fraction(3, 4)),
    (lambda x: x + (RNG.laplace(0, 4) + RNG.laplace(0, 1)), Fraction(3, 4)),
    (lambda x: (x + RNG.laplace(0, 4)) + RNG.laplace(0, 1), Fraction(3, 4)),
    (lambda x: x + lb.discrete_laplace(4), Fraction(3, 4)),
    (lambda x: x + (lb.geometric(4) - lb.geometric(4)), Fraction(3, 4)),
    (lambda x: x + lb.discrete_gaussian(variance=4), Fraction(9, 8)),
    (lambda x: lb.choice_exp([x, 0], rate="1/2"), Fraction(3)),
    (lambda x: lb.rounded("laplace", location=x, scale=4), Fraction(3, 4)),
    (lambda x: x + RNG.exponential(4), INFINITE),
    (lambda x: x + RNG.geometric(0.5), INFINITE),
    (lambda x: x + RNG.laplace(0, 0), INFINITE),
    (lambda x: np.float64(x) / 2 + round(4 * RNG.laplace()), INFINITE),  # half an integer shows
    (lambda x: np.float64(x) / 2 + lb.discrete_laplace(4), INFINITE),
    (lambda x: np.float64(x) / 2 + lb.discrete_gaussian(variance=4), INFINITE),
    (lambda x: np.float64(x) / 2 + lb.discrete_laplace(4) / 2, Fraction(3, 4)),  # steps of a half
    (lambda x: np.float64(x) / 2 + (RNG.geometric(0.5) - RNG.geometric(0.5)), INFINITE),
]  # fmt: skip


@pytest.mark.thinned(one_in=20)
@pytest.mark.parametrize(("program", "expected"), EXACT)
def test_the_price_of_a_shift_is_exact(program, expected):
    assert cost(program, 10, 13) == expected
    assert cost(program, 13, 10) == expected
    assert cost(program, 10, 10) == 0


def test_a_centre_of_zero_is_a_value_as_well():
    """rng.laplace(count, scale) of a count that happens to be 0 looks like noise alone."""
    assert cost(lambda x: RNG.laplace(x, 4), 0, 3) == Fraction(3, 4)
    assert cost(lambda x: RNG.laplace(x, 4) + 1, 0, 3) == Fraction(3, 4)
    assert cost(lambda x: RNG.laplace(x, 4), 3, 0) == Fraction(3, 4)


def test_a_geometric_difference_costs_its_own_rate():
    """P[X = k] falls by 1-p a step, so a step costs ln 2 for p = 1/2, rounded up."""
    found = cost(lambda x: x + (RNG.geometric(0.5) - RNG.geometric(0.5)), 10, 11)
    assert 0.69314718055994 < found < 0.69314718055995


NOT_FOLLOWED = [
    lambda x: x + int(RNG.laplace(0, 4)),  # cutting off doubles the weight of 0
    lambda x: x + abs(RNG.laplace(0, 4)),
    lambda x: x + np.exp(RNG.laplace(0, 4)),
    lambda x: x + RNG.laplace(0, 4, 2).astype(int),
    lambda x: x + 0 * RNG.laplace(0, 4),
    lambda x: x + (lambda n: n - n)(RNG.laplace(0, 4)),  # noise that cancels
    lambda x: x + RNG.random(),
]


@pytest.mark.parametrize("program", NOT_FOLLOWED)
def test_what_is_no_shift_is_no_protection(program):
    with record() as tape:
        tape.keep(program(10))
    assert [finding.kind for finding in replay(program, 13, tape).findings] == ["leak"]


def test_gumbel_noise_is_not_priced():
    audit = audit_program(lambda rows: len(rows) + RNG.gumbel(), [1, 2])
    assert audit.clean and audit.unpriced == ("numpy gumbel",)
    assert "the cost of numpy gumbel is not known" in str(audit)


def test_a_seed_inside_the_program_is_found():
    def seeded(rows):
        return len(rows) + np.random.default_rng(0).laplace()

    (finding,) = audit_program(seeded, [1, 2], claim=1).findings
    assert finding.kind == "fixed noise"


@pytest.mark.evidence
@settings(max_examples=50)
@given(
    value=st.integers(-5, 5) | st.floats(-5, 5),
    operation=st.sampled_from([operator.add, operator.sub, operator.mul, operator.truediv]),
    left=st.booleans(),
    size=st.sampled_from([None, 3]),
)
def test_arithmetic_is_that_of_plain_numbers(value, operation, left, size):
    with record():
        draw = RNG.laplace(size=size)
        plain = float(draw) if size is None else np.array(draw, subok=False)
        pair = (draw, value) if left else (value, draw)
        same = (plain, value) if left else (value, plain)
        if operation is operator.truediv and left and value == 0:
            return
        if isinstance(value, float) and abs(value) < 1e-300:
            return  # quotients beyond all floats warn
        result, expected = operation(*pair), operation(*same)
        assert np.array_equal(result, expected)


def test_the_law_of_a_spread():
    assert Spread(law="laplace", scale=Fraction(2)).cost({0: Fraction(1)}) == (lb.PureDP("1/2"),)
    assert Spread(law="gaussian", scale=Fraction(2)).cost({0: Fraction(1)}) == (lb.ZCDP("1/8"),)
    assert Spread(law="laplace", scale=Fraction(2)).cost({0: Fraction(0)}) == ()
    assert Spread(law="unknown", scale=Fraction(2)).cost({0: Fraction(1)}) is None


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 3, 4)])
def test_old_normals_are_tracked_in_every_number_of_dimensions(shape):
    """Three lengths are no `out`: the draw was taken for a coin, and a sum with it for a leak."""
    generator = np.random.RandomState()
    audit = audit_program(lambda data: len(data) + generator.randn(*shape), [1, 2, 3])
    assert audit.clean
    assert audit.costliest == (lb.ZCDP(Fraction(int(np.prod(shape)), 2)),)
