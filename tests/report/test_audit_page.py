"""The page of an audit and its picture: complete, self-contained, deaf to what they quote."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import pytest

from lastbit.report.law_charts import Cell, LawPanel, law_picture
from lastbit.report.page import AuditStory, audit_page
from tests.report.test_derivations import tags

SVG = "{http://www.w3.org/2000/svg}"
RANGES = tuple(Cell(i / 4, (i + 1) / 4, 0.05 * i, 0.2) for i in range(5))
WORDS = (Cell(0, 1, 0.9, 0.0, "<no>"), Cell(1, 2, 0.1, 1.0, "a very long output indeed, cut"))


def panel(**changes: Any) -> LawPanel:
    values: dict[str, Any] = {
        "title": "The output", "words": "How often", "axis": "the output",
        "inputs": ("0", "1"), "cells": RANGES, "single": False, "event": ((0.5, float("inf")),),
    }  # fmt: skip
    return LawPanel(**(values | changes))


def story(**changes: Any) -> AuditStory:
    values: dict[str, Any] = {
        "title": "Audit of a:b", "verdict": "refuted: ε ≥ 2", "refuted": True,
        "sentences": ("The mechanism does not keep ε = 1.",), "facts": (("claimed", "ε = 1"),),
        "limits": ("Sampling is blind.",), "again": ("lastbit audit a:b",), "note": "It differs.",
    }  # fmt: skip
    return AuditStory(**(values | changes))


def parsed(picture: str) -> ElementTree.Element:
    return ElementTree.fromstring(picture)


def size(node: ElementTree.Element, name: str) -> float:
    return float(str(node.get(name)))


def boxes(root: ElementTree.Element, kind: str) -> list[ElementTree.Element]:
    return [node for node in root.iter(f"{SVG}rect") if node.get("class") == kind]


def test_everything_is_on_the_page() -> None:
    page = audit_page(story(), (panel(),), drawn="Fresh runs.")
    text = tags(page).text
    for words in (
        "Audit of a:b", "refuted: ε ≥ 2", "does not keep", "claimed", "Sampling is blind.",
        "lastbit audit a:b", "It differs.", "Fresh runs.", "The output",
    ):  # fmt: skip
        assert words in text
    assert 'class="verdict refuted"' in page
    assert 'class="verdict"' in audit_page(story(refuted=False))


def test_nothing_comes_from_elsewhere() -> None:
    page = audit_page(story(), (panel(), panel(cells=WORDS, single=True)))
    for tag, attributes in tags(page).seen:
        assert tag not in {"script", "link", "img", "iframe"}
        assert not {"href", "src", "onload", "onclick"} & set(attributes)
    assert "@import" not in page
    assert "url(" not in page
    assert "prefers-color-scheme: dark" in page
    assert "@media print" in page


def test_what_is_quoted_is_escaped() -> None:
    loud = "<script>alert(1)</script>"
    page = audit_page(
        story(title=loud, verdict=loud, facts=((loud, loud),), again=(loud,), limits=(loud,)),
        (panel(title=loud, words=loud, axis=loud, inputs=(loud, loud)),),
        drawn=loud,
    )
    assert "<script" not in page


def test_the_event_is_shaded_and_underlined_within_the_axis() -> None:
    root = parsed(law_picture("p", [panel()]))
    legend, shaded = boxes(root, "event")
    assert legend is not None
    assert size(shaded, "x") == pytest.approx(64 + (880 - 24 - 64) * 0.4)
    assert size(shaded, "x") + size(shaded, "width") == pytest.approx(856)
    assert len(boxes(root, "under")) == 2
    assert not boxes(parsed(law_picture("p", [panel(event=())])), "event")
    outside = parsed(law_picture("p", [panel(event=((7.0, 8.0),))]))
    assert len(boxes(outside, "event")) == 1  # the legend's


def test_a_single_value_is_wide_enough_to_be_seen() -> None:
    root = parsed(law_picture("p", [panel(event=((0.5, 0.5),))]))
    assert size(boxes(root, "event")[1], "width") == 3


def test_heights_are_the_shares() -> None:
    root = parsed(law_picture("p", [panel(cells=WORDS, single=True, event=())]))
    heights = [size(box, "height") for box in boxes(root, "first")[1:]]
    assert heights[0] == pytest.approx(9 * heights[1], abs=0.05)
    assert len(boxes(root, "second outlined")) == 2  # the legend's, and the one above 0
    labels = [node.text for node in root.iter(f"{SVG}text")]
    assert "<no>" in labels
    assert any(label.endswith("…") for label in labels if label)


def test_outlines_pass_through_every_cell() -> None:
    root = parsed(law_picture("p", [panel()]))
    lines = [str(node.get("points")).split() for node in root.iter(f"{SVG}polyline")]
    assert [len(points) for points in lines] == [2 + 2 * len(RANGES)] * 2


@pytest.mark.parametrize("width", [1e-9, 0.3, 7.0, 1e6, 1e300])
@pytest.mark.parametrize("start", [-1e6, 0.0, 0.1])
def test_ticks_are_few_and_inside(width: float, start: float) -> None:
    if start + width == start:
        pytest.skip("no axis")
    cells = (Cell(start, start + width / 2, 0.5, 0.5), Cell(start + width / 2, start + width, 1, 1))
    root = parsed(law_picture("p", [panel(cells=cells, event=())]))
    places = [
        size(node, "x")
        for node in root.iter(f"{SVG}text")
        if node.get("class") == "small middle" and size(node, "y") < 310
    ]
    assert 2 <= len(places) <= 12
    assert all(63 <= place <= 857 for place in places)


def test_a_law_of_nothing_is_drawn_flat() -> None:
    drawn = law_picture("p", [panel(cells=(Cell(0, 1, 0.0, 0.0),), event=())])
    assert not re.search(r"nan|inf", drawn)
