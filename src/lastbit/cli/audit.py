"""`lastbit audit`: how private is somebody's mechanism certainly not?"""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lastbit.cli.files import check_folder, save
from lastbit.cli.numbers import EXACT
from lastbit.cli.refusals import option_names, said_of
from lastbit.errors import InvalidParameter
from lastbit.exact import exact_text

if TYPE_CHECKING:
    from lastbit.audit import AuditResult
    from lastbit.cli.audit_subject import Subject
    from lastbit.report import AuditStory

LEAST_SECONDS, MOST_SECONDS = Fraction(1, 10), Fraction(10**6)
MOST_SAMPLES = 1 << 32
MOST_ENTRIES = 1000
TAKES = (
    "make it take the inputs of the audit: 0 and 1, with --dimension vectors, with --pairs your own"
)
FILE = click.Path(dir_okay=False, path_type=Path)


@click.command(epilog="Example: lastbit audit module:function --epsilon 1 --html report.html")
@click.argument("mechanism", metavar="MODULE:FUNCTION")
@click.option("--epsilon", type=EXACT, required=True, help="The loss that is claimed.")
@click.option("--delta", type=EXACT, default="0", show_default=True, help="The claimed delta.")
@click.option(
    "--pairs",
    type=FILE,
    help="Neighbouring inputs: JSON, a list of [x, y], or CSV, two numbers a line. By default the "
    "numbers 0 and 1.",
)
@click.option(
    "--dimension",
    type=click.IntRange(1, MOST_ENTRIES),
    help="The mechanism takes vectors of so many entries.",
)
@click.option(
    "--neighbours",
    type=click.Choice(("one", "all")),
    help="Of two neighbouring vectors one entry differs, by 1, or all may.  [default: one]",
)
@click.option(
    "--seconds", type=EXACT, default="60", show_default=True, help="About how long it may take."
)
@click.option(
    "--samples",
    type=click.IntRange(1, MOST_SAMPLES),
    help="Count so many runs of each input, in place of --seconds.",
)
@click.option(
    "--error",
    type=EXACT,
    default="1e-6",
    show_default=True,
    help="The probability with which the answer may be wrong.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="What the auditor looks at; the mechanism draws its own randomness.",
)
@click.option("--html", type=FILE, help="Where a page with both laws drawn goes.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def audit(
    mechanism: str,
    epsilon: Fraction,
    delta: Fraction,
    pairs: Path | None,
    dimension: int | None,
    neighbours: str | None,
    seconds: Fraction,
    samples: int | None,
    error: Fraction,
    seed: int,
    html: Path | None,
    as_json: bool,
) -> None:
    """How private a mechanism certainly is not.

    The mechanism is a function of your own, called as function(value), or as function(value, size)
    if it gives many independent releases at once; or an object with a method release or law. The
    module is looked for as Python does, and in the current folder. Its code is run: name only
    modules that you would run.

    An event is looked for that tells two neighbouring inputs apart, then counted in fresh runs.
    Where the exact law is known the laws are compared, and some releases are held against them; a
    law that they contradict is not believed. The exit status is 0 if nothing was found, 1 if a
    violation is certified or the law is not that of release, 2 if the audit could not be run.
    """
    from lastbit.cli.audit_answer import story_of
    from lastbit.cli.audit_pairs import whole_numbers
    from lastbit.cli.audit_run import Asked, judged, rerun
    from lastbit.cli.audit_subject import failures_named, subject_named
    from lastbit.cli.verify_loading import current_folder

    _check(seconds, pairs, neighbours, dimension, html)
    inputs = _inputs(pairs, dimension, neighbours)
    asked = Asked(
        epsilon=epsilon, delta=delta, seconds=seconds, samples=samples, error=error, seed=seed
    )
    # what a mechanism prints is not our answer
    with redirect_stdout(sys.stderr), option_names(), current_folder(), failures_named(TAKES):
        subject = subject_named(mechanism)
        inputs = inputs if subject.is_function else whole_numbers(inputs)
        result = judged(subject, inputs, asked)
        command = rerun(mechanism, asked, _given(pairs, dimension, neighbours), result)
        story = story_of(mechanism, result, command)
        if html is not None:
            _write(html, subject, result, story)
    _answer(story, result, command, html, as_json=as_json)


def _check(
    seconds: Fraction,
    pairs: Path | None,
    neighbours: str | None,
    dimension: int | None,
    html: Path | None,
) -> None:
    """Refuse what has no meaning before any code is run."""
    if not LEAST_SECONDS <= seconds <= MOST_SECONDS:
        raise InvalidParameter(
            "--seconds",
            problem=f"is not from {exact_text(LEAST_SECONDS)} to {exact_text(MOST_SECONDS)}",
            remedy="pass, say, 60",
        )
    if neighbours is not None and (dimension is None or pairs is not None):
        raise InvalidParameter(
            "--neighbours",
            problem="is about vectors that the audit makes up",
            remedy="pass --dimension with it, and no --pairs",
        )
    if html is not None:
        with said_of("--html"):
            check_folder(html)


def _inputs(
    pairs: Path | None, dimension: int | None, neighbours: str | None
) -> list[tuple[Any, Any]]:
    from lastbit.cli.audit_pairs import pairs_for, pairs_in

    if pairs is not None:
        return pairs_in(pairs, dimension)
    return pairs_for(dimension, neighbours or "one")


def _given(pairs: Path | None, dimension: int | None, neighbours: str | None) -> list[str]:
    """The options that say which inputs, as they were written."""
    options = (("--pairs", pairs), ("--dimension", dimension), ("--neighbours", neighbours))
    return [word for name, value in options if value is not None for word in (name, str(value))]


def _write(html: Path, subject: Subject, result: AuditResult, story: AuditStory) -> None:
    from lastbit.cli.audit_evidence import evidence_of
    from lastbit.cli.waiting import waiting
    from lastbit.report import audit_page

    with waiting("drawing the laws"):
        evidence = evidence_of(subject, result)
    with said_of("--html"):
        save(html, audit_page(story, evidence.panels, drawn=evidence.drawn))


def _answer(
    story: AuditStory, result: AuditResult, command: str, html: Path | None, *, as_json: bool
) -> None:
    """Print, and end with the status."""
    from lastbit.cli.audit_answer import values_of
    from lastbit.cli.page import Facts, Heading, Words, show, show_json

    if as_json:
        written = {} if html is None else {"html": str(html)}
        show_json(values_of(story, result, command) | {"written": written})
    else:
        page = () if html is None else (("page", str(html)),)
        show(
            Heading(story.title, story.verdict, good=not story.refuted),
            *(Words(sentence) for sentence in story.sentences),
            Facts((*story.facts, ("again", command), *page)),
            Words(story.limits[0]),
        )
    click.get_current_context().exit(1 if story.refuted else 0)
