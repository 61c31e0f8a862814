"""For tests alone: the sealed integers of a statement, opened, and steps that no checker has seen.

What they are made of is what the kernel's own functions read of a `Program`, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any

from lastbit.kernel.noise import Noisy, noisy_numbers
from lastbit.kernel.program import RankDraw, Step, _step
from lastbit.kernel.sealed import Aggregates, sealed_integers
from lastbit.tables import RawRows
from lastbit.tables.compile.duckdb import DUCKDB
from lastbit.tables.compile.statement import UNITS, Statement, statement
from tests.tables import connecting


def opened(query: Any, measures: Any, raw: RawRows) -> Aggregates:
    """The integers of the rows that an engine gave."""
    program: Any = SimpleNamespace(
        scan=query, groups=query.groups, measures=measures, marginals=None, steps=()
    )
    return sealed_integers(program, raw)


def aggregates(query: Any, card: Any, measures: Any, *, secret: str | None) -> Aggregates:
    """The integers of a question about a card's own source."""
    raw = connecting.aggregates(query, card, measures, secret=secret)
    return opened(query, measures, raw)


def marginal_counts(query: Any, card: Any, marginals: Sequence[Any]) -> list[list[int]]:
    """The entries of every marginal of a card's own source."""
    return opened_marginals(query, marginals, connecting.marginal_counts(query, card, marginals))


def opened_rows(
    query: Any, measures: Any, ran: Statement, rows: Iterable[tuple[Any, ...]]
) -> Aggregates:
    """The integers of rows that a test has fetched."""
    return opened(query, measures, RawRows(ran, rows))


def opened_marginals(query: Any, marginals: Sequence[Any], raw: RawRows) -> list[list[int]]:
    """The entries of every marginal."""
    program: Any = SimpleNamespace(scan=query, marginals=tuple(marginals), steps=())
    return [list(table) for table in sealed_integers(program, raw).tables.values()]


def step_of(part: Any) -> Step:
    """What runs for a part of a plan, whether or not a checker would accept it."""
    return _step(part.to_json(), [])


def rank_draw(part: Any) -> RankDraw:
    """The draw of one rank."""
    step = step_of(part)
    assert isinstance(step, RankDraw)
    return step


def noised_unchecked(plan: Any, raw: Aggregates) -> Noisy:
    """Every step of a plan, run once: for mutants, which are no programs."""
    program: Any = SimpleNamespace(marginals=None, steps=tuple(map(step_of, plan.parts)))
    return noisy_numbers(program, raw)


def rows_of(query: Any, card: Any, measures: Any, found: Aggregates) -> RawRows:
    """Rows as an engine would give them for these integers."""
    ran = statement(query, card, measures, secret="0" * 64, dialect=DUCKDB)
    none = [None] * len(ran.sums)
    rows: list[tuple[Any, ...]] = []
    for at, key in enumerate(found.keys):
        sums = [found.entries[name][at] for name in ran.sums]
        rows.append((0, *key, None, None, *sums))
        for name, block in ran.distinct.items():
            rows.append((block, *key, None, found.entries[name][at], *none))
        for name, block in ran.bins.items():
            weights = enumerate(found.bins[name][at])
            rows += [(block, *key, place, weight, *none) for place, weight in weights]
        counted = [m.name for m in measures if m.kind in ("units", "shares")]
        if found.units or counted:
            number = found.units[at] if found.units else found.entries[counted[0]][at]
            rows.append((UNITS, *key, None, number, *none))
    return RawRows(ran, rows)
