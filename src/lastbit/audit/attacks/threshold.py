"""The threshold test: a cut through the outputs, chosen on some samples and tried on others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lastbit.audit.attacks.trial import Floats, Trial
from lastbit.audit.bounds import DEFAULT_ERROR
from lastbit.audit.result import Verdict
from lastbit.audit.targets.target import Target
from lastbit.exact import Number

MOST_CUTS = 512
CAUTION = 6.0  # standard deviations by which a cut is marked down on the training samples


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """The event y > place, or y <= place, which is likelier in the world `likely`."""

    place: float
    above: bool
    likely: int

    def event(self, outputs: Floats) -> NDArray[np.bool_]:
        """Which outputs lie on the likely side."""
        over: NDArray[np.bool_] = outputs > self.place
        return over if self.above else ~over

    def __str__(self) -> str:
        return f"output > {self.place!r}" if self.above else f"output <= {self.place!r} or NaN"


def threshold(
    target: Target,
    *,
    samples: int = 100_000,
    error: Number = DEFAULT_ERROR,
    cut: Cut | None = None,
) -> Verdict:
    """Looks for a cut that one value is on the one side of too often: too little noise.

    Law      the event y > c or y <= c; the cut is chosen on a fifth of the samples, or given by
             who knows the law of the outputs: then all samples count
    Theorem  the cut does not depend on the samples that are counted, so the bound is true. For
             Laplace noise the cut at one of the values attains the whole loss
    Breaks   a wrong scale, a wrong sensitivity, anything that shifts or narrows the noise
    Resists  every mechanism whose noise is as wide as it claims, whatever its bits
    Source   Ding, Wang, Wang, Zhang, Kifer 2018 (StatDP), for this one shape of event
    Checked  tests/audit/attacks/test_threshold.py

    >>> bare = Target(name="bare", release=lambda value, size: [value] * size, claimed=1)
    >>> threshold(bare, samples=1000).broken
    True
    """
    trial = Trial("threshold", target, samples=samples, error=error, least=20)
    count = trial.samples
    train = 0 if cut is not None else count // 10
    if cut is None:
        cut = best_cut(target.draw(0, train), target.draw(1, train), trials=count // 2 - train)
    told = f"{cut} is too much likelier for the {'second' if cut.likely else 'first'} value"
    return trial.verdict(cut.event, likely=cut.likely, witness=lambda seen: told, trained=train)


def best_cut(first: Floats, second: Floats, *, trials: int) -> Cut:
    """The cut that promises most for `trials` trials, as far as these samples tell.

    NaN counts as not above any cut, so the cut at minus infinity asks whether there is an answer at
    all. The choice may be as poor as it likes: it is tried afterwards.

    >>> str(best_cut(np.zeros(9), np.ones(9), trials=9))
    'output <= 0.5 or NaN'
    >>> str(best_cut(np.full(9, np.nan), np.ones(9), trials=9))
    'output <= -inf or NaN'
    """
    pooled = np.unique(np.concatenate([first, second]))
    pooled = pooled[np.isfinite(pooled)]
    middle = pooled[:-1] / 2 + pooled[1:] / 2  # in this order nothing overflows
    between = np.where((pooled[:-1] <= middle) & (middle < pooled[1:]), middle, pooled[:-1])
    places = np.concatenate([[-np.inf], between, pooled[-1:]])
    if len(places) > MOST_CUTS:
        places = places[np.linspace(0, len(places) - 1, MOST_CUTS).astype(np.int64)]
    over = [_share_above(outputs, places) for outputs in (first, second)]
    best, found = -np.inf, Cut(place=float(places[0]), above=True, likely=0)
    for likely in (0, 1):
        for above in (False, True):
            shares = [share if above else 1 - share for share in over]
            scores = _promise(shares[likely], shares[1 - likely], len(first), trials)
            index = int(np.argmax(scores))
            if scores[index] > best:
                best = float(scores[index])
                found = Cut(place=float(places[index]), above=above, likely=likely)
    return found


def _share_above(outputs: Floats, places: Floats) -> Floats:
    numbers = np.sort(outputs[~np.isnan(outputs)])
    above: Floats = (len(numbers) - np.searchsorted(numbers, places, side="right")) / len(outputs)
    return above


def _promise(likely: Floats, other: Floats, seen: int, trials: int) -> Floats:
    """About the logarithm of the ratio that `trials` trials would prove; a guess."""
    room = CAUTION**2 * (1 / seen + 1 / trials) / 2
    low = likely + room - np.sqrt(2 * room * likely + room**2)
    high = other + room + np.sqrt(2 * room * other + room**2)
    guess: Floats = np.log(np.maximum(low, 1e-300)) - np.log(high)
    return guess
