"""From numbers to integers and back: the public lattice on which mechanisms add noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import Number, floor_log2, nearest, nonnegative, positive, rational, upper, whole
from lastbit.laws import Law, OnGrid, Shifted
from lastbit.mechanisms.mechanism import Prepared, level
from lastbit.sampling import Sampler, drawn
from lastbit.sensitivity import exact_array

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

    @property
    def half_step(self) -> Fraction:
        """By how much rounding to the lattice can move a value."""
        return self.step / 2 if self.rounds else Fraction(0)

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
            return self.on_grid(steps + drawn(sampler, None))
        return self.on_grid(_sum(steps, drawn(sampler, steps.shape)))

    def steps_of(self, value: object) -> int:
        """The integer at which a single value lies on the lattice."""
        steps = self._steps(value)
        if not isinstance(steps, int):
            raise WrongType("value", problem="is an array", remedy="pass one number")
        return steps

    # -- in --
    def _steps(self, value: object) -> int | NDArray[Any]:
        _refuse_truth_values(value)
        if not self.rounds:  # floats are refused, since no grid was declared for them
            return _integers(value)
        if isinstance(value, float) and abs(value) < _ORDINARY:
            return round(math.ldexp(value, -floor_log2(self.step)))  # both exact: see the law above
        if isinstance(value, int | float | Fraction | np.integer | np.floating):
            return round(rational(value, "value") / self.step)
        array = array_of(value)
        self.check_dimension(array)
        return self.rounded(array)

    def rounded(self, array: NDArray[Any]) -> NDArray[Any]:
        """The nearest steps: int64, or Python integers where one of them does not fit."""
        if array.dtype.kind == "O":
            return self._one_by_one(array)
        check_finite(array)
        with np.errstate(all="ignore"):
            floats = array.astype(np.float64)
            scaled = np.rint(np.ldexp(floats, -floor_log2(self.step)))
        # floats hold integers up to 2**53 only, and int64 holds no more than 63 bits
        exact = array.dtype.itemsize <= 8 and (
            array.dtype.kind == "f" or bool((np.abs(floats) <= 2.0**53).all())
        )
        if not exact or not (np.abs(scaled) < 2.0**62).all():
            return self._one_by_one(array)
        return scaled.astype(np.int64)

    def check_dimension(self, array: NDArray[Any]) -> None:
        """Refuse more coordinates than were declared."""
        if array.size > self.dimension:
            raise InvalidParameter(
                "value",
                problem="has more coordinates than were declared",
                remedy=f"construct the mechanism with dimension={array.size}",
            )

    def _one_by_one(self, array: NDArray[Any]) -> NDArray[Any]:
        """In exact arithmetic, for what numpy's own cannot hold."""
        return _objects([round(number / self.step) for number in _rationals(array)], array)

    def vector_steps(self, value: object) -> NDArray[Any]:
        """The integers at which the numbers of an array lie on the lattice."""
        return np.asarray(self._steps(value))

    # -- out --
    def on_grid(self, steps: Any) -> Any:
        """Steps as values: integers, or the nearest floats."""
        if not self.rounds:
            return steps
        if isinstance(steps, int):
            return nearest(steps * self.step)
        if steps.dtype.kind == "O":
            floats = np.array([nearest(int(s) * self.step) for s in steps.flat], np.float64)
            return floats.reshape(steps.shape)
        with np.errstate(over="ignore", under="ignore"):
            return np.ldexp(steps.astype(np.float64), floor_log2(self.step))


INTEGERS = Lattice(step=Fraction(1), rounds=False, dimension=1)


def lattice(grid: object, *, noise: Fraction, dimension: object) -> Lattice:
    """The lattice a mechanism works on: integers, a given power of two, or one fit for the noise.

    `grid="auto"` takes the largest power of two for which rounding all coordinates stays below
    2**-20 of the noise scale.
    """
    coordinates = whole(dimension, "dimension", least=1)
    if grid is None:
        return Lattice(step=Fraction(1), rounds=False, dimension=coordinates)
    if isinstance(grid, str) and grid == "auto":
        grid = power_below(noise / (FINENESS * coordinates))
    step = positive(grid, "grid")
    if step != power_below(step) or not _LEAST_STEP <= step <= 1 / _LEAST_STEP:
        raise InvalidParameter(
            "grid",
            problem="is not a power of two between 2**-500 and 2**500",
            remedy='pass "auto", or a step such as "1/1024"',
        )
    return Lattice(step=step, rounds=True, dimension=coordinates)


def power_below(number: Fraction) -> Fraction:
    """The largest power of two that is not above a number."""
    return Fraction(2) ** floor_log2(number)


def _integers(value: object) -> int | NDArray[Any]:
    remedy = 'pass integers, or construct the mechanism with grid="auto" for floats'
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating | str | Fraction) or value is None:
        raise WrongType("value", problem="is not an integer", remedy=remedy)
    array = array_of(value)
    if array.dtype.kind == "i" or (array.dtype.kind == "f" and not array.size):
        return array.astype(np.int64)
    if array.dtype.kind == "u":
        return array.astype(np.int64) if array.dtype.itemsize < 8 else array.astype(np.object_)
    if array.dtype.kind == "O" and all(isinstance(v, int | np.integer) for v in array.flat):
        return _objects([int(v) for v in array.flat], array)
    raise WrongType("value", problem="does not hold integers", remedy=remedy)


def array_of(value: object) -> NDArray[Any]:
    """A value of the caller's in an array that holds each number exactly."""
    return exact_array(value, "value")


def floats_of(value: object, unit: Fraction = Fraction(1)) -> NDArray[np.float64]:
    """A number, or an array, over a unit: rounded to floats at most three times."""
    _refuse_truth_values(value)
    if isinstance(value, int | float | Fraction | np.integer | np.floating):
        return np.array(nearest(rational(value, "value") / unit))
    array = array_of(value)
    if array.dtype.kind == "O":
        numbers = [nearest(number / unit) for number in _rationals(array)]
        return np.array(numbers, np.float64).reshape(array.shape)
    check_finite(array)
    with np.errstate(all="ignore"):  # what overflows becomes an infinity, for callers to clamp
        scaled: NDArray[np.float64] = array.astype(np.float64) / nearest(unit)
    return scaled


def check_finite(array: NDArray[Any]) -> None:
    """Refuse NaN and infinities."""
    if not np.isfinite(array).all():
        raise InvalidParameter(
            "value", problem="holds NaN or an infinity", remedy="clean or clamp the data first"
        )


def _refuse_truth_values(value: object) -> None:
    if isinstance(value, bool | np.bool_ | np.timedelta64):
        raise WrongType("value", problem="is not a plain number", remedy="pass a number")


def _rationals(array: NDArray[Any]) -> list[Fraction]:
    if any(isinstance(item, str | bytes) for item in array.flat):
        raise WrongType("value", problem="does not hold numbers", remedy="pass numbers")
    return [rational(item, "value") for item in array.flat]


def _objects(numbers: list[int], like: NDArray[Any]) -> NDArray[Any]:
    out = np.empty(len(numbers), np.object_)
    out[:] = numbers
    return out.reshape(like.shape)


def numbers_of(values: list[int]) -> NDArray[Any]:
    """Whole numbers as a vector: int64, or Python integers where one does not fit."""
    try:
        return np.array(values, np.int64)
    except OverflowError:
        return np.array(values, np.object_)


def _sum(steps: NDArray[Any], noise: NDArray[Any]) -> NDArray[Any]:
    """Exact sums: int64 unless one of them leaves it, which is a fact about the release only."""
    if steps.dtype == np.int64 and noise.dtype == np.int64:
        total = np.asarray(steps + noise)
        if not ((steps ^ total) & (noise ^ total) < 0).any():
            return total
    sums = [int(a) + int(b) for a, b in zip(steps.flat, noise.flat, strict=True)]
    wide = _objects(sums, steps)
    fits = all(-(1 << 63) <= t < 1 << 63 for t in sums)
    return wide.astype(np.int64) if fits else wide


class Additive(Prepared):
    """Symmetric noise on a lattice: `_noise` is its law, in steps."""

    __slots__ = ()

    lattice: Lattice

    def _noise(self) -> Law:
        raise NotImplementedError

    @overload
    def release(self, value: list[Any] | tuple[Any, ...] | NDArray[Any]) -> NDArray[Any]: ...
    @overload
    def release(self, value: Any) -> Any: ...
    def release(self, value: Any) -> Any:
        """A private version of an integer, a float or an array, of the same kind."""
        return self.lattice.noised(value, self._prepared())

    def law(self, value: Any) -> Shifted | OnGrid:
        """The exact law of release(value)."""
        moved = Shifted(self._noise(), self.lattice.steps_of(value))
        return OnGrid(moved, self.lattice.step) if self.lattice.rounds else moved

    def accuracy(self, beta: Number) -> Fraction:
        """The least a with P[abs(release - value) > a] <= beta, for one coordinate.

        A float release is the nearest float to the exact one: beyond 2**53 steps it may be off by
        half a unit in its last place more.

        Theorem  P[abs(X) > k] <= beta iff P[X <= k] >= 1 - beta/2, since X is symmetric; rounding
                 to the grid moves a value by at most half a step more. For Laplace noise
                 P[abs(X) > k] = 2 q**(k+1)/(1+q); its continuous counterpart is the error
                 (sensitivity/epsilon) ln(1/beta) of paper 004
        """
        steps = max(self._noise().quantile(1 - level(beta, "beta") / 2), 0)
        return steps * self.lattice.step + self.lattice.half_step

    def beta(self, error: Number) -> float:
        """P[abs(release - value) > error] for one coordinate, rounded up."""
        noise, far = self._noise(), nonnegative(error, "error")
        steps = (far - self.lattice.half_step) // self.lattice.step
        return min(upper((1 - noise.cdf(int(steps))) * 2), 1.0) if steps >= 0 else 1.0


def check_whole_sensitivity(sensitivity: Fraction, lattice: Lattice) -> None:
    """On the integers a sensitivity below 1 would say that no input ever changes."""
    if not lattice.rounds and sensitivity < 1:
        raise InvalidParameter(
            "sensitivity",
            problem="is below 1, and no two different integers are that close",
            remedy="pass a whole number, or {grid} for floats",
            grid="auto",
        )
