"""lastbit's samplers, made into mechanisms the way a textbook does.

lastbit's own mechanisms that add noise to numbers, and a sum made of them.

lastbit's mechanisms that answer with something else than a number plus noise.

lastbit's noise in the plane and on the Earth, seen by two questions.

The first coordinate of a released point is a number plus noise, for the attacks on bits. How much
nearer the point is to the one place than to the other is the logarithm of the likelihood ratio, up
to a factor: no other number tells more about which of the two was true. Either is made from the
released point alone, so it is as private as the point.
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

from lastbit.audit.targets.target import Bounds, SumTarget, Target, again_and_again
from lastbit.exact import arb_of, upper, working_precision
from lastbit.geo import Geo
from lastbit.laws import Ideal, IdealCauchy, StudentT
from lastbit.mechanisms import (
    AboveThreshold,
    Exponential,
    ExponentialQuantile,
    Gaussian,
    Histogram,
    Laplace,
    Passed,
    PermuteAndFlip,
    PlanarLaplace,
    PolarLaplace,
    Poll,
    ProposeTestRelease,
    RandomizedResponse,
    ReportNoisyMax,
    RoundedLaplace,
    SmoothNoise,
    SmoothStatistic,
    Snapping,
    StableValue,
    ThresholdedHistogram,
    private_median,
    private_quantile,
    private_trimmed_mean,
    private_variance,
)
from lastbit.privacy import ADD_REMOVE, CHANGE_ONE
from lastbit.sampling import (
    bernoulli,
    bernoulli_exp,
    choice,
    choice_exp,
    discrete_gaussian,
    discrete_laplace,
    geometric,
    planar_laplace,
    rounded,
    stream,
    uniform_below,
)
from lastbit.sensitivity import Proposal, Stability, smooth_sensitivity

DELTA = Fraction(1, 10**6)
SEEN_DELTA = Fraction(1, 20)
AT_ONCE = 1 << 12
STEPS = 1 << 20  # of the grid between the bounds of a sum


def own_noise_targets() -> Iterator[Target | SumTarget]:
    """Noise on integers and floats, exact and certified."""
    yield from _laplace()
    yield from _gaussian()
    yield from _certified_floats()
    yield SumTarget(name="lastbit sum", release=exact_sum, claimed=1)
    for dtype in ("int32", "int64"):
        yield SumTarget(name=f"lastbit {dtype} sum", release=exact_sum, claimed=1, dtype=dtype)


def _laplace() -> Iterator[Target]:
    integers = partial(Target, values=(0, 1), step=1)
    for scale in (1, 10):
        noise = Laplace(sensitivity=1, scale=scale)
        yield integers(
            name=f"lastbit Laplace, integers, scale {scale}",
            release=lambda value, size, noise=noise: noise.release(np.full(size, value)),
            claimed=noise.epsilon,
            scale=scale,
        )
        fine = Laplace(sensitivity=1, scale=scale, grid="auto")
        yield Target(
            name=f"lastbit Laplace, floats, scale {scale}",
            release=_wide(fine.scale, fine.lattice.step),
            claimed=fine.epsilon,
            scale=scale,
            step=fine.lattice.step,
        )


def _wide(scale: Fraction, step: Fraction) -> Callable[[float, int], Any]:
    """One release of many equal floats: each coordinate has the law of a single release."""

    def release(value: float, size: int) -> Any:
        noise = Laplace(sensitivity=1, scale=scale, grid=step, dimension=size)
        return noise.release(np.full(size, value))

    return release


def _gaussian() -> Iterator[Target]:
    kinds = [("integers", None, DELTA), ("floats", "auto", DELTA)]
    # a delta that samples can see: the shape of the law is the same
    for kind, grid, delta in (*kinds, ("integers, delta 1/20", None, SEEN_DELTA)):
        one = Gaussian(sensitivity=1, epsilon=1, delta=delta, grid=grid)
        step = one.lattice.step

        def release(
            value: Any,
            size: int,
            one: Gaussian = one,
            grid: Fraction | None = step if grid else None,
        ) -> Any:
            many = Gaussian(sensitivity=1, variance=one.variance, grid=grid, dimension=size)
            return many.release(np.full(size, value))

        yield Target(
            name=f"lastbit Gaussian, {kind}",
            release=release,
            claimed=1,
            delta=delta,
            values=(0, 1) if grid is None else (0.0, 1.0),
            scale=one.standard_deviation_upper,
            step=step,
        )


def _certified_floats() -> Iterator[Target]:
    snapping = Snapping(sensitivity=1, bound=64, epsilon=1)
    yield Target(
        name="lastbit Snapping",
        release=lambda value, size: snapping.release(np.full(size, value)),
        claimed=snapping.guarantee.epsilon,
        scale=1,
        step=snapping.grid,
    )
    # many coordinates at once; what one of them loses by itself is distance/scale + excess
    cells = RoundedLaplace(sensitivity=1, epsilon=1, cell="1/16", bound=1000, dimension=AT_ONCE)

    def rounded(value: float, size: int) -> NDArray[np.float64]:
        parts = [min(AT_ONCE, size - start) for start in range(0, size, AT_ONCE)]
        return np.concatenate([cells.release(np.full(part, value)) for part in parts])

    yield Target(
        name="lastbit RoundedLaplace",
        release=rounded,
        claimed=1 / cells.scale + cells.bounds.excess,
        scale=1,
        step=cells.cell,
    )


def exact_sum(data: NDArray[Any], bounds: Bounds, size: int) -> list[float]:
    """A private sum that keeps its promise: records to whole steps of a grid, summed as integers.

    Theorem  each record counts 0 ... m steps, so a changed record moves the sum of steps by at most
             m, and Python's integers neither wrap nor round; the order is irrelevant. NaN counts as
             the lower bound. What follows the noise is post-processing

    >>> 0 < exact_sum(np.full(1000, 0.5), (0.0, 1.0), 1)[0] < 1000
    True
    """
    lower, upper = bounds
    if data.dtype.kind in "iu":
        steps, width = [int(x) - lower for x in np.clip(data, lower, upper).tolist()], Fraction(1)
    else:
        width = (Fraction(upper) - Fraction(lower)) / STEPS
        share = (np.clip(data, lower, upper) - lower) / (upper - lower)
        clean = np.where(np.isnan(share), 0.0, np.clip(share, 0.0, 1.0))
        steps = np.rint(clean * STEPS).astype(np.int64).tolist()
    most = upper - lower if data.dtype.kind in "iu" else STEPS
    noise = Laplace(sensitivity=most, epsilon=1)
    base = Fraction(lower) * len(data)
    total = sum(steps)
    return [float(base + width * noise.release(total)) for _ in range(size)]


# years above and below 44; one record changed, and the median moves from 0 to 1
AGES = (-21, -9, -7, -3, 0, 1, 8, 17, 20)
OLDER = (-21, -9, -7, -3, 1, 1, 8, 17, 20)
BOUNDS: Mapping[str, Any] = MappingProxyType({"lower": -60, "upper": 60})
# two records on the left, two just right of them, one far away; then one of the first two is there
LEFT = (0, 0, 10, 10, 10_000)
RIGHT = (0, 10, 10, 10_000, 10_000)
WORSE_AND_BETTER = (0, 8), (1, 7)
UNLIKELY_ALARMS = (8, 8, 8, 8, 8, 8, -9), (7, 7, 7, 7, 7, 7, -8)
ANSWER_DELTA = Fraction(1, 1000)


def own_answer_targets() -> Iterator[Target]:
    """Counts, choices, medians, and answers that may be withheld."""
    yield from _counts()
    yield from _choices()
    yield from _medians()
    yield from _withheld()


def _counts() -> Iterator[Target]:
    """Many keys with the same count in one release: each has the law of a single key."""

    def counted(count: int, size: int) -> list[int]:
        histogram = Histogram(keys=range(size), epsilon=1, keys_per_person=1)
        return list(histogram.release(dict.fromkeys(range(size), count)).values())

    yield Target(
        name="lastbit Histogram", release=counted, claimed=1, values=(0, 1), scale=1, step=1
    )
    found = ThresholdedHistogram(epsilon=1, delta=ANSWER_DELTA, keys_per_person=1)

    def found_counts(count: int, size: int) -> list[float]:
        released = found.release(dict.fromkeys(range(size), count))
        return [released.get(key, math.nan) for key in range(size)]

    yield Target(
        name="lastbit ThresholdedHistogram",
        release=found_counts,
        claimed=found.guarantee.epsilon,
        delta=found.guarantee.delta,
        values=(found.threshold, found.threshold + 1),
        scale=1,
        step=1,
    )
    poll = Poll(epsilon=1)
    yield Target(
        name="lastbit Poll",
        release=lambda value, size: poll.collect(np.full(size, bool(value))),
        claimed=poll.guarantee.epsilon,
        values=(0, 1),
        step=1,
    )
    response = RandomizedResponse(epsilon=1)
    yield Target(
        name="lastbit RandomizedResponse",
        release=lambda value, size: response.release(np.full(size, bool(value))),
        claimed=response.guarantee.epsilon,
        values=(0, 1),
        step=1,
    )


def _choices() -> Iterator[Target]:
    """How often the worse of two candidates is chosen, when it becomes less bad."""
    for kind in (Exponential, PermuteAndFlip, ReportNoisyMax):
        pick = kind(sensitivity=1, epsilon=1)
        yield Target(
            name=f"lastbit {kind.__name__}",
            release=lambda values, size, pick=pick: pick.release(values, size) == 0,
            claimed=pick.guarantee.epsilon,
            values=WORSE_AND_BETTER,
        )
    alarm = AboveThreshold(threshold=1, epsilon=1)

    def first(values: tuple[int, ...]) -> int:
        answers = alarm.release(values)
        return answers.index(True) if True in answers else len(values)

    yield Target(
        name="lastbit AboveThreshold",
        release=again_and_again(first),
        claimed=alarm.guarantee.epsilon,
        values=UNLIKELY_ALARMS,
    )


def _medians() -> Iterator[Target]:
    known = partial(Target, values=(AGES, OLDER), answers=(0, 1), step="1/16", claimed=1)
    quantile = ExponentialQuantile("1/2", epsilon=1, grid=1, lower=0, upper=10_000)
    yield known(
        name="lastbit ExponentialQuantile",
        release=again_and_again(quantile.release),
        values=(LEFT, RIGHT),
        answers=(10, 10),
        step=1,
    )
    for noise, delta in (("cauchy", None), ("student", None), ("laplace", ANSWER_DELTA)):
        median = SmoothStatistic(
            "median", epsilon=1, delta=delta, noise=noise, grid="1/16", **BOUNDS
        )
        yield known(
            name=f"lastbit SmoothStatistic, {noise}",
            release=again_and_again(median.release),
            delta=delta or 0,
        )
    smooth = SmoothNoise(epsilon=1, noise="cauchy", grid="1/16", neighbours=CHANGE_ONE)
    bounds = [
        smooth_sensitivity("median", ages, beta=smooth.beta, **BOUNDS) for ages in (AGES, OLDER)
    ]
    yield known(
        name="lastbit SmoothNoise",
        release=again_and_again(smooth.release),
        values=(bounds[0], bounds[1]),
    )
    yield from _statistics(partial(Target, values=(AGES, OLDER), claimed=1))


def _statistics(known: Callable[..., Target]) -> Iterator[Target]:
    """The functions that make such a mechanism and use it once."""
    options: dict[str, Any] = {"epsilon": 1, "grid": "1/16", **BOUNDS}
    for function, level in (
        (private_median, ()),
        (private_quantile, ("1/4",)),
        (private_trimmed_mean, ()),
        (private_variance, ()),
    ):
        once = partial(_once, function, level, options)
        yield known(name=f"lastbit {function.__name__}", release=again_and_again(once))


def _once(
    function: Callable[..., float], level: tuple[str, ...], options: Mapping[str, Any], data: Any
) -> float:
    return function(data, *level, **options)


def _withheld() -> Iterator[Target]:
    """At the threshold itself the test loses all it may."""
    stable = StableValue(epsilon=1, delta=ANSWER_DELTA, neighbours=ADD_REMOVE)
    yield Target(
        name="lastbit StableValue",
        release=again_and_again(lambda mode: stable.release(mode) == "yes"),
        claimed=stable.guarantee.epsilon,
        delta=stable.guarantee.delta,
        values=(
            Stability("yes", stable.threshold, ADD_REMOVE),
            Stability("yes", stable.threshold + 1, ADD_REMOVE),
        ),
    )
    ask = ProposeTestRelease(bounds=[60], epsilon=2, delta="1e-6", neighbours=CHANGE_ONE)

    def value(proposal: Any) -> float:
        answer = ask.release(proposal)
        return float(answer.value) if isinstance(answer, Passed) else math.nan

    yield Target(
        name="lastbit ProposeTestRelease",
        release=again_and_again(value),
        claimed=ask.guarantee.epsilon,
        delta=ask.guarantee.delta,
        values=(Proposal(0, [ask.threshold]), Proposal(60, [ask.threshold + 1])),
        answers=(0, 60),
    )


BERLIN = (52.5, 13.4)
METRES = (111_270.0, 67_910.0)  # about so many in a degree there; any numbers make a true test
EAST = 0.0029445  # degrees of longitude: just below 200 m


def nearer(points: NDArray[np.float64], far: float) -> NDArray[np.float64]:
    """By how much each point is nearer to (far, 0) than to the origin; NaN for one at infinity.

    >>> nearer(np.array([[2.0, 0.0], [0.5, 7.0], [np.inf, np.inf]]), 1.0).tolist()
    [1.0, 0.0, nan]
    """
    inside: NDArray[np.bool_] = np.all(np.isfinite(points), axis=1)
    x, y = np.where(inside[:, None], points, 0.0).T
    return np.where(inside, np.hypot(x, y) - np.hypot(x - far, y), np.nan)


def own_point_targets() -> Iterator[Target]:
    """Points that are moved, in the plane and on the Earth."""
    lattice = PlanarLaplace(epsilon=1, within=1, grid="1/64")
    yield from _both(
        "PlanarLaplace",
        lambda point, size: lattice.release(np.full((size, 2), point)),
        far=1.0,
        claimed=lattice.guarantee_at(1).epsilon,
        step=lattice.grid,
    )
    polar = PolarLaplace(epsilon=1, within=200, unit="m", cell=4, half_width=2000, inputs=1000)
    yield from _both(
        "PolarLaplace",
        lambda point, size: polar.release(np.full((size, 2), point)),
        far=200.0,
        claimed=polar.guarantee_at(200).epsilon,
        step=polar.cell,
    )
    yield from _both(
        "planar_laplace",
        lambda point, size: np.asarray(planar_laplace("1/16", size=size), np.float64) + point,
        far=16.0,
        claimed=1,
        step=1,
    )
    yield from _earth()


def _both(
    name: str, move: Callable[[Any, int], Any], *, far: float, claimed: Any, step: Any
) -> Iterator[Target]:
    pair = partial(Target, values=((0.0, 0.0), (far, 0.0)), claimed=claimed)
    yield pair(
        name=f"lastbit {name}",
        release=lambda point, size: move(point, size)[:, 0],
        answers=(0.0, far),
        scale=far,
        step=step,
    )
    yield pair(
        name=f"lastbit {name}, which is nearer",
        release=lambda point, size: nearer(move(point, size), far),
    )


def _earth() -> Iterator[Target]:
    geo = Geo(epsilon="1/200m", region=(52.3, 13.0, 52.7, 13.8))
    far = EAST * METRES[1]
    east = (BERLIN[0], BERLIN[1] + EAST)

    def moved(place: tuple[float, float], size: int) -> NDArray[np.float64]:
        released = np.asarray(geo.release(np.full((size, 2), place)))
        return (released - BERLIN) * METRES

    pair = partial(Target, values=(BERLIN, east), claimed=geo.guarantee_at(200).epsilon)
    yield pair(
        name="lastbit Geo",
        release=lambda place, size: geo.release(np.full((size, 2), place))[:, 1],
        answers=(BERLIN[1], east[1]),
    )
    yield pair(
        name="lastbit Geo, which is nearer",
        release=lambda place, size: nearer(moved(place, size)[:, ::-1], far),
    )


DELTA = Fraction(1, 10**6)
DEVIATION = Fraction(17, 4)
STEP = Fraction(1, 16)


def own_sampler_targets() -> Iterator[Target]:
    """Noise drawn directly and added by the user; coins and wheels that answer instead of a person.

    The points of the plane are in `own_points.py`.
    """
    yield from _noise()
    yield from _answers()


def _noise() -> Iterator[Target]:
    integers = partial(Target, values=(0, 1), step=1, scale=1, claimed=1)
    yield integers(
        name="lastbit discrete_laplace",
        release=lambda value, size: value + discrete_laplace(1, size=size),
    )
    yield integers(  # the difference of two geometric numbers is discrete Laplace
        name="lastbit geometric",
        release=lambda value, size: value + geometric(1, size=size) - geometric(1, size=size),
    )
    yield integers(name="lastbit stream", release=_streamed)
    # (1, 1e-6) by the exact curve of the discrete Gaussian; tests/audit/targets/test_own.py
    yield Target(
        name="lastbit discrete_gaussian",
        release=lambda value, size: (
            value + discrete_gaussian(standard_deviation=DEVIATION, size=size)
        ),
        claimed=1,
        delta=DELTA,
        values=(0, 1),
        scale=float(DEVIATION),
        step=1,
    )
    for law in ("laplace", "logistic"):  # either has the loss d/scale
        yield Target(
            name=f"lastbit rounded, {law}",
            release=lambda value, size, law=law: (
                rounded(law, location=value, scale=1, grid=STEP, size=size) * float(STEP)
            ),
            claimed=1,
            scale=1,
            step=STEP,
        )

    yield from _heavy_tails()


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
            steps = rounded(law, location=place[0], scale=1, grid=STEP, size=size)
            return heavy_score(np.asarray(steps, np.float64) * float(STEP), degrees)

        yield Target(
            name=f"lastbit rounded, {name}, which is likelier",
            release=score,
            claimed=_heavy_loss(degrees),
            values=((0,), (1,)),  # no numbers: a score is no answer plus noise
        )


def heavy_score(outputs: NDArray[np.float64], degrees: int) -> NDArray[np.float64]:
    """Ln of the ratio of Student's densities about 1 and about 0."""
    ratio = (degrees + outputs**2) / (degrees + (outputs - 1) ** 2)
    score: NDArray[np.float64] = np.log(ratio) * (degrees + 1) / 2
    return score


def _heavy_loss(degrees: int) -> float:
    with working_precision(64):
        return upper((degrees + 1) * (1 / (2 * arb(degrees).sqrt())).asinh())


def _streamed(value: int, size: int) -> NDArray[Any]:
    return value + np.concatenate(list(stream(discrete_laplace, 1, total=size, block=1 << 12)))


def _answers() -> Iterator[Target]:
    """Two answers, the true one three times as likely as the other: epsilon = ln 3."""
    answers = partial(Target, values=(0, 1), step=1, claimed=_logarithm_upper(3))
    yield answers(
        name="lastbit bernoulli",
        release=lambda value, size: bernoulli("3/4" if value else "1/4", size=size),
    )
    yield answers(
        name="lastbit uniform_below",
        release=lambda value, size: value ^ (uniform_below(4, size=size) == 0),
    )
    yield answers(
        name="lastbit choice",
        release=lambda value, size: choice([1, 3] if value else [3, 1], size=size),
    )
    exponential = partial(Target, values=(0, 1), step=1, claimed=1)
    # True e times as likely for one value; False is less than e times as likely for the other
    yield exponential(
        name="lastbit bernoulli_exp",
        release=lambda value, size: bernoulli_exp("1/2" if value else "3/2", size=size),
    )
    yield exponential(
        name="lastbit choice_exp",
        release=lambda value, size: choice_exp([0, 1] if value else [1, 0], size=size),
    )


def _logarithm_upper(number: int) -> float:
    with working_precision(64):
        return upper(arb_of(Fraction(number)).log())
