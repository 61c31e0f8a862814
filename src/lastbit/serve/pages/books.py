"""Budgets, the ledger with its register, and the audit log."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from lastbit.release import record_problem
from lastbit.report import account_json, budget_parts, register_csv, register_page, typical_price
from lastbit.serve.handling import (
    MOST_LINES,
    books_of,
    digits,
    tables_seen,
    unknown,
    who_asks,
    with_all_rights,
)
from lastbit.serve.safety import attachment
from lastbit.serve.views import allowance_parts, entry_line, moment, render

_KEPT_BY: Mapping[str, str] = MappingProxyType(
    {"filter": "kept by the moment filter", "gaussian": "kept by the Gaussian filter"}
)
_VERIFIED = 1000


async def budget(request: Request) -> Response:
    """Accounts and allowances: bars, and what filter and odometer say."""
    who, tables = who_asks(request), await tables_seen(request)
    every = "ledger" in who.rights and who.tables is None
    allowances = await to_thread(
        books_of(request).allowances, None, None if every else who.principal
    )
    accounts = []
    for name in dict.fromkeys(served.account_name for served in tables):
        named = [served for served in tables if served.account_name == name]
        shown = [
            allowance_parts(
                one, "Your allowance" if one.principal == who.principal else one.principal
            )
            for one in allowances
            if one.account == name
        ]
        lost = await to_thread(_unclaimed, request, name) if every else []
        parts = {"name": name, "allowances": shown, "lost": lost}
        accounts.append(parts | await to_thread(_account, request, named))
    return render(request, "budget.html", title="Budget", accounts=accounts)


def _account(request: Request, tables: list[Any]) -> dict[str, Any]:
    """Bars and words of the account that these tables share."""
    account, next_ = tables[0].account(), None
    told = [f"Tables: {', '.join(served.name for served in tables)}"]
    if account.filter is not None:
        next_ = typical_price(account, books_of(request).entries(account.name))
    if account.budget is not None:
        told.append(_KEPT_BY.get(account.budget.kind, "kept by plain sums"))
    return {"about": "; ".join(told), "parts": budget_parts(account_json(account, next_))}


def _unclaimed(request: Request, account: str) -> list[int]:
    """Charged and not answered, and no question that waits: a server was ended in between."""
    known = {entry.hash for entry in request.app.state.desk.unclaimed}
    found = books_of(request).unanswered(account)
    return [entry.sequence for entry in found if entry.hash in known]


async def ledger(request: Request) -> Response:
    """Entries, the newest first; verified where that is quick, or asked for."""
    books, before = books_of(request), digits(request.query_params.get("before"))
    entries = await to_thread(books.entries)
    if (who := who_asks(request)).tables is not None:
        names = {served.account_name for served in await tables_seen(request)}
        entries = tuple(entry for entry in entries if entry.account in names)
    verify = len(entries) <= _VERIFIED or "verify" in request.query_params
    older = [entry for entry in reversed(entries) if before is None or entry.sequence < before]
    return render(
        request,
        "ledger.html",
        title="Ledger",
        head=await to_thread(lambda: books.head),
        problems=await to_thread(books.problems) if verify else None,
        whole=who.tables is None,
        entries=[entry_line(entry) for entry in older[:MOST_LINES]],
        older=older[MOST_LINES - 1].sequence if len(older) > MOST_LINES else None,
    )


async def register(request: Request) -> Response:
    """One line a release, to keep or to publish."""
    kinds: dict[str, tuple[Callable[..., str], str]] = {
        "csv": (register_csv, "text/csv"),
        "html": (register_page, "text/html"),
    }
    kind = request.path_params["kind"]
    if kind not in kinds:
        raise unknown("file", "There is no such file.")
    with_all_rights(request)
    write, media = kinds[kind]
    text = await to_thread(write, books_of(request), record_problem)
    return Response(str(text), media_type=media, headers=attachment(f"register.{kind}"))


async def audit(request: Request) -> Response:
    """Who did what on this server."""
    with_all_rights(request)
    before = digits(request.query_params.get("before"))
    rows = await to_thread(request.app.state.gate.audit_lines, before, MOST_LINES + 1)
    lines = [
        {
            "at": moment(row["at"], exact=True),
            "principal": row["principal"] or "the server",
            "action": row["action"],
            "subject": row["subject"] or "",
            "words": row["words"] or "",
        }
        for row in rows[:MOST_LINES]
    ]
    older = rows[MOST_LINES - 1]["sequence"] if len(rows) > MOST_LINES else None
    keep_days = request.app.state.settings.keep_days
    told = {"lines": lines, "older": older, "keep_days": keep_days}
    return render(request, "audit.html", title="Audit log", **told)
