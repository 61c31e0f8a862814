"""What the attacks share: two worlds, one event fixed beforehand, and exact counting.

An attack on a `Target` fixes an event, a set of outputs, before it draws the samples that count.
Then it releases both values equally often and bounds epsilon from the two counts. The bound is true
whatever the event is (`bounds.py`): a clever event makes it large, a silly one makes it 0. So these
attacks accuse a correct mechanism with probability at most `error`, on any target.

One premise is the target's own: its releases are independent. A mechanism that draws its noise once
and repeats the answer must be made again for every release.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lastbit.audit.bounds import DEFAULT_ERROR, epsilon_lower, error_rate, exceeds
from lastbit.audit.result import Counted, Verdict
from lastbit.audit.targets.target import SumTarget, Target, sample_size
from lastbit.errors import InvalidParameter
from lastbit.exact import Number, probability, rational, tail_surely_at_most, whole

Floats: TypeAlias = NDArray[np.float64]
OutputSet: TypeAlias = Callable[[Floats], NDArray[np.bool_]]
BLOCK = 1 << 16
_KNOWLEDGE = MappingProxyType(
    {"answers": "answers without noise", "scale": "scale", "step": "grid"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally(Counted):
    """How often the event happened in the world where it is likely, and in the other one."""

    example: float | None = None


class Trial:
    """One attack on one target: its parameters, checked before anything is drawn, and its clock.

    >>> same = Target(name="bare", release=lambda value, size: [value] * size, claimed=1)
    >>> Trial("equality", same, samples=1000, error="1e-6").verdict(
    ...     lambda outputs: outputs == 0, likely=0, witness=lambda seen: f"{seen} is 0").broken
    True
    """

    def __init__(
        self, name: str, target: Target | SumTarget, *, samples: int, error: Number, least: int = 2
    ) -> None:
        self.name, self.target = name, target
        self.samples, self.error = sample_size(samples, least=least), error_rate(error)
        self._start = time.perf_counter()

    def knows(self, field: str) -> Any:
        """What the target says of itself, refused if it does not."""
        known = getattr(self.target, field)
        if known is None:
            example = "(first, second)" if field == "answers" else "..."
            raise InvalidParameter(
                "target",
                problem=f"does not say its {_KNOWLEDGE[field]}",
                remedy=f"pass Target(..., {field}={example})",
            )
        return known

    def verdict(
        self,
        event: OutputSet,
        *,
        likely: int,
        witness: Callable[[float | None], str],
        trained: int = 0,
        group: int = 1,
        details: Mapping[str, str] | None = None,
    ) -> Verdict:
        """Count the event in what is left of the samples, and judge by the counts.

        `trained` releases of each value were drawn to choose the event. With `group` = 2 the event
        looks at pairs of releases made one after the other, and a pair is one trial.
        """
        assert isinstance(self.target, Target)
        trials = (self.samples - 2 * trained) // 2 // group
        found = tally(self.target, event, trials=trials, likely=likely, group=group)
        return self.judged(
            found,
            witness=witness(found.example),
            samples=2 * (trained + group * trials),
            releases=group,
            details=details,
        )

    def judged(
        self,
        counted: Tally,
        *,
        witness: str,
        samples: int,
        releases: int = 1,
        details: Mapping[str, str] | None = None,
    ) -> Verdict:
        """The verdict that these counts prove.

        `releases` is how many releases one trial saw: they compose, and the claim is multiplied:
        (k epsilon, k delta) for k releases.
        """
        delta, claimed = releases * self.target.delta, releases * self.target.claimed
        lower = epsilon_lower(**counted.counts, delta=min(Fraction(1), delta), error=self.error)
        broken = exceeds(lower, claimed)
        shares = counted.hits / counted.trials, counted.other_hits / counted.other_trials
        more = {"event seen": f"{shares[0]:.3g} against {shares[1]:.3g}"} | dict(details or {})
        if delta:
            more["delta of the claim"] = f"{float(delta):.3g}"
        return self.concluded(
            broken=broken,
            epsilon_lower=lower,
            claimed=claimed,
            samples=samples,
            witness=witness if broken else f"not shown: {witness}",
            details=more,
        )

    def concluded(
        self,
        *,
        broken: bool,
        samples: int,
        witness: str,
        details: Mapping[str, str],
        epsilon_lower: float = 0.0,
        claimed: Fraction | None = None,
    ) -> Verdict:
        """The verdict of this trial, with its names, its error and its time."""
        return Verdict(
            name=self.name,
            target=self.target.name,
            broken=broken,
            epsilon_lower=epsilon_lower,
            claimed=claimed,
            error=self.error,
            samples=samples,
            seconds=time.perf_counter() - self._start,
            witness=witness,
            details=details,
        )


def tally(target: Target, event: OutputSet, *, trials: int, likely: int, group: int = 1) -> Tally:
    """Release both values `trials * group` times and count the event, block by block."""
    counts, example = [0, 0], None
    for world in (likely, 1 - likely):
        for done in range(0, trials, BLOCK):
            drawn = target.draw(world, min(BLOCK, trials - done) * group)
            met = event(drawn)
            counts[world] += int(met.sum())
            if world == likely and example is None and met.any():
                example = float(drawn[int(np.argmax(met)) * group])
    hits = {"hits": counts[likely], "other_hits": counts[1 - likely]}
    return Tally(**hits, trials=trials, other_trials=trials, example=example)


def example_of(seen: float | None) -> str:
    """An output in which the event was seen."""
    return "an output" if seen is None else repr(seen)


# ---------------------------------------------------------------- how many trials it takes


MOST_TRIALS = 1 << 32
START = 0.98  # of what the normal law says
GROWTH = Fraction(103, 100)
WIDER = 1.02


def trials_to_catch(
    likely: Number,
    other: Number,
    *,
    claimed: Number,
    delta: Number = 0,
    error: Number = DEFAULT_ERROR,
    miss: Number = DEFAULT_ERROR,
) -> int:
    """How many trials of each value suffice to accuse a mechanism that breaks its claim.

    Law      the event has probability `likely` under one value and `other` under the other, and
             breaks the claim: likely > e**claimed other + delta. The answer is proved to do
             (`catches`), and some per cent above the least that does where the law is near normal
    Theorem  as for `catches`. An attack that draws for both values needs twice as many samples
    Checked  tests/audit/attacks/test_power.py

    >>> trials_to_catch("3/4", "1/4", claimed=1)                       # ln(3) is just above 1
    52...
    >>> trials_to_catch("1/4", "1/4", claimed=0)
    Traceback (most recent call last):
        ...
    lastbit.errors.InvalidParameter: likely is not above what the claim allows; ...
    """
    p, q = probability(likely, "likely"), probability(other, "other")
    loss, share = rational(claimed, "claimed"), rational(delta, "delta")
    gap = float(p) - math.exp(loss) * float(q) - float(share)
    if not gap > 0:
        raise InvalidParameter(
            "likely",
            problem="is not above what the claim allows",
            remedy="pass an event that breaks the claim",
        )
    far = _normal(rational(error, "error") / 2) + _normal(rational(miss, "miss") / 2)
    spread = math.sqrt(float(p * (1 - p))) + math.exp(loss) * math.sqrt(float(q * (1 - q)))
    trials = max(1, int(START * (far * spread / gap) ** 2))
    while trials <= MOST_TRIALS:
        if catches(trials, p, q, claimed=loss, delta=share, error=error, miss=miss):
            return trials
        trials = int(trials * GROWTH) + 1
    raise InvalidParameter(
        "likely", problem="needs more than 2**32 trials", remedy="pass an event that tells more"
    )


def catches(
    trials: int,
    likely: Number,
    other: Number,
    *,
    claimed: Number,
    delta: Number = 0,
    error: Number = DEFAULT_ERROR,
    miss: Number = DEFAULT_ERROR,
) -> bool:
    """Whether `trials` trials of each value certainly accuse, except with probability `miss`.

    Law      h hits with P[Bin(trials, likely) < h] <= miss/2, o hits with
             P[Bin(trials, other) > o] <= miss/2, and then the bound from h and o is above the claim
    Theorem  `epsilon_lower` rises with the hits of the likely value and falls with the other's. So
             whenever there are at least h and at most o, which fails with probability at most miss
             (union bound), the bound is above the claim. Both tails are checked by balls
    Checked  tests/audit/attacks/test_power.py

    >>> catches(100, "3/4", "1/4", claimed=1), catches(100_000, "3/4", "1/4", claimed=1)
    (False, True)
    """
    count = whole(trials, "trials", least=1)
    p, q = probability(likely, "likely"), probability(other, "other")
    half = probability(miss, "miss") / 2
    hits = count - _seldom_above(count, 1 - p, half)
    other_hits = _seldom_above(count, q, half)
    low = epsilon_lower(hits, count, other_hits, count, delta=delta, error=error)
    return math.isinf(low) or Fraction(low) > rational(claimed, "claimed")


def _seldom_above(trials: int, p: Fraction, chance: Fraction) -> int:
    """A number k with P[Bin(trials, p) > k] <= chance, near the least."""
    if p in (0, 1):
        return trials if p else 0
    mean, spread = float(trials * p), math.sqrt(float(trials * p * (1 - p)))
    far = _normal(chance)
    while True:
        k = min(trials, math.ceil(mean + far * spread + far**2 / 6))
        if k == trials or tail_surely_at_most(k + 1, trials, p, chance):
            return k
        far *= WIDER


def _normal(chance: Fraction) -> float:
    """About how many standard deviations are exceeded with this probability; a guess."""
    return -NormalDist().inv_cdf(max(float(chance), 1e-300))
