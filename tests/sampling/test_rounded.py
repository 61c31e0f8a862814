"""Ideal, then rounded: every word that floats decide, the exact path, and the whole sampler."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from importlib import import_module

import numpy as np
import pytest
from flint import arb, arb_series
from hypothesis import given, settings, strategies as st

from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact.ball import Real, arb_of, floor_ceil, working_precision
from lastbit.laws.ideal import (
    Gumbel,
    Ideal,
    IdealCauchy,
    IdealGaussian,
    IdealLaplace,
    Logistic,
    PolynomialTail,
    StudentT,
)
from lastbit.laws.transformed import Rounded
from lastbit.sampling.blocks import drawn_with
from lastbit.sampling.deterministic import Counting, Seeded
from lastbit.sampling.pieces import Pieces, pieces, quantile_pieces, rough_quantile
from lastbit.sampling.rounded import RoundedSampler, rounded, rounded_sampler
from tests.laws.frequency import assert_frequency

module = import_module("lastbit.sampling.rounded")  # the room exports a function of that name
pieces_module = import_module("lastbit.sampling.pieces")

LAWS: list[Ideal] = [
    IdealLaplace(),
    IdealGaussian(),
    IdealCauchy(),
    Logistic(),
    Gumbel(),
    PolynomialTail("5/2"),
    PolynomialTail(3),
    StudentT(3),
]
EVEN = [w << 52 for w in range(1 << 12)]


def random_words(count: int, seed: int) -> list[int]:
    return Seeded(seed).fill(8 * count).view(np.uint64).tolist()


@lru_cache(maxsize=64)
def edge_words(law: Rounded, cells: int = 60) -> list[int]:
    """Words on both sides of cell edges, at distances of all orders: where errors show."""
    places = []
    with working_precision(192):
        for w in random_words(cells, 7):
            # near the middle, and far out: half of the edges belong to small or large words
            k = module._guess(law, w if w & 1 else (w >> 20 if w & 2 else ~(w >> 20) % 2**64))
            places.append(floor_ceil(law.cumulative(k) * arb(2) ** 64)[0])
    steps = [0, *(sign * (1 << j) for j in range(0, 44, 2) for sign in (1, -1))]
    return [w for p in places for d in steps if 0 <= (w := p + d) < 1 << 64]


def misplaced(sampler: RoundedSampler, law: Rounded, tried: Iterable[int]) -> int:
    """How many decided words have a uniform that the law does not send to the stated cell."""
    words = np.array(list(tried), np.uint64)
    steps, sure = sampler.decided(words)
    whole = module._line(sampler.law).whole
    wrong = 0
    known: dict[int, tuple[int, int]] = {}
    with working_precision(192):
        for word, beyond in zip(words[sure].tolist(), steps[sure].tolist(), strict=True):
            step = whole + beyond
            if step not in known:
                unit = arb(2) ** 64
                known[step] = (
                    floor_ceil(law.cumulative(step - 1) * unit)[1],
                    floor_ceil(law.cumulative(step) * unit)[0],
                )
            low, high = known[step]
            wrong += not low <= word < word + 1 <= high
    return wrong


PLACES = [
    (Fraction(3, 10), Fraction(4), Fraction(1)),
    (Fraction(-12345, 7), Fraction(1000), Fraction(1)),
    (Fraction(1, 3), Fraction(2**20, 3), Fraction(1, 2)),
    (Fraction(10**30, 7), Fraction(1, 3), Fraction(1, 1000)),
]


@pytest.mark.thinned(one_in=16)
@pytest.mark.parametrize("ideal", LAWS, ids=str)
@pytest.mark.parametrize("place", PLACES, ids=lambda place: f"scale {place[1] / place[2]}")
def test_decided_words_lie_in_their_cells(ideal: Ideal, place: tuple[Fraction, ...]) -> None:
    law = Rounded(ideal, *place)
    sampler = RoundedSampler(law)
    assert misplaced(sampler, law, EVEN[::4] + random_words(500, 1)) == 0
    assert misplaced(sampler, law, edge_words(law)) == 0
    # most are decided, or the test would show nothing
    random = np.array(random_words(4000, 2), np.uint64)
    assert np.count_nonzero(sampler.decided(random)[1]) >= 3990
    near = np.array(edge_words(law), np.uint64)
    assert np.count_nonzero(sampler.decided(near)[1]) > near.size // 8


@pytest.mark.thinned(one_in=16)
@pytest.mark.parametrize("ideal", LAWS, ids=str)
def test_mutants_of_the_law_are_rejected(ideal: Ideal) -> None:
    location, scale, grid = Fraction(3, 10), Fraction(1000), Fraction(1)
    law = Rounded(ideal, location, scale, grid)
    tried = EVEN[::4] + edge_words(law)
    for mutant in (
        (location, scale * Fraction(1001, 1000), grid),  # a scale off by a thousandth
        (location + grid / 2, scale, grid),  # cells that are shifted by half a step
        (location + Fraction(1, 1000), scale, grid),
    ):
        assert misplaced(rounded_sampler(ideal, *mutant), law, tried) > 0


@pytest.mark.thinned(one_in=9)
@pytest.mark.parametrize("ideal", [IdealLaplace(), IdealGaussian(), Gumbel()], ids=str)
def test_mutants_of_the_error_bound_are_rejected(ideal: Ideal) -> None:
    law = Rounded(ideal, Fraction(1, 3), 2**20, 1)
    near = edge_words(law, 250)
    coarse = pieces(ideal, degree=3)
    assert misplaced(RoundedSampler(law, coarse), law, near) == 0
    for factor in (0.5, 0.0):
        error = np.where(np.isinf(coarse.error), np.inf, factor * np.nan_to_num(coarse.error))
        mutant = replace(coarse, error=error)
        assert misplaced(RoundedSampler(law, mutant), law, near) > 0
    full = quantile_pieces(ideal)
    trusting = replace(full, error=np.where(np.isinf(full.error), np.inf, 0.0), size=0 * full.size)
    fine = Rounded(ideal, Fraction(1, 3), 2**36, 1)
    assert misplaced(RoundedSampler(fine, full), fine, edge_words(fine, 250)) == 0
    assert misplaced(RoundedSampler(fine, trusting), fine, edge_words(fine, 250)) > 0


def quarters(table: Pieces, order: list[int]) -> Pieces:
    def permuted(array: np.ndarray) -> np.ndarray:
        parts = np.split(array, 4, axis=-1)
        return np.concatenate([parts[i] for i in order], axis=-1)

    return Pieces(*(permuted(a) for a in (table.coefficients, table.error, table.size)))


@pytest.mark.parametrize("order", [[3, 2, 1, 0], [0, 1, 1, 0], [0, 2, 1, 3], [1, 0, 3, 2]])
def test_swapped_halves_are_rejected(order: list[int]) -> None:
    law = Rounded(Gumbel(), 0, 16, 1)
    swapped = quarters(quantile_pieces(Gumbel()), order)
    assert misplaced(RoundedSampler(law, swapped), law, EVEN) > 100
    assert misplaced(RoundedSampler(law), law, EVEN) == 0


@pytest.mark.parametrize("ideal", LAWS, ids=str)
def test_counts_of_words_are_the_masses(ideal: Ideal) -> None:
    law = Rounded(ideal, "0.3", 3, 1)
    steps, sure = RoundedSampler(law).decided(np.array(EVEN, np.uint64))
    open_words = int(np.count_nonzero(~sure))
    assert open_words <= 4  # the words of U = 0, 1/4, 1/2, 3/4
    assert np.all(np.diff(steps[sure]) >= 0)
    for k in range(-8, 9):
        low, high = (4096 * end for end in law.probability(k).ends)
        count = int(np.count_nonzero(steps[sure] == k))
        assert low - 1 - open_words <= count <= high + 1
        off = Rounded(ideal, "0.3", "3.1", 1).probability(0)
        if k == 0:  # a mutant of the scale has another mass by far
            assert not off * 4096 < count + 5 or not off * 4096 > count - 5


def test_the_remainder_is_there() -> None:
    """A power series cut too short would have a remainder of 0, and no test would fail."""
    with working_precision(128), pieces_module._terms(pieces_module._TERMS + 1):
        width = arb(2) ** 57
        model = pieces_module._model(IdealLaplace(), 0, arb(-1), arb(2) ** 63 * arb("0.7"), width)
        assert model is not None
        assert model.remainder.lower() > 0 or model.remainder.rad() > 0
        series = IdealLaplace().density(arb_series([arb(-1), 1], pieces_module._TERMS))
        assert not series.integral().reversion()[pieces_module._TERMS].is_zero()


@settings(max_examples=300, deadline=None)
@given(
    word=st.integers(0, 2**64 - 1)
    | st.builds(lambda q, j, d: ((q << 62) + (1 << j) + d) % 2**64,
                st.integers(0, 3), st.integers(0, 62), st.integers(-2, 2))
)  # fmt: skip
def test_places_of_words_are_exact(word: int) -> None:
    index, position = quantile_pieces(IdealLaplace()).place(
        np.array([word], np.uint64).view(np.int64)
    )
    quarter, rest = divmod(int(index[0]), 64 * 32)
    assert quarter == word >> 62
    exponent, piece = divmod(rest, 32)
    x = Fraction(float(position[0]))
    assert -Fraction(1, 2) <= x < Fraction(1, 2)
    width = Fraction(2) ** (exponent - 5)
    centre = (32 + piece + Fraction(1, 2)) * width
    found = (centre + x * width) / 2**63
    unknown = 32 * (Fraction(1, 2**exponent) + Fraction(1, 2**53)) * width / 2**63
    for uniform in (Fraction(word, 2**64), Fraction(word + 1, 2**64)):
        distance = (4 * uniform, 2 - 4 * uniform, 4 * uniform - 2, 4 - 4 * uniform)[quarter]
        assert abs(distance - found) <= unknown


# ---------------------------------------------------------------- the exact path


@pytest.mark.parametrize("ideal", [*LAWS, PolynomialTail("11/10")], ids=str)
def test_exact_draws_lie_in_their_cells(ideal: Ideal) -> None:
    law = Rounded(ideal, Real(2).sqrt(), Real(5).exp(), "1/8")
    sampler = RoundedSampler(law)
    for word in [0, 2**64 - 1, 2**63, *random_words(40, 3)]:
        k = sampler.exact(Seeded(4), word)
        with working_precision(1024):
            low, high = law.cumulative(k - 1) * arb(2) ** 64, law.cumulative(k) * arb(2) ** 64
        assert not low > word + 1
        assert not high < word


@pytest.mark.parametrize("guess", [0, -(10**6), 10**9 + 7])
def test_the_guess_does_not_matter(guess: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = rounded_sampler(IdealCauchy(), "0.3", 2**20)
    tried = [0, 2**64 - 1, *random_words(20, 5)]
    expected = [sampler.exact(Seeded(w), w) for w in tried]
    monkeypatch.setattr(module, "_guess", lambda law, word, count=64: guess)
    assert [sampler.exact(Seeded(w), w) for w in tried] == expected


@pytest.mark.parametrize("rough", [None, 0.0, -1e9, 1e300, 0.7])
def test_the_rough_guess_does_not_matter(
    rough: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampler = rounded_sampler(StudentT(3), "0.3", 2**20)
    tried = [0, 2**64 - 1, *random_words(20, 5)]
    expected = [sampler.exact(Seeded(w), w) for w in tried]
    monkeypatch.setattr(module, "rough_quantile", lambda law, word: rough)
    assert [sampler.exact(Seeded(w), w) for w in tried] == expected


@pytest.mark.parametrize("ideal", [StudentT(3), StudentT("1/2"), PolynomialTail(4)], ids=str)
def test_rough_guesses_save_time(ideal: Ideal) -> None:
    """They are close; and where there are none, they say so."""
    far = 0
    for word in [2**62, 2**63 - 1, 2**63, 3 << 62, *random_words(60, 15)]:
        z = rough_quantile(ideal, word)
        exact = ideal.quantile(Fraction(2 * word + 1, 2**65)).enclosure
        assert z is not None
        far += not abs(exact - arb(z)) < arb("1e-5") * (abs(exact) + 1)
    assert far == 0
    assert rough_quantile(ideal, 0) is rough_quantile(ideal, 2**64 - 1) is None
    assert rough_quantile(IdealLaplace(), 2**62) is None
    assert rough_quantile(PolynomialTail("1.001"), 2**52) is None  # beyond all floats


@pytest.mark.parametrize("ideal", [*LAWS, PolynomialTail("1.01"), StudentT("1/1024")], ids=str)
@pytest.mark.parametrize("scale", [1, 2**60, 10**300])
def test_long_draws_lie_in_their_cells(ideal: Ideal, scale: int) -> None:
    """K of many bits takes many bits of U at once: the ones it took are on the tape."""
    law = Rounded(ideal, "1/3", scale)
    for word in random_words(6, 16):
        source = Recording(Seeded(17))
        k = RoundedSampler(law).exact(source, word)
        uniform = word
        for more in np.frombuffer(b"".join(source.given), np.uint64).tolist():
            uniform = uniform << 64 | more
        count = 64 + 8 * sum(map(len, source.given))
        # a search by single words would have come in many requests
        assert len(source.given) <= 3
        with working_precision(count + 64):
            low, high = (law.cumulative(j) * arb(2) ** count for j in (k - 1, k))
        assert low <= uniform
        assert high >= uniform + 1
        if scale > 1:  # a neighbour would be seen
            assert not law_holds(law, k + 1, uniform, count)
            assert not law_holds(law, k - 1, uniform, count)


class Recording:
    """Passes requests on and keeps the answers."""

    def __init__(self, bits: Seeded) -> None:
        self.bits = bits
        self.given: list[bytes] = []

    def fill(self, count: int) -> np.ndarray:
        answer = self.bits.fill(count)
        self.given.append(answer.tobytes())
        return answer


def law_holds(law: Rounded, k: int, uniform: int, count: int) -> bool:
    with working_precision(count + 64):
        low, high = (law.cumulative(j) * arb(2) ** count for j in (k - 1, k))
    return bool(low <= uniform) and bool(high >= uniform + 1)


@pytest.mark.parametrize("slip", [100, 134, 138, 300])
def test_reals_known_only_at_a_high_precision(slip: int) -> None:
    unsure = Real(2).sqrt() + 2**slip - 2**slip
    for ideal in LAWS:
        for place, scale in ((unsure, Real(1)), (Real(0), unsure)):
            sampler = rounded_sampler(ideal, place, scale)
            location, width = (Real(2).sqrt() if x is unsure else x for x in (place, scale))
            clear = rounded_sampler(ideal, location, width)
            for word in (2**63, 2**60 + 12345, 2**64 - 2**58):
                assert sampler.exact(Seeded(18), word) == clear.exact(Seeded(18), word)


def test_exact_path_mutant_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cell test above would see an edge that is half a step off."""
    law = Rounded(IdealLaplace(), 0, 50)
    other = RoundedSampler(Rounded(IdealLaplace(), Fraction(1, 2), 50))
    wrong = 0
    with working_precision(192):
        for word in random_words(40, 3):
            k = other.exact(Seeded(4), word)
            wrong += bool(law.cumulative(k - 1) * arb(2) ** 64 > word + 1)
            wrong += bool(law.cumulative(k) * arb(2) ** 64 < word)
    assert wrong > 5


@pytest.mark.parametrize("ideal", LAWS, ids=str)
def test_both_paths_agree(ideal: Ideal) -> None:
    sampler = rounded_sampler(ideal, "-7/3", 2**30)
    draws = sampler.draw(Seeded(6), 200).tolist()
    words = Seeded(6).fill(1600).view(np.uint64).tolist()
    assert draws == [sampler.exact(Seeded(9), word) for word in words]


# ---------------------------------------------------------------- the whole sampler


@pytest.mark.parametrize("ideal", LAWS, ids=str)
def test_frequencies(ideal: Ideal) -> None:
    trials = 400_000
    sampler = rounded_sampler(ideal, "0.3", 2)
    draws = drawn_with(sampler, Seeded(8), trials)
    for k, detects in ((-1, Fraction(4, 100)), (0, Fraction(4, 100)), (1, Fraction(4, 100))):
        p = float(sampler.law.probability(k).enclosure)
        hits = int(np.count_nonzero(draws == k))
        assert_frequency(hits, trials=trials, probability=p, detects=detects)
    for k in (-4, 6):
        with working_precision(64):
            p = float(sampler.law.cumulative(k))
        hits = int(np.count_nonzero(draws <= k))
        assert_frequency(hits, trials=trials, probability=p)


@pytest.mark.thinned(one_in=9)
@pytest.mark.parametrize("size", [1, 63])
def test_frequencies_of_small_draws(size: int) -> None:
    sampler = rounded_sampler(IdealGaussian(), Real("0.3"), Real(4).sqrt())
    bits, trials = Seeded(11), 63 * 150
    draws = np.concatenate([sampler.draw(bits, size) for _ in range(trials // size)])
    p = float(sampler.law.probability(0).enclosure)
    hits = int(np.count_nonzero(draws == 0))
    assert_frequency(hits, trials=trials, probability=p, detects=Fraction(25, 100))


@pytest.mark.parametrize("size", [1, 63, 64, 20_000])
def test_one_word_a_draw(size: int) -> None:
    for ideal in LAWS:
        bits = Counting(Seeded(12))
        rounded_sampler(ideal, "0.3", 2**10).draw(bits, size)
        assert bits.bytes == 8 * size


def test_undecided_draws_take_more_words() -> None:
    law = Rounded(IdealLaplace(), 0, 1)
    with working_precision(128):
        word = floor_ceil(law.cumulative(3) * arb(2) ** 64)[0]
    assert not RoundedSampler(law).decided(np.array([word], np.uint64))[1][0]
    bits = Counting(Seeded(13))
    assert RoundedSampler(law).exact(bits, word) in (3, 4)
    assert bits.bytes == 8


@pytest.mark.evidence
def test_nothing_wraps() -> None:
    for size in (5, 100):
        far = rounded("laplace", location=2**70, scale=1, size=size)
        assert far.dtype == object
        assert all(isinstance(k, int) and abs(k - 2**70) < 100 for k in far)
        heavy = drawn_with(rounded_sampler(IdealCauchy(), 0, 2**70), Seeded(1), size)
        assert heavy.dtype == object
        assert all(isinstance(k, int) for k in heavy)
        assert max(abs(k) for k in heavy) > 2**68
    mixed = drawn_with(rounded_sampler(IdealCauchy(), 0, 2**55), Seeded(1), 20_000)
    assert mixed.dtype == object
    assert all(isinstance(k, int) for k in mixed)
    assert drawn_with(rounded_sampler(IdealCauchy(), 0, 2**40), Seeded(1), 1000).dtype == np.int64


def test_scales_beyond_floats() -> None:
    tiny = rounded("gaussian", location="0.2", scale="1e-400", size=70)
    assert tiny.tolist() == [0] * 70
    assert all(abs(k) > 10**390 for k in rounded("gaussian", scale="1e400", size=3))
    huge = rounded_sampler(IdealGaussian(), 0, "1e400")
    assert not huge.decided(np.array(random_words(1000, 1), np.uint64))[1].any()
    grid = rounded("gaussian", scale="1e-400", grid="1e-402", size=70)
    assert max(abs(k) for k in grid) < 2000
    far = rounded("laplace", location=Real(10**400), scale=1, size=70)
    assert all(abs(k - 10**400) < 200 for k in far)


def test_shapes_and_kinds() -> None:
    assert isinstance(rounded("laplace"), int)
    assert rounded("cauchy", size=(2, 3)).shape == (2, 3)
    assert rounded("gumbel", size=0).shape == (0,)
    assert rounded("logistic", size=0).dtype == np.int64
    assert rounded(StudentT(3), scale=Real(2).sqrt(), grid="0.01", size=100).dtype == np.int64
    assert rounded("gaussian", location=5, scale="1e-9") == 5


def test_every_name_is_its_law() -> None:
    assert [type(module._named(name)).__name__ for name in module._NAMES] == [
        "IdealCauchy",
        "IdealGaussian",
        "Gumbel",
        "IdealLaplace",
        "Logistic",
    ]


def test_private_numbers_are_not_shown() -> None:
    sampler = rounded_sampler(IdealLaplace(), 73211, "8.25")
    assert "73211" not in repr(sampler)
    assert "33" not in repr(sampler)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("law", dict(law="normal")),
        ("law", dict(law="")),
        ("law", dict(law=None)),
        ("law", dict(law=IdealLaplace)),
        ("law", dict(law=3)),
        ("location", dict(location=float("nan"))),
        ("location", dict(location=float("inf"))),
        ("location", dict(location=True)),
        ("location", dict(location="here")),
        ("location", dict(location=np.array([1.0]))),
        ("scale", dict(scale=0)),
        ("scale", dict(scale=-3)),
        ("scale", dict(scale=float("nan"))),
        ("scale", dict(scale=Real(1) - 1)),
        ("scale", dict(scale="")),
        ("grid", dict(grid=0)),
        ("grid", dict(grid=-1)),
        ("grid", dict(grid="x")),
        ("grid", dict(grid=Real(1))),
        ("size", dict(size=-1)),
        ("size", dict(size=1.5)),
        ("size", dict(size=True)),
        ("size", dict(size="3")),
        ("size", dict(size=2**40)),
    ],
)
def test_bad_input(name: str, parameters: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_bits(*_: object) -> None:
        raise AssertionError("bits were drawn")

    monkeypatch.setattr(module, "words", no_bits)
    with pytest.raises(InvalidParameter, match=f"^{name} "):
        rounded(**{"law": "laplace", **parameters})


def test_unknown_names_are_told_the_known_ones() -> None:
    with pytest.raises(InvalidParameter, match="cauchy, gaussian, gumbel, laplace, logistic"):
        rounded("normal")
    with pytest.raises(WrongType, match="cauchy, gaussian, gumbel, laplace, logistic"):
        rounded(3)  # type: ignore[call-overload]


def test_tables_are_made_once_and_cannot_be_changed() -> None:
    table = quantile_pieces(PolynomialTail(3))
    assert table is quantile_pieces(PolynomialTail("3"))
    with pytest.raises(ValueError, match="read-only"):
        table.error[0] = 0.0


def test_arb_of_is_exact_for_the_guess() -> None:
    with working_precision(64):
        assert module._nearest(arb_of(Fraction(7, 2)) + arb(10)) in (13, 14)
        assert module._nearest(arb.nan()) == 0
        assert module._nearest(arb.pos_inf()) == 0
