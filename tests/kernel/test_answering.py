"""A malicious caller, through public names: never an answer without a charge, never two draws.

Whoever calls sees noisy integers in two places: `make_record`, which is given them, and
`reference`, which is given the first tables of marginals. So both are spies here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import fields, replace
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from lastbit.errors import BudgetExceeded, InvalidParameter, LastbitError, NotAllowed, WrongType
from lastbit.exact import written
from lastbit.kernel import Noisy, Program, answer, answer_unrecorded, answering, reserve
from lastbit.kernel.answering import data_fingerprint
from lastbit.ledger import Entry, Ledger, neighbours_of
from lastbit.release import paying
from lastbit.release.certifying import program_of
from lastbit.tables import DataCard, Session, open_session, planned
from lastbit.tables.card.budget import Budget
from tests.evidence import Extent
from tests.kernel.genuine import certificate, certificates, table_of

NOT_YET = "Ledger.draw does not keep a draw yet"
COUNT = "SELECT COUNT(*) AS n FROM t"
PAIRS = {"g": "g", "h": "h", "band": "bin(x, 0, 2, 4, 6)"}


@pytest.fixture
def books(tmp_path: Path) -> Ledger:
    return Ledger.open(tmp_path / "t.ledger")


def fingerprinted(card: DataCard, books: Ledger) -> str:
    with open_session(card) as session:
        return data_fingerprint(card, books, session)


class Case:
    """A plan with so much noise that two draws are never equal by chance (below 1e-8 a pair)."""

    def __init__(self, books: Ledger, how: str = "count", budget: Budget | None = None) -> None:
        self.books = books
        if how == "pairs":
            self.plan: Any = (
                table_of("people declared").marginals(PAIRS, pairs=1).plan(epsilon="1/1000")
            )
        else:
            asked = table_of("people").sql(COUNT)
            self.plan = planned(asked.query, asked.card, epsilon="1/1000")
        self.program = program_of(self.plan)
        self.card = self.program.card
        self.books.account(self.card.account_name, budget, neighbours_of(self.card))
        self.seen: list[Any] = []

    @property
    def spent(self) -> Fraction:
        return self.books.spent(self.card.account_name).epsilon

    def reserve(self, **how: Any) -> Entry:
        data = fingerprinted(self.card, self.books)
        return reserve(self.program, books=self.books, data=data, who="eve", **how)

    def spy(self, noisy: Noisy) -> Mapping[str, Any]:
        """Keep the numbers, and give the record that they make."""
        self.seen.append(noisy.to_text())
        steps = paying.steps_of(self.plan)
        return steps.record(self.plan, noisy, question="q", sql=None, head=None)

    def answer(self, entry: Entry, make_record: Callable[[Noisy], Any] | None = None) -> Any:
        return answer(
            self.program,
            entry,
            books=self.books,
            make_record=make_record or self.spy,
            who="eve",
        )

    def try_answer(self, entry: Entry, make_record: Callable[[Noisy], Any] | None = None) -> None:
        """The same; what fails may fail in any of our words."""
        with suppress(LastbitError, Stopped):
            self.answer(entry, make_record)

    @property
    def draws(self) -> set[str]:
        return set(self.seen)


class Stopped(Exception):
    """A caller that has seen enough."""


@pytest.fixture(params=["count", "pairs"])
def case(request: pytest.FixtureRequest, books: Ledger) -> Case:
    return Case(books, request.param)


@pytest.mark.parametrize("kind", ["pure", "filter", "gaussian"])
def test_no_number_that_people_write_is_read(books: Ledger, kind: Any, monkeypatch: Any) -> None:
    """From the charge to the answer all numbers are fractions, or integers, already."""
    delta = Fraction(0) if kind == "pure" else Fraction(1, 10**6)
    budget = Budget(kind=kind, epsilon=Fraction(3), delta=delta)
    case = Case(books, budget=budget)
    case.books = Ledger.open(books.path)
    monkeypatch.setattr(written, "read_number", lambda value, name: pytest.fail(name))
    with pytest.raises(pytest.fail.Exception):
        Budget(epsilon="3")
    case.answer(case.reserve(), lambda noisy: {"n": noisy.entries})


def test_an_answer_is_one_draw_at_one_price(case: Case) -> None:
    entry = case.reserve()
    assert case.spent == Fraction(1, 1000)
    done = case.answer(entry)
    assert done.kind == "settled" and len(case.seen) == 1 and case.spent == Fraction(1, 1000)
    again = case.reserve()
    assert again.record is not None and case.spent == Fraction(1, 1000)
    case.answer(case.reserve(fresh=True))
    assert len(case.draws) == 2 and case.spent == Fraction(2, 1000)


# ---------------------------------------------------------------- never two draws for one charge


def test_a_caller_that_stops_gets_the_same_numbers(case: Case) -> None:
    entry = case.reserve()

    def stop(noisy: Noisy) -> Any:
        case.spy(noisy)
        raise Stopped

    for _ in range(3):
        case.try_answer(entry, stop)
    case.answer(case.reserve())
    assert len(case.seen) == 4 and len(case.draws) == 1 and case.spent == Fraction(1, 1000)


@pytest.mark.parametrize(
    "junk", [None, {}, [], "x", {"cost": {"epsilon": "0"}}, {"rows": object()}]
)
def test_a_record_of_junk_does_not_free_another_draw(books: Ledger, junk: Any) -> None:
    case = Case(books)
    entry = case.reserve()

    def throw_away(noisy: Noisy) -> Any:
        case.spy(noisy)
        return junk

    for _ in range(3):
        with suppress(TypeError):  # what no JSON can hold
            case.try_answer(entry, throw_away)
    assert len(case.draws) == 1 and case.spent == Fraction(1, 1000)


def test_a_caller_that_asks_within_its_answer_gets_the_same_numbers(case: Case) -> None:
    entry = case.reserve()

    def ask_again(noisy: Noisy) -> Any:
        record = case.spy(noisy)
        if len(case.seen) < 4:
            case.try_answer(entry, ask_again)
        return record

    case.try_answer(entry, ask_again)
    assert len(case.seen) >= 2 and len(case.draws) == 1


def test_what_is_answered_is_not_drawn_again(case: Case) -> None:
    entry = case.reserve()
    case.answer(entry)
    for _ in range(3):
        case.try_answer(entry)
    assert len(case.draws) == 1


def test_threads_that_race_see_one_draw(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    entry, meet = case.reserve(), threading.Barrier(4, timeout=60)
    real = answering._noisy

    def together(*given: Any) -> Any:
        noisy = real(*given)
        meet.wait()
        return noisy

    monkeypatch.setattr(answering, "_noisy", together)
    threads = [threading.Thread(target=case.try_answer, args=(entry,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # who comes when all is settled gets nothing
    assert case.seen and len(case.draws) == 1 and case.spent == Fraction(1, 1000)


# ---------------------------------------------------------------- never without a charge


def test_nothing_is_read_for_what_is_not_paid(
    books: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case(books)
    monkeypatch.setattr(Session, "aggregates", lambda *_, **__: pytest.fail("rows were read"))
    books.account("poor", Budget(kind="pure", epsilon=Fraction(1, 10**6)))
    card = replace(case.card, account="poor")
    program = Program(certificate_text(case.plan), card)
    with pytest.raises(BudgetExceeded):
        reserve(program, books=books, data="0" * 64, who="eve")
    assert books.spent("poor").epsilon == case.spent == 0


class OtherProgram(Program):
    """A subclass: it might run something else."""


class OtherLedger(Ledger):
    """A subclass: it might charge nothing."""


class Posing:
    """Has whatever it is asked for."""

    def __init__(self, real: Any) -> None:
        self.real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


def own_kind(books: Ledger) -> OtherLedger:
    return OtherLedger(**{field.name: getattr(books, field.name) for field in fields(books)})


def test_nothing_else_poses_as_program_or_ledger(books: Ledger) -> None:
    case = Case(books)
    entry, data = case.reserve(), fingerprinted(case.card, books)
    text = certificate_text(case.plan)
    programs: list[Any] = [Posing(case.program), OtherProgram(text, case.card), case.plan, None]
    ledgers: list[Any] = [Posing(books), own_kind(books), None, "t.ledger"]
    pairs = [(one, books) for one in programs] + [(case.program, one) for one in ledgers]
    before = case.spent
    for program, ledger in pairs:
        with pytest.raises(WrongType):
            reserve(program, books=ledger, data=data, who="eve")
        with pytest.raises(WrongType):
            answer(program, entry, books=ledger, make_record=case.spy, who="eve")
    for program in programs:
        with pytest.raises(WrongType):
            answer_unrecorded(program)
    assert case.seen == [] and case.spent == before


def certificate_text(plan: Any) -> str:
    return certificate("", plan, plan.card).text


FORGED: dict[str, dict[str, Any]] = {
    "another question": {"question": "0" * 64},
    "another account": {"account": "other"},
    "no fingerprint": {"fingerprint": None},
    "other data": {"fingerprint": "1" * 64},
    "a lower price": {"cost": None},
}


@pytest.mark.parametrize("what", FORGED)
def test_an_entry_of_something_else_is_refused(books: Ledger, what: str) -> None:
    case = Case(books)
    entry = replace(case.reserve(), **FORGED[what])
    with pytest.raises(LastbitError, match="does not hold this reservation"):
        case.answer(entry)
    assert case.seen == []


def test_an_entry_that_nobody_charged_gives_nothing(case: Case) -> None:
    """Made up whole: the right question, price and account, of a ledger that never saw it."""
    real = case.reserve()
    case.books.fail(real, words="closed")
    for forged in (replace(real, sequence=99, previous="1" * 64), replace(real, when="2020-01-01")):
        case.try_answer(forged)
    assert case.seen == []


def test_an_entry_of_another_ledger_gives_nothing(case: Case, tmp_path: Path) -> None:
    """Paid where nobody looks: the books that answer have not charged it."""
    other = Ledger.open(tmp_path / "other.ledger")
    other.account(case.card.account_name, None, neighbours_of(case.card))
    data = fingerprinted(case.card, case.books)
    entry = reserve(case.program, books=other, data=data, who="eve")
    case.try_answer(entry)
    assert case.seen == [] and case.spent == 0


def test_a_reservation_that_was_closed_gives_nothing(case: Case) -> None:
    entry = case.reserve()
    case.books.fail(entry, words="closed by a steward")
    case.try_answer(entry)
    assert case.seen == []


def test_the_card_names_its_ledger(books: Ledger, tmp_path: Path) -> None:
    case = Case(books)
    named = str(tmp_path / "named.ledger")
    Ledger.open(named)
    program = program_of(replace(case.plan, card=replace(case.plan.card, ledger=named)))
    with pytest.raises(NotAllowed):
        answer_unrecorded(program)
    with pytest.raises(InvalidParameter, match="the one that the card names"):
        reserve(program, books=books, data="0" * 64, who="eve")
    with pytest.raises(InvalidParameter, match="the one that the card names"):
        answer(program, case.reserve(), books=books, make_record=case.spy, who="eve")
    assert case.seen == []


def test_noisy_numbers_are_the_same_from_their_text(case: Case) -> None:
    case.answer(case.reserve())
    (text,) = case.seen
    assert Noisy.from_text(text).to_text() == text


def test_every_kind_of_numbers_is_read_back_from_the_books(extent: Extent) -> None:
    """Types of keys too: True is not 1 there, and a time no date."""
    keys: list[tuple[Any, ...]] = [
        (True, 1, "1", date(2020, 1, 1), datetime(2020, 1, 1)), (None, None, None, None, None),
        (False, -(10**30), "\ud800\0'", date(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 1)),
    ]  # fmt: skip
    noisy = Noisy(keys=keys, entries={"m1": [10**400, -1, 0]}, bins={"m2": [[1], [], [2, 3]]})
    read = Noisy.from_text(noisy.to_text())
    assert read == noisy
    assert [[type(v) for v in key] for key in read.keys] == [[type(v) for v in k] for k in keys]
    for one in extent.cases(certificates(), one_in=20):
        if "'pairs'" not in one.name:
            found = answer_unrecorded(Program(one.text, one.card))
            assert Noisy.from_text(found.to_text()) == found, one.name


# ---------------------------------------------------------------- what the card declares


def with_card(case: Case, **declared: Any) -> Case:
    """The case by a card that declares more."""
    card = replace(case.plan.card, **declared)
    case.plan = replace(case.plan, card=card)
    case.program = program_of(case.plan)
    case.card = case.program.card
    return case


def test_the_budget_of_the_card_is_that_of_the_account(books: Ledger) -> None:
    """Whoever opens the account, and whoever reserves, without it: the kernel compares."""
    case = with_card(Case(books), budget=Budget(kind="pure", epsilon=Fraction(1)))
    entry = case.reserve()  # of an account that was opened without a budget
    with pytest.raises(InvalidParameter, match="is not the one that the ledger has for it"):
        case.answer(entry)
    assert case.seen == []
    books.set_budget(case.card.account_name, case.card.budget, who="steward")
    case.answer(entry)
    assert len(case.seen) == 1 and case.spent == Fraction(1, 1000)


def test_data_that_nobody_accepted_give_nothing(books: Ledger) -> None:
    case = with_card(Case(books), accepted_data=True)
    entry = case.reserve()
    with pytest.raises(NotAllowed, match="a steward has accepted"):
        case.answer(entry)
    data = fingerprinted(case.card, books)
    books.accept_data(case.card.account_name, case.card.name, "0" * 64, who="steward")
    with pytest.raises(NotAllowed, match="a steward has accepted"):
        case.answer(entry)
    assert case.seen == []
    books.accept_data(case.card.account_name, case.card.name, data, who="steward")
    case.answer(entry)
    assert len(case.seen) == 1 and case.spent == Fraction(1, 1000)
