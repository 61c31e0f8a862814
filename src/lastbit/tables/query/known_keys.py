"""Keys that bounds tell: all values of an expression over days, times and whole numbers.

Law      a column of whole numbers or days between bounds, of the card or of WHERE, has finitely
         many values. A time has those at which a day, an hour, a minute or a second begins, by
         what the expression tells apart, and the first one. The keys are the different values of
         the expression at all of these for which WHERE can be true, in order
Theorem  public: the list is a function of the card, WHERE and the key, and of no row. So an answer
         that shows all of it has found no key in the data
Theorem  none missing: a row that passes WHERE, and has a key, has one of these. Its values lie
         between the bounds, or `key_within_bounds` brings them to the nearer one, which is listed
         whatever WHERE says of it; and functions of a time that tell days (hours, ...) apart have
         one value on each of them
Differs  what an expression can be by itself (the constants of a CASE, the months of any date) is
         `types.known_values`; it is taken where it is not the longer list
Checked  tests/tables/test_known_keys.py (every day of centuries, by DuckDB itself), tests/engines
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from fractions import Fraction
from math import ceil, floor, prod
from types import MappingProxyType

from lastbit.tables.card.column import Column
from lastbit.tables.card.schema import DataCard
from lastbit.tables.query.derived import columns_in
from lastbit.tables.query.expression import Call, ColumnName, Constant, Expression, Value
from lastbit.tables.query.types import (
    card_types,
    is_whole,
    key_of,
    known_values,
    protected_column,
    type_of,
)

_FEW_NUMBERS = 256
_MOST_KEYS = 1_000
_MOST_WORK = 1 << 20  # values times calls: the days of a thousand years, some 0.1 s
_DAY = 86_400_000_000
_HOUR, _MINUTE, _SECOND = _DAY // 24, _DAY // 1_440, _DAY // 86_400
_EPOCH = datetime(1970, 1, 1)
_TOLD_APART: Mapping[str, int] = MappingProxyType(
    {
        **dict.fromkeys(
            ("year", "quarter", "month", "day", "weekday", "week", "day_of_year"), _DAY
        ),
        **dict.fromkeys(("iso_weekday", "iso_year", "to_date", "days_between"), _DAY),
        **dict.fromkeys((f"start_of_{part}" for part in ("year", "quarter", "month")), _DAY),
        **dict.fromkeys(("start_of_week", "is_missing"), _DAY),
        **dict.fromkeys(("hour", "start_of_hour"), _HOUR),
        **dict.fromkeys(("minute", "start_of_minute"), _MINUTE),
        "second": _SECOND,
    }
)
"""The microseconds for which a function of a time stays the same, from midnight on."""
_CODES: Mapping[str, int] = MappingProxyType(
    {"H": _HOUR, "I": _HOUR, "p": _HOUR, "M": _MINUTE, "S": _SECOND}
)
_SIDES: Mapping[str, str] = MappingProxyType({"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="})
_STARTS = ("to_date", "start_of_year", "start_of_quarter", "start_of_month", "start_of_week")


@dataclass(frozen=True, slots=True)
class Span:
    """The values of a column at `first` and then at each multiple of `width` up to `last`.

    Whole numbers are counted as they are, days and microseconds from 1970 on. `low_beyond` says
    that values below the first one count as it, `high_beyond` the same of the last.
    """

    column: ColumnName
    kind: str
    first: int
    last: int
    width: int = 1
    nullable: bool = True
    low_beyond: bool = False
    high_beyond: bool = False

    @property
    def size(self) -> int:
        """How many values there are, those that are missing not counted."""
        return self.last // self.width - self.first // self.width + 1


def public_keys(
    expression: Expression, card: DataCard, where: Iterable[Expression] = ()
) -> tuple[Value, ...] | None:
    """The values that a key can have, in order; None where only the data tell."""
    own = known_values(expression, card)
    if not _told_by_bounds(expression, card):
        return own
    listed = _listed(expression, card, where)
    return listed if own is None or (listed is not None and len(listed) < len(own)) else own


def key_within_bounds(
    expression: Expression, card: DataCard, where: Iterable[Expression] = ()
) -> Expression:
    """The key, of columns brought to the nearer of the card's bounds, unless WHERE keeps them.

    Dates and times are brought there in every key, so that year(d) and month(d) speak of one day;
    whole numbers where the bounds tell the keys: CASE WHEN age < 0 asks for what lies beyond. A
    number that is whole by the way it is made becomes a whole number.
    """
    tests, kept = tuple(where), False
    if is_whole(expression) and type_of(expression, card_types(card)) == "number":
        expression = Call("to_integer", (expression,))
    own = known_values(expression, card)
    numbers = own != public_keys(expression, card, tests)
    clamps: dict[Expression, Expression] = {}
    for name, clamp in _clamps(expression, card).items():
        span = _span(name, expression, card, list(tests))
        if span is not None and not (span.low_beyond or span.high_beyond):
            kept = True
        elif numbers or not (isinstance(clamp, Call) and clamp.function == "clamp"):
            clamps[name] = clamp
    if clamps or kept:
        return _replaced(_plain(expression, card), clamps)
    return key_of(expression, card)


def clamped_day(expression: Expression) -> tuple[ColumnName, date, date] | None:
    """The column and bounds of what `key_within_bounds` makes of a date; None for anything else."""
    match expression:
        case Call(
            "case",
            (
                Call("<", (name, Constant(low))),
                _,
                Call(">", (_, Constant(high))),
                _,
                ColumnName() as column,
            ),
        ) if name == column and isinstance(low, date) and isinstance(high, date):
            return (column, low, high) if expression == _clamp(column, low, high) else None
    return None


def _clamp(column: ColumnName, low: Value, high: Value) -> Call:
    """The column, but the nearer bound beyond; missing where it is."""
    if isinstance(low, int):
        return Call("clamp", (column, Constant(low), Constant(high)))
    first, last = Constant(low), Constant(high)
    return Call(
        "case", (Call("<", (column, first)), first, Call(">", (column, last)), last, column)
    )


def _told_by_bounds(expression: Expression, card: DataCard) -> bool:
    """Whether bounds may tell more of a key than it says by itself.

    The constants of a CASE, false and true, and the edges of bins are what is asked for.
    """
    if isinstance(expression, ColumnName):
        column = protected_column(card, expression)
        return column is not None and column.keys is None and column.type != "boolean"
    asked = ("case", "bin", "=", "<>", "<", "<=", ">", ">=", "in", "like", "ilike", "contains")
    truths = ("starts_with", "and", "or", "not", "is_missing", "to_boolean")
    by_itself = isinstance(expression, Call) and expression.function in (*asked, *truths)
    return not by_itself or known_values(expression, card) is None


def _listed(
    expression: Expression, card: DataCard, where: Iterable[Expression]
) -> tuple[Value, ...] | None:
    """The different values of the expression over all that its columns can be, if they are few."""
    plain, tests = _plain(expression, card), list(_conjuncts(where))
    spans = [_span(column, plain, card, tests) for column in dict.fromkeys(columns_in(plain))]
    known = tuple(span for span in spans if span is not None)
    if not known or len(known) < len(spans):
        return None
    usable = tuple(test for test in tests if _tells(test, known))
    calls = sum(part.calls for part in (plain, *usable) if isinstance(part, Call))
    if prod(span.size + 1 for span in known) * (1 + calls) > _MOST_WORK:
        return None
    whole = plain == known[0].column and known[0].kind == "integer"
    if whole and not usable:
        numbers = range(known[0].first, known[0].last + 1)
        return tuple(numbers) if len(numbers) <= _FEW_NUMBERS else None
    most = _FEW_NUMBERS if whole else _MOST_KEYS
    # late: the engine is slow to load, and other keys do not need it
    from lastbit.tables.backends.duckdb.key_values import values_over

    return values_over(plain, usable, known, most)


def _plain(expression: Expression, card: DataCard) -> Expression:
    """The expression as it was before `key_within_bounds`."""
    return _replaced(expression, {new: old for old, new in _clamps(expression, card).items()})


def _clamps(expression: Expression, card: DataCard) -> dict[ColumnName, Expression]:
    """Its columns with bounds on the card, each with the expression that brings it between them."""
    columns = {name: protected_column(card, name) for name in columns_in(expression)}
    clamped: dict[ColumnName, Expression] = {}
    for name, column in columns.items():
        ends = None if column is None else _card_ends(column)
        if column is None or column.bounds is None or ends is None:
            continue
        if column.type != "integer":
            clamped[name] = _clamp(name, *column.bounds)
        elif ends[0] < ends[1]:
            clamped[name] = _clamp(name, *ends)
    return clamped


def _replaced(expression: Expression, others: Mapping[Expression, Expression]) -> Expression:
    if expression in others:
        return others[expression]
    if not isinstance(expression, Call):
        return expression
    return Call(
        expression.function, tuple(_replaced(part, others) for part in expression.arguments)
    )


def _conjuncts(tests: Iterable[Expression]) -> Iterator[Expression]:
    for test in tests:
        match test:
            case Call("and", parts):
                yield from _conjuncts(parts)
            case _:
                yield test


def _span(
    name: ColumnName, expression: Expression, card: DataCard, tests: list[Expression]
) -> Span | None:
    column = protected_column(card, name)
    if column is None or column.type not in ("integer", "date", "timestamp"):
        return None
    low, high = where_limits(tests, name, column.type)
    first, last = low, high
    ends = _card_ends(column)
    if ends is not None:
        first, last = (
            min(max(ends[place] if end is None else end, ends[0]), ends[1])
            for place, end in enumerate((low, high))
        )
    if first is None or last is None or first > last:
        return None
    return Span(
        column=name,
        kind=column.type,
        first=first,
        last=last,
        width=_width(expression, name) if column.type == "timestamp" else 1,
        nullable=column.nullable,
        low_beyond=ends is not None and (low is None or low < ends[0]),
        high_beyond=ends is not None and (high is None or high > ends[1]),
    )


def _card_ends(column: Column) -> tuple[int, int] | None:
    """The bounds of the card, counted; none where it lists keys, or of other types."""
    if column.bounds is None or column.keys is not None:
        return None
    low, high = (_count(end, column.type) for end in column.bounds)
    return None if low is None or high is None else (ceil(low), floor(high))


def _count(value: Value, kind: str) -> Fraction | None:
    """A value as a number of units of this type; None for one that cannot be compared with it."""
    if kind == "integer" and isinstance(value, int | Fraction) and not isinstance(value, bool):
        return Fraction(value)
    if kind not in ("date", "timestamp") or not isinstance(value, date):
        return None
    at = value if isinstance(value, datetime) else datetime.combine(value, time.min)
    return Fraction((at - _EPOCH) // timedelta(microseconds=1), _DAY if kind == "date" else 1)


Limits = tuple[int | None, int | None]


def where_limits(where: Iterable[Expression], name: ColumnName, kind: str) -> Limits:
    """The least and the greatest value of a column of which all these tests can be true."""
    limits = [_limits(test, name, kind) for test in _conjuncts(where)]
    lows = [low for low, _ in limits if low is not None]
    return max(lows, default=None), min(
        (high for _, high in limits if high is not None), default=None
    )


def within_where(
    expression: Expression, where: Expression | None, values: Collection[Value] | None = None
) -> bool:
    """Whether WHERE limits every column of a key; of a column, to these values."""
    tests, columns = () if where is None else (where,), list(columns_in(expression))
    for name in columns:
        if not any(None not in where_limits(tests, name, kind) for kind in ("integer", "date")):
            return False
    if values is None or not isinstance(expression, ColumnName):
        return bool(columns)
    kind = "date" if any(isinstance(value, date) for value in values) else "integer"
    low, high = where_limits(tests, expression, kind)
    counts = {_count(value, kind) for value in values}
    if low is None or high is None or high - low >= len(counts):
        return False
    return counts.issuperset(range(low, high + 1))


def _limits(test: Expression, name: ColumnName, kind: str) -> Limits:
    match test:
        case Call("in", (term, *parts)):
            values = [part.value for part in parts if isinstance(part, Constant)]
            ends = [_ends(term, value, name, kind, "=") for value in values if value is not None]
            known = [(low, high) for low, high in ends if low is not None and high is not None]
            if not known or len(known) < len(ends):
                return None, None
            return min(low for low, _ in known), max(high for _, high in known)
        case Call(sign, (term, Constant(value))) if sign in _SIDES:
            return _ends(term, value, name, kind, sign)
        case Call(sign, (Constant(value), term)) if sign in _SIDES:
            return _ends(term, value, name, kind, _SIDES[sign])
    return None, None


def _ends(term: Expression, value: Value, name: ColumnName, kind: str, sign: str) -> Limits:
    """Where the column lies at most if this term of it is equal to, above or below the value."""
    first = last = _count(value, kind)
    match term:
        case ColumnName() if term == name:
            pass
        case Call("year", (inner,)) if inner == name and type(value) is int and 0 < value < 9999:
            first, last = (_count(date(year, 1, 1), kind) for year in (value, value + 1))
            last = None if last is None else last - 1
        case Call(function, (inner,)) if inner == name and function in _STARTS:
            last = _count(_year_after(value), kind)
            sign = sign.removesuffix("=") + "="  # what it is compared with need not be a start
        case _:
            return None, None
    if first is None or last is None:
        return None, None
    low = floor(last) + 1 if sign == ">" else ceil(first)
    high = ceil(first) - 1 if sign == "<" else floor(last)
    return None if sign in ("<", "<=") else low, None if sign in (">", ">=") else high


def _year_after(value: Value) -> Value:
    """A time that no part of a year ends after, if it begins with this day."""
    if not isinstance(value, date) or value.year == datetime.max.year:
        return datetime.max if isinstance(value, date) else None
    return datetime(value.year + 1, 12, 31)


def _width(expression: Expression, name: ColumnName) -> int:
    """For how many microseconds the expression is sure to stay the same, from midnight on."""
    match expression:
        case Call("strftime", (inner, Constant(str(form)))) if inner == name:
            codes = form.replace("%%", "").split("%")[1:]
            return min((_CODES.get(code[:1], _DAY) for code in codes), default=_DAY)
        case Call(function, arguments):
            own = [_TOLD_APART.get(function, 1)] if name in arguments else []
            others = [_width(part, name) for part in arguments if part != name]
            return min([*own, *others], default=_DAY)
    return 1 if expression == name else _DAY


def _tells(test: Expression, spans: tuple[Span, ...]) -> bool:
    """Whether the test has one value at all that a place of these spans stands for."""
    if not set(columns_in(test)) <= {span.column for span in spans}:
        return False
    times = (span for span in spans if span.kind == "timestamp")
    return all(_width(test, span.column) >= span.width for span in times)
