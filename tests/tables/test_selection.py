"""Partition selection by shares: its exact law, on small tables, against what it claims.

The law of a whole release is a product over keys; here it is written out in full, for all tables in
which one unit comes, goes or changes, and both directions. Claims must hold for every pair; a
threshold that is one too low, and noise that is a little too small, must be seen.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache, reduce
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from lastbit.checker.tail import gaussian_tail
from lastbit.exact import upper, working_precision
from lastbit.laws.discrete import DiscreteGaussian
from lastbit.mechanisms.histogram import ThresholdedHistogram
from lastbit.privacy.neighbours import ADD_REMOVE, CHANGE_ONE
from lastbit.tables.card.column import Column
from lastbit.tables.card.schema import DataCard, Source
from lastbit.tables.measures import WEIGHT_ONE, Measure
from lastbit.tables.plan.conversion import (
    PairConversion,
    conversion_to,
    order_delta,
    pair_delta,
    pair_variance,
)
from lastbit.tables.plan.parts import GaussianSelection, PartitionSelection
from lastbit.tables.plan.selection import MANY_KEYS, Finder, least_threshold, shares_of, shown_alone
from lastbit.tables.plan.sensitivity import sensitivity_of

ONE = 4
WEIGHTS = {keys: math.isqrt(ONE * ONE // keys) for keys in (1, 2, 3)}
"""What the real weights are for W = 2**20, for a W at which all outputs can be written out."""
VARIANCE = Fraction(30)
TAIL = Fraction(1, 50)
RHO = Fraction(ONE * ONE) / (2 * VARIANCE)
THRESHOLD = least_threshold(VARIANCE, WEIGHTS, TAIL)
BASES = (0, 2, 4, 13)
"""What other units have added to a key."""

Law = NDArray[np.float64]


@cache
def weights(variance: Fraction) -> dict[int, float]:
    reach = range(-90, 91)
    raw = [math.exp(-k * k / (2 * float(variance))) for k in reach]
    return dict(zip(reach, (one / math.fsum(raw) for one in raw), strict=True))


@cache
def key_law(total: int, threshold: int, variance: Fraction) -> Law:
    """Not shown, then shown with each number from the threshold up."""
    noise = weights(variance)
    shown = [noise.get(value - total, 0.0) if total else 0.0 for value in range(threshold, 90)]
    return np.array([1 - math.fsum(shown), *shown])


def whole_law(totals: tuple[int, ...], threshold: int, variance: Fraction) -> Law:
    laws = [key_law(total, threshold, variance) for total in totals]
    return reduce(lambda a, b: np.multiply.outer(a, b).ravel(), laws)


def pairs(relation: str) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Sums of two keys without and with a unit, or with it before and after."""
    found = []
    added = [
        tuple(WEIGHTS[sum(mask)] * bit for bit in mask)
        for mask in product((0, 1), repeat=2)
        if sum(mask)
    ]
    firsts = [(0, 0)] if relation == "add-remove" else added
    for bases in product(BASES, repeat=2):
        for before, after in product(firsts, added):
            x, y = (tuple(map(sum, zip(bases, own, strict=True))) for own in (before, after))
            found += [(x, y), (y, x)]
    return found


def hockey_stick(here: Law, there: Law, epsilon: float) -> float:
    return float(np.maximum(here - math.exp(epsilon) * there, 0).sum())


def worst(relation: str, epsilon: float, *, threshold: int = THRESHOLD) -> float:
    return max(
        hockey_stick(
            whole_law(here, threshold, VARIANCE), whole_law(there, threshold, VARIANCE), epsilon
        )
        for here, there in pairs(relation)
    )


@pytest.mark.parametrize(("relation", "people"), [("add-remove", 1), ("change-one", 2)])
@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(5, 2)])
def test_the_whole_release_is_as_private_as_it_says(
    relation: str, people: int, epsilon: Fraction
) -> None:
    best = min(order_delta(people * RHO, epsilon, 1 + Fraction(a, 8)) for a in range(1, 200))
    assert worst(relation, float(epsilon)) <= TAIL + best


def test_a_key_of_one_unit_alone_is_shown_as_rarely_as_it_says() -> None:
    """At an epsilon beyond all losses only keys of one unit tell anything: exactly the tail."""

    def alone(threshold: int) -> float:
        empty = whole_law((0, 0, 0), threshold, VARIANCE)
        return max(
            hockey_stick(
                whole_law((WEIGHTS[n],) * n + (0,) * (3 - n), threshold, VARIANCE), empty, 50
            )
            for n in WEIGHTS
        )

    assert alone(THRESHOLD) <= TAIL < alone(THRESHOLD - 1)


def test_given_that_no_such_key_is_shown_the_rest_is_concentrated() -> None:
    """Divergences of keys that both tables have, thresholds and all, at several orders."""
    for order in (1.25, 2.0, 5.0):
        reached = 0.0
        for n, moved in product(range(1, 30), range(1, ONE + 1)):
            p, q = (key_law(total, THRESHOLD, VARIANCE) for total in (n, n + moved))
            for a, b in ((p, q), (q, p)):
                both = (a > 1e-200) & (b > 1e-200)
                divergence = math.log(float((a[both] ** order * b[both] ** (1 - order)).sum()))
                divergence /= order - 1
                bound = order * moved**2 / (2 * float(VARIANCE))
                assert divergence <= bound * (1 + 1e-9)
                reached = max(reached, divergence / bound)
        assert reached > 0.99  # with less noise it would be more


def test_shares_and_their_sensitivity() -> None:
    columns = {"who": Column(name="who", type="integer")}
    for relation, times in ((ADD_REMOVE, 1), (CHANGE_ONE, 2)):
        card = DataCard(
            name="t",
            source=Source(kind="frame"),
            unit="who",
            max_rows=9,
            columns=columns,
            neighbours=relation,
        )
        for own in (1, 2, 7, 60):
            found = sensitivity_of(Measure(name="m", kind="shares", highest=own), card, groups=None)
            moved = [(k, w) for k, w in shares_of(own).items()]
            assert max(k * w * w for k, w in moved) * times <= found.l2_squared
            assert max(k * w for k, w in moved) * times <= found.l1
            assert found.linf == WEIGHT_ONE == moved[0][1]


VARIANCES = [*map(Fraction, (7, 100, 65535, 65537)), Fraction(1, 3), Fraction(10**15, 7)]


@pytest.mark.parametrize("variance", VARIANCES, ids=str)
def test_both_programs_bound_the_same_tail(variance: Fraction) -> None:
    deviation = math.sqrt(variance)
    for far in (1.2, 3, 5.5, 9):
        start = math.ceil(far * deviation) + 1
        with working_precision(128):
            exact = upper(DiscreteGaussian(variance).cumulative(-start))
            ours = upper(shown_alone(variance, start))
        theirs = gaussian_tail(variance, start)
        assert exact <= ours * (1 + 1e-12) and Fraction(exact) <= theirs * (1 + Fraction(1, 10**12))
        assert float(theirs) == pytest.approx(ours, rel=1e-6)
        assert ours == pytest.approx(exact, rel=1e-3)


def finder(**values: object) -> Finder:
    columns = {"who": Column(name="who", type="integer")}
    given = {"unit": "who", "max_rows": 50} | values
    card = DataCard(name="t", source=Source(kind="frame"), columns=columns, **given)  # type: ignore[arg-type]
    return Finder(card=card, serves=None, name="m2")


def test_the_selection_that_needs_fewer_units_is_taken() -> None:
    price = Fraction(1, 2), Fraction(1, 10**7)
    one, many = (
        finder(max_groups=number, neighbours=CHANGE_ONE).at_epsilon(*price) for number in (1, 40)
    )
    assert isinstance(one.part, PartitionSelection) and one.extra is None
    assert isinstance(many.part, GaussianSelection) and many.part.single is None
    assert many.extra == Measure(name="m2", kind="shares", highest=40)
    laplace = finder(max_groups=40, neighbours=CHANGE_ONE)._laplace(40, *price)
    assert laplace.part.threshold > 20 * many.part.threshold / WEIGHT_ONE
    rows = finder(unit=None, max_rows=1).at_epsilon(*price)
    alone = finder(max_groups=1).at_epsilon(*price)
    assert isinstance(rows.part, PartitionSelection)
    assert rows.part.threshold == alone.part.threshold


def test_units_with_one_key_are_counted_apart_where_units_come_and_go() -> None:
    price = Fraction(1, 2), Fraction(1, 10**7)
    for found in (finder(max_groups=40), finder(max_rows=40)):
        both, alone = found.at_epsilon(*price), finder(max_groups=1).at_epsilon(*price).part
        assert both.extra == Measure(name="m2", kind="shares", lowest=2, highest=40)
        assert isinstance(both.part, GaussianSelection) and both.part.single is not None
        assert isinstance(alone, PartitionSelection)
        assert both.part.single.threshold == alone.threshold < both.part.threshold / WEIGHT_ONE
        assert both.part.single.scale == alone.scale == 1 / price[0]
    assert isinstance(finder(max_rows=2).at_epsilon(*price).part, PartitionSelection)
    rho = finder().at_rho(Fraction(1, 100), Fraction(1, 10**7)).part
    assert isinstance(rho, GaussianSelection) and rho.single is None


def test_where_max_groups_is_not_declared_many_keys_may_be_chosen() -> None:
    found = finder(max_rows=200)
    assert found.limits == (1, MANY_KEYS) and finder().limits == (1, 50)
    assert finder(max_rows=3).limits == (1, 3) and finder(max_rows=1).limits == (1,)
    assert finder(max_groups=5).limits == (5,)
    assert finder(max_groups=200, max_groups_assumed=True).limits == (1, MANY_KEYS)
    chosen = found.at_rho(Fraction(1, 100), Fraction(1, 10**7)).part
    assert chosen.keys_per_person in found.limits


def test_the_conversion_of_a_selection_is_within_its_delta() -> None:
    part = finder(max_groups=40).at_epsilon(Fraction(1, 2), Fraction(1, 10**7)).part
    assert isinstance(part, GaussianSelection) and isinstance(part.conversion, PairConversion)
    assert part.mu_squared == part.conversion.mu**2
    proved = pair_delta(part.conversion.mu, part.conversion.epsilon)
    assert part.tail + proved <= part.delta == Fraction(1, 10**7)
    by_order = conversion_to(Fraction(1, 2), Fraction(1, 2 * 10**7))
    assert part.rho > by_order.rho * Fraction(113, 100)


# ---------------------------------------------------------------- units with one key, apart

SEVERAL = {keys: weight for keys, weight in WEIGHTS.items() if keys > 1}
BAR = least_threshold(VARIANCE, SEVERAL, TAIL)
EPSILON = Fraction(1)
DELTA = TAIL + min(order_delta(RHO, EPSILON, 1 + Fraction(a, 8)) for a in range(1, 200))
ALONE = ThresholdedHistogram(keys_per_person=1, epsilon=EPSILON, delta=DELTA)


@cache
def alone_law(count: int, threshold: int) -> Law:
    """The same for units with one key: Laplace noise, and a threshold of its own."""
    q = math.exp(-1 / float(ALONE.scale))
    noise = [(1 - q) / (1 + q) * q ** abs(value - count) for value in range(threshold, 60)]
    shown = noise if count else [0.0] * len(noise)
    return np.array([1 - math.fsum(shown), *shown])


def apart_laws(
    unit: tuple[int, ...], bases: tuple[tuple[int, int], ...], *, both: bool
) -> list[Law]:
    """Of each key, which has a number of units alone and a sum of shares, and perhaps the unit.

    `both`: a unit with one key is counted in the two tables, as it must not be.
    """
    own, laws = sum(unit), []
    for has, (alone, shared) in zip(unit, bases, strict=True):
        share = WEIGHTS[own] * has if own > 1 or (own and both) else 0
        laws.append(alone_law(alone + (has if own == 1 else 0), ALONE.threshold))
        laws.append(key_law(shared + share, BAR, VARIANCE))
    return laws


def apart_worst(*, both: bool = False) -> float:
    found = 0.0
    for bases in product(product((0, 2), (0, 2, 13)), repeat=2):
        for unit in ((0, 1), (1, 1)):
            laws = zip(*(apart_laws(o, bases, both=both) for o in (unit, (0, 0))), strict=True)
            moved = [pair for pair in laws if not np.array_equal(*pair)]  # the rest is one factor
            here, there = (
                reduce(lambda a, b: np.multiply.outer(a, b).ravel(), side)
                for side in zip(*moved, strict=True)
            )
            for a, b in ((here, there), (there, here)):
                found = max(found, hockey_stick(a, b, float(EPSILON)))
    return found


def test_two_tables_of_units_cost_no_more_than_one() -> None:
    assert apart_worst() <= DELTA < apart_worst(both=True)


# ---------------------------------------------------------------- Gaussian pairs


@pytest.mark.parametrize("squared", [1, 2, 5])
@pytest.mark.parametrize("mu", [Fraction(1, 3), Fraction(1), Fraction(2)])
def test_a_pair_is_as_private_as_its_mu_says(squared: int, mu: Fraction) -> None:
    """The exact law of discrete noise, one step in each coordinate; and less noise is seen."""

    def worst(variance: Fraction, epsilon: Fraction) -> float:
        one = np.array(list(weights(variance).values()))  # of -90 ... 90
        law = reduce(np.convolve, [one] * squared)
        total = np.arange(len(law)) - 90 * squared
        loss = (squared - 2 * total) / (2 * float(variance))  # of X + 1 against X, added up
        return float((law * np.maximum(0, -np.expm1(float(epsilon) - loss))).sum())

    variance = pair_variance(squared, mu**2)
    for epsilon in (Fraction(1, 2), Fraction(1), Fraction(3)):
        proved = float(pair_delta(mu, epsilon))
        assert worst(variance, epsilon) <= proved * (1 + 1e-9) + 1e-15
    if mu <= 1:
        assert worst(variance * Fraction(9, 10), Fraction(1)) > float(pair_delta(mu, Fraction(1)))
