"""Principals, their links and sessions, and their allowances."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from starlette.responses import Response

from lastbit.ledger import PERIODS, ROLES, Principal
from lastbit.serve.handling import Call, limit_of, see
from lastbit.serve.questions import wrong
from lastbit.serve.views import CURRENCIES, allowance_parts


def users(call: Call) -> Response:
    """Principals and their allowances."""
    call.check_all_rights()
    allowances, new = call.books.allowances(), call.query.get("for")

    def allowances_of(user: Principal) -> list[dict[str, Any]]:
        mine = (one for one in allowances if one.principal == user.name)
        return [allowance_parts(one, f"Allowance on {one.account}") for one in mine]

    return call.page(
        "users.html",
        title="Users",
        users=sorted(call.books.principals(), key=lambda user: (user.name != new, not user.active)),
        new=new,
        allowances_of=allowances_of,
        roles=ROLES,
        accounts=sorted({served.account_name for served in call.tables()}),
        currencies=CURRENCIES,
        periods=PERIODS,
        said=call.said,
    )


def user_set(call: Call) -> Response:
    """Adds somebody, with a link to sign in, or changes a role."""
    call.check_all_rights()
    form = call.form()
    name, role, is_new = form.get("name", "").strip(), form.get("role"), form.get("new") == "yes"
    if role not in ROLES:
        raise wrong(f"A role is one of {', '.join(ROLES)}.")
    if is_new and (known := call.books.principal(name)) is not None and known.active:
        raise wrong("There is a user of this name; change the role below.")
    call.gate.principal_set(name, role, by=call.who)
    return _link_page(call, name, is_new=True) if is_new else see("/users?done=role")


def user_link(call: Call) -> Response:
    """A link to sign in, shown this once."""
    call.check_all_rights()
    return _link_page(call, call.path["name"])


def _link_page(call: Call, name: str, *, is_new: bool = False) -> Response:
    """The link; of a new analyst, who sees no table yet, with the way to an allowance."""
    onward = None
    if is_new and (user := call.books.principal(name)) is not None and user.role == "analyst":
        onward = f"/users?for={quote(name, safe='')}#allow", f"Give {name} an allowance"
    return call.secret_page(
        call.settings.address + call.gate.link_made(name, by=call.who),
        heading=f"A sign-in link for {name}",
        words=f"For {name} alone. It works once, within an hour.",
        back="/users",
        onward=onward,
    )


def user_revoked(call: Call) -> Response:
    """Ends sessions and tokens; the role stays."""
    call.check_all_rights()
    call.gate.all_ended(call.user(), by=call.who)
    return see("/users?done=revoked")


def user_removed(call: Call) -> Response:
    """Takes the role away; the name stays taken."""
    call.check_all_rights()
    call.gate.principal_set(call.user(), None, by=call.who)
    return see("/users?done=removed")


def allowance_set(call: Call) -> Response:
    """Sets or ends how much of an account somebody may spend."""
    call.check_all_rights()
    form = call.form()
    limit = None if form.get("end") == "yes" else limit_of(form)
    call.set_allowance(form.get("account", ""), form.get("principal", ""), limit)
    return see(f"/users?done={'allowance' if limit else 'ended'}")
