"""Geometric and discrete Laplace: tables, digits, assembly, extremes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest

from lastbit.errors import InvalidParameter
from lastbit.sampling.blocks import BLOCK, drawn_with
from lastbit.sampling.deterministic import Replay, Seeded
from lastbit.sampling.integers import discrete_laplace
from lastbit.sampling.inversion import Inversion
from lastbit.sampling.laplace_tables import Digits, digits
from tests.evidence import late
from tests.laws.oracle import Refused, check_inversion, decimals, exp, laplace_pmf

SCALES = [
    Fraction(1, 1000), Fraction(1, 10), Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(32),
    Fraction(33), Fraction(100), Fraction(1000), Fraction(10**6), Fraction(2**40),
    Fraction(355, 113) * 10**9, Fraction(2**60), Fraction(10**30),
]  # fmt: skip


def digit_cumulative(rate: Fraction, base: int | None) -> Callable[[int], Decimal]:
    whole = 1 if base is None else 1 - exp(-rate * base)
    return lambda j: (1 - exp(-rate * (j + 1))) / whole


def signed_cumulative(rate: Fraction, base: int | None) -> Callable[[int], Decimal]:
    upto = digit_cumulative(rate, base)
    q = exp(-rate)

    def at(j: int) -> Decimal:
        d, negative = divmod(j, 2)
        before = upto(d - 1) if d else Decimal(0)
        return upto(d) if negative else before + (upto(d) - before) / (1 + q)

    return at


def signed_symbol(j: int) -> int:
    return -1 - j // 2 if j % 2 else j // 2


def check_digits(sampler: Digits, scale: Fraction, *, signed: bool) -> None:
    """Every table of the sampler against its digit's law."""
    for i, (table, shift) in enumerate(sampler.places):
        rate = Fraction(1 << shift) / scale
        base = None if i == len(sampler.places) - 1 else 1 << (sampler.places[i + 1][1] - shift)
        if signed and i == 0:
            law, symbol, factor = signed_cumulative(rate, base), signed_symbol, 2
        else:
            law, symbol, factor = digit_cumulative(rate, base), lambda j: j, 1
        check_inversion(table, law, symbol, cells=None if base is None else factor * base)


@pytest.mark.thinned(one_in=36)
@pytest.mark.parametrize("scale", [*SCALES[:-1], late(SCALES[-1])], ids=str)
@pytest.mark.parametrize("signed", [False, True])
def test_tables(scale: Fraction, signed: bool) -> None:
    with decimals():
        check_digits(digits(scale, signed=signed), scale, signed=signed)


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(100), Fraction(2**40)], ids=str)
def test_a_scale_off_by_a_thousandth_is_rejected(scale: Fraction) -> None:
    with decimals(), pytest.raises(Refused):
        check_digits(digits(scale * Fraction(1001, 1000), signed=True), scale, signed=True)


def test_a_dropped_tail_is_rejected() -> None:
    sampler = digits(Fraction(3), signed=True)
    ((table, _),) = sampler.places
    short = replace(table, lows=table.lows[:60], highs=table.highs[:61], symbols=table.symbols[:61])
    with decimals(), pytest.raises(Refused):
        check_digits(Digits(((short, 0),)), Fraction(3), signed=True)


class Given:
    """A table that hands out the symbols it was given."""

    def __init__(self, table: Inversion, symbols: np.ndarray) -> None:
        self.symbols = table.symbols
        self._given = symbols

    def fill(self, bits: object, out: np.ndarray) -> None:
        out[:] = self._given


def assembled_law(scale: Fraction, *, most: int) -> dict[int, Decimal]:
    """The law of the assembled draw: all digits times all digits, through the real assembly.

    Digits are cut to two bits so that few values pass through many tables; probabilities are read
    off the tables, whose boundaries are within 2**-62 of the law's.
    """
    sampler = digits(scale, signed=True, top_scale=1, digit_bits=2)
    assert len(sampler.places) >= 3
    columns = []
    for table, _ in sampler.places:
        edges = [0, *table.lows.tolist(), 1 << table.word_bits]
        masses = [Decimal(b - a) / (1 << table.word_bits) for a, b in pairwise(edges)]
        columns.append(list(zip(table.symbols.tolist(), masses, strict=True))[:most])
    combinations = list(product(*columns))
    places = tuple(
        (Given(table, np.array([c[i][0] for c in combinations])), shift)
        for i, (table, shift) in enumerate(sampler.places)
    )
    values = Digits(places).draw(Seeded(0), len(combinations))  # type: ignore[arg-type]
    law: dict[int, Decimal] = {}
    for value, combination in zip(values.tolist(), combinations, strict=True):
        mass = Decimal(1)
        for _, part in combination:
            mass *= part
        law[value] = law.get(value, Decimal(0)) + mass
    return law


@pytest.mark.parametrize("scale", [Fraction(5), Fraction(9, 2), Fraction(16)], ids=str)
def test_digits_assemble_to_the_discrete_laplace_law(scale: Fraction) -> None:
    with decimals():
        law, pmf = assembled_law(scale, most=20), laplace_pmf(scale)
        # values whose top digit is below 20 are complete
        complete = range(-18 * 4, 18 * 4)
        assert all(abs(law[k] - pmf(k)) < Decimal(2) ** -58 for k in complete)
        # mutants: zero counted twice (-G for -1-G), and a scale off by a thousandth
        twice = {k: pmf(k) * (2 if k == 0 else 1) for k in complete}
        assert any(abs(law[k] - twice[k]) > Decimal(2) ** -30 for k in complete)
        off = laplace_pmf(scale * Fraction(1001, 1000))
        assert any(abs(law[k] - off(k)) > Decimal(2) ** -30 for k in complete)


def test_python_integers_beyond_int64() -> None:
    """The same words through the narrow and the wide assembly give the same numbers."""
    sampler = digits(Fraction(2**50), signed=True)
    narrow = sampler.draw(Seeded(5), 1000)
    assert narrow.dtype == np.int64
    total, source = [0] * 1000, Seeded(5)
    for table, shift in sampler.places:
        digit = np.empty(1000, np.int64)
        table.fill(source, digit)
        total = [a ^ (b << shift) for a, b in zip(total, digit.tolist(), strict=True)]
    assert narrow.tolist() == total
    huge = digits(Fraction(2**60), signed=True).draw(Seeded(6), 20_000)
    assert huge.dtype == object
    assert (
        max(abs(int(x)) for x in huge) > 1 << 63
    )  # exp(-8) of the draws: int64 would have wrapped
    assert all(isinstance(x, int) for x in huge)


def test_a_refined_top_digit_beyond_int64_is_not_wrapped() -> None:
    """A draw that no table cell holds, at a scale whose tables fit int64."""
    scale = Fraction(2**56)
    sampler = digits(scale, signed=False)
    tape: list[np.ndarray] = []
    for table, _ in sampler.places[:-1]:
        room = 1 if table.unsettled else 0
        tape += [np.zeros(1, np.uint16), np.zeros(room, np.uint64)]
    ones = np.array([(1 << 64) - 1], np.uint64)
    tape += [np.array([0xFFFF], np.uint16), *[ones] * 4, np.zeros(1, np.uint64)]
    (value,) = sampler.draw(Replay(tape), 1).tolist()
    # U = 1 - 2**-254, to 318 bits: the top digit is the least j with exp(-(j+1) rate) < 2**-254
    assert value > 1 << 63
    with decimals():
        top, shift = value >> sampler.places[-1][1], sampler.places[-1][1]
        rate = Fraction(1 << shift) / scale
        assert exp(-rate * (top + 1)) < Decimal(2) ** -254 <= exp(-rate * top)


def test_tables_stay_tight_at_any_scale() -> None:
    """Running sums cancel where digits are nearly uniform; the precision is raised until not."""
    for exponent in (130, 150, 256, 500):
        for table, _ in digits(Fraction(2**exponent), signed=True).places:
            assert int((table.highs[1:] - table.lows).max()) <= 2


def test_absurd_scales_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="scale is above"):
        discrete_laplace("1e9999")


def test_blocks_do_not_change_the_draws() -> None:
    """A long vector is the concatenation of its blocks."""
    sampler = digits(Fraction(3), signed=True)
    count = 3 * BLOCK + 5
    long = drawn_with(sampler, Seeded(9), count)
    source = Seeded(9)
    pieces = [sampler.draw(source, n) for n in (BLOCK, BLOCK, BLOCK, 5)]
    assert np.array_equal(long, np.concatenate(pieces))
