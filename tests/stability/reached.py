"""Rows that reach their unit through other tables: tables, neighbours and what they join to.

Identifiers are texts that read alike or not (`1`, `01`, `x`), are missing, are there several times
for one unit and for several, and lead nowhere. What is joined is worked out row by row.
"""

from dataclasses import dataclass, replace
from functools import cache

import duckdb
from hypothesis import HealthCheck, Phase, assume, given, seed, settings, strategies as st

from lastbit.tables.card.column import Column
from lastbit.tables.card.schema import LinkedTable, Source
from lastbit.tables.compile.duckdb import DUCKDB
from lastbit.tables.compile.rows import private_relation, relation
from lastbit.tables.compile.statement import statement
from lastbit.tables.compile.steps import identifier
from lastbit.tables.query.derived import columns_in
from tests.kernel.unsealing import opened_rows
from tests.stability.cases import LINE, TEXTS, Case, cases, column, owned
from tests.stability.engine import COLUMNS, LABS, PUBLIC, SECRET
from tests.stability.reference import hashed
from tests.stability.units import LAB_LINES, UNIT_KINDS, unit_cases
from tests.tables.connecting import connected

KINDS = ("declared", "found", "joined", "private", "per unit", "per unit joined")
OWN = ("cat", "num", "x", "junk")
THERE = ("who", "name", "flag", "day")
"""The columns of the table itself, and those of the last one on the way."""
RAW = (None, "1", "1", "2", "2", "01", " 1", "1.0", "x", "", "9223372036854775808", "3")
TABLES = {
    relation(): {"o": "VARCHAR", **{name: COLUMNS[name] for name in OWN}},
    private_relation("middle"): {"id": "VARCHAR", "b": "VARCHAR"},
    private_relation("last"): {"id": "VARCHAR", **{name: COLUMNS[name] for name in THERE}},
    relation("places"): PUBLIC,
    private_relation("labs"): LABS,
}


@dataclass(frozen=True, repr=False)
class Tables:
    """Rows of the table, of the one in the middle (if there is one) and of the last one.

    Also those of a second private table, which is joined on the unit.
    """

    items: tuple
    middle: tuple
    last: tuple
    labs: tuple = ()


@dataclass(frozen=True, repr=False)
class ReachedCase:
    case: Case
    tables: Tables
    others: tuple
    """The tables of neighbours."""

    def __repr__(self):
        way = self.case.card.way()
        tables = [
            (one.items, one.middle, one.last, one.labs) for one in (self.tables, *self.others)
        ]
        return f"ReachedCase({self.case!r}, {way}, {tables})"


@cache
def read(kind):
    """What each raw identifier is, where the card reads it as this type."""
    values = {
        raw: duckdb.execute("SELECT TRY_CAST(? AS BIGINT)", [raw]).fetchall()[0][0] for raw in RAW
    }
    return {raw: raw for raw in RAW} if kind == "text" else values


def chains(tables, card):
    """Every row of every table that meets others up to a unit, without limits: by their places."""
    key = read(card.column("o").type)

    def meet(a, b):
        return key[a] is not None and key[a] == key[b]

    two = len(card.through) == 2
    for i, item in enumerate(tables.items):
        middles = enumerate(tables.middle) if two else [(None, (item[0], item[0]))]
        for j, (own, other) in middles:
            for k, last in enumerate(tables.last) if own is item[0] or meet(item[0], own) else ():
                if meet(other, last[0]):
                    yield i, j, k


def joined_rows(tables, query, card):
    """The rows of all units, with the columns of `COLUMNS`: by the rule of `compile/reached.py`."""
    key, unit = read(card.column("o").type), THERE.index(card.unit)
    inner = query.per_unit or query  # what meets the table
    sides = [own for join in inner.joins for own, _ in join.on]
    every = [*inner.expressions(), *sides]
    named = {one.name for e in every for one in columns_in(e) if one.table is None} | {card.unit}
    wanted = sorted(named & set(THERE))

    def order(last):
        return [*(last[1 + THERE.index(name)] for name in wanted), key[last[0]]]

    def first(rows, most):
        """Of each unit's rows with one key, these; (key, unit, what is hashed, further columns)."""
        found = {}
        for row in sorted(rows, key=lambda row: hashed("", *row[2])):
            found.setdefault(row[:2], []).append(row)
        return [row for same in found.values() for row in same[:most]]

    *before, end = card.through
    rows = [
        (key[one[0]], one[1 + unit], (*order(one),), one[1:])
        for one in tables.last
        if key[one[0]] is not None and one[1 + unit] is not None
    ]
    rows = first(rows, end.max_rows)
    if before:
        met = [
            (key[own], row[1], (*row[2], key[other], key[own]), row[3])
            for own, other in tables.middle
            for row in rows
            if key[own] is not None and key[other] == row[0]
        ]
        rows = first(met, before[0].max_rows)
    places = {name: i for i, name in enumerate(OWN, start=1)}
    return tuple(
        tuple(
            item[places[name]] if name in places else row[3][THERE.index(name)] for name in COLUMNS
        )
        for item in tables.items
        for row in rows
        if key[item[0]] is not None and key[item[0]] == row[0]
    )


@st.composite
def reached_cards(draw, card):
    kind = draw(st.sampled_from(["integer", "integer", "text"]))
    columns = dict(card.columns)
    columns["o"] = Column(name="o", type=kind)
    there = {name: name for name in THERE}
    source, limit = Source(kind="frame"), st.sampled_from([1, 1, 2, 3])
    if draw(st.booleans()):
        on = (("o", "id"),)
        last = LinkedTable(name="last", source=source, on=on, columns=there, max_rows=draw(limit))
        return replace(card, columns=columns, through=(last,))
    columns["b"] = Column(name="b", type=kind)
    middle = LinkedTable(
        name="middle",
        source=source,
        on=(("o", "id"),),
        columns={"b": "b"},
        max_rows=draw(limit),
    )
    on = (("b", "id"),)
    last = LinkedTable(name="last", source=source, on=on, columns=there, max_rows=draw(limit))
    return replace(card, columns=columns, through=(middle, last))


IDS = st.sampled_from(RAW)
ITEM = st.tuples(IDS, LINE).map(lambda pair: (pair[0], *pair[1][:3], pair[1][5]))
MIDDLE = st.tuples(IDS, IDS)


@st.composite
def rows_of_unit(draw, unit):
    found = []
    for _ in range(draw(st.integers(0, 4))):
        line = draw(LINE)
        found.append((draw(IDS), *unit, line[3], line[4]))
    return found


@st.composite
def reached_cases(draw, kind):
    case = draw(unit_cases(kind) if kind in UNIT_KINDS else cases(kind))
    assume(case.card.unit is not None)
    card = draw(reached_cards(case.card))
    units = [(i, TEXTS[i]) for i in range(draw(st.integers(1, 4)))] + [(None, None)]
    last = {unit: draw(rows_of_unit(unit)) for unit in units}
    items = tuple(draw(st.lists(ITEM, max_size=8)))
    middle = tuple(draw(st.lists(MIDDLE, max_size=6))) if len(card.through) == 2 else ()
    labs = {unit: owned(unit, draw(LAB_LINES)) for unit in units} if case.card.private else {}
    tables = Tables(items, middle, flat(last), flat(labs))
    others = []
    whole = card.neighbours.relation == "change-one"
    for unit in units:
        rest = {one: rows for one, rows in last.items() if one != unit}
        other_labs = {one: rows for one, rows in labs.items() if one != unit}
        left = Tables(*without(tables, card, unit)) if draw(st.booleans()) else tables
        new = draw(st.sampled_from([unit, (9, "new")])) if unit[0] is not None else unit
        if whole:
            rest[new] = draw(rows_of_unit(new))
            other_labs |= {new: owned(new, draw(LAB_LINES))} if labs else {}
        others.append(replace(left, last=flat(rest), labs=flat(other_labs)))
    rows = joined_rows(tables, case.query, card)
    one = replace(case, card=card, rows=rows, labs=tables.labs)
    return ReachedCase(one, tables, tuple(others))


def without(tables, card, unit):
    """The tables without rows through which this unit alone, or nobody, is reached."""
    reached = [(i, j, tables.last[k][1:3]) for i, j, k in chains(tables, card)]
    items = {i for i, _, whose in reached if whose != unit}
    middle = {j for _, j, whose in reached if whose != unit}
    # a row in the middle also leads to others where no item of theirs is there: it stays
    key = read(card.column("o").type)
    ends = {key[row[0]] for row in tables.last if row[1:3] != unit} - {None}
    return (
        tuple(one for i, one in enumerate(tables.items) if i in items),
        tuple(one for j, one in enumerate(tables.middle) if j in middle or key[one[1]] in ends),
        tables.last,
    )


def flat(table):
    return tuple(row for rows in table.values() for row in rows)


def spelled_of(reached, dialect=DUCKDB):
    """The statement of a case."""
    case = reached.case
    return statement(case.query, case.card, case.measures, secret=SECRET, dialect=dialect)


class ReachedEngine:
    """Runs a case's statement on its tables; `changed` rewrites its text first, for mutants."""

    def __init__(self, dialect=DUCKDB, tables=TABLES):
        self.dialect, self.tables = dialect, tables
        self.context = connected()
        self.connection = self.context.__enter__()
        self.connection.execute("SET threads = 1")
        for name, columns in tables.items():
            fields = ", ".join(f"{identifier(c)} {kind}" for c, kind in columns.items())
            self.connection.execute(f"CREATE TEMP TABLE {identifier(name)} ({fields})")

    def close(self):
        self.context.__exit__(None, None, None)

    def run(self, reached, tables, changed=None):
        case, spelled = reached.case, spelled_of(reached, self.dialect)
        sql = spelled.sql if changed is None else changed(spelled.sql)
        every = (tables.items, tables.middle, tables.last, case.places, tables.labs)
        for (name, columns), rows in zip(self.tables.items(), every, strict=True):
            self.connection.execute(f"DELETE FROM {identifier(name)}")
            if rows:
                lists = ", ".join(f"unnest(CAST(? AS {kind}[]))" for kind in columns.values())
                values = [list(one) for one in zip(*rows, strict=True)]
                self.connection.execute(f"INSERT INTO {identifier(name)} SELECT {lists}", values)
        found = self.connection.execute(sql).fetchall()
        return opened_rows(case.query, case.measures, spelled, found)


TEN = 10


def ten(kind, number, check):
    """Check ten cases of this number."""

    @seed(number)
    @settings(
        max_examples=TEN,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    @given(case=reached_cases(kind))
    def checked(case):
        check(case)

    checked()


assert column("who").name in THERE
