"""Geo: what is promised on the ground, what is released, and how far off it is."""

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from lastbit.errors import InvalidParameter, LastbitError
from lastbit.exact.ball import Real
from lastbit.geo.geo import Geo
from lastbit.geo.region import INPUT_ERROR, Region
from lastbit.privacy.guarantees import PureDP
from lastbit.sampling.deterministic import Seeded
from tests.geo import geodesic
from tests.laws.frequency import assert_frequency

BERLIN = (52.3, 13.0, 52.7, 13.8)
PLACE = (52.5163, 13.3777)


def berlin(**changes) -> Geo:
    return Geo(**{"epsilon": "ln(4)/200m", "region": BERLIN, **changes})


def centre(noise: Geo) -> tuple[float, float]:
    latitude, longitude = noise.region.centre
    return float(latitude), float(longitude)


@pytest.fixture
def seeded(monkeypatch):
    """The same noise every time, for releases of arrays."""
    monkeypatch.setattr("lastbit.sampling.draw.secure_bits", lambda: Seeded(20))


# -- promises --


@pytest.mark.parametrize("epsilon", ["ln(4)/200m", "1/200m", "0.01 per 1 km", "20/m", "1e-4/m"])
@pytest.mark.parametrize("region", [BERLIN, (-18, 179.5, -17, -179.5), (78, 10, 80, 20)])
def test_the_loss_at_the_distance_named_is_what_was_asked(epsilon, region):
    noise = Geo(epsilon=epsilon, region=region)
    wanted = noise.loss.ball()
    for promise in (noise.guarantee_at(noise.within), noise.guarantee.at(noise.within)):
        assert promise.epsilon <= wanted.ends[1]
        assert promise.epsilon >= wanted.ends[0] * Fraction(999, 1000)
    assert noise.guarantee_at(0) == noise.guarantee.at(0) == PureDP(0)


def test_a_rational_loss_is_met_exactly():
    noise = berlin(epsilon="1/200m")
    assert noise.guarantee_at(200) == noise.guarantee_at("200 m") == PureDP(1)
    assert noise.guarantee_at("0.2 km") == PureDP(1)


def test_a_real_loss_is_not_exceeded():
    noise = berlin(epsilon=Real(4).log(), within=200)
    assert noise.guarantee_at(200).epsilon < Real(4).log().ball(256).ends[0]
    assert noise.guarantee_at(200) == berlin().guarantee_at(200)


@settings(deadline=None, max_examples=60)
@given(st.tuples(*[st.floats(0, 1)] * 4))
def test_the_mechanism_sees_no_two_places_further_apart_than_counted(shares):
    """What the mechanism promises for its inputs is within what is promised on the ground."""
    noise = berlin()
    first = (52.3 + 0.4 * shares[0], 13 + 0.8 * shares[1])
    second = (52.3 + 0.4 * shares[2], 13 + 0.8 * shares[3])
    ground = geodesic.distance(first, second)
    seen = noise.map.metres(np.array([first, second]))
    flat = math.dist(*seen)
    if ground > 1:
        allowed = noise.guarantee_at(Fraction(ground) + Fraction(1, 1000)).epsilon
        assert noise.mechanism.guarantee_at(Fraction(flat)).epsilon <= allowed
        assert noise.guarantee.at(Fraction(ground)) == noise.guarantee_at(Fraction(ground))


def test_forgetting_the_rounding_of_floats_would_show():
    """The mutant promises the mechanism's own guarantee, as if the floats were exact."""
    noise = berlin(epsilon="1/200m")
    mutant = noise.mechanism.guarantee_at(200)
    assert noise.guarantee_at(200).epsilon - mutant.epsilon > 0
    counted = (noise.guarantee_at(200).epsilon - mutant.epsilon) * noise.guarantee.per
    assert counted**2 >= 8 * INPUT_ERROR**2  # 2 sqrt(2) of it
    assert str(noise.guarantee).endswith("per = 200.17677675, unit = m, slack = 0.17677675")


def test_traces_add_up():
    noise = berlin(epsilon="1/200m")
    assert noise.guarantee_of(10).at(200) == PureDP(10)
    assert noise.guarantee_of(1) == noise.guarantee
    places, promise = noise.trace([PLACE] * 7)
    assert places.shape == (7, 2)
    assert promise == noise.guarantee_of(7)
    shared = noise.with_budget("ln(4)", points=7)
    assert shared.within == 200
    assert shared.guarantee_of(7).at(200).epsilon <= Real(4).log().ball(128).ends[1]
    assert noise.with_budget(1, points=10).guarantee_of(10).at(200) == PureDP(1)
    assert noise.with_budget("1 per 1 km", points=2).within == 1000
    for count in (0, -1, 1.5, True):
        with pytest.raises(LastbitError, match="points"):
            noise.guarantee_of(count)  # type: ignore[arg-type]


# -- releases --


def test_what_comes_back_is_like_what_was_passed():
    noise = berlin()
    one = noise.release(PLACE)
    assert isinstance(one, tuple) and all(type(part) is float for part in one)
    assert noise.release(np.array(PLACE)).shape == (2,)
    assert noise.release([PLACE] * 3).shape == (3, 2)
    assert noise.release([PLACE]).shape == (1, 2)


def test_releases_have_few_decimals_and_stay_in_the_region(seeded):
    noise = berlin(epsilon="1/20km")
    out = noise.release(np.tile(PLACE, (500, 1)))
    assert noise.decimals <= 5
    assert (np.round(out, noise.decimals) == out).all()
    assert (out[:, 0] >= 52.3).all() and (out[:, 0] <= 52.7).all()
    assert (out[:, 1] >= 13.0).all() and (out[:, 1] <= 13.8).all()
    assert (out[:, 0] == 52.3).any() and (out[:, 1] == 13.8).any()
    wild = berlin(epsilon="1/20km", remap=False).release(np.tile(PLACE, (500, 1)))
    assert (wild[:, 0] > 52.7).any()
    everywhere = berlin(epsilon="1/5000km", remap=False).release(np.tile(PLACE, (500, 1)))
    assert (np.abs(everywhere) <= (90, 180)).all()


def test_a_place_outside_is_as_if_at_the_edge():
    noise = berlin(epsilon="100/m")
    assert noise.release((48.1, 11.6)) == pytest.approx((52.3, 13.0), abs=1e-4)
    assert noise.release((90, -160)) == pytest.approx((52.7, 13.0), abs=1e-4)


@pytest.mark.parametrize("epsilon", ["0.00001/10000km", "0.001/10km", "1e6/m"])
@pytest.mark.parametrize("remap", [True, False])
def test_absurd_amounts_of_noise_still_give_places(epsilon, remap):
    noise = berlin(epsilon=epsilon, remap=remap)
    out = noise.release([PLACE] * 50)
    assert np.isfinite(out).all()
    assert (np.abs(out) <= (90, 180)).all()
    assert 0 < noise.radius() < 20.1e6 and 0 < noise.expected_error_upper < 20.1e6


def test_one_place_one_law_however_its_longitude_is_counted():
    noise = Geo(epsilon="1/200m", region=(-18, -171, -17, -170))
    places = np.array([[-17.5, 189.38196963585355], [-17.5, -170.61803036414645]])
    one, other = (noise.mechanism.law(tuple(p)) for p in noise.map.metres(places).tolist())
    assert one.probability((0, 0)).ends == other.probability((0, 0)).ends
    assert noise.guarantee_at(0) == PureDP(0)


def test_across_the_date_line_noise_is_noise():
    noise = Geo(epsilon="1/m", region=(-18, 179.5, -17, -179.5))
    for place in ((-17.5, 179.99999), (-17.5, -179.99999), (-17.5, 180.00001)):
        assert geodesic.distance(noise.release(place), place) < 100


@pytest.mark.parametrize("remap", [True, False])
@pytest.mark.parametrize("region", [BERLIN, (77, 10, 79, 20)])
def test_the_radius_holds_its_share_on_the_ground(remap, region, seeded):
    noise = Geo(epsilon="ln(4)/200m", region=region, remap=remap)
    place = centre(noise)
    trials = 4000
    out = noise.release(np.tile(place, (trials, 1)))
    errors = [geodesic.distance(place, tuple(one)) for one in out.tolist()]
    radius, expected = noise.radius("0.9"), noise.expected_error_upper
    share = sum(error <= radius for error in errors) / trials
    assert share > 0.87  # Hoeffding: 0.03 below 0.9 has a probability of less than exp(-7)
    assert share < 0.97 and radius < 800  # and it is not idle
    assert sum(errors) / trials < expected * 1.05
    assert expected < 1.6 * 2 * 200 / math.log(4)


def test_noise_has_the_share_of_its_law_around_the_true_place(seeded):
    """Exact probability of the ball of 100 m in the plane, from the mechanism's own law."""
    noise = berlin(epsilon="1/50m", grid=16)
    law = noise.mechanism.law((0.0, 0.0))
    near = [
        (i * 16.0, j * 16.0)
        for i in range(-7, 8)
        for j in range(-7, 8)
        if (i * i + j * j) * 256 <= 100**2
    ]
    probability = float(sum((law.probability(point).ends[0] for point in near), Fraction(0)))
    trials = 40_000
    out = noise.map.drawn(noise.release(np.tile(centre(noise), (trials, 1))))
    on_grid = np.rint(out / 16) * 16
    hits = int((np.hypot(on_grid[:, 0], on_grid[:, 1]) <= 100).sum())
    assert_frequency(
        hits, trials=trials, probability=probability, false_alarm=2**-40, detects=Fraction(1, 16)
    )


# -- parameters --


REFUSED = [
    ({"epsilon": "ln(4)/200m", "within": 200}, "within is given twice"),
    ({"epsilon": "ln(4)"}, "within is missing"),
    ({"epsilon": 1}, "within is missing"),
    ({"epsilon": 1, "within": "200 miles"}, "within is not a distance"),
    ({"epsilon": 1, "within": 10**9}, "10000 km"),
    ({"epsilon": 0, "within": 200}, "epsilon is zero"),
    ({"epsilon": float("nan"), "within": 200}, "epsilon"),
    ({"epsilon": "0/200m"}, "epsilon is zero"),
    ({"region": None}, "region is public and must be declared"),
    ({"centre": PLACE}, "region is public"),
    ({"region": None, "centre": PLACE}, "region is public"),
    ({"region": None, "radius": "1 km"}, "region is public"),
    ({"centre": PLACE, "radius": "1 km"}, "region is public"),
    ({"grid": "1/3"}, "grid"),
    ({"epsilon": "1e30/m"}, "grid is finer"),
    ({"epsilon": "1e-300/m"}, "epsilon is below"),
    ({"epsilon": "1e-7/m"}, "name a longer distance"),
    ({"grid": 0}, "grid"),
    ({"remap": 1}, "remap"),
]


@pytest.mark.parametrize(("changes", "words"), REFUSED)
def test_parameters_that_make_no_sense(changes, words):
    with pytest.raises(InvalidParameter, match=words):
        berlin(**changes)


@pytest.mark.parametrize("share", [0, 1, -1, "nan", float("nan"), 95])
def test_a_radius_needs_a_probability(share):
    with pytest.raises(InvalidParameter, match="probability"):
        berlin().radius(share)


@pytest.mark.parametrize("far", [-1, "x", float("nan"), True])
def test_a_distance_is_needed(far):
    with pytest.raises(LastbitError, match="distance"):
        berlin().guarantee_at(far)


def test_values_can_be_compared_copied_and_read():
    noise = berlin()
    assert repr(noise) == "Geo(epsilon='ln(4)', within='200 m', region=(52.3, 13, 52.7, 13.8))"
    copy = pickle.loads(pickle.dumps(noise))
    assert copy == noise and copy.guarantee == noise.guarantee
    assert noise != berlin(epsilon="ln(5)/200m")
    disc = Geo(epsilon=1, within="1 km", centre=PLACE, radius="10 km")
    assert isinstance(disc.region, Region)
    assert disc.epsilon == 1
