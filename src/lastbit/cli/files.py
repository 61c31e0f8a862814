"""Files that commands read and write; no message holds anything of what is in them."""

from __future__ import annotations

import csv
import io
import sys
from contextlib import nullcontext
from pathlib import Path

import click

from lastbit.cli.options import refusal
from lastbit.files import opened_text, written_over
from lastbit.ledger import check_output
from lastbit.tables import Header, check_records

OTHER_MARKS = ((";", "semicolons"), ("\t", "tabs"), ("|", "bars"))


def check_folder(out: Path, option: str = "--out") -> None:
    """Refuse what cannot be written, or is a ledger or another file of this command; beforehand."""
    check_output(option, out, {"another file of this command": _others(out)})


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


def save(out: Path, content: str | bytes, option: str = "--out") -> None:
    """Write a file, replacing one of that name."""
    check_folder(out, option)
    try:
        written_over(out, content)
    except OSError as error:
        remedy = "name a file in a folder that you may write to"
        raise refusal(option, f"cannot be written at {out} ({error.strerror})", remedy) from error


def csv_records(path: Path, name: str) -> list[tuple[int, list[str]]]:
    """The records of a CSV file with their line numbers, without empty lines; `-` is stdin.

    Commas and quotes are as `lastbit.tables` has them: no record can swallow another. A quote that
    is not closed, or is inside a plain field, has the file refused.
    """
    try:
        with nullcontext(sys.stdin) if path == Path("-") else opened_text(path) as file:
            text = file.read().removeprefix("\ufeff")
        check_records(io.BytesIO(text.encode("utf-8", "replace")), Header(",", (), 0), str(path))
        reader = csv.reader(io.StringIO(text, newline=""), strict=True)
        return [(reader.line_num, row) for row in reader if row]
    except OSError as error:
        remedy = "name a file that you may read, or - for standard input"
        raise refusal(name, f"cannot be read at {path} ({error.strerror})", remedy) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise refusal(name, f"at {path} is not CSV text in UTF-8", "convert it first") from error


def rows_of(
    path: Path, widths: tuple[int, ...], option: str = "--file"
) -> list[tuple[int, list[str]]]:
    """The records of a CSV file without a header, all of one of these widths."""
    rows = csv_records(path, option)
    if not rows:
        raise refusal(option, f"at {path} is empty", "name another")
    width = len(rows[0][1])
    for number, row in rows:
        if len(row) != width or width not in widths:
            allowed = " or ".join(str(count) for count in widths)
            problem = f"has {len(row)} {'column' if len(row) == 1 else 'columns'}"
            remedy = f"write {allowed} in every line, separated by a comma"
            raise refusal(f"line {number} of {option}", problem, remedy)
    return rows


def numbers_of(path: Path, column: str) -> list[float]:
    """The numbers of a column, which the first line names; an empty or odd cell is refused.

    A number is the float nearest to what is written: a map of one record at a time.
    """
    header, *rows = csv_records(path, "the file") or [(0, [])]
    place = _place_of(header[1], column, path)
    numbers = []
    for line, row in rows:
        try:
            numbers.append(float(row[place]))
        except (ValueError, IndexError):
            problem = f"has no number in the column {column}"
            remedy = "fill or drop such lines first, by a rule that looks at one line only"
            raise refusal(f"line {line} of {path}", problem, remedy) from None
    return numbers


def _place_of(header: list[str], column: str, path: Path) -> int:
    """Where a column stands in the first line."""
    if not header:
        raise refusal(str(path), "is empty", "name another file")
    names = [name.strip() for name in header]
    if names.count(column) == 1:
        return names.index(column)
    problem = "is there twice" if column in names else "is not in the first line"
    remedy = "name one of these: " + ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    if any(_is_number(name) for name in names):
        remedy = "write the names of columns there; now it holds numbers"
    for mark, name in OTHER_MARKS:
        if len(names) == 1 and mark in names[0]:
            remedy = f"separate the columns by commas; here it seems to be {name}"
    raise refusal(f"the column {column}", problem, remedy)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
