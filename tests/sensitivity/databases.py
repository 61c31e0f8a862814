"""All small databases, their neighbours, and plain definitions to compare with."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, pairwise
from math import ceil, floor
from typing import Any

from lastbit.privacy.neighbours import ADD_REMOVE, CHANGE_ONE, Neighbours
from lastbit.sensitivity.statistics import (
    Count,
    InterquartileRange,
    Mean,
    Quantile,
    Statistic,
    Sum,
    TrimmedMean,
    Variance,
)

Database = tuple[int, ...]

VALUES = (0, 1, 2, 4)  # the ends are the bounds, and the gaps differ
LOWER, UPPER = VALUES[0], VALUES[-1]
BOUNDS: dict[str, Any] = {"lower": LOWER, "upper": UPPER}

LEVELS = (Fraction(0), Fraction(1, 4), Fraction(1, 3), Fraction(1, 2), Fraction(9, 10), Fraction(1))
ORDERED: tuple[Statistic, ...] = tuple(Quantile(level) for level in LEVELS)
TRIMMED: tuple[Statistic, ...] = (TrimmedMean(0), TrimmedMean("1/5"), TrimmedMean("0.4"))
OTHERS: tuple[Statistic, ...] = (Count(), Sum(), Mean(), InterquartileRange())
QUESTIONS: list[tuple[Statistic, Neighbours]] = [
    *((statistic, CHANGE_ONE) for statistic in (*ORDERED, *TRIMMED, *OTHERS, Variance())),
    *((statistic, ADD_REMOVE) for statistic in (*ORDERED, *OTHERS)),
]
LARGEST = 6


def databases(relation: Neighbours, largest: int = LARGEST) -> Iterator[Database]:
    """Every multiset of values, as a sorted tuple; the empty one only where it has a neighbour."""
    for size in range(0 if relation == ADD_REMOVE else 1, largest + 1):
        yield from combinations_with_replacement(VALUES, size)


@cache
def neighbours_of(database: Database, relation: Neighbours) -> frozenset[Database]:
    shorter = {database[:i] + database[i + 1 :] for i in range(len(database))}
    if relation == CHANGE_ONE:
        longer = {tuple(sorted((*rest, v))) for rest in shorter for v in VALUES}
        return frozenset(longer - {database})
    return frozenset(shorter | {tuple(sorted((*database, v))) for v in VALUES})


def within(database: Database, steps: int, relation: Neighbours) -> list[set[Database]]:
    """The databases at exactly 0, 1, 2, ... steps."""
    shells, seen = [{database}], {database}
    for _ in range(steps):
        fresh = {near for far in shells[-1] for near in neighbours_of(far, relation)} - seen
        shells.append(fresh)
        seen |= fresh
    return shells


def plain(statistic: Statistic, rows: tuple[int | Fraction, ...]) -> Fraction:
    """The statistic by its definition."""
    ordered, n = sorted(rows), len(rows)
    match statistic:
        case Count():
            return Fraction(n)
        case Sum():
            return Fraction(sum(ordered))
        case Mean():
            return Fraction(sum(ordered)) / n if n else Fraction(LOWER)
        case Variance():
            mean = Fraction(sum(ordered)) / n
            return sum(((x - mean) ** 2 for x in ordered), Fraction(0)) / n
        case Quantile():
            return Fraction(ordered[max(1, ceil(statistic.level * n)) - 1] if n else LOWER)
        case TrimmedMean():
            cut = floor(statistic.trim * n)
            kept = ordered[cut : n - cut]
            return Fraction(sum(kept)) / len(kept)
        case InterquartileRange():
            quarter, three = Quantile("1/4"), Quantile("3/4")
            return plain(three, rows) - plain(quarter, rows)


@cache
def local(statistic: Statistic, database: Database, relation: Neighbours) -> Fraction:
    """The local sensitivity by trying every neighbour."""
    here = plain(statistic, database)
    moves = {abs(plain(statistic, near) - here) for near in neighbours_of(database, relation)}
    if isinstance(statistic, Variance) and len(database) > 1:
        for i in range(len(database)):  # the best value to change to may lie between the others
            rest = database[:i] + database[i + 1 :]
            mean = Fraction(sum(rest), len(rest))
            moves.add(abs(plain(statistic, (*rest, mean)) - here))
    return max(moves)


def nested(numbers: list[Fraction]) -> bool:
    return all(a <= b for a, b in pairwise(numbers))
