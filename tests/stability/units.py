"""Questions about two private tables, and sub-queries grouped by the unit; and their neighbours."""

from fractions import Fraction

from hypothesis import HealthCheck, assume, given, seed, settings, strategies as st

from lastbit.errors import InvalidParameter
from lastbit.privacy.neighbours import ADD_REMOVE, CHANGE_ONE
from lastbit.tables.card.column import Column
from lastbit.tables.card.schema import DataCard, PrivateTable, PublicTable, Source
from lastbit.tables.plan.sensitivity import measures_of
from lastbit.tables.query.expression import Call, Constant
from lastbit.tables.query.query import Query
from lastbit.tables.query.scan import GroupKey
from lastbit.tables.query.sub_query import counted_card, derived_card
from lastbit.tables.query.types import card_types, type_of
from lastbit.tables.query.units import PerUnit, PublicJoin, UnitColumn, UnitJoin, UnitKey
from tests.stability.cases import (
    BOUNDS,
    FLOATS,
    LEVEL,
    NUMBERS,
    PLACE,
    SOME_LINES,
    TEXTS,
    TYPES,
    Case,
    aggregates,
    booleans,
    cases,
    column,
    numbers,
    owned,
    seldom,
    some,
)
from tests.stability.engine import COLUMNS, LABS, PUBLIC

UNIT_KINDS = ("private", "private found", "per unit", "per unit joined")
"""A join on the unit, with keys that are declared or found; sub-queries, without and with joins."""

LAB_TYPES = {
    "whose": "integer",
    "called": "text",
    "code": "text",
    "dose": "integer",
    "amount": "number",
}
UNITS = {"who": "whose", "name": "called"}
LAB = st.tuples(
    some(*"aabb", *TEXTS),
    some(*range(-3, 9), *NUMBERS),
    some(*FLOATS, -7.25, 3.0, 4.5, 1 / 3),
)
SAME_LABS = st.builds(lambda line, times: [line] * times, LAB, st.integers(2, 5))
LAB_LINES = st.one_of(st.lists(LAB, max_size=5), SAME_LABS)
AMOUNT, CODE, DOSE = (column(name, "labs") for name in ("amount", "code", "dose"))


def columns_of(types):
    return {name: Column(name=name, type=kind) for name, kind in types.items()}


@st.composite
def unit_cards(draw, max_groups):
    unit = draw(st.sampled_from(["who", "who", "name"]))
    labs = PrivateTable(
        name="labs",
        source=Source(kind="frame"),
        unit=UNITS[unit],
        max_rows=draw(st.integers(1, 3)),
        columns=columns_of(LAB_TYPES),
    )
    places = PublicTable(
        name="places",
        source=Source(kind="frame"),
        columns=dict(zip(PUBLIC, ("text", "text", "integer"), strict=True)),
    )
    return DataCard(
        name="t",
        source=Source(kind="frame"),
        unit=unit,
        max_rows=draw(st.integers(1, 3)),
        max_groups=max_groups,
        columns=columns_of({name: TYPES[name] for name in COLUMNS}),
        neighbours=draw(st.sampled_from([ADD_REMOVE, CHANGE_ONE])),
        public={"places": places},
        private={"labs": labs},
    )


@st.composite
def joins(draw, card, own="cat"):
    """With the second private table, perhaps on more than the unit, and with a public one."""
    labs = card.private["labs"]
    on = ((column(card.unit), column(labs.unit, "labs")),)
    if own is not None and draw(st.booleans()):
        on = draw(st.permutations([*on, (column(own), CODE)]))
    found = [UnitJoin(table="labs", on=tuple(on))]
    if own is not None and draw(st.integers(0, 3)) == 0:
        found.append(PublicJoin(table="places", on=((column(own), column("cat", "places")),)))
    return tuple(draw(st.permutations(found)))


def lab_numbers(depth):
    inner = numbers(depth)
    mixed = st.tuples(st.sampled_from("+-*"), st.sampled_from([AMOUNT, DOSE]), inner)
    return st.one_of(st.sampled_from([AMOUNT, DOSE]), inner, mixed.map(lambda t: Call(t[0], t[1:])))


LAB_TESTS = st.sampled_from(
    [
        Call("=", (CODE, Constant("a"))),
        Call("<", (DOSE, column("num"))),
        Call("=", (CODE, column("cat"))),
        Call("is_missing", (AMOUNT,)),
    ]
)
LAB_KEYS = (
    GroupKey(name="code", expression=CODE, values=("a", "b", "")),
    GroupKey(name="same", expression=Call("=", (CODE, column("cat"))), values=(False, True)),
    GroupKey(name="cat", expression=column("cat"), values=("a", "b")),
    GroupKey(name="third", expression=Call("%", (DOSE, Constant(3))), values=None),
    GroupKey(name="code", expression=CODE, values=None),
)


@st.composite
def joined_questions(draw, card, kind):
    keys = [key for key in LAB_KEYS if (key.values is None) == (kind == "private found")]
    chosen = draw(st.lists(st.sampled_from(keys), max_size=2, unique_by=lambda key: key.name))
    chosen = chosen or keys[-1:] if kind == "private found" else chosen
    expression = draw(lab_numbers(draw(st.sampled_from([0, 0, 1]))))
    return Query(
        table="t",
        aggregates=tuple(draw(aggregates(i, expression)) for i in range(draw(st.integers(1, 3)))),
        keys=tuple(chosen),
        where=draw(seldom(st.one_of(LAB_TESTS, booleans(1)))),
        joins=draw(joins(card)),
    )


# ---------------------------------------------------------------- sub-queries


@st.composite
def unit_columns(draw, card, name, joined):
    """A function of one unit's rows; sums and means of numbers have bounds."""
    function = draw(
        st.sampled_from(["count", "count", "count_distinct", "sum", "sum", "mean", "min", "max"])
    )
    if function == "count" and draw(st.booleans()):
        return UnitColumn(name=name, function="count", nullable=False)
    numeric = lab_numbers if joined else numbers
    # values whose sums need more than 53 bits, and many that are missing
    plain = st.sampled_from([column("num"), column("junk")])
    expression = draw(st.one_of(plain, numeric(draw(st.sampled_from([0, 0, 1])))))
    kind = type_of(expression, card_types(card))
    assume(kind is not None)
    bounds, step = None, None
    if function in ("sum", "mean") and (kind == "number" or draw(st.booleans())):
        low, high, step = draw(st.sampled_from(BOUNDS))
        bounds = Fraction(low), Fraction(high)
        step = None if step is None or kind == "integer" else Fraction(step)
    return UnitColumn(name=name, function=function, expression=expression, bounds=bounds, step=step)


UNIT_KEYS = (
    UnitKey(name="k", expression=column("cat")),
    UnitKey(name="k", expression=Call("%", (column("num"), Constant(3)))),
    UnitKey(name="f", expression=column("flag")),
    UnitKey(name="d", expression=Call("start_of_month", (column("day"),))),
)


@st.composite
def sub_queries(draw, card, joined):
    inner = draw(joins(card)) if joined and draw(st.booleans()) else ()
    labs = any(isinstance(join, UnitJoin) for join in inner)
    keys = draw(st.lists(st.sampled_from(UNIT_KEYS), max_size=2, unique_by=lambda key: key.name))
    if labs and draw(st.booleans()):
        keys = [*keys, UnitKey(name="c", expression=CODE)]
    return PerUnit(
        columns=tuple(
            draw(unit_columns(card, f"v{i}", labs)) for i in range(1, draw(st.integers(2, 4)))
        ),
        keys=tuple(keys),
        where=draw(seldom(booleans(1))),
        joins=inner,
    )


@st.composite
def outer_keys(draw, inner):
    """Of keys of the sub-query and of its whole columns; declared or found."""
    third = Call("%", (Call("to_integer", (column("v1"),)), Constant(3)))
    choices = [
        GroupKey(name="third", expression=third, values=(-2, -1, 0, 1, 2)),
        GroupKey(name="third", expression=third, values=None),
        GroupKey(
            name="more", expression=Call(">", (column("v1"), Constant(1))), values=(False, True)
        ),
    ]
    choices += [GroupKey(name=key.name, expression=column(key.name)) for key in inner.keys]
    return tuple(
        draw(st.lists(st.sampled_from(choices), max_size=2, unique_by=lambda key: key.name))
    )


NAMED_OF_A_UNIT = st.sampled_from(
    [Call("to_integer", (column("v1"),)), Call(">", (column("v1"), Constant(1)))]
)


@st.composite
def unit_questions(draw, card, joined):
    inner = draw(sub_queries(card, joined))
    outer = draw(joins(card, None)) if joined and draw(st.integers(0, 2)) == 0 else ()
    leaves = st.sampled_from([column(part.name) for part in inner.columns])
    expression = draw(
        st.one_of(
            leaves,
            st.tuples(st.sampled_from("+-*/"), leaves, leaves).map(lambda t: Call(t[0], t[1:])),
        )
    )
    if outer and draw(st.booleans()):
        expression = Call("+", (expression, AMOUNT))
    tests = [
        Call(">", (column("v1"), Constant(0))),
        Call("is_missing", (column("v1"),)),
        Call("<", (expression, Constant(Fraction(5, 2)))),
    ]
    return Query(
        table="t",
        aggregates=tuple(
            draw(aggregates(i, expression, NAMED_OF_A_UNIT)) for i in range(draw(st.integers(1, 3)))
        ),
        keys=draw(outer_keys(inner)),
        where=draw(seldom(st.sampled_from(tests))),
        joins=outer,
        per_unit=inner,
    )


@st.composite
def unit_cases(draw, kind):
    card = draw(unit_cards(draw(st.integers(1, 3))))
    try:
        if kind.startswith("private"):
            query = draw(joined_questions(card, kind))
        else:
            query = draw(unit_questions(card, kind.endswith("joined")))
        derived_card(card, query.per_unit)
    except InvalidParameter:
        assume(False)
    units = [(i, TEXTS[i]) for i in range(draw(st.integers(2, 4)))] + [(None, None)]
    lines = draw(SOME_LINES)
    rows = {unit: owned(unit, draw(lines)) for unit in units}
    labs = {unit: owned(unit, draw(LAB_LINES)) for unit in units}
    whole = card.neighbours.relation == "change-one"
    others, other_labs = [], []
    for unit in (*units[:-1][:3], units[-1]):
        one, two = ({u: v for u, v in table.items() if u != unit} for table in (rows, labs))
        if whole:
            new = draw(st.sampled_from([unit, (9, "new")])) if unit[0] is not None else unit
            one[new], two[new] = owned(new, draw(lines)), owned(new, draw(LAB_LINES))
        others.append(flat(one))
        other_labs.append(flat(two))
    public = any(join.table == "places" for join in query.all_joins)
    places = tuple(draw(st.lists(PLACE, max_size=4))) if public else ()
    return Case(
        card=counted_card(query, card),
        query=query,
        measures=measures_of(query, ends=draw(st.booleans()))[0],
        rows=flat(rows),
        places=places,
        others=tuple(others),
        labs=flat(labs),
        other_labs=tuple(other_labs),
    )


TEN = 10


def ten(kind, number, check):
    """Check ten cases of this number: beyond ten, Hypothesis mostly repeats parts of them."""

    @seed(number)
    @settings(max_examples=TEN, suppress_health_check=list(HealthCheck))
    @given(case=unit_cases(kind) if kind in UNIT_KINDS else cases(kind))
    def checked(case):
        check(case)

    checked()


def flat(table):
    return tuple(row for lines in table.values() for row in lines)


assert LEVEL.table == "places"
assert set(LABS) == set(LAB_TYPES)
