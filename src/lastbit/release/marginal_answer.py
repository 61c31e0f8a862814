"""Released contingency tables: shown, exported, saved. Functions of a public record alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from lastbit.arguments import check_kind, listed
from lastbit.errors import InvalidParameter, WrongType
from lastbit.files import Spared, csv_text, plain_cell
from lastbit.release.answer import checked_title, exported, record_json
from lastbit.release.views import key_value
from lastbit.report import answer_in_notebook, answer_in_terminal, marginal_tables, notes_of, page
from lastbit.tables import Cost, Query
from lastbit.verify import read


@dataclass(frozen=True, slots=True, kw_only=True)
class MarginalCell:
    """One cell of a table.

    `count` is the consistent number of rows, with its `standard_error`; `whole` the same as a whole
    number from 0 up; `noisy` what the mechanism gave. `low` and `high` are the ends of the noise
    interval that belongs to `noisy`.
    """

    keys: tuple[Any, ...]
    count: float
    standard_error: float
    whole: int
    noisy: int
    low: int
    high: int
    exact: Fraction = field(repr=False)
    """The consistent count, exactly: tables agree to the last bit in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarginalTable:
    """The table of one column or two: a cell for every combination of declared keys."""

    columns: tuple[str, ...]
    cells: tuple[MarginalCell, ...] = field(repr=False)

    def __iter__(self) -> Iterator[MarginalCell]:
        return iter(self.cells)

    def __len__(self) -> int:
        return len(self.cells)

    def __getitem__(self, keys: Any) -> MarginalCell:
        """The cell of these keys: table["north"], table["north", True]."""
        wanted = keys if isinstance(keys, tuple) else (keys,)
        for cell in self.cells:
            if cell.keys == wanted:
                return cell
        remedy = f"name one declared key of each of {', '.join(self.columns)}"
        raise InvalidParameter("keys", problem="are not a cell of this table", remedy=remedy)

    @property
    def total(self) -> float:
        """The consistent number of all rows: the same in every table."""
        return float(sum((cell.exact for cell in self.cells), Fraction(0)))

    def to_dicts(self) -> list[dict[str, Any]]:
        """One dict a cell: its keys, then the numbers."""
        return [dict(zip(self.columns, cell.keys, strict=True)) | _numbers(cell) for cell in self]


def _numbers(cell: MarginalCell) -> dict[str, Any]:
    names = ("count", "standard_error", "whole", "noisy", "low", "high")
    return {name: getattr(cell, name) for name in names}


@dataclass(frozen=True, slots=True)
class Marginals:
    """All released tables of one question; what it shows is public.

    `tables` has them in order; `answer["region", "sex"]` is one of them. Tables agree: the rows and
    columns of a two-way table add up to the one-way tables, and all have one total, exactly in
    `exact` and in `whole`.

    >>> import duckdb
    >>> from lastbit.release import table
    >>> rows = duckdb.sql("SELECT range % 2 AS sex, range % 3 AS ward FROM range(6_000)")
    >>> people = table(rows, each_row=True, keys={"sex": [0, 1], "ward": [0, 1, 2]})
    >>> found = people.marginals(["sex", "ward"]).release(epsilon=1)
    >>> [one.columns for one in found.tables], 5_000 < found.total < 7_000
    ([('sex',), ('ward',), ('sex', 'ward')], True)
    """

    record: dict[str, Any] = field(repr=False)
    spared: Spared = field(default_factory=dict, repr=False, compare=False)
    """Files that no export may replace: the ledger, the card, the source."""
    charged: bool = field(default=True, repr=False, compare=False)
    """Whether its price was charged when it was asked for, and not by an earlier question."""

    def __post_init__(self) -> None:
        record = self.record
        if not isinstance(record, dict) or "marginals" not in record.get("plan", {}):
            raise WrongType(
                "record", problem="is not of marginals", remedy="pass what save() wrote"
            )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that tables were made of."""
        return tuple(key.name for key in Query.from_json(self.record["asked"]["query"]).keys)

    @property
    def tables(self) -> tuple[MarginalTable, ...]:
        """All tables: of one column each, then of two."""
        return tuple(
            MarginalTable(columns=tuple(names), cells=tuple(map(_cell, rows)))
            for names, _, rows in marginal_tables(self.record)
        )

    def __iter__(self) -> Iterator[MarginalTable]:
        return iter(self.tables)

    def __len__(self) -> int:
        return len(marginal_tables(self.record))

    def __getitem__(self, columns: str | tuple[str, ...]) -> MarginalTable:
        """The table of these columns, in the order in which they were asked for."""
        named = [columns] if isinstance(columns, str) else columns
        remedy = 'pass "region", or ("region", "sex")'
        wanted = tuple(listed(named, "columns", remedy=remedy))
        for one in wanted:  # rows of an array are no names, and not compared with one
            check_kind(one, str, "columns", remedy=remedy)
        for table in self.tables:
            if table.columns == wanted:
                return table
        known = "; ".join(", ".join(table.columns) for table in self.tables[:40])
        raise InvalidParameter("columns", problem="have no table", remedy=f"use one of {known}")

    @property
    def total(self) -> float:
        """The consistent number of all rows."""
        return self.tables[0].total

    @property
    def cost(self) -> Cost:
        """What was paid for all tables together."""
        return Cost.from_json(self.record["cost"])

    @property
    def guarantee(self) -> str:
        """What is promised, in words."""
        return str(self.record["guarantee"])

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know when reading the numbers."""
        return tuple(notes_of(self.record))

    @property
    def certificate(self) -> dict[str, Any]:
        """What `lastbit check` verifies."""
        return dict(self.record["certificate"])

    def to_dicts(self) -> list[dict[str, Any]]:
        """One dict a cell of every table: `table` names its columns, others have no value."""
        empty = dict.fromkeys(self.columns)
        return [
            {"table": ":".join(table.columns), **empty, **cell}
            for table in self.tables
            for cell in table.to_dicts()
        ]

    def to_csv(self, path: str | Path | None = None) -> str:
        """Comma-separated text, also written to a file if one is named."""
        rows = self.to_dicts()
        lines = (rows[0], *(row.values() for row in rows))
        return exported(csv_text(map(plain_cell, line) for line in lines), path, self.spared)

    def to_json(self, path: str | Path | None = None) -> str:
        """The whole record with its certificate as JSON text."""
        return exported(record_json(self.record), path, self.spared)

    def save(self, path: str | Path) -> None:
        """Keep the tables: the record with its certificate, which `load` reads back."""
        self.to_json(path)

    @staticmethod
    def load(path: str | Path) -> Marginals:
        """Tables that `save` wrote."""
        return Marginals(read(path))

    def report(self, path: str | Path, *, title: str | None = None) -> None:
        """A page with heat maps: one HTML file that needs nothing else."""
        exported(page(self.record, title=checked_title(title)), path, self.spared)

    def __str__(self) -> str:
        return answer_in_terminal(self.record)

    def __repr__(self) -> str:
        tables = "1 table" if len(self) == 1 else f"{len(self)} tables"
        return f"<Marginals: {tables} of {', '.join(self.columns)}; {self.guarantee}>"

    def _repr_html_(self) -> str:
        return answer_in_notebook(self.record)


def _cell(row: Mapping[str, Any]) -> MarginalCell:
    (cell,), exact = row["cells"], Fraction(row["consistent"])
    return MarginalCell(
        keys=tuple(map(key_value, row["keys"])),
        count=float(exact),
        standard_error=row["consistent_error"],
        whole=row["whole"],
        noisy=cell["value"],
        low=cell["low"],
        high=cell["high"],
        exact=exact,
    )
