"""`lastbit attack`: known ways in which noise fails, tried on anybody's."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from fractions import Fraction

import click

from lastbit.cli.numbers import EXACT
from lastbit.cli.refusals import option_names

MOST_SAMPLES = 1 << 32
TAKES = "make it answer two numbers, 0 and 1 unless --answers says others"


@click.group(epilog="Example: lastbit attack run precision --target numpy")
def attack() -> None:
    """Known ways in which noise fails, tried on anybody's."""


@attack.command("list", epilog="Example: lastbit attack list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_attacks(as_json: bool) -> None:
    """Every attack: what it looks for, its source, what it suits."""
    from lastbit.cli.attack_answer import show_list

    show_list(as_json=as_json)


@attack.command(epilog="Example: lastbit attack run all --target module:function --epsilon 1")
@click.argument("name", metavar="NAME|all")
@click.option(
    "--target",
    required=True,
    metavar="LIBRARY|MODULE:FUNCTION",
    help="What is attacked: numpy, diffprivlib, opendp, pydp, tumult, lastbit, or your own.",
)
@click.option("--epsilon", type=EXACT, help="The loss that your function claims.")
@click.option("--delta", type=EXACT, help="The delta that your function claims.  [default: 0]")
@click.option(
    "--answers",
    type=EXACT,
    nargs=2,
    metavar="A B",
    help="Two neighbouring inputs of your function, which it adds noise to.  [default: 0 1]",
)
@click.option("--scale", type=EXACT, help="What your function multiplies its noise by.")
@click.option("--step", type=EXACT, help="The grid that the outputs of your function lie on.")
@click.option(
    "--samples",
    type=click.IntRange(400, MOST_SAMPLES),
    help="How many releases each attack may take.  [default: what a few seconds allow]",
)
@click.option(
    "--error",
    type=EXACT,
    default="1e-6",
    show_default=True,
    help="The probability with which any of the verdicts may be wrong.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def run(
    name: str,
    target: str,
    epsilon: Fraction | None,
    delta: Fraction | None,
    answers: tuple[Fraction, Fraction] | None,
    scale: Fraction | None,
    step: Fraction | None,
    samples: int | None,
    error: Fraction,
    as_json: bool,
) -> None:
    """Try one attack, or all, on a library or on a function of your own.

    Your own is called as function(value), or as function(value, size) if it gives many independent
    releases at once; the module is looked for as Python does, and in the current folder. Its code
    is run: name only modules that you would run. A Target or SumTarget of lastbit.audit can be
    named, too.

    The exit status is 0 if everything resisted, 1 if a violation is certified, 2 if nothing could
    be tried.
    """
    from lastbit.cli.attack_answer import answer
    from lastbit.cli.attack_run import Told, targets_of, tried
    from lastbit.cli.audit_subject import failures_named
    from lastbit.cli.verify_loading import current_folder

    told = Told(epsilon=epsilon, delta=delta, answers=answers, scale=scale, step=step)
    # what a mechanism prints is not our answer
    with redirect_stdout(sys.stderr), option_names(), current_folder(), failures_named(TAKES):
        outcome = tried(name, targets_of(target, told), samples=samples, error=error)
    answer(outcome, name, target, as_json=as_json)
