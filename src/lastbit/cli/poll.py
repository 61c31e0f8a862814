"""`lastbit theory poll`: plan a poll of answers perturbed at their source, and read its result."""

from __future__ import annotations

from dataclasses import asdict
from fractions import Fraction
from typing import Literal

import click
import numpy as np

from lastbit.cli.options import Exact, group, json_option, option, refusal
from lastbit.cli.output import Facts, Heading, show, show_json, waiting
from lastbit.exact import exact_text, probability, rounded_down, rounded_near, rounded_up
from lastbit.mechanisms import Poll, PollResult
from lastbit.privacy import posterior_bounds

MOST_PEOPLE = 10_000_000
HALF_WIDTHS = "pass, say, 0.01 for one percentage point either way"

epsilon_option = option(
    "--epsilon", "The privacy loss of one answer: 1, 0.5, 1/3 ...", required=True
)
confidence_option = option(
    "--confidence", "How surely the interval is to hold the true share.", default="0.95"
)


@group("theory poll plan --epsilon 1 --half-width 0.01")
def poll() -> None:
    """Plan and read polls whose answers are perturbed.

    By randomized response: nobody's true answer is ever collected.
    """


@poll.command(example="plan --epsilon 1 --half-width 0.01")
@epsilon_option
@option(
    "--half-width",
    "How far off the share may be: 0.01 is 1 point.",
    Exact(ends=(Fraction(1, 10**9), Fraction(1, 2)), remedy=HALF_WIDTHS),
    required=True,
)
@confidence_option
@json_option
def plan(epsilon: Fraction, half_width: Fraction, confidence: Fraction, as_json: bool) -> None:
    """How many people to ask, and what each of them does."""
    survey = Poll(epsilon=epsilon)
    response = survey.response
    people = survey.sample_size(half_width, confidence=confidence)
    # a share p told truly widens the interval 1/p times, so this is the poll that tells all
    wider = half_width / response.truth_probability
    without = survey.sample_size(wider, confidence=confidence)
    if as_json:
        show_json(
            {
                "people": people,
                "people_without_privacy": without,
                "keep": str(response.keep),
                "truth_probability": str(response.truth_probability),
                "half_width": str(half_width),
                "confidence": str(confidence),
                "guarantee": survey.guarantee.to_dict(),
            }
        )
        return
    keep, truth = rounded_down(response.keep), rounded_down(response.truth_probability)
    price = f"{rounded_up(Fraction(people, without), 3)} times as many people"
    facts = (
        ("to know", f"a share within ±{exact_text(half_width)}, {_level(confidence)} sure"),
        ("people needed", f"{people:,}"),
        ("without privacy", f"{without:,}"),
        ("price", "none: as many people as without privacy" if people == without else price),
        ("keep", f"{keep}, the probability that an answer stays as it is"),
    )
    show(
        Heading(f"Poll with ε = {exact_text(epsilon)} for each answer", f"{people:,} people"),
        Facts(facts),
        f"What each respondent does: with probability {truth} they answer truthfully. Otherwise "
        f"they toss a fair coin: yes for heads, no for tails. So the true answer is "
        f"given with probability {keep}, and a yes may always have been the coin.",
        "What they are promised: an observer of the answer who believed 50 % before can believe "
        f"{_span(*posterior_bounds('1/2', survey.guarantee))} afterwards, and no more.",
        "The plan uses the normal interval for the worst share, 1/2. After the poll, lastbit "
        "theory poll estimate gives an exact interval, a little wider.",
    )


@poll.command(example="estimate --epsilon 1 --yes 530 --total 1000")
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
    result = survey.estimate(np.arange(total) < yes, confidence=confidence, method=method)
    if as_json:
        show_json({**asdict(result), "guarantee": survey.guarantee.to_dict()})
        return
    facts = (
        ("collected", f"{yes:,} yes of {total:,} perturbed answers ({_percent(yes, total)})"),
        ("estimate", _estimate(result, " of the true answers are yes")),
        *_interval(result, confidence, method),
    )
    title = f"Poll with ε = {exact_text(epsilon)} for each answer"
    show(Heading(title, _span(result.low, result.high)), Facts(facts))


@poll.command(example="simulate --epsilon 1 --people 1000 --share 0.3")
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
        answers = np.arange(people) < yes  # the first say yes
        responses = survey.collect(answers)
        said = int(responses.sum())
        changed = int((responses != answers).sum())
        result = survey.estimate(np.arange(people) < said, confidence=confidence)
    if as_json:
        made_up = {"yes": yes, "responses_yes": said, "changed": changed}
        show_json({**made_up, **asdict(result), "guarantee": survey.guarantee.to_dict()})
        return
    facts = (
        ("true answers", f"{yes:,} yes of {people:,} ({_percent(yes, people)}), made up"),
        ("perturbed", f"{changed:,} answers were changed; {said:,} now say yes"),
        ("estimate", _estimate(result)),
        *_interval(result, confidence, "exact"),
    )
    title = f"A made-up poll of {people:,} people, ε = {exact_text(epsilon)} each"
    show(Heading(title, _span(result.low, result.high)), Facts(facts))


def _interval(result: PollResult, confidence: Fraction, method: str) -> tuple[tuple[str, str], ...]:
    kind = "for every sample size" if method == "exact" else "in the limit of many answers"
    return (
        ("interval", f"{_span(result.low, result.high)}, {_level(confidence)} sure {kind}"),
        ("standard error", f"{rounded_up(100 * result.standard_error, 3)} points"),
    )


def _span(low: float, high: float) -> str:
    """Two ends in percent, neither of them inside the true interval."""
    first, last = (100 * Fraction(end) for end in (low, high))
    return f"{rounded_down(first, 4)} % to {rounded_up(last, 4)} %"


def _estimate(result: PollResult, words: str = "") -> str:
    outside = " (outside 0 to 100 %: it is unbiased, so chance may take it there)"
    inside = 0 <= result.mean <= 1
    return f"{rounded_near(100 * result.mean, 4)} %{words}{'' if inside else outside}"


def _percent(part: int, whole: int) -> str:
    return f"{rounded_near(Fraction(100 * part, whole), 4)} %"


def _level(confidence: Fraction) -> str:
    return f"{exact_text(100 * confidence)} %"
