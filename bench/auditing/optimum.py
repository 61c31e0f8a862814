"""The most that counting can certify: what an auditor would get who knew the law.

Cells are the probabilities of all outputs, or of small sets of them, under either input. From them
follows the event that is best for a number of runs, and what it certifies at the expected counts.

Theorem  both bounds rise with the hits if the other hits are fixed, and of all events E with
         Q(E) <= q one of the form {P/Q >= c} has the greatest P(E) (Neyman, Pearson 1933). So it
         is enough to try the cells in the order of their ratios, taken together from the first on
Differs  the counts are expected ones: a lucky audit gets a little more. Cells of continuous laws
         are of finite width and those of like ratio are merged: both give away below 0.1 %
Checked  tests/audit/test_benchmark_laws.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from itertools import combinations
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lastbit.audit.bounds import epsilon_lower, ratio_lower

Cells: TypeAlias = NDArray[np.float64]
"""Two rows, which sum to 1: how likely each cell is under the first input, and under the second."""
Cdf: TypeAlias = Callable[[Any], Any]
_BINS, _FAR = 2048, 30.0
_LEAST, _NEVER = 1e-300, 1e-12
_MOST_RUNS = 1 << 40


# ---------------------------------------------------------------- the best event


def attainable(
    pairs: Iterable[Cells], runs: int, error: Fraction, *, delta: Fraction = Fraction(0)
) -> float:
    """The greatest bound on epsilon at this delta from `runs` runs in all, half on each input."""
    each, best = max(1, runs // 2), 0.0
    for _, hits, others, by_ratio in _promising(pairs, each, error, delta):
        if by_ratio:
            best = max(best, ratio_lower(hits, others, error=error))
        else:
            best = max(best, epsilon_lower(hits, each, others, each, delta=delta, error=error))
    return best


def true_loss(pairs: Iterable[Cells], *, delta: Fraction = Fraction(0)) -> float:
    """Where the bound tends to with more and more runs: the epsilon at this delta."""
    best = 0.0
    for cells in pairs:
        for p, q in (cells, cells[::-1]):
            order = np.argsort(-_ratios(p, q), kind="stable")
            above = np.cumsum(p[order]) - float(delta)
            with np.errstate(divide="ignore"):
                losses = np.log(np.maximum(above, _LEAST)) - np.log(np.cumsum(q[order]))
            best = max(best, float(np.max(losses, where=above > _NEVER, initial=0.0)))
    return best


def runs_needed(
    pairs: Iterable[Cells], epsilon: Fraction, error: Fraction, *, delta: Fraction = Fraction(0)
) -> int:
    """From how many runs on the best event refutes the claim, to a tenth; 0 if none is enough."""
    laws, runs = list(pairs), 2
    while not max(_promising(laws, runs // 2, error, delta))[0] > epsilon:
        runs *= 2
        if runs > _MOST_RUNS:
            return 0
    while attainable(laws, runs, error, delta=delta) > epsilon:
        runs = 10 * runs // 11
    while not attainable(laws, runs, error, delta=delta) > epsilon:
        runs = 11 * runs // 10 + 1
    return runs


def _promising(
    pairs: Iterable[Cells], each: int, error: Fraction, delta: Fraction
) -> list[tuple[float, int, int, bool]]:
    """The best event for two intervals and that for the ratio of hits, by approximate ends.

    Each with what it promises, its expected counts, and whether it is for the ratio.
    """
    z, half = (NormalDist().inv_cdf(1 - float(part)) for part in (error, error / 2))
    found: list[tuple[float, int, int, bool]] = []
    for cells in pairs:
        for p, q in (cells, cells[::-1]):
            order = np.argsort(-_ratios(p, q), kind="stable")
            sums = (np.minimum(np.cumsum(side[order]), 1.0) for side in (p, q))
            hits, others = (np.rint(each * total) for total in sums)
            low, high = _wilson(hits, each, -half) - float(delta), _wilson(others, each, half)
            apart = np.log(np.maximum(low, _LEAST) / np.maximum(high, _LEAST))
            share = _wilson(hits, np.maximum(hits + others, 1), -z)
            ratio = np.log(np.maximum(share, _LEAST) / np.maximum(1 - share, _LEAST))
            for promise, by_ratio in ((apart, False), *(() if delta else ((ratio, True),))):
                i = int(promise.argmax())
                found.append((float(promise[i]), int(hits[i]), int(others[i]), by_ratio))
    kinds = ([f for f in found if f[3] == by_ratio] for by_ratio in (False, True))
    return [max(kind) for kind in kinds if kind]


def _wilson(hits: Any, trials: Any, z: float) -> Any:
    """An end of Wilson's interval: only to rank events by."""
    share = hits / trials
    middle = share + z * z / (2 * trials)
    spread = z * np.sqrt(share * (1 - share) / trials + (z / (2 * trials)) ** 2)
    return (middle + spread) / (1 + z * z / trials)


def _ratios(p: NDArray[np.float64], q: NDArray[np.float64]) -> NDArray[np.float64]:
    """ln(P/Q) of each cell, infinite where only one of both is possible."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios: NDArray[np.float64] = np.log(p) - np.log(q)
    return np.where(np.isnan(ratios), 0.0, ratios)


# ---------------------------------------------------------------- cells


def of_laws(one: Mapping[Any, Any], two: Mapping[Any, Any]) -> Cells:
    """The cells of two laws on few outputs.

    >>> of_laws({"a": 1}, {"a": 0.5, "b": 0.5}).tolist()
    [[1.0, 0.0], [0.5, 0.5]]
    """
    outputs = list(dict.fromkeys([*one, *two]))
    return np.array([[float(law.get(output, 0)) for output in outputs] for law in (one, two)])


def of_cdfs(one: Cdf, two: Cdf, nodes: NDArray[np.float64]) -> Cells:
    """The cells between neighbouring nodes, and beyond the first and the last."""
    return np.array([np.diff(cdf(nodes), prepend=0.0, append=1.0) for cdf in (one, two)])


def together(parts: Sequence[Cells]) -> Cells:
    """The cells of independent outputs that are published together."""
    return reduce(
        lambda a, b: merged(np.stack([np.outer(*ab).ravel() for ab in zip(a, b, strict=True)])),
        parts,
    )


def mixed(parts: Sequence[Cells]) -> Cells:
    """The cells of alternatives, each with its own probabilities."""
    return merged(np.concatenate(parts, axis=1))


def merged(cells: Cells) -> Cells:
    """Cells of about the same ratio as one: what tells the inputs apart is the ratio alone."""
    cells = cells[:, cells.any(axis=0)]
    ratios = _ratios(*cells)
    finite = ratios[np.isfinite(ratios)]
    if cells.shape[1] <= _BINS or not finite.size:
        return cells
    low, high = float(finite.min()), float(finite.max())
    width = max((high - low) / _BINS, 1e-12)
    places = np.clip((ratios - low) // width, -1, _BINS + 1).astype(np.int64) + 1
    return np.stack([np.bincount(places, weights=side, minlength=_BINS + 3) for side in cells])


def laplace_cdf(centre: float, scale: float) -> Cdf:
    def cdf(t: Any) -> Any:
        away = (np.asarray(t, dtype=np.float64) - centre) / scale
        tail = 0.5 * np.exp(-np.abs(away))
        return np.where(away < 0, tail, 1 - tail)

    return cdf


def laplace_moves(moves: Iterable[float], scale: float) -> Cells:
    """Laplace noise on numbers that move so far: beyond both ends the ratio no longer changes."""
    found = [
        of_cdfs(laplace_cdf(0, scale), laplace_cdf(move, scale), np.linspace(0, move, 257))
        for move in map(abs, moves)
        if move
    ]
    return together(found) if found else np.ones((2, 1))


def largest(one: Sequence[float], two: Sequence[float], cdf: Callable[[float], Cdf]) -> Cells:
    """The greatest of noisy numbers, published: its cdf is the product of theirs."""

    def of(centres: Sequence[float]) -> Cdf:
        return lambda t: np.prod([cdf(centre)(t) for centre in centres], axis=0)

    return of_cdfs(of(one), of(two), _nodes(*one, *two, scale=20.0))


def place_of_largest(
    one: Sequence[float], two: Sequence[float], cdf: Callable[[float], Cdf]
) -> Cells:
    """Which of noisy numbers is greatest: the others are below it, wherever it is."""
    nodes = _nodes(*one, *two, scale=20.0)
    middles = (nodes[1:] + nodes[:-1]) / 2

    def law(centres: Sequence[float]) -> list[float]:
        below = [cdf(centre)(middles) for centre in centres]
        return [
            float(np.sum(np.diff(cdf(c)(nodes)) * np.prod(below[:i] + below[i + 1 :], axis=0)))
            for i, c in enumerate(centres)
        ]

    return np.array([law(one), law(two)])


def published_above(
    one: Sequence[float],
    two: Sequence[float],
    *,
    threshold: float,
    threshold_scale: float,
    query_scale: float,
    most: int,
) -> Cells:
    """A sparse vector that publishes the noisy queries it found above, at most two of them.

    Law      given the threshold's noise t the queries are independent. The values v of those above
             have the density of their noise, times the chance that the others before the last of
             them are below t, summed over all t that are below every v
    """
    nodes = _nodes(*one, *two, threshold, scale=max(threshold_scale, query_scale), count=120)
    middles = (nodes[1:] + nodes[:-1]) / 2

    def law(queries: Sequence[float]) -> list[NDArray[np.float64]]:
        at = np.diff(laplace_cdf(threshold, threshold_scale)(nodes))
        below = [laplace_cdf(query, query_scale)(middles) for query in queries]
        value = [np.diff(laplace_cdf(query, query_scale)(nodes)) for query in queries]

        def lower_limits(others: Iterable[int]) -> NDArray[np.float64]:
            """For every v: the chance that the limit is below it, and these queries below that."""
            mass = at * np.prod([np.ones(len(at)), *(below[k] for k in others)], axis=0)
            found: NDArray[np.float64] = np.cumsum(mass) - mass / 2
            return found

        every = range(len(queries))
        found = [np.array([np.sum(at * np.prod(below, axis=0))])]
        for i in every:
            others = [k for k in (every if most > 1 else range(i)) if k != i]
            found.append(lower_limits(others) * value[i])
        least = np.minimum.outer(np.arange(len(at)), np.arange(len(at)))
        for i, j in combinations(every, 2) if most > 1 else ():
            limits = lower_limits(k for k in range(j) if k != i)
            found.append((limits[least] * np.outer(value[i], value[j])).ravel())
        return found

    return merged(np.stack([np.concatenate(law(queries)) for queries in (one, two)]))


def _nodes(*centres: float, scale: float, count: int = 2000) -> NDArray[np.float64]:
    """Ends of cells: fine between the centres, where ratios change, and wider far from them."""
    low, high = min(centres), max(centres)
    away = scale * np.expm1(np.linspace(0, np.log1p(_FAR), count))[1:]
    inner = np.linspace(low, high, count // 2 if high > low else 1)
    return np.concatenate([low - away[::-1], inner, high + away])
