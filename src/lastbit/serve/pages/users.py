"""Principals, their links and sessions, and their allowances."""

from __future__ import annotations

from asyncio import to_thread
from fractions import Fraction
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from lastbit.errors import InvalidParameter
from lastbit.exact import rational
from lastbit.ledger import PERIODS, ROLES, Limit
from lastbit.serve.handling import (
    books_of,
    noted,
    said,
    see,
    shown_once,
    tables_seen,
    unknown,
    user_named,
    who_asks,
    with_all_rights,
    wrong,
)
from lastbit.serve.safety import form_of
from lastbit.serve.views import CURRENCIES, allowance_parts, render


async def users(request: Request) -> Response:
    """Principals and their allowances."""
    with_all_rights(request)
    books = books_of(request)
    allowances = await to_thread(books.allowances)
    accounts = sorted({served.account_name for served in await tables_seen(request)})
    lines = [
        {
            "name": one.name,
            "role": one.role,
            "active": one.active,
            "place": place,
            "allowances": [
                allowance_parts(each, f"Allowance on {each.account}")
                for each in allowances
                if each.principal == one.name
            ],
        }
        for place, one in enumerate(await to_thread(books.principals))
    ]
    return render(
        request,
        "users.html",
        title="Users",
        users=sorted(lines, key=lambda line: not line["active"]),
        roles=ROLES,
        accounts=accounts,
        currencies=CURRENCIES,
        periods=PERIODS,
        said=said(request),
    )


async def user_set(request: Request) -> Response:
    """Adds somebody, with a link to sign in, or changes a role."""
    who, gate, form = with_all_rights(request), request.app.state.gate, await form_of(request)
    name, role = form.get("name", "").strip(), form.get("role")
    if role not in ROLES:
        raise wrong(f"A role is one of {', '.join(ROLES)}.")
    if form.get("new") == "yes":
        known = await to_thread(books_of(request).principal, name)
        if known is not None and known.active:
            raise wrong("There is a user of this name; change the role below.")
    await to_thread(lambda: gate.principal_set(name, role, by=who))
    return await _link(request, name) if form.get("new") == "yes" else see("/users?done=role")


async def user_link(request: Request) -> Response:
    """A link to sign in, shown this once."""
    with_all_rights(request)
    return await _link(request, request.path_params["name"])


async def _link(request: Request, name: str) -> Response:
    gate, who = request.app.state.gate, who_asks(request)
    path = await to_thread(lambda: gate.link_made(name, by=who))
    return shown_once(
        request,
        request.app.state.settings.address + path,
        heading=f"A sign-in link for {name}",
        words=f"For {name} alone. It works once, within an hour.",
        back="/users",
    )


async def user_revoked(request: Request) -> Response:
    """Ends sessions and tokens; the role stays."""
    who, gate = with_all_rights(request), request.app.state.gate
    name = await user_named(request)
    await to_thread(lambda: gate.all_ended(name, by=who))
    return see("/users?done=revoked")


async def user_removed(request: Request) -> Response:
    """Takes the role away; the name stays taken."""
    who, gate = with_all_rights(request), request.app.state.gate
    name = await user_named(request)
    await to_thread(lambda: gate.principal_set(name, None, by=who))
    return see("/users?done=removed")


async def allowance_set(request: Request) -> Response:
    """Sets or ends how much of an account somebody may spend."""
    who, form = with_all_rights(request), await form_of(request)
    account, name = form.get("account", ""), form.get("principal", "")
    if account not in {served.account_name for served in await tables_seen(request)}:
        raise unknown("account", "No table of this server has such an account.")
    limit = None
    if form.get("end") != "yes":
        exact = {
            currency: _exact(letter, text)
            for currency, letter in CURRENCIES
            if (text := form.get(currency, "").strip())
        }
        period: Any = form.get("period") or None
        limit = Limit(**exact, period=period)
    books = books_of(request)
    await to_thread(lambda: books.set_allowance(account, name, limit, by=who.principal))
    await noted(request, "allowance set" if limit else "allowance ended", name, account)
    return see(f"/users?done={'allowance' if limit else 'ended'}")


def _exact(letter: str, text: str) -> Fraction:
    try:
        return rational(text, letter)
    except InvalidParameter:
        raise wrong(f"{letter} is not a number: write 0.5, 1/3 or 1e-9.") from None
