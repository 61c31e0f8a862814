"""The histograms of a profile by force: one unit moves each by 1 in all, whatever its rows are."""

from dataclasses import replace
from functools import partial

import pytest

from lastbit.release.profile import groups_question, rows_question, values_question
from lastbit.tables.measures import WEIGHT_ONE
from lastbit.tables.plan.sensitivity import measures_of, sensitivity_of
from lastbit.tables.query.sub_query import counted_card
from tests.stability.cases import column
from tests.stability.engine import Engine
from tests.stability.judging import moved, vectors, violations
from tests.stability.units import TEN, ten

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")


@pytest.fixture(scope="module")
def engine():
    found = Engine()
    yield found
    found.close()


def questions(card):
    keys = [(column("cat"),), (column("cat"), column("flag")), (column("day"), column("num"))]
    yield rows_question(card)
    yield from (groups_question(card, one) for one in keys)
    yield from (values_question(card, name) for name in ("x", "num", "junk"))


def judged(engine, case, *, every):
    card = replace(case.card, max_rows_open=case.card.unit is not None)
    for question in list(questions(card))[:: 1 if every else 3]:
        counted = counted_card(question.query, question.card)
        measures, _ = measures_of(question.query)
        asked = replace(case, query=question.query, card=counted, measures=measures)
        most = 2 if counted.neighbours.relation == "change-one" else 1
        (measure,) = measures
        assert sensitivity_of(measure, counted, groups=1).l1 == most * WEIGHT_ONE
        base = engine.run(asked, case.rows)
        for rows, labs in case.neighbours:
            other = engine.run(asked, rows, labs=labs)
            assert list(violations(asked, base, other)) == []
            steps = moved(*(vectors(asked, one)[measure.name] for one in (base, other)))
            assert sum(steps) <= most * WEIGHT_ONE


# seven histograms of 2 or 3 neighbours each: 10**4 pairs from 720 cases on
@pytest.mark.apart
def test_histograms(engine, extent):
    for start in range(0, extent.generated(10, 720), TEN):
        ten("declared", start, partial(judged, engine, every=extent.is_many))


def test_a_unit_that_counts_for_all_its_rows_is_seen(engine):
    """The mutant: values asked by the card's own max_rows."""
    found = []

    def tried(case):
        question = values_question(case.card, "x")
        card = replace(question.card, max_rows=3)
        measures, _ = measures_of(question.query)
        asked = replace(case, query=question.query, card=card, measures=measures)
        base = engine.run(asked, case.rows)
        for rows, labs in case.neighbours:
            other = engine.run(asked, rows, labs=labs)
            steps = moved(*(vectors(asked, one)[measures[0].name] for one in (base, other)))
            found.append(sum(steps) > 2 * WEIGHT_ONE)

    ten("declared", 0, tried)
    assert any(found)
