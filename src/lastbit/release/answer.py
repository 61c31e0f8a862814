"""An answer: released numbers with their error bars, ready to be shown, saved and checked.

Everything here is a function of the record, a plain JSON value that holds nothing but what was
released and paid for: it may be printed, mailed and kept. Arrow and Parquet come from DuckDB, which
is here anyway: the answer is handed to it as a few typed lists, and it writes the rest.

Counts can be made consistent: whole, not negative, and adding up to their total (`consistent`).

Law      in each column of counts of rows, let T be the sum of the noisy counts, rounded, or 0 if
         that is below 0. The counts become the nearest ones (least squares) that are not negative
         and add up to T, and are then rounded to whole numbers that still add up to T (largest
         remainders). Counts of units are made not negative only: one unit may be in several
         groups, so they do not add up to anything
Theorem  post-processing: nothing but released numbers is used, so nothing is paid. Intervals cover
         as before: true counts are not negative, so an end below 0 may be raised to 0; the value
         may lie elsewhere in the interval, which is widened to hold it
Checked  tests/release/test_consistency.py
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any, overload

import duckdb

from lastbit.arguments import check_kind, nearest
from lastbit.errors import InvalidParameter, WrongType
from lastbit.files import Spared, csv_text, plain_cell, replaced, written_over
from lastbit.ledger import check_output
from lastbit.release.intervals import Cell
from lastbit.release.simultaneous import simultaneous
from lastbit.release.views import key_value, seen
from lastbit.report import answer_in_notebook, answer_in_terminal, notes_of, page
from lastbit.tables import Cost, Query, Rule, View, WrittenPlan, rules_of
from lastbit.verify import read

_SUFFIXES = (("", "value"), ("_se", "standard_error"), ("_low", "low"), ("_high", "high"))
_WHOLE = (("_whole_low", "whole_low"), ("_whole_high", "whole_high"))
_LARGEST = 1 << 63


def columns_for_export(record: dict[str, Any]) -> tuple[list[str], list[list[Any]]]:
    """Names and rows: the keys, then four columns a released one, or six with whole ends."""
    columns, suffixes = record["columns"], _suffixes(record)
    taken = {column["name"].lower() for column in columns}
    names = [column["name"] for column in columns if column["role"] == "key"]
    for column in columns:
        if column["role"] == "value":
            names.append(column["name"])
            for suffix, _ in suffixes[1:]:  # names that no other column has
                free = column["name"] + suffix
                while free.lower() in taken:
                    free += "_"
                taken.add(free.lower())
                names.append(free)
    rows = [
        [_key(key) for key in row["keys"]]
        + [cell[field] for cell in row["cells"] for _, field in suffixes]
        for row in record["rows"]
    ]
    return names, rows


def _suffixes(record: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """What is exported of a cell: whole ends where the record has them."""
    return (*_SUFFIXES, *(_WHOLE if "whole" in record else ()))


def _key(data: Any) -> Any:
    """A key as people have it; a computed number as the double that it is."""
    if isinstance(data, dict) and data.get("type") == "number":
        with suppress(ValueError):
            return float(data["value"])
    return key_value(data)


def _row(row: dict[str, Any], names: tuple[str, ...], record: dict[str, Any]) -> Row:
    cells = [Cell(**cell) for cell in row["cells"]]
    if "whole" not in record and _is_unlimited(record["plan"]):  # the number is that of all rows
        cells = [replace(cell, whole_low=cell.low, whole_high=cell.high) for cell in cells]
    return Row(tuple(map(_key, row["keys"])), tuple(cells), names)


def _is_unlimited(plan: dict[str, Any]) -> bool:
    """Whether each row is a unit, and all that is released is counts."""
    counts = ("count", "histogram", "count_distinct")
    return plan["unit"] is None and all(one["function"] in counts for one in plan["recipes"])


def csv_lines(record: dict[str, Any]) -> str:
    """Comma-separated text with a header; missing numbers are empty."""
    names, rows = columns_for_export(record)
    return csv_text(map(plain_cell, row) for row in (names, *rows))


def duckdb_relation(record: dict[str, Any]) -> Any:
    """The answer as a relation of a connection of its own."""
    names, rows = columns_for_export(record)
    kinds = _kinds(record)
    lists = [[row[i] for row in rows] for i in range(len(names))]
    selected = ", ".join(
        f"unnest($c{i}::{_type(kind, values)}[]) AS {quoted(name)}"
        for i, (name, kind, values) in enumerate(zip(names, kinds, lists, strict=True))
    )
    connection = duckdb.connect(":memory:")
    numbers = {f"c{i}": [_number(v) for v in values] for i, values in enumerate(lists)}
    return connection.sql(f"SELECT {selected}", params=numbers)


def _kinds(record: dict[str, Any]) -> list[str]:
    """Of every exported column: the type of the key, or that of the number."""
    kinds: list[str] = []
    for place, column in enumerate(record["columns"]):  # keys come first
        if column["role"] == "key":
            found = {row["keys"][place]["type"] for row in record["rows"]} - {"missing"}
            kinds.append(found.pop() if len(found) == 1 else "text")
        else:
            whole = column["function"] in ("count", "count_units", "count_distinct", "histogram")
            number = "integer" if whole else "number"
            kinds += [number, "number", *[number] * (len(_suffixes(record)) - 2)]
    return kinds


def _type(kind: str, values: list[Any]) -> str:
    if kind == "integer":
        wide = any(value is not None and not -_LARGEST <= value < _LARGEST for value in values)
        return "DOUBLE" if wide else "BIGINT"
    names = {"number": "DOUBLE", "boolean": "BOOLEAN", "date": "DATE", "timestamp": "TIMESTAMP"}
    return names.get(kind, "VARCHAR")


def _number(value: Any) -> Any:
    """Integers beyond 64 bits as floats, fractions too: DuckDB's lists are of one type."""
    if isinstance(value, int) and not -_LARGEST <= value < _LARGEST:
        return float(value)
    return value if value is None or isinstance(value, str | int | date) else float(value)


def quoted(name: str) -> str:
    """A name as DuckDB takes it."""
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True, slots=True)
class Row:
    """One group of the answer: its keys, and a cell for every column.

    A column is found by its name: `row.n` and `row["n"]` are the released number, or the key of one
    that was grouped by; `row.cell("n")` has its error and interval too. Where a column is called
    like something that a row has (`keys`, `cells`), only `row["keys"]` is the column.

    >>> noisy = Cell(value=812, standard_error=8.4, low=795.0, high=829.0)
    >>> row = Row(("north",), (noisy,), ("region", "n"))
    >>> row.region, row.n, row.cell("n").low
    ('north', 812, 795.0)
    """

    keys: tuple[Any, ...]
    cells: tuple[Cell, ...]
    names: tuple[str, ...] = ()
    """Of the keys, then of the cells."""

    def __getitem__(self, name: str) -> Any:
        place = _place(name, self.names)
        values = (*self.keys, *(cell.value for cell in self.cells))
        return values[place]

    def __getattr__(self, name: str) -> Any:
        # only what is no field comes here; a row that is being copied has no fields yet
        if name.startswith("__") or name in Row.__slots__ or name not in self.names:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return self[name]

    def __dir__(self) -> list[str]:
        return [*object.__dir__(self), *self.names]

    def cell(self, name: str) -> Cell:
        """The released number of this column with its error and its noise and whole intervals."""
        place = _place(name, self.names) - len(self.keys)
        if place < 0:
            raise InvalidParameter(
                "column", problem="is a key, which is exact", remedy="use row[...] for keys"
            )
        return self.cells[place]


def _place(name: object, names: tuple[str, ...]) -> int:
    """Where the column of this name is, letter for letter or else in any case."""
    if isinstance(name, str) and name in names:
        return names.index(name)
    lowered = [known.lower() for known in names]
    if isinstance(name, str) and lowered.count(name.lower()) == 1:
        return lowered.index(name.lower())
    meant = nearest(name, names) if isinstance(name, str) else ""
    remedy = f"{meant}use {', '.join(names)}"
    raise InvalidParameter("column", problem="is not in the answer", remedy=remedy)


@dataclass(frozen=True, slots=True)
class Answer:
    """The released numbers of one query; what it shows is public.

    Exports have, for every column `n`, the columns `n`, `n_se`, `n_low` and `n_high`: the value,
    its standard error and the ends of the interval of its noise, which holds in 95 % of releases;
    and, where limits can have left something out, `n_whole_low` and `n_whole_high`: where the
    number of the whole table lies (`whole.py`), missing where that is not known. `to_polars()`,
    `to_pandas()` and `to_arrow()` need those libraries; `__arrow_c_stream__`, which all of them
    read, does not.

    >>> import duckdb
    >>> from lastbit.release import table
    >>> rows = duckdb.sql("SELECT 1 AS ward FROM range(1_000)")
    >>> visits = table(rows, each_row=True, name="visits")
    >>> answer = visits.sql("SELECT count(*) AS n FROM visits").release(epsilon=1)
    >>> answer.columns, 900 < answer.value < 1100, answer.guarantee
    (('n',), True, 'epsilon = 1 differential privacy for one row more or less')
    """

    record: dict[str, Any] = field(repr=False)
    spared: Spared = field(default_factory=dict, repr=False, compare=False)
    """Files that no export may replace: the ledger, the card, the source."""
    charged: bool = field(default=True, repr=False, compare=False)
    """Whether its price was charged when it was asked for, and not by an earlier question."""
    shown: dict[str, Any] | None = field(default=None, repr=False)
    """What is shown of the record, where a question asked for a part of it; None: all of it."""
    view: View | None = field(default=None, repr=False)
    """What SELECT shows of that, where it is not all columns as they are."""
    _viewed: dict[str, Any] | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        if not isinstance(self.record, dict) or "rows" not in self.record:
            raise WrongType("record", problem="is not an answer's", remedy="pass what save() wrote")
        if self.view is not None:
            object.__setattr__(self, "_viewed", seen(self.shown or self.record, self.view))

    @property
    def part(self) -> dict[str, Any] | None:
        """What is shown, where that is not the whole record."""
        return self.shown if self._viewed is None else self._viewed

    @property
    def _seen(self) -> dict[str, Any]:
        return self.part or self.record

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of the columns grouped by."""
        return tuple(c["name"] for c in self._seen["columns"] if c["role"] == "key")

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the released columns."""
        return tuple(c["name"] for c in self._seen["columns"] if c["role"] == "value")

    @property
    def rows(self) -> tuple[Row, ...]:
        """All rows, in the order asked for."""
        return tuple(self)

    def __iter__(self) -> Iterator[Row]:
        names = self.keys + self.columns
        for row in self._seen["rows"]:
            yield _row(row, names, self._seen)

    def __len__(self) -> int:
        return len(self._seen["rows"])

    @overload
    def __getitem__(self, which: int) -> Row: ...
    @overload
    def __getitem__(self, which: slice) -> tuple[Row, ...]: ...
    @overload
    def __getitem__(self, which: str) -> list[Any]: ...
    def __getitem__(self, which: int | slice | str) -> Row | tuple[Row, ...] | list[Any]:
        """A row by its place, some rows by a slice, or by its name all values of a column."""
        names = self.keys + self.columns
        if isinstance(which, str):
            name = names[_place(which, names)]
            return [row[name] for row in self]
        check_kind(which, (int, slice), "row", remedy="pass its place, or the name of a column")
        if isinstance(which, slice):
            return tuple(_row(row, names, self._seen) for row in self._seen["rows"][which])
        return _row(self._seen["rows"][which], names, self._seen)  # out of range as a list says it

    @property
    def value(self) -> Any:
        """The one number of an answer that has only one."""
        if len(self) != 1 or len(self.columns) != 1:
            raise InvalidParameter("value", problem="is not a single number", remedy="use rows")
        return self.rows[0].cells[0].value

    @property
    def cost(self) -> Cost:
        """What was paid for it."""
        return Cost.from_json(self.record["cost"])

    @property
    def guarantee(self) -> str:
        """What is promised, in words."""
        return str(self._seen["guarantee"])

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know when reading the numbers."""
        return tuple(notes_of(self._seen))

    @property
    def left_out(self) -> tuple[Rule, ...]:
        """The rules that can have left rows, units or values out, or changed them; as data."""
        plan, query = self.record["plan"], self.record["asked"]["query"]
        return rules_of(WrittenPlan.from_json(plan), Query.from_json(query))

    @property
    def certificate(self) -> dict[str, Any]:
        """What `lastbit check` verifies."""
        return dict(self.record["certificate"])

    @property
    def totals(self) -> dict[str, int] | None:
        """The totals of counts, where consistent ones were asked for."""
        if self._seen.get("totals") is None:
            return None
        pairs = zip(self.columns, self._seen["totals"], strict=True)
        return {name: total for name, total in pairs if total is not None}

    def consistent(self) -> Answer:
        """The same with whole counts from 0 up that agree with their total; costs nothing."""
        if self.shown is not None:
            return replace(self, shown=consistent(self.shown))
        return replace(self, record=consistent(self.record))

    def simultaneous(self) -> Answer:
        """The same with intervals of counts and sums that hold all together; free."""
        return replace(self, shown=simultaneous(self.shown or self.record))

    def to_dicts(self) -> list[dict[str, Any]]:
        """One dict a row, with the columns of the exports."""
        names, rows = columns_for_export(self._seen)
        return [dict(zip(names, row, strict=True)) for row in rows]

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The Arrow stream that pandas, Polars, pyarrow and DuckDB read; needs none of them."""
        return duckdb_relation(self._seen).__arrow_c_stream__(requested_schema)

    def to_polars(self) -> Any:
        """A Polars DataFrame."""
        import polars  # optional

        return polars.DataFrame(self)

    def to_pandas(self) -> Any:
        """A pandas DataFrame."""
        return duckdb_relation(self._seen).df()

    def to_arrow(self) -> Any:
        """A pyarrow Table."""
        import pyarrow  # optional

        return pyarrow.table(self)

    def to_csv(self, path: str | Path | None = None) -> str:
        """Comma-separated text, also written to a file if one is named."""
        return exported(csv_lines(self._seen), path, self.spared)

    def to_json(self, path: str | Path | None = None) -> str:
        """The whole record with its certificate as JSON text."""
        return exported(record_json(self.record), path, self.spared)

    def to_parquet(self, path: str | Path) -> None:
        """A Parquet file."""
        check_output("path", path, self.spared)
        with _told(), replaced(path) as new:
            new.write_bytes(b"")  # where that fails, it says so better than the engine
            duckdb_relation(self._seen).write_parquet(str(new))

    def save(self, path: str | Path) -> None:
        """Keep the answer: the record with its certificate, which `load` reads back."""
        self.to_json(path)

    @staticmethod
    def load(path: str | Path) -> Answer:
        """An answer that `save` wrote."""
        try:
            return Answer(read(path))
        except InvalidParameter as error:
            raise InvalidParameter(
                "answer", problem=error.problem, remedy="pass what save() wrote"
            ) from None

    def report(self, path: str | Path, *, title: str | None = None) -> None:
        """A page with charts: one HTML file that needs nothing else."""
        exported(page(self._seen, title=checked_title(title)), path, self.spared)

    def __str__(self) -> str:
        return answer_in_terminal(self._seen)

    def __repr__(self) -> str:
        rows = "1 row" if len(self) == 1 else f"{len(self):,} rows"
        return f"<Answer: {rows} of {', '.join(self.keys + self.columns)}; {self.guarantee}>"

    def _repr_html_(self) -> str:
        return answer_in_notebook(self._seen)


def record_json(record: dict[str, Any]) -> str:
    """The whole record with its certificate."""
    return json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def checked_title(title: str | None) -> str | None:
    """The title of a page, if one is given."""
    if title is not None and (not isinstance(title, str) or not title.strip()):
        raise WrongType("title", problem="is not text", remedy='pass, say, "Visits in 2026"')
    return title


def exported(text: str, path: str | Path | None, spared: Spared) -> str:
    """The text, also written to a file if one is named; not to one of those that are spared."""
    if path is not None:
        check_output("path", path, spared)
        with _told():
            written_over(path, text)
    return text


@contextmanager
def _told() -> Iterator[None]:
    """What the system says of a file that could not be written, as an error of ours."""
    try:
        yield
    except OSError as error:
        problem = f"could not be written ({error.strerror or 'the disk fails'})"
        remedy = "name another file; the answer is not lost"
        raise InvalidParameter("path", problem=problem, remedy=remedy) from None


def consistent(record: dict[str, Any]) -> dict[str, Any]:
    """The record with consistent counts, and a total of each column of them where there is one.

    The rows as they were released stay in it (`before`), since the certificate is about them.
    """
    if "before" in record:
        return record
    values = [column for column in record["columns"] if column["role"] == "value"]
    rows = [{**row, "cells": [dict(cell) for cell in row["cells"]]} for row in record["rows"]]
    query = Query.from_json(record["asked"]["query"])
    whole = query.having is None and query.limit is None
    totals: list[int | None] = []
    for place, column in enumerate(values):
        cells, total = [row["cells"][place] for row in rows], None
        if column["function"] in ("count", "histogram"):
            counts, total = nearest_counts([cell["value"] for cell in cells])
        elif column["function"] == "count_units":
            counts = [max(cell["value"], 0) for cell in cells]
        else:
            counts, cells = [], []
        for cell, count in zip(cells, counts, strict=True):
            cell["value"] = count
            for low, high in (("low", "high"), ("whole_low", "whole_high")):
                if cell.get(low) is not None:
                    cell[low] = min(max(cell[low], 0), count)
                if cell.get(high) is not None:
                    cell[high] = max(cell[high], count)
        totals.append(total if whole else None)
    note = "Counts were made whole, not negative and adding up to their total after the noise."
    made = {"rows": rows, "before": record["rows"], "totals": totals}
    return {**record, **made, "notes": [*record["notes"], note]}


def nearest_counts(values: list[int]) -> tuple[list[int], int]:
    """Whole numbers from 0 up that add up to the total, near the given ones; and the total.

    Theorem  the nearest point with x >= 0 and sum T is max(v - c, 0) for one c, found by sorting
    Source   Held, Wolfe, Crowder 1974

    >>> nearest_counts([5, -2, 4])
    ([4, 0, 3], 7)
    """
    total = max(sum(values), 0)
    if not total:
        return [0] * len(values), 0
    shift, running = Fraction(0), 0
    for rank, value in enumerate(sorted(values, reverse=True), start=1):
        running += value
        candidate = Fraction(running - total, rank)
        if value > candidate:
            shift = candidate
    moved = [max(value - shift, Fraction(0)) for value in values]
    floors = [int(number // 1) for number in moved]
    order = sorted(range(len(moved)), key=lambda i: (floors[i] - moved[i], i))
    for i in order[: total - sum(floors)]:
        floors[i] += 1
    return floors, total
