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

from dataclasses import replace
from pathlib import Path
from typing import Any

from lastbit.errors import InvalidParameter
from lastbit.exact import exact_text
from lastbit.release import planned_within, price_rows, question_of_plan
from lastbit.report import plan_words
from lastbit.serve.questions import Question
from lastbit.tables import DataCard, Plan, parsed, planned, read_card

_LEAST_SHARE = 10_000


def card_at(path: Path) -> DataCard:
    """A card as the server takes it: only data that a steward has accepted are asked about."""
    return replace(read_card(path), accepted_data=True)


def plan_of(question: Question, card: DataCard) -> Plan:
    """The plan of a question about this table."""
    query = parsed(question.sql, card)
    asked: dict[str, Any] = {
        "epsilon": question.epsilon,
        "delta": question.delta,
        "rho": question.rho,
        "weights": question.weights,
    }
    if question.within is not None:
        return planned_within(query, card, question.within, **asked)
    return planned(query, card, **asked)


def payable_plan(question: Question, card: DataCard) -> Plan:
    """The plan; refused if its price is so small that a budget would buy questions without end."""
    plan, budget = plan_of(question, card), card.budget
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


def previewed(question: Question, card: DataCard, data: str | None) -> dict[str, Any]:
    """What is said of a plan, but for what the ledger says."""
    plan = payable_plan(question, card)
    words = plan_words(plan)
    weights: Any = question.weights
    return {
        "title": words.title,
        "cost": plan.cost.to_json(),
        "gaussian": plan.gaussian_noise,
        "guarantee": plan.guarantee,
        "facts": words.facts,
        "columns": words.table,
        "prices": price_rows(plan.query, card, delta=question.delta, weights=weights),
        "question": None if data is None else question_of_plan(plan, data),
    }
