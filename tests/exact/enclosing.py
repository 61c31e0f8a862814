"""The ends of a ball, read off its midpoint and radius without any help from lastbit."""

from fractions import Fraction

from flint import arb


def dyadic(number: arb) -> Fraction:
    mantissa, exponent = number.man_exp()
    return int(mantissa) * Fraction(2) ** int(exponent)


def ends_of(ball: arb) -> tuple[Fraction, Fraction]:
    middle, radius = dyadic(ball.mid()), dyadic(ball.rad())
    return middle - radius, middle + radius


def holds(ball: arb, number: Fraction) -> bool:
    low, high = ends_of(ball)
    return low <= number <= high
