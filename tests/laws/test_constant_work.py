"""How many random words a draw takes does not depend on what is drawn."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

from lastbit.laws.ideal import IdealLaplace, StudentT
from lastbit.sampling.bernoulli import _bernoulli, _bernoulli_exp
from lastbit.sampling.blocks import Sampler
from lastbit.sampling.choice import majorant, wheel
from lastbit.sampling.deterministic import Counting, Seeded
from lastbit.sampling.gaussian import Rejection, rejection
from lastbit.sampling.gaussian_tables import Cells, gaussian_sampler as gaussian
from lastbit.sampling.inversion import Inversion
from lastbit.sampling.laplace import SignedDigits, signed_digits
from lastbit.sampling.laplace_tables import Digits, digits
from lastbit.sampling.planar import Shells, planar_sampler
from lastbit.sampling.rounded import RoundedSampler, rounded_sampler
from lastbit.sampling.uniform import UniformBelow

SAMPLERS: dict[str, Sampler] = {
    "uniform 6": UniformBelow(6),
    "uniform 10**18": UniformBelow(10**18),
    "uniform 2**53": UniformBelow(2**53),
    "coin 1/3": _bernoulli(Fraction(1, 3)),
    "coin exp(-1)": _bernoulli_exp(1),
    "geometric 1000": digits(Fraction(1000), signed=False),
    "laplace 1/1000": digits(Fraction(1, 1000), signed=True),
    "laplace 1": digits(Fraction(1), signed=True),
    "laplace 1000": digits(Fraction(1000), signed=True),
    "laplace 2**40": digits(Fraction(2**40), signed=True),
    "gaussian 1": gaussian(Fraction(1)),
    "gaussian 127": gaussian(Fraction(127**2)),
    "gaussian 1000": gaussian(Fraction(1000**2)),
    "gaussian 2**40": gaussian(Fraction(2**80)),
    "digits 1/1000": signed_digits(Fraction(1, 1000)),
    "digits 2**40": signed_digits(Fraction(2**40)),
    "rejection 1/10": rejection(Fraction(1, 10)),
    "rejection 2**40": rejection(Fraction(2**80)),
    "choice": wheel([1, 2, 3, "1/7"]),
    "choice_exp": majorant(np.linspace(-3, 3, 1000), Fraction(1)),
    "planar 1": planar_sampler(Fraction(1)),
    "planar 1/1000": planar_sampler(Fraction(1, 1000)),
    "rounded laplace": rounded_sampler(IdealLaplace(), "0.3", 1000),
    "rounded student": rounded_sampler(StudentT(3), "0.3", 1000),
}


def work(sampler: Sampler, size: int, seed: int) -> tuple[int, int]:
    source = Counting(Seeded(seed))
    sampler.draw(source, size)
    return source.bytes, source.requests


@pytest.mark.thinned(one_in=4)
@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("size", [1, 256, 65536])
def test_bytes_and_requests_are_constant(name: str, size: int) -> None:
    """Over many seeds: the same bytes in the same number of requests, whatever came out."""
    seeds = range(3 if size > 1000 else 100)
    assert len({work(SAMPLERS[name], size, seed) for seed in seeds}) == 1


def test_the_work_of_choice_exp_does_not_depend_on_the_exponents() -> None:
    """They are the data of the exponential mechanism; only their number is public."""
    for n in (2, 100, 1000):
        vectors = [np.zeros(n), np.linspace(0, 500, n), -(np.arange(n) ** 2.0)]
        assert len({work(majorant(v, Fraction(1)), 64, 1) for v in vectors}) == 1


def test_the_work_of_rounded_draws_does_not_depend_on_where_they_lie() -> None:
    """Location and scale may be private: the words are those of the size alone."""
    places = [("0.3", "1"), ("-12345", "1000"), ("1/7", "1/1000"), ("1e12", "1048576")]
    for size in (1, 256):
        samplers = [rounded_sampler(StudentT(3), *place) for place in places]
        assert len({work(sampler, size, 1) for sampler in samplers}) == 1


def test_a_sampler_that_rejects_would_be_seen() -> None:
    class Rejecting:
        def draw(self, bits, size: int):
            out: list[int] = []
            while len(out) < size:
                word = int(bits.fill(1)[0])
                if word < 252:
                    out.append(word % 6)
            return np.array(out)

    assert len({work(Rejecting(), 256, seed) for seed in range(20)}) > 1


def tables(sampler: Sampler) -> Iterator[Inversion]:
    match sampler:
        case Digits():
            yield from (table for table, _ in sampler.places)
        case Cells():
            yield from (sampler.body, sampler.remainder)
        case Shells():
            yield from (table for table, _ in sampler.digits.places)
            yield sampler.centre.table
        case UniformBelow() | RoundedSampler() | Rejection() | SignedDigits():
            return
        case _ if hasattr(sampler, "table"):
            yield sampler.table


@pytest.mark.parametrize("name", SAMPLERS)
def test_refinement_is_rarer_than_two_to_the_minus_forty(name: str) -> None:
    undecided = 0
    for table in tables(SAMPLERS[name]):
        undecided += int((table.highs[1:] - table.lows).sum())
    assert Fraction(undecided, 1 << 62) < Fraction(1, 1 << 40)


@pytest.mark.parametrize("name", SAMPLERS)
def test_refinement_uses_the_law_of_the_table(name: str) -> None:
    """Refinement asks for more places than the tables have: both enclose one number."""
    for table in tables(SAMPLERS[name]):
        for j in range(0, len(table.lows), max(1, len(table.lows) // 10)):
            low, high = table._edge(j, 700)
            assert high - low <= 1 << 32
            assert low >> 638 <= int(table.highs[j + 1])
            assert int(table.lows[j]) <= -(-high >> 638)
            assert table.symbol(j) == int(table.symbols[j])
