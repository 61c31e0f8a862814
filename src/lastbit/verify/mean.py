"""MEAN: all roundings of a computation carried to its result at once.

Theorem  let each step's machine value be its operation on the machine's operands plus r_i. For
         every operation, op(a', b') - op(a, b) = s (a' - a) + t (b' - b) with slopes s, t from the
         table below, so the distance of the results is the sum of A_i r_i, where A_i = 1 for the
         result and A_j = sum of A_k s_kj over the steps k that use j. Hence it is at most the sum
         of max abs(A_i) times the bound on abs(r_i), with A_i enclosed by interval arithmetic.
Proof    unfold the equation from the result down; each slope is a number in its interval. Steps
         without slopes (jumps, a root at 0) count with their whole error, and nothing below them.

| step | slope in the first operand | in the second |
|---|---|---|
| a + b, a - b | 1 | 1, -1 |
| a b | b' | a |
| a / b | 1/b' | -(a/b)/b' |
| ln a, exp a | 1/x, exp x for some x between a and a' | |
| √a | 1/(√a + √a') | |
| abs a | 1, -1 or between | |
| clamp a | between 0 and 1 | |

Unlike the step-by-step rules it sees that errors of one value reach the result by several ways and
partly cancel: x - x/2 passes on half of what x is off, not one and a half times. It needs no second
derivative: the equation is exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from lastbit.verify.derivation import Judgement
from lastbit.verify.intervals import (
    Interval,
    added,
    divided,
    exp_interval,
    hull,
    largest_size,
    multiplied,
    negated,
    outward,
    sqrt_interval,
    upward,
)
from lastbit.verify.language import (
    Absolute,
    Add,
    Clamp,
    Divide,
    Exp,
    Ln,
    Multiply,
    Negate,
    Sqrt,
    Subtract,
    Table,
)

__all__ = ["mean_error"]

ONE: Interval = (Fraction(1), Fraction(1))
MINUS_ONE: Interval = (Fraction(-1), Fraction(-1))


def mean_error(
    steps: Table,
    root: int,
    judged: Mapping[int, Judgement],
    roundings: Mapping[int, Fraction | None],
) -> Fraction:
    """A bound on the error of a step from the roundings of all steps below it."""
    weights: dict[int, Interval] = {root: ONE}
    total = Fraction(0)
    for index in sorted(judged, reverse=True):
        weight = outward(weights.get(index, (Fraction(0), Fraction(0))))
        rounding = roundings[index]
        slopes = None if rounding is None else _slopes(steps, index, judged)
        if rounding is None or slopes is None:
            total += largest_size(weight) * judged[index].error
            continue
        total += largest_size(weight) * rounding
        for place, slope in zip(steps.below[index], slopes, strict=True):
            share = multiplied(weight, slope)
            weights[place] = added(weights[place], share) if place in weights else share
    return upward(total)


def _slopes(
    steps: Table, index: int, judged: Mapping[int, Judgement]
) -> tuple[Interval, ...] | None:
    node = steps.expressions[index]
    below = [judged[place] for place in steps.below[index]]
    if not below:
        return ()
    a = below[0]
    match node:
        case Add():
            return ONE, ONE
        case Subtract():
            return ONE, MINUS_ONE
        case Multiply():
            return below[1].computed, a.real
        case Divide():
            divisor = below[1].computed
            return divided(ONE, divisor), negated(divided(judged[index].real, divisor))
        case Negate():
            return (MINUS_ONE,)
        case Ln():
            return (divided(ONE, hull(a.real, a.computed)),)
        case Exp():
            return (exp_interval(hull(a.real, a.computed)),)
        case Sqrt():
            roots = added(sqrt_interval(a.real), sqrt_interval(a.computed))
            return (divided(ONE, roots),) if roots[0] > 0 else None
        case Absolute():
            return (_absolute_slope(hull(a.real, a.computed)),)
        case Clamp():
            return ((Fraction(0), Fraction(1)),)
    return None


def _absolute_slope(x: Interval) -> Interval:
    if x[0] >= 0:
        return ONE
    return MINUS_ONE if x[1] <= 0 else (Fraction(-1), Fraction(1))
