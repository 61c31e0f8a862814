"""What a question is, for the books: all that its answer depends on except the noise.

Law      two questions have one digest if and only if they have the same query, price, limits, unit,
         the way to it, neighbours, types of the columns they read, names of tables, and data
Theorem  so a reservation is resumed, and an answer repeated, for the very question it was paid for
Checked  tests/kernel/test_question.py
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from lastbit.canonical import digest_of
from lastbit.kernel.program import PairDraws, Program
from lastbit.tables import DataCard

Json: TypeAlias = Mapping[str, Any]


def question_of_program(program: Program, data: str | None) -> str:
    """The digest of what a program asks of these data."""
    question = question_of(json.loads(program.asked), program.card, data)
    if program.marginals is None:
        return question
    names = [key.name for key in program.scan.keys]
    tables = [[names[place] for place in one] for one in program.marginals]
    pairs = sum(step.picks for step in program.steps if isinstance(step, PairDraws))
    return digest_of({"question": question, "marginals": tables, "pairs": pairs})


def question_of(asked: Json, card: DataCard, data: str | None) -> str:
    """The same of what a record says was asked, by a card with the limits of its plan."""
    query = asked["query"]
    public = [card.public[name].source for name in sorted(card.public)]
    private = [
        [name, one.unit, one.max_rows, one.source.table]
        for name, one in sorted(card.private.items())
    ]
    read = {name.lower() for table, name in columns_named(query) if table is None}
    way = [
        [step, one.source.table, sorted(p for p in one.columns.items() if p[0].lower() in read)]
        for step, one in zip(card.way(), card.through, strict=True)
    ]
    limits = [card.unit, card.max_rows, card.max_groups, card.neighbours.relation]
    return digest_of(
        {
            "query": digest_of(query),
            "asked": {name: asked[name] for name in asked if name not in ("sql", "query")},
            "card": [card.name, *limits],
            "types": _types(set(columns_named(query)), card),
            "tables": [source.table for source in (card.source, *public)],
            "data": data,
            **({"private": private} if private else {}),
            **({"through": way} if way else {}),
        }
    )


def columns_named(query: Json) -> Iterator[tuple[str | None, str]]:
    """The columns of the table (None) and of joined ones that a query reads."""
    aggregates = (part["expression"] for part in query["aggregates"])
    keys = (key["expression"] for key in query["keys"])
    places = [query["where"], query.get("per_unit"), *query["joins"]]
    yield from _columns([*places, *keys, *aggregates])


def _columns(data: Any) -> Iterator[tuple[str | None, str]]:
    if isinstance(data, Mapping):
        if isinstance(data.get("column"), str):
            yield data.get("table"), data["column"]
            return
        data = list(data.values())
    for part in data if isinstance(data, list) else ():
        yield from _columns(part)


def _types(mentioned: set[tuple[str | None, str]], card: DataCard) -> list[list[str]]:
    """How the card reads the columns that matter: it decides whether 007 is a number or text.

    Bounds, steps, keys and missing values are in the query; types are on the card alone.
    """
    if card.unit is not None:
        mentioned = mentioned | {(None, card.unit)}
    mentioned |= {(None, own) for one in card.through for own, _ in one.on}
    tables: dict[str | None, Mapping[str, str]] = {
        name: {column.lower(): kind for column, kind in public.columns.items()}
        for name, public in card.public.items()
    }
    protected = {name: table.columns for name, table in card.private.items()}
    for name, columns in (*protected.items(), (None, card.columns)):
        tables[name] = {column.name.lower(): column.stored_type for column in columns.values()}
    return sorted(
        [table or "", name, tables.get(table, {}).get(name.lower()) or ""]
        for table, name in mentioned
    )
