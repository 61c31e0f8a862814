"""A question that waits, answers, and their files."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from math import ceil
from time import time
from typing import Any

from starlette.responses import Response

from lastbit.checker import names_code, problem_of
from lastbit.errors import LastbitError
from lastbit.release import Answer
from lastbit.report import EMPTY, answer_parts, page as report_page, title_of
from lastbit.serve.handling import MOST_LINES, Call, released_as, see, unknown
from lastbit.serve.questions import FINISHED, Job
from lastbit.serve.safety import attachment
from lastbit.serve.views import citation, file_name, when_words

_FILES = (
    ("answer.csv", "CSV"),
    ("answer.json", "JSON, with certificate"),
    ("report.html", "Report"),
)


def job(call: Call) -> Response:
    """A question that waits; once it is answered, the answer."""
    found = call.desk.job(call.path["job"], call.who)
    if found.state == "answered" and found.entry is not None:
        return see(f"/answers/{found.entry}")
    heading, words = {
        "waiting": ("Waiting for its turn", "It begins as soon as the table is free."),
        "running": ("On its way", "The answer appears when its slot ends."),
        "answered": ("On its way", "The answer appears when its slot ends."),
        "no answer": ("No answer", "It was not ready in time. It stays charged."),
        "refused": ("Refused", "This question was not answered."),
    }[found.state]
    wait = None
    if found.state not in FINISHED or found.state == "answered":
        wait = _seconds_to(found)
    return call.page(
        "job.html",
        title=heading,
        job=found,
        heading=heading,
        words=found.reason or words,
        wait=wait,
        span=max(wait or 1, ceil(found.slot or 1)),
    )


def _seconds_to(job: Job) -> int:
    """Until it may be answered, at the end of a slot."""
    return 1 if job.due is None else max(1, ceil(job.due - time()))


def answers(call: Call) -> Response:
    """Every answer about tables that one may see."""
    chosen, before = call.query.get("table", ""), call.number("before")
    lines = [
        line
        for line in call.desk.answers(call.who)
        if (not chosen or line.table == chosen) and (before is None or line.entry < before)
    ]
    waiting = [
        one
        for one in call.desk.jobs(call.who)
        if one.state not in FINISHED and (not chosen or one.table == chosen)
    ]
    return call.page(
        "answers.html",
        title="Answers",
        tables=[served.name for served in call.tables()],
        chosen=chosen,
        jobs=waiting[:MOST_LINES],
        wait=min(map(_seconds_to, waiting), default=None),
        lines=lines[:MOST_LINES],
        older=lines[MOST_LINES - 1].entry if len(lines) > MOST_LINES else None,
    )


def answer(call: Call) -> Response:
    """An answer: its numbers, promise, proof and files."""
    number, record = int(call.path["entry"]), call.record()
    line = next((line for line in call.desk.answers(call.who) if line.entry == number), None)
    if line is None:  # newer than the list
        entry = call.books.entry(number)
        when, principal = when_words(entry.when), entry.who
    else:
        when, principal = when_words(line.when), line.principal
    together, joint = "together" in call.query, _joint(record)
    return call.page(
        "answer.html",
        title=title_of(record),
        made_up=False,
        table=record["table"],
        entry=number,
        when=when,
        principal=principal,
        answer=answer_parts(record if joint is None or not together else joint),
        together=None if joint is None else together,
        empty=EMPTY,
        files=_FILES,
        problem=_problem(record),
        saved_as=file_name(record, number, "json"),
        citation=citation(record, number, when[:10]),
        address=f"{call.settings.address}/answers/{number}",
    )


def _joint(record: dict[str, Any]) -> dict[str, Any] | None:
    """The record with intervals that hold all together; None where none of them is wider."""
    found = released_as(record)
    if not isinstance(found, Answer) or len(found) < 2:
        return None
    with suppress(LastbitError):
        wider = found.simultaneous().shown
        return wider if wider is not None and wider["rows"] != record["rows"] else None
    return None


def _problem(record: Mapping[str, Any]) -> str | None:
    """Why the independent checker rejects an answer; None if it accepts it."""
    if names_code(record):  # no answer of lastbit's does
        return "It names code, which is not run here: check it at home."
    return problem_of(record)


def answer_file(call: Call) -> Response:
    """The answer as a file."""
    number, file = call.path["entry"], call.path["file"]
    if file not in dict(_FILES):
        raise unknown("file", "There is no such file.")
    record = call.record()
    match file:
        case "report.html":
            text, kind = str(report_page(record)), "text/html"
        case "answer.csv":
            text, kind = released_as(record).to_csv(), "text/csv"
        case _:
            text, kind = released_as(record).to_json(), "application/json"
    ending = file.rpartition(".")[2]
    call.note("downloaded", f"answer-{number}.{ending}")
    headers = attachment(file_name(record, number, ending))
    return Response(text, media_type=kind, headers=headers)
