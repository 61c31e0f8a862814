"""`lastbit leak`: see two common ways of adding noise give the secret away, and one that holds.

The same evidence is shown twice: as lines of a terminal, and as panels of a picture.
"""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import click
from rich.text import Text

from lastbit.cli.files import check_folder, save
from lastbit.cli.leak_evidence import (
    FIRST_BIT,
    GRID_BITS,
    LAST_BIT,
    FixedPointLeak,
    FloatLeak,
    LatticeEvidence,
    fixed_point_leak,
    float_leak,
    interval,
    lattice_evidence,
    trailing_bit_of,
)
from lastbit.cli.options import Command, option, refusal
from lastbit.cli.output import Columns, Heading, Part, show, waiting
from lastbit.exact import Ball, between, positive
from lastbit.report import Bars, Panel, Series, Stems, Zone, picture

MOST_SAMPLES = 100_000_000
LEAST_EPSILON, MOST_EPSILON = Fraction(1, 100), Fraction(10)
TITLE = "Three ways to hide an answer with Laplace noise"
FIRST, SECOND = "cyan", "yellow"
BAR_WIDTH = 20
PLACES = ((FIRST_BIT, 50), (51, 51), (52, 52), (53, 53), (54, 54), (55, 55), (56, LAST_BIT))


@click.command(
    cls=Command,
    short_help="Watch textbook noise give its secret away, and ours keep it.",
    epilog="Example: lastbit leak --epsilon 1/2 --samples 100000 --out half.svg",
)
@option(
    "--out",
    "Where the picture goes (SVG). A file of that name is replaced.",
    click.Path(dir_okay=False, writable=True, path_type=Path),
    default=Path("leak.svg"),
)
@option(
    "--samples",
    "How many floating-point releases to draw for each answer.",
    click.IntRange(1, MOST_SAMPLES),
    default=1_000_000,
)
@option(
    "--epsilon",
    "The privacy loss that panels 2 and 3 promise: 1, 0.5, 1/3 ... from 1/100 to 10.",
    "NUMBER",
    default="1",
)
def leak(out: Path, samples: int, epsilon: str) -> None:
    """Watch Laplace noise give the secret away, twice, and hold, once.

    Panel 1 adds noise in fixed point and keeps the last bits of the secret. Panel 2 adds numpy's
    floating-point noise, whose finest bits tell the answers 0 and 1 apart. Panel 3 adds exact
    discrete noise, and no output says more than epsilon.
    """
    loss = positive(epsilon, "--epsilon")
    if not LEAST_EPSILON <= loss <= MOST_EPSILON:
        raise refusal(
            "--epsilon",
            f"is not between {LEAST_EPSILON} and {MOST_EPSILON}",
            "outside that range a sample of this size shows nothing; try 1",
        )
    check_folder(out)
    fixed = fixed_point_leak(draws=5)
    with waiting("drawing") as tell:
        floats = float_leak(loss, samples, watch=lambda share: tell(share, "drawing"))
    lattice = lattice_evidence(loss)
    panels = (_fixed_point_panel(fixed), _float_panel(floats), _lattice_panel(lattice))
    save(out, picture(TITLE, panels))
    conclusion = (
        "Conclusion: in 1 and 2 a single release can prove that an answer is not the secret; in 3 "
        f"no release tells more than ε = {_label(loss)}."
    )
    page = (*_fixed_point_page(fixed), *_float_page(floats), *_lattice_page(lattice))
    show(Text(TITLE, "bold"), *page, conclusion)
    click.echo(f"Picture: {out}")


def _label(number: Fraction) -> str:
    """A rational for a title: exact where that is short, else its first digits and a sign of it.

    >>> _label(Fraction(1, 3)), _label(Fraction(10**9, 123456789))
    ('1/3', '8.1000001...')
    """
    exact = str(number)
    return exact if len(exact) <= 12 else f"{float(number):.8g}..."


# ---------------------------------------------------------------- lines of a terminal


def _fixed_point_page(leak: FixedPointLeak) -> tuple[Part, ...]:
    zero, one = leak.probabilities
    return (
        Heading("1  Fixed point: 6 fractional bits, noise 4 z/64", "LEAKS", good=False),
        (
            "z is drawn exactly from the Laplace law of scale 64. Four times an integer ends "
            "in two zero bits, so a release ends in the last two bits of the secret."
        ),
        Columns(
            ("secret 0", "secret 1 + 2^-5"),
            [[_binary(units, leak) for units in pair] for pair in zip(*leak.released, strict=True)],
            numbers=(0, 1),
            styles=(FIRST, SECOND),
        ),
        Columns(
            ("exact probability of a release ending in", *leak.last_bits),
            [
                [Text(cell, style) for cell in (name, *map(str, law))]
                for name, law, style in (
                    ("secret 0", zero, FIRST),
                    ("secret 1 + 2^-5", one, SECOND),
                )
            ],
            numbers=(1, 2),
        ),
        (
            f"Privacy loss promised by the formula: {leak.promised_loss}. Of the program that ran: "
            "infinite."
        ),
    )


def _binary(units: int, leak: FixedPointLeak) -> Text:
    """Sign and magnitude in binary, the bits that give the secret away in brackets."""
    digits = f"{abs(units):0{leak.fractional_bits + 6}b}"
    whole, fraction = digits[: -leak.fractional_bits], digits[-leak.fractional_bits :]
    kept, told = fraction[: -leak.scale_bits], fraction[-leak.scale_bits :]
    sign = "-" if units < 0 else "+"
    return Text.assemble(f"{sign}{whole}.{kept}", (f"[{told}]", "bold reverse"))


def _float_page(leak: FloatLeak) -> list[Part]:
    shares = [(leak.share(0, *ends), leak.share(1, *ends)) for ends in PLACES]
    largest = max(max(pair) for pair in shares)
    rows = []
    for (first, last), (zero, one) in zip(PLACES, shares, strict=True):
        place = (
            f"≤ {last}" if first == FIRST_BIT else f"≥ {first}" if last == LAST_BIT else f"{first}"
        )
        bars = (_bar(zero / largest), _bar(one / largest))
        rows.append((place, _percent(zero), bars[0], _percent(one), bars[1]))
    low, high = interval(leak.off_grid[0], leak.samples)
    ideal = between(leak.ideal_share[0] * 100, leak.ideal_share[1] * 100, 8)
    within = f"{_hundredths(math.floor(low * 10_000))} to {_hundredths(math.ceil(high * 10_000))}"
    measured = [_percent(Fraction(count, leak.samples)) for count in leak.off_grid]
    compared = (
        ("secret 0", measured[0], within, f"{ideal} %"),
        ("secret 1", measured[1], "none (proved)", "none"),
    )
    parts: list[Part] = [
        Heading(
            f"2  Floating point: numpy's Laplace noise of scale {_label(1 / leak.epsilon)}",
            "LEAKS",
            good=False,
        ),
        (
            f"Releases of either secret ({leak.samples:,} each) by the place of their last 1-bit. "
            f"1 + x is always a multiple of 2^-{GRID_BITS}; 0 + x = x often is not."
        ),
        Columns(
            ("last 1-bit", "secret 0", " " * BAR_WIDTH, "secret 1", " " * BAR_WIDTH),
            rows,
            numbers=(0, 1, 3),
            styles=("", FIRST, FIRST, SECOND, SECOND),
        ),
        Columns(
            (f"not a multiple of 2^-{GRID_BITS}", "measured", "true share within", "ideal"),
            [
                [Text(cell, style) for cell in row]
                for row, style in zip(compared, (FIRST, SECOND), strict=True)
            ],
            numbers=(1, 2, 3),
        ),
        (
            "The interval is wrong with probability below 1/600,000; ideal: Laplace law, uniform "
            "last bits."
        ),
    ]
    if leak.witness is not None:
        parts.append(
            f"One release seen: y = {leak.witness!r}, an odd multiple of "
            f"2^-{trailing_bit_of(leak.witness)}. No double x has 1 + x = y: the secret is not "
            "1."
        )
    return parts


def _bar(share: Fraction) -> str:
    return "█" * (max(round(share * BAR_WIDTH), 1) if share else 0)


def _percent(share: Fraction) -> str:
    return f"{float(share) * 100:.2f} %" if share else "none"


def _hundredths(count: int) -> str:
    return f"{count // 100}.{count % 100:02d} %"


def _lattice_page(evidence: LatticeEvidence) -> tuple[Part, ...]:
    scale = _label(1 / evidence.epsilon)
    return (
        Heading(f"3  lastbit: discrete Laplace noise of scale {scale} on the integers", "HOLDS"),
        (
            "Every integer can be released from either secret. Below, the exact probability of "
            "each output; its ratio is e^ε or e^-ε, always."
        ),
        Columns(
            ("output", "if secret is 0", "if secret is 1", "ratio", "exact loss"),
            [
                (
                    str(row.output),
                    between(*row.probabilities[0].ends, 10),
                    between(*row.probabilities[1].ends, 10),
                    between(*row.ratio.ends, 10),
                    f"{'+' if row.loss > 0 else '-'}ε",
                )
                for row in evidence.rows
            ],
            numbers=range(5),
            styles=("", FIRST, SECOND, "", ""),
        ),
    )


# ---------------------------------------------------------------- panels of a picture


def _fixed_point_panel(leak: FixedPointLeak) -> Panel:
    unit = 1 << leak.fractional_bits
    step = 1 << leak.scale_bits
    start, end = -unit // 2, 2 * unit - unit // 2
    combs = [
        tuple(
            (k / unit, _height(leak.law.probability((k - answer) // step)))
            for k in range(start, end + 1)
            if (k - answer) % step == 0
        )
        for answer in leak.answers
    ]
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
        title=f"2  Floating point, numpy’s Laplace noise of scale {_label(1 / leak.epsilon)}",
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
    scale = _label(1 / evidence.epsilon)
    return Panel(
        title=f"3  lastbit, discrete Laplace noise of scale {scale} on the integers",
        verdict=f"holds: privacy loss {_label(evidence.epsilon)}",
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
    if abs(loss) == 1:
        return "e" if loss > 0 else "1/e"
    if loss.denominator == 1:
        return f"e{_superscript(loss.numerator)}"
    return f"exp({loss})" if len(str(loss)) <= 12 else ("e^ε" if loss > 0 else "e^-ε")


def _superscript(number: int) -> str:
    return str(number).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
