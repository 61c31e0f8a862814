"""lastbit: differential privacy that holds to the last bit.

>>> import lastbit as lb
>>> noise = lb.Laplace(sensitivity=1, epsilon="1/2")
>>> noise.guarantee
PureDP(epsilon='0.5')
>>> noisy_count = noise.release(1234)

Mechanisms (`lastbit.mechanisms`), guarantees and their calculus (`lastbit.privacy`), how far
statistics move (`lastbit.sensitivity`), exact samplers on cryptographic bits (`lastbit.sampling`),
places (`lastbit.geo`), proofs about float code (`lastbit.verify`), exact probability laws
(`lastbit.laws`) and exact numbers (`lastbit.exact`). The first four are also here. Every room
explains itself: `help(lastbit.privacy)`. Errors: `lastbit.errors`.
"""

from lastbit import errors, exact, geo, laws, mechanisms, privacy, sampling, sensitivity, verify
from lastbit.mechanisms import (
    BOTTOM,
    AboveThreshold,
    Exponential,
    ExponentialQuantile,
    Gaussian,
    Histogram,
    Laplace,
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
from lastbit.privacy import (
    ADD_REMOVE,
    CHANGE_ONE,
    ZCDP,
    ApproxDP,
    MetricDP,
    Neighbours,
    ProbabilisticDP,
    PureDP,
    RenyiDP,
    best_composition,
    compositions,
    posterior_bounds,
)
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
from lastbit.sensitivity import (
    distance_to_instability,
    global_sensitivity,
    local_sensitivity,
    propose,
    smooth_sensitivity,
)

__version__ = "0.1.0"

__all__ = [
    "ADD_REMOVE",
    "AboveThreshold",
    "ApproxDP",
    "BOTTOM",
    "CHANGE_ONE",
    "Exponential",
    "ExponentialQuantile",
    "Gaussian",
    "Histogram",
    "Laplace",
    "MetricDP",
    "Neighbours",
    "PermuteAndFlip",
    "PlanarLaplace",
    "PolarLaplace",
    "Poll",
    "ProbabilisticDP",
    "ProposeTestRelease",
    "PureDP",
    "RandomizedResponse",
    "RenyiDP",
    "ReportNoisyMax",
    "RoundedLaplace",
    "SmoothNoise",
    "SmoothStatistic",
    "Snapping",
    "StableValue",
    "ThresholdedHistogram",
    "ZCDP",
    "__version__",
    "bernoulli",
    "bernoulli_exp",
    "best_composition",
    "choice",
    "choice_exp",
    "compositions",
    "discrete_gaussian",
    "discrete_laplace",
    "distance_to_instability",
    "errors",
    "exact",
    "geo",
    "geometric",
    "global_sensitivity",
    "laws",
    "local_sensitivity",
    "mechanisms",
    "planar_laplace",
    "posterior_bounds",
    "privacy",
    "private_median",
    "private_quantile",
    "private_trimmed_mean",
    "private_variance",
    "propose",
    "rounded",
    "sampling",
    "sensitivity",
    "smooth_sensitivity",
    "stream",
    "uniform_below",
    "verify",
]
