"""What commands print: pages, JSON, and a sign of life while they work.

A page is data: headings, words, facts and tables. It is laid out for the terminal at hand, 80
columns wide, in colour or not; piped, it is plain text. A terminal that knows only ASCII gets the
Greek letters spelled out, before anything is measured.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias, assert_never

import click
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from lastbit.exact import rounded_down

WIDTH = 80
PATIENCE = 1.0  # seconds before a sign of life is worth the reader's attention
BAR = 24
SPELLED = (
    ("ε", "epsilon"), ("δ", "delta"), ("ρ", "rho"), ("α", "alpha"), ("√", "sqrt"), ("²", "^2"),
    ("±", "+-"), ("≤", "<="), ("≥", ">="), ("∞", "infinity"), ("×", "x"), ("·", "*"), ("–", "-"),
    ("—", "-"), ("’", "'"), ("é", "e"), ("─", "-"), ("●", "*"), ("█", "#"), ("░", "."),
    ("Σ", "sum "),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Heading:
    """A title over a rule, and what it comes to, at the right."""

    title: str
    verdict: str = ""
    good: bool = True


@dataclass(frozen=True, slots=True)
class Facts:
    """Names and what they are, one a line; a long one is folded below itself."""

    rows: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Columns:
    """A table; the columns of `numbers` are set flush right, the row `best` stands out."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str | Text]]
    numbers: Sequence[int] = ()
    best: int | None = None
    styles: Sequence[str] = ()
    """A colour for each column."""


Part: TypeAlias = Heading | Facts | Columns | str | Text
"""A text is a paragraph."""


def show(*parts: Part, err: bool = False) -> None:
    """Print a page, on stderr if `err`."""
    console = Console(highlight=False, width=WIDTH, stderr=err)
    # the console has chosen colour or none; click is not to choose again
    click.echo(page(console, parts), err=err, color=True)


def show_json(values: dict[str, Any]) -> None:
    """Print what a program can read, with exact numbers as strings."""
    click.echo(json.dumps(values, ensure_ascii=True, allow_nan=False, indent=2))


def printable(text: str, most: int = 2000) -> str:
    """Text of a stranger's file in one line: nothing in it may steer the terminal."""
    line = " ".join(text.split())
    safe = "".join(letter if letter.isprintable() else "?" for letter in line)
    return safe if len(safe) <= most else safe[: max(most - 3, 0)] + "..."


def seen_above(bound: float, claimed: Fraction | None, digits: int) -> str:
    """A bound rounded down, with as many digits as it takes to be seen above a claim if it is."""
    for count in range(digits, 18):
        text = rounded_down(bound, count)
        if claimed is None or not bound > claimed or text == "∞" or Fraction(text) > claimed:
            break
    return text


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
    def spelled(words: str) -> str:
        if not console.options.ascii_only:
            return words
        for letter, name in SPELLED:
            words = words.replace(letter, name)
        return words.encode("ascii", "replace").decode()

    match part:
        case Heading():
            title, verdict = spelled(part.title), spelled(part.verdict)
            tone = "bold green" if part.good else "bold red"
            gap = max(console.width - len(title) - len(verdict), 1)
            console.print(Text.assemble((title, "bold"), " " * gap, (verdict, tone)))
            console.print(spelled("─") * console.width, style="dim")
        case str() | Text():
            console.print(part if isinstance(part, Text) else Text(spelled(part)))
        case Facts():
            table = _table(show_header=False)
            table.add_column(style="bold", no_wrap=True)
            table.add_column(overflow="fold")
            for name, fact in part.rows:
                table.add_row(Text(spelled(name)), Text(spelled(fact)))
            console.print(table)
        case Columns():
            table = _table(header_style="bold")
            styles = part.styles or [""] * len(part.headings)
            for number, heading in enumerate(part.headings):
                justify: Any = "right" if number in part.numbers else "left"
                head = Text(spelled(heading))
                table.add_column(head, justify=justify, overflow="fold", style=styles[number])
            for number, row in enumerate(part.rows):
                cells = (c if isinstance(c, Text) else Text(spelled(c)) for c in row)
                table.add_row(*cells, style="bold green" if number == part.best else "")
            console.print(Padding(table, (0, 2), expand=False))
        case _:
            assert_never(part)


def _table(**look: Any) -> Table:
    return Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, **look)


@contextmanager
def waiting(words: str = "") -> Iterator[Callable[[float, str], None]]:
    """A spinner and the words on stderr, in a terminal only, once a second has gone by.

    What it gives is for work that knows how far it is: call it with the share done and new words.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda share, words: None
        return
    start, plain = time.monotonic(), console.options.ascii_only
    status = console.status(words, spinner="line" if plain else "dots")
    timer = threading.Timer(PATIENCE, status.start)
    timer.daemon = True
    timer.start()

    def tell(share: float, words: str) -> None:
        full = min(max(round(BAR * share), 0), BAR)
        bar = "#" * full if plain else "━" * full
        rest = "." * (BAR - full) if plain else "━" * (BAR - full)
        seconds = f"  {time.monotonic() - start:.0f} s"
        status.update(Text.assemble(f"{words}  ", bar, (rest, "dim"), seconds))

    try:
        yield tell
    finally:
        timer.cancel()
        timer.join()
        status.stop()
