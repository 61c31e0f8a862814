"""The evidence of `lastbit leak` as lines of a terminal, 80 columns wide, colour or none."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from lastbit.cli.leak_evidence import (
    FIRST_BIT,
    GRID_BITS,
    LAST_BIT,
    FixedPointLeak,
    FloatLeak,
    LatticeEvidence,
    interval,
    ratio_text,
    trailing_bit_of,
)
from lastbit.exact import between

FIRST, SECOND = "cyan", "yellow"
BAR_WIDTH = 20
PLACES = ((FIRST_BIT, 50), (51, 51), (52, 52), (53, 53), (54, 54), (55, 55), (56, LAST_BIT))


@dataclass(frozen=True, slots=True)
class Signs:
    """The few characters that not every terminal can show."""

    epsilon: str
    bar: str
    rule: str
    at_most: str
    at_least: str


UNICODE = Signs("ε", "█", "─", "≤", "≥")
ASCII = Signs("epsilon", "#", "-", "<=", ">=")


def view(
    console: Console, fixed: FixedPointLeak, floats: FloatLeak, lattice: LatticeEvidence
) -> str:
    """The three panels and the conclusion, as the console would show them."""
    signs = ASCII if console.options.ascii_only else UNICODE
    with console.capture() as captured:
        console.print("Three ways to hide an answer with Laplace noise", style="bold")
        _fixed_point_panel(console, signs, fixed)
        _float_panel(console, signs, floats)
        _lattice_panel(console, signs, lattice)
        console.print()
        console.print(
            "Conclusion: in 1 and 2 a single release can prove that an answer is not the secret; "
            f"in 3 no release tells more than {signs.epsilon} = {ratio_text(lattice.epsilon)}."
        )
    # tables are padded to the width of the console: take the blanks off again
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def _heading(console: Console, signs: Signs, title: str, verdict: str, style: str) -> None:
    gap = console.width - len(title) - len(verdict)
    console.print()
    console.print(Text.assemble((title, "bold"), " " * gap, (verdict, f"bold {style}")))
    console.print(signs.rule * console.width, style="dim")


# -- 1 --


def _fixed_point_panel(console: Console, signs: Signs, leak: FixedPointLeak) -> None:
    _heading(console, signs, "1  Fixed point: 6 fractional bits, noise 4 z/64", "LEAKS", "red")
    console.print(
        "z is drawn exactly from the Laplace law of scale 64. Four times an integer ends "
        "in two zero bits, so a release ends in the last two bits of the secret."
    )
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="bold")
    table.add_column("secret 0", style=FIRST, justify="right")
    table.add_column("secret 1 + 2^-5", style=SECOND, justify="right")
    for first, second in zip(*leak.released, strict=True):
        table.add_row(_binary(first, leak), _binary(second, leak))
    console.print(Padding(table, (1, 2), expand=False))
    first_bits, second_bits = leak.last_bits
    zero, one = leak.probabilities
    law = Table(box=None, padding=(0, 3, 0, 0), header_style="bold")
    law.add_column("exact probability of a release ending in")
    law.add_column(first_bits, justify="right")
    law.add_column(second_bits, justify="right")
    law.add_row("secret 0", str(zero[0]), str(zero[1]), style=FIRST)
    law.add_row("secret 1 + 2^-5", str(one[0]), str(one[1]), style=SECOND)
    console.print(Padding(law, (0, 2), expand=False))
    console.print()
    console.print(
        f"Privacy loss promised by the formula: {leak.promised_loss}. "
        "Of the program that ran: infinite."
    )


def _binary(units: int, leak: FixedPointLeak) -> Text:
    """Sign and magnitude in binary, the bits that give the secret away in brackets."""
    digits = f"{abs(units):0{leak.fractional_bits + 6}b}"
    whole, fraction = digits[: -leak.fractional_bits], digits[-leak.fractional_bits :]
    kept, told = fraction[: -leak.scale_bits], fraction[-leak.scale_bits :]
    sign = "-" if units < 0 else "+"
    return Text.assemble(f"{sign}{whole}.{kept}", (f"[{told}]", "bold reverse"))


# -- 2 --


def _float_panel(console: Console, signs: Signs, leak: FloatLeak) -> None:
    scale = ratio_text(1 / leak.epsilon)
    title = f"2  Floating point: numpy's Laplace noise of scale {scale}"
    _heading(console, signs, title, "LEAKS", "red")
    console.print(
        f"Releases of either secret ({leak.samples:,} each) by the place of their last 1-bit. "
        f"1 + x is always a multiple of 2^-{GRID_BITS}; 0 + x = x often is not."
    )
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("last 1-bit", justify="right")
    table.add_column("secret 0", justify="right", style=FIRST)
    table.add_column(width=BAR_WIDTH, style=FIRST)
    table.add_column("secret 1", justify="right", style=SECOND)
    table.add_column(width=BAR_WIDTH, style=SECOND)
    shares = [(leak.share(0, *ends), leak.share(1, *ends)) for ends in PLACES]
    largest = max(max(pair) for pair in shares)
    for (first, last), (zero, one) in zip(PLACES, shares, strict=True):
        mark = signs.at_most if first == FIRST_BIT else signs.at_least if last == LAST_BIT else ""
        place = last if first == FIRST_BIT else first
        table.add_row(
            f"{mark} {place}".strip(),
            _percent(zero),
            _bar(zero / largest, signs),
            _percent(one),
            _bar(one / largest, signs),
            end_section=place == GRID_BITS,
        )
    console.print(Padding(table, (1, 2), expand=False))
    _shares(console, leak)
    if leak.witness is not None:
        console.print(
            f"One release seen: y = {leak.witness!r}, an odd multiple of "
            f"2^-{trailing_bit_of(leak.witness)}. No double x has 1 + x = y: the secret is not 1."
        )


def _shares(console: Console, leak: FloatLeak) -> None:
    low, high = interval(leak.off_grid[0], leak.samples)
    ideal = between(leak.ideal_share[0] * 100, leak.ideal_share[1] * 100, 8)
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="bold")
    table.add_column(f"not a multiple of 2^-{GRID_BITS}", no_wrap=True)
    for name in ("measured", "true share within", "ideal"):
        table.add_column(name, justify="right", no_wrap=True)
    measured = _percent(Fraction(leak.off_grid[0], leak.samples))
    within = f"{_hundredths(math.floor(low * 10_000))} to {_hundredths(math.ceil(high * 10_000))}"
    table.add_row("secret 0", measured, within, f"{ideal} %", style=FIRST)
    measured = _percent(Fraction(leak.off_grid[1], leak.samples))
    table.add_row("secret 1", measured, "none (proved)", "none", style=SECOND)
    console.print(Padding(table, (0, 2), expand=False))
    console.print()
    console.print(
        "The interval is wrong with probability below 1/600,000; ideal: Laplace law, uniform "
        "last bits."
    )


def _bar(share: Fraction, signs: Signs) -> str:
    length = round(share * BAR_WIDTH)
    return signs.bar * (max(length, 1) if share else 0)


def _percent(share: Fraction) -> str:
    return f"{float(share) * 100:.2f} %" if share else "none"


def _hundredths(count: int) -> str:
    return f"{count // 100}.{count % 100:02d} %"


# -- 3 --


def _lattice_panel(console: Console, signs: Signs, evidence: LatticeEvidence) -> None:
    scale = ratio_text(1 / evidence.epsilon)
    title = f"3  lastbit: discrete Laplace noise of scale {scale} on the integers"
    _heading(console, signs, title, "HOLDS", "green")
    console.print(
        "Every integer can be released from either secret. Below, the exact probability of "
        f"each output; its ratio is e^{signs.epsilon} or e^-{signs.epsilon}, always."
    )
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("output", justify="right", no_wrap=True)
    table.add_column("if secret is 0", style=FIRST, justify="right", no_wrap=True)
    table.add_column("if secret is 1", style=SECOND, justify="right", no_wrap=True)
    table.add_column("ratio", justify="right", no_wrap=True)
    table.add_column("exact loss", justify="right", no_wrap=True)
    for row in evidence.rows:
        table.add_row(
            str(row.output),
            between(*row.probabilities[0].ends, 10),
            between(*row.probabilities[1].ends, 10),
            between(*row.ratio.ends, 10),
            f"{'+' if row.loss > 0 else '-'}{signs.epsilon}",
        )
    console.print(Padding(table, (1, 2, 0, 2), expand=False))
