"""Coins: tables against Decimals, and the real code over all words."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np
import pytest

from lastbit.errors import InvalidParameter
from lastbit.exact.ball import Real
from lastbit.exact.fixed_point import rational_between
from lastbit.sampling.bernoulli import _bernoulli, _bernoulli_exp, bernoulli, bernoulli_exp, coin
from tests.laws.oracle import Refused, check_inversion, decimal, decimals, exp
from tests.laws.test_inversion import OneWord, Undecided

RATIONALS = [
    Fraction(0), Fraction(1), Fraction(1, 2), Fraction(1, 3), Fraction(1, 10**9),
    Fraction(2**62 - 1, 2**62), Fraction(10**30 - 1, 10**30), Fraction(1, 65536),
]  # fmt: skip


@pytest.mark.thinned(one_in=4)
@pytest.mark.parametrize("p", RATIONALS, ids=str)
def test_rational_tables(p: Fraction) -> None:
    with decimals():
        check_inversion(_bernoulli(p).table, lambda _: decimal(p), lambda j: 1 - j, cells=2)


@pytest.mark.parametrize("gamma", [Fraction(0), Fraction(1), Fraction(1, 10**6), Fraction(500)])
def test_exponential_tables(gamma: Fraction) -> None:
    with decimals():
        check_inversion(
            _bernoulli_exp(gamma).table, lambda _: exp(-gamma), lambda j: 1 - j, cells=2
        )


def test_a_real_exponent() -> None:
    with decimals():
        table = _bernoulli_exp(Real(2).sqrt()).table
        exact = (-Decimal(2).sqrt()).exp()
        check_inversion(table, lambda _: exact, lambda j: 1 - j, cells=2)
        with pytest.raises(Refused):
            check_inversion(table, lambda _: exact * Decimal("1.001"), lambda j: 1 - j, cells=2)


@pytest.mark.parametrize(
    "p", [Fraction(1, 3), Fraction(1, 2), Fraction(0), Fraction(1), Fraction(7, 8)]
)
def test_the_real_code_over_all_words(p: Fraction) -> None:
    sampler = coin(partial(rational_between, p), word_bits=8, guide_bits=4)
    hits = undecided = 0
    for first, rest in product(range(16), range(16)):
        word = first << 4 | rest
        try:
            (answer,) = sampler.draw(OneWord(first, rest), 1).tolist()
        except Undecided:
            undecided += 1
            assert Fraction(word, 256) <= p <= Fraction(word + 1, 256)
            continue
        assert answer == (Fraction(word + 1, 256) <= p)
        assert answer or Fraction(word, 256) >= p
        hits += answer
    assert undecided <= 2
    assert Fraction(hits, 256) <= p <= Fraction(hits + undecided, 256)


def test_certain_coins() -> None:
    assert bernoulli(1, size=1000).all()
    assert not bernoulli(0, size=1000).any()
    assert bernoulli_exp(0, size=1000).all()
    assert not bernoulli_exp(10**6, size=1000).any()


def test_a_gamma_that_may_be_negative_is_refused() -> None:
    nothing = Real(2).sqrt() * Real(2).sqrt() - 2
    with pytest.raises(InvalidParameter, match="gamma is not certainly 0 or more"):
        bernoulli_exp(nothing)
    with pytest.raises(InvalidParameter, match="gamma is negative"):
        bernoulli_exp(Real(1) - 2)
    assert bernoulli_exp(Real(0)) is True
    assert isinstance(bernoulli("1/2", size=3), np.ndarray)
