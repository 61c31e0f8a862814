"""Small tables, neighbours and queries, made by Hypothesis to go wrong."""

from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from functools import cache
from math import inf, nan

from hypothesis import strategies as st

from lastbit.privacy.neighbours import ADD_REMOVE, CHANGE_ONE
from lastbit.tables.card.column import Column
from lastbit.tables.card.schema import DataCard, PublicTable, Source
from lastbit.tables.measures import Measure
from lastbit.tables.plan.sensitivity import measures_of
from lastbit.tables.query.expression import Call, ColumnName, Constant
from lastbit.tables.query.query import Aggregate, Query
from lastbit.tables.query.scan import GroupKey
from lastbit.tables.query.units import PublicJoin
from tests.stability.engine import COLUMNS, PUBLIC
from tests.stability.sql_questions import sql_questions

TYPES = {
    "who": "integer",
    "name": "text",
    "cat": "text",
    "num": "integer",
    "x": "number",
    "flag": "boolean",
    "day": "date",
    "junk": "number",
}
JUNK = {"12": 12.0, "abc": None, "": None, "inf": inf, "nan": None, "-1.5e3": -1500.0, "0": 0.0}
TEXTS = ("a", "b", "A", "", "'; DROP TABLE t; --", '"', "ß\u0301", "\U0001f600", "1:a", "%", "\\")
NUMBERS = (0, 1, -1, 2, 7, 100, 2**62, 2**63 - 1, -(2**63), 2**70, -(2**100))
FLOATS = (0.0, -0.0, 0.5, 1.5, -2.5, 9.999, 10.0, 1e308, -1e308, 5e-324, inf, -inf, nan)
DAYS = (date(1, 1, 1), date(2024, 2, 29), date(2024, 3, 1), date(9999, 12, 31))


@dataclass(frozen=True, repr=False)
class Case:
    card: DataCard
    query: Query
    measures: tuple[Measure, ...]
    rows: tuple[tuple, ...]
    places: tuple[tuple, ...]
    others: tuple[tuple[tuple, ...], ...]
    """Tables that are neighbours of `rows`."""
    labs: tuple[tuple, ...] = ()
    """Rows of a second private table."""
    other_labs: tuple[tuple[tuple, ...], ...] = ()
    """Those of the neighbours in `others`, one by one; the same as `labs` where there are none."""

    @property
    def neighbours(self):
        """Pairs of both private tables."""
        labs = self.other_labs or [self.labs] * len(self.others)
        return list(zip(self.others, labs, strict=True))

    def __repr__(self):
        card = (self.card.unit, self.card.max_rows, self.card.max_groups, self.card.neighbours)
        rows = f"{self.rows}, {self.places}, {self.others}, {self.labs}, {self.other_labs}"
        private = [(one.unit, one.max_rows) for one in self.card.private.values()]
        return f"Case({card}, {private}, {self.query.to_json()}, {rows})"


def some(*values):
    return st.sampled_from([None, *values])


def seldom(strategy):
    """None in two of three draws: `one_of` would count each alternative inside the strategy."""
    return st.integers(0, 2).flatmap(lambda place: strategy if place == 2 else st.none())


LINE = st.tuples(
    some(*"aaaabb", *TEXTS),
    some(*range(-3, 9), *NUMBERS),
    some(*FLOATS, -7.25, 3.0, 4.5, 1 / 3, 12.34567890123, -8.76543210987, 3.3333333333),
    some(True, False),
    some(*DAYS),
    some(*JUNK),
)
SAME_LINES = st.builds(lambda line, times: [line] * times, LINE, st.integers(2, 6))
LINES = st.one_of(st.lists(LINE, max_size=6), SAME_LINES)
ONE_LINE = st.lists(LINE, max_size=1)
CROWDED = st.lists(
    st.tuples(
        st.sampled_from("aab"),
        st.integers(0, 2),
        st.sampled_from([0.5, 3.0]),
        st.booleans(),
        st.sampled_from(DAYS[1:3]),
        st.just("12"),
    ),
    min_size=2,
    max_size=6,
)
SOME_LINES = st.sampled_from([LINES, LINES, CROWDED])
"""How a case draws the rows of its units: in a third of them, so that units share keys."""


def owned(unit, lines):
    return [(*unit, *line) for line in lines]


# ---------------------------------------------------------------- expressions


def column(name, table=None):
    return ColumnName(name, table)


def called(name, *arguments):
    return st.tuples(*arguments).map(lambda found: Call(name, found))


def constants(*values):
    return st.sampled_from(values).map(Constant)


@cache
def numbers(depth):
    leaf = st.one_of(
        st.sampled_from([column("num"), column("x"), column("junk")]),
        constants(0, 1, -3, 2**62, Fraction(1, 3), Fraction(5, 2), None),
    )
    if depth == 0:
        return leaf
    inner, test = numbers(depth - 1), booleans(depth - 1)
    binary = [called(name, inner, inner) for name in ("+", "-", "*", "/", "%")]
    unary = [called(n, inner) for n in ("negate", "abs", "floor", "ceil", "sqrt", "to_integer")]
    wild = [called("ln", inner), called("exp", inner), called("power", inner, inner)]
    rest = [
        called("case", test, inner, inner),
        called("coalesce", inner, inner),
        called("least", inner, inner),
        called("greatest", inner, inner),
        called("clamp", inner, constants(-5, 0), constants(5, 9)),
        called("bin", inner, constants(-10), constants(0), constants(10, 20)),
        called("length", st.just(column("cat"))),
        called("to_integer", test),
        called("days_between", st.just(column("day")), constants(date(2024, 1, 1))),
    ]
    return st.one_of(leaf, *binary, *unary, *wild, *rest)


@cache
def booleans(depth):
    inner = numbers(0)
    leaves = [
        st.just(column("flag")),
        *(called(name, inner, inner) for name in ("=", "<>", "<", "<=", ">", ">=")),
        called("in", st.just(column("cat")), constants("a", ""), constants("b", None)),
        called("is_missing", inner),
        called("=", st.just(column("cat")), constants(*TEXTS)),
        called("contains", st.just(column("cat")), constants("", "a")),
        called("like", st.just(column("cat")), constants("%", "a_", "\\")),
    ]
    if depth == 0:
        return st.one_of(leaves)
    deep = [called("<", numbers(depth - 1), numbers(depth - 1))]
    test = st.one_of(*leaves, *deep)
    return st.one_of(test, called("and", test, test), called("or", test, test), called("not", test))


# ---------------------------------------------------------------- queries


@cache
def keys_of(joined, kind):
    choices = [
        ("cat", column("cat"), None),
        ("cat", column("cat"), ("a", "b", "'; DROP TABLE t; --")),
        ("cat", column("cat"), ("a", None, "", "\U0001f600")),
        ("flag", column("flag"), (True, False)),
        ("third", Call("%", (column("num"), Constant(3))), (-2, -1, 0, 1, 2)),
        ("third", Call("%", (column("num"), Constant(3))), None),
        ("num", column("num"), (0, 1, 7)),
        ("year", Call("year", (column("day"),)), None),
        ("month", Call("start_of_month", (column("day"),)), (date(2024, 2, 1), date(1, 1, 1))),
        ("week", Call("week", (column("day"),)), None),
        ("days", Call("iso_weekday", (column("day"),)), tuple(range(1, 8))),
        ("quarter", Call("start_of_quarter", (column("day"),)), (date(2024, 1, 1),)),
        ("said", Call("strftime", (column("day"), Constant("%A %d"))), None),
        ("bin", Call("bin", (column("x"), Constant(-5), Constant(0), Constant(10))), (-5, 0)),
    ]
    if joined:
        choices += [("label", column("label", "places"), None), ("level", LEVEL, (1, 2))]
    keys = [GroupKey(name=n, expression=e, values=v) for n, e, v in choices]
    if kind == "declared":
        keys = [key for key in keys if key.values is not None]
    found = st.lists(st.sampled_from(keys), max_size=2, unique_by=lambda key: key.name)
    if kind == "found":
        first = st.sampled_from([key for key in keys if key.values is None])
        found = st.one_of(first.map(lambda key: [key]), st.tuples(first, st.sampled_from(keys)))
        found = found.filter(lambda pair: len({key.name for key in pair}) == len(pair))
    return found.map(tuple)


LEVEL = column("level", "places")
FINE = Fraction(1, 10**11)
BOUNDS = [
    (0, 10, None),
    (-10, 10, None),
    (-10, 10, 1),
    (5, 9, 1),
    (-9, -5, None),
    (-9, 20, FINE),
    (0, 20, FINE),
]


NAMED = st.sampled_from(
    [
        column("cat"),
        column("num"),
        column("day"),
        column("flag"),
        Call("%", (column("num"), Constant(3))),
        Call("case", (column("flag"), column("cat"))),
        Call("week", (column("day"),)),
    ]
)
"""What distinct values are counted of: few and many of them, missing ones too."""


@st.composite
def aggregates(draw, number, expression, named=NAMED):
    name = f"a{number}"
    kinds = ("count", "some", "units", "sum", "mean", "variance", "quantile", "histogram")
    kind = draw(st.sampled_from((*kinds, "distinct")))
    if kind == "distinct":
        return Aggregate(name=name, function="count_distinct", expression=draw(named))
    if kind in ("count", "units"):
        return Aggregate(name=name, function="count" if kind == "count" else "count_units")
    if kind == "some":
        return Aggregate(name=name, function="count", expression=expression)
    if kind == "histogram":
        edges = draw(st.sampled_from([(0, 1), (-5, 0, 2, 10), (*range(40),)]))
        exact = tuple(Fraction(edge) for edge in edges)
        return Aggregate(name=name, function="histogram", expression=expression, edges=exact)
    low, high, step = draw(st.sampled_from(BOUNDS))
    return Aggregate(
        name=name,
        function=kind,
        expression=expression,
        bounds=(Fraction(low), Fraction(high)),
        step=None if step is None or (kind == "variance" and step < 1) else Fraction(step),
        nullable=draw(st.booleans()),
        level=Fraction(1, 2) if kind == "quantile" else None,
    )


@st.composite
def questions(draw, kind):
    joined = kind == "joined" or (kind == "rows" and draw(st.booleans()))
    joins = ()
    if joined:
        on = draw(st.sampled_from([((column("cat"), column("cat", "places")),),
                                   ((column("cat"), column("cat", "places")),
                                    (column("num"), LEVEL))]))  # fmt: skip
        joins = (PublicJoin(table="places", on=on),)
    expression = draw(numbers(draw(st.sampled_from([0, 0, 1, 2]))))
    count = draw(st.integers(1, 3))
    parts = tuple(draw(aggregates(number, expression)) for number in range(count))
    where = draw(seldom(booleans(1)))
    keys = draw(keys_of(joined, kind))
    return Query(table="t", aggregates=parts, keys=keys, where=where, joins=joins)


@st.composite
def cards(draw, query, kind):
    unit = None if kind == "rows" else draw(st.sampled_from(["who", "who", "name"]))
    undeclared = any(key.values is None for key in query.keys)
    groups = draw(st.integers(1, 3))
    limited = unit is not None and (undeclared or draw(st.booleans()))
    places = PublicTable(
        name="places",
        source=Source(kind="frame"),
        columns=dict(zip(PUBLIC, ("text", "text", "integer"), strict=True)),
    )
    return DataCard(
        name="t",
        source=Source(kind="frame"),
        unit=unit,
        max_rows=1 if unit is None else draw(st.integers(1, 3)),
        max_groups=groups if limited else None,
        columns={name: Column(name=name, type=TYPES[name]) for name in COLUMNS},
        neighbours=draw(st.sampled_from([ADD_REMOVE, CHANGE_ONE])),
        public={"places": places},
    )


PLACE = st.tuples(some(*"aab", ""), some("a", "X"), some(0, 1, 2))
KINDS = ("declared", "found", "joined", "rows", "asked")
"""Keys that are declared; that are found; a public table joined; rows that are units; SQL."""


@st.composite
def cases(draw, kind):
    query = draw(sql_questions(TYPES) if kind == "asked" else questions(kind))
    card = draw(cards(query, kind))
    units = [(i, TEXTS[i]) for i in range(draw(st.integers(0, 4)))] + [(None, None)]
    lines = draw(SOME_LINES)
    everything = tuple(row for unit in units for row in owned(unit, draw(lines)))
    whole = card.neighbours.relation == "change-one"
    others = []
    if card.unit is None:
        fresh = owned((9, "new"), draw(ONE_LINE))
        for place in range(min(len(everything), 3)):
            rest = everything[:place] + everything[place + 1 :]
            others.append((*rest, *fresh) if whole and fresh else rest)
        others = [other for other in others if not whole or len(other) == len(everything)]
    else:
        for unit in (*units[:2], units[-1]):
            rest = tuple(row for row in everything if row[:2] != unit)
            new = draw(st.sampled_from([unit, (9, "new")])) if unit[0] is not None else unit
            others.append((*rest, *owned(new, draw(lines))) if whole else rest)
    places = draw(st.lists(PLACE, max_size=6))
    measures = measures_of(query, ends=draw(st.booleans()))[0]
    counted = any(measure.kind == "units" for measure in measures)
    if query.groups is None and card.unit is not None and not counted:
        own = draw(st.integers(1, 3))
        extra = draw(st.sampled_from(["shares", "shares", "units", None]))
        apart = extra == "shares" and own > 1 and not whole and draw(st.booleans())
        added = Measure(name="q", kind=extra or "units", lowest=2 if apart else 0, highest=own)
        measures += () if extra is None else (added,)
    return Case(
        card=card,
        query=query,
        measures=measures,
        rows=everything,
        places=tuple(places) if query.joins else (),
        others=tuple(others),
    )


def functions_in(query):
    """The names of all functions that the query uses."""
    stack = [part.expression for part in query.aggregates] + [key.expression for key in query.keys]
    stack += [query.where, *(own for join in query.joins for own, _ in join.on)]
    stack += [] if query.per_unit is None else query.per_unit.expressions()
    found = set()
    while stack:
        match stack.pop():
            case Call(name, arguments):
                found.add(name)
                stack += arguments
    return found


def typed(rows, table=None, names=tuple(COLUMNS)):
    """Rows as the card reads them: out of range, NaN and what is not a number are missing."""
    return [{(table, n): _read(n, v) for n, v in zip(names, row, strict=True)} for row in rows]


def _read(name, value):
    if value is None or value != value:
        return None
    if name == "junk":
        return JUNK[value]
    return value if name not in ("num", "dose") or -(2**63) <= value < 2**63 else None
