"""Fifty analysts at one server for ten minutes: previews, questions and answers, on loopback.

    python bench/serve.py                            50 analysts, 10 minutes
    python bench/serve.py --analysts 10 --minutes 1  a quick look

`lastbit serve` runs as its users run it, in processes of its own; the analysts are one process
beside it, on the same machine. Each has a token and an allowance, previews another question every
three seconds, as an editor does while one types, pays for one about every 75 seconds, waits for it,
and reads the answer; one in four questions was asked before. In the end the books are compared with
what the analysts were told: each 202 with a price is one charge, and no other charge is there.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
from rich.console import Console
from rich.table import Table

from lastbit.ledger import Ledger, Limit
from lastbit.release import accept_data
from lastbit.serve.identity import Gate
from lastbit.serve.settings import Settings
from lastbit.serve.store import Store
from lastbit.tables import read_card

PREVIEW_EVERY, ASK_EVERY, PRICE, P99 = 3.0, 75.0, Fraction(1, 10), 0.2
ROWS = 1_000_000
CARD = """
[table]
name = "visits"
source = "visits.parquet"
neighbours = "add-remove"
rows = 1000000
[unit]
column = "patient"
max_rows = 5
[budget]
epsilon = 1000
[columns.patient]
type = "integer"
[columns.region]
type = "text"
keys = ["east", "north", "south", "west"]
[columns.cost]
type = "number"
bounds = [0, 1000]
"""
FORMS = (
    "SELECT COUNT(*) AS n FROM visits WHERE cost < {n}",
    "SELECT region, COUNT(*) AS n FROM visits WHERE cost < {n} GROUP BY region",
    "SELECT region, COUNT(*) AS n, AVG(cost) AS mean FROM visits WHERE cost > {n} GROUP BY region",
    "SELECT AVG(cost) AS mean, COUNT(DISTINCT patient) AS units FROM visits WHERE cost > {n}",
)


class Client:
    """One connection that is kept, as browsers and programs keep theirs."""

    def __init__(self, port: int, token: str) -> None:
        self.port, self.token = port, token
        self.streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def call(
        self, method: str, path: str, data: Any = None, **headers: str
    ) -> tuple[int, Any, float]:
        """Status, JSON and seconds."""
        body = b"" if data is None else json.dumps(data).encode()
        said = {"Host": f"127.0.0.1:{self.port}", "Authorization": f"Bearer {self.token}"}
        said |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
        said |= {name.replace("_", "-"): value for name, value in headers.items()}
        lines = [
            f"{method} /api/v1{path} HTTP/1.1",
            *(f"{n}: {v}" for n, v in said.items()),
            "",
            "",
        ]
        begin = time.perf_counter()
        for last in (False, True):  # a connection that was idle may have been closed
            try:
                if self.streams is None:
                    self.streams = await asyncio.open_connection("127.0.0.1", self.port)
                reader, writer = self.streams
                writer.write("\r\n".join(lines).encode() + body)
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                length = re.search(r"content-length: (\d+)", head.lower())
                text = await reader.readexactly(int(length[1]) if length else 0)
                break
            except (ConnectionError, asyncio.IncompleteReadError):
                self.streams = None
                if last:
                    raise
        seconds = time.perf_counter() - begin
        return int(head.split()[1]), json.loads(text or "null"), seconds


class Told:
    """What all analysts were told."""

    def __init__(self) -> None:
        self.first = 0.0
        self.previews: list[float] = []
        self.statuses: Counter[str] = Counter()
        self.paid: Counter[str] = Counter()
        self.states: Counter[str] = Counter()
        self.slots: Counter[int | None] = Counter()


async def analyst(
    number: int, client: Client, end: float, told: Told, choice: random.Random
) -> None:
    """Types, pays, waits, reads; until the end."""
    await asyncio.sleep(choice.random() * PREVIEW_EVERY)
    pay_at = time.monotonic() + choice.random() * ASK_EVERY
    count = 0
    while time.monotonic() < end:
        form = choice.choice(FORMS)
        count += 1
        shared = choice.random() < 0.25
        n = choice.randrange(20) if shared else 1000 * number + count
        question = {"sql": form.format(n=n), "epsilon": str(PRICE)}
        status, _, seconds = await client.call("POST", "/tables/visits/preview", question)
        told.previews.append(seconds)
        told.statuses[f"preview {status}"] += 1
        if time.monotonic() > pay_at:
            pay_at += ASK_EVERY
            await paid(client, question, f"{number}-{count}", told)
        await asyncio.sleep(PREVIEW_EVERY * (0.5 + choice.random()))


async def paid(client: Client, question: Any, key: str, told: Told) -> None:
    """A question, until its answer has appeared."""
    path = "/tables/visits/questions"
    status, job, _ = await client.call("POST", path, question, Idempotency_Key=key)
    told.statuses[f"question {status}"] += 1
    if status != 202:
        return
    if job["cost"] is not None:
        told.paid[job["id"]] += 1
    while job["state"] in ("waiting", "running"):
        await asyncio.sleep(0.5)
        _, job, _ = await client.call("GET", f"/jobs/{job['id']}")
    told.states[job["state"]] += 1
    told.slots[job["slots"]] += 1
    if job["entry"] is not None:
        status, _, _ = await client.call("GET", f"/answers/{job['entry']}")
        told.statuses[f"answer {status}"] += 1


def prepared(folder: Path, analysts: int) -> list[str]:
    """Table, card, ledger, and a token for each analyst."""
    duckdb.sql(
        f"""COPY (SELECT range // 4 AS patient, (range * 7919 % 100003) / 100.0 AS cost,
        ['east', 'north', 'south', 'west'][range % 4 + 1] AS region FROM range({ROWS}))
        TO '{folder}/visits.parquet'"""
    )
    (folder / "visits.toml").write_text(CARD, "utf-8")
    card = read_card(folder / "visits.toml")
    accept_data(card)
    ledger = Ledger.existing(str(card.ledger))
    ledger.set_principal("stella", "steward", by="stella")
    settings = Settings(cards=(folder / "visits.toml",), state=folder / "state")
    gate = Gate(Store(settings.state), ledger, settings)
    tokens = []
    for number in range(analysts):
        name = f"analyst {number}"
        ledger.set_principal(name, "analyst", by="stella")
        ledger.set_allowance("visits", name, Limit(epsilon=Fraction(20)), by="stella")
        tokens.append(gate.token_made(name, name="bench", days=1)[0])
    return tokens


def memory(pid: int) -> int:
    """Bytes that the server and its children have in memory, shared ones counted once each."""
    pids = [pid]
    for one in pids:
        try:
            pids += map(int, Path(f"/proc/{one}/task/{one}/children").read_text().split())
        except OSError:
            continue
    found = 0
    for one in pids:
        try:
            rollup = Path(f"/proc/{one}/smaps_rollup").read_text()
            found += int(re.search(r"Pss:\s+(\d+)", rollup)[1]) << 10  # type: ignore[index]
        except (OSError, TypeError):
            continue
    return found


async def crowd(port: int, tokens: list[str], minutes: float, pid: int) -> tuple[Told, list[int]]:
    told, taken = Told(), []
    # pages are up before the processes that plan: who comes first waits for those
    question = {"sql": FORMS[0].format(n=1), "epsilon": str(PRICE)}
    _, _, told.first = await Client(port, tokens[0]).call(
        "POST", "/tables/visits/preview", question
    )
    end = time.monotonic() + 60 * minutes
    working = [
        asyncio.create_task(analyst(n, Client(port, token), end, told, random.Random(n)))
        for n, token in enumerate(tokens)
    ]
    while not all(task.done() for task in working):
        taken.append(memory(pid))
        await asyncio.wait(working, timeout=10)
    await asyncio.gather(*working)
    return told, taken


def books(folder: Path, told: Told) -> dict[str, str]:
    """The ledger beside what the analysts were told."""
    ledger = Ledger.existing(folder / "visits.ledger")
    charges = [entry for entry in ledger.entries() if entry.kind == "reserved"]
    over = [a for a in ledger.allowances() if a.used.epsilon > (a.limit.epsilon or 0)]
    spent: Any = ledger.spent("visits")
    return {
        "charges in the ledger": str(len(charges)),
        "charges that analysts were told of": str(len(told.paid)),
        "spent": f"{spent.epsilon} (charges x price: {len(charges) * PRICE})",
        "allowances overdrawn": str(len(over)),
        "open reservations": str(len(ledger.unanswered("visits"))),
        "problems of the chain": str(len(ledger.problems())),
    }


def percentile(values: list[float], share: float) -> str:
    return f"{sorted(values)[min(int(share * len(values)), len(values) - 1)] * 1000:.0f} ms"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--analysts", type=int, default=50)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--slot", default="1")
    given = parser.parse_args()
    console = Console()
    with tempfile.TemporaryDirectory(prefix="lastbit-serve-") as name:
        folder = Path(name)
        tokens = prepared(folder, given.analysts)
        command = [sys.executable, "-m", "lastbit", "serve", str(folder / "visits.toml")]
        command += ["--state", str(folder / "state"), "--port", "0", "--slot", given.slot]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as one:
            address = folder / "state" / "address"
            while not address.exists():
                time.sleep(0.1)
                assert one.poll() is None, "the server did not start"
            port = int(address.read_text().rpartition(":")[2])
            try:
                told, taken = asyncio.run(crowd(port, tokens, given.minutes, one.pid))
            finally:
                one.send_signal(signal.SIGTERM)
        found = books(folder, told)
    rows = {
        "analysts, minutes": f"{given.analysts}, {given.minutes:g}",
        "first preview, while processes start": f"{told.first:.1f} s",
        "previews": f"{len(told.previews)}",
        **{f"preview p{p}": percentile(told.previews, p / 100) for p in (50, 95, 99)},
        "answers by status": ", ".join(f"{k}: {v}" for k, v in sorted(told.statuses.items())),
        "questions by state": ", ".join(f"{k}: {v}" for k, v in sorted(told.states.items())),
        "slots until they appeared": ", ".join(f"{k}: {v}" for k, v in told.slots.items()),
        **found,
        "memory after a tenth, at the end, most": ", ".join(
            f"{n >> 20} MB" for n in (taken[len(taken) // 10], taken[-1], max(taken))
        ),
        "cores": str(os.cpu_count()),
    }
    table = Table("what", "found", title="lastbit serve under load")
    for what, value in rows.items():
        table.add_row(what, value)
    console.print(table)


if __name__ == "__main__":
    main()
