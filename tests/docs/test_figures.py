"""Figures: their points are the library's own bounds, read back from the picture."""

import math
import re
from fractions import Fraction
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings, strategies as st

from docs.curve_charts import LEFT, TOP
from docs.draw_figures import (
    composition_curve_figure,
    composition_figure,
    count_figure,
    fixed_point_figure,
    gaussian_curve_figure,
    laplace_figure,
    poll_figure,
    posterior_figure,
    uniform_figure,
)
from lastbit.errors import InvalidParameter
from lastbit.laws.discrete import DiscreteLaplace
from lastbit.mechanisms.gaussian import discrete_gaussian_delta
from lastbit.mechanisms.poll import Poll
from lastbit.privacy.accounting.losses import ApproxLoss
from lastbit.privacy.compose import compositions
from lastbit.privacy.convert import posterior_bounds
from lastbit.privacy.guarantees import PureDP

SVG = "{http://www.w3.org/2000/svg}"


def strands(text: str, kind: int) -> list[list[tuple[float, float]]]:
    """The pieces of one curve in pixels from the lower left corner, without the one by its name."""
    found = []
    for element in ElementTree.fromstring(text).iter(f"{SVG}polyline"):
        if f"curve{kind}" in (element.get("class") or "").split():
            pairs = (p.split(",") for p in element.get("points", "").split())
            found.append([(float(x) - LEFT, float(y) - TOP) for x, y in pairs])
    return found[:-1]


def test_the_posterior_figure_shows_the_bounds():
    text = posterior_figure(["1"])
    above, below = strands(text, 0)
    for strand, side in ((above, 1), (below, 0)):
        for x, y in strand:
            bound = posterior_bounds(Fraction(round(x * 100), 47000), PureDP(1))[side]
            assert 470 - y == pytest.approx(470 * bound, abs=0.06)
    assert "50 % becomes 26.8 % … 73.2 %" in text


def test_the_poll_figure_shows_the_half_widths():
    text = poll_figure(["1"])
    (curve,) = strands(text, 0)
    x, y = curve[-1]
    n = round(10 ** (1 + 6 * x / 530))
    assert n == 10**7
    assert 10 ** (-4 * y / 400) == pytest.approx(Poll(epsilon=1).half_width(n), rel=1e-3)
    assert "44,971 people for ±0.01" in text
    assert "9,604 people for ±0.01" in text


def test_the_count_figure_shows_the_quantiles():
    text = count_figure([10])
    (curve,) = strands(text, 0)
    law = DiscreteLaplace(1000)  # ten rows at ε = 1/100, where the curve begins
    x, y = curve[0]
    assert x == 0
    assert 10 ** (4 * (400 - y) / 400) == pytest.approx(law.quantile("0.975"), rel=1e-3)
    assert "± 30 at ε = 1" in text


def test_the_laplace_figure_shows_the_law():
    root = ElementTree.fromstring(laplace_figure(epsilon=1))
    bars = [e for e in root.iter(f"{SVG}rect") if e.get("class") == "first"][1:]
    tallest = max(float(e.get("height", "")) for e in bars)
    ends = DiscreteLaplace(1).probability(0).ends
    assert tallest == pytest.approx(270 * float(ends[0]) / 0.6, abs=0.01)
    words = list(root.itertext())
    assert words.count("e") == words.count("1/e") == 4


def test_the_fixed_point_figure_is_that_of_the_paper():
    """n = 2, d = 6: stems 1/16 apart, those of 7/32 between those of 0."""
    text = fixed_point_figure()
    words = " ".join(ElementTree.fromstring(text).itertext())
    assert "r₁ = 0" in words and "14 steps of 2⁻⁶ apart" in words and "2 more than" in words
    assert "leaks" not in fixed_point_figure(answer="3/16")
    for wrong in ({"answer": "1/3"}, {"answer": 0}, {"answer": 5}, {"scale_bits": 7}):
        with pytest.raises(InvalidParameter):
            fixed_point_figure(**wrong)


def test_the_uniform_figure_shows_multiples_of_one_probability():
    text = uniform_figure(bits=8)
    (up,) = {y for _, y in strands(text, 0)[0][-1:]}  # the ideal law ends where it leaves the frame
    assert up == pytest.approx(400, abs=0.5)
    for kind in (2, 3):
        for strand in strands(text, kind):
            for _, y in strand:
                share = 10 ** (math.log10(0.3 / 255) * y / 400) * 255
                assert share == pytest.approx(round(share), rel=1e-3)
    words = list(ElementTree.fromstring(text).itertext())
    assert words.count("2") == 1
    assert words.count("∞") == 3


def test_the_gaussian_figure_shows_the_exact_curve():
    text = gaussian_curve_figure(standard_deviation=5)
    (curve,) = strands(text, 0)
    for x, y in curve[::50]:
        epsilon = Fraction(round(x / 540 * 400), 400) * Fraction("1.4")
        delta = discrete_gaussian_delta(epsilon, variance=Fraction(25), distance=1)
        assert -14 * y / 400 == pytest.approx(math.log10(delta), abs=1e-3)


def test_the_exact_curve_lies_below_the_bounds():
    text = gaussian_curve_figure(standard_deviation=5)
    exact = dict(strands(text, 0)[0])
    for kind in (1, 2, 3):
        (bound,) = strands(text, kind)
        assert all(y < exact[x] for x, y in bound if x in exact)  # y grows downwards


def test_the_composition_figure_shows_the_theorems():
    text = composition_figure(epsilon="0.1", delta="1e-6", releases=100)
    found = compositions([PureDP("0.1")] * 100, "1e-6")
    names = ("basic", "advanced", "concentrated", "tight")
    ends = {name: strands(text, kind)[0][-1] for kind, name in enumerate(names)}
    low, high = ends["tight"][1], ends["basic"][1]
    ratio = math.log(float(found["basic"].epsilon / found["tight"].epsilon))
    pixels = (low - high) / ratio
    for name in ("advanced", "concentrated"):
        apart = math.log(float(found[name].epsilon / found["tight"].epsilon))
        assert low - ends[name][1] == pytest.approx(pixels * apart, abs=0.05)


def test_the_composition_figure_shows_both_tight_bounds():
    text = composition_figure(epsilon="0.1", delta="1e-6", releases=100)
    above, below = strands(text, 3)
    assert len(above) == len(below) > 20
    assert all(low[1] >= high[1] - 0.01 for high, low in zip(above, below, strict=True))
    assert re.search("both bounds, ≤ .e-1[4-6] apart", text)


def test_the_composition_curve_is_the_profile():
    text = composition_curve_figure(epsilon="0.1", releases=50)
    above, below = strands(text, 3)
    last = Fraction(1.1 * 5.0)  # basic composition ends at 5, and one tenth more is shown
    for high, low in list(zip(above, below, strict=True))[:-1:20]:
        x = last * round(high[0] / 540 * 160) / 160
        deltas = (50 * ApproxLoss("0.1")).delta(x)
        for (_, y), delta in zip((low, high), deltas, strict=True):
            assert -12 * y / 400 == pytest.approx(math.log10(delta), abs=1e-3)


def test_the_tight_curve_lies_below_the_theorems():
    text = composition_curve_figure(epsilon="0.1", releases=50)
    tight = dict(strands(text, 3)[0])
    for kind in (1, 2):
        (bound,) = strands(text, kind)
        common = [(y, tight[x]) for x, y in bound if x in tight]
        assert len(common) > 100
        assert all(y < exact for y, exact in common)  # y grows downwards


@pytest.mark.parametrize(("releases", "drawn"), [(50, 1), (1000, 0)])
def test_basic_composition_is_one_vertical_line_or_a_note(releases, drawn):
    text = composition_curve_figure(epsilon="0.1", releases=releases)
    lines = strands(text, 0)
    assert len(lines) == drawn
    assert all(line[0][0] == line[-1][0] for line in lines)
    assert f"δ = 0 from ε = {releases // 10} on" in text


@given(st.integers(1, 400), st.integers(2, 60))
@settings(max_examples=10)
def test_any_composition_curve_is_well_formed(percent, releases):
    text = composition_curve_figure(epsilon=Fraction(percent, 100), releases=releases)
    ElementTree.fromstring(text)
    assert "nan" not in text


def test_nothing_is_drawn_at_random():
    assert posterior_figure() == posterior_figure()
    assert laplace_figure() == laplace_figure()
