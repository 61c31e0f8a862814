"""What a query does with released numbers: formulas, HAVING, ORDER BY, LIMIT, and what it shows.

None of it touches the price: it sees columns of the answer only. What meets the table is read by
`query.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from .formulas import check_formula, has_total
from .numbers import Json, require
from .query import Question, check_expression, items, name_in, question_of
from .release import check_release as check_price_of_release


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownQuestion(Question):
    """A whole query whose form is right."""

    limit: int | None
    derived: tuple[tuple[str, Any], ...]
    selected: tuple[str, ...]
    having: Any
    order: tuple[tuple[str, bool], ...]


def check_release(claim: Json, body: Json) -> None:
    """Raise `Rejected` unless a release costs no more than is claimed, and its query is whole."""
    check_price_of_release(claim, body)
    shown_question(body["query"])


def shown_question(query: Any) -> ShownQuestion:
    """The whole query, or `Rejected`."""
    question = question_of(query)
    derived, selected = _derived(query, question) if "shown" in query else ((), ())
    names = (*question.names, *(part.name for part in question.aggregates), *dict(derived))
    every = [name.lower() for name in names]
    size = len(question.names) + len(question.aggregates) + len(derived)
    require(len(set(every)) == size, "two columns of the answer have one name")
    # what happens after the noise sees columns of the answer only
    bins = {a.name.lower() for a in question.aggregates if a.function == "histogram"}
    single = set(every) - bins
    having = [] if query["having"] is None else check_expression(query["having"], frozenset())
    seen = all(name.lower() in single for name in having)
    require(seen, "HAVING looks at what is not released")
    for order in items(query["order"]):
        require(len(items(order)) == 2 and type(order[1]) is bool, "an order is malformed")
        require(name_in(order[0]).lower() in single, "ORDER BY looks at what is not released")
    limit = query["limit"]
    require(limit is None or (type(limit) is int and limit >= 0), "a limit is not a number of rows")
    return ShownQuestion(
        **{field.name: getattr(question, field.name) for field in fields(question)},
        limit=limit,
        derived=derived,
        selected=selected or tuple(part.name for part in question.aggregates),
        having=query["having"],
        order=tuple((name, falls) for name, falls in query["order"]),
    )


def _derived(
    query: Json, question: Question
) -> tuple[tuple[tuple[str, Any], ...], tuple[str, ...]]:
    """The formulas over released numbers, and which columns the answer shows."""
    aggregates = question.aggregates
    single = {part.name for part in aggregates if part.function != "histogram"}
    formulas: list[tuple[str, Any]] = []
    for one in items(query["derived"]):
        require(isinstance(one, Mapping) and set(one) == {"name", "expression"}, "a formula is odd")
        require(check_formula(one["expression"], single) > 0, "a formula is of nothing released")
        whole = query["having"] is None and query["limit"] is None
        require(whole or not has_total(one["expression"]), "a total is of rows that are left out")
        formulas.append((name_in(one["name"]), one["expression"]))
    shown = tuple(map(name_in, items(query["shown"])))
    known = {part.name for part in aggregates} | dict(formulas).keys()
    require(bool(shown) and len(set(shown)) == len(shown), "a column is shown twice, or none")
    require(set(shown) <= known, "a column is shown that is not released")
    bins = {part.name for part in aggregates if part.function == "histogram"}
    require(bins <= set(shown), "a histogram is not shown")
    return tuple(formulas), shown
