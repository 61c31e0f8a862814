"""Rows that reach their unit through other tables: every integer is DuckDB's, and no unit moves one
further than claimed; and which tables may be on the way to a unit.

`make test` asks a question of each kind about some hundred tables, `make evidence` of over 5,000
pairs of neighbours an engine.
"""

import random
from functools import cache

import pytest

from tests.engines.batches import drawn, plain
from tests.engines.reached import alone, in_one, reached_batches
from tests.engines.test_generated import Asked
from tests.stability.cases import TEXTS
from tests.stability.judging import violations
from tests.stability.reached import KINDS, reached_cases

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")
SIZE = 20
MOST_REFUSED = 0.6


@cache
def examples(kind, number):
    """Cases, the same for every engine."""
    return drawn(reached_cases(kind), number)


def batches_of(kind, number):
    """In another order than the plainest first."""
    found = reached_batches(examples(kind, number), SIZE)
    return random.Random(7).sample(found, len(found))


def is_full(found):
    """Whether a number is not 0."""
    bins = (one for own in found.bins.values() for one in own)
    return any(map(any, (*found.entries.values(), *bins)))


def test_tables_in_one_are_as_each_alone(duck, extent):
    for kind in KINDS:
        for batch in batches_of(kind, 24)[: extent.number(1, 6)]:
            found = batch.split(in_one(duck, batch))
            for tables, own in zip(batch.tables, found, strict=True):
                assert plain(alone(duck, batch.single, tables, batch.turn)) == plain(own)


@pytest.mark.parametrize("kind", KINDS)
def test_the_integers_are_those_of_duckdb_and_nobody_moves_them_too_far(engine, duck, extent, kind):
    asked, pairs = Asked(engine, duck), extent.number(60, 900)
    for batch in batches_of(kind, extent.number(24, 48)):
        found = asked.both(lambda one, b=batch: in_one(one, b), batch.whole)
        if found is None:
            continue
        asked.count["questions"] += 1
        each = batch.split(found)
        for first, second in batch.neighbours:
            assert list(violations(batch.single, each[first], each[second])) == []
        asked.count["pairs"] += len(batch.neighbours)
        asked.count["full tables"] += sum(map(is_full, each))
        if asked.count["pairs"] >= pairs and asked.count["full tables"]:
            break
    print(kind, dict(asked.count))
    assert asked.count["pairs"] >= pairs and asked.count["full tables"]
    assert not extent.is_many or asked.refused() <= MOST_REFUSED, asked.count


HASHED = {"i": "bigint", "t": "timestamp", "d": "date", "b": "boolean", "s": "text"}
TIMES = (0, 1, 500_000, -1, 86_399_999_999, 10**15 + 120, -62_135_596_800_000_000, None)


def hashes(runner):
    """By which rows are chosen: of times, days, truth values and texts."""
    rows = [
        (
            i,
            time,
            None if time is None else time // 86_400_000_000,
            (True, False, None)[i % 3],
            text,
        )
        for i, (time, text) in enumerate(zip(TIMES, [*TEXTS[:7], None], strict=True))
    ]
    runner.make("hashed", HASHED, rows)
    dialect, names = runner.dialect, [*HASHED][1:]
    kinds = {"t": "timestamp", "d": "date", "b": "boolean", "s": "text"}
    casts = [
        f"{dialect.read(dialect.identifier(name), kinds[name], kinds[name])} AS c{name}"
        for name in names
    ]
    cast = (
        f"SELECT {dialect.identifier('i')} AS i, {', '.join(casts)} FROM {runner.place('hashed')}"
    )
    columns = [(f"c{name}", kinds[name]) for name in names]
    sql = f"SELECT i, {dialect.keyed_hash(columns, 'a secret')} FROM {dialect.nested(cast)}"
    return sorted(runner.ran(sql))


def test_times_and_days_are_hashed_alike(engine, duck):
    found = hashes(engine)
    assert found == hashes(duck) and len({one for _, one in found}) == len(TIMES)
