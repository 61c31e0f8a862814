"""The code that is judged: by its name, called with plain floats, its outputs in order."""

from __future__ import annotations

import importlib
import inspect
import math
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import TypeAlias

from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import rational

_NAME = re.compile(r"[A-Za-z]\w*(\.[A-Za-z]\w*)*:[A-Za-z]\w*", re.ASCII)
_DOUBLE, _INTEGER = struct.Struct("<d"), struct.Struct("<q")
Function: TypeAlias = Callable[..., float]
"""function(value, u, sign) or function(value, u), of ordinary floats."""


@dataclass(frozen=True, slots=True, init=False)
class Code:
    """A function by its name, with its parameters: what a certificate can name and run again.

    >>> snapping = Code("lastbit.mechanisms.snapping:snapped", epsilon=1.0, bound=64.0)
    >>> snapping(3.0, 0.5, 1)
    2.0
    """

    name: str
    parameters: tuple[tuple[str, float], ...]
    function: Function = field(repr=False, compare=False)

    def __init__(self, name: str, **parameters: float) -> None:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            problem = "names no function that a certificate could name"
            remedy = 'pass "module:name", both beginning with a letter'
            raise InvalidParameter("name", problem=problem, remedy=remedy)
        module, _, attribute = name.partition(":")
        try:
            function = getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError, ValueError):
            problem = "cannot be imported"
            raise InvalidParameter("name", problem=problem, remedy='pass "module:name"') from None
        if not all(isinstance(p, float) for p in parameters.values()):
            raise WrongType("parameters", problem="are not all floats", remedy="pass floats")
        if any(math.isnan(p) for p in parameters.values()):
            raise InvalidParameter("parameters", problem="hold NaN", remedy="pass numbers")
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "parameters", tuple(sorted(parameters.items())))
        object.__setattr__(self, "function", function)

    def __call__(self, value: float, *random: float) -> float:
        return self.function(value, *random, **dict(self.parameters))

    def takes(self, *arguments: float) -> bool:
        return _takes(self.function, arguments, **dict(self.parameters))


def evaluated(function: Function, value: float, u: float, sign: int | None) -> float:
    """The output for one uniform, refused unless it is a float and a number."""
    given = (value, u) if sign is None else (value, u, sign)
    try:
        output = function(*given)
    except (ArithmeticError, ValueError) as failure:
        problem = f"fails at the uniform {u!r} ({type(failure).__name__})"
        remedy = "pass a model of the generator that does not draw it"
        raise InvalidParameter("function", problem=problem, remedy=remedy) from failure
    except TypeError as failure:
        if function.takes(*given) if isinstance(function, Code) else _takes(function, given):
            problem, remedy = f"raises TypeError: {failure}"[:200], "make it take plain floats"
            raise WrongType("function", problem=problem, remedy=remedy) from failure
        names = ("value", "u", "sign")[: len(given)]
        remedy = f"pass a function of ({', '.join(names)}); signs=None leaves out the sign"
        raise WrongType("function", problem="cannot be called so", remedy=remedy) from failure
    if not isinstance(output, float):
        kind = type(output).__name__
        raise WrongType("function", problem=f"returns {kind}, no float", remedy="return a float")
    if output != output:
        problem = f"returns NaN at the uniform {u!r}"
        raise InvalidParameter("function", problem=problem, remedy="return a number")
    return float(output)


_MOST_KEPT = 2048


@dataclass(slots=True)
class Calls:
    """Calls of a function that are kept and made again, so that state between calls shows.

    Theorem  code whose answer depends on its arguments alone gives the same output for the same
             arguments, in every order of calls. The first and then ever fewer of the later calls
             are kept; `check_again` makes them backward, by strides and each after its neighbour
    Differs  finitely many calls: code that changes its ways after more of them is not found
    Checked  tests/verify/test_stateful.py
    """

    function: Function
    kept: dict[tuple[float, float, float, int | None], int] = field(default_factory=dict)
    count: int = 0

    def at(self, value: float, u: float, sign: int | None) -> float:
        output = evaluated(self.function, value, u, sign)
        self.count += 1
        if self.count <= _MOST_KEPT or self.count % (self.count // _MOST_KEPT + 1) == 0:
            key = (value, math.copysign(1.0, value), u, sign)
            self._check_same(self.kept.setdefault(key, order(output)), output)
            if len(self.kept) > 2 * _MOST_KEPT:
                self.kept = dict(list(self.kept.items())[::2])
        return output

    def _check_same(self, wanted: int, output: float) -> None:
        if order(output) != wanted:
            problem = "gives two outputs for the same uniform, depending on what was called before"
            remedy = "let all its randomness come from u and sign, and keep nothing between calls"
            raise InvalidParameter("function", problem=problem, remedy=remedy)

    def check_again(self) -> None:
        """Refuse a function that gives another output than before for the same arguments."""
        calls = list(self.kept.items())
        again = [*reversed(calls), *(call for start in range(7) for call in calls[start::7])]
        for one, other in pairwise(calls[:256]):
            again += [other, one, other]
        for (value, _, u, sign), wanted in again:
            self._check_same(wanted, evaluated(self.function, value, float(u), sign))


def _takes(function: Function, arguments: tuple[float, ...], /, **parameters: float) -> bool:
    try:
        inspect.signature(function).bind(*arguments, **parameters)
    except (TypeError, ValueError):
        return False
    return True


def input_of(value: object, name: str) -> float:
    """A value that code is judged at: a finite float, or a number that is one."""
    if isinstance(value, float) and math.isfinite(value):
        return float(value)  # as it is: -0.0 is an input of its own
    number = rational(value, name)
    try:
        near = float(number)
    except OverflowError:
        near = 0.0
    if Fraction(near) != number:
        raise InvalidParameter(name, problem="is not a float", remedy=f"pass float({name})")
    return near


def order(x: float) -> int:
    """Floats as integers in the same order, -0.0 just below 0.0.

    >>> order(0.0), order(-0.0), order(5e-324)
    (0, -1, 1)
    """
    pattern: int = _INTEGER.unpack(_DOUBLE.pack(x))[0]
    return pattern if pattern >= 0 else -(pattern & 0x7FFF_FFFF_FFFF_FFFF) - 1
