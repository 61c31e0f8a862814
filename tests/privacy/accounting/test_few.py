"""Few releases about samples: an integral of two against closed forms, and narrow bounds."""

import math
from fractions import Fraction

import pytest
from flint import acb, arb

from lastbit.exact import working_precision
from lastbit.privacy import (
    ADD_REMOVE,
    ApproxLoss,
    BoundedRangeLoss,
    GaussianLoss,
    LaplaceLoss,
    SubsampledGaussianLoss,
    SubsampledLaplaceLoss,
)
from lastbit.privacy.accounting import pair as pairs
from lastbit.privacy.accounting.component import (
    Component,
    Normal,
)
from lastbit.privacy.accounting.composition import Composition, Guide
from lastbit.privacy.accounting.pair import pair
from lastbit.privacy.accounting.single import closed
from lastbit.privacy.accounting.subsampling import SampledNormal, _next, by_parts

NORMAL = [
    SampledNormal(Fraction(rate), removed, Fraction(spread))
    for rate, spread in (("1/5", "1"), ("1/2", "1/9"), ("1/1000", "4"))
    for removed in (True, False)
]


GAUSSIAN = ((SampledNormal(Fraction(1), True, Fraction(1, 2)), 1), (Normal(Fraction(1, 4)), 1))


def assert_narrow(low, high, part):
    with working_precision(100):
        assert high - low <= high * arb(part)


def assert_agree(one, other):
    assert one[0] <= other[1] and other[0] <= one[1]


def closed_ends(component: Component, x: Fraction) -> tuple[arb, arb]:
    """The ends of the closed form, which there must be."""
    with working_precision(128):
        exact = closed(component, x)
    assert exact is not None
    return exact.lower(), exact.upper()


def both_of(composition: Composition, size: float) -> pairs.Pair:
    found = pair(composition, size)
    assert found is not None
    return found


def test_an_integral_of_gaussian_noise_alone_is_the_closed_form():
    both = both_of(Composition(GAUSSIAN, (), Guide(GAUSSIAN)), -10.0)
    for x in (Fraction(0), Fraction(1), Fraction(3)):
        assert_agree(both.bounds(x), closed_ends(Normal(Fraction(3, 4)), x))
        assert_narrow(*both.bounds(x), 1e-9)


@pytest.mark.parametrize("component", NORMAL[:4], ids=repr)
def test_moments_decay_as_proved(component):
    with working_precision(128):
        for order in (0.5, 4, 30):
            constants = dict(by_parts(component, arb(order)))
            assert list(constants) == [2, 4, 6, 9, 12]
            for time in (1, 5, 20, 80):
                size = component.moment(acb(order, time)).abs_lower()
                assert all(size <= most / arb(time) ** k for k, most in constants.items())


def test_integrals_by_parts_are_those_of_the_polynomials():
    """h_1 and h_2 by the derivative itself, in floats."""
    component, order, s, q = NORMAL[0], 2.5, 1.0, 0.2

    def weight(x):
        b = 1 - q + q * math.exp((2 * x - 1) / (2 * s * s))
        return math.exp(-x * x / (2 * s * s)) * b ** (order + 1)

    def slope(x):  # of ln b
        raised = q * math.exp((2 * x - 1) / (2 * s * s))
        return raised / (1 - q + raised) / (s * s)

    def value(h, x):
        e = (1 - q) / q * math.exp((1 - 2 * x) / (2 * s * s))
        return sum(float(c) * x**n * e**m for (n, m), c in h.items())

    h = {(0, 0): arb(1)}
    for _ in range(2):
        after = _next(h, component.power(arb(order)), arb(s * s))
        for x in (-1.3, 0.2, 2.0):
            step = 1e-5
            up, down = (weight(at) * value(h, at) / slope(at) for at in (x + step, x - step))
            assert (up - down) / (2 * step) == pytest.approx(weight(x) * value(after, x), rel=1e-6)
        h = after


@pytest.mark.parametrize(
    ("profile", "width"),
    [
        (3 * SubsampledGaussianLoss("0.5", 1), 1e-3),
        (4 * SubsampledGaussianLoss("0.2", 1), 1e-3),
        (2 * SubsampledLaplaceLoss("0.5", "1.231"), 1e-12),
        (4 * SubsampledLaplaceLoss("0.5", "1.231"), 2e-3),
        (2 * SubsampledGaussianLoss("0.2", 1), 1e-9),
        (SubsampledGaussianLoss("0.01", 1) + SubsampledLaplaceLoss("0.3", "0.5"), 1e-9),
        (SubsampledLaplaceLoss("0.5", 1) + LaplaceLoss("1/3", neighbours=ADD_REMOVE), 1e-12),
        (SubsampledLaplaceLoss("0.5", 1) + ApproxLoss("1/3", neighbours=ADD_REMOVE), 2e-3),
        (
            2 * SubsampledLaplaceLoss("0.5", 1) + BoundedRangeLoss("1/3", neighbours=ADD_REMOVE),
            2e-3,
        ),
        (SubsampledLaplaceLoss("0.5", 1) + GaussianLoss("1/9", neighbours=ADD_REMOVE), 1e-9),
    ],
    ids=repr,
)
def test_few_releases_are_narrow(profile, width):
    for delta in ("1e-3", "1e-9"):
        low, high = profile.epsilon(delta)
        assert low <= high <= low * (1 + width)


class _Heavier(pairs.Pair):
    """A mutant: the density is too large by one in ten million."""

    __slots__ = ()

    def _weight(self, y):
        return super()._weight(y) * (1 + arb(1e-7))


def test_a_density_that_is_slightly_wrong_is_seen():
    both = both_of(Composition(GAUSSIAN, (), Guide(GAUSSIAN)), -10.0)
    wrong = _Heavier(both.first, both.second, both.size, both.composition)
    x = Fraction(1)
    exact = closed_ends(Normal(Fraction(3, 4)), x)
    assert_agree(both.bounds(x), exact)
    assert wrong.bounds(x)[0] > exact[1]
