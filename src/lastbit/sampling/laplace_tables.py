"""Geometric and discrete Laplace draws of any rational scale from tables: many a microsecond."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lastbit.exact import Pair, complement, exp_between, product, share, shorter
from lastbit.sampling.bits import Bits
from lastbit.sampling.inversion import (
    GUIDE_BITS,
    WORD_BITS,
    Boundaries,
    Inversion,
    inversion,
)
from lastbit.sampling.laplace import check_scale

# Scales up to this one take a single table; larger ones are cut down to it digit by digit.
TOP_SCALE = 32
DIGIT_BITS = 8


@lru_cache(maxsize=32, typed=True)
def laplace_sampler(scale: Fraction) -> Digits:
    """The prepared sampler of the discrete Laplace law of a scale.

    Law      P[X = k] = (1-q)/(1+q) * q**abs(k), q = exp(-1/scale)
    Theorem  Let G be geometric of the same scale and S = 1 with probability q/(1+q), independent.
             X = G if S = 0 and -1-G if S = 1 has that law: P[X = k] = (1-q) q**k / (1+q) for
             k >= 0, and P[X = -1-g] = (1-q) q**g * q/(1+q). Zero is counted once, nothing is
             rejected. In two's complement -1-G is the complement of G, so the sign costs nothing:
             it is drawn together with the lowest digit
    Source   Ghosh, Roughgarden, Sundararajan 2009 for the law
    Checked  tests/laws/test_laplace.py
    """
    return digits(scale, signed=True)


@dataclass(frozen=True, slots=True, eq=False)
class Digits:
    """A draw assembled from independent digits: the xor of all digits, each shifted to its place.

    The lowest digit may be signed, d or -1-d: the sign bits of the latter complement the rest.
    """

    places: tuple[tuple[Inversion, int], ...]

    def draw(self, bits: Bits, size: int) -> NDArray[Any]:
        """`size` independent draws, in Python integers where int64 cannot hold all of them."""
        (lowest, _), *others = self.places
        total: NDArray[Any] = np.empty(size, np.int64)
        lowest.fill(bits, total)
        for place, shift in others:
            digit: NDArray[Any] = np.empty(size, np.int64)
            place.fill(bits, digit)
            if int(digit.max(initial=0)).bit_length() + shift > 62:
                total, digit = total.astype(np.object_), digit.astype(np.object_)
            digit <<= shift
            total ^= digit
        return total


def digits(
    scale: Fraction,
    *,
    signed: bool,
    top_scale: int = TOP_SCALE,
    digit_bits: int = DIGIT_BITS,
    word_bits: int = WORD_BITS,
    guide_bits: int = GUIDE_BITS,
) -> Digits:
    """The tables for a geometric law of this scale, or for the discrete Laplace law if signed.

    Law      P[X = k] = (1-q) * q**k, q = exp(-1/scale), on 0, 1, 2, ...
    Theorem  in base 2**8 the digits of X are independent: exp(-(a + 2**8 b)/scale) is a product. A
             digit of weight w has P proportional to exp(-d w/scale) on 0 ... 255, and the part
             above the last digit is geometric of scale/w. Each is drawn by lazy inversion
    Source   theory of `sampling/inversion.py`; the digits: Karney 2016 and others
    Checked  tests/laws/test_laplace.py
    """
    check_scale(scale)
    places = []
    shift = 0
    while True:
        rate = (1 << shift) / scale
        last = rate * top_scale >= 1
        base = None if last else 1 << digit_bits
        with_sign = signed and not shift
        table = inversion(
            _digit(rate, base, signed=with_sign),
            _signed if with_sign else int,
            cells=2 * base if with_sign and base else base,
            word_bits=word_bits,
            guide_bits=guide_bits,
        )
        places.append((table, shift))
        if last:
            return Digits(tuple(places))
        shift += digit_bits


def _signed(cell: int) -> int:
    """Cell 2d stands for d, and cell 2d+1 for -1-d."""
    return ~(cell >> 1) if cell & 1 else cell >> 1


def _digit(rate: Fraction, base: int | None, *, signed: bool) -> Boundaries:
    """P proportional to exp(-rate*d) on 0 ... base-1, or on all naturals; with a sign, twofold.

    Theorem  Write q = exp(-rate) and W = 1 - q**base, or 1. P[digit <= d] = (1 - q**(d+1)) / W.
             With a sign P[d and s] is P[d]/(1+q) for s = 0 and P[d] q/(1+q) for s = 1, and the
             cells are 0 and 0 with a sign, 1 and 1 with a sign, ...: in front of the signed one
             (1 - q**d + q**d (1-q)/(1+q)) / W = (1 - q**d 2q/(1+q)) / W is filled
    """
    # so many leading zeros 1 - q may have: as many places more keep it exact enough
    spare = max(0, rate.denominator.bit_length() - rate.numerator.bit_length()) + 32

    def boundaries(places: int) -> Iterator[Pair]:
        working = places + spare
        one = 1 << working
        ratio = exp_between(rate, working)
        whole = complement(exp_between(rate * base, working), working) if base else None
        twice = 2 * ratio[0], 2 * ratio[1]
        either = share(twice, (one + ratio[0], one + ratio[1]), working)

        def filled(left: Pair) -> Pair:
            upto = complement(left, working)
            return shorter(upto if whole is None else share(upto, whole, working), spare)

        survival = one, one
        while True:
            if signed:
                yield filled(product(survival, either, working))
            survival = product(survival, ratio, working)
            yield filled(survival)

    return boundaries
