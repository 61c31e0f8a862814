"""The evidence of `lastbit leak` as panels of a picture."""

from __future__ import annotations

import math
from fractions import Fraction

from lastbit.cli.leak_evidence import (
    FIRST_BIT,
    GRID_BITS,
    LAST_BIT,
    FixedPointLeak,
    FloatLeak,
    LatticeEvidence,
    ratio_text,
)
from lastbit.exact import Ball
from lastbit.report import Bars, Panel, Series, Stems, Zone, picture


def picture_of(fixed: FixedPointLeak, floats: FloatLeak, lattice: LatticeEvidence) -> str:
    """The three panels as the text of one SVG file."""
    return picture(
        "Three ways to hide an answer with Laplace noise",
        (_fixed_point_panel(fixed), _float_panel(floats), _lattice_panel(lattice)),
    )


def _fixed_point_panel(leak: FixedPointLeak) -> Panel:
    unit = 1 << leak.fractional_bits
    step = 1 << leak.scale_bits
    start, end = -unit // 2, 2 * unit - unit // 2
    combs = []
    for answer in leak.answers:
        reachable = [k for k in range(start, end + 1) if (k - answer) % step == 0]
        combs.append(
            tuple(
                (k / unit, _height(leak.law.probability((k - answer) // step))) for k in reachable
            )
        )
    return Panel(
        title="1  Fixed point, 6 fractional bits, noise 4·z/64",
        verdict="leaks: privacy loss infinite",
        good=False,
        words="The last two bits of a release are the secret’s. No output of one secret is an "
        "output of the other.",
        marks=Stems(
            first=Series(label=f"secret 0: ends in {leak.last_bits[0]}", points=combs[0]),
            second=Series(label=f"secret 1 + 2⁻⁵: ends in {leak.last_bits[1]}", points=combs[1]),
        ),
        places=(start / unit - 0.02, end / unit + 0.02),
        ticks=tuple((x / 2, f"{x / 2:g}") for x in range(-1, 4)),
        axis="released value (each stem is one output, with its exact probability)",
        heights=_heights(max(height for comb in combs for _, height in comb), decimals=3),
    )


def _float_panel(leak: FloatLeak) -> Panel:
    places = range(FIRST_BIT, LAST_BIT + 1)
    points = [
        tuple((float(t), float(leak.share(answer, t, t))) for t in places) for answer in (0, 1)
    ]
    labels = {FIRST_BIT: f"≤{FIRST_BIT}", LAST_BIT: f"≥{LAST_BIT}"}
    share = float(Fraction(leak.off_grid[0], leak.samples)) * 100
    return Panel(
        title=f"2  Floating point, numpy’s Laplace noise of scale {ratio_text(1 / leak.epsilon)}",
        verdict="leaks: privacy loss infinite",
        good=False,
        words=f"1 + x, rounded, is always a multiple of 2{_superscript(-GRID_BITS)}; x itself "
        "often is not. One finer bit proves that the secret was not 1.",
        marks=Bars(
            first=Series(label="secret 0", points=points[0]),
            second=Series(label="secret 1", points=points[1]),
        ),
        places=(FIRST_BIT - 0.8, LAST_BIT + 0.8),
        ticks=tuple((float(t), labels.get(t, str(t))) for t in places),
        axis="t, where the release is an odd multiple of 2⁻ᵗ "
        f"(share of {leak.samples:,} releases each)",
        heights=_heights(max(height for side in points for _, height in side), decimals=2),
        zone=Zone(
            start=GRID_BITS + 0.5,
            end=LAST_BIT + 0.8,
            words=(f"{share:.2f} % of the releases of 0", "none of the releases of 1, ever"),
        ),
    )


def _lattice_panel(evidence: LatticeEvidence) -> Panel:
    points = [
        tuple((float(row.output), _height(row.probabilities[side])) for row in evidence.rows)
        for side in (0, 1)
    ]
    outputs = [row.output for row in evidence.rows]
    scale = ratio_text(1 / evidence.epsilon)
    return Panel(
        title=f"3  lastbit, discrete Laplace noise of scale {scale} on the integers",
        verdict=f"holds: privacy loss {ratio_text(evidence.epsilon)}",
        good=True,
        words="Every integer is an output of both secrets. Its two exact probabilities differ by "
        "the factor printed, never more.",
        marks=Bars(
            first=Series(label="secret 0", points=points[0]),
            second=Series(label="secret 1", points=points[1]),
            over=tuple((float(row.output), _ratio(row.loss)) for row in evidence.rows),
        ),
        places=(min(outputs) - 0.7, max(outputs) + 0.7),
        ticks=tuple((float(k), str(k)) for k in outputs),
        axis="released value (bars: its exact probability under either secret)",
        heights=_heights(max(height for side in points for _, height in side), decimals=2),
    )


def _height(probability: Ball) -> float:
    """A height to draw: the middle of the ball, a float and no more than a picture's worth."""
    low, high = probability.ends
    return float((low + high) / 2)


def _heights(largest: float, *, decimals: int) -> tuple[tuple[float, str], ...]:
    """Round labels from 0 to just above the tallest mark."""
    rough = largest * 1.12 / 3
    magnitude = 10.0 ** math.floor(math.log10(rough))
    step = next(m * magnitude for m in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if m * magnitude >= rough)
    return tuple((i * step, f"{i * step:.{decimals}f}" if i else "0") for i in range(4))


def _ratio(loss: Fraction) -> str:
    if loss.denominator == 1:
        return (
            f"e{_superscript(loss.numerator)}" if abs(loss) != 1 else ("e" if loss > 0 else "1/e")
        )
    return f"exp({loss})" if len(str(loss)) <= 12 else ("e^ε" if loss > 0 else "e^-ε")


def _superscript(number: int) -> str:
    return str(number).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
