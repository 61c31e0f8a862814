"""How many records must change before an answer does: for answers released as they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from typing import Any

import numpy as np

from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import Number, rational, whole
from lastbit.laws import least
from lastbit.privacy import AS_DECLARED, CHANGE_ONE, Neighbours, Relation, check_neighbours
from lastbit.sensitivity.statistics import Quantile, check_defined, rank, relation_of, value_of
from lastbit.sensitivity.values import Records, records

MOST_DATABASES = 250_000
"""How many databases of a finite domain are tried at most: some seconds, some 100 MB."""

MOST_RECORDS = 10_000_000
"""How many records they have at most, all of them together."""

_FAR_TOO_MANY = 10**15
_SORTABLE: tuple[type, ...] = (str, bytes, int)
_ANY: tuple[type, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class Stability:
    """An answer, and how many steps lead to a database with another one; both are secret.

    Theorem  the distance d(x) to the nearest database with another answer is at least 1, moves by
             at most 1 between neighbours with the same answer, and is 1 on both sides where the
             answers differ, since each is then the other's nearest. A lower bound with these
             properties serves as well, and the lesser of d and a constant is one

    >>> Stability("yes", 12)
    Stability(...)
    """

    answer: Any
    distance: int
    neighbours: Neighbours = AS_DECLARED

    def __post_init__(self) -> None:
        object.__setattr__(self, "distance", whole(self.distance, "distance", least=1))
        check_neighbours(self.neighbours)

    def __repr__(self) -> str:
        return "Stability(...)"


def distance_to_instability(
    kind: str | Callable[[tuple[Any, ...]], Any], data: Any, **parameters: Any
) -> Stability:
    """The answer of a kind, and its distance to another one.

    `kind` is "median", "quantile", "mode", "argmax", "threshold", or a function of the records;
    the parameters are those of `for_quantile`, `for_mode`, `for_argmax`, `for_threshold`,
    `for_function`.

    >>> distance_to_instability("mode", ["a", "a", "a", "b"], neighbours=CHANGE_ONE).distance
    2
    """
    if callable(kind):
        return for_function(kind, data, **parameters)
    match kind if isinstance(kind, str) else None:  # an array compared with a name is an array
        case "median":
            return for_quantile(data, level="1/2", **parameters)
        case "quantile":
            return for_quantile(data, **parameters)
        case "mode":
            return for_mode(data, **parameters)
        case "argmax":
            return for_argmax(data, **parameters)
        case "threshold":
            return for_threshold(data, **parameters)
    remedy = "pass median, quantile, mode, argmax, threshold, or a function"
    raise InvalidParameter("kind", problem="is unknown", remedy=remedy)


def for_quantile(
    data: object,
    *,
    level: Number,
    lower: Number,
    upper: Number,
    neighbours: Neighbours = CHANGE_ONE,
) -> Stability:
    """The exact number of steps until an order statistic has another value.

    Theorem  v = x_m. Change-one: to raise it, all but m-1 of the records up to v must be raised; to
             lower it, m records must be below v. Each takes one change a record, and is possible
             unless v is the bound. Add-remove: r < n steps reach the ranks low to high of
             `reachable`, and both ends; r = n the empty database as well, whose value is lo,
             and with a record of hi put for the last one the rank m(2) + n - 1; r = n + 1 a
             database of one record hi alone
    Checked  tests/sensitivity/test_distance.py

    >>> for_quantile([1, 2, 2, 2, 9], level="1/2", lower=0, upper=10).distance
    2
    """
    asked, relation = Quantile(level), relation_of(neighbours)
    rows = records(data, lower, upper)
    check_defined(asked, relation, rows)
    if relation == "change-one":
        distance = _changes(asked.level, rows)
    else:
        distance = _additions_or_removals(asked.level, rows)
    return Stability(value_of(asked, rows), distance, neighbours)


def _changes(level: Fraction, rows: Records) -> int:
    middle = rank(level, rows.count)
    value = rows.steps[middle - 1]
    below = int(np.searchsorted(rows.steps, value, side="left"))
    up_to = int(np.searchsorted(rows.steps, value, side="right"))
    raised = [up_to - (middle - 1)] if value < rows.high else []
    lowered = [middle - below] if value > rows.low else []
    return min(raised + lowered)


def _additions_or_removals(level: Fraction, rows: Records) -> int:
    count, padded = rows.count, rows.padded()
    if not count:
        return 1
    value = padded[rank(level, count)]

    def moved(steps: int) -> bool:
        after = rank(level, count + steps)
        if steps > count:
            return True
        if steps == count:
            last = max(after, rank(level, 2) + count - 1)
            return bool(value > rows.low or padded[min(last, count + 1)] > value)
        before = rank(level, count - steps)
        low, high = min(before, after - steps), max(after, before + steps)
        return bool(padded[max(low, 0)] < value or padded[min(high, count + 1)] > value)

    return least(moved, (1, count + 1))  # what fewer steps reach, more steps reach as well


def for_argmax(counts: Sequence[int], *, neighbours: Neighbours) -> Stability:
    """Which of some declared counts is greatest, the first of equals; each record is in one count.

    Theorem  for a rival r let g = c_top - c_r + [r comes later]: the gap that must be closed, one
             more where a tie is not enough. Add-remove closes 1 a step: min g. Change-one closes 2,
             by moving a record from the top to the rival: min ceil(g/2); the top has as many
             records. Without a rival the answer stands, and the distance is one more than there
             are records
    Checked  tests/sensitivity/test_distance.py

    >>> for_argmax([10, 3, 9], neighbours=CHANGE_ONE).distance
    1
    """
    relation = relation_of(neighbours)
    numbers = [whole(count, "counts") for count in _items(counts, "counts")]
    if not numbers:
        raise InvalidParameter("counts", problem="is empty", remedy="pass one count at least")
    _check_records(sum(numbers), relation)
    top = numbers.index(max(numbers))
    gaps = [numbers[top] - count + (at > top) for at, count in enumerate(numbers) if at != top]
    return Stability(top, _least_gap(gaps, relation, sum(numbers)), neighbours)


def for_mode(
    data: Iterable[Hashable] | Mapping[Hashable, int],
    *,
    neighbours: Neighbours,
    domain: Iterable[Hashable] | None = None,
) -> Stability:
    """The most frequent key of records, one key a record, or of counts by key.

    Theorem  over a declared domain it is `for_argmax` in the order of the domain. Over an open one
             the least key wins ties, and a key that no record has counts as a rival that wins them:
             g = c_top. This is a lower bound with the properties of `Stability`: c_top moves by at
             most 1; a key that appears or vanishes has g >= c_top - 1 where its count is 1; and a
             key that was not there and wins needs c_top <= 1, by a change c_top <= 2, where the
             distance is 1. No records: no answer, None, at distance 1
    Differs  a key outside the domain, or of another kind, is refused, and a refusal is not private:
             bring every record into the domain first, one at a time
    Checked  tests/sensitivity/test_distance.py

    >>> for_mode({"a": 7, "b": 2}, neighbours=CHANGE_ONE).distance
    3
    """
    relation = relation_of(neighbours)
    counts = _counted(data, _ANY if domain is not None else _SORTABLE)
    if domain is not None:
        keys = list(dict.fromkeys(_items(domain, "domain")))
        if not keys or not counts.keys() <= set(keys):
            raise InvalidParameter(
                "domain", problem="is empty, or lacks a key of the data", remedy="declare every key"
            )
        chosen = for_argmax([counts.get(key, 0) for key in keys], neighbours=neighbours)
        return Stability(keys[chosen.answer], chosen.distance, neighbours)
    seen = {key: count for key, count in counts.items() if count}
    total = sum(seen.values())
    _check_records(total, relation)
    if not total:
        return Stability(None, 1, neighbours)
    most = max(seen.values())
    top = min(key for key, count in seen.items() if count == most)
    gaps = [most - count + (key > top) for key, count in seen.items() if key != top]
    return Stability(top, _least_gap([*gaps, most], relation, total), neighbours)


def for_threshold(
    count: int, *, threshold: Number, neighbours: Neighbours = AS_DECLARED
) -> Stability:
    """Whether a count of records reaches a threshold; the same under either relation.

    Theorem  one step moves the count by at most 1, so from c >= t it takes c - t + 1 of them, from
             c < t it takes t - c
    Checked  tests/sensitivity/test_distance.py

    >>> for_threshold(12, threshold=10).distance
    3
    """
    number, bar = whole(count, "counts"), -(-rational(threshold, "threshold") // 1)
    reached = number >= bar
    return Stability(reached, number - bar + 1 if reached else bar - number, neighbours)


def _least_gap(gaps: list[int], relation: Relation, total: int) -> int:
    if not gaps:
        return total + 1
    return min(gaps) if relation == "add-remove" else -(-min(gaps) // 2)


def _counted(data: Any, kinds: tuple[type, ...]) -> dict[Any, int]:
    """Counts by key; the keys are all of one of the kinds.

    True, 1 and 1.0 are equal: which of them was written first must not be seen in the answer.
    """
    given = list(data) if isinstance(data, Mapping) else _items(data, "data")
    keys = [key.item() if isinstance(key, np.generic) else key for key in given]
    found = {type(key) for key in keys}
    if kinds and (len(found) > 1 or not found <= set(kinds)):
        raise WrongType(
            "data",
            problem="holds keys that are not all text, all bytes or all whole numbers",
            remedy="declare domain=, or turn the keys into text",
        )
    if isinstance(data, Mapping):
        return dict(zip(keys, (whole(count, "counts") for count in data.values()), strict=True))
    try:
        return dict(Counter(keys))
    except TypeError:
        pass
    raise WrongType("data", problem="holds a key that cannot be hashed", remedy="pass text")


def _items(values: Any, name: str) -> list[Any]:
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise WrongType(name, problem="is not a list", remedy="pass a list or an array")
    if getattr(values, "ndim", 1) != 1 or isinstance(values, np.ma.MaskedArray):
        raise WrongType(name, problem="is not a flat list", remedy="pass a flat list or array")
    return list(values)


def _check_records(total: int, relation: Relation) -> None:
    if relation == "change-one" and total == 0:
        raise InvalidParameter(
            "data", problem="is empty, so no record can change", remedy="pass one record at least"
        )


def for_function(
    function: Callable[[tuple[Any, ...]], Any],
    data: Iterable[Any],
    *,
    domain: Iterable[Any],
    neighbours: Neighbours,
    most: int,
) -> Stability:
    """The distance for any function of the records, by trying every database up to `most` away.

    The function gets the records in the order of the domain, so that their own order cannot matter,
    and must always answer the same for the same ones. Answers count as the same if they are equal
    and look it: True and 1, or 0.0 and -0.0, are equal, yet can be told apart. If none up
    to `most` steps away has another answer the distance is most + 1. The number of databases tried
    grows like a power of the size of the domain: for small ones only. It is refused by a bound on
    that number that does not depend on the data: of m records, at most k leave and at most k join.

    >>> for_function(max, [1, 1, 2], domain=[0, 1, 2], neighbours=CHANGE_ONE, most=2).distance
    1
    """
    relation, farthest = relation_of(neighbours), whole(most, "most", least=1)
    values = records_of_domain(domain)
    start = placed(data, values, relation)
    check_tried(_within(farthest, len(values), len(start), relation))
    answer = answer_of(function, tuple(values[at] for at in start))
    seen, frontier = {start}, {start}
    for distance in range(1, farthest + 1):
        frontier = {
            other for database in frontier for other in near(database, len(values), relation)
        } - seen
        answers = [answer_of(function, tuple(values[at] for at in rows)) for rows in frontier]
        if not all(_same(other, answer) for other in answers):
            return Stability(answer, distance, neighbours)
        if not frontier:
            break
        seen |= frontier
    return Stability(answer, farthest + 1, neighbours)


def _within(steps: int, kinds: int, records: int, relation: Relation) -> int:
    """A bound on the databases within some steps; under add-remove whatever their number is."""
    if relation == "add-remove":
        return multisets(2 * kinds + 1, steps)  # k leave, l join, k + l <= steps
    every = multisets(kinds, records)
    tried, step = 0, 0
    while step <= steps and tried < every and tried <= MOST_DATABASES:
        tried, step = tried + multisets(kinds, step) ** 2, step + 1  # step leave, step join
    return min(tried, every)


def _same(one: Any, other: Any) -> bool:
    """Whether two answers look the same; in doubt they do not, which only shortens distances."""
    return type(one) is type(other) and repr(one) == repr(other) and bool(one == other)


def answer_of(function: Callable[[tuple[Any, ...]], Any], rows: tuple[Any, ...]) -> Any:
    """What a function says of a database; what it raises might tell of the data."""
    try:
        return function(rows)
    except Exception:
        pass
    raise InvalidParameter(
        "function",
        problem="fails on a database of the domain",
        remedy="make it answer for every one, under add-remove for no records too",
    )


def records_of_domain(domain: Iterable[Any] | None) -> list[Any]:
    """Every record that there can be, once."""
    remedy = "pass domain=, the list of all values that a record can have"
    if domain is None:
        raise InvalidParameter("domain", problem="is missing", remedy=remedy)
    given = [v.item() if isinstance(v, np.generic) else v for v in _items(domain, "domain")]
    if not given:
        raise InvalidParameter("domain", problem="is empty", remedy=remedy)
    if any(isinstance(value, float) and not isfinite(value) for value in given):
        raise InvalidParameter("domain", problem="holds a float that is not finite", remedy=remedy)
    if any(isinstance(value, np.ndarray) for value in given):  # these are neither equal nor not
        raise WrongType("domain", problem="holds arrays", remedy="pass tuples in their place")
    check_tried(len(given))
    try:
        return list(dict.fromkeys(given))
    except TypeError:  # they cannot be hashed
        return [value for at, value in enumerate(given) if value not in given[:at]]


def placed(data: Iterable[Any], values: list[Any], relation: Relation) -> tuple[int, ...]:
    """A database as sorted positions in the domain."""
    rows = _items(data, "data")
    _check_records(len(rows), relation)
    if any(isinstance(row, np.ndarray) for row in rows):
        raise WrongType("data", problem="holds arrays", remedy="pass tuples, as in the domain")
    try:
        places = {value: at for at, value in enumerate(values)}
        return tuple(sorted(places[row] for row in rows))
    except KeyError:
        pass
    except TypeError:  # they cannot be hashed
        if all(row in values for row in rows):
            return tuple(sorted(values.index(row) for row in rows))
    raise InvalidParameter(
        "domain", problem="lacks a record of the data", remedy="declare every one"
    )


def multisets(kinds: int, size: int) -> int:
    """How many multisets of a size there are of some kinds, or a number far beyond the limit."""
    few = min(kinds - 1, size)
    number = 1
    for at in range(1, few + 1):  # C(kinds + size - 1, few), which grows with every step
        number = number * (kinds + size - 1 - few + at) // at
        if number > _FAR_TOO_MANY:
            return _FAR_TOO_MANY
    return number


def check_tried(databases: int, records: int = 1) -> None:
    """Refuse to try too many databases, or too large ones; neither depends on the data."""
    if databases > MOST_DATABASES or databases * records > MOST_RECORDS:
        many = f"{_FAR_TOO_MANY:,} or more" if databases >= _FAR_TOO_MANY else f"{databases:,}"
        many += f" of {records:,} records" if records > 1 else ""
        raise InvalidParameter(
            "domain",
            problem=f"has too many databases to try: {many}, where {MOST_DATABASES:,} of "
            f"{MOST_RECORDS:,} records in all are tried",
            remedy="pass fewer values or fewer records, or a bound of your own to from_distance",
        )


def near(database: tuple[int, ...], size: int, relation: Relation) -> Iterator[tuple[int, ...]]:
    """The neighbours of a database, as sorted positions in the domain; under change-one itself."""
    last = {value: at for at, value in enumerate(database)}  # equal records leave the same rest
    shorter = [database[:at] + database[at + 1 :] for at in last.values()]
    if relation == "add-remove":
        yield from shorter
        shorter = [database]
    for rest in shorter:
        for value in range(size):
            yield tuple(sorted((*rest, value)))
