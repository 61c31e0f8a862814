"""Ideal laws: cumulative functions against integrals, closed forms and each other."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest
from flint import acb, arb, arb_series, ctx
from hypothesis import given, settings, strategies as st

from lastbit.errors import InvalidParameter, Undecidable, WrongType
from lastbit.exact.ball import arb_of, working_precision
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

LAWS: list[Ideal] = [
    IdealLaplace(),
    IdealGaussian(),
    IdealCauchy(),
    Logistic(),
    Gumbel(),
    PolynomialTail(2),
    PolynomialTail(3),
    PolynomialTail("5/2"),
    PolynomialTail("11/10"),
    PolynomialTail(40),
    StudentT(1),
    StudentT("1/2"),
    StudentT(3),
    StudentT(100),
]


# Up to a constant, written again for complex numbers; for z > 0.
SHAPES: list[tuple[Ideal, Callable[[acb], acb]]] = [
    (IdealLaplace(), lambda z: (-z).exp()),
    (IdealGaussian(), lambda z: (-(z**2) / 2).exp()),
    (IdealCauchy(), lambda z: 1 / (1 + z**2)),
    (Logistic(), lambda z: 1 / ((z / 2).exp() + (-z / 2).exp()) ** 2),
    (Gumbel(), lambda z: (-z - (-z).exp()).exp()),
    (PolynomialTail(3), lambda z: 1 / (1 + z**3)),
    (PolynomialTail("5/2"), lambda z: 1 / (1 + (z.log() * 5 / 2).exp())),
    (StudentT(3), lambda z: 1 / (1 + z**2 / 3) ** 2),
    (StudentT("1/2"), lambda z: ((1 + 2 * z**2).log() * -3 / 4).exp()),
]


def integral(shape: Callable[[acb], acb], low: str, high: str) -> arb:
    return acb.integral(lambda z, _: shape(z), acb(low), acb(high)).real


def disagrees(law: Ideal, shape: Callable[[acb], acb]) -> bool:
    """Whether the probabilities of two intervals certainly are not as the integrals."""

    def probability(low: str, high: str) -> arb:
        return law.above(arb(low)) - law.above(arb(high))

    first, second = ("0.25", "0.75"), ("1.5", "4")
    with working_precision(100):
        left = probability(*first) * integral(shape, *second)
        return not left.overlaps(probability(*second) * integral(shape, *first))


def named(case: object) -> str:
    """The law of a case; a function has no name that two processes share."""
    return str(case) if isinstance(case, Ideal) else ""


@pytest.mark.parametrize(("law", "shape"), SHAPES, ids=named)
def test_probabilities_are_integrals(law: Ideal, shape: Callable[[acb], acb]) -> None:
    assert not disagrees(law, shape)
    # a mutant: a scale that is off by a thousandth
    assert disagrees(law, lambda z: shape(z * acb("1.001")))


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_density_is_the_derivative(law: Ideal) -> None:
    before = ctx.cap
    try:
        ctx.cap = 10
        with working_precision(128):
            for centre in ("-3.25", "-0.5", "0.375", "2.75"):
                z, step = arb(centre), arb(2) ** -12
                series = law.density(arb_series([z, 1], 9)).integral()
                slope = sum((series[j] * step**j for j in range(10)), arb(0))
                assert abs(law.below(z + step) - law.below(z) - slope) < arb(2) ** -95
                assert abs(law.above(z) - law.above(z + step) - slope) < arb(2) ** -95
                wrong = slope * arb("1.001")  # a mutant: the constant is off by a thousandth
                assert abs(law.above(z) - law.above(z + step) - wrong) > slope / 2000
    finally:
        ctx.cap = before


@pytest.mark.thinned(one_in=4)
@pytest.mark.parametrize("law", LAWS, ids=str)
@settings(max_examples=25, deadline=None)
@given(z=st.fractions(-50, 50))
def test_below_and_above_make_one(law: Ideal, z: Fraction) -> None:
    with working_precision(128):
        point = arb(z.numerator) / z.denominator
        total = law.below(point) + law.above(point)
        assert total.contains(1)
        assert total.rad() < arb(2) ** -90
        if law.symmetric:
            assert law.below(point).overlaps(law.above(-point))


def test_gumbel_is_not_symmetric() -> None:
    assert not Gumbel().symmetric
    with working_precision(64):
        assert not Gumbel().below(arb(1)).overlaps(Gumbel().above(arb(-1)))


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_tails_are_known_relatively(law: Ideal) -> None:
    with working_precision(128):
        far = 4 if isinstance(law, Gumbel) else 30  # exp(-exp(30)) lies beyond everything
        assert law.below(arb(-far)).rel_accuracy_bits() > 80
        assert law.above(arb(30)).rel_accuracy_bits() > 80
        assert law.below(arb(-far)) > 0


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_extremes_stay_enclosed(law: Ideal) -> None:
    huge = arb(10) ** 300
    with working_precision(128):
        assert 0 <= law.below(-huge).upper() < 1
        assert law.below(-huge).lower() > -1
        assert law.above(huge).is_finite()
        assert law.below(huge) > arb("0.5")
        assert law.above(-huge) > arb("0.5")


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_a_wide_ball_gives_all_its_probabilities(law: Ideal) -> None:
    with working_precision(128):
        wide = law.below(arb(0, "0.5"))
        for inside in ("-0.49", "0", "0.25", "0.5"):
            assert wide.overlaps(law.below(arb(inside)))
        assert wide.is_finite()


@pytest.mark.parametrize("twin", [PolynomialTail(2), StudentT(1)], ids=str)
@pytest.mark.parametrize("z", ["-1e30", "-7", "-0.1", "0", "1", "1.5", "1e9"])
def test_twins_of_the_cauchy_law(twin: Ideal, z: str) -> None:
    cauchy = IdealCauchy()
    with working_precision(128):
        point = arb(z)
        for question in ("below", "above"):
            expected = getattr(cauchy, question)(point)
            answer = getattr(twin, question)(point)
            assert answer.overlaps(expected)
            assert answer.rel_accuracy_bits() > 80
        density = twin.density(arb_series([point], 1))[0]
        assert density.overlaps(cauchy.density(arb_series([point], 1))[0])
        other = PolynomialTail("2.002").below(point)
        assert z == "0" or not other.overlaps(cauchy.below(point))


def refuted(law: Ideal, known: Callable[[Fraction], Fraction | None]) -> list[Fraction]:
    """Where what is said to be known certainly is not P[Z <= z]."""
    found = []
    with working_precision(200):
        for z in sorted({Fraction(a, b) for a in range(-40, 41) for b in range(1, 13)}):
            level = known(z)
            if level is not None and not law.below(arb_of(z)).overlaps(arb_of(level)):
                found.append(z)
    return found


EVEN = [StudentT(n) for n in (2, 4, 6, 10, 64)]


@pytest.mark.parametrize("law", [*LAWS, *EVEN], ids=str)
def test_known_probabilities(law: Ideal) -> None:
    assert refuted(law, law.known_below) == []
    assert law.known_below(Fraction(0)) == (Fraction(1, 2) if law.symmetric else None)
    assert law.known_below(Fraction(22, 7)) is None


def test_probabilities_that_are_rational() -> None:
    for law in (IdealCauchy(), PolynomialTail(2), StudentT(1)):
        levels = [law.known_below(Fraction(z)) for z in (-1, 0, 1, 2)]
        assert levels == [Fraction(1, 4), Fraction(1, 2), Fraction(3, 4), None]
    # 2 + 1/4 = (3/2)**2, and 4 + 9/4 = (5/2)**2
    assert StudentT(2).known_below(Fraction(1, 2)) == Fraction(2, 3)
    assert StudentT(2).known_below(Fraction(-1, 2)) == Fraction(1, 3)
    half = StudentT(4).known_below(Fraction(3, 2))
    assert half == (1 + Fraction(3, 5) * (1 + Fraction(16, 25) / 2)) / 2
    for degrees in ("3/2", 3, 66):
        assert StudentT(degrees).known_below(Fraction(1, 2)) is None


def test_mutants_of_the_known_probabilities_are_refuted() -> None:
    assert refuted(StudentT(4), StudentT(2).known_below)
    assert refuted(StudentT(3), StudentT(1).known_below)
    assert refuted(Gumbel(), lambda z: Fraction(1, 2) if z == 0 else None)
    assert refuted(IdealCauchy(), lambda z: (2 - z) / 4 if abs(z) == 1 else None)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_a_ball_without_end_decides_nothing(law: Ideal) -> None:
    with working_precision(128):
        for z in (arb.nan(), arb.pos_inf() - arb.pos_inf(), arb(0, "inf")):
            assert not law.below(z) < 1
            assert not law.above(z) > 0


CLOSED: list[tuple[Ideal, Callable[[arb], arb]]] = [
    (IdealLaplace(), lambda p: (2 * p).log() if p < arb("0.5") else -(2 * (1 - p)).log()),
    (IdealCauchy(), lambda p: (arb.pi() * (p - arb("0.5"))).tan()),
    (Logistic(), lambda p: (p / (1 - p)).log()),
    (Gumbel(), lambda p: -(-p.log()).log()),
]


@pytest.mark.parametrize(("law", "closed"), CLOSED, ids=named)
@pytest.mark.parametrize("level", ["1/1000000", "1/3", "2/3", "999/1000"])
def test_quantiles_in_closed_form(law: Ideal, closed: Callable[[arb], arb], level: str) -> None:
    number = Fraction(level)
    with working_precision(256):
        expected = closed(arb(number.numerator) / number.denominator)
        assert law.quantile(level).enclosure.overlaps(expected)
        assert law.quantile(level).enclosure.rel_accuracy_bits() > 100


LEVELS = [Fraction(text) for text in ("1e-400", "1e-9", "1/4", "1/2", "0.51")]
LEVELS.append(1 - Fraction(1, 10**30))


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("level", LEVELS, ids=lambda level: f"{float(level):.3g}")
def test_quantiles_are_enclosed(law: Ideal, level: Fraction) -> None:
    ball = law.quantile(level).enclosure
    with working_precision(1500):
        target = arb(level.numerator) / level.denominator
        assert law.below(arb(ball.lower())) <= target or ball.is_exact()
        assert law.below(arb(ball.upper())) >= target or ball.is_exact()
        assert ball.is_exact() or ball.rel_accuracy_bits() > 60
        # a mutant: a quantile that is off by a part in a billion
        moved = arb(ball.upper()) + (abs(ball) + 1) * arb(10) ** -9
        assert not law.below(moved) <= target


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_guesses_are_close(law: Ideal) -> None:
    with working_precision(64):
        for level in ("1e-18", "1e-3", "0.2", "0.4999"):
            p = arb(level)
            assert abs(law.below(law.near_below(p)) / p - 1) < arb(2) ** -30
            assert abs(law.above(law.near_above(p)) / p - 1) < arb(2) ** -30


def test_no_power_series_where_the_density_has_a_kink() -> None:
    for law in (IdealLaplace(), PolynomialTail(3), PolynomialTail("5/2")):
        with pytest.raises(Undecidable):
            law.density(arb_series([arb(0, 1), 1], 4))
    with pytest.raises(Undecidable):
        PolynomialTail("5/2").density(arb_series([arb(0), 1], 4))


@pytest.mark.parametrize("gamma", [1, "1", 0, -2, "1.0001", 2**21, "nan", float("inf")])
def test_bad_gamma(gamma: object) -> None:
    with pytest.raises(InvalidParameter, match="gamma"):
        PolynomialTail(gamma)  # type: ignore[arg-type]


@pytest.mark.parametrize("degrees", [0, -1, "1e-9", 2**21, float("nan"), "many"])
def test_bad_degrees(degrees: object) -> None:
    with pytest.raises(InvalidParameter, match="degrees"):
        StudentT(degrees)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [True, None, [2], object()])
def test_wrong_types(wrong: object) -> None:
    for law in (PolynomialTail, StudentT):
        with pytest.raises(WrongType):
            law(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("probability", [0, 1, -1, 2, "nan", float("inf")])
def test_bad_probability(probability: object) -> None:
    with pytest.raises(InvalidParameter, match="probability"):
        IdealGaussian().quantile(probability)


def test_laws_are_values() -> None:
    assert len({PolynomialTail(2), PolynomialTail("2"), IdealCauchy(), IdealCauchy()}) == 2
