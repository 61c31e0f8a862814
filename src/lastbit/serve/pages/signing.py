"""Sign-in, links, one's own tokens and sessions; refusals, style and script, and health."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping
from time import monotonic, time
from typing import Literal

from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from lastbit.errors import LastbitError
from lastbit.serve.handling import Call, see, unknown
from lastbit.serve.identity import Gate, with_session, without_session
from lastbit.serve.questions import Refusal, wrong
from lastbit.serve.reference import reference_of_help
from lastbit.serve.routes import RIGHTS
from lastbit.serve.views import MAY, STATIC, may_words, moment, render, static_text

_LEAST_ROOM = 64 << 20
"""Bytes that a disk must have left: a ledger that cannot be written charges nothing."""
_LOOKED = 1.0  # seconds for which a look at the server's health counts


def refused(request: Request, refusal: Refusal) -> HTMLResponse:
    """The page that says why not, and what to do."""
    onward = request.url.path if request.method == "GET" and request.url.path != "/" else ""
    words = {"refusal": refusal, "onward": onward}
    return render(request, "refused.html", status=refusal.status, title=refusal.title, **words)


def static(call: Call) -> Response:
    """Style sheet, script and icon."""
    name = call.path["file"]
    if name not in STATIC:
        raise unknown("file", "There is no such file.")
    kept = "public, max-age=31536000, immutable" if call.query else "no-cache"
    return Response(static_text(name), media_type=STATIC[name], headers={"cache-control": kept})


def help_page(call: Call) -> Response:
    """How to ask, what prices and errors mean, and SQL in a minute."""
    return call.page("help.html", title="Help", reference=reference_of_help())


def health(call: Call) -> PlainTextResponse:
    """200 and "ok", or 503 and what is wrong in a word; open to all, so it says no more."""
    state = call.request.app.state
    looked, word = getattr(state, "health", (0.0, None))
    if not looked or monotonic() - looked > _LOOKED:
        word = state.desk.unwell or trouble(state.gate)
        state.health = (monotonic(), word)
    return PlainTextResponse(f"{word or 'ok'}\n", status_code=200 if word is None else 503)


def trouble(gate: Gate) -> Literal["store", "disk", "ledger"] | None:
    """What cannot be written or read; None if all can."""
    try:
        with gate.store.transaction() as rows:
            rows.execute("SELECT count(*) FROM slots").fetchone()
        room = os.statvfs(gate.store.path.parent)
    except (sqlite3.Error, OSError):
        return "store"
    if room.f_bavail * room.f_frsize < _LEAST_ROOM:
        return "disk"
    try:
        gate.ledger.head  # noqa: B018  # opens it and reads its last entry
    except (LastbitError, OSError, sqlite3.Error):
        return "ledger"
    return None


# ---------------------------------------------------------------- who signs in


def sign_in(call: Call) -> Response:
    """The form for a token."""
    return _sign_in(call, _onward(call.query.get("next")))


def _sign_in(call: Call, onward: str, problem: str = "", status: int = 200) -> Response:
    words = {"onward": onward, "problem": problem}
    return call.page("sign-in.html", status=status, title="Sign in", **words)


def signed_in(call: Call) -> Response:
    """A session, by a token."""
    form = call.form()
    onward = _onward(form.get("next"))
    try:
        secret = call.gate.session_of(form.get("token", "").strip())
    except Refusal as refusal:
        return _sign_in(call, onward, refusal.detail, refusal.status)
    return with_session(see(onward or "/"), secret)


def link(call: Call) -> Response:
    """A button: looking at a link does not use it up."""
    code = call.path["code"]
    return call.page("link.html", title="Sign in", code=code, whom=call.gate.link_found(code))


def link_used(call: Call) -> Response:
    """A session, by a link."""
    name = call.form().get("name", "").strip() or None
    return with_session(see("/"), call.gate.link_used(call.path["code"], name))


def signed_out(call: Call) -> Response:
    """The end of the session."""
    call.gate.session_ended(call.who)
    return without_session(see("/sign-in"))


def _onward(path: str | None) -> str:
    """A page of this server to go on to; nothing else, however it is written."""
    plain = path is not None and path.isascii() and path.isprintable() and "\\" not in path
    return path if plain and path is not None and path[:1] == "/" and path[1:2] != "/" else ""


def me(call: Call) -> Response:
    """One's own tokens and sessions."""
    who = call.who
    choices = [(right, words) for right, words in MAY.items() if right in who.rights]
    return call.page(
        "me.html",
        title=who.principal,
        rights=[words for _, words in choices],
        choices=choices,
        tokens=call.gate.tokens(who.principal),
        may=lambda token: may_words(token.rights & RIGHTS[who.role], token.tables),
        now=time(),
        sessions=call.gate.sessions(who),
        tables=[served.name for served in call.tables()],
        address=call.settings.address,
        said=call.said,
    )


def token_made(call: Call) -> Response:
    """A token, shown this once."""
    form, who = call.form(), call.who
    days = form.get("days", "")
    if not (days.isascii() and days.isdigit() and len(days) <= 4):
        raise wrong("The number of days is not a whole number.")
    chosen, tables = _named(form, "right:"), _named(form, "table:")
    rights = {right for right in who.rights if right in chosen or right in ("open", "self")}
    secret, line = call.gate.token_made(
        who, name=form.get("name", ""), days=int(days), rights=rights, tables=tables or None
    )
    words = f"For {line.name}, until {moment(line.expires)}."
    return call.secret_page(secret, heading="Your new token", words=words, back="/me")


def _named(form: Mapping[str, str], prefix: str) -> frozenset[str]:
    return frozenset(name.removeprefix(prefix) for name in form if name.startswith(prefix))


def token_revoked(call: Call) -> Response:
    """It works no more."""
    call.gate.token_revoked(call.path["token"], call.who)
    return see("/me?done=token")


def session_ended(call: Call) -> Response:
    """Signs out wherever this session is."""
    call.gate.session_revoked(call.path["session"], call.who)
    return see("/me?done=session")
