"""Binary16 code, judged for all pairs of inputs at once."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lastbit.errors import InvalidParameter, NotMonotone
from lastbit.exact import Ball, Number, lower, positive, rational
from lastbit.verify.running.law import Worst
from lastbit.verify.running.uniforms import FullPrecision, Uniform

Halves: TypeAlias = NDArray[np.float16]
Integers: TypeAlias = NDArray[np.int64]
Function16: TypeAlias = Callable[[Halves, Halves, int], Halves]

BINARY16_UNIFORM = FullPrecision(significand=11, least_exponent=-14)
_MOST_CELLS = 1 << 12
_TURNS = "the output turns; only code that rises or falls is analysed"


def laws_of(
    function: Function16,
    inputs: Halves,
    *,
    uniform: FullPrecision = BINARY16_UNIFORM,
    signs: tuple[int, ...] = (-1, 1),
    checked: int = 32,
) -> tuple[NDArray[np.float64], Integers, int]:
    """The outputs, a row of probabilities for each input, and what the rows add up to.

    Law      row i, column k is P(function(inputs[i], u, sign) = outputs[k]) times the total
    Theorem  as in `exact_law`: from the first uniform of a cell bisection finds the last, for all
             inputs at once. The code is assumed monotone; that its outputs rise or fall from cell
             to cell is checked for all inputs, and every single uniform for `checked` of them
    Checked  tests/verify/test_exhaustive.py
    """
    points = np.array([uniform.point(i) for i in range(uniform.size)])
    unit = uniform.significand - 1 - uniform.least_exponent
    below = np.ldexp(np.append(points, 1.0), unit).astype(np.int64)
    below[0] = 0
    return _laws(function, inputs, points.astype(np.float16), below, signs=signs, checked=checked)


def _laws(
    function: Function16,
    inputs: Halves,
    u: Halves,
    below: Integers,
    *,
    signs: tuple[int, ...],
    checked: int,
) -> tuple[NDArray[np.float64], Integers, int]:
    """The same for draws u in increasing order; those before number k weigh below[k]."""
    some = np.linspace(0, inputs.size - 1, min(checked, inputs.size)).astype(np.int64).tolist()
    found: list[tuple[Integers, Integers, Integers]] = []
    for sign in signs:
        here = _cells(function, inputs, u, sign)
        for i in some:
            claimed = np.empty(u.size, np.int64)
            for who, key, first, last in here:
                at = int(np.searchsorted(who, i))
                if at < who.size and who[at] == i:
                    claimed[first[at] : last[at] + 1] = key[at]
            if (_keys(function(np.full(u.size, inputs[i]), u, sign)) != claimed).any():
                raise NotMonotone(_TURNS)
        found += [(who, key, below[last + 1] - below[first]) for who, key, first, last in here]
    who, key, share = (np.concatenate(column) for column in zip(*found, strict=True))
    keys, column = np.unique(key, return_inverse=True)
    table = np.zeros((inputs.size, keys.size), np.int64)
    np.add.at(table, (who, column), share)
    patterns = np.where(keys >= 0, keys, -(keys + 1) | np.int64(-(1 << 63)))
    return patterns.view(np.float64), table, len(signs) * int(below[-1])


def _cells(
    function: Function16, inputs: Halves, u: Halves, sign: int
) -> list[tuple[Integers, Integers, Integers, Integers]]:
    """Rounds of cells: which inputs, their output, the first and the last uniform."""
    rounds: list[tuple[Integers, Integers, Integers, Integers]] = []
    who = np.arange(inputs.size)
    first, before, way = (np.zeros(inputs.size, np.int64) for _ in range(3))
    while who.size:
        x = inputs[who]
        key = _keys(function(x, u[first], sign))
        low, high = first.copy(), np.full(who.size, u.size)
        while (high - low > 1).any():
            middle = (low + high) // 2
            same = _keys(function(x, u[middle], sign)) == key
            low, high = np.where(same, middle, low), np.where(same, high, middle)
        if rounds:
            step = np.sign(key - before[who])
            if (way[who] * step < 0).any():
                raise NotMonotone(_TURNS)
            way[who] = step
        before[who] = key
        rounds.append((who, key, first, low))
        if len(rounds) > _MOST_CELLS:
            problem = f"has more than {_MOST_CELLS} outputs"
            raise InvalidParameter("function", problem=problem, remedy="round them to a grid")
        left = low + 1 < u.size
        who, first = who[left], low[left] + 1
    return rounds


def _keys(outputs: NDArray[Any]) -> Integers:
    wide = outputs.astype(np.float64)
    if np.isnan(wide).any():
        raise InvalidParameter("function", problem="returns NaN", remedy="return numbers")
    pattern = wide.view(np.int64)
    return np.where(pattern >= 0, pattern, -(pattern & 0x7FFF_FFFF_FFFF_FFFF) - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exhaustive:
    """The worst of all pairs of inputs: `inputs[0]` gives the output more often."""

    inputs: tuple[float, float]
    worst: Worst
    count: int
    outputs: int

    @property
    def loss(self) -> Ball | None:
        return self.worst.loss

    def excess(self, epsilon: Number) -> Ball | None:
        return self.worst.excess(epsilon)


def exhaustive(
    function: Function16,
    *,
    bound: Number,
    distance: Number = 1,
    uniform: FullPrecision = BINARY16_UNIFORM,
    signs: tuple[int, ...] = (-1, 1),
    checked: int = 32,
) -> Exhaustive:
    """The worst pair of all binary16 inputs within +-bound that are at most `distance` apart.

    Law      the greatest P(r | x)/P(r | y) over all x, y and outputs r, exactly
    Theorem  for each output the best partner of x is the y with the least probability in a window
             of the sorted inputs: the lesser of two overlapping stretches of powers of two. The
             probabilities are integers below 2**53; their quotients round monotonely, so the
             greatest is among those with the greatest float
    Checked  tests/verify/test_exhaustive.py

    >>> def shifted(value, u, sign):
    ...     return np.rint(2 * (value + sign * u))
    >>> found = exhaustive(shifted, bound="1/4", checked=2)
    >>> found.count, found.worst.output
    (26626, -2.0)
    """
    inputs, apart = _within(bound), positive(distance, "distance")
    outputs, table, total = laws_of(function, inputs, uniform=uniform, signs=signs, checked=checked)
    place = inputs.astype(np.float64)
    low, high = _near(place, apart)
    best: tuple[Fraction | None, int, int, int] | None = None
    for k in range(outputs.size):
        share, least = table[:, k], _window_least(table[:, k], low, high)
        with np.errstate(divide="ignore", invalid="ignore"):
            quotient = np.where(share > 0, share / least, 0.0)
        likely = np.flatnonzero(quotient == quotient.max()).tolist()
        i = max(likely, key=lambda i: Fraction(int(share[i]), max(int(least[i]), 1)))
        p, q = int(share[i]), int(least[i])
        ratio = Fraction(p, q) if q else None
        if best is None or (p and ratio is None) or (ratio and best[0] and ratio > best[0]):
            best = (ratio, i, int(low[i] + np.argmin(share[low[i] : high[i]])), k)
            if ratio is None:
                break
    assert best is not None  # there is at least one output
    _, i, j, k = best
    one, other = (Fraction(int(table[row, k]), total) for row in (i, j))
    worst = Worst(output=float(outputs[k]), probability=one, other=other)
    pair = (float(place[i]), float(place[j]))
    return Exhaustive(inputs=pair, worst=worst, count=inputs.size, outputs=outputs.size)


def _near(place: NDArray[np.float64], apart: Fraction) -> tuple[Integers, Integers]:
    """For each of some sorted binary16 numbers, from where to where others are at most so far."""
    # the sums are exact: at most 2**5 + 2**24 units, and a distance is rounded down to such units
    step = float(Fraction(math.floor(apart * 2**24), 2**24))
    low = np.searchsorted(place, place - step, side="left")
    return low, np.searchsorted(place, place + step, side="right")


def _within(bound: Number) -> Halves:
    """All binary16 numbers within +-bound, in order."""
    far = lower(positive(bound, "bound"))
    numbers = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    return np.sort(numbers[np.isfinite(numbers) & (np.abs(numbers.astype(np.float64)) <= far)])


def _window_least(share: Integers, low: Integers, high: Integers) -> Integers:
    """The least of share[low[i]:high[i]] for every i, by stretches of powers of two."""
    width = high - low
    level = np.frexp(width.astype(np.float64))[1] - 1
    out = np.empty_like(share)
    stretch = share
    for power in range(int(level.max()) + 1):
        if power:
            half = 1 << (power - 1)
            stretch = np.minimum(stretch[:-half], stretch[half:])
        here = np.flatnonzero(level == power)
        out[here] = np.minimum(stretch[low[here]], stretch[high[here] - (1 << power)])
    return out


# ---------------------------------------------------------------- several uniforms


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnLaw:
    """The exact law of code of several uniforms: `shares` of `total`, `outputs` in order."""

    outputs: Halves
    shares: Integers
    total: int

    @property
    def probabilities(self) -> dict[float, Fraction]:
        """Of numbers: zeros of both signs together, which `outputs` keeps apart."""
        found: dict[float, Fraction] = {}
        for output, share in zip(self.outputs.tolist(), self.shares.tolist(), strict=True):
            number = output + 0.0
            found[number] = found.get(number, Fraction(0)) + Fraction(share, self.total)
        return found


def drawn_law(
    function: Callable[..., Halves],
    *uniforms: Uniform,
    accepted: Callable[..., NDArray[np.bool_]] | None = None,
) -> DrawnLaw:
    """The exact law of binary16 code of several uniforms, by running it on all of their values.

    Law      P(function(u, v, ...) = output), given that accepted(u, v, ...), which says of draws
             whether they are kept; others are drawn again
    Theorem  every combination of draws is run once and has the product of its draws' weights. What
             is drawn again until it is kept has the law of the first draws given that they are kept
    Differs  from `exact_law`: nothing need be monotone, and every draw is run: 2**22 for two grids
             of 11 bits
    Checked  tests/verify/test_gaussian_floats.py

    >>> from lastbit.verify import Grid
    >>> two = drawn_law(lambda u, v: u + v, Grid(1), Grid(1))
    >>> two.probabilities
    {0.0: Fraction(1, 4), 0.5: Fraction(1, 2), 1.0: Fraction(1, 4)}
    """
    draws = [_weighted(uniform) for uniform in uniforms]
    last, weights = draws[-1]
    counts = np.zeros(1 << 16, np.int64)
    if math.prod(int(weights.sum()) for _, weights in draws) >= 1 << 62:
        problem, remedy = "draws too much to count", "pass fewer uniforms, or coarser ones"
        raise InvalidParameter("uniforms", problem=problem, remedy=remedy)
    for before in itertools.product(*(zip(*draw, strict=True) for draw in draws[:-1])):
        given = [np.full(last.size, u) for u, _ in before]
        factor = math.prod(int(w) for _, w in before)
        kept = np.ones(last.size, bool) if accepted is None else accepted(*given, last)
        if not kept.any():
            continue
        outputs = function(*(u[kept] for u in (*given, last)))
        if np.isnan(outputs).any() or outputs.dtype != np.float16:
            problem = "returns NaN, or something else than binary16"
            raise InvalidParameter("function", problem=problem, remedy="return numpy.float16")
        shares = np.bincount(outputs.view(np.uint16), weights[kept], minlength=1 << 16)
        counts += factor * shares.astype(np.int64)
    patterns = np.flatnonzero(counts)
    halves = patterns.astype(np.uint16).view(np.float16)
    order = np.argsort(_keys(halves), kind="stable")
    return DrawnLaw(outputs=halves[order], shares=counts[patterns][order], total=int(counts.sum()))


def _weighted(uniform: Uniform) -> tuple[Halves, NDArray[np.float64]]:
    """The draws of a model and their weights, whole numbers with a common unit below 2**30."""
    points = np.array([uniform.point(i) for i in range(uniform.size)])
    shares = [uniform.below(i + 1) - uniform.below(i) for i in range(uniform.size)]
    unit = math.lcm(*(share.denominator for share in shares))
    if unit > 1 << 30 or (points.astype(np.float16) != points).any():
        problem, remedy = "draws more than binary16 holds", "pass Grid(11), say"
        raise InvalidParameter("uniform", problem=problem, remedy=remedy)
    return points.astype(np.float16), np.array([float(share * unit) for share in shares])


def exhaustive_delta(
    release: Callable[[Halves, Halves], Halves],
    drawn: DrawnLaw,
    *,
    bound: Number,
    distance: Number,
    epsilon: Number,
    checked: int = 32,
) -> tuple[float, float]:
    """A delta that some pair of binary16 inputs needs at epsilon, and one that is enough for all.

    Law      inputs within +-bound, at most `distance` apart; release(value, noise) rises with noise
    Theorem  delta of x against y is the sum over the outputs of what P(r | x) has above
             exp(epsilon) P(r | y). For each output the least P(r | y) over all y near x makes that
             larger, so the greatest such sum over x is enough for every pair. What is needed is
             taken from pairs as far apart as allowed. Both in doubles, good to ten digits
    Checked  tests/verify/test_gaussian_floats.py

    >>> from lastbit.verify import Grid
    >>> noise = drawn_law(lambda u: u, Grid(4))
    >>> def rounded(value, drawn):
    ...     return np.rint(value + drawn)
    >>> needed, enough = exhaustive_delta(
    ...     rounded, noise, bound="1/64", distance="1/64", epsilon=1, checked=2)
    >>> needed <= enough
    True
    """
    inputs, apart = _within(bound), positive(distance, "distance")
    below = np.concatenate([[0], np.cumsum(drawn.shares)])

    def run(value: Halves, noise: Halves, sign: int) -> Halves:
        return release(value, noise)

    _, table, total = _laws(run, inputs, drawn.outputs, below, signs=(1,), checked=checked)
    place = inputs.astype(np.float64)
    low, high = _near(place, apart)
    factor = math.exp(rational(epsilon, "epsilon"))
    enough, needed = np.zeros(inputs.size), np.zeros((2, inputs.size))
    for column in table.T:
        enough += np.maximum(column - factor * _window_least(column, low, high), 0.0)
        for way, other in enumerate((low, high - 1)):
            needed[way] += np.maximum(column - factor * column[other], 0.0)
    return float(needed.max()) / total, float(enough.max()) / total
