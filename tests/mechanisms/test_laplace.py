"""The Laplace mechanism: its privacy by exact laws, its error, its types."""

from __future__ import annotations

import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lastbit.errors import LastbitError
from lastbit.laws.transformed import OnGrid, Shifted
from lastbit.mechanisms import lattice
from lastbit.mechanisms.laplace import Laplace
from lastbit.privacy.guarantees import PureDP
from lastbit.privacy.neighbours import ADD_REMOVE
from lastbit.sampling.deterministic import Seeded
from lastbit.sampling.laplace_tables import laplace_sampler
from tests.laws.oracle import decimals, exp
from tests.mechanisms.divergence import worst_ratio

EPSILONS = [Fraction(1, 10), Fraction(1, 2), Fraction(1), Fraction(3)]
# equal ratios up to the Decimals' own error
HAIR = Decimal("1." + "0" * 59 + "1")


def private(mechanism: Laplace, epsilon: Fraction, sensitivity: int) -> bool:
    """P[release(x) = o] <= exp(epsilon) P[release(y) = o] for all neighbours and all outputs."""
    with decimals():
        limit = exp(epsilon) * HAIR
        return all(
            worst_ratio(mechanism.law(0), mechanism.law(y), range(-60, 61)) <= limit
            for y in range(-sensitivity, sensitivity + 1)
        )


@pytest.mark.thinned(one_in=4)
@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
@pytest.mark.parametrize("sensitivity", [1, 2, 5])
def test_privacy_by_the_exact_law(epsilon: Fraction, sensitivity: int) -> None:
    mechanism = Laplace(sensitivity=sensitivity, epsilon=epsilon)
    assert mechanism.guarantee == PureDP(epsilon)
    assert private(mechanism, epsilon, sensitivity)
    small = Laplace(sensitivity=sensitivity, scale=mechanism.scale * Fraction(99, 100))
    assert not private(small, epsilon, sensitivity)
    assert small.epsilon > epsilon


@given(
    st.floats(-100, 100), st.floats(-1, 1), st.sampled_from(EPSILONS), st.sampled_from([1, 2, 7])
)
def test_privacy_on_a_grid(x: float, move: float, epsilon: Fraction, dimension: int) -> None:
    """Floats: the steps they are apart, times the loss of one step, never exceed epsilon."""
    mechanism = Laplace(sensitivity=1, epsilon=epsilon, grid="auto", dimension=dimension)
    lattice = mechanism.lattice
    assert mechanism.guarantee == PureDP(epsilon)
    y = x + move
    apart = abs(Fraction(x) - Fraction(y))
    steps = abs(lattice.steps_of(x) - lattice.steps_of(y))
    if apart <= 1:
        assert steps * lattice.step / mechanism.scale <= epsilon
    # rounding costs less than 2**-19 of the noise
    assert mechanism.scale <= Fraction(1) / epsilon * (1 + Fraction(1, 2**19) / epsilon)


def test_vectors_add_up_in_l1() -> None:
    """Coordinates are independent: the loss of a vector is the sum over its coordinates."""
    mechanism = Laplace(sensitivity=3, epsilon=1)
    with decimals():
        for move in ((3, 0), (1, 2), (-1, -2), (1, -1)):
            ratios = [worst_ratio(mechanism.law(0), mechanism.law(m), range(-40, 41)) for m in move]
            assert ratios[0] * ratios[1] <= exp(Fraction(1)) * HAIR


def test_guarantees_at_other_distances() -> None:
    mechanism = Laplace(sensitivity=2, epsilon="1/2", neighbours=ADD_REMOVE)
    assert mechanism.guarantee_at(0) == PureDP(0, neighbours=ADD_REMOVE)
    assert mechanism.guarantee_at(6).epsilon == Fraction(3, 2)
    on_grid = Laplace(sensitivity=2, epsilon="1/2", grid="1/1024")
    assert on_grid.guarantee_at(0).epsilon == 0
    assert on_grid.guarantee_at("1/4096").epsilon > 0  # one step may be crossed all the same
    assert on_grid.guarantee_at(2).epsilon == Fraction(1, 2)


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(2), Fraction(20)], ids=str)
def test_accuracy_is_the_exact_tail(scale: Fraction) -> None:
    mechanism = Laplace(sensitivity=1, scale=scale)
    with decimals():
        q = exp(-1 / scale)
        for beta in ("0.5", "0.05", "1e-9"):
            a = int(mechanism.accuracy(beta))

            def tail(k: int) -> Decimal:
                return 2 * q ** (k + 1) / (1 + q)

            assert tail(a) <= Decimal(beta)
            assert a == 0 or tail(a - 1) > Decimal(beta)
            reported = Decimal(mechanism.beta(a))
            assert tail(a) <= reported <= tail(a) * (1 + Decimal(2) ** -50) + Decimal(10) ** -35


def test_accuracy_on_a_grid_counts_the_rounding() -> None:
    mechanism = Laplace(sensitivity=1, epsilon=1, grid="1/8")
    steps = Laplace(sensitivity=1, scale=mechanism.scale * 8).accuracy("0.05")
    assert mechanism.accuracy("0.05") == steps / 8 + Fraction(1, 16)
    assert mechanism.beta(0) == 1.0


def test_types_in_and_out() -> None:
    integers = Laplace(sensitivity=1, epsilon=1)
    assert type(integers.release(3)) is int
    assert type(integers.release(np.int32(3))) is int
    assert integers.release(np.arange(6, dtype=np.int16).reshape(2, 3)).dtype == np.int64
    assert integers.release([1, 2, 3]).shape == (3,)
    assert integers.release(2**100) > 2**99
    floats = Laplace(sensitivity=1, epsilon=1, grid="auto", dimension=6)
    assert type(floats.release(0.5)) is float
    assert floats.release(np.zeros((2, 3), np.float32)).dtype == np.float64
    assert isinstance(integers.law(5), Shifted)
    assert isinstance(floats.law(0.5), OnGrid)


def test_release_is_value_plus_the_samplers_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = Laplace(sensitivity=1, epsilon="1/10")
    sampler = laplace_sampler(Fraction(10))
    values = np.arange(1000)
    monkeypatch.setattr(lattice, "drawn", lambda noise, size: noise.draw(Seeded(3), *size))
    released = mechanism.release(values)
    assert np.array_equal(released - values, sampler.draw(Seeded(3), 1000))


def test_equality_and_repr() -> None:
    one, other = Laplace(sensitivity=1, epsilon=1), Laplace(sensitivity="1", scale=1)
    assert one == other
    one.release(1)
    assert one == other
    assert hash(one) == hash(other)
    assert "sampler" not in repr(one)


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        (dict(sensitivity=0, epsilon=1), "sensitivity"),
        (dict(sensitivity=-1, epsilon=1), "sensitivity"),
        (dict(sensitivity=float("nan"), epsilon=1), "sensitivity"),
        (dict(sensitivity=1, epsilon=0), "epsilon"),
        (dict(sensitivity=1, epsilon=-1), "epsilon"),
        (dict(sensitivity=1, epsilon=float("inf")), "epsilon"),
        (dict(sensitivity=1, epsilon=True), "epsilon"),
        (dict(sensitivity=1, epsilon="one"), "epsilon"),
        (dict(sensitivity=1), "epsilon"),
        (dict(sensitivity=1, epsilon=1, scale=1), "epsilon"),
        (dict(sensitivity=1, scale=0), "scale"),
        (dict(sensitivity=1, epsilon=1, grid="1/3"), "grid"),
        (dict(sensitivity=1, epsilon=1, grid=np.array([1, 2])), "grid"),
        (dict(sensitivity="0.5", epsilon=1), "sensitivity is below 1"),
        (dict(sensitivity=1, epsilon=1, neighbours=None), "neighbours"),
        (dict(sensitivity=1, epsilon=1, grid="auto", dimension=0), "dimension"),
        (dict(sensitivity=1, epsilon=1, grid="auto", dimension=1.5), "dimension"),
    ],
)
def test_bad_parameters(parameters: dict, name: str) -> None:
    with pytest.raises(LastbitError, match=name):
        Laplace(**parameters)


def test_bad_questions() -> None:
    mechanism = Laplace(sensitivity=1, epsilon=1)
    for call in (
        lambda: mechanism.accuracy(0),
        lambda: mechanism.accuracy(1),
        lambda: mechanism.beta(-1),
        lambda: mechanism.guarantee_at(-1),
        lambda: mechanism.release(1.5),
        lambda: mechanism.law([1]),
    ):
        with pytest.raises(LastbitError):
            call()


def test_a_used_mechanism_can_be_pickled() -> None:
    mechanism = Laplace(sensitivity=1, epsilon=1)
    mechanism.release(3)
    again = pickle.loads(pickle.dumps(mechanism))
    assert again == mechanism
    assert isinstance(again.release(3), int)
