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
from lastbit.verify.error_bounds.formats import Format
from lastbit.verify.language import expressions as ex
from lastbit.verify.language.expressions import Expression, table

Value = TypeVar("Value")


def real_value(
    expression: Expression, values: Mapping[str, Fraction], *, precision: int = 128
) -> Ball:
    """A ball around the real value; `Undecidable` where a jump (sgn, rounding) is too near.

    >>> real_value(ex.Ln(ex.Constant(2)), {})
    Ball(0.69314718055994530942 ± 2.77e-21)
    """
    with working_precision(precision):
        return Ball(_walk(expression, values, _real_step, lambda _, value: arb_of(Fraction(value))))


def machine_value(
    expression: Expression, values: Mapping[str, Fraction], format: Format
) -> Fraction:
    """The value with every step rounded to the nearest number of the format, ties to even.

    ln, exp and sqrt are correctly rounded too, decided by balls. `Overflow` beyond the largest
    number; an `InvalidParameter` for ln or sqrt outside their domain, and for a division by 0.

    >>> from lastbit.verify import BINARY64
    >>> tenth = ex.Divide(ex.Variable("x"), ex.Constant(10))
    >>> machine_value(tenth, {"x": Fraction(1)}, BINARY64) == Fraction(0.1)
    True
    """

    def given(name: str, value: Any) -> Fraction:
        exact = Fraction(value)
        if not format.holds(exact):
            problem = f"is not a number of {format.name}"
            raise InvalidParameter(name, problem=problem, remedy="round it first")
        return exact

    return _walk(expression, values, partial(_machine_step, format=format), given)


def float_value(expression: Expression, values: Mapping[str, float]) -> float:
    """The value in Python's own floats, with its math library: what running code would give.

    >>> float_value(ex.Divide(ex.Variable("x"), ex.Constant(10)), {"x": 1.0})
    0.1
    """
    return _walk(expression, values, _float_step, lambda _, value: float(value))


def _walk(
    expression: Expression,
    values: Mapping[str, Any],
    step: Callable[[Expression, list[Any]], Value],
    given: Callable[[str, Any], Value],
) -> Value:
    """Evaluate the steps that are needed: of a case distinction only the branch taken."""
    steps = table(expression)
    found: dict[int, Value] = {}
    stack = [len(steps.expressions) - 1]
    while stack:
        index = stack[-1]
        node, below = steps.expressions[index], steps.below[index]
        if isinstance(node, ex.Piecewise):
            taken = node.condition.holds(Fraction(_input(node.condition.name, values)))
            below = below[:1] if taken else below[1:]
        waiting = [place for place in below if place not in found]
        if waiting:
            stack.extend(waiting)
            continue
        if isinstance(node, ex.Variable | ex.Sample):
            found[index] = given(node.name, _input(node.name, values))
        else:
            found[index] = step(node, [found[place] for place in below])
        stack.pop()
    return found[len(steps.expressions) - 1]


def _input(name: str, values: Mapping[str, Any]) -> Any:
    if name not in values:
        raise InvalidParameter(name, problem="has no value", remedy="pass one for every input")
    return values[name]


_ARITHMETIC: Mapping[type, Callable[..., Any]] = MappingProxyType({
    ex.Add: operator.add, ex.Subtract: operator.sub, ex.Multiply: operator.mul,
    ex.Divide: operator.truediv, ex.Negate: operator.neg, ex.Absolute: abs,
    ex.Piecewise: lambda taken: taken,
})  # fmt: skip
_REAL: Mapping[type, Callable[..., Any]] = MappingProxyType(
    {**_ARITHMETIC, ex.Ln: arb.log, ex.Exp: arb.exp, ex.Sqrt: arb.sqrt}
)
_FLOAT: Mapping[type, Callable[..., Any]] = MappingProxyType(
    {**_ARITHMETIC, ex.Ln: math.log, ex.Exp: math.exp, ex.Sqrt: math.sqrt}
)


def _real_step(node: Expression, below: list[arb]) -> arb:
    match node:
        case ex.Constant():
            return arb_of(node.value)
        case ex.Sign():
            return arb_of(_decided(below[0], lambda x: Fraction((x > 0) - (x < 0))))
        case ex.Clamp():
            low = below[0] if node.low is None else below[0].max(arb_of(node.low))
            return low if node.high is None else low.min(arb_of(node.high))
        case ex.RoundTo():
            return arb_of(_decided(below[0], partial(_multiple, step=node.step)))
    found: arb = _REAL[type(node)](*below)
    return found


def _decided(ball: arb, jump: Callable[[Fraction], Fraction]) -> Fraction:
    low, high = (jump(end) for end in ends(ball))
    if low != high:
        raise Undecidable("a ball lies across a jump; compute it with more precision")
    return low


def _multiple(x: Fraction, step: Fraction) -> Fraction:
    return round(x / step) * step


def _machine_step(node: Expression, below: list[Fraction], *, format: Format) -> Fraction:
    match node:
        case ex.Constant():
            return format.rounded(node.value)
        case ex.Ln() | ex.Exp() | ex.Sqrt():
            return _correctly_rounded(node, below[0], format)
        case ex.Sign():
            return Fraction((below[0] > 0) - (below[0] < 0))
        case ex.RoundTo():
            return format.rounded(_multiple(below[0], node.step))
        case ex.Clamp():
            low = below[0] if node.low is None else max(below[0], format.rounded(node.low))
            return low if node.high is None else min(low, format.rounded(node.high))
        case ex.Divide() if below[1] == 0:
            raise InvalidParameter("divisor", problem="is 0", remedy="keep it away from 0")
    return format.rounded(_ARITHMETIC[type(node)](*below))


def _correctly_rounded(node: ex.Ln | ex.Exp | ex.Sqrt, x: Fraction, format: Format) -> Fraction:
    """ln, exp or sqrt of a rational, rounded to the nearest.

    ln x and exp x of rationals other than 1 and 0 are irrational (Lindemann), hence never halfway
    between two numbers: some precision decides. The square root of a rational may be rational; it
    is compared with the halfway points by squaring.
    """
    if isinstance(node, ex.Sqrt):
        return _rounded_root(x, format)
    if isinstance(node, ex.Ln) and x <= 0:
        raise InvalidParameter("argument", problem="of ln is not above 0", remedy="keep it above 0")
    if x == (1 if isinstance(node, ex.Ln) else 0):
        return Fraction(isinstance(node, ex.Exp))
    if (
        isinstance(node, ex.Exp) and abs(x) > 10**6
    ):  # beyond every format's range: see Binary's limits
        if x > 0:
            raise Overflow(f"the result may overflow {format.name}")
        return Fraction(0)

    def at(precision: int) -> Fraction:
        with working_precision(precision):
            ball = arb_of(x).log() if isinstance(node, ex.Ln) else arb_of(x).exp()
            low, high = (format.rounded(end) for end in ends(ball))
        if low != high:
            raise Undecidable("the rounding is not decided yet")
        return low

    return refine(at, start=128)


def _rounded_root(x: Fraction, format: Format) -> Fraction:
    if x < 0:
        raise InvalidParameter("argument", problem="of sqrt is below 0", remedy="keep it above 0")
    finest = format.least.denominator.bit_length()
    # neighbours on a grid finer than the format's halfway points: none lies between them, so what
    # does, the root or the middle, is rounded alike
    low, high = root_bounds(x, 4 + finest + x.numerator.bit_length())
    return format.rounded((low + high) / 2)


def _float_step(node: Expression, below: list[float]) -> float:
    match node:
        case ex.Constant():
            return node.value.numerator / node.value.denominator
        case ex.Sign():
            return float((below[0] > 0) - (below[0] < 0))
        case ex.RoundTo():
            return float(_multiple(Fraction(below[0]), node.step))
        case ex.Clamp():
            low = below[0] if node.low is None else max(below[0], float(node.low))
            return low if node.high is None else min(low, float(node.high))
    return float(_FLOAT[type(node)](*below))
