"""Traced values: they answer arithmetic with the expression of it, and refuse all else."""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np

from lastbit.errors import LastbitError, Untraceable, WrongType
from lastbit.exact.rational import rational
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
    RoundTo,
    Sign,
    Sqrt,
    Subtract,
    Variable,
)

__all__ = [
    "MATH_STEPS",
    "Run",
    "Split",
    "Traced",
    "Untraceable",
    "clamp",
    "greatest",
    "least",
    "round_to",
]


def clamp(x: Any, low: Any, high: Any) -> Any:
    """The nearest number of [low, high]: for floats, and in traced code.

    >>> clamp(3.5, -1.0, 1.0)
    1.0
    """
    if isinstance(x, Traced):
        return x.clip(low, high)
    return min(max(x, low), high)


def round_to(x: Any, step: Any) -> Any:
    """The nearest multiple of a step, ties to even, correctly rounded: for floats and traced code.

    >>> round_to(2.5, 1.0), round_to(0.3, 0.25)
    (2.0, 0.25)
    """
    if isinstance(x, Traced):
        return x.made(RoundTo(x.expression, x.number(step)))
    grid = rational(step, "step")
    return float(round(rational(x, "x") / grid) * grid)


class Split(BaseException):
    """A condition whose answer is not known yet; no error: traced code shall not catch it."""

    def __init__(self, condition: Condition) -> None:
        super().__init__()
        self.condition = condition


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the code, with the answers to the conditions met so far."""

    place: Callable[[], str]
    known: tuple[tuple[Condition, bool], ...]
    refusals: list[Untraceable] = field(default_factory=list)

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
        raise Split(condition)


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


class Traced:
    """An input, or what was computed from inputs."""

    __slots__ = ("expression", "run")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, expression: Expression, run: Run) -> None:
        self.expression = expression
        self.run = run

    def made(self, expression: Expression) -> Traced:
        return Traced(expression, self.run)

    def refuse(self, what: str, remedy: str) -> NoReturn:
        refusal = Untraceable(f"{self.run.place()} {what}; {remedy}")
        self.run.refusals.append(refusal)  # the code may catch it, the tracer must not miss it
        raise refusal

    def number(self, value: object) -> Fraction:
        if isinstance(value, Traced):
            self.refuse("uses data where a constant is needed", "pass a number")
        return rational(value, "constant")

    def below(self, other: object) -> Expression:
        if isinstance(other, Traced):
            return other.expression
        try:
            # floats do not add up with words, and numpy's other floats change the precision
            if isinstance(other, str | Decimal | np.floating) and not isinstance(other, float):
                raise WrongType("constant", problem="is no float", remedy="pass a number")
            return Constant(rational(other, "constant"))
        except LastbitError:
            self.refuse(
                f"combines an input with a {type(other).__name__} or a number that is not finite",
                "use finite numbers of one precision",
            )

    def __add__(self, other: object) -> Traced:
        return self.made(Add(self.expression, self.below(other)))

    def __radd__(self, other: object) -> Traced:
        return self.made(Add(self.below(other), self.expression))

    def __sub__(self, other: object) -> Traced:
        return self.made(Subtract(self.expression, self.below(other)))

    def __rsub__(self, other: object) -> Traced:
        return self.made(Subtract(self.below(other), self.expression))

    def __mul__(self, other: object) -> Traced:
        return self.made(Multiply(self.expression, self.below(other)))

    def __rmul__(self, other: object) -> Traced:
        return self.made(Multiply(self.below(other), self.expression))

    def __truediv__(self, other: object) -> Traced:
        return self.made(Divide(self.expression, self.below(other)))

    def __rtruediv__(self, other: object) -> Traced:
        return self.made(Divide(self.below(other), self.expression))

    def __neg__(self) -> Traced:
        return self.made(Negate(self.expression))

    def __pos__(self) -> Traced:
        return self

    def __abs__(self) -> Traced:
        return self.made(Absolute(self.expression))

    def __round__(self, digits: object = None) -> Traced:
        if digits is not None:
            self.refuse("rounds to decimal digits", "use round_to(x, step)")
        return self.made(RoundTo(self.expression, Fraction(1)))

    def clip(self, low: object = None, high: object = None) -> Traced:
        ends = [None if end is None else self.number(end) for end in (low, high)]
        return self.made(Clamp(self.expression, *ends))

    def __lt__(self, other: object) -> bool:
        return self._compared(other, "<", negated=False)

    def __le__(self, other: object) -> bool:
        return self._compared(other, "<=", negated=False)

    def __gt__(self, other: object) -> bool:
        return self._compared(other, "<=", negated=True)

    def __ge__(self, other: object) -> bool:
        return self._compared(other, "<", negated=True)

    def __eq__(self, other: object) -> bool:
        return self._compared(other, "==", negated=False)

    def __ne__(self, other: object) -> bool:
        return self._compared(other, "==", negated=True)

    def _compared(self, other: object, relation: str, *, negated: bool) -> bool:
        if not isinstance(self.expression, Variable) or isinstance(other, Traced):
            self.refuse(
                "branches on a computed value",
                "compare inputs with constants only, or use clamp, abs, min or max",
            )
        condition = Condition(self.expression.name, relation, self.number(other))
        return self.run.answer(condition) != negated

    def __bool__(self) -> bool:
        return self != 0

    def __float__(self) -> float:
        self.refuse("converts an input", "leave it as it is, without float() or unknown functions")

    def __int__(self) -> int:
        self.refuse("converts an input to an integer", "use round_to(x, step)")

    def __index__(self) -> int:  # noqa: PLE0305 - it never returns
        self.refuse("uses an input as an index or a loop bound", "make that a parameter")

    def __iter__(self) -> NoReturn:
        self.refuse("goes through an input as if it were a list", "take each number by a name")

    def __getitem__(self, key: object) -> NoReturn:
        self.refuse("takes a part of an input", "take each number by a name")

    def __pow__(self, other: object, modulus: object = None) -> NoReturn:
        self.refuse("raises to a power", "write x * x: libraries differ in the last bit of powers")

    def __rpow__(self, other: object) -> NoReturn:
        self.refuse("raises to a power", "use exp")

    def __floordiv__(self, other: object) -> NoReturn:
        self.refuse("divides with remainder", "use round_to(x, step)")

    __rfloordiv__ = __mod__ = __rmod__ = __divmod__ = __rdivmod__ = __floordiv__

    def __trunc__(self) -> NoReturn:
        self.refuse("cuts off the fraction", "use round_to(x, step)")

    __floor__ = __ceil__ = __trunc__

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):  # what Python or numpy only look for
            raise AttributeError(name)
        self.refuse(f"asks an input for .{name}", "use arithmetic and the functions of the page")

    def __array_function__(self, function: Any, _: object, inputs: Any, options: Any) -> Any:
        if function is not np.clip or options:
            self.refuse(f"calls numpy.{function.__name__}", "use a function that can be traced")
        return clamp(*inputs)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        known = _UFUNCS.get(ufunc.__name__)
        if known is None or method != "__call__" or options:
            self.refuse(f"calls numpy.{ufunc.__name__}", "use a function that can be traced")
        if any(isinstance(value, np.ndarray) and value.ndim for value in inputs):
            self.refuse("combines an input with an array", "trace one number at a time")
        for value in inputs:
            if isinstance(value, np.generic) and not isinstance(value, float | np.integer):
                self.below(value)  # another precision: refused there
        plain = (x.item() if isinstance(x, np.ndarray | np.generic) else x for x in inputs)
        return known(*plain)


def _function(kind: Callable[[Expression], Expression]) -> Callable[[Any], Any]:
    return lambda x: x.made(kind(x.expression))


def least(x: Any, y: Any) -> Any:
    """The lesser of a traced value and a constant."""
    return _bounded(x, y, "min")


def greatest(x: Any, y: Any) -> Any:
    """The greater of a traced value and a constant."""
    return _bounded(x, y, "max")


def _bounded(x: Any, y: Any, which: str) -> Traced:
    traced, other = (x, y) if isinstance(x, Traced) else (y, x)
    if isinstance(other, Traced):
        traced.refuse(f"takes the {which} of two computed values", "compare with a constant only")
    return traced.clip(None, other) if which == "min" else traced.clip(other, None)


_ROUNDED = _function(lambda x: RoundTo(x, Fraction(1)))
_UFUNCS: Mapping[str, Callable[..., Any]] = types.MappingProxyType(
    {
        "add": lambda x, y: x + y,
        "subtract": lambda x, y: x - y,
        "multiply": lambda x, y: x * y,
        "divide": lambda x, y: x / y,
        "negative": lambda x: -x,
        "positive": lambda x: x,
        "absolute": abs,
        "fabs": abs,
        "log": _function(Ln),
        "exp": _function(Exp),
        "sqrt": _function(Sqrt),
        "sign": _function(Sign),
        "rint": _ROUNDED,
        "minimum": least,
        "maximum": greatest,
        "clip": clamp,
        "less": lambda x, y: x < y,
        "less_equal": lambda x, y: x <= y,
        "greater": lambda x, y: x > y,
        "greater_equal": lambda x, y: x >= y,
        "equal": lambda x, y: x == y,
        "not_equal": lambda x, y: x != y,
    }
)
MATH_STEPS: Mapping[str, Callable[..., Any]] = types.MappingProxyType(
    {"log": _function(Ln), "exp": _function(Exp), "sqrt": _function(Sqrt), "fabs": abs}
)
