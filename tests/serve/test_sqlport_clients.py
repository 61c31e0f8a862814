"""Every SQL client there is does the same walk against a whole server.

Connect, list the tables, preview, pay, ask the same again at no charge, be refused, and ask for
more than is left. Each pays for a question of its own; what is missing on a machine is skipped,
with a line that says what to install.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.serve.sqlserving import SqlServing, sql_serving

HERE = Path(__file__).parent
JDBC = Path("/usr/share/java/postgresql.jar")
EXHAUSTING = "SET lastbit.epsilon = '1000'"
ROWS = "SELECT * FROM visits"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlServing]:
    with sql_serving(tmp_path_factory.mktemp("sql") / "served") as running:
        yield running


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """What a client was told on its way."""

    tables: list[str]
    preview: str
    rows: list[str]
    again: list[str]
    refused: str
    exhausted: str


def question(bound: int) -> str:
    """What each client asks, with a bound of its own."""
    return f"SELECT region, COUNT(*) AS n FROM visits WHERE cost > {bound} GROUP BY region"


def printed(command: list[str], **settings: Any) -> tuple[str, str]:
    """What a program prints, and what it prints as errors."""
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=240, check=False, **settings
    )
    if done.returncode == 77:
        pytest.skip("R needs Debian's r-cran-rpostgresql, or RPostgres")
    assert done.returncode in (0, 1), done.stderr
    return done.stdout, done.stderr


def told_by(lines: str, name: str) -> list[str]:
    """What a program printed behind a name."""
    start = f"{name}: "
    return [line.removeprefix(start) for line in lines.splitlines() if line.startswith(start)]


def installed(*programs: str, package: str) -> str:
    """The first of these programs; all are needed."""
    if not all(map(shutil.which, programs)):
        pytest.skip(f"{programs[0]} is in Debian's package {package}")
    return programs[0]


# ---------------------------------------------------------------- clients


def by_psql(server: SqlServing) -> Walk:
    psql = installed("psql", package="postgresql-client")
    told, asked = server.told(), question(11)
    command = [psql, "-XAt", "-h", told["host"], "-p", str(told["port"]), "-U", "ana", "-d"]
    command += ["lastbit"]
    for sql in ("\\dt", f"EXPLAIN {asked}", asked, asked, ROWS, EXHAUSTING, question(111)):
        command += ["-c", "\\echo next", "-c", sql]
    env = {**os.environ, "PGPASSWORD": told["password"], "PGOPTIONS": "-c lastbit.epsilon=0.5"}
    out, wrong = printed(command, env=env)
    tables, preview, rows, again, *_ = [
        part.strip().splitlines() for part in out.split("next\n")[1:]
    ]
    assert "NOTICE:  cost epsilon = 0.5" in wrong
    refused, exhausted = (line for line in wrong.splitlines() if line.startswith("ERROR"))
    return Walk(
        tables=[line.split("|")[1] for line in tables],
        preview="\n".join(preview),
        rows=rows,
        again=again,
        refused=refused,
        exhausted=exhausted,
    )


def by_psycopg(server: SqlServing) -> Walk:
    psycopg = pytest.importorskip("psycopg", reason="psycopg is in requirements-engines.lock")
    options = "-c lastbit.epsilon=0.5"
    with psycopg.connect(**server.told(), options=options, autocommit=True) as line:

        def rows(sql: str) -> list[str]:
            return ["|".join(map(str, row)) for row in line.execute(sql)]

        def error(sql: str) -> str:
            with pytest.raises(psycopg.Error) as caught:
                line.execute(sql)
            return str(caught.value)

        asked = question(12)
        listed = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
        found = rows(listed), "\n".join(rows(f"EXPLAIN {asked}")), rows(asked), rows(asked)
        refused = error(ROWS)
        line.execute(EXHAUSTING)
        exhausted = error(question(112))
    tables, preview, first, again = found
    return Walk(
        tables=tables,
        preview=preview,
        rows=first,
        again=again,
        refused=refused,
        exhausted=exhausted,
    )


def by_asyncpg(server: SqlServing) -> Walk:
    asyncpg = pytest.importorskip("asyncpg", reason="asyncpg is in requirements-serve.lock")

    async def walked() -> Walk:
        told = {**server.told(), "database": "lastbit"}
        line = await asyncpg.connect(**told, server_settings={"lastbit.epsilon": "0.5"})

        async def rows(sql: str, *values: Any) -> list[str]:
            return ["|".join(map(str, row)) for row in await line.fetch(sql, *values)]

        async def error(sql: str) -> str:
            with pytest.raises(asyncpg.PostgresError) as caught:
                await line.fetch(sql)
            return str(caught.value)

        asked = question(13).replace("13", "$1")
        try:
            tables = await rows(
                "SELECT relname FROM pg_class WHERE relkind = $1 AND relnamespace = 2200", "r"
            )
            preview = "\n".join(await rows(f"EXPLAIN {asked}", 13.0))
            first, again = await rows(asked, 13.0), await rows(asked, 13.0)
            async with line.transaction():
                cursor = await line.cursor("SELECT column_name FROM information_schema.columns")
                assert len(await cursor.fetch(2)) == 2
            refused = await error(ROWS)
            await line.execute(EXHAUSTING)
            exhausted = await error(question(113))
        finally:
            await line.close()
        return Walk(
            tables=tables,
            preview=preview,
            rows=first,
            again=again,
            refused=refused,
            exhausted=exhausted,
        )

    return asyncio.run(walked())


def by_sqlalchemy_and_pandas(server: SqlServing) -> Walk:
    sqlalchemy = pytest.importorskip("sqlalchemy", reason="it is in requirements-serve.lock")
    pandas = pytest.importorskip("pandas")
    address = server.address(scheme="postgresql+psycopg")
    options = {"options": "-c lastbit.epsilon=0.5"}
    engine = sqlalchemy.create_engine(address, connect_args=options)
    dear = sqlalchemy.create_engine(address, connect_args={"options": "-c lastbit.epsilon=1000"})
    try:
        known = sqlalchemy.inspect(engine)
        assert known.has_table("visits")
        columns = {one["name"]: str(one["type"]) for one in known.get_columns("visits")}
        assert columns == {"patient": "BIGINT", "region": "TEXT", "cost": "DOUBLE PRECISION"}
        assert known.get_foreign_keys("visits") == known.get_indexes("visits") == []
        table = sqlalchemy.Table("visits", sqlalchemy.MetaData(), autoload_with=engine)
        count = sqlalchemy.func.count().label("n")
        wanted = sqlalchemy.select(table.c.region, count).where(table.c.cost > 14.0)
        asked = wanted.group_by(table.c.region)

        def rows(sql: Any) -> list[str]:
            frame = pandas.read_sql(sql, engine)
            return ["|".join(map(str, row)) for row in frame.itertuples(index=False)]

        def error(sql: Any, engine: Any) -> str:
            with pytest.raises(pandas.errors.DatabaseError) as caught:
                pandas.read_sql(sql, engine)
            return str(caught.value)

        return Walk(
            tables=known.get_table_names(),
            preview="\n".join(rows(sqlalchemy.text(f"EXPLAIN {question(14)}"))),
            rows=rows(asked),
            again=rows(asked),
            refused=error(sqlalchemy.text(ROWS), engine),
            exhausted=error(sqlalchemy.text(question(114)), dear),
        )
    finally:
        engine.dispose()
        dear.dispose()


def by_jdbc(server: SqlServing) -> Walk:
    java = installed("java", "javac", package="default-jdk-headless")
    if not JDBC.exists():
        pytest.skip("JDBC's driver is in Debian's package libpostgresql-jdbc-java")
    address = f"jdbc:postgresql://127.0.0.1:{server.number}/lastbit"
    command = [java, "-cp", str(JDBC), str(HERE / "SqlClient.java"), address, "ana"]
    out, _ = printed([*command, server.tokens["ana"], question(15)])
    assert told_by(out, "columns") == ["patient int8, region text, cost float8"]
    assert told_by(out, "keys") == ["0"]
    assert told_by(out, "notice")[0].startswith("cost epsilon = 0.5; left of your allowance")
    return of_lines(out, out)


def by_r(server: SqlServing) -> Walk:
    rscript = installed("Rscript", package="r-base-core (and r-cran-rpostgresql)")
    told = server.told()
    asked = question(15).replace("cost >", "cost >=")  # not what JDBC asks
    command = [rscript, str(HERE / "sql_client.R"), told["host"], str(told["port"])]
    out, wrong = printed([*command, told["password"], asked])
    assert told_by(out, "columns") == ["patient, region, cost"]
    _, refused, exhausted = wrong.replace("exhausted:", "refused:").split("refused:")
    return of_lines(out, f"{out}refused: {' '.join(refused.split())}\nexhausted: {exhausted}")


def of_lines(out: str, wrong: str) -> Walk:
    """What a program of ours has printed."""
    return Walk(
        tables=told_by(out, "table"),
        preview="\n".join(told_by(out, "preview")),
        rows=told_by(out, "row"),
        again=told_by(out, "again"),
        refused=wrong.partition("refused: ")[2],
        exhausted=wrong.partition("exhausted: ")[2],
    )


def by_odbc(server: SqlServing) -> Walk:
    isql = installed("isql", "odbcinst", package="unixodbc")
    drivers, _ = printed(["odbcinst", "-q", "-d"])
    if "[PostgreSQL Unicode]" not in drivers:
        pytest.skip("ODBC's driver is in Debian's package odbc-postgresql")
    told, asked = server.told(), question(17)
    name = f"DRIVER=PostgreSQL Unicode;SERVER={told['host']};PORT={told['port']};"
    name += f"DATABASE=lastbit;UID=ana;PWD={told['password']}"
    lines = ["help", "SET lastbit.epsilon = '0.5'", f"EXPLAIN {asked}", asked, asked, ROWS]
    lines += [EXHAUSTING, question(117), ""]
    out, _ = printed([isql, "-v", "-b", "-d|", "-k", name], input="\n".join(lines) + "\n")
    assert "[00000]NOTICE: cost epsilon = 0.5" in out
    said = out.splitlines()
    rows = [line.rstrip("|") for line in said if line.startswith(("north|", "south|"))]
    refused, exhausted = (line for line in said if "ERROR: " in line)
    return Walk(
        tables=[line.split("|")[2] for line in said if line.startswith("lastbit|public|")],
        preview=out,
        rows=rows[:2],
        again=rows[2:],
        refused=refused,
        exhausted=exhausted,
    )


CLIENTS = [by_psql, by_psycopg, by_asyncpg, by_sqlalchemy_and_pandas, by_jdbc, by_odbc, by_r]


@pytest.mark.parametrize("client", CLIENTS)
def test_every_client_goes_all_the_way(
    server: SqlServing, client: Callable[[SqlServing], Walk]
) -> None:
    before = server.charges()
    walk = client(server)
    assert walk.tables == ["visits"]
    assert "Cost: epsilon = 0.5." in walk.preview
    assert sorted(row.partition("|")[0] for row in walk.rows) == ["north", "south"]
    assert walk.again == walk.rows
    assert "rows cannot be shown" in walk.refused
    assert "epsilon = 1000" in walk.exhausted and "othing was charged" in walk.exhausted
    assert server.charges() == before + 1


def test_psql_describes_what_there_is(server: SqlServing) -> None:
    psql = installed("psql", package="postgresql-client")
    told = server.told()
    command = [psql, "-X", "-h", told["host"], "-p", str(told["port"]), "-U", "ana", "-d"]
    command += ["lastbit"]
    for said in ("\\d", "\\d visits", "\\l", "\\dn", "\\du", "\\dt+", "\\d+ visits"):
        command += ["-c", said]
    out, wrong = printed(command, env={**os.environ, "PGPASSWORD": told["password"]})
    assert " public | visits | table | lastbit" in out and " cost    | double precision |" in out
    assert "ERROR" not in wrong
