# fmt: off
"""Float code that the certificates in `0.1/` are about. Never change a line of a function here.

A certificate holds the SHA-256 of the source and the bytecode of the code it names: with any edit,
a formatter's too, it is about other code and is rightly refused.
"""

import math

import numpy as np

from lastbit.verify import clamp, round_to


def laplace(value, u):
    if u >= 0.5:
        return value - math.log(2.0 - u - u)
    return value + math.log(u + u)


def rounded(value, u):
    return min(max(0.25 * round(laplace(value, u) / 0.25), -2.0), 2.0)


def signed(value, u, sign, scale=2.0):
    return min(max(0.5 * round((value + sign * scale * math.log(u)) / 0.5), -2.0), 2.0)


def response(value, u):
    return 1.0 if u < 0.25 else 0.0 if u < 0.5 else value


def noise(u, sign, scale=1.0):
    return sign * scale * math.log(u)


def numpy_noise(u, scale=1.0):
    return -scale * np.sign(u - 0.5) * np.log(1 - 2 * np.abs(u - 0.5))


def logistic(u):
    return math.log(u) - math.log(1 - u)


def average(a, b):
    return (a + b) / 3


def clamped(value, u, sign):
    return clamp(round_to(value + sign * math.log(u), 0.25), -2.0, 2.0)
