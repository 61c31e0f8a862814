"""A table whose rows are here: its questions are planned, paid and answered by this program."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

from lastbit.arguments import check_flags, listed
from lastbit.errors import InvalidParameter, QueryRefused, WrongType
from lastbit.exact import Number
from lastbit.ledger import Ledger
from lastbit.release.answer import Answer
from lastbit.release.choosing import buy_profile, prepare_plan, prepare_release
from lastbit.release.kept import check_kept, with_kept, with_notes
from lastbit.release.levels import (
    TOTAL,
    Invariants,
    LevelsQuestion,
    Parents,
    levels_question,
)
from lastbit.release.marginals import MarginalsQuestion
from lastbit.release.profile import (
    Profile,
    ProfileQuestion,
    groups_question,
    quoted_name,
    rows_question,
    values_question,
)
from lastbit.release.question import Names, Question, texts_by_name
from lastbit.release.release import released
from lastbit.release.simultaneous import check_simultaneous
from lastbit.release.within import Within, explanation_of
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

    def join(self, public: str | Table, *, on: Names | None = None) -> Self:
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
        *columns: Names,
        up_to: int = 2,
        pairs: int | None = None,
        **named: str,
    ) -> MarginalsQuestion:
        """All tables of one and of two of these columns, at one price.

        Columns and expressions by name as in `group_by`. Keys must be declared or public; numbers
        go into bins: {"sex": "sex", "age": "bin(age, 0, 18, 65, 99)"}. `pairs` is how many two-way
        tables there are to be; if there are more, those are chosen privately, as part of the price.
        """
        self._check_open("marginals")
        if self.keys or self.asked or self.rows.per_unit is not None:
            raise QueryRefused(
                "marginals", problem="comes after group_by or agg", remedy="ask for tables alone"
            )
        pairs_named = texts_by_name("marginals", *columns, **named)
        texts = dict(pairs_named)
        if len(texts) < len(pairs_named):
            raise QueryRefused("marginals", problem="have one column twice", remedy="name it once")
        asked = self.group_by(texts)
        query = marginals_query(
            asked.card, asked.keys, where=all_of(asked.rows.where), joins=asked.rows.joins
        )
        return MarginalsQuestion(query=query, card=asked.card, up_to=up_to, pairs=pairs)

    def levels(
        self,
        *levels: str,
        public: str | None = None,
        parents: Parents | None = None,
        on: Names | None = None,
        total: str = TOTAL,
        invariants: Invariants | None = None,
    ) -> LevelsQuestion:
        """Counts of the whole and of each level below it, from the top, that add up.

        A level is a column. `public` is a public table of the card that says which region each
        district is in; it has one row for each district, and `on` what it calls it: {"district":
        "code"}. Or `parents` says it: {"district": {"mitte": "berlin"}}. Levels that are in
        neither have declared keys, and divide each number of the level above. lastbit leaves out
        rows without a key, on every level. `invariants` are numbers that the steward gives as
        exact, outside of the promise: {"region": {"berlin": 3_700_000}}.
        """
        self._check_open("levels")
        if self.keys or self.asked or self.rows.per_unit is not None:
            problem, remedy = "comes after group_by, per_unit or agg", "ask for levels alone"
            raise QueryRefused("levels", problem=problem, remedy=remedy)
        return levels_question(
            self,
            levels,
            public=public,
            parents=parents,
            on=on,
            total=total,
            invariants=invariants,
        )

    def profile(
        self,
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        columns: Iterable[str] = (),
        keys: Iterable[Iterable[str]] = (),
        ledger: str | Path | Ledger | None = None,
        who: str | None = None,
        fresh: bool = False,
    ) -> Profile:
        """How many rows and groups units have, and how large values are; by it limits are chosen.

        `columns` are those whose values are looked at, `keys` lists of keys to group by:
        [["region"], ["region", "year"]]. The price is shared out equally among the histograms,
        each a recorded answer. What the ledger has of these data is free, unless `fresh`.

        >>> import duckdb
        >>> import lastbit as lb
        >>> rows = duckdb.sql("SELECT range // 5 AS patient FROM range(50_000)")
        >>> lb.table(rows, unit="patient").profile(epsilon=1).rows.share(5).low > 0.9
        True
        """
        check_flags(fresh=fresh)
        return buy_profile(
            self.profile_questions(columns, keys),
            self.card,
            {"epsilon": epsilon, "rho": rho},
            ledger=ledger,
            who=who,
            fresh=fresh,
        )

    def profile_questions(
        self, columns: Iterable[str] = (), keys: Iterable[Iterable[str]] = ()
    ) -> list[ProfileQuestion]:
        """The histograms that `profile` asks for."""
        if not self.is_new:
            problem, remedy = "is asked something already", "call profile on the table itself"
            raise InvalidParameter("table", problem=problem, remedy=remedy)
        card, questions = self.card, [rows_question(self.card)] if self.card.unit else []
        remedy = 'pass [["region"], ["region", "year"]]'
        for texts in listed(keys, "keys", remedy=remedy):
            grouped = self.group_by(*listed(texts, "keys", remedy=remedy))
            if card.unit is None or not grouped.keys:
                problem = "are none" if card.unit else "have no meaning where each row is a unit"
                raise InvalidParameter("keys", problem=problem, remedy="leave it out")
            found = tuple(key.expression for key in grouped.keys)
            questions.append(groups_question(grouped.card, found))
        for column in listed(columns, "columns", remedy='pass ["cost"]'):
            asked = self._with_number_types(quoted_name(column), aggregated=True)
            questions.append(values_question(asked.card, column))
        if not questions or len({one.query.digest for one in questions}) < len(questions):
            problem = "has one histogram twice" if questions else "has nothing to count"
            raise InvalidParameter("profile", problem=problem, remedy="name each column once")
        return questions

    def plan(
        self,
        *,
        within: Within | None = None,
        ledger: str | Path | Ledger | None = None,
        profile: Profile | None = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        weights: Mapping[str, Number] | Literal["balanced"] | None = None,
    ) -> Plan:
        """The mechanisms and the price, by what `explain` takes; nothing is read.

        Where limits are left out it is by a profile on record, or else by guesses that it states.
        """
        price = {"epsilon": epsilon, "delta": delta, "rho": rho, "weights": weights}
        return prepare_plan(self, price, within, ledger=ledger, profile=profile).plan

    def explain(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        weights: Mapping[str, Number] | Literal["balanced"] | None = None,
        within: Within | None = None,
        ledger: str | Path | Ledger | None = None,
        profile: Profile | None = None,
    ) -> str:
        """What the answer would cost, how it would be made and how far off; nothing is read.

        With `within`, at the least price for which the ± of counts and sums is at most that. Below
        stands what other prices buy.
        """
        price = {"epsilon": epsilon, "delta": delta, "rho": rho, "weights": weights}
        ready = prepare_plan(self, price, within, ledger=ledger, profile=profile)
        return explanation_of(ready.plan, ready.question.card, price)

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
        profile: Profile | None = None,
        simultaneous: bool = False,
    ) -> Answer:
        """The private answer; epsilon is the price of the whole job, and is paid exactly once.

        Instead of a price, `within` says how large the ± of counts and sums may be (one number, or
        by column): the least price that buys it is paid. `explain` shows it beforehand.
        `ledger` is where the price is written; the card's holds if none is given. The same question
        to the same data gives the recorded answer at no charge, unless `fresh`.
        Limits that are left out (max_rows, max_groups, bounds) are chosen by a profile: one that is
        handed over, or on record, or bought now, each histogram for a tenth of the price, as a
        recorded answer of its own.
        `kept` buys, as a second recorded answer, the share of rows that max_rows lets count: at
        this price besides, or with True at a twentieth of the price. Whole intervals rest on it
        then; where the ledger has a profile already they do so unasked, at no charge.
        With `simultaneous` the intervals of all counts and sums hold together in 95 % of releases.
        """
        check_flags(fresh=fresh, consistent=consistent, simultaneous=simultaneous)
        draft, view = self.draft.query, self.view
        check_kept(kept, draft, self.card)
        if simultaneous:
            check_simultaneous(draft)
        asked: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "rho": rho, "weights": weights}
        ready = prepare_release(
            self, asked, within, ledger=ledger, who=who, fresh=fresh, profile=profile
        )
        query, card = ready.plan.query, ready.question.card
        answer = released(
            query,
            card,
            ready.plan,
            ledger=ledger,
            who=who,
            sql=self.sql_text,
            fresh=fresh,
            profile=ready.profile,
        )
        answer = answer.simultaneous() if simultaneous else answer
        answer = answer.consistent() if consistent else answer
        shared = with_kept(answer, ready.plan, kept=kept, ledger=ledger, who=who)
        return replace(with_notes(shared, ready.notes), view=view)


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
    if card.through:
        problem = f"reaches its unit through {card.through[0].name[:60]}, and has no column of it"
        remedy = "ask about that table, and join others with it; or write the unit into its rows"
        raise InvalidParameter(f"join {card.name}", problem=problem, remedy=remedy)
    if card.max_rows_open:
        problem = "has no max_rows: how many rows of one unit are joined"
        raise InvalidParameter(f"join {card.name}", problem=problem, remedy="pass max_rows=20, say")
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
