"""The evidence behind `lastbit leak`: three ways to add Laplace noise, judged exactly.

Everything here is either an exact law (Fractions, balls) or a count of real draws with an exact
confidence interval. All randomness comes from `lastbit.sampling`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from lastbit.exact import Ball, root_above
from lastbit.laws import DiscreteLaplace
from lastbit.sampling import discrete_laplace, uniform_below

Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]

GRID_BITS = 53
BLOCK = 1 << 16
# Positions of the last 1-bit that are counted one by one; what lies beyond joins the end classes.
FIRST_BIT, LAST_BIT = 44, 62


# -- 1: fixed point ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedPointLeak:
    """Example 1.1 of Gazeau, Miller and Palamidessi, in units of 2**-fractional_bits."""

    fractional_bits: int
    scale_bits: int
    answers: tuple[int, int]
    released: tuple[tuple[int, ...], tuple[int, ...]]
    last_bits: tuple[str, str]
    probabilities: tuple[tuple[Fraction, Fraction], tuple[Fraction, Fraction]]
    law: DiscreteLaplace

    @property
    def promised_loss(self) -> Fraction:
        """What the same noise would cost on the real line: distance over scale."""
        distance = Fraction(abs(self.answers[1] - self.answers[0]), 1 << self.fractional_bits)
        return distance / (1 << self.scale_bits)


def fixed_point_leak(draws: int) -> FixedPointLeak:
    """Release both answers of the example a few times, and work out what their last bits say.

    Law      with d fractional bits and scale 2**n a release is (answer + 2**n * z) * 2**-d, the
             integer z drawn from the machine's Laplace law of scale 1, that is of 2**d grid steps
    Theorem  (answer + 2**n * z) mod 2**n = answer mod 2**n for every z: the last n bits of the
             release are the secret's with probability 1, and the privacy loss of two answers that
             differ there is infinite
    Source   paper 000, Example 1.1: d = 6, n = 2, answers 0 and 1 + 2**-5
    Differs  the machine's Laplace is the discrete one on its grid; the theorem holds for any z
    Checked  tests/cli/test_leak_evidence.py
    """
    fractional_bits, scale_bits = 6, 2
    answers = (0, (1 << fractional_bits) + (1 << fractional_bits - 5))
    released = [
        tuple(answer + (z << scale_bits) for z in _machine_laplace(fractional_bits, draws))
        for answer in answers
    ]
    endings = [answer % (1 << scale_bits) for answer in answers]
    return FixedPointLeak(
        fractional_bits=fractional_bits,
        scale_bits=scale_bits,
        answers=answers,
        released=(released[0], released[1]),
        last_bits=(f"{endings[0]:0{scale_bits}b}", f"{endings[1]:0{scale_bits}b}"),
        probabilities=(
            (_ending(answers[0], endings[0]), _ending(answers[0], endings[1])),
            (_ending(answers[1], endings[0]), _ending(answers[1], endings[1])),
        ),
        law=DiscreteLaplace(1 << fractional_bits),
    )


def _machine_laplace(fractional_bits: int, draws: int) -> list[int]:
    """The machine's Laplace draws of scale 1, in steps of its grid."""
    return [int(z) for z in np.asarray(discrete_laplace(1 << fractional_bits, size=draws))]


def _ending(answer: int, ending: int, *, scale_bits: int = 2) -> Fraction:
    """P[the release of `answer` ends in `ending`]: by the theorem, 1 or 0."""
    return Fraction(int(answer % (1 << scale_bits) == ending))


# -- 2: floating point ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class FloatLeak:
    """How fine the bits of floating-point releases are, for the answers 0 and 1.

    `counts[f][i]` counts the releases of the answer f whose last 1-bit has the place value
    2**-(FIRST_BIT + i), the first and the last class taking in everything beyond.
    """

    epsilon: Fraction
    samples: int
    counts: tuple[tuple[int, ...], tuple[int, ...]]
    off_grid: tuple[int, int]
    ideal_share: tuple[Fraction, Fraction]
    witness: float | None

    def share(self, answer: int, first: int, last: int) -> Fraction:
        """Share of the answer's releases with their last 1-bit at places first to last."""
        low, high = first - FIRST_BIT, last - FIRST_BIT
        return Fraction(sum(self.counts[answer][low : high + 1]), self.samples)


def float_leak(epsilon: Fraction, samples: int, *, watch: Callable[[float], None]) -> FloatLeak:
    """Release the answers 0 and 1 with numpy's Laplace noise; look at the finest bits.

    Law      release = answer + x, x as `float_laplace` computes it, scale 1/epsilon
    Theorem  a release of the answer 1 is a multiple of 2**-53, always. Let x be any finite double
             and y = 1 + x, rounded to nearest.
             (i)   x >= -1/2: the real sum is at least 1/2, and so is y, for rounding is monotone
                   and 1/2 is a double. Every double of magnitude 1/2 or more is a multiple of
                   2**-53, because its significand has 53 bits.
             (ii)  x < -1/2: x is itself of magnitude above 1/2, hence a multiple of 2**-53, hence
                   so is the real number 1 + x. If |1 + x| <= 1 it is one of the multiples
                   m * 2**-53 with |m| <= 2**53, all of them doubles, and y = 1 + x exactly.
                   Otherwise |y| >= 1 and y is a double of magnitude 1/2 or more, as in (i).
             Nothing was asked of x: no event is too rare, no logarithm too inaccurate.
    Theorem  the answer 0 releases x itself, which has 53 significant bits wherever it lies. For
             |x| in [2**-(k+1), 2**-k) its grid is 2**-(53+k); were its last k bits uniform, it
             would miss the grid 2**-53 with probability 1 - 2**-k: `ideal_share_off_grid`.
    Hence    one release off the grid proves that the answer was not 1: the loss is infinite.
    Source   theory of the floating-point leak: Mironov, CCS 2012; here for numpy's own formula
    Differs  the noise is added as `answer + x`. numpy's `loc=` does the same in one expression,
             which a compiler may fuse into one rounding; at scale 1 that changes nothing.
    Checked  tests/cli/test_leak_evidence.py
    """
    scale = float(1 / epsilon)
    counts = np.zeros((2, LAST_BIT - FIRST_BIT + 1), dtype=np.int64)
    off_grid, witness = [0, 0], None
    for done in range(0, samples, BLOCK):
        block = min(BLOCK, samples - done)
        watch(done / samples)
        for answer in (0, 1):
            released = answer + float_laplace(_uniforms(block), scale)
            missing = ~on_grid(released)
            off_grid[answer] += int(missing.sum())
            places = np.clip(trailing_bit(released), FIRST_BIT, LAST_BIT) - FIRST_BIT
            counts[answer] += np.bincount(places, minlength=counts.shape[1])
            if answer == 0 and witness is None and missing.any():
                witness = float(released[missing][0])
    return FloatLeak(
        epsilon=epsilon,
        samples=samples,
        counts=(tuple(counts[0].tolist()), tuple(counts[1].tolist())),
        off_grid=(off_grid[0], off_grid[1]),
        ideal_share=ideal_share_off_grid(epsilon),
        witness=witness,
    )


def float_laplace(uniforms: Integers, scale: float) -> Floats:
    """Laplace noise the way numpy's `Generator.laplace(0, scale)` computes it, bit for bit.

    `uniforms` holds the 53-bit integers m from 1 to 2**53 - 1 of numpy's uniform doubles
    U = m * 2**-53. numpy draws again at U = 0; so does who calls this.

    The logarithm is the C library's, which `math.log` calls too. `np.log` is another
    implementation and differs in the last bit about once in 300 draws.
    """
    uniform = np.ldexp(uniforms.astype(np.float64), -GRID_BITS)
    right = uniform >= 0.5
    argument = np.where(right, 2.0 - uniform - uniform, uniform + uniform)
    logarithm = np.fromiter(map(math.log, argument.tolist()), np.float64, argument.size)
    return np.where(right, 0.0 - scale * logarithm, 0.0 + scale * logarithm)


def on_grid(released: Floats) -> npt.NDArray[np.bool_]:
    """Which of the doubles are multiples of 2**-53. Scaling by a power of two is exact."""
    steps = np.ldexp(released, GRID_BITS)
    return np.equal(steps, np.floor(steps))


def trailing_bit(released: Floats) -> Integers:
    """For each double y = odd * 2**-t the place t of its last 1-bit; 0 has none and gets -1100."""
    fraction, exponent = np.frexp(released)
    significand = np.ldexp(fraction, GRID_BITS).astype(np.int64)
    _, bit = np.frexp((significand & -significand).astype(np.float64))
    places = GRID_BITS - exponent.astype(np.int64) - (bit.astype(np.int64) - 1)
    return np.where(significand == 0, np.int64(-1100), places)


def trailing_bit_of(released: float) -> int:
    """The place t of the last 1-bit of one double."""
    return int(trailing_bit(np.array([released]))[0])


def ideal_share_off_grid(epsilon: Fraction) -> tuple[Fraction, Fraction]:
    """The share of releases of the answer 0 that miss the grid 2**-53, if last bits were uniform.

    Law      sum over k >= 1 of P[2**-(k+1) <= |X| < 2**-k] * (1 - 2**-k), X Laplace of scale
             1/epsilon, so that P[|X| >= t] = exp(-epsilon*t)
    Theorem  the terms beyond K add up to at least 0 and at most P[|X| < 2**-(K+1)], which is at
             most epsilon * 2**-(K+1)
    Returns  two rationals with the value between them
    Checked  tests/cli/test_leak_evidence.py
    """
    last = 120
    at_least = [(Ball.of(-epsilon) / (1 << k)).exp() for k in range(last + 2)]
    total = Ball.of(0)
    for k in range(1, last + 1):
        total += (at_least[k + 1] - at_least[k]) * (1 - Fraction(1, 1 << k))
    low, high = total.ends
    return low, high + epsilon / (1 << last + 1)


def interval(hits: int, trials: int) -> tuple[Fraction, Fraction]:
    """Where the true probability lies, given `hits` of `trials` independent draws.

    Theorem  P[|hits/trials - p| > r] <= 2*exp(-2*trials*r**2) (Hoeffding). With r**2 = 7/trials
             the interval is wrong with probability at most 2*exp(-14) < 1/600,000.
    Checked  tests/cli/test_leak_evidence.py; the square root is rounded up
    """
    radius = root_above(Fraction(7, trials))
    share = Fraction(hits, trials)
    return max(Fraction(0), share - radius), min(Fraction(1), share + radius)


def _uniforms(size: int) -> Integers:
    """53-bit integers, all but 0 equally likely: numpy's uniforms after its own rejection of 0."""
    return np.asarray(uniform_below((1 << GRID_BITS) - 1, size=size), dtype=np.int64) + 1


# -- 3: the lattice ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class LatticeRow:
    """One output k: its exact probability under either answer, their ratio, the exact loss."""

    output: int
    probabilities: tuple[Ball, Ball]
    ratio: Ball
    loss: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class LatticeEvidence:
    """Discrete Laplace noise on the integers, answers 0 and 1."""

    epsilon: Fraction
    rows: tuple[LatticeRow, ...]


def lattice_evidence(epsilon: Fraction, outputs: range = range(-3, 5)) -> LatticeEvidence:
    """The exact law of the releases of 0 and 1 with discrete Laplace noise of scale 1/epsilon.

    Law      P[release = k | answer f] = (1-q)/(1+q) * q**abs(k-f), q = exp(-epsilon)
    Theorem  ln of the ratio at k is epsilon * (|k-1| - |k|), that is +epsilon for k <= 0 and
             -epsilon for k >= 1: never more, never less. Every integer is reachable from both.
    Source   CKS20, Definition 2
    Checked  tests/cli/test_leak_evidence.py
    """
    law = DiscreteLaplace(1 / epsilon)
    rows = []
    for k in outputs:
        from_zero, from_one = law.probability(k), law.probability(k - 1)
        rows.append(
            LatticeRow(
                output=k,
                probabilities=(from_zero, from_one),
                ratio=from_zero / from_one,
                loss=epsilon * (abs(k - 1) - abs(k)),
            )
        )
    return LatticeEvidence(epsilon=epsilon, rows=tuple(rows))
