"""How far each measure can move when one unit comes, goes or changes; one proof per kind.

Set-up. After filters, joins and the choice of keys, a unit has n rows. Each counts with the weight
w = W if n <= k, else floor(k W / n), where k is `max_rows` and W stands for 1 (`WEIGHT_ONE`, or 1
where every row is a unit of its own). The weight, the rows that are left and their integers depend
on the unit's own rows, on public tables and on a secret of this release alone; so when one unit
comes or goes, nobody else's contribution moves, and the measure moves by exactly the unit's own.

Weights. n w <= k W: for n <= k since n W <= k W, and else since n floor(kW/n) <= n kW/n.

| kind | the unit's own contribution a, over all groups and bins |
|---|---|
| rows, bins | every entry >= 0; entries add up to at most n w <= kW |
| values | row integers within [lowest, highest], so abs(a) adds up to at most kW largest |
| squares | row integers within [0, largest], so entries >= 0 add up to at most kW largest |
| units | 1 in each of at most c entries, 0 elsewhere |

Add-remove. The measure moves by a: L1 <= s, where s is the bound of the table, so L2 <= L1 <= s and
Linf <= s. For units L1 = c, L2**2 = c (c ones), Linf = 1.

Change-one. The unit's contribution goes from a to b. L1(b - a) <= L1(a) + L1(b) <= 2s. If all
entries are >= 0, then abs(b_i - a_i) <= max(a_i, b_i) <= s, and (b_i - a_i)**2 <= a_i**2 + b_i**2,
so L2**2 <= 2 s**2. If entries have either sign, L2 <= 2s and Linf <= 2s. For units: at most 2c
entries move, each by 1.

Entries. With d groups in all, no more than d entries of `units` move.

Choice of keys. A unit keeps at most c keys: those whose keyed hash (of unit, key and a secret drawn
afresh) are least among its own. That is a function of the unit's own rows and of the secret; for
every secret the above holds, so it holds on average. It is needed only where the *number* of keys
counts: for `units`, and for undeclared keys.
"""

from __future__ import annotations

from dataclasses import dataclass

from lastbit.errors import InvalidParameter
from lastbit.tables.card.schema import DataCard
from lastbit.tables.plan.measures import WEIGHT_ONE, Measure


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """How far a vector of integers can move between neighbours, in three norms.

    >>> Sensitivity(l1=6, l2_squared=12, linf=2)
    Sensitivity(l1=6, l2_squared=12, linf=2)
    """

    l1: int
    l2_squared: int
    linf: int


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
        raise InvalidParameter(
            "max_groups",
            problem="is not declared, and one unit could contribute to any number of groups",
            remedy="declare max_groups, or the keys",
        )
    return card.max_groups


def sensitivity_of(measure: Measure, card: DataCard, *, groups: int | None) -> Sensitivity:
    """The most by which the measure can move between neighbours: the table above.

    `groups` is the number of all possible keys, 1 without GROUP BY, None if undeclared.
    """
    both = card.neighbours.relation == "change-one"
    if measure.kind == "units":
        keys = 1 if card.unit is None else chosen_keys(card, groups=groups, needs_choice=True)
        own = groups if keys is None else keys
        assert own is not None  # chosen_keys refuses where neither is known
        moved = 2 * own if both else own
        if groups is not None:
            moved = min(moved, groups)
        return Sensitivity(l1=moved, l2_squared=moved, linf=1)
    total = card.max_rows * weight_one(card) * measure.largest
    if not both:
        return Sensitivity(l1=total, l2_squared=total**2, linf=total)
    if measure.signed:
        return Sensitivity(l1=2 * total, l2_squared=4 * total**2, linf=2 * total)
    return Sensitivity(l1=2 * total, l2_squared=2 * total**2, linf=total)
