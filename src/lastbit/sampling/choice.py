"""One of many candidates, by rational weights or by exponentials, alone or by counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Any, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import Number, nearest, positive, rational
from lastbit.sampling.bits import Bits, words
from lastbit.sampling.draw import Shape, Size, drawn_fresh
from lastbit.sampling.lazy import falls_below
from lastbit.sampling.rows import MOST_BITS, weights_above
from lastbit.sampling.uniform import UniformBelow

Exponents: TypeAlias = NDArray[Any] | Sequence[Fraction]
"""Integers or float64 in a numpy vector, or rationals."""


def distances_below(exponents: Exponents) -> tuple[NDArray[np.float64], Fraction]:
    """Greatest exponent minus each, correctly rounded to floats, and the greatest itself.

    Theorem  a difference of two floats is correctly rounded; one of 64-bit integers is exact modulo
             2**64, and as it lies in 0 ... 2**64 - 1 exact altogether, then rounded once
    Checked  tests/laws/test_choice.py, tests/mechanisms/test_permute_and_flip.py
    """
    if not isinstance(exponents, np.ndarray):
        most = max(exponents)
        return np.array([nearest(most - e) for e in exponents], np.float64), most
    greatest = exponents.max()
    if exponents.dtype.kind == "f":
        return greatest - exponents, Fraction(float(greatest))
    apart = greatest.astype(np.uint64) - exponents.astype(np.uint64)
    return apart.astype(np.float64), Fraction(int(greatest))


Numbers: TypeAlias = Sequence[Number] | NDArray[np.number[Any]]

_LIMB = 31
_MASK = (1 << _LIMB) - 1
_LEAST_RATE = Fraction(1, 1 << 1000)
_SCALE_BITS = 62
_FEW = 256  # so few candidates that the sum of their weights can stay below 2**62
_CHUNK = 1 << 14


@overload
def choice(weights: Numbers, size: None = None) -> int: ...
@overload
def choice(weights: Numbers, size: Shape) -> NDArray[np.int64]: ...
def choice(weights: Numbers, size: Size = None) -> int | NDArray[np.int64]:
    """Exact draws of an index, with probability proportional to its rational weight.

    Law      P[X = i] = weights[i] / sum(weights)
    Theorem  the weights over their common denominator are integers; a uniform integer below their
             sum falls into the i-th of the intervals they fill with exactly that probability
    Differs  floats are the dyadic numbers they are; nothing is normalised or rounded
    Checked  tests/laws/test_choice.py

    >>> choice([0, 1, 0])
    1
    >>> choice(["1/3", 0.25, 2], size=5).shape
    (5,)
    >>> choice([1, -1])
    Traceback (most recent call last):
        ...
    lastbit.errors.InvalidParameter: weights[1] is negative; pass weights from 0 up
    """
    return drawn_fresh(wheel(weights), size)  # type: ignore[no-any-return]


@overload
def choice_exp(exponents: Numbers, size: None = None, *, rate: Number = 1) -> int: ...
@overload
def choice_exp(exponents: Numbers, size: Shape, *, rate: Number = 1) -> NDArray[np.int64]: ...
def choice_exp(
    exponents: Numbers, size: Size = None, *, rate: Number = 1
) -> int | NDArray[np.int64]:
    """Exact draws of an index, with probability proportional to exp(rate * exponents[index]).

    Law      P[X = i] = exp(rate e_i) / sum(exp(rate e_j)): the exponential mechanism
    Theorem  see `Rejection`
    Source   McSherry, Talwar 2007, for the law
    Differs  exponents and rate are exact (floats are the dyadic numbers they are); candidates in
             the millions take some tens of nanoseconds each
    Checked  tests/laws/test_choice.py

    >>> choice_exp([0, 1000, 0])
    1
    >>> choice_exp([3, 5, 4], size=6, rate="1/2").max() <= 2
    np.True_
    >>> choice_exp([])
    Traceback (most recent call last):
        ...
    lastbit.errors.InvalidParameter: exponents are empty; pass at least one
    """
    sampler = majorant(exponents, positive(rate, "rate"))
    return drawn_fresh(sampler, size)  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True, eq=False)
class Wheel:
    """The running sums of integer weights, in limbs of 31 bits, most significant first."""

    sums: tuple[NDArray[np.int64], ...]
    total: int
    public_bits: int
    """How many bits the total may have, where the total itself must not show in the work."""

    def draw(self, bits: Bits, size: int) -> NDArray[np.int64]:
        """`size` independent indices: the least whose sum exceeds a uniform integer."""
        most = UniformBelow(self.total, public_bits=self.public_bits)
        target = _split(most.draw(bits, size), len(self.sums))
        left = np.zeros(size, np.int64)
        right = np.full(size, self.sums[0].size - 1, np.int64)
        for _ in range((self.sums[0].size - 1).bit_length()):  # bisection, all in lockstep
            middle = (left + right) >> 1
            above, equal = np.zeros(size, np.bool_), np.ones(size, np.bool_)
            for limb, wanted in zip(self.sums, target, strict=True):  # as words in a dictionary
                here = limb[middle]
                above |= equal & (here > wanted)
                equal &= here == wanted
            np.copyto(right, middle, where=above)
            np.copyto(left, middle + 1, where=~above)
        return right


def _split(numbers: NDArray[Any], limbs: int) -> list[NDArray[np.int64]]:
    """Numbers in limbs, most significant first; the first limb takes whatever is left."""
    parts = []
    for _ in range(limbs - 1):
        parts.append((numbers & _MASK).astype(np.int64))
        numbers = numbers >> _LIMB
    return [numbers.astype(np.int64), *reversed(parts)]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Rejection:
    """Weights that are not rational, drawn from integer weights that are a trace too large.

    Law      P[X = i] proportional to v_i = c_i exp(-d_i), c_i a count below 2**53 and d_i >= 0
    Theorem  as for `RowChoices`; i in proportion to W_i by `Wheel`
    Checked  tests/laws/test_choice.py, tests/sampling/test_counted.py
    """

    wheel: Wheel
    weights: NDArray[np.int64]
    accept_low: NDArray[np.float64]
    rate: Fraction
    scale_bits: int

    def draw(self, bits: Bits, size: int) -> NDArray[np.int64]:
        out = self.wheel.draw(bits, size)
        pending = np.arange(size)
        while pending.size:
            word = (words(bits, pending.size, np.uint64) >> np.uint64(11)).view(np.int64)
            open_ = np.flatnonzero(word >= self.accept_low[out[pending]])
            rejected = [
                i for i in open_ if not self._accepts(bits, int(out[pending[i]]), int(word[i]))
            ]
            pending = pending[rejected]
            out[pending] = self.wheel.draw(bits, pending.size)
        return out

    def _accepts(self, bits: Bits, index: int, word: int) -> bool:
        count, distance = self._exactly(index)
        share = Fraction(count << self.scale_bits, int(self.weights[index]))
        return falls_below(bits, word, distance, share)

    def _exactly(self, index: int) -> tuple[int, Fraction]:
        """The count and the exponent of a candidate."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Majorant(Rejection):
    """P[X = i] proportional to exp(-d_i), d_i = rate (max e - e_i): `Rejection` without counts.

    b is 62, or a little less for few candidates. d_i takes a difference and a product.
    """

    exponents: Exponents
    greatest: Fraction

    def _exactly(self, index: int) -> tuple[int, Fraction]:
        return 1, self.rate * (self.greatest - rational(self.exponents[index]))


def wheel(weights: Numbers) -> Wheel:
    """The sums of rational weights over their common denominator."""
    array = _array(weights, "weights")
    if array is not None and array.dtype.kind in "iu" and int(array.max(initial=0)) < 1 << 62:
        _refuse_negative(np.flatnonzero(array < 0))
        return summed(array.astype(np.int64), 62)
    exact = [rational(w, f"weights[{i}]") for i, w in enumerate(weights)]
    _refuse_negative([i for i, w in enumerate(exact) if w < 0])
    common = lcm(*(w.denominator for w in exact))
    whole = np.empty(len(exact), np.object_)
    whole[:] = [int(w * common) for w in exact]
    return summed(whole, max(whole, default=0).bit_length())


def summed(weights: NDArray[Any], most_bits: int, *, public_bits: int = 0) -> Wheel:
    """Running sums of weights of at most `most_bits` bits: limb by limb, then the carries."""
    parts = [np.cumsum(part) for part in _split(weights, max(2, -(-most_bits // _LIMB)))]
    for i in range(len(parts) - 1, 0, -1):
        parts[i - 1] += parts[i] >> _LIMB
        parts[i] &= _MASK
    total = 0
    for part in parts:
        total = (total << _LIMB) + int(part[-1] if part.size else 0)
    if total == 0:
        raise InvalidParameter(
            "weights", problem="are empty or all zero", remedy="pass at least one above 0"
        )
    return Wheel(tuple(parts), total, public_bits)


def _refuse_negative(places: Any) -> None:
    if len(places):
        raise InvalidParameter(
            f"weights[{places[0]}]", problem="is negative", remedy="pass weights from 0 up"
        )


def majorant(exponents: Numbers, rate: Fraction) -> Majorant:
    """Integer weights just above the exponential ones."""
    array = _array(exponents, "exponents")
    if not len(exponents):
        raise InvalidParameter("exponents", problem="are empty", remedy="pass at least one")
    if not _LEAST_RATE < rate < 1 / _LEAST_RATE:
        raise InvalidParameter(
            "rate", problem="is beyond 2**1000 or below 2**-1000", remedy="rescale the exponents"
        )
    with np.errstate(all="ignore"):  # a distance too large for a float counts as 512
        # a copy, whatever the caller does with the original later
        own: Exponents = (
            [rational(value, f"exponents[{i}]") for i, value in enumerate(exponents)]
            if array is None
            else array.copy()
        )
        distances, greatest = distances_below(own)
        distances *= rate.numerator / rate.denominator
    scale_bits = _SCALE_BITS - (distances.size.bit_length() if distances.size <= _FEW else 0)
    weights = np.empty(distances.size, np.int64)
    accept = np.empty(distances.size, np.float64)
    for start in range(0, distances.size, _CHUNK):
        piece = slice(start, start + _CHUNK)
        weights[piece], accept[piece] = weights_above(distances[piece], 2.0**scale_bits)
    # the exponents are often the data itself: nothing but their number may show in the work
    public_bits = scale_bits + 1 + weights.size.bit_length()
    return Majorant(
        wheel=summed(weights, scale_bits + 1, public_bits=public_bits),
        weights=weights,
        accept_low=accept,
        exponents=own,
        greatest=greatest,
        rate=rate,
        scale_bits=scale_bits,
    )


def _array(values: object, name: str) -> NDArray[Any] | None:
    """The values if they are a numpy vector of plain numbers; None for other sequences."""
    unordered = isinstance(values, str | bytes | bytearray | Mapping | Set | np.ma.MaskedArray)
    if unordered or not hasattr(values, "__len__"):
        raise WrongType(name, problem="are not a sequence of numbers", remedy="pass a list")
    if not isinstance(values, np.ndarray):
        return None
    if values.ndim != 1:
        raise InvalidParameter(name, problem="have not one dimension", remedy="pass a vector")
    if values.dtype.kind == "f":
        bad = np.flatnonzero(~np.isfinite(values))
        if bad.size:
            rational(float(values[bad[0]]), f"{name}[{bad[0]}]")
        return values.astype(np.float64) if values.dtype.itemsize <= 8 else None
    return values if values.dtype.kind in "iu" else None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Counted(Rejection):
    """P[X = i] proportional to counts[i] exp(-rate distances[i]), both integers from 0 up.

    Law      that of `Rejection`, d_i = rate (r_i - r), r the least distance with a count above 0;
             an index with count 0 is never drawn
    Checked  tests/sampling/test_counted.py
    """

    counts: NDArray[np.int64]
    distances: NDArray[np.int64]
    least: int

    def _exactly(self, index: int) -> tuple[int, Fraction]:
        return int(self.counts[index]), self.rate * (int(self.distances[index]) - self.least)


def counted(counts: NDArray[np.int64], distances: NDArray[np.int64], rate: Fraction) -> Counted:
    """The prepared weights: counts below 2**53, at least one of them above 0; distances as well."""
    least = int(distances[counts > 0].min())
    scale_bits = MOST_BITS - int(counts.max()).bit_length()
    with np.errstate(all="ignore"):  # a distance too large for a float counts as 512
        far = np.maximum(distances - least, 0).astype(np.float64)
        far *= min(rate.numerator / rate.denominator, 2.0**900)
    weight, accept = weights_above(far, counts.astype(np.float64) * 2.0**scale_bits)
    weights = weight.astype(np.int64)
    public_bits = MOST_BITS + 2 + weights.size.bit_length()
    return Counted(
        wheel=summed(weights, MOST_BITS + 1, public_bits=public_bits),
        weights=weights,
        accept_low=accept,
        counts=counts,
        distances=distances,
        least=least,
        rate=rate,
        scale_bits=scale_bits,
    )
