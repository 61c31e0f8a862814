"""How far apart two inputs are, exactly, and what that costs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import numpy as np

from lastbit.audit.sameness import key_of, same
from lastbit.errors import LastbitError
from lastbit.exact.rational import rational
from lastbit.privacy.guarantees import Guarantee, Loss, PureDP
from lastbit.privacy.neighbours import AS_DECLARED

__all__ = [
    "Declared",
    "Move",
    "Norm",
    "differences",
    "distance",
    "entries_changed",
    "no_more_than",
    "people",
    "priced",
    "records_apart",
    "root_above",
    "shifts",
]

Norm: TypeAlias = Literal["L1", "L2", "Linf", "entries", "records"]
NORMS = ("L1", "L2", "Linf", "entries", "records")
_FINE = 1 << 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """What one primitive saw move between two neighbours.

    `beyond` says that its declaration does not allow that; `costs` is None where nobody knows what
    it costs. `declared` is a second price for the same, where the mechanism promises one.
    """

    distance: Loss
    beyond: bool = False
    costs: tuple[Guarantee, ...] | None = ()
    declared: tuple[Guarantee, ...] | None = None
    why: str = "its input moves further than the declared sensitivity"


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """The rule of a primitive that declares a norm, a sensitivity and a guarantee.

    Theorem  inputs k sensitivities apart in a norm are the ends of a chain of k steps, so a release
             costs what k of the declared guarantees cost a group; nothing if nothing moved
    """

    norm: Norm
    sensitivity: Fraction
    guarantee: Guarantee

    def moved(self, here: Any, there: Any) -> Move:
        far = distance(here, there, self.norm)
        beyond = not no_more_than(here, there, self.norm, self.sensitivity)
        if far == 0:
            return Move(distance=far)
        if far == math.inf:
            return Move(distance=far, beyond=beyond, costs=(PureDP(math.inf),))
        steps = math.ceil(far / Fraction(self.sensitivity)) if beyond else 1
        cost = self.guarantee if steps == 1 else self.guarantee.group(steps)
        return Move(distance=far, beyond=beyond, costs=priced(cost))


def priced(*costs: Guarantee) -> tuple[Guarantee, ...]:
    """Costs at observed distances: said of these two datasets, whatever relation was declared."""
    return tuple(replace(cost, neighbours=AS_DECLARED) for cost in costs)


def distance(here: Any, there: Any, norm: Norm) -> Loss:
    """The distance of two inputs, exact but for L2, which is rounded up; infinity for two shapes.

    >>> distance([0, 1], [1, 3], "L1"), distance({"a": 1}, {"b": 2}, "Linf")
    (Fraction(3, 1), Fraction(2, 1))
    >>> distance([3, 0], [0, 4], "L2"), distance([1], [1, 2], "L1")
    (Fraction(5, 1), inf)
    """
    if norm == "records":
        return Fraction(records_apart(here, there))
    if norm == "entries":
        return entries_changed(here, there)
    apart = differences(here, there)
    if apart is None:
        return math.inf
    if norm == "L1":
        return sum(apart, Fraction(0))
    if norm == "Linf":
        return max(apart, default=Fraction(0))
    return root_above(sum((d * d for d in apart), Fraction(0)))


def no_more_than(here: Any, there: Any, norm: Norm, limit: Fraction) -> bool:
    """Whether the distance is at most the limit; for L2 the squares are compared, exactly.

    >>> no_more_than([1, 1], [0, 0], "L2", Fraction(1414213563, 10**9))
    True
    """
    if norm != "L2":
        return distance(here, there, norm) <= limit
    apart = differences(here, there)
    return apart is not None and sum((d * d for d in apart), Fraction(0)) <= limit * limit


def root_above(square: Fraction) -> Fraction:
    """The square root, rounded up to about 64 bits; exact for squares of rationals."""
    above, below = math.isqrt(square.numerator), math.isqrt(square.denominator)
    if above * above == square.numerator and below * below == square.denominator:
        return Fraction(above, below)
    # sqrt(p/q) = sqrt(pq)/q
    scaled = square.numerator * square.denominator * _FINE * _FINE
    return Fraction(math.isqrt(scaled) + 1, _FINE * square.denominator)


def differences(here: Any, there: Any) -> list[Fraction] | None:
    """The absolute differences that are not 0, or None where no finite number tells them apart.

    Mappings are compared key by key, a key that is missing counts 0; lists and arrays of different
    shapes, NaN and infinities are infinitely far from everything but themselves.
    """
    if isinstance(here, Mapping) and isinstance(there, Mapping):
        keys = {**here, **there}
        pairs = [(here.get(key, 0), there.get(key, 0)) for key in keys]
        return _apart(pairs)
    if isinstance(here, Mapping) or isinstance(there, Mapping):
        return None
    one, other = _array(here), _array(there)
    if one is None or other is None or one.shape != other.shape:
        return [] if same(here, there) else None
    if one.dtype.kind != "O" and one.dtype == other.dtype:
        moved = one != other
        one, other = one[moved], other[moved]
    return _apart(zip(one.ravel().tolist(), other.ravel().tolist(), strict=True))


def _array(value: Any) -> Any:
    """Numbers in an array that moves none of them: integers beside floats stay what they are."""
    if isinstance(value, np.ndarray):
        return np.asarray(value)
    try:
        if isinstance(value, list | tuple) or hasattr(value, "__array__"):
            kinds = {type(item) for item in value} if isinstance(value, list | tuple) else set()
            return np.array(value, np.object_ if len(kinds) > 1 else None)
        return np.array(value, np.object_)
    except (ValueError, TypeError):  # ragged
        return None


def shifts(here: Any, there: Any, shape: tuple[int, ...]) -> dict[int, Fraction] | None:
    """By how much which entries moved, both values spread over a shape; None if not by a number.

    >>> shifts(3, 5, (2,)), shifts([True, False], [True, True], (2,))
    ({0: Fraction(2, 1), 1: Fraction(2, 1)}, {1: Fraction(1, 1)})
    """
    try:
        pair = [np.broadcast_to(np.asarray(value), shape).ravel() for value in (here, there)]
    except ValueError:
        return None
    one, other = pair
    plain = one.dtype == other.dtype and one.dtype.kind in "biuf"
    places = np.flatnonzero(one != other) if plain else np.arange(one.size)
    found = {}
    for place, a, b in zip(
        places.tolist(), one[places].tolist(), other[places].tolist(), strict=True
    ):
        try:
            gap = Fraction(0) if same(a, b) else _number(b) - _number(a)
        except LastbitError:
            return None
        if gap:
            found[place] = gap
    return found


def _apart(pairs: Iterable[tuple[Any, Any]]) -> list[Fraction] | None:
    found = []
    for one, other in pairs:
        if same(one, other):
            continue
        try:
            gap = abs(_number(one) - _number(other))
        except (LastbitError, TypeError, ValueError):
            return None
        if gap:
            found.append(gap)
    return found


def _number(value: Any) -> Fraction:
    if isinstance(value, bool | np.bool_):
        return Fraction(int(value))
    return rational(value)


def entries_changed(here: Any, there: Any) -> Loss:
    """In how many places two lists, arrays or mappings differ; infinity for two lengths."""
    if isinstance(here, np.ndarray) or isinstance(there, np.ndarray):
        one, other = np.asarray(here), np.asarray(there)
        if one.shape != other.shape:
            return math.inf
        here, there = one.ravel().tolist(), other.ravel().tolist()
    if isinstance(here, Mapping) and isinstance(there, Mapping):
        if list(here) != list(there):
            return math.inf
        here, there = list(here.values()), list(there.values())
    if not isinstance(here, list | tuple) or not isinstance(there, list | tuple):
        return Fraction(int(not same(here, there)))
    if len(here) != len(there):
        return math.inf
    return Fraction(sum(not same(one, other) for one, other in zip(here, there, strict=True)))


def _records(data: Any) -> Counter[Any]:
    rows = data.tolist() if hasattr(data, "tolist") else list(data)
    return Counter(key_of(row) for row in rows)


def _moved_records(here: Any, there: Any) -> tuple[int, int]:
    one, other = _records(here), _records(there)
    return (one - other).total(), (other - one).total()


def records_apart(here: Any, there: Any) -> int:
    """How many records are to be removed or added, the order aside."""
    return sum(_moved_records(here, there))


def people(here: Any, there: Any, relation: str) -> Loss:
    """How many steps of a relation lead from one collection of records to the other."""
    gone, come = _moved_records(here, there)
    if relation == "add-remove":
        return Fraction(gone + come)
    return Fraction(gone) if gone == come else math.inf
