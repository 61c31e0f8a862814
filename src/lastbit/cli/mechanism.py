"""`lastbit mechanism`: one release of one mechanism, or an explanation of it and no release.

The data are given on the command line or in a file; no message repeats them.
"""

from __future__ import annotations

import csv
import io
import math
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import wraps
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import click

from lastbit.cli import mechanism_explained as explained
from lastbit.cli.files import rows_of
from lastbit.cli.options import EXACT, SECRET, Command, Group, secret_number
from lastbit.cli.output import show, show_json, waiting
from lastbit.errors import InvalidParameter
from lastbit.mechanisms import (
    AboveThreshold,
    Exponential,
    Gaussian,
    Histogram,
    Laplace,
    Lattice,
    PermuteAndFlip,
    RandomizedResponse,
    ReportNoisyMax,
    ThresholdedHistogram,
)
from lastbit.privacy import Neighbours

Released: TypeAlias = tuple[str, Any]
"""A release as lines of text, and as what JSON can hold."""
Run: TypeAlias = tuple[Callable[[], explained.Explanation], Any, Callable[[Any], Released]]
"""How a mechanism is explained, the data if there are any, and how they are released."""
COUNT = re.compile(r"\s*\+?[0-9]{1,1000}\s*", re.ASCII)
HEADER = ("key", "count")
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


def answered(command: Callable[..., Run]) -> Callable[..., None]:
    """The command with --explain and --json, and with its run shown."""

    @click.option(
        "--explain", is_flag=True, help="Show law, theorem, noise, error and exact probabilities."
    )
    @click.option("--json", "as_json", is_flag=True, help="Print JSON, exact numbers.")
    @wraps(command)
    def shown(explain: bool, as_json: bool, **said: Any) -> None:
        _show(*command(**said), explain=explain, as_json=as_json)

    return shown


@click.group(
    cls=Group,
    epilog="Example: lastbit mechanism laplace --sensitivity 1 --epsilon 1/2 --value 42",
)
def mechanism() -> None:
    """Release one value with exact noise, or explain a mechanism.

    With data a command prints the release and nothing else, and each run costs its guarantee once
    more: no ledger keeps count. Without data nothing is drawn, and the mechanism is explained.
    """


@mechanism.command(
    epilog="Example: lastbit mechanism laplace --sensitivity 1 --epsilon 1/2 --value 42 --explain"
)
@sensitivity_option
@epsilon_option
@value_option
@grid_option
@answered
def laplace(value: Fraction | None, **said: Any) -> Run:
    """A number with discrete Laplace noise; pure privacy."""
    noise = Laplace(**said)
    exact = None if value is None else number_on(noise.lattice, value, "--value")
    return (lambda: explained.laplace(noise), exact, lambda x: _number(noise.release(x)))


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
@answered
def gaussian(value: Fraction | None, **said: Any) -> Run:
    """A number with discrete Gaussian noise; zCDP.

    Pass one of --rho, --standard-deviation, or --epsilon with --delta. The guarantee is
    concentrated, or for the last approximate.
    """
    _check_one_target(said)
    with waiting("calibrating"):
        noise = Gaussian(**said)
    exact = None if value is None else number_on(noise.lattice, value, "--value")
    return (lambda: explained.gaussian(noise), exact, lambda x: _number(noise.release(x)))


@mechanism.command(epilog="Example: lastbit mechanism randomized-response --epsilon 1 --value yes")
@epsilon_option
@click.option(
    "--categories", type=MANY, default=2, show_default=True, help="How many answers there are."
)
@click.option("--value", help="The true answer: 0, 1, ..., or yes and no if there are two.")
@answered
def randomized_response(epsilon: Fraction, categories: int, value: str | None) -> Run:
    """One person's own answer, perturbed; pure privacy."""
    survey = RandomizedResponse(epsilon=epsilon, categories=categories)
    answer = None if value is None else _category(value, categories)
    return (
        lambda: explained.randomized_response(survey),
        answer,
        lambda x: _yes_or_no(survey.release(x)),
    )


SELECTIONS: Mapping[str, tuple[Any, str]] = MappingProxyType(
    {
        "exponential": (Exponential, "The index or name of a good candidate."),
        "permute-and-flip": (PermuteAndFlip, "The same, and never worse than exponential."),
        "report-noisy-max": (ReportNoisyMax, "The same, by adding noise to every utility."),
    }
)


def _selection(kind: str) -> click.Command:
    """The command of a mechanism that picks a candidate: the three differ in their law alone."""
    selection, words = SELECTIONS[kind]

    @click.command(
        kind,
        cls=Command,
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
    @answered
    def command(utilities: str | None, file: Path | None, **said: Any) -> Run:
        pick = selection(**said)
        given = _candidates(utilities, file, "--utilities")
        count = None if given is None else len(given.numbers)
        return (
            lambda: explained.selection(kind, pick, count),
            given,
            lambda x: _picked(pick.release(list(x.numbers)), x),
        )

    return grid_option(command) if selection is ReportNoisyMax else command


for _kind in SELECTIONS:
    mechanism.add_command(_selection(_kind))


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
@answered
def histogram(
    keys: str,
    counts: str | None,
    file: Path | None,
    neighbours: Any,
    **said: Any,
) -> Run:
    """Noisy counts of declared keys; pure privacy.

    Keys that nobody has are counted too: their noise hides that nobody has them.
    """
    declared = [key.strip() for key in keys.split(",")]
    noise = Histogram(keys=declared, neighbours=Neighbours(neighbours), **said)
    return (
        lambda: explained.histogram(noise),
        _counts(counts, file),
        lambda x: _table(noise.release(x)),
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
@answered
def thresholded_histogram(
    counts: str | None,
    file: Path | None,
    neighbours: Any,
    **said: Any,
) -> Run:
    """Noisy counts of the keys in the data, if many.

    Keys that few people have are left out; the guarantee is probabilistic.
    """
    noise = ThresholdedHistogram(neighbours=Neighbours(neighbours), **said)
    return (
        lambda: explained.thresholded_histogram(noise),
        _counts(counts, file),
        lambda x: _table(noise.release(x)),
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
@click.option(
    "--count", type=MANY, default=1, show_default=True, help="Stop after this many above."
)
@monotone_option
@grid_option
@answered
def above_threshold(values: str | None, file: Path | None, **said: Any) -> Run:
    """Which values exceed a threshold; pure privacy.

    The answers end with the first value that does, or with the last one that --count allows.
    """
    alarm = AboveThreshold(**said)
    given = _candidates(values, file, "--values")
    exact: list[int | float] | None = None
    if given is not None:
        exact = [number_on(alarm.lattice, v, "one of --values") for v in given.numbers]
    count = None if exact is None else len(exact)
    return (
        lambda: explained.above_threshold(alarm, count),
        exact,
        lambda x: _above_or_below(alarm.release(x)),
    )


# ---------------------------------------------------------------- data that no message repeats


@dataclass(frozen=True, slots=True)
class Candidates:
    """One number a candidate, and their names where they have some."""

    numbers: tuple[int | Fraction, ...]
    names: tuple[str, ...] | None


def _candidates(text: str | None, file: Path | None, option: str) -> Candidates | None:
    """The numbers given by an option or a file; None if neither was given."""
    rows = _rows(text, file, option)
    if rows is None:
        return None
    numbers = (secret_number(row[-1], where) for where, row in rows)
    whole = tuple(n.numerator if n.denominator == 1 else n for n in numbers)
    is_named = len(rows[0][1]) == 2
    return Candidates(whole, tuple(row[0].strip() for _, row in rows) if is_named else None)


def _counts(text: str | None, file: Path | None) -> dict[str, int] | None:
    """Counts by key, given by an option or a file; None if neither was given."""
    rows = _rows(text, file, "--counts", widths=(2,))
    if rows is None:
        return None
    if file is not None and tuple(cell.strip().lower() for cell in rows[0][1]) == HEADER:
        rows = rows[1:]
    found: dict[str, int] = {}
    for where, (key, count) in rows:
        if not COUNT.fullmatch(count):
            raise InvalidParameter(
                where,
                problem="has a count that is not a whole number from 0 up",
                remedy='write a key and its count, "a=3,b=10" or a line a,3',
            )
        if key.strip() in found:
            raise InvalidParameter(
                where, problem="has a key for the second time", remedy="add up its counts first"
            )
        found[key.strip()] = int(count)
    return found


def _rows(
    text: str | None, file: Path | None, option: str, widths: tuple[int, ...] = (1, 2)
) -> list[tuple[str, list[str]]] | None:
    """What was given, with words for where it stood."""
    if text is not None and file is not None:
        raise InvalidParameter(
            f"{option} and --file", problem="are both given", remedy="pass one of the two"
        )
    if file is not None:
        return [(f"line {number} of --file", row) for number, row in rows_of(file, widths)]
    if text is None:
        return None
    rows = [
        (f"item {number} of {option}", item.rsplit("=", 1))
        for number, item in enumerate(text.split(","), start=1)
    ]
    for where, row in rows:
        if len(row) not in widths or len(row) != len(rows[0][1]):
            remedy = '"a=3,b=10"' if widths == (2,) else '"3,5,4" or "a=3,b=5,c=4"'
            raise InvalidParameter(where, problem="is not like the rest", remedy=f"write {remedy}")
    return rows


def number_on(lattice: Lattice, number: Fraction | int, option: str) -> int | float:
    """A number in the form that the lattice takes: moved to its grid exactly, rounded only once.

    A float that is first rounded to 53 bits and then to the grid would be rounded twice, and two
    neighbours might end one step further apart than the proof allows.
    """
    if not lattice.rounds:
        if number.denominator == 1:
            return number.numerator
        raise InvalidParameter(
            option,
            problem="is not a whole number",
            remedy="pass --grid auto for numbers with a fractional part",
        )
    snapped = round(Fraction(number) / lattice.step) * lattice.step
    if snapped.denominator == 1:
        return snapped.numerator
    try:
        nearest = snapped.numerator / snapped.denominator
    except OverflowError:
        nearest = 0.0
    if Fraction(nearest) != snapped:
        raise InvalidParameter(
            option,
            problem="has more digits than a float holds at this grid",
            remedy="pass a coarser --grid, a power of two such as 1/1024",
        )
    return nearest


def _category(value: str, categories: int) -> bool | int:
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


def _check_one_target(said: Mapping[str, Any]) -> None:
    """Refuse two targets or none, and half a target."""
    epsilon, delta = said["epsilon"], said["delta"]
    pair = epsilon is not None or delta is not None
    if pair + (said["rho"] is not None) + (said["standard_deviation"] is not None) != 1:
        raise InvalidParameter(
            "--rho",
            problem="or --standard-deviation, or --epsilon with --delta: exactly one is needed",
            remedy="pass one of them",
        )
    if pair and (epsilon is None or delta is None):
        raise InvalidParameter(
            "--delta" if delta is None else "--epsilon",
            problem="is missing",
            remedy="pass --epsilon and --delta together",
        )


# ---------------------------------------------------------------- releases as text and as JSON


def _show(
    explanation: Callable[[], explained.Explanation],
    given: Any,
    release: Callable[[Any], Released],
    *,
    explain: bool,
    as_json: bool,
) -> None:
    """The release, the explanation, or both; without data there is no release."""
    terminal = sys.stderr.isatty() and sys.stdout.isatty()
    with waiting("working it out"):
        words = explanation() if given is None or explain or as_json or terminal else None
        drawn = None if given is None else release(given)
    if as_json and words is not None:
        show_json(
            {
                "mechanism": words.name,
                "guarantee": words.guarantee.to_dict(),
                "accuracy": dict(words.errors),
                "release": None if drawn is None else drawn[1],
            }
        )
        return
    if words is not None and (explain or drawn is None):
        show(*words.page(drawn=drawn is not None))
        click.echo(nl=drawn is not None)
    if drawn is not None:
        click.echo(drawn[0])
    if words is not None and drawn is not None and not explain:
        click.secho(f"({words.summary})", err=True, dim=True)


def _number(value: int | float) -> Released:
    """A number as it was released; JSON knows no infinity."""
    finite = isinstance(value, int) or math.isfinite(value)
    return str(value), value if finite else str(value)


def _yes_or_no(answer: bool | int) -> Released:
    """An answer in the words in which it was given."""
    if isinstance(answer, bool):
        return "yes" if answer else "no", answer
    return str(answer), answer


def _picked(index: int, given: Candidates) -> Released:
    """The name of the candidate, or its index counted from 0."""
    name = index if given.names is None else given.names[index]
    return str(name), name


def _table(counts: dict[str, int]) -> Released:
    """Counts as CSV, which `--file` reads again."""
    lines = io.StringIO()
    csv.writer(lines, lineterminator="\n").writerows([HEADER, *counts.items()])
    return lines.getvalue().rstrip("\n"), counts


def _above_or_below(above: list[bool]) -> Released:
    """One word a line."""
    return "\n".join("above" if answer else "below" for answer in above), above
