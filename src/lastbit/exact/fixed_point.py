"""Real numbers between two integers: exponentials and their sums by whole numbers alone.

An enclosure of a real x to `places` is a pair of integers low <= 2**places x <= high. Everything
here is addition, product, floor and ceiling of Python's integers: no float, no maths library, and
no working precision that another thread could change.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import TypeAlias

Pair: TypeAlias = tuple[int, int]
Enclosure: TypeAlias = Callable[[int], Pair]
"""A real number, enclosed to as many places as one asks for."""

GUARD = 64  # bits beyond the places asked for, against the errors of some thousand steps


def rational_between(number: Fraction, places: int) -> Pair:
    """The nearest integers around 2**places times a rational.

    >>> rational_between(Fraction(1, 3), 4)
    (5, 6)
    """
    scaled = number.numerator << places
    return scaled // number.denominator, -(-scaled // number.denominator)


def product(left: Pair, right: Pair, places: int) -> Pair:
    """The enclosure of a product of two numbers from 0 up."""
    return left[0] * right[0] >> places, -(-left[1] * right[1] >> places)


def shorter(pair: Pair, spare: int) -> Pair:
    """The enclosure of the same number to `spare` places fewer."""
    return pair[0] >> spare, -(-pair[1] >> spare)


def exp_between(exponent: Fraction, places: int) -> Pair:
    """Integers around 2**places exp(-x) for a rational x from 0 up, at most 2 apart.

    Theorem  *Far out.* If x >= places then 2**places exp(-x) < 1.
             *Series.* Let y = x/2**s < 2**-8, and work in units of 2**-p, p = places + s + 16. With
             Y = floor(y), the terms t_0 = 1, t_k = floor(t_(k-1) Y/k) are too small by less than
             1.01 each: e_k <= e_(k-1) 2**-8 + 1. Where t_K = 0 those left out add up to less than
             1.02. So the sum S of K terms has S <= exp(Y) <= S + 1.01 K + 1.02, and
             exp(y) <= exp(Y) (1 + 1.01 2**-p) <= S + 2K + 4.
             *Inverse and squares.* exp(-x) = (1/exp(y))**(2**s). Rounding the lower end down and
             the upper end up at every step keeps the enclosure. Its width is at most 2K + 6 units
             at first; at each of s squares of numbers up to 1 it at most doubles and grows by 2:
             below 2**s (2K + 8) 2**-p < 2**-places for K < 2**14. Beyond, it is wider, not wrong
    Checked  tests/exact/test_fixed_point.py

    >>> exp_between(Fraction(0), 8), exp_between(Fraction(1), 8), exp_between(Fraction(99), 8)
    ((256, 256), (94, 95), (0, 1))
    """
    if exponent < 0:
        raise ValueError("exp_between is proved for exponents from 0 up only")
    if exponent == 0:
        return 1 << places, 1 << places
    if exponent >= places:
        return 0, 1
    halvings = (exponent.numerator // exponent.denominator).bit_length() + 8
    working = places + halvings + 16
    step = (exponent.numerator << working) // (exponent.denominator << halvings)
    term = total = 1 << working
    count = 0
    while term:
        count += 1
        term = (term * step >> working) // count
        total += term
    square = 1 << 2 * working
    low, high = square // (total + 2 * count + 4), -(-square // total)
    for _ in range(halvings):
        low, high = product((low, high), (low, high), working)
    return shorter((low, high), working - places)


@lru_cache(maxsize=8)
def pi_between(places: int) -> Pair:
    """Integers around 2**places pi.

    Theorem  pi = 16 arctan(1/5) - 4 arctan(1/239) (Machin). In the alternating series of
             arctan(1/n) a power is floored at every step and too small by less than 1.1, a term by
             less than 2.1, and what is left out after the first power 0 is below 1: of K terms the
             sum is off by less than 3K
    Checked  tests/exact/test_fixed_point.py

    >>> pi_between(4)
    (50, 51)
    """
    working = places + GUARD
    total = error = 0
    for factor, n in ((16, 5), (-4, 239)):
        power, odd, sign = (1 << working) // n, 1, 1
        while power:
            total += sign * factor * (power // odd)
            error += 3 * abs(factor)
            power, odd, sign = power // (n * n), odd + 2, -sign
    return shorter((total - error, total + error), GUARD)


def ln_between(number: Fraction, places: int) -> Pair:
    """Integers around 2**places ln(x) for a rational x above 0, at most 2 apart.

    Theorem  ln(1/x) = -ln(x). For x from 1 up let m = x/2**s, 1 <= m < 2: then
             ln(x) = 2 artanh((m-1)/(m+1)) + 2 s artanh(1/3), both arguments from 0 to 1/3
    Checked  tests/exact/test_fixed_point.py

    >>> ln_between(Fraction(1), 8)[0], ln_between(Fraction(2), 8), ln_between(Fraction(1, 2), 8)
    (0, (177, 178), (-178, -177))
    """
    if number <= 0:
        raise ValueError("ln_between is proved for numbers above 0 only")
    if number < 1:
        low, high = ln_between(1 / number, places)
        return -high, -low
    halvings = (number.numerator // number.denominator).bit_length() - 1
    working = places + GUARD + halvings.bit_length()
    rest, two = Fraction(number.numerator, number.denominator << halvings), Fraction(1, 3)
    around_rest, around_two = (_artanh(z, working) for z in ((rest - 1) / (rest + 1), two))
    low, high = (2 * (a + halvings * b) for a, b in zip(around_rest, around_two, strict=True))
    return shorter((low, high), working - places)


def _artanh(z: Fraction, places: int) -> Pair:
    """Integers around 2**places artanh(z) for a rational z from 0 to 1/3.

    Theorem  artanh(z) is the sum of z**n/n over odd n. All is floored: z is too small by less than
             1, its square by less than 1.7, a power by less than 1/9 of the one before and 1.7, so
             by less than 2, and a term by less than 3. What is left out after the first power 0,
             whose true value is below 3, is below 4: of K terms the sum is too small by at most
             3K + 4
    """
    power = (z.numerator << places) // z.denominator
    square, total, odd = power * power >> places, 0, 1
    while power:
        total += power // odd
        power, odd = power * square >> places, odd + 2
    return total, total + 3 * (odd // 2) + 4


def root_two_pi_between(places: int) -> Pair:
    """Integers around 2**places sqrt(2 pi)."""
    low, high = pi_between(places)
    return isqrt(low << places + 1), isqrt(high << places + 1) + 1


_SERIES_UP_TO = 8


def mills_between(place: Fraction, places: int) -> Pair:
    """Integers around 2**places R(t), R(t) = T(t)/phi(t), for a rational t from 0 up.

    T is the upper tail of N(0, 1) and phi its density.

    Theorem  *Up to 8.* R(t) = sqrt(pi/2) exp(t**2/2) - S(t), S(t) = sum over k >= 0 of
             t**(2k+1)/(1 3 5 ... (2k+1)): for R' = t R - 1 and S' = t S + 1, so that
             (R + S)' = t (R + S), and R(0) = sqrt(pi/2), S(0) = 0. Where the next odd number is
             above 2 t**2, every term is below half of the one before: those left out add up to
             less than the last.
             *Beyond.* Let I_n be the integral of (s-t)**n/n! exp(-s**2/2) over s >= t. By parts
             I_(n-1) = t I_n + (n+1) I_(n+1) for n >= 1, and exp(-t**2/2) = t I_0 + I_1. So
             K_0 = 1/R and K_n = I_(n-1)/I_n obey K_n = t + (n+1)/K_(n+1). All are above t: K_N lies
             between t and t + (N+1)/t, and the others follow downwards from there.
             Every step is rounded outwards, so both enclose R whatever their length; how close they
             come is tested
    Checked  tests/exact/test_fixed_point.py

    >>> mills_between(Fraction(0), 8), mills_between(Fraction(9), 8)
    ((320, 321), (28, 29))
    """
    if place < 0:
        raise ValueError("mills_between is proved for places from 0 up only")
    if place <= _SERIES_UP_TO:
        working = places + 3 * GUARD  # exp(8**2) is below 2**93, and it is squared
        low, high = _mills_by_series(place, working)
    else:
        working = places + GUARD
        low, high = _mills_by_fractions(place, working)
    return shorter((low, high), working - places)


def _mills_by_series(place: Fraction, places: int) -> Pair:
    square = rational_between(place * place, places)
    low, high = term = rational_between(place, places)
    odd, one = 3, 1 << 2 * places
    while term[1] > 1 or odd <= 2 * place * place:
        below, above = product(term, square, places)
        term = below // odd, -(-above // odd)
        low, high, odd = low + term[0], high + term[1], odd + 2
    shrunk = exp_between(place * place / 2, places)
    grown = one // shrunk[1], -(-one // shrunk[0])
    total = product(root_two_pi_between(places), grown, places)
    return (total[0] >> 1) - high - 1, -(-total[1] >> 1) - low


def _mills_by_fractions(place: Fraction, places: int) -> Pair:
    around, one = rational_between(place, places), 1 << 2 * places
    count = GUARD + int((places / (2 * place)) ** 2)
    low, high = around[0], around[1] - (-(count + 1) * one // around[0])
    for n in range(count, 0, -1):
        low, high = around[0] + n * one // high, around[1] - (-n * one // low)
    return one // high, -(-one // low)
