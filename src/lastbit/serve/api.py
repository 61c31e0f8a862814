"""What programs call: JSON in and out, one handler a route of `CALLS`.

Who asks is known and has the route's right before a handler runs. What a handler gives is sent as
JSON with the route's status (`app.py`). What is refused is a `Refusal`, or an error of lastbit's: a
problem document is made of it. The first line of a handler is its summary in the document.

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

from starlette.responses import JSONResponse, Response

from lastbit.ledger import Entry
from lastbit.reading import parse_json
from lastbit.report import account_json, allowance_json
from lastbit.serve.handling import Call, limit_of, released_as
from lastbit.serve.openapi import document
from lastbit.serve.questions import FINISHED, Job, Question, Refusal
from lastbit.serve.routes import API
from lastbit.serve.safety import attachment
from lastbit.serve.schemas import KEY, MOST, PAGED, SCHEMAS, USUAL, problem_in, question_of
from lastbit.tables import card_to_json

Data = dict[str, Any]


class Json(JSONResponse):
    """In ASCII: a ledger of old may hold halves of letters, which UTF-8 does not."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


def openapi(_: Call) -> Data:
    """The OpenAPI document."""
    return document()


# ---------------------------------------------------------------- tables and questions


def tables(call: Call) -> Data:
    """Tables that may be asked."""
    cards = [served.card for served in call.tables()]
    return {"tables": [{"name": c.name, "account": c.account_name, "unit": c.unit} for c in cards]}


def table(call: Call) -> Data:
    """What its card declares."""
    served = call.table()
    examples = [asdict(one) for one in served.examples]
    return {**card_to_json(served.card), "slot": served.slot, "examples": examples}


async def preview(call: Call) -> Data:
    """Price and error."""
    return asdict(await call.desk.preview(call.path["table"], _question(call), call.who))


async def made_up(call: Call) -> Data:
    """An answer on made-up rows."""
    return await call.desk.made_up(call.path["table"], _question(call), call.who)


async def asked(call: Call) -> Response:
    """Pay for an answer."""
    name, key = call.path["table"], call.request.headers.get("idempotency-key")
    if key is not None and problem_in(key, KEY, "Idempotency-Key") is not None:
        raise _against_schema("Idempotency-Key is not of 1 to 128 letters, digits, and _ . : -")
    job = await call.desk.submit(name, _question(call), call.who, key=key)
    await to_thread(call.note, "asked", name)
    headers = {"Location": f"{API}/jobs/{job.id}", **_retry(job)}
    return Json(_job(job), status_code=202, headers=headers)


async def data_accepted(call: Call) -> Data:
    """Accept the data as they are."""
    name = call.path["table"]
    await call.desk.accept(name, call.who)
    await to_thread(call.note, "data accepted", name)
    return {"table": name, "accepted": True}


# ---------------------------------------------------------------- jobs and answers


def jobs(call: Call) -> Data:
    """One's own questions, the newest first."""
    page, before = _page(call, call.desk.jobs(call.who), lambda job: job.id)
    return {"jobs": [_job(job) for job in page], "before": before}


def job(call: Call) -> Response:
    """A question that was paid for."""
    found = call.desk.job(call.path["job"], call.who)
    return Json(_job(found), headers=_retry(found))


def answers(call: Call) -> Data:
    """All answers."""
    page, before = _page(call, call.desk.answers(call.who), lambda line: line.entry)
    return {"answers": [asdict(line) for line in page], "before": before}


def answer(call: Call) -> Data:
    """An answer."""
    return call.record()


def answer_csv(call: Call) -> Response:
    """An answer as CSV."""
    record, name = call.record(), f"answer-{call.path['entry']}.csv"
    call.note("downloaded", name)
    text = released_as(record).to_csv()
    return Response(text, media_type="text/csv", headers=attachment(name))


def answer_certificate(call: Call) -> Data:
    """Its certificate."""
    certificate: Data = call.record()["certificate"]
    return certificate


# ---------------------------------------------------------------- money


def budget(call: Call) -> Data:
    """Accounts and one's own allowances."""
    by_account = {served.account_name: served for served in call.tables()}
    own = call.books.allowances(None, call.who.principal)
    return {
        "accounts": [account_json(served.account()) for served in by_account.values()],
        "allowances": [allowance_json(one) for one in own if one.account in by_account],
    }


def ledger(call: Call) -> Data:
    """All entries."""
    page, before = _page(call, _entries(call)[::-1], lambda entry: entry.sequence)
    lines = [{**json.loads(entry.text), "hash": entry.hash} for entry in page]
    return {"entries": lines, "before": before}


def users(call: Call) -> Data:
    """Principals."""
    return {"users": [_user(one) for one in call.books.principals()]}


def user_set(call: Call) -> Data:
    """Add or change one."""
    return _user(call.gate.principal_set(call.path["name"], _sent(call)["role"], by=call.who))


def user_removed(call: Call) -> Data:
    """Remove one."""
    return _user(call.gate.principal_set(call.user(), None, by=call.who))


def user_link(call: Call) -> Data:
    """A one-time link."""
    return {"address": call.settings.address + call.gate.link_made(call.user(), by=call.who)}


def user_revoked(call: Call) -> None:
    """End sessions and tokens."""
    call.gate.all_ended(call.user(), by=call.who)


def allowances(call: Call) -> Data:
    """All allowances."""
    return {"allowances": [allowance_json(one) for one in call.books.allowances()]}


def allowance_set(call: Call) -> Data:
    """Set one."""
    limit = limit_of(_sent(call))
    found = call.set_allowance(call.path["account"], call.user(), limit)
    assert found is not None  # it was set
    return allowance_json(found)


def allowance_ended(call: Call) -> None:
    """End one."""
    call.set_allowance(call.path["account"], call.user(), None)


# ---------------------------------------------------------------- tokens, and who did what


def tokens(call: Call) -> Data:
    """One's own tokens."""
    return {"tokens": [_token(line) for line in call.gate.tokens(call.who.principal)]}


def token_made(call: Call) -> Data:
    """Make a token."""
    wish = {"rights": None, "tables": None, **_sent(call)}
    wish["days"] = int(wish["days"])
    secret, line = call.gate.token_made(call.who, **wish)
    return {"token": secret, **_token(line)}


def token_revoked(call: Call) -> None:
    """Revoke a token."""
    call.gate.token_revoked(call.path["token"], call.who)


def audit(call: Call) -> Data:
    """Who did what."""
    last, before = _cut(call)
    rows = call.gate.audit_lines(before, last + 1)
    lines = [{**row, "at": _when(row["at"])} for row in map(dict, rows)]
    more = lines[last - 1]["sequence"] if len(lines) > last else None
    return {"lines": lines[:last], "before": more}


# ---------------------------------------------------------------- what is sent


def _against_schema(detail: str) -> Refusal:
    detail = f"{detail}; GET /api/v1/openapi.json says what may be sent"
    return Refusal(422, "Not as the schema says", detail, "invalid")


def _question(call: Call) -> Question:
    return question_of(_sent(call))


def _sent(call: Call) -> Data:
    """What was sent, as the schema of the route says."""
    if call.media_type() != "application/json":
        raise Refusal(415, "Not JSON", "send Content-Type: application/json", "not-json")
    found = _parsed(call.body)
    problem = problem_in(found, SCHEMAS[call.route.body or ""])
    if problem is not None:
        raise _against_schema(problem)
    return found


def _parsed(body: bytes) -> Data:
    try:
        found = parse_json(body)
        text = json.dumps(found, ensure_ascii=False)
        text.encode()  # refuses halves of letters
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Refusal(400, "Not JSON", "send one JSON object in UTF-8", "not-json")
    if "\\u0000" in text.replace("\\\\", ""):
        raise _against_schema("a text holds a NUL; leave it out")
    return found


# ---------------------------------------------------------------- parts of lists


def _cut(call: Call) -> tuple[int, Any]:
    """`last` and `before` of the list that is asked for."""
    found: Data = {}
    for name, value in call.query.multi_items():
        whole = name == "last" or PAGED[call.route.handler]["type"] == "integer"
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
    return Refusal(422, "Not understood", detail, "invalid")


def _page(call: Call, found: Any, name: Callable[[Any], Any]) -> tuple[list[Any], Any]:
    """The part of a list that was asked for, and what to ask for next."""
    last, before = _cut(call)
    listed = list(found)
    if isinstance(before, int):
        listed = [one for one in listed if name(one) < before]
    elif before is not None:
        names = [name(one) for one in listed]
        if before not in names:
            raise _not_understood("before is not on the list")
        listed = listed[names.index(before) + 1 :]
    return listed[:last], name(listed[last - 1]) if len(listed) > last else None


def _entries(call: Call) -> tuple[Entry, ...]:
    """The newest entries, as far back as a part of the list and one more can reach."""
    last, before = _cut(call)
    newest = call.books.entries(last=1)[-1].sequence
    skipped = 0 if before is None else max(newest - before + 1, 0)
    return call.books.entries(last=min(skipped, newest) + last + 1)


# ---------------------------------------------------------------- what is given


def _when(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _job(job: Job) -> Data:
    found = {**asdict(job), "submitted": _when(job.submitted), "due": _when(job.due)}
    return {**found, "question": {k: v for k, v in found["question"].items() if v is not None}}


def _retry(job: Job) -> Mapping[str, str]:
    """Seconds to the end of a slot: of submission and slots alone, never of the data."""
    if job.state in FINISHED or job.due is None:
        return {}
    return {"Retry-After": str(max(ceil(job.due - time()), 1))}


def _user(principal: Any) -> Data:
    return {"name": principal.name, "role": principal.role, "active": principal.active}


def _token(line: Any) -> Data:
    return {
        "id": line.id,
        "name": line.name,
        **{part: _when(getattr(line, part)) for part in ("made", "expires", "used", "revoked")},
        "rights": sorted(line.rights),
        "tables": None if line.tables is None else sorted(line.tables),
    }
