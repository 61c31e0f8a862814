"""What everybody may see of a card, sent as JSON: the same questions, plans and prices."""

import json
from dataclasses import replace
from typing import Any, cast

import pytest

from lastbit.errors import InvalidParameter
from lastbit.tables import card_from_json, card_to_json, parsed, planned
from lastbit.tables.card.public import ELSEWHERE
from lastbit.tables.card.schema import EngineLimits
from tests.tables.cards import WHOLE, edited, read

PRIVATE = """
[private.labs]
source = "labs.parquet"
unit = "who"
max_rows = 4
[private.labs.columns.who]
type = "integer"
[private.labs.columns.value]
type = "number"
bounds = [0, 1]
"""
DATES = """
[columns.day]
type = "date"
keys = [2026-01-31, 2026-02-28]
[columns.urgent]
type = "boolean"
keys = [true, false]
[columns.age]
type = "integer"
keys = [1, 2, 3]
"""
CARDS = {
    "whole": WHOLE,
    "private": WHOLE + PRIVATE,
    "every type of key": WHOLE + DATES,
    "each row": edited(
        'column = "patient_id"\nmax_rows = 20\nmax_groups = 5', "each_row = true"
    ),
    "change one": edited('"add-remove"', '"change-one"'),
    "rho": edited("epsilon = 3\ndelta = 1e-6", "rho = 0.1"),
    "filter": edited("delta = 1e-6", 'delta = 1e-6\naccounting = "filter"'),
    "gaussian": edited("delta = 1e-6", 'delta = 1e-6\naccounting = "gaussian"'),
    "account": edited("delta = 1e-6", 'delta = 1e-6\naccount = "patients"'),
}  # fmt: skip


@pytest.mark.parametrize("text", CARDS.values(), ids=CARDS)
def test_a_card_comes_back_but_for_where_things_are_and_who_may_ask(text):
    card = read(text)
    again = card_from_json(json.loads(json.dumps(card_to_json(card))))
    assert again == replace(
        card,
        source=ELSEWHERE,
        public={name: replace(one, source=ELSEWHERE) for name, one in card.public.items()},
        private={name: replace(one, source=ELSEWHERE) for name, one in card.private.items()},
        ledger=None,
        users=None,
        engine_limits=EngineLimits(),
    )


@pytest.mark.parametrize("text", CARDS.values(), ids=CARDS)
def test_questions_have_the_same_plan_by_either(text):
    card = read(text)
    price = {"rho": "0.01"} if "rho =" in text else {"epsilon": "1"}
    again = card_from_json(card_to_json(card))
    for sql in (
        "SELECT COUNT(*) AS n FROM visits",
        "SELECT region, AVG(cost) AS cost, MEDIAN(cost) AS m FROM visits GROUP BY region",
        "SELECT COUNT(*) AS n FROM visits JOIN regions USING (region) WHERE name = 'x'",
    ):
        one, other = (
            planned(parsed(sql, each), each, **cast(Any, price)) for each in (card, again)
        )
        assert one.to_json() == other.to_json() and one.digest == other.digest


def test_nothing_says_where_the_data_are_or_who_may_ask():
    sent = json.dumps(card_to_json(read(WHOLE + PRIVATE)))
    for word in ("parquet", "csv", "ledger", "/cards", "ana", "ben"):
        assert word not in sent.replace("balanced", "")


@pytest.mark.parametrize(
    "change",
    [
        {"name": None, "columns": 1},
        {"columns": [{}]},
        {"neighbours": "none"},
        {"budget": {"kind": "pure"}},
        {"max_rows": "many"},
        {"max_rows": 0},
        {"unit": "nobody"},
        {"public": [[]]},
        {"private": {"a": 1}},
    ],
)
def test_what_is_no_card_is_refused(change):
    with pytest.raises(InvalidParameter):
        card_from_json({**card_to_json(read()), **change})


def test_what_a_column_means_is_said_and_decides_nothing():
    words = 'what "it" cost'
    told = read(edited("nullable = false", f"nullable = false\ndescription = '{words}'"))
    assert told.columns["cost"].description == words
    sent = json.loads(json.dumps(card_to_json(told)))
    assert card_from_json(sent).columns["cost"].description == words
    for column in sent["columns"]:  # a server of before says none
        del column["description"]
    assert card_from_json(sent) == card_from_json(card_to_json(read(WHOLE)))
    plans = [planned(parsed("SELECT AVG(cost) AS c FROM visits", card), card, epsilon="1")
             for card in (told, read(WHOLE))]  # fmt: skip
    assert plans[0].digest == plans[1].digest
