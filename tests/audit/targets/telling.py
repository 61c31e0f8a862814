"""What each of our targets gives out with which probability, and the cut that tells most.

The laws are those of the mechanisms themselves, or written down here from their formulas; floats
are off by far less than `MARGIN`, by which the likely event is made less likely and the other more.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from lastbit.audit.attacks.noise import Cut
from lastbit.audit.attacks.trial import trials_to_catch
from lastbit.audit.targets.lastbit import SEEN_DELTA
from lastbit.exact.ball import working_precision
from lastbit.laws.ideal import IdealCauchy, Logistic, StudentT
from lastbit.laws.transformed import Rounded
from lastbit.mechanisms.exponential import Exponential
from lastbit.mechanisms.gaussian import Gaussian
from lastbit.mechanisms.histogram import ThresholdedHistogram
from lastbit.mechanisms.laplace import Laplace
from lastbit.mechanisms.noisy_max import ReportNoisyMax
from lastbit.mechanisms.permute_and_flip import PermuteAndFlip
from lastbit.mechanisms.randomized_response import RandomizedResponse
from lastbit.mechanisms.stable_value import ProposeTestRelease, StableValue
from lastbit.privacy.neighbours import ADD_REMOVE
from tests.audit.targets.own_targets import ANSWER_DELTA, WORSE_AND_BETTER, heavy_score, nearer

MARGIN = Fraction(1, 1000)
MOST_PLACES = 400


@dataclass(frozen=True, kw_only=True)
class Outcomes:
    """P[output > place] for both values, at some places."""

    places: np.ndarray
    first: np.ndarray
    second: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Telling:
    """A cut, and how many trials of each value catch a claim that is a tenth too small."""

    cut: Cut
    trials: int


def telling(outcomes, *, claimed, delta, error, miss):
    """The cut with which a claim is refuted soonest, and when."""
    best, found = math.inf, None
    factor = math.exp(claimed)
    for above in (True, False):
        shares = [s if above else 1 - s for s in (outcomes.first, outcomes.second)]
        for likely in (0, 1):
            p, q = shares[likely] * (1 - float(MARGIN)), shares[1 - likely] * (1 + float(MARGIN))
            gap = p - factor * q - float(delta)
            spread = np.sqrt(p * (1 - p)) + factor * np.sqrt(np.maximum(q * (1 - q), 0))
            with np.errstate(all="ignore"):
                needed = np.where(gap > 0, (spread / gap) ** 2, math.inf)
            i = int(np.argmin(needed))
            if needed[i] < best:
                cut = Cut(place=float(outcomes.places[i]), above=above, likely=likely)
                best, found = float(needed[i]), (cut, float(p[i]), float(q[i]))
    assert found is not None, "no cut refutes a claim that is a tenth too small"
    cut, p, q = found
    trials = trials_to_catch(p, q, claimed=claimed, delta=delta, error=error, miss=miss)
    return Telling(cut=cut, trials=trials)


# ---------------------------------------------------------------- laws as outcomes


def middle(ball):
    """A float near a probability."""
    return float(ball.enclosure.mid())


def listed(outputs):
    """From {output: (probability for the first value, for the second)}."""
    numbers = np.array(sorted(outputs))
    between = np.concatenate([[numbers[0] - 1], (numbers[:-1] + numbers[1:]) / 2])
    masses = np.array([[float(p) for p in outputs[y]] for y in sorted(outputs)])
    above = masses[::-1].cumsum(axis=0)[::-1]
    return Outcomes(places=between, first=above[:, 0], second=above[:, 1])


def by_laws(first, second, *, step=1, lower=1e-4):
    """From two laws on the steps of a grid: cuts half a step above some of them."""
    low = min(law.quantile(lower) for law in (first, second)) - 1
    high = max(law.quantile(1 - lower) for law in (first, second))
    ks = sorted({int(k) for k in np.linspace(low, high, min(MOST_PLACES, high - low + 1))})
    with working_precision(128):
        shares = [[1 - float(law.cumulative(k)) for k in ks] for law in (first, second)]
    places = np.array([float((k + Fraction(1, 2)) * Fraction(step)) for k in ks])
    return Outcomes(places=places, first=np.array(shares[0]), second=np.array(shares[1]))


def of(mechanism, values=(0, 1)):
    """By a mechanism's own laws."""
    first, second = (mechanism.law(value) for value in values)
    if hasattr(first, "step"):
        return by_laws(first.law, second.law, step=first.step)
    return by_laws(first, second)


def cells(scale, step):
    """Ideal Laplace noise about 0 and 1, rounded to a grid."""
    places = (np.arange(-6 / step, 6 / step) + 0.5) * step

    def above(value):
        far = (places - value) / scale
        return np.where(far > 0, np.exp(-np.abs(far)) / 2, 1 - np.exp(-np.abs(far)) / 2)

    return Outcomes(places=places, first=above(0.0), second=above(1.0))


def plane(rate, far, cell, reach):
    """How much nearer a point is to the second place, from the density at the middle of cells.

    `rate` is the loss for one unit of distance; the points beyond `reach` are left out for the
    likely event and counted in the other.
    """
    axis = np.arange(-reach, reach + cell / 2, cell)
    x, y = np.meshgrid(axis, axis)
    points = np.column_stack([x.ravel(), y.ravel()])
    scores = nearer(points, far)
    weights = [
        np.exp(-rate * np.hypot(points[:, 0] - centre, points[:, 1])) for centre in (0.0, far)
    ]
    total = sum_of_plane(rate * cell)
    places = np.linspace(-far, far, MOST_PLACES + 1)[:-1] + far / (10 * MOST_PLACES)
    index = np.searchsorted(places, scores, side="left")  # so many places are below the score
    shares = [
        np.bincount(index, weights=w, minlength=len(places) + 1)[::-1].cumsum()[::-1][1:] / total
        for w in weights
    ]
    missed = 1 - sum(weights[0]) / total
    return Outcomes(places=places, first=shares[0] + missed, second=shares[1])


def sum_of_plane(rate):
    """The sum of exp(-rate abs(x)) over the integer points, to a relative 1e-6 for small rates."""
    return 2 * math.pi / rate**2


def pair_of(probability):
    """A coin that says the truth with this probability."""
    p = Fraction(probability)
    return listed({0: (p, 1 - p), 1: (1 - p, p)})


def one_of(kind):
    """Whether the first of two candidates is chosen."""
    laws = [kind(sensitivity=1, epsilon=1).law(values) for values in WORSE_AND_BETTER]
    first, second = (middle(law.probability(0)) for law in laws)
    return listed({0: (1 - first, 1 - second), 1: (first, second)})


def found_or_not():
    """A key whose count is the threshold, or one more; suppressed counts are NaN."""
    found = ThresholdedHistogram(epsilon=1, delta=ANSWER_DELTA, keys_per_person=1)
    bar = found.threshold
    laws = [found.law(bar + more) for more in (0, 1)]
    shown = {k: tuple(middle(law.probability(k)) for law in laws) for k in range(bar, bar + 40)}
    return listed(shown)


def stable():
    mechanism = StableValue(epsilon=1, delta=ANSWER_DELTA, neighbours=ADD_REMOVE)
    bar = mechanism.threshold
    first, second = (middle(mechanism.release_probability(bar + more)) for more in (0, 1))
    return listed({0: (1 - first, 1 - second), 1: (first, second)})


def proposed():
    """Passed with probability 1/(1+q) or q/(1+q); then 60 more or less, with scale 60."""
    ask = ProposeTestRelease(bounds=[60], epsilon=2, delta="1e-6")
    passed = [middle(ask.release_probabilities([ask.threshold + more])[0]) for more in (0, 1)]
    noise = cells(1.0, 1 / 64)
    return Outcomes(
        places=noise.places * 60, first=noise.first * passed[0], second=noise.second * passed[1]
    )


def heavy(law, degrees):
    """The score of a rounded output, from each step of the grid that is not too far out."""
    step, far = Fraction(1, 16), 60
    ks = np.arange(-far * 16, far * 16 + 1)
    scores = heavy_score(ks.astype(np.float64) / 16, degrees)
    with working_precision(64):
        masses = [
            np.array([float(rounded.mass(int(k)).mid()) for k in ks])
            for rounded in (Rounded(law, value, 1, step) for value in (0, 1))
        ]
    # those left out have scores near 0: above the cuts below it, and not above the others
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    last = np.flatnonzero(np.diff(ranked) < 0)  # of those with the same score
    places = (ranked[last] + ranked[last + 1]) / 2
    clear = np.abs(places) > (degrees + 1) / (far - 1)
    last, places = last[clear], places[clear]
    shares = [
        np.where(places > 0, mass.cumsum()[last], 1 - mass[::-1].cumsum()[::-1][last + 1])
        for mass in (mass[order] for mass in masses)
    ]
    return Outcomes(places=places, first=shares[0], second=shares[1])


def discrete():
    return by_laws(*(Laplace(sensitivity=1, scale=1).law(value) for value in (0, 1)))


def rounded_logistic():
    step = Fraction(1, 16)
    return by_laws(*(Rounded(Logistic(), v, 1, step) for v in (0, 1)), step=step)


# every target of which samples catch a loss of a tenth
OUTCOMES = {
    "lastbit Laplace, integers, scale 1": discrete,
    "lastbit Laplace, integers, scale 10": lambda: of(Laplace(sensitivity=1, scale=10)),
    "lastbit Laplace, floats, scale 1": lambda: cells(1.0, 1 / 64),
    "lastbit Laplace, floats, scale 10": lambda: cells(10.0, 1 / 8),
    "lastbit Gaussian, integers, delta 1/20": lambda: of(
        Gaussian(sensitivity=1, epsilon=1, delta=SEEN_DELTA)
    ),
    "lastbit Snapping": lambda: cells(1.0, 2.0),
    "lastbit RoundedLaplace": lambda: cells(1.0, 1 / 16),
    "lastbit PlanarLaplace, which is nearer": lambda: plane(
        1 / (1 + math.sqrt(2) / 64), 1.0, 1 / 64, 12.0
    ),
    "lastbit PolarLaplace, which is nearer": lambda: plane(1 / 200, 200.0, 4.0, 2000.0),
    "lastbit planar_laplace, which is nearer": lambda: plane(1 / 16, 16.0, 1.0, 200.0),
    "lastbit Geo, which is nearer": lambda: plane(0.994 / 200, 200.0, 4.0, 2400.0),
    "lastbit Histogram": discrete,
    "lastbit ThresholdedHistogram": found_or_not,
    "lastbit RandomizedResponse": lambda: pair_of(RandomizedResponse(epsilon=1).keep),
    "lastbit Poll": lambda: pair_of(RandomizedResponse(epsilon=1).keep),
    "lastbit Exponential": lambda: one_of(Exponential),
    "lastbit PermuteAndFlip": lambda: one_of(PermuteAndFlip),
    "lastbit ReportNoisyMax": lambda: one_of(ReportNoisyMax),
    "lastbit StableValue": stable,
    "lastbit ProposeTestRelease": proposed,
    "lastbit discrete_laplace": discrete,
    "lastbit geometric": discrete,
    "lastbit stream": discrete,
    "lastbit rounded, laplace": lambda: cells(1.0, 1 / 16),
    "lastbit rounded, logistic": rounded_logistic,
    "lastbit rounded, cauchy, which is likelier": lambda: heavy(IdealCauchy(), 1),
    "lastbit rounded, student, which is likelier": lambda: heavy(StudentT(3), 3),
    "lastbit bernoulli": lambda: pair_of("3/4"),
    "lastbit uniform_below": lambda: pair_of("3/4"),
    "lastbit choice": lambda: pair_of("3/4"),
    "lastbit bernoulli_exp": lambda: listed(
        {
            0: (1 - math.exp(-1.5), 1 - math.exp(-0.5)),
            1: (math.exp(-1.5), math.exp(-0.5)),
        }
    ),
    "lastbit choice_exp": lambda: pair_of(1 / (1 + math.exp(-1))),
}
