"""The server itself: neighbouring tables, recorded answers and fresh ones, in the same slots."""

from __future__ import annotations

import asyncio
from datetime import datetime
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

from lastbit.serve.child import Child, Message
from lastbit.serve.questions import FINISHED, Job
from tests.serve.desks import ANA, COUNT, Running, running, written

ONE_MORE = "UNION ALL SELECT 1000000, 'north', 99.0"
SLOT = 2.0


class Slow(Child):
    """A worker whose statements run longer than they do."""

    def __init__(self, worker: Child, seconds: list[float]) -> None:
        self.__dict__ = worker.__dict__
        self.seconds = seconds

    async def ready(self, request: Message) -> bool:
        found = await super().ready(request)
        await asyncio.sleep(self.seconds.pop(0))
        return found


def schedule(folder: Path, seconds: list[float], *, also: str = "", turns: int = 1) -> list[Any]:
    """The slots of questions, when they appeared and when the ledger had them, for each turn."""
    with running(written(folder, also=also), slot=SLOT) as desk:
        station = desk.desk._stations["visits"]
        station.worker = Slow(station.worker, list(seconds))
        return [asked(desk, len(seconds)) for _ in range(turns)]


def asked(desk: Running, number: int) -> list[Any]:
    """In whole slots since the first one began: they are what is promised, not milliseconds."""
    jobs = [desk.asked(f"{COUNT} WHERE cost < {n}") for n in range(number)]
    slots = desk.desk.catalogue.tables["visits"].slots
    assert slots is not None
    begin, margin = jobs[0].submitted, slots.margin

    async def seen(job: Job) -> tuple[Job, float]:
        while (found := desk.desk.job(job.id, ANA)).state not in FINISHED:
            await asyncio.sleep(0.02)
        return found, round(
            (asyncio.get_running_loop().time() + desk.desk._stations["visits"].wall - begin) / SLOT
        )

    found = desk.all(*(seen(job) for job in jobs))
    ks = [job.slots for job, _ in found]
    if None in ks:
        pytest.skip("this machine is too busy to answer in four slots")
    entries = [desk.ledger.entry(job.entry).when for job, _ in found]
    late = [datetime.fromisoformat(when).timestamp() + margin - begin for when in entries]
    return [ks, [at for _, at in found], [round(seconds / SLOT) for seconds in late]]


def test_tables_that_differ_in_one_unit_give_answers_in_the_same_slots(tmp_path):
    """Their statements run differently long, inside of a slot; the schedule is the same."""
    (one,) = schedule(tmp_path / "one", [0.0, 0.0])
    (other,) = schedule(tmp_path / "other", [0.6, 0.3], also=ONE_MORE)
    for ks, appeared, entries in (one, other):
        assert appeared == entries == list(accumulate(ks))
    assert one == other or one[0] != other[0]  # a busy machine needs more slots: by chance


@pytest.mark.evidence
def test_recorded_answers_take_the_slots_of_fresh_ones(tmp_path):
    fresh, recorded = schedule(tmp_path / "one", [0.0, SLOT], turns=2)
    assert fresh[:2] == recorded[:2] and fresh[1] == list(accumulate(fresh[0])) != [1, 2]
