"""Closeness of float code to its meaning, and the distance between the laws of the two."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias

from lastbit.errors import InvalidParameter, NoBound
from lastbit.exact import Number, rational, whole
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
from lastbit.verify.language.expressions import (
    Add,
    Constant,
    Divide,
    Expression,
    Multiply,
    Negate,
    Piecewise,
    Sample,
    Sign,
    Subtract,
    Table,
    Variable,
    names,
    table,
)
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
             from u to v the pieces follow one another, so the greatest k of a piece serves for all.
             *Signs and cases* turn at a number of one input, where the box is cut: a line crosses
             there once, and n moves by at most the jump J between the values of both sides (and of
             a sign 0) at the cut. So |n(u) - n(v)| <= k max|u_i - v_i| + J with the greatest k of
             both sides, and J, all jumps added up, is part of `error`. It is 0 for noise that
             passes through 0 there, as the paper's equation (6) does at u = 1/2
    Differs  from the paper: inputs are compared by their greatest distance, so that k is the sum of
             the slopes; an input with a range of one number has none. Rounding has no k
    Checked  tests/verify/test_closeness.py

    >>> found = closeness(lambda u, v: u * v, {"u": (0, 1), "v": (0, 1)})
    >>> found.lipschitz, found.error == 2.0**-54
    (Fraction(2, 1), True)
    """
    expression = trace(code) if callable(code) else code
    settings: dict[str, Any] = {"format": format, "ulps": ulps, "pieces": pieces}
    lipschitz, error, jumps = _close(expression, expression, ranges, settings)
    return Closeness(lipschitz=lipschitz, error=error + jumps)


def _close(
    meaning: Expression,
    code: Expression,
    ranges: Mapping[str, tuple[Number, Number]],
    settings: Mapping[str, Any],
) -> tuple[Fraction, Fraction, Fraction]:
    """k, the error of the code, and all jumps of what it means, within these ranges."""
    border = _border(meaning)
    if border is None:
        error = analyse(code, ranges, **settings)
        return _steepness(meaning, error.box, settings), error.error, ZERO
    name, at, sides, others = border
    if name not in ranges or rational(ranges[name][0], name) > rational(ranges[name][1], name):
        problem, remedy = "lacks an input, or has an empty one", f"pass (low, high) for {name}"
        raise InvalidParameter("ranges", problem=problem, remedy=remedy)
    low, high = (rational(end, name) for end in ranges[name])
    found = [
        _close(side, code, {**ranges, name: (max(low, first), min(high, last))}, settings)
        for side, first, last in zip(sides, (low, at), (at, high), strict=True)
        if max(low, first) < min(high, last) or max(low, first) == min(high, last) == low == high
    ]
    jump = sum((jumps for *_, jumps in found), ZERO)
    if low <= at <= high:
        there = {**ranges, name: (at, at)}
        used = [{key: there[key] for key in names(one)} for one in (*sides, *others)]
        values = [
            analyse(one, ends, **settings).conclusion.real
            for one, ends in zip((*sides, *others), used, strict=True)
        ]
        jump += max(end for _, end in values) - min(end for end, _ in values)
    return max(k for k, *_ in found), max(error for _, error, _ in found), jump


def _steepness(expression: Expression, box: Box, settings: Mapping[str, Any]) -> Fraction:
    """The greatest sum of slopes over a box."""
    steps, machine = table(expression), machine_of(settings["format"], settings["ulps"])
    varying = {name for name, low, high in box if low < high}

    def steepest(box: Box) -> Derivation:
        judged: dict[int, Judgement] = {}
        moves: dict[int, Fraction | None] = {}
        inside = {name: (low, high) for name, low, high in box}
        for index, node in enumerate(steps.expressions):
            if isinstance(node, Variable | Sample):
                real = inside[node.name]
                moves[index] = Fraction(node.name in varying)
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

    return split(steepest, box, most=settings["pieces"]).error


def _border(
    expression: Expression,
) -> tuple[str, Fraction, tuple[Expression, Expression], tuple[Expression, ...]] | None:
    """An input, where it turns a sign or a case, what the code means on both sides, and there."""
    steps = table(expression)
    for index, node in enumerate(steps.expressions):
        if isinstance(node, Piecewise):
            if node.condition.relation == "==":
                raise NoBound("a case of one number alone is no side; leave it out")
            then, otherwise = (_with(steps, index, side) for side in (0, 1))
            return node.condition.name, node.condition.bound, (then, otherwise), ()
        if isinstance(node, Sign):
            name, slope, constant = _line(steps, steps.below[index][0])
            if name is None or not slope:
                raise NoBound("a sign of something else than one input's distance from a number")
            below, zero, above = (_with(steps, index, Constant(s)) for s in (-1, 0, 1))
            sides = (below, above) if slope > 0 else (above, below)
            return name, -constant / slope, sides, (zero,)
    return None


def _with(steps: Table, at: int, by: Expression | int) -> Expression:
    """The whole with something else for a step: an expression, or one of its two cases."""
    made: list[Expression] = []
    for index, node in enumerate(steps.expressions):
        below = [made[place] for place in steps.below[index]]
        if index == at:
            made.append(below[by] if isinstance(by, int) else by)
            continue
        cases = isinstance(node, Piecewise)
        parts = ("then", "otherwise") if cases else ("left", "right")[: len(below)]
        parts = ("argument",) if len(below) == 1 else parts
        changed: Any = dict(zip(parts, below, strict=True))
        made.append(replace(node, **changed))
    return made[-1]


def _line(steps: Table, root: int) -> tuple[str | None, Fraction, Fraction]:
    """(x, s, c) if a step is s x + c for an input x; x is None where it is no such line."""
    name, slope, constant = None, Fraction(0), Fraction(0)
    stack = [(root, Fraction(1))]
    while stack:
        place, weight = stack.pop()
        node, below = steps.expressions[place], steps.below[place]
        match node:
            case Constant():
                constant += weight * node.value
            case Variable() | Sample() if name in (None, node.name):
                name, slope = node.name, slope + weight
            case Add() | Subtract():
                other = weight if isinstance(node, Add) else -weight
                stack += [(below[0], weight), (below[1], other)]
            case Negate():
                stack.append((below[0], -weight))
            case Multiply(left=Constant(value=factor)):
                stack.append((below[1], weight * factor))
            case Multiply(right=Constant(value=factor)):
                stack.append((below[0], weight * factor))
            case Divide(right=Constant(value=divisor)) if divisor:
                stack.append((below[0], weight / divisor))
            case _:
                return None, Fraction(0), Fraction(0)
    return name, slope, constant


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


def least_shift(states: int, draws: int) -> Fraction:
    """How far from independent uniforms the draws of a generator with so many states must be.

    Law      delta_0 of equation (1), in the maximum norm, rounded down
    Theorem  delta_0 >= 1/(2 states**(1/draws)): a generator that goes on from its state alone gives
             at most `states` sequences of draws, and all points of the unit cube but those of
             measure 0 must be within delta_0 of one: cubes of volume (2 delta_0)**draws cover it
    Source   paper 000, section 4.1: with N numbers there are N pairs
    Checked  tests/verify/test_within.py

    >>> least_shift(2**32, 1) == Fraction(1, 2**33), least_shift(2**32, 2) == Fraction(1, 2**17)
    (True, True)
    """
    count, several = whole(states, "states", least=1), whole(draws, "draws", least=1)
    scaled, low, high = count << (64 * several), 0, 1
    while high**several < scaled:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if middle**several >= scaled else (middle, high)
    return Fraction(1 << 64, 2 * high)


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
