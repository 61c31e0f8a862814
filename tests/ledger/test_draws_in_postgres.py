"""Draws in PostgreSQL: what the server itself refuses, and what copies and restores keep."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lastbit.canonical import sha256
from lastbit.errors import LedgerDamaged
from lastbit.ledger import Entry, Ledger, definitions, restored
from lastbit.ledger.safekeeping import copied
from lastbit.tables import Budget
from tests.engines import servers
from tests.ledger.books import signed_in
from tests.ledger.test_draws import PRICE, reserved

pytest.importorskip("psycopg", reason=servers.MISSING)
import psycopg

from lastbit.ledger.postgres import names_of


@pytest.fixture
def drawn(tmp_path: Path) -> tuple[Ledger, Entry, Entry]:
    """A ledger in a file, a reservation with its draw, and one that is answered too."""
    ledger = Ledger.open(tmp_path / "books.ledger")
    ledger.account("visits", Budget(epsilon=3))
    waiting, done = reserved(ledger, "waiting"), reserved(ledger, "done")
    for entry in (waiting, done):
        ledger.draw(entry, '{"n":1}', plan_digest="p")
    ledger.settle(done, {"rows": []})
    return ledger, waiting, done


def test_a_copy_keeps_draws(drawn: tuple[Ledger, Entry, Entry], address: str) -> None:
    """Into PostgreSQL, where the answer of a reservation has a column of its own, and back."""
    ledger, waiting, done = drawn
    there = copied(ledger, address)
    back = copied(there, Path(ledger.path).with_name("back.ledger"))
    for copy in (there, back):
        assert [one.hash for one in copy.entries()] == [one.hash for one in ledger.entries()]
        assert copy.problems([ledger.head]) == [] and copy.no_answers() == {}
        assert copy.drawn(waiting) == copy.drawn(done) == '{"n":1}'
        assert copy.draw(waiting, '{"n":2}', plan_digest="p") == '{"n":1}'
        assert copy.settle(waiting, {"rows": [1]}).reservation == waiting.hash
        assert copy.spent("visits") == PRICE + PRICE and copy.problems() == []


def test_a_restored_ledger_keeps_draws_and_voids_what_is_open(
    drawn: tuple[Ledger, Entry, Entry], address: str
) -> None:
    ledger, waiting, done = drawn
    there = restored(ledger.path, address)
    assert there.drawn(waiting) == there.drawn(done) == '{"n":1}'
    assert there.unanswered("visits") == () and there.problems([ledger.head]) == []
    with pytest.raises(LedgerDamaged, match="restored from a backup"):
        there.settle(waiting, {"rows": []})
    again = reserved(there, "waiting")
    assert again.hash != waiting.hash and there.drawn(again) is None


def appended(ledger: Ledger, like: Entry, answer: str, reword: Any = None) -> None:
    """Append by SQL what no lastbit would write, with number, link and hash right."""
    now = ledger.note("now").when  # by the server's clock
    last = ledger.entries(last=1)[0]
    made = replace(like, sequence=last.sequence + 1, previous=last.hash, when=now)
    made = replace(made, result=None if answer == "" else sha256(answer))
    text = made.text if reword is None else reword(made.text)
    row = (made.sequence, made.account, made.question, text, sha256(text), answer or None)
    with signed_in(ledger.path) as connection:
        connection.execute("SELECT append(%s::bigint, %s, %s, %s, %s, %s)", row)


def after(ledger: Ledger, paid: Entry, kind: Any, plan: str) -> Entry:
    """The draft of a draw, or of an answer, by this plan."""
    with ledger._connected() as books:
        draft = ledger._chain(books).drafted_after(paid, kind=kind, plan=plan, who="ada")
    return replace(draft, when=paid.when)


def without(ledger: Ledger, clause: str, instead: str = "") -> None:
    """The mutant: the server's function without one of its checks."""
    place: Any = ledger.path
    (entered,) = (one for one in definitions._FUNCTIONS if ".entered(" in one)
    assert entered.count(clause) == 1
    with signed_in(place) as connection:
        made = definitions.filled(entered.replace(clause, instead), names_of(place))
        connection.execute(made)


def test_the_server_takes_one_draw_and_an_answer_by_its_plan(address: str) -> None:
    """Failed before, for the plan: it was compared in Python alone."""
    ledger = Ledger.init(address)
    ledger.account("visits", Budget(epsilon=3))
    paid = reserved(ledger)
    appended(ledger, after(ledger, paid, "drawn", "other"), "{}")
    for wrong in (after(ledger, paid, "drawn", "other"), after(ledger, paid, "settled", "p")):
        with pytest.raises(psycopg.Error, match="breaks the rules"):
            appended(ledger, wrong, '{"rows":[]}')
    appended(ledger, after(ledger, paid, "settled", "other"), '{"rows":[]}')
    assert ledger.problems() == [] and ledger.spent("visits") == PRICE
    without(ledger, "AND {s}.field(draw, 'plan') IS NOT DISTINCT FROM {s}.field(entry, 'plan')")
    paid = reserved(ledger, "r")
    appended(ledger, after(ledger, paid, "drawn", "other"), "{}")
    appended(ledger, after(ledger, paid, "settled", "p"), '{"rows":[]}')


def test_a_reservation_without_a_question_is_drawn_once(tmp_path: Path, address: str) -> None:
    """No lastbit writes one, and the server lets none in; a ledger of old may hold one."""
    ledger = Ledger.open(tmp_path / "books.ledger")
    ledger.account("visits", Budget(epsilon=3))
    with ledger._connected() as books, books.transaction():
        chain = ledger._chain(books)
        after_it = chain.drafted(kind="reserved", account="visits", cost=PRICE, plan="p")
        paid = chain.append(books, replace(after_it, spent=PRICE, fingerprint="d"))
    there = copied(ledger, address)
    with pytest.raises(psycopg.Error, match="does not follow"):
        appended(there, replace(paid, spent=PRICE + PRICE), "")
    draw = after(there, paid, "drawn", "p")
    assert draw.question is None
    appended(there, draw, '{"n":1}')
    with pytest.raises(psycopg.Error, match="breaks the rules"):
        appended(there, draw, '{"n":2}')
    assert there.drawn(paid) == '{"n":1}'
    asked = "e.question IS NOT DISTINCT FROM given_question"
    without(there, asked, "e.question = given_question")
    appended(there, draw, '{"n":2}')
    with pytest.raises(LedgerDamaged, match="does not follow"):
        there.accounts()


@pytest.mark.parametrize("field", ["account", "kind", "question"])
def test_a_nul_in_what_an_entry_is_found_by_is_refused(address: str, field: str) -> None:
    """The server reads entries without their NULs, so a text could pose as another's."""
    ledger = Ledger.init(address)
    ledger.account("visits", Budget(epsilon=3))
    paid = reserved(ledger)
    draw = after(ledger, paid, "drawn", "p")
    value = getattr(draw, field)

    def reword(text: str) -> str:
        assert text.count(f'"{field}":"{value}"') == 1
        return text.replace(f'"{field}":"{value}"', f'"{field}":"{value}\\u0000"')

    with pytest.raises(psycopg.Error, match="does not follow"):
        appended(ledger, draw, "{}", reword)
    assert ledger.problems() == [] and ledger.drawn(paid) is None
    if field != "kind":  # whose form is checked besides
        without(ledger, "'\\u0000') > 0\n       OR kind", "'') < 0 OR kind")
        appended(ledger, draw, "{}", reword)
        assert ledger.problems() != []
