"""Clipped sums by the kernel: exact, and one example moves them by at most the bound, by force."""

import random
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lastbit.errors import InvalidParameter
from lastbit.training import WholeClip
from tests.evidence import Extent
from tests.training.gpu.interpreted import DEVICE, clipping, load_changed, sums, torch

clipping_of_tensors = import_module("lastbit.training.tensors.clipping")
add_whole = sums.add_whole

# The interpreter is numpy, which warns of what the test is about.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
KINDS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
BOUNDS = (1, 1000, 1 << 24, 1 << 30)
HOSTILE = (float("nan"), float("inf"), -float("inf"), 1e30, -1e30, 1e-45, 65504.0, 0.0, -0.0, 1e-7)


def whole_rows(rows: Any, factors: Any, bound: int) -> list[list[int]]:
    """The law in Python's numbers: each product is one rounding, in the kernel's precision."""
    kind = np.float64 if rows.dtype == torch.float64 else np.float32
    values, scales = rows.cpu().to(torch.float64).numpy(), factors.cpu().numpy().astype(kind)
    out = []
    for row, factor in zip(values, scales, strict=True):
        with np.errstate(all="ignore"):
            scaled = row.astype(kind) * factor
        cut = [bound if s > bound else -bound if s < -bound else s for s in scaled.tolist()]
        out.append([0 if factor == 0 or s != s else int(s) for s in cut])
    return out


def hostile(random: random.Random, examples: int, columns: int, kind: Any) -> Any:
    """Rows of ordinary numbers, of which some are put in the place of one coordinate or more."""
    rows = torch.from_numpy(
        np.array([[random.gauss(0, 1) for _ in range(columns)] for _ in range(examples)])
    )
    for i in range(examples):
        for _ in range(random.choice((0, 0, 1, 3))):
            rows[i, random.randrange(columns)] = random.choice(HOSTILE)
    return rows.to(kind).to(DEVICE)


def factors_of(rows: Any, bound: int) -> Any:
    """About bound/|g|, and 0 where that is no number."""
    length = rows.double().norm(dim=1)
    factor = bound * (1 - 2.0**-20) / length.clamp(min=1.0)
    return torch.where(torch.isfinite(length), factor, torch.zeros_like(factor))


@pytest.mark.parametrize("kind", KINDS)
def test_sums_are_those_of_the_law(kind: Any, extent: Extent) -> None:
    chance = random.Random(str(kind))
    for _ in range(extent.number(3, 60)):
        bound = chance.choice((1, 1000, 1 << 24, (1 << 26) + 5, 1 << 30))
        examples = chance.choice((1, 5, 8, 9))
        parts = [hostile(chance, examples, columns, kind) for columns in (3, 1500)]
        factors = factors_of(torch.cat(parts, dim=1), bound)
        totals = [torch.arange(part.shape[1], device=DEVICE) for part in parts]
        assert add_whole(parts, factors, totals, bound=bound)
        for part, total in zip(parts, totals, strict=True):
            true = np.array(whole_rows(part, factors, bound), dtype=object).sum(axis=0)
            assert (total.cpu().numpy() - np.arange(part.shape[1]) == true.astype(np.int64)).all()


def test_an_example_moves_a_sum_by_at_most_the_bound(extent: Extent) -> None:
    """Pairs that differ in one example, of all kinds and with factors chosen by an enemy.

    This saw squares of D**2 + 1 when one example with a tiny factor put the products of the others
    into binary64. On an H200 100,000 pairs were tried.
    """
    chance, answered = random.Random(5), 0
    for _ in range(extent.number(40, 4_000)):
        kind, bound = chance.choice(KINDS), chance.choice((1, 7, 1000, 1 << 24, 1 << 30))
        rows = hostile(chance, 4, chance.choice((1, 2, 40)), kind)
        factors = factors_of(rows, bound)
        if chance.random() < 0.5:
            factors[chance.randrange(4)] *= chance.choice(
                (1 + 2.0**-19, 1.5, 1e40, -1.0, float("nan"))
            )
        total, other = (torch.zeros(rows.shape[1], dtype=torch.int64, device=DEVICE) for _ in "ab")
        alone = factors.clone()
        alone[chance.randrange(4)] = 0  # an absent example leaves its place empty
        if add_whole([rows], factors, [total], bound=bound):
            assert add_whole([rows], alone, [other], bound=bound)
            answered += 1
            assert sum(int(k) ** 2 for k in (total - other).tolist()) <= bound**2
        else:
            assert not total.any()
    assert answered > 10


def test_a_vector_at_the_bound_is_added_and_one_beyond_is_not() -> None:
    """Exactly D**2, and 1 more, in whole numbers that floats hold."""
    for bound, short, long in (
        (5, (3.0, 4.0), (3.0, 4.0, 1.0)),
        (1 << 24, (float(1 << 24), 0.0), (float(1 << 24), 1.0)),
        (1 << 30, (float(1 << 30), 0.0), (float(1 << 30), 1.0)),
    ):
        for row, fits in ((short, True), (long, False)):
            one = torch.tensor([row, [0.0] * len(row)], dtype=torch.float64, device=DEVICE)
            total = torch.zeros(len(row), dtype=torch.int64, device=DEVICE)
            assert (
                add_whole(
                    [one], torch.ones(2, dtype=torch.float64, device=DEVICE), [total], bound=bound
                )
                == fits
            )
            assert total.tolist() == ([int(x) for x in row] if fits else [0] * len(row))


def test_a_sum_keeps_its_last_one() -> None:
    rows = torch.tensor([[float(1 << 24)], [1.0]], device=DEVICE)
    total = torch.zeros(1, dtype=torch.int64, device=DEVICE)
    ones = torch.ones(2, dtype=torch.float64, device=DEVICE)
    assert add_whole([rows], ones, [total], bound=1 << 24) and total.item() == (1 << 24) + 1


def test_squares_do_not_wrap() -> None:
    """2**14 numbers of 2**30 have squares of 2**74: in 64 bits that were 0."""
    for bound in (1 << 26, 1 << 30):
        row = torch.full((1, 1 << 14), float(bound), device=DEVICE)
        total = torch.zeros(1 << 14, dtype=torch.int64, device=DEVICE)
        assert not add_whole(
            [row], torch.ones(1, dtype=torch.float64, device=DEVICE), [total], bound=bound
        )
        assert not total.any()


def test_the_square_is_of_all_tensors_together() -> None:
    parts = [torch.full((1, 2), 6.0, device=DEVICE), torch.full((1, 2), 6.0, device=DEVICE)]
    totals = [torch.zeros(2, dtype=torch.int64, device=DEVICE) for _ in parts]
    one = torch.ones(1, dtype=torch.float64, device=DEVICE)
    assert not add_whole(parts, one, totals, bound=11)
    assert add_whole(parts, one, totals, bound=12)
    assert [total.tolist() for total in totals] == [[6, 6], [6, 6]]


@pytest.mark.parametrize("kind", KINDS)
def test_training_adds_the_same_by_the_kernel_and_without_it(kind: Any, extent: Extent) -> None:
    """Also of rows that are not contiguous, and of two types. On CUDA training does so."""
    chance, added = random.Random(f"same {kind}"), 0
    for _ in range(extent.number(4, 400)):
        clip = WholeClip(norm=chance.choice((1, "1/1000", 10**9)), bound=chance.choice(BOUNDS))
        parts = [hostile(chance, 5, columns, kind) for columns in (3, 40)]
        parts.append(hostile(chance, 7, 5, torch.float32).T)
        rows = parts[: chance.choice((1, 2, 3))]
        factor, finite = clipping_of_tensors._factors(rows, clip)
        how = clip, clipping_of_tensors._product_kind(rows, clip)
        totals = [
            torch.zeros(part.shape[1], dtype=torch.int64, device=part.device) for part in rows
        ]
        slow = clipping_of_tensors._slow_sums(rows, factor, finite, *how)
        if clipping_of_tensors._add_by_kernel(rows, factor, finite, totals, *how):
            added += 1
            assert all(torch.equal(a, b) for a, b in zip(totals, slow, strict=True))
        else:
            assert not any(total.any() for total in totals)
        again = [torch.zeros_like(total) for total in totals]
        clipping_of_tensors.add_clipped(rows, again, clip)
        assert all(torch.equal(a, b) for a, b in zip(again, slow, strict=True))
    assert added > 1


MUTANTS = {
    "to nearest": (
        "tl.minimum(tl.maximum(scaled, -most), most).to(tl.int32)",
        "(tl.minimum(tl.maximum(scaled, -most), most) + 0.5).to(tl.int32)",
    ),
    "squares of floats": ("square = k * k", "square = (k * k) >> 1"),
    "halves of the squares lost": ("whole >> 32", "whole * 0"),
    "no cut": ("tl.minimum(tl.maximum(k, -bound), bound)", "(k + 1)"),
    "a binary32 sum": ("tl.sum(k, axis=0)", "tl.sum(k.to(tl.float32), axis=0).to(tl.int64)"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_caught(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = load_changed(clipping, tmp_path / "mutant.py", [MUTANTS[name]])
    monkeypatch.setattr(sums, "clipping", changed)
    with pytest.raises(AssertionError):
        test_sums_are_those_of_the_law(torch.float64, Extent(False))
        test_a_vector_at_the_bound_is_added_and_one_beyond_is_not()
        test_an_example_moves_a_sum_by_at_most_the_bound(Extent(False))
        test_squares_do_not_wrap()
        test_a_sum_keeps_its_last_one()


def test_what_refuses() -> None:
    rows, total = torch.zeros(2, 3, device=DEVICE), torch.zeros(3, dtype=torch.int64, device=DEVICE)
    ones = torch.ones(2, dtype=torch.float64, device=DEVICE)
    for bad in (
        lambda: add_whole([rows.long()], ones, [total], bound=5),
        lambda: add_whole([rows], ones[:1], [total], bound=5),
        lambda: add_whole([rows], ones.float(), [total], bound=5),
        lambda: add_whole([rows], ones, [total.int()], bound=5),
        lambda: add_whole([rows], ones, [], bound=5),
        lambda: add_whole([rows.T[:2]], ones, [total[:2]], bound=5),
    ):
        with pytest.raises(InvalidParameter, match="do not fit"):
            bad()
    for bound in (0, (1 << 30) + 1):
        with pytest.raises(InvalidParameter, match="bound is not in 1"):
            add_whole([rows], ones, [total], bound=bound)
    assert Fraction(sums.MOST_BOUND) == 1 << 30
