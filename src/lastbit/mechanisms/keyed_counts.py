"""Counts by key, as people pass them: checked, in one spelling, in an order that tells nothing."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact.rational import whole

__all__ = [
    "count_of",
    "counts_of",
    "labels_of",
    "mapping_of",
    "narrowed",
    "numbers_of",
    "order_of",
    "plain",
    "shallow",
]

_PLAIN = (str, bytes, int, date, NoneType)
_DEEPEST = 32


def mapping_of(counts: Mapping[Any, int]) -> Mapping[Any, int]:
    """The counts, if they are given by key."""
    if not isinstance(counts, Mapping):
        raise WrongType("counts", problem="is no mapping", remedy="pass {key: count}")
    return counts


def count_of(value: object) -> int:
    """One count: a whole number from 0 up."""
    if type(value) is int and value >= 0:
        return value
    _refuse_masked("counts", value)
    if isinstance(value, np.timedelta64):  # numpy takes it for an integer
        raise WrongType("counts", problem="is a time span", remedy="pass whole numbers")
    return whole(value, "counts")


def counts_of(counts: Any) -> NDArray[Any]:
    """A list of counts as a vector."""
    _refuse_masked("counts", counts)
    if not isinstance(counts, list | tuple | np.ndarray) or getattr(counts, "ndim", 1) != 1:
        raise WrongType("counts", problem="is no list of counts", remedy="pass whole numbers")
    if not isinstance(counts, np.ndarray) or counts.dtype.kind not in "iu":
        return numbers_of([count_of(count) for count in counts])
    if counts.size and counts.min() < 0:
        raise InvalidParameter("counts", problem="is below 0", remedy="pass counts from 0 up")
    return np.asarray(counts)


def numbers_of(values: list[int]) -> NDArray[Any]:
    """Whole numbers as a vector: int64, or Python integers where one does not fit."""
    try:
        return np.array(values, np.int64)
    except OverflowError:
        return np.array(values, np.object_)


def labels_of(keys: Any) -> NDArray[Any]:
    """A list of keys as a vector, each in its one spelling."""
    _refuse_masked("keys", keys)
    if not isinstance(keys, list | tuple | np.ndarray) or getattr(keys, "ndim", 1) != 1:
        raise WrongType("keys", problem="is no list of keys", remedy="pass, say, a list of text")
    if isinstance(keys, np.ndarray) and keys.dtype.kind in "iuUS":
        return np.asarray(keys)
    return np.fromiter((plain(key) for key in keys), np.object_, len(keys))


def plain(key: Any) -> Any:
    """The one way in which a key is written, whoever wrote it."""
    if type(key) in _PLAIN:
        return key
    if type(key) is tuple:
        if not shallow(key):
            problem = f"holds a tuple in which more than {_DEEPEST} others are nested"
            raise WrongType("keys", problem=problem, remedy="turn the keys into text first")
        return tuple(map(plain, key))
    if isinstance(key, np.str_ | np.bytes_ | np.integer) and not isinstance(key, np.timedelta64):
        return key.item()
    problem = "holds one that is not text, bytes, a whole number, a date, None or a tuple"
    raise WrongType("keys", problem=problem, remedy="turn the keys into text first")


def shallow(key: object) -> bool:
    """Whether a key can be hashed and compared without exhausting the stack."""
    level = [key]
    for _ in range(_DEEPEST + 1):
        level = [part for parts in level if isinstance(parts, tuple) for part in parts]
        if not level:
            return True
    return False


def _refuse_masked(name: str, value: object) -> None:
    if isinstance(value, np.ma.MaskedArray):
        raise WrongType(name, problem="is masked", remedy="pass what is not masked")


def order_of(labels: NDArray[Any]) -> NDArray[np.intp]:
    """Where the keys stand when sorted; two equal keys are refused, as each would be noised."""
    if labels.dtype.kind == "O":
        keys = labels.tolist()
        order = np.array(sorted(range(len(keys)), key=lambda i: _place(keys[i])), np.intp)
    else:
        order = np.argsort(labels, kind="stable")
    ordered = labels[order]
    if (ordered[1:] == ordered[:-1]).any():
        remedy = "add up the counts of each key first"
        raise InvalidParameter("keys", problem="holds a key twice", remedy=remedy)
    return order


def _place(key: Any) -> tuple[str, Any]:
    """A total order of the plain keys that depends on nothing but the keys."""
    if type(key) is tuple:
        return "tuple", tuple(_place(part) for part in key)
    return type(key).__name__, key


def narrowed(array: NDArray[Any]) -> NDArray[Any]:
    """Without what the width of its cells would tell about keys that are not in it."""
    if array.dtype.kind in "US":
        return np.array(array.tolist(), array.dtype.kind)
    if array.dtype.kind in "iu":
        wide = array.size and int(array.max()) >= 1 << 63
        return array.astype(np.uint64 if wide else np.int64)
    if array.dtype.kind == "O" and all(type(item) is int for item in array):
        return numbers_of(array.tolist())
    return array
