"""Hostile text in every place of every page and picture comes out as text, or is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any
from xml.etree import ElementTree

import pytest

from docs.curve_charts import Chart, Curve, Mark, chart
from lastbit.errors import InvalidParameter, LastbitError
from lastbit.report import (
    Axis,
    Bars,
    Cell,
    Panel,
    PlaceMap,
    Series,
    Zone,
    audit_page,
    certificate_page,
    law_picture,
    page,
    picture,
    place_map,
)
from lastbit.report.answer import answer_in_notebook, answer_in_terminal
from lastbit.report.plan import read_record
from lastbit.tables.query.query import Query
from tests.cli.certificates import SHOWN, certificate
from tests.evidence import Extent
from tests.report.answer_records import (
    REGIONS,
    account,
    by_region,
    cell,
    count,
    histogram,
    limited,
    mean,
    record,
    simple,
)
from tests.report.test_answers import read
from tests.report.test_audit_page import panel, story

HOSTILE = "'\"><script>alert(1)</script><b onclick=x>&amp;]]>{{ 7*7 }}\x1b[31m\u202e\x00\ud800"
STEERING = set("\x1b\u202e\x00\ud800")
WRONG: tuple[Any, ...] = (None, True, 7, -0.5, "x", [], {}, [[]], {"column": "x"})
EVERYWHERE = Extent(is_many=True)
Path = tuple[Any, ...]


def places(value: Any, path: Path = ()) -> Iterator[Path]:
    """Every text, and every name of a field, in plain JSON or in frozen values."""
    if isinstance(value, str):
        yield path
    elif isinstance(value, dict):
        for name, part in value.items():
            yield from places(part, (*path, name))
    elif isinstance(value, list | tuple):
        for i, part in enumerate(value[:3]):  # the others are like these
            yield from places(part, (*path, i))
    elif hasattr(value, "__dataclass_fields__"):
        for field in fields(value):
            yield from places(getattr(value, field.name), (*path, field.name))


def put(value: Any, path: Path, words: Any) -> Any:
    if not path:
        return words
    step, *rest = path
    if isinstance(value, dict):
        return {**value, step: put(value[step], tuple(rest), words)}
    if isinstance(value, list | tuple):
        new = [*value[:step], put(value[step], tuple(rest), words), *value[step + 1 :]]
        return tuple(new) if isinstance(value, tuple) else new
    return replace(value, **{step: put(getattr(value, step), tuple(rest), words)})


def spoiled(value: Any, extent: Extent = EVERYWHERE) -> Iterator[Any]:
    for path in extent.cases(places(value), one_in=6):
        yield put(value, path, HOSTILE)


def checked(
    made: Callable[[Any], str], value: Any, *, least: int, extent: Extent = EVERYWHERE
) -> None:
    """As long as it is not refused, the page has the elements that it always has."""
    usual = set(read(made(value)).tags)
    shown = 0
    for hostile in spoiled(value, extent):
        try:
            text = str(made(hostile))
        except (LastbitError, LookupError, TypeError, ValueError, AssertionError, ArithmeticError):
            continue  # a number, a kind or a role: there is nothing to show
        shown += "script" in text
        reader = read(text)
        assert not {"script", "b"} & set(reader.tags) and set(reader.tags) <= usual | {"details"}
        assert not [name for name, _ in reader.attributes if name.startswith("on")]
        assert not STEERING & set(text)
        text.encode()  # no half of a letter is left
    assert shown >= least


def histograms() -> dict[str, Any]:
    query = Query(table="visits", aggregates=(histogram(),), keys=(by_region(*REGIONS),))
    return record(query, [((r,), [cell(10), cell(20), cell(3)]) for r in REGIONS])


def test_answers() -> None:
    checked(lambda found: page(found, account=account()), simple(), least=20)
    checked(lambda found: page(found, simple()), histograms(), least=20)
    checked(page, limited(), least=20)
    checked(answer_in_notebook, limited(), least=4)
    checked(lambda title: page(simple(), title=title), "a title", least=1)


def all_places(value: Any, path: Path = ()) -> Iterator[Path]:
    """Every place in plain JSON, whatever stands there."""
    yield path
    if isinstance(value, list):
        value = dict(enumerate(value))
    for step, part in value.items() if isinstance(value, dict) else ():
        yield from all_places(part, (*path, step))


def test_whatever_stands_in_a_plan_or_a_question_is_read_or_refused(extent: Extent) -> None:
    """Before, a list for an object was an AttributeError: the door knows all that JSON can be."""
    query = Query(table="visits", aggregates=(count(), mean()), keys=(by_region(),))
    whole = record(query, [], epsilon=1, delta="1e-9")
    known = {"plan": whole["plan"], "asked": {"query": whole["asked"]["query"]}}
    refused = 0
    for path in extent.cases(all_places(known), one_in=4):
        for wrong in WRONG:
            try:
                read_record(put(known, path, wrong))
            except InvalidParameter as error:
                refused += "pass what save() wrote" in str(error)
    assert refused > 100


def test_terminals() -> None:
    for hostile in spoiled(limited()):
        try:
            assert not STEERING & set(answer_in_terminal(hostile))
        except (LookupError, TypeError, ValueError):
            continue


@pytest.mark.parametrize("kind", SHOWN)
def test_certificates(kind: str, extent: Extent) -> None:
    checked(certificate_page, certificate(kind), least=3, extent=extent)


def test_audits() -> None:
    labelled = panel(single=True, cells=(Cell(0, 1, 0.5, 0.2, "no"), Cell(1, 2, 0.5, 0.8, "yes")))
    checked(lambda told: audit_page(told, (labelled,)), story(), least=8)
    checked(lambda drawn: audit_page(story(), (drawn,)), labelled, least=5)
    checked(lambda words: audit_page(story(), (labelled,), drawn=words), "runs", least=1)


AXIS = Axis(ends=(0, 1), ticks=((0, "0"), (1, "1")), label="x")
CURVES = Chart(
    title="t",
    words=("w",),
    across=AXIS,
    up=AXIS,
    curves=(Curve(label="a", note="n", strands=(((0, 0), (1, 1)),)),),
    marks=(Mark(at=(0.5, 0.5), words="m"),),
)
SIDES = Panel(
    title="t",
    verdict="v",
    good=True,
    words="w",
    marks=Bars(
        first=Series(label="a", points=((0, 1),)),
        second=Series(label="b", points=((0, 2),)),
        over=((0, "o"),),
    ),
    places=(-1, 1),
    ticks=((0, "0"),),
    axis="x",
    heights=((0, "0"), (2, "2")),
    zone=Zone(start=0, end=1, words=("z",)),
)
PLACES = PlaceMap(title="t", words=("w",), region=(0, 0, 9, 9), noisy=((1, 1),), radius=1, ring="r")


@pytest.mark.parametrize(
    ("drawn", "value"),
    [
        (chart, CURVES),
        (lambda one: picture("p", (one,)), SIDES),
        (lambda title: picture(title, (SIDES,)), "title"),
        (lambda one: law_picture("p", (one,)), panel()),
        (place_map, PLACES),
    ],
)
def test_pictures(drawn: Callable[[Any], str], value: Any) -> None:
    usual = {element.tag for element in ElementTree.fromstring(drawn(value)).iter()}
    for hostile in spoiled(value):
        text = drawn(hostile)
        root = ElementTree.fromstring(text)
        assert {element.tag for element in root.iter()} == usual
        assert not [element for element in root.iter() if element.get("onclick") is not None]
        assert not STEERING & set(text)
