"""Traced values: they answer arithmetic with the expression of it, and refuse all else.

A marker stands for a float that is not known. Whatever looks at it (its hash, text, class, truth,
length, a conversion, an attribute, a copy) is either answered by an expression, or by a case
distinction on a condition, or it is refused; and what was refused or asked is kept in the run, so
that code which catches the answer cannot hide the question.
"""

from __future__ import annotations

import abc
import math
import sys
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np

from lastbit.errors import LastbitError, Untraceable, WrongType
from lastbit.exact import rational
from lastbit.verify.language.expressions import (
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
    RoundTo,
    Sign,
    Sqrt,
    Subtract,
    Variable,
)
from lastbit.verify.tracing.steps import Step, constant_step


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
        grid = _number(x, step)
        done = Step("round_to", (step_of(x),), (str(grid),))
        return _made(x, RoundTo(expression_of(x), grid), done)
    grid = rational(step, "step")
    return float(round(rational(x, "x") / grid) * grid)


class Split(BaseException):
    """A condition whose answer is not known yet; no error: traced code shall not catch it."""

    def __init__(self, condition: Condition) -> None:
        super().__init__()
        self.condition = condition


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the code, with the answers to the conditions met so far.

    `refusals` and `splits` hold every question without an answer, whatever the code made of it.
    """

    place: Callable[[], str]
    known: tuple[tuple[Condition, bool], ...]
    refusals: list[Untraceable] = field(default_factory=list)
    splits: list[tuple[Split, str]] = field(default_factory=list)

    def answer(self, condition: Condition) -> bool:
        low, high = _limits(condition.name, self.known)
        x = (condition.bound, 0 if condition.relation != "<" else -1)
        for known, holds in self.known:
            if known == condition:
                return holds
        if condition.relation == "==":
            if (condition.bound, 0) < low or (condition.bound, 0) > high:
                return False
        elif high <= x:
            return True
        elif low > x:
            return False
        split = Split(condition)
        self.splits.append((split, self.place()))
        raise split


def _limits(
    name: str, known: tuple[tuple[Condition, bool], ...]
) -> tuple[tuple[Fraction | float, int], tuple[Fraction | float, int]]:
    """What earlier answers say of an input: its least and greatest value.

    (c, 0) stands for c itself, (c, 1) for what comes right after it and (c, -1) for right before.
    """
    low: tuple[Fraction | float, int] = (-math.inf, 0)
    high: tuple[Fraction | float, int] = (math.inf, 0)
    for condition, holds in known:
        if condition.name != name:
            continue
        at = condition.bound
        if condition.relation == "==":
            if holds:
                low, high = max(low, (at, 0)), min(high, (at, 0))
        elif holds:
            high = min(high, (at, 0 if condition.relation == "<=" else -1))
        else:
            low = max(low, (at, 1 if condition.relation == "<=" else 0))
    return low, high


# ---------------------------------------------------------------- what is known of a marker


def marker(expression: Expression, step: Step, run: Run) -> Traced:
    """A marker for a value."""
    made = object.__new__(Traced)
    object.__setattr__(made, "_marked", (expression, step, run))
    return made


def _marked(x: Traced) -> tuple[Expression, Step, Run]:
    return object.__getattribute__(x, "_marked")  # type: ignore[no-any-return]


def expression_of(x: Traced) -> Expression:
    """What a marker stands for."""
    return _marked(x)[0]


def step_of(x: Traced) -> Step:
    """The operation that made it."""
    return _marked(x)[1]


def _made(x: Traced, expression: Expression, step: Step) -> Traced:
    return marker(expression, step, _marked(x)[2])


def refuse(x: Traced, what: str, remedy: str) -> NoReturn:
    """Refuse a question, and keep it: the code may catch the refusal, the tracer must not."""
    run = _marked(x)[2]
    refusal = Untraceable(f"{run.place()} {what}; {remedy}")
    run.refusals.append(refusal)
    raise refusal


def _number(x: Traced, value: object) -> Fraction:
    if type(value) is Traced:
        refuse(x, "uses data where a constant is needed", "pass a number")
    return _constant(x, value)


def _constant(x: Traced, other: object) -> Fraction:
    try:
        # floats do not add up with words, and numpy's other floats change the precision
        if isinstance(other, str | Decimal | np.floating) and not isinstance(other, float):
            raise WrongType("constant", problem="is not a float", remedy="pass a number")
        return rational(other, "constant")
    except LastbitError:
        refuse(
            x,
            f"combines an input with a {type(other).__name__} or a number that is not finite",
            "use finite numbers of one precision",
        )


def _operand(x: Traced, other: object) -> tuple[Expression, Step]:
    if type(other) is Traced:
        return expression_of(other), step_of(other)
    return Constant(_constant(x, other)), constant_step(other)


_DYADIC: Mapping[str, Callable[[Expression, Expression], Expression]] = types.MappingProxyType(
    {
        "add": Add,
        "sub": Subtract,
        "mul": Multiply,
        "div": Divide,
        "numpy.add": Add,
        "numpy.subtract": Subtract,
        "numpy.multiply": Multiply,
        "numpy.divide": Divide,
    }
)


def _binary(name: str, left: object, right: object) -> Traced:
    x = left if type(left) is Traced else right
    assert type(x) is Traced
    (a, one), (b, two) = _operand(x, left), _operand(x, right)
    return _made(x, _DYADIC[name](a, b), Step(name, (one, two)))


def _unary(name: str, kind: Callable[[Expression], Expression], x: Traced) -> Traced:
    return _made(x, kind(expression_of(x)), Step(name, (step_of(x),)))


def _clipped(x: Traced, low: object, high: object, name: str) -> Traced:
    if name == "clamp" and (low is None or high is None):
        refuse(x, "clamps without an end", "pass both ends, or use min or max for one")
    ends = [None if end is None else _number(x, end) for end in (low, high)]
    below = (step_of(x), constant_step(low), constant_step(high))
    return _made(x, Clamp(expression_of(x), *ends), Step(name, below))


def folded(values: tuple[Any, ...], name: str) -> Traced:
    """The least or the greatest (by the function of that name) of a marker and constants."""
    marked = [x for x in values if type(x) is Traced]
    rest = [x for x in values if type(x) is not Traced]
    least = name in ("min", "numpy.minimum")
    if len(marked) != 1 or not rest:
        which = "min" if least else "max"
        refuse(marked[0], f"takes the {which} of two computed values", "use one and constants")
    x = marked[0]
    numbers = [_number(x, value) for value in rest]
    below = tuple(step_of(v) if type(v) is Traced else constant_step(v) for v in values)
    low, high = (None, min(numbers)) if least else (max(numbers), None)
    return _made(x, Clamp(expression_of(x), low, high), Step(name, below))


def _compared(x: Traced, other: object, relation: str, *, negated: bool) -> bool:
    expression, _, run = _marked(x)
    if not isinstance(expression, Variable) or type(other) is Traced:
        refuse(
            x,
            "branches on a computed value",
            "compare inputs with constants only, or use clamp, abs, min or max",
        )
    condition = Condition(expression.name, relation, _constant(x, other))
    return run.answer(condition) != negated


def _operators(name: str) -> tuple[Callable[[Any, object], Any], Callable[[Any, object], Any]]:
    """The operation of that name with the marker to the left, and to the right."""
    return (lambda x, other: _binary(name, x, other)), (lambda x, other: _binary(name, other, x))


def _comparisons(
    relation: str,
) -> tuple[Callable[[Any, object], bool], Callable[[Any, object], bool]]:
    """The relation, and its negation."""
    return (
        lambda x, other: _compared(x, other, relation, negated=False),
        lambda x, other: _compared(x, other, relation, negated=True),
    )


def _looked(what: str, remedy: str) -> Callable[..., Any]:
    """A method that refuses a look at the marker."""

    def method(self: Traced, *_: object, **__: object) -> NoReturn:
        refuse(self, what, remedy)

    return method


_WRITTEN = "leave text and logs out of the function, or write them outside it"
_CONVERTED = "leave it as it is, without float() or unknown functions"
_BY_NAME = "take each number by a name"
_PLAIN = "use arithmetic and the functions of the page"


class Traced:
    """An input, or what was computed from inputs."""

    __slots__ = ("_marked",)

    def __init__(self) -> None:
        raise TypeError("a marker is made by the tracer")

    __add__, __radd__ = _operators("add")
    __sub__, __rsub__ = _operators("sub")
    __mul__, __rmul__ = _operators("mul")
    __truediv__, __rtruediv__ = _operators("div")

    def __neg__(self) -> Traced:
        return _unary("neg", Negate, self)

    def __pos__(self) -> Traced:
        return _made(self, expression_of(self), Step("pos", (step_of(self),)))

    def __abs__(self) -> Traced:
        return _unary("abs", Absolute, self)

    def __round__(self, digits: object = None) -> Traced:
        if digits is not None:
            refuse(self, "rounds to decimal digits", "use round_to(x, step)")
        return _unary("round", _ROUNDED, self)

    __lt__, __ge__ = _comparisons("<")
    __le__, __gt__ = _comparisons("<=")
    __eq__, __ne__ = _comparisons("==")

    def __bool__(self) -> bool:
        return self != 0

    __float__ = __complex__ = _looked("converts an input", _CONVERTED)
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
        "turns an input into text", _WRITTEN
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
        if name in _NUMPY_LOOKS:  # what numpy looks for before it asks `__array_ufunc__`
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


_NUMPY_LOOKS = frozenset({"__array_priority__"})


def _asked_by_fraction(frame: types.FrameType | None) -> bool:
    """Whether a Fraction asks with whom it is to be combined, itself or through `abc`."""
    while frame is not None and frame.f_code.co_filename == _ABC:
        frame = frame.f_back
    if frame is None or frame.f_code.co_filename != _FRACTIONS:
        return False
    return frame.f_code.co_name in ("forward", "reverse", "_richcmp", "__eq__")


_ABC = abc.ABCMeta.__new__.__code__.co_filename
_FRACTIONS = Fraction.__add__.__code__.co_filename


def _ROUNDED(x: Expression) -> Expression:  # noqa: N802 - a kind of step, as Ln is
    return RoundTo(x, Fraction(1))


def _function(name: str, kind: Callable[[Expression], Expression]) -> Callable[[Any], Any]:
    return lambda x: _unary(name, kind, x)


def _dyadic(name: str) -> Callable[[Any, Any], Any]:
    return lambda x, y: _binary(name, x, y)


def _ufuncs() -> Mapping[str, tuple[np.ufunc, Callable[..., Any]]]:
    kinds: dict[str, Callable[[Expression], Expression]] = {
        "negative": Negate,
        "positive": lambda x: x,
        "absolute": Absolute,
        "fabs": Absolute,
        "log": Ln,
        "exp": Exp,
        "sqrt": Sqrt,
        "sign": Sign,
        "rint": _ROUNDED,
    }
    found: dict[str, Callable[..., Any]] = {
        **{name: _function(f"numpy.{name}", kind) for name, kind in kinds.items()},
        **{n: _dyadic(f"numpy.{n}") for n in ("add", "subtract", "multiply", "divide")},
        "minimum": lambda x, y: folded((x, y), "numpy.minimum"),
        "maximum": lambda x, y: folded((x, y), "numpy.maximum"),
        "less": lambda x, y: x < y,
        "less_equal": lambda x, y: x <= y,
        "greater": lambda x, y: x > y,
        "greater_equal": lambda x, y: x >= y,
        "equal": lambda x, y: x == y,
        "not_equal": lambda x, y: x != y,
    }
    return types.MappingProxyType({name: (getattr(np, name), f) for name, f in found.items()})


UFUNCS = _ufuncs()
MATH_STEPS: Mapping[str, Callable[..., Any]] = types.MappingProxyType(
    {
        "log": _function("math.log", Ln),
        "exp": _function("math.exp", Exp),
        "sqrt": _function("math.sqrt", Sqrt),
        "fabs": _function("math.fabs", Absolute),
    }
)
