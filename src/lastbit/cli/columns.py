"""One column of a CSV file as numbers; no message holds anything of what is in it."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from lastbit.cli.files import STANDARD_INPUT, csv_reader
from lastbit.errors import InvalidParameter
from lastbit.places import opened_text

_OTHER_MARKS = ((";", "semicolons"), ("\t", "tabs"), ("|", "bars"))


def numbers_of(path: Path, column: str) -> list[float]:
    """The numbers of a column, which the first line names; an empty or odd cell is refused.

    A number is the float nearest to what is written: a map of one record at a time.
    """
    with opened(path) as file:
        reader = csv_reader(file, path)
        header = next(reader, None)
        place = place_of(header, column, path)
        numbers: list[float] = []
        for row in reader:
            if not row:
                continue
            try:
                numbers.append(float(row[place]))
            except (ValueError, IndexError):
                raise InvalidParameter(
                    f"line {reader.line_num} of {path}",
                    problem=f"has no number in the column {column}",
                    remedy="fill or drop such lines first, by a rule that looks at one line only",
                ) from None
    return numbers


def place_of(header: list[str] | None, column: str, path: Path) -> int:
    """Where a column stands in the first line."""
    if not header:
        raise InvalidParameter(str(path), problem="is empty", remedy="name another file")
    names = [name.removeprefix("\ufeff").strip() for name in header]
    if names.count(column) == 1:
        return names.index(column)
    problem = "is there twice" if column in names else "is not in the first line"
    remedy = "name one of these: " + ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    if any(_is_number(name) for name in names):
        remedy = "write the names of columns there; now it holds numbers"
    for mark, name in _OTHER_MARKS:
        if len(names) == 1 and mark in names[0]:
            remedy = f"part the columns by commas; here it seems to be {name}"
    raise InvalidParameter(f"the column {column}", problem=problem, remedy=remedy)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@contextmanager
def opened(path: Path) -> Iterator[IO[str]]:
    """A file to read as CSV text; `-` is standard input."""
    try:
        if path == STANDARD_INPUT:
            yield sys.stdin
            return
        with opened_text(path) as file:
            yield file
    except OSError as error:
        raise InvalidParameter(
            str(path),
            problem=f"cannot be read ({error.strerror})",
            remedy="name a file that you may read, or - for standard input",
        ) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidParameter(
            str(path), problem="is no CSV text in UTF-8", remedy="convert it first"
        ) from error
