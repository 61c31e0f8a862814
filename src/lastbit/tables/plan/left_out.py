"""Which rules can leave rows, units or values out of an answer, or change them.

Law      `rules_of` lists every rule of a question that can, each with the numbers it goes by and
         the columns of the answer that it touches. It is a function of the plan and the question,
         which are public: it never says whether a rule did
Theorem  (complete) the numbers before noise are those of the whole table with the rules that are
         listed, and no others, applied; (exact) each rule that is listed changes them on some table
Proof    by `compile/`: rows go through its parts in the order t, joins, WHERE, e, r, s, and each
         step that drops or changes a row there has its rule here
Checked  tests/release/test_left_out.py: generated questions and tables, both ways

`report/left_out.py` says what each code means.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction

from lastbit.tables.limits import MOST_ELEMENTS
from lastbit.tables.plan.written import WrittenPlan
from lastbit.tables.query.computed import Bounds
from lastbit.tables.query.derived import columns_in
from lastbit.tables.query.expression import Call, ColumnName, Expression
from lastbit.tables.query.known_keys import clamped_day, keys_in_where, within_where
from lastbit.tables.query.query import Aggregate, Query
from lastbit.tables.query.rules import call
from lastbit.tables.query.scan import GroupKey
from lastbit.tables.query.types import is_exhausted, may_be_missing, sure_range
from lastbit.tables.query.units import ListJoin, PerUnit, UnitJoin

_WEIGHED = frozenset({"rows", "values", "squares", "above", "below", "bins"})
_SKIPPING = frozenset({"quantile", "cdf", "min", "max", "histogram", "count_distinct"})
"""Functions that leave missing values out, promised or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule, with what it goes by.

    `name` is the unit, a joined table or a key; `of` the expression it looks at; `most` how many
    are left in; `ends` the bounds or outer edges; `columns` those that it touches, or none for all.
    """

    code: str
    name: str = ""
    of: Expression | None = None
    most: int | None = None
    ends: Bounds | tuple[date, date] | None = None
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
    where = query.where
    outer = [where, *(key.expression for key in query.keys)]
    outer += [part.expression for part in query.aggregates]
    used = {column for one in outer if one is not None for column in columns_in(one)}
    counts = [part.name for part in inner.columns if part.function.startswith("count")]
    tests = where.arguments if isinstance(where, Call) and where.function == "and" else (where,)
    there = [one.name for one in used if call("not", call("is_missing", one)) in tests]
    never = frozenset([*counts, *there])
    yield from () if plan.unit is None else (Rule(code="no_unit", name=plan.unit),)
    for step in plan.through:
        yield Rule(code="no_match", name=step["table"])
        yield Rule(code="copies", name=step["table"], most=step["max_rows"])
    for join in query.all_joins:
        if isinstance(join, ListJoin):
            yield Rule(code="no_element", name=join.column.name)
            yield Rule(code="elements", name=join.column.name, most=MOST_ELEMENTS)
            continue
        yield Rule(code="no_match", name=join.table)
        if isinstance(join, UnitJoin):
            limit = plan.private[join.table].max_rows
            yield Rule(code="joined_rows", name=join.table, most=limit)
        elif plan.unit is None:
            yield Rule(code="one_match", name=join.table)
    for test, known in (inner.where, frozenset[str]()), (where, frozenset(counts)):
        if test is not None and may_be_missing(test, known):
            yield Rule(code="condition")
    for own in inner.columns:
        if own.function in ("sum", "mean") and own.expression and ColumnName(own.name) in used:
            rule = Rule(code="unit_bounds", of=own.expression, ends=own.bounds, name=own.name)
            yield from _bound_rules(rule)
    for by in inner.keys:
        yield from _clamp_rules(by.expression, "key_bounds", by.name)
    for key in query.keys:
        yield from _key_rules(key, query, never)
    yield from (Rule(code="threshold"),) if plan.groups is None else ()
    for part in query.aggregates:
        columns = tuple(_columns_made_of(part, query))
        for rule in (*_unit_rules(part, plan, query), *_value_rules(part, plan, never)):
            yield replace(rule, columns=columns)
    yield from () if query.having is None else (Rule(code="having"),)
    if query.limit is not None and (plan.groups is None or query.limit < plan.groups):
        yield Rule(code="limit", most=query.limit)


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
    if inner is not None:
        for own in inner.keys:
            if expression == ColumnName(own.name):
                expression, never, where = own.expression, frozenset(), inner.where
    asked = key.values is None or is_exhausted(expression)  # of numbers, with these bounds
    for rule in _clamp_rules(expression, "key_bounds", key.name):
        yield from (rule,) if not asked or isinstance((rule.ends or (0,))[0], date) else ()
    if key.values is None:  # found in the data: a missing one is a key as well
        return
    listed, rule = False, Rule(code="keys", name=key.name, most=len(key.values))
    match expression:
        case Call("bin", (value, low, *_, high)):
            ends = sure_range(Call("clamp", (value, low, high)))
            yield from _bound_rules(replace(rule, code="bins", of=value, ends=ends))
        case ColumnName(_, table):
            listed = table is None and not within_where(expression, where, key.values)
            present = [value for value in key.values if value is not None]
            if all(type(value) is bool for value in present):  # 0 and 1 equal them
                tests = () if where is None else (where,)
                passed = keys_in_where(expression, (False, True), *tests) or ()
                listed = table is None and not set(passed) <= set(present)
        case Call("to_integer"):  # of others all values are listed (`known_keys.py`)
            listed = not (any(_clamp_rules(expression)) or within_where(expression, where))
    if listed:
        yield rule
    elif None not in key.values and may_be_missing(expression, never):
        yield Rule(code="no_key", name=key.name)


def _value_rules(part: Aggregate, plan: WrittenPlan, never: frozenset[str]) -> Iterator[Rule]:
    """What bounds, the grid and missing values do to an aggregate."""
    expression = part.expression
    if expression is None:
        return
    code, ends = ("edges", part.edges) if part.function == "histogram" else ("bounds", part.bounds)
    limits = None if not ends else (ends[0], ends[-1])
    yield from _bound_rules(Rule(code=code, of=expression, ends=limits))
    steps = _measures(part, plan)
    step = steps.get("values", steps.get("above", Fraction(1)))
    if step != 1 and part.function != "count":  # of values beside it, where both ends are measured
        yield Rule(code="step", step=step)
    if may_be_missing(expression, never):
        promised = not part.nullable and part.function not in _SKIPPING
        yield Rule(code="promised", of=expression) if promised else Rule(code="missing")


def _bound_rules(rule: Rule) -> Iterator[Rule]:
    """The rule, if a value can lie beyond its ends; and those of a clamp inside."""
    assert rule.of is not None
    reach, ends = sure_range(rule.of), rule.ends
    if ends is not None and (reach is None or reach[0] < ends[0] or reach[1] > ends[1]):  # type: ignore[operator]
        yield rule
    yield from _clamp_rules(rule.of)


def _clamp_rules(expression: Expression, code: str = "bounds", name: str = "") -> Iterator[Rule]:
    """Those of each clamp in an expression; in a key, by the name of the column that it is of."""
    day = clamped_day(expression)
    match expression:
        case Call() if day is not None:
            yield Rule(code=code, name=day[0].name, of=day[0], ends=day[1:])
        case Call("clamp", (value, *_)):
            ends = sure_range(expression)
            yield from _bound_rules(Rule(code=code, name=name, of=value, ends=ends))
        case Call(_, arguments):
            for part in arguments:
                of = part.arguments[0] if isinstance(part, Call) and code == "key_bounds" else None
                yield from _clamp_rules(part, code, of.name if isinstance(of, ColumnName) else name)


def _columns_made_of(part: Aggregate, query: Query) -> Iterator[str]:
    """The columns of the answer that an aggregate is, or that are made of it."""
    made = {part.name}
    for one in query.derived:  # a formula may name earlier ones
        if made & {column.name for column in columns_in(one.expression)}:
            made.add(one.name)
    yield from (name for name in query.selected if name in made)
