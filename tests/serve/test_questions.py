"""JSON that is a question, and JSON that is not."""

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from lastbit import ledger, tables
from lastbit.serve.problems import of_place
from lastbit.serve.questions import Question, Refusal
from lastbit.serve.schemas import question_of as asked

SQL = {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": "1"}
WRONG: list[Any] = [
    None, [], "SELECT", {}, {"sql": ""}, {"sql": " \n"}, {"sql": 3, "epsilon": "1"},
    {"epsilon": "1"}, {"sql": "SELECT 1"}, {**SQL, "table": "visits"}, {**SQL, "epsilon": 1},
    {**SQL, "epsilon": 0.5}, {**SQL, "epsilon": True}, {**SQL, "epsilon": "-1"},
    {**SQL, "epsilon": "nan"}, {**SQL, "epsilon": "1e9999"}, {**SQL, "epsilon": "1" * 61},
    {**SQL, "epsilon": "１"}, {**SQL, "delta": ""}, {**SQL, "rho": []}, {**SQL, "fresh": 1},
    {**SQL, "fresh": None}, {**SQL, "weights": "heavy"}, {**SQL, "weights": {}},
    {**SQL, "weights": {"n": None}}, {**SQL, "weights": {"n": 2}}, {**SQL, "within": [1]},
    {**SQL, "within": {str(n): "1" for n in range(101)}}, {**SQL, "sql": "\ud800"},
    {**SQL, "sql": "é" * 9000},
]  # fmt: skip


@pytest.mark.parametrize("data", WRONG)
def test_what_is_not_a_question_is_refused_with_a_remedy(data):
    with pytest.raises(Refusal) as caught:
        asked(data)
    assert caught.value.status == 422 and ";" in caught.value.detail


numbers = st.sampled_from(["1", "0.5", "1/3", "1e-9", "25E+2", "3."])
questions = st.builds(
    Question,
    sql=st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip),
    epsilon=numbers,
    delta=st.none() | numbers,
    rho=st.none() | numbers,
    within=st.none() | numbers | st.dictionaries(st.text("ab", max_size=3), numbers, min_size=1),
    weights=st.sampled_from([None, "balanced", {"n": "2"}]),
    fresh=st.booleans(),
)


@given(questions)
def test_a_question_survives_its_json(question):
    sent = json.loads(json.dumps(question.to_json()))
    assert Question(**sent) == question
    assert sent.pop("part") is None  # which part of several, nobody who asks may say
    assert asked(sent) == question
    with pytest.raises(Refusal, match="a name that is not known"):
        asked({**sent, "part": 0})


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(
        st.sampled_from(["sql", "epsilon", "within", "weights", "x"]), inner),
))  # fmt: skip
def test_any_json_is_a_question_or_refused(data):
    try:
        assert isinstance(asked(data), Question)
    except Refusal as refused:
        assert refused.status == 422


def test_every_error_that_says_where_data_are_is_known_by_its_beginning():
    """Whoever adds one with a path, an address or a table's place in it begins it so."""
    rooms = Path(tables.__file__).parent, Path(ledger.__file__).parent
    files = [*(rooms[0] / "backends").rglob("*.py"), rooms[1] / "storage.py"]
    found = []
    for node in (node for file in files for node in ast.walk(ast.parse(file.read_text("utf-8")))):
        if not (isinstance(node, ast.Call) and ast.unparse(node.func) == "InvalidParameter"):
            continue
        named = {one.id for one in ast.walk(node.args[0]) if isinstance(one, ast.Name)}
        if named & {"path", "place", "address", "folder"}:
            found.append(ast.unparse(node.args[0]).removeprefix("f").strip("'\""))
    assert len(found) > 5 and all(map(of_place, found)), found
