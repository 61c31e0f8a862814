"""The independent checker of certificates.

Whoever distrusts lastbit reads this room alone. It imports the standard library and itself,
nothing of the rest, and none of its logic is used by what makes certificates: a fault of one side
is noticed by the other. Numbers are fractions; bounds are rounded the safe way.

| file | holds |
|---|---|
| `dispatch.py` | `check`, `problem_of`: a certificate of any kind, accepted or refused |
| `numbers.py` | fractions read and written, roots and logarithms rounded the safe way |
| `floats.py` | formats, intervals, and the error of drawing a uniform |
| `errors.py` | derivations of rounding errors, rule by rule |
| `law.py` | exact output laws |
| `rounding.py`, `shape.py`, `rate.py`, `direction.py` | code that adds noise and rounds |
| `code.py`, `steps.py` | is the code here the code that was certified? |
| `snapping.py` | the snapping mechanism |
| `release.py`, `query.py`, `answer.py` | answers about tables |
"""

from lastbit.checker.dispatch import (
    beliefs,
    certificate_in,
    check,
    check_apart_from_code,
    names_code,
    problem_of,
)
from lastbit.checker.floats import (
    check_quotient,
    check_uniform,
    draw_error,
    holds,
    quotient_error,
    spread,
)
from lastbit.checker.numbers import (
    Rejected,
    digest,
    number,
    written,
)
from lastbit.checker.rounding import (
    direction_of_noise,
)
from lastbit.checker.shape import (
    Interval,
    Rows,
    SignChange,
    shape,
    steady,
)

__all__ = [
    "Interval",
    "Rejected",
    "Rows",
    "SignChange",
    "beliefs",
    "certificate_in",
    "check",
    "check_apart_from_code",
    "check_quotient",
    "check_uniform",
    "digest",
    "direction_of_noise",
    "draw_error",
    "holds",
    "names_code",
    "number",
    "problem_of",
    "quotient_error",
    "shape",
    "spread",
    "steady",
    "written",
]
