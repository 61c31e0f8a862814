"""Quantiles by the exponential mechanism, over every point of a fine public grid."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lastbit.errors import InvalidParameter
from lastbit.exact import Number, nearest, positive
from lastbit.laws import OnGrid, Stepped
from lastbit.mechanisms.lattice import lattice, power_below
from lastbit.mechanisms.mechanism import set_fields
from lastbit.privacy import CHANGE_ONE, ApproxLoss, Neighbours, PureDP, black_box
from lastbit.sampling import UniformBelow, counted, drawn_fresh, secure_bits
from lastbit.sensitivity import Quantile, Records, bounds_of, check_defined, records, relation_of

_RESOLUTION = 1 << 20
_MOST_POINTS = 1 << 40  # so that the grid is no finer than that of the records
_FINEST_LEVEL = 1 << 20
_LEAST_EPSILON = Fraction(1, 1 << 100)


class _Runs(NamedTuple):
    """Stretches of the grid on which all points have as many records below and above them."""

    starts: NDArray[np.int64]
    counts: NDArray[np.int64]
    distances: NDArray[np.int64]


@dataclass(frozen=True, slots=True, init=False)
class ExponentialQuantile:
    """Releases a point of a public grid, the likelier the nearer its rank is to the quantile's.

    Law      P[c] proportional to exp(-epsilon D(c)/(2 sensitivity)) over all points c of the grid
             between the bounds, without the 2 at the levels 0 and 1, D(c) =
             max(#{x < c} - level n, level n - #{x <= c}, 0): by how many records c misses the
             quantile
    Theorem  pure epsilon. Changing one of n records moves either count by at most 1, adding one
             moves #{x < c} - level n by 1 - level or -level: so D moves by at most the
             sensitivity, 1 for change-one, max(level, 1 - level) for add-remove, at every c. Each
             weight then moves by at most a factor exp(epsilon/2), and their sum by as much.
             *Least and greatest.* At level 0, D(c) = #{x < c}. A record that comes raises D by 0 or
             1, at all c; one that goes lowers it; one that moves up from a to b lowers it by 1 for
             a < c <= b, and nowhere raises it; one that moves down, the other way round. So all
             weights move in one direction, by factors from 1 to exp(epsilon) or from exp(-epsilon)
             to 1, their sum by a factor of the same range, and the quotient by at most exp(epsilon)
             either way. At level 1, D(c) = #{x > c}: the mirror image
    Source   McSherry, Talwar 2007; Smith 2011 for medians
    Differs  all points of a grid of a millionth of the range, in time O(n log n): points between
             two neighbouring records are alike, and are counted, not listed. The draw is exact
             (`sampling/choice.py`). Records are clamped to the bounds and rounded to the grid,
             one at a time
    Checked  tests/mechanisms/test_exponential_quantile.py

    >>> median = ExponentialQuantile("1/2", epsilon=1, lower=0, upper=500)
    >>> median.guarantee
    PureDP(epsilon=1, neighbours=Neighbours(relation='change-one', unit='record'))
    >>> 0 <= median.release([3, 5, 8, 9, 12]) <= 500
    True
    """

    level: Fraction
    epsilon: Fraction
    lower: Fraction
    upper: Fraction
    grid: Fraction
    neighbours: Neighbours

    def __init__(
        self,
        level: Number,
        *,
        epsilon: Number,
        lower: Number,
        upper: Number,
        grid: Number = "auto",
        neighbours: Neighbours = CHANGE_ONE,
    ) -> None:
        share, (low, high) = Quantile(level).level, bounds_of(lower, upper)
        if share.denominator > _FINEST_LEVEL:
            raise InvalidParameter(
                "level", problem="is finer than 2**-20", remedy='pass, say, "0.999"'
            )
        loss = positive(epsilon, "epsilon")
        if loss < _LEAST_EPSILON:
            raise InvalidParameter("epsilon", problem="is below 2**-100", remedy="pass more")
        if isinstance(grid, str) and grid == "auto":
            grid = power_below((high - low) / _RESOLUTION)
        step = lattice(positive(grid, "grid"), noise=Fraction(1), dimension=1).step
        if not 1 <= high // step + low // -step + 1 <= _MOST_POINTS:
            raise InvalidParameter(
                "grid",
                problem="has no point between the bounds, or more than 2**40",
                remedy="pass a power of two near a millionth of the range",
            )
        relation_of(neighbours)
        records([], low, high)  # refuses bounds that no record could be compared with
        set_fields(self, level=share, epsilon=loss, lower=low, upper=high, grid=step)
        set_fields(self, neighbours=neighbours)

    @property
    def guarantee(self) -> PureDP:
        """What one release promises."""
        return PureDP(self.epsilon, neighbours=self.neighbours)

    @property
    def loss(self) -> ApproxLoss:
        """What one release loses, for a `Profile`."""
        return black_box(self.guarantee)

    @property
    def rate(self) -> Fraction:
        """What one unit of `distances` costs: a part of a record, where the level is a fraction."""
        level = self.level
        sensitivity = (
            max(level, 1 - level) if relation_of(self.neighbours) == "add-remove" else Fraction(1)
        )
        ways = 1 if level in (0, 1) else 2  # in how many directions distances move
        return self.epsilon / (ways * sensitivity * level.denominator)

    def release(self, data: Any) -> float:
        """A private quantile of data."""
        runs = self._runs(self._records(data))
        which = drawn_fresh(counted(runs.counts, runs.distances, self.rate), None)
        among = UniformBelow(int(runs.counts[which]), public_bits=_MOST_POINTS.bit_length())
        place = int(runs.starts[which]) + int(among.draw(secure_bits(), 1)[0])
        return nearest(place * self.grid)

    def law(self, data: Any) -> OnGrid:
        """The exact law of release(data): as secret as the data."""
        runs = self._runs(self._records(data))
        starts, counts, distances = (tuple(part[runs.counts > 0].tolist()) for part in runs)
        return OnGrid(Stepped(starts, counts, distances, self.rate), self.grid)

    def _records(self, data: Any) -> Records:
        rows = records(data, self.lower, self.upper)
        check_defined(Quantile(self.level), relation_of(self.neighbours), rows)
        if rows.count >= 1 << 32:
            raise InvalidParameter("data", problem="holds 2**32 records", remedy="pass fewer")
        return rows

    def _runs(self, rows: Records) -> _Runs:
        """The distinct records and the gaps between them, in turn, from the first grid point on."""
        first, last = -int(self.lower // -self.grid), int(self.upper // self.grid)
        ratio = int(self.grid / rows.step)  # a power of two
        # the grid point of each record, still sorted: a map of one record at a time
        rounded = np.clip((rows.steps + ratio // 2) // ratio, first, last)
        places, below = np.unique(rounded, return_index=True)
        upto = np.append(below[1:], rows.count)[: places.size]
        edges = np.concatenate(([first - 1], places, [last + 1]))
        starts = np.empty(2 * places.size + 1, np.int64)
        counts = np.ones_like(starts)
        starts[0::2], starts[1::2] = edges[:-1] + 1, places
        counts[0::2] = np.diff(edges) - 1
        less, least = np.zeros_like(starts), np.zeros_like(starts)
        less[1::2], less[2::2] = below, upto  # records below the points of a run
        least[1::2], least[2::2] = upto, upto  # records not above them
        share, target = self.level.denominator, self.level.numerator * rows.count
        misses = np.maximum(less * share - target, target - least * share)
        return _Runs(starts, counts, np.maximum(misses, 0))
