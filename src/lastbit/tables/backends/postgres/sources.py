"""Tables of a PostgreSQL server: where they are, what they are, and which columns they have.

Law      what a row is read as is a function of that row and of the table's definition. Settings
         that could change the meaning of a statement are ours, whatever the server, the database
         or the role has set, and are read back
Theorem  all that one question reads is of one state: the transaction is REPEATABLE READ, and a
         table that was looked at keeps its definition until the end of it, by its lock
Theorem  no row is hidden and none is computed: tables and materialised views hold rows; a view, a
         foreign table or partition is refused, so are columns that are computed as they are read.
         With row_security off the server refuses a table whose rows it would hide. A stored
         generated column is a value of its row like any other
Refused  versions before 15; servers that only speak PostgreSQL's language; databases that are not
         in UTF-8, whose texts have other bytes; types for which this room has no family
Checked  tests/engines/test_postgres.py

An address has no password (`lastbit.addresses`), and no word of the server or its driver leaves:
they hold values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import psycopg

from lastbit.addresses import Address
from lastbit.errors import EngineFailed, InvalidParameter
from lastbit.servers import unreached
from lastbit.tables.card.schema import Source
from lastbit.tables.compile.dialect import Family, Shown
from lastbit.tables.compile.postgres import POSTGRES
from lastbit.tables.compile.stored_types import READ_FROM
from lastbit.tables.query.expression import ColumnType

_OLDEST = 15
_PATIENCE = 10  # seconds until a server must answer
_SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        "quote_all_identifiers": "off",  # first: a list is read back as it says
        "search_path": "pg_catalog, pg_temp",  # no operator but the server's own
        "row_security": "off",  # refuses where it would hide rows
        "standard_conforming_strings": "on",
        "transform_null_equals": "off",
        "TimeZone": "UTC",
        "DateStyle": "ISO, YMD",
        "IntervalStyle": "postgres",
        "bytea_output": "hex",  # of values that were added to old rows
        "lc_monetary": "C",
        "extra_float_digits": "1",
        "array_nulls": "on",
        "exit_on_error": "off",
        "idle_in_transaction_session_timeout": "1h",  # while a question is planned
        "jit": "off",  # to compile a large CASE takes longer than to run it
        "parallel_setup_cost": "100",  # so that rows are sorted by several workers
        "parallel_tuple_cost": "0.01",
    }
)
_DEFAULTS: Mapping[str, str] = MappingProxyType(
    {"statement_timeout": "1h", "lock_timeout": "30s"}  # where neither role nor server sets one
)
_WORK_MEMORY = 64  # megabytes for each sort or hash table, where the server allows less
_TABLE = re.compile(r'(?:(?:"((?:[^"]|"")+)"|([^".]+))\.)?(?:"((?:[^"]|"")+)"|([^".]+))')
_FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        **dict.fromkeys(("int2", "int4", "int8"), "integer"),
        **dict.fromkeys(("float4", "float8"), "number"),
        **dict.fromkeys(("text", "varchar", "bpchar", "uuid"), "text"),
        "numeric": "decimal",
        "bool": "boolean",
        "date": "date",
        "timestamp": "timestamp",
        "timestamptz": "timestamptz",
    }
)
_STATED: Mapping[Family, ColumnType] = MappingProxyType(
    {
        "integer": "integer",
        "decimal": "number",
        "number": "number",
        "text": "text",
        "enum": "text",
        "boolean": "boolean",
        "date": "date",
        "timestamp": "timestamp",
        "timestamptz": "timestamp",
    }
)


@contextmanager
def transaction(address: Address) -> Iterator[Any]:
    """A connection in a transaction that reads one state, under our settings; then it is closed."""
    own = {"connect_timeout": str(_PATIENCE), "application_name": "lastbit"}
    given: dict[str, Any] = {**own, **address.given}
    try:
        connection: Any = psycopg.connect(**given, client_encoding="UTF8", autocommit=True)
    except (psycopg.Error, UnicodeError, ValueError) as error:
        problem, remedy = unreached(str(error))
    else:
        try:
            _begun(connection)
            yield connection
        finally:
            connection.close()
        return
    raise InvalidParameter(f"source {address}", problem=problem, remedy=remedy)


def _begun(connection: Any) -> None:
    number = connection.info.server_version // 10_000
    (said,) = connection.execute("SELECT pg_catalog.version()").fetchone()
    own = re.match(
        r"PostgreSQL \d+(\.\d+|\w+)* (?!\(EnterpriseDB)", f"{said} "
    )  # its dates have hours
    if number < _OLDEST or not own:
        problem = f"is on a server that is not PostgreSQL {_OLDEST} or newer"
        raise InvalidParameter("source", problem=problem, remedy="upgrade it, or write Parquet")
    ours = [
        f"SET LOCAL {name} = " + (value if name == "search_path" else f"'{value}'")  # it is a list
        for name, value in _SETTINGS.items()
    ]
    connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
    connection.execute("; ".join(ours))
    found = dict(connection.execute(_NOW, [list(_SETTINGS) + list(_DEFAULTS)]).fetchall())
    if any(found[name] != value for name, value in _SETTINGS.items()):
        raise EngineFailed("the server does not take the settings that a statement needs")
    for name, value in _DEFAULTS.items():
        if found[name] == "0":
            connection.execute(f"SET LOCAL {name} = '{value}'")
    size, encoding, hashed = connection.execute(_ABOUT).fetchone()
    if encoding != "UTF8":
        problem, remedy = "is in a database that is not in UTF-8", "copy it into one that is"
        raise InvalidParameter("source", problem=problem, remedy=remedy)
    if hashed != "d41d8cd98f00b204e9800998ecf8427e":
        raise EngineFailed("the server has no md5()")
    if size < _WORK_MEMORY << 10:
        connection.execute(f"SET LOCAL work_mem = '{_WORK_MEMORY}MB'")


_NOW = "SELECT name, pg_catalog.current_setting(name) FROM unnest(%s::text[]) AS name"
_ABOUT = (
    "SELECT (SELECT setting::bigint FROM pg_settings WHERE name = 'work_mem'),"
    " current_setting('server_encoding'), md5('')"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A table that may be read: itself and all its partitions and heirs by their numbers."""

    place: str
    tree: frozenset[int]
    columns: Mapping[str, tuple[str, Family]]
    left_out: Mapping[str, tuple[str, str]]
    """Columns that cannot be read: what is wrong with each, and what to do."""

    def shown(self, *, empty: bool = False) -> Shown:
        """As a statement names it; `empty`: without its rows."""
        named = ", ".join(POSTGRES.identifier(name) for name, _ in self.columns.values())
        place = f"(SELECT {named} FROM {self.place} WHERE FALSE) AS empty" if empty else self.place
        return Shown(place=place, columns=self.columns)

    def types(self) -> dict[str, ColumnType]:
        """The names of columns and the types of a card that are nearest to theirs."""
        return {name: _STATED[family] for name, family in self.columns.values()}


def found(connection: Any, source: Source, wanted: Mapping[str, ColumnType]) -> Found:
    """The table, locked against changes of its definition, which has these columns, readable."""
    parts = _TABLE.fullmatch(source.table or "")
    if parts is None:
        raise _no_table("is not a name of a table", 'write it as "schema.name"')
    schema, name = ((parts[place] or "").replace('""', '"') or parts[place + 1] for place in (1, 3))
    schema = schema or "public"
    seen = _looked_up(connection, schema, name)
    place = f"{POSTGRES.identifier(schema)}.{POSTGRES.identifier(name)}"
    connection.execute(f"SELECT FROM {place} LIMIT 0")  # locks it until the transaction ends
    if _looked_up(connection, schema, name) != seen:
        raise EngineFailed("the table was redefined while it was looked at; ask again")
    number, tree = seen
    columns: dict[str, tuple[str, Family]] = {}
    left_out: dict[str, tuple[str, str]] = {}
    unreadable: dict[str, str] = {}
    for column, generated, known, family, readable in connection.execute(_COLUMNS, [number] * 2):
        lower, kind = column.lower(), _FAMILIES.get(family) if known else None
        if family == "enum":
            kind = "enum"
        if lower in columns or lower in left_out:
            left_out[lower] = "is there twice, in different cases", "rename one of them"
        elif not readable:
            unreadable[lower] = column
        elif generated == "v":
            left_out[lower] = "is computed as it is read", _STORE
        elif kind is None:
            left_out[lower] = "is of a type that is not read here", _STORE
        else:
            columns[lower] = column, kind
    columns = {lower: value for lower, value in columns.items() if lower not in left_out}
    missing = [unreadable[name.lower()] for name in wanted if name.lower() in unreadable]
    for lower in unreadable:
        left_out[lower] = _UNREADABLE, _grant(connection, place, missing) if missing else ""
    there = Found(place=place, tree=tree, columns=columns, left_out=left_out)
    _check_columns(there, wanted)
    return there


def _looked_up(connection: Any, schema: str, name: str) -> tuple[int, frozenset[int]]:
    row = connection.execute(_RELATION, [schema, name]).fetchone()
    if row is None:
        remedy = "check its name, its schema and their case, and that the user may use the schema"
        raise _no_table("is not in the database", remedy)
    number, kind, usable, readable, hidden = row
    tree = connection.execute(_TREE, [number]).fetchall()
    if kind not in ("r", "p", "m"):
        remedy = "name a table, or a materialised view of it"
        raise _no_table("is a view, or a foreign or other table, and is not stored there", remedy)
    if any(kind not in ("r", "p", "m") for _, kind in tree):
        raise _no_table("has parts on other servers", "copy it into a table of its own")
    if hidden:
        problem = "has row security, which would hide rows from this user"
        raise _no_table(problem, "use a role with BYPASSRLS, or the table's owner")
    if not usable or not readable:
        user, place = _user(connection), POSTGRES.identifier(schema)
        grants = [] if usable else [f"GRANT USAGE ON SCHEMA {place} TO {user}"]
        if not readable:
            grants.append(f"GRANT SELECT ON {place}.{POSTGRES.identifier(name)} TO {user}")
        raise _no_table(_UNREADABLE, "; ".join(grants))
    return number, frozenset(one for one, _ in tree)


_UNREADABLE = "may not be read by this user"
_STORE = "store its values in a plain column"
_OF_ROWS = ("ctid", "tableoid", "xmin")  # by which changes are noticed


def _grant(connection: Any, place: str, columns: Iterable[str]) -> str:
    """The statement that lets this user read these columns, and what tells rows apart."""
    sql = "SELECT name FROM unnest(%s::text[]) AS name WHERE NOT has_column_privilege(%s, name, %s)"
    hidden = [name for (name,) in connection.execute(sql, [list(_OF_ROWS), place, "SELECT"])]
    names = ", ".join(map(POSTGRES.identifier, (*dict.fromkeys(columns), *hidden)))
    return f"GRANT SELECT ({names}) ON {place} TO {_user(connection)}" if names else ""


def _user(connection: Any) -> str:
    (name,) = connection.execute("SELECT current_user::text").fetchone()
    return POSTGRES.identifier(name)


def _no_table(problem: str, remedy: str) -> InvalidParameter:
    return InvalidParameter("source table", problem=problem, remedy=remedy)


def _check_columns(there: Found, wanted: Mapping[str, ColumnType]) -> None:
    for column, kind in wanted.items():
        lower, what = column.lower(), f"column {column[:60]}"
        if lower not in there.columns:
            problem, remedy = there.left_out.get(lower, ("is not in the source", "check its name"))
            raise InvalidParameter(what, problem=problem, remedy=remedy)
        family = there.columns[lower][1]
        if family not in READ_FROM[kind]:
            problem = f"is {_STATED[family]} in the source, which is not read as {kind} there"
            remedy = f'declare type = "{_STATED[family]}", or store it as {kind}'
            raise InvalidParameter(what, problem=problem, remedy=remedy)


def contents(connection: Any, tables: Iterable[Found]) -> list[tuple[Any, ...]]:
    """For each table the number of its rows, a sum of hashes of where and since when each is, and
    what is said of the rows elsewhere: names, places and types of columns, the value of those that
    were added later in rows that were there, the labels of enumerations.

    Theorem  two states of a table differ here if a row was added, changed or removed between them,
             but for a chance of 2**-64: every version of a row has a place of its own (tableoid,
             ctid) as long as the transaction that wrote it (xmin) can be told from another
    """
    hashed = "hash_record_extended(ROW(tableoid, ctid, xmin), 0)"
    tables = list(tables)
    for there in tables:
        remedy = _grant(connection, there.place, ())
        if remedy:
            what = f"which rows of {there.place[:120]} have changed"
            raise InvalidParameter(what, problem=_UNREADABLE, remedy=remedy)
    return [
        (
            connection.execute(f"SELECT count(*), sum({hashed}) FROM {there.place}").fetchone(),
            connection.execute(_DEFINITION, [sorted(there.tree)]).fetchall(),
        )
        for there in tables
    ]


def origins(connection: Any, there: Found) -> frozenset[int]:
    """The table, its parts, and of materialised views the tables that they are made of.

    Differs  what a function of such a view reads is not seen
    """
    rows = connection.execute(_ORIGINS, [sorted(there.tree)]).fetchall()
    return frozenset(number for (number,) in rows)


_RELATION = """
SELECT c.oid::bigint, c.relkind::text, has_schema_privilege(n.oid, 'USAGE'),
  has_any_column_privilege(c.oid, 'SELECT'), row_security_active(c.oid)
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = %s
"""
_TREE = """
WITH RECURSIVE tree(oid) AS (
  SELECT %s::oid UNION SELECT i.inhrelid FROM pg_inherits AS i JOIN tree ON i.inhparent = tree.oid)
SELECT c.oid::bigint, c.relkind::text FROM tree JOIN pg_class AS c ON c.oid = tree.oid
"""
_ORIGINS = """
WITH RECURSIVE made(oid) AS (
  SELECT unnest(%s::oid[]) UNION SELECT more.oid FROM made CROSS JOIN LATERAL (
    SELECT i.inhrelid FROM pg_inherits AS i WHERE i.inhparent = made.oid
    UNION ALL SELECT d.refobjid FROM pg_rewrite AS r JOIN pg_depend AS d ON d.objid = r.oid
    WHERE r.ev_class = made.oid AND r.ev_type = '1' AND d.classid = 'pg_rewrite'::regclass
      AND d.refclassid = 'pg_class'::regclass) AS more(oid))
SELECT oid::bigint FROM made
"""
# a domain is what it is a domain of
_COLUMNS = """
WITH RECURSIVE typed(attnum, attname, attgenerated, type) AS (
  SELECT attnum, attname, attgenerated, atttypid FROM pg_attribute
  WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped
  UNION ALL SELECT d.attnum, d.attname, d.attgenerated, t.typbasetype
  FROM typed AS d JOIN pg_type AS t ON t.oid = d.type WHERE t.typtype = 'd')
SELECT attname::text, attgenerated::text, t.typnamespace = 'pg_catalog'::regnamespace,
  CASE t.typtype WHEN 'e' THEN 'enum' ELSE t.typname::text END,
  has_column_privilege(%s::oid, attnum, 'SELECT')
FROM typed JOIN pg_type AS t ON t.oid = type WHERE t.typtype <> 'd' ORDER BY attnum
"""
_DEFINITION = """
WITH RECURSIVE typed(attrelid, attnum, attname, missing, type) AS (
  SELECT attrelid, attnum, attname, attmissingval::text, atttypid FROM pg_attribute
  WHERE attrelid::bigint = ANY(%s) AND attnum > 0 AND NOT attisdropped
  UNION ALL SELECT d.attrelid, d.attnum, d.attname, d.missing, t.typbasetype
  FROM typed AS d JOIN pg_type AS t ON t.oid = d.type WHERE t.typtype = 'd')
SELECT attrelid::bigint, attnum, attname::text, missing, type::bigint,
  (SELECT array_agg(oid::text || ' ' || enumlabel ORDER BY oid) FROM pg_enum WHERE enumtypid = type)
FROM typed ORDER BY attrelid, attnum, type
"""
