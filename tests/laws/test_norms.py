"""Laplace noise by a norm: the law by plain sums, the sampler part by part, then frequencies."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import product
from math import comb

import numpy as np
import pytest

from lastbit.errors import LastbitError
from lastbit.exact import upper
from lastbit.laws import DiscreteLaplace, DiscreteNormLaplace, DiscretePlanarLaplace
from lastbit.laws.norms import Norm, eulerian_b, points_at
from lastbit.sampling import norms
from lastbit.sampling.blocks import drawn_with
from lastbit.sampling.deterministic import Counting, Seeded
from lastbit.sampling.norms import Balls, balls, cubes, enough, norm_sampler
from tests.laws.frequency import assert_frequency, suspicious
from tests.laws.oracle import MARGIN, Refused, check_inversion, decimal, decimals, exp

BOTH: tuple[Norm, Norm] = ("L2", "Linf")


def _length(point: tuple[int, ...], norm: Norm) -> Decimal:
    if norm == "Linf":
        return Decimal(max(map(abs, point)))
    return Decimal(sum(x * x for x in point)).sqrt()


@cache
def _shells(m: int, most: int, norm: Norm) -> dict[Decimal, int]:
    """How many points have each length, by going through them."""
    counts: dict[Decimal, int] = {}
    with decimals():
        for point in product(range(-most, most + 1), repeat=m):
            square = max(map(abs, point)) ** 2 if norm == "Linf" else sum(x * x for x in point)
            counts[Decimal(square)] = counts.get(Decimal(square), 0) + 1
        return {square.sqrt(): count for square, count in counts.items()}


def _middle(law: DiscreteNormLaplace, point: tuple[int, ...]) -> Decimal:
    low, high = law.probability(point, precision=192).ends
    return decimal((low + high) / 2)


@pytest.mark.parametrize("norm", BOTH)
@pytest.mark.parametrize(("m", "rate", "most"), [(3, 8, 9), (3, Fraction(3, 2), 16), (4, 6, 6)])
def test_the_law_by_plain_sums(m: int, rate: Fraction, most: int, norm: Norm) -> None:
    """Also below the rate 2, where no point is summed; a rate off by 0.1 % is noticed."""
    law = DiscreteNormLaplace(rate, dimension=m, norm=norm)
    with decimals():
        shells = _shells(m, most, norm)
        total = sum((n * (-decimal(rate) * r).exp() for r, n in shells.items()), Decimal(0))
        left_out = exp(-rate * (most + 1)) * (2 * most + 3) ** m * 40
        for point in ((0,) * m, (1,) * m, (2, -1, 0, 0)[:m]):
            exact = (-decimal(rate) * _length(point, norm)).exp() / total
            assert exact * (1 - left_out) <= _middle(law, point) <= exact * (1 + left_out)
            off = DiscreteNormLaplace(Fraction(rate) * 1001 / 1000, dimension=m, norm=norm)
            assert abs(_middle(off, point) - exact) > exact * left_out * 2
        for k in (0, 1, 2, 3):
            weights = (n * (-decimal(rate) * r).exp() for r, n in shells.items() if r > k)
            beyond = sum(weights, Decimal(0)) / total
            bound = Decimal(law.tail_upper(k))
            assert beyond * (1 - left_out) <= bound <= beyond * (1 + Decimal("1e-9")) + left_out


@pytest.mark.parametrize("rate", ["1/1000", "1/3", "1", "7/4", "2", "9"])
def test_one_and_two_dimensions_are_known(rate: str) -> None:
    """The line in both norms, and the plane, from laws of their own."""
    line = DiscreteLaplace(1 / Fraction(rate)).probability(2, precision=256)
    for norm in BOTH:
        ours = DiscreteNormLaplace(rate, dimension=1, norm=norm).probability((-2,), precision=256)
        assert max(abs(a - b) for a, b in zip(ours.ends, line.ends, strict=True)) < 2**-200
    plane = DiscretePlanarLaplace(rate).probability((3, 1), precision=256)
    ours = DiscreteNormLaplace(rate, dimension=2, norm="L2").probability((3, 1), precision=256)
    assert max(abs(a - b) for a, b in zip(ours.ends, plane.ends, strict=True)) < 2**-200


@pytest.mark.parametrize("m", [3, 12])
def test_both_ways_to_the_euclidean_sum_meet(m: int) -> None:
    """Just below the rate 2 by Poisson's formula, just above point by point."""
    masses = [
        _middle(DiscreteNormLaplace(2 + Fraction(sign, 1 << 80), dimension=m, norm="L2"), (0,) * m)
        for sign in (-1, 0)
    ]
    assert 0 < masses[1] - masses[0] < masses[1] * Decimal(2) ** -70


def test_radii_are_the_least() -> None:
    for norm in BOTH:
        law = DiscreteNormLaplace(1, dimension=3, norm=norm)
        radius = law.radius("0.95")
        assert law.tail_upper(radius) <= 0.05 < law.tail_upper(radius - Fraction(1, 1000))
    fine = DiscreteNormLaplace("1/1000", dimension=3, norm="L2")
    # 3 degrees of the Gamma law: 6.2958 at 0.95
    assert 6290 < fine.radius("0.95") < 6303
    assert fine.tail_upper(0) < fine.tail_upper(-1) == 1.0
    assert points_at(4, 3) == [1, 8, 24, 32]


# ---------------------------------------------------------------- the maximum norm


@pytest.mark.parametrize("m", [1, 2, 3, 7, 20])
def test_cubes_are_made_of_binomials(m: int) -> None:
    counts = eulerian_b(m)
    for r in (*range(6), 50):
        parts = sum(b * comb(r - j + m, m) for j, b in enumerate(counts) if j <= r)
        assert parts == (2 * r + 1) ** m


@pytest.mark.parametrize("rate", [Fraction(1, 2**22), Fraction(1, 20), Fraction(1), Fraction(40)])
@pytest.mark.parametrize("m", [1, 3, 8])
def test_the_first_part_of_the_size(m: int, rate: Fraction) -> None:
    """B(m, j) q**j by the alternating sum; the plain Eulerian numbers are refused."""

    def part(j: int) -> int:
        return sum((-1) ** i * comb(m + 1, i) * (2 * (j - i) + 1) ** m for i in range(j + 1))

    def plain(j: int) -> int:
        return sum((-1) ** i * comb(m + 1, i) * (j + 1 - i) ** m for i in range(j + 1))

    table = cubes(rate, m).first
    with decimals():
        for count in (part, plain):
            weights = [count(j) * exp(-rate * j) for j in range(m + 1)]
            sums = [sum(weights[: j + 1], Decimal(0)) / sum(weights) for j in range(m + 1)]
            if count is part:
                check_inversion(table, sums.__getitem__, int, cells=m + 1)
            elif abs(sums[0] - 1) > MARGIN and m > 1 and rate < 20:
                with pytest.raises(Refused):
                    check_inversion(table, sums.__getitem__, int, cells=m + 1)


def test_a_point_of_a_cube_is_uniform() -> None:
    """Sizes beyond 2**31 take another way; each coordinate stays within its own size."""
    sizes = np.array([0, 1, 2**31 - 1, 2**31, 2**44] * 50)
    places = norms._within(Seeded(3), sizes)
    assert (np.abs(places) <= sizes).all()
    assert len(set(places[sizes == 2**44])) == 50
    ones = norms._within(Seeded(4), np.ones(60_000, np.int64))
    for value in (-1, 0, 1):
        hits = int((ones == value).sum())
        assert_frequency(hits, trials=60_000, probability=1 / 3, detects=Fraction(1, 20))


# ---------------------------------------------------------------- the Euclidean norm


@pytest.mark.parametrize(
    "rate", [Fraction(1, 2**22), Fraction(1, 20), Fraction(3), Fraction(10**6, 7)]
)
@pytest.mark.parametrize("m", [3, 16])
def test_acceptance_encloses_the_exact_one(m: int, rate: Fraction) -> None:
    """For points near and far; a rate off by 0.1 % is not held."""
    rng = np.random.default_rng(1)
    scale = max(int(8 / rate), 4)
    points = np.concatenate(
        [
            rng.integers(-scale, scale, (120, m)),
            np.zeros((1, m), np.int64),
            np.full((1, m), 7),
            np.full((1, m), 2**38),
            np.eye(m, dtype=np.int64) * 2**38,
        ]
    ).astype(np.int64)
    law = DiscreteNormLaplace(rate, dimension=m, norm="L2")
    sampler = balls(law)
    low, high = sampler._acceptance(points)
    wrong = 0
    with decimals():
        for point, a, b in zip(points.tolist(), low.tolist(), high.tolist(), strict=True):
            length = decimal(rate) * _length(tuple(point), "L2")
            further = length - decimal(sampler.proposal * sum(map(abs, point)))
            assert further > -Decimal("1e-60")
            exact = (-max(further, Decimal(0))).exp() * (1 << 53)
            if further > 512:
                assert a < 1 and exact < 1 and b > 0
                continue
            assert Decimal(a) <= exact <= Decimal(b)
            off = (-further * Decimal("1.001")).exp() * (1 << 53)
            wrong += any(point) and (a, b) != (0.0, 2.0**53) and Decimal(a) <= off <= Decimal(b)
    assert wrong < 30


def test_undecided_acceptances_are_decided_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    law = DiscreteNormLaplace("1/20", dimension=3, norm="L2")
    sampler = balls(law)
    with decimals():
        further = Decimal(30 * 30 + 11 * 11).sqrt() / 20 - decimal(sampler.proposal * 41)
        word = int((-further).exp() * (1 << 53))
    assert sampler._decided(Seeded(1), [30, -11, 0], word - 1)
    assert not sampler._decided(Seeded(1), [0, 11, 30], word + 1)
    fast = sampler.draw(Seeded(5), 100)["x"]

    def nothing(_: Balls, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros(len(points)), np.full(len(points), 2.0**53)

    monkeypatch.setattr(Balls, "_acceptance", nothing)
    assert np.array_equal(sampler.draw(Seeded(5), 100)["x"], fast)


def test_the_proposal_is_below_and_accepted_as_stated() -> None:
    for m, share in ((3, 0.604), (4, 0.463), (8, 0.156), (16, 0.0175)):
        sampler = balls(DiscreteNormLaplace("1/1000", dimension=m, norm="L2"))
        assert sampler.proposal**2 * m <= sampler.rate**2
        assert abs(sampler.acceptance / share - 1) < 0.01


def test_proposals_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """P[Bin(n, p) < need] summed exactly; and by force, batches go on until there are enough."""
    for need, chance in ((1, "0.0175"), (10, "0.5"), (100, "0.9"), (256, "0.0175")):
        n = enough(need, float(chance))
        with decimals():
            p = Decimal(chance)
            term, total = (1 - p) ** n, Decimal(0)
            for k in range(need):
                total += term
                term *= p / (1 - p) * (n - k) / (k + 1)
            assert total < Decimal(2) ** -45
    monkeypatch.setattr(norms, "enough", lambda size, _: max(1, size // 3))
    law = DiscreteNormLaplace(1, dimension=3, norm="L2")
    zero = int((balls(law).draw(Seeded(1), 5000)["x"] == 0).all(axis=1).sum())
    assert_frequency(zero, trials=5000, probability=upper(law.probability((0, 0, 0))))


# ---------------------------------------------------------------- the whole


@pytest.mark.parametrize("norm", BOTH)
@pytest.mark.parametrize(("rate", "m"), [("1/2", 3), ("2", 3), ("1", 4)])
def test_frequencies(rate: str, m: int, norm: Norm) -> None:
    """Points and tails of 200,000 draws; the other norm's noise is noticed."""
    trials = 200_000
    law = DiscreteNormLaplace(rate, dimension=m, norm=norm)
    draws = drawn_with(norm_sampler(law), Seeded(7), trials)["x"]
    for point in ((0,) * m, (1, *(0,) * (m - 1)), (*(0,) * (m - 1), -1), (1,) * m):
        hits = int((draws == np.array(point)).all(axis=1).sum())
        assert_frequency(hits, trials=trials, probability=upper(law.probability(point)))
    length = np.abs(draws).max(axis=1) if norm == "Linf" else np.sqrt((draws**2).sum(axis=1))
    near = law.radius("1/2")
    inside = 1 - law.tail_upper(near)
    hits = int((length <= float(near)).sum())
    assert_frequency(hits, trials=trials, probability=inside, detects=Fraction(1, 20))
    other = DiscreteNormLaplace(rate, dimension=m, norm="L2" if norm == "Linf" else "Linf")
    zeros = int((draws == 0).all(axis=1).sum())
    chance = upper(other.probability((0,) * m))
    assert suspicious(zeros, trials=trials, probability=chance, false_alarm=2.0**-40)


@pytest.mark.parametrize("norm", BOTH)
@pytest.mark.parametrize("size", [1, 300])
def test_bytes_and_requests_are_constant(norm: Norm, size: int) -> None:
    sampler = norm_sampler(DiscreteNormLaplace("1/1000", dimension=3, norm=norm))
    seen = set()
    for seed in range(20):
        source = Counting(Seeded(seed))
        sampler.draw(source, size)
        seen.add((source.bytes, source.requests))
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        (dict(rate=0, dimension=3, norm="L2"), "rate is zero"),
        (dict(rate=float("nan"), dimension=3, norm="L2"), "rate"),
        (dict(rate=1, dimension=0, norm="L2"), "dimension"),
        (dict(rate=1, dimension=17, norm="L2"), "above 16"),
        (dict(rate=1, dimension=65, norm="Linf"), "above 64"),
        (dict(rate=1, dimension=2.5, norm="Linf"), "dimension"),
        (dict(rate=1, dimension=3, norm="L1"), "norm is unknown"),
        (dict(rate=1, dimension=2, norm=np.array(["L2", "Linf"])), "norm is unknown"),
        (dict(rate=Fraction(1, 2**300), dimension=3, norm="L2"), "below 2"),
    ],
)
def test_bad_laws(parameters: dict, words: str) -> None:
    with pytest.raises(LastbitError, match=words):
        DiscreteNormLaplace(**parameters)


def test_bad_points_and_rates() -> None:
    law = DiscreteNormLaplace(1, dimension=3, norm="L2")
    for point in ((1, 2), 5, "abc", (1, 2, 0.5), None):
        with pytest.raises(LastbitError, match="point"):
            law.probability(point)
    with pytest.raises(LastbitError, match="below 2"):
        norm_sampler(DiscreteNormLaplace(Fraction(1, 2**23), dimension=3, norm="L2"))
    huge = DiscreteNormLaplace(10**400, dimension=3, norm="L2")
    assert (norm_sampler(huge).draw(Seeded(1), 3)["x"] == 0).all()
