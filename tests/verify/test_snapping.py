"""The derived loss of snapping against exact losses: all pairs in binary16, many in binary64."""

import math
from dataclasses import FrozenInstanceError
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact.ball import Ball, arb_of, working_precision
from lastbit.mechanisms.snapping import overhead
from lastbit.privacy.guarantees import ApproxDP, PureDP
from lastbit.verify.loss_rules import Step
from lastbit.verify.running.code import Code
from lastbit.verify.running.law import exact_law, exact_loss
from lastbit.verify.snapping import CASES, FORMATS, snapping_bound
from tests.evidence import late
from tests.verify.laws16 import HALF, inputs, laws_of, logarithms, worst_losses

ETA = Fraction(1, 2**53)
ETA16 = Fraction(1, 2**11)


def snapping(epsilon: float, bound: float) -> Code:
    return Code("lastbit.mechanisms.snapping:snapped", epsilon=epsilon, bound=bound)


# ---------------------------------------------------------------- binary16, every pair of inputs


def released(x, noise, grid, bound):
    noisy = x + noise
    assert noisy.dtype == HALF
    return np.clip(np.rint(noisy / grid) * grid, -bound, bound)


def laws16(epsilon: float, bound: float, ln: np.ndarray):
    """The inputs, and for each output its probability times 2 for every input; exact in doubles."""
    e, b = HALF(epsilon), HALF(bound)
    grid = HALF(2.0 ** -math.floor(math.log2(epsilon)))
    x = inputs(b)
    cells = math.ceil(bound / float(grid))
    outputs = [float(np.clip(k * grid, -b, b)) for k in range(-cells, cells + 1)]
    laws = laws_of(x, ln / e, outputs, lambda x, noise: released(x, noise, grid, b))
    return x.astype(float), laws


def worst16(epsilon: float, bound: float, ln: np.ndarray | None = None) -> float:
    """The greatest loss over every output and every pair of binary16 inputs at most 1 apart."""
    return max(worst_losses(*laws16(epsilon, bound, logarithms() if ln is None else ln)))


PAIRS16 = [
    (1.0, 4.0),
    (float(HALF(0.7)), 6.0),
    (1.0009765625, 4.0),
    late(1.0458984375, 3.84375),
    late(1.5, float(HALF(2.7))),
    (2.0, 2.25),
    late(0.25, 12.0),
    late(float(HALF(0.7)), 1.0),
]


@pytest.mark.parametrize(("epsilon", "bound"), PAIRS16)
def test_no_pair_of_binary16_loses_more(epsilon, bound):
    proved = snapping_bound(epsilon=epsilon, bound=bound, format="binary16")
    assert proved.delta == 0
    excess = Fraction(worst16(epsilon, bound)) - Fraction(epsilon)
    assert proved.excess / 6 < excess <= proved.excess  # sound, and not idle


def test_mutant_without_amplification_is_violated():
    """If a cell moved no more than its edges, the excess would be twice a tail's errors."""
    proved = snapping_bound(epsilon=1.0009765625, bound=4, format="binary16")
    assert worst16(1.0009765625, 4.0) - 1.0009765625 > proved.cases["LOWER END"]


def test_mutant_with_a_quarter_of_eta_is_violated():
    proved = snapping_bound(epsilon=1.0009765625, bound=4, format="binary16")
    assert worst16(1.0009765625, 4.0) - 1.0009765625 > proved.excess / 4


def test_mutant_logarithm_is_violated():
    """A logarithm of 8 bits, monotone but not the nearest, loses more than binary16 may."""
    coarse = (logarithms().view(np.uint16) & np.uint16(0xFFF0)).view(HALF)
    proved = snapping_bound(epsilon=1, bound=4, format="binary16")
    assert worst16(1.0, 4.0, coarse) - 1 > proved.excess


def test_outputs_out_of_reach_are_paid_for():
    """Beyond 14 ln 2 of noise binary16 reaches nothing: no pure loss, and delta says so."""
    proved = snapping_bound(epsilon=1, bound=8, format="binary16")
    _, probabilities = laws16(1.0, 8.0, logarithms())
    assert min(p.min() for p in probabilities) == 0
    assert proved.delta > 0
    assert proved.delta == 4 * Fraction(1, 2**14)  # 1 + e**(1 + excess), up to a power of two


# ---------------------------------------------------------------- binary64


def excess_of(epsilon: float, bound: float, x: float, y: float) -> Ball:
    assert abs(Fraction(x) - Fraction(y)) <= 1
    found = exact_loss(snapping(epsilon, bound), x, y, probes=0).excess(epsilon)
    assert found is not None
    return found


def adversarial(epsilon: float, bound: float) -> list[tuple[float, float]]:
    """Pairs at edges of cells, at the ends, in one cell, tiny, and exactly 1 apart."""
    grid = 2.0 ** -math.floor(math.log2(epsilon))
    edge = grid / 2
    starts = [-bound, bound - 1, edge, math.nextafter(edge, 0), -edge, 0.0, 5e-324, 0.1, -bound / 3]
    pairs = [(x, x + 1) for x in starts if -bound <= x and x + 1 <= bound]
    pairs += [(-bound, math.nextafter(-bound, 0)), (0.0, 5e-324), (edge, math.nextafter(edge, 0))]
    return [(x, y) for x, y in pairs if abs(Fraction(x) - Fraction(y)) <= 1]


@pytest.mark.parametrize(
    ("epsilon", "bound"),
    [(1.0, 8.0), (0.7, 9.3), late(1 + 2.0**-52, 5.5), late(3.0, 2.0), late(0.01, 40.0)],
)
def test_adversarial_pairs_lose_no_more(epsilon, bound):
    proved = snapping_bound(epsilon=epsilon, bound=bound)
    for x, y in adversarial(epsilon, bound):
        assert excess_of(epsilon, bound, x, y) <= proved.excess


def test_any_pair_loses_no_more(extent):
    @settings(max_examples=extent.number(6, 25), deadline=None)
    @given(st.floats(2.0**-6, 8), st.floats(0.5, 12), st.floats(-1, 1), st.floats(0, 1))
    def loses_no_more(epsilon, times, where, apart):
        bound = times / min(epsilon, 1)
        x = where * bound
        y = min(x + apart, bound)
        if abs(Fraction(x) - Fraction(y)) <= 1:
            proved = snapping_bound(epsilon=epsilon, bound=bound)
            assert excess_of(epsilon, bound, x, y) <= proved.excess

    loses_no_more()


def test_far_below_what_the_paper_allows():
    proved = snapping_bound(epsilon=1, bound=64)
    assert 281 < proved.units < 282
    assert proved.published == 770
    assert 52 * ETA < excess_of(1.0, 64.0, 3.0, 4.0) < 53 * ETA


def test_theorem_2_with_the_output_is_false():
    """Output 0 would bound the excess by 2 eta; the exact probabilities differ by 37 eta."""
    epsilon, x = 0.7, 25.838
    laws = [exact_law(snapping(epsilon, 32.0), value, probes=0) for value in (x, x - 1)]
    p, q = (law.probability(0.0) for law in laws)
    with working_precision(300):
        excess = Ball(arb_of(q / p).log()) - epsilon
    assert excess > 36 * ETA > (12 * 0 * Fraction(epsilon) + 2) * ETA
    assert excess <= snapping_bound(epsilon=epsilon, bound=32).excess


def test_theorem_2_with_the_bound_is_false_for_small_bounds():
    """With B in place of the output 12 B epsilon + 2 = 2.12 is exceeded too: 2.65."""
    proved = snapping_bound(epsilon=0.01, bound=1)
    excess = excess_of(0.01, 1.0, 0.435, 0.435 - 1)
    assert proved.published * ETA < excess <= proved.excess


def test_infinite_loss_needs_a_delta():
    """epsilon = 1, B = 1024: from -B the output B is out of reach, from 1 - B too, others not."""
    assert snapping_bound(epsilon=1, bound=1024).delta == 4 * Fraction(1, 2**1022)
    assert snapping_bound(epsilon=1, bound=354).delta == 0
    assert snapping_bound(epsilon=1, bound=355).delta > 0


# ---------------------------------------------------------------- the formula, and the object


def test_the_closed_form_covers_it(extent):
    """Corollary: excess <= (18 B epsilon + 17) eta; the mechanism's own overhead is above that."""

    @settings(max_examples=extent.number(40, 100), deadline=None)
    @given(st.floats(2.0**-30, 256), st.floats(2.0**-10, 2.0**30))
    def holds(epsilon, bound):
        if Fraction(epsilon) * Fraction(bound) > 2**43:
            return
        proved = snapping_bound(epsilon=epsilon, bound=bound)
        assert proved.units <= 18 * proved.bound * proved.epsilon + 17
        assert proved.excess <= overhead(proved.epsilon, proved.bound)

    holds()


def test_a_wider_domain_costs_no_less(extent):
    @settings(max_examples=extent.number(30, 100), deadline=None)
    @given(st.floats(0.01, 100), st.floats(0.01, 1000), st.floats(1, 4))
    def holds(epsilon, bound, factor):
        near = snapping_bound(epsilon=epsilon, bound=bound)
        far = snapping_bound(epsilon=epsilon, bound=bound * factor)
        assert near.excess <= far.excess

    holds()


def test_powers_of_two_divide_exactly():
    exact = snapping_bound(epsilon=1, bound=64)
    rounded = snapping_bound(epsilon=1 + 2.0**-52, bound=64)
    assert exact.excess < rounded.excess < 2 * exact.excess


def test_all_cases_are_there_and_the_worst_counts():
    proved = snapping_bound(epsilon=0.7, bound=32)
    assert tuple(proved.cases) == CASES
    assert proved.excess == max(proved.cases.values())
    assert proved.loss == Fraction(0.7) + proved.excess
    assert proved.grid == 2


def test_promise():
    assert isinstance(snapping_bound(epsilon=1, bound=64).guarantee, PureDP)
    assert isinstance(snapping_bound(epsilon=1, bound=1024).guarantee, ApproxDP)


def steps(step: Step):
    yield step
    for premise in step.premises:
        yield from steps(premise)


def test_the_proof_is_printed_in_full():
    proved = snapping_bound(epsilon=0.7, bound=32)
    text, latex = proved.text(), proved.latex()
    every = list(steps(proved.derivation))
    assert len(text.splitlines()) == len(every)
    assert "SNAPPING: excess <= 183.333 eta, delta 0" in text
    for name in CASES:
        assert name in text
        assert name.title() in latex
    assert latex.count("{") == latex.count("}")


def test_frozen():
    proved = snapping_bound(epsilon=1, bound=4)
    with pytest.raises(FrozenInstanceError):
        proved.bound = Fraction(1)  # type: ignore[misc]


@pytest.mark.parametrize(
    "bad",
    [
        {"epsilon": 0},
        {"epsilon": -1},
        {"epsilon": math.nan},
        {"epsilon": math.inf},
        {"epsilon": "0.7"},  # no double: the mechanism computes with another number
        {"epsilon": 300},
        {"epsilon": 5e-324},
        {"epsilon": 2.0**-1015},
        {"bound": 0},
        {"bound": -4},
        {"bound": "1/3"},
        {"bound": math.nan},
        {"bound": 2.0**60},
        {"bound": 1e308},
        {"format": "binary256"},
        {"format": ["binary64"]},
        {"format": "binary16", "epsilon": 4},  # the least noise would be subnormal
    ],
)
def test_refused(bad):
    with pytest.raises(InvalidParameter):
        snapping_bound(**{"epsilon": 1, "bound": 64, **bad})


@pytest.mark.parametrize("bad", [None, True, [1], b"1"])
@pytest.mark.parametrize("name", ["epsilon", "bound"])
def test_wrong_types(name, bad):
    with pytest.raises(WrongType):
        snapping_bound(**{"epsilon": 1, "bound": 64, name: bad})


def test_formats_are_those_of_ieee():
    for name, kind in (("binary16", np.float16), ("binary32", np.float32), ("binary64", float)):
        information = np.finfo(kind)
        assert FORMATS[name] == (information.nmant + 1, information.minexp)
