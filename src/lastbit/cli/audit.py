"""`lastbit audit`: a certified lower bound on the ε of somebody's mechanism."""

from __future__ import annotations

import codecs
import math
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import click
import numpy as np

from lastbit.audit import (
    LAW_SHARE,
    MOST_PAIRS,
    AuditResult,
    Condition,
    Event,
    RangeEvent,
    all_may_move,
    compared,
    confirmed,
    contradicted,
    distinguish_by_law,
    distinguish_by_sampling,
    error_of,
    law_of,
    one_may_move,
)
from lastbit.cli.files import check_folder, rows_of, save
from lastbit.cli.law_panels import evidence_of, readable
from lastbit.cli.loading import Subject, foreign_code, named, subject_of
from lastbit.cli.options import (
    FILE,
    Command,
    Exact,
    Group,
    command,
    json_option,
    option,
    refusal,
    typed,
)
from lastbit.cli.output import Facts, Heading, seen_above, show, show_json, waiting
from lastbit.errors import LastbitError
from lastbit.exact import exact_text, rounded_down, rounded_near, rounded_up
from lastbit.files import content_of
from lastbit.reading import MOST_BYTES, NotJson, parse_json
from lastbit.report import AuditStory, audit_page
from lastbit.verify import Code

Pairs: TypeAlias = list[tuple[Any, Any]]
SECONDS_ALLOWED = Exact(ends=(Fraction(1, 10), 10**6), remedy="pass, say, 60")
MOST_SAMPLES = 1 << 32
TRAINING = "training"
MOST_ENTRIES = 1000
HARDLY = Fraction(1, 10**9)
SHAPE = "write a list of pairs, such as [[0, 1], [[3, 1], [3, 2]]]"
TAKES = (
    "make it take the inputs of the audit: 0 and 1, with --dimension vectors, with --pairs your own"
)

LIMIT = "Sampling cannot see what hardly ever happens: a leak of probability 1e-9."
NOT_A_PROOF = "Nothing found is not a proof: other inputs, events or more runs may show more."
ONLY_THESE = "Only these inputs were compared; about other neighbours this says nothing."
NEIGHBOURS = "That the two inputs are neighbours is taken from the person who ran the audit."
INDEPENDENT = "Runs of the mechanism are taken to be independent of one another."
BY_LAW = "The verdict rests on {}."
FALSE_LAW = (
    "The law that it states is not that of its releases: {}. So the verdict rests on samples. "
    "Correct the law, or release by it."
)
LONGER = "The estimate is ε = {}, above the claim, and not proved: pass more --seconds."
DIFFERS = "The mechanism draws its own randomness, so its counts will differ a little."


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The claim, and how long and how surely to look."""

    epsilon: Fraction
    delta: Fraction
    seconds: Fraction
    samples: int | None
    error: Fraction
    seed: int


class Audit(Command, Group):
    """`audit module:function`; if the first word is `training`, the command of that name."""

    allow_extra_args = False
    allow_interspersed_args = True

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return [TRAINING]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name != TRAINING:
            return None
        found: click.Command = getattr(import_module("lastbit.cli.audit_training"), TRAINING)
        return found

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Of the command below, where it is named; so its own options are not asked for here."""
        below = self.get_command(click.Context(self), args[0]) if args else None
        if below is None:
            return super().make_context(info_name, args, parent, **extra)
        return below.make_context(f"{info_name} {args[0]}", args[1:], parent, **extra)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return click.Command.collect_usage_pieces(self, ctx)


class Mechanism(click.Argument):
    """The argument of `audit`, which is no part of the name of the command below."""

    def get_usage_pieces(self, ctx: click.Context) -> list[str]:
        return super().get_usage_pieces(ctx) if isinstance(ctx.command, Audit) else []


@command(
    "audit module:function --epsilon 1 --confidence 0.9 --html report.html",
    Audit,
    invoke_without_command=True,
)
@click.argument("mechanism", metavar="MODULE:FUNCTION", cls=Mechanism)
@option("--epsilon", "The loss that is claimed.", required=True)
@option("--delta", "The claimed delta.", default="0")
@option(
    "--pairs",
    "Neighbouring inputs: JSON, a list of [x, y], or CSV, two numbers a line. By default the "
    "numbers 0 and 1.",
    FILE,
)
@option(
    "--dimension",
    "The mechanism takes vectors of this many entries.",
    click.IntRange(1, MOST_ENTRIES),
)
@option(
    "--neighbours",
    "Of two neighbouring vectors one entry differs, by 1, or all may.  [default: one]",
    ("one", "all"),
)
@option("--seconds", "About how long it may take.", SECONDS_ALLOWED, default="60")
@option(
    "--samples",
    "Count this many runs of each input, in place of --seconds.",
    click.IntRange(1, MOST_SAMPLES),
)
@option("--error", "The probability with which the answer may be wrong.  [default: 1e-6]")
@option("--confidence", "1 - error, in its place: 0.9 for a bound at 90 %.")
@option(
    "--seed",
    "What the auditor looks at; the mechanism draws its own randomness.",
    click.IntRange(min=0),
    default=0,
)
@option("--html", "Where a page with both laws drawn goes.", FILE)
@json_option
@click.pass_context
def audit(
    context: click.Context,
    /,
    mechanism: str,
    pairs: Path | None,
    dimension: int | None,
    neighbours: str | None,
    html: Path | None,
    as_json: bool,
    error: Fraction | None,
    confidence: Fraction | None,
    **asked: Any,
) -> None:
    """A certified lower bound on the epsilon of a mechanism.

    The mechanism is a function of your own: function(value), or function(value, size) for many
    independent releases at once. Or it is an object with a method release or law. The module is
    looked for as Python does, and in the current folder. Its code is run: name only modules that
    you would run.

    An event is looked for that tells two neighbouring inputs apart, then counted in fresh runs.
    Where the exact law is known, the laws are compared and held against some releases. A law that
    they contradict is not believed. The exit status is 0 if nothing was found. It is 1 if a
    violation is certified or the law differs, 2 if the audit could not be run.

    lastbit audit training audits a training loop in one run.
    """
    settings = Asked(error=error_of(error, confidence), **asked)
    if neighbours is not None and (dimension is None or pairs is not None):
        problem = "is about vectors that the audit makes up"
        raise refusal("--neighbours", problem, "pass --dimension with it, and no --pairs")
    if html is not None:
        check_folder(html, "--html")
    inputs = pairs_for(dimension, neighbours) if pairs is None else pairs_in(pairs, dimension)
    options = {"--pairs": pairs, "--dimension": dimension, "--neighbours": neighbours}
    given = [w for name, value in options.items() if value is not None for w in (name, str(value))]
    with foreign_code(TAKES):
        subject = subject_of(mechanism, named(mechanism))
        result = judged(subject, inputs if subject.is_function else whole_numbers(inputs), settings)
        command = _rerun(mechanism, settings, given, result)
        story = story_of(mechanism, result, command)
        if html is not None:
            with waiting("drawing the laws"):
                panels, drawn = evidence_of(subject, result)
            save(html, audit_page(story, panels, drawn=drawn), "--html")
    if as_json:
        word = "nothing found" if result.contradiction is None else "false law"
        show_json(
            {
                "title": story.title,
                "verdict": "refuted" if result.broken else word,
                **result.to_dict(),
                "command": command,
                "limits": list(story.limits),
                "written": {} if html is None else {"html": str(html)},
            }
        )
    else:
        page = [] if html is None else [("page", str(html))]
        show(
            Heading(story.title, story.verdict, good=not story.refuted),
            *story.sentences,
            Facts([*story.facts, ("again", command), *page]),
            story.limits[0],
        )
    context.exit(1 if story.refuted else 0)


# ---------------------------------------------------------------- neighbouring inputs


def pairs_for(dimension: int | None, neighbours: str | None) -> Pairs:
    """The numbers 0 and 1, or vectors of which one entry, or each, differs by at most 1."""
    if dimension is None:
        return [(0, 1)]
    return all_may_move(dimension) if neighbours == "all" else one_may_move(dimension)


def pairs_in(path: Path, dimension: int | None) -> Pairs:
    """The pairs of a JSON file, or of a CSV file with the numbers of both inputs in a line."""
    pairs = _json(path) if path.suffix.lower() == ".json" else _csv(path, dimension)
    if not 1 <= len(pairs) <= MOST_PAIRS:
        raise refusal("--pairs", f"holds {len(pairs)} pairs", f"write from 1 to {MOST_PAIRS}")
    return pairs


def whole_numbers(pairs: Pairs) -> Pairs:
    """Vectors of whole numbers as vectors of integers, for mechanisms that take no others."""

    def turned(item: Any) -> Any:
        whole = isinstance(item, np.ndarray) and (item == np.rint(item)).all()
        return item.astype(np.int64) if whole else item

    return [(turned(x), turned(y)) for x, y in pairs]


def _json(path: Path) -> Pairs:
    try:
        content = content_of(path, most=MOST_BYTES)
        found = parse_json(content.removeprefix(codecs.BOM_UTF8))
    except OSError as error:
        problem = f"cannot be read at {path} ({error.strerror})"
        raise refusal("--pairs", problem, "name a file that you may read") from error
    except NotJson as error:
        raise refusal("--pairs", f"at {path} is no JSON to be read: it {error}", SHAPE) from error
    if not isinstance(found, list) or any(not isinstance(p, list) or len(p) != 2 for p in found):
        raise refusal("--pairs", f"at {path} is not a list of pairs", SHAPE)

    def read(item: Any) -> Any:
        """A list of numbers as an array, which noise can be added to; all else as it is."""
        if isinstance(item, list) and item and all(type(entry) in (int, float) for entry in item):
            array = np.array(item)
            return array if array.dtype.kind in "if" else item
        return item

    return [(read(x), read(y)) for x, y in found]


def _csv(path: Path, dimension: int | None) -> Pairs:
    width = dimension or 1
    pairs: Pairs = []
    for line, row in rows_of(path, (2 * width,), "--pairs"):
        try:
            numbers = [float(c) if re.search(r"[^\d\s+_-]", c) else int(c) for c in row]
        except ValueError:
            where = f"line {line} of --pairs"
            raise refusal(where, "holds no number", "write numbers, no headings") from None
        x, y = numbers[:width], numbers[width:]
        pairs.append((x[0], y[0]) if dimension is None else (np.array(x), np.array(y)))
    return pairs


def judged(subject: Subject, pairs: Pairs, asked: Asked) -> AuditResult:
    """By the laws where they are known and releases do not contradict them, else by sampling."""
    exactly = _by_law(subject, pairs, asked)
    if exactly is not None and exactly.contradiction is None:
        return exactly
    if subject.release is None:
        remedy = "name a function(value) that draws from it, to be audited by sampling"
        raise refusal("the law", "is of a kind that cannot be compared", remedy)
    with waiting() as tell:
        found = distinguish_by_sampling(
            subject.release,
            pairs,
            epsilon=asked.epsilon,
            delta=asked.delta,
            seconds=float(asked.seconds),
            samples=asked.samples,
            error=asked.error if exactly is None else asked.error * (1 - LAW_SHARE),
            seed=asked.seed,
            progress=tell,
        )
    found = replace(found, witness=readable(subject.release, found))
    return found if exactly is None else contradicted(found, exactly, asked.error)


def _by_law(subject: Subject, pairs: Pairs, asked: Asked) -> AuditResult | None:
    law = law_of(subject.mechanism)
    if law is None:
        return None
    code = subject.mechanism if isinstance(subject.mechanism, Code) else None
    with waiting("comparing the exact laws"):
        try:
            found = distinguish_by_law(
                subject.mechanism,
                pairs,
                epsilon=asked.epsilon,
                delta=asked.delta,
                law=law if code is None else None,
            )
        except (LastbitError, TypeError):
            if subject.release is None:
                raise
            return None  # a law of something else than one input: its releases tell
        if found is None:
            return None
        if code is not None:
            if found.monotone == "proved":
                return found
            return confirmed(found, code, error=asked.error, samples=asked.samples)
        share = asked.error * LAW_SHARE
        return compared(found, subject.mechanism, subject.release, pairs, error=share, law=law)


def _rerun(name: str, asked: Asked, given: Sequence[str], result: AuditResult) -> str:
    """The command that audits once more, with as many tests as decided this time."""
    words = ["lastbit", "audit", name, "--epsilon", typed(asked.epsilon)]
    words += ["--delta", typed(asked.delta)] if asked.delta else []
    words += given
    if not result.exact:
        count = asked.samples or (result.trials + result.other_trials) // 2
        words += ["--samples", str(count)] if count else ["--seconds", typed(asked.seconds)]
        words += ["--error", typed(asked.error), "--seed", str(asked.seed)]
    return shlex.join(words)


# ---------------------------------------------------------------- what was found, in words


def story_of(name: str, result: AuditResult, command: str) -> AuditStory:
    """The audit as headline, sentences, facts, limits and a command."""
    level = exact_text(result.delta)
    claim = "no ε" if result.epsilon is None else f"ε = {exact_text(result.epsilon)}"
    claim += f", δ = {level}" if result.delta else ""
    epsilon = _above(result.epsilon_lower, result.epsilon)
    delta = _above(result.delta_lower or 0.0, result.delta)
    risk = f"with probability at most {exact_text(result.error)}"
    how = f"certified at {result.sureness}: wrong {risk}"
    if result.exact:
        how = "worked out from its exact laws"
    limits: tuple[str, ...] = (LIMIT, NOT_A_PROOF)
    if result.exact:
        limits = (ONLY_THESE, NEIGHBOURS)
    elif result.broken:
        limits = (LIMIT, INDEPENDENT, NEIGHBOURS)
    if result.broken:
        by_loss = result.epsilon is not None and result.epsilon_lower > result.epsilon
        verdict = f"refuted: ε ≥ {epsilon}" if by_loss else f"refuted: δ ≥ {delta}"
        found = f"at the claimed ε its δ is at least {delta}"
        found = f"at δ = {level} its ε is at least {epsilon}" if by_loss else found
        sentence = f"The mechanism does not keep {claim}: {found} ({how})."
    else:
        probed = " by samples; monotone only probed" if result.monotone == "probed" else ""
        false_law = result.contradiction is not None
        verdict = "the law is not that of release" if false_law else f"nothing found{probed}"
        sentence = (
            f"No event was found that refutes {claim}. On these inputs the loss is at least "
            f"ε = {epsilon} ({how})."
        )
    more: tuple[str, ...] = ()  # what the verdict rests on, and whether to look longer
    if result.contradiction is not None:
        more = (FALSE_LAW.format(result.contradiction),)
    elif result.exact or result.monotone == "probed":
        more = (BY_LAW.format(result.rests_on),)
    elif result.undecided:
        more = (LONGER.format(rounded_down(result.estimate or 0.0, 5)),)
    one, two = (str(value) for value in result.inputs)
    facts = [("claimed", claim), ("certified", f"ε ≥ {epsilon} at δ = {level}")]
    if result.delta_lower:
        facts.append(("", f"δ ≥ {delta} at the claimed ε"))
    if not result.exact:
        facts.append(("confidence", result.sureness.removesuffix(" confidence")))
    facts.append(("error", "none: exact laws" if result.exact else risk))
    facts += [("event", in_words(result.witness)), ("inputs", f"{one}  against  {two}")]
    if result.trials:
        facts.append(("seen", f"{_times(result.hits, result.trials)} on {one}"))
        facts.append(("", f"{_times(result.other_hits, result.other_trials)} on {two}"))
    if result.samples:
        facts.append(("releases", f"{result.samples:,} in {result.seconds:.1f} s"))
    return AuditStory(
        title=f"Audit of {name}",
        verdict=verdict,
        refuted=result.broken or result.contradiction is not None,
        sentences=(sentence, *more),
        facts=tuple(facts),
        limits=limits,
        again=(command, f"lastbit.audit.{result.again}"),
        note="" if result.exact else DIFFERS,
    )


def in_words(event: Event) -> str:
    """The event, with its meaning for those who do not think in binary places."""
    match event:
        case RangeEvent(conditions=(Condition(feature=feature, ranges=((low, high),)),)) if (
            feature.last_place_of and low == -math.inf and math.isfinite(high)
        ):
            meaning = f"{feature.last_place_of} is not a multiple of 2**{high:g}"
            return f"{event.sentence}: {meaning}"
    return event.sentence


def _above(found: float, claimed: Fraction | None) -> str:
    """Rounded down, with as many digits as it takes to be seen above the claim if it is."""
    if 0 < found < math.inf:
        round_number = Fraction(rounded_near(found))
        short_of = round_number - Fraction(found)
        if 0 < short_of < round_number * HARDLY:  # not 1.9999 for a law that loses 2
            return f"{exact_text(round_number)} - {rounded_up(short_of, 1)}"
    return seen_above(found, claimed, digits=5)


def _times(hits: int, trials: int) -> str:
    share = rounded_near(Fraction(100 * hits, max(trials, 1)), 3)
    return f"{hits:,} of {trials:,} runs ({share} %)"
