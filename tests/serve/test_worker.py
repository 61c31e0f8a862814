"""The process of a table: what it says, and what it does not say and do before it is told to."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from lastbit.ledger import Ledger
from lastbit.release import reserved
from lastbit.serve.planning import card_at, plan_of
from lastbit.serve.questions import Question
from lastbit.serve.tasks import task_child
from tests.serve.desks import COUNT, write_rows, written

MEMORY = 4 << 30
ACCEPT = {"do": "accept", "table": "visits", "principal": "stella"}


@pytest.fixture
def place(tmp_path):
    written(tmp_path)
    return tmp_path


def paid(place, number):
    """A request for an answer that is paid for."""
    question = Question(sql=f"{COUNT} WHERE cost < {number}", epsilon="1")
    plan = plan_of(question, card_at(place / "visits.toml"))
    books = Ledger.existing(place / "hospital.ledger")
    found = reserved(plan, books=books, who="ana", principal="ana", sql=question.sql)
    assert found.entry is not None
    request = {
        "do": "answer",
        "table": "visits",
        "question": question.to_json(),
        "principal": "ana",
    }
    return {**request, "reservation": found.entry.hash}


@asynccontextmanager
async def working(place):
    worker = task_child("answering", place / "visits.toml", memory=MEMORY)
    await worker.up()
    try:
        yield worker
    finally:
        await worker.end()


async def said(worker, request):
    return await worker.ready(request), await worker.settle()


def test_nothing_is_in_the_ledger_before_the_worker_is_told(place):
    request = paid(place, 1)
    ledger = Ledger.existing(place / "hospital.ledger")

    async def asking():
        async with working(place) as worker:
            assert await worker.ready(request)
            assert ledger.unanswered("patients")[0].hash == request["reservation"]
        async with working(place) as worker:  # the first was ended, and has left nothing
            assert await worker.ready(request)
            before = ledger.head
            await asyncio.sleep(0.2)
            assert ledger.head == before
            found = await worker.settle()
            assert found == {"entry": ledger.entries()[-1].sequence}
            # what is answered is not answered again, and what was never paid for is not at all
            for other in (request, {**request, "reservation": "0" * 64}):
                assert await said(worker, other) == (True, {"failed": "not to be answered"})

    asyncio.run(asking())
    assert ledger.problems() == [] and ledger.spent("patients").epsilon == 1


def test_failures_have_one_word_and_other_data_another(place):
    requests = [paid(place, number) for number in range(3)]
    ledger = Ledger.existing(place / "hospital.ledger")
    accepted = ledger.accepted_data("patients", "visits")
    look = {"do": "look", "table": "visits", "data": accepted}

    async def asking():
        async with working(place) as worker:
            assert await said(worker, look) == (
                True,
                {"changed": False},
            )
            write_rows(place, units=30)
            assert await said(worker, requests[0]) == (True, {"failed": "changed"})
            assert await said(worker, look) == (True, {"changed": True})
            (place / "visits.parquet").write_bytes(b"PAR1 48613.0771 PAR1")
            assert (await said(worker, requests[1]))[1].keys() == {"failed"}
            assert await said(worker, look) == (True, {"changed": True})
            refused = await said(worker, ACCEPT)
            assert refused == (True, {"accepted": False})
            write_rows(place, units=30)
            taken = await said(worker, ACCEPT)
            assert taken == (True, {"accepted": True})

    asyncio.run(asking())
    assert ledger.accepted_data("patients", "visits") != accepted
    assert len(ledger.unanswered("patients")) == 3


def test_a_question_that_the_card_now_plans_otherwise_is_not_answered(place):
    request = paid(place, 1)
    card = place / "visits.toml"
    card.write_text(card.read_text().replace("max_rows = 3", "max_rows = 4"))

    async def asking():
        async with working(place) as worker:
            return await said(worker, request)

    assert asyncio.run(asking()) == (True, {"failed": "not to be answered"})
