"""The rules of the error semantics: from judgements about the parts to one about the whole.

Every rule bounds three things for all inputs of a box. With a, b for real values and a', b' for
the machine's, e_a >= abs(a' - a), and r for the rounding of this very step:

| rule | distance of the results, before this step's own rounding | exact where |
|---|---|---|
| ADD, SUB | e_a + e_b | fixed point; below the least normal; Sterbenz |
| MUL | abs(b') e_a + abs(a) e_b, or with a', b in their place | a factor is a power of two |
| DIV | (e_a + abs(a/b) e_b) / abs(b') | the divisor is a power of two |
| LN | e / min(a, a') | |
| EXP | e exp(max(a, a')) | |
| SQRT | e / (√a + √a'), or √e | |
| NEG, ABS, SGN | e (SGN: 0 or the distance of the signs) | always |
| CLAMP | e | the ends are in the format |
| ROUND | e and up to one step more, 0 if e = 0 | the step is a power of two |

The machine's result is the nearest number of the format, and rounding is monotone: it lies between
the rounded ends. A library's ln or exp is believed to be within its declared number of ulps.

MEAN: all roundings of a computation carried to its result at once.

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
partly cancel: x - x/2 passes on half of what x is off. The equation is exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from lastbit.errors import NoBound
from lastbit.verify.error_bounds.derivation import Judgement
from lastbit.verify.error_bounds.formats import (
    Binary,
    Fixed,
    Format,
    Interval,
    added,
    divided,
    exp_interval,
    hull,
    is_power,
    largest_size,
    least_size,
    ln_interval,
    multiplied,
    negated,
    outward,
    sqrt_interval,
    squared,
    upward,
)
from lastbit.verify.language import expressions as ex
from lastbit.verify.language.expressions import Expression, Table


@dataclass(frozen=True, slots=True)
class Machine:
    """The format that code computes in, and how far its library functions may be off."""

    format: Format
    ulps: Mapping[str, Fraction]


ZERO = Fraction(0)


def input_step(interval: Interval, error: Fraction | None, machine: Machine) -> Judgement:
    """VAR and SAMPLE: a real of an interval, and a number of the format within `error` of it.

    An error of None stands for an input that is rounded to the nearest.
    """
    low, high = interval
    if error is None:
        computed = _rounded(interval, machine.format)
        return Judgement(interval, computed, machine.format.rounding_error(low, high))
    computed = (low - error, high + error)
    if largest_size(computed) > machine.format.largest:
        raise NoBound(f"an input may lie beyond the largest number of {machine.format.name}")
    return Judgement(interval, computed, error)


def step(
    node: Expression, below: list[Judgement], machine: Machine, *, square: bool = False
) -> tuple[Judgement, Fraction]:
    """The judgement of one step, and the bound on the rounding of this step alone."""
    format = machine.format
    match node:
        case ex.Constant():
            near = _rounded((node.value, node.value), format)
            error = abs(near[0] - node.value)
            return Judgement((node.value, node.value), near, error), error
        case ex.Add():
            return _sum(below[0], below[1], format)
        case ex.Subtract():
            return _sum(below[0], _negated(below[1]), format)
        case ex.Multiply():
            return _product(below[0], below[1], format, square=square)
        case ex.Divide():
            return _quotient(below[0], below[1], format)
        case ex.Ln() | ex.Exp() | ex.Sqrt():
            return _library(node, below[0], machine)
    (a,) = below
    match node:
        case ex.Negate():
            return _negated(a), ZERO
        case ex.Absolute():
            real, computed = ((least_size(x), largest_size(x)) for x in (a.real, a.computed))
            return Judgement(real, computed, a.error), ZERO
        case ex.Sign():
            real, computed = (
                (Fraction((low > 0) - (low < 0)), Fraction((high > 0) - (high < 0)))
                for low, high in (a.real, a.computed)
            )
            return Judgement(real, computed, _apart(real, computed) if a.error else ZERO), ZERO
        case ex.Clamp():
            return _clamped(node, a, format)
        case ex.RoundTo():
            return _grid(node.step, a, format)
    raise NoBound("a step has no rule")


def _negated(a: Judgement) -> Judgement:
    return Judgement(negated(a.real), negated(a.computed), a.error)


def _finished(
    real: Interval, exact: Interval, carried: Fraction, rounding: Fraction, format: Format
) -> tuple[Judgement, Fraction]:
    """A correctly rounded step: `exact` holds what it would be on the machine's operands."""
    computed = _rounded(exact, format)
    if rounding == 0 and isinstance(format, Binary):
        computed = exact  # its ends need not be in the format; the value is
    error = min(carried + rounding, _apart(real, computed))
    return Judgement(outward(real), computed, upward(error)), rounding


def _apart(real: Interval, computed: Interval) -> Fraction:
    return max(computed[1] - real[0], real[1] - computed[0])


def _rounded(exact: Interval, format: Format) -> Interval:
    return format.rounded(exact[0]), format.rounded(exact[1])


def _sum(a: Judgement, b: Judgement, format: Format) -> tuple[Judgement, Fraction]:
    exact = added(a.computed, b.computed)
    kept = _exact_sum(a.computed, b.computed, format)
    rounding = ZERO if kept else format.rounding_error(*exact)
    return _finished(added(a.real, b.real), exact, a.error + b.error, rounding, format)


def _exact_sum(x: Interval, y: Interval, format: Format) -> bool:
    """Whether x + y needs no rounding, for all numbers of the format in the two intervals."""
    if isinstance(format, Fixed) or (ZERO, ZERO) in (x, y):
        return True
    if largest_size(added(x, y)) <= 2 * format.least_normal:
        return True  # a multiple of the least number, and small
    if x[0] < 0:
        x, y = y, x
    if x[0] <= 0 or y[1] >= 0:
        return False
    # Sterbenz: u - v is exact if v/2 <= u <= 2v
    return -y[0] <= 2 * x[0] and x[1] <= -2 * y[1]


def _product(
    a: Judgement, b: Judgement, format: Format, *, square: bool
) -> tuple[Judgement, Fraction]:
    if square:
        real, exact = squared(a.real), squared(a.computed)
        carried = (largest_size(a.real) + largest_size(a.computed)) * a.error
    else:
        real, exact = multiplied(a.real, b.real), multiplied(a.computed, b.computed)
        carried = min(
            largest_size(b.computed) * a.error + largest_size(a.real) * b.error,
            largest_size(b.real) * a.error + largest_size(a.computed) * b.error,
        )
    rounding = _scaling_error(exact, (a.computed, b.computed), format)
    return _finished(real, exact, carried, rounding, format)


def _quotient(a: Judgement, b: Judgement, format: Format) -> tuple[Judgement, Fraction]:
    if least_size(b.real) == 0 or least_size(b.computed) == 0:
        raise NoBound("a divisor may be 0; narrow the ranges, or raise pieces=")
    real, exact = divided(a.real, b.real), divided(a.computed, b.computed)
    carried = (a.error + largest_size(real) * b.error) / least_size(b.computed)
    rounding = _scaling_error(exact, (divided(_ONE, b.computed),), format)
    return _finished(real, exact, carried, rounding, format)


def _scaling_error(exact: Interval, factors: tuple[Interval, ...], format: Format) -> Fraction:
    """The rounding of a product, none if a factor is a power of two and nothing is lost below."""
    for low, high in factors:
        if low != high or not is_power(abs(low)):
            continue
        if low == 0 or abs(low) >= 1:
            return ZERO
        if isinstance(format, Binary):
            return ZERO if least_size(exact) >= format.least_normal else format.least / 2
    return format.rounding_error(*exact)


def _library(
    node: ex.Ln | ex.Exp | ex.Sqrt, a: Judgement, machine: Machine
) -> tuple[Judgement, Fraction]:
    lowest = min(a.real[0], a.computed[0])
    match node:
        case ex.Ln():
            if lowest <= 0:
                raise NoBound("ln of a number that may not be above 0; narrow the ranges")
            real, exact, name = ln_interval(a.real), ln_interval(a.computed), "ln"
            carried = a.error / lowest
        case ex.Exp():
            if max(a.real[1], a.computed[1]) > 10**5:
                raise NoBound(f"exp may overflow {machine.format.name}; narrow the ranges")
            real, exact, name = exp_interval(a.real), exp_interval(a.computed), "exp"
            carried = a.error * max(real[1], exact[1])
        case ex.Sqrt():
            if lowest < 0:
                raise NoBound("sqrt of a number that may be below 0; narrow the ranges")
            real, exact, name = sqrt_interval(a.real), sqrt_interval(a.computed), "sqrt"
            carried = sqrt_interval((a.error, a.error))[1]
            if real[0] + exact[0] > 0:
                carried = min(carried, a.error / (real[0] + exact[0]))
    ulps = machine.ulps[name]
    if ulps == Fraction(1, 2):
        rounding = machine.format.rounding_error(*exact)
        return _finished(real, exact, carried, rounding, machine.format)
    return _approximate(real, exact, carried, ulps, machine.format)


def _approximate(
    real: Interval, exact: Interval, carried: Fraction, ulps: Fraction, format: Format
) -> tuple[Judgement, Fraction]:
    """A step whose result is within some ulps of the exact one.

    Theorem  computed >= y - ulps ulp(y) for some y >= low. Within a binade that grows with y, and
             from the start of a binade to that of the next while ulps <= 2**(significand - 2); so
             for low > 0 it is least at low or at the next power of two. For low <= 0 it is least at
             low: the numbers closer to 0 have no larger steps
    """
    rounding = ulps * format.ulp(Fraction(largest_size(exact)))
    low, high = _lowest(exact[0], ulps, format), -_lowest(-exact[1], ulps, format)
    computed = outward((low, high))
    if largest_size(computed) > format.largest:
        raise NoBound(f"the result may overflow {format.name}; narrow the ranges")
    error = min(carried + rounding, _apart(real, computed))
    return Judgement(real, computed, upward(error)), rounding


def _lowest(low: Fraction, ulps: Fraction, format: Format) -> Fraction:
    here = format.ulp(low)
    if low <= 0 or isinstance(format, Fixed):
        return low - ulps * here
    return min(low - ulps * here, here * (1 << format.significand) - 2 * ulps * here)


def _clamped(node: ex.Clamp, a: Judgement, format: Format) -> tuple[Judgement, Fraction]:
    """The middle one of three numbers: no farther off than the farthest of them."""
    real, computed, rounding = a.real, a.computed, ZERO
    for end, pick in ((node.low, max), (node.high, min)):
        if end is None:
            continue
        near = _rounded((end, end), format)[0]
        rounding = max(rounding, abs(near - end))
        real = (pick(real[0], end), pick(real[1], end))
        computed = (pick(computed[0], near), pick(computed[1], near))
    error = min(max(a.error, rounding), _apart(real, computed))
    return Judgement(real, computed, upward(error)), rounding


def _grid(grid: Fraction, a: Judgement, format: Format) -> tuple[Judgement, Fraction]:
    real, exact = (
        (round(x[0] / grid) * grid, round(x[1] / grid) * grid) for x in (a.real, a.computed)
    )
    carried = ZERO if a.error == 0 else (a.error // grid + 1) * grid
    kept = isinstance(format, Binary) and is_power(grid) and grid >= format.least
    rounding = ZERO if kept else format.rounding_error(*exact)
    computed = _rounded(exact, format)
    error = min(carried + rounding, _apart(real, computed))
    return Judgement(outward(real), computed, upward(error)), rounding


_ONE: Interval = (Fraction(1), Fraction(1))
_MINUS_ONE: Interval = (Fraction(-1), Fraction(-1))


def mean_error(
    steps: Table,
    root: int,
    judged: Mapping[int, Judgement],
    roundings: Mapping[int, Fraction | None],
) -> Fraction:
    """A bound on the error of a step from the roundings of all steps below it."""
    weights: dict[int, Interval] = {root: _ONE}
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
    below = [judged[place] for place in steps.below[index]]
    if not below:
        return ()
    a = below[0]
    both = hull(a.real, a.computed)
    match steps.expressions[index]:
        case ex.Add():
            return _ONE, _ONE
        case ex.Subtract():
            return _ONE, _MINUS_ONE
        case ex.Multiply():
            return below[1].computed, a.real
        case ex.Divide():
            divisor = below[1].computed
            return divided(_ONE, divisor), negated(divided(judged[index].real, divisor))
        case ex.Negate():
            return (_MINUS_ONE,)
        case ex.Ln():
            return (divided(_ONE, both),)
        case ex.Exp():
            return (exp_interval(both),)
        case ex.Sqrt():
            roots = added(sqrt_interval(a.real), sqrt_interval(a.computed))
            return (divided(_ONE, roots),) if roots[0] > 0 else None
        case ex.Absolute() if both[0] >= 0:
            return (_ONE,)
        case ex.Absolute():
            return (_MINUS_ONE,) if both[1] <= 0 else ((Fraction(-1), Fraction(1)),)
        case ex.Clamp():
            return ((Fraction(0), Fraction(1)),)
    return None
