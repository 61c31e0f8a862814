"""The law of a rounded ideal: masses, sums, tails, and what it does not show."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from flint import arb
from hypothesis import given, settings, strategies as st

from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact.ball import Real, working_precision
from lastbit.laws.ideal import (
    Gumbel,
    Ideal,
    IdealCauchy,
    IdealGaussian,
    IdealLaplace,
    Logistic,
    PolynomialTail,
    StudentT,
)
from lastbit.laws.transformed import Rounded
from tests.laws.oracle import decimal, decimals, exp

LAWS: list[Ideal] = [
    IdealLaplace(),
    IdealGaussian(),
    IdealCauchy(),
    Logistic(),
    Gumbel(),
    PolynomialTail("5/2"),
    StudentT(3),
]


def cdf(ideal: Ideal, z: Fraction) -> Decimal:
    """Again, in Decimals."""
    match ideal:
        case IdealLaplace():
            return exp(z) / 2 if z < 0 else 1 - exp(-z) / 2
        case Logistic():
            return 1 / (1 + exp(-z))
        case Gumbel():
            return (-exp(-z)).exp()
    raise AssertionError(ideal)


def wrong_masses(law: Rounded, location: Fraction, scale: Fraction, grid: Fraction) -> int:
    """How many of the masses near the centre are not those of the formula."""
    wrong = 0
    with decimals():
        for k in range(-20, 21):
            edges = [((k + half) * grid - location) / scale for half in (HALF, -HALF)]
            mass = cdf(law.ideal, edges[0]) - cdf(law.ideal, edges[1])
            low, high = law.probability(k).ends
            margin = Decimal(2) ** -150
            wrong += not decimal(low) - margin <= mass <= decimal(high) + margin
    return wrong


HALF = Fraction(1, 2)
PLACE = (Fraction(3, 10), Fraction(7, 3), Fraction(1, 2))


@pytest.mark.parametrize("ideal", [IdealLaplace(), Logistic(), Gumbel()], ids=str)
def test_masses_against_decimals(ideal: Ideal) -> None:
    location, scale, grid = PLACE
    assert wrong_masses(Rounded(ideal, *PLACE), *PLACE) == 0
    mutants = [
        Rounded(ideal, location, scale * Fraction(1001, 1000), grid),
        Rounded(ideal, location + grid / 2, scale, grid),  # floor for round
        Rounded(ideal, -location, scale, grid),
        Rounded(ideal, location, scale, grid * 2),
    ]
    assert all(wrong_masses(mutant, *PLACE) > 20 for mutant in mutants)


@pytest.mark.parametrize("ideal", LAWS, ids=str)
@settings(max_examples=20, deadline=None)
@given(
    location=st.fractions(-100, 100),
    scale=st.fractions(Fraction(1, 100), 10**6),
    k=st.integers(-1000, 1000),
)
def test_masses_add_up(ideal: Ideal, location: Fraction, scale: Fraction, k: int) -> None:
    law = Rounded(ideal, location, scale, Fraction(1, 3))
    with working_precision(160):
        total = law.cumulative(k - 3) + sum((law.mass(j) for j in range(k - 2, k + 3)), arb(0))
        assert total.overlaps(law.cumulative(k + 2))
        assert (law.cumulative(k) + law.survival(k)).contains(1)
        assert not law.mass(k) < 0


@pytest.mark.parametrize("ideal", LAWS, ids=str)
def test_both_tails_keep_their_digits(ideal: Ideal) -> None:
    law = Rounded(ideal, "0.25", 2**20, 1)
    lowest = -3 if isinstance(ideal, Gumbel) else -25
    for place in (lowest * 2**20, -1, 0, 1, 25 * 2**20):
        assert law.probability(place).enclosure.rel_accuracy_bits() > 90
    if ideal.symmetric:
        mirror = Rounded(ideal, "-0.25", 2**20, 1)
        left, right = law.probability(-(25 * 2**20)), mirror.probability(25 * 2**20)
        assert left.enclosure.overlaps(right.enclosure)


def test_reals_agree_with_rationals() -> None:
    rational = Rounded(IdealCauchy(), "0.3", "7/3", "1/2")
    real = Rounded(IdealCauchy(), Real("0.3"), Real("7/3"), "1/2")
    root = Rounded(IdealCauchy(), Real(2).sqrt(), Real(3).sqrt(), 1)
    for k in (-(10**12), -3, 0, 5):
        assert rational.probability(k).enclosure.overlaps(real.probability(k).enclosure)
        assert root.probability(k) > 0
    assert root.quantile("1/2") == 1
    assert root.quantile("3/4") == 3  # sqrt 2 + sqrt 3 = 3.146...


UNSURE = Real(2).sqrt() + 2**300 - 2**300  # at 128 bits, anything within 2**172


@pytest.mark.parametrize("ideal", LAWS, ids=str)
@pytest.mark.parametrize(
    "place", [(UNSURE, 1), (0, UNSURE), (UNSURE, UNSURE)], ids=["location", "scale", "both"]
)
def test_what_a_precision_does_not_show_is_left_open(ideal: Ideal, place: tuple) -> None:
    """A ball of all probabilities, not an error; with more bits, the right answer."""
    law = Rounded(ideal, *place)
    location, scale = (Real(2).sqrt() if part is UNSURE else part for part in place)
    clear = Rounded(ideal, location, scale)
    for precision in (64, 128, 300, 310, 1000):
        with working_precision(precision):
            for question in ("mass", "cumulative", "survival"):
                ball = getattr(law, question)(2)
                assert ball.is_finite()
                assert ball.overlaps(getattr(clear, question)(2))
                assert not ball < 0
    assert law.quantile("0.9") == clear.quantile("0.9")
    assert law.probability(2, precision=1000).enclosure.rel_accuracy_bits() > 500


@pytest.mark.parametrize("slip", range(120, 150, 2))
def test_balls_of_middling_width(slip: int) -> None:
    """exp(-exp(-z)) of such a ball reaches numbers that no integer can hold."""
    place = Real(2).sqrt() + 2**slip - 2**slip
    for ideal in LAWS:
        with working_precision(128):
            ball = Rounded(ideal, place).cumulative(0)
            assert ball.rad() <= 1
            assert ball.overlaps(Rounded(ideal, Real(2).sqrt()).cumulative(0))


def test_levels_that_are_reached_exactly() -> None:
    """No precision tells equal numbers apart: these are known by algebra."""
    assert Rounded(StudentT(2)).quantile("2/3") == 0
    assert Rounded(StudentT(2)).quantile("2/3000000001") < 0
    for ideal in (IdealCauchy(), StudentT(1), PolynomialTail(2)):
        law = Rounded(ideal, "1/2")
        assert [law.quantile(level) for level in ("1/4", "1/2", "3/4")] == [-1, 0, 1]
        assert law.quantile(Fraction(1, 2) + Fraction(1, 10**30)) == 1
        assert law.exact_cumulative(0) == Fraction(1, 2)
        assert law.exact_cumulative(2) is None
    assert Rounded(IdealCauchy(), Real("1/2")).exact_cumulative(0) is None
    for symmetric in (ideal for ideal in LAWS if ideal.symmetric):
        assert Rounded(symmetric, "7/2", 3).quantile("1/2") == 3


def test_quantile_and_support() -> None:
    law = Rounded(IdealGaussian(), 1000, 10)
    assert law.support == (None, None)
    assert law.quantile("0.975") == 1020  # 1019.6
    assert law.quantile("1/2") == 1000


def test_location_and_scale_are_not_shown() -> None:
    law = Rounded(IdealLaplace(), 73211, "8.25", "1/4")
    for text in (repr(law), str(law)):
        assert "73211" not in text
        assert "33" not in text
    with pytest.raises(InvalidParameter) as caught:
        Rounded(IdealLaplace(), "73211 dollars")
    assert "73211" not in str(caught.value)
    with pytest.raises(InvalidParameter) as caught:
        Rounded(IdealLaplace(), 0, "-73211")
    assert "73211" not in str(caught.value)


NAN = float("nan")


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("location", dict(location=NAN)),
        ("location", dict(location=float("inf"))),
        ("location", dict(location="abc")),
        ("location", dict(location=None)),
        ("location", dict(location=True)),
        ("location", dict(location=Real(0).log())),
        ("scale", dict(scale=0)),
        ("scale", dict(scale=-1)),
        ("scale", dict(scale=NAN)),
        ("scale", dict(scale=False)),
        ("scale", dict(scale=Real(0))),
        ("scale", dict(scale=Real(1) - Real(1))),
        ("scale", dict(scale=-Real(2).sqrt())),
        ("scale", dict(scale=Real(2).sqrt() * Real(2).sqrt() - 2)),
        ("scale", dict(scale=Fraction(2) ** 65536)),
        ("scale", dict(grid=Fraction(1, 2**70000))),
        ("scale", dict(scale=Real(50).exp().exp())),
        ("scale", dict(scale=(-Real(50).exp()).exp())),
        ("location", dict(location=Real(50).exp().exp())),
        ("grid", dict(grid=0)),
        ("grid", dict(grid=-1)),
        ("grid", dict(grid=NAN)),
        ("grid", dict(grid=[1])),
    ],
)
def test_bad_parameters(name: str, parameters: dict) -> None:
    with pytest.raises(InvalidParameter, match=f"^{name} "):
        Rounded(IdealLaplace(), **parameters)


@pytest.mark.parametrize("ideal", ["laplace", None, 3, IdealLaplace])
def test_bad_ideal(ideal: object) -> None:
    with pytest.raises(WrongType, match=r"^ideal "):
        Rounded(ideal)  # type: ignore[arg-type]
