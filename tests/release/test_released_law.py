"""100,000 releases through the public door, from a seeded source, against the exact law."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from lastbit.kernel.noise import rank_distances
from lastbit.laws.discrete import DiscreteLaplace, ExpWeighted
from lastbit.release.table import table
from lastbit.tables.plan.parts import PartitionSelection, RankPart
from lastbit.tables.plan.plan import planned
from lastbit.tables.query.aggregates import count, count_units, median
from tests.kernel.unsealing import rank_draw
from tests.laws.frequency import assert_frequency, suspicious
from tests.release.pretend import seed

duckdb = pytest.importorskip("duckdb")

CELLS = 5000
NAMES = [f"k{i}" for i in range(CELLS)]


def people(each: str) -> Any:
    """Groups that are all alike, so that one release is thousands of a small table."""
    rows = f"SELECT 'k' || g AS g, x, g * 100 + x AS who FROM range({CELLS}) a(g), ({each}) b(x)"
    return duckdb.sql(rows).to_arrow_table()


def hits_of(job: Any, releases: int, **price: Any) -> dict[Any, int]:
    """How often each row was released."""
    found: dict[Any, int] = {}
    for _ in range(releases):
        for row in job.release(**price):
            seen = tuple(cell.value for cell in row.cells)
            found[seen] = found.get(seen, 0) + 1
    return found


def assert_law(
    hits: dict[Any, int], trials: int, chances: dict[Any, float], wrong: dict[Any, float]
) -> None:
    """Each row as often as the law says; a law that is somewhat off would have been seen."""
    for value, chance in chances.items():
        assert_frequency(hits.get(value, 0), trials=trials, probability=chance)
    assert any(
        suspicious(hits.get(v, 0), trials=trials, probability=chance, false_alarm=2.0**-40)
        for v, chance in wrong.items()
    )


def chance(law: Any, value: int) -> float:
    return float(law.probability(value).ends[0])


@pytest.mark.evidence
def test_releases_of_two_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two counts of declared keys, the two together: independent, each at half of epsilon."""
    seed(monkeypatch, 71)
    rows = people("SELECT unnest([1, 2, 3])")
    job = table(rows, each_row=True, keys={"g": NAMES}, name="t").group_by("g")
    job = job.agg(n=count(), m=count("x"))
    hits = hits_of(job, 6, epsilon=2)

    def both(scale: str) -> dict[Any, float]:
        law = DiscreteLaplace(scale)
        return {
            (3 + i, 3 + j): chance(law, i) * chance(law, j)
            for i in range(-2, 3)
            for j in range(-2, 3)
        }

    assert_law(hits, 6 * CELLS, both("1"), both("1.2"))


@pytest.mark.evidence
def test_releases_of_found_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """How often a key of three units is shown at all, and with which number."""
    seed(monkeypatch, 72)
    rows = people("SELECT unnest([1, 2, 3, 3])")  # one of them twice
    job = table(rows, unit="who", max_rows=2, max_groups=1, name="t").group_by("g")
    job = job.agg(u=count_units())
    plan = planned(job.query, job.card, epsilon=1, delta="1/10")
    part = plan.partition_selection
    assert isinstance(part, PartitionSelection) and part.scale == 1 and part.threshold == 3
    hits = hits_of(job, 20, epsilon=1, delta="1/10")
    assert min(hits)[0] == 3

    def shown(scale: str) -> dict[Any, float]:
        return {(u,): chance(DiscreteLaplace(scale), u - 3) for u in range(3, 8)}

    assert_law(hits, 20 * CELLS, shown("1"), shown("1.1"))
    tail = float(DiscreteLaplace(1).cdf(0).ends[0])
    assert_frequency(sum(hits.values()), trials=20 * CELLS, probability=tail)


@pytest.mark.evidence
def test_releases_of_a_median(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of five candidates; the two draws for the interval take no part in the value."""
    seed(monkeypatch, 73)
    rows = people("SELECT unnest([0, 1, 1, 3, 3])")
    job = table(rows, each_row=True, keys={"g": NAMES}, name="t").group_by("g")
    job = job.agg(m=median("x", 0, 4))
    plan = planned(job.query, job.card, epsilon=4)
    first = plan.parts[0]
    assert isinstance(first, RankPart) and first.role == "value" and first.candidates == 5
    hits = hits_of(job, 6, epsilon=4)
    (distances,) = rank_distances(rank_draw(first), [[1, 2, 0, 2, 0]])

    def drawn(factor: Fraction) -> dict[Any, float]:
        law = ExpWeighted([-factor * first.rate * int(d) for d in distances])
        return {(float(value),): chance(law, value) for value in range(5)}

    assert_law(hits, 6 * CELLS, drawn(Fraction(1)), drawn(Fraction(5, 4)))
