"""The Python front end: a table, a question asked of it in steps or in SQL, and its answer."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from lastbit.errors import InvalidParameter, QueryRefused, WrongType
from lastbit.exact import Number, whole
from lastbit.ledger import Ledger
from lastbit.release.answer import Answer
from lastbit.release.kept import check_kept, with_kept
from lastbit.release.marginals import MarginalsQuestion
from lastbit.release.release import released
from lastbit.release.within import Within, planned_within, price_rows, price_words
from lastbit.tables import (
    AggregateSpec,
    ColumnName,
    DataCard,
    DerivedSpec,
    Expression,
    GroupKey,
    PairSpec,
    PerUnit,
    PrivateTable,
    Query,
    Released,
    SelectedRows,
    UnitColumn,
    UnitFunction,
    UnitKey,
    all_of,
    columns_asked,
    columns_in,
    condition_of,
    expression_of,
    grouped_by,
    joined_with,
    marginals_query,
    number_texts,
    numbers_in,
    numbers_in_statement,
    parsed,
    released_condition,
    rows_of,
    rows_per_unit,
    specs_of,
    unit_column,
    with_column,
)

_OF_ITS_ROWS = "use lb.count, count_distinct, sum, mean, min or max"
_OF_A_UNIT: Mapping[str, UnitFunction] = MappingProxyType(
    {
        "count": "count",
        "count_distinct": "count_distinct",
        "sum": "sum",
        "mean": "mean",
        "min": "min",
        "max": "max",
    }
)


def _check_key(expression: Expression, card: DataCard) -> None:
    """Refuse to group by a column of floats, and say how whole numbers among them are meant."""
    if isinstance(expression, ColumnName) and expression.table is None:
        column = card.column(expression.name)
        if column.type == "number":
            problem = "is of type number, and nearly every row would be a group of its own"
            remedy = f'declare columns={{"{column.name[:60]}": "integer"}} if it has whole numbers'
            remedy += " (others are rounded); else group by bin(x, 0, 10, 20)"
            raise QueryRefused(f"group_by {column.name[:60]}", problem=problem, remedy=remedy)


def _retyped(rows: SelectedRows, numbers: Collection[str]) -> SelectedRows:
    """The rows with these columns (small letters) as numbers, each value cast by itself."""
    card = rows.base
    columns = {
        name: replace(column, type="number") if name.lower() in numbers else column
        for name, column in rows.base.columns.items()
    }
    return replace(rows, base=replace(card, columns=columns))


def _used(rows: SelectedRows, keys: Iterable[GroupKey]) -> frozenset[str]:
    """Columns of the table that earlier steps read, in small letters."""
    parts = [*rows.where, *(key.expression for key in keys)]
    parts += [own for join in rows.joins for own, _ in join.on]
    parts += [e for name, e in rows.columns.items() if e != ColumnName(name)]
    columns = (column for part in parts for column in columns_in(part))
    return frozenset(column.name.lower() for column in columns if column.table is None)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Table:
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

    rows: SelectedRows
    keys: tuple[GroupKey, ...] = ()
    asked: tuple[tuple[str, AggregateSpec | DerivedSpec | PairSpec], ...] = ()
    filters: tuple[str, ...] = ()
    order: tuple[tuple[str, bool], ...] = ()
    most: int | None = None
    sql_text: str | None = None
    untyped: frozenset[str] = frozenset()
    """Columns of a CSV file whose type was not stated: text, or numbers where aggregated so."""

    def __repr__(self) -> str:
        """The table's name and what is asked; nothing of the data."""
        parts = [] if self.sql_text is None else [self.sql_text]
        inner = self.rows.per_unit
        if inner is not None:
            parts += ["where ..."] if inner.where is not None else []
            parts += [f"join {join.table}" for join in inner.joins]
            parts += [f"per {self.card.unit}: {', '.join(inner.names)}"]
        parts += ["where ..."] if self.rows.where else []
        parts += [f"join {join.table}" for join in self.rows.joins]
        parts += [f"by {key.name}" for key in self.keys]
        parts += [f"{name} = {wanted}" for name, wanted in self.asked]
        parts += [f"having {text}" for text in self.filters]
        parts += [f"order by {name}{' descending' if down else ''}" for name, down in self.order]
        parts += [] if self.most is None else [f"limit {self.most}"]
        return f"<Table {self.card.name}: {'; '.join(parts) or 'nothing asked yet'}>"

    @property
    def card(self) -> DataCard:
        """What is declared of the table."""
        return self.rows.base

    def where(self, condition: str) -> Table:
        """Only the rows for which the condition is true."""
        self._open("where")
        with self._typing(condition):
            test = condition_of(condition, self.rows)
        return replace(self, rows=replace(self.rows, where=(*self.rows.where, test)))

    def with_columns(self, **expressions: str) -> Table:
        """Further columns, each computed from its row; later ones may name earlier ones."""
        self._open("with_columns")
        rows = self.rows
        for name, text in expressions.items():
            with self._typing(text):
                rows = with_column(rows, name, expression_of(text, rows))
        return replace(self, rows=rows)

    def join(
        self, public: str | Table, *, on: str | Iterable[str] | Mapping[str, str] | None = None
    ) -> Table:
        """The rows joined with another table where these columns are equal: {ours: theirs}.

        Another table is a public or private one of the card, by its name, or a table of the same
        units: then the units must be equal, which is what `on` means where it is left out.
        """
        self._open("join")
        rows, name = self.rows, public
        if isinstance(public, Table):
            rows, name = _with_private(rows, as_private(public)), public.card.name
        if on is None and name in rows.base.private:
            on = {rows.base.unit or "": rows.base.private[str(name)].unit}
        names = [on] if isinstance(on, str) else on or []
        pairs = dict(names) if isinstance(names, Mapping) else {one: one for one in names}
        if not all(isinstance(one, str) for one in (name, *pairs, *pairs.values())):
            remedy = 'pass a table or its name, and on="region", say'
            raise QueryRefused("join", problem="is given no names", remedy=remedy)
        return replace(self, rows=joined_with(rows, str(name), pairs))

    def per_unit(
        self,
        *unnamed: object,
        by: str | Iterable[str] | Mapping[str, str] = (),
        **wanted: AggregateSpec,
    ) -> Table:
        """One row for each unit (and key in `by`): visits=lb.count(), total=lb.sum("cost").

        What follows is about these rows, which have the columns named here, those of `by` and the
        unit. Without `by` a unit has one row, and counts once.
        """
        self._open("per_unit")
        if unnamed or not wanted:
            raise QueryRefused(
                "per_unit", problem="is given nothing by name", remedy="pass visits=lb.count(), say"
            )
        whose = self.card.unit
        if whose is None or self.rows.per_unit is not None:
            problem = "has no unit to group by" if whose is None else "comes twice"
            raise QueryRefused("per_unit", problem=problem, remedy="declare unit=..., ask once")
        found = self
        for text in [text for one in wanted.values() for text in number_texts(one)]:
            found = found._with_numbers(text, aggregated=True)
        names = [by] if isinstance(by, str) else by
        keys = dict(names) if isinstance(names, Mapping) else {one: one for one in names}
        grouped = {name: expression_of(text, found.rows) for name, text in keys.items()}
        unit = ColumnName(found.card.column(whose).name)
        inner = PerUnit(
            columns=tuple(_of_unit(name, one, found.rows) for name, one in wanted.items()),
            keys=tuple(
                UnitKey(name=name, expression=expression)
                for name, expression in grouped.items()
                if expression != unit
            ),
            where=all_of(found.rows.where),
            joins=found.rows.joins,
        )
        return replace(found, rows=rows_per_unit(found.rows, inner), untyped=frozenset())

    def group_by(self, *columns: str, **named: str) -> Table:
        """One answer for every value of these columns or, by name, expressions."""
        self._open("group_by")
        found = self
        for name, text in [*((column, column) for column in columns), *named.items()]:
            found = found._with_numbers(text, aggregated=False)
            with found._typing(text):
                expression = expression_of(text, found.rows)
                _check_key(expression, found.rows.card)
                key = grouped_by(name, expression, found.rows.card)
            found = replace(found, keys=(*found.keys, key))
        keys = found.keys
        _check_names([key.name for key in keys] + [name for name, _ in self.asked])
        if len({key.expression for key in keys}) < len(keys):
            raise QueryRefused("group_by", problem="has one key twice", remedy="name it once")
        return found

    def agg(self, *unnamed: object, **wanted: AggregateSpec | DerivedSpec | PairSpec) -> Table:
        """Ask for things to release in every group: n=lb.count(), cost=lb.mean("cost", 0, 500).

        Formulas over them, as share=100 * lb.sum("late", 0, 1) / lb.count(), cost nothing more.
        """
        self._open("agg")
        if unnamed:
            raise QueryRefused(
                "agg", problem="is given a thing without a name", remedy="write .agg(n=lb.count())"
            )
        every = [pair for name, one in wanted.items() for pair in specs_of(name, one)]
        found = self
        texts = [text for _, one in every for text in number_texts(one)]
        for text in texts:
            found = found._with_numbers(text, aggregated=True)
        with found._typing(" ".join(text for text in texts if isinstance(text, str))):
            columns_asked(every, found.rows)  # refuses early
        asked = (*self.asked, *every)
        _check_names([key.name for key in self.keys] + [name for name, _ in asked])
        return replace(found, asked=asked)

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
        self._open("marginals")
        if self.keys or self.asked or self.rows.per_unit is not None:
            raise QueryRefused(
                "marginals", problem="comes after group_by or agg", remedy="ask for tables alone"
            )
        names = [columns] if isinstance(columns, str) else columns
        if not isinstance(names, Iterable):
            raise WrongType("marginals", problem="are not of names", remedy='pass ["age", "sex"]')
        given = names.items() if isinstance(names, Mapping) else ((name, name) for name in names)
        found = list(given)
        if not all(isinstance(text, str) for pair in found for text in pair):
            raise WrongType("marginals", problem="are not of names", remedy='pass ["age", "sex"]')
        if len(dict(found)) < len(found):
            raise QueryRefused("marginals", problem="have one column twice", remedy="name it once")
        asked = self.group_by(**dict(found))
        query = marginals_query(
            asked.card, asked.keys, where=all_of(asked.rows.where), joins=asked.rows.joins
        )
        return MarginalsQuestion(query=query, card=asked.card, up_to=up_to, pairs=pairs)

    def having(self, condition: str) -> Table:
        """Only the released rows for which the condition is true."""
        self._open("having")
        found = replace(self, filters=(*self.filters, condition))
        found.query  # noqa: B018  refuses early
        return found

    def order_by(self, *names: str, descending: bool = False) -> Table:
        """The released rows, sorted by these columns of the answer."""
        self._open("order_by")
        more = tuple((name, descending) for name in names)
        if not all(isinstance(name, str) for name in names) or not isinstance(descending, bool):
            raise QueryRefused("order_by", problem="is given no names", remedy="name columns")
        found = replace(self, order=(*self.order, *more))
        found.query  # noqa: B018  refuses early
        return found

    def limit(self, most: int) -> Table:
        """At most this many of the released rows."""
        self._open("limit")
        return replace(self, most=whole(most, "limit"))

    def sql(self, text: str) -> Table:
        """The question as one SELECT statement, instead of the steps above."""
        if self != Table(rows=rows_of(self.card), untyped=self.untyped):
            raise QueryRefused(
                "sql", problem="comes after other steps", remedy="ask in SQL or step by step"
            )
        numbers = numbers_in_statement(text) & self.untyped if self.untyped else frozenset()
        rows, left = rows_of(_retyped(self.rows, numbers).card), self.untyped - numbers
        found = replace(self, rows=rows, untyped=left, sql_text=text)
        with found._typing(text):
            found.query  # noqa: B018  refuses early
        return found

    @property
    def query(self) -> Query:
        """The question as a value."""
        if self.sql_text is not None:
            return parsed(self.sql_text, self.card)
        if not self.asked:
            raise QueryRefused(
                "query", problem="releases nothing", remedy="add .agg(n=lb.count()), say"
            )
        aggregates, derived, selected = columns_asked(self.asked, self.rows)
        query = Query(
            table=self.card.name,
            where=all_of(self.rows.where),
            joins=self.rows.joins,
            keys=self.keys,
            aggregates=aggregates,
            derived=derived,
            shown=selected,
            limit=self.most,
            per_unit=self.rows.per_unit,
        )
        tests = [released_condition(text, query, self.rows) for text in self.filters]
        shown = Released(query, self.rows)
        order = tuple(shown.named(name, descending=down) for name, down in self.order)
        return replace(query, having=all_of(tests), order=order)

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
        asked: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "rho": rho, "weights": weights}
        query = self.query
        text = planned_within(query, self.card, within, **asked).explain()
        rows = price_rows(query, self.card, delta=delta, weights=weights)
        above, last = text.rsplit("\n", 1)  # the last line says that nothing was read
        return f"{above}\n{price_words(rows)}\n{last}" if rows else text

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
    ) -> Answer:
        """The private answer; epsilon is the price of the whole job, and is paid exactly once.

        Instead of a price, `within` says how large the ± of counts and sums may be (one number, or
        by column): the least price that buys it is paid. `explain` shows it beforehand.
        `ledger` is where the price is written; the card's holds if none is given. The same question
        to the same data gives the recorded answer at no charge, unless `fresh`.
        `kept` buys, as a second recorded answer, the share of rows that max_rows lets count: at
        this price besides, or with True at a twentieth of the price. It stands in the notes and in
        `answer.kept`; where the ledger has it already it does so unasked, at no charge.
        """
        query = self.query
        check_kept(kept, query, self.card)
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
            consistent=consistent,
        )
        return with_kept(answer, query, self.card, kept=kept, ledger=ledger, who=who)

    def _with_numbers(self, text: str, *, aggregated: bool) -> Table:
        """The table with those columns as numbers that this text uses so and nobody has typed."""
        if not self.untyped or self.rows.per_unit is not None:
            return self
        numbers = numbers_in(text, aggregated=aggregated) & self.untyped
        if not numbers:
            return self
        for name in numbers & _used(self.rows, self.keys):
            raise QueryRefused(
                f"column {self.card.column(name).name[:60]}",
                problem="is text in an earlier step, and a number here",
                remedy=f"declare it in lb.table(..., {_example(self.card.column(name).name)})",
            )
        return replace(self, rows=_retyped(self.rows, numbers), untyped=self.untyped - numbers)

    @contextmanager
    def _typing(self, text: str) -> Iterator[None]:
        """What is refused, with the way out for columns whose type was not stated."""
        try:
            yield
            return
        except QueryRefused as error:
            words = set(re.findall(r"\w+", text.lower())) if isinstance(text, str) else set()
            names = [c.name for c in self.card.columns.values() if c.name.lower() in self.untyped]
            mentioned = [name for name in names if name.lower() in words]
            about_types = _ABOUT_TYPES.search(error.problem) is not None
            if not (mentioned and about_types):
                raise
            remedy = f"{error.remedy}; a CSV file has no types, so declare them: "
            remedy += f"lb.table(..., {_example(*mentioned)})"
            told = QueryRefused(error.parameter, problem=error.problem, remedy=remedy)
        raise told

    def _open(self, step: str) -> None:
        if self.sql_text is not None:
            raise QueryRefused(
                step, problem="comes after sql()", remedy="ask in SQL or step by step, not both"
            )
        if step in ("where", "with_columns", "join", "per_unit") and (self.keys or self.asked):
            remedy = f"call {step} first; for released values use having"
            raise QueryRefused(step, problem="comes after group_by or agg", remedy=remedy)


_ABOUT_TYPES = re.compile(r"\b(text|numbers?|integers?|dates?|timestamps?|boolean)\b")


def _example(*columns: str) -> str:
    """How types are declared, for these columns."""
    pairs = ", ".join(f'"{column[:60]}": "number"' for column in columns[:3])
    return f"columns={{{pairs}}}"


def as_private(other: Table) -> PrivateTable:
    """Another table of the same units, to be joined; it must have no account of its own."""
    if not isinstance(other, Table):
        raise WrongType("private", problem="is not a table", remedy="pass lb.table(...)")
    card = other.card
    if other != Table(rows=rows_of(card), untyped=other.untyped):
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


def _of_unit(name: str, wanted: AggregateSpec, rows: SelectedRows) -> UnitColumn:
    """A function of one unit's rows, under this name."""
    if not isinstance(wanted, AggregateSpec) or wanted.function not in _OF_A_UNIT:
        problem = "is nothing that a unit's rows can be asked for"
        raise InvalidParameter(name, problem=problem, remedy=_OF_ITS_ROWS)
    if wanted.expression is None:
        return UnitColumn(name=name, function="count", nullable=False)
    expression = expression_of(wanted.expression, rows)
    function = _OF_A_UNIT[wanted.function]
    return unit_column(name, function, expression, rows.base, bounds=wanted.bounds)


def _check_names(names: list[str]) -> None:
    if len({name.lower() for name in names}) != len(names):
        raise QueryRefused(
            "query", problem="gives two columns of the answer one name", remedy="rename one"
        )
