"""The plan of contingency tables: all marginals of some columns, at one price.

Law      the marginal of a set of columns counts the rows (weighted, as all counts are) at every
         combination of their declared keys. Each marginal is one measure with one mechanism:
         discrete Gaussian noise where rho is asked or is better, else discrete Laplace noise
Theorem  one unit moves each marginal by at most kW in L1, and by kW in L2 (`sensitivity.py`, kind
         rows; `compile/marginals.py`). Its noise costs epsilon_i = L1/scale_i or rho_i =
         L2**2/(2 variance_i), and these add up, whatever the number of cells: basic composition,
         composition of zCDP. Making the tables agree afterwards is free
Shares   equal by default: every cell of every noisy table has the same error. By name ("a:b"), a
         marginal has its weight. Balanced: one-way tables share t of the price and two-way tables
         the rest; t is the multiple of 1/16 at which the worst standard error of the consistent
         tables (`consistent_variances`) is least
Checked  tests/tables/test_marginals.py

Pairs    where only some of the two-way tables are wanted, which ones is decided by the exponential
         mechanism, a draw after another among those not drawn yet. The score of a pair is the L1
         distance of its table from a public one (what the noisy one-way tables say if the columns
         are independent), less a public number: the error that noise would make of it
Theorem  the distance of a table from a fixed one moves by no more than the table does in L1
         (triangle inequality): by d = kW, or 2kW where one unit is changed. A draw with probability
         proportional to exp(rate score) costs epsilon = 2 rate d, and rho = epsilon**2/8; draws are
         composed with each other and with the noise. The public table is a function of what the
         one-way tables released before (adaptive composition)
Source   McSherry, Talwar 2007; rho of the exponential mechanism as in `ranks.py`. The score is that
         of MWEM (Hardt, Ligett, McSherry 2012), less the noise as in AIM (McKenna et al. 2022)

Only declared or public keys: the cells of a table are then known beforehand, and no price is paid
for finding them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from importlib import import_module
from itertools import chain, combinations
from math import floor, prod
from typing import Any, Literal

from lastbit.canonical import digest_of
from lastbit.errors import InvalidParameter
from lastbit.exact import Number, root_below, whole
from lastbit.tables.card.schema import DataCard
from lastbit.tables.limits import refused
from lastbit.tables.measures import Measure
from lastbit.tables.plan.calibrate import Weights, named_weights
from lastbit.tables.plan.conversion import Conversion, conversion_to
from lastbit.tables.plan.cost import Cost
from lastbit.tables.plan.parts import GaussianPart, LaplacePart, NoisePart, PairSelection
from lastbit.tables.plan.plan import Plan
from lastbit.tables.plan.price import PriceRequest, asked_price
from lastbit.tables.plan.sensitivity import Recipe, Sensitivity, sensitivity_of
from lastbit.tables.plan.written import WrittenPlan
from lastbit.tables.query.query import Aggregate, Query
from lastbit.tables.query.scan import GroupKey, Marginal
from lastbit.tables.query.units import PublicJoin

COUNT = "n"
_MOST_CELLS = 1 << 15
_MOST_WAYS = 2
_STEPS = 16
_FOR_CHOICE = Fraction(1, 10)
_ROOT_BITS = 43


def marginals_up_to(columns: int, ways: int) -> tuple[Marginal, ...]:
    """All sets of one column, of two ...: the places of their columns.

    >>> marginals_up_to(3, 2)
    ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2))
    """
    return tuple(chain(*(combinations(range(columns), n) for n in range(1, ways + 1))))


def marginals_query(
    card: DataCard, keys: Sequence[GroupKey], *, where: Any = None, joins: Any = ()
) -> Query:
    """The question that marginals are made of: a count of rows by all columns.

    Refuses columns whose keys are not public.
    """
    for key in keys:
        if key.values is None:
            problem = "has undeclared keys, and the cells of a table must be known beforehand"
            remedy = "declare its keys, or put numbers in bins: bin(x, 0, 10, 20)"
            raise refused(f"marginals of {key.name}", problem, remedy)
    if not all(isinstance(join, PublicJoin) for join in joins):
        problem, remedy = "join a private table", "GROUP BY two columns instead, a question each"
        raise refused("marginals", problem, remedy)
    if not keys:
        raise refused("marginals", "name no column", "name one or more")
    free = next(n for n in (COUNT, "count", "rows_") if n not in {k.name.lower() for k in keys})
    count = Aggregate(name=free, function="count", nullable=False)
    return Query(table=card.name, aggregates=(count,), keys=tuple(keys), where=where, joins=joins)


@dataclass(frozen=True, slots=True, kw_only=True)
class MarginalsPlan:
    """Marginals with their noise and their price; nothing was read or charged.

    `base` has the parts, one for each marginal, in their order; then, with a `selection`, one for
    each pair that will be drawn.
    """

    base: Plan
    marginals: tuple[Marginal, ...]
    selection: PairSelection | None = None

    @property
    def query(self) -> Query:
        """The count by all columns."""
        return self.base.query

    @property
    def card(self) -> DataCard:
        """What is declared of the table."""
        return self.base.card

    @property
    def measures(self) -> tuple[Measure, ...]:
        """One for each marginal."""
        return self.base.measures

    @property
    def groups(self) -> int | None:
        """How many cells there are in all."""
        return self.base.groups

    @property
    def asked(self) -> PriceRequest:
        """The price as it was asked."""
        return self.base.asked

    @property
    def cost(self) -> Cost:
        """What is paid."""
        return self.base.cost

    @property
    def gaussian_noise(self) -> bool:
        """Whether all that is paid for is discrete Gaussian noise."""
        return self.selection is None and self.base.gaussian_noise

    @property
    def guarantee(self) -> str:
        """What is promised, in words."""
        return self.base.guarantee

    @property
    def parts(self) -> tuple[NoisePart, ...]:
        """The noise of each marginal."""
        return tuple(part for part in self.base.parts if isinstance(part, NoisePart))

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many keys each column has."""
        return sizes_of(self.query)

    @property
    def names(self) -> tuple[tuple[str, ...], ...]:
        """The columns of each marginal."""
        keys = [key.name for key in self.query.keys]
        return tuple(tuple(keys[place] for place in one) for one in self.marginals)

    @property
    def scanned(self) -> tuple[Marginal, ...]:
        """The marginals that are counted: all that are released, or could be."""
        return self.marginals + (() if self.selection is None else self.selection.candidates)

    def with_pairs(self, pairs: Sequence[Marginal]) -> MarginalsPlan:
        """The tables that are released once these pairs were drawn."""
        return replace(self, marginals=(*self.marginals, *pairs))

    @property
    def variances(self) -> tuple[Fraction, ...]:
        """An upper bound of the variance of the noise on a cell of each marginal."""
        return tuple(variance_of(part) for part in self.parts)

    def explain(self) -> str:
        """What will be done, at which price and with which error; nothing is read."""
        # found by name: sentences are the business of a room above this one
        return str(import_module("lastbit.report").plan_words(self))

    def _repr_html_(self) -> str:
        report = import_module("lastbit.report")
        return str(report.plan_in_notebook(report.plan_words(self)))

    @property
    def written(self) -> WrittenPlan:
        """All of it that is written down."""
        draws = () if self.selection is None else (self.selection,)
        base = self.base.written
        return replace(base, marginals=self.names, parts=(*base.parts, *draws))

    def to_json(self) -> dict[str, Any]:
        """All of it as plain JSON: what a second program needs to check the price."""
        return self.written.to_json()

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical text."""
        return digest_of(self.to_json())


def sizes_of(query: Query) -> tuple[int, ...]:
    """How many keys each column has."""
    return tuple(len(key.values or ()) for key in query.keys)


def variance_of(part: NoisePart) -> Fraction:
    """At least the variance of the part's noise.

    Theorem  that of discrete Gaussian noise is at most its parameter (CKS20, Corollary 9); that of
             discrete Laplace noise, 1/(2 sinh(1/(2s))**2), at most 2 s**2, since sinh(x) >= x
    """
    return part.variance if isinstance(part, GaussianPart) else 2 * part.scale**2


def planned_marginals(
    query: Query,
    card: DataCard,
    *,
    up_to: int = _MOST_WAYS,
    pairs: int | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    weights: Weights = None,
) -> MarginalsPlan:
    """The plan for all marginals of up to this many columns, at one price for all of them.

    `pairs` is how many two-way tables are released; if there are more, they are chosen privately.
    """
    if card.max_rows_open:
        problem = "is left out, and tables of several columns need it"
        raise refused("max_rows", problem, "declare it: lastbit card tune suggests one")
    asked = asked_price(card, epsilon=epsilon, delta=delta, rho=rho, weights=weights)
    ways = whole(up_to, "up_to", least=1)
    if ways > _MOST_WAYS:
        problem = "is above 2, and larger tables are mostly noise"
        raise InvalidParameter("up_to", problem=problem, remedy="pass 1 or 2; or GROUP BY")
    sets, sizes = marginals_up_to(len(query.keys), min(ways, len(query.keys))), sizes_of(query)
    if sum(map(_cells(sizes), sets)) > _MOST_CELLS:
        problem = "have more than 2**15 cells in all"
        raise refused("marginals", problem, "name fewer columns, or pass up_to=1")
    names, picks = _names(query, sets), 0
    candidates = tuple(one for one in sets if len(one) == _MOST_WAYS)
    if pairs is not None and whole(pairs, "pairs", least=1) < len(candidates):
        if weights is not None:
            problem, remedy = "do not go with pairs that are chosen privately", "leave them out"
            raise InvalidParameter("weights", problem=problem, remedy=remedy)
        picks = pairs
        sets = marginals_up_to(len(query.keys), 1)
        names = (*names[: len(sets)], *(f"pair {n}" for n in range(1, picks + 1)))
    measures = tuple(
        Measure(name=f"m{number}", kind="rows", nullable=False)
        for number in range(1, len(names) + 1)
    )
    largest = sorted(map(_cells(sizes), candidates), reverse=True)[:picks]
    cells = sum(map(_cells(sizes), sets)) + sum(largest)
    moved = sensitivity_of(measures[0], card, groups=cells)
    kept = 1 - _FOR_CHOICE if picks else Fraction(1)
    parts, conversion = _parts(asked, moved, measures, (names, sets, sizes), weights, kept)
    gaussian = isinstance(parts[0], GaussianPart)
    if asked.rho is not None:
        cost = Cost(rho=asked.rho)
    else:
        assert asked.epsilon is not None
        cost = Cost(epsilon=asked.epsilon, delta=asked.delta if gaussian else Fraction(0))
    recipes = tuple(
        Recipe(
            aggregate=Aggregate(name=name, function="count", nullable=False),
            measures={"rows": measure.name},
        )
        for name, measure in zip(names, measures, strict=True)
    )
    base = Plan(
        query=query,
        card=card,
        asked=asked,
        groups=cells,
        measures=measures,
        recipes=recipes,
        parts=parts,
        composition="concentrated" if gaussian else "basic",
        conversion=conversion,
        cost=cost,
    )
    selection = None
    if picks:
        price = asked.epsilon
        if gaussian:
            price = asked.rho if conversion is None else conversion.rho
        assert price is not None
        drawn = candidates, picks, _FOR_CHOICE * price
        keys = tuple(key.name for key in query.keys)
        selection = _selection(*drawn, keys=keys, moved=moved.l1, noise=parts[-1])
    return MarginalsPlan(base=base, marginals=sets, selection=selection)


def _cells(sizes: Sequence[int]) -> Callable[[Marginal], int]:
    return lambda one: prod(sizes[place] for place in one)


def _selection(
    candidates: tuple[Marginal, ...],
    picks: int,
    price: Fraction,
    *,
    keys: tuple[str, ...],
    moved: int,
    noise: NoisePart,
) -> PairSelection:
    """All draws together at a price: rho if the noise is Gaussian, else epsilon."""
    gaussian = isinstance(noise, GaussianPart)
    each = root_below(8 * price / picks, _ROOT_BITS) if gaussian else price / picks
    # the mean size of the noise, nearly: any public number would do
    penalty = floor(root_below(variance_of(noise), _ROOT_BITS) * Fraction(4, 5))
    return PairSelection(
        keys=keys,
        candidates=candidates,
        picks=picks,
        distance_sensitivity=moved,
        rate=each / (2 * moved),
        epsilon=each * picks,
        rho=each**2 / 8 * picks if gaussian else None,
        penalty=penalty,
    )


def _names(query: Query, marginals: Sequence[Marginal]) -> tuple[str, ...]:
    """What each marginal is called: a, b, a:b."""
    keys = [key.name for key in query.keys]
    names = tuple(":".join(keys[place] for place in one) for one in marginals)
    if len(set(names)) < len(names):
        raise refused("marginals", "two have one name", "rename a column that has a : in its name")
    return names


Tables = tuple[tuple[str, ...], Sequence[Marginal], Sequence[int]]


def _parts(
    asked: PriceRequest,
    moved: Sensitivity,
    measures: Sequence[Measure],
    tables: Tables,
    weights: Weights,
    kept: Fraction,
) -> tuple[tuple[NoisePart, ...], Conversion | None]:
    """Gaussian or Laplace noise on each marginal, whichever has the smaller worst variance.

    `kept` is the part of the price that pays for noise.
    """
    pure: tuple[NoisePart, ...] | None = None
    conversion: Conversion | None = None
    rho = asked.rho
    if asked.epsilon is not None:
        split = [kept * share for share in _shares(tables, weights, power=2)]
        pure = tuple(
            LaplacePart.at(measure.name, moved.l1, asked.epsilon * share)
            for measure, share in zip(measures, split, strict=True)
        )
        if not asked.delta:
            return pure, None
        conversion = conversion_to(asked.epsilon, asked.delta)
        rho = conversion.rho
    assert rho is not None
    split = [kept * share for share in _shares(tables, weights, power=1)]
    gaussian = tuple(
        GaussianPart.at(measure.name, moved.l2_squared, rho * share)
        for measure, share in zip(measures, split, strict=True)
    )
    if pure is not None and max(map(variance_of, pure)) <= max(map(variance_of, gaussian)):
        return pure, None
    return gaussian, conversion


def _shares(tables: Tables, weights: Weights, *, power: Literal[1, 2]) -> list[Fraction]:
    """What part of the price each marginal gets; the variance is share**-power, up to a factor."""
    names, marginals, sizes = tables
    if weights is None:
        raw = [Fraction(1)] * len(names)
    elif isinstance(weights, str):
        if weights != "balanced":
            raise InvalidParameter(
                "weights", problem="is unknown", remedy='pass "balanced", or a weight by name'
            )
        raw = _balanced(marginals, sizes, power=power)
    else:
        raw = named_weights([(name,) for name in names], weights)
    total = sum(raw, Fraction(0))
    return [weight / total for weight in raw]


def _balanced(
    marginals: Sequence[Marginal], sizes: Sequence[int], *, power: Literal[1, 2]
) -> list[Fraction]:
    single = [len(one) == 1 for one in marginals]
    if all(single) or not any(single):
        return [Fraction(1)] * len(marginals)
    ones, others = sum(single), len(single) - sum(single)

    def split(step: int) -> list[Fraction]:
        first, second = Fraction(step, ones), Fraction(_STEPS - step, others)
        return [first if alone else second for alone in single]

    def worst(step: int) -> Fraction:
        variances = [1 / share**power for share in split(step)]
        return max(consistent_variances(sizes, marginals, variances))

    return split(min(range(1, _STEPS), key=worst))


def consistent_variances(
    sizes: Sequence[int], marginals: Sequence[Marginal], variances: Sequence[Fraction]
) -> list[Fraction]:
    """The variance of a cell of each marginal once the tables agree; `release/projection.py`.

    >>> consistent_variances([2, 2], [(0,), (1,), (0, 1)], [Fraction(1)] * 3)
    [Fraction(8, 15), Fraction(8, 15), Fraction(7, 15)]
    """
    found = []
    for one in marginals:
        total = Fraction(0)
        for part in subsets(one):
            rest = prod(sizes[place] for place in one if place not in part)
            own = prod((Fraction(sizes[place] - 1, sizes[place]) for place in part), start=1)
            precision = component_precision(part, sizes, marginals, variances)
            total += Fraction(own) / (precision * rest**2)
        found.append(total)
    return found


def component_precision(
    part: Marginal,
    sizes: Sequence[int],
    marginals: Sequence[Marginal],
    variances: Sequence[Fraction],
) -> Fraction:
    """The sum, over the marginals that know a component, of one over the variance they know it by.

    >>> component_precision((), [2, 3], [(0,), (1,)], [Fraction(1), Fraction(1)])
    Fraction(5, 6)
    """
    return sum(
        (
            1 / (variance * prod(sizes[place] for place in one if place not in part))
            for one, variance in zip(marginals, variances, strict=True)
            if set(part) <= set(one)
        ),
        Fraction(0),
    )


def subsets(places: Iterable[int]) -> tuple[Marginal, ...]:
    """All subsets, smaller ones first.

    >>> subsets((0, 2))
    ((), (0,), (2,), (0, 2))
    """
    of = tuple(places)
    return tuple(chain(*(combinations(of, n) for n in range(len(of) + 1))))
