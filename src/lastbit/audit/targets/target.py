"""What is attacked: any callable, with the promise it makes.

`Target` wraps a mechanism that takes one of two neighbouring inputs, `SumTarget` a private sum of a
whole data set. Both carry the claim that an attack tries to refute.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import Number, lower, nonnegative, positive, probability, rational, whole

Bounds: TypeAlias = tuple[Any, Any]
Release: TypeAlias = Callable[[Any, int], Any]
ReleaseOfSums: TypeAlias = Callable[[NDArray[Any], Bounds, int], Any]
MOST_SAMPLES = 1 << 32


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class Target:
    """A mechanism under test and its promise for two inputs.

    `release(value, size)` gives `size` independent releases of one value, as numbers; a callable
    that takes the value alone is called `size` times. The promise: for the two `values` its
    outputs are (claimed, delta)-indistinguishable. `values` are 0 and the sensitivity (rounded down
    to a float) unless given; numbers further apart than the sensitivity are refused, since nothing
    was claimed of them.

    `answers` are the two answers without noise (the values themselves, if those are numbers),
    `scale` is the number that the noise was multiplied by, `step` the grid of outputs,
    `significand_bits` those of the floats that the noise is added in, 24 for float32: white-box
    knowledge that some attacks need and others do without.

    >>> coin = Target(name="no noise", release=lambda value, size: [value] * size, claimed=1)
    >>> coin.draw(0, 3).tolist(), coin.values, coin.claimed
    ([0.0, 0.0, 0.0], (0.0, 1.0), Fraction(1, 1))
    """

    name: str
    release: Release
    claimed: Fraction
    sensitivity: Fraction
    delta: Fraction
    values: tuple[Any, Any]
    answers: tuple[float, float] | None
    scale: float | None
    step: Fraction | None
    significand_bits: int

    def __init__(
        self,
        *,
        name: str,
        release: Callable[..., Any],
        claimed: Number,
        sensitivity: Number = 1,
        delta: Number = 0,
        values: tuple[Any, Any] | None = None,
        answers: tuple[float, float] | None = None,
        scale: float | None = None,
        step: Number | None = None,
        significand_bits: int = 53,
    ) -> None:
        distance = positive(sensitivity, "sensitivity")
        pair = (0.0, lower(distance)) if values is None else tuple(values)
        if len(pair) != 2:
            raise InvalidParameter("values", problem="are not two", remedy="pass two neighbours")
        numbers = _numbers(pair)
        if numbers is not None and abs(numbers[0] - numbers[1]) > distance:
            raise InvalidParameter(
                "values",
                problem="are further apart than the sensitivity",
                remedy="pass two inputs that the claim is about",
            )
        _keep(
            self,
            name=name,
            release=as_release(release),
            claimed=claimed,
            delta=delta,
            sensitivity=distance,
            values=pair,
            answers=_floats(pair if answers is None else answers),
            scale=None if scale is None else _scale(scale),
            step=None if step is None else positive(step, "step"),
            significand_bits=whole(significand_bits, "significand_bits", least=1),
        )

    def draw(self, world: int, size: int) -> NDArray[np.float64]:
        return checked(self.release(self.values[world], size), size)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class SumTarget:
    """A private sum under test: `release(data, bounds, size)` gives `size` sums of the data.

    The promise: epsilon = `claimed` (and delta) for data sets of the same known size that differ in
    one record, whatever the records and the public bounds are. A float target is handed float64
    arrays, an integer target arrays of its `dtype`.

    >>> plain = SumTarget(
    ...     name="no noise", release=lambda data, bounds, size: [data.sum()] * size, claimed=1)
    >>> plain.draw(np.array([1.0, 2.0]), (0, 2), 2).tolist()
    [3.0, 3.0]
    """

    name: str
    release: ReleaseOfSums
    claimed: Fraction
    delta: Fraction
    dtype: np.dtype[Any]

    def __init__(
        self,
        *,
        name: str,
        release: ReleaseOfSums,
        claimed: Number,
        delta: Number = 0,
        dtype: str = "float64",
    ) -> None:
        if dtype not in ("float64", "int32", "int64"):
            raise InvalidParameter(
                "dtype", problem="is not supported", remedy='pass "float64", "int32" or "int64"'
            )
        if not callable(release):
            raise WrongType("release", problem="cannot be called", remedy="pass a function")
        kind = np.dtype(dtype)
        _keep(self, name=name, release=release, claimed=claimed, delta=delta, dtype=kind)

    def draw(self, data: NDArray[Any], bounds: Bounds, size: int) -> NDArray[np.float64]:
        return checked(self.release(own_copy(data), bounds, size), size)


def _keep(target: object, *, name: str, claimed: Number, delta: Number, **fields: Any) -> None:
    """The fields of a frozen target; those of its claim are checked here."""
    if not isinstance(name, str) or not name:
        raise WrongType("name", problem="is not text", remedy="pass a short name")
    fields |= {
        "name": name,
        "claimed": nonnegative(claimed, "claimed"),
        "delta": probability(delta, "delta", one=False, remedy="pass 0 if there is none"),
    }
    for field, value in fields.items():
        object.__setattr__(target, field, value)


def _numbers(pair: tuple[Any, ...]) -> tuple[Fraction, Fraction] | None:
    """Two numbers; None for other inputs."""
    if any(isinstance(value, str) for value in pair):
        return None
    try:
        return rational(pair[0]), rational(pair[1])
    except WrongType:
        return None


def _floats(pair: tuple[Any, ...]) -> tuple[float, float] | None:
    numbers = _numbers(pair)
    try:
        return None if numbers is None else (float(numbers[0]), float(numbers[1]))
    except OverflowError:
        return None


def _scale(scale: Number) -> float:
    try:
        return float(positive(scale, "scale"))
    except OverflowError:
        raise InvalidParameter(
            "scale", problem="is above every float", remedy="pass a smaller one"
        ) from None


def as_release(mechanism: Callable[..., Any]) -> Release:
    """`mechanism(value, size)` as it is; `mechanism(value)` called again and again.

    The second argument is the size if it is called so or has no default: `k=3` or `scale=1.0` means
    something else, and a mechanism that got the size for it would be another mechanism. Every call
    gets a copy of a list or an array of its own: code that changes its input would otherwise not
    be run on the same input again, and its outputs would not be independent.

    >>> as_release(lambda value: value + 1)(2, 3)
    [3, 3, 3]
    >>> as_release(lambda value, step=1: value + step)(2, 3)
    [3, 3, 3]
    """
    if not callable(mechanism):
        raise WrongType("release", problem="cannot be called", remedy="pass a function")
    if _takes_size(mechanism):
        return lambda value, size: mechanism(own_copy(value), size)
    return lambda value, size: [own_copy(mechanism(own_copy(value))) for _ in range(size)]


def _takes_size(mechanism: Callable[..., Any]) -> bool:
    try:
        signature = inspect.signature(mechanism)
    except ValueError:  # a builtin without a signature
        return True
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    places = [p for p in signature.parameters.values() if p.kind in kinds]
    second = places[1] if len(places) > 1 else None
    return second is not None and (
        second.name == "size" or second.default is inspect.Parameter.empty
    )


def own_copy(value: Any) -> Any:
    """A copy of what can be changed in place: arrays, lists, sets and mappings, and what they hold.

    Other objects are passed on as they are.

    >>> given = [1, [2]]
    >>> own_copy(given) == given, own_copy(given)[1] is given[1]
    (True, False)
    """
    if isinstance(value, np.ndarray):
        return value.copy()
    return deepcopy(value) if isinstance(value, list | dict | set | bytearray | tuple) else value


def checked(outputs: Any, size: int) -> NDArray[np.float64]:
    """Outputs as floats, refused unless they are `size` numbers."""
    try:
        array = np.asarray(outputs)
        if array.dtype.kind not in "biufO":
            raise TypeError
        numbers = np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise WrongType(
            "release",
            problem="returned something that is not an array of numbers",
            remedy="return one number for each release",
        ) from None
    if numbers.shape != (size,):
        raise InvalidParameter(
            "release",
            problem=f"returned an array of shape {numbers.shape} where {size} were asked for",
            remedy="return a flat array, one number for each release",
        )
    return numbers


def sample_size(samples: object, *, least: int) -> int:
    """How many samples an attack may take in all."""
    count = whole(samples, "samples", least=least)
    if count > MOST_SAMPLES:
        raise InvalidParameter(
            "samples", problem=f"is above {MOST_SAMPLES}", remedy="pass fewer; 10,000 often do"
        )
    return count
