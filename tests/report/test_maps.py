"""Maps: marks where the places are, true places only with a warning, few enough to look at."""

from xml.etree import ElementTree

import pytest
from hypothesis import given, settings, strategies as st

from lastbit.report.maps import MOST_DRAWN, WARNING, PlaceMap, length_label, place_map, round_length
from tests.report.example_map import PICTURE, example

SVG = "{http://www.w3.org/2000/svg}"
REGION = (-5000.0, -4000.0, 5000.0, 4000.0)
places = st.lists(st.tuples(st.floats(-9e4, 9e4), st.floats(-9e4, 9e4)), max_size=20)


def drawing(**changes) -> ElementTree.Element:
    settings = {
        "title": "a map",
        "words": ("some words",),
        "region": REGION,
        "noisy": ((0.0, 0.0), (3000.0, 2000.0)),
        "radius": 500.0,
        "ring": "95 % within 500 m",
        **changes,
    }
    return ElementTree.fromstring(place_map(PlaceMap(**settings)))


def marks(root: ElementTree.Element, kind: str, tag: str) -> list[ElementTree.Element]:
    group = next(root.iter(SVG + "g"))  # what is inside the frame, so without the legend
    return [e for e in group.iter(SVG + tag) if kind in e.get("class", "").split()]


def words(root: ElementTree.Element) -> str:
    return " ".join(root.itertext())


def test_noisy_places_alone_are_no_secret():
    root = drawing()
    assert len(marks(root, "second", "polygon")) == 2
    assert marks(root, "first", "circle") == []
    assert WARNING not in words(root)
    assert "true place" not in words(root)


def test_true_places_come_with_a_warning():
    root = drawing(true=((10.0, 10.0), (2900.0, 2100.0)))
    assert len(marks(root, "first", "circle")) == len(marks(root, "link", "line")) == 2
    assert WARNING in words(root)
    warning = next(e for e in root.iter(SVG + "text") if e.text == WARNING)
    assert "bad" in warning.get("class", "")


def corner(polygon: ElementTree.Element) -> tuple[float, float]:
    x, y = polygon.get("points", "").split()[0].split(",")
    return float(x), float(y) + 4


def test_one_scale_in_both_directions_and_north_is_up():
    root = drawing(noisy=((0.0, 0.0), (3000.0, 0.0), (0.0, 3000.0), (-4900.0, -3900.0)))
    middle, east, north, _ = (corner(e) for e in marks(root, "second", "polygon"))
    assert east[0] - middle[0] == pytest.approx(middle[1] - north[1], abs=0.03)
    assert east[0] > middle[0] and north[1] < middle[1]
    ring = marks(root, "ring", "circle")[0]
    assert float(ring.get("r", "")) * 6 == pytest.approx(east[0] - middle[0], abs=0.05)
    bar = next(e for e in root.iter(SVG + "line") if e.get("class") == "scalebar")
    long = float(bar.get("x2", "")) - float(bar.get("x1", ""))
    assert long * 1.5 == pytest.approx(east[0] - middle[0], abs=0.05)
    assert "2 km (lines are as far apart)" in words(root)


def test_few_places_of_a_large_region_are_shown_close_up():
    near = drawing(noisy=((0.0, 0.0), (100.0, 50.0)), radius=50.0)
    assert [e for e in near.iter(SVG + "rect") if e.get("class") == "view"]
    wide = drawing(noisy=((-4000.0, 0.0), (4000.0, 50.0)))
    assert not [e for e in wide.iter(SVG + "rect") if e.get("class") == "view"]


def test_many_places_are_thinned_and_the_caption_says_so():
    many = tuple((float(i), 0.0) for i in range(3 * MOST_DRAWN))
    root = drawing(noisy=many, true=many)
    assert len(marks(root, "second", "polygon")) <= MOST_DRAWN
    assert len(marks(root, "first", "circle")) <= MOST_DRAWN
    assert "2,000 of 6,000 places are drawn" in words(root)
    assert marks(root, "link", "line") == []


@settings(deadline=None, max_examples=60)
@given(places, st.floats(1e-3, 1e7), st.booleans())
def test_any_places_give_a_well_formed_picture(noisy, radius, with_true):
    root = drawing(noisy=tuple(noisy), true=tuple(noisy) if with_true else (), radius=radius)
    assert "nan" not in ElementTree.tostring(root, "unicode").replace("xmlns", "")


@pytest.mark.parametrize("text", ["<&>\"'", "ε = ln(4)"])
def test_words_are_escaped(text):
    assert text in words(drawing(title=text, words=(text,), ring=text))


def test_the_picture_needs_nothing_from_elsewhere():
    text = place_map(
        PlaceMap(title="t", words=(), region=REGION, noisy=((0.0, 0.0),), radius=9.0, ring="r")
    )
    assert "href" not in text and "script" not in text
    assert text.count("http") == 1  # the namespace
    assert "prefers-color-scheme: dark" in text


@pytest.mark.parametrize(
    ("longest", "expected"), [(1, 1), (1.9, 1), (2, 2), (4.9, 2), (5, 5), (730, 500), (0.03, 0.02)]
)
def test_round_lengths(longest, expected):
    assert round_length(longest) == pytest.approx(expected)


def test_lengths_have_a_unit():
    assert [length_label(x) for x in (0.5, 200.0, 1000.0, 25000.0)] == [
        "0.5 m",
        "200 m",
        "1 km",
        "25 km",
    ]


def test_the_map_in_the_docs_is_up_to_date():
    assert PICTURE.read_text("utf-8") == example(), "run python -m tests.report.example_map"
