"""From noisy integers to numbers with error bars.

Law      value: the noisy number itself, so unbiased for counts and sums. Quotients (mean, variance)
         are quotients of noisy numbers, clamped to what is possible; missing where the noisy count
         is not above 0
Theorem  each confidence interval holds the bounded, noiseless number in at least 95 % of releases:
         - counts and sums of one measure: P[abs(noise) > a] <= 1/20 by the exact law;
         - formulas over j measures: each of them is within its own interval of failure probability
           1/(20 j), so all are at once in 95 % (union bound); then the formula lies within what
           interval arithmetic gives over that box. The true number of rows is not negative, the
           true mean lies within the bounds, the variance between 0 and the square of half the
           range: so the interval is cut there;
         - quantiles: `tables/plan/ranks.py`, Theorem 3.
         Ends are rounded outwards. Counts are rounded to whole numbers, their ends outwards too
Differs  the interval covers the noise. It does not cover what bounding, clamping and the grid did
         to the data: whether they did anything is private
Checked  tests/release/test_intervals.py

Standard errors: of counts and sums the exact deviation of the noise (for Gaussian noise the root of
its parameter, which is not below it: CKS20 Corollary 9); of quotients by the delta method, and
never more than half the range; of quantiles none, as the law of their error is that of the data.

Quotients are computed in fmpq, flint's rationals: as exact as Fractions, and quicker.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import pairwise
from types import MappingProxyType
from typing import Any, TypeAlias

from flint import fmpq

from lastbit.exact import arb_of, lower, shown, upper, working_precision
from lastbit.laws import DiscreteGaussian, DiscreteLaplace
from lastbit.release.noise import Noisy
from lastbit.tables import Aggregate, Measure, Plan, RankPart, Recipe, weight_one


@dataclass(frozen=True, slots=True)
class Cell:
    """One released number: value, standard error and the ends of the 95 % interval."""

    value: float | int | None
    standard_error: float | None
    low: float | int | None
    high: float | int | None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of the answer: one cell a key."""

    name: str
    function: str
    aggregate: str
    cells: list[Cell]
    bin: tuple[Fraction, Fraction] | None = None

    def to_json(self) -> dict[str, Any]:
        """What the record says of the column."""
        said: dict[str, Any] = {"name": self.name, "role": "value", "function": self.function}
        if self.bin is not None:
            said |= {"aggregate": self.aggregate, "bin": [str(self.bin[0]), str(self.bin[1])]}
        return said


_BETA = Fraction(1, 20)


class MeasureNoise:
    """The law of the noise on one measure: how far off, how often."""

    __slots__ = ("_bounds", "law", "variance")

    def __init__(self, law: DiscreteLaplace | DiscreteGaussian) -> None:
        self.law = law
        self._bounds: dict[Fraction, int] = {}
        if isinstance(law, DiscreteGaussian):
            self.variance = law.variance
            return
        # of Laplace noise 2q/(1-q)**2 = 1/(2 sinh(1/(2 scale))**2), rounded up
        with working_precision(128):
            half = arb_of(1 / (2 * law.scale))
            # 1/sinh(x) = 2 exp(-x)/(1 - exp(-2x)): no large numbers, whatever the scale
            inverse = 2 * (-half).exp() / -(-2 * half).expm1()
            self.variance = Fraction(upper(inverse * inverse / 2))

    def accuracy(self, beta: Fraction) -> int:
        """The least a with P[abs(noise) > a] <= beta, exactly."""
        if beta not in self._bounds:
            self._bounds[beta] = max(self.law.quantile(1 - beta / 2), 0)
        return self._bounds[beta]


def columns_of(plan: Plan, noisy: Noisy) -> list[Column]:
    """The columns that were asked for, made of noisy measures."""
    made = _Maker(plan, noisy)
    return [column for recipe in plan.recipes for column in made.columns(recipe)]


class _Maker:
    """All that the columns of one answer share."""

    def __init__(self, plan: Plan, noisy: Noisy) -> None:
        self.noisy = noisy
        self.measures: Mapping[str, Measure] = {m.name: m for m in plan.measures}
        self.one = weight_one(plan.card)
        self.noise: dict[str, MeasureNoise] = {}
        for part in plan.parts:
            if not isinstance(part, RankPart) and part.measure is not None:
                self.noise[part.measure] = MeasureNoise(part.law)

    def columns(self, recipe: Recipe) -> Iterator[Column]:
        part = recipe.aggregate
        if part.function != "histogram":
            cells = list(self._cells(recipe))
            yield Column(name=part.name, function=part.function, aggregate=part.name, cells=cells)
            return
        name, edges = recipe.measures["bins"], part.edges or ()
        for i, pair in enumerate(pairwise(edges)):
            counts = [bins[i] for bins in self.noisy.bins[name]]
            cells = list(_count_cells(counts, self.noise[name], self.one))
            low, high = (shown(end).strip("'") for end in pair)
            last = "]" if i == len(edges) - 2 else ")"  # letter for letter as the checker writes it
            called = f"{part.name} [{low}, {high}{last}"
            yield Column(
                name=called, function="histogram", aggregate=part.name, cells=cells, bin=pair
            )

    def _cells(self, recipe: Recipe) -> Iterable[Cell]:
        part = recipe.aggregate
        match part.function:
            case "count" | "count_units" | "count_distinct":
                (name,) = recipe.measures.values()
                one = self.one if part.function == "count" else 1
                return _count_cells(self.noisy.entries[name], self.noise[name], one)
            case "sum":
                return self._sums(recipe)
            case "mean" | "variance" | "std":
                return self._quotients(recipe, _QUOTIENTS[part.function])
            case "quantile":
                return self._quantiles(recipe)
            case "min" | "max":
                return self._extremes(recipe)
            case "histogram":
                raise AssertionError  # has a column a bin

    def _sums(self, recipe: Recipe) -> Iterator[Cell]:
        """Step times the integers, and the centre times the rows where integers are centred."""
        name, rows = recipe.measures["values"], recipe.measures.get("rows")
        measure, noise = self.measures[name], self.noise[name]
        factor = measure.step / self.one
        values = [factor * integer for integer in self.noisy.entries[name]]
        if rows is None:
            half = factor * noise.accuracy(_BETA)
            error = math.sqrt(noise.variance) * float(factor)
        else:
            centre, others = measure.centre / self.one, self.noise[rows]
            half = factor * noise.accuracy(_BETA / 2) + abs(centre) * others.accuracy(_BETA / 2)
            error = math.sqrt(factor**2 * noise.variance + centre**2 * others.variance)
            counts = self.noisy.entries[rows]
            values = [value + centre * n for value, n in zip(values, counts, strict=True)]
        for value in values:
            yield Cell(float(value), error, lower(value - half), upper(value + half))

    def _quotients(self, recipe: Recipe, cell: Callable[[Box], Cell]) -> Iterator[Cell]:
        names = [recipe.measures[kind] for kind in ("rows", "values")]
        if "squares" in recipe.measures:
            names.append(recipe.measures["squares"])
        beta = _BETA / len(names)
        noises = [self.noise[name] for name in names]
        halves = [noise.accuracy(beta) for noise in noises]
        variances = [exact(noise.variance) for noise in noises]
        measure = self.measures[recipe.measures["values"]]
        assert recipe.aggregate.bounds is not None
        low, high = map(exact, recipe.aggregate.bounds)
        for numbers in zip(*(self.noisy.entries[name] for name in names), strict=True):
            yield cell(Box(measure, (low, high), numbers, halves, variances))

    def _quantiles(self, recipe: Recipe) -> Iterator[Cell]:
        part = recipe.aggregate
        edges = self.measures[recipe.measures["bins"]].edges
        points = _points(part, edges)
        drawn = self.noisy.ranks
        value, low, high = (drawn[part.name, role] for role in ("value", "low", "high"))
        last = len(edges) - 1
        for i, first, final in zip(value, low, high, strict=True):
            start, end = edges[min(max(first, 0), last)], edges[min(max(final + 1, 0), last)]
            # where a draw failed the ends may be in disorder: the interval only ever widens
            ends = start, end, points[i]
            yield Cell(float(points[i]), None, lower(min(ends)), upper(max(ends)))

    def _extremes(self, recipe: Recipe) -> Iterator[Cell]:
        part = recipe.aggregate
        edges = self.measures[recipe.measures["bins"]].edges
        points = {-1: edges[0], len(edges) - 1: edges[-1]} | dict(enumerate(_points(part, edges)))
        for i in self.noisy.ranks[part.name, "value"]:
            if part.function == "min":
                low, high = edges[0], edges[min(i + 1, len(edges) - 1)]
            else:
                low, high = edges[max(i, 0)], edges[-1]
            yield Cell(float(points[i]), None, lower(low), upper(high))


def _count_cells(counts: Iterable[int], noise: MeasureNoise, one: int) -> Iterator[Cell]:
    half = noise.accuracy(_BETA)
    error = math.sqrt(noise.variance) / one
    for count in counts:
        value = round(Fraction(count, one))
        yield Cell(value, error, (count - half) // one, -((-count - half) // one))


def _points(part: Aggregate, edges: tuple[Fraction, ...]) -> list[Fraction]:
    """What stands for a bin: its lower edge where bins are steps of the grid, else its middle."""
    if part.step is not None and edges[1] - edges[0] == part.step:
        return list(edges[:-1])
    return [(a + b) / 2 for a, b in pairwise(edges)]


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


_QUOTIENTS: Mapping[str, Callable[[Box], Cell]] = MappingProxyType(
    {"mean": mean_cell, "variance": variance_cell, "std": deviation_cell}
)


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
