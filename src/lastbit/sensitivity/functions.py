"""Functions of one's own over a finite domain: how far they move, by trying every database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, combinations_with_replacement
from typing import Any, TypeAlias, TypeGuard

from lastbit.errors import InvalidParameter, LastbitError
from lastbit.exact import rational, whole
from lastbit.privacy import Neighbours, Relation
from lastbit.sensitivity.distance import (
    answer_of,
    check_tried,
    multisets,
    near,
    placed,
    records_of_domain,
)
from lastbit.sensitivity.statistics import relation_of

Function: TypeAlias = Callable[[tuple[Any, ...]], Any]
"""A function of the records, which it gets as a tuple in the order of the domain."""

_Database: TypeAlias = tuple[int, ...]


def is_function(
    statistic: object, *, bounds: tuple[object, object], domain: object
) -> TypeGuard[Function]:
    """Whether this is a function of one's own: it has a domain, and a statistic has bounds."""
    if callable(statistic) and not isinstance(statistic, type):
        if bounds != (None, None):
            raise InvalidParameter(
                "domain",
                problem="takes the place of lower and upper for a function",
                remedy="pass domain=, the list of all records, and leave lower= and upper= out",
            )
        return True
    if domain is not None:
        raise InvalidParameter(
            "domain",
            problem="is for a function of your own; this statistic has bounds",
            remedy="pass lower= and upper=, and leave domain= out",
        )
    return False


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Landscape:
    """The value and the local sensitivity of a function at every database of a finite domain.

    Law      databases are multisets of records of the domain: of n records under change-one, of at
             most N under add-remove. f gets them in the order of the domain. LS(x) is the greatest
             abs(f(x) - f(y)) over the neighbours y of x among them
    Theorem  Two databases are neighbours under change-one exactly if both are one multiset of n-1
             records and one record more, under add-remove if one is the other and one record more.
             So trying every such rest with every record of the domain meets every pair. Change-one:
             let high and low be the greatest and the least f over the records that join a rest;
             LS(x) is the greatest max(high - f(x), f(x) - low) over the rests of x, since a rest
             has all its databases for neighbours of each other. The greatest LS is the global
             sensitivity.
             The distance of x and y is n - c under change-one, abs(x) + abs(y) - 2c under
             add-remove, c the number of records that they share: no step saves more than one
             (two) of these, and a way that removes before it adds has no more than N records.
             U_k(x), the greatest LS(y) at distances up to k, has the properties (A) and (B) of
             `sensitivity_at`: what lies within k steps of x lies within k + 1 of its neighbour
    Source   paper 004, Definitions 1.8, 1.14 and 2.2: by definition, hence exactly
    Differs  multisets, not sequences: the order of records cannot matter. All values are worked
             out once, before the data are looked up, so that what a function does cannot make a
             refusal depend on them; a function that is not deterministic is one that was drawn
             once. A record outside the domain, or more records than declared, is refused, and that
             is not private: bring every record into the domain first, one at a time
    Checked  tests/sensitivity/test_functions.py, against the definitions
    """

    relation: Relation
    values: Mapping[_Database, Fraction]
    moves: Mapping[_Database, Fraction]

    @property
    def greatest(self) -> Fraction:
        """The global sensitivity."""
        return max(self.moves.values())

    def reach(self, database: _Database) -> list[Fraction]:
        """U_0, U_1, ... as far as any database lies; as secret as the data, its length aside."""
        here, size = Counter(database), max(map(len, self.values))
        change = self.relation == "change-one"
        found = [Fraction(0)] * (size + 1 if change else 2 * size + 1)
        for other, moved in self.moves.items():
            shared = (here & Counter(other)).total()
            far = size - shared if change else len(database) + len(other) - 2 * shared
            found[far] = max(found[far], moved)
        return list(accumulate(found, max))


def landscape(
    function: Function,
    *,
    domain: Iterable[Any] | None,
    neighbours: Neighbours,
    count: int | None = None,
    most_records: int | None = None,
) -> Landscape:
    """The landscape of a function: of `count` records, under add-remove of at most `most_records`.

    >>> from lastbit.privacy import CHANGE_ONE
    >>> def spread(rows):
    ...     return max(rows) - min(rows)
    >>> four = landscape(spread, domain=[0, 1, 9], neighbours=CHANGE_ONE, count=4)
    >>> print(four.greatest, len(four.values))
    9 15
    """
    relation, values = relation_of(neighbours), records_of_domain(domain)
    change = relation == "change-one"
    size, other = (count, most_records) if change else (most_records, count)
    if size is None or other is not None:
        raise InvalidParameter(
            "count" if change else "most_records",
            problem="says which databases there are",
            remedy="pass count= alone under change-one, and most_records= alone, the same for all "
            "data, under add-remove",
        )
    size = whole(size, "count" if change else "most_records", least=1)
    check_tried(multisets(len(values) + (not change), size), size)
    every = range(len(values))
    table = {
        database: number_of(function, tuple(values[at] for at in database))
        for records in ([size] if change else range(size + 1))
        for database in combinations_with_replacement(every, records)
    }
    moves = dict.fromkeys(table, Fraction(0))
    for records in [size - 1] if change else range(size):
        for rest in combinations_with_replacement(every, records):
            joined = [tuple(sorted((*rest, at))) for at in every]
            ends = [table[one] for one in (joined if change else [rest])]
            high, low = max(ends), min(ends)
            for one in joined:
                moves[one] = max(moves[one], high - table[one], table[one] - low)
            if not change:
                moves[rest] = max(moves[rest], *(abs(table[one] - low) for one in joined))
    return Landscape(relation, table, moves)


def landscape_at(
    function: Function,
    data: Iterable[Any],
    *,
    domain: Iterable[Any] | None,
    neighbours: Neighbours,
    most_records: int | None,
) -> tuple[Landscape, _Database]:
    """The landscape that data lie in, and where; their number is public under change-one."""
    relation, values = relation_of(neighbours), records_of_domain(domain)
    start = placed(data, values, relation)
    found = landscape(
        function,
        domain=values,
        neighbours=neighbours,
        count=len(start) if relation == "change-one" else None,
        most_records=most_records,
    )
    if start not in found.values:
        raise InvalidParameter(
            "most_records", problem="is below the number of records", remedy="pass a larger one"
        )
    return found, start


def local_of(
    function: Function, data: Iterable[Any], *, domain: Iterable[Any] | None, neighbours: Neighbours
) -> Fraction:
    """The local sensitivity of a function: the data and their neighbours are all that is tried."""
    relation, values = relation_of(neighbours), records_of_domain(domain)
    start = placed(data, values, relation)
    check_tried(len(values) * (len(values) if relation == "change-one" else 2))
    here = number_of(function, tuple(values[at] for at in start))
    tried = {number_of(function, tuple(values[at] for at in database))
             for database in near(start, len(values), relation)}  # fmt: skip
    return max(abs(value - here) for value in tried)


def number_of(function: Function, rows: tuple[Any, ...]) -> Fraction:
    """The exact number that a function gives; neither it nor the rows are in an error."""
    answer = answer_of(function, rows)
    try:
        return rational(answer, "function")
    except LastbitError:
        pass
    raise InvalidParameter(
        "function",
        problem="gives something that is not a finite number",
        remedy="return an int, a Fraction or a finite float",
    )
