"""Every line of SQL that pages show is one that can be asked."""

from __future__ import annotations

import pytest

from lastbit.serve.planning import plan_of, tables_asked
from lastbit.serve.questions import Question
from lastbit.serve.reference import EDITOR_WORDS, _card_of_help, reference, reference_of_help
from lastbit.tables import Column, DataCard, Source
from tests.serve.test_builder import CARD


@pytest.mark.parametrize("card", [_card_of_help(), CARD], ids=["help", "another"])
def test_every_line_can_be_planned(card: DataCard) -> None:
    sections = reference(card)
    assert len(sections) == 5
    lines = [(section.statement, sql) for section in sections for sql, _ in section.lines]
    assert len(lines) == 24
    for statement, sql in lines:
        plan_of(Question(sql=statement.format(sql), epsilon="1", delta="1e-9"), card)


def test_what_needs_a_column_that_is_not_there_is_left_out() -> None:
    name = "a{b}'"
    one = Column(name=name, type="text", keys=("it's",))
    source = Source(kind="csv", paths=("x.csv",))
    card = DataCard(name="t", source=source, unit=None, max_rows=1, columns={name: one})
    for section in reference(card):
        for sql, _ in section.lines:
            plan_of(Question(sql=section.statement.format(sql), epsilon="1"), card)
    bare = DataCard(name="t", source=source, unit=None, max_rows=1, columns={})
    assert [section.lines for section in reference(bare)] == [(("COUNT(*)", "the number of rows"),)]
    assert len(reference_of_help()) == 5


def test_the_editor_knows_the_words_of_the_reference() -> None:
    known = {
        word for words in EDITOR_WORDS.values() for one in words for word in one.upper().split()
    }
    shown = " ".join(sql for section in reference_of_help() for sql, _ in section.lines)
    capitals = {
        word for word in shown.replace("(", " ").replace(")", " ").split() if word.isalpha()
    }
    assert {word for word in capitals if word.isupper() and len(word) > 1} <= known


@pytest.mark.parametrize(
    "sql",
    [
        "MARGINALS region, AVG(cost) AS m FROM visits",
        "MARGINALS region, wait > 10 AS long FROM visits HAVING COUNT(*) > 3",
        "MARGINALS region FROM visits ORDER BY region",
        "MARGINALS region FROM visits LIMIT 3",
        "MARGINALS region FROM visits; DROP TABLE visits",
        "MARGINALS FROM visits",
        "MARGINALS",
        "MARGINALS region FROM (SELECT patient, region, COUNT(*) AS c FROM visits GROUP BY ALL)",
        "MARGINALS upper(region) AS region FROM visits",
        "MARGINALS * FROM visits",
        "MARGINALS region) FROM visits --",
    ],
)
def test_tables_of_anything_else_are_refused(sql: str) -> None:
    with pytest.raises(Exception, match=";") as caught:
        plan_of(Question(sql=sql, epsilon="1"), CARD)
    assert caught.type.__module__.startswith("lastbit"), caught.value


def test_tables_count_what_the_library_counts() -> None:
    asked = tables_asked(
        " marginals region, bin(wait, 0, 60, 240) AS w FROM visits WHERE cost > 9 ; ", CARD
    )
    assert asked is not None
    assert [key.name for key in asked.query.keys] == ["region", "w"]
    assert asked.plan(epsilon=1).names == (("region",), ("w",), ("region", "w"))
    assert tables_asked("SELECT COUNT(*) AS marginals FROM visits", CARD) is None
