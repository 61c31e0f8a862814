"""Drafts: nothing of the data is in them, and no name breaks out of its quotes."""

from __future__ import annotations

import tomllib
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import example, given, strategies as st

from lastbit.errors import CardRefused, InvalidParameter
from lastbit.tables.card.draft import columns_to_draft, drafted, table_name
from lastbit.tables.card.read import card_from
from lastbit.tables.card.schema import Source
from lastbit.tables.card.source import source_of

SOURCE = Source(kind="parquet", paths=("visits.parquet",))
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
TYPES = st.sampled_from(["integer", "number", "text", "boolean", "date", "timestamp", None])


def decided(draft: str) -> str:
    """The draft, with an answer wherever it asks."""
    for old, new in (
        ('neighbours = "decide"', 'neighbours = "add-remove"'),
        ('column = "decide"\n', "each_row = true\n"),
        ('epsilon = "decide"', "epsilon = 1"),
    ):
        assert draft.count(old) == 1
        draft = draft.replace(old, new)
    return draft.replace('type = "decide"', 'type = "text"')


@given(columns=st.dictionaries(NAMES, TYPES, min_size=1, max_size=5), name=NAMES, file=NAMES)
@example(columns={'x"]\n[budget]\nepsilon = 9 #': None}, name="a\n[unit]", file="b\n[unit]\n")
@example(columns={"decide": "text", "columns": None, "a.b": "integer"}, name="v", file="v")
def test_any_names_are_quoted(columns, name, file):
    source = Source(kind="csv", paths=(file,))
    data = tomllib.loads(drafted(source, columns, name=name))
    assert set(data) == {"table", "unit", "budget", "ledger", "columns"}
    assert data["table"] == {"name": name, "source": file, "neighbours": "decide"}
    assert data["columns"] == {
        column: {"type": kind or "decide"} for column, kind in columns.items()
    }


def test_a_draft_is_refused_until_everything_is_decided():
    draft = drafted(SOURCE, {"id": "integer", "x": None}, name="v")
    with pytest.raises(CardRefused) as caught:
        card_from(draft, folder=Path())
    told = str(caught.value)
    assert told.count("is still to be decided") == told.count("line ") == 4
    card = card_from(decided(draft), folder=Path())
    assert (card.name, card.ledger) == ("v", str(Path("v.ledger").absolute()))
    assert [column.type for column in card.columns.values()] == ["integer", "text"]


def test_each_question_alone_makes_it_refused():
    whole = decided(drafted(SOURCE, {"id": "integer"}, name="v"))
    for answer, question in (
        ('neighbours = "add-remove"', 'neighbours = "decide"'),
        ("each_row = true\n", 'column = "decide"\nmax_rows = 3\n'),
        ("each_row = true\n", 'column = "id"\nmax_rows = "decide"\n'),
        ("epsilon = 1", 'epsilon = "decide"'),
        ('type = "integer"', 'type = "decide"'),
    ):
        assert whole.count(answer) == 1
        with pytest.raises(CardRefused, match="is still to be decided"):
            card_from(whole.replace(answer, question), folder=Path())


@pytest.mark.parametrize(
    "source",
    [
        SOURCE,
        Source(kind="csv", paths=("a.csv", "../b c.csv")),
        Source(kind="duckdb", paths=("x'.duckdb",), table='t "u"'),
    ],
)
def test_every_source_is_read_back(source):
    card = card_from(decided(drafted(source, {"a": "text"}, name="v")), folder=Path())
    assert card.source == source


def test_what_a_draft_proposes_in_comments_is_a_card_too():
    """Each example behind a # has the form that the reader wants."""
    draft = decided(drafted(SOURCE, {"n": "number", "t": "text"}, name="v"))
    draft = draft.replace("each_row = true", 'column = "t"')
    for comment in (
        "# max_rows = 20",
        "# max_groups = 3",
        "# delta = 1e-9",
        "# bounds = [0, 100]",
        '# keys = ["a", "b"]',
        '# users = ["ana", "ben"]   #',
        "# [access]",
    ):
        assert comment in draft
        draft = draft.replace(comment, comment.removeprefix("# "))
    card = card_from(draft, folder=Path())
    assert (card.max_rows, card.max_rows_open, card.max_groups) == (20, False, 3)
    assert card.users == ("ana", "ben") and card.columns["t"].keys == ("a", "b")
    assert card.columns["n"].bounds == (Fraction(0), Fraction(100))
    assert card.budget is not None and card.budget.kind == "approx"


def test_a_csv_file_states_no_types():
    csv, parquet = source_of("v.csv"), source_of("v.parquet")
    assert columns_to_draft(csv, {"a": "text"}) == {"a": None}
    assert columns_to_draft(parquet, {"a": "integer", "1": "text"}) == {"a": "integer", "1": "text"}


@pytest.mark.parametrize(
    "value",
    ["73211", "-1.5", "1,5", "1e-3", "3 %", "2026-01-31", "2026-01-31 10:00:00", "ada@example.org"],
)
def test_a_first_row_of_values_is_not_taken_for_names(value):
    with pytest.raises(InvalidParameter, match="looks like a row of values") as caught:
        columns_to_draft(source_of("v.csv"), {"north": "text", value: "text"})
    assert value not in str(caught.value) and "north" not in str(caught.value)


def test_names_with_digits_are_names():
    names = ["age_2", "q1", "E", "e10", "x.y", "no. 5", "é", "nan", "-"]
    assert list(columns_to_draft(source_of("v.csv"), dict.fromkeys(names, "text"))) == names


@given(st.text(max_size=20))
@example("")
@example("2026 visits.CSV.gz")
def test_a_table_name_needs_no_quotes(text):
    name = table_name(text)
    assert name.isascii() and name.isidentifier()
