"""`lastbit figure`: pictures of the theory, every point of them worked out exactly."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import click

from lastbit.cli.files import check_folder, rasterizer, save
from lastbit.cli.numbers import EXACT, exact_number
from lastbit.cli.refusals import option_names
from lastbit.errors import InvalidParameter

MOST_CURVES = 7
LEAST, MOST = Fraction(1, 1000), Fraction(1000)
OTHERS = (".jpg", ".jpeg", ".gif", ".webp", ".pdf", ".eps")

out_option = click.option(
    "--out",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    required=True,
    help="Where the picture goes (SVG, or PNG by its ending). A file of that name is replaced.",
)


@click.group(epilog="Example: lastbit figure posterior --out posterior.svg")
def figure() -> None:
    """Draw a figure of the theory as SVG.

    Nothing is simulated: each point is a bound or a probability, worked out exactly. The files need
    nothing else to be shown, and follow the reader's light or dark scheme.
    """


@figure.command(epilog="Example: lastbit figure posterior --out posterior.svg")
@click.option(
    "--epsilons",
    default="0,0.1,0.5,1,2,5,10",
    show_default=True,
    metavar="NUMBERS",
    help="The privacy losses to compare, from 0 to 100.",
)
@out_option
def posterior(epsilons: str, out: Path) -> None:
    """Belief after a release against belief before it."""
    from lastbit.report import posterior_figure

    losses = _numbers(epsilons, least=Fraction(0), most=Fraction(100))
    _draw(out, lambda: posterior_figure(losses))


@figure.command(epilog="Example: lastbit figure poll --out poll.svg")
@click.option(
    "--epsilons",
    default="0.1,0.5,1,2,5",
    show_default=True,
    metavar="NUMBERS",
    help="The privacy losses to compare, from 1/100 to 100, at most six.",
)
@out_option
def poll(epsilons: str, out: Path) -> None:
    """The error of a poll against its size, log scales."""
    from lastbit.report import poll_figure

    losses = _numbers(epsilons, least=Fraction(1, 100), most=Fraction(100), count=MOST_CURVES - 1)
    _draw(out, lambda: poll_figure(losses))


@figure.command(epilog="Example: lastbit figure laplace --epsilon 1/2 --out laplace.svg")
@click.option(
    "--sensitivity",
    type=click.IntRange(1, 1000),
    default=1,
    show_default=True,
    help="How far apart the two inputs are.",
)
@click.option("--epsilon", type=EXACT, default="1", show_default=True, help="The privacy loss.")
@out_option
def laplace(sensitivity: int, epsilon: Fraction, out: Path) -> None:
    """The laws of Laplace releases for two neighbours."""
    from lastbit.report import laplace_figure

    loss = _between("--epsilon", epsilon, LEAST, Fraction(100))
    _draw(out, lambda: laplace_figure(sensitivity=sensitivity, epsilon=loss))


@figure.command(epilog="Example: lastbit figure gaussian-curve --out gaussian-curve.svg")
@click.option(
    "--standard-deviation",
    type=EXACT,
    default="5",
    show_default=True,
    help="The noise, for a value that one person moves by 1.",
)
@out_option
def gaussian_curve(standard_deviation: Fraction, out: Path) -> None:
    """Exact delta(epsilon) of Gaussian noise, and bounds."""
    from lastbit.report import gaussian_curve_figure

    deviation = _between("--standard-deviation", standard_deviation, Fraction(1, 2), MOST)
    _draw(out, lambda: gaussian_curve_figure(standard_deviation=deviation))


@figure.command(epilog="Example: lastbit figure composition --epsilon 0.1 --out composition.svg")
@click.option(
    "--epsilon", type=EXACT, default="0.1", show_default=True, help="The loss of one release."
)
@click.option(
    "--delta", type=EXACT, default="1e-6", show_default=True, help="The delta of all together."
)
@click.option(
    "--releases",
    type=click.IntRange(10, 10_000),
    default=1000,
    show_default=True,
    help="How far to the right.",
)
@out_option
def composition(epsilon: Fraction, delta: Fraction, releases: int, out: Path) -> None:
    """What many releases cost together, theorem by theorem."""
    from lastbit.report import composition_figure

    loss = _between("--epsilon", epsilon, LEAST, Fraction(5))
    level = _between("--delta", delta, Fraction(1, 10**30), Fraction(1, 2))
    _draw(out, lambda: composition_figure(epsilon=loss, delta=level, releases=releases))


@figure.command(epilog="Example: lastbit figure smooth-sensitivity --out smooth.svg")
@click.option(
    "--epsilons",
    default="0.1,0.5,2",
    show_default=True,
    metavar="NUMBERS",
    help="The privacy losses to compare, from 1/100 to 100, at most six.",
)
@out_option
def smooth_sensitivity(epsilons: str, out: Path) -> None:
    """How far one record moves a median, near and far."""
    from lastbit.report import smooth_sensitivity_figure

    losses = _numbers(epsilons, least=Fraction(1, 100), most=Fraction(100), count=MOST_CURVES - 1)
    _draw(out, lambda: smooth_sensitivity_figure(losses))


@figure.command(epilog="Example: lastbit figure admissible --epsilon 1 --out admissible.svg")
@click.option("--epsilon", type=EXACT, default="1", show_default=True, help="The privacy loss.")
@click.option(
    "--delta", type=EXACT, default="1e-6", show_default=True, help="For the noises that need it."
)
@out_option
def admissible(epsilon: Fraction, delta: Fraction, out: Path) -> None:
    """The error of a private median, noise by noise."""
    from lastbit.report import admissible_figure

    loss = _between("--epsilon", epsilon, Fraction(1, 100), Fraction(100))
    level = _between("--delta", delta, Fraction(1, 10**30), Fraction(1, 10))
    _draw(out, lambda: admissible_figure(epsilon=loss, delta=level))


@figure.command(epilog="Example: lastbit figure planar --within 200 --out planar.svg")
@click.option(
    "--within",
    type=EXACT,
    default="200",
    show_default=True,
    help="The distance, in metres, at which the odds may change by the factors.",
)
@out_option
def planar(within: Fraction, out: Path) -> None:
    """How far a private place is from the true one."""
    from lastbit.report import planar_figure

    distance = _between("--within", within, Fraction(1), Fraction(100_000))
    _draw(out, lambda: planar_figure(within=distance))


def _draw(out: Path, picture: Callable[[], str]) -> None:
    from lastbit.cli.waiting import waiting

    if out.suffix.lower() in OTHERS:
        raise InvalidParameter(
            "--out",
            problem=f"ends in {out.suffix}, and this program draws SVG and PNG only",
            remedy=f"pass {out.with_suffix('.svg').name}; a browser prints or exports it as "
            f"{out.suffix.lstrip('.').upper()}",
        )
    check_folder(out)
    in_pixels = rasterizer(out) if out.suffix.lower() == ".png" else None
    with option_names(), waiting("drawing"):
        text = picture()
        content = text if in_pixels is None else in_pixels(text)
    save(out, content)
    click.echo(f"Picture: {out}")


def _numbers(
    text: str, *, least: Fraction, most: Fraction, count: int = MOST_CURVES
) -> list[Fraction]:
    numbers = [
        _between("--epsilons", exact_number(item, "--epsilons"), least, most)
        for item in text.split(",")
    ]
    if len(numbers) > count or len(set(numbers)) < len(numbers):
        raise InvalidParameter(
            "--epsilons",
            problem=f"are more than {count}, or one is there twice",
            remedy="pass fewer, so that the curves can be told apart",
        )
    return sorted(numbers)


def _between(name: str, number: Fraction, least: Fraction, most: Fraction) -> Fraction:
    if not least <= number <= most:
        raise InvalidParameter(
            name,
            problem=f"is not from {least} to {most}",
            remedy="outside that range there is nothing to see; pass a number inside it",
        )
    return number
