"""The server itself: neighbouring tables, recorded answers and fresh ones, in the same slots."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from lastbit.release import accept_data
from lastbit.serve.child import Message
from lastbit.serve.worker import Worker
from lastbit.tables import read_card
from tests.serve.desks import COUNT, Running, running, write_rows, written

ONE_MORE = "UNION ALL SELECT 1000000, 'north', 99.0"
SLOT = 2.0


class Slow(Worker):
    """A worker whose statement runs longer than it does."""

    def __init__(self, worker: Worker, seconds: list[float]) -> None:
        self.__dict__ = worker.__dict__
        self.seconds = seconds

    async def ready(self, request: Message) -> bool:
        found = await super().ready(request)
        await asyncio.sleep(self.seconds.pop(0))
        return found


def schedule(folder: Path, seconds: list[float], *, also: str, again: bool = False) -> list[Any]:
    """When questions appear, in slots, and when the ledger has them; then the same again."""
    cards = written(folder)
    write_rows(folder, also=also)

    accept_data(read_card(cards[0]), who="stella")
    with running(cards, slot=SLOT) as desk:
        desk.desk._workers["visits"] = Slow(desk.desk._workers["visits"], list(seconds))
        found = asked(desk, len(seconds))
        return [found, asked(desk, len(seconds))] if again else found


def asked(desk: Running, number: int) -> list[Any]:
    jobs = [desk.asked(f"{COUNT} WHERE cost < {n}") for n in range(number)]
    seen = [(job.state, round((job.due - job.submitted) / SLOT)) for job in jobs if job.due]
    done = [desk.finished(job) for job in jobs]
    rows = desk.desk.store.connection().execute("SELECT started, slots FROM jobs ORDER BY sequence")
    starts = [(row["started"], row["slots"]) for row in rows][-number:]
    ends = [round((start - starts[0][0]) / SLOT + slots, 1) for start, slots in starts]
    assert {job.state for job in done} == {"answered"}
    return [seen, [job.slots for job in done], ends]


def test_tables_that_differ_in_one_unit_give_answers_in_the_same_slots(tmp_path):
    """Their statements run differently long, inside of a slot; the schedule is the same."""
    one = schedule(tmp_path / "one", [0.0, 0.0], also="")
    other = schedule(tmp_path / "other", [0.6, 0.3], also=ONE_MORE)
    assert one == other


def test_recorded_answers_take_the_slots_of_fresh_ones(tmp_path):
    fresh, recorded = schedule(tmp_path / "one", [0.0, SLOT], also="", again=True)
    assert fresh[1] == [1, 2] and fresh == recorded
