"""Charts of curves: points where the numbers say, names apart, nothing outside the frame."""

import math
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given, strategies as st

from docs.curve_charts import LEFT, TOP, Chart, Curve, Mark, chart, powers_of_ten, spread
from lastbit.report.charts import Axis, clean

SVG = "{http://www.w3.org/2000/svg}"


def drawn(*curves: Curve, up: Axis | None = None, **changes: object) -> str:
    axis = Axis(ends=(0, 10), ticks=((0, "0"), (10, "10")), label="an axis")
    settings: dict[str, object] = {"title": "a title", "words": ("some words",), "width": 500}
    settings |= {"height": 400, **changes}
    return chart(Chart(across=axis, up=up or axis, curves=curves, **settings))  # type: ignore[arg-type]


def line(*points: tuple[float, float], **changes: object) -> Curve:
    return Curve(label="a curve", strands=(points,), **changes)  # type: ignore[arg-type]


def pieces(text: str) -> list[list[tuple[float, float]]]:
    """The places of all pieces of curves, without those in front of the names."""
    found = [
        [(float(x), float(y)) for x, y in (p.split(",") for p in e.get("points", "").split())]
        for e in ElementTree.fromstring(text).iter(f"{SVG}polyline")
    ]
    return [piece for piece in found if piece[0][0] < LEFT + 500]


def test_points_lie_where_a_linear_scale_puts_them():
    assert pieces(drawn(line((0, 0), (5, 5), (10, 10)))) == [
        [(LEFT, TOP + 400), (LEFT + 250, TOP + 200), (LEFT + 500, TOP)]
    ]


def test_points_lie_where_a_logarithmic_scale_puts_them():
    up = Axis(ends=(0.01, 100), ticks=powers_of_ten(-2, 2), label="y", logarithmic=True)
    (piece,) = pieces(drawn(line((0, 0.01), (5, 1), (10, 100)), up=up))
    assert [y for _, y in piece][:3] == [TOP + 400, TOP + 200, TOP]


def test_what_has_no_logarithm_is_left_out():
    up = Axis(ends=(0.01, 100), ticks=(), label="y", logarithmic=True)
    (piece,) = pieces(drawn(line((0, 1), (5, 1), (10, 0)), up=up))
    assert len(piece) == 2


def test_a_curve_is_cut_at_the_frame():
    (piece,) = pieces(drawn(line((0, 0), (10, 20))))
    assert piece == [(LEFT, TOP + 400), (LEFT + 250, TOP)]
    assert len(pieces(drawn(line((0, 5), (3, 20), (6, 5), (8, -9), (10, 5))))) == 3
    assert pieces(drawn(line((0, 20), (10, 30)))) == []


@given(st.lists(st.tuples(st.floats(0, 10), st.floats(-50, 50)), min_size=2, max_size=20))
def test_nothing_is_drawn_outside_the_frame(points):
    for piece in pieces(drawn(line(*points))):
        assert all(TOP - 0.01 <= y <= TOP + 400.01 for _, y in piece)


def test_curves_differ_in_dashes_and_class():
    root = ElementTree.fromstring(drawn(*(line((0, i), (10, i)) for i in range(7))))
    looks = {(e.get("class"), e.get("stroke-dasharray")) for e in root.iter(f"{SVG}polyline")}
    assert len(looks) == len({kind for kind, _ in looks}) == len({dash for _, dash in looks}) == 7


def test_words_are_there():
    text = drawn(line((0, 0), (10, 1), note="a note"), marks=(Mark(at=(5, 5), words="a mark"),))
    words = set(ElementTree.fromstring(text).itertext())
    assert {"a title", "some words", "an axis", "a curve", "a note", "a mark"} <= words


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn"])))
def test_any_words_give_a_well_formed_picture(words):
    text = drawn(Curve(label=words, strands=(((0, 0), (1, 1)),)), title=words)
    assert ElementTree.fromstring(text).findtext(f"{SVG}title") == clean(words)


@given(st.lists(st.floats(0, 400), max_size=12), st.floats(1, 30))
def test_names_stand_apart_and_in_order(wanted, gap):
    placed = spread(wanted, gap, (0.0, 400.0))
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    steps = [placed[j] - placed[i] for i, j in pairwise(order)]
    assert all(step >= gap - 1e-6 for step in steps)
    assert all(place <= 400 for place in placed)


def test_names_that_have_room_stay_where_they_belong():
    assert spread([10, 100, 200], 20, (0, 300)) == [10, 100, 200]


@pytest.mark.parametrize(("exponent", "label"), [(-12, "10⁻¹²"), (-2, "0.01"), (3, "1000")])
def test_powers_of_ten(exponent, label):
    ((value, words),) = powers_of_ten(exponent, exponent)
    assert math.log10(value) == pytest.approx(exponent)
    assert words == label
