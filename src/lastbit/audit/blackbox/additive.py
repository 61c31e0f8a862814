"""Sums of tables: what many features tell together, each of them little.

The likelihood ratio of a vector is often close to a sum of one term for each entry. Fitted one by
one the terms would count twice what entries have in common, and entries that tell little each would
be lost in the noise of their many bins. So every entry gets a few levels, all terms are fitted
together, and an output is kept as one number that holds its levels: millions of outputs in little
room, many of them alike.

Law      the score s of an output estimates ln(P/Q). If it were right, an output of the first input
         with weight 2/(1+e**s) and one of the second with 2/(1+e**-s) would fill every level of
         every feature alike. Where they do not, the logarithm of the ratio is added to that term
Source   Friedman, Hastie, Tibshirani 2000 (additive logistic regression)
Differs  terms are drawn towards 0 as far as their spread is noise (`tables.noise_of`): that of all
         features together, or of each where there are many outputs
Checked  tests/audit/test_additive.py
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lastbit.audit.blackbox.features import Column, Feature, Rows
from lastbit.audit.blackbox.tables import Bins, Places, Table, binned, noise_of, table_of

Seen: TypeAlias = tuple[NDArray[np.int64], Column]
"""Some numbers that stand for outputs, and how often each was seen."""

GROUPS = ("entries", "differences")
_FEWEST = 2
_SWEEPS = 3
_OFTEN = 1 / 16
_TAIL = (2.0**-11, 2.0**-9, 2.0**-7, 2.0**-5, 2.0**-3)
_PARTS = tuple(
    (*_TAIL[k:], 1 / 2, *(1 - t for t in _TAIL[: k - 1 if k else None : -1])) for k in range(6)
)
_MOST_CODES, _DENSE, _MOST_FITTED = 1 << 62, 1 << 20, 1 << 19
_KEPT, _LEAST_ROWS, _MANY = 12, 1 << 13, 1 << 20


@dataclass(frozen=True, slots=True)
class Additive:
    """Features with the level of each bin; `bases` are the numbers of their levels.

    A single feature has a level for each bin.
    """

    tables: tuple[Table, ...]
    levels: tuple[Places, ...]
    bases: tuple[int, ...]

    @classmethod
    def single(cls, table: Table) -> Additive:
        size = table.edges.size + 1
        return cls((table,), (np.arange(size),), (size,))

    @classmethod
    def of(cls, tables: Sequence[Table], x: Rows, y: Rows) -> Additive | None:
        """Levels as fine as the number of features allows; None if they are too few or too many."""
        if len(tables) < _FEWEST:
            return None
        both = np.concatenate([x, y])
        shares = [
            np.bincount(table.bins(both, {}), minlength=table.edges.size + 1) / len(both)
            for table in tables
        ]
        for parts in _PARTS:
            levels = tuple(_levels(share, np.array(parts)) for share in shares)
            bases = tuple(int(level.max()) + 1 for level in levels)
            if math.prod(bases) <= _MOST_CODES:
                coarse = [
                    replace(table, ratios=level.astype(np.float64)).compiled()
                    for table, level in zip(tables, levels, strict=True)
                ]
                places = tuple(table.ratios.astype(np.int64) for table in coarse)
                return cls(tuple(coarse), places, bases)
        return None

    @property
    def _weights(self) -> list[int]:
        """The place of each digit: the product of the bases before it."""
        return [1, *accumulate(self.bases[:-1], lambda a, b: a * b)]

    def codes(self, r: Rows, seen: Bins) -> NDArray[np.int64]:
        """A number for each output, whose digits are its levels."""
        code = np.zeros(len(r), dtype=np.int64)
        for table, level, weight in zip(self.tables, self.levels, self._weights, strict=True):
            code += (level * weight)[table.bins(r, seen)]
        return code

    def seen(self, codes: Sequence[NDArray[np.int64]]) -> Seen:
        """Each of the numbers once, with how often it is there."""
        together = np.concatenate([np.empty(0, dtype=np.int64), *codes])
        if math.prod(self.bases) > _DENSE:
            found, counts = np.unique(together, return_counts=True)
            return found, counts.astype(np.float64)
        counts = np.bincount(together)
        found = np.flatnonzero(counts)
        return found, counts[found].astype(np.float64)

    def fitted(self, one: Seen, two: Seen) -> list[Column]:
        """The term of each feature, by level, whose sum tells most of outputs of either input."""
        if len(self.tables) == 1:
            return [
                self.tables[0].estimated(*(_counted(*side, self.bases[0]) for side in (one, two)))
            ]
        sides = [thinned(side) for side in (one, two)]
        counts = [count for _, count in sides]
        places = list(zip(*(self._digits(codes) for codes, _ in sides), strict=True))
        first = [
            _filled(place, base, counts) for place, base in zip(places, self.bases, strict=True)
        ]
        noise = [noise_of(*(np.concatenate(side) for side in zip(*first, strict=True)))] * len(
            first
        )
        if counts[0].sum() > _MANY:  # enough to say of each feature whether it tells anything
            noise = [noise_of(p, q) for p, q in first]
        terms = [np.zeros(base) for base in self.bases]
        scores = [np.zeros(len(count)) for count in counts]
        for i in _SWEEPS * [*range(len(places))]:
            p, q = _filled(places[i], self.bases[i], _unexplained(scores, counts))
            change = np.log((p + 0.5) / (q + 0.5)) * (p + q) / (p + q + noise[i])
            terms[i] += change
            scores = [score + change[place] for score, place in zip(scores, places[i], strict=True)]
        return terms

    def score(self, codes: NDArray[np.int64], terms: Sequence[Column]) -> Column:
        score = np.zeros(len(codes))
        for term, digit in zip(terms, self._digits(codes), strict=True):
            score += term[digit]
        return score

    def scored(self, terms: Sequence[Column]) -> tuple[Table, ...]:
        """The tables with these terms."""
        return tuple(
            replace(table, ratios=term[level])
            for table, term, level in zip(self.tables, terms, self.levels, strict=True)
        )

    def _digits(self, codes: NDArray[np.int64]) -> list[Places]:
        digits = []
        for base in self.bases[:-1]:
            codes, digit = np.divmod(codes, base)
            digits.append(digit)
        return [*digits, codes]


def thinned(side: Seen, most: int = _MOST_FITTED) -> Seen:
    """Some of what was seen, from everywhere, if it is more than is needed."""
    step = max(1, -(-len(side[0]) // most))
    return side[0][::step], side[1][::step]


def _levels(share: Column, parts: Column) -> Places:
    """For each bin its level: what comes often by itself, the rest in parts, small in the tails."""
    often = share > _OFTEN
    rest = np.cumsum(np.where(often, 0.0, share))
    middle = rest - np.where(often, 0.0, share) / 2
    levels = np.searchsorted(parts, middle / max(float(rest[-1]), 1e-9))
    levels[often] = len(parts) + 1 + np.arange(int(often.sum()))
    return np.unique(levels, return_inverse=True)[1].astype(np.int64)


def _counted(codes: Places, counts: Column, size: int) -> Column:
    return np.bincount(codes, counts, size).astype(np.float64)


def _filled(
    digits: Sequence[Places], base: int, weights: Sequence[Column]
) -> tuple[Column, Column]:
    one, two = (_counted(d, w, base) for d, w in zip(digits, weights, strict=True))
    return one, two


def _unexplained(scores: Sequence[Column], counts: Sequence[Column]) -> list[Column]:
    """How much of the outputs the score does not explain; all of it where it says nothing."""
    return [
        2 * count / (1 + np.exp(np.clip(sign * score, -30, 30)))
        for score, count, sign in zip(scores, counts, (1, -1), strict=True)
    ]


def merged(parts: Sequence[Seen]) -> Seen:
    """All that was seen, each number once."""
    codes, places = np.unique(np.concatenate([part[0] for part in parts]), return_inverse=True)
    counts = np.bincount(places, weights=np.concatenate([part[1] for part in parts]))
    return codes, counts.astype(np.float64)


def sums_of(found: Sequence[Feature], x: Rows, y: Rows) -> list[Additive]:
    """One for each group of features about parts of an output, and one for every other feature."""
    tables = [table for feature in found if (table := binned(feature, x, y)) is not None]
    parts = ([table for table in tables if table.feature.group == group] for group in GROUPS)
    whole = [group for part in parts if (group := Additive.of(part, x, y)) is not None]
    alone = [t for t in tables if t.feature.group not in GROUPS or len(tables) == 1]
    if not whole:
        alone = tables
    return [*whole, *(Additive.single(table) for table in alone)]


def telling(found: list[Feature], x: Rows, y: Rows) -> list[Feature]:
    """The entries, and what else tells most: fitted to one half of the outputs, tried on the other.

    All of them where there are few outputs, or few features.
    """
    half = len(x) // 2
    others = [i for i, feature in enumerate(found) if feature.group != GROUPS[0]]
    if len(others) <= _KEPT or half < _LEAST_ROWS:
        return found
    gains = {i: _gain(found[i], (x[:half], y[:half]), (x[half:], y[half:])) for i in others}
    dropped = sorted(others, key=lambda i: -gains[i])[_KEPT:]
    return [feature for i, feature in enumerate(found) if i not in dropped]


def _gain(feature: Feature, first: tuple[Rows, Rows], second: tuple[Rows, Rows]) -> float:
    """About how much likelier the second outputs are by a table of the first."""
    table = table_of(feature, *first)
    if table is None:
        return -math.inf
    size = table.edges.size + 1
    p, q = (np.bincount(table.bins(side, {}), minlength=size) for side in second)
    gains = ((p - q) / 2 * s - (p + q) / 8 * s**2 for s in (table.steps, table.ratios))
    return max(float(np.sum(gain)) for gain in gains)
