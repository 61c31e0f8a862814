"""Above threshold: the sparse vector technique."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor
from typing import Any, NoReturn

import numpy as np
from flint import arb, fmpz
from numpy.typing import NDArray

from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import (
    DEFAULT_PRECISION,
    Ball,
    Number,
    nonnegative,
    positive,
    rational,
    upper,
    whole,
    working_precision,
)
from lastbit.laws import DiscreteLaplace
from lastbit.mechanisms.exponential import moves
from lastbit.mechanisms.lattice import INTEGERS, Lattice, lattice, numbers_of
from lastbit.mechanisms.mechanism import Pure, level, set_fields
from lastbit.privacy import AS_DECLARED, Neighbours, PureDP
from lastbit.sampling import drawn, laplace_sampler

_LONGEST_LAW = 12
_MOST_TERMS = 1 << 20
_SPLITS = 16


@dataclass(frozen=True, slots=True, init=False)
class AboveThreshold(Pure):
    """Tells which of many queries lie above a threshold, and stops after `count` that do.

    Law      R and N_1, N_2, ... are independent discrete Laplace, of threshold_scale a and
             query_scale b. Answer i is True iff v_i + N_i >= threshold + R: the same R for all
             queries, a new N_i for each. After `count` times True there are no more answers
    Theorem  let the queries of neighbours x, y lie at most d apart: |v_i - w_i| <= d. Then every
             sequence of answers costs at most epsilon = d/a + 2 count d/b.
             Fix the answers, T of them True (T <= count), and write t for the threshold.
             P_x = sum over r of P[R = r] f(r), f(r) the product of P[v_i + N < t + r] over the
             False and of P[v_i + N >= t + r] over the True answers, since given r they are
             independent; each v_i may depend on the answers before it. Compare r in x with r + d
             in y: P[R = r] <= exp(d/a) P[R = r + d]. False: v_i + N < t + r implies
             w_i + N < t + r + d, so the factor does not fall: these answers are free. True:
             P[N >= t + r - v_i] <= exp(2d/b) P[N >= t + r - v_i + 2d], which is not above
             exp(2d/b) P[N >= t + r + d - w_i]. Multiply, and sum over r: r -> r + d is one to one.
             Monotone (all queries move the same way, as counts do if a person is added):
             epsilon = d/a + count d/b. If v_i <= w_i, compare r with r + d as before; for True
             P[N >= t + r - v_i] <= exp(d/b) P[N >= t + r + d - v_i], and w_i >= v_i. If
             v_i >= w_i, compare r with r: a False factor does not fall, a True one by exp(d/b)
    Source   Lyu, Su, Li 2017 (Algorithm 1, monotone queries, the split); Dwork, Roth 2014 §3.6
    Differs  discrete noise, so that the proof's shifts are exact (d is a whole number of steps);
             the noisy value itself is never shown: that would cost more (a test shows it). For an
             epsilon, d/a : (the rest) = 1 : (2 count)**(2/3), the split of least variance
    Checked  tests/mechanisms/test_above_threshold.py; proof: docs/theory/above-threshold.md

    >>> alarm = AboveThreshold(threshold=100, epsilon=1, monotone=True)
    >>> alarm.guarantee, alarm.threshold_scale, alarm.query_scale
    (PureDP(epsilon=1), Fraction(2, 1), Fraction(2, 1))
    >>> alarm.release([3, 250, 4, 5])
    [False, True]
    >>> print(alarm.accuracy(beta="0.05", queries=1000))
    28
    """

    threshold: Fraction
    sensitivity: Fraction
    threshold_scale: Fraction
    query_scale: Fraction
    count: int
    monotone: bool
    lattice: Lattice
    neighbours: Neighbours

    def __init__(
        self,
        *,
        threshold: Number,
        sensitivity: Number = 1,
        epsilon: Number | None = None,
        threshold_scale: Number | None = None,
        query_scale: Number | None = None,
        count: int = 1,
        monotone: bool = False,
        grid: Number | None = None,
        neighbours: Neighbours = AS_DECLARED,
    ) -> None:
        distance = positive(sensitivity, "sensitivity")
        most = whole(count, "count", least=1)
        shifts = moves(monotone, neighbours) * most
        raw = (threshold_scale is not None, query_scale is not None)
        if raw != ((False, False) if epsilon is not None else (True, True)):
            raise InvalidParameter(
                "epsilon",
                problem="or threshold_scale and query_scale, not all of them, are needed",
                remedy="pass epsilon, or the two scales",
            )
        if epsilon is None:
            bar = positive(threshold_scale, "threshold_scale")
            noise = positive(query_scale, "query_scale")
            grounds = lattice(grid, noise=min(bar, noise), dimension=1)
        else:
            loss = positive(epsilon, "epsilon")
            # shifts**(2/3), rounded down to thousandths; any split of epsilon is sound
            power = Fraction(int(fmpz(shifts * shifts * 10**9).root(3)), 1000)
            first = loss / (1 + power)
            grounds = lattice(grid, noise=distance / loss, dimension=1)
            moved = grounds.l1_steps(distance) * grounds.step
            bar, noise = moved / first, shifts * moved / (loss - first)
        set_fields(self, threshold=rational(threshold, "threshold"), sensitivity=distance)
        set_fields(self, threshold_scale=bar, query_scale=noise, count=most, monotone=monotone)
        set_fields(self, lattice=grounds, neighbours=neighbours)

    def _loss(self, distance: Fraction) -> Fraction:
        moved = self.lattice.l1_steps(distance) * self.lattice.step
        shifts = moves(self.monotone, self.neighbours) * self.count
        return moved / self.threshold_scale + shifts * moved / self.query_scale

    def start(self) -> AboveThresholdSession:
        """A session in which queries come one by one, each perhaps because of the answers."""
        return AboveThresholdSession(self)

    def release(self, values: Any) -> list[bool]:
        """The answers, up to and including the last True that is allowed.

        The noise of all values is drawn at once, so that the work does not tell where it stopped.
        """
        steps = self._steps(values)
        threshold_noise, query_noise = map(laplace_sampler, self._scales())
        bar = self._bar() + int(drawn(threshold_noise, None))
        noisy = INTEGERS.noised(steps, query_noise)
        above = np.asarray(noisy >= bar, np.bool_)
        last = np.flatnonzero(above)[self.count - 1 : self.count].tolist()
        answers: list[bool] = above.tolist()
        return answers[: last[0] + 1] if last else answers

    def law(
        self, values: Any, *, precision: int = DEFAULT_PRECISION
    ) -> dict[tuple[bool, ...], Ball]:
        """The exact probability of every sequence of answers to at most 12 values.

        Theorem  the sum of the proof above over abs(r) <= m, and then between 0 and P[abs(R) > m]
                 more; m is such that this is below 2**-precision
        """
        precision = whole(precision, "precision", least=2)
        steps = self._steps(values).tolist()
        if len(steps) > _LONGEST_LAW:
            raise InvalidParameter(
                "values", problem="has too many answers", remedy=f"pass at most {_LONGEST_LAW}"
            )
        threshold_noise, query_noise = map(DiscreteLaplace, self._scales())
        reach = threshold_noise.quantile(1 - Fraction(1, 1 << (precision + 1)))
        if reach > _MOST_TERMS:
            raise InvalidParameter(
                "threshold_scale", problem="has too many values", remedy="pass a smaller one"
            )
        with working_precision(precision):
            below = lru_cache(maxsize=None)(query_noise.cumulative)
            laws: dict[tuple[bool, ...], arb] = {}
            for r in range(-reach, reach + 1):
                gaps = [self._bar() + r - step for step in steps]
                # P[N < gap], and P[N >= gap] by symmetry without cancellation
                chances = [(below(gap - 1), below(-gap)) for gap in gaps]
                for answers, chance in _answers(chances, self.count, threshold_noise.mass(r)):
                    laws[answers] = laws.get(answers, arb(0)) + chance
            rest = (2 * threshold_noise.cumulative(-reach - 1)).union(arb(0))
            return {answers: Ball(chance + rest) for answers, chance in laws.items()}

    def accuracy(self, beta: Number, *, queries: int) -> Fraction:
        """An a such that with probability 1 - beta all answers to `queries` queries are a-right.

        Theorem  True then means a value >= threshold - a, and False one <= threshold + a: if
                 abs(R) <= m and every abs(N_i) <= n then abs(R - N_i) <= m + n = a steps. By the
                 union bound it suffices that P[abs(R) > m] <= s beta and queries P[abs(N) > n] <=
                 (1-s) beta; the best of 15 shares s is taken. Rounding to the grid adds half a step
        Source   Dwork, Roth 2014 Theorem 3.24, there with continuous noise and s = 1/2
        """
        chance = level(beta, "beta")
        number = whole(queries, "queries", least=1)
        bar, noise = map(DiscreteLaplace, self._scales())
        shares = [chance * Fraction(i, _SPLITS) for i in range(1, _SPLITS)]
        # P[abs(X) > k] <= s iff P[X <= k] >= 1 - s/2, by symmetry
        steps = min(
            bar.quantile(1 - share / 2) + noise.quantile(1 - (chance - share) / (2 * number))
            for share in shares
        )
        return steps * self.lattice.step + self.lattice.half_step

    def beta(self, error: Number, *, queries: int) -> float:
        """P[one of `queries` answers is wrong by more than the error], rounded up.

        Theorem  as for `accuracy`: P[abs(R) > m] + queries P[abs(N) > n] for the best m + n = error
        """
        number = whole(queries, "queries", least=1)
        far = nonnegative(error, "error") - self.lattice.half_step
        steps = floor(far / self.lattice.step)
        if steps < 0:
            return 1.0
        bar, noise = map(DiscreteLaplace, self._scales())

        def chance(m: int) -> float:
            return upper((1 - bar.cdf(m)) * 2 + (1 - noise.cdf(steps - m)) * (2 * number))

        low, high = 0, steps  # the sum is convex in m; any m gives a true bound
        while high - low > 2:
            third = (high - low) // 3
            if chance(low + third) <= chance(high - third):
                high -= third
            else:
                low += third
        return min(1.0, *(chance(m) for m in range(low, high + 1)))

    # -- in steps of the lattice --
    def _scales(self) -> tuple[Fraction, Fraction]:
        return self.threshold_scale / self.lattice.step, self.query_scale / self.lattice.step

    def _bar(self) -> int:
        """The threshold: v >= t iff v >= ceil(t), on the lattice."""
        return ceil(self.threshold / self.lattice.step)

    def _steps(self, values: Any) -> NDArray[Any]:
        remedy = "pass a list"
        if isinstance(values, np.ma.MaskedArray):
            raise WrongType("values", problem="is masked", remedy="pass what is not masked")
        if isinstance(values, Mapping | Set):
            raise WrongType("values", problem="has no order", remedy=remedy)
        if isinstance(values, str | bytes) or not isinstance(values, Iterable):
            raise WrongType("values", problem="is not a list of numbers", remedy=remedy)
        if isinstance(values, np.ndarray):
            if values.ndim != 1:
                raise WrongType("values", problem="is not one-dimensional", remedy=remedy)
            if values.dtype.kind in "iu" and not self.lattice.rounds:
                return np.asarray(values)
        return numbers_of([self.lattice.steps_of(value) for value in values])


class AboveThresholdSession:
    """One run of `AboveThreshold`: the threshold's noise is drawn once, at the start.

    A session can neither be copied nor carried to another process, where the same noise would
    answer for more than was paid for. Threads wait for each other; a signal handler that asks
    while an answer is being computed is refused.

    >>> session = AboveThreshold(threshold=1000, epsilon=1).start()
    >>> session.ask(0), session.ask(10**6), session.finished
    (False, True, True)
    >>> session.ask(5)
    Traceback (most recent call last):
        ...
    lastbit.errors.InvalidParameter: value comes after the last answer; start a new session ...
    """

    __slots__ = ("_asking", "_bar", "_left", "_lock", "_mechanism", "_process", "_sampler")

    def __init__(self, mechanism: AboveThreshold) -> None:
        threshold_noise, self._sampler = map(laplace_sampler, mechanism._scales())
        self._mechanism = mechanism
        self._bar = mechanism._bar() + int(drawn(threshold_noise, None))
        self._left = mechanism.count
        self._asking = False
        self._lock = threading.RLock()
        self._process = os.getpid()

    @property
    def guarantee(self) -> PureDP:
        """What all answers of the session together promise; it is spent at the start."""
        return self._mechanism.guarantee

    @property
    def finished(self) -> bool:
        """Whether no more answers will be given."""
        return not self._left

    def ask(self, value: Any) -> bool:
        """Whether the value, with noise, reaches the noisy threshold."""
        step = self._mechanism.lattice.steps_of(value)
        if os.getpid() != self._process:
            raise InvalidParameter(
                "session", problem="belongs to another process", remedy="start one here and pay"
            )
        with self._lock:
            if self._asking:  # the same thread during an answer: only a signal handler does that
                raise InvalidParameter(
                    "session",
                    problem="is being asked already, by what this interrupts",
                    remedy="ask when that answer is there",
                )
            try:
                self._asking = True
                if not self._left:
                    remedy = "start a new session and pay again"
                    raise InvalidParameter(
                        "value", problem="comes after the last answer", remedy=remedy
                    )
                above = step + int(drawn(self._sampler, None)) >= self._bar
                self._left -= above
                return above
            finally:
                self._asking = False

    def __reduce__(self) -> NoReturn:
        raise WrongType(
            "session", problem="cannot be copied", remedy="start a new session and pay again"
        )


def _answers(
    chances: list[tuple[arb, arb]], count: int, start: arb
) -> list[tuple[tuple[bool, ...], arb]]:
    """Every sequence of answers with its probability, given those of False and True."""
    done: list[tuple[tuple[bool, ...], arb]] = []
    open_ones: list[tuple[tuple[bool, ...], arb]] = [((), start)]
    for below, above in chances:
        longer = []
        for answers, chance in open_ones:
            longer.append(((*answers, False), chance * below))
            more = ((*answers, True), chance * above)
            (done if sum(answers) + 1 == count else longer).append(more)
        open_ones = longer
    return done + open_ones
