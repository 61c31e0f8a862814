"""Gaussian noise as people write it, right and wrong, for tests and certificates with a name."""

from __future__ import annotations

import math

import numpy as np

from tests.verify.snapped_code import logarithms

H = np.float16


def box_muller(u, v):
    return 10.0 * math.sqrt(-2.0 * math.log(1.0 - u)) * math.cos(2.0 * math.pi * v)


def small_u(u, v):
    return 4.0 * (math.cos(2.0 * math.pi * v) * math.sqrt(-2.0 * math.log(u)))


def angle_first(u, v):
    """As CPython's random.gauss: the first draw is the angle."""
    return math.cos(u * 6.283185307179586) * math.sqrt(-2.0 * math.log(1.0 - v)) * 10.0


def of_numpy(u, v):
    return 10.0 * np.sqrt(-2.0 * np.log(1.0 - u)) * np.cos(2.0 * np.pi * v)


def square(u, v):
    x, y = 2.0 * u - 1.0, 2.0 * v - 1.0
    return x * x + y * y


def polar(u, v):
    """As numpy's legacy generator: accepted if 0 < square < 1."""
    x, y = 2.0 * u - 1.0, 2.0 * v - 1.0
    s = x * x + y * y
    return 10.0 * (math.sqrt(-2.0 * math.log(s) / s) * y)


def half_turn(u, v):
    return 10.0 * math.sqrt(-2.0 * math.log(1.0 - u)) * math.cos(math.pi * v)


def same_uniform(u, v):
    return 10.0 * math.sqrt(-2.0 * math.log(1.0 - u)) * math.cos(2.0 * math.pi * u) + 0.0 * v


def no_root(u, v):
    return 10.0 * (-2.0 * math.log(1.0 - u)) * math.cos(2.0 * math.pi * v)


def two_sums(u, v):
    return 10.0 * (u + v - 1.0)


def both_coordinates(u, v):
    x, y = 2.0 * u - 1.0, 2.0 * v - 1.0
    s = x * x + y * y
    return 10.0 * (math.sqrt(-2.0 * math.log(s) / s) * x * y)


def undivided(u, v):
    x, y = 2.0 * u - 1.0, 2.0 * v - 1.0
    return 10.0 * math.sqrt(-2.0 * math.log(x * x + y * y)) * y


def cube(u, v):
    x, y = 2.0 * u - 1.0, 2.0 * v - 1.0
    return x * x + y * y * y


def shifted_square(u, v):
    x, y = 2.0 * u - 1.0, 2.0 * v - 0.5
    return x * x + y * y


def ln16(x):
    """Ln of binary16 numbers, correctly rounded."""
    return logarithms()[x.view(np.uint16)]


def small_u16(u, v):
    return H(4) * (np.cos(H(2 * math.pi) * v) * np.sqrt(H(-2) * ln16(u)))


def forward16(u, v):
    """4 times a normal number, of 1 - u: `small_u` on a grid."""
    return H(4) * (np.cos(H(2 * math.pi) * v) * np.sqrt(H(-2) * ln16(H(1) - u)))


def square16(u, v):
    x, y = H(2) * u - H(1), H(2) * v - H(1)
    return x * x + y * y


def polar16(u, v):
    s = square16(u, v)
    return H(4) * (np.sqrt(H(-2) * ln16(s) / s) * (H(2) * v - H(1)))


def rounded16(value, noise, cell=2, bound=16):
    near = np.rint((value + noise) / H(cell)) * H(cell) + H(0)
    return np.clip(near, -H(bound), H(bound))
