"""A damaged file never has more budget than the whole one: it is refused, or it is right.

Bytes of every page are flipped at places that are drawn, and all of what SQLite itself reads first:
headers of the file and of pages, and their lists of cells. As evidence every 61st byte is too,
and in `make check` every 241st.
"""

import random
import sqlite3
from contextlib import closing

import pytest

from lastbit.errors import BudgetExceeded, InvalidParameter, LastbitError, LedgerDamaged
from lastbit.ledger.ledger import Ledger
from lastbit.ledger.limits import Limit
from tests.evidence import WHOLE_CHECK
from tests.ledger.books import ONE, changed, price, record

DRAWN = 6
QUESTIONS = 18
LEFT = price("1/10")


def asked(ledger, question, cost):
    paid = ledger.reserve(
        "visits", cost, who="ada", question=question, plan_digest="p", fingerprint="f",
        principal="ben",
    )  # fmt: skip
    if paid.record is not None:
        return paid
    return ledger.settle(paid, {**record(question), "rows": [question * 200]})


@pytest.fixture(scope="module")
def books(tmp_path_factory):
    """9/10 of 1 is spent, a part of it on a reservation that is open; tables of two levels.

    An analyst asks, with an allowance of as much as the account.
    """
    path = tmp_path_factory.mktemp("books") / "a.ledger"
    ledger = Ledger.open(path)
    ledger.account("visits", ONE)
    ledger.account("others", ONE)
    ledger.set_principal("ada", "steward", by="root")
    ledger.set_principal("ben", "analyst", by="ada")
    ledger.set_allowance("visits", "ben", Limit(epsilon=ONE.epsilon, period="year"), by="ada")
    for number in range(QUESTIONS - 1):
        asked(ledger, f"q{number}", price("1/20"))
        ledger.note("between", account="others" if number % 2 else None)
    ledger.reserve(
        "visits", price("1/20"), who="ada", question="open", plan_digest="p", fingerprint="f",
        principal="ben",
    )  # fmt: skip
    assert ledger.spent("visits") == price("9/10")
    return path.read_bytes()


def overspent(path) -> str | None:
    """What a damaged ledger gives away, in words; None if it is refused, or right."""
    try:
        ledger = Ledger.open(path, patience=0.2)
        if ledger.spent("visits") != price("9/10") or ledger.remaining("visits") != LEFT:
            return "shows another sum"
        if next(a for a in ledger.accounts() if a.name == "visits").spent != price("9/10"):
            return "lists another sum"
        if [one.left.epsilon for one in ledger.allowances()] != [LEFT.epsilon]:
            return "lists another allowance"
    except LastbitError:
        ledger = None
    given = []
    for question, cost in (("q16", "1/20"), ("new", "1/5"), ("open", "1/20"), ("last", "1/10")):
        try:
            ledger = ledger or Ledger.open(path, patience=0.2)
            entry = asked(ledger, question, price(cost))
            if question == "q16" and entry.record["rows"] != ["q16" * 200]:
                return "answers a question a second time"
            given.append(question)
        except BudgetExceeded:
            if question != "new":
                return "refuses what is paid for, or left"
        except LastbitError:
            continue
    return "overspends" if "new" in given else None


def places(raw: bytes):
    size = int.from_bytes(raw[16:18], "big")
    drawn = random.Random(11)
    for page in range(len(raw) // size):
        start, own = page * size, 100 if page == 0 else 0
        if page == 0:
            yield from range(24, 48)  # counters, pages, free pages
        head = start + own
        cells = int.from_bytes(raw[head + 3 : head + 5], "big")
        # overflow pages have no header: then these are just some bytes of an answer
        yield from range(head, head + 12 + 2 * min(cells, 2))
        yield from (drawn.randrange(start + own, start + size) for _ in range(DRAWN))
        full = [place for place in range(start + size // 2, start + size) if raw[place]]
        yield from drawn.sample(full, min(DRAWN, len(full)))


def test_flipped_bytes_of_every_page_never_overspend(books, tmp_path, extent):
    path, journal = tmp_path / "a.ledger", tmp_path / "a.ledger-journal"
    source, bad, count = random.Random(12), [], 0
    tried = extent.cases(places(books), one_in=4)
    if extent.is_many:
        step = 241 if WHOLE_CHECK else 61  # prime: every place of a page in the end
        tried += range(0, len(books), step)
    for place in tried:
        damaged = bytearray(books)
        damaged[place] = source.choice(
            [v for v in (damaged[place] ^ 1, damaged[place] - 1, 255, 0) if 0 <= v < 256]
        )
        if damaged == books:
            damaged[place] ^= 0x40
        path.write_bytes(damaged)
        journal.unlink(missing_ok=True)
        found, count = overspent(path), count + 1
        if found:
            bad.append((place, books[place], damaged[place], found))
    assert not bad, bad[:5]
    assert count > 120


def index_without_newest(path):
    """As the damage of one byte can leave it: the index by account ends with an older entry."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        indices = "type = 'index' AND sql IS NOT NULL"
        kept = connection.execute(
            f"SELECT type, name, tbl_name, rootpage, sql FROM sqlite_master WHERE {indices}"
        ).fetchall()
        connection.execute(f"DELETE FROM sqlite_master WHERE {indices}")
        connection.commit()
    return kept


def test_indices_are_not_trusted(tmp_path):
    """The hole: totals and answers were looked up by indices, which lacked the last entries."""
    path = tmp_path / "a.ledger"
    ledger = Ledger.open(path)
    ledger.account("visits", ONE)
    asked(ledger, "q1", price("1/2"))
    indices = index_without_newest(path)
    asked_without_indices(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.executemany("INSERT INTO sqlite_master VALUES (?, ?, ?, ?, ?)", indices)
        connection.commit()
    ledger = Ledger.open(path)
    assert ledger.spent("visits") == price("3/4")
    assert ledger.accounts()[0].spent == price("3/4")
    assert (ledger.recorded("visits", "q2") or {})["rows"] == ["q2" * 200]
    with pytest.raises(BudgetExceeded):
        asked(ledger, "q3", price("1/2"))
    assert "SQLite finds the file itself damaged" in ledger.problems()


def asked_without_indices(path):
    """Charge q2 while the file has no indices, and its schema is not compared."""
    from lastbit.ledger import sqlite as storage

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(storage, "_check_schema", lambda *_: None)
        asked(Ledger.open(path), "q2", price("1/4"))


def test_an_end_that_is_lost_is_noticed_by_the_next_charge(tmp_path):
    ledger = Ledger.open(tmp_path / "a.ledger")
    ledger.account("visits", ONE)
    asked(ledger, "q1", price("1/2"))
    changed(ledger.path, "DELETE FROM entries WHERE sequence > 2")
    for work in (
        lambda: asked(ledger, "q2", price("1")),
        lambda: ledger.spent("visits"),
        lambda: ledger.account("visits", ONE),
        lambda: ledger.set_budget("visits", None),
        ledger.accounts,
    ):
        with pytest.raises(LedgerDamaged, match="lost its last entries"):
            work()


def test_pages_that_are_not_free_are_not_written_to(books, tmp_path):
    path = tmp_path / "a.ledger"
    pages = len(books) // 4096
    header = bytearray(books)
    header[28:32] = (pages - 1).to_bytes(4, "big")  # the last page would be given out again
    free = bytearray(books)
    free[32:40] = (3).to_bytes(4, "big") + (1).to_bytes(4, "big")  # page 3 would be
    for damaged in (header, free):
        path.write_bytes(damaged)
        with pytest.raises((LedgerDamaged, InvalidParameter)):
            asked(Ledger.open(path), "last", LEFT)
        assert path.read_bytes() == damaged


def test_a_charge_reads_the_chain_by_no_index(tmp_path):
    """Every statement of reserve, settle and looking, as SQLite plans it."""
    ledger = Ledger.open(tmp_path / "a.ledger")
    ledger.account("visits", ONE)
    asked(ledger, "q1", price("1/2"))
    told: list[str] = []
    connect = sqlite3.connect

    def traced(*args, **named):
        connection = connect(*args, **named)
        connection.set_trace_callback(told.append)
        return connection

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite3, "connect", traced)
        asked(ledger, "q2", price("1/4"))
        ledger.set_budget("visits", None)
        ledger.accounts(), ledger.unanswered("visits"), ledger.recorded("visits", "q1")
    looked = {text for text in told if text.startswith("SELECT") and "FROM entries" in text}
    assert looked
    with closing(connect(ledger.path)) as connection:
        for text in looked:
            plan = " ".join(str(row) for row in connection.execute(f"EXPLAIN QUERY PLAN {text}"))
            assert "USING INDEX" not in plan and "COVERING" not in plan, text
