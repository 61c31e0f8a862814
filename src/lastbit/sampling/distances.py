"""How far below the greatest each exponent lies, in floats rounded once."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Exponents", "distances_below"]

Exponents: TypeAlias = NDArray[Any] | Sequence[Fraction]
"""Integers or float64 in a numpy vector, or rationals."""


def distances_below(exponents: Exponents) -> tuple[NDArray[np.float64], Fraction]:
    """Greatest exponent minus each, correctly rounded to floats, and the greatest itself.

    Theorem  a difference of two floats is correctly rounded; one of 64-bit integers is exact modulo
             2**64, and as it lies in 0 ... 2**64 - 1 exact altogether, then rounded once
    Checked  tests/laws/test_choice.py, tests/mechanisms/test_permute_and_flip.py
    """
    if not isinstance(exponents, np.ndarray):
        most = max(exponents)
        return np.array([_nearest(most - e) for e in exponents], np.float64), most
    greatest = exponents.max()
    if exponents.dtype.kind == "f":
        return greatest - exponents, Fraction(float(greatest))
    apart = greatest.astype(np.uint64) - exponents.astype(np.uint64)
    return apart.astype(np.float64), Fraction(int(greatest))


def _nearest(number: Fraction) -> float:
    """The nearest float; a distance beyond all floats is infinite."""
    try:
        return number.numerator / number.denominator
    except OverflowError:
        return float("inf")
