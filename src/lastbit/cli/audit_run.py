"""One audit as it was asked for on the command line, and how it is run."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from lastbit.cli.audit_subject import Subject, law_source
from lastbit.cli.progress_bar import progress_bar
from lastbit.cli.waiting import waiting
from lastbit.errors import InvalidParameter, LastbitError
from lastbit.exact import exact_text

if TYPE_CHECKING:
    from lastbit.audit import AuditResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The claim, and how long and how surely to look."""

    epsilon: Fraction
    delta: Fraction
    seconds: Fraction
    samples: int | None
    error: Fraction
    seed: int


def judged(subject: Subject, pairs: Sequence[tuple[Any, Any]], asked: Asked) -> AuditResult:
    """By the laws where they are known and releases do not contradict them, else by sampling."""
    from lastbit.audit import LAW_SHARE, contradicted, distinguish_by_sampling
    from lastbit.cli.audit_evidence import readable

    exactly = _by_law(subject, pairs, asked)
    if exactly is not None and exactly.contradiction is None:
        return exactly
    if subject.release is None:
        raise InvalidParameter(
            "the law",
            problem="is of a kind that cannot be compared",
            remedy="name a function(value) that draws from it, to be audited by sampling",
        )
    with progress_bar() as tell:
        found = distinguish_by_sampling(
            subject.release,
            list(pairs),
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


def _by_law(subject: Subject, pairs: Sequence[tuple[Any, Any]], asked: Asked) -> AuditResult | None:
    from lastbit.audit import LAW_SHARE, compared, confirmed, distinguish_by_law
    from lastbit.verify import Code

    law = law_source(subject.mechanism)
    if law is None:
        return None
    code = subject.mechanism if isinstance(subject.mechanism, Code) else None
    with waiting("comparing the exact laws"):
        try:
            found = distinguish_by_law(
                subject.mechanism,
                list(pairs),
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
        given = list(pairs)
        return compared(found, subject.mechanism, subject.release, given, error=share, law=law)


def rerun(name: str, asked: Asked, given: Sequence[str], result: AuditResult) -> str:
    """The command that audits once more, with as many tests as decided this time."""
    words = ["lastbit", "audit", name, "--epsilon", _exactly(asked.epsilon)]
    if asked.delta:
        words += ["--delta", _exactly(asked.delta)]
    words += given
    if not result.exact:
        count = asked.samples or (result.trials + result.other_trials) // 2
        words += ["--samples", str(count)] if count else ["--seconds", _exactly(asked.seconds)]
        words += ["--error", _exactly(asked.error), "--seed", str(asked.seed)]
    return shlex.join(words)


def _exactly(number: Fraction) -> str:
    text = exact_text(number)
    return str(number) if text.endswith("...") else text
