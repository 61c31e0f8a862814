"""Sign-in, links, one's own tokens and sessions; refusals, style and script."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Mapping
from time import time

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from lastbit.serve.handling import said, see, shown_once, tables_seen, unknown, who_asks, wrong
from lastbit.serve.health import health  # noqa: F401  # a handler of the list
from lastbit.serve.identity import with_session, without_session
from lastbit.serve.questions import Refusal
from lastbit.serve.routes import RIGHTS
from lastbit.serve.safety import form_of
from lastbit.serve.views import MAY, STATIC, may_words, moment, render, static_text


def refused(request: Request, refusal: Refusal) -> HTMLResponse:
    """The page that says why not, and what to do."""
    onward = request.url.path if request.method == "GET" and request.url.path != "/" else ""
    words = {"refusal": refusal, "onward": onward}
    return render(request, "refused.html", status=refusal.status, title=refusal.title, **words)


async def static(request: Request) -> Response:
    """Style sheet, script and icon."""
    name = request.path_params["file"]
    if name not in STATIC:
        raise unknown("file", "There is no such file.")
    kept = "public, max-age=31536000, immutable" if request.query_params else "no-cache"
    headers = {"cache-control": kept}
    return Response(static_text(name), media_type=STATIC[name], headers=headers)


# ---------------------------------------------------------------- who signs in


async def sign_in(request: Request) -> Response:
    """The form for a token."""
    return _sign_in(request, onward=_onward(request.query_params.get("next")))


def _sign_in(
    request: Request, *, onward: str = "", problem: str = "", status: int = 200
) -> Response:
    words = {"onward": onward, "problem": problem}
    return render(request, "sign-in.html", status=status, title="Sign in", **words)


async def signed_in(request: Request) -> Response:
    """A session, by a token."""
    form = await form_of(request)
    onward = _onward(form.get("next"))
    try:
        secret = await to_thread(request.app.state.gate.session_of, form.get("token", "").strip())
    except Refusal as refusal:
        return _sign_in(request, onward=onward, problem=refusal.detail, status=refusal.status)
    return with_session(see(onward or "/"), secret)


async def link(request: Request) -> Response:
    """A button: looking at a link does not use it up."""
    code = request.path_params["code"]
    whom = await to_thread(request.app.state.gate.link_found, code)
    return render(request, "link.html", title="Sign in", code=code, whom=whom)


async def link_used(request: Request) -> Response:
    """A session, by a link."""
    name = (await form_of(request)).get("name", "").strip() or None
    secret = await to_thread(request.app.state.gate.link_used, request.path_params["code"], name)
    return with_session(see("/"), secret)


async def signed_out(request: Request) -> Response:
    """The end of the session."""
    await to_thread(request.app.state.gate.session_ended, who_asks(request))
    return without_session(see("/sign-in"))


def _onward(path: str | None) -> str:
    """A page of this server to go on to; nothing else, however it is written."""
    plain = path is not None and path.isascii() and path.isprintable() and "\\" not in path
    return path if plain and path is not None and path[:1] == "/" and path[1:2] != "/" else ""


async def me(request: Request) -> Response:
    """One's own tokens and sessions."""
    gate, who = request.app.state.gate, who_asks(request)
    now = time()
    lines = [
        {
            "id": line.id,
            "name": line.name,
            "may": may_words(line.rights & RIGHTS[who.role], line.tables),
            "made": moment(line.made),
            "ends": "revoked" if line.revoked else moment(line.expires),
            "used": moment(line.used) if line.used else "never",
            "over": bool(line.revoked) or line.expires <= now,
        }
        for line in await to_thread(gate.tokens, who.principal)
    ]
    sessions = [
        {
            "id": line.id,
            "by": "a link" if line.token is None else f"the token {line.token}",
            "made": moment(line.made),
            "ends": moment(line.expires),
            "current": line.current,
        }
        for line in await to_thread(gate.sessions, who)
    ]
    choices = [(right, words) for right, words in MAY.items() if right in who.rights]
    return render(
        request,
        "me.html",
        title=who.principal,
        rights=[words for _, words in choices],
        choices=choices,
        tokens=lines,
        sessions=sessions,
        tables=[served.name for served in await tables_seen(request)],
        address=request.app.state.settings.address,
        said=said(request),
    )


async def token_made(request: Request) -> Response:
    """A token, shown this once."""
    form, gate, who = await form_of(request), request.app.state.gate, who_asks(request)
    days = form.get("days", "")
    if not (days.isascii() and days.isdigit() and len(days) <= 4):
        raise wrong("The number of days is not a whole number.")
    chosen = _named(form, "right:")
    rights = {right for right in who.rights if right in chosen or right in ("open", "self")}
    tables = _named(form, "table:")
    secret, line = await to_thread(
        lambda: gate.token_made(
            who, name=form.get("name", ""), days=int(days), rights=rights, tables=tables or None
        )
    )
    return shown_once(
        request,
        secret,
        heading="Your new token",
        words=f"For {line.name}, until {moment(line.expires)}.",
        back="/me",
    )


def _named(form: Mapping[str, str], prefix: str) -> frozenset[str]:
    return frozenset(name.removeprefix(prefix) for name in form if name.startswith(prefix))


async def token_revoked(request: Request) -> Response:
    """It works no more."""
    gate = request.app.state.gate
    await to_thread(gate.token_revoked, request.path_params["token"], who_asks(request))
    return see("/me?done=token")


async def session_ended(request: Request) -> Response:
    """Signs out wherever this session is."""
    gate = request.app.state.gate
    await to_thread(gate.session_revoked, request.path_params["session"], who_asks(request))
    return see("/me?done=session")
