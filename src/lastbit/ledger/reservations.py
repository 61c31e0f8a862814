"""Reservations: an answer is of the price and the plan that were paid for; a restore voids them.

A backup that was taken between a reservation and its answer holds the reservation open, though
somebody may have seen the answer. Resumed, it would be answered a second time, with other noise, at
no charge. So what is open in a backup is made void when the backup is put to use: the price stays
charged, and to ask again costs again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lastbit.canonical import digest_of
from lastbit.errors import WrongType
from lastbit.ledger.entry import Entry
from lastbit.ledger.scan import Scan
from lastbit.tables import Cost


def price_problem(record: Mapping[str, Any], cost: Cost | None, plan: str | None) -> str | None:
    """What an answer says of its price or plan and was not paid for; None if all fits.

    An answer need not name them: then there is nothing to compare.
    """
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


def check_price(record: Mapping[str, Any], cost: Cost | None, plan: str | None) -> None:
    """Refuse an answer of another price or plan than is paid for."""
    problem = price_problem(record, cost, plan)
    if problem is not None:
        raise WrongType("answer", problem=problem, remedy="pass the one that was reserved")


def voided(chain: Scan, *, who: str | None) -> Iterator[Entry]:
    """Drafts of the entries that make every open reservation void."""
    for paid in chain.open_reservations(None):
        assert paid.account is not None
        state = chain.account(paid.account)
        assert state is not None  # its reservation is there
        yield Entry(
            sequence=0,
            when="",
            kind="voided",
            account=paid.account,
            who=who,
            question=paid.question,
            spent=state.spent,
            budget=state.budget,
            reservation=paid.hash,
        )
