"""The card of the rows that a question looks at: those of a sub-query have columns of their own.

Law      bounds of a column of a sub-query are those that its values have in a unit with at most
         max_rows rows, of COUNT(*) at least 1 to 2; a unit that has more is clamped to them. They
         are a default, as those on a card are: clamp(x, low, high) in a question comes first
Checked  tests/tables/test_units.py
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from math import prod

from lastbit.tables.card.column import Column
from lastbit.tables.card.schema import DataCard
from lastbit.tables.limits import refused
from lastbit.tables.query.expression import Expression
from lastbit.tables.query.known_keys import public_keys
from lastbit.tables.query.scan import Scan
from lastbit.tables.query.types import card_types, known_of, type_of
from lastbit.tables.query.units import Join, ListJoin, PerUnit, UnitColumn, UnitKey


def derived_card(card: DataCard, per_unit: PerUnit | None) -> DataCard:
    """The card with the columns of the sub-query in place of the table's; the unit stays."""
    if per_unit is None:
        return card
    card = unrolled_card(card, per_unit.joins)
    if card.unit is None:
        problem = "groups by the unit, and each row is one"
        raise refused("a sub-query with GROUP BY", problem, "name the unit's column on the card")
    unit = card.column(card.unit)
    found = [unit]
    found += [_key(key, card, per_unit.where) for key in per_unit.keys]
    found += [_column(part, card) for part in per_unit.columns]
    if len({column.name.lower() for column in found}) < len(found):
        problem = f"has two columns of one name, or one called {unit.name} that is not the unit"
        raise refused("a sub-query", problem, "rename it with AS")
    own = {column.name: column for column in found}
    return replace(card, columns=own, through=(), unrolled=None)


def unrolled_card(card: DataCard, joins: Iterable[Join]) -> DataCard:
    """The card, its column of lists a plain one where each element is a row."""
    lists = [join.column for join in joins if isinstance(join, ListJoin)]
    if not lists:
        return card
    own, remedy = card.column(lists[0].name), "write UNNEST(codes) of one column of lists"
    if card.unit is None:
        problem = "makes several rows of one, and each row is a person"
        raise refused("UNNEST", problem, "name the unit's column on the card")
    if len(lists) > 1:
        raise refused("UNNEST", "is there twice, and is of one list", "ask of each by itself")
    if lists[0].table is not None or not own.is_list:
        raise refused(f"UNNEST({own.name})", "is not of a column of lists", remedy)
    return card if card.unrolled == own.name else replace(card, unrolled=own.name)


def counted_card(query: Scan, card: DataCard) -> DataCard:
    """The card with the contribution bounds of the question.

    Law      where nothing is joined afterwards, max_rows for the rows of a sub-query is no more
             than the number of values that its keys have, where all are declared: 1 without any;
             else no more than max_groups, the number of groups that a unit is expected in
    Theorem  any bound is private, since weights keep it whatever the rows are; this one leaves
             rows at their full weight unless a unit has keys that are not declared, or more than
             max_groups
    """
    inner = query.per_unit
    card = unrolled_card(card, query.all_joins)
    if card.unit is None or inner is None or query.joins:
        return card
    values = [public_keys(key.expression, card, inner.where) for key in inner.keys]
    known = prod(len(found) for found in values if found is not None)
    most = card.max_groups if None in values else known
    if most is None:
        return card
    rows = min(card.max_rows, most)
    groups = card.max_groups if inner.keys else 1
    return replace(card, max_rows=rows, max_groups=None if groups is None else min(groups, rows))


def _key(key: UnitKey, card: DataCard, where: Expression | None) -> Column:
    kind = type_of(key.expression, card_types(card))
    if kind in ("number", None):
        problem = "is of type number, or always missing"
        raise refused(f"GROUP BY {key.name}", problem, "group by CAST(x AS BIGINT) or bin(...)")
    known = known_of(key.expression, card)
    values = public_keys(key.expression, card, where) if kind != "timestamp" else None
    plain = kind == "integer"
    return Column(
        name=key.name,
        type=kind,
        bounds=known.bounds if plain else None,
        step=(known.step or Fraction(1)) if plain else None,
        keys=values,
        nullable=known.nullable,
    )


def _column(part: UnitColumn, card: DataCard) -> Column:
    most, one = Fraction(card.max_rows), Fraction(1)
    if part.function in ("count", "count_distinct"):
        rows = part.function == "count" and part.expression is None
        bounds = (one, max(most, one + 1)) if rows else (Fraction(0), most)
        return Column(name=part.name, type="integer", bounds=bounds, step=one, nullable=False)
    assert part.expression is not None
    kind = type_of(part.expression, card_types(card))
    if kind is None or (kind not in ("integer", "number") and part.function in ("sum", "mean")):
        raise refused(
            part.name, f"needs numbers, not {kind or 'nothing'}", "take numbers, or count"
        )
    limits, step = part.bounds, part.step
    if part.function == "sum" and limits is not None and step not in (None, one):
        kind = "number"  # whole, but on a grid that need not be
    match part.function:
        case "sum":
            if limits is not None:
                low, high = limits
                limits = min(low, low * most), max(high, high * most)
        case "mean":
            kind, step = "number", None
    whole = kind == "integer"
    number = whole or kind == "number"
    return Column(
        name=part.name,
        type=kind,
        bounds=limits if number else None,
        step=(step or one) if whole else step if number else None,
        nullable=part.nullable,
    )
