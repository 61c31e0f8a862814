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
from typing import Any

from lastbit.reading import MOST_RECORDED, parse_json

LONGEST_RECORD = 1 << 28
DEEPEST = 100  # twice what a question may be nested
MOST_DIGITS = 1_000  # a question has numbers of 400
UNREADABLE = "has a record that is not of lastbit's own form"


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
