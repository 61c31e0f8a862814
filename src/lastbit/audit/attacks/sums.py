"""What the attacks on sums share: pairs of data sets, a training round, a round that counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from lastbit.audit.attacks.threshold import Cut, best_cut
from lastbit.audit.attacks.trial import Floats, Tally, Trial
from lastbit.audit.result import Verdict
from lastbit.audit.targets.target import Bounds, SumTarget, checked
from lastbit.errors import InvalidParameter
from lastbit.exact import Number


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two neighbouring data sets and why they should be told apart."""

    first: NDArray[Any]
    second: NDArray[Any]
    why: str


def needs(target: SumTarget, *kinds: str) -> None:
    """Refuse a target that does not take such records."""
    if target.dtype.name not in kinds:
        raise InvalidParameter(
            "target",
            problem=f"sums {target.dtype.name} records",
            remedy=f"this attack needs a target that sums {' or '.join(kinds)}",
        )


def attacked(
    target: SumTarget,
    pairs: Sequence[Pair],
    bounds: Bounds,
    *,
    name: str,
    samples: int,
    error: Number,
    details: Mapping[str, str] | None = None,
) -> Verdict:
    """Choose a pair and a cut on some of the samples, then count on the others.

    Theorem  the pair and the cut depend on the training samples alone, so the counts that follow
             are binomial and the bound is true (`bounds.py`)

    A target that raises an error on such data is not broken: it released nothing. The error
    itself may tell its caller something, and the verdict says so. What is no list of numbers was
    no refusal, and is an error here.
    """
    trial = Trial(name, target, samples=samples, error=error, least=40)
    train = max(4, trial.samples // (10 * len(pairs)))
    rest = trial.samples // 2 - train * len(pairs)
    try:
        trained = [_trained(target, pair, bounds, train) for pair in pairs]
        pair, cut, _ = max(trained, key=lambda found: found[2])
        tried = [_drawn(target, data, bounds, rest) for data in (pair.first, pair.second)]
    except _Refusal as refusal:
        return Verdict(
            name=name,
            target=target.name,
            broken=False,
            epsilon_lower=0.0,
            claimed=target.claimed,
            error=trial.error,
            samples=0,
            seconds=trial.seconds,
            witness=f"the target refuses such data with {refusal}: nothing is released",
            details={"note": "that it refused is itself an answer; do not publish it"},
        )
    hits = [int(cut.event(outputs).sum()) for outputs in tried]
    counted = Tally(
        hits=hits[cut.likely], trials=rest, other_hits=hits[1 - cut.likely], other_trials=rest
    )
    return trial.judged(
        counted,
        witness=f"{pair.why}; {cut} tells them apart",
        samples=2 * (rest + train * len(pairs)),
        details=details,
    )


class _Refusal(Exception):
    """The target raised something: its name is the message."""


def _drawn(target: SumTarget, data: NDArray[Any], bounds: Bounds, size: int) -> Floats:
    try:
        outputs = target.release(data, bounds, size)
    except Exception as raised:  # whatever a target raises, it did not release
        raise _Refusal(type(raised).__name__) from None
    return checked(outputs, size)


def _trained(target: SumTarget, pair: Pair, bounds: Bounds, train: int) -> tuple[Pair, Cut, float]:
    drawn = [_drawn(target, data, bounds, train) for data in (pair.first, pair.second)]
    cut = best_cut(drawn[0], drawn[1], trials=train)
    shares = [float(cut.event(outputs).mean()) for outputs in drawn]
    return pair, cut, shares[cut.likely] - shares[1 - cut.likely]
