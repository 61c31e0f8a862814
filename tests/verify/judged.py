"""Float code that the verify tests judge: some private, some not."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from lastbit.exact.ball import ends, working_precision
from lastbit.exact.logarithm import ln
from lastbit.mechanisms.snapping import grid_of, snapped


def naive_laplace(x: float, u: float, *, scale: float = 1.0) -> float:
    """Textbook inversion in plain floats, as in many a numpy script."""
    centred = u - 0.5
    return x - scale * math.copysign(1.0, centred) * math.log(1 - 2 * abs(centred))


def rounded_laplace(x: float, u: float, *, step: float) -> float:
    """The same, rounded to a grid and clamped."""
    near = round(naive_laplace(x, u) / step) * step
    return min(max(near, -8.0), 8.0)


def wide_snapped(value: float, u: float, sign: int, *, epsilon: float, bound: float) -> float:
    """A logarithm of 118 bits; but it is rounded to a double before it is used."""
    with working_precision(118):
        low, high = ends(_exact(u).log())
    y = float((low + high) / 2) / epsilon
    grid = grid_of(epsilon)
    return min(max(round((value + sign * y) / grid) * grid, -bound), bound)


def single_snapped(value: float, u: float, sign: int, *, epsilon: float, bound: float) -> float:
    """A mutant: the logarithm in single precision."""
    y = float(np.float32(ln(u))) / epsilon
    grid = grid_of(epsilon)
    return min(max(round((value + sign * y) / grid) * grid, -bound), bound)


def unsnapped_zero(value: float, u: float, sign: int, *, epsilon: float, bound: float) -> float:
    """A mutant: -0.0 tells the side from which 0 was reached."""
    out = snapped(value, u, sign, epsilon=epsilon, bound=bound)
    return out if out else math.copysign(0.0, value + sign * math.log(u) / epsilon)


def wave(value: float, u: float) -> float:
    """Rises, then falls."""
    return value + float(round(4 * u * (1 - u)))


def _exact(u: float):
    from flint import arb

    return arb(Fraction(u).numerator) / arb(Fraction(u).denominator)
