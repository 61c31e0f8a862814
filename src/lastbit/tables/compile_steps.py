"""Values worked out step by step, each once, each for every row.

Law      every operation is a column of a step, SELECT *, operation AS n1 FROM the step before; its
         operands are columns and constants. Equal operations are one column
Theorem  the text is linear in the number of operations: each names its operands a bounded number of
         times, and an operand is a name or a constant. Each operation runs once on each row,
         whatever the row says: CASE, COALESCE, AND and OR choose among columns that are there
         already, so no row decides whether an expensive branch is run
Differs  from one nested expression, in which an operand that is named twice is evaluated twice
         (2**depth times), and a branch only for rows that ask for it
Checked  tests/tables/test_steps.py (the engine's own plan, operation by operation)

The engine must not undo this: to push a filter below a projection writes the projection's
expressions out again. `REARRANGING` names what its optimizer may not do. That includes skipping
parts of a file by the least and greatest values in them, which one row can change.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lastbit.errors import QueryRefused
from lastbit.tables.limits import MOST_CALLS
from lastbit.tables.schema import ColumnType

__all__ = ["REARRANGING", "Steps", "Typed"]

REARRANGING = (
    "cte_filter_pusher",
    "filter_pullup",
    "filter_pushdown",
    "join_filter_pushdown",
    "late_materialization",
    "partial_aggregate_pushdown",
    "projection_placement",
    "projection_pullup",
    "regex_range",
    "row_group_pruner",
    "scalar_fn_pushdown",
    "type_pushdown",
)
"""DuckDB's optimizers that move, copy or skip the work on a row. Those a version has are off."""

_MOST_STEPS = 8 * MOST_CALLS  # a call takes a few: the operation, a cast, a check of its result


@dataclass(frozen=True, slots=True)
class Typed:
    """A column or constant, its type (None: always missing), and whether it may be NaN as yet.

    `after` says when it is there: after so many joins, and so many steps.
    """

    sql: str
    type: ColumnType | None
    unsettled: bool = False
    constant: bool = False
    after: tuple[int, int] = (0, 0)


class Steps:
    """The operations of a statement, gathered as expressions are spelled."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, ColumnType | None], Typed] = {}
        self._steps: dict[tuple[int, int], list[str]] = {}

    def value(
        self, sql: str, kind: ColumnType | None, *operands: Typed, unsettled: bool = False
    ) -> Typed:
        """The operation `sql` over these operands, as a column; the same one if it is known."""
        known = self._known.get((sql, kind))
        if known is not None:
            return known
        if len(self._known) >= _MOST_STEPS:
            raise QueryRefused(
                "query", problem="asks for too many operations", remedy="ask several questions"
            )
        joins = max((operand.after[0] for operand in operands), default=0)
        place = max((o.after[1] for o in operands if o.after[0] == joins), default=0)
        after = joins, place + 1
        found = Typed(f"n{len(self._known) + 1}", kind, unsettled, after=after)
        self._known[sql, kind] = found
        self._steps.setdefault(after, []).append(f"{sql} AS {found.sql}")
        return found

    def after_joins(self, number: int) -> Iterator[str]:
        """What each step selects, in order, between this join and the next."""
        for after in sorted(place for place in self._steps if place[0] == number):
            yield f"*, {', '.join(self._steps[after])}"
