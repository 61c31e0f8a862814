"""Can code fail by its value, though its result does not show it?

A record lists the steps that a result uses. Code may take others: `1.0 / (value - 3.7)`, of which
nothing is made, fails for one value and is no step. Mechanisms of Laplace noise have no use for a
division by the value, nor for a function of it: they add, multiply, divide by numbers, round and
compare. So they are run on a number that does just that, and refuses the rest.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
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
    __float__ = __index__ = __rtruediv__ = __pow__ = __rpow__ = _refused

    def __truediv__(self, other: Any) -> Any:
        return _refused(self) if type(other) is Careful else Careful(self.number / other)

    def __bool__(self) -> bool:
        return bool(self.number)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return Careful(getattr(ufunc, method)(*map(_plain, inputs), **options))

    def __array_function__(self, function: Any, _: Any, inputs: Any, options: Any) -> Any:
        return Careful(function(*map(_plain, inputs), **options))


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
