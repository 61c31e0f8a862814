"""Enclosures of a formula, its gradient and its second derivatives over boxes, many rows at once.

Law      a Taylor has, for every row, an interval that holds all values of a formula over a box of
         its variables, intervals that hold its first derivatives over the box (those that are not
         listed are 0), and likewise the second ones
Theorem  sums, products, quotients and roots of Taylors enclose those of the formulas: product and
         chain rule in interval arithmetic, every end moved outwards by one unit in the last place.
         All operations are monotone in their boxes. Where a divisor may be 0, the argument of a
         root or of an absolute value may change its sign, or a condition is open, the ends are
         NaN: the formula is not known to be smooth there
Checked  tests/release/test_joint.py
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any, TypeAlias

import numpy as np

from lastbit.exact import lower, upper
from lastbit.tables import Call, ColumnName, Constant, Expression

Array: TypeAlias = Any  # of numpy
Box: TypeAlias = tuple[Array, Array]


def is_finite(box: Box) -> Array:
    """Where both ends are numbers."""
    return np.isfinite(box[0]) & np.isfinite(box[1])


def _outwards(low: Array, high: Array) -> Box:
    return np.nextafter(low, -np.inf), np.nextafter(high, np.inf)


def _sum(a: Box, b: Box) -> Box:
    return _outwards(a[0] + b[0], a[1] + b[1])


def _product(a: Box, b: Box) -> Box:
    ends = [x * y for x in a for y in b]
    return _outwards(reduce(np.minimum, ends), reduce(np.maximum, ends))


def _inverse(a: Box) -> Box:
    apart = (a[0] > 0) | (a[1] < 0)
    low, high = _outwards(1 / a[1], 1 / a[0])
    return np.where(apart, low, np.nan), np.where(apart, high, np.nan)


def _root(a: Box) -> Box:
    low, high = _outwards(np.sqrt(a[0]), np.sqrt(a[1]))
    return np.where(a[0] > 0, np.maximum(low, 5e-324), np.nan), np.where(a[0] > 0, high, np.nan)


def enclosed(number: Fraction | int) -> Box:
    """A constant between doubles."""
    exact = Fraction(number)
    return np.float64(lower(exact)), np.float64(upper(exact))


@dataclass(frozen=True, slots=True)
class Taylor:
    """A formula over a box; `order` says which derivatives are worked out."""

    value: Box
    slope: Mapping[int, Box]
    bend: Mapping[tuple[int, int], Box]
    order: int

    @staticmethod
    def variables(boxes: Sequence[Box], *, order: int) -> list[Taylor]:
        """The variables themselves."""
        one: Box = np.float64(1.0), np.float64(1.0)
        return [Taylor(box, {i: one} if order else {}, {}, order) for i, box in enumerate(boxes)]

    def constant(self, number: Fraction | int) -> Taylor:
        """A constant beside this one."""
        return Taylor(enclosed(number), {}, {}, self.order)

    def __add__(self, other: Taylor) -> Taylor:
        return Taylor(
            _sum(self.value, other.value),
            _merged(self.slope, other.slope),
            _merged(self.bend, other.bend),
            self.order,
        )

    def __neg__(self) -> Taylor:
        minus: Callable[[Box], Box] = lambda box: (-box[1], -box[0])  # noqa: E731
        return Taylor(
            minus(self.value),
            {i: minus(box) for i, box in self.slope.items()},
            {pair: minus(box) for pair, box in self.bend.items()},
            self.order,
        )

    def __sub__(self, other: Taylor) -> Taylor:
        return self + -other

    def __mul__(self, other: Taylor) -> Taylor:
        a, b = self.value, other.value
        slope = _merged(
            {i: _product(box, b) for i, box in self.slope.items()},
            {i: _product(box, a) for i, box in other.slope.items()},
        )
        bend: dict[tuple[int, int], Box] = {}
        if self.order > 1:
            bend = _merged(
                {pair: _product(box, b) for pair, box in self.bend.items()},
                {pair: _product(box, a) for pair, box in other.bend.items()},
            )
            for i, first in self.slope.items():
                for k, second in other.slope.items():
                    both = _product(first, second)
                    both = _sum(both, both) if i == k else both
                    bend = _merged(bend, {(min(i, k), max(i, k)): both})
        return Taylor(_product(a, b), slope, bend, self.order)

    def __truediv__(self, other: Taylor) -> Taylor:
        inverse = _inverse(other.value)
        square = _product(inverse, inverse)
        minus = -square[1], -square[0]
        return self * other._through(inverse, minus, _scaled(_product(square, inverse), 2.0))

    def square(self) -> Taylor:
        """x * x, of one x."""
        low, high = self.value
        most = np.maximum(low * low, high * high)
        least = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(low * low, high * high))
        start, end = _outwards(least, most)
        value = np.maximum(start, 0.0), end
        two = np.float64(2.0)
        return self._through(value, _scaled(self.value, 2.0), (two, two))

    def sqrt(self) -> Taylor:
        root = _root(self.value)
        inverse = _scaled(_inverse(root), 0.5)
        steeper = _product(inverse, _inverse(self.value))
        return self._through(root, inverse, (-steeper[1] / 2, -steeper[0] / 2))

    def size(self) -> Taylor:
        """The absolute value, where the sign is known."""
        low, high = self.value
        sign = np.where(low > 0, 1.0, np.where(high < 0, -1.0, np.nan))
        return self * Taylor((sign, sign), {}, {}, self.order)

    def _through(self, value: Box, first: Box, second: Box) -> Taylor:
        """A function of this one, by the function's value and derivatives over it."""
        slope = {i: _product(box, first) for i, box in self.slope.items()}
        bend: dict[tuple[int, int], Box] = {}
        if self.order > 1:
            bend = {pair: _product(box, first) for pair, box in self.bend.items()}
            for i, one in self.slope.items():
                for k, other in self.slope.items():
                    if i > k:
                        continue
                    both = _product(one, other)
                    if i == k:  # a square
                        both = np.maximum(both[0], 0.0), both[1]
                    bend = _merged(bend, {(i, k): _product(second, both)})
        return Taylor(value, slope, bend, self.order)


def _scaled(box: Box, factor: float) -> Box:
    """Times a power of two above 0."""
    return box[0] * factor, box[1] * factor


def _merged(a: Mapping[Any, Box], b: Mapping[Any, Box]) -> dict[Any, Box]:
    merged = dict(a)
    for key, box in b.items():
        merged[key] = _sum(merged[key], box) if key in merged else box
    return merged


class NotSmooth(Exception):
    """A formula of functions without derivatives."""


def taylor_of(expression: Expression, parts: Mapping[Any, Taylor]) -> Taylor:
    """The formula over parts by their names in small letters; `NotSmooth` if it is not one."""
    some = next(iter(parts.values()))
    match expression:
        case Constant(int() | Fraction() as value) if not isinstance(value, bool):
            return some.constant(value)
        case ColumnName(name):
            return parts[name.lower()]
        case Call("total", (ColumnName(name),)):
            return parts["total", name.lower()]
        case Call("case", (Call("=", (one, other)), Constant(None), value)):  # NULLIF
            a, b = (taylor_of(part, parts).value for part in (one, other))
            apart = np.where((a[1] < b[0]) | (a[0] > b[1]), 0.0, np.nan)
            result = taylor_of(value, parts)
            return result + Taylor((apart, apart), {}, {}, result.order)
        case Call(function, arguments):
            return _applied(function, [taylor_of(argument, parts) for argument in arguments])
    raise NotSmooth


def _applied(function: str, values: list[Taylor]) -> Taylor:
    match function, values:
        case "+", _:
            return reduce(Taylor.__add__, values)
        case "*", _:
            return reduce(Taylor.__mul__, values)
        case "square", [value]:
            return value.square()
        case "-", [a, b]:
            return a - b
        case "/", [a, b]:
            return a / b
        case "negate", [value]:
            return -value
        case "sqrt", [value]:
            return value.sqrt()
        case "abs", [value]:
            return value.size()
        case "to_number", [value]:
            return value
    raise NotSmooth
