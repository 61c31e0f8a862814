"""Noise of the plane as people write it, right and wrong, and the same in binary16."""

import math

import numpy as np

H = np.float16


def planar(u, v, w, scale=200.0):
    r = -scale * (math.log(1.0 - u) + math.log(1.0 - v))
    return r * math.cos(2.0 * math.pi * w), r * math.sin(2.0 * math.pi * w)


def forward(u, v, w):
    """The uniforms themselves, sine and cosine exchanged, the angle from -pi to pi."""
    angle = 2.0 * math.pi * w - math.pi
    r = math.log(u) + math.log(v)
    return -r * math.sin(angle) / 0.005, r * math.cos(angle) / 0.005


def of_numpy(u, v, w):
    r = np.log(1.0 - w) + np.log(1.0 - u)
    return -200.0 * r * np.cos(2.0 * np.pi * v), 200.0 * r * np.sin(2.0 * np.pi * v)


def apart(u, v, w):
    """Each logarithm times the cosine, added afterwards."""
    turn, other = math.cos(2.0 * math.pi * w), math.sin(2.0 * math.pi * w)
    a, b = -200.0 * math.log(1.0 - u), -200.0 * math.log(1.0 - v)
    return a * turn + b * turn, a * other + b * other


def release(x, y, u, v, w):
    r = -200.0 * (math.log(1.0 - u) + math.log(1.0 - v))
    east = x + r * math.cos(2.0 * math.pi * w)
    north = y + r * math.sin(2.0 * math.pi * w)
    return 4.0 * round(east / 4.0), 4.0 * round(north / 4.0)


def with_numpy(x, y, u, v, w):
    east, north = planar(u, v, w)
    return 4.0 * np.rint((x + east) * 0.25) + 0.0, 4.0 * np.rint((y + north) * 0.25) + 0.0


# ---------------------------------------------------------------- binary16


def small(u, v, w):
    r = -1.0 * (math.log(1.0 - u) + math.log(1.0 - v))
    return r * math.cos(2.0 * math.pi * w), r * math.sin(2.0 * math.pi * w)


def small16(u, v, w):
    r = H(-1) * (np.log(H(1) - u) + np.log(H(1) - v))
    return r * np.cos(H(6.28125) * w), r * np.sin(H(6.28125) * w)


# ---------------------------------------------------------------- sloppy noise

TAU = 2.0 * math.pi


def one_exponential(u, v, w):
    """The radius without the factor r of its density."""
    r = -200.0 * math.log(1.0 - u)
    return r * math.cos(TAU * w), r * math.sin(TAU * w)


def same_logarithm_twice(u, v, w):
    r = -200.0 * (math.log(1.0 - u) + math.log(1.0 - u))
    return r * math.cos(TAU * w), r * math.sin(TAU * w)


def both_ends_of_one_uniform(u, v, w):
    r = -200.0 * (math.log(1.0 - u) + math.log(u))
    return r * math.cos(TAU * w), r * math.sin(TAU * w)


def three_logarithms(u, v, w):
    r = -200.0 * (math.log(1.0 - u) + math.log(1.0 - v) + math.log(1.0 - w))
    return r * math.cos(TAU * w), r * math.sin(TAU * w)


def unequal_logarithms(u, v, w):
    r = -200.0 * math.log(1.0 - u) - 100.0 * math.log(1.0 - v)
    return r * math.cos(TAU * w), r * math.sin(TAU * w)


def a_difference(u, v, w):
    r = -200.0 * (math.log(1.0 - u) - math.log(1.0 - v))
    return r * math.cos(TAU * w), r * math.sin(TAU * w)


def a_root_for_a_radius(u, v, w):
    """The radius of a normal law."""
    r = 200.0 * math.sqrt(-2.0 * math.log(1.0 - u))
    return r * math.cos(TAU * w), r * math.sin(TAU * w)


def a_root_of_the_area(u, v, w):
    """Uniform in a disc."""
    r = 200.0 * math.sqrt(u)
    return r * math.cos(TAU * w), r * math.sin(TAU * w)


def a_uniform_radius(u, v, w):
    r = 200.0 * (u + v)
    return r * math.cos(TAU * w), r * math.sin(TAU * w)


def degrees(u, v, w):
    r = -200.0 * (math.log(1.0 - u) + math.log(1.0 - v))
    return r * math.cos(360.0 * w), r * math.sin(360.0 * w)


def half_a_turn(u, v, w):
    r = -200.0 * (math.log(1.0 - u) + math.log(1.0 - v))
    return r * math.cos(math.pi * w), r * math.sin(math.pi * w)


def a_rough_pi(u, v, w):
    r = -200.0 * (math.log(1.0 - u) + math.log(1.0 - v))
    return r * math.cos(6.2832 * w), r * math.sin(6.2832 * w)


def angle_of_the_radius(u, v, w):
    r = -200.0 * (math.log(1.0 - u) + math.log(1.0 - v))
    return r * math.cos(TAU * u), r * math.sin(TAU * u)


def angle_of_two(u, v, w):
    r = -200.0 * (math.log(1.0 - u) + math.log(1.0 - v))
    angle = math.pi * (u + w)
    return r * math.cos(angle), r * math.sin(angle)


def two_cosines(u, v, w):
    r = -200.0 * (math.log(1.0 - u) + math.log(1.0 - v))
    return r * math.cos(TAU * w), r * math.cos(TAU * w)


def two_angles(u, v, w):
    r = -200.0 * (math.log(1.0 - u) + math.log(1.0 - v))
    return r * math.cos(TAU * w), r * math.sin(TAU * w + 1.0)


def opposite_angles(u, v, w):
    r = -200.0 * (math.log(1.0 - u) + math.log(1.0 - v))
    return r * math.cos(TAU * w), r * math.sin(TAU * (1.0 - w))


def an_ellipse(u, v, w):
    r = -200.0 * (math.log(1.0 - u) + math.log(1.0 - v))
    return r * math.cos(TAU * w), 0.5 * r * math.sin(TAU * w)


def another_radius_each(u, v, w):
    r, s = -200.0 * (math.log(1.0 - u) + math.log(1.0 - v)), -200.0 * math.log(1.0 - u)
    return r * math.cos(TAU * w), s * math.sin(TAU * w)


def no_angle(u, v, w):
    r = -200.0 * (math.log(1.0 - u) + math.log(1.0 - v))
    return r * 0.8, r * 0.6


def two_laplaces(u, v, w):
    """A Laplace law in each coordinate: its density is of another distance."""
    return 200.0 * (math.log(1.0 - u) - math.log(1.0 - w)), 200.0 * math.log(1.0 - v)


def only_one_coordinate(u, v, w):
    r = -200.0 * (math.log(1.0 - u) + math.log(1.0 - v))
    return r * math.cos(TAU * w), 0.0 * r


def moved(u, v, w):
    r = -200.0 * (math.log(1.0 - u) + math.log(1.0 - v))
    return r * math.cos(TAU * w) + 1.0, r * math.sin(TAU * w)


def a_square_of_the_cosine(u, v, w):
    r = -200.0 * (math.log(1.0 - u) + math.log(1.0 - v))
    turn = math.cos(TAU * w)
    return r * turn * turn, r * math.sin(TAU * w)


def a_product_of_logarithms(u, v, w):
    r = 200.0 * (math.log(1.0 - u) * math.log(1.0 - v))
    return r * math.cos(TAU * w), r * math.sin(TAU * w)


def a_logarithm_of_a_product(u, v, w):
    """Right in the reals: refused with the remedy."""
    r = -200.0 * math.log((1.0 - u) * (1.0 - v))
    return r * math.cos(TAU * w), r * math.sin(TAU * w)


def a_remainder(u, v, w):
    r = -200.0 * (math.log(1.0 - u) + math.log(1.0 - v))
    angle = (TAU * w) % TAU
    return r * math.cos(angle), r * math.sin(angle)


def a_radius_cut_off(u, v, w):
    r = min(-200.0 * (math.log(1.0 - u) + math.log(1.0 - v)), 1000.0)
    return r * math.cos(TAU * w), r * math.sin(TAU * w)


def logarithm_of_zero(u, v, w):
    r = -200.0 * (math.log(u) + math.log(v))
    return r * math.cos(TAU * w), r * math.sin(TAU * w)


def a_shifted_uniform(u, v, w):
    """So that no logarithm of 0 arises: another law."""
    r = -200.0 * (math.log(u + 0.001) + math.log(v + 0.001))
    return r * math.cos(TAU * w), r * math.sin(TAU * w)


def half_the_uniform(u, v, w):
    r = -200.0 * (math.log(0.5 * (1.0 - u)) + math.log(1.0 - v))
    return r * math.cos(TAU * w), r * math.sin(TAU * w)


def quadrants(u, v, w):
    """The angle in the first quadrant when w is small."""
    r = -200.0 * (math.log(1.0 - u) + math.log(1.0 - v))
    if w < 0.5:
        return r * math.cos(TAU * w), r * math.sin(TAU * w)
    return r * math.sin(TAU * w), r * math.cos(TAU * w)


def a_list(u, v, w):
    r = -200.0 * (math.log(1.0 - u) + math.log(1.0 - v))
    return [r * math.cos(TAU * w), r * math.sin(TAU * w)]


def one_number(u, v, w):
    return -200.0 * (math.log(1.0 - u) + math.log(1.0 - v)) * math.cos(TAU * w)


CALLS = [0]


def every_second_call(u, v, w):
    CALLS[0] += 1
    scale = 200.0 if CALLS[0] % 2 else 2.0
    r = -scale * (math.log(1.0 - u) + math.log(1.0 - v))
    return r * math.cos(TAU * w), r * math.sin(TAU * w)


def less_for_small_draws(u, v, w):
    scale = 200.0 if u > 2.0**-40 else 1.0
    r = -scale * (math.log(1.0 - u) + math.log(1.0 - v))
    return r * math.cos(TAU * w), r * math.sin(TAU * w)


SLOPPY = (
    *(one_exponential, same_logarithm_twice, both_ends_of_one_uniform, three_logarithms),
    *(unequal_logarithms, a_difference, a_root_for_a_radius, a_root_of_the_area, a_uniform_radius),
    *(degrees, half_a_turn, a_rough_pi, angle_of_the_radius, angle_of_two, two_cosines),
    *(two_angles, opposite_angles, an_ellipse, another_radius_each, no_angle, two_laplaces),
    *(only_one_coordinate, moved, a_square_of_the_cosine, a_product_of_logarithms),
    *(a_logarithm_of_a_product, a_remainder, a_radius_cut_off, logarithm_of_zero),
    *(a_shifted_uniform, half_the_uniform, quadrants, a_list, one_number, every_second_call),
    less_for_small_draws,
)

# ---------------------------------------------------------------- sloppy mechanisms


def unrounded(x, y, u, v, w):
    east, north = planar(u, v, w)
    return x + east, y + north


def rounds_the_noise(x, y, u, v, w):
    east, north = planar(u, v, w)
    return x + 4.0 * round(east / 4.0), y + 4.0 * round(north / 4.0)


def rounds_one(x, y, u, v, w):
    east, north = planar(u, v, w)
    return 4.0 * round((x + east) / 4.0), y + north


def two_grids(x, y, u, v, w):
    east, north = planar(u, v, w)
    return 4.0 * round((x + east) / 4.0), 8.0 * round((y + north) / 8.0)


def clamps(x, y, u, v, w):
    east, north = release(x, y, u, v, w)
    return min(max(east, -1000.0), 1000.0), min(max(north, -1000.0), 1000.0)


def minus_zero(x, y, u, v, w):
    east, north = planar(u, v, w)
    return 4.0 * np.rint((x + east) / 4.0), 4.0 * np.rint((y + north) / 4.0)


def outside_in_the_code(x, y, u, v, w):
    east, north = release(x, y, u, v, w)
    if east > 1000.0:
        return math.inf, math.inf
    return east, north


def twice_the_value(x, y, u, v, w):
    east, north = planar(u, v, w)
    return 4.0 * round((2.0 * x + east) / 4.0), 4.0 * round((y + north) / 4.0)


def exchanged_values(x, y, u, v, w):
    east, north = planar(u, v, w)
    return 4.0 * round((y + east) / 4.0), 4.0 * round((x + north) / 4.0)


def adds_the_value_again(x, y, u, v, w):
    east, north = release(x, y, u, v, w)
    return east + 0.001 * x, north


def fails_by_the_value(x, y, u, v, w):
    1.0 / (x - 3.7)
    return release(x, y, u, v, w)


def scaled_by_the_value(x, y, u, v, w):
    east, north = planar(u, v, w)
    return 4.0 * round((x + east * (1.0 + 0.001 * x)) / 4.0), 4.0 * round((y + north) / 4.0)


def finer_to_the_left(x, y, u, v, w):
    east, north = planar(u, v, w)
    if x < 0.0:
        return 2.0 * round((x + east) / 2.0), 4.0 * round((y + north) / 4.0)
    return 4.0 * round((x + east) / 4.0), 4.0 * round((y + north) / 4.0)


SLOPPY_MECHANISMS = (
    *(unrounded, rounds_the_noise, rounds_one, two_grids, clamps, minus_zero),
    *(outside_in_the_code, twice_the_value, exchanged_values, adds_the_value_again),
    *(fails_by_the_value, scaled_by_the_value, finer_to_the_left),
)
