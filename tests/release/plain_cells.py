"""Cells of means by the formulas, in Fractions: slow and plain."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from math import floor
from typing import Any

from lastbit.release.intervals import Cell
from lastbit.release.reach import _ONE, MeasureNoise, Reach, _guess


def ratios(numerator: int, rows: int, bounds: tuple[int, int], reach: Reach) -> tuple[int, int]:
    """As `quotient_interval`, in Fractions."""
    low, high = bounds[0] * _ONE, bounds[1] * _ONE
    first = _lower_end(numerator, rows, low, high, reach)
    return first, -_lower_end(-numerator, rows, -high, -low, reach)


def _lower_end(numerator: int, rows: int, low: int, high: int, reach: Reach) -> int:
    def excluded(place: int) -> bool:
        (a, b), (p, q) = reach.shifts, reach.squares
        m = Fraction(place, _ONE)
        beyond = numerator - m * rows - Fraction(a, _ONE) - Fraction(b, _ONE) * abs(m)
        return beyond > 0 and beyond**2 > Fraction(p, _ONE**2) + Fraction(q, _ONE**2) * m**2

    if not excluded(low):
        return low
    if excluded(high):
        return high
    try:
        middle, guess = _guess(numerator, rows, reach)
        for push in (2.0**-40, 2.0**-10):
            away = push * (abs(middle - guess) + abs(middle) * 2.0**-8)
            place = floor((guess - away) * _ONE) - 1
            if low < place < high and excluded(place):
                return place
    except (OverflowError, ValueError, ZeroDivisionError):
        pass
    return low


def mean_cell(
    measure: Any,
    bounds: tuple[Fraction, Fraction],
    noises: Sequence[MeasureNoise],
    numbers: tuple[int, int],
    reach: Reach,
) -> Cell:
    """The mean of one group."""
    (least, most), (rows, values) = bounds, numbers
    if rows <= 0:
        return Cell(None, None, _down(least), _up(most))
    first, last = ratios(values, rows, (measure.lowest, measure.highest), reach)
    ratio = Fraction(values, rows)
    value = _clamped(measure.centre + measure.step * ratio, least, most)
    low = min(measure.centre + measure.step * Fraction(first, 1 << 20), value)
    high = max(measure.centre + measure.step * Fraction(last, 1 << 20), value)
    within = _clamped(ratio, measure.lowest, measure.highest)
    variance = noises[1].variance + within * within * noises[0].variance
    error = _root_up_to(variance * (measure.step / rows) ** 2, (most - least) / 2)
    return Cell(float(value), error, _down(low), _up(high))


def _clamped(number: Fraction, low: Fraction | int, high: Fraction | int) -> Fraction:
    return Fraction(min(max(number, low), high))


def _root_up_to(number: Fraction, most: Fraction) -> float:
    return float(most) if number >= most * most else math.sqrt(number)


def _up(number: Fraction) -> float:
    near = float(number)
    return math.nextafter(near, math.inf) if Fraction(near) < number else near


def _down(number: Fraction) -> float:
    return 0.0 - _up(-number)
