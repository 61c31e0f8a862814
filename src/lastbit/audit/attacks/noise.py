"""Attacks on the noise itself: too little of it, the same in two processes, or seen by a clock."""

from __future__ import annotations

import os
import struct
import time
import warnings
from dataclasses import dataclass
from fractions import Fraction
from math import comb

import numpy as np
from numpy.typing import NDArray

from lastbit.audit.attacks.trial import Floats, Tally, Trial
from lastbit.audit.bounds import DEFAULT_ERROR
from lastbit.audit.result import Verdict
from lastbit.audit.targets.target import Target, checked
from lastbit.errors import InvalidParameter
from lastbit.exact import Number, rounded_up

MOST_CUTS = 512
CAUTION = 6.0  # standard deviations by which a cut is marked down on the training samples
WARM_UP = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """The event y > place, or y <= place, which is likelier in the world `likely`."""

    place: float
    above: bool
    likely: int

    def event(self, outputs: Floats) -> NDArray[np.bool_]:
        over: NDArray[np.bool_] = outputs > self.place
        return over if self.above else ~over

    def __str__(self) -> str:
        return f"output > {self.place!r}" if self.above else f"output <= {self.place!r} or NaN"


def threshold(
    target: Target, *, samples: int = 100_000, error: Number = DEFAULT_ERROR, cut: Cut | None = None
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
    over = []
    for outputs in (first, second):
        numbers = np.sort(outputs[~np.isnan(outputs)])
        count = len(numbers) - np.searchsorted(numbers, places, side="right")
        over.append(count / len(outputs))
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


def _promise(likely: Floats, other: Floats, seen: int, trials: int) -> Floats:
    """About the logarithm of the ratio that `trials` trials would prove; a guess."""
    room = CAUTION**2 * (1 / seen + 1 / trials) / 2
    low = likely + room - np.sqrt(2 * room * likely + room**2)
    high = other + room + np.sqrt(2 * room * other + room**2)
    guess: Floats = np.log(np.maximum(low, 1e-300)) - np.log(high)
    return guess


# ---------------------------------------------------------------- forks


def forked(target: Target, *, samples: int = 200, error: Number = DEFAULT_ERROR) -> Verdict:
    """Looks for a child process that repeats its parent's noise.

    Law      the process forks; the parent releases the first value, the child the first one too
             (one world) or the second one (the other world). The event: both outputs are equal
    Theorem  only the child's input differs between the worlds, and the child releases once; if its
             noise is its own, both outputs together reveal at most epsilon. A child with its
             parent's state repeats the noise: equal outputs always, or never. Each fork is a trial
    Breaks   generators seeded, or buffers filled, before the fork: numpy's and what is built on
             it, PyDP's; pools of workers and pre-forking servers do this
    Resists  generators that notice the fork, or ask the system for every draw
    Source   known since OpenSSL's fork bugs; for noise: docs/threat-model.md
    Checked  tests/audit/attacks/test_forked.py

    `samples` counts forks. A mechanism with few different outputs resists longer.

    >>> same = Target(name="bare", release=lambda value, size: [value] * size, claimed=1)
    >>> forked(same, samples=100).broken
    True
    """
    trial = Trial("fork", target, samples=samples, error=error)
    if not hasattr(os, "fork"):
        raise InvalidParameter("target", problem="cannot be forked here", remedy="run it on Linux")
    each = trial.samples // 2
    equal = [sum(_repeats(target, world) for _ in range(each)) for world in (0, 1)]
    return trial.judged(
        Tally(hits=equal[0], trials=each, other_hits=equal[1], other_trials=each),
        witness="a forked process repeats its parent's output if the inputs are equal, else seldom",
        samples=2 * each,
    )


def _repeats(target: Target, world: int) -> bool:
    """Whether a child that releases the value of this world gives the parent's output."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # about threads; the child only draws
        child = os.fork()
    if child == 0:
        try:
            os.write(writer, struct.pack("<d", float(target.draw(world, 1)[0])))
            os._exit(0)
        finally:
            os._exit(1)  # the child never comes back
    os.close(writer)
    try:
        with os.fdopen(reader, "rb") as pipe:
            own = float(target.draw(0, 1)[0])
            sent = pipe.read()
    finally:
        os.waitpid(child, 0)
    if len(sent) != 8:
        raise InvalidParameter(
            "target", problem="fails in a forked process", remedy="audit it without this attack"
        )
    other: float = struct.unpack("<d", sent)[0]
    return other == own


# ---------------------------------------------------------------- clocks


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependence:
    """How two columns hang together: Spearman's coefficient, and an exact bound against chance."""

    spearman: float = 0.0
    chance: Fraction = Fraction(1)


def timing(target: Target, *, samples: int = 10_000, error: Number = DEFAULT_ERROR) -> Verdict:
    """Looks for a draw whose time depends on how large the noise is.

    Law      one release of the first value at a time, on the clock; the size is abs(output - value)
    Theorem  if the noise is independent of the time, `dependence` gives a chance of at most
             `error` with probability at most `error`, however the machine's speed drifts
    Breaks   samplers by rejection or by counting trials: diffprivlib's GaussianDiscrete, OpenDP's
             and PyDP's Laplace; ours where noise is refined one at a time: see docs/attacks.md
    Resists  noise that was drawn before it was asked for
    Source   Jin et al. 2021 (timing of discrete samplers); Ratliff, Vadhan 2024
    Differs  nothing is said about epsilon: time is not part of the output, and `claimed` is None.
             A clock next to the process sees more than one across a network
    Checked  tests/audit/attacks/test_timing.py, on made-up times: no test reads a clock

    >>> bare = Target(name="bare", release=lambda value, size: [value] * size, claimed=1)
    >>> timing(bare, samples=100).broken
    False
    """
    trial = Trial("timing", target, samples=samples, error=error, least=20)
    value, _ = trial.knows("answers")
    times, outputs = np.empty(trial.samples), np.empty(trial.samples)
    release, given = target.release, target.values[0]
    for _ in range(WARM_UP):
        release(given, 1)
    for index in range(trial.samples):
        begin = time.perf_counter_ns()
        output = release(given, 1)
        times[index] = time.perf_counter_ns() - begin
        outputs[index] = checked(output, 1)[0]
    sizes = np.abs(outputs - value)
    said = ~np.isnan(sizes)  # a withheld answer has no noise; what remains is exchangeable still
    found = dependence(times[said], sizes[said]) if said.any() else Dependence()
    broken = found.chance <= trial.error
    connection = "go together" if broken else "show no connection"
    return trial.concluded(
        broken=broken,
        samples=trial.samples,
        witness=f"time and size of the noise {connection}: Spearman {found.spearman:.2f}",
        details={
            "Spearman": f"{found.spearman:.3f}",
            "chance if independent": f"at most {rounded_up(found.chance, 2)}",
        },
    )


def dependence(times: Floats, sizes: Floats) -> Dependence:
    """Spearman's coefficient of two columns, and the exact chance of so uneven a fourfold table.

    Law      count the draws that are slower than the median time and larger than the median size
    Theorem  let the sizes be exchangeable (independent draws are) and independent of the times.
             Given all times and the set of sizes, every assignment is equally likely; both medians
             depend on these sets alone, so the count is hypergeometric. `chance` is twice its
             smaller tail, in exact rationals, hence P[chance <= a] <= a for every a
    Checked  tests/audit/attacks/test_timing.py

    >>> rising = np.arange(100.0)
    >>> found = dependence(rising, rising)
    >>> round(found.spearman, 6), found.chance < Fraction(1, 10**20)
    (1.0, True)
    >>> dependence(rising, np.ones(100)).chance
    Fraction(1, 1)
    """
    if times.shape != sizes.shape or times.ndim != 1 or not len(times):
        raise InvalidParameter(
            "times", problem="and sizes are not two columns", remedy="pass one size for each time"
        )
    # above the median, the lower one of two: no sum that could overflow
    slow, large = (column > np.sort(column)[(len(column) - 1) // 2] for column in (times, sizes))
    both = int((slow & large).sum())
    chance = _two_tails(both, len(times), int(slow.sum()), int(large.sum()))
    return Dependence(spearman=spearman(times, sizes), chance=chance)


def spearman(first: Floats, second: Floats) -> float:
    """The correlation of the ranks, ties at their middle; 0 where a column is constant."""
    centred = []
    for column in (first, second):
        _, index, counts = np.unique(column, return_inverse=True, return_counts=True)
        ranks = (np.cumsum(counts) - (counts - 1) / 2)[index]
        centred.append(ranks - ranks.mean())
    size = float(np.sqrt((centred[0] ** 2).sum() * (centred[1] ** 2).sum()))
    return float((centred[0] * centred[1]).sum()) / size if size else 0.0


def _two_tails(both: int, total: int, slow: int, large: int) -> Fraction:
    """Twice the smaller tail of the hypergeometric law at `both`, at most 1."""
    least, most = max(0, slow + large - total), min(slow, large)
    weight = comb(slow, least) * comb(total - slow, large - least)
    weights = [weight]
    for k in range(least, most):  # each weight is a product of two binomials: the division is exact
        weight = weight * (slow - k) * (large - k) // ((k + 1) * (total - slow - large + k + 1))
        weights.append(weight)
    position = both - least
    smaller = min(sum(weights[: position + 1]), sum(weights[position:]))
    return min(Fraction(1), Fraction(2 * smaller, sum(weights)))
