"""Losses and distances as they are written: exact, or refused."""

import math
from fractions import Fraction

import pytest

from lastbit.errors import InvalidParameter, LastbitError
from lastbit.exact.ball import Ball, Real
from lastbit.geo.parsing import ExactLoss, loss_and_distance, metres, parse_epsilon

RATIONAL = [
    ("1/200m", 1, 200),
    ("1 / 200 m", 1, 200),
    ("0.0069/m", "0.0069", 1),
    ("1 per 200 m", 1, 200),
    ("1 within 200 metres", 1, 200),
    ("0.5 every 2 km", "0.5", 2000),
    ("1/3/2km", "1/3", 2000),
    ("1/3 per 1/2 km", "1/3", 500),
    ("2e-3/m", "0.002", 1),
    (" 1.5/0.25kilometres ", "1.5", 250),
    (".5/m", "0.5", 1),
]
LOGARITHMS = [
    ("ln(4)/200m", 4, 200),
    ("ln 4 within 200 m", 4, 200),
    ("ln4/200m", 4, 200),
    ("ln 4/200m", 4, 200),
    ("ln( 3/2 ) per 1 km", "3/2", 1000),
    ("ln(1.1)/10m", "1.1", 10),
]
REFUSED = [
    "", "ln(4)", "1", "1/200", "ln(1)/200m", "ln(0.5)/m", "ln(0)/m", "0/200m", "1/0m", "-1/200m",
    "1/-200m", "nan/200m", "inf/m", "1/200 miles", "1/200M", "one per m", "1//200m", "1/200m/3",
    "ln/200m", "ln()/200m", "log(4)/200m", "1e99999/m", "1" * 300 + "/m", "１/200m", "1 200m",
    "ln 8/2/200m", "ln(8)/2/200m", "1/2/3/4m", "ln 8/2 per m", "ln(1e4000)/m",
]  # fmt: skip


@pytest.mark.parametrize(("text", "epsilon", "within"), RATIONAL)
def test_rational_losses_are_exact(text, epsilon, within):
    assert parse_epsilon(text) == (Fraction(epsilon), within)


@pytest.mark.parametrize(("text", "factor", "within"), LOGARITHMS)
def test_logarithms_are_reals(text, factor, within):
    epsilon, distance = parse_epsilon(text)
    assert distance == within
    assert isinstance(epsilon, Real)
    low, high = epsilon.ball(128).exp().ends
    assert low <= Fraction(factor) <= high
    assert high - low < 1e-30
    assert loss_and_distance(text)[0].odds_upper == Fraction(factor)


@pytest.mark.parametrize("text", REFUSED)
def test_anything_else_is_refused(text):
    with pytest.raises(InvalidParameter, match=r"epsilon .*;"):
        parse_epsilon(text)


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), True, None, [1], Real(0)])
def test_losses_that_are_none_are_refused(value):
    with pytest.raises(LastbitError, match="epsilon"):
        loss_and_distance(value)


def test_shares_stay_exact():
    loss = ExactLoss(Fraction(1), Fraction(4))
    assert loss.divided(10) == ExactLoss(Fraction(1, 10), Fraction(4))
    assert str(loss.divided(10)) == "0.1 ln(4)"
    low, high = (loss.divided(10).ball() * 10).ends
    truth = Real(4).log().ball(256).ends
    assert low <= truth[0] and truth[1] <= high
    assert ExactLoss(Fraction(2), Fraction(4)).odds_upper == 16
    assert 2.718281828459045 < ExactLoss(Fraction(1)).odds_upper < 2.718281828459046
    assert ExactLoss(Fraction(1), Real(2)).odds_upper > 7.38
    assert str(ExactLoss(Fraction(1, 3))) == "1/3"


@pytest.mark.parametrize("loss", [1, 700, 2000, 2001, 3000, 10**9])
def test_odds_are_never_below_the_truth(loss):
    """The mutant bounded the loss by 2000 and then called its odds an upper bound."""
    odds = ExactLoss(Fraction(loss)).odds_upper
    assert odds == math.inf or odds >= Ball.of(loss).exp().ends[0]
    assert (odds == math.inf) == (loss > 2000)


def test_a_logarithm_without_brackets_takes_no_quotient():
    """(ln 400)/200 and ln(400/200) are far apart, and nobody knows which was meant."""
    with pytest.raises(InvalidParameter, match="not a loss that can be read"):
        loss_and_distance("ln 400/200")
    assert loss_and_distance("ln(400/200)")[0].odds_upper == 2


def test_long_numbers_are_shown_by_their_first_digits():
    assert str(loss_and_distance("ln(1e400)")[0]) == "ln(1e+400...)"
    assert str(ExactLoss(Fraction(10**40 + 1, 3 * 10**40))) == "0.333333..."


@pytest.mark.parametrize(
    ("length", "expected"),
    [("200 m", 200), ("200m", 200), ("10 km", 10_000), ("0.2km", 200), (200, 200), (2.5, "2.5"),
     ("200", 200), (Fraction(1, 3), "1/3"), ("1 metre", 1)],
)  # fmt: skip
def test_lengths(length, expected):
    assert metres(length, "within") == Fraction(expected)


@pytest.mark.parametrize(
    "length", ["", "m", "0 m", "-1 m", "1 mile", 0, -1, None, True, "1e99999m"]
)
def test_lengths_that_are_none(length):
    with pytest.raises(LastbitError, match="within"):
        metres(length, "within")
