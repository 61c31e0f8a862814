"""A desk to be killed: asks what it was asked before, and more, and notes what it was told.

python -m tests.serve.killing FOLDER QUESTIONS
"""

import asyncio
import os
import sys
from pathlib import Path

from lastbit.serve.catalogue import Catalogue
from lastbit.serve.desk import Desk
from lastbit.serve.questions import FINISHED, Question, Refusal
from lastbit.serve.settings import Settings
from lastbit.serve.store import Store
from tests.serve.desks import ANA, COUNT


async def asking(folder: Path, questions: int) -> None:
    """All questions, each under its own key, as clients do who try again until they are told."""
    settings = Settings(
        cards=(folder / "visits.toml",), state=folder / "state", slot=0.6, most_waiting=10_000
    )
    store = Store(settings.state)
    desk = Desk(Catalogue(settings, store), store, settings)
    notes = os.open(folder / "notes", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    await desk.start()
    os.write(1, b"up\n")

    async def ask(number: int) -> None:
        question = Question(sql=f"{COUNT} WHERE cost < {number}", epsilon="1")
        job = None
        while job is None:
            try:
                job = await desk.submit("visits", question, ANA, key=f"k{number}")
            except Refusal as refused:  # its planner was killed
                assert refused.kind in ("too-complicated", "interrupted"), refused
        os.write(notes, f"{number} {job.id} taken 0\n".encode())
        while (job := desk.job(job.id, ANA)).state not in FINISHED:
            await asyncio.sleep(0.02)
        os.write(notes, f"{number} {job.id} {job.state.split()[0]} {job.entry or 0}\n".encode())

    await asyncio.gather(*(ask(number) for number in range(questions)))
    await desk.stop()
    os.write(1, b"done\n")


if __name__ == "__main__":
    asyncio.run(asking(Path(sys.argv[1]), int(sys.argv[2])))
