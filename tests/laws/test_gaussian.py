"""Discrete Gaussian: the direct table, the cells, their remainder, extremes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from lastbit.laws.discrete import DiscreteGaussian
from lastbit.sampling.deterministic import Seeded
from lastbit.sampling.gaussian_tables import Cells, cells, direct, gaussian_sampler as gaussian
from lastbit.sampling.lazy import proposals
from tests.laws.oracle import Refused, check_inversion, decimals, exp, gaussian_pmf

RESIDUAL = 32767


def zigzag(j: int) -> int:
    return (j + 1) // 2 if j % 2 else -(j // 2)


def direct_cumulative(pmf: Callable[[int], Decimal]) -> Callable[[int], Decimal]:
    sums = [pmf(0)]

    def at(j: int) -> Decimal:
        while len(sums) <= j:
            sums.append(sums[-1] + pmf(zigzag(len(sums))))
        return sums[j]

    return at


DIRECT = [Fraction(1, 10**6), Fraction(1, 4), Fraction(1), Fraction(22, 7), Fraction(400)]


@pytest.mark.thinned(one_in=4)
@pytest.mark.parametrize("variance", DIRECT, ids=str)
def test_direct_tables(variance: Fraction) -> None:
    with decimals():
        law = direct_cumulative(gaussian_pmf(variance))
        check_inversion(direct(variance).table, law, zigzag)


@pytest.mark.parametrize("variance", [Fraction(1), Fraction(400)], ids=str)
def test_direct_mutants_are_rejected(variance: Fraction) -> None:
    pmf = gaussian_pmf(variance)
    with decimals():
        law = direct_cumulative(pmf)
        table = direct(variance).table
        with pytest.raises(Refused):  # a standard deviation off by a thousandth
            check_inversion(direct(variance * Fraction(1001, 1000) ** 2).table, law, zigzag)
        with pytest.raises(Refused):  # zero twice
            check_inversion(
                table, direct_cumulative(lambda k: pmf(k) * (2 if k == 0 else 1)), zigzag
            )
        with pytest.raises(Refused):  # the tail dropped
            short = replace(
                table, lows=table.lows[:9], highs=table.highs[:10], symbols=table.symbols[:10]
            )
            check_inversion(short, law, zigzag)


def weight(x: int, variance: Fraction) -> Decimal:
    return exp(Fraction(-x * x) / (2 * variance))


def cells_law(sampler: Cells, last: int) -> dict[int, Decimal]:
    """The law that the sampler's tables and its acceptance make, value by value.

    Body and proposal masses are read off the tables; the acceptance is the exact one, which
    `test_acceptance_encloses_the_exact_one` ties to the code.
    """
    unit = Decimal(1 << 62)
    width = 1 << sampler.cell_bits

    def masses(table) -> dict[int, Decimal]:
        edges = [0, *table.lows.tolist(), 1 << 62]
        pairs = pairwise(edges)
        return {
            int(s): Decimal(b - a) / unit for s, (a, b) in zip(table.symbols, pairs, strict=True)
        }

    body, proposals = masses(sampler.body), masses(sampler.remainder)
    law: dict[int, Decimal] = {}
    remainder: dict[int, Decimal] = {}
    for c in range(last):
        start, end = weight(c * width, sampler.variance), weight((c + 1) * width, sampler.variance)
        for sign in (0, 1):
            cell = ~c if sign else c
            for rest in range(width):
                x = cell * width + rest
                law[x] = body.get(cell, Decimal(0)) / width
                accept = (weight(x, sampler.variance) - end) / (start - end)
                assert 0 <= accept <= 1
                remainder[x] = proposals[c] / 2 / width * accept
    accepted = sum(remainder.values())
    return {x: law[x] + body[RESIDUAL] * remainder[x] / accepted for x in law}


@pytest.mark.parametrize(
    ("variance", "per_deviation"),
    [(Fraction(100), 4), (Fraction(1000, 7), 4), (Fraction(5000), 16)],
)
def test_cells_make_the_discrete_gaussian_law(variance: Fraction, per_deviation: int) -> None:
    with decimals():
        sampler = cells(variance, cells_per_deviation=per_deviation)
        assert sampler.cell_bits >= 1
        last = len(sampler.remainder.symbols) - 3
        law, pmf = cells_law(sampler, last), gaussian_pmf(variance)
        assert all(abs(mass - pmf(x)) < Decimal(2) ** -50 for x, mass in law.items())
        off = gaussian_pmf(variance * Fraction(1001, 1000) ** 2)
        assert any(abs(mass - off(x)) > Decimal(2) ** -24 for x, mass in law.items())


def body_cumulative(variance: Fraction, width: int) -> Callable[[int], Decimal]:
    """Counted down from 1: what lies beyond cell j is a sum of bodies that dies out fast."""
    total = 2 * sum(weight(k, variance) for k in range(1, 12 * int(variance**0.5))) + 1
    last = 16 * int(float(variance) ** 0.5) // width
    bodies = [width * weight((c + 1) * width, variance) / total for c in range(last)]

    def at(j: int) -> Decimal:
        c, part = divmod(j - 1, 2) if j else (0, -1)
        beyond = 2 * sum(bodies[c + 1 :]) + bodies[c] * (1 - part)
        return 1 - beyond

    return at


def test_cell_tables_at_full_size() -> None:
    variance = Fraction(130**2)
    sampler = cells(variance)
    width = 1 << sampler.cell_bits

    def symbol(j: int) -> int:
        c, part = divmod(j - 1, 2)
        return RESIDUAL if j == 0 else (~c if part else c)

    with decimals():
        check_inversion(sampler.body, body_cumulative(variance, width), symbol)
        check_inversion(
            sampler.remainder, lambda c: 1 - weight((c + 1) * width, variance), lambda c: c
        )
        with pytest.raises(Refused):
            wrong = body_cumulative(variance * Fraction(999, 1000), width)
            check_inversion(sampler.body, wrong, symbol)


@pytest.mark.parametrize(
    "variance", [Fraction(130**2), Fraction(10**12) / 3, Fraction(2**80), Fraction(2**140)]
)
def test_acceptance_encloses_the_exact_one(variance: Fraction) -> None:
    """The float enclosure holds the exact acceptance, and is tight; a mutant is not held."""
    sampler = cells(variance)
    width = 1 << sampler.cell_bits
    rng = np.random.default_rng(1)
    cell = np.concatenate([rng.integers(0, 300, 300), [0, 0, 0, 0, 1, 2, 19_000]])
    fraction = np.concatenate([rng.random(300), [0, 0.5, 0.999, 0, 0, 0, 0.5]])
    rest = np.array([int(Fraction(float(f)) * width) for f in fraction], object)
    rest = rest if sampler.cell_bits > 62 else rest.astype(np.int64)
    sign = np.array([i % 2 for i in range(cell.size)])
    low, high = sampler._acceptance(cell, sign, rest)
    inside_of_mutant = 0
    with decimals():
        for c, s, r, a, b in zip(
            cell.tolist(), sign.tolist(), rest.tolist(), low, high, strict=True
        ):
            x = (c + 1) * width - r if s else c * width + r
            start, end = Fraction((c * width) ** 2), Fraction(((c + 1) * width) ** 2)
            here = exp((start - Fraction(x * x)) / (2 * variance))
            far = exp((start - end) / (2 * variance))
            exact = (here - far) / (1 - far) * (1 << 53)
            assert Decimal(float(a)) <= exact <= Decimal(float(b))
            assert float(b - a) <= 2.0**53 * 2.0**-40 / float(1 - far)
            wrong = exact * Decimal("1.000001")
            inside_of_mutant += Decimal(float(a)) <= wrong <= Decimal(float(b))
    assert inside_of_mutant < cell.size // 2


def test_undecided_acceptances_are_decided_exactly() -> None:
    sampler = cells(Fraction(130**2))
    width = 1 << sampler.cell_bits
    c, r = 7, 1
    with decimals():
        start, end = weight(c * width, sampler.variance), weight((c + 1) * width, sampler.variance)
        exact = (weight(c * width + r, sampler.variance) - end) / (start - end) * (1 << 53)
        word = int(exact)
    assert sampler._decided(Seeded(1), c, 0, r, word - 1)
    assert not sampler._decided(Seeded(1), c, 0, r, word + 1)


def test_proposals_are_enough() -> None:
    """P[Bin(m, 0.48) < need] summed exactly; the true acceptance is one half."""
    for need in (1, 2, 10, 50, 400):
        m = proposals(need, 0.48)
        with decimals():
            p = Decimal("0.48")
            term = (1 - p) ** m
            total = Decimal(0)
            for k in range(need):
                total += term
                term *= p / (1 - p) * (m - k) / (k + 1)
            assert total < Decimal(2) ** -45


@pytest.mark.parametrize("deviation", [2**40, 2**56, 2**60, 10**30])
def test_large_deviations(deviation: int) -> None:
    sampler = gaussian(Fraction(deviation) ** 2)
    draws = [int(x) for x in sampler.draw(Seeded(4), 4000)]
    law = DiscreteGaussian(deviation**2)
    for level in ("0.1", "0.5", "0.9"):
        quantile = law.quantile(level)
        below = sum(x <= quantile for x in draws)
        assert abs(below / 4000 - float(level)) < 0.06  # 2 exp(-2 * 4000 * 0.06**2) < 2**-40
    assert len(set(draws)) == len(draws)
    # the lowest bits are used: neither all even nor all odd
    assert {x & 1 for x in draws} == {0, 1}


def test_values_beyond_int64_are_python_integers() -> None:
    draws = gaussian(Fraction(2**62) ** 2).draw(Seeded(2), 1000)
    assert draws.dtype == object
    assert max(abs(x) for x in draws) > 1 << 63
