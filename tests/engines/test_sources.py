"""The same question about the same rows, wherever they are: one plan, the same integers,
certificates that are accepted; and of what fails, not a value.
"""

import re
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

from lastbit.checker.dispatch import problem_of
from lastbit.release import release
from lastbit.tables.backends.engines import aggregates
from lastbit.tables.card.read import read_card
from lastbit.tables.plan.plan import planned
from lastbit.tables.sql.statement import parsed
from tests.cli.running import lastbit
from tests.engines.batches import plain
from tests.engines.running import Postgres
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


STUMBLING = ("CAST(note AS BIGINT)", "CAST(note AS DATE)", "age / (patient - patient), note")


@pytest.mark.parametrize("words", STUMBLING)
def test_what_the_engine_says_of_a_value_is_not_heard(
    server, source, folder, words, monkeypatch, capfd, caplog
):
    """A statement that stumbles, as none that we write does."""
    write_card(folder, source)
    engine = import_module(f"lastbit.tables.backends.{server[0]}.engine")
    real = engine.statement

    def stumbling(*given, **how):
        found = real(*given, **how)
        place = re.search(r"FROM (\S+?)\)?\n?[,)\s]", found.sql)[1]
        return replace(found, sql=f"SELECT {words} FROM {place}")

    monkeypatch.setattr(engine, "statement", stumbling)
    monkeypatch.setattr(release, "rehearse", lambda *_: None)
    fails(ask, capfd, caplog)
    assert Path("visits.ledger").exists()
