"""What people write becomes exactly the rational it spells, or is refused with a way out."""

import ast
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from flint import fmpq, fmpz
from hypothesis import example, given, strategies as st

from lastbit.errors import InvalidParameter, LastbitError, WrongType
from lastbit.exact.rational import (
    Number,
    floor_log2,
    nonnegative,
    positive,
    probability,
    rational,
    root_above,
    root_below,
    root_bounds,
)
from lastbit.exact.written import LARGEST_EXPONENT, shown, whole

# The double 0.1, written out by hand: 0x1.999999999999ap-4.
TENTH = Fraction(0x1999999999999A, 1 << 56)


def label(value: object) -> str:
    """The same in every process: no address in memory."""
    text = repr(value)
    return type(value).__name__ if " at 0x" in text else text[:30]


ACCEPTED: list[tuple[object, Fraction]] = [
    (0, Fraction(0)),
    (-7, Fraction(-7)),
    (10**400, Fraction(10**400)),
    (Fraction(-22, 7), Fraction(-22, 7)),
    (0.1, TENTH),
    (-0.0, Fraction(0)),
    (5e-324, Fraction(1, 1 << 1074)),
    (Decimal("0.1"), Fraction(1, 10)),
    (Decimal("-0"), Fraction(0)),
    (Decimal("1e-20"), Fraction(1, 10**20)),
    (Decimal("12E+3"), Fraction(12_000)),
    ("0.1", Fraction(1, 10)),
    ("1/3", Fraction(1, 3)),
    (" 1/3 ", Fraction(1, 3)),
    ("1 / 3", Fraction(1, 3)),
    ("\n1/3\t", Fraction(1, 3)),
    ("-1/3", Fraction(-1, 3)),
    ("+2/4", Fraction(1, 2)),
    ("0/5", Fraction(0)),
    ("1e-9", Fraction(1, 10**9)),
    ("1E+3", Fraction(1000)),
    (".5", Fraction(1, 2)),
    ("5.", Fraction(5)),
    ("-.5e1", Fraction(-5)),
    ("007", Fraction(7)),
    ("+12", Fraction(12)),
    (np.float64(0.1), TENTH),
    (np.float32(0.1), Fraction(13421773, 1 << 27)),
    (np.float16(0.1), Fraction(819, 1 << 13)),
    (np.longdouble(0.5), Fraction(1, 2)),
    (np.longdouble(1) + np.finfo(np.longdouble).eps, 1 + rational(np.finfo(np.longdouble).eps)),
    (np.int64(-3), Fraction(-3)),
    (np.uint64(2**64 - 1), Fraction(2**64 - 1)),
    (np.int8(5), Fraction(5)),
    (np.str_("1/3"), Fraction(1, 3)),
    (fmpz(2) ** 100, Fraction(2**100)),
    (fmpq(-2, 6), Fraction(-1, 3)),
]


@pytest.mark.parametrize(("written", "meant"), ACCEPTED, ids=label)
def test_is_exactly_what_it_spells(written, meant):
    number = rational(written)
    assert number == meant
    assert type(number) is Fraction
    assert type(number.numerator) is int
    assert type(number.denominator) is int


MEANINGLESS: list[object] = [
    math.nan,
    math.inf,
    -math.inf,
    np.float64("nan"),
    np.float32("inf"),
    np.float16("-inf"),
    np.longdouble("nan"),
    np.longdouble("inf"),
    Decimal("nan"),
    Decimal("sNaN"),
    Decimal("inf"),
    Decimal("-inf"),
    Decimal("1e10001"),
    Decimal("1e-10001"),
    Decimal("1e999999"),
    "abc",
    "",
    " ",
    ".",
    "e5",
    "1/0",
    "0/0",
    "1/-3",
    "1/",
    "1/2/3",
    "0.1/3",
    "- 1",
    "1 0",
    "0x10",
    "1_0",
    "1__0",
    "nan",
    "inf",
    "-Infinity",
    "١",
    "１",
    "\N{VULGAR FRACTION ONE HALF}",
    "\N{NO-BREAK SPACE}1",
    "1\0",
    "1,5",
    "1e",
    "1e1.5",
    "1e10001",
    "1e-10001",
    "1e999999999",
    "-1e-999999999",
    "1e99999999999999999999",
    "0." + "0" * 10_000 + "1",
    "1" * 5_000,
    "1" * 20_000,
    "1/" + "3" * 5_000,
]
NO_NUMBERS: list[object] = [
    True,
    False,
    np.bool_(True),
    None,
    [],
    [1],
    (1, 2),
    {},
    1j,
    np.complex128(1),
    b"1",
    bytearray(b"1"),
    object(),
    np.array(1.5),
    np.array([1.5]),
    np.datetime64("2020-01-01"),
    np.timedelta64(3, "s"),
    np.timedelta64("NaT", "s"),
    int,
    float,
    Fraction,
    math.sqrt,
]


@pytest.mark.parametrize("written", MEANINGLESS, ids=label)
def test_no_finite_number_is_refused(written):
    with pytest.raises(InvalidParameter) as refusal:
        rational(written, "noise_scale")
    names_parameter_and_remedy(refusal.value, "noise_scale")
    assert len(str(refusal.value)) < 250  # a long one is cut


@pytest.mark.parametrize("written", NO_NUMBERS, ids=label)
def test_what_is_no_number_is_refused(written):
    with pytest.raises(WrongType) as refusal:
        rational(written, "noise_scale")
    names_parameter_and_remedy(refusal.value, "noise_scale")


def names_parameter_and_remedy(error: InvalidParameter, parameter: str) -> None:
    assert isinstance(error, LastbitError)
    assert error.parameter == parameter
    assert str(error).startswith(f"{parameter} ")
    assert error.remedy.startswith("pass ")
    assert str(error).endswith(error.remedy)


def test_the_largest_exponent_is_the_last_accepted():
    assert rational(f"1e{LARGEST_EXPONENT}") == 10**LARGEST_EXPONENT
    assert rational(f"1e-{LARGEST_EXPONENT}") == Fraction(1, 10**LARGEST_EXPONENT)
    assert rational(Decimal(f"1e{LARGEST_EXPONENT}")) == 10**LARGEST_EXPONENT


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_comes_back(number):
    assert rational(number) == Fraction(*number.as_integer_ratio())
    assert float(rational(number)) == number


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_narrow_floats_are_what_they_store(number):
    assert rational(np.float32(number)) == Fraction(number)


@given(st.decimals(allow_nan=False, allow_infinity=False))
@example(Decimal("0E-10000"))
@example(Decimal("-0.000"))
@example(Decimal("1234.5678E-20"))
def test_a_decimal_and_its_text_are_one_number(number):
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    coefficient = int("".join(map(str, digits))) * (-1 if sign else 1)
    meant = coefficient * Fraction(10) ** exponent
    assert rational(number) == meant
    assert rational(str(number)) == meant


@given(st.fractions())
def test_a_fraction_and_its_text_are_one_number(number):
    assert rational(number) == number
    assert rational(str(number)) == number
    assert rational(f"  {number.numerator} / {number.denominator} ") == number
    assert rational(fmpq(number.numerator, number.denominator)) == number


@pytest.mark.evidence
@given(st.text())
def test_any_text_is_a_number_or_refused(text):
    """What is accepted is what `Fraction` reads too, of ASCII, without an underscore."""
    try:
        number = rational(text)
    except InvalidParameter:
        return
    assert text.isascii()
    assert "_" not in text
    assert number == Fraction(text.replace(" ", ""))


# -- shown --


@given(st.fractions() | st.floats(allow_nan=False, allow_infinity=False).map(Fraction))
@example(Fraction(0))
@example(Fraction(-1, 10))
@example(Fraction(0.1))
@example(Fraction(10) ** 22)
@example(Fraction(10) ** 400)
@example(Fraction(1, 10**400))
@example(Fraction(1, 10**15))
@example(Fraction(1, 10**16) + 1)
def test_what_is_shown_gives_the_number_back(number):
    assert rational(ast.literal_eval(shown(number))) == number


# -- positive, whole --


@pytest.mark.parametrize("number", [0, 0.0, -0.0, "0", -1, "-1/3", -5e-324, Fraction(-1, 10**9)])
def test_positive_refuses_zero_and_below(number):
    with pytest.raises(InvalidParameter) as refusal:
        positive(number, "scale")
    names_parameter_and_remedy(refusal.value, "scale")


@pytest.mark.parametrize("number", ["1/1000", 5e-324, 1, Decimal("1e-9999")])
def test_positive_passes_everything_above_zero(number):
    assert positive(number) == rational(number) > 0


@pytest.mark.parametrize("number", [0, 3, 2**70, np.int64(3), np.uint8(3), fmpz(3)])
def test_whole_takes_integers(number):
    assert whole(number) == int(number)
    assert type(whole(number)) is int


@pytest.mark.parametrize(
    "number",
    [True, np.bool_(True), 3.0, np.float64(3), "3", None, Fraction(3), Decimal(3), [3], 3j],
)
def test_whole_takes_nothing_else(number):
    with pytest.raises(WrongType) as refusal:
        whole(number, "size")
    names_parameter_and_remedy(refusal.value, "size")


def test_whole_refuses_what_is_below_the_least():
    assert whole(2, least=2) == 2
    with pytest.raises(InvalidParameter) as refusal:
        whole(1, "n", least=2)
    names_parameter_and_remedy(refusal.value, "n")


# ---------------------------------------------------------------- ranges, exponents, roots


@pytest.mark.parametrize("value", ["-1e-30", "1.0000001", -1, 2, 10**400])
def test_what_is_no_probability_is_refused_in_the_same_words(value: Number) -> None:
    for ends in (True, False):
        with pytest.raises(InvalidParameter, match="delta is not between 0 and 1; pass, say, 1e-6"):
            probability(value, "delta", zero=ends, one=ends, remedy="pass, say, 1e-6")


@pytest.mark.parametrize(("zero", "one"), [(True, True), (True, False), (False, True)])
def test_the_ends_are_probabilities_where_they_mean_something(zero: bool, one: bool) -> None:
    for end, allowed in ((0, zero), (1, one)):
        if allowed:
            assert probability(end, zero=zero, one=one) == end
        else:
            with pytest.raises(InvalidParameter, match="is not between 0 and 1"):
                probability(end, zero=zero, one=one)
    assert probability("1e-300", zero=zero, one=one) == Fraction(1, 10**300)


def test_what_is_below_0_is_refused() -> None:
    assert nonnegative(0) == 0
    with pytest.raises(InvalidParameter, match="bound is negative; pass a number from 0 up"):
        nonnegative(Fraction(-1, 10**30), "bound")


above_zero = st.fractions(min_value=0).filter(bool) | st.builds(
    lambda n, e: n * Fraction(2) ** e, st.integers(1, 2**70), st.integers(-3000, 3000)
)


@given(above_zero)
def test_the_floor_of_a_logarithm_is_exact(number: Fraction) -> None:
    for signed in (number, -number):
        exponent = floor_log2(signed)
        assert Fraction(2) ** exponent <= number < Fraction(2) ** (exponent + 1)


@given(above_zero, st.integers(1, 200))
def test_roots_are_enclosed_as_tightly_as_promised(number: Fraction, bits: int) -> None:
    low, high = root_bounds(number, bits)
    assert low * low <= number <= high * high
    assert high - low < low * Fraction(1, 2**bits) or low == high
    assert (root_below(number, bits), root_above(number, bits)) == (low, high)
    assert root_bounds(number * number, bits) == (number, number)  # rational roots are exact


def test_the_root_of_nothing_is_nothing() -> None:
    assert set(root_bounds(Fraction(0))) == {Fraction(0)}
