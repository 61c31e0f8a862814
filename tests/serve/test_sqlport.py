"""SQL clients against a whole server: psql, psycopg, asyncpg, SQLAlchemy, pandas, JDBC.

One server for all of them. Each charges for questions of its own, so that the tests do not depend on
their order.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.serve.sqlserving import SqlServing, sql_serving

psycopg = pytest.importorskip("psycopg", reason="psycopg is in requirements-engines.lock")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlServing]:
    with sql_serving(tmp_path_factory.mktemp("sql") / "served") as running:
        yield running


@pytest.fixture
def line(server: SqlServing) -> Iterator[Any]:
    """A connection of psycopg's, and the notices that came."""
    with psycopg.connect(**server.told(), dbname="lastbit", autocommit=True) as connection:
        connection.notices = []
        connection.add_notice_handler(lambda one: connection.notices.append(one.message_primary))
        yield connection


def test_a_question_is_previewed_paid_for_and_free_again(server: SqlServing, line: Any) -> None:
    line.execute("SET lastbit.epsilon = '0.5'")
    sql = (
        'SELECT n, region FROM (SELECT region, COUNT(*) AS n FROM "public"."visits" '
        "WHERE 1 = 1 GROUP BY region) q LIMIT 1000"
    )
    before = server.charges()
    plan = [row[0] for row in line.execute(f"EXPLAIN {sql}")]
    assert "Cost: epsilon = 0.5." in plan and server.charges() == before
    cursor = line.execute(sql)
    assert [column.name for column in cursor.description] == ["n", "region"]
    first = cursor.fetchall()
    assert {region for _, region in first} == {"north", "south"}
    assert server.charges() == before + 1
    assert line.notices[-1].startswith("cost epsilon = 0.5; left of your allowance: epsilon = ")
    assert line.execute(sql).fetchall() == first  # free
    assert server.charges() == before + 1
    assert line.notices[-1].startswith("cost nothing: it is on record")


def test_psql_lists_tables_and_asks(server: SqlServing) -> None:
    psql = shutil.which("psql")
    if psql is None:
        pytest.skip("psql is in the package postgresql-client")
    told = server.told()
    command = [
        psql,
        "-X",
        "-h",
        told["host"],
        "-p",
        str(told["port"]),
        "-U",
        "ana",
        "-d",
        "lastbit",
    ]
    sql = "SET lastbit.epsilon = '0.4'; SELECT AVG(cost) AS c FROM visits"
    for said in ("\\d", "\\d visits", "\\l", "\\dn", "\\du", "\\dt+", "\\d+ visits", sql):
        command += ["-c", said]
    done = subprocess.run(
        command,
        env={**os.environ, "PGPASSWORD": told["password"]},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert " public | visits | table | lastbit" in done.stdout
    assert " cost    | double precision |" in done.stdout
    assert "NOTICE:  cost epsilon = 0.4" in done.stderr
    assert "ERROR" not in done.stderr
