"""What the database itself reads in a statement, looked at before it is run.

`rewriting.py` prints what one parser has read, and another one, the database's, reads that. Where
they differ, a text could say to one what it hides from the other: it is enough that a letter
(U+200B) is a blank to one of them.

Law      a statement is run if every node that the database finds in it is of `KINDS`, every
         relation one of the layout's or of its own WITH, and every function of `CALLED` or ours
Theorem  (deny by default)  what is run reads relations that `catalogue.py` made, writes none, and
         calls functions of the lists
Proof    DuckDB says what it has read (`json_serialize_sql`), by the parser that it runs statements
         with. What is of no list is refused, so that a new version can only be asked less
Checked  tests/serve/test_sqlport_catalogue.py
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from lastbit.serve.sqlport.names import CALLED, KINDS, MADE
from lastbit.serve.sqlport.rewriting import OF_WITH, PLACES, PREFIX, Wrong, unknown_function


def check_read(database: Any, sql: str, relations: Collection[str]) -> None:
    """Refuse a statement in which the database reads anything of no list."""
    (answer,) = database.execute("SELECT json_serialize_sql(?)", [sql]).fetchone()
    read = json.loads(answer)
    if read["error"] or len(read["statements"]) != 1:
        raise Wrong("42601", "this question about the catalogue is not understood")
    places = {
        f"{PLACES[schema]}.{name}" for schema, _, name in (one.partition(".") for one in relations)
    }
    for node in _nodes(read["statements"]):
        _check_node(node, places)


def _nodes(tree: Any) -> Iterator[Mapping[str, Any]]:
    """All that has a kind."""
    left = [tree]
    while left:
        one = left.pop()
        left += one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        if isinstance(one, dict) and isinstance(one.get("type"), str):
            yield one


def _check_node(node: Mapping[str, Any], places: Collection[str]) -> None:
    if node["type"] not in KINDS:
        kind = node["type"].lower().replace("_", " ")[:60]
        raise Wrong("0A000", f"a question about the catalogue has no {kind}")
    if "function_name" in node or node["type"] == "FUNCTION":
        _check_function(node)
    if node["type"] == "BASE_TABLE":
        schema, name = node["schema_name"], node["table_name"]
        of_with = not schema and name.startswith(OF_WITH)
        if node["catalog_name"] or not (of_with or f"{schema}.{name}" in places):
            raise Wrong("42P01", "a relation is not one of the catalogue")


def _check_function(node: Mapping[str, Any]) -> None:
    name = node["function_name"].lower()
    ours = name.startswith(PREFIX) and name.removeprefix(PREFIX) in MADE
    if node["schema"] or node["catalog"] or not (ours or name in CALLED):
        raise unknown_function(node["function_name"])
