"""The planar Laplace mechanism: its privacy by exact laws, its rounding, its error, its types."""

from __future__ import annotations

import itertools
import math
import pickle
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lastbit.errors import InvalidParameter, LastbitError
from lastbit.exact.ball import Real, arb_of, working_precision
from lastbit.laws.planar import DiscretePlanarLaplace, ScatteredPoint
from lastbit.mechanisms import planar
from lastbit.mechanisms.planar import _DIAGONAL, PlanarLaplace
from lastbit.privacy.guarantees import MetricDP, PureDP
from lastbit.privacy.neighbours import ADD_REMOVE
from lastbit.sampling.deterministic import Seeded
from lastbit.sampling.planar import coordinates, planar_sampler
from tests.laws.frequency import assert_frequency

WINDOW = list(itertools.product(range(5), repeat=2))
OUTPUTS = list(itertools.product(range(-4, 9), repeat=2))
EPSILONS = [Fraction(1, 10), Fraction(1), Fraction(3)]


# ---------------------------------------------------------------- privacy on the lattice


def private(law: DiscretePlanarLaplace, rate: Fraction) -> bool:
    """ln P[o | x] - ln P[o | y] <= rate abs(x - y), by balls, for all of two small windows.

    The law looks at o - x only, so the logarithms of its masses are worked out once.
    """
    with working_precision(128):
        offsets = {(o[0] - x[0], o[1] - x[1]) for o in OUTPUTS for x in WINDOW}
        logs = {offset: law.mass(offset).log() for offset in offsets}
        hair = arb_of(Fraction(1, 10**25))  # equality is attained on the lines through o
        for x, y in itertools.combinations(WINDOW, 2):
            apart = arb_of((x[0] - y[0]) ** 2 + (x[1] - y[1]) ** 2).sqrt()
            limit = arb_of(rate) * apart + hair
            for o in OUTPUTS:
                loss = logs[o[0] - x[0], o[1] - x[1]] - logs[o[0] - y[0], o[1] - y[1]]
                if not abs(loss) <= limit:
                    return False
    return True


@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
def test_privacy_by_the_exact_law(epsilon: Fraction) -> None:
    """All pairs of a window of 5 by 5, all outputs around it; a doubled rate is refused."""
    mechanism = PlanarLaplace(epsilon=epsilon, within=2, grid="1/2")
    assert private(mechanism.law((0, 0)).law, mechanism.rate)
    doubled = PlanarLaplace(epsilon=2 * epsilon, within=2, grid="1/2")
    assert not private(doubled.law((0, 0)).law, mechanism.rate)
    slightly = DiscretePlanarLaplace(mechanism.rate * Fraction(1001, 1000))
    assert not private(slightly, mechanism.rate)


def loss_upper(mechanism: PlanarLaplace, one: tuple, other: tuple) -> float:
    """The greatest loss of two points over all outputs: the rate times their steps apart."""
    a, b = mechanism.law(one).centre, mechanism.law(other).centre
    return float(mechanism.rate) * math.dist(a, b)


def test_a_forgotten_slack_is_rejected() -> None:
    """Two points 0.01 apart on different sides of two edges are sqrt(2) steps apart."""
    mechanism = PlanarLaplace(epsilon=1, within="0.01", grid="1/4")
    one, other = (0.12, 0.12), (0.127, 0.127)
    assert math.dist(one, other) <= 0.01
    assert loss_upper(mechanism, one, other) <= 1
    assert loss_upper(mechanism, one, other) > 0.95  # the slack is not generous either
    # the mutant: epsilon per `within`, as if the points were not rounded
    unrounded = mechanism.epsilon * mechanism.grid / mechanism.within
    steps = math.dist(mechanism.law(one).centre, mechanism.law(other).centre)
    assert float(unrounded) * steps > 30
    # and half a diagonal, the rounding of one point only
    half = mechanism.epsilon * mechanism.grid / (mechanism.within + mechanism.slack / 2)
    assert float(half) * steps > 1


coordinate = st.floats(-(2.0**20), 2.0**20)


@given(
    coordinate,
    coordinate,
    st.floats(-1, 1),
    st.floats(-1, 1),
    st.sampled_from(EPSILONS),
    st.sampled_from(["1/4", "1", "4", "auto"]),
)
def test_the_promise_holds_for_all_floats(
    x: float, y: float, dx: float, dy: float, epsilon: Fraction, grid: str
) -> None:
    """Steps apart squared, against the promise squared: in rationals, nothing is rounded."""
    mechanism = PlanarLaplace(epsilon=epsilon, within=1, grid=grid)
    one, other = (x, y), (x + dx, y + dy)
    a, b = mechanism.law(one).centre, mechanism.law(other).centre
    steps = (a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2
    apart = sum((Fraction(p) - Fraction(q)) ** 2 for p, q in zip(one, other, strict=True))
    root = Fraction(math.isqrt(int(apart * 2**200)) + 1, 2**100)  # not below the distance
    promised = mechanism.guarantee_at(root if apart else 0).epsilon
    assert mechanism.rate**2 * steps <= Fraction(promised) ** 2
    if apart <= 1:
        assert mechanism.rate**2 * steps <= epsilon**2


def test_the_slack_is_a_diagonal_rounded_up() -> None:
    assert 2 < _DIAGONAL**2 < 2 * (1 + Fraction(1, 10**6))
    mechanism = PlanarLaplace(epsilon=1, grid="1/8")
    assert mechanism.slack == _DIAGONAL / 8


# ---------------------------------------------------------------- what is promised


@given(
    st.fractions(Fraction(1, 1000), 20, max_denominator=10**6),
    st.fractions(Fraction(1, 1000), 10**6, max_denominator=10**6),
)
def test_the_loss_within_is_epsilon_exactly(epsilon: Fraction, within: Fraction) -> None:
    mechanism = PlanarLaplace(epsilon=epsilon, within=within, unit="m")
    assert mechanism.guarantee_at(within) == PureDP(epsilon)
    assert mechanism.guarantee.at(within) == PureDP(epsilon)
    assert mechanism.guarantee_at(0) == PureDP(0)
    assert mechanism.guarantee.unit == "m"
    steps_apart = within / mechanism.grid + _DIAGONAL
    assert mechanism.rate * steps_apart == epsilon
    # the grid is fine, and costs little: 0.14 % of the noise and no more
    assert mechanism.grid <= within / 1024 or epsilon < Fraction(1, 512)
    assert mechanism.grid * 1024 <= mechanism.grid / mechanism.rate
    assert mechanism.grid / mechanism.rate <= within / epsilon * Fraction(1003, 1000)


def test_the_guarantee_of_a_metric() -> None:
    mechanism = PlanarLaplace(epsilon=1, within=200, unit="m", grid="1/8", neighbours=ADD_REMOVE)
    slack = Fraction("0.1767767")
    expected = MetricDP(1, per=200 + slack, unit="m", slack=slack, neighbours=ADD_REMOVE)
    assert mechanism.guarantee == expected
    assert mechanism.guarantee_at(1).epsilon == (1 + slack) / (200 + slack)
    twice = mechanism.guarantee + mechanism.guarantee
    assert twice.at(200) == PureDP(2, neighbours=ADD_REMOVE)
    assert mechanism.guarantee.implies(MetricDP(1, 200, "m", slack=slack, neighbours=ADD_REMOVE))


def test_a_computable_epsilon_is_rounded_down() -> None:
    mechanism = PlanarLaplace(epsilon=Real(4).log(), within=200)
    with working_precision(128):
        assert arb_of(mechanism.epsilon) < arb_of(4).log()
        assert arb_of(mechanism.epsilon * (1 + Fraction(1, 2**51))) > arb_of(4).log()
    assert PlanarLaplace(epsilon=Real("1/2")) == PlanarLaplace(epsilon="1/2")


def test_a_small_epsilon_gets_a_coarser_grid() -> None:
    for epsilon in ("1e-3", "1e-4", "1e-5", "1e-6", Fraction(1, 2**20)):
        mechanism = PlanarLaplace(epsilon=epsilon, within=200)
        assert 2**18 < 1 / mechanism.rate <= 2**22
        assert mechanism.guarantee_at(200).epsilon == Fraction(epsilon)
        mechanism.release((1, 2))


def test_a_larger_epsilon_for_a_larger_distance_is_the_same_noise() -> None:
    """What the refusal of a tiny epsilon advises."""
    with pytest.raises(InvalidParameter, match="multiply both"):
        PlanarLaplace(epsilon="1e-9", within=1)
    mechanism = PlanarLaplace(epsilon=1, within=10**9)
    assert mechanism.guarantee_at(1).epsilon < Fraction("1e-9") * (1 + mechanism.slack)
    noise = mechanism.grid / mechanism.rate
    assert 10**9 <= noise < 10**9 * Fraction("1.01")


# ---------------------------------------------------------------- what is released


def test_types_and_shapes() -> None:
    mechanism = PlanarLaplace(epsilon=1, within=10)
    for point in ((1, 2), (1.5, -2), [Fraction(1, 3), 2], (np.float32(1), np.int64(2)), (2**50, 0)):
        released = mechanism.release(point)
        assert type(released) is tuple
        assert [type(part) for part in released] == [float, float]
    assert mechanism.release(np.array([1.5, 2.5])).shape == (2,)
    for shape in ((3, 2), (0, 2), (4, 5, 2)):
        for kind in (np.float64, np.float32, np.int16, np.uint64, np.longdouble):
            released = mechanism.release(np.ones(shape, kind))
            assert released.shape == shape
            assert released.dtype == np.float64
    assert mechanism.release([(1, 2), (3.5, 4)]).shape == (2, 2)


@pytest.mark.parametrize("grid", ["1/1024", "1/8", "1", "64"])
def test_releases_lie_on_the_grid(grid: str) -> None:
    mechanism = PlanarLaplace(epsilon=1, within=100, grid=grid)
    released = mechanism.release(np.full((1000, 2), 12345.678))
    assert (released / float(mechanism.grid) % 1 == 0).all()
    far = mechanism.release((2.0**60 * float(mechanism.grid), 0))
    assert Fraction(far[0]) % mechanism.grid == 0


def test_release_is_the_nearest_grid_point_and_the_samplers_noise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mechanism = PlanarLaplace(epsilon=1, within=100, grid="1/4")
    draw = planar_sampler(mechanism.rate).draw
    monkeypatch.setattr(planar, "drawn", lambda noise, size: noise.draw(Seeded(3), *size))
    values = np.array([(0.1, 0.13), (0.125, 0.375), (-0.125, 7), (1e6 + 0.3, -2.4)] * 50)
    nearest = np.array([(0, 1), (0, 2), (0, 28), (4000001, -10)] * 50)
    expected = (nearest + coordinates(draw(Seeded(3), 200))) / 4
    assert np.array_equal(mechanism.release(values), expected)


@given(st.lists(st.tuples(coordinate, coordinate), min_size=1, max_size=5))
def test_arrays_are_rounded_as_rationals_are(points: list[tuple[float, float]]) -> None:
    mechanism = PlanarLaplace(epsilon=1, grid="1/4096")
    fast = mechanism._steps(np.array(points))
    exact = mechanism._steps([[Fraction(x), Fraction(y)] for x, y in points])
    assert np.array_equal(fast, exact)


def test_large_integers_keep_their_last_bit() -> None:
    mechanism = PlanarLaplace(epsilon=1, within=10, grid=1)
    array = np.array([2**55 + 1, 3])
    assert mechanism._steps(array).tolist() == [2**55 + 1, 3]
    assert mechanism._steps((2**55 + 1, 0.5)).tolist() == [2**55 + 1, 0]


@pytest.fixture
def seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Releases of arrays draw from a fixed seed."""
    monkeypatch.setattr(planar, "drawn", lambda noise, size: noise.draw(Seeded(7), *size))


@pytest.mark.usefixtures("seeded")
def test_the_law_of_a_release() -> None:
    mechanism = PlanarLaplace(epsilon=2, within=2, grid=1)
    law = mechanism.law((10.2, -3))
    assert isinstance(law, ScatteredPoint)
    trials = 200_000
    released = mechanism.release(np.tile([10.2, -3.0], (trials, 1)))
    for point in ((10, -3), (11, -3), (9, -4)):
        hits = int((released == point).all(axis=1).sum())
        chance = float(law.probability(point).ends[1])
        assert_frequency(hits, trials=trials, probability=chance, detects=Fraction(1, 5))
    assert law.probability((10.5, -3)).contains(0)


# ---------------------------------------------------------------- how far off it is


@pytest.mark.usefixtures("seeded")
@pytest.mark.parametrize("grid", ["auto", "1/2", "8"])
def test_the_error(grid: str) -> None:
    """From points in the corners of their cells, the worst there are."""
    mechanism = PlanarLaplace(epsilon=1, within=4, grid=grid)
    trials = 100_000
    corner = np.full((trials, 2), float(mechanism.grid) / 2)
    off = np.hypot(*(mechanism.release(corner) - corner).T)
    for beta in ("0.5", "0.05"):
        far = float(mechanism.accuracy(beta))
        share = float((off > far).mean())
        assert share <= float(beta) + 4.5 * math.sqrt(float(beta) / trials)
        assert mechanism.beta(mechanism.accuracy(beta)) <= float(beta) * (1 + 1e-9)
    assert off.mean() <= mechanism.expected_error_upper * 1.02
    assert mechanism.expected_error_upper <= off.mean() * 1.02 + float(mechanism.slack)


def test_the_error_of_a_fine_grid_is_that_of_the_plane() -> None:
    """The continuous law: mean 2 within/epsilon; (1 + t) exp(-t) beyond t within/epsilon."""
    mechanism = PlanarLaplace(epsilon=2, within=300, grid="1/64")
    assert 300 < mechanism.expected_error_upper < 300.1
    t = mechanism.accuracy("0.05") / 150
    with_decimals = (1 + Decimal(float(t))) * (-Decimal(float(t))).exp()
    assert Decimal("0.0498") < with_decimals < Decimal("0.05")
    assert mechanism.beta(0) == 1.0


# ---------------------------------------------------------------- values


def test_equality_repr_and_pickle() -> None:
    mechanism = PlanarLaplace(epsilon=1, within=200, unit="m")
    other = PlanarLaplace(epsilon="1", within=200.0, unit="m", grid="1/8")
    assert mechanism == other
    mechanism.release((98765.4321, 3))
    assert mechanism == other
    assert hash(mechanism) == hash(other)
    assert "sampler" not in repr(mechanism)
    assert "987" not in repr(mechanism)
    assert "987" not in repr(mechanism.law((98765.4321, 3)))
    again = pickle.loads(pickle.dumps(mechanism))
    assert again == mechanism
    assert len(again.release((1, 2))) == 2


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        (dict(epsilon=0), "epsilon"),
        (dict(epsilon=-1), "epsilon"),
        (dict(epsilon=math.nan), "epsilon"),
        (dict(epsilon=math.inf), "epsilon"),
        (dict(epsilon=True), "epsilon"),
        (dict(epsilon="one"), "epsilon"),
        (dict(epsilon=None), "epsilon"),
        (dict(epsilon=Real(0)), "epsilon"),
        (dict(epsilon=Real(-1)), "epsilon"),
        (dict(epsilon=Real(2) - Real(2)), "epsilon"),
        (dict(epsilon=Real("1e-400")), "epsilon"),
        (dict(epsilon=Fraction(1, 2**20 + 1)), "^epsilon .* multiply both by the same number"),
        (dict(epsilon="1e-300"), "^epsilon .* multiply both by the same number"),
        (dict(epsilon="1e300"), "^within and epsilon .* change the unit of distance"),
        (dict(epsilon=1, within="1e300"), "^within and epsilon .* change the unit of distance"),
        (dict(epsilon=1, within=0), "within"),
        (dict(epsilon=1, within=-5), "within"),
        (dict(epsilon=1, within=math.inf), "within"),
        (dict(epsilon=1, within="200 m"), "within"),
        (dict(epsilon=1, grid="1/3"), "grid"),
        (dict(epsilon=1, grid=0), "grid"),
        (dict(epsilon=1, grid=None), "grid"),
        (dict(epsilon=1, grid=Fraction(1, 2**23)), "coarser grid"),
        (dict(epsilon=1, grid=Fraction(1, 2**600)), "grid"),
        (dict(epsilon=1, unit=""), "unit"),
        (dict(epsilon=1, unit=5), "unit"),
        (dict(epsilon=1, neighbours=None), "neighbours"),
    ],
)
def test_bad_parameters(parameters: dict[str, Any], name: str) -> None:
    with pytest.raises(LastbitError, match=name):
        PlanarLaplace(**parameters)


@pytest.mark.parametrize(
    "bad",
    [
        (math.nan, 1),
        (4242.5, math.inf),
        np.array([[4242.5, 1], [np.nan, 0]]),
        np.array([4242.5, -np.inf], np.longdouble),
        (4242.5, 2.0**200),
        (10**400, 4242),
        np.array([[4242.5, 1e300]]),
        (4242, 1, 1),
        (4242,),
        4242.5,
        "4242",
        ("4242", "1"),
        (4242, "1"),
        (4242, True),
        (4242, None),
        (4242, 1j),
        np.array(["4242", "1"]),
        np.array([True, False]),
        np.zeros((2, 3)),
        np.zeros((2, 0)),
        np.ma.masked_array([4242.0, 1.0], [True, False]),
        np.array(["2020-01-01", "2020-01-02"], "datetime64[D]"),
        [(1, 2), (3,)],
        None,
        {},
    ],
    ids=str,
)
def test_bad_points_are_refused_before_anything_is_drawn(
    bad: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("drawn")

    monkeypatch.setattr(planar, "drawn", never)
    with pytest.raises(LastbitError) as refused:
        PlanarLaplace(epsilon=1).release(bad)
    assert "4242" not in str(refused.value)


def test_bad_questions() -> None:
    mechanism = PlanarLaplace(epsilon=1)
    for call in (
        lambda: mechanism.accuracy(0),
        lambda: mechanism.accuracy(1),
        lambda: mechanism.beta(-1),
        lambda: mechanism.guarantee_at(-1),
        lambda: mechanism.law([(1, 2), (3, 4)]),
        lambda: mechanism.law((1, 2)).probability((1, "x")),
    ):
        with pytest.raises(InvalidParameter):
            call()
