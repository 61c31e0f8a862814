"""Report noisy max: its law by plain sums, its privacy by exact laws, its ties and its sums."""

from __future__ import annotations

import pickle
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from flint import fmpq_poly
from hypothesis import example, given, strategies as st

from lastbit.errors import InvalidParameter, LastbitError
from lastbit.mechanisms.exponential import utilities_of
from lastbit.mechanisms.noisy_max import NoisyArgmax, NoisyMaxLaw, ReportNoisyMax
from lastbit.mechanisms.permute_and_flip import PermuteAndFlipLaw
from lastbit.privacy.guarantees import PureDP
from lastbit.privacy.neighbours import ADD_REMOVE
from lastbit.sampling.bits import KeyStream
from lastbit.sampling.deterministic import Seeded
from lastbit.sampling.laplace_tables import digits
from tests.laws.oracle import decimals, exp
from tests.mechanisms.divergence import mass
from tests.mechanisms.selection import (
    BAD_UTILITIES,
    EPSILONS,
    MARK,
    Vector,
    check_frequencies,
    neighbours,
    private,
    sums_to_one,
    work,
)

# ---------------------------------------------------------------- the law


def by_plain_sum(utilities: Vector, i: int, scale: Fraction) -> Decimal:
    """P[i] summed over the noise of i, until what is left is below 10**-45."""
    q = exp(-1 / scale)
    total, weight, g = Decimal(0), 1 - q, 0
    while weight > Decimal("1e-45") * (1 - q):
        term = weight
        for j, u in enumerate(utilities):
            if j != i:
                most = utilities[i] + g - u - (1 if j < i else 0)
                term *= 1 - q ** (most + 1) if most >= 0 else 0
        total += term
        weight *= q
        g += 1
    return total


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(2), Fraction(7)], ids=str)
def test_law_against_plain_sums(scale: Fraction) -> None:
    with decimals():
        for utilities in [*product(range(3), repeat=3), (0, 5, 9, 9), (4, 0, 0, 4), (7,)]:
            law = NoisyMaxLaw(utilities, scale=scale)
            for i in range(len(utilities)):
                exact = by_plain_sum(utilities, i, scale)
                assert abs(mass(law, i) - exact) < Decimal("1e-44")


@given(
    st.lists(st.integers(-30, 5), min_size=1, max_size=30),
    st.sampled_from([Fraction(1, 50), Fraction(1), Fraction(10**6), Fraction(2**40)]),
)
def test_law_sums_to_one(utilities: list[int], scale: Fraction) -> None:
    law = NoisyMaxLaw(utilities, scale=scale)
    assert sums_to_one(law, len(utilities))
    assert law.cdf(len(utilities) - 1) == 1
    assert law.support == (0, len(utilities) - 1)


def test_for_large_scales_the_law_is_that_of_permute_and_flip() -> None:
    """Ding et al. 2021, in the limit: ties become rare."""
    for utilities in product(range(3), repeat=3):
        steps = [u * 2**40 for u in utilities]
        noisy, flipped = NoisyMaxLaw(steps, scale=2**40), PermuteAndFlipLaw(list(utilities))
        for i in range(3):
            assert abs(noisy.probability(i) - flipped.probability(i)) < Fraction(3, 2**40)


def test_law_in_corner_cases() -> None:
    assert NoisyMaxLaw([5], scale=1).probability(0) == 1
    assert NoisyMaxLaw([5, 5], scale=1).probability(2) == 0
    assert NoisyMaxLaw([0, 2**80], scale=1).quantile("1/2") == 1
    assert NoisyMaxLaw([0, 0], scale="1/100").quantile("1/2") == 0  # ties go to the first
    with pytest.raises(LastbitError):
        NoisyMaxLaw([], scale=1)


# ---------------------------------------------------------------- privacy


def numerator(utilities: Vector, i: int) -> fmpq_poly:
    """P[i] times (1+q)(1+q+q**2)..., which is a polynomial in q = exp(-1/scale)."""
    leads = [utilities[i] - u + (j > i) for j, u in enumerate(utilities) if j != i]
    first = max([0, *(1 - lead for lead in leads)])
    rest: list[Any] = [fmpq_poly([1])]  # the coefficients of powers of x
    for lead in leads:
        rest = [
            (rest[k] if k < len(rest) else 0) - (rest[k - 1] * power(first + lead) if k else 0)
            for k in range(len(rest) + 1)
        ]
    whole = fmpq_poly([1])
    for k in range(2, len(utilities) + 1):
        whole *= fmpq_poly([1] * k)
    total = fmpq_poly([0])
    for k, coefficient in enumerate(rest):
        total += coefficient * (whole / fmpq_poly([1] * (k + 1)))
    return total * power(first)


def power(degree: int) -> fmpq_poly:
    return fmpq_poly([0] * degree + [1])


def equal_by_algebra(cost: int):
    """P_x = q**-cost P_y as functions of q."""
    return lambda x, y, i: numerator(x, i) * power(cost) == numerator(y, i)


@pytest.mark.thinned(one_in=12)
@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
@pytest.mark.parametrize(("sensitivity", "top"), [(1, 3), (2, 2)])
@pytest.mark.parametrize("monotone", [False, True])
def test_privacy_by_the_exact_law(
    epsilon: Fraction, sensitivity: int, top: int, monotone: bool
) -> None:
    pick = ReportNoisyMax(sensitivity=sensitivity, epsilon=epsilon, monotone=monotone)
    assert pick.guarantee == PureDP(epsilon)
    cost = sensitivity * (1 if monotone else 2)
    for count in (2, 3):
        pairs = neighbours(count, top, sensitivity, monotone=monotone)
        assert private(pick.law, pairs, epsilon, equal_by_algebra(cost))


@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
@pytest.mark.parametrize("monotone", [False, True])
def test_noise_too_small_is_seen(epsilon: Fraction, monotone: bool) -> None:
    """Two candidates reach the bound exactly, so a scale off by a millionth is seen."""
    good = ReportNoisyMax(sensitivity=1, epsilon=epsilon, monotone=monotone)
    scale = good.scale * (1 - Fraction(1, 10**6))
    mutant = ReportNoisyMax(sensitivity=1, scale=scale, monotone=monotone)
    assert mutant.epsilon > epsilon
    assert not private(mutant.law, neighbours(2, 3, 1, monotone=monotone), epsilon)


def test_the_monotone_scale_is_wrong_for_utilities_that_are_not() -> None:
    declared = ReportNoisyMax(sensitivity=1, epsilon=1, monotone=True)
    pairs = neighbours(2, 3, 1, monotone=False)
    assert not private(declared.law, pairs, Fraction(1), equal_by_algebra(1))


FLOATS = st.floats(-100, 100)


@given(FLOATS, st.floats(-1, 1), st.sampled_from(EPSILONS))
def test_floats_stay_within_the_steps_that_were_counted(
    x: float, move: float, epsilon: Fraction
) -> None:
    pick = ReportNoisyMax(sensitivity=1, epsilon=epsilon, grid="auto")
    assert pick.guarantee == PureDP(epsilon)
    y = x + move
    (a,), (b,) = pick._steps(utilities_of([x])), pick._steps(utilities_of([y]))
    if abs(Fraction(x) - Fraction(y)) <= 1:
        assert 2 * abs(int(a) - int(b)) * pick.lattice.step / pick.scale <= epsilon
    # rounding costs less than 2**-19 of the noise
    assert pick.scale <= 2 / epsilon * (1 + Fraction(1, 2**19) / epsilon)


@given(st.integers(-(2**63), 2**63 - 2), st.sampled_from(["1/1024", "1/4", 1, 8]))
@example(2**54 + 2, "1/4")
@example(2**54 + 2, "1/128")
def test_integers_on_a_grid_are_not_rounded_to_floats_first(x: int, grid) -> None:
    pick = ReportNoisyMax(sensitivity=1, epsilon=1, grid=grid)
    a, b = pick._steps(utilities_of(np.array([x, x + 1])))
    assert (int(a), int(b)) == tuple(round(v / pick.lattice.step) for v in (x, x + 1))
    assert 0 <= int(b) - int(a) <= pick.lattice.l1_steps(Fraction(1))


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16, object])
def test_steps_of_floats(kind) -> None:
    values = np.array([0.5, -0.5, 1.5, 2.25, 1000.125], kind)
    pick = ReportNoisyMax(sensitivity=1, epsilon=1, grid=1)
    assert pick._steps(utilities_of(values)).tolist() == [0, 0, 2, 2, 1000]
    far = pick._steps(utilities_of(np.array([1e300, -1e300, 5e-324])))
    assert far.tolist() == [int(1e300), -int(1e300), 0]


# ---------------------------------------------------------------- the draw


class Given:
    """Noise that was fixed beforehand."""

    def __init__(self, noise: list[int], kind: type = np.int64) -> None:
        self.noise: Any = np.array(noise, kind)

    def draw(self, bits, size: int):
        mine, self.noise = self.noise[:size], self.noise[size:]
        return mine


def test_ties_go_to_the_smallest_index() -> None:
    steps = np.array([3, 5, 5, 4])
    for noise, winner in (
        ([0, 0, 0, 0], 1),
        ([2, 0, 0, 1], 0),
        ([0, 0, 1, 2], 2),
        ([0, 0, 0, 1], 1),
    ):
        assert NoisyArgmax(steps, Given(noise)).draw(Seeded(0), 1).tolist() == [winner]


@pytest.mark.parametrize("tied", [(0, 1), (5, 70_000), (65_535, 65_536), (70_000, 139_999)])
def test_ties_across_blocks(tied: tuple[int, int]) -> None:
    steps = np.zeros(140_000, np.int64)
    steps[list(tied)] = 3
    assert NoisyArgmax(steps, Given([0] * 140_000)).draw(Seeded(0), 1).tolist() == [tied[0]]
    noise = [0] * 140_000
    noise[tied[1]] = 1
    assert NoisyArgmax(steps, Given(noise)).draw(Seeded(0), 1).tolist() == [tied[1]]


LARGE = st.integers(-(2**64), 2**64)


@given(st.lists(st.tuples(LARGE, st.integers(0, 2**63 - 1)), min_size=1, max_size=8))
@example([(2**61 - 1, 2**63 - 1), (0, 0)])
@example([(2**63 - 1, 1), (2**63 - 2, 3)])
def test_sums_do_not_overflow(pairs: list[tuple[int, int]]) -> None:
    pick = ReportNoisyMax(sensitivity=1, epsilon=1)
    steps = pick._steps(utilities_of([u for u, _ in pairs]))
    sums = [u + g for u, g in pairs]
    for kind in (np.int64, object):
        sampler = NoisyArgmax(steps, Given([g for _, g in pairs], kind))
        assert sampler.draw(Seeded(0), 1).tolist() == [sums.index(max(sums))]


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(2), Fraction(50)], ids=str)
def test_release_follows_the_law(scale: Fraction) -> None:
    pick = ReportNoisyMax(sensitivity=1, scale=scale)
    sampler = NoisyArgmax(np.array([0, 1, 1, 3, 2]), digits(scale, signed=False))
    check_frequencies(sampler, pick.law([0, 1, 1, 3, 2]), trials=600_000, seed=3)


def test_release_of_floats_follows_the_law() -> None:
    pick = ReportNoisyMax(sensitivity="0.1", epsilon=1, grid="auto")
    utilities = [0.25, 0.5, "1/3", 0.1]
    noise = digits(pick.scale / pick.lattice.step, signed=False)
    sampler = NoisyArgmax(pick._steps(utilities_of(utilities)), noise)
    check_frequencies(sampler, pick.law(utilities), trials=600_000, seed=4)


@pytest.mark.parametrize("count", [1, 5, 1000, 140_000])
@pytest.mark.parametrize("size", [1, 7])
def test_words_depend_on_the_number_of_candidates_alone(count: int, size: int) -> None:
    noise = digits(Fraction(1000), signed=False)
    generator = np.random.default_rng(0)
    vectors = [np.zeros(count, np.int64), np.arange(count), generator.integers(-9, 9, count)]
    seeds = range(20 if count < 10_000 else 2)
    works = {work(NoisyArgmax(u, noise), size, seed) for u in vectors for seed in seeds}
    assert len(works) == 1


def test_release_of_large_utilities() -> None:
    pick = ReportNoisyMax(sensitivity=1, epsilon=1)
    assert pick.release([0, 2**70]) == 1
    assert pick.release(np.array([0, 2**64 - 1], np.uint64)) == 1
    assert ReportNoisyMax(sensitivity=1, epsilon=1, grid="auto").release([0.5, "1e4", 7]) == 1


# ---------------------------------------------------------------- error


@pytest.mark.parametrize("count", [2, 3, 10])
@pytest.mark.parametrize("beta", ["1/3", "0.05", "1e-9"])
@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
def test_accuracy_serves_the_worst_utilities(count: int, beta: str, epsilon: Fraction) -> None:
    """The best one last, so that it loses all ties; for two candidates no smaller a will do."""
    pick = ReportNoisyMax(sensitivity=1, epsilon=epsilon)
    error = pick.accuracy(beta, candidates=count)
    assert error.denominator == 1
    assert pick.beta(error, candidates=count) <= Fraction(beta)

    def bad(loss: int):
        return 1 - pick.law([-loss] * (count - 1) + [0]).probability(count - 1)

    assert bad(int(error) + 1) < Fraction(beta)
    if error:
        assert pick.beta(error - Fraction(1, 2), candidates=count) > Fraction(beta)
        if count == 2:
            assert bad(int(error)) > Fraction(beta)


def test_accuracy_on_a_grid_counts_the_rounding() -> None:
    whole = ReportNoisyMax(sensitivity=1, scale=4)
    on_grid = ReportNoisyMax(sensitivity=1, scale=4, grid=1)
    assert on_grid.accuracy("0.05", candidates=9) == whole.accuracy("0.05", candidates=9) + 1
    assert on_grid.beta("0.5", candidates=9) == 1
    assert on_grid.beta(8, candidates=9) == whole.beta(7, candidates=9)
    assert on_grid.expected_error_bound(candidates=9) > whole.expected_error_bound(candidates=9)


def test_errors_in_corner_cases() -> None:
    assert ReportNoisyMax(sensitivity=1, epsilon=1).beta(0, candidates=10**6) == 1
    wide = ReportNoisyMax(sensitivity=1, scale=Fraction(10**150))
    assert wide.expected_error_bound(candidates=100) > 1e150


# ---------------------------------------------------------------- declarations and input


def test_guarantees() -> None:
    pick = ReportNoisyMax(sensitivity=2, scale=3, neighbours=ADD_REMOVE)
    assert pick.guarantee == PureDP("4/3", neighbours=ADD_REMOVE)
    assert pick.guarantee_at(3) == PureDP(2, neighbours=ADD_REMOVE)
    assert pick.guarantee_at(0).epsilon == 0
    assert ReportNoisyMax(sensitivity=2, scale=3, monotone=True).guarantee_at(3).epsilon == 1
    on_grid = ReportNoisyMax(sensitivity=2, scale=3, grid="1/2")
    assert on_grid.epsilon == Fraction(2 * 5, 2 * 3)  # five half steps
    assert on_grid.guarantee_at("1/8").epsilon > 0  # one step may be crossed all the same
    assert on_grid.guarantee_at(0).epsilon == 0


def test_a_used_mechanism_can_be_pickled() -> None:
    pick = ReportNoisyMax(sensitivity=2, epsilon=1, grid="1/4")
    pick.release([1, 2.5])
    again = pickle.loads(pickle.dumps(pick))
    assert again == pick
    assert hash(again) == hash(pick)
    assert again.release([0, 10_000]) == 1


def test_a_grid_is_a_power_of_two() -> None:
    with pytest.raises(LastbitError):
        ReportNoisyMax(sensitivity=1, epsilon=1, grid="1/3")


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("scale", {"scale": 2**512 + 1}),
        ("scale", {"scale": 2**20000}),
        ("scale", {"scale": 2**100, "grid": Fraction(1, 2**500)}),
        ("epsilon", {"epsilon": Fraction(1, 2**600)}),
    ],
    ids=range(4),
)
def test_noise_beyond_all_tables(name: str, parameters: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter, match=rf"{name} makes noise of more than 2\*\*512 steps"):
        ReportNoisyMax(sensitivity=1, **parameters)


def test_the_largest_noise() -> None:
    assert ReportNoisyMax(sensitivity=1, scale=2**512).release([0, 2**600]) == 1
    assert ReportNoisyMax(sensitivity=1, scale=2**500, grid="auto").release([0, 2**600]) == 1


NOT_INTEGERS: list = [[73211.0], np.array([73211.5]), ["1/73211"], [1, 73211.0]]


@pytest.mark.parametrize("utilities", NOT_INTEGERS, ids=range(4))
def test_utilities_that_are_not_whole(utilities, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KeyStream, "fill", lambda self, count: pytest.fail("bits were drawn"))
    pick = ReportNoisyMax(sensitivity=1, epsilon=1)
    for question in (pick.release, pick.law, pick.expected_error):
        with pytest.raises(LastbitError) as failure:
            question(utilities)
        assert "utilities" in str(failure.value)
        assert MARK not in str(failure.value)


@pytest.mark.parametrize("utilities", BAD_UTILITIES, ids=range(len(BAD_UTILITIES)))
def test_bad_utilities_on_a_grid(utilities, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KeyStream, "fill", lambda self, count: pytest.fail("bits were drawn"))
    with pytest.raises(LastbitError) as failure:
        ReportNoisyMax(sensitivity=1, epsilon=1, grid="auto").release(utilities)
    assert MARK not in str(failure.value)
