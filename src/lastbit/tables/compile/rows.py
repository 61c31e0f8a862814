"""The rows that a query looks at, as SQL: columns cast, joins, filter, the values of expressions.

| name | its rows |
|---|---|
| t, p1, p2 ... | of the table and of joined ones, with the columns that are mentioned, cast to |
|  | the types of the card; what does not fit is missing. Where rows reach their unit |
|  | through other tables, t has been joined with these (`reached.py`). With UNNEST, t has |
|  | a row for each of the first MOST_ELEMENTS elements of a list |
| j1, j2 ... | of t and the joined rows that they meet, one join more in each |
| l1, l2 ... | the same, with the values of one more step (`steps.py`) |
| e | after joins and the filter: the unit, the keys, the value of every expression |
| r | those with a unit and a declared key; integers in place of values |

Theorem  one row of t becomes at most MOST_MATCHES rows: where units have several rows, `matches`
         says how many rows of each public table have equal join columns at most, and how many rows
         of one unit are kept of each private one (`units.py`), and UNNEST makes MOST_ELEMENTS; the
         backend refuses the question if their product is larger. That depends on public tables and
         the card alone
Checked  tests/tables/test_limits.py

Where the question has a sub-query grouped by the unit, t is made of its rows, `unit_rows`, which
`units.py` makes of the table by the same steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from types import MappingProxyType

from lastbit.errors import InvalidParameter
from lastbit.tables.card.schema import DataCard
from lastbit.tables.compile.dialect import Dialect, Family, Shown
from lastbit.tables.compile.expressions import Spelling
from lastbit.tables.compile.reached import reached_rows
from lastbit.tables.compile.steps import MIXED, Steps, Typed, evened
from lastbit.tables.limits import MOST_ELEMENTS, refused
from lastbit.tables.query.expression import (
    ColumnName,
    ColumnType,
    Expression,
    Value,
    starts_of_times,
    value_type,
)
from lastbit.tables.query.scan import GroupKey, Scan
from lastbit.tables.query.units import Join, ListJoin, PerUnit, PublicJoin, UnitColumn, UnitJoin

UNIT_ROWS = "unit_rows"
"""The rows of a sub-query grouped by the unit, in the statement."""


def relation(public: str | None = None) -> str:
    """The name, unquoted, under which a backend must show the table, or a public one."""
    return "lastbit_table" if public is None else f"lastbit_public {public}"


def private_relation(name: str) -> str:
    """The name, unquoted, under which a backend must show a private table that is joined."""
    return f"lastbit_private {name}"


AS_ON_THE_CARD: Mapping[str, Shown] = MappingProxyType({})
"""Where sources are shown by the names and types of the card, as DuckDB's are."""


class CompiledRows:
    """Gathers the columns and expressions that are needed, each once.

    `actual` says, by the name of `relation` or `private_relation`, what the engine shows there; a
    source that it leaves out is named so, and its columns are named and typed as on the card.
    `within` are the rows of the sub-query, if there is one, and `sub_query` its columns.
    """

    def __init__(
        self,
        query: Scan | PerUnit,
        card: DataCard,
        *,
        secret: str | None = None,
        dialect: Dialect,
        actual: Mapping[str, Shown] = AS_ON_THE_CARD,
    ) -> None:
        inner = query.per_unit if isinstance(query, Scan) else None
        self.query, self.secret, self.dialect, self.actual = query, secret, dialect, actual
        self.card = card
        self.within: CompiledRows | None = None
        self.sub_query: Mapping[str, ColumnType] | None = None
        if inner is not None:
            self.within = CompiledRows(inner, card, secret=secret, dialect=dialect, actual=actual)
            self.sub_query = _sub_query_columns(inner, self.within)
        self.own = relation() if inner is None else UNIT_ROWS
        self.way = card.through if inner is None else ()
        self.tables: dict[str | None, dict[str, tuple[str, Typed]]] = {None: {}}
        self.values: dict[str, tuple[str, Typed]] = {}
        self.steps = Steps(evens=dialect.evens)
        self.spelled = Spelling(self.column, self.steps, dialect).spelled
        self.unrolled = self._unrolled(query.joins)
        tables = [join for join in query.joins if not isinstance(join, ListJoin)]
        for join in tables:
            known = card.private if isinstance(join, UnitJoin) else card.public
            if join.table not in known or join.table in self.tables:
                raise refused("JOIN", "is not with one table of the card", "join each once")
            self.tables[join.table] = {}
        self.last = "t"
        self.unit = None if card.unit is None else self.column(ColumnName(card.unit)).sql
        for own in (own for step in self.way for own, _ in step.on):
            self.column(ColumnName(own))
        if self.unrolled is not None:
            self.column(ColumnName(self.unrolled))
        self.keys = [self.spelled(key.expression) for key in query.keys]
        self.names = [f"g{number}" for number in range(1, len(self.keys) + 1)]
        self.joins = [self._join(place, join) for place, join in enumerate(tables, start=1)]
        self.where = None if query.where is None else self.spelled(query.where)
        if self.where is not None and self.where.type not in ("boolean", None):
            raise refused("WHERE", "is neither true nor false", "write a comparison")

    @property
    def drawn_secret(self) -> str:
        """What decides which rows and keys a unit keeps."""
        if not self.secret:
            problem = "is missing, and units must choose"
            raise InvalidParameter("secret", problem=problem, remedy="draw one afresh")
        return self.secret

    def column(self, column: ColumnName) -> Typed:
        """The column in `t` or `p1`, `p2` ...: an alias, so that no name of a source is code."""
        if column.table not in self.tables:
            raise refused(f"table {str(column.table)[:60]}", "is not joined", "add JOIN ... ON")
        name, kind = self._declared(column)
        place = list(self.tables).index(column.table)
        known = self.tables[column.table]
        alias = f"{f'p{place}_' if place else ''}c{len(known) + 1}"
        typed = Typed(alias, kind, after=(place, 0))
        return known.setdefault(name.lower(), (name, typed))[1]

    def value(self, expression: Expression) -> Typed:
        """The expression as a column of `e`; truth values count as 0 and 1."""
        found = self.spelled(expression)
        known = self.values.setdefault(found.sql, (f"x{len(self.values) + 1}", found))
        return Typed(known[0], found.type)

    def until_filtered(self) -> Iterator[str]:
        """The parts up to `e`."""
        yield from self.sources()
        yield from self.stages()
        yield self.dialect.part("e", self.expressions())

    def sources(self) -> Iterator[str]:
        """The table and the joined ones: their columns cast, then checked, each once."""
        part, nested = self.dialect.part, self.dialect.nested
        for place, (table, columns) in enumerate(self.tables.items()):
            name = f"p{place}" if place else "t"
            if table is None and self.way:
                yield from reached_rows(self)
                continue
            even = table is None and self.steps.even
            cast, body = self.cast_rows(name, self._source(table), columns.values(), even=even)
            yield cast
            if table is not None and table in self.card.private:
                yield part(f"{name}_all", body, "step")
                yield from self._kept(name, table)
                continue
            if table is not None and self.card.unit is None:
                # only rows whose join columns occur once: a row of t meets at most one of them
                same = f"PARTITION BY {', '.join(self.joins[place - 1][1])}"
                body = f"SELECT *, count(*) OVER ({same}) AS copies FROM {nested(body)}"
                kept = ", ".join(typed.sql for _, typed in columns.values())
                body = f"SELECT {kept} FROM {nested(body)} WHERE copies = 1"
            yield part(name, body, "step")

    def cast_rows(
        self, name: str, source: str, columns: Iterable[tuple[str, Typed]], *, even: bool
    ) -> tuple[str, str]:
        """The part in which these columns of a source are cast, and the body that checks them."""
        every = list(columns)
        cast = self._even(every, source) if even else self._cast(every, source)
        checks = [
            f"{self.dialect.checked(typed.sql, typed.type or 'text')} AS {typed.sql}"
            for _, typed in every
        ]
        checks += ["mixed"] if even else []
        body = f"SELECT {', '.join(checks) or 'NULL AS c1'} FROM {name}_cast"
        return self.dialect.part(f"{name}_cast", cast, "step"), body

    def stages(self) -> Iterator[str]:
        """The joins in turn, and between them the steps, each from what comes before it."""
        self.last, number = "t", 0
        for place in range(len(self.joins) + 1):
            if place:
                body = f"SELECT * FROM {self.last} JOIN p{place} ON {self.joins[place - 1][0]}"
                self.last = f"j{place}"
                yield self.dialect.part(self.last, body)
            for selected in self.steps.after_joins(place):
                number += 1
                body = f"SELECT {selected} FROM {self.last}"
                yield self.dialect.part(f"l{number}", body, "step")
                self.last = f"l{number}"

    def matches(self) -> Iterator[str]:
        """For every join, in the sub-query too, how many rows one row can meet: a statement."""
        nested = self.dialect.nested
        yield from () if self.within is None else self.within.matches()
        yield from () if self.unrolled is None else (f"SELECT {MOST_ELEMENTS}",)
        for place, (table, columns) in enumerate(self.tables.items()):
            if table is None or self.card.unit is None:
                continue
            if table in self.card.private:
                yield f"SELECT {self.card.private[table].max_rows}"
                continue
            names = self.joins[place - 1][1]
            present = " AND ".join(f"{name} IS NOT NULL" for name in names)
            cast = self._cast(columns.values(), relation(table))
            rows = f"SELECT * FROM {nested(cast)} WHERE {present}"
            counts = f"SELECT count(*) AS n FROM {nested(rows)} GROUP BY {', '.join(names)}"
            yield f"SELECT coalesce(max(n), 0) FROM {nested(counts)}"

    def expressions(self) -> str:
        """The body of `e`."""
        wanted = [] if self.unit is None else [f"{self.unit} AS u"]
        wanted += [f"{key.sql} AS {name}" for name, key in zip(self.names, self.keys, strict=True)]
        wanted += [f"{value.sql} AS {name}" for name, value in self.values.values()]
        where = "" if self.where is None else f" WHERE {self.where.sql}"
        return f"SELECT {', '.join(wanted) or 'NULL AS x0'} FROM {self.last}{where}"

    def integers(self, columns: dict[str, str]) -> str:
        """The body of `r`."""
        wanted = [] if self.unit is None else ["u"]
        wanted += [*self.names, *(f"{sql} AS {name}" for sql, name in columns.items())]
        tests = [] if self.unit is None else ["u IS NOT NULL"]
        assert isinstance(self.query, Scan)
        for name, key in zip(self.names, self.query.keys, strict=True):
            tests += [] if key.values is None else [self._among(name, key.values)]
        every = self.dialect.condition.format(tests=" AND ".join(tests))
        where = f" WHERE {every}" if tests else ""
        body = f"SELECT {', '.join(wanted) or 'NULL AS x0'} FROM e{where}"
        if self.unit is None:
            return body
        nothing = ", ".join(["NULL"] * len(wanted))
        early = self.dialect.computed_early
        return early.format(body=body, nothing=nothing, place=self._place(relation()))

    def key_types(self) -> tuple[ColumnType, ...]:
        """The types of the keys, each one that few rows have their own value of."""
        assert isinstance(self.query, Scan)
        kinds = (typed.type for typed in self.keys)
        return tuple(map(_key_type, self.query.keys, kinds))

    def _source(self, table: str | None) -> str:
        if table is None:
            return self.own
        return private_relation(table) if table in self.card.private else relation(table)

    def _place(self, source: str) -> str:
        shown = self.actual.get(source)
        return self.dialect.identifier(source) if shown is None else shown.place

    def _shown(self, source: str, name: str, kind: ColumnType) -> tuple[str, Family]:
        """The column as the source has it: its name there, quoted, and the family of its type."""
        shown = self.actual.get(source)
        own, family = (name, kind) if shown is None else shown.columns[name.lower()]
        return self.dialect.identifier(own), family

    def _even(self, columns: Iterable[tuple[str, Typed]], source: str) -> str:
        """The same as `_cast`, written out row by row before anything is done to it."""
        every = list(columns)
        names = [f"{self.dialect.identifier(name)} AS {typed.sql}" for name, typed in every]
        raw = f"SELECT {', '.join([*names, MIXED])} FROM {self._rows_of(source, every)}"
        casts = [self._read(evened(typed.sql), typed, "other") for _, typed in every]
        return f"SELECT {', '.join([*casts, 'mixed'])} FROM {self.dialect.nested(raw)}"

    def _cast(self, columns: Iterable[tuple[str, Typed]], source: str) -> str:
        every = list(columns)
        casts = [
            self._read(own, typed, family)
            for name, typed in every
            for own, family in [self._shown(source, name, typed.type or "text")]
        ]
        return f"SELECT {', '.join(casts) or 'NULL AS c1'} FROM {self._rows_of(source, every)}"

    def _rows_of(self, source: str, columns: Iterable[tuple[str, Typed]]) -> str:
        """What FROM names: the source, or these columns of it with a row for each element."""
        place = self._place(source)
        if self.unrolled is None or source != self.own:
            return place
        named = [(name, self.dialect.identifier(name)) for name, _ in columns]
        listed = (
            f"{self.dialect.unrolled(own)} AS {own}" if name == self.unrolled else own
            for name, own in named
        )
        return self.dialect.nested(f"SELECT {', '.join(listed)} FROM {place}")

    def _read(self, sql: str, typed: Typed, family: Family) -> str:
        return f"{self.dialect.read(sql, typed.type or 'text', family)} AS {typed.sql}"

    def _among(self, name: str, values: tuple[Value, ...]) -> str:
        """Whether a key is declared. All ways say the same; they differ in time."""
        literal = self.dialect.literal
        present = [value for value in values if value is not None]
        numbers = [value for value in present if type(value) is int]
        tests = [f"{name} IS NULL"] if None in values else []
        if numbers and len(numbers) == len(present) == max(numbers) - min(numbers) + 1:
            tests.append(f"{name} BETWEEN {literal(min(numbers))} AND {literal(max(numbers))}")
        elif present:
            tests.append(self.dialect.among(name, [literal(value) for value in present]))
        return f"({' OR '.join(tests) or 'FALSE'})"

    def _kept(self, name: str, table: str) -> Iterator[str]:
        """Of each unit's rows in a private table, max_rows by least hash; then by their values.

        Law      a keyed hash of the columns that the question mentions orders a unit's rows, then
                 their values do, and the first max_rows are kept
        Theorem  what is kept is a function of the unit's own rows and of the secret: rows that the
                 order does not tell apart are equal in every column that is looked at
        Checked  tests/stability/
        """
        private = self.card.private[table]
        columns = {lower: typed for lower, (_, typed) in sorted(self.tables[table].items())}
        unit, most = columns[private.unit.lower()].sql, private.max_rows
        hashed = [(typed.sql, typed.type or "text") for typed in columns.values()]
        listed = ", ".join(typed.sql for typed in columns.values())
        order = f"{self.dialect.keyed_hash(hashed, self.drawn_secret)}, {listed}"
        yield from self.first_rows(name, listed, [unit], order, most)

    def first_rows(
        self, name: str, listed: str, same: list[str], order: str, most: int
    ) -> Iterator[str]:
        """Of the rows of `name`_all in which these columns are the same, the first in this order.

        Rows that miss one of these columns are left out.
        """
        part, nested, own = self.dialect.part, self.dialect.nested, ", ".join(same)
        place = f"row_number() OVER (PARTITION BY {own} ORDER BY {order}) AS place"
        owned = " AND ".join(f"{column} IS NOT NULL" for column in same)
        equal = " AND ".join(f"m.{column} = {name}_all.{column}" for column in same)
        among = f"EXISTS (SELECT 1 FROM {name}_many AS m WHERE {equal})"
        window = self.dialect.bounding == "window"
        ranked = f"SELECT *, {place} FROM {name}_all WHERE {owned if window else among}"
        chosen = f"SELECT {listed} FROM {nested(ranked)} WHERE place <= {most}"
        if window:
            yield part(name, chosen)
            return
        many = f"SELECT {own} FROM {name}_all WHERE {owned} GROUP BY {own}"
        yield part(f"{name}_many", f"{many} HAVING count(*) > {most}", "free")
        others = f"FROM {name}_all WHERE {owned} AND NOT {among}"
        yield part(name, f"{chosen}\n  UNION ALL SELECT {listed} {others}")

    def _unrolled(self, joins: Iterable[Join]) -> str | None:
        """The column of lists whose elements are rows: one, of a table whose units are named."""
        lists = [join.column for join in joins if isinstance(join, ListJoin)]
        if not lists:
            return None
        own = self.card.column(lists[0].name)
        alone = len(lists) == 1 and lists[0].table is None and self.sub_query is None
        if not alone or not own.is_list or self.card.unit is None:
            raise refused("UNNEST", "is not of one list of a unit", "ask of one column of lists")
        return own.name

    def _declared(self, column: ColumnName) -> tuple[str, ColumnType]:
        table, columns = column.table, self.sub_query
        if table is not None and table not in self.card.private:
            columns = self.card.public[table].columns
        elif table is not None or columns is None:
            own = (self.card if table is None else self.card.private[table]).column(column.name)
            if own.is_list and own.name != self.unrolled:
                raise refused(f"column {own.name[:60]}", "is of lists", "name its elements: UNNEST")
            return own.name, own.type
        for name, kind in columns.items():
            if name.lower() == column.name.lower():
                return name, kind
        what, place = f"column {column.name[:60]}", table or "the sub-query"
        raise refused(what, f"is not a column of {place}", "check its name")

    def _join(self, place: int, join: PublicJoin | UnitJoin) -> tuple[str, list[str]]:
        """The condition, and the joined table's columns in it."""
        conditions, columns = [], []
        for own, other in join.on:
            left, right = self.spelled(own), self.column(ColumnName(other.name, join.table))
            if left.after[0] >= place:
                problem = "looks at a table that is joined later"
                raise refused(f"JOIN {join.table}", problem, "join that table first")
            if left.type != right.type or left.type == "number":
                problem = "compares numbers that are not whole, or two types"
                remedy = "join on whole numbers, text or dates of one type"
                raise refused(f"JOIN {join.table}", problem, remedy)
            conditions.append(f"{left.sql} = {right.sql}")
            columns.append(right.sql)
        if not conditions:
            raise refused("JOIN", "has no condition", "name equal columns")
        return " AND ".join(conditions), columns


def _sub_query_columns(inner: PerUnit, rows: CompiledRows) -> Mapping[str, ColumnType]:
    """The unit, the keys and the columns of a sub-query, with their types."""
    unit = rows.card.column(rows.card.unit or "")
    found: list[tuple[str, ColumnType]] = [(unit.name, unit.type)]
    for key, typed in zip(inner.keys, rows.keys, strict=True):
        if typed.type is None or typed.type == "number":
            problem = "is of type number, or always missing"
            raise refused(f"GROUP BY {key.name}", problem, "group by CAST(x AS BIGINT) or bin(...)")
        found.append((key.name, typed.type))
    found += [(part.name, _column_type(part, rows)) for part in inner.columns]
    return dict(found)


def _column_type(part: UnitColumn, rows: CompiledRows) -> ColumnType:
    """The type of a column of a sub-query, as `units.py` spells it."""
    kind = None if part.expression is None else rows.value(part.expression).type
    if part.function in ("count", "count_distinct"):
        return "integer"
    if kind is None or (kind not in ("integer", "number") and part.function in ("sum", "mean")):
        raise refused(part.name, f"needs numbers, not {kind or 'nothing'}", "take numbers")
    gridded = part.bounds is not None and part.step not in (None, Fraction(1))
    return "number" if part.function == "mean" or (part.function == "sum" and gridded) else kind


def _key_type(key: GroupKey, kind: ColumnType | None) -> ColumnType:
    shared = kind == "timestamp" and starts_of_times(key.expression)
    if kind not in ("integer", "text", "boolean", "date") and not shared:
        problem = "groups by values of which each row may have its own"
        remedy = "group by bin(x, 0, 10, 20), start_of_month(d), or whole numbers"
        raise refused(f"GROUP BY {key.name[:60]}", problem, remedy)
    for value in key.values or ():
        if value is not None and value_type(value) != kind:
            problem = f"has a declared key that is not of type {kind}"
            remedy = "declare keys of the column's own type"
            raise refused(f"GROUP BY {key.name[:60]}", problem, remedy)
    assert kind is not None  # what is always missing was refused above
    return kind
