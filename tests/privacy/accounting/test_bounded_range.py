"""Releases of bounded range: no strategy beats the upper bound, and one attains the lower one."""

import itertools
import math
import random
from fractions import Fraction

import pytest
from flint import arb

from lastbit.exact import arb_of, lower, upper, working_precision
from lastbit.privacy import (
    ApproxLoss,
    BoundedRangeLoss,
    GaussianLoss,
    LaplaceLoss,
    Profile,
)
from lastbit.privacy.accounting import bounded_range
from lastbit.privacy.accounting.component import Normal, TwoLosses
from lastbit.privacy.accounting.composition import Composition


def rational_exp(x: Fraction, digits: int = 12) -> Fraction:
    """A fraction not above exp(x), and close to it."""
    with working_precision(200):
        return Fraction(
            int((arb_of(x).exp() * 10**digits).floor().lower().unique_fmpz()), 10**digits
        )


# ---------------------------------------------------------------- every choice, by brute force


def best_strategy(greatest, releases, w, choices):
    """The best P[S] - w Q[S] of strategies with two answers a release, in exact fractions.

    An answer multiplies the ratio by u, or by u over its greatest spread, u from a list; after
    every answer, and any order of the releases, another one is chosen.
    """
    if not releases:
        return max(1 - w, Fraction(0))
    best = Fraction(0)
    for index in {releases.index(r) for r in releases}:
        spread, rest = greatest[releases[index]], releases[:index] + releases[index + 1 :]
        for share in choices:
            u = 1 + share * (spread - 1)
            q = (1 - u / spread) / (u - u / spread)  # with which both laws have the mass 1
            value = q * u * best_strategy(greatest, rest, w / u, choices)
            low = u / spread
            value += (1 - q) * low * best_strategy(greatest, rest, w / low, choices)
            best = max(best, value)
    return best


@pytest.mark.parametrize(
    ("releases", "parts"),
    [(("1/2", "1/2"), 24), (("2", "2"), 24), (("1", "1", "1"), 9), (("1", "1/4", "1"), 7)],
)
def test_no_strategy_of_a_grid_beats_the_bound_in_exact_fractions(releases, parts):
    greatest = {e: rational_exp(Fraction(e)) for e in releases}
    choices = [Fraction(j, parts) for j in range(parts + 1)]
    profile = sum(BoundedRangeLoss(e).profile for e in releases)
    whole = sum((Fraction(e) for e in releases), Fraction(0))
    for x in (Fraction(0), whole / 4, whole / 2, whole * 4 / 5):
        low, high = profile.delta(x)
        # not below exp(x): the value of the strategy is one at a larger x
        found = best_strategy(greatest, releases, rational_exp(x) + Fraction(1, 10**11), choices)
        assert found <= Fraction(high)
        assert found >= Fraction(low) * Fraction(92, 100)
        if len(set(releases)) == 1:  # and nothing much is given away
            assert found >= Fraction(high) * Fraction(92, 100)


def random_mechanism(source, spread):
    """Two laws on a few answers whose ratios lie within a factor exp(spread)."""
    size = source.randint(2, 4)
    q = [source.uniform(0.02, 1) for _ in range(size)]
    ratios = [math.exp(source.choice([0, spread, source.uniform(0, spread)])) for _ in q]
    total, weighted = sum(q), sum(a * r for a, r in zip(q, ratios, strict=True))
    return [(a * r / weighted, a / total) for a, r in zip(q, ratios, strict=True)]


def adaptive_delta(source, spreads, x, p=1.0, q=1.0):
    """Of a tree of mechanisms, another one after every answer."""
    if not spreads:
        return max(p - math.exp(x) * q, 0.0)
    mechanism = random_mechanism(source, spreads[0])
    return sum(adaptive_delta(source, spreads[1:], x, p * a, q * b) for a, b in mechanism)


def test_black_boxes_of_bounded_range_are_within_the_bound(extent):
    """Random mechanisms with several answers, chosen after every answer."""
    source = random.Random(28)
    for epsilon, count in extent.cases([(1, 3), ("1/4", 2), ("1/4", 5), (1, 4), (3, 3)], one_in=3):
        for share in (0, 0.1, 0.3, 0.6):
            x = float(Fraction(epsilon)) * count * share
            bound = (count * BoundedRangeLoss(epsilon)).delta(x)[1]
            for _ in range(extent.generated(150, 3000)):
                found = adaptive_delta(source, [float(Fraction(epsilon))] * count, x)
                assert found <= bound * (1 + 1e-12)


def test_exponential_mechanisms_chosen_by_earlier_answers_are_within_the_bound():
    """Utilities that move by one sensitivity up or down, two releases, every second one tried."""
    rate, x = 0.5, 0.4

    def laws(change):
        before, after = [1.0] * len(change), [math.exp(rate * d) for d in change]
        return [(b / sum(after), a / sum(before)) for a, b in zip(before, after, strict=True)]

    mechanisms = [laws(change) for change in itertools.product((-1, 0, 1), repeat=3)]
    bound = (2 * BoundedRangeLoss(1)).delta(x)[1]
    most = 0.0
    for first in mechanisms:
        after = [
            max(
                sum(max(p * a - math.exp(x) * q * b, 0.0) for a, b in second)
                for second in mechanisms
            )
            for p, q in first
        ]
        most = max(most, sum(after))
    assert 0.8 * bound < most <= bound


# ---------------------------------------------------------------- how tight


@pytest.mark.parametrize(
    ("count", "epsilon", "delta", "before", "most", "width"),
    [
        (100, "1/10", "1e-6", 2.6117, 2.2530, 2e-3),
        (100, "1/2", "1e-6", 16.897, 14.35, 2e-3),
        (30, 1, "1e-9", 20.728, 18.66, 1e-3),
        (10, "1/2", "1e-6", 3.8134, 3.580, 1e-3),
        (3, 1, "1e-6", 2.93, 2.9094, 1e-3),
        (1000, "1/10", "1e-6", 9.8379, 8.36, 8e-3),
        (10**4, "1/100", "1e-6", 2.6, 2.2560, 1e-3),
        (10**6, "1/1000", "1e-6", 2.6, 2.25411, 1e-4),
    ],
)
def test_how_tight(count, epsilon, delta, before, most, width):
    """Failed before: the product of the pairs of one release alone."""
    low, high = (count * BoundedRangeLoss(epsilon)).epsilon(delta)
    assert low <= high <= most < before
    assert high - low <= width * high


def test_beside_other_releases():
    chosen = 50 * BoundedRangeLoss("1/10") + 20 * BoundedRangeLoss("3/10")
    for profile, most in [
        (chosen + GaussianLoss("1/10"), 0.09),
        (5 * BoundedRangeLoss("1/10") + 30 * LaplaceLoss("1/10"), 0.03),
        (20 * BoundedRangeLoss("1/10") + ApproxLoss(0, "1e-7"), 1e-3),
        (BoundedRangeLoss("1/5") + 30 * LaplaceLoss("1/10"), 1e-9),  # one: the pair is tight
    ]:
        low, high = profile.epsilon("1e-6")
        assert low <= high and high - low <= most * high
        assert profile.delta(high)[0] <= 1e-6 * (1 + 1e-9)


def fixed_optimum(count, epsilon, x):
    """The best of mechanisms that are fixed beforehand (Dong, Durfee, Rogers 2020)."""
    best = arb(0)
    for j in range(1, count + 2):
        t = min(max((x + j * epsilon) / (count + 1), Fraction(0)), epsilon)
        p = -arb_of(t - epsilon).expm1() / -(-arb_of(epsilon)).expm1()
        total = arb(0)
        for i in range(count + 1):
            gain = -arb_of(x - count * t + i * epsilon).expm1()
            if gain > 0:
                total += arb.bin_uiui(count, i) * p ** (count - i) * (1 - p) ** i * gain
        best = max(best, total)
    return best


@pytest.mark.parametrize(("count", "epsilon"), [(2, "1/2"), (7, "1"), (40, "1/10")])
def test_at_least_what_is_fixed_beforehand(count, epsilon):
    e = Fraction(epsilon)
    for x in (Fraction(0), e, count * e / 3):
        low, high = (count * BoundedRangeLoss(e)).delta(x)
        with working_precision(200):
            known = fixed_optimum(count, e, x)
            assert known <= arb(high)
            assert arb(low) >= known * arb(0.999)


# ---------------------------------------------------------------- the theorems


def gaussian_profile(y, spread):
    root, m = arb(2).sqrt(), spread.sqrt()
    near, far = (y / m - m / 2) / root, (y / m + m / 2) / root
    return (near.erfc() - y.exp() * far.erfc()) / 2


def one_step(y, t, epsilon, spread):
    p = -(t - epsilon).expm1() / -(-epsilon).expm1()
    near, far = gaussian_profile(y - t, spread), gaussian_profile(y - t + epsilon, spread)
    return p * near + (1 - p) * far


def step_points(source, count):
    for _ in range(count):
        epsilon = Fraction(source.choice(["1/100", "1/3", "1", "3", "5.6"]))
        spread = epsilon**2 / 4 * Fraction(source.choice(["3", "4", "20", "500"]))
        t = epsilon * Fraction(source.randint(1, 63), 64)
        y = Fraction(source.uniform(-6, 9) * float(spread) ** 0.5 + float(spread) / 2)
        yield epsilon, spread, t, y


def test_one_step_beside_a_gaussian_loss_is_a_gaussian_loss(extent):
    for epsilon, spread, t, y in step_points(random.Random(5), extent.generated(300, 6000)):
        with working_precision(300):
            a = epsilon**2 / 4
            after = arb_of(spread * spread / (spread - a))
            added = one_step(arb_of(y), arb_of(t), arb_of(epsilon), arb_of(spread))
            assert added <= gaussian_profile(arb_of(y), after)


def test_a_step_that_adds_less_would_not_do():
    """The mutant: nine tenths of the variance."""
    beaten = 0
    for epsilon, spread, t, y in step_points(random.Random(5), 300):
        with working_precision(300):
            after = arb_of(spread + epsilon**2 / 4 * Fraction(9, 10))
            added = one_step(arb_of(y), arb_of(t), arb_of(epsilon), arb_of(spread))
            beaten += bool(added > gaussian_profile(arb_of(y), after))
    assert beaten > 20


def test_the_sum_of_the_steps_bounds_every_order():
    source = random.Random(9)
    for _ in range(40):
        parts = [(Fraction(source.randint(1, 30), 10), source.randint(1, 9)) for _ in range(3)]
        profile = sum((n * BoundedRangeLoss(e) for e, n in parts), Profile([(ApproxLoss(0), 1)]))
        form = bounded_range.gaussian_form(profile._directions()[0])
        assert form is not None
        ((normal, _),) = form.parts
        assert isinstance(normal, Normal)
        flat = [e for e, n in parts for _ in range(n)]
        start = 3 * max(e * e / 4 for e in flat)
        for _ in range(6):
            source.shuffle(flat)
            spread = start
            for e in flat:
                spread = (spread * spread / (spread - e * e / 4)).limit_denominator(10**12)
            assert spread <= normal.spread + Fraction(1, 10**9)


def test_moments_are_those_of_concentrated_privacy():
    for epsilon, order in itertools.product(("1/10", "1", "4"), ("1/5", "1", "7", "60")):
        e, c = Fraction(epsilon), Fraction(order)
        with working_precision(300):
            for j in range(1, 40):
                t = e * Fraction(j, 40)
                p = -arb_of(t - e).expm1() / -(-arb_of(e)).expm1()
                moment = p * arb_of(c * t).exp() + (1 - p) * arb_of(c * (t - e)).exp()
                assert moment <= arb_of(c * (c + 1) * e * e / 8).exp()


def test_two_losses_have_the_mass_1_both_ways():
    with working_precision(200):
        for end in ("1/2", "3/5", "9/10"):
            part = TwoLosses(Fraction(1), Fraction(end))
            p, rest = (piece.weight for piece in part.pieces())
            back = p * (-arb_of(part.end)).exp() + rest * arb_of(1 - part.end).exp()
            assert (p + rest).contains(1) and back.contains(1)


# ---------------------------------------------------------------- the recursion on a grid


def grid_bounds(cells, count=6, epsilon=Fraction(1), x=Fraction(2)):
    reach = (count + 1) * cells
    grid = bounded_range._Grid(epsilon, cells, x, -2 * reach, reach)
    above, below = bounded_range._recursion(grid, count)
    return below[2 * reach], above[2 * reach]


def test_finer_grids_are_closer_and_all_hold_the_same_number():
    bounds = [grid_bounds(cells) for cells in (8, 16, 32, 64)]
    assert max(low for low, _ in bounds) <= min(high for _, high in bounds)
    widths = [high - low for low, high in bounds]
    assert all(fine < coarse / 2 for coarse, fine in itertools.pairwise(widths))


@pytest.mark.parametrize("mutant", ["no bend", "too small a p"])
def test_mutants_of_the_recursion_fall_below_a_strategy(monkeypatch, mutant):
    attained, _ = grid_bounds(128)
    if mutant == "no bend":
        monkeypatch.setattr(bounded_range._Grid, "bend", lambda self: (1.0, 0.0))
    else:
        exact = bounded_range._Grid.chances

        def less(self):
            above, below = exact(self)
            return [(p * 0.97, rest) for p, rest in above], below

        monkeypatch.setattr(bounded_range._Grid, "chances", less)
    assert min(grid_bounds(cells)[1] for cells in (8, 16)) < attained


def test_a_window_that_is_too_narrow_only_widens_the_bounds(monkeypatch):
    composition = Composition.of(BoundedRangeLoss("1/5").directions()[0] * 30)
    wide = bounded_range.steps(composition, Fraction(2), 1e-6)
    monkeypatch.setattr(bounded_range, "_FAR", 0.5)
    narrow = bounded_range.steps(composition, Fraction(2), 1e-6)
    assert wide is not None and narrow is not None
    (low, high), (least, most) = wide.bounds_at_origin(), narrow.bounds_at_origin()
    assert least <= high and low <= most


def test_the_start_of_the_recursion_is_enclosed():
    grid = bounded_range._Grid(Fraction(1), 8, Fraction(1, 3), -20, 20)
    above, below = grid.start()
    with working_precision(200):
        for index, i in enumerate(range(-20, 21)):
            exact = (-arb_of(Fraction(1, 3) + Fraction(i, 8)).expm1()).nonnegative_part()
            assert below[index] <= upper(exact) and lower(exact) <= above[index]
