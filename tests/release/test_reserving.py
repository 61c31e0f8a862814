"""The price is committed before a row is read; one reservation has one answer; when is when."""

from __future__ import annotations

import threading
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from lastbit.checker import Rejected, check_price
from lastbit.errors import BudgetExceeded, EngineFailed, InvalidParameter, LastbitError, NotAllowed
from lastbit.kernel import answering
from lastbit.ledger.ledger import Ledger
from lastbit.release import paying
from lastbit.release.answer import Answer
from lastbit.release.paying import Paid, accept_data, answered, checked, reserved
from lastbit.release.release import released
from lastbit.release.table import table
from lastbit.tables.backends import engines, rehearsal
from lastbit.tables.backends.duckdb import files
from lastbit.tables.backends.duckdb.engine import EngineSession
from lastbit.tables.backends.engines import Session
from lastbit.tables.card.read import read_card
from lastbit.tables.plan.plan import planned
from lastbit.tables.sql.statement import parsed
from tests.release import canaries
from tests.release.canaries import ALL, write_card
from tests.tables.connecting import rehearse

canary_folder = canaries.canary_folder


def ask(sql: str = ALL, epsilon: Any = 1, **how: Any) -> Answer:
    card = read_card("visits.toml")
    query = parsed(sql, card)
    return released(query, card, planned(query, card, epsilon=epsilon), **how)


def books() -> Ledger:
    return Ledger.open("visits.ledger")


def test_the_reservation_is_on_the_disk_when_the_engine_starts(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant: a charge after the engine, as it once was."""
    seen = []
    real = Session.aggregates

    def aggregates(*given: Any, **named: Any) -> Any:
        (paid,) = books().unanswered("visits")
        assert paid.cost is not None
        seen.append((int(paid.cost.epsilon), books().spent("visits").epsilon, books().problems()))
        return real(*given, **named)

    monkeypatch.setattr(Session, "aggregates", aggregates)
    answer = ask()
    assert seen == [(1, Fraction(1), [])]
    assert ask().record == answer.record and len(seen) == 1


def test_an_answer_takes_three_entries_and_a_repetition_none(folder: Path) -> None:
    ask()
    assert [e.kind for e in books().entries()] == [
        "opened",
        "budget",
        "reserved",
        "drawn",
        "settled",
    ]
    before = Path("visits.ledger").read_bytes()
    ask()
    assert Path("visits.ledger").read_bytes() == before


def test_the_engine_never_runs_for_what_the_ledger_refuses(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(epsilon=7)
    monkeypatch.setattr(Session, "aggregates", lambda *_, **__: pytest.fail("it ran"))
    with pytest.raises(BudgetExceeded):
        ask("SELECT COUNT(*) AS n FROM visits", epsilon=2)


def test_a_reservation_is_resumed_though_nothing_is_left(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Session, "aggregates", lambda *_, **__: 1 / 0)
        with pytest.raises(EngineFailed, match="stays charged"):
            ask(epsilon=8)
    assert books().remaining("visits").epsilon == 0  # type: ignore[union-attr]
    assert ask(epsilon=8).record["entry"]["sequence"] == 5
    assert books().spent("visits").epsilon == 8


def test_two_at_once_settle_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both run the engine for one reservation; the slower one gets the answer of the quicker."""
    meet = threading.Barrier(2, timeout=60)
    real = Session.aggregates

    def aggregates(*given: Any, **named: Any) -> Any:
        meet.wait()
        return real(*given, **named)

    ask()  # so that the ledger and the account are there
    monkeypatch.setattr(Session, "aggregates", aggregates)
    found: list[Any] = []
    sql = "SELECT COUNT(*) AS n FROM visits"
    threads = [threading.Thread(target=lambda: found.append(ask(sql).record)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 2 and found[0] == found[1]
    assert books().spent("visits").epsilon == 2 and books().problems() == []
    assert [e.kind for e in books().entries()].count("settled") == 2


def test_fresh_reserves_anew_once_it_is_answered(folder: Path) -> None:
    first, second = ask(), ask(fresh=True)
    assert first.record["entry"] != second.record["entry"]
    assert books().spent("visits").epsilon == 2
    assert ask().record == second.record


# ---------------------------------------------------------------- before the reservation


def test_what_must_fail_fails_before_it_is_charged(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask()
    write_card(folder, **{"[columns.note]": "[columns.zoo]"})
    with pytest.raises(InvalidParameter, match="is not in the source"):
        ask(fresh=True)
    write_card(folder)

    class Broken:
        sql = "SELECT nonsense FROM lastbit_table"

    with monkeypatch.context() as patch:
        for module in (engines, rehearsal):
            patch.setattr(module, "statement", lambda *_, **__: Broken)
        with pytest.raises(EngineFailed, match="nothing was charged"):
            ask(fresh=True)
    Path("visits.csv").rename("gone.csv")
    with pytest.raises(LastbitError):
        ask(fresh=True)
    assert books().spent("visits").epsilon == 1 and books().unanswered("visits") == ()


def test_the_rehearsal_sees_no_row(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What would fail on the first row does not fail in it, and is charged."""

    class Failing:
        sql = "SELECT error(note) FROM lastbit_table"

    monkeypatch.setattr(engines, "statement", lambda *_, **__: Failing)
    card = read_card("visits.toml")
    query = parsed(ALL, card)
    plan = planned(query, card, epsilon=1)
    rehearse(query, card, plan.measures)


def test_a_plan_that_the_checker_rejects_is_never_charged(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rejects(*_: Any) -> None:
        raise Rejected("no")

    with monkeypatch.context() as patch:
        patch.setattr(import_module("lastbit.kernel.program"), "check_price", rejects)
        with pytest.raises(LastbitError, match="nothing was charged"):
            ask()
    assert books().spent("visits").epsilon == 0


def test_a_price_off_the_grid_is_refused_before_anything(folder: Path) -> None:
    with pytest.raises(InvalidParameter, match=r"next decimal below is 0\.333333333333"):
        ask(epsilon=Fraction(1, 3) + Fraction(1, 10**999))
    assert not Path("visits.ledger").exists()


@pytest.mark.parametrize("how", ["deleted", "exchanged", "emptied"])
def test_what_cannot_be_known_of_the_price_is_not_said(
    how: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hole: "the price stays charged", of a ledger that was gone."""
    real = Session.aggregates

    def aggregates(*given: Any, **named: Any) -> Any:
        Path("visits.ledger").unlink()
        if how == "exchanged":
            books()
        elif how == "emptied":
            Path("visits.ledger").touch()
        return real(*given, **named)

    monkeypatch.setattr(Session, "aggregates", aggregates)
    with pytest.raises(LastbitError, match="perhaps you were charged") as caught:
        ask()
    assert "stays charged" not in str(caught.value)
    assert caught.value.__context__ is None


# ---------------------------------------------------------------- one step at a time


def accepted_card(folder: Path) -> Any:
    write_card(folder, **{'path = "visits.ledger"': 'path = "visits.ledger"\ndata = "accepted"'})
    card = read_card("visits.toml")
    accept_data(card, who="ada")
    return card


def plan_of(kind: str, card: Any) -> Any:
    if kind == "marginals":
        return table("visits.toml").marginals(["region"], up_to=1).plan(epsilon=1)
    query = parsed(ALL, card)
    return planned(query, card, epsilon=1)


KINDS = pytest.mark.parametrize("kind", ["query", "marginals"])


class Told:
    """Notes what happens, in its order, to a ledger, to the source and in the engine."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.events: list[str] = []
        for name in ("recorded", "reserve", "draw", "settle", "holds"):
            self.note(monkeypatch, Ledger, name)
        self.note(monkeypatch, EngineSession, "fingerprint")
        self.note(monkeypatch, import_module("lastbit.release.release"), "rehearse")
        of_marginals = import_module("lastbit.release.marginals")
        self.note(monkeypatch, of_marginals, "rehearse_marginals", "rehearse")
        self.note(monkeypatch, Session, "aggregates")
        self.note(monkeypatch, Session, "marginal_counts", "aggregates")
        self.note(monkeypatch, answering, "noisy_numbers", "noised")

    def note(self, patch: pytest.MonkeyPatch, where: Any, name: str, as_: str = "") -> None:
        real = getattr(where, name)

        def noted(*given: Any, **named: Any) -> Any:
            self.events.append(as_ or name)
            return real(*given, **named)

        patch.setattr(where, name, noted)

    def wait(self) -> None:
        self.events.append("wait")

    def since(self) -> list[str]:
        found, self.events = self.events, []
        return found


@KINDS
def test_the_order_of_things(kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of mutants: the wait before the noise or after the entry, a look before the price."""
    card = accepted_card(folder)
    plan, told = plan_of(kind, card), Told(monkeypatch)
    checked(plan)
    assert told.since() == ["rehearse"]
    paid = reserved(plan, books=books(), who="ada", principal=None, sql=None)
    assert told.since() == ["recorded", "reserve"]
    assert paid.charged and paid.entry is not None and paid.recorded is None
    assert paid.entry.fingerprint == books().accepted_data("visits", "visits")
    answer = answered(plan, paid, books=books(), who="ada", before_settling=told.wait)
    order = ["fingerprint", "aggregates", "noised", "fingerprint", "draw", "wait", "settle"]
    assert told.since() == order
    assert answer.charged and answer.record["certificate"]["body"]["ledger"] == paid.entry.hash
    again = reserved(plan, books=books(), who="bob", principal=None, sql=None)
    assert again == Paid(recorded=answer.record) and told.since() == ["recorded"]
    shown = answered(plan, again, books=books(), who="bob", before_settling=told.wait)
    assert shown.record == answer.record and not shown.charged and told.since() == ["wait"]


@KINDS
def test_released_is_made_of_these(
    kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = read_card("visits.toml")
    books()  # the very first question is tried before there is a ledger, too
    plan, told = plan_of(kind, card), Told(monkeypatch)
    paid = paying.paid_for(plan, ledger=None, who=None, fresh=False, sql=None)
    order = ["fingerprint", "recorded", "rehearse", "reserve", "aggregates", "noised"]
    assert told.since() == [*order, "fingerprint", "draw", "settle"] and paid.charged
    paying.paid_for(plan, ledger=None, who=None, fresh=False, sql=None)
    assert told.since() == ["fingerprint", "recorded"]


@KINDS
def test_with_accepted_data_no_file_is_opened_before_the_price(
    kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The source may even be gone: that is found out, and paid for, afterwards."""
    plan = plan_of(kind, accepted_card(folder))
    Path("visits.csv").rename("gone.csv")
    with monkeypatch.context() as patch:
        for name in ("_found", "_stamps", "stamp"):
            real = getattr(files, name)

            def opened(source: Any, *more: Any, real: Any = real) -> Any:
                assert not any("visits" in path for path in source.paths)
                return real(source, *more)

            patch.setattr(files, name, opened)
        checked(plan)
        paid = reserved(plan, books=books(), who="ada", principal=None, sql="SELECT 1")
    assert paid.charged and books().spent("visits").epsilon == 1
    with pytest.raises(LastbitError, match="the price stays charged"):
        answered(plan, paid, books=books(), who="ada")
    Path("gone.csv").rename("visits.csv")
    resumed = reserved(plan, books=books(), who="bob", principal=None, sql=None)
    assert resumed.entry == paid.entry and not resumed.charged
    assert answered(plan, resumed, books=books(), who="bob").record["asked"]["sql"] == "SELECT 1"


@KINDS
def test_data_that_are_not_the_accepted_ones_are_not_read(
    kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of(kind, accepted_card(folder))
    paid = reserved(plan, books=books(), who="ada", principal=None, sql=None)
    with Path("visits.csv").open("a", encoding="utf-8") as file:
        file.write("1,North,x,1,1,2020-01-01,2020-01-01\n")
    told = Told(monkeypatch)
    with pytest.raises(NotAllowed, match="a steward has accepted; the price stays charged"):
        answered(plan, paid, books=books(), who="ada", before_settling=told.wait)
    assert told.since() == ["fingerprint", "wait", "holds"]
    with pytest.raises(NotAllowed, match="nothing was charged"):
        paying.paid_for(plan, ledger=None, who=None, fresh=False, sql=None)
    assert books().spent("visits").epsilon == 1


def test_nothing_accepted_nothing_charged(folder: Path) -> None:
    write_card(folder, **{'path = "visits.ledger"': 'path = "visits.ledger"\ndata = "accepted"'})
    plan = plan_of("query", read_card("visits.toml"))
    with pytest.raises(NotAllowed, match="nothing was charged"):
        reserved(plan, books=books(), who="ada", principal=None, sql=None)
    assert books().accounts() == ()


@pytest.mark.parametrize("step", ["aggregates", "noisy_numbers"])
def test_a_failure_is_told_no_sooner_than_an_answer(
    step: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant: a guard of time that an exception passes by."""
    plan = plan_of("query", read_card("visits.toml"))
    paid = reserved(plan, books=books(), who="ada", principal=None, sql=None)
    told = Told(monkeypatch)
    room = answering if step == "noisy_numbers" else Session
    monkeypatch.setattr(room, step, lambda *_, **__: 1 / 0)
    with pytest.raises(EngineFailed, match="the price stays charged"):
        answered(plan, paid, books=books(), who="ada", before_settling=told.wait)
    assert told.since()[-2:] == ["wait", "holds"]


def test_a_wait_that_fails_is_not_repeated(folder: Path) -> None:
    plan, calls = plan_of("query", read_card("visits.toml")), []

    def late() -> None:
        calls.append(1)
        raise TimeoutError("48613.07")

    paid = reserved(plan, books=books(), who="ada", principal=None, sql=None)
    with pytest.raises(EngineFailed, match="nothing was released; the price stays charged"):
        answered(plan, paid, books=books(), who="ada", before_settling=late)
    assert calls == [1] and books().unanswered("visits") == (paid.entry,)


@KINDS
def test_a_reservation_is_answered_by_its_own_question(
    kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the ledger would show one question's numbers for another of the same price."""
    card = read_card("visits.toml")
    query = parsed("SELECT COUNT(*) AS n FROM visits", card)
    other = planned(query, card, epsilon=1)
    paid = reserved(other, books=books(), who="ada", principal=None, sql=None)
    told = Told(monkeypatch)
    with pytest.raises(InvalidParameter, match="is for another question or card"):
        answered(plan_of(kind, card), paid, books=books(), who="ada")
    assert told.since() == ["holds"]  # whether the price is there, for the words; nothing is read
    assert answered(other, paid, books=books(), who="ada").charged


def test_who_refuses_before_the_charge_refuses_it(folder: Path) -> None:
    plan = plan_of("query", read_card("visits.toml"))
    asked: Any = {"books": books(), "who": "ada", "principal": None, "sql": None}
    with pytest.raises(ZeroDivisionError):
        reserved(plan, **asked, before_charging=lambda: 1 / 0)
    assert books().spent("visits").epsilon == 0
    answered(plan, reserved(plan, **asked), books=books(), who="ada")
    reserved(plan, **asked, before_charging=lambda: pytest.fail("nothing is charged"))


@pytest.mark.parametrize("kind", ["query", "marginals"])
def test_the_checker_judges_a_plan_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Failed before: three times for the first question to a ledger, twice for others."""
    judged: list[object] = []

    def counted(*given: Any) -> None:
        judged.append(given)
        check_price(*given)

    monkeypatch.setattr("lastbit.kernel.program.check_price", counted)
    card = read_card("visits.toml")
    for fresh in (False, True):  # a ledger that is not there yet, then one that is
        judged.clear()
        paying.paid_for(plan_of(kind, card), ledger=None, who="ada", fresh=fresh, sql=None)
        assert len(judged) == 1
    judged.clear()  # a server: rehearsed, paid, and answered by another process
    plan = plan_of(kind, card)
    asked: Any = {"books": books(), "who": "ada", "principal": None, "sql": None}
    first = checked(plan)
    paid = reserved(plan, **asked, fresh=True, program=first)
    assert paid.program is first and len(judged) == 1
    answered(plan, Paid(entry=paid.entry), books=books(), who="ada")
    assert len(judged) == 2


def test_a_program_of_another_plan_is_judged_anew(folder: Path) -> None:
    """The mutant: what was accepted at a lower price, passed along with a dearer plan."""
    card = read_card("visits.toml")
    query = parsed(ALL, card)
    cheap, dear = (planned(query, card, epsilon=epsilon) for epsilon in ("1/8", "1/2"))
    asked: Any = {"books": books(), "who": "ada", "principal": None, "sql": None}
    paid = reserved(dear, **asked, program=checked(cheap))
    assert paid.program is not None and paid.program.plan_digest == dear.digest
    assert paid.entry is not None and paid.entry.cost == dear.cost
