"""From ordinary Python code to an expression: the code is run on marked inputs.

`trace(function)` calls a copy of the function with traced values for inputs. Arithmetic on them,
`abs`, `round`, `min` and `max` with a constant, the functions of `math` and numpy named below, and
`clamp` and `round_to` build the expression; nothing is computed. The copy sees its own `math`,
`min`, `max` and so on: no module is changed.

Where the code compares an input with a constant, it is run again for the other answer, and the
expression has both cases. Whatever else depends on the data and is no arithmetic (a branch on a
computed value, a loop bound, an index, `int`, `float`) is refused with file and line.

Arithmetic among constants alone is done by Python, as the code itself does it: its result counts
as a given number. Write `Fraction(1, 10)` for a tenth; the literal 0.1 is the float of that name.
"""

from __future__ import annotations

import builtins
import inspect
import math
import sys
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lastbit.errors import InvalidParameter, LastbitError, WrongType
from lastbit.exact.rational import rational
from lastbit.verify.language import (
    Condition,
    Constant,
    Expression,
    Piecewise,
    Variable,
    expression_to_json,
)
from lastbit.verify.traced import (
    MATH_STEPS,
    Run,
    Split,
    Traced,
    Untraceable,
    clamp,
    greatest,
    least,
    round_to,
)

__all__ = ["Untraceable", "clamp", "round_to", "trace"]

MOST_CASES = 256


def trace(
    function: Callable[..., Any],
    *inputs: str,
    parameters: Mapping[str, Any] | None = None,
) -> Expression:
    """The expression that a function computes from its inputs.

    Law      for every assignment of floats to the inputs that takes the same path, evaluating the
             expression in floats performs the same operations in the same order as the function
    Theorem  by construction: a traced value answers each operation with the step of that name and
             has no other way out; conditions on inputs are split, all else raises `Untraceable`
    Differs  -0.0 and 0.0 are one number, and NaN and infinities are no inputs
    Checked  tests/verify/test_trace.py

    `inputs` names the arguments that are data, all without a default by default; the others get
    their value from `parameters` or their default.

    >>> def noise(u, scale):
    ...     return -scale * math.log(u)
    >>> trace(noise, "u", parameters={"scale": 2.0})
    Multiply(left=Constant(value=Fraction(-2, 1)), right=Ln(argument=Variable(name='u')))
    """
    given = dict(parameters or {})
    if not isinstance(function, types.FunctionType):
        raise WrongType(
            "function",
            problem=f"is of type {type(function).__name__}, not a plain function",
            remedy="pass a function written with def or lambda",
        )
    marked = inputs or _by_signature(function, given)
    copies = _Copies()
    copy = copies.of(function)
    paths = 0

    def explored(known: tuple[tuple[Condition, bool], ...]) -> Expression:
        nonlocal paths
        paths += 1
        if paths > MOST_CASES:
            raise Untraceable(
                f"{copies.place()} distinguishes more than {MOST_CASES} cases; use clamp, abs or "
                "min and max with a constant instead of branches"
            )
        run = Run(copies.place, known)
        arguments = {name: Traced(Variable(name), run) for name in marked}
        condition = None
        try:
            result = copy(**arguments, **given)
        except Split as split:
            condition = split.condition
        if run.refusals:
            raise run.refusals[0]
        if condition is None:
            return _finished(result, copies)
        return Piecewise(
            condition,
            explored((*known, (condition, True))),
            explored((*known, (condition, False))),
        )

    expression = explored(())
    paths = 0
    if expression_to_json(explored(())) != expression_to_json(expression):
        raise Untraceable(
            f"{copies.place()} computes something else each time; take draws as inputs"
        )
    return expression


def _by_signature(function: types.FunctionType, given: Mapping[str, Any]) -> tuple[str, ...]:
    data = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise InvalidParameter(
                "function", problem=f"takes {parameter}", remedy="name its arguments one by one"
            )
        if name not in given and parameter.default is parameter.empty:
            data.append(name)
    return tuple(data)


def _finished(result: object, copies: _Copies) -> Expression:
    if isinstance(result, Traced):
        return result.expression
    try:
        return Constant(rational(result, "result"))
    except LastbitError:
        raise Untraceable(
            f"{copies.place()} returns a {type(result).__name__}; return one number"
        ) from None


def _shim(original: Callable[..., Any], name: str, known: Callable[..., Any] | None) -> Any:
    """A function that builds the step on traced values and is the original on all others."""

    def shimmed(*arguments: Any, **options: Any) -> Any:
        traced = next((x for x in (*arguments, *options.values()) if isinstance(x, Traced)), None)
        if traced is None:
            return original(*arguments, **options)
        if known is None or options:
            traced.refuse(f"calls {name}", "use a function that can be traced")
        try:
            return known(*arguments)
        except TypeError as error:
            if isinstance(error, LastbitError):
                raise
            traced.refuse(f"calls {name} with other arguments than one", "pass one number")

    return shimmed


def _folded(pair: Callable[[Any, Any], Any], name: str) -> Callable[..., Any]:
    original = getattr(builtins, name)

    def folded(*values: Any, **options: Any) -> Any:
        traced = [x for x in values if isinstance(x, Traced)]
        if not traced:
            return original(*values, **options)
        rest = [x for x in values if not isinstance(x, Traced)]
        if len(traced) != 1 or not rest or options:
            traced[0].refuse(f"takes the {name} of two computed values", "use one and constants")
        return pair(traced[0], original(rest))

    return folded


def _listed_sum(values: Any, *rest: Any) -> Any:
    listed = list(values)
    for traced in listed:
        if isinstance(traced, Traced):
            traced.refuse("calls sum", "add one by one: versions of Python round sums differently")
    return sum(listed, *rest)


def _isinstance(value: object, kinds: Any) -> bool:
    return isinstance(0.0 if isinstance(value, Traced) else value, kinds)


@dataclass(slots=True)
class _Copies:
    """Copies of the traced function and of those it calls, whose names lead to the shims."""

    made: dict[int, types.FunctionType] = field(default_factory=dict)
    codes: set[types.CodeType] = field(default_factory=set)
    first: types.CodeType | None = None

    def of(self, function: types.FunctionType) -> types.FunctionType:
        if id(function) in self.made:
            return self.made[id(function)]
        self._note(function.__code__)
        scope: dict[str, Any] = {**function.__globals__, "__builtins__": self._builtins()}
        closure = function.__closure__
        cells = None if closure is None else tuple(types.CellType() for _ in closure)
        copy = types.FunctionType(
            function.__code__, scope, function.__name__, function.__defaults__, cells
        )
        copy.__kwdefaults__ = function.__kwdefaults__
        self.made[id(function)] = copy  # before its names are replaced: it may call itself
        for name in self._names(function.__code__):
            if name in scope:
                scope[name] = self._replaced(scope[name])
        for old, new in zip(closure or (), cells or (), strict=True):
            new.cell_contents = self._replaced(old.cell_contents)
        return copy

    def place(self) -> str:
        """The file and line of the traced code that is running, or of the function itself."""
        frame = sys._getframe()
        while frame is not None:
            if frame.f_code in self.codes:
                return f"{frame.f_code.co_filename}, line {frame.f_lineno}:"
            frame = frame.f_back  # type: ignore[assignment]
        assert self.first is not None
        return f"{self.first.co_filename}, line {self.first.co_firstlineno}: the function"

    def _note(self, code: types.CodeType) -> None:
        self.first = self.first or code
        self.codes.add(code)
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                self._note(constant)

    def _names(self, code: types.CodeType) -> set[str]:
        found = set(code.co_names)
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                found |= self._names(constant)
        return found

    def _replaced(self, value: Any) -> Any:
        if value is math:
            return _MathShim()
        if value is clamp or value is round_to:
            return value
        if isinstance(value, types.BuiltinFunctionType) and value.__module__ == "math":
            return _shim(value, f"math.{value.__name__}", MATH_STEPS.get(value.__name__))
        if isinstance(value, types.FunctionType) and not _of_a_library(value):
            return self.of(value)
        return value

    def _builtins(self) -> dict[str, Any]:
        scope = dict(vars(builtins))
        scope["min"], scope["max"] = _folded(least, "min"), _folded(greatest, "max")
        scope["isinstance"] = _isinstance
        scope["sum"] = _shim(_listed_sum, "sum", None)  # newer Pythons compensate: other roundings
        original = builtins.__import__

        def imported(name: str, *rest: Any, **options: Any) -> Any:
            module = original(name, *rest, **options)
            return _MathShim() if module is math else module

        scope["__import__"] = imported
        return scope


class _MathShim:
    """`math` as traced code sees it."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(math, name)
        return _shim(value, f"math.{name}", MATH_STEPS.get(name)) if callable(value) else value


def _of_a_library(function: types.FunctionType) -> bool:
    root = (function.__module__ or "").split(".")[0]
    return root in sys.stdlib_module_names or root == "numpy"
