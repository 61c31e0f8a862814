"""Law objects against Decimal sums, and with themselves."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from flint import arb
from hypothesis import given, settings, strategies as st

from lastbit.errors import InvalidParameter, LastbitError
from lastbit.exact.ball import ends, working_precision
from lastbit.laws.discrete import (
    Bernoulli,
    DiscreteGaussian,
    DiscreteLaplace,
    ExpWeighted,
    Geometric,
    Uniform,
    Weighted,
    _tail_by_euler_maclaurin,
    _tail_by_terms,
    theta,
)
from lastbit.laws.law import Law
from tests.laws.oracle import decimal, decimals, exp, gaussian_pmf, laplace_pmf

scales = st.fractions(Fraction(1, 100), 10**6, max_denominator=1000)


def holds(ball, exact: Decimal) -> bool:
    """Whether a ball holds a Decimal, up to the Decimal's own error, and is tight."""
    low, high = ball.ends
    margin = Decimal(10) ** -60
    return decimal(low) - margin <= exact <= decimal(high) + margin and high - low < Fraction(
        1, 10**30
    )


@given(scales, st.integers(-50, 50))
def test_laplace(scale: Fraction, k: int) -> None:
    law = DiscreteLaplace(scale)
    with decimals():
        pmf, q = laplace_pmf(scale), exp(-1 / scale)
        assert holds(law.probability(k), pmf(k))
        tail = exp(-Fraction(abs(k + 1 if k >= 0 else k)) / scale) / (1 + q)
        assert holds(law.cdf(k), 1 - tail if k >= 0 else tail)
        if scale >= 1:  # below, P[0] is too close to 1 for this to show
            assert not holds(law.probability(0), laplace_pmf(scale * Fraction(1001, 1000))(0))


@given(scales, st.integers(-3, 200))
def test_geometric(scale: Fraction, k: int) -> None:
    law = Geometric(scale)
    with decimals():
        q = exp(-1 / scale)
        assert holds(law.probability(k), (1 - q) * q**k if k >= 0 else Decimal(0))
        assert holds(law.cdf(k), 1 - q ** (k + 1) if k >= 0 else Decimal(0))


@pytest.mark.parametrize("variance", ["1/20", "1/3", "0.999", 1, "1.001", "22/7", 100, 1023, 1024])
def test_gaussian(variance: object) -> None:
    law = DiscreteGaussian(variance)  # type: ignore[arg-type]
    with decimals():
        pmf = gaussian_pmf(law.variance)
        upto = {k: pmf(k) for k in range(-60, 61)}
        running = (1 - sum(upto.values(), Decimal(0))) / 2
        for k in range(-60, 61):
            running += upto[k]
            assert holds(law.probability(k), upto[k])
            assert holds(law.cdf(k), running)


@pytest.mark.parametrize("variance", [Fraction(1024), Fraction(33333, 10), Fraction(10**5)])
@pytest.mark.parametrize("precision", [64, 128, 512])
def test_the_two_tails_agree(variance: Fraction, precision: int) -> None:
    """Term by term and Euler-Maclaurin enclose the same number; a correction with the wrong sign
    would not."""
    for start in (1, 2, 17, 100, 1000):
        with working_precision(precision):
            by_terms = _tail_by_terms(start, variance)
            corrected = _tail_by_euler_maclaurin(start, variance)
            assert by_terms.overlaps(corrected)
            width = ends(corrected)[1] - ends(corrected)[0]
            assert width < Fraction(1, 1 << (precision - 40))
            if start <= 100:  # beyond, the corrections themselves are below the radius
                assert not by_terms.overlaps(corrected - 2 * first_correction(start, variance))


def first_correction(start: int, variance: Fraction) -> arb:
    """- B_2/2! f'(start), which is f(start) start / (12 variance)."""
    spread = arb(variance.numerator) / variance.denominator
    return (-(arb(start) ** 2) / (2 * spread)).exp() * start / (12 * spread)


def test_theta_on_both_sides_of_one() -> None:
    """Poisson summation and the plain sum meet."""
    for variance in (Fraction(9, 10), Fraction(1), Fraction(11, 10)):
        with decimals():
            plain = 1 + 2 * sum(exp(Fraction(-k * k) / (2 * variance)) for k in range(1, 40))
        with working_precision(200):
            low, high = ends(theta(variance))
        with decimals():
            assert decimal(low) <= plain + Decimal(10) ** -55
            assert plain <= decimal(high) + Decimal(10) ** -55
        assert high - low < Fraction(1, 10**50)


LAWS: list[Law] = [
    Uniform(10), Bernoulli("1/3"), Geometric("7/2"), DiscreteLaplace(5), DiscreteGaussian(30),
    Weighted([1, 0, 2, "1/2"]), ExpWeighted([0, 1, "1/2", 0]), DiscreteGaussian(5000),
    DiscreteGaussian("1/50"), DiscreteLaplace("1/1000"),
]  # fmt: skip


@pytest.mark.thinned(one_in=12)
@pytest.mark.parametrize("law", LAWS, ids=repr)
@settings(max_examples=40)
@given(level=st.fractions(0, 1, max_denominator=10**6).filter(lambda p: 0 < p < 1))
def test_quantiles_are_the_least(law: Law, level: Fraction) -> None:
    k = law.quantile(level)

    def reaches(value: int) -> bool:
        known = law.exact_cumulative(value)
        return known >= level if known is not None else law.cdf(value, precision=400) >= level

    assert reaches(k)
    assert not reaches(k - 1)


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_masses_are_differences(law: Law) -> None:
    for k in range(-12, 13):
        difference = law.cdf(k) - law.cdf(k - 1)
        low, high = law.probability(k).ends
        other_low, other_high = difference.ends
        assert low <= other_high
        assert other_low <= high


def test_rational_laws_are_exact() -> None:
    assert Weighted([1, 2, 3]).quantile("1/2") == 1
    assert Weighted([1, 2, 3]).quantile("500001/1000000") == 2
    assert Uniform(4).quantile("1/4") == 0
    assert Bernoulli("1/4").quantile("3/4") == 0


def test_exponential_weights_decide_equality() -> None:
    """Equal exponents make a rational cumulative; no precision would decide that."""
    assert ExpWeighted([7, 7, 7]).quantile("1/3") == 0
    assert ExpWeighted([0, 1, 0, 1]).quantile("1/2") == 1
    assert ExpWeighted([0, 1, 0, 1]).exact_cumulative(0) is None
    assert ExpWeighted([0, 5]).exact_cumulative(1) == 1


@pytest.mark.parametrize("level", [0, 1, -1, 2, "nan", float("nan"), None, True])
def test_bad_levels(level: object) -> None:
    with pytest.raises(LastbitError, match="probability"):
        Uniform(3).quantile(level)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Uniform(0), lambda: Bernoulli(2), lambda: Geometric(0), lambda: DiscreteLaplace(-1),
        lambda: DiscreteGaussian(0), lambda: Weighted([]), lambda: Weighted([0, 0]),
        lambda: Weighted([1, -1]), lambda: ExpWeighted([]), lambda: DiscreteLaplace(float("inf")),
    ],
)  # fmt: skip
def test_bad_parameters(make) -> None:
    with pytest.raises(InvalidParameter):
        make()


@pytest.mark.parametrize("value", [3**50, -(10**60), 10**60])
def test_far_tails_come_to_an_end(value: int) -> None:
    """Beyond the reach of the working precision a tail is known in size only, and that is said."""
    law = DiscreteGaussian(1)
    assert law.cdf(value) > "0.999" if value > 0 else law.cdf(value) < "1e-9"


def test_minute_variances_come_to_an_end() -> None:
    assert DiscreteGaussian("1e-100").cdf(0) > "0.999"
    assert DiscreteGaussian("1e-30").quantile("1/2") == 0
