"""Random questions over the table of `asked.py`, in the one form that the front ends give them."""

from __future__ import annotations

from datetime import date, datetime
from fractions import Fraction
from functools import cache
from typing import get_args

from hypothesis import strategies as st

from lastbit.tables.query.expression import Call, ColumnName, Constant, Expression
from lastbit.tables.query.key_values import known_values
from lastbit.tables.query.query import Aggregate, Function, OrderBy, Query
from lastbit.tables.query.scan import GroupKey
from lastbit.tables.query.types import card_types, type_of
from lastbit.tables.query.units import PublicJoin
from tests.tables.asked import CARD, closed_bin

Made = st.SearchStrategy[Expression]

WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=4)
WHOLE = st.integers(-(10**6), 10**6)
DECIMALS = st.builds(Fraction, WHOLE, st.sampled_from((2, 4, 5, 1000))).filter(
    lambda f: f.denominator > 1
)


def constants(values: st.SearchStrategy) -> Made:
    return st.builds(Constant, values)


def columns(*names: str) -> Made:
    return st.sampled_from([ColumnName(name) for name in names])


def calls(function: str, *arguments: Made) -> Made:
    return st.tuples(*arguments).map(lambda found: Call(function, found))


@cache
def numbers(depth: int) -> Made:
    leaf = columns("age", "cost", "free", "many") | constants(WHOLE) | constants(DECIMALS)
    if not depth:
        return leaf
    inner = numbers(depth - 1)
    bare = inner.filter(lambda e: not isinstance(e, Constant))  # -5 is a constant, not a call
    two = st.sampled_from(("-", "/", "%", "power"))
    one = st.sampled_from(("abs", "floor", "ceil", "sqrt", "ln", "exp"))
    edges = st.lists(WHOLE, min_size=2, max_size=4, unique=True).map(sorted)
    return st.one_of(
        leaf,
        st.builds(lambda f, a, b: Call(f, (a, b)), two, inner, inner),
        st.builds(lambda f, a: Call(f, (a,)), one, inner),
        st.builds(lambda a: Call("negate", (a,)), bare),
        st.builds(
            lambda f, a, b: Call(f, (a, b)), st.sampled_from(("least", "greatest")), inner, inner
        ),
        calls("clamp", inner, inner, inner),
        calls("round", inner, constants(st.integers(-3, 3))),
        calls("length", texts(depth - 1)),
        calls("days_between", columns("day"), columns("seen")),
        st.builds(
            lambda f: Call(f, (ColumnName("seen"),)),
            st.sampled_from(
                [
                    "year",
                    "quarter",
                    "month",
                    "day",
                    "hour",
                    "weekday",
                    "minute",
                    "second",
                    "week",
                    "day_of_year",
                    "iso_weekday",
                    "iso_year",
                ]
            ),
        ),
        st.builds(closed_bin, inner, edges),
        calls("case", truths(depth - 1), inner, truths(depth - 1), inner),
        calls("case", truths(depth - 1), inner, inner),
        calls("coalesce", inner, inner),
        calls("to_integer", inner),
        calls("to_number", columns("region")),
        # a chain in brackets is kept as it is, one without is a single call
        st.builds(
            lambda f, a, b, c: Call(f, (_whole(a, f), b, c)),
            st.sampled_from(("+", "*")),
            inner,
            inner,
            inner,
        ),
    )


def _whole(expression: Expression, function: str) -> Expression:
    chained = isinstance(expression, Call) and expression.function == function
    return Call("abs", (expression,)) if chained else expression


@cache
def texts(depth: int) -> Made:
    leaf = columns("region", "Ward", "odd name") | constants(WORDS)
    if not depth:
        return leaf
    inner = texts(depth - 1)
    one = st.sampled_from(("lower", "upper", "trim"))
    return st.one_of(
        leaf,
        st.builds(lambda f, a: Call(f, (a,)), one, inner),
        calls("concat", inner, inner),
        calls("substring", inner, constants(st.integers(1, 5)), constants(st.integers(0, 5))),
        calls("to_text", numbers(depth - 1)),
    )


@cache
def days(depth: int) -> Made:
    leaf = columns("day") | constants(st.dates(date(1900, 1, 1)))
    starts = ("start_of_year", "start_of_quarter", "start_of_month", "start_of_week")
    cut = (calls(start, columns("day", "seen")) for start in starts)
    return st.one_of(leaf, *cut) if depth else leaf


@cache
def truths(depth: int) -> Made:
    if not depth:
        return columns("ok") | constants(st.booleans())
    compare = st.sampled_from(("=", "<>", "<", "<=", ">", ">="))
    inner = truths(depth - 1)
    two = st.sampled_from(("like", "ilike", "contains"))
    options = st.lists(st.builds(Constant, WHOLE), min_size=1, max_size=3)
    return st.one_of(
        inner,
        st.builds(lambda f, a, b: Call(f, (a, b)), compare, numbers(depth - 1), numbers(depth - 1)),
        st.builds(lambda f, a, b: Call(f, (a, b)), compare, days(depth - 1), days(depth - 1)),
        st.builds(lambda f, a, b: Call(f, (a, b)), compare, texts(depth - 1), texts(depth - 1)),
        st.builds(lambda f, a, b: Call(f, (a, b)), two, texts(depth - 1), constants(WORDS)),
        calls("starts_with", texts(depth - 1), texts(depth - 1)),
        st.builds(
            lambda f, t: Call(f, (ColumnName("seen"), Constant(t))),
            compare,
            st.datetimes(datetime(1900, 1, 1)),
        ),
        st.builds(lambda a, o: Call("in", (a, *o)), numbers(depth - 1), options),
        st.builds(lambda a: Call("not", (a,)), inner),
        st.builds(lambda a: Call("is_missing", (a,)), inner | numbers(depth - 1)),
        st.builds(_joined, st.sampled_from(("and", "or")), st.lists(inner, min_size=2, max_size=3)),
    )


def _joined(function: str, parts: list[Expression]) -> Expression:
    """Brackets in AND and OR mean nothing, so they are written flat."""
    flat: list[Expression] = []
    for part in parts:
        same = isinstance(part, Call) and part.function == function
        flat += part.arguments if same else (part,)  # type: ignore[union-attr]
    return Call(function, tuple(flat))


@st.composite
def aggregates(draw: st.DrawFn, name: str) -> Aggregate:
    known = [one for one in get_args(Function) if one != "cdf"]  # has no SQL form
    function = draw(st.sampled_from(known))
    if function == "count_units":
        return Aggregate(name=name, function="count_units")
    if function == "count_distinct":
        value = draw(columns("Ward", "age", "day", "seen", "ok", "region") | days(1))
        return Aggregate(name=name, function="count_distinct", expression=value)
    if function == "count" and draw(st.booleans()):
        return Aggregate(name=name, function="count", nullable=False)
    made = numbers(1).filter(
        lambda e: isinstance(e, Call) and e.function not in ("clamp", "least", "greatest")
    )
    expression = draw(columns("age", "many", "free", "cost") | made)
    nullable = expression != ColumnName("cost")
    if function == "count":
        return Aggregate(name=name, function="count", expression=expression, nullable=nullable)
    if function == "histogram":
        edges = draw(
            st.lists(
                DECIMALS | st.builds(Fraction, WHOLE), min_size=2, max_size=4, unique=True
            ).map(sorted)
        )
        return Aggregate(
            name=name,
            function="histogram",
            expression=expression,
            nullable=nullable,
            edges=tuple(edges),
        )
    low = draw(st.integers(-100, 100))
    high = draw(st.integers(low + 1, 200))
    whole = type_of(expression, card_types(CARD)) == "integer"
    return Aggregate(
        name=name,
        function=function,
        expression=expression,
        bounds=(Fraction(low), Fraction(high)),
        step=Fraction(1) if whole else None,
        nullable=nullable,
        level=Fraction(draw(st.integers(1, 999)), 1000) if function == "quantile" else None,
    )


@st.composite
def queries(draw: st.DrawFn) -> Query:
    joined: bool = draw(st.booleans())
    by = st.one_of(
        columns("region", "Ward", "age", "ok", "day"),
        truths(1).filter(lambda e: isinstance(e, Call)),
        calls("start_of_month", columns("day")),
        calls("start_of_hour", columns("seen")),
        calls("strftime", columns("day"), constants(st.sampled_from(("%Y-%m", "%A")))),
        st.builds(closed_bin, columns("age"), st.just((0, 18, 65))),
        calls("lower", columns("Ward")),
        *([st.just(ColumnName("zone", "regions"))] if joined else []),
    )
    found = draw(st.lists(by, max_size=3, unique=True))
    keys = [
        GroupKey(name=f"k{i} \"é'", expression=e, values=known_values(e, CARD))
        for i, e in enumerate(found)
    ]
    count = draw(st.integers(1, 3))
    parts = [draw(aggregates(f"a{i}")) for i in range(count)]
    shown = [p.name for p in parts if p.function != "histogram"]
    limit = draw(st.none() | st.integers(0, 100))
    having = None
    if draw(st.booleans()) and shown:
        having = Call(">", (ColumnName(draw(st.sampled_from(shown))), Constant(draw(WHOLE))))
    names = [key.name for key in keys] + shown
    order: list[OrderBy] = []
    if names:
        sorts = st.builds(OrderBy, name=st.sampled_from(names), descending=st.booleans())
        order = draw(st.lists(sorts, max_size=2, unique_by=lambda one: one.name))
    on = ((ColumnName("region"), ColumnName("region", "regions")),)
    return Query(
        table="visits",
        aggregates=tuple(parts),
        keys=tuple(keys),
        where=draw(st.none() | truths(2)),
        joins=(PublicJoin(table="regions", on=on),) if joined else (),
        having=having,
        order=tuple(order),
        limit=limit,
    )
