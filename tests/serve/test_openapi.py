"""The schemas that check what is sent, and the document that is made of them."""

import json
import re
from typing import Any

import pytest
from hypothesis import given, strategies as st

from lastbit.serve import api
from lastbit.serve.openapi import document
from lastbit.serve.routes import CALLS, RIGHTS
from lastbit.serve.schemas import KEY, KEYWORDS, PAGED, SCHEMAS, problem_in

QUESTION = {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": "1"}
GOOD = {
    "Question": (
        QUESTION,
        {"sql": "SELECT 1", "within": {"n": "100"}, "delta": "1e-9", "weights": "balanced"},
        {"sql": "SELECT 1", "rho": "1/3", "epsilon": None, "fresh": True, "weights": {"n": "2"}},
    ),
    "Role": ({"role": "analyst"},),
    "Limit": ({}, {"epsilon": "1", "period": "month"}, {"rho": "0.5", "period": None}),
    "TokenWish": ({"name": "x", "days": 1}, {"name": "x", "days": 366, "rights": ["ask"]}),
}
BAD: Any = (
    ("Question", [], "the body is not an object"),
    ("Question", {}, "sql is missing"),
    ("Question", {**QUESTION, "sql": ""}, "sql is empty"),
    ("Question", {**QUESTION, "sql": "x" * 16385}, "more than 16384"),
    ("Question", {**QUESTION, "epsilon": 1}, "epsilon is not a string or null"),
    ("Question", {**QUESTION, "epsilon": "-1"}, "not an exact number"),
    ("Question", {**QUESTION, "epsilon": "1\n"}, "not an exact number"),
    ("Question", {**QUESTION, "epsilon": "١"}, "not an exact number"),
    ("Question", {**QUESTION, "epsilon": "1" * 61}, "more than 60"),
    ("Question", {**QUESTION, "price": "1"}, "a name that is not known"),
    ("Question", {**QUESTION, "within": ["1"]}, "none of the forms"),
    ("Question", {**QUESTION, "within": {"n": 1}}, "none of the forms"),
    ("Question", {**QUESTION, "weights": "equal"}, "none of the forms"),
    ("Question", {**QUESTION, "fresh": 1}, "fresh is not a boolean"),
    ("Role", {"role": "owner"}, "not one of"),
    ("Role", {"role": True}, "role is not a string"),
    ("Limit", {"period": "hour"}, "period is not one of"),
    ("TokenWish", {"name": "x", "days": True}, "days is not an integer"),
    ("TokenWish", {"name": "x", "days": 0}, "less than 1"),
    ("TokenWish", {"name": "x", "days": 367}, "more than 366"),
    ("TokenWish", {"name": "x", "days": 1, "tables": ["a"] * 101}, "more than 100 items"),
    ("TokenWish", {"name": "x", "days": 1, "rights": ["all"]}, "an item of rights is not one of"),
)


def _parts(schema):
    yield schema
    for one in [*schema.get("anyOf", ()), *schema.get("properties", {}).values()]:
        yield from _parts(one)
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            yield from _parts(schema[name])


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas_use_known_keywords_and_names_alone(name):
    for part in _parts(SCHEMAS[name]):
        assert set(part) <= KEYWORDS
        if "$ref" in part:
            assert part["$ref"].removeprefix("#/components/schemas/") in SCHEMAS
        assert set(part.get("required", ())) <= set(part.get("properties", {}))


def test_what_is_sent_has_no_names_but_those_of_its_schema():
    for route in CALLS:
        if route.body is not None:
            assert SCHEMAS[route.body]["additionalProperties"] is False


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, vs in GOOD.items() for v in vs])
def test_good_values_pass(name, value):
    assert problem_in(value, SCHEMAS[name]) is None


@pytest.mark.parametrize(("name", "value", "words"), BAD)
def test_bad_values_are_named_and_not_quoted(name, value, words):
    problem = problem_in(value, SCHEMAS[name])
    assert problem is not None and words in problem
    if isinstance(value, dict):
        for part in value.values():
            if isinstance(part, str) and len(part) > 20:
                assert part not in problem


SENT = sorted({route.body for route in CALLS if route.body is not None})
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4)
    | st.sampled_from(["1", "1/3", "1e-9", "balanced", "month", "ask", "1.5.", "-1", "1/", "1\n"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)  # fmt: skip


@pytest.mark.parametrize("name", SENT)
def test_the_validator_agrees_with_json_schema(name):
    jsonschema = pytest.importorskip("jsonschema_rs", reason="needs make serve-tests")
    defined = {"components": {"schemas": dict(SCHEMAS)}}
    theirs = jsonschema.Draft202012Validator({"$ref": f"#/components/schemas/{name}", **defined})
    for value in [*GOOD[name], *(value for one, value, _ in BAD if one == name)]:
        assert (problem_in(value, SCHEMAS[name]) is None) == theirs.is_valid(value), value

    @given(st.sampled_from(GOOD[name]), st.data())
    def agree(good, data):
        fields = [*SCHEMAS[name]["properties"], "other"]
        changed = data.draw(st.dictionaries(st.sampled_from(fields), ANY, max_size=2))
        value = {**good, **changed}
        assert (problem_in(value, SCHEMAS[name]) is None) == theirs.is_valid(value)

    agree()


def test_every_call_has_a_handler_and_is_in_the_document():
    made = json.loads(json.dumps(document()))
    found = {
        (method.upper(), path): operation
        for path, methods in made["paths"].items()
        for method, operation in methods.items()
    }
    assert len(found) == len(CALLS)
    names = [operation["operationId"] for operation in found.values()]
    assert len(set(names)) == len(names)
    for route in CALLS:
        operation = found[route.method, re.sub(r":[a-z]+", "", route.path)]
        assert f"{operation['summary']}." == getattr(api, route.handler).__doc__
        assert str(route.status) in operation["responses"]
        assert ("requestBody" in operation) == (route.body is not None)
        assert (operation.get("security") == []) == (route.right == "open")
        told = {p["name"] for p in operation["parameters"] if p["in"] == "path"}
        assert told == set(re.findall(r"\{([a-z]+)", route.path))
    assert set(PAGED) <= {route.handler for route in CALLS}


def test_rights_in_the_document_are_those_of_the_list():
    assert set(SCHEMAS["TokenLine"]["properties"]["rights"]["items"]["enum"]) == RIGHTS["steward"]


def test_keys_are_plain():
    for good in ("a", "x" * 128, "3f-9_a.b:c"):
        assert problem_in(good, KEY) is None
    for bad in ("", "x" * 129, "a b", "a\n", 'a"', "é"):
        assert problem_in(bad, KEY) is not None
