"""Expressions over one row as SQL that no row can stop, slow down or blow up.

Law      the SQL value is a function of the row's own values (and of public tables)
Theorem  no value of any row makes the statement raise: each operation is written by the engine's
         dialect (`dialect.py`), which promises that
Theorem  the work on a row is bounded by the expression: each call is a few steps that run once
         (`steps.py`), each linear in its operands, and no text has more than LONGEST_TEXT
         bytes: what grows is measured before it is made, or cut off at the next step
Differs  from SQL: what would be an error is missing; NaN is missing; a date outside of the years 1
         to 9999, the infinite ones included, is missing; so is a text of more than LONGEST_TEXT
         bytes. Numbers are doubles, whole numbers 64 bits
Checked  tests/tables/test_compile.py, tests/tables/test_values.py, tests/stability/

NaN needs care, since DuckDB holds it equal to itself and above every number. A sum or product may
be NaN on the way; `settled` makes it missing before anything compares, counts or stores it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TypeAlias

from lastbit.errors import QueryRefused
from lastbit.tables.compile.dialect import Dialect
from lastbit.tables.compile.steps import Steps, Typed
from lastbit.tables.limits import refused
from lastbit.tables.query.expression import (
    Call,
    ColumnName,
    ColumnType,
    Constant,
    Expression,
    value_type,
)

Scope: TypeAlias = Callable[[ColumnName], Typed]


class Spelling:
    """Spells calls by calls, each as steps."""

    def __init__(self, scope: Scope, steps: Steps, dialect: Dialect) -> None:
        self.scope, self.steps, self.dialect = scope, steps, dialect

    def spelled(self, expression: Expression) -> Typed:
        """The expression as a column or constant; NaN is already missing in it."""
        return self._settled(self._spelled(expression))

    def _spelled(self, expression: Expression) -> Typed:
        match expression:
            case ColumnName():
                return self.scope(expression)
            case Constant(value):
                sql = self.dialect.literal(value)
                return Typed(sql, value_type(value), constant=True, value=value)
            case Call(function, arguments):
                self.dialect.check(function)
                first, *rest = (self._spelled(argument) for argument in arguments)
                if first.constant and all(value.constant for value in rest):
                    first = self.steps.choice(first.sql, first.type)  # else it were one for all
                return self._called(function, [first, *rest])

    def _settled(self, value: Typed) -> Typed:
        if not value.unsettled:
            return value
        return self.steps.value(self.dialect.checked(value.sql, "number"), value.type, value)

    def _as(self, value: Typed, kind: ColumnType | None) -> Typed:
        """The value as this type, which is its own or a wider one."""
        if value.type == kind or kind is None:
            return value
        sql = self.dialect.widened(value.sql, kind, value.type)
        if value.constant:
            return replace(value, sql=sql, type=kind)
        return self.steps.value(sql, kind, value, unsettled=value.unsettled)

    def _met(self, function: str, values: list[Typed]) -> list[Typed]:
        """All of one type: whole numbers become numbers, dates timestamps, where they must."""
        kinds: set[ColumnType | None] = {value.type for value in values} - {None}
        for narrow, wide in _WIDER:
            if kinds == {narrow, wide}:
                kinds = {wide}
        if len(kinds) > 1:
            raise _ill_typed(function)
        kind = kinds.pop() if kinds else None
        return [self._as(self._settled(value), kind) for value in values]

    def _only(self, function: str, values: list[Typed], *kinds: ColumnType) -> list[Typed]:
        """The values, all of which are of these kinds or always missing."""
        if any(value.type is not None and value.type not in kinds for value in values):
            raise _ill_typed(function)
        return [self._as(value, kinds[0]) if value.type is None else value for value in values]

    def _called(self, function: str, values: list[Typed]) -> Typed:
        match function:
            case "+" | "-" | "*" | "%" | "/" | "negate" | "abs" | "floor" | "ceil":
                return self._computed(function, self._only(function, values, "integer", "number"))
            case "sqrt" | "ln" | "exp" | "power" | "round":
                return self._real(function, self._only(function, values, "number", "integer"))
            case "=" | "<>" | "<" | "<=" | ">" | ">=":
                left, right = self._met(function, values)
                sql = f"{left.sql} {function} {right.sql}"
                return self.steps.value(sql, "boolean", left, right)
            case "and" | "or":
                parts = self._only(function, values, "boolean")
                sql = f" {function.upper()} ".join(part.sql for part in parts)
                return self.steps.value(sql, "boolean", *parts)
            case "not":
                (part,) = self._only(function, values, "boolean")
                return self.steps.value(f"NOT {part.sql}", "boolean", part)
            case "is_missing":
                value = self._settled(values[0])
                return self.steps.value(f"{value.sql} IS NULL", "boolean", value)
            case "in":
                first, *rest = self._met(function, values)
                sql = f"{first.sql} IN ({', '.join(value.sql for value in rest)})"
                return self.steps.value(sql, "boolean", first, *rest)
            case "case":
                return self._case(values)
            case "bin":
                return self._bin(values, self._only(function, values, "integer", "number"))
            case "clamp":
                met = self._met(function, self._only(function, values, "integer", "number"))
                x, low, high = (one.sql for one in met)
                sql = f"WHEN {x} < {low} THEN {low} WHEN {x} > {high} THEN {high} ELSE {x}"
                return self.steps.choice(f"CASE {sql} END", met[0].type, *met)
            case "coalesce" | "least" | "greatest":
                # each once: the engine cannot copy a plan with least(a, b, a)
                met = list(dict.fromkeys(self._met(function, values)))
                sql = f"{function}({', '.join(value.sql for value in met)})"
                return met[0] if len(met) == 1 else self.steps.choice(sql, met[0].type, *met)
            case "to_integer" | "to_number" | "to_text" | "to_date" | "to_boolean":
                return self._cast(function, values[0])
            case ("year" | "quarter" | "month" | "day" | "hour" | "minute" | "second") | (
                "week" | "weekday" | "day_of_year" | "iso_weekday" | "iso_year"
            ):
                (day,) = self._only(function, values, "timestamp", "date")
                sql = self.dialect.date_part(function, day.sql, day.type or "timestamp")
                return self.steps.value(sql, "integer", day)
            case "start_of_hour" | "start_of_minute":
                (time,) = self._only(function, values, "timestamp")
                sql = self.dialect.start_of(function[9:], time.sql)
                return self.steps.value(sql, "timestamp", time)
            case "strftime":
                return self._formatted(values)
            case ("start_of_year" | "start_of_quarter" | "start_of_month" | "start_of_week") | (
                "days_between"
            ):
                return self._dates(function, self._only(function, values, "date", "timestamp"))
            case "substring":
                first, *places = values
                given = self._only(function, [first], "text")
                given += self._only(function, places, "integer")
            case _:
                given = self._only(function, values, "text")
        self.steps.of_texts = True
        return self._text(function, given)

    def _computed(self, function: str, values: list[Typed]) -> Typed:
        """Arithmetic of whole numbers where all are, and else of doubles.

        Few at a time: a step nests one bracket for each.
        """
        dialect, few = self.dialect, self.dialect.nested_terms
        whole = all(value.type == "integer" for value in values) and function != "/"
        kind: ColumnType = "integer" if whole else "number"
        first, *rest = (self._as(value, kind) for value in values)
        if whole and function in ("floor", "ceil"):
            return first
        spelled = dialect.whole if whole else dialect.number
        if function in ("negate", "abs", "floor", "ceil"):
            sql = spelled(function, first.sql)
            return self.steps.value(sql, kind, first, unsettled=first.unsettled)
        for start in range(0, len(rest), few):
            sql, others = first.sql, rest[start : start + few]
            for other in others:
                sql = spelled(function, sql, other.sql)
            first = self.steps.value(sql, kind, first, *others, unsettled=not whole)
        return first

    def _real(self, function: str, values: list[Typed]) -> Typed:
        """Functions of doubles. Outside of its domain each is missing."""
        if function == "round" and len(values) == 2 and values[1].type != "integer":
            raise _ill_typed(function)
        first, *rest = values
        x = self._as(self._settled(first), "number")
        if not rest:
            return self.steps.value(self.dialect.number(function, x.sql), "number", x)
        y = rest[0] if function == "round" else self._as(self._settled(rest[0]), "number")
        sql = self.dialect.number(function, x.sql, y.sql)
        return self.steps.value(sql, "number", x, y, unsettled=True)

    def _case(self, values: list[Typed]) -> Typed:
        pairs = len(values) // 2 * 2
        conditions = self._only("case", values[0:pairs:2], "boolean")
        results = self._met("case", [*values[1:pairs:2], *values[pairs:]])
        parts = (
            f"WHEN {condition.sql} THEN {result.sql}"
            for condition, result in zip(conditions, results, strict=False)
        )
        otherwise = f" ELSE {results[-1].sql}" if len(values) > pairs else ""
        sql = f"CASE {' '.join(parts)}{otherwise} END"
        return self.steps.choice(sql, results[0].type, *conditions, *results)

    def _bin(self, given: list[Typed], typed: list[Typed]) -> Typed:
        """The lower edge of the bin that holds the value; each bin is open above."""
        value, *edges = self._met("bin", typed)
        kind: ColumnType = "number" if any(v.type == "number" for v in given[1:]) else "integer"
        lower = [self._as(low, kind) for low in given[1:-1]]
        parts = [f"WHEN {value.sql} < {edges[0].sql} THEN NULL"]
        for edge, low in zip(edges[1:], lower, strict=True):
            parts.append(f"WHEN {value.sql} < {edge.sql} THEN {low.sql}")
        return self.steps.choice(f"CASE {' '.join(parts)} END", kind, value, *edges, *lower)

    def _cast(self, function: str, value: Typed) -> Typed:
        kind, allowed = _CASTS[function]
        settled = self._settled(self._only(function, [value], *allowed)[0])
        if settled.type == kind:
            return settled
        self.steps.of_texts |= "text" in (settled.type, kind)
        sql = self.dialect.cast(settled.sql, kind, settled.type or kind)
        raw = self.steps.value(sql, kind, settled)
        if settled.type != "text" or kind not in ("number", "date"):
            return raw
        return self.steps.value(self.dialect.checked(raw.sql, kind), kind, raw)

    def _dates(self, function: str, values: list[Typed]) -> Typed:
        days = [self._cast("to_date", day) for day in values]
        if function.startswith("start_of_"):
            sql = self.dialect.start_of(function[9:], days[0].sql)
            return self.steps.value(sql, "date", *days)
        sql = self.dialect.days_between.format(a=days[0].sql, b=days[1].sql)
        return self.steps.value(sql, "integer", *days)

    def _formatted(self, values: list[Typed]) -> Typed:
        """A date or time as text: a few letters for each code of the format."""
        (day,) = self._only("strftime", values[:1], "timestamp", "date")
        assert isinstance(values[1].value, str)  # `check_expression` saw to it, and to its codes
        self.steps.of_texts = True
        sql = self.dialect.formatted(day.sql, values[1].value)
        raw = self.steps.value(sql, "text", day)
        return self.steps.value(self.dialect.checked(raw.sql, "text"), "text", raw)

    def _text(self, function: str, values: list[Typed]) -> Typed:
        """A function of texts (and, of substring, whole numbers)."""
        steps, dialect, listed = self.steps, self.dialect, [value.sql for value in values]
        x = listed[0]
        match function:
            case "like" | "ilike":
                subject, pattern = values
                assert pattern.constant  # `check_expression` saw to it
                if not isinstance(pattern.value, str):
                    return steps.value(dialect.missing("boolean"), "boolean")
                if function == "ilike":
                    subject = steps.value(dialect.of_text("lower", [x]), "text", subject)
                sql = dialect.like(subject.sql, pattern.value, lowered=function == "ilike")
                return steps.value(sql, "boolean", subject)
            case "length" | "contains" | "starts_with" | "trim" | "lower" | "upper":
                assert function != "contains" or values[1].constant  # `check_expression` saw to it
                kind = _OF_TEXTS.get(function, "text")
                found = steps.value(dialect.of_text(function, listed), kind, *values)
                if function not in ("lower", "upper"):
                    return found
                return steps.value(dialect.checked(found.sql, "text"), "text", found)  # it may grow
            case "substring":
                return steps.value(dialect.substring(x, listed[1:]), "text", *values)
            case "concat":
                return steps.value(dialect.concat(listed), "text", *values)
        raise refused(function[:40], "is not a function known here", "leave it out")


_OF_TEXTS: Mapping[str, ColumnType] = MappingProxyType(
    {"length": "integer", "contains": "boolean", "starts_with": "boolean"}
)
_WIDER: tuple[tuple[ColumnType, ColumnType], ...] = (("integer", "number"), ("date", "timestamp"))
_CASTS: Mapping[str, tuple[ColumnType, tuple[ColumnType, ...]]] = MappingProxyType(
    {
        "to_integer": ("integer", ("integer", "number", "text", "boolean")),
        "to_number": ("number", ("number", "integer", "text", "boolean")),
        "to_text": ("text", ("text", "integer", "number", "boolean", "date", "timestamp")),
        "to_date": ("date", ("date", "timestamp", "text")),
        "to_boolean": ("boolean", ("boolean", "integer", "text")),
    }
)


def _ill_typed(function: str) -> QueryRefused:
    return refused(function, "is given values of the wrong type", "convert with CAST")
