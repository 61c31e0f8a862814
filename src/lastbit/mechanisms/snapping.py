"""The snapping mechanism: plain floats, with everything that their rounding costs counted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from lastbit.errors import InvalidParameter
from lastbit.exact import (
    Number,
    arb_of,
    ln,
    ln_each,
    lower,
    nearest,
    nonnegative,
    positive,
    upper,
    working_precision,
)
from lastbit.mechanisms.lattice import floats_of
from lastbit.mechanisms.mechanism import exactly_one, level, moderate, set_fields
from lastbit.privacy import (
    AS_DECLARED,
    ApproxDP,
    ApproxLoss,
    Neighbours,
    PureDP,
    black_box,
    check_neighbours,
)
from lastbit.sampling import Bits, drawn, words

LEAST_EXPONENT = -1022
_ROUNDING = Fraction(1, 1 << 53)
_MANTISSA = np.uint64((1 << 52) - 1)
_SIGN = np.uint64(1 << 63)
_PRECISION = 128
_REMEDY = "change the unit of the values"

Floats = NDArray[np.float64]


def snapped(value: float, u: float, sign: int, *, epsilon: float, bound: float) -> float:
    """What the mechanism makes of a value, a uniform float u of (0, 1) and a sign.

    Law      clamp(value) to +-bound, plus sign * ln(u)/epsilon, rounded to the nearest multiple of
             `grid_of(epsilon)` (ties to even), clamped to +-bound; every step in floats, the
             logarithm correctly rounded. Never -0.0
    Theorem  monotone in u for each value and sign: every step is a monotone real function, rounded
             monotonely
    Source   paper 002, Definition 3; Mironov 2012
    Checked  tests/mechanisms/test_snapping.py

    >>> snapped(25.78, 0.3, -1, epsilon=0.7, bound=32.0)
    28.0
    """
    noise = sign * (ln(u) / epsilon)
    grid = grid_of(epsilon)
    near = round((min(max(value, -bound), bound) + noise) / grid) * grid
    return min(max(near, -bound), bound)


def grid_of(epsilon: float) -> float:
    """The least power of two not below 1/epsilon.

    Theorem  epsilon = m 2**e with 1/2 <= m < 1, so 2**-e < 1/epsilon <= 2**(1-e)

    >>> grid_of(1.0), grid_of(0.7), grid_of(0.5)
    (1.0, 2.0, 2.0)
    """
    return math.ldexp(1.0, 1 - math.frexp(epsilon)[1])


def full_precision(bits: Bits, size: int) -> tuple[Floats, Floats]:
    """Uniform floats of (0, 1) with all their bits, and independent signs.

    Law      u is a uniform real U rounded down to a float, but never below 2**-1022: P(u < a) = a
             for every float a from above 2**-1022 to 1. The sign is +1 or -1, each with 1/2
    Theorem  the exponent of U is -1-j with probability 2**-(j+1); j is the number of zeros at the
             end of a word, which has that law. 52 further bits are the mantissa, one is the sign
    Differs  what is constant: two words a draw, but for a share of 2**-64 that needs a third
    Checked  tests/mechanisms/test_snapping.py
    """
    first = words(bits, size, np.uint64)
    second = words(bits, size, np.uint64)
    zeros = np.frexp((first & (~first + np.uint64(1))).astype(np.float64))[1] - 1
    pattern = (1022 - zeros).astype(np.uint64) << np.uint64(52) | second & _MANTISSA
    u = pattern.view(np.float64)
    for i in np.flatnonzero(first == 0):
        u[i] = _tiny(bits, int(second[i] & _MANTISSA))
    return u, np.where(second & _SIGN, -1.0, 1.0)


def _tiny(bits: Bits, mantissa: int) -> float:
    """The uniform float whose first 64 bits are 0."""
    zeros = 64
    while zeros < -LEAST_EXPONENT:
        word = int(words(bits, 1, np.uint64)[0])
        if word:
            zeros += (word & -word).bit_length() - 1
            break
        zeros += 64
    if zeros >= -LEAST_EXPONENT:
        return math.ldexp(1.0, LEAST_EXPONENT)
    return math.ldexp((1 << 52) + mantissa, -53 - zeros)


@dataclass(frozen=True, slots=True)
class SnappingNoise:
    """sign * ln(u)/epsilon in floats, the logarithm correctly rounded.

    Differs  not constant: about one logarithm in 2**16 takes balls. Noise is drawn ahead of the
             data and apart from it
    """

    epsilon: float

    def draw(self, bits: Bits, size: int) -> Floats:
        u, sign = full_precision(bits, size)
        noise: Floats = sign * (ln_each(u) / self.epsilon)
        return noise


def overhead(epsilon: Fraction, bound: Fraction) -> Fraction:
    """What the floats of `snapped` add to the loss epsilon of inputs one apart.

    Law      (18 bound epsilon + 28) 2**-53, for outputs in the range of the uniform (`Snapping`)
    Theorem  Write h = 2**-53, L for the grid: 1 <= epsilon L < 2. (1) Rounding is monotone, so an
             output is at most k iff x + sign y < t, or <= t, for a real t that depends on k alone;
             ideal Laplace noise with these edges loses epsilon. Edges are w >= L - 4h(bound+L)
             apart. (2) y = (ln u/epsilon)(1+d), |d| <= 2h + h**2, so G(c) = P(y <= c) and P(y < c)
             are exp(epsilon c + e), -T <= e <= T = (2h + 4h**2) epsilon |c| + 2h; here 2h is the
             gap between two floats u. And |c| <= 2 bound + L, so T <= (4 bound epsilon + 6.01) h.
             (3) A cell beside x has the probability (G(c+w) - G(c))/2, relatively off by at most
             K (T + T**2), K = coth(epsilon w/2) <= 2.166; two of them lose at most 4.345 T. A cell
             over x has 1 - (G(c) + G(c'))/2 >= 0.315, where T <= 6.01 h: relatively off by 13.1 h;
             an end cell over x by 2h; a tail G/2 by T. The worst sum of two is 4.345 T or 26.2 h
    Source   paper 002, whose 12 bound epsilon h + 2h leaves out K and the gap between floats u, and
             is false: at epsilon 0.01, bound 1 an exact loss is 2.65 h above epsilon, not 2.12 h
    Checked  tests/mechanisms/test_snapping.py, against exact laws
    """
    return (18 * bound * epsilon + 28) * _ROUNDING


@dataclass(frozen=True, slots=True, init=False)
class Snapping:
    """Laplace noise in floats, snapped to a grid; the price of the floats is in epsilon.

    Law      release(f) = sensitivity * snapped(f/sensitivity, u, sign, epsilon=inner_epsilon,
             bound=bound/sensitivity), u and sign as in `full_precision`
    Theorem  with x = f/sensitivity, B = bound/sensitivity, both rounded to floats, inputs d
             sensitivities apart lose at most inner (d + 8 B h) + overhead, h = 2**-53: at most
             three roundings move an input by 3.1 B h, clamping moves no two apart, the rest is
             `overhead`. That is pure if the noise can reach every output from every input,
             inner (2 B + L) < 1022 ln 2. Else it holds for u of unbounded exponent, from which
             this u differs with probability 2**-1022 at most: delta = 2**-1022 (1 + exp(loss))
    Source   paper 002; Mironov 2012
    Differs  epsilon is the price of the whole, floats included; any sensitivity; correctly rounded
             logarithms; the range of the exponent counted
    Checked  tests/mechanisms/test_snapping.py

    The grid is the least power of two from 1/inner_epsilon up: epsilon=1 leaves a little less than
    1 for the noise, and so a grid of 2. With inner_epsilon=1.0 it is 1, at a loss a little above 1.

    >>> noise = Snapping(sensitivity=1, bound=64, epsilon=1)
    >>> noise.guarantee, noise.grid
    (PureDP(epsilon=1), 2.0)
    >>> noise.release(12.3) % 2
    0.0
    >>> type(Snapping(bound=1024, epsilon=1).guarantee).__name__
    'ApproxDP'
    """

    sensitivity: Fraction
    bound: Fraction
    epsilon: Fraction
    inner_epsilon: float
    neighbours: Neighbours

    def __init__(
        self,
        *,
        sensitivity: Number = 1,
        bound: Number,
        epsilon: Number | None = None,
        inner_epsilon: float | None = None,
        neighbours: Neighbours = AS_DECLARED,
    ) -> None:
        unit = moderate(sensitivity, "sensitivity", remedy=_REMEDY)
        ends = moderate(bound, "bound", remedy=_REMEDY)
        wide = Fraction(nearest(ends / unit))
        exactly_one(epsilon=epsilon, inner_epsilon=inner_epsilon)
        check_neighbours(neighbours)
        if epsilon is not None:
            asked = _loss(epsilon, "epsilon")
            inner = _calibrated(asked, wide)
        else:
            inner = _loss(inner_epsilon, "inner_epsilon")
            if Fraction(nearest(inner)) != inner:
                raise InvalidParameter("inner_epsilon", problem="is not a float", remedy="pass one")
            asked = _total(inner, wide, Fraction(1))
        if asked - inner > min(asked / 100, Fraction(1, 64)):
            problem = "is so large that rounding floats costs too much of epsilon"
            raise InvalidParameter("bound", problem=problem, remedy="pass a smaller one")
        set_fields(self, sensitivity=unit, bound=ends, epsilon=asked, inner_epsilon=float(inner))
        set_fields(self, neighbours=neighbours)

    @property
    def grid(self) -> float:
        """The distance between two outputs, but for those at +-bound."""
        return nearest(Fraction(grid_of(self.inner_epsilon)) * self.sensitivity)

    @property
    def guarantee(self) -> PureDP | ApproxDP:
        """What one release promises for the declared sensitivity."""
        return self._promise(self.epsilon)

    @property
    def loss(self) -> ApproxLoss:
        """What one release loses, for a `Profile`."""
        return black_box(self.guarantee)

    def guarantee_at(self, distance: Number) -> PureDP | ApproxDP:
        """What one release promises for inputs at most so far apart."""
        far = nonnegative(distance, "distance")
        if far == 0:
            return PureDP(0, neighbours=self.neighbours)
        if far == self.sensitivity:
            return self.guarantee
        loss = _total(Fraction(self.inner_epsilon), self._wide(), far / self.sensitivity)
        above = upper(loss)  # of fewer digits, if it is a float
        return self._promise(Fraction(above) if math.isfinite(above) else loss)

    def release(self, value: Any) -> Any:
        """A private version of a number (a float) or of each number of an array.

        Each number costs the guarantee by itself; the whole array costs their composition.
        """
        numbers = floats_of(value, self.sensitivity)
        noise = drawn(SnappingNoise(self.inner_epsilon), numbers.shape or None)
        bound, grid = float(self._wide()), grid_of(self.inner_epsilon)
        noisy = np.clip(numbers, -bound, bound) + noise
        near = np.rint(noisy / grid) * grid + 0.0  # -0.0 would tell the side of 0
        snapped_values = np.clip(near, -bound, bound) * nearest(self.sensitivity)
        return snapped_values if numbers.ndim else float(snapped_values)

    def accuracy(self, beta: Number) -> Fraction:
        """An a with P[abs(release - value) > a] <= beta, for values within +-bound.

        Theorem  P[abs(noise) > t] <= (1+2h) exp(-inner t (1-2h)), h = 2**-53 (`overhead`). The
                 sum adds h (B + t), the grid half its step, the other roundings 8 h B; clamping
                 brings nothing further from a value within the bound. Not the least a, but near it
        """
        chance = level(beta, "beta")
        h = _ROUNDING
        with working_precision(_PRECISION):
            wait = Fraction(upper(-arb_of(chance).log())) + 2 * h
        noise = wait / (Fraction(self.inner_epsilon) * (1 - 2 * h)) * (1 + 2 * h)
        return (noise + self._slack()) * self.sensitivity

    def beta(self, error: Number) -> float:
        """A bound on P[abs(release - value) > error], rounded up: the inverse of `accuracy`."""
        h = _ROUNDING
        far = nonnegative(error, "error") / self.sensitivity - self._slack()
        if far <= 0:
            return 1.0
        wait = far / (1 + 2 * h) * Fraction(self.inner_epsilon) * (1 - 2 * h) - 2 * h
        with working_precision(_PRECISION):
            return min(upper((-arb_of(wait)).exp()), 1.0)

    def _slack(self) -> Fraction:
        return Fraction(grid_of(self.inner_epsilon)) / 2 + 10 * self._wide() * _ROUNDING

    def _wide(self) -> Fraction:
        return Fraction(nearest(self.bound / self.sensitivity))

    def _promise(self, loss: Fraction) -> PureDP | ApproxDP:
        inner = Fraction(self.inner_epsilon)
        far = inner * (2 * self._wide() + Fraction(grid_of(self.inner_epsilon)))
        if far < 708:  # 1022 ln 2 = 708.39...
            return PureDP(loss, neighbours=self.neighbours)
        with working_precision(_PRECISION):
            ratio = arb_of(loss).exp() + 1
            delta = arb(2) ** LEAST_EXPONENT * ratio
            share = Fraction(upper(delta)) if delta < 1 else Fraction(1)
        return ApproxDP(loss, share, neighbours=self.neighbours)


def _total(inner: Fraction, bound: Fraction, distance: Fraction) -> Fraction:
    return inner * (distance + 8 * bound * _ROUNDING) + overhead(inner, bound)


def _calibrated(epsilon: Fraction, bound: Fraction) -> Fraction:
    """The greatest float whose loss at distance 1 is at most epsilon."""
    fixed = overhead(Fraction(0), bound)
    slope = _total(Fraction(1), bound, Fraction(1)) - fixed
    return Fraction(max(lower((epsilon - fixed) / slope), 0.0))


def _loss(value: object, name: str) -> Fraction:
    number = positive(value, name)
    if not Fraction(1, 1 << 40) <= number <= 512:
        problem = "is not between 2**-40 and 512"
        raise InvalidParameter(name, problem=problem, remedy="pass a moderate loss")
    return number
