"""What fails before the reservation is free, after it is charged once, and nothing is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest

from lastbit.errors import BudgetExceeded, EngineFailed, InvalidParameter, LastbitError, NotAllowed
from lastbit.kernel import answering
from lastbit.ledger.ledger import Ledger
from lastbit.release import paying, release as releasing
from lastbit.release.recorded import question_of_plan
from lastbit.release.release import released
from lastbit.release.table import table
from lastbit.tables.backends.engines import Session
from lastbit.tables.backends.printed import fingerprint
from lastbit.tables.card.read import read_card
from lastbit.tables.compile.duckdb import DUCKDB
from lastbit.tables.compile.statement import statement
from lastbit.tables.plan.plan import planned
from lastbit.tables.sql.statement import parsed
from tests.cli.running import lastbit
from tests.evidence import Extent
from tests.release import canaries
from tests.release.canaries import ALL, ask, write_card, write_duckdb

ROOT = Path(__file__).parents[2]
canary_folder, memory_folder = canaries.canary_folder, canaries.memory_folder


def spent() -> Fraction:
    return Ledger.open("visits.ledger").spent("visits").epsilon


# ---------------------------------------------------------------- at every step


BEFORE = (
    "_check_columns", "opened_ledger", "question_of_program", "_fingerprint", "_runnable",
    "columns_of", "program_of",
)  # fmt: skip
AFTER = (
    "_run", "_noisy", "aggregates", "sealed_integers", "noisy_numbers", "_rows", "shown_rows",
    "_record",
)  # fmt: skip
HOW = [RuntimeError, KeyboardInterrupt, MemoryError]


def fails_at(step: str, how: type[BaseException], monkeypatch: pytest.MonkeyPatch) -> BaseException:
    def failing(*_: Any, **__: Any) -> Any:
        raise how

    with monkeypatch.context() as patch:
        room = next(room for room in (Session, paying, answering, releasing) if step in vars(room))
        patch.setattr(room, step, failing)
        with pytest.raises((how, LastbitError)) as caught:
            ask()
    return caught.value


@pytest.mark.thinned(one_in=9)
@pytest.mark.parametrize("step", BEFORE)
@pytest.mark.parametrize("how", HOW)
def test_nothing_is_charged_before_the_reservation(
    step: str, how: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    Ledger.open("visits.ledger").account("visits", read_card("visits.toml").budget)
    before = Path("visits.ledger").read_bytes()
    fails_at(step, how, monkeypatch)
    assert Path("visits.ledger").read_bytes() == before
    assert ask().record["entry"] is not None and spent() == 1


@pytest.mark.thinned(one_in=9)
@pytest.mark.parametrize("step", AFTER)
@pytest.mark.parametrize("how", HOW)
def test_after_the_reservation_it_stays_charged_and_is_resumed(
    step: str, how: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):
        error = fails_at(step, how, monkeypatch)
        assert how is KeyboardInterrupt or "the price stays charged" in str(error)
        assert spent() == 1 and len(Ledger.open("visits.ledger").unanswered("visits")) == 1
    answer = ask()
    assert answer.record["entry"]["hash"] == Ledger.open("visits.ledger").head and spent() == 1
    assert Ledger.open("visits.ledger").unanswered("visits") == ()
    assert ask().record == answer.record and spent() == 1


@pytest.mark.thinned(one_in=9)
@pytest.mark.parametrize("how", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("step", ["reserve", "settle"])
def test_after_a_commit_the_answer_is_there_to_be_asked_for(
    step: str, how: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = getattr(Ledger, step)

    def committed(self: Ledger, *given: Any, **named: Any) -> Any:
        real(self, *given, **named)
        raise how

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, step, committed)
        with pytest.raises((how, LastbitError)):
            ask()
    assert spent() == 1
    head = Ledger.open("visits.ledger").head
    assert (ask().record["entry"]["hash"] == head) == (step == "settle") and spent() == 1


@pytest.mark.apart
def test_killed_at_many_points(memory: Path, extent: Extent) -> None:
    scratch = memory / "scratch"
    scratch.mkdir()
    ran = subprocess.run(
        [sys.executable, "-m", "tests.faults.killing_queries", str(memory), extent.name],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=300,
        env={**os.environ, "TMPDIR": str(scratch)},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    report = json.loads(ran.stdout)
    if report == "untraceable":
        pytest.skip("this system does not let a process trace its own child")
    assert set(report) <= {"not charged", "reserved", "settled", "settled, shown", "done"}
    assert report["not charged"] >= 1
    if extent.is_many:
        assert report["not charged"] > 10 and report["reserved"] > 10 and report["settled"] > 5


# ---------------------------------------------------------------- whose, and where


def test_users_who_are_not_on_the_card(folder: Path) -> None:
    text = Path("visits.toml").read_text("utf-8")
    Path("visits.toml").write_text(text + '[access]\nusers = ["nobody-else"]\n', "utf-8")
    with pytest.raises(NotAllowed):
        ask()
    result = lastbit("query", "visits.toml", ALL, "--epsilon", "1")
    assert result.exit_code == 2 and "nobody-else" not in result.output
    assert not Path("visits.ledger").exists()


REFUSED_FIRST: dict[str, dict[str, str]] = {
    "a source that is not there": {'"visits.csv"': '"elsewhere.csv"'},
    "a column that is not there": {"columns.age]": "columns.years]"},
    "a budget that is too small": {"epsilon = 8": "epsilon = 0.5"},
    "data that nobody accepted": {'"visits.ledger"': '"visits.ledger"\ndata = "accepted"'},
}


@pytest.mark.parametrize("what", REFUSED_FIRST)
def test_a_first_question_that_is_refused_leaves_no_ledger(what: str, folder: Path) -> None:
    write_card(folder, **REFUSED_FIRST[what])
    question = "SELECT COUNT(*) AS n FROM visits"
    with pytest.raises(LastbitError):
        ask(question)
    assert lastbit("query", "visits.toml", question, "--epsilon", "1").exit_code == 2
    if "not there" in what:
        assert lastbit("ledger", "accept", "visits.toml").exit_code == 2
    assert not list(folder.glob("*.ledger*"))
    write_card(folder)
    assert ask(question).charged


def test_a_ledger_by_any_name_is_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = ask()
    (folder / "deep").mkdir()
    os.symlink(folder / "visits.ledger", folder / "deep" / "link.ledger")
    write_card(folder, **{'"visits.ledger"': '"deep/link.ledger"'})
    assert ask().record == first.record
    assert os.path.isabs(read_card("visits.toml").ledger or "")  # the same, wherever we go
    card = read_card(folder / "visits.toml")
    query = parsed(ALL, card)
    plan = planned(query, card, epsilon=1)
    assert released(query, card, plan, ledger="visits.ledger").record == first.record
    monkeypatch.chdir(folder / "deep")
    assert released(query, card, plan, ledger="../visits.ledger").record == first.record
    assert released(query, card, plan, ledger="link.ledger").record == first.record
    with pytest.raises(InvalidParameter, match="the card names"):
        released(query, card, plan, ledger="visits.ledger")


def test_two_cards_of_one_account_agree_on_the_budget(folder: Path) -> None:
    ask()
    for old, new in (("epsilon = 8", "epsilon = 80"), ("delta = 1e-4\n", "")):
        write_card(folder, **{old: new})
        with pytest.raises(InvalidParameter, match="not the one that the ledger has"):
            ask()
    write_card(folder)
    card = read_card("visits.toml")
    query = parsed(ALL, card)
    with pytest.raises(BudgetExceeded):
        released(query, card, planned(query, card, epsilon=8))
    assert spent() == 1


# ---------------------------------------------------------------- a card, or data, edited between


EDITS = {
    "bounds": ("bounds = [0, 50000]", "bounds = [0, 60000]"),
    "step": ("step = 0.0001", "step = 0.001"),
    "no step": ("step = 0.0001\n", ""),
    "keys": ('keys = ["North", "East"]', 'keys = ["North", "East", "West"]'),
    "order of keys": ('keys = ["North", "East"]', 'keys = ["East", "North"]'),
    "nullable": ("step = 0.0001", "step = 0.0001\nnullable = false"),
    "max_rows": ("max_rows = 3", "max_rows = 4"),
    "max_groups": ("max_groups = 2", "max_groups = 1"),
    "type of the unit": ('[columns.patient]\ntype = "integer"', '[columns.patient]\ntype = "text"'),
    "type of a column": (
        '[columns.age]\ntype = "integer"', '[columns.age]\ntype = "number"\nstep = 1',
    ),
}  # fmt: skip


def made_of(sql: str) -> tuple[str, str]:
    """What runs for a question, and the digest under which its answer is kept."""
    card = read_card("visits.toml")
    query = parsed(sql, card)
    plan = planned(query, card, epsilon=1)
    runs = statement(query, card, plan.measures, secret="s", dialect=DUCKDB).sql
    return runs + json.dumps(plan.to_json()), question_of_plan(plan, "data")


@pytest.mark.thinned(one_in=9)
@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_card_is_another_question(edit: str, folder: Path) -> None:
    before = made_of(ALL)
    assert made_of(ALL) == before
    first = ask()
    write_card(folder, **dict([EDITS[edit]]))
    after = made_of(ALL)
    assert after[0] != before[0] and after[1] != before[1]
    assert ask().record["entry"]["hash"] != first.record["entry"]["hash"] and spent() == 2


def test_other_neighbours_are_another_question_of_another_account(folder: Path) -> None:
    before, _ = made_of(ALL), ask()
    write_card(folder, **{'"add-remove"': '"change-one"'})
    after = made_of(ALL)
    assert after[0] != before[0] and after[1] != before[1]
    with pytest.raises(InvalidParameter, match="other neighbours or units"):
        ask()
    assert spent() == 1


def test_another_unit_is_another_question(folder: Path) -> None:
    sql = "SELECT COUNT(*) AS n FROM visits"
    before = made_of(sql)
    write_card(folder, **{'column = "patient"': 'column = "age"'})
    after = made_of(sql)
    assert after[0] != before[0] and after[1] != before[1]


def test_types_of_the_columns_of_a_filter_count(folder: Path) -> None:
    """The mutant: a digest of the query alone, in which a column is no more than its name."""
    sql = "SELECT COUNT(*) AS n FROM visits WHERE note IS NOT NULL"
    before = made_of(sql)
    write_card(folder, **{'[columns.note]\ntype = "text"': '[columns.note]\ntype = "date"'})
    after = made_of(sql)
    assert after[0] != before[0] and after[1] != before[1]
    other = {'[columns.seen]\ntype = "timestamp"': '[columns.seen]\ntype = "text"'}
    write_card(folder, **other)
    assert made_of(sql) == before  # a column that the question does not mention may change


def test_another_table_of_the_same_file_is_another_question(folder: Path) -> None:
    import duckdb

    write_duckdb(folder / "visits.duckdb")
    with duckdb.connect("visits.duckdb") as connection:
        connection.execute("CREATE TABLE others AS SELECT * FROM visits LIMIT 1")
    write_card(folder, '{duckdb = "visits.duckdb", table = "visits"}')
    first = ask()
    write_card(folder, '{duckdb = "visits.duckdb", table = "others"}')
    assert ask().record["entry"]["hash"] != first.record["entry"]["hash"] and spent() == 2


def public_card(folder: Path, content: str) -> None:
    (folder / "areas.csv").write_text(content, "utf-8")
    path = write_card(folder)
    more = '[public.areas]\nsource = "areas.csv"\ncolumns = {region = "text", area = "text"}\n'
    path.write_text(path.read_text("utf-8") + more, "utf-8")


def test_the_content_of_a_public_table_counts(folder: Path) -> None:
    sql = "SELECT COUNT(*) AS n FROM visits JOIN areas USING (region) WHERE area = 'a'"
    public_card(folder, "region,area\nNorth,a\nEast,b\n")
    first = ask(sql)
    assert ask(sql).record == first.record
    public_card(folder, "region,area\nNorth,b\nEast,a\n")
    assert ask(sql).record["entry"]["hash"] != first.record["entry"]["hash"] and spent() == 2


@pytest.mark.parametrize("when", ["before it is read", "after it is read"])
def test_data_changed_between_fingerprint_and_charge(
    when: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the ledger would keep an answer under the fingerprint of data that it is not of."""
    real: Callable[..., Any] = answering._noisy

    def changing(*given: Any) -> Any:
        found = real(*given) if when == "after it is read" else None
        with Path("visits.csv").open("a", encoding="utf-8") as file:
            file.write("1,North,x,1,1,2020-01-01,2020-01-01\n")
        return found or real(*given)

    with monkeypatch.context() as patch:
        patch.setattr(answering, "_noisy", changing)
        with pytest.raises(EngineFailed, match="changed"):
            ask()
    assert spent() == 1  # whether they changed is the data's, so it is charged
    ask()
    assert spent() == 2  # other data are another question


def test_an_answer_of_old_data_is_not_given_for_new(folder: Path) -> None:
    first = ask()
    card = read_card("visits.toml")
    before = fingerprint(card)
    content = Path("visits.csv").read_bytes()
    Path("new.csv").write_bytes(content.replace(b"North", b"South"))
    os.replace("new.csv", "visits.csv")
    assert fingerprint(card) != before
    assert ask().record["entry"]["hash"] != first.record["entry"]["hash"] and spent() == 2


def test_a_plan_of_another_card_is_refused(folder: Path) -> None:
    card = read_card("visits.toml")
    query = parsed(ALL, card)
    plan = planned(query, card, epsilon=1)
    for other in (replace(card, max_rows=1), replace(card, ledger=None)):
        with pytest.raises(InvalidParameter, match="another query"):
            released(query, other, plan)
    assert not Path("visits.ledger").exists()


def test_a_spill_that_is_full_is_charged_and_resumed_with_more_room(tmp_path: Path) -> None:
    """Whether a question fits may depend on the rows, so its failure is paid for."""
    duckdb.sql(f"COPY (SELECT range AS who FROM range(2000000)) TO '{tmp_path}/t.parquet'")
    text = '[table]\nname = "t"\nsource = "t.parquet"\nneighbours = "add-remove"\n'
    text += '[unit]\ncolumn = "who"\nmax_rows = 2\n[budget]\nepsilon = 9\n'
    text += '[columns.who]\ntype = "integer"\n'
    little = '[engine]\nmax_memory = "15MB"\nmax_spill = "1MB"\nthreads = 1\n'
    question, books = "SELECT count(*) FROM t", Ledger.open(tmp_path / "t.ledger")
    for limits in (little, little, ""):
        (tmp_path / "t.toml").write_text(text + limits)
        asked = table(tmp_path / "t.toml").sql(question)
        if limits:
            with pytest.raises(EngineFailed, match=r"max_spill on the card.*stays charged"):
                asked.release(epsilon=1)
        else:
            assert not asked.release(epsilon=1).charged
        assert books.spent("t").epsilon == 1
