"""Wrong statements that the force tests must catch: a net that catches nothing proves nothing.

Each mutant rewrites the text of the statement, as a mistake in the compiler would. It is caught if
some generated case breaks a claimed bound, differs from the reference, or stops the engine.
"""

import re
from functools import cache
from itertools import chain

import duckdb
import pytest

from lastbit.errors import EngineFailed
from lastbit.tables.compile.statement import statement
from tests.stability.engine import ByWindow, Engine
from tests.stability.judging import differs, exact, violations
from tests.stability.units import ten

BATCHES = 200
BY_NEIGHBOURS, BY_REFERENCE = "neighbours", "reference"


pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")


@pytest.fixture(scope="module")
def engine():
    found = Engine()
    yield found
    found.close()


@pytest.fixture(scope="module")
def windows():
    found = Engine(dialect=ByWindow())
    yield found
    found.close()


def unbounded(sql):
    return sql.replace("coalesce(h.w, CAST(1048576 AS BIGINT))", "CAST(1048576 AS BIGINT)")


CLAMPED = (
    r"least\(greatest\((coalesce\(TRY_CAST\(round\(.*? AS BIGINT\), CASE .*? END\)), "
    r"-?\d+\), -?\d+\)"
)


def clamped_after_summing(sql):
    loose, most = re.sub(CLAMPED, r"\1", sql), 10**12
    return re.sub(r"sum\((CAST\(w AS \w+\) \* v\d+)\)", rf"least(sum(\1), {most})", loose)


def nobodys_rows_counted(sql):
    return sql.replace("u IS NOT NULL", "TRUE").replace("FILTER (WHERE TRUE)", "")


def nobodys_units_counted(sql):
    kept = sql.replace("u IS NOT NULL", "TRUE")
    return re.sub(r"ON (\w)\.u = h\.u", r"ON \1.u IS NOT DISTINCT FROM h.u", kept)


def float_sums(sql):
    floats = re.sub(r"sum\(CAST\(w AS \w+\) \*", "sum(CAST(w AS DOUBLE) *", sql)
    shares = re.sub(r"CAST\((\d+) AS BIGINT\) // count", r"CAST(\1 AS DOUBLE) / count", floats)
    return shares.replace("CAST(1048576 AS BIGINT)) AS w", "CAST(1048576 AS DOUBLE)) AS w")


def weights_rounded_up(sql):
    return re.sub(
        r"CAST\((\d+) AS BIGINT\) // count\(\*\)",
        r"(CAST(\1 AS BIGINT) + count(*) - 1) // count(*)",
        sql,
    )


def every_key_kept(sql):
    return re.sub(r"WHERE place <= \d+(\n  UNION ALL SELECT u,)", r"\1", sql)


def rows_counted_before_the_join(sql):
    if " JOIN p1 " not in sql:
        return sql
    return re.sub(
        r"(h AS \(\n  SELECT u, .*? AS w) FROM \w+", r"\1 FROM (SELECT c1 AS u, 1 AS n FROM t)", sql
    )


def errors_not_caught(sql):
    return sql.replace("TRY_CAST(", "CAST(").replace("TRY(", "(")


def public_rows_multiply_rows(sql):
    return sql.replace("WHERE copies = 1", "")


def weights_after_the_choice(sql):
    return re.sub(r"(h AS \(\n  SELECT u, .*? AS w) FROM pairs", r"\1 FROM k", sql)


def weights_by_keys(sql):
    """Each pair of unit and key counts once, however many rows it has."""
    return sql.replace("CAST(sum(n) AS BIGINT)", "count(*)")


def chosen_rows_measured(sql):
    chosen = "FROM (SELECT r.* FROM r JOIN k ON r.u = k.u AND r.g1 IS NOT DISTINCT FROM k.g1) AS r"
    return sql.replace("FROM r LEFT JOIN h", f"{chosen} LEFT JOIN h") if "k AS (" in sql else sql


def every_pair_counted(sql):
    return sql.replace("(SELECT * FROM k)", "(SELECT * FROM pairs)")


def shares_of_every_pair(sql):
    return sql.replace("FROM k JOIN (SELECT u, CAST(", "FROM pairs AS k JOIN (SELECT u, CAST(")


def full_shares(sql):
    return re.sub(r"CAST\(\[(\d+)[^\]]*\]\[[^\]]*\] AS BIGINT\)", r"CAST(\1 AS BIGINT)", sql)


def shares_by_rows(sql):
    """By the number of rows, where it should be that of keys."""
    return sql.replace("[least(count(*), ", "[least(CAST(sum(n) AS BIGINT), ")


def single_keys_counted_twice(sql):
    """Alone, and with a full share too."""
    wide = " AS one FROM q"
    return sql.replace(wide, f"{wide} UNION ALL SELECT *, 0 AS one FROM q WHERE w = 1048576")


def two_keys_counted_as_one(sql):
    return sql.replace("WHEN w = 1048576", "WHEN w > 700000")


def missing_values_clamped(sql):
    return re.sub(r"CASE WHEN (x\d+) IS NOT NULL THEN (least.*?) END AS v", r"\2 AS v", sql)


def every_value_named(sql):
    return re.sub(r"( AS d\)\)) WHERE place <= \d+", r"\1", sql)


def one_value_more_named(sql):
    return re.sub(
        r"( AS d\)\) WHERE place <= )(\d+)",
        lambda found: f"{found[1]}{int(found[2]) + 1}",
        sql,
    )


def values_chosen_for_all_units_together(sql):
    z = r"(z\d AS \(\n  SELECT \* FROM \(SELECT \*, row_number\(\) OVER \()PARTITION BY u "
    return re.sub(z, r"\1", sql)


def values_counted_once_a_unit(sql):
    return re.sub(r"SELECT DISTINCT ([^()]*? FROM z\d)", r"SELECT \1", sql)


def missing_values_named(sql):
    return re.sub(r"FROM r WHERE v\d+ IS NOT NULL", "FROM r", sql)


def units_not_compared(sql):
    return re.sub(r"(ON .*?)\bc1 = p(\d)_c\d+", r"\1TRUE", sql)


def every_row_joined(sql):
    return re.sub(r"WHERE place <= \d+\n", "\n", sql)


def rows_chosen_among_all_units(sql):
    return re.sub(r"PARTITION BY p\d_c\d+ ORDER BY", "ORDER BY", sql)


def sub_query_mixes_units(sql):
    own = re.sub(r"SELECT u AS (\"\w+\")", r"SELECT min(u) AS \1", sql)
    return re.sub(r"(IS NOT NULL GROUP BY) u[^)]*\)", r"\1 ALL)", own)


def values_of_a_unit_not_clamped(sql):
    return re.sub(CLAMPED + "( END AS HUGEINT)", r"\1\2", sql)


MUTANTS = (
    (every_value_named, "declared", BY_NEIGHBOURS),
    (one_value_more_named, "declared", BY_NEIGHBOURS),
    (values_chosen_for_all_units_together, "declared", BY_REFERENCE),
    (values_counted_once_a_unit, "declared", BY_REFERENCE),
    (missing_values_named, "declared", BY_REFERENCE),
    (unbounded, "declared", BY_NEIGHBOURS),
    (clamped_after_summing, "declared", BY_NEIGHBOURS),
    (nobodys_rows_counted, "declared", BY_NEIGHBOURS),
    (nobodys_units_counted, "declared", BY_REFERENCE),
    (float_sums, "declared", BY_REFERENCE),
    (weights_rounded_up, "declared", BY_NEIGHBOURS),
    (missing_values_clamped, "declared", BY_REFERENCE),
    (errors_not_caught, "declared", BY_NEIGHBOURS),
    (every_key_kept, "found", BY_NEIGHBOURS),
    (every_pair_counted, "found", BY_NEIGHBOURS),
    (shares_of_every_pair, "found", BY_NEIGHBOURS),
    (full_shares, "found", BY_NEIGHBOURS),
    (shares_by_rows, "found", BY_REFERENCE),
    (single_keys_counted_twice, "found", BY_NEIGHBOURS),
    (two_keys_counted_as_one, "found", BY_NEIGHBOURS),
    (weights_after_the_choice, "found", BY_REFERENCE),
    (weights_by_keys, "found", BY_NEIGHBOURS),
    (chosen_rows_measured, "found", BY_REFERENCE),
    (rows_counted_before_the_join, "joined", BY_NEIGHBOURS),
    (public_rows_multiply_rows, "rows", BY_NEIGHBOURS),
    (units_not_compared, "private", BY_NEIGHBOURS),
    (units_not_compared, "per unit joined", BY_NEIGHBOURS),
    (every_row_joined, "private", BY_REFERENCE),
    (rows_chosen_among_all_units, "private", BY_REFERENCE),
    (rows_counted_before_the_join, "private", BY_NEIGHBOURS),
    (unbounded, "private", BY_NEIGHBOURS),
    (sub_query_mixes_units, "per unit", BY_REFERENCE),
    (values_of_a_unit_not_clamped, "per unit", BY_REFERENCE),
    (unbounded, "per unit joined", BY_NEIGHBOURS),
)


def weights_rounded_up_in_windows(sql):
    return re.sub(r"CAST\((\d+) AS BIGINT\) // n", r"(CAST(\1 AS BIGINT) + n - 1) // n", sql)


def one_window_for_all(sql):
    return sql.replace("count(*) OVER (PARTITION BY u)", "count(*) OVER ()")


def window_that_bounds_nothing(sql):
    return re.sub(r"CASE WHEN n > \d+ THEN", "CASE WHEN n < 0 THEN", sql)


def every_place_kept(sql):
    return re.sub(r" WHERE place <= \d+\)", ")", sql)


BY_WINDOW = (
    (one_window_for_all, "declared", BY_REFERENCE),
    (window_that_bounds_nothing, "declared", BY_NEIGHBOURS),
    (weights_rounded_up_in_windows, "declared", BY_NEIGHBOURS),
    (every_place_kept, "found", BY_NEIGHBOURS),
    (every_place_kept, "private", BY_REFERENCE),
    (window_that_bounds_nothing, "per unit joined", BY_NEIGHBOURS),
)


@cache
def batch(kind, number, dialect):
    """Cases that all mutants of a kind are tried on, with the text of their statements."""
    found = []
    ten(kind, number, found.append)
    return [
        (c, statement(c.query, c.card, c.measures, secret="s", dialect=dialect).sql) for c in found
    ]


def caught(engine, case, mutant, by):
    """Whether the mutant's statement breaks a bound, stops the engine, or gives a wrong integer."""
    try:
        if by is BY_REFERENCE:
            return exact(case) and differs(case, case.rows, engine.run(case, case.rows, mutant))
        base = engine.run(case, case.rows, mutant)
        others = (engine.run(case, rows, mutant, labs) for rows, labs in case.neighbours)
        return any(list(violations(case, base, other)) for other in others)
    except (duckdb.Error, EngineFailed):  # integers that are none stop the kernel
        return True


@pytest.mark.evidence
@pytest.mark.parametrize(
    ("mutant", "kind", "by"),
    MUTANTS,
    ids=[f"{mutant.__name__}, {kind}" for mutant, kind, _ in MUTANTS],
)
def test_is_caught(engine, mutant, kind, by):
    batches = (batch(kind, number, engine.dialect) for number in range(BATCHES))
    changed = (case for case, sql in chain.from_iterable(batches) if mutant(sql) != sql)
    assert any(caught(engine, case, mutant, by) for case in changed)


@pytest.mark.evidence
@pytest.mark.parametrize(
    ("mutant", "kind", "by"),
    BY_WINDOW,
    ids=[f"{mutant.__name__}, {kind}" for mutant, kind, _ in BY_WINDOW],
)
def test_is_caught_in_windows(windows, mutant, kind, by):
    test_is_caught(windows, mutant, kind, by)
