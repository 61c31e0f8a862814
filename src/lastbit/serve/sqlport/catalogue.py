"""The catalogue that clients ask: an empty copy of the public schema, in a database of its own.

Theorem  (no row)  Whatever is asked of this database, the answer depends on the names, types and
         descriptions of the cards' columns, on the name of who asks, and on nothing else
Proof    it is made in memory of these alone. `enable_external_access` is off, and the configuration
         is locked: no file is read, no extension loaded, no other database attached. Names of
         Python are no tables (`python_enable_replacements`). A process that is asked for more than
         its seconds or memory ends (`child.py`)
Theorem  (no trace)  nobody sees by it what another one asked: it stays as it was made
Proof    a statement is read again by the database before it is run (`rereading.py`), and run
         where nothing can be written (READ ONLY)
Law      a statement is one SELECT (`rewriting.py`); a result has at most `MOST_ROWS` rows
         with `_MOST_CELLS` values of `_MOST_LETTERS` letters together
Checked  tests/serve/test_sqlport_catalogue.py
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, TypeAlias

import duckdb

from lastbit.serve.sqlport import rewriting
from lastbit.serve.sqlport.rereading import check_read
from lastbit.serve.sqlport.rewriting import PLACES, Wrong
from lastbit.serve.sqlport.values import INT2, INT8, OF_KINDS, OID, TEXT
from lastbit.tables import DataCard

MOST_ROWS, _MOST_CELLS, _MOST_LETTERS = 20_000, 200_000, 1 << 20
_LETTERS: Mapping[str, str] = MappingProxyType(
    {
        "s": "VARCHAR",
        "b": "BOOLEAN DEFAULT false",
        "h": "SMALLINT DEFAULT 0",
        "i": "INTEGER",
        "l": "BIGINT DEFAULT 0",
        "o": "UINTEGER DEFAULT 0",
        "f": "FLOAT DEFAULT -1",
        "d": "DOUBLE DEFAULT 0",
        "t": "TIMESTAMPTZ",
        "S": "VARCHAR[]",
        "O": "UINTEGER[]",
        "H": "SMALLINT[]",
        "F": "FLOAT[]",
    }
)
_NUMBERS: Mapping[str, int] = MappingProxyType(
    {
        "BOOLEAN": 16,
        "TINYINT": 21,
        "SMALLINT": 21,
        "INTEGER": 23,
        "BIGINT": 20,
        "UTINYINT": 21,
        "USMALLINT": 23,
        "UINTEGER": 26,
        "UBIGINT": 1700,
        "HUGEINT": 1700,
        "FLOAT": 700,
        "DOUBLE": 701,
        "JSON": 114,
        "DATE": 1082,
        "TIMESTAMP": 1114,
        "TIMESTAMP WITH TIME ZONE": 1184,
        "VARCHAR[]": 1009,
        "SMALLINT[]": 1005,
        "INTEGER[]": 1007,
        "BIGINT[]": 1016,
        "UINTEGER[]": 1028,
        "BOOLEAN[]": 1000,
        "DOUBLE[]": 1022,
    }
)
"""PostgreSQL's numbers of DuckDB's types; any other is shown as text."""
_PG_NAMES: Mapping[int, tuple[str, str]] = MappingProxyType(
    {
        16: ("boolean", "bool"),
        20: ("bigint", "int8"),
        21: ("smallint", "int2"),
        23: ("integer", "int4"),
        25: ("text", "text"),
        26: ("oid", "oid"),
        700: ("real", "float4"),
        701: ("double precision", "float8"),
        1043: ("character varying", "varchar"),
        1042: ("character", "bpchar"),
        1082: ("date", "date"),
        1083: ("time without time zone", "time"),
        1114: ("timestamp without time zone", "timestamp"),
        1184: ("timestamp with time zone", "timestamptz"),
        1266: ("time with time zone", "timetz"),
    }
)
_CAST: Mapping[str, int] = MappingProxyType(
    {
        "oid": OID,
        "smallint": INT2,
        "int": 23,
        "int4": 23,
        "bigint": INT8,
        "boolean": 16,
        "double": 701,
        "float": 700,
        "date": 1082,
        "timestamp": 1114,
    }
)
_EXAMPLES: Mapping[int, Any] = MappingProxyType(
    {
        **dict.fromkeys((INT2, 23, INT8, OID, 700, 701, 1700), 1),
        16: True,
        1082: "2000-01-01",
        1114: "2000-01-01 00:00:00",
    }
)
"""What a parameter is before it is sent, where only columns are asked for."""
_OWN_NUMBERS: Mapping[str, int] = MappingProxyType(
    {
        "pg_type": 1247,
        "pg_attribute": 1249,
        "pg_proc": 1255,
        "pg_class": 1259,
        "pg_constraint": 2606,
        "pg_namespace": 2615,
        "pg_database": 1262,
    }
)
_FIRST_OWN, _FIRST_TABLE = 12_000, 16_400
_PUBLIC, _PG, _INFORMATION = 2200, 11, 13_000
_OWNER = "lastbit"
Row: TypeAlias = Mapping[str, Any]


@lru_cache(maxsize=1)
def layout() -> tuple[dict[str, list[tuple[str, str]]], list[list[str]]]:
    """The relations with their columns, and the types: `layout.txt`."""
    relations: dict[str, list[tuple[str, str]]] = {}
    types: list[list[str]] = []
    last: list[tuple[str, str]] = []
    text = files("lastbit.serve.sqlport").joinpath("layout.txt").read_text("utf-8")
    for line in text.splitlines():
        words = line.split()
        if line.startswith("#"):
            continue
        if words[0] == "type":
            types.append(words[1:])
            continue
        if not line.startswith(" "):
            last = relations[words[0]] = []
            words = words[1:]
        last += [(name, letter) for name, _, letter in (word.partition(":") for word in words)]
    return relations, types


class Catalogue:
    """The public schema of some cards, as one user sees it."""

    def __init__(self, cards: Sequence[DataCard]) -> None:
        settings: dict[str, Any] = {
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "enable_external_access": False,
            "temp_directory": "",
            "threads": 1,
            "memory_limit": "256MB",
            "python_enable_replacements": False,
        }
        self._relations, types = layout()
        self._database = duckdb.connect(":memory:", config=settings)
        self._make()
        _Filled(self._database, self._relations).fill(cards, types)
        self._database.execute(_functions())
        self._database.execute("SET lock_configuration = true")

    def _make(self) -> None:
        for place in PLACES.values():
            self._database.execute(f"CREATE SCHEMA {place}")
        statements = []
        for name, columns in self._relations.items():
            schema, _, relation = name.partition(".")
            listed = ", ".join(f'"{column}" {_LETTERS[letter]}' for column, letter in columns)
            statements.append(f'CREATE TABLE {PLACES[schema]}."{relation}" ({listed})')
        self._database.execute(";".join(statements))

    def asked(
        self, sql: str, types: Sequence[int], values: Sequence[Any] | None, user: str
    ) -> dict[str, Any] | None:
        """The result of a question about the catalogue; None: it is not about it."""
        tree = rewriting.parsed(sql)
        if tree is None or not rewriting.is_of_catalogue(tree, self._relations):
            return None
        numbers = _parameters(tree, types)
        given = values
        if given is None:  # only columns are asked for
            given = [_EXAMPLES.get(number, "") for number in numbers]
        try:
            spelled = rewriting.rewritten(tree, self._relations, given, user)
        except RecursionError:
            problem = "this question about the catalogue is nested too deeply"
            raise Wrong("54001", problem, hint="write it with fewer casts and brackets") from None
        cursor = self._database.cursor()
        try:
            check_read(cursor, spelled, self._relations)
            cursor.execute("BEGIN TRANSACTION READ ONLY")
            relation = cursor.execute(spelled)
            described = relation.description or []
            rows = [] if values is None and numbers else relation.fetchmany(MOST_ROWS + 1)
        except Wrong:
            raise
        except Exception as error:  # its words are about this statement and public names
            raise _wrong(error) from None
        finally:
            cursor.close()
        if len(rows) > MOST_ROWS:
            raise Wrong("54000", f"the result has more than {MOST_ROWS} rows", hint="LIMIT 1000")
        is_wide = len(rows) * len(described) > _MOST_CELLS
        if is_wide or sum(len(str(value)) for row in rows for value in row) > _MOST_LETTERS:
            raise Wrong("54000", "the result is too long", hint="select fewer columns")
        columns: list[list[Any]] = [
            [name, _NUMBERS.get(str(kind), TEXT)] for name, kind, *_ in described
        ]
        kinds = [int(number) for _, number in columns]
        told = [
            [_json(value, kind) for value, kind in zip(row, kinds, strict=True)] for row in rows
        ]
        return {"columns": columns, "rows": told, "parameters": numbers}

    def is_named_in(self, sql: str) -> bool:
        """Whether a statement names a relation of the catalogue, perhaps beside private ones."""
        tree = rewriting.parsed(sql)
        return tree is not None and rewriting.names_catalogue(tree, self._relations)


def _wrong(error: Exception) -> Wrong:
    words = str(error).splitlines()[0][:200].replace(rewriting.PREFIX, "")
    kind = type(error).__name__
    code = {"CatalogException": "42883", "ParserException": "42601"}.get(kind, "0A000")
    code = "42703" if "not found in FROM" in words or "Referenced column" in words else code
    return Wrong(code, "this question about the catalogue is not answered", words)


def _json(value: Any, number: int) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value if number != TEXT or value is None else _text(value)
    if isinstance(value, float):
        return value if number != TEXT else str(value)
    if isinstance(value, list | tuple):
        return [_json(one, 0) for one in value] if number != TEXT else str(value)
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(" ")
    if isinstance(value, date | Decimal):
        return str(value)
    return str(value)


def _text(value: Any) -> str:
    return ("t" if value else "f") if isinstance(value, bool) else str(value)


def _parameters(tree: Any, types: Sequence[int]) -> list[int]:
    """The types of all parameters: as they were sent, else by what they are compared with."""
    from sqlglot import exp

    found: dict[int, int] = {}
    for node in tree.find_all(exp.Parameter):
        words = node.this.name if isinstance(node.this, exp.Expression) else str(node.this)
        if not re.fullmatch("[0-9]{1,4}", words) or not 1 <= int(words) <= 1000:
            raise Wrong("08P01", "a parameter is not $1 to $1000")
        place = int(words)
        sent = types[place - 1] if place <= len(types) else 0
        found[place] = sent or found.get(place) or _guessed(node, exp)
    most = max([*found, len(types)], default=0)
    return [
        found.get(place) or (types[place - 1] if place <= len(types) else 0) or TEXT
        for place in range(1, most + 1)
    ]


def _guessed(node: Any, exp: Any) -> int:
    parent = node.parent
    if isinstance(parent, exp.Cast):
        return _CAST.get(rewriting.type_name(parent.to), TEXT)
    if isinstance(parent, exp.Limit | exp.Offset):
        return INT8
    if isinstance(parent, exp.EQ | exp.NEQ | exp.In):
        names = [column.name.lower() for column in parent.find_all(exp.Column)]
        if any(name.endswith(("oid", "relid", "typid")) for name in names):
            return OID
        if any(name in ("attnum", "ordinal_position") for name in names):
            return INT2
    return TEXT


# ---------------------------------------------------------------- what is in it


class _Filled:
    """The rows of the catalogue's relations."""

    def __init__(self, database: Any, relations: Mapping[str, Any]) -> None:
        self._database, self._relations = database, relations

    def fill(self, cards: Sequence[DataCard], types: Sequence[Sequence[str]]) -> None:
        """All of them."""
        self._names()
        self._types(types)
        tables = list(_tables(cards))
        own = [
            (_OWN_NUMBERS.get(name.partition(".")[2], _FIRST_OWN + place), name, columns)
            for place, (name, columns) in enumerate(self._relations.items())
        ]
        self._own(own)
        self._public(tables)
        self._schema(tables)

    def _add(self, relation: str, rows: Iterable[Row]) -> None:
        listed = list(rows)
        if not listed:
            return
        schema, _, name = relation.partition(".")
        columns = list(listed[0])
        names = ", ".join(f'"{column}"' for column in columns)
        marks = ", ".join("?" * len(columns))
        sql = f'INSERT INTO {PLACES[schema]}."{name}" ({names}) VALUES '
        size = 200
        for start in range(0, len(listed), size):
            part = listed[start : start + size]
            values = [row[column] for row in part for column in columns]
            self._database.execute(sql + ", ".join([f"({marks})"] * len(part)), values)

    def _names(self) -> None:
        spaces = {_PG: "pg_catalog", _PUBLIC: "public", _INFORMATION: "information_schema"}
        rows = [{"oid": o, "nspname": name, "nspowner": 10} for o, name in spaces.items()]
        self._add("pg_catalog.pg_namespace", rows)
        text = {"datcollate": "C.UTF-8", "datctype": "C.UTF-8", "datlocprovider": "c"}
        database = {"oid": 16384, "datname": "lastbit", "datdba": 10, "encoding": 6, **text}
        limits = {"datallowconn": True, "datconnlimit": -1, "dattablespace": 1663}
        self._add("pg_catalog.pg_database", [database | limits])
        roles = [(10, _OWNER)]
        self._add(
            "pg_catalog.pg_roles",
            (
                {"oid": o, "rolname": name, "rolinherit": True, "rolcanlogin": o != 10}
                | {"rolconnlimit": -1}
                for o, name in roles
            ),
        )
        self._add("pg_catalog.pg_user", ({"usesysid": o, "usename": name} for o, name in roles))
        methods = [(2, "heap", "t"), (403, "btree", "i")]
        self._add("pg_catalog.pg_am", ({"oid": o, "amname": n, "amtype": t} for o, n, t in methods))
        spaces = {1663: "pg_default", 1664: "pg_global"}
        self._add(
            "pg_catalog.pg_tablespace",
            ({"oid": o, "spcname": name, "spcowner": 10} for o, name in spaces.items()),
        )
        self._add(
            "pg_catalog.pg_collation",
            (
                {"oid": o, "collname": n, "collnamespace": _PG, "collprovider": "d"}
                for o, n in ((100, "default"), (950, "C"))
            ),
        )
        zone = {"name": "UTC", "abbrev": "UTC", "is_dst": False}
        self._add("pg_catalog.pg_timezone_names", [zone])
        settings = {"server_version": "15.0", "server_version_num": "150000"}
        settings |= {"max_index_keys": "32", "max_identifier_length": "63", "search_path": "public"}
        settings |= {"standard_conforming_strings": "on", "server_encoding": "UTF8", "jit": "off"}
        settings |= {"TimeZone": "UTC", "client_encoding": "UTF8", "DateStyle": "ISO, MDY"}
        settings |= {"transaction_isolation": "read committed", "default_tablespace": ""}
        rows = [{"name": name, "setting": value} for name, value in settings.items()]
        self._add("pg_catalog.pg_settings", rows)

    def _types(self, types: Sequence[Sequence[str]]) -> None:
        names = "oid typname typlen typbyval typtype typcategory typispreferred typelem typarray "
        names += "typinput typcollation"
        rows = []
        for words in types:
            row: dict[str, Any] = dict(zip(names.split(), words, strict=True))
            row |= {name: row[name] == "y" for name in ("typbyval", "typispreferred")}
            more = {"typnamespace": _PG, "typowner": 10, "typisdefined": True, "typdelim": ","}
            more |= {"typtypmod": -1, "typnotnull": False, "typalign": "i", "typstorage": "p"}
            rows.append(row | more)
        self._add("pg_catalog.pg_type", rows)

    def _own(self, own: Sequence[tuple[int, str, Sequence[tuple[str, str]]]]) -> None:
        """The catalogue's own relations, which clients look up by name."""
        rows, columns = [], []
        for oid, full, listed in own:
            schema, _, name = full.partition(".")
            space = _PG if schema == "pg_catalog" else _INFORMATION
            rows.append(_class(oid, name, space, len(listed)))
            columns += [
                _attribute(oid, place, column, _own_type(letter))
                for place, (column, letter) in enumerate(listed, start=1)
            ]
        self._add("pg_catalog.pg_class", rows)
        self._add("pg_catalog.pg_attribute", columns)

    def _public(self, tables: Sequence[_Table]) -> None:
        self._add(
            "pg_catalog.pg_class",
            (_class(one.oid, one.name, _PUBLIC, len(one.columns)) for one in tables),
        )
        self._add(
            "pg_catalog.pg_attribute",
            (
                _attribute(table.oid, place, name, number)
                for table in tables
                for place, (name, number, _) in enumerate(table.columns, start=1)
            ),
        )
        self._add(
            "pg_catalog.pg_description",
            (
                {"objoid": table.oid, "classoid": 1259, "objsubid": place, "description": words}
                for table in tables
                for place, (_, _, words) in enumerate(table.columns, start=1)
                if words
            ),
        )
        self._add(
            "pg_catalog.pg_tables",
            (
                {"schemaname": "public", "tablename": one.name, "tableowner": _OWNER}
                for one in tables
            ),
        )

    def _schema(self, tables: Sequence[_Table]) -> None:
        """information_schema."""
        place = {"table_catalog": "lastbit", "table_schema": "public"}
        self._add(
            "information_schema.tables",
            (
                {**place, "table_name": one.name, "table_type": "BASE TABLE"}
                | {"is_insertable_into": "NO", "is_typed": "NO"}
                for one in tables
            ),
        )
        self._add(
            "information_schema.columns",
            (
                {**place, "table_name": table.name, "column_name": name, "ordinal_position": at}
                | {"is_nullable": "YES", "data_type": _PG_NAMES[number][0]}
                | {"udt_catalog": "lastbit", "udt_schema": "pg_catalog"}
                | {"udt_name": _PG_NAMES[number][1], "is_identity": "NO", "is_updatable": "NO"}
                | {"dtd_identifier": str(at), "is_generated": "NEVER", "is_self_referencing": "NO"}
                | _precision(number)
                for table in tables
                for at, (name, number, _) in enumerate(table.columns, start=1)
            ),
        )
        self._add(
            "information_schema.schemata",
            (
                {"catalog_name": "lastbit", "schema_name": name, "schema_owner": _OWNER}
                for name in ("public", "pg_catalog", "information_schema")
            ),
        )
        self._add(
            "information_schema.table_privileges",
            (
                {"grantor": _OWNER, "grantee": "PUBLIC", **place, "table_name": one.name}
                | {"privilege_type": "SELECT", "is_grantable": "NO", "with_hierarchy": "NO"}
                for one in tables
            ),
        )
        self._add("information_schema.enabled_roles", [{"role_name": _OWNER}])
        name = "information_schema.information_schema_catalog_name"
        self._add(name, [{"catalog_name": "lastbit"}])
        letters = {"character_set_name": "UTF8", "character_repertoire": "UCS"}
        more = {"form_of_use": "UTF8", "default_collate_catalog": "lastbit"}
        self._add("information_schema.character_sets", [letters | more])


class _Table:
    """A table as clients see it: its number, name, and columns with type and description."""

    def __init__(self, oid: int, name: str, columns: list[tuple[str, int, str | None]]) -> None:
        self.oid, self.name, self.columns = oid, name, columns


def _tables(cards: Sequence[DataCard]) -> Iterable[_Table]:
    """The cards' tables, and those that they are joined with; each name once."""
    found: dict[str, list[tuple[str, int, str | None]]] = {}
    for card in cards:
        own = card.columns.values()
        found[card.name] = [(one.name, OF_KINDS[one.type], one.description) for one in own]
    for card in cards:
        for private in card.private.values():
            others = private.columns.values()
            columns = [(one.name, OF_KINDS[one.type], one.description) for one in others]
            found.setdefault(private.name, columns)
        for public in card.public.values():
            listed = public.columns.items()
            found.setdefault(public.name, [(name, OF_KINDS[kind], None) for name, kind in listed])
    for place, name in enumerate(sorted(found)):
        yield _Table(_FIRST_TABLE + place, name, found[name])


def _class(oid: int, name: str, space: int, count: int) -> Row:
    return {
        "oid": oid,
        "relname": name,
        "relnamespace": space,
        "relowner": 10,
        "relam": 2,
        "relkind": "r",
        "relpersistence": "p",
        "relnatts": count,
        "relreplident": "d",
        "relispopulated": True,
    }


def _attribute(oid: int, place: int, name: str, number: int) -> Row:
    text = number in (TEXT, 1043)
    return {
        "attrelid": oid,
        "attname": name,
        "atttypid": number,
        "attnum": place,
        "atttypmod": -1,
        "attidentity": "",
        "attgenerated": "",
        "attcompression": "",
        "attislocal": True,
        "attstorage": "x" if text else "p",
        "attstattarget": -1,
        "attcollation": 100 if text else 0,
    }


def _own_type(letter: str) -> int:
    kinds = {"s": 25, "b": 16, "h": 21, "i": 23, "l": 20, "o": 26, "f": 700, "d": 701, "t": 1184}
    return kinds.get(letter, 1009)


def _precision(number: int) -> dict[str, Any]:
    none: dict[str, Any] = {
        "numeric_precision": None,
        "numeric_precision_radix": None,
        "numeric_scale": None,
        "datetime_precision": None,
    }
    if number == INT8:
        return none | {"numeric_precision": 64, "numeric_precision_radix": 2, "numeric_scale": 0}
    if number == 701:
        return none | {"numeric_precision": 53, "numeric_precision_radix": 2}
    if number in (1082, 1114):
        return none | {"datetime_precision": 6 if number == 1114 else 0}
    return none


# ---------------------------------------------------------------- functions


def _functions() -> str:
    """The functions of the database; those that there is nothing to say of say nothing."""
    text = files("lastbit.serve.sqlport").joinpath("functions.sql").read_text("utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("--")]
    display = " ".join(f"WHEN {number} THEN '{words}'" for number, (words, _) in _PG_NAMES.items())
    return "\n".join(lines).replace("$DISPLAY", display)
