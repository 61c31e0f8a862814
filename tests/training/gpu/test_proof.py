"""The constants of the kernel's theorem, proved by intervals for the kernel's own source."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from flint import arb, arb_poly, fmpq, fmpq_poly

from lastbit.exact import arb_of, working_precision
from lastbit.training.gpu.constants import LOG_ERROR, TURN_ERROR, constants_of
from tests.evidence import Extent
from tests.training.gpu.interpreted import changed, gaussian
from tests.training.gpu.running_error import (
    UNIT,
    Float,
    as_polynomial,
    half_place,
    largest_difference,
    on_intervals,
    on_rationals,
    pieces,
)
from tests.training.gpu.test_interpreter import coefficient_mutants

X = arb_poly([0, 1])
SEED = 0x5FE6EB50C7B537A9


@pytest.fixture(autouse=True)
def precise() -> Iterator[None]:
    with working_precision(200):
        yield


def log_error(kernel: ModuleType, count: int = 256) -> arb:
    """The greatest distance from k ln 2 + ln(1 + f), less one rounding of the result."""
    log_of, log_with = (on_intervals(kernel, name) for name in ("log_of", "log_with"))
    poly, worst = as_polynomial(kernel, "log_of", X), arb(0)
    rest = abs(arb.const_log2() - arb(0.6931471805599453) - arb(2.3190468138462996e-17))
    spare = arb(2) ** -50  # the ends of the interval are bit patterns near these roots
    low, high = arb(0.5).sqrt() - 1 - spare, arb(2).sqrt() - 1 + spare
    for ball in [*pieces(low, arb(0), count), *pieces(arb(0), high, count)]:
        log = log_of(Float(ball))
        off = largest_difference(poly, lambda x: (1 + x).log(), ball)
        for k in range(12 - 64, 1):
            if k == 0 and ball > 0:
                continue  # U is below 1
            value = log_with(Float(arb(k)), Float(log.value, log.error + off))
            least = max((-value.value).lower(), arb(0))
            worst = max(worst, (value.error - k * rest - UNIT * least).upper())
    return worst


def turn_errors(kernel: ModuleType, count: int = 64) -> tuple[arb, arb]:
    """The greatest relative errors of sine and cosine, of an argument that was rounded once."""
    sine, cosine = (on_intervals(kernel, name) for name in ("sine_of", "cosine_of"))
    sine_poly = as_polynomial(kernel, "sine_of", X, X * X)
    cosine_poly = as_polynomial(kernel, "cosine_of", X * X)
    quarter, worst = arb.pi() / 4, (arb(0), arb(0))
    for j in range(62):  # s is 0, which is exact, or a multiple of 2**-61
        for ball in pieces(arb(2) ** (-j - 1), arb(2) ** -j, count if j < 6 else 4):
            s = Float(ball, half_place(ball))
            z = s * s
            off = largest_difference(sine_poly, lambda x: (x * quarter).sin(), ball)
            one = (sine(s, z).error + off) / (ball.lower() * quarter).sin()
            off = largest_difference(cosine_poly, lambda x: (x * quarter).cos(), ball)
            two = (cosine(z).error + off) / (ball.upper() * quarter).cos()
            worst = max(worst[0], one.upper()), max(worst[1], two.upper())
    return worst


def test_the_logarithm_is_as_near_as_the_constant_says() -> None:
    worst = log_error(gaussian)
    assert arb_of(LOG_ERROR) * 7 / 8 < worst < arb_of(LOG_ERROR)


def test_sine_and_cosine_are_as_near_as_the_constant_says() -> None:
    sine, cosine = turn_errors(gaussian)
    # relative to the computed number, not to the true one
    assert arb_of(TURN_ERROR) * 7 / 8 < max(sine, cosine) * (1 + 8 * UNIT) < arb_of(TURN_ERROR)


def test_sine_and_cosine_of_zero_are_near() -> None:
    zero = Float(arb(0))
    assert on_intervals(gaussian, "sine_of")(zero, zero).value.abs_upper() < arb(2) ** -1070
    assert on_intervals(gaussian, "cosine_of")(zero).error <= UNIT


def test_a_changed_coefficient_has_no_proof(tmp_path: Path, extent: Extent) -> None:
    mutants = list(coefficient_mutants(2.0**-49))
    for i, change in enumerate(extent.cases(mutants, one_in=6)):
        mutant = changed(tmp_path / f"mutant{i}.py", [change])
        log, turns = log_error(mutant, 16), turn_errors(mutant, 16)
        assert log > arb_of(LOG_ERROR) or max(turns) > arb_of(TURN_ERROR), change


def test_the_first_guess_of_the_root_is_near(extent: Extent) -> None:
    """|1 - x y**2| <= h for the bit pattern y; then two steps, and a last one: the theorem."""
    worst, count = arb(0), extent.number(1 << 9, 1 << 12)
    for exponent in (0, 1):  # scaling by 4 only moves exponents, of y as well
        for i in range(count):
            ends = [2.0**exponent * (1 + (i + j) / count) for j in (0, 1)]
            guesses = [
                np.int64(SEED - (int(np.float64(x).view(np.int64)) >> 1)).view(np.float64)
                for x in ends
            ]
            x = arb(ends[0]).union(arb(ends[1]))
            y = arb(float(guesses[0])).union(arb(float(guesses[1])))
            worst = max(worst, abs(1 - x * y * y).upper())
    assert arb("0.069") < worst < arb("0.0725")
    # x y1**2 = 1 - h1 after the first step: a polynomial in h without its first powers
    h = fmpq_poly([0, 1])
    step = 1 + h * (fmpq(1, 2) + h * (fmpq(3, 8) + h * fmpq(5, 16)))
    left = 1 - (1 - h) * step**2
    assert all(left[i] == 0 for i in range(4))
    first = sum(abs(arb(left[i])) * worst**i for i in range(4, left.degree() + 1))
    # rounding: seven operations on numbers near 1, whose errors a few of them double
    first = (first + 64 * UNIT).upper()
    assert first < arb("2e-5")
    # the second: g/sqrt(x) = sqrt(1 - h1)(1 + h1/2), twice `half` sqrt(x) likewise
    second = max(abs((1 + s * first).sqrt() * (1 - s * first / 2) - 1).upper() for s in (-1, 1))
    assert second + 64 * UNIT < arb(2) ** -30


def test_the_rounding_of_the_rough_root_is_small() -> None:
    """The allowance of 64 units above, for the source itself."""
    rough = on_intervals(gaussian, "rough_root")
    for exponent in (0, 1):
        for ball in pieces(arb(2) ** exponent, arb(2) ** (exponent + 1), 256):
            y = arb(1 / ball.mid().sqrt().mid(), "0.04")
            g, half = rough(Float(-ball), Float(y))
            assert g.error < 64 * UNIT * ball.lower().sqrt()
            assert 2 * half.error < 64 * UNIT / ball.upper().sqrt()


def test_the_last_step_of_the_root_rounds_once() -> None:
    """r = fl(g + e half), e = fl(x - g**2): by how much r is off, for any such g and half."""
    d = arb(2) ** -30
    # x - g**2 = (sqrt(x) - g)(sqrt(x) + g); in units of sqrt(x), for the worst signs
    exact = d * abs(1 - (2 + d) * (1 + d) / 2)
    of_difference = UNIT * d * (2 + d) * (1 + d) / 2
    assert exact + of_difference < UNIT * arb(2) ** -5
    g, x, half = Fraction(7, 5), Fraction(2), Fraction(4, 11)
    assert -on_rationals(gaussian, "better_root")(-x, -g, half) == g + (x - g**2) * half


def test_constants_are_rounded_up() -> None:
    for deviation in (Fraction(1), Fraction(4, 3), Fraction(10**9, 7), Fraction(1 << 36)):
        have = constants_of(deviation)
        double = 2 * deviation**2
        off = abs(Fraction(have.square) / double - 1)
        unit = Fraction(1, 1 << 53)
        slack = 1 + Fraction(1, 1 << 9)  # the theorem's 2**-10 and 2**-11, and a few units
        assert off <= unit
        assert Fraction(have.first) >= slack * ((off + 2 * unit) / 2 + unit + TURN_ERROR)
        assert Fraction(have.second) >= slack * double * (LOG_ERROR + unit)
        assert Fraction(have.third) ** 2 >= slack**2 * double**2 * 2
