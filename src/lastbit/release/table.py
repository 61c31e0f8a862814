"""`table`: what is asked, declared by a card or by arguments, or found on a server."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import date
from numbers import Integral
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, overload

from lastbit.arguments import check_kind, listed, nearest
from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import whole
from lastbit.privacy import ADD_REMOVE, CHANGE_ONE, Neighbours
from lastbit.release.private_table import Table, as_private
from lastbit.servers import Secret, is_web_address
from lastbit.tables import (
    TYPES,
    Budget,
    Column,
    ColumnType,
    DataCard,
    LinkedTable,
    PublicTable,
    Source,
    StoredType,
    check_budget,
    check_names,
    columns_of,
    is_connection,
    is_lazy,
    is_relation,
    meant_name,
    name_on_card,
    read_card,
    rows_of,
    sealed,
    snapshot,
    source_of,
    spark_kind,
    spark_snapshot,
    with_way,
)

if TYPE_CHECKING:  # what speaks to servers is slow to load
    from lastbit.release.remote import RemoteTable

Columns: TypeAlias = Mapping[str, Any] | Iterable[Column]
"""Declared columns: by `Column(...)`, as a card writes it, or by name and type alone.

Not a mapping to these three: of a dict with several of them mypy takes what all have in common.
"""


def _source(source: Any, name: str | None, table: str | None = None) -> tuple[Source, str]:
    if name is not None and (not isinstance(name, str) or not name):
        raise WrongType("name", problem="is not a name", remedy='pass, say, "visits"')
    if table is not None and (not isinstance(table, str) or not table):
        raise WrongType("table", problem="is not a name", remedy='pass, say, table="visits"')
    if isinstance(source, str | Path | list | tuple):
        paths = [source] if isinstance(source, str | Path) else source
        found = source_of(*map(str, paths), table=table)
        stem = Path((found.paths or paths)[0]).name.split(".")[0] or "rows"
        return found, name or (stem if found.table is None else found.table.rpartition(".")[2])
    kind = _kind(source)
    if table is not None and kind != "connection":
        problem = "is for DuckDB files, servers and connections"
        raise InvalidParameter("table", problem=problem, remedy="leave it out")
    if kind == "a frame of Spark":
        return spark_snapshot(held(source)), name or "rows"
    if kind in ("lazy", "relation", "connection"):
        return snapshot(source, table), name or (table or "rows").rpartition(".")[2]
    if kind == "frame":
        return held(source), name or "rows"
    raise WrongType("source", problem=f"is {kind}", remedy=_REMEDIES[kind])


_REMEDIES = MappingProxyType(
    {
        "a list or dict of values": "pass pandas.DataFrame(...) or polars.DataFrame(...) of them",
        "an array": 'pass pandas.DataFrame(array, columns=["patient", "cost"])',
        "a connection to another database": 'pass "postgresql://reader@db/clinic" and table='
        '"public.visits"; of others pandas.read_sql(...), or write Parquet',
        "a dataset": "pass dataset.to_table(), or the folder's path",
        "a frame of Spark Connect": "write it as Parquet, or use a session that is not remote",
        "a distributed frame": "pass frame.toPandas() or frame.compute(), or write Parquet",
        "a reader of rows": "pass reader.read_all()",
        "neither a file nor a frame": "pass a card, a .csv, .parquet or .duckdb file, a folder, a "
        "DataFrame, or a relation of DuckDB",
    }
)


def _kind(source: Any) -> str:
    """What is meant, in a word, or what it is instead; not a value of it is looked at.

    Apart from where it is refused: the frames of an error hold their locals.
    """
    given = source.frame if isinstance(source, Source) else source
    root = type(given).__module__.partition(".")[0]
    if root == "pyspark":  # whose frames give Arrow streams as well, another one each time
        return spark_kind(given)
    if is_lazy(given):
        return "lazy"
    if is_relation(given):
        return "relation"
    if is_connection(given):
        return "connection"
    if hasattr(given, "__arrow_c_stream__") or root == "pandas":
        return "frame"
    if isinstance(given, list | tuple | dict | set):
        return "a list or dict of values"
    if root == "numpy":
        return "an array"
    if root in ("sqlite3", "sqlalchemy", "psycopg", "psycopg2", "adbc_driver_manager", "pymysql"):
        return "a connection to another database"
    if root == "pyarrow":
        return "a reader of rows" if "Reader" in type(given).__name__ else "a dataset"
    if root in ("dask", "snowflake"):
        return "a distributed frame"
    return "neither a file nor a frame"


def held(source: Any) -> Any:
    """Paths as they are; anything else in a value whose repr hides it, as errors show locals."""
    paths = [source] if isinstance(source, str | Path) else source
    if isinstance(paths, list | tuple) and paths and all(isinstance(p, str | Path) for p in paths):
        return source
    return source if isinstance(source, Source) else Source(kind="frame", frame=source)


def _types(source: Source, *, declared: Collection[str] | None) -> dict[str, StoredType]:
    """The columns of a source. If its names look like values, no error and no frame holds them."""

    def checked() -> dict[str, StoredType]:
        types = columns_of(source)
        if declared is not None:
            check_names(source, [name for name in types if name.lower() not in declared])
        return types

    return sealed(checked, words="the source could not be read; check that it is whole")


def _plain_types(source: Source, *, declared: Collection[str] | None) -> dict[str, ColumnType]:
    """The same of a table that is joined, without its lists: only the table's own are asked of."""
    found = _types(source, declared=declared)
    return {name: kind for name, kind in found.items() if kind in TYPES}


def _declarations(columns: Columns | None) -> dict[str, Column | ColumnType]:
    """What is declared of columns, by their names in small letters: columns, or types alone."""
    problem = "are not declared as columns"
    remedy = 'pass Column(...), or a type by its name: {"distance": "integer"}'
    if isinstance(columns, Mapping):
        given = list(columns.items())
    else:
        words: Any = {"remedy": remedy, "problem": problem}
        several = [] if columns is None else listed(columns, "columns", **words)
        given = [(getattr(column, "name", ""), column) for column in several]
    found: dict[str, Column | ColumnType] = {}
    for name, column in given:
        if isinstance(column, Column):
            found[column.name.lower()] = column
        elif isinstance(column, Mapping) and isinstance(name, str) and name:
            found[name.lower()] = _declared(name, column)
        elif isinstance(column, str) and isinstance(name, str) and name:
            kind = cast(ColumnType, column)
            Column(name=name, type=kind)  # refuses unknown types
            found[name.lower()] = kind
        else:
            raise WrongType("columns", problem=problem, remedy=remedy)
    return found


_DECLARED = ("type", "bounds", "step", "keys", "nullable")


def _declared(name: str, said: Mapping[str, Any]) -> Column:
    """A column as a card declares it: {"type": "number", "bounds": [0, 500]}."""
    for field in said:
        if field not in _DECLARED:
            meant = nearest(field, _DECLARED) if isinstance(field, str) else ""
            remedy = f"{meant}use {', '.join(_DECLARED)}"
            raise InvalidParameter(
                f"column {name[:60]}", problem="has a field that is not known", remedy=remedy
            )
    if "type" not in said:
        remedy = f"use one of {', '.join(TYPES)}"
        raise InvalidParameter(f"column {name[:60]}: type", problem="is missing", remedy=remedy)
    return Column(**{"name": name, **said})


Through: TypeAlias = Mapping[str, tuple[Any, Mapping[str, str]]]
"""Tables on the way to the unit, in order: of each where it is, and which columns are equal."""


def _linked(
    through: Through | None, types: Mapping[str, StoredType]
) -> tuple[list[LinkedTable], dict[str, tuple[Source, ColumnType]]]:
    """The tables on the way, and their columns by the names that they have beside `types`."""
    example = '{"orders": ("orders.parquet", {"order_id": "id"})}'
    steps: list[LinkedTable] = []
    found: dict[str, tuple[Source, ColumnType]] = {}
    for name, given in _by_name(through, "through", example).items():
        where, on = given if isinstance(given, tuple) and len(given) == 2 else (None, {})
        texts = isinstance(on, Mapping) and all(isinstance(x, str) for p in on.items() for x in p)
        if not (on and texts):
            what, problem = f"through: {name[:60]}", "is not a table, and columns that are equal"
            raise WrongType(what, problem=problem, remedy=f"pass through={example}")
        source, _ = _source(held(where), name)
        called = {}
        for own, kind in _plain_types(source, declared=set()).items():
            known = name_on_card(name, own, [*types, *found])
            called[known], found[known] = own, (source, kind)
        known_to = [(one.name, one.columns) for one in steps]
        pairs = tuple((meant_name(own, known_to), other) for own, other in on.items())
        steps.append(LinkedTable(name=name, source=source, on=pairs, columns=called))
    return steps, found


def _joined_types(
    columns: Mapping[str, Column], steps: Iterable[LinkedTable], untyped: Collection[str]
) -> dict[str, Column]:
    """The columns, those that CSV files have no type for read as what they are compared with."""
    found = dict(columns)
    for step in steps:
        for own, other in step.on:
            pair = [n for n in found if n.lower() == own.lower()]
            pair += [
                known for known, there in step.columns.items() if there.lower() == other.lower()
            ]
            if len(pair) == 2 and pair[1].lower() in untyped:
                found[pair[1]] = replace(found[pair[1]], type=found[pair[0]].type)
            elif len(pair) == 2 and pair[0].lower() in untyped:
                found[pair[0]] = replace(found[pair[0]], type=found[pair[1]].type)
    return found


def _columns(
    source: Source,
    columns: Columns | None,
    keys: Mapping[str, Iterable[Any]] | None,
    through: Through | None,
) -> tuple[dict[str, Column], frozenset[str], tuple[LinkedTable, ...]]:
    """The columns as declared, the others as the source names and types them.

    Also those, in small letters, whose type was not stated: CSV files state none; and the tables
    on the way to the unit, whose columns are among them.
    """
    own_types = _types(source, declared=_declarations(columns))
    steps, linked = _linked(through, own_types)
    known_to = [(one.name, one.columns) for one in steps]
    declared = {
        meant_name(column, known_to).lower(): said
        for column, said in _declarations(columns).items()
    }
    keyed = {
        meant_name(column, known_to).lower(): _list_of_keys(column, values)
        for column, values in _by_name(keys, "keys", '{"region": ["north", "south"]}').items()
    }
    types: dict[str, StoredType] = {
        **own_types,
        **{name: kind for name, (_, kind) in linked.items()},
    }
    sources = {name: where for name, (where, _) in linked.items()}
    known = {column.lower() for column in types}
    for lower in (*declared, *keyed):
        if lower not in known:
            remedy = nearest(lower, types).strip() or (
                "check its name; a nested column, time of day or duration must be converted first"
            )
            problem = "is not in the source"
            raise InvalidParameter(f"column {lower}", problem=problem, remedy=remedy)
    found, untyped = {}, set()
    for name, stated in types.items():
        lower = name.lower()
        said, values = declared.get(lower), keyed.get(lower)
        if isinstance(said, Column):
            one = replace(said, name=name) if name in sources else said
        else:
            where = sources.get(name, source)
            meant = said or (None if values is None else _type_of_keys(values, where, stated))
            if where.kind == "csv" and meant is None:
                untyped.add(lower)
            kind = meant or stated
            one = Column(name=name, type=kind, step=1 if kind == "integer" else None)
        if values is not None:
            floats = one.type == "integer" and not isinstance(said, Column) and stated == "number"
            one = replace(one, keys=tuple(_key(value, floats=floats) for value in values))
        found[one.name] = one
    joined = {own.lower() for step in steps for own, _ in step.on}
    return _joined_types(found, steps, untyped), frozenset(untyped - joined), tuple(steps)


def _by_name(given: Any, name: str, example: str) -> dict[str, Any]:
    """What is declared by name."""
    remedy = f"pass {name}={example}"
    check_kind(given, (Mapping, type(None)), name, remedy=remedy)
    for one in given or ():
        check_kind(one, str, name, remedy=remedy)
    return dict(given or {})


def _list_of_keys(column: str, values: Any) -> tuple[Any, ...]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        remedy = 'pass ["north", "south"]'
        raise WrongType(f"keys of {column}", problem="are not a list", remedy=remedy)
    return tuple(values)


def _type_of_keys(values: tuple[Any, ...], source: Source, stated: StoredType) -> ColumnType | None:
    """The type that declared keys say, where the source has none, or pandas has made floats of it.

    That is what pandas does with whole numbers, some of which are missing.
    """
    kinds = {type(_key(value, floats=True)) for value in values} - {type(None)}
    if len(kinds) != 1:
        return None
    (kind,) = kinds
    if source.kind == "csv":
        plain: dict[type, ColumnType] = {int: "integer", bool: "boolean", date: "date", str: "text"}
        return plain.get(kind)
    roots = {one.__module__.partition(".")[0] for one in type(source.frame).__mro__}
    return "integer" if kind is int and stated == "number" and "pandas" in roots else None


def _key(value: Any, *, floats: bool) -> Any:
    """A whole number as an int, whatever library it comes from; 3.0 as well where `floats`."""
    if type(value) is int:  # most are, and to ask for any Integral takes long
        return value
    if isinstance(value, Integral) and not isinstance(value, bool):
        return int(value)
    return int(value) if floats and isinstance(value, float) and value.is_integer() else value


@overload
def table(source: str, *, token: str) -> RemoteTable: ...


@overload
def table(
    source: Any,
    *,
    unit: str | None = None,
    each_row: bool = False,
    max_rows: int | None = None,
    max_groups: int | None = None,
    at_most: int | None = None,
    columns: Columns | None = None,
    keys: Mapping[str, Iterable[Any]] | None = None,
    public: Mapping[str, Any] | None = None,
    private: Mapping[str, Table] | None = None,
    through: Through | None = None,
    neighbours: Neighbours | Literal["add-remove", "change-one"] = ADD_REMOVE,
    budget: Budget | None = None,
    name: str | None = None,
    table: str | None = None,
) -> Table: ...


def table(
    source: Any,
    *,
    unit: str | None = None,
    each_row: bool = False,
    max_rows: int | None = None,
    max_groups: int | None = None,
    at_most: int | None = None,
    columns: Columns | None = None,
    keys: Mapping[str, Iterable[Any]] | None = None,
    public: Mapping[str, Any] | None = None,
    private: Mapping[str, Table] | None = None,
    through: Through | None = None,
    neighbours: Neighbours | Literal["add-remove", "change-one"] = ADD_REMOVE,
    budget: Budget | None = None,
    name: str | None = None,
    table: str | None = None,
    token: str | None = None,
) -> Table | RemoteTable:
    """A table to ask: a data card, files, rows that a program holds, or one of a server.

    Files are paths that end in .csv, .csv.gz or .parquet, patterns (`visits/*.parquet`), a folder
    of them, in which `year=2024` is a column, the folder of a Delta table, or a .duckdb file, whose
    table is named by `table`.
    Rows are a frame of pandas, Polars or Arrow, a lazy frame or a relation of DuckDB, which are run
    once, here, or a connection of DuckDB and the name of a stored `table`, which is copied.

    With a card (`table("visits.toml")`) everything is declared there. Else `unit` names the column
    of the privacy unit (or `each_row=True`), and `max_rows` how many rows of one unit count:
    where it has more, all of them count for less. One unit contributes to at most `max_groups`
    groups (max_rows of them, unless declared): where it has more keys, that many are chosen by a
    keyed hash, afresh in every release. `at_most` is the number of rows that surely nobody exceeds,
    if that is publicly known: whole intervals need not assume it then. `columns` and `keys` declare
    what else is: {"cost": Column(...)}, or {"cost": "integer"} where the type is all; `public`
    gives tables to join with, by name, and `private` further tables of the same units, each made by
    this function; those are joined on the unit. `through` gives the tables through which rows reach
    their unit, in order, each with the columns that are equal: with {"orders": ("orders.parquet",
    {"order_id": "id"})} the unit is "orders.customer". Names and types of other columns are taken
    from the source; no value is looked at. A CSV file has no types: a column is text, unless it is
    aggregated as a number.

    With the address of a table that `lastbit serve` has (`table("https://host/visits")`), the
    server's card declares everything; `token` is the one to sign in by, else LASTBIT_TOKEN of the
    environment. What is given back, a RemoteTable, has the same steps, `explain` and `release`.

    >>> import duckdb
    >>> visits = duckdb.sql("SELECT range // 3 AS patient, 'a' AS region FROM range(30)")
    >>> table(visits.to_arrow_table(), unit="patient", max_rows=3, name="visits").group_by("region")
    <Table visits: by region>
    """
    source, secret, token = held(source), None if token is None else Secret(token), None
    remote = is_web_address(source)
    on_card = isinstance(source, str | Path) and str(source).lower().endswith(".toml")
    if remote or on_card:
        limits = (max_rows, max_groups, at_most)
        given = (unit, *limits, columns, keys, public, private, through, budget, name, table)
        if each_row or neighbours is not ADD_REMOVE or any(part is not None for part in given):
            what = "the address of a server's table" if remote else "the card"
            remedy = f"pass {what} alone" + ("; a file: download it first" if remote else "")
            raise InvalidParameter("table", problem="is declared by its card", remedy=remedy)
        if remote:
            # late: what speaks to servers is slow to load
            from lastbit.release.remote import remote_table

            return remote_table(source, secret)
    if secret is not None:
        raise InvalidParameter("token", problem="is for https:// addresses", remedy="drop it")
    if on_card:
        return Table(rows=rows_of(read_card(source)))
    if (unit is None) != (each_row is True):
        problem = "is missing" if unit is None else "is given beside each_row=True"
        remedy = 'name the column of the person, unit="patient_id", or pass each_row=True if each '
        remedy += "row is another person"
        raise InvalidParameter("unit", problem=problem, remedy=remedy)
    relations = [*(r for r in (ADD_REMOVE, CHANGE_ONE) if r.relation == neighbours), neighbours]
    related = relations[0]
    if not isinstance(related, Neighbours):
        raise InvalidParameter(
            "neighbours", problem="is unknown", remedy='pass "add-remove" or "change-one"'
        )
    remedy = "pass Budget(...), say Budget(epsilon=3)"
    check_kind(budget, (Budget, type(None)), "budget", remedy=remedy)
    check_budget(budget)
    place, called = _source(source, name, table)
    rows = 1 if max_rows is None else whole(max_rows, "max_rows", least=1)
    groups = None if max_groups is None else whole(max_groups, "max_groups", least=1)
    joined = {}
    for known_as, other in _by_name(public, "public", '{"regions": "regions.csv"}').items():
        if isinstance(source, Source) and other is source.frame and not is_connection(other):
            problem, remedy = "is the table itself", "join only with tables that everybody may see"
            raise InvalidParameter(f"public table {known_as[:60]}", problem=problem, remedy=remedy)
        file, alias = _source(held(other), known_as)
        types = _plain_types(file, declared=None)
        joined[known_as] = PublicTable(name=alias, source=file, columns=types)
    described, untyped, steps = _columns(place, columns, keys, through)
    if isinstance(unit, str):
        unit = meant_name(unit, [(one.name, one.columns) for one in steps])
    if isinstance(unit, str) and unit.lower() not in {column.lower() for column in described}:
        remedy = f"{nearest(unit, described)}use one of {', '.join(described)}"
        raise InvalidParameter(f"column {unit[:60]}", problem="is not on the card", remedy=remedy)
    check_kind(unit, (str, type(None)), "unit", remedy='pass unit="patient_id", say')
    card = DataCard(
        name=called,
        source=place,
        unit=unit,
        max_rows=rows,
        max_groups=max_rows if unit is not None and groups is None else groups,
        max_groups_assumed=unit is not None and groups is None and max_rows is not None,
        max_rows_open=unit is not None and max_rows is None,
        at_most=None if at_most is None else whole(at_most, "at_most", least=1),
        columns=described,
        unnamed=name is None and table is None and place.frame is not None,
        neighbours=related,
        budget=budget,
        public=joined,
        private={
            name: replace(as_private(other), name=name)
            for name, other in _by_name(private, "private", '{"labs": lb.table(...)}').items()
        },
        through=steps,
    )
    with_way(card)
    return Table(rows=rows_of(card), untyped=untyped - {(unit or "").lower()})
