"""What the attacks share: two worlds, one event fixed beforehand, and exact counting.

An attack on a `Target` fixes an event, a set of outputs, before it draws the samples that count.
Then it releases both values equally often and bounds epsilon from the two counts. Whatever the
event is, the bound is true (`bound.py`): a clever event makes it large, a silly one makes it 0, and
none makes it false. That is why these attacks cannot accuse a correct mechanism except with the
probability `error`, on any target, also one they were never meant for.

One premise is the target's own: that its releases are independent. A mechanism that draws its noise
once and repeats the answer for ever must be made anew for every release.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lastbit.audit.bounds import epsilon_lower
from lastbit.audit.targets.target import SumTarget, Target
from lastbit.audit.verdict import Verdict, exceeds
from lastbit.errors import InvalidParameter
from lastbit.exact import Number, probability

Floats: TypeAlias = NDArray[np.float64]
Event: TypeAlias = Callable[[Floats], NDArray[np.bool_]]
DEFAULT_ERROR = Fraction(1, 10**6)
BLOCK = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How often the event happened in the world where it is likely, and in the other one."""

    hits: int
    trials: int
    other_hits: int
    other_trials: int
    example: float | None = None

    @property
    def shares(self) -> str:
        """Both frequencies, for people."""
        return f"{self.hits / self.trials:.3g} against {self.other_hits / self.other_trials:.3g}"


def tally(target: Target, event: Event, *, samples: int, likely: int, group: int = 1) -> Tally:
    """Release both values `samples // 2` times and count the event, block by block.

    With `group` = 2 the event looks at pairs of releases made one after the other, and a pair is
    one trial.
    """
    each = samples // 2 // group
    counts, example = [0, 0], None
    for world in (likely, 1 - likely):
        done = 0
        while done < each:
            now = min(BLOCK, each - done)
            drawn = target.draw(world, now * group)
            met = event(drawn)
            counts[world] += int(met.sum())
            if world == likely and example is None and met.any():
                example = float(drawn[int(np.argmax(met)) * group])
            done += now
    return Tally(
        hits=counts[likely],
        trials=each,
        other_hits=counts[1 - likely],
        other_trials=each,
        example=example,
    )


def judged(
    target: Target | SumTarget,
    counted: Tally,
    *,
    name: str,
    error: Number,
    witness: str,
    samples: int,
    seconds: float,
    details: Mapping[str, str] | None = None,
    releases: int = 1,
) -> Verdict:
    """The verdict that these counts prove.

    `releases` is how many releases one trial saw: they compose, and the claim is multiplied. With a
    delta, k releases have the claim (k epsilon, k delta).
    """
    allowed = error_rate(error)
    lower = epsilon_lower(
        counted.hits,
        counted.trials,
        counted.other_hits,
        counted.other_trials,
        delta=min(Fraction(1), releases * target.delta),
        error=allowed,
    )
    claimed = releases * target.claimed
    more = {"event seen": counted.shares} | dict(details or {})
    if target.delta:
        more["delta of the claim"] = f"{float(releases * target.delta):.3g}"
    return Verdict(
        name=name,
        target=target.name,
        broken=exceeds(lower, claimed),
        epsilon_lower=lower,
        claimed=claimed,
        error=allowed,
        samples=samples,
        seconds=seconds,
        witness=witness if exceeds(lower, claimed) else f"not shown: {witness}",
        details=more,
    )


def error_rate(error: Number) -> Fraction:
    """The rate of false accusations, refused before anything is drawn if it is none.

    >>> error_rate("1e-6")
    Fraction(1, 1000000)
    """
    return probability(error, "error", zero=False, one=False, remedy='pass, say, "1e-6"')


def numbers(target: Target) -> tuple[float, float]:
    """The two answers without noise, refused if they are no numbers."""
    if target.answers is None:
        raise InvalidParameter(
            "target",
            problem="does not say its answers without noise",
            remedy="pass Target(..., answers=(first, second))",
        )
    return target.answers


def seconds_since(start: float) -> float:
    """Seconds since a reading of time.perf_counter."""
    return time.perf_counter() - start
