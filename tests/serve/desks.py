"""A small table, its card, three principals, and a desk that runs beside the test."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

import duckdb

from lastbit.ledger import Ledger, Limit, Role
from lastbit.release import accept_data
from lastbit.serve.catalogue import Catalogue
from lastbit.serve.desk import Desk
from lastbit.serve.identity import Identity
from lastbit.serve.questions import FINISHED, Job, Question
from lastbit.serve.routes import RIGHTS
from lastbit.serve.settings import Settings
from lastbit.serve.store import Store
from lastbit.tables import read_card

Result = TypeVar("Result")
CARD = """\
[table]
name = "{name}"
source = "{name}.parquet"
neighbours = "add-remove"
[unit]
column = "patient"
max_rows = 3
[budget]
{budget}
account = "patients"
[ledger]
path = "hospital.ledger"
[columns.patient]
type = "integer"
[columns.region]
type = "text"
keys = ["north", "south"]
[columns.cost]
type = "number"
bounds = [0, 100]
"""
COUNT = "SELECT COUNT(*) AS n FROM visits"
BY_REGION = "SELECT region, COUNT(*) AS n, AVG(cost) AS cost FROM visits GROUP BY region"


def identity(principal: str, role: Role, tables: frozenset[str] | None = None) -> Identity:
    return Identity(principal=principal, role=role, rights=RIGHTS[role], tables=tables)


STELLA, ANA, OTTO = (
    identity("stella", "steward"),
    identity("ana", "analyst"),
    identity("otto", "auditor"),
)
BEN = identity("ben", "analyst")  # who has no allowance


def write_rows(folder: Path, name: str = "visits", *, units: int = 100, also: str = "") -> None:
    """Two rows a unit; `also` is a further SELECT of the same columns."""
    sql = f"""
        SELECT range // 2 AS patient, CASE WHEN range % 2 = 0 THEN 'north' ELSE 'south' END
        AS region, (range % 100)::DOUBLE AS cost FROM range({2 * units}) {also}"""
    duckdb.sql(f"COPY ({sql}) TO '{folder / name}.parquet'")


def written(
    folder: Path,
    *names: str,
    budget: str = "epsilon = 100",
    allowance: str = "100",
    also: str = "",
) -> tuple[Path, ...]:
    """Cards of tables that share an account, with data that are accepted, and who may ask."""
    folder.mkdir(exist_ok=True)
    paths = []
    for name in names or ("visits",):
        write_rows(folder, name, also=also)
        path = folder / f"{name}.toml"
        path.write_text(CARD.format(name=name, budget=budget), "utf-8")
        accept_data(read_card(path), who="stella")
        paths.append(path)
    ledger = Ledger.existing(folder / "hospital.ledger")
    ledger.set_principal("stella", "steward", by="stella")
    for who in (ANA, BEN, OTTO):
        ledger.set_principal(who.principal, who.role, by="stella")
    limit = Limit(epsilon=Fraction(allowance))
    ledger.set_allowance("patients", "ana", limit, by="stella")
    return tuple(paths)


class Running:
    """A desk in a thread of its own."""

    def __init__(self, desk: Desk, loop: asyncio.AbstractEventLoop) -> None:
        self.desk, self._loop = desk, loop

    @property
    def ledger(self) -> Ledger:
        return self.desk.catalogue.ledger

    def do(self, work: Coroutine[Any, Any, Result], within: float = 120) -> Result:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(within)

    def all(self, *work: Coroutine[Any, Any, Any]) -> list[Any]:
        """Results, and errors in their places."""

        async def gathered() -> list[Any]:
            return await asyncio.gather(*work, return_exceptions=True)

        return self.do(gathered())

    def asked(
        self, sql: str = COUNT, *, who: Identity = ANA, key: str | None = None, **price: Any
    ) -> Job:
        question = Question(sql=sql, **(price or {"epsilon": "1"}))
        return self.do(self.desk.submit("visits", question, who, key=key))

    def finished(self, job: Job, who: Identity = ANA) -> Job:
        """The job, once it has appeared."""

        async def waited() -> Job:
            while (found := self.desk.job(job.id, who)).state not in FINISHED:
                await asyncio.sleep(0.02)
            return found

        return self.do(waited())

    def answer(self, sql: str = COUNT, **asked: Any) -> Job:
        return self.finished(self.asked(sql, **asked))


@contextmanager
def running(cards: tuple[Path, ...], **settings: Any) -> Iterator[Running]:
    """A desk on these cards, started; stopped in the end, gracefully."""
    state = cards[0].parent / "state"
    chosen = Settings(cards=cards, state=state, **{"slot": 1.0, **settings})
    store = Store(state)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:

        async def started() -> Desk:
            desk = Desk(Catalogue(chosen, store), store, chosen)
            await desk.start()
            await desk.up.wait()
            return desk

        found = Running(asyncio.run_coroutine_threadsafe(started(), loop).result(120), loop)
        try:
            yield found
        finally:
            found.do(found.desk.stop())
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
