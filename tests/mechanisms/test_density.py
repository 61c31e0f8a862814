"""Densities of one's own: sliding, dilation and both, against closed forms and sums over cells."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings, strategies as st

from lastbit.errors import InvalidParameter, LastbitError
from lastbit.exact import arb_of, working_precision
from lastbit.mechanisms.admissible_noise import gaussian_excess, laplace_excess
from lastbit.mechanisms.density import SymmetricDensity, admissibility

CUT = SymmetricDensity(lambda z: -3 * z, reach=6)


def test_correction_23_an_admissible_density_that_costs_more_than_lemma_2_6_says() -> None:
    """Laplace noise of rate 3 cut at ±6; exact probabilities of one event."""
    found = admissibility(CUT, alpha=1, beta="0.139", epsilon=6)
    inside = 1 - math.exp(-18)

    def beyond(z: float) -> float:  # P[Z > z], z > 0
        return (math.exp(-3 * z) - math.exp(-18)) / (2 * inside)

    # sliding by 1 at epsilon/2 = 3 costs what lies within 1 of an end; dilation the same of both
    assert beyond(5) <= float(found.sliding) <= beyond(5) * (1 + 1e-4)
    dilation = 2 * beyond(6 * math.exp(-0.139))
    assert dilation <= float(found.dilation) <= dilation * 1.01
    assert found.sliding >= found.dilation  # so that it is admissible at twice the sliding
    assert float(found.claimed) == pytest.approx(2.907e-7, rel=1e-3)
    # S(x) = 1, S(y) = exp(-0.139) = f(y) - f(x): outputs below y's least one come from x alone
    narrow = math.exp(-0.139)
    true = beyond(6 * narrow - narrow)
    assert true == pytest.approx(1.0638e-6, rel=1e-4)
    assert true > 3.6 * float(found.claimed)
    assert true <= float(found.delta) <= 1.01 * true
    two_steps = found.dilation + Fraction(math.exp(3)) * found.sliding
    assert found.delta < two_steps
    assert found.guarantee().epsilon == 6 and found.guarantee().delta == found.delta


@pytest.mark.parametrize(
    ("density", "closed", "norm"),
    [
        (SymmetricDensity(lambda z: -z * z / 2, reach=12, tail="1e-31"), gaussian_excess, 1),
        (SymmetricDensity(lambda z: -z, reach=60, tail="1e-26"), laplace_excess, 1),
    ],
    ids=["gaussian", "laplace"],
)
def test_against_closed_forms(density: Any, closed: Callable[..., arb], norm: int) -> None:
    with working_precision(192):
        for moved, dilated, epsilon in [
            ("1/8", "0", "1/2"),
            ("1/8", "1/50", "1/2"),
            ("1/10", "-1/40", "1/2"),
            ("1/2", "-1/5", "1"),
            ("2", "1/3", "1"),
        ]:
            place = [arb_of(Fraction(x)) for x in (moved, dilated, epsilon)]
            true, found = closed(*place), density.excess(*place)
            assert true.lower() <= found
            assert found <= true.upper() * arb("1.001") + arb("1e-24")


def test_pure_noise_has_no_delta_beyond_its_tail() -> None:
    """Cauchy noise with a sixth for both, as Nissim, Raskhodnikova and Smith have it."""
    cauchy = SymmetricDensity(lambda z: -(1 + z**2).log(), reach=10**4, tail="1e-4")
    with working_precision(192):
        sixth, half = arb_of(Fraction(1, 6)), arb_of(Fraction(1, 2))
        assert cauchy.excess(sixth, arb(0), half) < 1.1e-4
        assert cauchy.excess(arb(0), sixth, half) < 1.1e-4
        assert cauchy.excess(3 * sixth, arb(0), half / 4) > 1e-2  # a mutant: a quarter of epsilon


def test_uniform_noise_slides_at_the_price_of_its_rim() -> None:
    flat = SymmetricDensity(lambda z: 0, reach=1)
    found = admissibility(flat, alpha="1/2", beta=0, epsilon=1)
    assert float(found.sliding) == pytest.approx(0.25, rel=1e-9)
    assert found.dilation == 0
    assert found.delta == found.sliding


def test_a_declared_tail_is_counted_in_full() -> None:
    flat = SymmetricDensity(lambda z: 0, reach=1, tail="1/10")
    with working_precision(192):
        still = flat.excess(arb(0), arb(0), arb(50))
    assert float(still) == pytest.approx(0.1, rel=1e-9)
    assert repr(flat) == "SymmetricDensity(reach=1, tail=1/10)"


Slopes = list[tuple[Fraction, Fraction]]


def hockey_stick(pieces: Slopes, moved: float, width: float, epsilon: float) -> float:
    """A lower bound, cell by cell, from the exact integrals of exp of straight pieces."""

    def total(z: float) -> float:  # the integral of exp(L) from 0 to z
        done, level, at = 0.0, 0.0, 0.0
        for end, slope in pieces:
            right = min(z, float(end))
            if right > at:
                s = float(slope)
                done += math.exp(level) * (-math.expm1(-s * (right - at)) / s if s else right - at)
            level -= float(slope) * (float(end) - at)
            at = float(end)
        return done

    whole = 2 * total(math.inf)

    def below(z: float) -> float:
        return 0.5 + math.copysign(total(abs(z)), z) / whole

    reach = float(pieces[-1][0])
    cells = [reach * k / 400 for k in range(-400, 401)]
    p = [below(z) for z in cells]
    q = [below((z - moved) / width) for z in cells]
    factor = math.exp(epsilon)
    return sum(
        max(0.0, b - a - factor * (d - c)) for a, b, c, d in zip(p, p[1:], q, q[1:], strict=False)
    )


def straight(drawn: Slopes) -> tuple[Slopes, list[tuple[Fraction, Any]]]:
    """Straight pieces of some lengths and slopes, one after the other."""
    pieces: list[tuple[Fraction, Any]] = []
    slopes: Slopes = []
    end, level = Fraction(0), Fraction(0)
    for length, slope in drawn:
        pieces.append((end + length, lambda z, a=level, s=slope, e=end: a - s * (z - e)))
        end, level = end + length, level - slope * length
        slopes.append((end, slope))
    return slopes, pieces


@settings(max_examples=15, deadline=None)
@given(
    st.lists(
        st.tuples(st.fractions("1/4", 2, max_denominator=8), st.fractions(0, 4, max_denominator=8)),
        min_size=1,
        max_size=3,
    ),
    st.fractions("1/8", 1, max_denominator=8),
    st.fractions("-1/4", "1/4", max_denominator=16),
    st.fractions("1/4", 3, max_denominator=8),
)
def test_no_density_is_certified_below_what_it_costs(
    drawn: Slopes, moved: Fraction, dilated: Fraction, epsilon: Fraction
) -> None:
    slopes, pieces = straight(drawn)
    density = SymmetricDensity(pieces)
    with working_precision(192):
        found = float(density.excess(arb_of(moved), arb_of(dilated), arb_of(epsilon)))
    least = hockey_stick(slopes, float(moved), math.exp(dilated), float(epsilon))
    assert least <= found * (1 + 1e-9) + 1e-12
    assert found <= least + 0.02  # and it is no trivial bound


@pytest.mark.parametrize(
    "drawn", [[("1", "1/2"), ("2", "3")], [("1/2", "4"), ("3/2", "1/4")]], ids=["concave", "convex"]
)
def test_every_place_and_width_at_once(drawn: list[tuple[str, str]]) -> None:
    """Slides up to alpha of the lesser width, dilations up to beta, both orders of the two laws."""
    slopes, pieces = straight([(Fraction(length), Fraction(slope)) for length, slope in drawn])
    found = admissibility(SymmetricDensity(pieces), alpha="1/4", beta="1/8", epsilon=1)
    widths = [math.exp(t / 48) for t in (-6, -3, 0, 3, 6)]

    def worst(alpha: float, chosen: list[float], epsilon: float) -> float:
        places = [(part * alpha * min(1.0, w), w) for part in (0.0, 0.5, 1.0) for w in chosen]
        return max(hockey_stick(slopes, moved, w, epsilon) for moved, w in places)

    for least, certain in (
        (worst(0.25, widths, 1.0), found.delta),
        (worst(0.25, [1.0], 0.5), found.sliding),
        (worst(0.0, widths, 0.5), found.dilation),
    ):
        assert least <= float(certain) * (1 + 1e-9) <= least + 0.01
    assert worst(0.25, [math.exp(-0.25)], 1.0) > float(found.delta)  # a mutant: half the beta


@pytest.mark.parametrize("power", range(2, 9))
@pytest.mark.parametrize("reach", [Fraction(1), Fraction(3, 10)])
def test_flat_tops_are_known_to_fall(power: int, reach: Fraction) -> None:
    """Powers of z, whose slope is 0 at 0; failed before from the cube on: nothing proved them."""
    flat = SymmetricDensity(lambda z: -(z**power), reach=reach)
    z = np.linspace(-float(reach), float(reach), 200_001)
    h, q = (np.exp(-(np.abs(place) ** power)) for place in (z, z - 0.1))
    q[np.abs(z - 0.1) > float(reach)] = 0
    least = float(np.maximum(0, h - math.exp(0.5) * q).sum() / h.sum())
    found = admissibility(flat, alpha="0.1", beta=0, epsilon=1)
    assert abs(least - float(found.sliding)) < 1e-4


@pytest.mark.parametrize(
    ("log_density", "options", "words"),
    [
        (lambda z: z, {"reach": 1}, "fall from 0"),
        (lambda z: z**8, {"reach": 1}, "fall from 0"),
        (lambda z: z**3 / 10**6 - z**4, {"reach": 1}, "fall from 0"),  # it rises to 3/(4 10**6)
        (lambda z: 2 * z - z * z, {"reach": 3}, "fall from 0"),
        (lambda z: -(z - 1) * (z - 1), {"reach": 3}, "fall from 0"),
        ([(1, lambda z: -z), (2, lambda z: 1 - z)], {}, "fall from 0"),
        # a float is the dyadic that it is: three times 0.1 is more than 0.3
        ([(1, lambda z: -0.1 * z * 3), (2, lambda z: -0.3 * z)], {}, "fall from 0"),
        (lambda z: 1 / z, {"reach": 1}, "no power series"),
        (lambda z: -(z * z) / z, {"reach": 1}, "no power series"),
        (lambda z: z.log(), {"reach": 1}, "fall from 0"),
        (lambda z: -z.sqrt(), {"reach": 1}, "fall from 0"),
        (lambda z: -z if z < 1 else -2 * z, {"reach": 3}, "give cases as pieces"),
        (lambda z: -z if z == 1 else -2 * z, {"reach": 3}, "give cases as pieces"),
        (lambda z: -z if z else 0, {"reach": 3}, "give cases as pieces"),
        (lambda z: -abs(z), {"reach": 3}, "give cases as pieces"),
        (lambda z: -math.exp(z), {"reach": 3}, "give cases as pieces"),
        (lambda z: -float(z), {"reach": 3}, "give cases as pieces"),
        (lambda z: -(z**0.5), {"reach": 3}, "give cases as pieces"),
        (lambda z: math.nan, {"reach": 3}, "give cases as pieces"),
        (lambda z: z.series, {"reach": 3}, "give cases as pieces"),
        (lambda z: None, {"reach": 3}, "give cases as pieces"),
        (lambda: 0, {"reach": 3}, "give cases as pieces"),
        (lambda z: -z, {}, "reach is missing"),
        (lambda z: -z, {"reach": 0}, "above 0"),
        (lambda z: -z, {"reach": math.inf}, "infinite"),
        (lambda z: -z, {"reach": 3, "tail": -1}, "negative"),
        (lambda z: -z, {"reach": 3, "tail": math.nan}, "NaN"),
        ([], {}, "list of pairs"),
        ([(1, 2)], {}, "list of pairs"),
        ([1], {}, "list of pairs"),
        ([(2, lambda z: -z), (1, lambda z: -z)], {}, "do not rise"),
        ("-z", {"reach": 1}, "pass a function"),
        ([(1, lambda z: -z)], {"reach": 2}, "pass a function"),
    ],
)
def test_what_cannot_be_judged_is_refused(log_density: Any, options: Any, words: str) -> None:
    with pytest.raises(LastbitError, match=words) as caught:
        SymmetricDensity(log_density, **options)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    "options",
    [{"alpha": 0}, {"beta": -1}, {"beta": math.inf}, {"epsilon": 0}, {"epsilon": math.nan}],
)
def test_parameters_that_mean_nothing_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        admissibility(CUT, **{"alpha": 1, "beta": "0.1", "epsilon": 1, **options})
    with pytest.raises(LastbitError, match="pass SymmetricDensity"):
        admissibility("laplace", alpha=1, beta=1, epsilon=1)  # type: ignore[arg-type]
