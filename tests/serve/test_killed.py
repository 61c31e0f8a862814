"""kill -9 of server and workers at random moments: nothing is lost, nothing is free."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from lastbit.ledger import Ledger
from lastbit.serve.store import Store
from tests.serve.desks import written

ROOT = Path(__file__).parents[2]
A_ROUND = 4  # questions, and kills: three of a worker, one of the server


def started(folder: Path, questions: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.serve.killing", str(folder), str(questions)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def children(pid: int, module: str) -> Iterator[int]:
    """Its processes that run this module."""
    try:
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for child in map(int, found):
            if module.encode() in Path(f"/proc/{child}/cmdline").read_bytes():
                yield child
    except OSError:
        return


def killed(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def one_round(folder: Path, questions: int, choice: random.Random) -> int:
    """How many kills: of workers and planners, then of the server, whose children end with it."""
    kills = 0
    with started(folder, questions) as server:
        assert server.stdout is not None
        if choice.random() < 0.9:
            server.stdout.readline()
        for _ in range(A_ROUND - 1):
            time.sleep(choice.random() * 0.7)
            kind = "answering" if choice.random() < 0.8 else "planning"
            for child in list(children(server.pid, f"lastbit.serve.tasks\0{kind}"))[:1]:
                kills += killed(child)
        time.sleep(choice.random() * 0.9)
        orphans = list(children(server.pid, "lastbit.serve"))
        kills += killed(server.pid)
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{pid}").exists() for pid in orphans):
        assert time.monotonic() < deadline, "a child outlives its server"
        time.sleep(0.02)
    return kills


def check_books(folder: Path, questions: int) -> dict[str, int]:
    """What was noted is so; each question was charged once, and is answered or closed."""
    ledger = Ledger.existing(folder / "hospital.ledger")
    assert ledger.problems() == []
    entries = ledger.entries("patients")
    paid = {entry.hash: entry for entry in entries if entry.kind == "reserved"}
    closed = {e.reservation: e for e in entries if e.kind in ("settled", "voided")}
    assert len(paid) == questions == ledger.spent("patients").epsilon
    assert set(closed) == set(paid) and ledger.unanswered("patients") == ()
    rows = Store(folder / "state").connection().execute("SELECT * FROM jobs").fetchall()
    jobs = {row["id"]: row for row in rows}
    assert len(jobs) == questions == len({row["reservation"] for row in rows})
    for row in rows:
        closing = closed[row["reservation"]]
        wanted = (
            ("answered", closing.sequence) if closing.kind == "settled" else ("no answer", None)
        )
        assert (row["state"], row["entry"]) == wanted
    for line in (folder / "notes").read_text().splitlines():
        _, id, state, entry = line.split()
        assert jobs[id]["entry"] == (int(entry) or None) or state == "taken"
    return {kind: sum(e.kind == kind for e in closed.values()) for kind in ("settled", "voided")}


def test_killed_at_random_moments_nothing_is_lost_and_nothing_is_free(tmp_path, extent):
    written(tmp_path, budget="epsilon = 10000", allowance="10000")
    choice, kills, questions = random.Random(extent.name), 0, 0
    while kills < extent.number(6, 110):
        questions += A_ROUND
        kills += one_round(tmp_path, questions, choice)
    with started(tmp_path, questions) as server:
        assert server.stdout is not None and "done" in server.stdout.read()
    found = check_books(tmp_path, questions)
    assert found["settled"] and sum(found.values()) == questions
