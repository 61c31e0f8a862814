"""Numbers beside the rows of a prepared table, as a statement uses them.

Theorem  a statement with numbers gives the integers of the one without: `duckdb/prepared.py`
Checked  tests/stability/test_force.py, tests/tables/backends/test_prepared.py
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lastbit.tables.card.schema import DataCard
from lastbit.tables.compile.rows import CompiledRows
from lastbit.tables.query.expression import ColumnName


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """What a prepared table shows beside each row: its unit's number, and how many rows it has.

    `card` is the card with these columns, and the number as its unit: another for another unit.
    `rows` is the column that says how many rows of the unit are in r; it is there where they have
    a unit. So where rows have their weights by it, and no units are counted, it says enough of it.
    """

    card: DataCard
    rows: str | None

    def card_where(self, *, units_counted: bool) -> DataCard:
        """The card of a statement that counts units, or does not."""
        by_rows = self.rows is not None and not units_counted
        return replace(self.card, unit=self.rows) if by_rows else self.card

    def columns(self, rows: CompiledRows) -> dict[str, str]:
        """The further column of `r`, n."""
        return {} if self.rows is None else {rows.value(ColumnName(self.rows)).sql: "n"}
