"""What bounds that lastbit chose leave out: how far beyond them values lie, by the profile.

A steward's bounds say where values lie. Chosen bounds are those for which noise and clamping are
least together: they move values on purpose, and noise hides others farther out.

Set-up   bins of a column's values, by powers of two and their middles, with noisy numbers c of
         units; the rows of a unit share its 1. Bounds [a, b], values v
Law      of the stretch of bins that stands out, counts and middles are taken as they are; so are
         counts above 0 up to the last bins that are clear of noise together. From octave to octave
         beyond them units thin out as before, by `_THINS` at most and faster where
         fewer are counted, until less than half a unit is left. With these numbers of units
             above   the mean of (v - b)+      size   the mean of abs(v), clamped
             below   the mean of (a - v)+      squares   what clamping takes from mean squares
Theorem  it is a function of released counts: post-processing, and free. No proof rests on it: it
         only widens whole intervals, and stands below them by name (`values_thin_out`)
Law      with t = above/size a sum or mean [low, high] ends at high + t max(abs(low), abs(high)). Of
         a group it is more where its mean is nearer to b than the table's: all values of a group
         whose mean is b may be clamped, and then lie above/P[v > b] beyond it on average; between
         the two the fourth power of the distance tells. The lower end is the mirror image
Law      an expression of one column has its values at those of the histogram. Of several columns
         each may move it by its part, either way unless the expression is one of them
Differs  rows of units with many rows may have other values than rows of others; a group may have
         farther values than the table (`group_like_table`). A steward's bounds are believed
Checked  tests/release/test_clamped.py
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from lastbit.release.formulas import DOUBLES, evaluate
from lastbit.release.profile import Profile, Values
from lastbit.release.rows_per_unit import Noise, RowsPerUnit, clear_end
from lastbit.tables import (
    Column,
    ColumnName,
    DataCard,
    Expression,
    PerUnit,
    Query,
    UnitColumn,
    columns_in,
)

LARGEST = Fraction(2) ** 40
"""The last bins that have a middle end here."""
_THINS, _STEEPER, _SEEN, _LEAST = 0.4, 2.0, 0.5, 0.25
"""At most this part of the units of an octave is in the next one; deviations of the noise of an
octave that are added to the last one that stands out, and to those beyond; how much steeper a tail
becomes in an octave at most.

Tried on 21 columns of 12 real tables, with noise of scale 12: less was said than is clamped in 0 to
3 of 20 releases of 16 columns, in 7 to 10 of four, and in most of one whose values are 0 in 95 of
100 rows; whole intervals add noise, and hold oftener. Twice as much beyond misses half as often,
and makes means of what ends abruptly, as marks do, half as wide again.
"""
_LEFT, _NEARER = 0.5, 4
_WINDOWS = (1, 2, 4, 8, 16)
"""Bins in a row that may be clear of noise together, beyond those that stand out: in fifty octaves
a few values in a hundred can be one or two units a bin.
"""

Bounds = tuple[Fraction, Fraction]
Cell = tuple[float, float]
"""A value, and about how many units have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clamped:
    """What bounds do to the values of a column, on average over all of them."""

    bounds: tuple[float, float]
    above: float
    below: float
    size: float
    mean: float
    """Of the values as they are clamped."""
    farther: tuple[float, float]
    """How far beyond the lower and upper bound those are that lie there."""
    squares: float
    """By how much the mean square distance from the mean falls."""

    @property
    def parts(self) -> tuple[float, float]:
        """What is clamped below and above, in parts of the size of a value."""
        return self.below / self.size, self.above / self.size

    def strays(self, low: float, high: float) -> tuple[float, float]:
        """How far below and above a group's mean, within low and high, the mean of all may be."""
        least, greatest = self.bounds
        near = _nearness(high, self.mean, greatest), _nearness(-low, -self.mean, -least)
        largest = max(abs(low), abs(high))
        plain = (part * largest for part in self.parts)
        more = (near[1] * self.farther[0], near[0] * self.farther[1])
        below, above = (max(a, b) for a, b in zip(plain, more, strict=True))
        return below, above


def _nearness(mean: float, usual: float, bound: float) -> float:
    """What part of the way it is from the usual mean to the bound, to a power."""
    if mean <= usual or bound <= usual:
        return 0.0
    return min((mean - usual) / (bound - usual), 1.0) ** _NEARER


def clamped_by(values: Values, bounds: Bounds, step: Fraction | None = None) -> Clamped:
    """What these bounds do, by the histogram of a column."""
    return _clamped([*visible_cells(values, step), *hidden_cells(values)], bounds)


def clamped_units(numbers: RowsPerUnit, most: int) -> Clamped | None:
    """What a bound does to the number of rows of a unit, by the histogram of rows per unit.

    None: units have more than any bin that ends, and nothing says how many.
    """
    if numbers.is_open:
        return None
    known = _clamped(numbers.cells, (Fraction(0), Fraction(most)))
    units = max(math.fsum(n for _, n in numbers.cells), 1.0)
    above = known.above + numbers.hidden(most) / units
    farther = (0.0, max(known.farther[1], above))
    wide = known.squares + (above - known.above) * 2 * numbers.farthest
    return Clamped(
        bounds=known.bounds,
        above=above,
        below=0.0,
        size=known.size,
        mean=known.mean,
        farther=farther,
        squares=max(wide, known.squares),
    )


def clamped_jointly(clamps: Sequence[Clamped], bounds: Bounds, *, rising: bool = False) -> Clamped:
    """What clamping several columns does to an expression of them: each may move it as far.

    Either way, unless it rises with each of them, and all that it adds up has one sign.
    """
    most = math.prod(1 + max(one.parts) for one in clamps) - 1
    below = math.prod(1 + one.parts[0] for one in clamps) - 1
    size = max(map(abs, map(float, bounds))) / 3  # as large as values usually are
    return Clamped(
        bounds=(float(bounds[0]), float(bounds[1])),
        above=most * size,
        below=(below if rising and bounds[0] >= 0 else most) * size,
        size=size or 1.0,
        mean=0.0,
        farther=(0.0, 0.0),
        squares=((1 + most) ** 2 - 1) * size**2,
    )


def _clamped(cells: Sequence[Cell], bounds: Bounds) -> Clamped:
    low, high = map(float, bounds)
    units = math.fsum(n for _, n in cells) or 1.0
    inside = [(min(max(value, low), high), n) for value, n in cells]
    mean = math.fsum(value * n for value, n in inside) / units
    above = [(value - high, n) for value, n in cells if value > high]
    below = [(low - value, n) for value, n in cells if value < low]
    pairs = zip(cells, inside, strict=True)
    taken = [((v - mean) ** 2 - (w - mean) ** 2) * n for (v, n), (w, _) in pairs]
    return Clamped(
        bounds=(low, high),
        above=_dot(above) / units,
        below=_dot(below) / units,
        size=math.fsum(abs(value) * n for value, n in inside) / units or 1.0,
        mean=mean,
        farther=(_mean(below), _mean(above)),
        squares=math.fsum(taken) / units,
    )


def _dot(cells: Sequence[Cell]) -> float:
    return math.fsum(value * n for value, n in cells)


def _mean(cells: Sequence[Cell]) -> float:
    units = math.fsum(n for _, n in cells)
    return _dot(cells) / units if units else 0.0


# ---------------------------------------------------------------- of a question

MOVED = ("sum", "mean", "variance", "std")
"""What clamped values move."""


def clamps_of(query: Query, card: DataCard, profile: Profile) -> dict[str, Clamped | None]:
    """What bounds that lastbit chose clamp, by the aggregates that read such columns.

    None: lastbit chose them, and no histogram here says how much they clamp.
    """
    known: dict[str, Clamped | None] = {}
    for part in query.aggregates:
        if part.function not in MOVED or part.expression is None or part.bounds is None:
            continue
        read: list[Clamped | None]
        if query.per_unit is None:
            rising, read = False, _clamps(part.expression, card, profile)
            alone = _clamp_alone(part.expression, part.bounds, card, profile)
        else:
            given = part.expression, part.bounds, query.per_unit
            rising, read, alone = _clamps_of_units(*given, card, profile)
        clamps = [one for one in read if one is not None]
        if read:
            joint = clamped_jointly(clamps, part.bounds, rising=rising)
            known[part.name] = None if len(clamps) < len(read) else alone or joint
    return known


def _chosen_columns(expression: Expression | None, card: DataCard) -> list[Column]:
    """The columns that lastbit has bounded, as often as an expression reads them."""
    parts = () if expression is None else columns_in(expression)
    columns = (card.column(one.name) for one in parts if one.table is None)
    return [column for column in columns if column.bounds_chosen]


def _clamps(
    expression: Expression | None, card: DataCard, profile: Profile
) -> list[Clamped | None]:
    """Of each of these columns; None where no histogram says it."""
    found: list[Clamped | None] = []
    for column in _chosen_columns(expression, card):
        values, bounds = profile.values.get(column.name.lower()), column.number_bounds
        if values is None or bounds is None:
            found.append(None)
        else:
            found.append(clamped_by(values, bounds, column.step))
    return found


def _clamp_alone(
    expression: Expression, bounds: Bounds, card: DataCard, profile: Profile
) -> Clamped | None:
    """Of an expression of one column, by what it makes of the values; None if that is not known."""
    names = {(one.table, one.name.lower()) for one in columns_in(expression)}
    if len(names) != 1 or not (columns := _chosen_columns(expression, card)):
        return None
    values, step = profile.values.get(columns[0].name.lower()), columns[0].step
    if values is None:
        return None
    cells = [*visible_cells(values, step), *hidden_cells(values)]
    ((_, name),) = names
    made = [(evaluate(expression, {name: value}, DOUBLES), units) for value, units in cells]
    if any(one is None for one, _ in made):  # it is missing there, or of text or dates
        return None
    return _clamped([(float(one), units) for one, units in made], bounds)


def _clamps_of_units(
    expression: Expression, bounds: Bounds, inner: PerUnit, card: DataCard, profile: Profile
) -> tuple[bool, list[Clamped | None], Clamped | None]:
    """Whether it rises with them all, of each, and of the number of rows where it is only that."""
    rising, read = isinstance(expression, ColumnName), list[Clamped | None]()
    alone: Clamped | None = None
    parted = bool(inner.joins or inner.keys)  # the histograms are not of rows that join, or of keys
    for one in (part for named in columns_in(expression) for part in _meant(named, inner)):
        if one.function not in ("count", "count_distinct"):
            own = _clamps(one.expression, card, profile)
            read += [None] * len(own) if parted else own
            rising &= isinstance(one.expression, ColumnName)
        elif profile.rows is not None and not parted:
            if isinstance(expression, ColumnName):
                alone = clamped_units(profile.rows, math.floor(bounds[1]))
            read.append(alone)
    return rising, read, alone


def _meant(named: ColumnName, inner: PerUnit) -> Iterator[UnitColumn]:
    return (one for one in inner.columns if one.name.lower() == named.name.lower())


# ---------------------------------------------------------------- where values are


def visible_cells(values: Values, step: Fraction | None = None) -> list[Cell]:
    """The middles of the bins that stand out of the noise, with their units."""
    edges, grid = values.edges, step or Fraction(0)
    cells = []
    for place, count in enumerate(values.likely):
        if count:
            low, high = within_reach(edges[place]), within_reach(edges[place + 1])
            # the last value of a bin is a step before its end
            last = high - grid if high - low >= grid else high
            cells.append((float(low + last) / 2, float(count)))
    return cells


def hidden_cells(values: Values) -> list[Cell]:
    """Where values may be that noise hides, on both sides of the bins that stand out."""
    edges, counts, likely = list(values.edges), list(values.counts), values.likely
    there = [place for place, count in enumerate(likely) if count]
    rising = _thinning(edges, counts, there[-1] + 1, values.noise)
    mirrored = [-edge for edge in reversed(edges)]
    falling = _thinning(mirrored, counts[::-1], len(counts) - there[0], values.noise)
    return [*rising, *((-value, n) for value, n in falling)]


def _thinning(
    edges: Sequence[Fraction], counts: Sequence[int], start: int, noise: Noise
) -> Iterator[Cell]:
    """Beyond the bins before `start`, which are values above 0, two bins an octave."""
    zero = bisect_left(edges, 0)
    if start <= zero:  # what lies between the values and 0 is nearer than they are
        return
    end = clear_end(counts[:-1], start, noise, _WINDOWS)  # the last bin has no middle
    for place in range(start, end):
        yield float(edges[place] + edges[place + 1]) / 2, float(max(counts[place], 0))
    start, spread = end, math.sqrt(2 * noise.spread)
    units = float(max(sum(counts[max(start - 2, zero) : start]), 1))
    before = sum(counts[start - 4 : start - 2]) if start - 4 > zero else 0
    rate = min(_THINS, (units + _STEEPER * spread) / max(before, 1))
    for place in range(start, len(counts) - 1, 2):
        octave = range(place, min(place + 2, len(counts) - 1))
        seen = max(sum(counts[one] for one in octave), 0) + _SEEN * spread
        rate = max(min(rate, seen / units), _LEAST * rate)
        units = min(units * rate, seen)
        if units < _LEFT:
            return
        parts = [rate ** (n / 2) for n in range(len(octave))]
        for one, part in zip(octave, parts, strict=True):
            yield float(edges[one] + edges[one + 1]) / 2, units * part / sum(parts)


def within_reach(edge: Fraction) -> Fraction:
    """The edge, or the farthest one that has a middle."""
    return max(-LARGEST, min(edge, LARGEST))
