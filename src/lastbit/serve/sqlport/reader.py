"""The child that reads statements: which table one is about, what its answer's columns are.

    python -m lastbit.serve.sqlport.reader MEMORY CARD ...

Law      a statement is of the catalogue if it names relations of pg_catalog and information_schema
         alone, or none, and functions of a list; else it is private, and goes to the desk as it is,
         or is refused. It is never both
Theorem  (no row)  No task reads a row. `read` and `columns` depend on the statement, the cards and
         the names of tables that the asker may see; `show` on an answer of the ledger besides
Proof    cards are read, sources are not opened: `plan_of` is the server's planner. The database of
         `catalogue.py` is made of names and types, and cannot open files
Checked  tests/serve/test_sqlport.py, tests/serve/test_sqlport_catalogue.py
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from lastbit.errors import LastbitError
from lastbit.ledger import Connections, Ledger
from lastbit.release import Answer, Table, columns_to_release, served
from lastbit.serve.child import Message, Parent, limited, seconds_left
from lastbit.serve.planning import card_at, payable_plan, plan_of
from lastbit.serve.questions import Question
from lastbit.serve.sqlport.catalogue import Catalogue
from lastbit.serve.sqlport.examples import examples
from lastbit.serve.sqlport.lexing import parameters_apart
from lastbit.serve.sqlport.rewriting import Wrong
from lastbit.serve.sqlport.values import FLOAT8, INT8, OF_KINDS, TEXT, VARCHAR
from lastbit.tables import (
    ColumnName,
    ColumnType,
    DataCard,
    Plan,
    card_types,
    columns_named,
    parameter_columns,
    parameter_kinds,
    rows_of,
    tables_named,
    type_of,
    with_values,
)

_SECONDS = 5
_COUNTS = ("count", "count_units", "count_distinct", "histogram")
_ENDS = ("low", "high", "whole_low", "whole_high")
_KINDS: Mapping[int, ColumnType] = MappingProxyType(
    {
        **{number: kind for kind, number in OF_KINDS.items()},  # type: ignore[misc]  # kinds are texts
        **dict.fromkeys((21, 23, 26), "integer"),
        **dict.fromkeys((700, 1700), "number"),
        **dict.fromkeys((VARCHAR, 19, 1042, 705), "text"),
        1184: "timestamp",
    }
)
Cards: TypeAlias = Mapping[str, DataCard]
_CONNECTIONS = Connections()


# ---------------------------------------------------------------- what a statement is


def read(cards: Cards, request: Message) -> Message:
    """A catalogue question with its result, or the table and text of a private one."""
    seen = {name: cards[name] for name in request["tables"] if name in cards}
    sql, types, values = request["sql"], request["types"], request["values"]
    catalogue = _catalogue(seen)
    found = catalogue.asked(sql, types, values, request["user"])
    if found is not None:
        return found
    private = _private(sql, types, values, seen)
    if catalogue.is_named_in(sql):  # the desk would refuse it too, but for want of a price first
        problem = "a table and the catalogue cannot be asked in one statement"
        raise Wrong("0A000", problem, hint="ask each in a statement of its own")
    return private


_MOST_KEPT = 16


@lru_cache(maxsize=_MOST_KEPT)
def _catalogue_of(*cards: _ByName) -> Catalogue:
    return Catalogue([one.card for one in cards])


@dataclass(frozen=True, slots=True)
class _ByName:
    """A card, told apart from others by its name: a process reads each once."""

    name: str
    card: DataCard = field(compare=False)


def _catalogue(seen: Cards) -> Catalogue:
    """The catalogue of these tables; a few are kept."""
    return _catalogue_of(*(_ByName(name, seen[name]) for name in sorted(seen)))


def _private(sql: str, types: Sequence[int], values: Sequence[Any] | None, seen: Cards) -> Message:
    sql = parameters_apart(sql)
    card = _card_of(tables_named(sql), seen)
    kinds = parameter_kinds(sql, lambda name: _column_kind(card, name))
    sent = [*types, *[0] * (len(kinds) - len(types))]
    numbers = [number or OF_KINDS[kind] for number, kind in zip(sent, kinds, strict=False)]
    known = [_KINDS.get(number) for number in numbers]
    if None in known:
        place = known.index(None) + 1
        problem = f"parameter ${place} is of a type that is not known here"
        raise Wrong("0A000", problem, hint="send it as a number, a text, a date or a boolean")
    told = [kind for kind in known if kind is not None]
    given = examples(told, parameter_columns(sql), card) if values is None else [values]
    written = [with_values(sql, list(zip(told, one, strict=False))) for one in given]
    return {"private": {"table": card.name, "sql": written}, "parameters": numbers}


def _card_of(names: Sequence[str], seen: Cards) -> DataCard:
    """The card that a statement with these tables is about: one that may be seen."""
    lowered = [name.lower() for name in names]
    for card in seen.values():
        if card.name.lower() in lowered:
            return card
    for card in seen.values():
        if lowered and {name.lower() for name in (*card.public, *card.protected)} >= set(lowered):
            return card
    if not names:
        raise Wrong("42601", "the statement names no table", hint="write SELECT ... FROM ...")
    problem = f'relation "{names[0][:60]}" does not exist'
    detail = "or you have no allowance for it; a steward can give one"
    raise Wrong("42P01", problem, detail, "SELECT table_name FROM information_schema.tables")


def _column_kind(card: DataCard, name: str) -> ColumnType | None:
    """The type of a column of the card, or of one of its other tables."""
    for columns in _columns(card):
        for column, kind in columns.items():
            if column.lower() == name.lower():
                return kind
    return None


def _columns(card: DataCard) -> list[dict[str, ColumnType]]:
    own = {name: column.type for name, column in card.columns.items()}
    others: list[Any] = [*card.private.values(), *card.public.values()]
    found = [own]
    for one in others:
        found.append({n: getattr(c, "type", c) for n, c in one.columns.items()})
    return found


# ---------------------------------------------------------------- what its answer has


def columns(cards: Cards, request: Message) -> Message:
    """The columns that an answer will have: of the first question of these that can be asked."""
    card, asked = cards[request["table"]], [Question(**one) for one in request["questions"]]
    for question in asked[:-1]:
        with suppress(LastbitError):
            return _columns_of(question, card, intervals=request["intervals"])
    return _columns_of(asked[-1], card, intervals=request["intervals"])


def _columns_of(question: Question, card: DataCard, *, intervals: bool) -> Message:
    """Of the plan, without a row and without a charge."""
    plan = plan_of(question, card)
    if not isinstance(plan, Plan):
        raise Wrong("0A000", "several tables at once cannot be told here", hint="write one SELECT")
    asked = Table(rows=rows_of(card)).sql(question.sql)
    told = columns_to_release(plan)
    if asked.view is not None:
        keys = [{"name": one.name, "role": "key"} for one in asked.view.keys]
        told = [*keys, *(one for one in told if one["role"] == "value" and asked.view.numbers)]
    layout = _layout(told, asked, intervals=intervals)
    return {"columns": [[name, number] for name, number, *_ in layout]}


def show(cards: Cards, request: Message) -> Message:
    """The rows of an answer on record, as its question shows them."""
    card, question = cards[request["table"]], Question(**request["question"])
    ledger = Ledger.existing(str(card.ledger), connections=_CONNECTIONS)
    entry = ledger.entry(request["entry"])
    record, asked = dict(entry.record or {}), Table(rows=rows_of(card)).sql(question.sql)
    part = None
    if record["asked"]["query"] != asked.query.to_json():
        data = ledger.accepted_data(card.account_name, card.name)
        plan = payable_plan(question, card, ledger, data)
        part = served(record, plan, sql=question.sql) if isinstance(plan, Plan) else None
        if (
            part is None
            and isinstance(plan, Plan)
            and record["asked"]["query"] != (plan.query.to_json())
        ):
            raise Wrong("58000", f"answer {entry.sequence} cannot be shown as a table")
    answer = Answer(record, shown=part, view=asked.view)
    seen = answer.part or record
    layout = _layout(seen["columns"], asked, intervals=request["intervals"])
    rows = []
    for row in answer:
        cells = []
        for _, number, place, end in layout:
            if end is None:
                cells.append(_json(row.keys[place], number))
            else:
                cells.append(_json(getattr(row.cells[place], end), number))
        rows.append(cells)
    return {"columns": [[name, number] for name, number, *_ in layout], "rows": rows}


Place: TypeAlias = tuple[str, int, int, str | None]
"""A column of a result: name, type, which key or number it is, and which part of a number."""


def _layout(told: Sequence[Mapping[str, Any]], asked: Table, *, intervals: bool) -> list[Place]:
    """The columns of a result, in the order of SELECT where that is known."""
    kinds = _key_kinds(asked)
    keys = [one for one in told if one["role"] == "key"]
    numbers = [one for one in told if one["role"] == "value"]
    found: dict[str, list[Place]] = {}
    for place, one in enumerate(keys):
        number = OF_KINDS.get(kinds.get(one["name"]) or "text", TEXT)
        found[one["name"]] = [(one["name"], number, place, None)]
    used = {one["name"].lower() for one in told}
    for place, one in enumerate(numbers):
        whole = one["function"] in _COUNTS
        name = one["name"]
        own: list[Place] = [(name, INT8 if whole else FLOAT8, place, "value")]
        for end in _ENDS if intervals else ():
            free = f"{name}_{end}"
            while free.lower() in used:
                free += "_"
            used.add(free.lower())
            own.append((free, FLOAT8, place, end))
        found[name] = own
    names = columns_named(asked.sql_text or "") or []
    ordered = [one for one in names if one in found]
    if len(set(ordered)) != len(ordered):
        ordered = []
    rest = [name for name in found if name not in ordered]
    return [place for name in (*ordered, *rest) for place in found[name]]


def _key_kinds(asked: Table) -> dict[str, ColumnType | None]:
    """The types of keys, by name."""
    if asked.view is not None:
        kinds: dict[object, ColumnType | None] = {
            ColumnName(name): kind for name, kind in asked.view.released
        }
        return {one.name: kinds.get(one.expression) for one in asked.view.keys}
    types = card_types(asked.card)
    return {key.name: type_of(key.expression, types) for key in asked.query.keys}


def _json(value: Any, number: int) -> Any:
    """A value as JSON has it, of the type that its column is said to have."""
    if value is None or isinstance(value, bool):
        return value
    if number == INT8:
        return int(value)
    if number == FLOAT8:
        return float(value)
    return str(value)


# ---------------------------------------------------------------- the process


_TASKS: Mapping[str, Callable[[Cards, Message], Message]] = MappingProxyType(
    {
        "read": read,
        "columns": columns,
        "show": show,
    }
)


def main(memory: int, paths: list[str]) -> None:
    """Run as a child."""
    parent = Parent()
    found = [card_at(Path(path)) for path in paths]
    spark = any(card.source.engine == "spark" for card in found)  # Java reserves more than it uses
    limited(memory=None if spark else memory)
    cards = {card.name: card for card in found}
    _catalogue(cards).asked("SELECT 1", [], None, "")  # what is slow the first time

    def do(request: Message) -> Message:
        seconds_left(_SECONDS)
        try:
            return _TASKS[request["do"]](cards, request)
        except Wrong as error:
            return {"wrong": error.told}

    parent.serve(do)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
