"""What people see: one handler a page of `PAGES`; `views.py` has what they say and how it looks.

Who asks is known and has the route's right before a handler runs (`app.py`). Every page works
without script; with it, prices appear while one types.

Law      a page is a function of the question, the card, the ledger and released answers. What is
         not the server's own words is escaped by the templates; only charts, which `lastbit.report`
         has drawn and escaped, are put in as they are. No page has a script, style or address
         within, nor anything from elsewhere: the policy of `safety.py` forbids them
Law      who acts by a part of their rights gives no rights: users, allowances and the audit log are
         for sessions without restrictions (`_whole`)
Law      what is paid is what was previewed: the button that names a price sends the question of the
         preview, not what has been typed since
Checked  tests/serve/test_pages.py
"""

from __future__ import annotations

import base64
from asyncio import to_thread
from collections.abc import Awaitable, Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from math import ceil
from time import time
from types import MappingProxyType
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from lastbit.checker import names_code, problem_of
from lastbit.errors import InvalidParameter, LastbitError
from lastbit.exact import rational
from lastbit.ledger import PERIODS, ROLES, Ledger, Limit
from lastbit.release import Answer, Marginals
from lastbit.report import (
    EMPTY,
    account_json,
    amount,
    budget_parts,
    marginals_page,
    page as report_page,
    price,
    register_csv,
    register_page,
    title_of,
    typical_price,
)
from lastbit.sampling import secure_bits
from lastbit.serve.health import health  # noqa: F401  # a handler of the list
from lastbit.serve.identity import Action, Identity, with_session, without_session
from lastbit.serve.problems import refusal_of
from lastbit.serve.questions import FINISHED, Job, Preview, Question, Refusal, asked as question_of
from lastbit.serve.routes import RIGHTS
from lastbit.serve.safety import attachment, form_of
from lastbit.serve.views import (
    CURRENCIES,
    MAY,
    STATIC,
    allowance_parts,
    answer_line,
    card_columns,
    citation,
    entry_line,
    examples_of,
    file_name,
    may_words,
    moment,
    parts_of,
    path_to,
    protects,
    render,
    seconds_words,
    static_text,
    timing,
    when_words,
)
from lastbit.tables import DataCard, unit_name

_FILES = (
    ("answer.csv", "CSV"),
    ("answer.json", "JSON, with certificate"),
    ("report.html", "Report"),
)
_DONE: Mapping[str, str] = MappingProxyType(
    {
        "role": "The role is changed.",
        "removed": "The user is removed, and signed out everywhere.",
        "revoked": "All sessions are ended and all tokens revoked.",
        "allowance": "The allowance is set.",
        "ended": "The allowance is ended.",
        "token": "The token is revoked.",
    }
)
"""What is said after something was done; an address names it by its key."""
_KEPT_BY: Mapping[str, str] = MappingProxyType(
    {"filter": "kept by the moment filter", "gaussian": "kept by the Gaussian filter"}
)
_MOST_LINES, _MOST_NEW, _VERIFIED = 100, 5, 1000


# ---------------------------------------------------------------- refusals, style and health


def refused(request: Request, refusal: Refusal) -> HTMLResponse:
    """The page that says why not, and what to do."""
    onward = request.url.path if request.method == "GET" and request.url.path != "/" else ""
    words = {"refusal": refusal, "onward": onward}
    return render(request, "refused.html", status=refusal.status, title=refusal.title, **words)


async def static(request: Request) -> Response:
    """Style sheet, script and icon."""
    name = request.path_params["file"]
    if name not in STATIC:
        raise _unknown("file", "There is no such file.")
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
    return with_session(_see(onward or "/"), secret)


async def link(request: Request) -> Response:
    """A button: looking at a link does not use it up."""
    code = request.path_params["code"]
    whom = await to_thread(request.app.state.gate.link_found, code)
    return render(request, "link.html", title="Sign in", code=code, whom=whom)


async def link_used(request: Request) -> Response:
    """A session, by a link."""
    name = (await form_of(request)).get("name", "").strip() or None
    secret = await to_thread(request.app.state.gate.link_used, request.path_params["code"], name)
    return with_session(_see("/"), secret)


async def signed_out(request: Request) -> Response:
    """The end of the session."""
    await to_thread(request.app.state.gate.session_ended, _who(request))
    return without_session(_see("/sign-in"))


def _onward(path: str | None) -> str:
    """A page of this server to go on to; nothing else, however it is written."""
    plain = path is not None and path.isascii() and path.isprintable() and "\\" not in path
    return path if plain and path is not None and path[:1] == "/" and path[1:2] != "/" else ""


async def me(request: Request) -> Response:
    """One's own tokens."""
    gate, who = request.app.state.gate, _who(request)
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
    choices = [(right, words) for right, words in MAY.items() if right in who.rights]
    return render(
        request,
        "me.html",
        title=who.principal,
        rights=[words for _, words in choices],
        choices=choices,
        tokens=lines,
        tables=[served.name for served in await _seen(request)],
        address=request.app.state.settings.address,
        said=_said(request),
    )


async def token_made(request: Request) -> Response:
    """A token, shown this once."""
    form, gate, who = await form_of(request), request.app.state.gate, _who(request)
    days = form.get("days", "")
    if not (days.isascii() and days.isdigit() and len(days) <= 4):
        raise _wrong("The number of days is not a whole number.")
    chosen = _named(form, "right:")
    rights = {right for right in who.rights if right in chosen or right in ("open", "self")}
    tables = _named(form, "table:")
    secret, line = await to_thread(
        lambda: gate.token_made(
            who, name=form.get("name", ""), days=int(days), rights=rights, tables=tables or None
        )
    )
    return _secret(
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
    await to_thread(gate.token_revoked, request.path_params["token"], _who(request))
    return _see("/me?done=token")


def _secret(request: Request, secret: str, *, heading: str, words: str, back: str) -> HTMLResponse:
    return render(
        request,
        "secret.html",
        title=heading,
        secret=secret,
        heading=heading,
        words=words,
        back=back,
    )


# ---------------------------------------------------------------- tables


async def catalogue(request: Request) -> Response:
    """The tables that one may see, with budgets, and the newest answers."""
    tables = [await _table_line(request, served) for served in await _seen(request)]
    answers = await to_thread(request.app.state.desk.answers, _who(request))
    lines = [answer_line(line) for line in answers[:_MOST_NEW]]
    told: dict[str, Any] = {"tables": tables, "answers": lines, "alone": False}
    if "users" in _who(request).rights:
        told["alone"] = len(await to_thread(_books(request).principals)) == 1
    return render(request, "catalogue.html", title="Tables", **told)


async def table(request: Request) -> Response:
    """What is publicly known of a table."""
    served = await _served(request)
    card: DataCard = served.card
    joined: list[tuple[str, str, Sequence[tuple[str, ...]]]] = [
        (name, "Public: join it freely.", [("column", "type"), *one.columns.items()])
        for name, one in card.public.items()
    ]
    joined += [
        (
            name,
            f"Private, joined on {unit_name(one.unit)}: at most {one.max_rows:,} rows of one "
            f"{unit_name(card.unit or one.unit)} are used.",
            card_columns(one.columns.values()),
        )
        for name, one in card.private.items()
    ]
    return render(
        request,
        "table.html",
        title=served.name,
        one=await _table_line(request, served),
        protects=protects(card),
        columns=card_columns(card.columns.values()),
        joined=joined,
        data=await to_thread(served.data),
        examples=examples_of(served),
        timing=timing(served.slot, strict=request.app.state.settings.strict),
    )


async def data_accepted(request: Request) -> Response:
    """From now on questions are about the data as they are."""
    served = await _served(request)
    await request.app.state.desk.accept(served.name, _who(request))
    await _noted(request, "data accepted", served.name)
    return _see(path_to("tables", served.name))


async def _table_line(request: Request, served: Any) -> dict[str, Any]:
    card, who = served.card, _who(request)
    account = await to_thread(served.account)
    mine = await to_thread(request.app.state.desk.catalogue.allowance, served, who)
    whose = "row" if card.unit is None else unit_name(card.unit)
    return {
        "name": served.name,
        "about": f"Protects each {whose}",
        "columns": f"{len(card.columns)} columns" if len(card.columns) != 1 else "1 column",
        "account_name": served.account_name,
        "account": budget_parts(account_json(account)),
        "allowances": [] if mine is None else [allowance_parts(mine, "Your allowance")],
        "changed": await to_thread(served.changed),
    }


# ---------------------------------------------------------------- the editor


async def ask(request: Request) -> Response:
    """The editor; by its address with an example, or a question that was asked before."""
    served, who = await _served(request), _who(request)
    told = request.query_params
    start: Mapping[str, Any] = {}
    examples = examples_of(served)
    if _digits(told.get("example")) is not None and int(told["example"]) < len(examples):
        start = dict(examples[int(told["example"])]["fields"])
    elif (number := _digits(told.get("answer"))) is not None:
        record = await to_thread(request.app.state.desk.answer, number, who)
        start = {"sql": record["asked"].get("sql") or "", **_paid(record["cost"])}
    elif told.get("job"):
        start = request.app.state.desk.job(told["job"], who).question.to_json()
    return await _editor(request, served, start)


async def preview(request: Request) -> Response:
    """Price and error; as a part of the page if the script asks for it."""
    served, form = await _served(request), await form_of(request)
    work = partial(request.app.state.desk.preview, served.name, who=_who(request))
    seen, problem, status = await _tried(request, form, work)
    if form.get("part") != "preview":
        return await _editor(request, served, form, problem, status, seen=seen)
    part = render(request, "preview.html", **_preview(request, served, form, seen, problem))
    return HTMLResponse(b"<section>" + bytes(part.body) + b"</section>")


async def made_up(request: Request) -> Response:
    """An answer on rows that were made up from the card: free, and about no real person."""
    served, form = await _served(request), await form_of(request)
    desk, who = request.app.state.desk, _who(request)
    record, problem, status = await _tried(
        request, form, lambda q: desk.made_up(served.name, q, who)
    )
    if record is None:
        return await _editor(request, served, form, problem, status)
    return render(
        request,
        "answer.html",
        title=f"Made-up rows of {served.name}",
        made_up=True,
        table=served.name,
        answer=await to_thread(parts_of, record),
        empty=EMPTY,
        same=[(name, text) for name, text in form.items() if name in _KEPT],
    )


async def asked(request: Request) -> Response:
    """Pays for the question of the preview, and shows where the answer will be."""
    served, form = await _served(request), await form_of(request)
    desk, who, key = request.app.state.desk, _who(request), form.get("key") or None
    job, problem, status = await _tried(
        request, form, lambda q: desk.submit(served.name, q, who, key=key)
    )
    if job is None:
        return await _editor(request, served, form, problem, status)
    await _noted(request, "asked", served.name)
    return _see(path_to("jobs", job.id))


async def _tried(
    request: Request, form: Mapping[str, str], work: Callable[[Question], Awaitable[Any]]
) -> tuple[Any, str | None, int]:
    """What the desk gives; or why not, and the status of that, where the asker can mend it."""
    try:
        return await work(_question(request, form)), None, 200
    except (Refusal, LastbitError) as error:
        found = refusal_of(error)
        if found.status in (401, 404, 429) or (found is not error and found.status >= 500):
            raise
        return None, found.detail, found.status


_KEPT = ("sql", "by", "epsilon", "delta", "rho", "within")


def _question(request: Request, form: Mapping[str, str]) -> Question:
    """The question of a form; by its ± if that is chosen, else by its price."""
    by_error = form.get("by") == "error"
    names = ("sql", "delta", *(("within",) if by_error else ("epsilon", "rho")))
    data: dict[str, Any] = {
        name: form[name].strip() for name in names if form.get(name, "").strip()
    }
    if by_error and "within" not in data:
        raise _wrong("Say which ± you need, a number above 0.")
    if not by_error and "epsilon" not in data and "rho" not in data:
        raise _wrong("Say what you pay, a number above 0.")
    if form.get("fresh") == "yes":
        data["fresh"] = True
    return question_of(data, most_sql=request.app.state.settings.most_sql)


async def _editor(
    request: Request,
    served: Any,
    start: Mapping[str, Any],
    problem: str | None = None,
    status: int = 200,
    *,
    seen: Preview | None = None,
) -> HTMLResponse:
    currency, _ = _currency(served)
    examples = examples_of(served)
    usual = dict(examples[0]["fields"]).get(currency) if examples else None
    within = start.get("within") if isinstance(start.get("within"), str) else None
    question = {
        "sql": start.get("sql") or "",
        "by": start.get("by") or ("error" if within else "price"),
        "price": start.get(currency) or usual or "0.5",
        "within": within or "",
        "delta": start.get("delta") or "",
    }
    return render(
        request,
        "ask.html",
        status=status,
        title=f"Ask {served.name}",
        question=question,
        names=list(served.card.columns),
        examples=examples,
        most_sql=request.app.state.settings.most_sql,
        **_preview(request, served, start, seen, problem),
    )


def _preview(
    request: Request,
    served: Any,
    form: Mapping[str, Any],
    seen: Preview | None,
    problem: str | None,
) -> dict[str, Any]:
    """What the panel beside the editor says."""
    currency, letter = _currency(served)
    told: dict[str, Any] = {
        "one": {"name": served.name},
        "currency": currency,
        "letter": letter,
        "preview": seen,
        "problem": problem,
        "timing": timing(served.slot, strict=request.app.state.settings.strict),
    }
    if seen is None:
        return told
    paid = {name: form.get(name, "") for name in ("sql", "epsilon", "delta", "rho")}
    if form.get("by") == "error":  # what it costs was found; that is what is paid
        paid |= {"epsilon": "", "rho": "", currency: seen.cost[currency]}
    errors = [(row[0], row[-1]) for row in seen.columns]
    cost = price(seen.cost)
    fields = [(name, text) for name, text in paid.items() if text]
    return told | {
        "cost": cost,
        "errors": errors,
        "said": "; ".join([f"Price {cost}", *(" ".join(row) for row in errors[1:])]),
        "left": None if seen.left is None else _left(seen.left),
        "pay": [*fields, ("key", _key())],
        "same": [(name, text) for name, text in fields if name != currency],
    }


def _left(amounts: Mapping[str, str]) -> str:
    told = ((letter, amounts.get(name)) for name, letter in CURRENCIES)
    parts = [f"{letter} = {amount(Fraction(text), up=False)}" for letter, text in told if text]
    return ", ".join(part for part in parts if part != "ρ = 0")


def _currency(served: Any) -> tuple[str, str]:
    budget = served.card.budget
    return ("rho", "ρ") if budget is not None and budget.kind == "zcdp" else ("epsilon", "ε")


def _key() -> str:
    """What makes paying twice by one button one payment."""
    return base64.urlsafe_b64encode(secure_bits().fill(16).tobytes()).decode().rstrip("=")


def _paid(cost: Mapping[str, str]) -> dict[str, str]:
    amounts = {name: amount(Fraction(text), up=True) for name, text in cost.items()}
    return {name: text for name, text in amounts.items() if text != "0"}


# ---------------------------------------------------------------- waiting, and answers


async def job(request: Request) -> Response:
    """A question that waits; once it is answered, the answer."""
    found: Job = request.app.state.desk.job(request.path_params["job"], _who(request))
    if found.state == "answered" and found.entry is not None:
        return _see(f"/answers/{found.entry}")
    heading, words = {
        "waiting": ("Waiting for its turn", "Others asked this table first."),
        "running": ("On its way", "The answer appears when its slot ends."),
        "answered": ("On its way", "The answer appears when its slot ends."),
        "no answer": ("No answer", "It was not ready in time. It stays charged."),
        "refused": ("Refused", "This question was not answered."),
    }[found.state]
    wait = None
    if found.state not in FINISHED or found.state == "answered":
        wait = 1 if found.due is None else max(1, ceil(found.due - time()))
    return render(
        request,
        "job.html",
        title=heading,
        job=found,
        heading=heading,
        words=found.reason or words,
        wait=wait,
        span=max(wait or 1, ceil(found.slot or 1)),
        due=moment(found.due, exact=True) if found.due else "the end of a slot",
        cost="nothing: the answer is on record" if found.cost is None else price(found.cost),
        submitted=moment(found.submitted),
        slot=None if found.slot is None else seconds_words(found.slot),
    )


async def answers(request: Request) -> Response:
    """Every answer about tables that one may see."""
    desk, who = request.app.state.desk, _who(request)
    tables = [served.name for served in await _seen(request)]
    chosen = request.query_params.get("table", "")
    before = _digits(request.query_params.get("before"))
    lines = [
        line
        for line in await to_thread(desk.answers, who)
        if (not chosen or line.table == chosen) and (before is None or line.entry < before)
    ]
    waiting = [
        {"id": one.id, "table": one.table, "state": one.state, "words": one.question.sql}
        for one in desk.jobs(who)
        if one.state not in FINISHED and (not chosen or one.table == chosen)
    ]
    return render(
        request,
        "answers.html",
        title="Answers",
        tables=tables,
        chosen=chosen,
        jobs=waiting[:_MOST_LINES],
        lines=[answer_line(line) for line in lines[:_MOST_LINES]],
        older=lines[_MOST_LINES - 1].entry if len(lines) > _MOST_LINES else None,
    )


async def answer(request: Request) -> Response:
    """An answer: its numbers, promise, proof and files."""
    number: int = request.path_params["entry"]
    record = await _record(request)
    lines = await to_thread(request.app.state.desk.answers, _who(request))
    line = next((answer_line(line) for line in lines if line.entry == number), None)
    if line is None:  # newer than the list
        entry = await to_thread(_books(request).entry, number)
        line = {"table": record["table"], "when": when_words(entry.when), "principal": entry.who}
    return render(
        request,
        "answer.html",
        title=title_of(record),
        made_up=False,
        table=line["table"],
        entry=number,
        when=line["when"],
        principal=line["principal"],
        answer=await to_thread(parts_of, record),
        empty=EMPTY,
        files=_FILES,
        problem=await to_thread(_problem, record),
        saved_as=file_name(record, number, "json"),
        citation=citation(record, number, line["when"][:10]),
        address=f"{request.app.state.settings.address}/answers/{number}",
    )


def _problem(record: Mapping[str, Any]) -> str | None:
    """Why the independent checker rejects an answer; None if it accepts it."""
    if names_code(record):  # no answer of lastbit's does
        return "It names code, which is not run here: check it at home."
    return problem_of(record)


async def answer_file(request: Request) -> Response:
    """The answer as a file."""
    number, file = request.path_params["entry"], request.path_params["file"]
    if file not in dict(_FILES):
        raise _unknown("file", "There is no such file.")
    record = await _record(request)
    text, kind = await to_thread(_file, record, file)
    ending = file.rpartition(".")[2]
    await _noted(request, "downloaded", f"answer-{number}.{ending}")
    headers = attachment(file_name(record, number, ending))
    return Response(text, media_type=kind, headers=headers)


def _file(record: dict[str, Any], file: str) -> tuple[str, str]:
    several = "marginals" in record["plan"]
    if file == "report.html":
        return str((marginals_page if several else report_page)(record)), "text/html"
    read: Any = (Marginals if several else Answer)(record)
    if file == "answer.csv":
        return read.to_csv(), "text/csv"
    return read.to_json(), "application/json"


async def _record(request: Request) -> dict[str, Any]:
    found: dict[str, Any] = await to_thread(
        request.app.state.desk.answer, request.path_params["entry"], _who(request)
    )
    return found


# ---------------------------------------------------------------- money


async def budget(request: Request) -> Response:
    """Accounts and allowances: bars, and what filter and odometer say."""
    who, tables = _who(request), await _seen(request)
    every = "ledger" in who.rights and who.tables is None
    allowances = await to_thread(_books(request).allowances, None, None if every else who.principal)
    accounts = []
    for name in dict.fromkeys(served.account_name for served in tables):
        named = [served for served in tables if served.account_name == name]
        shown = [
            allowance_parts(
                one, "Your allowance" if one.principal == who.principal else one.principal
            )
            for one in allowances
            if one.account == name
        ]
        lost = await to_thread(_unclaimed, request, name) if every else []
        parts = {"name": name, "allowances": shown, "lost": lost}
        accounts.append(parts | await to_thread(_account, request, named))
    return render(request, "budget.html", title="Budget", accounts=accounts)


def _account(request: Request, tables: list[Any]) -> dict[str, Any]:
    """Bars and words of the account that these tables share."""
    account, next_ = tables[0].account(), None
    told = [f"Tables: {', '.join(served.name for served in tables)}"]
    if account.filter is not None:
        next_ = typical_price(account, _books(request).entries(account.name))
    if account.budget is not None:
        told.append(_KEPT_BY.get(account.budget.kind, "kept by plain sums"))
    return {"about": "; ".join(told), "parts": budget_parts(account_json(account, next_))}


def _unclaimed(request: Request, account: str) -> list[int]:
    """Charged and not answered, and no question that waits: a server was ended in between."""
    known = {entry.hash for entry in request.app.state.desk.unclaimed}
    found = _books(request).unanswered(account)
    return [entry.sequence for entry in found if entry.hash in known]


async def ledger(request: Request) -> Response:
    """Entries, the newest first; verified where that is quick, or asked for."""
    books, before = _books(request), _digits(request.query_params.get("before"))
    entries = await to_thread(books.entries)
    if (who := _who(request)).tables is not None:
        names = {served.account_name for served in await _seen(request)}
        entries = tuple(entry for entry in entries if entry.account in names)
    verify = len(entries) <= _VERIFIED or "verify" in request.query_params
    older = [entry for entry in reversed(entries) if before is None or entry.sequence < before]
    return render(
        request,
        "ledger.html",
        title="Ledger",
        head=await to_thread(lambda: books.head),
        problems=await to_thread(books.problems) if verify else None,
        whole=who.tables is None,
        entries=[entry_line(entry) for entry in older[:_MOST_LINES]],
        older=older[_MOST_LINES - 1].sequence if len(older) > _MOST_LINES else None,
    )


async def register(request: Request) -> Response:
    """One line a release, to keep or to publish."""
    kinds: dict[str, tuple[Callable[[Ledger], str], str]] = {
        "csv": (register_csv, "text/csv"),
        "html": (register_page, "text/html"),
    }
    kind = request.path_params["kind"]
    if kind not in kinds:
        raise _unknown("file", "There is no such file.")
    _whole(request)
    write, media = kinds[kind]
    text = await to_thread(write, _books(request))
    return Response(str(text), media_type=media, headers=attachment(f"register.{kind}"))


# ---------------------------------------------------------------- users


async def users(request: Request) -> Response:
    """Principals and their allowances."""
    _whole(request)
    books = _books(request)
    allowances = await to_thread(books.allowances)
    accounts = sorted({served.account_name for served in await _seen(request)})
    lines = [
        {
            "name": one.name,
            "role": one.role,
            "active": one.active,
            "place": place,
            "allowances": [
                allowance_parts(each, f"Allowance on {each.account}")
                for each in allowances
                if each.principal == one.name
            ],
        }
        for place, one in enumerate(await to_thread(books.principals))
    ]
    return render(
        request,
        "users.html",
        title="Users",
        users=sorted(lines, key=lambda line: not line["active"]),
        roles=ROLES,
        accounts=accounts,
        currencies=CURRENCIES,
        periods=PERIODS,
        said=_said(request),
    )


async def user_set(request: Request) -> Response:
    """Adds somebody, with a link to sign in, or changes a role."""
    who, gate, form = _whole(request), request.app.state.gate, await form_of(request)
    name, role = form.get("name", "").strip(), form.get("role")
    if role not in ROLES:
        raise _wrong(f"A role is one of {', '.join(ROLES)}.")
    if form.get("new") == "yes":
        known = await to_thread(_books(request).principal, name)
        if known is not None and known.active:
            raise _wrong("There is a user of this name; change the role below.")
    await to_thread(lambda: gate.principal_set(name, role, by=who))
    return await _link(request, name) if form.get("new") == "yes" else _see("/users?done=role")


async def user_link(request: Request) -> Response:
    """A link to sign in, shown this once."""
    _whole(request)
    return await _link(request, request.path_params["name"])


async def _link(request: Request, name: str) -> Response:
    gate, who = request.app.state.gate, _who(request)
    path = await to_thread(lambda: gate.link_made(name, by=who))
    return _secret(
        request,
        request.app.state.settings.address + path,
        heading=f"A sign-in link for {name}",
        words=f"For {name} alone. It works once, within an hour.",
        back="/users",
    )


async def user_revoked(request: Request) -> Response:
    """Ends sessions and tokens; the role stays."""
    who, gate = _whole(request), request.app.state.gate
    name = await _known(request)
    await to_thread(lambda: gate.all_ended(name, by=who))
    return _see("/users?done=revoked")


async def user_removed(request: Request) -> Response:
    """Takes the role away; the name stays taken."""
    who, gate = _whole(request), request.app.state.gate
    name = await _known(request)
    await to_thread(lambda: gate.principal_set(name, None, by=who))
    return _see("/users?done=removed")


async def allowance_set(request: Request) -> Response:
    """Sets or ends how much of an account somebody may spend."""
    who, form = _whole(request), await form_of(request)
    account, name = form.get("account", ""), form.get("principal", "")
    if account not in {served.account_name for served in await _seen(request)}:
        raise _unknown("account", "No table of this server has such an account.")
    limit = None
    if form.get("end") != "yes":
        exact = {
            currency: _exact(letter, text)
            for currency, letter in CURRENCIES
            if (text := form.get(currency, "").strip())
        }
        period: Any = form.get("period") or None
        limit = Limit(**exact, period=period)
    books = _books(request)
    await to_thread(lambda: books.set_allowance(account, name, limit, by=who.principal))
    await _noted(request, "allowance set" if limit else "allowance ended", name, account)
    return _see(f"/users?done={'allowance' if limit else 'ended'}")


def _exact(letter: str, text: str) -> Fraction:
    try:
        return rational(text, letter)
    except InvalidParameter:
        raise _wrong(f"{letter} is not a number: write 0.5, 1/3 or 1e-9.") from None


async def audit(request: Request) -> Response:
    """Who did what on this server."""
    _whole(request)
    before = _digits(request.query_params.get("before"))
    rows = await to_thread(request.app.state.gate.audit_lines, before, _MOST_LINES + 1)
    lines = [
        {
            "at": moment(row["at"], exact=True),
            "principal": row["principal"] or "the server",
            "action": row["action"],
            "subject": row["subject"] or "",
            "words": row["words"] or "",
        }
        for row in rows[:_MOST_LINES]
    ]
    older = rows[_MOST_LINES - 1]["sequence"] if len(rows) > _MOST_LINES else None
    return render(request, "audit.html", title="Audit log", lines=lines, older=older)


# ---------------------------------------------------------------- what handlers share


def _who(request: Request) -> Identity:
    who: Identity = request.state.identity
    return who


def _whole(request: Request) -> Identity:
    """Who acts with all rights of their role."""
    who = _who(request)
    if who.tables is not None or who.rights != RIGHTS[who.role]:
        detail = (
            "This session was begun by a restricted token; sign in by a link, or another token."
        )
        raise Refusal(status=403, title="Not allowed", detail=detail, kind="not-allowed")
    return who


def _books(request: Request) -> Ledger:
    books: Ledger = request.app.state.gate.ledger
    return books


async def _noted(request: Request, action: Action, subject: str, words: str | None = None) -> None:
    """Write it into the audit log."""
    await to_thread(request.app.state.gate.audit, _who(request), action, subject, words)


async def _seen(request: Request) -> list[Any]:
    found: list[Any] = await to_thread(request.app.state.desk.catalogue.seen_by, _who(request))
    return found


async def _served(request: Request) -> Any:
    """The table of the address; one that may not be seen is as unknown as one that is not there."""
    name = request.path_params["table"]
    for served in await _seen(request):
        if served.name == name:
            return served
    raise _unknown("table", "There is no such table, or you have no allowance on it.")


async def _known(request: Request) -> str:
    name: str = request.path_params["name"]
    if await to_thread(_books(request).principal, name) is None:
        raise _unknown("user", "There is no such user.")
    return name


def _see(path: str) -> RedirectResponse:
    return RedirectResponse(path, 303)


def _said(request: Request) -> str:
    return _DONE.get(request.query_params.get("done", ""), "")


def _digits(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) <= 12 else None


def _unknown(what: str, detail: str) -> Refusal:
    return Refusal(status=404, title="Not found", detail=detail, kind=f"unknown-{what}")


def _wrong(detail: str) -> Refusal:
    return Refusal(status=422, title="Not accepted", detail=detail, kind="invalid")
