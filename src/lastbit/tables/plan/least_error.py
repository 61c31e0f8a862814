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
         it is the minimum: the lower bound is reached
Proof    the mean by l is then the largest
Differs  l is found by steps (a number's l grows with its error), until the largest is within 1/1000
         of the best lower bound or the steps end; shares are whole multiples of a grid. By how much
         it is above the minimum is known: at most 1 % (checked)
Checked  tests/tables/test_least_error.py: against all splits of a fine grid

What a number is made of, in parts of the size of a group of full units (each with max_rows rows of
the largest value, so that all numbers can be compared). u is how far from the middle of its bounds
a mean lies, any u from -1 to 1 as likely as any other: u**2 is 1/3 on average, and a variance v any
one that is possible beside it.

| number | of | coefficients a, beside the squared error of each |
|---|---|---|
| count, units, distinct, histogram | itself | 1 |
| sum | values (and rows, by the centre c) | 1, or (h/m)**2 and (c/m)**2, m = h + abs(c) |
| mean | values, rows | 1, 1/3 |
| variance, std | squares, values, rows | 1, 4/3, 11/45: the means of 1, (2u)**2, (u**2 - v)**2 |
| count, mean of ends | above and below as one | 2, 8/3: (1-u)**2 + (1+u)**2 is 2 + 2/3 |
| sum of ends | the same | (low**2 + high**2)/m**2 |

A quantile's error is one of values, which nobody knows beforehand: it is not compared, and gets an
average share; a pair of ends gets one and a half (its noise serves two numbers).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import isqrt

from lastbit.tables.measures import Measure
from lastbit.tables.plan.sensitivity import Recipe

_STEPS = 400
_NEAR = Fraction(1, 1000)
_BITS = 40
_FINENESS = 256
_UNIT = 1 << _BITS


def coefficients(recipe: Recipe, measures: Mapping[str, Measure]) -> dict[str, Fraction]:
    """By measure, how its squared error enters that of the aggregate; {} for ranks.

    >>> from lastbit.tables.query.query import Aggregate
    >>> count = Aggregate(name="n", function="count", nullable=False)
    >>> coefficients(Recipe(aggregate=count, measures={"rows": "m1"}), {})
    {'m1': Fraction(1, 1)}
    """
    made, one = recipe.measures, Fraction(1)
    if "above" in made:
        return {made["above"]: _of_ends(recipe.aggregate.function, measures[made["above"]])}
    match recipe.aggregate.function:
        case "quantile" | "cdf" | "min" | "max":
            return {}
        case "sum" if "rows" in made:
            values = measures[made["values"]]
            half, centre = values.largest * values.step, abs(values.centre)
            both = half + centre
            return {made["values"]: (half / both) ** 2, made["rows"]: (centre / both) ** 2}
        case "mean":
            return {made["values"]: one, made["rows"]: one / 3}
        case "variance" | "std":
            of_rows = Fraction(11, 45)
            return {
                made["squares"]: one,
                made["values"]: one * 4 / 3,
                made["rows"]: of_rows,
            }
    (name,) = made.values()
    return {name: one}


def _of_ends(function: str, above: Measure) -> Fraction:
    if function != "sum":
        return Fraction(2 if function == "count" else Fraction(8, 3))
    low, high = above.centre, above.centre + above.highest * above.step
    return (low**2 + high**2) / max(abs(low), abs(high)) ** 2


def least_worst(errors: Sequence[Sequence[Fraction]], *, power: int) -> list[Fraction]:
    """The shares, adding up to 1: `errors` has a row of squared errors at the price 1 a number.

    >>> least_worst([[Fraction(1), Fraction(0)], [Fraction(0), Fraction(1)]], power=2)
    [Fraction(1, 2), Fraction(1, 2)]
    >>> [str(share) for share in least_worst([[Fraction(1), Fraction(0)], [0, 4]], power=2)]
    ['128/383', '255/383']
    """
    weights = [Fraction(1, len(errors))] * len(errors)
    best, shares = None, [Fraction(1, len(errors[0]))] * len(errors[0])
    highest = Fraction(0)
    for _ in range(_STEPS):
        costs = [
            sum((w * row[i] for w, row in zip(weights, errors, strict=True)), Fraction(0))
            for i in range(len(shares))
        ]
        roots = [_root(cost, power + 1) for cost in costs]
        total = sum(roots, Fraction(0))
        split = [max(root / total, Fraction(1, _UNIT)) for root in roots]
        reached = [worst_error([row], split, power=power) for row in errors]
        highest = max(highest, total ** (power + 1))
        if best is None or max(reached) < best:
            best, shares = max(reached), split
        if best <= highest * (1 + _NEAR):
            break
        grown = [w * value for w, value in zip(weights, reached, strict=True)]
        weights = [_floor(w / sum(grown)) + Fraction(1, _UNIT) for w in grown]
    most = max(shares)
    whole = [Fraction(-(share * _FINENESS // -most)) for share in shares]
    return [share / sum(whole) for share in whole]


def worst_error(
    errors: Sequence[Sequence[Fraction]], shares: Sequence[Fraction], *, power: int
) -> Fraction:
    """The largest squared error at these shares."""
    return max(
        sum((a / s**power for a, s in zip(row, shares, strict=True) if a), Fraction(0))
        for row in errors
    )


def _floor(number: Fraction) -> Fraction:
    return Fraction(number.numerator * _UNIT // number.denominator, _UNIT)


def _root(number: Fraction, degree: int) -> Fraction:
    """The second or third root, rounded down to 40 binary digits after the point."""
    whole = number.numerator * _UNIT**degree // number.denominator
    if degree == 2:
        return Fraction(isqrt(whole), _UNIT)
    guess = 1 << -(-whole.bit_length() // 3)  # not below the root
    while guess and (after := (2 * guess + whole // guess**2) // 3) < guess:
        guess = after
    return Fraction(guess, _UNIT)
