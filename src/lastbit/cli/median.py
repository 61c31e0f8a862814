"""`lastbit median`: a private median, or another quantile, of one column of a file."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from lastbit.cli.files import numbers_of
from lastbit.cli.options import PATH, command, json_option, option, spelled
from lastbit.cli.output import Facts, Heading, show, show_json, waiting
from lastbit.exact import exact_text, probability
from lastbit.mechanisms import ExponentialQuantile, SmoothStatistic, quantile_mechanism
from lastbit.privacy import ADD_REMOVE, CHANGE_ONE


@command(
    "median visits.csv minutes --lower 0 --upper 500 --epsilon 1",
    short_help="A private median of one column of a CSV file.",
)
@click.argument("file", type=PATH)
@click.argument("column")
@option("--lower", "No value counts as less than this.", required=True)
@option("--upper", "No value counts as more than this.", required=True)
@option("--epsilon", "The privacy loss: 1, 0.5, 1/3 ...", required=True)
@option("--delta", "Needed for laplace and gaussian noise: 1e-9.")
@option(
    "--quantile", "The share of the data that lies below: 0.9 for the ninth decile.", default="1/2"
)
@option(
    "--noise",
    "auto takes exponential or student, whichever is nearer at this epsilon. These and cauchy "
    "promise pure privacy; laplace and gaussian need --delta.",
    ("auto", "exponential", "student", "cauchy", "laplace", "gaussian"),
    default="auto",
)
@option(
    "--neighbours",
    "change-one: the number of rows is public. add-remove: it is not.",
    ("change-one", "add-remove"),
    default="change-one",
)
@option("--grid", "A power of two to round to: 1/1024, 8.")
@json_option
def median(
    file: Path,
    column: str,
    quantile: Fraction,
    neighbours: str,
    grid: Fraction | None,
    as_json: bool,
    **said: Any,
) -> None:
    """A private median of one COLUMN of a CSV FILE (- is standard input).

    By the exponential mechanism, or with noise for the data's own smooth sensitivity. Both come
    near the median where values lie close together around it. Noise for the worst data between the
    bounds would be far larger. Values outside the bounds count as the nearer bound; how many there
    were is not told. The bounds, the grid and all options must be chosen without looking at the
    data.
    """
    probability(quantile, "--quantile", remedy="pass, say, 0.9 for the ninth decile")
    with waiting("reading and sorting"):
        mechanism = quantile_mechanism(
            quantile,
            grid="auto" if grid is None else grid,
            neighbours=CHANGE_ONE if neighbours == "change-one" else ADD_REMOVE,
            **said,
        )
        value = mechanism.release(numbers_of(file, column))
    added = mechanism.noise if isinstance(mechanism, SmoothStatistic) else mechanism
    noise, words = said["noise"], "as wide as the smooth sensitivity asks for"
    if isinstance(mechanism, ExponentialQuantile):
        noise, words = "exponential", "a point is the likelier the nearer its rank"
    elif noise == "auto":
        noise = "student"
    if as_json:
        show_json(
            {
                "value": value,
                "quantile": str(quantile),
                "lower": str(said["lower"]),
                "upper": str(said["upper"]),
                "grid": str(added.grid),
                "noise": noise,
                "guarantee": mechanism.guarantee.to_dict(),
            }
        )
        return
    name = "Median" if quantile == Fraction(1, 2) else f"Quantile {exact_text(quantile)}"
    facts = (
        ("promise", spelled(mechanism.guarantee)),
        ("neighbours", str(added.neighbours)),
        ("bounds", f"{exact_text(mechanism.lower)} to {exact_text(mechanism.upper)}"),
        ("noise", f"{noise}: {words}"),
        ("rounded to", f"multiples of {exact_text(added.grid)}"),
    )
    warning = (
        "How far off it may be is not shown: it depends on the data, and would cost a price too."
    )
    show(Heading(f"{name} of {column}", f"{value!r}"), Facts(facts), warning)
