"""Whether two outputs are the same, to the last bit."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Set
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np

from lastbit.errors import WrongType

__all__ = ["key_of", "same"]

_DEEPEST = 100


def same(one: Any, other: Any, *, depth: int = 0) -> bool:
    """Whether two values are equal in type, order and last bit; NaN is the same as NaN.

    An output that cannot be compared is refused: it would hide a difference, or make one up.

    >>> same([1, 2.0], [1, 2.0]), same(1, 1.0), same(0.0, -0.0), same({1: 2, 3: 4}, {3: 4, 1: 2})
    (True, False, False, False)
    """
    if depth > _DEEPEST:
        raise WrongType("output", problem="is nested too deeply", remedy="return something flatter")
    if type(one) is not type(other):
        return False
    if one is other:
        return True

    def inner(a: Any, b: Any) -> bool:
        return same(a, b, depth=depth + 1)

    match one:
        case float():
            return (math.isnan(one) and math.isnan(other)) or (
                one == other and math.copysign(1, one) == math.copysign(1, other)
            )
        case complex():
            return inner(one.real, other.real) and inner(one.imag, other.imag)
        case None | bool() | int() | str() | bytes() | Enum():
            return bool(one == other)
        case np.ndarray():
            return _same_arrays(one, other, inner)
        case np.generic():
            return inner(np.asarray(one), np.asarray(other))
        case Mapping():  # the order of keys can tell who came first
            return inner(list(one.items()), list(other.items()))
        case list() | tuple():
            return len(one) == len(other) and all(map(inner, one, other))
        case Set():
            return bool(one == other)
        case BaseException():
            return inner(one.args, other.args) is True and inner(vars(one), vars(other)) is True
    return _same_objects(one, other, inner)


def _same_arrays(one: Any, other: Any, inner: Any) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if one.dtype.kind == "O":
        return inner(one.tolist(), other.tolist()) is True
    if one.tobytes() == other.tobytes():
        return True
    if one.dtype.kind in "fc":
        return all(map(inner, one.ravel().tolist(), other.ravel().tolist()))
    return False


def _same_objects(one: Any, other: Any, inner: Any) -> bool:
    if is_dataclass(one) and not isinstance(one, type):
        names = [f.name for f in fields(one) if f.name != "_sampler"]  # tables, built when needed
        return all(inner(getattr(one, name), getattr(other, name)) for name in names)
    equals = getattr(one, "equals", None)  # frames of pandas and polars
    if callable(equals):
        return bool(equals(other)) and list(_columns(one)) == list(_columns(other))
    if type(one).__eq__ is not object.__eq__:  # type: ignore[comparison-overlap]
        answer = one == other
        if isinstance(answer, bool | np.bool_):
            return bool(answer)
    elif getattr(one, "__dict__", None):
        return inner(vars(one), vars(other)) is True
    raise WrongType(
        "output",
        problem=f"of type {type(one).__name__} cannot be compared",
        remedy="return numbers, text, lists, dictionaries, arrays, dataclasses or frames",
    )


def _columns(frame: Any) -> Any:
    return getattr(frame, "columns", ())


def key_of(record: Any) -> Hashable:
    """A record as something to count by; records that are the same have the same key."""
    match record:
        case list() | tuple():
            return (type(record).__name__, *map(key_of, record))
        case Mapping():
            return ("mapping", *((key_of(k), key_of(v)) for k, v in record.items()))
        case np.ndarray():
            return ("array", key_of(record.tolist()))
        case float():
            return ("float", record.hex())
        case int() | np.integer():
            return int(record)
        case Hashable():
            return record
    raise WrongType(
        "dataset",
        problem=f"holds a record of type {type(record).__name__}",
        remedy="use numbers, text, tuples, lists or dictionaries as records",
    )
