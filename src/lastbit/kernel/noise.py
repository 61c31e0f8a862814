"""Where sealed integers become noisy ones: the only file that reads both.

Law      each entry of a measure gets independent noise of the step's exact law; a key of the data
         is shown iff its noisy number of units reaches the threshold (where units with one key are
         counted apart, iff one of its two numbers reaches its own); each quantile's draw is one of
         the exponential mechanism over the bins of a group (`tables/plan/ranks.py`); each node of a
         tree of bins is an entry (`tables/plan/tree.py`); pairs of columns are drawn by how far
         their tables are from public ones (`tables/plan/marginals.py`)
Theorem  each step costs what the checker worked out: its noise is drawn once, by the exact sampler
         of its law, at the parameters of the program, which has never seen the data
Differs  distances of ranks are cut off at a public number, 2**12 times the distance at which a
         candidate is exp(1) times less likely: the least of a number and a constant moves no
         further than the number, so the price is the same, and integers stay short
Checked  tests/kernel/test_noise.py
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lastbit.errors import EngineFailed, LastbitError
from lastbit.kernel.program import KeySelection, Noise, PairDraws, Program, RankDraw, TreeNoise
from lastbit.kernel.sealed import Aggregates
from lastbit.sampling import choice_exp_rows, draw_discrete_gaussian, draw_discrete_laplace
from lastbit.tables import Marginal, value_from_json, value_to_json

_CUT = 1 << 12
_WIDE = 1 << 62
_ENTRIES = 1 << 22
_FARTHEST = 1 << 60


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Noisy:
    """What may be shown once it is paid for: keys, noisy integers, which candidates were drawn."""

    keys: list[tuple[Any, ...]] = field(default_factory=list)
    entries: dict[str, list[int]] = field(default_factory=dict)
    bins: dict[str, list[list[int]]] = field(default_factory=dict)
    ranks: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    """By aggregate and role: the bin drawn for each key; -1 and the number of bins are the ends."""
    trees: dict[str, list[list[list[int]]]] = field(default_factory=dict)
    """By measure: for each key the noisy nodes, level by level."""
    tables: dict[Marginal, list[int]] = field(default_factory=dict)
    """Noisy counts of marginals, by the places of their columns among the keys."""

    def __repr__(self) -> str:
        return "<Noisy: not paid for, not shown>"

    def to_text(self) -> str:
        """All of it, for the books."""
        columns = [list(map(value_to_json, column)) for column in zip(*self.keys, strict=True)]
        return json.dumps(
            {
                "count": len(self.keys),
                "keys": columns,
                "entries": self.entries,
                "bins": self.bins,
                "ranks": [[*pair, places] for pair, places in self.ranks.items()],
                "trees": self.trees,
                "tables": [[list(one), table] for one, table in self.tables.items()],
            }
        )

    @classmethod
    def from_text(cls, text: str) -> Noisy:
        """The numbers that `to_text` wrote; any other text is refused."""
        with suppress(KeyError, LastbitError, TypeError, ValueError):
            found = json.loads(text)
            columns = [map(value_from_json, column) for column in found["keys"]]
            return cls(
                keys=list(zip(*columns, strict=True)) if columns else [()] * found["count"],
                entries=found["entries"],
                bins=found["bins"],
                ranks={(name, role): places for name, role, places in found["ranks"]},
                trees=found["trees"],
                tables={tuple(one): table for one, table in found["tables"]},
            )
        raise EngineFailed("the numbers that were drawn cannot be used: too many, or not ours")


def noisy_numbers(program: Program, raw: Aggregates) -> Noisy:
    """Every step of the program, run once on the sealed integers."""
    if program.marginals is not None:
        return Noisy(tables=_noisy_tables(program, raw))
    selection = next((step for step in program.steps if isinstance(step, KeySelection)), None)
    shown, counts = _shown_keys(selection, raw)
    noisy = Noisy(keys=[tuple(raw.keys[i]) for i in shown])
    if selection is not None and selection.noise.measure is not None and counts is not None:
        noisy.entries[selection.noise.measure] = counts
    for step in program.steps:
        match step:
            case Noise(measure=str(name)) if name in raw.bins:
                noisy.bins[name] = _with_noise(step, [raw.bins[name][i] for i in shown])
            case Noise(measure=str(name)):
                noisy.entries[name] = add_noise(step, [raw.entries[name][i] for i in shown])
            case RankDraw(measure=name):
                groups = [raw.bins[name][i] for i in shown]
                noisy.ranks[step.aggregate, step.role] = _draw_candidates(step, groups)
            case TreeNoise(noise=Noise(measure=str(name))):
                nodes = [level for i in shown for level in node_sums(step, raw.bins[name][i])]
                levels = _with_noise(step.noise, nodes)
                starts = range(0, len(levels), step.levels)
                noisy.trees[name] = [levels[i : i + step.levels] for i in starts]
    return noisy


def add_noise(noise: Noise, exact: Sequence[int]) -> list[int]:
    """The integers, each with noise of its own."""
    laplace = noise.mechanism == "laplace"
    draw = draw_discrete_laplace if laplace else draw_discrete_gaussian
    return [a + b for a, b in zip(exact, draw(noise.parameter, len(exact)), strict=True)]


def _with_noise(noise: Noise, rows: Sequence[Sequence[int]]) -> list[list[int]]:
    """Rows of integers, every integer with noise of its own, drawn all at once."""
    noisy = iter(add_noise(noise, [number for row in rows for number in row]))
    return [[next(noisy) for _ in row] for row in rows]


def _shown_keys(
    selection: KeySelection | None, raw: Aggregates
) -> tuple[list[int], list[int] | None]:
    """Which keys are shown, and the noisy numbers of units where one number of each decided."""
    if selection is None:
        return list(range(len(raw.keys))), None
    shown, counts = _keys_above(selection.noise, selection.threshold, raw.units)
    if selection.single is None:
        return shown, counts
    alone, _ = _keys_above(*selection.single, raw.single)
    return sorted({*shown, *alone}), None


def _keys_above(noise: Noise, threshold: int, units: Sequence[int]) -> tuple[list[int], list[int]]:
    """The keys that some unit has and whose noisy number reaches the threshold, and these numbers.

    Theorem  `mechanisms/histogram.py` for Laplace noise, `tables/plan/selection.py` for Gaussian
    """
    present = [place for place, number in enumerate(units) if number > 0]
    noisy = add_noise(noise, [units[place] for place in present])
    above = [pair for pair in zip(present, noisy, strict=True) if pair[1] >= threshold]
    return [place for place, _ in above], [number for _, number in above]


def node_sums(tree: TreeNoise, weights: Sequence[int]) -> list[list[int]]:
    """The weights of the nodes, level by level from the leaves; missing leaves are empty.

    >>> from fractions import Fraction
    >>> noise = Noise(measure="m1", mechanism="laplace", parameter=Fraction(1))
    >>> node_sums(TreeNoise(noise=noise, branching=2, levels=3), [1, 2, 3, 4, 5])
    [[1, 2, 3, 4, 5, 0, 0, 0], [3, 7, 5, 0], [10, 5]]
    """
    step = tree.branching
    largest = step ** (tree.levels - 1)
    leaves = -(-len(weights) // largest) * largest
    levels = [[*weights, *[0] * (leaves - len(weights))]]
    for _ in range(tree.levels - 1):
        below = levels[-1]
        levels.append([sum(below[i : i + step]) for i in range(0, len(below), step)])
    return levels


def rank_distances(draw: RankDraw, weights: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    """The distance of every candidate from the rank aimed at, in integers, cut off far away.

    `weights` has a row for every group. Sums are Python's integers where int64 is too narrow.

    >>> from fractions import Fraction
    >>> draw = RankDraw(aggregate="x", measure="m", role="value", level=Fraction(1, 2), shift=0,
    ...                 ends=(0, 0), candidates=3, rate=Fraction(1, 2))
    >>> rank_distances(draw, [[4, 1, 3]]).tolist()     # half of the weight is 4
    [[0, 0, 2]]
    """
    before, behind = draw.ends
    a, d = draw.level.numerator, draw.level.denominator
    most = max((sum(row) for row in weights), default=0)
    cut = min(ceil(_CUT / draw.rate), _WIDE - 1)
    wide = 2 * d * (most + before + behind + draw.shift + 1) >= _WIDE
    kind: Any = np.object_ if wide else np.int64
    rows = np.array(weights, kind).reshape(len(weights), -1)
    first = np.full((len(rows), 1 if before else 0), before, kind)
    last = np.full((len(rows), 1 if behind else 0), behind, kind)
    extended = np.concatenate((first, rows, last), axis=1)
    target = a * rows.sum(axis=1, keepdims=True) + d * draw.shift
    upto = np.cumsum(extended, axis=1)
    misses = np.maximum(d * (upto - extended) - target, target - d * upto)
    nearest: NDArray[np.int64] = np.minimum(np.maximum(misses, 0), cut).astype(np.int64)
    return nearest


def _draw_candidates(draw: RankDraw, groups: list[Sequence[int]]) -> list[int]:
    """One draw a group: the number of a bin, or -1 or the number of bins for a public end."""
    places: list[int] = []
    step = max(1, _ENTRIES // draw.candidates)
    for start in range(0, len(groups), step):
        distances = rank_distances(draw, groups[start : start + step])
        places += choice_exp_rows(distances, rate=draw.rate).tolist()
    return [place - (1 if draw.ends[0] else 0) for place in places]


def _noisy_tables(program: Program, raw: Aggregates) -> dict[Marginal, list[int]]:
    """Noise on the fixed tables, draws of pairs, noise on those that were drawn."""
    noises = {step.measure: step for step in program.steps if isinstance(step, Noise)}
    noisy: dict[Marginal, list[int]] = {}

    def measure(tables: Sequence[Marginal]) -> None:
        for one in tables:
            noisy[one] = add_noise(noises[f"m{len(noisy) + 1}"], raw.tables[one])

    measure(program.marginals or ())
    for step in program.steps:
        if isinstance(step, PairDraws):
            measure(_draw_pairs(step, raw.tables, noisy))
    return noisy


def _draw_pairs(
    draws: PairDraws,
    exact: Mapping[Marginal, Sequence[int]],
    noisy: Mapping[Marginal, list[int]],
) -> list[Marginal]:
    """Which pairs are measured: draws of the exponential mechanism, without replacement."""
    scores = pair_scores(draws, exact, noisy)
    left, pairs = list(draws.candidates), []
    for _ in range(draws.picks):
        best = max(scores[one] for one in left)  # the law is the same for every number here
        distances = np.array([[best - scores[one] for one in left]], np.int64)
        (place,) = choice_exp_rows(distances, rate=draws.rate).tolist()
        pairs.append(left.pop(place))
    return sorted(pairs)


def pair_scores(
    draws: PairDraws,
    exact: Mapping[Marginal, Sequence[int]],
    noisy: Mapping[Marginal, Sequence[int]],
) -> dict[Marginal, int]:
    """How far the table of each pair is from what noisy tables say of it, less a public number.

    Theorem  the distance of a table from one that is fixed by then moves by no more than the table
             (`tables/plan/marginals.py`), and a number that is cut off at public ends by no more
    """
    scores: dict[Marginal, int] = {}
    for one in draws.candidates:
        table = independent_table(*(noisy[place,] for place in one))
        distance = sum(abs(a - b) for a, b in zip(exact[one], table, strict=True))
        score = distance - draws.penalty * len(table)
        scores[one] = max(-_FARTHEST, min(score, _FARTHEST))  # so that differences fit
    return scores


def independent_table(first: Sequence[int], second: Sequence[int]) -> list[int]:
    """What two one-way tables say of their pair if the columns are independent.

    >>> independent_table([30, 10], [20, 20])
    [15, 15, 5, 5]
    """
    rows, columns = ([max(number, 0) for number in table] for table in (first, second))
    total = max(sum(rows), sum(columns), 1)
    return [a * b // total for a in rows for b in columns]
