"""The catalogue, and the page of a table."""

from __future__ import annotations

from asyncio import to_thread
from typing import Any

from starlette.responses import Response

from lastbit.report import account_json, budget_parts
from lastbit.serve.catalogue import Served
from lastbit.serve.handling import Call, see
from lastbit.serve.slots import UNSAID
from lastbit.serve.views import allowance_parts, examples_of, path_to, protects, timing
from lastbit.tables import unit_name

_MOST_NEW = 5


def catalogue(call: Call) -> Response:
    """The tables that one may see, with budgets, and the newest answers."""
    return call.page(
        "catalogue.html",
        title="Tables",
        tables=[_table_line(call, served) for served in call.tables()],
        answers=call.desk.answers(call.who)[:_MOST_NEW],
        alone="users" in call.who.rights and len(call.books.principals()) == 1,
    )


def table(call: Call) -> Response:
    """What is publicly known of a table."""
    served = call.table()
    return call.page(
        "table.html",
        title=served.name,
        one=_table_line(call, served),
        card=served.card,
        protects=protects(served.card),
        data=served.data(),
        examples=examples_of(served),
        timing=timing(served.slot, strict=call.settings.strict),
        unsaid=UNSAID if served.is_unsized and "data" in call.who.rights else None,
    )


async def data_accepted(call: Call) -> Response:
    """From now on questions are about the data as they are."""
    name = call.path["table"]
    await call.desk.accept(name, call.who)
    await to_thread(call.note, "data accepted", name)
    return see(path_to("tables", name))


def _table_line(call: Call, served: Served) -> dict[str, Any]:
    card = served.card
    mine = call.desk.catalogue.allowance(served, call.who)
    whose = "row" if card.unit is None else unit_name(card.unit)
    return {
        "name": served.name,
        "about": f"Protects each {whose}",
        "columns": f"{len(card.columns)} columns" if len(card.columns) != 1 else "1 column",
        "account_name": served.account_name,
        "account": budget_parts(account_json(served.account())),
        "allowances": [] if mine is None else [allowance_parts(mine, "Your allowance")],
        "changed": served.changed(),
    }
