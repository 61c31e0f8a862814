"""Ten million draws of each law, against its exact probabilities.

The seeds are fixed. False alarms: below 2**-40 a test of one frequency. Each test states the
smallest relative error of a probability that it would see.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from lastbit.exact.rounding import upper
from lastbit.laws.discrete import (
    Bernoulli,
    DiscreteGaussian,
    DiscreteLaplace,
    ExpWeighted,
    Geometric,
    Uniform,
    Weighted,
)
from lastbit.laws.law import Law
from lastbit.sampling.bernoulli import _bernoulli, _bernoulli_exp
from lastbit.sampling.blocks import Sampler, drawn_with
from lastbit.sampling.choice import majorant, wheel
from lastbit.sampling.deterministic import Seeded
from lastbit.sampling.gaussian import rejection
from lastbit.sampling.gaussian_tables import gaussian_sampler as gaussian
from lastbit.sampling.laplace import signed_digits
from lastbit.sampling.laplace_tables import digits
from lastbit.sampling.uniform import UniformBelow
from tests.laws.frequency import assert_frequency, suspicious

TRIALS = 10_000_000

CASES: dict[str, tuple[Sampler, Law]] = {
    "uniform 6": (UniformBelow(6), Uniform(6)),
    "bernoulli 1/3": (_bernoulli(Fraction(1, 3)), Bernoulli("1/3")),
    "geometric 3": (digits(Fraction(3), signed=False), Geometric(3)),
    "laplace 1/2": (digits(Fraction(1, 2), signed=True), DiscreteLaplace("1/2")),
    "laplace 5": (digits(Fraction(5), signed=True), DiscreteLaplace(5)),
    "laplace 40": (digits(Fraction(40), signed=True), DiscreteLaplace(40)),
    "gaussian 2": (gaussian(Fraction(4)), DiscreteGaussian(4)),
    "gaussian 130": (gaussian(Fraction(130**2)), DiscreteGaussian(130**2)),
    "digits 1/2": (signed_digits(Fraction(1, 2)), DiscreteLaplace("1/2")),
    "digits 40": (signed_digits(Fraction(40)), DiscreteLaplace(40)),
    "rejection 1/3": (rejection(Fraction(1, 9)), DiscreteGaussian("1/9")),
    "rejection 2": (rejection(Fraction(4)), DiscreteGaussian(4)),
    "rejection 130": (rejection(Fraction(130**2)), DiscreteGaussian(130**2)),
    "choice": (wheel([1, "1/3", 2, 0.25]), Weighted([1, "1/3", 2, 0.25])),
    "choice_exp": (
        majorant([0, "1/3", -2, 1.5], Fraction(1)),
        ExpWeighted([0, "1/3", -2, 1.5]),
    ),
}


@pytest.mark.thinned(one_in=12)
@pytest.mark.parametrize("name", CASES)
def test_frequencies(name: str) -> None:
    """Every value, the two tails, and the even numbers; a one per cent error would be seen."""
    sampler, law = CASES[name]
    trials = TRIALS if name not in ("choice", "choice_exp") else TRIALS // 10
    draws = drawn_with(sampler, Seeded(sum(name.encode())), trials).astype(np.int64)
    seen = dict(zip(*np.unique(draws, return_counts=True), strict=True))
    for k in range(-12, 13):
        probability = upper(law.probability(k))
        if probability == 0:
            assert k not in seen
        elif probability < 1:
            detects = Fraction(1, 100) if probability * trials > 10**6 else None
            assert_frequency(
                int(seen.get(k, 0)), trials=trials, probability=probability, detects=detects
            )
    for k in (-300, -30, -10, -3, 0, 2, 9, 29, 299):
        probability = upper(law.cdf(k))
        if 0 < probability < 1:
            assert_frequency(int((draws <= k).sum()), trials=trials, probability=probability)


def test_exponential_coins() -> None:
    hits = int(drawn_with(_bernoulli_exp("1/2"), Seeded(1), TRIALS).sum())
    probability = upper(DiscreteLaplace(2).probability(1) / DiscreteLaplace(2).probability(0))
    assert_frequency(hits, trials=TRIALS, probability=probability, detects=Fraction(1, 100))


@pytest.mark.parametrize("bits", [7, 8, 9, 15, 16, 39])
def test_digits_join_without_a_seam(bits: int) -> None:
    """At scale 2**40, bit by bit: P[bit set] from the exact law of the digits below and above."""
    draws = drawn_with(digits(Fraction(2**40), signed=False), Seeded(bits), 1_000_000)
    law = Geometric(Fraction(2**40, 2**bits))  # the number above this bit is geometric again
    odd = sum(float(upper(law.probability(k))) for k in range(1, 4000 if bits > 30 else 3, 2))
    share = int((draws >> bits & 1).sum())
    if bits > 30:
        assert_frequency(share, trials=1_000_000, probability=odd, detects=Fraction(1, 100))
    else:
        assert_frequency(share, trials=1_000_000, probability=0.5, detects=Fraction(1, 100))


def test_the_test_itself_rejects_one_per_cent() -> None:
    assert suspicious(4_650_000, trials=TRIALS, probability=0.46, false_alarm=2.0**-40)
    assert not suspicious(4_603_000, trials=TRIALS, probability=0.46, false_alarm=2.0**-40)
