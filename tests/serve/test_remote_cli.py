"""`lastbit query https://...` and `lastbit budget https://...` against the whole server."""

import json
from pathlib import Path

import pytest

import lastbit as lb
from lastbit.errors import ServerFailed
from lastbit.release import RemoteTable
from lastbit.release.connection import Reply, Server
from tests.cli.running import lastbit, read, refused, succeeded
from tests.serve.asking import asking

SQL = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with asking(tmp_path_factory.mktemp("remote")) as found:
        yield found


@pytest.fixture
def table(server, monkeypatch):
    """The address of the table, with the analyst's token in the environment."""
    monkeypatch.setenv("LASTBIT_TOKEN", server.tokens["analyst"])
    return f"{server.address}/visits"


def test_a_question_is_asked_paid_and_written(table, server, tmp_path):
    out, page = tmp_path / "answer.json", tmp_path / "answer.html"
    text = succeeded(
        "query", table, SQL, "--epsilon", "1", "--out", str(out), "--report", str(page)
    )
    assert "ε = 1" in text and "north" in text and "allowance" in text
    assert "ACCEPTED" in succeeded("check", str(out))
    assert "<svg" in page.read_text("utf-8")
    again = read("query", table, SQL, "--epsilon", "1")
    assert again["charged"] is False
    assert again["answer"] == json.loads(out.read_text("utf-8"))
    assert server.tokens["analyst"] not in text


def test_within_finds_the_price_first(table):
    text = succeeded("query", table, SQL, "--within", "100", "--explain")
    assert "not yet paid" in text and "left after it" in text
    assert read("query", table, SQL, "--within", "100", "--explain")["cost"]["epsilon"] != "0"


def test_the_budget_is_shown(table):
    text = succeeded("budget", table)
    assert "patients" in text and "left of 100" in text and "allowance" in text
    said = read("budget", table)
    assert [one["account"] for one in said["accounts"]] == ["patients"]
    assert [one["principal"] for one in said["allowances"]] == ["ana"]


def test_an_answer_that_is_paid_for_is_shown_whatever_the_budget_says(table, monkeypatch):
    def fails(_: object) -> dict:
        raise ServerFailed("gone")

    monkeypatch.setattr(RemoteTable, "budget", fails)
    assert "north" in succeeded("query", table, SQL, "--epsilon", "1")
    monkeypatch.setattr(RemoteTable, "budget", lambda _: {"accounts": [{}], "allowances": []})
    assert "north" in succeeded("query", table, SQL, "--epsilon", "1")
    assert "does not say what is left" in refused("budget", table)


def test_amounts_that_would_take_for_ever_are_refused(table, monkeypatch):
    real = Server.good

    def good(server: Server, reply: Reply, *statuses: int) -> dict:
        found = real(server, reply, *statuses)
        if "allowances" in found:
            found["accounts"][0]["spent"]["epsilon"] = "1e999999999"
        return found

    monkeypatch.setattr(Server, "good", good)
    assert "does not say what is left" in refused("budget", table)


def test_a_token_comes_from_a_file_of_ones_own(server, tmp_path, monkeypatch):
    monkeypatch.delenv("LASTBIT_TOKEN", raising=False)
    table, file = f"{server.address}/visits", tmp_path / "token"
    assert "no token is given" in lastbit("budget", table).stderr
    file.write_text(server.tokens["analyst"] + "\n")
    file.chmod(0o644)
    assert "can be read by others" in refused("budget", table, "--token-file", str(file))
    file.chmod(0o600)
    assert "patients" in succeeded("budget", table, "--token-file", str(file))
    words = refused(
        "query", table, SQL, "--epsilon", "1", "--token-file", str(file), "--out", "x.txt"
    )
    assert "no known kind" in words
    token = tmp_path / "token.csv"
    file.rename(token)
    words = refused(
        "query", table, SQL, "--epsilon", "1", "--token-file", str(token), "--out", str(token)
    )
    assert "the token, which must not be written over" in words
    assert "cannot be read" in refused("budget", table, "--token-file", str(tmp_path / "none"))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--made-up"], "is not for tables of a server"),
        (["--print-sql"], "is not for tables of a server"),
        (["--kept"], "is not for tables of a server"),
        (["--no-intervals"], "is not for tables of a server"),
        (["--out", "answer.txt"], "no known kind"),
    ],
)
def test_what_is_not_for_servers_is_refused(table, more, words):
    assert words in refused("query", table, SQL, "--epsilon", "1", *more)


def test_what_is_for_servers_is_refused_elsewhere(tmp_path):
    card = str(tmp_path / "visits.toml")
    words = refused("query", card, SQL, "--epsilon", "1", "--token-file", "x")
    assert "is for https:// addresses" in words
    assert "not encrypted" in refused("budget", "http://stats.example.org/visits")


def test_refusals_of_the_server_are_told(table):
    before = read("budget", table)
    assert "is left. Nothing was charged" in refused("query", table, SQL, "--epsilon", "1000")
    unknown = "SELECT COUNT(age) AS a FROM visits"
    assert 'No column "age"' in refused("query", table, unknown, "--epsilon", "1")
    assert read("budget", table) == before


def test_python_asks_the_same(table, server):
    found = lb.table(table).group_by("region").agg(n=lb.count())
    found.release(epsilon=1)
    assert "on record" in found.explain(epsilon=1)
    answer = found.release(epsilon=1)
    assert not answer.charged and answer.keys == ("region",)
    assert server.ledger.problems() == [] and Path(str(server.ledger.path)).exists()
