"""What handlers of pages and of the API are given: a call, with who asks and what they may see.

A handler is a function of a `Call`, run in a thread, or a coroutine where it waits for the desk.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse

from lastbit.errors import InvalidParameter
from lastbit.exact import rational
from lastbit.ledger import Allowance, Ledger, Limit
from lastbit.release import Answer, Marginals
from lastbit.serve.catalogue import Served
from lastbit.serve.desk import Desk
from lastbit.serve.identity import Action, Gate, Identity
from lastbit.serve.questions import Refusal, not_allowed
from lastbit.serve.routes import RIGHTS, Route
from lastbit.serve.schemas import LONGEST_NUMBER
from lastbit.serve.settings import Settings
from lastbit.serve.views import CURRENCIES, render

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
_MOST_FIELDS = 100


class Call:
    """A request whose identity has the right of its route, and the body that came with it."""

    def __init__(self, request: Request, body: bytes) -> None:
        self.request, self.body = request, body
        self.who: Identity = request.state.identity
        """In whose name it is asked; None, whatever the type says, only where a route is open."""
        self.route: Route = request.state.route
        self.desk: Desk = request.app.state.desk
        self.gate: Gate = request.app.state.gate
        self.settings: Settings = request.app.state.settings
        self.path, self.query = request.path_params, request.query_params

    @property
    def books(self) -> Ledger:
        return self.gate.ledger

    # ------------------------------------------------------------ what is sent

    def media_type(self) -> str:
        return self.request.headers.get("content-type", "").partition(";")[0].strip().lower()

    def form(self) -> dict[str, str]:
        """The fields of a form: URL-encoded, each once, in UTF-8."""
        if self.media_type() != "application/x-www-form-urlencoded":
            detail = "Send the form as application/x-www-form-urlencoded."
            raise Refusal(415, "Not a form", detail, "bad-request")
        try:
            fields = parse_qsl(
                self.body.decode("ascii"),
                keep_blank_values=True,
                strict_parsing=bool(self.body),
                errors="strict",
                max_num_fields=_MOST_FIELDS,
            )
        except ValueError:  # also what bytes that are not UTF-8 raise
            raise Refusal(400, "Not a form", "The form cannot be read.", "bad-request") from None
        # browsers send the ends of lines as CR LF, whatever a page has; pages show no CR
        form = {name: text.replace("\r\n", "\n") for name, text in fields}
        if len(form) < len(fields):
            raise Refusal(400, "Not a form", "The form has a field twice.", "bad-request")
        return form

    def number(self, name: str) -> int | None:
        """The whole number that the address says under a name; None if it says none."""
        text = self.query.get(name)
        is_number = text and text.isascii() and text.isdigit() and len(text) <= 12
        return int(text) if text and is_number else None

    # ------------------------------------------------------------ who asks, about what

    def check_all_rights(self) -> None:
        """Refuse who acts by a part of the rights of their role."""
        if self.who.tables is not None or self.who.rights != RIGHTS[self.who.role]:
            raise not_allowed(
                "This session was begun by a restricted token; sign in by a link, or another token."
            )

    def tables(self) -> list[Served]:
        return self.desk.catalogue.seen_by(self.who)

    def table(self) -> Served:
        """The table of the address; one that may not be seen is as unknown as one not there."""
        return self.desk.table(self.path["table"], self.who)

    def user(self) -> str:
        """The name in the address, of a principal that there is."""
        name: str = self.path["name"]
        if self.books.principal(name) is None:
            raise unknown("user", "There is no such user; look at the list of users.")
        return name

    def record(self) -> dict[str, Any]:
        return self.desk.answer(self.path["entry"], self.who)

    # ------------------------------------------------------------ what is done and said

    def note(self, action: Action, subject: str, words: str | None = None) -> None:
        self.gate.audit(self.who, action, subject, words)

    def set_allowance(self, account: str, name: str, limit: Limit | None) -> Allowance | None:
        """Set how much of a table's account somebody may spend; None: end that."""
        if account not in {served.account_name for served in self.tables()}:
            detail = "No table of this server has such an account; look at the list of budgets."
            raise unknown("account", detail)
        found = self.books.set_allowance(account, name, limit, by=self.who.principal)
        self.note("allowance set" if limit else "allowance ended", name, account)
        return found

    def page(self, name: str, **data: Any) -> HTMLResponse:
        return render(self.request, name, **data)

    def secret_page(
        self,
        secret: str,
        *,
        heading: str,
        words: str,
        back: str,
        onward: tuple[str, str] | None = None,
    ) -> HTMLResponse:
        """The page of a secret that the server does not keep, and where to go on from it."""
        words_of = {"heading": heading, "words": words, "back": back, "onward": onward}
        return self.page("secret.html", title=heading, secret=secret, **words_of)

    @property
    def said(self) -> str:
        """What was done just before, by the address."""
        return _DONE.get(self.query.get("done", ""), "")


def limit_of(amounts: Mapping[str, str | None]) -> Limit:
    """The allowance that these exact texts and a period are; what is missing or empty has none."""
    exact = {}
    for name, letter in CURRENCIES:
        if text := (amounts.get(name) or "").strip():
            exact[name] = exact_number(text, letter)
    period: Any = amounts.get("period") or None
    return Limit(**exact, period=period)


def exact_number(text: str, letter: str, field: str = "") -> Fraction:
    """The number that somebody wrote into a field; refused in the words of the page."""
    try:
        if len(text) <= LONGEST_NUMBER:
            return rational(text, letter)
    except InvalidParameter:
        pass
    detail = f"{letter} is not a number: write 0.5, 1/3 or 1e-9."
    raise Refusal(422, "Not accepted", detail, "refused", field=field)


def released_as(record: dict[str, Any]) -> Answer | Marginals:
    """What a record is of: one table, or several."""
    return (Marginals if "marginals" in record["plan"] else Answer)(record)


def see(path: str) -> RedirectResponse:
    """Go on to a page."""
    return RedirectResponse(path, 303)


def unknown(what: str, detail: str) -> Refusal:
    """There is no such thing."""
    return Refusal(404, "Not found", detail, f"unknown-{what}")
