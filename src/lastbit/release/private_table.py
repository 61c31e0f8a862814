"""A table whose rows are here: its questions are planned, paid and answered by this program."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

from lastbit.errors import InvalidParameter, QueryRefused, WrongType
from lastbit.exact import Number
from lastbit.ledger import Ledger
from lastbit.release.answer import Answer
from lastbit.release.kept import check_kept, with_kept
from lastbit.release.marginals import MarginalsQuestion
from lastbit.release.question import Question, texts_by_name
from lastbit.release.release import released
from lastbit.release.simultaneous import check_simultaneous
from lastbit.release.within import Within, explanation_within, planned_within
from lastbit.tables import Plan, PrivateTable, SelectedRows, all_of, marginals_query


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Table(Question):
    """A table with its card, and what has been asked of it so far. Every step gives a new one.

    `where`, `with_columns`, `join`, `per_unit`, `group_by` and `agg` build the question; `having`,
    `order_by` and `limit` work on what is released; `sql` asks all at once. `explain` says what an
    answer would cost and how far off it would be, before anything is read; `release` gives it.
    Expressions are SQL text.

    >>> import duckdb
    >>> import lastbit as lb
    >>> rows = duckdb.sql("SELECT range // 5 AS patient, 120.5 AS cost FROM range(5_000)")
    >>> visits = lb.table(rows, unit="patient", max_rows=5, name="visits")
    >>> answer = visits.where("cost > 100").agg(paid=lb.sum("cost", 0, 500)).release(epsilon=1)
    >>> 500_000 < answer.value < 700_000
    True
    """

    def join(
        self, public: str | Table, *, on: str | Iterable[str] | Mapping[str, str] | None = None
    ) -> Self:
        """The rows joined with another table where these columns are equal: {ours: theirs}.

        Another table is a public or private one of the card, by its name, or a table of the same
        units: then the units must be equal, which is what `on` means where it is left out.
        """
        if not isinstance(public, Table):
            return Question.join(self, public, on=on)
        self._check_open("join")
        known = replace(self, rows=_with_private(self.rows, as_private(public)))
        return Question.join(known, public.card.name, on=on)

    def marginals(
        self,
        columns: Iterable[str] | Mapping[str, str],
        *,
        up_to: int = 2,
        pairs: int | None = None,
    ) -> MarginalsQuestion:
        """All tables of one and of two of these columns, at one price.

        A mapping gives expressions by name. Keys must be declared or public; numbers go into bins:
        {"sex": "sex", "age": "bin(age, 0, 18, 65, 99)"}. `pairs` is how many two-way tables there
        are to be; if there are more, those are chosen privately, as part of the price.
        """
        self._check_open("marginals")
        if self.keys or self.asked or self.rows.per_unit is not None:
            raise QueryRefused(
                "marginals", problem="comes after group_by or agg", remedy="ask for tables alone"
            )
        names = [columns] if isinstance(columns, str) else columns
        listed = list(names) if isinstance(names, Iterable) else [None]
        texts = [*listed, *(names.values() if isinstance(names, Mapping) else ())]
        if not all(isinstance(text, str) for text in texts):
            raise WrongType("marginals", problem="are not of names", remedy='pass ["age", "sex"]')
        if len(set(listed)) < len(listed):
            raise QueryRefused("marginals", problem="have one column twice", remedy="name it once")
        asked = self.group_by(**texts_by_name(names))
        query = marginals_query(
            asked.card, asked.keys, where=all_of(asked.rows.where), joins=asked.rows.joins
        )
        return MarginalsQuestion(query=query, card=asked.card, up_to=up_to, pairs=pairs)

    def plan(self, *, within: Within | None = None, **price: Any) -> Plan:
        """The mechanisms and the price, by what `explain` takes; nothing is read."""
        return planned_within(self.query, self.card, within, **price)

    def explain(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        weights: Mapping[str, Number] | Literal["balanced"] | None = None,
        within: Within | None = None,
    ) -> str:
        """What the answer would cost, how it would be made and how far off; nothing is read.

        With `within`, at the least price for which the ± of counts and sums is at most that. Below
        stands what other prices buy.
        """
        price = {"epsilon": epsilon, "delta": delta, "rho": rho, "weights": weights}
        return explanation_within(self.query, self.card, within, price)

    def release(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        weights: Mapping[str, Number] | Literal["balanced"] | None = None,
        within: Within | None = None,
        ledger: str | Path | Ledger | None = None,
        who: str | None = None,
        fresh: bool = False,
        consistent: bool = False,
        kept: bool | Number = False,
        simultaneous: bool = False,
    ) -> Answer:
        """The private answer; epsilon is the price of the whole job, and is paid exactly once.

        Instead of a price, `within` says how large the ± of counts and sums may be (one number, or
        by column): the least price that buys it is paid. `explain` shows it beforehand.
        `ledger` is where the price is written; the card's holds if none is given. The same question
        to the same data gives the recorded answer at no charge, unless `fresh`.
        `kept` buys, as a second recorded answer, the share of rows that max_rows lets count: at
        this price besides, or with True at a twentieth of the price. It stands in the notes and in
        `answer.kept`; where the ledger has it already it does so unasked, at no charge.
        With `simultaneous` the intervals of all counts and sums hold together in 95 %.
        """
        query = self.query
        check_kept(kept, query, self.card)
        if simultaneous:
            check_simultaneous(query)
        asked: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "rho": rho, "weights": weights}
        plan = planned_within(query, self.card, within, **asked)
        answer = released(
            query,
            self.card,
            plan,
            ledger=ledger,
            who=who,
            sql=self.sql_text,
            fresh=fresh,
        )
        answer = answer.simultaneous() if simultaneous else answer
        answer = answer.consistent() if consistent else answer
        return with_kept(answer, query, self.card, kept=kept, ledger=ledger, who=who)


def as_private(other: Table) -> PrivateTable:
    """Another table of the same units, to be joined; it must have no account of its own."""
    if not isinstance(other, Table):
        raise WrongType("private", problem="is not a table", remedy="pass lb.table(...)")
    card = other.card
    if not other.is_new:
        problem = "is asked something already"
        remedy = "join the table as it is, and filter afterwards"
        raise InvalidParameter(f"join {card.name}", problem=problem, remedy=remedy)
    if card.unit is None:
        problem = "has no unit: each of its rows is one"
        raise InvalidParameter(f"join {card.name}", problem=problem, remedy="pass unit=...")
    if card.budget is not None or card.ledger is not None or card.users is not None:
        problem = "has a budget, a ledger or users of its own, which this answer would pass by"
        remedy = "declare it under [private] on the card of the table"
        raise InvalidParameter(f"join {card.name}", problem=problem, remedy=remedy)
    return PrivateTable(
        name=card.name,
        source=card.source,
        unit=card.unit,
        max_rows=card.max_rows,
        columns=card.columns,
    )


def _with_private(rows: SelectedRows, table: PrivateTable) -> SelectedRows:
    known = rows.base.private.get(table.name)
    if known is None:
        base = replace(rows.base, private={**rows.base.private, table.name: table})
        return replace(rows, base=base)
    if known != table or known.source.frame is not table.source.frame:
        problem = "has the name of another private table"
        raise InvalidParameter(f"join {table.name}", problem=problem, remedy="pass name=...")
    return rows
