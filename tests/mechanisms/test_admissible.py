"""The two steps of every admissible noise, judged by balls; larger ones are refused."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from flint import arb, arb_series
from hypothesis import given, settings, strategies as st

from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact.ball import Ball, arb_of, working_precision
from lastbit.exact.rounding import lower, upper
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
from lastbit.mechanisms.smooth_noise import (
    Admissible,
    admissible,
    gaussian_dilation,
    gaussian_sliding,
)
from tests.evidence import late

PURE = [
    IdealCauchy(),
    PolynomialTail(Fraction(3, 2)),
    PolynomialTail(3),
    PolynomialTail(4),
    StudentT(Fraction(1, 2)),
    StudentT(3),
    StudentT(8),
]
# dense where the slopes are steepest; never 0, where a power has no series
PLACES = [
    Fraction(sign * (2 * number + 1), 37)
    for number in [*range(96), *(2**i for i in range(6, 40))]
    for sign in (-1, 1)
]


def density(law: Ideal, z: arb) -> arb:
    return law.density(arb_series([z, 1], 1))[0]


def loss(law: Ideal, z: Fraction, moved: Fraction, dilated: Fraction) -> arb:
    """ln of the density of Z at z over that of moved + exp(dilated) Z at z."""
    with working_precision(192):
        width = arb_of(dilated).exp()
        there = density(law, (arb_of(z) - arb_of(moved)) / width) / width
        return (density(law, arb_of(z)) / there).log()


def worst(law: Ideal, alpha: Fraction, beta: Fraction) -> float:
    """A certain lower bound on the loss of the worst pair among those tried."""
    return max(
        lower(Ball(loss(law, z, moved, dilated)))
        for z in PLACES
        for moved in (alpha, alpha / 2, Fraction(0))
        for dilated in (beta, -beta, Fraction(0))
    )


@pytest.mark.thinned(one_in=36)
@pytest.mark.parametrize("law", PURE, ids=repr)
@pytest.mark.parametrize("epsilon", ["1/10", late("1"), late("5")])
def test_pure_noise_keeps_its_promise_and_no_larger_alpha_or_beta_does(
    law: Ideal, epsilon: str
) -> None:
    chosen = admissible(law, epsilon=epsilon)
    promised = float(chosen.epsilon)
    assert worst(law, chosen.alpha, chosen.beta) <= promised
    if epsilon == "1/10":  # small steps: the bounds are sharp there
        assert worst(law, 2 * chosen.alpha, chosen.beta) > promised
        assert worst(law, chosen.alpha, 2 * chosen.beta) > promised


@pytest.mark.parametrize("law", PURE, ids=repr)
def test_the_slopes_are_certain_for_every_place(law: Ideal) -> None:
    """|g'| <= c and 1 - z g' in [-m, 1] on intervals that cover the half line [0, 2**40]."""
    chosen = admissible(law, epsilon=1)
    steepest = Fraction(1, 2) / chosen.alpha
    most = Fraction(1, 2) / chosen.beta
    pieces = [(Fraction(i, 256), Fraction(i + 1, 256)) for i in range(1024)]
    pieces += [(4 * Fraction(17, 16) ** i, 4 * Fraction(17, 16) ** (i + 1)) for i in range(420)]
    with working_precision(128):
        for left, right in pieces:
            z = arb_of(left).union(arb_of(right))
            slope, turn = slopes(law, z)
            assert upper(Ball(abs(slope))) <= float(steepest) * 1.02
            assert upper(Ball(abs(turn))) <= float(most) * 1.02


def slopes(law: Ideal, z: arb) -> tuple[arb, arb]:
    """g'(z) and 1 - z g'(z), written so that each place occurs once or twice only."""
    match law:
        case IdealCauchy():
            return 2 * z / (1 + z * z), 1 - 2 + 2 / (1 + z * z)
        case PolynomialTail(gamma=gamma):
            grown = power(z, gamma)
            return (
                arb_of(gamma) * power(z, gamma - 1) / (1 + grown),
                1 - arb_of(gamma) + arb_of(gamma) / (1 + grown),
            )
        case StudentT(degrees=v):
            whole = arb_of(v) + z * z
            return arb_of(v + 1) * z / whole, 1 - arb_of(v + 1) + arb_of(v + 1) * arb_of(v) / whole
    raise AssertionError(law)


def power(z: arb, exponent: Fraction) -> arb:
    """A power of an interval from 0 up: it grows from one end to the other."""
    low, high = z.lower(), z.upper()
    least = low ** arb_of(exponent) if low > 0 else arb(0)
    return least.union(high ** arb_of(exponent))


def hockey_stick(law: Ideal, epsilon: Fraction, moved: arb, width: arb) -> arb:
    """A lower bound on sup P[Z in T] - exp(epsilon) P[moved + width Z in T]: cell by cell."""
    total, factor = arb(0), arb_of(epsilon).exp()
    edges = [arb_of(Fraction(i, 24)) for i in range(-24 * 40, 24 * 40 + 1)]
    mine = [law.below(z) for z in edges]
    other = [law.below((z - moved) / width) for z in edges]
    ends = zip([(arb(0), arb(0)), *zip(mine, other, strict=True)],
               [*zip(mine, other, strict=True), (arb(1), arb(1))], strict=True)  # fmt: skip
    for (p, q), (p_next, q_next) in ends:
        total += (p_next - p - factor * (q_next - q)).max(arb(0))
    return total


@pytest.mark.parametrize("law", [IdealLaplace(), IdealGaussian()], ids=repr)
@pytest.mark.parametrize(("epsilon", "delta"), [("1/2", "1e-3"), ("2", "1e-6")])
def test_approximate_noise_keeps_its_promise(law: Ideal, epsilon: str, delta: str) -> None:
    chosen = admissible(law, epsilon=epsilon, delta=delta)
    assert spent(law, chosen, Fraction(1), Fraction(1)) <= float(chosen.delta)


@pytest.mark.parametrize("law", [IdealLaplace(), IdealGaussian()], ids=repr)
@pytest.mark.parametrize("factors", [(2, 1), (1, 2)])
def test_twice_the_alpha_or_the_beta_is_refused(law: Ideal, factors: tuple[int, int]) -> None:
    chosen = admissible(law, epsilon="1/2", delta="1e-3")
    assert spent(law, chosen, *map(Fraction, factors)) > float(chosen.delta)


def spent(law: Ideal, chosen: Admissible, more_alpha: Fraction, more_beta: Fraction) -> float:
    with working_precision(128):
        worst_case = arb(0)
        for sign in (-1, 0, 1):
            width = (sign * arb_of(chosen.beta * more_beta)).exp()
            for part in (Fraction(0), Fraction(1)):
                # counted in widths of the law that is gone to: |f(x)-f(y)| <= S(y)
                moved = arb_of(chosen.alpha * more_alpha * part) * width.min(arb(1))
                cost = hockey_stick(law, chosen.epsilon, moved, width)
                worst_case = worst_case.max(cost)
        return lower(Ball(worst_case))


def test_two_steps_cost_more_than_the_sum_of_their_deltas() -> None:
    """Three laws on {0, 1}, each step tight: Lemma 2.6 of the source would promise 2d."""
    with working_precision(128):
        grown, d = arb_of(Fraction(1, 2)).exp(), arb_of(Fraction(1, 100))
        first, middle, last = d * (1 + grown), d, arb(0)  # the probabilities of 1
        for p, q in ((first, middle), (middle, last)):
            assert (p - grown * q).overlaps(d)
            assert (1 - p) <= grown * (1 - q) + d  # the other event
        assert first - grown**2 * last > 2 * d


def test_the_constants_are_not_worse_than_the_published_ones() -> None:
    """Nissim, Raskhodnikova, Smith 2007, for epsilon = 1 and delta = 1e-6."""
    from math import log, sqrt

    cauchy = admissible("cauchy", epsilon=1)
    assert min(cauchy.alpha, cauchy.beta) > Fraction(1, 6)
    laplace = admissible("laplace", epsilon=1, delta="1e-6")
    assert laplace.alpha == Fraction(1, 2)
    assert float(laplace.beta) > 1 / (2 * log(2e6))
    gaussian = admissible("gaussian", epsilon=1, delta="1e-6")
    assert float(gaussian.alpha) > 1 / (5 * sqrt(2 * log(2e6)))
    assert float(gaussian.beta) > 1 / (4 * (1 + log(2e6)))


def test_cauchy_is_the_tail_of_exponent_two_and_student_of_one_degree() -> None:
    known = admissible("cauchy", epsilon="3/7")
    for same in (PolynomialTail(2), StudentT(1)):
        other = admissible(same, epsilon="3/7")
        assert (other.alpha, other.beta) == (known.alpha, known.beta)


@settings(max_examples=30, deadline=None)
@given(
    st.fractions("1/100", 20, max_denominator=100),
    st.fractions("1/100000", "1/3", max_denominator=10**6).filter(lambda d: d > 0),
    st.sampled_from(["laplace", "gaussian"]),
)
def test_both_are_positive_and_dilation_is_never_dearer_than_its_share(
    epsilon: Fraction, delta: Fraction, noise: str
) -> None:
    chosen = admissible(noise, epsilon=epsilon, delta=delta)
    assert chosen.alpha > 0
    assert 0 < chosen.beta <= epsilon / 2


@pytest.mark.parametrize(("epsilon", "delta"), [(1, "1e-400"), (2000, "1e-6"), ("1e-4", "1e-4000")])
def test_deltas_below_all_floats(epsilon: Any, delta: str) -> None:
    """exp(-epsilon/2) delta/2 is no float; the two steps are counted all the same."""
    chosen = admissible("gaussian", epsilon=epsilon, delta=delta)
    half = chosen.epsilon / 2
    with working_precision(512):
        sliding = gaussian_sliding(arb_of(chosen.alpha), arb_of(half))
        dilation = gaussian_dilation(arb_of(chosen.beta), arb_of(half))
        total = dilation + arb_of(half).exp() * sliding
        assert total <= arb_of(chosen.delta)
        assert total >= arb_of(chosen.delta * Fraction(999, 1000))


REFUSED: list[tuple[Callable[[], Admissible], type[Exception], str]] = [
    (lambda: admissible("laplace", epsilon=1), InvalidParameter, "delta is needed"),
    (lambda: admissible("cauchy", epsilon=1, delta="1e-6"), InvalidParameter, "of no use"),
    (lambda: admissible("cauchy", epsilon=0), InvalidParameter, "epsilon"),
    (lambda: admissible("cauchy", epsilon=1, share=1), InvalidParameter, "share"),
    (lambda: admissible("laplace", epsilon=1, delta=0), InvalidParameter, "delta"),
    (lambda: admissible("laplace", epsilon=1, delta=1), InvalidParameter, "delta"),
    (lambda: admissible("uniform", epsilon=1), WrongType, "noise"),
    (lambda: admissible(Gumbel(), epsilon=1), WrongType, "noise"),
    (lambda: admissible(Logistic(), epsilon=1), WrongType, "noise"),
    (lambda: admissible(None, epsilon=1), WrongType, "noise"),
    (lambda: admissible(StudentT("1/17"), epsilon=1), InvalidParameter, "heavy"),
    (lambda: admissible(PolynomialTail("18/17"), epsilon=1), InvalidParameter, "heavy"),
    (lambda: admissible("gaussian", epsilon=10**6, delta="1e-6"), InvalidParameter, "epsilon"),
]


@pytest.mark.parametrize(("call", "kind", "words"), REFUSED)
def test_bad_parameters_are_refused(
    call: Callable[[], Admissible], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        call()
