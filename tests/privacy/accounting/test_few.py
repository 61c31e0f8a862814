"""Few releases about samples: polynomials, integrals and closed forms against each other."""

import math
from fractions import Fraction

import pytest
from flint import acb, arb

from lastbit.exact import arb_of, working_precision
from lastbit.privacy import (
    ADD_REMOVE,
    ApproxLoss,
    BoundedRangeLoss,
    GaussianLoss,
    LaplaceLoss,
    SubsampledGaussianLoss,
    SubsampledLaplaceLoss,
)
from lastbit.privacy.accounting import pair as pairs, splines as cells
from lastbit.privacy.accounting.component import (
    Atoms,
    Component,
    DoubleExponential,
    Normal,
    Response,
)
from lastbit.privacy.accounting.composition import Composition, Guide
from lastbit.privacy.accounting.engine import _atoms_apart
from lastbit.privacy.accounting.pair import pair
from lastbit.privacy.accounting.single import closed
from lastbit.privacy.accounting.splines import splines
from lastbit.privacy.accounting.subsampling import SampledLaplace, SampledNormal, _next, by_parts

LAPLACE = [
    SampledLaplace(Fraction(rate), removed, Fraction(loss))
    for rate, loss in (("1/2", "1.231"), ("0.001", "2"), ("0.9", "0.1"), ("0.1", "4"))
    for removed in (True, False)
]
NORMAL = [
    SampledNormal(Fraction(rate), removed, Fraction(spread))
    for rate, spread in (("1/5", "1"), ("1/2", "1/9"), ("1/1000", "4"))
    for removed in (True, False)
]


def places(composition):
    """Some x below the greatest loss, and the size of D there as floats see it."""
    ceiling = composition.ceiling()
    top = 3.0 if ceiling is None else float(ceiling.mid())
    for share in (0.0, 0.1, 0.45, 0.8):
        x = round(share * top, 9)
        order = min(composition.guide.for_epsilon(x), 1e4)
        yield Fraction(x), order, composition.guide.size(order, x)[0]


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


def few_of(composition: Composition, order: float, x: float) -> cells.Splines:
    found = splines(composition, order, x)
    assert found is not None
    return found


@pytest.mark.parametrize("component", LAPLACE, ids=repr)
def test_polynomials_hold_the_closed_form_of_one_release(component):
    composition = Composition.of([(component, 1)])
    for x, order, _ in places(composition):
        low, high = few_of(composition, order, float(x)).bounds(x)
        assert_agree((low, high), closed_ends(component, x))
        assert_narrow(low, high, 1e-12)


@pytest.mark.parametrize("component", LAPLACE, ids=repr)
def test_polynomials_and_integrals_agree_about_two_releases(component):
    for parts in (
        [(component, 2)],
        [(component, 1), (DoubleExponential(Fraction(1, 3)), 1)],
        [(component, 1), (SampledLaplace(Fraction(1, 7), component.removed, Fraction(1)), 1)],
    ):
        composition = Composition.of(parts)
        for x, order, size in places(composition):
            few, both = splines(composition, order, float(x)), pair(composition, size)
            assert both is not None
            if few is not None:  # rare samples take too many cells
                assert_agree(few.bounds(x), both.bounds(x))
                assert_narrow(*few.bounds(x), 1e-10)
            assert_narrow(*both.bounds(x), 1e-9)


def test_an_integral_of_gaussian_noise_alone_is_the_closed_form():
    parts = SampledNormal(Fraction(1), True, Fraction(1, 2)), Normal(Fraction(1, 4))
    each = tuple((part, 1) for part in parts)
    both = both_of(Composition(each, (), Guide(each)), -10.0)
    for x in (Fraction(0), Fraction(1), Fraction(3)):
        assert_agree(both.bounds(x), closed_ends(Normal(Fraction(3, 4)), x))
        assert_narrow(*both.bounds(x), 1e-9)


def test_three_releases_by_an_integral_of_two():
    """Polynomials for three, and for two averaged over an atom each."""
    component = LAPLACE[0]
    three = Composition.of([(component, 2), (Response(Fraction(1, 2)), 1)])
    two = Composition.of([(component, 2)])
    few = few_of(three, 3.0, 0.7)
    with working_precision(128):
        keep = 1 / (1 + (-arb_of(Fraction(1, 2))).exp())
        ends = [
            both_of(two, -3.0).bounds(x) for x in (Fraction(7, 10) - Fraction(1, 2), Fraction(6, 5))
        ]
        low, high = (keep * ends[0][side] + (1 - keep) * ends[1][side] for side in (0, 1))
    assert_agree(few.bounds(Fraction(7, 10)), (low.lower(), high.upper()))


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
        (3 * SubsampledGaussianLoss("0.5", 1), 1e-9),
        (4 * SubsampledGaussianLoss("0.2", 1), 1e-9),
        (2 * SubsampledLaplaceLoss("0.5", "1.231"), 1e-12),
        (4 * SubsampledLaplaceLoss("0.5", "1.231"), 1e-12),
        (2 * SubsampledGaussianLoss("0.2", 1), 1e-9),
        (SubsampledGaussianLoss("0.01", 1) + SubsampledLaplaceLoss("0.3", "0.5"), 1e-9),
        (SubsampledLaplaceLoss("0.5", 1) + LaplaceLoss("1/3", neighbours=ADD_REMOVE), 1e-12),
        (SubsampledLaplaceLoss("0.5", 1) + ApproxLoss("1/3", neighbours=ADD_REMOVE), 1e-12),
        (
            2 * SubsampledLaplaceLoss("0.5", 1) + BoundedRangeLoss("1/3", neighbours=ADD_REMOVE),
            1e-12,
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
    composition = Composition.of([(LAPLACE[0], 2)])
    x = Fraction(1, 2)
    few, both = few_of(composition, 3.0, 0.5), both_of(composition, -2.0)
    wrong = _Heavier(both.first, both.second, both.size, composition)
    assert_agree(few.bounds(x), both.bounds(x))
    assert wrong.bounds(x)[0] > few.bounds(x)[1]


def test_what_is_left_out_counts(monkeypatch):
    """With polynomials of degree 3 the bounds are wide, and hold."""
    composition = Composition.of([(LAPLACE[0], 2)])
    exact = few_of(composition, 3.0, 0.5).bounds(Fraction(1, 2))
    monkeypatch.setattr(cells, "DEGREE", 3)
    monkeypatch.setattr(cells, "_BITS", 12)
    low, high = few_of(composition, 3.0, 0.5).bounds(Fraction(1, 2))
    assert low < exact[0] <= exact[1] < high
    with working_precision(64):
        assert high - low > high * arb(1e-8)


@pytest.mark.parametrize("removed", [True, False])
def test_atoms_apart_are_the_composition(removed):
    """Randomised response, and a finite law with irrational losses, beside one and two samples."""
    finite = Atoms(((Fraction(1, 3), Fraction(1, 2)), (Fraction(2, 3), Fraction(1, 2))))
    laplace = SampledLaplace(Fraction(1, 2), removed, Fraction(1))
    for atoms in (Response(Fraction(1, 3)), finite):
        for count in (1, 2):
            composition = Composition.of([(laplace, count), (atoms, 1)])
            for x, order, _ in places(composition):
                apart = _atoms_apart(composition, float(x))
                few = splines(composition, order, float(x))
                assert apart is not None and few is not None
                assert_agree(apart(x), few.bounds(x))
                assert_narrow(*apart(x), 1e-9)
