"""Entries: canonical text, hashes that see everything, reading that accepts one text only."""

import hashlib
import json
from dataclasses import fields, replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, strategies as st

from lastbit.canonical import canonical_json
from lastbit.errors import WrongType
from lastbit.ledger.entry import Entry, Malformed
from lastbit.ledger.limits import Limit, Total
from lastbit.tables.card.budget import Budget
from lastbit.tables.plan.cost import Cost

ENTRY = Entry(
    sequence=7,
    when="2026-01-01T00:00:00.000+00:00",
    kind="charge",
    previous="a" * 64,
    account="visits",
    who="ada",
    words="SELECT 1",
    query="b" * 64,
    question="c" * 64,
    cost=Cost(epsilon=Fraction(1, 3)),
    plan="d" * 64,
    fingerprint="e" * 64,
    result="f" * 64,
    spent=Cost(epsilon=Fraction(2, 3)),
    budget=Budget(kind="pure", epsilon=Fraction(1)),
    secret="0" * 64,
)
BY_ADA = replace(
    ENTRY,
    principal="ada",
    limit=Limit(epsilon=Fraction(1), period="month"),
    used=Total(epsilon=Fraction(1, 3)),
    since="2026-01-01",
)
OTHER = {
    "sequence": 8,
    "kind": "note",
    "cost": Cost(epsilon=Fraction(1, 3) + Fraction(1, 10**40)),
    "spent": Cost(epsilon=Fraction(1, 4)),
    "budget": Budget(kind="pure", epsilon=Fraction(2)),
    "limit": Limit(epsilon=Fraction(1), period="week"),
    "used": Total(epsilon=Fraction(1, 4)),
}

texts = st.none() | st.text(max_size=20)


@given(texts, texts, texts, st.fractions(min_value=0))
def test_what_is_read_is_what_was_written(who, words, account, epsilon):
    entry = replace(ENTRY, who=who, words=words, account=account, cost=Cost(epsilon=epsilon))
    assert Entry.read(entry.text) == entry
    assert entry.text.isascii()
    limit = Limit(epsilon=epsilon, delta=epsilon / 3, period="week")
    used = Total(epsilon=epsilon, rho=epsilon)
    given = replace(BY_ADA, principal=words or "ada", limit=limit, used=used)
    assert Entry.read(given.text) == given


def test_the_hash_is_sha_256_of_the_canonical_json():
    data = json.loads(ENTRY.text)
    plain = json.dumps(data, sort_keys=True, separators=(",", ":"))
    assert ENTRY.hash == hashlib.sha256(plain.encode()).hexdigest()
    assert data["cost"]["epsilon"] == "1/3"
    assert (ENTRY.version, BY_ADA.version) == (1, 5)  # as they are written from now on
    assert BY_ADA.hash == "778da6c8a18c2e6dea62cd19155fe95c68b9b598578552c83b85a16ae6e257a0"


NOT_WRITTEN = (
    "record",
    "unreadable",
    "resumed",
)  # the answer is in by its digest; others of a call


@pytest.mark.parametrize("name", [f.name for f in fields(Entry) if f.name not in NOT_WRITTEN])
def test_every_field_is_in_the_hash(name):
    entry = replace(ENTRY, kind="settled", reservation="r") if name == "reservation" else ENTRY
    if name == "neighbours":
        entry = replace(ENTRY, neighbours="add-remove of rows")
    if name in ("principal", "role", "limit", "used", "since"):
        entry = replace(BY_ADA, role="analyst")
    other_value: dict[str, Any] = {name: OTHER.get(name, "another")}
    other = replace(entry, **other_value)
    assert other.hash != entry.hash
    if name not in OTHER and name not in ("when", "previous"):
        missing: dict[str, Any] = {name: None}
        assert replace(entry, **missing).hash != entry.hash


def spoiled(entry: Entry = ENTRY, **changes: object) -> str:
    return canonical_json({**json.loads(entry.text), **changes})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{",
        "[" * 100_000,
        ENTRY.text + " ",
        ENTRY.text.replace('"ada"', '"\\u0061da"'),
        ENTRY.text.replace('"1/3"', '"2/6"'),
        spoiled(format="lastbit ledger 2"),
        spoiled(kind="refund"),
        spoiled(sequence=True),
        spoiled(sequence="7"),
        spoiled(when=3),
        spoiled(who=3),
        spoiled(more=1),
        spoiled(cost={"epsilon": "-1", "delta": "0", "rho": "0"}),
        spoiled(cost={"epsilon": "1e999999999", "delta": "0", "rho": "0"}),
        spoiled(cost={"epsilon": "1/0", "delta": "0", "rho": "0"}),
        spoiled(cost={"epsilon": 1, "delta": "0", "rho": "0"}),
        spoiled(cost={"epsilon": "1", "delta": "0", "rho": "1"}),
        spoiled(cost=[]),
        spoiled(budget={"kind": "none", "epsilon": "1", "delta": "0", "rho": "0"}),
        spoiled(budget={"kind": "pure"}),
        spoiled(kind="principal"),
        spoiled(kind="allowance"),
        spoiled(principal="ada"),
        spoiled(BY_ADA, principal=None),
        spoiled(BY_ADA, principal=3),
        spoiled(BY_ADA, kind="note"),
        spoiled(BY_ADA, kind="principal", role="analyst"),
        spoiled(BY_ADA, role="analyst"),
        spoiled(BY_ADA, role="king"),
        spoiled(BY_ADA, limit=None),
        spoiled(BY_ADA, used=None),
        spoiled(BY_ADA, since=None),
        spoiled(BY_ADA, since="2026-1-1"),
        spoiled(BY_ADA, limit={"epsilon": "1", "delta": None, "rho": None, "period": None}),
        spoiled(BY_ADA, limit={"epsilon": "1", "delta": None, "rho": None, "period": "hour"}),
        spoiled(BY_ADA, limit={"epsilon": None, "delta": None, "rho": None, "period": "day"}),
        spoiled(BY_ADA, limit={"epsilon": "2/2", "delta": None, "rho": None, "period": "day"}),
        spoiled(BY_ADA, limit={"epsilon": "1", "rho": None, "period": "day"}),
        spoiled(BY_ADA, limit=[]),
        spoiled(BY_ADA, used={"epsilon": "1", "delta": "0"}),
        spoiled(BY_ADA, used={"epsilon": "1", "delta": "0", "rho": "-1"}),
    ],
)
def test_any_other_text_is_refused(text):
    with pytest.raises(Malformed):
        Entry.read(text)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, object(), {"a": b"x"}])
def test_what_is_no_plain_json_is_refused_without_being_quoted(value):
    with pytest.raises(WrongType, match="record is not plain JSON; pass") as caught:
        canonical_json({"rows": [value]})
    assert caught.value.__cause__ is None


def test_the_record_is_told_where_it_is_and_hidden_from_repr():
    entry = ENTRY.with_record({"rows": ["canary"], "entry": None})
    assert entry.record == {"rows": ["canary"], "entry": {"hash": ENTRY.hash, "sequence": 7}}
    assert "canary" not in repr(entry)
    assert entry.hash == ENTRY.hash
