"""What an expression comes to: in the reals, in a format, and in Python's own floats."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar

from flint import arb

from lastbit.errors import InvalidParameter, Overflow, Undecidable
from lastbit.exact import Ball, arb_of, ends, refine, root_bounds, working_precision
from lastbit.verify.error_bounds.formats import Binary, Fixed, Format
from lastbit.verify.language.expressions import (
    Absolute,
    Add,
    Clamp,
    Constant,
    Divide,
    Exp,
    Expression,
    Ln,
    Multiply,
    Negate,
    Piecewise,
    RoundTo,
    Sample,
    Sign,
    Sqrt,
    Subtract,
    Variable,
    table,
)

Value = TypeVar("Value")


def real_value(
    expression: Expression, values: Mapping[str, Fraction], *, precision: int = 128
) -> Ball:
    """A ball around the real value; `Undecidable` where a jump (sgn, rounding) is too near.

    >>> real_value(Ln(Constant(2)), {})
    Ball(0.69314718055994530942 ± 2.77e-21)
    """
    with working_precision(precision):
        return Ball(_walk(expression, values, _real_step))


def machine_value(
    expression: Expression, values: Mapping[str, Fraction], format: Format
) -> Fraction:
    """The value with every step rounded to the nearest number of the format, ties to even.

    ln, exp and sqrt are correctly rounded too, decided by balls. `Overflow` beyond the largest
    number; an `InvalidParameter` for ln or sqrt outside their domain, and for a division by 0.

    >>> from lastbit.verify import BINARY64
    >>> tenth = Divide(Variable("x"), Constant(10))
    >>> machine_value(tenth, {"x": Fraction(1)}, BINARY64) == Fraction(0.1)
    True
    """
    return _walk(expression, values, partial(_machine_step, format=format))


def float_value(expression: Expression, values: Mapping[str, float]) -> float:
    """The value in Python's own floats, with its math library: what running code would give.

    >>> float_value(Divide(Variable("x"), Constant(10)), {"x": 1.0})
    0.1
    """
    return _walk(expression, values, _float_step)


def _walk(
    expression: Expression,
    values: Mapping[str, Any],
    step: Callable[[Expression, list[Any], Mapping[str, Any]], Value],
) -> Value:
    """Evaluate the steps that are needed: of a case distinction only the branch taken."""
    steps = table(expression)
    found: dict[int, Value] = {}
    stack = [len(steps.expressions) - 1]
    while stack:
        index = stack[-1]
        node, below = steps.expressions[index], steps.below[index]
        if isinstance(node, Piecewise):
            taken = node.condition.holds(Fraction(_input(node.condition.name, values)))
            below = below[:1] if taken else below[1:]
        waiting = [place for place in below if place not in found]
        if waiting:
            stack.extend(waiting)
            continue
        found[index] = step(node, [found[place] for place in below], values)
        stack.pop()
    return found[len(steps.expressions) - 1]


def _input(name: str, values: Mapping[str, Any]) -> Any:
    if name not in values:
        raise InvalidParameter(name, problem="has no value", remedy="pass one for every input")
    return values[name]


_ARITHMETIC: Mapping[type, Callable[..., Any]] = MappingProxyType({
    Add: operator.add, Subtract: operator.sub, Multiply: operator.mul, Divide: operator.truediv,
    Negate: operator.neg, Absolute: abs, Piecewise: lambda taken: taken,
})  # fmt: skip
_REAL: Mapping[type, Callable[..., Any]] = MappingProxyType(
    {**_ARITHMETIC, Ln: arb.log, Exp: arb.exp, Sqrt: arb.sqrt}
)
_FLOAT: Mapping[type, Callable[..., Any]] = MappingProxyType(
    {**_ARITHMETIC, Ln: math.log, Exp: math.exp, Sqrt: math.sqrt}
)


def _real_step(node: Expression, below: list[arb], values: Mapping[str, Fraction]) -> arb:
    match node:
        case Constant():
            return arb_of(node.value)
        case Variable() | Sample():
            return arb_of(Fraction(_input(node.name, values)))
        case Sign():
            return arb_of(_decided(below[0], _sign))
        case Clamp():
            return _clamped(below[0], node)
        case RoundTo():
            return arb_of(_decided(below[0], partial(_multiple, step=node.step)))
    found: arb = _REAL[type(node)](*below)
    return found


def _clamped(ball: arb, node: Clamp) -> arb:
    if node.low is not None:
        ball = ball.max(arb_of(node.low))
    return ball if node.high is None else ball.min(arb_of(node.high))


def _decided(ball: arb, jump: Callable[[Fraction], Fraction]) -> Fraction:
    low, high = (jump(end) for end in ends(ball))
    if low != high:
        raise Undecidable("a ball lies across a jump; compute it with more precision")
    return low


def _sign(x: Fraction) -> Fraction:
    return Fraction((x > 0) - (x < 0))


def _multiple(x: Fraction, step: Fraction) -> Fraction:
    return round(x / step) * step


def _machine_step(
    node: Expression, below: list[Fraction], values: Mapping[str, Fraction], *, format: Format
) -> Fraction:
    match node:
        case Constant():
            return format.rounded(node.value)
        case Variable() | Sample():
            value = Fraction(_input(node.name, values))
            if not format.holds(value):
                raise InvalidParameter(
                    node.name, problem=f"is not a number of {format.name}", remedy="round it first"
                )
            return value
        case Ln() | Exp() | Sqrt():
            return _correctly_rounded(node, below[0], format)
        case Sign():
            return _sign(below[0])
        case RoundTo():
            return format.rounded(_multiple(below[0], node.step))
        case Clamp():
            low = below[0] if node.low is None else max(below[0], format.rounded(node.low))
            return low if node.high is None else min(low, format.rounded(node.high))
        case Divide() if below[1] == 0:
            raise InvalidParameter("divisor", problem="is 0", remedy="keep it away from 0")
    return format.rounded(_ARITHMETIC[type(node)](*below))


def _correctly_rounded(node: Ln | Exp | Sqrt, x: Fraction, format: Format) -> Fraction:
    """ln, exp or sqrt of a rational, rounded to the nearest.

    ln x and exp x of rationals other than 1 and 0 are irrational (Lindemann), hence never halfway
    between two numbers: some precision decides. The square root of a rational may be rational; it
    is compared with the halfway points by squaring.
    """
    if isinstance(node, Sqrt):
        return _rounded_root(x, format)
    if isinstance(node, Ln) and x <= 0:
        raise InvalidParameter("argument", problem="of ln is not above 0", remedy="keep it above 0")
    if x == (1 if isinstance(node, Ln) else 0):
        return Fraction(isinstance(node, Exp))
    if isinstance(node, Exp) and abs(x) > 10**6:  # beyond every format's range: see Binary's limits
        if x > 0:
            raise Overflow(f"the result may overflow {format.name}")
        return Fraction(0)

    def at(precision: int) -> Fraction:
        with working_precision(precision):
            ball = arb_of(x).log() if isinstance(node, Ln) else arb_of(x).exp()
            low, high = (format.rounded(end) for end in ends(ball))
        if low != high:
            raise Undecidable("the rounding is not decided yet")
        return low

    return refine(at, start=128)


def _rounded_root(x: Fraction, format: Format) -> Fraction:
    if x < 0:
        raise InvalidParameter("argument", problem="of sqrt is below 0", remedy="keep it above 0")
    # neighbours on a grid finer than the format's halfway points: none lies between them, so what
    # does, the root or the middle, is rounded alike
    low, high = root_bounds(x, 4 + _places(format) + x.numerator.bit_length())
    return format.rounded((low + high) / 2)


def _places(format: Format) -> int:
    if isinstance(format, Binary):
        return format.significand - format.least_exponent
    assert isinstance(format, Fixed)
    return format.fraction_bits


def _float_step(node: Expression, below: list[float], values: Mapping[str, float]) -> float:
    match node:
        case Constant():
            return node.value.numerator / node.value.denominator
        case Variable() | Sample():
            return float(_input(node.name, values))
        case Sign():
            return float((below[0] > 0) - (below[0] < 0))
        case RoundTo():
            return float(_multiple(Fraction(below[0]), node.step))
        case Clamp():
            low = below[0] if node.low is None else max(below[0], float(node.low))
            return low if node.high is None else min(low, float(node.high))
    return float(_FLOAT[type(node)](*below))
