"""The rounded Laplace mechanism in floats: its proofs checked, its privacy by enumeration."""

from __future__ import annotations

import math
import pickle
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings, strategies as st

from lastbit.errors import InvalidParameter, LastbitError, WrongType
from lastbit.exact.ball import arb_of, ends, working_precision
from lastbit.mechanisms import rounded_laplace as certified
from lastbit.mechanisms.rounded_laplace import (
    PLACES,
    FloatLaplaceNoise,
    RoundedLaplace,
    rounded_bounds,
    unit_exponential,
)
from lastbit.privacy.guarantees import PureDP
from lastbit.privacy.neighbours import CHANGE_ONE
from lastbit.sampling.deterministic import Counting, Replay, Seeded
from tests.laws.frequency import assert_frequency

UNIT = Fraction(1, 1 << 53)


# ---------------------------------------------------------------- the exponential


def middle_of(word: int, places: int = PLACES) -> Fraction:
    return Fraction(1, 2) + Fraction(2 * word + 1, 1 << (places + 2))


def worst_units(halvings: list[int], word: list[int], places: int = PLACES) -> Fraction:
    """The greatest relative error, in units of 2**-53, against balls of 200 bits."""
    found = unit_exponential(np.array(halvings, float), np.array(word, np.uint64), places=places)
    worst = Fraction(0)
    with working_precision(200):
        for e, k, x in zip(halvings, word, found.tolist(), strict=True):
            exact = e * arb.const_log2() - arb_of(middle_of(k, places)).log()
            worst = max(worst, ends(abs(arb(x) / exact - 1))[1] / UNIT)
    return worst


def samples(seed: int, count: int) -> tuple[list[int], list[int]]:
    random = np.random.default_rng(seed)
    top = (1 << PLACES) - 1
    edges = [0, 1, 2, top, top - 1, top // 2, top // 2 + 1, top - 5, top - 1000]
    word = edges * 3 + random.integers(0, top + 1, count).tolist()
    near_one = [top - int(2.0 ** random.uniform(0, PLACES)) for _ in range(count)]
    word += near_one
    halvings = [0] * 9 + [1] * 9 + [5000] * 9 + random.geometric(0.5, count).tolist()
    return halvings + [0] * count, word


def test_the_exponential():
    assert worst_units(*samples(seed=1, count=8000)) < 6


@given(st.integers(0, 10**6), st.integers(0, (1 << PLACES) - 1))
@settings(max_examples=200)
def test_any_exponential(halvings, word):
    assert worst_units([halvings], [word]) < 6


@pytest.mark.parametrize("mutant", ["coefficient", "length", "constant"])
def test_a_mutant_exponential_is_found_out(monkeypatch, mutant):
    series = certified._SERIES
    if mutant == "coefficient":
        monkeypatch.setattr(certified, "_SERIES", (1.0, 1 / 3 + 2.0**-46, *series[2:]))
    elif mutant == "length":
        monkeypatch.setattr(certified, "_SERIES", series[:14])
    else:
        monkeypatch.setattr(certified, "_LN2", math.nextafter(certified._LN2, 0) - 2.0**-50)
    assert worst_units(*samples(seed=2, count=300)) > 6


def test_the_error_of_the_series():
    """Horner's recurrence of the proof, at q = 1/9: 1.6 units for P, its own argument included."""
    q = Fraction(1, 9)
    value, error = Fraction(0), Fraction(0)
    for k in reversed(range(17)):
        coefficient = Fraction(1, 2 * k + 1)
        rounded = 0 if k == 0 else coefficient
        value, product = coefficient + q * value, q * value
        error = q * error + product + rounded + value + Fraction(1, 1 << 40)
    slope = sum(Fraction(k, 2 * k + 1) * q**k for k in range(60))
    left_out = sum(q**k / (2 * k + 1) for k in range(17, 60)) / UNIT
    assert error + Fraction(53, 10) * slope + left_out < Fraction(16, 10)
    with working_precision(100):
        gap = abs(arb(certified._LN2) / arb.const_log2() - 1)
        assert gap < arb_of(UNIT)


# ---------------------------------------------------------------- the sampler


def test_a_draw_by_hand():
    zeros = np.array([1 << 63, 1 << 11, (1 << 64) - 1, (1 << 60) + 5], np.uint64)
    word = np.array([1, 0, (5 << 13) | 1, 7 << 13], np.uint64)
    drawn = FloatLaplaceNoise(2.0).draw(Replay([zeros, word]), 4)
    magnitude = 2 * unit_exponential(np.array([0.0, 52, 0, 3]), np.array([0, 0, 5, 7], np.uint64))
    assert drawn.tolist() == (magnitude * [-1, 1, -1, 1]).tolist()


def test_a_row_of_zeros_goes_on_in_the_next_word():
    first = np.array([0, 1 << 63], np.uint64)
    more = [np.array([(1 << 11) - 1], np.uint64), np.array([1 << 61], np.uint64)]
    zeros = certified._leading_zeros(Replay([first, *more]), 2)
    assert zeros.tolist() == [53 + 53 + 2, 0]


def test_the_words_taken_depend_on_the_size_alone():
    taken = set()
    for seed in range(40):
        bits = Counting(Seeded(seed))
        FloatLaplaceNoise(1.0).draw(bits, 1000)
        taken.add((bits.bytes, bits.requests))
    assert taken == {(16_000, 2)}


@pytest.mark.parametrize(("far", "detects"), [(0.01, 20), (0.7, 20), (3.0, 10), (5.0, 4)])
def test_the_frequency_of_large_noise(far, detects):
    noise = FloatLaplaceNoise(1.5).draw(Seeded(3), 400_000)
    tail = math.exp(-far)
    for side in (noise > 1.5 * far, noise < -1.5 * far):
        hits = int(side.sum())
        assert_frequency(hits, trials=400_000, probability=tail / 2, detects=Fraction(1, detects))


def test_a_mutant_frequency_is_found_out():
    noise = FloatLaplaceNoise(1.5 * 1.03).draw(Seeded(3), 400_000)
    with pytest.raises(AssertionError):
        hits = int((noise > 1.5 * 3).sum())
        assert_frequency(hits, trials=400_000, probability=math.exp(-3) / 2)


# ---------------------------------------------------------------- how far the sum strays


def machine(**values: Any) -> RoundedLaplace:
    """The rounding of a mechanism with these parameters, and nothing else of it."""
    place = object.__new__(RoundedLaplace)
    for name, value in values.items():
        object.__setattr__(place, name, Fraction(value))
    return place


def test_the_sum_is_within_delta_t():
    """Over the worst uniform reals that begin with the same bits."""
    scale, bound = Fraction(3, 4), Fraction(20)
    bounds = rounded_bounds(scale=scale, cell=Fraction(1, 1 << 40), bound=bound)
    assert bounds is not None
    halvings, word = samples(seed=5, count=1500)
    noise = unit_exponential(np.array(halvings, float), np.array(word, np.uint64)) * float(scale)
    worst = Fraction(0)
    part = Fraction(1, 1 << (PLACES + 2))
    with working_precision(200):
        for value in (19.3, -19.999, 0.1):
            for e, k, x in zip(halvings, word, noise.tolist(), strict=True):
                for end in (-part, part):
                    fraction = middle_of(k) + end
                    ideal = arb_of(scale) * (e * arb.const_log2() - arb_of(fraction).log())
                    if ends(ideal)[0] > 2 * bound:
                        continue
                    off = abs(arb(value + x) - arb(value) - ideal)
                    worst = max(worst, ends(off)[1])
    assert worst <= bounds.delta_t - bounds.delta_input
    assert worst > bounds.delta_t / 20


def test_what_is_not_close_is_beyond_the_same_end():
    """Noise beyond 2 bound leads to the end in floats too, from the other end."""
    mechanism = RoundedLaplace(sensitivity=1, epsilon=1, cell="1/16", bound=10)
    for far in (20.0, 20.5, 30.0, 1e6):
        least = far * (1 - 8 * 2.0**-53) - float(mechanism.bounds.omega)
        assert mechanism._rounded(np.array(-10.0 + least)) == 10
        assert mechanism._rounded(np.array(10.0 - least)) == -10


# ---------------------------------------------------------------- privacy, by enumeration

FEW = 6
SMALL: dict[str, Any] = dict(scale=Fraction(1), cell=Fraction(1), bound=Fraction(4))
INPUTS = [0.0, 0.03, 0.49, 0.5, 0.51, 1.0, -0.5, -0.97, 2.5, 3.99, 4.0, -4.0, -3.5, 1.26, 0.515625]


def every_release(
    value: float, *, places: int, scale: Fraction, cell: Fraction, bound: Fraction
) -> dict[float, int]:
    """The exact law of the real code with so few bits: counts in units of 2**-(last+places+1)."""
    last = math.ceil(float(2 * bound / scale) / math.log(2)) + 2
    word = np.arange(1 << places, dtype=np.uint64)
    rounding = machine(cell=cell, bound=bound)
    law: dict[float, int] = {}
    for e in range(last + 1):
        weight = 1 << max(last - e - 1, 0)  # whatever is halved more often lies beyond the ends
        noise = unit_exponential(np.full(word.shape, float(e)), word, places=places) * float(scale)
        for sums in (value + noise, value - noise):
            released, counts = np.unique(rounding._rounded(sums), return_counts=True)
            for release, count in zip(released.tolist(), counts.tolist(), strict=True):
                law[release] = law.get(release, 0) + weight * count
    assert sum(law.values()) == 1 << (last + places + 1)
    return law


def violations(excess: Fraction, *, rate: Fraction | int, inputs=None, **parameters) -> int:
    """Over all pairs of inputs and all releases: how often the loss exceeds rate d + excess."""
    inputs = INPUTS if inputs is None else inputs
    laws = [every_release(value, **parameters) for value in inputs]
    found = 0
    for one, first in zip(inputs, laws, strict=True):
        for other, second in zip(inputs, laws, strict=True):
            with working_precision(100):
                far = abs(Fraction(one) - Fraction(other))
                limit = (arb_of(far * rate + (excess if far else 0))).exp()
                for release, hits in first.items():
                    found += not arb(hits) <= limit * second.get(release, 0)
    return found


@pytest.mark.parametrize("places", [2, 4, FEW])
@pytest.mark.parametrize("bound", [1, 4])
def test_privacy_by_enumeration(places, bound):
    """All words of a few bits: the certificate for these bits holds, the ends included."""
    parameters = SMALL | dict(bound=Fraction(bound))
    bounds = rounded_bounds(**parameters, places=places)
    assert bounds is not None
    inputs = [value for value in INPUTS if abs(value) <= bound]
    assert violations(bounds.excess, rate=1, inputs=inputs, places=places, **parameters) == 0


def test_another_scale_by_enumeration():
    parameters = dict(scale=Fraction(3, 8), cell=Fraction(1, 4), bound=Fraction(2))
    bounds = rounded_bounds(places=5, **parameters)
    assert bounds is not None
    inputs = [value / 2 for value in INPUTS]
    rate = 1 / Fraction(3, 8)
    assert violations(bounds.excess, rate=rate, inputs=inputs, places=5, **parameters) == 0


def test_mutants_of_the_certificate_are_found_out():
    """delta_0 of 51 bits while the noise has few; noise of half the scale; no excess at all."""
    full = rounded_bounds(places=PLACES, **SMALL)
    honest = rounded_bounds(**SMALL, places=3)
    assert full is not None
    assert honest is not None
    assert full.excess < Fraction(1, 10**12)
    assert violations(full.excess, rate=1, places=3, **SMALL) > 0
    assert violations(Fraction(0), rate=1, places=3, **SMALL) > 0
    halved = SMALL | dict(scale=Fraction(1, 2))
    assert violations(honest.excess, rate=1, places=3, **halved) > 0


def test_correction_7_the_addition_has_an_error_of_its_own():
    """Far from 0 sums fall on few floats, which shortens every other cell by half: with few noise
    values such a cell is reached from one input and not from another, an infinite loss, where the
    terms that paper 000 counts promise a finite one."""
    far, cell, scale = 2.0**47, Fraction(1, 16), Fraction(9, 10)  # floats are 1/32 apart there
    rounding = machine(cell=cell, bound=2**50)
    word = np.arange(1 << 4, dtype=np.uint64)
    reached = []
    for value in (far, far + 1 / 32):
        found = set()
        for e in range(4):
            noise = unit_exponential(np.full(word.shape, float(e)), word, places=4) * float(scale)
            found |= set(rounding._rounded(np.concatenate([value + noise, value - noise])).tolist())
        reached.append(found)
    near = {far + k / 16 for k in range(-30, 31)}
    assert (reached[0] ^ reached[1]) & near
    counted = scale / 32  # the generator; the noise itself is exact compared with that
    assert 2 * counted < cell
    ratio = 4 * counted / (cell - 2 * counted)
    assert math.log(1 + float(ratio) * math.exp(float(cell / scale))) < 4
    assert rounded_bounds(scale=scale, cell=cell, bound=Fraction(2**47), places=4) is None


# ---------------------------------------------------------------- the formula


def test_the_certificate_is_its_formula():
    bounds = rounded_bounds(scale=Fraction(3, 2), cell=Fraction(1, 4), bound=Fraction(100))
    assert bounds is not None
    parts = (bounds.omega, bounds.delta_n, bounds.delta_sum, bounds.delta_input)
    assert bounds.delta_t == sum(parts)
    with working_precision(400):
        wide, narrow = (arb_of((Fraction(1, 4) + s * bounds.delta_t) / 3).sinh() for s in (2, -2))
        exact = ends((wide / narrow).log())
        general = ends((1 + arb_of(bounds.ratio) * arb_of(Fraction(1, 6)).exp()).log())
    assert exact[1] <= bounds.excess <= exact[1] * (1 + Fraction(1, 1 << 40))
    assert general[1] <= bounds.general <= general[1] * (1 + Fraction(1, 1 << 40))
    assert bounds.excess < bounds.general
    assert (
        rounded_bounds(scale=Fraction(3, 2), cell=2 * bounds.delta_t, bound=Fraction(100)) is None
    )


@pytest.mark.parametrize("sensitivity", [2.0**-30, "1/1024", "1/64", 1, 2.0**30])
def test_any_scale(sensitivity):
    """Noise much finer than a cell, and much wider than the bound."""
    noise = RoundedLaplace(sensitivity=sensitivity, epsilon=1, cell=1, bound=4)
    assert noise.guarantee.epsilon <= 1
    assert noise.bounds.excess <= noise.bounds.general
    assert abs(noise.release(2.25)) <= 4
    if noise.scale < Fraction(1, 100):
        assert noise.release(2.25) == 2


@pytest.mark.parametrize("sensitivity", [2.0**-250, 1e-30, 1e30, 2.0**250])
def test_noise_beside_which_floats_are_coarse_is_refused(sensitivity):
    with pytest.raises(InvalidParameter, match="too small for floats"):
        RoundedLaplace(sensitivity=sensitivity, epsilon=1, cell=1, bound=4)


@given(st.floats(0, 3), st.floats(0.01, 3), st.floats(0.001, 0.49))
@settings(max_examples=200)
def test_the_cell_over_the_mode_costs_no_more(centre, length, share):
    """The lemma of the proof: mass of [c-w, c+w] over sinh w does not grow with w."""
    delta = length * share
    with working_precision(120):
        middle = arb(centre)

        def mass(half: arb) -> arb:
            low, high = middle - half, middle + half
            if ends(low)[0] >= 0:
                return ((-low).exp() - (-high).exp()) / 2
            return 1 - (low.exp() + (-high).exp()) / 2

        wide, narrow = (arb(length) / 2 + s * arb(delta) for s in (1, -1))
        limit = wide.sinh() / narrow.sinh()
        assert ends(mass(wide) / mass(narrow))[0] <= ends(limit)[1]
        assert ends((2 * arb(delta)).exp())[0] <= ends(limit)[1]  # a half-line


# ---------------------------------------------------------------- the mechanism


def example(**changes: Any) -> RoundedLaplace:
    parameters: dict[str, Any] = dict(sensitivity=1, epsilon="1/2", cell="1/16", bound=1000)
    return RoundedLaplace(**(parameters | changes))


def test_epsilon_counts_everything():
    noise = example(neighbours=CHANGE_ONE)
    loss = noise.guarantee
    assert loss.neighbours == CHANGE_ONE
    assert loss.epsilon <= Fraction(1, 2)
    assert loss.epsilon > Fraction(1, 2) - Fraction(1, 10**14)
    assert loss.epsilon == 1 / noise.scale + noise.bounds.excess
    assert loss.epsilon == noise.certificate()["epsilon_upper"]
    assert noise.guarantee_at(0) == PureDP(0, neighbours=CHANGE_ONE)
    assert noise.guarantee_at(3).epsilon == 3 / noise.scale + noise.bounds.excess
    assert Fraction(float(noise.scale)) == noise.scale
    many = example(dimension=10**6)
    assert many.guarantee.epsilon == 1 / many.scale + 10**6 * many.bounds.excess
    assert Fraction(1, 2) - Fraction(1, 10**14) < many.guarantee.epsilon <= Fraction(1, 2)
    assert many.bounds == rounded_bounds(scale=many.scale, cell=many.cell, bound=many.bound)


@pytest.mark.parametrize(
    "changes",
    [
        dict(cell=2.0**-44),
        dict(bound=2.0**46),
        dict(epsilon=1e-12),
        dict(dimension=10**12),
        dict(cell=0),
        dict(cell=3),
        dict(cell=-1),
        dict(cell=math.nan),
        dict(cell=2.0**301),
        dict(bound="1000.01"),
        dict(bound=0),
        dict(bound=-16),
        dict(bound=math.inf),
        dict(bound=10**400),
        dict(epsilon=0),
        dict(epsilon=-1),
        dict(epsilon=math.inf),
        dict(epsilon=True),
        dict(epsilon="much"),
        dict(epsilon=None),
        dict(sensitivity=0),
        dict(sensitivity=-1),
        dict(sensitivity=math.nan),
        dict(dimension=0),
        dict(dimension=1.0),
        dict(dimension=True),
        dict(neighbours="all"),
    ],
    ids=str,
)
def test_parameters_without_meaning_are_refused(changes):
    with pytest.raises(LastbitError):
        example(**changes)


def test_releases_are_multiples_of_the_cell_within_the_bound():
    noise = example(bound=4, dimension=200_000)
    released = noise.release(np.random.default_rng(7).uniform(-5, 5, 200_000))
    assert (released * 16 == np.rint(released * 16)).all()
    assert (np.abs(released) <= 4).all()
    assert {-4.0, 4.0} <= set(released.tolist())
    exact = noise._rounded(np.array([0.031249, 0.03125, 0.03126, 0.09375, 3.97, 4.1, -9.0, 1e200]))
    assert exact.tolist() == [0, 0, 0.0625, 0.125, 4, 4, -4, 4]


def test_zero_has_no_sign():
    """-0.0 would tell on which side of 0 the sum fell."""
    released = example()._rounded(np.array([-0.01, -0.0, -1e-300, 0.01]))
    assert released.tolist() == [0, 0, 0, 0]
    assert not np.signbit(released).any()


def test_shapes_and_kinds():
    noise = example(dimension=6)
    for value in (3, 3.5, np.int32(3), np.float32(3), Fraction(1, 3), 10**400, -(2**70)):
        assert isinstance(noise.release(value), float)
    assert noise.release([1, 2.5]).shape == (2,)
    assert noise.release(np.zeros((2, 3), np.float32)).shape == (2, 3)
    assert noise.release(np.zeros(0)).shape == (0,)
    assert noise.release([Fraction(1, 3), Decimal("0.1"), 10**400]).shape == (3,)
    assert pickle.loads(pickle.dumps(noise)) == noise
    assert "bounds" not in repr(noise)


def test_far_inputs_move_to_the_bound():
    noise = example(dimension=4)
    assert noise._floats([1e300, -(2**80), 3.25, 10**400]).tolist() == [1000, -1000, 3.25, 1000]
    assert noise._floats(10**400) == 1000
    assert noise._floats(Fraction(1, 3)) == 1 / 3


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        -math.inf,
        np.array([1.0, np.nan]),
        np.array([np.inf]),
        [98765.0, math.inf],
        np.zeros(5),
        "98765",
        ["98765"],
        b"98765",
        True,
        [True],
        None,
        [[98765.0, 2.0], [3.0]],
        1j,
        np.array(["98765"]),
        np.array([1, 2], "m8[s]"),
        np.timedelta64(98765, "s"),
        np.ma.masked_array([1.0, 2.0], mask=[True, False]),
        np.array(np.nan),
        np.array(np.inf),
    ],
    ids=str,
)
def test_values_without_meaning_are_refused(monkeypatch, value):
    monkeypatch.setattr(certified, "drawn", lambda *_: pytest.fail("drew before checking"))
    with pytest.raises((InvalidParameter, WrongType)) as refusal:
        example(dimension=4).release(value)
    assert "98765" not in str(refusal.value)


def test_accuracy_and_beta_are_inverse():
    noise = example()
    for level in ("0.5", "0.05", "1e-6"):
        error = noise.accuracy(level)
        assert noise.beta(error) <= float(Fraction(level))
        assert noise.beta(error * Fraction(999, 1000)) > float(Fraction(level))
    errors = [noise.accuracy(level) for level in ("0.5", "0.4", "0.1", "0.01")]
    assert all(a < b for a, b in pairwise(errors))
    assert noise.beta(0) == 1.0
    for wrong in (0, 1, 2, math.nan):
        with pytest.raises(LastbitError):
            noise.accuracy(wrong)
    with pytest.raises(LastbitError):
        noise.beta(-1)


def test_the_accuracy_holds(monkeypatch):
    noise = example(dimension=200_000, bound=20)
    monkeypatch.setattr(
        certified, "drawn", lambda sampler, shape: sampler.draw(Seeded(9), math.prod(shape))
    )
    error = noise.accuracy("0.1")
    for value in (0.0, 19.0):
        released = noise.release(np.full(200_000, value))
        hits = int((np.abs(released - value) > float(error)).sum())
        assert hits < 200_000 * 0.1
    inside = int((np.abs(noise.release(np.zeros(200_000))) > 3.03125).sum())
    tail = math.exp(-3.03125 / float(noise.scale))  # the next multiple is 3.0625: half a cell on
    assert_frequency(inside, trials=200_000, probability=tail, detects=Fraction(1, 20))


def test_mechanism_2_has_one_value_outside(monkeypatch):
    """The same draws: the ends, and they alone, become one infinity; failed before: no such."""
    monkeypatch.setattr(
        certified, "drawn", lambda sampler, shape: sampler.draw(Seeded(9), math.prod(shape))
    )
    plain = example(dimension=2000, bound=4).release(np.full(2000, 3.0))
    infinite = example(dimension=2000, bound=4, outside="infinity").release(np.full(2000, 3.0))
    ends = np.abs(plain) == 4
    assert 0 < ends.sum() < 2000
    assert (infinite[ends] == np.inf).all()
    assert (infinite[~ends] == plain[~ends]).all()
    assert example(outside="infinity").guarantee == example().guarantee
    for wrong in ("nan", None, math.inf, "Ends", np.array(["ends", "infinity"])):
        with pytest.raises(LastbitError, match="outside is unknown"):
            example(outside=wrong)
