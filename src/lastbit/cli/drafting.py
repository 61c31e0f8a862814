"""`lastbit card new`: a draft of a card from names and types, or by a look at the values."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast

import click

from lastbit.cli.files import check_folder
from lastbit.cli.options import PATH, command, exact_number, flag, option, refusal
from lastbit.cli.output import Columns, Facts, Heading, Part, printable, show
from lastbit.cli.prompting import Question, prompted
from lastbit.cli.proposing import proposal_rows, review_columns, unit_words
from lastbit.tables import (
    TYPES,
    ColumnProposal,
    ColumnType,
    Decided,
    Problem,
    Source,
    StoredType,
    columns_of,
    columns_to_draft,
    drafted,
    examined,
    likely_unit,
    proposals,
    rounded_rows,
    source_of,
    table_look,
    table_name,
    unit_look,
)

RELATIONS = ("add-remove", "change-one")
EACH_ROW = "\0each row"  # no column is called so
MOST_SHOWN = 40
Typed = dict[str, StoredType | None]
LOOKING = (
    "--look shows values of the data on this terminal. Bounds and keys that you take over stand in"
    " the card. They tell about people, and no noise covers them: correct them to what everybody"
    " knows, wherever you can."
)
TAKEN = (
    "Lines marked as taken from the data tell about people, and no noise covers them. Replace them"
    " by what everybody knows, wherever you can."
)
WAITING = "Bounds and keys that the look proposes stand behind a #. Take it away to declare them."


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a look proposes, and whether the steward has taken it."""

    rows: int
    unit: str | None
    columns: Mapping[str, ColumnProposal]
    offered: Mapping[str, ColumnProposal]
    """Of all columns of the source, also those that --columns leaves out."""
    accepted: bool


@command(
    "card new visits.parquet --out visits.toml",
    short_help="Draft a card for files, or for a table of a DuckDB file or a server.",
)
@click.argument("source", nargs=-1, required=True)
@option("--table", "The table, of a DuckDB file or a server.", str)
@flag("--look", "Look at the values: propose types, bounds, keys, the unit and rows.")
@flag("--yes", "Take all that is proposed of columns and rows, and ask nothing.")
@option("--columns", "Only these columns, and the unit's.", "NAME,...")
@option("--types", "Types of columns, of CSV files above all.", "NAME=TYPE,...")
@option("--unit", "The column that says whose row it is.", "COLUMN")
@flag("--each-row", "Each row is a different person: no column says so.")
@option("--max-rows", "How many rows of one unit count in full.", click.IntRange(1))
@option("--neighbours", "What is hidden: that a unit is there, or what its rows say.", RELATIONS)
@option("--epsilon", "What all answers together may cost.", "NUMBER")
@option("--delta", "The same, for undeclared keys and Gaussian noise.", "NUMBER")
@option("--rows", "About how many rows there are, as everybody knows.", click.IntRange(1))
@option("--out", "Where the card is written.", PATH)
def new(
    source: tuple[str, ...],
    table: str | None,
    look: bool,
    yes: bool,
    columns: str | None,
    types: str | None,
    out: Path | None,
    **said: Any,
) -> None:
    """Draft a card for CSV or Parquet files or folders, or a table of a DuckDB file or a server.

    Only names and types of columns are looked at, never a value; a CSV file has names alone. With
    --look the steward looks at the values: types, bounds and keys are proposed, and corrected on a
    terminal. The card marks what comes from the data. Else nothing of the data is shown.

    The options hold what only the steward can decide; a terminal asks for the rest. What stays open
    is marked, and the card is refused until it is decided. A file that is there already is not
    replaced.
    """
    place = source_of(*source, table=table)
    base = os.path.basename(os.path.normpath((place.paths or source)[0]))
    name = table_name(place.table.rpartition(".")[2] if place.table else base)
    target = out or Path(f"{name}.toml")
    _check_target(target)
    if yes and not look:
        raise refusal("--yes", "takes what a look proposes, and there is none", "add --look")
    typed = columns_to_draft(place, columns_of(place))
    said_types = _types(types, typed)
    typed |= said_types
    decided = _decided(typed, **said)
    typed = _chosen(columns, typed, decided.unit)
    seen = None
    if look:
        chosen = columns is not None
        seen = _look(place, typed, said_types, decided, chosen=chosen, yes=yes)
    terminal = _on_terminal() and not yes
    if terminal and seen is None:
        decided, typed = _ask_open(decided, typed)
    elif seen is not None:
        if terminal:
            seen = _review(name, _with_unit(seen, decided.unit))
            decided = _ask_proposed(decided, seen, place)
        decided = _with_rows(decided, seen)
        seen = _with_unit(seen, decided.unit)
        typed = {name: column.stored_type for name, column in seen.columns.items()}
    _write(target, _text(place, typed, target, name=name, decided=decided, seen=seen))
    show(*_page(target, typed, seen))


def _check_target(target: Path) -> None:
    check_folder(target)
    if os.path.lexists(target):
        raise refusal(str(target), "exists, and is not replaced", "name another by --out")
    if target.suffix.lower() != ".toml":
        raise refusal("--out", "does not end in .toml", "name it, say, visits.toml")


def _text(
    place: Source,
    typed: Typed,
    target: Path,
    *,
    name: str,
    decided: Decided,
    seen: Seen | None,
) -> str:
    """The card; its paths are relative to it."""
    folder, fixed = os.path.abspath(target.parent), place.kind == "postgres"
    paths = (p if fixed or os.path.isabs(p) else os.path.relpath(p, folder) for p in place.paths)
    proposed = None if seen is None else seen.columns
    return drafted(
        replace(place, paths=tuple(paths)),
        typed,
        name=name,
        decided=decided,
        proposed=proposed,
        accepted=seen is not None and seen.accepted,
    )


def _write(target: Path, text: str) -> None:
    try:
        with target.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except OSError as error:
        problem = f"cannot be written ({error.strerror})"
        raise refusal("--out", problem, "name another file") from None


def _page(target: Path, typed: Typed, seen: Seen | None) -> list[Part]:
    """What was drafted, and what is left to decide."""
    problems = examined(target).problems
    then = f"lastbit card check {printable(str(target), 36)}"
    lines = "1 line" if len(problems) == 1 else f"{len(problems)} lines"
    heading = f"{lines} to decide" if problems else "all is decided"
    parts: list[Part] = [Heading(printable(str(target), 50), heading)]
    if seen is None:
        untyped = sum(kind is None for kind in typed.values())
        count = f"{len(typed)}" + (f", {untyped} of them without a type yet" if untyped else "")
        looked = "names and types of columns, no value"
        parts.append(Facts((("columns", count), ("looked at", looked))))
    else:
        left_out = [column.name for column in seen.columns.values() if column.left_out]
        facts = [("columns", str(len(seen.columns) - len(left_out)))]
        facts += [("left out", listed_names(left_out))] if left_out else []
        facts.append(("looked at", "the values (--look)"))
        parts.append(Facts(facts))
        if not seen.accepted and not _on_terminal():
            parts.append(Columns(("column", "type", "proposed"), proposal_rows(seen.columns)))
    if problems:
        parts.append(open_lines(_with_likely_unit(problems, seen)))
    if seen is not None and any(column.from_data for column in seen.columns.values()):
        parts.append(TAKEN if seen.accepted else WAITING)
    if seen is None and None in typed.values():
        parts.append("Types can be proposed by a look at the values: add --look, if you may look.")
    parts.append(f"Decide them in the file; then: {then}" if problems else f"Next: {then}")
    return parts


def _on_terminal() -> bool:
    """Whether a person is there to be asked: nothing may wait in a pipe."""
    return sys.stdin.isatty() and sys.stdout.isatty()


# ---------------------------------------------------------------- what options say


def _types(text: str | None, columns: Mapping[str, Any]) -> dict[str, ColumnType]:
    """Types as they were written: cost=number,day=date."""
    found: dict[str, ColumnType] = {}
    for part in text.split(",") if text else ():
        name, _, kind = (word.strip() for word in part.rpartition("="))
        column = _column(name, columns, "--types")
        if kind not in TYPES:
            problem = f"has an unknown type for {printable(column, 40)}"
            raise refusal("--types", problem, f"write one of {', '.join(TYPES)}")
        found[column] = kind
    return found


def _chosen(text: str | None, typed: Typed, unit: str | None) -> Typed:
    """The columns that --columns names, and the unit's, in the order of the source."""
    if text is None:
        return typed
    wanted = {_column(name.strip(), typed, "--columns") for name in text.split(",")} | {unit}
    return {name: kind for name, kind in typed.items() if name in wanted}


def _column(name: str, columns: Mapping[str, Any], option: str) -> str:
    for column in columns:
        if column.lower() == name.lower():
            return column
    if not name:
        raise refusal(
            option, "names no column of the source", f"use one of {listed_names(columns)}"
        )
    lowered = {column.lower(): column for column in columns}
    near = get_close_matches(name.lower(), lowered, n=1)
    remedy = f"did you mean {lowered[near[0]]}?" if near else f"use one of {listed_names(columns)}"
    raise refusal(option, f"names {printable(name, 40)}, which is no column of the source", remedy)


def _decided(
    columns: Mapping[str, Any],
    *,
    unit: str | None,
    each_row: bool,
    max_rows: int | None,
    neighbours: str | None,
    epsilon: str | None,
    delta: str | None,
    rows: int | None,
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
        rows=rows,
    )


# ---------------------------------------------------------------- what is asked


UNIT = "Whose row is it? A column, or 'row' if each row is a different person."
MAX_ROWS = "How many rows of one unit count in full? Left open, a profile chooses it."
NEIGHBOURS = "Hide whether a unit is there (add-remove), or what its rows say (change-one)?"
EPSILON = "Epsilon of all answers together. 1 is common, 10 protects little."
DELTA = "Delta, to find groups that have no keys; well below 1 / units. Or 'none'."
ROWS = "About how many rows are there, for everybody to read?"


def _unit_question(columns: Mapping[str, Any]) -> Question[str]:
    return Question("unit", lambda text: _unit(text, columns), UNIT)


def _ask_open(decided: Decided, columns: Typed) -> tuple[Decided, Typed]:
    """What is still open, asked for on the terminal; Enter leaves it so."""
    click.echo("What only you can decide. Enter leaves a question open, for the card.\n")
    answered = decided
    if answered.unit is None and not answered.each_row:
        answered = _with_answer(answered, prompted(_unit_question(columns)))
    if not answered.each_row and answered.max_rows is None:
        rows = prompted(Question("max_rows", _at_least_one, MAX_ROWS))
        answered = replace(answered, max_rows=rows)
    if answered.neighbours is None:
        relation = prompted(Question("neighbours", _among(RELATIONS), NEIGHBOURS))
        answered = replace(answered, neighbours=relation)
    if not answered.epsilon:
        epsilon = prompted(Question("epsilon", _positive, EPSILON))
        answered = replace(answered, epsilon=epsilon or "")
    typed = dict(columns)
    if None in typed.values():
        click.echo(f"Types of columns: {', '.join(TYPES)}. (--look proposes them.)")
    for column, kind in columns.items():
        if kind is None:
            question = Question(f"type of {printable(column, 40)}", _among(TYPES))
            typed[column] = cast(Any, prompted(question))
    return answered, typed


def _with_answer(decided: Decided, unit: str | None) -> Decided:
    return replace(decided, each_row=unit == EACH_ROW, unit=None if unit == EACH_ROW else unit)


# ---------------------------------------------------------------- by a look


def _look(
    place: Source,
    typed: Typed,
    said: Mapping[str, ColumnType],
    decided: Decided,
    *,
    chosen: bool,
    yes: bool,
) -> Seen:
    """What the values propose; types that were said hold, and columns that were named stay."""
    look = table_look(place)
    offered = proposals(look)
    unit = likely_unit(look, offered)
    if decided.unit is not None or decided.each_row:
        unit = decided.unit
    columns = {}
    for name, column in offered.items():
        if name in typed or name == unit:
            kept = column.with_type(said.get(name, column.type))
            columns[name] = replace(kept, left_out="") if chosen or name in said else kept
    return Seen(
        rows=rounded_rows(look.rows), unit=unit, columns=columns, offered=offered, accepted=yes
    )


def _review(name: str, seen: Seen) -> Seen:
    """The proposals shown on the terminal, and corrected there."""
    show(Heading(printable(name, 50), f"about {seen.rows:,} rows"), LOOKING)
    click.echo()
    return replace(seen, columns=review_columns(seen.columns, unit=seen.unit), accepted=True)


def _ask_proposed(decided: Decided, seen: Seen, place: Source) -> Decided:
    """What only the steward can decide; Enter takes what stands in brackets."""
    click.echo("\nWhat only you can decide. Enter takes what stands in brackets.\n")
    answered = decided
    if answered.unit is None and not answered.each_row:
        unit = prompted(_unit_question(seen.offered), default=seen.unit or "")
        answered = _with_answer(answered, unit)
    if answered.unit is not None:
        units = unit_look(place, answered.unit)
        show(unit_words(units))
        if answered.max_rows is None:
            most = "1" if units.largest == 1 else ""
            rows = prompted(Question("max_rows", _at_least_one, MAX_ROWS), default=most)
            answered = replace(answered, max_rows=rows)
    if answered.neighbours is None:
        question = Question("neighbours", _among(RELATIONS), NEIGHBOURS)
        answered = replace(answered, neighbours=prompted(question, default=RELATIONS[0]))
    if not answered.epsilon:
        epsilon = prompted(Question("epsilon", _positive, EPSILON), default="1")
        answered = replace(answered, epsilon=epsilon or "")
    if not answered.delta:
        small = f"1e-{len(str(seen.rows)) + 2}"
        delta = prompted(Question("delta", _positive_or_none, DELTA), default=small)
        answered = replace(answered, delta="" if delta in (None, NONE) else delta)
    if answered.rows is None:
        rows = prompted(Question("rows", _at_least_one, ROWS), default=str(seen.rows))
        answered = replace(answered, rows=rows, rows_from_data=rows == seen.rows)
    return answered


NONE = "none"


def _positive_or_none(text: str) -> str:
    return NONE if text.lower() == NONE else _positive(text, "--delta")


def _with_rows(decided: Decided, seen: Seen) -> Decided:
    """The rows and the unit that were seen, where nobody has said them."""
    likely = seen.unit
    if decided.rows is not None:
        return replace(decided, likely_unit=likely)
    return replace(decided, rows=seen.rows, rows_from_data=True, likely_unit=likely)


def _with_unit(seen: Seen, unit: str | None) -> Seen:
    """The unit's column is on the card, and has neither bounds nor keys."""
    kept = unit or seen.unit
    if kept is None:
        return seen
    column = seen.columns.get(kept, seen.offered[kept])
    column = replace(column, left_out="", bounds=None, keys=None, from_data=frozenset())
    if column.stored_type not in ("integer", "text"):
        column = column.with_type("text")
    columns = {**seen.columns, kept: column}
    return replace(seen, columns={name: columns[name] for name in seen.offered if name in columns})


# ---------------------------------------------------------------- what is typed


def _unit(text: str, columns: Mapping[str, Any]) -> str:
    known = {column.lower() for column in columns}
    return EACH_ROW if text.lower() == "row" not in known else _column(text, columns, "--unit")


def _at_least_one(text: str) -> int:
    plain = text.replace(",", "").replace("_", "")
    if not plain.isdecimal() or int(plain) < 1:
        raise refusal("it", "is not a whole number from 1 up", "write, say, 20")
    return int(plain)


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


# ---------------------------------------------------------------- what is shown


def _with_likely_unit(problems: Sequence[Problem], seen: Seen | None) -> list[Problem]:
    """The same lines; that of the unit names the column that looks like it, if one does."""
    if seen is None or seen.unit is None:
        return list(problems)
    words = f'column = "{printable(seen.unit, 60)}"'
    return [
        replace(one, remedy=one.remedy.replace('column = "patient_id"', f"{words}, perhaps"))
        if one.undecided and one.where == "unit.column"
        else one
        for one in problems
    ]


def open_lines(problems: Sequence[Problem]) -> Columns:
    """The lines of a card that are wrong or wait, and what to do about each."""
    rows: list[tuple[str, str, str]] = []
    before = ""
    for one in problems[:MOST_SHOWN]:
        remedy = f"decide: {one.remedy}" if one.undecided else f"{one.problem}; {one.remedy}"
        words = "likewise" if remedy == before else printable(remedy, 200)
        rows.append((str(one.line), printable(one.where, 60), words))
        before = remedy
    if len(problems) > MOST_SHOWN:
        rows.append(("", "...", f"and {len(problems) - MOST_SHOWN} more"))
    return Columns(("line", "field", "what to do"), rows, numbers=(0,))


def listed_names(names: Mapping[str, Any] | Iterable[str]) -> str:
    """The first names of many, in one line."""
    some = list(names)
    shown = ", ".join(printable(name, 30) for name in some[:12])
    return shown + (f" and {len(some) - 12} more" if len(some) > 12 else "")
