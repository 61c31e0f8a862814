"""What an auditor looks at in an output: magnitudes, last bits, structure.

Outputs of any kind become rows of floats, and features are functions of a row. An event is a set of
outputs, and its counts are binomial, only if each row and each feature depend on their own output
and on nothing else: not on other outputs of the same call, not on where an object lies in memory.
All of them are exact or elementwise float arithmetic, which gives the same number for the same
output every time. The number of columns is fixed once for a whole audit.
"""

from __future__ import annotations

import hashlib
import math
import numbers
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lastbit.audit.inputs import SeededRandom
from lastbit.errors import InvalidParameter, WrongType

Rows: TypeAlias = NDArray[np.float64]
Column: TypeAlias = NDArray[np.float64]
_NAN, _INFINITE, _HUGE = -(2.0**1000), 2.0**1001, 2.0**1002
_NONE, _ABSENT = -(2.0**999), -(2.0**998)
_MOST_PARTS = 1 << 10
_DEEPEST = 8
MOST_COLUMNS = 32
_WITH_BITS = 2
_MOST_ATOMS = 8
_LOOK = 20_000
_RARE = 0.002
_FEW_VALUES = 512  # a table has each of them: their bits tell nothing more
_TAIL = 2.0 ** -np.arange(5, 12)
_FINE = np.concatenate([_TAIL[::-1], np.arange(1, 16) / 16, 1 - _TAIL])
_COARSE = np.arange(1, 8) / 8
_MOST_CELLS = 4096
_MOST_CODES = 1 << 44
_HALVES = 4
_PROJECTIONS = 2


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
    if array is None:
        outputs = outputs if hasattr(outputs, "__len__") else _listed(outputs)
        count = len(outputs)
    else:
        count = array.shape[0] if array.ndim else -1
    if count != size:
        raise InvalidParameter(
            "mechanism",
            problem="does not give as many outputs as were asked for",
            remedy="return an array whose first axis has the length size",
        )
    if array is not None:  # by columns: features read one after the other
        return _wide(np.asarray(array.reshape(size, -1), dtype=np.float64, order="F"), width)
    parts = [_parts(item) for item in outputs]
    longest = max((len(part) for part in parts), default=1)
    columns = max(1, min(longest, _MOST_PARTS) if width is None else width)
    table = np.empty((size, columns), order="F")
    for row, part in zip(table, parts, strict=True):
        row[:] = _wide(np.array([part], dtype=np.float64), len(row))[0]
    return table


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


def _wide(table: Rows, width: int | None) -> Rows:
    """The table in finite numbers, with `width` columns, each row by itself."""
    if not np.isfinite(table).all():
        table = np.nan_to_num(table, nan=_NAN, posinf=_INFINITE, neginf=-_INFINITE)
    wanted = max(1, table.shape[1]) if width is None else width
    if table.shape[1] < wanted:
        missing = np.full((len(table), wanted - table.shape[1]), _ABSENT, order="F")
        return np.concatenate([table, missing], axis=1)
    if table.shape[1] > wanted:
        rest = [_hash(repr(row)) for row in table[:, wanted - 1 :].tolist()]
        return np.column_stack([table[:, : wanted - 1], np.array(rest)])
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
        return _parts(sorted(item.items(), key=lambda pair: repr(pair[0])), depth)
    if isinstance(item, Set):
        return _parts(sorted(item, key=repr), depth)
    if isinstance(item, numbers.Number) and not np.isscalar(item):
        return [_float(item)]
    # its fields; or how it is written, unless that tells where it lies in memory
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


@dataclass(frozen=True, slots=True)
class Feature:
    """A number made of an output; features of one `group` are about different parts of it.

    A code is not `ordered`: of two of its values neither is more than the other; but where it has
    `blocks`, the values from k blocks to (k + 1) blocks - 1 are, among themselves. `last_place_of`
    names the entry, if this is its last binary place: then "below p" means no multiple of 2**p.
    """

    name: str
    group: str
    of: Callable[[Rows], Column]  # no lambda: a feature is sent from process to process
    ordered: bool = True
    last_place_of: str = ""
    blocks: int = 0


def features(sample: Rows, choices: SeededRandom) -> list[Feature]:
    """The features worth looking at for outputs like these."""
    width = sample.shape[1]
    names = ["the output"] if width == 1 else [f"entry {j}" for j in range(width)]
    found: list[Feature] = []
    for j, name in enumerate(names[:MOST_COLUMNS]):
        found.append(Feature(name, "entries", partial(_entry, j)))
        if j < _WITH_BITS:
            found += _bits(name, j, sample[:, j])
    if width == 1:
        return found
    found.append(Feature("entry 0", "differences", partial(_entry, 0)))
    for j in range(1, min(width, MOST_COLUMNS)):
        label = f"entry {j} minus entry {j - 1}"
        found.append(Feature(label, "differences", partial(_difference, j)))
    found += [Feature(name, "summary", partial(_summary, name)) for name in _SUMMARIES]
    found += _patterns(sample)
    for number in range(min(_PROJECTIONS, 1 << (width - 1))):  # for what no single entry shows
        label = f"the sum of the entries with signs, choice {number}"
        signs = choices.signs(width)
        found.append(Feature(label, "projections", partial(_weighted, weights=signs)))
    return found


# ---------------------------------------------------------------- last bits


def last_place(column: Column) -> Column:
    """The greatest p such that a float is a multiple of 2**p; 2000 for 0.

    >>> last_place(np.array([6.0, 0.75, 1.0, 0.1, 0.0])).tolist()
    [1.0, -2.0, 0.0, -55.0, 2000.0]
    """
    mantissa, exponent = np.frexp(column)
    number = (mantissa * 2.0**53).astype(np.int64)
    place = np.frexp((number & -number).astype(np.float64))[1] - 1 + exponent - 53
    return np.where(column == 0, 2000.0, place.astype(np.float64))


def _bits(name: str, j: int, seen: Column) -> Iterator[Feature]:
    places = last_place(seen)
    nonzero = places[seen != 0]
    if nonzero.size == 0 or np.unique(_thinned(seen)).size <= _FEW_VALUES:
        return
    grid = float(nonzero.min())
    if np.unique(places).size > 1:
        label = f"the last binary place of {name}"
        yield Feature(label, "bits", partial(_last_place, j), last_place_of=name)
    if np.unique(nonzero).size > 8:
        yield Feature(f"the bits that {name} uses", "bits", partial(_length, j))
    for count in (1, 4, 8):
        if np.unique(_thinned(seen)).size > 1 << count and grid > -1000:
            label = f"{name} / 2**{int(grid)} modulo {1 << count}"
            yield Feature(label, "bits", partial(_residue, j, 2.0**grid, 1 << count))


def _entry(j: int, r: Rows) -> Column:
    return r[:, j]


def _last_place(j: int, r: Rows) -> Column:
    return last_place(r[:, j])


def _residue(j: int, unit: float, count: int, r: Rows) -> Column:
    """The last of so many units, all powers of two; what no integer of 64 bits holds has some."""
    with np.errstate(invalid="ignore", over="ignore"):
        units = (r[:, j] / unit).astype(np.int64)
    return (units & (count - 1)).astype(np.float64)


def _length(j: int, r: Rows) -> Column:
    column = r[:, j]
    exponent = np.frexp(column)[1].astype(np.float64)
    return np.where(column == 0, 0.0, exponent - last_place(column))


# ---------------------------------------------------------------- structure of vectors

_SUMMARIES = (
    "the greatest entry",
    "the least entry",
    "the place of the greatest entry",
    "the sum of the entries",
    "how many entries are above 0",
    "how many neighbouring entries are equal",
    "the first place with an entry above 0",
)


def _difference(j: int, r: Rows) -> Column:
    difference: Column = r[:, j] - r[:, j - 1]
    return difference


def _summary(name: str, r: Rows) -> Column:
    """The summary of this name, of `_SUMMARIES`; column by column, as the table lies in memory."""
    columns = [r[:, j] for j in range(r.shape[1])]
    total = np.zeros(len(r))
    match _SUMMARIES.index(name):
        case 0:
            total = r.max(axis=1)
        case 1:
            total = r.min(axis=1)
        case 2:
            greatest = columns[0]
            for j, column in enumerate(columns[1:], 1):
                total[column > greatest] = j
                greatest = np.maximum(greatest, column)
        case 3:
            total = _weighted(r, np.ones(r.shape[1]))
        case 4:
            for column in columns:
                total += column > 0
        case 5:
            for column, before in zip(columns[1:], columns[:-1], strict=True):
                total += column == before
        case _:
            total += r.shape[1]
            for j in range(r.shape[1] - 1, -1, -1):
                total[columns[j] > 0] = j
    return total


def _weighted(r: Rows, weights: Column) -> Column:
    """Column by column, so that a row's sum is rounded the same way in every table."""
    total = np.zeros(len(r))
    for j, weight in enumerate(weights):
        total += weight * r[:, j]
    return total


@dataclass(frozen=True, slots=True)
class _Pattern:
    """Which entries from `start` on have which of the values that come again and again."""

    start: int
    atoms: tuple[tuple[float, ...], ...]

    def number(self, r: Rows) -> Column:
        """A number for each pattern; whole numbers below 2**53, whose sums are exact."""
        code = np.zeros(len(r))
        for weight, kinds in zip(self._weights(), self._kinds(r), strict=True):
            code += kinds * weight
        return code

    def _weights(self) -> list[float]:
        """Places in a number whose digits are the kinds; where that is too long, a hash."""
        digits = [len(values) + 1 for values in self.atoms]
        if math.prod(digits) <= _MOST_CODES:
            return [float(math.prod(digits[:j])) for j in range(len(digits))]
        return [_hash(f"weight {j}") // 2**12 for j in range(len(digits))]

    def _kinds(self, r: Rows) -> Iterator[NDArray[np.uint8]]:
        """For each entry 0, or which of its repeated values it has."""
        for j, values in enumerate(self.atoms, self.start):
            kinds = np.zeros(len(r), dtype=np.uint8)
            for number, value in enumerate(values, 1):
                kinds += (r[:, j] == value).view(np.uint8) * np.uint8(number)
            yield kinds

    def rest(self, r: Rows) -> Column:
        """The sum of the entries with other values."""
        total = np.zeros(len(r))
        for j, kinds in enumerate(self._kinds(r), self.start):
            total += np.where(kinds, 0.0, r[:, j])
        return total

    def least(self, r: Rows) -> Column:
        """The least of the entries with other values; 0 where there is none."""
        lowest = np.full(len(r), np.inf)
        for j, kinds in enumerate(self._kinds(r), self.start):
            np.minimum(lowest, np.where(kinds, np.inf, r[:, j]), out=lowest)
        return np.where(np.isinf(lowest), 0.0, lowest)

    def joined(self, r: Rows, *, edges: Column, least: bool) -> Column:
        """The pattern and the rest, together: a block of codes for each pattern."""
        bins = np.searchsorted(edges, self.least(r) if least else self.rest(r))
        return self.number(r) * (len(edges) + 1) + bins


def _patterns(sample: Rows) -> Iterator[Feature]:
    """Of all entries, and of either half: two mechanisms may be published side by side."""
    width = min(sample.shape[1], 2 * MOST_COLUMNS)
    yield from _pattern_features(sample, 0, width, "pattern", "the pattern of repeated values")
    if width >= _HALVES:
        for start, stop, name in ((0, width // 2, "first"), (width // 2, width, "second")):
            label = f"the pattern of repeated values in the {name} half"
            yield list(_pattern_features(sample, start, stop, "halves", label))[-1]


def _pattern_features(
    sample: Rows, start: int, stop: int, group: str, label: str
) -> Iterator[Feature]:
    """The pattern; the sum of the rest, where there is one; both together, fine in the tails."""
    few = _thinned(sample)
    pattern = _Pattern(start, tuple(_atoms(few[:, j]) for j in range(start, stop)))
    yield Feature(label, group, pattern.number, ordered=False)
    totals = pattern.rest(few)
    if np.unique(totals).size <= len(_COARSE):
        return
    yield Feature("the sum of the values not repeated", group, pattern.rest)
    several = bool(np.any(pattern.least(few) != totals))
    room = _MOST_CELLS // max(1, np.unique(pattern.number(few)).size)
    for least in (False, True)[: 1 + several]:
        others = "the least" if least else "the sum"
        values = pattern.least(few) if least else totals
        levels = _FINE if room > len(_FINE) else _COARSE
        edges = np.unique(np.quantile(values[values != 0], levels))
        joined = partial(pattern.joined, edges=edges, least=least)
        name = f"{label}, with {others} of the others"
        yield Feature(name, group, joined, ordered=False, blocks=len(edges) + 1)


def _atoms(column: Column) -> tuple[float, ...]:
    values, counts = np.unique(column, return_counts=True)
    common = counts >= max(_RARE * len(column), 2)
    order = np.argsort(-counts[common], kind="stable")[:_MOST_ATOMS]
    return tuple(float(value) for value in values[common][order])


def _thinned(sample: NDArray[np.float64]) -> NDArray[np.float64]:
    """Some rows from everywhere: the two inputs' outputs follow one another."""
    return sample[:: max(1, len(sample) // _LOOK)]
