"""Enclosures of a formula, its gradient and its second derivatives over boxes, many rows at once.

Law      a Taylor has, for every row, an interval that holds all values of a formula over a box of
         its variables, intervals that hold its first derivatives over the box (those that are not
         listed are 0), and likewise the second ones
Theorem  sums, products, quotients and roots of Taylors enclose those of the formulas: product and
         chain rule in interval arithmetic, every end moved outwards by one unit in the last place.
         All of it is monotone in the box. Where a divisor may be 0, or the argument of a root not
         above it, ends are NaN: there the formula is not known to be smooth
Checked  tests/release/test_joint.py
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any, TypeAlias

import numpy as np

from lastbit.exact import lower, upper
from lastbit.tables import Call, ColumnName, Constant, Expression

Array: TypeAlias = Any  # of numpy
Box: TypeAlias = tuple[Array, Array]


def outwards(low: Array, high: Array) -> Box:
    """One unit in the last place further."""
    return np.nextafter(low, -np.inf), np.nextafter(high, np.inf)


def doubles(integers: Sequence[int]) -> Box:
    """Doubles around integers; none around those beyond 10**300."""
    far = 10**300
    near = np.array([float(min(max(x, -far), far)) for x in integers], dtype=float)
    near[np.abs(near) >= far] = np.nan
    exact = all(-(1 << 53) <= x <= 1 << 53 for x in integers)
    return (near, near) if exact else outwards(near, near)


def _product(a: Box, b: Box) -> Box:
    ends = [x * y for x in a for y in b]
    return outwards(reduce(np.minimum, ends), reduce(np.maximum, ends))


def _merged(a: Mapping[Any, Box], b: Mapping[Any, Box]) -> dict[Any, Box]:
    both = {
        key: outwards(a[key][0] + b[key][0], a[key][1] + b[key][1]) for key in a.keys() & b.keys()
    }
    return {**a, **b, **both}


@dataclass(frozen=True, slots=True)
class Taylor:
    """A formula over a box."""

    value: Box
    slope: Mapping[int, Box]
    bend: Mapping[tuple[int, int], Box]

    @staticmethod
    def variables(boxes: Sequence[Box]) -> list[Taylor]:
        """The variables themselves."""
        one: Box = np.float64(1.0), np.float64(1.0)
        return [Taylor(box, {i: one}, {}) for i, box in enumerate(boxes)]

    @staticmethod
    def constant(number: Fraction | int) -> Taylor:
        """A constant, between doubles."""
        exact = Fraction(number)
        return Taylor((np.float64(lower(exact)), np.float64(upper(exact))), {}, {})

    def __add__(self, other: Taylor) -> Taylor:
        a, b = self.value, other.value
        value = outwards(a[0] + b[0], a[1] + b[1])
        return Taylor(value, _merged(self.slope, other.slope), _merged(self.bend, other.bend))

    def __sub__(self, other: Taylor) -> Taylor:
        return self + Taylor.constant(-1) * other

    def __mul__(self, other: Taylor) -> Taylor:
        a, b = self.value, other.value
        slope, bend = (
            _merged(
                {key: _product(box, b) for key, box in mine.items()},
                {key: _product(box, a) for key, box in theirs.items()},
            )
            for mine, theirs in ((self.slope, other.slope), (self.bend, other.bend))
        )
        for i, first in self.slope.items():
            for k, second in other.slope.items():
                both = _product(first, second)
                pair = {(min(i, k), max(i, k)): both}
                bend = _merged(_merged(bend, pair), pair if i == k else {})
        return Taylor(_product(a, b), slope, bend)

    def __truediv__(self, other: Taylor) -> Taylor:
        low, high = other.value
        apart = np.where((low > 0) | (high < 0), 1.0, np.nan)
        inverse = outwards(apart / high, apart / low)
        square = _product(inverse, inverse)
        cube = _product(square, inverse)
        first, second = (-square[1], -square[0]), (2 * cube[0], 2 * cube[1])
        return self * other._through(inverse, first, second)

    def sqrt(self) -> Taylor:
        """The root, of what is above 0."""
        low, high = self.value
        root = outwards(np.sqrt(np.where(low > 0, low, np.nan)), np.sqrt(high))
        half = outwards(0.5 / root[1], 0.5 / root[0])
        steep = outwards(half[0] / high / 2, half[1] / low / 2)
        return self._through(root, half, (-steep[1], -steep[0]))

    def _through(self, value: Box, first: Box, second: Box) -> Taylor:
        """A function of this one, by the function's value and derivatives over it."""
        slope = {i: _product(box, first) for i, box in self.slope.items()}
        bend = {pair: _product(box, first) for pair, box in self.bend.items()}
        pairs = {
            (i, k): _product(second, _product(one, other))
            for i, one in self.slope.items()
            for k, other in self.slope.items()
            if i <= k
        }
        return Taylor(value, slope, _merged(bend, pairs))


class NotSmooth(Exception):
    """A formula of functions without derivatives."""


def taylor_of(expression: Expression, parts: Mapping[Any, Taylor]) -> Taylor:
    """The formula over parts by their names in small letters; `NotSmooth` if it is not one."""
    match expression:
        case Constant(int() | Fraction() as value) if not isinstance(value, bool):
            return Taylor.constant(value)
        case ColumnName(name):
            return parts[name.lower()]
        case Call("total", (ColumnName(name),)):
            return parts["total", name.lower()]
        case Call("case", (Call("=", (one, Constant(0))), Constant(None), same)) if one == same:
            return taylor_of(one, parts)  # NULLIF(x, 0), which is a divisor or has no use
        case Call(function, arguments):
            values = [taylor_of(argument, parts) for argument in arguments]
        case _:
            raise NotSmooth
    match function, values:
        case "+", _:
            return reduce(Taylor.__add__, values)
        case "*", _:
            return reduce(Taylor.__mul__, values)
        case "-", [a, b]:
            return a - b
        case "/", [a, b]:
            return a / b
        case "square", [a]:
            return a * a
        case "negate", [a]:
            return Taylor.constant(-1) * a
        case "sqrt", [a]:
            return a.sqrt()
        case "to_number", [a]:
            return a
    raise NotSmooth
