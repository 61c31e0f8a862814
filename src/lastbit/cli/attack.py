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
from lastbit.cli.options import Group, json_option, option, refusal
from lastbit.cli.output import Columns, Facts, Heading, Part, Words, show, show_json, waiting
from lastbit.errors import InvalidParameter
from lastbit.exact import exact_text, probability, rounded_down

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


@click.group(cls=Group, epilog="Example: lastbit attack run precision --target numpy")
def attack() -> None:
    """Known ways in which noise fails, tried on anybody's."""


@attack.command("list", epilog="Example: lastbit attack list")
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
        Words("Try one: lastbit attack run precision --target numpy"),
    )


@attack.command(epilog="Example: lastbit attack run all --target module:function --epsilon 1")
@click.argument("name", metavar="NAME|all")
@option(
    "--target",
    "What is attacked: numpy, diffprivlib, opendp, pydp, tumult, lastbit, or your own.",
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
    releases at once; the module is looked for as Python does, and in the current folder. Its code
    is run: name only modules that you would run. A Target or SumTarget of lastbit.audit can be
    named, too.

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


# ---------------------------------------------------------------- on whom


def targets_of(name: str, said: Mapping[str, Any]) -> tuple[AnyTarget, ...]:
    """The targets of a library, or one made of somebody's function and what is said of it."""
    if ":" not in name:
        if name not in LIBRARIES:
            raise refusal(
                "--target",
                "is not a library that is known here",
                f"pass one of {', '.join(LIBRARIES)}, or your own as module:function",
            )
        _only_for_functions(said)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of other libraries, while they are imported
            return targets(name)
    found = named(name)
    if isinstance(found, Target | SumTarget):
        _only_for_functions(said)
        return (found,)
    return (_made(name, found, **said),)


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
        raise refusal(
            "--epsilon",
            "is missing",
            "pass the loss that your function claims for two neighbouring inputs",
        )
    release = subject_of(name, found).release
    if release is None:
        raise refusal("--target", "releases nothing", "name a function(value)")
    first, second = (Fraction(0), Fraction(1)) if answers is None else answers
    if first == second:
        raise refusal("--answers", "are equal", "pass two different neighbours")
    return Target(
        name=name,
        release=release,
        claimed=epsilon,
        sensitivity=abs(first - second),
        delta=delta or 0,
        values=(_plain(first), _plain(second)),
        scale=None if scale is None else float(scale),
        step=step,
    )


def _plain(number: Fraction) -> int | float:
    """A whole number as an int, any other as a float that is exactly it."""
    if number.denominator == 1:
        return int(number)
    nearest = float(number)
    if Fraction(nearest) != number:
        raise refusal(
            "--answers", "are not floats", "pass numbers that a float is exactly, such as 0.5 or 3"
        )
    return nearest


def _only_for_functions(said: Mapping[str, Any]) -> None:
    for name, value in said.items():
        if value is not None:
            raise refusal(
                f"--{name}",
                "is said of a function of your own only",
                "leave it out: these targets say it themselves",
            )


# ---------------------------------------------------------------- runs


@dataclass(frozen=True, slots=True)
class Outcome:
    """Every verdict; attack, target and reason where there is none; the error of all together."""

    verdicts: tuple[Verdict, ...]
    not_tried: tuple[tuple[str, str, str], ...]
    error: Fraction

    @property
    def broken(self) -> tuple[Verdict, ...]:
        """The certified violations."""
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
    failed = [  # attacks that a function would suit if more were said of it
        (attack.name, target.name, _missing(attack, target))
        for target in found
        for attack in chosen
        if len(found) == 1 and not attack.suits(target)
    ]
    with waiting() as tell:
        for done, (attack, target) in enumerate(runs):
            tell(done / len(runs), f"{attack.name} on {target.name}")
            try:
                verdicts.append(_verdict(attack, target, samples, error / len(runs)))
            except Exception as failure:  # what one target does must not stop the others
                if len(runs) == 1:
                    raise
                reason = f"{type(failure).__name__}: {failure}"
                failed.append((attack.name, target.name, " ".join(reason.split())[:120]))
    if not verdicts:
        raise refusal(
            "--target",
            f"raises an error in every attack, such as {failed[-1][2]}",
            "make it answer the two values of --answers",
        )
    return Outcome(tuple(verdicts), tuple(failed), error)


def _verdict(attack: Attack, target: AnyTarget, samples: int | None, error: Fraction) -> Verdict:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        count = _affordable(attack, target) if samples is None else samples
        if attack.name == "fork":
            count = min(count, FORKS)
        return run_attack(attack.name, target, samples=count, error=error)


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


def _missing(attack: Attack, target: AnyTarget) -> str:
    if attack.sums or isinstance(target, SumTarget):
        return f"attacks {_suited(attack)}"
    lacking = [f"--{need}" for need in attack.needs if getattr(target, need) is None]
    return f"needs {' and '.join(lacking)}"


def _unsuited(chosen: Sequence[Attack], found: Sequence[AnyTarget]) -> InvalidParameter:
    if len(chosen) > 1:
        problem = "suits no attack" if found else "has nothing to attack"
        remedy = "name a function of a number"
    else:
        problem = f"does not suit the attack {chosen[0].name}"
        needs = chosen[0].needs
        lacking = [f"--{n}" for n in needs if any(getattr(t, n, None) is None for t in found)]
        remedy = f"pass {' and '.join(lacking)}"
        if chosen[0].sums:
            remedy = "name a SumTarget of your own (help(lastbit.audit.SumTarget)), or a library"
    return refusal("--target", problem, remedy)


# ---------------------------------------------------------------- words


def _page(outcome: Outcome, name: str, target: str) -> list[Part]:
    count, broken = len(outcome.verdicts), outcome.broken
    word = f"{len(broken)} of {count} broken" if broken else f"{count} resisted"
    title = f"{'All attacks' if name == 'all' else f'The attack {name}'} on {target}"
    parts: list[Part] = [Heading(title, word, good=not broken)]
    if count == 1:
        parts.append(Facts(_facts(outcome.verdicts[0])))
    else:
        rows = [(v.name, v.target, _claimed(v), _least(v), _word(v)) for v in outcome.verdicts]
        headings = ("attack", "target", "claimed ε", "ε at least", "")
        parts.append(Columns(headings, rows, numbers=(2, 3)))
        if broken:
            parts.append(Facts([(v.name, f"{v.target}: {v.witness}") for v in broken]))
    if outcome.not_tried:
        parts.append(Columns(("not tried", "target", "why"), outcome.not_tried))
    return [*parts, Words(CERTIFIED.format(exact_text(outcome.error))), Words(RESISTED)]


def _facts(verdict: Verdict) -> list[tuple[str, str]]:
    facts = [(verdict.name, f"{_word(verdict)}: {verdict.target}")]
    if verdict.claimed is not None:
        facts.append(("ε at least", f"{_least(verdict)}, claimed {_claimed(verdict)}"))
    facts += [("witness", verdict.witness), *verdict.details.items()]
    facts.append(("samples", f"{verdict.samples:,} in {verdict.seconds:.1f} s"))
    return facts


def _word(verdict: Verdict) -> str:
    return "BROKEN" if verdict.broken else "resisted"


def _claimed(verdict: Verdict) -> str:
    if verdict.claimed is None:
        return "-"
    exact = exact_text(verdict.claimed)
    # forty digits of a rational help no reader
    return exact if len(exact) <= 10 else f"{float(verdict.claimed):.6g}"


def _least(verdict: Verdict) -> str:
    """The bound rounded down, with as many digits as it takes to be seen above the claim."""
    if verdict.claimed is None:
        return "-"
    for digits in range(4, 18):
        bound = rounded_down(verdict.epsilon_lower, digits)
        if not verdict.broken or bound == "∞" or Fraction(bound) > verdict.claimed:
            break
    return bound
