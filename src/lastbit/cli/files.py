"""Files that commands read and write; no message holds anything of what is in them."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import click

from lastbit.errors import InvalidParameter
from lastbit.places import opened_text, written_over

FONTS = ("/usr/share/fonts", "/usr/local/share/fonts", "~/.fonts", "~/.local/share/fonts",
         "/Library/Fonts", "/System/Library/Fonts")  # fmt: skip

STANDARD_INPUT = Path("-")


def check_folder(out: Path) -> None:
    """Refuse what cannot be written, or is a ledger or another file of this command; beforehand."""
    from lastbit.ledger import check_output

    check_output("--out", out, {"another file of this command": _others(out)})


def _others(out: Path) -> list[Path]:
    """The files that the running command was given besides this one, and code that it names."""
    context = click.get_current_context(silent=True)
    if context is None:
        return []
    found: list[Path] = []
    for value in context.params.values():
        for one in value if isinstance(value, tuple | list) else (value,):
            if isinstance(one, Path):
                found.append(one)
            elif isinstance(one, str) and ":" in one and "\0" not in one:
                found.append(Path(one.partition(":")[0].replace(".", "/") + ".py"))
    if out in found:
        found.remove(out)  # once: that is the option which names it
    return found


def rasterizer(out: Path) -> Callable[[str], bytes]:
    """From SVG to PNG, by a library that only whoever wants pixels needs to have."""
    try:
        from resvg_py import svg_to_bytes
    except ImportError:
        raise InvalidParameter(
            "--out",
            problem="ends in .png, and drawing pixels needs another library",
            remedy=f'pip install "lastbit[png]", or pass {out.with_suffix(".svg").name}',
        ) from None
    if not any(font for folder in FONTS for font in Path(folder).expanduser().rglob("*.[to]tf")):
        raise InvalidParameter(
            "--out",
            problem="ends in .png, and this machine has no font to draw the words with",
            remedy="install one (on Debian: fonts-dejavu-core), or pass a name that ends in .svg",
        )
    return lambda picture: bytes(svg_to_bytes(svg_string=picture, zoom=2))


def save(out: Path, content: str | bytes) -> None:
    """Write a file, replacing one of that name."""
    check_folder(out)
    try:
        written_over(out, content)
    except OSError as error:
        raise InvalidParameter(
            "--out",
            problem=f"cannot be written at {out} ({error.strerror})",
            remedy="name a file in a folder that you may write to",
        ) from error


def rows_of(path: Path, columns: tuple[int, ...]) -> list[tuple[int, list[str]]]:
    """The rows of a CSV file with their line numbers, all of one of these widths; `-` is stdin.

    Empty lines are skipped.
    """
    try:
        rows = list(_read(path))
    except OSError as error:
        raise InvalidParameter(
            "--file",
            problem=f"cannot be read at {path} ({error.strerror})",
            remedy="name a file that you may read, or - for standard input",
        ) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidParameter(
            "--file", problem=f"at {path} is no CSV text in UTF-8", remedy="convert it first"
        ) from error
    if not rows:
        raise InvalidParameter("--file", problem=f"at {path} is empty", remedy="name another")
    width = len(rows[0][1])
    for number, row in rows:
        if len(row) != width or width not in columns:
            allowed = " or ".join(str(count) for count in columns)
            raise InvalidParameter(
                f"line {number} of --file",
                problem=f"has {len(row)} {'column' if len(row) == 1 else 'columns'}",
                remedy=f"write {allowed} in every line, separated by a comma",
            )
    return rows


def csv_reader(file: IO[str], path: Path) -> Any:
    """Records of commas and quotes as `tables.csv_records` has them: none can swallow another.

    A quote that is not closed, or is inside of a plain field, has the file refused.
    """
    from lastbit.tables import Header, check_records

    text = file.read().removeprefix("\ufeff")
    check_records(io.BytesIO(text.encode("utf-8", "replace")), Header(",", (), 0), str(path))
    return csv.reader(io.StringIO(text, newline=""), strict=True)


def _read(path: Path) -> Iterator[tuple[int, list[str]]]:
    if path == STANDARD_INPUT:
        yield from _numbered(csv_reader(sys.stdin, path))
        return
    with opened_text(path) as file:
        yield from _numbered(csv_reader(file, path))


def _numbered(reader: Iterator[list[str]]) -> Iterator[tuple[int, list[str]]]:
    for number, row in enumerate(reader, start=1):
        if row:
            yield number, row
