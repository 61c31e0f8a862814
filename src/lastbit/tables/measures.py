"""Measures, the integer vectors that noise is added to, and how far each can move; with proofs.

Set-up. After filters and joins, a unit has n rows, of whatever keys. Each counts with the weight
w = W if n <= k, else floor(k W / n), where k is `max_rows` and W stands for 1 (`WEIGHT_ONE`, or 1
where every row is a unit of its own). The weight, the rows that are left and their integers depend
on the unit's own rows, on public tables and on a secret of this release alone; so when one unit
comes or goes, no other contribution moves, and the measure moves by exactly the unit's own.

Weights. n w <= k W: for n <= k since n W <= k W, and else since n floor(kW/n) <= n kW/n.

| kind | the unit's own contribution a, over all groups and bins |
|---|---|
| rows, bins | every entry >= 0; entries add up to at most n w <= kW |
| values | row integers within [lowest, highest], so abs(a) adds up to at most kW largest |
| squares | row integers within [0, largest], so entries >= 0 add up to at most kW largest |
| above, below | (below) entries >= 0; of both together they add up to at most kW highest |
| units | 1 in each of at most c entries, 0 elsewhere |
| shares | floor(W/sqrt(K)) in each of K entries, 1 <= K <= c: the squares add up to at most W**2 |
|  | (`lowest` = 2) the same for K >= 2 |
| distinct | (below) entries >= 0 that add up to at most v |

Add-remove. The measure moves by a: L1 <= s, where s is the bound of the table, so L2 <= L1 <= s and
Linf <= s. For units L1 = c, L2**2 = c (c ones), Linf = 1. For shares L2**2 = K floor(W/sqrt(K))**2
<= W**2, so L1 <= sqrt(K) L2 <= sqrt(c) W, and Linf <= W.

Change-one. The unit's contribution goes from a to b. L1(b - a) <= L1(a) + L1(b) <= 2s. If all
entries are >= 0, then abs(b_i - a_i) <= max(a_i, b_i) <= s, and (b_i - a_i)**2 <= a_i**2 + b_i**2,
so L2**2 <= 2 s**2. If entries have either sign, L2 <= 2s and Linf <= 2s. For units: at most 2c
entries move, each by 1. Shares: entries are >= 0, so L2**2 <= 2 W**2, L1 <= 2 sqrt(c) W, Linf <= W.

Ends. A row adds w i to `above` and w (highest - i) to `below` of one grid, 0 <= i <= highest. So
both, as one vector, are >= 0 and add up to at most s = kW highest, as those of either: the same
noise on both costs what it costs on one.

Entries. With d groups in all, no more than d entries of `units` move.

Choice of keys. A unit keeps at most c keys: those whose keyed hash (of unit, key and a secret drawn
afresh) are least among its own. That is a function of the unit's own rows and of the secret; for
every secret the above holds, so it holds on average. It is needed only where the *number* of keys
counts, for `units`; all other kinds are sums over all rows of a unit, chosen keys or not.

Undeclared keys. Let x be a vector over all possible keys, infinitely many, of which the data have
finitely many that are not 0. The bounds above are on all entries together, so they hold for x; and
for x_S, its entries at the keys of a set S, with the same or a smaller bound. An answer first draws
S by partition selection, which looks at `units` alone, and then, S being public, adds noise to x_S
for the other measures. That is adaptive composition: S costs what selection costs, and for every S
the rest costs what its noise costs at the bounds above. Entries outside S are never released. The
secret is drawn once and the same for both; given the secret the parts are independent of each
other, every statement above holds for every secret, and a mixture of laws over secrets that are
alike for both neighbours is no easier to tell apart than its worst member.

Distinct values. Each unit names at most v pairs of a key and a value of its own, those of least
keyed hash (`distinct_values`); an entry is the number of different values that are named with its
key. Let O be the pairs that the others name, and A those of one unit: then the entries of O and A
together exceed those of O by the numbers of pairs of A that are not in O, which are >= 0 and add up
to at most v. So add-remove and change-one are as for rows, with s = v.

An aggregate is a formula over measures; a measure that two aggregates need is computed, and paid
for, once. Every measure is a sum over rows of (weight of the unit) * (integer of the row), so that
no order of rows, no rounding and no engine can change it (above: how far it moves).

| kind | integer of a row | entries |
|---|---|---|
| rows | 1, or 0 where the expression is missing | one a group |
| values | the value on the public grid, from `lowest` to `highest` | one a group |
| squares | its square | one a group |
| above, below | the value on the grid from 0 to `highest`; `highest` less that | one a group |
| bins | 1 in the bin of its value | one a group and bin |
| units | (no weight) 1 for every unit with a row in the group | one a group |
| shares | (no weight) floor(W/sqrt(K)) for every unit with a row there and K keys | one a group |
| distinct | (no weight) 1 for every different value that a unit names in the group | one a group |

A value x on the grid is the integer nearest to (x - centre)/step, clamped in integers. Infinite
values are clamped like any other; NaN and NULL are missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, isqrt
from typing import Any, Literal, TypeAlias

from lastbit.errors import InvalidParameter
from lastbit.tables.card.schema import DataCard
from lastbit.tables.query.expression import Expression, from_json

Kind: TypeAlias = Literal[
    "rows", "values", "squares", "above", "below", "bins", "units", "shares", "distinct"
]

WEIGHT_ONE = 1 << 20
"""The integer that stands for a weight of 1 where units have many rows."""

_GRID = 1 << 20
_MOST_STEPS = 1 << 44
_GREATEST = 1 << 250


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One integer vector over the groups. `name` is its column in the compiled statement."""

    name: str
    kind: Kind
    expression: Expression | None = None
    nullable: bool = True
    """Whether rows without a value are left out; False: they count, as the centre."""
    centre: Fraction = Fraction(0)
    step: Fraction = Fraction(1)
    lowest: int = 0
    highest: int = 0
    """Of units and shares: how many keys a unit chooses at most; 0 for the card's max_groups.
    Where `lowest` is 2, units with one key are left out of shares, and counted apart."""
    edges: tuple[Fraction, ...] = ()
    """Of the bins [e_0, e_1), [e_1, e_2) ...; the last is closed. A value outside joins the next
    bin if `clamped`, else it is left out."""
    clamped: bool = True

    def __post_init__(self) -> None:
        """The limits under which sums are proved not to overflow (`compile/statement.py`)."""
        _check_steps(self.lowest, self.highest)
        if any(abs(number) > _GREATEST for number in (self.centre, self.step, *self.edges)):
            problem = "lie beyond 2**250, where answers might not be numbers"
            raise InvalidParameter("bounds", problem=problem, remedy="ask in a larger unit")

    @property
    def largest(self) -> int:
        """The greatest absolute integer that one row can have."""
        most = max(abs(self.lowest), abs(self.highest))
        sizes = {"values": most, "squares": most**2, "above": most, "below": most}
        return sizes.get(self.kind, 1)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Measure:
        """The measure that `plan/written.py` wrote, if the checker has accepted it."""
        written, expression = data["edges"], data["expression"]
        if isinstance(written, Mapping):
            first, last = Fraction(written["first"]), Fraction(written["last"])
            edges = equal_edges(first, last, written["bins"])
        else:
            edges = tuple(map(Fraction, written))
        read = None if expression is None else from_json(expression)
        grid = {"centre": Fraction(data["centre"]), "step": Fraction(data["step"])}
        return cls(**{**data, **grid, "expression": read, "edges": edges})


def _check_steps(lowest: int, highest: int) -> None:
    if max(-lowest, highest) > _MOST_STEPS:
        raise InvalidParameter(
            "step", problem="is too fine for these bounds", remedy="declare a coarser step"
        )


def grid_of(
    bounds: tuple[Fraction, Fraction], step: Fraction | None, *, centre: Fraction
) -> tuple[Fraction, int, int]:
    """The step and the least and greatest integer for values within these bounds.

    >>> grid_of((Fraction(0), Fraction(500)), None, centre=Fraction(250))
    (Fraction(125, 262144), -524288, 524288)
    >>> grid_of((Fraction(0), Fraction(10)), Fraction(1), centre=Fraction(0))
    (Fraction(1, 1), 0, 10)
    """
    low, high = bounds
    size = (high - low) / _GRID if step is None else step
    lowest, highest = ceil((low - centre) / size), floor((high - centre) / size)
    _check_steps(lowest, highest)
    if lowest >= highest:
        raise InvalidParameter(
            "step", problem="is as wide as the bounds", remedy="declare a finer step"
        )
    return size, lowest, highest


def equal_edges(low: Fraction, high: Fraction, bins: int) -> tuple[Fraction, ...]:
    """The edges of this many bins of equal width."""
    return tuple(low + (high - low) * i / bins for i in range(bins + 1))


def weight_one(card: DataCard) -> int:
    """The integer that stands for the weight 1."""
    return 1 if card.unit is None else WEIGHT_ONE


def chosen_keys(card: DataCard, *, groups: int | None, needs_choice: bool) -> int | None:
    """To how many keys a unit is limited by choice; None where no choice is made.

    `groups` is the number of all possible keys where they are declared, else None.
    """
    if card.unit is None or not needs_choice:
        return None
    if groups is not None and (card.max_groups is None or card.max_groups >= groups):
        return None
    if card.max_groups is None:
        problem = "is not declared, and one unit could contribute to any number of groups"
        remedy = "declare max_groups, or the keys"
        raise InvalidParameter("max_groups", problem=problem, remedy=remedy)
    return card.max_groups


def selection_keys(
    card: DataCard, measures: Iterable[Measure], *, groups: int | None
) -> int | None:
    """To how many keys a unit is limited where units are counted; None where no choice is made."""
    counted = [measure for measure in measures if measure.kind in ("units", "shares")]
    limits = [measure.highest for measure in counted if measure.highest]
    if limits and card.unit is not None:
        return min(limits)
    return chosen_keys(card, groups=groups, needs_choice=groups is None or bool(counted))


def share_of(keys: int) -> int:
    """What a unit with this many keys adds to each of them: floor(W/sqrt(keys)).

    >>> share_of(1), share_of(2)
    (1048576, 741455)
    """
    return isqrt(WEIGHT_ONE**2 // keys)


def distinct_values(card: DataCard) -> int:
    """How many values of a column one unit may name: as many as groups, if that is declared.

    Many units name the same values, so that few of each suffice to find nearly all.
    """
    return card.max_rows if card.max_groups is None else min(card.max_rows, card.max_groups)
