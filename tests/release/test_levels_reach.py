"""How far sums of many noises stray: the table in balls, then laws of sums, exactly."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from flint import arb

from lastbit.exact import arb_of, tail_surely_at_most, working_precision
from lastbit.laws import DiscreteGaussian, DiscreteLaplace
from lastbit.release.levels_reach import _TABLE, half_widths, laplace_reach
from lastbit.release.levels_tree import LevelTree, adding_up, fractions, rounded_weights
from lastbit.release.reach import MeasureNoise
from lastbit.sampling import discrete_gaussian, discrete_laplace

BETA = Fraction(1, 20)
SPARED = 1 - (arb(-9) / 2).exp()


def tail(z: Fraction, w: arb) -> arb:
    """2 Q(z/root(w)): the chance of a normal number of variance w to be further off than z."""
    return (arb_of(z) / (2 * w).sqrt()).erfc()


def holds_on(low: Fraction, high: Fraction, z: Fraction, quadratic: list[Fraction]) -> bool:
    """Whether the quadratic is above the tail, which grows, all over an interval from 0 up."""
    a, b, c = map(arb_of, quadratic)
    pieces = [(low, high)]
    while pieces:
        first, last = pieces.pop()
        wide, middle = arb_of((last - first) / 2), arb_of((first + last) / 2)
        # the least of the quadratic: by its value and slope in the middle, and c >= 0
        least = a + b * middle + c * middle**2 - wide * abs(b + 2 * c * middle)
        if least >= tail(z, arb_of(last)):
            continue
        if last - first < Fraction(1, 1 << 24):
            return False
        half = (first + last) / 2
        pieces += [(first, half), (half, last)]
    return True


def is_proved(row: tuple[str, ...], z_less: Fraction = Fraction(0)) -> bool:
    """Whether a row has what (L) says of it."""
    excess, z, a, b, c = map(Fraction, row)
    z -= z_less
    with working_precision(64):
        mean = arb_of(a + b + c * (1 + excess)) <= arb_of(BETA) * SPARED
        # from `far` on the quadratic is above 1 and grows
        far = Fraction(8)
        while not (a + b * far + c * far**2 >= 1 and b + 2 * c * far >= 0):
            far *= 2
        return c >= 0 and bool(mean) and holds_on(Fraction(0), far, z, [a, b, c])


@pytest.mark.parametrize("row", _TABLE, ids=lambda row: row[0])
def test_each_row_of_the_table_is_proved(row: tuple[str, ...]) -> None:
    assert is_proved(row)
    assert not is_proved(row, z_less=Fraction(1, 100))  # the mutant: a reach 0.5 % shorter


def test_rows_go_from_0_to_1_and_reach_further() -> None:
    numbers = [[Fraction(text) for text in row[:2]] for row in _TABLE]
    assert numbers[0][0] == 0 and numbers[-1][0] == 1
    assert all(a < c and b < d for (a, b), (c, d) in pairwise(numbers))
    assert laplace_reach(Fraction(1, 100)) == numbers[1][1]
    assert laplace_reach(Fraction(5)) == numbers[-1][1]


@pytest.mark.parametrize("scale", [Fraction(1, 5), Fraction(1), Fraction(7, 2), Fraction(40)])
def test_laplace_noise_and_a_uniform_are_less_spread_than_the_wider_laplace(
    scale: Fraction,
) -> None:
    """P[abs(X + U) >= x] <= exp(-2 x tanh h) for x in steps of 1/16; a tenth wider tanh fails."""

    def dominated(factor: Fraction) -> bool:
        with working_precision(128):
            h = 1 / (2 * arb_of(scale))
            steep = h.tanh()
            for sixteenths in range(1, 400):
                x = Fraction(sixteenths, 16)
                k = round(x)
                u = x - k
                own = (-2 * h * k).exp() * (1 - 2 * arb_of(u) * steep)
                if not own <= (-2 * arb_of(x) * steep * arb_of(factor)).exp():
                    return False
            return True

    assert dominated(Fraction(1))
    assert not dominated(Fraction(11, 10))


# ---------------------------------------------------------------- laws of sums, exactly

TREES = {
    "one child": LevelTree((np.array([0]),)),
    "two": LevelTree((np.array([0, 0]),)),
    "three": LevelTree((np.array([0, 0, 0]),)),
    "deep": LevelTree((np.array([0]), np.array([0]))),
}
UNIT = 1024


def law_of(noise: MeasureNoise) -> list[float]:
    """The law from -most to most; what lies beyond has a chance of 1e-9."""
    most = noise.accuracy(Fraction(1, 10**9))
    return [float(noise.law.mass(k).mid()) for k in range(-most, most + 1)]


def chance_beyond(coefficients: list[Fraction], noises: list[MeasureNoise], half: float) -> float:
    """P[abs(sum of c_i X_i) > half], or a little more: on a grid, ends moved by what it rounds."""
    steps = [round(c * UNIT) for c in coefficients]
    laws = [law_of(noise) for noise in noises]
    most = sum(abs(step) * (len(law) // 2) for step, law in zip(steps, laws, strict=True))
    chances = np.zeros(2 * most + 1)
    chances[most] = 1
    for step, law in zip(steps, laws, strict=True):
        pairs = enumerate(law, start=-(len(law) // 2))
        moved = [p * np.roll(chances, step * k) for k, p in pairs]  # it does not wrap around
        chances = np.sum(moved, axis=0)
    off = sum(len(law) // 2 for law in laws) / (2 * UNIT)
    sums = np.abs(np.arange(-most, most + 1)) / UNIT
    return float(chances[sums > half - off].sum()) + 1e-8


def noises_of(kind: str, sizes: list[Fraction]) -> list[MeasureNoise]:
    if kind == "laplace":
        return [MeasureNoise(DiscreteLaplace(size)) for size in sizes]
    return [MeasureNoise(DiscreteGaussian(9 * size**2)) for size in sizes]


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("sizes", [(1, 1, 1), (3, 2, 1), (1, 4, 2)])
def test_intervals_miss_in_one_of_twenty_at_most(
    kind: str, name: str, sizes: tuple[int, ...]
) -> None:
    tree = TREES[name]
    noises = noises_of(kind, [Fraction(size) for size in sizes[: len(tree.sizes)]])
    weights = rounded_weights(tree, [noise.variance for noise in noises])
    halves = half_widths(tree, weights, noises, 1)
    ends = np.cumsum((0, *tree.sizes))
    number = int(ends[-1])
    each = [noises[level] for level, size in enumerate(tree.sizes) for _ in range(size)]
    columns = []
    for i in range(number):
        flat = [int(j == i) for j in range(number)]
        split = [flat[a:b] for a, b in pairwise(ends.tolist())]
        made = adding_up(tree, weights, split)
        columns.append([x for some in made for x in fractions(some)])
    for level, size in enumerate(tree.sizes):
        place = int(ends[level])  # the first of a level is like the others in these trees
        row = [column[place] for column in columns]
        half = float(halves[level][0])
        assert chance_beyond(row, each, half) <= 0.05
        assert chance_beyond(row, each, 0.6 * half) > 0.05  # the mutant
        del size


def test_fine_gaussian_noise_has_a_wider_bound() -> None:
    """Of a variance of 1/9 sums are on a lattice too coarse for the normal bound."""
    tree = TREES["two"]
    noises = noises_of("gaussian", [Fraction(1, 9)] * 2)
    halves = half_widths(tree, rounded_weights(tree, [Fraction(1, 9)] * 2), noises, 1)
    assert 0.5 < halves[0][0] < 1


def test_rounding_of_shown_numbers_is_added() -> None:
    """With rows that weigh 2**20, each released number was rounded by half a row at most."""
    tree = TREES["one child"]
    one = 1 << 20
    noises = noises_of("laplace", [Fraction(one), Fraction(one)])
    weights = rounded_weights(tree, [noise.variance for noise in noises])
    with_rounding = half_widths(tree, weights, noises, one)[0][0]
    without = half_widths(tree, weights, noises, 1)[0][0] / one
    assert abs(with_rounding - without - 0.5) < 1e-6  # coefficients of 1/2 and 1/2


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_intervals_hold_as_often_as_they_say(kind: str) -> None:
    """3,000 draws on a tree of 1, 3 and 8 numbers. False alarm: below 2**-40 for each number."""
    tree = LevelTree((np.array([0, 0, 0]), np.array([0, 0, 0, 0, 1, 1, 1, 2])))
    noises = noises_of(kind, [Fraction(3), Fraction(2), Fraction(4)])
    weights = rounded_weights(tree, [noise.variance for noise in noises])
    halves = [half.tolist() for half in half_widths(tree, weights, noises, 1)]
    runs, missed, mutant = 3_000, [[0] * size for size in tree.sizes], 0
    for _ in range(runs):
        drawn = [
            [draw(noise) for _ in range(size)]
            for noise, size in zip(noises, tree.sizes, strict=True)
        ]
        for level, some in enumerate(adding_up(tree, weights, drawn)):
            for place, off in enumerate(fractions(some)):
                missed[level][place] += abs(off) > halves[level][place]
            mutant += level == 2 and abs(fractions(some)[0]) > halves[level][0] / 2
    most = next(
        hits
        for hits in range(150, 400)
        if tail_surely_at_most(hits, runs, BETA, Fraction(1, 1 << 40))
    )
    assert max(number for some in missed for number in some) < most <= mutant


def draw(noise: MeasureNoise) -> int:
    if isinstance(noise.law, DiscreteLaplace):
        return discrete_laplace(noise.law.scale)
    return discrete_gaussian(variance=noise.law.variance)
