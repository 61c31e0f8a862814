"""Noise and whole: the same words on every screen, outwards rounded, with what they rest on."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, strategies as st

from lastbit.cli.output import Columns
from lastbit.cli.query import ROOM, _answer_page
from lastbit.errors import InvalidParameter
from lastbit.report.answer import (
    answer_in_notebook,
    answer_in_terminal,
    answer_parts,
    long_table,
    page,
    wide_table,
)
from lastbit.report.answer_charts import drawings
from lastbit.report.cells import shown_cell
from lastbit.report.plan import BIAS, TUNING, notes_of, read_record
from lastbit.report.whole import UNKNOWN, whole_sentences
from lastbit.tables import ColumnName
from lastbit.tables.query.query import Aggregate, Query
from tests.report.answer_records import (
    HOSTILE,
    REGIONS,
    by_region,
    cell,
    count,
    histogram,
    limited,
    mean,
    record,
    simple,
    whole_column,
    with_whole,
)
from tests.report.test_answer_tables import number
from tests.report.test_hostile import WRONG, all_places, put

CELL = {"value": 18442, "standard_error": 38.0, "low": 18366, "high": 18518}
ONCE = f"{UNKNOWN[0].upper()}{UNKNOWN[1:]}"


def in_command(found: dict[str, Any]) -> str:
    """What `lastbit query` prints of it, without the layout of the console."""
    lines: list[str] = []
    for part in _answer_page(found, [], charged=True):
        rows = [part.headings, *part.rows] if isinstance(part, Columns) else []
        lines += [" ".join(map(str, row)) for row in rows] or [str(part).replace("\n  ", " ")]
    return "\n".join(lines)


SCREENS: list[Callable[[dict[str, Any]], str]] = [
    answer_in_terminal,
    answer_in_notebook,
    page,
    in_command,
]


@pytest.mark.parametrize(
    ("ends", "about", "whole"),
    [
        ({}, True, ""),
        ({"whole_low": None, "whole_high": None}, True, ""),
        ({"whole_low": 18366, "whole_high": 20310}, True, "18,366 to about 20,310"),
        ({"whole_low": 18366, "whole_high": 20310}, False, "18,366 to 20,310"),
        ({"whole_low": 17000, "whole_high": 20310}, True, "about 17,000 to 20,310"),
        ({"whole_low": 17000, "whole_high": 18518}, True, "about 17,000 to 18,518"),
        ({"whole_low": 18366, "whole_high": None}, True, ""),
        ({"whole_low": 18366.04, "whole_high": 18367.125}, False, "18,366.04 to 18,367.13"),
    ],
)
def test_one_function_says_the_whole(ends, about, whole):
    assert shown_cell(CELL | ends, about=about).whole == whole


ends = st.floats(-1e12, 1e12, allow_nan=False) | st.integers(-(10**12), 10**12)


@given(low=ends, width=st.floats(0, 1e12), about=st.booleans(), noise=st.floats(0, 1e6))
def test_what_is_shown_holds_the_whole(low, width, about, noise):
    high = low + width
    inner = {"value": None, "standard_error": None, "low": low, "high": low + noise}
    words = shown_cell({**inner, "whole_low": low, "whole_high": high}, about=about).whole
    first, last = map(number, words.replace("about ", "").split(" to "))
    slack = max(abs(Fraction(low)), abs(Fraction(high))) / 2**51  # what formulas widen ends by
    assert first <= Fraction(low) + slack and Fraction(high) - slack <= last


@pytest.mark.parametrize("screen", SCREENS)
def test_every_screen_has_the_whole_and_what_it_rests_on(screen):
    text = screen(limited())
    assert "970 to about 1,133" in text and "± 30" in text
    for sentence in (
        "n: about 96 %, at least 94 % of rows counted, "
        "if hardly any patient has more than 1,024 rows.",
        "cost: each patient counts for at most 20 rows.",
        "The whole interval assumes that hardly any patient has more than 1,024 rows.",
        "The whole interval assumes that no group loses a larger share of its rows than the table.",
    ):
        assert text.count(sentence) == 1
    assert ONCE not in text and BIAS not in text and TUNING not in text


@pytest.mark.parametrize("screen", SCREENS)
def test_an_unknown_whole_is_said_once_and_not_in_every_cell(screen):
    text = screen(limited(profile=False))
    assert text.count(ONCE) == 1 and "or more" not in text and "> whole<" not in text
    assert "% of rows counted" not in text and "assumes" not in text


@pytest.mark.parametrize("screen", SCREENS)
def test_without_limits_there_is_noise_alone(screen):
    text = screen(simple())
    assert "noise" in text and "about 1," not in text and ONCE not in text


def test_tables_have_a_column_for_the_whole_where_it_is_known():
    known = {"n": whole_column("nobody_beyond"), "cost": whole_column(share=None)}
    found = with_whole(simple(), known)
    for row in found["rows"]:
        row["cells"][1]["whole_high"] = None
    table = wide_table(found, most=9)
    assert table.headings == ("region", "n", "noise", "whole", "cost", "noise")
    assert table.rows[0][3] == "970 to about 1,133"
    turned = long_table(found, most=9)
    assert turned.headings == ("region", "what", "value", "noise", "whole")
    assert turned.rows[1][-1] == "unknown" and turned.numbers == (2, 3, 4)
    assert (
        "cost: the whole interval is unknown: the profile does not bound"
        in whole_sentences(found)[-1]
    )


@pytest.mark.parametrize("parts", [(count(),), (count(), mean())])
def test_twenty_rows_fit_eighty_columns(parts):
    keys = [f"region {i}" for i in range(20)]
    query = Query(table="visits", aggregates=parts, keys=(by_region(*keys),))
    cells = [cell(18_442, 76), cell(200.25, 2.5)][: len(parts)]
    about = {name: whole_column("nobody_beyond") for name in ("n", "cost")}
    found = with_whole(record(query, [((key,), cells) for key in keys]), about)
    numbers = answer_in_terminal(found).split("\n\n")[0].splitlines()
    assert len(numbers) == 22 and max(map(len, numbers)) <= 80
    (table,) = (part for part in _answer_page(found, [], charged=True) if isinstance(part, Columns))
    columns = zip(table.headings, *table.rows, strict=True)
    assert sum(max(map(len, cells)) + 2 for cells in columns) <= ROOM + 2


def test_large_numbers_have_both_intervals():
    query = Query(table="visits", aggregates=(count(),))
    found = with_whole(record(query, [((), [dict(CELL)])]), {"n": whole_column("within_bounds")})
    ((_, shown),) = answer_parts(found)["figures"]
    assert (shown.noise, shown.whole) == ("± 76", "18,366 to about 20,370")
    assert "All values lie within" not in page(found)
    assert "The whole interval assumes that all values lie within their bounds." in page(found)


def histograms() -> dict[str, Any]:
    query = Query(table="visits", aggregates=(histogram(),), keys=(by_region(*REGIONS),))
    rows = [((r,), [cell(10), cell(20), cell(3)]) for r in REGIONS]
    return with_whole(record(query, rows), {"ages": whole_column("nobody_beyond")})


def months() -> dict[str, Any]:
    keys = [f"2026-0{month}" for month in range(1, 5)]
    query = Query(table="visits", aggregates=(count(),), keys=(by_region(*keys),))
    rows = [((key,), [cell(100 + i, 5)]) for i, key in enumerate(keys)]
    return with_whole(record(query, rows), {"n": whole_column("nobody_beyond")})


@pytest.mark.parametrize(("made", "marks"), [(limited, 6), (histograms, 9), (months, 1)])
@pytest.mark.parametrize("narrow", [False, True])
def test_charts_have_a_lighter_band_inside_the_frame(made, marks, narrow):
    charts = drawings(read_record(made()), narrow=narrow)
    text = "".join(str(line) for one in charts for line in one.lines)
    assert text.count('class="whole"') + text.count('class="whole band') == marks
    assert all("noise and whole intervals" in one.name for one in charts)
    bare = drawings(read_record({**simple(), "whole": None}), narrow=narrow)
    assert all("whole" not in one.name for one in bare)


def test_ranges_of_a_histogram_are_one_column():
    (assumed, share) = sorted(whole_sentences(histograms()), reverse=True)
    assert assumed.startswith("The whole interval assumes") and share.startswith("About 96 %")


def test_answers_without_whole_intervals_say_what_they_do_not_show():
    said = {"notes": ["Each patient counts for at most 20 rows: all of them count for less."]}
    assert {BIAS, TUNING} <= set(notes_of(simple() | said))
    assert not {BIAS, TUNING} & set(notes_of(limited() | said))
    people = Aggregate(name="n", function="count_units", nullable=False)
    query = Query(table="visits", aggregates=(people,))
    assert not {BIAS, TUNING} & set(notes_of(record(query, [((), [cell(9)])]) | said))


def test_hostile_names_are_fit_to_print():
    columns = {"n": whole_column(HOSTILE), "cost": whole_column("a\x1b[31m")}
    text = page(with_whole(simple(), columns))
    assert HOSTILE not in text and "\x1b" not in text


def test_whatever_stands_in_the_whole_is_shown_or_refused():
    found, refused = limited(), 0
    for path in all_places(found["whole"]):
        for wrong in WRONG:
            try:
                answer_in_terminal({**found, "whole": put(found["whole"], path, wrong)})
            except InvalidParameter as error:
                refused += "pass what save() wrote" in str(error)
    assert refused > 60


def test_groups_of_a_unit_are_not_rows():
    one = whole_column("nobody_beyond", limits=["max_groups"])
    found = with_whole(simple(), {"n": one})
    assert whole_sentences(found)[:2] == [
        "n: about 96 %, at least 94 % of the groups of each patient counted, "
        "if hardly any patient is in more than 1,024 groups.",
        "n: the whole interval assumes that hardly any patient is in more than 1,024 groups.",
    ]
    unknown = with_whole(simple(), {"n": whole_column(share=None, limits=["max_groups"])})
    for row in unknown["rows"]:
        row["cells"][0]["whole_high"] = None  # a profile of rows bounds no groups
    assert whole_sentences(unknown) == [f"n: {UNKNOWN}"]


def test_a_whole_that_is_the_noise_has_no_column():
    found = with_whole(simple(), {"cost": whole_column("within_bounds", share=None)}, wider=1)
    assert "whole" not in wide_table(found, most=9).headings
    assert whole_sentences(found) == [
        "cost: nothing was left out if all values lie within their bounds."
    ]


def test_a_share_below_all_is_never_said_to_be_all():
    found = with_whole(simple(), {"n": whole_column(share=0.9999)})
    assert whole_sentences(found)[0].startswith("n: about 99 %, at least 98 %")


def test_a_share_says_what_it_assumes_where_no_number_has_an_interval():
    about = whole_column("nobody_beyond", "within_bounds")
    nothing = {"low": None, "high": None, "whole_low": None, "whole_high": None}
    found = with_whole(simple(), {"n": about})
    for row in found["rows"]:
        row["cells"][0] |= nothing
    assert whole_sentences(found) == [
        "n: about 96 %, at least 94 % of rows counted, "
        "if hardly any patient has more than 1,024 rows."
    ]
    middles = with_whole(simple(), {"n": whole_column("nobody_beyond", "spread_evenly")})
    for row in middles["rows"]:
        row["cells"][0] |= nothing
    assert whole_sentences(middles)[1] == (
        "n: the share assumes that patients have the middle number of rows of their range on "
        "average."
    )
    wide = with_whole(simple(), {"n": about}, wider=1)  # as a mean of which nothing is known
    assert not any("nothing was left out" in sentence for sentence in whole_sentences(wide))


def test_rows_left_out_are_alike_in_what_the_number_is_of():
    """Of a deviation, a median and a quotient it is not their mean that is assumed."""
    parts: dict[Any, str] = {
        "mean": "a mean off by",
        "std": "a variance between half and twice",
        "variance": "a variance between half and twice",
        "quantile": "the share of rows left out up to any value",
    }
    for function, words in parts.items():
        part = Aggregate(
            name="n",
            function=function,
            expression=ColumnName("cost"),
            bounds=(Fraction(0), Fraction(9)),
            level=Fraction(1, 2) if function == "quantile" else None,
            nullable=False,
        )
        found = record(Query(table="visits", aggregates=(part,)), [((), [cell(9.0)])])
        said = whole_sentences(with_whole(found, {"n": whole_column("rows_alike")}))
        (assumed,) = (one for one in said if one.startswith("The whole interval assumes"))
        assert words in assumed
        assert function == "mean" or "mean off" not in assumed
