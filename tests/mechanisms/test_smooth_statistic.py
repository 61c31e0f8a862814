"""Private medians and the like: what is promised, exactly, and what is refused."""

from __future__ import annotations

import pickle
from decimal import Decimal
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import lastbit as lb
from lastbit.errors import InvalidParameter, WrongType
from lastbit.laws.ideal import StudentT
from lastbit.mechanisms.admissible_noise import evenly_spread
from lastbit.mechanisms.smooth_noise import (
    SmoothStatistic,
    private_median,
    private_quantile,
    private_trimmed_mean,
    private_variance,
    quantile_mechanism,
)
from lastbit.privacy.neighbours import ADD_REMOVE, CHANGE_ONE, Neighbours
from lastbit.sensitivity.smooth import smooth_sensitivity
from lastbit.sensitivity.statistics import Quantile, Statistic, TrimmedMean, Variance
from tests.laws.oracle import decimals
from tests.mechanisms.divergence import mass

VALUES = range(4)


def changed(x: tuple[int, ...]) -> set[tuple[int, ...]]:
    return {tuple(sorted((*x[:i], v, *x[i + 1 :]))) for i in range(len(x)) for v in VALUES} - {x}


def added(x: tuple[int, ...]) -> set[tuple[int, ...]]:
    return {tuple(sorted((*x, v))) for v in VALUES}


CASES: list[tuple[Statistic, Neighbours]] = [
    (Quantile("1/2"), CHANGE_ONE),
    (Quantile("0.9"), CHANGE_ONE),
    (Quantile(0), CHANGE_ONE),
    (TrimmedMean("1/4"), CHANGE_ONE),
    (Variance(), CHANGE_ONE),
    (Quantile("1/2"), ADD_REMOVE),
    (Quantile("0.9"), ADD_REMOVE),
]


@pytest.mark.thinned(one_in=4)
@pytest.mark.parametrize(("statistic", "neighbours"), CASES, ids=repr)
@pytest.mark.parametrize("noise", ["cauchy", "student"])
def test_every_output_of_every_neighbour(
    statistic: Statistic, neighbours: Neighbours, noise: str
) -> None:
    """All databases of at most four records of four values, every output: loss <= epsilon."""
    mechanism = SmoothStatistic(
        statistic, epsilon=1, lower=0, upper=3, noise=noise, grid="1/2", neighbours=neighbours
    )
    sizes = [4] if neighbours == CHANGE_ONE else [0, 1, 2, 3]
    databases = [x for n in sizes for x in combinations_with_replacement(VALUES, n)]
    pairs = [
        (x, y)
        for x in databases
        for y in (changed(x) if neighbours == CHANGE_ONE else added(x))
        if len(y) in sizes
    ]
    most = 0
    with decimals():
        tables = {x: table(mechanism, x) for x in databases}
        for x, y in pairs:
            for p, q in zip(tables[x], tables[y], strict=True):
                most = max(most, abs((p / q).ln()))  # type: ignore[assignment]
    assert most <= 1
    assert most > Decimal("0.05")  # the pairs are neighbours indeed


def table(mechanism: SmoothStatistic, x: tuple[int, ...]) -> list[Decimal]:
    law = mechanism.law(list(x)).law
    low, high = law.support
    assert low is not None
    assert high is not None
    return [mass(law, k) for k in range(low, high + 1)]


def test_the_grid_and_the_range_depend_on_public_parameters_only() -> None:
    median = SmoothStatistic("median", epsilon=1, lower=0, upper=500)
    assert median.noise.grid == Fraction(1, 4096)
    variance = SmoothStatistic(Variance(), epsilon=1, lower=0, upper=10)
    assert variance.noise.grid == Fraction(1, 1 << 16)
    low, high = variance.law([1, 2, 3]).law.support
    assert (low, high) == (0, 25 << 16)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.floats(allow_nan=False), min_size=1, max_size=30),
    st.sampled_from(["median", "minimum", "maximum", "iqr", "mean", Variance(), TrimmedMean(0)]),
)
def test_any_floats_give_an_answer_in_the_range(data: list[float], statistic: Any) -> None:
    mechanism = SmoothStatistic(statistic, epsilon=1, lower=-2, upper=3)
    answer = mechanism.release(data)
    assert -2 <= answer <= 6.25
    assert float(answer / mechanism.noise.grid).is_integer()


def test_ready_made() -> None:
    data = np.linspace(10, 20, 2001)
    near: dict[str, Any] = {"epsilon": 50, "lower": 0, "upper": 100}
    assert abs(private_median(data, **near) - 15) < 2
    assert abs(private_quantile(data, "0.9", **near) - 19) < 2
    assert abs(private_trimmed_mean(data, trim="0.05", **near) - 15) < 2
    assert abs(private_variance(data, **near) - 100 / 12) < 60
    assert abs(lb.private_median(data, delta="1e-6", noise="gaussian", **near) - 15) < 2
    assert abs(lb.private_median(data, neighbours=ADD_REMOVE, **near) - 15) < 2


def chosen(epsilon: int | str, level: str = "1/2", **more: Any) -> str:
    bounds: dict[str, Any] = {"lower": 0, "upper": 500} | more
    made = quantile_mechanism(level, epsilon=epsilon, **bounds)
    assert made.guarantee.epsilon == Fraction(epsilon)
    return type(made).__name__


def test_a_quantile_is_released_by_the_nearer_mechanism() -> None:
    """The choice is a step in epsilon, and depends on public parameters only."""
    losses = ["1e-5", "1e-3", "0.1", "1", "1.9", "2.1", "4", "20", "100"]
    names = [chosen(epsilon) for epsilon in losses]
    assert names == ["ExponentialQuantile"] * 5 + ["SmoothStatistic"] * 4
    assert chosen(1, "0") == chosen(1, "1") == "SmoothStatistic"
    # twice the rate for the median where records come and go
    assert chosen(3, neighbours=ADD_REMOVE) == "ExponentialQuantile"
    assert chosen(3, "0.9", neighbours=ADD_REMOVE) == "SmoothStatistic"
    assert chosen(1, noise="cauchy") == chosen(1, noise=StudentT(5)) == "SmoothStatistic"
    assert chosen(50, noise="exponential") == "ExponentialQuantile"
    # what is too fine for the exponential mechanism
    assert chosen(1, "1/3000001") == chosen(1, grid=Fraction(1, 1 << 60)) == "SmoothStatistic"


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"delta": "1e-6"}, "delta is of no use"),
        ({"delta": "1e-6", "noise": "exponential"}, "delta is of no use"),
        ({"noise": "exponential", "grid": Fraction(1, 1 << 60)}, "grid"),
        ({"noise": "uniform"}, "noise"),
        ({"lower": 5, "upper": 1}, "lower"),
        ({"epsilon": 0}, "epsilon"),
        ({"level": 2}, "level"),
        ({"grid": "1/3"}, "grid"),
        ({"neighbours": None}, "neighbours"),
    ],
)
def test_a_quantile_without_a_mechanism_is_refused(parameters: dict[str, Any], words: str) -> None:
    good: dict[str, Any] = {"level": "1/2", "epsilon": 1, "lower": 0, "upper": 10}
    with pytest.raises((InvalidParameter, WrongType), match=words):
        quantile_mechanism(**(good | parameters))


def test_a_mechanism_is_a_value() -> None:
    median = SmoothStatistic("median", epsilon=1, lower=0, upper=500)
    assert pickle.loads(pickle.dumps(median)) == median
    assert median == SmoothStatistic(Quantile("1/2"), epsilon=1, lower=0, upper=500)
    assert median.accuracy("0.05", [250] * 1000) > 0


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"lower": 5, "upper": 1}, "lower"),
        ({"lower": 1, "upper": 1}, "lower"),
        ({"lower": float("nan")}, "lower"),
        ({"upper": float("inf")}, "upper"),
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": "x"}, "epsilon"),
        ({"delta": "1e-6"}, "delta"),
        ({"noise": "laplace"}, "delta"),
        ({"noise": "uniform"}, "noise"),
        ({"grid": "1/3"}, "grid"),
        ({"statistic": "mode"}, "statistic"),
        ({"statistic": 3}, "statistic"),
        ({"neighbours": None}, "neighbours"),
    ],
)
def test_bad_parameters_are_refused(parameters: dict[str, Any], words: str) -> None:
    good: dict[str, Any] = {"statistic": "median", "epsilon": 1, "lower": 0, "upper": 10}
    with pytest.raises((InvalidParameter, WrongType), match=words):
        SmoothStatistic(**(good | parameters))


@pytest.mark.parametrize(
    "data",
    [[], [float("nan")], [1, None], ["1"], [True], [[1, 2]], 3, None, "12", np.array([1j])],
)
def test_bad_data_are_refused_before_anything_is_drawn(
    data: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lastbit.mechanisms import exponential_quantile, smooth_noise

    for module in (exponential_quantile, smooth_noise):
        monkeypatch.setattr(module, "drawn_fresh", lambda *_: pytest.fail("drawn"))
    for epsilon in (1, 3):
        with pytest.raises((InvalidParameter, WrongType), match="data"):
            private_median(data, epsilon=epsilon, lower=0, upper=10)


def test_relations_without_a_bound_are_refused() -> None:
    for statistic in (Variance(), TrimmedMean("0.1")):
        with pytest.raises(InvalidParameter, match="CHANGE_ONE"):
            SmoothStatistic(statistic, epsilon=1, lower=0, upper=1, neighbours=ADD_REMOVE).release(
                [0.5]
            )


@pytest.mark.parametrize("level", ["0", "1"])
@pytest.mark.parametrize("epsilon", ["0.1", 1, 4])
def test_the_ends_are_not_left_to_the_exponential_mechanism(level, epsilon):
    """All points beyond the last record are equally good to it, whatever is paid."""
    chosen = lb.quantile_mechanism(level, epsilon=epsilon, lower=0, upper=500)
    assert isinstance(chosen, SmoothStatistic)


@pytest.mark.parametrize("relation", [CHANGE_ONE, ADD_REMOVE], ids=str)
@pytest.mark.parametrize("level", ["1/4", "1/2", "9/10"])
def test_what_the_choice_takes_for_granted_of_evenly_spread_records(
    level: str, relation: Neighbours
) -> None:
    """The bound of evenly spread records is what `quantile_mechanism` reckons with."""
    rows = list(range(1000))
    for beta in (Fraction(1, 20), Fraction(1, 4), Fraction(3, 4)):
        bound = smooth_sensitivity(
            Quantile(level), rows, beta=beta, lower=0, upper=999, neighbours=relation
        ).bound
        reckoned = float(evenly_spread(beta).mid())
        assert 0.95 * reckoned < float(bound) <= reckoned * (1 + 1e-8)


def test_the_choice_is_a_mechanism_with_a_name_and_a_promise() -> None:
    for epsilon in ("0.1", 1, 4):
        chosen = lb.quantile_mechanism("1/2", epsilon=epsilon, lower=0, upper=500)
        assert type(chosen).__name__ in repr(chosen)
        assert chosen.guarantee == lb.PureDP(epsilon, neighbours=CHANGE_ONE)
