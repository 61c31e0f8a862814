"""Figures of the theory, each worked out exactly and drawn as one SVG picture.

Nothing is simulated and nothing is drawn from any source of bits: a point of a curve is a bound or
a probability of this library, rounded once, for the picture.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from fractions import Fraction

from lastbit.exact import Ball, Number, positive, rational, shown
from lastbit.mechanisms import Gaussian, Laplace, Poll, uncertainty_curve
from lastbit.privacy import ZCDP, PureDP, compositions, delta_upper, posterior_bounds
from lastbit.report.curves import Axis, Chart, Curve, Mark, chart, powers_of_ten
from lastbit.report.plots import Bars, Panel, Series, Stems, picture

_MOST_BARS = 22


def number_text(number: Fraction) -> str:
    """A number for a label, cut if it is long."""
    words = shown(number).strip("'")
    short = words if len(words) <= 10 else f"{float(number):.4g}"
    return re.sub(r"e([+-])0", r"e\1", short)  # 1e-6, not 1e-06


# -- posterior --


def posterior_figure(epsilons: Sequence[Number] = ("0", "0.1", "0.5", "1", "2", "5", "10")) -> str:
    """What an adversary can believe after a release, against what was believed before.

    Source   paper 003, figure 1 and equation (5)
    """
    exact = [rational(epsilon, "epsilon") for epsilon in epsilons]
    priors = _priors()
    curves, marks = [], []
    for epsilon in exact:
        guarantee = PureDP(epsilon)
        bounds = [posterior_bounds(prior, guarantee) for prior in priors]
        above = tuple((float(p), high) for p, (_, high) in zip(priors, bounds, strict=True))
        below = tuple((float(p), low) for p, (low, _) in zip(priors, bounds, strict=True))
        low, high = posterior_bounds("1/2", guarantee)
        curves.append(
            Curve(
                label=f"ε = {number_text(epsilon)}",
                note=f"50 % becomes {_percent(low)} … {_percent(high)}"
                if epsilon
                else "50 % stays 50 %",
                strands=(above, below) if epsilon else (above,),
                anchored=False,
            )
        )
        at = 1 / (1 + math.exp(min(float(epsilon), 700.0) / 2))  # where the sum of both is 1
        if 0.03 < at < 0.45:  # elsewhere it would cover an axis or another curve
            marks += [Mark(at=(x, 1 - x), words=number_text(epsilon)) for x in (at, 1 - at)]
    percent = tuple((i / 5, f"{20 * i} %" if i else "0") for i in range(6))
    return chart(
        Chart(
            title="What one release can do to a belief",
            words=(
                "Whatever was believed before an ε-private release, by Bayes’ rule the belief "
                "afterwards lies between",
                "the two curves of that ε: p/(p + (1-p) e^ε) and p/(p + (1-p) e^-ε).",
            ),
            across=Axis(ends=(0, 1), ticks=percent, label="belief before the release"),
            up=Axis(ends=(0, 1), ticks=percent, label="belief after the release"),
            curves=tuple(curves),
            marks=tuple(marks),
            width=470,
            height=470,
        )
    )


def _priors() -> list[Fraction]:
    """Beliefs from 0 to 1, close together at both ends, where the curves are steep."""
    near = [Fraction(i * i, 8 * 60 * 60) for i in range(61)]  # up to 1/8
    inner = [Fraction(i, 80) for i in range(11, 70)]
    return [*near, *inner, *(1 - p for p in reversed(near))]


def _percent(share: float) -> str:
    value = 100 * share
    if 0 < value < 0.0005:
        return "< 0.001 %"
    if 99.95 < value < 100 or 0 < value < 0.05:
        return f"{value:.3f} %"
    return f"{value:.1f} %" if value % 1 else f"{value:.0f} %"


# -- poll --


def poll_figure(
    epsilons: Sequence[Number] = ("0.1", "0.5", "1", "2", "5"), *, half_width: Number = "0.01"
) -> str:
    """How surely a poll of n people knows a share, with every answer perturbed at its source.

    Source   paper 003, figure 2 and equations (14) to (16); the widest case, a share of 1/2
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
    curves = tuple(
        Curve(
            label="no privacy" if epsilon == math.inf else f"ε = {number_text(rational(epsilon))}",
            note=f"{people:,} people for ±{number_text(wanted)}",
            strands=(tuple(zip(map(float, sizes), row, strict=True)),),
        )
        for epsilon, people, row in zip(levels, needed, table, strict=True)
    )
    return chart(
        Chart(
            title="What privacy costs a poll",
            words=(
                "Half the width of the 95 % interval for a share of 1/2, if each answer is "
                "perturbed before it is given.",
                "Half the width costs four times the people at any ε; a small ε multiplies them "
                "by about 4/ε².",
            ),
            across=Axis(
                ends=(10, 10**7), ticks=powers_of_ten(1, 7), label="people asked", logarithmic=True
            ),
            up=Axis(
                ends=(1e-4, 1),
                ticks=powers_of_ten(-4, 0),
                label="half width of the interval",
                logarithmic=True,
            ),
            curves=curves,
            width=530,
        )
    )


# -- laplace --


def laplace_figure(*, sensitivity: Number = 1, epsilon: Number = 1) -> str:
    """The exact laws of the Laplace mechanism's output for two neighbouring inputs."""
    mechanism = Laplace(sensitivity=sensitivity, epsilon=epsilon)
    distance = math.floor(mechanism.sensitivity)
    law = mechanism.law(0)
    reach = max(distance, 1) + max(int(mechanism.accuracy("0.04")), 3)
    outputs = _thinned(range(-reach + max(distance, 1), reach + 1))
    laws = [
        tuple((float(k), _middle(law.probability(k - moved))) for k in outputs)
        for moved in (0, distance)
    ]
    series = [
        Series(label=f"the true answer is {name}", points=points)
        for name, points in zip(("x", f"x + {distance}" if distance else "x"), laws, strict=True)
    ]
    losses = {k: mechanism.epsilon * _slope(k, distance) for k in outputs}
    few = len(outputs) <= _MOST_BARS
    marks: Bars | Stems
    if few:
        over = tuple((float(k), _factor(loss)) for k, loss in losses.items())
        marks = Bars(first=series[0], second=series[1], over=over)
    else:
        marks = Stems(first=series[0], second=series[1])
    tallest = max(height for points in laws for _, height in points)
    return picture(
        "The Laplace mechanism",
        (
            Panel(
                title=f"Discrete noise of scale {number_text(mechanism.scale)} on the integers",
                verdict=f"privacy loss {number_text(mechanism.epsilon)}, exactly",
                good=True,
                words="Every output is possible from both inputs; its exact probabilities differ "
                + ("by the factor above them." if few else "by at most e^ε."),
                marks=marks,
                places=(min(outputs) - 0.8, max(outputs) + 0.8),
                ticks=_output_ticks(outputs),
                axis="released value (height: its exact probability)",
                heights=_heights(tallest),
                chart_height=270,
            ),
        ),
    )


def _slope(k: int, distance: int) -> Fraction:
    return Fraction(abs(k - distance) - abs(k), distance) if distance else Fraction(0)


def _thinned(outputs: range) -> range:
    """At most about 120 outputs, evenly apart, 0 among them."""
    step = -(-len(outputs) // 120)
    return range(-(-outputs.start // step) * step, outputs.stop, step)


def _output_ticks(outputs: range) -> tuple[tuple[float, str], ...]:
    span = outputs[-1] - outputs[0]
    step = next(s for e in range(400) for m in (1, 2, 5) if span <= 12 * (s := m * 10**e))
    first = -(-outputs[0] // step) * step
    return tuple((float(k), _moved(k)) for k in range(first, outputs[-1] + 1, step))


def _moved(k: int) -> str:
    return f"x {'-' if k < 0 else '+'} {abs(k)}" if k else "x"


def _factor(loss: Fraction) -> str:
    if loss == 0:
        return "1"
    if loss.denominator == 1:
        power = str(loss.numerator).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
        return {1: "e", -1: "1/e"}.get(loss.numerator, f"e{power}")
    return f"{math.exp(loss):.3g}" if abs(loss) < 300 else ("huge" if loss > 0 else "tiny")


def _heights(largest: float) -> tuple[tuple[float, str], ...]:
    """Round labels from 0 to just above the tallest mark."""
    rough = largest * 1.12 / 4
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(m * size for m in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if m * size >= rough)
    return tuple((i * step, f"{i * step:.4g}") for i in range(5))


def _middle(probability: Ball) -> float:
    low, high = probability.ends
    return float((low + high) / 2)


# -- gaussian --


def gaussian_curve_figure(*, standard_deviation: Number = 5) -> str:
    """The exact delta(epsilon) of the discrete Gaussian, and three bounds people use instead.

    Source   CKS20 Theorem 7 (exact) and Proposition 12 (best order); Bun, Steinke 2016
             Proposition 3 (exp(-(epsilon-rho)**2/(4 rho))); Dwork, Roth 2014 Theorem A.1
             (classical, proved for epsilon < 1 only)
    """
    deviation = positive(standard_deviation, "standard_deviation")
    mechanism = Gaussian(sensitivity=1, standard_deviation=deviation)
    rho = mechanism.guarantee_at(1).rho
    assert isinstance(rho, Fraction)
    last = _last_epsilon(rho)
    epsilons = [last * i / 400 for i in range(401)]
    density, sigma = float(rho), float(deviation)
    classical = [e for e in epsilons if e < 1]
    curves = (
        Curve(
            label="exact",
            note="the truth, rounded up once",
            strands=(tuple((float(e), mechanism.delta(e)) for e in epsilons),),
        ),
        Curve(
            label="zCDP, best order",
            note="Canonne, Kamath, Steinke",
            strands=(tuple((float(e), float(delta_upper(ZCDP(rho), e))) for e in epsilons),),
        ),
        Curve(
            label="zCDP, ρ + 2√(ρ ln 1/δ)",
            note="Bun, Steinke",
            strands=(
                tuple(
                    (float(e), math.exp(-((float(e) - density) ** 2) / (4 * density)))
                    for e in epsilons
                    if e >= rho
                ),
            ),
        ),
        Curve(
            label="classical",
            note="proved for ε < 1 only" if len(classical) <= 400 else "Dwork, Roth",
            strands=(
                tuple(
                    (float(e), 1.25 * math.exp(-((float(e) * sigma) ** 2) / 2)) for e in classical
                ),
            ),
        ),
    )
    floor = 2 * math.floor(math.log10(curves[0].strands[0][-1][1]) / 2)
    return chart(
        Chart(
            title="How private the discrete Gaussian is",
            words=(
                f"Noise of standard deviation {number_text(deviation)} on an integer that one "
                f"person moves by 1, hence ρ = {number_text(rho)}.",
                "The same noise promises more than any of the three bounds can say: the exact "
                "curve lies below them.",
            ),
            across=Axis(ends=(0, float(last)), ticks=_even_ticks(float(last)), label="ε"),
            up=Axis(
                ends=(10.0**floor, 1.0),
                ticks=powers_of_ten(floor, 0, every=2),
                label="δ",
                logarithmic=True,
            ),
            curves=curves,
            width=540,
        )
    )


def _last_epsilon(rho: Fraction) -> Fraction:
    """Where the highest of the curves has fallen to about 1e-9."""
    rough = float(rho) + 2 * math.sqrt(float(rho) * math.log(1e9))
    digit = 10.0 ** math.floor(math.log10(rough))
    return Fraction(f"{round(rough / digit * 5) / 5 * digit:.3g}")


def _even_ticks(last: float) -> tuple[tuple[float, str], ...]:
    size = 10.0 ** math.floor(math.log10(last))
    step = next(m * size for m in (0.1, 0.2, 0.25, 0.5, 1.0, 2.0) if last / (m * size) <= 9)
    return tuple((i * step, f"{i * step:.4g}") for i in range(int(last / step + 1e-9) + 1))


# -- composition --


def composition_figure(
    *, epsilon: Number = "0.1", delta: Number = "1e-6", releases: int = 1000
) -> str:
    """What k releases of the same epsilon cost together, theorem by theorem."""
    loss, level = positive(epsilon, "epsilon"), positive(delta, "delta")
    counts = sorted({round(releases ** (i / 40)) for i in range(41)})
    rows = [compositions([PureDP(loss)] * count, level) for count in counts]
    names = (
        ("basic", "basic", "losses add up: k ε"),
        ("advanced", "advanced", "Dwork, Rothblum, Vadhan"),
        ("concentrated", "through zCDP", "ρ = k ε²/2, best order"),
        ("optimal", "optimal", "Kairouz, Oh, Viswanath"),
    )
    curves = tuple(
        Curve(
            label=label,
            note=note,
            strands=(
                tuple(
                    (float(k), float(row[name].epsilon))
                    for k, row in zip(counts, rows, strict=True)
                    if row[name].epsilon < math.inf
                ),
            ),
        )
        for name, label, note in names
    )
    heights = [y for curve in curves for _, y in curve.strands[0] if y > 0]
    bottom, top = math.ceil(math.log10(min(heights) * 0.8)), math.floor(math.log10(max(heights)))
    return chart(
        Chart(
            title="What many releases cost together",
            words=(
                f"k releases, each with ε = {number_text(loss)}, and what each theorem says of "
                f"all of them at δ = {number_text(level)}.",
                "Optimal is exact: no smaller ε is true of k releases by randomised response.",
            ),
            across=Axis(
                ends=(1, float(releases)),
                ticks=powers_of_ten(0, int(math.log10(releases) + 1e-9)),
                label="k, the number of releases",
                logarithmic=True,
            ),
            up=Axis(
                ends=(min(heights) * 0.8, max(heights) * 1.25),
                ticks=powers_of_ten(bottom, top),
                label="ε of all releases together",
                logarithmic=True,
            ),
            curves=curves,
            width=540,
        )
    )
