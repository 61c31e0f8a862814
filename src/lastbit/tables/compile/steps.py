"""Values computed step by step, each once, each for every row.

Law      every operation is a column of a step, SELECT *, operation AS n1 FROM the step before; its
         operands are columns and constants. Equal operations are one column
Theorem  the text is linear in the number of operations: each names its operands a bounded number of
         times, and an operand is a name or a constant. Each operation runs once on each row,
         whatever the row says: CASE, COALESCE, AND and OR choose among columns that are there
         already, so no row decides whether an expensive branch is run
Differs  from one nested expression, in which an operand that is named twice is evaluated twice
         (2**depth times), and a branch only for rows that ask for it
Checked  tests/tables/test_steps.py (the engine's own plan, operation by operation)

Even     the engine works on 2048 rows at a time, and on one where all of them have the same value:
         one row that differs would cost 2047 more operations. So what could be the same in all
         rows (a column as read, the outcome of a choice, a call of constants) is written out
         row by row, by a CASE with equal branches on a drawn truth value, which decides nothing.
         Where a question has few steps and none of texts this is left out: the difference is
         then at most 2048 * EVEN_FROM of the cheapest operations, some 0.2 ms

The engine must not undo this: to push a filter below a projection writes the projection's
expressions out again. `REARRANGING` names what its optimizer may not do. That includes skipping
parts of a file by the least and greatest values in them, which one row can change.

Names and values are written as SQL text so that no text can become code: a name stands in double
quotes and a text in single quotes, each with its own quote doubled; there is no other escape in
either, so nothing but the closing quote ends them. What cannot be written so (a NUL, half of a
surrogate pair) is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from math import inf, isinf, nextafter

from lastbit.tables.limits import MOST_CALLS, refused
from lastbit.tables.query.expression import ColumnType, Value

MIXED = "random() < 0.5e0 AS mixed"
"""A truth value that no two thousand rows share."""

EVEN_FROM = 12
"""Steps from which on they are made even, where none is of texts."""

REARRANGING = (
    *("cte_filter_pusher", "filter_pullup", "filter_pushdown", "join_filter_pushdown"),
    *("late_materialization", "partial_aggregate_pushdown", "projection_placement"),
    *("projection_pullup", "regex_range", "row_group_pruner", "scalar_fn_pushdown"),
    "type_pushdown",
)
"""DuckDB's optimizers that move, copy or skip the work on a row. Those a version has are off."""

_MOST_STEPS = 8 * MOST_CALLS  # a call takes a few: the operation, a cast, a check of its result


@dataclass(frozen=True, slots=True)
class Typed:
    """A column or constant, its type (None: always missing), and whether it may be NaN as yet.

    `after` says when it is there: after that many joins and steps.
    """

    sql: str
    type: ColumnType | None
    unsettled: bool = False
    constant: bool = False
    after: tuple[int, int] = (0, 0)
    value: Value = None  # of a constant


class Steps:
    """The operations of a statement, gathered as expressions are spelled."""

    def __init__(self, *, evens: bool = True) -> None:
        self.evens = evens
        self._known: dict[tuple[str, ColumnType | None], Typed] = {}
        self._steps: dict[tuple[int, int], list[tuple[str, str]]] = {}
        self._choices: set[str] = set()
        self.of_texts = False

    @property
    def even(self) -> bool:
        """Whether every step must take as long on rows that are all the same as on others."""
        many = len(self._known) - len(self._choices) >= EVEN_FROM
        return self.evens and (self.of_texts or many)

    def value(
        self, sql: str, kind: ColumnType | None, *operands: Typed, unsettled: bool = False
    ) -> Typed:
        """The operation `sql` over these operands, as a column; the same one if it is known."""
        known = self._known.get((sql, kind))
        if known is not None:
            return known
        if len(self._known) >= _MOST_STEPS:
            raise refused("query", "asks for too many operations", "ask several questions")
        joins = max((operand.after[0] for operand in operands), default=0)
        place = max((o.after[1] for o in operands if o.after[0] == joins), default=0)
        after = joins, place + 1
        found = Typed(f"n{len(self._known) + 1}", kind, unsettled, after=after)
        self._known[sql, kind] = found
        self._steps.setdefault(after, []).append((sql, found.sql))
        return found

    def choice(self, sql: str, kind: ColumnType | None, *operands: Typed) -> Typed:
        """An operation whose value may be the same for all rows, as a column that is even."""
        raw = self.value(sql, kind, *operands)
        found = self.value(evened(raw.sql), kind, raw)
        self._choices.add(found.sql)
        return found

    def after_joins(self, number: int) -> Iterator[str]:
        """What each step selects, in order, between this join and the next."""
        for after in sorted(place for place in self._steps if place[0] == number):
            yield "*, " + ", ".join(self._spelled(*step) for step in self._steps[after])

    def _spelled(self, sql: str, name: str) -> str:
        if name in self._choices and not self.even:
            sql = sql.rpartition(" ELSE ")[2].removesuffix(" END")
        return f"{sql} AS {name}"


def evened(name: str) -> str:
    """The column, written out row by row.

    >>> evened("n1")
    'CASE WHEN mixed THEN n1 ELSE n1 END'
    """
    return f"CASE WHEN mixed THEN {name} ELSE {name} END"


_BIGGEST = 2**63 - 1


def identifier(name: str) -> str:
    """A name of a column or table.

    >>> identifier('a "b" c')
    '"a ""b"" c"'
    """
    return f'"{_plain(name).replace(chr(34), chr(34) * 2)}"'


def string(value: str) -> str:
    """A text.

    >>> string("it's")
    "'it''s'"
    """
    return f"'{_plain(value).replace(chr(39), chr(39) * 2)}'"


def double(value: Fraction | int | float) -> str:
    """The double nearest to a number.

    >>> double(Fraction(1, 10))
    '0.1e0'
    """
    try:
        near = float(value)
    except OverflowError:
        near = inf
    if isinf(near):
        raise refused("a number", "is beyond the range of doubles", "use a smaller one")
    written = repr(near)
    return f"({written})" if "e" in written else f"{written}e0" if near >= 0 else f"({written}e0)"


def least_double_from(value: Fraction) -> float:
    """The least double >= value: a double x is >= value just if it is >= this one.

    >>> least_double_from(Fraction(1, 10)) == 0.1, least_double_from(Fraction(1, 3)) > 1/3
    (True, True)
    """
    try:
        near = float(value)
    except OverflowError:
        raise refused("an edge", "is beyond the range of doubles", "use a smaller one") from None
    return near if Fraction(near) >= value else nextafter(near, inf)


def literal(value: Value) -> str:
    """A constant, of its own SQL type.

    >>> literal(5), literal(None), literal(date(2026, 1, 31)), literal(True)
    ('CAST(5 AS BIGINT)', 'NULL', "CAST('2026-01-31' AS DATE)", 'TRUE')
    """
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            if not -_BIGGEST <= value <= _BIGGEST:
                raise refused("a whole number", "has more than 63 bits", "use a smaller one")
            return f"CAST({value} AS BIGINT)"
        case Fraction():
            return double(value)
        case str():
            return string(value)
        case datetime():
            if value.tzinfo is not None:
                raise refused("a time", "has a time zone", "write it in UTC, without one")
            return f"CAST('{value.isoformat(sep=' ')}' AS TIMESTAMP)"
        case date():
            return f"CAST('{value.isoformat()}' AS DATE)"


def _plain(value: str) -> str:
    if "\0" in value or any("\ud800" <= letter <= "\udfff" for letter in value):
        raise refused(
            "a text or name", "holds a NUL or half of a surrogate pair", "leave such characters out"
        )
    return value
