"""Every engine writes its own SQL: nothing of another one's is inherited, and none is forgotten."""

import hashlib
import re
from abc import ABC
from typing import get_args

import pytest

from lastbit.errors import QueryRefused
from lastbit.tables.backends.drivers import dialect_of
from lastbit.tables.card.schema import EngineName
from lastbit.tables.compile.dialect import Dialect
from lastbit.tables.compile.rows import CompiledRows
from lastbit.tables.query.expression import ColumnType
from lastbit.tables.query.query import Aggregate, Query
from tests.engines.running import card_of
from tests.engines.values import KINDS, calls

ENGINES = get_args(EngineName)
ABSTRACT = sorted(Dialect.__abstractmethods__)
SETTINGS = sorted(Dialect.__annotations__)
TEXTS = {
    "duckdb": (1, "67fda5cc60def5ce"),
    "postgres": (1, "fef9014d9e9a261d"),
    "spark": (1, "3a62cb386966e5c3"),
}
"""The version of each dialect, and the digest of its text."""


def own_body(name):
    return {n: v for n, v in vars(type(dialect_of(name))).items() if n != "__abstractmethods__"}


@pytest.mark.parametrize("name", ENGINES)
def test_an_engine_that_forgets_a_method_cannot_be_made(name):
    body = own_body(name)
    type("Whole", (Dialect,), body)()
    for forgotten in ABSTRACT:
        without = {n: value for n, value in body.items() if n != forgotten}
        with pytest.raises(TypeError, match=rf"abstract method '?{forgotten}\b"):
            type("Forgetful", (Dialect,), without)()


@pytest.mark.parametrize("name", ENGINES)
def test_an_engine_that_forgets_a_setting_has_none(name):
    body = own_body(name)
    for forgotten in SETTINGS:
        without = type("Forgetful", (Dialect,), {n: v for n, v in body.items() if n != forgotten})
        with pytest.raises(AttributeError, match=forgotten):
            getattr(without(), forgotten)


@pytest.mark.parametrize("name", ENGINES)
def test_no_engine_is_made_of_another_or_changes_what_is_alike(name):
    kind = type(dialect_of(name))
    assert kind.__mro__ == (kind, Dialect, ABC, object)
    public = {n for n, value in vars(Dialect).items() if callable(value) and n[0] != "_"}
    alike = {n for n in public if getattr(getattr(Dialect, n), "__final__", False)}
    assert alike == public - set(ABSTRACT)  # whatever is not abstract is final
    assert not alike & set(vars(kind))


def test_what_is_final_differs_in_names_of_types_and_of_the_size_of_texts_only():
    for kind in get_args(ColumnType):
        found = set()
        for dialect in map(dialect_of, ENGINES):
            texts = [dialect.missing(kind), dialect.concat_if_short(["c1", "c2", "c3"])]
            texts += [] if kind == "number" else [dialect.checked("c1", kind)]  # which is `not_nan`
            sizes = re.sub(r"\b(strlen|octet_length)\(", "size(", "\n".join(texts))
            found.add(re.sub(rf"\b{dialect.types[kind]}\)", "TYPE)", sizes))
        assert len(found) == 1, found


def text_of(call, dialect):
    query = Query(table="t", aggregates=(Aggregate(name="n", function="count"),))
    types = {f"{place}_{kind}": kind for place in "abc" for kind in KINDS}
    try:
        rows = CompiledRows(query, card_of(types), dialect=dialect)
        value = rows.value(call)
        return "\n".join([*rows.sources(), *rows.stages(), rows.expressions(), value.sql])
    except QueryRefused as refusal:
        return str(refusal)


@pytest.mark.parametrize("name", ENGINES)
def test_the_text_is_that_of_this_version(name):
    """Another text needs another digest here; one with another meaning, another version too."""
    dialect = dialect_of(name)
    texts = [text_of(call, dialect) for call in calls()]
    assert len(texts) > 1_000
    digest = hashlib.sha256("\n\n".join(texts).encode()).hexdigest()
    assert (dialect.version, digest[:16]) == TEXTS[name]
