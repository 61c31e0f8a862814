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

Which noise. Where rho is asked: Gaussian. Where delta is 0: Laplace. Otherwise both are tried, and
the one is taken whose worst error (`least_error.py`) is smaller; where keys are found, the one
whose errors are smaller in the geometric mean. If nothing but keys is paid for, it is the one that
needs fewer units to show a key (`selection.py`). Rows and values are measured apart, or by their
distances from both bounds (`measures.py`, ends), by the same rule.

Draws beside Gaussian noise. Exponential draws have no mu of their own: the least mu that covers one
of epsilon e is 2 z, P[Z <= z] = 1/(1 + exp(-e/2)): about 0.627 e, where rho = e**2/8 is that of mu
= e/2. So it costs 1.57 times as much, which gains where draws have less than a sixth of the price:
rho is kept. Where all quantiles are read off trees all noise is Gaussian, and mu adds up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from importlib import import_module
from math import prod
from typing import Any

from lastbit.arguments import check_kind
from lastbit.canonical import digest_of
from lastbit.errors import InvalidParameter
from lastbit.exact import Number
from lastbit.tables.card.budget import Budget
from lastbit.tables.card.schema import DataCard
from lastbit.tables.compile.units import check_matches
from lastbit.tables.limits import MOST_ELEMENTS, refused
from lastbit.tables.measures import Measure, weight_one
from lastbit.tables.plan import calibrate
from lastbit.tables.plan.calibrate import Way, Weights
from lastbit.tables.plan.conversion import (
    AnyConversion,
    PairConversion,
    conversion_to,
    pair_conversion_to,
)
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
from lastbit.tables.plan.sensitivity import Recipe
from lastbit.tables.plan.written import Composition, JoinedUnits, WrittenPlan, WrittenRecipe
from lastbit.tables.query.derived import columns_in
from lastbit.tables.query.query import Query
from lastbit.tables.query.sub_query import counted_card
from lastbit.tables.query.units import ListJoin

_MOST_GROUPS = 1 << 20
_MOST_ENTRIES = 1 << 25
_GREATEST = 1 << 250
_WORD = re.compile("[A-Za-z_\u00c0-\u024f][A-Za-z0-9_\u00c0-\u024f]{0,59}")
_PLURAL = re.compile("[a-z_]{0,58}[a-rt-wz]")  # not names that end in s, x or y


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
    worst_error: Fraction = field(default=Fraction(1), compare=False, repr=False)
    """In full rows, nearly: to compare it with other plans."""

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

    def _repr_html_(self) -> str:
        words = import_module("lastbit.release").plan_words(self)
        return str(import_module("lastbit.report").plan_in_notebook(words))

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
            through=tuple(card.way()),
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
    check_kind(query, Query, "query", remedy="pass parsed(...), or what a table's .query is")
    check_kind(card, DataCard, "card", remedy="pass read_card(...)")
    check_declared(card)
    card = counted_card(query, card)
    asked = asked_price(card, epsilon=epsilon, delta=delta, rho=rho, weights=weights)
    joined = [card.private[join.table] for join in query.all_joins if join.table in card.private]
    elements = [MOST_ELEMENTS for join in query.all_joins if isinstance(join, ListJoin)]
    check_matches(query, card, prod([*elements, *(table.max_rows for table in joined)]))
    groups = query.groups
    ways = calibrate.ways_of(query, card, weights)
    _check(query, ways[0].measures, groups=groups, delta=asked.delta, budget=card.budget)
    if asked.rho is not None and groups is not None and asked.delta:
        problem = "has no meaning beside {rho}, as no keys must be found"
        raise InvalidParameter("delta", problem=problem, remedy="drop it", rho=None)
    every = [one for way in ways for one in _purchases(way, asked, weights)]
    bought = min(every, key=lambda one: one.error(keyed=groups is None))  # the first of equals
    found, parts = bought.parts(card)
    measures, recipes, conversion = bought.way.measures, bought.way.recipes, bought.conversion
    used = bought.concentrated or groups is None
    nothing = Fraction(0)
    cost = Cost(
        epsilon=asked.epsilon or nothing,
        delta=asked.delta if used else nothing,
        rho=asked.rho or nothing,
    )
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
        composition="concentrated" if bought.concentrated else "basic",
        conversion=conversion,
        cost=cost,
        worst_error=bought.error(keyed=False) * card.max_rows or Fraction(1),
    )
    kept = None if card.budget is None else card.budget.kind
    if kept == "gaussian" and cost.rho and not plan.gaussian_noise:
        problem = "pays for Gaussian noise alone in this account, and ranks are found without it"
        raise refused("rho", problem, "pass {epsilon}", epsilon="")
    return plan


def check_declared(card: DataCard) -> None:
    """Refuse a card whose max_rows is still to be chosen: nothing is guessed."""
    if card.max_rows_open:
        problem = "is not declared, and no profile chooses it here"
        remedy = "declare it, or let lastbit card tune --write choose it"
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
        problem = "has keys that the card does not declare"
        if budget is not None and not budget.delta:  # one that is passed would be refused
            remedy = "declare them, or let the steward give the budget an epsilon and a delta"
            raise refused("GROUP BY", problem, remedy)
        raise refused(
            "GROUP BY",
            problem,
            "pass {delta} to find them privately, or declare them",
            delta="1e-9",
        )
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Purchase:
    """A way to measure what is asked, and what each of its demands pays, all in one currency."""

    way: Way
    prices: tuple[Fraction, ...]
    concentrated: bool
    conversion: AnyConversion | None = None
    tail: Fraction
    """What is left of delta for the selection of keys."""

    def error(self, *, keyed: bool) -> Fraction:
        """What is to be least: the worst error, or where keys are found the product of all."""
        errors = self.way.errors_at(self.prices, concentrated=self.concentrated)
        return prod(errors, start=Fraction(1)) if keyed else max(errors, default=Fraction(0))

    def parts(self, card: DataCard) -> tuple[Found | None, list[Part]]:
        """The selection of undeclared keys, if there is one, and all other parts."""
        measures, paired = self.way.measures, isinstance(self.conversion, PairConversion)
        finder = Finder(
            card=card,
            serves=calibrate.served_by_selection(card, measures),
            name=f"m{len(measures) + 1}",
        )
        found, wanted, prices = None, [], []
        for demand, price in zip(self.way.demands, self.prices, strict=True):
            if demand.kind != "keys":
                wanted.append(demand)
                prices.append(price)
            elif self.concentrated:
                found = finder.at_rho(price, self.tail, paired=paired)
            else:
                found = finder.at_epsilon(price, self.tail)
        gaussian = calibrate.paired_parts if paired else calibrate.concentrated_parts
        parts = gaussian if self.concentrated else calibrate.basic_parts
        return found, list(parts(wanted, prices))


def _purchases(way: Way, asked: PriceRequest, weights: Weights) -> Iterator[_Purchase]:
    """What the price buys: Gaussian noise at rho; Laplace noise, or Gaussian by rho or mu."""
    by_rho, price = asked.epsilon is None, asked.rho or asked.epsilon or Fraction(0)
    prices = tuple(price * share for share in way.shares(weights, concentrated=by_rho))
    yield _Purchase(way=way, prices=prices, concentrated=by_rho, tail=asked.delta)
    keyed = any(demand.kind == "keys" for demand in way.demands)
    if asked.epsilon is None or not asked.delta or len(way.demands) == keyed:
        return
    tail = asked.delta / 2 if keyed else Fraction(0)
    split = way.shares(weights, concentrated=True)
    for convert in (pair_conversion_to, conversion_to):
        conversion = convert(asked.epsilon, asked.delta - tail)
        rhos = tuple((0 if conversion is None else conversion.rho) * share for share in split)
        if conversion and (convert is conversion_to or calibrate.all_gaussian(way.demands, rhos)):
            how: dict[str, Any] = {"conversion": conversion, "tail": tail}
            yield _Purchase(way=way, prices=rhos, concentrated=True, **how)
            return


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


def unit_names(name: str) -> str:
    """Several units, by the name of their column.

    >>> unit_names("patient_id"), unit_names("household"), unit_names("family")
    ('patient_ids', 'households', 'units (family)')
    """
    return f"{name}s" if _PLURAL.fullmatch(name) else f"units ({unit_name(name)})"
