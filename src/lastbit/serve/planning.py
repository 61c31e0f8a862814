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

import re
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from lastbit.errors import InvalidParameter, QueryRefused
from lastbit.exact import exact_text
from lastbit.ledger import Ledger
from lastbit.release import (
    MarginalsQuestion,
    Table,
    WorkloadPlan,
    open_questions,
    plan_on_record,
    prepare_plan,
    price_rows,
    question_of_plan,
    statements_in,
    workload,
)
from lastbit.report import plan_words
from lastbit.serve.questions import MARGINALS, Question
from lastbit.tables import (
    ColumnName,
    DataCard,
    MarginalsPlan,
    Plan,
    marginals_query,
    read_card,
    rows_of,
)

AnyPlan: TypeAlias = Plan | MarginalsPlan
_MARGINALS = re.compile(rf"\s*{MARGINALS}\b(.*?)[\s;]*", re.IGNORECASE | re.DOTALL)
_LEAST_SHARE, _MOST_STATEMENTS = 10_000, 10


def card_at(path: Path) -> DataCard:
    """A card as the server takes it: only data that a steward has accepted are asked about."""
    return replace(read_card(path), accepted_data=True)


def plan_of(question: Question, card: DataCard) -> AnyPlan:
    """The plan of a question about this table; limits that are left out are guessed."""
    if (plan := _plan_of_many(question, card)) is not None:
        return plan
    asked, within = _asked(question)
    unbought = replace(card, ledger=None)  # by no profile: of made-up rows there is none
    return prepare_plan(_on_table(question.sql, unbought), asked, within).plan


def plan_to_pay(
    question: Question, card: DataCard, books: Ledger, data: str, paid: Collection[str | None]
) -> AnyPlan:
    """The plan by profiles on record: the one that is paid for already, if one is."""
    if (plan := _plan_of_many(question, card)) is not None:
        return plan
    asked, within = _asked(question)
    table = _on_table(question.sql, card)
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


def _on_table(sql: str, card: DataCard) -> Table:
    """The question; refused where SELECT makes something of keys, as pages show what is recorded.

    Columns that SELECT leaves out are shown too: they are released and paid for.
    """
    asked = Table(rows=rows_of(card)).sql(sql)
    if asked.view is not None and asked.view.sorts:
        problem = "is made of a key, and a server shows rows in the order of the record"
        raise QueryRefused("ORDER BY", problem=problem, remedy="sort by the key itself")
    if asked.view is not None and asked.view.computed:
        name = asked.view.computed[0]
        problem = "is made of a key, and a server shows keys as they are recorded"
        raise QueryRefused(name, problem=problem, remedy="select the key itself, or GROUP BY this")
    return asked


def tables_asked(sql: str, card: DataCard) -> MarginalsQuestion | None:
    """The tables of every one and two of some columns, where MARGINALS asks for them.

    `MARGINALS a, b FROM t WHERE c` counts what `SELECT COUNT(*), a, b FROM t WHERE c GROUP BY ALL`
    does, and is read as that: whatever else that would do is refused.
    """
    rest = _MARGINALS.fullmatch(sql)
    if rest is None:
        return None
    asked = Table(rows=rows_of(card)).sql(f"SELECT COUNT(*), {rest[1]}\nGROUP BY ALL")
    query, view = asked.query, asked.view
    (first, *more) = query.aggregates
    plain = not more and (first.function, first.expression) == ("count", None)
    chosen = query.having is not None or query.limit is not None or query.order or query.derived
    if not plain or chosen or query.per_unit is not None or (view is not None and view.computed):
        problem = "counts the rows of the table by columns, and does nothing else"
        raise QueryRefused(MARGINALS, problem=problem, remedy="write columns, FROM and WHERE alone")
    if card.max_rows_open:
        problem = "is left to a profile, by which such tables are not planned"
        raise InvalidParameter("max_rows", problem=problem, remedy="let a steward declare it")
    counted = marginals_query(asked.card, query.keys, where=query.where, joins=query.joins)
    return MarginalsQuestion(query=counted, card=asked.card)


def purchases(question: Question, card: DataCard) -> WorkloadPlan | None:
    """What is bought for several statements at one price; None if there is one."""
    if ";" not in question.sql.rstrip("; \t\n"):
        return None
    texts = statements_in(question.sql)
    if len(texts) < 2:
        return None
    if len(texts) > _MOST_STATEMENTS:
        problem = f"has more than {_MOST_STATEMENTS} statements"
        raise InvalidParameter("the question", problem=problem, remedy="ask for fewer at once")
    asked = [_on_table(text, card) for text in texts]
    if question.within is not None or question.weights is not None:
        what = "weights" if question.within is None else "within"
        problem = "is for one question, and there are several"
        raise InvalidParameter(what, problem=problem, remedy="leave it out, and say what you pay")
    if any(open_questions(one) for one in asked):
        problem = "are left out, and are chosen for one question at a time"
        raise InvalidParameter("limits", problem=problem, remedy="ask them one by one")
    price = {name: getattr(question, name) for name in ("epsilon", "delta", "rho")}
    return workload(asked).plan(**price)


def _plan_of_many(question: Question, card: DataCard) -> AnyPlan | None:
    """The plan of tables of two columns, or of one purchase of several; None of a single SELECT."""
    if (tables := tables_asked(question.sql, card)) is not None:
        asked, within = _asked(question)
        if within is not None:
            problem = "finds no price for tables of every two columns"
            raise InvalidParameter("within", problem=problem, remedy="say what you pay instead")
        return tables.plan(**asked)
    if (bought := purchases(question, card)) is None:
        return None
    if question.part is None:
        problem, remedy = "is several statements", "send one, or ask them in the browser"
        raise InvalidParameter("the question", problem=problem, remedy=remedy)
    return bought.plans[question.part]


def words_of(question: Question, card: DataCard) -> str:
    """The SQL that an answer is recorded with: of several statements those that it is for."""
    bought = None if question.part is None else purchases(question, card)
    if bought is None or question.part is None:
        return question.sql
    texts = statements_in(question.sql)
    return ";\n".join(texts[place] for place in bought.serves[question.part])


def payable_plan(
    question: Question, card: DataCard, books: Ledger | None = None, data: str | None = None
) -> AnyPlan:
    """The plan; refused if its price is so small that a budget would buy questions without end."""
    if books is None or data is None:
        plan = plan_of(question, card)
    else:
        paid = {entry.question for entry in books.entries(card.account_name)}
        plan = plan_to_pay(question, card, books, data, paid)
    _check_price(plan, card)
    return plan


def _check_price(plan: AnyPlan, card: DataCard) -> None:
    budget = card.budget
    if budget is None:
        return
    whole = {"epsilon": budget.epsilon, "rho": budget.rho or budget.epsilon**2 / 100}
    for name, most in whole.items():
        least = most / _LEAST_SHARE
        if 0 < getattr(plan.cost, name) < least:
            problem = f"is less than a {_LEAST_SHARE:,}th of the budget of {card.account_name}"
            remedy = f"ask for {name} = {exact_text(least, 16)} or more"
            raise InvalidParameter("price", problem=problem, remedy=remedy)


def previewed(
    question: Question, card: DataCard, data: str | None, books: Ledger | None = None
) -> dict[str, Any]:
    """What is said of a plan, but for what the ledger says."""
    if (bought := purchases(question, card)) is not None:
        return _previewed_together(bought, card, data)
    plan = payable_plan(question, card, books, data)
    words = plan_words(plan)
    weights: Any = question.weights
    prices: list[tuple[str, ...]] = []
    if isinstance(plan, Plan):
        prices = price_rows(plan.query, plan.card, delta=question.delta, weights=weights)
    return {
        "title": words.title,
        "cost": plan.cost.to_json(),
        "gaussian": plan.gaussian_noise,
        "guarantee": plan.guarantee,
        "facts": words.facts,
        "columns": words.table,
        "prices": prices,
        "question": None if data is None else question_of_plan(plan, data),
    }


def _previewed_together(bought: WorkloadPlan, card: DataCard, data: str | None) -> dict[str, Any]:
    """The same of several plans; what is on record of them is not to be paid again."""
    words = [plan_words(plan) for plan in bought.plans]
    numbered = list(enumerate(words, start=1))
    for plan in bought.plans:
        _check_price(plan, card)
    several = sum(len(places) for places in bought.serves)
    shared = f", bought as {len(words)}" if len(words) < several else ""
    return {
        "title": f"{several} questions{shared}",
        "cost": bought.cost.to_json(),
        "gaussian": all(plan.gaussian_noise for plan in bought.plans),
        "guarantee": "Each answer has a price, a promise and a certificate of its own.",
        "facts": [(f"answer {number}", f"{one.title}: {one.price}") for number, one in numbered],
        "columns": [
            words[0].table[0],
            *((f"{n}. {row[0]}", *row[1:]) for n, one in numbered for row in one.table[1:]),
        ],
        "prices": [],
        "question": None,
        "parts": [
            (None if data is None else question_of_plan(plan, data), plan.cost.to_json())
            for plan in bought.plans
        ],
    }
