"""The share of rows that an answer counts: the question for it, and its words beside the answer.

The ± of an answer is about noise. What max_rows leaves out is bias, and no ± shows it. The share of
rows that count is read off one more answer, the histogram of rows per unit (`rows_per_unit.py`).

Law      the question: for each unit the number of its rows that the answer looks at (its WHERE, its
         joins, its declared keys), one row for a unit; and how many units are in each bin
Theorem  it is an ordinary question about a sub-query grouped by the unit alone (`query/units.py`):
         one unit counts once, whatever max_rows is. It is planned, charged, recorded and certified
         as any answer, by itself; prices of the two answers add up
Theorem  what stands beside an answer is a function of two recorded answers, and free. A recorded
         histogram is taken only if it is of the same data (the ledger's fingerprint), the same unit
         and the same types of columns
Checked  tests/release/test_tuning.py
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from lastbit.errors import BudgetExceeded
from lastbit.exact import Number, positive
from lastbit.ledger import Ledger
from lastbit.release.answer import Answer
from lastbit.release.profile import profile_beside, rows_query
from lastbit.release.release import released
from lastbit.release.rows_per_unit import RowsPerUnit, Share
from lastbit.report import price as price_words
from lastbit.tables import DataCard, Query, planned

PART = Fraction(1, 20)
"""What `kept=True` pays besides, as a part of the price of the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Which share of the rows an answer counts, and where that is known from.

    >>> import duckdb
    >>> import lastbit as lb
    >>> visits = duckdb.sql("SELECT range // 5 AS patient FROM range(50_000)")
    >>> question = lb.table(visits, unit="patient", max_rows=2).agg(n=lb.count())
    >>> question.release(epsilon=1, kept=True).kept.share.low < 0.9
    True
    """

    share: Share
    limit: int
    """The share is of all rows, if nobody has as many."""
    beyond: int
    """At most this number of units have as many rows or more."""
    answer: Answer
    """The answer that it is read off, with its own price and certificate."""
    whole: bool = False
    """Whether it is of all rows of the table, where the answer is about some of them."""

    @property
    def words(self) -> str:
        """What to say beside the answer."""
        of = "the rows of the whole table" if self.whole else "the rows asked about"
        said = f"With this max_rows {self.share.at_least} of {of} count"
        said += f", unless somebody has more than {self.limit - 1:,} rows" if self.beyond else ""
        paid = price_words(self.answer.record["cost"])
        how = f"paid besides: {paid}" if self.answer.charged else "recorded earlier, no charge"
        return f"{said}. The noise ± does not hold the rest ({how})."


def with_kept(
    answer: Answer,
    query: Query,
    card: DataCard,
    *,
    kept: bool | Number = False,
    ledger: str | os.PathLike[str] | Ledger | None = None,
    who: str | None = None,
) -> Answer:
    """The answer with the share of rows that it counts, where that is recorded or paid for.

    `kept` is the price besides, in the currency of the answer; True is a twentieth of its price. A
    histogram of the same rows that is recorded already is taken instead, at no charge.
    """
    check_kept(kept, query, card)
    if card.unit is None or query.per_unit is not None:
        return answer
    share = None
    profile = profile_beside(answer, query, card, ledger)
    if profile is not None and profile.rows_answer is not None:
        share = kept_of(profile.rows_answer, card.max_rows, card.at_most, whole=profile.whole_table)
    if kept is not False and (share is None or share.whole):
        asked = rows_query(query, card)
        currency = "rho" if answer.cost.rho else "epsilon"
        price = getattr(answer.cost, currency) * PART if kept is True else positive(kept, "kept")
        paid: dict[str, Any] = {currency: price}
        try:
            counts = released(asked, card, planned(asked, card, **paid), ledger=ledger, who=who)
        except BudgetExceeded:
            words = "The share of rows that count was not bought: the budget does not allow it."
            return _with_note(answer, words)
        share = kept_of(counts, card.max_rows, card.at_most)
    return answer if share is None else replace(_with_note(answer, share.words), kept=share)


def check_kept(kept: bool | Number, query: Query, card: DataCard) -> None:
    """Refuse, before anything is paid, what could not be asked."""
    if kept is not False:
        rows_query(query, card)
        if kept is not True:
            positive(kept, "kept")


def _with_note(answer: Answer, words: str) -> Answer:
    noted = with_notes(answer, [words])
    # "kept" tells the report that the share is known; it is on no record
    return replace(noted, shown={**(noted.shown or {}), "kept": words})


def with_notes(answer: Answer, words: Sequence[str]) -> Answer:
    """The answer with further notes beside it, which are on no record."""
    seen = answer.record if answer.shown is None else answer.shown
    return replace(answer, shown={**seen, "notes": [*seen["notes"], *words]}) if words else answer


def kept_of(
    answer: Answer, max_rows: int, at_most: int | None = None, *, whole: bool = False
) -> Kept:
    """The share that this max_rows keeps, by an answer to `rows_query`."""
    rows = RowsPerUnit.of(answer.record, at_most)
    return Kept(
        share=rows.share(max_rows),
        limit=rows.limit,
        beyond=rows.beyond,
        answer=answer,
        whole=whole,
    )
