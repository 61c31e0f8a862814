"""What a statement says before it is planned: its tables, its columns in order, its parameters.

For those who ask by a protocol with parameters ($1) and without naming a card.

Law      `with_values` puts a literal of the parser's tree where a parameter stands: no value is
         ever a part of a text that is parsed again as anything but that literal
Theorem  (injection)  whatever the values are, the tree of the statement that comes of them is the
         tree of the statement with these literals in the places of its parameters
Proof    the printer (sqlglot's, for DuckDB's dialect) doubles the quotes of a text, in which
         nothing else has a meaning there; numbers are digits, in brackets where they are negative;
         the rest are of a class each. `_check_values` reads what was printed, and compares the
         two trees node by node
Checked  tests/tables/test_sql_asked.py
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from sqlglot import exp

from lastbit.tables.limits import refused
from lastbit.tables.query.expression import ColumnType
from lastbit.tables.sql.grouping import item_names
from lastbit.tables.sql.parse import kind_of, statement_tree

_COMPARED = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Like, exp.ILike, exp.Is)
_BESIDE = (*_COMPARED, exp.Between, exp.In)
_CAST: Mapping[str, ColumnType] = MappingProxyType(
    {
        **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT", "INT128", "UINT"), "integer"),
        **dict.fromkeys(("FLOAT", "DOUBLE", "DECIMAL"), "number"),
        **dict.fromkeys(("CHAR", "VARCHAR", "TEXT", "NVARCHAR", "NCHAR"), "text"),
        "BOOLEAN": "boolean",
        "DATE": "date",
        **dict.fromkeys(("TIMESTAMP", "DATETIME", "TIMESTAMPNTZ"), "timestamp"),
    }
)


def tables_named(sql: str) -> list[str]:
    """The names in FROM and JOIN that WITH does not define, in their order."""
    tree = statement_tree(sql)
    defined = {common.alias.lower() for common in tree.find_all(exp.CTE)}
    found = (table.name for table in tree.find_all(exp.Table))
    return list(dict.fromkeys(name for name in found if name.lower() not in defined))


def columns_named(sql: str) -> list[str] | None:
    """The names that the outermost SELECT gives its columns, in order; None if that is not said."""
    return _columns_of(statement_tree(sql), {})


def _columns_of(select: Any, defined: dict[str, Any]) -> list[str] | None:
    while kind_of(select) == "Subquery":
        select = select.this
    if kind_of(select) != "Select":
        return None
    with_ = select.args.get("with_")
    defined = dict(defined)
    for common in [] if with_ is None else with_.expressions:
        defined[common.alias.lower()] = common.this
    found: list[str] = []
    plain = [item for item in select.expressions if not _is_star(item)]
    names = iter(name for name, _ in item_names(plain))
    for item in select.expressions:
        if not _is_star(item):
            found.append(next(names))
            continue
        source = None if select.args.get("from_") is None else select.args["from_"].this
        if kind_of(source) == "Table" and source is not None:
            source = defined.get(source.name.lower())
        inner = None if source is None else _columns_of(source, defined)
        if inner is None:
            return None
        found += inner
    return found


def _is_star(item: Any) -> bool:
    return isinstance(item, exp.Star) or (
        isinstance(item, exp.Column) and isinstance(item.this, exp.Star)
    )


# ---------------------------------------------------------------- parameters


def parameter_kinds(
    sql: str, kind_of_column: Callable[[str], ColumnType | None]
) -> list[ColumnType]:
    """The type of each parameter, by what it is compared with or cast to; else text."""
    tree = statement_tree(sql)
    found: dict[int, ColumnType | None] = {}
    for node in tree.find_all(exp.Placeholder):
        place = _place(node)
        found[place] = found.get(place) or _kind(node, kind_of_column)
    most = max(found, default=0)
    return [found.get(place) or "text" for place in range(1, most + 1)]


def _place(node: Any) -> int:
    words = str(node.this or "")
    if not re.fullmatch("[0-9]{1,4}", words) or not 1 <= int(words) <= 1000:
        raise refused("a parameter", "is not $1 to $1000", "number them from $1 on")
    return int(words)


def _kind(node: Any, kind_of_column: Callable[[str], ColumnType | None]) -> ColumnType | None:
    parent = _parent(node)
    if isinstance(parent, exp.Limit | exp.Offset):
        return "integer"
    if isinstance(parent, exp.Cast):
        return _CAST.get(parent.to.this.name)
    for name in _names_beside(node):
        if (kind := kind_of_column(name)) is not None:
            return kind
    if isinstance(parent, _BESIDE) and any(isinstance(one, exp.AggFunc) for one in parent.walk()):
        return "number"  # HAVING COUNT(*) > $1
    return None


def parameter_columns(sql: str) -> list[list[str]]:
    """The names of columns that each parameter is compared with."""
    found: dict[int, list[str]] = {}
    for node in statement_tree(sql).find_all(exp.Placeholder):
        found.setdefault(_place(node), []).extend(_names_beside(node))
    return [found.get(place, []) for place in range(1, max(found, default=0) + 1)]


def _names_beside(node: Any) -> list[str]:
    parent = _parent(node)
    beside = parent.find_all(exp.Column) if isinstance(parent, _BESIDE) else ()
    return [column.name for column in beside]


def _parent(node: Any) -> Any:
    """What a parameter stands in, but for brackets and a sign."""
    parent = node.parent
    while isinstance(parent, exp.Paren | exp.Neg):
        parent = parent.parent
    return parent


def with_values(sql: str, values: Sequence[tuple[ColumnType, Any]]) -> str:
    """The statement with literals in the places of its parameters.

    >>> with_values("SELECT count(*) FROM t WHERE a = $1", [("text", "it's; --")])
    "SELECT COUNT(*) FROM t WHERE a = 'it''s; --'"
    """
    tree = statement_tree(sql)
    nodes = list(tree.find_all(exp.Placeholder))
    if not nodes:
        return sql
    for node in nodes:
        place = _place(node)
        if place > len(values):
            raise refused(f"${place}", "has no value", "send a value for each parameter")
        node.replace(_literal(*values[place - 1]))
    printed = str(tree.sql(dialect="duckdb"))
    _check_values(tree, printed)
    return printed


def _check_values(tree: Any, printed: str) -> None:
    """That what was printed is read as what it was printed from."""
    if not _is_same(tree, statement_tree(printed)):
        raise refused("a parameter", "is not read as it was sent", "write it into the statement")


def _is_same(one: Any, other: Any) -> bool:
    """Whether two trees are of the same nodes; the case of names counts, that of keywords not."""
    pairs = [(one, other)]
    while pairs:
        left, right = pairs.pop()
        if isinstance(left, exp.Expression):
            if type(left) is not type(right):
                return False
            exact = isinstance(left, exp.Literal | exp.Identifier)
            pairs += [
                (_part(left, name, exact=exact), _part(right, name, exact=exact))
                for name in {*left.args, *right.args}
            ]
        elif isinstance(left, list):
            if not isinstance(right, list) or len(left) != len(right):
                return False
            pairs += zip(left, right, strict=True)
        elif left != right:
            return False
    return True


def _part(node: Any, name: str, *, exact: bool) -> Any:
    """What a node has under this name; nothing, an empty list and False are the same."""
    part = node.args.get(name)
    if isinstance(part, str) and not exact:
        return part.lower()
    return part if isinstance(part, str) else part or None


def _literal(kind: ColumnType, value: Any) -> Any:
    if value is None:
        return exp.Null()
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, int | float):
        if isinstance(value, float) and not math.isfinite(value):
            raise refused("a parameter", "is not a finite number", "send another")
        number = exp.Literal.number(repr(abs(value)))
        return exp.Paren(this=exp.Neg(this=number)) if value < 0 else number
    text = exp.Literal.string(str(value))
    if kind == "date":
        return exp.Cast(this=text, to=exp.DataType(this=exp.DataType.Type.DATE))
    if kind == "timestamp":
        return exp.Cast(this=text, to=exp.DataType(this=exp.DataType.Type.TIMESTAMPNTZ))
    return text
