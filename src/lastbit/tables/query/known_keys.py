"""Keys that bounds tell: all values of an expression over days, times and whole numbers.

Law      a column of whole numbers or days between bounds, of the card or of WHERE, has finitely
         many values; a time has those at which a day, hour, minute or second begins, by what the
         expression tells apart, and the first one. The keys are the different values of the
         expression at all of these for which WHERE can be true, in order
Theorem  public: the list is a function of the card, WHERE and the key, and of no row
Theorem  none missing: a row that passes WHERE, and has a key, has one of these. Its values lie
         between the bounds, or `bounded_key` brings them to the nearer one, which is listed
         whatever WHERE says of it; functions of a time have one value on each day (hour, ...).
         `keys_in_where` leaves out only keys for which WHERE cannot be true, by its comparisons of
         the key with constants: whole numbers, days, and texts and truth values by equality, which
         all engines compare alike, joined by AND, OR and NOT
Checked  tests/tables/test_known_keys.py (every day of centuries, by DuckDB itself), tests/engines
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from fractions import Fraction
from functools import lru_cache
from itertools import chain
from math import ceil, floor, prod
from types import MappingProxyType
from typing import Any, TypeAlias

from lastbit.tables.card.column import Column
from lastbit.tables.card.schema import DataCard
from lastbit.tables.compile.duckdb import DUCKDB
from lastbit.tables.compile.expressions import Spelling
from lastbit.tables.compile.steps import Steps, Typed
from lastbit.tables.query.derived import columns_in
from lastbit.tables.query.expression import Call, ColumnName, Constant, Expression, Value
from lastbit.tables.query.key_values import key_of, known_values
from lastbit.tables.query.types import card_types, protected_column, type_of

Test = Expression | None
Tests = tuple[Test, ...]
Listed = tuple[Value, ...] | None
Limits = tuple[int | None, int | None]
_FEW_NUMBERS = 256
_MOST_KEYS = 1_000
_MOST_WORK = 1 << 20  # values times calls: the days of a thousand years, some 0.1 s
_EVERY_DOUBLE = 2**53  # below it whole numbers are doubles
_EPOCH = datetime(1970, 1, 1)
_DAY, _HOUR, _MINUTE, _SECOND = 86_400_000_000, 3_600_000_000, 60_000_000, 1_000_000
_OF_DAYS = frozenset({
    *("year", "quarter", "month", "day", "weekday", "week", "day_of_year", "iso_weekday"),
    *("iso_year", "start_of_year", "start_of_quarter", "start_of_month", "start_of_week"),
    *("to_date", "days_between", "is_missing"),
})  # fmt: skip
_FINER: Mapping[str, int] = MappingProxyType(
    dict.fromkeys(("hour", "start_of_hour", "H", "I", "p"), _HOUR)
    | dict.fromkeys(("minute", "start_of_minute", "M"), _MINUTE)
    | dict.fromkeys(("second", "S"), _SECOND)
)
"""The microseconds for which a function of a time, or a code of strftime, stays the same."""
_SIDES: Mapping[str, str] = MappingProxyType({"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="})


_HOLDS: Mapping[str, Callable[[Any, Any], bool]] = MappingProxyType(
    {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq}
)
_NAMED = frozenset({str, int, date})
Truth: TypeAlias = bool | None
_ANY: frozenset[Truth] = frozenset({True, False, None})


@dataclass(frozen=True, slots=True)
class Span:
    """The values of a column at `first` and then at each multiple of `width` up to `last`.

    Whole numbers are counted as they are, days and microseconds from 1970 on. `beyond` says
    whether values below the first count as it, and those above the last as that.
    """

    column: ColumnName
    kind: str
    first: int
    last: int
    width: int
    nullable: bool
    beyond: tuple[bool, bool]

    @property
    def size(self) -> int:
        """How many values there are, a missing one not counted."""
        return self.last // self.width - self.first // self.width + 1


def public_keys(expression: Expression, card: DataCard, *where: Test) -> Listed:
    """The values that a key can have, in order; None where only the data tell."""
    own = known_values(expression, card)
    # the constants of a CASE, false and true, and the edges of bins are what is asked for
    asked = expression.function in ("case", "bin") if isinstance(expression, Call) else not where
    if own is not None and (asked or type_of(expression, card_types(card)) == "boolean"):
        return own
    listed = _listed(expression, card, where)
    return listed if own is None or (listed is not None and len(listed) < len(own)) else own


def keys_in_where(key: Expression, values: Listed, *where: Test) -> Listed:
    """Of the keys those that WHERE can be true of; of an open column those that it names.

    >>> region = ColumnName("region")
    >>> either = Call("in", (region, Constant("south"), Constant("west")))
    >>> keys_in_where(region, ("north", "south", None), either)
    ('south',)
    >>> keys_in_where(region, None, either)
    ('south', 'west')
    """
    tests = list(_conjuncts(where))
    if values is None and isinstance(key, ColumnName):
        named = (_constants_named(test, key) for test in tests)
        values = next((_named(constants) for constants in named if constants is not None), None)
    if values is None:
        return values
    return tuple(value for value in values if all(True in _truths(t, key, value) for t in tests))


def _named(constants: Sequence[Value]) -> Listed:
    """The constants as keys: texts, whole numbers or days, which have exact equality."""
    values = tuple(dict.fromkeys(value for value in constants if value is not None))
    kinds = {type(value) for value in values}
    return values if len(kinds) == 1 and kinds <= _NAMED and len(values) <= _MOST_KEYS else None


def _constants_named(test: Expression, key: Expression) -> list[Value] | None:
    """The constants of which the key is one where the test is true; None: it names none."""
    match test:
        case Call("or", parts):
            every = [_constants_named(part, key) for part in parts]
            named = [one for one in every if one is not None]
            return [*chain(*named)] if len(named) == len(every) else None
        case Call("and", parts):
            named = [one for part in parts if (one := _constants_named(part, key)) is not None]
            return min(named, key=len) if named else None
    compared = _comparison(test, key)
    return compared[1] if compared is not None and compared[0] == "=" else None


def _comparison(test: Expression, term: Expression) -> tuple[str, list[Value]] | None:
    """The sign and the constants by which a test compares a term; None: it does not."""
    match test:
        case Call("in", (left, *parts)) if left == term:
            values = [part.value for part in parts if isinstance(part, Constant)]
            return ("=", values) if len(values) == len(parts) else None
        case Call(sign, (left, Constant(value))) if sign in _SIDES and left == term:
            return sign, [value]
        case Call(sign, (Constant(value), right)) if sign in _SIDES and right == term:
            return _SIDES[sign], [value]
    return None


def _truths(test: Expression, key: Expression, value: Value) -> frozenset[Truth]:
    """The truth values that a test may have in rows with this key: none that it has is missing.

    Theorem  by induction over AND, OR and NOT, whose value is true, false or missing only if their
             parts can be so (Kleene); what is no comparison of the key with constants can be all
    """
    if test == key:
        return frozenset({value}) if isinstance(value, bool) or value is None else _ANY
    match test:
        case Constant(bool() | None as known):
            return frozenset({known})
        case Call("is_missing", (term,)) if term == key:
            return frozenset({value is None})
        case Call("not", (part,)):
            return frozenset(None if t is None else not t for t in _truths(part, key, value))
        case Call("and" | "or", parts):
            decides = test.function == "or"  # one part that is so decides
            every = [_truths(part, key, value) for part in parts]
            found = {decides} if any(decides in one for one in every) else set[Truth]()
            if all((not decides) in one for one in every):
                found.add(not decides)
            return frozenset(found | ({None} if any(None in one for one in every) else set()))
        case Call("<>", (left, right)):
            return _truths(Call("not", (Call("=", (left, right)),)), key, value)
    compared = _comparison(test, key)
    if compared is None:
        return _ANY
    sign, constants = compared
    if value is None:
        return frozenset({None})
    every = [_comparisons(value, one, sign) for one in constants if one is not None]
    found = {True} if any(True in one for one in every) else set[Truth]()
    if all(False in one for one in every):
        found |= {False} if len(every) == len(constants) else {None}
    return frozenset(found)


def _comparisons(key: Value, value: Value, sign: str) -> frozenset[bool]:
    """What key sign value may be; both, where nobody knows how an engine compares them."""
    if isinstance(key, bool) and isinstance(value, bool):
        return frozenset({key == value}) if sign == "=" else frozenset({True, False})
    if isinstance(key, str) and isinstance(value, str):
        # the order of texts is an engine's own
        return frozenset({key == value}) if sign == "=" else frozenset({True, False})
    kind = "date" if type(key) is type(value) is date else "integer"
    left, right = _count(key, kind), _count(value, kind)
    if left is None or right is None:
        return frozenset({True, False})
    if isinstance(value, Fraction) and max(abs(left), abs(right)) >= _EVERY_DOUBLE:
        return frozenset({True, False})
    # a fraction as it is written, and as the double that it becomes
    ends = (right, Fraction(float(right))) if isinstance(value, Fraction) else (right,)
    return frozenset(_HOLDS[sign](left, end) for end in ends)


def bounded_key(expression: Expression, card: DataCard, *where: Test) -> Expression:
    """The key, of columns brought to the nearer of the card's bounds, unless WHERE keeps them.

    Dates and times are brought there in every key, so that year(d) and month(d) speak of one day;
    whole numbers where the bounds tell the keys: CASE WHEN age < 0 asks for what lies beyond.
    """
    made = key_of(expression, card)
    clamped = isinstance(made, Call) and made.function == "clamp" and made != expression
    key = made.arguments[0] if isinstance(made, Call) and clamped else made
    own = known_values(key, card)  # `key_of` makes no clamp of a single one
    told = own != public_keys(key, card, *where)  # by bounds of its columns
    told = told or (isinstance(key, Call) and key.function == "to_integer" and len(own or ()) == 1)
    spans = {name: _span(name, key, card, where) for name in columns_in(key)}
    within = {name for name, span in spans.items() if span and True not in span.beyond}
    clamps = dict[Expression, Expression]()
    for name, clamp in _clamps(key, card).items():
        if name not in within and (told or clamped_day(clamp) is not None):
            clamps |= {name: clamp, clamp: clamp}  # one that the question has stays as it is
    return replace_parts(made if clamped and not told and within != set(spans) else key, clamps)


def clamped_day(expression: Expression) -> tuple[ColumnName, date, date] | None:
    """The column and bounds of what `bounded_key` makes of a date; None for anything else."""
    match expression:
        case Call("case", (_, Constant(date() as low), _, Constant(date() as high), ColumnName())):
            column = expression.arguments[-1]
            if isinstance(column, ColumnName) and expression == _clamp(column, low, high):
                return column, low, high
    return None


def within_where(key: Expression, where: Test, values: Collection[Value] = ()) -> bool:
    """Whether WHERE limits every column of a key; and a column, to these values."""
    if values and set(keys_in_where(key, None, where) or (None,)) <= set(values):
        return True
    for name in columns_in(key):
        limits = (_where_limits((where,), name, kind) for kind in ("integer", "date"))
        sizes = [high - low + 1 for low, high in limits if low is not None and high is not None]
        if not sizes or (key == name and sizes[0] != len(values)):
            return False
    return True


def _clamp(name: ColumnName, first: Value, last: Value) -> Call:
    """The column, but the nearer bound beyond; missing where it is."""
    low, high = Constant(first), Constant(last)
    if isinstance(first, int):
        return Call("clamp", (name, low, high))
    return Call("case", (Call("<", (name, low)), low, Call(">", (name, high)), high, name))


def _listed(expression: Expression, card: DataCard, where: Tests) -> Listed:
    """The different values of the expression over all that its columns can be, if they are few."""
    plain = _plain(expression, card)
    spans = [_span(name, expression, card, where) for name in dict.fromkeys(columns_in(plain))]
    known = tuple(span for span in spans if span is not None)
    if not known or len(known) < len(spans):
        return None
    usable = tuple(test for test in _conjuncts(where) if _tells(test, known))
    calls = sum(part.calls for part in (plain, *usable) if isinstance(part, Call))
    if prod(span.size + 1 for span in known) * (1 + calls) > _MOST_WORK:
        return None
    whole = plain == known[0].column and known[0].kind == "integer"
    return _values(plain, usable, known, _FEW_NUMBERS if whole else _MOST_KEYS)


@lru_cache(maxsize=256)
def _values(key: Expression, tests: Tests, spans: tuple[Span, ...], most: int) -> Listed:
    """The different values where all tests are true, or values beyond an end count as it; in order.

    No table is opened. The key is spelled as in a statement, so that a row has one of the list, to
    the last bit. Texts are in the order of what they are made of.
    """
    columns = {span.column: Typed(f"c{place}", span.kind) for place, span in enumerate(spans)}  # type: ignore[arg-type]
    spelling = Spelling(columns.__getitem__, steps := Steps(evens=False), DUCKDB)
    made, *filters = (spelling.spelled(part) for part in (key, *tests) if part is not None)
    parts = [f"l0 AS (SELECT * FROM {', '.join(map(_points, range(len(spans)), spans))})"]
    for step in steps.after_joins(0):
        parts.append(f"l{len(parts)} AS (SELECT {step} FROM l{len(parts) - 1})")
    every = " AND ".join(["TRUE", *(test.sql for test in filters)])
    beyond = " OR ".join(f"b{place}" for place in range(len(spans)))
    first = ", ".join(f"min(c{place})" for place in range(len(spans)))
    sql = (
        f"WITH {', '.join(parts)} SELECT {made.sql} AS k FROM l{len(parts) - 1} "
        f"WHERE ({every}) OR {beyond} GROUP BY k HAVING k IS NOT NULL "
        f"ORDER BY {first if made.type == 'text' else 'k'} LIMIT {most + 1}"
    )
    from lastbit.tables.backends.duckdb.engine import EngineSession  # late: it is slow to load

    with EngineSession() as session:
        rows = session.guarded(lambda connection: connection.execute(sql).fetchall())
    return tuple(row[0] for row in rows) if 0 < len(rows) <= most else None


def _points(place: int, span: Span) -> str:
    """The values of a column, and whether rows beyond the end count as this one."""
    start = span.first - span.first % span.width
    number = f"greatest({span.first}, {start} + range * {span.width})"
    value = {
        "integer": f"CAST({number} AS BIGINT)",
        "date": f"CAST(DATE '1970-01-01' + CAST({number} AS INTEGER) AS DATE)",
        "timestamp": f"make_timestamp({number})",
    }[span.kind]
    sides = zip((0, span.size - 1), span.beyond, strict=True)
    beyond = " OR ".join(f"range = {end} AND {counts}" for end, counts in sides)
    missing = " UNION ALL SELECT NULL, FALSE" if span.nullable else ""
    return f"(SELECT {value} AS c{place}, {beyond} AS b{place} FROM range({span.size}){missing})"


def _plain(expression: Expression, card: DataCard) -> Expression:
    """The expression as it was before `bounded_key`."""
    return replace_parts(expression, {new: old for old, new in _clamps(expression, card).items()})


def _clamps(expression: Expression, card: DataCard) -> dict[ColumnName, Expression]:
    """Its columns with bounds on the card, each with the expression that brings it between them."""
    clamped: dict[ColumnName, Expression] = {}
    for name in columns_in(expression):
        column, ends = _bounded(name, card, expression)
        if column is not None and ends is not None and column.type != "integer":
            clamped[name] = _clamp(name, *(column.bounds or ends))
        elif ends is not None and ends[0] < ends[1]:
            clamped[name] = _clamp(name, *ends)
    return clamped


def replace_parts(expression: Expression, others: Mapping[Expression, Expression]) -> Expression:
    """The expression with the largest of its parts that stand in `others` replaced."""
    if expression in others or not isinstance(expression, Call):
        return others.get(expression, expression)
    parts = tuple(replace_parts(part, others) for part in expression.arguments)
    return Call(expression.function, parts)


def _conjuncts(tests: Iterable[Test]) -> Iterator[Expression]:
    for test in tests:
        if isinstance(test, Call) and test.function == "and":
            yield from _conjuncts(test.arguments)
        elif test is not None:
            yield test


def _span(name: ColumnName, key: Expression, card: DataCard, where: Tests) -> Span | None:
    column, ends = _bounded(name, card, key)
    if column is None:
        return None
    low, high = first, last = _where_limits(where, name, column.type)
    beyond = False, False
    if ends is not None:
        beyond = low is None or low < ends[0], high is None or high > ends[1]
        first = ends[0] if low is None else min(max(low, ends[0]), ends[1])
        last = ends[1] if high is None else min(max(high, ends[0]), ends[1])
    if first is None or last is None or not -(2**63) < first <= last < 2**63:
        return None
    width = _width(_plain(key, card), name) if column.type == "timestamp" else 1
    return Span(name, column.type, first, last, width, column.nullable, beyond)


def _bounded(
    name: ColumnName, card: DataCard, key: Expression
) -> tuple[Column | None, tuple[int, int] | None]:
    """The column, unless it is public or lists its keys; and its bounds, counted.

    A clamp(x, low, high) of the key comes before what is declared, as in an aggregate.
    """
    column = protected_column(card, name)
    if column is None or column.keys is not None:
        return None, None
    declared = None if column.bounds_chosen else column.bounds
    own = set(_ends_in(key, name)) if column.type == "integer" else set()
    if len(own) == 1 and None not in own:
        (declared,) = own
    low, high = (_count(end, column.type) for end in declared or (None, None))
    return column, None if low is None or high is None else (ceil(low), floor(high))


def _ends_in(key: Expression, name: ColumnName) -> Iterator[tuple[Fraction, Fraction] | None]:
    """At each place where a key has the column: the ends of the clamp around it, if there is."""
    match key:
        case Call("clamp", (inner, Constant(int(low)), Constant(int(high)))) if inner == name:
            yield Fraction(low), Fraction(high)
        case Call(_, arguments):
            for part in arguments:
                yield from _ends_in(part, name)
        case _ if key == name:
            yield None


def _count(value: Value, kind: str) -> Fraction | None:
    """A value as a number of units of this type; None for one that cannot be compared with it."""
    if kind == "integer" and isinstance(value, int | Fraction) and not isinstance(value, bool):
        return Fraction(value)
    if kind not in ("date", "timestamp") or not isinstance(value, date):
        return None
    at = value if isinstance(value, datetime) else datetime.combine(value, time.min)
    return Fraction((at - _EPOCH) // timedelta(microseconds=1), _DAY if kind == "date" else 1)


def _where_limits(where: Tests, name: ColumnName, kind: str) -> Limits:
    """The least and the greatest value of a column of which all these tests can be true."""
    pairs = [_limits(test, name, kind) for test in _conjuncts(where)]
    lows, highs = ([pair[end] for pair in pairs if pair[end] is not None] for end in (0, 1))
    return max(lows, default=None), min(highs, default=None)  # type: ignore[type-var]


def _limits(test: Expression, name: ColumnName, kind: str) -> Limits:
    """Where the column can lie if the test compares it, or its year, with constants."""
    match test:
        case Call("in", (term, *parts)):
            sign, values = "=", [part.value for part in parts if isinstance(part, Constant)]
        case Call(sign, (term, Constant(value))) if sign in _SIDES:
            values = [value]
        case Call(sign, (Constant(value), term)) if sign in _SIDES:
            sign, values = _SIDES[sign], [value]
        case _:
            return None, None
    if any(isinstance(value, Fraction) for value in values):  # then doubles are compared
        numbers = [Fraction(value) for value in values if isinstance(value, int | Fraction)]
        if max(map(abs, numbers)) >= _EVERY_DOUBLE:
            return None, None
        values = [Fraction(float(v)) if isinstance(v, Fraction) else v for v in values]
    firsts = lasts = [_count(value, kind) for value in values if value is not None]
    if term == Call("year", (name,)):
        years = [y if type(y) is int and 0 < y < 9999 else None for y in values if y is not None]
        firsts = [_count(y and date(y, 1, 1), kind) for y in years]
        lasts = [_count(y and datetime(y, 12, 31, 23, 59, 59, 999_999), kind) for y in years]
    counts = [count for count in (*firsts, *lasts) if count is not None]
    if not counts or None in (*firsts, *lasts) or term not in (name, Call("year", (name,))):
        return None, None
    low = floor(max(counts)) + 1 if sign == ">" else ceil(min(counts))
    high = ceil(min(counts)) - 1 if sign == "<" else floor(max(counts))
    return None if sign in ("<", "<=") else low, None if sign in (">", ">=") else high


def _width(expression: Expression, name: ColumnName) -> int:
    """For how many microseconds the expression is sure to stay the same, from midnight on."""
    match expression:
        case Call("strftime", (inner, Constant(str(form)))) if inner == name:
            codes = form.replace("%%", "").split("%")[1:]
            return min((_FINER.get(code[:1], _DAY) for code in codes), default=_DAY)
        case Call(function, arguments):
            own = _DAY if function in _OF_DAYS or name not in arguments else 1
            others = (_width(part, name) for part in arguments if part != name)
            return min([_FINER.get(function, own), *others])
    return 1 if expression == name else _DAY


def _tells(test: Expression, spans: tuple[Span, ...]) -> bool:
    """Whether the test has one value at all that a place of these spans stands for."""
    known = {span.column: span.width if span.kind == "timestamp" else 1 for span in spans}
    return all(known.get(name, _DAY + 1) <= _width(test, name) for name in columns_in(test))
