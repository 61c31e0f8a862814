"""No clock is read here: the statistics are tried on made-up times."""

from collections import Counter
from fractions import Fraction
from itertools import permutations
from math import factorial

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lastbit.audit.attacks.noise import dependence, spearman
from lastbit.errors import InvalidParameter
from lastbit.exact import rounded_up
from tests.audit.attacks.leaky import generator


@pytest.mark.thinned(one_in=16)
@pytest.mark.parametrize(
    "sizes", [(1, 2, 3, 4, 5, 6, 7), (1, 1, 2, 2, 3, 3), (0, 0, 0, 0, 5, 9), (2, 1, 1, 1, 1, 1)]
)
@pytest.mark.parametrize("tied", [False, True])
def test_the_chance_is_exact(sizes, tied):
    """All assignments of the sizes to the times: P[chance <= a] <= a for every a."""
    times = np.array([i // 2 if tied else i for i in range(len(sizes))], dtype=float)
    chances = Counter(
        dependence(times, np.array(some, dtype=float)).chance for some in permutations(sizes)
    )
    below, everything = 0, factorial(len(sizes))
    for chance, count in sorted(chances.items()):
        below += count
        assert Fraction(below, everything) <= chance


def test_one_tail_would_be_too_little():
    """A mutant: without the factor 2 the rate is exceeded."""
    times = np.arange(6.0)
    chances = [
        dependence(times, np.array(some, dtype=float)).chance / 2 for some in permutations(range(6))
    ]
    level = min(chances)
    assert sum(chance <= level for chance in chances) > level * len(chances)


def test_a_dependent_clock_is_seen():
    """Time grows with the noise, under much jitter: Spearman about 0.3."""
    draw = generator()
    sizes = np.abs(draw.laplace(0, 1, 5000))
    times = 1000 + 50 * sizes + draw.exponential(150, 5000)
    found = dependence(times, sizes)
    assert found.chance < Fraction(1, 10**6) and 0.2 < found.spearman < 0.5


def test_a_drifting_clock_is_not():
    """The machine slows down as time goes by; the noise does not care."""
    draw = generator()
    sizes = np.abs(draw.laplace(0, 1, 5000))
    times = np.linspace(1000, 9000, 5000) + draw.exponential(10, 5000)
    assert dependence(times, sizes).chance > Fraction(1, 10**4)


def test_spearman_of_ranks():
    column = np.array([3.0, 1.0, 2.0, 5.0, 4.0])
    assert spearman(column, column**3) == pytest.approx(1)
    assert spearman(column, -column) == pytest.approx(-1)
    assert spearman(column, np.zeros(5)) == 0
    assert spearman(np.array([1.0, 1.0, 2.0]), np.array([1.0, 2.0, 3.0])) == pytest.approx(
        0.8660254
    )


@given(st.fractions(Fraction(1, 10**12), 1))
def test_what_is_shown_is_never_less(chance):
    assert chance <= Fraction(rounded_up(chance, 2)) <= chance * Fraction(12, 10)


def test_columns_must_match():
    with pytest.raises(InvalidParameter):
        dependence(np.zeros(3), np.zeros(4))
    with pytest.raises(InvalidParameter):
        dependence(np.zeros(0), np.zeros(0))
