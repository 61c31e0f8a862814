"""Does code rise or fall with its uniform? Proved from its steps, where that can be seen.

Law      for a fixed input and sign the output of the code is a function of the float u alone. It
         is monotone on a stretch of uniforms if it never falls, or never rises, as u grows there;
         outputs are in the order of floats, with -0.0 below 0.0
Theorem  the direction of a step follows from those of the steps it uses and from the signs of
         their values, by the rules below; a stretch on which a rule is missing is not proved.
         Proof. By IEEE 754 the sum, the difference, the product, the quotient and the square root
         are the exact result, rounded by a function that never falls: so the float result moves
         with each operand as the exact one does. It is
             a + b   with a and with b
             a - b   with a, against b
             a b     with a if b > 0, against it if b < 0; the same for b
             a/b     with a if b > 0, against it if b < 0; against b if a > 0, with it if a < 0
         Both operands must not disagree. abs(a) moves with a from 0 up and against it from 0 down;
         -a against a; rounding to a step, clamping and signs with a. Cases of u are monotone if
         both sides go one way and so does the step from the last uniform of one to the first of
         the other. The values that steps can take lie between those at the ends of the operands,
         for the same reason, so the signs are seen by running the steps on the ends
Differs  the library's ln and exp are assumed to be monotone and within four ulps of Python's own:
         each certificate says so. A factor that may be 0 and a clamp at 0 are not followed: there
         zeros of two signs come in either order
Checked  tests/verify/test_direction.py, against all uniforms of small generators; the checker
         proves it again by code of its own, `check_direction.py`
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from lastbit.errors import LastbitError
from lastbit.verify.language import (
    Absolute,
    Add,
    Clamp,
    Condition,
    Constant,
    Divide,
    Exp,
    Expression,
    Ln,
    Multiply,
    Negate,
    Piecewise,
    RoundTo,
    Sign,
    Sqrt,
    Subtract,
    Variable,
    expression_to_json,
)
from lastbit.verify.running import Code
from lastbit.verify.trace import trace

__all__ = ["Moving", "NotFollowed", "direction", "followed_steps"]

_ULPS = 4
_MOST_STEPS = 2000
_MOST_WORK = 100_000  # less than the checker allows
_MOST_EXPONENT = 700
Stretch = tuple[int | None, float, float]


class NotFollowed(Exception):
    """No rule says in which direction a step goes; the message says which."""


@dataclass(frozen=True, slots=True)
class Moving:
    """What a step can be: from `low` to `high`, and how it moves with u: 1, -1, or 0 if not."""

    low: float
    high: float
    way: int

    @property
    def sign(self) -> int:
        """1 or -1; not followed where it may be 0."""
        if self.low > 0:
            return 1
        if self.high < 0:
            return -1
        raise NotFollowed("a factor or a divisor may be 0")


def direction(expression: Expression, value: float, low: float, high: float) -> int:
    """1, -1 or 0: how the expression's float moves with u from `low` to `high`, at this value.

    >>> from lastbit.verify.trace import trace
    >>> noise = trace(lambda value, u: value - 2.0 * math.log(u))
    >>> direction(noise, 1.0, 0.25, 0.75)
    -1
    >>> direction(trace(lambda value, u: u * (1 - u)), 0.0, 0.25, 0.75)
    Traceback (most recent call last):
        ...
    lastbit.verify.direction.NotFollowed: two parts of a step go different ways
    """
    return _Following(value, low, high).of(expression).way


def followed_steps(
    code: object,
    values: Sequence[float],
    signs: Sequence[int | None],
    stretches: Sequence[Stretch],
    seen: Iterable[tuple[float, int | None, float, float]],
) -> list[list[list[object]]] | None:
    """The steps of the code for each sign, if they prove it monotone on all stretches; else None.

    `seen` are outputs of the code: the value, the sign, the uniform and what came out. The steps
    must give the same.
    """
    if not isinstance(code, Code):
        return None
    try:
        found = {sign: _traced(code, sign) for sign in signs}
        for value in values:
            for sign, low, high in stretches:
                direction(found[sign], value, low, high)
        for value, sign, u, output in seen:
            at = _Following(value, u, u).of(found[sign])
            if not at.low <= output <= at.high:
                return None
    except (NotFollowed, LastbitError, ArithmeticError, TypeError, ValueError, RecursionError):
        return None
    return [expression_to_json(found[sign]) for sign in signs]


def _traced(code: Code, sign: int | None) -> Expression:
    module, _, attribute = code.name.partition(":")
    function = getattr(importlib.import_module(module), attribute)
    given: dict[str, Any] = dict(code.parameters)
    if sign is not None:
        given["sign"] = float(sign)
    expression = trace(function, "value", "u", parameters=given)
    if len(expression_to_json(expression)) > _MOST_STEPS:
        raise NotFollowed("there are too many steps")
    return expression


class _Following:
    """One value, one stretch of uniforms, and what is known of each step there."""

    def __init__(
        self, value: float, low: float, high: float, work: list[int] | None = None
    ) -> None:
        self._value = value
        self._u = (low, high)
        self._work = [0] if work is None else work
        self._known: dict[int, tuple[Expression, Moving]] = {}

    def of(self, expression: Expression) -> Moving:
        key = id(expression)
        if key not in self._known:  # the expression is kept, so that no other gets its number
            self._work[0] += 1
            if self._work[0] > _MOST_WORK:
                raise NotFollowed("there are too many cases")
            self._known[key] = expression, _finite(self._step(expression))
        return self._known[key][1]

    def _step(self, expression: Expression) -> Moving:
        match expression:
            case Constant():
                number = float(expression.value)
                return Moving(number, number, 0)
            case Variable(name="u"):
                return Moving(*self._u, 1)
            case Variable(name="value"):
                return Moving(self._value, self._value, 0)
            case Add() | Subtract() | Multiply() | Divide():
                return _dyadic(expression, self.of(expression.left), self.of(expression.right))
            case Piecewise():
                return self._cases(expression)
            case Negate() | Ln() | Exp() | Sqrt() | Absolute() | Sign() | Clamp() | RoundTo():
                return _unary(expression, self.of(expression.argument))
        raise NotFollowed("an input is neither the value nor u")

    def _cases(self, expression: Piecewise) -> Moving:
        """One case, or two and the step between them."""
        condition = expression.condition
        if condition.name == "value":
            holds = condition.holds(Fraction(self._value))
            return self.of(expression.then if holds else expression.otherwise)
        if condition.name != "u":
            raise NotFollowed("a condition is neither of the value nor of u")
        low, high = self._u
        last = _last(condition, low, high)
        if last is None:
            return self.of(expression.otherwise)
        if last == high:
            return self.of(expression.then)
        first = math.nextafter(last, math.inf)
        sides = [(low, last, expression.then), (first, high, expression.otherwise)]
        one, two = (_Following(self._value, a, b, self._work).of(e) for a, b, e in sides)
        before, after = (
            _Following(self._value, u, u, self._work).of(e)
            for u, e in ((last, expression.then), (first, expression.otherwise))
        )
        way = _together(one.way, two.way, _jump(before, after))
        return Moving(min(one.low, two.low), max(one.high, two.high), way)


def _last(condition: Condition, low: float, high: float) -> float | None:
    """The greatest float of the stretch for which the condition holds; None if for none."""
    if condition.relation == "==":
        if low <= condition.bound <= high:
            raise NotFollowed("one uniform is singled out")
        return None
    if not condition.holds(Fraction(low)):
        return None
    if condition.holds(Fraction(high)):
        return high
    near = float(condition.bound)
    while not condition.holds(Fraction(near)):
        near = math.nextafter(near, -math.inf)
    return near


def _jump(before: Moving, after: Moving) -> int:
    """The way from one case to the other; zeros must be apart, for they have two signs."""
    if before.low == before.high == after.low == after.high != 0:
        return 0
    if before.high < after.low:
        return 1
    if before.low > after.high:
        return -1
    raise NotFollowed("where two cases meet their order cannot be seen")


def _together(*ways: int) -> int:
    found = set(ways) - {0}
    if len(found) > 1:
        raise NotFollowed("two parts of a step go different ways")
    return found.pop() if found else 0


def _finite(found: Moving) -> Moving:
    if not (math.isfinite(found.low) and math.isfinite(found.high)):
        raise NotFollowed("a step may overflow")
    return found


def _dyadic(step: Add | Subtract | Multiply | Divide, a: Moving, b: Moving) -> Moving:
    match step:
        case Add():
            return Moving(a.low + b.low, a.high + b.high, _together(a.way, b.way))
        case Subtract():
            return Moving(a.low - b.high, a.high - b.low, _together(a.way, -b.way))
        case Multiply():
            corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
            one = a.way * b.sign if a.way else 0
            two = b.way * a.sign if b.way else 0
            return Moving(min(corners), max(corners), _together(one, two))
        case Divide():
            corners = [x / y for x in (a.low, a.high) for y in (b.low, b.high) if b.sign]
            one, two = a.way * b.sign, -b.way * a.sign if b.way else 0
            return Moving(min(corners), max(corners), _together(one, two))


def _unary(step: Negate | Ln | Exp | Sqrt | Absolute | Sign | Clamp | RoundTo, x: Moving) -> Moving:
    match step:
        case Negate():
            return Moving(-x.high, -x.low, -x.way)
        case Ln():
            if x.low <= 0:
                raise NotFollowed("a logarithm of what may not be above 0")
            return _near(math.log(x.low), math.log(x.high), x.way)
        case Exp():
            if x.high >= _MOST_EXPONENT:
                raise NotFollowed("an exponential may overflow")
            return _near(math.exp(x.low), math.exp(x.high), x.way)
        case Sqrt():
            return Moving(math.sqrt(x.low), math.sqrt(x.high), x.way)
        case Absolute():
            if x.low >= 0:
                return Moving(abs(x.low), x.high, x.way)
            if x.high <= 0:
                return Moving(abs(x.high), -x.low, -x.way)
            raise NotFollowed("an absolute value of what may have either sign")
        case Sign():
            low, high = ((end > 0) - (end < 0) + 0.0 for end in (x.low, x.high))
            return Moving(low, high, x.way)
        case Clamp():
            return _clamped(step, x)
        case RoundTo():
            low, high = (
                float(round(Fraction(end) / step.step) * step.step) for end in (x.low, x.high)
            )
            return Moving(low, high, x.way)


def _near(low: float, high: float, way: int) -> Moving:
    """A function of the library between its values at both ends, a few ulps wider."""
    for _ in range(_ULPS):
        low, high = math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
    return Moving(low, high, way)


def _clamped(step: Clamp, x: Moving) -> Moving:
    low, high = x.low, x.high
    if step.low is not None:
        if step.low == 0 and not low > 0:
            raise NotFollowed("a clamp at 0")
        low, high = max(low, float(step.low)), max(high, float(step.low))
    if step.high is not None:
        if step.high == 0 and not high < 0:
            raise NotFollowed("a clamp at 0")
        low, high = min(low, float(step.high)), min(high, float(step.high))
    return Moving(low, high, x.way)
