"""Digits that are certain."""

from fractions import Fraction

from hypothesis import given, strategies as st

from lastbit.exact import between


def test_all_digits_are_shown_when_they_are_certain():
    assert between(Fraction(1, 8), Fraction(1, 8), 10) == "0.125"
    assert between(Fraction(2, 3), Fraction(2, 3), 4) == "0.6667"


def test_digits_that_are_not_certain_are_left_out():
    assert between(Fraction("0.1234"), Fraction("0.1236"), 10) == "0.12"
    assert between(Fraction(1), Fraction(9), 10) == "1 to 9"


@given(
    st.fractions(min_value=Fraction(1, 10**6), max_value=10**6),
    st.fractions(min_value=0, max_value=Fraction(1, 10**9)),
    st.integers(min_value=1, max_value=15),
)
def test_what_is_shown_is_within_one_unit_of_its_last_digit(low, width, digits):
    shown = between(low, low + width, digits)
    if " to " not in shown:
        count = len(shown.split("E")[0].replace(".", "").lstrip("0")) or 1
        unit = Fraction(shown) * 10 * Fraction(1, 10**count)
        assert abs(Fraction(shown) - low) <= unit
