"""Data cards as parts of a page, and as JSON. All of it is public: nothing comes from values."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from lastbit.cli.ledger_view import money, printable
from lastbit.exact import exact_text

if TYPE_CHECKING:
    from lastbit.cli.page import Columns, Part
    from lastbit.tables import (
        Budget,
        Column,
        ColumnType,
        Compared,
        DataCard,
        Examined,
        Problem,
        Source,
    )

MOST_SHOWN = 40
KEYS_WIDTH = 24
LITTLE_EPSILON = 10
LARGE_DELTA = 1e-4


def drafted_parts(
    target: str, found: Examined, columns: Mapping[str, ColumnType | None]
) -> tuple[Part, ...]:
    """A draft that was written: what it has, and what it waits for."""
    from lastbit.cli.page import Facts, Heading, Words

    untyped = sum(kind is None for kind in columns.values())
    told = f"{len(columns)}" + (f", {untyped} of them without a type yet" if untyped else "")
    return (
        Heading(printable(target, 50), f"{len(found.problems)} lines to decide"),
        Facts((("columns", told), ("looked at", "names and types of columns, no value"))),
        _listed(found.problems),
        Words(f"Decide them in the file; then: lastbit card check {printable(target, 36)}"),
    )


def problem_parts(name: str, problems: Sequence[Problem]) -> tuple[Part, ...]:
    """Why a card cannot be used."""
    from lastbit.cli.page import Heading

    waiting = sum(problem.undecided for problem in problems)
    wrong = len(problems) - waiting
    counts = [f"{waiting} to decide"] if waiting else []
    counts += [f"{wrong} wrong"] if wrong else []
    return Heading(printable(name, 50), ", ".join(counts)), _listed(problems)


def _listed(problems: Sequence[Problem]) -> Columns:
    from lastbit.cli.page import Columns

    rows: list[tuple[str, str, str]] = []
    before = ""
    for one in problems[:MOST_SHOWN]:
        told = f"decide: {one.remedy}" if one.undecided else f"{one.problem}; {one.remedy}"
        shown = "likewise" if told == before else printable(told, 200)
        rows.append((str(one.line), printable(one.where, 60), shown))
        before = told
    if len(problems) > MOST_SHOWN:
        rows.append(("", "...", f"and {len(problems) - MOST_SHOWN} more"))
    return Columns(("line", "field", "what to do"), tuple(rows), numbers=(0,))


def card_parts(card: DataCard, beside: Compared, folder: Path) -> tuple[Part, ...]:
    """What a card declares, and what follows for those who ask."""
    from lastbit.cli.page import WIDTH, Columns, Facts, Heading, Words

    users = "everybody who can read the files" if card.users is None else _names(card.users)
    facts = [
        ("source", _place(card.source, folder)),
        ("whose rows", _unit(card)),
        ("neighbours", f"{card.neighbours.relation}: {card.neighbours.by('unit')}"),
        ("budget", "" if card.budget is None else money(card.budget)),
        ("ledger", printable(_relative(card.ledger or "", folder), 200)),
        ("who may ask", users or "nobody"),
    ]
    for public in card.public.values():
        place = f"{_place(public.source, folder)}: {_names(public.columns)}"
        facts.append((f"public {printable(public.name, 20)}", place))
    rows = tuple(_row(column) for column in card.columns.values())
    heading = ("column", "type", "bounds", "keys", "missing")
    notes = "\n".join(
        fill(note, WIDTH, initial_indent="- ", subsequent_indent="  ")
        for note in [*_notes(card), *map(_plain, beside.notes), *_left_out(beside)]
    )
    parts: list[Part] = [
        Heading(printable(card.name, 40), "can be used"),
        Facts(tuple(facts)),
        Columns(heading, rows),
    ]
    return (*parts, Words(notes)) if notes else tuple(parts)


def _unit(card: DataCard) -> str:
    if card.unit is None:
        return "each row is somebody else's"
    groups = "" if card.max_groups is None else f" and {card.max_groups} groups"
    return f"{printable(card.unit, 40)}; each counts for up to {card.max_rows} rows{groups}"


def _row(column: Column) -> tuple[str, ...]:
    bounds = ""
    if column.bounds is not None:
        bounds = " to ".join(map(exact_text, column.bounds))
        whole = column.type == "integer" and column.step == 1
        bounds += f", step {exact_text(column.step)}" if column.step and not whole else ""
    keys = ""
    if column.keys is not None:
        listed = ", ".join(str(key) for key in column.keys[:KEYS_WIDTH])
        keys = f"{len(column.keys)}: {printable(listed, KEYS_WIDTH)}"
    missing = "may be" if column.nullable else "never"
    return printable(column.name, 24), column.type, bounds, keys, missing


def _notes(card: DataCard) -> Iterator[str]:
    """What an analyst will run into, and numbers that promise little."""
    others = [column for column in card.columns.values() if not _is_unit(column, card)]
    numbers = [c.name for c in others if c.type in ("integer", "number") and c.bounds is None]
    if numbers:
        yield f"No bounds: {_names(numbers)}. Sums and means must name them: clamp(x, low, high)."
    keyless = [c.name for c in others if c.type in ("integer", "text", "date") and c.keys is None]
    if keyless:
        lacks = [] if card.budget is not None and card.budget.delta else ["a delta in the budget"]
        lacks += ["max_groups"] if card.unit is not None and card.max_groups is None else []
        how = f"needs {' and '.join(lacks)}" if lacks else "finds them privately, for a delta"
        yield f"No keys: {_names(keyless)}. Grouping by these {how}."
    yield from _weak(card.budget)


def _weak(budget: Budget | None) -> Iterator[str]:
    if budget is None:
        return
    if max(budget.epsilon, budget.rho) > LITTLE_EPSILON:
        yield f"A budget of {money(budget)} protects little once it is spent."
    if budget.delta > LARGE_DELTA:
        yield f"A delta of {exact_text(budget.delta)} is large: keep it well below 1 / units."


def _left_out(beside: Compared) -> Iterator[str]:
    if beside.unlisted:
        yield f"Not on the card, so nobody may ask about them: {_names(beside.unlisted)}."


def _plain(note: str) -> str:
    return printable(note, 300)


def _is_unit(column: Column, card: DataCard) -> bool:
    return card.unit is not None and column.name.lower() == card.unit.lower()


def _names(names: Mapping[str, Any] | Sequence[str]) -> str:
    some = [printable(name, 30) for name in list(names)[:12]]
    return ", ".join(some) + (f" and {len(names) - 12} more" if len(names) > 12 else "")


def _place(source: Source, folder: Path) -> str:
    places = ", ".join(_relative(path, folder) for path in source.paths)
    return printable(places, 200) + ("" if source.table is None else f", table {source.table}")


def _relative(path: str, folder: Path) -> str:
    """As the card wrote it, where that is shorter."""
    return min(path, os.path.relpath(path, folder), key=len)


def card_json(
    name: str, card: DataCard | None, problems: Sequence[Problem], beside: Compared | None
) -> dict[str, Any]:
    """For programs: whether it can be used, and if not, why."""
    return {
        "card": name,
        "usable": not problems,
        "problems": [
            {
                "line": one.line,
                "field": one.where,
                "problem": one.problem,
                "remedy": one.remedy,
                "undecided": one.undecided,
            }
            for one in problems
        ],
        "notes": [] if card is None or beside is None else [*_notes(card), *beside.notes],
        "left_out": [] if beside is None else beside.unlisted,
    }
