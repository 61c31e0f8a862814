"""Draws the figures of the theory for the pages: `make figures`.

    python -m docs.draw_figures                 all of them, into docs/figures
    python -m docs.draw_figures posterior poll  these

Nothing is simulated and nothing is drawn from any source of bits: a point of a curve is a bound or
a probability of this library, rounded once, for the picture. Where data are needed they are made
up: the quantiles of an exponential law, as waiting times or bills often look.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any

from flint import arb
from markupsafe import Markup

from docs.curve_charts import Chart, Curve, Mark, chart, powers_of_ten
from lastbit.errors import InvalidParameter
from lastbit.exact import (
    Ball,
    Number,
    arb_of,
    exact_text,
    positive,
    rational,
    rounded_down,
    rounded_up,
    upper,
    whole,
    working_precision,
)
from lastbit.laws import DiscreteLaplace, DiscretePlanarLaplace, Ideal, IdealLaplace
from lastbit.mechanisms import Gaussian, Laplace, Poll, admissible, uncertainty_curve
from lastbit.privacy import ZCDP, ApproxLoss, PureDP, compositions, delta_upper, posterior_bounds
from lastbit.report.charts import (
    Axis,
    Bars,
    Panel,
    Point,
    Series,
    Stems,
    Ticks,
    middle,
    picture,
    raised,
    round_ticks,
)
from lastbit.sensitivity import sensitivity_at, smooth_sensitivity
from lastbit.verify import ExactLaw, Grid, exact_loss, inverse_laplace

_MOST_BARS = 22
_UPPER = 500
_FAINT = 1e-12  # the least delta to see
_MEAN = 50
_STEPS = 16  # of the grid, in a metre


def _label(number: Fraction) -> str:
    return exact_text(number, 10)


def _drawn(title: str, *words: str, **chosen: Any) -> Markup:
    return chart(Chart(title=title, words=words, **chosen))


def _logarithmic(ends: tuple[float, float], label: str, *, every: int = 1) -> Axis:
    first, last = math.ceil(math.log10(ends[0]) - 1e-9), math.floor(math.log10(ends[1]) + 1e-9)
    ticks = powers_of_ten(first, last, every=every)
    return Axis(ends=ends, ticks=ticks, label=label, logarithmic=True)


def posterior_figure(
    epsilons: Sequence[Number] = ("0", "0.1", "0.5", "1", "2", "5", "10"),
) -> Markup:
    """What an adversary can believe after a release, against what was believed before.

    Source   paper 003, figure 1 and equation (5)

    >>> "26.8 % … 73.2 %" in posterior_figure(["1"])        # what 50 % before becomes
    True
    """
    exact = [rational(epsilon, "epsilon") for epsilon in epsilons]
    near = [Fraction(i * i, 8 * 60 * 60) for i in range(61)]  # the curves are steep at both ends
    priors = [*near, *(Fraction(i, 80) for i in range(11, 70)), *(1 - p for p in reversed(near))]
    curves, marks = [], []
    for epsilon in exact:
        guarantee = PureDP(epsilon)
        bounds = [posterior_bounds(prior, guarantee) for prior in priors]
        above = tuple((float(p), high) for p, (_, high) in zip(priors, bounds, strict=True))
        below = tuple((float(p), low) for p, (low, _) in zip(priors, bounds, strict=True))
        low, high = (100 * Fraction(bound) for bound in posterior_bounds("1/2", guarantee))
        digits = 3 if high < Fraction("99.95") else 5
        ends = f"{rounded_down(low, digits)} % … {rounded_up(high, digits)} %"
        curves.append(
            Curve(
                label=f"ε = {_label(epsilon)}",
                note=f"50 % becomes {ends}" if epsilon else "50 % stays 50 %",
                strands=(above, below) if epsilon else (above,),
                anchored=False,
            )
        )
        at = 1 / (1 + math.exp(min(float(epsilon), 700.0) / 2))  # where the sum of both is 1
        if 0.03 < at < 0.45:  # elsewhere it would cover an axis or another curve
            marks += [Mark(at=(x, 1 - x), words=_label(epsilon)) for x in (at, 1 - at)]
    percent = tuple((i / 5, f"{20 * i} %" if i else "0") for i in range(6))
    return _drawn(
        "What one release can do to a belief",
        "Whatever was believed before an ε-private release, by Bayes’ rule the belief "
        "afterwards lies between",
        "the two curves of that ε: p/(p + (1-p) e^ε) and p/(p + (1-p) e^-ε).",
        across=Axis(ends=(0, 1), ticks=percent, label="belief before the release"),
        up=Axis(ends=(0, 1), ticks=percent, label="belief after the release"),
        curves=tuple(curves),
        marks=tuple(marks),
        width=470,
        height=470,
    )


def poll_figure(
    epsilons: Sequence[Number] = ("0.1", "0.5", "1", "2", "5"), *, half_width: Number = "0.01"
) -> Markup:
    """How surely a poll of n people knows a share, with every answer perturbed at its source.

    Source   paper 003, figure 2 and equations (14) to (16); the widest case, a share of 1/2

    >>> "people for ±0.01" in poll_figure(["1"])
    True
    """
    exact = [positive(epsilon, "epsilon") for epsilon in epsilons]
    wanted = positive(half_width, "half_width")
    sizes = sorted({round(10 ** (1 + i / 8)) for i in range(49)})
    levels: list[Number] = [*exact, math.inf]
    table = uncertainty_curve(levels, sizes).tolist()
    poll = Poll(epsilon=exact[0])
    # a share p told truly widens the interval by 1/p: see `share_variance` at a mean of 1/2
    without = poll.sample_size(wanted / poll.response.truth_probability)
    needed = [Poll(epsilon=epsilon).sample_size(wanted) for epsilon in exact] + [without]
    names = [*(f"ε = {_label(epsilon)}" for epsilon in exact), "no privacy"]
    curves = tuple(
        Curve(
            label=name,
            note=f"{people:,} people for ±{_label(wanted)}",
            strands=(tuple(zip(map(float, sizes), row, strict=True)),),
        )
        for name, people, row in zip(names, needed, table, strict=True)
    )
    return _drawn(
        "What privacy costs a poll",
        "Half the width of an interval that holds in 95 % of polls, for a share of 1/2; each "
        "answer is perturbed before it is given.",
        "Half the width costs four times the people at any ε; a small ε multiplies them "
        "by about 4/ε².",
        across=_logarithmic((10, 10**7), "people asked"),
        up=_logarithmic((1e-4, 1), "half width of the interval"),
        curves=curves,
        width=530,
    )


def count_figure(max_rows: Sequence[int] = (1, 5, 20, 100)) -> Markup:
    """How far off a count of rows is, against its price, for several contribution bounds.

    Law      the least w with P[|X| > w] <= 1/20, X discrete Laplace of scale max_rows/ε


    >>> "± 3 at ε = 1" in count_figure([1])
    True
    """
    epsilons = [Fraction(round(10 ** (3 + i / 8)), 10**5) for i in range(17)]
    curves = []
    for rows in sorted(max_rows):
        off = [int(Laplace(sensitivity=rows, epsilon=e).accuracy(beta="0.05")) for e in epsilons]
        points = tuple((float(e), float(w)) for e, w in zip(epsilons, off, strict=True))
        label, note = f"max_rows = {rows:,}", f"± {off[-1]:,} at ε = 1"
        curves.append(Curve(label=label, note=note, strands=(points,)))
    top = 10 ** math.ceil(math.log10(max(y for c in curves for _, y in c.strands[0])))
    return _drawn(
        "How far off a count is",
        "19 of 20 noisy counts of rows are no further off than this, if one person counts for at",
        "most max_rows rows. Half the price, or twice the rows, is twice the error.",
        across=_logarithmic((0.01, 1), "ε of the count"),
        up=_logarithmic((1, float(top)), "noise ± of the count"),
        curves=tuple(curves),
        width=530,
    )


def laplace_figure(*, sensitivity: Number = 1, epsilon: Number = 1) -> Markup:
    """The exact laws of the Laplace mechanism's output for two neighbouring inputs.

    >>> "the true answer is" in laplace_figure(epsilon=1)
    True
    """
    mechanism = Laplace(sensitivity=sensitivity, epsilon=epsilon)
    distance = math.floor(mechanism.sensitivity)
    law = mechanism.law(0)
    reach = max(distance, 1) + max(int(mechanism.accuracy("0.04")), 3)
    outputs = range(-reach + max(distance, 1), reach + 1)
    step = -(-len(outputs) // 120)  # at most about 120 outputs, evenly apart, 0 among them
    outputs = range(-(-outputs.start // step) * step, outputs.stop, step)
    first, second = (
        Series(
            label=f"the true answer is {_shifted(moved)}",
            points=tuple((float(k), middle(law.probability(k - moved))) for k in outputs),
        )
        for moved in (0, distance)
    )
    few = len(outputs) <= _MOST_BARS
    marks: Bars | Stems = Stems(first=first, second=second)
    if few:
        each = mechanism.epsilon / distance if distance else Fraction(0)
        losses = ((k, each * (abs(k - distance) - abs(k))) for k in outputs)
        over = tuple((float(k), _factor(loss)) for k, loss in losses)
        marks = Bars(first=first, second=second, over=over)
    return picture(
        "The Laplace mechanism",
        (
            Panel(
                title=f"Discrete noise of scale {_label(mechanism.scale)} on the integers",
                verdict=f"privacy loss {_label(mechanism.epsilon)}, exactly",
                good=True,
                words="Every output is possible from both inputs; its exact probabilities differ "
                + ("by the factor above them." if few else "by at most e^ε."),
                marks=marks,
                places=(min(outputs) - 0.8, max(outputs) + 0.8),
                ticks=_output_ticks(outputs),
                axis="released value (height: its exact probability)",
                chart_height=270,
            ),
        ),
    )


def _output_ticks(outputs: range) -> Ticks:
    span = outputs[-1] - outputs[0]
    step = next(s for e in range(400) for m in (1, 2, 5) if span <= 12 * (s := m * 10**e))
    first = -(-outputs[0] // step) * step
    return tuple((float(k), _shifted(k)) for k in range(first, outputs[-1] + 1, step))


def _shifted(k: int) -> str:
    return f"x {'-' if k < 0 else '+'} {abs(k)}" if k else "x"


def _factor(loss: Fraction) -> str:
    if loss.denominator == 1:
        power = {0: "1", 1: "e", -1: "1/e"}
        return power.get(loss.numerator, f"e{raised(loss.numerator)}")
    if abs(loss) >= 300:
        return "huge" if loss > 0 else "tiny"
    return rounded_up(Ball.of(loss).exp().ends[1], 3)


def fixed_point_figure(
    *, scale_bits: int = 2, fractional_bits: int = 6, answer: Number = "7/32"
) -> Markup:
    """The exact laws of two answers with Laplace noise in fixed point: 0, and `answer`.

    Law      n = scale_bits, d = fractional_bits: a release is r + 2**n z/2**d, z an integer of the
             Laplace law of scale 2**d, so that the noise has the scale 2**n
    Theorem  all releases of r are r plus multiples of 2**(n-d): two answers have no output in
             common unless they differ by such a multiple
    Source   paper 000, Example 1.1 and Figure 1: n = 2, d = 6, r2 = 3/2**4 + 1/2**5, which is
             k 2**n + h steps of 2**-d with k = 3 and h = 2
    Differs  the machine's Laplace law is the discrete one on its grid
    Checked  tests/docs/test_figures.py

    >>> "leaks" in fixed_point_figure(), "leaks" in fixed_point_figure(answer="1/4")
    (True, False)
    """
    n, d = whole(scale_bits, "scale_bits"), whole(fractional_bits, "fractional_bits", least=1)
    unit, step = 1 << d, 1 << n
    other = rational(answer, "answer") * unit
    if other.denominator != 1 or not 0 < other <= 4 * unit or step > unit or d > 12:
        raise InvalidParameter(
            "answer",
            problem="is no number of the grid above 0 and up to 4, or the grid is too fine",
            remedy="pass a multiple of 2**-fractional_bits; scale_bits <= fractional_bits <= 12",
        )
    law = DiscreteLaplace(unit)
    outputs = range(-unit, int(other) + unit + 1)
    thin = -(-len(outputs) // (160 * step))  # of very many outputs some are shown
    combs = [
        tuple(
            (k / unit, middle(law.probability((k - moved) // step)))
            for k in outputs
            if (k - moved) % (step * thin) == 0
        )
        for moved in (0, int(other))
    ]
    apart = int(other) % step
    names = [f"r{chr(0x2081 + i)} = {_label(r)}" for i, r in enumerate((Fraction(0), other / unit))]
    return picture(
        "Noise in fixed point",
        (
            Panel(
                title=f"{d} fractional bits, noise of scale {step}: integers times {step}",
                verdict="leaks: no ε holds" if apart else "the same outputs for both",
                good=not apart,
                words=f"The two answers are {int(other)} steps of 2{raised(-d)} apart, "
                + (f"{apart} more than a multiple of {step}: no output is common to both."
                   if apart else f"a multiple of {step}."),
                marks=Stems(
                    first=Series(label=names[0], points=combs[0]),
                    second=Series(label=names[1], points=combs[1]),
                ),
                places=(outputs[0] / unit - 0.02, outputs[-1] / unit + 0.02),
                ticks=round_ticks(outputs[0] / unit, outputs[-1] / unit, most=9),
                axis="released value (each stem is one output, with its exact probability)",
                chart_height=270,
            ),
        ),
    )  # fmt: skip


def uniform_figure(*, bits: int = 8, ratio: Number = "4/3") -> Markup:
    """The exact laws of Laplace noise made of few uniforms, beside the laws that were meant.

    Law      the code of paper 000's Example 4.1 for the values 0 and 1, its result rounded to the
             integers: the uniform is one of k/2**bits, k = 1 ... 2**bits - 1, all alike
    Theorem  probabilities are whole multiples of 1/(2**bits - 1), so in the tail their quotient is
             2, 3/2, ... where the meant one is `ratio`; and beyond the least uniform one of them is
             0: the pure loss is infinite, which the paper does not say of this example
    Source   paper 000, Example 4.1 and Figure 2
    Checked  tests/docs/test_figures.py
    """
    few, factor = Grid(bits, first=1), rational(ratio, "ratio")
    scale = 1 / math.log(factor)

    def code(value: float, u: float) -> float:
        return inverse_laplace(value, u, scale=scale, cell=1.0)

    loss = exact_loss(code, 0.0, 1.0, uniform=few, signs=None)
    outputs = range(int(loss.laws[0].outputs[0]), int(loss.laws[1].outputs[-1]) + 1)
    with working_precision(64):
        step = (-1 / arb_of(Fraction(scale))).exp()
        beside = (1 - step) / step.sqrt() / 2
        ideal = [middle(Ball(beside * step ** abs(k) if k else 1 - step.sqrt())) for k in outputs]
    curves = []
    for moved in (0, 1):
        meant = tuple((float(k + moved), p) for k, p in zip(outputs, ideal, strict=True))
        inside = tuple(point for point in meant if point[0] <= outputs[-1])
        curves.append(Curve(label=f"meant, value {moved}", strands=(inside,), anchored=False))
    for law, moved in zip(loss.laws, (0, 1), strict=True):
        note = f"{few.size} uniforms, all alike"
        steps = tuple(_stairs(law, outputs))
        curves.append(
            Curve(label=f"exact, value {moved}", note=note, strands=steps, anchored=False)
        )
    one, two = (law.probability for law in loss.laws)
    tail = [k for k in outputs if one(k) and (not two(k) or one(k) / two(k) > factor)]
    words = {k: _label(one(k) / two(k)) if two(k) else "∞" for k in tail}
    shown = [k for k in tail if words[k] in ("2", "∞")]
    marks = [Mark(at=(float(k), 1.6 * float(one(k))), words=words[k]) for k in shown]
    return _drawn(
        "What a generator with few values does to noise",
        "A value, 0 or 1, with Laplace noise, rounded. The probabilities of an output should "
        f"differ by {_label(factor)} at most;",
        "made of few uniforms they differ by the numbers shown, and by ∞ where one of them is 0.",
        across=Axis(
            ends=(outputs[0] - 0.5, outputs[-1] + 0.5),
            label="released value",
            ticks=round_ticks(outputs[0], outputs[-1], most=9),
        ),
        up=_logarithmic((0.3 / few.size, 1), "probability"),
        curves=tuple(curves),
        marks=tuple(marks),
        width=560,
    )


def _stairs(law: ExactLaw, outputs: range) -> list[tuple[Point, ...]]:
    """Runs of neighbouring outputs that occur, each a step as wide as its cell."""
    runs: list[list[Point]] = []
    for k in outputs:
        height = float(law.probability(float(k)))
        if height and (not runs or runs[-1][-1][0] != k - 0.5):
            runs.append([])
        if height:
            runs[-1] += [(k - 0.5, height), (k + 0.5, height)]
    return [tuple(run) for run in runs]


def gaussian_curve_figure(*, standard_deviation: Number = 5) -> Markup:
    """The exact delta(epsilon) of the discrete Gaussian, and three bounds people use instead.

    Source   CKS20 Theorem 7 (exact) and Proposition 12 (best order); Bun, Steinke 2016
             Proposition 3 (exp(-(epsilon-rho)**2/(4 rho))); Dwork, Roth 2014 Theorem A.1
             (classical, proved for epsilon < 1 only)

    >>> gaussian_curve_figure(standard_deviation=5).startswith("<svg")
    True
    """
    deviation = positive(standard_deviation, "standard_deviation")
    mechanism = Gaussian(sensitivity=1, standard_deviation=deviation)
    rho = mechanism.guarantee_at(1).rho
    assert isinstance(rho, Fraction)
    # where the highest of the curves has fallen to about 1e-9
    rough = float(rho) + 2 * math.sqrt(float(rho) * math.log(1e9))
    digit = 10.0 ** math.floor(math.log10(rough))
    last = Fraction(f"{round(rough / digit * 5) / 5 * digit:.3g}")
    epsilons = [last * i / 400 for i in range(401)]
    density, sigma = float(rho), float(deviation)
    tail = [(float(e), float(e) - density) for e in epsilons if e >= rho]
    small = [float(e) for e in epsilons if e < 1]
    bounds: tuple[tuple[str, str, tuple[Point, ...]], ...] = (
        (
            "exact",
            "the truth, rounded up once",
            tuple((float(e), mechanism.delta(e)) for e in epsilons),
        ),
        (
            "zCDP, best order",
            "Canonne, Kamath, Steinke",
            tuple((float(e), float(delta_upper(ZCDP(rho), e))) for e in epsilons),
        ),
        (
            "zCDP, ρ + 2√(ρ ln 1/δ)",
            "Bun, Steinke",
            tuple((e, math.exp(-(more**2) / (4 * density))) for e, more in tail),
        ),
        (
            "classical",
            "proved for ε < 1 only" if len(small) <= 400 else "Dwork, Roth",
            tuple((e, 1.25 * math.exp(-((e * sigma) ** 2) / 2)) for e in small),
        ),
    )
    curves = tuple(Curve(label=name, note=note, strands=(line,)) for name, note, line in bounds)
    floor = 2 * math.floor(math.log10(curves[0].strands[0][-1][1]) / 2)
    return _drawn(
        "How private the discrete Gaussian is",
        f"Noise of standard deviation {_label(deviation)} on an integer that one "
        f"person moves by 1, hence ρ = {_label(rho)}.",
        "The same noise promises more than any of the three bounds can say: the exact "
        "curve lies below them.",
        across=Axis(ends=(0, float(last)), ticks=round_ticks(0, float(last), most=9), label="ε"),
        up=_logarithmic((10.0**floor, 1.0), "δ", every=2),
        curves=curves,
        width=540,
    )


def composition_figure(
    *, epsilon: Number = "0.1", delta: Number = "1e-6", releases: int = 1000
) -> Markup:
    """What k releases of the same epsilon cost together, theorem by theorem.

    >>> composition_figure(epsilon="0.1", releases=10).startswith("<svg")
    True
    """
    loss, level = positive(epsilon, "epsilon"), positive(delta, "delta")
    counts = sorted({round(releases ** (i / 40)) for i in range(41)})
    rows = [(float(k), compositions([PureDP(loss)] * k, level)) for k in counts]
    bounds = [(float(k), (k * ApproxLoss(loss)).epsilon(level)) for k in counts]
    theorems = tuple(
        Curve(
            label=label,
            note=note,
            strands=(
                tuple(
                    (k, float(row[name].epsilon)) for k, row in rows if row[name].epsilon < math.inf
                ),
            ),
        )
        for name, label, note in (
            ("basic", "basic", "losses add up: k ε"),
            ("advanced", "advanced", "Dwork, Rothblum, Vadhan"),
            ("concentrated", "through zCDP", "ρ = k ε tanh(ε/2), best order"),
        )
    )
    curves = (*theorems, _tight(bounds))
    heights = [y for curve in curves for _, y in curve.strands[0] if y > 0]
    return _drawn(
        "What many releases cost together",
        f"k releases, each with ε = {_label(loss)}, and what each theorem says of "
        f"all of them at δ = {_label(level)}.",
        "Tight is exact, drawn as a lower and an upper bound: no smaller ε is true of k releases "
        "by randomised response.",
        across=_logarithmic((1, float(releases)), "k, the number of releases"),
        up=_logarithmic((min(heights) * 0.8, max(heights) * 1.25), "ε of all releases together"),
        curves=curves,
        width=540,
    )


def _tight(bounds: Sequence[tuple[float, tuple[float, float]]]) -> Curve:
    """Both bounds of a profile, the upper one first, and how far apart they are at most."""
    apart = max(
        (1 - Fraction(low) / Fraction(high) for _, (low, high) in bounds if high), default=0
    )
    note = f"both bounds, ≤ {rounded_up(apart, 1)} apart" if apart else "both bounds, equal"
    above = tuple((x, high) for x, (_, high) in bounds)
    below = tuple((x, low) for x, (low, _) in bounds)
    return Curve(label="tight", note=note, strands=(above, below))


def composition_curve_figure(*, epsilon: Number = "0.1", releases: int = 50) -> Markup:
    """The delta of k releases of the same epsilon against the epsilon of all of them.

    Source   as `compositions`; Dwork, Rothblum, Vadhan 2010 solved for delta:
             exp(-(x - k e (exp(e) - 1))**2/(2 k e**2))

    >>> composition_curve_figure(epsilon="0.1", releases=10).startswith("<svg")
    True
    """
    loss, count = positive(epsilon, "epsilon"), whole(releases, "releases", least=2)
    each, total = float(loss), loss * count
    drift, spread = count * each * math.expm1(each), math.sqrt(2 * count) * each
    rough = min(drift + spread * math.sqrt(-math.log(_FAINT)), 1.1 * float(total))
    places = [Fraction(rough) * i / 160 for i in range(161)]
    profile, concentrated = count * ApproxLoss(loss), count * PureDP(loss).to(ZCDP).rho
    tail = (float(x) for x in places if x >= drift)
    curves = (
        Curve(
            label="basic",
            note=f"δ = 0 from ε = {_label(total)} on",
            strands=(((float(total), 1.0), (float(total), _FAINT)),) if total <= rough else (),
            anchored=False,
        ),
        Curve(
            label="advanced",
            note="Dwork, Rothblum, Vadhan",
            strands=(tuple((x, math.exp(-(((x - drift) / spread) ** 2))) for x in tail),),
            anchored=False,
        ),
        Curve(
            label="through zCDP",
            note="ρ = k ε tanh(ε/2), best order",
            strands=(tuple((float(x), float(delta_upper(ZCDP(concentrated), x))) for x in places),),
            anchored=False,
        ),
        _tight([(float(x), profile.delta(x)) for x in places]),
    )
    return _drawn(
        "How private many releases are together",
        f"{count:,} releases, each with ε = {_label(loss)}: which δ each theorem proves for an ε "
        "of all of them.",
        "Tight is exact, drawn as a lower and an upper bound: no smaller δ is true of releases by "
        "randomised response.",
        across=Axis(
            ends=(0, rough), ticks=round_ticks(0, rough, most=9), label="ε of all releases"
        ),
        up=_logarithmic((_FAINT, 1.0), "δ", every=2),
        curves=curves,
        width=540,
    )


def made_up_waits(count: int) -> list[float]:
    """Quantiles of an exponential law of mean 50: skewed, and nobody's.

    >>> [round(wait) for wait in made_up_waits(5)]
    [5, 18, 35, 60, 115]
    """
    return [-_MEAN * math.log1p(-(i + 0.5) / count) for i in range(count)]


def smooth_sensitivity_figure(
    epsilons: Sequence[Number] = ("0.1", "0.5", "2"), *, count: int = 1001
) -> Markup:
    """How far one record can move the median, of databases further and further away.

    Source   Nissim, Raskhodnikova, Smith 2007; for Cauchy noise, beta = epsilon/2

    >>> smooth_sensitivity_figure(["1"], count=101).startswith("<svg")
    True
    """
    exact = [positive(epsilon, "epsilon") for epsilon in epsilons]
    data = made_up_waits(whole(count, "count", least=3))
    last = count // 2 + 2
    distances = sorted({round(last ** (i / 60)) - 1 for i in range(61)})
    local = [
        float(sensitivity_at("median", data, distance=k, lower=0, upper=_UPPER)) for k in distances
    ]
    places = [float(k + 1) for k in distances]
    curves = [Curve(label="not discounted", strands=(tuple(zip(places, local, strict=True)),))]
    marks = []
    for epsilon in exact:
        beta = epsilon / 2
        bound = smooth_sensitivity("median", data, beta=beta, lower=0, upper=_UPPER).bound
        pairs = zip(distances, local, strict=True)
        heights = [far * math.exp(-float(beta) * k) for k, far in pairs]
        best = max(range(len(heights)), key=heights.__getitem__)
        marks.append(Mark(at=(places[best], heights[best]), words="▼"))
        curves.append(
            Curve(
                label=f"ε = {_label(epsilon)}, β = {_label(beta)}",
                note=f"greatest: S ≤ {rounded_up(bound, 3)}",
                strands=(tuple(zip(places, heights, strict=True)),),
                anchored=False,
            )
        )
    floor = math.floor(math.log10(min(local) / 10))
    return _drawn(
        "Smooth sensitivity of a median",
        f"{count:,} made-up waits between 0 and {_UPPER}, most of them short. One record "
        f"can move the median of some database by {_UPPER};",
        "but it is far away. Discounted by e^-β for each record between, the greatest "
        "value (▼) is what noise must cover.",
        across=_logarithmic((1, float(last)), "1 + records that differ"),
        up=_logarithmic((10.0**floor, 1000.0), "how far one record moves the median"),
        curves=tuple(curves),
        marks=tuple(marks),
        width=540,
    )


def admissible_figure(
    *, epsilon: Number = "1", delta: Number = "1e-6", count: int = 1001
) -> Markup:
    """How often the error of a private median exceeds a size, noise by noise.

    >>> admissible_figure(epsilon=1, count=101).startswith("<svg")
    True
    """
    loss, level = positive(epsilon, "epsilon"), positive(delta, "delta")
    data = made_up_waits(whole(count, "count", least=3))
    errors = [10 ** (-2 + i / 12) for i in range(12 * 5 + 1)]
    laws: list[tuple[str, str, Ideal, Fraction, int]] = []
    for name, label, needs in (
        ("cauchy", "Cauchy", False),
        ("student", "Student’s t, 3 degrees", False),
        ("laplace", "Laplace", True),
        ("gaussian", "Gaussian", True),
    ):
        chosen = admissible(name, epsilon=loss, delta=level if needs else None)
        bound = smooth_sensitivity("median", data, beta=chosen.beta, lower=0, upper=_UPPER).bound
        promise = f"δ = {_label(level)}" if needs else "pure"
        laws.append((label, promise, chosen.law, bound / chosen.alpha, 2))
    laws.append(("Laplace, worst case", "pure", IdealLaplace(), _UPPER / loss, 3))
    curves = []
    for label, promise, law, width, digits in laws:
        with working_precision(64):
            tail = ((e, upper(2 * law.above(arb(e) / arb_of(width)))) for e in errors)
            points = tuple(point for point in tail if point[1] > 1e-9)
            half = rounded_up(upper(law.quantile("3/4").enclosure * arb_of(width)), digits)
        note = f"{promise}; half the errors < {half}"
        curves.append(Curve(label=label, note=note, strands=(points,), anchored=False))
    return _drawn(
        "Which noise for a smooth bound",
        f"A median of {count:,} made-up waits between 0 and {_UPPER}, released with "
        f"ε = {_label(loss)}: how often the error exceeds a size.",
        "Heavy tails allow a greater β, hence a smaller bound and small typical errors; "
        "light tails seldom err by much.",
        across=_logarithmic((0.01, 1000), "error"),
        up=_logarithmic((1e-6, 1), "probability of a larger error"),
        curves=tuple(curves),
        width=500,
    )


def planar_figure(factors: Sequence[Number] = ("2", "4", "10"), *, within: Number = 200) -> Markup:
    """How far a reported place lies from the true one.

    >>> planar_figure(["4"], within=200).startswith("<svg")
    True
    """
    distance = positive(within, "within")
    radii = [float(distance) * i / 20 for i in range(141)]
    curves = []
    for factor in factors:
        odds = positive(factor, "factor")
        rate = Fraction(math.log(odds)) / distance  # for the picture only
        law = DiscretePlanarLaplace(rate / _STEPS)
        shares = tuple((r, 100 * (1 - law.tail_upper(r * _STEPS))) for r in radii if r)
        held, mean = (
            math.ceil(far / _STEPS) for far in (law.radius("0.95"), law.mean_distance_upper)
        )
        curves.append(
            Curve(
                label=f"odds × {_label(odds)} within {_label(distance)} m",
                note=f"95 % within {held:,} m, mean {mean:,} m",
                strands=(((0.0, 0.0), *shares),),
                anchored=False,
            )
        )
    metres = tuple((float(distance) * i, f"{float(distance) * i:g}") for i in range(8))
    percent = tuple((20.0 * i, f"{20 * i} %") for i in range(6))
    return _drawn(
        "How far a private place is from the true one",
        f"An adversary who sees the report, and weighs two places {_label(distance)} m "
        "apart, may change the odds between them by the factor",
        "named, and no more. The share of reports within each distance of the true place.",
        across=Axis(ends=(0, radii[-1]), ticks=metres, label="distance in metres"),
        up=Axis(ends=(0, 100), ticks=percent, label="reports within that distance"),
        curves=tuple(curves),
        width=520,
    )


FOLDER = Path(__file__).parent / "figures"
FIGURES: Mapping[str, Callable[[], Markup]] = MappingProxyType(
    {
        "posterior": posterior_figure,
        "poll": poll_figure,
        "count": count_figure,
        "laplace": laplace_figure,
        "fixed-point": fixed_point_figure,
        "uniform": uniform_figure,
        "gaussian-curve": gaussian_curve_figure,
        "composition": composition_figure,
        "composition-curve": composition_curve_figure,
        "smooth-sensitivity": smooth_sensitivity_figure,
        "admissible": admissible_figure,
        "planar": planar_figure,
    }
)
"""Every figure by the name of its file."""


def main(names: Sequence[str]) -> None:
    """Draw the figures of these names, or all."""
    for name in names or FIGURES:
        (FOLDER / f"{name}.svg").write_text(FIGURES[name](), encoding="utf-8")
        print(f"wrote {FOLDER.name}/{name}.svg")


if __name__ == "__main__":
    main(sys.argv[1:])
