"""lastbit: differential privacy that holds to the last bit.

>>> import lastbit as lb
>>> noise = lb.Laplace(sensitivity=1, epsilon="1/2")
>>> noise.guarantee
PureDP(epsilon='0.5')
>>> noisy_count = noise.release(1234)

Mechanisms (`lastbit.mechanisms`), guarantees and their calculus (`lastbit.privacy`), exact
samplers on cryptographic bits (`lastbit.sampling`), exact probability laws (`lastbit.laws`) and
exact numbers (`lastbit.exact`). The first three are also here. Every room explains itself:
`help(lastbit.privacy)`. Errors: `lastbit.errors`.
"""

from lastbit import errors, exact, laws, mechanisms, privacy, sampling
from lastbit.mechanisms import (
    AboveThreshold,
    Exponential,
    Gaussian,
    Histogram,
    Laplace,
    PermuteAndFlip,
    Poll,
    RandomizedResponse,
    ReportNoisyMax,
    ThresholdedHistogram,
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
    stream,
    uniform_below,
)

__version__ = "0.1.0"

__all__ = [
    "ADD_REMOVE",
    "AboveThreshold",
    "ApproxDP",
    "CHANGE_ONE",
    "Exponential",
    "Gaussian",
    "Histogram",
    "Laplace",
    "MetricDP",
    "Neighbours",
    "PermuteAndFlip",
    "Poll",
    "ProbabilisticDP",
    "PureDP",
    "RandomizedResponse",
    "RenyiDP",
    "ReportNoisyMax",
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
    "errors",
    "exact",
    "geometric",
    "laws",
    "mechanisms",
    "posterior_bounds",
    "privacy",
    "sampling",
    "stream",
    "uniform_below",
]
