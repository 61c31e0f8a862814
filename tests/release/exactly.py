"""What a release's law is, exactly: integers of the real engine, parameters of the plan.

Nothing here knows a sensitivity. It takes the raw integers of two tables, the mechanisms that the
plan names, and works out how far apart the laws of what is shown are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

from flint import arb

from lastbit.exact.ball import arb_of, ends, working_precision
from lastbit.kernel.noise import rank_distances
from lastbit.kernel.sealed import Aggregates
from lastbit.tables.card.column import Column
from lastbit.tables.card.schema import DataCard, Source
from lastbit.tables.compile.duckdb import DUCKDB
from lastbit.tables.compile.rows import relation
from lastbit.tables.compile.statement import Statement, statement
from lastbit.tables.plan.parts import LaplacePart, NoisePart, PartitionSelection, RankPart
from lastbit.tables.plan.plan import Plan
from lastbit.tables.query.expression import ColumnName
from lastbit.tables.query.query import Aggregate, Query
from lastbit.tables.query.scan import GroupKey
from tests.kernel.unsealing import opened_rows, rank_draw
from tests.tables.connecting import connected

TABLE = {"who": "BIGINT", "g": "VARCHAR", "x": "BIGINT"}
COLUMNS = {
    "who": Column(name="who", type="integer"),
    "g": Column(name="g", type="text"),
    "x": Column(name="x", type="integer"),
}

Row = tuple[str | None, int | None]
Rows = tuple[Row, ...]
"""What one unit has."""
Units = tuple[Rows, ...]
"""A table: the rows of each unit; a unit without rows is not there."""


def card_of(**values: Any) -> DataCard:
    given: dict[str, Any] = {"unit": "who", "max_rows": 1} | values
    return DataCard(name="t", source=Source(kind="frame"), columns=COLUMNS, **given)


def asked(function: str, name: str, **values: Any) -> Aggregate:
    if function not in ("count", "count_units"):
        values = {"expression": ColumnName("x"), "nullable": False, "step": Fraction(1)} | values
    if function not in ("count", "count_units", "histogram"):
        values.setdefault("bounds", (Fraction(0), Fraction(3)))
    if function == "quantile":
        values.setdefault("level", Fraction(1, 2))
    return Aggregate(name=name, function=function, **values)  # type: ignore[arg-type]


def query_of(*parts: Aggregate, keys: tuple[str, ...] | str | None = ()) -> Query:
    """`keys`: none, those declared, or "found" for those that are undeclared."""
    if keys == ():
        return Query(table="t", aggregates=parts)
    values = None if isinstance(keys, str) else keys
    key = GroupKey(name="g", expression=ColumnName("g"), values=values)
    return Query(table="t", aggregates=parts, keys=(key,))


class Engine:
    """DuckDB with one small table; runs the compiled statement of a plan on it."""

    def __init__(self) -> None:
        self.context = connected()
        self.connection = self.context.__enter__()
        self.connection.execute("SET threads = 1")
        fields = ", ".join(f"{name} {kind}" for name, kind in TABLE.items())
        self.connection.execute(f"CREATE TEMP TABLE {relation()} ({fields})")
        self.known: dict[Any, Aggregates] = {}
        self.statements: dict[Any, Statement] = {}

    def close(self) -> None:
        self.context.__exit__(None, None, None)

    def raw(
        self, plan: Plan, units: Units, *, card: DataCard | None = None, secret: str = "s"
    ) -> Aggregates:
        """The integers for a table; `card` stands in for the plan's in mutants of the statement."""
        own = card or plan.card
        limits = own.unit, own.max_rows, own.max_groups
        asked_of = (plan.query, plan.measures, *limits, secret)
        if asked_of not in self.statements:
            self.statements[asked_of] = statement(
                plan.query, own, plan.measures, secret=secret, dialect=DUCKDB
            )
        wanted = self.statements[asked_of]
        if (asked_of, units) in self.known:
            return self.known[asked_of, units]
        flat = [(who, *row) for who, rows in enumerate(units) for row in rows]
        self.connection.execute(f"DELETE FROM {relation()}")
        if flat:
            places = ", ".join(["(?, ?, ?)"] * len(flat))
            values = [value for row in flat for value in row]
            self.connection.execute(f"INSERT INTO {relation()} VALUES {places}", values)
        found = self.connection.execute(wanted.sql).fetchall()
        made = opened_rows(plan.query, plan.measures, wanted, found)
        return self.known.setdefault((asked_of, units), made)


def neighbours(tables: Sequence[Units], *, relation: str) -> Iterator[tuple[Units, Units]]:
    """All ordered pairs of which one unit comes or goes, or has other rows."""
    known = set(tables)
    rows = sorted({unit for units in tables for unit in units}, key=repr)
    for units in tables:
        for place, own in enumerate(units):
            others = [()] if relation == "add-remove" else [other for other in rows if other]
            for other in others:
                changed = (*units[:place], other, *units[place + 1 :])
                if changed != units and changed in known and (own or relation == "add-remove"):
                    yield units, changed
                    yield changed, units


# ---------------------------------------------------------------- noise alone


def noise_loss(plan: Plan, first: Aggregates, second: Aggregates) -> tuple[Fraction, Fraction]:
    """The greatest log-likelihood ratio of all Laplace noise, and the rho of all Gaussian noise.

    Of two shifted Laplace laws of scale s the log ratio at y is (abs(y-b) - abs(y-a))/s, which is
    greatest, abs(a-b)/s, beyond the two; entries are independent, so losses add up, and are all at
    their greatest at once. Of two Gaussian laws of integer shifts a and b the divergence of each
    whole order t is exactly t (a-b)**2/(2 variance), since the sums over integers are the same.
    """
    epsilon, rho = Fraction(0), Fraction(0)
    for part in plan.parts:
        if isinstance(part, NoisePart):
            for a, b in zip(_entries(part, first), _entries(part, second), strict=True):
                if isinstance(part, LaplacePart):
                    epsilon += abs(a - b) / part.scale
                else:
                    rho += (a - b) ** 2 / (2 * part.variance)
    return epsilon, rho


def _entries(part: NoisePart, raw: Aggregates) -> list[int]:
    if part.measure in raw.bins:
        return [entry for bins in raw.bins[part.measure] for entry in bins]
    return list(raw.entries[part.measure])


# ---------------------------------------------------------------- ranks


def rank_loss(part: RankPart, first: Aggregates, second: Aggregates) -> Fraction:
    """The greatest log-likelihood ratio of the draws of one part in all groups, rounded up."""
    total, draw = Fraction(0), rank_draw(part)
    for own, other in zip(first.bins[part.measure], second.bins[part.measure], strict=True):
        here, there = (rank_distances(draw, [bins])[0].tolist() for bins in (own, other))
        with working_precision(200):
            weights = [
                sum(((-arb_of(part.rate * d)).exp() for d in distances), arb(0))
                for distances in (here, there)
            ]
            between = (weights[1] / weights[0]).log()
        most = max(part.rate * (b - a) for a, b in zip(here, there, strict=True))
        total += most + ends(between)[1]
    return total


# ---------------------------------------------------------------- undeclared keys


@dataclass(frozen=True)
class Atom:
    """Outputs of one likelihood ratio: their probability in both tables."""

    here: arb
    there: arb


def key_atoms(plan: Plan, first: Aggregates, second: Aggregates) -> list[list[Atom]]:
    """For each key: what may be shown of it, as atoms; at the working precision.

    A key is not shown; or it is shown with a noisy number of units u and, for each noise part, a
    noisy entry y. Beyond the exact numbers the ratio is constant, so tails are one atom.
    """
    part = plan.partition_selection
    assert isinstance(part, PartitionSelection)
    noises = [p for p in plan.parts if isinstance(p, LaplacePart)]
    found = []
    for key in sorted({*first.keys, *second.keys}, key=repr):
        pairs = [tuple(_at(raw, key, p.measure) for raw in (first, second)) for p in noises]
        n, m = (_at(raw, key, None) for raw in (first, second))
        shown = _laplace_atoms(part.scale, n, m, least=part.threshold)
        hidden = Atom(_hidden(part, n), _hidden(part, m))
        if not n or not m:  # nothing is shown of a key that nobody has
            shown = [Atom(a.here if n else arb(0), a.there if m else arb(0)) for a in shown]
        rest = [
            _laplace_atoms(p.scale, a, b, least=None)
            for p, (a, b) in zip(noises, pairs, strict=True)
        ]
        found.append([hidden, *map(_both, product(shown, *rest))])
    return found


def _at(raw: Aggregates, key: Any, measure: str | None) -> int:
    if key not in raw.keys:
        return 0
    place = list(raw.keys).index(key)
    return raw.units[place] if measure is None else raw.entries[measure][place]


def _hidden(part: PartitionSelection, count: int) -> arb:
    return part.law.cumulative(part.threshold - 1 - count) if count else arb(1)


def _laplace_atoms(scale: Fraction, n: int, m: int, *, least: int | None) -> list[Atom]:
    """All values from `least` up (or all) of n + X and of m + X."""
    from lastbit.laws.discrete import DiscreteLaplace

    law, low, high = DiscreteLaplace(scale), min(n, m), max(n, m)
    atoms = [] if least is not None else [_tail(law, low - 1 - n, low - 1 - m)]
    first = low if least is None else least
    last = max(high, first)
    atoms += [Atom(law.mass(u - n), law.mass(u - m)) for u in range(first, last + 1)]
    # by symmetry P[n + X > last] = P[X <= n - last - 1]
    return [*atoms, _tail(law, n - last - 1, m - last - 1)]


def _tail(law: Any, n: int, m: int) -> Atom:
    return Atom(law.cumulative(n), law.cumulative(m))


def _both(atoms: tuple[Atom, ...]) -> Atom:
    here, there = arb(1), arb(1)
    for atom in atoms:
        here, there = here * atom.here, there * atom.there
    return Atom(here, there)


def hockey_stick(plan: Plan, first: Aggregates, second: Aggregates) -> Fraction:
    """The least delta with P[first] <= exp(epsilon) P[second] + delta for the plan's epsilon."""
    with working_precision(200):
        factor, total = arb_of(plan.cost.epsilon).exp(), Fraction(0)
        for atoms in product(*key_atoms(plan, first, second)):
            atom = _both(atoms)
            total += max(ends(atom.here - factor * atom.there)[1], Fraction(0))
        return total
