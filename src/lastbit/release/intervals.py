"""From noisy integers to numbers with error bars.

Law      value: the noisy number itself, so unbiased for counts and sums. Quotients (mean, variance)
         are quotients of noisy numbers, clamped to what is possible; missing where the noisy count
         is not above 0
Theorem  each confidence interval holds the bounded, noiseless number in at least 95 % of releases:
         - counts and sums of one measure: P[abs(noise) > a] <= 1/20 by the exact law;
         - means: all numbers that a test at 5 % of the noise of numerator and rows does not exclude
           (`reach.py`); variances: by their joint noise (`joint.py`). The true mean lies within the
           bounds, the variance between 0 and the square of half the range: so they are cut there;
         - quantiles: `tables/plan/ranks.py`, Theorem 3; several from a tree: `tables/plan/tree.py`;
           where noise is too coarse for the reach of the tree, the bounds themselves.
         Ends are rounded outwards. Counts are rounded to whole numbers, their ends outwards too
Differs  the interval covers the noise. It does not cover what bounding, clamping and the grid did
         to the data: whether they did anything is private
Checked  tests/release/test_intervals.py

Standard errors: of counts and sums the exact deviation of the noise (for Gaussian noise the root of
its parameter, which is not below it: CKS20 Corollary 9); of quotients by the delta method, and
never more than half the range; of quantiles none, as the law of their error is that of the data.

Quotients are kept as pairs of integers, never reduced: as exact as Fractions, and quicker. Python
divides integers of any size with one correct rounding, so the floats are those of the ratio in
lowest terms.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeAlias

from lastbit.exact import lower, shown, upper
from lastbit.kernel import Noisy
from lastbit.release.ends import EndsMaker
from lastbit.release.joint import Coordinate, Joint, Quotient, linear_half
from lastbit.release.reach import BETA, MeasureNoise, quotient_interval, reach_of
from lastbit.release.taylor import Taylor, doubles
from lastbit.release.trees import Running, ranked, running, shares
from lastbit.tables import (
    Aggregate,
    GaussianPart,
    GaussianSelection,
    LaplacePart,
    Measure,
    PartitionSelection,
    Plan,
    RankPart,
    Recipe,
    TreePart,
    WrittenPlan,
    share_reach,
    tree_reach,
    weight_one,
)

_Ratio: TypeAlias = tuple[int, int]
"""Numerator and denominator above 0, not reduced."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One released number: value, standard error, ends of its noise and its whole interval."""

    value: float | int | None
    standard_error: float | None
    low: float | int | None
    high: float | int | None
    whole_low: float | int | None = None
    whole_high: float | int | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, without the whole interval: that is added to a whole record."""
        return {  # written out: `dataclasses.asdict` takes ten times as long, for every cell
            "value": self.value,
            "standard_error": self.standard_error,
            "low": self.low,
            "high": self.high,
        }


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


def columns_of(plan: Plan, noisy: Noisy) -> list[Column]:
    """The columns that were asked for, made of noisy measures."""
    made = _Maker(plan, noisy)
    return [column for recipe in plan.recipes for column in made.columns(recipe)]


def errors_of(plan: Plan) -> dict[str, Fraction]:
    """By column, the half-width of its interval before rounding: of counts and sums.

    Those of the other columns depend on the data (`expected.py`).
    """
    halves = half_widths(plan.written)
    return {name: halves[name] for name in plan.query.selected if name in halves}


def half_widths(plan: WrittenPlan, beta: Fraction = BETA) -> dict[str, Fraction]:
    """By aggregate, half of the width of every interval that misses with beta: counts and sums."""
    measures = {measure.name: measure for measure in plan.measures}
    noises = {
        part.measure: MeasureNoise(part.law)
        for part in plan.parts
        if isinstance(part, LaplacePart | GaussianPart | PartitionSelection | GaussianSelection)
    }
    halves: dict[str, Fraction] = {}
    for recipe in plan.recipes:
        names = list(recipe.measures.values())
        one = 1 if recipe.function in ("count_units", "count_distinct") else plan.weight_one
        if "above" in recipe.measures:
            ends = EndsMaker(measures[names[0]], noises[names[0]], one)
            if (half := ends.half(recipe.function, beta)) is not None:
                halves[recipe.aggregate] = half
        elif recipe.function in ("count", "count_units", "count_distinct", "histogram"):
            halves[recipe.aggregate] = Fraction(noises[names[0]].accuracy(beta), one)
        elif recipe.function == "sum":
            values = measures[recipe.measures["values"]]
            factors = [values.step, *([abs(values.centre)] if "rows" in recipe.measures else [])]
            noisy = [noises[values.name], *(noises[m] for m in names if m != values.name)]
            halves[recipe.aggregate] = linear_half(factors, noisy, beta) / one
    return halves


class _Maker:
    """All that the columns of one answer share."""

    def __init__(self, plan: Plan, noisy: Noisy) -> None:
        self.noisy, self.halves = noisy, half_widths(plan.written)
        self.measures: Mapping[str, Measure] = {m.name: m for m in plan.measures}
        self.one = weight_one(plan.card)
        self.noise: dict[str, MeasureNoise] = {}
        self.trees: dict[str, TreePart] = {}
        self.running: dict[str, list[Running]] = {}
        for part in plan.parts:
            if isinstance(part, TreePart):
                self.trees[part.measure] = part
            elif not isinstance(part, RankPart) and part.measure is not None:
                self.noise[part.measure] = MeasureNoise(part.law)

    def _ends(self, recipe: Recipe) -> EndsMaker:
        name = recipe.measures["above"]
        return EndsMaker(self.measures[name], self.noise[name], self.one)

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
        if "above" in recipe.measures:
            both = (self.noisy.entries[recipe.measures[end]] for end in ("above", "below"))
            pairs = zip(*both, strict=True)
            return [Cell(*n) for n in self._ends(recipe).cells(part.function, part.bounds, pairs)]
        match part.function:
            case "count" | "count_units" | "count_distinct":
                (name,) = recipe.measures.values()
                one = self.one if part.function == "count" else 1
                return _count_cells(self.noisy.entries[name], self.noise[name], one)
            case "sum":
                return self._sums(recipe)
            case "mean" | "variance" | "std":
                return self._quotients(recipe)
            case "quantile":
                return self._quantiles(recipe)
            case "cdf":
                return self._shares(recipe)
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
        half = self.halves[recipe.aggregate.name]
        if rows is None:
            error = math.sqrt(noise.variance) * float(factor)
        else:
            centre, others = measure.centre / self.one, self.noise[rows]
            error = math.sqrt(factor**2 * noise.variance + centre**2 * others.variance)
            counts = self.noisy.entries[rows]
            values = [value + centre * n for value, n in zip(values, counts, strict=True)]
        for value in values:
            yield Cell(float(value), error, lower(value - half), upper(value + half))

    def _quotients(self, recipe: Recipe) -> Iterator[Cell]:
        part = recipe.aggregate
        made_of = recipe.measures
        names = [made_of[kind] for kind in ("rows", "values", "squares") if kind in made_of]
        noises = [self.noise[name] for name in names]
        entries = [self.noisy.entries[name] for name in names]
        measure = self.measures[recipe.measures["values"]]
        assert part.bounds is not None
        if part.function == "mean":
            yield from map(Means(measure, part.bounds, noises), zip(*entries, strict=True))
            return
        joint = Joint(list(map(doubles, entries)), list(map(Coordinate, noises)), BETA)
        ends = zip(*joint.intervals(_variance), strict=True)
        cell = (Variances if part.function == "variance" else Deviations)(
            measure, part.bounds, noises
        )
        yield from map(cell, zip(*entries, strict=True), ends)

    def _edges(self, recipe: Recipe) -> tuple[Fraction, ...]:
        """The edges of the bins, none beyond the upper bound, where the last bin may begin."""
        assert recipe.aggregate.bounds is not None
        most = recipe.aggregate.bounds[1]
        return tuple(min(edge, most) for edge in self.measures[recipe.measures["bins"]].edges)

    def _quantiles(self, recipe: Recipe) -> Iterator[Cell]:
        part = recipe.aggregate
        edges = self._edges(recipe)
        points = _points(part, edges)
        drawn = self.noisy.ranks
        if recipe.measures["bins"] in self.trees:
            yield from self._quantiles_of_tree(recipe, edges, points)
            return
        if not part.intervals:
            for i in drawn[part.name, "value"]:
                yield Cell(float(points[i]), None, None, None)
            return
        value, low, high = (drawn[part.name, role] for role in ("value", "low", "high"))
        last = len(edges) - 1
        for i, first, final in zip(value, low, high, strict=True):
            start, end = edges[min(max(first, 0), last)], edges[min(max(final + 1, 0), last)]
            # where a draw failed the ends may be in disorder: the interval only ever widens
            ends = start, end, points[i]
            yield Cell(float(points[i]), None, lower(min(ends)), upper(max(ends)))

    def _quantiles_of_tree(
        self, recipe: Recipe, edges: tuple[Fraction, ...], points: list[Fraction]
    ) -> Iterator[Cell]:
        part, name = recipe.aggregate, recipe.measures["bins"]
        tree, groups = self.trees[name], self.noisy.trees[name]
        assert part.level is not None
        if not groups:
            return
        levels = (part.level, *(part.ends or ()))
        reaches = [tree_reach(tree.tree, tree.law, level) for level in levels]
        if name not in self.running:
            self.running[name] = list(running(tree.tree, groups))
        aimed = [
            [one for some in self.running[name] for one in ranked(some, level, reach)]
            for level, reach in zip(levels, reaches, strict=True)
        ]
        for found in zip(*aimed, strict=True):
            value, aims = found[0][0], found[1:] or (found[0], found[0])
            first, last = aims[0][1], aims[1][2]
            point = float(points[value])
            if not part.intervals:
                yield Cell(point, None, None, None)
                continue
            ends = edges[first], edges[last + 1], points[value]
            yield Cell(point, None, lower(min(ends)), upper(max(ends)))

    def _shares(self, recipe: Recipe) -> Iterator[Cell]:
        """The share of values up to a point.

        Where bins are steps of the grid, a value counts as the lower edge of its bin.
        """
        part, name = recipe.aggregate, recipe.measures["bins"]
        tree, groups = self.trees[name], self.noisy.trees[name]
        edges = self._edges(recipe)
        (point,) = part.edges or ()
        before = min(bisect_right(edges, point) - 1, len(edges) - 2)
        pair = before, before + 1
        if point == edges[-1] or (part.step is not None and edges[1] - edges[0] == part.step):
            pair = before + 1, before + 1
        if not groups:
            return
        if name not in self.running:
            self.running[name] = list(running(tree.tree, groups))
        first, last = (share_reach(tree.tree, tree.law, place) for place in pair)
        for some in self.running[name]:
            for value, low, high in shares(some, pair, (first, last)):
                known = None if value is None else float(value)
                yield Cell(known, None, lower(low), upper(high))

    def _extremes(self, recipe: Recipe) -> Iterator[Cell]:
        part = recipe.aggregate
        edges = self._edges(recipe)
        points = {-1: edges[0], len(edges) - 1: edges[-1]} | dict(enumerate(_points(part, edges)))
        for i in self.noisy.ranks[part.name, "value"]:
            if part.function == "min":
                low, high = edges[0], edges[min(i + 1, len(edges) - 1)]
            else:
                low, high = edges[max(i, 0)], edges[-1]
            yield Cell(float(points[i]), None, lower(low), upper(high))


def _count_cells(counts: Iterable[int], noise: MeasureNoise, one: int) -> Iterator[Cell]:
    half = noise.accuracy(BETA)
    error = math.sqrt(noise.variance) / one
    for count in counts:
        value = round(Fraction(count, one))
        yield Cell(value, error, (count - half) // one, -((-count - half) // one))


def _points(part: Aggregate, edges: tuple[Fraction, ...]) -> list[Fraction]:
    """What stands for a bin: its lower edge where bins are steps of the grid, else its middle."""
    if part.step is not None and edges[1] - edges[0] == part.step:
        return list(edges[:-1])
    return [(a + b) / 2 for a, b in pairwise(edges)]


class Means:
    """Cells of means: the centre and the quotient of noisy values by noisy rows."""

    def __init__(
        self,
        measure: Measure,
        bounds: tuple[Fraction, Fraction],
        noises: Sequence[MeasureNoise],
        beta: Fraction = BETA,
    ) -> None:
        self.within = measure.lowest, measure.highest
        (self.centre, self.step, self.least, self.most), self.unit = over_one_unit(
            measure.centre, measure.step, *bounds
        )
        (self.of_rows, self.of_values), self.noise_unit = over_one_unit(
            *(noise.variance for noise in noises)
        )
        self.nothing = Cell(None, None, _down(*_ratio(bounds[0])), _up(*_ratio(bounds[1])))
        largest = max(abs(measure.lowest), abs(measure.highest))
        self.reach = reach_of([noises[1], noises[0]], beta, ratios=[largest])

    def ratios(self, rows: int, values: int) -> tuple[int, int]:
        """Where the true (values)/(rows) lies, times 2**20."""
        return quotient_interval(values, rows, self.within, self.reach)

    def __call__(self, numbers: tuple[int, ...]) -> Cell:
        rows, values = numbers
        if rows <= 0:
            return self.nothing
        first, last = self.ratios(rows, values)
        centre, step, unit = self.centre, self.step, self.unit
        least, most = self.least * rows, self.most * rows
        value = min(max(centre * rows + step * values, least), most)  # over unit * rows
        bottom = unit * rows
        low, high = (centre << 20) + step * first, (centre << 20) + step * last  # over unit << 20
        start, end = (low, unit << 20), (high, unit << 20)
        if low * rows > value << 20:
            start = value, bottom
        if high * rows < value << 20:
            end = value, bottom
        clamped = min(max(values, self.within[0] * rows), self.within[1] * rows)
        square = rows * rows
        spread = (self.of_values * square + self.of_rows * clamped * clamped) * step * step
        error = _root_up_to(
            spread,
            self.noise_unit * unit * unit * square * square,
            self.most - self.least,
            2 * unit,
        )
        return Cell(value / bottom, error, _down(*start), _up(*end))


class Variances:
    """Cells of variances: the mean of the squares less the square of the mean, all noisy."""

    def __init__(
        self,
        measure: Measure,
        bounds: tuple[Fraction, Fraction],
        noises: Sequence[MeasureNoise],
    ) -> None:
        self.within, self.scale = (measure.lowest, measure.highest), measure.step**2
        self.half, self.noise = (bounds[1] - bounds[0]) / 2, [noise.variance for noise in noises]

    def __call__(self, numbers: tuple[int, ...], ends: tuple[float, float]) -> Cell:
        """The cell by noisy rows, values and squares, and where the variance of integers lies."""
        (rows, values, squares), most = numbers, self.half**2
        if rows <= 0:
            return self.cell(None, Fraction(0), (Fraction(0), most))
        mean = _clamped(Fraction(values, rows), *self.within)
        other = _clamped(Fraction(squares, rows), 0, max(end**2 for end in self.within))
        value = _clamped(self.scale * (other - mean**2), 0, most)
        of_rows, of_values, of_squares = self.noise
        error = of_squares + 4 * mean**2 * of_values + (2 * mean**2 - other) ** 2 * of_rows
        known = [self.scale * Fraction(end) if math.isfinite(end) else None for end in ends]
        low = Fraction(0) if known[0] is None else min(max(known[0], Fraction(0)), value)
        high = most if known[1] is None else max(min(known[1], most), value)
        return self.cell(value, error * (self.scale / rows) ** 2, (low, high))

    def cell(self, value: Fraction | None, error: Fraction, ends: tuple[Fraction, ...]) -> Cell:
        """The variance, the variance of its error, and the ends of its interval."""
        low, high = lower(ends[0]), upper(ends[1])
        if value is None:
            return Cell(None, None, low, high)
        return Cell(float(value), math.sqrt(min(error, self.half**4 / 4)), low, high)


class Deviations(Variances):
    """Cells of deviations: the root of the variance; its error is that over twice the root."""

    def cell(self, value: Fraction | None, error: Fraction, ends: tuple[Fraction, ...]) -> Cell:
        # two roundings of half a unit in the last place at most: one unit outwards covers both
        low, high = (
            math.nextafter(math.sqrt(ends[0]), 0.0),
            math.nextafter(math.sqrt(ends[1]), math.inf),
        )
        if value is None:
            return Cell(None, None, low, high)
        spread = math.sqrt(min(error / (4 * value), self.half**2 / 4)) if value else None
        return Cell(math.sqrt(value), spread, low, high)


def _clamped(number: Fraction, low: Fraction | int, high: Fraction | int) -> Fraction:
    return Fraction(min(max(number, low), high))


def _variance(variables: list[Taylor]) -> Quotient:
    rows, values, squares = variables
    return squares - values * values / rows, rows


def over_one_unit(*numbers: Fraction) -> tuple[list[int], int]:
    """The numbers as whole multiples of 1/unit, and the unit.

    >>> over_one_unit(Fraction(1, 2), Fraction(5, 3))
    ([3, 10], 6)
    """
    unit = math.lcm(*(number.denominator for number in numbers))
    return [number.numerator * (unit // number.denominator) for number in numbers], unit


def _ratio(number: Fraction) -> _Ratio:
    return number.numerator, number.denominator


def _root_up_to(top: int, bottom: int, most: int, unit: int) -> float:
    """The root of top/bottom, or most/unit if less: compared before any float could overflow."""
    if top * unit * unit >= most * most * bottom:
        return most / unit
    return math.sqrt(top / bottom)


def _up(top: int, bottom: int) -> float:
    """The least float not below: one correctly rounded division, and one exact look."""
    near = top / bottom
    p, q = near.as_integer_ratio()
    return math.nextafter(near, math.inf) if p * bottom < top * q else near


def _down(top: int, bottom: int) -> float:
    return 0.0 - _up(-top, bottom)
