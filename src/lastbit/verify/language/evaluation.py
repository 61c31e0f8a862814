"""What an expression comes to: in the reals, and in a format."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from flint import arb

from lastbit.errors import InvalidParameter, Overflow, Undecidable
from lastbit.exact import Ball, arb_of, ends, refine, root_bounds, working_precision
from lastbit.verify.error_bounds.formats import Format
from lastbit.verify.language import expressions as ex
from lastbit.verify.language.expressions import Expression, table


def real_value(
    expression: Expression, values: Mapping[str, Fraction], *, precision: int = 128
) -> Ball:
    """A ball around the real value; `Undecidable` where a jump (sgn, rounding) is too near.

    >>> real_value(ex.Ln(ex.Constant(2)), {})
    Ball(0.69314718055994530942 ± 2.77e-21)
    """

    def jump(ball: arb, function: Callable[[Any], Any]) -> arb:
        low, high = (function(end) for end in ends(ball))
        if low != high:
            raise Undecidable("a ball lies across a jump; compute it with more precision")
        return arb_of(low)

    def run(node: Expression, below: list[arb]) -> arb:
        found: arb = _REAL[type(node)](*below)
        return found

    def given(_: str | None, value: Any) -> arb:
        return arb_of(Fraction(value))

    with working_precision(precision):
        return Ball(_walk(expression, values, _Numbers(given, jump, arb.max, arb.min, run)))


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

    def given(name: str | None, value: Any) -> Fraction:
        if name is not None and not format.holds(Fraction(value)):
            problem = f"is not a number of {format.name}"
            raise InvalidParameter(name, problem=problem, remedy="round it first")
        return format.rounded(Fraction(value))

    def run(node: Expression, below: list[Fraction]) -> Fraction:
        if isinstance(node, ex.Ln | ex.Exp | ex.Sqrt | ex.Cos | ex.Sin):
            return _correctly_rounded(node, below[0], format)
        if isinstance(node, ex.Divide) and below[1] == 0:
            raise InvalidParameter("divisor", problem="is 0", remedy="keep it away from 0")
        return format.rounded(_ARITHMETIC[type(node)](*below))

    def jump(x: Fraction, function: Callable[[Any], Any]) -> Fraction:
        return format.rounded(Fraction(function(x)))

    found: Fraction = _walk(expression, values, _Numbers(given, jump, max, min, run))
    return found


_ARITHMETIC: Mapping[type, Callable[..., Any]] = MappingProxyType({
    ex.Add: operator.add, ex.Subtract: operator.sub, ex.Multiply: operator.mul,
    ex.Divide: operator.truediv, ex.Negate: operator.neg, ex.Absolute: abs,
    ex.Piecewise: lambda taken: taken,
})  # fmt: skip
_REAL = MappingProxyType({
    **_ARITHMETIC, ex.Ln: arb.log, ex.Exp: arb.exp, ex.Sqrt: arb.sqrt, ex.Cos: arb.cos,
    ex.Sin: arb.sin,
})  # fmt: skip


class _Numbers(NamedTuple):
    """What an expression is evaluated in: how numbers are held, and what is done to them."""

    given: Callable[[str | None, Any], Any]  # an input by its name, or a constant
    jump: Callable[[Any, Callable[[Any], Any]], Any]
    greatest: Callable[[Any, Any], Any]
    least: Callable[[Any, Any], Any]
    run: Callable[[Expression, list[Any]], Any]


def _walk(expression: Expression, values: Mapping[str, Any], numbers: _Numbers) -> Any:
    """Evaluate the steps that are needed: of a case distinction only the branch taken."""

    def value_of(name: str) -> Any:
        if name not in values:
            raise InvalidParameter(name, problem="has no value", remedy="pass one for every input")
        return values[name]

    steps = table(expression)
    found: dict[int, Any] = {}
    stack = [len(steps.expressions) - 1]
    while stack:
        index = stack[-1]
        node, places = steps.expressions[index], steps.below[index]
        if isinstance(node, ex.Piecewise):
            taken = node.condition.holds(Fraction(value_of(node.condition.name)))
            places = places[:1] if taken else places[1:]
        waiting = [place for place in places if place not in found]
        if waiting:
            stack.extend(waiting)
            continue
        below = [found[place] for place in places]
        match node:
            case ex.Constant():
                found[index] = numbers.given(None, node.value)
            case ex.Variable() | ex.Sample():
                found[index] = numbers.given(node.name, value_of(node.name))
            case ex.Sign():
                found[index] = numbers.jump(below[0], lambda x: (x > 0) - (x < 0))
            case ex.RoundTo():
                found[index] = numbers.jump(below[0], partial(_multiple, node.step))
            case ex.Clamp():
                x = below[0]
                if node.low is not None:
                    x = numbers.greatest(x, numbers.given(None, node.low))
                if node.high is not None:
                    x = numbers.least(x, numbers.given(None, node.high))
                found[index] = x
            case _:
                found[index] = numbers.run(node, below)
        stack.pop()
    return found[len(steps.expressions) - 1]


def _multiple(step: Fraction, x: Any) -> Fraction:
    return round(Fraction(x) / step) * step


def _correctly_rounded(
    node: ex.Ln | ex.Exp | ex.Sqrt | ex.Cos | ex.Sin, x: Fraction, format: Format
) -> Fraction:
    """ln, exp, cos, sin or sqrt of a rational, rounded to the nearest.

    ln x of rationals other than 1, exp x, cos x and sin x of others than 0 are irrational
    (Lindemann), hence never halfway between two numbers: some precision decides. The root of a
    rational may be rational.
    """
    if isinstance(node, ex.Sqrt):
        if x < 0:
            problem, remedy = "of sqrt is below 0", "keep it above 0"
            raise InvalidParameter("argument", problem=problem, remedy=remedy)
        finest = format.least.denominator.bit_length()
        # neighbours on a grid finer than the format's halfway points: none lies between them, so
        # what does, the root or the middle, is rounded alike
        low, high = root_bounds(x, 4 + finest + x.numerator.bit_length())
        return format.rounded((low + high) / 2)
    if isinstance(node, ex.Ln) and x <= 0:
        raise InvalidParameter("argument", problem="of ln is not above 0", remedy="keep it above 0")
    if x == (1 if isinstance(node, ex.Ln) else 0):
        return Fraction(isinstance(node, ex.Exp | ex.Cos))
    if isinstance(node, ex.Exp) and abs(x) > 10**6:  # beyond every format's range: Binary's limits
        if x > 0:
            raise Overflow(f"the result may overflow {format.name}")
        return Fraction(0)

    def at(precision: int) -> Fraction:
        with working_precision(precision):
            ball = _REAL[type(node)](arb_of(x))
            low, high = (format.rounded(end) for end in ends(ball))
        if low != high:
            raise Undecidable("the rounding is not decided yet")
        return low

    return refine(at, start=128)
