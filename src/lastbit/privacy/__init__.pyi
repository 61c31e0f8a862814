from lastbit.privacy.calibrate import (
    least_noise as least_noise,
)
from lastbit.privacy.compose import (
    best_composition as best_composition,
    compositions as compositions,
)
from lastbit.privacy.convert import (
    best_order_for_delta as best_order_for_delta,
    best_order_for_epsilon as best_order_for_epsilon,
    delta_upper as delta_upper,
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
from lastbit.privacy.neighbours import (
    ADD_REMOVE as ADD_REMOVE,
    AS_DECLARED as AS_DECLARED,
    CHANGE_ONE as CHANGE_ONE,
    Neighbours as Neighbours,
    Relation as Relation,
    check_neighbours as check_neighbours,
)
from lastbit.privacy.posterior import (
    posterior_bounds as posterior_bounds,
)

__all__ = [
    "ADD_REMOVE",
    "AS_DECLARED",
    "ApproxDP",
    "CHANGE_ONE",
    "Guarantee",
    "MetricDP",
    "Neighbours",
    "ProbabilisticDP",
    "PureDP",
    "RenyiDP",
    "ZCDP",
    "best_composition",
    "compositions",
    "from_json",
    "least_noise",
    "posterior_bounds",
]
