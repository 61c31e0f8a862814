"""Expressions over one row as SQL text that no row can stop.

Law      the SQL value is a function of the row's own values (and of public tables)
Theorem  no value of any row makes the statement raise: each function that could is wrapped in TRY
         or TRY_CAST, which DuckDB evaluates row by row, or is guarded (a division by 0)
Differs  from SQL: what would be an error is missing; NaN is missing; a date outside of the years 1
         to 9999, the infinite ones included, is missing. Numbers are doubles, whole numbers 64 bits
Checked  tests/tables/test_compile.py, tests/stability/

NaN needs care, since DuckDB holds it equal to itself and above every number. A sum or product may
be NaN on the way; `settled` makes it missing before anything compares, counts or stores it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from types import MappingProxyType
from typing import TypeAlias

from lastbit.errors import QueryRefused
from lastbit.tables.expression import Call, ColumnName, Constant, Expression
from lastbit.tables.literals import double, least_double_from, literal
from lastbit.tables.schema import ColumnType
from lastbit.tables.types import value_type

__all__ = ["SQL_TYPES", "Scope", "Typed", "cast_column", "edge_text", "spelled"]

SQL_TYPES: Mapping[ColumnType, str] = MappingProxyType(
    {
        "integer": "BIGINT",
        "number": "DOUBLE",
        "text": "VARCHAR",
        "boolean": "BOOLEAN",
        "date": "DATE",
        "timestamp": "TIMESTAMP",
    }
)
_LONGEST = 1 << 18
_RANGES: Mapping[str, str] = MappingProxyType(
    {
        "date": "CAST('0001-01-01' AS DATE) AND CAST('9999-12-31' AS DATE)",
        "timestamp": "CAST('0001-01-01 00:00:00' AS TIMESTAMP)"
        " AND CAST('9999-12-31 23:59:59.999999' AS TIMESTAMP)",
    }
)


@dataclass(frozen=True, slots=True)
class Typed:
    """SQL text, its type (None: always missing), and whether it may be NaN on the way."""

    sql: str
    type: ColumnType | None
    unsettled: bool = False


Scope: TypeAlias = Callable[[ColumnName], Typed]


def cast_column(sql: str, kind: ColumnType) -> str:
    """A column of any type, read as this one; what does not fit is missing.

    >>> cast_column('"age"', "integer")
    'TRY_CAST("age" AS BIGINT)'
    """
    cast = f"TRY_CAST({sql} AS {SQL_TYPES[kind]})"
    if kind == "number":
        return _number(cast)
    return _in_range(cast, kind) if kind in _RANGES else cast


def spelled(expression: Expression, scope: Scope) -> Typed:
    """The expression as SQL; NaN is already missing in it."""
    return _settled(_spelled(expression, scope))


def edge_text(edge: Fraction, *, whole: bool) -> str:
    """The least whole number, or double, from the edge on: >= it just if >= the edge.

    >>> edge_text(Fraction(1, 2), whole=True), edge_text(Fraction(1, 2), whole=False)
    ('1', '0.5e0')
    """
    return str(ceil(edge)) if whole else double(least_double_from(edge))


def _spelled(expression: Expression, scope: Scope) -> Typed:
    match expression:
        case ColumnName():
            return scope(expression)
        case Constant(value):
            return Typed(literal(value), value_type(value))
        case Call(function, arguments):
            found = _called(function, [_spelled(argument, scope) for argument in arguments])
            if len(found.sql) > _LONGEST:
                raise QueryRefused(
                    "expression", problem="is too long", remedy="nest fewer functions"
                )
            return found


def _settled(value: Typed) -> Typed:
    if not value.unsettled:
        return value
    return Typed(_number(value.sql), value.type)


def _number(sql: str) -> str:
    """What `sql` says, but missing where it is NaN."""
    return f"CASE WHEN NOT isnan({sql}) THEN {sql} END"


def _unless(sql: str, value: str) -> str:
    """What `sql` says, but missing where it is this value."""
    return f"CASE WHEN {sql} <> {value} THEN {sql} END"  # no nullif: its growth is out of sight


def _in_range(sql: str, kind: ColumnType) -> str:
    return f"CASE WHEN {sql} BETWEEN {_RANGES[kind]} THEN {sql} END"


# ---------------------------------------------------------------- types meet

_WIDER: tuple[tuple[ColumnType, ColumnType], ...] = (("integer", "number"), ("date", "timestamp"))


def _as(value: Typed, kind: ColumnType | None) -> Typed:
    """The value as this type, which is its own or a wider one."""
    if value.type == kind or kind is None:
        return value
    return Typed(f"CAST({value.sql} AS {SQL_TYPES[kind]})", kind, value.unsettled)


def _met(function: str, values: list[Typed]) -> list[Typed]:
    """All of one type: whole numbers become numbers, dates timestamps, where they must."""
    kinds: set[ColumnType | None] = {value.type for value in values} - {None}
    for narrow, wide in _WIDER:
        if kinds == {narrow, wide}:
            kinds = {wide}
    if len(kinds) > 1:
        raise _ill_typed(function)
    kind = kinds.pop() if kinds else None
    return [_as(_settled(value), kind) for value in values]


def _only(function: str, values: list[Typed], *kinds: ColumnType) -> list[Typed]:
    """The values, all of which are of these kinds or always missing."""
    if any(value.type is not None and value.type not in kinds for value in values):
        raise _ill_typed(function)
    return [_as(value, kinds[0]) if value.type is None else value for value in values]


def _ill_typed(function: str) -> QueryRefused:
    return QueryRefused(
        function, problem="is given values of the wrong type", remedy="convert with CAST"
    )


# ---------------------------------------------------------------- functions


def _called(function: str, values: list[Typed]) -> Typed:
    match function:
        case "+" | "-" | "*" | "%" | "/" | "negate" | "abs" | "floor" | "ceil":
            return _arithmetic(function, _only(function, values, "integer", "number"))
        case "sqrt" | "ln" | "exp" | "power" | "round":
            return _real(function, _only(function, values, "number", "integer"))
        case "=" | "<>" | "<" | "<=" | ">" | ">=":
            left, right = _met(function, values)
            return Typed(f"({left.sql} {function} {right.sql})", "boolean")
        case "and" | "or":
            parts = (value.sql for value in _only(function, values, "boolean"))
            return Typed(f"({f' {function.upper()} '.join(parts)})", "boolean")
        case "not":
            return Typed(f"(NOT {_only(function, values, 'boolean')[0].sql})", "boolean")
        case "is_missing":
            return Typed(f"({_settled(values[0]).sql} IS NULL)", "boolean")
        case "in" | "case" | "coalesce" | "least" | "greatest" | "clamp" | "bin":
            return _choosing(function, values)
        case "to_integer" | "to_number" | "to_text" | "to_date" | "to_boolean":
            return _cast(function, values[0])
        case "year" | "quarter" | "month" | "day" | "hour" | "weekday":
            return _part(function, values[0])
        case "start_of_month" | "days_between":
            return _dates(function, values)
        case _:
            return _text(function, values)


def _arithmetic(function: str, values: list[Typed]) -> Typed:
    whole = all(value.type == "integer" for value in values) and function != "/"
    kind: ColumnType = "integer" if whole else "number"
    first, *rest = (_as(value, kind) for value in values)
    if function in ("negate", "abs", "floor", "ceil"):
        if whole and function in ("floor", "ceil"):
            return first
        name = "-" if function == "negate" else function
        return replace(first, sql=f"TRY({name}({first.sql}))")
    sql = first.sql
    for other in rest:
        divides = function in ("/", "%")
        zero = literal(0) if whole else double(0)
        right = _unless(other.sql, zero) if divides else other.sql
        sql = f"TRY({sql} {function} {right})"
    return Typed(sql, kind, unsettled=not whole)


def _real(function: str, values: list[Typed]) -> Typed:
    """Functions of doubles. Outside of its domain each is missing, as NaN or by TRY."""
    if function == "round" and len(values) == 2 and values[1].type != "integer":
        raise _ill_typed(function)
    first = _as(_settled(values[0]), "number").sql
    match function:
        case "ln":
            return Typed(f"TRY(ln(CASE WHEN {first} > 0 THEN {first} END))", "number")
        case "power":
            second = _as(_settled(values[1]), "number").sql
            return Typed(f"TRY(power({first}, {second}))", "number", unsettled=True)
        case "round" if len(values) == 2:
            digits = f"TRY_CAST(least(greatest({values[1].sql}, -400), 400) AS INTEGER)"
            return Typed(f"TRY(round({first}, {digits}))", "number", unsettled=True)
        case _:
            return Typed(f"TRY({function}({first}))", "number", unsettled=True)


def _choosing(function: str, values: list[Typed]) -> Typed:
    match function:
        case "in":
            first, *rest = _met(function, values)
            return Typed(f"({first.sql} IN ({', '.join(v.sql for v in rest)}))", "boolean")
        case "case":
            return _case(values)
        case "clamp":
            value, low, high = _met(function, _only(function, values, "integer", "number"))
            return Typed(
                f"CASE WHEN {value.sql} < {low.sql} THEN {low.sql}"
                f" WHEN {value.sql} > {high.sql} THEN {high.sql} ELSE {value.sql} END",
                value.type,
            )
        case "bin":
            return _bin(_met(function, _only(function, values, "integer", "number")), values)
        case _:
            met = _met(function, values)
            return Typed(f"{function}({', '.join(value.sql for value in met)})", met[0].type)


def _case(values: list[Typed]) -> Typed:
    pairs = len(values) // 2 * 2
    conditions = _only("case", values[0:pairs:2], "boolean")
    results = _met("case", [*values[1:pairs:2], *values[pairs:]])
    parts = (
        f"WHEN {condition.sql} THEN {result.sql}"
        for condition, result in zip(conditions, results, strict=False)
    )
    otherwise = f" ELSE {results[-1].sql}" if len(values) > pairs else ""
    return Typed(f"CASE {' '.join(parts)}{otherwise} END", results[0].type)


def _bin(met: list[Typed], given: list[Typed]) -> Typed:
    """The lower edge of the bin that holds the value; each bin is open above."""
    value, *edges = met
    kind: ColumnType = "number" if any(v.type == "number" for v in given[1:]) else "integer"
    parts = [f"WHEN {value.sql} < {edges[0].sql} THEN NULL"]
    for edge, low in zip(edges[1:], given[1:], strict=False):
        parts.append(f"WHEN {value.sql} < {edge.sql} THEN {_as(low, kind).sql}")
    return Typed(f"CASE {' '.join(parts)} END", kind)


def _cast(function: str, value: Typed) -> Typed:
    kinds: dict[str, tuple[ColumnType, tuple[ColumnType, ...]]] = {
        "to_integer": ("integer", ("integer", "number", "text", "boolean")),
        "to_number": ("number", ("number", "integer", "text", "boolean")),
        "to_text": ("text", ("text", "integer", "number", "boolean", "date", "timestamp")),
        "to_date": ("date", ("date", "timestamp", "text")),
        "to_boolean": ("boolean", ("boolean", "integer", "text")),
    }
    kind, allowed = kinds[function]
    settled = _settled(_only(function, [value], *allowed)[0])
    return settled if settled.type == kind else Typed(cast_column(settled.sql, kind), kind)


def _part(function: str, value: Typed) -> Typed:
    name = "dayofweek" if function == "weekday" else function  # 0 is Sunday
    (value,) = _only(function, [value], "timestamp", "date")
    return Typed(f"TRY(CAST({name}({value.sql}) AS BIGINT))", "integer")


def _dates(function: str, values: list[Typed]) -> Typed:
    days = [
        f"TRY_CAST({value.sql} AS DATE)" for value in _only(function, values, "date", "timestamp")
    ]
    if function == "start_of_month":
        return Typed(f"TRY(CAST(date_trunc('month', {days[0]}) AS DATE))", "date")
    return Typed(f"TRY(CAST(date_diff('day', {days[0]}, {days[1]}) AS BIGINT))", "integer")


def _text(function: str, values: list[Typed]) -> Typed:
    if function == "substring":
        first, *places = values
        parts = [*_only(function, [first], "text"), *_only(function, places, "integer")]
    else:
        parts = _only(function, values, "text")
    inner = ", ".join(part.sql for part in parts)
    match function:
        case "like" | "ilike":
            return Typed(f"TRY({parts[0].sql} {function.upper()} {parts[1].sql})", "boolean")
        case "length":
            return Typed(f"TRY(CAST(length({inner}) AS BIGINT))", "integer")
        case "starts_with" | "contains":
            return Typed(f"TRY({function}({inner}))", "boolean")
        case "lower" | "upper" | "trim" | "substring" | "concat":
            return Typed(f"TRY({function}({inner}))", "text")
    raise QueryRefused(function[:40], problem="is no function known here", remedy="leave it out")
