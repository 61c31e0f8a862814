"""Rounded float noise: the certificate against the exact law of the running code."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from flint import arb
from hypothesis import given, settings, strategies as st

from lastbit.checker.dispatch import problem_of
from lastbit.errors import InvalidParameter, LastbitError, NotCertified, WrongType
from lastbit.exact.ball import arb_of, ends, working_precision
from lastbit.verify.error_bounds.formats import BINARY16, BINARY32, BINARY64, Fixed
from lastbit.verify.language.evaluation import machine_value
from lastbit.verify.language.expressions import Add, Variable
from lastbit.verify.noise_shape import cut_beyond, sides
from lastbit.verify.rounding import Query, laplace_excess, rounding_certificate
from lastbit.verify.running.uniforms import FullPrecision, Grid
from tests.verify.expressions import traced
from tests.verify.rounding_examples import RIGHT, WRONG, one_uniform, with_branches, with_sign

WIDE: dict[str, Any] = dict(sensitivity=1, cell="1/16", region=(-10, 10))
SMALL: dict[str, Any] = dict(sensitivity=1, cell=1, region=(-1, 1))


# ---------------------------------------------------------------- what is recognised


@pytest.mark.thinned(one_in=5)
@pytest.mark.parametrize("noise", RIGHT, ids=lambda f: f.__name__)
def test_laplace_noise_is_recognised(noise):
    for scale in (2.0, 0.7, 1 / 3):
        name = "rate" if noise.__name__ == "divided" else "scale"
        setting: dict[str, Any] = dict(sensitivity=1, cell="1/16", region=(-4, 4))
        found = rounding_certificate(noise, parameters={name: scale}, **setting)
        exact = Fraction(scale) if name == "scale" else 1 / Fraction(scale)
        assert found.scale == exact
        assert found.ideal == 1 / exact
        assert found.epsilon == found.ideal + found.excess
        assert 0 < found.excess <= found.general < Fraction(1, 100)
        assert found.guarantee.epsilon == found.epsilon


@pytest.mark.parametrize("noise", WRONG, ids=lambda f: f.__name__)
def test_other_noise_is_refused(noise):
    with pytest.raises(NotCertified, match="recognised"):
        rounding_certificate(noise, **WIDE)


def test_the_parts_add_up():
    found = rounding_certificate(one_uniform, uniform=Grid(53), **WIDE)
    assert found.delta_t == found.omega + found.delta_n + found.delta_round
    assert found.ratio == 4 * found.delta_t / (found.cell - 2 * found.delta_t)
    assert found.delta_round == 0
    tenth = rounding_certificate(with_sign, sensitivity=1, cell="1/10", region=(-10, 10))
    grown = Fraction(1, 10) / Fraction(0.1)  # the machine divides by 0.1, not by 1/10
    assert tenth.delta_round == (10 + Fraction(1, 10)) * (abs(grown - 1) + grown / 2**53)
    with working_precision(300):
        half, stray = arb_of(found.cell) / 2, arb_of(found.delta_t)
        exact = ends(((half + stray).sinh() / (half - stray).sinh()).log())[1]
    assert exact <= found.excess <= exact * (1 + Fraction(1, 1 << 40))


# ---------------------------------------------------------------- the modulus of continuity


@pytest.mark.evidence
def test_an_absolute_grid_costs_the_exponential_and_full_precision_does_not():
    """2 b exp(diameter/b) delta_0, against b delta_0: the two models of theory, shown."""
    coarse, fine = {}, {}
    for half in (5, 10, 15):
        setting: dict[str, Any] = dict(sensitivity=1, cell=1, region=(-half, half))
        coarse[half] = rounding_certificate(one_uniform, uniform=Grid(53), **setting)
        fine[half] = rounding_certificate(with_sign, uniform=FullPrecision(), **setting)
        predicted = 2 * math.exp(2 * half - 0.5) * 2.0**-53
        assert predicted < float(coarse[half].omega) < 1.1 * predicted
        assert abs(float(coarse[half].lipschitz) / (predicted * 2.0**53) - 1) < 0.1
        assert float(fine[half].omega) == pytest.approx(2.0**-52)
    assert coarse[15].omega > 2**28 * coarse[5].omega
    with pytest.raises(NotCertified, match="too coarse"):
        rounding_certificate(one_uniform, sensitivity=1, cell=1, region=(-20, 20), uniform=Grid(53))
    far = rounding_certificate(with_sign, sensitivity=1, cell=1, region=(-300, 300))
    assert far.excess < Fraction(1, 10**11)
    with pytest.raises(NotCertified, match="too coarse"):  # beyond 1022 ln 2
        rounding_certificate(with_sign, sensitivity=1, cell=1, region=(-400, 400))


@given(
    st.sampled_from([Grid(7), Grid(7, offset="1/2"), Grid(7, offset=1), Grid(7, first=1)]),
    st.sampled_from([one_uniform, with_branches]),
    st.fractions(Fraction(1, 2), 2, max_denominator=64),
    st.integers(0, 999),
)
@settings(max_examples=40, deadline=None)
def test_the_modulus_holds_for_every_real_and_its_draw(uniform, noise, far, share):
    """t >= boundary puts the draw inside the cut, and moves ln t by at most omega."""
    (program,) = traced(noise, "u")
    pair, scale = sides([Add(Variable("value"), program)])
    for side in pair:
        cut = cut_beyond(side, far, uniform=uniform, format=BINARY64)
        assert cut is not None
        for index in range(uniform.size):
            real = uniform.below(index) + Fraction(share, 1000) / uniform.size
            if not side.interval[0] <= real <= side.interval[1]:
                continue
            t = side.log[1] + side.slope * real
            drawn = side.log[1] + side.slope * Fraction(uniform.point(index))
            if t < cut.boundary:
                continue
            assert drawn >= cut.t
            if drawn <= 1:
                ratio = max(t / drawn, drawn / t)
                assert math.log(ratio) <= float(cut.omega / scale) * (1 + 1e-9)


def test_the_lipschitz_constant_of_the_paper_is_taken_too_near():
    """k = 2b exp(diameter/b) is the slope at the edge; just beyond it, where draws for the edge
    lie, the noise is steeper: k delta_0 is less than how far a draw truly moves."""
    grid, far = Grid(7, offset="1/2"), 3.5
    u = math.exp(-far) / 2
    printed_bound = 2 * math.exp(far) * 2.0**-8
    draw = u - 2.0**-8
    assert math.log(2 * u) - math.log(2 * draw) > 1.1 * printed_bound
    found = rounding_certificate(one_uniform, sensitivity=1, cell=2, region=(-2, 2), uniform=grid)
    assert float(found.omega) > 1.1 * 2 * math.exp(3) * 2.0**-8


# ---------------------------------------------------------------- privacy, by enumeration

INPUTS = [0.0, 0.0625, 0.49, 0.5, 0.51, 1.0, -1.0, -0.5, -0.97, 0.3125, -0.75]
FEW = [
    Grid(5, offset="1/2"),
    Grid(7, first=1),
    Grid(7, offset="1/2"),
    FullPrecision(significand=6, least_exponent=-9),
    FullPrecision(significand=7, least_exponent=-12),
]


def law(total, value, uniform, cell, region) -> dict[Fraction, Fraction]:
    """The exact law of rounding and truncation after running the code at every draw."""
    found: dict[Fraction, Fraction] = {}
    for sign in (1.0, -1.0) if total.__code__.co_argcount == 3 else (None,):
        for index in range(uniform.size):
            weight = (uniform.below(index + 1) - uniform.below(index)) / (1 if sign is None else 2)
            u = uniform.point(index)
            computed = total(value, u) if sign is None else total(value, u, sign)
            step = Fraction(round(Fraction(float(computed)) / cell)) * cell
            result = min(max(step, region[0]), region[1])
            found[result] = found.get(result, Fraction(0)) + weight
    if isinstance(uniform, FullPrecision):  # `below` stops at the last point's own share
        assert sum(found.values()) <= 1
    return found


def worst_excess(total, uniform, cell, region, scale, inputs=INPUTS) -> float:
    """The greatest loss beyond distance/scale over all pairs of inputs and all results."""
    values = [x for x in inputs if region[0] <= x <= region[1]]
    laws = {x: law(total, x, uniform, cell, region) for x in values}
    worst = 0.0
    for x in values:
        for y in values:
            for result, p in laws[x].items():
                q = laws[y].get(result, Fraction(0))
                if q == 0:
                    return math.inf
                loss = math.log(p / q)
                worst = max(worst, loss - abs(x - y) / float(scale))
    return worst


def summed(noise):
    if noise is with_sign:
        return lambda value, u, sign: value + with_sign(u, sign)
    return lambda value, u: value + noise(u)


@pytest.mark.thinned(one_in=8)
@pytest.mark.parametrize("uniform", FEW, ids=str)
@pytest.mark.parametrize("noise", [one_uniform, with_sign, with_branches])
def test_privacy_by_enumeration(noise, uniform):
    """Every draw of a small generator: the true loss is within the certificate's."""
    found = rounding_certificate(noise, uniform=uniform, **SMALL)
    true = worst_excess(summed(noise), uniform, 1, (-1, 1), 1)
    assert 0 < true <= float(found.excess)


def test_a_generator_that_is_coarser_than_claimed_is_found_out():
    """delta_0 too small: the certificate for 52 bits does not hold for 5."""
    claimed = rounding_certificate(one_uniform, uniform=Grid(52, offset="1/2"), **SMALL)
    coarse = Grid(3, offset="1/2")
    assert worst_excess(summed(one_uniform), coarse, 1, (-1, 1), 1) > 100 * float(claimed.excess)
    with pytest.raises(NotCertified):
        rounding_certificate(one_uniform, uniform=coarse, **SMALL)


def test_a_coarse_format_by_enumeration():
    """binary16 with correctly rounded steps: every draw, by exact arithmetic."""
    uniform, region = Grid(8, offset="1/2"), (Fraction(-1), Fraction(1))
    setting: dict[str, Any] = dict(
        sensitivity=1, cell=1, region=region, uniform=uniform, format=BINARY16
    )
    found = rounding_certificate(one_uniform, ulps={"ln": "1/2"}, **setting)
    full = rounding_certificate(one_uniform, **(setting | dict(format=BINARY64)))
    assert found.delta_n > 100 * full.delta_n
    (program,) = found.programs

    def total(value, u):
        return machine_value(program, {"value": Fraction(value), "u": Fraction(u)}, BINARY16)

    inputs = [0.0, 0.5, -0.75, 1.0, -1.0, 0.4375]
    assert worst_excess(total, uniform, 1, region, 1, inputs) <= float(found.excess)


def test_a_tie_and_a_zero_cost_nothing_more():
    found = rounding_certificate(with_sign, uniform=FullPrecision(3, -8), sensitivity=1, cell=2,
                                 region=(-2, 2))  # fmt: skip
    inputs = [k / 8 for k in range(-16, 17)]
    true = worst_excess(summed(with_sign), FullPrecision(3, -8), 2, (-2, 2), 1, inputs)
    assert true <= float(found.excess)


# ---------------------------------------------------------------- the formula, and its mutants


def pushed(epsilon: float, delta: float, length: float, start: float = 1.0) -> float:
    """The loss if all noise within delta of a cell falls into it, and for the other input leaves:
    as bad as a stray of delta can be. Sensitivity 1, scale 1/epsilon, a cell beside the modes."""

    def between(low: float, high: float) -> float:
        return (math.exp(-epsilon * low) - math.exp(-epsilon * high)) / 2

    wide = between(start - delta, start + length + delta)
    return math.log(wide / between(start + 1 + delta, start + 1 + length - delta))


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.01), (10.0, 0.1), (0.1, 0.2), (3.0, 0.4)])
def test_the_exact_ratio_is_attained(epsilon, delta):
    exact = float(laplace_excess(Fraction(epsilon), Fraction(epsilon) * Fraction(delta)))
    assert pushed(epsilon, delta, 1.0) == pytest.approx(epsilon + exact, rel=1e-9)
    rim = 4 * delta / (1 - 2 * delta)
    assert exact <= math.log(1 + rim * math.exp(epsilon))


def test_mutants_of_the_formula_are_exceeded():
    epsilon, delta = 10.0, 0.1
    true = pushed(epsilon, delta, 1.0)
    rim = 4 * delta / (1 - 2 * delta)
    no_epsilon = epsilon + math.log(1 + rim * math.exp(1 + delta))
    half_rim = epsilon + math.log(1 + rim / 2 * math.exp(epsilon / 4))
    unshrunk = epsilon + math.log(math.sinh(epsilon * 0.6) / math.sinh(epsilon * 0.5))
    assert true > max(no_epsilon, half_rim, unshrunk)


def test_correction_1_and_2_in_one_dimension():
    """Without epsilon in the exponent the bound is exceeded; with R as the quotient of the
    lengths it never falls below ln 2, however fine the floats."""
    assert pushed(10.0, 0.1, 1.0) > 10 + math.log(1 + 0.5 * math.exp(1.1))
    found = rounding_certificate(with_sign, **WIDE)
    lengths = (found.cell + 2 * found.delta_t) / (found.cell - 2 * found.delta_t)
    assert math.log(1 + float(lengths)) > math.log(2)
    assert found.general < Fraction(1, 10**11)
    assert lengths - 1 == found.ratio  # the definition (5), without the 1


@given(st.floats(0.01, 5), st.floats(0.001, 0.49), st.floats(0, 3))
@settings(max_examples=200)
def test_no_cell_costs_more(length, share, centre):
    """The lemma: a cell anywhere, over the mode too, and a half-line."""
    delta = length * share
    limit = laplace_excess(Fraction(length), Fraction(delta))
    with working_precision(150):
        wide, narrow = (_mass(arb(centre), arb(length) / 2 + s * arb(delta)) for s in (1, -1))
        assert ends((wide / narrow).log())[0] <= limit
        assert 2 * Fraction(delta) <= limit


def _mass(centre: arb, half: arb) -> arb:
    low, high = centre - half, centre + half
    if ends(low)[0] >= 0:
        return ((-low).exp() - (-high).exp()) / 2
    return 1 - (low.exp() + (-high).exp()) / 2


# ---------------------------------------------------------------- the query


def test_the_error_of_the_query_counts_twice():
    query = Query(function=lambda a, b: (a + b) / 3, ranges={"a": (0, 1), "b": (0, 1)})
    plain = rounding_certificate(with_sign, **WIDE)
    found = rounding_certificate(with_sign, query=query, **WIDE)
    assert 0 < found.query_error < Fraction(1, 10**15)
    assert found.sensitivity == 1 + 2 * found.query_error
    assert found.epsilon == plain.epsilon + 2 * found.query_error / found.scale
    with pytest.raises(NotCertified, match="query"):
        bad = Query(function=lambda a: 1 / a, ranges={"a": (-1, 1)})
        rounding_certificate(with_sign, query=bad, **WIDE)


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    "changes",
    [
        dict(cell=0),
        dict(cell=-1),
        dict(cell=math.nan),
        dict(cell="1/1099511627776"),
        dict(cell="3/32"),
        dict(cell=True),
        dict(region=(1, -1)),
        dict(region=(0, 0)),
        dict(region=5),
        dict(region=(-1, math.inf)),
        dict(region=(-(10**9), 10**9)),
        dict(sensitivity=0),
        dict(sensitivity=-1),
        dict(sensitivity="much"),
        dict(uniform=53),
        dict(uniform=Grid(8)),
        dict(ulps={"ln": 0}),
        dict(ulps={"tan": 1}),
        dict(format=64),
        dict(format=BINARY32, uniform=FullPrecision()),
        dict(parameters={"scale": 0.0}),
    ],
    ids=str,
)
def test_settings_without_meaning_are_refused(changes):
    with pytest.raises(LastbitError):
        rounding_certificate(one_uniform, **(WIDE | dict(uniform=Grid(53)) | changes))


def test_code_without_meaning_is_refused():
    with pytest.raises(WrongType):
        rounding_certificate(3, **WIDE)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="inputs"):
        rounding_certificate(lambda v: v, **WIDE)
    with pytest.raises(LastbitError):
        rounding_certificate(lambda u: int(u) + 1, **WIDE)


@pytest.mark.parametrize(
    "changes",
    [
        dict(format=BINARY32),
        dict(format=BINARY16, cell=1, region=(-2, 2)),
        dict(format=Fixed(40, 16)),
        dict(uniform=Grid(53, first=1), cell="1/10"),
    ],
    ids=str,
)
def test_every_certificate_is_accepted_whatever_the_format(changes):
    """By default the generator draws floats of the format, and no others."""
    assert problem_of(rounding_certificate(with_sign, **(WIDE | changes)).certificate()) is None


@pytest.mark.parametrize(
    ("format", "uniform"),
    [
        (BINARY32, FullPrecision()),
        (BINARY32, Grid(32)),
        (BINARY16, FullPrecision(11, -15)),
        (Fixed(40, 16), FullPrecision()),
        (Fixed(40, 16), Grid(41)),
    ],
)
def test_a_generator_of_other_floats_is_refused(format, uniform):
    with pytest.raises(InvalidParameter, match="uniform draws numbers that the format lacks"):
        rounding_certificate(with_sign, format=format, uniform=uniform, **WIDE)


def test_32_bit_floats():
    uniform = FullPrecision(significand=24, least_exponent=-126)
    found = rounding_certificate(with_sign, format=BINARY32, uniform=uniform, **WIDE)
    assert found.delta_n > 2**28 * rounding_certificate(with_sign, **WIDE).delta_n
    assert found.epsilon < 1 + Fraction(1, 1000)
