"""Smooth noise: the promise for all neighbours and all outputs, and the mutants that break it."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise
from typing import Any

import pytest

from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact.rounding import lower
from lastbit.laws import Rounded
from lastbit.laws.ideal import Ideal, PolynomialTail, StudentT
from lastbit.mechanisms.smooth_noise import SmoothNoise
from lastbit.privacy.guarantees import ApproxDP, PureDP
from lastbit.privacy.neighbours import ADD_REMOVE, CHANGE_ONE
from lastbit.sensitivity.smooth import SmoothBound, from_distance, smooth_sensitivity
from tests.evidence import late
from tests.laws.frequency import assert_frequency
from tests.laws.oracle import decimals, exp
from tests.mechanisms.divergence import hockey_stick, mass

FAR = Fraction(48)
NOISES: list[tuple[str | Ideal, str | None]] = [
    ("cauchy", None),
    ("student", None),
    (StudentT(8), None),
    (PolynomialTail(4), None),
    ("laplace", "1/100"),
    ("gaussian", "1/20"),
]


def chain(noise: SmoothNoise, *, beta: Fraction, shrink: int = 1) -> list[SmoothBound]:
    """Databases in a row, each the neighbour of the next, as far apart as a bound allows.

    The bounds S grow by exp(beta) from one to the next (a little less, so that they are rational
    and truly smooth); the values differ by the lesser of the two. `shrink` divides every bound: the
    mutant that doubles alpha.
    """
    factor = Fraction(math.exp(beta)) * (1 - Fraction(1, 1 << 40))
    sizes = [Fraction(1, 4) * factor**i for i in range(5)]
    value, out = Fraction(0), []
    for size, following in zip(sizes, [*sizes[1:], sizes[-1]], strict=True):
        bound = SmoothBound(
            value=value,
            bound=size / shrink,
            beta=noise.beta,
            lower=-FAR,
            upper=FAR,
            neighbours=CHANGE_ONE,
        )
        out.append(bound)
        value += min(size, following)
    return out


def worst(noise: SmoothNoise, bounds: list[SmoothBound]) -> Decimal:
    """The greatest loss (pure) or excess over exp(epsilon) (approximate) of a pair, all outputs."""
    steps = range(int(-FAR / noise.grid), int(FAR / noise.grid) + 1)
    laws = [noise.law(bound).law for bound in bounds]
    pairs = list(pairwise(laws)) + [(b, a) for a, b in pairwise(laws)]
    if noise.admissible.delta:
        return max(hockey_stick(p, q, noise.admissible.epsilon, steps) for p, q in pairs)
    tables = {id(law): [mass(law, k) for k in steps] for law in laws}
    with decimals():
        return max(
            (a / b).ln()
            for p, q in pairs
            for a, b in zip(tables[id(p)], tables[id(q)], strict=True)
        )


def allowed(noise: SmoothNoise) -> Decimal:
    chosen = noise.admissible
    number = chosen.delta or chosen.epsilon
    return Decimal(number.numerator) / Decimal(number.denominator)


@pytest.mark.thinned(one_in=36)
@pytest.mark.parametrize(("kind", "delta"), NOISES, ids=repr)
@pytest.mark.parametrize("epsilon", ["1/4", late("2")])
def test_the_promise_holds_for_the_worst_neighbours_and_all_outputs(
    kind: str | Ideal, delta: str | None, epsilon: str
) -> None:
    noise = SmoothNoise(epsilon=epsilon, delta=delta, noise=kind, grid="1/4")
    assert worst(noise, chain(noise, beta=noise.beta)) <= allowed(noise)


@pytest.mark.thinned(one_in=36)
@pytest.mark.parametrize(("kind", "delta"), NOISES, ids=repr)
def test_twice_the_beta_or_the_alpha_is_refused(kind: str | Ideal, delta: str | None) -> None:
    noise = SmoothNoise(epsilon="1/4", delta=delta, noise=kind, grid="1/4")
    assert worst(noise, chain(noise, beta=2 * noise.beta)) > allowed(noise)
    # half the width is what twice the alpha gives: values as far apart as before
    assert worst(noise, chain(noise, beta=noise.beta, shrink=2)) > allowed(noise)


@pytest.mark.parametrize(("kind", "delta"), NOISES[:1] + NOISES[4:5], ids=repr)
def test_medians_of_all_small_databases(kind: str | Ideal, delta: str | None) -> None:
    """All databases of three values 0 ... 4, all neighbours, all outputs."""
    noise = SmoothNoise(epsilon=2, delta=delta, noise=kind, grid="1/2", neighbours=CHANGE_ONE)
    databases = list(combinations_with_replacement(range(5), 3))
    laws = {}
    for x in databases:
        bound = smooth_sensitivity("median", x, beta=noise.beta, lower=0, upper=4)
        laws[x] = noise.law(bound).law
    steps = range(9)
    table = {x: [mass(law, k) for k in steps] for x, law in laws.items()}
    with decimals():
        factor = exp(Fraction(2))
        for x in databases:
            assert abs(sum(table[x], Decimal(-1))) < Decimal("1e-50")
            for y in databases:
                if len(set(enumerate(x)) - set(enumerate(y))) > 1:  # sorted: one entry differs
                    continue
                pairs = zip(table[x], table[y], strict=True)
                excess = sum((max(Decimal(0), a - factor * b) for a, b in pairs), Decimal(0))
                assert excess <= (Decimal(1) / 100 if delta else Decimal("1e-60"))


def test_the_guarantee_says_what_was_asked() -> None:
    pure = SmoothNoise(epsilon="1/3", grid=1, neighbours=ADD_REMOVE)
    assert pure.guarantee == PureDP("1/3", neighbours=ADD_REMOVE)
    approximate = SmoothNoise(epsilon=1, delta="1e-6", noise="laplace", grid=1)
    assert approximate.guarantee == ApproxDP(1, "1e-6")


def test_releases_follow_the_law() -> None:
    noise = SmoothNoise(epsilon=1, noise="cauchy", grid="1/4")
    bound = SmoothBound(
        value=Fraction(5), bound=Fraction(2, 3), beta=noise.beta,
        lower=Fraction(0), upper=Fraction(10), neighbours=CHANGE_ONE,
    )  # fmt: skip
    law = noise.law(bound)
    trials = 3000
    releases = [noise.release(bound) for _ in range(trials)]
    for value in (0, 5, "5.25", 10):
        chance = float(sum(law.probability(value).ends) / 2)
        hits = sum(release == float(Fraction(value)) for release in releases)
        assert_frequency(hits, trials=trials, probability=chance, detects=Fraction(3, 4))
    far = noise.accuracy("1/10", bound)
    hits = sum(abs(release - 5) > far for release in releases)
    assert hits < trials * 0.2
    assert lower(law.cdf(10)) == 1.0


def test_a_bound_without_limits_is_not_moved() -> None:
    noise = SmoothNoise(epsilon=1, noise="cauchy", grid="1/4")
    bound = SmoothBound(
        value=Fraction(0), bound=Fraction(100), beta=noise.beta,
        lower=None, upper=None, neighbours=CHANGE_ONE,
    )  # fmt: skip
    assert any(abs(noise.release(bound)) > 200 for _ in range(60))
    assert noise.law(bound).quantile("1/2") == 0


def bound_of(value: object, size: object, low: object, high: object) -> SmoothBound:
    return SmoothBound(
        value=Fraction(str(value)), bound=Fraction(str(size)), beta=Fraction(1, 1000),
        lower=Fraction(str(low)), upper=Fraction(str(high)), neighbours=CHANGE_ONE,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("value", "size"), [("0.1", "1e-9"), ("9.9", "1e-9"), ("0.1", "2"), (5, 3)]
)
def test_the_accuracy_holds_where_the_range_ends_between_two_steps(
    value: object, size: str
) -> None:
    noise = SmoothNoise(epsilon=1, noise="cauchy", grid=1)
    bound = bound_of(value, size, "0.1", "9.9")
    law = noise.law(bound).law
    for beta in ("1/2", "1/10", "1/1000"):
        far = noise.accuracy(beta, bound)
        assert far <= Fraction("9.8")
        with decimals():
            beyond = sum(mass(law, k) for k in range(1, 10) if abs(k - bound.value) > far)
        assert beyond <= Fraction(beta)


def test_the_accuracy_of_heavy_tails_is_a_number() -> None:
    noise = SmoothNoise(epsilon=1, noise=StudentT("1/16"), grid=1)
    assert noise.accuracy("1e-30", bound_of(5, 1, 0, 10)) == 10
    free = SmoothBound(
        value=Fraction(5), bound=Fraction(1), beta=noise.beta,
        lower=None, upper=None, neighbours=CHANGE_ONE,
    )  # fmt: skip
    assert noise.accuracy("1e-30", free) > 2**1024


def test_a_statistic_with_one_value_is_released_as_it_is() -> None:
    """One record: its interquartile range is 0, whatever it is; n is public."""
    noise = SmoothNoise(epsilon=1, grid="1/4")
    alone = smooth_sensitivity("iqr", [7], beta=noise.beta, lower=0, upper=10)
    assert alone.bound == 0
    assert noise.release(alone) == 0
    assert lower(noise.law(alone).probability(0)) == 1.0
    assert noise.accuracy("1/2", alone) <= noise.grid
    constant = bound_of("0.3", 0, "0.3", "0.7")
    assert noise.release(constant) == 0.5
    assert lower(noise.law(constant).probability("1/2")) == 1.0


def test_bounds_that_do_not_fit_are_refused() -> None:
    noise = SmoothNoise(epsilon=1, grid="1/4", neighbours=CHANGE_ONE)
    data: dict[str, Any] = {"lower": 0, "upper": 9}
    rough = smooth_sensitivity("median", [1, 2, 3], beta=noise.beta * 2, **data)
    with pytest.raises(InvalidParameter, match="smooth enough"):
        noise.release(rough)
    other = smooth_sensitivity("median", [1, 2, 3], beta=noise.beta, neighbours=ADD_REMOVE, **data)
    with pytest.raises(InvalidParameter, match="neighbours"):
        noise.release(other)
    patients = SmoothNoise(epsilon=1, grid="1/4", neighbours=CHANGE_ONE.by("patient"))
    with pytest.raises(InvalidParameter, match="one record changed, promised for one patient"):
        patients.release(smooth_sensitivity("median", [1, 2, 3], beta=noise.beta, **data))
    with pytest.raises(WrongType, match="bound"):
        noise.release(3.0)  # type: ignore[arg-type]
    coarse = SmoothNoise(epsilon=1, grid=64)
    narrow = smooth_sensitivity("median", [1, 2, 3], beta=noise.beta, lower=1, upper=3)
    with pytest.raises(InvalidParameter, match="grid"):
        coarse.release(narrow)


@pytest.mark.parametrize(
    "parameters",
    [
        {"epsilon": 0, "grid": 1},
        {"epsilon": 1, "grid": "auto"},
        {"epsilon": 1, "grid": "1/3"},
        {"epsilon": 1, "grid": 0},
        {"epsilon": float("inf"), "grid": 1},
        {"epsilon": 1, "grid": 1, "noise": "gumbel"},
        {"epsilon": 1, "grid": 1, "noise": "laplace"},
        {"epsilon": 1, "grid": 1, "delta": "1e-6"},
        {"epsilon": 1, "grid": 1, "neighbours": "add-remove"},
        {"epsilon": "1e-6", "grid": 1},
    ],
)
def test_bad_parameters_are_refused(parameters: dict[str, Any]) -> None:
    with pytest.raises((InvalidParameter, WrongType)):
        SmoothNoise(**parameters)


@pytest.mark.parametrize(("kind", "delta"), [("cauchy", None), ("student", None)], ids=repr)
def test_two_numbers_keep_the_promise_for_all_outputs(kind: str, delta: str | None) -> None:
    """Whatever way two neighbours share out the bound: the losses of both numbers add up."""
    noise = SmoothNoise(epsilon=1, delta=delta, noise=kind, dimension=2, grid="1/4")
    single = SmoothNoise(epsilon=1, delta=delta, noise=kind, grid="1/4")
    factor = Fraction(math.exp(noise.beta)) * (1 - Fraction(1, 1 << 40))
    steps = range(-120, 121)

    def loss(moved: Fraction, sizes: tuple[Fraction, Fraction]) -> Decimal:
        """The greatest loss of one coordinate, with the alpha of two."""
        laws = [
            Rounded(noise.admissible.law, place, size / noise.alpha, noise.grid)
            for place, size in zip((Fraction(0), moved), sizes, strict=True)
        ]
        with decimals():
            return max((mass(laws[0], k) / mass(laws[1], k)).ln() for k in steps)

    sizes = (Fraction(1, 2), Fraction(1, 2) * factor)
    worst = Decimal(0)
    for pair in (sizes, sizes[::-1]):
        for part in (0, 1, 2):  # of the lesser size, in halves
            both = (Fraction(part, 4), Fraction(2 - part, 4))
            worst = max(worst, sum((loss(moved, pair) for moved in both), Decimal(0)))
    assert worst <= 1
    assert single.alpha > noise.alpha
    assert single.beta > noise.beta


def test_several_numbers_are_released_with_one_bound() -> None:
    noise = SmoothNoise(epsilon=1, dimension=3, grid="1/4", neighbours=CHANGE_ONE)
    bound = from_distance([1, 2], value=0, beta=noise.beta, neighbours=CHANGE_ONE)
    found = noise.release_all([1, "5/2", 10**6], bound)
    assert len(found) == 3
    assert all(number * 4 == int(number * 4) for number in found)
    alone = SmoothNoise(epsilon=1, grid="1/4", neighbours=CHANGE_ONE)
    assert noise.accuracy("0.1", bound) > alone.accuracy("0.1", bound)
    with pytest.raises(InvalidParameter, match="release_all"):
        noise.release(bound)
    with pytest.raises(InvalidParameter, match="release_all"):
        noise.law(bound)
    for wrong in ([1, 2], [1, 2, 3, 4], []):
        with pytest.raises(InvalidParameter, match="dimension"):
            noise.release_all(wrong, bound)
    with pytest.raises(WrongType):
        noise.release_all("123", bound)
    with pytest.raises((InvalidParameter, WrongType)):
        noise.release_all([1, float("nan"), 2], bound)
    rough = from_distance([1, 2], value=0, beta=1, neighbours=CHANGE_ONE)
    with pytest.raises(InvalidParameter, match="smooth"):
        noise.release_all([1, 2, 3], rough)


def test_several_numbers_without_any_sensitivity_are_told() -> None:
    noise = SmoothNoise(epsilon=1, dimension=2, grid="1/4", neighbours=CHANGE_ONE)
    bound = from_distance([0], value=0, beta=noise.beta, neighbours=CHANGE_ONE)
    assert noise.release_all([1, "7/4"], bound) == [1.0, 1.75]


def test_every_number_has_a_draw_of_its_own() -> None:
    noise = SmoothNoise(epsilon=1, dimension=40, grid="1/1024", neighbours=CHANGE_ONE)
    bound = from_distance([1], value=0, beta=noise.beta, neighbours=CHANGE_ONE)
    assert len(set(noise.release_all([0] * 40, bound))) > 30
