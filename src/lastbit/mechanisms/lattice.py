"""From a query's value to integers, and back: the public lattice on which noise is added."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact.rational import positive, rational, whole
from lastbit.sampling.bits import Bits
from lastbit.sampling.draw import Sampler, drawn

__all__ = ["Lattice", "lattice"]

# Rounding to the grid may move a value by this much of the noise scale, and no more.
FINENESS = 1 << 20
_LEAST_STEP = Fraction(1, 1 << 500)
_ORDINARY = 2.0**400  # no overflow when scaled by a step, and the limits on steps keep it so


@dataclass(frozen=True, slots=True)
class Lattice:
    """The integers, or the multiples of a public power of two to which floats are rounded.

    Law      a float x becomes the integer round(x/step) (ties to even), exactly: the quotient by a
             power of two is exact, and so is the rounding
    Theorem  abs(round(x/step) - round(y/step)) <= abs(x-y)/step + 1 in every coordinate. So over d
             coordinates the L1 distance grows by at most d steps, the L2 distance by at most
             sqrt(d) steps; integers are not rounded and nothing grows
    Differs  the step depends on public parameters only; results are rounded to floats after the
             noise, which is post-processing
    Checked  tests/mechanisms/test_lattice.py
    """

    step: Fraction
    rounds: bool
    dimension: int

    def l1_steps(self, sensitivity: Fraction) -> Fraction:
        """How many steps apart two inputs can be in the L1 norm."""
        if not self.rounds:
            return sensitivity
        return Fraction(sensitivity // self.step + self.dimension)

    def l2_steps(self, sensitivity: Fraction) -> Fraction:
        """How many steps apart two inputs can be in the L2 norm."""
        if not self.rounds:
            return sensitivity
        if self.dimension == 1:
            return self.l1_steps(sensitivity)
        root = isqrt(self.dimension - 1) + 1  # not below the square root
        return sensitivity / self.step + root

    def noised(self, value: object, sampler: Sampler) -> Any:
        """The value with fresh noise, in the value's own type; refused before anything is drawn."""
        steps = self._steps(value)
        if isinstance(steps, int):
            return self._value(steps + drawn(sampler, None))
        return self._value(_sum(steps, drawn(sampler, steps.shape)))

    def noised_with(self, value: object, sampler: Sampler, bits: Bits) -> Any:
        """The same from a given source of bits, for tests."""
        steps = self._steps(value)
        if isinstance(steps, int):
            return self._value(steps + int(sampler.draw(bits, 1)[0]))
        return self._value(_sum(steps, sampler.draw(bits, steps.size).reshape(steps.shape)))

    def steps_of(self, value: object) -> int:
        """The integer at which a single value lies on the lattice."""
        steps = self._steps(value)
        if not isinstance(steps, int):
            raise WrongType("value", problem="is an array", remedy="pass one number")
        return steps

    # -- in --
    def _steps(self, value: object) -> int | NDArray[Any]:
        if isinstance(value, bool | np.bool_):
            raise WrongType("value", problem="is a truth value", remedy="pass a number")
        if not self.rounds:
            return _integers(value)
        if isinstance(value, float) and abs(value) < _ORDINARY:
            return round(math.ldexp(value, -self._exponent()))  # both exact: see the law above
        if isinstance(value, int | float | np.integer | np.floating):
            return round(rational(value, "value") / self.step)
        array = _array(value)
        if array.size > self.dimension:
            raise InvalidParameter(
                "value",
                problem="has more coordinates than were declared",
                remedy=f"construct the mechanism with dimension={array.size} or more",
            )
        if array.dtype.kind == "O":
            return self._one_by_one(array)
        if not np.isfinite(array).all():
            raise InvalidParameter(
                "value", problem="holds NaN or an infinity", remedy="clean or clamp the data first"
            )
        floats = array.astype(np.float64)
        with np.errstate(all="ignore"):
            scaled = np.rint(np.ldexp(floats, -self._exponent()))
        # floats hold integers up to 2**53 only, and int64 holds no more than 63 bits
        exact = array.dtype.itemsize <= 8 and (
            array.dtype.kind == "f" or bool((np.abs(floats) <= 2.0**53).all())
        )
        if not exact or not (np.abs(scaled) < 2.0**62).all():
            return self._one_by_one(array)
        return scaled.astype(np.int64)

    def _one_by_one(self, array: NDArray[Any]) -> NDArray[Any]:
        """In exact arithmetic, for what numpy's own cannot hold."""
        if any(isinstance(v, str | bytes) for v in array.flat):
            raise WrongType("value", problem="does not hold numbers", remedy="pass numbers")
        return _objects([round(rational(v, "value") / self.step) for v in array.flat], array)

    def _exponent(self) -> int:
        return self.step.numerator.bit_length() - self.step.denominator.bit_length()

    # -- out --
    def _value(self, steps: Any) -> Any:
        if not self.rounds:
            return steps
        if isinstance(steps, int):
            return _nearest(steps * self.step)
        if steps.dtype.kind == "O":
            floats = np.array([_nearest(int(s) * self.step) for s in steps.flat], np.float64)
            return floats.reshape(steps.shape)
        with np.errstate(over="ignore", under="ignore"):
            return np.ldexp(steps.astype(np.float64), self._exponent())


def lattice(grid: object, *, noise: Fraction, dimension: object) -> Lattice:
    """The lattice a mechanism works on: integers, a given power of two, or one fit for the noise.

    `grid="auto"` takes the largest power of two for which rounding all coordinates stays below
    2**-20 of the noise scale.
    """
    coordinates = whole(dimension, "dimension", least=1)
    if grid is None:
        return Lattice(step=Fraction(1), rounds=False, dimension=coordinates)
    if grid == "auto":
        grid = _power_below(noise / (FINENESS * coordinates))
    step = positive(grid, "grid")
    if step != _power_below(step) or not _LEAST_STEP <= step <= 1 / _LEAST_STEP:
        raise InvalidParameter(
            "grid",
            problem="is not a power of two between 2**-500 and 2**500",
            remedy='pass "auto", or a step such as "1/1024"',
        )
    return Lattice(step=step, rounds=True, dimension=coordinates)


def _power_below(number: Fraction) -> Fraction:
    """The largest power of two that is not above a number."""
    exponent = number.numerator.bit_length() - number.denominator.bit_length()
    power = Fraction(2) ** exponent
    return power if power <= number else power / 2


def _integers(value: object) -> int | NDArray[Any]:
    """Integers as they are; floats are refused, since nobody said on which grid they lie."""
    remedy = 'pass integers, or construct the mechanism with grid="auto" for floats'
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating | str | Fraction) or value is None:
        raise WrongType("value", problem="is not an integer", remedy=remedy)
    array = _array(value)
    if array.dtype.kind == "i":
        return array.astype(np.int64)
    if array.dtype.kind == "u":
        return array.astype(np.int64) if array.dtype.itemsize < 8 else array.astype(np.object_)
    if array.dtype.kind == "O" and all(
        isinstance(v, int | np.integer) and not isinstance(v, bool) for v in array.flat
    ):
        return _objects([int(v) for v in array.flat], array)
    raise WrongType("value", problem="does not hold integers", remedy=remedy)


def _array(value: object) -> NDArray[Any]:
    try:
        array = np.asarray(value)
    except ValueError:
        raise InvalidParameter(
            "value", problem="is ragged", remedy="pass an array of one shape"
        ) from None
    if array.dtype.kind not in "iufO" or (array.dtype.kind == "O" and array.ndim == 0):
        raise WrongType("value", problem="is not a number or an array", remedy="pass numbers")
    return array


def _objects(numbers: list[int], like: NDArray[Any]) -> NDArray[Any]:
    out = np.empty(len(numbers), np.object_)
    out[:] = numbers
    return out.reshape(like.shape)


def _sum(steps: NDArray[Any], noise: NDArray[Any]) -> Any:
    """Exact sums: int64 unless one of them leaves it, which is a fact about the release only."""
    if steps.dtype == np.int64 and noise.dtype == np.int64:
        total = steps + noise
        if not ((steps ^ total) & (noise ^ total) < 0).any():
            return total
    total = steps.astype(np.object_) + noise.astype(np.object_)
    fits = all(-(1 << 63) <= int(t) < 1 << 63 for t in total.flat)
    return total.astype(np.int64) if fits else total


def _nearest(number: Fraction) -> float:
    try:
        return number.numerator / number.denominator
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")
