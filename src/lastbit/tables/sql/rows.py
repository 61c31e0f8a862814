"""FROM, JOIN, WITH and WHERE: the rows that a question looks at, and what their columns mean.

Sub-queries that work row by row are written out; one that is grouped by the unit is kept as
`PerUnit` (`per_unit.py`). A join is on equal columns, with a public table or, on the unit, with a
private one of the card. Anything else is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any

from sqlglot import exp

from lastbit.tables.card.schema import DataCard, PrivateTable, PublicTable
from lastbit.tables.limits import refused
from lastbit.tables.query.derived import columns_in
from lastbit.tables.query.expression import Call, ColumnName, Constant, Expression
from lastbit.tables.query.rules import call, check_unit_join
from lastbit.tables.query.sub_query import derived_card
from lastbit.tables.query.types import card_types, of_lists, type_of, typed
from lastbit.tables.query.units import Join, PerUnit, PublicJoin, UnitJoin
from lastbit.tables.sql.aggregates import condition, is_aggregate
from lastbit.tables.sql.expressions import KNOWN_FUNCTIONS, is_with_point, quoted, translated
from lastbit.tables.sql.parse import EQUAL_COLUMNS, kind_of, name_of, names, taken
from lastbit.tables.sql.per_unit import UnitColumns
from lastbit.tables.sql.words import written

OtherTable = PublicTable | PrivateTable


@dataclass(frozen=True, slots=True)
class OtherRows:
    """Rows of another table of the card, to be joined: the columns that a sub-query gives them."""

    table: OtherTable
    called: str | None
    columns: Mapping[str, Expression]
    where: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class Elements:
    """The elements of a list of which rows were made: what they are called here."""

    columns: Mapping[str, Expression]
    by_name: bool = True
    """Whether a name can mean them without their table's; SELECT's own are seen by nobody else."""


def other_rows(table: OtherTable) -> OtherRows:
    """The other table as it is."""
    return OtherRows(
        table, table.name, {name: ColumnName(name, table.name) for name in table.columns}
    )


@dataclass(frozen=True, slots=True)
class SelectedRows:
    """The rows that a FROM gives: their columns, and the conditions and joins on the way.

    `base` is the card of the table; `called` is what the table is called here; `public` are the
    joined tables by what they are called; `merged` are their columns that USING made one with ours.
    With `per_unit` these are the rows of that sub-query, and its columns are meant.
    """

    base: DataCard
    called: str | None
    columns: Mapping[str, Expression]
    public: Mapping[str, OtherRows | Elements]
    merged: frozenset[Expression] = frozenset()
    where: tuple[Expression, ...] = ()
    joins: tuple[Join, ...] = ()
    per_unit: PerUnit | None = None
    linked: Mapping[str, str] = field(default_factory=dict)
    """What tables on the way to the unit are called here, and their names on the card."""
    with_point: frozenset[str] = frozenset()
    """Columns, in small letters, that are made of numbers written as 2.0: to DuckDB not whole."""

    @property
    def card(self) -> DataCard:
        """The card with the columns that these rows have."""
        return derived_card(self.base, self.per_unit)

    def resolve(self, node: Any) -> Expression:
        """What a column node stands for."""
        if kind_of(node) != "Column":
            if kind_of(node) == "Window":
                raise refused("a window function", "has no private answer here", "group instead")
            if is_aggregate(node):
                problem = "stands inside an expression over one row"
                remedy = "aggregate the whole expression, or test it in HAVING"
                raise refused(written(node), problem, remedy)
            if kind_of(node) == "Log":
                return self._logarithm(node)
            raise refused(written(node), "is not known here", f"use {KNOWN_FUNCTIONS}")
        what, table = taken(node, "this", "table")
        if kind_of(what) == "Star":
            raise refused("SELECT *", "would show rows", "ask for COUNT(*), AVG(column) ...")
        found = list(self.meant(what, table))
        if len(found) == 1:
            if name_of(what).lower() in self.with_point:
                self._check_divided(node, found[0])
            return found[0]
        raise self._unknown(name_of(what), *self._missing(node), many=bool(found))

    def _check_divided(self, node: Any, found: Expression) -> None:
        """That nothing is divided by // which is whole here, and to DuckDB has a fraction."""
        divided = node.find_ancestor(exp.IntDiv) is not None
        if divided and type_of(found, card_types(self.card)) == "integer":
            problem = "is of a number that a sub-query writes with a point: DuckDB keeps the rest"
            raise refused("//", problem, "divide by /, or write FLOOR(x / 7)")

    def _logarithm(self, node: Any) -> Expression:
        """LOG(x), which is to base 10, LOG2(x) or LOG(base, x): a quotient, to twelve places.

        So that the logarithm of 1000 is 3, as DuckDB's is; by quotients of doubles it is below.
        """
        parts = [part for part in taken(node, "this", "expression") if part is not None]
        base, value = [Constant(10), *(translated(part, self.resolve) for part in parts)][-2:]
        return call("round", call("/", call("ln", value), call("ln", base)), Constant(12))

    def _missing(self, node: Any) -> Iterator[str]:
        """The names in the same SELECT that mean nothing here, as columns or as its own aliases."""
        select = node.find_ancestor(exp.Select)
        if select is None:  # a part that was taken out, as of a list of levels
            return
        given = {item.alias.lower() for item in select.expressions if kind_of(item) == "Alias"}
        for other in select.find_all(exp.Column):
            what, table = other.this, other.args.get("table")
            own = kind_of(what) == "Identifier" and other.find_ancestor(exp.Select) is select
            if own and name_of(what).lower() not in given and not list(self.meant(what, table)):
                yield name_of(what)

    def named(self, name: str) -> Expression:
        """The column of this name, in any case."""
        found = [e for column, e in self.columns.items() if column.lower() == name.lower()]
        found += [e for column, e in self._public() if column.lower() == name.lower()]
        if len(found) == 1:
            return found[0]
        raise self._unknown(name, many=bool(found))

    def outputs(self) -> dict[str, Expression]:
        """What SELECT * means: every column once."""
        found = dict(self.columns)
        for name, expression in self._public():
            add_column(found, name, expression)
        return found

    def meant(self, what: Any, table: Any) -> Iterable[Expression]:
        """Every column that a name, with or without its table, can mean."""
        if table is None or (self.called is not None and names(table, self.called)):
            yield from (e for column, e in self.columns.items() if names(what, column))
        if table is None:
            yield from (e for column, e in self._public() if names(what, column))
            return
        for called, name in self.linked.items():
            if names(table, called):
                step = next(one for one in self.base.through if one.name == name)
                own = {known.lower(): there for known, there in step.columns.items()}
                equal = {named: name for name, named in step.on if named not in own.values()}
                own |= {name.lower(): named for named, name in equal.items()}
                for column, e in self.columns.items():
                    if e == ColumnName(column) and names(what, own.get(column.lower(), "")):
                        yield e
        for called, other in self.public.items():
            if names(table, called):
                found = (e for column, e in other.columns.items() if names(what, column))
                yield from map(self.of_one_unit, found)

    def _public(self) -> Iterator[tuple[str, Expression]]:
        for other in self.public.values():
            if isinstance(other, Elements) and not other.by_name:
                continue
            for column, expression in other.columns.items():
                if expression not in self.merged:
                    yield column, self.of_one_unit(expression)

    def of_one_unit(self, column: Expression) -> Expression:
        """The unit of a private table is, once it is joined, that of the table."""
        if isinstance(column, Call):
            return Call(column.function, tuple(map(self.of_one_unit, column.arguments)))
        if not isinstance(column, ColumnName):
            return column
        private = self.base.private.get(column.table or "")
        joined = any(join.table == column.table for join in self.joins)
        if private is None or not joined or private.unit.lower() != column.name.lower():
            return column
        return ColumnName(self.base.column(self.base.unit or "").name)

    def _unknown(self, name: str, *others: str, many: bool) -> Exception:
        if many:
            return refused(name, "is in two tables", "write table.column")
        lists = [one.name for one in self.base.columns.values() if one.is_list]
        if self.per_unit is None and name.lower() in (one.lower() for one in lists):
            raise of_lists(name)
        known = [*self.columns, *(column for column, _ in self._public())]
        lowered = {column.lower(): column for column in known}
        near = get_close_matches(name.lower(), lowered, n=1)
        named = {one.lower(): f'"{one[:60]}"' for one in (name, *others)}
        missing = [*named.values()]
        listed = ", ".join(map(quoted, known[:_MOST_COLUMNS]))
        listed += ", ..." if len(known) > _MOST_COLUMNS else ""
        end = "" if listed.endswith(".") else "."
        meant = f"Columns: {listed}{end} A text is written in single quotes."
        if self.base.file is not None:  # else its columns are those of the source
            meant += " Declare others on the card."
        if name.lower() in lowered:  # in another table than the one that stands before it
            meant = f"Join the table that has it first, or name another table. {meant}"
        elif near:
            others_too = f" {meant}" if len(missing) > 1 else ""
            meant = f'Did you mean "{lowered[near[0]]}"?{others_too}'
        what = ", ".join(missing[:_MOST_NAMES])
        several = "s" if len(missing) > 1 else ""
        return refused(name, f"No column{several} {what}.", meant)


def rows_of(card: DataCard) -> SelectedRows:
    """The card's table as it is."""
    columns = {column.name: ColumnName(column.name) for column in card.columns.values()}
    linked = {one.name: one.name for one in card.through}
    return SelectedRows(card, card.name, columns, {}, linked=linked)


def with_column(rows: SelectedRows, name: str, expression: Expression) -> SelectedRows:
    """The rows with one more column, or with another meaning of an old one."""
    others = {old: e for old, e in rows.columns.items() if old.lower() != name.lower()}
    return replace(rows, columns={**others, name: typed(expression, card_types(rows.card))})


def add_column(columns: dict[str, Expression], name: str, expression: Expression) -> None:
    """Put another column beside these; two of one name have no meaning in a sub-query."""
    if name.lower() in (old.lower() for old in columns):
        problem = "names two columns of a sub-query"
        raise refused(name, problem, "list the columns, each under a name of its own")
    columns[name] = expression


def joined_with(rows: SelectedRows, name: str, on: Mapping[str, str]) -> SelectedRows:
    """The rows joined with a table of the card where these columns are equal: {own: the table's}.

    Columns of one name become one, as with USING.
    """
    other = other_rows(other_table(rows.base, name))
    pairs = [(rows.named(own), _column(other, theirs)) for own, theirs in on.items()]
    theirs = [column for _, column in pairs]
    same = [c for own, c in zip(on, theirs, strict=True) if own.lower() == c.name.lower()]
    return _with_join(rows, replace(other, called=name), pairs, same)


def joined(rows: SelectedRows, join: Any, other: OtherRows) -> SelectedRows:
    """The rows joined with those of another table as a JOIN says."""
    on, using = equal_columns(join)
    _check_once(rows, other)
    if using:
        theirs = [_column(other, name_of(one)) for one in using]
        pairs = [(rows.named(name_of(one)), c) for one, c in zip(using, theirs, strict=True)]
        return _with_join(rows, other, pairs, theirs)
    return joined_on(rows, [on], other)


def joined_on(rows: SelectedRows, tests: list[Any], other: OtherRows) -> SelectedRows:
    """The rows joined where all this holds: equalities of columns, and what else is said."""
    inner = replace(rows, public={**rows.public, other.called or "": other})
    parts = [part for test in tests for part in _conditions(translated(test, inner.resolve))]
    pairs = {part: pair for part in parts if (pair := _pair(rows, other.table, part)) is not None}
    if not pairs:
        raise refused("JOIN ... ON", "is not an equality of columns", EQUAL_COLUMNS)
    found = _with_join(rows, other, list(pairs.values()), [])
    only = (found.of_one_unit(part) for part in parts if part not in pairs)
    besides = tuple(condition(part, found.card, "JOIN ... ON") for part in only)
    return replace(found, where=(*found.where, *besides))


def equal_columns(join: Any) -> tuple[Any, Any]:
    """What ON or USING of a plain JOIN says."""
    _, on, using, kind, side = taken(join, "this", "on", "using", "kind", "side")
    if side or str(kind or "INNER").upper() == "OUTER":
        problem = "is an outer join: it keeps rows that meet no row of the other table"
        remedy = "write JOIN, which leaves such rows out"
        raise refused(f"{side} JOIN".strip().upper(), problem, remedy)
    if str(kind or "INNER").upper() != "INNER" or not (on or using):
        raise refused("JOIN", "is not a plain join on equal columns", EQUAL_COLUMNS)
    return on, using


def table_named(source: Any, clause: str, remedy: str) -> tuple[Any, Any]:
    """The name and the alias of a plain table in FROM or JOIN."""
    if kind_of(source) != "Table" or kind_of(source.this) != "Identifier":
        raise refused(clause, "names no table", remedy)
    identifier, alias = taken(source, "this", "alias")
    return identifier, alias


_MOST_NAMES, _MOST_COLUMNS = 8, 24  # that a refusal lists
_BY_UNIT = "SELECT ... FROM (SELECT unit, COUNT(*) AS n FROM ... GROUP BY unit)"


def itself(name: str) -> Exception:
    """A refusal to join the table with its own rows."""
    problem = "is the table itself, and would bring rows of other units together"
    return refused(f"JOIN {name}", problem, "ask of its rows alone, or by unit: " + _BY_UNIT)


def known_table(card: DataCard, identifier: Any) -> OtherTable | None:
    """The other table of the card that this name means, if there is one."""
    return next((table for table in _others(card) if names(identifier, table.name)), None)


def _others(card: DataCard) -> list[OtherTable]:
    return [*card.public.values(), *card.private.values()]


def other_table(card: DataCard, name: str) -> OtherTable:
    """The other table of this name, in any case."""
    for table in _others(card):
        if table.name.lower() == name.lower():
            return table
    if name.lower() == card.name.lower():
        raise itself(name)
    problem = "is not a public table of the card, nor a private one"
    remedy = "declare it under [public], if everybody may see it, or under [private]"
    raise refused(f"JOIN {name}", problem, remedy)


def _column(other: OtherRows, name: str) -> ColumnName:
    for column, expression in other.columns.items():
        if column.lower() == name.lower() and isinstance(expression, ColumnName):
            return expression
    known = ", ".join(n for n, e in other.columns.items() if isinstance(e, ColumnName))
    raise refused(name, f"is not a column of {other.table.name}", f"use one of {known}")


def _with_join(
    rows: SelectedRows,
    other: OtherRows,
    pairs: list[tuple[Expression, ColumnName]],
    merged: Iterable[ColumnName],
) -> SelectedRows:
    _check_once(rows, other)
    table, called = other.table, other.called
    taken_names = [rows.called, *rows.public]
    if called is None:
        called = next(
            n for n in (f"_{i}" for i in range(len(taken_names) + 1)) if n not in taken_names
        )
    if called.lower() in (name.lower() for name in taken_names if name is not None):
        raise refused(f"JOIN {called}", "has the name of another table", "rename it with AS")
    if not pairs:
        raise refused(f"JOIN {table.name}", "has no equal columns", "name some")
    lookup = card_types(rows.card)
    for own, theirs in pairs:
        type_of(call("=", own, theirs), lookup)
    join: Join = PublicJoin(table=table.name, on=tuple(pairs))
    if isinstance(table, PrivateTable):
        join = UnitJoin(table=table.name, on=tuple(pairs))
        check_unit_join(join, rows.card)
    found = replace(
        rows,
        public={**rows.public, called: other},
        merged=rows.merged | frozenset(merged),
        joins=(*rows.joins, join),
    )
    return replace(found, where=(*rows.where, *map(found.of_one_unit, other.where)))


def _check_once(rows: SelectedRows, other: OtherRows) -> None:
    if any(old.table == other.table.name for old in rows.joins):
        raise refused(f"JOIN {other.table.name}", "is joined twice", "join it once")


def _conditions(test: Expression) -> Iterator[Expression]:
    """The conditions of which AND makes one."""
    if isinstance(test, Call) and test.function == "and":
        for part in test.arguments:
            yield from _conditions(part)
    else:
        yield test


def _pair(
    rows: SelectedRows, table: OtherTable, part: Expression
) -> tuple[Expression, ColumnName] | None:
    """Both sides of an equality of a column of this table with something of these rows."""
    match part:
        case Call("=", (own, ColumnName(_, name) as other)) if name == table.name:
            pass
        case Call("=", (ColumnName(_, name) as other, own)) if name == table.name:
            pass
        case _:
            return None
    sides = {column.table for column in columns_in(own)}
    if not sides or table.name in sides:
        return None
    return typed(own, card_types(rows.card)), other


def item_of(item: Any) -> tuple[str | None, Any]:
    """An item of SELECT: its name, if it has one, and what it is."""
    if kind_of(item) == "Alias":
        value, alias = taken(item, "this", "alias")
        return name_of(alias), value
    if kind_of(item) == "Column" and kind_of(item.this) == "Identifier":
        return name_of(item.this), item
    return None, item


def tables_of(card: DataCard) -> str:
    """Which tables there are, as a remedy."""
    others = ", ".join(map(quoted, (*card.public, *card.private)))
    return f"write FROM {quoted(card.name)}" + (f"; to JOIN there are {others}" if others else "")


def row_by_row(select: Any, rows: SelectedRows) -> SelectedRows:
    """A sub-query that works row by row: its columns written out."""
    (items,) = taken(select, "expressions", ignored=("from_", "joins", "where", "with_"))
    columns = columns_of(items, rows)
    made = replace(rows, called=None, columns=columns, public={}, merged=frozenset(), linked={})
    return replace(made, with_point=_with_point(items, rows))


def columns_of(items: list[Any], rows: SelectedRows) -> dict[str, Expression]:
    """The columns that a sub-query selects; each is written out wherever it is named."""
    columns: dict[str, Expression] = {}
    for item in items:
        if kind_of(item) == "Star":
            taken(item)
            for name, expression in rows.outputs().items():
                add_column(columns, name, expression)
            continue
        given, value = item_of(item)
        if given is None:
            raise refused("a column of a sub-query", "has no name", "name it with AS")
        # written out wherever it is named, and counted there
        expression = typed(translated(value, rows.resolve), card_types(rows.card))
        add_column(columns, given, expression)
    return columns


def grouped_by_unit(select: Any, rows: SelectedRows) -> SelectedRows:
    """A sub-query grouped by the unit: its rows, under the names that it gives their columns."""
    parts = ("expressions", "group", "having")
    items, group, having = taken(select, *parts, ignored=("from_", "joins", "where", "with_"))
    named: list[tuple[str, Any]] = []
    for item in items:
        given, value = item_of(item)
        if given is None:
            raise refused("a column of a sub-query", "has no name", "name it with AS")
        named.append((given, value))
    (listed,) = taken(group, "expressions")
    made = UnitColumns(rows, listed or [], named, by_unit(rows.base))
    columns: dict[str, Expression] = {}
    for name, value in named:
        add_column(columns, name, made.selected(name, value))
    where = () if having is None else (made.condition(taken(having, "this")[0]),)
    found = rows_per_unit(rows, made.per_unit, columns, where)
    return replace(found, with_point=_with_point(items, rows))


def _with_point(items: list[Any], rows: SelectedRows) -> frozenset[str]:
    """The columns that a SELECT makes of numbers with a point, or of such columns."""
    found: set[str] = set()
    for item in items:
        name, value = item_of(item)
        named = [one.name.lower() for one in value.find_all(exp.Column)]
        if kind_of(item) == "Star":
            found |= rows.with_point
        elif name is not None and (is_with_point(value) or not rows.with_point.isdisjoint(named)):
            found.add(name.lower())
    return frozenset(found)


def rows_per_unit(
    rows: SelectedRows,
    per_unit: PerUnit,
    columns: Mapping[str, Expression] | None = None,
    where: tuple[Expression, ...] = (),
) -> SelectedRows:
    """The rows of a sub-query grouped by the unit; its columns mean themselves, unless given."""
    found = SelectedRows(rows.base, None, {}, {}, where=where, per_unit=per_unit)
    own = {name: ColumnName(name) for name in found.card.columns}
    return replace(found, columns=own if columns is None else columns)


def by_unit(card: DataCard) -> str:
    """What to do about a sub-query that mixes units."""
    if card.unit is None:
        return "ask it by itself"
    return f"group it by {quoted(card.unit)}, or ask it by itself"
