"""A mechanism explained by its public parameters: law, theorem, error, exact probabilities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from lastbit.cli.options import title
from lastbit.cli.output import Columns, Facts, Heading, Part
from lastbit.exact import Ball, certain, exact_text, rounded_near, rounded_up
from lastbit.privacy import Guarantee

BETAS = ("0.05", "0.01")


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A mechanism in words and numbers; `error_words` say what its accuracy bounds."""

    law: str
    theorem: str
    source: str
    facts: tuple[tuple[str, str], ...]
    accuracy: Callable[[str], Any]
    error_words: str
    caption: str
    table: Columns | None

    @property
    def errors(self) -> dict[str, str]:
        """By the probability that it is exceeded, a bound on the error, rounded up."""
        bounds = ((beta, self.accuracy(beta)) for beta in BETAS)
        return {
            beta: rounded_up(bound if isinstance(bound, float) else Fraction(bound))
            for beta, bound in bounds
        }

    def bars(self) -> list[tuple[str, str]]:
        """The bounds on the error in words."""
        levels = ((exact_text(100 * (1 - Fraction(b))), e) for b, e in self.errors.items())
        return [
            (f"error, {level} %", self.error_words.format(bound=bound, level=level))
            for level, bound in levels
        ]

    def page(self, name: str, guarantee: Guarantee, *, drawn: bool) -> tuple[Part, ...]:
        """The explanation, and whether anything was drawn."""
        facts = (
            ("law", self.law),
            ("theorem", self.theorem),
            ("source", self.source),
            *self.facts,
            ("guarantee", title(guarantee)),
            ("neighbours", str(guarantee.neighbours)),
            *self.bars(),
        )
        note = (
            "All of this follows from the public parameters alone. Only the release below has "
            "seen the data; it costs the guarantee once."
            if drawn
            else "Nothing was drawn and nothing was spent: no data was given."
        )
        table = () if self.table is None else (self.caption, self.table)
        heading = Heading(name.replace("-", " "), title(guarantee).partition(", ")[2])
        return heading, Facts(facts), *table, note


def pairs(chance: Callable[[int], Ball], moved: int, step: Fraction) -> Columns:
    """Outputs near x: their exact probabilities from x and from x + s, and the ratio."""
    unit = max(moved, 1)
    outputs = range(-2 * unit, 3 * unit + 1, unit)
    rows = [(place(k * step), chance(k), chance(k - moved)) for k in outputs]
    return ratios(("output", "P if the truth is x", f"P if it is {place(moved * step)}"), rows)


def ratios(
    headings: tuple[str, str, str], rows: list[tuple[str, Ball, Ball]], *, inverted: bool = False
) -> Columns:
    """Two probabilities of each output, and the first over the second, or inverted."""
    cells = []
    for name, p, q in rows:
        try:
            ratio = certain(q / p if inverted else p / q)
        except ArithmeticError:
            ratio = "-"
        cells.append((name, certain(p), certain(q), ratio))
    return Columns((*headings, "ratio"), cells, numbers=(1, 2, 3))


def place(distance: Fraction, origin: str = "x") -> str:
    """An output by its distance from the true value."""
    if distance == 0:
        return origin
    text = exact_text(abs(distance))
    short = text if len(text) <= 12 else rounded_near(abs(distance))
    return f"{origin} {'-' if distance < 0 else '+'} {short}"


def exact_or_up(number: Fraction) -> str:
    """The width of noise: exactly, or rounded up where the digits do not end soon."""
    exact = exact_text(number)
    return f"{rounded_up(number)}, rounded up" if exact.endswith("...") else exact


def brief(number: Fraction | float) -> str:
    """Exactly where that is short, else rounded up."""
    text = exact_text(number)
    return rounded_up(number) if text.endswith("...") or len(text) > 14 else text
