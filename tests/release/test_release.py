"""From a plan to a paid answer: the order of things, refusals, records, and what never leaks."""

from __future__ import annotations

import gc
import getpass
import json
import os
import traceback
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from lastbit.errors import BudgetExceeded, EngineFailed, InvalidParameter, NotAllowed
from lastbit.ledger.ledger import Ledger
from lastbit.release.answer import Answer
from lastbit.release.paying import uncollected
from lastbit.release.release import released
from lastbit.tables.card.budget import Budget
from lastbit.tables.card.schema import DataCard
from lastbit.tables.plan.plan import planned
from lastbit.tables.query.expression import ColumnName, Constant
from lastbit.tables.query.query import OrderBy, Query
from lastbit.tables.query.rules import call
from tests.release.pretend import Engine, RawNumbers, card_of, part, plug_in, query_of

BUDGET = Budget(kind="pure", epsilon=Fraction(2))
QUERY = query_of(part("count", "n"), keys=[("region", ("north", "south", None))])
RAW = RawNumbers(keys=[("north",), ("south",), (None,)], entries={"m1": [500, 70, 3]})


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    return plug_in(monkeypatch, RAW)


@pytest.fixture
def book(tmp_path: Path) -> str:
    return str(tmp_path / "hospital.ledger")


def ask(
    query: Query = QUERY, card: DataCard | None = None, *, epsilon: Any = 1, **how: Any
) -> Answer:
    table = card or card_of(budget=BUDGET)
    return released(query, table, planned(query, table, epsilon=epsilon), **how)


def test_an_answer_is_paid_for_and_recorded(engine: Engine, book: str) -> None:
    answer = ask(ledger=book, who="ada", sql="SELECT ...")
    ledger = Ledger.open(book)
    assert ledger.spent("visits").epsilon == 1 and ledger.problems() == []
    assert answer.record["entry"]["hash"] == ledger.head
    assert answer.record["asked"]["sql"] == "SELECT ..."
    assert answer.record["lastbit"] and answer.record["certificate"]
    assert answer["region"] == ["north", "south", None]
    assert all(abs(a - b) < 60 for a, b in zip(answer["n"], (500, 70, 3), strict=True))
    entry = ledger.entries()[-1]
    assert entry.who is not None and entry.who.startswith("ada (as ")
    assert json.loads(json.dumps(answer.record)) == answer.record


def test_the_same_question_is_answered_from_the_record(engine: Engine, book: str) -> None:
    first, second = ask(ledger=book), ask(ledger=book)
    assert first.record == second.record and engine.runs == 1
    assert Ledger.open(book).spent("visits").epsilon == 1
    third = ask(ledger=book, fresh=True)
    assert engine.runs == 2 and third.record["entry"] != first.record["entry"]
    assert Ledger.open(book).spent("visits").epsilon == 2


@pytest.mark.parametrize("change", ["price", "data", "query"])
def test_another_question_is_charged(engine: Engine, book: str, change: str) -> None:
    ask(ledger=book, epsilon="1/2")
    if change == "data":
        engine.data = b"other"
    where = call("=", ColumnName("region"), Constant("north"))
    query = replace(QUERY, where=where) if change == "query" else QUERY
    ask(query, card_of(budget=BUDGET), ledger=book, epsilon="2/3" if change == "price" else "1/2")
    assert engine.runs == 2


def test_other_neighbours_are_refused_and_cost_nothing(engine: Engine, book: str) -> None:
    """What an account sums up is about one kind of neighbours."""
    ask(ledger=book, epsilon="1/2")
    card = card_of(budget=BUDGET)
    other = replace(card, neighbours=replace(card.neighbours, relation="change-one"))
    with pytest.raises(InvalidParameter, match="other neighbours or units; let cards"):
        ask(QUERY, other, ledger=book, epsilon="1/2")
    assert engine.runs == 1 and Ledger.open(book).spent("visits").epsilon == Fraction(1, 2)


@pytest.mark.parametrize("on", [True, False])
def test_collecting_cycles_is_as_it_was(engine: Engine, book: str, on: bool) -> None:
    before = gc.isenabled()
    (gc.enable if on else gc.disable)()
    try:
        ask(ledger=book)
        assert gc.isenabled() is on
        with pytest.raises(InvalidParameter), uncollected():
            assert not gc.isenabled()
            raise InvalidParameter("x", problem="is wrong", remedy="right it")
        assert gc.isenabled() is on
    finally:
        (gc.enable if before else gc.disable)()


def test_what_cannot_be_paid_is_not_run(engine: Engine, book: str) -> None:
    ask(ledger=book, epsilon=1)
    with pytest.raises(BudgetExceeded):
        ask(ledger=book, epsilon="3/2")
    assert engine.runs == 1 and Ledger.open(book).spent("visits").epsilon == 1
    with pytest.raises(BudgetExceeded):
        ask(epsilon=3)
    assert engine.runs == 1


def test_without_a_ledger_the_answer_says_so(engine: Engine) -> None:
    answer = ask()
    assert answer.record["entry"] is None and "Not recorded" in answer.notes[0]
    assert "Not recorded" in str(answer)


def test_the_ledger_of_the_card_cannot_be_avoided(
    engine: Engine, book: str, tmp_path: Path
) -> None:
    card = card_of(budget=BUDGET, ledger=book)
    ask(card=card)
    assert Ledger.open(book).spent("visits").epsilon == 1
    with pytest.raises(InvalidParameter, match="the one that the card names"):
        ask(card=card, ledger=str(tmp_path / "other.ledger"))
    assert ask(card=card, ledger=Ledger.open(book)).record["entry"] is not None


def test_who_may_ask(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotAllowed):
        ask(card=card_of(users=("nobody-else",)))
    monkeypatch.setenv("USER", "nobody-else")
    monkeypatch.setenv("LOGNAME", "nobody-else")
    with pytest.raises(NotAllowed):  # the environment is not asked
        ask(card=card_of(users=("nobody-else",)))
    assert engine.runs == 0
    monkeypatch.undo()
    pwd = pytest.importorskip("pwd")
    person = pwd.getpwuid(os.getuid()).pw_name
    assert person and getpass.getuser()


def test_a_plan_for_another_query_is_refused(engine: Engine) -> None:
    card = card_of()
    plan = planned(QUERY, card, epsilon=1)
    for query, table in ((replace(QUERY, limit=1), card), (QUERY, card_of(name="other"))):
        with pytest.raises(InvalidParameter, match="another query"):
            released(query, table, plan)
    assert engine.runs == 0


def test_having_sees_released_values(engine: Engine) -> None:
    """The mutant: HAVING before the noise would give the true rows every time."""
    condition = call(">", ColumnName("n"), Constant(3))
    query = replace(QUERY, having=condition, order=(OrderBy(name="n", descending=True),))
    seen = set()
    for _ in range(60):
        answer = ask(query, card_of(), epsilon="1/4")
        assert all(value > 3 for value in answer["n"])
        assert answer["n"] == sorted(answer["n"], reverse=True)
        seen.add(None in answer["region"])
    assert seen == {True, False}  # a true count of 3 is shown in some answers, not in others
    assert len(ask(replace(QUERY, limit=1), card_of())) == 1


def test_consistent_answers(engine: Engine, book: str) -> None:
    answer = ask(ledger=book, consistent=True)
    assert answer.totals == {"n": sum(answer["n"])} and min(answer["n"]) >= 0
    assert Ledger.open(book).spent("visits").epsilon == 1
    assert ask(ledger=book).totals is None  # the record holds the answer as it was


CANARY = "canary-831502746913"


class Treacherous(RawNumbers):
    """Raw numbers that break down in the middle of the noise, with a canary on their lips."""

    def __repr__(self) -> str:  # for the frames of this file, which hold it
        return "raw"

    def __getattribute__(self, name: str) -> Any:
        if name == "entries":
            raise RuntimeError("canary-831502746913")
        return object.__getattribute__(self, name)


@pytest.mark.parametrize(
    "raw",
    [
        Treacherous(keys=[("canary-831502746913",)] * 3),
        RawNumbers(keys=[("canary-831502746913",)], entries={"m1": [831502746913]}),
        RawNumbers(keys=RAW.keys, entries={"m1": [831502746913, 831502746913]}),
        RawNumbers(keys=RAW.keys, entries={"m1": [831502746913, 1, CANARY]}),  # type: ignore[list-item]
    ],
    ids=["breaks", "too few keys", "too few entries", "no integer"],
)
def test_failures_tell_nothing_and_stay_charged(
    monkeypatch: pytest.MonkeyPatch, book: str, raw: RawNumbers
) -> None:
    plug_in(monkeypatch, raw)
    with pytest.raises(EngineFailed) as caught:
        ask(ledger=book)
    error = caught.value
    assert error.__context__ is None and error.__cause__ is None
    told = traceback.TracebackException.from_exception(error, capture_locals=True)
    library = [frame for frame in told.stack if "/src/lastbit/" in frame.filename]
    text = str(error) + repr(error) + "".join(str(frame.locals) for frame in library)
    assert library and "831502746913" not in text
    assert "the price stays charged" in str(error)
    assert Ledger.open(book).spent("visits").epsilon == 1


def test_an_engine_that_fails_is_paid_once_and_asked_again_for_nothing(
    monkeypatch: pytest.MonkeyPatch, book: str
) -> None:
    plug_in(monkeypatch, EngineFailed("the statement could not be run"))
    for _ in range(3):
        with pytest.raises(EngineFailed, match="could not be run; the price stays charged"):
            ask(ledger=book)
    assert Ledger.open(book).spent("visits").epsilon == 1
    assert len(Ledger.open(book).unanswered("visits")) == 1
    plug_in(monkeypatch, RAW)
    assert ask(ledger=book).record["entry"]["sequence"] == 5
    assert Ledger.open(book).spent("visits").epsilon == 1


def test_two_columns_of_one_name_are_refused(engine: Engine) -> None:
    edges = (Fraction(0), Fraction(1))
    query = query_of(part("histogram", "h", edges=edges), part("count", "h [0, 1]"))
    with pytest.raises(InvalidParameter, match="one name"):
        ask(query, card_of())
    assert engine.runs == 0
