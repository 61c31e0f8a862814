"""Sums of features: what they add up to, and that nothing is counted twice."""

import math
from collections import Counter

import numpy as np
import pytest

from lastbit.audit.blackbox.additive import Additive, merged, sums_of, telling
from lastbit.audit.blackbox.features import features, rows
from lastbit.audit.blackbox.tables import binned, total
from lastbit.audit.inputs import SeededRandom

SIZE = 1 << 17


def drawn(seed: int, chances: list[float], *, twice: bool = False) -> np.ndarray:
    """Independent truth values; or each of them in two columns."""
    uniforms = np.random.Generator(np.random.PCG64(seed)).random((SIZE, len(chances)))
    table = rows(uniforms < chances, SIZE)
    return np.repeat(table, 2, axis=1) if twice else table


def entries(x: np.ndarray, y: np.ndarray) -> Additive:
    found = features(np.concatenate([x, y]), SeededRandom(0))
    tables = [binned(f, x, y) for f in found if f.group == "entries"]
    sums = Additive.of([table for table in tables if table is not None], x, y)
    assert sums is not None
    return sums


def fitted(sums: Additive, x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    return sums.fitted(*(sums.seen([sums.codes(side, {})]) for side in (x, y)))


@pytest.mark.parametrize("twice", [False, True])
def test_the_sum_is_the_ratio_and_what_columns_share_is_counted_once(twice):
    chances = [[0.5, 0.3, 0.7, 0.5], [0.55, 0.32, 0.66, 0.5]]
    x, y = (drawn(seed, side, twice=twice) for seed, side in enumerate(chances))
    sums = entries(x, y)
    codes = sums.codes(x, {})
    score = sums.score(codes, fitted(sums, x, y))
    ones = x[:, :: 1 + twice]
    true = sum(
        np.where(column > 0, math.log(p / q), math.log((1 - p) / (1 - q)))
        for column, p, q in zip(ones.T, *chances, strict=True)
    )
    assert np.abs(score - true).max() < 0.03
    assert np.abs(true).max() > 0.2


def test_a_number_holds_the_levels_and_scores_as_the_tables_do():
    table = np.random.Generator(np.random.PCG64(7)).laplace(size=(SIZE, 5))
    table[:, 2] = np.where(table[:, 2] < 0, -1000.0, table[:, 2])  # a value that comes often
    x, y = rows(table, SIZE), rows(table + 0.1, SIZE)
    sums = entries(x, y)
    codes, terms = sums.codes(x, {}), fitted(sums, x, y)
    assert math.prod(sums.bases) < 1 << 62
    assert 0 <= codes.min() <= codes.max() < math.prod(sums.bases)
    assert np.array_equal(sums.score(codes, terms), total(sums.scored(terms), x, {}))
    found, counts = sums.seen([codes[:100], codes[100:]])
    assert dict(zip(found.tolist(), counts.tolist(), strict=True)) == Counter(codes.tolist())


def test_what_several_saw_is_added_up():
    one = np.array([1, 5]), np.array([2.0, 3.0])
    two = np.array([0, 5]), np.array([1.0, 4.0])
    codes, counts = merged([one, two])
    assert codes.tolist() == [0, 1, 5]
    assert counts.tolist() == [1.0, 2.0, 7.0]


def test_noise_adds_up_to_nothing():
    x, y = drawn(1, [0.5] * 12), drawn(2, [0.5] * 12)
    sums = entries(x, y)
    assert np.abs(sums.score(sums.codes(x, {}), fitted(sums, x, y))).max() < 0.02


def test_levels_get_coarser_the_more_entries_there_are():
    normal = np.random.Generator(np.random.PCG64(3)).normal(size=(1 << 12, 60))
    bases = []
    for width in (4, 16, 20, 30):
        x = rows(normal[:, :width], 1 << 12)
        sums = entries(x, x)
        assert math.prod(sums.bases) <= 1 << 62
        bases.append(sums.bases[0])
    assert bases == sorted(bases, reverse=True)
    assert bases[0] > bases[-1] >= 2


def test_a_single_column_has_no_sum_but_its_features():
    x = rows(np.random.Generator(np.random.PCG64(5)).normal(size=1 << 12), 1 << 12)
    found = features(x, SeededRandom(0))
    assert all(len(one.tables) == 1 for one in sums_of(found, x, x + 1))
    assert sums_of(found, x * 0, x * 0) == []


def test_features_that_tell_go_on_and_all_entries_do():
    width = 16
    x, y = (
        rows(np.random.Generator(np.random.PCG64(s)).normal(size=(SIZE, width)), SIZE)
        for s in (8, 9)
    )
    y = y + 0.05
    found = features(np.concatenate([x, y]), SeededRandom(0))
    kept = {feature.name for feature in telling(found, x, y)}
    assert len(kept) < len(found)
    assert {f"entry {j}" for j in range(width)} <= kept
    assert "the sum of the entries" in kept
    assert telling(found, x[:100], y[:100]) == found  # of few outputs nothing is concluded
