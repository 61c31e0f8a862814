"""The type of an expression, worked out from the card alone; nonsense is refused before it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime
from fractions import Fraction
from types import MappingProxyType

from lastbit.errors import QueryRefused
from lastbit.tables.expression import Call, ColumnName, Constant, Expression, Value
from lastbit.tables.schema import ColumnType, DataCard
from lastbit.tables.size import check_expression

__all__ = ["Lookup", "card_types", "dated", "type_of", "typed", "value_type"]

Lookup = Callable[[ColumnName], ColumnType]

_NUMBERS = ("integer", "number")
_DAYS = ("date", "timestamp")
_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "in")
_RESULTS: Mapping[str, ColumnType] = MappingProxyType(
    {
        **dict.fromkeys((*_COMPARISONS, "and", "or", "not", "is_missing"), "boolean"),
        **dict.fromkeys(("like", "ilike", "starts_with", "contains", "to_boolean"), "boolean"),
        **dict.fromkeys(("/", "sqrt", "ln", "exp", "power", "round", "to_number"), "number"),
        **dict.fromkeys(("length", "to_integer", "days_between"), "integer"),
        **dict.fromkeys(("year", "quarter", "month", "day", "hour", "weekday"), "integer"),
        **dict.fromkeys(("lower", "upper", "trim", "substring", "concat", "to_text"), "text"),
        **dict.fromkeys(("to_date", "start_of_month"), "date"),
    }
)
_WANTS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        **dict.fromkeys(("+", "-", "*", "/", "%", "negate", "abs", "floor", "ceil"), _NUMBERS),
        **dict.fromkeys(("sqrt", "ln", "exp", "power", "round", "clamp", "bin"), _NUMBERS),
        **dict.fromkeys(("and", "or", "not"), ("boolean",)),
        **dict.fromkeys(("like", "ilike", "starts_with", "contains"), ("text",)),
        **dict.fromkeys(("lower", "upper", "trim", "length", "concat"), ("text",)),
        **dict.fromkeys(("year", "quarter", "month", "day", "weekday"), _DAYS),
        **dict.fromkeys(("start_of_month", "days_between"), _DAYS),
        "hour": ("timestamp",),
        "to_integer": (*_NUMBERS, "text", "boolean"),
        "to_number": (*_NUMBERS, "text", "boolean"),
        "to_date": ("text", *_DAYS),
        "to_boolean": ("boolean", "integer", "text"),
    }
)


def card_types(card: DataCard) -> Lookup:
    """How columns of this card and of its public tables are typed."""

    def lookup(column: ColumnName) -> ColumnType:
        if column.table is None:
            return card.column(column.name).type
        for table in card.public.values():
            if table.name == column.table and column.name in table.columns:
                return table.columns[column.name]
        raise QueryRefused(
            f"column {column.name[:60]}",
            problem="is in no public table of the card",
            remedy="check its name",
        )

    return lookup


def typed(expression: Expression, lookup: Lookup) -> Expression:
    """The expression, checked to be of sensible patterns and types, its dates read as dates."""
    check_expression(expression)
    found = dated(expression, lookup)
    type_of(found, lookup)
    return found


def type_of(expression: Expression, lookup: Lookup) -> ColumnType | None:
    """The type, or None for what is always missing.

    >>> type_of(Call("<", (Constant(1), Constant(Fraction(1, 2)))), lambda column: "text")
    'boolean'
    """
    match expression:
        case Constant(value):
            return value_type(value)
        case ColumnName():
            return lookup(expression)
        case Call(function, arguments):
            return _called(function, [type_of(argument, lookup) for argument in arguments])


def dated(expression: Expression, lookup: Lookup) -> Expression:
    """The expression with texts that are compared with dates read as dates.

    >>> asked = Call("=", (ColumnName("d"), Constant("2026-01-31")))
    >>> dated(asked, lambda column: "date").arguments[1]
    Constant(value=datetime.date(2026, 1, 31))
    """
    if not isinstance(expression, Call):
        return expression
    arguments = [dated(argument, lookup) for argument in expression.arguments]
    if expression.function in (*_COMPARISONS, "days_between", "coalesce", "least", "greatest"):
        types = {type_of(argument, lookup) for argument in arguments}
        for kind, read in _READERS:
            if kind in types and "text" in types:
                arguments = [_read(argument, read) for argument in arguments]
    return Call(expression.function, tuple(arguments))


_READERS: tuple[tuple[ColumnType, Callable[[str], date]], ...] = (
    ("timestamp", datetime.fromisoformat),
    ("date", date.fromisoformat),
)


def _read(expression: Expression, read: Callable[[str], date]) -> Expression:
    match expression:
        case Constant(str(text)):
            try:
                found = read(text)
            except ValueError:
                found = None
            if found is None or getattr(found, "tzinfo", None) is not None:
                raise QueryRefused(
                    "a date",
                    problem="is not understood",
                    remedy="write it as 2026-01-31, a time as 2026-01-31 12:00:00, without a zone",
                )
            return Constant(found)
    return expression


def value_type(value: Value) -> ColumnType | None:
    """The type of a constant."""
    match value:
        case None:
            return None
        case bool():
            return "boolean"
        case int():
            return "integer"
        case Fraction():
            return "number"
        case str():
            return "text"
        case datetime():
            return "timestamp"
        case date():
            return "date"


def _called(function: str, types: list[ColumnType | None]) -> ColumnType | None:
    wanted = _WANTS.get(function)
    if wanted is not None:
        for found in types:
            if found is not None and found not in wanted:
                raise _ill_typed(function, f"works on {' or '.join(wanted)}, not on {found}")
    match function:
        case "+" | "-" | "*" | "%" | "negate" | "abs" | "floor" | "ceil" | "clamp":
            return "number" if "number" in types else "integer"
        case "case":
            pairs = len(types) // 2 * 2
            for condition in types[0:pairs:2]:
                if condition not in ("boolean", None):
                    raise _ill_typed("case", "needs conditions that are true or false")
            return _common(function, [*types[1:pairs:2], *types[pairs:]])
        case "coalesce" | "least" | "greatest":
            return _common(function, types)
        case "=" | "<>" | "<" | "<=" | ">" | ">=" | "in":
            _common(function, types)
        case "round" if len(types) == 2 and types[1] != "integer":
            raise _ill_typed("round", "rounds to a whole number of places")
        case "substring":
            if types[0] not in ("text", None) or any(t != "integer" for t in types[1:]):
                raise _ill_typed("substring", "takes a text and one or two whole numbers")
        case "bin":
            return "integer" if "number" not in types[1:] else "number"
    return _RESULTS[function]


def _common(function: str, types: list[ColumnType | None]) -> ColumnType | None:
    """The one type of all, where integers are numbers and dates are timestamps."""
    found = {t for t in types if t is not None}
    for wide in (_NUMBERS, _DAYS):
        if found and found <= set(wide):
            return wide[1] if wide[1] in found else wide[0]  # type: ignore[return-value]
    if len(found) > 1:
        raise _ill_typed(function, f"mixes {' and '.join(sorted(found))}")
    return found.pop() if found else None


def _ill_typed(function: str, problem: str) -> QueryRefused:
    remedy = "convert with CAST(... AS ...)"
    if function in ("-", "+") and any(kind in problem for kind in _DAYS):
        remedy = "count days with days_between(early, late)"
    return QueryRefused(function, problem=problem, remedy=remedy)
