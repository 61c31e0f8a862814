"""What the card alone says of an expression: its type, its bounds, its grid, its possible values.

Nonsense is refused before it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from types import MappingProxyType

from lastbit.errors import QueryRefused
from lastbit.tables.card.column import Column
from lastbit.tables.card.schema import DataCard
from lastbit.tables.limits import LONGEST_TEXT, refused
from lastbit.tables.query.comparing import comparable
from lastbit.tables.query.computed import (
    Bounds,
    about_bounds,
    computed_bounds,
    extreme_bounds,
    quotient_bounds,
    rest_bounds,
    rounded_bounds,
)
from lastbit.tables.query.expression import (
    Call,
    ColumnName,
    ColumnType,
    Constant,
    Expression,
    Value,
    check_expression,
    value_type,
)

Lookup = Callable[[ColumnName], ColumnType]

_NUMBERS = ("integer", "number")
_DAYS = ("date", "timestamp")
_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "in")
_RESULTS: Mapping[str, ColumnType] = MappingProxyType(
    {
        **dict.fromkeys((*_COMPARISONS, "and", "or", "not", "is_missing"), "boolean"),
        **dict.fromkeys(("like", "ilike", "starts_with", "contains", "to_boolean"), "boolean"),
        **dict.fromkeys(("/", "sqrt", "ln", "exp", "power", "round", "to_number"), "number"),
        **dict.fromkeys(("total", "log"), "number"),  # of released columns: never of a row
        **dict.fromkeys(("length", "to_integer", "days_between"), "integer"),
        **dict.fromkeys(("year", "quarter", "month", "day", "hour", "weekday"), "integer"),
        **dict.fromkeys(("minute", "second", "week", "day_of_year"), "integer"),
        **dict.fromkeys(("iso_weekday", "iso_year"), "integer"),
        **dict.fromkeys(("start_of_year", "start_of_quarter", "start_of_week"), "date"),
        **dict.fromkeys(("start_of_hour", "start_of_minute"), "timestamp"),
        "strftime": "text",
        **dict.fromkeys(("lower", "upper", "trim", "substring", "concat", "to_text"), "text"),
        **dict.fromkeys(("to_date", "start_of_month"), "date"),
    }
)
_WANTS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        **dict.fromkeys(("+", "-", "*", "/", "%", "negate", "abs", "floor", "ceil"), _NUMBERS),
        **dict.fromkeys(("sqrt", "ln", "exp", "log", "power", "round"), _NUMBERS),
        **dict.fromkeys(("clamp", "bin"), _NUMBERS),
        **dict.fromkeys(("and", "or", "not"), ("boolean",)),
        **dict.fromkeys(("like", "ilike", "starts_with", "contains"), ("text",)),
        **dict.fromkeys(("lower", "upper", "trim", "length", "concat"), ("text",)),
        **dict.fromkeys(("year", "quarter", "month", "day", "weekday"), _DAYS),
        **dict.fromkeys(("start_of_month", "days_between"), _DAYS),
        **dict.fromkeys(("week", "day_of_year", "iso_weekday", "iso_year"), _DAYS),
        **dict.fromkeys(("start_of_year", "start_of_quarter", "start_of_week"), _DAYS),
        **dict.fromkeys(("hour", "minute", "second"), ("timestamp",)),
        **dict.fromkeys(("start_of_hour", "start_of_minute"), ("timestamp",)),
        "to_integer": (*_NUMBERS, "text", "boolean"),
        "to_number": (*_NUMBERS, "text", "boolean"),
        "to_date": ("text", *_DAYS),
        "to_boolean": ("boolean", "integer", "text"),
    }
)


def card_types(card: DataCard) -> Lookup:
    """How columns of this card and of its other tables are typed."""

    def lookup(column: ColumnName) -> ColumnType:
        own = protected_column(card, column)
        if own is not None and own.is_list and own.name != card.unrolled:
            raise of_lists(own.name)
        if own is not None:
            return own.type
        for table in card.public.values():
            if table.name == column.table and column.name in table.columns:
                return table.columns[column.name]
        raise refused(f"column {column.name[:60]}", "is in no table of the card", "check its name")

    return lookup


def of_lists(name: str) -> QueryRefused:
    """A refusal of a list where one value is needed."""
    problem = "is a column of lists, and has no one value in a row"
    quoted = f'"{name}"' if not name.isidentifier() else name
    remedy = f"name its elements: FROM ..., UNNEST({quoted}) AS u(element)"
    return refused(f"column {name[:60]}", problem, remedy)


def protected_column(card: DataCard, column: ColumnName) -> Column | None:
    """The column of the table or of a private one; None where it is of a public one."""
    if column.table is None:
        return card.column(column.name)
    table = card.private.get(column.table)
    return None if table is None else table.column(column.name)


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
    """The expression with constants read by what they are compared with, and a // b by types.

    >>> asked = Call("=", (ColumnName("d"), Constant("2026-01-31")))
    >>> dated(asked, lambda column: "date").arguments[1]
    Constant(value=datetime.date(2026, 1, 31))
    """
    if not isinstance(expression, Call):
        return expression
    arguments = [dated(argument, lookup) for argument in expression.arguments]
    if expression.function in _COMPARISONS:
        arguments = comparable(arguments, [type_of(argument, lookup) for argument in arguments])
    if expression.function in (*_COMPARISONS, "days_between", "coalesce", "least", "greatest"):
        types = {type_of(argument, lookup) for argument in arguments}
        for kind, read in _READERS:
            if kind in types and "text" in types:
                arguments = [
                    Constant(day_or_time(part.value, read))
                    if isinstance(part, Constant) and isinstance(part.value, str)
                    else part
                    for part in arguments
                ]
    if expression.function == "concat":  # as DuckDB joins them; of fractions engines differ
        kinds = [type_of(argument, lookup) for argument in arguments]
        arguments = [
            Call("to_text", (part,)) if kind in ("integer", "boolean", "date") else part
            for part, kind in zip(arguments, kinds, strict=True)
        ]
    if expression.function == "//":
        return _quotient(arguments[0], arguments[1], lookup)
    return Call(expression.function, tuple(arguments))


def _quotient(first: Expression, second: Expression, lookup: Lookup) -> Expression:
    """A // b: without its fraction where both are whole, else a / b, as DuckDB has it."""
    if not (_is_counted(first, lookup) and _is_counted(second, lookup)):
        return Call("/", (first, second))
    # a rounded whole number is one in DuckDB, and a number here
    first, second = (
        Call("to_integer", (part,)) if type_of(part, lookup) == "number" else part
        for part in (first, second)
    )
    rest = Call("%", (first, second))
    return Call("to_integer", (Call("/", (Call("-", (first, rest)), second)),))


def _is_counted(expression: Expression, lookup: Lookup) -> bool:
    """Whether DuckDB has it as a whole number: ROUND of one is, FLOOR and CEIL are doubles."""
    match expression:
        case Call("floor" | "ceil"):
            return False
        case Call("round", (inner, *_)):
            return _is_counted(inner, lookup)
        case Call("case"):
            return all(_is_counted(part, lookup) for part in case_results(expression))
        case Call(function, arguments) if function in _AS_THEIR_PARTS:
            return all(_is_counted(part, lookup) for part in arguments)
    return type_of(expression, lookup) in ("integer", None)


_AS_THEIR_PARTS = (
    *("+", "-", "*", "%", "negate", "abs"),
    *("clamp", "coalesce", "least", "greatest"),
)
"""Functions of numbers that are whole where their arguments are."""


_READERS: tuple[tuple[ColumnType, Callable[[str], date]], ...] = (
    ("timestamp", datetime.fromisoformat),
    ("date", date.fromisoformat),
)


def day_or_time(text: str, read: Callable[[str], date]) -> date:
    """The date or time that a text of a question writes; one with a zone is refused."""
    try:
        found = read(text)
    except ValueError:
        found = None
    if found is None or getattr(found, "tzinfo", None) is not None:
        remedy = "write it as 2026-01-31, a time as 2026-01-31 12:00:00, without a zone"
        raise refused("a date", "is not understood", remedy)
    return found


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
        case "strftime":
            if types[0] not in (*_DAYS, None) or types[1] != "text":
                raise _ill_typed("strftime", "takes a date or time and a format in quotes")
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
    if function.startswith("to_"):  # it is a CAST already
        remedy = "take a number out of it, such as year(d), or convert it to text first"
    return refused(_CASTS.get(function, function), problem, remedy)


_CASTS: Mapping[str, str] = MappingProxyType(
    {
        "to_integer": "CAST AS BIGINT",
        "to_number": "CAST AS DOUBLE",
        "to_text": "CAST AS TEXT",
        "to_date": "CAST AS DATE",
        "to_timestamp": "CAST AS TIMESTAMP",
        "to_boolean": "CAST AS BOOLEAN",
    }
)


DATE_PARTS = (
    *(("month", 1, 12), ("quarter", 1, 4), ("day", 1, 31), ("hour", 0, 23), ("weekday", 0, 6)),
    *(("minute", 0, 59), ("second", 0, 59), ("week", 1, 53), ("day_of_year", 1, 366)),
    ("iso_weekday", 1, 7),
)
"""Parts of dates and times, with their least and their greatest value."""
_LARGEST = Fraction(10**300)
_COMPARED = ("=", "<>", "<", "<=", ">", ">=", "in", "like", "ilike", "starts_with", "contains")
TRUTHS = (*_COMPARED, "and", "or", "not", "is_missing", "to_boolean")
"""Functions that are true or false."""

DATE_VALUES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "m": tuple(f"{month:02}" for month in range(1, 13)),
        "d": tuple(f"{day:02}" for day in range(1, 32)),
        "H": tuple(f"{hour:02}" for hour in range(24)),
        "I": tuple(f"{hour:02}" for hour in range(1, 13)),
        "M": tuple(f"{minute:02}" for minute in range(60)),
        "S": tuple(f"{second:02}" for second in range(60)),
        "p": ("AM", "PM"),
        "w": tuple("0123456"),  # 0 is Sunday
        "u": tuple("1234567"),  # 7 is Sunday
        "A": ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"),
        "B": (
            *("January", "February", "March", "April", "May", "June", "July"),
            *("August", "September", "October", "November", "December"),
        ),
        "a": ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"),
        "b": ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
    }
)
"""All that a code of strftime may write, where that is few."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """An expression without its outer clamp, and what is known of it."""

    expression: Expression
    bounds: Bounds | None = None
    step: Fraction | None = None
    nullable: bool = True


def known_of(expression: Expression, card: DataCard) -> Known:
    """Bounds from clamp(x, low, high), from the card, or from the constants of a CASE.

    An outer clamp is taken off: the measure clamps by itself, in integers. LEAST(GREATEST(x, low),
    high) stays, since it makes `low` of a missing value, as SQL says; so it is never missing.
    """
    match expression:
        case ColumnName():
            column = protected_column(card, expression)
            if column is not None:
                return Known(
                    expression=expression,
                    bounds=column.number_bounds,
                    step=column.step,
                    nullable=column.nullable,
                )
        case Call("clamp", (inner, Constant(low), Constant(high))):
            known = known_of(inner, card) if isinstance(inner, ColumnName) else None
            return Known(
                expression=inner,
                bounds=rising_ends(low, high),
                step=None if known is None else known.step,
                nullable=known is None or known.nullable,
            )
        case Call("least" | "greatest"):
            limits = _limits(expression)
            if limits is not None:
                return Known(expression=expression, bounds=limits, nullable=False)
    return Known(expression=expression, bounds=_range(expression, card))


def _limits(expression: Call) -> Bounds | None:
    """The limits of LEAST(GREATEST(x, low), high), in whatever order they are written."""
    outer = _with_constant(expression)
    if outer is None or not isinstance(outer[0], Call) or outer[0].function == expression.function:
        return None
    inner = _with_constant(outer[0]) if outer[0].function in ("least", "greatest") else None
    if inner is None:
        return None
    both = (inner[1], outer[1]) if expression.function == "least" else (outer[1], inner[1])
    return rising_ends(*both)


def _with_constant(expression: Call) -> tuple[Expression, Value] | None:
    match expression.arguments:
        case (inner, Constant(limit)) | (Constant(limit), inner) if not isinstance(inner, Constant):
            return inner, limit
    return None


def _range(expression: Expression, card: DataCard) -> Bounds | None:
    """Bounds that the expression has by itself: constants of a CASE, parts of a date, 0 and 1."""
    match expression:
        case Call("case" | "coalesce" | "least" | "greatest" | "round" | "to_integer"):
            return _proper(reach_of(expression, card))
        case Call("+" | "-" | "*" | "/" | "%" | "negate" | "abs" | "floor" | "ceil"):
            return _proper(reach_of(expression, card))
        case Call("sqrt" | "ln" | "exp" | "power" | "length" | "bin"):
            return _proper(reach_of(expression, card))
        case Call("to_integer" | "to_number", (inner,)):
            truth = type_of(inner, card_types(card)) == "boolean"
            return (Fraction(0), Fraction(1)) if truth else None
        case Call(function):
            for part, first, last in DATE_PARTS:
                if part == function:
                    return Fraction(first), Fraction(last)
    return None


def _proper(bounds: Bounds | None) -> Bounds | None:
    """Bounds of which one is below the other: a single value is set against 0."""
    if bounds is None or bounds[0] < bounds[1]:
        return bounds
    value = bounds[0]
    return (min(value, Fraction(0)), max(value, Fraction(0))) if value else None


def reach_of(expression: Expression, card: DataCard) -> Bounds | None:
    """Where the values of an expression lie, if those of its columns are within their bounds.

    They need not be: whatever is aggregated is clamped to the bounds that are found here. So these
    decide what the answer is, never what it costs beyond its price.
    """
    match expression:
        case Constant(value):
            return (Fraction(value), Fraction(value)) if _number(value) else None  # type: ignore[arg-type]
        case ColumnName(_, None):
            return known_of(expression, card).bounds
        case Call("clamp", (_, Constant(low), Constant(high))):
            return rising_ends(low, high)
        case Call("case"):
            return _hull(list(case_results(expression)), card)
        case Call("coalesce", arguments):
            return _hull(list(arguments), card)
        case Call("to_integer" | "to_number", (inner,)):
            if type_of(inner, card_types(card)) == "boolean":
                return Fraction(0), Fraction(1)
            if (parts := whole_quotient(expression)) is not None:
                return quotient_bounds(*(reach_of(part, card) for part in parts))
            return rounded_bounds(reach_of(inner, card))
        case Call("length", (text,)):
            return Fraction(0), Fraction(_most_letters(text, card))
        case Call("bin", (_, *edges)):
            lower = [edge.value for edge in edges[:-1] if isinstance(edge, Constant)]
            known = len(lower) == len(edges) - 1 and all(map(_number, lower))
            return (Fraction(lower[0]), Fraction(lower[-1])) if known else None  # type: ignore[arg-type]
        case Call(function, arguments):
            for part, first, last in DATE_PARTS:
                if part == function:
                    return Fraction(first), Fraction(last)
            found = [reach_of(part, card) for part in arguments]
            if function in ("least", "greatest"):
                there = [_is_there(part, card) for part in arguments]
                return extreme_bounds(function, found, there)
            if function == "%" and found[0] is not None and found[1] is not None:
                whole = type_of(expression, card_types(card)) == "integer"
                return rest_bounds(found[0], found[1], whole=whole)
            return about_bounds(function, found)
    return None


def _most_letters(text: Expression, card: DataCard) -> int:
    """How many letters a text has at most: longer ones than LONGEST_TEXT are missing."""
    match text:
        case Constant(str(value)):
            return len(value)
        case Call("substring", (_, _, Constant(int(most)))):
            return min(abs(most), LONGEST_TEXT)  # below 0 it takes letters before the start
        case ColumnName():
            column = protected_column(card, text)
            if column is not None and column.keys:
                return max(len(str(key)) for key in column.keys)
    return LONGEST_TEXT


def whole_quotient(expression: Expression) -> tuple[Expression, Expression] | None:
    """The a and b of a // b, which `dated` made of it; None for anything else."""
    match expression:
        case Call("to_integer", (Call("/", (Call("-", (first, Call("%", both))), second)),)):
            return (first, second) if both == (first, second) else None
    return None


def _hull(branches: list[Expression], card: DataCard) -> Bounds | None:
    known = [part for part in branches if part != Constant(None)]
    found = [reach_of(part, card) for part in known]
    ends = [end for pair in found if pair is not None for end in pair]
    return (min(ends), max(ends)) if ends and None not in found else None


def rising_ends(low: Value, high: Value) -> Bounds:
    """The ends of a clamp, if they are two numbers that rise."""
    if not _number(low) or not _number(high):
        raise refused("clamp", "needs two numbers", "write clamp(x, 0, 100)")
    bounds = Fraction(low), Fraction(high)  # type: ignore[arg-type]
    if not bounds[0] < bounds[1]:
        raise refused("clamp", "has bounds that do not rise", "write low first")
    return bounds


def check_bounds(name: str, numbers: tuple[Fraction, ...]) -> None:
    """That doubles can hold the bounds or edges of an aggregate."""
    if any(abs(number) > _LARGEST for number in numbers):
        raise refused(name, "has bounds beyond 1e300", "declare smaller ones")


def _number(value: Value) -> bool:
    return isinstance(value, int | Fraction) and not isinstance(value, bool)


def is_exhausted(expression: Expression) -> bool:
    """Whether it says by itself which keys it has, as truths, bins and a CASE of constants do."""
    if not isinstance(expression, Call):
        return False
    if expression.function == "case":
        return all(isinstance(part, Constant) for part in case_results(expression))
    return expression.function in ("bin", *TRUTHS)


def sure_range(expression: Expression) -> Bounds | None:
    """Where the values of an expression lie whatever its columns hold; None if that is unknown."""
    match expression:
        case Constant(value) if _number(value):
            return Fraction(value), Fraction(value)  # type: ignore[arg-type]
        case Call("clamp", (_, Constant(low), Constant(high))):
            return rising_ends(low, high)
        case Call("to_integer" | "to_number", (Call(function),)) if function in TRUTHS:
            return Fraction(0), Fraction(1)
        case Call("*", (first, second)) if first == second:
            ends = sure_range(Call("abs", (first,)))
            return None if ends is None else (ends[0] ** 2, ends[1] ** 2)
        case Call("case" | "coalesce", arguments):
            branches = case_results(expression) if expression.function == "case" else arguments
            ranges = [sure_range(part) for part in branches if part != Constant(None)]
            known = [end for pair in ranges if pair is not None for end in pair]
            return (min(known), max(known)) if known and None not in ranges else None
        case Call(function, arguments):
            for name, least, most in DATE_PARTS:
                if name == function:
                    return Fraction(least), Fraction(most)
            found = [sure_range(part) for part in arguments]
            if function in ("least", "greatest"):
                return extreme_bounds(function, found, [_is_there(part) for part in arguments])
            return computed_bounds(function, found)
    return None


def _is_there(expression: Expression, card: DataCard | None = None) -> bool:
    """Whether it surely has a value: it is a constant, or a column that always has one."""
    match expression:
        case Constant(value):
            return value is not None
        case ColumnName() if card is not None:
            column = protected_column(card, expression)
            return column is not None and not column.nullable
        case Call("clamp", (inner, *_)):
            return _is_there(inner, card)
        case Call("coalesce" | "least" | "greatest", arguments):
            return any(_is_there(part, card) for part in arguments)
    return False


def may_be_missing(expression: Expression, never: frozenset[str] = frozenset()) -> bool:
    """Whether a row can lack its value; `never` are columns that always have one."""
    match expression:
        case Constant(value):
            return value is None
        case ColumnName(name, table):
            return table is not None or name not in never
        case Call("is_missing"):
            return False
        case Call("ln" | "sqrt" | "power"):  # outside of the domain
            return True
        case Call("/" | "%", (first, second)):
            zero = not isinstance(second, Constant) or not second.value
            return zero or may_be_missing(first, never)
        case Call("coalesce" | "least" | "greatest", arguments):
            return all(may_be_missing(part, never) for part in arguments)
        case Call("case"):
            return any(may_be_missing(part, never) for part in case_results(expression))
        case Call(_, arguments):
            return any(may_be_missing(part, never) for part in arguments)


def case_results(case: Call) -> tuple[Expression, ...]:
    """What a CASE can be: its results, and what stands after ELSE, or else nothing."""
    pairs = len(case.arguments) // 2 * 2
    return (*case.arguments[1:pairs:2], *(case.arguments[pairs:] or (Constant(None),)))
