"""How far a combination of noises strays, and which numbers a noisy quotient leaves possible.

A sum with a centre and a mean are made of two noisy integers. Their error is
S = c_1 X_1 + ... + c_j X_j, with independent noises X_i and real c_i. `Reach` bounds it:

Law      t(c) = sum of shifts_i abs(c_i) + root of the sum of squares_i c_i**2
Theorem  P[abs(S) > t(c)] <= beta for every c with abs(c_i/c_1) <= ratios_i. Three ways to it:

(U) Any noises: shifts_i = the least a with P[abs(X_i) > a] <= beta/j, squares 0 (union bound).

(L) Discrete Laplace noises of scales s_i, j <= 3, beta = 1/20: shifts_i =
    1 - s_i tanh(1/(2 s_i)), squares_i = (r s_i)**2, r = 65/64 ln(1/beta).
    Proof. Let U be uniform on [-1/2, 1/2], h = 1/(2s) and L a continuous Laplace variable of scale
    s. X + U has a symmetric, unimodal density. At x = k + u, k = 0, 1 ..., abs(u) <= 1/2, its tail
    P[abs(X + U) >= x] is exp(-k/s)(1 - 2u tanh h), the chord between (k-1/2) and (k+1/2), where it
    is exp(-x/s)/cosh h. So P[abs(X + U) >= x] exp(x/s) = (1 - 2u tanh h) exp(2hu) <=
    exp(2u (h - tanh h)) <= exp(h - tanh h), that is, abs(X + U) is stochastically at most
    abs(L) + s (h - tanh h) = abs(L) + 1/2 - s tanh h. Sums of symmetric unimodal variables are
    symmetric and unimodal (Wintner), and for such T the chance of abs(T + a) >= t grows with
    abs(a) (Anderson): so in sum of c_i (X_i + U_i) each abs(X_i + U_i) may be replaced in turn by
    abs(L_i) + 1/2 - s_i tanh(1/(2 s_i)), and the sum of c_i U_i is at most that of abs(c_i)/2. What
    is left is P[abs(sum of c_i L_i) >= r (sum of c_i**2 s_i**2)**(1/2)] <= beta for j <= 3:
    the same monotonicity makes that a finite number of evaluations, done in ball arithmetic by
    tests/release/test_reach.py.

(G) Discrete Gaussian noises of variances a_i: shifts = (d, 0, ...), squares = z**2 (a_1 + v, a_2,
    ...), with v > 0 any number, d = 3 sqrt(v), and the z of `laws/sums.py` for the widths w_1 =
    a_1 v/(a_1 + v), 1/w_i = 1/a_i + ratios_i**2/a_1: its theorem for S/c_1.

Theorem  (test inversion; Fieller 1954 for normal noise) Let v = m r be the true values and rows,
         V = v + X and R = r + Y. Then V - m R = X - m Y, so all m with abs(V - m R) <= t(1, m) hold
         the true one in 1 - beta of all releases. t is convex in m and V - m R linear, so the m
         with V - m R > t(1, m) form an interval: if both ends of a stretch are among them, all of
         it is. `quotient_interval` guesses in floats and excludes a stretch only after an exact
         look at its ends.
Source   Fieller 1954; peakedness: Birnbaum 1948, Anderson 1955
Checked  tests/release/test_reach.py, tests/release/test_intervals.py
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from lastbit.exact import arb_of, root_above, upper, working_precision
from lastbit.laws import DiscreteGaussian, DiscreteLaplace, normal_reach

BETA = Fraction(1, 20)

_BITS = 20
_ONE = 1 << _BITS
_STRETCH = Fraction(65, 64)
_NARROW = Fraction(1, 1 << 16)


@dataclass(frozen=True, slots=True)
class Reach:
    """t(c), in whole numbers: shifts times 2**20, squares times 2**40, both rounded up."""

    shifts: tuple[int, ...]
    squares: tuple[int, ...]

    @classmethod
    def of(cls, shifts: Sequence[Fraction], squares: Sequence[Fraction]) -> Reach:
        """Rounded up to the grid."""
        return cls(
            tuple(ceil(shift * _ONE) for shift in shifts),
            tuple(ceil(square * _ONE**2) for square in squares),
        )

    def bound(self, *sizes: Fraction) -> Fraction:
        """A rational not below t(sizes)."""
        pairs = list(zip(self.shifts, self.squares, sizes, strict=True))
        square = sum((b * c * c for _, b, c in pairs), Fraction(0))
        shift = sum((a * c for a, _, c in pairs), Fraction(0))
        return (shift + root_above(square)) / _ONE


class MeasureNoise:
    """The law of the noise on one measure: how far off, how often."""

    __slots__ = ("_bounds", "law", "variance")

    def __init__(self, law: DiscreteLaplace | DiscreteGaussian) -> None:
        self.law = law
        self._bounds: dict[Fraction, int] = {}
        if isinstance(law, DiscreteGaussian):
            self.variance = law.variance
            return
        # of Laplace noise 2q/(1-q)**2 = 1/(2 sinh(1/(2 scale))**2), rounded up
        with working_precision(128):
            half = arb_of(1 / (2 * law.scale))
            # 1/sinh(x) = 2 exp(-x)/(1 - exp(-2x)): no large numbers, whatever the scale
            inverse = 2 * (-half).exp() / -(-2 * half).expm1()
            self.variance = Fraction(upper(inverse * inverse / 2))

    def accuracy(self, beta: Fraction) -> int:
        """The least a with P[abs(noise) > a] <= beta, exactly."""
        if beta not in self._bounds:
            self._bounds[beta] = max(self.law.quantile(1 - beta / 2), 0)
        return self._bounds[beta]


def reach_of(
    noises: Sequence[MeasureNoise], beta: Fraction, *, ratios: Sequence[Fraction | int]
) -> Reach:
    """The reach of these noises; `ratios` has the most that abs(c_i/c_1) can be, from c_2 on.

    Of two that hold, the one that is shorter at these ratios: the union bound where noise is tiny.
    """
    laws = [noise.law for noise in noises]
    found = None
    if all(isinstance(law, DiscreteGaussian) for law in laws):
        found = _gaussian([law.variance for law in laws], beta, ratios)  # type: ignore[union-attr]
    elif all(isinstance(law, DiscreteLaplace) for law in laws) and len(laws) <= 3:
        found = _laplace([law.scale for law in laws], beta)  # type: ignore[union-attr]
    far = [Fraction(noise.accuracy(beta / len(noises))) for noise in noises]
    apart = Reach.of(far, [Fraction(0)] * len(far))
    sizes = [Fraction(1), *map(Fraction, ratios)]
    return apart if found is None or apart.bound(*sizes) < found.bound(*sizes) else found


def _laplace(scales: Sequence[Fraction], beta: Fraction) -> Reach | None:
    """(L)."""
    if beta != BETA:
        return None
    rate = laplace_rate(beta)
    shifts = []
    with working_precision(128):
        for scale in scales:
            # beyond 2**40 the shift is between 1/2 and 1/2 + 2**-80
            far = 1 - arb_of(scale) * arb_of(1 / (2 * scale)).tanh()
            shifts.append(min(Fraction(upper(far)), Fraction(1)))
    return Reach.of(shifts, [(rate * scale) ** 2 for scale in scales])


def laplace_rate(beta: Fraction) -> Fraction:
    """The r of (L), rounded up."""
    with working_precision(128):
        return _STRETCH * Fraction(upper(-arb_of(beta).log()))


def _gaussian(
    variances: Sequence[Fraction], beta: Fraction, ratios: Sequence[Fraction | int]
) -> Reach | None:
    """(G), with v a quarter, or more where that is little beside the noise."""
    first = variances[0]
    blur = max(Fraction(1, 4), first * _NARROW)
    widths = [first * blur / (first + blur)]
    widths += [
        1 / (1 / variance + Fraction(ratio) ** 2 / first)
        for variance, ratio in zip(variances[1:], ratios, strict=True)
    ]
    z = normal_reach(beta, widths)
    if z is None:
        return None
    squares = [z**2 * (first + blur), *(z**2 * variance for variance in variances[1:])]
    return Reach.of([3 * root_above(blur), *(Fraction(0) for _ in ratios)], squares)


def quotient_interval(
    numerator: int, rows: int, bounds: tuple[int, int], reach: Reach
) -> tuple[int, int]:
    """All m between the bounds with abs(numerator - m rows) <= t(1, m) lie within; times 2**20."""
    low, high = bounds[0] << _BITS, bounds[1] << _BITS
    return (
        _lower_end(numerator, rows, low, high, reach),
        -_lower_end(-numerator, rows, -high, -low, reach),
    )


def _lower_end(numerator: int, rows: int, low: int, high: int, reach: Reach) -> int:
    """A number so that numerator - m rows > t(1, m) for all m from `low` up to it."""
    (a, b), (p, q) = reach.shifts, reach.squares
    start, least = (numerator << 2 * _BITS) - (a << _BITS), p << 2 * _BITS

    def excluded(place: int) -> bool:
        """Whether (numerator << _BITS) - place * rows > t(_ONE, abs(place)), exactly."""
        beyond = start - ((place * rows) << _BITS) - b * abs(place)
        return beyond > 0 and beyond * beyond > least + q * place * place

    if not excluded(low):
        return low
    if excluded(high):
        return high
    try:
        middle, guess = _guess(numerator, rows, reach)
        for push in (2.0**-40, 2.0**-10):
            away = push * (abs(middle - guess) + abs(middle) * 2.0**-8)
            place = floor((guess - away) * _ONE) - 1
            if low < place < high and excluded(place):
                return place
    except (OverflowError, ValueError, ZeroDivisionError):  # of floats: no guess, nothing excluded
        pass
    return low


def _guess(numerator: int, rows: int, reach: Reach) -> tuple[float, float]:
    """The quotient, and where numerator - m rows = t(1, m), nearly: the lower root of a quadratic.

    With the shift of abs(m) put to the rows, on the side of 0 where m turns out to lie.
    """
    unit = float(_ONE)
    start, slope = (shift / unit for shift in reach.shifts)
    q0, q1 = (square / unit / unit for square in reach.squares)
    size, top = float(rows), float(numerator)
    near = top - start
    middle = m = top / size
    for _ in range(2):
        rate = size + math.copysign(slope, m)
        leading = rate * rate - q1
        m = (near * rate - math.sqrt(q0 * leading + q1 * near * near)) / leading
    return middle, m
