"""The same question about the same rows, wherever they are: one plan, the same integers,
certificates that are accepted; and of what fails, not a value.
"""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from pyarrow import parquet

from lastbit.checker.dispatch import problem_of
from lastbit.tables.backends import engines
from lastbit.tables.card.read import read_card
from lastbit.tables.plan.plan import planned
from lastbit.tables.sql.statement import parsed
from tests.cli.running import lastbit
from tests.engines.batches import plain
from tests.engines.running import Postgres, arrow
from tests.engines.values import sources
from tests.kernel.unsealing import aggregates
from tests.release import canaries
from tests.release.canaries import (
    ALL,
    COLUMNS,
    FOUND,
    ask,
    fails,
    planted,
    write_card,
    write_duckdb,
    write_parquet,
)

canary_folder = canaries.canary_folder
FILES = ('"visits.csv"', '"visits.parquet"', '{duckdb = "visits.duckdb", table = "visits"}')
TYPES = ("bigint", "text", "text", "double", "bigint", "date", "timestamp")


@pytest.fixture(scope="module", params=["postgres", "spark"])
def server(request):
    return request.param, request.getfixturevalue(request.param)


@pytest.fixture
def source(server, folder):
    """How a card names the rows on this server."""
    name, there = server
    write_parquet(folder / "visits.parquet")
    write_duckdb(folder / "visits.duckdb")
    if name == "spark":
        return f'"spark:{folder}/visits.parquet"'
    runner = Postgres(there)
    runner.make("visits", dict(zip(COLUMNS, TYPES, strict=True)), planted())
    runner.close()
    return f'"{runner.address}"\ntable = "public.visits"'


@pytest.mark.parametrize("sql", [ALL, FOUND])
def test_one_plan_and_the_same_integers(source, folder, sql):
    found = []
    price = {"epsilon": 1} | ({"delta": "1e-6"} if sql == FOUND else {})
    for place in (*FILES, source):
        write_card(folder, place)
        card = read_card("visits.toml")
        query = parsed(sql, card)
        plan = planned(query, card, **price)
        raw = aggregates(query, card, plan.measures, secret="a secret")
        found.append((plan.digest, plain(raw)))
    assert found[1:] == found[:-1]


@pytest.mark.parametrize("sql", [ALL, FOUND])
def test_certificates_are_accepted(server, source, folder, sql):
    write_card(folder, source)
    answer = ask(sql)
    answer.save("answer.json")
    assert answer.certificate["body"]["engine"]["name"] == server[0]
    assert problem_of(answer.record) is None
    if sql == FOUND:  # the other has few candidates for medians, for speed
        assert lastbit("check", "answer.json").exit_code == 0
    assert ask(sql).record == answer.record  # asked again, it is the recorded one


HOSTILE = """
[table]
name = "t"
source = {source}
neighbours = "add-remove"
[unit]
column = "i"
max_rows = 1
max_groups = 2
[budget]
epsilon = 1
delta = 1e-6
{columns}
"""
READ = {
    "integer": ("i", "s_bigint", "s_smallint", "s_integer", "s_decimal", "s_whole_decimal"),
    "number": ("s_double", "s_real"),
    "text": ("s_text",),
    "boolean": ("s_boolean",),
    "date": ("s_date",),
    "timestamp": ("s_timestamp", "s_timestamptz"),
}
ABOUT_ALL = (
    "SELECT s_text, COUNT(*) AS n, COUNT(DISTINCT i) AS units, COUNT(DISTINCT s_date) AS days, "
    + ", ".join(f"SUM(clamp({n}, -9, 9)) AS {n}" for n in (*READ["integer"][1:], *READ["number"]))
    + ", MEDIAN(clamp(s_double, -9, 9)) AS middle, SUM(CASE WHEN s_boolean THEN 1 ELSE 0 END) AS b,"
    " SUM(hour(s_timestamp)) AS h, SUM(minute(s_timestamptz)) AS m, SUM(day(s_date)) AS d"
    " FROM t WHERE s_double * s_double / s_real > -1 OR s_bigint + s_integer < s_whole_decimal"
    " GROUP BY s_text"
)


def test_hostile_rows_through_the_whole_backend(server, folder):
    """Of every type of a source, with its extreme values; in Parquet by DuckDB, and there."""
    name, there = server
    types, rows = sources()
    parquet.write_table(arrow(types, rows), "t.parquet")
    columns = "\n".join(f'[columns.{n}]\ntype = "{k}"' for k, own in READ.items() for n in own)
    place = f'"spark:{folder}/t.parquet"'
    if name == "postgres":
        runner = Postgres(there)
        runner.make("t", types, rows)
        runner.close()
        place = f'"{runner.address}"\ntable = "public.t"'
    found = []
    for source in ('"t.parquet"', place):
        Path("t.toml").write_text(HOSTILE.format(source=source, columns=columns), "utf-8")
        card = read_card("t.toml")
        query = parsed(ABOUT_ALL, card)
        measures = planned(query, card, epsilon=1, delta="1e-6").measures
        found.append(plain(aggregates(query, card, measures, secret="a secret")))
    assert found[0] == found[1] and len(found[0][0]) > 20


STUMBLING = ("CAST(note AS BIGINT)", "CAST(note AS DATE)", "age / (patient - patient), note")


@pytest.mark.parametrize("words", STUMBLING)
def test_what_the_engine_says_of_a_value_is_not_heard(
    server, source, folder, words, monkeypatch, capfd, caplog
):
    """A statement that stumbles, as none that we write does."""
    write_card(folder, source)
    real = engines.statement

    def stumbling(*given, **how):
        found = real(*given, **how)
        place = re.search(r"FROM (\S+?)\)?\n?[,)\s]", found.sql)[1]
        return replace(found, sql=f"SELECT {words} FROM {place}")

    monkeypatch.setattr(engines, "statement", stumbling)
    monkeypatch.setattr("lastbit.release.release.rehearse", lambda *_: None)
    fails(ask, capfd, caplog)
    assert Path("visits.ledger").exists()
