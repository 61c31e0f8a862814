"""Report noisy max, with geometric noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, overload

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import (
    DEFAULT_PRECISION,
    Number,
    arb_of,
    at_most,
    floor_ceil,
    nonnegative,
    positive,
    upper,
    whole,
    working_precision,
)
from lastbit.laws import Law, least
from lastbit.mechanisms.exponential import Utilities, losses_of, moves, utilities_of
from lastbit.mechanisms.lattice import Lattice, lattice
from lastbit.mechanisms.mechanism import Prepared, Pure, exactly_one, level, set_fields
from lastbit.mechanisms.permute_and_flip import failures
from lastbit.privacy import AS_DECLARED, Neighbours
from lastbit.sampling import MOST_SCALE, Bits, Sampler, Size, digits, drawn_fresh

_BLOCK = 1 << 16
_NARROW = 1 << 61  # steps below it, and noise below twice as much, add up in int64


@dataclass(frozen=True, slots=True, init=False)
class ReportNoisyMax(Pure, Prepared):
    """Picks the candidate whose utility is greatest after one-sided geometric noise was added.

    Law      release(u) = the least i with u_i + G_i = max(u_j + G_j), P[G = k] = (1-q) q**k,
             q = exp(-step/scale), utilities counted in steps of the lattice (1 for integers)
    Theorem  fix the noise of all but i. Candidate i wins iff u_i + G_i reaches the integer
             T = max(max over j < i of u_j + G_j + 1, max over j > i of u_j + G_j): ties go to the
             smallest index. So iff G_i >= k = T - u_i. If no utility moves by more than m steps, T
             rises by at most m and u_i falls by at most m, so k rises by at most 2m; if all
             move in one direction (`monotone`), only one of the two can happen, and k rises by at
             most m. G reaches k with probability q**max(k, 0), so P[G >= k + 2m] >= q**(2m)
             P[G >= k]. This holds for every noise of the others, so on average too: the loss is at
             most 2m step/scale, or m step/scale. Floats are rounded to the lattice one by one, so
             m = floor(sensitivity/step) + 1; integers are not, and m = sensitivity
    Source   Dwork, Roth 2014, section 3.3; one-sided noise: Ding et al. 2021
    Differs  the noise is discrete and exact, ties are part of the proof, the rounding of floats is
             counted. With exponential noise this is permute-and-flip (Ding et al. 2021); with
             geometric noise it differs from it by ties alone, and tends to it for large scales
    Checked  tests/mechanisms/test_noisy_max.py; proof: docs/theory/report-noisy-max.md

    >>> pick = ReportNoisyMax(sensitivity=1, epsilon=2)
    >>> pick.scale, pick.guarantee
    (Fraction(1, 1), PureDP(epsilon=2))
    >>> pick.release([0, 1000, 0])
    1
    >>> pick.law([0, 1]).probability(1)          # 1/(1+q) for a lead of one against ties
    Ball(0.73105857863000487925 ± 1.16e-21)
    >>> print(pick.accuracy("0.05", candidates=100))
    7
    >>> ReportNoisyMax(sensitivity="0.1", epsilon=1, grid="auto").release([0.25, 99.5])
    1
    """

    sensitivity: Fraction
    scale: Fraction
    lattice: Lattice
    monotone: bool
    neighbours: Neighbours

    def __init__(
        self,
        *,
        sensitivity: Number,
        epsilon: Number | None = None,
        scale: Number | None = None,
        grid: Number | None = None,
        monotone: bool = False,
        neighbours: Neighbours = AS_DECLARED,
    ) -> None:
        distance = positive(sensitivity, "sensitivity")
        factor = moves(monotone, neighbours)
        exactly_one(epsilon=epsilon, scale=scale)
        # one dimension: each utility is rounded apart, and each may move by all of the sensitivity
        if scale is not None:
            noise = positive(scale, "scale")
            grounds = lattice(grid, noise=noise, dimension=1)
        else:
            loss = positive(epsilon, "epsilon")
            grounds = lattice(grid, noise=factor * distance / loss, dimension=1)
            noise = factor * grounds.l1_steps(distance) * grounds.step / loss
        if noise > MOST_SCALE * grounds.step:  # the tables grow with it
            raise InvalidParameter(
                "epsilon" if scale is None else "scale",
                problem="makes noise of more than 2**512 steps",
                remedy="measure in a larger unit, or pass {grid}",
                grid="auto",
            )
        set_fields(self, sensitivity=distance, scale=noise, lattice=grounds, monotone=monotone)
        set_fields(self, neighbours=neighbours, _sampler=None)

    @overload
    def release(self, utilities: object, size: None = None) -> int: ...
    @overload
    def release(self, utilities: object, size: int | tuple[int, ...]) -> NDArray[Any]: ...
    def release(self, utilities: object, size: Size = None) -> int | NDArray[Any]:
        """The index of a candidate; an array of independent ones if a size is given.

        Each of them costs what `guarantee` says.
        """
        steps = self._steps(utilities_of(utilities))
        found: int | NDArray[Any] = drawn_fresh(NoisyArgmax(steps, self._prepared()), size)
        return found

    def law(self, utilities: object) -> NoisyMaxLaw:
        """The exact law of release(utilities); n candidates take about n**2 operations each."""
        steps = self._steps(utilities_of(utilities))
        return NoisyMaxLaw(steps.tolist(), scale=self.scale / self.lattice.step)

    def accuracy(self, beta: Number, *, candidates: int) -> Fraction:
        """An a with P[greatest utility - chosen one > a] <= beta.

        Theorem  a candidate that is L >= 1 steps worse than the best passes or ties it with
                 probability P[G' >= G + L] = q**L/(1+q), so one of the n-1 others does so with
                 probability at most (n-1) q**L/(1+q). Rounding to the grid adds a step to a loss
        """
        most, count = level(beta, "beta"), whole(candidates, "candidates", least=1)
        if count == 1:
            return Fraction(0)

        # q is transcendental, so the two sides are never equal
        steps = least(
            lambda k: at_most(lambda: self._passed(k, count), lambda: arb_of(most)), (1, None)
        )
        return (steps - 1) * self.lattice.step + 2 * self.lattice.half_step

    def beta(self, error: Number, *, candidates: int) -> float:
        """At least P[greatest utility - chosen one > error], whatever the utilities."""
        far, count = nonnegative(error, "error"), whole(candidates, "candidates", least=1)
        steps = int((far - 2 * self.lattice.half_step) // self.lattice.step) + 1
        if count == 1:
            return 0.0
        if steps < 1:
            return 1.0
        with working_precision(DEFAULT_PRECISION):
            return min(upper(self._passed(steps, count)), 1.0)

    def expected_error(self, utilities: object) -> float:
        """The mean of greatest utility - chosen one, rounded up."""
        values = utilities_of(utilities)
        law = NoisyMaxLaw(self._steps(values).tolist(), scale=self.scale / self.lattice.step)
        losses = losses_of(values)
        with working_precision(DEFAULT_PRECISION):
            terms = (law.mass(i) * arb_of(loss) for i, loss in enumerate(losses) if loss)
            return upper(sum(terms, arb(0)))

    def expected_error_bound(self, *, candidates: int) -> float:
        """The mean for the worst utilities of n candidates is not above this.

        Theorem  the mean is the sum over L >= 1 of P[loss >= L steps], and each is at most
                 min(1, (n-1) q**L/(1+q)): at most M + (n-1) q**(M+1)/(1 - q**2) for every M >= 0.
                 For large scales that is about scale ln(n)
        """
        count = whole(candidates, "candidates", least=1)
        if count == 1:
            return 0.0
        rate = self.lattice.step / self.scale
        with working_precision(DEFAULT_PRECISION):
            even = (self._passed(0, count)).log() / arb_of(rate)  # any M is right, this is best
            sure = max(floor_ceil(even)[0], 0)
            tail = (-arb_of(rate * (sure + 1))).exp() * (count - 1) / -(-arb_of(2 * rate)).expm1()
            return upper(
                (tail + sure) * arb_of(self.lattice.step) + arb_of(2 * self.lattice.half_step)
            )

    def _new_sampler(self) -> Sampler:
        return digits(self.scale / self.lattice.step, signed=False)

    def _loss(self, distance: Fraction) -> Fraction:
        steps = moves(self.monotone, self.neighbours) * self.lattice.l1_steps(distance)
        return steps * self.lattice.step / self.scale

    def _passed(self, steps: int, count: int) -> arb:
        """(n-1) q**steps/(1+q) at the working precision."""
        rate = self.lattice.step / self.scale
        return (-arb_of(rate * steps)).exp() * (count - 1) / (1 + (-arb_of(rate)).exp())

    def _steps(self, utilities: Utilities) -> NDArray[Any]:
        """Where each utility lies on the lattice: int64, or Python integers if that overflows."""
        if isinstance(utilities, list):
            if self.lattice.rounds or all(u.denominator == 1 for u in utilities):
                return _integers([round(utility / self.lattice.step) for utility in utilities])
        elif self.lattice.rounds:
            return _integers(self.lattice.rounded(utilities))
        elif utilities.dtype.kind in "iu":
            return _integers(utilities)
        raise WrongType(  # no grid was declared for them
            "utilities",
            problem="are not integers",
            remedy="pass integers, or construct the mechanism with {grid}",
            grid="auto",
        )


def _integers(numbers: NDArray[Any] | list[int]) -> NDArray[Any]:
    if max(-int(np.min(numbers)), int(np.max(numbers))) < _NARROW:
        return np.asarray(numbers).astype(np.int64)
    wide = np.empty(len(numbers), np.object_)
    wide[:] = [int(number) for number in numbers]
    return wide


@dataclass(frozen=True, slots=True, eq=False)
class NoisyArgmax:
    """The least position of the greatest sum of steps and noise.

    Sums are exact: int64 where neither part can overflow it, else Python integers. The random words
    depend on the number of candidates alone, and on the noise's own refinements (`Digits`).
    """

    steps: NDArray[Any]
    noise: Sampler

    def draw(self, bits: Bits, size: int) -> NDArray[np.int64]:
        """`size` independent positions, each with noise of its own."""
        count = self.steps.size
        if count > _BLOCK:
            return np.array([self._long(bits) for _ in range(size)], np.int64)
        out = np.empty(size, np.int64)
        rows = _BLOCK // count
        for start in range(0, size, rows):
            piece = out[start : start + rows]
            noise = self.noise.draw(bits, piece.size * count).reshape(piece.size, count)
            piece[:] = np.argmax(_sum(self.steps, noise), axis=1)
        return out

    def _long(self, bits: Bits) -> int:
        """One position among many candidates, block by block."""
        tops = []
        for start in range(0, self.steps.size, _BLOCK):
            steps = self.steps[start : start + _BLOCK]
            total = _sum(steps, self.noise.draw(bits, steps.size))
            here = int(np.argmax(total))
            tops.append((int(total[here]), -start - here))
        return -max(tops)[1]


def _sum(steps: NDArray[Any], noise: NDArray[Any]) -> NDArray[Any]:
    if steps.dtype == np.int64 and noise.dtype == np.int64 and int(noise.max()) < 2 * _NARROW:
        return steps + noise  # type: ignore[no-any-return]
    return steps.astype(np.object_) + noise.astype(np.object_)  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True, init=False)
class NoisyMaxLaw(Law):
    """The law of the least position of the greatest sum of integers and geometric noise.

    Law      P[X = i] = sum over g of P[G = g] * product over j < i of P[u_j + G < u_i + g]
             * product over j > i of P[u_j + G <= u_i + g], G geometric of the scale
    Theorem  with c_j = u_i - u_j, plus 1 for j > i, a factor is 1 - q**(g + c_j), or 0 where
             g + c_j < 1. All factors are above 0 from g0 = max(0, max(1 - c_j)) on; with
             p_j = q**(g0 + c_j) and x = q**(g - g0) the rest is q**g0 times the mean over a
             geometric G of product (1 - p_j x), a polynomial with coefficients a_k, and the
             mean of x**k is (1-q)/(1 - q**(k+1)). So P[X = i] = q**g0 sum a_k (1-q)/(1 - q**(k+1)):
             finite, no tail to bound. For large scales the mean of x**k tends to 1/(k+1), and the
             law to that of permute-and-flip. The a_k are below 2**n: n + 64 bits more make up for
             it
    Checked  tests/mechanisms/test_noisy_max.py

    >>> NoisyMaxLaw([0, 0], scale=1).probability(0)
    Ball(0.73105857863000487925 ± 1.16e-21)
    """

    utilities: tuple[int, ...]
    scale: Fraction

    def __init__(self, utilities: Sequence[int], *, scale: Number) -> None:
        numbers = tuple(whole(u, "utilities", least=-(1 << 4096)) for u in utilities)
        if not numbers:
            raise InvalidParameter("utilities", problem="are empty", remedy="pass at least one")
        set_fields(self, utilities=numbers, scale=positive(scale, "scale"))

    def mass(self, value: int) -> arb:
        if not 0 <= value < len(self.utilities):
            return arb(0)
        mine = self.utilities[value]
        leads = [mine - u + (j > value) for j, u in enumerate(self.utilities) if j != value]
        first = max([0, *(1 - lead for lead in leads)])
        with working_precision(ctx.prec + len(leads) + 64):
            coefficients = failures([self._power(first + lead) for lead in leads])
            terms = (a * self._mean(k) for k, a in enumerate(coefficients))
            return self._power(first) * sum(terms, arb(0))

    def cumulative(self, value: int) -> arb:
        if value >= len(self.utilities) - 1:
            return arb(1)
        return sum((self.mass(i) for i in range(value + 1)), arb(0))

    def exact_cumulative(self, value: int) -> Fraction | None:
        if value < 0:
            return Fraction(0)
        return Fraction(1) if value >= len(self.utilities) - 1 else None

    @property
    def support(self) -> tuple[int, int]:
        return 0, len(self.utilities) - 1

    def _mean(self, k: int) -> arb:
        """The mean of q**(k G): (1-q)/(1 - q**(k+1))."""
        if k == 0:
            return arb(1)
        return (-arb_of(1 / self.scale)).expm1() / (-arb_of((k + 1) / self.scale)).expm1()

    def _power(self, exponent: int) -> arb:
        return (-arb_of(exponent / self.scale)).exp()
