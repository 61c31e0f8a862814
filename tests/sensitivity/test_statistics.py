"""Exact values of the statistics, and what a caller may call them."""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lastbit.errors import InvalidParameter, LastbitError, WrongType
from lastbit.sensitivity.statistics import (
    Count,
    InterquartileRange,
    Mean,
    Quantile,
    Sum,
    TrimmedMean,
    Variance,
    rank,
    ranks,
    statistic_of,
    value_of,
)
from lastbit.sensitivity.values import Records, records
from tests.sensitivity.databases import QUESTIONS, databases, plain

STATISTICS = {str(statistic): statistic for statistic, _ in QUESTIONS}.values()


@pytest.mark.parametrize("statistic", STATISTICS, ids=str)
def test_small_databases(statistic: Any) -> None:
    relation = next(r for s, r in reversed(QUESTIONS) if s == statistic)
    for rows in databases(relation):
        assert value_of(statistic, records(list(rows), 0, 4)) == plain(statistic, rows)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50))
def test_floats(rows: list[float]) -> None:
    grid = records(rows, -(10**6), 10**6)
    exact = tuple(int(q) * grid.step for q in grid.steps)
    for statistic in STATISTICS:
        assert value_of(statistic, grid) == plain(statistic, exact)


def test_sums_have_room() -> None:
    """More records than one chunk, all as far from the lower bound as they can be."""
    count, low, width = (1 << 20) + 7, -(1 << 61), (1 << 41) - 1
    steps = np.full(count, low + width, np.int64)
    steps[:3] = low
    grid = Records(steps, low, low + width, Fraction(1))
    assert value_of(Sum(), grid) == count * (low + width) - 3 * width
    share = Fraction(3, count)
    assert value_of(Variance(), grid) == width**2 * share * (1 - share)
    middle = Records(steps, low, low + width, Fraction(1, 8))
    assert value_of(Variance(), middle) == value_of(Variance(), grid) / 64


@given(st.fractions(0, 1), st.integers(0, 10**7))
def test_ranks(level: Fraction, count: int) -> None:
    wanted = max(1, ceil(level * count))
    assert rank(level, count) == wanted
    assert ranks(level, np.array([count, count + 1]))[0] == wanted
    assert 0 <= rank(level, count + 1) - wanted <= 1
    fine = level / (2 * 10**30) + Fraction(1, 2)  # beyond what int64 could multiply
    assert ranks(fine, np.array([count]))[0] == rank(fine, count)


def test_names() -> None:
    assert statistic_of("count") == Count()
    assert statistic_of("sum") == Sum()
    assert statistic_of("mean") == Mean()
    assert statistic_of("variance") == Variance()
    assert statistic_of("minimum") == Quantile(0)
    assert statistic_of("median") == Quantile("1/2")
    assert statistic_of("maximum") == Quantile(1)
    assert statistic_of("iqr") == statistic_of("interquartile range") == InterquartileRange()
    assert statistic_of(TrimmedMean("0.1")) == TrimmedMean(Fraction(1, 10))
    with pytest.raises(InvalidParameter, match="statistic"):
        statistic_of("mode")
    for wrong in (None, 3, Quantile, ["median"]):
        with pytest.raises(WrongType, match="statistic"):
            statistic_of(wrong)


@pytest.mark.parametrize("level", [-1, "1.01", float("nan"), None, True, "x"])
def test_a_bad_level_is_refused(level: Any) -> None:
    with pytest.raises(LastbitError, match="level"):
        Quantile(level)


@pytest.mark.parametrize("trim", [-1, "1/2", 1, float("nan"), None, True, "x"])
def test_a_bad_trim_is_refused(trim: Any) -> None:
    with pytest.raises(LastbitError, match="trim"):
        TrimmedMean(trim)


def test_ranges() -> None:
    low, high = Fraction(-2), Fraction(4)
    assert Mean().range(low, high) == Quantile(1).range(low, high) == (low, high)
    assert TrimmedMean("1/4").range(low, high) == (low, high)
    assert Variance().range(low, high) == (Fraction(0), Fraction(9))
    assert InterquartileRange().range(low, high) == (Fraction(0), Fraction(6))
    for unbounded in (Count(), Sum()):
        with pytest.raises(InvalidParameter, match="no public range"):
            unbounded.range(low, high)
