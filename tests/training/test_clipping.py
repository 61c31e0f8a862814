"""One example moves the sum of a batch by at most the bound: by force, on hostile gradients."""

from math import isqrt
from typing import Any

import numpy as np
import pytest

from lastbit.errors import InvalidParameter, WrongType
from lastbit.training import WholeClip, clipped_sum, whole_gradients
from lastbit.training.clipping import factors, shortened, squares
from tests.training.hostile import KINDS, gradients

BOUNDS = (1, 2, 7, 1000, 2**20 + 1, 2**24, 2**30)


def distance_squared(one, other) -> int:
    return sum((int(a) - int(b)) ** 2 for a, b in zip(one.tolist(), other.tolist(), strict=True))


def pairs(seed, count, *, parameters=40):
    """Batches, and the same with one place left empty, under clips of all sizes."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        kind = KINDS[rng.integers(len(KINDS))]
        if rng.random() < 0.05:  # a crowd of one mind, of whose sum floats lose the last places
            rows = (rng.random((2_000, 3)) + 1).astype(kind)
        else:
            examples, wide = rng.integers(1, 5), rng.integers(1, parameters + 1)
            rows = gradients(rng, examples=int(examples), parameters=int(wide), kind=kind)
        norm = 10.0 ** rng.integers(-6, 7)
        clip = WholeClip(norm=norm, bound=BOUNDS[rng.integers(len(BOUNDS))])
        less = rows.copy()
        less[rng.integers(len(rows))] = 0
        yield clip, rows, less


def test_one_example_moves_the_sum_by_at_most_the_bound(extent):
    farthest = 0.0
    for clip, rows, less in pairs(1, extent.number(1_500, 100_000)):
        moved = distance_squared(clipped_sum(rows, clip), clipped_sum(less, clip))
        assert moved <= clip.bound**2
        farthest = max(farthest, moved / clip.bound**2)
    assert farthest > 0.999  # the bound is used


def test_one_example_of_a_million_parameters(extent):
    for clip, rows, less in pairs(2, extent.number(2, 30), parameters=10**6):
        moved = clipped_sum(rows, clip).astype(object) - clipped_sum(less, clip)
        assert (moved**2).sum() <= clip.bound**2


def rounded_to_nearest(rows, clip):
    with np.errstate(all="ignore"):
        scaled = np.rint(rows.astype(np.float64) * factors(rows, clip)[:, None])
    return np.clip(np.nan_to_num(scaled), -clip.bound, clip.bound).astype(np.int64).sum(axis=0)


def clipped_by_its_float_norm(rows, clip):
    with np.errstate(all="ignore"):
        length = np.sqrt((rows * rows).sum(axis=1))
        factor = np.minimum(1, rows.dtype.type(clip.norm) / length) * (clip.bound / clip.norm)
        scaled = np.trunc(rows * factor.astype(rows.dtype)[:, None]).astype(np.float64)
    return np.clip(np.nan_to_num(scaled), -(2**40), 2**40).astype(np.int64).sum(axis=0)


def summed_in_floats(rows, clip):
    return whole_gradients(rows, clip).astype(np.float32).sum(axis=0, dtype=np.float32)


@pytest.mark.parametrize(
    "mutant", [rounded_to_nearest, clipped_by_its_float_norm, summed_in_floats]
)
def test_force_convicts(mutant):
    caught = 0
    for clip, rows, less in pairs(1, 1_500):
        moved = distance_squared(mutant(rows, clip), mutant(less, clip))
        caught += moved > clip.bound**2
    assert caught


def test_an_ordinary_gradient_loses_no_more_than_a_step_and_a_ten_thousandth():
    rng = np.random.default_rng(3)
    for kind in KINDS:
        rows: Any = rng.standard_normal((50, 300)).astype(kind)
        clip = WholeClip(norm=5)
        exact = rows.astype(np.float64)
        exact *= np.minimum(1, 5 / np.linalg.norm(exact, axis=1))[:, None]
        counts = whole_gradients(rows, clip)
        assert np.abs(counts * float(clip.step) - exact).max() < 5 * 2**-13 + 2 * float(clip.step)
        assert (np.abs(counts * float(clip.step)) <= np.abs(exact) * (1 + 2**-20)).all()


def test_what_is_not_finite_is_nothing_and_what_overflows_is_cut():
    rows = np.array([[np.nan, 1], [np.inf, 1], [1, -np.inf], [3e38, 3e38]], np.float32)
    counts = whole_gradients(rows, WholeClip(norm=1, bound=1000))
    assert counts.tolist() == [[0, 0], [0, 0], [0, 0], [707, 707]]


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("enemy", [3e38, 1e38, 1e-45, np.inf, np.nan])
def test_no_example_decides_the_last_bits_of_another(kind, enemy):
    """Products in binary64 for all, because of one tiny factor, moved others by a step."""
    rows = np.random.default_rng(7).normal(size=(200, 40)).astype(kind)
    with np.errstate(over="ignore"):
        rows[0] = np.float32(enemy)
    without = rows.copy()
    without[0] = 0
    clip = WholeClip(norm=1)
    assert (whole_gradients(rows, clip)[1:] == whole_gradients(without, clip)[1:]).all()


def test_a_huge_factor_does_not_spoil_what_is_small():
    counts = whole_gradients(np.full((1, 4), 1e-40, np.float32), WholeClip(norm=1e-39, bound=100))
    assert counts.tolist() == [[9] * 4]


@pytest.mark.parametrize("bound", BOUNDS)
def test_squares_are_exact_up_to_the_bound_and_above_it_beyond(bound):
    rng = np.random.default_rng(bound)
    for width in (1, 5, 63, 64, 65, 20_000):
        share = rng.random((6, 1)) ** 3
        rows = (rng.uniform(-bound, bound, (6, width)) * share).astype(np.int64)
        rows[0, :] = bound
        true = [sum(int(k) ** 2 for k in row.tolist()) for row in rows]
        assert squares(rows, bound).tolist() == [min(s, bound**2 + 1) for s in true]
    edge = np.zeros((2, 9), np.int64)
    edge[:, 4] = bound
    edge[1, 0] = 1
    assert squares(edge, bound).tolist() == [bound**2, bound**2 + 1]
    assert squares(np.empty((3, 0), np.int64), bound).tolist() == [0, 0, 0]


def test_a_shortened_row_is_within_the_bound_and_keeps_its_direction():
    rng = np.random.default_rng(4)
    for bound in BOUNDS:
        for width in (2, 3, 1000):
            row = np.clip(rng.integers(-bound, bound + 1, width) * 4, -bound, bound)
            row[:2] = bound
            short = shortened(row, bound)
            assert sum(int(k) ** 2 for k in short.tolist()) <= bound**2
            assert (short * row >= 0).all()
            ideal = np.abs(row) * bound / isqrt(sum(int(k) ** 2 for k in row.tolist()))
            assert np.abs(np.abs(short) - ideal).max() <= 2


def test_sums_do_not_depend_on_the_order_and_pieces():
    rng = np.random.default_rng(5)
    rows = gradients(rng, examples=300, parameters=2_000, kind=np.float32)
    clip = WholeClip(norm=1)
    whole = clipped_sum(rows, clip)
    order = rng.permutation(300)
    assert (whole == clipped_sum(rows[order], clip)).all()
    assert (whole == clipped_sum(rows[:111], clip) + clipped_sum(rows[111:], clip)).all()


@pytest.mark.parametrize("bound", [0, -1, 2**30 + 1])
def test_a_bound_out_of_range_is_refused(bound):
    with pytest.raises(InvalidParameter, match="bound"):
        WholeClip(norm=1, bound=bound)


@pytest.mark.parametrize("norm", [0, -1, float("nan"), "1e-400", "1e400"])
def test_a_norm_out_of_range_is_refused(norm):
    with pytest.raises(InvalidParameter, match="norm"):
        WholeClip(norm=norm)


def test_a_batch_whose_sum_could_overflow_is_refused():
    WholeClip(norm=1).check_batch(2**38 - 1)
    with pytest.raises(InvalidParameter, match="smaller batches"):
        WholeClip(norm=1).check_batch(2**38)


@pytest.mark.parametrize("wrong", [np.zeros(3), [[1.0]], np.zeros((2, 2), np.int64), None])
def test_what_is_no_matrix_of_floats_is_refused(wrong):
    with pytest.raises((InvalidParameter, WrongType), match="a row for each example"):
        clipped_sum(wrong, WholeClip(norm=1))


def test_a_mask_of_an_array_has_no_say():
    """Failed before, in words of numpy."""
    clip = WholeClip(norm=1, bound=1000)
    masked = np.ma.array([[3e9, np.nan, 4.0]], mask=[[False, True, False]])
    total = clipped_sum(masked, clip)
    assert type(total) is np.ndarray
    assert not total.any()
