"""Which rules can leave rows, units or values out of an answer, or change them.

Law      `rules_of` lists every rule of a question that can, each with the numbers it goes by and
         the columns of the answer that it touches. It is a function of the plan and the question,
         which are public: it never says whether a rule did
Theorem  (complete) the numbers before noise are those of the whole table with the rules that are
         listed, and no others, applied; (exact) each rule that is listed changes them on some table
Proof    by `compile/`: rows go through its parts in the order t, joins, WHERE, e, r, s, and each
         step that drops or changes a row there has its rule here
Checked  tests/release/test_left_out.py: generated questions and tables, both ways

| code | what a rule leaves out, or changes |
|---|---|
| `no_unit`; `max_rows` | rows without a unit; rows of one that has more: all count for less |
| `max_groups`, `distinct` | units in further groups, further values of a unit, in counts of these |
| `threshold` | groups with too few units, where keys are not declared |
| `no_match`, `one_match` | rows that match no row of a table; that match several, without a unit |
| `joined_rows` | further rows of a unit in a joined private table |
| `condition` | rows for which WHERE is neither true nor false |
| `keys`, `no_key` | rows whose key is not listed; that have none, where all keys are listed |
| `bins`, `edges` | rows outside of all bins of a key; values outside of a histogram |
| `bounds`, `unit_bounds` | values beyond the bounds count as the nearer; inside of a sub-query |
| `key_bounds` | rows with a key beyond the bounds count at the nearer |
| `step` | values between two points of the grid are rounded |
| `missing`, `promised` | rows without a readable value; if the card promises one they count |
| `having`, `limit` | groups, by the numbers that are released |
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from typing import TypeAlias

from lastbit.tables.plan.parts import Selection
from lastbit.tables.plan.written import WrittenPlan
from lastbit.tables.query.derived import columns_in
from lastbit.tables.query.expression import Call, ColumnName, Constant, Expression
from lastbit.tables.query.known_keys import clamped_day, within_where
from lastbit.tables.query.query import Aggregate, Query
from lastbit.tables.query.scan import GroupKey
from lastbit.tables.query.types import EXHAUSTED, Bounds, may_be_missing, sure_range
from lastbit.tables.query.units import PerUnit, PublicJoin

Days: TypeAlias = tuple[date, date]
_WEIGHED = frozenset({"rows", "values", "squares", "bins"})
_SKIPPING = frozenset({"quantile", "cdf", "min", "max", "histogram", "count_distinct"})
"""Functions that leave missing values out, promised or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule, with what it goes by.

    `name` is the unit, the joined table or the key; `of` the expression whose values it looks at;
    `most` how many are left in; `ends` the bounds or outer edges, `step` the grid; `columns` those
    of the answer that it touches, none where it touches all.
    """

    code: str
    name: str = ""
    of: Expression | None = None
    most: int | None = None
    ends: Bounds | Days | None = None
    step: Fraction | None = None
    columns: tuple[str, ...] = ()


def rules_of(plan: WrittenPlan, query: Query) -> tuple[Rule, ...]:
    """Every rule that can leave something out of this question, or change it; each once."""
    rules: dict[Rule, tuple[str, ...]] = {}
    for rule in _all_rules(plan, query):
        alone = replace(rule, columns=())
        rules[alone] = tuple(dict.fromkeys((*rules.get(alone, ()), *rule.columns)))
    return tuple(replace(rule, columns=columns) for rule, columns in rules.items())


def _all_rules(plan: WrittenPlan, query: Query) -> Iterator[Rule]:
    inner = PerUnit() if query.per_unit is None else query.per_unit
    counts = [part.name for part in inner.columns if part.function.startswith("count")]
    never = frozenset({*counts, *_present_columns(query.where)})
    if plan.unit is not None:
        yield Rule(code="no_unit", name=plan.unit)
    yield from _join_rules(plan, query)
    if inner.where is not None and may_be_missing(inner.where):
        yield Rule(code="condition")
    if query.where is not None and may_be_missing(query.where, frozenset(counts)):
        yield Rule(code="condition")
    outer = [query.where, *(one.expression for one in (*query.keys, *query.aggregates))]
    used = {column.name for one in outer if one is not None for column in columns_in(one)}
    for part in inner.columns:
        if part.function in ("sum", "mean") and part.expression is not None and part.name in used:
            rule = Rule(code="unit_bounds", of=part.expression, ends=part.bounds, name=part.name)
            yield from _bound_rules(rule)
    for own in inner.keys:
        yield from _column_rules(own.expression)
        if isinstance(own.expression, Call) and own.expression.function == "clamp":
            yield from _clamp_rules(own.expression, own.name)
    for key in query.keys:
        yield from _key_rules(key, query, never)
    if any(isinstance(part, Selection) for part in plan.parts):
        yield Rule(code="threshold")
    for part in query.aggregates:
        columns = tuple(_columns_made_of(part, query))
        for rule in (*_unit_rules(part, plan, query), *_value_rules(part, plan, never)):
            yield replace(rule, columns=columns)
    if query.having is not None:
        yield Rule(code="having")
    if query.limit is not None and (plan.groups is None or query.limit < plan.groups):
        yield Rule(code="limit", most=query.limit)


def _present_columns(where: Expression | None) -> Iterator[str]:
    """The columns of which a condition says that they are not missing."""
    match where:
        case Call("not", (Call("is_missing", (ColumnName(name, None),)),)):
            yield name
        case Call("and", tests):
            for test in tests:
                yield from _present_columns(test)


def _join_rules(plan: WrittenPlan, query: Query) -> Iterator[Rule]:
    for join in query.all_joins:
        yield Rule(code="no_match", name=join.table)
        if not isinstance(join, PublicJoin):
            most = plan.private[join.table].max_rows
            yield Rule(code="joined_rows", name=join.table, most=most)
        elif plan.unit is None:
            yield Rule(code="one_match", name=join.table)


def _unit_rules(part: Aggregate, plan: WrittenPlan, query: Query) -> Iterator[Rule]:
    """What limits for one unit do to an aggregate."""
    inner, kinds = query.per_unit, set(_measures(part, plan))
    if plan.unit is None:
        return
    if "distinct" in kinds:
        most = min(plan.max_rows, plan.max_groups or plan.max_rows)
        yield Rule(code="distinct", name=plan.unit, most=most)
    if inner is not None and not inner.keys and not query.joins:
        return  # a unit has one row
    if kinds & _WEIGHED or plan.marginals is not None:
        yield Rule(code="max_rows", name=plan.unit, most=plan.max_rows)
    counted = [one.highest for one in plan.measures if one.kind in ("units", "shares")]
    limit = min(filter(None, counted), default=plan.max_groups)  # as `measures.selection_keys`
    if kinds & {"units", "shares"} and limit is not None and limit < (plan.groups or limit + 1):
        yield Rule(code="max_groups", name=plan.unit, most=limit)


def _measures(part: Aggregate, plan: WrittenPlan) -> dict[str, Fraction]:
    """The kinds of the measures that an aggregate is made of, each with its step."""
    recipes = [one.measures.values() for one in plan.recipes if one.aggregate == part.name]
    names = {name for measures in recipes for name in measures}
    return {one.kind: one.step for one in plan.measures if one.name in names}


def _key_rules(key: GroupKey, query: Query, never: frozenset[str]) -> Iterator[Rule]:
    expression, where, inner = key.expression, query.where, query.per_unit
    for own in () if inner is None else inner.keys:
        if expression == ColumnName(own.name):
            assert inner is not None
            expression, never, where = own.expression, frozenset(), inner.where
    yield from _column_rules(expression)
    if key.values is None:  # found in the data: a missing one is a key as well
        return
    rule = Rule(code="keys", name=key.name, most=len(key.values))
    match expression:
        case Call("clamp"):
            yield from _clamp_rules(expression, key.name)
        case Call("bin", (_, Constant(low), *_, Constant(high))):
            value = value_in_bins(expression)
            yield from _bound_rules(replace(rule, code="bins", of=value, ends=_ends(low, high)))
        case ColumnName(_, None) if set(key.values) - {None} != {False, True}:
            if not within_where(expression, where, key.values):
                yield rule
                return
        case Call("to_integer") if not any(_clamps_in(expression)):
            if not within_where(expression, where):
                yield rule
                return
    if None not in key.values and may_be_missing(expression, never):
        yield Rule(code="no_key", name=key.name)


def _clamp_rules(key: Call, name: str) -> Iterator[Rule]:
    for value, low, high in _clamps_in(key):
        yield from _bound_rules(Rule(code="key_bounds", name=name, of=value, ends=_ends(low, high)))


def _column_rules(expression: Expression) -> Iterator[Rule]:
    """Columns that a key brings between their bounds (`known_keys.py`)."""
    asked = (*EXHAUSTED, "clamp", "bin")
    numbers = isinstance(expression, Call) and expression.function not in asked
    for value, low, high in _clamps_in(expression):
        if isinstance(value, ColumnName) and (isinstance(low, date) or numbers):
            yield Rule(code="key_bounds", name=value.name, of=value, ends=_ends(low, high))


def value_in_bins(binned: Call) -> Expression:
    """What bin(x, ...) is of: a CASE in place of x closes the last bin (`sql/expressions.py`)."""
    match binned.arguments:
        case (Call("case", (Call("=", (value, last)), lower, same)), *edges):
            if value == same and edges[-2:] == [lower, last]:
                return value
    return binned.arguments[0]


def _value_rules(part: Aggregate, plan: WrittenPlan, never: frozenset[str]) -> Iterator[Rule]:
    """What bounds, the grid and missing values do to an aggregate."""
    expression = part.expression
    if expression is None:
        return
    code, ends = ("edges", part.edges) if part.function == "histogram" else ("bounds", part.bounds)
    limits = None if not ends else (ends[0], ends[-1])
    yield from _bound_rules(Rule(code=code, of=expression, ends=limits))
    step = _measures(part, plan).get("values", Fraction(1))
    if step != 1:
        yield Rule(code="step", step=step)
    if may_be_missing(expression, never):
        promised = not part.nullable and part.function not in _SKIPPING
        yield Rule(code="promised", of=expression) if promised else Rule(code="missing")


def _bound_rules(rule: Rule) -> Iterator[Rule]:
    """The rule, if a value can lie beyond its ends; and those of a clamp inside."""
    assert rule.of is not None
    if rule.ends is not None:
        reach = sure_range(rule.of)
        if reach is None or reach[0] < rule.ends[0] or reach[1] > rule.ends[1]:  # type: ignore[operator]
            yield rule
    for value, low, high in _clamps_in(rule.of):
        if isinstance(low, date):  # said of the key already
            continue
        yield from _bound_rules(Rule(code="bounds", of=value, ends=_ends(low, high)))


def _ends(low: object, high: object) -> Bounds | Days:
    if isinstance(low, date) and isinstance(high, date):
        return low, high
    return Fraction(low), Fraction(high)  # type: ignore[call-overload]


def _clamps_in(expression: Expression) -> Iterator[tuple[Expression, object, object]]:
    """The clamps of an expression that no other clamp holds."""
    day = clamped_day(expression)
    if day is not None:
        yield day
        return
    match expression:
        case Call("clamp", (value, Constant(low), Constant(high))):
            yield value, low, high
        case Call(_, arguments):
            for part in arguments:
                yield from _clamps_in(part)


def _columns_made_of(part: Aggregate, query: Query) -> Iterator[str]:
    """The columns of the answer that an aggregate is, or that are made of it."""
    made = {part.name}
    for one in query.derived:  # a formula may name earlier ones
        if made & {column.name for column in columns_in(one.expression)}:
            made.add(one.name)
    yield from (name for name in query.selected if name in made)
