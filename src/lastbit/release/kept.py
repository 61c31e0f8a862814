"""Buying the share of rows that an answer counts, beside the answer.

Where the ledger has a profile of the data, whole intervals come with an answer (`whole.py`). `kept`
buys the histogram of the very rows that the question looks at: its WHERE, joins and declared keys.

Theorem  it is an ordinary question (`profile.py`): one unit counts once, whatever max_rows is. It
         is planned, charged, recorded and certified by itself; prices of the two answers add up.
         What is shown afterwards is a function of two recorded answers, and free
Checked  tests/release/test_tuning.py
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from lastbit.errors import BudgetExceeded
from lastbit.exact import Number, positive
from lastbit.ledger import Ledger
from lastbit.release.answer import Answer
from lastbit.release.paying import opened_ledger
from lastbit.release.profile import Values, rows_query, rows_question
from lastbit.release.release import released
from lastbit.release.whole import profile_of, with_whole
from lastbit.report import price as price_words
from lastbit.tables import DataCard, Plan, Query, planned

PART = Fraction(1, 20)
"""What `kept=True` pays besides, as a part of the price of the answer."""


def with_kept(
    answer: Answer,
    plan: Plan,
    *,
    kept: bool | Number = False,
    ledger: str | os.PathLike[str] | Ledger | None = None,
    who: str | None = None,
) -> Answer:
    """The answer with whole intervals by its own rows, where their histogram is paid for.

    `kept` is the price besides, in the currency of the answer; True is a twentieth of its price.
    One that is recorded already is in the answer, at no charge.
    """
    check_kept(kept, plan.query, plan.card)
    seen = answer.record if answer.shown is None else answer.shown
    known = seen.get("whole", {}).get("profile")
    if kept is False or "whole" not in seen or (known is not None and known["of"] == "question"):
        return answer
    asked = rows_question(plan.card, plan.query)
    currency = "rho" if answer.cost.rho else "epsilon"
    price = getattr(answer.cost, currency) * PART if kept is True else positive(kept, "kept")
    paid: dict[str, Any] = {currency: price}
    try:
        plan_of_rows = planned(asked.query, asked.card, **paid)
        counts = released(asked.query, asked.card, plan_of_rows, ledger=ledger, who=who)
    except BudgetExceeded:
        words = "lastbit did not estimate the share of rows counted: the budget does not allow it."
        return with_notes(answer, [words])
    # what chosen bounds clamp is said by the histograms of values that they were chosen by
    profile = replace(asked.profile(counts), values=_values_on_record(answer, plan, ledger))
    rows, whole = with_whole(plan, seen["columns"], seen["rows"], profile)
    cost = price_words(counts.record["cost"])
    words = f"For {cost} more, lastbit also estimated the share of rows counted."
    noted = with_notes(answer, [words])
    return replace(noted, shown={**(noted.shown or {}), "rows": rows, "whole": whole})


def _values_on_record(
    answer: Answer, plan: Plan, ledger: str | os.PathLike[str] | Ledger | None
) -> Mapping[str, Values]:
    books, entry = opened_ledger(ledger, plan.card), answer.record.get("entry")
    if books is None or entry is None:
        return {}
    known = profile_of(plan, books=books, data=books.entry(entry["sequence"]).fingerprint)
    return {} if known is None else known.values


def check_kept(kept: bool | Number, query: Query, card: DataCard) -> None:
    """Refuse, before anything is paid, what could not be asked."""
    if kept is not False:
        rows_query(query, card)
        if kept is not True:
            positive(kept, "kept")


def with_notes(answer: Answer, words: Sequence[str]) -> Answer:
    """The answer with further notes beside it, which are on no record."""
    seen = answer.record if answer.shown is None else answer.shown
    return replace(answer, shown={**seen, "notes": [*seen["notes"], *words]}) if words else answer
