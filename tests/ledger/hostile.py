"""Entries and records that somebody might write who wants to be believed, or to stop others.

Wrong types, huge and deep numbers and lists, tokens that JSON has not, halves of letters, NULs, and
forged claims; genuine records with a part changed, left out or put elsewhere, sealed again or not.
"""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Iterator
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any, get_args

from lastbit.canonical import digest_of
from lastbit.ledger.entry import NEIGHBOURS, Entry, Kind
from lastbit.ledger.limits import Limit, Total
from lastbit.tables import Budget, Cost

TOKENS = {
    "@long@": "9" * 5000,
    "@fraction@": "0." + "7" * 1500,
    "@nan@": "NaN",
    "@infinite@": "-Infinity",
    "@overflow@": "1e999",
    "@power@": "1e99999",
    "@half@": '"\\ud800"',
    "@nul@": '"a\\u0000b"',
    "@deep@": "[" * 3000 + "]" * 3000,
    "@deeper@": '{"a":' * 150 + "1" + "}" * 150,
}
"""What cannot be written by `json.dumps`, by what stands for it there."""
VALUES: tuple[Any, ...] = (
    *TOKENS,
    *(None, True, False, 0, 5, -1, 1.5, 1e308, 10**400, -(10**900), "", "x", "1/0", "-5", "NaN"),
    *(
        "9" * 5000,
        "change-one",
        "add-remove",
        "visits",
        "costs",
        "\u202e\x1b[31m",
        "</script>{{7*7}}",
    ),
    *([], {}, [[]], [None], {"": None}, {"column": "x"}, [1] * 50, {"certificate": {"claim": 5}}),
    *("release", "marginals", "law", "composition", "count", "0" * 64, "f" * 64),
)
WHOLE = (
    "", "null", "5", "[]", '"x"', "{}", '{"rows":', "{'a':1}", '{"a":1}}', '{"rows":[],"rows":5}',
    '{"table":"visits","asked":5,"rows":7}', '{"rows":[],"certificate":5}',
    '{"certificate":{"claim":{"neighbours":"change-one","unit":null}}}',
    '{"certificate":{"claim":{"neighbours":["change-one"],"unit":[]}}}',
    '{"rows":[],"certificate":{"kind":"law","claim":{},"body":{}}}',
    *(f'{{"a":{token}}}' for token in TOKENS.values()), TOKENS["@deep@"],
)  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every part of plain JSON."""
    yield path
    inner = enumerate(value) if isinstance(value, list) else ()
    for step, part in value.items() if isinstance(value, dict) else inner:
        yield from places(part, (*path, step))


def written(value: Any) -> str:
    """Canonical, but for what is no JSON."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    for name, token in TOKENS.items():
        text = text.replace(f'"{name}"', token)
    return text


def hostile_record(drawn: random.Random, genuine: dict[str, Any]) -> str:
    """A record that nobody of lastbit's would write, or one that is a little off."""
    if drawn.random() < 0.2:
        return drawn.choice(WHOLE)
    if drawn.random() < 0.1:  # the certificate itself, as if it were an answer
        return written(genuine["certificate"])
    record = json.loads(json.dumps({**genuine, "entry": None}))
    known = list(places(record))
    for _ in range(drawn.choice((1, 1, 1, 2, 4))):
        path = drawn.choice(known[1:])
        put_in(drawn, record, path)
    certificate = record.get("certificate")
    if isinstance(certificate, dict) and drawn.random() < 0.6:
        for name in ("asked", "plan", "query"):  # the same lie in both places
            body = certificate.get("body")
            if isinstance(body, dict) and name in body and name in record:
                body[name] = record[name]
        inner = {name: part for name, part in certificate.items() if name != "digest"}
        with contextlib.suppress(Exception):
            certificate["digest"] = digest_of(inner)
    return written(record)


def put_in(drawn: random.Random, record: Any, path: tuple[Any, ...]) -> None:
    """Another value, nothing, or one part more, at this place."""
    *way, last = path
    for step in way:
        try:
            record = record[step]
        except (KeyError, IndexError, TypeError):  # an earlier change took it away
            return
    if not isinstance(record, dict) and not (isinstance(record, list) and isinstance(last, int)):
        return
    match drawn.randrange(6):
        case 0 if isinstance(record, dict):
            record.pop(last, None)
        case 1 if isinstance(record, dict):
            record[drawn.choice(("", "x", "rows", "claim", "\u202e"))] = drawn.choice(VALUES)
        case 2 if isinstance(record, list):
            record.insert(drawn.randrange(len(record) + 1), drawn.choice(VALUES))
        case _:
            if isinstance(record, dict) or last < len(record):
                record[last] = drawn.choice(VALUES)


def amounts(drawn: random.Random) -> Fraction:
    return Fraction(drawn.choice(("0", "1e-30", "1/8", "5", "1e60")))


def entry_values(drawn: random.Random, name: str, known: Entry) -> Any:
    """For a field of an entry: what may be there, and what may not."""
    hour = timedelta(hours=drawn.choice((-48, -24, -1, 0, 1, 24)))
    moment = (datetime.now(UTC) + hour).isoformat(timespec="milliseconds")
    match name:
        case "kind":
            return drawn.choice(get_args(Kind))
        case "cost" | "spent":
            return drawn.choice((None, Cost(epsilon=amounts(drawn)), Cost(rho=amounts(drawn))))
        case "budget":
            return drawn.choice((None, Budget(kind="pure", epsilon=Fraction(10**9))))
        case "limit":
            return drawn.choice((None, Limit(epsilon=Fraction(10**9), period="day")))
        case "used":
            return drawn.choice((None, Total(), Total(epsilon=amounts(drawn))))
        case "when":
            return drawn.choice((moment, "", "yesterday", "9999-12-31T23:59:59.999+00:00"))
        case "since":
            return drawn.choice((None, moment[:10], "0001-01-01", "2026-99-99"))
        case "neighbours":
            return drawn.choice((None, *NEIGHBOURS, "both"))
        case "role":
            return drawn.choice((None, "steward", "analyst", "owner"))
        case "sequence":
            return drawn.choice((0, -1, known.sequence, known.sequence + 2, 10**18))
    words = ("visits", "patients", "stella", "ana", "x" * 300, "\0", "\ud800", "\u202e", "0" * 64)
    return drawn.choice((None, "", *words, known.hash, "9" * 3_000_000))


def hostile_entry(drawn: random.Random, earlier: list[Entry], **right: Any) -> Entry:
    """An entry like an earlier one, of the next number and link, in which some fields are off."""
    last = earlier[-1]
    like = drawn.choice(earlier)
    made = replace(like, record=None, unreadable=None,
                   **{**right, "sequence": last.sequence + 1, "previous": last.hash})  # fmt: skip
    beside = ("record", "unreadable", "resumed")
    names = [one.name for one in fields(Entry) if one.name not in beside]
    for _ in range(drawn.choice((0, 0, 0, 1, 1, 2, 3))):
        name = drawn.choice(names)
        made = replace(made, **{name: entry_values(drawn, name, last)})
    return made


def hostile_text(drawn: random.Random, text: str) -> str:
    """The text of an entry, sometimes with a letter or a value changed."""
    if drawn.random() < 0.8:
        return text
    place, sign = drawn.randrange(len(text)), drawn.choice('"\\0{}[],:é\x00')
    return text[:place] + sign + text[place + drawn.randrange(3) :]
