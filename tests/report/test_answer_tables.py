"""Numbers as text: the digits that mean something, and ends that are never too narrow."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from lastbit.report.answer import long_table, table_of, wide_table
from lastbit.report.cells import shown_cell
from lastbit.tables.query.query import Query
from tests.report.answer_records import (
    REGIONS,
    STEERING,
    by_region,
    cell,
    count,
    histogram,
    mean,
    record,
    simple,
)

numbers = st.floats(-1e12, 1e12, allow_nan=False) | st.integers(-(10**12), 10**12)


def number(text: str) -> Fraction:
    return Fraction(text.replace(",", ""))


@given(value=numbers, below=st.floats(0, 1e12), above=st.floats(0, 1e12))
def test_what_is_shown_holds_what_was_released(value, below, above):
    low, high = value - below, value + above
    shown = shown_cell({"value": value, "standard_error": None, "low": low, "high": high})
    if shown.noise.startswith("± "):
        half = number(shown.noise[2:])
        assert value - half <= Fraction(low) and Fraction(high) <= Fraction(value) + half
    else:
        first, last = map(number, shown.noise.split(" to "))
        assert first <= Fraction(low) and Fraction(high) <= last
        assert first <= number(shown.value) <= last or below == 0 or above == 0


@given(low=numbers, width=st.floats(0, 1e12))
def test_whole_ends_that_are_shown_hold_what_was_released(low, width):
    """To the last bit: what a formula widened by one is shown as wider, and 100 as 100."""
    ends = {"whole_low": low, "whole_high": low + width}
    shown = shown_cell({"value": low, "standard_error": None, "low": None, "high": None, **ends})
    first, last = map(number, shown.whole.split(" to "))
    assert first <= Fraction(low) and Fraction(low + width) <= last
    share = {"whole_low": 97.5, "whole_high": 100.0}
    assert shown_cell({**cell(99, 1.0), **share}).whole.endswith(" to 100.0")
    beyond = {"whole_low": 97.5, "whole_high": 100.00000000000001}
    assert shown_cell({**cell(99, 1.0), **beyond}).whole.endswith(" to 100.1")


@pytest.mark.parametrize(
    ("given_cell", "value", "noise"),
    [
        (cell(1234, 56), "1,234", "± 56"),
        (cell(-3, 56), "-3", "± 56"),
        (cell(0.25, 0.5), "0.25", "± 0.50"),
        (cell(93.0, 2.0), "93", "± 2"),
        (cell(12.5, 1.25, high=20.0), "12.5", "11.2 to 20.0"),
        (cell(None), "unknown", "unknown"),
        (cell(None, low=0.0, high=7.5), "unknown", "0.0 to 7.5"),
        (cell(-0.0, 0.5), "0.00", "± 0.50"),
        (cell(10**20, 10**18), "1.00000e+20", "± 1.00e+18"),
    ],
)
def test_numbers_have_the_digits_that_mean_something(given_cell, value, noise):
    shown = shown_cell(given_cell)
    assert (shown.value, shown.noise) == (value, noise)


def test_a_wide_table_has_two_columns_for_every_number():
    table = wide_table(simple(), most=2)
    assert table.headings == ("region", "n", "noise", "cost", "noise")
    assert table.rows[0] == ("North", "1,000", "± 30", "200.2", "± 2.5")
    assert table.numbers == (1, 2, 3, 4) and table.left_out == 1


def test_a_table_that_is_too_wide_is_turned():
    assert table_of(simple(), width=76, most=9) == wide_table(simple(), most=9)
    assert table_of(simple(), width=20, most=9) == long_table(simple(), most=9)
    assert long_table(simple(), most=9).rows[1] == ("North", "cost", "200.2", "± 2.5")


def test_histograms_have_bars_and_survive_all_below_zero():
    query = Query(table="visits", aggregates=(histogram(),))
    table = table_of(record(query, [((), [cell(10), cell(20), cell(-3)])]), width=76, most=9)
    assert [len(row[-1]) for row in table.rows] == [12, 24, 0]
    below = table_of(record(query, [((), [cell(-1), cell(-2), cell(-3)])]), width=76, most=9)
    assert {row[-1] for row in below.rows} <= {""} or len(below.rows[0]) == 3


def test_keys_cannot_steer_a_terminal():
    query = Query(table="visits", aggregates=(count(),), keys=(by_region(),))
    found = record(query, [((STEERING,), [cell(1)])], epsilon=1, delta="1e-9")
    assert wide_table(found, most=9).rows[0][0].isprintable()


def test_mixed_questions_have_no_bars():
    query = Query(table="visits", aggregates=(mean(), histogram()), keys=(by_region(*REGIONS),))
    rows = [((r,), [cell(1.5), cell(1), cell(2), cell(3)]) for r in REGIONS]
    table = table_of(record(query, rows), width=76, most=9)
    assert table.headings == ("region", "what", "value", "noise") and len(table.rows) == 12
