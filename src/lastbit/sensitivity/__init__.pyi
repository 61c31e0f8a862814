from lastbit.sensitivity.distance import (
    Stability as Stability,
    distance_to_instability as distance_to_instability,
    for_argmax as for_argmax,
    for_function as for_function,
    for_mode as for_mode,
    for_quantile as for_quantile,
    for_threshold as for_threshold,
)
from lastbit.sensitivity.local import (
    distance_beyond as distance_beyond,
    local_sensitivity as local_sensitivity,
    sensitivity_at as sensitivity_at,
)
from lastbit.sensitivity.proposal import (
    Proposal as Proposal,
    propose as propose,
    several_bounds as several_bounds,
)
from lastbit.sensitivity.smooth import (
    LEAST_BETA as LEAST_BETA,
    SmoothBound as SmoothBound,
    from_distance as from_distance,
    smooth_sensitivity as smooth_sensitivity,
)
from lastbit.sensitivity.statistics import (
    Count as Count,
    InterquartileRange as InterquartileRange,
    Mean as Mean,
    Quantile as Quantile,
    Statistic as Statistic,
    Sum as Sum,
    TrimmedMean as TrimmedMean,
    Variance as Variance,
    check_defined as check_defined,
    relation_of as relation_of,
    statistic_of as statistic_of,
)
from lastbit.sensitivity.values import (
    Records as Records,
    bounds_of as bounds_of,
    exact_array as exact_array,
    masked as masked,
    records as records,
)
from lastbit.sensitivity.worst_case import global_sensitivity as global_sensitivity

__all__ = [
    "Count",
    "InterquartileRange",
    "Mean",
    "Proposal",
    "Quantile",
    "Records",
    "SmoothBound",
    "Stability",
    "Statistic",
    "Sum",
    "TrimmedMean",
    "Variance",
    "distance_beyond",
    "distance_to_instability",
    "for_argmax",
    "for_function",
    "for_mode",
    "for_quantile",
    "for_threshold",
    "from_distance",
    "global_sensitivity",
    "local_sensitivity",
    "propose",
    "records",
    "sensitivity_at",
    "smooth_sensitivity",
]
