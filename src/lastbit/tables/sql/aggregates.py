"""From a parsed SQL aggregate to ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from math import ceil, floor
from types import MappingProxyType
from typing import Any, cast

from lastbit.exact import exact_text
from lastbit.tables.card.schema import DataCard
from lastbit.tables.limits import refused
from lastbit.tables.query.derived import columns_in
from lastbit.tables.query.expression import ColumnName, Constant, Expression
from lastbit.tables.query.query import Aggregate, Function
from lastbit.tables.query.rules import call
from lastbit.tables.query.types import Known, card_types, check_bounds, known_of, type_of, typed
from lastbit.tables.sql.expressions import Resolve, translated
from lastbit.tables.sql.parse import kind_of, number_of, taken

_PLAIN: Mapping[str, Function] = MappingProxyType(
    {
        "Sum": "sum",
        "Avg": "mean",
        "Min": "min",
        "Max": "max",
        **dict.fromkeys(("Variance", "VariancePop"), "variance"),
        **dict.fromkeys(("Stddev", "StddevPop", "StddevSamp"), "std"),
    }
)
_ENDS = ("Min", "Max")
_MOST_LEVELS = 60
_LEVELS: Mapping[str, str] = MappingProxyType(
    {"Quantile": "quantile", "PercentileCont": "expression", "PercentileDisc": "expression"}
)
_OTHERS = ("ApproxDistinct", "Count", "CountIf", "Filter", "Median", "WithinGroup")
_OF_TRUTHS = ("sum", "mean", "variance", "std")
_MOST_WHOLE = 1 << 40
_LONGEST_PERCENT = 8


def is_aggregate(node: Any) -> bool:
    """Whether this node is an aggregate; what is inside does not matter."""
    kind = kind_of(node)
    if is_of_distinct(node):
        return False  # a formula over counts of distinct values (`distinct.py`)
    return kind in _PLAIN or kind in _LEVELS or kind in _OTHERS or is_histogram(node)


def is_of_distinct(node: Any) -> bool:
    """Whether this node is SUM(DISTINCT x) or one of its kind; MIN and MAX are not."""
    kind = kind_of(node)
    distinct_values = kind in _PLAIN and kind_of(node.args.get("this")) == "Distinct"
    return distinct_values and kind not in _ENDS


def aggregate_from(node: Any, name: str, card: DataCard, resolve: Resolve) -> Aggregate:
    """The aggregate under this name."""
    kind = kind_of(node)
    if kind in _PLAIN:
        (value,) = taken(node, "this")
        if kind_of(value) == "Distinct":
            value = without_distinct(value, kind)
        return bounded(name, _PLAIN[kind], translated(value, resolve), card)
    if kind in _LEVELS or kind == "Median":
        value, level = taken(node, "this", _LEVELS.get(kind, "level"))
        share = Fraction(1, 2) if kind == "Median" else _level(number_of(level))
        return bounded(name, "quantile", translated(value, resolve), card, level=share)
    if kind == "Filter":
        inner, test = taken(node, "this", "expression")
        only = condition(translated(taken(test, "this")[0], resolve), card, "FILTER")
        return _filtered(aggregate_from(inner, name, card, resolve), only)
    if kind == "Count":
        return _count(node, name, card, resolve)
    if kind == "ApproxDistinct":
        (value,) = taken(node, "this")
        return distinct(name, translated(value, resolve), card)
    if kind == "CountIf":
        only = condition(translated(taken(node, "this")[0], resolve), card, "COUNT_IF")
        return _filtered(Aggregate(name=name, function="count", nullable=False), only)
    if kind == "WithinGroup":
        return _within_group(node, name, card, resolve)
    if is_histogram(node):
        return _histogram(node, name, card, resolve)
    raise refused(kind.upper(), "is not an aggregate known here", "use COUNT, SUM, AVG, MEDIAN ...")


def without_distinct(node: Any, kind: str) -> Any:
    """What MIN or MAX of distinct values is made of: they have the ends of all values."""
    (values,) = taken(node, "expressions")
    if kind in _ENDS and len(values) == 1:
        return values[0]
    name = {"Sum": "SUM", "Avg": "AVG"}.get(kind, kind.upper())
    problem = "is not known here: inside FILTER, or of a unit's own rows"
    remedy = f"write {name}(DISTINCT CASE WHEN ... THEN x END) of the table's rows"
    raise refused(f"{name}(DISTINCT ...)", problem, remedy)


def aggregates_from(node: Any, name: str, card: DataCard, resolve: Resolve) -> list[Aggregate]:
    """The aggregates under this name: several where a quantile has a list of levels."""
    inner = node.this if kind_of(node) == "Filter" else node
    key = _LEVELS.get(kind_of(inner))
    levels = None if key is None else inner.args.get(key)
    if levels is None or kind_of(levels) != "Array":
        return [aggregate_from(node, name, card, resolve)]
    (listed,) = taken(levels, "expressions", ignored=("bracket_notation",))
    if len(listed) > _MOST_LEVELS:
        raise refused(name, f"lists more than {_MOST_LEVELS} levels", "ask for fewer of them")
    found = []
    for level in listed:
        one = node.copy()
        (one.this if one is not inner and kind_of(one) == "Filter" else one).set(key, level.copy())
        share = _level(number_of(level))
        found.append(aggregate_from(one, f"{name}_{level_name(share)}", card, resolve))
    if not found or len({part.name for part in found}) < len(found):
        raise refused(name, "lists no level, or one twice", "write QUANTILE_CONT(x, [0.25, 0.75])")
    return found


def bounded(
    name: str,
    function: Function,
    expression: Expression,
    card: DataCard,
    *,
    bounds: tuple[Fraction, Fraction] | None = None,
    nullable: bool | None = None,
    level: Fraction | None = None,
    edges: tuple[Fraction, ...] | None = None,
    intervals: bool = True,
) -> Aggregate:
    """An aggregate of numbers, its bounds taken from the query or from the card."""
    lookup = card_types(card)
    asked = typed(expression, lookup)
    known = known_of(asked, card)
    kind = type_of(known.expression, lookup)
    if kind == "boolean" and function == "mean" and not any(True for _ in columns_in(asked)):
        problem = "is of a truth value that every row has"
        raise refused(name, problem, "name a column, or write 1 and 0")
    if kind == "boolean" and function in _OF_TRUTHS:  # the mean of a condition is its share
        known = replace(known, expression=call("to_integer", known.expression))
        known, kind = replace(known, bounds=(Fraction(0), Fraction(1))), "integer"
        asked = known.expression
    if kind not in ("integer", "number"):
        raise refused(
            name, f"needs numbers, not {kind or 'nothing'}", "aggregate numbers, or count"
        )
    if function == "histogram":
        check_bounds(name, edges or ())  # the edges decide: a clamp stays in the expression
        return Aggregate(
            name=name, function=function, expression=asked, nullable=known.nullable, edges=edges
        )
    if bounds is not None and known.expression != asked:  # bounds of a clamp: both hold, in turn
        known = Known(expression=asked, step=known.step, nullable=known.nullable)
    limits = known.bounds if bounds is None else bounds
    if limits is None:
        raise unbounded(name, function, known.expression)
    check_bounds(name, limits)
    return Aggregate(
        name=name,
        function=function,
        expression=known.expression,
        bounds=limits,
        step=known.step or (_whole_step(limits) if kind == "integer" else None),
        nullable=known.nullable if nullable is None else nullable,
        level=level,
        edges=edges,
        intervals=intervals,
    )


def level_name(level: Fraction) -> str:
    """A level in the name of a column: 25, 97_5, 1_3 of 3.

    >>> level_name(Fraction(1, 4)), level_name(Fraction("0.975")), level_name(Fraction(1, 3))
    ('25', '97_5', '1_of_3')
    """
    percent = exact_text(100 * level)
    short = percent.replace(".", "", 1).isdigit() and len(percent) <= _LONGEST_PERCENT
    return percent.replace(".", "_") if short else f"{level.numerator}_of_{level.denominator}"


def point_name(point: Fraction) -> str:
    """A point in the name of a column.

    >>> point_name(Fraction(-5, 2)), point_name(Fraction(1, 3))
    ('minus_2_5', '1_of_3')
    """
    sign, size = ("minus_" if point < 0 else ""), abs(point)
    text = exact_text(size)
    short = text.replace(".", "", 1).isdigit()
    return sign + (text.replace(".", "_") if short else f"{size.numerator}_of_{size.denominator}")


def _whole_step(bounds: tuple[Fraction, Fraction]) -> Fraction | None:
    """The grid of whole numbers, where some lie between the bounds and not too many."""
    low, high = ceil(bounds[0]), floor(bounds[1])
    return Fraction(1) if low < high and max(-low, high) <= _MOST_WHOLE else None


def unbounded(name: str, function: str, expression: Expression) -> Exception:
    """A refusal of what one row could make any amount."""
    what = f"column {expression.name}" if isinstance(expression, ColumnName) else "expression"
    inside = expression.name if isinstance(expression, ColumnName) else "..."
    remedy = f"declare bounds on the card, or ask for the {function} of clamp({inside}, low, high)"
    return refused(name, f"has no bounds: the {what} could be any amount in one row", remedy)


def counted(name: str, expression: Expression, card: DataCard) -> Aggregate:
    """The number of rows in which the expression has a value."""
    known = known_of(typed(expression, card_types(card)), card)
    if isinstance(known.expression, Constant) and known.expression.value is not None:
        return Aggregate(name=name, function="count", nullable=False)
    return Aggregate(
        name=name, function="count", expression=known.expression, nullable=known.nullable
    )


def condition(expression: Expression, card: DataCard, where: str) -> Expression:
    """The expression, if it is true or false."""
    found = typed(expression, card_types(card))
    if type_of(found, card_types(card)) not in ("boolean", None):
        raise refused(where, "is neither true nor false", "write a comparison")
    return found


def resolve_unit(card: DataCard) -> Expression:
    """The unit's column as an expression."""
    assert card.unit is not None
    return ColumnName(card.column(card.unit).name)


def _count(node: Any, name: str, card: DataCard, resolve: Resolve) -> Aggregate:
    (what,) = taken(node, "this", ignored=("big_int",))
    if what is None or kind_of(what) == "Star":
        if what is not None:
            taken(what)
        return Aggregate(name=name, function="count", nullable=False)
    if kind_of(what) != "Distinct":
        return counted(name, translated(what, resolve), card)
    (columns,) = taken(what, "expressions")
    if len(columns) != 1 or kind_of(columns[0]) == "Tuple":
        raise refused("COUNT(DISTINCT ...)", "counts one column", "join them: a || '-' || b")
    return distinct(name, translated(columns[0], resolve), card)


def distinct(name: str, expression: Expression, card: DataCard) -> Aggregate:
    """The number of different values; of the unit's own column, that of the units."""
    found = typed(expression, card_types(card))
    if card.unit is not None and found == resolve_unit(card):
        return Aggregate(name=name, function="count_units")
    kind = type_of(found, card_types(card))
    if kind in ("number", None):
        raise refused(
            "COUNT(DISTINCT ...)",
            "is known for whole numbers, texts, dates and truth values",
            "write COUNT(DISTINCT CAST(x AS BIGINT)), or of bin(x, 0, 10, 20)",
        )
    return Aggregate(name=name, function="count_distinct", expression=found)


def _within_group(node: Any, name: str, card: DataCard, resolve: Resolve) -> Aggregate:
    inner, order = taken(node, "this", "expression")
    if kind_of(inner) not in ("PercentileCont", "PercentileDisc"):
        raise refused("WITHIN GROUP", "is for PERCENTILE_CONT", "write QUANTILE_CONT(x, 0.9)")
    (share,) = taken(inner, "this")
    (sorts,) = taken(order, "expressions")
    if len(sorts) != 1:
        raise refused("WITHIN GROUP", "orders by one column", "name one")
    # where missing values would stand does not matter: a quantile is of the others
    value, descending = taken(sorts[0], "this", "desc", ignored=("nulls_first",))
    level = _level(number_of(share))
    level = 1 - level if descending else level
    return bounded(name, "quantile", translated(value, resolve), card, level=level)


def _histogram(node: Any, name: str, card: DataCard, resolve: Resolve) -> Aggregate:
    _, arguments = taken(node, "this", "expressions")
    numbers = [number_of(edge) for edge in (arguments or [])[1:]]
    if len(numbers) < 2 or None in numbers:
        raise refused("HISTOGRAM", "needs numbers as edges", "write HISTOGRAM(age, 0, 18, 65)")
    edges = tuple(cast(list[Fraction], numbers))
    return bounded(name, "histogram", translated(arguments[0], resolve), card, edges=edges)


def _level(share: Fraction | None) -> Fraction:
    if share is None or not 0 < share < 1:
        raise refused("quantile", "needs a level between 0 and 1", "write QUANTILE_CONT(x, 0.9)")
    return share


def _filtered(part: Aggregate, only: Expression) -> Aggregate:
    if part.function == "count_units":
        raise refused(
            "COUNT(DISTINCT unit) FILTER", "is not known here", "use WHERE in a question of its own"
        )
    value = Constant(1) if part.expression is None else part.expression
    return replace(part, expression=call("case", only, value), nullable=True)


def is_histogram(node: Any) -> bool:
    """Whether this node is our HISTOGRAM, which the parser does not know."""
    return kind_of(node) == "Anonymous" and str(node.this).lower() == "histogram"
