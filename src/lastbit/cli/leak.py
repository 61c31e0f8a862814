"""`lastbit leak`: see two common ways of adding noise give the secret away, and one that holds.

Three ways to add Laplace noise are judged by an exact law (Fractions, balls) or by a count of real
draws with an exact confidence interval. The same evidence is shown as lines of a terminal and as
panels of a picture. All randomness comes from `lastbit.sampling`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TypeAlias

import click
import numpy as np
import numpy.typing as npt
from rich.text import Text

from lastbit.cli.files import check_folder, save
from lastbit.cli.options import command, option, refusal
from lastbit.cli.output import Columns, Heading, Part, show, waiting
from lastbit.exact import (
    Ball,
    between,
    exact_text,
    positive,
    root_above,
    rounded_down,
    rounded_near,
    rounded_up,
)
from lastbit.laws import DiscreteLaplace
from lastbit.report import Bars, Panel, Series, Stems, Zone, middle, picture, raised
from lastbit.sampling import discrete_laplace, uniform_below

Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]

MOST_SAMPLES = 100_000_000
LEAST_EPSILON, MOST_EPSILON = Fraction(1, 100), Fraction(10)
TITLE = "Three ways to hide an answer with Laplace noise"
FIRST, SECOND = "cyan", "yellow"
BAR_WIDTH = 20
GRID_BITS = 53
BLOCK = 1 << 16
# Positions of the last 1-bit that are counted one by one; what lies beyond joins the end classes.
FIRST_BIT, LAST_BIT = 44, 62
PLACES = ((FIRST_BIT, 50), (51, 51), (52, 52), (53, 53), (54, 54), (55, 55), (56, LAST_BIT))


@command(
    "leak --epsilon 1/2 --samples 100000 --out half.svg",
    short_help="Watch textbook noise give its secret away, and ours keep it.",
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
        remedy = "outside that range a sample of this size shows nothing; try 1"
        raise refusal("--epsilon", f"is not between {LEAST_EPSILON} and {MOST_EPSILON}", remedy)
    check_folder(out)
    with waiting("drawing") as tell:
        floats = float_leak(loss, samples, watch=lambda share: tell(share, "drawing"))
    rows = lattice_rows(loss)
    panels = (_fixed_point_panel(), _float_panel(floats), _lattice_panel(loss, rows))
    save(out, picture(TITLE, panels))
    conclusion = (
        "Conclusion: in 1 and 2 a single release can prove that an answer is not the secret. In 3 "
        f"no release tells more than ε = {_title(loss)}."
    )
    fixed = _fixed_point_page(fixed_point_leak(draws=5))
    show(Text(TITLE, "bold"), *fixed, *_float_page(floats), *_lattice_page(loss, rows), conclusion)
    click.echo(f"Picture: {out}")


# ---------------------------------------------------------------- 1: fixed point


# Example 1.1 of Gazeau, Miller and Palamidessi, in units of 2**-FRACTIONAL_BITS
FRACTIONAL_BITS, SCALE_BITS = 6, 2
ANSWERS = (0, (1 << FRACTIONAL_BITS) + (1 << FRACTIONAL_BITS - 5))
LAST_BITS = tuple(f"{answer % (1 << SCALE_BITS):0{SCALE_BITS}b}" for answer in ANSWERS)


def fixed_point_leak(draws: int) -> list[list[int]]:
    """Release both answers of the example a few times.

    Law      with d fractional bits and scale 2**n a release is (answer + 2**n * z) * 2**-d, the
             integer z drawn from the machine's Laplace law of scale 1, that is of 2**d grid steps
    Theorem  (answer + 2**n * z) mod 2**n = answer mod 2**n for every z: the last n bits of the
             release are the secret's with probability 1, and the privacy loss of two answers that
             differ there is infinite
    Source   paper 000, Example 1.1: d = 6, n = 2, answers 0 and 1 + 2**-5
    Differs  the machine's Laplace is the discrete one on its grid; the theorem holds for any z
    Checked  tests/cli/test_leak_evidence.py
    """
    noise = np.asarray(discrete_laplace(1 << FRACTIONAL_BITS, size=2 * draws)) << SCALE_BITS
    pairs = zip(ANSWERS, noise.reshape(2, draws), strict=True)
    return [(answer + drawn).tolist() for answer, drawn in pairs]


def _fixed_point_page(released: list[list[int]]) -> tuple[Part, ...]:
    # what the same noise would cost on the real line: distance over scale
    promised = Fraction(ANSWERS[1] - ANSWERS[0], 1 << FRACTIONAL_BITS + SCALE_BITS)
    return (
        Heading("1  Fixed point: 6 fractional bits, noise 4 z/64", "LEAKS", good=False),
        "z is drawn exactly from the Laplace law of scale 64. Four times an integer ends in two "
        "zero bits: a release ends in the secret's last two bits.",
        Columns(
            ("secret 0", "secret 1 + 2^-5"),
            [[_binary(units) for units in pair] for pair in zip(*released, strict=True)],
            numbers=(0, 1),
            styles=(FIRST, SECOND),
        ),
        Columns(
            ("exact probability of a release ending in", *LAST_BITS),
            [
                [Text(cell, FIRST) for cell in ("secret 0", "1", "0")],
                [Text(cell, SECOND) for cell in ("secret 1 + 2^-5", "0", "1")],
            ],
            numbers=(1, 2),
        ),
        f"Privacy loss promised by the formula: {promised}. Of the program that ran: infinite.",
    )


def _binary(units: int) -> Text:
    """Sign and magnitude in binary, the bits that give the secret away in brackets."""
    digits = f"{abs(units):0{FRACTIONAL_BITS + 6}b}"
    whole, fraction = digits[:-FRACTIONAL_BITS], digits[-FRACTIONAL_BITS:]
    sign = "-" if units < 0 else "+"
    kept, told = fraction[:-SCALE_BITS], fraction[-SCALE_BITS:]
    return Text.assemble(f"{sign}{whole}.{kept}", (f"[{told}]", "bold reverse"))


def _fixed_point_panel() -> Panel:
    unit, step = 1 << FRACTIONAL_BITS, 1 << SCALE_BITS
    law = DiscreteLaplace(unit)  # the machine's, in steps of its grid
    start, end = -unit // 2, 2 * unit - unit // 2
    combs = [
        tuple(
            (k / unit, middle(law.probability((k - answer) // step)))
            for k in range(start, end + 1)
            if (k - answer) % step == 0
        )
        for answer in ANSWERS
    ]
    return Panel(
        title="1  Fixed point, 6 fractional bits, noise 4·z/64",
        verdict="leaks: privacy loss infinite",
        good=False,
        words="The last two bits of a release are the secret’s. No output of one secret is an "
        "output of the other.",
        marks=Stems(
            first=Series(label=f"secret 0: ends in {LAST_BITS[0]}", points=combs[0]),
            second=Series(label=f"secret 1 + 2⁻⁵: ends in {LAST_BITS[1]}", points=combs[1]),
        ),
        places=(start / unit - 0.02, end / unit + 0.02),
        ticks=tuple((x / 2, f"{x / 2:g}") for x in range(-1, 4)),
        axis="released value (each stem is one output, with its exact probability)",
    )


# ---------------------------------------------------------------- 2: floating point


@dataclass(frozen=True, slots=True, kw_only=True)
class FloatLeak:
    """How fine the bits of floating-point releases are, for the answers 0 and 1.

    `counts[f][i]` counts the releases of the answer f whose last 1-bit has the place value
    2**-(FIRST_BIT + i), the first and the last class taking in everything beyond.
    """

    epsilon: Fraction
    samples: int
    counts: tuple[tuple[int, ...], tuple[int, ...]]
    off_grid: tuple[int, int]
    ideal_share: tuple[Fraction, Fraction]
    witness: float | None

    def share(self, answer: int, first: int, last: int) -> Fraction:
        """Share of the answer's releases with their last 1-bit at places first to last."""
        low, high = first - FIRST_BIT, last - FIRST_BIT
        return Fraction(sum(self.counts[answer][low : high + 1]), self.samples)


def float_leak(epsilon: Fraction, samples: int, *, watch: Callable[[float], None]) -> FloatLeak:
    """Release the answers 0 and 1 with numpy's Laplace noise; look at the finest bits.

    Law      release = answer + x, x as `float_laplace` computes it, scale 1/epsilon
    Theorem  a release of the answer 1 is a multiple of 2**-53, always. Let x be any finite double
             and y = 1 + x, rounded to nearest.
             (i)   x >= -1/2: the real sum is at least 1/2, and so is y, for rounding is monotone
                   and 1/2 is a double. Every double of magnitude 1/2 or more is a multiple of
                   2**-53, because its significand has 53 bits.
             (ii)  x < -1/2: x is itself of magnitude above 1/2, hence a multiple of 2**-53, hence
                   so is the real number 1 + x. If |1 + x| <= 1 it is one of the multiples
                   m * 2**-53 with |m| <= 2**53, all of them doubles, and y = 1 + x exactly.
                   Otherwise |y| >= 1 and y is a double of magnitude 1/2 or more, as in (i).
             Nothing was asked of x: no event is too rare, no logarithm too inaccurate.
    Theorem  the answer 0 releases x itself, which has 53 significant bits wherever it lies. For
             |x| in [2**-(k+1), 2**-k) its grid is 2**-(53+k); were its last k bits uniform, it
             would miss the grid 2**-53 with probability 1 - 2**-k: `ideal_share_off_grid`.
    Hence    one release off the grid proves that the answer was not 1: the loss is infinite.
    Source   theory of the floating-point leak: Mironov, CCS 2012; here for numpy's own formula
    Differs  the noise is added as `answer + x`. numpy's `loc=` does the same in one expression,
             which a compiler may fuse into one rounding; at scale 1 that changes nothing.
    Checked  tests/cli/test_leak_evidence.py
    """
    scale = float(1 / epsilon)
    counts = np.zeros((2, LAST_BIT - FIRST_BIT + 1), dtype=np.int64)
    off_grid, witness = [0, 0], None
    for done in range(0, samples, BLOCK):
        block = min(BLOCK, samples - done)
        watch(done / samples)
        for answer in (0, 1):
            # all 53-bit integers but 0, equally likely: numpy draws again at 0
            uniforms = np.asarray(uniform_below((1 << GRID_BITS) - 1, size=block), np.int64) + 1
            released = answer + float_laplace(uniforms, scale)
            missing = ~on_grid(released)
            off_grid[answer] += int(missing.sum())
            places = np.clip(trailing_bit(released), FIRST_BIT, LAST_BIT) - FIRST_BIT
            counts[answer] += np.bincount(places, minlength=counts.shape[1])
            if answer == 0 and witness is None and missing.any():
                witness = float(released[missing][0])
    return FloatLeak(
        epsilon=epsilon,
        samples=samples,
        counts=(tuple(counts[0].tolist()), tuple(counts[1].tolist())),
        off_grid=(off_grid[0], off_grid[1]),
        ideal_share=ideal_share_off_grid(epsilon),
        witness=witness,
    )


def float_laplace(uniforms: Integers, scale: float) -> Floats:
    """Laplace noise the way numpy's `Generator.laplace(0, scale)` computes it, bit for bit.

    `uniforms` holds the 53-bit integers m from 1 to 2**53 - 1 of numpy's uniform doubles
    U = m * 2**-53. numpy draws again at U = 0; so does who calls this.

    The logarithm is the C library's, which `math.log` calls too. `np.log` is another
    implementation and differs in the last bit about once in 300 draws.
    """
    uniform = np.ldexp(uniforms.astype(np.float64), -GRID_BITS)
    right = uniform >= 0.5
    argument = np.where(right, 2.0 - uniform - uniform, uniform + uniform)
    logarithm = np.fromiter(map(math.log, argument.tolist()), np.float64, argument.size)
    return np.where(right, 0.0 - scale * logarithm, 0.0 + scale * logarithm)


def on_grid(released: Floats) -> npt.NDArray[np.bool_]:
    """Which of the doubles are multiples of 2**-53. Scaling by a power of two is exact."""
    steps = np.ldexp(released, GRID_BITS)
    return np.equal(steps, np.floor(steps))


def trailing_bit(released: Floats) -> Integers:
    """For each double y = odd * 2**-t the place t of its last 1-bit; 0 has none and gets -1100."""
    fraction, exponent = np.frexp(released)
    significand = np.ldexp(fraction, GRID_BITS).astype(np.int64)
    _, bit = np.frexp((significand & -significand).astype(np.float64))
    places = GRID_BITS - exponent.astype(np.int64) - (bit.astype(np.int64) - 1)
    return np.where(significand == 0, np.int64(-1100), places)


def ideal_share_off_grid(epsilon: Fraction) -> tuple[Fraction, Fraction]:
    """The share of releases of the answer 0 that miss the grid 2**-53, if last bits were uniform.

    Law      sum over k >= 1 of P[2**-(k+1) <= |X| < 2**-k] * (1 - 2**-k), X Laplace of scale
             1/epsilon, so that P[|X| >= t] = exp(-epsilon*t)
    Theorem  the terms beyond K add up to at least 0 and at most P[|X| < 2**-(K+1)], which is at
             most epsilon * 2**-(K+1)
    Returns  two rationals with the value between them
    Checked  tests/cli/test_leak_evidence.py
    """
    last = 120
    at_least = [(Ball.of(-epsilon) / (1 << k)).exp() for k in range(last + 2)]
    total = Ball.of(0)
    for k in range(1, last + 1):
        total += (at_least[k + 1] - at_least[k]) * (1 - Fraction(1, 1 << k))
    low, high = total.ends
    return low, high + epsilon / (1 << last + 1)


def interval(hits: int, trials: int) -> tuple[Fraction, Fraction]:
    """Where the true probability lies, given `hits` of `trials` independent draws.

    Theorem  P[|hits/trials - p| > r] <= 2*exp(-2*trials*r**2) (Hoeffding). With r**2 = 7/trials
             the interval is wrong with probability at most 2*exp(-14) < 1/600,000.
    Checked  tests/cli/test_leak_evidence.py; the square root is rounded up
    """
    radius = root_above(Fraction(7, trials))
    share = Fraction(hits, trials)
    return max(Fraction(0), share - radius), min(Fraction(1), share + radius)


def _float_page(leak: FloatLeak) -> list[Part]:
    scale = _title(1 / leak.epsilon)
    shares = [(leak.share(0, *ends), leak.share(1, *ends)) for ends in PLACES]
    largest = max(max(pair) for pair in shares)
    rows = []
    for (first, last), (zero, one) in zip(PLACES, shares, strict=True):
        place = {FIRST_BIT: f"≤ {last}", 56: f"≥ {first}"}.get(first, f"{first}")
        bars = ["█" * (max(round(s / largest * BAR_WIDTH), 1) if s else 0) for s in (zero, one)]
        rows.append((place, _percent(zero), bars[0], _percent(one), bars[1]))
    low, high = interval(leak.off_grid[0], leak.samples)
    ideal = between(leak.ideal_share[0] * 100, leak.ideal_share[1] * 100, 8)
    within = f"{rounded_down(100 * low, 4)} % to {rounded_up(100 * high, 4)} %"
    measured = [_percent(Fraction(count, leak.samples)) for count in leak.off_grid]
    compared = [
        [Text(cell, FIRST) for cell in ("secret 0", measured[0], within, f"{ideal} %")],
        [Text(cell, SECOND) for cell in ("secret 1", measured[1], "none (proved)", "none")],
    ]
    parts: list[Part] = [
        Heading(f"2  Floating point: numpy's Laplace noise of scale {scale}", "LEAKS", good=False),
        f"Releases of either secret ({leak.samples:,} each) by the place of their last 1-bit. "
        f"1 + x is always a multiple of 2^-{GRID_BITS}; 0 + x = x often is not.",
        Columns(
            ("last 1-bit", "secret 0", " " * BAR_WIDTH, "secret 1", " " * BAR_WIDTH),
            rows,
            numbers=(0, 1, 3),
            styles=("", FIRST, FIRST, SECOND, SECOND),
        ),
        Columns(
            (f"not a multiple of 2^-{GRID_BITS}", "measured", "true share within", "ideal"),
            compared,
            numbers=(1, 2, 3),
        ),
        "The interval is wrong with probability below 1/600,000; ideal: Laplace law, uniform "
        "last bits.",
    ]
    if leak.witness is not None:
        place = trailing_bit(np.array([leak.witness]))[0]
        parts.append(
            f"One release seen: y = {leak.witness!r}, an odd multiple of 2^-{place}. No double x "
            "has 1 + x = y: the secret is not 1."
        )
    return parts


def _float_panel(leak: FloatLeak) -> Panel:
    places = range(FIRST_BIT, LAST_BIT + 1)
    points = [
        tuple((float(t), float(leak.share(answer, t, t))) for t in places) for answer in (0, 1)
    ]
    labels = {FIRST_BIT: f"≤{FIRST_BIT}", LAST_BIT: f"≥{LAST_BIT}"}
    share = _percent(Fraction(leak.off_grid[0], leak.samples))
    return Panel(
        title=f"2  Floating point, numpy’s Laplace noise of scale {_title(1 / leak.epsilon)}",
        verdict="leaks: privacy loss infinite",
        good=False,
        words=f"1 + x, rounded, is always a multiple of 2{raised(-GRID_BITS)}; x itself "
        "often is not. One finer bit proves that the secret was not 1.",
        marks=Bars(
            first=Series(label="secret 0", points=points[0]),
            second=Series(label="secret 1", points=points[1]),
        ),
        places=(FIRST_BIT - 0.8, LAST_BIT + 0.8),
        ticks=tuple((float(t), labels.get(t, str(t))) for t in places),
        axis="t, where the release is an odd multiple of 2⁻ᵗ "
        f"(share of {leak.samples:,} releases each)",
        zone=Zone(
            start=GRID_BITS + 0.5,
            end=LAST_BIT + 0.8,
            words=(f"{share} of the releases of 0", "none of the releases of 1, ever"),
        ),
    )


# ---------------------------------------------------------------- 3: the lattice


@dataclass(frozen=True, slots=True)
class LatticeRow:
    """One output k: its exact probability under either answer, their ratio, the exact loss."""

    output: int
    probabilities: tuple[Ball, Ball]
    ratio: Ball
    loss: Fraction


def lattice_rows(epsilon: Fraction) -> list[LatticeRow]:
    """The exact law of the releases of 0 and 1 with discrete Laplace noise of scale 1/epsilon.

    Law      P[release = k | answer f] = (1-q)/(1+q) * q**abs(k-f), q = exp(-epsilon)
    Theorem  ln of the ratio at k is epsilon * (|k-1| - |k|), that is +epsilon for k <= 0 and
             -epsilon for k >= 1: never more, never less. Every integer is reachable from both.
    Source   CKS20, Definition 2
    Checked  tests/cli/test_leak_evidence.py
    """
    law = DiscreteLaplace(1 / epsilon)
    pairs = ((k, (law.probability(k), law.probability(k - 1))) for k in range(-3, 5))
    return [
        LatticeRow(k, chances, chances[0] / chances[1], epsilon * (abs(k - 1) - abs(k)))
        for k, chances in pairs
    ]


def _lattice_page(epsilon: Fraction, rows: list[LatticeRow]) -> tuple[Part, ...]:
    scale = _title(1 / epsilon)
    lines = []
    for row in rows:
        balls = (*row.probabilities, row.ratio)
        sign = "+" if row.loss > 0 else "-"
        lines.append((str(row.output), *(between(*b.ends, 10) for b in balls), f"{sign}ε"))
    return (
        Heading(f"3  lastbit: discrete Laplace noise of scale {scale} on the integers", "HOLDS"),
        "Every integer can be released from either secret. Below, the exact probability of "
        "each output; its ratio is e^ε or e^-ε, always.",
        Columns(
            ("output", "if secret is 0", "if secret is 1", "ratio", "exact loss"),
            lines,
            numbers=range(5),
            styles=("", FIRST, SECOND, "", ""),
        ),
    )


def _lattice_panel(epsilon: Fraction, rows: list[LatticeRow]) -> Panel:
    points = [
        tuple((float(row.output), middle(row.probabilities[side])) for row in rows)
        for side in (0, 1)
    ]
    outputs = [row.output for row in rows]
    scale = _title(1 / epsilon)
    return Panel(
        title=f"3  lastbit, discrete Laplace noise of scale {scale} on the integers",
        verdict=f"holds: privacy loss {_title(epsilon)}",
        good=True,
        words="Every integer is an output of both secrets. Its two exact probabilities differ by "
        "the factor printed, never more.",
        marks=Bars(
            first=Series(label="secret 0", points=points[0]),
            second=Series(label="secret 1", points=points[1]),
            over=tuple((float(row.output), _ratio(row.loss)) for row in rows),
        ),
        places=(min(outputs) - 0.7, max(outputs) + 0.7),
        ticks=tuple((float(k), str(k)) for k in outputs),
        axis="released value (bars: its exact probability under either secret)",
    )


def _ratio(loss: Fraction) -> str:
    if abs(loss) == 1:
        return "e" if loss > 0 else "1/e"
    if loss.denominator == 1:
        return f"e{raised(loss.numerator)}"
    return f"exp({loss})" if len(str(loss)) <= 12 else ("e^ε" if loss > 0 else "e^-ε")


def _percent(share: Fraction) -> str:
    return f"{rounded_near(100 * share, 4)} %" if share else "none"


def _title(number: Fraction) -> str:
    return exact_text(number, 12)
