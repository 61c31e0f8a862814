"""The catalogue of the SQL port: what it answers, and what it cannot be made to do."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import duckdb
import pytest

from lastbit.serve.sqlport.catalogue import Catalogue, layout
from lastbit.serve.sqlport.rereading import check_read
from lastbit.serve.sqlport.rewriting import Wrong
from lastbit.tables import Column, DataCard, PublicTable, Source


@lru_cache(maxsize=1)
def catalogue() -> Catalogue:
    source = Source(kind="csv", paths=("nowhere.csv",))
    columns = {
        "patient": Column(name="patient", type="integer"),
        "Day": Column(name="Day", type="date", description="the day of the visit"),
    }
    regions = PublicTable(name="regions", source=source, columns={"region": "text"})
    card = DataCard(
        name="visits",
        source=source,
        unit="patient",
        max_rows=3,
        columns=columns,
        public={"regions": regions},
    )
    return Catalogue([card])


def asked(sql: str, *values: Any) -> list[Any] | None:
    found = catalogue().asked(sql, [], list(values), "ana")
    return None if found is None else found["rows"]


def test_tables_and_columns_are_told() -> None:
    names = "SELECT table_name FROM information_schema.tables WHERE table_schema = $1 ORDER BY 1"
    assert asked(names, "public") == [["regions"], ["visits"]]
    columns = """
        SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod),
               pg_catalog.col_description(a.attrelid, a.attnum)
        FROM pg_catalog.pg_attribute a
        WHERE a.attrelid = 'public.visits'::pg_catalog.regclass AND a.attnum > 0
        ORDER BY a.attnum"""
    assert asked(columns) == [["patient", "bigint", None], ["Day", "date", "the day of the visit"]]
    assert asked("SELECT count(*) FROM pg_class WHERE relname OPERATOR(pg_catalog.~) '^visits$'")


def test_who_asks_is_told_to_them_alone() -> None:
    sql = "SELECT current_user, session_user, current_schema(), current_database()"
    assert catalogue().asked(sql, [], [], "o'ana")["rows"] == [  # type: ignore[index]  # not None
        ["o'ana", "o'ana", "public", "lastbit"]
    ]
    assert asked(sql) == [["ana", "ana", "public", "lastbit"]]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM visits",
        "SELECT * FROM pg_class, visits",
        "SELECT (SELECT COUNT(*) FROM visits) FROM pg_class",
        "SELECT 1 WHERE EXISTS (SELECT 1 FROM public.visits)",
        "WITH q AS (SELECT * FROM visits) SELECT * FROM q",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM main.sqlite_master",
        "SELECT * FROM other.information_schema.tables",
        "SELECT * FROM duckdb_settings",
        "SELECT * FROM pg_catalog.pg_shadow",
        "SELECT * FROM pgc.pg_class",
        "DROP TABLE pg_class",
        "COPY pg_class TO '/tmp/x'",
        "PRAGMA database_list",
        "ATTACH 'x'",
        "INSERT INTO pg_class VALUES (1)",
        "SELECT * INTO x FROM pg_class",
        "SELECT * FROM glob('/*')",
    ],
)
def test_what_names_anything_else_is_not_asked_here(sql: str) -> None:
    assert asked(sql) is None


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT read_text('/etc/passwd')",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM duckdb_settings()",
        "SELECT * FROM duckdb_secrets()",
        "SELECT * FROM pragma_database_list()",
        "SELECT getenv('HOME')",
        "SELECT query('SELECT 1')",
        "SELECT * FROM query_table('visits')",
        "SELECT pg_read_file('/etc/passwd')",
        "SELECT pg_sleep(100)",
        "SELECT getvariable('x')",
        "SELECT lb_version()",
    ],
)
def test_functions_of_no_list_are_refused(sql: str) -> None:
    with pytest.raises(Wrong):
        asked(sql)


def test_the_database_itself_opens_nothing(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a\n1\n")
    database = catalogue()._database
    for sql in (
        f"SELECT * FROM '{tmp_path}/x.csv'",
        f"COPY (SELECT 1) TO '{tmp_path}/y.csv'",
        f"ATTACH '{tmp_path}/z.duckdb'",
        "SET enable_external_access = true",
        "INSTALL httpfs",
        "SELECT * FROM database",  # a name of Python's
    ):
        with pytest.raises(duckdb.Error):
            database.cursor().execute(sql)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.csv"]


def test_every_relation_of_the_layout_answers() -> None:
    relations, types = layout()
    assert len(relations) > 90 and len(types) > 50
    for name in relations:
        assert asked(f"SELECT * FROM {name} LIMIT 1") is not None


def test_a_result_is_bounded() -> None:
    with pytest.raises(Wrong, match="more than"):
        asked("SELECT a.oid FROM pg_attribute, pg_attribute AS b, pg_class AS a")


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("SELECT 'pg_class'::regclass::oid", 1259),
        ("SELECT 1259::regclass::text", "pg_class"),
        ("SELECT 23::regtype::text", "integer"),
        ("SELECT pg_catalog.format_type(1009, NULL)", "text[]"),
        ("SELECT 'r' = ANY ('{r,v}'::text[])", True),
        ("SELECT quote_ident('A b')", '"A b"'),
        ("SELECT has_table_privilege('visits', 'SELECT')", True),
        ("SELECT has_table_privilege('visits', 'INSERT')", False),
        ("SELECT current_setting('server_version_num')", "150000"),
        ("SELECT user", "ana"),
    ],
)
def test_functions_that_clients_call(sql: str, value: object) -> None:
    assert asked(sql) == [[value]]


@pytest.mark.parametrize(
    "sql",
    [
        "VALUES ((SELECT count(*) FROM duckdb_tables))",
        "VALUES ((SELECT max(table_name) FROM public.visits))",
        "SELECT * FROM (WITH duckdb_databases AS (SELECT 1) SELECT * FROM duckdb_databases) AS x, "
        "duckdb_databases",
        "WITH duckdb_views AS (SELECT count(*) AS n FROM duckdb_views) SELECT * FROM duckdb_views",
    ],
)
def test_the_databases_own_relations_are_out_of_reach(sql: str) -> None:
    try:
        assert Catalogue([]).asked(sql, [], [], "ana") is None
    except Wrong as error:
        assert error.told["code"] in ("0A000", "42P01", "42883")


def test_relations_of_with_are_found_by_their_names() -> None:
    sql = "WITH pg_class AS (SELECT 7 AS a), b(c) AS (SELECT a + 1 FROM pg_class) "
    sql += "SELECT pg_class.a, B.c FROM pg_class, b"
    assert (Catalogue([]).asked(sql, [], [], "ana") or {})["rows"] == [[7, 8]]
    sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3) "
    assert len((Catalogue([]).asked(f"{sql} SELECT i FROM n", [], [], "ana") or {})["rows"]) == 3


@pytest.mark.parametrize(
    "sql", ["SELECT string_agg(md5('x'), '') FROM generate_series(1, 200000)", "SELECT $²"]
)
def test_what_is_too_long_or_no_number_is_refused(sql: str) -> None:
    with pytest.raises(Wrong):
        Catalogue([]).asked(sql, [], [], "ana")


def test_what_is_nested_too_deeply_is_refused_in_words() -> None:
    with pytest.raises(Wrong) as error:
        Catalogue([]).asked("SELECT 1" + "::int" * 1900, [], [], "ana")
    assert error.value.told["code"] == "54001"


BLANKS = "\u00a0\u200b\u2060\ufeff\u3000\u2009\u202f\u205f"
"""Letters that one parser takes for blanks, and another for a part of a name."""
HIDDEN = [
    "SELECT name FROM pg_class x_CROSS_JOIN_pragma_database_list",
    "SELECT 1 AS a_FROM_duckdb_databases",
    "SELECT path_FROM_duckdb_databases",
    "SELECT x.* FROM pg_class AS y_CROSS_JOIN_duckdb_tables_AS_x LIMIT 1",
    "SELECT relname AS a_FROM_pgc.pg_class_UNION_SELECT_sql_FROM_sqlite_master_ FROM pg_class",
    "SELECT 1 FROM pg_class AS x_CROSS_JOIN_duckdb_settings (a)",
    "SELECT EXTRACT(year_FROM_now FROM now())",
    "SELECT * FROM pg_class TABLESAMPLE x_FROM_duckdb_tables (10)",
]


_KEYWORDS = re.compile("_(CROSS_JOIN|FROM|AS|UNION_SELECT)_|_ ")


@pytest.mark.parametrize("blank", BLANKS)
@pytest.mark.parametrize("sql", HIDDEN)
def test_no_letter_hides_a_relation_from_one_parser(sql: str, blank: str) -> None:
    """`rewriting.py` alone lets some of them through: what the database reads is what counts."""
    try:
        told = asked(_KEYWORDS.sub(lambda found: found.group().replace("_", blank), sql))
    except Wrong as error:
        assert error.told["code"] in ("0A000", "42P01", "42601", "42703", "42883")
    else:
        assert told is None


WRITING = [
    "WITH x AS (DELETE FROM pg_class RETURNING *) SELECT * FROM x",
    "WITH x AS (INSERT INTO pg_class(oid, relname) VALUES (1, 'me') RETURNING oid) SELECT 1",
    "WITH x AS (UPDATE pg_description SET description = 'me' RETURNING objoid) SELECT * FROM x",
    "SELECT * FROM (WITH x AS (DELETE FROM pg_type RETURNING 1) SELECT * FROM x) AS y",
    "SELECT set_config('search_path', 'me', false)",
]


@pytest.mark.parametrize("sql", WRITING)
def test_nobody_writes_into_the_catalogue_that_others_ask(sql: str) -> None:
    def state() -> list[object]:
        relations, _ = layout()
        return [asked(f"SELECT * FROM {name}") for name in sorted(relations)]

    before = state()
    with suppress(Wrong):
        asked(sql)
    assert state() == before
    with pytest.raises(duckdb.Error, match="read-only"):  # the second wall, by itself
        cursor = catalogue()._database.cursor()
        cursor.execute("BEGIN TRANSACTION READ ONLY")
        cursor.execute("DELETE FROM pgc.pg_class")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM (DESCRIBE SELECT 1)",
        "SELECT * FROM (SHOW TABLES)",
        "SELECT * FROM pgc.pg_class PIVOT (count(*) FOR relname IN ('a'))",
        "SELECT list_filter([1], LAMBDA x : x > 0)",
        "SELECT ?",
        "SELECT 1; SELECT 2",
        "SET threads = 2",
        "SELECT * FROM lb_with_x, duckdb_tables",
        "SELECT * FROM main.lb_with_x",
        "SELECT * FROM memory.pgc.pg_class",
        "SELECT main.lb_version()",
        "SELECT system.main.md5('x')",
    ],
)
def test_what_the_database_reads_and_is_of_no_list_is_refused(sql: str) -> None:
    with pytest.raises(Wrong):
        check_read(catalogue()._database.cursor(), sql, layout()[0])
