"""The plan of an answer: which mechanisms run, with which noise, at which price.

A plan depends on the query, the card and the price asked, on nothing else: it is made before a
single row is read, and `explain()` shows all of it. Every number in it is exact.

Theorem  the answer costs no more than `cost`. The parts run one after another on the same data:
         - *basic*: their epsilons add up to at most the epsilon asked, their deltas to the delta;
         - *concentrated*: the rhos of noise, of ranks and of partition selection add up to at most
           rho. Where epsilon and delta were asked, rho is such that rho-zCDP implies (epsilon,
           delta') by the order on record (`conversion.py`), and delta' and the delta of partition
           selection add up to delta (`selection.py`: approximate zCDP). Where all of it is Gaussian
           noise, mu**2 adds up instead of rho, to the mu on record.
         Each part's price follows from its sensitivity (`sensitivity.py`, `ranks.py`). Measures of
         keys that are not shown are not released, and a part of a vector moves no further than the
         whole. What is done with noisy numbers afterwards is free
Source   basic composition: paper 003 Prop. 8; zCDP: Bun, Steinke 2016; to (epsilon, delta): CKS20
         Prop. 12
Checked  tests/tables/test_plan.py

Which noise. Where rho is asked: Gaussian. Where delta is 0: Laplace. Otherwise both are computed
in full, and the one is taken whose worst error in full rows (`calibrate.py`) is smaller; where keys
are found, the one whose errors are smaller in the geometric mean. If nothing but keys is paid for,
it is the one that needs fewer units to show a key (`selection.py`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from math import prod
from typing import Any

from lastbit.canonical import digest_of
from lastbit.errors import InvalidParameter
from lastbit.exact import Number, root_below
from lastbit.tables.card.budget import Budget
from lastbit.tables.card.schema import DataCard
from lastbit.tables.compile.units import check_matches
from lastbit.tables.limits import refused
from lastbit.tables.measures import Measure, weight_one
from lastbit.tables.plan import calibrate
from lastbit.tables.plan.calibrate import Demand, Weights, shares
from lastbit.tables.plan.conversion import AnyConversion, conversion_to, pair_conversion_to
from lastbit.tables.plan.cost import Cost
from lastbit.tables.plan.parts import (
    GaussianPart,
    GaussianSelection,
    Part,
    PartitionSelection,
    Selection,
)
from lastbit.tables.plan.price import PriceRequest, asked_price
from lastbit.tables.plan.selection import Finder, Found
from lastbit.tables.plan.sensitivity import Recipe, measures_of
from lastbit.tables.plan.written import Composition, JoinedUnits, WrittenPlan, WrittenRecipe
from lastbit.tables.query.derived import columns_in
from lastbit.tables.query.query import Query
from lastbit.tables.query.sub_query import counted_card

_MOST_GROUPS = 1 << 20
_MOST_ENTRIES = 1 << 25
_GREATEST = 1 << 250
_WORD = re.compile("[A-Za-z_\u00c0-\u024f][A-Za-z0-9_\u00c0-\u024f]{0,59}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A query with its mechanisms and its price; nothing was read or charged."""

    query: Query
    card: DataCard
    asked: PriceRequest
    groups: int | None
    """How many keys there are: 1 without GROUP BY, None where they are undeclared."""
    measures: tuple[Measure, ...]
    recipes: tuple[Recipe, ...]
    parts: tuple[Part, ...]
    composition: Composition
    conversion: AnyConversion | None
    cost: Cost
    chosen: tuple[str, ...] = ()
    """What a profile has chosen, or will, in sentences: of limits that nobody has declared."""
    before: Cost = Cost()  # noqa: RUF009  a frozen value
    """What is charged besides, for a profile that is still to be bought."""

    @property
    def partition_selection(self) -> Selection | None:
        """The part that finds undeclared keys."""
        kinds = (PartitionSelection, GaussianSelection)
        return next((part for part in self.parts if isinstance(part, kinds)), None)

    @property
    def gaussian_noise(self) -> bool:
        """Whether all that is paid for is discrete Gaussian noise."""
        return all(isinstance(part, GaussianPart) for part in self.parts)

    @property
    def guarantee(self) -> str:
        """What is promised, in words."""
        return guarantee_of(self.card, self.cost)

    def explain(self) -> str:
        """What will be done, at which price and with which error: for people, before it is done."""
        # found by name: sentences are the business of a room above this one
        return str(import_module("lastbit.release").plan_words(self))

    @property
    def written(self) -> WrittenPlan:
        """All of it that is written down."""
        card = self.card
        tables = {join.table: card.private.get(join.table) for join in self.query.all_joins}
        return WrittenPlan(
            query=self.query.digest,
            table=card.name,
            unit=card.unit,
            max_rows=card.max_rows,
            max_groups=card.max_groups,
            neighbours=card.neighbours.relation,
            weight_one=weight_one(card),
            groups=self.groups,
            asked=self.asked,
            composition=self.composition,
            conversion=self.conversion,
            cost=self.cost,
            measures=self.measures,
            recipes=tuple(
                WrittenRecipe(
                    aggregate=one.aggregate.name,
                    function=one.aggregate.function,
                    measures=one.measures,
                )
                for one in self.recipes
            ),
            parts=self.parts,
            private={
                name: JoinedUnits(unit=table.column(table.unit).name, max_rows=table.max_rows)
                for name, table in sorted(tables.items())
                if table is not None
            },
        )

    def to_json(self) -> dict[str, Any]:
        """All of it as plain JSON: what a second program needs to check the price."""
        return self.written.to_json()

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical text."""
        return digest_of(self.to_json())


def planned(
    query: Query,
    card: DataCard,
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    weights: Weights = None,
) -> Plan:
    """The plan for a query at a price: epsilon (and delta), or rho, for the whole answer.

    >>> from lastbit.tables import Source, parsed
    >>> source = Source(kind="csv", paths=("visits.csv",))
    >>> card = DataCard(name="visits", source=source, unit=None, max_rows=1, columns={})
    >>> plan = planned(parsed("SELECT count(*) AS n FROM visits", card), card, epsilon="1/2")
    >>> plan.cost.epsilon, plan.guarantee
    (Fraction(1, 2), 'epsilon = 0.5 differential privacy for one row more or less')
    """
    check_declared(card)
    card = counted_card(query, card)
    asked = asked_price(card, epsilon=epsilon, delta=delta, rho=rho, weights=weights)
    joined = [card.private[join.table] for join in query.all_joins if join.table in card.private]
    check_matches(query, card, prod(table.max_rows for table in joined))
    groups = query.groups
    measures, recipes = measures_of(query)
    _check(query, measures, groups=groups, delta=asked.delta, budget=card.budget)
    if asked.rho is not None and groups is not None and asked.delta:
        problem = "has no meaning beside rho, as no keys must be found"
        raise InvalidParameter("delta", problem=problem, remedy="drop it")
    keys = tuple(key.name for key in query.keys)
    demands = calibrate.demands_of(card, measures, recipes, keys, groups=groups)
    name = f"m{len(measures) + 1}"
    finder = Finder(card=card, serves=calibrate.served_by_selection(card, measures), name=name)
    if asked.rho is not None:
        split = shares(demands, weights, concentrated=True)
        found, parts = _at_rho(demands, finder, asked.rho, split, asked.delta)
        conversion, cost = None, Cost(rho=asked.rho, delta=asked.delta)
        concentrated = True
    else:
        found, parts, conversion = _by_epsilon(demands, finder, asked, weights)
        concentrated = conversion is not None
        used = concentrated or groups is None
        assert asked.epsilon is not None
        cost = Cost(epsilon=asked.epsilon, delta=asked.delta if used else Fraction(0))
    if found is not None:
        parts = [found.part, *parts]
        measures += () if found.extra is None else (found.extra,)
    plan = Plan(
        query=query,
        card=card,
        asked=asked,
        groups=groups,
        measures=measures,
        recipes=recipes,
        parts=tuple(parts),
        composition="concentrated" if concentrated else "basic",
        conversion=conversion,
        cost=cost,
    )
    kept = None if card.budget is None else card.budget.kind
    if kept == "gaussian" and cost.rho and not plan.gaussian_noise:
        problem = "pays for Gaussian noise alone in this account, and ranks are found without it"
        raise refused("rho", problem, "pass {epsilon}", epsilon="")
    return plan


def check_declared(card: DataCard) -> None:
    """Refuse a card whose max_rows is still to be chosen: nothing is guessed."""
    if card.max_rows_open:
        problem = "is left out, and no profile of the table has chosen it"
        remedy = "declare it, or buy a profile: lastbit card profile, or table.profile(epsilon=...)"
        raise refused("max_rows", problem, remedy)


def _check(
    query: Query,
    measures: tuple[Measure, ...],
    *,
    groups: int | None,
    delta: Fraction,
    budget: Budget | None,
) -> None:
    """Refuse what could not be answered, before anything is priced."""
    if groups is not None and groups > _MOST_GROUPS:
        remedy = "group by fewer columns, or leave keys undeclared to find them privately"
        raise refused("GROUP BY", "has more than 2**20 declared keys", remedy)
    if groups is None and not delta:
        problem = "has undeclared keys, and to find them privately takes a delta"
        if budget is not None and not budget.delta:  # one that is passed would be refused
            remedy = "declare the keys, or let the steward give the budget an epsilon and a delta"
            raise refused("GROUP BY", problem, remedy)
        raise refused("GROUP BY", problem, "pass {delta}, or declare the keys", delta="")
    numbers = [n for part in query.aggregates for n in (*(part.bounds or ()), *(part.edges or ()))]
    if any(abs(number) > _GREATEST for number in numbers):
        problem = "lie beyond 2**250, where answers might not be numbers"
        raise refused("bounds", problem, "ask in a larger unit")
    bins = sum(len(measure.edges) for measure in measures if measure.kind == "bins")
    if (groups or 1) * bins > _MOST_ENTRIES:
        problem = "has more than 2**25 bins in all groups together"
        raise refused("query", problem, "ask for fewer groups, or a coarser step")
    single = {part.name for part in query.aggregates if part.function != "histogram"}
    single |= {key.name for key in query.keys} | {one.name for one in query.derived}
    mentioned = [order.name for order in query.order]
    if query.having is not None:
        mentioned += [column.name for column in columns_in(query.having)]
    for name in mentioned:
        if name.lower() not in {known.lower() for known in single}:
            problem = "names something that is not a single column of the answer"
            raise refused("HAVING or ORDER BY", problem, f"use {', '.join(sorted(single))}")


_Made = tuple[Found | None, list[Part]]


def _apart(demands: list[Demand]) -> tuple[list[int], list[int]]:
    """The places of the selection, if there is one, and of all else."""
    keys = [i for i, demand in enumerate(demands) if demand.kind == "keys"]
    return keys, [i for i, demand in enumerate(demands) if demand.kind != "keys"]


def _by_epsilon(
    demands: list[Demand], finder: Finder, asked: PriceRequest, weights: Weights
) -> tuple[Found | None, list[Part], AnyConversion | None]:
    """Laplace throughout, or Gaussian through rho, whichever has the smaller errors."""
    assert asked.epsilon is not None
    prices = [asked.epsilon * share for share in shares(demands, weights, concentrated=False)]
    keys, others = _apart(demands)
    found = finder.at_epsilon(prices[keys[0]], asked.delta) if keys else None
    if asked.delta and others:
        pure = [calibrate.pure_error(demands[i]) / prices[i] for i in others]
        split = shares(demands, weights, concentrated=True)
        tail = asked.delta / 2 if keys else Fraction(0)
        drawn = any(demand.kind == "rank" for demand in demands)
        level = asked.delta - tail
        paired = None if drawn else pair_conversion_to(asked.epsilon, level)
        conversion = paired or conversion_to(asked.epsilon, level)
        errors = [
            calibrate.concentrated_error(demands[i]) / root_below(conversion.rho * split[i])
            for i in others
        ]
        smaller = prod(errors) < prod(pure) if keys else max(errors) < max(pure)
        if smaller:
            made = _at_rho(demands, finder, conversion.rho, split, tail, paired=bool(paired))
            return *made, conversion
    wanted, paid = [demands[i] for i in others], [prices[i] for i in others]
    return found, list(calibrate.basic_parts(wanted, paid)), None


def _at_rho(
    demands: list[Demand],
    finder: Finder,
    rho: Fraction,
    split: tuple[Fraction, ...],
    tail: Fraction,
    *,
    paired: bool = False,
) -> _Made:
    """Every demand at its share of rho, and what undeclared keys show by chance within `tail`."""
    keys, others = _apart(demands)
    found = finder.at_rho(rho * split[keys[0]], tail, paired=paired) if keys else None
    wanted, rhos = [demands[i] for i in others], [rho * split[i] for i in others]
    parts = calibrate.paired_parts if paired else calibrate.concentrated_parts
    return found, list(parts(wanted, rhos))


def guarantee_of(card: DataCard, cost: Cost) -> str:
    """The promise in one sentence.

    >>> from lastbit.tables.card.schema import Source
    >>> card = DataCard(name="t", source=Source(kind="csv"), unit=None, max_rows=1, columns={})
    >>> guarantee_of(card, Cost(epsilon=Fraction(1)))
    'epsilon = 1 differential privacy for one row more or less'
    """
    kind = "zero-concentrated differential privacy" if cost.rho else "differential privacy"
    kind = f"approximate {kind}" if cost.rho and cost.delta else kind
    # by the column that the card names, and by nothing else: the checker writes the same
    unit = "row" if card.unit is None else unit_name(card.unit)
    return f"{str(cost).replace(chr(39), '')} {kind} for {card.neighbours.by(unit)}"


def unit_name(name: str) -> str:
    """A column's name in a sentence: one that is no plain word is quoted, odd letters escaped.

    >>> unit_name("patient_id"), unit_name("row, or none")
    ('patient_id', '"row, or none"')
    """
    if _WORD.fullmatch(name):
        return name
    letters = [c if c.isprintable() and c not in '"\\' else f"\\u{ord(c):04x}" for c in name]
    return '"' + "".join(letters) + '"'
