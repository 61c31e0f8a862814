"""Means, variances and deviations of noisy numbers, with what interval arithmetic proves of them.

All in fmpq, flint's rationals: as exact as Fractions, and quicker. `intervals.py` has the theorem.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from flint import fmpq

from lastbit.release.cells import Cell
from lastbit.tables.measures import Measure

__all__ = ["Box", "deviation_cell", "exact", "mean_cell", "variance_cell"]

Interval: TypeAlias = tuple[fmpq, fmpq]


@dataclass(frozen=True, slots=True)
class Box:
    """Noisy rows, values (and squares) of one key, and how far each may be off."""

    measure: Measure
    bounds: tuple[fmpq, fmpq]
    numbers: tuple[int, ...]
    halves: list[int]
    variances: list[fmpq]

    def ratio(self, i: int, low: int, high: int) -> Interval:
        """Where (measure i)/(rows) lies, given that it lies between low and high at all.

        It is first/rows ... last/rows for some number of rows between the two ends, not below 0:
        each end of the quotient is reached at one of them, and is infinite if that is 0.
        """
        least, most = max(self.numbers[0] - self.halves[0], 0), self.numbers[0] + self.halves[0]
        first, last = self.numbers[i] - self.halves[i], self.numbers[i] + self.halves[i]
        if most <= 0:
            return fmpq(low), fmpq(high)
        start, end = most if first >= 0 else least, most if last <= 0 else least
        return (
            _clamped(fmpq(first, start), low, high) if start else fmpq(low),
            _clamped(fmpq(last, end), low, high) if end else fmpq(high),
        )


def _clamped(number: fmpq, low: int | fmpq, high: int | fmpq) -> fmpq:
    return fmpq(low) if number < low else fmpq(high) if number > high else number


def mean_cell(box: Box) -> Cell:
    """The centre and the quotient of noisy values by noisy rows."""
    measure, (least, most) = box.measure, box.bounds
    rows, values = box.numbers
    if rows <= 0:
        return Cell(None, None, _down(least), _up(most))
    centre, step = exact(measure.centre), exact(measure.step)
    first, last = box.ratio(1, measure.lowest, measure.highest)
    ratio = fmpq(values, rows)
    value = _clamped(centre + step * ratio, least, most)
    low, high = min(centre + step * first, value), max(centre + step * last, value)
    within = _clamped(ratio, measure.lowest, measure.highest)
    variance = (box.variances[1] + within * within * box.variances[0]) * (step / rows) ** 2
    error = _root_up_to(variance, (most - least) / 2)
    return Cell(_nearest(value), error, _down(low), _up(high))


def _variance_parts(box: Box) -> tuple[fmpq | None, fmpq, Interval, fmpq]:
    """The variance, the variance of its error, its interval and its greatest value."""
    measure = box.measure
    most = ((box.bounds[1] - box.bounds[0]) / 2) ** 2
    rows, values, squares = box.numbers
    if rows <= 0:
        return None, fmpq(0), (fmpq(0), most), most
    largest = max(abs(measure.lowest), abs(measure.highest)) ** 2
    first, last = box.ratio(1, measure.lowest, measure.highest)
    square = box.ratio(2, 0, largest)
    far = max(first * first, last * last)
    near = fmpq(0) if first <= 0 <= last else min(first * first, last * last)
    scale = exact(measure.step**2)
    ratio = _clamped(fmpq(values, rows), measure.lowest, measure.highest)
    other = _clamped(fmpq(squares, rows), 0, largest)
    value = _clamped(scale * (other - ratio * ratio), 0, most)
    low = min(_clamped(scale * (square[0] - far), 0, most), value)
    high = max(_clamped(scale * (square[1] - near), 0, most), value)
    slope = 2 * ratio * ratio - other
    noise = box.variances
    error = noise[2] + 4 * ratio * ratio * noise[1] + slope * slope * noise[0]
    return value, error * (scale / rows) ** 2, (low, high), most


def variance_cell(box: Box) -> Cell:
    """The mean of the squares less the square of the mean, all of them noisy."""
    value, error, (low, high), most = _variance_parts(box)
    if value is None:
        return Cell(None, None, _down(low), _up(high))
    spread = _root_up_to(error, most / 2)
    return Cell(_nearest(value), spread, _down(low), _up(high))


def deviation_cell(box: Box) -> Cell:
    """The root of the variance; its error is that of the variance over twice the root."""
    value, error, (low, high), _ = _variance_parts(box)
    # two roundings of half a unit in the last place at most: one unit outwards covers both
    start = math.nextafter(_square_root(low), 0.0)
    end = math.nextafter(_square_root(high), math.inf)
    if value is None:
        return Cell(None, None, start, end)
    half = (box.bounds[1] - box.bounds[0]) / 4  # of the root of `most`
    spread = _root_up_to(error / (4 * value), half) if value > 0 else None
    return Cell(_square_root(value), spread, start, end)


def exact(number: Fraction) -> fmpq:
    """The same number."""
    return fmpq(number.numerator, number.denominator)


def _nearest(number: fmpq) -> float:
    return int(number.p) / int(number.q)


def _square_root(number: fmpq) -> float:
    return math.sqrt(_nearest(number))


def _root_up_to(number: fmpq, most: fmpq) -> float:
    """The root, or `most` where that is less: compared before any float could overflow."""
    return _nearest(most) if number >= most * most else _square_root(number)


def _up(number: fmpq) -> float:
    """The least float not below: one correctly rounded division, and one exact look."""
    near = _nearest(number)
    top, bottom = near.as_integer_ratio()
    return math.nextafter(near, math.inf) if top * number.q < number.p * bottom else near


def _down(number: fmpq) -> float:
    return 0.0 - _up(-number)
