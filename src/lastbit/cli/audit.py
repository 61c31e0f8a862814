"""`lastbit audit`: a certified lower bound on the ε of somebody's mechanism, and its picture.

The picture shows exact laws where they are known, else fresh runs: the counts that an audit
certifies are gone by then. They prove nothing and are not meant to: the event is shaded only where
it happens in them about as often as it was counted.
"""

from __future__ import annotations

import json
import math
import re
import shlex
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import click
import numpy as np
from numpy.typing import NDArray

from lastbit.audit import (
    LAW_SHARE,
    MOST_PAIRS,
    AuditResult,
    Condition,
    Event,
    Feature,
    OutputEvent,
    RangeEvent,
    RatioEvent,
    SeededRandom,
    all_may_move,
    as_release,
    compared,
    confirmed,
    contradicted,
    distinguish_by_law,
    distinguish_by_sampling,
    error_of,
    features,
    last_place,
    law_of,
    one_may_move,
    rows,
)
from lastbit.cli.files import check_folder, rows_of, save
from lastbit.cli.loading import Subject, foreign_code, named, subject_of
from lastbit.cli.options import FILE, Exact, command, json_option, option, refusal
from lastbit.cli.output import Facts, Heading, seen_above, show, show_json, waiting
from lastbit.errors import LastbitError
from lastbit.exact import Ball, exact_text, rational, rounded_down, rounded_near, rounded_up
from lastbit.files import content_of
from lastbit.laws import Law, OnGrid
from lastbit.report import AuditStory, Cell, LawPanel, Range, audit_page, middle
from lastbit.verify import Code, ExactLaw

Pairs: TypeAlias = list[tuple[Any, Any]]
SECONDS_ALLOWED = Exact(ends=(Fraction(1, 10), 10**6), remedy="pass, say, 60")
MOST_SAMPLES = 1 << 32
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


@command("audit module:function --epsilon 1 --confidence 0.9 --html report.html")
@click.argument("mechanism", metavar="MODULE:FUNCTION")
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

    The mechanism is a function of your own, called as function(value), or as function(value, size)
    if it gives many independent releases at once; or an object with a method release or law. The
    module is looked for as Python does, and in the current folder. Its code is run: name only
    modules that you would run.

    An event is looked for that tells two neighbouring inputs apart, then counted in fresh runs.
    Where the exact law is known the laws are compared, and some releases are held against them; a
    law that they contradict is not believed. The exit status is 0 if nothing was found, 1 if a
    violation is certified or the law is not that of release, 2 if the audit could not be run.
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
        found = json.loads(content_of(path, most=1 << 30).decode("utf-8-sig"))
    except OSError as error:
        problem = f"cannot be read at {path} ({error.strerror})"
        raise refusal("--pairs", problem, "name a file that you may read") from error
    except (ValueError, RecursionError) as error:
        raise refusal("--pairs", f"at {path} is not JSON text", SHAPE) from error
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

    def exactly(number: Fraction) -> str:
        exact = exact_text(number)
        return str(number) if exact.endswith("...") else exact

    words = ["lastbit", "audit", name, "--epsilon", exactly(asked.epsilon)]
    if asked.delta:
        words += ["--delta", exactly(asked.delta)]
    words += given
    if not result.exact:
        count = asked.samples or (result.trials + result.other_trials) // 2
        words += ["--samples", str(count)] if count else ["--seconds", exactly(asked.seconds)]
        words += ["--error", exactly(asked.error), "--seed", str(asked.seed)]
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
    limits: tuple[str, ...] = (ONLY_THESE, NEIGHBOURS)
    if not result.exact:
        limits = (LIMIT, INDEPENDENT, NEIGHBOURS) if result.broken else (LIMIT, NOT_A_PROOF)
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


# ---------------------------------------------------------------- the picture

FIRST, MOST, SECONDS = 500, 20_000, 2.0  # runs of each input for the picture
BINS, MOST_VALUES, MOST_WORDS = 80, 48, 12
OUTER = 0.002  # share of the outputs beyond either end of the axis
FAR = 2.0**999  # NaN and infinities are coded beyond
CODES = ("entry 0", "entry 1")  # of outputs that are words: a number made of it, its length
KNOWN = ("entries", "bits", "differences", "summary")  # features that are the same for any sample
LONGEST = 40
MOST_CELLS, LAW_OUTER, ALIKE = 120, Fraction(1, 1000), 1e-9  # for exact laws


def evidence_of(subject: Subject, result: AuditResult) -> tuple[tuple[LawPanel, ...], str]:
    """The laws if they decided the audit, else what some runs show; and where heights come from."""
    if result.exact:
        return _law_panels(subject.mechanism, result), "Exact probabilities, drawn as floats."
    if subject.release is None:
        return (), ""
    release = as_release(subject.release)
    drawn = [_runs(release, value) for value in result.inputs]
    words = (
        f"Shares of {len(drawn[0]):,} fresh runs of each input, drawn for this picture without a "
        "seed: they differ from page to page. The certified numbers come from the counts above."
    )
    panels = tuple(_run_panels(drawn, result))
    if not any(panel.event for panel in panels):
        words += " The event is not a range on one of these axes, so it is not shaded."
    return panels, words


def label_of(value: Any) -> str:
    """An input or an output in a few characters."""
    listed = value.tolist() if isinstance(value, np.ndarray) else value
    numbers = isinstance(listed, list) and all(type(entry) in (int, float) for entry in listed)
    words = f"[{', '.join(f'{entry:g}' for entry in listed)}]" if numbers else repr(listed)
    return words if len(words) <= LONGEST else f"{words[: LONGEST - 1]}…"


def readable(release: Callable[..., Any], result: AuditResult) -> Event:
    """The event; if outputs are words, by the words themselves and not by their codes."""
    found = _only_condition(result.witness)
    if found is None or found.feature.name not in CODES:
        return result.witness
    drawn = [list(as_release(release)(value, FIRST)) for value in result.inputs]
    if not all(_are_words(some) for some in drawn):
        return result.witness
    entry = CODES.index(found.feature.name)
    codes = {label_of(item): float(rows([item], 1)[0, entry]) for some in drawn for item in some}
    inside = [word for word, code in sorted(codes.items()) if _within(code, found.ranges)]
    return OutputEvent.of(inside, most=MOST_WORDS) if inside else result.witness


def _only_condition(event: Event) -> Condition | None:
    """What the event asks of one feature; None if it has no such form."""
    match event:
        case RangeEvent(conditions=(condition,)):
            return condition
    return None


def _within(value: float, ranges: Sequence[Range]) -> bool:
    return any(low == value or low <= value < high for low, high in ranges)


def _are_words(outputs: Any) -> bool:
    if isinstance(outputs, np.ndarray) and outputs.ndim > 0:
        return outputs.dtype.kind in "OSU"
    try:
        return np.array(outputs).dtype.kind not in "biufc"
    except ValueError:  # lists of different lengths
        return True


def _panel(
    title: str,
    words: str,
    result: AuditResult,
    cells: tuple[Cell, ...],
    event: Sequence[Range],
    axis: str = "the output",
) -> LawPanel:
    """A panel; ranges of the event that touch are shaded as one."""
    joined: list[Range] = []
    for low, high in event:
        start = joined.pop()[0] if joined and joined[-1][1] == low else low
        joined.append((start, high))
    return LawPanel(
        title=title,
        words=words,
        axis=axis,
        inputs=(label_of(result.inputs[0]), label_of(result.inputs[1])),
        cells=cells,
        single=any(cell.label for cell in cells),
        event=tuple(joined),
    )


def _labelled(shares: Iterable[tuple[str, float, float]]) -> tuple[Cell, ...]:
    """One cell for each value, side by side: values far apart would leave an empty picture."""
    return tuple(Cell(i, i + 1, p, q, label) for i, (label, p, q) in enumerate(shares))


def _word_cells(
    first: Mapping[Any, float], second: Mapping[Any, float], label: Callable[[Any], str] = label_of
) -> tuple[Cell, ...]:
    """The words in which two laws differ most."""
    both = [(w, first.get(w, 0.0), second.get(w, 0.0)) for w in dict.fromkeys([*first, *second])]
    both.sort(key=lambda one: -abs(one[1] - one[2]))
    return _labelled((label(word), p, q) for word, p, q in both[:MOST_WORDS])


def _range_cells(edges: Any, *shares: Any) -> tuple[Cell, ...]:
    """Adjacent ranges, and how likely each is under either input."""
    ends = zip(edges[:-1], edges[1:], *shares, strict=True)
    return tuple(Cell(float(a), float(b), float(p), float(q)) for a, b, p, q in ends)


# ---------------------------------------------------------------- panels of runs


def _runs(release: Callable[[Any, int], Any], value: Any) -> list[Any] | NDArray[Any]:
    """Some runs of one input: as many as two seconds allow."""
    start = time.perf_counter()
    release(value, FIRST)
    pace = max((time.perf_counter() - start) / FIRST, 1e-9)
    size = max(FIRST, min(MOST, int(SECONDS / pace) // FIRST * FIRST))
    found = release(value, size)
    return found if isinstance(found, np.ndarray) else list(found)


def _run_panels(drawn: Sequence[Any], result: AuditResult) -> list[LawPanel]:
    size = min(len(some) for some in drawn)
    drawn = [some[:size] for some in drawn]
    if any(_are_words(some) for some in drawn):
        return [_word_panel(drawn, result)]
    tables = [rows(some, size) for some in drawn]
    told = _only_condition(result.witness)
    if told is not None and not _agrees(told, tables, result):
        told = None
    seeds = SeededRandom(0, "picture")
    known = [f for f in features(np.concatenate(tables), seeds) if f.group in KNOWN]
    plain = known[:1] if tables[0].shape[1] == 1 else []
    mixed = result.witness.groups if isinstance(result.witness, RatioEvent) else ()
    shown = told.feature if told else _telling(known, tables, "bits" if "bits" in mixed else "")
    chosen = plain if plain and shown.name == plain[0].name else [*plain, shown]
    ranges = told.ranges if told else ()
    return [
        _column_panel(feature, tables, result, ranges if feature is chosen[-1] else ())
        for feature in chosen
    ]


def _agrees(
    condition: Condition, tables: Sequence[NDArray[np.float64]], result: AuditResult
) -> bool:
    """Whether the event, as it would be shaded, happens about as often as it was counted."""
    counts = ((result.hits, result.trials), (result.other_hits, result.other_trials))
    if not result.trials or not result.other_trials:
        return False
    for table, (hits, trials) in zip(tables, counts, strict=True):
        column = condition.feature.of(table)
        inside = np.zeros(len(column), dtype=bool)
        for low, high in condition.ranges:
            inside |= (column == low) | ((column >= low) & (column < high))
        if abs(inside.mean() - hits / trials) > 3 / math.sqrt(len(column)):
            return False
    return True


def _telling(
    known: Sequence[Feature], tables: Sequence[NDArray[np.float64]], group: str
) -> Feature:
    """The feature in which the two inputs differ most, of that group if there is one."""

    def difference(feature: Feature) -> float:
        one, two = (feature.of(table) for table in tables)
        edges = np.unique(np.quantile(np.concatenate([one, two]), np.arange(1, 40) / 40))
        shares = [
            np.bincount(np.searchsorted(edges, side, side="right"), minlength=edges.size + 1)
            for side in (one, two)
        ]
        return float(np.abs(shares[0] - shares[1]).sum())

    return max([f for f in known if f.group == group] or known, key=difference)


def _column_panel(
    feature: Feature,
    tables: Sequence[NDArray[np.float64]],
    result: AuditResult,
    ranges: Sequence[Range],
) -> LawPanel:
    columns = [feature.of(table) for table in tables]
    near = np.concatenate(columns)
    near = near[np.abs(near) < FAR]
    seen = np.unique(near)
    if seen.size == 0:
        cells, outside = _range_cells((0, 1), [0], [0]), [1.0, 1.0]
    elif seen.size <= MOST_VALUES:
        zero = last_place(np.zeros(1))[0] if 2000.0 in seen else None
        names = ("0 itself" if value == zero else f"{value:.6g}" for value in seen.tolist())
        shares = [[float((column == value).mean()) for value in seen] for column in columns]
        cells = _labelled(zip(names, *shares, strict=True))
        places = [i for i, value in enumerate(seen.tolist()) if _within(value, ranges)]
        ranges = [(float(i), float(i + 1)) for i in places]
        outside = [float((np.abs(column) >= FAR).mean()) for column in columns]
    else:
        low, high = (float(end) for end in np.quantile(near, [OUTER, 1 - OUTER]))
        if not low < high:
            low, high = low - 0.5, high + 0.5
        edges = np.linspace(low, high, BINS + 1)
        counts = [np.histogram(column, edges)[0] / len(column) for column in columns]
        cells = _range_cells(edges, *counts)
        outside = [float(1 - count.sum()) for count in counts]
    words = "How often each value came out of either input."
    if max(outside) > 0:
        one, two = (f"{rounded_near(100 * share, 2)} %" for share in outside)
        words += f" Not drawn: {one} and {two} of the outputs."
    axis = feature.name
    if feature.last_place_of:
        axis += ": p for a multiple of 2^p but not of 2^(p+1)"
    return _panel(feature.name[0].upper() + feature.name[1:], words, result, cells, ranges, axis)


def _word_panel(drawn: Sequence[Any], result: AuditResult) -> LawPanel:
    counts = [Counter(map(label_of, some)) for some in drawn]
    one, two = ({w: count / len(drawn[0]) for w, count in some.items()} for some in counts)
    cells = _word_cells(one, two, label=str)
    named = set(result.witness.outputs) if isinstance(result.witness, OutputEvent) else set()
    others = len(counts[0] | counts[1]) - MOST_WORDS
    more = f" {others} others are not drawn." if others > 0 else ""
    words = f"How often each output came out of either input.{more}"
    event = [(cell.start, cell.end) for cell in cells if cell.label in named]
    return _panel("The output", words, result, cells, event)


# ---------------------------------------------------------------- panels of exact laws


def _law_panels(mechanism: Any, result: AuditResult) -> tuple[LawPanel, ...]:
    """The laws of the two inputs and the outputs that tell them apart; none for odd laws."""
    source = law_of(mechanism)
    cells = () if source is None else _cells(*(source(value) for value in result.inputs))
    if not cells:
        return ()
    words = "Exact laws. Shaded: where the first input is as much likelier as in the event."
    event = _best_cells(cells, float(result.delta))
    return (_panel("How likely each output is", words, result, cells, event),)


def _best_cells(cells: Sequence[Cell], delta: float) -> list[Range]:
    """The cells of the best event, by floats, and those of the same ratio."""

    def ratio(cell: Cell) -> float:
        if cell.first <= 0:
            return -math.inf
        return math.log(cell.first / cell.second) if cell.second > 0 else math.inf

    p = q = best = 0.0
    least = math.inf
    for cell in sorted(cells, key=ratio, reverse=True):
        p, q = p + cell.first, q + cell.second
        if p <= delta:
            continue
        loss = math.log((p - delta) / q) if q > 0 else math.inf
        if loss > best + ALIKE:
            best, least = loss, ratio(cell)
    return [(c.start, c.end) for c in cells if ratio(c) >= least - ALIKE and c.first > 0]


def _cells(one: Any, two: Any) -> tuple[Cell, ...]:
    if isinstance(one, OnGrid) and isinstance(two, OnGrid) and one.step == two.step:
        return _whole(one.law, two.law, one.step)
    if isinstance(one, Law) and isinstance(two, Law):
        return _whole(one, two, Fraction(1))
    first, second = _listed(one), _listed(two)
    if first is None or second is None:
        return ()
    if not all(isinstance(output, int | float | Fraction) for output in (*first, *second)):
        return _word_cells(first, second)
    outputs = sorted({*first, *second})
    laws = [[law.get(output, 0.0) for output in outputs] for law in (first, second)]
    if len(outputs) <= MOST_VALUES:
        return _labelled(zip((f"{float(o):.6g}" for o in outputs), *laws, strict=True))
    places = np.array([float(output) for output in outputs])
    finite = np.isfinite(places)
    places, weights = places[finite], np.array(laws)[:, finite]
    total = weights.sum(axis=0).cumsum()
    outer = 2 * float(LAW_OUTER)  # all but a thousandth of either law at either end
    inner = places[(total > outer) & (total < 2 - outer)]
    if inner.size < 2:
        return ()
    edges = np.linspace(inner[0], inner[-1], MOST_CELLS + 1)
    return _range_cells(edges, *(np.histogram(places, edges, weights=law)[0] for law in weights))


def _whole(one: Law, two: Law, step: Fraction) -> tuple[Cell, ...]:
    """Single values if they are few, else ranges of like length."""
    low = min(law.quantile(LAW_OUTER) for law in (one, two))
    high = max(law.quantile(1 - LAW_OUTER) for law in (one, two))
    if high - low < MOST_VALUES:
        return _labelled(
            (f"{float(k * step):.6g}", middle(one.probability(k)), middle(two.probability(k)))
            for k in range(low, high + 1)
        )
    width = -(-(high - low + 1) // MOST_CELLS)
    edges = [low + width * i for i in range((high - low) // width + 2)]
    sums = [[middle(law.cdf(edge - 1)) for edge in edges] for law in (one, two)]
    shares = [[after - before for before, after in pairwise(some)] for some in sums]
    return _range_cells([float(edge * step) for edge in edges], *shares)


def _listed(law: Any) -> dict[Any, float] | None:
    if isinstance(law, ExactLaw):
        return {o: float(p) for o, p in zip(law.outputs, law.probabilities, strict=True)}
    if isinstance(law, Mapping):
        chances = ((o, middle(p) if isinstance(p, Ball) else rational(p)) for o, p in law.items())
        return {output: float(chance) for output, chance in chances}
    return None
