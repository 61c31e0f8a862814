"""Cells of means, variances and deviations by the formulas, in Fractions: slow and plain."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from math import floor
from typing import Any

from lastbit.release.intervals import Cell, Deviations, Variances
from lastbit.release.reach import _ONE, MeasureNoise, Reach, _guess, variance_interval


def ratios(numerator: int, rows: int, bounds: tuple[int, int], reach: Reach) -> tuple[int, int]:
    """As `quotient_interval`, asking `Reach.exceeded`."""
    low, high = bounds[0] * _ONE, bounds[1] * _ONE
    first = _lower_end(numerator, rows, low, high, reach)
    return first, -_lower_end(-numerator, rows, -high, -low, reach)


def _lower_end(numerator: int, rows: int, low: int, high: int, reach: Reach) -> int:
    def excluded(place: int) -> bool:
        return reach.exceeded(numerator * _ONE - place * rows, _ONE, abs(place))

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


def variance_cell(
    measure: Any,
    bounds: tuple[Fraction, Fraction],
    noises: Sequence[MeasureNoise],
    numbers: tuple[int, int, int],
    made: Variances,
) -> Cell:
    """The variance of one group, or its deviation; the reaches are those of `made`."""
    rows, values, squares = numbers
    deviation = isinstance(made, Deviations)
    most, scale = ((bounds[1] - bounds[0]) / 2) ** 2, measure.step**2
    value: Fraction | None = None
    error, low, high = Fraction(0), Fraction(0), most
    if rows > 0:
        means = ratios(values, rows, (measure.lowest, measure.highest), made.means.reach)
        ends = variance_interval(numbers, means, made.top, made.reach)
        largest = max(abs(measure.lowest), abs(measure.highest))
        ratio = _clamped(Fraction(values, rows), measure.lowest, measure.highest)
        other = _clamped(Fraction(squares, rows), 0, largest**2)
        value = _clamped(scale * (other - ratio * ratio), 0, most)
        low = min(scale * Fraction(ends[0], 1 << 40), value)
        high = max(_clamped(scale * Fraction(ends[1], 1 << 40), 0, most), value)
        slope = 2 * ratio * ratio - other
        noise = [one.variance for one in noises]
        error = noise[2] + 4 * ratio * ratio * noise[1] + slope * slope * noise[0]
        error *= (scale / rows) ** 2
    if not deviation:
        if value is None:
            return Cell(None, None, _down(low), _up(high))
        return Cell(float(value), _root_up_to(error, most / 2), _down(low), _up(high))
    start = math.nextafter(math.sqrt(low), 0.0)
    end = math.nextafter(math.sqrt(high), math.inf)
    if value is None:
        return Cell(None, None, start, end)
    half = (bounds[1] - bounds[0]) / 4
    spread = _root_up_to(error / (4 * value), half) if value > 0 else None
    return Cell(math.sqrt(value), spread, start, end)


def _clamped(number: Fraction, low: Fraction | int, high: Fraction | int) -> Fraction:
    return Fraction(min(max(number, low), high))


def _root_up_to(number: Fraction, most: Fraction) -> float:
    return float(most) if number >= most * most else math.sqrt(number)


def _up(number: Fraction) -> float:
    near = float(number)
    return math.nextafter(near, math.inf) if Fraction(near) < number else near


def _down(number: Fraction) -> float:
    return 0.0 - _up(-number)
