"""Moments on a sample: the quadrature against rigorous integrals, and the floats against balls."""

from fractions import Fraction

import pytest
from flint import acb, arb

from lastbit.exact import arb_of, working_precision
from lastbit.privacy import LaplaceLoss, SubsampledGaussianLoss, SubsampledLaplaceLoss
from lastbit.privacy.accounting.subsampling import SampledLaplace, SampledNormal

COMPONENTS = [
    kind(Fraction(rate), removed, Fraction(noise))
    for kind in (SampledNormal, SampledLaplace)
    for rate, noise in (("0.2", "1"), ("0.01", "1/4"), ("1/2", "3"))
    for removed in (True, False)
]


def integrated(component, z):
    """The moment by Arb's own integration."""
    q = arb_of(component.rate)
    power = z + 1 if component.removed else -z
    if isinstance(component, SampledNormal):
        v = arb_of(1 / component.mu_squared)

        def inner(x, _):
            base = 1 - q + q * ((2 * x - 1) / (2 * v)).exp()
            return (-x * x / (2 * v)).exp() * (power * base.log()).exp()

        reach = 40 * v.sqrt() + abs(z).upper()
        return acb.integral(inner, -reach, reach) / (2 * arb.pi() * v).sqrt()
    loss = arb_of(component.epsilon)

    def raised(x):
        return (power * (1 - q + q * x.exp()).log()).exp()

    def density(x, _):
        return (-(x + loss) / 2).exp() / 4 * raised(x)

    ends = raised(acb(-loss)) / 2 + (-loss).exp() * raised(acb(loss)) / 2
    return ends + acb.integral(density, -loss, loss)


@pytest.mark.parametrize("component", COMPONENTS, ids=repr)
def test_moments_hold_the_integral(component):
    with working_precision(128):
        for order, time in ((0.5, 0), (3, 0), (3, 2.5), (12, 7), (1, 30), (40, 0)):
            z = acb(order, time)
            found, exact = component.moment(z), integrated(component, z)
            assert found.overlaps(exact)
            # to so many bits of M(c), not of M(z), which may be much smaller
            most = component.moment(acb(order)).real
            assert found.real.rad() + found.imag.rad() < most * arb(2) ** -60


@pytest.mark.parametrize("component", COMPONENTS, ids=repr)
def test_lines_of_floats_hold_the_balls(component):
    with working_precision(128):
        line = component.along(arb(3))
        step = arb(0.37)
        for n, value in enumerate(line.values(step, 5, 40), 5):
            exact = component.moment(acb(arb(3), step * n))
            assert value.overlaps(exact)
            assert value.real.rad() < arb(2) ** -42 * line.real
            size = (exact.abs_lower() / line.real).lower()
            assert size <= line.bound(step * n)
            assert size <= line.decay(step * n)


@pytest.mark.parametrize("component", COMPONENTS, ids=repr)
def test_a_bound_holds_over_the_whole_run(component):
    with working_precision(128):
        line = component.along(arb(2))
        for left, right in ((0.5, 1.5), (3.0, 9.0), (20.0, 21.0)):
            bound = line.bound(arb(left).union(arb(right)))
            for i in range(11):
                t = arb(left + (right - left) * i / 10)
                assert (component.moment(acb(arb(2), t)).abs_lower() / line.real).lower() <= bound


def test_sampling_everything_is_no_sampling():
    assert (5 * SubsampledLaplaceLoss(1, "0.3")).epsilon("1e-3") == (
        5 * LaplaceLoss("0.3")
    ).epsilon("1e-3")


def test_sampling_helps():
    plain = (50 * SubsampledGaussianLoss(1, 1)).epsilon("1e-6")
    sampled = (50 * SubsampledGaussianLoss("0.1", 1)).epsilon("1e-6")
    rare = (50 * SubsampledGaussianLoss("0.02", 1)).epsilon("1e-6")
    assert rare[1] < sampled[0] < sampled[1] < plain[0]
