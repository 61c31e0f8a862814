"""The time that a draw takes, and whether it says how large the noise was."""

from __future__ import annotations

import time
from dataclasses import dataclass
from fractions import Fraction
from math import comb

import numpy as np
from numpy.typing import NDArray

from lastbit.audit.attacks.trial import Floats, Trial
from lastbit.audit.bounds import DEFAULT_ERROR
from lastbit.audit.result import Verdict
from lastbit.audit.targets.target import Target, checked
from lastbit.errors import InvalidParameter
from lastbit.exact import Number, rounded_up

WARM_UP = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependence:
    """How two columns hang together: Spearman's coefficient, and an exact bound against chance."""

    spearman: float
    chance: Fraction


NOTHING_SAID = Dependence(spearman=0.0, chance=Fraction(1))


def timing(target: Target, *, samples: int = 10_000, error: Number = DEFAULT_ERROR) -> Verdict:
    """Looks for a draw whose time depends on how large the noise is.

    Law      one release of the first value at a time, on the clock; the size is abs(output - value)
    Theorem  if the noise is independent of the time, `dependence` gives a chance of at most
             `error` with probability at most `error`, however the machine's speed drifts
    Breaks   samplers by rejection or by counting trials: diffprivlib's GaussianDiscrete, OpenDP's
             and PyDP's Laplace; ours where noise is refined one at a time: see docs/attacks.md
    Resists  noise that was drawn before anybody asked
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
    outputs, times = _clocked(target, trial.samples)
    sizes = np.abs(outputs - value)
    said = ~np.isnan(sizes)  # a withheld answer has no noise; what remains is exchangeable still
    found = dependence(times[said], sizes[said]) if said.any() else NOTHING_SAID
    broken = found.chance <= trial.error
    return Verdict(
        name=trial.name,
        target=target.name,
        broken=broken,
        epsilon_lower=0.0,
        claimed=None,
        error=trial.error,
        samples=trial.samples,
        seconds=trial.seconds,
        witness=(
            f"time and size of the noise {'go together' if broken else 'show no connection'}: "
            f"Spearman {found.spearman:.2f}"
        ),
        details={
            "Spearman": f"{found.spearman:.3f}",
            "chance if independent": f"at most {rounded_up(found.chance, 2)}",
        },
    )


def _clocked(target: Target, count: int) -> tuple[Floats, Floats]:
    times, outputs = np.empty(count), np.empty(count)
    release, value = target.release, target.values[0]
    for _ in range(WARM_UP):
        release(value, 1)
    for index in range(count):
        begin = time.perf_counter_ns()
        output = release(value, 1)
        times[index] = time.perf_counter_ns() - begin
        outputs[index] = checked(output, 1)[0]
    return outputs, times


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
    slow, large = _upper_half(times), _upper_half(sizes)
    both = int((slow & large).sum())
    chance = _two_tails(both, len(times), int(slow.sum()), int(large.sum()))
    return Dependence(spearman=spearman(times, sizes), chance=chance)


def _upper_half(column: Floats) -> NDArray[np.bool_]:
    """What is above the median, the lower one of two: no sum that could overflow."""
    upper: NDArray[np.bool_] = column > np.sort(column)[(len(column) - 1) // 2]
    return upper


def spearman(first: Floats, second: Floats) -> float:
    """The correlation of the ranks, ties at their middle; 0 where a column is constant."""
    ranks = [_ranks(column) for column in (first, second)]
    centred = [rank - rank.mean() for rank in ranks]
    size = float(np.sqrt((centred[0] ** 2).sum() * (centred[1] ** 2).sum()))
    return float((centred[0] * centred[1]).sum()) / size if size else 0.0


def _ranks(column: Floats) -> NDArray[np.float64]:
    _, index, counts = np.unique(column, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    middle: NDArray[np.float64] = (ends - (counts - 1) / 2)[index]
    return middle


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
