from lastbit.checker.dispatch import (
    beliefs as beliefs,
    certificate_in as certificate_in,
    check_apart_from_code as check_apart_from_code,
    names_code as names_code,
    problem_of as problem_of,
)
from lastbit.checker.floats import (
    check_quotient as check_quotient,
    check_uniform as check_uniform,
    draw_error as draw_error,
    holds as holds,
    quotient_error as quotient_error,
    spread as spread,
)
from lastbit.checker.numbers import (
    Rejected as Rejected,
    digest as digest,
    number as number,
    written as written,
)
from lastbit.checker.rounding import (
    direction_of_noise as direction_of_noise,
)
from lastbit.checker.shape import (
    Interval as Interval,
    Rows as Rows,
    SignChange as SignChange,
    shape as shape,
    steady as steady,
)

__all__ = []
