"""Records of a ledger, before anybody takes one for an answer: the one place that looks.

A record was written by whoever was let to charge: by lastbit, or by somebody with SQL at hand. What
shows an answer again, lists it or counts with it asks here first, and here the independent checker
decides. What it accepts has the shape of an answer: every part that there is, of its type, and
sentences that follow from the plan. What it rejects is an unreadable entry, and is charged all the
same.

Theorem  of a record that `record_problem` accepts, table, query, plan, cost, guarantee, notes and
         columns are those of its certificate, and the numbers those of the digest in it
Proof    `checker/answer.py`
Differs  that the numbers were drawn, and not made up, no certificate proves: a record is the word
         of whom its entry names
Checked  tests/serve/test_hostile_entries.py; tests/release/test_believing.py
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lastbit.canonical import digest_of
from lastbit.checker import Rejected, check_apart_from_code
from lastbit.tables import MarginalsPlan, Plan


def record_problem(record: Mapping[str, Any]) -> str | None:
    """Why a record is no answer; None: it is one. Records that name code are none."""
    inner = record.get("certificate") if "rows" in record else None
    if not isinstance(inner, Mapping) or inner.get("kind") not in ("release", "marginals"):
        return "it has no certificate of an answer"
    try:
        check_apart_from_code(record)
    except Rejected as problem:
        return str(problem)
    return None


def is_answer_to(record: Mapping[str, Any], plan: Plan | MarginalsPlan, question: str) -> bool:
    """Whether a record is an answer to this question, by this card; not only filed as one."""
    card = plan.card
    if record_problem(record) is not None or record["question"] != question:
        return False
    claim = record["certificate"]["claim"]
    ours = {"table": card.name, "unit": card.unit, "neighbours": card.neighbours.relation}
    return (
        all(claim.get(part) == value for part, value in ours.items())
        and digest_of(record["asked"]["query"]) == plan.query.digest
    )
