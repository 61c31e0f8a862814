from lastbit.privacy.compose import (
    best_composition as best_composition,
    compositions as compositions,
)
from lastbit.privacy.convert import (
    best_order_for_delta as best_order_for_delta,
    best_order_for_epsilon as best_order_for_epsilon,
    delta_upper as delta_upper,
    least_noise as least_noise,
    posterior_bounds as posterior_bounds,
)
from lastbit.privacy.filter import (
    NOTHING_SPENT as NOTHING_SPENT,
    MomentCost as MomentCost,
    MomentFilter as MomentFilter,
    moment_filter as moment_filter,
)
from lastbit.privacy.guarantees import (
    ADD_REMOVE as ADD_REMOVE,
    AS_DECLARED as AS_DECLARED,
    CHANGE_ONE as CHANGE_ONE,
    ZCDP as ZCDP,
    ApproxDP as ApproxDP,
    Guarantee as Guarantee,
    Loss as Loss,
    MetricDP as MetricDP,
    Neighbours as Neighbours,
    ProbabilisticDP as ProbabilisticDP,
    PureDP as PureDP,
    Relation as Relation,
    RenyiDP as RenyiDP,
    check_neighbours as check_neighbours,
    from_json as from_json,
    loss_parameter as loss_parameter,
    plus as plus,
    times as times,
)

__all__ = [
    "ADD_REMOVE",
    "AS_DECLARED",
    "ApproxDP",
    "CHANGE_ONE",
    "Guarantee",
    "MetricDP",
    "MomentCost",
    "MomentFilter",
    "Neighbours",
    "ProbabilisticDP",
    "PureDP",
    "RenyiDP",
    "ZCDP",
    "best_composition",
    "compositions",
    "from_json",
    "least_noise",
    "moment_filter",
    "posterior_bounds",
]
