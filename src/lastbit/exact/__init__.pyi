from lastbit.exact.ball import (
    DEFAULT_PRECISION as DEFAULT_PRECISION,
    Ball as Ball,
    Real as Real,
    arb_of as arb_of,
    at_most as at_most,
    enclosure_of as enclosure_of,
    ends as ends,
    floor_ceil as floor_ceil,
    refine as refine,
    working_precision as working_precision,
)
from lastbit.exact.binomial import (
    clopper_pearson as clopper_pearson,
    probability_lower as probability_lower,
    probability_upper as probability_upper,
    tail_at_most as tail_at_most,
    tail_surely_at_most as tail_surely_at_most,
)
from lastbit.exact.decimals import (
    decimal_exp as decimal_exp,
    decimal_ln as decimal_ln,
    decimal_log as decimal_log,
    decimal_power as decimal_power,
)
from lastbit.exact.elementary import (
    LARGEST_ARGUMENT as LARGEST_ARGUMENT,
    alternating as alternating,
    exp_negative as exp_negative,
)
from lastbit.exact.fixed_point import (
    Enclosure as Enclosure,
    Pair as Pair,
    exp_between as exp_between,
    ln_between as ln_between,
    mills_between as mills_between,
    product as product,
    rational_between as rational_between,
    root_two_pi_between as root_two_pi_between,
    shorter as shorter,
)
from lastbit.exact.logarithm import ln as ln, ln_each as ln_each
from lastbit.exact.rational import (
    Number as Number,
    floor_log2 as floor_log2,
    nonnegative as nonnegative,
    positive as positive,
    probability as probability,
    rational as rational,
    root_above as root_above,
    root_below as root_below,
    root_bounds as root_bounds,
)
from lastbit.exact.rounding import (
    between as between,
    certain as certain,
    exact_text as exact_text,
    fixed as fixed,
    lower as lower,
    nearest as nearest,
    rounded_down as rounded_down,
    rounded_near as rounded_near,
    rounded_up as rounded_up,
    upper as upper,
)
from lastbit.exact.theta import (
    complement as complement,
    gaussian_weights as gaussian_weights,
    share as share,
    theta_between as theta_between,
)
from lastbit.exact.trigonometry import cos_sin_turn as cos_sin_turn
from lastbit.exact.written import shown as shown, whole as whole

__all__ = [
    "Ball",
    "Number",
    "Real",
    "exp_negative",
    "lower",
    "positive",
    "rational",
    "refine",
    "upper",
]
