"""The quick way and the slower one give the same integers, and no row that is too long is added."""

import numpy as np
import pytest

from lastbit.training import WholeClip
from tests.training.hostile import gradients
from tests.training.torch_here import torch

from lastbit.training.tensors import clipping, quick  # isort: skip  # torch comes first
from lastbit.training.tensors.clipping import add_clipped  # isort: skip

BOUNDS = (1, 2, 7, 1000, 2**20 + 1, 2**24)


def totals_of(parts, clip):
    totals = [torch.zeros(part.shape[1:], dtype=torch.int64) for part in parts]
    add_clipped(parts, totals, clip)
    return torch.cat([total.reshape(-1) for total in totals])


def slowly(parts, clip, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(quick, "is_suitable", lambda *_: False)
        return totals_of(parts, clip)


def hostile_parts(rng, examples):
    widths = rng.integers(0, 700, rng.integers(1, 4))
    rows = gradients(rng, examples=examples, parameters=int(widths.sum()) + 1, kind=np.float32)
    parts = np.split(rows, np.cumsum(widths)[:-1], axis=1)
    return [torch.from_numpy(np.ascontiguousarray(part)) for part in parts]


def test_both_ways_give_the_same_integers_on_hostile_gradients(monkeypatch, extent):
    rng = np.random.default_rng(21)
    for turn in range(extent.number(150, 5_000)):
        parts = hostile_parts(rng, int(rng.integers(1, 9)))
        clip = WholeClip(norm=10.0 ** rng.integers(-6, 7), bound=BOUNDS[turn % len(BOUNDS)])
        monkeypatch.setattr(quick, "_PIECE", int(rng.choice([1 << 9, 1 << 12, 1 << 17])))
        monkeypatch.setattr(quick, "_WIDE", int(rng.choice([100, 256, 8192])))
        assert (totals_of(parts, clip) == slowly(parts, clip, monkeypatch)).all()


@pytest.mark.parametrize("kind", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_ordinary_rows_are_all_certain_and_are_the_same(kind, monkeypatch):
    torch.manual_seed(0)
    parts = [torch.randn(300, *shape).to(kind) for shape in ((40, 30), (11,), (9_000,), ())]
    clip = WholeClip(norm=3)
    expected = slowly(parts, clip, monkeypatch)
    monkeypatch.setattr(clipping, "_slow_sums", None)  # it would fail if it were called
    assert (totals_of(parts, clip) == expected).all()


def test_many_rows_of_one_large_number_do_not_overflow(monkeypatch):
    """127 rows of 2**24 fit int32, 128 do not: sums wrapped around if they were not put down."""
    for bound in (2**24, 2**23 + 1):
        clip = WholeClip(norm=1, bound=bound)
        rows = torch.tensor([[1e10, 0.0]]).repeat(1_000, 1)
        total = totals_of([rows], clip)
        assert total.tolist() == (slowly([rows[:1]], clip, monkeypatch) * 1_000).tolist()
        assert total[0] > 999 * bound
        assert total[0] > 2**31


@pytest.mark.parametrize("bound", BOUNDS)
def test_what_is_certain_is_within_the_bound_by_integers(bound):
    """Lengths around the edge: no row above the bound is certain, and none well below is not."""
    rng = np.random.default_rng(bound)
    clip = WholeClip(norm=1, bound=bound)
    for width in (1, 3, 255, 256, 257, 5_000):
        shape = rng.standard_normal((400, width)) if bound > 7 else np.ones((400, width))
        lengths = bound * (1 + np.linspace(-(2.0**-13), 2.0**-13, 400))
        rows = shape / np.linalg.norm(shape, axis=1)[:, None] * lengths[:, None]
        part = torch.from_numpy(rows.astype(np.float32))
        ones = torch.ones(400, dtype=torch.float64)
        _, squares = quick._sums([part], ones.float()[:, None], ones.bool(), clip)
        certain = squares <= bound**2 * quick.CERTAIN
        exact = [sum(int(k) ** 2 for k in row) for row in np.trunc(part.numpy()).tolist()]
        for i in np.flatnonzero(certain.numpy()):
            assert exact[i] <= bound**2
        assert not certain[lengths > bound].any()
        assert certain[lengths < bound * (1 - 2.0**-14)].all()


def test_a_row_of_equal_numbers_just_too_long_is_not_certain():
    """(2**12 + 1)**2 in 2**24 columns is above 2**48, by a share of 2**-11."""
    clip = WholeClip(norm=1)
    for number, answer in ((4097.0, False), (4095.0, True)):
        rows = torch.full((1, 1 << 24), number)
        one = torch.ones(1, dtype=torch.float64)
        _, certain = quick.certain_sums([rows], one, one.bool(), clip)
        assert certain.tolist() == [answer]


def test_a_norm_that_lies_is_found_out(monkeypatch):
    """A library's norm off by a thousandth: all rows take the slower way, and none is too long."""
    monkeypatch.setattr(clipping, "SHARE", 1.001)
    clip = WholeClip(norm=1, bound=1000)
    rows = torch.randn(30, 500)
    for i in range(30):
        total = totals_of([rows[i : i + 1]], clip)
        assert sum(int(k) ** 2 for k in total.tolist()) <= clip.bound**2


def test_a_mutant_that_believes_the_norm_is_convicted(monkeypatch):
    monkeypatch.setattr(clipping, "SHARE", 1.001)
    monkeypatch.setattr(quick, "CERTAIN", 2.0)
    clip = WholeClip(norm=1, bound=2**20)
    total = totals_of([torch.randn(1, 500)], clip)
    assert sum(int(k) ** 2 for k in total.tolist()) > clip.bound**2


def test_rows_that_are_left_out_leave_nothing_behind():
    """NaN times 0 is a NaN, and as int32 a large number."""
    rows = torch.tensor([[float("nan"), 1.0], [3.0, 4.0], [float("inf"), 0.0]])
    factor = torch.full((3,), 100.0, dtype=torch.float64)
    certain = torch.tensor([False, True, False])
    sums, answer = quick.certain_sums([rows], factor, certain, WholeClip(norm=1))
    assert [part.tolist() for part in sums] == [[300, 400]]
    assert answer.tolist() == certain.tolist()


def test_a_processor_that_is_not_faithful_takes_the_slower_way(monkeypatch):
    """Sums of squares as if in bfloat16 are found out by the known answer."""

    def coarse(matrix, squares):
        runs = matrix.bfloat16().float().numpy().reshape(*squares.shape, 256)
        np.vecdot(runs, runs, out=squares)

    assert quick.is_faithful()
    monkeypatch.setattr(quick, "_measure", coarse)
    assert not quick.is_faithful.__wrapped__()
