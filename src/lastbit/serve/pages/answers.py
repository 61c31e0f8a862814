"""A question that waits, answers, and their files."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Mapping
from math import ceil
from time import time
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from lastbit.checker import names_code, problem_of
from lastbit.report import EMPTY, answer_parts, page as report_page, price, title_of
from lastbit.serve.handling import (
    MOST_LINES,
    books_of,
    digits,
    noted,
    record_asked,
    released_as,
    see,
    tables_seen,
    unknown,
    who_asks,
)
from lastbit.serve.questions import FINISHED, Job
from lastbit.serve.safety import attachment
from lastbit.serve.views import (
    answer_line,
    citation,
    file_name,
    moment,
    render,
    seconds_words,
    when_words,
)

_FILES = (
    ("answer.csv", "CSV"),
    ("answer.json", "JSON, with certificate"),
    ("report.html", "Report"),
)


async def job(request: Request) -> Response:
    """A question that waits; once it is answered, the answer."""
    found: Job = request.app.state.desk.job(request.path_params["job"], who_asks(request))
    if found.state == "answered" and found.entry is not None:
        return see(f"/answers/{found.entry}")
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
        cost="nothing: it is paid for already" if found.cost is None else price(found.cost),
        submitted=moment(found.submitted),
        slot=None if found.slot is None else seconds_words(found.slot),
    )


async def answers(request: Request) -> Response:
    """Every answer about tables that one may see."""
    desk, who = request.app.state.desk, who_asks(request)
    tables = [served.name for served in await tables_seen(request)]
    chosen = request.query_params.get("table", "")
    before = digits(request.query_params.get("before"))
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
        jobs=waiting[:MOST_LINES],
        lines=[answer_line(line) for line in lines[:MOST_LINES]],
        older=lines[MOST_LINES - 1].entry if len(lines) > MOST_LINES else None,
    )


async def answer(request: Request) -> Response:
    """An answer: its numbers, promise, proof and files."""
    number: int = request.path_params["entry"]
    record = await record_asked(request)
    lines = await to_thread(request.app.state.desk.answers, who_asks(request))
    line = next((answer_line(line) for line in lines if line.entry == number), None)
    if line is None:  # newer than the list
        entry = await to_thread(books_of(request).entry, number)
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
        answer=await to_thread(answer_parts, record),
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
        raise unknown("file", "There is no such file.")
    record = await record_asked(request)
    text, kind = await to_thread(_file, record, file)
    ending = file.rpartition(".")[2]
    await noted(request, "downloaded", f"answer-{number}.{ending}")
    headers = attachment(file_name(record, number, ending))
    return Response(text, media_type=kind, headers=headers)


def _file(record: dict[str, Any], file: str) -> tuple[str, str]:
    if file == "report.html":
        return str(report_page(record)), "text/html"
    if file == "answer.csv":
        return released_as(record).to_csv(), "text/csv"
    return released_as(record).to_json(), "application/json"
