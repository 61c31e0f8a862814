"""What an engine hands over: raw integers, not yet private. They show themselves to nobody."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from lastbit.errors import EngineFailed
from lastbit.tables.compile.statement import UNITS, Statement
from lastbit.tables.plan.marginals import Marginal
from lastbit.tables.plan.sensitivity import WEIGHT_ONE, Measure
from lastbit.tables.query.expression import Value
from lastbit.tables.query.query import Query


class Bins(Sequence[Sequence[int]]):
    """For every key the weights of its bins. Only those above 0 are kept.

    Of undeclared keys there may be a hundred thousand with a thousand bins each, most
    of them empty and never shown.

    >>> weights = Bins(keys=2, size=3)
    >>> weights.put(1, 2, 50)
    >>> list(weights)
    [[0, 0, 0], [0, 0, 50]]
    """

    __slots__ = ("_found", "_keys", "_size")

    def __init__(self, *, keys: int, size: int) -> None:
        self._keys, self._size = keys, size
        self._found: dict[int, dict[int, int]] = {}

    def put(self, key: int, place: int, weight: int) -> None:
        """The weight of one bin of one key."""
        if not (0 <= key < self._keys and 0 <= place < self._size):
            raise EngineFailed("the database gave a bin that was not asked for")
        self._found.setdefault(key, {})[place] = weight

    def __len__(self) -> int:
        return self._keys

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return [self[i] for i in range(*key.indices(self._keys))]
        if not -self._keys <= key < self._keys:
            raise IndexError("key")
        weights = [0] * self._size
        for place, weight in self._found.get(key % self._keys, {}).items():
            weights[place] = weight
        return weights

    def __repr__(self) -> str:
        return "<Bins: not private, not shown>"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Aggregates:
    """The measures of a query, before noise. Everything here is secret, the keys too.

    `keys` are all declared ones, in the order of declaration (the last column changes fastest),
    or, where they are undeclared, those that occur, sorted by value so that their order tells
    nothing more. `entries` has one integer a key for each measure of kind rows, values, squares,
    units, shares and distinct; `bins` one list of integers a key for each measure of kind bins;
    `units` the number of units that chose each key, or their shares, where keys are not declared,
    and is empty otherwise; `single` the number of units that have this key alone, where those are
    counted apart. A key that occurs and that no unit chose has the number 0, and is never shown.

    >>> Aggregates(keys=[("north",)], entries={"m1": [731]}, bins={}, units=[])
    <Aggregates: not private, not shown>
    """

    keys: Sequence[tuple[Value, ...]] = field(repr=False)
    entries: Mapping[str, Sequence[int]] = field(repr=False)
    bins: Mapping[str, Sequence[Sequence[int]]] = field(repr=False)
    units: Sequence[int] = field(repr=False)
    single: Sequence[int] = field(default=(), repr=False)

    def __repr__(self) -> str:
        return "<Aggregates: not private, not shown>"


def assembled(
    query: Query, measures: tuple[Measure, ...], ran: Statement, rows: Iterable[tuple[Any, ...]]
) -> Aggregates:
    """The rows of a statement as aggregates; what no row speaks of is 0."""
    width = len(query.keys)
    found = list(rows)
    if query.groups is None:
        # a key that no unit chose is not there, whatever else was measured of it
        keys = sorted({row[1 : 1 + width] for row in found if row[0] == UNITS}, key=_missing_first)
    else:
        keys = list(product(*(key.values or () for key in query.keys)))
    places = {key: place for place, key in enumerate(keys)}
    sums = {name: [0] * len(keys) for name in ran.sums}
    units, single = [0] * len(keys), [0] * len(keys)
    values = {block: [0] * len(keys) for block in ran.distinct.values()}
    sizes = {ran.bins[m.name]: len(m.edges) - 1 for m in measures if m.name in ran.bins}
    weights = {block: Bins(keys=len(keys), size=size) for block, size in sizes.items()}
    for row in found:
        block, (place, number, *added) = row[0], row[1 + width :]
        at = places.get(row[1 : 1 + width])
        if at is None and query.groups is None:
            continue
        if at is None:
            raise EngineFailed("the database gave a key that was not asked for")
        if block == UNITS and place:
            single[at] = int(number) // WEIGHT_ONE
        elif block == UNITS:
            units[at] = int(number)
        elif block in values:
            values[block][at] = int(number)
        elif block == 0:
            for name, value in zip(ran.sums, added, strict=True):
                sums[name][at] = int(value or 0)
        elif place is not None:
            weights[block].put(at, int(place), int(number))
    counted = [measure.name for measure in measures if measure.kind in ("units", "shares")]
    entries = sums | dict.fromkeys(counted, units)
    entries |= {name: values[block] for name, block in ran.distinct.items()}
    bins = {name: weights[block] for name, block in ran.bins.items()}
    known = query.groups is not None
    if known:
        units, single = [], []
    return Aggregates(keys=keys, entries=entries, bins=bins, units=units, single=single)


def _missing_first(key: tuple[Value, ...]) -> tuple[Any, ...]:
    return tuple((value is not None, value if value is not None else 0) for value in key)


def assembled_marginals(
    query: Query, marginals: Sequence[Marginal], rows: Iterable[tuple[Any, ...]]
) -> Aggregates:
    """By the names m1, m2 ..., the entries of every marginal; what no row speaks of is 0.

    The entries of a marginal are in the order of declaration; its last column changes fastest.
    """
    values = [key.values or () for key in query.keys]
    places = [
        {key: at for at, key in enumerate(product(*(values[place] for place in one)))}
        for one in marginals
    ]
    entries = [[0] * len(found) for found in places]
    for block, *keys, weight in rows:
        if block is None or not 0 <= block < len(places):
            raise EngineFailed("the database gave a marginal that was not asked for")
        at = places[block].get(tuple(keys[place] for place in marginals[block]))
        if at is None:
            raise EngineFailed("the database gave a key that was not asked for")
        entries[block][at] = int(weight or 0)
    named = {f"m{number}": found for number, found in enumerate(entries, start=1)}
    return Aggregates(keys=[], entries=named, bins={}, units=[])
