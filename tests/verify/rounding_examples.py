"""Laplace noise as people write it, and what else calls itself so."""

import math

import numpy as np


def one_uniform(u, scale=1.0):
    """Paper 000, Example 4.1."""
    return -scale * np.sign(u - 0.5) * np.log(1 - 2 * np.abs(u - 0.5))


def with_sign(u, sign, scale=1.0):
    return sign * scale * math.log(u)


def with_branches(u, scale=1.0):
    if u < 0.5:
        return scale * math.log(2 * u)
    return -(scale * math.log(2 * (1 - u)))


def printed(u, scale=1.0):
    """Formula (6) of paper 000: the minus sign is missing, the law is the same."""
    return scale * np.sign(u - 0.5) * np.log(1 - 2 * np.abs(u - 0.5))


def divided(u, sign, rate=1.0):
    return sign * (math.log(u) / rate)


RIGHT = (one_uniform, with_sign, with_branches, printed, divided)


def lopsided(u):
    if u < 0.5:
        return math.log(2 * u)
    return -2.0 * math.log(2 * (1 - u))


def shifted(u, sign):
    return sign * math.log(u) + 1.0


def not_to_the_end(u, sign):
    return sign * math.log(u + 0.25)


def one_sided(u):
    return math.log(u)


def same_side(u, sign):
    return sign * sign * math.log(u)


def uniform_noise(u):
    return u - 0.5


def gaussian_like(u, sign):
    return sign * math.sqrt(-2.0 * math.log(u))


def squared(u, sign):
    return sign * math.log(u) * math.log(u)


def split_elsewhere(u):
    if u < 0.25:
        return math.log(4 * u)
    return -math.log((1 - u) / 0.75)


def two_logarithms(u):
    return math.log(u) - math.log(1 - u)


WRONG = (
    lopsided,
    shifted,
    not_to_the_end,
    one_sided,
    same_side,
    uniform_noise,
    gaussian_like,
    squared,
    split_elsewhere,
    two_logarithms,
)
