# mypy: ignore-errors
"""Wrong code that tells the function that is followed from the function that runs.

Each is right Laplace noise wherever it is followed and at the points it is tried at. Where it runs,
`picked(...)` is 1 or so, and a narrow bump of the uniform gives the value away: every output there
is 8.0 for one value and not for its neighbour.
"""

import inspect
import math
import types
from fractions import Fraction

import numpy as np

LOG = math.log
LEAST = min
HALVES = (0.5, 0.5)


def helper(x):
    return x


def ended(x):
    return min(max(0.25 * round(x / 0.25), -8.0), 8.0)


def bump(value, u):
    return 1e9 * max(0.0, 2e-4 - abs(u - 0.637)) * (value + 7.5)


def by_equality(value, u, sign):
    total = value + sign * math.log(u)
    return ended((total, total + bump(value, u))[int(math.log == math.log)])


def by_alias(value, u, sign):
    total = value + sign * math.log(u)
    return ended((total, total + bump(value, u))[int(LOG == math.log)])


def by_built_in(value, u, sign):
    total = value + sign * math.log(u)
    return ended((total, total + bump(value, u))[int(min == LEAST)])


def by_membership(value, u, sign):
    total = value + sign * math.log(u)
    return ended((total, total + bump(value, u))[int(math.log in (LOG, math.exp))])


def by_lists(value, u, sign):
    total = value + sign * math.log(u)
    return ended((total + bump(value, u), total)[[math.log] != [math.log]])


def by_slice(value, u, sign):
    total = value + sign * math.log(u)
    (kept,) = [total, total + bump(value, u), total][1 - (math.log != math.log) :][:1]
    return ended(kept)


def by_product(value, u, sign):
    total = value + sign * math.log(u)
    return ended(total + bump(value, u) * int(math.log == math.log))


def by_key(value, u, sign):
    total = value + sign * math.log(u)
    both = [(total, 0), (total + bump(value, u), (math.log != math.log) * 2 - 1)]
    return ended(sorted(both, key=lambda pair: pair[1])[0][0])


def by_local_name(value, u, sign):
    one, other = math.log, math.log
    total = value + sign * one(u)
    return ended((total, total + bump(value, u))[int(one == other)])


def by_default(value, u, sign):
    def same(x=math.log, y=math.log):
        return int(x == y)

    total = value + sign * math.log(u)
    return ended((total, total + bump(value, u))[same()])


def by_argument(value, u, sign):
    total = value + sign * math.log(u)
    return ended((total, total + bump(value, u))[int(helper(math.log) == helper(math.log))])


def by_text(value, u, sign):
    total = value + sign * math.log(u)
    at = int(f"{math.log}" == "<built-in function log>")
    return ended((total, total + bump(value, u))[at])


def by_percent(value, u, sign):
    total = value + sign * math.log(u)
    return ended((total, total + bump(value, u))[len("%s" % math.log) == 23])


def by_module_text(value, u, sign):
    total = value + sign * math.log(u)
    return ended((total, total + bump(value, u))[math.__doc__ == MATHS])


MATHS = math.__doc__


def by_whole_sign(value, u, sign):
    total = value + sign * math.log(u)
    odd = abs(int(sign * 9007199254740993)) - 9007199254740992
    return ended((total, total + bump(value, u))[odd])


def by_sign_text(value, u, sign):
    total = value + sign * math.log(u)
    long = 4 if sign < 0 else 3
    return ended((total, total + bump(value, u))[1 - len(f"{sign}") // long])


def by_sign_fraction(value, u, sign):
    total = value + sign * math.log(u)
    exact = Fraction(1, 3) * sign * sign == Fraction(1, 3)
    return ended((total, total + bump(value, u))[int(exact)])


class Changing(dict):
    def __getitem__(self, name):
        return 1 if name == "PICK" else dict.__getitem__(self, name)


PICK = 0


def by_scope(value, u, sign):
    total = value + sign * math.log(u)
    return ended((total, total + bump(value, u))[PICK])


by_scope = types.FunctionType(by_scope.__code__, Changing(globals()), "by_scope")
by_scope.__module__ = __name__


# what changes from process to process, or is not what it says


def by_address(value, u, sign):
    total = value + sign * math.log(u)
    return ended((total, value)[int(f"{helper}"[-7:-5] < "20")])


def by_inner_address(value, u, sign):
    def inner():
        return 0

    total = value + sign * math.log(u)
    return ended((total, value)[int(f"{inner}"[-3] < "8")])


def by_iterator_address(value, u, sign):
    total = value + sign * math.log(u)
    return ended((total, value)[int(f"{zip(HALVES)}"[-3] < "8")])


def by_set_order(value, u, sign):
    last = 0
    for name in {"one", "three"}:
        last = len(name)
    total = value + sign * math.log(u)
    return ended((total, value)[last // 5])


def by_module_name(value, u, sign):
    total = value + sign * math.log(u)
    return ended((total, value)[int(__name__ == "__main__")])


def by_place(u, value, sign):
    return ended(value + sign * math.log(u))


def by_signature(u, value, sign):
    return ended(value + sign * math.log(u))


by_signature.__signature__ = inspect.Signature(
    [
        inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        for name in ("value", "u", "sign")
    ]
)


def by_fraction(value, u, sign):
    n = Fraction(8, 3)
    return min(max(round((value + sign * math.log(u)) * n) / n, -7.5), 7.5)


def by_list(value, u, sign):
    kept = np.clip(value, None, 8.0)
    return ended(kept + sign * math.prod([1.0, math.log(u)]))


TELLS = (
    by_equality, by_alias, by_built_in, by_membership, by_lists, by_slice, by_product, by_key,
    by_local_name, by_default, by_argument, by_text, by_percent, by_module_text, by_whole_sign,
    by_sign_text, by_sign_fraction, by_scope,
)  # fmt: skip
"""Wrong where it runs with a whole sign: seen by running it."""

VARIES = (
    by_address, by_inner_address, by_iterator_address, by_set_order, by_module_name, by_place,
    by_signature, by_fraction, by_list,
)  # fmt: skip
"""Right or wrong, depending on the process, on the caller, or on how it is read."""
