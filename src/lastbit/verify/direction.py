"""Does code rise or fall with its uniform? Proved from its steps, where that can be seen.

Law      for a fixed input and sign the output of the code is a function of the float u alone. It
         is monotone on a stretch of uniforms if it never falls, or never rises, as u grows there;
         outputs are in the order of floats, with -0.0 below 0.0
Theorem  the direction of a step follows from those of the steps it uses and from the signs of
         their values, by the rules below; a stretch on which a rule is missing is not proved.
         Proof. By IEEE 754 the sum, the difference, the product, the quotient and the square root
         are the exact result, rounded by a function that never falls: so the float result moves
         with each operand as the exact one does. a + b goes with both, a - b against b, a b with a
         if b > 0 and against it if b < 0, a/b so too, and against b if a > 0, with it if a < 0.
         Both operands must not disagree. abs(a) moves with a from 0 up and against it from 0 down;
         -a against a; rounding to a step, clamping and signs with a. Cases of u are monotone if
         both sides go one way and so does the step from the last uniform of one to the first of
         the other. The values that steps can take lie between those at the ends of the operands,
         for the same reason, so the signs are seen by running the steps on the ends.
         Python's whole numbers and fractions are exact, and the steps do not say which numbers are
         of which type. A step with an operand that is certainly a float (the value, u, and what
         was computed from one) rounds the others to floats first, by a function that never falls.
         A step of other operands is followed where the float result is the exact one, because all
         are multiples of one power of two and no more than 2**53 of it: then no type matters. Else
         it is either rounded or exact at all uniforms if its operands are of one type at all of
         them: it moves as above either way, and lies between the least and the greatest of both.
         Operands of changing types (a clamp, cases) are not followed there
Differs  the library's ln and exp are assumed to be monotone and within four ulps of Python's own:
         each certificate says so. A factor that may be 0 and a clamp at 0 are not followed: there
         zeros of two signs come in either order
Checked  tests/verify/test_direction.py, against all uniforms of small generators; the checker
         proves it again by code of its own, `checker/direction.py`
"""

from __future__ import annotations

import math
import operator
import types
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from fractions import Fraction

import numpy as np

from lastbit.errors import LastbitError, NotCertified
from lastbit.verify.language import expressions as ex
from lastbit.verify.language.expressions import (
    Condition,
    Expression,
    children,
    expression_to_json,
)
from lastbit.verify.running.code import Code
from lastbit.verify.tracing.trace import Followed, followed

_ULPS = 4
_MOST_STEPS = 2000
_MOST_WORK = 100_000  # less than the checker allows
_MOST_EXPONENT = 700
_EXACT = 1 << 53
_FINEST = 1000
Stretch = tuple[int | None, float, float]


class Kind(IntEnum):
    """What Python holds: a float; one type at all uniforms, which may be exact; or several."""

    FLOAT = 0
    ONE = 1
    SEVERAL = 2


class NotFollowed(NotCertified):
    """No rule says in which direction a step goes; the message says which."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"{why}; pass a shorter stretch of uniforms, or write steps that go one way"
        )


@dataclass(frozen=True, slots=True)
class Moving:
    """What a step can be: from `low` to `high`, and how it moves with u: 1, -1, or 0 if not.

    `places` says that all its values are multiples of 2**-places and no more than 2**53 of them, so
    that floats hold them exactly; None where that is not known.
    """

    low: Fraction
    high: Fraction
    way: int
    kind: Kind = Kind.FLOAT
    places: int | None = None

    @property
    def ends(self) -> tuple[float, float]:
        """Both ends as floats, rounded as Python does before it combines them with a float."""
        return float(self.low), float(self.high)

    @property
    def sign(self) -> int:
        """1 or -1; not followed where it may be 0."""
        if self.low > 0:
            return 1
        if self.high < 0:
            return -1
        raise NotFollowed("a factor or a divisor may be 0")


def _way(expression: Expression, value: float, low: float, high: float) -> int:
    """1, -1 or 0: how the expression's float moves with u from `low` to `high`, at this value."""
    try:
        return _Following(value, low, high).of(expression).way
    except OverflowError:  # a number of the code that no float holds
        raise NotFollowed("a step may overflow") from None
    except RecursionError:
        raise NotFollowed("its steps are nested too deeply") from None


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
        found = {sign: _followed(code, sign) for sign in signs}
        for value in values:
            for sign, low, high in stretches:
                _way(found[sign], value, low, high)
        for value, sign, u, output in seen:
            at = _Following(value, u, u).of(found[sign])
            if not at.low <= output <= at.high:
                return None
    except (LastbitError, ArithmeticError, TypeError, ValueError, RecursionError):
        return None
    return [expression_to_json(found[sign]) for sign in signs]


def _followed(code: Code, sign: int | None) -> Expression:
    """The steps of the code as it is called: by place, and the same for a sign of either type."""
    function = code.function
    if type(function) is not types.FunctionType:
        raise NotFollowed("the code is not a plain function")
    own = function.__code__
    count = 2 if sign is None else 3
    if own.co_argcount < count:
        raise NotFollowed("the code takes its inputs by no names of their own")
    names = own.co_varnames[:count]  # what it says itself: __signature__ may say something else
    if set(names) & set(dict(code.parameters)):
        raise NotFollowed("a parameter has the name of an input")
    roles, given = {names[0]: "value", names[1]: "u"}, dict(code.parameters)
    if sign is None:
        return _screened(followed(function, roles, given))
    one, two = (
        _screened(followed(function, roles, {**given, names[2]: s}, sign=names[2]))
        for s in (sign, float(sign))
    )
    if expression_to_json(one) != expression_to_json(two):
        raise NotFollowed("the steps change with the type of the sign")
    return one


def _screened(found: Followed) -> Expression:
    """The steps, if there are not too many, and no integers of numpy: those wrap around."""
    for code in found.screen.codes:
        kinds = [getattr(np, name, None) for name in code.co_names]
        values = [found.function.__globals__.get(name) for name in code.co_names]
        if any(isinstance(kind, type) and issubclass(kind, np.integer) for kind in kinds) or any(
            isinstance(value, np.integer) for value in values
        ):
            raise NotFollowed("a whole number of numpy overflows")
    if len(expression_to_json(found.expression)) > _MOST_STEPS:
        raise NotFollowed("there are too many steps")
    return found.expression


class _Following:
    """One value, one stretch of uniforms, and what is known of each step there."""

    def __init__(
        self, value: float, low: float, high: float, work: list[int] | None = None
    ) -> None:
        self._value, self._u = value, (low, high)
        self._work = [0] if work is None else work
        self._known: dict[int, tuple[Expression, Moving]] = {}

    def of(self, expression: Expression) -> Moving:
        key = id(expression)
        if key not in self._known:  # the expression is kept, so that no other gets its number
            self._work[0] += 1
            if self._work[0] > _MOST_WORK:
                raise NotFollowed("there are too many cases")
            self._known[key] = expression, self._step(expression)
        return self._known[key][1]

    def _step(self, expression: Expression) -> Moving:
        match expression:
            case ex.Constant():
                return _constant(expression.value)
            case ex.Variable(name="u"):
                return Moving(Fraction(self._u[0]), Fraction(self._u[1]), 1)
            case ex.Variable(name="value"):
                return Moving(Fraction(self._value), Fraction(self._value), 0)
            case ex.Add() | ex.Subtract() | ex.Multiply() | ex.Divide():
                return _dyadic(expression, self.of(expression.left), self.of(expression.right))
            case ex.Piecewise():
                return self._cases(expression)
            case (
                ex.Negate()
                | ex.Ln()
                | ex.Exp()
                | ex.Sqrt()
                | ex.Absolute()
                | ex.Sign()
                | ex.Clamp()
                | ex.RoundTo()
            ):
                return _unary(expression, self.of(expression.argument))
        raise NotFollowed("an input is neither the value nor u")

    def _cases(self, expression: ex.Piecewise) -> Moving:
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
        first, then, otherwise = math.nextafter(last, math.inf), *children(expression)
        parts = ((low, last, then), (first, high, otherwise))
        meeting = ((last, last, then), (first, first, otherwise))
        one, two, before, after = (
            _Following(self._value, a, b, self._work).of(e) for a, b, e in (*parts, *meeting)
        )
        jump = 1 if before.high < after.low else -1
        if before.low == before.high == after.low == after.high != 0:
            jump = 0
        elif before.high >= after.low and before.low <= after.high:  # zeros have two signs
            raise NotFollowed("where two cases meet their order cannot be seen")
        kind = Kind.FLOAT if one.kind == two.kind == Kind.FLOAT else Kind.SEVERAL
        ends = min(one.low, two.low), max(one.high, two.high)
        return Moving(*ends, _together(one.way, two.way, jump), kind, _common(one, two))


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


def _together(*ways: int) -> int:
    found = set(ways) - {0}
    if len(found) > 1:
        raise NotFollowed("two parts of a step go different ways")
    return found.pop() if found else 0


def _places(number: Fraction) -> int | None:
    """The places of one number, as few as it has; None if no float is that number."""
    if number == 0:
        return 0
    top, bottom = number.numerator, number.denominator
    if bottom & (bottom - 1):
        return None
    zeros = (top & -top).bit_length() - 1
    found = bottom.bit_length() - 1 - zeros
    return found if abs(top >> zeros) <= _EXACT and abs(found) <= _FINEST else None


def _common(a: Moving, b: Moving) -> int | None:
    """Places that do for both; the bound on multiples must be looked at again."""
    return None if a.places is None or b.places is None else max(a.places, b.places)


def _held(found: Moving) -> Moving:
    """The places left out where a value has more than 2**53 multiples."""
    if found.places is None:
        return found
    unit = Fraction(2) ** -found.places
    fits = max(abs(found.low), abs(found.high)) <= _EXACT * unit
    return found if fits and abs(found.places) <= _FINEST else replace(found, places=None)


def _constant(number: Fraction) -> Moving:
    """A number of the code; its type is not known, nor whether it is rounded."""
    return Moving(*_either(number, number), 0, Kind.ONE, _places(number))


def _either(low: Fraction, high: Fraction) -> tuple[Fraction, Fraction]:
    """Ends between which all lies, whether rounded to floats or not."""
    return min(low, Fraction(float(low))), max(high, Fraction(float(high)))


def _floats(low: float, high: float, way: int, *, ulps: int = 0) -> Moving:
    """Two floats and what lies between, or a few ulps beyond."""
    for _ in range(ulps):
        low, high = math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
    if not (math.isfinite(low) and math.isfinite(high)):
        raise NotFollowed("a step may overflow")
    return Moving(Fraction(low), Fraction(high), way)


def _dyadic(step: ex.Dyadic, a: Moving, b: Moving) -> Moving:
    places = _common(a, b)
    match step:
        case ex.Add():
            run, way = operator.add, _together(a.way, b.way)
        case ex.Subtract():
            run, way = operator.sub, _together(a.way, -b.way)
        case ex.Multiply():
            run = operator.mul
            way = _together(a.way * b.sign if a.way else 0, b.way * a.sign if b.way else 0)
            places = None if a.places is None or b.places is None else a.places + b.places
        case ex.Divide():  # its results have places if it is by one power of two
            run, way = operator.truediv, _together(a.way * b.sign, -b.way * a.sign if b.way else 0)
            by = _places(1 / b.low) if b.low == b.high else None
            places = None if a.places is None or by is None else a.places + by
    results = [run(x, y) for x in a.ends for y in b.ends]
    rounded = _floats(min(results), max(results), way)
    if Kind.FLOAT in (a.kind, b.kind):
        return rounded
    if a.places is None or b.places is None:
        raise NotFollowed("a step of numbers that may be exact or rounded")
    exact = [run(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    kind = max(a.kind, b.kind)
    both = _held(Moving(min(exact), max(exact), way, kind, places))
    if both.places is not None:
        return both
    if kind is Kind.SEVERAL or max(abs(both.low), abs(both.high)) > _EXACT:
        raise NotFollowed("a step of numbers that may be exact or rounded")
    return Moving(min(both.low, rounded.low), max(both.high, rounded.high), way, kind)


def _unary(step: ex.Unary, x: Moving) -> Moving:
    low, high = x.ends
    match step:
        case ex.Negate():
            return Moving(-x.high, -x.low, -x.way, x.kind, x.places)
        case ex.Ln():
            if low <= 0:
                raise NotFollowed("a logarithm of what may not be above 0")
            return _floats(math.log(low), math.log(high), x.way, ulps=_ULPS)
        case ex.Exp():
            if high >= _MOST_EXPONENT:
                raise NotFollowed("an exponential may overflow")
            return _floats(math.exp(low), math.exp(high), x.way, ulps=_ULPS)
        case ex.Sqrt():
            if low < 0:
                raise NotFollowed("a square root of what may be below 0")
            return _floats(math.sqrt(low), math.sqrt(high), x.way)
        case ex.Cos() | ex.Sin():
            raise NotFollowed("a cosine and a sine rise and fall")
        case ex.Absolute():  # by abs, which leaves the type, or by fabs, which makes it a float
            if x.low < 0 < x.high:
                raise NotFollowed("an absolute value of what may have either sign")
            if x.low >= 0:
                return Moving(*_either(x.low, x.high), x.way, x.kind, x.places)
            return Moving(*_either(-x.high, -x.low), -x.way, x.kind, x.places)
        case ex.Sign():
            one, two = (Fraction((end > 0) - (end < 0)) for end in (x.low, x.high))
            return Moving(one, two, x.way, x.kind, 0)
        case ex.Clamp():
            return _clamped(step, x)
        case ex.RoundTo():  # a whole number of Python for the step 1, else a float
            low_end, high_end = (round(end / step.step) * step.step for end in (x.low, x.high))
            near = _floats(float(low_end), float(high_end), x.way)
            if step.step != 1:
                return near
            return _held(Moving(*_either(low_end, high_end), x.way, Kind.ONE, 0))


def _clamped(step: ex.Clamp, x: Moving) -> Moving:
    """Between the bounds; at one of them Python gives the bound itself, of its own type."""
    found = x
    for bound, of, clear in ((step.low, max, x.low > 0), (step.high, min, x.high < 0)):
        if bound is None:
            continue
        if bound == 0 and not clear:
            raise NotFollowed("a clamp at 0")
        limit = _constant(bound)
        kind = Kind.SEVERAL if x.way else max(found.kind, Kind.ONE)
        ends = _either(of(found.low, limit.low), of(found.high, limit.high))
        found = _held(Moving(*ends, x.way, kind, _common(found, limit)))
    if found.kind is Kind.ONE and found.low == found.high:
        return replace(found, places=_places(found.low))
    return found
