"""An entry of the ledger: its fields, its canonical text and its hash.

The hash is SHA-256 over the canonical JSON of all fields, the hash of the entry before among them.
An answer's record may be long, so the entry holds its digest (`result`) and the record lies beside
it. Every entry of an account also holds what is spent and the budget in force *after* it: a running
total that `chain.py` works out again from the charges alone.

| kind | says |
|---|---|
| opened | the ledger was made |
| budget | an account has this budget from now on |
| reserved | this price is charged for an answer that is to come; no row has been read for it |
| settled | the answer to an earlier reservation, which costs nothing more |
| voided | an earlier reservation stays charged and is never answered: a backup was restored |
| charge | a price and its answer at once |
| note | a remark |
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal, TypeAlias, TypeVar, cast

from lastbit.canonical import canonical_json, sha256
from lastbit.ledger.account import Account
from lastbit.tables import Budget, Cost

Kind: TypeAlias = Literal["opened", "budget", "charge", "note", "reserved", "settled", "voided"]

FIRST = "0" * 64
"""What the first entry has in place of the hash of the one before."""

_FORMAT, _FORMAT_OF_RESERVATIONS = "lastbit ledger 1", "lastbit ledger 2"
_RESERVATIONS = ("reserved", "settled", "voided")
_KINDS = ("opened", "budget", "charge", "note", *_RESERVATIONS)
_EXACT = re.compile(r"\d{1,4100}(/\d{1,4100})?", re.ASCII)
Amount = TypeVar("Amount")

_CURRENCIES = ("epsilon", "delta", "rho")
_TEXTS = ("account", "who", "words", "query", "question", "plan", "fingerprint", "result", "secret")


class Malformed(ValueError):
    """A text that is no entry; the message says in what. It never leaves this room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of the books. `words` are the SQL text of a question, or the text of a note.

    >>> entry = Entry(sequence=1, when="2026-01-01T00:00:00+00:00", kind="note", words="hello")
    >>> Entry.read(entry.text) == entry
    True
    """

    kind: Kind
    sequence: int = 0
    """From 1 on; a draft has no number, and no time, yet."""
    when: str = ""
    previous: str = FIRST
    account: str | None = None
    who: str | None = None
    words: str | None = None
    query: str | None = None
    """Digest of the query, however it was written."""
    question: str | None = None
    """Digest of the query, the price asked and the keyed fingerprint of the data."""
    cost: Cost | None = None
    plan: str | None = None
    fingerprint: str | None = None
    result: str | None = None
    spent: Cost | None = None
    budget: Budget | None = None
    secret: str | None = None
    """In the first entry: the digest of the ledger's secret, so that it cannot be exchanged."""
    reservation: str | None = None
    """In a settled or voided entry: the hash of the reservation that it answers, or closes."""
    record: Mapping[str, Any] | None = field(default=None, repr=False, compare=False)
    resumed: bool = field(default=False, repr=False, compare=False)
    """Of a reservation that `reserve` gives: whether it was charged by an earlier call."""

    @property
    def text(self) -> str:
        """The canonical JSON of all fields; the record is in it by its digest."""
        late = {"reservation": self.reservation} if self.kind in _RESERVATIONS else {}
        return canonical_json(
            {
                "format": _FORMAT_OF_RESERVATIONS if late else _FORMAT,
                "sequence": self.sequence,
                "when": self.when,
                "kind": self.kind,
                "previous": self.previous,
                **{name: _amounts(getattr(self, name)) for name in ("cost", "spent", "budget")},
                **{name: getattr(self, name) for name in _TEXTS},
                **late,
            }
        )

    @property
    def hash(self) -> str:
        """SHA-256 of the text: what the next entry points to, and what a certificate quotes."""
        return sha256(self.text)

    @property
    def state(self) -> Account | None:
        """The account as it was after this entry."""
        if self.account is None or self.spent is None:
            return None
        return Account(name=self.account, budget=self.budget, spent=self.spent)

    def with_record(self, record: Mapping[str, Any]) -> Entry:
        """The entry and the answer beside it, which is told where it is recorded."""
        place = {"hash": self.hash, "sequence": self.sequence}
        return replace(self, record={**record, "entry": place})

    @staticmethod
    def read(text: str) -> Entry:
        """The entry that this text is; any other text, also of the same meaning, is refused."""
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            raise Malformed("is no JSON") from None
        if not isinstance(data, dict) or data.get("format") not in (
            _FORMAT,
            _FORMAT_OF_RESERVATIONS,
        ):
            raise Malformed("is of another format")
        try:
            entry = _entry(data)
        except (KeyError, TypeError, ValueError, ZeroDivisionError):  # LastbitErrors among them
            raise Malformed("has fields that no entry has") from None
        if entry.text != text:
            raise Malformed("is not written as entries are")
        return entry


def _entry(data: dict[str, Any]) -> Entry:
    if data["kind"] not in _KINDS:
        raise ValueError
    if type(data["sequence"]) is not int or not isinstance(data["when"], str):
        raise TypeError
    texts: dict[str, Any] = {name: data[name] for name in _TEXTS}
    if data["kind"] in _RESERVATIONS:
        texts["reservation"] = data["reservation"]
    if not all(text is None or isinstance(text, str) for text in texts.values()):
        raise TypeError
    return Entry(
        sequence=data["sequence"],
        when=data["when"],
        kind=cast(Kind, data["kind"]),
        previous=str(data["previous"]),
        cost=_read(data["cost"], Cost),
        spent=_read(data["spent"], Cost),
        budget=_read(data["budget"], Budget),
        **texts,
    )


def _exact(text: str) -> Fraction:
    if not _EXACT.fullmatch(text):
        raise ValueError
    return Fraction(text)


def _amounts(amount: Cost | Budget | None) -> dict[str, str] | None:
    if amount is None:
        return None
    kind = {"kind": amount.kind} if isinstance(amount, Budget) else {}
    return {**kind, **{name: str(getattr(amount, name)) for name in _CURRENCIES}}


def _read(data: Any, made: Callable[..., Amount]) -> Amount | None:
    if data is None:
        return None
    kind = {"kind": data["kind"]} if made is Budget else {}
    return made(**kind, **{name: _exact(data[name]) for name in _CURRENCIES})
