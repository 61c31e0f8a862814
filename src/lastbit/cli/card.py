"""`lastbit card`: draft a data card, and check one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lastbit.errors import InvalidParameter

if TYPE_CHECKING:
    from lastbit.cli.page import Part
    from lastbit.tables import Source

DATABASES = (".duckdb", ".ddb", ".db")


@click.group(epilog="Example: lastbit card new visits.parquet")
def card() -> None:
    """Draft and check data cards: what a steward declares of a table."""


@card.command(
    short_help="Draft a card for files, or for a table of a DuckDB file.",
    epilog="Example: lastbit card new visits.parquet --out visits.toml",
)
@click.argument("source", nargs=-1, required=True)
@click.option("--table", help="The table, of a DuckDB file.")
@click.option("--out", type=click.Path(path_type=Path), help="Where the card is written.")
def new(source: tuple[str, ...], table: str | None, out: Path | None) -> None:
    """Draft a card for CSV or Parquet files, or for a table of a DuckDB file.

    Only names and types of columns are looked at, never a value; a CSV file has names alone. What
    only the steward can decide is marked, and the card is refused until it is. A file that is there
    already is not replaced.
    """
    from lastbit.cli.card_view import drafted_parts
    from lastbit.cli.page import show
    from lastbit.tables import columns_of, columns_to_draft, drafted, examined, table_name

    found = _source(source, table)
    name = table_name(table.rpartition(".")[2] if table else os.path.basename(source[0]))
    target = out or Path(f"{name}.toml")
    _check_target(target)
    columns = columns_to_draft(found, columns_of(found))
    text = drafted(_beside(found, target), columns, name=name)
    _write(target, text)
    show(*drafted_parts(str(target), examined(target), columns))


@card.command(epilog="Example: lastbit card check visits.toml")
@click.argument("file", type=click.Path(path_type=Path), metavar="CARD")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def check(context: click.Context, file: Path, as_json: bool) -> None:
    """Read a card, hold it against its source, and show what it declares.

    Only names and types of the source's columns are looked at. The exit status is 0 if the card can
    be used and 2 if not: every line that is wrong or still to be decided is listed.
    """
    from lastbit.cli.card_view import card_json, card_parts, problem_parts
    from lastbit.cli.page import show, show_json
    from lastbit.tables import compared, examined

    found = examined(file)
    beside = None if found.card is None else compared(found.card)
    problems = [*found.problems, *(() if beside is None else beside.problems(found.lines))]
    if as_json:
        show_json(card_json(file.name, found.card, problems, beside))
    elif problems:
        _complain(*problem_parts(file.name, problems))
    elif found.card is not None and beside is not None:
        show(*card_parts(found.card, beside, file.parent))
    context.exit(2 if problems else 0)


def _source(paths: tuple[str, ...], table: str | None) -> Source:
    from lastbit.tables import Source, source_of

    database = any(path.lower().endswith(DATABASES) for path in paths)
    if table is not None and not database:
        raise InvalidParameter(
            "--table", problem="is for DuckDB files", remedy="leave it out, or name such a file"
        )
    if not database:
        return source_of(*paths)
    if not table or len(paths) > 1:
        raise InvalidParameter(
            "a DuckDB file", problem="has many tables", remedy="name one file, and one by --table"
        )
    return Source(kind="duckdb", paths=paths, table=table)


def _check_target(target: Path) -> None:
    from lastbit.cli.files import check_folder

    check_folder(target)
    if os.path.lexists(target):
        raise InvalidParameter(
            str(target), problem="exists, and is not replaced", remedy="name another by --out"
        )
    if target.suffix.lower() != ".toml":
        raise InvalidParameter(
            "--out", problem="does not end in .toml", remedy="name it, say, visits.toml"
        )


def _beside(source: Source, target: Path) -> Source:
    """The source with paths as the card must write them: relative to its folder."""
    from dataclasses import replace

    folder = os.path.abspath(target.parent)
    paths = (
        path if os.path.isabs(path) else os.path.relpath(path, folder) for path in source.paths
    )
    return replace(source, paths=tuple(paths))


def _write(target: Path, text: str) -> None:
    try:
        with target.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except OSError as error:
        raise InvalidParameter(
            "--out", problem=f"cannot be written ({error.strerror})", remedy="name another file"
        ) from None


def _complain(*parts: Part) -> None:
    """A page on stderr."""
    from rich.console import Console

    from lastbit.cli.page import WIDTH, page

    console = Console(stderr=True, highlight=False, width=WIDTH)
    click.echo(page(console, parts), err=True, color=True)
