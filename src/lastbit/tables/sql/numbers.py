"""Columns that a question uses as numbers, whatever type the source says: by its text alone.

A CSV file has no types. A column that is summed, averaged or put between bounds is meant as a
number, and is cast row by row like any column that a card declares so; no value is looked at.

Law      a column is meant as a number if it stands, through arithmetic, CASE results or COALESCE
         alone, inside an aggregate of numbers or as the first argument of clamp, bin or histogram
Theorem  which columns these are is a function of the question's text
Checked  tests/tables/test_numbers.py
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lastbit.tables.sql.parse import expression_tree, kind_of, name_of, statement_tree

_AGGREGATES = frozenset(
    {
        *("Sum", "Avg", "Min", "Max", "Median", "Quantile", "PercentileCont", "PercentileDisc"),
        *("Variance", "VariancePop", "Stddev", "StddevPop", "StddevSamp"),
    }
)
_PAIRS = frozenset(
    {"Corr", "CovarPop", "CovarSamp", "RegrSlope", "RegrIntercept", "RegrR2", "RegrAvgx"}
)
_BOUNDED = frozenset({"clamp", "bin", "histogram"})
_THROUGH = frozenset(
    {
        *("Add", "Sub", "Mul", "Div", "IntDiv", "Mod", "Neg", "Paren"),
        *("Abs", "Sign", "Round", "Floor", "Ceil", "Sqrt", "Ln", "Exp", "Log", "Pow"),
        *("Coalesce", "Least", "Greatest"),
    }
)


def numbers_in_statement(text: str) -> frozenset[str]:
    """Names, in small letters, of columns that a SELECT statement uses as numbers."""
    return frozenset(_bounded(statement_tree(text)))


def numbers_in(text: str, *, aggregated: bool) -> frozenset[str]:
    """The same of one expression; `aggregated` if an aggregate of numbers is around it.

    >>> sorted(numbers_in("CASE WHEN a = 'x' THEN b * 2 ELSE clamp(c, 0, 9) END", aggregated=True))
    ['b', 'c']
    """
    tree = expression_tree(text)
    return frozenset((*_bounded(tree), *(_reached(tree) if aggregated else ())))


def _bounded(tree: Any) -> Iterator[str]:
    """Inside aggregates of numbers, and where bounds are written."""
    for node in tree.walk():
        kind = kind_of(node)
        if kind in _AGGREGATES:
            yield from _reached(node.this)
        elif kind in _PAIRS:
            for child in node.iter_expressions():
                yield from _reached(child)
        elif kind == "Anonymous" and str(node.this).lower() in _BOUNDED and node.expressions:
            yield from _reached(node.expressions[0])
        elif kind == "WithinGroup":  # PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x)
            for item in getattr(node.expression, "expressions", ()):
                yield from _reached(item.this)


def _reached(node: Any) -> Iterator[str]:
    """Columns from which a number comes through arithmetic alone."""
    kind = kind_of(node)
    if kind == "Column":
        if kind_of(node.this) == "Identifier":
            yield name_of(node.this).lower()
    elif kind == "Case":
        results = [*(branch.args.get("true") for branch in node.args.get("ifs") or ())]
        for result in (*results, node.args.get("default")):
            yield from () if result is None else _reached(result)
    elif kind == "Anonymous" and str(node.this).lower() in _BOUNDED and node.expressions:
        yield from _reached(node.expressions[0])
    elif kind in _THROUGH:
        for child in node.iter_expressions():
            yield from _reached(child)
