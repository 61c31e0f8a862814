"""What `lastbit audit` found, in words: for the terminal, for programs and for the page."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from lastbit.audit import Condition, Event, RangeEvent
from lastbit.exact import exact_text, rounded_down, rounded_up
from lastbit.report import AuditStory

if TYPE_CHECKING:
    from lastbit.audit import AuditResult

HARDLY = Fraction(1, 10**9)

LIMIT = "Sampling cannot see what hardly ever happens: a leak of probability 1e-9."
NOT_A_PROOF = "Nothing found is no proof: other inputs, other events or more runs may show more."
ONLY_THESE = "Only these inputs were compared; about other neighbours this says nothing."
NEIGHBOURS = "That the two inputs are neighbours is taken from whoever ran the audit."
BY_LAW = "The verdict rests on {}."
FALSE_LAW = (
    "The law that it states is not that of its releases: {}. So the verdict rests on samples. "
    "Correct the law, or release by it."
)
LONGER = "The estimate is ε = {}, above the claim, and not proved: pass more --seconds."
PROBED = " by samples; monotone only probed"
INDEPENDENT = "Runs of the mechanism are taken to be independent of one another."


def story_of(name: str, result: AuditResult, command: str) -> AuditStory:
    """The audit as headline, sentences, facts, limits and a command."""
    return AuditStory(
        title=f"Audit of {name}",
        verdict=_verdict(result),
        refuted=result.broken or result.contradiction is not None,
        sentences=_sentences(result),
        facts=tuple(_facts(result)),
        limits=_limits(result),
        again=(command, f"lastbit.audit.{result.again}"),
        note="The mechanism draws its own randomness, so its counts will differ a little."
        if not result.exact
        else "",
    )


def values_of(story: AuditStory, result: AuditResult, command: str) -> dict[str, Any]:
    """The same for programs."""
    return {
        "title": story.title,
        "verdict": _word(result),
        **result.to_dict(),
        "command": command,
        "limits": list(story.limits),
    }


def _word(result: AuditResult) -> str:
    if result.broken:
        return "refuted"
    return "nothing found" if result.contradiction is None else "false law"


def _verdict(result: AuditResult) -> str:
    if not result.broken:
        if result.contradiction is not None:
            return "the law is not that of release"
        return "nothing found" + (PROBED if result.monotone == "probed" else "")
    if result.epsilon is not None and result.epsilon_lower > result.epsilon:
        return f"refuted: ε ≥ {_epsilon(result)}"
    return f"refuted: δ ≥ {_delta(result)}"


def _sentences(result: AuditResult) -> tuple[str, ...]:
    claim = _claim(result)
    how = (
        "worked out from its exact laws"
        if result.exact
        else f"certified, and wrong with probability at most {exact_text(result.error)}"
    )
    more = _more(result)
    if not result.broken:
        return (
            f"No event was found that refutes {claim}. On these inputs the loss is at least "
            f"ε = {_epsilon(result)} ({how}).",
            *more,
        )
    if result.epsilon is not None and result.epsilon_lower > result.epsilon:
        found = f"at δ = {exact_text(result.delta)} its ε is at least {_epsilon(result)}"
    else:
        found = f"at the claimed ε its δ is at least {_delta(result)}"
    return (f"The mechanism does not keep {claim}: {found} ({how}).", *more)


def _more(result: AuditResult) -> tuple[str, ...]:
    """What the verdict rests on where that is not plain, and whether to look longer."""
    if result.contradiction is not None:
        return (FALSE_LAW.format(result.contradiction),)
    if result.exact or result.monotone == "probed":
        return (BY_LAW.format(result.rests_on),)
    return (LONGER.format(rounded_down(result.estimate or 0.0, 5)),) if result.undecided else ()


def _facts(result: AuditResult) -> list[tuple[str, str]]:
    one, two = (str(value) for value in result.inputs)
    facts = [
        ("claimed", _claim(result)),
        ("certified", f"ε ≥ {_epsilon(result)} at δ = {exact_text(result.delta)}"),
    ]
    if result.delta_lower:
        facts.append(("", f"δ ≥ {_delta(result)} at the claimed ε"))
    facts.append(
        ("error", "none: exact laws" if result.exact else f"with probability at most "
         f"{exact_text(result.error)}")
    )  # fmt: skip
    facts += [("event", in_words(result.witness)), ("inputs", f"{one}  against  {two}")]
    if result.trials:
        facts.append(("seen", f"{_times(result.hits, result.trials)} on {one}"))
        facts.append(("", f"{_times(result.other_hits, result.other_trials)} on {two}"))
    if result.samples:
        facts.append(("releases", f"{result.samples:,} in {result.seconds:.1f} s"))
    return facts


def in_words(event: Event) -> str:
    """The event, with its meaning for those who do not think in binary places."""
    match event:
        case RangeEvent(conditions=(Condition(feature=feature, ranges=((low, high),)),)) if (
            feature.last_place_of and low == -math.inf and math.isfinite(high)
        ):
            meaning = f"{feature.last_place_of} is no multiple of 2**{high:g}"
            return f"{event.sentence}: {meaning}"
    return event.sentence


def _limits(result: AuditResult) -> tuple[str, ...]:
    if result.exact:
        return (ONLY_THESE, NEIGHBOURS)
    return (LIMIT, INDEPENDENT, NEIGHBOURS) if result.broken else (LIMIT, NOT_A_PROOF)


def _claim(result: AuditResult) -> str:
    claimed = "no ε" if result.epsilon is None else f"ε = {exact_text(result.epsilon)}"
    return f"{claimed}, δ = {exact_text(result.delta)}" if result.delta else claimed


def _epsilon(result: AuditResult) -> str:
    return _above(result.epsilon_lower, result.epsilon)


def _delta(result: AuditResult) -> str:
    return _above(result.delta_lower or 0.0, result.delta)


def _above(found: float, claimed: Fraction | None) -> str:
    """Rounded down, with as many digits as it takes to be seen above the claim if it is."""
    if 0 < found < math.inf:
        round_number = Fraction(f"{found:.6g}")
        short_of = round_number - Fraction(found)
        if 0 < short_of < round_number * HARDLY:  # not 1.9999 for a law that loses 2
            return f"{exact_text(round_number)} - {rounded_up(short_of, 1)}"
    for digits in range(5, 18):
        text = rounded_down(found, digits)
        if claimed is None or not found > claimed or text == "∞" or Fraction(text) > claimed:
            break
    return text


def _times(hits: int, trials: int) -> str:
    return f"{hits:,} of {trials:,} runs ({100 * hits / max(trials, 1):.3g} %)"
