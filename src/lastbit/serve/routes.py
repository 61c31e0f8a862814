"""The one list of routes: the application, the OpenAPI document and the tests are made of it.

Whoever is not signed in reaches what is "open" and nothing else. Every other route names one right,
and a role that lacks it is refused before the handler runs. A token may have less than its
principal, never more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
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
        "steward": frozenset(get_args(Right)),
    }
)


API = "/api/v1"


@dataclass(frozen=True, slots=True)
class Route:
    """A method and path, the right it needs, and the function of `api.py` or of a file of pages.

    What it does is said once, by the first line of that function.
    """

    method: Literal["GET", "POST", "PUT", "DELETE"]
    path: str
    handler: str
    right: Right
    body: str | None = None
    """The schema of what is sent: a name in `schemas.py`; of a page, None: forms are read there."""
    gives: str | None = None
    """The schema of a good answer; None: a page, a file, or nothing."""
    status: int = 200

    def __post_init__(self) -> None:
        if self.right not in get_args(Right):
            problem, remedy = "has no right of the list", "say who may use it, as a Right"
            raise InvalidParameter(f"route {self.path}", problem=problem, remedy=remedy)

    @property
    def is_api(self) -> bool:
        """Whether programs call it: errors are problem documents, and cookies do not count."""
        return self.path.startswith(API)


PAGES: tuple[Route, ...] = (
    Route("GET", "/", "tables.catalogue", "browse"),
    Route("GET", "/sign-in", "signing.sign_in", "open"),
    Route("POST", "/sign-in", "signing.signed_in", "open"),
    Route("GET", "/link/{code}", "signing.link", "open"),
    Route("POST", "/link/{code}", "signing.link_used", "open"),
    Route("POST", "/sign-out", "signing.signed_out", "self"),
    Route("GET", "/me", "signing.me", "self"),
    Route("POST", "/me/tokens", "signing.token_made", "self"),
    Route("POST", "/me/tokens/{token}/revoke", "signing.token_revoked", "self"),
    Route("POST", "/me/sessions/{session}/end", "signing.session_ended", "self"),
    Route("GET", "/tables/{table}", "tables.table", "browse"),
    Route("POST", "/tables/{table}/accept", "tables.data_accepted", "data"),
    Route("GET", "/tables/{table}/ask", "asking.ask", "preview"),
    Route("POST", "/tables/{table}/build", "asking.build", "preview"),
    Route("POST", "/tables/{table}/preview", "asking.preview", "preview"),
    Route("POST", "/tables/{table}/made-up", "asking.made_up", "preview"),
    Route("POST", "/tables/{table}/ask", "asking.asked", "ask"),
    Route("GET", "/jobs/{job}", "answers.job", "browse"),
    Route("GET", "/answers", "answers.answers", "browse"),
    Route("GET", "/answers/{entry:int}", "answers.answer", "browse"),
    Route("GET", "/answers/{entry:int}/{file}", "answers.answer_file", "browse"),
    Route("GET", "/budget", "books.budget", "browse"),
    Route("GET", "/ledger", "books.ledger", "ledger"),
    Route("GET", "/ledger/register.{kind}", "books.register", "ledger"),
    Route("GET", "/users", "users.users", "users"),
    Route("POST", "/users", "users.user_set", "users"),
    Route("POST", "/users/{name}/link", "users.user_link", "users"),
    Route("POST", "/users/{name}/revoke", "users.user_revoked", "users"),
    Route("POST", "/users/{name}/remove", "users.user_removed", "users"),
    Route("POST", "/allowances", "users.allowance_set", "allowances"),
    Route("GET", "/audit", "books.audit", "audit"),
    Route("GET", "/help", "signing.help_page", "self"),
    Route("GET", "/static/{file}", "signing.static", "open"),
    Route("GET", "/healthz", "signing.health", "open"),
)
_CALLS = (
    Route("GET", "/openapi.json", "openapi", "open"),
    Route("GET", "/tables", "tables", "browse", gives="Tables"),
    Route("GET", "/tables/{table}", "table", "browse", gives="Table"),
    Route("POST", "/tables/{table}/preview", "preview", "preview", "Question", "Preview"),
    Route("POST", "/tables/{table}/made-up", "made_up", "preview", "Question", "Answer"),
    Route("POST", "/tables/{table}/questions", "asked", "ask", "Question", "Job", 202),
    Route("POST", "/tables/{table}/data", "data_accepted", "data", gives="Accepted"),
    Route("GET", "/jobs", "jobs", "browse", gives="Jobs"),
    Route("GET", "/jobs/{job}", "job", "browse", gives="Job"),
    Route("GET", "/answers", "answers", "browse", gives="Answers"),
    Route("GET", "/answers/{entry:int}", "answer", "browse", gives="Answer"),
    Route("GET", "/answers/{entry:int}/csv", "answer_csv", "browse"),
    Route(
        "GET",
        "/answers/{entry:int}/certificate",
        "answer_certificate",
        "browse",
        gives="Certificate",
    ),
    Route("GET", "/budget", "budget", "browse", gives="Budget"),
    Route("GET", "/ledger", "ledger", "ledger", gives="Entries"),
    Route("GET", "/users", "users", "users", gives="Users"),
    Route("PUT", "/users/{name}", "user_set", "users", "Role", "User"),
    Route("DELETE", "/users/{name}", "user_removed", "users", gives="User"),
    Route("POST", "/users/{name}/link", "user_link", "users", gives="Link", status=201),
    Route("POST", "/users/{name}/revoke", "user_revoked", "users", status=204),
    Route("GET", "/allowances", "allowances", "allowances", gives="Allowances"),
    Route(
        "PUT", "/allowances/{account}/{name}", "allowance_set", "allowances", "Limit", "Allowance"
    ),
    Route("DELETE", "/allowances/{account}/{name}", "allowance_ended", "allowances", status=204),
    Route("GET", "/tokens", "tokens", "self", gives="Tokens"),
    Route("POST", "/tokens", "token_made", "self", "TokenWish", "Token", 201),
    Route("DELETE", "/tokens/{token}", "token_revoked", "self", status=204),
    Route("GET", "/audit", "audit", "audit", gives="Audit"),
)
CALLS = tuple(replace(route, path=API + route.path) for route in _CALLS)
ROUTES = (*PAGES, *CALLS)
