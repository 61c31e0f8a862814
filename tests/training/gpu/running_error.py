"""Running error analysis of the kernel's own source: its functions, run on intervals with errors.

A function of `kernel.py` is plain Python once `tl` and the other functions it calls are something
else. Here `tl.fma` and the operators work on `Float`s: a ball that holds every number the machine
may have, and a bound of its distance from the same expression in real numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from types import FunctionType, SimpleNamespace
from typing import Any

from flint import arb, arb_poly, arb_series, ctx

UNIT = arb(2) ** -53
_SMALLEST = arb(2) ** -1074


class Float:
    """What the machine has lies in `value`, and within `error` of what real numbers give."""

    def __init__(self, value: arb, error: arb | int = 0) -> None:
        self.value, self.error = value, arb(error).upper()

    def __add__(self, other: Float) -> Float:
        return _once(self.value + other.value, self.error + other.error)

    def __sub__(self, other: Float) -> Float:
        return _once(self.value - other.value, self.error + other.error)

    def __neg__(self) -> Float:
        return Float(-self.value, self.error)

    def __mul__(self, other: Float) -> Float:
        return _once(self.value * other.value, _of_product(self, other))


def _of_product(x: Float, y: Float) -> arb:
    return abs(x.value) * y.error + abs(y.value) * x.error + x.error * y.error


def _once(exact: arb, error: arb) -> Float:
    """One rounding to nearest: by half a unit in the last place of the largest it can be."""
    half = half_place(exact)
    return Float(exact + arb(0, half), abs(error).upper() + half)


def half_place(value: arb) -> arb:
    """Half a unit in the last place of the largest binary64 in a ball."""
    top = value.abs_upper()
    if top == 0:
        return arb(0)
    mantissa, exponent = top.man_exp()
    return max(UNIT * arb(2) ** (int(exponent) + int(mantissa).bit_length() - 1), _SMALLEST).upper()


def fma(x: Float, y: Float, z: Float) -> Float:
    return _once(x.value * y.value + z.value, _of_product(x, y) + z.error)


def on_intervals(kernel: Any, name: str) -> Callable[..., Any]:
    """A function of the kernel that takes and gives `Float`s."""
    fake = {"tl": SimpleNamespace(fma=fma), "_real": lambda value: Float(arb(value))}
    return FunctionType(getattr(kernel, name).fn.__code__, fake)


def on_rationals(kernel: Any, name: str) -> Callable[..., Any]:
    """A function of the kernel without rounding, at rational numbers."""
    fake = {"tl": SimpleNamespace(fma=lambda x, y, z: x * y + z), "_real": Fraction}
    return FunctionType(getattr(kernel, name).fn.__code__, fake)


class Poly:
    """Real arithmetic on polynomials: what a function of the kernel is without rounding."""

    def __init__(self, poly: arb_poly) -> None:
        self.poly = poly

    def __mul__(self, other: Poly) -> Poly:
        return Poly(self.poly * other.poly)


def as_polynomial(kernel: Any, name: str, *arguments: arb_poly) -> arb_poly:
    """The polynomial that a function of the kernel would be, without rounding."""
    fake = {
        "tl": SimpleNamespace(fma=lambda x, y, z: Poly(x.poly * y.poly + z.poly)),
        "_real": lambda value: Poly(arb_poly([arb(value)])),
    }
    function = FunctionType(getattr(kernel, name).fn.__code__, fake)
    return function(*map(Poly, arguments)).poly


def pieces(low: arb, high: arb, count: int) -> Iterator[arb]:
    """Balls that together cover an interval."""
    step = (high - low) / count
    for i in range(count):
        yield (low + step * i).union(low + step * (i + 1))


def largest_difference(
    poly: arb_poly, function: Callable[[arb_series], arb_series], ball: arb, order: int = 14
) -> arb:
    """A bound of |poly - function| on a ball, by Taylor's theorem about its middle.

    The first `order` terms are taken at the middle, where both are known to many digits; the term
    after them on the whole ball, where it is wide but tiny.
    """
    before, ctx.cap = ctx.cap, order + 1
    try:
        middle = arb(ball.mid())
        here = _series(poly, middle, order + 1) - function(arb_series([middle, 1], order + 1))
        there = _series(poly, ball, order + 1) - function(arb_series([ball, 1], order + 1))
    finally:
        ctx.cap = before
    reach = abs(ball - middle).upper()
    total = arb(0)
    for i in range(order):
        total += abs(_coefficient(here, i)) * reach**i
    return (total + abs(_coefficient(there, order)) * reach**order).upper()


def _coefficient(series: arb_series, i: int) -> arb:
    listed = series.coeffs()
    return listed[i] if i < len(listed) else arb(0)


def _series(poly: arb_poly, at: arb, length: int) -> arb_series:
    total = arb_series([0], length)
    variable = arb_series([at, 1], length)
    for coefficient in reversed(poly.coeffs()):
        total = total * variable + coefficient
    return total
