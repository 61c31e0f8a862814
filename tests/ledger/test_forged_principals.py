"""Chains in which a principal does what it may not: seen by verify, refused by a server."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import pytest

from lastbit.addresses import Address
from lastbit.canonical import canonical_json
from lastbit.errors import BudgetExceeded, InvalidParameter
from lastbit.ledger.chain import StoredEntry
from lastbit.ledger.entry import FIRST, Entry
from lastbit.ledger.examination import chain_problems
from lastbit.ledger.ledger import Ledger
from lastbit.ledger.limits import Limit, Total
from tests.engines import servers
from tests.ledger.books import clock_shows, everything, person, price, record
from tests.ledger.test_principals import MONTHLY, TEN, asked, team

HALF = price("1/2")
MAY, JUNE = "2024-05-01", "2024-06-01"
LESS = replace(MONTHLY, epsilon=Fraction(3, 4))
NONE: dict[str, Any] = {"limit": None, "used": None, "since": None}


@pytest.fixture
def chain(tmp_path, monkeypatch) -> list[Entry]:
    """Opened, budget, ada, ben, eve, allowance; ben 1/2, ben 1/2, ada 1/2 in May; ben 1 in June."""
    clock_shows(monkeypatch, "2024-05-15")
    ledger = team(Ledger.open(tmp_path / "a"), MONTHLY)
    first = asked(ledger, cost=HALF)
    asked(ledger, cost=HALF)
    asked(ledger, cost=HALF, principal="ada")
    clock_shows(monkeypatch, JUNE)
    asked(ledger, cost=price(1))
    ledger.settle(first, record("q"))
    found = [ledger.entry(entry.sequence) for entry in ledger.entries()]
    assert problems(found) == []
    return found


def problems(entries: list[Entry]) -> list[str]:
    """Of a chain whose numbers, links and hashes are all right."""
    rows, previous = [], FIRST
    hashes: dict[str | None, str] = {}
    for number, entry in enumerate(entries, start=1):
        paid = hashes.get(entry.reservation, entry.reservation)
        new = replace(entry, sequence=number, previous=previous, reservation=paid)
        text = None
        if entry.record is not None:
            told = {**entry.record, "entry": None}
            text = canonical_json(told)
        rows.append(StoredEntry(number, new.account, new.question, new.text, new.hash, text))
        hashes[entry.hash], previous = new.hash, new.hash
    return list(chain_problems(rows, secret=entries[0].secret or "", last=len(rows)))


@pytest.mark.parametrize(
    ("number", "changes", "words"),
    [
        # charges in a name that may not
        (7, {"principal": None, **NONE}, "charges in the name of no principal"),
        (7, {"principal": "eve", **NONE}, "is more than eve may do"),
        (7, {"principal": "zoe", **NONE}, "is more than zoe may do"),
        (7, {"principal": "eve"}, "is more than eve may do"),
        (7, NONE, "states a limit, or what is used of it, wrongly"),
        (9, {"principal": "ben", **NONE}, "states a limit, or what is used of it, wrongly"),
        (9, {"limit": MONTHLY, "used": Total(), "since": MAY}, "states a limit"),
        (7, {"when": "yesterday"}, "does not say when it was written"),
        (7, {"when": "2024-13-01T12:00:00.000+00:00"}, "does not say when it was written"),
        # what is used
        (7, {"used": Total()}, "states a limit, or what is used of it, wrongly"),
        (8, {"used": Total(epsilon=Fraction(1, 2))}, "states a limit, or what is used"),
        (8, {"used": Total(epsilon=1 - Fraction(1, 10**40))}, "states a limit, or what is used"),
        (7, {"limit": replace(MONTHLY, epsilon=Fraction(2))}, "states a limit"),
        (7, {"limit": Limit(epsilon=Fraction(1)), "since": None}, "states a limit"),
        (6, {"limit": replace(MONTHLY, epsilon=Fraction(3, 4))}, "entry 7 states a limit"),
        (6, {"limit": Limit(rho=Fraction(1), period="month")}, "entry 7 is more than ben may do"),
        # refreshed too early, too late, or for longer
        (8, {"since": JUNE, "used": Total(epsilon=Fraction(1, 2))}, "states a limit"),
        (10, {"since": MAY, "used": Total(epsilon=Fraction(2))}, "states a limit"),
        (10, {"since": "2024-07-01"}, "states a limit"),
        (10, {"when": "2024-05-31T12:00:00.000+00:00"}, "entry 10 is more than ben may do"),
        # roles and allowances by those who may not
        (3, {"role": "analyst"}, "entry 3 gives a role that may not be given"),
        (3, {"role": None}, "entry 3 gives a role that may not be given"),
        (4, {"who": "root"}, "entry 4 gives a role that may not be given, or not by them"),
        (5, {"who": "ben"}, "entry 5 gives a role that may not be given, or not by them"),
        (5, {"who": None}, "entry 5 gives a role that may not be given, or not by them"),
        (5, {"principal": "ada"}, "entry 5 gives a role that may not be given"),
        (6, {"who": "ben"}, "entry 6 is more than ben may do"),
        (6, {"principal": "eve"}, "entry 6 is more than ada may do"),
        (6, {"used": Total(epsilon=Fraction(1, 4))}, "entry 6 states a limit"),
        (6, {"since": JUNE}, "entry 6 states a limit"),
        (6, {"account": None, "spent": None, "budget": None}, "entry 6 has no account"),
    ],
)
def test_a_changed_entry_is_seen(chain, number, changes, words):
    chain[number - 1] = replace(chain[number - 1], **changes)
    assert words in " | ".join(problems(chain))


def inserted(place: int, *entries: Callable[[list[Entry]], Entry]) -> Callable:
    return lambda chain: chain[:place] + [make(chain) for make in entries] + chain[place:]


def role(name: str, given: Any, who: str) -> Callable[[list[Entry]], Entry]:
    return lambda chain: replace(chain[3], principal=name, role=given, who=who)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda chain: chain[:3] + chain[4:], "is more than"),  # ben is nobody
        (lambda chain: chain[:5] + chain[6:], "is more than ben may do"),  # and has no allowance
        (lambda chain: [*chain[:2], chain[6], *chain[2:6]], "is more than ben may do"),
        (inserted(7, role("ben", "auditor", "ada")), "entry 9 is more than ben may do"),
        (inserted(7, role("ben", None, "ada")), "entry 9 is more than ben may do"),
        # a role ends the allowance, whatever the next charge says
        (
            inserted(7, role("ben", "steward", "ada"), role("ben", "analyst", "ada")),
            "entry 10 is more than ben may do",
        ),
        (inserted(9, role("ben", "steward", "ben")), "gives a role that may not be given"),
        (inserted(9, role("ada", None, "ada")), "gives a role that may not be given"),
        (inserted(9, role("zoe", None, "ada")), "gives a role that may not be given"),
        # overspent, all stated as it is
        (
            lambda chain: [replace(e, limit=e.limit and LESS) for e in chain],
            "entry 8 is more than ben may do",
        ),
        # what was used in May is forgotten by setting the allowance again
        (inserted(7, lambda chain: replace(chain[5], spent=chain[6].spent)), "entry 8 states"),
        (
            inserted(6, lambda chain: replace(chain[5], **NONE)),  # taken away
            "entry 8 is more than ben may do",
        ),
    ],
)
def test_a_changed_order_is_seen(chain, change, words):
    assert words in " | ".join(problems(change(chain)))


# ---------------------------------------------------------------- on a server


psycopg = pytest.importorskip("psycopg", reason=servers.MISSING)
from tests.ledger.test_postgres import EMPTY, forged  # noqa: E402  it needs it

FUTURE = "2999-01-01T00:00:00.000+00:00"
FORGERIES: list[dict[str, Any]] = [
    dict(principal=None, **NONE),
    dict(principal="ada", **NONE),
    dict(principal="eve", **NONE),
    dict(principal="other"),
    dict(principal="nobody", **NONE),
    NONE,
    dict(used=Total(epsilon=Fraction(1, 4))),  # nothing is added
    dict(used=Total(epsilon=Fraction(1, 2) - Fraction(1, 10**40))),
    dict(used=Total()),
    dict(limit=replace(MONTHLY, epsilon=Fraction(9))),
    dict(limit=Limit(epsilon=Fraction(1)), since=None),
    dict(limit=None),
    dict(since="2027-01-01", used=Total(epsilon=Fraction(1, 4))),  # refreshed too early
    dict(since=None),
    dict(since="2026-01-01"),
    dict(when=FUTURE),
    dict(when=FUTURE, since="2999-01-01", used=Total(epsilon=Fraction(1, 4))),
    dict(when="2026-11-16 12:00:00"),
    dict(cost=price("7/8"), spent=price("9/8"), used=Total(epsilon=Fraction(9, 8))),
    dict(cost=price("1/4", "1e-9"), spent=price("1/2", "1e-9")),
    dict(role="steward"),
    dict(kind="principal", role="steward", account=None, question=None, cost=None, spent=None,
         budget=None, result=None, **NONE),
    dict(kind="allowance", question=None, cost=None, result=None, spent=price("1/4"),
         limit=replace(MONTHLY, epsilon=Fraction(9)), used=Total()),
]  # fmt: skip


@pytest.fixture
def shared(address):
    """Ada, eve, and two analysts, who are signed in under the names of their principals."""
    ledger = team(Ledger.init(address))
    analysts = [person(ledger, "analyst") for _ in range(2)]
    for one in analysts:
        ledger.set_principal(one.user, "analyst", by="ada")
        ledger.set_allowance("visits", one.user, MONTHLY, by="ada")
    return ledger, *analysts


def test_an_analyst_charges_in_the_own_name_alone(shared):
    ledger, one, other = shared
    assert isinstance(one.path, Address) and one.user != other.user
    asked(one, cost=HALF, principal=one.user)
    for name in (other.user, "ada"):
        with pytest.raises(InvalidParameter, match="lets you charge in your own name alone"):
            asked(one, cost=HALF, principal=name)
    steward = person(ledger, "steward")
    for name in (one.user, other.user, "ada"):  # as a service does
        asked(steward, cost=price("1/4"), principal=name)
    for work in (
        lambda: one.set_principal("zoe", "analyst", by="ada"),
        lambda: one.set_allowance("visits", one.user, None, by="ada"),
        lambda: one.fail(one.unanswered("visits")[0], words="no"),
    ):
        with pytest.raises(InvalidParameter, match="does not give you the right"):
            work()
    with pytest.raises(BudgetExceeded):
        asked(one, cost=HALF, principal=one.user)
    assert steward.fail(one.unanswered("visits")[0], words="no answer").kind == "voided"
    assert ledger.problems() == []


def test_a_server_refuses_what_a_principal_may_not(shared):
    ledger, one, other = shared
    first = asked(one, cost=price("1/4"), principal=one.user)
    like = replace(
        first, kind="charge", result=EMPTY, question="never", spent=price("1/2"),
        used=Total(epsilon=Fraction(1, 2)),
    )  # fmt: skip
    before = everything(ledger)
    for fields in FORGERIES:
        given = {key: other.user if value == "other" else value for key, value in fields.items()}
        with pytest.raises(psycopg.Error):
            forged(ledger, one.path, like=like, **given)
        assert everything(ledger) == before, fields
    forged(ledger, one.path, like=like)  # and what follows the rules is taken
    assert ledger.spent("visits") == price("1/2") and ledger.problems() == []
    ledger.set_principal(one.user, None, by="ada")
    more = replace(like, spent=price("3/4"), used=Total(epsilon=Fraction(3, 4)))
    for fields in ({}, NONE):
        with pytest.raises(psycopg.Error):
            forged(ledger, one.path, like=more, **fields)
    ledger.set_principal(one.user, "analyst", by="ada")
    with pytest.raises(psycopg.Error):  # the allowance ended with the role
        forged(ledger, one.path, like=more)
    assert ledger.problems() == []


def test_a_server_without_principals_refuses_a_charge_that_names_one(address):
    ledger = Ledger.init(address)
    ledger.account("visits", TEN)
    analyst = person(ledger, "analyst")
    first = asked(analyst, cost=HALF)
    like = replace(first, kind="charge", result=EMPTY, question="never", spent=price(1))
    limited = dict(limit=MONTHLY, used=Total(epsilon=Fraction(1, 2)), since="2026-11-01")
    for fields in (NONE, limited):
        with pytest.raises(psycopg.Error):
            forged(ledger, analyst.path, like=like, principal=analyst.user, **fields)
    forged(ledger, analyst.path, like=like)
    assert ledger.problems() == []


ALLOWANCE: dict[str, Any] = dict(
    kind="allowance", account="visits", spent=price(0), budget=TEN, used=Total(),
    limit=Limit(epsilon=TEN.epsilon),
)  # fmt: skip


@pytest.mark.parametrize(
    "fields",
    [
        dict(ALLOWANCE, principal="ben", who="eve"),
        dict(ALLOWANCE, principal="ben", who=None),
        dict(ALLOWANCE, principal="eve", who="ada"),
        dict(ALLOWANCE, principal="zoe", who="ada"),
        dict(ALLOWANCE, principal="ben", who="ada", spent=price(1)),
        dict(ALLOWANCE, principal="ben", who="ada", used=None),
        dict(kind="principal", principal="zoe", role="steward", who="eve"),
        dict(kind="principal", principal="zoe", role="steward", who=None),
        dict(kind="principal", principal="zoe", role="steward", who="ada", words="x", **NONE,
             account="visits"),
        dict(kind="principal", principal=None, role=None, who="ada"),
        dict(kind="note", principal="zoe", role=None, who="ada"),
    ],
)  # fmt: skip
def test_a_server_refuses_decisions_in_the_name_of_others(shared, fields):
    ledger, *_ = shared
    like = Entry(kind="note", when=datetime.now(UTC).isoformat(timespec="milliseconds"))
    before = everything(ledger)
    path = person(ledger, "steward").path
    with pytest.raises(psycopg.Error):
        forged(ledger, path, like=like, by="decide", **fields)
    assert everything(ledger) == before
    right = dict(kind="principal", principal="zoe", role="auditor", who="ada")
    forged(ledger, path, like=like, by="decide", **right)
    forged(ledger, path, like=like, by="decide", **dict(ALLOWANCE, principal="ben", who="ada"))
    assert (
        ledger.allowances("visits", "ben")
        and ledger.principal("zoe") is not None
        and ledger.problems() == []
    )
