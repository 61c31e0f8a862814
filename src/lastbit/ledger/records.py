"""Records beside entries: read within bounds, and never believed for more than their entry says.

Whoever may charge writes a record beside the charge, and may write anything. So a record is an
*answer* only if it is plain JSON within the bounds below, names no other price, plan or neighbours
than its entry, and no steward has withdrawn it. Everything else is kept as it was written, since
its digest is in the chain, and is nowhere an answer: it is not shown, not served again, and decides
nothing.

Law      `record_of` gives a dict of at most `MOST_RECORDED` values, `DEEPEST` levels and a thousand
         digits a number, whose numbers are finite and whose texts are Unicode; or None
Theorem  whatever is appended as a record, every reading of the ledger ends, with the same entries,
         sums and other answers as without it
Proof    no digest but its own entry's depends on it, and `record_of` raises nothing
Differs  the server of a shared ledger checks size, depth, digits, price and plan before it lets a
         record in (`definitions.py`); in a file that is lastbit's own doing
Checked  tests/ledger/test_believed_records.py; tests/serve/test_hostile_entries.py
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lastbit.canonical import digest_of
from lastbit.ledger.entry import NEIGHBOURS, Entry
from lastbit.reading import MOST_RECORDED, parse_json
from lastbit.tables import Cost

LONGEST_RECORD = 1 << 28
MOST_PARTS = 1 << 25  # commas: about the values of the largest answer
DEEPEST = 100  # twice what a question may be nested
MOST_DIGITS = 1_000  # a question has numbers of 400
UNREADABLE = "has a record that is not of lastbit's own form"
WITHDRAWN = "was withdrawn by a steward"


def record_of(text: str) -> dict[str, Any] | None:
    """The record that a text is; None: none that lastbit would have written.

    >>> record_of('{"rows":[1.5,null]}'), record_of("[" * 3000), record_of('{"a":1e999}')
    ({'rows': [1.5, None]}, None, None)
    """
    if not text.isascii():
        return None
    try:
        record = parse_json(
            text, most_bytes=LONGEST_RECORD, most_values=MOST_RECORDED, deepest=DEEPEST
        )
        json.dumps(record, ensure_ascii=False).encode()  # refuses halves of letters
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def is_unicode(text: str) -> bool:
    """Whether there is no half of a letter in it, which no file and no page can hold."""
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def answer_problem(record: Mapping[str, Any], entry: Entry, cost: Cost | None) -> str | None:
    """How what an answer states differs from its entry, and its price; None if they match.

    An answer need not say these things: then there is nothing to compare.
    """
    if entry.neighbours is not None and claimed_neighbours(record) not in (None, entry.neighbours):
        return "is about other neighbours than its account"
    return price_problem(record, cost, entry.plan)


def price_problem(record: Mapping[str, Any], cost: Cost | None, plan: str | None) -> str | None:
    """The same for price and plan alone."""
    price = None if cost is None else cost.to_json()
    if "cost" in record and record["cost"] != price:
        return "names another price than was charged for it"
    if "plan" in record:
        told = record["plan"]
        if not isinstance(told, Mapping) or told.get("cost") != price:
            return "has a plan of another price than was charged for it"
        if digest_of(told) != plan:
            return "has another plan than its entry"
    return None


def claimed_neighbours(record: Mapping[str, Any]) -> str | None:
    """Of which neighbours an answer says that it is; None: it says nothing of the kind.

    Its writer's word: good for a doubt, and for nothing else.
    """
    certificate = record.get("certificate")
    claim = certificate.get("claim") if isinstance(certificate, Mapping) else None
    if not isinstance(claim, Mapping) or not {"neighbours", "unit"} <= claim.keys():
        return None
    said = f"{claim['neighbours']} of {'rows' if claim['unit'] is None else 'units'}"
    return said if said in NEIGHBOURS else None
