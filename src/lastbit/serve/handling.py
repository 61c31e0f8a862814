"""What handlers of pages and of the API share: who asks, what they may see, where a page leads."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse

from lastbit.ledger import Ledger
from lastbit.release import Answer, Marginals
from lastbit.serve.catalogue import Served
from lastbit.serve.identity import Action, Identity
from lastbit.serve.questions import Refusal
from lastbit.serve.routes import RIGHTS
from lastbit.serve.views import render

_DONE: Mapping[str, str] = MappingProxyType(
    {
        "role": "The role is changed.",
        "removed": "The user is removed, and signed out everywhere.",
        "revoked": "All sessions are ended and all tokens revoked.",
        "allowance": "The allowance is set.",
        "ended": "The allowance is ended.",
        "token": "The token is revoked.",
        "session": "The session is ended.",
    }
)
"""What is said after something was done; an address names it by its key."""
MOST_LINES = 100
"""Of a list on one page."""


# ---------------------------------------------------------------- who asks, about what


def who_asks(request: Request) -> Identity:
    """The principal in whose name it is asked, who has the right of the route."""
    who: Identity = request.state.identity
    return who


def with_all_rights(request: Request) -> Identity:
    """Who acts with all rights of their role."""
    who = who_asks(request)
    if who.tables is not None or who.rights != RIGHTS[who.role]:
        detail = (
            "This session was begun by a restricted token; sign in by a link, or another token."
        )
        raise Refusal(status=403, title="Not allowed", detail=detail, kind="not-allowed")
    return who


def books_of(request: Request) -> Ledger:
    """The server's one ledger."""
    books: Ledger = request.app.state.gate.ledger
    return books


async def noted(request: Request, action: Action, subject: str, words: str | None = None) -> None:
    """Write it into the audit log."""
    await to_thread(request.app.state.gate.audit, who_asks(request), action, subject, words)


async def tables_seen(request: Request) -> list[Served]:
    """The tables that one may see."""
    seen_by = request.app.state.desk.catalogue.seen_by
    found: list[Served] = await to_thread(seen_by, who_asks(request))
    return found


async def table_asked(request: Request) -> Served:
    """The table of the address; one that may not be seen is as unknown as one that is not there."""
    name = request.path_params["table"]
    found: Served = await to_thread(request.app.state.desk.table, name, who_asks(request))
    return found


async def user_named(request: Request) -> str:
    """The name in the address, of a principal that there is."""
    name: str = request.path_params["name"]
    if await to_thread(books_of(request).principal, name) is None:
        raise unknown("user", "There is no such user; look at the list of users.")
    return name


async def record_asked(request: Request) -> dict[str, Any]:
    """The record of the answer in the address."""
    answer, entry = request.app.state.desk.answer, request.path_params["entry"]
    found: dict[str, Any] = await to_thread(answer, entry, who_asks(request))
    return found


def released_as(record: dict[str, Any]) -> Answer | Marginals:
    """What a record is of: one table, or several."""
    return (Marginals if "marginals" in record["plan"] else Answer)(record)


# ---------------------------------------------------------------- what is said


def see(path: str) -> RedirectResponse:
    """Go on to a page."""
    return RedirectResponse(path, 303)


def said(request: Request) -> str:
    """What was done just before, by the address."""
    return _DONE.get(request.query_params.get("done", ""), "")


def digits(text: str | None) -> int | None:
    """The whole number that a text is; None if it is none."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) <= 12 else None


def shown_once(
    request: Request, secret: str, *, heading: str, words: str, back: str
) -> HTMLResponse:
    """The page of a secret that the server does not keep."""
    told: dict[str, Any] = {"secret": secret, "heading": heading, "words": words, "back": back}
    return render(request, "secret.html", title=heading, **told)


def unknown(what: str, detail: str) -> Refusal:
    """There is no such thing."""
    return Refusal(status=404, title="Not found", detail=detail, kind=f"unknown-{what}")


def wrong(detail: str) -> Refusal:
    """What was sent cannot be meant."""
    return Refusal(status=422, title="Not accepted", detail=detail, kind="invalid")
