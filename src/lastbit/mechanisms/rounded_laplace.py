"""The Laplace mechanism in plain floats, rounded and truncated, with a certificate of the cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from flint import arb
from numpy.typing import NDArray

from lastbit.errors import InvalidParameter
from lastbit.exact import Number, arb_of, nonnegative, upper, whole, working_precision
from lastbit.mechanisms.lattice import Lattice, floats_of, power_below
from lastbit.mechanisms.mechanism import Pure, level, moderate, not_below, set_fields
from lastbit.privacy import AS_DECLARED, Neighbours, check_neighbours
from lastbit.sampling import Bits, drawn, words

PLACES = 51
_LN2 = 0.6931471805599453
_SERIES = tuple(1 / (2 * k + 1) for k in range(17))
_UNIT = Fraction(1, 1 << 53)
_PRECISION = 192

Floats = NDArray[np.float64]
Words = NDArray[np.uint64]
Outside: TypeAlias = Literal["ends", "infinity"]


def unit_exponential(halvings: Floats, word: Words, *, places: int = PLACES) -> Floats:
    """-ln(M/2**e) for whole numbers e >= 0 and M = 1/2 + (k + 1/2)/2**(places+1), k the words.

    Law      |result - x| <= 6u x for the exact x, u = 2**-53; places at most 51, e below 2**50
    Theorem  -ln M = 2 atanh(t), t = (1-M)/(1+M) <= 1/3. M and 1-M are floats exactly; the sum and
             the quotient add u each, so t is off by 2.1u relatively and q = t*t <= 1/9 by 5.3u.
             P(q) = sum of q**k/(2k+1): all terms are positive; P' q/P <= 0.05, so q's own error
             moves P by 0.3u. Horner: the last sum adds 1.05u, the product before it 0.05u, the
             error of the inner sum, below 0.8u, counts by q: 0.1u. What 17 terms leave out is
             below 9**-17/35 * 9/8 < 0.02u. So P is off by less than 1.6u, and 2tP by 2.1 + 1.6 + 1
             and crumbs: below 5u. e ln 2 is off by 2u relatively (the constant and the product).
             Both parts are positive, the sum adds u: at most 6u relatively
    Differs  no maths library is called, so none has to be trusted
    Checked  tests/mechanisms/test_rounded_laplace.py

    >>> x = unit_exponential(np.array([0.0, 3.0]), np.array([0, 0], np.uint64))
    >>> float(x[1] - x[0]) == 3 * 0.6931471805599453
    True
    """
    half = (word.astype(np.float64) * 2 + 1) * 2.0 ** -(places + 2)  # M - 1/2, exactly
    root = (0.5 - half) / (1.5 + half)
    square = root * root
    value = np.full_like(square, _SERIES[-1])
    for coefficient in reversed(_SERIES[:-1]):
        value *= square
        value += coefficient
    value *= root
    value += value
    value += halvings * _LN2
    return value


@dataclass(frozen=True, slots=True)
class FloatLaplaceNoise:
    """Laplace noise in floats: two words of 64 bits a draw.

    Law      sign * scale * -ln V', V' = M/2**e: e counts the zeros before the first 1 of a row of
             fair bits, M is the middle of one of 2**51 equal parts of [1/2, 1). A uniform V that
             begins with these bits lies in that part, so V/V' is within 1 +- 2**-52
    Theorem  V = M/2**e has e and M independent, P[e] = 2**-(e+1) and M uniform on [1/2, 1). So the
             error of the generator is relative, down to the smallest numbers
    Differs  more words are drawn if the first 53 bits are all zero, with probability 2**-53
    Checked  tests/mechanisms/test_rounded_laplace.py
    """

    scale: float

    def draw(self, bits: Bits, size: int) -> Floats:
        halvings = _leading_zeros(bits, size)
        word = words(bits, size, np.uint64)
        noise = unit_exponential(halvings, word >> np.uint64(64 - PLACES))
        noise *= self.scale
        negative = (word & np.uint64(1)).astype(np.bool_)
        np.negative(noise, out=noise, where=negative)
        return noise


def _leading_zeros(bits: Bits, size: int) -> Floats:
    """How many zeros precede the first 1 in rows of fair bits, 53 of each word at a time."""
    top = (words(bits, size, np.uint64) >> np.uint64(11)).astype(np.float64)  # exact: 53 bits
    _, length = np.frexp(top)  # exact too: the number of bits up to the first 1
    zeros: Floats = 53.0 - length
    for i in np.flatnonzero(top == 0):
        zeros[i] = 53 + _leading_zeros(bits, 1)[0]
    return zeros


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundedBounds:
    """How far the floats stray from the ideal, and what that costs; every figure rounded up.

    The generator is within a factor of 1 +- delta_0 of uniform reals, which moves the noise by
    omega. The computed noise is off by delta_n, its sum with the input by delta_sum, an input that
    was no float by delta_input: all together by delta_t. `ratio` is R of paper 000 and `general`
    the excess by its theorem; `excess` is the exact one for Laplace noise, the smaller of the two.
    """

    delta_0: Fraction
    omega: Fraction
    delta_n: Fraction
    delta_sum: Fraction
    delta_input: Fraction
    delta_t: Fraction
    ratio: Fraction
    general: Fraction
    excess: Fraction


def rounded_bounds(
    *, scale: Fraction, cell: Fraction, bound: Fraction, places: int = PLACES
) -> RoundedBounds | None:
    """The certificate, or None where the floats are too coarse for cells of this size.

    Theorem  inputs at distance d > 0 within `bound` of 0 cost at most d/scale + excess, where
             excess = ln(sinh((L+2 delta_t)/2b)/sinh((L-2 delta_t)/2b)) for cells of length L and
             noise of scale b. Proof: docs/theory/rounding.md
    Source   paper 000, Theorem 4.5 and section 5, corrected
    Differs  a generator of relative precision; sums and inputs counted; the exact ratio
    Checked  tests/mechanisms/test_rounded_laplace.py
    """
    delta_0 = Fraction(1, 1 << (places + 1))
    omega = scale * delta_0
    reach = 2 * bound + omega  # whatever leads farther leads to an end, in floats too
    noise = 8 * _UNIT * reach
    floats = {"delta_sum": _UNIT * (bound + reach + noise), "delta_input": _UNIT * bound}
    delta_t = omega + noise + sum(floats.values())
    if 2 * delta_t >= cell:
        return None
    ratio = 4 * delta_t / (cell - 2 * delta_t)
    with working_precision(_PRECISION):
        general = not_below(_rim(arb_of(ratio), arb_of(cell / scale)))
        wide, narrow = (-(-arb_of((cell + s * delta_t) / scale)).expm1() for s in (2, -2))
        excess = not_below(arb_of(2 * delta_t / scale) + (wide / narrow).log())
    errors = {"delta_0": delta_0, "omega": omega, "delta_n": noise, "delta_t": delta_t}
    return RoundedBounds(**errors, **floats, ratio=ratio, general=general, excess=excess)


def _rim(ratio: arb, exponent: arb) -> arb:
    """ln(1 + ratio exp(exponent)), without the exponential where it is large."""
    if exponent > 40:
        return exponent + (ratio + (-exponent).exp()).log()
    return (ratio * exponent.exp()).log1p()


@dataclass(frozen=True, slots=True, init=False)
class RoundedLaplace(Pure):
    """Adds Laplace noise in floats, rounds to multiples of `cell` and stays within `bound` of 0.

    Law      release(x) = the multiple of `cell` nearest to x + noise (ties to even), or the nearer
             of -bound and bound beyond them; every step in floats
    Theorem  inputs that differ in m coordinates, by d in sum, cost at most d/scale + m excess: the
             ideal and the computed sum are at most delta_t apart, or beyond the same end. So the
             true probability of an interval of results lies between the ideal ones of that
             interval shrunk and grown by delta_t, whose quotient for one input is at most e**excess
    Source   paper 000 (Gazeau, Miller, Palamidessi 2013), Theorem 4.5, section 5 and Remark 2
    Differs  its errors are corrected and its missing terms counted (docs/theory/rounding.md);
             inputs beyond `bound` are first moved to it, which brings no two further apart
    Checked  tests/mechanisms/test_rounded_laplace.py

    `epsilon` is the price of the whole, everything counted, for inputs as far apart as the
    sensitivity (in the L1 norm, for arrays of at most `dimension` numbers). The scale is a float
    derived from it. `cell` is a power of two, `bound` a multiple of it. With `outside="infinity"`
    the ends are one value, `math.inf`: Mechanism 2 of the paper, a function of the release above,
    and so as private. Inputs near the bound come out so half of the time.

    >>> noise = RoundedLaplace(sensitivity=1, epsilon="1/2", cell="1/16", bound=1000)
    >>> noise.guarantee.epsilon <= Fraction(1, 2) and noise.bounds.excess < 1e-9
    True
    >>> (noise.release(41.25) * 16).is_integer()
    True
    """

    sensitivity: Fraction
    scale: Fraction
    cell: Fraction
    bound: Fraction
    dimension: int
    outside: Outside
    bounds: RoundedBounds = field(repr=False)
    neighbours: Neighbours

    def __init__(
        self,
        *,
        sensitivity: Number,
        epsilon: Number,
        cell: Number,
        bound: Number,
        dimension: int = 1,
        outside: Outside = "ends",
        neighbours: Neighbours = AS_DECLARED,
    ) -> None:
        if not isinstance(outside, str) or outside not in get_args(Outside):
            remedy = 'pass "ends" or "infinity"'
            raise InvalidParameter("outside", problem="is unknown", remedy=remedy)
        distance, loss = moderate(sensitivity, "sensitivity"), moderate(epsilon, "epsilon")
        side, edge = moderate(cell, "cell"), moderate(bound, "bound")
        if side != power_below(side):
            raise InvalidParameter(
                "cell", problem="is not a power of two", remedy='pass, say, "1/4"'
            )
        if (edge / side).denominator != 1:
            remedy = "round it to one"
            raise InvalidParameter("bound", problem="is not a multiple of the cell", remedy=remedy)
        count = whole(dimension, "dimension", least=1)
        check_neighbours(neighbours)
        found = _calibrated(distance, loss, side, edge, count)
        if found is None:
            remedy = "pass a larger cell, a smaller bound or a larger epsilon"
            raise InvalidParameter("cell", problem="is too small for floats", remedy=remedy)
        set_fields(
            self, sensitivity=distance, scale=found[0], cell=side, bound=edge, dimension=count
        )
        set_fields(self, bounds=found[1], neighbours=neighbours, outside=outside)

    def _loss(self, distance: Fraction) -> Fraction:
        return distance / self.scale + self.dimension * self.bounds.excess

    def certificate(self) -> dict[str, Fraction]:
        """Every figure of the proof, and the loss they lead to; each rounded up."""
        figures = {name: getattr(self.bounds, name) for name in self.bounds.__slots__}
        return {"scale": self.scale, **figures, "epsilon_upper": self.epsilon}

    def release(self, value: Any) -> Any:
        """A private version of a number, or of an array of at most `dimension` numbers."""
        floats = self._floats(value)
        sampler = FloatLaplaceNoise(float(self.scale))
        noisy = self._rounded(floats + drawn(sampler, floats.shape or None))
        if self.outside == "infinity":
            noisy = np.where(np.abs(noisy) == float(self.bound), np.inf, noisy)
        return noisy if floats.ndim else float(noisy)

    def accuracy(self, beta: Number) -> Fraction:
        """An a with P[abs(release - value) > a] <= beta, for one value within the bound.

        Of releases that are numbers: an infinity is counted as none.

        Theorem  the ideal noise exceeds a with probability exp(-a/scale); the floats add delta_t,
                 rounding half a cell, and moving to an end moves nearer to the value
        """
        chance = level(beta, "beta")
        with working_precision(_PRECISION):
            spread = not_below(-arb_of(chance).log())
        return spread * self.scale + self._rounding()

    def beta(self, error: Number) -> float:
        """P[abs(release - value) > error] for one value within the bound, rounded up."""
        far = nonnegative(error, "error") - self._rounding()
        if far <= 0:
            return 1.0
        with working_precision(_PRECISION):
            return min(upper((-arb_of(far / self.scale)).exp()), 1.0)

    def _rounding(self) -> Fraction:
        return self.bounds.delta_t + self.cell / 2

    def _floats(self, value: object) -> Floats:
        """The input as the nearest floats, moved to the bound where it lies beyond."""
        floats = floats_of(value)
        Lattice(self.cell, rounds=True, dimension=self.dimension).check_dimension(floats)
        return np.clip(floats, float(-self.bound), float(self.bound))

    def _rounded(self, sums: Floats) -> Floats:
        """Multiples of the cell: the quotient by a power of two and its rounding are exact."""
        last = float(self.bound / self.cell)
        steps = np.clip(np.rint(sums * float(1 / self.cell)), -last, last)
        return (steps + 0.0) * float(self.cell)  # -0.0 would tell the side of 0


def _calibrated(
    distance: Fraction, epsilon: Fraction, cell: Fraction, bound: Fraction, dimension: int
) -> tuple[Fraction, RoundedBounds] | None:
    """The least scale found, a float, for which the whole costs at most epsilon, and its proof."""

    def proved(scale: Fraction) -> RoundedBounds | None:
        bounds = rounded_bounds(scale=scale, cell=cell, bound=bound)
        if bounds is None or distance / scale + dimension * bounds.excess > epsilon:
            return None
        return bounds

    low = distance / epsilon
    high = Fraction(upper(2 * low))
    best = proved(high)
    if best is None:
        return None
    for _ in range(60):
        middle = Fraction(upper((low + high) / 2))
        if middle in (low, high):
            break
        bounds = proved(middle)
        if bounds is None:
            low = middle
        else:
            high, best = middle, bounds
    return high, best
