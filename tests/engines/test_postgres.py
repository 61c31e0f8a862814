"""PostgreSQL as an engine: its settings, what it reads and refuses, and what it never says."""

import logging
import signal
import threading
import time
from types import SimpleNamespace

import pyarrow
import pytest

import lastbit as lb
from lastbit.checker.dispatch import problem_of
from lastbit.errors import EngineFailed, InvalidParameter, LastbitError
from lastbit.ledger import Ledger
from lastbit.tables.backends import engines, printed
from lastbit.tables.backends.columns import columns_of
from lastbit.tables.backends.engines import Session
from lastbit.tables.card.read import examined, read_card
from lastbit.tables.card.source import source_of
from lastbit.tables.plan.plan import planned
from tests.cli.running import refused, succeeded
from tests.engines.servers import started
from tests.kernel.unsealing import aggregates
from tests.release.canaries import told

SECRET = "a secret of tests"
CANARY = "canary73211"
REGIONS = ["r0", "r1", "r2"]
VISITS = """
CREATE TABLE visits (user_id integer, region text, cost numeric(9, 2), day date);
INSERT INTO visits SELECT i % 17, 'r' || i % 3, i * 1.25, date '2024-01-01' + i
FROM generate_series(0, 59) AS g(i);
CREATE TABLE places AS SELECT 'r' || i AS region, 'place ' || i % 2 AS place
FROM generate_series(0, 2) AS g(i);
"""
CARD = """
[table]
name = "visits"
source = "{address}"
table = "public.visits"
neighbours = "add-remove"
[unit]
column = "user_id"
max_rows = 2
[budget]
epsilon = 3
[columns.user_id]
type = "integer"
[columns.region]
type = "text"
keys = ["r0", "r1", "r2"]
[columns.cost]
type = "number"
bounds = [0, 100]
"""
ASKED = "SELECT region, count(*) AS n, avg(cost) AS cost FROM visits GROUP BY region"


@pytest.fixture(scope="module")
def clinic(postgres):
    """A database with a table of visits; `run` is for setting things up."""
    address = postgres.database()
    with postgres.connected(address) as connection:
        connection.execute(VISITS)

        def run(sql):
            return connection.execute(sql)

        yield SimpleNamespace(address=address, run=run, server=postgres)


@pytest.fixture
def card(clinic, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "visits.toml").write_text(CARD.format(address=clinic.address), "utf-8")
    return tmp_path / "visits.toml"


def private(clinic, table="public.visits", **more):
    keys = {"region": REGIONS}
    return lb.table(clinic.address, table=table, unit="user_id", max_rows=2, keys=keys, **more)


def asked(table, bounds=(0, 100)):
    return table.group_by("region").agg(n=lb.count(), cost=lb.mean("cost", *bounds))


def raw(question):
    plan = planned(question.query, question.card, epsilon=1)
    found = aggregates(question.query, question.card, plan.measures, secret=SECRET)
    return found.keys, found.entries, {k: list(map(list, v)) for k, v in found.bins.items()}


def by_role(clinic, role):
    return SimpleNamespace(address=clinic.address.replace("postgres@", f"{role}@"))


# ---------------------------------------------------------------- what is read


def test_the_integers_are_those_of_the_same_rows_in_a_frame(clinic):
    rows = clinic.run("SELECT user_id, region, cost::float8 AS cost, day FROM visits").fetchall()
    columns = dict(zip(("user_id", "region", "cost", "day"), zip(*rows, strict=True), strict=True))
    there = lb.table(pyarrow.table(columns), unit="user_id", max_rows=2, keys={"region": REGIONS})
    for question in (
        asked,
        lambda t: (
            t.where("day >= DATE '2024-01-20'").group_by("region").agg(m=lb.median("cost", 0, 9))
        ),
        lambda t: t.group_by("region").agg(u=lb.count_distinct("user_id")),
        # steps beyond those that PostgreSQL plans at once
        lambda t: asked(t.where(" + ".join(["cost"] * 20) + " * user_id > 400")),
    ):
        assert raw(question(private(clinic))) == raw(question(there))


def test_a_question_is_charged_once_and_its_certificate_accepted(card, clinic):
    first = lb.table(card).sql(ASKED).release(epsilon=1)
    again = lb.table(card).sql(ASKED).release(epsilon=1)
    assert first.record == again.record and problem_of(first.certificate) is None
    assert Ledger.open("visits.ledger").spent("visits").epsilon == 1
    engine = first.certificate["body"]["engine"]
    assert engine["name"] == "postgres"
    assert engine["version"].startswith(f"{clinic.server.version}.")
    assert "r2" in succeeded("query", "visits.toml", ASKED, "--epsilon", "1")
    assert "postgresql://" in succeeded("card", "check", "visits.toml")


def test_a_card_is_drafted_from_names_and_types(clinic, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = succeeded("card", "new", clinic.address, "--table", "public.visits", "--unit", "user_id")
    assert "visits.toml" in said
    text = (tmp_path / "visits.toml").read_text()
    assert 'table = "public.visits"' in text and text.count('type = "number"') == 1
    assert examined(tmp_path / "visits.toml").card is None  # the rest is for the steward


def test_public_tables_are_joined_on_the_same_server_only(clinic):
    address = f"{clinic.address}&table=places"
    table = private(clinic, public={"places": address})
    answer = table.sql(
        "SELECT place, count(*) FROM visits JOIN places USING (region) GROUP BY place"
    )
    assert [row["place"] for row in answer.release(epsilon=1).rows] == ["place 0", "place 1"]
    levels = table.levels("place", "region", public="places").release(epsilon=5_000)
    each = table.group_by("region").agg(n=lb.count()).release(epsilon=5_000)
    counts = {row.region: row.n for row in each}
    assert all(row.value == counts[row["region"]] for row in levels.level("region"))
    assert levels.value == sum(row.value for row in levels.level("place"))
    elsewhere = clinic.server.address()
    with clinic.server.connected(elsewhere) as connection:
        connection.execute("CREATE TABLE places (region text, place text)")
    for other, why in [
        (f"{elsewhere}&table=places", "another database"),
        (f"{clinic.address}&table=visits", "is the table itself"),
    ]:
        joined = private(clinic, public={"places": other})
        with pytest.raises(InvalidParameter, match=why):
            joined.sql("SELECT count(*) FROM visits JOIN places USING (region)").release(epsilon=1)
    with pytest.raises(InvalidParameter, match="is on duckdb, and the table on postgres"):
        private(clinic, public={"places": pyarrow.table({"region": ["r0"]})})


def test_types_are_read_as_they_are_stored(clinic):
    clinic.run(
        """
        CREATE DOMAIN code AS varchar(9); CREATE DOMAIN inner_code AS code;
        CREATE TYPE mood AS ENUM ('sad', 'glad');
        CREATE TABLE typed (who uuid, a smallint, b bigint, c real, d numeric, e char(5),
          f inner_code, g mood, h timestamptz, i timestamp, j boolean, k integer[], l json,
          m interval, n "char", "O o" date, p integer GENERATED ALWAYS AS (a * 2) STORED)
        """
    )
    found = columns_of(source_of(clinic.address, table='"public"."typed"'))
    assert found == {
        **dict.fromkeys(("who", "e", "f", "g"), "text"),
        **dict.fromkeys(("a", "b", "p"), "integer"),
        **dict.fromkeys(("c", "d"), "number"),
        **dict.fromkeys(("h", "i"), "timestamp"),
        "j": "boolean",
        "O o": "date",
    }
    clinic.run(
        "INSERT INTO typed SELECT md5('x')::uuid, 1, i, 'NaN', 'NaN', 'ab', 'x', 'sad', 'infinity',"
        " '-infinity', NULL, NULL, NULL, NULL, NULL, 'infinity' FROM generate_series(1, 3) AS g(i)"
    )
    table = lb.table(clinic.address, table="typed", unit="who", max_rows=9)
    for filtered, many in [
        ("e = 'ab' AND f = 'x' AND g = 'sad'", 3),
        ('c IS NULL AND d IS NULL AND h IS NULL AND i IS NULL AND "O o" IS NULL', 3),
        ("p = 2 AND b > 1", 2),
        ("who = '9dd4e461-268c-8034-f5c8-564e155c67a6'", 3),
    ]:
        keys, entries, _ = raw(table.where(filtered).agg(n=lb.count()))
        assert keys == [()] and entries["m1"] == [many * 2**20]


def test_columns_that_are_computed_as_they_are_read_are_left_out(clinic):
    if clinic.server.version < 18:
        pytest.skip("needs PostgreSQL 18")
    clinic.run(
        "CREATE TABLE virtual (who integer, x integer GENERATED ALWAYS AS (1 / who) VIRTUAL)"
    )
    assert columns_of(source_of(clinic.address, table="virtual")) == {"who": "integer"}


def test_partitions_and_heirs_count(clinic):
    clinic.run(
        """
        CREATE TABLE parted (LIKE visits) PARTITION BY LIST (region);
        CREATE TABLE parted_0 PARTITION OF parted FOR VALUES IN ('r0');
        CREATE TABLE parted_1 PARTITION OF parted DEFAULT;
        INSERT INTO parted SELECT * FROM visits;
        CREATE TABLE old (LIKE visits); CREATE TABLE new () INHERITS (old);
        INSERT INTO old SELECT * FROM visits WHERE cost < 30;
        INSERT INTO new SELECT * FROM visits WHERE cost >= 30;
        CREATE MATERIALIZED VIEW kept AS SELECT * FROM visits
        """
    )
    whole = raw(asked(private(clinic)))
    for table in ("parted", "old", "kept"):
        assert raw(asked(private(clinic, table))) == whole
    with pytest.raises(InvalidParameter, match="is the table itself"):
        parts = {"places": f"{clinic.address}&table=parted_0"}
        joined = private(clinic, "parted", public=parts)
        joined.sql("SELECT count(*) FROM parted JOIN places USING (region)").release(epsilon=1)


# ---------------------------------------------------------------- settings


def test_settings_are_ours_whatever_the_role_says(clinic):
    clinic.run(
        """
        CREATE SCHEMA evil;
        CREATE FUNCTION evil.plus(bigint, bigint) RETURNS bigint LANGUAGE sql AS 'SELECT 42';
        CREATE OPERATOR evil.+ (leftarg = bigint, rightarg = bigint, function = evil.plus);
        CREATE ROLE odd LOGIN; GRANT SELECT ON visits TO odd; GRANT USAGE ON SCHEMA evil TO odd;
        ALTER ROLE odd SET search_path = evil, pg_catalog, public;
        ALTER ROLE odd SET timezone = 'Asia/Kathmandu'; ALTER ROLE odd SET datestyle = 'SQL, DMY';
        ALTER ROLE odd SET transform_null_equals = on; ALTER ROLE odd SET jit = on;
        ALTER ROLE odd SET standard_conforming_strings = off;
        ALTER ROLE odd SET default_transaction_isolation = 'read committed'
        """
    )

    def question(who):
        rows = private(who).where(
            r"user_id + 1 < 12 AND region <> 'a\b' AND day > DATE '2024-02-01'"
        )
        return asked(rows)

    assert raw(question(by_role(clinic, "odd"))) == raw(question(clinic))


def test_texts_compare_by_their_bytes_in_any_locale(postgres):
    if not postgres.icu:
        pytest.skip("needs a PostgreSQL with ICU: Debian's")
    there = postgres.database("TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'de' LOCALE 'C'")
    with postgres.connected(there) as connection:
        nocase = "provider = icu, locale = 'und-u-ks-level2', deterministic = false"
        connection.execute(f"CREATE COLLATION nocase ({nocase})")
        connection.execute("CREATE TABLE t (who integer, x text COLLATE nocase, y text)")
        connection.execute("INSERT INTO t VALUES (1, 'a', 'Z'), (2, 'A', 'ä'), (3, 'b', 'a')")
    table = lb.table(there, table="t", unit="who", max_rows=1, keys={"x": ["a", "A", "b"]})
    assert raw(table.group_by("x").agg(n=lb.count()))[1]["m1"] == [2**20] * 3
    assert raw(table.where("y < 'b'").agg(n=lb.count()))[1]["m1"] == [2 * 2**20]
    assert raw(table.where("x = 'a'").agg(n=lb.count()))[1]["m1"] == [2**20]


def test_the_server_is_not_written_to(clinic):
    from lastbit.addresses import Address
    from lastbit.tables.backends.postgres.sources import transaction

    with transaction(Address.read(clinic.address)) as connection:
        assert connection.execute("SHOW transaction_read_only").fetchone() == ("on",)
        assert connection.execute("SHOW transaction_isolation").fetchone() == ("repeatable read",)
        with pytest.raises(Exception, match="read-only"):
            connection.execute("CREATE TABLE public.x (y integer)")


def test_no_cast_that_somebody_made_is_run(clinic):
    """The owner of an enumeration may make one, without being a superuser."""
    clinic.run(
        """
        CREATE TYPE spelled AS ENUM ('r0', 'r1', 'r2'); CREATE DOMAIN moved AS spelled;
        CREATE TABLE enumerated AS TABLE visits;
        ALTER TABLE enumerated ALTER region TYPE moved
          USING CASE WHEN region IN ('r0', 'r1', 'r2') THEN region::spelled::moved END;
        CREATE FUNCTION told(spelled) RETURNS text LANGUAGE plpgsql AS
          $$ BEGIN IF $1 = 'r1' THEN RAISE 'r1'; END IF; RETURN 'r0'; END $$;
        CREATE CAST (spelled AS text) WITH FUNCTION told(spelled)
        """
    )
    assert raw(asked(private(clinic, "enumerated"))) == raw(asked(private(clinic)))


# ---------------------------------------------------------------- fingerprints


def test_a_fingerprint_differs_if_a_row_does(clinic):
    clinic.run("CREATE TABLE moving AS SELECT * FROM visits")
    card = private(clinic, "moving").card
    seen = [printed.fingerprint(card)]
    assert printed.fingerprint(card) == seen[0]
    for change in (
        "INSERT INTO moving SELECT * FROM visits LIMIT 1",
        "UPDATE moving SET cost = cost + 1 WHERE user_id = 3",
        "DELETE FROM moving WHERE user_id = 4",
        "WITH x AS (DELETE FROM moving WHERE cost = 10 RETURNING *) INSERT INTO moving TABLE x",
        "ALTER TABLE moving ADD COLUMN further integer",
        "ALTER TABLE moving RENAME further TO aside; ALTER TABLE moving RENAME user_id TO further;"
        "ALTER TABLE moving RENAME aside TO user_id",
        "ALTER TABLE moving ADD COLUMN same integer DEFAULT 5",
        "ALTER TABLE moving DROP COLUMN same; ALTER TABLE moving ADD COLUMN same integer DEFAULT 6",
        "CREATE TYPE moods AS ENUM ('sad', 'fine'); ALTER TABLE moving ADD COLUMN mood moods",
        "ALTER TYPE moods RENAME VALUE 'sad' TO 'glad'",
    ):
        clinic.run(change)
        seen.append(printed.fingerprint(card))
    clinic.run("ANALYZE moving; CREATE ROLE narrow LOGIN")
    clinic.run("GRANT SELECT (user_id, region, cost, ctid, tableoid, xmin) ON moving TO narrow")
    narrow = private(by_role(clinic, "narrow"), "moving").card
    assert printed.fingerprint(narrow) == seen[-1]
    assert printed.fingerprint(card) == seen[-1]
    assert len(set(seen)) == len(seen)


def test_others_may_write_while_a_question_is_answered(card, clinic):
    """The fingerprint before and after, and the answer, are of one state."""
    answer = read_card(card)
    with engines.open_session(answer) as session:
        before = session.fingerprint(answer)
        clinic.run("INSERT INTO visits VALUES (98, 'r0', 1, '2024-01-01')")
        assert session.fingerprint(answer) == before
    assert printed.fingerprint(answer) != before
    clinic.run("DELETE FROM visits WHERE user_id > 90")


# ---------------------------------------------------------------- what is refused


REFUSED = {
    "CREATE VIEW seen AS SELECT * FROM visits": ("seen", "is a view"),
    "CREATE FOREIGN DATA WRAPPER w; CREATE SERVER s FOREIGN DATA WRAPPER w;"
    " CREATE FOREIGN TABLE far (user_id integer, region text, cost numeric) SERVER s": (
        "far",
        "is a view, or a foreign",
    ),
    "CREATE TABLE wide (user_id integer, region text, cost numeric) PARTITION BY LIST (region);"
    " CREATE FOREIGN TABLE wide_0 PARTITION OF wide DEFAULT SERVER s": ("wide", "on other servers"),
    "SELECT 1": ("nowhere", "is not in the database"),
    "SELECT 2": ('a.b."c', "is not a name of a table"),
    "CREATE TABLE twice (user_id integer, region text, cost numeric, COST numeric)".replace(
        "COST", '"COST"'
    ): ("twice", "is there twice|is not in the source"),
    "CREATE TABLE texts (user_id integer, region text, cost text)": ("texts", "text in the source"),
    "CREATE TABLE lists (user_id integer, region text, cost numeric[])": ("lists", "is of a type"),
    "CREATE TABLE lacking (user_id integer, region text)": ("lacking", "is not in the source"),
}


@pytest.mark.parametrize("made", REFUSED)
def test_what_cannot_be_read_is_refused_with_a_remedy_and_not_charged(made, card, clinic):
    clinic.run(made)
    table, why = REFUSED[made]
    text = card.read_text().replace('"public.visits"', repr(table))
    card.write_text(text, "utf-8")
    with pytest.raises(LastbitError, match=why) as caught:
        lb.table(card).sql(ASKED).release(epsilon=1)
    assert isinstance(caught.value, InvalidParameter) and caught.value.remedy
    assert Ledger.open("visits.ledger").spent("visits").epsilon == 0


def test_rights_and_row_security_are_told_and_not_charged(card, clinic):
    clinic.run(
        """
        CREATE ROLE reader LOGIN; CREATE SCHEMA closed; CREATE TABLE closed.visits AS TABLE visits;
        CREATE TABLE hidden AS TABLE visits; ALTER TABLE hidden ENABLE ROW LEVEL SECURITY;
        CREATE POLICY own ON hidden USING (user_id < 4); GRANT SELECT ON hidden TO reader;
        CREATE TABLE partly AS TABLE visits; GRANT SELECT (user_id, region) ON partly TO reader
        """
    )
    original = card.read_text().replace("postgres@", "reader@")
    for table, why in [
        ("public.visits", "may not be read by this user"),
        ("closed.visits", "may not be read by this user"),
        ("hidden", "row security"),
        ("partly", "may not be read by this user"),
    ]:
        card.write_text(original.replace("public.visits", table), "utf-8")
        with pytest.raises(InvalidParameter, match=why) as caught:
            lb.table(card).sql(ASKED).release(epsilon=1)
        assert caught.value.remedy
    assert Ledger.open("visits.ledger").spent("visits").epsilon == 0
    clinic.run("GRANT SELECT ON visits TO reader")
    assert raw(asked(private(by_role(clinic, "reader")))) == raw(asked(private(clinic)))
    clinic.run(
        "REVOKE SELECT ON visits FROM reader; GRANT SELECT"
        " (user_id, region, cost, ctid, tableoid, xmin) ON partly TO reader"
    )
    card.write_text(original.replace("public.visits", "partly"), "utf-8")
    lb.table(card).sql(ASKED).release(epsilon="0.1")


def test_servers_that_are_not_there_or_too_old(clinic, monkeypatch, postgres):
    from lastbit.tables.backends.postgres import sources

    for address, words, remedy in (
        ("postgresql://reader@127.0.0.1:1/clinic", "cannot be reached", "host and port"),
        (clinic.address.replace("/tests_", "/no_tests_"), "a database that is not there", "name"),
        (by_role(clinic, "nobody_of_this_name").address, "does not let you in", "pgpass"),
    ):
        with pytest.raises(InvalidParameter, match=words) as caught:
            private(SimpleNamespace(address=address))
        assert remedy in caught.value.remedy and caught.value.__cause__ is None
    latin = postgres.database("TEMPLATE template0 ENCODING 'LATIN1'")
    with pytest.raises(InvalidParameter, match="not in UTF-8"):
        private(SimpleNamespace(address=latin))
    monkeypatch.setattr(sources, "_OLDEST", 99)
    with pytest.raises(InvalidParameter, match="not PostgreSQL 99 or newer"):
        private(clinic)


def test_a_password_is_refused_wherever_it_is_written(card, clinic):
    with_password = clinic.address.replace("postgres@", f"postgres:{CANARY}@")
    seen = []
    for work in (
        lambda: private(SimpleNamespace(address=with_password)),
        lambda: lb.table(f"postgresql+psycopg://ada:{CANARY}@db/x", unit="x", max_rows=1),
        lambda: lb.table([with_password], table="visits", unit="x", max_rows=1),
    ):
        with pytest.raises(LastbitError) as caught:
            work()
        seen.append(str(caught.value))
    card.write_text(card.read_text().replace("postgres@", f"postgres:{CANARY}@"), "utf-8")
    seen.append(refused("query", "visits.toml", ASKED, "--epsilon", "1"))
    seen.append(refused("card", "new", with_password, "--table", "visits", "--out", "new.toml"))
    assert not any(CANARY in text for text in seen)
    assert all("password" in text for text in (seen[0], *seen[2:]))


@pytest.mark.parametrize(
    "expression",
    [
        *("lower(region)", "upper(region)", "trim(region)", "CAST(cost AS TEXT)"),
        *("CAST(region AS DOUBLE)", "CAST(region AS DATE)", "strftime(day, '%Y')"),
        *("region ILIKE 'a%'", "ln(cost)", "exp(cost)", "power(cost, 2)", "round(cost, 2)"),
        "cost % 2.5",
    ],
)
def test_what_cannot_be_computed_to_the_last_bit_is_refused_by_name(expression, clinic):
    question = private(clinic).where(f"({expression}) IS NOT NULL").agg(n=lb.count())
    with pytest.raises(InvalidParameter, match="PostgreSQL") as caught:
        raw(question)
    assert caught.value.remedy


# ---------------------------------------------------------------- what goes wrong on the way


@pytest.fixture
def alone(tmp_path, monkeypatch):
    """A server of its own, to be stopped."""
    server = started()
    monkeypatch.chdir(tmp_path)
    with server.connected(server.address()) as connection:
        connection.execute(VISITS)
    (tmp_path / "visits.toml").write_text(CARD.format(address=server.address()), "utf-8")
    yield server
    server.remove()


def test_a_server_that_stops_is_told_and_the_answer_can_be_had_later(alone, monkeypatch):

    real = vars(Session)["aggregates"]

    def stopped(*args, **more):
        alone.stop(signal.SIGQUIT)
        return real(*args, **more)

    table = lb.table("visits.toml")
    with monkeypatch.context() as patch:
        patch.setattr(Session, "aggregates", stopped)
        with pytest.raises(EngineFailed, match="the server stopped, or the connection was lost"):
            table.sql(ASKED).release(epsilon=1)
    books = Ledger.open("visits.ledger")
    assert books.spent("visits").epsilon == 1  # reserved: the failure may depend on the data
    with pytest.raises(InvalidParameter, match="cannot be reached"):
        table.sql(ASKED).release(epsilon=1)
    alone.start()
    table.sql(ASKED).release(epsilon=1)
    assert books.spent("visits").epsilon == 1


def test_ctrl_c_ends_the_statement_on_the_server_too(clinic):
    blocker, watcher = (clinic.server.connected(clinic.address) for _ in range(2))
    blocker.execute("BEGIN; LOCK TABLE visits IN ACCESS EXCLUSIVE MODE")

    def waiting():
        sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'lastbit'"
        return watcher.execute(f"{sql} AND wait_event_type = 'Lock'").fetchone()[0]

    def until(many):
        for _ in range(600):
            if waiting() == many:
                return True
            time.sleep(0.05)
        return False

    def interrupt():
        if until(1):
            signal.raise_signal(signal.SIGINT)

    interrupting = threading.Thread(target=interrupt, daemon=True)
    with blocker, watcher:
        interrupting.start()
        with pytest.raises(KeyboardInterrupt):
            columns_of(source_of(clinic.address, table="visits"))
        interrupting.join()
        assert until(0)


def test_limits_of_the_server_are_kept_and_told(clinic):
    clinic.run("CREATE ROLE hasty LOGIN; GRANT SELECT ON visits TO hasty")
    clinic.run("ALTER ROLE hasty SET lock_timeout = '100ms'")
    blocker = clinic.server.connected(clinic.address)
    blocker.execute("BEGIN; LOCK TABLE visits IN ACCESS EXCLUSIVE MODE")
    with pytest.raises(EngineFailed, match="holds a lock"):
        private(by_role(clinic, "hasty"))
    clinic.run(
        "ALTER ROLE hasty RESET lock_timeout; ALTER ROLE hasty SET statement_timeout = '200ms'"
    )
    with pytest.raises(EngineFailed, match="raise statement_timeout"):
        private(by_role(clinic, "hasty"))
    blocker.close()


def test_no_word_of_the_server_leaves(clinic, caplog, capfd, monkeypatch):
    caplog.set_level(logging.DEBUG)
    clinic.run(f"CREATE TABLE told AS SELECT user_id, '{CANARY}' AS region, cost FROM visits")
    question = asked(private(clinic, "told"))
    plan = planned(question.query, question.card, epsilon=1)
    real = vars(engines)["statement"]

    def stumbling(*args, **more):
        made = real(*args, **more)
        bad = "SELECT region::integer FROM public.told"
        return SimpleNamespace(sql=bad, sums=made.sums, bins=made.bins, distinct=made.distinct)

    monkeypatch.setattr(engines, "statement", stumbling)
    with pytest.raises(EngineFailed, match="could not run the statement") as caught:
        aggregates(question.query, question.card, plan.measures, secret=SECRET)
    seen = capfd.readouterr()
    assert CANARY not in "\n".join((told(caught.value), seen.out, seen.err, caplog.text))


# ---------------------------------------------------------------- arithmetic at its edges


def products_next_to_nothing():
    """Doubles whose product is a little above 2**-1075, and rounds there to a power of two."""
    for seed in range(1, 40):
        first = 2**52 + seed * 110_000_000_019_937 % 2**52
        second = 2**105 // first + 1
        if 2**105 < first * second <= 2**105 + 2**52:
            for up, down in ((-590, -590), (-652, -528), (-1000, -180)):
                for nudged in (second - 1, second, second + 1):
                    yield float(first) * 2.0**up, float(nudged) * 2.0**down


def test_products_vanish_just_where_they_do_by_ieee_754(clinic):
    from lastbit.tables.compile.postgres import Postgres

    pairs = list(products_next_to_nothing())
    values = ", ".join(f"('{a!r}'::float8, '{b!r}'::float8)" for a, b in pairs)

    def run(dialect):
        sql = f"SELECT {dialect.number('*', 'a', 'b')} FROM (VALUES {values}) AS v(a, b)"
        return [row[0] for row in clinic.run(sql)]

    expected = [a * b for a, b in pairs]
    assert {0.0, 5e-324} <= set(expected) and len(pairs) > 50
    assert run(Postgres()) == expected

    class Rounded(Postgres):  # decides by the rounded product alone
        def _significand(self, x):
            return "0"

    assert run(Rounded()) != expected


def test_sums_of_128_bits_become_the_doubles_that_duckdb_makes(clinic):
    from lastbit.tables.compile.duckdb import DUCKDB
    from lastbit.tables.compile.postgres import POSTGRES
    from tests.tables.connecting import connected

    wholes = [
        sign * (2**power + small)
        for power in (0, 52, 53, 54, 62, 63, 64, 65, 80, 104)
        for small in (-3, -1, 0, 1, 2, 3, 2**40 + 1, 3 * 2**30 - 1)
        for sign in (1, -1)
    ]
    listed = ", ".join(f"({whole})" for whole in wholes)
    rows = f"SELECT x::numeric FROM (VALUES {listed}) AS v(x)"
    sql = f"SELECT {POSTGRES.total_as('x', 'number')} FROM ({rows}) AS v"
    found = [row[0] for row in clinic.run(sql)]
    with connected() as duckdb:
        cast = DUCKDB.total_as("CAST(x AS HUGEINT)", "number")
        expected = duckdb.execute(f"SELECT {cast} FROM (VALUES {listed}) AS v(x)").fetchall()
    assert found == [row[0] for row in expected]
