"""Gradients clipped to whole numbers: one example moves their sum by at most the bound, always.

Law      example i, with gradient g in R^d and the clip (norm C, bound D), gives c in Z^d with
         c_1**2 + ... + c_d**2 <= D**2; the sum S of a batch is that of the c of its examples.
         Nearly always c = trunc(g f), f near D/max(C, |g|): g cut to norm C, in steps of C/D
Theorem  (one example) sum c_j**2 <= D**2, whatever floats, NaN and infinities g holds and whatever
         rounding, compiler and device made of g f
Proof    What floats gave is made int64 and cut to -D..D, as integers: from there on nothing is a
         float. (a) The sum of squares s is exact. Those of 2**62 // D**2 >= 4 columns add up to at
         most 2**62; what is above D**2 is put down to D**2 + 1. Of such numbers, so many are added
         that they stay below 2**62, three or more, and put down in the same way, until one is
         left. That number is s if s <= D**2; else it is D**2 + 1: a sum of numbers from 0 up is
         above D**2 if a part of it is.
         (b) If s <= D**2, c is this vector. (c) Else c is its shortened form,
         c_j = sign(k_j) floor(|k_j| D / r) with a whole r >= 1, r**2 > t, where t is the exact sum
         of squares in Python's integers: sum c_j**2 <= D**2 t / r**2 < D**2, and |k_j| D <= D**2 <
         2**62 does not overflow. (d) A gradient that holds a NaN or an infinity gives 0.  []
Theorem  (one example more or less) let c be a function of the example alone: of its place in the
         batch, of how many places there are and of the model too, but of no other example. For
         two tables that differ in one example, whose place is left empty and gives 0, and equal
         coins, S and S' differ by 0 or by that example's c: |S - S'| <= D. So S + round(sigma Z) is
         D/sigma-GDP, and of a Poisson sample `SubsampledGaussianLoss(q, (D/sigma)**2)`: `noise.py`
Proof    Equal coins give batches of equal places, and all other terms are equal; integers add up
         to one sum in every order. It does not overflow: batches of 2**62 / D examples or more are
         refused.  []
Differs  "of no other example" is a premise. Floats of equal shape and place do not depend on what
         other rows hold, but they do on how many rows there are: without one of 256 examples, the
         products of matrices that Opacus uses gave other last bits for half the numbers of the
         other 255. So an absent example leaves an *empty place*, in the theorem and not in the
         program: nobody sees one. The price is that of one example more or less, and the number of
         places is public, as q and the expected batch are. Batch normalisation breaks the premise;
         `check_isolated` in tensors/ looks for what does
Source   for clipping, Abadi et al. 2016; for what floats do to it, Casacuberta et al. 2022
Checked  tests/training/test_clipping.py: 10**5 pairs by force, and the mutants
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import Number, positive, whole

MOST_BOUND = 1 << 30
USUAL_BOUND = 1 << 24
"""Every whole number up to it is a binary32, and noise of 100 times as much an int32."""
SHARE = 1 - 2.0**-14
"""Of the bound: enough for quick sums of squares in floats to prove that a row is short."""
INT64_SAFE = 1 << 62
_LARGEST_FACTOR = 10**30
_PIECE = 1 << 18  # numbers that are worked on at a time, so that they stay in a cache


@dataclass(frozen=True, slots=True, init=False, repr=False)
class WholeClip:
    """Gradients are cut to `norm` and counted in steps of norm/bound.

    >>> clip = WholeClip(norm=1)
    >>> clip, clip.step == Fraction(1, 2**24)
    (WholeClip(norm=1, bound=16777216), True)
    """

    norm: Fraction
    bound: int

    def __init__(self, *, norm: Number, bound: int = USUAL_BOUND) -> None:
        most = whole(bound, "bound", least=1)
        if most > MOST_BOUND:
            problem = f"is above 2**{MOST_BOUND.bit_length() - 1}"
            raise InvalidParameter("bound", problem=problem, remedy="pass 2**24, say")
        length = positive(norm, "norm")
        if not 2**-900 < length < 2**900:
            remedy = "pass a number nearer to 1"
            raise InvalidParameter("norm", problem="is out of the range of floats", remedy=remedy)
        object.__setattr__(self, "norm", length)
        object.__setattr__(self, "bound", most)

    @property
    def step(self) -> Fraction:
        """What one whole step stands for."""
        return self.norm / self.bound

    @property
    def is_single(self) -> bool:
        """Whether factors fit into binary32: by the clip alone, as no example may decide it.

        Were it decided by the factors of a batch, one example would change the last bits of others.
        """
        return self.bound / self.norm < _LARGEST_FACTOR

    def check_batch(self, examples: int) -> None:
        """Refuse a batch whose sum could overflow."""
        if examples * self.bound >= INT64_SAFE:
            remedy = "take smaller batches, or a smaller bound"
            raise InvalidParameter("batch", problem="has too many examples", remedy=remedy)

    def __repr__(self) -> str:
        return f"WholeClip(norm={self.norm}, bound={self.bound})"


def whole_gradients(gradients: NDArray[np.floating], clip: WholeClip) -> NDArray[np.int64]:
    """The gradient of each example, a row, as whole numbers: the c of the theorem.

    >>> rows = np.array([[3.0, -4.0], [0.3, 0.4], [np.nan, 1.0]])
    >>> whole_gradients(rows, WholeClip(norm=1, bound=1000)).tolist()
    [[599, -799], [299, 399], [0, 0]]
    """
    rows = _checked(gradients)
    counts = whole_numbers(rows, factors(rows, clip), clip)
    counts[~np.isfinite(rows).all(axis=1)] = 0
    return within(counts, clip)


def clipped_sum(gradients: NDArray[np.floating], clip: WholeClip) -> NDArray[np.int64]:
    """The sum of a batch of gradients, one row an example: the S of the theorem.

    >>> clipped_sum(np.array([[3.0, -4.0], [0.3, 0.4]]), WholeClip(norm=1, bound=1000)).tolist()
    [898, -400]
    >>> clipped_sum(np.empty((0, 2), np.float32), WholeClip(norm=1)).tolist()
    [0, 0]
    """
    rows = _checked(gradients)
    clip.check_batch(len(rows))
    total = np.zeros(rows.shape[1], np.int64)
    at_once = max(1, _PIECE // max(1, rows.shape[1]))
    for start in range(0, len(rows), at_once):
        total += whole_gradients(rows[start : start + at_once], clip).sum(axis=0)
    return total


def factors(rows: NDArray[np.floating], clip: WholeClip) -> NDArray[np.float64]:
    """About bound/max(norm, |g|) of each row. Floats choose; no privacy rests on them.

    A row whose squares overflow is measured again after division by its greatest number.
    """
    norm, target = float(clip.norm), clip.bound * SHARE
    with np.errstate(all="ignore"):
        length = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
        for i in np.flatnonzero(~np.isfinite(length)):
            top = np.abs(rows[i]).max()
            if np.isfinite(top):
                row = rows[i].astype(np.float64) / float(top)
                length[i] = np.sqrt(row @ row) * float(top)
        return np.asarray(target / np.maximum(length, norm))


def whole_numbers(
    rows: NDArray[np.floating], factor: NDArray[np.float64], clip: WholeClip
) -> NDArray[np.int64]:
    """trunc(g f), cut to -bound..bound as integers: whatever comes in, that much is sure."""
    kind = np.dtype(np.float32 if rows.dtype != np.float64 and clip.is_single else np.float64)
    with np.errstate(all="ignore"):
        scaled = np.multiply(rows, factor.astype(kind)[:, np.newaxis], dtype=kind)
        np.trunc(scaled, out=scaled)
        counts: NDArray[np.int64] = scaled.astype(np.int64)  # of NaN and the infinite: anything
    np.clip(counts, -clip.bound, clip.bound, out=counts)
    return counts


def within(counts: NDArray[np.int64], clip: WholeClip) -> NDArray[np.int64]:
    """Rows of whole numbers up to the bound, in place: those that are too long are shortened."""
    for i in np.flatnonzero(squares(counts, clip.bound) > clip.bound**2):
        counts[i] = shortened(counts[i], clip.bound)
    return counts


def squares(counts: NDArray[np.int64], bound: int) -> NDArray[np.int64]:
    """The sum of squares of each row, exact up to bound**2; bound**2 + 1 for all that is more."""
    most, run = bound**2, INT64_SAFE // bound**2
    starts = range(0, counts.shape[1], run)
    parts = [counts[:, start : start + run] for start in starts]
    sums = np.zeros((len(counts), len(parts)), np.int64)
    for j, part in enumerate(parts):
        np.einsum("ij,ij->i", part, part, out=sums[:, j])
    np.minimum(sums, most + 1, out=sums)
    run = INT64_SAFE // (most + 1)
    while sums.shape[1] > 1:
        ends = np.arange(0, sums.shape[1], run)
        sums = np.minimum(np.add.reduceat(sums, ends, axis=1), most + 1)
    return sums[:, 0] if sums.shape[1] else np.zeros(len(counts), np.int64)


def shortened(row: NDArray[np.int64], bound: int) -> NDArray[np.int64]:
    """A row up to the bound in each number, shortened to it as a vector: (c) of the proof.

    >>> shortened(np.array([1000, -1000, 3]), 1000).tolist()
    [706, -706, 2]
    """
    total = sum(int(k) ** 2 for k in row.tolist())
    size: NDArray[np.int64] = np.abs(row) * bound // (isqrt(total) + 1)
    size *= np.sign(row)
    return size


def _checked(gradients: object) -> NDArray[np.floating]:
    """A matrix of floats, a row an example."""
    remedy = "pass a matrix of floats with a row for each example"
    if not isinstance(gradients, np.ndarray) or gradients.dtype.kind != "f":
        raise WrongType("gradients", problem="are not an array of floats", remedy=remedy)
    if gradients.ndim != 2:
        problem = f"have {gradients.ndim} dimensions"
        raise InvalidParameter("gradients", problem=problem, remedy=remedy)
    return np.asarray(gradients)  # without a mask, or other ways to add, that a subclass has
