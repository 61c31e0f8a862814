"""Laplace draws in the Euclidean and the maximum norm: exact, on integer points."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from lastbit.errors import InvalidParameter
from lastbit.exact import (
    LARGEST_ARGUMENT,
    Pair,
    arb_of,
    enclosure_of,
    exp_between,
    exp_negative,
    nearest,
    root_below,
    share,
    shorter,
    working_precision,
)
from lastbit.laws import DiscreteNormLaplace, eulerian_b, norm_normaliser
from lastbit.sampling.bits import Bits, words
from lastbit.sampling.inversion import GUIDE_BITS, WORD_BITS, Inversion, inversion
from lastbit.sampling.laplace_tables import Digits, digits, laplace_sampler
from lastbit.sampling.lazy import LazyUniform, accepted
from lastbit.sampling.planar import MOST_STEPS
from lastbit.sampling.uniform import UniformBelow, below_each

# `below_each` takes numbers below 2**32: so far reach the cubes that it serves.
_FAR = 1 << 31
_BLOCK = 1 << 13  # proposals at a time
_UNIFORM_SHIFT = np.uint64(11)
_OVERFLOW = 48 * math.log(2)


@lru_cache(maxsize=32)
def norm_sampler(law: DiscreteNormLaplace) -> Cubes | Balls:
    """The prepared sampler of a law; its draws are records with the coordinates in "x"."""
    if law.rate * MOST_STEPS < 1:
        remedy = "pass the loss for a larger step"
        raise InvalidParameter("rate", problem="is below 2**-22", remedy=remedy)
    return cubes(law.rate, law.dimension) if law.norm == "Linf" else balls(law)


def vector_type(dimension: int) -> np.dtype[Any]:
    """One draw: so many integers."""
    return np.dtype([("x", np.int64, (dimension,))])


@dataclass(frozen=True, slots=True, eq=False)
class Cubes:
    """Laplace noise in the maximum norm: a point of a cube of random size, nothing rejected.

    Law      P[X = x] proportional to q**max(abs(x_i)), q = exp(-rate), x of m integers
    Theorem  Draw R with P[R = r] = (2r+1)**m q**r/W, then each coordinate uniformly from -R to R:
             P[X = x] = sum over r >= max(abs(x_i)) of q**r/W, which is proportional to the law.
             *Size*: (2r+1)**m = sum_j B(m, j) binomial(r-j+m, m) with Eulerian numbers of type B
             (`DiscreteNormLaplace`), and binomial(g+m, m) q**g is, up to a factor, the law of the
             sum of m+1 geometric draws of ratio q. So R = J + G_0 + ... + G_m, with
             P[J = j] proportional to B(m, j) q**j, j from 0 to m: W = sum B(m, j) q**j/(1-q)**(m+1)
    Source   ours; for m = 2 the squares of `sampling/planar.py`, without their coin
    Differs  no rejection, so the number of words depends on the size alone, but for uniforms that
             64 bits do not decide, with probability below 2**-32 each. A geometric draw stays
             below 2**38 (`Shells`), and R below 2**45
    Checked  tests/laws/test_norms.py
    """

    dimension: int
    first: Inversion
    digits: Digits

    def draw(self, bits: Bits, size: int) -> NDArray[Any]:
        radius = np.empty(size, np.int64)
        self.first.fill(bits, radius)
        for _ in range(self.dimension + 1):
            radius += self.digits.draw(bits, size).astype(np.int64, copy=False)
        out = np.empty(size, vector_type(self.dimension))
        out["x"] = _within(bits, np.repeat(radius, self.dimension)).reshape(size, self.dimension)
        return out


def _within(bits: Bits, radius: NDArray[np.int64]) -> NDArray[np.int64]:
    """For every r a uniform integer from -r to r."""
    far = np.flatnonzero(radius >= _FAR)
    lengths = (2 * radius + 1).astype(np.uint64)
    lengths[far] = 0
    place = below_each(bits, lengths)
    for n in far:
        place[n] = UniformBelow(2 * int(radius[n]) + 1).draw(bits, 1)[0]
    return place - radius


def cubes(
    rate: Fraction, dimension: int, *, word_bits: int = WORD_BITS, guide_bits: int = GUIDE_BITS
) -> Cubes:
    """The tables of a rate."""
    counts = eulerian_b(dimension)
    spare = sum(counts).bit_length() + 32

    def boundaries(places: int) -> Iterator[Pair]:
        working = places + spare
        pairs = [exp_between(rate * j, working) for j in range(len(counts))]
        weights = [(b * low, b * high) for b, (low, high) in zip(counts, pairs, strict=True)]
        whole = sum(low for low, _ in weights), sum(high for _, high in weights)
        low = high = 0
        for below, above in weights[:-1]:
            low, high = low + below, high + above
            yield shorter(share((low, high), whole, working), spare)

    table = inversion(
        boundaries, int, cells=dimension + 1, word_bits=word_bits, guide_bits=guide_bits
    )
    return Cubes(dimension, table, digits(1 / rate, signed=False))


@dataclass(frozen=True, slots=True, eq=False)
class Balls:
    """Laplace noise in the Euclidean norm: independent Laplace proposals, accepted if round enough.

    Law      P[X = x] proportional to exp(-a abs(x)), a the rate, x of m integers
    Theorem  Propose m independent discrete Laplace draws of rate b <= a/sqrt(m), together with
             probability proportional to exp(-b s), s the sum of abs(x_i), and accept with
             exp(-d), d = a abs(x) - b s. By Cauchy s <= sqrt(m) abs(x), so d >= 0; accepted points
             have the law. They are a share Z(a)/((1+p)/(1-p))**m of all, p = exp(-b): for small a
             0.60, 0.46, 0.35, 0.16, 0.018 for m = 3, 4, 5, 8, 16.
             *In floats*, u = 2**-53, L = a abs(x): squares, their sum of m terms and its root are
             off by at most (m+2) u relatively, the floats of a, b and s and the products by 2u
             each, the difference by u d: d is off by at most (m+8) u L, as b s <= L. So is the
             exponent, and the exponential by 8u more: with t = (2 (m+8) L + 32) u <= 1/2 and
             y = exp_negative(d), y (1 - t) <= exp(-d) <= y (1 + t), the roundings of the bounds
             included. The first 53 bits of U decide unless they lie between; balls decide those,
             and all with t > 1/2, as it is for every x != 0 and a > 2**64 (which stands for
             more). Where d > 512 that number stands for it, as in `Shells`
    Source   rejection from the sum norm: ours; paper 000, Definition 2.7, for the law
    Differs  the number of words is constant for a size: so many proposals are drawn that, except
             with probability 2**-48, enough are accepted; then another batch is drawn
    Checked  tests/laws/test_norms.py
    """

    rate: Fraction
    dimension: int
    proposal: Fraction
    acceptance: float

    def draw(self, bits: Bits, size: int) -> NDArray[Any]:
        out = np.empty(size, vector_type(self.dimension))
        count, done = enough(size, self.acceptance), 0
        while done < size:
            for start in range(0, count, _BLOCK):
                found = self._accepted(bits, min(_BLOCK, count - start), size - done)
                out["x"][done : done + len(found)] = found
                done += len(found)
        return out

    def _accepted(self, bits: Bits, count: int, need: int) -> NDArray[np.int64]:
        """The first `need` accepted ones of `count` proposals, or all if fewer."""
        sampler = laplace_sampler(1 / self.proposal)
        flat = sampler.draw(bits, count * self.dimension).astype(np.int64, copy=False)
        points = flat.reshape(count, self.dimension)
        uniform = (words(bits, count, np.uint64) >> _UNIFORM_SHIFT).view(np.int64)
        chosen = accepted(
            uniform,
            self._acceptance(points),
            need,
            lambda n: self._decided(bits, points[n].tolist(), int(uniform[n])),
        )
        return points[chosen]

    def _acceptance(
        self, points: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Floats that enclose 2**53 times the probability of accepting each proposal."""
        places = points.astype(np.float64)
        rate, proposal = (nearest(min(r, Fraction(1 << 64))) for r in (self.rate, self.proposal))
        far = np.sqrt((places * places).sum(axis=1)) * rate
        sums = np.abs(points).sum(axis=1).astype(np.float64)
        further = np.clip(far - sums * proposal, 0.0, LARGEST_ARGUMENT)
        slack = (far * (2.0 * (self.dimension + 8)) + 32.0) * 2.0**-53
        y = exp_negative(further) * 2.0**53
        open_ = slack > 0.5
        return np.where(open_, 0.0, y - slack * y), np.where(open_, 2.0**53, y + slack * y)

    def _decided(self, bits: Bits, point: list[int], uniform: int) -> bool:
        """Accept or not, exactly."""
        square, sums = sum(x * x for x in point), sum(map(abs, point))

        def probability() -> arb:
            further = arb_of(self.rate) * arb(square).sqrt() - arb_of(self.proposal * sums)
            return (-further).exp()

        return LazyUniform(bits, uniform, 53).below(enclosure_of(probability))


def balls(law: DiscreteNormLaplace) -> Balls:
    """The proposal of a Euclidean law, and how often it is accepted."""
    proposal = root_below(law.rate**2 / law.dimension)
    with working_precision(128):
        p = (-arb_of(proposal)).exp()
        proposed = ((1 + p) / -(-arb_of(proposal)).expm1()) ** law.dimension
        often = float((norm_normaliser(law) / proposed).mid())
    return Balls(law.rate, law.dimension, proposal, min(often * 0.999, 1.0))


@lru_cache(maxsize=1024)
def enough(size: int, acceptance: float) -> int:
    """How many proposals to draw so that `size` of them are accepted.

    Theorem  P[Bin(n, p) <= k] <= exp(-n KL(k/n, p)) for k < n p (Chernoff), here below 2**-48; by
             float: an error here costs time, never exactness
    """
    if not size:
        return 0
    count = math.ceil(size / acceptance)
    while acceptance < 1:
        k = (size - 1) / count
        missed = (1 - k) * math.log((1 - k) / (1 - acceptance)) if k < 1 else 0.0
        gained = k * math.log(k / acceptance) if k else 0.0
        if k < acceptance and count * (missed + gained) > _OVERFLOW:
            break
        count += max(count // 16, 1)
    return count
