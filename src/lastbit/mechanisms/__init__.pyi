from lastbit.mechanisms.above_threshold import (
    AboveThreshold as AboveThreshold,
    AboveThresholdSession as AboveThresholdSession,
)
from lastbit.mechanisms.admissible_noise import admissible as admissible
from lastbit.mechanisms.density import (
    Admissibility as Admissibility,
    SymmetricDensity as SymmetricDensity,
    admissibility as admissibility,
)
from lastbit.mechanisms.exponential import ByRate as ByRate, Exponential as Exponential
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
    numbers_of as numbers_of,
)
from lastbit.mechanisms.noisy_max import ReportNoisyMax as ReportNoisyMax
from lastbit.mechanisms.norm_laplace import NormLaplace as NormLaplace
from lastbit.mechanisms.permute_and_flip import PermuteAndFlip as PermuteAndFlip
from lastbit.mechanisms.planar import PlanarLaplace as PlanarLaplace
from lastbit.mechanisms.polar import (
    PlanarStray as PlanarStray,
    PolarLaplace as PolarLaplace,
    planar_stray as planar_stray,
    radius_modulus as radius_modulus,
)
from lastbit.mechanisms.poll import (
    Poll as Poll,
    PollResult as PollResult,
    uncertainty_curve as uncertainty_curve,
)
from lastbit.mechanisms.randomized_response import RandomizedResponse as RandomizedResponse
from lastbit.mechanisms.rounded_laplace import (
    RoundedLaplace as RoundedLaplace,
    rounded_bounds as rounded_bounds,
)
from lastbit.mechanisms.smooth_noise import (
    SmoothNoise as SmoothNoise,
    SmoothStatistic as SmoothStatistic,
    private_median as private_median,
    private_quantile as private_quantile,
    private_trimmed_mean as private_trimmed_mean,
    private_variance as private_variance,
    quantile_mechanism as quantile_mechanism,
)
from lastbit.mechanisms.snapping import Snapping as Snapping
from lastbit.mechanisms.stable_value import (
    BOTTOM as BOTTOM,
    Bottom as Bottom,
    Passed as Passed,
    ProposeTestRelease as ProposeTestRelease,
    StableValue as StableValue,
)

__all__ = [
    "AboveThreshold",
    "Admissibility",
    "BOTTOM",
    "Bottom",
    "Exponential",
    "ExponentialQuantile",
    "Gaussian",
    "Histogram",
    "Laplace",
    "NormLaplace",
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
    "SymmetricDensity",
    "ThresholdedHistogram",
    "admissibility",
    "private_median",
    "private_quantile",
    "private_trimmed_mean",
    "private_variance",
    "quantile_mechanism",
]
