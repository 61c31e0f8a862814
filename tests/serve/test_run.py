"""A server's life as a process: start, log, health, signals, backup and restore."""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import stat
import time
import urllib.error
import urllib.request
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from lastbit.ledger import Ledger
from lastbit.ledger.limits import Limit
from lastbit.ledger.safekeeping import restored
from lastbit.serve.identity import Gate
from lastbit.serve.pages.signing import trouble
from lastbit.serve.run import _logging
from lastbit.serve.settings import Settings
from lastbit.serve.store import Store
from tests.cli.running import refused, succeeded
from tests.serve.commands import Process, hospital, running

QUESTION = {"sql": "SELECT COUNT(*) AS n FROM visits WHERE age < {}", "epsilon": "0.1"}
QUESTION_OF_ALL = {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": "0.1"}
SERVE = ("serve", "visits.toml", "--port", "0", "--slot", "3")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    hospital(tmp_path)
    return tmp_path


def gate_of(folder: Path) -> Gate:
    settings = Settings(cards=(folder / "visits.toml",), state=folder / "visits.serve")
    return Gate(Store(settings.state), Ledger.existing(folder / "visits.ledger"), settings)


def token_of(folder: Path, name: str = "sofia") -> str:
    """A token of a steward, who is added if there is none yet."""
    gate = gate_of(folder)
    if gate.ledger.principal(name) is None:
        gate.ledger.set_principal(name, "steward", by=name)
    return gate.token_made(name, name="test", days=1)[0]


def call(server: Process, path: str, token: str = "", data: Any = None) -> tuple[int, Any]:
    request = urllib.request.Request(
        f"{server.address}{path}",
        data=None if data is None else json.dumps(data).encode(),
        headers={"Content-Type": "application/json"}
        | ({"Authorization": f"Bearer {token}"} if token else {}),
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as found:
            status, body = found.status, found.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            status, body = error.code, error.read().decode()
    return status, json.loads(body) if body.startswith(("{", "[")) else body


def asked(server: Process, token: str, age: int) -> Any:
    question = {**QUESTION, "sql": QUESTION["sql"].format(age)}
    status, job = call(server, "/api/v1/tables/visits/questions", token, question)
    assert status == 202, job
    return job


def test_a_first_start_a_second_and_the_log(folder):
    with running(folder, *SERVE) as server:
        text = server.until("/link/")
        assert "Accepted as the first version of the data: visits" in text
        assert len(server.links) == 1 and server.links[0].startswith(f"{server.address}/link/")
        for path in (Path("visits.serve"), *Path().glob("visits.serve/*.*")):
            assert stat.S_IMODE(os.stat(path).st_mode) & 0o077 == 0, path
        assert call(server, "/healthz?secret=1") == (200, "ok\n")
        assert call(server, "/link/guess")[0] == 404
        assert "in use by another server" in refused(*SERVE)
        port = server.address.rpartition(":")[2]
        taken = refused("serve", "visits.toml", "--state", "other", "--port", port)
        assert "is in use; pass another --port" in taken
        again = succeeded("serve", "visits.toml", "--link", "sofia")  # there is no steward yet
        assert again.startswith(f"{server.address}/link/")
        assert server.ended() == 0
        assert "ended" in server.text
        log = [line for line in server.text.splitlines() if "GET" in line]
        assert any(line.endswith("GET /healthz 200") for line in log)
        assert "secret" not in server.text and "guess" not in server.text
    kinds = [entry.words or "" for entry in Ledger.existing("visits.ledger").entries("visits")]
    assert sum("data" in words for words in kinds) == 1  # on record
    token_of(folder)
    with running(folder, *SERVE) as server:
        text = server.until("--link NAME")
        assert "Accepted" not in text and "/link/" not in text
        assert server.ended(signal.SIGINT) == 0
    assert "is not a user" in refused("serve", "visits.toml", "--link", "mallory")
    assert "/link/" in succeeded("serve", "visits.toml", "--link", "sofia")


@pytest.mark.evidence
def test_data_of_a_ledger_with_users_wait_for_a_steward(folder):
    Ledger.open("visits.ledger").set_principal("sofia", "steward", by="sofia")
    with running(folder, *SERVE) as server:
        assert "No version of the data of visits has been accepted" in server.until("--link NAME")
        status, problem = call(
            server, "/api/v1/tables/visits/questions", token_of(folder), QUESTION_OF_ALL
        )
        assert status == 409, problem
    assert Ledger.existing("visits.ledger").accepted_data("visits", "visits") is None


def test_a_unix_socket_is_for_its_group_and_a_dead_one_is_replaced(folder):
    words = ("serve", "visits.toml", "--socket", "s", "--origin", "https://stats.example.org")
    left = socket.socket(socket.AF_UNIX)
    left.bind("s")
    left.close()
    with running(folder, *words) as server:
        server.until("/link/")
        assert stat.S_IMODE(os.stat("s").st_mode) == 0o660
        with socket.socket(socket.AF_UNIX) as client:
            client.connect("s")
            client.sendall(b"GET /healthz HTTP/1.1\r\nHost: stats.example.org\r\n\r\n")
            assert client.recv(1000).startswith(b"HTTP/1.1 200")
        assert "s is in use" in refused(*words, "--state", "other")
        assert server.ended() == 0
    assert not Path("s").exists()
    Path("s").write_text("mine")
    assert "s is in use" in refused(*words)
    assert Path("s").read_text() == "mine"


def test_what_runs_may_end_and_what_waits_waits_for_the_next_start(folder):
    with running(folder, *SERVE) as server:
        server.until("/link/")
        token = token_of(folder)
        jobs = [asked(server, token, age) for age in (30, 40, 50)]
        while call(server, f"/api/v1/jobs/{jobs[0]['id']}", token)[1]["state"] == "waiting":
            time.sleep(0.05)
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        assert call(server, "/healthz") == (503, "stopping\n")  # and pages are still shown
        place = "/api/v1/tables/visits/questions"
        assert call(server, place, token, QUESTION_OF_ALL)[0] == 503
        assert server.ended(by=None) == 0
    assert len(Ledger.existing("visits.ledger").unanswered("visits")) in (1, 2)
    with running(folder, *SERVE) as server:
        server.until("--link NAME")
        for job in jobs:
            state = answered(server, token, job["id"])
            assert state["state"] == "answered"
    ledger = Ledger.existing("visits.ledger")
    assert ledger.problems() == [] and ledger.unanswered("visits") == ()
    assert str(ledger.spent("visits").epsilon) == "3/10"


def answered(server: Process, token: str, job: str) -> Any:
    end = time.monotonic() + 60
    while True:
        status, found = call(server, f"/api/v1/jobs/{job}", token)
        assert status == 200, found
        if found["state"] in ("answered", "no answer", "refused"):
            return found
        assert time.monotonic() < end, found
        time.sleep(0.3)


@pytest.mark.evidence
def test_a_second_signal_ends_it_at_once_and_nothing_is_lost(folder):
    with running(folder, "serve", "visits.toml", "--port", "0", "--slot", "30") as server:
        server.until("/link/")
        token = token_of(folder)
        job = asked(server, token, 30)
        time.sleep(1)
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        assert server.process.poll() is None
        assert server.ended(signal.SIGTERM) == 128 + signal.SIGTERM
    with running(folder, *SERVE) as server:
        server.until("--link NAME")
        assert answered(server, token, job["id"])["state"] == "answered"
    assert str(Ledger.existing("visits.ledger").spent("visits").epsilon) == "1/10"


@pytest.mark.evidence
def test_backup_while_it_runs_and_restore(folder):
    """The ledger alone brings back users, allowances and answers; the state folder may be lost."""
    with running(folder, *SERVE) as server:
        server.until("/link/")
        token = token_of(folder)
        ledger = Ledger.existing("visits.ledger")
        ledger.set_principal("ana", "analyst", by="sofia")
        ledger.set_allowance("visits", "ana", Limit(epsilon=Fraction(1)), by="sofia")
        job = answered(server, token, asked(server, token, 30)["id"])
        succeeded("ledger", "backup", "visits.ledger", "copy.ledger")
        later = answered(server, token, asked(server, token, 40)["id"])
        assert server.ended() == 0
    lost = Ledger.existing("visits.ledger").entry(later["entry"]).hash
    for path in (*folder.glob("visits.serve/*"), folder / "visits.ledger"):
        path.unlink()
    assert lost[:12] in refused("ledger", "restore", "copy.ledger", "visits.ledger", "--head", lost)
    restored("copy.ledger", "visits.ledger")
    with running(folder, *SERVE) as server:
        server.until("--link NAME")
        assert call(server, "/api/v1/tables", token)[0] == 401  # of the state that is lost
        fresh = token_of(folder)
        status, found = call(server, f"/api/v1/answers/{job['entry']}", fresh)
        assert status == 200 and len(found["rows"]) == 1
        assert asked(server, fresh, 30)["cost"] is None  # on record
        assert asked(server, fresh, 40)["cost"] is not None  # after the copy: charged once more
    (ana,) = (one for one in Ledger.existing("visits.ledger").principals() if one.name == "ana")
    assert ana.role == "analyst"


def test_the_log_has_one_line_for_each_thing_and_no_words_of_errors():
    lines: list[str] = []
    with _logging(lines.append):
        logging.getLogger("lastbit.serve").info("ana asks: %s", "SELECT\n2026 \x1b[31m\u202e1")
        try:
            raise ValueError("a value")
        except ValueError:
            logging.getLogger("uvicorn.error").exception("Exception in %s\nmore", "a value")
    assert [line.partition("Z ")[2] for line in lines] == [
        "ana asks: SELECT 2026 ?[31m?1",
        "error: uvicorn.error: Exception in %s ValueError",
    ]


def test_health_says_what_is_wrong_in_a_word(folder, monkeypatch):
    Ledger.open("visits.ledger")
    gate = gate_of(folder)
    assert trouble(gate) is None
    Path("visits.ledger").rename("away.ledger")
    assert trouble(gate) == "ledger"
    full = os.statvfs_result((4096, 4096, 10, 0, 0, 0, 0, 0, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda _: full)
    assert trouble(gate) == "disk"
    gate.store.connection().execute("DROP TABLE slots")
    assert trouble(gate) == "store"
