"""The register of releases: what a ledger has answered, a line each, as CSV and as a page.

A release is an answer that is in the ledger: when it was settled, about which table, the question,
its price, in whose name, the digest of its certificate, and the entry that proves it. Prices that
were charged and not answered are no releases; the page says how many there are, since they are
spent as well. An entry whose record the independent checker rejects has a line too, since somebody
may have seen something: what the record says of itself is not in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import astuple, dataclass, fields
from typing import TypeAlias

from markupsafe import Markup

from lastbit.files import csv_text, plain_cell
from lastbit.ledger import Ledger, exported
from lastbit.report.page import price, printable, rendered
from lastbit.report.plan import Record, title_of

_LONGEST_QUESTION = 2000
UNREADABLE = "unreadable entry"
Judge: TypeAlias = Callable[[Record], str | None]
"""Why the independent checker does not accept a record; None if it does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """One line of the register."""

    when: str
    table: str
    question: str
    """The SQL, or of a question in Python what it asks for."""
    price: str
    principal: str
    """In whose name it was asked; in a ledger without principals, who asked."""
    certificate: str
    entry: int


def register_csv(ledger: Ledger, judged: Judge) -> str:
    """The register as comma-separated text with a header; `judged` is the independent checker.

    A cell that a spreadsheet would take for a formula begins with an apostrophe.
    """
    releases = (_release(*one, judged) for one in answers_in(ledger, set()))
    lines = (map(plain_cell, astuple(one)) for one in releases)
    return csv_text(((field.name for field in fields(Release)), *lines))


def register_page(ledger: Ledger, judged: Judge) -> Markup:
    """The register as a page, newest first, with the head of the chain that it was made from."""
    last = ledger.entries(last=1)[0]
    unanswered: set[str] = set()
    answers = answers_in(ledger, unanswered)
    found = [_release(*one, judged) for one in answers if one[0]["sequence"] <= last.sequence]
    return rendered(
        "register.html",
        title="Register of releases",
        ledger=printable(ledger.path.name),
        releases=list(reversed(found)),
        unanswered=len(unanswered),
        facts=(
            ("ledger", printable(ledger.path.name)),
            ("releases", f"{len(found):,}"),
            ("up to entry", f"{last.sequence}, {last.when[:16].replace('T', ' ')} UTC"),
        ),
        head=last.hash,
    )


def answers_in(
    ledger: Ledger, unanswered: set[str], account: str | None = None
) -> Iterator[tuple[Record, Record, Record]]:
    """Of every answer, or every one of an account: its entry, the one that paid for it, its record.

    At the end `unanswered` has the hashes of prices without an answer.
    """
    paid: dict[str, Record] = {}
    for entry in exported(ledger):
        told = entry["fields"]
        if account is not None and told["account"] != account:
            continue
        if told["kind"] == "reserved":
            paid[entry["hash"]] = told
            unanswered.add(entry["hash"])
        elif told["kind"] in ("settled", "charge"):
            reserved = told.get("reservation") or ""
            unanswered.discard(reserved)
            record = entry["record"] if isinstance(entry["record"], Mapping) else {}
            yield told, paid.pop(reserved, told), record


def _release(told: Record, paid: Record, record: Record, judged: Judge) -> Release:
    """One answer, or an entry that is charged as one."""
    readable = judged(record) is None
    asked = " ".join((paid["words"] or "").split())
    if not readable:
        question = f"{UNREADABLE}: {asked}" if asked else UNREADABLE
    else:
        question = asked or title_of(record)
    return Release(
        when=told["when"][:19].replace("T", " "),
        table=record["table"] if readable else told["account"],
        question=printable(question, _LONGEST_QUESTION),
        price=price(paid["cost"]) if paid["cost"] is not None else "",
        principal=printable(paid.get("principal") or paid["who"] or "", _LONGEST_QUESTION),
        certificate=record["certificate"]["digest"] if readable else "",
        entry=told["sequence"],
    )
