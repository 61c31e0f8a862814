"""`lastbit attack`: known ways in which noise fails, tried on anybody's."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any, TypeAlias

import click

from lastbit.audit import (
    ATTACKS,
    LIBRARIES,
    Attack,
    SumTarget,
    Target,
    Verdict,
    attack_named,
    run as run_attack,
    targets,
)
from lastbit.cli.loading import foreign_code, named, subject_of
from lastbit.cli.options import group, json_option, option, refusal
from lastbit.cli.output import Columns, Facts, Heading, Part, seen_above, show, show_json, waiting
from lastbit.errors import InvalidParameter
from lastbit.exact import exact_text, probability

AnyTarget: TypeAlias = Target | SumTarget
MOST_SAMPLES = 1 << 32
SECONDS = 5.0  # about as long as one attack may draw, unless --samples says how many
LEAST, LOOK = 400, 100
# What suits a mechanism of usual speed; sums are of up to a million records.
USUAL = 10_000
FORKS = 200  # every sample of that attack is a process
VALUE_SAMPLES: Mapping[str, int] = MappingProxyType({"threshold": 100_000, "fork": FORKS})
SUM_SAMPLES: Mapping[str, int] = MappingProxyType({"narrow-sum": 400, "reordering": 400})
TAKES = "make it answer two numbers, 0 and 1 unless --answers says others"
CERTIFIED = "Broken is certified: all verdicts hold together, except with probability {}."
RESISTED = (
    "Resisting an attack proves nothing: it was this attack, these inputs, this many samples."
)


@group("attack run precision --target numpy")
def attack() -> None:
    """Known ways in which noise fails, tried on anybody's."""


@attack.command("list", example="list")
@json_option
def list_attacks(as_json: bool) -> None:
    """Every attack: what it looks for, its source, what it suits."""
    if as_json:
        names = ("name", "looks_for", "source", "needs", "sums")
        attacks = [{name: getattr(a, name) for name in names} for a in ATTACKS.values()]
        show_json({"attacks": attacks})
        return
    rows = [(a.name, a.looks_for, a.source, _suited(a)) for a in ATTACKS.values()]
    show(
        Heading("Attacks", f"{len(rows)}"),
        Columns(("name", "looks for", "source", "suits"), rows),
        "Try one: lastbit attack run precision --target numpy",
    )


@attack.command(example="run all --target module:function --epsilon 1")
@click.argument("name", metavar="NAME|all")
@option(
    "--target",
    "What is attacked: numpy, lastbit, or your own.",
    "LIBRARY|MODULE:FUNCTION",
    required=True,
)
@option("--epsilon", "The loss that your function claims.")
@option("--delta", "The delta that your function claims.  [default: 0]")
@option(
    "--answers",
    "Two neighbouring inputs of your function, which it adds noise to.  [default: 0 1]",
    nargs=2,
    metavar="A B",
)
@option("--scale", "What your function multiplies its noise by.")
@option("--step", "The grid that the outputs of your function lie on.")
@option(
    "--samples",
    "How many releases each attack may take.  [default: what a few seconds allow]",
    click.IntRange(400, MOST_SAMPLES),
)
@option("--error", "The probability with which any of the verdicts may be wrong.", default="1e-6")
@json_option
@click.pass_context
def run(
    context: click.Context,
    /,
    name: str,
    target: str,
    samples: int | None,
    error: Fraction,
    as_json: bool,
    **said: Any,
) -> None:
    """Try one attack, or all, on a library or on a function of your own.

    Your own is called as function(value), or as function(value, size) if it gives many independent
    releases at once. Python looks for the module as usual, and in the current folder. Its code is
    run: name only modules that you would run. A Target or SumTarget of lastbit.audit can be named,
    too.

    The exit status is 0 if everything resisted, 1 if a violation is certified, 2 if nothing could
    be tried.
    """
    with foreign_code(TAKES):
        outcome = tried(name, targets_of(target, said), samples=samples, error=error)
    if as_json:
        show_json(
            {
                "verdict": "broken" if outcome.broken else "nothing found",
                "error": str(outcome.error),
                "verdicts": [verdict.to_dict() for verdict in outcome.verdicts],
                "not_tried": [
                    dict(zip(("attack", "target", "reason"), row, strict=True))
                    for row in outcome.not_tried
                ],
            }
        )
    else:
        show(*_page(outcome, name, target))
    context.exit(1 if outcome.broken else 0)


def targets_of(name: str, said: Mapping[str, Any]) -> tuple[AnyTarget, ...]:
    """The targets of a library, or one made of somebody's function and what is said of it."""
    found = named(name) if ":" in name else name
    if ":" in name and not isinstance(found, Target | SumTarget):
        return (_made(name, found, **said),)
    if ":" not in name and name not in LIBRARIES:
        remedy = f"pass one of {', '.join(LIBRARIES)}, or your own as module:function"
        raise refusal("--target", "is not a library that is known here", remedy)
    for part, value in said.items():
        if value is not None:
            problem = "is said of a function of your own only"
            raise refusal(f"--{part}", problem, "leave it out: these targets say it themselves")
    if isinstance(found, Target | SumTarget):
        return (found,)
    return targets(name)


def _made(
    name: str,
    found: Any,
    *,
    epsilon: Fraction | None,
    delta: Fraction | None,
    answers: tuple[Fraction, Fraction] | None,
    scale: Fraction | None,
    step: Fraction | None,
) -> Target:
    if epsilon is None:
        remedy = "pass the loss that your function claims for two neighbouring inputs"
        raise refusal("--epsilon", "is missing", remedy)
    release = subject_of(name, found).release
    if release is None:
        raise refusal("--target", "releases nothing", "name a function(value)")
    first, second = answers or (Fraction(0), Fraction(1))
    if first == second:
        raise refusal("--answers", "are equal", "pass two different neighbours")
    values = [int(v) if v.denominator == 1 else float(v) for v in (first, second)]
    if any(Fraction(value) != v for value, v in zip(values, (first, second), strict=True)):
        remedy = "pass numbers that a float is exactly, such as 0.5 or 3"
        raise refusal("--answers", "are not floats", remedy)
    return Target(
        name=name,
        release=release,
        claimed=epsilon,
        sensitivity=abs(first - second),
        delta=delta or 0,
        values=(values[0], values[1]),
        scale=None if scale is None else float(scale),
        step=step,
    )


@dataclass(frozen=True, slots=True)
class Outcome:
    """Every verdict; attack, target and reason where there is none; the error of all together."""

    verdicts: tuple[Verdict, ...]
    not_tried: tuple[tuple[str, str, str], ...]
    error: Fraction

    @property
    def broken(self) -> tuple[Verdict, ...]:
        return tuple(verdict for verdict in self.verdicts if verdict.broken)


def tried(
    name: str, found: Sequence[AnyTarget], *, samples: int | None, error: Fraction
) -> Outcome:
    """Run one attack or all on all targets; each has an equal share of the error.

    Theorem  each verdict is wrong with probability at most error/n, so any of the n is wrong with
             probability at most error (union bound)
    """
    chosen = list(ATTACKS.values()) if name == "all" else [attack_named(name)]
    probability(error, "--error", zero=False, one=False, remedy="pass, say, 1e-6")
    runs = [(attack, target) for target in found for attack in chosen if attack.suits(target)]
    if not runs:
        raise _unsuited(chosen, found)
    verdicts: list[Verdict] = []
    failed = []
    for attack in chosen:  # those that a function would suit if more were said of it
        for target in found if len(found) == 1 and not attack.suits(found[0]) else ():
            of_sums = attack.sums or isinstance(target, SumTarget)
            why = f"attacks {_suited(attack)}" if of_sums else f"needs {_lacking(attack, target)}"
            failed.append((attack.name, target.name, why))
    with waiting() as tell:
        for done, (attack, target) in enumerate(runs):
            tell(done / len(runs), f"{attack.name} on {target.name}")
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    count = _affordable(attack, target) if samples is None else samples
                    count = min(count, FORKS) if attack.name == "fork" else count
                    share = error / len(runs)
                    verdicts.append(run_attack(attack.name, target, samples=count, error=share))
            except Exception as failure:  # what one target does must not stop the others
                if len(runs) == 1:
                    raise
                reason = f"{type(failure).__name__}: {failure}"
                failed.append((attack.name, target.name, " ".join(reason.split())[:120]))
    if not verdicts:
        problem = f"raises an error in every attack, such as {failed[-1][2]}"
        raise refusal("--target", problem, "make it answer the two values of --answers")
    return Outcome(tuple(verdicts), tuple(failed), error)


def _affordable(attack: Attack, target: AnyTarget) -> int:
    """As many as a few seconds allow, and no more than the attack needs."""
    if isinstance(target, SumTarget):
        return SUM_SAMPLES.get(attack.name, 1000)
    most = VALUE_SAMPLES.get(attack.name, USUAL)
    if most <= LEAST:
        return most
    start = time.perf_counter()
    target.draw(0, LOOK)
    pace = max((time.perf_counter() - start) / LOOK, 1e-9)
    return max(LEAST, min(most, int(SECONDS / pace)))


def _suited(attack: Attack) -> str:
    """What a target must be, or say."""
    if attack.sums:
        return f"{' or '.join(attack.sums)} sums"
    known = [f"--{need}" for need in attack.needs if need != "answers"]  # numbers are their own
    return f"numbers, with {' and '.join(known)}" if known else "numbers"


def _lacking(attack: Attack, *found: AnyTarget) -> str:
    needs = (n for n in attack.needs if any(getattr(t, n, None) is None for t in found))
    return " and ".join(f"--{need}" for need in needs)


def _unsuited(chosen: Sequence[Attack], found: Sequence[AnyTarget]) -> InvalidParameter:
    if len(chosen) > 1:
        problem = "suits no attack" if found else "has nothing to attack"
        return refusal("--target", problem, "name a function of a number")
    remedy = f"pass {_lacking(chosen[0], *found)}"
    if chosen[0].sums:
        remedy = "name a SumTarget of your own (help(lastbit.audit.SumTarget)), or a library"
    return refusal("--target", f"does not suit the attack {chosen[0].name}", remedy)


def _page(outcome: Outcome, name: str, target: str) -> list[Part]:
    count, broken = len(outcome.verdicts), outcome.broken
    word = f"{len(broken)} of {count} broken" if broken else f"{count} resisted"
    title = f"{'All attacks' if name == 'all' else f'The attack {name}'} on {target}"
    parts: list[Part] = [Heading(title, word, good=not broken)]
    if count == 1:
        verdict = outcome.verdicts[0]
        claimed, least, word = _words(verdict)
        facts = [(verdict.name, f"{word}: {verdict.target}")]
        if verdict.claimed is not None:
            facts.append(("ε at least", f"{least}, claimed {claimed}"))
        facts += [("witness", verdict.witness), *verdict.details.items()]
        facts.append(("samples", f"{verdict.samples:,} in {verdict.seconds:.1f} s"))
        parts.append(Facts(facts))
    else:
        rows = [(verdict.name, verdict.target, *_words(verdict)) for verdict in outcome.verdicts]
        headings = ("attack", "target", "claimed ε", "ε at least", "")
        parts.append(Columns(headings, rows, numbers=(2, 3)))
        if broken:
            parts.append(Facts([(v.name, f"{v.target}: {v.witness}") for v in broken]))
    if outcome.not_tried:
        parts.append(Columns(("not tried", "target", "why"), outcome.not_tried))
    return [*parts, CERTIFIED.format(exact_text(outcome.error)), RESISTED]


def _words(verdict: Verdict) -> tuple[str, str, str]:
    """The loss that is claimed, the least that it is, and what that comes to."""
    word = "BROKEN" if verdict.broken else "resisted"
    if verdict.claimed is None:
        return "-", "-", word
    claimed = verdict.claimed if verdict.broken else None
    return exact_text(verdict.claimed, 10), seen_above(verdict.epsilon_lower, claimed, 4), word
