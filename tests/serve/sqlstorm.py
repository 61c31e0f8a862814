"""A storm on the SQL port: many clients that come, go and are cut off, and a server that is killed.

    python -m tests.serve.sqlstorm FOLDER CLIENTS SECONDS

prints what came of it. Every question is asked by several clients, none knows of the others, and
whoever is cut off asks again, as people do.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import socket
import sys
import time
from collections import defaultdict
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import psycopg

from lastbit.ledger import Ledger, Limit
from lastbit.serve.catalogue import Catalogue
from lastbit.serve.desk import Desk
from lastbit.serve.identity import Gate
from lastbit.serve.safety import Rates
from lastbit.serve.settings import Settings
from lastbit.serve.sqlport.port import SqlPort, sql_listener
from lastbit.serve.store import Store
from tests.serve.desks import written
from tests.serve.test_killed import children, killed

ROOT = Path(__file__).parents[2]
USERS = 5
CHILDREN = (
    "lastbit.serve.sqlport.reader",
    "lastbit.serve.tasks\0answering",
    "lastbit.serve.tasks\0planning",
)

CUT_OFF = (None, "54001", "57P01", "58000")
"""What clients are told, if anything, when a child or the server was killed."""


def settings_in(folder: Path, number: int) -> Settings:
    return Settings(
        cards=(folder / "visits.toml",),
        state=folder / "state",
        slot=0.5,
        sql_port=number,
        previews_a_minute=10**6,
        questions_a_minute=10**6,
        most_waiting=10_000,
    )


async def serving(folder: Path, number: int) -> None:
    """The server, until it is killed."""
    settings = settings_in(folder, number)
    store = Store(settings.state)
    desk = Desk(Catalogue(settings, store), store, settings)
    gate = Gate(store, desk.catalogue.ledger, settings)
    port = SqlPort(desk, gate, settings, Rates())
    await desk.start()
    await desk.up.wait()
    await port.start(sql_listener(settings))
    os.write(1, b"up\n")
    await asyncio.Event().wait()


class Storm:
    """Clients, what they were told, and the server that is killed."""

    def __init__(self, folder: Path, seconds: float, seed: str) -> None:
        written(folder, budget="epsilon = 10000", allowance="10000")
        ledger = Ledger.existing(folder / "hospital.ledger")
        self.folder, self.choice = folder, random.Random(seed)
        with socket.create_server(("127.0.0.1", 0)) as taken:
            self.number = taken.getsockname()[1]
        settings = settings_in(folder, self.number)
        gate = Gate(Store(settings.state), ledger, settings)
        self.tokens = {}
        for place in range(USERS):
            name = f"user{place}"
            ledger.set_principal(name, "analyst", by="stella")
            ledger.set_allowance("patients", name, Limit(epsilon=Fraction(10_000)), by="stella")
            self.tokens[name] = gate.token_made(name, name="storm", days=1)[0]
        self.seconds, self.end = seconds, 0.0
        self.calm = min(seconds / 4, 20.0)
        """Seconds between two kills, about; a person thinks for a twentieth of it."""
        self.server: asyncio.subprocess.Process | None = None
        self.told: dict[int, set[tuple[Any, ...]]] = defaultdict(set)
        self.asked: set[int] = set()
        self.previews: list[float] = []
        self.cut, self.kills, self.problems = 0, 0, list[str]()

    async def up(self) -> None:
        self.server = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "tests.serve.sqlstorm", str(self.folder), str(self.number)),
            cwd=ROOT,
            stdout=asyncio.subprocess.PIPE,
        )
        assert self.server.stdout is not None
        assert await self.server.stdout.readline() == b"up\n"

    async def killing(self) -> None:
        """kill -9, of a child or of the server."""
        while time.monotonic() < self.end:
            await asyncio.sleep(self.calm * (0.5 + self.choice.random()))
            assert self.server is not None
            pid = self.server.pid
            if self.choice.random() < 0.6:
                for child in list(children(pid, self.choice.choice(CHILDREN)))[:1]:
                    self.kills += killed(child)
                continue
            self.kills += killed(pid)
            await self.server.wait()
            await self.up()

    async def client(self, place: int) -> None:
        """Ask, be cut off now and then, and come again."""
        while time.monotonic() < self.end:
            with suppress(OSError):
                await self._connected(f"user{place % USERS}")
            await asyncio.sleep(0.2 * self.choice.random())

    async def _connected(self, user: str) -> None:
        try:
            line = await self.line(user)
        except psycopg.OperationalError:  # the server is not up again yet
            return
        try:
            for _ in range(self.choice.randrange(1, 20)):
                await asyncio.sleep(self.calm * 0.1 * self.choice.random())
                await self._ask(line, self.choice.randrange(len(self.asked) + 3))
                if time.monotonic() > self.end:
                    return
        except psycopg.Error as error:
            self.cut += 1
            if error.sqlstate not in CUT_OFF:
                self.problems.append(f"{error.sqlstate} {error}")
        finally:
            await line.close()

    async def line(self, user: str) -> Any:
        return await psycopg.AsyncConnection.connect(
            host="127.0.0.1",
            port=self.number,
            user=user,
            password=self.tokens[user],
            dbname="lastbit",
            options="-c lastbit.epsilon=1",
            autocommit=True,
        )

    async def _ask(self, line: Any, number: int) -> None:
        sql = f"SELECT COUNT(*) AS n FROM visits WHERE cost < {number}"
        since = time.monotonic()
        await line.execute(f"EXPLAIN {sql}")
        self.previews.append(time.monotonic() - since)
        self.asked.add(number)
        if self.choice.random() < 0.2:  # gone in the midst of it
            asking = asyncio.create_task(line.execute(sql))
            await asyncio.sleep(0.3 * self.choice.random())
            with socket.socket(fileno=os.dup(line.fileno())) as own, suppress(OSError):
                own.shutdown(socket.SHUT_RDWR)
            with suppress(psycopg.Error):
                await asking
            self.cut += 1
            raise psycopg.OperationalError
        rows = await (await line.execute(sql)).fetchall()
        self.told[number].add(rows[0])

    async def run(self, clients: int) -> None:
        await self.up()
        self.end = time.monotonic() + self.seconds
        await asyncio.gather(self.killing(), *(self.client(place) for place in range(clients)))
        deadline = time.monotonic() + 300
        while missing := sorted(self.asked - set(self.told)):  # who was cut off asks again
            assert time.monotonic() < deadline, f"{len(missing)} questions are not answered"
            with suppress(psycopg.Error):
                line = await self.line("user0")
                try:
                    for number in missing:
                        rows = await (
                            await line.execute(
                                f"SELECT COUNT(*) AS n FROM visits WHERE cost < {number}"
                            )
                        ).fetchall()
                        self.told[number].add(rows[0])
                finally:
                    await line.close()
        assert self.server is not None
        self.server.send_signal(signal.SIGKILL)
        await self.server.wait()

    def check_books(self) -> dict[str, float]:
        """Each question has one answer, told alike to all; each was charged once, or was voided."""
        ledger = Ledger.existing(self.folder / "hospital.ledger")
        assert ledger.problems() == []
        entries = ledger.entries("patients")
        kinds = {kind: sum(one.kind == kind for one in entries) for kind in ("settled", "voided")}
        charges = sum(one.kind == "reserved" for one in entries)
        assert not self.problems, self.problems[:5]
        assert all(len(answers) == 1 for answers in self.told.values())
        assert kinds["settled"] == len(self.told) == len(self.asked)
        assert charges == kinds["settled"] + kinds["voided"]
        slow = sorted(self.previews)
        return {
            **kinds,
            "charges": charges,
            "questions": len(self.asked),
            "previews": len(slow),
            "preview_p50": slow[len(slow) // 2],
            "preview_p99": slow[len(slow) * 99 // 100],
            "cut off": self.cut,
            "kills": self.kills,
        }


def storm(folder: Path, clients: int, seconds: float, seed: str) -> dict[str, float]:
    """What came of it."""
    found = Storm(folder, seconds, seed)
    asyncio.run(found.run(clients))
    return found.check_books()


if __name__ == "__main__":
    if len(sys.argv) == 3:
        asyncio.run(serving(Path(sys.argv[1]), int(sys.argv[2])))
    else:
        sys.stdout.write(
            f"{storm(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), 'by hand')}\n"
        )
