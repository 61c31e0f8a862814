"""A question, built in steps or asked in SQL; nothing is read, and nothing is sent.

Who answers is another matter: `Table` (`private_table.py`) plans, pays and reads here, and
`RemoteTable` (`remote.py`) sends the question, written as SQL (`steps_as_sql.py`), to a server.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self, TypeAlias, cast, get_args

from lastbit.arguments import check_kind, listed
from lastbit.errors import InvalidParameter, QueryRefused, WrongType
from lastbit.exact import whole
from lastbit.release.step_names import unknown_step
from lastbit.report import table_in_notebook
from lastbit.tables import (
    AggregateSpec,
    ColumnName,
    DataCard,
    DerivedSpec,
    Expression,
    GroupKey,
    PairSpec,
    PerUnit,
    Query,
    Released,
    SelectedRows,
    UnitColumn,
    UnitFunction,
    UnitKey,
    View,
    all_of,
    bounded_key,
    columns_asked,
    columns_in,
    condition_of,
    expression_of,
    grouped_by,
    joined_with,
    number_texts,
    numbers_in,
    numbers_in_statement,
    parsed,
    released_condition,
    rows_of,
    rows_per_unit,
    specs_of,
    unit_column,
    view_of,
    with_column,
)

_NUMBERS = ("integer", "number")
_OF_ITS_ROWS = "use lb.count, count_distinct, sum, mean, min or max"


Names: TypeAlias = str | Iterable[str] | Mapping[str, str]
"""A name, several, or expressions by their names."""


def texts_by_name(step: str, *names: Names, **named: str) -> list[tuple[str, str]]:
    """Expressions with their names, in order; a name alone stands for the column."""
    pairs: list[tuple[Any, Any]] = []
    problem = "is given no names"
    remedy = 'pass ["age", "sex"] or, by name, older="age > 64"'
    for one in names:
        if isinstance(one, Mapping):
            pairs += one.items()
        else:
            several = (
                [one] if isinstance(one, str) else listed(one, step, remedy=remedy, problem=problem)
            )
            pairs += ((name, name) for name in several)
    for name, text in [*pairs, *named.items()]:
        if not isinstance(name, str) or not isinstance(text, str):
            raise WrongType(step, problem=problem, remedy=remedy)
    return [*pairs, *named.items()]


def _check_key(expression: Expression, card: DataCard) -> None:
    """Refuse to group by a column of floats, and say how whole numbers among them are meant."""
    if isinstance(expression, ColumnName) and expression.table is None:
        column = card.column(expression.name)
        if column.type == "number":
            problem = "is of type number: nearly every row would be a group of its own"
            remedy = f'declare columns={{"{column.name[:60]}": "integer"}} if it has whole numbers'
            remedy += " (others are rounded); else group by bin(x, 0, 10, 20)"
            raise QueryRefused(f"group_by {column.name[:60]}", problem=problem, remedy=remedy)


def _key(name: str, text: str, rows: SelectedRows) -> GroupKey:
    """What is grouped by, and under which name."""
    expression = expression_of(text, rows)
    _check_key(expression, rows.card)
    return grouped_by(name, expression, rows.card, *rows.where)


def _with_numeric(rows: SelectedRows, numbers: Collection[str]) -> SelectedRows:
    """The rows with these columns (small letters) as numbers, each value cast by itself."""
    columns = {
        name: replace(column, type="number") if name.lower() in numbers else column
        for name, column in rows.base.columns.items()
    }
    return replace(rows, base=replace(rows.base, columns=columns))


def _columns_read(rows: SelectedRows, keys: Iterable[GroupKey]) -> frozenset[str]:
    """Columns of the table that earlier steps read, in small letters."""
    parts = [*rows.where, *(key.expression for key in keys)]
    parts += [own for join in rows.joins for own, _ in join.on]
    parts += [e for name, e in rows.columns.items() if e != ColumnName(name)]
    columns = (column for part in parts for column in columns_in(part))
    return frozenset(column.name.lower() for column in columns if column.table is None)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Question:
    """A table with its card, and what has been asked of it so far. Every step gives a new one."""

    rows: SelectedRows
    keys: tuple[GroupKey, ...] = ()
    asked: tuple[tuple[str, AggregateSpec | DerivedSpec | PairSpec], ...] = ()
    filters: tuple[str, ...] = ()
    order: tuple[tuple[str, bool], ...] = ()
    most: int | None = None
    sql_text: str | None = None
    untyped: frozenset[str] = frozenset()
    """Columns of a CSV file whose type was not stated: text, or numbers where aggregated so."""
    steps: tuple[tuple[Any, ...], ...] = ()
    """What was said of rows and keys, as it was written."""
    intervals: bool = True
    """Whether quantiles have intervals; else all of the price buys their values."""

    if not TYPE_CHECKING:  # checkers of types know themselves which names there are

        def __getattr__(self, name: str) -> Any:
            if hasattr(type(self), name):  # a property that fails inside
                return object.__getattribute__(self, name)
            if name.startswith("_"):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            raise unknown_step(type(self), name)

    def __repr__(self) -> str:
        """The table's name and what is asked; nothing of the data."""
        parts = [] if self.sql_text is None else [self.sql_text]
        inner = self.rows.per_unit
        if inner is not None:
            parts += ["where ..."] if inner.where is not None else []
            parts += [f"join {join.table}" for join in inner.joins if join.table]
            parts += [f"per {self.card.unit}: {', '.join(inner.names)}"]
        parts += ["where ..."] if self.rows.where else []
        parts += [f"join {join.table}" for join in self.rows.joins if join.table]
        parts += [f"by {key.name}" for key in self.keys]
        parts += [f"{name} = {wanted}" for name, wanted in self.asked]
        parts += [f"having {text}" for text in self.filters]
        parts += [f"order by {name}{' descending' if down else ''}" for name, down in self.order]
        parts += [] if self.most is None else [f"limit {self.most}"]
        what = "; ".join(parts) or "nothing asked yet"
        return f"<{type(self).__name__} {self.place}: {what}>"

    def _repr_html_(self) -> str:
        return table_in_notebook(repr(self)[1:-1], self.card)

    @property
    def place(self) -> str:
        """The name of the table, and where it is."""
        return self.card.name

    @property
    def card(self) -> DataCard:
        """What is declared of the table."""
        return self.rows.base

    @property
    def is_new(self) -> bool:
        """Whether nothing was asked yet."""
        asked = self.steps or self.asked or self.filters or self.order
        return not asked and self.most is None and self.sql_text is None

    def where(self, condition: str) -> Self:
        """Only the rows for which the condition is true; before or after `group_by`, it is one."""
        self._check_open("where")
        with self._type_remedies(condition):
            test = condition_of(condition, self.rows)
        rows = replace(self.rows, where=(*self.rows.where, test))
        steps = (*self.steps, ("where", condition))
        return replace(self, rows=rows, keys=self._keys_by(rows), steps=steps)

    def with_columns(self, **expressions: str) -> Self:
        """Further columns, each computed from its row; later ones may name earlier ones."""
        self._check_open("with_columns")
        rows = self.rows
        for name, text in expressions.items():
            with self._type_remedies(text):
                rows = with_column(rows, name, expression_of(text, rows))
        steps = (("column", name, text) for name, text in expressions.items())
        return replace(self, rows=rows, steps=(*self.steps, *steps))

    def join(self, public: str, *, on: Names | None = None) -> Self:
        """The rows joined with another table of the card where these columns are equal.

        `on` has pairs {ours: theirs}, or names that both have. With a private table the units must
        be equal, which is what it means where it is left out.
        """
        self._check_open("join")
        private = self.card.private.get(public) if isinstance(public, str) else None
        if on is None and private is not None:
            on = {self.card.unit or "": private.unit}
        remedy = 'pass a table or its name, and on="region", say'
        check_kind(public, str, "join", remedy=remedy)
        pairs = dict(texts_by_name("join", () if on is None else on))
        steps = (*self.steps, ("join", public, pairs))
        return replace(self, rows=joined_with(self.rows, public, pairs), steps=steps)

    def per_unit(
        self,
        *unnamed: object,
        by: Names = (),
        **wanted: AggregateSpec,
    ) -> Self:
        """One row for each unit (and key in `by`): visits=lb.count(), total=lb.sum("cost").

        What follows is about these rows, which have the columns named here, those of `by` and the
        unit. Without `by` a unit has one row, and counts once.
        """
        self._check_open("per_unit")
        if unnamed or not wanted:
            raise QueryRefused(
                "per_unit", problem="is given nothing by name", remedy="pass visits=lb.count(), say"
            )
        whose = self.card.unit
        if whose is None or self.rows.per_unit is not None:
            problem = "has no unit to group by" if whose is None else "comes twice"
            raise QueryRefused("per_unit", problem=problem, remedy="declare unit=..., ask once")
        after = self
        for text in [text for one in wanted.values() for text in number_texts(one)]:
            after = after._with_number_types(text, aggregated=True)
        keys = dict(texts_by_name("per_unit", by))
        grouped = {name: expression_of(text, after.rows) for name, text in keys.items()}
        unit, tests = ColumnName(after.card.column(whose).name), after.rows.where
        inner = PerUnit(
            columns=tuple(_unit_column(name, one, after.rows) for name, one in wanted.items()),
            keys=tuple(
                UnitKey(name=name, expression=bounded_key(expression, after.card, *tests))
                for name, expression in grouped.items()
                if expression != unit
            ),
            where=all_of(tests),
            joins=after.rows.joins,
        )
        return replace(
            after,
            rows=rows_per_unit(after.rows, inner),
            untyped=frozenset(),
            steps=(*self.steps, ("per_unit", keys, wanted)),
        )

    def group_by(self, *columns: Names, **named: str) -> Self:
        """One answer for every value of these columns or, by name, expressions.

        A list of names, or expressions by name, may be passed as one: `.group_by(["age", "sex"])`.
        """
        self._check_open("group_by")
        if not isinstance(named.get("keys", ""), str):
            problem = "is given keys, which are declared with the table"
            remedy = 'pass lb.table(..., keys={"age": [...]}), or ask .where("age IN (...)") first'
            raise QueryRefused("group_by", problem=problem, remedy=remedy)
        after = self
        for name, text in texts_by_name("group_by", *columns, **named):
            after = after._with_number_types(text, aggregated=False)
            with after._type_remedies(text):
                key = _key(name, text, after.rows)
            steps = (*after.steps, ("key", name, text))
            after = replace(after, keys=(*after.keys, key), steps=steps)
        keys = after.keys
        _check_names([key.name for key in keys] + [name for name, _ in self.asked])
        if len({key.expression for key in keys}) < len(keys):
            raise QueryRefused("group_by", problem="has one key twice", remedy="name it once")
        return after

    def agg(self, *unnamed: object, **wanted: AggregateSpec | DerivedSpec | PairSpec) -> Self:
        """Ask for things to release in every group: n=lb.count(), cost=lb.mean("cost", 0, 500).

        Formulas over them, as share=100 * lb.sum("late", 0, 1) / lb.count(), cost nothing more.
        """
        self._check_open("agg")
        if unnamed:
            raise QueryRefused(
                "agg", problem="needs a name for each aggregate", remedy="write .agg(n=lb.count())"
            )
        every = [pair for name, one in wanted.items() for pair in specs_of(name, one)]
        after = self
        texts = [text for _, one in every for text in number_texts(one)]
        for text in texts:
            after = after._with_number_types(text, aggregated=True)
        with after._type_remedies(" ".join(text for text in texts if isinstance(text, str))):
            replace(after, keys=(), asked=tuple(every), filters=(), order=()).draft  # noqa: B018  refuses early
        asked = (*self.asked, *every)
        _check_names([key.name for key in self.keys] + [name for name, _ in asked])
        return replace(after, asked=asked)

    def having(self, condition: str) -> Self:
        """Only the released rows for which the condition is true."""
        self._check_open("having")
        after = replace(self, filters=(*self.filters, condition))
        after.draft  # noqa: B018  refuses early
        return after

    def order_by(self, *names: str, descending: bool = False) -> Self:
        """The released rows, sorted by these columns of the answer."""
        self._check_open("order_by")
        more = tuple((name, descending) for name in names)
        if not all(isinstance(name, str) for name in names) or not isinstance(descending, bool):
            raise QueryRefused("order_by", problem="is given no names", remedy="name columns")
        after = replace(self, order=(*self.order, *more))
        after.draft  # noqa: B018  refuses early
        return after

    def limit(self, most: int) -> Self:
        """At most this many of the released rows."""
        self._check_open("limit")
        return replace(self, most=whole(most, "limit"))

    def sql(self, text: str) -> Self:
        """The question as one SELECT statement, instead of the steps above."""
        if not self.is_new:
            raise QueryRefused(
                "sql", problem="comes after other steps", remedy="ask in SQL or step by step"
            )
        numbers = numbers_in_statement(text) & self.untyped if self.untyped else frozenset()
        rows, left = rows_of(_with_numeric(self.rows, numbers).card), self.untyped - numbers
        after = replace(self, rows=rows, untyped=left, sql_text=text)
        with after._type_remedies(text):
            after.draft  # noqa: B018  refuses early
        return after

    @property
    def query(self) -> Query:
        """The question as a value."""
        query = self._steps_query() if self.sql_text is None else parsed(self.sql_text, self.card)
        return query if self.intervals else query.without_intervals()

    @property
    def view(self) -> View | None:
        """What SELECT shows of the answer, where that is not all columns as they are released."""
        return None if self.sql_text is None else view_of(self.sql_text, self.draft.card)

    @property
    def draft(self) -> Self:
        """The question with stand-ins for bounds that are left out; itself where none are.

        Refused is what could not be asked with bounds either.
        """
        try:
            self.query  # noqa: B018
            return self
        except QueryRefused as error:
            missing = error
        one = Fraction(1)
        steps = {name: self.card.column(name).step or one for name in self.unbounded_columns}
        stood_in = self.with_bounds({n: (0 * one, max(step, one)) for n, step in steps.items()})
        try:
            stood_in.query  # noqa: B018
        except InvalidParameter:
            raise missing from None
        return stood_in

    @property
    def unbounded_columns(self) -> list[str]:
        """Columns of numbers without bounds that a profile can choose: not that of the unit."""
        unit = (self.card.unit or "").lower()
        columns = (one for one in self.card.columns.values() if one.name.lower() != unit)
        return [one.name for one in columns if one.bounds is None and one.type in _NUMBERS]

    def with_bounds(self, bounds: Mapping[str, tuple[Fraction, Fraction]]) -> Self:
        """The same question, these columns having these bounds where they are aggregated."""
        columns = {
            name: replace(one, bounds=bounds[one.name], bounds_chosen=True)
            if one.name in bounds
            else one
            for name, one in self.card.columns.items()
        }
        return self.by_card(replace(self.card, columns=columns))

    def by_card(self, card: DataCard) -> Self:
        """The same question by another card of the table."""
        rows = replace(self.rows, base=card)
        return replace(self, rows=rows, keys=self._keys_by(rows))

    def _keys_by(self, rows: SelectedRows) -> tuple[GroupKey, ...]:
        """The keys, of these rows.

        Which values they have follows from the card (of a count of a unit's rows, from max_rows),
        and from all conditions on rows.
        """
        return tuple(_key(step[1], step[2], rows) for step in self.steps if step[0] == "key")

    def _steps_query(self) -> Query:
        if not self.asked:
            raise QueryRefused(
                "query", problem="asks for nothing", remedy="add, say, .agg(n=lb.count())"
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

    def _with_number_types(self, text: str, *, aggregated: bool) -> Self:
        """The table with those columns as numbers that this text uses so and nobody has typed."""
        if not self.untyped or self.rows.per_unit is not None:
            return self
        numbers = numbers_in(text, aggregated=aggregated) & self.untyped
        if not numbers:
            return self
        for name in numbers & _columns_read(self.rows, self.keys):
            raise QueryRefused(
                f"column {self.card.column(name).name[:60]}",
                problem="is text in an earlier step, and a number here",
                remedy=f"declare it in lb.table(..., {_example(self.card.column(name).name)})",
            )
        return replace(self, rows=_with_numeric(self.rows, numbers), untyped=self.untyped - numbers)

    @contextmanager
    def _type_remedies(self, text: str) -> Iterator[None]:
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

    def _check_open(self, step: str) -> None:
        if self.sql_text is not None:
            raise QueryRefused(
                step, problem="comes after sql()", remedy="ask in SQL or step by step, not both"
            )
        told = bool(self.asked) if step == "where" else bool(self.keys or self.asked)
        if step in ("where", "with_columns", "join", "per_unit") and told:
            remedy = f"call {step} first; for released values use having"
            raise QueryRefused(step, problem="comes after group_by or agg", remedy=remedy)


_ABOUT_TYPES = re.compile(r"\b(text|numbers?|integers?|dates?|timestamps?|boolean)\b")


def _example(*columns: str) -> str:
    """How types are declared, for these columns."""
    pairs = ", ".join(f'"{column[:60]}": "number"' for column in columns[:3])
    return f"columns={{{pairs}}}"


def _unit_column(name: str, wanted: AggregateSpec, rows: SelectedRows) -> UnitColumn:
    """A function of one unit's rows, under this name."""
    if not isinstance(wanted, AggregateSpec) or wanted.function not in get_args(UnitFunction):
        problem = "is no function of one unit's rows"
        raise InvalidParameter(name, problem=problem, remedy=_OF_ITS_ROWS)
    if wanted.expression is None:
        return UnitColumn(name=name, function="count", nullable=False)
    expression = expression_of(wanted.expression, rows)
    function = cast(UnitFunction, wanted.function)
    return unit_column(name, function, expression, rows.base, bounds=wanted.bounds)


def _check_names(names: list[str]) -> None:
    if len({name.lower() for name in names}) != len(names):
        raise QueryRefused(
            "query", problem="gives two columns of the answer one name", remedy="rename one"
        )
