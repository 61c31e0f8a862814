"""No privacy number anywhere is rounded the unsafe way.

Every public function that gives a privacy number has its checks in `CHECKS`: random exact inputs,
the number it claims, and the truth in Decimals. A number on the wrong side, or further than 2**-40
from the truth on the right side, is refused. Every check is tried on mutants that it must refuse:
the truth rounded to nearest, rounded the wrong way, and loose by 2**-35; and on the real code with
its rounding door reversed.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings, strategies as st

import lastbit.privacy
from lastbit.exact.rounding import lower, upper
from lastbit.privacy.compose import (
    added,
    best_composition,
    compositions,
    optimal_delta,
    optimal_epsilon,
)
from lastbit.privacy.convert import (
    concentrated,
    converted,
    delta_upper,
    epsilon_upper,
    grouped,
    posterior_bounds,
    renyi_divergence,
)
from lastbit.privacy.guarantees import (
    ZCDP,
    ApproxDP,
    Guarantee,
    MetricDP,
    ProbabilisticDP,
    PureDP,
    RenyiDP,
)
from lastbit.privacy.least_noise import least_noise
from lastbit.privacy.neighbours import ADD_REMOVE
from tests.privacy import truth
from tests.privacy.truth import TIGHT, Refused, decimal, decimals, judge

Inputs = tuple[Any, ...]

# ---------------------------------------------------------------- random exact inputs

losses = st.one_of(
    st.fractions(min_value=Fraction(1, 1000), max_value=20, max_denominator=10**6),
    st.floats(0.001, 20).map(Fraction),
)
small_losses = st.fractions(Fraction(1, 100), 3, max_denominator=1000)
deltas = st.one_of(
    st.integers(1, 30).map(lambda n: Fraction(1, 10**n)),
    st.fractions(Fraction(1, 10**6), Fraction(1, 2), max_denominator=10**9),
)
orders = st.fractions(Fraction(11, 10), 100, max_denominator=1000)
sizes = st.integers(2, 12)
shares = st.fractions(0, Fraction(99, 100), max_denominator=1000)
parts = st.lists(st.tuples(small_losses, st.just(Fraction(0)) | deltas), min_size=1, max_size=3)
pures = st.lists(small_losses, min_size=1, max_size=4)


def sorted_deltas(values: Inputs) -> bool:
    return bool(values[1] < values[2])


# ---------------------------------------------------------------- the checks


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A number that the library claims, and the truth of it, for random inputs."""

    of: str
    name: str
    inputs: st.SearchStrategy[Inputs]
    claim: Callable[..., Fraction | float]
    truth: Callable[..., Decimal]
    side: str = "upper"
    tight: Decimal = TIGHT
    through: str = ""  # the module whose door to the floats it goes through; none if exact

    def run(self, inputs: Inputs, claim: Callable[..., Fraction | float] | None = None) -> None:
        claimed = (claim or self.claim)(*inputs)
        with decimals():
            judge(claimed, self.truth(*inputs), side=self.side, tight=self.tight)

    def __str__(self) -> str:
        return f"{self.of}: {self.name}"


def group_of(guarantee: Guarantee, size: int) -> Any:
    return grouped(guarantee, size)


def composed(pieces: list[tuple[Fraction, Fraction]], share: Fraction) -> Fraction:
    return share * sum(e for e, _ in pieces)


def least_composed_epsilon(pieces: list[tuple[Fraction, Fraction]], level: Fraction) -> Decimal:
    """By bisection of the brute-force delta."""
    low, high = Decimal(0), decimal(sum(e for e, _ in pieces))
    if truth.composed_delta(pieces, low) <= decimal(level):
        return low
    for _ in range(230):
        middle = (low + high) / 2
        if truth.composed_delta(pieces, middle) <= decimal(level):
            high = middle
        else:
            low = middle
    return high


def enough(values: Inputs) -> bool:
    """The level is clearly above what the parts have spent already."""
    pieces, level = values
    return bool(sum(d for _, d in pieces) < level)


CONVERT, COMPOSE = "lastbit.privacy.convert", "lastbit.privacy.compose"

CHECKS = [
    Check(
        of="convert.delta_upper",
        name="pure",
        inputs=st.tuples(losses, shares),
        claim=lambda e, s: delta_upper(PureDP(e), e * s),
        truth=lambda e, s: truth.pure_delta(e, 0, e * s),
        through=CONVERT,
    ),
    Check(
        of="convert.delta_upper",
        name="approximate",
        inputs=st.tuples(losses, shares, deltas),
        claim=lambda e, s, d: delta_upper(ApproxDP(e, d), e * s),
        truth=lambda e, s, d: truth.pure_delta(e, d, e * s),
        through=CONVERT,
    ),
    Check(
        of="convert.delta_upper",
        name="probabilistic",
        inputs=st.tuples(losses, shares, deltas),
        claim=lambda e, s, d: delta_upper(ProbabilisticDP(e, d), e * s),
        truth=lambda e, s, d: truth.pure_delta(e, d, e * s),
        through=CONVERT,
    ),
    Check(
        of="convert.delta_upper",
        name="Renyi",
        inputs=st.tuples(orders, losses, losses),
        claim=lambda a, e, w: delta_upper(RenyiDP(a, e), w),
        truth=truth.up_to_order_delta,
        through=CONVERT,
    ),
    Check(
        of="convert.delta_upper",
        name="concentrated",
        inputs=st.tuples(losses, losses),
        claim=lambda r, w: delta_upper(ZCDP(r), w),
        truth=truth.concentrated_delta,
        through=CONVERT,
    ),
    Check(
        of="convert.epsilon_upper",
        name="pure",
        inputs=st.tuples(losses, deltas),
        claim=lambda e, d: epsilon_upper(PureDP(e), d),
        truth=lambda e, d: truth.pure_epsilon(e, 0, d),
        through=CONVERT,
    ),
    Check(
        of="convert.epsilon_upper",
        name="approximate",
        inputs=st.tuples(losses, deltas, deltas).filter(sorted_deltas),
        claim=lambda e, d, w: epsilon_upper(ApproxDP(e, d), w),
        truth=truth.pure_epsilon,
        through=CONVERT,
    ),
    Check(
        of="convert.epsilon_upper",
        name="probabilistic",
        inputs=st.tuples(losses, deltas, deltas).filter(sorted_deltas),
        claim=lambda e, d, w: epsilon_upper(ProbabilisticDP(e, d), w),
        truth=truth.pure_epsilon,
        through=CONVERT,
    ),
    Check(
        of="convert.epsilon_upper",
        name="Renyi",
        inputs=st.tuples(orders, losses, deltas),
        claim=lambda a, e, d: epsilon_upper(RenyiDP(a, e), d),
        truth=truth.up_to_order_epsilon,
        through=CONVERT,
    ),
    Check(
        of="convert.epsilon_upper",
        name="concentrated",
        inputs=st.tuples(losses, deltas),
        claim=lambda r, d: epsilon_upper(ZCDP(r), d),
        truth=truth.concentrated_epsilon,
        through=CONVERT,
    ),
    Check(
        of="convert.converted",
        name="pure to approximate, delta",
        inputs=st.tuples(losses, shares),
        claim=lambda e, s: converted(PureDP(e), ApproxDP, epsilon=e * s).delta,
        truth=lambda e, s: truth.pure_delta(e, 0, e * s),
        through=CONVERT,
    ),
    Check(
        of="convert.converted",
        name="concentrated to approximate, epsilon",
        inputs=st.tuples(losses, deltas),
        claim=lambda r, d: converted(ZCDP(r), ApproxDP, delta=d).epsilon,
        truth=truth.concentrated_epsilon,
        through=CONVERT,
    ),
    Check(
        of="convert.converted",
        name="pure to concentrated",
        inputs=st.tuples(losses),
        claim=lambda e: converted(PureDP(e), ZCDP).rho,
        truth=truth.concentrated,
    ),
    Check(
        of="convert.converted",
        name="pure to Renyi",
        inputs=st.tuples(losses, orders),
        claim=lambda e, a: converted(PureDP(e), RenyiDP, alpha=a).epsilon,
        truth=truth.pure_divergence,
    ),
    Check(
        of="convert.concentrated",
        name="pure",
        inputs=st.tuples(losses),
        claim=concentrated,
        truth=truth.concentrated,
    ),
    Check(
        of="convert.renyi_divergence",
        name="pure",
        inputs=st.tuples(losses, orders),
        claim=renyi_divergence,
        truth=truth.pure_divergence,
    ),
    Check(
        of="convert.converted",
        name="concentrated to Renyi",
        inputs=st.tuples(losses, orders),
        claim=lambda r, a: converted(ZCDP(r), RenyiDP, alpha=a).epsilon,
        truth=lambda r, a: decimal(r) * decimal(a),
    ),
    Check(
        of="compose.added",
        name="pure",
        inputs=st.tuples(losses, losses),
        claim=lambda e, f: added(PureDP(e), PureDP(f)).epsilon,
        truth=lambda e, f: decimal(e) + decimal(f),
    ),
    Check(
        of="compose.added",
        name="approximate, delta",
        inputs=st.tuples(deltas, deltas),
        claim=lambda d, f: added(ApproxDP(1, d), ApproxDP(1, f)).delta,
        truth=lambda d, f: min(decimal(d) + decimal(f), Decimal(1)),
    ),
    Check(
        of="compose.added",
        name="concentrated",
        inputs=st.tuples(losses, losses),
        claim=lambda e, f: added(ZCDP(e), ZCDP(f)).rho,
        truth=lambda e, f: decimal(e) + decimal(f),
    ),
    Check(
        of="compose.added",
        name="metric, at a distance",
        inputs=st.tuples(losses, losses, losses, losses, losses),
        claim=lambda e, p, f, q, x: added(MetricDP(e, p), MetricDP(f, q)).at(x).epsilon,
        truth=lambda e, p, f, q, x: (
            decimal(x) * (decimal(e) / decimal(p) + decimal(f) / decimal(q))
        ),
    ),
    Check(
        of="compose.added",
        name="metric with slack, at a distance",
        inputs=st.tuples(losses, losses, losses, losses, losses),
        claim=lambda e, s, f, t, x: (
            added(MetricDP(e, 2, slack=s), MetricDP(f, 3, slack=t)).at(x).epsilon
        ),
        truth=lambda e, s, f, t, x: (
            decimal(e) * decimal(x + s) / 2 + decimal(f) * decimal(x + t) / 3
        ),
    ),
    Check(
        of="compose.optimal_delta",
        name="brute force",
        inputs=st.tuples(parts, shares),
        claim=lambda p, s: optimal_delta(p, composed(p, s)),
        truth=lambda p, s: truth.composed_delta(p, decimal(composed(p, s))),
        through=COMPOSE,
    ),
    Check(
        of="compose.optimal_epsilon",
        name="brute force",
        inputs=st.tuples(parts, deltas).filter(enough),
        claim=optimal_epsilon,
        truth=least_composed_epsilon,
        through=COMPOSE,
    ),
    Check(
        of="compose.best_composition",
        name="brute force",
        inputs=st.tuples(parts, deltas).filter(enough),
        claim=lambda p, d: best_composition([ApproxDP(*one) for one in p], d).epsilon,
        truth=least_composed_epsilon,
        through=COMPOSE,
    ),
    Check(
        of="compose.compositions",
        name="advanced",
        inputs=st.tuples(pures, deltas),
        claim=lambda p, d: compositions(map(PureDP, p), d)["advanced"].epsilon,
        truth=truth.advanced_epsilon,
        through=COMPOSE,
    ),
    Check(
        of="compose.compositions",
        name="concentrated",
        inputs=st.tuples(st.lists(losses, min_size=1, max_size=4), deltas),
        claim=lambda p, d: compositions(map(ZCDP, p), d)["concentrated"].epsilon,
        truth=lambda p, d: truth.concentrated_epsilon(sum(p), d),
        through=CONVERT,
    ),
    Check(
        of="compose.compositions",
        name="basic",
        inputs=st.tuples(pures, deltas),
        claim=lambda p, d: compositions(map(PureDP, p), d)["basic"].epsilon,
        truth=lambda p, _: decimal(sum(p)),
    ),
    Check(
        of="convert.grouped",
        name="approximate, delta",
        inputs=st.tuples(small_losses, deltas, sizes),
        claim=lambda e, d, n: group_of(ApproxDP(e, d), n).delta,
        truth=truth.group_delta,
        through=CONVERT,
    ),
    Check(
        of="convert.grouped",
        name="probabilistic, delta",
        inputs=st.tuples(small_losses, deltas, sizes),
        claim=lambda e, d, n: group_of(ProbabilisticDP(e, d), n).delta,
        truth=truth.group_delta,
        through=CONVERT,
    ),
    Check(
        of="convert.grouped",
        name="pure",
        inputs=st.tuples(losses, sizes),
        claim=lambda e, n: group_of(PureDP(e), n).epsilon,
        truth=lambda e, n: decimal(e) * n,
    ),
    Check(
        of="convert.grouped",
        name="concentrated",
        inputs=st.tuples(losses, sizes),
        claim=lambda r, n: group_of(ZCDP(r), n).rho,
        truth=lambda r, n: decimal(r) * n * n,
    ),
    Check(
        of="guarantees.changed_one",
        name="approximate, delta",
        inputs=st.tuples(small_losses, deltas),
        claim=lambda e, d: ApproxDP(e, d, neighbours=ADD_REMOVE).changed_one().delta,
        truth=lambda e, d: truth.group_delta(e, d, 2),
        through=CONVERT,
    ),
    Check(
        of="guarantees.at",
        name="metric",
        inputs=st.tuples(losses, losses, losses),
        claim=lambda e, p, x: MetricDP(e, p).at(x).epsilon,
        truth=lambda e, p, x: decimal(e) * decimal(x) / decimal(p),
    ),
    Check(
        of="guarantees.at",
        name="metric with slack",
        inputs=st.tuples(losses, losses, losses, losses),
        claim=lambda e, p, s, x: MetricDP(e, p, slack=s).at(x).epsilon,
        truth=lambda e, p, s, x: decimal(e) * decimal(x + s) / decimal(p),
    ),
    Check(
        of="convert.posterior_bounds",
        name="most",
        inputs=st.tuples(deltas, losses),
        claim=lambda p, e: posterior_bounds(p, PureDP(e))[1],
        truth=lambda p, e: truth.posterior(p, e)[1],
        through=CONVERT,
    ),
    Check(
        of="convert.posterior_bounds",
        name="least",
        inputs=st.tuples(deltas, losses),
        claim=lambda p, e: posterior_bounds(p, PureDP(e))[0],
        truth=lambda p, e: truth.posterior(p, e)[0],
        side="lower",
        through=CONVERT,
    ),
    Check(
        of="least_noise.least_noise",
        name="a threshold",
        inputs=st.tuples(losses),
        claim=lambda x: least_noise(lambda noise: noise >= x, start=Fraction(1)),
        truth=decimal,
    ),
]

# Public, and no number of theirs is rounded; each with the place that checks it.
NO_NUMBER = {
    "gaussian_pair.step_mu_squared": "an upper bound by its proof: test_gaussian_pair.py",
    "remaining.moment_epsilon_spent": "is MomentFilter.epsilon_spent: test_filter.py",
    "filter.moment_filter": "a filter, whose prices and limits are checked in test_filter.py",
    "compose.tight_profile": "a profile, whose numbers are checked in tests/privacy/accounting",
    "convert.best_order_for_epsilon": "a guess; every order gives a true bound",
    "convert.best_order_for_delta": "a guess; every order gives a true bound",
    "convert.implies": "a truth value; never claims what is false: test_convert.py",
    "filter.check_order": "no number at all: test_filter.py",
    "filter.grid_ceiling": "the number itself, moved up: test_filter.py",
    "filter.grid_floor": "the number itself, moved down: test_filter.py",
    "gaussian_filter.gaussian_delta": "within the accountant's profile: test_gaussian_filter.py",
    "remaining.moment_answers": "is MomentFilter.answers_left: test_filter.py",
    "remaining.moment_left": "is MomentFilter.left: test_filter.py",
    "remaining.moment_odometer": "is MomentFilter.odometer: test_filter.py",
    "remaining.gaussian_answers": "is GaussianFilter.answers_left: test_gaussian_filter.py",
    "remaining.gaussian_left": "is GaussianFilter.left: test_gaussian_filter.py",
    "remaining.gaussian_epsilon_spent": "is GaussianFilter.epsilon_spent: test_gaussian_filter.py",
    "remaining.gaussian_odometer": "is GaussianFilter.odometer: test_gaussian_filter.py",
    "promised_prices.moment_price": "is MomentFilter.price: test_filter.py",
    "promised_prices.gaussian_price": "is GaussianFilter.price: test_gaussian_filter.py",
    "promised_prices.gaussian_epsilon": "is GaussianFilter.epsilon_spent: test_gaussian_filter.py",
    "neighbours.check_neighbours": "no number at all: test_neighbours.py",
    "guarantees.plus": "exact sums, infinity apart: test_guarantees.py",
    "guarantees.times": "exact products, infinity apart: test_guarantees.py",
    "guarantees.loss_parameter": "takes a number exactly: test_guarantees.py",
    "guarantees.from_json": "takes numbers exactly: test_guarantees.py",
    "guarantees.to": "is convert.converted",
    "guarantees.group": "is convert.grouped",
    "guarantees.implies": "is convert.implies",
    "guarantees.post_processed": "the same numbers: test_guarantees.py",
    "guarantees.under": "the same numbers: test_guarantees.py",
    "guarantees.to_json": "the same numbers: test_guarantees.py",
    "guarantees.to_dict": "the same numbers: test_guarantees.py",
}

# Which kinds convert to which: the table of convert.converted, and nothing else.
CONVERSIONS = {
    ("PureDP", "ApproxDP"),
    ("PureDP", "ProbabilisticDP"),
    ("PureDP", "ZCDP"),
    ("PureDP", "RenyiDP"),
    ("ApproxDP", "ApproxDP"),
    ("ProbabilisticDP", "ApproxDP"),
    ("ZCDP", "ApproxDP"),
    ("ZCDP", "RenyiDP"),
    ("RenyiDP", "ApproxDP"),
    ("MetricDP", "PureDP"),
}


# ---------------------------------------------------------------- nothing is missing


def public_functions() -> set[str]:
    """Every function of the room's modules, and every method of its guarantees."""
    names = set()
    for module_info in pkgutil.iter_modules(lastbit.privacy.__path__):
        module = importlib.import_module(f"lastbit.privacy.{module_info.name}")
        for name, thing in vars(module).items():
            if name.startswith("_") or getattr(thing, "__module__", "") != module.__name__:
                continue
            if inspect.isfunction(thing):
                names.add(f"{module_info.name}.{name}")
            elif inspect.isclass(thing) and issubclass(thing, Guarantee):
                methods = inspect.getmembers(thing, inspect.isfunction)
                names |= {f"guarantees.{m}" for m, _ in methods if not m.startswith("_")}
    return names


def test_every_public_function_is_checked_or_gives_no_number():
    listed = {check.of for check in CHECKS} | set(NO_NUMBER)
    assert public_functions() - listed == set(), "add checks to CHECKS, or a reason to NO_NUMBER"
    assert listed - public_functions() == set(), "no longer public"


def test_a_new_function_would_be_noticed(monkeypatch):
    module = importlib.import_module(CONVERT)
    forgotten = lambda x: x  # noqa: E731  as if it were defined there
    forgotten.__module__ = CONVERT
    monkeypatch.setattr(module, "forgotten", forgotten, raising=False)
    assert "convert.forgotten" in public_functions()


def test_every_conversion_is_known():
    """All pairs of kinds are tried with every parameter that conversions know."""
    values: list[Guarantee] = [
        PureDP(1),
        ApproxDP(1, "1e-9"),
        ProbabilisticDP(1, "1e-9"),
        ZCDP(1),
        RenyiDP(2, 1),
        MetricDP(1),
    ]
    names = {"epsilon": 2, "delta": "1e-3", "alpha": 2, "distance": 2, "per": 2}
    tried: list[dict[str, object]] = [{}, *({name: value} for name, value in names.items())]
    found = set()
    for one in values:
        for other in values:
            for parameters in tried:
                try:
                    converted(one, type(other), **parameters)
                except (ValueError, TypeError):
                    continue
                if type(one) is not type(other) or parameters:
                    found.add((type(one).__name__, type(other).__name__))
    assert found == CONVERSIONS


# ---------------------------------------------------------------- the walk


@pytest.mark.parametrize("check", CHECKS, ids=str)
def test_no_number_is_rounded_the_unsafe_way(check, extent):
    @settings(
        max_examples=extent.number(5, 60), suppress_health_check=[HealthCheck.filter_too_much]
    )
    @given(data=st.data())
    def holds(data):
        check.run(data.draw(check.inputs))

    holds()


# ---------------------------------------------------------------- the mutants

SEARCH = settings(
    max_examples=120,
    database=None,
    derandomize=True,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def refused(check: Check, inputs: Inputs, claim: Callable[..., Fraction | float]) -> bool:
    try:
        check.run(inputs, claim)
    except Refused:
        return True
    return False


def wrong_way(check: Check) -> Callable[..., float]:
    door = lower if check.side == "upper" else upper

    def claim(*inputs: Any) -> float:
        with decimals():
            return door(Fraction(check.truth(*inputs)))

    return claim


def to_nearest(check: Check) -> Callable[..., float]:
    def claim(*inputs: Any) -> float:
        with decimals():
            exact = Fraction(check.truth(*inputs))
        return exact.numerator / exact.denominator

    return claim


def loose(check: Check) -> Callable[..., Fraction]:
    away = 1 if check.side == "upper" else -1

    def claim(*inputs: Any) -> Fraction:
        with decimals():
            return Fraction(check.truth(*inputs)) * (1 + away * Fraction(1, 2**35))

    return claim


@pytest.mark.thinned(one_in=12)
@pytest.mark.parametrize("mutant", [wrong_way, to_nearest, loose], ids=lambda m: m.__name__)
@pytest.mark.parametrize("check", CHECKS, ids=str)
def test_a_wrong_rounding_is_refused(check, mutant):
    claim = mutant(check)
    find(check.inputs, lambda inputs: refused(check, inputs, claim), settings=SEARCH)


@pytest.mark.thinned(one_in=4)
@pytest.mark.parametrize("check", [c for c in CHECKS if c.through], ids=str)
def test_the_real_code_with_its_door_reversed_is_refused(check, monkeypatch):
    """`upper` rounds down and `lower` up: the walk must notice it in every function."""
    module = importlib.import_module(check.through)
    monkeypatch.setattr(module, "upper", lower)
    if hasattr(module, "lower"):
        monkeypatch.setattr(module, "lower", upper)
    find(check.inputs, lambda inputs: refused(check, inputs, check.claim), settings=SEARCH)
