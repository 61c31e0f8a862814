"""`lastbit verify`: what float code truly loses, with a certificate that another program checks."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import click

from lastbit.cli.numbers import EXACT
from lastbit.cli.refusals import option_names
from lastbit.cli.verify_answer import Files, answer, file_options
from lastbit.errors import InvalidParameter
from lastbit.exact import probability

CODE = "module:function"
FORMATS = ("binary64", "binary32", "binary16")
UNIFORMS = ("full", "grid53", "grid53-open")

region_option = click.option(
    "--region", type=EXACT, nargs=2, metavar="LOW HIGH", help="Results are moved to these ends."
)


class Targets(click.Group):
    """The shipped mechanisms by name, and anybody's function as module:function."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command; every name with a colon is that of a function."""
        return super().get_command(ctx, CODE if ":" in cmd_name else cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The same, refusing unknown names with a way out."""
        if not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            raise InvalidParameter(
                "the mechanism",
                problem="is unknown",
                remedy="name your own function as module:function, or say snapping or rounding",
            )
        return super().resolve_command(ctx, args)


@click.group(cls=Targets, epilog="Example: lastbit verify snapping --epsilon 0.7 --bound 32")
def verify() -> None:
    """What float code truly loses, with a certificate.

    Name a function of your own as module:function, or one of the shipped mechanisms. The exit
    status is 0 if the promise holds, 1 if it is refuted or not kept, 2 if nothing could be found
    out.
    """


@verify.command(
    CODE,
    epilog="Example: lastbit verify module:function --epsilon 1 --certificate out.json",
)
@click.option("--epsilon", type=EXACT, required=True, help="The loss that is promised.")
@click.option(
    "--sensitivity",
    type=EXACT,
    default="1",
    show_default=True,
    help="How far apart two neighbouring values can be.",
)
@click.option(
    "--inputs",
    type=EXACT,
    nargs=2,
    multiple=True,
    metavar="X Y",
    help="Two values to tell apart; may be repeated. By default, a few pairs.",
)
@click.option(
    "--grid",
    "cell",
    type=EXACT,
    metavar="L",
    help="The result is rounded to multiples of L: asks for a proof, for all values of --region.",
)
@region_option
@click.option(
    "--uniform",
    type=click.Choice(UNIFORMS),
    default="full",
    show_default=True,
    help="How u is drawn: with all bits that floats have, or as multiples of 2**-53, as "
    "random.random() does; open leaves 0 out.",
)
@click.option(
    "--parameter",
    "parameters",
    multiple=True,
    metavar="NAME=NUMBER",
    help="A parameter that the function takes by name; may be repeated.",
)
@click.option(
    "--split",
    "splits",
    type=EXACT,
    multiple=True,
    metavar="U",
    help="A uniform between 0 and 1 at which the output turns; may be repeated.",
)
@file_options
@click.pass_context
def function(
    context: click.Context,
    epsilon: Fraction,
    sensitivity: Fraction,
    inputs: tuple[tuple[Fraction, Fraction], ...],
    cell: Fraction | None,
    region: tuple[Fraction, Fraction] | None,
    uniform: str,
    parameters: tuple[str, ...],
    splits: tuple[Fraction, ...],
    certificate: Path | None,
    html: Path | None,
    latex: Path | None,
    as_json: bool,
) -> None:
    """Your own float code.

    It is called as function(value, u), or as function(value, u, sign) with a fair sign.

    The module is looked for as Python does, and in the current folder. Its code is run: name only
    modules that you would run.

    Without --grid the function is called, and the exact probabilities of its outputs are worked out
    for pairs of values: either two values and outputs are found that refute the promise, or the
    promise holds for these values. With --grid and --region it is followed step by step, and the
    loss is proved for all values. Then it is called as well, at edges of the grid, ends and many
    other points, and must do what was followed, to the last bit. Code that catches exceptions,
    keeps something between calls or asks a value for more than arithmetic is refused.
    """
    from lastbit.cli.verify_code import by_exact_law, by_rounding, pairs_of
    from lastbit.cli.verify_loading import current_folder, loaded
    from lastbit.cli.waiting import waiting
    from lastbit.exact import positive

    files = Files(certificate, html, latex)
    files.check()
    with option_names(), waiting("looking for the loss"), current_folder():
        positive(epsilon, "epsilon")
        positive(sensitivity, "sensitivity")
        _together(cell, region, inputs, splits)
        code = loaded(context.info_name or "", _numbers(parameters))
        if cell is not None and region is not None:
            outcome = by_rounding(
                code,
                epsilon=epsilon,
                sensitivity=sensitivity,
                cell=cell,
                region=region,
                uniform=uniform,
            )
        else:
            outcome = by_exact_law(
                code,
                pairs_of(inputs, sensitivity),
                epsilon=epsilon,
                uniform=uniform,
                splits=[_between(u) for u in splits],
            )
        answer(outcome, files, as_json=as_json)


@verify.command(epilog="Example: lastbit verify snapping --epsilon 0.7 --bound 32")
@click.option(
    "--epsilon", type=EXACT, required=True, help="The loss of the noise, before floats are counted."
)
@click.option("--bound", type=EXACT, required=True, help="Values and results lie within ±bound.")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="binary64",
    show_default=True,
    help="The floats that the mechanism computes with.",
)
@file_options
def snapping(
    epsilon: Fraction,
    bound: Fraction,
    form: str,
    certificate: Path | None,
    html: Path | None,
    latex: Path | None,
    as_json: bool,
) -> None:
    """The snapping mechanism, for all inputs.

    Values are those of a query that one person moves by at most 1.
    """
    from lastbit.cli.verify_shipped import snapping_outcome
    from lastbit.cli.waiting import waiting

    files = Files(certificate, html, latex)
    files.check()
    with option_names(), waiting("deriving the loss"):
        answer(snapping_outcome(epsilon, bound, form), files, as_json=as_json)


@verify.command(
    epilog="Example: lastbit verify rounding --epsilon 1 --sensitivity 1 --grid 1/16 "
    "--region -100 100"
)
@click.option(
    "--epsilon",
    type=EXACT,
    required=True,
    help="The loss of the noise in exact arithmetic: its scale is sensitivity/epsilon.",
)
@click.option(
    "--sensitivity", type=EXACT, required=True, help="How far one person can move the value."
)
@click.option("--grid", "cell", type=EXACT, metavar="L", help="Results are multiples of L.")
@region_option
@click.option(
    "--target",
    type=EXACT,
    help="The loss that is allowed, floats counted. Without --grid or without --region, the least "
    "grid or the largest region is looked for.",
)
@file_options
def rounding(
    epsilon: Fraction,
    sensitivity: Fraction,
    cell: Fraction | None,
    region: tuple[Fraction, Fraction] | None,
    target: Fraction | None,
    certificate: Path | None,
    html: Path | None,
    latex: Path | None,
    as_json: bool,
) -> None:
    """Laplace noise in floats, rounded and truncated, as RoundedLaplace adds it."""
    from lastbit.cli.verify_shipped import rounding_outcome
    from lastbit.cli.waiting import waiting

    files = Files(certificate, html, latex)
    files.check()
    with option_names(), waiting("deriving the loss"):
        outcome = rounding_outcome(epsilon, sensitivity, cell=cell, region=region, target=target)
        answer(outcome, files, as_json=as_json)


# ---------------------------------------------------------------- what is refused


def _together(
    cell: Fraction | None,
    region: tuple[Fraction, Fraction] | None,
    inputs: tuple[tuple[Fraction, Fraction], ...],
    splits: tuple[Fraction, ...],
) -> None:
    """Refuse half of --grid and --region, and options that a proof has no use for."""
    if (cell is None) != (region is None):
        raise InvalidParameter(
            "--grid" if cell is None else "--region",
            problem="is missing",
            remedy="pass --grid and --region together",
        )
    if cell is not None and (inputs or splits):
        raise InvalidParameter(
            "--inputs or --split",
            problem="has no meaning with --grid, which is about all values",
            remedy="leave it out",
        )


def _numbers(parameters: tuple[str, ...]) -> dict[str, float]:
    """The parameters of a function, each the float nearest to what was written."""
    from lastbit.cli.numbers import exact_number
    from lastbit.mechanisms import nearest

    found: dict[str, float] = {}
    for text in parameters:
        name, sign, number = text.partition("=")
        if not sign or not name.isidentifier() or name in found:
            raise InvalidParameter(
                "--parameter",
                problem="is not written as name=number, or names one twice",
                remedy="write, say, --parameter scale=2",
            )
        found[name] = nearest(exact_number(number, f"--parameter {name}"))
    return found


def _between(u: Fraction) -> float:
    return float(probability(u, "--split", zero=False, one=False, remedy="pass, say, 0.5"))
