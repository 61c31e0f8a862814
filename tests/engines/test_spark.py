"""Spark as an engine: its settings, what it reads and refuses, and what it never says."""

import datetime
import decimal
import logging
import pickle
import threading
from dataclasses import replace

import pyarrow
import pytest
from pyarrow import parquet

import lastbit as lb
from lastbit.errors import EngineFailed, InvalidParameter, LastbitError
from lastbit.tables.backends import printed
from lastbit.tables.backends.columns import columns_of, public_rows, public_values
from lastbit.tables.backends.progress import progress
from lastbit.tables.backends.spark.snapshot import unlogged
from lastbit.tables.card.column import Column
from lastbit.tables.card.read import examined
from lastbit.tables.card.schema import DataCard, PublicTable, Source
from lastbit.tables.card.source import source_of
from lastbit.tables.compile.spark import SPARK
from lastbit.tables.compile.statement import statement
from lastbit.tables.plan.plan import planned
from tests.cli.running import lastbit
from tests.engines.spark_session import MISSING
from tests.kernel.unsealing import aggregates
from tests.release.canaries import told
from tests.tables.connecting import rehearse

engine = pytest.importorskip("lastbit.tables.backends.spark.engine", reason=MISSING)

SECRET = "a secret of tests"
CANARY = "canary73211"


def rows(many=60):
    return pyarrow.table(
        {
            "user_id": pyarrow.array([i % 17 for i in range(many)], pyarrow.int64()),
            "region": pyarrow.array([f"r{i % 3}" for i in range(many)]),
            "cost": pyarrow.array([i * 1.25 for i in range(many)], pyarrow.float64()),
        }
    )


@pytest.fixture
def visits(tmp_path):
    parquet.write_table(rows(), tmp_path / "visits.parquet")
    return tmp_path / "visits.parquet"


def private(source, **more):
    keys = {"region": ["r0", "r1", "r2", "none"]}
    return lb.table(source, unit="user_id", max_rows=2, max_groups=1, keys=keys, **more)


def asked(table):
    mean = lb.mean("cost", 0, 100)
    return table.where("cost <> 5").group_by("region").agg(n=lb.count(), cost=mean)


def raw(question):
    plan = planned(question.query, question.card, epsilon=1)
    found = aggregates(question.query, question.card, plan.measures, secret=SECRET)
    return found.keys, found.entries, list(found.bins), found.units


def card_of(source, **types):
    columns = {name: Column(name=name, type=kind) for name, kind in types.items()}
    return DataCard(name="t", source=source, unit=None, max_rows=1, columns=columns)


# ---------------------------------------------------------------- sources


def test_files_tables_and_frames_give_what_duckdb_gives(spark, visits):
    frame = spark.read.parquet(str(visits))
    frame.write.mode("overwrite").saveAsTable("visits")
    wanted = raw(asked(private(visits)))
    for source in (
        f"spark:{visits}",
        "spark:visits",
        "spark:spark_catalog.default.`visits`",
        frame,
    ):
        assert raw(asked(private(source))) == wanted
    found = asked(private(f"spark:{visits}")).release(epsilon=1)
    assert found.record["certificate"]
    assert len(found.record["rows"]) == 4


def guarded(run):
    with engine.EngineSession() as session:
        return session.guarded(run)


def plan_of(question, stage):
    """Spark's plan of a question's statement, at this stage."""
    plan = planned(question.query, question.card, epsilon=1)

    def run(session):
        actual = engine.show_tables(
            session, engine.asked_tables(session, question.query, question.card)
        )
        given = question.query, question.card, plan.measures
        sql = statement(*given, secret=SECRET, dialect=SPARK, actual=actual).sql
        return getattr(session.sql(sql)._jdf.queryExecution(), stage)().toString()

    return guarded(run)


def test_the_statement_reads_once_and_shuffles_once_by_unit(spark, visits):
    text = plan_of(asked(private(f"spark:{visits}")), "executedPlan")
    assert text.count("FileScan parquet") == 1
    assert text.count("hashpartitioning(u#") == 1 and text.count("Exchange") == 2  # and by group
    assert "PushedFilters: []" in text


def test_types_of_columns(spark, tmp_path):
    stamp = datetime.datetime(1500, 3, 1, 1, 2, 3, 4)
    table = pyarrow.table(
        {
            "small": pyarrow.array([1], pyarrow.uint8()),
            "wide": pyarrow.array([2**63 + 5], pyarrow.uint64()),
            "money": pyarrow.array([decimal.Decimal("1.25")], pyarrow.decimal128(15, 2)),
            "long": pyarrow.array([decimal.Decimal("1.25")], pyarrow.decimal128(18, 2)),
            "half": pyarrow.array([0.5], pyarrow.float32()),
            "yes": pyarrow.array([True]),
            "day": pyarrow.array([datetime.date(1, 1, 1)]),
            "local": pyarrow.array([stamp], pyarrow.timestamp("us")),
            "utc": pyarrow.array([stamp], pyarrow.timestamp("us", tz="UTC")),
            "bytes": pyarrow.array([b"x"]),
            "list": pyarrow.array([[1]]),
        }
    )
    parquet.write_table(table, tmp_path / "types.parquet")
    source = source_of(f"spark:{tmp_path / 'types.parquet'}")
    assert columns_of(source) == {
        "small": "integer", "wide": "integer", "money": "number", "long": "number",
        "half": "number", "yes": "boolean", "day": "date", "local": "timestamp",
        "utc": "timestamp",
    }  # fmt: skip
    printed.fingerprint(card_of(source, money="number", long="number", utc="date"))
    for name, kind, words in (
        ("wide", "number", "more than 18 digits"),
        ("bytes", "text", "cannot be read row by row"),
        ("list", "text", "cannot be read row by row"),
        ("absent", "text", "is not in the source"),
    ):
        with pytest.raises(InvalidParameter, match=words):
            printed.fingerprint(card_of(source, **{name: kind}))


def test_what_another_session_writes_to_a_table_is_seen(spark):
    """Each session remembers the files of a table: ours went on with those of its first look."""
    spark.sql("CREATE TABLE growing USING parquet AS SELECT id AS user_id FROM range(9)")
    question = lb.table("spark:growing", unit="user_id", max_rows=1).agg(n=lb.count())
    for sql, count in (
        ("INSERT INTO growing SELECT id + 9 FROM range(9)", 18),
        ("INSERT OVERWRITE growing SELECT id FROM range(4)", 4),
        ("DROP TABLE growing", 0),
        ("CREATE TABLE growing USING parquet AS SELECT id AS user_id FROM range(7)", 7),
    ):
        before = printed.fingerprint(question.card) if "CREATE" not in sql else b""
        spark.sql(sql)
        if count:
            assert printed.fingerprint(question.card) != before
            assert list(raw(question)[1].values()) == [[count << 20]]  # in fixed point


def test_what_may_be_another_one_at_the_next_look_is_refused(spark, visits, tmp_path):
    frame = spark.read.parquet(str(visits))
    frame.createOrReplaceTempView("temporary")
    frame.createOrReplaceGlobalTempView("everywhere")
    frame.write.mode("overwrite").saveAsTable("stored")
    spark.sql("CREATE OR REPLACE VIEW dice AS SELECT *, rand() AS r FROM stored")
    frame.write.mode("overwrite").format("csv").saveAsTable("texts")
    for name, words in (
        ("dice", "is a view"), ("global_temp.everywhere", "is a view"),
        ("texts", "not stored as Parquet"), ("temporary", "not there"), ("absent", "not there"),
        (str(tmp_path / "absent.parquet"), "not there"),
    ):  # fmt: skip
        with pytest.raises(LastbitError, match=words):
            columns_of(source_of(f"spark:{name}"))
    spark.catalog.cacheTable("stored")
    try:
        with pytest.raises(InvalidParameter, match="uncache it"):
            columns_of(source_of("spark:stored"))
    finally:
        spark.catalog.uncacheTable("stored")
    for log in ("_delta_log", "metadata"):
        folder = tmp_path / log / "table"
        (folder / log).mkdir(parents=True)
        (folder / log / "v1.metadata.json").write_text("{}")
        parquet.write_table(rows(), folder / "a.parquet")
        with pytest.raises(LastbitError):
            columns_of(source_of(f"spark:{folder}"))
        with pytest.raises(LastbitError):
            columns_of(source_of(f"spark:{folder / 'a.parquet'}"))


def test_options_of_a_table_that_skip_files(spark, visits):
    spark.sql("DROP TABLE IF EXISTS skipping")
    spark.sql(
        "CREATE TABLE skipping USING parquet"
        f" OPTIONS (path '{visits.parent}', ignoreCorruptFiles 'true')"
    )
    with pytest.raises(InvalidParameter, match="drop ignorecorruptfiles"):
        columns_of(source_of("spark:skipping"))


def test_char_and_collations(spark):
    spark.sql("DROP TABLE IF EXISTS letters")
    spark.sql(
        "CREATE TABLE letters (id BIGINT, fixed CHAR(5), free VARCHAR(5),"
        " loose STRING COLLATE UTF8_LCASE) USING parquet"
    )
    spark.sql("INSERT INTO letters VALUES (1, 'a', 'a', 'a'), (2, 'a', 'a', 'A')")
    found = columns_of(source_of("spark:letters"))
    assert found == {"id": "integer", "free": "text", "loose": "text"}
    table = lb.table("spark:letters", unit="id", max_rows=1, keys={"loose": ["a", "A"]})
    keys, entries, _, _ = raw(table.group_by("loose").agg(n=lb.count()))
    assert keys == [("a",), ("A",)]
    (counts,) = entries.values()
    assert counts[0] == counts[1] > 0  # two letters, whatever the column holds equal
    with pytest.raises(InvalidParameter, match="fills with blanks"):
        printed.fingerprint(card_of(source_of("spark:letters"), fixed="text"))


def test_folders_say_columns_as_text(spark, tmp_path):
    for year, unit in ((2023, 1), (2024, 2)):
        folder = tmp_path / "all" / f"year={year}" / f"unit={unit}"
        folder.mkdir(parents=True)
        parquet.write_table(rows(4), folder / "a.parquet")
    source = source_of(f"spark:{tmp_path / 'all'}")
    assert columns_of(source)["year"] == "text"
    with pytest.raises(InvalidParameter, match="said by the names of folders"):
        lb.table(f"spark:{tmp_path / 'all'}", unit="unit", max_rows=1).agg(n=lb.count()).release(
            epsilon=1
        )


def test_names_that_differ_in_case_only(spark, tmp_path):
    table = pyarrow.table({"a": [1], "A": [2]})
    parquet.write_table(table, tmp_path / "two.parquet")
    with pytest.raises(LastbitError):
        columns_of(source_of(f"spark:{tmp_path / 'two.parquet'}"))


def test_a_public_table_that_is_the_table_itself(spark, visits):
    spark.read.parquet(str(visits)).write.mode("overwrite").saveAsTable("kept")
    for one, other in (
        (f"spark:{visits}",) * 2,
        ("spark:kept", "spark:spark_catalog.default.KEPT"),
    ):
        public = PublicTable(name="p", source=source_of(other), columns={"region": "text"})
        card = replace(card_of(source_of(one), region="text"), public={"p": public})
        with pytest.raises(InvalidParameter, match="is the table itself"):
            printed.fingerprint(card)


# ---------------------------------------------------------------- snapshots


def test_values_of_a_public_table(spark, visits, tmp_path):
    table = pyarrow.table({"Region": ["r1", None, "r0", "r1"]})
    parquet.write_table(table, tmp_path / "places.parquet")
    source = source_of(f"spark:{tmp_path / 'places.parquet'}")
    public = PublicTable(name="p", source=source, columns={"Region": "text"})
    card = replace(card_of(source_of(f"spark:{visits}"), region="text"), public={"p": public})
    assert public_values(card, "p", "region", most=2) == ("r0", "r1")
    assert public_values(card, "p", "region", most=1) is None
    assert public_rows(card, "p", ["region"], most=9) == [(None, 1), ("r0", 1), ("r1", 2)]


def test_a_file_under_two_names(spark, visits, tmp_path):
    linked, hard = tmp_path / "links" / "linked.parquet", tmp_path / "hard.parquet"
    linked.parent.mkdir()
    linked.symlink_to(visits)
    hard.hardlink_to(visits)
    for other in (visits, linked, hard):
        with pytest.raises(InvalidParameter, match="the same file under two names"):
            lb.table([f"spark:{visits}", f"spark:{other}"], each_row=True).agg(
                n=lb.count()
            ).release(epsilon=1)
        table = private(f"spark:{visits}", public={"p": f"spark:{other}"})
        with pytest.raises(InvalidParameter, match="is the table itself"):
            table.join("p", on="user_id").agg(n=lb.count()).release(epsilon=1)


@pytest.mark.parametrize("log", ["_delta_log", ".hoodie", "metadata"])
def test_files_of_which_a_log_says_whether_they_count(log, spark, tmp_path):
    (tmp_path / "table" / log).mkdir(parents=True)
    (tmp_path / "table" / log / "v1.metadata.json").touch()
    (tmp_path / "table" / "day=1").mkdir()
    parquet.write_table(rows(), tmp_path / "table" / "day=1" / "a.parquet")
    (tmp_path / "link.parquet").symlink_to(tmp_path / "table" / "day=1" / "a.parquet")
    for path in ("tab*/*/*.parquet", "link.parquet"):
        with pytest.raises(InvalidParameter, match="a log says which"):
            private(f"spark:{tmp_path}/{path}")


def test_values_at_which_the_reader_of_spark_stops_are_refused_before_the_charge(spark, tmp_path):
    far = pyarrow.array([0, 2**62], pyarrow.timestamp("ms"))

    digits = (5).to_bytes(16, "little") + (2 * 10**20).to_bytes(16, "little")
    kind, buffers = pyarrow.decimal128(20, 0), [None, pyarrow.py_buffer(digits)]
    wide = pyarrow.Array.from_buffers(kind, 2, buffers)
    for number, column in enumerate((far, wide)):
        place = tmp_path / f"{number}.parquet"
        parquet.write_table(pyarrow.table({"user_id": [1, 2], "x": column}), place)
        table = lb.table(f"spark:{place}", unit="user_id", max_rows=1)
        with pytest.raises(InvalidParameter, match="out of range"):  # whatever is asked
            printed.fingerprint(table.card)
        with pytest.raises(InvalidParameter, match="out of range"):
            table.agg(n=lb.count()).release(epsilon=1)


def test_loggers_are_silent_until_the_last_thread_is_done():
    logger = logging.getLogger("py4j")
    first, second = unlogged(), unlogged()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert logger.disabled
    second.__exit__(None, None, None)
    assert not logger.disabled


def test_a_frame_is_run_once(spark, visits):
    """Asked again and again, a snapshot has one fingerprint; another run of the recipe has not."""

    def print_of(table):
        return printed.fingerprint(card_of(table.card.source, cost="number"))

    taken = private(spark.read.parquet(str(visits)))
    assert repr(taken.card.source.frame) == "<SparkSnapshot>"
    before, sums = print_of(taken), raw(asked(taken))
    assert print_of(private(spark.read.parquet(str(visits)))) == before  # by content
    parquet.write_table(rows(70), visits)
    assert print_of(taken) == before and raw(asked(taken)) == sums
    assert print_of(private(spark.read.parquet(str(visits)))) != before
    columns = ("id AS user_id", "rand() AS cost", "'r0' AS region")
    drawn = [private(spark.range(2000).selectExpr(*columns)) for _ in range(2)]
    assert raw(asked(drawn[0])) == raw(asked(drawn[0])) != raw(asked(drawn[1]))
    with pytest.raises(InvalidParameter, match="not copied"):
        pickle.dumps(taken.card.source.frame)


def test_what_is_no_frame_of_spark(spark):
    for given in (spark.sparkContext.emptyRDD(), spark):
        with pytest.raises(InvalidParameter, match="is a distributed frame"):
            lb.table(given, unit="id", max_rows=1)


# ---------------------------------------------------------------- settings


def test_settings_are_ours_and_the_user_keeps_theirs(spark, visits):
    theirs = {
        "spark.sql.ansi.enabled": "false", "spark.sql.session.timeZone": "America/New_York",
        "spark.sql.parquet.filterPushdown": "true", "spark.sql.legacy.timeParserPolicy": "LEGACY",
    }  # fmt: skip
    for name, value in theirs.items():
        spark.conf.set(name, value)
    try:
        with engine.EngineSession() as session:
            own = session.connected()
        assert {name: own.conf.get(name) for name in engine.SETTINGS} == dict(engine.SETTINGS)
        assert own.conf.get("spark.sql.legacy.timeParserPolicy", None) != "LEGACY"
        raw(asked(private(f"spark:{visits}")))
        assert {name: spark.conf.get(name) for name in theirs} == theirs
    finally:
        for name in theirs:
            spark.conf.unset(name)


def test_a_session_is_one_questions_and_then_the_next_ones(spark):
    with engine.EngineSession() as first, engine.EngineSession() as second:
        held = [first.connected(), second.connected()]
        assert held[0] is not held[1] and first.connected() is held[0]
    with engine.EngineSession() as third:
        assert any(third.connected() is one for one in held)  # none is made anew


def test_steps_of_a_condition_are_not_written_out_again(spark, visits):
    """Each names its operand nine times: pushed into one, four of them had 135,000 letters."""
    nested = "cost"
    for _ in range(4):
        nested = f"round({nested} + 0.5)"
    question = private(f"spark:{visits}").where(f"{nested} > 3").agg(n=lb.count())
    assert len(plan_of(question, "optimizedPlan")) < 10_000


def test_plug_ins_are_refused():
    engine.check_extensions("", "")
    for extensions, plugins in (("org.example.Rules", ""), ("", "com.nvidia.spark.SQLPlugin")):
        with pytest.raises(InvalidParameter, match="plug-ins"):
            engine.check_extensions(extensions, plugins)


def test_without_java(monkeypatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(engine.SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr(engine.SparkSession, "_instantiatedSession", None)
    with pytest.raises(InvalidParameter, match="needs Java"):
        columns_of(source_of("spark:visits"))


# ---------------------------------------------------------------- failures


def test_errors_say_nothing_of_the_data(spark, tmp_path, caplog, capfd):
    spark.sql(f"SELECT '{CANARY}' AS user_id, 1D AS cost, 'r0' AS region").write.parquet(
        str(tmp_path / "a")
    )
    frame = spark.read.parquet(str(tmp_path / "a"))
    for make in (
        lambda: lb.table(frame.selectExpr("CAST(user_id AS INT) AS user_id"), unit="user_id",
                         max_rows=1),
        lambda: guarded(lambda s: s.sql(f"SELECT CAST('{CANARY}' AS INT)").collect()),
    ):  # fmt: skip
        with pytest.raises(EngineFailed) as caught:
            make()
        assert CANARY not in told(caught.value)
        assert caught.value.__cause__ is caught.value.__context__ is None
    printed = capfd.readouterr()
    assert CANARY not in caplog.text + printed.out + printed.err


def test_loggers_are_silent_until_the_last_call_ends():
    heard = logging.getLogger("py4j.clientserver")
    first, second = unlogged(), unlogged()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert heard.disabled
    second.__exit__(None, None, None)
    assert not heard.disabled


def test_damaged_files_stop_it_after_the_rehearsal(spark, visits):
    question = asked(private(f"spark:{visits}"))
    whole = visits.read_bytes()
    visits.write_bytes(whole[:4] + bytes(60) + whole[64:])  # not where the schema is
    plan = planned(question.query, question.card, epsilon=1)
    rehearse(question.query, question.card, plan.measures)  # it reads no row
    with pytest.raises(EngineFailed):
        raw(question)


def test_a_file_that_changes_while_it_is_read(spark, visits, monkeypatch):
    real = engine.run_sql

    def changing(session, sql):
        found = real(session, sql)
        parquet.write_table(rows(70), visits)
        return found

    question = asked(private(f"spark:{visits}"))
    monkeypatch.setattr(engine, "run_sql", changing)
    with pytest.raises(EngineFailed, match="changed while it was read"):
        raw(question)


def test_an_interrupt_cancels_the_job(spark):
    with engine.EngineSession() as ours:
        session = ours.connected()
    real, seen = engine.wait, threading.Event()

    def interrupted(*given, **named):
        real(*given, **named)
        if session.sparkContext.statusTracker().getActiveJobsIds():
            seen.set()
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            guarded(lambda s: engine.run_sql(s, "SELECT sum(hash(id)) FROM range(1000000000000)"))
    assert seen.is_set()
    assert not session.sparkContext.statusTracker().getActiveJobsIds()


def test_progress_is_told(spark):
    shares = []
    with progress(lambda share, words: shares.append((share, words))):
        guarded(lambda s: engine.run_sql(s, "SELECT sum(hash(id)) FROM range(9000000)"))
    assert shares and all(0 <= share <= 1 and words == "asking Spark" for share, words in shares)


# ---------------------------------------------------------------- cards


def test_sources_on_cards(spark, visits, monkeypatch):
    monkeypatch.chdir(visits.parent)
    made = lastbit(
        "card", "new", "spark:visits.parquet", "--unit", "user_id", "--max-rows", "2",
        "--neighbours", "add-remove", "--epsilon", "3", "--out", "visits.toml",
    )  # fmt: skip
    assert made.exit_code == 0, made.output
    card = examined("visits.toml").card
    assert card is not None and card.source == Source(kind="spark", paths=(str(visits),))
    result = lastbit("query", "visits.toml", "SELECT COUNT(*) AS n FROM visits", "--epsilon", "1")
    assert result.exit_code == 0, result.output
    for written in ('["spark:a.parquet", "b.parquet"]', '"spark:"', '["spark:a", "spark:b"]'):
        text = (visits.parent / "visits.toml").read_text()
        start = text.index("source = ")
        changed = text[:start] + f"source = {written}" + text[text.index("\n", start) :]
        (visits.parent / "other.toml").write_text(changed)
        assert examined("other.toml").card is None
