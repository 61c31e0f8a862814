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
from typing import Any, TypeAlias

from markupsafe import Markup

from lastbit.files import csv_text, plain_cell
from lastbit.ledger import Ledger, exported
from lastbit.report.page import price, printable, rendered
from lastbit.report.plan import title_of

_LONGEST_QUESTION = 2000
UNREADABLE = "unreadable entry"
Judge: TypeAlias = Callable[[Mapping[str, Any]], str | None]
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
    lines = (map(plain_cell, astuple(one)) for one in _releases(ledger, judged, set()))
    return csv_text(((field.name for field in fields(Release)), *lines))


def register_page(ledger: Ledger, judged: Judge) -> Markup:
    """The register as a page, newest first, with the head of the chain that it was made from."""
    last = ledger.entries(last=1)[0]
    unanswered: set[str] = set()
    listed = _releases(ledger, judged, unanswered)
    found = [one for one in listed if one.entry <= last.sequence]
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


def _releases(ledger: Ledger, judged: Judge, unanswered: set[str]) -> Iterator[Release]:
    """In their order; at the end `unanswered` has the hashes of prices without an answer."""
    paid: dict[str, Mapping[str, Any]] = {}
    for entry in exported(ledger):
        told = entry["fields"]
        if told["kind"] == "reserved":
            paid[entry["hash"]] = told
            unanswered.add(entry["hash"])
        elif told["kind"] == "settled":
            unanswered.discard(told["reservation"])
            yield _release(told, paid.pop(told["reservation"], told), entry["record"], judged)
        elif told["kind"] == "charge":
            yield _release(told, told, entry["record"], judged)


def _release(
    told: Mapping[str, Any], paid: Mapping[str, Any], record: Any, judged: Judge
) -> Release:
    """One answer, or an entry that is charged as one."""
    readable = record is not None and judged(record) is None
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
