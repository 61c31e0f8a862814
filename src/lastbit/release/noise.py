"""Where raw aggregates become noisy ones: the only place that sees both.

Law      each entry of a measure gets independent noise of the plan's exact law; a key of the data
         is shown iff its noisy number of units reaches the threshold (where units with one key are
         counted apart, iff one of its two numbers reaches its own); each quantile's draw is one of
         the exponential mechanism over the bins of a group (`tables/plan/ranks.py`); each node
         of a tree of bins is an entry (`tables/plan/tree.py`)
Theorem  each part costs what its plan says: the mechanisms are those of `mechanisms/`, their
         parameters come from the plan, which has never seen the data, and each is run once
Differs  distances of ranks are cut off at a public number, 2**12 times the distance at which a
         candidate is exp(1) times less likely: the least of a number and a constant moves no
         further than the number, so the price is the same, and integers stay short
Checked  tests/release/test_noise.py
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lastbit.mechanisms import Lattice, ThresholdedHistogram, numbers_of
from lastbit.sampling import choice_exp, choice_exp_rows, gaussian_sampler, laplace_sampler
from lastbit.tables import (
    Aggregates,
    GaussianPart,
    GaussianSelection,
    LaplacePart,
    PartitionSelection,
    Plan,
    RankPart,
    Selection,
    TreePart,
)

_CUT = 1 << 12
_WIDE = 1 << 62
_ENTRIES = 1 << 22


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Noisy:
    """What may be shown once it is paid for: keys, noisy integers, which candidates were drawn."""

    keys: list[tuple[Any, ...]]
    entries: dict[str, list[int]] = field(default_factory=dict)
    bins: dict[str, list[list[int]]] = field(default_factory=dict)
    ranks: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    """By aggregate and role: the bin drawn for each key; -1 and the number of bins are the ends."""
    trees: dict[str, list[list[list[int]]]] = field(default_factory=dict)
    """By measure: for each key the noisy nodes, level by level."""

    def __repr__(self) -> str:
        return "<Noisy: not paid for, not shown>"


def noised(plan: Plan, raw: Aggregates) -> Noisy:
    """Every mechanism of the plan, run once on the raw aggregates."""
    selection = plan.partition_selection
    shown, counts = _shown(plan, selection, raw)
    noisy = Noisy(keys=[tuple(raw.keys[i]) for i in shown])
    if selection is not None and selection.measure is not None and counts is not None:
        noisy.entries[selection.measure] = counts
    for part in plan.parts:
        match part:
            case LaplacePart() | GaussianPart():
                _add_noise(part, raw, shown, noisy)
            case RankPart():
                groups = [raw.bins[part.measure][i] for i in shown]
                noisy.ranks[part.aggregate, part.role] = _candidates(part, groups)
            case TreePart():
                sums = [part.tree.sums(raw.bins[part.measure][i]) for i in shown]
                noisy.trees[part.measure] = _noisy_trees(part, sums)
            case PartitionSelection() | GaussianSelection():
                pass  # it went first
    return noisy


def _shown(
    plan: Plan, part: Selection | None, raw: Aggregates
) -> tuple[list[int], list[int] | None]:
    """Which keys are shown, and the noisy numbers of units where one number of each decided."""
    if part is None:
        return list(range(len(raw.keys))), None
    if isinstance(part, PartitionSelection):
        return _counted(plan, part.keys_per_person, part.scale, part.threshold, raw.units)
    present = [place for place, number in enumerate(raw.units) if number > 0]
    numbers = [raw.units[place] for place in present]
    noisy = _sums(numbers, gaussian_sampler(part.variance))
    kept = [(p, n) for p, n in zip(present, noisy, strict=True) if n >= part.threshold]
    shown = [place for place, _ in kept]
    if part.single is None:
        return shown, [number for _, number in kept]
    alone, _ = _counted(plan, 1, part.single.scale, part.single.threshold, raw.single)
    return sorted({*shown, *alone}), None


def _counted(
    plan: Plan, own: int, scale: Fraction, threshold: int, numbers: Sequence[int]
) -> tuple[list[int], list[int]]:
    """The keys whose number of units reaches the threshold by Laplace noise, and these numbers."""
    mechanism = ThresholdedHistogram(
        keys_per_person=own, scale=scale, threshold=threshold, neighbours=plan.card.neighbours
    )
    # the backend put the keys in an order that tells nothing; numbers stand for them here
    places, counts = mechanism.release_arrays(np.arange(len(numbers)), numbers_of(list(numbers)))
    return places.tolist(), counts.tolist()


def _add_noise(
    part: LaplacePart | GaussianPart, raw: Aggregates, shown: list[int], noisy: Noisy
) -> None:
    if part.measure in raw.bins:
        groups = [raw.bins[part.measure][i] for i in shown]
        flat = [entry for group in groups for entry in group]
        sums = iter(noisy_entries(part, flat))
        noisy.bins[part.measure] = [[next(sums) for _ in group] for group in groups]
    else:
        exact = [raw.entries[part.measure][i] for i in shown]
        noisy.entries[part.measure] = noisy_entries(part, exact)


def noisy_entries(part: LaplacePart | GaussianPart, exact: list[int]) -> list[int]:
    """The entries of one measure, each with noise of its own."""
    sampler: Any
    if isinstance(part, LaplacePart):
        sampler = laplace_sampler(part.scale)
    else:
        sampler = gaussian_sampler(part.variance)
    return _sums(exact, sampler)


def _noisy_trees(part: TreePart, trees: list[list[list[int]]]) -> list[list[list[int]]]:
    noise = part.noise
    sampler: Any = (
        laplace_sampler(noise.scale)
        if isinstance(noise, LaplacePart)
        else gaussian_sampler(noise.variance)
    )
    flat = [node for levels in trees for nodes in levels for node in nodes]
    sums = iter(_sums(flat, sampler))
    return [[[next(sums) for _ in nodes] for nodes in levels] for levels in trees]


def _sums(exact: list[int], sampler: Any) -> list[int]:
    lattice = Lattice(step=Fraction(1), rounds=False, dimension=max(len(exact), 1))
    sums: list[int] = lattice.noised(numbers_of(exact), sampler).tolist()
    return sums


def rank_distances(part: RankPart, weights: Sequence[Sequence[int]]) -> NDArray[Any]:
    """The distance of every candidate from the rank aimed at, in integers, cut off far away.

    `weights` has a row for every group; int64 where that is wide enough, else Python's integers.

    >>> part = RankPart(aggregate="x", measure="m", role="value", level=Fraction(1, 2), shift=0,
    ...                 ends=(0, 0), candidates=3, distance_sensitivity=1,
    ...                 epsilon=Fraction(1), rho=None)
    >>> rank_distances(part, [[4, 1, 3]]).tolist()     # half of the weight is 4
    [[0, 0, 2]]
    """
    before, behind = part.ends
    a, d = part.level.numerator, part.level.denominator
    most = max((sum(row) for row in weights), default=0)
    cut = ceil(_CUT / part.rate)
    wide = 2 * d * (most + before + behind + part.shift) >= _WIDE
    kind: Any = np.object_ if wide else np.int64
    rows = np.array(weights, kind).reshape(len(weights), -1)
    first = np.full((len(rows), 1 if before else 0), before, kind)
    last = np.full((len(rows), 1 if behind else 0), behind, kind)
    extended = np.concatenate((first, rows, last), axis=1)
    target = a * rows.sum(axis=1, keepdims=True) + d * part.shift
    upto = np.cumsum(extended, axis=1)
    misses = np.maximum(d * (upto - extended) - target, target - d * upto)
    nearest: NDArray[Any] = np.minimum(np.maximum(misses, 0), cut if wide else min(cut, _WIDE))
    return nearest.astype(np.int64) if cut < _WIDE else nearest


def _candidates(part: RankPart, groups: list[Sequence[int]]) -> list[int]:
    """One draw a group: the number of a bin, or -1 or the number of bins for a public end."""
    drawn: list[int] = []
    step = max(1, _ENTRIES // part.candidates)
    for start in range(0, len(groups), step):
        distances = rank_distances(part, groups[start : start + step])
        if distances.dtype == np.int64:
            drawn += choice_exp_rows(distances, rate=part.rate).tolist()
        else:  # a rate so small that even distances cut off need more than 64 bits
            drawn += [choice_exp([Fraction(-d) for d in row], rate=part.rate) for row in distances]
    return [place - (1 if part.ends[0] else 0) for place in drawn]
