"""What `lastbit mechanism` prints: a release as text and as JSON, with or without explanation."""

from __future__ import annotations

import csv
import io
import math
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import click

if TYPE_CHECKING:
    from lastbit.cli.mechanism_explained import Explanation
    from lastbit.cli.mechanism_input import Candidates

Released: TypeAlias = tuple[str, Any]
"""A release as lines of text, and as what JSON can hold."""


def show_answer(
    explanation: Callable[[], Explanation],
    release: Callable[[], Released] | None,
    *,
    explain: bool,
    as_json: bool,
) -> None:
    """The release, the explanation, or both; without data there is no release."""
    from lastbit.cli.mechanism_explained import page_of
    from lastbit.cli.page import show, show_json
    from lastbit.cli.waiting import waiting

    terminal = sys.stderr.isatty() and sys.stdout.isatty()
    with waiting("working it out"):
        explained = explanation() if release is None or explain or as_json or terminal else None
        drawn = None if release is None else release()
    if as_json and explained is not None:
        show_json(
            {
                "mechanism": explained.name,
                "guarantee": explained.guarantee.to_dict(),
                "accuracy": dict(explained.errors),
                "release": None if drawn is None else drawn[1],
            }
        )
        return
    if explained is not None and (explain or drawn is None):
        show(*page_of(explained, drawn=drawn is not None))
        click.echo(nl=drawn is not None)
    if drawn is not None:
        click.echo(drawn[0])
    if explained is not None and drawn is not None and not explain:
        click.secho(f"({explained.summary})", err=True, dim=True)


def number(value: int | float) -> Released:
    """A number as it was released; JSON knows no infinity."""
    finite = isinstance(value, int) or math.isfinite(value)
    return str(value), value if finite else str(value)


def said(answer: bool | int) -> Released:
    """An answer in the words in which it was given."""
    if isinstance(answer, bool):
        return "yes" if answer else "no", answer
    return str(answer), answer


def picked(index: int, given: Candidates) -> Released:
    """The name of the candidate, or its index counted from 0."""
    name = index if given.names is None else given.names[index]
    return str(name), name


def table(counts: dict[str, int]) -> Released:
    """Counts as CSV, which `--file` reads again."""
    lines = io.StringIO()
    csv.writer(lines, lineterminator="\n").writerows([("key", "count"), *counts.items()])
    return lines.getvalue().rstrip("\n"), counts


def above_or_below(above: list[bool]) -> Released:
    """One word a line."""
    return "\n".join("above" if answer else "below" for answer in above), above
