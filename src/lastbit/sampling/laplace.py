"""Geometric and discrete Laplace draws of any rational scale, digit by digit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, overload

import numpy as np
from flint import arb
from numpy.typing import NDArray

from lastbit.errors import InvalidParameter
from lastbit.exact import Number, arb_of, positive
from lastbit.sampling.bits import Bits
from lastbit.sampling.draw import Shape, Size, cached, drawn
from lastbit.sampling.inversion import GUIDE_BITS, WORD_BITS, Inversion, inversion

# Scales up to this one take a single table; larger ones are cut down to it digit by digit.
TOP_SCALE = 32
DIGIT_BITS = 8
# Every eight bits of scale cost a table of 128 KiB.
MOST_SCALE = 1 << 512


@overload
def geometric(scale: Number, size: None = None) -> int: ...
@overload
def geometric(scale: Number, size: Shape) -> NDArray[Any]: ...
def geometric(scale: Number, size: Size = None) -> int | NDArray[Any]:
    """Exact draws from the geometric law on 0, 1, 2, ...

    Law      P[X = k] = (1-q) * q**k, q = exp(-1/scale)
    Theorem  in base 2**8 the digits of X are independent: exp(-(a + 2**8 b)/scale) is a product. A
             digit of weight w has P proportional to exp(-d w/scale) on 0 ... 255, and the part
             above the last digit is geometric of scale/w. Each is drawn by lazy inversion
    Source   theory of `sampling/inversion.py`; the digits: Karney 2016 and others
    Differs  any rational scale above 0; Python integers where int64 would overflow
    Checked  tests/laws/test_laplace.py

    >>> geometric(3, size=4).shape
    (4,)
    >>> geometric(-1)
    Traceback (most recent call last):
        ...
    lastbit.errors.InvalidParameter: scale is negative; pass a number above 0
    """
    return drawn(cached(_geometric, scale), size)  # type: ignore[no-any-return]


@overload
def discrete_laplace(scale: Number, size: None = None) -> int: ...
@overload
def discrete_laplace(scale: Number, size: Shape) -> NDArray[Any]: ...
def discrete_laplace(scale: Number, size: Size = None) -> int | NDArray[Any]:
    """Exact draws from the discrete Laplace law.

    Law      P[X = k] = (1-q)/(1+q) * q**abs(k), q = exp(-1/scale)
    Theorem  Let G be geometric of the same scale and S = 1 with probability q/(1+q), independent.
             X = G if S = 0 and -1-G if S = 1 has that law: P[X = k] = (1-q) q**k / (1+q) for
             k >= 0, and P[X = -1-g] = (1-q) q**g * q/(1+q). Zero is counted once, nothing is
             rejected. In two's complement -1-G is the complement of G, so the sign costs nothing:
             it is drawn together with the lowest digit
    Source   Ghosh, Roughgarden, Sundararajan 2009 for the law
    Differs  any rational scale above 0; Python integers where int64 would overflow
    Checked  tests/laws/test_laplace.py

    >>> noise = discrete_laplace("1/2", size=1000)
    >>> noise.dtype, noise.shape
    (dtype('int64'), (1000,))
    >>> isinstance(discrete_laplace(2**40), int)
    True
    """
    return drawn(cached(laplace_sampler, scale), size)  # type: ignore[no-any-return]


@lru_cache(maxsize=32, typed=True)
def _geometric(scale: Number) -> Digits:
    return digits(_scale(scale), signed=False)


@lru_cache(maxsize=32, typed=True)
def laplace_sampler(scale: Number) -> Digits:
    """The prepared sampler of a scale."""
    return digits(_scale(scale), signed=True)


def _scale(scale: Number) -> Fraction:
    number = positive(scale, "scale")
    if number > MOST_SCALE:
        raise InvalidParameter(
            "scale", problem="is above 2**512", remedy="measure in a larger unit"
        )
    return number


@dataclass(frozen=True, slots=True, eq=False)
class Digits:
    """A draw assembled from independent digits: the xor of all digits, each shifted to its place.

    The lowest digit may be signed, d or -1-d: the sign bits of the latter complement the rest.
    """

    places: tuple[tuple[Inversion, int], ...]

    @property
    def wide(self) -> bool:
        """Whether values beyond int64 have a chance worth a table cell."""
        top, shift = self.places[-1]
        return int(top.symbols.max()).bit_length() + shift > 62

    def draw(self, bits: Bits, size: int) -> NDArray[Any]:
        out = np.empty(size, np.int64)
        wide = self.into(bits, out, np.empty_like(out))
        return out if wide is None else wide

    def into(
        self, bits: Bits, out: NDArray[np.int64], digit: NDArray[np.int64]
    ) -> NDArray[Any] | None:
        """Overwrite `out` with draws, or return them where int64 cannot hold them."""
        if self.wide:
            return self._wide(bits, out.size)
        (lowest, _), *others = self.places
        lowest.fill(bits, out)
        for i, (place, shift) in enumerate(others):
            place.fill(bits, digit)
            if i == len(others) - 1 and out.size and int(digit.max()) >> (62 - shift):
                return _xor(out, digit, shift)
            digit <<= shift
            out ^= digit
        return None

    def _wide(self, bits: Bits, size: int) -> NDArray[Any]:
        total = np.zeros(size, np.object_)
        digit = np.empty(size, np.int64)
        for place, shift in self.places:
            place.fill(bits, digit)
            total = _xor(total, digit, shift)
        return total


def _xor(out: NDArray[Any], digit: NDArray[np.int64], shift: int) -> NDArray[Any]:
    """The same assembly in Python integers."""
    values = [a ^ (b << shift) for a, b in zip(out.tolist(), digit.tolist(), strict=True)]
    wide = np.empty(len(values), np.object_)
    wide[:] = values
    return wide


def digits(
    scale: Fraction,
    *,
    signed: bool,
    top_scale: int = TOP_SCALE,
    digit_bits: int = DIGIT_BITS,
    word_bits: int = WORD_BITS,
    guide_bits: int = GUIDE_BITS,
) -> Digits:
    """The tables for a geometric law of this scale, or for the discrete Laplace law if signed."""
    places = []
    shift = 0
    while True:
        rate = (1 << shift) / scale
        last = rate * top_scale >= 1
        base = None if last else 1 << digit_bits
        law = _digit(rate, base, signed=signed and not shift)
        cumulative, symbol, boundaries, cells = law
        table = inversion(
            cumulative,
            symbol,
            boundaries=boundaries,
            cells=cells,
            word_bits=word_bits,
            guide_bits=guide_bits,
        )
        places.append((table, shift))
        if last:
            return Digits(tuple(places))
        shift += digit_bits


def _digit(
    rate: Fraction, base: int | None, *, signed: bool
) -> tuple[Callable[[int], arb], Callable[[int], int], Callable[[], Iterable[arb]], int | None]:
    """P proportional to exp(-rate*d) on 0 ... base-1, or on all naturals.

    With a sign, cell 2d stands for d and cell 2d+1 for -1-d: P[d and sign s] is P[d]/(1+q) for
    s = 0 and P[d] q/(1+q) for s = 1, q = exp(-rate).
    """

    def below(count: int) -> arb:
        """P[digit < count], but for the whole."""
        return -(-arb_of(rate * count)).expm1()

    def whole() -> arb:
        return arb(1) if base is None else below(base)

    def cumulative(j: int) -> arb:
        d, last = divmod(j, 2) if signed else (j, 1)
        upto = below(d + 1) / whole()
        if last:
            return upto
        ratio = (-arb_of(rate)).exp()
        return upto - (upto - below(d) / whole()) * ratio / (1 + ratio)

    def boundaries() -> Iterable[arb]:
        total, ratio, survival = whole(), (-arb_of(rate)).exp(), arb(1)
        positive_part = (1 - ratio) / (1 + ratio)
        while True:
            if signed:
                yield (1 - survival + survival * positive_part) / total
            survival *= ratio
            yield (1 - survival) / total

    def symbol(j: int) -> int:
        return j if not signed else ~(j >> 1) if j & 1 else j >> 1

    return cumulative, symbol, boundaries, 2 * base if signed and base else base
