"""What an engine hands over, checked and sealed: raw integers, not yet private.

Law      `sealed_integers` turns the rows of a statement into one integer for every key and measure.
         Whatever the engine gives, it gives integers of the shape that the program asked for, or
         raises an error that says nothing of a value; what no row speaks of is 0
Theorem  `Aggregates` are made and read in this room alone, and show themselves to nobody
Checked  tests/kernel/test_sealed.py, tests/architecture/test_kernel.py
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from lastbit.errors import EngineFailed
from lastbit.kernel.program import Program, scanned_marginals
from lastbit.tables import UNITS, WEIGHT_ONE, Marginal, RawRows, Value


class Bins(Sequence[Sequence[int]]):
    """For every key the weights of its bins. Only those above 0 are kept.

    Of undeclared keys there may be a hundred thousand with a thousand bins each, most
    of them empty and never shown.

    >>> weights = Bins(keys=2, size=3)
    >>> weights.put(1, 2, 50)
    >>> list(weights)
    [[0, 0, 0], [0, 0, 50]]
    """

    __slots__ = ("_keys", "_size", "_weights")

    def __init__(self, *, keys: int, size: int) -> None:
        self._keys, self._size = keys, size
        self._weights: dict[int, dict[int, int]] = {}

    def put(self, key: int, place: int, weight: int) -> None:
        """The weight of one bin of one key."""
        if not (0 <= key < self._keys and 0 <= place < self._size):
            raise EngineFailed("the database gave a bin that was not asked for")
        self._weights.setdefault(key, {})[place] = weight

    def __len__(self) -> int:
        return self._keys

    def __getitem__(self, key: Any) -> Any:
        if not 0 <= key < self._keys:
            raise IndexError("key")
        weights = [0] * self._size
        for place, weight in self._weights.get(key, {}).items():
            weights[place] = weight
        return weights

    def __repr__(self) -> str:
        return "<Bins: not private, not shown>"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Aggregates:
    """The measures of a program, before noise. Everything here is secret, the keys too.

    `keys` are all declared ones, in the order of declaration (the last column changes fastest),
    or, where they are undeclared, those that occur, sorted by value so that their order tells
    nothing more. `entries` has one integer a key for each measure of kind rows, values, squares,
    units, shares and distinct; `bins` one list of integers a key for each measure of kind bins;
    `units` the number of units that chose each key, or their shares, where keys are not declared,
    and is empty otherwise; `single` the number of units that have this key alone, where those are
    counted apart. A key that occurs and that no unit chose has the number 0, and is never shown.
    `tables` are the counts of marginals, by their columns.

    >>> Aggregates(keys=[("north",)], entries={"m1": [731]})
    <Aggregates: not private, not shown>
    """

    keys: Sequence[tuple[Value, ...]] = field(default=(), repr=False)
    entries: Mapping[str, Sequence[int]] = field(default_factory=dict, repr=False)
    bins: Mapping[str, Sequence[Sequence[int]]] = field(default_factory=dict, repr=False)
    units: Sequence[int] = field(default=(), repr=False)
    single: Sequence[int] = field(default=(), repr=False)
    tables: Mapping[Marginal, Sequence[int]] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        return "<Aggregates: not private, not shown>"


def sealed_integers(program: Program, raw: RawRows) -> Aggregates:
    """The rows of the program's statement as integers."""
    if type(raw) is not RawRows:
        raise EngineFailed("the database gave something else than rows")
    if program.marginals is not None:
        return _tables(program, raw)
    return _measures(program, raw)


def integer(number: object) -> int:
    """A whole number that an engine gave: an int, or a decimal without a fraction."""
    found = int(number)  # type: ignore[call-overload]
    if isinstance(number, bool | str | bytes) or found != number:
        raise EngineFailed("the database gave something else than a whole number")
    return int(found)


def _measures(program: Program, raw: RawRows) -> Aggregates:
    keys_declared = program.groups is not None
    width, rows, ran = len(program.scan.keys), raw.unsealed_rows, raw.statement
    if keys_declared:
        keys = list(product(*(key.values or () for key in program.scan.keys)))
    else:
        # a key that no unit chose is not there, whatever else was measured of it
        keys = sorted({row[1 : 1 + width] for row in rows if row[0] == UNITS}, key=_missing_first)
    places = {key: place for place, key in enumerate(keys)}
    sums = {name: [0] * len(keys) for name in ran.sums}
    units, single = [0] * len(keys), [0] * len(keys)
    values = {block: [0] * len(keys) for block in ran.distinct.values()}
    sizes = {ran.bins[m.name]: len(m.edges) - 1 for m in program.measures if m.name in ran.bins}
    weights = {block: Bins(keys=len(keys), size=size) for block, size in sizes.items()}
    for row in rows:
        block, (place, number, *added) = row[0], row[1 + width :]
        at = places.get(row[1 : 1 + width])
        if at is None and not keys_declared:
            continue
        if at is None:
            raise EngineFailed("the database gave a key that was not asked for")
        if block == UNITS and place:
            single[at] = integer(number) // WEIGHT_ONE
        elif block == UNITS:
            units[at] = integer(number)
        elif block in values:
            values[block][at] = integer(number)
        elif block == 0:
            for name, value in zip(ran.sums, added, strict=True):
                sums[name][at] = integer(value or 0)
        elif place is not None:
            weights[block].put(at, integer(place), integer(number))
    counted = [m.name for m in program.measures if m.kind in ("units", "shares")]
    entries = sums | dict.fromkeys(counted, units)
    entries |= {name: values[block] for name, block in ran.distinct.items()}
    bins = {name: weights[block] for name, block in ran.bins.items()}
    for measure in program.measures:
        if measure.name not in (bins if measure.kind == "bins" else entries):
            raise EngineFailed("the database left a measure out")
    if keys_declared:
        return Aggregates(keys=keys, entries=entries, bins=bins)
    return Aggregates(keys=keys, entries=entries, bins=bins, units=units, single=single)


def _missing_first(key: tuple[Value, ...]) -> tuple[Any, ...]:
    return tuple((value is not None, value if value is not None else 0) for value in key)


def _tables(program: Program, raw: RawRows) -> Aggregates:
    """Entries of a marginal are in the order of declaration; the last column changes fastest."""
    scanned = scanned_marginals(program)
    values = [key.values or () for key in program.scan.keys]
    places = [
        {key: at for at, key in enumerate(product(*(values[place] for place in one)))}
        for one in scanned
    ]
    tables = [[0] * len(cells) for cells in places]
    for block, *keys, weight in raw.unsealed_rows:
        if block is None or not 0 <= block < len(places):
            raise EngineFailed("the database gave a marginal that was not asked for")
        at = places[block].get(tuple(keys[place] for place in scanned[block]))
        if at is None:
            raise EngineFailed("the database gave a key that was not asked for")
        tables[block][at] = integer(weight or 0)
    return Aggregates(tables=dict(zip(scanned, tables, strict=True)))
