"""Right code as people write it: certified, or refused with a remedy that says what to do."""

import math
from fractions import Fraction
from functools import wraps
from math import log

import numpy as np

from lastbit.verify.tracing.markers import clamp, round_to
from tests.verify.sloppy import noise

SCALE = 1.0
ENDS = (-8.0, 8.0)
STEP = np.float64(0.25)


def plain(value, u, sign):
    return min(max(0.25 * round((value + sign * math.log(u)) / 0.25), -8.0), 8.0)


def with_numpy(value, u, sign):
    return np.clip(0.25 * np.rint((value + sign * np.log(u)) / 0.25) + 0.0, -8.0, 8.0)


def with_minimum(value, u, sign):
    total = (value + sign * np.log(u)) / 0.25
    return np.minimum(np.maximum(0.25 * round(total), -8.0), 8.0)


def with_clamp(value, u, sign):
    return clamp(round_to(value + sign * log(u), 0.25), -8.0, 8.0)


def through_module(value, u, sign):
    return noise.rounded(value, u, sign, 1.0)


def with_globals(value, u, sign):
    total = value + sign * SCALE * log(u)
    return min(max(0.25 * round(total / 0.25), ENDS[0]), ENDS[1])


def with_numpy_constant(value, u, sign):
    return np.clip(STEP * round((value + sign * log(u)) / STEP), -8.0, 8.0)


def with_default(value, u, sign, scale=1.0, *, step=0.25):
    return min(max(step * round((value + sign * scale * math.log(u)) / step), -8.0), 8.0)


def by_product(value, u, sign):
    return min(max(round((value + sign * math.log(u)) * 4.0) / 4.0, -8.0), 8.0)


def on_two_sides(value, u):
    if u < 0.5:  # noqa: SIM108 - as people write it
        total = value + math.log(2 * u)
    else:
        total = value - math.log(2 * (1 - u))
    return min(max(0.25 * round(total / 0.25), -8.0), 8.0)


def textbook(value, u):
    total = value - np.sign(u - 0.5) * np.log(1 - 2 * np.abs(u - 0.5))
    return min(max(0.25 * round(total / 0.25), -8.0), 8.0)


def with_inner(value, u, sign):
    def total(scale):
        return value + sign * scale * math.log(u)

    return min(max(0.25 * round(total(1.0) / 0.25), -8.0), 8.0)


def with_lambda(value, u, sign):
    to_grid = lambda x: 0.25 * round(x / 0.25)  # noqa: E731
    return min(max(to_grid(value + sign * math.log(u)), -8.0), 8.0)


def with_loop(value, u, sign):
    total = value
    for part in (0.5, 0.5):
        total = total + part * 0.0
    return min(max(0.25 * round((value + sign * math.log(u)) / 0.25), -8.0), 8.0)


def with_list(value, u, sign):
    ends = [8.0 * s for s in (-1, 1)]
    return min(max(0.25 * round((value + sign * math.log(u)) / 0.25), ends[0]), ends[1])


def checked(value, u, sign, scale=1.0):
    if scale <= 0:
        raise ValueError(f"scale {scale} is not above 0")
    return min(max(0.25 * round((value + sign * scale * math.log(u)) / 0.25), -8.0), 8.0)


def with_walrus(value, u, sign):
    total = value + sign * (drawn := math.log(u))
    return min(max(0.25 * round(total / 0.25), -8.0), 8.0 * len([drawn]))


def with_none(value, u, sign, step=None):
    if step is None:
        step = 0.25
    return min(max(step * round((value + sign * math.log(u)) / step), -8.0), 8.0)


def with_fraction(value, u, sign):
    return min(max(0.25 * round((value + sign * Fraction(1) * math.log(u)) / 0.25), -8.0), 8.0)


def positional(value, u, sign, /, scale=1.0):
    return min(max(0.25 * round((value + sign * scale * math.log(u)) / 0.25), -8.0), 8.0)


def kept_within(low, high):
    def decorate(function):
        @wraps(function)
        def within(value, u, sign):
            return min(max(function(value, u, sign), low), high)

        return within

    return decorate


@kept_within(-8.0, 8.0)
def decorated(value, u, sign):
    return 0.25 * round((value + sign * math.log(u)) / 0.25)


def scaled(scale):
    def mechanism(value, u, sign):
        return min(max(0.25 * round((value + sign * scale * math.log(u)) / 0.25), -8.0), 8.0)

    return mechanism


enclosed = scaled(1.0)


def with_isinstance(value, u, sign):
    if not isinstance(value, float):
        raise TypeError("pass a float")
    return plain(value, u, sign)


def with_import(value, u, sign):
    import math as maths

    return min(max(0.25 * round((value + sign * maths.log(u)) / 0.25), -8.0), 8.0)


def with_assertion(value, u, sign):
    assert 0 < u < 1
    return plain(value, u, sign)


def with_try(value, u, sign):
    try:
        drawn = math.log(u)
    except ValueError:
        drawn = -math.inf
    return min(max(0.25 * round((value + sign * drawn) / 0.25), -8.0), 8.0)


def with_float(value, u, sign):
    return plain(float(value), u, sign)


def with_dictionary(value, u, sign):
    settings = {"step": 0.25}
    return min(max(0.25 * round((value + sign * math.log(u)) / settings["step"]), -8.0), 8.0)


CERTIFIED = (
    plain, with_numpy, with_minimum, with_clamp, through_module, with_globals, with_numpy_constant,
    with_default, by_product, on_two_sides, textbook, with_inner, with_lambda, with_loop, with_list,
    checked, with_assertion, with_walrus, with_none, with_fraction, positional, decorated, enclosed,
)  # fmt: skip
REFUSED = (
    (with_isinstance, "inputs are floats"),
    (with_import, "import at the top of the module"),
    (with_try, "move it out of the function"),
    (with_float, "leave it as it is"),
    (with_dictionary, "give each number its own name"),
)
