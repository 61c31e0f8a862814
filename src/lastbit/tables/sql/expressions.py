"""From a parsed SQL expression over one row to ours: tables of what is what, and a few handlers.

A kind of node that is in none of the tables here is refused; so is every part of a node that is not
asked for (`parse.taken`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from fractions import Fraction
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from lastbit.tables.limits import refused
from lastbit.tables.query.expression import Call, Constant, Expression
from lastbit.tables.query.rules import call
from lastbit.tables.query.types import day_or_time
from lastbit.tables.sql.parse import kind_of, number_of, taken

Resolve = Callable[[Any], Expression]
"""What a column node, or an aggregate in HAVING, stands for."""

KNOWN_FUNCTIONS = (
    "COUNT, SUM, AVG, STDDEV, MEDIAN, MIN or MAX of columns, arithmetic, comparisons or CASE; "
    "`lastbit help queries` lists all"
)
"""What a refusal of another function recommends."""

_BIGGEST = 2**63 - 1
_DIALECT = ("safe", "typed")
_CHAINS = MappingProxyType({"Add": "+", "Mul": "*", "And": "and", "Or": "or"})
_UNARY = (
    "Neg:negate Not:not Abs:abs Floor:floor Ceil:ceil Sqrt:sqrt Ln:ln Exp:exp Length:length "
    "Lower:lower Upper:upper Trim:trim Year:year Quarter:quarter Month:month Day:day "
    "DayOfMonth:day Hour:hour DayOfWeek:weekday Minute:minute Second:second Week:week "
    "WeekOfYear:week DayOfYear:day_of_year DayOfWeekIso:iso_weekday Date:to_date"
)
_BINARY = (
    "Sub:- Div:/ Mod:% Pow:power EQ:= NEQ:<> LT:< LTE:<= GT:> GTE:>= Like:like ILike:ilike "
    "StartsWith:starts_with Contains:contains"
)


def _pairs(table: str) -> list[list[str]]:
    """Kinds of nodes, each with our function."""
    return [pair.split(":") for pair in table.split()]


_CALLS: Mapping[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = MappingProxyType(
    {
        **{kind: (ours, ("this",), ()) for kind, ours in _pairs(_UNARY)},
        **{kind: (ours, ("this", "expression"), _DIALECT) for kind, ours in _pairs(_BINARY)},
        "Round": ("round", ("this", "decimals"), ()),
        "Substring": ("substring", ("this", "start", "length"), ()),
        "If": ("case", ("this", "true", "false"), ()),
        "Coalesce": ("coalesce", ("this", "expressions"), ()),
        "Least": ("least", ("this", "expressions"), ("ignore_nulls",)),
        "Greatest": ("greatest", ("this", "expressions"), ("ignore_nulls",)),
        "Concat": ("concat", ("this", "expressions"), ("safe", "coalesce")),
    }
)
"""Our function, the parts of the node that are its arguments, and parts that mean nothing here."""

_PARTS = (
    *("year", "quarter", "month", "week", "day", "hour", "minute", "second", "dow", "isodow"),
    *("doy", "isoyear", "decade"),
)
_WORDS = MappingProxyType(
    {
        **dict.fromkeys(("dow", "dayofweek", "weekday"), "weekday"),
        **dict.fromkeys(("doy", "dayofyear"), "day_of_year"),
        **dict.fromkeys(("week", "weekofyear"), "week"),
        **dict.fromkeys(("day", "dayofmonth"), "day"),
        "isodow": "iso_weekday",
        "isoyear": "iso_year",
        **{part: part for part in ("year", "quarter", "month", "hour", "minute", "second")},
    }
)
"""The parts of dates and times as SQL calls them, and our functions."""

_STARTS = ("year", "quarter", "month", "week", "day", "hour", "minute")
_OURS = (
    *("bin", "clamp", "days_between", "weekday", "day_of_year", "iso_weekday", "iso_year"),
    *(f"start_of_{part}" for part in _STARTS if part != "day"),
)
_CASTS = MappingProxyType(
    {
        **dict.fromkeys(("INT", "BIGINT"), "to_integer"),
        **dict.fromkeys(("TEXT", "VARCHAR"), "to_text"),
        "DOUBLE": "to_number",
        "DATE": "to_date",
        "BOOLEAN": "to_boolean",
    }
)
_TIMES: Mapping[str, Callable[[str], date]] = MappingProxyType(
    {
        "DATE": date.fromisoformat,
        **dict.fromkeys(("TIMESTAMP", "TIMESTAMPNTZ"), datetime.fromisoformat),
    }
)


_RESERVED = """
all alter analyse analyze and anti any array as asc asof asymmetric at authorization between binary
both by case cast check collate collation column concurrently constraint create cross cube
current_catalog current_date current_time current_timestamp current_user default deferrable desc
describe distinct do drop else end except false fetch for force foreign freeze from full glob grant
group having if ilike in initially inner insert install intersect into is isnull join lambda lateral
leading left like limit localtime localtimestamp lock map natural not notnull null offset on only or
order outer overlaps partitioned_by pivot pivot_longer pivot_wider placing positional primary
qualify references regexp returning revoke right rlike rollback rollup select semi session_user show
similar some summarize symmetric table tablesample then to trailing true uncache union unique unpack
unpivot using values variadic verbose when where window with xor
"""
_NO_NAMES = frozenset(_RESERVED.split())
"""Words that DuckDB or the parser do not take for names; a test tries all that both know."""


def quoted(name: str) -> str:
    """A column's name as SQL wants it written.

    >>> quoted("city"), quoted("customer id"), quoted("order")
    ('city', '"customer id"', '"order"')
    """
    plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) and name.lower() not in _NO_NAMES
    return name if plain else '"' + name.replace('"', '""') + '"'


def translated(node: Any, resolve: Resolve) -> Expression:
    """The expression; whatever is not understood is refused, never left out."""
    kind = kind_of(node)
    if kind in _CHAINS:
        return call(_CHAINS[kind], *(translated(n, resolve) for n in _chain(node)))
    if kind in _CALLS:
        return _called(node, resolve)
    handler = _HANDLERS.get(kind)
    return resolve(node) if handler is None else handler(node, resolve)


def _called(node: Any, resolve: Resolve) -> Expression:
    if (number := number_of(node)) is not None:  # -1 is a number, not a function of one
        return _constant(number)
    function, wanted, ignored = _CALLS[kind_of(node)]
    *parts, negated = taken(node, *wanted, "negate", ignored=ignored)
    nodes = [n for part in parts for n in (part if isinstance(part, list) else [part])]
    arguments = [translated(n, resolve) for n in nodes if n is not None]
    if function in ("least", "greatest") and len(arguments) == 1:
        return arguments[0]
    found = call(function, *arguments)
    return call("not", found) if negated else found


def _chain(node: Any) -> list[Any]:
    """The members of a + b + c, however long; brackets count, but not in AND and OR."""
    kind, found, waiting = kind_of(node), [], [node]
    while waiting:
        one = bare = waiting.pop()
        while kind in ("And", "Or") and kind_of(bare) == "Paren":
            (bare,) = taken(bare, "this")
        if kind_of(bare) == kind:
            waiting += reversed(taken(bare, "this", "expression", ignored=_DIALECT))
        else:
            found.append(one)
    return found


def _constant(number: Fraction) -> Constant:
    if number.denominator != 1:
        return Constant(number)
    if abs(number) > _BIGGEST:
        raise refused("a whole number", "has more than 63 bits", "write a smaller one")
    return Constant(int(number))


def _literal(node: Any, resolve: Resolve) -> Expression:
    text, is_string = taken(node, "this", "is_string")
    if is_string:
        return Constant(str(text))
    number = number_of(node)
    assert number is not None
    return _constant(number)


def _null(node: Any, resolve: Resolve) -> Expression:
    taken(node)
    return Constant(None)


def _is(node: Any, resolve: Resolve) -> Expression:
    inner, other = taken(node, "this", "expression")
    value = translated(inner, resolve)
    match kind_of(other):
        case "Null":
            return call("is_missing", value)
        case "Boolean":
            wanted = value if other.this else call("not", value)
            return call("coalesce", wanted, Constant(value=False))
    raise refused("IS", "is for NULL, TRUE and FALSE", "write = instead")


def _in(node: Any, resolve: Resolve) -> Expression:
    value, options, query = taken(node, "this", "expressions", "query")
    if query is not None or not options:
        problem = "would look at other rows"
        raise refused("IN (SELECT ...)", problem, "list the values, or join with a public table")
    items = [translated(option, resolve) for option in options]
    if not all(isinstance(item, Constant) for item in items):
        raise refused("IN", "is for constants", "write OR instead")
    return call("in", translated(value, resolve), *items)


def _between(node: Any, resolve: Resolve) -> Expression:
    value, low, high = (translated(part, resolve) for part in taken(node, "this", "low", "high"))
    return call("and", call(">=", value, low), call("<=", value, high))


def _case(node: Any, resolve: Resolve) -> Expression:
    subject, branches, default = taken(node, "this", "ifs", "default")
    parts: list[Expression] = []
    compared = None if subject is None else translated(subject, resolve)  # once: it may nest
    for branch in branches:
        condition, value = (translated(n, resolve) for n in taken(branch, "this", "true"))
        if compared is not None:
            condition = call("=", compared, condition)
        parts += [condition, value]
    if default is not None:
        parts.append(translated(default, resolve))
    return call("case", *parts)


def _piped(node: Any, resolve: Resolve) -> Expression:
    """Texts joined by ||: missing where one of them is, unlike CONCAT, which leaves it out."""
    parts = [translated(part, resolve) for part in _chain(node)]
    known = [
        call("not", call("is_missing", part))
        for part in parts
        if not isinstance(part, Constant) or part.value is None
    ]
    joined = call("concat", *parts)
    if not known:
        return joined
    return call("case", known[0] if len(known) == 1 else call("and", *known), joined)


def _nullif(node: Any, resolve: Resolve) -> Expression:
    value, other = (translated(n, resolve) for n in taken(node, "this", "expression"))
    return call("case", call("=", value, other), Constant(None), value)


def _cast(node: Any, resolve: Resolve) -> Expression:
    inner, wanted = taken(node, "this", "to", ignored=("safe",))
    kind, parameters = taken(wanted, "this", "expressions")
    name = str(getattr(kind, "value", kind))
    value = translated(inner, resolve)
    match value:
        case Constant(str(written)) if name in _TIMES and not parameters:
            return Constant(day_or_time(written, _TIMES[name]))
    if name not in _CASTS or parameters:
        raise refused(
            f"CAST AS {name}", "is not known here", "use BIGINT, DOUBLE, TEXT, DATE or BOOLEAN"
        )
    return call(_CASTS[name], value)


def _extract(node: Any, resolve: Resolve) -> Expression:
    part, value = taken(node, "this", "expression")
    return _part(part, value, resolve)


def _part(part: Any, value: Any, resolve: Resolve) -> Expression:
    """A part of a date, as in EXTRACT(year FROM d)."""
    return _part_of(_word(part), translated(value, resolve))


def _part_of(word: str, value: Expression) -> Expression:
    if word == "decade":
        return call("to_integer", call("floor", call("/", call("year", value), Constant(10))))
    if word not in _WORDS:
        raise refused(f"EXTRACT({word})", "is not known here", f"use one of {', '.join(_PARTS)}")
    return call(_WORDS[word], value)


def _word(node: Any) -> str:
    """The word of a unit of time, as a bare word or as text."""
    if kind_of(node) not in ("Var", "Literal"):
        raise refused("a unit of time", "is not understood", "write, say, 'month'")
    return str(taken(node, "this", ignored=("is_string",))[0]).lower()


def _truncated(node: Any, resolve: Resolve) -> Expression:
    value, part = taken(node, "this", "unit")
    word = _word(part)
    if word not in _STARTS:
        raise refused("DATE_TRUNC", "is not known for this part", f"use {', '.join(_STARTS)}")
    # the start of a day is its date
    return call("to_date" if word == "day" else f"start_of_{word}", translated(value, resolve))


def _formatted(node: Any, resolve: Resolve) -> Expression:
    value, written = taken(node, "this", "format")
    return call("strftime", translated(value, resolve), translated(written, resolve))


def _spelled_out(code: str) -> Callable[[Any, Resolve], Expression]:
    """The name of a month or of a day."""

    def written(node: Any, resolve: Resolve) -> Expression:
        (value,) = taken(node, "this")
        return call("strftime", translated(value, resolve), Constant(code))

    return written


_MOST_BUCKETS = 400


def _bucket(node: Any, resolve: Resolve) -> Expression:
    """WIDTH_BUCKET(x, low, high, n): from 1 to n, 0 below and n + 1 from `high` on."""
    inner, *written = taken(node, "this", "min_value", "max_value", "num_buckets")
    low, high, count = (None if part is None else number_of(part) for part in written)
    if low is None or high is None or count is None or not low < high:
        raise refused("WIDTH_BUCKET", "needs numbers", "write WIDTH_BUCKET(age, 0, 100, 10)")
    if count.denominator != 1 or not 1 <= count <= _MOST_BUCKETS:
        problem = f"needs a whole number of buckets, {_MOST_BUCKETS} at most"
        raise refused("WIDTH_BUCKET", problem, "write WIDTH_BUCKET(age, 0, 100, 10)")
    value, buckets = translated(inner, resolve), int(count)
    parts: list[Expression] = [call("is_missing", value), Constant(None)]
    for place in range(buckets + 1):
        edge = low + (high - low) * place / buckets
        parts += [call("<", value, _constant(edge)), Constant(place)]
    return call("case", *parts, Constant(buckets + 1))


def _whole_quotient(node: Any, resolve: Resolve) -> Expression:
    """A // b: its types say what it means (`types.dated`), and it is no function of a question."""
    parts = taken(node, "this", "expression")
    first, second = (translated(n, resolve) for n in parts)
    # of 2.0 and 1e2 nothing but the number is left in an expression: to DuckDB they are no integers
    return Call("/" if any(map(is_with_point, parts)) else "//", (first, second))


_OF_ONE_TYPE = MappingProxyType(
    {
        **dict.fromkeys(("Add", "Sub", "Mul", "Mod", "IntDiv"), ("this", "expression")),
        **dict.fromkeys(("Neg", "Paren", "Abs", "Round", "Nullif"), ("this",)),
        **dict.fromkeys(("Sum", "Max", "Min", "Distinct"), ("this",)),
        **dict.fromkeys(("Coalesce", "Least", "Greatest"), ("this", "expressions")),
        "Case": ("ifs", "default"),
        "If": ("true", "false"),
    }
)
"""The parts of a node that have its type, or widen it."""


def is_with_point(node: Any) -> bool:
    """Whether a number written with a point or an exponent makes this one no integer."""
    if kind_of(node) == "Literal":
        written = str(node.args.get("this")).lower()
        return not node.args.get("is_string") and not set(".e").isdisjoint(written)
    inner = (node.args.get(name) for name in _OF_ONE_TYPE.get(kind_of(node), ()))
    parts = [one for part in inner for one in (part if isinstance(part, list) else [part])]
    return any(is_with_point(one) for one in parts if one is not None)


def _difference(node: Any, resolve: Resolve) -> Expression:
    """date_diff('month', a, b): how many midnights, or beginnings of months, lie between them."""
    late, early, part = taken(node, "this", "expression", "unit", ignored=("date_part_boundary",))
    word = "day" if part is None else _word(part).removesuffix("s")
    days = [_as_date(translated(one, resolve)) for one in (late, early)]
    if word == "day":
        return call("days_between", *reversed(days))
    if word not in _A_YEAR:
        remedy = "count days and divide, or group by date_trunc"
        raise refused("DATEDIFF", "is known for days, months, quarters and years only", remedy)
    years = (call("*", call("year", day), Constant(_A_YEAR[word])) for day in days)
    return call("-", *(call("+", y, call(word, day)) for y, day in zip(years, days, strict=True)))


_A_YEAR = MappingProxyType({"year": 0, "quarter": 4, "month": 12})


def _as_date(value: Expression) -> Expression:
    """A text as the date or time that it writes; anything else as it is."""
    if isinstance(value, Constant) and isinstance(value.value, str):
        kind = datetime if ":" in value.value else date
        return Constant(day_or_time(value.value, kind.fromisoformat))
    return value


def _date_bins(value: Expression, edges: list[Expression]) -> Expression:
    """The first day of the bin that holds a date, of the last one its end too; missing outside."""
    day, parts = call("to_date", value), list[Expression]()
    for first, end in pairwise(edges):
        before = call("<=" if end is edges[-1] else "<", day, end)
        parts += [call("and", call(">=", day, first), before), first]
    return call("case", *parts)


def _named(node: Any, resolve: Resolve) -> Expression:
    """A function that the parser does not know, such as CLAMP: ours, if it is on the list."""
    name, nodes = taken(node, "this", "expressions")
    function = name.lower() if isinstance(name, str) else ""
    if function in ("date_part", "datepart") and len(nodes or []) == 2:
        return _part(nodes[0], nodes[1], resolve)
    if function in ("isoyear", "decade") and len(nodes or []) == 1:
        return _part_of(function, translated(nodes[0], resolve))
    if function not in _OURS:
        shown = f"{str(name)[:30]}(...)"
        raise refused(shown, "is not a function known here", f"use {KNOWN_FUNCTIONS}")
    found = call(function, *(translated(argument, resolve) for argument in nodes or []))
    if function == "bin":
        value, *bounds = map(_as_date, found.arguments)
        edges = [edge.value for edge in bounds if isinstance(edge, Constant)]
        dates = bool(edges) and type(edges[0]) is date
        wanted = (date,) if dates else (int, Fraction)
        numbers: list[Any] = [edge for edge in edges if type(edge) in wanted]
        rising = all(a < b for a, b in pairwise(numbers))
        if len(numbers) != len(bounds) or not rising:
            remedy = "write bin(age, 0, 18, 65) or bin(d, '2026-01-01', '2026-04-01')"
            raise refused("bin", "needs numbers that rise as edges, or dates", remedy)
        if dates:
            return _date_bins(value, bounds)
        # the last bin holds its upper edge, as that of HISTOGRAM does; a `bin` of a query does not
        value, *_, lower, last = found.arguments
        inside = call("case", call("=", value, last), lower, value)
        found = call("bin", inside, *found.arguments[1:])
    return found


def _never(what: str, remedy: str) -> Callable[[Any, Resolve], Expression]:
    def refuse(node: Any, resolve: Resolve) -> Expression:
        raise refused(what, "has no private answer here", remedy)

    return refuse


_HANDLERS: Mapping[str, Callable[[Any, Resolve], Expression]] = MappingProxyType(
    {
        "Literal": _literal,
        "Boolean": lambda node, resolve: Constant(taken(node, "this")[0] is True),
        "Null": _null,
        "Paren": lambda node, resolve: translated(taken(node, "this")[0], resolve),
        "Is": _is,
        "In": _in,
        "Between": _between,
        "Case": _case,
        "DPipe": _piped,
        "Nullif": _nullif,
        "Cast": _cast,
        "TryCast": _cast,
        "Extract": _extract,
        "TimestampTrunc": _truncated,
        "DateTrunc": _truncated,
        "TimeToStr": _formatted,
        "Monthname": _spelled_out("%B"),
        "Dayname": _spelled_out("%A"),
        "WidthBucket": _bucket,
        "IntDiv": _whole_quotient,
        "DateDiff": _difference,
        "Anonymous": _named,
        "Subquery": _never("a sub-query", "join with a public table, or ask two questions"),
        "Select": _never("a sub-query", "join with a public table, or ask two questions"),
        "Exists": _never("EXISTS", "join with a public table"),
        "Rand": _never("random()", "ask about the rows as they are"),
        "Star": _never("SELECT *", "rows cannot be shown; ask for COUNT(*), AVG(column) ..."),
    }
)
