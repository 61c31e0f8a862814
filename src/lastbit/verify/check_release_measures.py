"""Which integer vectors a query needs, and how far one unit can move each: worked out again.

The checker believes these rules, proved in `tables/stability.py`. A unit with n rows has each of
them count with the weight floor(k W / n), or W if n <= k: k W in all. Its own contribution is

| kind | over all groups and bins |
|---|---|
| rows, bins | entries from 0 up that add up to at most k W |
| values | sizes add up to at most k W largest |
| squares | entries from 0 up that add up to at most k W largest**2 |
| units | 1 in each of at most c groups |

and nobody else's moves. Add-remove: it comes or goes. Change-one: it becomes another, so L1
doubles; entries from 0 up move by no more than the larger of the two, so Linf stays and the square
of L2 doubles; entries of either sign can double Linf, and the square of L2 grows fourfold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import Any

from lastbit.verify.arithmetic import require, written
from lastbit.verify.check_release_query import Asked, Question, identity_of

__all__ = ["Facts", "Measured", "facts_of", "measured_of", "moves_of", "rank_moved"]

_WEIGHT = 1 << 20
_GRID = 1 << 20
_CANDIDATES = 1 << 10
_MOST = 1 << 20
_MANY_EDGES = 64
_CENTRED = ("mean", "variance", "std")


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the proof needs of the card."""

    unit: str | None
    max_rows: int
    max_groups: int | None
    change_one: bool
    groups: int | None

    @property
    def weight_one(self) -> int:
        """What stands for the weight 1."""
        return 1 if self.unit is None else _WEIGHT

    @property
    def total(self) -> int:
        """The most that all rows of a unit weigh together."""
        return self.max_rows * self.weight_one

    @property
    def own_keys(self) -> int:
        """To how many groups one unit can belong."""
        if self.unit is None:
            return 1
        known = [number for number in (self.max_groups, self.groups) if number is not None]
        require(bool(known), "one unit could bring any number of keys to light")
        return min(known)


def facts_of(plan: Mapping[str, Any], question: Question) -> Facts:
    """The card's facts as the plan names them, each within its limits."""
    unit, rows, groups = plan["unit"], plan["max_rows"], plan["max_groups"]
    require(unit is None or (isinstance(unit, str) and bool(unit)), "the unit has no name")
    require(type(rows) is int and 1 <= rows <= _MOST, "max_rows is out of range")
    require(
        groups is None or (type(groups) is int and 1 <= groups <= _MOST),
        "max_groups is out of range",
    )
    if unit is None:
        require(rows == 1 and groups in (None, 1), "a row that is a unit has several rows")
    require(plan["neighbours"] in ("add-remove", "change-one"), "the neighbours are unknown")
    return Facts(
        unit=unit,
        max_rows=rows,
        max_groups=groups,
        change_one=plan["neighbours"] == "change-one",
        groups=question.groups,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One integer vector: what a row brings to it."""

    kind: str
    expression: Any = None
    nullable: bool = True
    centre: Fraction = Fraction(0)
    step: Fraction = Fraction(1)
    lowest: int = 0
    highest: int = 0
    edges: tuple[Fraction, ...] = ()
    clamped: bool = True

    @property
    def largest(self) -> int:
        """The greatest size of the integer of one row."""
        size = max(abs(self.lowest), abs(self.highest))
        return {"values": size, "squares": size**2}.get(self.kind, 1)

    @property
    def signed(self) -> bool:
        """Whether rows can pull it both ways."""
        return self.kind == "values" and self.lowest < 0 < self.highest

    @property
    def identity(self) -> object:
        """Equal for measures that are one."""
        grid = (self.centre, self.step, self.lowest, self.highest)
        bins = (self.edges, self.clamped)
        return self.kind, identity_of(self.expression), self.nullable, grid, bins

    def json(self, name: str) -> dict[str, Any]:
        """As plans write it."""
        return {
            "name": name,
            "kind": self.kind,
            "expression": self.expression,
            "nullable": self.nullable,
            "centre": written(self.centre),
            "step": written(self.step),
            "lowest": self.lowest,
            "highest": self.highest,
            "edges": _written_edges(self.edges),
            "clamped": self.clamped,
        }


def measured_of(question: Question) -> tuple[dict[str, Measured], list[dict[str, Any]]]:
    """The measures by name, and how each aggregate is made of them, as plans write it."""
    names: dict[object, str] = {}
    found: dict[str, Measured] = {}
    recipes = []
    centred = {part.value_key for part in question.aggregates if part.function in _CENTRED}
    for part in question.aggregates:
        needed = {}
        for measure in _needed(part, shared=part.value_key in centred):
            name = names.setdefault(measure.identity, f"m{len(names) + 1}")
            found.setdefault(name, measure)
            needed[measure.kind] = name
        recipes.append({"aggregate": part.name, "function": part.function, "measures": needed})
    return found, recipes


def moves_of(measure: Measured, facts: Facts) -> dict[str, int]:
    """The most by which it moves between neighbours, in three norms."""
    if measure.kind == "units":
        moved = facts.own_keys * (2 if facts.change_one else 1)
        if facts.groups is not None:
            moved = min(moved, facts.groups)
        return {"l1": moved, "l2_squared": moved, "linf": 1}
    total = facts.total * measure.largest
    if not facts.change_one:
        return {"l1": total, "l2_squared": total**2, "linf": total}
    if measure.signed:
        return {"l1": 2 * total, "l2_squared": 4 * total**2, "linf": 2 * total}
    return {"l1": 2 * total, "l2_squared": 2 * total**2, "linf": total}


def rank_moved(level: Fraction, facts: Facts) -> int:
    """How far the distances from a rank move, over all groups: `tables/ranks.py`, Theorem 1."""
    a, d = level.numerator, level.denominator
    farther = max(a, d - a) * facts.total
    if not facts.change_one:
        return farther
    return d * facts.total if facts.groups == 1 else 2 * farther


# ---------------------------------------------------------------- what an aggregate needs


def _needed(part: Asked, *, shared: bool) -> Iterator[Measured]:
    match part.function:
        case "count":
            yield _rows(part)
        case "count_units":
            yield Measured(kind="units")
        case "sum":
            yield _values(part, "values", centred=shared)
            if shared:
                yield _rows(part)
        case "histogram":
            yield _bins(part, part.edges, clamped=False)
        case "quantile" | "min" | "max":
            yield _bins(part, _candidates(part), clamped=True)
        case _:
            yield _values(part, "values", centred=True)
            yield _rows(part)
            if part.function != "mean":
                yield _values(part, "squares", centred=True)


def _rows(part: Asked) -> Measured:
    if part.expression is None or not part.nullable:
        return Measured(kind="rows", nullable=False)
    return Measured(kind="rows", expression=part.expression)


def _values(part: Asked, kind: str, *, centred: bool) -> Measured:
    """Values on the grid of multiples of the step around the centre, within the bounds."""
    assert part.bounds is not None
    low, high = part.bounds
    centre = (low + high) / 2 if centred else Fraction(0)
    if part.step is not None:
        centre = floor(centre / part.step) * part.step
    step = (high - low) / _GRID if part.step is None else part.step
    lowest, highest = ceil((low - centre) / step), floor((high - centre) / step)
    require(lowest < highest, "a step is as wide as the bounds")
    return Measured(
        kind=kind,
        expression=part.expression,
        nullable=part.nullable,
        centre=centre,
        step=step,
        lowest=lowest,
        highest=highest,
    )


def _bins(part: Asked, edges: tuple[Fraction, ...], *, clamped: bool) -> Measured:
    return Measured(kind="bins", expression=part.expression, edges=edges, clamped=clamped)


def _candidates(part: Asked) -> tuple[Fraction, ...]:
    assert part.bounds is not None
    low, high = part.bounds
    steps = _CANDIDATES if part.step is None else ceil((high - low) / part.step)
    count = min(_CANDIDATES, steps)
    return tuple(low + (high - low) * i / count for i in range(count + 1))


def _written_edges(edges: tuple[Fraction, ...]) -> Any:
    """All edges, or the first, the last and the number of equal bins where they are many."""
    bins = len(edges) - 1
    if len(edges) > _MANY_EDGES:
        width = (edges[-1] - edges[0]) / bins
        if all(edge == edges[0] + width * i for i, edge in enumerate(edges)):
            return {"first": written(edges[0]), "last": written(edges[-1]), "bins": bins}
    return [written(edge) for edge in edges]
