"""What a command prints: headings, words, facts and tables, 80 columns wide, colour or none.

A page is data; `page` lays it out for the terminal at hand. Piped, it is plain text. A terminal
that knows only ASCII gets the Greek letters spelled out, before anything is measured.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, assert_never

import click

if TYPE_CHECKING:
    from rich.console import Console

WIDTH = 80
SPELLED = (
    ("ε", "epsilon"),
    ("δ", "delta"),
    ("ρ", "rho"),
    ("α", "alpha"),
    ("√", "sqrt"),
    ("²", "^2"),
    ("±", "+-"),
    ("≤", "<="),
    ("≥", ">="),
    ("∞", "infinity"),
    ("×", "x"),
    ("·", "*"),
    ("–", "-"),
    ("—", "-"),
    ("’", "'"),
    ("é", "e"),
    ("─", "-"),
    ("●", "*"),
    ("█", "#"),
    ("░", "."),
    ("Σ", "sum "),
)


@dataclass(frozen=True, slots=True)
class Heading:
    """A title over a rule, and what it comes to, at the right."""

    title: str
    verdict: str = ""
    good: bool = True


@dataclass(frozen=True, slots=True)
class Words:
    """A paragraph."""

    text: str


@dataclass(frozen=True, slots=True)
class Facts:
    """Names and what they are, one a line; a long one is folded below itself."""

    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Columns:
    """A table; the columns of `numbers` are set flush right, the row `best` stands out."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: tuple[int, ...] = ()
    best: int | None = None


Part: TypeAlias = Heading | Words | Facts | Columns


def show(*parts: Part) -> None:
    """Print a page."""
    from rich.console import Console

    # the console has chosen colour or none; click is not to choose again
    click.echo(page(Console(highlight=False, width=WIDTH), parts), color=True)


def show_json(values: dict[str, Any]) -> None:
    """Print what a program can read, with exact numbers as strings."""
    click.echo(json.dumps(values, ensure_ascii=True, allow_nan=False, indent=2))


def page(console: Console, parts: Sequence[Part]) -> str:
    """The parts as the console would show them, a blank line between two."""
    with console.capture() as captured:
        for position, part in enumerate(parts):
            if position and not isinstance(parts[position - 1], Heading):
                console.print()
            _print(console, part)
    # tables are padded to the width of the console: take the blanks off again
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def _print(console: Console, part: Part) -> None:
    from rich.text import Text

    match part:
        case Heading():
            title, verdict = _said(console, part.title), _said(console, part.verdict)
            tone = "bold green" if part.good else "bold red"
            gap = max(console.width - len(title) - len(verdict), 1)
            console.print(Text.assemble((title, "bold"), " " * gap, (verdict, tone)))
            console.print(_said(console, "─") * console.width, style="dim")
        case Words():
            console.print(Text(_said(console, part.text)))
        case Facts():
            _facts(console, part)
        case Columns():
            _columns(console, part)
        case _:
            assert_never(part)


def _facts(console: Console, facts: Facts) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, fact in facts.rows:
        table.add_row(Text(_said(console, name)), Text(_said(console, fact)))
    console.print(table)


def _columns(console: Console, columns: Columns) -> None:
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False)
    for number, heading in enumerate(columns.headings):
        table.add_column(
            Text(_said(console, heading)),
            justify="right" if number in columns.numbers else "left",
            overflow="fold",
        )
    for number, row in enumerate(columns.rows):
        style = "bold green" if number == columns.best else ""
        table.add_row(*(Text(_said(console, cell)) for cell in row), style=style)
    console.print(Padding(table, (0, 2), expand=False))


def _said(console: Console, words: str) -> str:
    if console.options.ascii_only:
        for letter, spelled in SPELLED:
            words = words.replace(letter, spelled)
        return words.encode("ascii", "replace").decode()
    return words
