"""The one list of routes: the application, the OpenAPI document and the tests are made of it.

Whoever is not signed in reaches what is "open" and nothing else. Every other route names one right,
and a role that lacks it is refused before the handler runs. A token may have less than its
principal, never more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias, get_args

from lastbit.errors import InvalidParameter

Right: TypeAlias = Literal[
    "open",  # no sign-in
    "self",  # one's own session and tokens
    "browse",  # tables, answers and budgets of tables that one may see
    "preview",  # price and error of a question, made-up answers
    "ask",  # pay for an answer
    "ledger",  # all entries
    "audit",  # the log of who did what
    "users",  # principals, their links and tokens
    "allowances",
    "data",  # accept a version of the data
]
RIGHTS: Mapping[str, frozenset[Right]] = MappingProxyType(
    {
        "analyst": frozenset({"open", "self", "browse", "preview", "ask"}),
        "auditor": frozenset({"open", "self", "browse", "ledger", "audit"}),
        "steward": frozenset(
            {
                "open",
                "self",
                "browse",
                "preview",
                "ask",
                "ledger",
                "audit",
                "users",
                "allowances",
                "data",
            }
        ),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A method and path, the right it needs, and the function of `api.py` or of a file of pages."""

    method: Literal["GET", "POST", "PUT", "DELETE"]
    path: str
    handler: str
    right: Right
    summary: str
    body: str | None = None
    """The schema of what is sent: a name in `openapi.py`; of a page, None: forms are read there."""
    gives: str | None = None
    """The schema of a good answer; None: a page, or a file."""
    status: int = 200

    def __post_init__(self) -> None:
        if self.right not in get_args(Right):
            problem, remedy = "has no right of the list", "say who may use it, as a Right"
            raise InvalidParameter(f"route {self.path}", problem=problem, remedy=remedy)

    @property
    def is_api(self) -> bool:
        """Whether programs call it: errors are problem documents, and cookies do not count."""
        return self.path.startswith(API)


API = "/api/v1"


def _page(method: str, path: str, handler: str, right: Right, summary: str) -> Route:
    return Route(
        method=method,  # type: ignore[arg-type]  # written below, all four
        path=path,
        handler=handler,
        right=right,
        summary=summary,
    )


PAGES: tuple[Route, ...] = (
    _page("GET", "/", "tables.catalogue", "browse", "Tables and their budgets"),
    _page("GET", "/sign-in", "signing.sign_in", "open", "Sign in by a token"),
    _page("POST", "/sign-in", "signing.signed_in", "open", "Begin a session"),
    _page("GET", "/link/{code}", "signing.link", "open", "A one-time link: shows a button"),
    _page("POST", "/link/{code}", "signing.link_used", "open", "Use a one-time link"),
    _page("POST", "/sign-out", "signing.signed_out", "self", "End the session"),
    _page("GET", "/me", "signing.me", "self", "One's own tokens and sessions"),
    _page("POST", "/me/tokens", "signing.token_made", "self", "Make a token, shown once"),
    _page("POST", "/me/tokens/{token}/revoke", "signing.token_revoked", "self", "Revoke a token"),
    _page("POST", "/me/sessions/{session}/end", "signing.session_ended", "self", "End a session"),
    _page("GET", "/tables/{table}", "tables.table", "browse", "Columns, bounds, keys, examples"),
    _page("POST", "/tables/{table}/accept", "tables.data_accepted", "data", "Accept the data"),
    _page("GET", "/tables/{table}/ask", "asking.ask", "preview", "The editor"),
    _page("POST", "/tables/{table}/preview", "asking.preview", "preview", "Price and error"),
    _page("POST", "/tables/{table}/made-up", "asking.made_up", "preview", "A made-up answer"),
    _page("POST", "/tables/{table}/ask", "asking.asked", "ask", "Pay, and wait for the answer"),
    _page("GET", "/jobs/{job}", "answers.job", "browse", "A question that is waiting"),
    _page("GET", "/answers", "answers.answers", "browse", "All answers"),
    _page("GET", "/answers/{entry:int}", "answers.answer", "browse", "An answer"),
    _page("GET", "/answers/{entry:int}/{file}", "answers.answer_file", "browse", "As a file"),
    _page("GET", "/budget", "books.budget", "browse", "What is spent and what is left"),
    _page("GET", "/ledger", "books.ledger", "ledger", "All entries"),
    _page("GET", "/ledger/register.{kind}", "books.register", "ledger", "The register of releases"),
    _page("GET", "/users", "users.users", "users", "Principals and allowances"),
    _page("POST", "/users", "users.user_set", "users", "Add a principal, or change its role"),
    _page("POST", "/users/{name}/link", "users.user_link", "users", "A one-time link to sign in"),
    _page("POST", "/users/{name}/revoke", "users.user_revoked", "users", "End all sign-ins"),
    _page("POST", "/users/{name}/remove", "users.user_removed", "users", "Remove a principal"),
    _page("POST", "/allowances", "users.allowance_set", "allowances", "Set or end an allowance"),
    _page("GET", "/audit", "books.audit", "audit", "Who did what"),
    _page("GET", "/static/{file}", "signing.static", "open", "Style and script"),
    _page("GET", "/healthz", "signing.health", "open", "Whether the server is well"),
)


def _api(
    method: str,
    path: str,
    handler: str,
    right: Right,
    summary: str,
    body: str | None = None,
    gives: str | None = None,
    status: int = 200,
) -> Route:
    return Route(
        method=method,  # type: ignore[arg-type]  # written below, all four
        path=f"{API}{path}",
        handler=handler,
        right=right,
        summary=summary,
        body=body,
        gives=gives,
        status=status,
    )


CALLS: tuple[Route, ...] = (
    _api("GET", "/openapi.json", "openapi", "open", "This document"),
    _api("GET", "/tables", "tables", "browse", "Tables that may be asked", gives="Tables"),
    _api("GET", "/tables/{table}", "table", "browse", "What its card declares", gives="Table"),
    _api(
        "POST",
        "/tables/{table}/preview",
        "preview",
        "preview",
        "Price and error",
        "Question",
        "Preview",
    ),
    _api(
        "POST",
        "/tables/{table}/made-up",
        "made_up",
        "preview",
        "An answer on made-up rows",
        "Question",
        "Answer",
    ),
    _api(
        "POST",
        "/tables/{table}/questions",
        "asked",
        "ask",
        "Pay for an answer",
        "Question",
        "Job",
        202,
    ),
    _api(
        "POST",
        "/tables/{table}/data",
        "data_accepted",
        "data",
        "Accept the data as they are",
        None,
        "Accepted",
    ),
    _api("GET", "/jobs", "jobs", "browse", "One's own questions, the newest first", gives="Jobs"),
    _api("GET", "/jobs/{job}", "job", "browse", "A question that was paid for", gives="Job"),
    _api("GET", "/answers", "answers", "browse", "All answers", gives="Answers"),
    _api("GET", "/answers/{entry:int}", "answer", "browse", "An answer", gives="Answer"),
    _api("GET", "/answers/{entry:int}/csv", "answer_csv", "browse", "An answer as CSV"),
    _api(
        "GET",
        "/answers/{entry:int}/certificate",
        "answer_certificate",
        "browse",
        "Its certificate",
        gives="Certificate",
    ),
    _api("GET", "/budget", "budget", "browse", "Accounts and one's own allowances", gives="Budget"),
    _api("GET", "/ledger", "ledger", "ledger", "All entries", gives="Entries"),
    _api("GET", "/users", "users", "users", "Principals", gives="Users"),
    _api("PUT", "/users/{name}", "user_set", "users", "Add or change one", "Role", "User"),
    _api("DELETE", "/users/{name}", "user_removed", "users", "Remove one", None, "User"),
    _api("POST", "/users/{name}/link", "user_link", "users", "A one-time link", None, "Link", 201),
    _api(
        "POST",
        "/users/{name}/revoke",
        "user_revoked",
        "users",
        "End sessions and tokens",
        status=204,
    ),
    _api("GET", "/allowances", "allowances", "allowances", "All allowances", gives="Allowances"),
    _api(
        "PUT",
        "/allowances/{account}/{name}",
        "allowance_set",
        "allowances",
        "Set one",
        "Limit",
        "Allowance",
    ),
    _api(
        "DELETE",
        "/allowances/{account}/{name}",
        "allowance_ended",
        "allowances",
        "End one",
        status=204,
    ),
    _api("GET", "/tokens", "tokens", "self", "One's own tokens", gives="Tokens"),
    _api("POST", "/tokens", "token_made", "self", "Make a token", "TokenWish", "Token", 201),
    _api("DELETE", "/tokens/{token}", "token_revoked", "self", "Revoke a token", status=204),
    _api("GET", "/audit", "audit", "audit", "Who did what", gives="Audit"),
)
ROUTES = (*PAGES, *CALLS)
