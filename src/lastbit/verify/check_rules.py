"""The checker's own rules: what a step's premises prove about the step.

For real values a, b, the machine's a', b', and errors e_a >= abs(a' - a), e_b alike, a rule gives
an interval for the real result, one for the machine's, and a bound on their distance: what the
operands' errors become, plus this step's rounding. Each rule is the line of algebra next to it.
Believed: + - * / are correctly rounded; ln, exp and sqrt are within the stated number of ulps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from lastbit.verify.arithmetic import Rejected, number, require
from lastbit.verify.check_formats import Interval, NumberFormat
from lastbit.verify.check_intervals import (
    ONE,
    ZERO,
    each,
    exp,
    hull_distance,
    inverse,
    ln,
    minus,
    power_of_two,
    size,
    sqrt,
    times,
)

__all__ = ["Proved", "derived", "slopes"]


@dataclass(frozen=True)
class Proved:
    """What holds of a step, and the bound on its own rounding."""

    real: Interval
    computed: Interval
    error: Fraction
    rounding: Fraction = Fraction(0)


def derived(  # one rule a case: long, but flat
    row: list[Any], below: list[Proved], form: NumberFormat, ulps: Mapping[str, Fraction]
) -> Proved:
    """What the premises prove of a step of the expression."""
    rule, a = row[0], below[0] if below else None
    if rule == "CONST":
        value = number(row[1])
        near = form.nearest(value)
        return Proved((value,) * 2, (near,) * 2, abs(near - value), abs(near - value))
    assert a is not None
    if rule in ("ADD", "SUB"):
        b = below[1]
        if rule == "SUB":
            b = Proved(minus(b.real), minus(b.computed), b.error)
        real = (a.real[0] + b.real[0], a.real[1] + b.real[1])
        exact = (a.computed[0] + b.computed[0], a.computed[1] + b.computed[1])
        lost = Fraction(0) if exact_sum(a.computed, b.computed, form) else form.half(exact)
        return rounded(real, exact, a.error + b.error, lost, form)
    if rule == "MUL":
        b = below[1]
        same = row[1] == row[2]
        real, exact = (
            each(lambda s: s * s, size(x)) if same else times(x, y)
            for x, y in ((a.real, b.real), (a.computed, b.computed))
        )
        # a'b' - ab = b'(a' - a) + a(b' - b) = b(a' - a) + a'(b' - b)
        carried = min(
            size(b.computed)[1] * a.error + size(a.real)[1] * b.error,
            size(b.real)[1] * a.error + size(a.computed)[1] * b.error,
        )
        return rounded(real, exact, carried, scaled(exact, (a.computed, b.computed), form), form)
    if rule == "DIV":
        b = below[1]
        turned = inverse(b.computed)
        real, exact = times(a.real, inverse(b.real)), times(a.computed, turned)
        # a'/b' - a/b = ((a' - a) - (a/b)(b' - b)) / b'
        carried = (a.error + size(real)[1] * b.error) / size(b.computed)[0]
        return rounded(real, exact, carried, scaled(exact, (turned,), form), form)
    if rule in ("LN", "EXP", "SQRT"):
        return library(rule, a, form, ulps)
    if rule == "NEG":
        return Proved(minus(a.real), minus(a.computed), a.error)
    if rule == "ABS":
        return Proved(size(a.real), size(a.computed), a.error)
    if rule == "SGN":
        real, exact = (each(lambda e: (e > 0) - (e < 0), x) for x in (a.real, a.computed))
        return Proved(real, exact, hull_distance(real, exact) if a.error else Fraction(0))
    if rule == "CLAMP":
        return clamped(row[2:], a, form)
    if rule == "ROUND":
        return gridded(number(row[2]), a, form)
    raise Rejected("a rule is unknown")


def rounded(
    real: Interval, exact: Interval, carried: Fraction, lost: Fraction, form: NumberFormat
) -> Proved:
    """A step that is exact on the machine's operands, then rounded to the nearest."""
    near = (form.nearest(exact[0]), form.nearest(exact[1]))
    computed = exact if lost == 0 and not form.fixed else near
    return Proved(real, computed, min(carried + lost, hull_distance(real, computed)), lost)


def exact_sum(x: Interval, y: Interval, form: NumberFormat) -> bool:
    """Whether a sum needs no rounding: multiples of the least number, or Sterbenz's lemma."""
    if form.fixed or ZERO in (x, y):
        return True
    if size((x[0] + y[0], x[1] + y[1]))[1] <= 2 * form.least_normal:
        return True
    up, down = (x, y) if x[0] >= 0 else (y, x)
    return up[0] > 0 > down[1] and -down[0] <= 2 * up[0] and up[1] <= -2 * down[1]


def scaled(exact: Interval, factors: tuple[Interval, ...], form: NumberFormat) -> Fraction:
    """The rounding of a product; a power of two only moves the point."""
    for factor in factors:
        if factor == ZERO or (power_of_two(factor) and size(factor)[0] >= 1):
            return Fraction(0)
        if power_of_two(factor) and not form.fixed:
            return Fraction(0) if size(exact)[0] >= form.least_normal else form.least / 2
    return form.half(exact)


def library(rule: str, a: Proved, form: NumberFormat, ulps: Mapping[str, Fraction]) -> Proved:
    """ln, exp, sqrt: what the argument's error becomes, and the function's own error in ulps."""
    function = {"LN": ln, "EXP": exp, "SQRT": sqrt}[rule]
    real, exact = function(a.real), function(a.computed)
    if rule == "LN":  # abs(ln a' - ln a) <= abs(a' - a) / min(a, a')
        carried = a.error / min(a.real[0], a.computed[0])
    elif rule == "EXP":  # abs(exp a' - exp a) <= abs(a' - a) exp(max(a, a'))
        carried = a.error * max(real[1], exact[1])
    else:  # abs(√a' - √a) = abs(a' - a) / (√a + √a'), and at most √abs(a' - a)
        carried = sqrt((a.error, a.error))[1]
        if real[0] + exact[0] > 0:
            carried = min(carried, a.error / (real[0] + exact[0]))
    units = ulps[rule.lower()]
    if units == Fraction(1, 2):
        return rounded(real, exact, carried, form.half(exact), form)
    lost = units * form.step(size(exact)[1])
    low, high = lowest(exact[0], units, form), -lowest(-exact[1], units, form)
    require(size((low, high))[1] <= form.largest, "a step may overflow")
    return Proved(real, (low, high), min(carried + lost, hull_distance(real, (low, high))), lost)


def lowest(low: Fraction, units: Fraction, form: NumberFormat) -> Fraction:
    """The least y - units step(y) over y >= low: at low, or at the next power of two above 0."""
    step = form.step(low)
    if low <= 0 or form.fixed:
        return low - units * step
    return min(low - units * step, step * (1 << form.bits) - 2 * units * step)


def clamped(ends: list[Any], a: Proved, form: NumberFormat) -> Proved:
    """The middle one of three numbers is no farther off than the farthest of them."""
    real, computed, lost = a.real, a.computed, Fraction(0)
    for text, pick in zip(ends, (max, min), strict=True):
        if text is not None:
            end = number(text)
            near = form.nearest(end)
            lost = max(lost, abs(near - end))
            real = (pick(real[0], end), pick(real[1], end))
            computed = (pick(computed[0], near), pick(computed[1], near))
    return Proved(real, computed, min(max(a.error, lost), hull_distance(real, computed)), lost)


def gridded(grid: Fraction, a: Proved, form: NumberFormat) -> Proved:
    """The nearest multiples of two numbers e apart are at most e and one more step apart."""
    require(grid > 0, "a grid has no step")
    real, exact = (each(lambda e: round(e / grid) * grid, x) for x in (a.real, a.computed))
    carried = (a.error // grid + 1) * grid if a.error else Fraction(0)
    kept = not form.fixed and power_of_two((grid, grid)) and grid >= form.least
    lost = Fraction(0) if kept else form.half(exact)
    computed = (form.nearest(exact[0]), form.nearest(exact[1]))
    return Proved(real, computed, min(carried + lost, hull_distance(real, computed)), lost)


def slopes(row: list[Any], below: list[Proved], own: Proved) -> list[Interval] | None:
    """op(a', b') - op(a, b) = s (a' - a) + t (b' - b): intervals for s and t; None if it jumps."""
    rule = row[0]
    if rule in ("ADD", "SUB"):
        return [ONE, ONE if rule == "ADD" else minus(ONE)]
    if rule == "MUL":
        return [below[1].computed, below[0].real]
    if rule == "DIV":
        turned = inverse(below[1].computed)
        return [turned, minus(times(own.real, turned))]
    if rule in ("CONST", "VAR", "SAMPLE"):
        return []
    if rule in ("SGN", "ROUND", "CASES"):
        return None
    a = below[0]
    both = (min(a.real[0], a.computed[0]), max(a.real[1], a.computed[1]))
    if rule == "NEG" or (rule == "ABS" and both[1] <= 0 and both[0] < 0):
        return [minus(ONE)]
    if rule == "ABS":
        return [ONE if both[0] >= 0 else (-ONE[1], ONE[1])]
    if rule == "CLAMP":
        return [(Fraction(0), Fraction(1))]
    if rule == "LN":
        return [inverse(both)]
    if rule == "EXP":
        return [exp(both)]
    if rule == "SQRT":
        low, high = (x + y for x, y in zip(sqrt(a.real), sqrt(a.computed), strict=True))
        return [(1 / high, 1 / low)] if low > 0 else None
    raise Rejected("a rule is unknown")
