"""Noise in cells: below and above the closed form, the integral and the line sum, and narrow."""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import acb, arb

from lastbit.exact import arb_of, working_precision
from lastbit.privacy import (
    ADD_REMOVE,
    ApproxLoss,
    LaplaceLoss,
    SubsampledGaussianLoss,
    SubsampledLaplaceLoss,
)
from lastbit.privacy.accounting import cells as module, engine
from lastbit.privacy.accounting.cells import Cells, InCells, Target, _atoms as atoms_of, in_cells
from lastbit.privacy.accounting.component import DoubleExponential
from lastbit.privacy.accounting.composition import Composition
from lastbit.privacy.accounting.contour import TooManyTerms, contour
from lastbit.privacy.accounting.engine import (
    _epsilon_directly,
    _epsilon_in_cells,
    _excess_in_cells,
)
from lastbit.privacy.accounting.pair import pair
from lastbit.privacy.accounting.single import closed
from lastbit.privacy.accounting.subsampling import SampledLaplace, SampledNormal

COMPONENTS = [
    kind(Fraction(rate), removed, Fraction(noise))
    for kind in (SampledNormal, SampledLaplace)
    for rate, noise in (("0.2", "1"), ("1e-4", "4"), ("1/2", "1/9"))
    for removed in (True, False)
]
X = [Fraction(n, 37) for n in (0, 1, 3, 9, 20, 40, 90)]


def coarse(component, split, high=3.0):
    """Twelve cells: wide ones, in which a wrong rule shows."""
    low, high = (-1.0, 1.0) if isinstance(component, SampledLaplace) else (-2.0, high)
    places = tuple(np.linspace(low, high, 12).tolist())
    return Cells(component.rate, component.removed, component, places, split)


def excess_of_atoms(cells, x):
    """D(x) of a pair of cells by its definition, and what is told of it."""
    rule, at = cells.rule(0.0, 0.0), arb_of(x)
    total = cells.infinite()
    for mass, log in zip(rule.weights, rule.logs, strict=True):
        loss = log if cells.removed else -log
        if loss > at:
            total += mass * (log.exp() if cells.removed else 1) * (1 - (at - loss).exp())
    return total


def bounds_by_atoms(component, x):
    """What the cells of one release say of D(x), from both sides."""
    joined, split = coarse(component, False), coarse(component, True)
    one = InCells(Composition.of([(joined, 1)]), Composition.of([(split, 1)]))
    return excess_of_atoms(joined, x) + one.beyond(x), excess_of_atoms(split, x)


def is_between(component):
    with working_precision(192):
        for x in X:
            low, high = bounds_by_atoms(component, x)
            exact = closed(component, x)
            assert exact is not None
            if not (low.lower() <= exact.upper() and exact.lower() <= high.upper()):
                return False
    return True


@pytest.mark.parametrize("component", COMPONENTS, ids=repr)
def test_one_release_lies_between_its_cells(component):
    assert is_between(component)


@pytest.mark.parametrize("component", COMPONENTS, ids=repr)
def test_cells_keep_both_masses(component):
    with working_precision(192):
        for split in (True, False):
            cells = coarse(component, split)
            rule = cells.rule(0.0, 0.0)
            bare = sum(rule.weights, arb(0))
            ratios = [log.exp() for log in rule.logs]
            sampled = sum((w * b for w, b in zip(rule.weights, ratios, strict=True)), arb(0))
            if cells.removed:
                sampled += cells.infinite()
                if not split:
                    q, p = cells.last_masses()
                    bare, sampled = bare + q, sampled + p
                assert abs(sampled - 1) < arb(2) ** -60
            assert abs(bare - 1) < arb(2) ** -60


def moved_to_the_right(inside, last, ratios):
    """A mutant: every outcome to the nearer end by its mass alone."""
    masses = [arb(0) for _ in ratios]
    for j, (q, _) in enumerate(inside):
        masses[j] += q / 2
        masses[j + 1] += q / 2
    masses[-1] += last[0]
    return list(zip(masses, ratios, strict=True)), arb(0)


def told_nothing(inside, last, ratios):
    """A mutant: what is beyond the last place has its ratio."""
    masses, _ = module_split(inside, last, ratios)
    return masses, arb(0)


module_split = module._split


@pytest.mark.parametrize("mutant", [moved_to_the_right, told_nothing])
def test_wrong_splits_are_seen(monkeypatch, mutant):
    monkeypatch.setattr(module, "_split", mutant)
    assert not all(is_between(component) for component in COMPONENTS)


def test_a_cell_that_has_the_ratio_of_its_right_end_is_seen(monkeypatch):
    def mutant(inside):
        found = [(q, p / q) for q, p in inside if q > 0]
        return [(q, e) for (q, _), (_, e) in zip(found, [*found[1:], found[-1]], strict=True)]

    monkeypatch.setattr(module, "_joined", mutant)
    assert not all(is_between(component) for component in COMPONENTS)


@pytest.mark.parametrize("component", COMPONENTS, ids=repr)
def test_moments_are_those_of_the_atoms(component):
    with working_precision(128):
        cells = coarse(component, True)
        rule = cells.rule(0.0, 0.0)
        for order, time in ((2, 0), (2, 3), (40, 11)):
            z = acb(order, time)
            power = z + 1 if cells.removed else -z
            terms = zip(rule.weights, rule.logs, strict=True)
            exact = sum((w * (power * log).exp() for w, log in terms), acb(0))
            line = cells.along(z.real)
            value = line.values(arb(1), time, 1)[0] if time else acb(line.real)
            assert value.overlaps(exact)
            assert value.real.rad() < line.real * arb(2) ** -40


@pytest.mark.parametrize("removed", [True, False])
def test_moments_of_rare_samples_are_known_to_more_than_floats(removed):
    """Nearly all shares are in a series: what floats leave open is far below their last place."""
    component = SampledNormal(Fraction(1, 10**6), removed, Fraction(25, 9))
    cells = coarse(component, True)
    rule = cells.rule(0.0, 0.0)
    with working_precision(192):
        for order, time in ((20, 1), (20, 700), (3, 20_000)):
            power = acb(order, time) + 1 if removed else -acb(order, time)
            terms = zip(rule.weights, rule.logs, strict=True)
            exact = sum((w * (power * log).exp() for w, log in terms), acb(0))
            value = cells.along(arb(order)).values(arb(time) / 2, 2, 1)[0]
            assert value.overlaps(exact)
            assert value.real.rad() < cells.along(arb(order)).real * arb(2) ** -53


@pytest.mark.parametrize("component", COMPONENTS, ids=repr)
def test_cells_hold_the_integral_of_two_releases(component):
    composition = Composition.of([(component, 2)])
    ceiling = composition.ceiling()
    top = 3.0 if ceiling is None else float(ceiling.mid())
    for share in (0.1, 0.4):
        x = Fraction(share * top)
        order = min(composition.guide.for_epsilon(float(x)), 1e4)
        both = pair(composition, composition.guide.size(order, float(x))[0])
        assert both is not None
        low, high = both.bounds(x)
        below, above = _excess_in_cells(composition, x)
        assert below <= high and low <= above
        with working_precision(100):
            assert above - below <= above * arb(0.03)


@pytest.mark.parametrize("slope", [None, 3.0, 30.0, 3000.0])
def test_what_lies_beyond_all_cells_is_neither_lost_nor_counted_twice(slope):
    """However near the cut, both bounds hold the exact value, and far ones are as narrow."""
    component = SampledNormal(Fraction(1, 100), True, Fraction(4))
    x = Fraction(1, 5)
    cells = in_cells(Composition.of([(component, 1)]), Target(float(x), -7.0, slope))
    with working_precision(192):
        joined, split = (part for one in cells for part, _ in one.parts)
        low = excess_of_atoms(joined, x) + cells.beyond(x)
        high = excess_of_atoms(split, x)
        exact = closed(component, x)
        assert exact is not None
        assert low <= exact <= high
        assert high - low < high * arb(1e-3)


def test_cells_agree_with_the_line_sum():
    composition = (20 * SubsampledGaussianLoss("1/5", 1))._directions()[0]
    for x in (Fraction(2), Fraction(5)):
        order = composition.guide.for_epsilon(float(x))
        size = composition.guide.size(order, float(x))[0]
        low, high = contour(composition, order, float(x), size).bounds(x)
        below, above = _excess_in_cells(composition, x)
        assert below <= high and low <= above
        with working_precision(100):
            assert above - below <= above * arb(2e-3)


def test_samples_beside_other_noise():
    """A loss beside the samples, and something told: as the line sum has it, where it closes."""
    other = (
        LaplaceLoss("1/3", neighbours=ADD_REMOVE),
        ApproxLoss("0.1", "1e-4", neighbours=ADD_REMOVE),
    )
    profile = 60 * SubsampledGaussianLoss("1/10", 1) + other[0] + other[1]
    for direction in profile._directions():
        assert any(isinstance(part, DoubleExponential) for part, _ in direction.parts)
        low, high = _epsilon_in_cells(direction, arb("1e-5"))
        exact = _epsilon_directly(direction, arb("1e-5"))
        assert low <= exact.high and exact.low <= high
        assert high - low < 1e-3 * high


def test_a_joined_sum_that_does_not_close_leaves_the_upper_bound_alone(monkeypatch):
    """What the split cells tell is taken off for them, not what lies beyond the joined ones."""
    composition = (3000 * SubsampledGaussianLoss("1/100", 1))._directions()[0]
    asked, delta = [], arb("1e-6")

    def directly(cells, chance, start=None):
        if not cells.parts[0][0].split:
            raise TooManyTerms
        return _epsilon_directly(cells, chance, start)

    def by_moments(cells, chance):
        asked.append(chance + cells.infinite())
        return math.inf

    monkeypatch.setattr(engine, "_epsilon_directly", directly)
    monkeypatch.setattr(engine, "_moment_epsilon", by_moments)
    with working_precision(192):
        _epsilon_in_cells(composition, delta)
        assert len(asked) == 1 and asked[0] <= delta


def test_atoms_are_made_once_however_many_samples_differ(monkeypatch):
    made = []

    def counted(cells):
        made.append(cells)
        return atoms_of(cells)

    monkeypatch.setattr(module, "_atoms", counted)
    rates = [Fraction(n, 10**6) for n in range(1, 41)]
    parts = [coarse(SampledNormal(rate, True, Fraction(1)), split=True) for rate in rates]
    composition = Composition.of((part, 10) for part in parts)
    for order in (1.0, 2.0):
        assert composition.infinite() < 1 and composition.moment(acb(order)).is_finite()
    assert len(made) == len(parts)


# What others know: an upper bound of dp_accounting at a fine mesh, or a sum of tilted floats.
RARE = [
    ("1e-6", "0.6", 10**6, "1e-12", 0.2893),
    ("1e-5", "1", 10**6, "1e-6", 0.0453),
    ("1e-4", "1", 10**5, "1e-6", 0.1570),
    ("1e-4", "1", 10**6, "1e-6", 0.5325),
    ("1e-3", "1/2", 10**4, "1e-10", 10.672),
    ("1e-5", "1", 10**5, "1e-6", 0.01315),
    ("3.43e-6", "0.331", 103_416, "2.9e-9", 8.5115),
]


@pytest.mark.parametrize(("rate", "multiplier", "steps", "delta", "known"), RARE)
def test_rare_samples_are_bounded_closely(rate, multiplier, steps, delta, known):
    loss = SubsampledGaussianLoss(rate, 1 / Fraction(multiplier) ** 2)
    low, high = (steps * loss).epsilon(delta)
    assert known * 0.99 <= low <= high <= known
    assert high - low <= 0.002 * high


@pytest.mark.parametrize(
    ("loss", "steps", "delta"),
    [
        (SubsampledGaussianLoss("1e-5", 4), 100, "1e-4"),  # one large loss decides
        (SubsampledGaussianLoss("1e-6", "100/9"), 1000, "1e-9"),
        (SubsampledGaussianLoss("1/2", "100/9"), 3000, "1e-9"),  # an epsilon of thousands
        (SubsampledLaplaceLoss("1e-5", 4), 100, "1e-4"),
        (SubsampledLaplaceLoss("1e-3", 1), 10**4, "1e-6"),
        (SubsampledLaplaceLoss("1/2", "1e-9"), 50, "1e-12"),
    ],
    ids=repr,
)
def test_both_bounds_are_one_percent_apart_at_most(loss, steps, delta):
    low, high = (steps * loss).epsilon(delta)
    assert 0 < low <= high
    assert high - low <= 0.01 * high
    least, most = (steps * loss).delta(Fraction(high))
    assert least <= Fraction(delta) and most >= least > 0


def test_delta_at_no_epsilon_is_bounded_closely():
    least, most = (100 * SubsampledGaussianLoss("1e-5", 4)).delta(0)
    assert 0 < least <= most <= 1.002 * least
    one = SubsampledGaussianLoss("1e-5", 4).profile.delta(0)[1]
    assert most <= 100 * one * (1 + 1e-9)


def test_delta_of_one_rare_large_loss_is_bounded_closely():
    """Far below what a saddle says: nine releases have about nine times the delta of one."""
    loss = SubsampledGaussianLoss("1e-6", "25/4")
    least, most = (9 * loss).delta(1)
    assert 0 < least <= most <= 1.01 * least
    assert least <= 9 * loss.profile.delta(1)[1] <= 1.01 * most


@pytest.mark.evidence
def test_rare_samples_of_all_kinds_are_bounded_closely():
    """Settings all over what training uses."""
    rates = np.random.default_rng(20261118)
    for _ in range(60):
        rate = float(f"{10 ** rates.uniform(-6, -0.3):.3g}")
        multiplier = Fraction(f"{10 ** rates.uniform(-0.52, 1):.3g}")
        steps = int(10 ** rates.uniform(0, 6))
        delta = float(f"{10 ** rates.uniform(-12, -4):.2g}")
        low, high = (steps * SubsampledGaussianLoss(rate, 1 / multiplier**2)).epsilon(delta)
        assert math.isfinite(high)
        assert high - low <= 0.01 * high, (rate, multiplier, steps, delta)
