"""Attacks as they were asked for on the command line: on whom, how many samples, and the error."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

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
from lastbit.cli.audit_subject import subject_of
from lastbit.cli.progress_bar import progress_bar
from lastbit.cli.verify_loading import named
from lastbit.errors import InvalidParameter
from lastbit.exact import probability

AnyTarget: TypeAlias = Target | SumTarget
SECONDS = 5.0  # about as long as one attack may draw, unless --samples says how many
LEAST, LOOK = 400, 100
# What suits a mechanism of usual speed; sums are of up to a million records.
USUAL = 10_000
FORKS = 200  # every sample of that attack is a process
VALUE_SAMPLES = (("threshold", 100_000), ("fork", FORKS))
SUM_SAMPLES = (("narrow-sum", 400), ("reordering", 400))


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What is said of a function on the command line."""

    epsilon: Fraction | None
    delta: Fraction | None
    answers: tuple[Fraction, Fraction] | None
    scale: Fraction | None
    step: Fraction | None


@dataclass(frozen=True, slots=True)
class NotTried:
    """An attack that gave no verdict on a target, and why."""

    attack: str
    target: str
    reason: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """Every verdict, what was not tried, and the error of all together."""

    verdicts: tuple[Verdict, ...]
    not_tried: tuple[NotTried, ...]
    error: Fraction

    @property
    def broken(self) -> tuple[Verdict, ...]:
        """The certified violations."""
        return tuple(verdict for verdict in self.verdicts if verdict.broken)


def targets_of(name: str, told: Told) -> tuple[AnyTarget, ...]:
    """The targets of a library, or one made of somebody's function."""
    if ":" not in name:
        if name not in LIBRARIES:
            raise InvalidParameter(
                "--target",
                problem="is no library that is known here",
                remedy=f"pass one of {', '.join(LIBRARIES)}, or your own as module:function",
            )
        _only_for_functions(told)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of other libraries, while they are imported
            return targets(name)
    found = named(name)
    if isinstance(found, Target | SumTarget):
        _only_for_functions(told)
        return (found,)
    return (_made(name, found, told),)


def _made(name: str, found: Any, told: Told) -> Target:
    if told.epsilon is None:
        raise InvalidParameter(
            "--epsilon",
            problem="is missing",
            remedy="pass the loss that your function claims for two neighbouring inputs",
        )
    release = subject_of(name, found).release
    if release is None:
        raise InvalidParameter(
            "--target", problem="releases nothing", remedy="name a function(value)"
        )
    first, second = (Fraction(0), Fraction(1)) if told.answers is None else told.answers
    if first == second:
        raise InvalidParameter(
            "--answers", problem="are equal", remedy="pass two different neighbours"
        )
    return Target(
        name=name,
        release=release,
        claimed=told.epsilon,
        sensitivity=abs(first - second),
        delta=told.delta or 0,
        values=(_plain(first), _plain(second)),
        scale=None if told.scale is None else float(told.scale),
        step=told.step,
    )


def _plain(number: Fraction) -> int | float:
    """A whole number as an int, any other as a float that is exactly it."""
    if number.denominator == 1:
        return int(number)
    nearest = float(number)
    if Fraction(nearest) != number:
        raise InvalidParameter(
            "--answers",
            problem="are no floats",
            remedy="pass numbers that a float is exactly, such as 0.5 or 3",
        )
    return nearest


def _only_for_functions(told: Told) -> None:
    for option in ("epsilon", "delta", "answers", "scale", "step"):
        if getattr(told, option) is not None:
            raise InvalidParameter(
                f"--{option}",
                problem="is said of a function of your own only",
                remedy="leave it out: these targets say it themselves",
            )


def tried(
    name: str, found: Sequence[AnyTarget], *, samples: int | None, error: Fraction
) -> Outcome:
    """Run one attack or all on all targets; each has an equal share of the error.

    Theorem  each verdict is wrong with probability at most error/n, so any of the n is wrong with
             probability at most error (union bound)
    """
    chosen = list(ATTACKS.values()) if name == "all" else [attack_named(name)]
    _check_error(error)
    runs = [(attack, target) for target in found for attack in chosen if attack.suits(target)]
    if not runs:
        raise InvalidParameter(
            "--target", problem=_unsuited(chosen, found), remedy=_needed(chosen, found)
        )
    share = error / len(runs)
    verdicts: list[Verdict] = []
    failed = _left_out(chosen, found)
    with progress_bar() as tell:
        for done, (attack, target) in enumerate(runs):
            tell(done / len(runs), f"{attack.name} on {target.name}")
            try:
                verdicts.append(_one(attack, target, samples, share))
            except Exception as failure:  # what one target does must not stop the others
                if len(runs) == 1:
                    raise
                reason = f"{type(failure).__name__}: {failure}"
                failed.append(NotTried(attack.name, target.name, " ".join(reason.split())[:120]))
    if not verdicts:
        raise InvalidParameter(
            "--target",
            problem=f"raises an error in every attack, such as {failed[-1].reason}",
            remedy="make it answer the two values of --answers",
        )
    return Outcome(tuple(verdicts), tuple(failed), error)


def _one(attack: Attack, target: AnyTarget, samples: int | None, error: Fraction) -> Verdict:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        count = _affordable(attack, target) if samples is None else samples
        if attack.name == "fork":
            count = min(count, FORKS)
        return run_attack(attack.name, target, samples=count, error=error)


def _affordable(attack: Attack, target: AnyTarget) -> int:
    """As many as a few seconds allow, and no more than the attack needs."""
    if isinstance(target, SumTarget):
        return dict(SUM_SAMPLES).get(attack.name, 1000)
    most = dict(VALUE_SAMPLES).get(attack.name, USUAL)
    if most <= LEAST:
        return most
    start = time.perf_counter()
    target.draw(0, LOOK)
    pace = max((time.perf_counter() - start) / LOOK, 1e-9)
    return max(LEAST, min(most, int(SECONDS / pace)))


def _left_out(chosen: Sequence[Attack], found: Sequence[AnyTarget]) -> list[NotTried]:
    """Attacks that a function would suit if more were said of it."""
    return [
        NotTried(attack.name, target.name, _missing(attack, target))
        for target in found
        for attack in chosen
        if len(found) == 1 and not attack.suits(target)
    ]


def _missing(attack: Attack, target: AnyTarget) -> str:
    if attack.sums or isinstance(target, SumTarget):
        return f"attacks {needs_of(attack)}"
    lacking = [need for need in attack.needs if getattr(target, need) is None]
    return f"needs {' and '.join(f'--{need}' for need in lacking)}"


def _unsuited(chosen: Sequence[Attack], found: Sequence[AnyTarget]) -> str:
    if len(chosen) == 1:
        return f"does not suit the attack {chosen[0].name}"
    return "suits no attack" if found else "has nothing to attack"


def _needed(chosen: Sequence[Attack], found: Sequence[AnyTarget]) -> str:
    if len(chosen) > 1:
        return "name a function of a number"
    attack = chosen[0]
    if attack.sums:
        return "name a SumTarget of your own (help(lastbit.audit.SumTarget)), or a library"
    lacking = [n for n in attack.needs if any(getattr(t, n, None) is None for t in found)]
    return f"pass {' and '.join(f'--{need}' for need in lacking)}"


def needs_of(attack: Attack) -> str:
    """What a target must be, or say."""
    if attack.sums:
        return f"{' or '.join(attack.sums)} sums"
    known = [f"--{need}" for need in attack.needs if need != "answers"]  # numbers are their own
    return f"numbers, with {' and '.join(known)}" if known else "numbers"


def _check_error(error: Fraction) -> None:
    probability(error, "--error", zero=False, one=False, remedy="pass, say, 1e-6")
