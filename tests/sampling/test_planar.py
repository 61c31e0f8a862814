"""Planar Laplace draws: the exact law of the parts, and the frequencies of the whole."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lastbit.errors import LastbitError
from lastbit.exact.rounding import upper
from lastbit.laws.planar import DiscretePlanarLaplace
from lastbit.sampling import planar
from lastbit.sampling.blocks import drawn_with
from lastbit.sampling.deterministic import Counting, Seeded
from lastbit.sampling.lazy import proposals
from lastbit.sampling.planar import Shells, coordinates, planar_laplace, shells, turned
from tests.laws.frequency import assert_frequency, suspicious
from tests.laws.oracle import Refused, check_inversion, decimal, decimals, exp

RATES = [Fraction(1, 1000), Fraction(1, 20), Fraction(1), Fraction(5, 2)]


# ---------------------------------------------------------------- the proposal


def centre(rate: Fraction, zeros: int = 1) -> Decimal:
    """The probability of the shell 0, if it had so many points."""
    q = exp(-rate)
    return zeros / (zeros + 8 * q / (1 - q) ** 2)


@pytest.mark.thinned(one_in=4)
@pytest.mark.parametrize("rate", [*RATES, Fraction(1, 2**22), Fraction(20)], ids=str)
def test_the_coin_of_the_centre(rate: Fraction) -> None:
    table = shells(rate).centre.table
    with decimals():
        check_inversion(table, lambda _: centre(rate), lambda j: 1 - j, cells=2)
        with pytest.raises(Refused):  # zero counted eight times
            check_inversion(table, lambda _: centre(rate, 8), lambda j: 1 - j, cells=2)
        with pytest.raises(Refused):  # a rate off by 0.1 %
            off = rate * Fraction(1001, 1000)
            check_inversion(table, lambda _: centre(off), lambda j: 1 - j, cells=2)


@pytest.mark.parametrize("rate", [Fraction(1), Fraction(5, 2)], ids=str)
def test_the_geometric_parts(rate: Fraction) -> None:
    """One table for large rates; test_laplace.py judges those of several digits."""
    [(table, shift)] = shells(rate).digits.places
    assert shift == 0
    with decimals():
        check_inversion(table, lambda j: 1 - exp(-rate * (j + 1)), lambda j: j)
        with pytest.raises(Refused):
            off = rate * Fraction(1001, 1000)
            check_inversion(table, lambda j: 1 - exp(-off * (j + 1)), lambda j: j)


def placed(k: int) -> Counter[tuple[int, int]]:
    """Where the places of a shell come to lie, each place and turn once."""
    across = np.tile(np.arange(-k, max(k, 1), dtype=np.int64), 4)
    side = np.repeat(np.arange(4, dtype=np.int64), across.size // 4)
    points = coordinates(turned(np.full(across.size, k, np.int64), across, side))
    return Counter((int(i), int(j)) for i, j in points)


@pytest.mark.parametrize("k", [1, 2, 3, 17])
def test_every_point_of_a_shell_once(k: int) -> None:
    shell = {(i, j) for i in range(-k, k + 1) for j in range(-k, k + 1) if max(abs(i), abs(j)) == k}
    found = placed(k)
    assert set(found) == shell
    assert set(found.values()) == {1}
    assert len(found) == 8 * k


def test_the_corners_twice_would_be_seen() -> None:
    """The mutant: places from -k to k on every side."""
    k = 2
    across = np.tile(np.arange(-k, k + 1, dtype=np.int64), 4)
    side = np.repeat(np.arange(4, dtype=np.int64), 2 * k + 1)
    points = coordinates(turned(np.full(across.size, k, np.int64), across, side))
    found = Counter((int(i), int(j)) for i, j in points)
    assert max(found.values()) == 2


@pytest.mark.parametrize("rate", [Fraction(1, 3), Fraction(1), Fraction(5, 2)], ids=str)
def test_the_parts_make_the_law(rate: Fraction) -> None:
    """Shell by the tables' law, place, acceptance: proportional to exp(-a abs(x))."""
    law = DiscretePlanarLaplace(rate)

    def made(norm: object = None, corners: int = 1) -> bool:
        ratios = []
        for i, j in ((0, 0), (1, 0), (1, 1), (-2, 1), (3, -3), (0, 4)):
            k = max(abs(i), abs(j))
            q = exp(-rate)
            if k == 0:
                proposal = centre(rate)
            else:
                shell = (1 - centre(rate)) * k * (1 - q) ** 2 * q ** (k - 1)
                proposal = shell / (8 * k) * (corners if abs(i) == abs(j) else 1)
            length = Decimal(i * i + j * j).sqrt() if norm is None else Decimal(abs(i) + abs(j))
            accept = (-decimal(rate) * (length - k)).exp()
            low, high = law.probability((i, j), precision=256).ends
            ratios.append(proposal * accept / decimal((low + high) / 2))
        return max(ratios) - min(ratios) < Decimal("1e-60") * max(ratios)

    with decimals():
        assert made()
        assert not made(norm="the sum of the coordinates")
        assert not made(corners=2)


# ---------------------------------------------------------------- the acceptance


@pytest.mark.parametrize("rate", [*RATES, Fraction(1, 2**22), Fraction(10**6, 7)], ids=str)
def test_acceptance_encloses_the_exact_one(rate: Fraction) -> None:
    """Also with shells beyond all that are ever drawn; the 1-norm and 0.1 % are not held."""
    rng = np.random.default_rng(1)
    scale = max(int(8 / rate), 4)
    k = np.concatenate([rng.integers(1, scale, 300), [0, 1, 1, 2**26 + 1, 2**39 + 5, 2**39 + 5]])
    m = np.concatenate([rng.integers(-k[:300], k[:300]), [0, -1, 0, -(2**20), 3, 2**39 + 4]])
    low, high = shells(rate)._acceptance(k, m)
    held_wrongly = [0, 0]
    with decimals():
        for kk, mm, a, b in zip(k.tolist(), m.tolist(), low.tolist(), high.tolist(), strict=True):
            further = Decimal(kk * kk + mm * mm).sqrt() - kk
            exact = (-decimal(rate) * further).exp() * (1 << 53)
            if decimal(rate) * further > 512:
                assert a < 1  # nothing is surely accepted, and the first word only is open
                assert 0 < b <= 1
                assert exact < 1
                continue
            assert Decimal(a) <= exact <= Decimal(b)
            assert b - a <= 2 * (17 * 512 + 33)
            wrong = (-decimal(rate) * abs(mm)).exp() * (1 << 53)
            held_wrongly[0] += mm != 0 and Decimal(a) <= wrong <= Decimal(b)
            wrong = (-decimal(rate) * further * Decimal("1.001")).exp() * (1 << 53)
            held_wrongly[1] += mm != 0 and Decimal(a) <= wrong <= Decimal(b)
    assert max(held_wrongly) < 30


def test_undecided_acceptances_are_decided_exactly() -> None:
    sampler = shells(Fraction(1, 20))
    with decimals():
        further = Decimal(30 * 30 + 11 * 11).sqrt() - 30
        word = int((-further / 20).exp() * (1 << 53))
    assert sampler._decided(Seeded(1), 30, -11, word - 1)
    assert not sampler._decided(Seeded(1), 30, 11, word + 1)
    assert sampler._decided(Seeded(1), 30, 0, (1 << 53) - 1)
    assert sampler._decided(Seeded(1), 0, 0, (1 << 53) - 1)


def test_all_acceptances_decided_by_balls_give_the_same_points(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The exact way agrees with the fast one wherever the fast one decides."""
    fast = coordinates(shells(Fraction(1, 20)).draw(Seeded(5), 300))

    def nothing(_: Shells, shell: np.ndarray, __: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros(shell.size), np.full(shell.size, 2.0**53)

    monkeypatch.setattr(Shells, "_acceptance", nothing)
    assert np.array_equal(coordinates(shells(Fraction(1, 20)).draw(Seeded(5), 300)), fast)


def test_a_rate_beyond_all_floats() -> None:
    assert planar_laplace(10**400) == (0, 0)
    low, high = shells(Fraction(10**400))._acceptance(np.array([0, 1, 1]), np.array([0, 0, -1]))
    assert low[0] == low[1] > 2.0**52
    assert low[2] < 1
    assert 0 < high[2] < 1


# ---------------------------------------------------------------- the work


def test_proposals_are_enough() -> None:
    """P[Bin(m, 0.77) < need] summed exactly; the true acceptance is never below."""
    for need in (1, 2, 10, 50, 400):
        m = proposals(need, 0.77)
        with decimals():
            p = Decimal("0.77")
            term = (1 - p) ** m
            total = Decimal(0)
            for k in range(need):
                total += term
                term *= p / (1 - p) * (m - k) / (k + 1)
            assert total < Decimal(2) ** -45


@given(st.floats(2.0**-22, 100))
def test_the_acceptance_is_at_least_077(rate: float) -> None:
    chance = DiscretePlanarLaplace(rate).probability((0, 0), precision=192)
    with decimals():
        low, high = chance.ends
        accepted = centre(Fraction(rate)) / decimal((low + high) / 2)
        assert Decimal("0.77") < accepted < Decimal(1) + Decimal("1e-9")


@pytest.mark.parametrize("rate", [Fraction(1, 2**22), Fraction(1, 1000), Fraction(2)], ids=str)
@pytest.mark.parametrize("size", [1, 256, 65536])
def test_bytes_and_requests_are_constant(rate: Fraction, size: int) -> None:
    sampler = shells(rate)
    seen = set()
    for seed in range(3 if size > 1000 else 40):
        source = Counting(Seeded(seed))
        sampler.draw(source, size)
        seen.add((source.bytes, source.requests))
    assert len(seen) == 1


def test_too_few_accepted_are_made_up_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The event of probability 2**-48, by force: batches go on until there are enough."""
    monkeypatch.setattr(planar, "proposals", lambda size, _: max(1, size // 3))
    draws = shells(Fraction(1)).draw(Seeded(1), 20_000)
    zero = int(((draws["i"] == 0) & (draws["j"] == 0)).sum())
    chance = upper(DiscretePlanarLaplace(1).probability((0, 0)))
    assert_frequency(zero, trials=20_000, probability=chance)


# ---------------------------------------------------------------- the whole


@pytest.mark.thinned(one_in=9)
@pytest.mark.parametrize("rate", ["1/3", "1", "5/2"])
def test_frequencies_around_zero(rate: str) -> None:
    """Every point near 0 and the tail; two per cent of the more likely ones would be seen."""
    trials = 2_000_000
    law = DiscretePlanarLaplace(rate)
    draws = coordinates(drawn_with(shells(Fraction(rate)), Seeded(11), trials))
    for i in range(-3, 4):
        for j in range(-3, 4):
            hits = int(((draws[:, 0] == i) & (draws[:, 1] == j)).sum())
            chance = upper(law.probability((i, j)))
            detects = Fraction(1, 50) if chance * trials > 200_000 else None
            assert_frequency(hits, trials=trials, probability=chance, detects=detects)
    beyond = int((draws.astype(np.float64) ** 2).sum(axis=1).__gt__(49.5).sum())
    assert_frequency(beyond, trials=trials, probability=law.tail_upper(7))


def test_the_quadrants_and_the_radius_of_a_large_noise() -> None:
    trials = 1_000_000
    draws = coordinates(drawn_with(shells(Fraction(1, 1000)), Seeded(3), trials))
    x, y = draws[:, 0], draws[:, 1]
    # a quarter turn maps x > 0, y >= 0 to the next: four of them and 0 make up the plane
    alone = upper(DiscretePlanarLaplace("1/1000").probability((0, 0)))
    quarter = (1 - alone) / 4
    for part in ((x > 0) & (y >= 0), (x <= 0) & (y > 0), (x < 0) & (y <= 0), (x >= 0) & (y < 0)):
        hits = int(part.sum())
        assert_frequency(hits, trials=trials, probability=quarter, detects=Fraction(1, 50))
    radius = np.hypot(x.astype(np.float64), y.astype(np.float64))
    for t in (0.5, 1, 2, 5):  # 1 - (1 + t) exp(-t), which the lattice changes by less than 1e-5
        inside = 1 - (1 + t) * math.exp(-t)
        hits = int((radius <= 1000 * t).sum())
        assert_frequency(hits, trials=trials, probability=inside)
        off = 1 - (1 + t * 1.03) * math.exp(-t * 1.03)
        assert t == 5 or suspicious(hits, trials=trials, probability=off, false_alarm=2.0**-20)
    # the two diagonals: a geometric sum; corners counted twice would double them
    diagonal = (1 + 4 / math.expm1(math.sqrt(2) / 1000)) * alone
    hits = int((np.abs(x) == np.abs(y)).sum())
    assert_frequency(hits, trials=trials, probability=diagonal, detects=Fraction(1, 2))


def test_shells_too_far_for_the_fast_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """By force all shells from 2 on go through Python integers; the law is the same."""
    monkeypatch.setattr(planar, "_FAR_SHELL", 2)
    trials = 20_000
    law = DiscretePlanarLaplace(1)
    draws = coordinates(shells(Fraction(1)).draw(Seeded(8), trials))
    for point in ((0, 0), (1, 0), (2, 0), (-2, 2), (1, -2)):
        hits = int((draws == point).all(axis=1).sum())
        assert_frequency(hits, trials=trials, probability=upper(law.probability(point)))


def test_the_widest_noise() -> None:
    draws = coordinates(shells(Fraction(1, 2**22)).draw(Seeded(4), 4000))
    radius = np.hypot(draws[:, 0].astype(np.float64), draws[:, 1].astype(np.float64)) / 2**22
    for t in (1.0, 3.0):
        inside = 1 - (1 + t) * math.exp(-t)
        assert_frequency(int((radius <= t).sum()), trials=4000, probability=inside)
    assert len({tuple(p) for p in draws.tolist()}) == 4000
    assert {int(p) & 1 for p in draws.ravel()} == {0, 1}


# ---------------------------------------------------------------- the call


def test_shapes_and_types() -> None:
    one = planar_laplace("1/10")
    assert type(one) is tuple
    assert [type(part) for part in one] == [int, int]
    assert planar_laplace("1/10", size=4).shape == (4, 2)
    assert planar_laplace("1/10", size=(2, 3)).shape == (2, 3, 2)
    assert planar_laplace("1/10", size=()).shape == (2,)
    assert planar_laplace("1/10", size=0).shape == (0, 2)
    assert planar_laplace("1/10", size=200_000).dtype == np.int64
    assert planar_laplace(0.5, size=(1,) * 63).ndim == 64


@pytest.mark.parametrize(
    "bad",
    [0, -1, math.nan, math.inf, "x", "", True, None, [], {}, 1j, b"1", Fraction(1, 2**22 + 1)],
    ids=str,
)
def test_bad_rates(bad: object) -> None:
    with pytest.raises(LastbitError, match="rate"):
        planar_laplace(bad, size=3)  # type: ignore[call-overload]


@pytest.mark.parametrize("bad", [-1, 1.5, "3", True, (2, -1), 2**40, (1,) * 64])
def test_bad_sizes(bad: object) -> None:
    with pytest.raises(LastbitError, match="size"):
        planar_laplace(1, size=bad)  # type: ignore[call-overload]
