"""What a server's error says to do, done: then the question is answered."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import lastbit as lb
from lastbit.errors import EngineFailed, InvalidParameter
from lastbit.ledger import Ledger
from lastbit.tables.backends.engines import Session
from tests.cli.running import refused, succeeded
from tests.engines.servers import started
from tests.engines.test_postgres import ASKED, CARD, VISITS

ROOT = Path(__file__).parents[2]
QUERY = ("query", "visits.toml", ASKED, "--epsilon", "1")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_card(address, **changes):
    text = CARD.format(address=address)
    for before, after in changes.items():
        text = text.replace(before, after)
    Path("visits.toml").write_text(text, "utf-8")


GRANTED = {
    "nothing": "",
    "no schema": "GRANT SELECT ON ward.visits TO {0}",
    "some columns": "GRANT USAGE ON SCHEMA ward TO {0}; GRANT SELECT (user_id, region) ON"
    " ward.visits TO {0}",
    "all columns": "GRANT USAGE ON SCHEMA ward TO {0}; GRANT SELECT (user_id, region, cost) ON"
    " ward.visits TO {0}",
}


@pytest.mark.parametrize("right", GRANTED)
def test_rights_are_missing(right, postgres, folder):
    """The remedy is what the table's owner runs, as it stands; nothing else is granted by it."""
    address, role = postgres.database(), f'Reader"{right.replace(" ", "_")}'
    quoted = '"' + role.replace('"', '""') + '"'
    with postgres.connected(address) as owner:
        owner.execute(f"{VISITS} CREATE SCHEMA ward; ALTER TABLE visits SET SCHEMA ward")
        owner.execute(f"CREATE ROLE {quoted} LOGIN; {GRANTED[right].format(quoted)}")
        user = role.replace('"', "%22")
        write_card(address.replace("postgres@", f"{user}@"), **{"public.visits": "ward.visits"})
        for _ in range(3):
            try:
                answer = lb.table("visits.toml").sql(ASKED).release(epsilon=1)
                break
            except InvalidParameter as error:
                assert "may not be read by this user" in str(error)
                assert error.remedy.startswith("GRANT ") and not Path("visits.ledger").exists()
                owner.execute(error.remedy)
        assert answer.charged
        if "columns" in right:
            sql = "SELECT has_column_privilege(%s, 'ward.visits', 'day', 'SELECT')"
            assert owner.execute(sql, [role]).fetchone() == (False,)
        owner.execute(f"DROP OWNED BY {quoted}; DROP ROLE {quoted}")


PLACES = {
    "a view": (
        "CREATE VIEW v AS TABLE visits", "v", "a materialised view of it",
        "DROP VIEW v; CREATE MATERIALIZED VIEW v AS TABLE visits",
    ),
    "another name": ("", "visit", "check its name", "ALTER TABLE visits RENAME TO visit"),
    "text": (
        "CREATE TABLE t AS SELECT user_id, region, cost::text FROM visits", "t", "store it as num",
        "ALTER TABLE t ALTER cost TYPE numeric USING cost::numeric",
    ),
    "a list": (
        "CREATE TABLE l AS SELECT user_id, region, ARRAY[cost] AS cost FROM visits", "l",
        "store its values in a plain column", "ALTER TABLE l ALTER cost TYPE numeric USING cost[1]",
    ),
    "no column": (
        "CREATE TABLE c AS SELECT user_id, region FROM visits", "c", "check its name",
        "ALTER TABLE c ADD cost numeric",
    ),
    "a column twice": (
        'CREATE TABLE w AS SELECT *, cost AS "COST" FROM visits', "w", "rename one of them",
        'ALTER TABLE w RENAME "COST" TO price',
    ),
    "row security": (
        "CREATE TABLE r AS TABLE visits; ALTER TABLE r ENABLE ROW LEVEL SECURITY;"
        " GRANT SELECT ON r TO {0}",
        "r", "use a role with BYPASSRLS", "ALTER ROLE {0} BYPASSRLS",
    ),
    "a time limit": (
        "CREATE TABLE s AS SELECT v.* FROM visits AS v, generate_series(1, 20000);"
        " GRANT SELECT ON s TO {0}; ALTER ROLE {0} SET statement_timeout = 1",
        "s", "raise statement_timeout", "ALTER ROLE {0} SET statement_timeout = '10min'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", PLACES)
def test_a_table_that_cannot_be_read(what, postgres, folder):
    broken, table, words, mended = PLACES[what]
    address, role = postgres.database(), f"reader_{list(PLACES).index(what)}"
    with postgres.connected(address) as owner:
        owner.execute(f"{VISITS} CREATE ROLE {role} LOGIN; {broken.format(role)}")
        if "{0}" in broken:
            address = address.replace("postgres@", f"{role}@")
        write_card(address, **{"public.visits": table})
        with pytest.raises((InvalidParameter, EngineFailed)) as caught:
            lb.table("visits.toml").sql(ASKED).release(epsilon=1)
        assert words in str(caught.value)
        owner.execute(mended.format(role))
        assert lb.table("visits.toml").sql(ASKED).release(epsilon=1).record["rows"]
        owner.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")


@pytest.mark.parametrize("where", ["data and ledger", "data", "ledger"])
def test_a_server_is_started_again_in_the_middle(where, folder, monkeypatch):
    """One remedy, that of the page: ask the same again; it is charged once."""

    server, real = started(), vars(Session)["aggregates"]

    def stopped(*given, **how):
        server.stop(signal.SIGQUIT)
        return real(*given, **how)

    try:
        address, source = server.database(), server.address()
        with server.connected(source) as connection:
            connection.execute(VISITS)
        Ledger.init(address)
        write_card(source)
        if where == "ledger":
            Path("visits.csv").write_text("user_id,region,cost\n1,r0,5\n2,r1,7\n", "utf-8")
            write_card(source, **{f'"{source}"\ntable = "public.visits"': '"visits.csv"'})
        if where != "data":
            text = Path("visits.toml").read_text("utf-8")
            Path("visits.toml").write_text(f'{text}[ledger]\npath = "{address}"\n', "utf-8")
        with monkeypatch.context() as patch:
            patch.setattr(Session, "aggregates", stopped)
            words = " ".join(refused(*QUERY).split())
        told = "ask the same again when it does: it is charged once"
        free = "asking the same question again is free"
        assert (free if where == "data" else told) in words
        assert "verify" not in words and words.count("again") == (2 if where == "data" else 1)
        server.start()
        succeeded(*QUERY)
        books = Ledger.existing("visits.ledger" if where == "data" else address)
        assert books.spent("visits").epsilon == 1 and books.problems() == []
    finally:
        server.remove()


def test_an_empty_password_is_none(postgres, folder):
    address = postgres.database()
    with postgres.connected(address) as connection:
        connection.execute(VISITS)
    write_card(address.replace("postgres@", "postgres:@"))
    succeeded(*QUERY)
    write_card(address.replace("postgres@", "postgres:x@"))
    assert "PGPASSWORD" in refused(*QUERY)


def test_two_ledgers_on_one_server(postgres, folder):
    """As docs/shared-ledger.md says."""
    address = postgres.database()
    succeeded("ledger", "init", address)
    assert "exists" in refused("ledger", "init", address)
    second = f"{address}&schema=ward"
    succeeded("ledger", "init", second)
    with postgres.connected(address) as connection:
        connection.execute(VISITS)
    write_card(address)
    text = Path("visits.toml").read_text("utf-8")
    Path("visits.toml").write_text(f'{text}[ledger]\npath = "{second}"\n', "utf-8")
    succeeded(*QUERY)
    assert Ledger.existing(second).spent("visits").epsilon == 1
    assert Ledger.existing(address).accounts() == ()


# ---------------------------------------------------------------- Spark


def lost_blocks(spark):
    """What becomes of local checkpoints whose executor is gone."""
    kept = spark.sparkContext._jsc.getPersistentRDDs()
    for number in list(kept.keySet()):
        kept.get(number).unpersist(True)


def test_rows_of_a_frame_are_lost_with_their_executor(spark, folder, monkeypatch):
    """Declared again, the table has the same content, and the reservation is resumed for free."""

    real = vars(Session)["aggregates"]

    frame = spark.sql("SELECT id % 17 AS user_id, CAST(id AS DOUBLE) AS cost FROM range(60)")
    budget = lb.Budget(kind="pure", epsilon=1)

    def question():
        table = lb.table(frame, unit="user_id", max_rows=2, name="visits", budget=budget)
        return table.agg(n=lb.count())

    def losing(*given, **how):
        lost_blocks(spark)
        return real(*given, **how)

    asked = question()
    with monkeypatch.context() as patch:
        patch.setattr(Session, "aggregates", losing)
        with pytest.raises(EngineFailed, match=r"call lb\.table\(frame, \.\.\.\) again") as caught:
            asked.release(epsilon=1, ledger="visits.ledger")
    assert "start it again" not in str(caught.value)
    with pytest.raises(EngineFailed, match=r"call lb\.table\(frame, \.\.\.\) again"):
        asked.release(epsilon=1, ledger="visits.ledger")
    answer = question().release(epsilon=1, ledger="visits.ledger")
    assert not answer.charged and answer.record["rows"]
    assert Ledger.existing("visits.ledger").spent("visits").epsilon == 1


def test_sources_of_spark_that_cannot_be_read(spark, folder):
    """Of each: how it is made, words of the remedy, and what is done then."""
    spark.sql("CREATE TABLE base USING parquet AS SELECT id, id % 3 AS x FROM range(9)")
    sources = [
        ("CREATE VIEW looks AS TABLE base", "looks", "write the view's rows to one",
         "DROP VIEW looks; CREATE TABLE looks USING parquet AS TABLE base"),
        ("CREATE TABLE lines USING csv AS TABLE base", "lines", "write its rows as plain Parquet",
         "DROP TABLE lines; CREATE TABLE lines USING parquet AS SELECT id, 1 AS x FROM base"),
        ("CACHE TABLE base", "base", "spark.catalog.uncacheTable(...)", "UNCACHE TABLE base"),
        ("CREATE TABLE nested USING parquet AS SELECT id, array(x) AS x FROM base", "nested",
         "must be converted first",
         "DROP TABLE nested; ALTER TABLE base RENAME TO nested"),
    ]  # fmt: skip
    for broken, name, words, mended in sources:
        spark.sql(broken)

        def question(name=name):
            columns = [lb.Column(name="x", type="integer", bounds=(0, 3))]
            table = lb.table(f"spark:{name}", unit="id", max_rows=1, columns=columns)
            return table.agg(n=lb.count(), s=lb.sum("x"))

        with pytest.raises(InvalidParameter) as caught:
            question().release(epsilon=1)
        assert words in str(caught.value)
        for sql in mended.split("; "):
            spark.sql(sql)
        assert question().release(epsilon=1).record["rows"]


def test_a_temporary_view_is_passed_as_a_frame(spark, folder):
    spark.range(9).createOrReplaceTempView("only_here")
    with pytest.raises(EngineFailed, match=r"pass the frame: spark\.table"):
        lb.table("spark:only_here", unit="id", max_rows=1)
    table = lb.table(spark.table("only_here"), unit="id", max_rows=1)
    assert table.agg(n=lb.count()).release(epsilon=1).record["rows"]


def test_spark_connect_is_named(spark, monkeypatch):
    """PySpark's own sign of a remote session; without it the same source is read."""
    spark.range(9).write.mode("overwrite").saveAsTable("named")
    with monkeypatch.context() as patch:
        patch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
        with pytest.raises(InvalidParameter, match="Spark Connect") as caught:
            lb.table("spark:named", unit="id", max_rows=1)
    assert re.search(r"builder\.master\(.*for \.remote", caught.value.remedy)
    assert lb.table("spark:named", unit="id", max_rows=1).agg(n=lb.count()).release(epsilon=1)


@pytest.mark.evidence
def test_a_command_shows_no_warning_of_pyspark(spark, folder):
    spark.range(9).write.parquet(str(folder / "visits.parquet"))
    found = subprocess.run(
        [
            *(sys.executable, "-m", "lastbit", "card", "new", "spark:visits.parquet"),
            *("--unit", "id", "--max-rows", "1", "--neighbours", "add-remove", "--epsilon", "1"),
            *("--out", "visits.toml"),
        ],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    assert "Warning" not in found.stderr and "pandas" not in found.stderr
