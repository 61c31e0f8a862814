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

from lastbit import mechanisms
from lastbit.errors import LastbitError, WrongType
from lastbit.exact import Real, rational, refine, root_above
from lastbit.privacy import AS_DECLARED, Guarantee, Loss, PureDP

Norm: TypeAlias = Literal["L1", "L2", "Linf", "entries", "records"]
NORMS = ("L1", "L2", "Linf", "entries", "records")
_EVERYTHING = (PureDP(math.inf),)
_OURS = "lastbit.mechanisms."
_APART = "its input moves as no neighbours can, by what the mechanism was told"
_DEEPEST = 100


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
            return Observed(distance=far, beyond=beyond, costs=_EVERYTHING)
        steps = math.ceil(far / Fraction(self.sensitivity)) if beyond else 1
        return Observed(distance=far, beyond=beyond, costs=_grouped(self.guarantee, steps))


def _grouped(guarantee: Guarantee, steps: int) -> tuple[Guarantee, ...]:
    return priced(guarantee if steps == 1 else guarantee.group(steps))


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
        return Fraction(sum(_moved_records(here, there)))
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
        return _apart((here.get(key, 0), there.get(key, 0)) for key in {**here, **there})
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
        one, other = (np.broadcast_to(np.asarray(v), shape).ravel() for v in (here, there))
    except ValueError:
        return None
    plain = one.dtype == other.dtype and one.dtype.kind in "biuf"
    places = np.flatnonzero(one != other) if plain else np.arange(one.size)
    values = zip(places.tolist(), one[places].tolist(), other[places].tolist(), strict=True)
    try:
        gaps = {place: _number(b) - _number(a) for place, a, b in values if not bit_identical(a, b)}
    except LastbitError:
        return None
    return {place: gap for place, gap in gaps.items() if gap}


def _apart(pairs: Iterable[tuple[Any, Any]]) -> list[Fraction] | None:
    try:
        gaps = [abs(_number(a) - _number(b)) for a, b in pairs if not bit_identical(a, b)]
    except (LastbitError, TypeError, ValueError):
        return None
    return [gap for gap in gaps if gap]


def _number(value: Any) -> Fraction:
    return Fraction(int(value)) if isinstance(value, bool | np.bool_) else rational(value)


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
    pairs = zip(here, there, strict=True)
    return Fraction(sum(not bit_identical(one, other) for one, other in pairs))


def _moved_records(here: Any, there: Any) -> tuple[int, int]:
    """How many records are to be removed and added, the order aside."""
    one, other = (
        Counter(map(key_of, data.tolist() if hasattr(data, "tolist") else data))
        for data in (here, there)
    )
    return (one - other).total(), (other - one).total()


def record_distance(here: Any, there: Any, relation: str) -> Loss:
    """How many steps of a relation lead from one collection of records to the other."""
    gone, come = _moved_records(here, there)
    if relation == "add-remove":
        return Fraction(gone + come)
    return Fraction(gone) if gone == come else math.inf


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
        mechanism = self.mechanism
        match mechanism:
            case mechanisms.Laplace() | mechanisms.RoundedLaplace() | mechanisms.Histogram():
                return _by_norm(mechanism, here, there, "L1")
            case mechanisms.NormLaplace():
                return _by_norm(mechanism, here, there, mechanism.norm)
            case mechanisms.Gaussian(coordinates=parts) if parts and parts.sensitivities:
                return _by_coordinate(mechanism, parts.sensitivities, here, there)
            case mechanisms.Gaussian():
                return _by_norm(mechanism, here, there, "L2")
            case mechanisms.ByRate() | mechanisms.ReportNoisyMax() | mechanisms.AboveThreshold():
                return _together(mechanism, here, there, self.releases)
            case mechanisms.ThresholdedHistogram():
                return _keys(mechanism, here, there)
            case mechanisms.RandomizedResponse():
                return _counted(mechanism, entries_changed(here, there))
            case mechanisms.SmoothStatistic():
                relation = mechanism.noise.neighbours.relation
                return _counted(mechanism, record_distance(here, there, relation))
            case mechanisms.ExponentialQuantile():
                relation = mechanism.neighbours.relation
                return _counted(mechanism, record_distance(here, there, relation))
            case mechanisms.Snapping():
                return _each(mechanism, differences(here, there), mechanism.sensitivity)
            case mechanisms.PlanarLaplace() | mechanisms.PolarLaplace():
                # metric promises hold at every distance: everything has its price
                return _each(mechanism, _between_points(here, there), math.inf)
            case (
                mechanisms.SmoothNoise()
                | mechanisms.ProposeTestRelease()
                | mechanisms.StableValue()
            ):
                return _facts(mechanism, here, there)
        return Observed(distance=math.inf, costs=None)  # a mechanism that is not known here yet


def _cost(mechanism: Any, far: Fraction | float) -> tuple[Guarantee, ...]:
    return _EVERYTHING if far == math.inf else priced(mechanism.guarantee_at(far))


def _by_norm(mechanism: Any, here: Any, there: Any, norm: Norm) -> Observed:
    far = distance(here, there, norm)
    if far == 0:
        return Observed(distance=far)
    beyond = not no_more_than(here, there, norm, Fraction(mechanism.sensitivity))
    at = far if beyond else min(far, Fraction(mechanism.sensitivity))  # L2 was rounded up
    declared = None if beyond else priced(mechanism.guarantee)
    return Observed(distance=far, beyond=beyond, costs=_cost(mechanism, at), declared=declared)


def _by_coordinate(
    mechanism: mechanisms.Gaussian, declared: tuple[Fraction, ...], here: Any, there: Any
) -> Observed:
    """Noise for each coordinate: none moves by more than declared for it."""
    one, other = _array(here), _array(there)
    wanted = (len(declared),)
    if one is None or other is None or one.shape != wanted or other.shape != wanted:
        return Observed(distance=math.inf, beyond=True, costs=_EVERYTHING)
    pairs = zip(one.tolist(), other.tolist(), strict=True)
    gaps = [differences([before], [after]) for before, after in pairs]
    moved = [sum(gap, Fraction(0)) for gap in gaps if gap is not None]
    if len(moved) < len(gaps):
        return Observed(distance=math.inf, beyond=True, costs=_EVERYTHING)
    far = distance(here, there, "L2")
    if far == 0:
        return Observed(distance=far)
    beyond = any(gap > most for gap, most in zip(moved, declared, strict=True))
    costs = priced(mechanism.guarantee_at(moved))
    promised = None if beyond else priced(mechanism.guarantee)
    return Observed(distance=far, beyond=beyond, costs=costs, declared=promised)


def _together(mechanism: Any, here: Any, there: Any, releases: int) -> Observed:
    """Utilities and queries: none moves by more than the sensitivity; monotone ones one way."""
    far = distance(here, there, "Linf")
    if far == 0:
        return Observed(distance=far)
    if mechanism.monotone and far != math.inf:
        pairs = zip(np.asarray(here).tolist(), np.asarray(there).tolist(), strict=True)
        if len({rational(one) > rational(other) for one, other in pairs if one != other}) == 2:
            why = "its values move both ways, and it was told that they move one way (monotone)"
            return Observed(distance=far, beyond=True, costs=_EVERYTHING, why=why)
    costs = _cost(mechanism, far) * releases
    return Observed(distance=far, beyond=far > mechanism.sensitivity, costs=costs)


def _keys(mechanism: mechanisms.ThresholdedHistogram, here: Any, there: Any) -> Observed:
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
        return Observed(distance=number)
    if number == math.inf:
        return Observed(distance=number, beyond=True, costs=_EVERYTHING, why=_APART)
    costs = _grouped(mechanism.guarantee, int(number))
    return Observed(distance=number, beyond=number > 1, costs=costs, why=_APART)


def _each(mechanism: Any, gaps: list[Fraction] | None, most: Fraction | float) -> Observed:
    """Numbers or points that are released one by one."""
    if gaps is None:
        return Observed(distance=math.inf, beyond=True, costs=_EVERYTHING)
    costs = tuple(cost for gap in gaps for cost in _cost(mechanism, gap))
    far = max(gaps, default=Fraction(0))
    return Observed(distance=far, beyond=far > most, costs=costs)


def _between_points(here: Any, there: Any) -> list[Fraction] | None:
    one, other = np.asarray(here), np.asarray(there)
    if one.shape != other.shape:
        return None
    pairs = zip(one.reshape(-1, 2).tolist(), other.reshape(-1, 2).tolist(), strict=True)
    return [
        root_above((rational(p[0]) - rational(q[0])) ** 2 + (rational(p[1]) - rational(q[1])) ** 2)
        for p, q in pairs
        if p != q
    ]


def _facts(mechanism: Any, here: Any, there: Any) -> Observed:
    """Inputs computed from data with the distance to others: what neighbours' must fulfil.

    Theorem  the conditions that the proofs of `SmoothNoise`, `ProposeTestRelease` and `StableValue`
             use, each checked exactly on the pair
    """
    if bit_identical(here, there):
        return Observed(distance=Fraction(0))
    match mechanism:
        case mechanisms.SmoothNoise():
            least = min(here.bound, there.bound)
            allowed = abs(here.value - there.value) <= least and _smooth(here, there)
        case mechanisms.ProposeTestRelease():
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
    if not allowed:
        return Observed(distance=math.inf, beyond=True, costs=_EVERYTHING, why=_APART)
    return Observed(distance=Fraction(1), costs=priced(mechanism.guarantee), why=_APART)


def _smooth(here: Any, there: Any) -> bool:
    """Whether neither bound is more than exp(beta) times the other."""
    low, high = sorted((here.bound, there.bound))
    if low == high or low == 0:
        return bool(low == high)
    ratio = Real(high / low).log()  # irrational, so it is decided in the end
    beta: Fraction = here.beta
    return refine(lambda precision: bool(ratio.ball(precision) <= beta))


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
        case None | bool() | int() | str() | bytes() | Enum() | Set():
            return bool(one == other)
        case np.ndarray():
            if one.shape != other.shape or one.dtype != other.dtype:
                return False
            if one.dtype.kind != "O" and one.tobytes() == other.tobytes():
                return True
            return one.dtype.kind in "Ofc" and inner(one.ravel().tolist(), other.ravel().tolist())
        case np.generic():
            return inner(np.asarray(one), np.asarray(other))
        case Mapping():  # the order of keys can tell who came first
            return inner(list(one.items()), list(other.items()))
        case list() | tuple():
            return len(one) == len(other) and all(map(inner, one, other))
        case BaseException():
            return inner(one.args, other.args) and inner(vars(one), vars(other))
    if is_dataclass(one) and not isinstance(one, type):
        names = [f.name for f in fields(one) if f.name != "_sampler"]  # tables, built when needed
        return all(inner(getattr(one, name), getattr(other, name)) for name in names)
    equals = getattr(one, "equals", None)  # frames of pandas and polars
    if callable(equals):
        columns = [list(getattr(frame, "columns", ())) for frame in (one, other)]
        return bool(equals(other)) and columns[0] == columns[1]
    if type(one).__eq__ is not object.__eq__:  # type: ignore[comparison-overlap]
        answer = one == other
        if isinstance(answer, bool | np.bool_):
            return bool(answer)
    elif getattr(one, "__dict__", None):
        return inner(vars(one), vars(other))
    raise WrongType(
        "output",
        problem=f"of type {type(one).__name__} cannot be compared",
        remedy="return numbers, text, lists, dictionaries, arrays, dataclasses or frames",
    )


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
