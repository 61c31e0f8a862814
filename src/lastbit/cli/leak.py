"""`lastbit leak`: see two common ways of adding noise give the secret away, and one that holds."""

from __future__ import annotations

import time
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lastbit.cli.files import check_folder, save
from lastbit.errors import InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MOST_SAMPLES = 100_000_000
LEAST_EPSILON, MOST_EPSILON = Fraction(1, 100), Fraction(10)
PATIENCE = 1.0  # seconds before a progress bar is worth the reader's attention


@click.command(
    short_help="Watch textbook noise give its secret away, and ours keep it.",
    epilog="Example: lastbit leak --epsilon 1/2 --samples 100000 --out half.svg",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    default=Path("leak.svg"),
    show_default=True,
    help="Where the picture goes (SVG). A file of that name is replaced.",
)
@click.option(
    "--samples",
    type=click.IntRange(1, MOST_SAMPLES),
    default=1_000_000,
    show_default=True,
    help="How many floating-point releases to draw for each answer.",
)
@click.option(
    "--epsilon",
    default="1",
    show_default=True,
    metavar="NUMBER",
    help="The privacy loss that panels 2 and 3 promise: 1, 0.5, 1/3 ... from 1/100 to 10.",
)
def leak(out: Path, samples: int, epsilon: str) -> None:
    """Watch Laplace noise give the secret away, twice, and hold, once.

    Panel 1 adds noise in fixed point and keeps the last bits of the secret. Panel 2 adds numpy's
    floating-point noise, whose finest bits tell the answers 0 and 1 apart. Panel 3 adds exact
    discrete noise, and no output says more than epsilon.
    """
    from rich.console import Console

    from lastbit.cli.leak_evidence import fixed_point_leak, float_leak, lattice_evidence
    from lastbit.cli.leak_picture import picture_of
    from lastbit.cli.leak_view import view

    exact_epsilon = _epsilon(epsilon)
    check_folder(out)
    fixed = fixed_point_leak(draws=5)
    floats = float_leak(exact_epsilon, samples, watch=_progress)
    lattice = lattice_evidence(exact_epsilon)
    save(out, picture_of(fixed, floats, lattice))
    console = Console(highlight=False, width=80)
    # the console has chosen colour or none; click is not to choose again
    click.echo(view(console, fixed, floats, lattice), color=True)
    click.echo(f"Picture: {out}")


def _epsilon(text: str) -> Fraction:
    from lastbit.exact import positive

    epsilon = positive(text, "--epsilon")
    if not LEAST_EPSILON <= epsilon <= MOST_EPSILON:
        raise InvalidParameter(
            "--epsilon",
            problem=f"is not between {LEAST_EPSILON} and {MOST_EPSILON}",
            remedy="outside that range a sample of this size shows nothing; try 1",
        )
    return epsilon


def _progress(blocks: Iterable[int], total: int) -> Iterator[int]:
    """Pass the block sizes through; show a bar on stderr once a second has gone by."""
    from rich.console import Console
    from rich.progress import Progress

    start, done = time.monotonic(), 0
    bar = Progress(console=Console(stderr=True), transient=True)
    task = bar.add_task("drawing", total=total, visible=bar.console.is_terminal)
    shown = False
    try:
        for block in blocks:
            yield block
            done += block
            if not shown and bar.console.is_terminal and time.monotonic() - start > PATIENCE:
                bar.start()
                shown = True
            bar.update(task, completed=done)
    finally:
        if shown:
            bar.stop()
