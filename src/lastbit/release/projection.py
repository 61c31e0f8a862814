"""Noisy tables made to agree: exact weighted least squares, and whole tables from 0 up.

Law      noisy marginals y_A of columns with n_i keys each have uncorrelated noise of variance v_A
         in every cell. `agreeing` gives the tables z_A, for all sets A that were measured, that are
         the marginals of one (not necessarily positive) table of all columns and minimise the sum
         over A of |y_A - z_A|**2 / v_A: the best linear unbiased estimate (Gauss, Markov)
Theorem  for sets B of columns let the component c_B be the sum over all columns outside of B of the
         whole table, centred along every column of B (subtract the mean). Then
         (a) a marginal is made of components: z_A = sum over B in A of c_B / prod(n_i, i in A - B);
         (b) components of y_A for different B are uncorrelated, and that for B has the covariance
             v_A prod(n_i, i in A - B) times the projection onto tables centred in all of B;
         (c) so c_B is the mean of what the measured A that contain B say of it, each weighted by
             one over its variance: rationals throughout, no system of equations
         (d) z_A summed over a column i of A is z_(A - i): terms with i in B add up to 0, others are
             multiplied by n_i. So row sums, column sums and totals agree exactly
Proof    of (b): tables over A split into orthogonal spaces, one for each B in A (constant along
         A - B, centred along B); noise of one variance has uncorrelated parts in orthogonal spaces.
         With (a) the sum of squares splits into one sum for each B, which a weighted mean minimises
Source   the components are those of the analysis of variance; for measuring them: Xiao, He, Zhang,
         Kifer 2023 (ResidualPlanner)
Differs  v_A is the plan's upper bound of the variance, so standard errors are upper bounds. With
         other weights than the true ones the estimate stays unbiased and the tables still agree

Whole    `whole_tables`: one total N >= 0 for all; one-way tables of whole numbers from 0 up that
         add up to N, nearest in least squares before rounding; two-way tables of whole numbers from
         0 up whose rows and columns add up to just those one-way tables. Two-way tables are near
         the agreeing ones, not nearest. That one table of three or more columns has them all as
         marginals is not guaranteed
Checked  tests/release/test_projection.py: against brute force, over random tables. `lastbit check`
         checks agreement, optimality and whole numbers of a saved answer exactly
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product
from math import floor, prod
from typing import Any, TypeAlias

from flint import fmpq

from lastbit.tables import component_precision, subsets

Marginal: TypeAlias = tuple[int, ...]
Cells: TypeAlias = dict[tuple[int, ...], Fraction]
"""A table by the places of its keys."""


def cells_of(entries: Sequence[int | Fraction], sizes: Sequence[int]) -> Cells:
    """Entries in the order of declaration, the last column changing fastest, by place."""
    places = product(*(range(size) for size in sizes))
    return {at: Fraction(entry) for at, entry in zip(places, entries, strict=True)}


def summed(cells: Cells, kept: Sequence[int]) -> Cells:
    """The table summed over all axes but these.

    >>> summed(cells_of([1, 2, 3, 4], [2, 2]), [1])
    {(0,): Fraction(4, 1), (1,): Fraction(6, 1)}
    """
    found: Cells = {}
    for at, value in cells.items():
        place = tuple(at[axis] for axis in kept)
        found[place] = found[place] + value if place in found else value
    return found


def centred(cells: Cells, sizes: Sequence[int]) -> Cells:
    """The table less its means, along every axis in turn.

    >>> centred(cells_of([1, 2, 3, 6], [2, 2]), [2, 2])[1, 1]
    Fraction(1, 2)
    """
    for axis, size in enumerate(sizes):
        others = [other for other in range(len(sizes)) if other != axis]
        sums = summed(cells, others)
        cells = {
            at: value - sums[tuple(at[other] for other in others)] / size
            for at, value in cells.items()
        }
    return cells


def agreeing(
    tables: Mapping[Marginal, Sequence[int]],
    sizes: Sequence[int],
    variances: Mapping[Marginal, Fraction],
) -> dict[Marginal, list[Fraction]]:
    """The nearest tables that agree; entries in the order of declaration.

    >>> found = agreeing({(0,): [3, 5], (0, 1): [1, 1, 2, 2]}, [2, 2],
    ...                  {(0,): Fraction(1), (0, 1): Fraction(1)})
    >>> [str(n) for n in found[0,]], [str(n) for n in found[0, 1]]
    (['8/3', '14/3'], ['4/3', '4/3', '7/3', '7/3'])
    """
    measured = tuple(tables)
    spread = [variances[one] for one in measured]
    noisy = {one: _rational_cells(tables[one], [sizes[place] for place in one]) for one in measured}
    known = sorted({part for one in measured for part in subsets(one)}, key=lambda p: (len(p), p))
    components: dict[Marginal, Any] = {}
    for part in known:
        own = [sizes[place] for place in part]
        total: Any = dict.fromkeys(product(*map(range, own)), fmpq(0))
        for one in measured:
            if set(part) <= set(one):
                rest = prod(sizes[place] for place in one if place not in part)
                said: Any = summed(noisy[one], [one.index(place) for place in part])
                weight = 1 / _rational(variances[one] * rest)
                for at, value in said.items():
                    total[at] += value * weight
        precision = _rational(component_precision(part, sizes, measured, spread))
        components[part] = centred({at: v / precision for at, v in total.items()}, own)
    return {one: _marginal(one, sizes, components) for one in measured}


def _marginal(
    one: Marginal, sizes: Sequence[int], components: Mapping[Marginal, Any]
) -> list[Fraction]:
    """A marginal from its components: (a)."""
    parts = [
        (
            [one.index(place) for place in part],
            components[part],
            prod(sizes[place] for place in one if place not in part),
        )
        for part in subsets(one)
    ]
    found = []
    for at in product(*(range(sizes[place]) for place in one)):
        terms = (cells[tuple(at[axis] for axis in axes)] / rest for axes, cells, rest in parts)
        number = sum(terms, fmpq(0))
        found.append(Fraction(int(number.p), int(number.q)))
    return found


def _rational(number: Fraction) -> fmpq:
    """The same number, in the arithmetic of flint: some ten times as fast."""
    return fmpq(number.numerator, number.denominator)


def _rational_cells(entries: Sequence[int], sizes: Sequence[int]) -> Any:
    return dict(zip(product(*map(range, sizes)), map(fmpq, entries), strict=True))


# ---------------------------------------------------------------- whole numbers


def nearest_whole(values: Sequence[Fraction], total: int) -> list[int]:
    """Whole numbers from 0 up that add up to the total, near the given ones.

    Theorem  the nearest point with x >= 0 and sum T is max(v - c, 0) for one c, found by sorting
             (Held, Wolfe, Crowder 1974); it is rounded by largest remainders

    >>> nearest_whole([Fraction(5), Fraction(-2), Fraction(4)], 7)
    [4, 0, 3]
    """
    if total <= 0:
        return [0] * len(values)
    shift, running = Fraction(0), Fraction(0)
    for rank, value in enumerate(sorted(values, reverse=True), start=1):
        running += value
        candidate = (running - total) / rank
        if value > candidate:
            shift = candidate
    moved = [max(value - shift, Fraction(0)) for value in values]
    floors = [floor(number) for number in moved]
    order = sorted(range(len(moved)), key=lambda i: (floors[i] - moved[i], i))
    for i in order[: total - sum(floors)]:
        floors[i] += 1
    return floors


def whole_tables(
    tables: Mapping[Marginal, Sequence[Fraction]], sizes: Sequence[int]
) -> dict[Marginal, list[int]]:
    """Agreeing tables of one or two columns as whole numbers from 0 up that agree still."""
    some = next(iter(tables.values()))
    total = max(round(sum(some, Fraction(0))), 0)
    single: dict[int, list[int]] = {}
    for one, entries in tables.items():
        for axis, place in enumerate(one):
            cells = cells_of(entries, [sizes[p] for p in one])
            if place not in single:  # agreeing tables all say the same of it
                single[place] = nearest_whole(list(summed(cells, [axis]).values()), total)
    found: dict[Marginal, list[int]] = {}
    for one, entries in tables.items():
        if len(one) == 1:
            found[one] = single[one[0]]
        else:
            first, second = one
            found[one] = _table_with_sums(entries, single[first], single[second])
    return found


def _table_with_sums(
    entries: Sequence[Fraction], rows: Sequence[int], columns: Sequence[int]
) -> list[int]:
    """A table of whole numbers from 0 up with these sums of its rows and columns, near the entries.

    Every row is made near with its sum; columns that are too large then lose what is too much; what
    rows and columns lack after that is the same in all, and is put where the entries are furthest
    above, then anywhere.

    Theorem  it ends with the sums asked for. After the second step no sum is too large. A cell is
             raised by at most what its row lacks and what its column lacks, so none becomes too
             large; and while a row lacks something, so does a column, since both add up to N
    """
    width = len(columns)
    wanted = [list(entries[start : start + width]) for start in range(0, len(entries), width)]
    table = [nearest_whole(row, total) for row, total in zip(wanted, rows, strict=True)]
    for j, most in enumerate(columns):
        column = [row[j] for row in table]
        if sum(column) > most:
            lowered = nearest_whole([Fraction(number) for number in column], most)
            for row, before, after in zip(table, column, lowered, strict=True):
                row[j] = min(before, after)
    down = [total - sum(row) for total, row in zip(rows, table, strict=True)]
    across = [total - sum(row[j] for row in table) for j, total in enumerate(columns)]
    places = sorted(
        ((i, j) for i in range(len(rows)) for j in range(width)),
        key=lambda at: table[at[0]][at[1]] - wanted[at[0]][at[1]],
    )
    for near in (True, False):
        for i, j in places:
            lacking = floor(wanted[i][j] - table[i][j] + Fraction(1, 2)) if near else down[i]
            more = max(min(down[i], across[j], lacking), 0)
            table[i][j] += more
            down[i] -= more
            across[j] -= more
    return [number for row in table for number in row]
