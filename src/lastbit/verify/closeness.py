"""Closeness of float code to its meaning, and the distance between the laws of the two."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from lastbit.errors import InvalidParameter, NoBound
from lastbit.exact import Number, rational
from lastbit.verify.error_bounds.formats import BINARY64, Format
from lastbit.verify.error_bounds.rules import (
    ZERO,
    Box,
    Derivation,
    Judgement,
    mean_error,
    slopes_of,
    step,
)
from lastbit.verify.error_bounds.semantics import analyse, machine_of, split
from lastbit.verify.language.expressions import Expression, Piecewise, Sample, Variable, table
from lastbit.verify.tracing.trace import trace

FiniteLaw: TypeAlias = Mapping[Fraction, Fraction]
"""The probabilities of finitely many places on the line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Closeness:
    """Code n' is (k, delta)-close to its meaning n: |n(u) - n'(v)| <= k max|u_i - v_i| + delta.

    Law      `lipschitz` is k, `error` is delta; both rounded up
    Theorem  if n is k-Lipschitz and |n - n'| <= delta, then n and n' are (k, delta)-close (4.1):
             |n(u) - n'(v)| <= |n(u) - n(v)| + |n(v) - n'(v)|
    Source   paper 000, Definition 4.2, Theorem 4.1 and equation (3)
    Checked  tests/verify/test_closeness.py
    """

    lipschitz: Fraction
    error: Fraction

    def shift(self, draw_error: Number) -> Fraction:
        """delta_t = k delta_0 + delta: how far the result is off if each draw is off by delta_0.

        The box must hold the draws as well as the reals that they stand for.
        """
        return self.lipschitz * rational(draw_error, "draw_error") + self.error


def closeness(
    code: Callable[..., Any] | Expression,
    ranges: Mapping[str, tuple[Number, Number]],
    *,
    format: Format = BINARY64,
    ulps: Mapping[str, Number] | None = None,
    pieces: int = 64,
) -> Closeness:
    """How close code of one or several uniforms is to its meaning over a box of inputs.

    Theorem  over a convex box |n(u) - n(v)| is at most the sum over the inputs of the greatest
             slope, times the greatest distance of an input: the mean value theorem, with slopes
             enclosed by intervals on boxes that are halved where the sum is worst. Along a line
             from u to v the pieces follow one another, so the greatest k of a piece serves for all
    Differs  from the paper: inputs are compared by their greatest distance, so that k is the sum of
             the slopes; code with a jump (round, sign, cases) is refused, having no k
    Checked  tests/verify/test_closeness.py

    >>> found = closeness(lambda u, v: u * v, {"u": (0, 1), "v": (0, 1)})
    >>> found.lipschitz, found.error == 2.0**-54
    (Fraction(2, 1), True)
    """
    expression = trace(code) if callable(code) else code
    error = analyse(expression, ranges, format=format, ulps=ulps, pieces=pieces)
    steps, machine = table(expression), machine_of(format, ulps)

    def steepest(box: Box) -> Derivation:
        judged: dict[int, Judgement] = {}
        moves: dict[int, Fraction | None] = {}
        inside = {name: (low, high) for name, low, high in box}
        for index, node in enumerate(steps.expressions):
            if isinstance(node, Variable | Sample):
                real, moves[index] = inside[node.name], Fraction(1)
            elif isinstance(node, Piecewise):
                raise NoBound("code with cases may jump; pass the code of one case")
            else:
                places = steps.below[index]
                square = len(places) == 2 and places[0] == places[1]
                below = [judged[place] for place in places]
                real, moves[index] = step(node, below, machine, square=square)[0].real, ZERO
            judged[index] = Judgement(real, real, ZERO)
            if slopes_of(steps, index, judged) is None:
                raise NoBound("a step jumps or is too steep there; leave it out, or narrow the box")
        most = mean_error(steps, len(judged) - 1, judged, moves)
        root = judged[len(judged) - 1]
        return Derivation("LIPSCHITZ", expression, Judgement(root.real, root.real, most), (), box)

    found = split(steepest, error.box, most=pieces)
    return Closeness(lipschitz=found.error, error=error.error)


def apart(distance: Number, inputs_apart: Number, *, lipschitz: Number, error: Number) -> bool:
    """Whether two values of n are so far apart that no code is (k, delta)-close to it.

    Theorem  if |n(u) - n(v)| > k |u - v| + 2 delta, no n' is (k, delta)-close to n (4.2): n'(u) is
             within delta of n(u) and within k |u - v| + delta of n(v). For n with values on the
             line the converse holds as well: n'(v), half way between the greatest n(u) - k |u - v|
             and the least n(u) + k |u - v|, is close
    Source   paper 000, Theorem 4.2, which has no converse
    Checked  tests/verify/test_closeness.py

    No code is close to -ln u down to 0, whatever k and delta are:

    >>> apart(100, 1, lipschitz=50, error=10)
    True
    """
    wide, near = rational(distance, "distance"), rational(inputs_apart, "inputs_apart")
    k, delta = rational(lipschitz, "lipschitz"), rational(error, "error")
    if min(wide, near, k, delta) < 0:
        raise InvalidParameter("distance", problem="or another is below 0", remedy="pass distances")
    return wide > k * near + 2 * delta


def wasserstein(one: FiniteLaw, other: FiniteLaw) -> Fraction:
    """The infinity-Wasserstein distance of two laws on finitely many places of the line, exactly.

    Law      the least t such that some joint law of X and Y, with these marginals, never has
             |X - Y| > t
    Theorem  on the line the joint law that takes both quantiles of the same uniform is best, so
             the distance is the greatest of two quantiles at the same height. For if X < a has a
             probability below that of Y < b, a > b, every joint law has X >= a and Y < b somewhere
             (with distance at least a - b, X and Y being in the finite sets)
    Source   paper 000, Definition 4.4 (as printed, the inner infimum is of a probability, not of t)
    Checked  tests/verify/test_closeness.py, against all joint laws by Strassen's condition

    >>> coarse = {Fraction(k, 4): Fraction(1, 4) for k in range(4)}
    >>> fine = {Fraction(k, 8): Fraction(1, 8) for k in range(8)}
    >>> wasserstein(coarse, fine)
    Fraction(1, 8)
    """
    first, second = (sorted((x, p) for x, p in _checked(law).items() if p) for law in (one, other))
    worst, i, j = ZERO, 0, 0
    left, right = first[0][1], second[0][1]
    while True:
        worst = max(worst, abs(first[i][0] - second[j][0]))
        common = min(left, right)
        left, right = left - common, right - common
        i, j = i + (left == 0), j + (right == 0)
        if i == len(first) or j == len(second):
            return worst
        left, right = left or first[i][1], right or second[j][1]


def shifted_bounds(
    law: FiniteLaw, intervals: Iterable[tuple[Number, Number]], distance: Number
) -> tuple[Fraction, Fraction]:
    """Between what a set of closed intervals lies for every law within a distance of this one.

    Theorem  if W(mu, nu) <= t then nu(S shrunk by t) <= mu(S) <= nu(S grown by t), for every
             measurable S (4.4): a joint law never has its two places more than t apart, so X in S
             puts Y into S grown by t; and the same for the complement. Where nothing but W is
             known no better bounds hold for all S together (Strassen 1965)
    Source   paper 000, Theorem 4.4; its proof has nu(S) = mu(S grown) where <= is meant
    Checked  tests/verify/test_closeness.py

    S grown holds what is at most t away from a point of S; S shrunk, what is inside S with all that
    is at most t away.

    >>> law = {Fraction(k, 4): Fraction(1, 4) for k in range(4)}
    >>> shifted_bounds(law, [(0, "1/2")], "1/8")
    (Fraction(1, 4), Fraction(3, 4))
    """
    t = rational(distance, "distance")
    pairs = sorted(
        (rational(low, "interval"), rational(high, "interval")) for low, high in intervals
    )
    if t < 0 or any(low > high for low, high in pairs):
        raise InvalidParameter(
            "intervals", problem="or the distance is negative", remedy="pass (low, high)"
        )
    joined: list[tuple[Fraction, Fraction]] = []
    for low, high in pairs:  # intervals that touch leave no gap to shrink into
        if joined and low <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(high, joined[-1][1]))
        else:
            joined.append((low, high))
    least = most = ZERO
    for place, share in _checked(law).items():
        grown = any(low - t <= place <= high + t for low, high in joined)
        shrunk = any(low + t <= place <= high - t for low, high in joined)
        least, most = least + share * shrunk, most + share * grown
    return least, most


def _checked(law: FiniteLaw) -> dict[Fraction, Fraction]:
    exact = {rational(x, "law"): rational(p, "law") for x, p in law.items()}
    if any(p < 0 for p in exact.values()) or sum(exact.values()) != 1 or len(exact) != len(law):
        remedy = "pass a probability for each place, as fractions"
        raise InvalidParameter("law", problem="does not add up to 1", remedy=remedy)
    return exact


def inverse_laplace(value: float, u: float, *, scale: float, cell: float) -> float:
    """The Laplace noise of paper 000 by its formula, added and rounded to a cell, for pictures.

    Source   paper 000, Example 4.1: n(u) = -b sgn(u - 1/2) ln(1 - 2 |u - 1/2|)
    """
    noise = scale * math.log(2.0 * u) if u < 0.5 else -scale * math.log(2.0 - 2.0 * u)
    return cell * round((value + noise) / cell)
