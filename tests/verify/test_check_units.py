"""The checker derives again that no two units' rows meet, and how many rows a unit has."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from lastbit.checker.dispatch import problem_of
from lastbit.checker.numbers import Rejected
from lastbit.checker.units import Units, check_lists
from lastbit.release.certifying import certificate_of
from lastbit.tables.plan.plan import planned
from lastbit.tables.sql.statement import parsed
from tests.tables.test_unnest import CARD
from tests.verify.test_check_release import resealed

Certificate = dict[str, Any]

QUESTIONS = {
    "joined": "SELECT kind, AVG(value) AS m FROM visits JOIN labs ON pid = labs.patient"
    " AND visits.day = labs.day GROUP BY kind",
    "two joined": "SELECT COUNT(*) AS n FROM visits JOIN labs ON pid = labs.patient"
    " JOIN drugs ON pid = drugs.patient JOIN regions USING (region)",
    "one row": "SELECT AVG(total) AS m, COUNT(DISTINCT pid) AS u FROM"
    " (SELECT pid, SUM(cost) AS total FROM visits WHERE age > 3 GROUP BY pid)",
    "several rows": "SELECT region, AVG(n) AS m FROM (SELECT pid, region, COUNT(*) AS n,"
    " MAX(value) AS v FROM visits JOIN labs ON pid = labs.patient GROUP BY pid, region)"
    " WHERE v > 3 GROUP BY region",
    "elements": "SELECT code, COUNT(*) AS n, AVG(age) AS m FROM visits, UNNEST(codes) AS u(code)"
    " GROUP BY code",
    "elements inside": "SELECT AVG(n) AS m FROM (SELECT pid, COUNT(*) AS n FROM visits,"
    " UNNEST(codes) AS u(code) GROUP BY pid)",
    "elements and one row": "SELECT COUNT(*) AS n FROM visits JOIN once ON pid = once.patient,"
    " UNNEST(codes) AS u(code)",
    "joined afterwards": "SELECT AVG(total) AS m FROM (SELECT pid, SUM(cost) AS total FROM visits"
    " GROUP BY pid) q JOIN labs ON q.pid = labs.patient",
}


def produced(name: str) -> Certificate:
    plan = planned(parsed(QUESTIONS[name], CARD), CARD, epsilon=1)
    return copy.deepcopy(certificate_of(plan, columns=[], rows=[]))


@pytest.mark.parametrize("name", QUESTIONS)
def test_accepts(name):
    assert problem_of(produced(name)) is None
    assert problem_of(resealed(produced(name))) is None


def test_what_is_believed_of_joins_and_sub_queries_is_said():
    for name, words in (("joined", "in all of these tables"), ("one row", "one unit")):
        certificate = produced(name)
        assert any(words in said for said in certificate["assumptions"])
        kept = [said for said in certificate["assumptions"] if words not in said]
        problem = problem_of(resealed({**certificate, "assumptions": kept}))
        assert problem == "its assumptions leave out what the proof rests on"


FORGED: dict[str, tuple[str, Callable[[Any, Any, Any], None], str]] = {}


def forged(name: str, problem: str) -> Callable[[Any], Any]:
    def keep(change: Callable[[Any, Any, Any], None]) -> Callable[[Any, Any, Any], None]:
        FORGED[f"{name}: {change.__name__}"] = name, change, problem
        return change

    return keep


@forged("joined", "rows of different units meet")
def no_unit(query, plan, claim):
    query["joins"][0]["on"].pop(0)


@forged("two joined", "rows of different units meet")
def no_unit_in_the_second(query, plan, claim):
    query["joins"][1]["on"] = [[{"column": "day"}, {"column": "day", "table": "drugs"}]]


@forged("joined", "rows of different units meet")
def a_function_of_the_unit(query, plan, claim):
    query["joins"][0]["on"][0][0] = ["%", {"column": "pid"}, {"type": "integer", "value": 3}]


@forged("joined", "rows of different units meet")
def another_column_of_ours(query, plan, claim):
    query["joins"][0]["on"][0][0] = {"column": "many"}


@forged("joined", "rows of different units meet")
def another_column_of_theirs(query, plan, claim):
    query["joins"][0]["on"][0][1]["column"] = "value"


@forged("joined", "rows of different units meet")
def another_unit_of_theirs(query, plan, claim):
    plan["private"]["labs"]["unit"] = claim["private"]["labs"]["unit"] = "value"


@forged("two joined", "rows of different units meet")
def the_unit_of_another_table(query, plan, claim):
    query["joins"][1]["on"][0][0] = {"column": "patient", "table": "labs"}


@forged("joined", "private tables are other ones")
def a_private_table_called_public(query, plan, claim):
    del query["joins"][0]["private"]


@forged("joined", "private tables are other ones")
def no_private_tables(query, plan, claim):
    del plan["private"], claim["private"]


@forged("joined", "the plan lacks a part")
def the_claim_is_silent(query, plan, claim):
    del claim["private"]


@forged("joined", "join other tables")
def the_claim_names_other_limits(query, plan, claim):
    claim["private"]["labs"]["max_rows"] += 1


@forged("joined", "a join is malformed")
def neither_private_nor_public(query, plan, claim):
    query["joins"][0]["private"] = False


@forged("joined", "too many rows of one")
def a_thousand_and_one(query, plan, claim):
    plan["private"]["labs"]["max_rows"] = claim["private"]["labs"]["max_rows"] = 1001


@forged("two joined", "too many rows of one")
def too_many_together(query, plan, claim):
    plan["private"]["labs"]["max_rows"] = claim["private"]["labs"]["max_rows"] = 334


@forged("joined", "out of range")
def no_rows(query, plan, claim):
    plan["private"]["labs"]["max_rows"] = claim["private"]["labs"]["max_rows"] = 0


@forged("joined", "a private table is malformed")
def no_unit_named(query, plan, claim):
    del plan["private"]["labs"]["unit"], claim["private"]["labs"]["unit"]


@forged("elements", "an element says whose it is")
def elements_that_are_units(query, plan, claim):
    query["joins"][0]["unnest"]["column"] = "PID"


@forged("elements", "a list is not of the table")
def elements_of_another_table(query, plan, claim):
    query["joins"][0]["unnest"]["table"] = "labs"


@forged("elements", "a join is malformed")
def elements_beside_a_table(query, plan, claim):
    query["joins"][0]["table"] = "labs"


@forged("elements", "lists are no rows of the table")
def two_lists(query, plan, claim):
    query["joins"].append({"unnest": {"column": "doses"}})


@forged("elements", "a list is none")
def elements_of_nothing(query, plan, claim):
    query["joins"][0]["unnest"] = "codes"


@forged("elements", "a name is empty")
def elements_without_a_name(query, plan, claim):
    query["joins"][0]["unnest"]["column"] = ""


@forged("elements inside", "lists are no rows of the table")
def elements_of_a_sub_query(query, plan, claim):
    query["joins"] = query["per_unit"]["joins"]
    query["per_unit"]["joins"] = []


@forged("elements and one row", "too many rows of one")
def elements_and_two_rows(query, plan, claim):
    plan["private"]["once"]["max_rows"] = claim["private"]["once"]["max_rows"] = 2


@forged("elements", "each row is a unit")
def elements_of_rows_that_are_units(query, plan, claim):
    plan["unit"] = claim["unit"] = None
    plan["max_rows"] = plan["max_groups"] = 1


@forged("one row", "each unit has one row")
def more_rows(query, plan, claim):
    plan["max_rows"] = 2


@forged("one row", "each unit has one row")
def more_groups(query, plan, claim):
    plan["max_groups"] = 2


@forged("several rows", "moves the measures by another amount")
def fewer_rows(query, plan, claim):
    plan["max_rows"] = 1


@forged("one row", "differ in the sub-query")
def a_sub_query_kept_silent(query, plan, claim):
    del claim["per_unit"]


@forged("joined", "leave out what the proof rests on")
def a_sub_query_from_nowhere(query, plan, claim):
    claim["per_unit"] = True


@forged("one row", "does not have")
def a_column_of_the_table(query, plan, claim):
    query["where"] = [">", {"column": "age"}, {"type": "integer", "value": 3}]


@forged("one row", "other measures")
def another_column_of_the_sub_query(query, plan, claim):
    query["aggregates"][0]["expression"]["column"] = "PID"


@forged("one row", "called as the unit")
def a_column_called_as_the_unit(query, plan, claim):
    query["per_unit"]["columns"][0]["name"] = "pid"


@forged("several rows", "two columns of a sub-query")
def two_columns_of_one_name(query, plan, claim):
    query["per_unit"]["columns"][1]["name"] = "N"


@forged("one row", "a function of a unit's rows is unknown")
def an_unknown_function(query, plan, claim):
    query["per_unit"]["columns"][0]["function"] = "string_agg"


@forged("one row", "of nothing")
def a_sum_of_nothing(query, plan, claim):
    query["per_unit"]["columns"][0]["expression"] = None


@forged("one row", "a function is unknown")
def an_unknown_function_in_where(query, plan, claim):
    query["per_unit"]["where"] = ["sleep", {"column": "age"}]


@forged("one row", "do not rise")
def falling_bounds(query, plan, claim):
    query["per_unit"]["columns"][0]["bounds"] = ["500", "0"]


@forged("one row", "a step is not above 0")
def no_step(query, plan, claim):
    query["per_unit"]["columns"][0]["step"] = "0"


@forged("one row", "a sub-query lacks a part")
def another_part(query, plan, claim):
    query["per_unit"]["having"] = None


@forged("several rows", "a table is not joined")
def a_table_from_outside(query, plan, claim):
    query["where"] = ["is_missing", {"column": "value", "table": "labs"}]


@forged("several rows", "rows of different units meet")
def no_unit_in_the_sub_query(query, plan, claim):
    query["per_unit"]["joins"][0]["on"][0][0] = {"column": "many"}


@forged("one row", "each row is one")
def no_unit_at_all(query, plan, claim):
    plan |= {"unit": None, "max_groups": None, "weight_one": 1}
    claim["unit"] = None


@pytest.mark.parametrize("name", FORGED)
def test_forged(name):
    example, change, problem = FORGED[name]
    certificate = produced(example)
    body, claim = certificate["body"], certificate["claim"]
    # as whoever cheats would do: the plan and the claim are copies, and say what the query says
    change(body["query"], body["plan"], claim)
    found = problem_of(resealed(certificate))
    assert found is not None
    assert problem in found


@pytest.mark.parametrize("named", ["codes", "Pid"])
def test_elements_say_nothing_of_the_way_to_the_unit(named: str) -> None:
    step = {"table": "orders", "on": [["CODES", "id"]], "max_rows": 1, "columns": {"pid": "pid"}}
    units = Units(
        joins=(),
        inner_joins=(),
        lists=(named,),
        bare=True,
        columns=None,
        one_row=False,
        named=(),
    )
    with pytest.raises(Rejected, match="an element says whose it is"):
        check_lists({"unit": "pid", "through": [step]}, units)
