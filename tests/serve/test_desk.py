"""Questions at the desk: priced, paid for, answered at the end of a slot, refused."""

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import pytest

from lastbit.checker import check
from lastbit.errors import InvalidParameter
from lastbit.serve.catalogue import Catalogue
from lastbit.serve.problems import refusal_of
from lastbit.serve.questions import Question, Refusal
from lastbit.serve.settings import Settings
from lastbit.serve.slots import Slots
from lastbit.serve.store import Store
from tests.serve.desks import (
    ANA,
    BEN,
    BY_REGION,
    COUNT,
    OTTO,
    STELLA,
    Running,
    identity,
    running,
    write_rows,
    written,
)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(written(tmp_path_factory.mktemp("desk"), "visits", "costs")) as found:
        yield found


def spent(desk: Running) -> Fraction:
    return desk.ledger.spent("patients").epsilon


def test_an_answer_is_paid_for_settled_and_checked(desk):
    before = spent(desk)
    job = desk.asked(BY_REGION, epsilon="1/2")
    assert spent(desk) == before + Fraction(1, 2)  # committed before anything else happens
    assert job.state in ("waiting", "running") and job.entry is None and job.due > job.submitted
    assert job.cost == {"epsilon": "1/2", "delta": "0", "rho": "0"}
    job = desk.finished(job)
    assert job.state == "answered" and job.slots in (1, 2, 4) and job.reason is None
    record = desk.desk.answer(job.entry, ANA)
    assert record["table"] == "visits" and len(record["rows"]) == 2
    check(record["certificate"])
    entry = desk.ledger.entry(job.entry)
    assert (entry.kind, entry.who) == ("settled", "ana")
    assert desk.ledger.problems() == []


def test_a_recorded_answer_is_free_and_takes_the_slots_it_had(desk):
    first = desk.answer("SELECT COUNT(*) AS once FROM visits WHERE cost < 10")
    before = spent(desk)
    preview = desk.do(desk.desk.preview("visits", first.question, STELLA))
    assert preview.recorded == first.entry
    again = desk.asked(first.question.sql, who=STELLA)
    assert again.cost is None and again.entry is None  # which is not said before its slot has ended
    again = desk.finished(again, STELLA)
    assert (again.entry, again.slots) == (first.entry, first.slots)
    assert spent(desk) == before


def test_fresh_noise_is_paid_for(desk):
    first = desk.answer("SELECT COUNT(*) AS fresh FROM visits WHERE cost < 11")
    before = spent(desk)
    again = desk.answer(first.question.sql, epsilon="1", fresh=True)
    assert again.entry != first.entry and spent(desk) == before + 1


def test_a_part_of_an_answer_on_record_is_free(desk):
    desk.answer("SELECT region, COUNT(*) AS part FROM visits GROUP BY region")
    before = spent(desk)
    part = "SELECT region, COUNT(*) AS part FROM visits GROUP BY region ORDER BY part DESC LIMIT 1"
    job = desk.answer(part)
    assert job.state == "answered" and spent(desk) in (before, before + 1)


def test_the_same_key_is_the_same_job_and_another_question_under_it_is_refused(desk):
    sql = "SELECT COUNT(*) AS keyed FROM visits WHERE cost < 13"
    before = spent(desk)
    questions = [Question(sql=sql, epsilon="1", fresh=True)] * 6
    jobs = desk.all(*(desk.desk.submit("visits", q, ANA, key="k1") for q in questions))
    assert len({job.id for job in jobs}) == 1 and spent(desk) == before + 1
    with pytest.raises(Refusal, match="another question") as caught:
        desk.asked(COUNT, key="k1")
    assert caught.value.status == 422
    done = desk.finished(jobs[0])
    assert desk.asked(sql, key="k1", epsilon="1", fresh=True) == done
    assert desk.asked(sql, key="k1", who=STELLA).id != done.id  # keys are their owner's
    for key in ("", "x" * 201, "a\nb"):
        with pytest.raises(Refusal, match="1 to 200 letters"):
            desk.asked(sql, key=key)


def test_what_is_open_is_resumed_at_no_charge(desk):
    """A server that ends between reservation and job leaves an open reservation."""
    question = Question(sql="SELECT COUNT(*) AS lost FROM visits WHERE cost < 14", epsilon="1")
    before = spent(desk)
    desk.do(desk.desk._planner.reserve("visits", question, "ana"))
    assert spent(desk) == before + 1
    # who asks the same has it too; who has paid for it is told so, and nobody else
    others = desk.do(desk.desk.submit("visits", question, STELLA))
    job = desk.finished(desk.do(desk.desk.submit("visits", question, ANA, key="lost")))
    assert job.state == "answered" and spent(desk) == before + 1
    assert job.cost is not None and desk.finished(others, STELLA).entry == job.entry
    assert others.cost is None


def test_two_askers_of_one_open_question_get_one_answer(desk):
    question = Question(sql="SELECT COUNT(*) AS both FROM visits WHERE cost < 15", epsilon="1")
    before = spent(desk)
    jobs = desk.all(*(desk.desk.submit("visits", question, who) for who in (ANA, STELLA, ANA)))
    found = [desk.finished(job, STELLA) for job in jobs]
    assert len({job.id for job in found}) == 3 and len({job.entry for job in found}) == 1
    assert {job.slots for job in found} == {found[0].slots} and spent(desk) == before + 1
    assert [job.cost is None for job in found].count(False) == 1  # one was charged, and is told so


# ---------------------------------------------------------------- who sees what


def test_tables_are_seen_by_those_with_an_allowance(desk):
    seen = desk.desk.catalogue.seen_by
    assert [t.name for t in seen(ANA)] == ["visits", "costs"] == [t.name for t in seen(OTTO)]
    assert seen(BEN) == []
    assert [t.name for t in seen(identity("ana", "analyst", frozenset({"costs"})))] == ["costs"]
    for who in (BEN, identity("ana", "analyst", frozenset({"costs"}))):
        with pytest.raises(Refusal, match="no such table"):
            desk.asked(who=who)


def test_jobs_are_their_askers_and_the_stewards(desk):
    job = desk.answer("SELECT COUNT(*) AS mine FROM visits WHERE cost < 16")
    assert desk.desk.job(job.id, ANA) == desk.desk.job(job.id, STELLA) == job
    assert job in desk.desk.jobs(ANA) and job in desk.desk.jobs(STELLA)
    for who in (BEN, OTTO, identity("ana", "analyst", frozenset({"costs"}))):
        assert job not in desk.desk.jobs(who)
        with pytest.raises(Refusal, match="no such job"):
            desk.desk.job(job.id, who)


def test_answers_are_seen_by_those_who_may_ask_their_table(desk):
    job = desk.answer("SELECT COUNT(*) AS seen FROM visits WHERE cost < 17")
    (line,) = (line for line in desk.desk.answers(OTTO) if line.entry == job.entry)
    assert (line.table, line.title, line.principal) == ("visits", "seen", "ana")
    assert line.sql == job.question.sql and line.cost["epsilon"] == "1"
    assert desk.desk.answer(job.entry, OTTO)["table"] == "visits"
    narrow = identity("stella", "steward", frozenset({"costs"}))
    assert desk.desk.answers(BEN) == [] == desk.desk.answers(narrow)
    for entry, who in ((job.entry, BEN), (job.entry, narrow), (1, ANA), (0, ANA), (10**30, ANA)):
        with pytest.raises(Refusal, match="no such answer"):
            desk.desk.answer(entry, who)


# ---------------------------------------------------------------- before paying


def test_a_preview_says_price_error_and_what_is_left(desk):
    question = Question(sql=BY_REGION, epsilon="0.3")
    before = spent(desk)
    preview = desk.do(desk.desk.preview("visits", question, ANA))
    assert preview.cost["epsilon"] == "3/10" and preview.refused is None
    allowance = desk.ledger.allowances("patients", "ana")[0]
    assert preview.left == {"epsilon": str(allowance.left.epsilon - Fraction(3, 10))}
    assert preview.facts[0][0] == "price" and preview.columns[0][0] == "what"
    assert preview.prices[0][0] == "at a price of" and spent(desk) == before
    assert desk.do(desk.desk.preview("visits", question, ANA)) == preview
    mine = desk.do(desk.desk.preview("visits", question, STELLA)).left
    assert Fraction(mine["epsilon"]) == 100 - before - Fraction(3, 10)


def test_a_wanted_error_becomes_a_price(desk):
    question = Question(sql=COUNT, within="100")
    preview = desk.do(desk.desk.preview("visits", question, ANA))
    assert 0 < Fraction(preview.cost["epsilon"]) < 1
    assert desk.answer(f"{COUNT} WHERE cost < 77", within="100").cost == preview.cost


def test_a_preview_says_what_would_be_refused_and_asking_is_refused_and_free(desk):
    question, before = Question(sql=COUNT, epsilon="1000"), spent(desk)
    preview = desk.do(desk.desk.preview("visits", question, ANA))
    assert "only" in preview.refused and preview.left is None
    with pytest.raises(Refusal) as caught:
        desk.do(desk.desk.submit("visits", question, ANA))
    assert (caught.value.kind, caught.value.status) == ("over-budget", 403)
    assert spent(desk) == before


@pytest.mark.parametrize(
    "sql", ["SELECT patient FROM visits", "SELECT COUNT(*) FROM secrets", "DROP TABLE visits", "("]
)
def test_questions_that_have_no_answer_are_refused_and_free(desk, sql):
    question, before = Question(sql=sql, epsilon="1"), spent(desk)
    for refused in (desk.desk.preview, desk.desk.made_up, desk.desk.submit):
        with pytest.raises(Refusal) as caught:
            desk.do(refused("visits", question, ANA))
        assert caught.value.status == 422 and caught.value.detail
    assert spent(desk) == before


def test_an_answer_on_made_up_rows_is_free_and_says_so(desk):
    before = spent(desk)
    record = desk.do(desk.desk.made_up("visits", Question(sql=BY_REGION, epsilon="1"), ANA))
    assert len(record["rows"]) == 2 and spent(desk) == before
    assert "made" in str(record["notes"]) + str(record["guarantee"])


# ---------------------------------------------------------------- limits


def test_a_full_queue_refuses_before_it_charges(tmp_path):
    with running(written(tmp_path), most_waiting=3, slot=2.0) as desk:
        questions = [
            Question(sql=f"SELECT COUNT(*) AS n FROM visits WHERE cost < {i}", epsilon="1")
            for i in range(9)
        ]
        found = desk.all(*(desk.desk.submit("visits", q, ANA) for q in questions))
        refused = [one for one in found if isinstance(one, Refusal)]
        assert 5 <= len(refused) <= 6
        for one in refused:
            assert (one.status, one.kind, one.headers) == (503, "queue-full", {"Retry-After": "2"})
        assert spent(desk) == 9 - len(refused)


def test_of_a_race_for_the_last_of_it_exactly_what_fits_is_paid(tmp_path):
    with running(written(tmp_path, budget="epsilon = 3", allowance="2.5")) as desk:
        questions = [
            Question(sql=f"SELECT COUNT(*) AS n FROM visits WHERE cost < {i}", epsilon="1/2")
            for i in range(32)
        ]
        found = desk.all(
            *(desk.desk.submit("visits", q, (ANA, STELLA)[i % 2]) for i, q in enumerate(questions))
        )
        refused = [one for one in found if isinstance(one, Refusal)]
        assert len(refused) == 26 and {one.kind for one in refused} == {"over-budget"}
        assert spent(desk) == 3
        (allowance,) = desk.ledger.allowances("patients", "ana")
        assert allowance.used.epsilon <= Fraction(5, 2)
        jobs = [desk.finished(job, STELLA) for job in found if not isinstance(job, Refusal)]
        settled = [entry for entry in desk.ledger.entries() if entry.kind == "settled"]
        assert len(settled) == sum(job.state == "answered" for job in jobs)
        assert desk.ledger.problems() == []


def test_changed_data_stop_answers_until_a_steward_accepts_them(tmp_path):
    cards = written(tmp_path)
    with running(cards) as desk:
        table = desk.desk.catalogue.tables["visits"]
        first = desk.answer("SELECT COUNT(*) AS n FROM visits WHERE cost < 1", who=ANA)
        assert first.state == "answered" and table.changed() is False
        old = (tmp_path / "visits.parquet").stat()
        os.rename(tmp_path / "visits.parquet", tmp_path / "old.parquet")
        write_rows(tmp_path, units=50)
        job = desk.answer(
            "SELECT COUNT(*) AS n FROM visits WHERE cost < 2"
        )  # is charged: nobody had looked
        assert job.state == "no answer" and "accepted" in str(job.reason) and table.changed()
        assert len(desk.ledger.unanswered("patients")) == 1
        with pytest.raises(Refusal, match="accept") as caught:
            desk.asked("SELECT COUNT(*) AS n FROM visits WHERE cost < 3")
        assert caught.value.status == 409 and spent(desk) == 2
        os.rename(tmp_path / "old.parquet", tmp_path / "visits.parquet")
        assert (tmp_path / "visits.parquet").stat().st_mtime_ns == old.st_mtime_ns
        table._found.clear()  # as the next look would
        again = desk.answer("SELECT COUNT(*) AS n FROM visits WHERE cost < 2")
        assert again.state == "answered" and spent(desk) == 2  # resumed
        write_rows(tmp_path, units=60)
        with pytest.raises(Refusal, match="steward"):
            desk.do(desk.desk.accept("visits", ANA))
        desk.do(desk.desk.accept("visits", STELLA))
        assert table.changed() is False
        fresh = desk.answer("SELECT COUNT(*) AS n FROM visits WHERE cost < 1")
        assert fresh.entry != first.entry and spent(desk) == 3  # about other data
        assert [e.who for e in desk.ledger.entries() if "accepted" in (e.words or "")][
            -1
        ] == "stella"


def test_changed_data_are_noticed_before_somebody_pays(tmp_path, monkeypatch):
    monkeypatch.setattr("lastbit.serve.station._LOOKING", 4.0)
    monkeypatch.setattr("lastbit.serve.station._EVERY", 0.0)
    with running(written(tmp_path)) as desk:
        table = desk.desk.catalogue.tables["visits"]

        def waited(wanted: bool) -> None:
            deadline = time.monotonic() + 90
            while table.changed() is not wanted:
                assert time.monotonic() < deadline
                time.sleep(0.05)

        assert table.changed() is None
        waited(False)
        write_rows(tmp_path, units=50)
        waited(True)
        with pytest.raises(Refusal, match="nothing was charged"):
            desk.asked()
        assert spent(desk) == 0


def test_a_worker_that_dies_gives_no_answer_and_the_next_one_is_fine(tmp_path):
    with running(written(tmp_path)) as desk:
        job = desk.asked(f"{COUNT} WHERE cost < 1")
        while desk.desk.job(job.id, ANA).state == "waiting":
            time.sleep(0.005)
        pid = desk.desk._stations["visits"].worker.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)  # as a system without memory does
        job = desk.finished(job)
        assert job.state == "no answer" and "charged again" in str(job.reason) and not job.entry
        assert desk.ledger.unanswered("patients") == () and spent(desk) == 1
        assert desk.ledger.entries()[-1].kind == "voided"
        again = desk.answer(f"{COUNT} WHERE cost < 1")
        assert again.state == "answered" and spent(desk) == 2  # charged again


def test_what_takes_too_long_is_ended_charged_and_closed(tmp_path):
    with running(written(tmp_path), strict=True) as desk:
        worker = desk.desk._stations["visits"].worker
        old = worker.pid
        assert old is not None
        os.kill(old, signal.SIGSTOP)  # a statement that does not end
        job = desk.answer("SELECT COUNT(*) AS n FROM visits WHERE cost < 1")
        assert (job.state, job.slots) == ("no answer", None)
        assert worker.pid != old and desk.ledger.entries()[-1].kind == "voided"
        assert not os.path.exists(f"/proc/{old}")
        preview = desk.do(desk.desk.preview("visits", job.question, ANA))
        assert preview.recorded is None


def test_a_stopped_server_goes_on_where_it_was(tmp_path):
    cards = written(tmp_path)
    with running(cards) as desk:
        jobs = [desk.asked(f"SELECT COUNT(*) AS n FROM visits WHERE cost < {i}") for i in range(3)]
    with running(cards) as desk:
        found = [desk.finished(job) for job in jobs]
        assert {job.state for job in found} == {"answered"} and spent(desk) == 3
        assert desk.desk.unclaimed == () and desk.desk.unwell is None
    with running(cards) as desk:
        assert [desk.desk.job(job.id, ANA) for job in found] == [
            replace(job, slot=1.0) for job in found
        ]
        desk.do(desk.desk.stop())
        assert desk.desk.unwell == "stopping" and desk.desk.jobs(ANA)  # pages are still shown
        for refused in (desk.desk.preview, desk.desk.submit):
            with pytest.raises(Refusal, match="nothing was charged") as caught:
                desk.do(refused("visits", Question(sql=COUNT, epsilon="1"), ANA))
            assert (caught.value.status, caught.value.kind) == (503, "stopping")


def test_one_server_for_a_folder_of_state(tmp_path):
    cards = written(tmp_path)
    with running(cards), pytest.raises(InvalidParameter, match="another server"), running(cards):
        pass


def test_cards_of_several_ledgers_are_refused(tmp_path):
    one, other = written(tmp_path / "one"), written(tmp_path / "other", "costs")
    settings = Settings(cards=(*one, *other), state=tmp_path / "state", slot=1.0)
    with pytest.raises(InvalidParameter, match="another ledger"):
        Catalogue(settings, Store(tmp_path / "state"))
    twice = replace(settings, cards=(*one, tmp_path / "one" / "." / "visits.toml"))
    assert len(Catalogue(twice, Store(tmp_path / "state")).tables) == 1


def test_cards_of_one_account_promise_the_same_and_data_have_one_account(tmp_path, caplog):
    cards = written(tmp_path, "visits", "costs")
    settings, store = Settings(cards=cards, state=tmp_path / "state"), Store(tmp_path / "state")
    assert len(Catalogue(settings, store).tables) == 2
    text = cards[1].read_text()
    for old, new in (
        ('"add-remove"', '"change-one"'),
        ('column = "patient"\nmax_rows = 3', "each_row = true"),
    ):
        assert old in text
        wrong = text.replace(old, new)
        cards[1].write_text(wrong)
        with pytest.raises(InvalidParameter, match="sums of the two would promise nothing"):
            Catalogue(settings, store)
        cards[1].write_text(wrong.replace('"patients"', f'"others {len(new)}"'))
        assert len(Catalogue(settings, store).tables) == 2
    assert "two accounts" not in caplog.text
    cards[1].write_text(text.replace('"patients"', '"more"').replace("costs.parq", "visits.parq"))
    assert len(Catalogue(settings, store).tables) == 2
    assert "visits and costs read the same data and have two accounts" in caplog.text


def test_a_steward_hears_of_answers_in_their_last_slot(tmp_path, monkeypatch, caplog):
    words = "a question about visits took its last slot; where that happens often, pass a longer"
    with running(written(tmp_path), slot=0.5) as desk:
        desk.answer(COUNT)
        caplog.clear()
        monkeypatch.setattr(Slots, "ready", lambda *_: 2)
        desk.answer(f"{COUNT} WHERE cost < 1")
        assert words not in caplog.text
        monkeypatch.setattr(Slots, "ready", lambda *_: 4)
        job = desk.answer(f"{COUNT} WHERE cost < 2")
        assert job.slots == 4 and f"{words} one: --slot 1" in caplog.text
        caplog.clear()
        assert desk.answer(f"{COUNT} WHERE cost < 2").slots == 4  # on record: nothing was late
        assert words not in caplog.text


def test_users_of_the_card_are_the_only_ones_who_ask(tmp_path):
    (card,) = written(tmp_path)
    card.write_text(
        card.read_text().replace(
            "[columns.patient]", '[access]\nusers = ["stella"]\n[columns.patient]'
        )
    )
    with running((card,)) as desk:
        with pytest.raises(Refusal, match="does not let ana ask; nothing was charged") as caught:
            desk.asked()
        assert (caught.value.status, caught.value.kind, spent(desk)) == (403, "not-allowed", 0)
        assert desk.asked(who=STELLA).cost is not None


@pytest.mark.parametrize("budget", ["epsilon = 100", "rho = 100"])
def test_prices_that_would_buy_questions_without_end_are_refused(tmp_path, budget):
    currency = budget.split()[0]
    with running(written(tmp_path, budget=budget)) as desk:
        for work in (desk.desk.preview, desk.desk.submit):
            with pytest.raises(
                Refusal, match=f"10,000th of the budget.* {currency} = 0.01 or more"
            ):
                desk.do(work("visits", Question(sql=COUNT, **{currency: "0.0099"}), STELLA))
        assert desk.asked(who=STELLA, **{currency: "0.01"}).cost is not None


def test_one_principal_has_a_part_of_the_line(tmp_path):
    with running(written(tmp_path), most_waiting=10, slot=3.0) as desk:
        first = desk.answer()
        found = desk.all(*(desk.desk.submit("visits", first.question, ANA) for _ in range(9)))
        refused = [one for one in found if isinstance(one, Refusal)]
        assert len(refused) == 4 and {one.kind for one in refused} == {"queue-full"}
        assert "of yours" in refused[0].detail and spent(desk) == 1
        assert desk.asked(who=STELLA).state == "waiting"


def test_jobs_that_a_restored_ledger_does_not_have_are_forgotten(tmp_path):
    cards = written(tmp_path)
    with running(cards) as desk:
        kept = desk.answer()
        desk.ledger.backup(tmp_path / "copy.ledger")
        later = desk.answer(f"{COUNT} WHERE cost < 1")
        again = desk.answer(f"{COUNT} WHERE cost < 1")
        open_one = desk.asked(f"{COUNT} WHERE cost < 2")
    os.replace(tmp_path / "copy.ledger", tmp_path / "hospital.ledger")
    with running(cards) as desk:
        other = desk.answer(f"{COUNT} WHERE cost < 3")
        assert other.state == "answered" and desk.desk.unwell is None
        assert desk.desk.job(kept.id, ANA).entry == kept.entry and later.entry == again.entry
        for job in (later, again, open_one):
            with pytest.raises(Refusal, match="no such job"):
                desk.desk.job(job.id, ANA)


def test_children_of_another_card_are_not_started(tmp_path):
    (card,) = written(tmp_path)
    with running((card,)) as desk:
        card.write_text(card.read_text().replace("max_rows = 3", "max_rows = 4"))
        assert desk.answer().state == "answered"  # by the card that it was started with
        desk.do(desk.desk._planner.stop())
        with pytest.raises(Refusal, match="nothing was charged") as caught:
            desk.asked(f"{COUNT} WHERE cost < 1")
        assert (caught.value.status, caught.value.kind, spent(desk)) == (503, "card-changed", 1)
        card.write_text(card.read_text().replace("max_rows = 4", "max_rows = 3"))
        assert desk.answer(f"{COUNT} WHERE cost < 1").state == "answered"


@pytest.mark.parametrize("content", [None, b"not a ledger" * 500])
def test_nobody_is_told_where_a_ledger_was(tmp_path, content):
    with running(written(tmp_path)) as desk:
        question = Question(sql=COUNT, epsilon="1")
        path, away = tmp_path / "hospital.ledger", tmp_path / "away"
        os.rename(path, away)
        if content is not None:
            path.write_bytes(content)
        told = desk.all(
            desk.desk._planner.reserve("visits", question, "ana"),
            desk.desk.preview("visits", question, ANA),
        )
        os.replace(away, path)
        for refusal in map(refusal_of, told):
            assert (refusal.status, refusal.kind) == (503, "ledger")
            assert str(tmp_path) not in refusal.detail
        assert desk.asked().cost is not None


def test_nobody_is_told_where_a_public_table_is(tmp_path):
    (card,) = written(tmp_path)
    public = tmp_path / "regions.csv"
    public.write_text("region,climate\nnorth,cold\n")
    named = '[public.regions]\nsource = "regions.csv"\ncolumns = {region="text", climate="text"}'
    card.write_text(card.read_text() + named)
    sql = "SELECT COUNT(*) AS n FROM visits JOIN regions ON visits.region = regions.region"
    with running((card,)) as desk:
        question = Question(sql=sql, epsilon="1")
        for content in (b"", b'region,climate\nnorth,"', b"region,\xff\n", None):
            public.unlink() if content is None else public.write_bytes(content)
            told = desk.all(
                desk.desk._planner.reserve("visits", question, "ana"),
                desk.desk.made_up("visits", question, ANA),
            )
            for refusal in map(refusal_of, told):
                assert (refusal.status, refusal.kind) == (503, "engine")
                assert str(tmp_path) not in refusal.detail
        assert spent(desk) == 0
