"""`lastbit card`: draft a data card, and check one. What is shown never comes from values."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from textwrap import fill
from typing import Any, TypeVar, cast

import click

from lastbit.cli.files import check_folder
from lastbit.cli.ledger import budget_words, money
from lastbit.cli.options import PATH, exact_number, flag, group, json_option, option, refusal
from lastbit.cli.output import WIDTH, Columns, Facts, Heading, Part, printable, show, show_json
from lastbit.cli.tune import profile, tune
from lastbit.errors import InvalidParameter
from lastbit.exact import exact_text
from lastbit.place_names import is_address
from lastbit.tables import (
    TYPES,
    Column,
    ColumnName,
    ColumnType,
    Compared,
    DataCard,
    Decided,
    EngineLimits,
    Problem,
    Source,
    columns_of,
    columns_to_draft,
    compared,
    drafted,
    examined,
    known_values,
    source_of,
    table_name,
)

RELATIONS = ("add-remove", "change-one")
EACH_ROW = "\0each row"  # no column is called so
Answer = TypeVar("Answer")

MOST_SHOWN = 40
KEYS_WIDTH = 24
LITTLE_EPSILON = 10
LARGE_DELTA = 1e-4


@group("card new visits.parquet")
def card() -> None:
    """Draft and check data cards: what a steward declares of a table."""


card.add_command(profile)
card.add_command(tune)


@card.command(
    example="new visits.parquet --out visits.toml",
    short_help="Draft a card for files, or for a table of a DuckDB file or a server.",
)
@click.argument("source", nargs=-1, required=True)
@option("--table", "The table, of a DuckDB file or a server.", str)
@option("--unit", "The column that says whose row it is.", "COLUMN")
@flag("--each-row", "Each row is a different person: no column says so.")
@option("--max-rows", "How many rows of one unit count in full.", click.IntRange(1))
@option("--neighbours", "What is hidden: that a unit is there, or what its rows say.", RELATIONS)
@option("--epsilon", "What all answers together may cost.", "NUMBER")
@option("--delta", "The same, for undeclared keys and Gaussian noise.", "NUMBER")
@option("--types", "Types of columns, of CSV files above all.", "NAME=TYPE,...")
@option("--out", "Where the card is written.", PATH)
def new(
    source: tuple[str, ...], table: str | None, types: str | None, out: Path | None, **said: Any
) -> None:
    """Draft a card for CSV or Parquet files or folders, or a table of a DuckDB file or a server.

    Only names and types of columns are looked at, never a value; a CSV file has names alone. What
    only the steward can decide is taken from the options; on a terminal the rest is asked for, and
    Enter leaves it open. What stays open is marked, and the card is refused until it is decided. A
    file that is there already is not replaced.
    """
    found = source_of(*source, table=table)
    base = os.path.basename(os.path.normpath((found.paths or source)[0]))
    name = table_name(found.table.rpartition(".")[2] if found.table else base)
    target = out or Path(f"{name}.toml")
    check_folder(target)
    if os.path.lexists(target):
        raise refusal(str(target), "exists, and is not replaced", "name another by --out")
    if target.suffix.lower() != ".toml":
        raise refusal("--out", "does not end in .toml", "name it, say, visits.toml")
    columns = columns_to_draft(found, columns_of(found))
    columns |= _types(types, columns)
    decided = _decided(columns, **said)
    if _on_terminal():
        decided, columns = _asked(decided, columns)
    folder = os.path.abspath(target.parent)  # the card writes paths relative to it
    fixed = found.kind == "postgres"
    paths = (p if fixed or os.path.isabs(p) else os.path.relpath(p, folder) for p in found.paths)
    text = drafted(replace(found, paths=tuple(paths)), columns, name=name, decided=decided)
    try:
        with target.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except OSError as error:
        problem = f"cannot be written ({error.strerror})"
        raise refusal("--out", problem, "name another file") from None
    problems = examined(target).problems
    untyped = sum(kind is None for kind in columns.values())
    count = f"{len(columns)}" + (f", {untyped} of them without a type yet" if untyped else "")
    then = f"lastbit card check {printable(str(target), 36)}"
    open_lines = [_listed(problems)] if problems else []
    show(
        Heading(
            printable(str(target), 50),
            f"{len(problems)} lines to decide" if problems else "all is decided",
        ),
        Facts((("columns", count), ("looked at", "names and types of columns, no value"))),
        *open_lines,
        f"Decide them in the file; then: {then}" if problems else f"Next: {then}",
    )


def _on_terminal() -> bool:
    """Whether a person is there to be asked: nothing may wait in a pipe."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def _types(text: str | None, columns: Mapping[str, Any]) -> dict[str, ColumnType | None]:
    """Types as they were written: cost=number,day=date."""
    found: dict[str, ColumnType | None] = {}
    for part in text.split(",") if text else ():
        name, _, kind = (word.strip() for word in part.rpartition("="))
        column = _column(name, columns, "--types")
        if kind not in TYPES:
            problem = f"has an unknown type for {printable(column, 40)}"
            raise refusal("--types", problem, f"write one of {', '.join(TYPES)}")
        found[column] = kind
    return found


def _column(name: str, columns: Mapping[str, Any], option: str) -> str:
    for column in columns:
        if column.lower() == name.lower():
            return column
    raise refusal(option, "names no column of the source", f"use one of {_names(columns)}")


def _decided(
    columns: Mapping[str, Any],
    *,
    unit: str | None,
    each_row: bool,
    max_rows: int | None,
    neighbours: str | None,
    epsilon: str | None,
    delta: str | None,
) -> Decided:
    """What the options say, checked as the card will be."""
    if each_row and (unit is not None or max_rows is not None):
        remedy = "leave out --unit and --max-rows, or --each-row"
        raise refusal("--each-row", "says that each row is a unit, and there is more", remedy)
    for name, number in (("--epsilon", epsilon), ("--delta", delta)):
        if number is not None:
            _positive(number, name)
    return Decided(
        unit=None if unit is None else _column(unit, columns, "--unit"),
        each_row=each_row,
        max_rows=max_rows,
        neighbours=neighbours,
        epsilon=epsilon or "",
        delta=delta or "",
    )


def _asked(
    decided: Decided, columns: Mapping[str, ColumnType | None]
) -> tuple[Decided, dict[str, ColumnType | None]]:
    """What is still open, asked for on the terminal; Enter leaves it so."""
    click.echo("What only you can decide. Enter leaves a question open, for the card.")
    found = decided
    if found.unit is None and not found.each_row:
        words = "Whose row is it: which column says so, or 'row' if each row is a different person"
        unit = _prompted(words, lambda text: _unit(text, columns))
        found = replace(found, each_row=unit == EACH_ROW, unit=None if unit == EACH_ROW else unit)
    if not found.each_row and found.max_rows is None:
        words = "How many rows of one unit count in full; left open, a profile chooses it"
        rows = _prompted(words, _at_least_one)
        found = replace(found, max_rows=rows)
    if found.neighbours is None:
        words = f"Hide whether a unit is there (add-remove), or what it says ({RELATIONS[1]})"
        found = replace(found, neighbours=_prompted(words, _among(RELATIONS)))
    if not found.epsilon:
        epsilon = _prompted("Epsilon of all answers together (1 is common)", _positive)
        found = replace(found, epsilon=epsilon or "")
    typed = dict(columns)
    for column, kind in columns.items():
        if kind is None:
            words = f"Type of {printable(column, 40)} ({', '.join(TYPES)})"
            typed[column] = cast(Any, _prompted(words, _among(TYPES)))
    return found, typed


def _prompted(words: str, read: Callable[[str], Answer]) -> Answer | None:
    """What was typed, read; asked again while it cannot be, None if nothing was."""
    while text := click.prompt(words, default="", show_default=False).strip():
        try:
            return read(text)
        except (InvalidParameter, ValueError) as error:
            remedy = getattr(error, "remedy", "try again, or press Enter")
            click.echo(f"  {getattr(error, 'problem', 'is not known')}; {remedy}")
    return None


def _unit(text: str, columns: Mapping[str, Any]) -> str:
    known = {column.lower() for column in columns}
    return EACH_ROW if text.lower() == "row" not in known else _column(text, columns, "--unit")


def _at_least_one(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise refusal("it", "is not a whole number from 1 up", "write, say, 20")
    return int(text)


def _positive(text: str, name: str = "--epsilon") -> str:
    if not exact_number(text, name) > 0:
        raise refusal(name, "is not above 0", "write, say, 1")
    return text


def _among(words: Sequence[str]) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in words:
            raise refusal("it", "is not known", f"write one of {', '.join(words)}")
        return text

    return read


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
    ]
    for one in card.through:
        pairs = ", ".join(f"{own} = {other}" for own, other in one.on)
        place = f"{_place(one.source, folder)}: {_names(list(one.columns.values()))}"
        facts.append((f"through {printable(one.name, 20)}", f"{place}; by {printable(pairs, 60)}"))
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
    return printable(column.name, 24), column.type, bounds, keys, missing


def _notes(card: DataCard) -> Iterator[str]:
    """What an analyst will run into, and numbers that promise little."""
    unit = (card.unit or "").lower()
    others = [column for column in card.columns.values() if column.name.lower() != unit]
    numbers = [c.name for c in others if c.type in ("integer", "number") and c.bounds is None]
    if numbers:
        words = "Sums and means choose them from a profile, or name them: clamp(x, low, high)."
        yield f"No bounds: {_names(numbers)}. {words}"
    keyless = [
        c.name
        for c in others
        if c.type in ("integer", "text") or (c.type == "date" and c.bounds is None)
        if known_values(ColumnName(c.name), card) is None
    ]
    if keyless:
        lacks = [] if card.budget is not None and card.budget.delta else ["a delta in the budget"]
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
    fixed = source.kind == "postgres"
    places = ", ".join(p if fixed else _relative(p, folder) for p in source.paths)
    return printable(places, 200) + ("" if source.table is None else f", table {source.table}")


def _relative(path: str, folder: Path) -> str:
    """As the card wrote it, where that is shorter."""
    if is_address(path):
        return path
    return min(path, os.path.relpath(path, folder), key=len)
