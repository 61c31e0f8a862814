"""Marginals by force: the real statement on the real engine, over neighbours made to break it."""

import re
from dataclasses import replace

import duckdb
import pytest
from hypothesis import HealthCheck, Phase, assume, find, given, settings, strategies as st

from lastbit.errors import EngineFailed
from lastbit.tables import RawRows
from lastbit.tables.compile.duckdb import DUCKDB
from lastbit.tables.compile.marginals import marginals_statement
from lastbit.tables.compile.rows import relation
from lastbit.tables.measures import Measure
from lastbit.tables.plan.marginals import marginals_query, marginals_up_to
from lastbit.tables.plan.sensitivity import sensitivity_of
from lastbit.tables.query.expression import Call, ColumnName, Constant
from lastbit.tables.query.scan import GroupKey
from lastbit.tables.query.units import PublicJoin
from tests.kernel.unsealing import opened_marginals
from tests.stability import reference
from tests.stability.cases import cases, functions_in, typed
from tests.stability.engine import COLUMNS, PUBLIC, SECRET, Engine

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")
KEYS = [
    ("cat", ColumnName("cat"), ("a", None, "", "'; DROP TABLE t; --")),
    ("flag", ColumnName("flag"), (True, False)),
    ("third", Call("%", (ColumnName("num"), Constant(3))), (-2, -1, 0, 1, 2, None)),
    ("band", Call("bin", (ColumnName("x"), Constant(-5), Constant(0), Constant(10))), (-5, 0)),
]
ROWS = Measure(name="m", kind="rows", nullable=False)


@pytest.fixture(scope="module")
def engine():
    found = Engine()
    yield found
    found.close()


@st.composite
def tables(draw, kind):
    """A case, with a question for marginals in place of its own."""
    case = draw(cases(kind))
    assume(all(isinstance(join, PublicJoin) for join in case.query.joins))
    assume(case.query.per_unit is None)
    chosen = draw(st.lists(st.sampled_from(KEYS), min_size=1, max_size=3, unique_by=lambda k: k[0]))
    keys = [GroupKey(name=n, expression=e, values=v) for n, e, v in chosen]
    query = marginals_query(case.card, keys, where=case.query.where, joins=case.query.joins)
    return replace(case, query=query, measures=(ROWS,))


def marginals_of(case):
    return marginals_up_to(len(case.query.keys), min(2, len(case.query.keys)))


def run(engine, case, rows, changed=None):
    """The entries of every marginal."""
    wanted = marginals_statement(case.query, case.card, marginals_of(case), dialect=DUCKDB)
    sql = wanted.sql
    engine.fill(relation(), rows, COLUMNS)
    if case.places != engine.places:
        engine.fill(relation("places"), case.places, PUBLIC)
        engine.places = case.places
    found = engine.connection.execute(sql if changed is None else changed(sql)).fetchall()
    return opened_marginals(case.query, marginals_of(case), RawRows(wanted, found))


def violations(case, base, other):
    limit = sensitivity_of(ROWS, case.card, groups=None)
    for one, two in zip(base, other, strict=True):
        steps = [abs(a - b) for a, b in zip(one, two, strict=True)]
        if sum(steps) > limit.l1:
            yield "L1"
        if sum(step**2 for step in steps) > limit.l2_squared:
            yield "L2"
        if max(steps) > limit.linf:
            yield "Linf"


def differs(case, rows, found):
    """Whether an entry is not the sum of the reference's cells of all columns."""
    if functions_in(case.query) & reference.INEXACT:
        return False
    public = {"places": typed(case.places, "places", tuple(PUBLIC))}
    wanted, _ = reference.measured(
        case.query, case.card, case.measures, typed(rows), public, SECRET
    )
    for one, entries in zip(marginals_of(case), found, strict=True):
        sums = {}
        for key, number in wanted["m"].items():
            short = tuple(key[place] for place in one)
            sums[short] = sums.get(short, 0) + number
        keys = [()]
        for place in one:
            keys = [(*key, value) for key in keys for value in case.query.keys[place].values]
        if entries != [sums.get(key, 0) for key in keys]:
            return True
    return False


@pytest.mark.parametrize("kind", ["declared", "joined", "rows"])
def test_nobody_moves_a_table_further_than_claimed(engine, extent, kind):
    @settings(max_examples=extent.generated(10, 250), suppress_health_check=list(HealthCheck))
    @given(case=tables(kind))
    def holds(case):
        base = run(engine, case, case.rows)
        assert not differs(case, case.rows, base)
        for rows in case.others:
            other = run(engine, case, rows)
            assert list(violations(case, base, other)) == []
            assert not differs(case, rows, other)

    holds()


# ---------------------------------------------------------------- mutants


def unbounded(sql):
    return sql.replace("coalesce(h.w, CAST(1048576 AS BIGINT))", "CAST(1048576 AS BIGINT)")


def weights_rounded_up(sql):
    pattern = r"CAST\((\d+) AS BIGINT\) // count\(\*\)"
    return re.sub(pattern, r"(CAST(\1 AS BIGINT) + count(*) - 1) // count(*)", sql)


def rows_of_all_units_in_one(sql):
    return sql.replace("u IS NOT NULL", "TRUE")


def rows_in_two_cells(sql):
    return sql.replace(
        "FROM s GROUP BY", "FROM (SELECT * FROM s UNION ALL SELECT * FROM s) GROUP BY"
    )


def tables_exchanged(sql):
    found = re.search(r"WHEN (\d+) THEN 0 WHEN (\d+) THEN 1", sql)
    if found is None:
        return sql
    return sql.replace(found[0], f"WHEN {found[2]} THEN 0 WHEN {found[1]} THEN 1")


def undeclared_keys_kept(sql):
    return re.sub(r"g1 IN \(", "g1 NOT IN (", sql)


MUTANTS = [
    (unbounded, "declared"),
    (weights_rounded_up, "declared"),
    (rows_of_all_units_in_one, "declared"),
    (rows_in_two_cells, "rows"),
    (tables_exchanged, "declared"),
    (undeclared_keys_kept, "declared"),
]


@pytest.mark.parametrize(("mutant", "kind"), MUTANTS, ids=[m.__name__ for m, _ in MUTANTS])
def test_a_mutant_is_caught(engine, mutant, kind):
    def is_caught(case):
        try:
            base = run(engine, case, case.rows, mutant)
            if differs(case, case.rows, base):
                return True
            others = [run(engine, case, rows, mutant) for rows in case.others]
        except (duckdb.Error, EngineFailed):
            return True
        return any(list(violations(case, base, other)) for other in others)

    only = settings(
        max_examples=2000,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
        report_multiple_bugs=False,
    )
    find(tables(kind), is_caught, settings=only)  # raises if there is none
