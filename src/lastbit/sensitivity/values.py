"""Data brought onto a public integer grid, one record at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lastbit.errors import InvalidParameter, LastbitError, WrongType
from lastbit.exact import Number, floor_log2, rational

FINENESS = 40
_LARGEST = 1 << 62
_EXTREME = Fraction(2) ** 900
_FARTHEST = 400  # decimal places: beyond what any bounds (2**962) or step (2**-900) can see
_REMEDY = "pass a flat list or array of numbers"
_BYTES = (str, bytes, bytearray, memoryview)


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """Sorted integers q with low <= q <= high; the record they stand for is q * step.

    >>> records([2.5, -7, 1], 0, 4)
    Records(step=2**-38)
    """

    steps: NDArray[np.int64] = field(repr=False)
    low: int
    high: int
    step: Fraction

    @property
    def count(self) -> int:
        """How many records there are; a secret where records are added and removed."""
        return len(self.steps)

    @property
    def width(self) -> int:
        """The length of the range, in steps."""
        return self.high - self.low

    def padded(self) -> NDArray[np.int64]:
        """The least value, the sorted records, the greatest value: entry i is the i-th record."""
        return np.concatenate(([self.low], self.steps, [self.high]), dtype=np.int64)

    def __repr__(self) -> str:
        return f"Records(step=2**{floor_log2(self.step)})"  # neither the records nor their number


def records(data: object, lower: Number, upper: Number) -> Records:
    """Data clamped to public bounds and rounded to a public grid.

    Law      step is the power of two with 2**40 <= (upper-lower)/step < 2**41, and a record x
             becomes q = round(x/step), ties to even, clamped to the integers between lower/step
             and upper/step. q is exact: the product of a float and a power of two is exact or,
             where it overflows or underflows, so large that it is clamped or so small that it
             rounds to 0; `rint` is exact; integers and rationals are rounded as such
    Theorem  a map of one record at a time never moves databases apart: where x and y differ in one
             record, or by one, their images do, or are equal. So a promise about all neighbours on
             the grid is a promise about all neighbours as they were. An infinity, and whatever lies
             outside the bounds, becomes the nearer end; how often that happened is never told
    Differs  the grid depends on the bounds only; no value and no number of records is in an error
    Checked  tests/sensitivity/test_values.py

    >>> ages = records([31, 44, 250], 0, 120)                 # 250 becomes 120
    >>> float(ages.step)
    5.820766091346741e-11
    """
    least, greatest = bounds_of(lower, upper)
    step = Fraction(2) ** floor_log2((greatest - least) / (1 << FINENESS))
    if not 1 / _EXTREME <= step <= _EXTREME:
        raise InvalidParameter(
            "upper", problem="lies too near to lower, or too far", remedy="rescale the data"
        )
    low, high = -(-least // step), greatest // step  # inwards: no record leaves the bounds
    if max(abs(low), abs(high)) >= _LARGEST:
        raise InvalidParameter(
            "lower",
            problem="and upper are close together and far from 0",
            remedy="subtract a public number from the data and the bounds",
        )
    if isinstance(data, Records):
        if (data.low, data.high, data.step) != (low, high, step):
            raise InvalidParameter(
                "data", problem="lies on a grid of other bounds", remedy="pass the same bounds"
            )
        return data
    array = exact_array(data, "data", remedy=_REMEDY)
    if array.ndim != 1:
        raise InvalidParameter("data", problem="is not one-dimensional", remedy=_REMEDY)
    if array.dtype.kind == "O" or array.dtype.itemsize > 8:
        quantized = _one_by_one(array, low, high, step)
    elif array.dtype.kind == "f":
        quantized = _from_floats(array.astype(np.float64), step)
    else:
        quantized = _from_integers(array, low, high, step)
    ordered = np.sort(np.clip(quantized, low, high))
    ordered.flags.writeable = False
    return Records(ordered, low, high, step)


def bounds_of(lower: object, upper: object) -> tuple[Fraction, Fraction]:
    """Two exact bounds, the lower one first."""
    least, greatest = rational(lower, "lower"), rational(upper, "upper")
    if least >= greatest:
        problem, remedy = "is not below {upper}: unsorted bounds", "pass {lower} < {upper}"
        raise InvalidParameter("lower", problem=problem, remedy=remedy, lower=None, upper=None)
    return least, greatest


def secret_number(number: object, name: str) -> Fraction:
    """An exact number that no message may show."""
    try:
        return rational(number, name)
    except LastbitError:
        pass
    raise InvalidParameter(name, problem="is not a finite number", remedy="pass one")


def _from_floats(array: NDArray[np.float64], step: Fraction) -> NDArray[np.int64]:
    if np.isnan(array).any():
        raise _not_a_number()
    with np.errstate(over="ignore", under="ignore"):
        scaled = np.rint(array * float(1 / step))
    limit = float(_LARGEST)  # a power of two, so the clamp to the bounds can come after
    return np.clip(scaled, -limit, limit).astype(np.int64)


def _from_integers(array: NDArray[Any], low: int, high: int, step: Fraction) -> NDArray[np.int64]:
    if array.dtype.kind == "u" and array.size and int(array.max()) >= 1 << 63:
        return _one_by_one(array, low, high, step)
    integers = array.astype(np.int64)
    if not integers.size or -(1 << 53) <= int(integers.min()) <= int(integers.max()) <= 1 << 53:
        return _from_floats(integers.astype(np.float64), step)
    if step <= 1:  # what lies strictly inside has room for the shift, the rest is clamped
        factor = int(1 / step)
        least, greatest = -(-low // factor), high // factor
        if least > greatest:
            return np.where(integers < least, low, high)
        inner = np.clip(integers, least, greatest) * (factor if factor < _LARGEST else 0)
        return np.where(integers < least, low, np.where(integers > greatest, high, inner))
    shift = int(step).bit_length() - 1
    if shift > 63:
        return np.zeros_like(integers)  # at most half a step away from 0, ties to even
    quotient = integers >> shift
    rest, half = integers - (quotient << shift), 1 << (shift - 1)
    up = (rest > half) | ((rest == half) & (quotient & 1 == 1))
    return np.asarray(quotient + up, np.int64)


def _one_by_one(array: NDArray[Any], low: int, high: int, step: Fraction) -> NDArray[np.int64]:
    """In exact arithmetic, for what numpy's own cannot hold."""
    rounded = [_rounded(item, low, high, step) for item in array]
    return np.array(rounded, np.int64)


def _rounded(item: Any, low: int, high: int, step: Fraction) -> int:
    if isinstance(item, str | bytes):
        raise _not_numbers()
    if isinstance(item, Decimal):
        item = _tamed(item)
    if isinstance(item, float | np.floating):
        if item != item:  # NaN, in whatever type
            raise _not_a_number()
        if item in (float("inf"), float("-inf")):
            return high if item > 0 else low
    try:
        exact = rational(item)
    except LastbitError:  # its message might tell what the item was
        exact = None
    if exact is None:
        raise _not_numbers()
    return min(max(round(exact / step), low), high)


def _tamed(item: Decimal) -> Fraction | float:
    """A Decimal, exactly; one of absurd size as the infinity or the zero that it comes to."""
    if item.is_nan():  # a signalling one cannot even be compared
        raise _not_a_number()
    if item.is_zero() or item.is_infinite():
        return float(item)
    if item.adjusted() > _FARTHEST:
        return float("inf") if item > 0 else float("-inf")
    return Fraction(item) if item.adjusted() > -_FARTHEST else 0.0


def exact_array(values: object, name: str, *, remedy: str = "pass numbers") -> NDArray[Any]:
    """Numbers in an array that holds each of them exactly: as objects, if nothing else does.

    numpy would make floats of large integers beside floats, and so move them: what is not an array
    yet becomes int64 or float64 only if every number in it is one. No message shows a value.
    """
    if masked(values):
        raise WrongType(name, problem="is masked", remedy="fill or drop what is masked first")
    if hasattr(values, "__array__"):
        try:
            array = np.asarray(values)
        except (TypeError, ValueError):  # its message might tell what the data are
            array = np.array(None)
        if array.dtype.kind in "iuf":
            return array
        values = array.tolist() if array.dtype.kind == "O" and array.ndim else None
    if not isinstance(values, Sequence) or isinstance(values, _BYTES):
        raise WrongType(name, problem="does not hold plain numbers", remedy=remedy)
    return _from_items(list(values), name, remedy)


def masked(values: object) -> bool:
    """Whether an array in it has a mask, which numpy would drop."""
    if not isinstance(values, list | tuple):
        return isinstance(values, np.ma.MaskedArray)
    kinds = set(map(type, values))
    return any(issubclass(kind, list | tuple | np.ma.MaskedArray) for kind in kinds) and any(
        map(masked, values)
    )


def _from_items(items: list[Any], name: str, remedy: str) -> NDArray[Any]:
    kinds = set(map(type, items))
    if any(issubclass(kind, bool | np.bool_ | np.timedelta64) for kind in kinds):
        raise WrongType(name, problem="holds truth values or times", remedy=remedy)
    if any(issubclass(kind, list | tuple | np.ndarray) for kind in kinds):
        try:
            nested = np.array(items, np.object_)
            flat = nested.ravel().tolist()
        except ValueError:
            flat = [items]
        if any(isinstance(item, list | tuple | np.ndarray) for item in flat):
            raise InvalidParameter(name, problem="is ragged", remedy="pass an array of one shape")
        return _from_items(flat, name, remedy).reshape(nested.shape)
    whole = {kind for kind in kinds if issubclass(kind, int | np.integer)}
    if all(issubclass(kind, float) for kind in kinds - whole):
        limit = 1 << (53 if whole < kinds else 63)  # numpy would make floats of large integers
        if all(-limit <= item < limit for item in items if type(item) in whole):
            return np.array(items, np.float64 if whole < kinds else np.int64)
    return np.fromiter(items, np.object_, len(items))


def _not_a_number() -> InvalidParameter:
    return InvalidParameter(
        "data", problem="holds NaN", remedy="replace or drop it, record by record, beforehand"
    )


def _not_numbers() -> WrongType:
    return WrongType("data", problem="does not hold plain numbers", remedy=_REMEDY)
