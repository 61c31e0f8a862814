"""Traced values: they answer arithmetic with the expression of it, and refuse all else.

A marker stands for a float that is not known. Whatever looks at it is answered by an expression, or
by a case distinction on a condition, or refused; and what was refused or asked is kept in the run,
so that code which catches the answer cannot hide the question.
"""

from __future__ import annotations

import abc
import json
import math
import operator
import sys
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any, NoReturn, TypeAlias

import numpy as np

from lastbit.errors import LastbitError, Untraceable, WrongType
from lastbit.exact import rational
from lastbit.verify.error_bounds.formats import BINARY64
from lastbit.verify.language import expressions as ex
from lastbit.verify.language.expressions import Condition, Expression
from lastbit.verify.tracing.steps import (
    Step,
    compared,
    constant_step,
    replayed,
    rows_of,
)

Unary: TypeAlias = Callable[[Expression], Expression]
Dyadic: TypeAlias = Callable[[Expression, Expression], Expression]


def clamp(x: Any, low: Any, high: Any) -> Any:
    """The nearest number of [low, high]: for floats, and in traced code.

    >>> clamp(3.5, -1.0, 1.0)
    1.0
    """
    if type(x) is Traced:
        return _clipped(x, low, high, "clamp")
    return min(max(x, low), high)


def round_to(x: Any, step: Any) -> Any:
    """The nearest multiple of a step, ties to even, correctly rounded: for floats and traced code.

    >>> round_to(2.5, 1.0), round_to(0.3, 0.25)
    (2.0, 0.25)
    """
    if type(x) is Traced:
        grid, (expression, below, run) = _constant(x, step), marked(x)
        return marker(ex.RoundTo(expression, grid), Step("round_to", (below,), (str(grid),)), run)
    grid = rational(step, "step")
    return float(round(rational(x, "x") / grid) * grid)


@dataclass(frozen=True, slots=True)
class Computed:
    """A computed number compared with a constant; `name` tells it from other computed numbers."""

    name: str
    relation: str
    bound: Fraction
    expression: Expression = field(compare=False)
    step: Step = field(compare=False)
    place: str = field(compare=False)

    def refusal(self) -> Untraceable:
        return Untraceable(f"{self.place} {_BRANCHES}; {_COMPARE}")

    def holds_at(self, inputs: Mapping[str, Any]) -> bool:
        """The answer for these inputs; a failure is none."""
        try:
            return compared(replayed(rows_of(self.step), inputs), self.relation, self.bound)
        except (ArithmeticError, ValueError):  # as the code itself does there
            return False


_BRANCHES = "branches on a computed value"
_COMPARE = "compare inputs with constants only, or use clamp, abs, min or max"
_MOST_ASKED = 6


class Split(BaseException):
    """A condition whose answer is not known yet; no error: traced code shall not catch it."""

    def __init__(self, condition: Condition | Computed) -> None:
        super().__init__()
        self.condition = condition


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the code, with the answers to the conditions met so far.

    `refusals` and `splits` hold every question without an answer, whatever the code made of it,
    `made` every step, used or not, and `asked` those that were compared with a number.
    """

    place: Callable[[], str]
    known: tuple[tuple[Condition | Computed, bool], ...]
    refusals: list[Untraceable] = field(default_factory=list)
    splits: list[tuple[Split, str]] = field(default_factory=list)
    made: list[Step] = field(default_factory=list)
    asked: list[Step] = field(default_factory=list)

    def answer(self, condition: Condition | Computed) -> bool:
        """What earlier answers say, by the least and greatest value that they leave an input.

        (c, 0) stands for c itself, (c, 1) for what comes right after it and (c, -1) for right
        before.
        """
        low: tuple[Fraction | float, int] = (-math.inf, 0)
        high: tuple[Fraction | float, int] = (math.inf, 0)
        for known, holds in self.known:
            if known == condition:
                return holds
            if known.name != condition.name:
                continue
            at = known.bound
            if known.relation == "==":
                if holds:
                    low, high = max(low, (at, 0)), min(high, (at, 0))
            elif holds:
                high = min(high, (at, 0 if known.relation == "<=" else -1))
            else:
                low = max(low, (at, 1 if known.relation == "<=" else 0))
        last = (condition.bound, -1 if condition.relation == "<" else 0)
        if condition.relation == "==":
            if not low <= last <= high:
                return False
        elif high <= last or low > last:
            return high <= last
        split = Split(condition)
        self.splits.append((split, self.place()))
        raise split


def marker(expression: Expression, step: Step, run: Run) -> Traced:
    """A marker for a value."""
    run.made.append(step)
    made = object.__new__(Traced)
    object.__setattr__(made, "_marked", (expression, step, run))
    return made


def marked(x: Traced) -> tuple[Expression, Step, Run]:
    """What a marker stands for, the operation that made it, and the run that it belongs to."""
    return object.__getattribute__(x, "_marked")  # type: ignore[no-any-return]


def refuse(x: Traced, what: str, remedy: str) -> NoReturn:
    """Refuse a question, and keep it: the code may catch the refusal, the tracer must not."""
    run = marked(x)[2]
    refusal = Untraceable(f"{run.place()} {what}; {remedy}")
    run.refusals.append(refusal)
    raise refusal


def _constant(x: Traced, other: object) -> Fraction:
    if type(other) is Traced:
        refuse(x, "uses data where a constant is needed", "pass a number")
    try:
        # floats do not add up with words, and numpy's other floats change the precision
        if isinstance(other, str | Decimal | np.floating) and not isinstance(other, float):
            raise WrongType("constant", problem="is not a float", remedy="pass a number")
        return rational(other, "constant")
    except LastbitError:
        kind = type(other).__name__
        what = f"combines an input with a {kind} or a number that is not finite"
        refuse(x, what, "use finite numbers of one precision")


def _binary(name: str, kind: Dyadic, left: object, right: object) -> Traced:
    x = left if type(left) is Traced else right
    assert type(x) is Traced
    (a, one), (b, two) = (
        marked(y)[:2] if type(y) is Traced else (ex.Constant(_constant(x, y)), constant_step(y))
        for y in (left, right)
    )
    return marker(kind(a, b), Step(name, (one, two)), marked(x)[2])


def _unary(name: str, kind: Unary, x: Traced) -> Traced:
    expression, step, run = marked(x)
    return marker(kind(expression), Step(name, (step,)), run)


def _clipped(x: Traced, low: object, high: object, name: str) -> Traced:
    if name == "clamp" and (low is None or high is None):
        refuse(x, "clamps without an end", "pass both ends, or use min or max for one")
    expression, step, run = marked(x)
    ends = [None if end is None else _constant(x, end) for end in (low, high)]
    below = (step, constant_step(low), constant_step(high))
    return marker(ex.Clamp(expression, *ends), Step(name, below), run)


def summed(values: object, x: Traced) -> Traced:
    """`math.fsum` of two numbers: their sum, rounded once, as + does; of more it is another."""
    if (type(values) is not list and type(values) is not tuple) or len(values) != 2:
        refuse(x, "calls math.fsum of other than two numbers", "pass two, or add one by one")
    return _binary("math.fsum", ex.Add, *values)


def folded(values: tuple[Any, ...], name: str) -> Traced:
    """The least or the greatest (by the function of that name) of a marker and constants."""
    traced = [x for x in values if type(x) is Traced]
    rest = [x for x in values if type(x) is not Traced]
    least = name in ("min", "numpy.minimum")
    if len(traced) != 1 or not rest:
        which = "min" if least else "max"
        refuse(traced[0], f"takes the {which} of two computed values", "use one and constants")
    expression, step, run = marked(traced[0])
    numbers = [_constant(traced[0], value) for value in rest]
    below = tuple(step if type(v) is Traced else constant_step(v) for v in values)
    low, high = (None, min(numbers)) if least else (max(numbers), None)
    return marker(ex.Clamp(expression, low, high), Step(name, below), run)


def _compared(relation: str) -> tuple[Callable[[Any, object], bool], Callable[[Any, object], bool]]:
    """Methods that answer the relation, and its negation."""

    def holds(x: Traced, other: object) -> bool:
        expression, step, run = marked(x)
        if type(other) is Traced:
            refuse(x, _BRANCHES, _COMPARE)
        bound = _constant(x, other)
        if isinstance(expression, ex.Variable):
            return run.answer(Condition(expression.name, relation, bound))
        known = sum(isinstance(condition, Computed) for condition, _ in run.known)
        if relation == "==" or known > _MOST_ASKED or not BINARY64.holds(bound):
            refuse(x, _BRANCHES, _COMPARE)
        run.asked.append(step)
        name = json.dumps(rows_of(step))
        return run.answer(Computed(name, relation, bound, expression, step, run.place()))

    return holds, lambda x, other: not holds(x, other)


def _operators(
    name: str, kind: Dyadic
) -> tuple[Callable[[Any, object], Any], Callable[[Any, object], Any]]:
    """Methods for the marker to the left, and to the right."""
    return (
        lambda x, other: _binary(name, kind, x, other),
        lambda x, other: _binary(name, kind, other, x),
    )


def _looked(what: str, remedy: str) -> Callable[..., Any]:

    def method(self: Traced, *_: object, **__: object) -> NoReturn:
        refuse(self, what, remedy)

    return method


_BY_NAME = "take each number by a name"
_PLAIN = "use arithmetic and the functions of the page"


class Traced:
    """An input, or what was computed from inputs."""

    __slots__ = ("_marked",)

    def __init__(self) -> None:
        raise TypeError("a marker is made by the tracer")

    __add__, __radd__ = _operators("add", ex.Add)
    __sub__, __rsub__ = _operators("sub", ex.Subtract)
    __mul__, __rmul__ = _operators("mul", ex.Multiply)
    __truediv__, __rtruediv__ = _operators("div", ex.Divide)

    def __neg__(self) -> Traced:
        return _unary("neg", ex.Negate, self)

    def __pos__(self) -> Traced:
        return _unary("pos", lambda x: x, self)

    def __abs__(self) -> Traced:
        return _unary("abs", ex.Absolute, self)

    def __round__(self, digits: object = None) -> Traced:
        if digits is not None:
            refuse(self, "rounds to decimal digits", "use round_to(x, step)")
        return _unary("round", _whole, self)

    __lt__, __ge__ = _compared("<")
    __le__, __gt__ = _compared("<=")
    __eq__, __ne__ = _compared("==")

    def __bool__(self) -> bool:
        return self != 0

    __float__ = __complex__ = _looked(
        "converts an input", "leave it as it is, without float() or unknown functions"
    )
    __int__ = _looked("converts an input to an integer", "use round_to(x, step)")
    __index__ = _looked("uses an input as an index or a loop bound", "make that a parameter")
    __iter__ = __reversed__ = __next__ = __aiter__ = __anext__ = __await__ = _looked(
        "goes through an input as if it were a list", _BY_NAME
    )
    __getitem__ = __setitem__ = __delitem__ = __contains__ = __len__ = __length_hint__ = _looked(
        "takes a part of an input", _BY_NAME
    )
    __pow__ = _looked(
        "raises to a power", "write x * x: libraries differ in the last bit of powers"
    )
    __rpow__ = _looked("raises to a power", "use exp")
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __divmod__ = __rdivmod__ = _looked(
        "divides with remainder", "use round_to(x, step)"
    )
    __trunc__ = __floor__ = __ceil__ = _looked(
        "cuts off the fraction", "use step * round(x / step), or round_to(x, step)"
    )
    __matmul__ = __rmatmul__ = __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _looked(
        "combines the bits of an input", _PLAIN
    )
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __invert__ = __and__
    __hash__ = _looked(
        "looks an input up, in a dictionary, a set or a cache", "compute instead of looking up"
    )
    __str__ = __repr__ = __format__ = __bytes__ = __fspath__ = _looked(
        "turns an input into text", "leave text and logs out of the function, or write them outside"
    )
    __reduce__ = __reduce_ex__ = __getstate__ = __setstate__ = __copy__ = __deepcopy__ = _looked(
        "copies an input", "use it as it is"
    )
    __getnewargs__ = __getnewargs_ex__ = __sizeof__ = __dir__ = __buffer__ = __reduce__
    __call__ = __enter__ = __exit__ = __aenter__ = __aexit__ = _looked(
        "uses an input as if it were a function or a resource", _PLAIN
    )
    __array__ = _looked("turns an input into an array", "trace one number at a time")

    def __getattribute__(self, name: str) -> Any:
        if name == "__array_priority__":  # numpy looks for it before it asks `__array_ufunc__`
            raise AttributeError(name)
        if name == "__class__" and _asked_by_fraction(sys._getframe(1)):
            return Traced  # so a Fraction leaves the operation to the marker
        refuse(self, f"asks an input for .{name}", _PLAIN)

    def __setattr__(self, name: str, value: object) -> None:
        refuse(self, f"sets .{name} of an input", _PLAIN)

    def __delattr__(self, name: str) -> None:
        refuse(self, f"deletes .{name} of an input", _PLAIN)

    def __array_function__(self, function: Any, _: object, inputs: Any, options: Any) -> Any:
        if function is not np.clip or options or len(inputs) != 3 or type(inputs[0]) is not Traced:
            refuse(self, f"calls numpy.{function.__name__}", "use a function that can be traced")
        x, low, high = inputs
        return _clipped(x, low, high, "numpy.clip")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        known = UFUNCS.get(ufunc.__name__)
        if known is None or known[0] is not ufunc or method != "__call__" or options:
            refuse(self, f"calls numpy.{ufunc.__name__}", "use a function that can be traced")
        for value in inputs:
            if type(value) is Traced:
                continue
            if isinstance(value, np.ndarray):
                refuse(self, "combines an input with an array", "trace one number at a time")
            if isinstance(value, np.generic) and not isinstance(value, float | np.integer):
                _constant(self, value)  # another precision: refused there
        return known[1](*inputs)


def _asked_by_fraction(frame: types.FrameType | None) -> bool:
    """Whether a Fraction asks with whom it is to be combined, itself or through `abc`."""
    own, fractions = (f.__code__.co_filename for f in (abc.ABCMeta.__new__, Fraction.__add__))
    while frame is not None and frame.f_code.co_filename == own:
        frame = frame.f_back
    if frame is None or frame.f_code.co_filename != fractions:
        return False
    return frame.f_code.co_name in ("forward", "reverse", "_richcmp", "__eq__")


def _whole(x: Expression) -> Expression:
    return ex.RoundTo(x, Fraction(1))


_UNARY: Mapping[str, Unary] = types.MappingProxyType({
    "numpy.negative": ex.Negate, "numpy.positive": lambda x: x, "numpy.absolute": ex.Absolute,
    "numpy.fabs": ex.Absolute, "numpy.log": ex.Ln, "numpy.exp": ex.Exp, "numpy.sqrt": ex.Sqrt,
    "numpy.sign": ex.Sign, "numpy.rint": _whole, "math.log": ex.Ln, "math.exp": ex.Exp,
    "math.sqrt": ex.Sqrt, "math.cos": ex.Cos, "numpy.cos": ex.Cos, "math.sin": ex.Sin,
    "numpy.sin": ex.Sin, "math.fabs": ex.Absolute,
})  # fmt: skip
_BINARY: Mapping[str, Dyadic] = types.MappingProxyType({
    "numpy.add": ex.Add, "numpy.subtract": ex.Subtract, "numpy.multiply": ex.Multiply,
    "numpy.divide": ex.Divide,
})  # fmt: skip


def _steps(library: str) -> dict[str, Callable[..., Any]]:
    """The functions of a library that build a step, by their names there."""
    found: dict[str, Callable[..., Any]] = {n: partial(_unary, n, k) for n, k in _UNARY.items()}
    found |= {name: partial(_binary, name, kind) for name, kind in _BINARY.items()}
    own = {name: build for name, build in found.items() if name.startswith(library)}
    return {name.partition(".")[2]: build for name, build in own.items()}


UFUNCS: Mapping[str, tuple[np.ufunc, Callable[..., Any]]] = types.MappingProxyType({
    **{name: (getattr(np, name), build) for name, build in _steps("numpy").items()},
    "minimum": (np.minimum, lambda x, y: folded((x, y), "numpy.minimum")),
    "maximum": (np.maximum, lambda x, y: folded((x, y), "numpy.maximum")),
    "less": (np.less, operator.lt), "less_equal": (np.less_equal, operator.le),
    "greater": (np.greater, operator.gt), "greater_equal": (np.greater_equal, operator.ge),
    "equal": (np.equal, operator.eq), "not_equal": (np.not_equal, operator.ne),
})  # fmt: skip
MATH_STEPS: Mapping[str, Callable[..., Any]] = types.MappingProxyType(_steps("math"))
