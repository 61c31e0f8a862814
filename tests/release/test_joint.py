"""Joint noise: enclosures, exact laws of linear forms, exact coverage of formulas, and mutants."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings, strategies as st

from lastbit.exact import arb_of, working_precision
from lastbit.laws import DiscreteGaussian, DiscreteLaplace
from lastbit.release.joint import Coordinate, Joint, laplace_quantile, linear_reach
from lastbit.release.reach import BETA, MeasureNoise
from lastbit.release.taylor import NotSmooth, Taylor, doubles, taylor_of
from lastbit.tables import Call, ColumnName, Constant, Expression

A, B, C = map(ColumnName, "abc")


def smooth(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    return st.one_of(
        st.builds(lambda f, x, y: Call(f, (x, y)), st.sampled_from("+-*/"), inner, inner),
        st.builds(lambda f, x: Call(f, (x,)), st.sampled_from(["negate", "square"]), inner),
    )


LEAVES = st.sampled_from([A, B, C, Constant(2), Constant(Fraction(-1, 3))])
FORMULAS = st.recursive(LEAVES, smooth, max_leaves=7)


def exactly(formula: Expression, point: tuple[Fraction, ...]) -> Fraction:
    match formula:
        case Constant(value):
            return Fraction(value)  # type: ignore[arg-type]
        case ColumnName(name):
            return point["abc".index(name)]
        case Call(function, arguments):
            x, *more = (exactly(part, point) for part in arguments)
    match function:
        case "+":
            return x + more[0]
        case "-":
            return x - more[0]
        case "*":
            return x * more[0]
        case "/":
            return x / more[0]
        case "square":
            return x * x
    return -x


def enclosures(formula: Expression, box: list[tuple[float, float]]) -> Taylor:
    boxes = [(np.array([low]), np.array([high])) for low, high in box]
    with np.errstate(all="ignore"):
        return taylor_of(formula, dict(zip("abc", Taylor.variables(boxes), strict=True)))


def is_within(number: Fraction, ends: Any) -> bool:
    low, high = (float(np.ravel(end)[0]) for end in ends)
    return math.isnan(low) or math.isnan(high) or low <= number <= high


@settings(max_examples=300)
@given(
    FORMULAS,
    st.lists(st.integers(-40, 40), min_size=3, max_size=3),
    st.lists(st.integers(1, 12), min_size=3, max_size=3),
)
def test_values_and_quotients_of_differences_lie_within(
    formula: Expression, start: list[int], width: list[int]
) -> None:
    """Over a box, first and second differences are means of derivatives (mean value theorem)."""
    corner = [Fraction(x, 4) for x in start]
    steps = [Fraction(w, 4) for w in width]
    box = [(float(x), float(x + w)) for x, w in zip(corner, steps, strict=True)]
    made = enclosures(formula, box)

    def at(*moved: int) -> Fraction:
        point = (
            x + (w if i in moved else 0) for i, (x, w) in enumerate(zip(corner, steps, strict=True))
        )
        return exactly(formula, tuple(point))

    if not np.all(np.isfinite(made.value)):
        return
    nothing = (0.0, 0.0)
    assert is_within(at(), made.value) and is_within(at(0, 1, 2), made.value)
    for i in range(3):
        assert is_within((at(i) - at()) / steps[i], made.slope.get(i, nothing))
        for k in range(i + 1, 3):
            mixed = (at(i, k) - at(i) - at(k) + at()) / (steps[i] * steps[k])
            assert is_within(mixed, made.bend.get((i, k), nothing))


def test_roots_and_what_is_not_smooth() -> None:
    root = enclosures(Call("sqrt", (A,)), [(4.0, 9.0), (0.0, 1.0), (0.0, 1.0)])
    assert root.value[0] <= 2 and root.value[1] >= 3
    assert root.slope[0][0] <= 1 / 6 and root.slope[0][1] >= 1 / 4
    assert root.bend[0, 0][0] <= -1 / 32 and root.bend[0, 0][1] >= -1 / 108
    for text in ("floor", "abs", "round"):
        with pytest.raises(NotSmooth):
            enclosures(Call(text, (A,)), [(4.0, 9.0)] * 3)
    for odd in (Call("sqrt", (B,)), Call("/", (A, B))):
        assert np.isnan(enclosures(odd, [(1.0, 2.0), (-1.0, 1.0), (0.0, 1.0)]).value).any()


# ---------------------------------------------------------------- linear forms


def partial_fractions(scales: list[Fraction], far: float) -> arb:
    total = arb(0)
    for p in scales:
        weight = Fraction(1)
        for q in scales:
            weight *= 1 if p == q else p**2 / (p**2 - q**2)
        total += arb_of(weight) * (-arb_of(Fraction(far)) / arb_of(p)).exp()
    return total


@pytest.mark.parametrize("scales", [(1,), (1, 3), (2, 3, 5), (1, 2, 4, 7, 9, 12)], ids=str)
def test_quantiles_of_laplace_sums(scales: tuple[int, ...]) -> None:
    """Never above beta, and nearly it; the mutant, one part in a hundred less, is above."""
    far = float(laplace_quantile(np.array([[float(s)] for s in scales]), BETA)[0])
    with working_precision(256):
        exact = list(map(Fraction, scales))
        assert partial_fractions(exact, far) <= arb_of(BETA)
        assert partial_fractions(exact, far * 0.9999) > arb_of(BETA)


def test_equal_scales_are_moved_apart_upwards() -> None:
    """Of three Laplace variables of scale 1 the chance is exp(-t) (1 + 5t/8 + t**2/8)."""
    far = float(laplace_quantile(np.ones((3, 1)), BETA)[0])
    chance = math.exp(-far) * (1 + 5 * far / 8 + far**2 / 8)
    assert 0.047 < chance <= 0.05
    assert laplace_quantile(np.zeros((2, 1)), BETA)[0] == 0


def law_of(law: Any, far: int) -> np.ndarray[Any, Any]:
    return np.array([float(law.probability(k).enclosure.mid()) for k in range(-far, far + 1)])


FORMS: list[tuple[tuple[Any, int], ...]] = [
    ((DiscreteLaplace(8), 1), (DiscreteLaplace(3), 2)),
    ((DiscreteLaplace("1/2"), 1), (DiscreteLaplace(1), 1)),
    ((DiscreteLaplace(3), 2), (DiscreteLaplace(4), 1), (DiscreteLaplace(2), 3)),
    ((DiscreteGaussian(64), 1), (DiscreteGaussian(9), 3)),
    ((DiscreteGaussian("1/2"), 2), (DiscreteGaussian(2), 1)),
]


def stray(form: Any, far: int = 150) -> np.ndarray[Any, Any]:
    """The law of the sum of factor times noise, by convolution."""
    total = np.ones(1)
    for law, factor in form:
        spread = np.zeros(2 * far * factor + 1)
        spread[::factor] = law_of(law, far)
        total = np.convolve(total, spread)
    return total


def missed(law: np.ndarray[Any, Any], far: float) -> float:
    places = np.abs(np.arange(len(law)) - len(law) // 2)
    return float(np.sum(law[places > far]))


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_linear_forms_exactly(form: Any) -> None:
    coordinates = [Coordinate(MeasureNoise(law)) for law, _ in form]
    sizes = [[factor * one.scale] for (_, factor), one in zip(form, coordinates, strict=True)]
    far = float(linear_reach(np.array(sizes), coordinates, BETA)[0])
    law = stray(form)
    assert missed(law, far) <= 0.05
    if min(one.scale for one in coordinates) >= 3:
        assert missed(law, far) > 0.015  # half a step is added for each
        assert missed(law, 0.8 * far) > 0.05  # the mutant: a shorter reach


@pytest.mark.parametrize("law", [DiscreteLaplace(2), DiscreteGaussian(8)], ids=str)
def test_sums_of_copies(law: Any) -> None:
    """One noise and the sum of eleven more: as in a total over twelve rows."""
    own, rest = Coordinate(MeasureNoise(law)), Coordinate(MeasureNoise(law), 11)
    spread, one = np.ones(1), law_of(law, 60)
    for _ in range(11):
        spread = np.convolve(spread, one)
    for beta in (BETA, Fraction(1, 400)):
        assert missed(spread, rest.accuracy(beta)) <= beta
    sizes = np.array([[4 * own.scale], [rest.scale]])
    far = float(linear_reach(sizes, [own, rest], BETA)[0])
    wide = np.zeros(4 * (len(one) - 1) + 1)
    wide[::4] = one
    assert 0.001 < missed(np.convolve(wide, spread), far) <= 0.05


# ---------------------------------------------------------------- coverage, exactly


def ratio(v: list[Taylor]) -> Any:
    return v[0], v[1]


def product(v: list[Taylor]) -> Any:
    return v[0] * v[1], None


def curved(v: list[Taylor]) -> Any:
    return (v[0] * v[0] / v[1]).sqrt(), v[0] + v[1]


CASES = [
    (ratio, lambda a, b: a / b), (product, lambda a, b: a * b),
    (curved, lambda a, b: abs(a) / math.sqrt(b) / (a + b)),
]  # fmt: skip
TRUE = [(3, 9), (40, 25), (200, 150), (9_000, 25_000)]
LAWS: list[DiscreteLaplace | DiscreteGaussian] = [
    DiscreteLaplace(2),
    DiscreteGaussian(6),
    DiscreteLaplace(9),
    DiscreteGaussian(200),
]


@pytest.mark.parametrize(("formula", "exact"), CASES, ids=["ratio", "product", "curved"])
@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("true", TRUE, ids=str)
def test_every_noise_that_may_come(formula: Any, exact: Any, law: Any, true: Any) -> None:
    """All pairs of noises, with their chances: at least 95 % hold, smooth or not."""
    far = 16 if law == LAWS[1] else 30 if law == LAWS[0] else 100
    chance = law_of(law, far)
    pairs = list(itertools.product(range(-far, far + 1), repeat=2))
    noisy = [doubles([y + pair[i] for pair in pairs]) for i, y in enumerate(true)]
    noise = Coordinate(MeasureNoise(law))
    low, high = Joint(noisy, [noise, noise], BETA).intervals(formula)
    weights = np.outer(chance, chance).ravel()
    truth = exact(*true)
    slack = 1e-12 * abs(truth)  # of the truth in doubles, here
    outside = (low > truth + slack) | (high < truth - slack)
    assert np.sum(weights[outside]) <= 0.05
    if true[0] == 9_000 and law in LAWS[2:]:  # not coarse beside its steps: not many more hold
        assert np.sum(weights[outside]) > 0.03
        middle, half = (low + high) / 2, (high - low) / 2 * 0.85
        outside = (middle - half > truth) | (middle + half < truth)
        assert np.sum(weights[outside]) > 0.05  # the mutant: intervals that are shorter


def test_noises_of_two_kinds_are_boxed() -> None:
    noises = [Coordinate(MeasureNoise(law)) for law in LAWS[:2]]
    low, high = Joint([doubles([900]), doubles([2500])], noises, BETA).intervals(ratio)
    apart = [one.accuracy(BETA / 2) for one in noises]
    assert low[0] <= (900 - apart[0]) / (2500 + apart[1]) < 900 / 2500 < high[0] < 0.37


def test_numbers_beyond_doubles_have_no_interval() -> None:
    noises = [Coordinate(MeasureNoise(LAWS[0]))] * 2
    low, _ = Joint([doubles([10**400, 5]), doubles([1, 10**400])], noises, BETA).intervals(ratio)
    assert np.isnan(low).all()
