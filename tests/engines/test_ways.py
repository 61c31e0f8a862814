"""Which tables may be on the way to a unit on a server, and that they are read with the rest."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest

import lastbit as lb
from lastbit.checker.dispatch import problem_of
from lastbit.errors import EngineFailed, InvalidParameter, QueryRefused
from lastbit.tables.backends import engines, printed
from lastbit.tables.plan.plan import planned
from tests.engines.servers import MISSING
from tests.engines.spark_session import MISSING as NO_SPARK
from tests.kernel.unsealing import aggregates, opened
from tests.tables.connecting import rehearse

SECRET = "a secret of tests"
ITEMS = "SELECT i // 3 AS order_id, i % 7 AS price FROM range(90) AS g(i)"
ORDERS = "SELECT i AS id, i // 4 AS customer, 'r' || i % 2 AS region FROM range(28) AS g(i)"


def raw(question):
    plan = planned(question.query, question.card, epsilon=1)
    found = aggregates(question.query, question.card, plan.measures, secret=SECRET)
    return found.keys, found.entries, found.units


def made(items, orders, on=None, **more):
    """Items with a customer by way of orders."""
    keys = {"orders.region": ["r0", "r1"]}
    given: dict[str, Any] = {"unit": "orders.customer", "max_rows": 5, "keys": keys}
    way = {"orders": (orders, on or {"order_id": "id"})}
    return lb.table(items, through=way, **(given | more))


def asked(table):
    return table.group_by("region").agg(n=lb.count(), price=lb.mean("price", 0, 7))


@pytest.fixture
def wanted(tmp_path):
    """The integers of DuckDB."""
    duckdb.execute(f"COPY ({ITEMS}) TO '{tmp_path}/items.parquet'")
    duckdb.execute(f"COPY ({ORDERS}) TO '{tmp_path}/orders.parquet'")
    found = raw(asked(made(f"{tmp_path}/items.parquet", f"{tmp_path}/orders.parquet")))
    assert min(found[1]["m1"]) > 0
    return found


def rejected(table, words):
    with pytest.raises(InvalidParameter, match=words):
        asked(table).release(epsilon=1)


# ---------------------------------------------------------------- PostgreSQL

SHOP = """
CREATE TABLE items AS SELECT i / 3 AS order_id, i % 7 AS price FROM generate_series(0, 89) AS g(i);
CREATE TABLE orders AS SELECT i AS id, i / 4 AS customer, 'r' || i % 2 AS region
FROM generate_series(0, 27) AS g(i);
"""


@pytest.fixture
def shop(postgres):
    pytest.importorskip("psycopg", reason=MISSING)
    address = postgres.database()
    with postgres.connected(address) as connection:
        connection.execute(SHOP)

        def table(items="items", orders="orders", at=address, **more):
            return made(at, f"{at}&table={orders}", table=items, **more)

        yield SimpleNamespace(address=address, run=connection.execute, table=table)


def test_postgres_gives_the_integers_of_duckdb(shop, wanted):
    assert raw(asked(shop.table())) == wanted
    answer = asked(shop.table()).release(epsilon=1)
    assert problem_of(answer.record) is None
    assert answer.certificate["claim"]["through"][0]["table"] == "orders"


@pytest.mark.parametrize(
    ("sql", "items", "orders"),
    [
        ("SELECT", "items", "items"),
        ("SELECT", "items", 'public."items"'),
        ("CREATE TABLE one () INHERITS (items)", "items", "one"),
        ("CREATE TABLE one () INHERITS (items)", "one", "items"),
        (
            "CREATE TABLE whole (LIKE items) PARTITION BY LIST (price);"
            "CREATE TABLE one PARTITION OF whole DEFAULT",
            "one",
            "whole",
        ),
        ("CREATE MATERIALIZED VIEW one AS TABLE items", "one", "items"),
        (
            "CREATE MATERIALIZED VIEW one AS TABLE items;"
            "CREATE VIEW two AS TABLE one; CREATE MATERIALIZED VIEW three AS TABLE two",
            "items",
            "three",
        ),
        (
            "CREATE MATERIALIZED VIEW one AS TABLE items;"
            "CREATE MATERIALIZED VIEW two AS SELECT * FROM items WHERE price > 1",
            "one",
            "two",
        ),
    ],
)
def test_one_table_of_postgres_is_not_twice_on_the_way(shop, sql, items, orders):
    shop.run("ALTER TABLE items ADD id integer, ADD customer integer, ADD region text")
    shop.run(sql)
    table = shop.table(items, orders, keys=None)
    with pytest.raises(InvalidParameter, match="is on the way to the unit twice"):
        table.agg(n=lb.count()).release(epsilon=1)
    with pytest.raises(InvalidParameter, match="is on the way to the unit twice"):
        printed.fingerprint(table.card)


def test_a_private_table_of_postgres_is_nowhere_on_the_way_to_another_unit(shop):
    """A copy of the way's rows under another owner would move with that owner's."""
    shop.run("CREATE MATERIALIZED VIEW seen AS TABLE items; CREATE TABLE more () INHERITS (orders)")
    for name, unit in (("items", "price"), ("seen", "price"), ("more", "id")):
        labs = lb.table(f"{shop.address}&table={name}", unit=unit, max_rows=1)
        table = shop.table(private={"labs": labs})
        rejected(table, "where its rows are other units'")
        with pytest.raises(InvalidParameter, match="where its rows are other units'"):
            printed.fingerprint(table.card)
    same = lb.table(f"{shop.address}&table=orders", unit="customer", max_rows=1)
    assert raw(asked(shop.table(private={"labs": same}))) == raw(asked(shop.table()))


def test_parts_of_one_table_and_their_triggers_may_be_on_the_way(shop, wanted):
    """Partitions share no row; and what a table's rules write to is not what it is made of."""
    shop.run(
        "CREATE TABLE noted (id integer);"
        "CREATE RULE noting AS ON INSERT TO orders DO ALSO INSERT INTO noted VALUES (NEW.id);"
        "CREATE RULE noting AS ON INSERT TO items DO ALSO INSERT INTO noted VALUES (NEW.price);"
        "CREATE MATERIALIZED VIEW kept AS TABLE orders"
    )
    assert raw(asked(shop.table())) == raw(asked(shop.table(orders="kept"))) == wanted


def test_views_and_other_databases_are_not_on_the_way(shop, postgres):
    shop.run("CREATE VIEW seen AS TABLE orders")
    with pytest.raises(InvalidParameter, match="is a view"):
        shop.table(orders="seen")
    elsewhere = postgres.database()
    with postgres.connected(elsewhere) as connection:
        connection.execute(SHOP)
    other = made(shop.address, f"{elsewhere}&table=orders", table="items")
    rejected(other, "linked table orders is in another database")


def test_a_table_on_the_way_is_not_public(shop):
    table = shop.table(public={"p": f"{shop.address}&table=orders"})
    with pytest.raises(InvalidParameter, match="public table p is the table itself"):
        printed.fingerprint(table.card)


def test_rights_and_row_security_are_looked_at_on_the_way(shop):
    shop.run(
        "DROP ROLE IF EXISTS clerk; CREATE ROLE clerk LOGIN; GRANT SELECT ON items, orders TO clerk"
    )
    there = shop.address.replace("postgres@", "clerk@")
    table = shop.table(at=there)
    shop.run("REVOKE SELECT ON orders FROM clerk")
    rejected(table, "GRANT SELECT ON")
    shop.run("GRANT SELECT (id, customer, region) ON orders TO clerk")
    with pytest.raises(InvalidParameter, match=r"which rows of .*orders.* have changed"):
        printed.fingerprint(table.card)
    shop.run("GRANT SELECT ON orders TO clerk; ALTER TABLE orders ENABLE ROW LEVEL SECURITY")
    rejected(table, "row security")
    shop.run("ALTER TABLE orders DISABLE ROW LEVEL SECURITY")
    assert raw(asked(table)) == raw(asked(shop.table()))
    shop.run("DROP OWNED BY clerk; DROP ROLE clerk")


def test_all_tables_of_a_way_are_of_one_state(shop, wanted):
    """What others write between two calls of a session is seen by the next one."""
    question = asked(shop.table())
    card = question.card
    plan = planned(question.query, card, epsilon=1)
    given = question.query, card, plan.measures
    with engines.open_session(card) as session:
        before = session.fingerprint(card)
        shop.run("UPDATE orders SET customer = 1; INSERT INTO orders VALUES (1, 9, 'r1')")
        assert session.fingerprint(card) == before
        found = opened(question.query, plan.measures, session.aggregates(*given, secret=SECRET))
        assert (found.keys, found.entries, found.units) == wanted
    assert printed.fingerprint(card) != before
    assert raw(question) != wanted


def test_a_rehearsal_on_postgres_reads_no_row_of_the_way(shop):
    from lastbit.tables.backends.postgres.engine import EngineSession, actual_tables

    question = asked(shop.table())
    with EngineSession() as session:
        shown = session.guarded(
            question.card.source,
            lambda one: actual_tables(one, question.query, question.card, empty=True),
        )
    assert sorted(shown) == ["lastbit_private orders", "lastbit_table"]
    assert all("WHERE FALSE" in there.place for there in shown.values())


TEXTS = ["a", "A", "a ", "", None]
KINDS_OF_IDS = [
    ("char(5)", TEXTS, "text", TEXTS, "text", 4),  # a, A, "a " without its blank, nothing
    ("text", TEXTS, "varchar(9)", [*TEXTS, "a"], "text", 5),
    ("double precision", [0, "-0", "NaN", 1.5, 2, "Infinity", None], "numeric", None, "integer", 4),
    ("boolean", ["t", "f", None], "smallint", [0, 1, 2], "integer", 2),
    ("integer", [1, 2, 1], "text", ["1", "01", " 1", "2", "1.0"], "text", 3),
]


@pytest.mark.parametrize(("items", "own", "orders", "theirs", "kind", "pairs"), KINDS_OF_IDS)
def test_ids_meet_as_the_card_reads_them(shop, items, own, orders, theirs, kind, pairs):
    """Blanks of char(n), case, -0, NaN, halves and what is missing; each order has a customer."""
    shop.run("DROP TABLE items, orders")
    shop.run(f"CREATE TABLE items (order_id {items})")
    shop.run(f"CREATE TABLE orders (id {orders}, customer serial)")
    values = (own, [0, 1, 2, 2.5, "NaN", None] if theirs is None else theirs)
    for insert, ids in zip(("items", "orders (id)"), values, strict=True):
        listed = ", ".join("(NULL)" if one is None else f"('{one}')" for one in ids)
        shop.run(f"INSERT INTO {insert} VALUES {listed}")
    table = shop.table(keys=None, columns={"order_id": kind, "id": kind})
    assert raw(table.agg(n=lb.count()))[1]["m1"] == [pairs << 20]


def test_ids_meet_by_their_bytes_whatever_their_collation(postgres):
    if not postgres.icu:
        pytest.skip("needs a PostgreSQL with ICU: Debian's")
    there = postgres.database()
    with postgres.connected(there) as connection:
        nocase = "provider = icu, locale = 'und-u-ks-level2', deterministic = false"
        connection.execute(f"CREATE COLLATION nocase ({nocase})")
        connection.execute("CREATE TABLE items (order_id text COLLATE nocase)")
        connection.execute("CREATE TABLE orders (id text COLLATE nocase, customer serial)")
        connection.execute("INSERT INTO items VALUES ('a'), ('A'), ('b')")
        connection.execute("INSERT INTO orders (id) VALUES ('A'), ('B')")
    table = made(there, f"{there}&table=orders", table="items", keys=None)
    assert raw(table.agg(n=lb.count()))[1]["m1"] == [1 << 20]


# ---------------------------------------------------------------- Spark


@pytest.fixture
def lake(spark, wanted, tmp_path):
    """Paths of both tables as Spark names them."""
    pytest.importorskip("lastbit.tables.backends.spark.engine", reason=NO_SPARK)
    assert wanted
    return f"spark:{tmp_path}/items.parquet", f"spark:{tmp_path}/orders.parquet"


def frames(spark, lake):
    return [spark.read.parquet(path.removeprefix("spark:")) for path in lake]


def test_spark_gives_the_integers_of_duckdb(spark, lake, wanted):
    for one in frames(spark, lake):
        one.write.mode("overwrite").saveAsTable(
            "of_items" if "price" in one.columns else "of_orders"
        )
    for items, orders in (
        lake,
        ("spark:of_items", "spark:of_orders"),
        frames(spark, lake),
        (lake[0], frames(spark, lake)[1]),
    ):
        assert raw(asked(made(items, orders))) == wanted
    answer = asked(made(*lake)).release(epsilon=1)
    assert problem_of(answer.record) is None


def twice(items, orders):
    """Rows of a table with all columns, by way of its own or derived ones."""
    way = {"customers": (orders, {"id": "id"})}
    table = lb.table(items, unit="customers.customer", max_rows=5, through=way)
    with pytest.raises(InvalidParameter, match="is on the way to the unit twice"):
        printed.fingerprint(table.card)
    with pytest.raises(InvalidParameter, match="is on the way to the unit twice"):
        table.agg(n=lb.count()).release(epsilon=1)


def test_one_table_of_spark_is_not_twice_on_the_way(spark, lake, tmp_path):
    path, frame = lake[1], frames(spark, lake)[1]
    for name, link in (("hard", Path.hardlink_to), ("linked", Path.symlink_to)):
        link(tmp_path / f"{name}.parquet", tmp_path / "orders.parquet")
        twice(path, f"spark:{tmp_path}/{name}.parquet")
    frame.write.mode("overwrite").saveAsTable("twice")
    held = spark.createDataFrame([(1, 2, "r0"), (2, 3, "r1")], ["id", "customer", "region"])
    drawn = spark.range(20).selectExpr("id", "CAST(rand() * 9 AS INT) AS customer")
    for items, orders in (
        (path, path),
        ("spark:twice", "spark:spark_catalog.default.TWICE"),
        (frame, frame.where("id > 3")),
        (path, frame.groupBy("id").agg({"customer": "max"}).toDF("id", "customer")),
        (held.select("id"), held.where("customer > 2").distinct()),
        (drawn, drawn),
        ("spark:twice", held.where("id IN (SELECT id FROM twice)")),
    ):
        twice(items, orders)


def test_what_a_frame_is_made_of_is_seen_through_caches_values_and_rdds(spark, lake, tmp_path):
    """Optimised plans name no file of a cached frame, nor of one inside a value."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "orders.parquet").hardlink_to(tmp_path / "orders.parquet")
    frame, kept = frames(spark, lake)[1], spark.read.parquet(str(tmp_path / "folder")).cache()
    kept.createOrReplaceTempView("other_spelling")
    inside = "SELECT id, id + (SELECT max(customer) FROM other_spelling) AS customer FROM range(9)"
    drawn = spark.sparkContext.parallelize([(1, 2), (3, 4)])
    held, same = (spark.createDataFrame(drawn, ["id", "customer"]) for _ in range(2))
    for items, orders in (
        (kept, lake[1]),
        (frame, kept.where("id > 3")),
        (frame, spark.sql(inside)),
        (lake[1], spark.createDataFrame(frame.rdd, frame.schema)),
        (held, same.where("id > 1")),
    ):
        twice(items, orders)
    kept.unpersist()


def test_one_table_of_another_system_is_not_twice_on_the_way(spark, lake, tmp_path):
    place = {
        "url": f"jdbc:derby:{tmp_path}/derby;create=true",
        "driver": "org.apache.derby.iapi.jdbc.AutoloadedDriver",
        "dbtable": "orders",
    }
    spark._jvm.System.setProperty("derby.stream.error.file", f"{tmp_path}/derby.log")
    frames(spark, lake)[1].select("id", "customer").write.format("jdbc").options(**place).save()
    twice(*(spark.read.format("jdbc").options(**place).load() for _ in range(2)))


def test_frames_that_share_nothing_may_be_on_the_way(spark):
    """Numbers that Spark counts up are no table."""
    items = spark.range(30).selectExpr("id % 9 AS order_id")
    orders = spark.range(9).selectExpr("id", "id % 3 AS customer")
    found = raw(made(items, orders, keys=None, max_rows=30).agg(n=lb.count()))
    assert found[1]["m1"] == [30 << 20]


def test_what_reaches_a_unit_is_not_said_by_folders_of_spark(spark, lake, tmp_path):
    frames(spark, lake)[1].write.partitionBy("id").parquet(str(tmp_path / "parts"))
    table = made(lake[0], f"spark:{tmp_path}/parts", columns={"id": "text", "order_id": "text"})
    rejected(table, "names of folders")


def test_files_of_a_way_are_seen_to_change(spark, lake, tmp_path, monkeypatch):
    from lastbit.tables.backends.spark import engine

    question, real = asked(made(*lake)), engine.run_sql
    before = printed.fingerprint(question.card)

    def meanwhile(session, sql):
        found = real(session, sql)
        os.utime(tmp_path / "orders.parquet", ns=(1, 1))
        return found

    monkeypatch.setattr(engine, "run_sql", meanwhile)
    with pytest.raises(EngineFailed, match="changed while it was read"):
        raw(question)
    assert printed.fingerprint(question.card) != before


def test_a_rehearsal_on_spark_reads_no_row_of_the_way(spark, lake, monkeypatch):
    from lastbit.tables.backends.spark import rehearsal
    from lastbit.tables.backends.spark.engine import run_sql

    question, counts = asked(made(*lake)), []
    real = run_sql

    def counted(session, sql):
        counts.append([session.table(f"lastbit_{place}").count() for place in (0, 1)])
        return real(session, sql)

    monkeypatch.setattr(rehearsal, "run_sql", counted)
    rehearse(
        question.query, question.card, planned(question.query, question.card, epsilon=1).measures
    )
    assert counts == [[0, 0]]


@pytest.mark.parametrize("server", ["postgres", "spark"])
def test_choices_among_rows_by_fractions_are_refused(request, server):
    """Two engines write a double as text in different ways."""
    kind = {"postgres": "shop", "spark": "lake"}[server]
    there = request.getfixturevalue(kind)
    if server == "postgres":
        there.run("ALTER TABLE orders ADD total double precision")
        table = there.table()
    else:
        folder = there[1].removeprefix("spark:")
        duckdb.execute(
            f"COPY (SELECT *, 0.5::DOUBLE AS total FROM '{folder}') TO '{folder}.two.parquet'"
        )
        table = made(there[0], f"spark:{folder}.two.parquet")
    with pytest.raises(QueryRefused, match="to the last bit"):
        raw(table.where("total > 1").agg(n=lb.count()))
    assert raw(table.agg(n=lb.count()))
