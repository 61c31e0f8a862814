from lastbit.mechanisms.above_threshold import (
    AboveThreshold as AboveThreshold,
    AboveThresholdSession as AboveThresholdSession,
)
from lastbit.mechanisms.exponential import Exponential as Exponential
from lastbit.mechanisms.exponential_quantile import ExponentialQuantile as ExponentialQuantile
from lastbit.mechanisms.gaussian import Gaussian as Gaussian
from lastbit.mechanisms.histogram import (
    Histogram as Histogram,
    ThresholdedHistogram as ThresholdedHistogram,
)
from lastbit.mechanisms.laplace import Laplace as Laplace
from lastbit.mechanisms.lattice import (
    Lattice as Lattice,
    array_of as array_of,
    nearest as nearest,
    numbers_of as numbers_of,
)
from lastbit.mechanisms.noisy_max import ReportNoisyMax as ReportNoisyMax
from lastbit.mechanisms.permute_and_flip import PermuteAndFlip as PermuteAndFlip
from lastbit.mechanisms.planar import PlanarLaplace as PlanarLaplace
from lastbit.mechanisms.polar import PolarLaplace as PolarLaplace
from lastbit.mechanisms.poll import (
    Poll as Poll,
    PollResult as PollResult,
    uncertainty_curve as uncertainty_curve,
)
from lastbit.mechanisms.propose_test_release import (
    Passed as Passed,
    ProposeTestRelease as ProposeTestRelease,
)
from lastbit.mechanisms.randomized_response import RandomizedResponse as RandomizedResponse
from lastbit.mechanisms.rounded_laplace import (
    RoundedLaplace as RoundedLaplace,
    rounded_bounds as rounded_bounds,
)
from lastbit.mechanisms.selection import ByRate as ByRate
from lastbit.mechanisms.smooth_noise import SmoothNoise as SmoothNoise, admissible as admissible
from lastbit.mechanisms.smooth_statistic import (
    SmoothStatistic as SmoothStatistic,
    private_median as private_median,
    private_quantile as private_quantile,
    private_trimmed_mean as private_trimmed_mean,
    private_variance as private_variance,
)
from lastbit.mechanisms.snapping import Snapping as Snapping
from lastbit.mechanisms.stable_value import (
    BOTTOM as BOTTOM,
    Bottom as Bottom,
    StableValue as StableValue,
)

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
