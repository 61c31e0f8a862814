"""Tables that reach their unit through others, on any engine: a case's tables, and many in one.

Law      as in `batches.py`, of which these are the batches: the table says of each row whose it is,
         and every id, as every unit, begins with the number of its table
Theorem  the chains of a table are those that it has alone: no id is in two of them. The hash by
         which rows are chosen leaves the beginning of ids out
Checked  tests/engines/test_reached.py (on DuckDB, each table alone beside all of them in one)
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lastbit.kernel.sealed import Aggregates
from lastbit.tables.card.schema import DataCard
from lastbit.tables.compile.rows import private_relation, relation
from tests.engines.batches import BATCH, batched, batching, id_of_table, of_table, unit_of_table
from tests.engines.running import PLACES, PRIVATE, TABLE, Runner, junk_number
from tests.stability.cases import DAYS, FLOATS, JUNK, TEXTS, Case
from tests.stability.reached import OWN, THERE, Tables, flat, read, without

_WHOLE = ("bigint", "double", "whole decimal", "bigint")
"""Types in which an engine may store whole numbers; they are equal where the card's type is."""

_PLACES = ("a", "X", 0), ("b", "a", 1), ("A", None, 2)


@dataclass(frozen=True)
class ReachedBatch:
    """A question about many tables, as one; and which two of these are neighbours."""

    single: Case
    whole: Case
    tables: Sequence[Tables]
    neighbours: Sequence[tuple[int, int]]
    turn: int

    def split(self, found: Aggregates) -> list[Aggregates]:
        """The aggregates of every table."""
        return [of_table(found, number) for number in range(len(self.tables))]


def reached_batches(found: Sequence[Any], size: int) -> list[ReachedBatch]:
    """Each case's question about its own tables and `size` fuller ones; every other has no WHERE:
    of what is drawn alone, few rows meet up to the end and pass.
    """
    return [_batch(one, size, turn) for turn, one in enumerate(found)]


def _batch(own: Any, size: int, turn: int) -> ReachedBatch:
    case, chance = own.case, random.Random(turn)
    if turn % 2:
        case = replace(case, query=replace(case.query, where=None))
    if case.query.all_joins and not case.places:
        case = replace(case, places=_PLACES)
    full = (_full_tables(case, chance) for _ in range(size))
    tables: list[Tables] = []
    neighbours = []
    for base, others in ((own.tables, own.others), *full):
        first = len(tables)
        tables.append(base)
        for pair in others:
            neighbours.append((first, len(tables)))
            tables.append(pair)
    return ReachedBatch(case, batched(case, len(tables)), tables, neighbours, turn)


def _full_tables(case: Case, chance: random.Random) -> tuple[Tables, list[Tables]]:
    """Tables in which many rows meet, and those without the rows of one unit, or with others."""
    units: list[Any] = [(i, TEXTS[i]) for i in range(3)] + [(None, None)]
    ids, two = (None, "1", "1", "2", "3", "01"), len(case.card.through) == 2
    cats = [*TEXTS[:3], *(row[0] for row in case.places)]
    levels = [0, 1, 2, 7, *(row[2] for row in case.places)]

    def some(most: int, make: Callable[[], Any]) -> list[Any]:
        return [make() for _ in range(chance.randint(1, most))]

    def item() -> Any:
        line = chance.choice(cats), chance.choice(levels), chance.choice(FLOATS)
        return (chance.choice(ids), *line, chance.choice([*JUNK]))

    def last_of(unit: Any) -> list[Any]:
        ends: list[Any] = [[None, True, False], [None, *DAYS]]
        return some(3, lambda: (chance.choice(ids), *unit, *map(chance.choice, ends)))

    def labs_of(unit: Any) -> list[Any]:
        if not case.card.private:
            return []
        lists: list[Any] = [cats, levels, FLOATS]
        return some(3, lambda: (*unit, *map(chance.choice, lists)))

    last, labs = ({unit: make(unit) for unit in units} for make in (last_of, labs_of))
    middle = some(6, lambda: (chance.choice(ids), chance.choice(ids))) if two else []
    base = Tables(tuple(some(12, item)), tuple(middle), flat(last), flat(labs))
    others = []
    for unit in units:
        rest, other_labs = dict(last), dict(labs)
        del rest[unit], other_labs[unit]
        left = Tables(*without(base, case.card, unit)) if chance.random() < 0.5 else base
        if case.card.neighbours.relation == "change-one":
            rest[unit], other_labs[unit] = last_of(unit), labs_of(unit)
        others.append(replace(left, last=flat(rest), labs=flat(other_labs)))
    return base, others


def alone(runner: Runner, case: Case, tables: Tables, turn: int) -> Aggregates:
    """The aggregates of the tables of one case."""
    key = read(case.card.column("o").type)
    items = [(key[o], *rest, None) for o, *rest in tables.items]
    middle = [(key[a], key[b]) for a, b in tables.middle]
    last = [(key[o], *rest) for o, *rest in tables.last]
    _make(runner, case, (items, middle, last, tables.labs), turn)
    return runner.asked(case.query, case.card, case.measures)


def in_one(runner: Runner, batch: ReachedBatch) -> Aggregates:
    """Those of all tables, by one statement; units choose as they would alone."""
    key = read(batch.single.card.column("o").type)
    items, middle, last, labs = [], [], [], []
    for number, one in enumerate(batch.tables):
        named = {raw: id_of_table(number, value) for raw, value in key.items()}
        items += [(named[o], *rest, number) for o, *rest in one.items]
        middle += [(named[a], named[b]) for a, b in one.middle]
        last += [(named[o], *unit_of_table(number, rest)) for o, *rest in one.last]
        labs += [unit_of_table(number, row) for row in one.labs]
    _make(runner, batch.whole, (items, middle, last, labs), batch.turn)
    own = runner.dialect
    runner.dialect = batching(own)
    try:
        return runner.asked(batch.whole.query, batch.whole.card, batch.whole.measures)
    finally:
        runner.dialect = own


def _make(runner: Runner, case: Case, rows: Sequence[Any], turn: int) -> None:
    items, middle, last, labs = rows
    types = stored(case.card, turn)
    plain = [(*row, junk_number(junk), number) for *row, junk, number in items]
    runner.make(relation(), {"o": types[0], **{n: TABLE[n] for n in (*OWN, BATCH)}}, plain)
    if len(case.card.through) == 2:
        runner.make(private_relation("middle"), {"id": types[1], "b": types[2]}, middle)
    there = {"id": types[3], **{name: TABLE[name] for name in THERE}}
    runner.make(private_relation("last"), there, last)
    if case.query.all_joins:
        runner.make(relation("places"), PLACES, case.places)
        runner.make(private_relation("labs"), PRIVATE, labs)


def stored(card: DataCard, turn: int) -> list[str]:
    """The types of the columns that are equal, as they are stored: others each time."""
    if card.column("o").type == "text":
        return ["text"] * 4
    return [_WHOLE[(turn + place) % len(_WHOLE)] for place in range(4)]
