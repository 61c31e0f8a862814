"""One reservation has one draw of noisy numbers, whoever asks, and however often."""

from __future__ import annotations

import threading
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from lastbit.errors import LedgerDamaged, WrongType
from lastbit.ledger import Entry, Ledger
from lastbit.ledger.chain import UNUSABLE
from lastbit.tables import Budget, Cost

PRICE = Cost(epsilon=Fraction(1, 8))


@pytest.fixture(params=["file", "postgres"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Ledger:
    if request.param == "file":
        books = Ledger.open(tmp_path / "books.ledger")
    else:
        pytest.importorskip("psycopg")
        books = Ledger.init(request.getfixturevalue("address"))
    books.account("visits", Budget(epsilon=3))
    return books


def reserved(ledger: Ledger, question: str = "q") -> Entry:
    return ledger.reserve(
        "visits", PRICE, who="ada", question=question, plan_digest="p", fingerprint="d"
    )


def test_the_first_draw_is_kept_and_given_back(ledger: Ledger) -> None:
    entry = reserved(ledger)
    assert ledger.drawn(entry) is None
    assert ledger.draw(entry, '{"n":1}', plan_digest="p") == '{"n":1}'
    assert ledger.draw(entry, '{"n":2}', plan_digest="p") == '{"n":1}' == ledger.drawn(entry)
    again = reserved(ledger)
    assert again == entry and again.resumed  # it is still to be answered
    settled = ledger.settle(entry, {"rows": []})
    assert settled.reservation == entry.hash
    assert ledger.problems() == [] and ledger.no_answers() == {}
    kinds = [one.kind for one in ledger.entries("visits")]
    assert kinds == ["budget", "reserved", "drawn", "settled"]
    assert ledger.spent("visits") == PRICE


def test_what_is_answered_void_or_made_up_is_not_drawn(ledger: Ledger) -> None:
    answered, void = reserved(ledger, "a"), reserved(ledger, "v")
    ledger.settle(answered, {"rows": []})
    ledger.fail(void, words="not today")
    forged = Entry(kind="reserved", account="visits", question="x", cost=PRICE)
    for entry in (answered, void, forged):
        for work in (ledger.drawn, lambda one: ledger.draw(one, "{}", plan_digest="p")):
            with pytest.raises(LedgerDamaged, match="does not hold this reservation"):
                work(entry)
    assert ledger.problems() == []


@pytest.mark.parametrize("numbers", ["", "[]", "{", '{"a":1e999}', "\ud800"])
def test_what_cannot_be_kept_stays_the_draw(ledger: Ledger, numbers: str) -> None:
    """To refuse it would free another draw, and what is refused depends on the data."""
    entry = reserved(ledger)
    assert ledger.draw(entry, numbers, plan_digest="p") == UNUSABLE == ledger.drawn(entry)
    assert ledger.draw(entry, "{}", plan_digest="p") == UNUSABLE
    new = reserved(ledger)
    assert new.hash != entry.hash and ledger.spent("visits") == PRICE + PRICE


def test_threads_that_race_get_one_draw(ledger: Ledger) -> None:
    entry = reserved(ledger)
    found: list[Any] = []

    def draw(number: int) -> None:
        found.append(ledger.draw(entry, f'{{"n":{number}}}', plan_digest="p"))

    threads = [threading.Thread(target=draw, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6 and len(set(found)) == 1 == len({ledger.drawn(entry), *found})


def test_a_draw_is_no_answer(ledger: Ledger) -> None:
    entry = reserved(ledger)
    ledger.draw(entry, '{"rows":[]}', plan_digest="p")
    assert ledger.recorded("visits", "q") is None
    (drawn,) = (one for one in ledger.entries("visits") if one.kind == "drawn")
    assert ledger.entry(drawn.sequence).record is None
    assert list(ledger.answers("visits", last=10)) == []


def test_two_draws_in_a_file_are_damage(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "books.ledger")
    ledger.account("visits", Budget(epsilon=3))
    entry = reserved(ledger)
    ledger.draw(entry, "{}", plan_digest="p")
    with ledger._connected() as books, books.transaction():
        chain = ledger._chain(books)
        draft = chain.drafted(
            kind="drawn",
            account="visits",
            question="q",
            result="44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
            reservation=entry.hash,
        )
        chain.append(books, draft, "{}")
    with pytest.raises(LedgerDamaged, match="does not follow"):
        ledger.accounts()
    assert any("has numbers for no reservation" in one for one in ledger.problems())


def test_another_plan_does_not_answer_what_is_drawn(ledger: Ledger) -> None:
    entry = reserved(ledger)
    ledger.draw(entry, "{}", plan_digest="other")
    with pytest.raises(WrongType, match="another plan"):
        ledger.settle(entry, {"rows": []})
    new = reserved(ledger)
    assert new.hash != entry.hash and not new.resumed and ledger.spent("visits") == PRICE + PRICE
    assert ledger.settle(entry, {"rows": []}, plan_digest="other").reservation == entry.hash
    assert ledger.problems() == []
