"""Can one row be seen through time? Hostile questions, with and without it, on the real engine.

    python bench/timing.py                  208 expressions, 10^5 rows (a quarter of an hour), save
    python bench/timing.py --expressions 35 --rows 20000     a quick look: nothing is saved

The grammar (`tests/tables/hostile.py`) makes expressions as large as a question may be, in which
one chosen row does the work: overflows at each level, texts that double, patterns that go back,
casts that fail. Each statement runs in turns on a table with that row and on one in which it is
somebody else's; the medians of both are compared. Two tables that both lack the row are measured
in the same way: what they differ by is the machine's own noise. The engine has one thread, and its
processor time is measured, so that other programs do not count.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import report  # noqa: E402

from lastbit.tables.compile.duckdb import DUCKDB  # noqa: E402
from lastbit.tables.compile.rows import relation  # noqa: E402
from lastbit.tables.compile.statement import statement  # noqa: E402
from lastbit.tables.compile.steps import identifier  # noqa: E402
from lastbit.tables.plan.sensitivity import measures_of  # noqa: E402
from lastbit.tables.query.expression import Call  # noqa: E402
from tests.tables.connecting import connected  # noqa: E402
from tests.tables.hostile import CHOSEN, card, counting, expressions  # noqa: E402

EXPRESSIONS, ROWS, TURNS = 208, 10**5, 5
LEAST_TIME = 5e-3
SOURCE = (
    "SELECT range AS who, CASE WHEN range = 77 THEN '{}' ELSE 'bob' END AS name, range % 90 AS age,"
    " range / 7 AS cost, '2024-02-30' AS note, DATE '2024-02-29' AS day FROM range({})"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """Medians in seconds: with the row, without it, and without it once more."""

    family: str
    calls: int
    with_row: float
    without: float
    again: float

    @property
    def ratio(self) -> float:
        return max(self.with_row, self.without) / max(min(self.with_row, self.without), LEAST_TIME)

    @property
    def difference(self) -> float:
        return abs(self.with_row - self.without)

    @property
    def noise(self) -> float:
        return max(self.again, self.without) / max(min(self.again, self.without), LEAST_TIME)


def fetched(connection: Any, text: str) -> object:
    return connection.execute(text).fetchall()


def medians(runs: list[Callable[[], object]]) -> list[float]:
    """Of each of these, run in turns."""
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(TURNS):
        for place, run in enumerate(runs):
            start = time.process_time()
            run()
            times[place].append(time.process_time() - start)
    return [statistics.median(one) for one in times]


def measured(connection: Any, rows: int, count: int) -> Iterator[Timed]:
    tables = {"with_row": CHOSEN, "without": "bob", "again": "bob"}
    name = identifier(relation())
    for table, who in tables.items():
        connection.execute(f"CREATE TEMP TABLE {table} AS {SOURCE.format(who, rows)}")
    for family, expression in expressions(random.Random(3), count):
        query = counting(expression)
        measures = measures_of(query)[0]
        sql = statement(query, card(), measures, secret="s", dialect=DUCKDB).sql
        texts = [sql.replace(name, table) for table in tables]
        runs: list[Callable[[], object]] = [partial(fetched, connection, text) for text in texts]
        found = dict(zip(tables, medians(runs), strict=True))
        calls = expression.calls if isinstance(expression, Call) else 0
        timed = Timed(family=family, calls=calls, **found)
        print(f"{timed.family} {timed.ratio:.3f} {timed.noise:.3f}", file=sys.stderr, flush=True)
        yield timed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--expressions", type=int, default=EXPRESSIONS)
    parser.add_argument("--rows", type=int, default=ROWS)
    wanted = parser.parse_args()
    with connected() as connection:
        connection.execute("SET threads = 1")
        found = list(measured(connection, wanted.rows, wanted.expressions))
    summary = {
        "expressions": len(found),
        "rows": wanted.rows,
        "worst ratio": round(max(one.ratio for one in found), 3),
        "worst ratio of noise": round(max(one.noise for one in found), 3),
        "worst difference in ms": round(1e3 * max(one.difference for one in found), 2),
        "worst difference of noise in ms": round(
            1e3 * max(abs(one.again - one.without) for one in found), 2
        ),
        "slowest in s": round(max(one.with_row for one in found), 3),
        "median of with/without": round(
            statistics.median(one.with_row / one.without for one in found), 4
        ),
    }
    for what, value in summary.items():
        print(f"{what:32} {value}")
    for one in sorted(found, key=lambda one: -one.ratio)[:5]:
        print(
            f"  {one.family:12} {one.calls:4} calls: {1e3 * one.with_row:8.2f} ms with,"
            f" {1e3 * one.without:8.2f} without, {1e3 * one.again:8.2f} again"
        )
    if (wanted.expressions, wanted.rows) == (EXPRESSIONS, ROWS):
        record: dict[str, Any] = {"machine": report.machine(), "summary": summary}
        record["measured"] = [asdict(one) for one in found]
        place = ROOT / "bench" / "results" / "timing.json"
        place.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
