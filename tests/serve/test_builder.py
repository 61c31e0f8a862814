"""The question builder: whatever a form holds, one statement, read back by the parser."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest
import sqlglot
from hypothesis import given, strategies as st
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB

from lastbit.serve.builder import COMPARISONS, CUT, FUNCTIONS, TABLES, statement
from lastbit.serve.planning import plan_of
from lastbit.serve.questions import Question, Refusal
from lastbit.tables import Column, DataCard, Source, quoted

HOSTILE = (
    "x'; DROP TABLE visits; --",
    "' OR 1=1 --",
    "'' OR ''=''",
    "\\' OR 1=1 --",
    "$$; SELECT 1; $$",
    "/* */ '\"`",
    "e'\\x27'",
    "\u2019; \u02bc; \uff07",
    "a\nb\r; --",
    "{} {0} %s",
)
NAMES = ("patient", "region", "cost", "wait", "day", "at", "urgent", "order", 'a"b; --', "it's {0}")


def card(**more: Any) -> DataCard:
    columns = [
        Column(name="patient", type="integer"),
        Column(name="region", type="text", keys=("north", "south")),
        Column(name="cost", type="number", bounds=(0, 500)),
        Column(name="wait", type="integer", bounds=(0, 240), step=1),
        Column(name="day", type="date", bounds=("2026-01-01", "2026-12-31")),
        Column(name="at", type="timestamp", bounds=("2026-01-01", "2026-12-31")),
        Column(name="urgent", type="boolean"),
        Column(name="order", type="integer", bounds=(0, 9), step=1, keys=(1, 2)),
        Column(name='a"b; --', type="text", keys=("x", "y")),
        Column(name="it's {0}", type="text", keys=("x", "y")),
    ]
    return DataCard(
        name="visits",
        source=Source(kind="csv", paths=("visits.csv",)),
        unit="patient",
        max_rows=5,
        columns={column.name: column for column in columns},
        **more,
    )


CARD = card()


def plan(sql: str) -> Any:
    return plan_of(Question(sql=sql, epsilon="1", delta="1e-9"), CARD)


def parsed(sql: str) -> exp.Expression:
    """The one statement that the text is."""
    (one,) = sqlglot.parse(sql, dialect="duckdb")
    assert isinstance(one, exp.Select)
    return one


def literals(sql: str) -> list[str]:
    return [one.this for one in parsed(sql).find_all(exp.Literal)]


def test_a_form_becomes_the_statement_that_one_would_write() -> None:
    form = {
        "what1": "rows",
        "what2": "mean",
        "of2": "cost",
        "by1": "region",
        "by2": "day",
        "cut2": "month",
        "where1": "wait",
        "is1": ">",
        "value1": " 1e1 ",
    }
    assert statement(form, CARD) == (
        "SELECT region, date_trunc('month', day) AS day_month, COUNT(*) AS n,"
        " AVG(cost) AS mean_cost\nFROM visits\nWHERE wait > 10\nGROUP BY region, day_month"
    )
    assert statement({}, CARD) == "SELECT COUNT(*) AS n\nFROM visits"
    wide = statement({"by1": "wait", "cut1": "bins", "width1": "100"}, CARD)
    assert "bin(wait, 0, 100, 200, 240) AS wait_from" in wide
    assert statement({"by1": "order", "what1": "rows"}, CARD).endswith('GROUP BY "order"')


def test_every_choice_can_be_planned() -> None:
    """Each function, cut and comparison, with every column that it takes; others are refused."""
    tried = 0
    forms = [
        {f"{line}1": word, f"{of}1": name} if line == "what" else {f"{of}1": name, f"{line}1": word}
        for line, of, words in (
            ("what", "of", FUNCTIONS),
            ("cut", "by", CUT),
            ("is", "where", COMPARISONS),
        )
        for word in words
        for name in NAMES[1:]
        if word != TABLES
    ]
    values = {
        "cost": "12.5",
        "wait": "3",
        "day": "2026-02-03",
        "at": "2026-02-03 10:20",
        "order": "1",
    }
    for form in forms:
        form["value1"] = values.get(form.get("where1", ""), "true")
        try:
            sql = statement(form, CARD)
        except Refusal as refused:
            assert refused.field in ("of1", "cut1", "is1", "what1", "by1"), form
            continue
        plan(sql)
        tried += 1
    assert tried > 90
    tables = {"what1": TABLES, "by1": "region", "by2": "wait", "cut2": "bins"}
    assert statement(tables, CARD).startswith("MARGINALS region, bin(wait, 0, 24, 48,")


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("word", ["=", "<>", "contains", "starts"])
def test_a_hostile_text_is_one_literal(value: str, word: str) -> None:
    sql = statement({"where1": "region", "is1": word, "value1": value}, CARD)
    assert literals(sql) == [value.strip()]
    assert parsed(sql).args["from_"].this.name == "visits"


@given(st.text(max_size=60), st.sampled_from(NAMES), st.sampled_from(sorted(COMPARISONS)))
def test_any_value_is_literals_or_refused(value: str, name: str, word: str) -> None:
    """The tree has the shape that it has for a harmless value; its leaves alone differ."""
    try:
        sql = statement({"where1": name, "is1": word, "value1": value}, CARD)
    except Refusal:
        return
    where = parsed(sql).args["where"]
    assert {column.name for column in where.find_all(exp.Column)} == {name}
    assert len(list(where.find_all(exp.Literal, exp.Boolean))) <= (
        len(value.split(",")) if word == "in" else 1
    )
    kinds: tuple[type, ...] = (
        exp.Where,
        exp.Column,
        exp.Identifier,
        exp.Literal,
        exp.Boolean,
        exp.Neg,
        exp.Not,
    )
    kinds += (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.In, exp.Is, exp.Null)
    kinds += (exp.Contains, exp.StartsWith)
    assert all(isinstance(node, kinds) for node in where.walk())


@pytest.mark.parametrize("field", ["what1", "of1", "by1", "cut1", "width1", "where1", "is1"])
@pytest.mark.parametrize("value", HOSTILE)
def test_hostile_choices_are_refused_at_their_field(field: str, value: str) -> None:
    form = {"what1": "mean", "of1": "cost", "by1": "wait", "cut1": "bins", "where1": "region"}
    form |= {"is1": "=", "value1": "north", field: value}
    with pytest.raises(Refusal) as caught:
        statement(form, CARD)
    assert caught.value.field == field
    assert value not in caught.value.detail


@pytest.mark.parametrize("name", NAMES[1:])
def test_a_column_of_any_name_is_one_identifier(name: str) -> None:
    form = {"what1": "values", "of1": name, "where1": name, "is1": "there"}
    found = parsed(statement(form, CARD))
    assert {column.name for column in found.find_all(exp.Column)} == {name}


@pytest.mark.parametrize(
    ("form", "field", "words"),
    [
        ({"what1": "mean"}, "of1", "Choose a column"),
        ({"what1": "mean", "of1": "region"}, "of1", "is not for region, which is text"),
        ({"by1": "cost"}, "cut1", "is not for cost"),
        ({"by1": "wait", "cut1": "bins", "width1": "0.001"}, "width1", "at most 200 ranges"),
        ({"where1": "cost", "is1": ">", "value1": "much"}, "value1", "cost is a number"),
        ({"where1": "cost", "is1": ">", "value1": "1/3"}, "value1", "write 12 or 0.5"),
        ({"where1": "day", "is1": ">", "value1": "May"}, "value1", "write 2026-01-31."),
        ({"where1": "urgent", "value1": "maybe"}, "value1", "urgent is true or false"),
        ({"where1": "region", "value1": " "}, "value1", "Write a value"),
        ({"where1": "region", "is1": ">", "value1": "x"}, "is1", "is not for region"),
        ({"what1": "tables", "by1": "region"}, "what1", "need two columns"),
    ],
)
def test_what_does_not_fit_is_said_at_its_field(
    form: dict[str, str], field: str, words: str
) -> None:
    with pytest.raises(Refusal, match=words) as caught:
        statement(form, CARD)
    assert caught.value.field == field and caught.value.status == 422


def test_every_word_of_the_parsers_can_be_a_column() -> None:
    """`quoted` knows the words that are no names: each that a parser has is read back."""
    engine = duckdb.connect()
    known = engine.execute("SELECT keyword_name FROM duckdb_keywords()").fetchall()
    words = {word.lower() for word in DuckDB.Tokenizer.KEYWORDS if word.isidentifier()}
    words |= {word for (word,) in known}
    assert len(words) > 500
    for word in sorted(words):
        name = quoted(word)
        sql = f"SELECT {name}, AVG({name}) AS {name} FROM {name} WHERE {name} = 1 GROUP BY {name}"
        assert len(engine.extract_statements(sql)) == 1
        found = [column.name.lower() for column in parsed(sql).find_all(exp.Column)]
        assert found == [word] * 4, word
