"""`lastbit card`: draft a data card, and check one. What is shown never comes from values."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import fill

import click

from lastbit.cli.drafting import listed_names, new, open_lines
from lastbit.cli.ledger import budget_words, money
from lastbit.cli.options import PATH, group, json_option
from lastbit.cli.output import WIDTH, Columns, Facts, Heading, Part, printable, show, show_json
from lastbit.cli.preparing import prepare, state_words, unprepare
from lastbit.cli.tune import profile, tune
from lastbit.exact import exact_text
from lastbit.place_names import is_address
from lastbit.tables import (
    Column,
    ColumnName,
    Compared,
    DataCard,
    EngineLimits,
    Source,
    compared,
    examined,
    known_values,
    prepared_state,
    taken_from_data,
)

KEYS_WIDTH = 24
LITTLE_EPSILON = 10
LARGE_DELTA = 1e-4


@group("card new visits.parquet")
def card() -> None:
    """Draft and check data cards: what a steward declares of a table."""


card.add_command(new)
card.add_command(prepare)
card.add_command(profile)
card.add_command(tune)
card.add_command(unprepare)


@card.command(example="check visits.toml")
@click.argument("file", type=PATH, metavar="CARD")
@json_option
@click.pass_context
def check(context: click.Context, file: Path, as_json: bool) -> None:
    """Read a card, hold it against its source, and show what it declares.

    Only names and types of the source's columns are looked at. The exit status is 0 if the card can
    be used, else 2. It lists every line that is wrong or still to be decided.
    """
    found = examined(file)
    marks = _marks(file) if found.card is not None else []
    beside = None if found.card is None else compared(found.card)
    problems = [*found.problems, *(() if beside is None else beside.problems(found.lines))]
    if as_json:
        fields = ("line", "where", "problem", "remedy", "undecided")
        names = ("line", "field", "problem", "remedy", "undecided")
        listed = [dict(zip(names, (getattr(p, f) for f in fields), strict=True)) for p in problems]
        notes, ready = [], None if found.card is None else prepared_state(found.card)
        if found.card is not None and beside is not None:
            notes = [*_notes(found.card), *marks, *beside.notes]
        show_json(
            {
                "card": file.name,
                "usable": not problems,
                "problems": listed,
                "notes": notes,
                "left_out": [] if beside is None else beside.unlisted,
                **({} if ready is None else {"prepared": ready.ready}),
            }
        )
    elif problems:
        waiting = sum(problem.undecided for problem in problems)
        wrong = len(problems) - waiting
        counts = [f"{waiting} to decide"] * bool(waiting) + [f"{wrong} wrong"] * bool(wrong)
        show(Heading(printable(file.name, 50), ", ".join(counts)), open_lines(problems), err=True)
    elif found.card is not None and beside is not None:
        show(*_card_page(found.card, beside, file.parent, marks))
    context.exit(2 if problems else 0)


def _marks(file: Path) -> list[str]:
    """What the card marks as taken from the data."""
    fields = taken_from_data(file.read_text("utf-8-sig"))
    if not fields:
        return []
    what = listed_names(fields)
    return [f"Taken from the data: {what}. These tell about people, and no noise covers them."]


def _card_page(card: DataCard, beside: Compared, folder: Path, marks: Sequence[str]) -> list[Part]:
    """What a card declares, and what follows for those who ask."""
    users = "everybody who can read the files" if card.users is None else listed_names(card.users)
    ready = prepared_state(card)
    unit = "each row is a different person"
    if card.unit is not None:
        groups = "" if card.max_groups is None else f" and {card.max_groups} groups"
        unit = f"{printable(card.unit, 40)}; each counts for up to {card.max_rows} rows{groups}"
        if card.max_rows_open:
            unit = f"{printable(card.unit, 40)}; a profile chooses how many rows of each count"
    facts = [
        ("source", _place(card.source, folder)),
        ("whose rows", unit),
        ("neighbours", f"{card.neighbours.relation}: {card.neighbours.by('unit')}"),
        ("budget", "" if card.budget is None else budget_words(card.budget)),
        *([] if card.account is None else [("account", printable(card.account, 60))]),
        ("ledger", printable(_relative(card.ledger or "", folder), 200)),
        ("who may ask", users or "nobody"),
        *(("engine", words) for words in _engine(card.engine_limits, folder)),
        *([] if ready is None else [("prepared", state_words(ready))]),
    ]
    for one in card.through:
        pairs = ", ".join(f"{own} = {other}" for own, other in one.on)
        place = f"{_place(one.source, folder)}: {listed_names(list(one.columns.values()))}"
        facts.append((f"through {printable(one.name, 20)}", f"{place}; by {printable(pairs, 60)}"))
    for public in card.public.values():
        place = f"{_place(public.source, folder)}: {listed_names(public.columns)}"
        facts.append((f"public {printable(public.name, 20)}", place))
    for private in card.private.values():
        place = f"{_place(private.source, folder)}: {listed_names(private.columns)}"
        whose = f"by {printable(private.unit, 40)}, up to {private.max_rows} rows of each"
        facts.append((f"private {printable(private.name, 20)}", f"{place}; {whose}"))
    notes = [*_notes(card), *marks, *(printable(note, 300) for note in beside.notes)]
    if beside.unlisted:
        left_out = listed_names(beside.unlisted)
        notes.append(f"Not on the card, so no question can use them: {left_out}.")
    parts: list[Part] = [
        Heading(printable(card.name, 40), "can be used"),
        Facts(facts),
        Columns(
            ("column", "type", "bounds", "keys", "missing"),
            [_row(c) for c in card.columns.values()],
        ),
    ]
    folded = (fill(note, WIDTH, initial_indent="- ", subsequent_indent="  ") for note in notes)
    return [*parts, "\n".join(folded)] if notes else parts


def _engine(limits: EngineLimits, folder: Path) -> Iterator[str]:
    """What the card says of the database, in one text; nothing if it says nothing."""
    words = [] if limits.max_memory is None else [f"up to {limits.max_memory} of memory"]
    words += [] if limits.threads is None else [f"{limits.threads} threads"]
    if limits.spill_folder is not None or limits.max_spill is not None:
        most = "" if limits.max_spill is None else f" up to {limits.max_spill}"
        to = limits.spill_folder
        words += [f"spills{most}" + ("" if to is None else f" to {_relative(to, folder)}")]
    words += [] if limits.index else ["no index of rows per unit"]
    if words:
        yield printable(", ".join(words), 200)


def _row(column: Column) -> tuple[str, ...]:
    bounds = ""
    if column.bounds is not None:
        days = column.number_bounds is None
        bounds = " to ".join(map(str if days else exact_text, column.bounds))  # type: ignore[arg-type]
        whole = column.type == "integer" and column.step == 1
        bounds += f", step {exact_text(column.step)}" if column.step and not whole else ""
    keys = ""
    if column.keys is not None:
        listed = ", ".join(str(key) for key in column.keys[:KEYS_WIDTH])
        keys = f"{len(column.keys)}: {printable(listed, KEYS_WIDTH)}"
    missing = "may be" if column.nullable else "never"
    return printable(column.name, 24), column.stored_type, bounds, keys, missing


def _notes(card: DataCard) -> Iterator[str]:
    """What an analyst will run into, and numbers that promise little."""
    unit = (card.unit or "").lower()
    others = [column for column in card.columns.values() if column.name.lower() != unit]
    numbers = [c.name for c in others if c.type in ("integer", "number") and c.bounds is None]
    if numbers:
        words = "Sums and means choose them from a profile, or name them: clamp(x, low, high)."
        yield f"No bounds: {listed_names(numbers)}. {words}"
    keyless = [
        c.name
        for c in others
        if c.type in ("integer", "text") or (c.type == "date" and c.bounds is None)
        if known_values(ColumnName(c.name), card) is None
    ]
    if keyless:
        lacks = [] if card.budget is not None and card.budget.delta else ["a delta in the budget"]
        how = f"needs {' and '.join(lacks)}" if lacks else "finds them privately, for a delta"
        yield f"No keys: {listed_names(keyless)}. Grouping by these {how}."
    if card.budget is not None:
        if max(card.budget.epsilon, card.budget.rho) > LITTLE_EPSILON:
            yield f"A budget of {money(card.budget)} protects little once it is spent."
        if card.budget.delta > LARGE_DELTA:
            delta = exact_text(card.budget.delta)
            yield f"A delta of {delta} is large: keep it well below 1 / units."


def _place(source: Source, folder: Path) -> str:
    fixed = source.kind == "postgres"
    places = ", ".join(p if fixed else _relative(p, folder) for p in source.paths)
    return printable(places, 200) + ("" if source.table is None else f", table {source.table}")


def _relative(path: str, folder: Path) -> str:
    """As the card wrote it, where that is shorter."""
    if is_address(path):
        return path
    return min(path, os.path.relpath(path, folder), key=len)
