"""The editor: a question, its price and ± before it is paid, made-up answers, and paying."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Awaitable, Callable, Mapping
from fractions import Fraction
from typing import Any, TypeAlias

from starlette.responses import HTMLResponse, Response

from lastbit.errors import LastbitError
from lastbit.report import EMPTY, amount, answer_parts, price
from lastbit.sampling import secure_bits
from lastbit.serve.builder import choices_for, statement
from lastbit.serve.catalogue import Served
from lastbit.serve.handling import Call, exact_number, see
from lastbit.serve.problems import FIELDS, in_letters, refusal_of
from lastbit.serve.questions import Preview, Question, Refusal, wrong
from lastbit.serve.reference import EDITOR_WORDS, reference
from lastbit.serve.schemas import question_of
from lastbit.serve.views import CURRENCIES, card_columns, examples_of, path_to, timing

Problem: TypeAlias = tuple[str, str]
"""Words, and the field of the form that they are about."""

_KEPT = ("sql", "by", "epsilon", "delta", "rho", "within", "weights")
_FIELDS = ("sql", *{field for _, field in FIELDS.values()})
"""The fields of the editor that an error can be about; others are the builder's."""


def ask(call: Call) -> Response:
    """The editor; by its address with an example, or a question that was asked before."""
    served = call.table()
    start: Mapping[str, Any] = {}
    examples, place = examples_of(served), call.number("example")
    if place is not None and place < len(examples):
        start = dict(examples[place]["fields"])
    elif (number := call.number("answer")) is not None:
        record = call.desk.answer(number, call.who)
        start = {"sql": record["asked"].get("sql") or "", **_paid(record["cost"])}
    elif call.query.get("job"):
        start = call.desk.job(call.query["job"], call.who).question.to_json()
    return _editor(call, served, start)


def build(call: Call) -> Response:
    """The editor, with the statement that the fields of the builder choose."""
    served, form = call.table(), call.form()
    start = {name: text for name, text in form.items() if name in _KEPT}
    try:
        start["sql"] = statement(form, served.card)
    except Refusal as refusal:
        problem = refusal.detail, refusal.field
        return _editor(call, served, start, problem, refusal.status, built=form)
    return _editor(call, served, start, built=form)


async def preview(call: Call) -> Response:
    """Price and error; as a part of the page if the script asks for it."""
    served, form = await to_thread(call.table), call.form()
    seen, problem, status = await _tried(
        call, lambda question: call.desk.preview(served.name, question, call.who)
    )
    if form.get("part") != "preview":
        return _editor(call, served, form, problem, status, seen=seen)
    part = call.page("preview.html", **_preview(call, served, form, seen, problem))
    return HTMLResponse(b"<section>" + bytes(part.body) + b"</section>")


async def made_up(call: Call) -> Response:
    """An answer on rows that were made up from the card: free, and about no real person."""
    served, form = await to_thread(call.table), call.form()
    record, problem, status = await _tried(
        call, lambda question: call.desk.made_up(served.name, question, call.who)
    )
    if record is None:
        return _editor(call, served, form, problem, status)
    return call.page(
        "answer.html",
        title=f"Made-up rows of {served.name}",
        made_up=True,
        table=served.name,
        answer=await to_thread(answer_parts, record),
        empty=EMPTY,
        same=[(name, text) for name, text in form.items() if name in _KEPT],
    )


async def asked(call: Call) -> Response:
    """Pays for the question of the preview, and shows where the answer will be."""
    served, form = await to_thread(call.table), call.form()
    key = form.get("key") or None
    await call.desk.wait_for_slots(served.name)
    jobs, problem, status = await _tried(
        call, lambda question: call.desk.submit_all(served.name, question, call.who, key=key)
    )
    if jobs is None:
        return _editor(call, served, form, problem, status)
    for _ in jobs:
        await to_thread(call.note, "asked", served.name)
    return see(path_to("jobs", jobs[0].id) if len(jobs) == 1 else "/answers")


async def _tried(
    call: Call, work: Callable[[Question], Awaitable[Any]]
) -> tuple[Any, Problem | None, int]:
    """What the desk gives; or why not, and the status of that, where the asker can mend it."""
    try:
        return await work(_question(call)), None, 200
    except (Refusal, LastbitError) as error:
        found = refusal_of(error)
        if found.status in (401, 404, 429) or (found is not error and found.status >= 500):
            raise
        return None, (found.shown or found.detail, found.field), found.status


def _question(call: Call) -> Question:
    """The question of a form; by its ± if that is chosen, else by its price."""
    form = call.form()
    by_error = form.get("by") == "error"
    names = ("sql", "delta", "weights", *(("within",) if by_error else ("epsilon", "rho")))
    data: dict[str, Any] = {
        name: form[name].strip() for name in names if form.get(name, "").strip()
    }
    if by_error and "within" not in data:
        raise wrong("Say which ± you need, a number above 0.", "within")
    if not by_error and "epsilon" not in data and "rho" not in data:
        raise wrong("Say what you pay, a number above 0.", "price")
    if "sql" not in data:
        raise wrong("Write a question: one SELECT.", "sql")
    if len(data["sql"].encode()) > call.settings.most_sql:
        raise wrong(f"The question is longer than {call.settings.most_sql} bytes.", "sql")
    for name, (letter, field) in FIELDS.items():
        if name in data and name != "weights":
            exact_number(data[name], letter, field)
    if form.get("fresh") == "yes":
        data["fresh"] = True
    return question_of(data, most_sql=call.settings.most_sql)


def _editor(
    call: Call,
    served: Served,
    start: Mapping[str, Any],
    problem: Problem | None = None,
    status: int = 200,
    *,
    seen: Preview | None = None,
    built: Mapping[str, str] | None = None,
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
        "balanced": start.get("weights") == "balanced",
    }
    return call.page(
        "ask.html",
        status=status,
        title=f"Ask {served.name}",
        question=question,
        columns=card_columns(served.card.columns),
        reference=reference(served.card),
        words=EDITOR_WORDS,
        builder=choices_for(served.card),
        built=built or {},
        examples=examples,
        most_sql=call.settings.most_sql,
        **_preview(call, served, start, seen, problem),
    )


def _preview(
    call: Call,
    served: Served,
    form: Mapping[str, Any],
    seen: Preview | None,
    problem: Problem | None,
) -> dict[str, Any]:
    """What the panel beside the editor says."""
    currency, letter = _currency(served)
    told: dict[str, Any] = {
        "one": {"name": served.name},
        "currency": currency,
        "letter": letter,
        "preview": seen,
        "problem": None if problem is None else problem[0],
        "wrong": "" if problem is None else problem[1],
        "fields": _FIELDS,
        "timing": timing(served.slot, strict=call.settings.strict),
    }
    if seen is None:
        return told
    paid = {name: form.get(name, "") for name in ("sql", "epsilon", "delta", "rho", "weights")}
    if form.get("by") == "error":  # what it costs was found; that is what is paid
        paid |= {"epsilon": "", "rho": "", currency: seen.cost[currency]}
    errors = [(row[0], row[-1]) for row in seen.columns]
    cost = price(seen.cost)
    fields = [(name, text) for name, text in paid.items() if text]
    key = secure_bits().fill(16).tobytes().hex()  # paying twice by one button is one payment
    return told | {
        "cost": cost,
        "errors": errors,
        "said": "; ".join([f"Price {cost}", *(" ".join(row) for row in errors[1:])]),
        "left": None if seen.left is None else _left(seen.left),
        "refused": None if seen.refused is None else in_letters(seen.refused),
        "pay": [*fields, ("key", key)],
        "same": [(name, text) for name, text in fields if name != currency],
    }


def _left(amounts: Mapping[str, str]) -> str:
    told = ((letter, amounts.get(name)) for name, letter in CURRENCIES)
    parts = [f"{letter} = {amount(Fraction(text), up=False)}" for letter, text in told if text]
    return ", ".join(part for part in parts if part != "ρ = 0")


def _currency(served: Served) -> tuple[str, str]:
    budget = served.card.budget
    return ("rho", "ρ") if budget is not None and budget.kind == "zcdp" else ("epsilon", "ε")


def _paid(cost: Mapping[str, str]) -> dict[str, str]:
    amounts = {name: amount(Fraction(text), up=True) for name, text in cost.items()}
    return {name: text for name, text in amounts.items() if text != "0"}
