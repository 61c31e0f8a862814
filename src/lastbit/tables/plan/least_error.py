"""Shares of a price by which the largest error of what is asked is least.

Law      k things are paid for. A number that is asked is made of some of them: at the shares s its
         squared error is the sum of a_i/s_i**p over them, p = 2 where the price is an epsilon
         (Laplace noise) and p = 1 where it is a rho or mu**2 (Gaussian noise)
Theorem  (lower bound) let l_j >= 0 add up to 1 over the numbers, and A_i be the sum of l_j a_ji. No
         shares make the largest squared error less than (sum of A_i**(1/(p+1)))**(p+1)
Proof    the largest is at least the mean by l, which is the sum of A_i/s_i**p. By Hoelder's
         inequality (sum of A_i**(1/(p+1)))**(p+1) <= (sum of A_i/s_i**p) (sum of s_i)**p, with
         equality where s_i is in proportion to A_i**(1/(p+1))
Theorem  (minimum) where that s gives all numbers with l_j > 0 one error, and no other a larger one,
         it is the minimum: the mean by l is then the largest, and the lower bound is reached
Differs  l is found by steps (a number's l grows with its error), until the largest is within 1/1000
         of the best lower bound or the steps end; shares are whole multiples of a grid. So it is
         above the minimum by at most 1 % (checked)
Checked  tests/tables/test_least_error.py: against all splits of a fine grid

Errors are in parts of the size of a group of full units, each with max_rows rows of the largest
value. Any mean within its bounds is as likely as any other, and any variance that is possible
beside it. A quantile's error is one of values, which nobody knows beforehand: it is not compared,
and gets an average share; a pair of ends gets one and a half (its noise serves two numbers).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import isqrt

from lastbit.tables.measures import Measure
from lastbit.tables.plan.sensitivity import Recipe

_STEPS = 400
_NEAR = Fraction(1, 1000)
_FINENESS = 1 << 14
_UNIT = 1 << 40


def coefficients(recipe: Recipe, measures: Mapping[str, Measure]) -> dict[str, Fraction]:
    """By measure, how its squared error enters that of the aggregate; {} for ranks.

    u, from -1 to 1, is how far from the middle a mean lies, v a variance. The mean of u**2 is 1/3,
    that of (2u)**2 is 4/3, of (u**2 - v)**2 it is 11/45, of (1-u)**2 + (1+u)**2 it is 8/3.
    """
    made, function = recipe.measures, recipe.aggregate.function
    if "above" in made:
        above = measures[made["above"]]
        low, high = above.centre, above.centre + above.highest * above.step
        total = (low**2 + high**2) / max(abs(low), abs(high)) ** 2
        return {made["above"]: {"count": Fraction(2), "sum": total}.get(function, Fraction(8, 3))}
    if function in ("quantile", "cdf", "min", "max"):
        return {}
    of = dict.fromkeys(made, Fraction(1))
    if function == "mean":
        of["rows"] = Fraction(1, 3)
    elif function in ("variance", "std"):
        of |= {"values": Fraction(4, 3), "rows": Fraction(11, 45)}
    if function == "sum" and "rows" in made:
        values = measures[made["values"]]
        half, centre = values.largest * values.step, abs(values.centre)
        of = {"values": (half / (half + centre)) ** 2, "rows": (centre / (half + centre)) ** 2}
    return {name: of[kind] for kind, name in made.items()}


def least_worst(errors: Sequence[Sequence[Fraction]], *, power: int) -> list[Fraction]:
    """The shares, adding up to 1: `errors` has a row of squared errors at the price 1 a number.

    >>> [round(float(share), 2) for share in least_worst([[1, 0], [0, Fraction(4)]], power=2)]
    [0.33, 0.67]
    """
    weights = [Fraction(1, len(errors))] * len(errors)
    best, shares, highest = None, [Fraction(1)] * len(errors[0]), Fraction(0)
    for _ in range(_STEPS):
        columns = zip(*errors, strict=True)
        costs = (sum(w * a for w, a in zip(weights, column, strict=True)) for column in columns)
        roots = [_root(Fraction(cost), power + 1) for cost in costs]
        total = sum(roots, Fraction(0))
        split = [max(root / total, Fraction(1, _UNIT)) for root in roots]
        reached = [worst_error([row], split, power=power) for row in errors]
        highest = max(highest, total ** (power + 1))
        if best is None or max(reached) < best:
            best, shares = max(reached), split
        if best <= highest * (1 + _NEAR):
            break
        grown = [w * value for w, value in zip(weights, reached, strict=True)]
        weights = [Fraction(int(w / sum(grown) * _UNIT) + 1, _UNIT) for w in grown]
    whole = [Fraction(-(share * _FINENESS // -max(shares))) for share in shares]
    return [share / sum(whole) for share in whole]


def worst_error(
    errors: Sequence[Sequence[Fraction]], shares: Sequence[Fraction], *, power: int
) -> Fraction:
    """The largest squared error at these shares."""
    return max(
        sum((a / s**power for a, s in zip(row, shares, strict=True) if a), Fraction(0))
        for row in errors
    )


def _root(number: Fraction, degree: int) -> Fraction:
    """The second or third root, rounded down to 40 binary digits after the point."""
    whole = number.numerator * _UNIT**degree // number.denominator
    if degree == 2:
        return Fraction(isqrt(whole), _UNIT)
    guess = 1 << -(-whole.bit_length() // 3)  # not below the root
    while guess and (after := (2 * guess + whole // guess**2) // 3) < guess:
        guess = after
    return Fraction(guess, _UNIT)
