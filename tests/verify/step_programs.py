"""Programs of the steps that may stand around a rounding, right and wrong, as people write them.

RIGHT has what must be certified, by what it is about; WRONG what must not, beside it: each loses
more than its right twin's proof says, or fails for some values. `generated` makes random ones.
"""

import math
import random
from fractions import Fraction

import numpy as np

from lastbit.verify.tracing.markers import clamp, round_to

TENTH = 0.1
PART = Fraction(1, 10)
ENDS = (-8.0, 8.0)
MANY = 2**53 + 1
MANY_ROUNDED = int(float(8 * MANY))
THIRD = Fraction(1, 3)
THIRDS_ROUNDED = Fraction(8 / 3)


def plain(value, u, sign):
    return min(max(0.25 * round((value + sign * math.log(u)) / 0.25), -8.0), 8.0)


# ---------------------------------------------------------------- asserts


def assert_positive(value, u, sign):
    assert u > 0
    return plain(value, u, sign)


def assert_inside(value, u, sign):
    assert 0 < u < 1, "u is no uniform"
    return plain(value, u, sign)


def assert_not_zero(value, u, sign):
    assert u != 0
    return plain(value, u, sign)


def raise_at_zero(value, u, sign):
    if u <= 0.0:
        raise ValueError("u must be above 0")
    return plain(value, u, sign)


def raise_outside(value, u, sign):
    if not 0.0 < u < 1.0:
        raise ValueError("u must be between 0 and 1")
    return plain(value, u, sign)


def assert_normal(value, u, sign):
    assert u >= 2.0**-1022
    return plain(value, u, sign)


def assert_value(value, u, sign):
    assert value > 3.0
    return plain(value, u, sign)


def assert_value_inside(value, u, sign):
    assert -8.0 <= value <= 8.0
    return plain(value, u, sign)


def assert_sum(value, u, sign):
    assert value + sign * math.log(u) < 20.0
    return plain(value, u, sign)


def assert_often(value, u, sign):
    assert u > 0.001
    return plain(value, u, sign)


def raise_by_both(value, u, sign):
    if u < 0.01 and value > 3.0:
        raise ValueError("rare")
    return plain(value, u, sign)


# ---------------------------------------------------------------- clamps by if


def clamp_value_by_if(value, u, sign):
    if value > 8.0:
        value = 8.0
    if value < -8.0:
        value = -8.0
    return plain(value, u, sign)


def clamp_value_by_elif(value, u, sign):
    if value >= 8.0:
        value = 8.0
    elif value <= -8.0:
        value = -8.0
    return plain(value, u, sign)


def clamp_value_narrowly(value, u, sign):
    centre = 5.0 if value > 5.0 else 0.0 if value < 0.0 else value
    return plain(centre, u, sign)


def clamp_by_return(value, u, sign):
    x = 0.25 * round((value + sign * math.log(u)) / 0.25)
    if x > 8.0:
        return 8.0
    if x < -8.0:
        return -8.0
    return x


def clamp_by_assignment(value, u, sign):
    x = 0.25 * round((value + sign * math.log(u)) / 0.25)
    if x >= 8.0:
        x = 8.0
    elif x <= -8.0:
        x = -8.0
    return x


def clamp_by_expression(value, u, sign):
    x = 0.25 * round((value + sign * math.log(u)) / 0.25)
    return -8.0 if x < -8.0 else 8.0 if x > 8.0 else x


def clamp_by_if_on_two_sides(value, u):
    x = value + math.log(2 * u) if u < 0.5 else value - math.log(2 - 2 * u)
    x = 0.25 * round(x / 0.25)
    if x > 8.0:
        x = 8.0
    if x < -8.0:
        x = -8.0
    return x


def clamp_to_another(value, u, sign):
    x = 0.25 * round((value + sign * math.log(u)) / 0.25)
    if x > 8.0:
        return 9.0 + value
    return max(x, -8.0)


def clamp_by_the_value(value, u, sign):
    x = 0.25 * round((value + sign * math.log(u)) / 0.25)
    high = 8.0 if value > 0.0 else 4.0
    return min(max(x, -8.0), high)


def clamp_to_the_value(value, u, sign):
    x = 0.25 * round((value + sign * math.log(u)) / 0.25)
    if x > 8.0:
        x = value
    return max(x, -8.0)


def clamp_value_with_a_jump(value, u, sign):
    if value > 3.0:
        value = 8.0
    return plain(value, u, sign)


def clamp_for_some_values(value, u, sign):
    x = 0.25 * round((value + sign * math.log(u)) / 0.25)
    if value > 3.0 and x > 2.0:
        x = 2.0
    return min(max(x, -8.0), 8.0)


def tell_an_edge_by_if(value, u):
    """The one float at the edge of the last cell has a result of its own."""
    x = value - np.sign(u - 0.5) * math.log(1.0 - 2.0 * abs(u - 0.5))
    if x < -8.0:
        return -MANY_ROUNDED
    if x > 7.500000000000001:
        return MANY_ROUNDED
    return round(x) * MANY


def tell_an_edge_by_a_fraction(value, u):
    x = value - np.sign(u - 0.5) * math.log(1.0 - 2.0 * abs(u - 0.5))
    if x < -8.0:
        return -THIRDS_ROUNDED
    if x > 7.500000000000001:
        return THIRDS_ROUNDED
    return round(x) * THIRD


def tell_more_than_the_end(value, u, sign):
    k = round(value + sign * math.log(u))
    if k > 8:
        return MANY_ROUNDED
    return max(k, -8) * MANY


def clamp_what_fails(value, u, sign):
    if 1.0 / (value - 3.0371) > 8.0:
        pass
    return plain(value, u, sign)


# ---------------------------------------------------------------- a clamp, then the rounding


def clamp_then_round(value, u, sign):
    x = min(max(value + sign * math.log(u), -8.0), 8.0)
    return 0.25 * round(x / 0.25)


def clamp_by_if_then_round(value, u, sign):
    x = value + sign * math.log(u)
    if x < -8.0:
        x = -8.0
    elif x > 8.0:
        x = 8.0
    return 0.25 * round(x / 0.25)


def clamp_quotient_then_round(value, u, sign):
    return 0.25 * round(min(max((value + sign * math.log(u)) / 0.25, -32.0), 32.0))


def clip_then_round_to(value, u, sign):
    return round_to(np.clip(value + sign * np.log(u), -8.0, 8.0), 0.25)


def clamp_then_round_by_product(value, u, sign):
    return round(clamp(value + sign * math.log(u), -8.0, 8.0) * 4.0) / 4.0


def clamp_noise_then_round(value, u, sign):
    x = value + min(max(sign * math.log(u), -2.0), 2.0)
    return min(max(0.25 * round(x / 0.25), -8.0), 8.0)


def clamp_around_the_value(value, u, sign):
    x = min(max(value + sign * math.log(u), value - 2.0), value + 2.0)
    return 0.25 * round(x / 0.25)


def clip_long_whole_numbers(value, u, sign):
    """Of whole numbers beyond 2**64 np.clip makes a float of Python: the type tells the tail."""
    return np.clip(round(value + sign * math.log(u)) * 2**60, -8.0 * 2**60, 8.0 * 2**60)


def clamp_and_do_not_round(value, u, sign):
    return min(max(value + sign * math.log(u), -8.0), 8.0)


# ---------------------------------------------------------------- a minus


def minus_result(value, u, sign):
    return -plain(value, u, sign)


def minus_whole(value, u, sign):
    return min(max(0.25 * -round((value + sign * math.log(u)) / 0.25), -8.0), 8.0)


def minus_step(value, u, sign):
    return min(max(-0.25 * round((value + sign * math.log(u)) / 0.25), -8.0), 8.0)


def minus_from(value, u, sign):
    return 3.0 - plain(value, u, sign)


def minus_by_draw(value, u, sign):
    x = plain(value, u, sign)
    return -x if u < 0.25 else x


def minus_by_value(value, u, sign):
    x = plain(value, u, sign)
    return -x if value > 3.0 else x


def minus_with_two_zeros(value, u, sign):
    x = np.clip(0.25 * np.rint((value + sign * np.log(u)) / 0.25), -8.0, 8.0)
    return -x


def minus_zero_by_draw(value, u):
    if u < 0.5:
        return min(max(-0.25 * round((-value - math.log(2 * u)) / 0.25), -8.0), 8.0)
    return min(max(0.25 * round((value - math.log(2 - 2 * u)) / 0.25), -8.0), 8.0)


# ---------------------------------------------------------------- a public offset


def offset_after(value, u, sign):
    return plain(value, u, sign) + 100.0


def offset_before(value, u, sign):
    x = value + 100.0 + sign * math.log(u)
    return min(max(0.25 * round(x / 0.25), 92.0), 108.0)


def offset_between(value, u, sign):
    return min(max(0.25 * round((value + sign * math.log(u)) / 0.25) + 2.0, -8.0), 8.0)


def offset_around(value, u, sign):
    return min(max(0.25 * round((value - 100.0 + sign * math.log(u)) / 0.25), -8.0), 8.0) + 100.0


def offset_is_the_value(value, u, sign):
    return plain(value, u, sign) + value


def offset_is_a_bit_of_the_value(value, u, sign):
    return plain(value, u, sign) + 1e-9 * value


def offset_by_the_value(value, u, sign):
    return plain(value, u, sign) + (100.0 if value > 3.0 else 0.0)


def offset_by_the_draw(value, u, sign):
    return plain(value, u, sign) + u


# ---------------------------------------------------------------- a multiple of the value


def half_value(value, u, sign):
    return min(max(0.25 * round((0.5 * value + sign * math.log(u)) / 0.25), -8.0), 8.0)


def value_by_two(value, u, sign):
    return min(max(0.25 * round((value / 2 + sign * math.log(u)) / 0.25), -8.0), 8.0)


def tenth_of_value(value, u, sign):
    return min(max(0.25 * round((TENTH * value + sign * math.log(u)) / 0.25), -1.0), 1.0)


def clamped_and_halved(value, u, sign):
    x = 0.5 * min(max(value, -8.0), 8.0) + sign * math.log(u)
    return min(max(0.25 * round(x / 0.25), -8.0), 8.0)


def squared_value(value, u, sign):
    return min(max(0.25 * round((value * value + sign * math.log(u)) / 0.25), -8.0), 8.0)


def value_by_value(value, u, sign):
    factor = 0.5 if value < 3.0 else 2.0
    return min(max(0.25 * round((factor * value + sign * math.log(u)) / 0.25), -8.0), 8.0)


def value_by_draw(value, u, sign):
    return min(max(0.25 * round((u * value + sign * math.log(u)) / 0.25), -8.0), 8.0)


# ---------------------------------------------------------------- fsum


def fsum_of_list(value, u, sign):
    return min(max(0.25 * round(math.fsum([value, sign * math.log(u)]) / 0.25), -8.0), 8.0)


def fsum_of_tuple(value, u, sign):
    noise = sign * math.log(u)
    return min(max(0.25 * round(math.fsum((noise, value)) / 0.25), -8.0), 8.0)


def fsum_with_half(value, u, sign):
    return min(max(0.25 * round(math.fsum([0.5 * value, sign * math.log(u)]) / 0.25), -8.0), 8.0)


def fsum_twice(value, u, sign):
    x = math.fsum([math.fsum([value, 1.0]), sign * math.log(u)])
    return min(max(0.25 * round(x / 0.25), -8.0), 8.0)


def fsum_of_the_value_twice(value, u, sign):
    x = math.fsum([value, value, sign * math.log(u)])
    return min(max(0.25 * round(x / 0.25), -8.0), 8.0)


def fsum_of_more_for_some(value, u, sign):
    parts = [value, sign * math.log(u)] if value < 3.0 else [value, value]
    return min(max(0.25 * round(math.fsum(parts) / 0.25), -8.0), 8.0)


def fsum_of_rounded(value, u, sign):
    x = math.fsum([round(value), sign * math.log(u)])
    return min(max(0.25 * round(x / 0.25), -8.0), 8.0)


def fsum_after(value, u, sign):
    return math.fsum([plain(value, u, sign), 1e-9 * value])


def fsum_that_fails(value, u, sign):
    _ = math.log(abs(math.fsum([value, -3.0371])))
    return plain(value, u, sign)


# ---------------------------------------------------------------- steps that are no power of two


def hundredths(value, u, sign):
    return min(max(0.01 * round((value + sign * math.log(u)) / 0.01), -8.0), 8.0)


def hundredths_by_product(value, u, sign):
    return min(max(round((value + sign * math.log(u)) * 100) / 100, -8.0), 8.0)


def thirds(value, u, sign):
    third = 1 / 3
    return min(max(third * round((value + sign * math.log(u)) / third), -4.0), 4.0)


def hundredths_for_cells_of_a_tenth(value, u, sign):
    return min(max(0.01 * round((value + sign * math.log(u)) / 0.1), -1.0), 1.0)


def hundredths_before(value, u, sign):
    return min(max(0.01 * round(value / 0.01) + sign * math.log(u), -8.0), 8.0)


def hundredths_and_the_value(value, u, sign):
    return min(max(0.01 * round((value + sign * math.log(u)) / 0.01) + 0.001 * value, -8.0), 8.0)


def hundredths_of_the_noise(value, u, sign):
    return min(max(value + 0.01 * round(sign * math.log(u) / 0.01), -8.0), 8.0)


# ---------------------------------------------------------------- whole numbers


def whole_left(value, u, sign):
    return min(max(1.0 * round(value + sign * math.log(u)), -8.0), 8.0)


def whole_right(value, u, sign):
    return min(max(round(value + sign * math.log(u)) * 1.0, -8.0), 8.0)


def whole_outside(value, u, sign):
    return 1.0 * min(max(round(value + sign * math.log(u)), -8), 8)


def whole_with_numpy(value, u, sign):
    return np.clip(np.rint(value + sign * np.log(u)) + 0.0, -8.0, 8.0)


def whole_value(value, u, sign):
    return min(max(1.0 * round(value) + sign * math.log(u), -8.0), 8.0)


def whole_and_a_half(value, u, sign):
    return min(max(1.0 * round(value + sign * math.log(u)) + 0.5 * (value - u), -8.0), 8.0)


def whole_of_two_types(value, u, sign):
    return min(max(1.0 * round(value + sign * math.log(u)), -8), 8)


def whole_on_one_path(value, u):
    """Beyond 2**53 whole numbers are exact and floats are not: the results tell the path."""
    if u < 0.5:
        y = 1.0 * (round((value + 2.0 * math.log(2 * u)) / 2.0) * MANY)
    else:
        y = (1.0 * round((value - 2.0 * math.log(2 - 2 * u)) / 2.0)) * MANY
    return min(max(y, -6.0 * 2**53), 6.0 * 2**53)


def fraction_on_one_path(value, u):
    if u < 0.5:
        y = (PART * round((value + 2.0 * math.log(2 * u)) / 2.0)) * 10.0
    else:
        y = (PART * (1.0 * round((value - 2.0 * math.log(2 - 2 * u)) / 2.0))) * 10.0
    return min(max(y, -9.0), 9.0)


def whole_as_floats(value, u):
    if u < 0.5:  # noqa: SIM108 - as people write it
        x = value + 2.0 * math.log(2.0 * u)
    else:
        x = value - 2.0 * math.log(2.0 - 2.0 * u)
    return min(max(1.0 * (1.0 * round(x / 2.0) * MANY), -6.0 * 2**53), 6.0 * 2**53)


def whole_inside_on_one_path(value, u):
    """As the first, but the choice is made before the last steps."""
    x = value + 2.0 * math.log(2.0 * u) if u < 0.5 else value - 2.0 * math.log(2.0 - 2.0 * u)
    k = round(x / 2.0)
    y = k if u < 0.5 else 1.0 * k
    return min(max(1.0 * (y * MANY), -6.0 * 2**53), 6.0 * 2**53)


def whole_by_sign(value, u, sign):
    k = round((value + sign * 2.0 * math.log(u)) / 2.0)
    y = 1.0 * (k * MANY) if sign > 0 else (1.0 * k) * MANY
    return min(max(y, -6.0 * 2**53), 6.0 * 2**53)


RIGHT = {
    "assert": (assert_positive, assert_inside, assert_not_zero, raise_at_zero, raise_outside,
               assert_normal),
    "if": (clamp_value_by_if, clamp_value_by_elif, clamp_value_narrowly, clamp_by_return,
           clamp_by_assignment, clamp_by_expression, clamp_by_if_on_two_sides),
    "clamp": (clamp_then_round, clamp_by_if_then_round, clamp_quotient_then_round,
              clip_then_round_to, clamp_then_round_by_product),
    "minus": (minus_result, minus_whole, minus_step, minus_from),
    "offset": (offset_after, offset_before, offset_between, offset_around),
    "share": (half_value, value_by_two, tenth_of_value, clamped_and_halved),
    "fsum": (fsum_of_list, fsum_of_tuple, fsum_with_half, fsum_twice),
    "step": (hundredths, hundredths_by_product, thirds, hundredths_for_cells_of_a_tenth),
    "whole": (whole_left, whole_right, whole_outside, whole_with_numpy),
}  # fmt: skip
WRONG = {
    "assert": (assert_value, assert_value_inside, assert_sum, assert_often, raise_by_both),
    "if": (clamp_to_another, clamp_by_the_value, clamp_to_the_value, clamp_value_with_a_jump,
           clamp_for_some_values, clamp_what_fails, tell_an_edge_by_if,
           tell_an_edge_by_a_fraction, tell_more_than_the_end),
    "clamp": (clamp_noise_then_round, clamp_around_the_value, clamp_and_do_not_round,
              clip_long_whole_numbers),
    "minus": (minus_by_draw, minus_by_value, minus_with_two_zeros, minus_zero_by_draw),
    "offset": (offset_is_the_value, offset_is_a_bit_of_the_value, offset_by_the_value,
               offset_by_the_draw),
    "share": (squared_value, value_by_value, value_by_draw),
    "fsum": (fsum_of_the_value_twice, fsum_of_more_for_some, fsum_of_rounded, fsum_after,
             fsum_that_fails),
    "step": (hundredths_before, hundredths_and_the_value, hundredths_of_the_noise),
    "whole": (whole_value, whole_and_a_half, whole_of_two_types, whole_on_one_path,
              fraction_on_one_path, whole_by_sign, whole_inside_on_one_path),
}  # fmt: skip


# ---------------------------------------------------------------- generated


def generated(random_: random.Random) -> tuple[str, bool]:
    """The text of a function of all these steps, in any order, and whether it takes a sign."""
    signed = random_.random() < 0.5
    lines: list[str] = []

    def maybe(chance: float, *choices: str) -> None:
        if random_.random() < chance:
            lines.extend(random_.choice(choices).split("\n"))

    ends = random_.choice([("-4.0", "4.0"), ("-4.0", "6.0"), ("-5.0", "3.0"), ("0.0", "4.0")])
    low, high = ends

    def clamps(name: str) -> list[str]:
        return [
            f"{name} = min(max({name}, {low}), {high})",
            f"{name} = max(min({high}, {name}), {low})",
            f"if {name} > {high}:\n    {name} = {high}\nif {name} < {low}:\n    {name} = {low}",
            f"if {name} <= {low}:\n    {name} = {low}\nelif {name} >= {high}:\n    {name} = {high}",
            f"{name} = {low} if {name} < {low} else {high} if {name} > {high} else {name}",
            f"{name} = clamp({name}, {low}, {high})",
            *[f"{name} = np.clip({name}, {low}, {high})"] * (2 if name == "y" else 0),
        ]

    maybe(0.3, "assert u > 0", "assert 0.0 < u < 1.0", "if u == 0:\n    raise ValueError('0')")
    maybe(0.04, "assert value < 2.5", "assert u > 0.01", "if value > 2.5:\n    u = 0.5")
    maybe(0.25, *clamps("value"))
    scale = random_.choice(["3.0", "3.0", "4.0", "-3.0", "2.5"])
    noise = f"sign * {scale} * math.log(u)"
    if not signed:
        below, above = random_.choice([("<", "2 - 2 * u"), ("<=", "2.0 * (1.0 - u)")])
        drawn = f"{scale} * math.log(2 * u)", f"-{scale} * math.log({above})"
        noise = f"({drawn[0]} if u {below} 0.5 else {drawn[1]})"
    centre = random_.choice(
        [
            "value",
            "value",
            "0.5 * value",
            "value / 2",
            "-value",
            "2.0 * value",
            "(value + 1.0)",
            "(value - 0.75)",
            "(1.5 - value)",
            "0.3 * value",
            "(0.5 * value + 0.1)",
        ]
    )
    lines.append(
        random_.choice(
            [
                f"x = {centre} + {noise}",
                f"x = {noise} + {centre}",
                f"x = {centre} - {noise}",
                f"x = math.fsum([{centre}, {noise}])",
                f"x = math.fsum(({noise}, {centre}))",
            ]
        )
    )
    maybe(0.15, "x = 0.5 * x", "x = x + 0.25", "x = -x", "x = x * 1.5")
    maybe(0.3, *clamps("x"))
    maybe(0.04, "x = x + 0.01 * value * u", "x = x if value < 2.5 else -x")
    step = random_.choice(["2.0", "2.0", "1.9", "2", "2.5", "np.float64(2.0)"])
    lines.append(
        random_.choice(
            [
                f"y = {step} * round(x / {step})",
                f"y = round(x / {step}) * {step}",
                "y = round(x * 0.5) / 0.5",
                "y = round(0.5 * x)",
                f"y = round(x / {step})",
                f"y = round_to(x, {step})",
                f"y = {step} * np.rint(x / {step}) + 0.0",
                f"y = {step} * np.rint(x / {step})",
                "y = 1.0 * round(x / 2)",
            ]
        )
    )
    links = ("y = -y", "y = y + 0.5", "y = 1.0 * y", "y = y * 0.25", "y = y / 3", "y = 2.0 - y")
    for _ in range(random_.randint(0, 2)):
        maybe(0.6, *links, "y = y + 0.0", "y = 0.0 - y", "y = y - 100.0", "y = -0.3 * y")
    if not signed and random_.random() < 0.15:
        by = random_.choice(["3", "0.1", "2**53 + 1", "Fraction(1, 3)", "Fraction(1, 4)"])
        two = random_.sample([f"1.0 * (y * ({by}))", f"1.0 * y * ({by})", f"({by}) * y * 1.0"], 2)
        lines.extend(["if u < 0.5:", f"    y = {two[0]}", "else:", f"    y = {two[1]}"])
    maybe(0.05, "y = y + 1e-9 * value", "y = -y if u < 0.25 else y", "y = y + u")
    maybe(0.03, "if value > 2.5:\n    y = y + 1.0", "if y > 3.0:\n    y = value", "y = abs(y)")
    maybe(0.9, *clamps("y"))
    maybe(0.25, *links, "y = y + 0.0", "y = y * -1.0")
    body = "".join(f"    {line}\n" for line in lines)
    arguments = "value, u, sign" if signed else "value, u"
    return f"def f({arguments}):\n{body}    return y\n", signed
