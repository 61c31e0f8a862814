"""`lastbit mechanism`: one release of one mechanism, or an explanation of it and no release.

The data are given on the command line or in a file; no message repeats them. An explanation is
made of public parameters alone: its probabilities are those of a true value that is called x, so it
may be published with the release.
"""

from __future__ import annotations

import csv
import io
import math
import re
import sys
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import wraps
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import click

from lastbit.cli.explaining import Explanation, brief, exact_or_up, pairs, place, ratios
from lastbit.cli.files import rows_of
from lastbit.cli.options import SECRET, command, flag, group, option, refusal, secret_number, title
from lastbit.cli.output import Columns, show, show_json, waiting
from lastbit.exact import Ball, certain, exact_text, rounded_up
from lastbit.laws import OnGrid
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

COUNT = re.compile(r"\s*\+?[0-9]{1,1000}\s*", re.ASCII)
HEADER = ("key", "count")
MANY = click.IntRange(1)

sensitivity_option = option(
    "--sensitivity", "How far one person can move the value.", required=True
)
epsilon_option = option("--epsilon", "The privacy loss: 1, 0.5, 1/3 ...", required=True)
value_option = option("--value", "The true value. Without it, nothing is drawn.", SECRET)
grid_option = option("--grid", 'A power of two, or "auto": for values that are not whole.', "STEP")
monotone_option = flag("--monotone", "One person moves all values the same way, as counts do.")
file_option = option(
    "--file",
    "The same from a file, one a line; - is standard input.",
    click.Path(path_type=Path, allow_dash=True),
)
keys_per_person_option = option(
    "--keys-per-person", "How many keys one person may have.", MANY, required=True
)
counts_option = option("--counts", 'The true counts: "a=3,b=10".', "KEY=COUNT,...")
neighbours_option = option(
    "--neighbours",
    "Whether one person is more or less, or another one.",
    ("add-remove", "change-one"),
    default="add-remove",
)


Released: TypeAlias = tuple[str, Any]
"""A release as lines of text, and as what JSON can hold."""
Run: TypeAlias = tuple[Any, Callable[[], Explanation], Any, Callable[[Any], Released]]
"""A mechanism, how it is explained, the data if there are any, and how they are released."""


def answered(command: Callable[..., Run]) -> Callable[..., None]:
    """The command with --explain and --json; its run is shown, without data only explained."""

    @flag("--explain", "Show law, theorem, noise, error and exact probabilities.")
    @flag("--json", "Print JSON, exact numbers.", dest="as_json")
    @wraps(command)
    def shown(explain: bool, as_json: bool, **said: Any) -> None:
        noise, explanation, given, release = command(**said)
        name = click.get_current_context().info_name or ""
        terminal = sys.stderr.isatty() and sys.stdout.isatty()
        with waiting("working it out"):
            words = explanation() if given is None or explain or as_json or terminal else None
            drawn = None if given is None else release(given)
        if as_json and words is not None:
            show_json(
                {
                    "mechanism": name,
                    "guarantee": noise.guarantee.to_dict(),
                    "accuracy": words.errors,
                    "release": None if drawn is None else drawn[1],
                }
            )
            return
        if words is not None and (explain or drawn is None):
            show(*words.page(name, noise.guarantee, drawn=drawn is not None))
            click.echo(nl=drawn is not None)
        if drawn is not None:
            click.echo(drawn[0])
        if words is not None and drawn is not None and not explain:
            click.secho(f"({title(noise.guarantee)}; {words.bars()[0][1]})", err=True, dim=True)

    return shown


@group("mechanism laplace --sensitivity 1 --epsilon 1/2 --value 42")
def mechanism() -> None:
    """Release one value with exact noise, or explain a mechanism.

    With data, a command prints the release and nothing else. Each run costs its guarantee once
    more: no ledger keeps count. Without data nothing is drawn, and the mechanism is explained.
    """


# ---------------------------------------------------------------- noise added to a number


@mechanism.command(example="laplace --sensitivity 1 --epsilon 1/2 --value 42 --explain")
@sensitivity_option
@epsilon_option
@value_option
@grid_option
@answered
def laplace(value: Fraction | None, **said: Any) -> Run:
    """A number with discrete Laplace noise; pure privacy."""
    return _noise_run(Laplace(**said), value)


@mechanism.command(example="gaussian --sensitivity 1 --rho 1/2 --value 42 --explain")
@sensitivity_option
@option("--rho", "For concentrated privacy of this rho.")
@option("--epsilon", "For approximate privacy, with --delta.")
@option("--delta", "For approximate privacy, with --epsilon.")
@option(
    "--method",
    "How epsilon and delta become noise; exact adds the least.",
    ("exact", "zcdp", "classical"),
)
@option("--standard-deviation", "The noise itself.")
@value_option
@grid_option
@answered
def gaussian(value: Fraction | None, **said: Any) -> Run:
    """A number with discrete Gaussian noise; zCDP.

    Pass one of --rho, --standard-deviation, or --epsilon with --delta. The guarantee is
    concentrated, or for the last approximate.
    """
    pair = [name for name in ("epsilon", "delta") if said[name] is not None]
    if bool(pair) + (said["rho"] is not None) + (said["standard_deviation"] is not None) != 1:
        problem = "or --standard-deviation, or --epsilon with --delta: exactly one is needed"
        raise refusal("--rho", problem, "pass one of them")
    if len(pair) == 1:
        missing = "--delta" if pair == ["epsilon"] else "--epsilon"
        raise refusal(missing, "is missing", "pass --epsilon and --delta together")
    with waiting("calibrating"):
        noise = Gaussian(**said)
    return _noise_run(noise, value)


def _noise_run(noise: Laplace | Gaussian, value: Fraction | None) -> Run:
    def release(exact: int | float) -> Released:
        found = noise.release(exact)
        finite = isinstance(found, int) or math.isfinite(found)
        return str(found), found if finite else str(found)  # JSON knows no infinity

    exact = None if value is None else number_on(noise.lattice, value, "--value")
    return noise, lambda: explained_noise(noise), exact, release


def explained_noise(noise: Laplace | Gaussian) -> Explanation:
    """Discrete Laplace or Gaussian noise, on the whole numbers or on a grid."""
    step, rounds, law = noise.lattice.step, noise.lattice.rounds, noise.law(0)
    facts = [("sensitivity", exact_text(noise.sensitivity))]
    if isinstance(noise, Laplace):
        moved = math.floor(noise.lattice.l1_steps(noise.sensitivity))
        words = "x + X, P[X = k] proportional to exp(-|k|/scale)"
        theorem = "inputs at most s apart cost ε = s/scale, exactly"
        source = "Dwork, McSherry, Nissim, Smith 2006; Ghosh et al. 2009"
        facts.append(("noise scale", exact_or_up(noise.scale)))
    else:
        moved = math.floor(noise.lattice.l2_steps(noise.sensitivity))
        words = "x + X, P[X = k] proportional to exp(-k²/(2 variance))"
        theorem = "inputs at most s apart are (s²/(2 variance))-zCDP, exactly"
        source = "Canonne, Kamath, Steinke 2020, Theorems 7 and 14"
        facts.append(("deviation", f"{rounded_up(noise.standard_deviation_upper)}, rounded up"))
        facts += [("method", noise.method)] if noise.method else []
        facts.append(("as zCDP", f"ρ = {brief(noise.guarantee_at(noise.sensitivity).rho)}"))
        if noise.target is None:
            curve = f"{rounded_up(noise.epsilon('1e-9'))}, by the exact curve"
            facts.append(("ε at δ = 1e-9", curve))
    if rounds:
        facts.append(("grid", f"{exact_text(step)}; the rounding to it is counted"))
    apart = "as far as one person can move it" + (", rounding included" if rounds else "")

    def chance(k: int) -> Ball:
        return law.probability(k * step) if isinstance(law, OnGrid) else law.probability(k)

    return Explanation(
        law=words + (", k in steps of the grid" if rounds else ", k a whole number"),
        theorem=theorem,
        source=source,
        facts=tuple(facts),
        accuracy=noise.accuracy,
        error_words="{level} % of the releases are off by at most {bound}",
        caption=f"The true value x, and another one y = x + s, {apart}:",
        table=pairs(chance, moved, step),
    )


def number_on(lattice: Lattice, number: Fraction | int, name: str) -> int | float:
    """A number in the form that the lattice takes: moved to its grid exactly, rounded only once.

    A float that is first rounded to 53 bits and then to the grid would be rounded twice, and two
    neighbours might end one step further apart than the proof allows.
    """
    if not lattice.rounds:
        if number.denominator == 1:
            return number.numerator
        remedy = "pass --grid auto for numbers with a fractional part"
        raise refusal(name, "is not a whole number", remedy)
    snapped = round(Fraction(number) / lattice.step) * lattice.step
    if snapped.denominator == 1:
        return snapped.numerator
    try:
        nearest = snapped.numerator / snapped.denominator
    except OverflowError:
        nearest = 0.0
    if Fraction(nearest) != snapped:
        problem = "has more digits than a float holds at this grid"
        raise refusal(name, problem, "pass a coarser --grid, a power of two such as 1/1024")
    return nearest


# ---------------------------------------------------------------- a person's own answer


@mechanism.command(example="randomized-response --epsilon 1 --value yes")
@epsilon_option
@option("--categories", "How many answers there are.", MANY, default=2)
@option("--value", "The true answer: 0, 1, ..., or yes and no if there are two.", str)
@answered
def randomized_response(epsilon: Fraction, categories: int, value: str | None) -> Run:
    """One person's own answer, perturbed; pure privacy."""
    survey = RandomizedResponse(epsilon=epsilon, categories=categories)

    def release(answer: bool | int) -> Released:
        found = survey.release(answer)
        yes_or_no = "yes" if found else "no"
        return yes_or_no if isinstance(found, bool) else str(found), found

    answer = None if value is None else _category(value, categories)
    return survey, lambda: _explained_response(survey), answer, release


def _category(value: str, categories: int) -> bool | int:
    word = value.strip().lower()
    if categories == 2 and word in ("yes", "no"):
        return word == "yes"
    if word.isascii() and word.isdigit() and len(word) <= 12 and int(word) < categories:
        return int(word)
    also = ", or yes or no" if categories == 2 else ""
    remedy = f"pass a whole number from 0 to {categories - 1}{also}"
    raise refusal("--value", "is none of the categories", remedy)


def _explained_response(survey: RandomizedResponse) -> Explanation:
    count = survey.categories
    same, rest = Ball.of(survey.keep), Ball.of((1 - survey.keep) / (count - 1))
    rows = [("0", same, rest), ("1", rest, same)]
    if count > 2:
        rows.append(("any other", rest, rest))
    truth = certain(Ball.of(survey.truth_probability))
    return Explanation(
        law="the answer itself with probability keep, else any other, all alike",
        theorem="the likelihood ratio is keep (k-1)/(1-keep) ≤ e^ε for k categories",
        source="Warner 1965; paper 003, section 2.3",
        facts=(
            ("categories", f"{count:,}"),
            ("keep", f"{certain(same, 12)}, a fraction rounded down, never up"),
            ("the same as", f"the truth with probability {truth}, else any category by lot"),
        ),
        accuracy=lambda beta: survey.accuracy(beta, answers=100),
        error_words="of 100 answers at most {bound} are changed, in {level} % of the polls",
        caption="Two people, whose answers are 0 and 1:",
        table=ratios(("output", "P if the answer is 0", "P if it is 1"), rows),
    )


# ---------------------------------------------------------------- a candidate

Selection: TypeAlias = Exponential | PermuteAndFlip | ReportNoisyMax
# the class, the help, the law and its source
SELECTIONS: Mapping[str, tuple[Any, str, str, str]] = MappingProxyType(
    {
        "exponential": (
            Exponential,
            "The index or name of a good candidate.",
            "P[i] proportional to exp(rate u_i)",
            "McSherry, Talwar 2007",
        ),
        "permute-and-flip": (
            PermuteAndFlip,
            "The same, and never worse than exponential.",
            "in a random order, the first i whose coin exp(rate (u_i - max u)) falls heads",
            "McKenna, Sheldon 2020",
        ),
        "report-noisy-max": (
            ReportNoisyMax,
            "The same, by adding noise to every utility.",
            "the i with the greatest u_i + G_i, G_i geometric of the scale; ties to the first",
            "Dwork, Roth 2014, section 3.3; Ding et al. 2021",
        ),
    }
)


def _selection(kind: str) -> click.Command:
    """The command of a mechanism that picks a candidate: the three differ in their law alone."""
    example = f"mechanism {kind} --sensitivity 1 --epsilon 1 --utilities 3,5,4"

    @command(example, name=kind, help=SELECTIONS[kind][1])
    @sensitivity_option
    @epsilon_option
    @option("--utilities", 'How good each is: "3,5,4" or "red=3,blue=5".', "NUMBERS")
    @file_option
    @monotone_option
    @answered
    def selection(utilities: str | None, file: Path | None, **said: Any) -> Run:
        pick = SELECTIONS[kind][0](**said)
        numbers, names = _numbers(utilities, file, "--utilities")

        def release(given: list[int | Fraction]) -> Released:
            index = pick.release(given)
            name = index if names is None else names[index]
            return str(name), name

        count = None if numbers is None else len(numbers)
        return pick, lambda: _explained_selection(kind, pick, count), numbers, release

    if kind == "report-noisy-max":
        grid_option(selection)
    return selection


for _kind in SELECTIONS:
    mechanism.add_command(_selection(_kind))


def _explained_selection(kind: str, pick: Selection, count: int | None) -> Explanation:
    moves, unit = 1 if pick.monotone else 2, pick.sensitivity
    if isinstance(pick, ReportNoisyMax):
        strength, price = ("noise scale", exact_or_up(pick.scale)), "/scale"
        step = pick.lattice.step  # its utilities lie on a lattice
        unit = max(math.floor(unit / step), 1) * step
    else:
        strength, price = ("rate", exact_text(pick.rate)), " × rate"

    def picked(lead: int) -> Ball:
        return pick.law([Fraction(0), lead * unit]).probability(1)

    number = 100 if count is None else count
    rows = [(brief(k * unit), picked(k), picked(k - moves)) for k in (0, 1, 2, 4, 8)]
    return Explanation(
        law=SELECTIONS[kind][2],
        theorem=f"utilities that move by at most s cost ε = {'s' if moves == 1 else '2s'}{price}"
        + (", as all move one way" if pick.monotone else ""),
        source=SELECTIONS[kind][3],
        facts=(
            ("sensitivity", exact_text(pick.sensitivity)),
            strength,
            ("candidates", f"{number:,}" + (", say" if count is None else "")),
        ),
        accuracy=lambda beta: pick.accuracy(beta, candidates=number),
        error_words="in {level} % of the releases the pick is at most {bound} below the best",
        caption="The better of two candidates, and the same with one person against it:",
        table=ratios(("leads by", "P[it is picked]", "P with one against"), rows),
    )


# ---------------------------------------------------------------- counts of keys


@mechanism.command(
    example="histogram --keys yes,no --keys-per-person 1 --epsilon 1 --counts yes=17,no=41"
)
@option("--keys", "All keys, declared beforehand.", "KEY,...", required=True)
@keys_per_person_option
@epsilon_option
@counts_option
@file_option
@neighbours_option
@answered
def histogram(
    keys: str, counts: str | None, file: Path | None, neighbours: Any, **said: Any
) -> Run:
    """Noisy counts of declared keys; pure privacy.

    Keys that nobody has are counted too: their noise hides that nobody has them.
    """
    declared = [key.strip() for key in keys.split(",")]
    noise = Histogram(keys=declared, neighbours=Neighbours(neighbours), **said)

    def explanation() -> Explanation:
        number = len(noise.keys)
        return Explanation(
            law="each declared key's count + X, P[X = k] proportional to exp(-|k|/scale)",
            theorem="a person moves the counts by at most s together: ε = s/scale, exactly",
            source="Dwork, McSherry, Nissim, Smith 2006",
            facts=(
                ("keys", f"{number} declared, {noise.keys_per_person} a person"),
                ("sensitivity", exact_text(Fraction(noise.sensitivity))),
                ("noise scale", exact_or_up(noise.scale)),
            ),
            accuracy=lambda beta: noise.accuracy(beta, keys=number),
            error_words="in {level} % of the releases no key is off by more than {bound}",
            caption="One key that x people have, and the same with one person more:",
            table=pairs(noise.law(0).probability, noise.per_key, Fraction(1)),
        )

    return noise, explanation, _counts(counts, file), lambda x: _table(noise.release(x))


@mechanism.command(
    example="thresholded-histogram --keys-per-person 1 --epsilon 1 --delta 1e-9 "
    "--counts pizza=1000,escargots=1"
)
@keys_per_person_option
@epsilon_option
@option("--delta", "P[a key of one person alone is shown].", required=True)
@counts_option
@file_option
@neighbours_option
@answered
def thresholded_histogram(
    counts: str | None, file: Path | None, neighbours: Any, **said: Any
) -> Run:
    """Noisy counts of the keys in the data, if many.

    Keys that few people have are left out; the guarantee is probabilistic.
    """
    noise = ThresholdedHistogram(neighbours=Neighbours(neighbours), **said)

    def explanation() -> Explanation:
        bar = noise.threshold
        near = sorted({1, 2, bar // 2, bar - 1, bar, bar + 1, 2 * bar} - {0})
        laws = ((count, noise.law(count)) for count in near)
        rows = [(f"{n:,}", certain(law.released), certain(law.suppressed)) for n, law in laws]
        return Explanation(
            law="a key with n ≥ 1 people gets n + X and is shown iff that reaches the threshold",
            theorem="keys that one person alone has are shown with probability δ at most",
            source="Korolova et al. 2009; paper 003, section 3",
            facts=(
                ("keys a person", str(noise.keys_per_person)),
                ("noise scale", exact_or_up(noise.scale)),
                ("threshold", f"{bar:,}, the least for this δ"),
                ("exact δ", f"{rounded_up(noise.delta)}, rounded up"),
            ),
            accuracy=noise.accuracy,
            error_words="the noise of a key is at most {bound} in {level} % of the releases",
            caption="What becomes of a key that this many people have:",
            table=Columns(("people", "P[it is shown]", "P[it is not]"), rows, numbers=(0, 1, 2)),
        )

    return noise, explanation, _counts(counts, file), lambda x: _table(noise.release(x))


def _table(counts: dict[str, int]) -> Released:
    """Counts as CSV, which `--file` reads again."""
    lines = io.StringIO()
    csv.writer(lines, lineterminator="\n").writerows([HEADER, *counts.items()])
    return lines.getvalue().rstrip("\n"), counts


# ---------------------------------------------------------------- a threshold


@mechanism.command(
    example="above-threshold --sensitivity 1 --epsilon 1 --threshold 100 --values 3,250,4"
)
@sensitivity_option
@epsilon_option
@option("--threshold", "What values are compared with.", required=True)
@option("--values", 'The true values, in their order: "1,5,9".', "NUMBERS")
@file_option
@option("--count", "Stop after this many above.", MANY, default=1)
@monotone_option
@grid_option
@answered
def above_threshold(values: str | None, file: Path | None, **said: Any) -> Run:
    """Which values exceed a threshold; pure privacy.

    The answers end with the first value that does, or with the last one that --count allows.
    """
    alarm = AboveThreshold(**said)
    numbers, _ = _numbers(values, file, "--values")
    exact = None
    if numbers is not None:
        exact = [number_on(alarm.lattice, number, "one of --values") for number in numbers]

    def release(given: list[int | float]) -> Released:
        above = alarm.release(given)
        return "\n".join("above" if answer else "below" for answer in above), above

    return alarm, lambda: _explained_alarm(alarm, len(exact or ())), exact, release


def _explained_alarm(alarm: AboveThreshold, queries: int) -> Explanation:
    number = queries or 100
    table = None
    if not alarm.lattice.rounds and alarm.threshold_scale <= 200:  # else the sum over R is long
        moved, bar = math.floor(alarm.sensitivity), math.ceil(alarm.threshold)
        reach = max(math.ceil(alarm.threshold_scale + alarm.query_scale), 1)

        def above(value: int) -> Ball:
            return alarm.law([bar + value], precision=64)[(True,)]

        near = (-2 * reach, -reach, 0, reach, 2 * reach)
        rows = [(place(Fraction(k), "t"), above(k), above(k + moved)) for k in near]
        table = ratios(("value", "P[above]", "P with one more"), rows, inverted=True)
    return Explanation(
        law="answer i is above iff v_i + N_i ≥ threshold + R: one R for all, a new N_i for each",
        theorem="all answers together cost ε; only "
        f"those above count, and they are at most {alarm.count}",
        source="Lyu, Su, Li 2017; Dwork, Roth 2014, section 3.6",
        facts=(
            ("sensitivity", exact_text(alarm.sensitivity)),
            ("threshold", exact_text(alarm.threshold)),
            ("scale of R", exact_or_up(alarm.threshold_scale)),
            ("scale of N", exact_or_up(alarm.query_scale)),
            ("queries", f"{number:,}" + ("" if queries else ", say")),
        ),
        accuracy=lambda beta: alarm.accuracy(beta, queries=number),
        error_words="in {level} % of the runs every answer is right up to {bound}",
        caption="One query, as its value lies to the threshold t, and one person more:",
        table=table,
    )


# ---------------------------------------------------------------- data that no message repeats


def _numbers(
    text: str | None, file: Path | None, name: str
) -> tuple[list[int | Fraction] | None, list[str] | None]:
    """The numbers given by an option or a file, and their names where they have some."""
    rows = _rows(text, file, name)
    if rows is None:
        return None, None
    numbers = (secret_number(row[-1], where) for where, row in rows)
    whole = [n.numerator if n.denominator == 1 else n for n in numbers]
    return whole, [row[0].strip() for _, row in rows] if len(rows[0][1]) == 2 else None


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
            problem = "has a count that is not a whole number from 0 up"
            raise refusal(where, problem, 'write a key and its count, "a=3,b=10" or a line a,3')
        if key.strip() in found:
            raise refusal(where, "has a key for the second time", "add up its counts first")
        found[key.strip()] = int(count)
    return found


def _rows(
    text: str | None, file: Path | None, name: str, widths: tuple[int, ...] = (1, 2)
) -> list[tuple[str, list[str]]] | None:
    """What was given, with words for where it stood."""
    if text is not None and file is not None:
        raise refusal(f"{name} and --file", "are both given", "pass one of the two")
    if file is not None:
        return [(f"line {number} of --file", row) for number, row in rows_of(file, widths)]
    if text is None:
        return None
    items = enumerate(text.split(","), start=1)
    rows = [(f"item {number} of {name}", item.rsplit("=", 1)) for number, item in items]
    for where, row in rows:
        if len(row) not in widths or len(row) != len(rows[0][1]):
            remedy = '"a=3,b=10"' if widths == (2,) else '"3,5,4" or "a=3,b=5,c=4"'
            raise refusal(where, "is not like the rest", f"write {remedy}")
    return rows
