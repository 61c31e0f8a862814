"""The page of corrections: its tests exist, and those that have no better home are here."""

from __future__ import annotations

import math
import re
from collections import Counter
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from lastbit.errors import NotCertified
from lastbit.exact import Ball, ln
from lastbit.laws import DiscreteLaplace, DiscreteNormLaplace
from lastbit.mechanisms import admissible
from lastbit.privacy import ApproxDP, LawPair
from lastbit.sensitivity import smooth_sensitivity
from lastbit.verify import Code, Grid, drawn_law, exact_law, exact_loss, wasserstein
from lastbit.verify.rounding import rounding_certificate
from tests.verify.rounding_examples import one_uniform

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "theory" / "corrections.md"
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE.read_text("utf-8"))


@pytest.mark.parametrize(("file", "name"), sorted(set(NAMED)))
def test_the_tests_named_exist(file, name):
    assert f"def {name}(" in (ROOT / file).read_text("utf-8")


def test_every_row_names_a_test():
    rows = re.findall(r"^\| (\d+) \|.*$", PAGE.read_text("utf-8"), re.M)
    lines = [line for line in PAGE.read_text("utf-8").splitlines() if re.match(r"\| \d", line)]
    assert sorted(map(int, rows)) == list(range(1, 46))
    assert all("::test_" in line for line in lines)


def test_each_is_told_on_the_page_of_its_paper():
    """By a link to the list, under the heading of the section that it corrects."""
    titles = re.split(r"^## Paper (\d{3})$", PAGE.read_text("utf-8"), flags=re.M)[1:]
    listed = {
        (int(number), paper)
        for paper, text in zip(titles[::2], titles[1::2], strict=True)
        for number in re.findall(r"^\| (\d+) \|", text, re.M)
    }
    pages = (page.read_text("utf-8") for page in (ROOT / "docs" / "papers").glob("*.md"))
    told = re.findall(r"\[(\d+)\]\(\.\./theory/corrections\.md#paper-(\d{3})\)", "".join(pages))
    assert {(int(number), paper) for number, paper in told} == listed


def test_10_the_interval_needs_the_inverse():
    """An interval of half-width Phi(0.975) sigma covers 60 percent, not 95."""
    normal = NormalDist()
    printed, meant = normal.cdf(0.975), normal.inv_cdf(0.975)
    assert printed == pytest.approx(0.835, abs=1e-3)
    assert 2 * normal.cdf(printed) - 1 < 0.6
    assert 2 * normal.cdf(meant) - 1 == pytest.approx(0.95)


def test_13_noise_is_large_at_the_ends_of_the_uniform():
    near, far = abs(one_uniform(0.5 + 1e-9)), abs(one_uniform(1 - 1e-9))
    assert near < 1e-8
    assert far > 20


def flipped(u):
    """The sizes of Laplace noise in the right order, but beyond 5 on the wrong side."""
    size = -math.log(1 - 2 * abs(u - 0.5))
    side = 1 if u > 0.5 else -1
    return -side * size if size > 5 else side * size


def test_14_sizes_do_not_tell_the_side():
    """Condition 2 holds for it; moved to the nearer end, results are at the wrong one."""
    grid = np.linspace(0.001, 0.999, 999).tolist()
    ideal = [abs(one_uniform(u)) for u in grid]
    order = np.argsort(ideal, kind="stable")
    sizes = [abs(flipped(grid[k])) for k in order]
    assert all(a <= b + 1e-12 for a, b in pairwise(sizes))
    assert flipped(0.999) < 0 < flipped(0.9)

    def descending(u, sign):  # a code that is not monotone is refused
        return sign * (math.log(u) + (u - u))

    with pytest.raises(NotCertified):
        rounding_certificate(descending, sensitivity=1, cell=1, region=(-4, 4))


def test_15_the_inequality_is_the_other_way_round():
    assert math.exp(-1 * 0.5) > math.exp(-1)
    assert math.exp(1 * 0.5) < math.exp(1)


def test_16_zero_has_two_names():
    """np.rint keeps the sign of what it rounds to zero: the cell is cut in two."""
    names = {str(float(np.rint(x))) for x in (-0.4, 0.4)}
    assert names == {"-0.0", "0.0"}
    assert {str(float(np.rint(x) + 0.0)) for x in (-0.4, 0.4)} == {"0.0"}


def test_27_the_scale_of_definition_2_7_is_a_rate():
    """exp(-b x) with the b = sensitivity/epsilon of section 5 loses sensitivity**2/epsilon."""
    sensitivity, epsilon = 1, Fraction(1, 10)

    def loss(rate: Fraction) -> Ball:
        law = DiscreteLaplace(1 / rate)
        return (law.probability(0) / law.probability(sensitivity)).log()

    as_printed, as_a_rate = loss(sensitivity / epsilon), loss(epsilon / sensitivity)
    assert abs(as_printed - sensitivity**2 / epsilon) < Fraction(1, 10**30)
    assert abs(as_a_rate - epsilon) < Fraction(1, 10**30)
    assert as_printed > 99 * epsilon


def test_28_the_supremum_of_theorem_3_2_need_not_be_attained():
    """f(k records) = the sum of 1 - 1/j: neighbours are less than 1 apart, by less and less."""
    epsilon, sensitivity = Fraction(1), Fraction(1)
    apart = [1 - Fraction(1, k) for k in range(1, 3000)]
    assert max(apart) < sensitivity  # the pair with which the proof begins does not exist
    rate = epsilon / sensitivity
    assert all(rate * d <= epsilon for d in apart)
    # (7) follows all the same, in the limit: a rate that is larger by a hair fails for some pair
    more = rate * Fraction(1001, 1000)
    assert all(more * d <= epsilon for d in apart[:1000])
    assert any(more * d > epsilon for d in apart)


def test_29_six_cases_bound_a_ratio_by_an_exponent():
    """At epsilon = 1/2 every ratio is above what is printed for it; its logarithm is not."""
    epsilon, eta = Fraction(1, 2), Fraction(1, 2**53)
    code = Code("lastbit.mechanisms.snapping:snapped", epsilon=0.5, bound=16.0)
    one, other = exact_law(code, 0.3), exact_law(code, 1.3)
    outputs = [x for x in one.outputs if x > -16.0]
    assert len(outputs) > 10
    for x in outputs:
        printed = epsilon + 12 * abs(Fraction(x)) * epsilon * eta + 2 * eta
        ratio = one.probability(x) / other.probability(x)
        assert ratio > printed and 1 / ratio > printed
        assert abs(Ball.of(ratio).log()) < epsilon + 1000 * eta


def test_30_the_lowest_output_has_one_sign_and_its_edge_is_a_uniform():
    """x = -B needs s = 1, as ln u < 0; the case ends with s = -1. And u ends at R < 1, not at b."""
    bound, step, value = 4.0, 1.0, 0.25
    code = Code("lastbit.mechanisms.snapping:snapped", epsilon=1.0, bound=bound)
    uniforms = [2.0**-k for k in range(1, 60)]
    assert any(code(value, u, 1) == -bound for u in uniforms)
    assert all(code(value, u, -1) > value - step for u in uniforms)
    # so too in the other cases: the noise is negative for s = 1, where they have s = -1
    assert all(code(value, u, 1) <= value + step / 2 for u in uniforms)
    b = bound - step  # the largest multiple of the step below B
    edge = math.exp(-b - step / 2 - value)
    assert code(value, edge * (1 - 1e-12), 1) == -bound != code(value, edge * (1 + 1e-12), 1)
    assert float(exact_law(code, value).probability(-bound)) == pytest.approx(edge / 2)
    assert b > 1 > edge


def unclamped(value, u, sign):
    """Definition 3 as printed, at epsilon = 1 and B = 2: the value is not clamped."""
    return min(max(float(round(value + sign * ln(u))), -2.0), 2.0)


def test_41_inputs_that_are_not_clamped_lose_more_than_any_bound_in_b():
    """Far from the outputs ln u has few places left, and then none: the loss is infinite."""
    code = Code("tests.verify.test_corrections:unclamped")
    value, eta = 510.70000000000005, Fraction(1, 2**53)
    assert Fraction(value + 1) - Fraction(value) == 1
    near, far = (exact_law(code, x).probability(-1.0) for x in (value, value + 1))
    excess = Ball.of(near / far, precision=300).log() - 1
    assert 405 * eta < excess < 406 * eta
    assert excess > 15 * (12 * 2 + 2) * eta
    last, none = (exact_law(code, x) for x in (709.0, 710.0))
    assert last.probability(1.0) > 0 == none.probability(1.0)
    clamped = Code("lastbit.mechanisms.snapping:snapped", epsilon=1.0, bound=2.0)
    assert exact_law(clamped, 709.0) == exact_law(clamped, 710.0)


def test_42_the_exponent_of_the_lowest_output_has_a_wrong_sign():
    """epsilon = 1, B = 64, f(a) = 63: the quotient of the ends, and what is printed of it."""
    eta = Fraction(1, 2**53)
    one, edge, value = 1 + eta, -63 - Fraction(1, 2), 63

    def beyond(exponent: Fraction) -> float:
        return float((exponent - 1) / eta)

    upper, lower = (edge * one - value) / one**2, (edge / one - (value + 1)) * one**2
    rest = value * (one**2 - one**-2) + one**2
    assert upper - lower == -edge * (one - 1 / one) + rest
    assert beyond(upper - lower) == pytest.approx(381)
    assert beyond(edge * (one - 1 / one) + rest) == pytest.approx(127)
    # the sum is negative, and its bounds are the other way round
    upper, lower = (edge / one - value) / one**2, (edge * one - (value + 1)) * one**2
    assert beyond(upper - lower) == pytest.approx(635)
    assert 635 < 12 * 64 + 2 and not 2 * 64 * one**2 <= 1 + (12 * 64 + 2) * eta


def test_43_the_printed_ranges_of_the_uniforms_are_empty():
    """At epsilon = 4, where the step is 1/4 and cells lie between; ends as exponents over 4."""
    half, here, there = Fraction(1, 8), Fraction(0.3), Fraction(1.3)
    left, right, between, above = (Fraction(k, 4) for k in (1, 5, 3, 7))
    printed = {
        "3, u'": (left - there - half, left - there - half),
        "4, u": (here + half - left, here - half - left),
        "4, u'": (left - there + half, left - there - half),
        "6, u": (here + half - above, here - half - above),
        "6, u'": (there + half - above, there - half - above),
    }
    assert all(low >= high for low, high in printed.values())
    assert printed["4, u"][0] > 0  # a uniform above 1
    code = Code("lastbit.mechanisms.snapping:snapped", epsilon=4.0, bound=4.0)
    for value, output in ((there, left), (here, between), (there, between), (here, above)):
        away = abs(output - value)
        length = math.exp(-4 * (away - half)) - math.exp(-4 * (away + half))
        assert float(exact_law(code, float(value)).probability(float(output))) == pytest.approx(
            length / 2
        )
    # 5, u': around f(a'), but with the ends of f(a)
    own = 1 - sum(math.exp(4 * (s * (right - there) - half)) for s in (1, -1)) / 2
    as_printed = 1 - sum(math.exp(4 * (x - half)) for x in (left - there, here - right)) / 2
    found = float(exact_law(code, 1.3).probability(1.25))
    assert found == pytest.approx(own)
    assert as_printed > 1.5 * found
    # 2: the lower end is the greater one beyond a distance of 1/2 (at epsilon = 1)
    eta = Fraction(1, 2**53)
    for distance, empty in ((Fraction(1, 4), False), (Fraction(3, 4), True), (Fraction(30), True)):
        low = (1 - eta) * Ball.of(-distance * (1 - eta) ** 2, precision=200).exp()
        high = (1 + eta) * Ball.of(-distance * (1 + eta) ** 2, precision=200).exp()
        assert (low > high) == empty and (low < high) != empty


def test_44_the_derivation_is_not_that_of_the_definition():
    """1/epsilon has a rounding of its own; and the bounds are those of the sum, not of Snap'."""
    epsilon, eta, u = 7.6875, Fraction(1, 2**53), 0.11320596465314436
    exact = Ball.of(u, precision=200).log() / Fraction(epsilon)
    low, high = exact * (1 + eta) ** 2, exact / (1 + eta) ** 2
    assert low < Fraction(ln(u) / epsilon) < high
    product = Fraction(1 / epsilon * ln(u))
    assert product < low or product > high
    code = Code("lastbit.mechanisms.snapping:snapped", epsilon=1.0, bound=64.0)
    total = 0.25 + ln(0.3)
    assert code(0.25, 0.3, 1) == -1.0 < total * (1 + 2**-50)


def test_45_a_range_has_half_its_length_for_each_sign():
    code = Code("lastbit.mechanisms.snapping:snapped", epsilon=1.0, bound=8.0)
    law = exact_law(code, 0.25)
    beside = math.exp(-0.25 - 0.5) - math.exp(-0.25 - 1.5)  # the uniforms of the output -1
    assert float(law.probability(-1.0)) == pytest.approx(beside / 2)
    ends = math.exp(-0.75), math.exp(-0.25)  # the output 0: from these on, one for each sign
    assert float(law.probability(0.0)) == pytest.approx(1 - sum(ends) / 2)
    assert all(float(law.probability(0.0)) != pytest.approx(1 - end) for end in ends)


@pytest.mark.parametrize("constant", [1, 6, 100])
def test_31_cauchy_noise_needs_a_smoothing_below_epsilon(constant):
    """The greatest ratio of two Cauchy densities, of widths c SS at beta = epsilon = 1."""

    def steps(votes):
        return (0, 1, 4)[sum(votes)]

    wide, narrow = (
        constant * float(smooth_sensitivity(steps, votes, beta=1, domain=[0, 1]).bound)
        for votes in ([0, 1], [0, 0])
    )
    assert wide / narrow == pytest.approx(math.e)
    z = np.concatenate([-np.geomspace(1e-3, 1e8, 10**5), np.geomspace(1e-3, 1e8, 10**5)])
    here, there = (w / (w * w + (z - at) ** 2) for w, at in ((wide, 1), (narrow, 0)))
    least = float(np.log(here / there).max())
    assert least > 1 + 1e-6
    assert least <= math.acosh(1 + (1 + (wide - narrow) ** 2) / (2 * wide * narrow)) + 1e-9
    assert admissible("cauchy", epsilon=1).beta < 1


def test_32_tests_of_one_finite_function_take_constant_time():
    """A list of outputs, worked out beforehand, is the best test that there is."""
    one: dict[Any, Fraction] = {z: Fraction(z + 1, 36) for z in range(8)}
    pair = LawPair(one, {7 - z: chance for z, chance in one.items()})
    listed, _ = pair.bad_outputs(epsilon=1)
    told = pair.mapped(lambda z: 0 if z in listed else 1)
    least = pair.approximate_delta(epsilon=1)
    assert 0 < least == told.approximate_delta(epsilon=1)
    assert told.satisfies(ApproxDP(1, least)) and pair.satisfies(ApproxDP(1, least))
    assert not told.satisfies(ApproxDP(1, least * Fraction(99, 100)))


def test_33_which_answers_leak():
    """2**(n+k+h) steps end in n zeros, as the noise does; 2**n k + h steps end in h."""
    n = 2
    for k, h in ((k, h) for k in range(6) for h in range(1, 2**n)):
        assert 2 ** (n + k + h) % 2**n == 0
        assert (2**n * k + h) % 2**n == h
    assert 2**n * 3 + 2 == 64 * (3 * Fraction(1, 16) + Fraction(1, 32))  # Figure 1: k = 3, h = 2


def counted(code, value, bits):
    """How often each output comes, over all draws but 0 and both signs."""
    draws = ((k / 2**bits, sign) for k in range(1, 2**bits) for sign in (1, -1))
    return Counter(code(value, u, sign) for u, sign in draws)


def test_34_the_edge_of_the_region_may_not_cut_a_cell():
    """Cut to less than the draws' distance, a cell is hit from one value and not from the other."""

    def release(edge):
        def code(value, u, sign):
            noisy = value + sign * math.log(u)
            return 0.5 * round(noisy / 0.5) + 0.0 if abs(noisy) <= edge else math.inf

        return code

    cut, whole = ([counted(release(edge), f, 12) for f in (0.0, 1.0)] for edge in (1.751, 1.75))
    assert (cut[0][2.0], cut[1][2.0]) == (0, 2)
    assert whole[0].keys() == whole[1].keys()
    assert max(abs(math.log(whole[0][o] / whole[1][o])) for o in whole[0]) < 1.02
    shift = 2 * math.exp(2 * 1.75) * 2.0**-12  # delta_t: whole cells have a core, that one has none
    assert 0.5 > 2 * shift > 1.751 - 1.75


def test_35_answers_must_lie_in_the_region():
    """From outside, noise that leads into the region is farther out than the region is wide."""
    low, high, cell, bits = 0.0, 2.0, 0.5, 8

    def code(value, u):
        noisy = value + one_uniform(u)
        return cell * round(noisy / cell) if low - 0.25 <= noisy <= high + 0.25 else math.inf

    promised = 2 * math.exp(high - low) * 2.0**-bits  # delta_t of section 5, scale 1
    assert 2 * promised < cell  # so that R, and the promise, are finite
    far, near = ({code(f, k / 2**bits) for k in range(1, 2**bits)} for f in (low - 5.5, low - 4.5))
    assert far == {math.inf} != near
    inside = [{code(f, k / 2**bits) for k in range(1, 2**bits)} for f in (low, high)]
    assert inside[0] == inside[1]


def test_36_the_rounds_of_condition_3_need_not_end():
    """The fixed point t = 2 b exp((D + t)/b) delta_0 exists iff 2 exp(D/b) delta_0 <= 1/e."""

    def rounds(width, delta_0):
        t = 0.0
        for _ in range(10_000):
            if t > 50:
                return None
            t = 2 * math.exp(width + t) * delta_0
        return t

    width = 8.0
    limit = math.exp(-1 - width) / 2
    found = rounds(width, limit * 0.99)
    assert found is not None and found < 1
    assert rounds(width, limit * 1.01) is None
    with pytest.raises(NotCertified):
        rounding_certificate(one_uniform, sensitivity=1, cell=1, region=(-4, 4), uniform=Grid(8))


def test_37_mass_crosses_the_edge_of_the_region():
    """A joint law on which nothing moves across the edge needs laws that agree on the region."""
    points = [Fraction(2 * k + 1, 16) for k in range(8)]
    ideal, coded = (
        {y: Fraction(n, 8) for y, n in Counter(map(f, points)).items()}
        for f in (lambda u: u, lambda u: Fraction(round(4 * u), 4))
    )
    assert wasserstein(ideal, coded) == Fraction(1, 16)
    edge = Fraction(15, 32)
    shares = [sum(p for y, p in law.items() if y <= edge) for law in (ideal, coded)]
    assert shares == [Fraction(4, 8), Fraction(3, 8)]


def test_38_the_rate_in_the_plane_is_epsilon_over_the_sensitivity():
    """A radius of density epsilon**2 r exp(-epsilon r) loses epsilon times the sensitivity."""
    sensitivity, epsilon = 5, Fraction(1)

    def loss(rate: Fraction) -> Ball:
        law = DiscreteNormLaplace(rate, dimension=2, norm="L2")
        return (law.probability((0, 0)) / law.probability((sensitivity, 0))).log()

    assert abs(loss(epsilon) - sensitivity * epsilon) < Fraction(1, 10**15)
    assert abs(loss(epsilon / sensitivity) - epsilon) < Fraction(1, 10**15)


def test_39_a_finite_implementation_may_be_exact():
    """Two fair bits answer a poll with a ratio of exactly 3; noise on a grid has its rate."""

    def poll(truth, u):
        return truth if u < 0.75 else 1.0 - truth

    one, two = exact_loss(poll, 0.0, 1.0, uniform=Grid(2), signs=None).laws
    assert {one.probability(x) / two.probability(x) for x in (0.0, 1.0)} == {3, Fraction(1, 3)}
    noise = DiscreteLaplace(Fraction(10))
    ratio = (noise.probability(0) / noise.probability(1)).log()
    assert abs(ratio - Fraction(1, 10)) < Fraction(1, 10**30)


@pytest.mark.parametrize("bits", [2, 4])
def test_40_a_sum_of_two_draws_has_the_holes_of_one(bits):
    """Of N**2 pairs, 2 N - 1 sums, as far apart as the draws."""
    size = 2**bits
    sums = drawn_law(lambda u, v: u + v, Grid(bits), Grid(bits)).probabilities
    assert len(sums) == 2 * size - 1 < size**2
    assert {b - a for a, b in pairwise(sorted(sums))} == {1 / size}
