"""Planning in a child: hostile questions cost it, not the server, and are not charged."""

import asyncio
import os
import signal

import pytest

from lastbit.checker import problem_of
from lastbit.errors import InvalidParameter, QueryRefused
from lastbit.kernel import question_of_program
from lastbit.ledger import Ledger
from lastbit.release import Table, checked, question_of_plan
from lastbit.serve.planner import Turns
from lastbit.serve.planning import plan_of, previewed
from lastbit.serve.questions import Question, Refusal
from lastbit.tables import read_card, rows_of
from tests.serve.desks import ANA, BY_REGION, COUNT, STELLA, running, written

LONGEST = 16_000


def long(start: str, part: str, end: str = "") -> str:
    return start + part * ((LONGEST - len(start) - len(end)) // len(part)) + end


BOMBS = {
    "brackets": f"{COUNT} WHERE {'(' * 5000}cost < 1{')' * 5000}",
    "nots": long(f"{COUNT} WHERE ", "NOT ", "cost < 1"),
    "sums": long(f"{COUNT} WHERE cost < 1", "+1"),
    "lists": long(f"{COUNT} WHERE patient IN (1", ",1", ")"),
    "cases": f"{COUNT} WHERE {'CASE WHEN cost < 1 THEN ' * 300}true{' END' * 300}",
    "tables": f"SELECT COUNT(*) AS n FROM {'(SELECT * FROM ' * 500}visits{') AS t' * 500}",
    "digits": f"{COUNT} WHERE cost < 1{'0' * 15_000}",
    "exponent": f"{COUNT} WHERE cost < 1e999999999",
    "columns": long("SELECT ", "MEDIAN(cost) AS m, ", "COUNT(*) AS n FROM visits"),
    "bins": "SELECT histogram(cost, 0, 100, 100000000) AS h FROM visits",
    "statements": f"{COUNT}; DROP TABLE visits",
    "files": "SELECT COUNT(*) AS n FROM read_csv('/etc/passwd')",
    "settings": "PRAGMA enable_external_access",
    "nul": f"{COUNT} WHERE region = 'a\0b'",
}


def test_bombs_are_refused_or_planned_and_the_desk_goes_on(tmp_path):
    with running(written(tmp_path)) as desk:
        before = desk.ledger.head
        for name, sql in BOMBS.items():
            try:
                desk.do(desk.desk.preview("visits", Question(sql=sql, epsilon="1"), ANA))
            except Refusal as refused:
                assert refused.status == 422, name
        desk.do(desk.desk._planner.start())
        for child in desk.desk._planner._children.every:  # as if a question never came to an end
            assert child.pid is not None
            os.kill(child.pid, signal.SIGSTOP)
        stuck = Question(sql=f"{COUNT} WHERE cost < 3", epsilon="1")
        with pytest.raises(Refusal, match="too long, or too much memory"):
            desk.do(desk.desk.preview("visits", stuck, ANA))
        assert desk.do(desk.desk.preview("visits", stuck, ANA)).cost["epsilon"] == "1"
        assert desk.ledger.head == before


def test_a_child_that_is_gone_while_it_pays_is_said_to_be_and_asking_again_heals(tmp_path):
    with running(written(tmp_path)) as desk:
        planner = desk.desk._planner
        child = planner._children.every[1]
        heard = child.heard

        async def lost(within: float):
            found = await heard(within)
            if "reservation" in found:  # it was written down, and nobody is told
                child.kill()
                return await heard(within)
            return found

        for one in planner._children.every:
            vars(one)["heard"] = lost if one is child else one.heard
        question = Question(sql=f"{COUNT} WHERE cost < 4", epsilon="1")
        with pytest.raises(Refusal, match="not charged again") as caught:
            desk.do(desk.desk.submit("visits", question, ANA, key="k"))
        assert caught.value.status == 503 and desk.ledger.spent("patients").epsilon == 1
        del vars(child)["heard"]
        job = desk.finished(desk.do(desk.desk.submit("visits", question, ANA, key="k")))
        assert job.state == "answered" and desk.ledger.spent("patients").epsilon == 1


def test_a_preview_reads_nothing_of_the_table(tmp_path):
    (path,) = written(tmp_path)
    (tmp_path / "visits.parquet").unlink()
    card, question = read_card(path), Question(sql=BY_REGION, epsilon="1")
    assert previewed(question, card, "data")["cost"]["epsilon"] == "1"
    weighted = Question(sql=BY_REGION, epsilon="1", weights={"n": "3", "cost": "1"})
    assert plan_of(weighted, card).digest != plan_of(question, card).digest
    balanced = Question(sql=BY_REGION, within={"n": "50"}, weights="balanced")
    assert plan_of(balanced, card).cost.epsilon > 0


def test_one_principal_has_one_child_at_a_time():
    async def found() -> tuple[int, list[str]]:
        turns, at_once, most, order = Turns(), 0, 0, []

        async def work(name: str) -> None:
            nonlocal at_once, most
            async with turns.of(name, most=3):
                at_once += name == "ana"
                most = max(most, at_once)
                await asyncio.sleep(0)
                order.append(name)
                at_once -= name == "ana"

        names = ["ana"] * 5 + ["ben"]
        told = await asyncio.gather(*map(work, names), return_exceptions=True)
        assert [isinstance(one, Refusal) for one in told] == [False] * 3 + [True] * 2 + [False]
        await work("ana")  # those that were refused or have ended do not count
        return most, order

    most, order = asyncio.run(found())
    assert most == 1 and order[:2] == ["ana", "ben"]


def test_what_is_made_of_keys_is_refused_and_what_is_left_out_is_not(tmp_path):
    """Pages show the record: more than was selected, and never less."""
    card = read_card(written(tmp_path)[0])
    plain = Question(sql=BY_REGION, epsilon="1")
    hidden = Question(sql=BY_REGION.replace("SELECT region,", "SELECT"), epsilon="1")
    assert plan_of(hidden, card).query == plan_of(plain, card).query
    made = "SELECT upper(region) AS u, COUNT(*) AS n FROM visits GROUP BY region"
    with pytest.raises(QueryRefused, match=r"u is made of a key, .*select the key itself"):
        plan_of(Question(sql=made, epsilon="1"), card)


def test_tables_of_two_columns_are_paid_once_and_free_afterwards(tmp_path):
    """Asked here, they are the library's: what it has on record is free here, and the reverse."""
    question = Question(sql="MARGINALS region, cost > 50 AS dear FROM visits;", epsilon="1/2")
    with running(written(tmp_path)) as desk:
        seen = desk.do(desk.desk.preview("visits", question, ANA))
        assert (seen.cost["epsilon"], seen.recorded, seen.prices) == ("1/2", None, ())
        assert len(seen.columns) == 4
        made = desk.do(desk.desk.made_up("visits", question, ANA))
        assert len(made["rows"]) == 8
        job = desk.finished(desk.do(desk.desk.submit("visits", question, ANA)))
        assert job.state == "answered" and job.cost is not None
        assert desk.do(desk.desk.preview("visits", question, ANA)).recorded == job.entry
        again = desk.finished(desk.do(desk.desk.submit("visits", question, ANA)))
        assert (again.entry, again.cost) == (job.entry, None)
        record = desk.desk.answer(job.entry, STELLA)
    card = read_card(tmp_path / "visits.toml")
    asked = Table(rows=rows_of(card)).marginals({"region": "region", "dear": "cost > 50"})
    plan = asked.plan(epsilon="1/2")
    data = Ledger.existing(str(card.ledger)).accepted_data("patients", "visits")
    assert record["question"] == question_of_plan(plan, data)
    assert record["question"] == question_of_program(checked(plan), data)
    assert problem_of(record) is None
    with pytest.raises(InvalidParameter, match="within finds no price for tables"):
        plan_of(Question(sql=question.sql, within="9"), card)


def test_several_statements_are_paid_together_or_not_at_all(tmp_path):
    """What they share is bought once; a key or the same again charges nothing twice."""
    last = "SELECT region, SUM(cost) AS s FROM visits GROUP BY region"
    sql = f"{COUNT}; {BY_REGION};\n{last}; -- end"
    question = Question(sql=sql, epsilon="1")
    with running(written(tmp_path, allowance="3/2")) as desk:
        seen = desk.do(desk.desk.preview("visits", question, ANA))
        assert (seen.parts, seen.cost["epsilon"], seen.recorded) == (2, "1", None)
        assert seen.title == "3 questions, bought as 2" and seen.columns[1][0].startswith("1. ")
        with pytest.raises(Refusal, match="is several statements"):
            desk.do(desk.desk.submit("visits", question, ANA))
        for _ in range(2):
            jobs = desk.do(desk.desk.submit_all("visits", question, ANA, key="k"))
            found = [desk.finished(job) for job in jobs]
            assert [job.state for job in found] == ["answered"] * 2
            assert desk.ledger.spent("patients").epsilon == 1
        again = desk.do(desk.desk.preview("visits", question, ANA))
        assert again.refused is None and again.left is None  # it is on record
        records = [desk.desk.answer(job.entry, ANA) for job in found]
        assert [problem_of(record) for record in records] == [None, None]
        assert records[0]["asked"]["sql"] == COUNT
        assert records[1]["asked"]["sql"].startswith(f"{BY_REGION};\n{last}")
        dearer = Question(sql=sql.replace("region;", "region, 1=1;"), epsilon="1")
        with pytest.raises(Refusal, match="Of the allowance of ana"):
            desk.do(desk.desk.submit_all("visits", dearer, ANA))
        assert desk.ledger.spent("patients").epsilon == 1
        one = Question(sql="SELECT COUNT(*) AS n FROM visits WHERE region = 'a;b';", epsilon="1/4")
        (job,) = desk.do(desk.desk.submit_all("visits", one, ANA))
        assert desk.finished(job).state == "answered"
        same = Question(sql=f"{COUNT}; {COUNT}", epsilon="1/4")
        assert desk.do(desk.desk.preview("visits", same, ANA)).parts == 1
        (job,) = desk.do(desk.desk.submit_all("visits", same, ANA))
        assert desk.finished(job).state == "answered"


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"epsilon": None, "within": "9"}, "within is for one question"),
        ({"weights": "balanced"}, "weights is for one question"),
        ({"sql": ";".join([COUNT] * 11)}, "more than 10 statements"),
        ({"sql": f"{COUNT}; DROP TABLE visits"}, "write SELECT"),
        ({"sql": f"{COUNT}; SELECT * FROM visits"}, "rows cannot be shown"),
    ],
)
def test_several_statements_that_are_refused(tmp_path, changed, words):
    card = read_card(written(tmp_path)[0])
    asked = {"sql": f"{COUNT}; {BY_REGION}", "epsilon": "1", **changed}
    for question in (Question(**asked), Question(**asked, part=0)):
        with pytest.raises(InvalidParameter, match=words):
            previewed(question, card, None)
