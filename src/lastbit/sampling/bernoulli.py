"""Coins: of a rational probability, and of probability exp(-gamma)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NoReturn, overload

import numpy as np
from flint import arb
from numpy.typing import NDArray

from lastbit.errors import InvalidParameter, PrecisionExhausted
from lastbit.exact import Number, Real, arb_of, rational, refine
from lastbit.laws import Bernoulli
from lastbit.sampling.bits import Bits
from lastbit.sampling.draw import Shape, Size, cached, drawn
from lastbit.sampling.inversion import GUIDE_BITS, WORD_BITS, Inversion, inversion


@overload
def bernoulli(p: Number, size: None = None) -> bool: ...
@overload
def bernoulli(p: Number, size: Shape) -> NDArray[np.bool_]: ...
def bernoulli(p: Number, size: Size = None) -> bool | NDArray[np.bool_]:
    """Exact coins: True with probability p.

    Law      P[X = True] = p, a rational number
    Theorem  U < p for U uniform on [0, 1), decided by as many bits of U as it takes
    Source   von Neumann 1951
    Differs  0 and 1 are allowed; sixteen bits a coin unless they tie with those of p
    Checked  tests/laws/test_bernoulli.py

    >>> bernoulli(1), bernoulli(0, size=3).tolist()
    (True, [False, False, False])
    >>> bernoulli("1/3", size=(2, 5)).shape
    (2, 5)
    """
    return drawn(cached(_bernoulli, p), size)  # type: ignore[no-any-return]


@overload
def bernoulli_exp(gamma: Number | Real, size: None = None) -> bool: ...
@overload
def bernoulli_exp(gamma: Number | Real, size: Shape) -> NDArray[np.bool_]: ...
def bernoulli_exp(gamma: Number | Real, size: Size = None) -> bool | NDArray[np.bool_]:
    """Exact coins: True with probability exp(-gamma).

    Law      P[X = True] = exp(-gamma), gamma >= 0 a rational or a computable real
    Theorem  U < exp(-gamma) for U uniform on [0, 1); exp(-gamma) is enclosed in a ball as tightly
             as it takes to decide that
    Source   CKS20, Algorithm 1, for the law; there by a series of coins
    Differs  one comparison instead of a series, so the work does not depend on the outcome
    Checked  tests/laws/test_bernoulli.py

    >>> from lastbit.exact import Real
    >>> bernoulli_exp(Real(2).sqrt(), size=10).dtype
    dtype('bool')
    """
    return drawn(cached(_bernoulli_exp, gamma), size)  # type: ignore[no-any-return]


@lru_cache(maxsize=64, typed=True)
def _bernoulli(p: Number) -> Coin:
    exact = Bernoulli(p).p
    return coin(lambda: arb_of(exact))


@lru_cache(maxsize=64, typed=True)
def _bernoulli_exp(gamma: Number | Real) -> Coin:
    real = gamma if isinstance(gamma, Real) else Real(rational(gamma, "gamma"))
    try:
        negative = refine(lambda precision: real.ball(precision) < 0, limit=4096)
    except PrecisionExhausted:
        _refuse_gamma("is not certainly 0 or more")
    if negative:
        _refuse_gamma("is negative")
    return coin((-real).exp().enclosure)


def _refuse_gamma(problem: str) -> NoReturn:
    raise InvalidParameter("gamma", problem=problem, remedy="pass a number from 0 up")


@dataclass(frozen=True, slots=True, eq=False)
class Coin:
    """A two-celled law, True below the threshold: a comparison serves instead of the guide table.

    The values of the first bits that do not decide lie side by side, from `tie` on.
    """

    table: Inversion
    tie: int

    def draw(self, bits: Bits, size: int) -> NDArray[np.bool_]:
        """`size` independent coins."""
        first = self.table.first_bits(bits, size)
        out = first < self.tie
        close = np.flatnonzero(first - np.uint16(self.tie & 0xFFFF) < self.table.unsettled)
        self.table.settle(bits, first, close, out)
        return out


def coin(
    probability: Callable[[], arb],
    *,
    word_bits: int = WORD_BITS,
    guide_bits: int = GUIDE_BITS,
) -> Coin:
    """The tables of a coin whose probability can be enclosed at any working precision."""
    inverse = inversion(
        lambda _: probability(),
        lambda j: 1 - j,
        cells=2,
        word_bits=word_bits,
        guide_bits=guide_bits,
    )
    return Coin(inverse, int(np.count_nonzero(inverse.guide == 1)))
