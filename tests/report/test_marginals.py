"""Pages of contingency tables: readable on a phone, by a screen reader, and for hostile names."""

from __future__ import annotations

import re
from importlib import resources
from typing import Any

import pytest

from lastbit.report.answer import answer_in_terminal, page
from lastbit.report.charts import PALETTE
from lastbit.report.marginals import cross_table, marginal_charts, marginal_tables
from tests.verify.test_check_marginals import EXAMPLES, record_of

EVIL = "<script>alert(1)</script>\u202e"


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_table_has_a_picture_with_its_numbers_in_words(name: str) -> None:
    record = record_of(name)
    charts = marginal_charts(marginal_tables(record))
    assert len(charts) == len(marginal_tables(record))
    for (_, _, rows), chart in zip(marginal_tables(record), charts, strict=True):
        assert 'role="img"' in chart and 'aria-label="' in chart
        written = re.findall(r"<text[^>]*>([^<]*)</text>", chart)
        for row in rows:
            assert f"{row['whole']:,}" in written


def test_a_heat_map_of_few_columns_fits_a_phone() -> None:
    for chart in marginal_charts(marginal_tables(record_of("rows, Laplace"))):
        width = int(re.search(r'width="(\d+)"', chart)[1])  # type: ignore[index]
        assert width <= 362  # 390 px less the margins of a page
    drawn = page(record_of("rows, Laplace"))
    assert ".charts svg.heat { min-width: 0; max-width: none" in drawn


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("dark", [False, True])
def test_letters_stand_out_from_the_strongest_cell(dark: bool) -> None:
    bar, track, ink = (PALETTE[name][dark] for name in ("bar", "track", "ink"))
    mixed = "#" + "".join(
        f"{round(0.55 * int(bar[i : i + 2], 16) + 0.45 * int(track[i : i + 2], 16)):02x}"
        for i in (1, 3, 5)
    )
    high, low = sorted((_luminance(mixed), _luminance(ink)), reverse=True)
    assert (high + 0.05) / (low + 0.05) >= 4.5


def test_sums_stand_at_the_ends_of_a_table() -> None:
    for table in marginal_tables(record_of("people, Gaussian")):
        head, *lines, last = cross_table(*table)
        numbers = [[int(n.replace(",", "")) for n in line[1:]] for line in (*lines, last)]
        assert numbers[-1] == [sum(column) for column in zip(*numbers[:-1], strict=True)]
        if len(table[0]) == 2:
            assert all(line[-1] == sum(line[:-1]) for line in numbers)
        assert len(head) == len(last)


def test_names_of_strangers_are_shown_and_nothing_more() -> None:
    record: Any = record_of("rows, Laplace")
    for row in record["rows"]:
        for key in row["keys"]:
            if key["value"] == "f":
                key["value"] = EVIL
    for key in record["asked"]["query"]["keys"][0]["values"]:
        if key["value"] == "f":
            key["value"] = EVIL
    drawn = page(record, title=EVIL)
    assert "<script>" not in drawn and "\u202e" not in drawn
    assert "\u202e" not in answer_in_terminal(record)


def test_pictures_of_tables_are_not_hidden_on_a_phone() -> None:
    """Other charts have a narrow twin that a phone shows instead; a heat map is its own.

    The rule that hides wide ones must spare the twins by itself: it outweighs the one that shows
    them.
    """
    sheet = resources.files("lastbit.report").joinpath("templates/style.css").read_text("utf-8")
    phone = sheet[sheet.index("@media (max-width: 40rem)") :].partition("@media print")[0]
    assert ".charts svg.chart:not(.heat, .narrow) { display: none; }" in phone
    assert ".charts svg.chart {" not in phone
