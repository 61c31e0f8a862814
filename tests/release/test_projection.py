"""Tables that agree: against a linear system solved by another library, and by their properties."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import prod
from typing import Any

import pytest
from flint import fmpq, fmpq_mat
from hypothesis import given, settings, strategies as st

from lastbit.checker.numbers import Rejected
from lastbit.checker.tables import _check_agreement, _check_nearest
from lastbit.release.projection import agreeing, cells_of, nearest_whole, summed, whole_tables
from lastbit.tables.plan.marginals import consistent_variances, marginals_up_to

Marginal = tuple[int, ...]


@st.composite
def problems(draw: Any) -> tuple[list[int], dict[Marginal, list[int]], dict[Marginal, Fraction]]:
    """Sizes, noisy tables of some sets of columns, and their variances."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    every = marginals_up_to(len(sizes), min(2, len(sizes)))
    chosen = draw(st.lists(st.sampled_from(every), min_size=1, unique=True))
    noisy = {
        one: draw(st.lists(st.integers(-40, 200), min_size=n, max_size=n))
        for one in chosen
        for n in [prod(sizes[place] for place in one)]
    }
    spread = {one: Fraction(draw(st.integers(1, 9)), draw(st.integers(1, 4))) for one in chosen}
    return sizes, noisy, spread


def by_linear_algebra(
    sizes: list[int], noisy: dict[Marginal, list[int]], spread: dict[Marginal, Fraction]
) -> dict[Marginal, list[Fraction]]:
    """Marginals of a table x of all columns with M'VM x = M'V y; some of x is set to 0."""
    cells = list(product(*(range(size) for size in sizes)))
    lines, right, weight = [], [], []
    for one, entries in noisy.items():
        places = list(product(*(range(sizes[place]) for place in one)))
        for at, entry in zip(places, entries, strict=True):
            lines.append([int(tuple(cell[p] for p in one) == at) for cell in cells])
            right.append(entry)
            weight.append(1 / spread[one])
    basis = independent(lines, len(cells))
    rows = [[line[j] for j in basis] for line in lines]
    normal = [
        [sum((w * r[i] * r[j] for r, w in zip(rows, weight, strict=True)), Fraction(0)) for j in
         range(len(basis))] for i in range(len(basis))
    ]  # fmt: skip
    target = [
        sum((w * r[i] * y for r, w, y in zip(rows, weight, right, strict=True)), Fraction(0))
        for i in range(len(basis))
    ]
    size = len(basis)
    left = fmpq_mat(size, size, [_q(value) for line in normal for value in line])
    found = left.solve(fmpq_mat(size, 1, [_q(value) for value in target]))
    x = [Fraction(int(found[i, 0].p), int(found[i, 0].q)) for i in range(size)]
    fitted = iter([sum((a * b for a, b in zip(row, x, strict=True)), Fraction(0)) for row in rows])
    return {one: [next(fitted) for _ in entries] for one, entries in noisy.items()}


def _q(value: Fraction) -> fmpq:
    return fmpq(value.numerator, value.denominator)


def independent(lines: list[list[int]], width: int) -> list[int]:
    """The places of columns that are a basis of all columns."""
    matrix = fmpq_mat(len(lines), width, [fmpq(value) for line in lines for value in line])
    reduced, rank = matrix.rref()
    return [next(j for j in range(width) if reduced[i, j] != 0) for i in range(rank)]


@settings(max_examples=60)
@given(problems())
def test_it_is_the_solution_of_the_linear_system(problem: Any) -> None:
    sizes, noisy, spread = problem
    assert agreeing(noisy, sizes, spread) == by_linear_algebra(sizes, noisy, spread)


@settings(max_examples=60)
@given(problems())
def test_the_checker_finds_it_agreeing_and_nearest(problem: Any) -> None:
    sizes, noisy, spread = problem
    found = agreeing(noisy, sizes, spread)
    raw, near = (_placed(tables, sizes) for tables in (noisy, found))
    _check_agreement(near, "consistent")
    _check_nearest(raw, near, spread, sizes)
    whole = whole_tables(found, sizes)
    _check_agreement(_placed(whole, sizes), "whole")
    assert min(n for table in whole.values() for n in table) >= 0


def test_the_checker_sees_tables_that_agree_but_are_not_nearest() -> None:
    sizes, one = [2, 2], Fraction(1)
    noisy: dict[Marginal, list[int]] = {(0,): [5, 3], (0, 1): [1, 2, 3, 4]}
    found = agreeing(noisy, sizes, {(0,): one, (0, 1): one})
    raw, near = _placed(noisy, sizes), _placed(found, sizes)
    for shift in ([1, -1, 0, 0], [1, 0, -1, 0], [1, 1, 1, 1]):
        moved = {at: n + d for (at, n), d in zip(near[0, 1].items(), shift, strict=True)}
        other = {(0, 1): moved, (0,): summed(moved, [0])}
        _check_agreement(other, "consistent")
        with pytest.raises(Rejected, match="nearest"):
            _check_nearest(raw, other, {(0,): one, (0, 1): one}, sizes)
    with pytest.raises(Rejected, match="nearest"):  # weighted by other variances
        _check_nearest(raw, near, {(0,): 2 * one, (0, 1): one}, sizes)


def _placed(tables: Any, sizes: list[int]) -> Any:
    return {one: cells_of(table, [sizes[p] for p in one]) for one, table in tables.items()}


@settings(max_examples=40)
@given(problems())
def test_tables_that_agree_already_stay(problem: Any) -> None:
    sizes, noisy, spread = problem
    found = agreeing(noisy, sizes, spread)
    scale = prod(number.denominator for table in found.values() for number in table)
    again = {one: [int(number * scale) for number in table] for one, table in found.items()}
    assert agreeing(again, sizes, spread) == again


@settings(max_examples=40)
@given(problems(), st.integers(0, 50))
def test_whole_tables_that_agree_stay_as_they_are(problem: Any, seed: int) -> None:
    sizes, noisy, _ = problem
    everything = [(seed * 7 + 13 * i * i) % 11 for i in range(prod(sizes))]
    cells = cells_of(everything, sizes)
    tables = {one: list(summed(cells, one).values()) for one in noisy}
    assert whole_tables(tables, sizes) == tables


@settings(max_examples=30)
@given(problems())
def test_variances_are_those_of_the_linear_map(problem: Any) -> None:
    """Each entry of the answer is linear in the noise; the coefficients are found one by one."""
    sizes, noisy, spread = problem
    total = {one: [Fraction(0)] * len(entries) for one, entries in noisy.items()}
    for one, entries in noisy.items():
        for place in range(len(entries)):
            unit = {other: [0] * len(table) for other, table in noisy.items()}
            unit[one][place] = 1
            for other, table in agreeing(unit, sizes, spread).items():
                for at, number in enumerate(table):
                    total[other][at] += number**2 * spread[one]
    sets = tuple(noisy)
    stated = consistent_variances(sizes, sets, [spread[one] for one in sets])
    for one, variance in zip(sets, stated, strict=True):
        assert total[one] == [variance] * len(total[one])
        assert variance <= spread[one]


@given(
    st.lists(st.fractions(-50, 50, max_denominator=7), min_size=1, max_size=6), st.integers(0, 90)
)
def test_nearest_whole_numbers_add_up(values: list[Fraction], total: int) -> None:
    found = nearest_whole(values, total)
    assert sum(found) == total and min(found) >= 0
