"""What programs call: JSON in and out, one handler a route of `CALLS`.

Who asks is known (`request.state.identity`) and has the route's right before a handler runs. What
is refused is a `Refusal`, or an error of lastbit's: the application makes a problem document of it.

A handler reaches tables through the desk, which knows what an identity may see, and principals,
links and tokens through the gate, which gives nobody more than the identity has (`identity.py`).

Checked  tests/serve/test_api.py
"""

from __future__ import annotations

import json
from asyncio import to_thread
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from math import ceil
from time import time
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from lastbit.exact import rational
from lastbit.ledger import Entry, Ledger, Limit
from lastbit.reading import parse_json
from lastbit.report import account_json, allowance_json
from lastbit.serve.handling import (
    books_of,
    noted,
    record_asked,
    released_as,
    table_asked,
    tables_seen,
    user_named,
    who_asks,
)
from lastbit.serve.openapi import KEY, MOST, PAGED, SCHEMAS, USUAL, document, problem_in
from lastbit.serve.questions import FINISHED, Job, Question, Refusal, asked as question_of
from lastbit.serve.routes import API
from lastbit.serve.safety import attachment
from lastbit.tables import card_to_json


class Json(JSONResponse):
    """In ASCII: a ledger of old may hold halves of letters, which UTF-8 does not."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


async def openapi(request: Request) -> Response:
    """The document that programs are generated from."""
    return Json(document())


# ---------------------------------------------------------------- tables and questions


async def tables(request: Request) -> Response:
    """Those that may be asked."""
    cards = [served.card for served in await tables_seen(request)]
    lines = [{"name": c.name, "account": c.account_name, "unit": c.unit} for c in cards]
    return Json({"tables": lines})


async def table(request: Request) -> Response:
    """All that its card declares, and nothing of where the data are."""
    served = await table_asked(request)
    examples = [asdict(one) for one in served.examples]
    return Json({**card_to_json(served.card), "slot": served.slot, "examples": examples})


async def preview(request: Request) -> Response:
    """Price and error, before anything is paid."""
    desk, who = request.app.state.desk, who_asks(request)
    name, question = await _table_and_question(request)
    return Json(asdict(await desk.preview(name, question, who)))


async def made_up(request: Request) -> Response:
    """An answer on rows that the card alone has made up."""
    desk, who = request.app.state.desk, who_asks(request)
    name, question = await _table_and_question(request)
    return Json(await desk.made_up(name, question, who))


async def asked(request: Request) -> Response:
    """Pays; the answer appears at the end of a slot, where `Location` says."""
    desk, who, key = request.app.state.desk, who_asks(request), _key(request)
    name, question = await _table_and_question(request)
    job = await desk.submit(name, question, who, key=key)
    await noted(request, "asked", name)
    headers = {"Location": f"{API}/jobs/{job.id}", **_retry(job)}
    return Json(_job(job), status_code=202, headers=headers)


async def data_accepted(request: Request) -> Response:
    """From now on questions are about the data as they are."""
    served = await table_asked(request)
    who = who_asks(request)
    await request.app.state.desk.accept(served.name, who)
    await noted(request, "data accepted", served.name)
    return Json({"table": served.name, "accepted": True})


# ---------------------------------------------------------------- jobs and answers


async def jobs(request: Request) -> Response:
    """One's own, the newest first; stewards see all."""
    found = request.app.state.desk.jobs(who_asks(request))
    page, before = _page(request, "jobs", found, lambda job: job.id)
    return Json({"jobs": [_job(job) for job in page], "before": before})


async def job(request: Request) -> Response:
    """What became of a question."""
    found = request.app.state.desk.job(request.path_params["job"], who_asks(request))
    return Json(_job(found), headers=_retry(found))


async def answers(request: Request) -> Response:
    """Of all tables that one may see, the newest first."""
    found = await to_thread(request.app.state.desk.answers, who_asks(request))
    page, before = _page(request, "answers", found, lambda line: line.entry)
    return Json({"answers": [asdict(line) for line in page], "before": before})


async def answer(request: Request) -> Response:
    """The record, as `lastbit check` takes it."""
    return Json(await record_asked(request))


async def answer_csv(request: Request) -> Response:
    """One line a group; of marginals, a cell."""
    record = await record_asked(request)
    name = f"answer-{request.path_params['entry']}.csv"
    await noted(request, "downloaded", name)
    headers = attachment(name)
    text = await to_thread(released_as(record).to_csv)
    return Response(text, media_type="text/csv", headers=headers)


async def answer_certificate(request: Request) -> Response:
    """What the checker needs, without the numbers."""
    record = await record_asked(request)
    return Json(record["certificate"])


# ---------------------------------------------------------------- money


async def budget(request: Request) -> Response:
    """The accounts of the tables that one may see, and one's own allowances."""
    seen, who = await tables_seen(request), who_asks(request)
    books = books_of(request)
    by_account = {served.account_name: served for served in seen}
    accounts = [await to_thread(served.account) for served in by_account.values()]
    own = await to_thread(books.allowances, None, who.principal)
    lines = [allowance_json(one) for one in own if one.account in by_account]
    return Json({"accounts": [account_json(account) for account in accounts], "allowances": lines})


async def ledger(request: Request) -> Response:
    """Every entry, the newest first, without the answers."""
    books = books_of(request)
    entries = await to_thread(_entries, books, *_cut(request, "ledger"))
    page, before = _page(request, "ledger", entries[::-1], lambda entry: entry.sequence)
    lines = [{**json.loads(entry.text), "hash": entry.hash} for entry in page]
    return Json({"entries": lines, "before": before})


async def users(request: Request) -> Response:
    """All principals, those that were removed too."""
    found = await to_thread(books_of(request).principals)
    return Json({"users": [_user(one) for one in found]})


async def user_set(request: Request) -> Response:
    """Adds a principal, or changes its role."""
    who, name = who_asks(request), request.path_params["name"]
    role = (await _body(request, "Role"))["role"]
    gate = request.app.state.gate
    return Json(_user(await to_thread(lambda: gate.principal_set(name, role, by=who))))


async def user_removed(request: Request) -> Response:
    """The name stays taken, and nobody can use it."""
    gate, who, name = request.app.state.gate, who_asks(request), await user_named(request)
    return Json(_user(await to_thread(lambda: gate.principal_set(name, None, by=who))))


async def user_link(request: Request) -> Response:
    """Signs in whoever uses it, once."""
    gate, who, name = request.app.state.gate, who_asks(request), await user_named(request)
    path = await to_thread(lambda: gate.link_made(name, by=who))
    address = f"{request.app.state.settings.address}{path}"
    return Json({"address": address}, status_code=201)


async def user_revoked(request: Request) -> Response:
    """Ends all sessions and tokens of a principal."""
    gate, who, name = request.app.state.gate, who_asks(request), await user_named(request)
    await to_thread(lambda: gate.all_ended(name, by=who))
    return Response(status_code=204)


async def allowances(request: Request) -> Response:
    """Those of all principals."""
    found = await to_thread(books_of(request).allowances)
    return Json({"allowances": [allowance_json(one) for one in found]})


async def allowance_set(request: Request) -> Response:
    """How much of an account a principal may spend."""
    amounts = await _body(request, "Limit")
    exact = {
        name: None if amounts.get(name) is None else rational(amounts[name], name)
        for name in ("epsilon", "delta", "rho")
    }
    limit = Limit(**exact, period=amounts.get("period"))
    return Json(allowance_json(await _set_allowance(request, limit)))


async def allowance_ended(request: Request) -> Response:
    """From now on the principal may not spend of this account."""
    await _set_allowance(request, None)
    return Response(status_code=204)


# ---------------------------------------------------------------- tokens, and who did what


async def tokens(request: Request) -> Response:
    """One's own."""
    found = await to_thread(request.app.state.gate.tokens, who_asks(request).principal)
    return Json({"tokens": [_token(line) for line in found]})


async def token_made(request: Request) -> Response:
    """It is in this answer and nowhere else."""
    gate, who, wish = request.app.state.gate, who_asks(request), await _body(request, "TokenWish")
    rights, only = (wish.get(part) for part in ("rights", "tables"))
    secret, line = await to_thread(
        lambda: gate.token_made(
            who,
            name=wish["name"],
            days=int(wish["days"]),
            rights=None if rights is None else frozenset(rights),
            tables=None if only is None else frozenset(only),
        )
    )
    return Json({"token": secret, **_token(line)}, status_code=201)


async def token_revoked(request: Request) -> Response:
    """It works no more, from the next request on."""
    gate, who, token = request.app.state.gate, who_asks(request), request.path_params["token"]
    await to_thread(gate.token_revoked, token, who)
    return Response(status_code=204)


async def audit(request: Request) -> Response:
    """The log, the newest line first."""
    last, before = _cut(request, "audit")
    rows = await to_thread(request.app.state.gate.audit_lines, before, last + 1)
    lines = [{**row, "at": _when(row["at"])} for row in map(dict, rows)]
    more = lines[last - 1]["sequence"] if len(lines) > last else None
    return Json({"lines": lines[:last], "before": more})


# ---------------------------------------------------------------- what handlers share


def _refusal(status: int, kind: str, title: str, detail: str) -> Refusal:
    return Refusal(status=status, kind=kind, title=title, detail=detail)


async def _table_and_question(request: Request) -> tuple[str, Question]:
    served = await table_asked(request)
    return served.name, question_of(await _body(request, "Question"))


async def _body(request: Request, schema: str) -> dict[str, Any]:
    """What was sent, as the schema of this name says."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        detail = "send Content-Type: application/json"
        raise _refusal(415, "not-json", "Not JSON", detail)
    found = _parsed(await request.body())
    problem = problem_in(found, SCHEMAS[schema])
    if problem is not None:
        detail = f"{problem}; GET /api/v1/openapi.json says what may be sent"
        raise _refusal(422, "invalid", "Not as the schema says", detail)
    return found


def _parsed(body: bytes) -> dict[str, Any]:
    try:
        found = parse_json(body)
        json.dumps(found, ensure_ascii=False).encode()  # refuses halves of letters
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise _refusal(400, "not-json", "Not JSON", "send one JSON object in UTF-8")
    if _has_nul(found):
        raise _refusal(422, "invalid", "Not as the schema says", "a text holds a NUL; leave it out")
    return found


def _has_nul(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_nul, (*value, *value.values())))
    return any(map(_has_nul, value)) if isinstance(value, list) else "\0" in str(value)


def _key(request: Request) -> str | None:
    key = request.headers.get("idempotency-key")
    if key is not None and problem_in(key, KEY, "Idempotency-Key") is not None:
        detail = "Idempotency-Key is not of 1 to 128 letters, digits, and _ . : -; make another"
        raise _refusal(422, "invalid", "Not as the schema says", detail)
    return key


def _cut(request: Request, handler: str) -> tuple[int, Any]:
    """`last` and `before` of the list of this name."""
    found: dict[str, Any] = {}
    for name, value in request.query_params.multi_items():
        whole = name == "last" or PAGED[handler]["type"] == "integer"
        if name not in ("last", "before") or name in found or not value:
            raise _not_understood("a parameter is not known, or is given twice; use last, before")
        if whole and not (value.isascii() and value.isdigit() and len(value) < 18 and int(value)):
            raise _not_understood(f"{name} is not a whole number above 0")
        found[name] = int(value) if whole else value
    last = found.get("last", USUAL)
    if last > MOST:
        raise _not_understood(f"last is more than {MOST}; ask for less, then for what is before")
    return last, found.get("before")


def _not_understood(detail: str) -> Refusal:
    return _refusal(422, "invalid", "Not understood", detail)


def _page(
    request: Request, handler: str, found: Any, name: Callable[[Any], Any]
) -> tuple[list[Any], Any]:
    """The part of a list that was asked for, and what to ask for next."""
    last, before = _cut(request, handler)
    listed = list(found)
    if isinstance(before, int):
        listed = [one for one in listed if name(one) < before]
    elif before is not None:
        names = [name(one) for one in listed]
        if before not in names:
            raise _not_understood("before is not on the list")
        listed = listed[names.index(before) + 1 :]
    return listed[:last], name(listed[last - 1]) if len(listed) > last else None


def _when(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _job(job: Job) -> dict[str, Any]:
    found = {**asdict(job), "submitted": _when(job.submitted), "due": _when(job.due)}
    return {**found, "question": {k: v for k, v in found["question"].items() if v is not None}}


def _retry(job: Job) -> Mapping[str, str]:
    """Seconds to the end of a slot: of submission and slots alone, never of the data."""
    if job.state in FINISHED or job.due is None:
        return {}
    return {"Retry-After": str(max(ceil(job.due - time()), 1))}


def _entries(books: Ledger, last: int, before: int | None) -> tuple[Entry, ...]:
    """The newest entries, as far back as a part of the list and one more can reach."""
    newest = books.entries(last=1)[-1].sequence
    skipped = 0 if before is None else max(newest - before + 1, 0)
    return books.entries(last=min(skipped, newest) + last + 1)


def _user(principal: Any) -> dict[str, Any]:
    return {"name": principal.name, "role": principal.role, "active": principal.active}


async def _set_allowance(request: Request, limit: Limit | None) -> Any:
    gate, who = request.app.state.gate, who_asks(request)
    account, name = request.path_params["account"], await user_named(request)
    accounts = {served.account_name for served in await tables_seen(request)}
    if account not in accounts:
        detail = "no table of this server has such an account; GET /api/v1/budget lists them"
        raise _refusal(404, "unknown-account", "No such account", detail)
    books = gate.ledger
    done = await to_thread(lambda: books.set_allowance(account, name, limit, by=who.principal))
    await noted(request, "allowance set" if limit else "allowance ended", name, account)
    return done


def _token(line: Any) -> dict[str, Any]:
    return {
        "id": line.id,
        "name": line.name,
        **{part: _when(getattr(line, part)) for part in ("made", "expires", "used", "revoked")},
        "rights": sorted(line.rights),
        "tables": None if line.tables is None else sorted(line.tables),
    }
