"""Synthetic rows: a model fitted to released contingency tables, and rows drawn from it.

Law      one-way tables of all columns are released, and two-way tables of some pairs, which are
         chosen privately where there are more (`marginals.py`), all at one price in the ledger. A
         graphical model is fitted to the noisy tables by mbi, and gives rows
Theorem  rows are a function of released tables and of random numbers that are independent of the
         data: post-processing, so they cost nothing more. That is so whatever the library does:
         nothing but the record of the tables is handed to it
Source   McKenna, Sheldon, Miklau 2019 (private-PGM); choosing pairs as in McKenna et al. 2022 (AIM)
Differs  the fit is done in doubles, by somebody else's code: how near rows are to the tables is not
         certified. Pairs that would make the model too large to fit are left out of it, and said
Checked  tests/release/test_synthetic.py
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import combinations
from pathlib import Path
from typing import Any

from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import Number, whole
from lastbit.files import csv_text
from lastbit.ledger import Ledger
from lastbit.release.answer import exported
from lastbit.release.marginal_answer import Marginals, MarginalTable
from lastbit.release.private_table import Table
from lastbit.tables import unit_name

_MOST_CELLS = 1 << 22
_MOST_ROWS = 10**8
_STEPS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Synthetic:
    """Made-up rows, drawn from a model of released tables; they are public.

    A column that was put in bins has the lower edges of the bins.

    >>> import duckdb
    >>> from lastbit.release import table
    >>> rows = duckdb.sql("SELECT 1 AS sex FROM range(90)")
    >>> people = table(rows, each_row=True, keys={"sex": [0, 1]})
    >>> tables = people.marginals(["sex"]).release(epsilon=1)
    >>> rows = Synthetic(columns={"sex": [0, 1]}, tables=tables)        # synthetic_from(tables)
    >>> print(rows.to_csv(), end="")
    sex
    0
    1
    """

    columns: Mapping[str, Sequence[Any]] = field(repr=False)
    tables: Marginals
    """The released tables that the model was fitted to."""
    left_out: tuple[tuple[str, ...], ...] = ()
    """Pairs whose tables are released, and which would have made the model too large."""

    @property
    def unmeasured(self) -> tuple[tuple[str, str], ...]:
        """Pairs of columns that the model knows only apart, or through other columns."""
        known = {frozenset(one.columns) for one in self.tables if one.columns not in self.left_out}
        return tuple(pair for pair in combinations(self.columns, 2) if frozenset(pair) not in known)

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know when counting the rows; then what to know of the tables."""
        pairs = ", ".join(f"{unit_name(a)} with {unit_name(b)}" for a, b in self.unmeasured)
        apart = f"Not measured together: {pairs}. What rows say of such a pair may be far off."
        return (*([apart] if pairs else []), *self.tables.notes)

    def __str__(self) -> str:
        return "\n".join([f"{len(self):,} rows of {', '.join(self.columns)}", *self.notes])

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def to_dicts(self) -> list[dict[str, Any]]:
        """One dict a row."""
        lines = zip(*self.columns.values(), strict=True)
        return [dict(zip(self.columns, line, strict=True)) for line in lines]

    def to_pandas(self) -> Any:
        """A pandas DataFrame."""
        return import_module("pandas").DataFrame(dict(self.columns))

    def to_polars(self) -> Any:
        """A Polars DataFrame."""
        return import_module("polars").DataFrame(dict(self.columns))

    def to_arrow(self) -> Any:
        """A pyarrow Table."""
        return import_module("pyarrow").table(dict(self.columns))

    def to_csv(self, path: str | Path | None = None) -> str:
        """Comma-separated text with a header, also written to a file if one is named."""
        text = csv_text((self.columns, *zip(*self.columns.values(), strict=True)))
        return exported(text, path, self.tables.spared)


def synthetic(
    table: Table,
    columns: Iterable[str] | Mapping[str, str],
    *,
    pairs: int | None = None,
    rows: int | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    ledger: str | os.PathLike[str] | Ledger | None = None,
    who: str | None = None,
    fresh: bool = False,
) -> Synthetic:
    """Synthetic rows of some columns of a table, for the price of the tables they are made of.

    Columns, and what their keys must be, are as for `table.marginals`. `pairs` is how many two-way
    tables are measured (as many as there are columns, if none is given); `rows` how many rows are
    drawn (as many as there are in the table, about). Needs the extra `synthetic`.

    >>> rows = synthetic(table, ["sex", "ward"], epsilon=1).to_pandas()          # doctest: +SKIP
    """
    if not isinstance(table, Table):
        raise WrongType("table", problem="is not a table", remedy="pass lb.table(...)")
    _library()  # refuses before anything is charged
    question = table.marginals(columns)
    few = len(question.query.keys) if pairs is None else whole(pairs, "pairs", least=1)
    if rows is not None and whole(rows, "rows", least=1) > _MOST_ROWS:
        raise InvalidParameter("rows", problem="are more than 10**8", remedy="ask for fewer")
    price: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "rho": rho}
    asked = replace(question, pairs=few)
    return synthetic_from(asked.release(**price, ledger=ledger, who=who, fresh=fresh), rows=rows)


def synthetic_from(tables: Marginals, *, rows: int | None = None) -> Synthetic:
    """Rows from tables that were released before: nothing is charged.

    >>> tables = table.marginals(["sex", "ward"]).release(epsilon=1)             # doctest: +SKIP
    >>> rows = synthetic_from(tables, rows=1_000).to_pandas()                    # doctest: +SKIP
    """
    mbi, precise = _library()
    keys = {
        one.columns[0]: [cell.keys[0] for cell in one] for one in tables if len(one.columns) == 1
    }
    domain = mbi.Domain(tuple(keys), tuple(map(len, keys.values())))
    kept, left_out = _fitting(mbi, domain, tables.tables)
    total = max(sum(cell.whole for cell in tables.tables[0]), 1)
    with precise, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        measured = [
            mbi.LinearMeasurement(
                [float(cell.noisy) for cell in one], one.columns, stddev=_deviation(tables, one)
            )
            for one in kept
        ]
        model = mbi.estimation.MirrorDescent().estimate(
            domain, measured, known_total=float(total), iters=_STEPS
        )
        drawn = model.synthetic_data(rows=total if rows is None else rows).to_dict()
    found = {name: [values[int(i)] for i in drawn[name]] for name, values in keys.items()}
    return Synthetic(columns=found, tables=tables, left_out=left_out)


def _deviation(tables: Marginals, one: MarginalTable) -> float:
    place = [table.columns for table in tables].index(one.columns)
    row = next(row for row in tables.record["rows"] if row["marginal"] == place)
    return float(row["cells"][0]["standard_error"])


def _fitting(
    mbi: Any, domain: Any, tables: Sequence[MarginalTable]
) -> tuple[list[MarginalTable], tuple[tuple[str, ...], ...]]:
    """Tables whose model is not too large: all of one column, then pairs, small ones first."""
    kept, left_out = [one for one in tables if len(one.columns) == 1], []
    for one in sorted((one for one in tables if len(one.columns) == 2), key=len):
        cliques = [other.columns for other in (*kept, one)]
        tree, _ = mbi.junction_tree.make_junction_tree(domain, cliques)
        if sum(domain.size(node) for node in tree.nodes) <= _MOST_CELLS:
            kept.append(one)
        else:
            left_out.append(one.columns)
    return kept, tuple(left_out)


def _library() -> tuple[Any, AbstractContextManager[Any]]:
    """mbi, and arithmetic in doubles for as long as it is used."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it says at once what it could do in single precision
            jax = import_module("jax")
            mbi = import_module("mbi")
    except ImportError:
        mbi = None
    if not hasattr(mbi, "LinearMeasurement"):  # another library has that name too
        raise InvalidParameter(
            "synthetic",
            problem="needs a library that is not installed",
            remedy='pip install "lastbit[synthetic]"',
        )
    return mbi, jax.enable_x64(new_val=True)
