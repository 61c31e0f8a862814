"""The application: every route of the list, behind its right, and nothing else.

Theorem  (default deny)  A handler runs only for a request whose identity has the right of its
         route, or if that is "open"
Proof    `application` makes its routes of ROUTES alone, each by `_guarded`, which calls the handler
         in its last line. A `Route` without a right of the list cannot be made
Checked  tests/serve/test_escalation.py: every route as each role, signed out, revoked, restricted
"""

from __future__ import annotations

import logging
from asyncio import to_thread
from collections.abc import Awaitable, Callable
from importlib import import_module
from inspect import iscoroutinefunction
from typing import TypeAlias

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as Served

from lastbit.serve.api import Json
from lastbit.serve.desk import Desk
from lastbit.serve.handling import Call
from lastbit.serve.identity import Gate
from lastbit.serve.pages.signing import refused
from lastbit.serve.problems import problem, refusal_of
from lastbit.serve.questions import Refusal, not_allowed
from lastbit.serve.routes import API, ROUTES, Route
from lastbit.serve.safety import SAFE_METHODS, Rates, Safety
from lastbit.serve.settings import Settings

Handler: TypeAlias = Callable[[Request], Awaitable[Response]]
_SIGN_INS = ("/sign-in", "/link/{code}")
_GUESSES_A_MINUTE = 30
_PROXIED_GUESSES_A_MINUTE = 600  # all come from the proxy's one address
MOST_REQUESTS_A_MINUTE = 1200
"""What is neither a preview nor paid for, of one principal."""
_LOG = logging.getLogger("lastbit.serve")


def application(
    desk: Desk, gate: Gate, settings: Settings, rates: Rates | None = None
) -> Starlette:
    """The server's pages and its API; who runs it starts and stops the desk."""
    rates = Rates() if rates is None else rates
    app = Starlette(
        routes=[
            Served(route.path, _guarded(route, _handler(route), rates), methods=[route.method])
            for route in ROUTES
        ],
        middleware=[Middleware(Safety, settings=settings, failed=_failed)],
        exception_handlers={HTTPException: _failed, Refusal: _failed},
    )
    app.router.redirect_slashes = False
    app.state.desk, app.state.gate, app.state.settings = desk, gate, settings
    return app


def _guarded(route: Route, handler: Handler, rates: Rates) -> Handler:
    """The handler behind its route's right and rate."""

    async def guarded(request: Request) -> Response:
        gate: Gate = request.app.state.gate
        settings: Settings = request.app.state.settings
        request.state.route = route
        address, guesses = "proxy", _PROXIED_GUESSES_A_MINUTE
        if request.client is not None and not settings.behind_proxy:
            address, guesses = request.client.host, _GUESSES_A_MINUTE
        if route.path in _SIGN_INS and request.method == "POST":
            rates.take(f"sign-in {address}", guesses)
        identity = await run_in_threadpool(gate.identity_of, request.scope)
        request.state.identity = identity
        if route.right != "open":
            if identity is None:
                if "authorization" in request.headers:
                    rates.take(f"guess {address}", guesses)
                raise _signed_out(route)
            if route.right not in identity.rights:
                raise not_allowed("Your role, or your token, does not allow this; ask a steward.")
            kind, most = {
                "preview": ("preview", settings.previews_a_minute),
                "ask": ("ask", settings.questions_a_minute),
            }.get(route.right, ("other", MOST_REQUESTS_A_MINUTE))
            rates.take(f"{kind} {identity.principal}", most)  # anybody may make more tokens
            if identity.via == "token":
                await run_in_threadpool(gate.seen, identity)
        return await handler(request)

    return guarded


def _signed_out(route: Route) -> Refusal:
    remedy = "Send a token as Authorization: Bearer." if route.is_api else "Sign in first."
    headers = {"www-authenticate": "Bearer"} if route.is_api else {}
    return Refusal(401, "Not signed in", remedy, "not-signed-in", headers)


# ---------------------------------------------------------------- handlers


def _handler(route: Route) -> Handler:
    """The function that a route names, as an endpoint: a call comes in, a response goes out."""
    file, _, name = f"{'api' if route.is_api else 'pages'}.{route.handler}".rpartition(".")
    function = getattr(import_module(f"lastbit.serve.{file}"), name)

    async def handler(request: Request) -> Response:
        call = Call(request, b"" if request.method in SAFE_METHODS else await request.body())
        if iscoroutinefunction(function):
            found = await function(call)
        else:
            found = await to_thread(function, call)  # not where identities are looked up
        if isinstance(found, Response):
            return found
        status = route.status
        return Response(status_code=status) if found is None else Json(found, status_code=status)

    return handler


async def _failed(request: Request, error: Exception) -> Response:
    """What is said of an error: a problem document, or a page."""
    refusal = _not_there(error) if isinstance(error, HTTPException) else refusal_of(error)
    if refusal is not error and refusal.status >= 500:
        _LOG.error("%s: %s", refusal.status, type(error).__name__)
    if request.url.path.startswith(f"{API}/"):
        return problem(refusal)
    response = refused(request, refusal)
    response.headers.update(refusal.headers)
    return response


def _not_there(error: HTTPException) -> Refusal:
    """Starlette's own: no such path, or not by this method."""
    headers = dict(error.headers or {})
    if error.status_code == 405:
        detail = "This address does not take that method."
        return Refusal(405, "Not so", detail, "method", headers)
    return Refusal(error.status_code, "Not found", "There is no such page.", "not-found", headers)
