"""Enclosures by whole numbers: against Arb, against Decimal, nested, and mutants that must fail."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial
from itertools import islice

import pytest
from flint import arb
from hypothesis import example, given, strategies as st

from lastbit.exact.ball import arb_of, enclosure_of, working_precision
from lastbit.exact.fixed_point import (
    Pair,
    exp_between,
    ln_between,
    mills_between,
    pi_between,
    product,
    rational_between,
    root_two_pi_between,
    shorter,
)
from lastbit.exact.theta import complement, gaussian_weights, share, theta_between
from lastbit.laws import theta

PLACES = st.sampled_from([1, 2, 8, 53, 62, 126, 192, 256, 1000])


def rationals(least: int = 0) -> st.SearchStrategy[Fraction]:
    return st.builds(Fraction, st.integers(least, 1 << 90), st.integers(1, 1 << 90))


def holds(pair: Pair, number: Callable[[], arb], places: int) -> bool:
    """Whether no number of a ball 400 bits finer lies outside the two integers."""
    with working_precision(places + 400):
        exact = number() * arb(2) ** places
        return not (exact < pair[0] or exact > pair[1])


@given(rationals(), PLACES)
@example(Fraction(0), 62)
@example(Fraction(1, 1 << 400), 192)
@example(Fraction(191), 192)
@example(Fraction(192), 192)
@example(Fraction(10**40), 64)
def test_exponentials_lie_between(exponent: Fraction, places: int) -> None:
    pair = exp_between(exponent, places)
    assert pair[1] - pair[0] <= 2
    assert holds(pair, lambda: 1 / arb_of(exponent).exp(), places)
    assert not holds((pair[0] - 9, pair[0] - 4), lambda: 1 / arb_of(exponent).exp(), places)


def test_exponentials_by_another_library() -> None:
    """The Decimal exponential is correctly rounded, and not made of balls."""
    with localcontext() as context:
        context.prec = 120
        for k in range(400):
            exponent = Fraction(k * k, 97)
            exact = (-Decimal(exponent.numerator) / exponent.denominator).exp() * 2**192
            low, high = exp_between(exponent, 192)
            assert low <= exact <= high


def test_an_exponent_below_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="from 0 up only"):
        exp_between(Fraction(-1, 9), 64)


@given(rationals(1), PLACES)
@example(Fraction(1), 27)
@example(Fraction(1), 28)
@example(Fraction(1, 10**9), 8)
@example(Fraction(1 << 300), 192)
def test_sums_of_all_weights_lie_between(variance: Fraction, places: int) -> None:
    pair = theta_between(variance, places)
    assert pair[1] - pair[0] <= 8 + (pair[1] >> places - 1)
    assert holds(pair, lambda: theta(variance), places)
    # a variance off by a thousandth is another number
    wrong = theta_between(variance * Fraction(1001, 1000), 192)
    assert variance < Fraction(1, 50) or not holds(wrong, lambda: theta(variance), 192)


@pytest.mark.parametrize("places", [1, 8, 62, 192, 256, 4000])
def test_pi_lies_between(places: int) -> None:
    pair = pi_between(places)
    assert pair[1] - pair[0] <= 2
    assert holds(pair, arb.pi, places)
    assert not holds((pair[0] + 4, pair[1] + 4), arb.pi, places)


@given(rationals(1), PLACES)
@example(Fraction(1), 192)
@example(Fraction(1, 2), 192)
@example(1 + Fraction(1, 10**60), 192)
@example(1 - Fraction(1, 10**60), 256)
@example(Fraction(10**400), 64)
def test_logarithms_lie_between(number: Fraction, places: int) -> None:
    pair = ln_between(number, places)
    assert pair[1] - pair[0] <= 2
    assert holds(pair, lambda: arb_of(number).log(), places)
    assert not holds((pair[0] + 4, pair[1] + 4), lambda: arb_of(number).log(), places)


def mills(place: Fraction) -> arb:
    """The tail of the normal law over its density, by Arb."""
    x = arb_of(place)
    return (x / arb(2).sqrt()).erfc() / 2 * (x * x / 2).exp() * (2 * arb.pi()).sqrt()


@given(st.fractions(0, 300, max_denominator=10**9), st.sampled_from([1, 8, 64, 192, 320]))
@example(Fraction(0), 192)
@example(Fraction(1, 10**60), 192)
@example(Fraction(8), 320)
@example(8 + Fraction(1, 10**40), 320)
@example(Fraction(1415), 256)
def test_tails_over_densities_lie_between(place: Fraction, places: int) -> None:
    pair = mills_between(place, places)
    assert pair[1] - pair[0] <= 2
    assert holds(pair, lambda: mills(place), places)
    assert not holds((pair[0] - 9, pair[0] - 4), lambda: mills(place), places)


@pytest.mark.parametrize("places", [1, 64, 256])
def test_the_root_of_two_pi_lies_between(places: int) -> None:
    pair = root_two_pi_between(places)
    assert pair[1] - pair[0] <= 2
    assert holds(pair, lambda: arb.pi() / (arb.pi() / 2).sqrt(), places)


def test_numbers_outside_of_the_proofs_are_refused() -> None:
    with pytest.raises(ValueError, match="above 0 only"):
        ln_between(Fraction(0), 64)
    with pytest.raises(ValueError, match="from 0 up only"):
        mills_between(Fraction(-1), 64)


def weight(k: int, variance: Fraction) -> arb:
    return (-arb_of(k * k / (2 * variance))).exp()


@given(rationals(1), st.sampled_from([62, 192]))
def test_weights_lie_between(variance: Fraction, places: int) -> None:
    for k, pair in enumerate(islice(gaussian_weights(variance, places), 40)):
        assert holds(pair, partial(weight, k, variance), places)
        assert pair[1] - pair[0] <= 3 * (k + 1) ** 2


@given(rationals(), rationals(1), PLACES)
def test_arithmetic_keeps_the_number(left: Fraction, right: Fraction, places: int) -> None:
    part, whole = sorted((left, right))
    unit = 1 << places
    low, high = product(rational_between(left, places), rational_between(right, places), places)
    assert low <= left * right * unit <= high
    low, high = share(rational_between(part, places), rational_between(whole, places), places)
    assert whole == 0 or 0 <= low <= part / whole * unit <= high <= unit
    low, high = complement(rational_between(left, places), places)
    assert low <= (1 - left) * unit <= high
    low, high = shorter(rational_between(left, places + 40), 40)
    assert low <= left * unit <= high and high - low <= 1


def test_a_share_of_something_too_small_to_be_seen_may_be_anything() -> None:
    assert share((0, 1), (0, 1), 8) == (0, 256)


@given(st.fractions(0, 1), PLACES)
def test_balls_become_enclosures(number: Fraction, places: int) -> None:
    low, high = enclosure_of(lambda: arb_of(number))(places)
    assert low <= number * (1 << places) <= high and high - low <= 4


@pytest.mark.parametrize("ball", [arb("nan"), arb(0, 5), arb("inf")])
def test_a_ball_that_says_nothing_encloses_everything(ball: arb) -> None:
    assert enclosure_of(lambda: ball)(8) == (0, 256)
