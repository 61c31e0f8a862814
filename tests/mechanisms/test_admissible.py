"""Every admissible noise, in two steps or at once, judged by balls; larger ones are refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from math import exp
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
from lastbit.mechanisms.admissible_noise import (
    Admissible,
    admissible,
    gaussian_dilation,
    gaussian_excess,
    joint_alpha,
    joint_delta,
    laplace_dilation,
    laplace_excess,
)
from tests.evidence import late

STUDENT = [StudentT(Fraction(1, 2)), IdealCauchy(), StudentT(3), StudentT(8)]
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
        lower(Ball(loss(law, z, moved * min(Fraction(1), Fraction(exp(dilated))), dilated)))
        for z in PLACES
        for moved in (alpha, alpha / 2, Fraction(0))  # in widths of the narrower law
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


def degrees_of(law: Ideal) -> Fraction:
    return law.degrees if isinstance(law, StudentT) else Fraction(1)


def joint_loss(degrees: Fraction, alpha: arb, t: Fraction) -> arb:
    """The greatest loss for widths exp(t) apart and values as far apart as they may be."""
    apart = arb_of(t).cosh() + (-arb_of(t)).exp() * alpha**2 / (2 * arb_of(degrees))
    return (arb_of(degrees + 1) * apart.acosh() + arb_of(abs(degrees - 1) * t)) / 2


@pytest.mark.parametrize("t", ["0", "1/100", "1", "7/2"])
@pytest.mark.parametrize("moved", ["1/1000", "1/2", "9"])
def test_the_greatest_ratio_of_two_poisson_kernels_is_their_hyperbolic_distance(
    t: str, moved: str
) -> None:
    """k P - P' keeps its sign for all z exactly if a quadratic has no root: its discriminant."""
    with working_precision(192):
        width, place = arb_of(Fraction(t)).exp(), arb_of(Fraction(moved))
        distance = (1 + (place**2 + (width - 1) ** 2) / (2 * width)).acosh()
        for narrow, wide in ((arb(1), width), (width, arb(1))):
            for off, inside in ((Fraction(1, 10**12), True), (Fraction(-1, 10**12), False)):
                ratio = distance.exp() * arb_of(1 + off)
                # ratio * narrow ((z - place)**2 + wide**2) - wide (z**2 + narrow**2) = a z**2 + ...
                a = ratio * narrow - wide
                b = -2 * ratio * narrow * place
                c = ratio * narrow * (place**2 + wide**2) - wide * narrow**2
                never_below = bool(a > 0) and bool(b * b - 4 * a * c < 0)
                assert never_below == inside
                assert inside or bool(b * b - 4 * a * c > 0) or bool(a < 0)


@pytest.mark.parametrize("law", STUDENT, ids=repr)
@pytest.mark.parametrize("epsilon", ["1/1000", "1", "10"])
@pytest.mark.parametrize("share", ["auto", "1/64", "1/2", "63/64"])
def test_student_noise_spends_all_of_epsilon_and_no_more(
    law: Ideal, epsilon: str, share: str
) -> None:
    chosen, degrees = admissible(law, epsilon=epsilon, share=share), degrees_of(law)
    assert chosen.beta * max(Fraction(1), degrees) < chosen.epsilon
    widths = [chosen.beta * Fraction(i, 50) for i in range(51)]
    with working_precision(192):
        alpha = arb_of(chosen.alpha)
        assert all(joint_loss(degrees, alpha, t) <= arb_of(chosen.epsilon) for t in widths)
        more = alpha * arb_of(1 + Fraction(1, 10**9))
        assert any(joint_loss(degrees, more, t) > arb_of(chosen.epsilon) for t in widths)


@pytest.mark.parametrize("law", STUDENT, ids=repr)
def test_the_joint_loss_is_met_by_the_densities(law: Ideal) -> None:
    """The formula against the densities themselves: never above it, and near it somewhere."""
    chosen, degrees = admissible(law, epsilon=1), degrees_of(law)
    for t in (Fraction(0), chosen.beta / 2, chosen.beta):
        with working_precision(192):
            most = joint_loss(degrees, arb_of(chosen.alpha), t)
        # the worst order: towards the narrower law where the tails rule (degrees >= 1)
        found = max(
            lower(Ball(loss(law, z, chosen.alpha * least, dilated)))
            for z in (Fraction(i, 64) for i in range(-1280, 1281) if i)
            for dilated in (t, -t)
            for least in [min(Fraction(1), Fraction(exp(dilated)))]
        )
        assert float(most) - 2e-4 < found <= float(most)


@pytest.mark.parametrize(("epsilon", "beta", "lost"), [("1", "1/2", 1.11), ("3", "27/10", 4.3)])
def test_the_width_at_beta_alone_does_not_tell_alpha(epsilon: str, beta: str, lost: float) -> None:
    """A mutant: alpha**2 = 2 exp(beta) (cosh epsilon - cosh beta). Equal widths lose more."""
    with working_precision(192):
        e, b = arb_of(Fraction(epsilon)), arb_of(Fraction(beta))
        alpha = (2 * b.exp() * (e.cosh() - b.cosh())).sqrt()
        assert joint_loss(Fraction(1), alpha, Fraction(beta)).overlaps(e)
        assert float(joint_loss(Fraction(1), alpha, Fraction(0))) > lost
        assert joint_alpha(Fraction(1), Fraction(epsilon), Fraction(beta)) < alpha
        assert worst(IdealCauchy(), Fraction(lower(alpha)), Fraction(0)) > float(e)


@pytest.mark.parametrize("law", STUDENT, ids=repr)
@pytest.mark.parametrize("epsilon", ["1e-300", "1e-6", "1", "10", "2000", "1e9"])
def test_one_step_never_needs_more_noise_than_two(law: Ideal, epsilon: str) -> None:
    degrees = float(degrees_of(law))
    for share in ("1/64", "1/2", "63/64"):
        chosen = admissible(law, epsilon=epsilon, share=share)
        two_steps = float(chosen.epsilon * Fraction(share)) * 2 * degrees**0.5 / (degrees + 1)
        assert float(chosen.alpha) >= two_steps * (1 - 1e-12)
        assert chosen.beta == chosen.epsilon * (1 - Fraction(share)) / max(
            Fraction(1), degrees_of(law)
        )


def test_the_share_is_chosen_for_evenly_spread_records() -> None:
    for law in STUDENT:
        for epsilon in ("1e-300", "1e-6", "1", "5"):
            best = admissible(law, epsilon=epsilon)
            for share in ("1/8", "1/4", "1/2", "3/4"):
                other = admissible(law, epsilon=epsilon, share=share)
                assert quality(best) >= quality(other) * Fraction(99, 100)


def quality(chosen: Admissible) -> Fraction:
    """alpha/S(beta) where records lie 1 apart."""
    steps = range(40) if chosen.beta > Fraction(1, 10) else [int(1 / chosen.beta)]
    smooth = max((k + 1) * Fraction(exp(-chosen.beta * k)) for k in steps)
    return chosen.alpha / smooth


@pytest.mark.parametrize("law", PURE[1:4], ids=repr)
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
        case PolynomialTail(gamma=gamma):
            grown = power(z, gamma)
            return (
                arb_of(gamma) * power(z, gamma - 1) / (1 + grown),
                1 - arb_of(gamma) + arb_of(gamma) / (1 + grown),
            )
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
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_deltas_below_all_floats(noise: str, epsilon: Any, delta: str) -> None:
    """exp(-epsilon/2) delta/2 is no float; place and width are counted all the same."""
    chosen = admissible(noise, epsilon=epsilon, delta=delta)
    with working_precision(512):
        total = joint_delta(chosen.law, chosen.alpha, chosen.beta, chosen.epsilon)
        assert total <= arb_of(chosen.delta)
        assert total >= arb_of(chosen.delta / 3)


EXCESS = {IdealLaplace(): laplace_excess, IdealGaussian(): gaussian_excess}
PAIRS = [(m, t) for m in ("1/10", "1/2", "2") for t in ("-1/2", "-1/20", "0", "1/20", "1/2")]


@pytest.mark.parametrize("law", list(EXCESS), ids=repr)
def test_the_excess_is_that_of_the_laws(law: Ideal) -> None:
    """By cells of a grid, which never see more than there is; and farther is worse."""
    excess = EXCESS[law]
    with working_precision(128):
        for epsilon in (Fraction(1, 4), Fraction(1)):
            for moved, dilated in PAIRS:
                m, t = arb_of(Fraction(moved)), arb_of(Fraction(dilated))
                found = excess(m, t, arb_of(epsilon))
                if law == IdealLaplace() and Fraction(dilated) > epsilon + Fraction(moved):
                    assert found == 1  # nothing is claimed
                    continue
                seen = hockey_stick(law, epsilon, m, t.exp())
                assert not seen > found + arb_of(Fraction(1, 10**20))
                assert found <= seen * arb_of(Fraction(103, 100)) + arb_of(Fraction(1, 10**4))
                assert not found > excess(m * arb_of(Fraction(11, 10)), t, arb_of(epsilon))


@pytest.mark.parametrize("law", list(EXCESS), ids=repr)
@pytest.mark.parametrize(("epsilon", "delta"), [("1/2", "1e-3"), ("1", "1e-6"), ("5", "1/10")])
def test_the_pieces_cover_every_width_between(law: Ideal, epsilon: str, delta: str) -> None:
    """No width has more than `joint_delta`; the claim is nearly used up, so 2 % more is refused."""
    excess = EXCESS[law]
    chosen = admissible(law, epsilon=epsilon, delta=delta)
    assert chosen.beta < chosen.epsilon / 2
    with working_precision(128):
        bound = joint_delta(law, chosen.alpha, chosen.beta, chosen.epsilon)
        assert bound <= arb_of(chosen.delta)
        assert worst_excess(excess, chosen, Fraction(1)) <= bound
        assert worst_excess(excess, chosen, Fraction(1)) > arb_of(chosen.delta * Fraction(9, 10))
        assert worst_excess(excess, chosen, Fraction(51, 50)) > arb_of(chosen.delta)


def worst_excess(excess: Callable[..., arb], chosen: Admissible, more: Fraction) -> arb:
    found, epsilon = arb(0), arb_of(chosen.epsilon)
    for part in range(-97, 98):
        t = arb_of(chosen.beta * more * Fraction(part, 97))
        found = found.max(excess(arb_of(chosen.alpha) * t.exp().min(arb(1)), t, epsilon))
    return found


@pytest.mark.parametrize(("epsilon", "delta"), [("1/2", "1e-3"), ("1", "1e-6"), ("1/10", "1e-9")])
def test_both_at_once_never_need_more_noise_than_two_steps(epsilon: str, delta: str) -> None:
    half, chance = Fraction(epsilon) / 2, Fraction(delta)
    with working_precision(256):
        laplace = admissible("laplace", epsilon=epsilon, delta=delta)
        assert laplace_dilation(arb_of(laplace.beta), arb_of(half)) > arb_of(chance)
        gaussian = admissible("gaussian", epsilon=epsilon, delta=delta)
        assert gaussian_dilation(arb_of(gaussian.beta), arb_of(half)) > arb_of(chance / 2)


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


# -- several numbers at once --
def worst_loss(degrees: float, alpha: float, t: float, dimension: int) -> float:
    """The greatest loss of d draws of Student's t, over all ways to share alpha out.

    The distance of one coordinate is convex, then concave in what it moves by. So the worst has m
    coordinates that move alike, one that moves less, and the rest do not move at all.
    """

    def distance(moved: float) -> float:
        return math.acosh(math.cosh(t) + math.exp(-t) * moved**2 / (2 * degrees))

    best = 0.0
    for alike in range(1, dimension + 1):
        for part in range(101 if alike < dimension else 1):
            less = alpha * part / 100 / (alike + 1)
            total = alike * distance((alpha - less) / alike)
            total += distance(less) * (alike < dimension) + max(dimension - alike - 1, 0) * t
            best = max(best, total)
    return (degrees + 1) / 2 * best + dimension * abs(degrees - 1) / 2 * t


@pytest.mark.parametrize("dimension", [2, 3, 10])
@pytest.mark.parametrize("epsilon", ["0.1", "1", "4"])
@pytest.mark.parametrize("law", STUDENT, ids=repr)
def test_several_numbers_spend_no_more_than_epsilon(
    law: Ideal, epsilon: str, dimension: int
) -> None:
    chosen = admissible(law, epsilon=epsilon, dimension=dimension)
    degrees = float(chosen.law.degrees) if isinstance(chosen.law, StudentT) else 1.0
    alpha, beta = float(chosen.alpha), float(chosen.beta)
    losses = [
        worst_loss(degrees, alpha, beta * step / 20, dimension) / float(Fraction(epsilon))
        for step in range(21)
    ]
    assert 0.85 < max(losses) <= 1 + 1e-12
    # the promise is not kept by the alpha of one number, nor by a beta that forgets the dimension
    alone = admissible(law, epsilon=epsilon, share="1/2")
    together = admissible(law, epsilon=epsilon, share="1/2", dimension=dimension)
    assert worst_loss(degrees, float(together.alpha), float(alone.beta), dimension) > float(
        Fraction(epsilon)
    )


@pytest.mark.parametrize("law", [IdealCauchy(), StudentT(3)], ids=repr)
@pytest.mark.parametrize("dimension", [2, 5])
def test_the_loss_of_several_numbers_is_met_by_the_densities(law: Ideal, dimension: int) -> None:
    """Ratios of densities, by balls over many places: one coordinate moves, or all of them do."""
    chosen = admissible(law, epsilon=1, dimension=dimension)
    found = []
    with working_precision(128):
        for wider in (1, arb_of(chosen.beta).exp()):
            for alike in (1, dimension):
                moved = arb_of(chosen.alpha) / alike
                losses = []
                for far in (moved, arb(0)):
                    pairs = [
                        (density(law, z), density(law, (z - far) / wider) / wider)
                        for z in (arb(step) / 40 for step in range(-800, 801))
                    ]
                    losses.append(max(float(abs((p / q).log())) for p, q in pairs))
                found.append(alike * losses[0] + (dimension - alike) * losses[1])
    assert 0.85 < max(found) <= 1


def erlang_excess(beta: float, epsilon: float, dimension: int, steps: int = 40_000) -> float:
    """The integral of max(0, p - exp(epsilon) q) over the L1 norm of d draws of Laplace's law."""
    total, width = 0.0, 60.0 / steps
    scale = math.exp(beta)
    for step in range(steps):
        r = (step + 0.5) * width
        shape = r ** (dimension - 1) / math.factorial(dimension - 1)
        p, q = shape * math.exp(-r), shape * scale**dimension * math.exp(-scale * r)
        total += max(0.0, p - math.exp(epsilon) * q) * width
    return total


@pytest.mark.parametrize("dimension", [1, 2, 6])
@pytest.mark.parametrize(("beta", "epsilon"), [(0.3, 0.5), (0.1, 0.2)])
def test_dilation_of_several_draws_of_laplace_noise(
    beta: float, epsilon: float, dimension: int
) -> None:
    with working_precision(128):
        exact = float(laplace_dilation(arb(beta), arb(epsilon), dimension))
    assert exact == pytest.approx(erlang_excess(beta, epsilon, dimension), rel=1e-4)


@pytest.mark.parametrize("dimension", [2, 4, 6])
def test_dilation_of_several_draws_of_gaussian_noise(dimension: int) -> None:
    """An even number of normal draws has half its squared norm by Erlang's law."""
    with working_precision(128):
        for beta, epsilon in ((0.3, 0.5), (0.05, 0.2)):
            normal = gaussian_dilation(arb(beta), arb(epsilon), dimension)
            half = dimension // 2
            place = (arb(epsilon) + dimension * arb(beta)) / (2 * arb(beta)).expm1()
            tails = []
            for at in (place, place * (2 * arb(beta)).exp()):
                terms = [at**k / arb.fac_ui(k) for k in range(half)]
                tails.append((-at).exp() * sum(terms, arb(0)))
            assert normal.overlaps(tails[0] - arb(epsilon).exp() * tails[1])


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("dimension", [2, 7, 100])
def test_approximate_noise_on_several_numbers(noise: str, dimension: int) -> None:
    chosen = admissible(noise, epsilon=1, delta="1e-6", dimension=dimension)
    cost = laplace_dilation if noise == "laplace" else gaussian_dilation
    share = 1 if noise == "laplace" else 2
    with working_precision(128):
        half = arb(1) / 2
        assert cost(arb_of(chosen.beta), half, dimension) <= arb_of(chosen.delta) / share
        assert chosen.beta * dimension <= Fraction(1, 2)
    alone = admissible(noise, epsilon=1, delta="1e-6")
    assert chosen.alpha == alone.alpha
    assert chosen.beta < alone.beta


@pytest.mark.parametrize("noise", ["cauchy", "student", PolynomialTail(3)])
def test_more_numbers_take_more_noise(noise: Any) -> None:
    found = [admissible(noise, epsilon=2, share="1/2", dimension=d) for d in (1, 2, 3, 8, 64)]
    assert all(a.beta > b.beta for a, b in pairwise(found))
    assert all(a.alpha >= b.alpha for a, b in pairwise(found))


@pytest.mark.parametrize("dimension", [0, -1, 1.5, "2", True, 1 << 20])
def test_a_bad_dimension_is_refused(dimension: Any) -> None:
    with pytest.raises((InvalidParameter, WrongType)):
        admissible("cauchy", epsilon=1, dimension=dimension)
