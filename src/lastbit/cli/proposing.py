"""What a look at values proposes of columns, shown on the terminal and corrected there."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import date
from fractions import Fraction
from typing import Any

import click

from lastbit.cli.options import exact_number, refusal
from lastbit.cli.output import Columns, printable, show
from lastbit.cli.prompting import Question, prompted
from lastbit.tables import TYPES, Column, ColumnProposal, UnitLook, bounds_text

NAME_WIDTH = 22
EXAMPLES_WIDTH = 22
KEYS_WIDTH = 30
CHANGE = "Which column is to be another? Its number or name; Enter takes all as shown."
NONE = "none"
BOUNDS = "  Bounds: low and high, or 'none' to let a private profile choose them."
KEYS = "  Keys: with commas between, or 'none' to find them privately."


def review_columns(
    columns: Mapping[str, ColumnProposal], *, unit: str | None
) -> dict[str, ColumnProposal]:
    """The proposals, after the steward has corrected those that are wrong."""
    corrected = dict(columns)
    _show_all(corrected, unit)
    click.echo()
    change = Question("change", lambda text: _named(text, corrected), CHANGE)
    while (name := prompted(change)) is not None:
        corrected[name] = _corrected(corrected[name])
        click.echo(f"  now: {_summary(corrected[name], 'left out: ')}")
    return corrected


def _show_all(columns: Mapping[str, ColumnProposal], unit: str | None) -> None:
    rows = [
        (
            str(number),
            printable(column.name, NAME_WIDTH),
            column.stored_type,
            printable(", ".join(column.examples), EXAMPLES_WIDTH),
            "says whose row it is" if column.name == unit else _proposed(column),
        )
        for number, column in enumerate(columns.values(), start=1)
    ]
    show(Columns(("", "column", "type", "values such as", "proposed"), rows, numbers=(0,)))


def proposal_rows(columns: Mapping[str, ColumnProposal]) -> list[tuple[str, str, str]]:
    """Column, type and what is proposed, without an example: it may be printed anywhere."""
    return [
        (printable(column.name, 30), column.stored_type, _proposed(column))
        for column in columns.values()
    ]


def _proposed(column: ColumnProposal) -> str:
    words = _summary(column, "leave out: ")
    return words if words != column.type else ""


def _summary(column: ColumnProposal, leave: str) -> str:
    if column.left_out:
        return f"{leave}{column.left_out}"
    words = [] if column.bounds is None else [" to ".join(bounds_text(column.bounds))]
    if column.keys is not None:
        listed = ", ".join(map(str, column.keys))
        words.append(f"{len(column.keys)} keys: {printable(listed, KEYS_WIDTH)}")
    return "; ".join([*words, *([column.remark] if column.remark else [])]) or column.type


def unit_words(units: UnitLook) -> str:
    """How many rows units have, in a sentence."""
    if units.largest <= 1:
        return f"{units.units:,} units, with one row each."
    middle = f"{units.median:,.1f}".removesuffix(".0")
    return (
        f"{units.units:,} units. The middle one has {middle} rows, 99 of 100 have up to"
        f" {units.most:,}, the largest has {units.largest:,}."
    )


# ---------------------------------------------------------------- corrections


def _named(text: str, columns: Mapping[str, ColumnProposal]) -> str:
    for name in columns:
        if name.lower() == text.lower():
            return name
    if text.isdecimal() and 1 <= int(text) <= len(columns):
        return list(columns)[int(text) - 1]
    raise refusal("it", "is no column", f"write a number from 1 to {len(columns)}, or a name")


def _corrected(column: ColumnProposal) -> ColumnProposal:
    """One column, question by question; Enter takes what stands in brackets."""
    title = printable(column.name, 40)
    if not click.confirm(f"  {title}: keep it on the card", default=not column.left_out):
        return replace(column, left_out=column.left_out or "no question may use it")
    kind = prompted(Question("type", _type), default=column.type) or column.type
    kept = replace(column, left_out="").with_type(kind)
    if kind in ("integer", "number", "date", "timestamp"):
        before = " ".join(bounds_text(kept.bounds)) if kept.bounds is not None else NONE
        question = Question("bounds", lambda text: _bounds(text, kept, before), BOUNDS)
        bounds = prompted(question, default=before)
        return kept if bounds is None else bounds
    if kind == "text":
        before = ", ".join(map(str, kept.keys)) if kept.keys is not None else NONE
        question = Question("keys", lambda text: _keys(text, kept, before), KEYS)
        keys = prompted(question, default=before)
        return kept if keys is None else keys
    return kept


def _type(text: str) -> Any:
    if text not in TYPES:
        raise refusal("it", "is not a type", f"write one of {', '.join(TYPES)}")
    return text


def _bounds(text: str, column: ColumnProposal, before: str) -> ColumnProposal:
    """The column with these bounds: the steward's own, unless they are those that were seen."""
    if text == before:
        return column
    rest = column.from_data - {"bounds"}
    if text.lower() == NONE:
        return replace(column, bounds=None, from_data=rest)
    words = text.replace(",", " ").replace(" to ", " ").strip("[]").split()
    if len(words) != 2:
        raise refusal("it", "is not two values", "write, say, 0 500")
    ends: Any = tuple(_end(word, column.type) for word in words)
    Column(name="it", type=column.type, bounds=ends)
    return replace(column, bounds=ends, from_data=rest)


def _end(word: str, kind: str) -> Fraction | date:
    if kind in ("integer", "number"):
        return exact_number(word, "it")
    with suppress(ValueError):
        return date.fromisoformat(word)
    raise refusal("it", "is not a day", "write, say, 2020-01-01 2024-12-31")


def _keys(text: str, column: ColumnProposal, before: str) -> ColumnProposal:
    if text == before:
        return column
    rest = column.from_data - {"keys"}
    if text.lower() == NONE:
        return replace(column, keys=None, from_data=rest)
    keys = tuple(dict.fromkeys(key.strip() for key in text.split(",") if key.strip()))
    Column(name="it", type=column.type, keys=keys)
    return replace(column, keys=keys, from_data=rest)
