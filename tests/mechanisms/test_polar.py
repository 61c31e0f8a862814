"""The polar Laplace mechanism: every bound of its certificate, and its privacy by enumeration."""

from __future__ import annotations

import math
import pickle
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings, strategies as st

from lastbit.errors import InvalidParameter, LastbitError, WrongType
from lastbit.exact.ball import arb_of, ends, working_precision
from lastbit.mechanisms import polar as certified
from lastbit.mechanisms.polar import PolarLaplace, polar_bounds
from lastbit.privacy.guarantees import PureDP
from lastbit.privacy.neighbours import CHANGE_ONE
from lastbit.sampling import planar as polar
from lastbit.sampling.deterministic import Seeded
from lastbit.sampling.planar import PolarNoise, polar_noise
from tests.evidence import late
from tests.laws.frequency import assert_frequency

UNIT = Fraction(1, 1 << 53)
WITHIN = polar._within


def mass_below(radius: arb) -> arb:
    """C, written down once more."""
    return 1 - (1 + radius) * (-radius).exp()


def exact_radius(level: Fraction) -> arb:
    """C**-1 at 300 bits, by Newton's method and a check that encloses it."""
    target = arb_of(level)
    x = arb(float((2 * target).sqrt().mid())) if level < Fraction(1, 2) else arb(3)
    for _ in range(400):
        step = (mass_below(x) - target) / (x * (-x).exp())
        x = (x - step.mid()).mid()
        if abs(step) < x * arb(2) ** -180:
            break
    width = x * arb(2) ** -150
    assert mass_below(x - width) < target < mass_below(x + width)
    return arb(x, width)


# ---------------------------------------------------------------- the radius


def shares(seed: int, count: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    grid = (2 * random.integers(0, 1 << 52, count) + 1) * 2.0**-54
    small = 2.0 ** -random.uniform(1, 54, count)
    edges = [2.0**-54, 3 * 2.0**-54, 0.5 - 2.0**-54, 0.25, 0.264, 1e-9]
    return np.concatenate([grid, small, edges])


def outside_the_proof(share: np.ndarray, tail: bool) -> int:
    """How many radii are not within 32 x, or 20 + x, units of the exact one."""
    radii = polar.unit_radius(share, np.full(share.shape, tail))
    wrong = 0
    with working_precision(200):
        for p, x in zip(share.tolist(), radii.tolist(), strict=True):
            near = (20 + Fraction(x) if tail else 32 * Fraction(x)) * UNIT
            assert near <= polar.RADIUS_ERROR
            level = arb_of(1 - Fraction(p) if tail else Fraction(p))
            low, high = (arb_of(Fraction(x) + sign * near) for sign in (-1, 1))
            wrong += not (mass_below(low) <= level <= mass_below(high))
    return wrong


@pytest.mark.parametrize("tail", [late(False), True])
def test_the_radius(tail):
    share = shares(seed=1, count=10_000)
    assert outside_the_proof(share, tail) == 0
    _, close = (polar._above_median if tail else polar._below_median)(share)
    assert close.all()  # balls are for a mathematics library that fails


@given(st.integers(0, (1 << 52) - 1), st.booleans())
@settings(max_examples=200)
def test_any_radius(word, tail):
    assert outside_the_proof(np.array([(2 * word + 1) * 2.0**-54]), tail) == 0


@pytest.mark.parametrize("tail", [False, True])
@pytest.mark.parametrize("wrong", [np.nan, 1.65, 0.0, 1e300])
def test_whatever_the_guess(monkeypatch, tail, wrong):
    """A guess from anywhere is found out by its residual."""
    monkeypatch.setattr(
        polar, "_within", lambda guess, least, most: WITHIN(np.full_like(guess, wrong), least, most)
    )
    assert outside_the_proof(shares(seed=2, count=40), tail) == 0


def test_a_mutant_radius_is_found_out(monkeypatch):
    monkeypatch.setattr(polar, "_SERIES", (*polar._SERIES[:4], 0.00694444, *polar._SERIES[5:]))
    assert outside_the_proof(shares(seed=3, count=50), False) > 0
    monkeypatch.undo()
    monkeypatch.setattr(polar, "_CLOSE", 1.0)  # whatever the residual
    monkeypatch.setattr(polar, "_within", lambda guess, least, most: np.full_like(guess, 1.65))
    assert outside_the_proof(shares(seed=3, count=50), True) > 0


def test_the_error_of_the_series():
    """Horner's recurrence of the proof: below 26 units relatively up to x = 1.7."""
    x = Fraction(17, 10)
    sizes = [Fraction(c) for c in polar._SERIES]
    error, behind = Fraction(0), Fraction(0)
    for size in reversed(sizes):
        error = x * error + size + x * behind + size
        behind = size
    with working_precision(100):
        least = ends(mass_below(arb_of(x)) / arb_of(x * x))[0]
        left_out = x**24 / (math.factorial(24) * 26)
    assert error / least + left_out / UNIT / least < 26
    for k, coefficient in enumerate(polar._SERIES):
        exact = Fraction(1, math.factorial(k) * (k + 2))
        assert abs(Fraction(coefficient) - exact) <= UNIT * exact


# ---------------------------------------------------------------- from words to the sum


def words_of(seed: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    top = (1 << 53) - 1
    extreme = [0, 1, 1 << 51, (1 << 52) - 1, 1 << 52, top - (1 << 52), top - 1, top]
    pairs = [(a, b) for a in extreme for b in extreme]
    columns = np.array(pairs, np.uint64).T
    drawn = random.integers(0, 1 << 53, (2, count), np.uint64)
    return tuple(np.concatenate([columns, drawn], axis=1))


def level_of(word: int, places: int, at: Fraction) -> Fraction:
    """The uniform number a radius word stands for, or another (at != 1/2) that begins with it."""
    half = 1 << (places - 1)
    share = ((word % half) + at) / (1 << places)
    return 1 - share if word >= half else share


def exact_point(level: Fraction, turn: Fraction) -> tuple[arb, arb]:
    radius = exact_radius(level)
    angle = 2 * arb_of(turn)
    return radius * angle.cos_pi(), radius * angle.sin_pi()


def test_the_computed_noise():
    """Within RADIUS_ERROR + 10u(r + 1) of the exact point of the same words, for rate 1."""
    rate = Fraction(7, 3)
    scale = float(1 / rate)
    radius_words, angle_words = words_of(seed=4, count=600)
    points = polar_noise(radius_words, angle_words, places=53, scale=scale)
    with working_precision(300):
        for k, m, z in zip(radius_words.tolist(), angle_words.tolist(), points, strict=True):
            level = level_of(k, 53, Fraction(1, 2))
            x, y = exact_point(level, (m + Fraction(1, 2)) / (1 << 53))
            across, up = arb(z.real) - x / arb_of(rate), arb(z.imag) - y / arb_of(rate)
            off = (across**2 + up**2).sqrt()
            far = exact_radius(level) / arb_of(rate)
            bound = (arb_of(polar.RADIUS_ERROR) + 10 * arb_of(UNIT)) / arb_of(rate)
            assert off <= bound + 10 * arb_of(UNIT) * far


def mechanism() -> PolarLaplace:
    return PolarLaplace(rate=1, cell="1/64", half_width=6, inputs=4, centre=(1000, -500))


def strays() -> list[Fraction]:
    """How far the float sum is from the ideal point of the worst uniform reals with these bits."""
    noise = mechanism()
    radius_words, angle_words = words_of(seed=5, count=300)
    points = polar_noise(radius_words, angle_words, places=53, scale=1.0)
    inputs = np.array([1003.7, -496.1])
    found = []
    with working_precision(300):
        for k, m, z in zip(radius_words.tolist(), angle_words.tolist(), points, strict=True):
            for at in (Fraction(1, 1 << 40), 1 - Fraction(1, 1 << 40)):
                level = level_of(k, 53, at)
                far = ends(exact_radius(level))[1]
                if far > noise.bounds.distance:
                    continue
                x, y = exact_point(level, (m + at) / (1 << 53))
                sums = inputs + np.array([z.real, z.imag])
                off = [
                    arb(s) - arb(f) - e
                    for s, f, e in zip(sums.tolist(), inputs.tolist(), (x, y), strict=True)
                ]
                found.append(ends((off[0] ** 2 + off[1] ** 2).sqrt())[1])
    return found


def test_the_sum_is_within_delta_t():
    bounds = mechanism().bounds
    found = strays()
    assert len(found) > 500
    assert max(found) <= bounds.delta_t
    # the certificate is not idle: near radius 0 the stray comes within a third of it
    assert max(found) > bounds.delta_t / 3


@given(st.floats(0, 30), st.integers(1, 60))
@settings(max_examples=60, deadline=None)
def test_the_modulus_of_continuity(far, places):
    """No increment of C**-1 below C(far) is larger, and the larger end attains it."""
    step, reach = Fraction(1, 1 << places), Fraction(far) + Fraction(1, 4)
    with working_precision(300):
        modulus = certified.radius_modulus(reach, step)
        last = mass_below(arb_of(reach))
        if last <= arb_of(step):  # the whole of it is shorter than one step
            assert mass_below(arb_of(modulus)) >= last
            return
        for part in (0, Fraction(1, 1000), Fraction(1, 3), Fraction(2, 3), Fraction(999, 1000), 1):
            start = ends((last - arb_of(step)) * arb_of(Fraction(part)))[0]
            start = max(start, Fraction(0))
            low = exact_radius(start) if start else arb(0)
            assert exact_radius(start + step) - low <= arb_of(modulus * (1 + Fraction(1, 1 << 100)))
        shrunk = modulus * (1 - Fraction(1, 1 << 18))
        at_zero = mass_below(arb_of(shrunk)) < arb_of(step)
        at_end = last - mass_below(arb_of(max(reach - shrunk, Fraction(0)))) < arb_of(step)
        assert at_zero or at_end


# ---------------------------------------------------------------- privacy, by enumeration

FEW = 9
COARSE = dict(cell=Fraction(1), half_width=Fraction(2), inputs=Fraction(1), reach=Fraction(2))
POINTS = [(0.0, 0.0), (0.03, 0.0), (0.5, 0.5), (0.47, 0.52), (-0.5, 0.25), (1.0, 1.0), (-1.0, 0.98)]
POINTS += [(0.499, 0.0), (0.501, 0.001), (-0.999, -1.0), (0.25, -0.75), (0.125, 1.0)]


def every_release(point, *, places, scale, **square) -> dict[tuple[float, float], int]:
    """How many of all pairs of words lead to each release: the exact law of the real code."""
    count = 1 << places
    radius, angle = np.meshgrid(
        np.arange(count, dtype=np.uint64), np.arange(count, dtype=np.uint64)
    )
    noise = polar_noise(radius.ravel(), angle.ravel(), places=places, scale=scale)
    place = object.__new__(PolarLaplace)
    for name in ("cell", "half_width"):
        object.__setattr__(place, name, square[name])
    object.__setattr__(place, "centre", (Fraction(0), Fraction(0)))
    released = place._rounded(np.array(point) + noise.view(np.float64).reshape(-1, 2))
    cells, counts = np.unique(released.view(np.complex128), return_counts=True)
    return {(z.real, z.imag): n for z, n in zip(cells.tolist(), counts.tolist(), strict=True)}


def violations(excess: Fraction, *, places=FEW, scale=1.0, points=None, **square) -> int:
    """Over all pairs of inputs and all releases: how often the loss exceeds distance + excess."""
    points = POINTS if points is None else points
    laws = [every_release(point, places=places, scale=scale, **square) for point in points]
    found = 0
    for one, first in zip(points, laws, strict=True):
        for other, second in zip(points, laws, strict=True):
            if one == other:
                continue
            with working_precision(100):
                gap = sum((arb(a) - arb(b)) ** 2 for a, b in zip(one, other, strict=True))
                limit = (arb(gap).sqrt() + arb_of(excess)).exp()
                for release, hits in first.items():
                    found += not arb(hits) <= limit * second.get(release, 0)
    return found


def bounds_at(places: int, **square):
    return polar_bounds(rate=Fraction(1), delta_0=Fraction(1, 1 << (places + 1)), **square)


def test_privacy_by_enumeration():
    """All 2**18 pairs of words of 9 bits: the certificate for 9 bits holds, outside included."""
    bounds = bounds_at(FEW, **COARSE)
    assert bounds is not None
    assert (math.inf, math.inf) in every_release((0, 0), places=FEW, scale=1.0, **COARSE)
    assert violations(bounds.excess, **COARSE) == 0


@pytest.mark.evidence
def test_mutants_of_the_certificate_are_found_out():
    """A certificate that counts on 53 bits, or on none missing, while the noise has 9."""
    full = polar_bounds(rate=Fraction(1), **COARSE)
    assert full is not None
    assert full.excess < Fraction(1, 10**6)
    assert violations(full.excess, **COARSE) > 0
    honest = bounds_at(FEW, **COARSE)
    assert honest is not None
    assert violations(honest.excess, scale=0.5, **COARSE) > 0  # twice the rate that was claimed


def excess_of(delta_t: Fraction, rate: Fraction, cell: Fraction) -> Fraction:
    ratio = 8 * cell * delta_t / (cell - 2 * delta_t) ** 2
    with working_precision(100):
        growth = (arb_of(rate) * arb(2).sqrt() * arb_of(cell)).exp()
        return ends((1 + arb_of(ratio) * growth).log())[1]


def test_the_certificate_is_its_formula():
    bounds = mechanism().bounds
    again = excess_of(bounds.delta_t, Fraction(1), Fraction(1, 64))
    assert again <= bounds.excess <= again * (1 + Fraction(1, 1 << 48))
    parts = bounds.delta_n + bounds.delta_sum + bounds.delta_input
    squares = (bounds.delta_t - parts) ** 2
    assert squares >= bounds.omega_r**2 + bounds.omega_angle**2
    assert squares <= (bounds.omega_r**2 + bounds.omega_angle**2) * (1 + Fraction(1, 1 << 48))


# ---------------------------------------------------------------- corrections to paper 000


def test_correction_1_the_exponent_needs_epsilon():
    """Theorem 4.5 as printed fails: noise pushed by delta over the ends of a cell costs more."""
    epsilon, delta, length = 10, 0.1, 1.0  # sensitivity 1, cells of length 1

    def between(low: float, high: float) -> float:
        return (math.exp(-epsilon * low) - math.exp(-epsilon * high)) / 2

    start = 1.0  # all noise within delta of the cell [1, 2] falls into it, and leaves [2, 3]
    ratio = between(start - delta, start + length + delta) / between(
        start + 1 + delta, start + 1 + length - delta
    )
    rim = 4 * delta / (length - 2 * delta)
    assert math.log(ratio) > epsilon + math.log(1 + rim * math.exp(length + delta)) + 1
    assert math.log(ratio) < epsilon + math.log(1 + rim * math.exp(epsilon * (length + delta)))


def test_correction_2_the_rim_is_the_difference_of_the_areas():
    """With the quotient of the areas instead, exact arithmetic would still cost ln 2."""
    for delta in (0.0, 1e-9, 1e-3):
        printed = ((1 + 2 * delta) / (1 - 2 * delta)) ** 2
        assert math.log(1 + printed) >= math.log(2)
    small = excess_of(Fraction(1, 10**9), Fraction(1), Fraction(1))
    assert small < Fraction(1, 10**7)
    with working_precision(100):  # and ours is the definition (5)
        grown, shrunk = (Fraction(1) + s * Fraction(1, 500) for s in (1, -1))
        assert grown**2 / shrunk**2 - 1 == 8 * Fraction(1, 1000) / shrunk**2


def test_correction_3_the_diameter_of_a_square_is_its_diagonal():
    """Two points of a cell can differ in density by more than the side allows."""
    rate, side, delta = 1.0, 1.0, 0.001
    density = math.exp(-rate * math.dist((0, 0), (5, 5)))
    opposite = math.exp(-rate * math.dist((0, 0), (6, 6)))
    assert density / opposite > math.exp(rate * (side + delta))
    assert density / opposite <= math.exp(rate * math.sqrt(2) * side) * (1 + 1e-12)


def lipschitz_constant(rate: float, far: float) -> float:
    """K_C as the paper states it."""
    return math.exp(rate * far) / (2 * rate + far * rate**2)


def test_correction_4_the_inverse_is_not_lipschitz_at_zero():
    """With the paper's K_C the certificate promises a finite loss; the true loss is infinite."""
    places = 6
    cell = Fraction(1, 8)
    square = dict(cell=cell, half_width=cell, inputs=cell, reach=2 * cell)
    far = math.sqrt(2) * float(cell * Fraction(5, 2))
    delta_0 = Fraction(1, 1 << (places + 1))
    radius = Fraction(lipschitz_constant(1.0, far)) * delta_0
    with working_precision(300):
        assert exact_radius(delta_0) > 10 * arb_of(radius)
    claimed = radius + Fraction(2 * math.pi * far) * delta_0
    assert 2 * claimed < cell
    points = [(0.0, 0.0), (0.125, 0.0)]
    law = every_release(points[0], places=places, scale=1.0, **square)
    assert (0.0, 0.0) not in law  # no radius is small enough to stay in the cell
    claim = excess_of(claimed, Fraction(1), cell)
    assert violations(claim, places=places, points=points, **square) > 0
    assert bounds_at(places, **square) is None  # the true modulus says so


def test_correction_5_the_angle_enters_squared():
    rate, far, delta_0 = 0.1, 10.0, 1e-6
    printed = math.sqrt(lipschitz_constant(rate, far) ** 2 + 2 * math.pi * far) * delta_0
    moved = math.dist(
        (far, 0), (far * math.cos(2 * math.pi * delta_0), far * math.sin(2 * math.pi * delta_0))
    )
    assert moved > 4 * printed
    assert moved <= 2 * math.pi * far * delta_0


def test_correction_6_the_signs():
    """The density must fall with the distance, and the inverse of a cumulative function rise."""

    def printed(u: float) -> float:
        return math.copysign(1, u - 0.5) * math.log(1 - 2 * abs(u - 0.5))

    assert printed(0.9) < printed(0.6) < printed(0.4) < printed(0.1)
    bits = Seeded(6)
    radii = np.abs(PolarNoise(1.0).draw(bits, 20_000))
    near, far = (radii < 1).mean(), ((radii > 5) & (radii < 6)).mean()
    assert near / 1 > 11 * far / (36 - 25)  # per area


def test_correction_7_the_sum_in_floats():
    """Far from 0 the rounding of the sum alone exceeds everything that the paper counts."""
    noise = PolarLaplace(rate=1, cell="1/64", half_width=6, inputs=1, centre=(2**32, 0))
    bounds = noise.bounds
    counted = bounds.omega_r + bounds.omega_angle + bounds.delta_n
    point, shift = 2.0**32 + 0.5, 0.3
    off = abs(Fraction(point + shift) - Fraction(point) - Fraction(shift))
    assert counted < off <= bounds.delta_sum


# ---------------------------------------------------------------- the mechanism


def city(**changes) -> PolarLaplace:
    parameters: dict[str, Any] = dict(
        epsilon=1, within=200, unit="m", cell=4, half_width=2000, inputs=1000
    )
    return PolarLaplace(**(parameters | changes))


def test_epsilon_counts_everything():
    noise = city(neighbours=CHANGE_ONE)
    loss = noise.guarantee_at(200)
    assert loss.epsilon <= 1
    assert loss.epsilon > 1 - Fraction(1, 10**8)
    assert loss.epsilon == noise.certificate()["epsilon_upper"]
    assert noise.guarantee.unit == "m"
    assert noise.guarantee.at(200) == loss
    assert noise.guarantee_at(0) == PureDP(0, neighbours=CHANGE_ONE)
    assert noise.guarantee_at(Fraction(1, 10**9)).epsilon > noise.bounds.excess
    by_rate = city(epsilon=None, rate=noise.rate)
    assert by_rate.guarantee_at(200).epsilon == loss.epsilon
    assert by_rate.bounds == noise.bounds


@pytest.mark.parametrize(
    "changes",
    [
        dict(half_width=16000),  # the tail is too coarse
        dict(cell=Fraction(1, 1 << 20)),
        dict(centre=(4 * 2**60, 0)),
        dict(half_width=4 * 10**4000),
        dict(cell=0),
        dict(cell=3),
        dict(cell=-4),
        dict(cell=math.nan),
        dict(cell=2.0**301),
        dict(half_width=2001),
        dict(half_width=0),
        dict(inputs=-4),
        dict(inputs=2),
        dict(inputs=math.inf),
        dict(centre=(1, 0)),
        dict(centre=5),
        dict(centre=(0, 0, 0)),
        dict(centre=(0, "north")),
        dict(epsilon=0),
        dict(epsilon=-1),
        dict(epsilon=True),
        dict(epsilon="much"),
        dict(epsilon=None),
        dict(rate=1),
        dict(within=0),
        dict(within=math.nan),
        dict(unit=""),
        dict(unit=3),
        dict(neighbours="all"),
    ],
    ids=str,
)
def test_parameters_without_meaning_are_refused(changes):
    with pytest.raises(LastbitError):
        city(**changes)


def test_releases_are_multiples_of_the_cell_in_the_square_or_outside():
    noise = city(centre=(400, -800))
    points = np.random.default_rng(7).uniform(-1000, 1000, (70_000, 2))
    points += (400, -800)
    released = noise.release(points)
    assert released.shape == points.shape
    outside = np.isinf(released).any(axis=1)
    assert (released[outside] == np.inf).all()
    assert outside.any()
    inside = released[~outside]
    assert (inside % 4 == 0).all()
    assert (np.abs(inside - [400, -800]) <= 2000).all()
    edge = noise._rounded(np.array([[2401.9, -800.0], [2402.1, -800.0], [400.0, -2801.9]]))
    assert edge[0].tolist() == [2400.0, -800.0]
    assert edge[1].tolist() == [np.inf, np.inf]
    assert edge[2].tolist() == [400.0, -2800.0]


def test_shapes_and_kinds():
    noise = city()
    x, y = noise.release((3.5, -2))
    assert isinstance(x, float)
    assert isinstance(y, float)
    assert isinstance(noise.release([1, 2]), tuple)
    assert isinstance(noise.release(np.array([1.0, 2.0])), tuple)
    assert noise.release(np.zeros((3, 2), np.int32)).shape == (3, 2)
    assert noise.release(np.zeros((0, 2))).shape == (0, 2)
    assert noise.release([(Fraction(1, 3), Decimal("0.1")), (2**70, -(10**400))]).shape == (2, 2)
    assert pickle.loads(pickle.dumps(noise)) == noise
    assert "bounds" not in repr(noise)


def test_zero_has_no_sign():
    """-0.0 would tell on which side of 0 the noise fell."""
    released = city()._rounded(np.array([[-1.0, 1.0], [-0.0, -1e-300]]))
    assert released.tolist() == [[0, 0], [0, 0]]
    assert not np.signbit(released).any()


def test_far_inputs_move_to_the_edge():
    noise = city(centre=(400, -800))
    far = noise._points([(1e300, -(2**80)), (1401.5, -800), (Fraction(7, 2), 10**400)])
    assert far.tolist() == [[1400, -1800], [1400, -800], [3.5, 200]]


@pytest.mark.thinned(one_in=2)
@pytest.mark.parametrize(
    "value",
    [
        (math.nan, 0.0),
        (0.0, math.inf),
        np.array([[1.0, np.nan]]),
        [],
        (1.0,),
        (98765.0, 2.0, 3.0),
        np.zeros((2, 2, 2)),
        "98765",
        ("98765", "1"),
        (True, False),
        98765.0,
        None,
        [(98765.0, 2.0), (3.0,)],
        np.array([["98765", "1"]]),
        np.array([[1, 2]], "m8[s]"),
        np.ma.masked_array([[1.0, 2.0]], mask=[[True, False]]),
    ],
    ids=str,
)
def test_values_without_meaning_are_refused(monkeypatch, value):
    monkeypatch.setattr(certified, "drawn", lambda *_: pytest.fail("drew before checking"))
    with pytest.raises((InvalidParameter, WrongType)) as refusal:
        city().release(value)
    assert "98765" not in str(refusal.value)


# ---------------------------------------------------------------- accuracy


def test_accuracy_and_beta_are_inverse():
    noise = city()
    for level in ("0.5", "0.05", "1e-6"):
        error = noise.accuracy(level)
        assert noise.beta(error) <= float(Fraction(level))
        assert noise.beta(error * Fraction(999, 1000)) > float(Fraction(level))
    assert noise.beta(0) == 1.0
    for wrong in (0, 1, 2, math.nan):
        with pytest.raises(LastbitError):
            noise.accuracy(wrong)
    with pytest.raises(LastbitError):
        noise.beta(-1)


@pytest.mark.parametrize("radius", [0.5, 1.678347, 4.0, 8.0])
def test_frequencies_of_the_radius(radius):
    trials = 200_000
    points = PolarNoise(1.0).draw(Seeded(8), trials)
    hits = int((np.abs(points) > radius).sum())
    probability = (1 + radius) * math.exp(-radius)
    detects = Fraction(40, 100) if radius > 5 else Fraction(8, 100)
    assert_frequency(hits, trials=trials, probability=probability, detects=detects)


def test_frequencies_of_the_direction():
    trials = 200_000
    points = PolarNoise(2.0).draw(Seeded(9), trials)
    angles = np.angle(points) / (2 * np.pi) % 1
    for start in range(8):
        hits = int((np.floor(angles * 8) == start).sum())
        assert_frequency(hits, trials=trials, probability=1 / 8, detects=Fraction(5, 100))
