"""Pictures: well-formed whatever the words, marks where the numbers say."""

from xml.etree import ElementTree

import pytest
from hypothesis import example, given, strategies as st

from lastbit.report.charts import Bars, Panel, Series, Stems, Zone, clean, picture, ticks_above

SVG = "{http://www.w3.org/2000/svg}"


def panel(marks: Stems | Bars, **changes: object) -> Panel:
    settings: dict[str, object] = {
        "title": "a title",
        "verdict": "a verdict",
        "good": True,
        "words": "some words",
        "places": (-1.0, 3.0),
        "ticks": ((0.0, "zero"), (2.0, "two")),
        "axis": "an axis",
        "heights": ((0.0, "0"), (10.0, "10")),
        **changes,
    }
    return Panel(marks=marks, **settings)  # type: ignore[arg-type]


def bars(*heights: tuple[float, float], **changes: object) -> Bars:
    first = tuple((float(place), pair[0]) for place, pair in enumerate(heights))
    second = tuple((float(place), pair[1]) for place, pair in enumerate(heights))
    return Bars(
        first=Series(label="one", points=first),
        second=Series(label="other", points=second),
        **changes,  # type: ignore[arg-type]
    )


def marks_of(text: str, kind: str, tag: str) -> list[ElementTree.Element]:
    root = ElementTree.fromstring(text)
    found = [e for e in root.iter(SVG + tag) if kind in e.get("class", "").split()]
    return found[1:]  # without the legend's own


def test_a_bar_is_as_tall_as_its_share_of_the_scale():
    text = picture("p", (panel(bars((5.0, 10.0), (2.5, 1.0))),))
    heights = [float(e.get("height", "")) for e in marks_of(text, "first", "rect")]
    assert heights == [75.0, 37.5]
    heights = [float(e.get("height", "")) for e in marks_of(text, "second", "rect")]
    assert heights == [150.0, 15.0]


@given(st.floats(1e-9, 1e9), st.sampled_from([3, 5]))
@example(0.2664, 3)
@example(0.4621, 3)
def test_the_axis_reaches_above_the_tallest_mark(largest, most):
    ticks = ticks_above(largest, most=most)
    assert ticks[-1][0] > largest
    assert len(ticks) <= most + 2


def test_an_empty_bar_is_not_drawn():
    text = picture("p", (panel(bars((5.0, 0.0))),))
    assert len(marks_of(text, "first", "rect")) == 1
    assert marks_of(text, "second", "rect") == []


def test_a_stem_has_a_line_and_a_head():
    stems = Stems(
        first=Series(label="one", points=((0.0, 1.0), (1.0, 2.0))),
        second=Series(label="other", points=((2.0, 3.0),)),
    )
    text = picture("p", (panel(stems),))
    assert len(marks_of(text, "first", "line")) == len(marks_of(text, "first", "circle")) == 2
    assert len(marks_of(text, "second", "line")) == len(marks_of(text, "second", "polygon")) == 1


def test_words_over_a_bar_and_in_a_zone_are_there():
    marks = bars((5.0, 1.0), over=((0.0, "above"),))
    zone = Zone(start=1.0, end=3.0, words=("first line", "second line"))
    text = picture("p", (panel(marks, zone=zone),))
    words = list(ElementTree.fromstring(text).itertext())
    assert {"above", "first line", "second line"} <= set(words)


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn"])))
def test_any_words_give_a_well_formed_picture(words):
    text = picture(words, (panel(bars((1.0, 1.0)), title=words, axis=words),))
    root = ElementTree.fromstring(text)
    assert root.findtext(f"{SVG}title") == clean(words)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_the_height_follows_the_number_of_panels(count):
    root = ElementTree.fromstring(picture("p", (panel(bars((1.0, 1.0))),) * count))
    assert root.get("viewBox") == f"0 0 880 {64 + 292 * count}"


def test_the_same_data_gives_the_same_text():
    marks = panel(bars((1.0, 1.0)))
    assert picture("p", (marks,)) == picture("p", (marks,))
