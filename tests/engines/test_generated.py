"""Generated questions on generated tables: every integer is DuckDB's, and no unit moves one further
than claimed.

`make test` asks a few of each kind, `make evidence` hundreds. LASTBIT_TIMES=5 makes over 10,000
pairs of neighbours an engine.
"""

import random
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import cache

import pytest

from lastbit.errors import QueryRefused
from lastbit.tables.compile.rows import relation
from lastbit.tables.plan.sensitivity import measures_of
from lastbit.tables.query.expression import ColumnName
from lastbit.tables.query.query import Aggregate, Query
from tests.engines.batches import batches, batching, cases_of, drawn, plain
from tests.engines.running import card_of
from tests.engines.values import DAYS, DOUBLES, INTEGERS, KINDS as KINDS_OF, TEXTS
from tests.stability.cases import KINDS, functions_in
from tests.stability.judging import exact, violations
from tests.stability.reference import INEXACT
from tests.stability.test_marginals import marginals_of, tables, violations as marginals_move
from tests.stability.units import UNIT_KINDS
from tests.tables import hostile

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")
EVERY = (*KINDS, *UNIT_KINDS)
MOST_REFUSED = 0.6
"""Of one kind: many join fractions of a private table, among which no other engine chooses."""


@cache
def examples(kind, number):
    """Cases, the same for every engine."""
    return drawn(cases_of(kind), number)


class Asked:
    """Asks an engine and DuckDB, compares, and counts what was compared or refused."""

    def __init__(self, engine, duck):
        self.engine, self.duck, self.count = engine, duck, Counter()

    def both(self, run, case):
        """What DuckDB gives, after the engine gave the same; None if its dialect refuses."""
        try:
            found = run(self.engine)
        except QueryRefused as refusal:
            self.count[f"refused: {refusal}"] += 1
            return None
        wanted = run(self.duck)
        self.count["runs"] += 1
        assert not exact(case) or plain(found) == plain(wanted)
        return found

    def judged(self, case):
        """Each table of a case alone."""
        base = self.both(lambda one: one.run(case, case.rows), case)
        self.count["questions"] += base is not None
        for rows, labs in case.neighbours if base is not None else ():
            other = self.both(lambda one, r=rows, w=labs: one.run(case, r, labs=w), case)
            assert list(violations(case, base, other)) == []
            self.count["pairs"] += 1

    def judged_at_once(self, batch):
        """All tables of a batch in one statement."""
        found = self.both(lambda one: in_one(one, batch), batch.whole)
        if found is None:
            return
        self.count["questions"] += 1
        each = batch.split(found)
        for first, second in batch.neighbours:
            assert list(violations(batch.single, each[first], each[second])) == []
        self.count["runs"] += len(each) - 1
        self.count["pairs"] += len(batch.neighbours)

    def refused(self):
        """The share of questions that were refused."""
        refused = sum(n for name, n in self.count.items() if name.startswith("refused"))
        return refused / (refused + self.count["questions"])


def in_one(runner, batch):
    """The batch's statement; units choose as they would alone."""
    own = runner.dialect
    runner.dialect = batching(own)
    try:
        return runner.run(batch.whole, batch.whole.rows)
    finally:
        runner.dialect = own


def test_tables_in_one_are_as_each_alone(duck, extent):
    for kind in EVERY:
        for batch in mixed(batches(examples(kind, 48), 2))[: extent.number(2, 6)]:
            found = batch.split(in_one(duck, batch))
            for (rows, labs), own in zip(batch.tables, found, strict=True):
                case = replace(batch.single, labs=labs)
                assert plain(duck.run(case, rows)) == plain(own)


@pytest.mark.parametrize("kind", EVERY)
def test_each_table_alone(engine, duck, extent, kind):
    asked, number = Asked(engine, duck), engine.number(extent, 3, 16)
    for case in mixed(examples(kind, max(48, 2 * number))):
        asked.judged(case if extent.is_many or engine.slow == 1 else without_neighbours(case))
        if asked.count["questions"] == number:
            break
    assert asked.count["questions"] == number


@pytest.mark.parametrize("kind", EVERY)
def test_many_tables_in_one(engine, duck, extent, kind):
    asked, number = Asked(engine, duck), engine.number(extent, 4, 24)
    size = 8 if engine.slow == 1 else 24
    for batch in mixed(batches(examples(kind, max(48, 2 * number)), size)):
        asked.judged_at_once(batch)
        if asked.count["questions"] == number:
            break
    print(dict(asked.count))
    assert asked.count["pairs"] >= extent.number(10, 100)
    assert not extent.is_many or asked.refused() <= MOST_REFUSED, asked.count


def mixed(found):
    """In another order, the same each time: the first examples are the plainest."""
    return random.Random(7).sample(found, len(found))


def without_neighbours(case):
    return replace(case, others=(), other_labs=())


def test_expressions_made_to_stop_it(engine, duck, extent):
    """Overflow at each level, long texts, patterns that go back, casts that fail: for one row."""
    types = {name: KINDS_OF[kind][0] for name, kind in hostile.TYPES.items()}
    lists = [[hostile.CHOSEN, *TEXTS], INTEGERS, DOUBLES, TEXTS[::-1], DAYS]
    rows = [(i, *(own[i % len(own)] for own in lists)) for i in range(70)]
    for one in (engine, duck):
        one.make(relation(), types, rows)
    card, count = hostile.card(), Counter()
    for name, expression in hostile.expressions(random.Random(7), engine.number(extent, 32, 240)):
        query = hostile.counting(expression)
        measures = measures_of(query)[0]
        try:
            found = engine.asked(query, card, measures)
        except QueryRefused:
            continue
        wanted = duck.asked(query, card, measures)
        assert functions_in(query) & INEXACT or plain(found) == plain(wanted), expression
        count[name] += 1
    assert len(count) >= (4 if extent.is_many else 1)


LARGE = card_of({"i": "integer", "v": "integer"}, unit="i")
HUGE = Fraction(1 << 43)


def large_sums(runner):
    """Sums and sums of squares that need more than 64 bits: a weight has 20 of them."""
    values = (1 << 43, 1 << 62, (1 << 43) - 7, 1 << 42, 300)
    rows = [*enumerate(values[i % 5] - i for i in range(300))]
    runner.make(relation(), {"i": "bigint", "v": "bigint"}, rows)
    column = ColumnName("v")
    parts = [
        Aggregate(name=f, function=f, expression=column, bounds=(-most, most), step=Fraction(1))
        for f, most in (("sum", HUGE), ("mean", HUGE), ("variance", HUGE / (1 << 11)))
    ]
    query = Query(table="t", aggregates=tuple(parts))
    return runner.asked(query, LARGE, measures_of(query)[0])


def test_sums_of_more_than_64_bits(engine, duck):
    found = large_sums(engine)
    assert plain(found) == plain(large_sums(duck))
    assert max(abs(n) for own in found.entries.values() for n in own) > 1 << 80


@pytest.mark.parametrize("number", [31, 32, 60])
def test_many_quantiles(engine, duck, number):
    """GROUPING of PostgreSQL takes fewer than 32 columns; more failed in the server's own words."""
    if engine.name == "spark" and number != 32:
        pytest.skip("Spark compiles each for ten seconds: one will do")
    parts = [
        Aggregate(
            name=f"q{i}",
            function="quantile",
            expression=ColumnName("v"),
            bounds=(Fraction(0), Fraction(9 + i)),
            level=Fraction(1, 2),
        )
        for i in range(number)
    ]
    query = Query(table="t", aggregates=tuple(parts))
    found = []
    for one in (engine, duck):
        one.make(relation(), {"i": "bigint", "v": "bigint"}, [(i, i % 11) for i in range(40)])
        found.append(plain(one.asked(query, LARGE, measures_of(query)[0])))
    assert found[0] == found[1] and len(found[0][2]) == number


@pytest.mark.parametrize("kind", ["declared", "joined", "rows"])
def test_marginals(engine, duck, extent, kind):
    few = not extent.is_many and engine.slow > 1
    for case in drawn(tables(kind), engine.number(extent, 3, 12)):
        asked = marginals_of(case)
        try:
            base = engine.marginals(case, case.rows, asked)
        except QueryRefused:
            continue
        assert not exact(case) or base == duck.marginals(case, case.rows, asked)
        for rows in case.others[:1] if few else case.others:
            other = engine.marginals(case, rows, asked)
            assert list(marginals_move(case, base, other)) == []
