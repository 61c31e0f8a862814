"""`lastbit figure`: pictures of the theory, every point computed exactly."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from lastbit.cli.files import check_folder, save
from lastbit.cli.options import Decorator, Exact, exact_number, group, option, refusal
from lastbit.cli.output import waiting
from lastbit.report import (
    admissible_figure,
    composition_curve_figure,
    composition_figure,
    count_figure,
    gaussian_curve_figure,
    laplace_figure,
    planar_figure,
    poll_figure,
    posterior_figure,
    smooth_sensitivity_figure,
    uniform_figure,
)

try:
    from resvg_py import svg_to_bytes
except ImportError:  # needed for pictures in pixels only
    svg_to_bytes = None  # type: ignore[assignment]

MOST_CURVES = 7
TINY = Fraction(1, 10**30)
OTHERS = (".jpg", ".jpeg", ".gif", ".webp", ".pdf", ".eps")
FONTS = ("/usr/share/fonts", "/usr/local/share/fonts", "~/.fonts", "~/.local/share/fonts",
         "/Library/Fonts", "/System/Library/Fonts")  # fmt: skip

out_option = option(
    "--out",
    "Where the picture goes (SVG, or PNG by its ending). A file of that name is replaced.",
    click.Path(dir_okay=False, writable=True, path_type=Path),
    required=True,
)


OUTSIDE = "outside that range there is nothing to see; pass a number inside it"


def epsilons_option(default: str, ends: str) -> Decorator:
    """Several losses, separated by commas."""
    words = f"The privacy losses to compare, from {ends}."
    return option("--epsilons", words, "NUMBERS", default=default)


def number_option(
    name: str, default: str, words: str, least: Fraction | int, most: Fraction | int
) -> Decorator:
    """An exact number within the range where there is something to see."""
    return option(name, words, Exact(ends=(least, most), remedy=OUTSIDE), default=default)


@group("figure posterior --out posterior.svg")
def figure() -> None:
    """Draw a figure of the theory as SVG.

    Nothing is simulated: each point is a bound or a probability, computed exactly. The files need
    nothing else to be shown, and follow the reader's light or dark scheme.
    """


@figure.command(example="posterior --out posterior.svg")
@epsilons_option("0,0.1,0.5,1,2,5,10", "0 to 100")
@out_option
def posterior(epsilons: str, out: Path) -> None:
    """Belief after a release against belief before it."""
    losses = _losses(epsilons, least=Fraction(0), count=MOST_CURVES)
    _draw(out, lambda: posterior_figure(losses))


@figure.command(example="poll --out poll.svg")
@epsilons_option("0.1,0.5,1,2,5", "1/100 to 100, at most six")
@out_option
def poll(epsilons: str, out: Path) -> None:
    """The error of a poll against its size, log scales."""
    losses = _losses(epsilons)
    _draw(out, lambda: poll_figure(losses))


@figure.command(example="count --max-rows 1,10 --out count.svg")
@option("--max-rows", "Contribution bounds to compare.", "NUMBERS", default="1,5,20,100")
@out_option
def count(max_rows: str, out: Path) -> None:
    """The error of a count against its price, log scales."""
    bounds = [exact_number(item, "--max-rows") for item in max_rows.split(",")]
    if any(bound.denominator > 1 or not 1 <= bound <= 10**6 for bound in bounds):
        raise refusal("--max-rows", "is not a whole number from 1 to 1,000,000", OUTSIDE)
    _few(bounds, MOST_CURVES - 1, "--max-rows")
    _draw(out, lambda: count_figure([int(bound) for bound in bounds]))


@figure.command(example="laplace --epsilon 1/2 --out laplace.svg")
@option("--sensitivity", "How far apart the two inputs are.", click.IntRange(1, 1000), default=1)
@number_option("--epsilon", "1", "The privacy loss.", Fraction(1, 1000), 100)
@out_option
def laplace(out: Path, **said: Any) -> None:
    """The laws of Laplace releases for two neighbours."""
    _draw(out, lambda: laplace_figure(**said))


@figure.command(example="uniform --bits 8 --out uniform.svg")
@option("--bits", "The generator has 2**bits - 1 values.", click.IntRange(4, 16), default=8)
@number_option("--ratio", "4/3", "How far the laws that are meant differ.", Fraction(11, 10), 10)
@out_option
def uniform(out: Path, **said: Any) -> None:
    """Laplace noise from a generator with few values."""
    _draw(out, lambda: uniform_figure(**said))


@figure.command(example="gaussian-curve --out gaussian-curve.svg")
@number_option(
    "--standard-deviation",
    "5",
    "The noise, for a value that one person moves by 1.",
    Fraction(1, 2),
    1000,
)
@out_option
def gaussian_curve(out: Path, **said: Any) -> None:
    """Exact delta(epsilon) of Gaussian noise, and bounds."""
    _draw(out, lambda: gaussian_curve_figure(**said))


@figure.command(example="composition --epsilon 0.1 --out composition.svg")
@number_option("--epsilon", "0.1", "The loss of one release.", Fraction(1, 1000), 5)
@number_option("--delta", "1e-6", "The delta of all together.", TINY, Fraction(1, 2))
@option("--releases", "How far to the right.", click.IntRange(10, 10_000), default=1000)
@out_option
def composition(out: Path, **said: Any) -> None:
    """What many releases cost together, theorem by theorem."""
    _draw(out, lambda: composition_figure(**said))


@figure.command(example="composition-curve --epsilon 0.1 --out composition-curve.svg")
@number_option("--epsilon", "0.1", "The loss of one release.", Fraction(1, 1000), 5)
@option("--releases", "How many of them.", click.IntRange(2, 10_000), default=50)
@out_option
def composition_curve(out: Path, **said: Any) -> None:
    """The delta of many releases together, against epsilon."""
    _draw(out, lambda: composition_curve_figure(**said))


@figure.command(example="smooth-sensitivity --out smooth.svg")
@epsilons_option("0.1,0.5,2", "1/100 to 100, at most six")
@out_option
def smooth_sensitivity(epsilons: str, out: Path) -> None:
    """How far one record moves a median, near and far."""
    losses = _losses(epsilons)
    _draw(out, lambda: smooth_sensitivity_figure(losses))


@figure.command(example="admissible --epsilon 1 --out admissible.svg")
@number_option("--epsilon", "1", "The privacy loss.", Fraction(1, 100), 100)
@number_option("--delta", "1e-6", "For the noises that need it.", TINY, Fraction(1, 10))
@out_option
def admissible(out: Path, **said: Any) -> None:
    """The error of a private median, noise by noise."""
    _draw(out, lambda: admissible_figure(**said))


@figure.command(example="planar --within 200 --out planar.svg")
@number_option(
    "--within",
    "200",
    "The distance, in metres, at which the odds may change by the factors.",
    1,
    100_000,
)
@out_option
def planar(out: Path, **said: Any) -> None:
    """How far a private place is from the true one."""
    _draw(out, lambda: planar_figure(**said))


def _draw(out: Path, picture: Callable[[], str]) -> None:
    kind = out.suffix.lower()
    svg = out.with_suffix(".svg").name
    if kind in OTHERS:
        problem = f"ends in {out.suffix}, and this program draws SVG and PNG only"
        remedy = f"pass {svg}; a browser prints or exports it as {out.suffix[1:].upper()}"
        raise refusal("--out", problem, remedy)
    check_folder(out)
    if kind == ".png" and svg_to_bytes is None:
        problem = "ends in .png, and drawing pixels needs another library"
        raise refusal("--out", problem, f'pip install "lastbit[png]", or pass {svg}')
    fonts = (font for folder in FONTS for font in Path(folder).expanduser().rglob("*.[to]tf"))
    if kind == ".png" and not any(fonts):
        problem = "ends in .png, and this machine has no font to draw the words with"
        remedy = "install one (on Debian: fonts-dejavu-core), or pass a name that ends in .svg"
        raise refusal("--out", problem, remedy)
    with waiting("drawing"):
        drawn = picture()
        pixels = kind == ".png"
        content = bytes(svg_to_bytes(svg_string=drawn, zoom=2)) if pixels else drawn
    save(out, content)
    click.echo(f"Picture: {out}")


def _losses(
    epsilons: str, *, least: Fraction = Fraction(1, 100), count: int = MOST_CURVES - 1
) -> list[Fraction]:
    numbers = [exact_number(item, "--epsilons") for item in epsilons.split(",")]
    if any(not least <= number <= 100 for number in numbers):
        raise refusal("--epsilons", f"is not from {least} to 100", OUTSIDE)
    _few(numbers, count, "--epsilons")
    return sorted(numbers)


def _few(numbers: list[Fraction], most: int, name: str) -> None:
    if len(numbers) > most or len(set(numbers)) < len(numbers):
        problem = f"are more than {most}, or one is there twice"
        raise refusal(name, problem, "pass fewer, so that the curves can be told apart")
