"""Many small tables in one: one statement for all of them, where a statement takes long.

Law      a row says in the column `batch` of which table it is; the question groups by that first.
         Each unit's name begins with the number of its table
Theorem  the entries of a table are those that the statement gives of it alone: no unit has rows in
         two tables, so its weight, its keys and its values are chosen in one; and the hash by
         which it chooses leaves out both the key and the beginning of the name (`batching`)
Checked  tests/engines/test_generated.py (on DuckDB, each table alone beside all of them in one)
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings

from lastbit.kernel.sealed import Aggregates
from lastbit.tables.card.column import Column
from lastbit.tables.query.expression import ColumnName
from lastbit.tables.query.scan import GroupKey
from lastbit.tables.query.units import UnitKey
from tests.stability.cases import Case, cases
from tests.stability.units import UNIT_KINDS, unit_cases

BATCH = "batch"
_MARK = "777777"
_NAMED = f"^{_MARK}[0-9]{{6}}"


@dataclass(frozen=True)
class Batch:
    """A question about many tables, as one; and which two of these are neighbours."""

    single: Case
    whole: Case
    tables: Sequence[tuple[Any, Any]]
    neighbours: Sequence[tuple[int, int]]

    def split(self, found: Aggregates) -> list[Aggregates]:
        """The aggregates of every table."""
        return [of_table(found, number) for number in range(len(self.tables))]


def drawn(strategy: Any, number: int) -> list[Any]:
    """Examples of a strategy, the same each time."""
    found: list[Any] = []

    @settings(max_examples=number, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(case=strategy)
    def keep(case: Any) -> None:
        found.append(case)

    keep()
    return found


def cases_of(kind: str) -> Any:
    """The stability suite's cases."""
    return unit_cases(kind) if kind in UNIT_KINDS else cases(kind)


def batches(found: list[Case], size: int) -> list[Batch]:
    """Each case's question about its own tables and those of the next cases, `size` in all.

    Two tables that are neighbours where a unit changes are not where it comes or goes.
    """
    result = []
    for relation in ("add-remove", "change-one"):
        alike = [case for case in found if case.card.neighbours.relation == relation]
        twice = alike + alike
        result += [_batch(case, twice[at : at + size]) for at, case in enumerate(alike)]
    return result


def _batch(case: Case, others: Sequence[Case]) -> Batch:
    tables: list[tuple[Any, Any]] = []
    neighbours = []
    for one in others:
        first = len(tables)
        tables.append((one.rows, one.labs))
        for pair in one.neighbours:
            neighbours.append((first, len(tables)))
            tables.append(pair)
    whole = batched(case, len(tables))
    rows = [
        (*unit_of_table(number, row), number)
        for number, (own, _) in enumerate(tables)
        for row in own
    ]
    labs = [unit_of_table(number, row) for number, (_, own) in enumerate(tables) for row in own]
    whole = replace(whole, rows=tuple(rows), labs=tuple(labs), others=(), other_labs=())
    return Batch(case, whole, tables, neighbours)


def batched(case: Case, number: int) -> Case:
    """The case's question, grouped by the number of the table first."""
    column, inner = ColumnName(BATCH), case.query.per_unit
    if inner is not None:
        inner = replace(inner, keys=(UnitKey(name=BATCH, expression=column), *inner.keys))
    key = GroupKey(name=BATCH, expression=column, values=tuple(range(number)))
    return replace(
        case,
        query=replace(case.query, keys=(key, *case.query.keys), per_unit=inner),
        card=replace(
            case.card, columns={**case.card.columns, BATCH: Column(name=BATCH, type="integer")}
        ),
    )


def batching(dialect: Any) -> Any:
    """The dialect, but that units of tables in one choose as they would in their own."""

    class Batching(type(dialect)):  # type: ignore[misc]
        def keyed_hash(self, columns: Any, secret: str) -> str:
            text = self.types["text"]
            own = [
                (f"regexp_replace(CAST({sql} AS {text}), '{_NAMED}', '')", "text")
                if kind in ("integer", "text")
                else (sql, kind)
                for sql, kind in columns
                if not sql.endswith(".g1")
            ]
            return super().keyed_hash(own, secret)

    return Batching()


def id_of_table(number: int, value: Any) -> Any:
    """The number of the table before an identifier, a whole number from 0 on or a text."""
    if value is None:
        return None
    return type(value)(f"{_MARK}{number:06}{value}")


def unit_of_table(number: int, row: Sequence[Any]) -> tuple[Any, ...]:
    """The row with the number of its table before both names of its unit."""
    whole, text, *rest = row
    return (id_of_table(number, whole), id_of_table(number, text), *rest)


def of_table(found: Aggregates, number: int) -> Aggregates:
    """The aggregates of the table of this number."""
    places = [place for place, key in enumerate(found.keys) if key[0] == number]
    units, single = (
        [own[at] for at in places] if own else [] for own in (found.units, found.single)
    )
    return Aggregates(
        keys=[found.keys[place][1:] for place in places],
        entries={name: [own[place] for place in places] for name, own in found.entries.items()},
        bins={name: [list(own[place]) for place in places] for name, own in found.bins.items()},
        units=units,
        single=single,
    )


def plain(found: Aggregates) -> Any:
    """All integers, to be compared."""
    entries = {name: list(own) for name, own in found.entries.items()}
    bins = {name: [list(one) for one in own] for name, own in found.bins.items()}
    return list(found.keys), entries, bins, list(found.units), list(found.single)
