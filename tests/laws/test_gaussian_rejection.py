"""Discrete Gaussian draws by rejection: the identity, what floats say of it, extremes."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lastbit.errors import InvalidParameter
from lastbit.laws.discrete import DiscreteGaussian
from lastbit.sampling.deterministic import Counting, Seeded
from lastbit.sampling.gaussian import _ACCEPTANCE, MOST_VARIANCE, Rejection, rejection
from lastbit.sampling.laplace import MOST_SCALE, signed_digits
from lastbit.sampling.lazy import proposals
from tests.laws.oracle import decimals, exp, gaussian_pmf, laplace_pmf

SMALL = [Fraction(1, 10**6), Fraction(1, 10), Fraction(1, 2), Fraction(1), Fraction(22, 7)]
VARIANCES = [*SMALL, Fraction(400), Fraction(1000, 7)]
WIDE = [
    Fraction(130**2),
    Fraction(10**12) / 3,
    Fraction(2**80),
    Fraction(2**140),
    Fraction(MOST_VARIANCE),
]


def made_law(sampler: Rejection, reach: int) -> dict[int, Decimal]:
    """The law of what is accepted: that of the proposals, whose tables are judged elsewhere, times
    the exact acceptance, which the tests below tie to the code.
    """
    proposed = laplace_pmf(Fraction(sampler.scale))
    masses = {y: proposed(y) * exp(-sampler.distance(y)) for y in range(-reach, reach + 1)}
    whole = sum(masses.values())
    return {y: mass / whole for y, mass in masses.items()}


@pytest.mark.parametrize("variance", VARIANCES, ids=str)
def test_what_is_accepted_has_the_discrete_gaussian_law(variance: Fraction) -> None:
    reach = 20 * (int(variance**0.5) + 1)
    with decimals():
        law, pmf = made_law(rejection(variance), reach), gaussian_pmf(variance)
        assert all(abs(mass - pmf(y)) < Decimal(2) ** -150 for y, mass in law.items())


@pytest.mark.parametrize("variance", [Fraction(1), Fraction(22, 7), Fraction(400)], ids=str)
def test_mutants_are_rejected(variance: Fraction) -> None:
    sampler, pmf = rejection(variance), gaussian_pmf(variance)
    reach = 20 * (int(variance**0.5) + 1)

    class Uncentred(Rejection):
        def distance(self, value: int) -> Fraction:
            return Fraction(value) ** 2 / (2 * self.variance)

    class Shifted(Rejection):
        def distance(self, value: int) -> Fraction:
            return (abs(value) - self.scale) ** 2 / (2 * self.variance)

    off = variance * Fraction(1001, 1000) ** 2
    with decimals():
        for wrong in (
            replace(sampler, variance=off),  # a standard deviation off by a thousandth
            Uncentred(variance, sampler.scale, sampler.proposed),
            Shifted(variance, sampler.scale, sampler.proposed),
        ):
            law = made_law(wrong, reach)
            assert any(abs(mass - pmf(y)) > Decimal(2) ** -24 for y, mass in law.items())


@pytest.mark.parametrize(
    "variance", [*SMALL, Fraction(1, 10**400), *WIDE], ids=lambda v: str(v)[:20]
)
def test_acceptance_encloses_the_exact_one(variance: Fraction) -> None:
    """The floats hold the exact acceptance, and are tight; a mutant is not held."""
    sampler = rejection(variance)
    rng = np.random.default_rng(1)
    near = [int(Fraction(float(f)) * sampler.scale) for f in 3 * rng.standard_normal(200)]
    far = [0, 1, -1, sampler.scale, -sampler.scale, 40 * sampler.scale, 45_000 * sampler.scale]
    values = np.array([*near, *far], object)
    if max(map(abs, values)) < 1 << 62:
        values = values.astype(np.int64)
    low, high = sampler.acceptance(values)
    inside_of_mutant = 0
    with decimals():
        for y, a, b in zip(values.tolist(), low, high, strict=True):
            exact = exp(-sampler.distance(y)) * (1 << 53)
            assert Decimal(float(a)) <= exact <= Decimal(float(b))
            if abs(y) <= 4 * sampler.scale:
                assert float(b - a) <= 2.0**53 * 2.0**-40
            wrong = exact * Decimal("1.000001")
            inside_of_mutant += Decimal(float(a)) <= wrong <= Decimal(float(b))
    assert inside_of_mutant < len(values) // 2 or variance < Fraction(1, 4)


@given(
    value=st.integers(-(10**9), 10**9),
    variance=st.fractions(min_value=Fraction(1, 10**9), max_value=10**9, max_denominator=10**9),
)
def test_the_distance_is_that_of_the_theorem(value: int, variance: Fraction) -> None:
    sampler = Rejection(variance, 7, signed_digits(Fraction(7)))
    constant = variance / (2 * 7**2)
    squares = Fraction(value**2) / (2 * variance)
    assert Fraction(abs(value), 7) + sampler.distance(value) == squares + constant


def test_undecided_acceptances_are_decided_exactly() -> None:
    """Words beside the exact acceptance, where floats do not decide."""
    sampler = rejection(Fraction(10**12) / 3)
    value = sampler.scale // 3
    values = np.array([value])
    with decimals():
        word = int(exp(-sampler.distance(value)) * (1 << 53))
    low, high = sampler.acceptance(values)
    assert low[0] < word < high[0]

    class Given:
        def draw(self, bits: object, size: int) -> np.ndarray:
            return np.full(size, value)

    class Words(Seeded):
        def __init__(self, first: int) -> None:
            super().__init__(1)
            self.first: int | None = first

        def fill(self, count: int) -> np.ndarray:
            if self.first is None:
                return super().fill(count)
            first, self.first = self.first, None
            return np.full(count // 8, first << 11, np.uint64).view(np.uint8)

    given = replace(sampler, proposed=Given())  # type: ignore[arg-type]
    assert given._accepted(Words(word - 1), 1, 1).size == 1
    assert given._accepted(Words(word + 1), 1, 1).size == 0


def test_enough_are_accepted() -> None:
    """The acceptance is theta(v) exp(-v/(2 t**2)) times the mass of 0 among the proposals."""
    spread = [Fraction(k, 100) for k in (*range(1, 40), *range(40, 500, 7), 10**5)]
    with decimals():
        for variance in spread:
            sampler = rejection(variance)
            mass = laplace_pmf(Fraction(sampler.scale))(0) / gaussian_pmf(variance)(0)
            accepted = mass * exp(-variance / (2 * sampler.scale**2))
            assert accepted > Decimal(_ACCEPTANCE)
    for need in (1, 2, 10, 50, 400):
        m = proposals(need, _ACCEPTANCE)
        with decimals():
            p = Decimal(_ACCEPTANCE)
            term = (1 - p) ** m
            total = Decimal(0)
            for k in range(need):
                total += term
                term *= p / (1 - p) * (m - k) / (k + 1)
            assert total < Decimal(2) ** -45


def test_a_batch_with_too_few_is_followed_by_another(monkeypatch) -> None:
    monkeypatch.setattr("lastbit.sampling.gaussian.proposals", lambda size, _: max(1, size // 3))
    source = Counting(Seeded(3))
    assert rejection(Fraction(400)).draw(source, 300).size == 300
    assert source.requests > 6


@pytest.mark.parametrize("deviation", [2**40, 2**56, 2**60, 10**30])
def test_large_deviations(deviation: int) -> None:
    draws = [int(x) for x in rejection(Fraction(deviation) ** 2).draw(Seeded(4), 4000)]
    law = DiscreteGaussian(deviation**2)
    for level in ("0.1", "0.5", "0.9"):
        quantile = law.quantile(level)
        below = sum(x <= quantile for x in draws)
        assert abs(below / 4000 - float(level)) < 0.06  # 2 exp(-2 * 4000 * 0.06**2) < 2**-40
    assert len(set(draws)) == len(draws)
    assert {x & 1 for x in draws} == {0, 1}  # the lowest bits are used


def test_the_largest_variance_is_drawn_and_a_larger_one_refused() -> None:
    draws = rejection(Fraction(MOST_VARIANCE)).draw(Seeded(2), 100).tolist()
    assert max(map(abs, draws)) > MOST_SCALE and {type(x) for x in draws} == {int}
    with pytest.raises(InvalidParameter, match="above 2\\*\\*1024; measure in a larger unit"):
        rejection(Fraction(MOST_VARIANCE + 1))
