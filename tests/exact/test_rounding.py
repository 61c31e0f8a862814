"""upper and lower against their definition, by exact comparison with the neighbouring floats."""

import math
import sys
from fractions import Fraction

import pytest
from flint import arb
from hypothesis import example, given, strategies as st

from lastbit.errors import InvalidParameter
from lastbit.exact.ball import Ball, working_precision
from lastbit.exact.rounding import lower, rounded_down, rounded_up, upper
from tests.exact.enclosing import dyadic, ends_of

LARGEST = sys.float_info.max
SMALLEST = 5e-324
FINITE = st.floats(allow_nan=False, allow_infinity=False)


def is_upper(rounded: float, exact: Fraction) -> bool:
    """The least float not below: it is not below, and the next one down is."""
    if rounded == 0 and math.copysign(1, rounded) < 0:
        return False
    if rounded == math.inf:
        return exact > Fraction(LARGEST)
    below = math.nextafter(rounded, -math.inf)
    return Fraction(rounded) >= exact and (below == -math.inf or Fraction(below) < exact)


def is_lower(rounded: float, exact: Fraction) -> bool:
    if rounded == 0 and math.copysign(1, rounded) < 0:
        return False
    return is_upper(-rounded + 0.0, -exact)


def rounds(number: Fraction) -> None:
    assert is_upper(upper(number), number)
    assert is_lower(lower(number), number)
    assert lower(number) == -upper(-number)


@given(st.fractions())
def test_any_fraction(number):
    rounds(number)


@given(st.fractions(), st.integers(-1200, 1200))
@example(Fraction(1), -1075)
@example(Fraction(3), -1075)
@example(Fraction(-1), -1074)
@example(Fraction(-1, 3), -1200)
@example(Fraction(1), 1024)
@example(Fraction(2**54 - 1), 970)
@example(Fraction(-(2**53) + 1), 971)
def test_any_exponent(number, exponent):
    """Subnormals, underflow and overflow."""
    rounds(number * Fraction(2) ** exponent)


@given(FINITE, st.integers(-3, 3), st.integers(1, 1300))
@example(LARGEST, 1, 1)
@example(LARGEST, 1, 1300)
@example(-LARGEST, -1, 1300)
@example(SMALLEST, -1, 1300)
@example(0.0, -1, 1300)
@example(1.0, 1, 53)
@example(1.0, 1, 54)
@example(-1.0, -1, 53)
def test_close_to_a_float(number, quarters, bits):
    """A float, and numbers a hair or a half spacing away from it."""
    rounds(Fraction(number))
    rounds(Fraction(number) + quarters * Fraction(1, 1 << bits))
    rounds(Fraction(number) * (1 + Fraction(quarters, 1 << bits)))
    rounds(Fraction(number) + quarters * Fraction(math.ulp(number)) / 4)


@given(FINITE)
def test_floats_are_themselves(number):
    assert upper(number) == lower(number) == number
    for rounded in (upper(number), lower(number)):
        assert rounded != 0 or math.copysign(1, rounded) > 0


@pytest.mark.parametrize(
    ("number", "low", "high"),
    [
        (0, 0.0, 0.0),
        (-0.0, 0.0, 0.0),
        ("1/10", 0.09999999999999999, 0.1),
        (10**400, LARGEST, math.inf),
        (-(10**400), -math.inf, -LARGEST),
        (Fraction(1, 10**400), 0.0, SMALLEST),
        (Fraction(-1, 10**400), -SMALLEST, 0.0),
        (Fraction(LARGEST), LARGEST, LARGEST),
        (2**1024, LARGEST, math.inf),
    ],
)
def test_known_cases(number, low, high):
    assert (lower(number), upper(number)) == (low, high)
    assert math.copysign(1, lower(number)) == math.copysign(1, low)
    assert math.copysign(1, upper(number)) == math.copysign(1, high)


@pytest.mark.parametrize("number", [math.nan, math.inf, "abc", None, True])
@pytest.mark.parametrize("door", [upper, lower])
def test_refuses_what_is_no_number(door, number):
    with pytest.raises(InvalidParameter):
        door(number)


# -- balls --


def ball(middle: int, exponent: int, radius: int, radius_exponent: int) -> arb:
    """middle * 2**exponent give or take (about) radius * 2**radius_exponent, at full length."""
    with working_precision(max(2, middle.bit_length())):
        return arb(arb((middle, exponent)), arb((radius, radius_exponent)))


def rounds_the_ends(enclosure: arb) -> None:
    low, high = ends_of(enclosure)
    assert is_upper(upper(enclosure), high), "upper"
    assert is_lower(lower(enclosure), low), "lower"
    assert upper(Ball(enclosure)) == upper(enclosure)
    assert lower(Ball(enclosure)) == lower(enclosure)


@given(
    st.integers(-(2**200), 2**200),
    st.integers(-1300, 1100),
    st.integers(0, 2**30 - 1),
    st.integers(-1300, 1100),
)
@example(1, 0, 0, 0)
@example(-1, -1074, 1, -1074)
@example(1, -1075, 1, -1075)
@example(0, 0, 1, 0)
@example(0, 0, 1, -1200)
@example(-(2**53 - 1), 971, 1, 800)
def test_balls_by_their_ends(middle, exponent, radius, radius_exponent):
    rounds_the_ends(ball(middle, exponent, radius, radius_exponent))


@given(
    st.sampled_from([-1, 0, 1, 3, -7, 2**100 + 1, -(2**100) - 1]),
    st.integers(-12_000, 12_000),
    st.integers(0, 3),
    st.integers(-12_000, 12_000),
)
@example(1, 0, 1, -6000)
@example(-1, 0, 1, -6000)
@example(1, -6000, 1, 0)
@example(-1, -6000, 1, 0)
@example(1, -6000, 0, 0)
@example(-1, -6000, 0, 0)
@example(1, -6000, 1, -11_500)
@example(1, 6000, 1, -6000)
@example(-1, 6000, 1, 0)
@example(1, 0, 1, 6000)
def test_balls_of_far_exponents(middle, exponent, radius, radius_exponent):
    """Midpoint and radius of any two sizes: ordinary, minute, vast."""
    rounds_the_ends(ball(middle, exponent, radius, radius_exponent))


@given(
    st.integers(1, 12_000),
    st.sampled_from([-1, 1]),
    st.integers(0, 2**30 - 1),
    st.integers(-12_000, 12_000),
)
@example(8000, 1, 1, -10)
@example(8000, -1, 1, -10)
@example(5001, 1, 1, 0)
def test_balls_with_long_midpoints(bits, sign, radius, radius_exponent):
    """A midpoint near 1 of thousands of bits, whose last bit lies far below the radius."""
    rounds_the_ends(ball(sign * ((1 << bits) + 1), -bits, radius, radius_exponent))


@pytest.mark.parametrize("near", [-1, 1, 0, -(2**100), 3 * 2**1022, -(3 * 2**1022), 2**1024])
def test_balls_whose_end_is_small_though_they_are_vast(near):
    """From about -2**6001 to -1: the upper end is what counts, not the size of the ball."""
    radius = arb((1, 6000))
    size = int(dyadic(arb(0, radius).rad()))  # a trace more than 2**6000
    with working_precision(7000):
        vast = arb(arb(near - size), radius)
    assert ends_of(vast)[1] == near
    rounds_the_ends(vast)
    rounds_the_ends(vast.neg(exact=True))


@pytest.mark.parametrize(
    ("exponent", "low", "high"),
    [(-(10**30), 0.0, SMALLEST), (10**30, LARGEST, math.inf)],
)
def test_exponentials_too_long_to_be_written_out(exponent, low, high):
    with working_precision(64):
        enclosure = arb(exponent).exp()
    opposite = enclosure.neg(exact=True)
    assert (lower(enclosure), upper(enclosure)) == (low, high)
    assert (lower(opposite), upper(opposite)) == (-high, 0.0 - low)
    for rounded in (lower(enclosure), upper(enclosure), lower(opposite), upper(opposite)):
        assert rounded != 0 or math.copysign(1, rounded) > 0


def test_an_ordinary_number_and_an_absurdly_small_one():
    with working_precision(64):
        crumb = arb(-(10**30)).exp()
        around_one = arb(1, crumb)
        around_crumb = arb(crumb, arb(1) / 4)
        around_zero = arb(0, crumb)
    assert lower(around_one) == math.nextafter(1, 0)
    assert upper(around_one) == math.nextafter(1, 2)
    assert (lower(around_zero), upper(around_zero)) == (-SMALLEST, SMALLEST)
    quarter = dyadic(around_crumb.rad())  # which is rounded up to thirty bits
    assert is_upper(upper(around_crumb), quarter + Fraction(1, 2**2000))
    assert is_lower(lower(around_crumb), -quarter + Fraction(1, 2**2000))


def test_an_ordinary_number_and_an_absurdly_large_one():
    with working_precision(64):
        vast = arb(10**30).exp()
        around_one = arb(1, vast)
    assert (lower(around_one), upper(around_one)) == (-math.inf, math.inf)


@pytest.mark.parametrize("text", ["nan", "inf", "-inf"])
def test_balls_that_are_not_finite_are_refused(text):
    for door in (upper, lower):
        with pytest.raises(InvalidParameter, match=r"ball .*; check"):
            door(arb(text))
        with pytest.raises(InvalidParameter):
            door(Ball(arb(0)) / 0)


def test_the_precision_of_the_surroundings_does_not_matter():
    third = Ball.of("1/3")
    for precision in (2, 53, 1000):
        with working_precision(precision):
            assert lower(third) == lower("1/3")
            assert upper(third) == upper("1/3")


# -- the oracle rejects what it must --


@pytest.mark.parametrize(
    ("wrong", "exact"),
    [
        (0.1, Fraction(1, 10) + Fraction(1, 10**17)),
        (math.nextafter(0.1, 1), Fraction(1, 10)),
        (-0.0, Fraction(0)),
        (math.inf, Fraction(LARGEST)),
        (LARGEST, Fraction(LARGEST) + 1),
        (0.0, Fraction(1, 10**400)),
    ],
)
def test_the_oracle_rejects(wrong, exact):
    assert not is_upper(wrong, exact)


@given(st.fractions())
def test_decimals_are_rounded_the_way_they_say(x: Fraction):
    low, high = Fraction(rounded_down(x, 7)), Fraction(rounded_up(x, 7))
    assert low <= x <= high
    assert high - low <= 2 * abs(x) / 10**6
