from lastbit.privacy.accounting.calibrate import calibrated as calibrated
from lastbit.privacy.accounting.losses import (
    ApproxLoss as ApproxLoss,
    BoundedRangeLoss as BoundedRangeLoss,
    DiscreteGaussianLoss as DiscreteGaussianLoss,
    DiscreteGaussianVectorLoss as DiscreteGaussianVectorLoss,
    DiscreteLaplaceLoss as DiscreteLaplaceLoss,
    FiniteLoss as FiniteLoss,
    GaussianLoss as GaussianLoss,
    LaplaceLoss as LaplaceLoss,
    PrivacyLoss as PrivacyLoss,
    RandomizedResponseLoss as RandomizedResponseLoss,
    SubsampledGaussianLoss as SubsampledGaussianLoss,
    SubsampledLaplaceLoss as SubsampledLaplaceLoss,
    ThresholdLoss as ThresholdLoss,
    black_box as black_box,
)
from lastbit.privacy.accounting.profile import Profile as Profile
from lastbit.privacy.compose import (
    best_composition as best_composition,
    compositions as compositions,
    tight_profile as tight_profile,
)
from lastbit.privacy.computational import (
    KEYSTREAM as KEYSTREAM,
    ComputationalDP as ComputationalDP,
)
from lastbit.privacy.convert import (
    best_order_for_delta as best_order_for_delta,
    best_order_for_epsilon as best_order_for_epsilon,
    delta_upper as delta_upper,
    posterior_bounds as posterior_bounds,
)
from lastbit.privacy.filter import (
    NOTHING_SPENT as NOTHING_SPENT,
    SHARE_KEPT as SHARE_KEPT,
    MomentCost as MomentCost,
    MomentFilter as MomentFilter,
    moment_filter as moment_filter,
)
from lastbit.privacy.finite_laws import LawPair as LawPair
from lastbit.privacy.gaussian_filter import (
    GaussianCost as GaussianCost,
    GaussianFilter as GaussianFilter,
)
from lastbit.privacy.gaussian_pair import (
    LEAST_VECTOR_VARIANCE as LEAST_VECTOR_VARIANCE,
    step_mu_squared as step_mu_squared,
)
from lastbit.privacy.guarantees import (
    ZCDP as ZCDP,
    ApproxDP as ApproxDP,
    Guarantee as Guarantee,
    Loss as Loss,
    MetricDP as MetricDP,
    ProbabilisticDP as ProbabilisticDP,
    PureDP as PureDP,
    RenyiDP as RenyiDP,
    from_json as from_json,
    loss_parameter as loss_parameter,
    plus as plus,
    times as times,
)
from lastbit.privacy.least_noise import least_noise as least_noise
from lastbit.privacy.neighbours import (
    ADD_REMOVE as ADD_REMOVE,
    AS_DECLARED as AS_DECLARED,
    CHANGE_ONE as CHANGE_ONE,
    Neighbours as Neighbours,
    Relation as Relation,
    check_neighbours as check_neighbours,
)

__all__ = [
    "ADD_REMOVE",
    "AS_DECLARED",
    "ApproxDP",
    "ApproxLoss",
    "BoundedRangeLoss",
    "CHANGE_ONE",
    "ComputationalDP",
    "DiscreteGaussianLoss",
    "DiscreteGaussianVectorLoss",
    "DiscreteLaplaceLoss",
    "FiniteLoss",
    "GaussianCost",
    "GaussianFilter",
    "GaussianLoss",
    "Guarantee",
    "LaplaceLoss",
    "LawPair",
    "MetricDP",
    "MomentCost",
    "MomentFilter",
    "Neighbours",
    "ProbabilisticDP",
    "Profile",
    "PureDP",
    "RandomizedResponseLoss",
    "RenyiDP",
    "SubsampledGaussianLoss",
    "SubsampledLaplaceLoss",
    "ThresholdLoss",
    "ZCDP",
    "best_composition",
    "calibrated",
    "compositions",
    "from_json",
    "least_noise",
    "moment_filter",
    "posterior_bounds",
]
