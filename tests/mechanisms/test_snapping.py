"""The snapping mechanism: its law step by step, its uniforms, and its loss against exact laws."""

from __future__ import annotations

import math
import pickle
from dataclasses import FrozenInstanceError
from decimal import Decimal
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from lastbit.errors import InvalidParameter, LastbitError, WrongType
from lastbit.exact.ball import arb_of, ends, working_precision
from lastbit.exact.logarithm import ln
from lastbit.mechanisms import snapping
from lastbit.mechanisms.lattice import floats_of
from lastbit.mechanisms.snapping import (
    Snapping,
    SnappingNoise,
    full_precision,
    grid_of,
    overhead,
    snapped,
)
from lastbit.privacy.guarantees import ApproxDP, PureDP
from lastbit.privacy.neighbours import CHANGE_ONE
from lastbit.sampling.deterministic import Counting, Replay, Seeded
from lastbit.verify.running.code import Code
from lastbit.verify.running.exhaustive import exhaustive
from lastbit.verify.running.law import exact_law, exact_loss
from tests.evidence import late
from tests.laws.frequency import assert_frequency
from tests.verify.judged import single_snapped
from tests.verify.snapped_code import snapped_binary16

UNIT = Fraction(1, 1 << 53)
UNIFORM = st.floats(min_value=2.0**-1022, max_value=1 - 2.0**-53)


def rounded(number: Fraction) -> Fraction:
    return Fraction(number.numerator / number.denominator)


def reference(value: float, u: float, sign: int, epsilon: float, bound: float) -> float:
    """The definition in fractions, each operation rounded once."""
    with working_precision(400):
        low, high = ends(arb_of(Fraction(u)).log())
    assert rounded(low) == rounded(high)
    y = rounded(rounded(low) / Fraction(epsilon))
    w = rounded(min(max(Fraction(value), -Fraction(bound)), Fraction(bound)) + sign * y)
    grid = Fraction(1)
    while grid >= 2 / Fraction(epsilon):
        grid /= 2
    while grid < 1 / Fraction(epsilon):
        grid *= 2
    near = round(w / grid) * grid
    return float(min(max(near, -Fraction(bound)), Fraction(bound)))


@given(
    st.floats(-100, 100),
    UNIFORM,
    st.sampled_from([-1, 1]),
    st.sampled_from([1.0, 0.7, 0.5, 0.1, 2.0, 3.3]),
    st.sampled_from([64.0, 32.0, 10.3, 1.0]),
)
@settings(max_examples=300)
def test_the_definition(value, u, sign, epsilon, bound):
    out = snapped(value, u, sign, epsilon=epsilon, bound=bound)
    assert out == reference(value, u, sign, epsilon, bound)
    assert math.copysign(1.0, out) == 1 or out < 0  # no -0.0


@given(st.floats(min_value=2.0**-40, max_value=512))
def test_the_grid(epsilon):
    grid = Fraction(grid_of(epsilon))
    assert grid / 2 < 1 / Fraction(epsilon) <= grid


@given(st.floats(-70, 70), UNIFORM, UNIFORM, st.sampled_from([-1, 1]))
def test_monotone(value, one, two, sign):
    low, high = (snapped(value, u, sign, epsilon=0.7, bound=64.0) for u in sorted((one, two)))
    assert (high - low) * sign >= 0


# ---------------------------------------------------------------- the uniforms


def words_of(first: int, second: int) -> tuple[float, float]:
    tape = [np.array([word], np.uint64) for word in (first, second)]
    u, sign = full_precision(Replay(tape), 1)
    return float(u[0]), float(sign[0])


@pytest.mark.parametrize("zeros", range(64))
def test_exponent_and_mantissa(zeros):
    """The word decides the exponent by its last zeros; what lies above them does not matter."""
    mantissa = 0xABCDE_12345678
    expected = math.ldexp((1 << 52) + mantissa, -53 - zeros)
    for above in (0, 0xFFFF_FFFF_FFFF_FFFF, 0x5555_5555_5555_5555):
        word = (above << (zeros + 1) | 1 << zeros) & 0xFFFF_FFFF_FFFF_FFFF
        assert words_of(word, mantissa) == (expected, 1.0)
        assert words_of(word, mantissa | 1 << 63 | 1 << 55) == (expected, -1.0)


def tiny(zero_words: int, last: int) -> float:
    tape = [np.zeros(1, np.uint64), np.array([5], np.uint64)]
    tape += [np.zeros(1, np.uint64)] * zero_words + [np.array([last], np.uint64)]
    return float(full_precision(Replay(tape), 1)[0][0])


def test_exponents_beyond_one_word():
    front = (1 << 52) + 5
    assert tiny(0, 1) == math.ldexp(front, -53 - 64)
    assert tiny(2, 1 << 10) == math.ldexp(front, -53 - 64 * 3 - 10)
    assert tiny(14, 1 << 61) == math.ldexp(front, -1074)  # 1021 zeros
    assert tiny(14, 1 << 62) == 2.0**-1022
    assert tiny(14, 0) == 2.0**-1022


def test_the_law_of_the_uniforms():
    """P(u < a) = a, for either sign; the last bit is a fair coin too."""
    trials = 1 << 18
    u, sign = full_precision(Seeded(1), trials)
    assert ((u > 0) & (u < 1)).all()
    for a in (1 / 3, 0.75, 0.9, 2.0**-7, 0.011):
        assert_frequency(int((u < a).sum()), trials=trials, probability=a)
        assert_frequency(int(((u < a) & (sign > 0)).sum()), trials=trials, probability=a / 2)
    odd = (u.view(np.uint64) & np.uint64(1)).astype(bool)
    assert_frequency(int(odd.sum()), trials=trials, probability=0.5, detects=Fraction(1, 50))


def test_two_words_a_draw():
    counting = Counting(Seeded(2))
    SnappingNoise(1.0).draw(counting, 1000)
    assert (counting.bytes, counting.requests) == (16_000, 2)


@pytest.mark.parametrize("epsilon", [1.0, 0.7])
def test_the_release_is_the_function(monkeypatch, epsilon):
    """What arrays and single numbers become is what `snapped` says, draw by draw."""
    noise = Snapping(bound=32, inner_epsilon=epsilon)
    values = np.random.default_rng(3).uniform(-40, 40, 2000)
    u, sign = full_precision(Seeded(4), 2000)
    monkeypatch.setattr(snapping, "drawn", lambda sampler, size: sampler.draw(Seeded(4), *size))
    expected = [
        snapped(v, a, int(s), epsilon=epsilon, bound=32.0)
        for v, a, s in zip(values.tolist(), u.tolist(), sign.tolist(), strict=True)
    ]
    released = noise.release(values)
    assert released.tolist() == expected
    assert not np.signbit(released[released == 0]).any()
    draws = iter((sign * np.array([ln(a) for a in u.tolist()]) / epsilon).tolist())
    monkeypatch.setattr(snapping, "drawn", lambda sampler, size: next(draws))
    assert [noise.release(v) for v in values.tolist()] == expected


def test_frequencies():
    """Releases against the exact law of the function."""
    trials = 1 << 17
    noise = SnappingNoise(0.5).draw(Seeded(5), trials)
    out = np.clip(np.rint((3.3 + noise) / 2) * 2, -16, 16)
    law = exact_law(partial(snapped, epsilon=0.5, bound=16.0), 3.3)
    for output, share in zip(law.outputs, law.probabilities, strict=True):
        hits = int((out == output).sum())
        assert_frequency(hits, trials=trials, probability=float(share))


# ---------------------------------------------------------------- the loss


def pairs(bound: float, count: int, seed: int) -> list[tuple[float, float]]:
    """Inputs at most one apart: exactly one, less, at cell edges, at the ends."""
    random = np.random.default_rng(seed)
    found = [(bound, bound - 1), (-bound, -bound + 1), (0.5, -0.5), (0.0, 1.0), (0.5, 1.5)]
    for x in random.uniform(-bound, bound, count).tolist():
        for y in (x + 1, x - 1, x + random.random(), math.nextafter(x, 9e9)):
            if abs(y) <= bound and abs(Fraction(x) - Fraction(y)) <= 1:
                found.append((x, y))
    return found[: count + 5]


def excess(function, epsilon: float, bound: float, inputs) -> float:
    """The greatest exact excess over epsilon, in units of 2**-53."""
    worst = -math.inf
    code = partial(function, epsilon=epsilon, bound=bound)
    for x, y in inputs:
        over = exact_loss(code, x, y, probes=0).excess(epsilon)
        assert over is not None
        worst = max(worst, float(over.ends[1] / UNIT))
    return worst


@pytest.mark.thinned(one_in=9)
@pytest.mark.parametrize(
    ("epsilon", "bound"),
    [(1.0, 8.0), late(0.7, 32.0), late(0.7, 10.3), late(3.3, 4.0), late(0.01, 500.0)],
)
def test_the_overhead_covers_exact_losses(epsilon, bound):
    allowed = overhead(Fraction(epsilon), Fraction(bound)) / UNIT
    found = excess(snapped, epsilon, bound, pairs(bound, 5, seed=6))
    assert 0 < found <= allowed
    # the bound is no empty one: the floats do cost something like a tenth of it
    assert found >= allowed / 100


def test_the_bound_of_paper_002_is_exceeded():
    """12 B epsilon + 2 = 2.12 units: where B epsilon is small that is not enough."""
    found = excess(snapped, 0.01, 1.0, [(0.435, -0.565)])
    assert 2.65 < found < overhead(Fraction(0.01), Fraction(1)) / UNIT


@pytest.mark.evidence
def test_a_mutant_logarithm_is_found_out():
    allowed = overhead(Fraction(1), Fraction(8)) / UNIT
    assert excess(single_snapped, 1.0, 8.0, pairs(8.0, 3, seed=7)) > 1000 * allowed


@pytest.mark.thinned(one_in=36)
@pytest.mark.parametrize(("epsilon", "bound"), [(1.0, 2.0), (1.0, 4.0), (0.5, 4.0), (2.0, 2.0)])
def test_all_pairs_in_binary16(epsilon, bound):
    """The same formula with 2**-11 for 2**-53, over every pair of inputs there is."""
    found = exhaustive(partial(snapped_binary16, epsilon=epsilon, bound=bound), bound=bound)
    over = found.excess(epsilon)
    assert over is not None
    assert over.ends[1] * 2**11 <= 18 * Fraction(bound) * Fraction(epsilon) + 28


def test_distances_other_than_one():
    noise = Snapping(bound=8, inner_epsilon=1.0)
    code = partial(snapped, epsilon=1.0, bound=8.0)
    for distance in (0.25, 2.0, 5.5):
        loss = exact_loss(code, -1.3, -1.3 + distance, probes=0).loss
        assert loss is not None
        assert loss < noise.guarantee_at(distance).epsilon


def test_rounded_inputs_are_counted():
    """f/3 is rounded: two values 3 apart may come to lie more than 1 apart, and it is counted."""
    noise = Snapping(sensitivity=3, bound=96, inner_epsilon=1.0)
    wide = Fraction(32)
    worst = Fraction(0)
    for f in np.random.default_rng(8).uniform(-96, 93, 300).tolist():
        unit = noise.sensitivity
        one, two = float(floats_of(f, unit)), float(floats_of(Fraction(f) + 3, unit))
        many = floats_of(np.array([f, f]), unit)
        assert abs(Fraction(float(many[0])) - Fraction(f) / 3) <= Fraction(31, 10) * wide * UNIT
        worst = max(worst, abs(Fraction(one) - Fraction(two)))
    assert 1 < worst <= 1 + 8 * wide * UNIT
    loss = noise.guarantee.epsilon
    assert loss == 1 + 8 * wide * UNIT + overhead(Fraction(1), wide)


# ---------------------------------------------------------------- calibration


@given(
    st.fractions(min_value=Fraction(1, 1000), max_value=20),
    st.fractions(min_value=Fraction(1, 10), max_value=1000),
    st.sampled_from([1, "0.1", 3, 2.5]),
)
@settings(max_examples=100)
def test_calibrated_to_the_last_float(epsilon, bound, sensitivity):
    noise = Snapping(sensitivity=sensitivity, bound=bound, epsilon=epsilon)
    assert noise.guarantee.epsilon == epsilon
    given_inner = Snapping(sensitivity=sensitivity, bound=bound, inner_epsilon=noise.inner_epsilon)
    assert given_inner.epsilon <= epsilon
    more = math.nextafter(noise.inner_epsilon, math.inf)
    assert Snapping(sensitivity=sensitivity, bound=bound, inner_epsilon=more).epsilon > epsilon


@pytest.mark.evidence
def test_pure_or_not():
    """Noise that cannot reach every output has an infinite pure loss, and a tiny delta."""
    assert isinstance(Snapping(bound=353, inner_epsilon=1.0).guarantee, PureDP)
    beyond = Snapping(bound=354, inner_epsilon=1.0).guarantee
    assert isinstance(beyond, ApproxDP)
    assert 2.0**-1021 < beyond.delta < 4 * Fraction(1, 2**1022)
    code = Code("lastbit.mechanisms.snapping:snapped", epsilon=1.0, bound=353.0)
    assert not exact_loss(code, 353.0, 352.0, probes=0).infinite
    far = Code("lastbit.mechanisms.snapping:snapped", epsilon=1.0, bound=355.0)
    assert exact_loss(far, 355.0, 354.0, probes=0).infinite


def test_what_is_promised():
    noise = Snapping(sensitivity=2, bound=64, epsilon="1/2", neighbours=CHANGE_ONE)
    assert noise.guarantee == PureDP("1/2", neighbours=CHANGE_ONE)
    assert noise.guarantee_at(0) == PureDP(0, neighbours=CHANGE_ONE)
    assert noise.guarantee_at(2) == noise.guarantee
    assert noise.guarantee_at(1).epsilon < noise.guarantee.epsilon < noise.guarantee_at(3).epsilon
    assert noise.grid == 8.0
    assert pickle.loads(pickle.dumps(noise)) == noise
    with pytest.raises(FrozenInstanceError):
        noise.bound = Fraction(1)  # type: ignore[misc]


@pytest.mark.thinned(one_in=4)
@pytest.mark.parametrize("beta", ["0.5", "0.05", "1e-6"])
@pytest.mark.parametrize("value", [0.3, 31.9, -32.0])
def test_accuracy_against_the_exact_law(beta, value):
    noise = Snapping(bound=32, inner_epsilon=0.7)
    error = noise.accuracy(beta)
    law = exact_law(partial(snapped, epsilon=0.7, bound=32.0), value)
    beyond = sum(
        share
        for output, share in zip(law.outputs, law.probabilities, strict=True)
        if abs(Fraction(output) - Fraction(value)) > error
    )
    assert beyond <= Fraction(beta)
    assert Fraction(beta) * Fraction(999, 1000) <= noise.beta(error) <= Fraction(beta) * 2
    assert noise.beta(0) == 1.0


# ---------------------------------------------------------------- input, good and bad


def test_kinds_of_values():
    noise = Snapping(bound=1000, epsilon=1)
    for value in (3, 2.5, Fraction(1, 3), np.float32(2), np.int64(4), 10**400, -(10**400)):
        assert isinstance(noise.release(value), float)
    for values in ([1, 2.5], np.arange(6).reshape(2, 3), [Fraction(1, 3), 2], np.array([1e308])):
        released = noise.release(values)
        assert released.dtype == np.float64
        assert (np.abs(released) <= 1000).all()
    assert noise.release(np.arange(6).reshape(2, 3)).shape == (2, 3)
    assert noise.release([]).shape == (0,)


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        "3",
        None,
        True,
        np.bool_(0),
        [1, "2"],
        [True],
        [math.nan, 1.0],
        np.array([np.inf]),
        {},
        1j,
        Decimal("NaN"),
        np.timedelta64(3),
    ],
)
def test_bad_values(monkeypatch, value):
    monkeypatch.setattr(snapping, "drawn", lambda *_: pytest.fail("drew before checking"))
    with pytest.raises(LastbitError):
        Snapping(bound=10, epsilon=1).release(value)


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, "x", True, None, 2**400, "1e-200"])
@pytest.mark.parametrize("name", ["sensitivity", "bound", "epsilon", "inner_epsilon"])
def test_bad_parameters(name, bad):
    if name.endswith("epsilon") and bad is None:
        bad = []
    good = {"bound": 10} if name == "inner_epsilon" else {"bound": 10, "epsilon": 1}
    with pytest.raises(InvalidParameter):
        Snapping(**{**good, name: bad})


def test_bad_combinations():
    with pytest.raises(InvalidParameter, match="exactly one"):
        Snapping(bound=10)
    with pytest.raises(InvalidParameter, match="exactly one"):
        Snapping(bound=10, epsilon=1, inner_epsilon=1.0)
    with pytest.raises(InvalidParameter, match="costs too much"):
        Snapping(bound=2**43, epsilon=1)
    with pytest.raises(InvalidParameter, match="not a float"):
        Snapping(bound=10, inner_epsilon="0.1")  # type: ignore[arg-type]
    with pytest.raises(WrongType):
        Snapping(bound=10, epsilon=1, neighbours="all")  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        Snapping(bound=10, epsilon=1).accuracy(0)
