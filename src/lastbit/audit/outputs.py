"""Outputs of any kind as numbers: what a mechanism returned, as rows of floats.

An event is a set of outputs, and its counts are binomial, only if a row depends on its own output
and on nothing else: not on the other outputs of the same call, not on where an object lies in
memory. The number of columns is fixed once for a whole audit.
"""

from __future__ import annotations

import hashlib
import numbers
from collections.abc import Mapping, Set
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lastbit.errors import InvalidParameter, WrongType

__all__ = ["Rows", "rows"]

Rows: TypeAlias = NDArray[np.float64]
_NAN, _INFINITE, _NONE, _ABSENT, _HUGE = (
    -(2.0**1000),
    2.0**1001,
    -(2.0**999),
    -(2.0**998),
    2.0**1002,
)
_MOST_PARTS = 1 << 10
_DEEPEST = 8


def rows(outputs: Any, size: int, width: int | None = None) -> Rows:
    """Outputs as a table of floats, one row an output; of `width` columns, if that is given.

    Truth values and integers become floats; NaN, infinities, None and what no float can hold become
    finite numbers far out; a word is a hash and its length, a complex number its two parts. Lists,
    tuples, mappings and objects are written out, part after part. A row that is too short is filled
    up, one that is too long ends with a hash of the rest.

    >>> rows([True, False], 2).tolist(), rows(["a", "bc"], 2)[:, 1].tolist()
    ([[1.0], [0.0]], [1.0, 2.0])
    >>> rows([(1, 2), (3,)], 2, 2)[:, 0].tolist()
    [1.0, 3.0]
    """
    array = _numeric(outputs)
    count = len(outputs) if array is None and hasattr(outputs, "__len__") else None
    if array is None and count is None:
        outputs = _listed(outputs)
        count = len(outputs)
    if (array.shape[0] if array is not None and array.ndim else count) != size:
        raise InvalidParameter(
            "mechanism",
            problem="does not give as many outputs as were asked for",
            remedy="return an array whose first axis has the length size",
        )
    if array is None:
        return _written_out(outputs, size, width)
    return _wide(_finite(array.reshape(size, -1).astype(np.float64)), width)


def _numeric(outputs: Any) -> NDArray[Any] | None:
    """The outputs as an array of numbers; None if they have to be read one by one."""
    if isinstance(outputs, str | bytes | Mapping | Set):
        raise _unreadable(type(outputs).__name__)
    array = outputs
    if not isinstance(outputs, np.ndarray):
        try:
            array = np.array(outputs if isinstance(outputs, list | tuple) else _listed(outputs))
        except (ValueError, OverflowError):  # of different lengths, or too large
            return None
    if array.dtype.kind == "c":
        if array is not outputs:  # a list, in which some may be real
            return None
        array = np.stack([array.real, array.imag], axis=-1)
    return array if array.dtype.kind in "biuf" else None


def _listed(outputs: Any) -> list[Any]:
    try:
        return list(outputs)
    except TypeError:
        raise _unreadable(type(outputs).__name__) from None


def _unreadable(kind: str) -> WrongType:
    problem = f"gives a {kind} for several outputs"
    return WrongType("mechanism", problem=problem, remedy="return an array or a list")


def _finite(table: Rows) -> Rows:
    if not np.isfinite(table).all():
        table = np.nan_to_num(table, nan=_NAN, posinf=_INFINITE, neginf=-_INFINITE)
    return table


def _wide(table: Rows, width: int | None) -> Rows:
    """The table with so many columns, each row by itself."""
    wanted = max(1, table.shape[1]) if width is None else width
    if table.shape[1] < wanted:
        missing = np.full((len(table), wanted - table.shape[1]), _ABSENT)
        return np.concatenate([table, missing], axis=1)
    if table.shape[1] > wanted:
        rest = [_hash(repr(row)) for row in table[:, wanted - 1 :].tolist()]
        return np.column_stack([table[:, : wanted - 1], np.array(rest)])
    return table


def _written_out(outputs: Any, size: int, width: int | None) -> Rows:
    parts = [_parts(item) for item in outputs]
    longest = max((len(part) for part in parts), default=1)
    wanted = min(longest, _MOST_PARTS) if width is None else width
    table = np.empty((size, max(1, wanted)))
    for row, part in zip(table, parts, strict=True):
        row[:] = _wide(_finite(np.array([part], dtype=np.float64)), len(row))[0]
    return table


def _parts(item: Any, depth: int = 0) -> list[float]:
    """The numbers that one output is made of."""
    if depth > _DEEPEST:
        raise WrongType(
            "mechanism", problem="gives outputs nested too deeply", remedy="return flat ones"
        )
    if item is None:
        return [_NONE]
    if isinstance(item, str | bytes):
        return [_hash(repr(item)), float(len(item))]
    if isinstance(item, numbers.Real | Decimal | np.bool_):
        return [_float(item)]
    if isinstance(item, numbers.Complex):
        return [_float(item.real), _float(item.imag)]
    if isinstance(item, np.ndarray):
        item = item.tolist()  # of no axes: a single thing
    if isinstance(item, list | tuple):
        return [number for part in item for number in _parts(part, depth + 1)]
    if isinstance(item, Mapping):
        item = sorted(item.items(), key=lambda pair: repr(pair[0]))
        return _parts(item, depth)
    if isinstance(item, Set):
        return _parts(sorted(item, key=repr), depth)
    if np.isscalar(item) or not isinstance(item, numbers.Number | list | tuple | str):
        return _of_object(item, depth)
    return [_float(item)]


def _of_object(item: Any, depth: int) -> list[float]:
    """Its fields; or how it is written, unless that tells where it lies in memory."""
    fields = getattr(item, "__dict__", None)
    if isinstance(fields, dict) and fields:
        return [_hash(type(item).__name__), *_parts(fields, depth + 1)]
    text = repr(item)
    if " at 0x" in text:
        raise WrongType(
            "mechanism",
            problem=f"gives outputs of type {type(item).__name__}, which cannot be read",
            remedy="return numbers, truth values, words or lists of them",
        )
    return [_hash(text), 1.0]


def _float(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:  # no float is so large
        return (_HUGE + _hash(repr(number)) * 2.0**949) * (1.0 if number > 0 else -1.0)


def _hash(text: str) -> float:
    return float(int.from_bytes(hashlib.blake2b(text.encode(), digest_size=6).digest(), "big"))
