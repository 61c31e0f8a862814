"""What is said of a question before it is paid: its plan, price and ±.

Law      a preview is a function of the question, the card, the ledger and public tables. A price is
         at least a 10,000th of the account's budget, so that the time at which answers appear
         (`slots.py`) tells only so often
Theorem  what is said of a question before its reservation, and when, does not depend on a row
Proof    children that plan (`tasks.py`) read cards, ledgers and public tables
         (`release/paying.py`, (d))
Differs  tables on servers: names and types of their columns are looked up, never a row
Checked  tests/serve/test_planning.py
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from lastbit.errors import InvalidParameter, QueryRefused
from lastbit.exact import exact_text
from lastbit.ledger import Ledger
from lastbit.release import (
    Table,
    open_questions,
    plan_on_record,
    prepare_plan,
    price_rows,
    question_of_plan,
)
from lastbit.report import plan_words
from lastbit.serve.questions import Question
from lastbit.tables import ColumnName, DataCard, Plan, read_card, rows_of

_LEAST_SHARE = 10_000


def card_at(path: Path) -> DataCard:
    """A card as the server takes it: only data that a steward has accepted are asked about."""
    return replace(read_card(path), accepted_data=True)


def plan_of(question: Question, card: DataCard) -> Plan:
    """The plan of a question about this table; limits that are left out are guessed."""
    asked, within = _asked(question)
    unbought = replace(card, ledger=None)  # by no profile: of made-up rows there is none
    return prepare_plan(_on_table(question, unbought), asked, within).plan


def plan_to_pay(
    question: Question, card: DataCard, books: Ledger, data: str, paid: Collection[str | None]
) -> Plan:
    """The plan by profiles on record: the one that is paid for already, if one is."""
    asked, within = _asked(question)
    table = _on_table(question, card)
    found = plan_on_record(table, asked, within, books, data, paid=paid)
    if found is None:
        problem = "are left out by this question and the card, and no profile of the data is there"
        wanted = open_questions(table)
        more = "".join(f" --column {one.column}" for one in wanted if one.column)
        for keys in (one.keys for one in wanted if one.keys):
            names = [key.name for key in keys if isinstance(key, ColumnName)]
            more += f" --keys {','.join(names)}" if len(names) == len(keys) else ""
        remedy = f"let a steward run lastbit card profile on the card{more}, or ask the same once"
        remedy += " by lastbit query, which buys it; nothing was charged"
        raise InvalidParameter("limits", problem=problem, remedy=remedy)
    return found.plan


def _asked(question: Question) -> tuple[dict[str, Any], Any]:
    names = ("epsilon", "delta", "rho", "weights")
    return {name: getattr(question, name) for name in names}, question.within


def _on_table(question: Question, card: DataCard) -> Table:
    """The question; refused where SELECT makes something of keys, as pages show what is recorded.

    Columns that SELECT leaves out are shown too: they are released and paid for.
    """
    asked = Table(rows=rows_of(card)).sql(question.sql)
    if asked.view is not None and asked.view.sorts:
        problem = "is made of a key, and a server shows rows in the order of the record"
        raise QueryRefused("ORDER BY", problem=problem, remedy="sort by the key itself")
    if asked.view is not None and asked.view.computed:
        name = asked.view.computed[0]
        problem = "is made of a key, and a server shows keys as they are recorded"
        raise QueryRefused(name, problem=problem, remedy="select the key itself, or GROUP BY this")
    return asked


def payable_plan(
    question: Question, card: DataCard, books: Ledger | None = None, data: str | None = None
) -> Plan:
    """The plan; refused if its price is so small that a budget would buy questions without end."""
    if books is None or data is None:
        plan = plan_of(question, card)
    else:
        paid = {entry.question for entry in books.entries(card.account_name)}
        plan = plan_to_pay(question, card, books, data, paid)
    budget = card.budget
    if budget is None:
        return plan
    whole = {"epsilon": budget.epsilon, "rho": budget.rho or budget.epsilon**2 / 100}
    for name, most in whole.items():
        least = most / _LEAST_SHARE
        if 0 < getattr(plan.cost, name) < least:
            problem = f"is less than a {_LEAST_SHARE:,}th of the budget of {card.account_name}"
            remedy = f"ask for {name} = {exact_text(least, 16)} or more"
            raise InvalidParameter("price", problem=problem, remedy=remedy)
    return plan


def previewed(
    question: Question, card: DataCard, data: str | None, books: Ledger | None = None
) -> dict[str, Any]:
    """What is said of a plan, but for what the ledger says."""
    plan = payable_plan(question, card, books, data)
    words = plan_words(plan)
    weights: Any = question.weights
    return {
        "title": words.title,
        "cost": plan.cost.to_json(),
        "gaussian": plan.gaussian_noise,
        "guarantee": plan.guarantee,
        "facts": words.facts,
        "columns": words.table,
        "prices": price_rows(plan.query, plan.card, delta=question.delta, weights=weights),
        "question": None if data is None else question_of_plan(plan, data),
    }
