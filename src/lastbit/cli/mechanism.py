"""`lastbit mechanism`: one release of one mechanism, or an explanation of it and no release."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from lastbit.cli import mechanism_answer as answers
from lastbit.cli.numbers import EXACT, SECRET
from lastbit.cli.refusals import option_names
from lastbit.errors import InvalidParameter

MANY = click.IntRange(1)

sensitivity_option = click.option(
    "--sensitivity", type=EXACT, required=True, help="How far one person can move the value."
)
epsilon_option = click.option(
    "--epsilon", type=EXACT, required=True, help="The privacy loss: 1, 0.5, 1/3 ..."
)
value_option = click.option(
    "--value", type=SECRET, help="The true value. Without it, nothing is drawn."
)
grid_option = click.option(
    "--grid", metavar="STEP", help='A power of two, or "auto": for values that are not whole.'
)
monotone_option = click.option(
    "--monotone", is_flag=True, help="One person moves all values the same way, as counts do."
)
file_option = click.option(
    "--file",
    type=click.Path(path_type=Path, allow_dash=True),
    help="The same from a file, one a line; - is standard input.",
)
keys_per_person_option = click.option(
    "--keys-per-person", type=MANY, required=True, help="How many keys one person may have."
)
counts_option = click.option(
    "--counts", metavar="KEY=COUNT,...", help='The true counts: "a=3,b=10".'
)
neighbours_option = click.option(
    "--neighbours",
    type=click.Choice(("add-remove", "change-one")),
    default="add-remove",
    show_default=True,
    help="Whether one person is more or less, or another one.",
)
explain_option = click.option(
    "--explain", is_flag=True, help="Show law, theorem, noise, error and exact probabilities."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, exact numbers.")


@click.group(
    epilog="Example: lastbit mechanism laplace --sensitivity 1 --epsilon 1/2 --value 42",
)
def mechanism() -> None:
    """Release one value with exact noise, or explain a mechanism.

    With data a command prints the release and nothing else, and each run costs its guarantee once
    more: nobody keeps count here. Without data nothing is drawn, and the mechanism is explained.
    """


@mechanism.command(
    epilog="Example: lastbit mechanism laplace --sensitivity 1 --epsilon 1/2 --value 42 --explain"
)
@sensitivity_option
@epsilon_option
@value_option
@grid_option
@explain_option
@json_option
def laplace(
    sensitivity: Fraction,
    epsilon: Fraction,
    value: Fraction | None,
    grid: str | None,
    explain: bool,
    as_json: bool,
) -> None:
    """A number with discrete Laplace noise; pure privacy."""
    from lastbit.cli import mechanism_explained as explained
    from lastbit.cli.mechanism_input import number_on
    from lastbit.mechanisms import Laplace

    with option_names():
        noise = Laplace(sensitivity=sensitivity, epsilon=epsilon, grid=grid)
        exact = None if value is None else number_on(noise.lattice, value, "--value")
        answers.show_answer(
            lambda: explained.laplace(noise),
            None if exact is None else lambda: answers.number(noise.release(exact)),
            explain=explain,
            as_json=as_json,
        )


@mechanism.command(
    epilog="Example: lastbit mechanism gaussian --sensitivity 1 --rho 1/2 --value 42 --explain"
)
@sensitivity_option
@click.option("--rho", type=EXACT, help="For concentrated privacy of this rho.")
@click.option("--epsilon", type=EXACT, help="For approximate privacy, with --delta.")
@click.option("--delta", type=EXACT, help="For approximate privacy, with --epsilon.")
@click.option(
    "--method",
    type=click.Choice(("exact", "zcdp", "classical")),
    help="How epsilon and delta become noise; exact adds the least.",
)
@click.option("--standard-deviation", type=EXACT, help="The noise itself.")
@value_option
@grid_option
@explain_option
@json_option
def gaussian(
    sensitivity: Fraction,
    rho: Fraction | None,
    epsilon: Fraction | None,
    delta: Fraction | None,
    method: Any,
    standard_deviation: Fraction | None,
    value: Fraction | None,
    grid: str | None,
    explain: bool,
    as_json: bool,
) -> None:
    """A number with discrete Gaussian noise; zCDP.

    Pass one of --rho, --standard-deviation, or --epsilon with --delta. The guarantee is
    concentrated, or for the last approximate.
    """
    from lastbit.cli import mechanism_explained as explained
    from lastbit.cli.mechanism_input import number_on
    from lastbit.cli.waiting import waiting
    from lastbit.mechanisms import Gaussian

    _one_target(rho, epsilon, delta, standard_deviation)
    with option_names():
        with waiting("calibrating"):
            noise = Gaussian(
                sensitivity=sensitivity,
                rho=rho,
                epsilon=epsilon,
                delta=delta,
                method=method,
                standard_deviation=standard_deviation,
                grid=grid,
            )
        exact = None if value is None else number_on(noise.lattice, value, "--value")
        answers.show_answer(
            lambda: explained.gaussian(noise),
            None if exact is None else lambda: answers.number(noise.release(exact)),
            explain=explain,
            as_json=as_json,
        )


@mechanism.command(epilog="Example: lastbit mechanism randomized-response --epsilon 1 --value yes")
@epsilon_option
@click.option(
    "--categories", type=MANY, default=2, show_default=True, help="How many answers there are."
)
@click.option("--value", help="The true answer: 0, 1, ..., or yes and no if there are two.")
@explain_option
@json_option
def randomized_response(
    epsilon: Fraction, categories: int, value: str | None, explain: bool, as_json: bool
) -> None:
    """One person's own answer, perturbed; pure privacy."""
    from lastbit.cli import mechanism_explained as explained
    from lastbit.mechanisms import RandomizedResponse

    with option_names():
        survey = RandomizedResponse(epsilon=epsilon, categories=categories)
        answer = None if value is None else _category(value, categories)
        answers.show_answer(
            lambda: explained.randomized_response(survey),
            None if answer is None else lambda: answers.said(survey.release(answer)),
            explain=explain,
            as_json=as_json,
        )


def _selection(kind: str, words: str) -> click.Command:
    """The command of a mechanism that picks a candidate: the three differ in their law alone."""
    lattice = kind == "report-noisy-max"

    @click.command(
        kind,
        help=words,
        epilog=f"Example: lastbit mechanism {kind} --sensitivity 1 --epsilon 1 --utilities 3,5,4",
    )
    @sensitivity_option
    @epsilon_option
    @click.option(
        "--utilities", metavar="NUMBERS", help='How good each is: "3,5,4" or "red=3,blue=5".'
    )
    @file_option
    @monotone_option
    @explain_option
    @json_option
    def command(
        sensitivity: Fraction,
        epsilon: Fraction,
        utilities: str | None,
        file: Path | None,
        monotone: bool,
        explain: bool,
        as_json: bool,
        grid: str | None = None,
    ) -> None:
        from lastbit import mechanisms
        from lastbit.cli import mechanism_explained as explained
        from lastbit.cli.mechanism_input import candidates

        classes = {
            "exponential": mechanisms.Exponential,
            "permute-and-flip": mechanisms.PermuteAndFlip,
            "report-noisy-max": mechanisms.ReportNoisyMax,
        }
        settings: dict[str, Any] = {"grid": grid} if lattice else {}
        with option_names():
            pick = classes[kind](
                sensitivity=sensitivity, epsilon=epsilon, monotone=monotone, **settings
            )
            given = candidates(utilities, file, "--utilities")
            count = None if given is None else len(given.numbers)
            answers.show_answer(
                lambda: explained.selection(kind, pick, count),
                None
                if given is None
                else lambda: answers.picked(pick.release(list(given.numbers)), given),
                explain=explain,
                as_json=as_json,
            )

    return grid_option(command) if lattice else command


mechanism.add_command(_selection("exponential", "The index or name of a good candidate."))
mechanism.add_command(_selection("permute-and-flip", "The same, and never worse than exponential."))
mechanism.add_command(_selection("report-noisy-max", "The same, by adding noise to every utility."))


@mechanism.command(
    epilog="Example: lastbit mechanism histogram --keys yes,no --keys-per-person 1 --epsilon 1 "
    "--counts yes=17,no=41"
)
@click.option("--keys", required=True, metavar="KEY,...", help="All keys, declared beforehand.")
@keys_per_person_option
@epsilon_option
@counts_option
@file_option
@neighbours_option
@explain_option
@json_option
def histogram(
    keys: str,
    keys_per_person: int,
    epsilon: Fraction,
    counts: str | None,
    file: Path | None,
    neighbours: Any,
    explain: bool,
    as_json: bool,
) -> None:
    """Noisy counts of declared keys; pure privacy.

    Keys that nobody has are counted too: their noise hides that nobody has them.
    """
    from lastbit.cli import mechanism_explained as explained
    from lastbit.cli.mechanism_input import counts as counts_of
    from lastbit.mechanisms import Histogram
    from lastbit.privacy import Neighbours

    with option_names():
        noise = Histogram(
            keys=[key.strip() for key in keys.split(",")],
            keys_per_person=keys_per_person,
            epsilon=epsilon,
            neighbours=Neighbours(neighbours),
        )
        given = counts_of(counts, file)
        answers.show_answer(
            lambda: explained.histogram(noise),
            None if given is None else lambda: answers.table(noise.release(given)),
            explain=explain,
            as_json=as_json,
        )


@mechanism.command(
    epilog="Example: lastbit mechanism thresholded-histogram --keys-per-person 1 --epsilon 1 "
    "--delta 1e-9 --counts pizza=1000,escargots=1"
)
@keys_per_person_option
@epsilon_option
@click.option("--delta", type=EXACT, required=True, help="P[a key of one person alone is shown].")
@counts_option
@file_option
@neighbours_option
@explain_option
@json_option
def thresholded_histogram(
    keys_per_person: int,
    epsilon: Fraction,
    delta: Fraction,
    counts: str | None,
    file: Path | None,
    neighbours: Any,
    explain: bool,
    as_json: bool,
) -> None:
    """Noisy counts of the keys in the data, if many.

    Keys that few people have are left out; the guarantee is probabilistic.
    """
    from lastbit.cli import mechanism_explained as explained
    from lastbit.cli.mechanism_input import counts as counts_of
    from lastbit.mechanisms import ThresholdedHistogram
    from lastbit.privacy import Neighbours

    with option_names():
        noise = ThresholdedHistogram(
            keys_per_person=keys_per_person,
            epsilon=epsilon,
            delta=delta,
            neighbours=Neighbours(neighbours),
        )
        given = counts_of(counts, file)
        answers.show_answer(
            lambda: explained.thresholded_histogram(noise),
            None if given is None else lambda: answers.table(noise.release(given)),
            explain=explain,
            as_json=as_json,
        )


@mechanism.command(
    epilog="Example: lastbit mechanism above-threshold --sensitivity 1 --epsilon 1 "
    "--threshold 100 --values 3,250,4"
)
@sensitivity_option
@epsilon_option
@click.option("--threshold", type=EXACT, required=True, help="What values are compared with.")
@click.option("--values", metavar="NUMBERS", help='The true values, in their order: "1,5,9".')
@file_option
@click.option("--count", type=MANY, default=1, show_default=True, help="Stop after so many above.")
@monotone_option
@grid_option
@explain_option
@json_option
def above_threshold(
    sensitivity: Fraction,
    epsilon: Fraction,
    threshold: Fraction,
    values: str | None,
    file: Path | None,
    count: int,
    monotone: bool,
    grid: str | None,
    explain: bool,
    as_json: bool,
) -> None:
    """Which values exceed a threshold; pure privacy.

    The answers end with the first value that does, or with the last one that --count allows.
    """
    from lastbit.cli import mechanism_explained as explained
    from lastbit.cli.mechanism_input import candidates, number_on
    from lastbit.mechanisms import AboveThreshold

    with option_names():
        alarm = AboveThreshold(
            threshold=threshold,
            sensitivity=sensitivity,
            epsilon=epsilon,
            count=count,
            monotone=monotone,
            grid=grid,
        )
        given = candidates(values, file, "--values")
        exact = (
            None
            if given is None
            else [number_on(alarm.lattice, Fraction(v), "one of --values") for v in given.numbers]
        )
        answers.show_answer(
            lambda: explained.above_threshold(alarm, None if exact is None else len(exact)),
            None if exact is None else lambda: answers.above_or_below(alarm.release(exact)),
            explain=explain,
            as_json=as_json,
        )


# ---------------------------------------------------------------- what is refused


def _category(value: str, categories: int) -> bool | int:
    """The answer; no message repeats it."""
    word = value.strip().lower()
    if categories == 2 and word in ("yes", "no"):
        return word == "yes"
    if word.isascii() and word.isdigit() and len(word) <= 12 and int(word) < categories:
        return int(word)
    also = ", or yes or no" if categories == 2 else ""
    raise InvalidParameter(
        "--value",
        problem="is none of the categories",
        remedy=f"pass a whole number from 0 to {categories - 1}{also}",
    )


def _one_target(
    rho: Fraction | None,
    epsilon: Fraction | None,
    delta: Fraction | None,
    standard_deviation: Fraction | None,
) -> None:
    """Refuse two targets or none, and half a target."""
    pair = None if epsilon is None and delta is None else (epsilon, delta)
    if sum(target is not None for target in (rho, standard_deviation, pair)) != 1:
        raise InvalidParameter(
            "--rho",
            problem="or --standard-deviation, or --epsilon with --delta: exactly one is needed",
            remedy="pass one of them",
        )
    if pair is not None and (epsilon is None or delta is None):
        raise InvalidParameter(
            "--delta" if delta is None else "--epsilon",
            problem="is missing",
            remedy="pass --epsilon and --delta together",
        )
