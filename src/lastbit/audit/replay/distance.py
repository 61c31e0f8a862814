"""How far apart two inputs or outputs are, exactly; and what that costs at each mechanism.

`distance` measures inputs in the norm that a mechanism's theorem uses, `bit_identical` compares
outputs to the last bit, and `MechanismRule` knows which distance each of our mechanisms allows.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Set
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import numpy as np

from lastbit.errors import LastbitError, WrongType
from lastbit.exact import Real, rational, refine, root_above
from lastbit.mechanisms import (
    AboveThreshold,
    ByRate,
    ExponentialQuantile,
    Gaussian,
    Histogram,
    Laplace,
    PlanarLaplace,
    PolarLaplace,
    ProposeTestRelease,
    RandomizedResponse,
    ReportNoisyMax,
    RoundedLaplace,
    SmoothNoise,
    SmoothStatistic,
    Snapping,
    StableValue,
    ThresholdedHistogram,
)
from lastbit.privacy import AS_DECLARED, Guarantee, Loss, PureDP

Norm: TypeAlias = Literal["L1", "L2", "Linf", "entries", "records"]
NORMS = ("L1", "L2", "Linf", "entries", "records")


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """How far the input of one primitive moved between two neighbours, and what that costs.

    `beyond` says that its declaration does not allow that; `costs` is None where they are not
    known. `declared` is a second price for the same, where the mechanism promises one.
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

    def observed(self, here: Any, there: Any) -> Observed:
        far = distance(here, there, self.norm)
        beyond = not no_more_than(here, there, self.norm, self.sensitivity)
        if far == 0:
            return Observed(distance=far)
        if far == math.inf:
            return Observed(distance=far, beyond=beyond, costs=(PureDP(math.inf),))
        steps = math.ceil(far / Fraction(self.sensitivity)) if beyond else 1
        cost = self.guarantee if steps == 1 else self.guarantee.group(steps)
        return Observed(distance=far, beyond=beyond, costs=priced(cost))


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
        return [] if bit_identical(here, there) else None
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
            gap = Fraction(0) if bit_identical(a, b) else _number(b) - _number(a)
        except LastbitError:
            return None
        if gap:
            found[place] = gap
    return found


def _apart(pairs: Iterable[tuple[Any, Any]]) -> list[Fraction] | None:
    found = []
    for one, other in pairs:
        if bit_identical(one, other):
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
        return Fraction(int(not bit_identical(here, there)))
    if len(here) != len(there):
        return math.inf
    return Fraction(
        sum(not bit_identical(one, other) for one, other in zip(here, there, strict=True))
    )


def _records(data: Any) -> Counter[Any]:
    rows = data.tolist() if hasattr(data, "tolist") else list(data)
    return Counter(key_of(row) for row in rows)


def _moved_records(here: Any, there: Any) -> tuple[int, int]:
    one, other = _records(here), _records(there)
    return (one - other).total(), (other - one).total()


def records_apart(here: Any, there: Any) -> int:
    """How many records are to be removed or added, the order aside."""
    return sum(_moved_records(here, there))


def record_distance(here: Any, there: Any, relation: str) -> Loss:
    """How many steps of a relation lead from one collection of records to the other."""
    gone, come = _moved_records(here, there)
    if relation == "add-remove":
        return Fraction(gone + come)
    return Fraction(gone) if gone == come else math.inf


_OURS = "lastbit.mechanisms."
_NOWHERE = Observed(distance=Fraction(0))
_APART = "its input moves as no neighbours can, by what the mechanism was told"


@dataclass(frozen=True, slots=True)
class MechanismRule:
    """One of our mechanisms, and how many releases were asked for at once."""

    mechanism: Any
    releases: int = 1

    def observed(self, here: Any, there: Any) -> Observed:
        """The distance as the mechanism's theorem measures it, and its cost.

        The theorem is that of our own class: what a subclass says of its guarantee, its sensitivity
        or its distance is not proved, so the price of its releases is not known.
        """
        if not type(self.mechanism).__module__.startswith(_OURS):
            return Observed(distance=math.inf, costs=None)
        match self.mechanism:
            case Laplace() | RoundedLaplace():
                return _by_norm(self.mechanism, here, there, "L1")
            case Gaussian():
                return _by_norm(self.mechanism, here, there, "L2")
            case Histogram():
                return _by_norm(self.mechanism, here, there, "L1")
            case ByRate() | ReportNoisyMax() | AboveThreshold():
                return _together(self.mechanism, here, there, self.releases)
            case ThresholdedHistogram():
                return _keys(self.mechanism, here, there)
            case RandomizedResponse():
                changed = entries_changed(here, there)
                return _counted(self.mechanism, changed)
            case SmoothStatistic():
                relation = self.mechanism.noise.neighbours.relation
                return _counted(self.mechanism, record_distance(here, there, relation))
            case ExponentialQuantile():
                relation = self.mechanism.neighbours.relation
                return _counted(self.mechanism, record_distance(here, there, relation))
            case Snapping():
                return _each_number(self.mechanism, here, there)
            case PlanarLaplace() | PolarLaplace():
                return _each_point(self.mechanism, here, there)
            case SmoothNoise() | ProposeTestRelease() | StableValue():
                return _facts(self.mechanism, here, there)
        return Observed(distance=math.inf, costs=None)  # a mechanism that is not known here yet


def _cost(mechanism: Any, far: Fraction | float) -> tuple[Guarantee, ...]:
    if far == math.inf:
        return (PureDP(math.inf),)
    return priced(mechanism.guarantee_at(far))


def _by_norm(mechanism: Any, here: Any, there: Any, norm: Norm) -> Observed:
    far = distance(here, there, norm)
    if far == 0:
        return _NOWHERE
    beyond = not no_more_than(here, there, norm, Fraction(mechanism.sensitivity))
    at = far if beyond else min(far, Fraction(mechanism.sensitivity))  # L2 was rounded up
    declared = None if beyond else priced(mechanism.guarantee)
    return Observed(distance=far, beyond=beyond, costs=_cost(mechanism, at), declared=declared)


def _together(mechanism: Any, here: Any, there: Any, releases: int) -> Observed:
    """Utilities and queries: none moves by more than the sensitivity; monotone ones one way."""
    far = distance(here, there, "Linf")
    if far == 0:
        return _NOWHERE
    if mechanism.monotone and far != math.inf and _both_ways(here, there):
        why = "its values move both ways, and it was told that they move one way (monotone)"
        return Observed(distance=far, beyond=True, costs=(PureDP(math.inf),), why=why)
    costs = _cost(mechanism, far) * releases
    return Observed(distance=far, beyond=far > mechanism.sensitivity, costs=costs)


def _both_ways(here: Any, there: Any) -> bool:
    pairs = zip(np.asarray(here).tolist(), np.asarray(there).tolist(), strict=True)
    return len({rational(one) > rational(other) for one, other in pairs if one != other}) == 2


def _keys(mechanism: ThresholdedHistogram, here: Any, there: Any) -> Observed:
    """The fewest people, each contributing 1 to at most `keys_per_person` keys, for the change."""
    one, other = _counts(here), _counts(there)
    gaps = [other.get(key, 0) - one.get(key, 0) for key in {**one, **other}]
    up, down = [gap for gap in gaps if gap > 0], [-gap for gap in gaps if gap < 0]
    keys = mechanism.keys_per_person
    come, gone = (max(*side, -(-sum(side) // keys)) if side else 0 for side in (up, down))
    add_remove = mechanism.neighbours.relation == "add-remove"
    return _counted(mechanism, Fraction(come + gone if add_remove else max(come, gone)))


def _counts(value: Any) -> dict[Any, int]:
    if isinstance(value, Mapping):
        return {key: int(count) for key, count in value.items()}
    keys, counts = value
    return dict(zip(np.asarray(keys).tolist(), np.asarray(counts).tolist(), strict=True))


def _counted(mechanism: Any, number: Fraction | float) -> Observed:
    """A distance in persons or records: one is what the guarantee is about."""
    if number == 0:
        return _NOWHERE
    if number == math.inf:
        return Observed(distance=number, beyond=True, costs=(PureDP(math.inf),), why=_APART)
    steps = int(number)
    cost = mechanism.guarantee if steps == 1 else mechanism.guarantee.group(steps)
    return Observed(distance=number, beyond=steps > 1, costs=priced(cost), why=_APART)


def _each_number(mechanism: Snapping, here: Any, there: Any) -> Observed:
    apart = differences(here, there)
    if apart is None:
        return Observed(distance=math.inf, beyond=True, costs=(PureDP(math.inf),))
    costs = tuple(cost for gap in apart for cost in _cost(mechanism, gap))
    far = max(apart, default=Fraction(0))
    return Observed(distance=far, beyond=far > mechanism.sensitivity, costs=costs)


def _each_point(mechanism: Any, here: Any, there: Any) -> Observed:
    """Metric promises hold at every distance: nothing is beyond, everything has its price."""
    one, other = np.asarray(here), np.asarray(there)
    if one.shape != other.shape:
        return Observed(distance=math.inf, beyond=True, costs=(PureDP(math.inf),))
    pairs = zip(one.reshape(-1, 2).tolist(), other.reshape(-1, 2).tolist(), strict=True)
    gaps = [
        root_above((rational(p[0]) - rational(q[0])) ** 2 + (rational(p[1]) - rational(q[1])) ** 2)
        for p, q in pairs
        if p != q
    ]
    costs = tuple(cost for gap in gaps for cost in _cost(mechanism, gap))
    return Observed(distance=max(gaps, default=Fraction(0)), costs=costs)


def _facts(mechanism: Any, here: Any, there: Any) -> Observed:
    """Inputs worked out from data with the distance to others: what neighbours' must fulfil.

    Theorem  the conditions that the proofs of `SmoothNoise`, `ProposeTestRelease` and `StableValue`
             use, each checked exactly on the pair
    """
    if bit_identical(here, there):
        return _NOWHERE
    match mechanism:
        case SmoothNoise():
            least = min(here.bound, there.bound)
            allowed = abs(here.value - there.value) <= least and _smooth(here, there)
        case ProposeTestRelease():
            distances = here.distances, there.distances
            near = all(abs(a - b) <= 1 for a, b in zip(*distances, strict=True))
            gap = abs(here.value - there.value)
            tested = zip(mechanism.bounds, *distances, strict=True)
            allowed = near and all(gap <= bound for bound, a, b in tested if a or b)
        case _:
            if bit_identical(here.answer, there.answer):
                allowed = abs(here.distance - there.distance) <= 1
            else:
                allowed = here.distance == there.distance == 1
    costs = priced(mechanism.guarantee) if allowed else (PureDP(math.inf),)
    return Observed(
        distance=Fraction(1) if allowed else math.inf, beyond=not allowed, costs=costs, why=_APART
    )


def _smooth(here: Any, there: Any) -> bool:
    """Whether neither bound is more than exp(beta) times the other."""
    low, high = sorted((here.bound, there.bound))
    if low == high:
        return True
    if low == 0:
        return False
    ratio = Real(high / low).log()  # irrational, so it is decided in the end
    beta: Fraction = here.beta
    return refine(lambda precision: bool(ratio.ball(precision) <= beta))


_DEEPEST = 100


def bit_identical(one: Any, other: Any, *, depth: int = 0) -> bool:
    """Whether two values are equal in type, order and last bit; NaN is the same as NaN.

    An output that cannot be compared is refused: it would hide a difference, or make one up.

    >>> bit_identical([1, 2.0], [1, 2.0]), bit_identical(1, 1.0), bit_identical(0.0, -0.0)
    (True, False, False)
    >>> bit_identical({1: 2, 3: 4}, {3: 4, 1: 2})
    False
    """
    if depth > _DEEPEST:
        raise WrongType("output", problem="is nested too deeply", remedy="return something flatter")
    if type(one) is not type(other):
        return False
    if one is other:
        return True

    def inner(a: Any, b: Any) -> bool:
        return bit_identical(a, b, depth=depth + 1)

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
