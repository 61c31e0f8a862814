"""lastbit's own mechanisms, and its samplers made into mechanisms the way a textbook does.

Most are a number plus noise. A choice or a withheld answer is seen by how often it happens. A point
in the plane or on the Earth is seen twice: its first coordinate is a number plus noise, for the
attacks on bits; and how much nearer it is to the one place than to the other is the logarithm of
the likelihood ratio, up to a factor, so no other number tells more about which of the two was true.
Either is made from the released point alone, so it is as private as the point.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from lastbit import mechanisms, sampling
from lastbit.audit.targets.lastbit import DELTA, lastbit_targets, many, our_target
from lastbit.audit.targets.target import SumTarget, Target, as_release
from lastbit.exact import arb_of, upper, working_precision
from lastbit.geo import Geo
from lastbit.laws import Ideal, IdealCauchy, StudentT
from lastbit.privacy import ADD_REMOVE, CHANGE_ONE
from lastbit.sensitivity import Proposal, Stability, smooth_sensitivity

ANSWER_DELTA = Fraction(1, 1000)
DEVIATION = Fraction(17, 4)
STEP = Fraction(1, 16)
AT_ONCE = 1 << 12
# years above and below 44; one record changed, and the median moves from 0 to 1
AGES = (-21, -9, -7, -3, 0, 1, 8, 17, 20)
OLDER = (-21, -9, -7, -3, 1, 1, 8, 17, 20)
BOUNDS: Mapping[str, Any] = MappingProxyType({"lower": -60, "upper": 60})
# two records on the left, two just right of them, one far away; then one of the first two is there
LEFT = (0, 0, 10, 10, 10_000)
RIGHT = (0, 10, 10, 10_000, 10_000)
WORSE_AND_BETTER = (0, 8), (1, 7)
UNLIKELY_ALARMS = (8, 8, 8, 8, 8, 8, -9), (7, 7, 7, 7, 7, 7, -8)
BERLIN = (52.5, 13.4)
METRES = (111_270.0, 67_910.0)  # in a degree there, about; any numbers make a true test
EAST = 0.0029445  # degrees of longitude: just below 200 m


def own_targets() -> Iterator[Target | SumTarget]:
    """Everything public that draws noise: what `lastbit attack` has ready, and the rest."""
    yield from (*lastbit_targets(), *_certified_floats())
    yield from (*_points(), *_earth(), *_counts(), *_choices(), *_medians(), *_withheld())
    yield from (*_sampled_noise(), *_heavy_tails(), *_sampled_answers())


# ---------------------------------------------------------------- numbers plus noise


def _certified_floats() -> Iterator[Target]:
    snapping = mechanisms.Snapping(sensitivity=1, bound=64, epsilon=1)
    known: dict[str, Any] = {"claimed": snapping.guarantee.epsilon, "step": snapping.grid}
    yield our_target("Snapping", many(snapping.release), scale=1, **known)
    # many coordinates at once; what one of them loses by itself is distance/scale + excess
    cells = mechanisms.RoundedLaplace(
        sensitivity=1, epsilon=1, cell="1/16", bound=1000, dimension=AT_ONCE
    )

    def in_parts(value: float, size: int) -> NDArray[np.float64]:
        parts = [min(AT_ONCE, size - start) for start in range(0, size, AT_ONCE)]
        return np.concatenate([cells.release(np.full(part, value)) for part in parts])

    claimed = 1 / cells.scale + cells.bounds.excess
    yield our_target("RoundedLaplace", in_parts, claimed, scale=1, step=cells.cell)


# ---------------------------------------------------------------- points


def nearer(points: NDArray[np.float64], far: float) -> NDArray[np.float64]:
    """By how much each point is nearer to (far, 0) than to the origin; NaN for one at infinity.

    >>> nearer(np.array([[2.0, 0.0], [0.5, 7.0], [np.inf, np.inf]]), 1.0).tolist()
    [1.0, 0.0, nan]
    """
    inside: NDArray[np.bool_] = np.all(np.isfinite(points), axis=1)
    x, y = np.where(inside[:, None], points, 0.0).T
    return np.where(inside, np.hypot(x, y) - np.hypot(x - far, y), np.nan)


def _points() -> Iterator[Target]:
    vector = mechanisms.NormLaplace(sensitivity=1, epsilon=1, norm="Linf", dimension=3)

    def first_of_three(value, size):
        return np.array([vector.release([value, value, value])[0] for _ in range(size)])

    yield our_target("NormLaplace", first_of_three, 1, values=(0, 1), step=1)
    lattice = mechanisms.PlanarLaplace(epsilon=1, within=1, grid="1/64")
    polar = mechanisms.PolarLaplace(
        epsilon=1, within=200, unit="m", cell=4, half_width=2000, inputs=1000
    )

    def sampled(points: Any) -> Any:
        return np.asarray(sampling.planar_laplace("1/16", size=len(points)), np.float64) + points

    def moved(point: Any, size: int, move: Callable[[Any], Any]) -> Any:
        return move(np.full((size, 2), point))

    for name, move, far, claimed, step in (
        ("PlanarLaplace", lattice.release, 1.0, lattice.guarantee_at(1).epsilon, lattice.grid),
        ("PolarLaplace", polar.release, 200.0, polar.guarantee_at(200).epsilon, polar.cell),
        ("planar_laplace", sampled, 16.0, 1, 1),
    ):
        values = ((0.0, 0.0), (far, 0.0))
        known = {"answers": (0.0, far), "scale": far, "step": step}
        yield our_target(
            name,
            lambda point, size, move=move: moved(point, size, move)[:, 0],
            claimed,
            values=values,
            **known,
        )
        yield our_target(
            f"{name}, which is nearer",
            lambda point, size, move=move, far=far: nearer(moved(point, size, move), far),
            claimed,
            values=values,
        )


def _earth() -> Iterator[Target]:
    geo = Geo(epsilon="1/200m", region=(52.3, 13.0, 52.7, 13.8))
    east = (BERLIN[0], BERLIN[1] + EAST)
    known: dict[str, Any] = {"claimed": geo.guarantee_at(200).epsilon, "values": (BERLIN, east)}

    def moved(place: tuple[float, float], size: int) -> NDArray[np.float64]:
        return np.asarray(geo.release(np.full((size, 2), place)))

    def metres_nearer(place: tuple[float, float], size: int) -> NDArray[np.float64]:
        return nearer(((moved(place, size) - BERLIN) * METRES)[:, ::-1], EAST * METRES[1])

    longitudes = (BERLIN[1], east[1])
    yield our_target(
        "Geo", lambda place, size: moved(place, size)[:, 1], answers=longitudes, **known
    )
    yield our_target("Geo, which is nearer", metres_nearer, **known)


# ---------------------------------------------------------------- other answers


def _counts() -> Iterator[Target]:
    """Many keys with the same count in one release: each has the law of a single key."""

    def counted(count: int, size: int) -> list[int]:
        histogram = mechanisms.Histogram(keys=range(size), epsilon=1, keys_per_person=1)
        return list(histogram.release(dict.fromkeys(range(size), count)).values())

    yield our_target("Histogram", counted, 1, values=(0, 1), scale=1, step=1)
    found = mechanisms.ThresholdedHistogram(epsilon=1, delta=ANSWER_DELTA, keys_per_person=1)

    def found_counts(count: int, size: int) -> list[float]:
        released = found.release(dict.fromkeys(range(size), count))
        return [released.get(key, math.nan) for key in range(size)]

    yield our_target(
        "ThresholdedHistogram",
        found_counts,
        found.guarantee.epsilon,
        delta=found.guarantee.delta,
        values=(found.threshold, found.threshold + 1),
        scale=1,
        step=1,
    )
    poll, response = mechanisms.Poll(epsilon=1), mechanisms.RandomizedResponse(epsilon=1)
    answers = partial(our_target, values=(0, 1), step=1)
    yield answers("Poll", many(poll.collect, bool), poll.guarantee.epsilon)
    epsilon = response.guarantee.epsilon
    yield answers("RandomizedResponse", many(response.release, bool), epsilon)


def _choices() -> Iterator[Target]:
    """How often the worse of two candidates is chosen, when it becomes less bad."""
    for kind in (mechanisms.Exponential, mechanisms.PermuteAndFlip, mechanisms.ReportNoisyMax):
        pick = kind(sensitivity=1, epsilon=1)
        yield our_target(
            kind.__name__,
            lambda values, size, pick=pick: pick.release(values, size) == 0,
            pick.guarantee.epsilon,
            values=WORSE_AND_BETTER,
        )
    alarm = mechanisms.AboveThreshold(threshold=1, epsilon=1)

    def first(values: tuple[int, ...]) -> int:
        answers = alarm.release(values)
        return answers.index(True) if True in answers else len(values)

    epsilon = alarm.guarantee.epsilon
    yield our_target("AboveThreshold", as_release(first), epsilon, values=UNLIKELY_ALARMS)


def _medians() -> Iterator[Target]:
    def known(name: str, release: Callable[[Any], Any], **more: Any) -> Target:
        fixed = {"values": (AGES, OLDER), "answers": (0, 1), "step": "1/16"}
        return our_target(name, as_release(release), 1, **(fixed | more))

    quantile = mechanisms.ExponentialQuantile("1/2", epsilon=1, grid=1, lower=0, upper=10_000)
    apart = {"values": (LEFT, RIGHT), "answers": (10, 10), "step": 1}
    yield known("ExponentialQuantile", quantile.release, **apart)
    for noise, delta in (("cauchy", None), ("student", None), ("laplace", ANSWER_DELTA)):
        median = mechanisms.SmoothStatistic(
            "median", epsilon=1, delta=delta, noise=noise, grid="1/16", **BOUNDS
        )
        yield known(f"SmoothStatistic, {noise}", median.release, delta=delta or 0)
    smooth = mechanisms.SmoothNoise(epsilon=1, noise="cauchy", grid="1/16", neighbours=CHANGE_ONE)
    bounds = tuple(
        smooth_sensitivity("median", ages, beta=smooth.beta, **BOUNDS) for ages in (AGES, OLDER)
    )
    yield known("SmoothNoise", smooth.release, values=bounds)
    # the functions that make such a mechanism and use it once
    for function, level in (
        (mechanisms.private_median, ()),
        (mechanisms.private_quantile, ("1/4",)),
        (mechanisms.private_trimmed_mean, ()),
        (mechanisms.private_variance, ()),
    ):

        def once(data: Any, function: Any = function, level: tuple[str, ...] = level) -> Any:
            return function(data, *level, epsilon=1, grid="1/16", **BOUNDS)

        yield our_target(function.__name__, as_release(once), 1, values=(AGES, OLDER))


def _withheld() -> Iterator[Target]:
    """At the threshold itself the test loses all it may."""
    stable = mechanisms.StableValue(epsilon=1, delta=ANSWER_DELTA, neighbours=ADD_REMOVE)
    at = [Stability("yes", stable.threshold + more, ADD_REMOVE) for more in (0, 1)]
    yield our_target(
        "StableValue",
        as_release(lambda mode: stable.release(mode) == "yes"),
        stable.guarantee.epsilon,
        delta=stable.guarantee.delta,
        values=tuple(at),
    )
    ask = mechanisms.ProposeTestRelease(bounds=[60], epsilon=2, delta="1e-6", neighbours=CHANGE_ONE)

    def value(proposal: Any) -> float:
        answer = ask.release(proposal)
        return float(answer.value) if isinstance(answer, mechanisms.Passed) else math.nan

    yield our_target(
        "ProposeTestRelease",
        as_release(value),
        ask.guarantee.epsilon,
        delta=ask.guarantee.delta,
        values=(Proposal(0, [ask.threshold]), Proposal(60, [ask.threshold + 1])),
        answers=(0, 60),
    )


# ---------------------------------------------------------------- samplers


def _sampled_noise() -> Iterator[Target]:
    unit = {"values": (0, 1), "step": 1, "scale": 1}
    deviation = unit | {"scale": float(DEVIATION), "delta": DELTA}
    draws: tuple[tuple[str, Callable[[int], Any], Mapping[str, Any]], ...] = (
        ("discrete_laplace", lambda size: sampling.discrete_laplace(1, size=size), unit),
        # the difference of two geometric numbers is discrete Laplace
        (
            "geometric",
            lambda size: sampling.geometric(1, size=size) - sampling.geometric(1, size=size),
            unit,
        ),
        ("stream", _streamed, unit),
        # (1, 1e-6) by the exact curve of the discrete Gaussian; tests/audit/targets/test_own.py
        (
            "discrete_gaussian",
            lambda size: sampling.discrete_gaussian(standard_deviation=DEVIATION, size=size),
            deviation,
        ),
    )
    for name, draw, known in draws:
        yield our_target(name, lambda value, size, draw=draw: value + draw(size), 1, **known)
    for law in ("laplace", "logistic"):  # either has the loss d/scale
        yield our_target(
            f"rounded, {law}",
            lambda value, size, law=law: (
                sampling.rounded(law, location=value, scale=1, grid=STEP, size=size) * float(STEP)
            ),
            1,
            scale=1,
            step=STEP,
        )


def _streamed(size: int) -> NDArray[Any]:
    return np.concatenate(
        list(sampling.stream(sampling.discrete_laplace, 1, total=size, block=1 << 12))
    )


def _heavy_tails() -> Iterator[Target]:
    """Student's noise of some degrees, Cauchy's among them, moved by one scale.

    What is shown is the logarithm of the ratio of the two densities at the rounded output, since
    no cut through the outputs themselves tells much: far out both are alike. Its greatest value is
    (n+1) asinh(1/(2 sqrt(n))) for n degrees.
    """
    for name, law, degrees in (("cauchy", IdealCauchy(), 1), ("student", StudentT(3), 3)):

        def score(
            place: tuple[int], size: int, law: Ideal = law, degrees: int = degrees
        ) -> NDArray[np.float64]:
            steps = sampling.rounded(law, location=place[0], scale=1, grid=STEP, size=size)
            return heavy_score(np.asarray(steps, np.float64) * float(STEP), degrees)

        with working_precision(64):
            loss = upper((degrees + 1) * (1 / (2 * arb(degrees).sqrt())).asinh())
        # the values are no numbers: a score is no answer plus noise
        yield our_target(f"rounded, {name}, which is likelier", score, loss, values=((0,), (1,)))


def heavy_score(outputs: NDArray[np.float64], degrees: int) -> NDArray[np.float64]:
    """Ln of the ratio of Student's densities about 1 and about 0."""
    ratio = (degrees + outputs**2) / (degrees + (outputs - 1) ** 2)
    score: NDArray[np.float64] = np.log(ratio) * (degrees + 1) / 2
    return score


def _sampled_answers() -> Iterator[Target]:
    """Coins and wheels that answer instead of a person."""
    with working_precision(64):
        thrice = upper(arb_of(Fraction(3)).log())  # the true answer three times as likely
    draws: tuple[tuple[str, Any, Callable[[Any, int], Any]], ...] = (
        ("bernoulli", thrice, lambda v, size: sampling.bernoulli("3/4" if v else "1/4", size=size)),
        ("uniform_below", thrice, lambda v, size: v ^ (sampling.uniform_below(4, size=size) == 0)),
        ("choice", thrice, lambda v, size: sampling.choice([1, 3] if v else [3, 1], size=size)),
        # True e times as likely for one value; False is less than e times as likely for the other
        (
            "bernoulli_exp",
            1,
            lambda v, size: sampling.bernoulli_exp("1/2" if v else "3/2", size=size),
        ),
        ("choice_exp", 1, lambda v, size: sampling.choice_exp([0, 1] if v else [1, 0], size=size)),
    )
    for name, claimed, release in draws:
        yield our_target(name, release, claimed, values=(0, 1), step=1)
