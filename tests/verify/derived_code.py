"""Float mechanisms with noise by ln: right ones, and wrong twins with the rule that each needs."""

from __future__ import annotations

import math

from lastbit.verify.running.uniforms import Grid


def snapping(value, u, sign):
    noise = sign * (math.log(u) / 1.0)
    return min(max(1.0 * round(min(max(value, -64.0), 64.0) + noise), -64.0), 64.0)


def rounded_laplace(value, u, sign):
    return min(max(0.25 * round((value + sign * 2.0 * math.log(u)) / 0.25), -8.0), 8.0)


def by_tenths(value, u, sign):
    """Neither the scale nor the step is a power of two."""
    return min(max(0.1 * round((value - sign * math.log(u) / 0.7) / 0.1), -8.0), 8.0)


def two_sided(value, u):
    if u < 0.5:  # noqa: SIM108 - as people write it
        noise = 3.0 * math.log(2 * u)
    else:
        noise = -(3.0 * math.log(2 - 2 * u))
    return min(max(0.5 * round((value + noise) / 0.5), -8.0), 8.0)


RIGHT = [snapping, rounded_laplace, by_tenths, two_sided]


# ---------------------------------------------------------------- wrong, or beyond the rules


def not_rounded(value, u, sign):
    return value + sign * math.log(u)


def scaled_value(value, u, sign):
    return min(max(1.0 * round(2.0 * value + sign * math.log(u)), -8.0), 8.0)


def added_twice(value, u, sign):
    return min(max(1.0 * round((value + sign * math.log(u)) + 0.25), -8.0), 8.0)


def noise_moved(value, u, sign):
    return min(max(1.0 * round(value + (sign * math.log(u) + 0.5)), -8.0), 8.0)


def other_steps(value, u, sign):
    noise = 3.0 * math.log(u) if sign > 0 else -(math.log(u) * 6.0 / 2.0)
    return min(max(1.0 * round(value + noise), -8.0), 8.0)


def one_sided(value, u):
    return min(max(1.0 * round(value + math.log(u)), -8.0), 8.0)


def lopsided(value, u, sign):
    """Noise of scale 1 to one side and of 3 to the other."""
    noise = 3.0 * math.log(u) if sign > 0 else -math.log(u)
    return min(max(1.0 * round(value + noise), -8.0), 8.0)


def from_one(value, u, sign):
    return min(max(1.0 * round(value + sign * math.log(1 - u)), -8.0), 8.0)


def wide(value, u, sign):
    return min(max(1.0 * round(value + sign * math.log(u)), -(2.0**52)), 2.0**52)


def fine(value, u, sign):
    return min(max(2.0**-48 * round((value + sign * math.log(u)) * 2.0**48), -8.0), 8.0)


def rounded_noise(value, u, sign):
    return min(max(value + 1.0 * round(sign * math.log(u)), -8.0), 8.0)


def of_a_root(value, u, sign):
    return min(max(1.0 * round(value + sign * math.sqrt(-math.log(u))), -8.0), 8.0)


def tiny(value, u, sign):
    return min(max(1.0 * round(value + sign * (2.0**-1000 * math.log(u)) * 2.0**1000), -8.0), 8.0)


WRONG = [
    (not_rounded, {"region": (-8, 8)}, "the code does not round its result"),
    (scaled_value, {}, "ADD: the sum is not the value plus noise around 0"),
    (added_twice, {}, "ADD: the sum is not the value plus noise around 0"),
    (noise_moved, {}, "ADD: the sum is not the value plus noise around 0"),
    (other_steps, {}, "AXUNIF: the two sides compute their noise by other steps"),
    (one_sided, {}, "the noise cannot be recognised"),
    (lopsided, {}, "the noise cannot be recognised"),
    (from_one, {}, "LN: the argument of the logarithm is rounded"),
    (snapping, {"uniform": Grid(53, offset=1)}, "AXUNIF: the uniform is too coarse"),
    (wide, {}, "MONOTONE: rounding moves edges"),
    (fine, {}, "OVER: the cells are too small"),
    (rounded_noise, {"region": (-8, 8)}, "the code does not round its result in a form"),
    (of_a_root, {}, "the noise cannot be recognised"),
    (tiny, {}, "MUL: the noise may underflow"),
]
