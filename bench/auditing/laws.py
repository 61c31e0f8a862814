"""Exact losses of the benchmarks, for real noise: what auditors estimate from 10**8 runs.

Which queries lie above a noisy threshold has a closed law: given the threshold's noise the queries
are independent, and all that is to be integrated is made of exponentials. All losses here are of
one ordered pair: how much likelier some event is under the first input. Each is a true lower bound
on epsilon, attained by the event that its docstring names, or approached by such events.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import TypeAlias

from flint import arb

from lastbit.exact import Ball, arb_of, lower, working_precision

Terms: TypeAlias = dict[int, arb]
"""The function that is the sum of coefficient * exp(rate * unit * t), over all rates."""
_PRECISION = 256
_HALF = Fraction(1, 2)


@dataclass(frozen=True, slots=True)
class _Piece:
    """A function between two ends; None is infinity."""

    low: Fraction | None
    high: Fraction | None
    terms: Terms


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholded:
    """Which queries plus noise reach a threshold plus noise, both Laplace.

    Law      P[pattern] is the integral over t of f(t) times the product over the queries of
             P[query + noise >= threshold + t], or of 1 minus that, as the pattern says; f is the
             density of the threshold's noise. Between neighbouring points of 0 and query -
             threshold every factor is c exp(rt) or 1 - c exp(rt), so the integrand is a sum of
             exponentials with rational rates, and is integrated term by term in balls
    Differs  from the benchmarks, whose noise is in floats
    Checked  tests/audit/test_benchmark_laws.py

    `most` answers above end the run, None never does; a pattern holds 1 for above, 0 for below.

    >>> law = Thresholded(threshold=Fraction(0), threshold_scale=Fraction(1),
    ...     query_scale=Fraction(1), most=None).law([Fraction(0)])
    >>> law[1,].contains("0.5"), law[0,].contains("0.5")
    (True, True)
    """

    threshold: Fraction
    threshold_scale: Fraction
    query_scale: Fraction
    most: int | None

    def law(self, queries: Sequence[Fraction]) -> dict[tuple[int, ...], Ball]:
        """The probability of every pattern."""
        return _law(self, tuple(queries))

    @property
    def unit(self) -> Fraction:
        """All rates are whole multiples of this."""
        rates = 1 / self.threshold_scale, 1 / self.query_scale
        over = math.lcm(*(rate.denominator for rate in rates))
        return Fraction(math.gcd(*(int(rate * over) for rate in rates)), over)

    def _rate(self, scale: Fraction) -> int:
        return int(1 / scale / self.unit)

    def patterns(
        self, queries: tuple[Fraction, ...]
    ) -> Iterator[tuple[tuple[int, ...], list[_Piece]]]:
        """Each pattern, and the function of the threshold's noise whose integral is its chance."""
        return self._patterns(queries, (), self._start(queries))

    def _start(self, queries: Sequence[Fraction]) -> list[_Piece]:
        """The density of the threshold's noise, cut where anything changes its form."""
        cuts = sorted({Fraction(0), *(query - self.threshold for query in queries)})
        height = arb_of(1 / (2 * self.threshold_scale))
        rate = self._rate(self.threshold_scale)
        lows, highs = [None, *cuts], [*cuts, None]
        return [
            _Piece(low, high, {rate if high is not None and high <= 0 else -rate: height})
            for low, high in zip(lows, highs, strict=True)
        ]

    def _patterns(
        self, queries: Sequence[Fraction], before: tuple[int, ...], pieces: list[_Piece]
    ) -> Iterator[tuple[tuple[int, ...], list[_Piece]]]:
        if len(before) == len(queries) or sum(before) == self.most:
            yield before, pieces
            return
        query = queries[len(before)]
        below = [self._below(piece, query) for piece in pieces]
        for answer in (0, 1):
            chances = [_other(chance) for chance in below] if answer else below
            times = [
                _Piece(piece.low, piece.high, _product(piece.terms, chance))
                for piece, chance in zip(pieces, chances, strict=True)
            ]
            yield from self._patterns(queries, (*before, answer), times)

    def _below(self, piece: _Piece, query: Fraction) -> Terms:
        """The chance at each t that the noisy query is below: small where t is left of it."""
        move = (self.threshold - query) / self.query_scale
        left = piece.high is not None and piece.high <= query - self.threshold
        rate = self._rate(self.query_scale) * (1 if left else -1)
        tail = {rate: arb_of(_HALF) * arb_of(move if left else -move).exp()}
        return tail if left else _other(tail)


@cache  # the same inputs come in many pairs
def _law(vector: Thresholded, queries: tuple[Fraction, ...]) -> dict[tuple[int, ...], Ball]:
    with working_precision(_PRECISION):
        integrals = _Integrals(vector.unit)
        found = vector.patterns(queries)
        return {pattern: Ball(sum(map(integrals.of, pieces), arb(0))) for pattern, pieces in found}


def _other(chance: Terms) -> Terms:
    """One minus a chance."""
    found = {rate: -coefficient for rate, coefficient in chance.items()}
    found[0] = 1 + found.get(0, arb(0))
    return {rate: coefficient for rate, coefficient in found.items() if rate or coefficient > 0}


def _product(one: Terms, two: Terms) -> Terms:
    found: Terms = {}
    for first, a in one.items():
        for second, b in two.items():
            found[first + second] = found.get(first + second, arb(0)) + a * b
    return found


class _Integrals:
    """Integrals of pieces; those of single exponentials are worked out once."""

    def __init__(self, unit: Fraction) -> None:
        self._unit = unit
        self._known: dict[tuple[Fraction | None, Fraction | None, int], arb] = {}

    def of(self, piece: _Piece) -> arb:
        total = arb(0)
        for rate, coefficient in piece.terms.items():
            key = piece.low, piece.high, rate
            if key not in self._known:
                self._known[key] = self._exponential(*key)
            total += coefficient * self._known[key]
        return total

    def _exponential(self, low: Fraction | None, high: Fraction | None, rate: int) -> arb:
        """From one end to the other; at an infinite end it has vanished."""
        if rate == 0:
            assert low is not None and high is not None  # the density decays
            return arb_of(high - low)
        over = rate * self._unit
        top = arb(0) if high is None else arb_of(over * high).exp()
        bottom = arb(0) if low is None else arb_of(over * low).exp()
        return (top - bottom) / arb_of(over)


def pattern_loss(
    law: Thresholded,
    x: Sequence[Fraction],
    y: Sequence[Fraction],
    *,
    answer_scale: Fraction | None = None,
) -> float:
    """The greatest ln(P/Q) of a pattern; rounded down.

    With an `answer_scale` the queries above are published with fresh Laplace noise of that scale:
    answers all beyond x, as seen from y, add abs(x - y) / scale each.
    """
    one, two, best = law.law(x), law.law(y), 0.0
    for pattern, share in one.items():
        moves = sum(
            (abs(a - b) for a, b, above in zip(x, y, pattern, strict=False) if above), Fraction(0)
        )
        more = Ball.of(moves / answer_scale if answer_scale else 0)
        best = max(best, lower((share / two[pattern]).log() + more))
    return best


def low_tail_loss(
    x: Sequence[Fraction], y: Sequence[Fraction], *, scale: Fraction, least: int = 1
) -> Fraction:
    """Of noisy queries that are all below some number: the loss when that number is very low.

    Law      the greatest over k >= least of sum(y_i - x_i, i < k) / scale
    Theorem  below every query the chance of Laplace noise to keep it under t is proportional to
             exp((t - query) / scale), so the chance of all k under t, or of k - 1 under t and the
             kth published at t, is exp(-sum(query)/scale) times what no longer depends on them
    """
    moves = [b - a for a, b in zip(x, y, strict=True)]
    sums = [sum(moves[:k], Fraction(0)) for k in range(least, len(moves) + 1)]
    return max(Fraction(0), *sums) / scale
