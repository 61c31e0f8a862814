"""How far off fair shares are, against a sample of 10 rows of each unit; for `tables.py`.

Both bound a unit to 10 rows and add noise of one law: here, to see small differences, the very same
draws. An error is the distance of a released number from that of the whole table, without bounding
and noise; it is averaged over the groups. Bounding alone takes rows away, so both share a bias, and
it hides the rest; the second half of the figures is the distance from what bounding gives on
average, which is the same for both.

A release differs from the next by noise and, for sampling, by the sample. So each figure is a mean
over releases, and the difference of the two has a standard error: "no worse" allows three of them,
or 1/10,000 of the error. Where bias is all, the two differ by the rounding of weights only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import fmean, stdev
from typing import Any

import duckdb
from measure import Measurement, Target
from tables_data import GROUPS, HIGH, LOW, MAX_ROWS, table_file

from lastbit.kernel.noise import Noisy, noisy_numbers
from lastbit.kernel.sealed import Aggregates, sealed_integers
from lastbit.release.certifying import program_of
from lastbit.release.intervals import columns_of
from lastbit.release.table import table
from lastbit.tables.backends.engines import open_session
from lastbit.tables.compile.duckdb import DUCKDB
from lastbit.tables.compile.statement import grid_integer
from lastbit.tables.compile.steps import Typed
from lastbit.tables.measures import weight_one
from lastbit.tables.plan.plan import Plan, planned
from lastbit.tables.query.aggregates import count, mean

RELEASES = 40
ALLOWED = 3  # standard errors of the difference
ROUNDING = 1e-4  # weights are rounded down to multiples of 2**-20

Numbers = list[float]


@dataclass(frozen=True, slots=True)
class Answers:
    """What was released: for every group, the count and the mean."""

    counts: Numbers
    means: Numbers

    def errors(self, truth: Answers) -> tuple[float, float]:
        """The mean over groups of the absolute error, of counts and of means."""
        return _distance(self.counts, truth.counts), _distance(self.means, truth.means)


def _distance(numbers: Numbers, truth: Numbers) -> float:
    return fmean(abs(a - b) for a, b in zip(numbers, truth, strict=True))


def compared(name: str, rows: int, releases: int = RELEASES) -> list[Measurement]:
    """The errors of both on one table."""
    path = str(table_file(name, rows))
    plan = _plan(path)
    with open_session(plan.card) as session:
        raw = session.aggregates(plan.query, plan.card, plan.measures, secret=None)
    program = program_of(plan)
    shares = sealed_integers(program, raw)
    zeros = {measure.name: [0] * GROUPS for measure in plan.measures}
    nothing = replace(shares, entries=zeros)
    pairs = []
    for sample in _samples(path, plan, releases):
        noise = noisy_numbers(program, nothing).entries
        pairs.append([_answers(plan, sums, noise) for sums in (shares, sample)])
    section = f"error: {name}, 10^{len(str(rows)) - 1} rows"
    return [
        line
        for beside, truth in (("", _whole(path)), ("beside the bias: ", _bounded(path)))
        for line in _lines(section, beside, pairs, truth)
    ]


def _plan(path: str) -> Plan:
    asked = (
        table(path, unit="user_id", max_rows=MAX_ROWS, keys={"region": range(GROUPS)})
        .group_by("region")
        .agg(n=count(), cost=mean("cost", LOW, HIGH, nullable=False))
    )
    return planned(asked.query, asked.card, epsilon=1)


def _samples(path: str, plan: Plan, releases: int) -> Iterator[Aggregates]:
    """Sums over 10 random rows of each unit, on the grid and with the weights of the plan."""
    one = weight_one(plan.card)
    wanted = {
        measure.name: "count(*)"
        if measure.kind == "rows"
        else f"sum({grid_integer(measure, Typed('cost', 'number'), DUCKDB)})"
        for measure in plan.measures
    }
    place = "row_number() OVER (PARTITION BY user_id ORDER BY draw) AS place"
    drawn = f"SELECT *, {place} FROM (SELECT *, random() AS draw FROM '{path}')"
    statement = (
        f"SELECT region, {', '.join(wanted.values())} FROM ({drawn})"
        f" WHERE place <= {MAX_ROWS} GROUP BY region"
    )
    for _ in range(releases):
        found = {region: sums for region, *sums in _rows(statement)}
        entries = {
            measure: [one * int(found[region][i]) if region in found else 0 for region in _REGIONS]
            for i, measure in enumerate(wanted)
        }
        yield Aggregates(
            keys=[(region,) for region in _REGIONS], entries=entries, bins={}, units=[]
        )


_REGIONS = range(GROUPS)


def _answers(plan: Plan, raw: Aggregates, noise: dict[str, list[int]]) -> Answers:
    """What would be released of these sums, with this noise."""
    entries = {
        name: [a + b for a, b in zip(raw.entries[name], draws, strict=True)]
        for name, draws in noise.items()
    }
    noisy = Noisy(keys=[tuple(key) for key in raw.keys], entries=entries)
    counts, means = columns_of(plan, noisy)
    middle = float(Fraction(LOW + HIGH, 2))  # what a reader would take for a missing mean
    return Answers(
        [float(cell.value or 0) for cell in counts.cells],
        [middle if cell.value is None else float(cell.value) for cell in means.cells],
    )


def _whole(path: str) -> Answers:
    """The truth: all rows, no noise."""
    return _truth(f"SELECT region, CAST(1 AS DOUBLE) AS share, cost FROM '{path}'")


def _bounded(path: str) -> Answers:
    """What bounding gives on average, by either way: each row counts with its chance to be kept."""
    sizes = f"SELECT user_id, count(*) AS n FROM '{path}' GROUP BY user_id"
    share = f"least(CAST(1 AS DOUBLE), {MAX_ROWS} / n) AS share"
    return _truth(f"SELECT region, {share}, cost FROM '{path}' JOIN ({sizes}) USING (user_id)")


def _truth(rows: str) -> Answers:
    statement = (
        f"SELECT region, sum(share), sum(share * cost) / sum(share) FROM ({rows})"
        " GROUP BY region ORDER BY region"
    )
    found = _rows(statement)
    assert [row[0] for row in found] == list(_REGIONS)
    return Answers([row[1] for row in found], [row[2] for row in found])


def _rows(statement: str) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        return connection.execute(statement).fetchall()


def _lines(
    section: str, beside: str, pairs: list[list[Answers]], truth: Answers
) -> Iterator[Measurement]:
    errors = [[answers.errors(truth) for answers in pair] for pair in pairs]
    for i, what in enumerate(("count", "mean cost")):
        ours = [pair[0][i] for pair in errors]
        sampled = [pair[1][i] for pair in errors]
        gaps = [a - b for a, b in zip(ours, sampled, strict=True)]
        slack = max(ALLOWED * stdev(gaps) / len(gaps) ** 0.5 / fmean(sampled), ROUNDING)
        yield Measurement(
            section=section,
            what=f"{beside}{what}",
            ours=fmean(ours),
            reference=fmean(sampled),
            reference_name=f"{len(pairs)} row samples",
            unit="",
            target=Target(limit=round(1 + slack, 4), of="ratio"),
        )
