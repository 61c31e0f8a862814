"""The planar Laplace mechanism in plain floats, with a certificate of what the floats cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from flint import arb
from numpy.typing import NDArray

from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import Number, arb_of, nonnegative, positive, rational, upper, working_precision
from lastbit.mechanisms.lattice import floats_of, power_below
from lastbit.mechanisms.mechanism import exactly_one, level, moderate, not_below, set_fields
from lastbit.privacy import AS_DECLARED, MetricDP, Neighbours, PureDP, check_neighbours
from lastbit.sampling import PLACES, RADIUS_ERROR, PolarNoise, drawn, least, survival

_ROUNDING = Fraction(1, 1 << 53)
_FARTHEST = 43  # unit radii stay below 42, and what is computed of them below this
_PRECISION = 192
_MARGIN = 1 + Fraction(1, 1 << 50)  # for another program, whose own bounds are a little wider
_MOST_ROUNDS = 60
_TOO_FAR = 800  # no draw is as near to its real there: 2**-1022 is exp(-708)
_REMEDY = "change the unit of distance"

Floats = NDArray[np.float64]
Figures = dict[str, Fraction]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolarBounds:
    """How far the floats stray from the ideal, and what that costs; every figure rounded up.

    The generator is within delta_0 of uniform reals, which moves the radius by omega_r and the
    direction by omega_angle. In each coordinate the computed noise is off by delta_n, its sum with
    the input by delta_sum, an input that was no float by delta_input: all together by delta_t.
    `ratio` and `distance` are R and D of paper 000; `excess` is the loss beyond rate distance.
    """

    delta_0: Fraction
    omega_r: Fraction
    omega_angle: Fraction
    delta_n: Fraction
    delta_sum: Fraction
    delta_input: Fraction
    delta_t: Fraction
    ratio: Fraction
    distance: Fraction
    excess: Fraction


class PlanarStray(NamedTuple):
    """How far ideal and computed points are apart within the reach, and what that costs."""

    reach: Fraction
    omega: Fraction
    turn: Fraction
    moved: Fraction
    delta_t: Fraction
    ratio: Fraction
    excess: Fraction


def planar_stray(
    radius_moves: Callable[[Fraction], Fraction],
    *,
    rate: Fraction,
    delta_0: Fraction,
    floats: Fraction,
    cell: Fraction,
    diameter: Fraction,
) -> PlanarStray | None:
    """What planar Laplace noise loses beyond its rate, or None where the cells are too small.

    Theorem  let draws be within delta_0 of reals and move radii within a reach by at most
             `radius_moves`(reach) = omega, and both points by `moved` = sqrt(omega**2 + turn**2),
             turn = 2 pi reach delta_0; let computed sums, at all draws, be within `floats` of
             theirs in each coordinate. With the least reach that is not below diameter + omega +
             moved + sqrt(2) floats, ideal and computed points are within `delta_t` = moved +
             floats in each coordinate, or both outside, and inputs at distance d > 0 lose at most
             rate d + excess, excess = ln(1 + R exp(rate sqrt(2) cell)), R = 8 cell delta_t/(cell -
             2 delta_t)**2. Proof: docs/theory/polar.md
    Source   paper 000, Theorem 4.5 and section 6, corrected
    """
    with working_precision(_PRECISION):
        reach, root = diameter, not_below(arb(2).sqrt())
        for _ in range(_MOST_ROUNDS):
            if rate * reach > _TOO_FAR:
                return None
            omega = radius_moves(reach) * _MARGIN
            turn = not_below(2 * arb.pi() * arb_of(reach * delta_0)) * _MARGIN
            moved = not_below(arb_of(omega**2 + turn**2).sqrt()) * _MARGIN
            delta_t = moved + floats
            if 2 * delta_t >= cell:
                return None
            needed = (diameter + omega + moved + root * floats) * _MARGIN
            if needed <= reach:
                ratio = 8 * cell * delta_t / (cell - 2 * delta_t) ** 2
                growth = (arb_of(rate * cell) * arb(2).sqrt()).exp()
                excess = not_below((arb_of(ratio) * growth).log1p()) * _MARGIN
                return PlanarStray(reach, omega, turn, moved, delta_t, ratio, excess)
            reach = needed * _MARGIN
    return None


def polar_bounds(
    *,
    rate: Fraction,
    cell: Fraction,
    half_width: Fraction,
    inputs: Fraction,
    reach: Fraction,
    delta_0: Fraction = Fraction(1, 1 << (PLACES + 1)),
) -> PolarBounds | None:
    """The certificate, or None where the floats are too coarse for cells of this size.

    Theorem  for inputs at distance d > 0 the loss is at most rate d + excess, the answer "outside"
             included. `reach` bounds the inputs' coordinates. Proof: docs/theory/polar.md
    Checked  tests/mechanisms/test_polar.py
    """
    if reach > cell * 2**52:  # below that, every multiple of the cell is a float
        return None
    floats = {
        "delta_n": (RADIUS_ERROR + 10 * _ROUNDING * _FARTHEST) / rate,
        "delta_sum": _ROUNDING * (reach + _FARTHEST / rate),
        "delta_input": _ROUNDING * reach,
    }
    with working_precision(_PRECISION):
        distance = not_below(arb(2).sqrt() * arb_of(half_width + cell / 2 + inputs))
    stray = planar_stray(
        lambda far: radius_modulus(rate * far, delta_0) / rate,
        rate=rate,
        delta_0=delta_0,
        floats=sum(floats.values(), Fraction(0)),
        cell=cell,
        diameter=distance,
    )
    if stray is None:
        return None
    moves = {"omega_r": stray.omega, "omega_angle": stray.turn, "delta_t": stray.delta_t}
    found = {"delta_0": delta_0, "distance": distance, **moves, **floats}
    return PolarBounds(ratio=stray.ratio, excess=stray.excess, **found)


def radius_modulus(far: Fraction, delta_0: Fraction) -> Fraction:
    """The most that C**-1 moves over an interval of length delta_0 below C(far), for rate 1.

    Theorem  the greater of C**-1(delta_0) and far - C**-1(C(far) - delta_0): C**-1 is concave up to
             C(1) and convex beyond, so its increments over a fixed length fall, then rise
    """
    with working_precision(_PRECISION):
        step, last = arb_of(delta_0), survival(far)
        at_zero = least(lambda t: 1 - survival(t) >= step)
        at_end = least(lambda t: t >= far or survival(far - t) - last >= step)
        return max(at_zero, min(at_end, far))


@dataclass(frozen=True, slots=True, init=False)
class PolarLaplace:
    """Moves points of the plane by Laplace noise drawn in polar floats, and rounds to squares.

    Law      release(x) = the nearest multiple of `cell` to x + r (cos, sin), r = C**-1(u)/rate,
             C(x) = 1 - (1+x) e**-x, a uniform direction, every step in floats; (inf, inf), that is
             outside, unless it lies within `half_width` of the centre in both coordinates
    Theorem  inputs at distance d > 0 cost at most rate d + excess, excess = ln(1 + R exp(rate
             sqrt(2) cell)), R = 8 cell delta_t/(cell - 2 delta_t)**2: the ideal and the computed
             point are at most delta_t apart in a coordinate, or both lie outside. So a cell's true
             probability lies between the ideal ones of the cell shrunk and grown by delta_t
    Source   paper 000 (Gazeau, Miller, Palamidessi 2013), Theorem 4.5 and section 6
    Differs  its errors are corrected, its missing terms counted (docs/theory/polar.md). Inputs
             farther than `inputs` from the centre in a coordinate are first moved to the edge of
             that square, which brings no two of them further apart
    Checked  tests/mechanisms/test_polar.py

    `epsilon` is the loss at distance `within`, everything counted; the rate follows from it
    and rounded down. Or pass `rate`, the ideal loss for one unit of distance. `centre`,
    `half_width` and `inputs` (half_width if not given) are public multiples of `cell`.

    >>> noise = PolarLaplace(epsilon=1, within=200, unit="m", cell=4, half_width=2000, inputs=1000)
    >>> noise.guarantee_at(200).epsilon <= 1 and noise.certificate()["excess"] < 1e-5
    True
    >>> x, y = noise.release((312.5, -80.25))
    >>> x % 4 == y % 4 == 0 or x == y == float("inf")
    True
    """

    rate: Fraction
    within: Fraction
    unit: str
    cell: Fraction
    half_width: Fraction
    inputs: Fraction
    centre: tuple[Fraction, Fraction]
    bounds: PolarBounds = field(repr=False)
    neighbours: Neighbours

    def __init__(
        self,
        *,
        epsilon: Number | None = None,
        rate: Number | None = None,
        within: Number = 1,
        unit: str = "unit",
        cell: Number,
        half_width: Number,
        inputs: Number | None = None,
        centre: tuple[Number, Number] = (0, 0),
        neighbours: Neighbours = AS_DECLARED,
    ) -> None:
        exactly_one(epsilon=epsilon, rate=rate)
        side = moderate(cell, "cell", remedy=_REMEDY)
        if side != power_below(side):
            raise InvalidParameter("cell", problem="is not a power of two", remedy="pass, say, 4")
        half = _multiple(positive(half_width, "half_width"), side, "half_width")
        allowed = half if inputs is None else _multiple(positive(inputs, "inputs"), side, "inputs")
        if not isinstance(centre, tuple | list) or len(centre) != 2:
            raise WrongType("centre", problem="is not a point", remedy="pass (x, y)")
        middle = tuple(_multiple(part, side, "centre") for part in centre)
        near = moderate(within, "within", remedy=_REMEDY)
        check_neighbours(neighbours)
        reach = max(map(abs, middle)) + max(half, allowed)

        def certified(a: Fraction) -> PolarBounds | None:
            return polar_bounds(rate=a, cell=side, half_width=half, inputs=allowed, reach=reach)

        if rate is not None:
            slope = moderate(rate, "rate", remedy=_REMEDY)
            bounds = certified(slope)
        else:
            slope, bounds = _calibrated(
                moderate(epsilon, "epsilon", remedy=_REMEDY), near, certified
            )
        if bounds is None:  # L <= 2 delta_t, or the floats cost as much as the distance
            remedy = "pass a smaller half_width or inputs, a larger cell, less loss for a distance"
            raise InvalidParameter("cell", problem="is too small for floats", remedy=remedy)
        MetricDP(1, per=near, unit=unit)  # refuses a unit that is not a name
        set_fields(
            self, rate=slope, within=near, unit=unit, cell=side, half_width=half, inputs=allowed
        )
        set_fields(self, centre=middle, bounds=bounds, neighbours=neighbours)

    @property
    def guarantee(self) -> MetricDP:
        """What one release promises: rate (d + slack), and rate slack = excess."""
        loss, slack = self.rate * self.within, self.bounds.excess / self.rate
        return MetricDP(loss, self.within, self.unit, slack=slack, neighbours=self.neighbours)

    def guarantee_at(self, distance: Number) -> PureDP:
        """What one release promises for inputs at most so far apart."""
        return self.guarantee.at(nonnegative(distance, "distance"))

    def certificate(self) -> Figures:
        """Every figure of the proof, and the loss at `within` they lead to; each rounded up."""
        figures = {name: getattr(self.bounds, name) for name in self.bounds.__slots__}
        loss = self.rate * self.within + self.bounds.excess
        return {"rate": self.rate, **figures, "epsilon_upper": loss}

    def release(self, value: Any) -> Any:
        """A private version of a point (a tuple) or of an array of shape (n, 2)."""
        points = self._points(value)
        sampler = PolarNoise(float(1 / self.rate))
        if points.ndim == 1:
            noise = drawn(sampler, None)
            return tuple(self._rounded(points + np.array([noise.real, noise.imag])).tolist())
        shift: NDArray[np.complex128] = drawn(sampler, len(points))
        return self._rounded(points + shift.view(np.float64).reshape(-1, 2))

    def accuracy(self, beta: Number) -> Fraction:
        """An a with P[the release is inside, and farther than a from the input] <= beta.

        For inputs within the square of inputs; from others, the point they are moved to counts.

        Theorem  the ideal radius exceeds r with probability (1 + rate r) exp(-rate r); the floats
                 add delta_t, rounding half a cell's diagonal. Not the least a, but near it
        """
        chance = level(beta, "beta")
        with working_precision(_PRECISION):
            radius = least(lambda t: survival(t) <= arb_of(chance))
        return radius / self.rate + self._rounding()

    def beta(self, error: Number) -> float:
        """P[the release is inside, and farther than `error` from the input], rounded up."""
        radius = nonnegative(error, "error") - self._rounding()
        if radius <= 0:
            return 1.0
        with working_precision(_PRECISION):
            return min(upper(survival(self.rate * radius)), 1.0)

    def _rounding(self) -> Fraction:
        return self.bounds.delta_t + not_below(arb_of(self.cell**2 / 2).sqrt())

    def _points(self, value: object) -> Floats:
        """The input as the nearest floats, moved to the edge of the square of inputs."""
        floats = floats_of(value)
        if floats.shape[-1:] != (2,) or floats.ndim > 2:
            remedy = "pass (x, y) or shape (n, 2)"
            raise InvalidParameter("value", problem="is not a point of the plane", remedy=remedy)
        low, high = ([float(c + s * self.inputs) for c in self.centre] for s in (-1, 1))
        return np.clip(floats, low, high)

    def _rounded(self, points: Floats) -> Floats:
        """Multiples of the cell: the quotient by a power of two and its rounding are exact."""
        steps = np.rint(points * float(1 / self.cell)) + 0.0  # -0.0 would tell the side of 0
        low, high = ([(c + s * self.half_width) / self.cell for c in self.centre] for s in (-1, 1))
        among = (steps >= np.array(low, float)) & (steps <= np.array(high, float))
        inside = among.all(axis=-1, keepdims=True)
        return np.where(inside, steps * float(self.cell), np.inf)


def _calibrated(
    epsilon: Fraction, within: Fraction, certified: Callable[[Fraction], PolarBounds | None]
) -> tuple[Fraction, PolarBounds | None]:
    """The greatest rate found whose loss at `within` is at most epsilon, and its proof."""
    low, high = epsilon / within / 2, epsilon / within
    best = certified(low)
    if best is None or low * within + best.excess > epsilon:
        return low, None
    for _ in range(30):
        middle = (low + high) / 2
        bounds = certified(middle)
        if bounds is not None and middle * within + bounds.excess <= epsilon:
            low, best = middle, bounds
        else:
            high = middle
    return low, best


def _multiple(value: object, cell: Fraction, name: str) -> Fraction:
    number = rational(value, name)
    if (number / cell).denominator != 1:
        raise InvalidParameter(
            name, problem="is not a multiple of the cell", remedy="round it to one"
        )
    return number
