"""`lastbit poll`: plan a poll whose answers are perturbed at their source, and read its result."""

from __future__ import annotations

from dataclasses import asdict
from fractions import Fraction
from typing import Literal

import click
import numpy as np

from lastbit.cli.options import Group, json_option, option, refusal
from lastbit.cli.output import Facts, Heading, Part, show, show_json, waiting
from lastbit.exact import exact_text, probability, rounded_down, rounded_up
from lastbit.mechanisms import Poll, PollResult
from lastbit.privacy import posterior_bounds

MOST_PEOPLE = 10_000_000
LEAST_WIDTH, MOST_WIDTH = Fraction(1, 10**9), Fraction(1, 2)

epsilon_option = option(
    "--epsilon", "The privacy loss of one answer: 1, 0.5, 1/3 ...", required=True
)
confidence_option = option(
    "--confidence", "How surely the interval is to hold the true share.", default="0.95"
)


@click.group(cls=Group, epilog="Example: lastbit poll plan --epsilon 1 --half-width 0.01")
def poll() -> None:
    """Plan and read polls whose answers are perturbed.

    By randomized response: nobody's true answer is ever collected.
    """


@poll.command(epilog="Example: lastbit poll plan --epsilon 1 --half-width 0.01")
@epsilon_option
@option("--half-width", "How far off the share may be: 0.01 is 1 point.", required=True)
@confidence_option
@json_option
def plan(epsilon: Fraction, half_width: Fraction, confidence: Fraction, as_json: bool) -> None:
    """How many people to ask, and what each of them does."""
    if not LEAST_WIDTH <= half_width <= MOST_WIDTH:
        raise refusal(
            "--half-width",
            "is not from 1e-9 to 1/2",
            "pass, say, 0.01 for one percentage point either way",
        )
    survey = Poll(epsilon=epsilon)
    people = survey.sample_size(half_width, confidence=confidence)
    # a share p told truly widens the interval 1/p times, so this is the poll that tells all
    wider = half_width / survey.response.truth_probability
    without = survey.sample_size(wider, confidence=confidence)
    if as_json:
        show_json(
            {
                "people": people,
                "people_without_privacy": without,
                "keep": str(survey.response.keep),
                "truth_probability": str(survey.response.truth_probability),
                "half_width": str(half_width),
                "confidence": str(confidence),
                "guarantee": survey.guarantee.to_dict(),
            }
        )
    else:
        show(*_plan_page(survey, half_width, confidence, people, without))


@poll.command(epilog="Example: lastbit poll estimate --epsilon 1 --yes 530 --total 1000")
@epsilon_option
@option("--yes", "How many answers say yes.", click.IntRange(0), required=True)
@option(
    "--total", "How many answers were collected.", click.IntRange(1, MOST_PEOPLE), required=True
)
@confidence_option
@option(
    "--method",
    "exact holds for every size; normal is narrower and holds in the limit.",
    ("exact", "normal"),
    default="exact",
)
@json_option
def estimate(
    epsilon: Fraction,
    yes: int,
    total: int,
    confidence: Fraction,
    method: Literal["exact", "normal"],
    as_json: bool,
) -> None:
    """The true share of yes, from perturbed answers.

    This costs no privacy: the answers were perturbed before.
    """
    if yes > total:
        raise refusal("--yes", "is above --total", "pass how many of all answers say yes")
    survey = Poll(epsilon=epsilon)
    result = survey.estimate(_answers(yes, total), confidence=confidence, method=method)
    if as_json:
        show_json({**asdict(result), "guarantee": survey.guarantee.to_dict()})
        return
    facts = (
        ("collected", f"{yes:,} yes of {total:,} perturbed answers ({_percent(yes / total)})"),
        ("estimate", f"{_percent(result.mean)} of the true answers are yes{_outside(result)}"),
        *_interval(result, confidence, method),
    )
    title = f"Poll with ε = {exact_text(epsilon)} for each answer"
    show(Heading(title, _span(result.low, result.high)), Facts(facts))


@poll.command(epilog="Example: lastbit poll simulate --epsilon 1 --people 1000 --share 0.3")
@epsilon_option
@option("--people", "How many.", click.IntRange(1, MOST_PEOPLE), required=True)
@option("--share", "The true share of yes, made up.", required=True)
@confidence_option
@json_option
def simulate(
    epsilon: Fraction, people: int, share: Fraction, confidence: Fraction, as_json: bool
) -> None:
    """Perturb made-up answers and see what a poll finds."""
    probability(share, "--share", remedy="pass, say, 0.3")
    with waiting("asking"):
        survey = Poll(epsilon=epsilon)
        yes = round(share * people)
        answers = _answers(yes, people)
        responses = survey.collect(answers)
        said = int(responses.sum())
        changed = int((responses != answers).sum())
        result = survey.estimate(_answers(said, people), confidence=confidence)
    if as_json:
        made_up = {"yes": yes, "responses_yes": said, "changed": changed}
        show_json({**made_up, **asdict(result), "guarantee": survey.guarantee.to_dict()})
        return
    facts = (
        ("true answers", f"{yes:,} yes of {people:,} ({_percent(yes / people)}), made up"),
        ("perturbed", f"{changed:,} answers were changed; {said:,} now say yes"),
        ("estimate", f"{_percent(result.mean)}{_outside(result)}"),
        *_interval(result, confidence, "exact"),
    )
    title = f"A made-up poll of {people:,} people, ε = {exact_text(epsilon)} each"
    show(Heading(title, _span(result.low, result.high)), Facts(facts))


def _answers(yes: int, total: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Answers of which the first are yes, and the rest no."""
    return np.arange(total) < yes


def _plan_page(
    survey: Poll, half_width: Fraction, confidence: Fraction, people: int, without: int
) -> tuple[Part, ...]:
    response = survey.response
    keep, truth = rounded_down(response.keep), rounded_down(response.truth_probability)
    times = rounded_up(Fraction(people, without), 3)
    price = "none: as many people as without privacy"
    facts = (
        ("to know", f"a share within ±{exact_text(half_width)}, {_level(confidence)} sure"),
        ("people needed", f"{people:,}"),
        ("without privacy", f"{without:,}"),
        ("price", price if people == without else f"{times} times as many people"),
        ("keep", f"{keep}, the probability that an answer stays as it is"),
    )
    words = (
        f"What each respondent does: with probability {truth} they answer truthfully; otherwise "
        "they toss a fair coin and answer yes for heads and no for tails. So the true answer is "
        f"given with probability {keep}, and a yes may always have been the coin.",
        "What they are promised: an observer of the answer who believed 50 % before can believe "
        f"{_span(*posterior_bounds('1/2', survey.guarantee))} afterwards, and no more.",
        "The plan uses the normal interval for the worst share, 1/2. After the poll, lastbit poll "
        "estimate gives an exact interval, a little wider.",
    )
    title = f"Poll with ε = {exact_text(response.epsilon)} for each answer"
    return Heading(title, f"{people:,} people"), Facts(facts), *(words)


def _interval(result: PollResult, confidence: Fraction, method: str) -> tuple[tuple[str, str], ...]:
    kind = "for every sample size" if method == "exact" else "in the limit of many answers"
    return (
        ("interval", f"{_span(result.low, result.high)}, {_level(confidence)} sure {kind}"),
        ("standard error", f"{100 * result.standard_error:.2f} points"),
    )


def _span(low: float, high: float) -> str:
    """Two ends in percent, neither of them inside the true interval."""
    first, last = (100 * Fraction(end) for end in (low, high))
    return f"{rounded_down(first, 4)} % to {rounded_up(last, 4)} %"


def _outside(result: PollResult) -> str:
    inside = 0 <= result.mean <= 1
    return "" if inside else " (outside 0 to 100 %: it is unbiased, so chance may take it there)"


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"


def _level(confidence: Fraction) -> str:
    return f"{exact_text(100 * confidence)} %"
