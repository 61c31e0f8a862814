"""Lazy inversion: the tables, the real code over all words, the refinement, the constant work."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import count, product

import numpy as np
import pytest

from lastbit.errors import PrecisionExhausted
from lastbit.exact.fixed_point import rational_between
from lastbit.sampling.deterministic import Replay, Seeded
from lastbit.sampling.inversion import Inversion, capacity, inversion
from lastbit.sampling.lazy import LazyUniform
from tests.laws.oracle import Refused, check_inversion, decimal, decimals

WEIGHTS = [Fraction(1, 3), Fraction(1, 5), Fraction(1, 7), Fraction(34, 105)]


def cumulative(j: int) -> Fraction:
    return sum(WEIGHTS[: j + 1], Fraction(0))


def small_table(word_bits: int, guide_bits: int) -> Inversion:
    return inversion(
        lambda places: (rational_between(cumulative(j), places) for j in count()),
        lambda j: 10 * j,
        cells=len(WEIGHTS),
        word_bits=word_bits,
        guide_bits=guide_bits,
    )


class Undecided(Exception):
    pass


class OneWord:
    """First bits, then the remaining ones; whoever asks for more is undecided."""

    def __init__(self, first: int, rest: int) -> None:
        self._replay = Replay([np.array([first], np.uint16), np.array([rest], np.uint64)])

    def fill(self, count: int):
        try:
            return self._replay.fill(count)
        except StopIteration:
            raise Undecided from None


def outcomes(table: Inversion) -> dict[int, int | None]:
    """What the real code draws for every word there is."""
    rest_bits = table.word_bits - table.guide_bits
    found: dict[int, int | None] = {}
    for first, rest in product(range(1 << table.guide_bits), range(1 << rest_bits)):
        out = np.empty(1, np.int64)
        try:
            table.fill(OneWord(first, rest), out)
            found[first << rest_bits | rest] = int(out[0])
        except Undecided:
            found[first << rest_bits | rest] = None
    return found


def assert_inverts(found: dict[int, int | None], word_bits: int) -> None:
    """X = least j with U < F(j) for every U in [u, u+1) / 2**w; undecided only on a boundary."""
    for word, answer in found.items():
        start, end = Fraction(word, 1 << word_bits), Fraction(word + 1, 1 << word_bits)
        if answer is None:
            assert any(start <= cumulative(j) <= end for j in range(3))
            continue
        j = answer // 10
        assert (j == 0 or cumulative(j - 1) <= start) and (j == 3 or end <= cumulative(j))


@pytest.mark.parametrize(("word_bits", "guide_bits"), [(8, 4), (9, 5), (7, 1), (10, 6)])
def test_the_real_code_over_all_words(word_bits: int, guide_bits: int) -> None:
    found = outcomes(small_table(word_bits, guide_bits))
    assert len(found) == 1 << word_bits
    assert_inverts(found, word_bits)
    undecided = sum(answer is None for answer in found.values())
    assert undecided <= 2 * (len(WEIGHTS) - 1)


def test_dyadic_boundaries_leave_nothing_undecided_that_matters() -> None:
    table = inversion(
        lambda places: [rational_between(Fraction(1, 2), places)],
        lambda j: j,
        cells=2,
        word_bits=8,
        guide_bits=4,
    )
    found = outcomes(table)
    assert [found[word] for word in range(256)] == [0] * 128 + [1] * 128


@pytest.mark.parametrize("mutation", ["strict", "early", "swapped", "late"])
def test_mutants_of_the_tables_are_rejected(mutation: str) -> None:
    table = small_table(8, 4)
    lows, highs = table.lows.copy(), table.highs.copy()
    symbols, guide = table.symbols.copy(), table.guide.copy()
    match mutation:
        case "strict":  # u <= low counts as below
            lows += 1
        case "early":  # u >= high - 1 counts as above
            highs -= 1
        case "swapped":
            symbols[[1, 2]] = symbols[[2, 1]]
        case "late":  # one slot beside the truth
            guide = np.roll(guide, 1)
    mutant = Inversion(
        table.boundaries, table.symbol, lows, highs, symbols, guide,
        table.word_bits, table.guide_bits, table.unsettled, table.cells,
    )  # fmt: skip
    with decimals(), pytest.raises(Refused):
        check_inversion(
            mutant, lambda j: decimal(cumulative(j)), lambda j: 10 * j, cells=len(WEIGHTS)
        )
    if mutation != "swapped":
        with pytest.raises(AssertionError):
            assert_inverts(outcomes(mutant), 8)


def test_tables_at_full_width() -> None:
    with decimals():
        check_inversion(
            small_table(62, 16), lambda j: decimal(cumulative(j)), lambda j: 10 * j, cells=4
        )


def test_refinement_finds_the_cell() -> None:
    """A word that ties with a boundary is decided by the bits that follow."""
    table = small_table(62, 16)
    word = int(table.lows[0])  # 2**62/3 lies strictly between this and the next integer
    first, tie = word >> 46, word & ((1 << 46) - 1)
    for following, expected in ((0, 0), ((1 << 64) - 1, 10)):
        tape: list[np.ndarray] = [
            np.array([first], np.uint16),
            np.array([tie], np.uint64),
            np.array([following], np.uint64),
        ]
        out = np.empty(1, np.int64)
        table.fill(Replay(tape), out)
        assert out[0] == expected


def test_refinement_reaches_beyond_the_table() -> None:
    """The tail of an unbounded law is drawn from the law itself, however far."""
    table = inversion(
        lambda places: (rational_between(1 - Fraction(1, 4 ** (j + 1)), places) for j in count()),
        lambda j: j,
    )
    all_ones: list[np.ndarray] = [
        np.array([0xFFFF], np.uint16),
        np.array([(1 << 46) - 1], np.uint64),
        np.array([(1 << 64) - 1], np.uint64),
        np.array([0], np.uint64),
    ]
    out = np.empty(1, np.int64)
    table.fill(Replay(all_ones), out)
    assert out[0] == 63  # U = 1 - 2**-126: the least j with U < 1 - 4**-(j+1) is 63


def test_lazy_uniform_is_one_number() -> None:
    """Answers are consistent, and refinement stops with a clear error rather than for ever."""
    uniform = LazyUniform(Seeded(3))
    answers = [uniform.below(partial(rational_between, Fraction(k, 1000))) for k in range(1001)]
    assert answers == sorted(answers)
    assert not answers[0]
    assert answers[1000]

    class Zeros:
        def fill(self, count: int):
            return np.zeros(count, np.uint8)

    with pytest.raises(PrecisionExhausted):
        LazyUniform(Zeros()).below(lambda places: (0, 1 << places))


def binomial_tail(n: int, p: Fraction, above: int) -> Decimal:
    """P[Bin(n, p) > above], summed in Decimals."""
    with decimals():
        odds = decimal(p) / (1 - decimal(p))
        term = (1 - decimal(p)) ** n
        total = Decimal(0)
        for k in range(n + 1):
            if k > above:
                total += term
            term *= odds * (n - k) / (k + 1)
        return +total


@pytest.mark.parametrize("draws", [1, 2, 64, 256, 4096])
@pytest.mark.parametrize("numerator", [1, 7, 300, 3000, 30000, 65535])
def test_capacity_is_enough(draws: int, numerator: int) -> None:
    room = capacity(draws, numerator, 65536)
    assert room <= draws
    assert binomial_tail(draws, Fraction(numerator, 65536), room) < Decimal(2) ** -44
