"""The arithmetic lastbit stands on, each against another: Fraction and flint, Decimal and Arb."""

import math
import operator
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction

import pytest
from flint import arb, fmpq
from hypothesis import example, given, strategies as st

from lastbit.exact.ball import arb_of, working_precision
from tests.exact.enclosing import ends_of

DIGITS = 60
DECIMAL = Context(prec=DIGITS, rounding=ROUND_HALF_EVEN, Emin=-(10**6), Emax=10**6)
BIG = st.builds(
    Fraction,
    st.integers(-(2**3000), 2**3000) | st.integers(-(10**6), 10**6),
    st.integers(1, 2**3000) | st.integers(1, 10**6),
)


def flint_of(number: Fraction) -> fmpq:
    return fmpq(number.numerator, number.denominator)


def same(ours: Fraction, theirs: fmpq) -> bool:
    """Numerator and denominator, so that both are in lowest terms too."""
    return (ours.numerator, ours.denominator) == (int(theirs.p), int(theirs.q))


@given(BIG, BIG)
@example(Fraction(1, 3), Fraction(1, 3))
@example(Fraction(-1, 2**3000), Fraction(1, 2**3000))
@example(Fraction(2**64, 3), Fraction(3, 2**64))
def test_fractions_agree_with_flint(left, right):
    their_left, their_right = flint_of(left), flint_of(right)
    assert same(left, their_left)
    assert same(left + right, their_left + their_right)
    assert same(left - right, their_left - their_right)
    assert same(left * right, their_left * their_right)
    if right:
        assert same(left / right, their_left / their_right)
    for compare in (operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge):
        assert compare(left, right) == compare(their_left, their_right)
    assert math.floor(left) == int(their_left.floor())
    assert math.ceil(left) == int(their_left.ceil())
    assert same(abs(left), abs(their_left))
    assert same(-left, -their_left)


def agrees(value: Decimal, enclosure: arb) -> bool:
    """Whether a Decimal is the enclosed number rounded to 60 digits: half a unit off at most."""
    low, high = ends_of(enclosure)
    unit = Fraction(10) ** (value.adjusted() - DIGITS + 1)
    return low - unit / 2 <= Fraction(value) <= high + unit / 2


MODERATE = st.decimals(-2000, 2000, allow_nan=False, places=30) | st.fractions(
    -10, 10, max_denominator=10**9
).map(lambda number: DECIMAL.divide(Decimal(number.numerator), Decimal(number.denominator)))
ABOVE_ZERO = st.builds(
    lambda digits, exponent: Decimal(digits).scaleb(exponent, DECIMAL),
    st.integers(1, 10**40),
    st.integers(-400, 400),
)


@given(MODERATE)
@example(Decimal("1e-70"))
@example(Decimal("-1e-70"))
@example(Decimal(1))
def test_exponentials_agree(number):
    with working_precision(400):
        assert agrees(DECIMAL.exp(number), arb_of(Fraction(number)).exp())


@given(ABOVE_ZERO)
@example(Decimal(2))
@example(1 + Decimal("1e-28"))
@example(1 - Decimal("1e-28"))
def test_logarithms_agree(number):
    with working_precision(400):
        assert agrees(DECIMAL.ln(number), arb_of(Fraction(number)).log())


@given(ABOVE_ZERO)
@example(Decimal(2))
@example(Decimal("1e-399"))
def test_square_roots_agree(number):
    with working_precision(400):
        assert agrees(DECIMAL.sqrt(number), arb_of(Fraction(number)).sqrt())


@pytest.mark.parametrize("units", [1, -1])
def test_one_unit_off_is_seen(units):
    value = DECIMAL.exp(Decimal("0.7"))
    wrong = DECIMAL.add(value, Decimal(units).scaleb(value.adjusted() - DIGITS + 1))
    with working_precision(400):
        truth = arb_of(Fraction(7, 10)).exp()
    assert agrees(value, truth)
    assert not agrees(wrong, truth)


@given(BIG)
def test_int_division_is_correctly_rounded(number):
    """`upper` and `lower` rest on n / d of two ints being the nearest float."""
    if abs(number) > 2**1000 or (number and abs(number) < Fraction(1, 2**1000)):
        return
    nearest = number.numerator / number.denominator
    error = abs(Fraction(nearest) - number)
    for towards in (-math.inf, math.inf):
        assert error <= abs(Fraction(math.nextafter(nearest, towards)) - number)
