"""The Python front end: a table, declared by a card or by arguments; a question; its answer."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from lastbit.errors import InvalidParameter, QueryRefused, WrongType
from lastbit.exact import Number, whole
from lastbit.ledger import Ledger
from lastbit.privacy import ADD_REMOVE, CHANGE_ONE, Neighbours
from lastbit.release.answer import Answer
from lastbit.release.marginals import MarginalsQuestion
from lastbit.release.release import released
from lastbit.release.within import Within, planned_within, price_rows, price_words
from lastbit.tables import (
    AggregateSpec,
    Budget,
    Column,
    ColumnName,
    ColumnType,
    DataCard,
    DerivedSpec,
    GroupKey,
    PairSpec,
    PerUnit,
    Plan,
    PrivateTable,
    PublicTable,
    Query,
    Released,
    SelectedRows,
    Source,
    UnitColumn,
    UnitFunction,
    UnitKey,
    all_of,
    check_budget,
    check_names,
    columns_asked,
    columns_of,
    condition_of,
    expression_of,
    grouped_by,
    joined_with,
    marginals_query,
    parsed,
    planned,
    read_card,
    released_condition,
    rows_of,
    rows_per_unit,
    sealed,
    source_of,
    specs_of,
    unit_column,
    with_column,
)

_OF_A_UNIT: Mapping[str, UnitFunction] = MappingProxyType(
    {"count": "count", "sum": "sum", "mean": "mean", "min": "min", "max": "max"}
)


def _source(source: Any, name: str | None) -> tuple[Source, str]:
    if name is not None and (not isinstance(name, str) or not name):
        raise WrongType("name", problem="is not a name", remedy='pass, say, "visits"')
    if isinstance(source, str | Path | list | tuple):
        paths = [source] if isinstance(source, str | Path) else source
        return source_of(*map(str, paths)), name or Path(paths[0]).name.split(".")[0] or "rows"
    if _is_frame(source):
        return held(source), name or "rows"
    remedy = "pass a card, a path that ends in .csv or .parquet, or a DataFrame"
    raise WrongType("source", problem="is neither a file nor a frame", remedy=remedy)


def _is_frame(source: Any) -> bool:
    """Apart from where it is refused: the frames of an error hold their locals."""
    frame = source.frame if isinstance(source, Source) else source
    return hasattr(frame, "__arrow_c_stream__") or type(frame).__module__.startswith("pandas")


def held(source: Any) -> Any:
    """Paths as they are; anything else in a value whose repr hides it, as errors show locals."""
    paths = [source] if isinstance(source, str | Path) else source
    if isinstance(paths, list | tuple) and paths and all(isinstance(p, str | Path) for p in paths):
        return source
    return source if isinstance(source, Source) else Source(kind="frame", frame=source)


def _types(source: Source, *, declared: Collection[str] | None) -> dict[str, ColumnType]:
    """The columns of a source. If its names look like values, no error and no frame holds them."""

    def checked() -> dict[str, ColumnType]:
        types = columns_of(source)
        if declared is not None:
            check_names(source, [name for name in types if name.lower() not in declared])
        return types

    return sealed(checked, words="the source could not be read; check that it is whole")


def _columns(
    source: Source,
    columns: Mapping[str, Column] | Iterable[Column] | None,
    keys: Mapping[str, Iterable[Any]] | None,
) -> dict[str, Column]:
    """The columns as declared, the others as the source names and types them."""
    given = list(columns.values() if isinstance(columns, Mapping) else columns or ())
    if not all(isinstance(column, Column) for column in given):
        raise WrongType("columns", problem="are not declared as columns", remedy="pass Column(...)")
    declared = {column.name.lower(): column for column in given}
    listed = {column.lower(): values for column, values in (keys or {}).items()}
    types = _types(source, declared=declared)
    known = {column.lower() for column in types}
    for lower in (*declared, *listed):
        if lower not in known:
            raise InvalidParameter(
                f"column {lower}",
                problem="is not in the source, or of a type that cannot be read there (nested, a"
                " time of day, a duration)",
                remedy="check its name; convert it to a number, text, date or timestamp",
            )
    found = {}
    for column, kind in types.items():
        step = Fraction(1) if kind == "integer" else None
        one = declared.get(column.lower()) or Column(name=column, type=kind, step=step)
        if column.lower() in listed:
            values = listed[column.lower()]
            if isinstance(values, str) or not isinstance(values, Iterable):
                remedy = 'pass ["north", "south"]'
                raise WrongType(f"keys of {one.name}", problem="are not a list", remedy=remedy)
            one = replace(one, keys=tuple(values))
        found[one.name] = one
    return found


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Table:
    """A table with its card, and what has been asked of it so far. Every step gives a new one.

    `where`, `with_columns`, `join`, `per_unit`, `group_by` and `agg` build the question; `having`,
    `order_by` and `limit` work on what is released; `sql` asks all at once. `explain` says what an
    answer would cost and how far off it would be, before anything is read; `release` gives it.
    Expressions are SQL text.
    """

    rows: SelectedRows
    keys: tuple[GroupKey, ...] = ()
    asked: tuple[tuple[str, AggregateSpec | DerivedSpec | PairSpec], ...] = ()
    filters: tuple[str, ...] = ()
    order: tuple[tuple[str, bool], ...] = ()
    most: int | None = None
    sql_text: str | None = None

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
        test = condition_of(condition, self.rows)
        return replace(self, rows=replace(self.rows, where=(*self.rows.where, test)))

    def with_columns(self, **expressions: str) -> Table:
        """Further columns, each computed from its row; later ones may name earlier ones."""
        self._open("with_columns")
        rows = self.rows
        for name, text in expressions.items():
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
            rows, name = _with_private(rows, _as_private(public)), public.card.name
        if on is None and name in rows.base.private:
            on = {rows.base.unit or "": rows.base.private[str(name)].unit}
        names = [on] if isinstance(on, str) else on or []
        pairs = dict(names) if isinstance(names, Mapping) else {one: one for one in names}
        if not all(isinstance(one, str) for one in (name, *pairs, *pairs.values())):
            raise QueryRefused("join", problem="is given no names", remedy='pass on="region", say')
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
        if self.card.unit is None or self.rows.per_unit is not None:
            problem = "has no unit to group by" if self.card.unit is None else "comes twice"
            raise QueryRefused("per_unit", problem=problem, remedy="declare unit=..., ask once")
        names = [by] if isinstance(by, str) else by
        keys = dict(names) if isinstance(names, Mapping) else {one: one for one in names}
        grouped = {name: expression_of(text, self.rows) for name, text in keys.items()}
        unit = ColumnName(self.card.column(self.card.unit).name)
        inner = PerUnit(
            columns=tuple(_of_unit(name, one, self.rows) for name, one in wanted.items()),
            keys=tuple(
                UnitKey(name=name, expression=expression)
                for name, expression in grouped.items()
                if expression != unit
            ),
            where=all_of(self.rows.where),
            joins=self.rows.joins,
        )
        return replace(self, rows=rows_per_unit(self.rows, inner))

    def group_by(self, *columns: str, **named: str) -> Table:
        """One answer for every value of these columns or, by name, expressions."""
        self._open("group_by")
        keys = list(self.keys)
        for name, text in [*((column, column) for column in columns), *named.items()]:
            keys.append(grouped_by(name, expression_of(text, self.rows), self.rows.card))
        _check_names([key.name for key in keys] + [name for name, _ in self.asked])
        if len({key.expression for key in keys}) < len(keys):
            raise QueryRefused("group_by", problem="has one key twice", remedy="name it once")
        return replace(self, keys=tuple(keys))

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
        columns_asked(every, self.rows)  # refuses early
        asked = (*self.asked, *every)
        _check_names([key.name for key in self.keys] + [name for name, _ in asked])
        return replace(self, asked=asked)

    def marginals(
        self, columns: Iterable[str] | Mapping[str, str], *, up_to: int = 2
    ) -> MarginalsQuestion:
        """All tables of one and of two of these columns, at one price.

        A mapping gives expressions by name. Keys must be declared or public; numbers go into bins:
        {"sex": "sex", "age": "bin(age, 0, 18, 65, 99)"}.
        """
        self._open("marginals")
        if self.keys or self.asked or self.rows.per_unit is not None:
            raise QueryRefused(
                "marginals", problem="comes after group_by or agg", remedy="ask for tables alone"
            )
        names = [columns] if isinstance(columns, str) else columns
        if not isinstance(names, Iterable):
            raise WrongType("marginals", problem="are not of names", remedy='pass ["age", "sex"]')
        pairs = dict(names) if isinstance(names, Mapping) else None
        found = list(pairs.items()) if pairs is not None else [(name, name) for name in names]
        if not all(isinstance(text, str) for pair in found for text in pair):
            raise WrongType("marginals", problem="are not of names", remedy='pass ["age", "sex"]')
        keys = [grouped_by(name, expression_of(text, self.rows), self.card) for name, text in found]
        _check_names([key.name for key in keys])
        if len({key.expression for key in keys}) < len(keys):
            raise QueryRefused("marginals", problem="have one column twice", remedy="name it once")
        query = marginals_query(
            self.card, keys, where=all_of(self.rows.where), joins=self.rows.joins
        )
        return MarginalsQuestion(query=query, card=self.card, up_to=up_to)

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
        if self != Table(rows=rows_of(self.card)):
            raise QueryRefused(
                "sql", problem="comes after other steps", remedy="ask in SQL or step by step"
            )
        parsed(text, self.card)
        return replace(self, sql_text=text)

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
        text = self._plan(query, within, asked).explain()
        rows = price_rows(query, self.card, delta=delta, weights=weights)
        return f"{text}\n{price_words(rows)}" if rows else text

    def _plan(self, query: Query, within: Within | None, asked: dict[str, Any]) -> Plan:
        if within is None:
            return planned(query, self.card, **asked)
        return planned_within(query, self.card, within, **asked)

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
    ) -> Answer:
        """The private answer; epsilon is the price of the whole job, and is paid exactly once.

        Instead of a price, `within` says how large the ± of counts and sums may be (one number, or
        by column): the least price that buys it is paid. `explain` shows it beforehand.
        `ledger` is where the price is written; the card's holds if none is given. The same question
        to the same data gives the recorded answer at no charge, unless `fresh`.
        """
        query = self.query
        asked: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "rho": rho, "weights": weights}
        plan = self._plan(query, within, asked)
        return released(
            query,
            self.card,
            plan,
            ledger=ledger,
            who=who,
            sql=self.sql_text,
            fresh=fresh,
            consistent=consistent,
        )

    def _open(self, step: str) -> None:
        if self.sql_text is not None:
            raise QueryRefused(
                step, problem="comes after sql()", remedy="ask in SQL or step by step, not both"
            )
        if step in ("where", "with_columns", "join", "per_unit") and (self.keys or self.asked):
            remedy = f"call {step} first; for released values use having"
            raise QueryRefused(step, problem="comes after group_by or agg", remedy=remedy)


def table(
    source: Any,
    *,
    unit: str | None = None,
    each_row: bool = False,
    max_rows: int | None = None,
    max_groups: int | None = None,
    columns: Mapping[str, Column] | Iterable[Column] | None = None,
    keys: Mapping[str, Iterable[Any]] | None = None,
    public: Mapping[str, Any] | None = None,
    private: Mapping[str, Table] | None = None,
    neighbours: Neighbours | Literal["add-remove", "change-one"] = ADD_REMOVE,
    budget: Budget | None = None,
    name: str | None = None,
) -> Table:
    """A table to ask: a data card, files, or a frame of pandas, Polars or Arrow.

    With a card (`table("visits.toml")`) everything is declared there. Else `unit` names the column
    of the privacy unit (or `each_row=True`), and `max_rows` how many rows of one unit count:
    where it has more, all of them count for less. One unit contributes to at most `max_groups`
    groups (max_rows of them, unless declared): where it has more keys, that many are chosen by a
    keyed hash, afresh in every release. `columns` and `keys` declare what is publicly known;
    `public` gives tables to join with, by name, and `private` further tables of the same units,
    each made by this function; those are joined on the unit. Names and types of other columns are
    taken from the source; no value is looked at.

    >>> import duckdb
    >>> visits = duckdb.sql("SELECT range // 3 AS patient, 'a' AS region FROM range(30)")
    >>> table(visits.to_arrow_table(), unit="patient", max_rows=3, name="visits").group_by("region")
    <Table visits: by region>
    """
    source = held(source)
    if isinstance(source, str | Path) and str(source).lower().endswith(".toml"):
        given = (unit, max_rows, max_groups, columns, keys, public, private, budget, name)
        if each_row or neighbours is not ADD_REMOVE or any(part is not None for part in given):
            raise InvalidParameter(
                "table", problem="is declared by its card", remedy="pass the card alone"
            )
        return Table(rows=rows_of(read_card(source)))
    if (unit is None) != (each_row is True):
        problem = "is not declared: which column names the privacy unit?"
        remedy = 'pass unit="patient_id", or each_row=True if each row is a different person'
        raise InvalidParameter("unit", problem=problem, remedy=remedy)
    if unit is not None and max_rows is None:
        raise InvalidParameter(
            "max_rows", problem="is missing", remedy="pass how many rows of one unit may count"
        )
    known = [*(r for r in (ADD_REMOVE, CHANGE_ONE) if r.relation == neighbours), neighbours]
    related = known[0]
    if not isinstance(related, Neighbours):
        raise InvalidParameter(
            "neighbours", problem="is unknown", remedy='pass "add-remove" or "change-one"'
        )
    if budget is not None and not isinstance(budget, Budget):
        raise WrongType("budget", problem="is not a Budget", remedy="pass Budget(...)")
    check_budget(budget)
    place, called = _source(source, name)
    rows = 1 if max_rows is None else whole(max_rows, "max_rows", least=1)
    groups = None if max_groups is None else whole(max_groups, "max_groups", least=1)
    joined = {}
    for table, other in (public or {}).items():
        file, alias = _source(held(other), table)
        types = _types(file, declared=None)
        joined[table] = PublicTable(name=alias, source=file, columns=types)
    card = DataCard(
        name=called,
        source=place,
        unit=unit,
        max_rows=rows,
        max_groups=rows if unit is not None and groups is None else groups,
        max_groups_assumed=unit is not None and groups is None,
        columns=_columns(place, columns, keys),
        neighbours=related,
        budget=budget,
        public=joined,
        private={
            name: replace(_as_private(other), name=name) for name, other in (private or {}).items()
        },
    )
    return Table(rows=rows_of(card))


def _as_private(other: Table) -> PrivateTable:
    """Another table of the same units, to be joined; it must have no account of its own."""
    if not isinstance(other, Table):
        raise WrongType("private", problem="is not a table", remedy="pass lb.table(...)")
    card = other.card
    if other != Table(rows=rows_of(card)):
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
        raise InvalidParameter(name, problem=problem, remedy="use lb.count, sum, mean, min or max")
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
