"""Columns of lists: tables whose rows have several elements, their neighbours, and what they mean.

Cases are those of `cases.py` and `units.py`. Of each unit's rows some in a row become one, with a
list of their values: of none, of several, of equal ones; some lists are missing. What UNNEST makes
of a list is worked out here, row by row.
"""

from dataclasses import dataclass, replace
from hashlib import md5
from itertools import groupby
from math import inf, nan

from hypothesis import HealthCheck, Phase, assume, given, seed, settings, strategies as st

from lastbit.tables.card.column import Column
from lastbit.tables.compile.duckdb import DUCKDB
from lastbit.tables.compile.rows import private_relation, relation
from lastbit.tables.compile.statement import statement
from lastbit.tables.compile.steps import identifier
from lastbit.tables.query.expression import ColumnName
from lastbit.tables.query.units import ListJoin
from tests.kernel.unsealing import opened_rows
from tests.stability.cases import TYPES, Case, cases
from tests.stability.engine import COLUMNS, LABS, PUBLIC, SECRET
from tests.stability.reached import OWN, TABLES, ReachedEngine
from tests.stability.units import UNIT_KINDS, unit_cases
from tests.tables.connecting import connected

KINDS = ("declared", "found", "joined", *UNIT_KINDS)
LISTED = tuple(name for name in COLUMNS if name not in ("who", "name"))
NAMES = list(COLUMNS)
SIZES = (2, 3, 0, 1, None, 4)
"""How many rows of a unit are put into one list, in turn; None is a list that is missing."""


@dataclass(frozen=True, repr=False)
class ListCase:
    """`case` is what is asked of the lists; `plain` the same of rows that have one value each."""

    case: Case
    plain: Case
    column: str
    table: tuple
    others: tuple
    """Tables of neighbours, with their rows of the second private table."""

    def __repr__(self):
        return f"ListCase({self.column}, {self.case!r}, {self.table}, {self.others})"


def folded(rows, column, first):
    """The table in which each unit's rows have lists; every unit's by itself."""
    place, found = NAMES.index(column), []
    for _, own in groupby(rows, key=lambda row: row[:2]):
        left, turn = list(own), first
        while left:
            size = SIZES[turn % len(SIZES)]
            some, left = left[: size or 1], left[size or 1 :]
            listed = None if size is None else [row[place] for row in some][:size]
            found.append((*some[0][:place], listed, *some[0][place + 1 :]))
            turn += 1
    return tuple(found)


def elements(table, column):
    """The rows that UNNEST makes: one for each element."""
    place = NAMES.index(column)
    return tuple(
        (*row[:place], one, *row[place + 1 :]) for row in table for one in row[place] or ()
    )


def asked_of_lists(case, column):
    """The case with the column as one of lists, and UNNEST of it."""
    join = ListJoin(column=ColumnName(column))
    query, inner = case.query, case.query.per_unit
    if inner is None:
        query = replace(query, joins=(join, *query.joins))
    else:
        query = replace(query, per_unit=replace(inner, joins=(*inner.joins, join)))
    columns = {
        name: replace(one, is_list=one.name == column) for name, one in case.card.columns.items()
    }
    columns.setdefault(column, Column(name=column, type=TYPES[column], is_list=True))
    return replace(case, query=query, card=replace(case.card, columns=columns, unrolled=column))


@st.composite
def list_cases(draw, kind):
    case = draw(unit_cases(kind) if kind in UNIT_KINDS else cases(kind))
    assume(case.card.unit is not None)
    column, first = draw(st.sampled_from(LISTED)), draw(st.integers(0, len(SIZES) - 1))
    others = tuple((folded(rows, column, first), labs) for rows, labs in case.neighbours)
    table = folded(case.rows, column, first)
    asked = asked_of_lists(case, column)
    return ListCase(asked, case, column, table, others)


def spelled_of(listed, dialect=DUCKDB):
    """The statement of a case."""
    case = listed.case
    return statement(case.query, case.card, case.measures, secret=SECRET, dialect=dialect)


class ListEngine:
    """Runs a case's statement on its tables; `changed` rewrites its text first, for mutants."""

    def __init__(self, dialect=DUCKDB):
        self.dialect = dialect
        self.context = connected()
        self.connection = self.context.__enter__()
        self.connection.execute("SET threads = 1")

    def close(self):
        self.context.__exit__(None, None, None)

    def fill(self, name, rows, columns):
        fields = ", ".join(f"{identifier(c)} {kind}" for c, kind in columns.items())
        self.connection.execute(f"CREATE OR REPLACE TEMP TABLE {identifier(name)} ({fields})")
        if rows:
            lists = ", ".join(f"unnest(CAST(? AS {kind}[]))" for kind in columns.values())
            values = [list(one) for one in zip(*rows, strict=True)]
            self.connection.execute(f"INSERT INTO {identifier(name)} SELECT {lists}", values)

    def run(self, listed, table, labs, changed=None):
        case, spelled = listed.case, spelled_of(listed, self.dialect)
        sql = spelled.sql if changed is None else changed(spelled.sql)
        column = listed.column
        self.fill(relation(), table, {**COLUMNS, column: f"{COLUMNS[column]}[]"})
        self.fill(relation("places"), case.places, PUBLIC)
        self.fill(private_relation("labs"), labs, LABS)
        found = self.connection.execute(sql).fetchall()
        return opened_rows(case.query, case.measures, spelled, found)


# ---------------------------------------------------------------- that reach units through others


ITEM_COLUMNS = ("o", *OWN)
VALUES = {"cat": "aA", "num": (1, -1, 2**70), "x": (0.5, inf, nan), "junk": ("12", "abc", "inf")}


def with_lists(tables, column):
    """The tables in which each item has a list, as its own values say and no others."""
    place, found = ITEM_COLUMNS.index(column), []
    for item in tables.items:
        drawn = md5(repr(item).encode()).digest()
        among, size = (item[place], None, *VALUES[column]), SIZES[drawn[0] % len(SIZES)]
        listed = None if size is None else [among[one % len(among)] for one in drawn[1 : 1 + size]]
        found.append((*item[:place], listed, *item[place + 1 :]))
    return replace(tables, items=tuple(found))


def without_lists(tables, column):
    """The tables in which each element is an item."""
    place = ITEM_COLUMNS.index(column)
    items = ((*i[:place], one, *i[place + 1 :]) for i in tables.items for one in i[place] or ())
    return replace(tables, items=tuple(items))


def reached_engine(column):
    """Runs cases in which items have lists."""
    own = {**TABLES[relation()], column: f"{TABLES[relation()][column]}[]"}
    return ReachedEngine(tables={**TABLES, relation(): own})


TEN = 10


def ten(kind, number, check):
    """Check ten cases of this number."""

    @seed(number)
    @settings(
        max_examples=TEN,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    @given(case=list_cases(kind))
    def checked(case):
        check(case)

    checked()
