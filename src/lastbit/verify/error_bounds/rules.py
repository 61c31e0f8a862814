"""The rules of the error semantics, and derivations: trees of rules that end in a judgement.

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
| COS, SIN | e | |
| NEG, ABS, SGN | e (SGN: 0 or the distance of the signs) | always |
| CLAMP | e | the ends are in the format |
| ROUND | e and up to one step more, 0 if e = 0 | the step is a power of two |

The machine's result is the nearest number of the format, and rounding is monotone: it lies between
the rounded ends. A library's ln or exp is believed to be within its declared number of ulps.

MEAN: all roundings of a computation carried to its result at once.

Theorem  let each step's machine value be its operation on the machine's operands plus r_i. For
         every operation, op(a', b') - op(a, b) = s (a' - a) + t (b' - b) with slopes s, t, so the
         distance of the results is the sum of A_i r_i, where A_i = 1 for the result and A_j = sum
         of A_k s_kj over the steps k that use j. Hence it is at most the sum of max abs(A_i) times
         the bound on abs(r_i), with A_i enclosed by interval arithmetic.
Proof    unfold the equation from the result down; each slope is a number in its interval. Steps
         without slopes (jumps, a root at 0) count with their whole error, and nothing below them.

Unlike the step-by-step rules it sees that errors of one value reach the result by several ways and
partly cancel: x - x/2 passes on half of what x is off. The slopes are those of `slopes_of`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from lastbit.errors import InvalidParameter, NoBound
from lastbit.exact import rounded_down, rounded_up
from lastbit.verify.certificate import number, written
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
from lastbit.verify.language.expressions import (
    Expression,
    Table,
    expression_from_json,
    in_order,
    latex,
    power_of_ten,
    table,
    text,
)

Box = tuple[tuple[str, Fraction, Fraction], ...]
"""The range of every input, sorted by name."""

_DIGITS = 7


@dataclass(frozen=True, slots=True)
class Judgement:
    """e_R ⇓ e_F: for all inputs of a box, where both values lie and how far they are apart.

    Law      real value in `real`, machine value in `computed`, their distance at most `error`
    """

    real: Interval
    computed: Interval
    error: Fraction

    def __str__(self) -> str:
        bounds = f"real {_bracketed(self.real)}, computed {_bracketed(self.computed)}"
        return f"{bounds}, error ≤ {rounded_up(self.error, _DIGITS)}"


_Judged: TypeAlias = tuple[Judgement, Fraction]


@dataclass(frozen=True, slots=True)
class Derivation:
    """A judgement about an expression over a box, the rule that gives it, and from what.

    `rule` is that of the expression's last step (CONST, VAR, SAMPLE, ADD, SUB, MUL, DIV, NEG, LN,
    EXP, SQRT, COS, SIN, ABS, SGN, CLAMP, ROUND, CASES), or MEAN (all rounding errors carried to the
    result at once), or SPLIT (the box in two).
    """

    rule: str
    expression: Expression
    conclusion: Judgement
    premises: tuple[Derivation, ...]
    box: Box

    @property
    def error(self) -> Fraction:
        return self.conclusion.error

    def tree(self, *, deepest: int = 1000) -> str:
        lines: list[str] = []
        stack: list[tuple[Derivation, int]] = [(self, 0)]
        while stack:
            node, depth = stack.pop()
            line = f"{'  ' * depth}{node.rule:6} {text(node.expression)} ⇓ {node.conclusion}"
            if depth == 0 or node.rule == "SPLIT":
                ranges = (f"{name} ∈ {_bracketed((low, high))}" for name, low, high in node.box)
                line += f"  over {', '.join(ranges)}"
            lines.append(line)
            if depth < deepest:
                stack.extend((premise, depth + 1) for premise in reversed(node.shown_premises))
        return "\n".join(lines)

    text = tree

    def latex(self) -> str:
        r"""The tree as nested \dfrac inference rules, for any LaTeX with amsmath."""
        above = r" \qquad ".join(premise.latex() for premise in self.shown_premises)
        low, high = self.conclusion.computed
        ends = (rounded_down(low, _DIGITS), rounded_up(high, _DIGITS))
        interval = f"[{', '.join(map(power_of_ten, ends))}]"
        error = power_of_ten(rounded_up(self.conclusion.error, _DIGITS))
        own = f"{latex(self.expression)} \\Downarrow {interval},\\ {error}"
        name = rf"\ \textsc{{{self.rule.lower()}}}"
        return rf"\dfrac{{{above}}}{{{own}}}{name}" if above else f"{own}{name}"

    @property
    def shown_premises(self) -> tuple[Derivation, ...]:
        """The premises to print: MEAN uses every step, the last of which holds the others."""
        return self.premises[-1:] if self.rule == "MEAN" else self.premises


def steps_to_json(derivation: Derivation) -> dict[str, Any]:
    """The steps in order, each after its premises; expressions and boxes by number.

    An expression's number is its place in `expression_to_json` of the whole.
    """
    parts = table(derivation.expression).expressions
    numbers = {id(part): place for place, part in enumerate(parts)}
    boxes: dict[Box, int] = {}
    steps = [
        {
            "rule": node.rule,
            "expression": numbers[id(node.expression)],
            "box": boxes.setdefault(node.box, len(boxes)),
            "premises": list(places),
            "real": [*map(written, node.conclusion.real)],
            "computed": [*map(written, node.conclusion.computed)],
            "error": written(node.conclusion.error),
        }
        for node, places in in_order(derivation, lambda one: one.premises, id)
    ]
    return {
        "boxes": [
            {name: [written(low), written(high)] for name, low, high in box} for box in boxes
        ],
        "steps": steps,
    }


def derivation_from_json(
    expression: Sequence[Sequence[Any]], body: Mapping[str, Any]
) -> Derivation:
    """The derivation that `steps_to_json` wrote; nothing in it is checked."""
    try:
        parts = table(expression_from_json(expression)).expressions
        boxes = [
            tuple((name, number(low), number(high)) for name, (low, high) in sorted(box.items()))
            for box in body["boxes"]
        ]
        built: list[Derivation] = []
        for step in body["steps"]:
            low, high = (number(end) for end in step["real"])
            least, greatest = (number(end) for end in step["computed"])
            judgement = Judgement((low, high), (least, greatest), number(step["error"]))
            premises = tuple(built[place] for place in step["premises"])
            place, box = parts[step["expression"]], boxes[step["box"]]
            built.append(Derivation(step["rule"], place, judgement, premises, box))
        return built[-1]
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        problem, remedy = "is not written as a derivation", "write it again"
        raise InvalidParameter("body", problem=problem, remedy=remedy) from error


def _bracketed(x: Interval) -> str:
    return f"[{rounded_down(x[0], _DIGITS)}, {rounded_up(x[1], _DIGITS)}]"


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
) -> _Judged:
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
        case ex.Cos() | ex.Sin():
            return _turned(node, below[0], machine)
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
) -> _Judged:
    """A correctly rounded step: `exact` holds what it would be on the machine's operands."""
    computed = _rounded(exact, format)
    if rounding == 0 and isinstance(format, Binary):
        computed = exact  # its ends need not be in the format; the value is
    error = min(carried + rounding, _apart(real, computed))  # of the range before it is widened
    return Judgement(outward(real), computed, upward(error)), rounding


def _judged(real: Interval, computed: Interval, error: Fraction, rounding: Fraction) -> _Judged:
    return Judgement(real, computed, upward(min(error, _apart(real, computed)))), rounding


def _apart(real: Interval, computed: Interval) -> Fraction:
    return max(computed[1] - real[0], real[1] - computed[0])


def _rounded(exact: Interval, format: Format) -> Interval:
    return format.rounded(exact[0]), format.rounded(exact[1])


def _sum(a: Judgement, b: Judgement, format: Format) -> _Judged:
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


def _product(a: Judgement, b: Judgement, format: Format, *, square: bool) -> _Judged:
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


def _quotient(a: Judgement, b: Judgement, format: Format) -> _Judged:
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


def _library(node: ex.Ln | ex.Exp | ex.Sqrt, a: Judgement, machine: Machine) -> _Judged:
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


def _turned(node: ex.Cos | ex.Sin, a: Judgement, machine: Machine) -> _Judged:
    """Cos and sin: no farther apart than their arguments, and within 1 but for the library."""
    name = "cos" if isinstance(node, ex.Cos) else "sin"
    if name not in machine.ulps:
        raise NoBound(f'nothing is known of the library\'s {name}; pass ulps={{"{name}": 1}}, say')
    rounding = machine.ulps[name] * machine.format.ulp(Fraction(1))
    computed = (-1 - rounding, 1 + rounding)
    return _judged(_WITHIN_ONE, computed, a.error + rounding, rounding)


def _approximate(
    real: Interval, exact: Interval, carried: Fraction, ulps: Fraction, format: Format
) -> _Judged:
    """A step whose result is within some ulps of the exact one.

    Theorem  computed >= y - ulps ulp(y) for some y >= low. Within a binade that grows with y, and
             from the start of a binade to that of the next while ulps <= 2**(significand - 2); so
             for low > 0 it is least at low or at the next power of two. For low <= 0 it is least at
             low: the numbers closer to 0 have no larger steps
    """
    rounding = ulps * format.ulp(largest_size(exact))
    computed = outward((_lowest(exact[0], ulps, format), -_lowest(-exact[1], ulps, format)))
    if largest_size(computed) > format.largest:
        raise NoBound(f"the result may overflow {format.name}; narrow the ranges")
    return _judged(real, computed, carried + rounding, rounding)


def _lowest(low: Fraction, ulps: Fraction, format: Format) -> Fraction:
    here = format.ulp(low)
    if low <= 0 or isinstance(format, Fixed):
        return low - ulps * here
    return min(low - ulps * here, here * (1 << format.significand) - 2 * ulps * here)


def _clamped(node: ex.Clamp, a: Judgement, format: Format) -> _Judged:
    """The middle one of three numbers: no farther off than the farthest of them."""
    real, computed, rounding = a.real, a.computed, ZERO
    for end, pick in ((node.low, max), (node.high, min)):
        if end is not None:
            near = _rounded((end, end), format)[0]
            rounding = max(rounding, abs(near - end))
            real = (pick(real[0], end), pick(real[1], end))
            computed = (pick(computed[0], near), pick(computed[1], near))
    return _judged(real, computed, max(a.error, rounding), rounding)


def _grid(grid: Fraction, a: Judgement, format: Format) -> _Judged:
    real, exact = (
        (round(x / grid) * grid, round(y / grid) * grid) for x, y in (a.real, a.computed)
    )
    carried = ZERO if a.error == 0 else (a.error // grid + 1) * grid
    kept = isinstance(format, Binary) and is_power(grid) and grid >= format.least
    rounding = ZERO if kept else format.rounding_error(*exact)
    computed = _rounded(exact, format)
    error = min(carried + rounding, _apart(real, computed))
    return Judgement(outward(real), computed, upward(error)), rounding


_ONE: Interval = (Fraction(1), Fraction(1))
_MINUS_ONE: Interval = (Fraction(-1), Fraction(-1))
_WITHIN_ONE: Interval = (Fraction(-1), Fraction(1))


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
        slopes = None if rounding is None else slopes_of(steps, index, judged)
        if rounding is None or slopes is None:
            total += largest_size(weight) * judged[index].error
            continue
        total += largest_size(weight) * rounding
        for place, slope in zip(steps.below[index], slopes, strict=True):
            share = multiplied(weight, slope)
            weights[place] = added(weights[place], share) if place in weights else share
    return upward(total)


def slopes_of(
    steps: Table, index: int, judged: Mapping[int, Judgement]
) -> tuple[Interval, ...] | None:
    """How much a step moves with each step below it; None where it may jump or has no slope."""
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
            return (_MINUS_ONE,) if both[1] <= 0 else (_WITHIN_ONE,)
        case ex.Cos() | ex.Sin():
            return (_WITHIN_ONE,)
        case ex.Clamp():
            return ((Fraction(0), Fraction(1)),)
    return None
