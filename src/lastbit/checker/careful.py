"""Can code fail by its value, though its result does not show it?

A record lists the steps that a result uses. Code may take others: `1.0 / (value - 3.7)`, of which
nothing is made, fails for one value and is no step. Mechanisms of Laplace noise have no use for a
division by the value, nor for a function of it: they add, multiply, divide by numbers, round and
compare, and may add by `math.fsum`. So they are run on a number that does just that, and refuses
the rest.
"""

from __future__ import annotations

import math
import operator
import types
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from .numbers import Rejected


def _plain(x: Any) -> Any:
    return x.number if type(x) is Careful else x


def _lifted(run: Callable[..., Any], *, back: bool = False) -> Any:
    def method(self: Careful, *other: Any) -> Any:
        operands = (self.number, *map(_plain, other))
        return Careful(run(*(operands[::-1] if back else operands)))

    return method


def _compared(run: Callable[..., Any]) -> Any:
    return lambda self, other: bool(run(self.number, _plain(other)))


def _refused(self: Careful, *_: object) -> Any:
    raise Rejected("the code may fail by its value: it divides by it, or passes it to a function")


class Careful:
    """A number made of the value, with what is done to it."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, number: Any) -> None:
        self.number = number

    __add__, __radd__ = _lifted(operator.add), _lifted(operator.add, back=True)
    __sub__, __rsub__ = _lifted(operator.sub), _lifted(operator.sub, back=True)
    __mul__, __rmul__ = _lifted(operator.mul), _lifted(operator.mul, back=True)
    __neg__, __pos__ = _lifted(operator.neg), _lifted(operator.pos)
    __abs__, __round__ = _lifted(abs), _lifted(round)
    __lt__, __le__ = _compared(operator.lt), _compared(operator.le)
    __gt__, __ge__ = _compared(operator.gt), _compared(operator.ge)
    __eq__, __ne__ = _compared(operator.eq), _compared(operator.ne)
    __float__ = __int__ = __index__ = __rtruediv__ = __pow__ = __rpow__ = _refused
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __divmod__ = __rdivmod__ = _refused

    def __truediv__(self, other: Any) -> Any:
        return _refused(self) if type(other) is Careful else Careful(self.number / other)

    def __bool__(self) -> bool:
        return bool(self.number)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return Careful(getattr(ufunc, method)(*map(_plain, inputs), **options))

    def __array_function__(self, function: Any, _: Any, inputs: Any, options: Any) -> Any:
        return Careful(function(*map(_plain, inputs), **options))


def _summed(run: Callable[..., Any], numbers: Any) -> Any:
    """`math.fsum`, which asks for floats, of numbers made of the value too."""
    listed = list(numbers)
    total = run([_plain(x) for x in listed])
    return Careful(total) if any(type(x) is Careful for x in listed) else total


def with_sums(function: Callable[..., Any]) -> Any:
    """A copy of a function, and of those it calls, with a sum that takes such numbers.

    Where a name leads to `math.fsum` in a way that is not followed here, the function is rejected.
    """
    return _with_sums(function, {})


def _with_sums(value: Any, copies: dict[int, Any]) -> Any:
    if value is math.fsum:
        return partial(_summed, math.fsum)
    if id(value) in copies:
        return copies[id(value)]
    if value is math:
        copies[id(value)] = types.SimpleNamespace(**vars(math))
        copies[id(value)].fsum = partial(_summed, math.fsum)
    if type(value) is not types.FunctionType:
        return copies.get(id(value), value)
    cells = tuple(types.CellType() for _ in value.__closure__ or ())
    scope: dict[str, Any] = dict(value.__globals__)
    arguments = value.__name__, value.__defaults__, cells if value.__closure__ else None
    copy = copies[id(value)] = types.FunctionType(value.__code__, scope, *arguments)
    copy.__kwdefaults__ = value.__kwdefaults__
    for name in _names(value.__code__) & set(scope):
        scope[name] = _with_sums(scope[name], copies)
    for cell, old in zip(cells, value.__closure__ or (), strict=True):
        cell.cell_contents = _with_sums(old.cell_contents, copies)
    return copy


def _names(code: types.CodeType) -> set[str]:
    inner = (_names(part) for part in code.co_consts if isinstance(part, types.CodeType))
    return set(code.co_names).union(*inner)


def check_use(
    function: Callable[..., Any], placed: Sequence[Any], named: Mapping[str, Any]
) -> None:
    """Reject code that may fail by its value, at these draws; what fails by a draw does not count.

    `round_to` of lastbit asks for a number of Python's and fails: what comes before it was seen.
    """
    try:
        function(*placed, **named)
    except Rejected:
        raise
    except Exception:  # it was compared with the steps on floats
        return
