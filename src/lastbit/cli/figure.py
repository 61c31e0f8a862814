"""`lastbit figure`: pictures of the theory, every point of them worked out exactly."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from lastbit.cli.files import check_folder, save
from lastbit.cli.options import Group, exact_number, option, refusal
from lastbit.cli.output import waiting
from lastbit.report import (
    admissible_figure,
    composition_figure,
    gaussian_curve_figure,
    laplace_figure,
    planar_figure,
    poll_figure,
    posterior_figure,
    smooth_sensitivity_figure,
)

try:
    from resvg_py import svg_to_bytes
except ImportError:  # needed for pictures in pixels only
    svg_to_bytes = None  # type: ignore[assignment]

MOST_CURVES = 7
OTHERS = (".jpg", ".jpeg", ".gif", ".webp", ".pdf", ".eps")
FONTS = ("/usr/share/fonts", "/usr/local/share/fonts", "~/.fonts", "~/.local/share/fonts",
         "/Library/Fonts", "/System/Library/Fonts")  # fmt: skip

out_option = option(
    "--out",
    "Where the picture goes (SVG, or PNG by its ending). A file of that name is replaced.",
    click.Path(dir_okay=False, writable=True, path_type=Path),
    required=True,
)


def number_option(name: str, default: str, words: str) -> Callable[[Any], Any]:
    """An exact number."""
    return option(name, words, default=default)


def epsilons_option(default: str, ends: str) -> Callable[[Any], Any]:
    """Several losses, separated by commas."""
    words = f"The privacy losses to compare, from {ends}."
    return option("--epsilons", words, "NUMBERS", default=default)


@click.group(cls=Group, epilog="Example: lastbit figure posterior --out posterior.svg")
def figure() -> None:
    """Draw a figure of the theory as SVG.

    Nothing is simulated: each point is a bound or a probability, worked out exactly. The files need
    nothing else to be shown, and follow the reader's light or dark scheme.
    """


@figure.command(epilog="Example: lastbit figure posterior --out posterior.svg")
@epsilons_option("0,0.1,0.5,1,2,5,10", "0 to 100")
@out_option
def posterior(epsilons: str, out: Path) -> None:
    """Belief after a release against belief before it."""
    losses = _losses(epsilons, least=Fraction(0), count=MOST_CURVES)
    _draw(out, lambda: posterior_figure(losses))


@figure.command(epilog="Example: lastbit figure poll --out poll.svg")
@epsilons_option("0.1,0.5,1,2,5", "1/100 to 100, at most six")
@out_option
def poll(epsilons: str, out: Path) -> None:
    """The error of a poll against its size, log scales."""
    losses = _losses(epsilons)
    _draw(out, lambda: poll_figure(losses))


@figure.command(epilog="Example: lastbit figure laplace --epsilon 1/2 --out laplace.svg")
@option("--sensitivity", "How far apart the two inputs are.", click.IntRange(1, 1000), default=1)
@number_option("--epsilon", "1", "The privacy loss.")
@out_option
def laplace(sensitivity: int, epsilon: Fraction, out: Path) -> None:
    """The laws of Laplace releases for two neighbours."""
    loss = _between("--epsilon", epsilon, Fraction(1, 1000), 100)
    _draw(out, lambda: laplace_figure(sensitivity=sensitivity, epsilon=loss))


@figure.command(epilog="Example: lastbit figure gaussian-curve --out gaussian-curve.svg")
@number_option("--standard-deviation", "5", "The noise, for a value that one person moves by 1.")
@out_option
def gaussian_curve(standard_deviation: Fraction, out: Path) -> None:
    """Exact delta(epsilon) of Gaussian noise, and bounds."""
    deviation = _between("--standard-deviation", standard_deviation, Fraction(1, 2), 1000)
    _draw(out, lambda: gaussian_curve_figure(standard_deviation=deviation))


@figure.command(epilog="Example: lastbit figure composition --epsilon 0.1 --out composition.svg")
@number_option("--epsilon", "0.1", "The loss of one release.")
@number_option("--delta", "1e-6", "The delta of all together.")
@option("--releases", "How far to the right.", click.IntRange(10, 10_000), default=1000)
@out_option
def composition(epsilon: Fraction, delta: Fraction, releases: int, out: Path) -> None:
    """What many releases cost together, theorem by theorem."""
    loss = _between("--epsilon", epsilon, Fraction(1, 1000), 5)
    level = _between("--delta", delta, Fraction(1, 10**30), Fraction(1, 2))
    _draw(out, lambda: composition_figure(epsilon=loss, delta=level, releases=releases))


@figure.command(epilog="Example: lastbit figure smooth-sensitivity --out smooth.svg")
@epsilons_option("0.1,0.5,2", "1/100 to 100, at most six")
@out_option
def smooth_sensitivity(epsilons: str, out: Path) -> None:
    """How far one record moves a median, near and far."""
    losses = _losses(epsilons)
    _draw(out, lambda: smooth_sensitivity_figure(losses))


@figure.command(epilog="Example: lastbit figure admissible --epsilon 1 --out admissible.svg")
@number_option("--epsilon", "1", "The privacy loss.")
@number_option("--delta", "1e-6", "For the noises that need it.")
@out_option
def admissible(epsilon: Fraction, delta: Fraction, out: Path) -> None:
    """The error of a private median, noise by noise."""
    loss = _between("--epsilon", epsilon, Fraction(1, 100), 100)
    level = _between("--delta", delta, Fraction(1, 10**30), Fraction(1, 10))
    _draw(out, lambda: admissible_figure(epsilon=loss, delta=level))


@figure.command(epilog="Example: lastbit figure planar --within 200 --out planar.svg")
@number_option(
    "--within", "200", "The distance, in metres, at which the odds may change by the factors."
)
@out_option
def planar(within: Fraction, out: Path) -> None:
    """How far a private place is from the true one."""
    distance = _between("--within", within, 1, 100_000)
    _draw(out, lambda: planar_figure(within=distance))


def _draw(out: Path, picture: Callable[[], str]) -> None:
    if out.suffix.lower() in OTHERS:
        raise refusal(
            "--out",
            f"ends in {out.suffix}, and this program draws SVG and PNG only",
            f"pass {out.with_suffix('.svg').name}; a browser prints or exports it as "
            f"{out.suffix.lstrip('.').upper()}",
        )
    check_folder(out)
    in_pixels = out.suffix.lower() == ".png"
    if in_pixels:
        _check_pixels(out)
    with waiting("drawing"):
        svg = picture()
        content = bytes(svg_to_bytes(svg_string=svg, zoom=2)) if in_pixels else svg
    save(out, content)
    click.echo(f"Picture: {out}")


def _check_pixels(out: Path) -> None:
    """Refuse PNG without the library that draws it, or without a font."""
    if svg_to_bytes is None:
        raise refusal(
            "--out",
            "ends in .png, and drawing pixels needs another library",
            f'pip install "lastbit[png]", or pass {out.with_suffix(".svg").name}',
        )
    if not any(font for folder in FONTS for font in Path(folder).expanduser().rglob("*.[to]tf")):
        raise refusal(
            "--out",
            "ends in .png, and this machine has no font to draw the words with",
            "install one (on Debian: fonts-dejavu-core), or pass a name that ends in .svg",
        )


def _losses(
    epsilons: str, *, least: Fraction = Fraction(1, 100), count: int = MOST_CURVES - 1
) -> list[Fraction]:
    numbers = [
        _between("--epsilons", exact_number(item, "--epsilons"), least, 100)
        for item in epsilons.split(",")
    ]
    if len(numbers) > count or len(set(numbers)) < len(numbers):
        raise refusal(
            "--epsilons",
            f"are more than {count}, or one is there twice",
            "pass fewer, so that the curves can be told apart",
        )
    return sorted(numbers)


def _between(name: str, number: Fraction, least: Fraction | int, most: Fraction | int) -> Fraction:
    if not least <= number <= most:
        raise refusal(
            name,
            f"is not from {least} to {most}",
            "outside that range there is nothing to see; pass a number inside it",
        )
    return number
