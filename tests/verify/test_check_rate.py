"""A declared rate that the noise has not got is refused; one that it has never is.

The truth is a formula, or the greatest of many points in floats. Families: logistic, with two
scales and with a line added (mixtures of quantile functions), Gumbel (no rate at all), power tails
(those of Student and Cauchy), tails like the normal law's.
"""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

from lastbit.checker.numbers import Rejected
from lastbit.checker.shape import check_rate
from lastbit.errors import NotCertified
from lastbit.verify.declared import declared_certificate
from lastbit.verify.language.expressions import expression_to_json
from lastbit.verify.running.uniforms import Grid
from tests.verify.expressions import traced

Noise = Callable[[float], float]


def refused(noise: Noise, rate: Fraction | int) -> bool:
    rows = expression_to_json(traced(noise, "u")[0])
    try:
        check_rate(rows, len(rows) - 1, Fraction(rate))
    except Rejected:
        return True
    return False


def logistic(scale: float) -> Noise:
    return lambda u: scale * (math.log(u) - math.log(1 - u))


def slanted(low: float, high: float, line: float) -> Noise:
    """Another scale on each side, and a line added."""
    return lambda u: low * math.log(u) - high * math.log(1 - u) + line * u


def powers(low: float, high: float) -> Noise:
    """Tails of the powers 1/low and 1/high: 2 for low = 1/2, as Student's with two degrees."""
    return lambda u: math.exp(-high * math.log(1 - u)) - math.exp(-low * math.log(u))


def normal_like(scale: float) -> Noise:
    return lambda u: scale * (math.sqrt(-2 * math.log(1 - u)) - math.sqrt(-2 * math.log(u)))


def gumbel(u: float) -> float:
    return -math.log(-math.log(u))


scales = st.floats(0.125, 8.0).map(lambda x: round(x * 64) / 64)


def rate_of(slope: Callable[[np.ndarray], np.ndarray], bend: Callable[[np.ndarray], np.ndarray]):
    """The greatest abs(N'')/N'**2 at half a million points: no more than the true rate."""
    half = np.concatenate([np.geomspace(1e-12, 1e-3, 1 << 15), np.linspace(1e-3, 0.5, 1 << 17)])
    u = np.concatenate([half, 1 - half])
    return float(np.max(np.abs(bend(u)) / slope(u) ** 2))


@pytest.mark.evidence
@given(scales, st.fractions("1/100", "100"))
@example(0.5, Fraction(1))  # was certified: 1.07 for noise that loses 2
@example(1.0, Fraction(1))
@settings(max_examples=60, deadline=None)
def test_logistic_noise_has_the_rate_one_over_its_scale(scale, rate):
    """The points come within 2**-256 of the ends, where the rate is attained."""
    truth = 1 / Fraction(scale)
    assert refused(logistic(scale), rate) == (rate < truth * (1 - Fraction(1, 2**254)))


@pytest.mark.evidence
@given(scales, scales, st.sampled_from([0.0, 0.5, 4.0]), st.sampled_from([0.5, 0.9, 1.01, 2.0]))
@settings(max_examples=60, deadline=None)
def test_two_scales_and_a_line(low, high, line, factor):
    truth = rate_of(
        lambda u: low / u + high / (1 - u) + line,
        lambda u: -low / u**2 + high / (1 - u) ** 2,
    )
    attained = 1 / min(low, high)  # towards the ends
    assert refused(slanted(low, high, line), Fraction(max(truth, attained) * factor)) == (
        factor < 1
    )


@pytest.mark.evidence
@given(
    st.sampled_from([0.25, 0.5, 1.0, 2.0]),
    st.sampled_from([0.25, 0.5, 1.0]),
    st.sampled_from([0.5, 0.9, 1.02, 2.0]),
)
@settings(max_examples=40, deadline=None)
def test_tails_of_powers(low, high, factor):
    """Inside, where the greatest slope of the density lies between two of the points tried."""
    truth = rate_of(
        lambda u: low * u ** (-low - 1) + high * (1 - u) ** (-high - 1),
        lambda u: high * (high + 1) * (1 - u) ** (-high - 2) - low * (low + 1) * u ** (-low - 2),
    )
    assert refused(powers(low, high), Fraction(truth * factor)) == (factor < 1)


@pytest.mark.parametrize("scale", [0.5, 1.0, 3.0])
def test_normal_tails_and_gumbels_have_no_rate(scale):
    """At 2**-256 the one reaches 18.8/scale, the other 176: beyond that nothing shows here."""
    assert refused(normal_like(scale), Fraction(int(18 / scale)))
    assert refused(gumbel, 176)


@pytest.mark.parametrize("rate", [1, 1000, 10**9])
def test_noise_that_is_constant_somewhere_has_no_density(rate):
    assert refused(lambda u: round(math.log(u) - math.log(1 - u)), rate)
    assert refused(lambda u: min(max(math.log(u) - math.log(1 - u), -3.0), 3.0), rate)


def test_a_clamp_that_never_acts_is_none():
    """2**-256 leads to -178."""
    assert not refused(lambda u: min(max(math.log(u) - math.log(1 - u), -200.0), 200.0), 1)


@pytest.mark.evidence
@given(scales.filter(lambda scale: 0.25 <= scale <= 2), st.sampled_from(["1/2", "1", "2", "4"]))
@settings(max_examples=12, deadline=None)
def test_no_bound_leaves_below_the_truth(scale, rate):
    """The loss of two inputs 1 apart is at least that of the outputs at the upper end."""
    options = dict(sensitivity=1, cell="1/4", region=(-2, 2), uniform=Grid(53, first=1))
    try:
        found = declared_certificate(logistic(scale), rate=rate, **options)  # type: ignore[arg-type]
    except NotCertified:
        assert Fraction(rate) < 1 / Fraction(scale)
        return
    upper = 1 / (1 + math.exp(1.875 / scale)), 1 / (1 + math.exp(0.875 / scale))
    assert math.log(upper[1] / upper[0]) <= float(found.epsilon)
    assert Fraction(rate) >= 1 / Fraction(scale)


def bumped(u: float) -> float:
    """Logistic noise and a bump: it loses 1.77 where a rate of 1 was declared."""
    return math.log(u) - math.log(1.0 - u) + 0.01 * math.exp(40.0 * (u - 0.6))


BLIND: dict[str, Noise] = {
    "nothing added": bumped,
    "a root of nothing": lambda u: bumped(u) + math.sqrt(0.0 * u),
    "a clamp that may act": lambda u: bumped(u) + min(0.0 * u, 0.0),
    "too wide to see": lambda u: bumped(u) + (1e300 * math.log(u) - 1e300 * math.log(u)),
    "wide by an exponential": lambda u: bumped(u) + (1e200 * math.exp(u) - 1e200 * math.exp(u)),
    "a root where it ends": lambda u: bumped(u) + math.sqrt(math.log(u) - math.log(u)),
}


@pytest.mark.parametrize("name", BLIND)
def test_points_that_cannot_be_judged_do_not_pass(name):
    """Terms that are 0 made every point be skipped, and the noise was certified for 1."""
    assert refused(BLIND[name], 1)


def test_an_overflow_in_the_middle_is_not_passed_over():
    near: list[list[object]] = [["VAR", "u"], ["CONST", "1000000"], ["MUL", 0, 1], ["EXP", 2]]
    with pytest.raises(Rejected, match="cannot be judged"):
        check_rate(near, 3, Fraction(10**12))
