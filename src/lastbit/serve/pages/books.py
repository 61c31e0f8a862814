"""Budgets, the ledger with its register, and the audit log."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from starlette.responses import Response

from lastbit.release import record_problem
from lastbit.report import account_json, budget_parts, register_csv, register_page, typical_price
from lastbit.serve.catalogue import Served
from lastbit.serve.handling import MOST_LINES, Call, unknown
from lastbit.serve.safety import attachment
from lastbit.serve.views import allowance_parts, entry_line

_KEPT_BY: Mapping[str, str] = MappingProxyType(
    {
        "filter": "prices count together, by the moment filter",
        "gaussian": "prices count together, by the Gaussian filter",
    }
)
_VERIFIED = 1000


def budget(call: Call) -> Response:
    """Accounts and allowances: bars, and what filter and odometer say."""
    who, tables = call.who, call.tables()
    every = "ledger" in who.rights and who.tables is None
    allowances = call.books.allowances(None, None if every else who.principal)
    accounts = []
    for name in dict.fromkeys(served.account_name for served in tables):
        shown = [
            allowance_parts(
                one, "Your allowance" if one.principal == who.principal else one.principal
            )
            for one in allowances
            if one.account == name
        ]
        lost = _unclaimed(call, name) if every else []
        parts = {"name": name, "allowances": shown, "lost": lost}
        accounts.append(parts | _account(call, [t for t in tables if t.account_name == name]))
    return call.page("budget.html", title="Budget", accounts=accounts)


def _account(call: Call, tables: list[Served]) -> dict[str, Any]:
    """Bars and words of the account that these tables share."""
    account, next_ = tables[0].account(), None
    told = [f"Tables: {', '.join(served.name for served in tables)}"]
    if account.filter is not None:
        next_ = typical_price(account, call.books.entries(account.name))
    if account.budget is not None:
        told.append(_KEPT_BY.get(account.budget.kind, "prices add up"))
    return {"about": "; ".join(told), "parts": budget_parts(account_json(account, next_))}


def _unclaimed(call: Call, account: str) -> list[int]:
    """Charged and not answered, and no question that waits: a server was ended in between."""
    known = {entry.hash for entry in call.desk.unclaimed}
    return [entry.sequence for entry in call.books.unanswered(account) if entry.hash in known]


def ledger(call: Call) -> Response:
    """Entries, the newest first; verified where that is quick, or asked for."""
    books, before, whole = call.books, call.number("before"), call.who.tables is None
    entries = books.entries()
    if not whole:
        names = {served.account_name for served in call.tables()}
        entries = tuple(entry for entry in entries if entry.account in names)
    verify = len(entries) <= _VERIFIED or "verify" in call.query
    older = [entry for entry in reversed(entries) if before is None or entry.sequence < before]
    return call.page(
        "ledger.html",
        title="Ledger",
        head=books.head,
        problems=books.problems() if verify else None,
        whole=whole,
        entries=[entry_line(entry) for entry in older[:MOST_LINES]],
        older=older[MOST_LINES - 1].sequence if len(older) > MOST_LINES else None,
    )


def register(call: Call) -> Response:
    """One line a release, to keep or to publish."""
    kinds: dict[str, tuple[Callable[..., str], str]] = {
        "csv": (register_csv, "text/csv"),
        "html": (register_page, "text/html"),
    }
    kind = call.path["kind"]
    if kind not in kinds:
        raise unknown("file", "There is no such file.")
    call.check_all_rights()
    write, media = kinds[kind]
    text = str(write(call.books, record_problem))
    return Response(text, media_type=media, headers=attachment(f"register.{kind}"))


def audit(call: Call) -> Response:
    """Who did what on this server."""
    call.check_all_rights()
    rows = call.gate.audit_lines(call.number("before"), MOST_LINES + 1)
    older = rows[MOST_LINES - 1]["sequence"] if len(rows) > MOST_LINES else None
    told = {"lines": rows[:MOST_LINES], "older": older, "keep_days": call.settings.keep_days}
    return call.page("audit.html", title="Audit log", **told)
