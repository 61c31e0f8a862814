"""Arrays of JAX are clipped as those of numpy are: by force, in trees, in all types, with masks."""

import numpy as np
import pytest

from lastbit.errors import InvalidParameter, LastbitError, WrongType
from lastbit.training import WholeClip, clipped_sum
from tests.training.hostile import gradients
from tests.training.jax_here import jax
from tests.training.test_clipping import (
    BOUNDS,
    clipped_by_its_float_norm,
    distance_squared,
    pairs,
    rounded_to_nearest,
)

from lastbit.training.arrays import clipping  # isort: skip  # jax comes first, or it is skipped
from lastbit.training.arrays.clipping import whole_sum  # isort: skip

jnp = jax.numpy


def tree_of(rows, rng):
    """The same numbers in a few arrays, some of jax, as a model's parameters are."""
    cuts = np.sort(rng.integers(0, rows.shape[1] + 1, rng.integers(0, 3)))
    parts = np.split(rows, cuts, axis=1)
    if rows.dtype != np.float64:  # which jax makes binary32
        parts = [jnp.asarray(part) if rng.random() < 0.5 else part for part in parts]
    return {"first": parts[0], "others": tuple(part[..., None] for part in parts[1:])}


def test_one_example_moves_the_sum_by_at_most_the_bound(extent):
    rng = np.random.default_rng(7)
    farthest = 0.0
    for clip, rows, less in pairs(8, extent.number(500, 6_000)):
        one, other = whole_sum(tree_of(rows, rng), clip), whole_sum(tree_of(less, rng), clip)
        moved = distance_squared(one, other)
        assert moved <= clip.bound**2
        farthest = max(farthest, moved / clip.bound**2)
    assert farthest > 0.999


def test_sums_are_those_of_arrays(extent):
    rng = np.random.default_rng(11)
    for clip, rows, _ in pairs(12, extent.number(300, 2_000)):
        assert (whole_sum(tree_of(rows, rng), clip) == clipped_sum(rows, clip)).all()


def test_bfloat16_moves_the_sum_by_at_most_the_bound(extent):
    rng = np.random.default_rng(9)
    for _ in range(extent.number(200, 2_000)):
        rows = gradients(rng, examples=3, parameters=30, kind=np.float32)
        with np.errstate(all="ignore"):
            halves = rows.astype(jnp.bfloat16)
        clip = WholeClip(norm=10.0 ** rng.integers(-6, 7), bound=BOUNDS[rng.integers(len(BOUNDS))])
        less = halves.copy()
        less[1] = 0
        one, other = whole_sum(jnp.asarray(halves), clip), whole_sum(jnp.asarray(less), clip)
        assert distance_squared(one, other) <= clip.bound**2
        assert (one == clipped_sum(halves.astype(np.float32), clip)).all()


@pytest.mark.parametrize("mutant", [rounded_to_nearest, clipped_by_its_float_norm])
def test_force_convicts(mutant, monkeypatch):
    """A clip that trusts the norm that floats give is caught by what the first test does."""

    def alone(rows, clip):
        return np.stack([mutant(row[None], clip) for row in rows])

    monkeypatch.setattr(clipping, "whole_gradients", alone)
    caught, rng = 0, np.random.default_rng(7)
    for clip, rows, less in pairs(8, 500):
        if len(rows) < 5:
            moved = distance_squared(
                whole_sum(tree_of(rows, rng), clip), whole_sum(tree_of(less, rng), clip)
            )
            caught += moved > clip.bound**2
    assert caught


def test_pieces_do_not_matter(monkeypatch):
    rng = np.random.default_rng(3)
    rows = gradients(rng, examples=60, parameters=40, kind=np.float32)
    clip = WholeClip(norm=1)
    whole, there = whole_sum(rows, clip), rng.random(60) < 0.5
    masked = whole_sum(rows, clip, there)
    monkeypatch.setattr(clipping, "_PIECE", 1)
    assert (whole == whole_sum(rows, clip)).all()
    assert (masked == whole_sum(rows, clip, there)).all()


@pytest.mark.parametrize("kind", ["bfloat16", "float16", "float32", "float64"])
@pytest.mark.parametrize("enemy", [3e38, 1e-45, np.inf, np.nan])
def test_rows_that_are_not_there_are_nothing_and_decide_no_bit(kind, enemy):
    rows = np.random.default_rng(7).normal(size=(50, 40)).astype(jnp.dtype(kind))
    there = np.ones(50, np.bool_)
    there[[0, 7, 49]] = False
    emptied, hostile = rows.copy(), rows.copy()
    with np.errstate(over="ignore"):
        emptied[~there], hostile[~there] = 0, enemy
    clip = WholeClip(norm=1)
    for mask in (there, jnp.asarray(there)):
        assert (whole_sum(hostile, clip, mask) == whole_sum(emptied, clip)).all()
    assert not whole_sum(hostile, clip, np.zeros(50, np.bool_)).any()


def test_mixed_types_and_empty_batches():
    rows = {"a": np.array([[3.0]]), "b": jnp.array([[-4.0]], jnp.bfloat16)}
    assert whole_sum(rows, WholeClip(norm=1, bound=1000)).tolist() == [599, -799]
    for kind in (jnp.bfloat16, jnp.float16, jnp.float32):
        assert whole_sum(jnp.zeros((0, 2, 3), kind), WholeClip(norm=1)).tolist() == [0] * 6
    assert whole_sum(jnp.zeros((4, 0)), WholeClip(norm=1)).tolist() == []


@pytest.mark.parametrize(
    ("rows", "mask"),
    [
        ({}, None),
        (None, None),
        ([1.0, 2.0], None),
        (jnp.array(1.0), None),
        (jnp.ones((2, 3), jnp.int32), None),
        (jnp.ones((2, 3), jnp.complex64), None),
        (jnp.ones((2, 3), jnp.float8_e4m3fn), None),
        (np.ones((2, 3), np.longdouble), None),
        (np.ones((2, 3), ">f4"), None),
        (jax.ShapeDtypeStruct((2, 3), jnp.float32), None),
        (jax.random.split(jax.random.key(0), 2), None),
        ([jnp.ones((2, 3)), jnp.ones((3, 3))], None),
        (jnp.ones((2, 3)), [True, False]),
        (jnp.ones((2, 3)), np.ones(2)),
        (jnp.ones((2, 3)), np.ones(3, np.bool_)),
        (jnp.ones((2, 3)), np.ones((2, 1), np.bool_)),
        (jnp.ones((2, 3)), True),
    ],
)
def test_what_is_no_gradient_or_no_mask_is_refused(rows, mask):
    with pytest.raises(LastbitError, match=r"gradients|mask"):
        whole_sum(rows, WholeClip(norm=1), mask)


def test_refusals_say_what_to_do():
    with pytest.raises(WrongType, match="pass bfloat16, float16, float32 or float64"):
        whole_sum(jnp.ones((2, 3), jnp.int32), WholeClip(norm=1))
    with pytest.raises(InvalidParameter, match=r"one truth value for each row; .*batches"):
        whole_sum(jnp.ones((2, 3)), WholeClip(norm=1), np.ones(2))
