"""The price is committed before a row is read; one reservation has one answer."""

from __future__ import annotations

import threading
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from lastbit.errors import BudgetExceeded, EngineFailed, InvalidParameter, LastbitError
from lastbit.ledger.ledger import Ledger
from lastbit.release import release
from lastbit.release.answer import Answer
from lastbit.release.release import released
from lastbit.tables.backends.duckdb import engine
from lastbit.tables.card.read import read_card
from lastbit.tables.plan.plan import planned
from lastbit.tables.sql.statement import parsed
from tests.release import canaries
from tests.release.canaries import ALL, write_card

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
    real = engine.aggregates

    def aggregates(*given: Any, **named: Any) -> Any:
        (paid,) = books().unanswered("visits")
        assert paid.cost is not None
        seen.append((int(paid.cost.epsilon), books().spent("visits").epsilon, books().problems()))
        return real(*given, **named)

    monkeypatch.setattr(release, "aggregates", aggregates)
    answer = ask()
    assert seen == [(1, Fraction(1), [])]
    assert ask().record == answer.record and len(seen) == 1


def test_an_answer_takes_two_entries_and_a_repetition_none(folder: Path) -> None:
    ask()
    assert [e.kind for e in books().entries()] == ["opened", "budget", "reserved", "settled"]
    before = Path("visits.ledger").read_bytes()
    ask()
    assert Path("visits.ledger").read_bytes() == before


def test_the_engine_never_runs_for_what_the_ledger_refuses(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(epsilon=7)
    monkeypatch.setattr(release, "aggregates", lambda *_, **__: pytest.fail("it ran"))
    with pytest.raises(BudgetExceeded):
        ask("SELECT COUNT(*) AS n FROM visits", epsilon=2)


def test_a_reservation_is_resumed_though_nothing_is_left(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(release, "aggregates", lambda *_, **__: 1 / 0)
        with pytest.raises(EngineFailed, match="stays charged"):
            ask(epsilon=8)
    assert books().remaining("visits").epsilon == 0  # type: ignore[union-attr]
    assert ask(epsilon=8).record["entry"]["sequence"] == 4
    assert books().spent("visits").epsilon == 8


def test_two_at_once_settle_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both run the engine for one reservation; the slower one gets the answer of the quicker."""
    meet = threading.Barrier(2, timeout=60)
    real = engine.aggregates

    def aggregates(*given: Any, **named: Any) -> Any:
        meet.wait()
        return real(*given, **named)

    ask()  # so that the ledger and the account are there
    monkeypatch.setattr(release, "aggregates", aggregates)
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
    from lastbit.tables.backends.duckdb import engine as duckdb_rehearsal

    class Broken:
        sql = "SELECT nonsense FROM lastbit_table"

    with monkeypatch.context() as patch:
        patch.setattr(duckdb_rehearsal, "statement", lambda *_, **__: Broken)
        with pytest.raises(EngineFailed, match="nothing was charged"):
            ask(fresh=True)
    Path("visits.csv").rename("gone.csv")
    with pytest.raises(LastbitError):
        ask(fresh=True)
    assert books().spent("visits").epsilon == 1 and books().unanswered("visits") == ()


def test_the_rehearsal_sees_no_row(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What would fail on the first row does not fail in it, and is charged."""
    from lastbit.tables.backends.duckdb import engine as duckdb_rehearsal

    class Failing:
        sql = "SELECT error(note) FROM lastbit_table"

    monkeypatch.setattr(duckdb_rehearsal, "statement", lambda *_, **__: Failing)
    card = read_card("visits.toml")
    query = parsed(ALL, card)
    plan = planned(query, card, epsilon=1)
    duckdb_rehearsal.rehearse(query, card, plan.measures)


def test_a_plan_that_the_checker_rejects_is_never_charged(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(import_module("lastbit.verify.certificate"), "problem_of", lambda _: "no")
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
    real = engine.aggregates

    def aggregates(*given: Any, **named: Any) -> Any:
        Path("visits.ledger").unlink()
        if how == "exchanged":
            books()
        elif how == "emptied":
            Path("visits.ledger").touch()
        return real(*given, **named)

    monkeypatch.setattr(release, "aggregates", aggregates)
    with pytest.raises(LastbitError, match="it is unclear whether you were charged") as caught:
        ask()
    assert "stays charged" not in str(caught.value)
    assert caught.value.__context__ is None
