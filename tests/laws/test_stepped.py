"""Laws that are constant on runs."""

from __future__ import annotations

from fractions import Fraction

from lastbit.laws.transformed import Stepped
from tests.laws.oracle import decimal, decimals, exp

LAW = Stepped((-3, 0, 1, 5), (3, 1, 4, 2), (4, 1, 0, 9), Fraction(1, 3))


def test_masses_and_sums() -> None:
    with decimals():
        weights = {
            k: exp(-Fraction(distance, 3))
            for start, count, distance in zip(LAW.starts, LAW.counts, LAW.distances, strict=True)
            for k in range(start, start + count)
        }
        total, upto = sum(weights.values()), decimal(0)
        for k in range(-5, 9):
            upto += weights.get(k, decimal(0))
            low, high = LAW.probability(k).ends
            assert decimal(low) <= weights.get(k, decimal(0)) / total + decimal(Fraction(1, 10**60))
            assert decimal(high) >= weights.get(k, decimal(0)) / total - decimal(
                Fraction(1, 10**60)
            )
            low, high = LAW.cdf(k).ends
            assert decimal(low) - decimal(Fraction(1, 10**60)) <= upto / total
            assert decimal(high) + decimal(Fraction(1, 10**60)) >= upto / total


def test_support_and_quantiles() -> None:
    assert LAW.support == (-3, 6)
    assert LAW.quantile("1/1000000") == -3
    assert LAW.quantile("999999/1000000") == 6
    assert "counts" not in repr(LAW)
