"""Figures of noise beyond global sensitivity, worked out exactly from made-up data.

Nothing is simulated and nothing is drawn from any source of bits. The data are made up: the
quantiles of an exponential law, as waiting times or bills often look.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from flint import arb

from lastbit.exact import Number, arb_of, positive, upper, whole, working_precision
from lastbit.laws import DiscretePlanarLaplace, Ideal, IdealLaplace
from lastbit.mechanisms import admissible
from lastbit.report.curves import Axis, Chart, Curve, Mark, chart, powers_of_ten
from lastbit.report.figures import number_text
from lastbit.sensitivity import sensitivity_at, smooth_sensitivity

UPPER = 500
MEAN = 50
_STEPS = 16  # of the grid, in a metre


def made_up_waits(count: int) -> list[float]:
    """Quantiles of an exponential law of mean 50: skewed, and nobody's.

    >>> [round(wait) for wait in made_up_waits(5)]
    [5, 18, 35, 60, 115]
    """
    return [-MEAN * math.log1p(-(i + 0.5) / count) for i in range(count)]


# -- smooth sensitivity --


def smooth_sensitivity_figure(
    epsilons: Sequence[Number] = ("0.1", "0.5", "2"), *, count: int = 1001
) -> str:
    """How far one record can move the median, of databases further and further away.

    Source   Nissim, Raskhodnikova, Smith 2007; for Cauchy noise, beta = epsilon/2
    """
    exact = [positive(epsilon, "epsilon") for epsilon in epsilons]
    data = made_up_waits(whole(count, "count", least=3))
    last = count // 2 + 2
    distances = sorted({round(last ** (i / 60)) - 1 for i in range(61)})
    local = [
        float(sensitivity_at("median", data, distance=k, lower=0, upper=UPPER)) for k in distances
    ]
    places = [float(k + 1) for k in distances]
    curves = [Curve(label="not discounted", strands=(tuple(zip(places, local, strict=True)),))]
    marks = []
    for epsilon in exact:
        beta = epsilon / 2
        bound = smooth_sensitivity("median", data, beta=beta, lower=0, upper=UPPER).bound
        pairs = zip(distances, local, strict=True)
        heights = [moved * math.exp(-float(beta) * k) for k, moved in pairs]
        best = max(range(len(heights)), key=heights.__getitem__)
        marks.append(Mark(at=(places[best], heights[best]), words="▼"))
        curves.append(
            Curve(
                label=f"ε = {number_text(epsilon)}, β = {number_text(beta)}",
                note=f"greatest: S = {float(bound):.3g}",
                strands=(tuple(zip(places, heights, strict=True)),),
                anchored=False,
            )
        )
    least = min(local) / 10
    floor = math.floor(math.log10(least))
    return chart(
        Chart(
            title="Smooth sensitivity of a median",
            words=(
                f"{count:,} made-up waits between 0 and {UPPER}, most of them short. One record "
                f"can move the median of some database by {UPPER};",
                "but it is far away. Discounted by e^-β for each record between, the greatest "
                "value (▼) is what noise must cover.",
            ),
            across=Axis(
                ends=(1, float(last)),
                ticks=powers_of_ten(0, int(math.log10(last))),
                label="1 + records that differ",
                logarithmic=True,
            ),
            up=Axis(
                ends=(10.0**floor, 1000.0),
                ticks=powers_of_ten(floor, 3),
                label="how far one record moves the median",
                logarithmic=True,
            ),
            curves=tuple(curves),
            marks=tuple(marks),
            width=540,
        )
    )


# -- admissible noise --


def admissible_figure(*, epsilon: Number = "1", delta: Number = "1e-6", count: int = 1001) -> str:
    """How often the error of a private median exceeds a size, noise by noise."""
    loss, level = positive(epsilon, "epsilon"), positive(delta, "delta")
    data = made_up_waits(whole(count, "count", least=3))
    errors = [10 ** (-2 + i / 12) for i in range(12 * 5 + 1)]
    curves = []
    for name, label, needs in (
        ("cauchy", "Cauchy", False),
        ("student", "Student’s t, 3 degrees", False),
        ("laplace", "Laplace", True),
        ("gaussian", "Gaussian", True),
    ):
        chosen = admissible(name, epsilon=loss, delta=level if needs else None)
        bound = smooth_sensitivity("median", data, beta=chosen.beta, lower=0, upper=UPPER).bound
        width = bound / chosen.alpha
        promise = f"δ = {number_text(level)}" if needs else "pure"
        curves.append(
            Curve(
                label=label,
                note=f"{promise}; half the errors < {_half(chosen.law, width):.2g}",
                strands=(_tail(chosen.law, width, errors),),
                anchored=False,
            )
        )
    whole_range = UPPER / loss
    curves.append(
        Curve(
            label="Laplace, worst case",
            note=f"pure; half the errors < {_half(IdealLaplace(), whole_range):.3g}",
            strands=(_tail(IdealLaplace(), whole_range, errors),),
            anchored=False,
        )
    )
    return chart(
        Chart(
            title="Which noise for a smooth bound",
            words=(
                f"A median of {count:,} made-up waits between 0 and {UPPER}, released with "
                f"ε = {number_text(loss)}: how often the error exceeds a size.",
                "Heavy tails allow a greater β, hence a smaller bound and small typical errors; "
                "light tails seldom err by much.",
            ),
            across=Axis(
                ends=(0.01, 1000), ticks=powers_of_ten(-2, 3), label="error", logarithmic=True
            ),
            up=Axis(
                ends=(1e-6, 1),
                ticks=powers_of_ten(-6, 0),
                label="probability of a larger error",
                logarithmic=True,
            ),
            curves=tuple(curves),
            width=500,
        )
    )


def _tail(law: Ideal, width: Fraction, errors: Sequence[float]) -> tuple[tuple[float, float], ...]:
    with working_precision(64):
        points = [(e, upper(2 * law.above(arb(e) / arb_of(width)))) for e in errors]
    return tuple(point for point in points if point[1] > 1e-9)


def _half(law: Ideal, width: Fraction) -> float:
    with working_precision(64):
        return upper(law.quantile("3/4").enclosure * arb_of(width))


# -- planar --


def planar_figure(factors: Sequence[Number] = ("2", "4", "10"), *, within: Number = 200) -> str:
    """How far a reported place lies from the true one."""
    distance = positive(within, "within")
    radii = [float(distance) * i / 20 for i in range(141)]
    curves = []
    for factor in factors:
        odds = positive(factor, "factor")
        rate = Fraction(math.log(odds)) / distance  # for the picture only
        law = DiscretePlanarLaplace(rate / _STEPS)
        shares = tuple((r, 100 * (1 - law.tail_upper(r * _STEPS))) for r in radii if r)
        held, mean = float(law.radius("0.95")) / _STEPS, law.mean_distance_upper / _STEPS
        curves.append(
            Curve(
                label=f"odds × {number_text(odds)} within {number_text(distance)} m",
                note=f"95 % within {held:,.0f} m, mean {mean:,.0f} m",
                strands=(((0.0, 0.0), *shares),),
                anchored=False,
            )
        )
    ticks = tuple((float(distance) * i, f"{float(distance) * i:g}") for i in range(8))
    return chart(
        Chart(
            title="How far a private place is from the true one",
            words=(
                f"Whoever sees the report, and weighs two places {number_text(distance)} m apart, "
                "may change the odds between them by the factor named,",
                "and no more. The share of reports within each distance of the true place.",
            ),
            across=Axis(ends=(0, radii[-1]), ticks=ticks, label="distance in metres"),
            up=Axis(
                ends=(0, 100),
                ticks=tuple((20.0 * i, f"{20 * i} %") for i in range(6)),
                label="reports within that distance",
            ),
            curves=tuple(curves),
            width=520,
        )
    )
