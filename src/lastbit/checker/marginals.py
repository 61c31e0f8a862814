"""Re-derives the price of released contingency tables, and that the tables agree.

The question is a count of rows by columns whose keys are all declared; its tables are marginals: of
each named set of columns, the number of rows at every combination of their keys. Every marginal is
a measure of kind rows: one unit moves it by at most k W in L1 (`query.py`), since in one table each
of its rows is in one cell. Each has one mechanism,

| noise | loss |
|---|---|
| Laplace of scale s | epsilon = L1/s |
| Gaussian of variance v | rho = L2**2/(2v) |

and losses add up as in `release.py`. Where only some pairs are measured, the last part draws them
by the exponential mechanism: a draw with exp(rate score) costs epsilon = 2 rate L1 and rho =
epsilon**2/8, since a score is the distance of the pair's table from a public one. No set of columns
may be named twice: a table released twice is paid for twice.
Checked  tests/verify/test_check_marginals.py
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from .numbers import Json, ratio, require
from .query import Facts, Measured, Question, facts_of, moves_of, question_of
from .release import (
    CLAIM,
    PLAN,
    Loss,
    check_cost,
    check_names,
    noise_loss,
    positive,
    same,
    stated,
    total_loss,
)

_MOST_COLUMNS = 2
_ROWS = Measured(kind="rows", nullable=False)


def check_marginals(claim: Json, body: Json) -> None:
    """Raise `Rejected` unless the tables cost no more than is claimed."""
    plan = check_names(claim, body, CLAIM, PLAN | {"marginals"})
    question = counted_question(body["query"])
    sets = column_sets(plan, question)
    facts = facts_of(plan, question)
    sizes = sizes_of(question)
    parts = plan["parts"]
    require(isinstance(parts, list) and bool(parts), "a table has no noise")
    choice = parts[-1] if parts[-1].get("part") == "choice" else None
    picks, candidates = (0, []) if choice is None else _candidates(choice, question, sets)
    largest = sorted((cell_count(one, sizes) for one in candidates), reverse=True)[:picks]
    cells = sum(cell_count(one, sizes) for one in sets) + sum(largest)
    require(same(plan["groups"], cells), "the number of cells is another")
    require(same(plan["weight_one"], facts.weight_one), "the weight 1 is another")
    names = [f"m{place}" for place in range(1, len(sets) + picks + 1)]
    expected = [_ROWS.json(name) for name in names]
    require(same(plan["measures"], expected), "the tables need other measures")
    titles = [":".join(one) for one in plan["marginals"]]
    titles += [f"pair {number}" for number in range(1, picks + 1)]
    require(len(set(titles)) == len(titles), "two tables have one name")
    recipes = [
        {"aggregate": title, "function": "count", "measures": {"rows": name}}
        for title, name in zip(titles, names, strict=True)
    ]
    require(same(plan["recipes"], recipes), "the tables are made of other measures")
    moved = {norm: str(size) for norm, size in moves_of(_ROWS, facts).items()}
    require(same(body["moves"], dict.fromkeys(names, moved)), "one unit moves a table otherwise")
    require(plan["composition"] in ("basic", "concentrated"), "the composition is unknown")
    noise = parts if choice is None else parts[:-1]
    require(len(noise) == len(names), "a table has no noise")
    concentrated = plan["composition"] == "concentrated"
    losses = [
        _noise(part, name, facts, concentrated=concentrated)
        for part, name in zip(noise, names, strict=True)
    ]
    if choice is not None:
        losses.append(_choice(choice, picks, facts, concentrated=concentrated))
    check_cost(claim, plan, total_loss(plan, losses))


def counted_question(query: Any) -> Question:
    """The question, if it is a count of all rows by declared keys and nothing else."""
    question = question_of(query)
    require(not {"per_unit", "derived", "shown"} & set(query), "it is not a count of rows")
    require(not any("private" in join for join in query["joins"]), "private tables are joined")
    (count,) = question.aggregates
    require(count.function == "count" and count.expression is None, "it is not a count of rows")
    require(bool(question.names), "there are no columns")
    require(all(values is not None for values in question.values), "keys are not declared")
    after = (query["having"], query["order"], query["limit"])
    require(after == (None, [], None), "tables are filtered or cut")
    return question


def sizes_of(question: Question) -> list[int]:
    """How many keys each column has."""
    return [len(values or ()) for values in question.values]


def cell_count(one: tuple[int, ...], sizes: Sequence[int]) -> int:
    """How many cells the table of these columns has."""
    return prod(sizes[place] for place in one)


def _candidates(
    choice: Json, question: Question, sets: list[tuple[int, ...]]
) -> tuple[int, list[tuple[int, ...]]]:
    """How many pairs are drawn, and among which: none that is released anyway."""
    fields = {"part", "mechanism", "candidates", "picks", "penalty", "sensitivity", "rate"}
    require(set(choice) == fields | {"epsilon", "rho"}, "a part lacks a number")
    require(choice["mechanism"] == "exponential", "a mechanism is unknown")
    candidates = column_places(choice["candidates"], question)
    require(all(len(one) == _MOST_COLUMNS for one in candidates), "a pair is none")
    require(not set(candidates) & set(sets), "a pair is released twice")
    picks = choice["picks"]
    require(type(picks) is int and 1 <= picks < len(candidates), "too many pairs are drawn")
    require(ratio(choice["penalty"]).denominator == 1, "a penalty is not whole")
    return picks, candidates


def _choice(part: Json, picks: int, facts: Facts, *, concentrated: bool) -> Loss:
    """The score of a pair is a distance from its table, less a public number: it moves by L1."""
    moved = moves_of(_ROWS, facts)["l1"]
    require(same(part["sensitivity"], {"distance": str(moved)}), "a sensitivity is wrong")
    each = 2 * positive(part["rate"]) * moved
    epsilon = stated(part["epsilon"], picks * each)
    if concentrated:
        return Loss(rho=stated(part["rho"], picks * each**2 / 8))
    require(part["rho"] is None, "a part is paid for twice")
    return Loss(epsilon=epsilon)


def column_sets(plan: Json, question: Question) -> list[tuple[int, ...]]:
    """The sets of columns that are released whatever the data are."""
    return column_places(plan["marginals"], question)


def column_places(written: Any, question: Question) -> list[tuple[int, ...]]:
    """The sets of columns by their places, each once, each in the order of the question."""
    require(isinstance(written, list) and bool(written), "there are no tables")
    found = []
    for names in written:
        require(isinstance(names, list), "a table has no columns")
        require(all(name in question.names for name in names), "a table has an unknown column")
        places = tuple(question.names.index(name) for name in names)
        require(1 <= len(places) <= _MOST_COLUMNS, "a table has no columns, or too many")
        require(list(places) == sorted(set(places)), "the columns of a table are in disorder")
        found.append(places)
    require(len(set(found)) == len(found), "a table is released twice")
    return found


def _noise(part: Json, name: str, facts: Facts, *, concentrated: bool) -> Loss:
    require(isinstance(part, Mapping), "a part is malformed")
    told = part["part"], part["measure"], part["mechanism"]
    expected = ("noise", name, "gaussian" if concentrated else "laplace")
    require(told == expected, "a table has noise that is another's")
    return noise_loss(part, moves_of(_ROWS, facts), concentrated=concentrated)
