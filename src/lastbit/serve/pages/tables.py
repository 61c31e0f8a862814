"""The catalogue, and the page of a table."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from lastbit.report import account_json, budget_parts
from lastbit.serve.handling import books_of, noted, see, table_asked, tables_seen, who_asks
from lastbit.serve.views import (
    allowance_parts,
    answer_line,
    card_columns,
    examples_of,
    path_to,
    protects,
    render,
    timing,
)
from lastbit.tables import DataCard, unit_name

_MOST_NEW = 5


async def catalogue(request: Request) -> Response:
    """The tables that one may see, with budgets, and the newest answers."""
    tables = [await _table_line(request, served) for served in await tables_seen(request)]
    answers = await to_thread(request.app.state.desk.answers, who_asks(request))
    lines = [answer_line(line) for line in answers[:_MOST_NEW]]
    told: dict[str, Any] = {"tables": tables, "answers": lines, "alone": False}
    if "users" in who_asks(request).rights:
        told["alone"] = len(await to_thread(books_of(request).principals)) == 1
    return render(request, "catalogue.html", title="Tables", **told)


async def table(request: Request) -> Response:
    """What is publicly known of a table."""
    served = await table_asked(request)
    card: DataCard = served.card
    joined: list[tuple[str, str, Sequence[tuple[str, ...]]]] = [
        (name, "Public: join it freely.", [("column", "type"), *one.columns.items()])
        for name, one in card.public.items()
    ]
    joined += [
        (
            name,
            f"Private, joined on {unit_name(one.unit)}: at most {one.max_rows:,} rows of one "
            f"{unit_name(card.unit or one.unit)} are used.",
            card_columns(one.columns.values()),
        )
        for name, one in card.private.items()
    ]
    return render(
        request,
        "table.html",
        title=served.name,
        one=await _table_line(request, served),
        protects=protects(card),
        columns=card_columns(card.columns.values()),
        joined=joined,
        data=await to_thread(served.data),
        examples=examples_of(served),
        timing=timing(served.slot, strict=request.app.state.settings.strict),
    )


async def data_accepted(request: Request) -> Response:
    """From now on questions are about the data as they are."""
    served = await table_asked(request)
    await request.app.state.desk.accept(served.name, who_asks(request))
    await noted(request, "data accepted", served.name)
    return see(path_to("tables", served.name))


async def _table_line(request: Request, served: Any) -> dict[str, Any]:
    card, who = served.card, who_asks(request)
    account = await to_thread(served.account)
    mine = await to_thread(request.app.state.desk.catalogue.allowance, served, who)
    whose = "row" if card.unit is None else unit_name(card.unit)
    return {
        "name": served.name,
        "about": f"Protects each {whose}",
        "columns": f"{len(card.columns)} columns" if len(card.columns) != 1 else "1 column",
        "account_name": served.account_name,
        "account": budget_parts(account_json(account)),
        "allowances": [] if mine is None else [allowance_parts(mine, "Your allowance")],
        "changed": await to_thread(served.changed),
    }
