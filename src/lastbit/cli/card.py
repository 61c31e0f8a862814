"""`lastbit card`: draft a data card, and check one. What is shown never comes from values."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from textwrap import fill
from typing import Any

import click

from lastbit.cli.files import check_folder
from lastbit.cli.ledger import budget_words, money
from lastbit.cli.options import PATH, group, json_option, option, refusal
from lastbit.cli.output import WIDTH, Columns, Facts, Heading, Part, printable, show, show_json
from lastbit.exact import exact_text
from lastbit.tables import (
    Column,
    Compared,
    DataCard,
    Problem,
    Source,
    columns_of,
    columns_to_draft,
    compared,
    drafted,
    examined,
    source_of,
    table_name,
)

DATABASES = (".duckdb", ".ddb", ".db")
MOST_SHOWN = 40
KEYS_WIDTH = 24
LITTLE_EPSILON = 10
LARGE_DELTA = 1e-4


@group("card new visits.parquet")
def card() -> None:
    """Draft and check data cards: what a steward declares of a table."""


@card.command(
    example="new visits.parquet --out visits.toml",
    short_help="Draft a card for files, or for a table of a DuckDB file.",
)
@click.argument("source", nargs=-1, required=True)
@option("--table", "The table, of a DuckDB file.", str)
@option("--out", "Where the card is written.", PATH)
def new(source: tuple[str, ...], table: str | None, out: Path | None) -> None:
    """Draft a card for CSV or Parquet files, or for a table of a DuckDB file.

    Only names and types of columns are looked at, never a value; a CSV file has names alone. What
    only the steward can decide is marked, and the card is refused until it is. A file that is there
    already is not replaced.
    """
    database = any(path.lower().endswith(DATABASES) for path in source)
    if table is not None and not database:
        raise refusal("--table", "is for DuckDB files", "leave it out, or name such a file")
    if database and (not table or len(source) > 1):
        remedy = "name one file, and one by --table"
        raise refusal("a DuckDB file", "has many tables", remedy)
    found = Source(kind="duckdb", paths=source, table=table) if database else source_of(*source)
    name = table_name(table.rpartition(".")[2] if table else os.path.basename(source[0]))
    target = out or Path(f"{name}.toml")
    check_folder(target)
    if os.path.lexists(target):
        raise refusal(str(target), "exists, and is not replaced", "name another by --out")
    if target.suffix.lower() != ".toml":
        raise refusal("--out", "does not end in .toml", "name it, say, visits.toml")
    columns = columns_to_draft(found, columns_of(found))
    folder = os.path.abspath(target.parent)  # the card writes paths relative to it
    paths = (p if os.path.isabs(p) else os.path.relpath(p, folder) for p in found.paths)
    text = drafted(replace(found, paths=tuple(paths)), columns, name=name)
    try:
        with target.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except OSError as error:
        problem = f"cannot be written ({error.strerror})"
        raise refusal("--out", problem, "name another file") from None
    problems = examined(target).problems
    untyped = sum(kind is None for kind in columns.values())
    count = f"{len(columns)}" + (f", {untyped} of them without a type yet" if untyped else "")
    show(
        Heading(printable(str(target), 50), f"{len(problems)} lines to decide"),
        Facts((("columns", count), ("looked at", "names and types of columns, no value"))),
        _listed(problems),
        f"Decide them in the file; then: lastbit card check {printable(str(target), 36)}",
    )


@card.command(example="check visits.toml")
@click.argument("file", type=PATH, metavar="CARD")
@json_option
@click.pass_context
def check(context: click.Context, file: Path, as_json: bool) -> None:
    """Read a card, hold it against its source, and show what it declares.

    Only names and types of the source's columns are looked at. The exit status is 0 if the card can
    be used and 2 if not: every line that is wrong or still to be decided is listed.
    """
    found = examined(file)
    beside = None if found.card is None else compared(found.card)
    problems = [*found.problems, *(() if beside is None else beside.problems(found.lines))]
    if as_json:
        fields = ("line", "where", "problem", "remedy", "undecided")
        names = ("line", "field", "problem", "remedy", "undecided")
        listed = [dict(zip(names, (getattr(p, f) for f in fields), strict=True)) for p in problems]
        notes = [] if found.card is None or beside is None else [*_notes(found.card), *beside.notes]
        show_json(
            {
                "card": file.name,
                "usable": not problems,
                "problems": listed,
                "notes": notes,
                "left_out": [] if beside is None else beside.unlisted,
            }
        )
    elif problems:
        waiting = sum(problem.undecided for problem in problems)
        wrong = len(problems) - waiting
        counts = [f"{waiting} to decide"] * bool(waiting) + [f"{wrong} wrong"] * bool(wrong)
        show(Heading(printable(file.name, 50), ", ".join(counts)), _listed(problems), err=True)
    elif found.card is not None and beside is not None:
        show(*_card_page(found.card, beside, file.parent))
    context.exit(2 if problems else 0)


def _listed(problems: Sequence[Problem]) -> Columns:
    rows: list[tuple[str, str, str]] = []
    before = ""
    for one in problems[:MOST_SHOWN]:
        told = f"decide: {one.remedy}" if one.undecided else f"{one.problem}; {one.remedy}"
        words = "likewise" if told == before else printable(told, 200)
        rows.append((str(one.line), printable(one.where, 60), words))
        before = told
    if len(problems) > MOST_SHOWN:
        rows.append(("", "...", f"and {len(problems) - MOST_SHOWN} more"))
    return Columns(("line", "field", "what to do"), rows, numbers=(0,))


def _card_page(card: DataCard, beside: Compared, folder: Path) -> list[Part]:
    """What a card declares, and what follows for those who ask."""
    users = "everybody who can read the files" if card.users is None else _names(card.users)
    unit = "each row is a different person"
    if card.unit is not None:
        groups = "" if card.max_groups is None else f" and {card.max_groups} groups"
        unit = f"{printable(card.unit, 40)}; each counts for up to {card.max_rows} rows{groups}"
    facts = [
        ("source", _place(card.source, folder)),
        ("whose rows", unit),
        ("neighbours", f"{card.neighbours.relation}: {card.neighbours.by('unit')}"),
        ("budget", "" if card.budget is None else budget_words(card.budget)),
        ("ledger", printable(_relative(card.ledger or "", folder), 200)),
        ("who may ask", users or "nobody"),
    ]
    for public in card.public.values():
        place = f"{_place(public.source, folder)}: {_names(public.columns)}"
        facts.append((f"public {printable(public.name, 20)}", place))
    for private in card.private.values():
        place = f"{_place(private.source, folder)}: {_names(private.columns)}"
        whose = f"by {printable(private.unit, 40)}, up to {private.max_rows} rows of each"
        facts.append((f"private {printable(private.name, 20)}", f"{place}; {whose}"))
    notes = [*_notes(card), *(printable(note, 300) for note in beside.notes)]
    if beside.unlisted:
        left_out = _names(beside.unlisted)
        notes.append(f"Not on the card, so nobody may ask about them: {left_out}.")
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
    unit = (card.unit or "").lower()
    others = [column for column in card.columns.values() if column.name.lower() != unit]
    numbers = [c.name for c in others if c.type in ("integer", "number") and c.bounds is None]
    if numbers:
        yield f"No bounds: {_names(numbers)}. Sums and means must name them: clamp(x, low, high)."
    keyless = [c.name for c in others if c.type in ("integer", "text", "date") and c.keys is None]
    if keyless:
        lacks = [] if card.budget is not None and card.budget.delta else ["a delta in the budget"]
        lacks += ["max_groups"] if card.unit is not None and card.max_groups is None else []
        how = f"needs {' and '.join(lacks)}" if lacks else "finds them privately, for a delta"
        yield f"No keys: {_names(keyless)}. Grouping by these {how}."
    if card.budget is not None:
        if max(card.budget.epsilon, card.budget.rho) > LITTLE_EPSILON:
            yield f"A budget of {money(card.budget)} protects little once it is spent."
        if card.budget.delta > LARGE_DELTA:
            delta = exact_text(card.budget.delta)
            yield f"A delta of {delta} is large: keep it well below 1 / units."


def _names(names: Mapping[str, Any] | Sequence[str]) -> str:
    some = [printable(name, 30) for name in list(names)[:12]]
    return ", ".join(some) + (f" and {len(names) - 12} more" if len(names) > 12 else "")


def _place(source: Source, folder: Path) -> str:
    places = ", ".join(_relative(path, folder) for path in source.paths)
    return printable(places, 200) + ("" if source.table is None else f", table {source.table}")


def _relative(path: str, folder: Path) -> str:
    """As the card wrote it, where that is shorter."""
    return min(path, os.path.relpath(path, folder), key=len)
