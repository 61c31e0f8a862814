"""A catalogue question in PostgreSQL's SQL, made into one for the database of `catalogue.py`.

Law      a statement is of the catalogue if it is one SELECT, and every relation that it names is
         one of the layout's, or of its own WITH; relations of another name make it private. Each
         relation gets a schema of ours, or, if it is of WITH, a name that the database has not
Why      nothing here decides what may be run: `rereading.py` does, by what the database reads
Differs  the database has PostgreSQL's names and another dialect: oids are numbers, and a
         regclass is looked up
Checked  tests/serve/test_sqlport_catalogue.py
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import sqlglot
from sqlglot import exp

from lastbit.serve.sqlport.names import MADE

PG, INFORMATION = "pg_catalog", "information_schema"
PLACES: Mapping[str, str] = MappingProxyType({PG: "pgc", INFORMATION: "inf"})
"""Where relations are in the database: it has schemas of its own by these names."""
PREFIX = "lb_"
"""What our functions are called in the database: it has others by their names."""
OF_WITH = "lb_with_"
"""What relations of WITH are called there: out of reach of its WITH a name is nobody's."""
_MOST_TOKENS = 4000


class Wrong(Exception):
    """What a statement is refused with, as SQL clients are told."""

    def __init__(self, code: str, message: str, detail: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.told = {"code": code, "message": message, "detail": detail, "hint": hint}


_RENAMED: Mapping[str, str] = MappingProxyType(
    {"json_build_object": "json_object", "json_build_array": "json_array"}
)
_SPOKEN: Mapping[str, str] = MappingProxyType(
    {
        "CurrentCatalog": "current_database",
        "CurrentDatabase": "current_database",
        "CurrentSchema": "current_schema",
        "CurrentSchemas": "current_schemas",
        "CurrentUser": "current_user",
        "CurrentVersion": "version",
        "SessionUser": "session_user",
    }
)
_NAMES_OF_NODES: Mapping[str, str] = MappingProxyType(
    {**_SPOKEN, "Case": "case", "Array": "array", "Exists": "exists", "GroupConcat": "string_agg"}
    | {"CurrentTimestamp": "now", "ArraySize": "array_length", "LogicalOr": "bool_or"}
)
_TYPES: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("oid", "xid", "cid", "regtype", "regproc_oid"), "UINTEGER"),
        **dict.fromkeys(
            ("name", "char", "text", "varchar", "bpchar", "sql_identifier", "character_data"),
            "VARCHAR",
        ),
        **dict.fromkeys(("yes_or_no", "regproc", "regnamespace", "regrole"), "VARCHAR"),
        **dict.fromkeys(("aclitem", "pg_node_tree", "inet", "unknown", "jsonb", "json"), "VARCHAR"),
        "cardinal_number": "INTEGER",
        "int2": "SMALLINT",
        "int4": "INTEGER",
        "int8": "BIGINT",
        "bool": "BOOLEAN",
        "float8": "DOUBLE",
        "timestamptz": "TIMESTAMPTZ",
        "_text": "VARCHAR[]",
        "_name": "VARCHAR[]",
        "_oid": "UINTEGER[]",
        "_int2": "SMALLINT[]",
        "_int4": "INTEGER[]",
        "int2vector": "SMALLINT[]",
        "oidvector": "UINTEGER[]",
    }
)


def parsed(sql: str) -> Any | None:
    """The tree of one statement; None: it is not read here."""
    try:
        dialect = sqlglot.Dialect.get_or_raise("postgres")
        tokens = dialect.tokenize(sql)
        if len(tokens) > _MOST_TOKENS:
            return None
        trees = [tree for tree in dialect.parser().parse(tokens, sql) if tree is not None]
    except Exception:  # a parser that is surprised may raise anything
        return None
    return trees[0] if len(trees) == 1 else None


def is_of_catalogue(tree: Any, relations: Collection[str]) -> bool:
    """Whether a statement is about the catalogue, or about nothing; `relations` as pg_catalog.x."""
    several = exp.Union | exp.Except | exp.Intersect
    if not isinstance(tree, exp.Select | several | exp.Subquery | exp.Values):
        return False
    return None not in _relations_of(tree, relations)


def names_catalogue(tree: Any, relations: Collection[str]) -> bool:
    """Whether a statement names a relation of the catalogue, perhaps beside others."""
    return any(name is not None for name in _relations_of(tree, relations))


def _relations_of(tree: Any, relations: Collection[str]) -> list[str | None]:
    """The relation that each name is, but for those of its own WITH; None: it is another one."""
    defined = _defined(tree)
    return [
        relation_of(table, relations)
        for table in tree.find_all(exp.Table)
        if not isinstance(table.this, exp.Func)
        and (table.args.get("db") or table.name.lower() not in defined)
    ]


def _defined(tree: Any) -> frozenset[str]:
    """The names that a WITH defines somewhere."""
    return frozenset(common.alias.lower() for common in tree.find_all(exp.CTE))


def relation_of(table: Any, relations: Collection[str]) -> str | None:
    """The relation that a table of the tree is: of its schema, or of pg_catalog."""
    schema, name = table.text("db").lower(), table.name.lower()
    catalog = table.text("catalog").lower()
    if catalog not in ("", "lastbit"):
        return None
    if not schema and name.startswith("pg_"):
        schema = PG
    full = f"{schema}.{name}"
    return full if full in relations else None


def rewritten(tree: Any, relations: Collection[str], literals: Sequence[Any], user: str) -> str:
    """The statement as the database takes it."""
    if tree.find(exp.Into) is not None:
        raise Wrong("25006", "SELECT INTO is not possible: nothing is written here")
    tree = tree.copy()
    for lock in list(tree.find_all(exp.Lock)):
        lock.parent.set("locks", None)
    for select in list(tree.find_all(exp.Select)):
        _name_items(select)
    tree = _all_spelled(tree, literals)
    for node in list(tree.find_all(exp.Anonymous)):
        if str(node.this) in _OF_USER:
            node.replace(exp.Literal.string(user))
    defined = _defined(tree)
    for table in list(tree.find_all(exp.Table)):
        _place(table, relations, defined)
    for common in tree.find_all(exp.CTE):
        common.args["alias"].set("this", _of_with(common.alias))
    return str(tree.sql(dialect="duckdb", comments=False))


def _name_items(select: Any) -> None:
    """Give functions without a name the one that PostgreSQL gives them."""
    for item in list(select.expressions):
        name = None if isinstance(item, exp.Alias | exp.Column | exp.Star) else item_name(item)
        if name is not None and not isinstance(item, exp.Dot) | isinstance(item, exp.Star):
            item.replace(exp.alias_(item.copy(), name, quoted=True))


def item_name(node: Any) -> str:
    """What PostgreSQL calls an item of SELECT without AS."""
    while isinstance(node, exp.Paren | exp.Window | exp.Filter | exp.Collate | exp.Bracket):
        node = node.this
    if isinstance(node, exp.Dot):
        return item_name(node.expression)
    if isinstance(node, exp.Column | exp.Identifier):
        return str(node.name)
    if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Select):
        items = node.this.expressions
        return str(items[0].alias) if items and items[0].alias else item_name(items[0])
    if isinstance(node, exp.Cast):
        inner = item_name(node.this)
        return inner if inner != "?column?" else type_name(node.to).lower()
    if type(node).__name__ in _NAMES_OF_NODES:
        return _NAMES_OF_NODES[type(node).__name__]
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower()
    if isinstance(node, exp.Func) and not isinstance(node, exp.Connector):
        return str(node.sql_name()).lower()
    return "?column?"


def type_name(kind: Any) -> str:
    """The last part of a type's name."""
    if isinstance(kind, exp.DataType):
        if kind.this == exp.DataType.Type.USERDEFINED:
            named = kind.args.get("kind")
            if isinstance(named, exp.Dot):
                named = named.expression
            return str(named.name if isinstance(named, exp.Expression) else named).lower()
        if kind.this == exp.DataType.Type.ARRAY:
            return "_" + type_name(kind.expressions[0]) if kind.expressions else "_text"
        return str(kind.this.value if hasattr(kind.this, "value") else kind.this).lower()
    return str(kind.this.value if hasattr(kind.this, "value") else kind.this).lower()


def _all_spelled(tree: Any, literals: Sequence[Any]) -> Any:
    """The tree with every node as the database spells it, the inner ones first."""
    around = exp.Paren(this=tree)
    for node in reversed(list(tree.walk(bfs=True))):
        made = _spelled(node, literals)
        if made is not node:
            node.replace(made)
    return around.this


def _spelled(node: Any, literals: Sequence[Any]) -> Any:
    """A node as the database spells it."""
    match node:
        case exp.Parameter():
            return _literal(node, literals)
        case exp.Dot() if isinstance(node.this, exp.Identifier) and _is_place(node.this):
            return node.expression
        case exp.Collate():
            return node.this
        case exp.Operator():
            return _operator(node)
        case exp.Cast():
            return _cast(node)
        case exp.Any():
            return _over_list(node)
        case exp.AtTimeZone():
            return node.this
        case exp.Column() if not node.args.get("table") and node.name.lower() == "user":
            return _called("current_user") if not node.this.args.get("quoted") else node
        case exp.Column() if node.name.lower() == "tableoid":
            return exp.Literal.number(1259)
        case exp.Column() if node.args.get("db"):
            node.set("db", None)
            node.set("catalog", None)
            return node
        case exp.Anonymous() if str(node.this).lower() == "all" and node.expressions:
            return _over_list(node)
        case exp.Anonymous() if str(node.this).lower().startswith(PREFIX):
            raise unknown_function(str(node.this))
        case exp.Anonymous() if str(node.this).lower() in _RENAMED:
            name = _RENAMED[str(node.this).lower()]
            return exp.Anonymous(this=name, expressions=node.expressions)
        case exp.Anonymous() if str(node.this).lower() in MADE:
            return exp.Anonymous(this=PREFIX + str(node.this).lower(), expressions=node.expressions)
    spoken = _SPOKEN.get(type(node).__name__)
    if spoken is not None:
        inner = [node.this] if isinstance(node.this, exp.Expression) else []
        return _called(spoken, *inner)
    return node


def _called(name: str, *arguments: Any) -> Any:
    return exp.Anonymous(this=PREFIX + name, expressions=list(arguments))


def _is_place(name: Any) -> bool:
    return name.name.lower() in PLACES


def _literal(node: Any, literals: Sequence[Any]) -> Any:
    words = node.this.name if isinstance(node.this, exp.Expression) else str(node.this)
    place = int(words) if words.isdigit() else 0
    if not 1 <= place <= len(literals):
        raise Wrong("08P01", f"there is no value for ${words[:10]}")
    value = literals[place - 1]
    if value is None:
        return exp.Null()
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, int | float):
        number = exp.Literal.number(repr(abs(value)))
        return exp.Neg(this=number) if value < 0 else number
    return exp.Literal.string(str(value))


_OF_USER = frozenset(f"{PREFIX}{name}" for name in ("current_user", "session_user", "current_role"))
_OPERATORS: Mapping[str, type[Any]] = MappingProxyType(
    {"~": exp.RegexpLike, "~*": exp.RegexpILike, "=": exp.EQ, "<>": exp.NEQ, "~~": exp.Like}
    | {"<": exp.LT, ">": exp.GT, "<=": exp.LTE, ">=": exp.GTE, "||": exp.DPipe, "~~*": exp.ILike}
    | {"+": exp.Add, "-": exp.Sub}
)


def _operator(node: Any) -> Any:
    """OPERATOR(pg_catalog.~)."""
    sign = str(node.args["operator"]).rpartition(".")[2].strip()
    negated = sign.startswith("!")
    kind = _OPERATORS.get(sign.removeprefix("!") if negated else sign)
    if kind is None:
        raise Wrong("42883", f"operator {sign[:10]} is not known here")
    made = kind(this=node.this, expression=node.expression)
    return exp.Not(this=made) if negated else made


def _list_of(text: str) -> Any:
    """'{a,b}' as a list."""
    inner = text.strip()[1:-1]
    items = [item.strip().strip('"') for item in inner.split(",")] if inner.strip() else []
    return exp.Array(expressions=[exp.Literal.string(item) for item in items])


def _over_list(node: Any) -> Any:
    """ANY and ALL over '{a,b}'."""
    inside = node.expressions[0] if isinstance(node, exp.Anonymous) else node.this
    while isinstance(inside, exp.Paren):
        inside = inside.this
    if isinstance(inside, exp.Literal) and inside.is_string:
        made = _list_of(inside.this)
        if isinstance(node, exp.Anonymous):
            return exp.Anonymous(this="all", expressions=[made])
        return exp.Any(this=exp.Paren(this=made))
    return node


def _cast(node: Any) -> Any:
    """A cast to a type of PostgreSQL's catalogue."""
    name, value = type_name(node.to), node.this
    if name == "regclass":
        return _called("to_regclass", value)
    if name == "regnamespace" and isinstance(value, exp.Literal) and value.is_string:
        return _called("to_regnamespace", value)
    if name == "regtype" and isinstance(value, exp.Literal) and value.is_string:
        return _called("to_regtype", value)
    inner = value
    while isinstance(inner, exp.Paren):
        inner = inner.this
    made = isinstance(inner, exp.Anonymous) and str(inner.this)
    if _TYPES.get(name, name).upper() in ("VARCHAR", "TEXT"):
        if made == f"{PREFIX}to_regclass":
            return _called("regclass_text", *inner.expressions)
        if isinstance(inner, exp.Cast) and getattr(inner, "meta", {}).get("regtype"):
            return _called("format_type", inner.this, exp.Null())
    if isinstance(inner, exp.Literal) and inner.is_string and inner.this.strip().startswith("{"):
        value = _list_of(inner.this)
    kind = _TYPES.get(name)
    if kind is None:
        if isinstance(node.to, exp.DataType) and node.to.this != exp.DataType.Type.USERDEFINED:
            node.set("this", value)
            return node
        raise Wrong("42704", f'type "{name[:60]}" is not known here')
    made_cast = exp.Cast(this=value, to=exp.DataType.build(kind, dialect="duckdb"))
    made_cast.meta["regtype"] = name == "regtype"
    return made_cast


def _of_with(name: str) -> Any:
    return exp.to_identifier(f"{OF_WITH}{name.lower()}", quoted=True)


def _place(table: Any, relations: Collection[str], defined: Collection[str]) -> None:
    """Give a relation its place in the database."""
    if isinstance(table.this, exp.Func):
        table.set("db", None)
        table.set("catalog", None)
        return
    if not table.args.get("db") and table.name.lower() in defined:
        if not table.alias:
            alias = exp.to_identifier(table.name, quoted=True)
            table.set("alias", exp.TableAlias(this=alias))
        table.set("this", _of_with(table.name))
        return
    found = relation_of(table, relations)
    if found is None:
        raise Wrong("42P01", "a relation is not one of the catalogue")
    schema, name = found.split(".")
    if not table.alias:
        table.set("alias", exp.TableAlias(this=exp.to_identifier(name)))
    table.set("catalog", None)
    table.set("db", exp.to_identifier(PLACES[schema]))
    table.set("this", exp.to_identifier(name, quoted=True))


def unknown_function(name: str) -> Wrong:
    """The refusal of a function of no list."""
    problem = f"function {name[:60]}() is not known to the catalogue"
    return Wrong("42883", problem, hint="ask about a table: SELECT ... FROM ...")
