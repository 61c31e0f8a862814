"""The report: everything is there, nothing from outside, and no key can break out of its place."""

from __future__ import annotations

import base64
import re
from datetime import date
from fractions import Fraction
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings, strategies as st

from lastbit.errors import InvalidParameter
from lastbit.ledger import Account
from lastbit.report import account_json
from lastbit.report.answer import MOST_ROWS, answer_in_notebook, page
from lastbit.report.plan import natural_unit
from lastbit.tables import Budget, Cost, Measure
from lastbit.tables.query.expression import ColumnName, Constant
from lastbit.tables.query.query import Aggregate, OrderBy, Query
from lastbit.tables.query.rules import call
from lastbit.tables.query.scan import GroupKey
from tests.report.answer_records import (
    HOSTILE,
    REGIONS,
    STEERING,
    account,
    adults,
    by_region,
    card,
    cell,
    count,
    histogram,
    mean,
    record,
    simple,
)

VOID = {"meta", "br", "hr", "img", "link", "input"}


class Reader(HTMLParser):
    """Sees to it that every element is closed, and notes names, attributes and words."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(str(text))
    reader.close()
    assert reader.open == []
    return reader


def words_of(text: str) -> str:
    return " ".join(" ".join(read(text).words).split())


def test_a_page_says_what_was_asked_promised_paid_and_made():
    words = words_of(page(simple(), account=account()))
    for expected in (
        "n, cost by region",
        "ε = 1",
        "hides whether any one patient is in the table",
        "at most 2.72 times as likely",
        "73.2 % sure",
        "the mean of cost, kept within 0 and 500",
        "for each region (3 declared keys)",
        "SELECT region, COUNT(*) AS n",
        "Each patient counts for at most 20 rows",
        "Laplace, scale 20",  # rows and values together
        "1.5 left of 3",
        "95 of 100",
        "lastbit check answer.json",
        "cd" * 32,
        "ef" * 32,
        "The card is true.",
        "A note.",
        *REGIONS,
    ):
        assert expected in words, expected


def test_a_page_needs_nothing_from_elsewhere():
    text = page(simple(), account=account())
    reader = read(text)
    assert not {"script", "link", "img", "iframe", "object", "form"} & set(reader.tags)
    assert not [name for name, _ in reader.attributes if name.startswith("on") or name == "src"]
    assert "url(" not in text and "@import" not in text and "http" not in text
    assert "prefers-color-scheme: dark" in text and "@media print" in text


def test_charts_are_xml_and_have_a_mark_for_every_cell():
    text = page(simple())
    charts = re.findall(r'<svg class="chart".*?</svg>', text, re.S)
    assert len(charts) == 1
    root = ElementTree.fromstring(charts[0])
    looks = [element.get("class") for element in root.iter()]
    assert looks.count("bar") == 3 and looks.count("dot") == 3
    assert looks.count("whisker") == 3 * 6  # a line and two caps for each of six cells
    assert root.get("aria-label") == "n, cost, by group, with noise intervals"


@pytest.mark.parametrize(
    "hostile", [HOSTILE, '"><b onmouseover=x>', "&lt;b&gt;", STEERING, "]]>", ""]
)
def test_hostile_keys_stay_text(hostile):
    query = Query(table="visits", aggregates=(count(), mean()), keys=(by_region(),))
    rows = [((hostile,), [cell(5), cell(1.5)]), ((None,), [cell(6), cell(1.5)])]
    found = record(query, rows, epsilon=1, delta="1e-9", sql=f"SELECT '{hostile}'")
    text = page(found)
    reader = read(text)
    assert "script" not in reader.tags and "b" not in reader.tags
    assert not [name for name, _ in reader.attributes if name.startswith("on")]
    assert not set(text) & {"\x1b", "\u202e", "\x00"}
    for chart in re.findall(r'<svg class="chart".*?</svg>', text, re.S):
        ElementTree.fromstring(chart)
    if hostile == HOSTILE:
        assert HOSTILE in " ".join(reader.words)


def test_hostile_names_stay_text():
    found = simple()
    for place in (found["columns"], found["asked"]["query"]["aggregates"]):
        place[-1]["name"] = HOSTILE
    found["plan"]["recipes"][-1]["aggregate"] = HOSTILE
    found["table"] = found["plan"]["unit"] = found["guarantee"] = HOSTILE
    found["notes"] = [HOSTILE]
    found["certificate"] = {"digest": HOSTILE, "assumptions": [HOSTILE], HOSTILE: HOSTILE}
    found["entry"]["hash"] = found["question"] = found["lastbit"] = HOSTILE
    assert "script" not in read(page(found, title=HOSTILE)).tags


texts = st.text(st.characters(codec="utf-8"), max_size=40)


def test_no_key_breaks_the_page(extent):
    @settings(max_examples=extent.number(15, 60), deadline=None)
    @given(keys=st.lists(texts, min_size=1, max_size=4, unique=True), name=texts)
    def holds(keys, name):
        query = Query(table="visits", aggregates=(count(), mean()), keys=(by_region(),))
        rows = [((key,), [cell(5), cell(1.5)]) for key in keys]
        found = record(query, rows, epsilon=1, delta="1e-9")
        found["columns"][0]["name"] = name
        text = page(found)
        plain = page(record(query, [(("k",), row[1]) for row in rows], epsilon=1, delta="1e-9"))
        assert read(text).tags == read(plain).tags
        for chart in re.findall(r'<svg class="chart".*?</svg>', text, re.S):
            ElementTree.fromstring(chart)

    holds()


def test_one_row_without_keys_is_shown_large():
    query = Query(table="visits", aggregates=(count(), mean()))
    text = page(record(query, [((), [cell(1234, 60), cell(201.5, 2.25)])]))
    assert text.count('class="big"') == 2 and 'class="chart"' not in text
    assert "1,234" in words_of(text) and "noise ± 60" in words_of(text)


def test_histograms_have_a_bar_for_each_range():
    query = Query(table="visits", aggregates=(histogram(),), keys=(by_region(*REGIONS),))
    rows = [((region,), [cell(10), cell(20), cell(-1)]) for region in REGIONS]
    charts = re.findall(r'<svg class="chart".*?</svg>', page(record(query, rows)), re.S)
    assert len(charts) == 3
    for chart in charts:
        looks = [element.get("class") for element in ElementTree.fromstring(chart).iter()]
        assert looks.count("bar") == 3


@pytest.mark.parametrize(
    "bad",
    [
        cell(None),
        {"value": None, "standard_error": None, "low": 0.0, "high": 500.0},
        cell(0.0, 0.0),
        cell(-5.5, 1.25),
        cell(1e300, 1e299),
        cell(1e-300, 1e-301),
        cell(10**30, 10**29),
    ],
)
def test_strange_numbers_are_shown(bad):
    query = Query(table="visits", aggregates=(count(), mean()), keys=(by_region(*REGIONS),))
    rows = [((region,), [cell(5), bad]) for region in REGIONS]
    read(page(record(query, rows)))


def test_an_answer_without_rows_says_so():
    query = Query(table="visits", aggregates=(count(),), keys=(by_region(),))
    words = words_of(page(record(query, [], epsilon=1, delta="1e-9")))
    assert "No group is shown" in words and "keys found privately" in words
    assert "shown from about" in words and "but for a probability of 1e-9" in words


def test_many_rows_are_cut_and_counted():
    query = Query(table="visits", aggregates=(count(),), keys=(by_region(),))
    rows = [((f"key {i}",), [cell(i)]) for i in range(MOST_ROWS + 5)]
    words = words_of(page(record(query, rows, epsilon=1, delta="1e-9")))
    assert "... and 5 more groups" in words and "Charts show the first 40 groups" in words


def test_what_is_done_after_the_noise_is_told():
    query = Query(
        table="visits",
        aggregates=(count(),),
        keys=(by_region(*REGIONS),),
        where=adults(),
        having=call(">", ColumnName("n"), Constant(7)),
        order=(OrderBy(name="n", descending=True),),
        limit=2,
    )
    words = words_of(page(record(query, [(("North",), [cell(5)])])))
    assert "Only rows count for which cost >= 18." in words
    assert "After the noise, only groups are shown for which n > 7" in words
    assert "sorted by n, falling" in words and "no more than 2 are shown" in words


def test_concentrated_privacy_is_told_by_what_it_implies():
    query = Query(table="visits", aggregates=(count(), mean()), keys=(by_region(*REGIONS),))
    rows = [((region,), [cell(5), cell(1.5)]) for region in REGIONS]
    words = words_of(page(record(query, rows, rho="1/2")))
    assert "ρ = 0.5" in words and "one in a million" in words and "Gaussian, deviation" in words
    both = words_of(page(record(query, rows, epsilon=1, delta="1e-6")))
    assert "The ρ of all mechanisms add up to" in both or "The ε of all" in both


def test_a_changed_row_is_another_promise():
    from lastbit.privacy.neighbours import CHANGE_ONE

    about = card(neighbours=CHANGE_ONE)
    query = Query(table="visits", aggregates=(count(),), keys=(by_region(*REGIONS),))
    words = words_of(page(record(query, [(("North",), [cell(5)])], card=about, epsilon=1)))
    assert "hides what the rows of any one patient say" in words


@pytest.mark.parametrize(
    ("epsilon", "sure"), [("1/1000", "50.1 %"), ("1", "73.2 %"), ("99", "100 %")]
)
def test_the_promise_is_rounded_up(epsilon, sure):
    query = Query(table="visits", aggregates=(count(),))
    assert f"{sure} sure" in words_of(page(record(query, [((), [cell(5)])], epsilon=epsilon)))


def test_several_answers_share_a_page():
    text = page(simple(), simple(), account=account("2"))
    words = words_of(text)
    assert "2 answers from visits" in words and text.count('class="promise"') == 2
    assert 'href="#answer2"' in text and 'id="answer2"' in text


@pytest.mark.parametrize(
    ("spent", "budget", "said"),
    [
        ("1", None, "no limit"),
        ("1", "1", "0 left of 1"),
        ("1/3", "1", "2/3 left of 1"),
        (str(Fraction(10**40, 3 * 10**40 + 1)), "1", "0.666666"),
    ],
)
def test_the_budget_is_rounded_against_the_reader(spent, budget, said):
    assert said in words_of(page(simple(), account=account(spent, budget)))


def test_no_records_are_refused():
    with pytest.raises(InvalidParameter):
        page()


def test_a_page_is_a_function_of_its_records():
    found: dict[str, Any] = simple()
    assert page(found, account=account()) == page(found, account=account())


def test_a_certificate_speaks_of_rows_and_amounts_not_of_grid_integers():
    cent, half = Fraction(1, 100), Fraction(1, 2)
    rows, units = Measure(name="m1", kind="rows"), Measure(name="m2", kind="units")
    cents = Measure(name="m3", kind="values", step=cent)
    halves = Measure(name="m4", kind="squares", step=half)
    assert [natural_unit(one, 1 << 20) * (100 << 20) for one in (rows, cents)] == [100, 1]
    assert natural_unit(units, 1 << 20) == 1 and natural_unit(halves, 1) == Fraction(1, 4)


def test_under_the_filter_the_page_has_an_odometer_and_what_one_more_answer_takes():
    budget = Budget(kind="filter", epsilon=Fraction(5), delta=Fraction(1, 10**6))
    kept = Account(name="visits", budget=budget)
    for _ in range(20):
        kept = kept.charged(Cost(epsilon=Fraction(1, 5)))
    words = words_of(page(simple(), account=account_json(kept)))
    assert "By plain sums: ε = 4." in words
    assert "Odometer: no loss above ε 4 so far, except with probability 1e-6." in words
    assert "One more answer at ε = 0.5 would take ε 0." in words and " more fit." in words
    assert "Odometer" not in words_of(page(simple(), account=account()))


# ---------------------------------------------------------------- charts by what the keys are


def drawn(found, *, narrow=False):
    """The charts as XML, for a wide or for a narrow window."""
    kind = "narrow chart" if narrow else "chart"
    found = re.findall(rf'<svg class="{kind}".*?</svg>', page(found), re.S)
    return [ElementTree.fromstring(chart) for chart in found]


def looks_of(chart):
    return [element.get("class") or "" for element in chart.iter()]


def over(expression, keys, cells=None, **values):
    key = GroupKey(name="when", expression=expression, values=None)
    rows = [((k,), cells or [cell(10 + i)]) for i, k in enumerate(keys)]
    query = Query(table="visits", aggregates=(count(),), keys=(key,), **values)
    return record(query, rows, epsilon=1, delta="1e-9")


DAYS = [date(2026, month, 1) for month in range(1, 13)]


@pytest.mark.parametrize(
    ("expression", "keys", "label"),
    [
        (ColumnName("region"), DAYS, "2026-01"),
        (ColumnName("region"), [day.isoformat()[:7] for day in DAYS], "2026-01"),
        (ColumnName("region"), DAYS[:3], "2026-01-01"),
        (ColumnName("region"), [date(y, 5, 1) for y in range(2000, 2020)], "2001"),
        (call("month", ColumnName("region")), list(range(1, 13)), "1"),
        (call("year", ColumnName("region")), [2020, 2021, 2022, 2024], "2020"),
    ],
)
@pytest.mark.parametrize("narrow", [False, True])
def test_times_are_lines(expression, keys, label, narrow):
    (chart,) = drawn(over(expression, keys), narrow=narrow)
    looks = looks_of(chart)
    assert looks.count("trend tone0") == 1 and looks.count("band tone0") == 1
    assert looks.count("spot tone0") == len(keys) and "bar" not in looks
    assert label in [element.text for element in chart.iter()]


def test_lines_are_in_the_order_of_time_and_have_gaps():
    found = over(ColumnName("region"), [DAYS[3], None, DAYS[0], DAYS[2], DAYS[5], DAYS[4]])
    found["rows"][3]["cells"][0] |= {"value": None, "low": None, "high": None}
    (chart,) = drawn(found)
    lines = [e.get("points") for e in chart.iter() if e.get("class") == "trend tone0"]
    assert [len(points.split()) for points in lines] == [1, 3]
    places = [float(point.split(",")[0]) for points in lines for point in points.split()]
    assert places == sorted(places)


def test_a_line_for_each_of_a_few_others():
    keys = (by_region(*REGIONS), GroupKey(name="m", expression=call("month", ColumnName("region"))))
    rows = [((r, m), [cell(m)]) for r in REGIONS for m in range(1, 13)]
    query = Query(table="visits", aggregates=(count(),), keys=keys)
    (chart,) = drawn(record(query, rows, epsilon=1, delta="1e-9"))
    looks = looks_of(chart)
    # once in the legend, once in the frame
    assert [looks.count(f"trend tone{i}") for i in range(5)] == [0, 2, 2, 2, 0]
    assert set(REGIONS) < {element.text for element in chart.iter()}


@pytest.mark.parametrize("keys", [["2026-13", "2026-01", "2026-02"], ["a", "b", "c"], [1, 2, 3]])
def test_what_is_no_time_is_drawn_as_groups(keys):
    (chart,) = drawn(over(ColumnName("region"), keys))
    assert "trend tone0" not in looks_of(chart) and looks_of(chart).count("bar") == 3


def test_on_a_phone_each_measure_has_a_chart_of_its_own():
    charts = drawn(simple(), narrow=True)
    assert [chart.get("viewBox").split()[2] for chart in charts] == ["358", "358"]
    for chart in charts:
        assert len([word for word in looks_of(chart) if word in ("bar", "dot")]) == 3
        assert max(float(e.get("x") or 0) for e in chart.iter()) <= 358


def test_ranges_are_to_scale_and_their_areas_are_rows():
    """The same rows for each year of age: bars are as wide as their ranges, and all as high."""
    edges = tuple(map(Fraction, (0, 5, 20, 50)))
    part = Aggregate(name="h", function="histogram", expression=ColumnName("cost"), edges=edges)
    query = Query(table="visits", aggregates=(part,))
    found = record(query, [((), [cell(50), cell(150), cell(300)])])
    (chart,) = drawn(found)
    bars = [e for e in chart.iter() if e.get("class") == "bar"]
    widths, heights = ([float(bar.get(n)) for bar in bars] for n in ("width", "height"))
    assert max(heights) - min(heights) < 0.1
    assert widths[1] / widths[0] == pytest.approx(3, rel=0.1)
    assert widths[2] / widths[0] == pytest.approx(6, rel=0.1)
    assert "height: rows for each 5 of width" in {e.text for e in chart.iter()}


def test_ranges_too_narrow_to_be_seen_are_drawn_equally_wide():
    edges = tuple(map(Fraction, (0, 1, 10, 10**6)))
    part = Aggregate(name="h", function="histogram", expression=ColumnName("cost"), edges=edges)
    found = record(Query(table="visits", aggregates=(part,)), [((), [cell(5), cell(6), cell(7)])])
    (chart,) = drawn(found)
    bars = [e for e in chart.iter() if e.get("class") == "bar"]
    assert len({bar.get("width") for bar in bars}) == 1
    assert "ranges are not to scale" in {e.text for e in chart.iter()}


def test_a_notebook_shows_pictures_that_touch_nothing_around_them():
    html = answer_in_notebook(simple())
    (coded,) = re.findall(r'<img src="data:image/svg\+xml;base64,([^"]+)" alt="n, cost, by', html)
    picture = base64.b64decode(coded).decode()
    assert ElementTree.fromstring(picture).tag.endswith("svg") and "<style" not in html
    assert "http" not in picture.replace("http://www.w3.org/2000/svg", "")
