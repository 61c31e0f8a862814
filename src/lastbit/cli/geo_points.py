"""The CSV files of `lastbit geo`: places in, noisy places out; no message repeats a cell."""

from __future__ import annotations

import csv
import io
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lastbit.cli.files import STANDARD_INPUT, csv_reader
from lastbit.errors import InvalidParameter
from lastbit.places import opened_text

LATITUDE = ("latitude", "lat")
LONGITUDE = ("longitude", "lon", "lng", "long")
OTHER_MARKS = (";", "\t", "|")


@dataclass(frozen=True, slots=True, repr=False)
class Table:
    """What was read: the names of the two columns, the places, and the columns to keep."""

    names: tuple[str, str]
    places: list[tuple[float, float]]
    kept: tuple[str, ...]
    cells: list[tuple[str, ...]]


def read_places(
    path: Path, *, latitude: str | None, longitude: str | None, keep: Sequence[str]
) -> Table:
    """The places of a CSV file with a header; columns are found by their usual names."""
    rows = _rows(path)
    _, header = next(rows, (0, []))
    if not header:
        raise InvalidParameter(
            "points", problem="are none: the file is empty", remedy="name another"
        )
    names = [cell.strip() for cell in header]
    if len(names) == 1 and any(mark in names[0] for mark in OTHER_MARKS):
        raise InvalidParameter(
            "points",
            problem="are not separated by commas",
            remedy="write lines such as 52.5163,13.3777: commas between cells, points in numbers",
        )
    up = _column(names, latitude, LATITUDE, "--lat")
    along = _column(names, longitude, LONGITUDE, "--lon")
    if up == along:
        raise InvalidParameter("--lon", problem="names the column of --lat", remedy="name another")
    extra = [_column(names, name, (), "--keep") for name in keep]
    if {up, along} & set(extra):
        raise InvalidParameter(
            "--keep",
            problem="names a column of true coordinates",
            remedy="keep other columns only; the noisy coordinates are written anyway",
        )
    places, cells = [], []
    for number, row in rows:
        if len(row) != len(names):
            raise InvalidParameter(
                f"line {number} of the points",
                problem="has not as many columns as the header",
                remedy="write as many cells in every line, separated by a comma",
            )
        places.append(_place(row[up], row[along], number))
        cells.append(tuple(row[i] for i in extra))
    return Table((names[up], names[along]), places, tuple(names[i] for i in extra), cells)


def noisy_csv(table: Table, noisy: Any, decimals: int) -> str:
    """The noisy places under the old names of the two columns, then the columns to keep."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow((*table.names, *table.kept))
    for (latitude, longitude), cells in zip(noisy.tolist(), table.cells, strict=True):
        writer.writerow((f"{latitude:.{decimals}f}", f"{longitude:.{decimals}f}", *cells))
    return text.getvalue()


def _column(names: list[str], wanted: str | None, usual: tuple[str, ...], option: str) -> int:
    """The place of a column: by the name given, or by a usual one that is there once."""
    if wanted is not None:
        found = [i for i, name in enumerate(names) if name == wanted.strip()]
        problem = "names no column of the header, or one that is there twice"
    else:
        lowered = [name.lower() for name in names]
        found = next(
            (hits for name in usual if (hits := [i for i, n in enumerate(lowered) if n == name])),
            [],
        )
        problem = f"is needed: no column, or more than one, is called {usual[0]}"
    if len(found) != 1:
        raise InvalidParameter(
            option, problem=problem, remedy="name a column as the first line of the file does"
        )
    return found[0]


def _place(latitude: str, longitude: str, line: int) -> tuple[float, float]:
    """A place on the Earth, or a refusal that names its line."""
    up, along = _degrees(latitude, line), _degrees(longitude, line)
    problem = ""
    if abs(up) > 90:
        problem = "has a latitude beyond 90 degrees"
    elif not -180 <= along <= 360:
        problem = "has a longitude outside -180 to 360 degrees"
    if problem:
        raise InvalidParameter(
            f"line {line} of the points",
            problem=problem,
            remedy="correct it, or swap the two columns if they are swapped: --lat, --lon",
        )
    return up, along


def _degrees(cell: str, line: int) -> float:
    try:
        number = math.nan if "_" in cell else float(cell)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InvalidParameter(
            f"line {line} of the points",
            problem="has a coordinate that is no finite number",
            remedy="write degrees such as 52.5163, or leave the line out",
        )
    return number


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    try:
        if path == STANDARD_INPUT:
            yield from _numbered(csv_reader(sys.stdin, path))
            return
        with opened_text(path) as file:
            yield from _numbered(csv_reader(file, path))
    except OSError as error:
        raise InvalidParameter(
            "points",
            problem=f"cannot be read at {path} ({error.strerror})",
            remedy="name a file that you may read, or - for standard input",
        ) from error
    except (UnicodeDecodeError, csv.Error):
        raise InvalidParameter(
            "points", problem=f"at {path} are no CSV text in UTF-8", remedy="convert the file first"
        ) from None


def _numbered(reader: Any) -> Iterator[tuple[int, list[str]]]:
    for row in reader:
        if len(row) > 1 or (row and row[0].strip()):
            yield reader.line_num, row
