"""One file a mechanism: parameters in; release, guarantee, accuracy and law out.

A mechanism is a frozen value. It is constructed either from the promise it must keep (`epsilon=`,
`rho=`, `epsilon=` with `delta=`) or from its raw noise (`scale=`, `standard_deviation=`, `keep=`);
in both cases `guarantee` says exactly what one release promises, for inputs as far apart as the
declared sensitivity. Then:

* `release(x)`: a private version of x; everything about x is checked before anything is drawn,
* `guarantee`, `guarantee_at(distance)`: what that costs,
* `accuracy(beta)`, `beta(error)`: how far off the release is, from the exact law, rounded up,
* `law(x)`: the exact law of release(x), an object that answers in balls.

| mechanism | releases | promises |
|---|---|---|
| `Laplace` | numbers with discrete Laplace noise | pure |
| `Gaussian` | numbers with discrete Gaussian noise | concentrated, approximate |
| `RandomizedResponse`, `Poll` | each person's own answer, and what many answers say | pure |
| `Exponential`, `PermuteAndFlip`, `ReportNoisyMax` | the index of a good candidate | pure |
| `Histogram` | counts of declared keys | pure |
| `ThresholdedHistogram` | counts of keys found in the data | probabilistic |
| `AboveThreshold` | which queries of a stream exceed a threshold | pure |
| `ExponentialQuantile` | medians and quantiles, out of a fine grid | pure |
| `SmoothNoise`, `SmoothStatistic` | medians, noise fit to the data | pure, approximate |
| `ProposeTestRelease` | a number with noise for a bound that was tested, or ⊥ | approximate |
| `StableValue` | an answer that no near database changes, or ⊥ | approximate |
| `Snapping`, `RoundedLaplace` | numbers in floats, with a certificate | pure |
| `PlanarLaplace`, `PolarLaplace` | points: exact, or floats with a certificate | metric |

The theorem stands in each docstring, the proof in docs/theory/. `lattice.py` is the way from floats
to integers and back, `additive.py` what Laplace and Gaussian noise have in common, `admissible.py`
what noise a smooth bound needs.
"""

from lastbit.mechanisms.above_threshold import AboveThreshold
from lastbit.mechanisms.bottom import BOTTOM, Bottom
from lastbit.mechanisms.exponential import Exponential
from lastbit.mechanisms.exponential_quantile import ExponentialQuantile
from lastbit.mechanisms.gaussian import Gaussian
from lastbit.mechanisms.histogram import Histogram, ThresholdedHistogram
from lastbit.mechanisms.laplace import Laplace
from lastbit.mechanisms.noisy_max import ReportNoisyMax
from lastbit.mechanisms.permute_and_flip import PermuteAndFlip
from lastbit.mechanisms.planar import PlanarLaplace
from lastbit.mechanisms.polar import PolarLaplace
from lastbit.mechanisms.poll import Poll
from lastbit.mechanisms.propose_test_release import Passed, ProposeTestRelease
from lastbit.mechanisms.randomized_response import RandomizedResponse
from lastbit.mechanisms.rounded_laplace import RoundedLaplace
from lastbit.mechanisms.smooth_noise import SmoothNoise
from lastbit.mechanisms.smooth_statistic import (
    SmoothStatistic,
    private_median,
    private_quantile,
    private_trimmed_mean,
    private_variance,
)
from lastbit.mechanisms.snapping import Snapping
from lastbit.mechanisms.stable_value import StableValue

__all__ = [
    "AboveThreshold",
    "BOTTOM",
    "Bottom",
    "Exponential",
    "ExponentialQuantile",
    "Gaussian",
    "Histogram",
    "Laplace",
    "Passed",
    "PermuteAndFlip",
    "PlanarLaplace",
    "PolarLaplace",
    "Poll",
    "ProposeTestRelease",
    "RandomizedResponse",
    "ReportNoisyMax",
    "RoundedLaplace",
    "SmoothNoise",
    "SmoothStatistic",
    "Snapping",
    "StableValue",
    "ThresholdedHistogram",
    "private_median",
    "private_quantile",
    "private_trimmed_mean",
    "private_variance",
]
