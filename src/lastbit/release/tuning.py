"""Choosing max_rows and bounds privately, at a stated price.

Both come from a noisy histogram over public bins, an ordinary answer: planned, charged, recorded,
certified. What is computed from it is post-processing, and free.

max_rows. Let L be the rows lost (the number of rows less those that count), P the ± of a count and
G the number of groups of the answers to come. What is suggested makes L/G + P least among public
candidates: bias and noise of a count in a group. `rows_per_unit.py` has L and its intervals.

Bounds. All rows of a unit count for 1 together (max_rows = 1), so one unit moves the histogram of
values by 1, whatever max_rows is; the shares are those of units, each by the shares of its rows.
Law      let the bins whose count is hardly noise alone keep theirs and the others have 0. Suggested
         is the shortest stretch of bins with a share of 99 % of that, say; from 0 on where it
         begins near 0, since what little lies between is lost in noise, bin by bin
Theorem  the interval of the share that truly lies in the stretch is `share_interval`, with
         g = 1 - s inside and -s outside: at the true share their sum over all units is 0. It holds
         for all stretches together in 95 % of releases, so for the one that was chosen too
Source   the histogram over powers of two: Wilson et al. 2020 (approximate bounds)
Differs  all in exact noise of a recorded answer; every suggestion has its interval
Checked  tests/release/test_tuning.py
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from lastbit.arguments import two
from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import Number, exact_text, positive, probability, rational, whole
from lastbit.ledger import Ledger
from lastbit.release.answer import Answer
from lastbit.release.intervals import errors_of
from lastbit.release.private_table import Table
from lastbit.release.profile import each_unit_once, rows_query, value_edges
from lastbit.release.release import released
from lastbit.release.rows_per_unit import (
    CANDIDATES,
    RowsPerUnit,
    Share,
    counts_of,
    noise_of,
    share_interval,
)
from lastbit.tables import Aggregate, DataCard, Query, count, histogram, planned

_CHANCE = 1 / 20
_PLANNED = 64
_NEAR = 4
_EQUAL = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One max_rows: what it keeps, and the noise it costs."""

    max_rows: int
    share: Share
    """Of all rows, if nobody has `limit` rows."""
    lost: float
    """About how many rows of a group are lost by it."""
    error: float
    """The ± of a count, at the price of the answers to come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MaxRowsSuggestion:
    """The max_rows suggested, what others would do, and the answer that it was read off."""

    max_rows: int
    options: tuple[Option, ...]
    limit: int
    """That nobody has as many rows is assumed, unless it is publicly known."""
    beyond: int
    """At most this number of units have as many rows or more, with what the intervals say."""
    price: Fraction
    """Of the answers to come, for which the ± are."""
    groups: int
    answer: Answer
    at_most: int | None = None

    @property
    def line(self) -> str:
        """The line for the card's [unit]."""
        return f"max_rows = {self.max_rows}"

    def kept(self, max_rows: int) -> Share:
        """The share that any other max_rows would keep."""
        rows = RowsPerUnit.of(self.answer.record, self.at_most)
        return rows.share(whole(max_rows, "max_rows", least=1))

    def __str__(self) -> str:
        """Everything that was found, in a table."""
        head = ("max_rows", "rows that count", "lost, about", "count ±")
        rows = [head, *(option_row(option) for option in self.options)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(c.rjust(w) for c, w in zip(r, widths, strict=True)) for r in rows]
        return "\n".join([*lines, *limit_words(self), f"suggested: {self.line}"])


def option_row(option: Option) -> tuple[str, str, str, str]:
    """An option as texts: max_rows, share, rows lost, the ± of a count."""
    lost, error = f"{round(option.lost):,}", f"± {-(-option.error // 1):,.0f}"
    return f"{option.max_rows:,}", option.share.at_least, lost, error


def limit_words(found: MaxRowsSuggestion) -> list[str]:
    """What the shares are about."""
    most, sure = found.limit - 1, found.at_most is not None and found.at_most < found.limit
    unless = f", unless somebody has more than {most:,} rows (at most {found.beyond:,} have)"
    return [f'Shares are of all rows. "At least" holds in 97.5 % of releases{unless * (not sure)}.']


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundsSuggestion:
    """The bounds suggested for a column, and the share of values that they hold."""

    column: str
    bounds: tuple[Fraction, Fraction]
    share: Share
    answer: Answer

    @property
    def line(self) -> str:
        """The line for the card's [columns.…]."""
        return f"bounds = [{', '.join(map(exact_text, self.bounds))}]"

    def __str__(self) -> str:
        low, high = map(exact_text, self.bounds)
        return f"{self.column}: {low} to {high} holds {self.share} of the values"


def suggest_max_rows(
    table: Table,
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    price: Number = 1,
    groups: int | None = None,
    ledger: str | os.PathLike[str] | Ledger | None = None,
    who: str | None = None,
    fresh: bool = False,
) -> MaxRowsSuggestion:
    """The max_rows that makes bias and noise of a count least together, found privately.

    `epsilon` (or `rho`) is paid for it; `price` is that of the answers to come, in the same
    currency. Of a table nothing was asked of yet, it is about all rows; of a question, about the
    rows and groups of that question. `groups` says how many groups answers will have.

    >>> import duckdb
    >>> rows = duckdb.sql("SELECT range // 3 AS patient FROM range(30_000)")
    >>> from lastbit.release import table
    >>> suggest_max_rows(table(rows, unit="patient", max_rows=1), epsilon=1).max_rows
    3
    """
    query = _question(table)
    asked = rows_query(query, table.card)
    declared = 1 if query is None else query.groups or 1
    among = declared if groups is None else whole(groups, "groups", least=1)
    later = positive(price, "price")
    each = _count_error(table.card, later, rho=rho is not None)
    card = each_unit_once(table.card)
    plan = planned(asked, card, epsilon=epsilon, delta=delta, rho=rho)
    answer = released(asked, card, plan, ledger=ledger, who=who, fresh=fresh)
    # at_most is of the table's rows, which a join may repeat
    known = table.card.at_most if query is None or not query.joins else None
    rows = RowsPerUnit.of(answer.record, known)
    total = rows.rows()
    options = tuple(
        Option(
            max_rows=most,
            share=rows.share(most),
            lost=(total - rows.rows(most)) / among,
            error=each * most,
        )
        # and the one that loses nothing below the limit
        for most in sorted({*(most for most in CANDIDATES if most < rows.limit), rows.limit - 1})
    )
    best = min(options, key=lambda option: option.lost + option.error)
    return MaxRowsSuggestion(
        max_rows=best.max_rows,
        options=options,
        limit=rows.farthest + 1,
        beyond=rows.beyond,
        price=later,
        groups=among,
        answer=answer,
        at_most=known,
    )


def _question(table: Table) -> Query | None:
    """What was asked of the table; None where nothing was yet."""
    if not isinstance(table, Table):
        raise WrongType("table", problem="is not a table", remedy="pass lb.table(...)")
    if table.is_new:
        return None
    if table.sql_text is None and not table.asked:
        return replace(table, asked=(("n", count()),)).query
    return table.draft.query


def _count_error(card: DataCard, price: Fraction, *, rho: bool) -> float:
    """The ± of a count for each row of max_rows, at this price."""
    query = Query(
        table=card.name, aggregates=(Aggregate(name="n", function="count", nullable=False),)
    )
    at = replace(each_unit_once(card), max_rows=_PLANNED, max_groups=None)
    paid: dict[str, Any] = {"rho" if rho else "epsilon": price}
    return float(errors_of(planned(query, at, **paid))["n"] / _PLANNED)


# ---------------------------------------------------------------- bounds


def suggest_bounds(
    table: Table,
    column: str,
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    share: Number = Fraction(99, 100),
    between: tuple[Number, Number] | None = None,
    ledger: str | os.PathLike[str] | Ledger | None = None,
    who: str | None = None,
    fresh: bool = False,
) -> BoundsSuggestion:
    """Bounds that hold about this share of a column's values, found privately.

    They are among powers of two and their middles, of either sign; or, where `between` says which
    values are plausible, among 64 equal steps. Each unit counts once, however many rows it has.

    >>> import duckdb
    >>> from lastbit.release import table
    >>> rows = duckdb.sql("SELECT range AS patient, range % 100 AS age FROM range(10_000)")
    >>> suggest_bounds(table(rows, unit="patient", max_rows=1), "age", epsilon=1).line
    'bounds = [0, 128]'
    """
    if _question(table) is not None and (table.sql_text or table.asked or table.keys):
        remedy = "pass the table; where(...) may come before"
        raise InvalidParameter("table", problem="is asked something already", remedy=remedy)
    wanted = probability(rational(share, "share"), "share", zero=False)
    # one unit counts for one row in all
    rows = replace(table.rows, base=each_unit_once(table.card))
    kind = rows.card.column(column).type
    # CSV columns of no type are cast to numbers by being aggregated
    if kind not in ("integer", "number") and column.lower() not in table.untyped:
        problem = f"is of type {kind}, and only bounds of numbers are chosen"
        raise InvalidParameter(f"column {column[:60]}", problem=problem, remedy="name a number")
    edges = _edges("integer" if kind == "integer" else "number", between)
    asked = replace(table, rows=rows).agg(values=histogram(column, edges))
    query = asked.query
    plan = planned(query, asked.card, epsilon=epsilon, delta=delta, rho=rho)
    answer = released(query, asked.card, plan, ledger=ledger, who=who, fresh=fresh)
    bounds, found = bounds_of(answer, edges, wanted, public=between is not None)
    return BoundsSuggestion(
        column=rows.card.column(column).name, bounds=bounds, share=found, answer=answer
    )


def _edges(kind: str, between: tuple[Number, Number] | None) -> tuple[Fraction, ...]:
    if between is not None:
        low, high = (
            rational(end, "between") for end in two(between, "between", remedy="pass (low, high)")
        )
        if not low < high:
            raise InvalidParameter("between", problem="does not rise", remedy="pass low, high")
        return tuple(low + (high - low) * Fraction(k, _EQUAL) for k in range(_EQUAL + 1))
    return value_edges(kind)


def bounds_of(
    answer: Answer, edges: Sequence[Fraction], share: Fraction, *, public: bool
) -> tuple[tuple[Fraction, Fraction], Share]:
    """The shortest stretch of bins with this share of what is hardly noise, and its interval."""
    counts, noise = counts_of(answer.record), noise_of(answer.record["plan"])
    least = noise.least_clear(counts)
    clear = [count if count > least else 0 for count in counts]
    total = sum(clear)
    if not total or (not public and (clear[0] or clear[-1])):
        problem = "cannot be told from noise" if not total else "go beyond 2**40"
        remedy = "pay more, or say by {between} which values are plausible"
        raise InvalidParameter("bounds", problem=problem, remedy=remedy, between=None)
    first, last = _with_zero(*_shortest(clear, edges, total * share), edges)
    inside = [first <= place <= last for place in range(len(counts))]
    bins = [(1.0 if one else 0.0, 1.0) for one in inside]
    beta = _CHANCE / (len(counts) * (len(counts) + 1))  # two sides of each stretch
    low, high = share_interval(counts, noise, beta, greatest=bins, least=bins)
    within = sum(count for count, one in zip(counts, inside, strict=True) if one)
    value = min(max(within / max(sum(counts), 1), low), high)
    return (edges[first], edges[last + 1]), Share(value=value, low=low, high=high)


def _shortest(
    counts: Sequence[int], edges: Sequence[Fraction], wanted: Fraction
) -> tuple[int, int]:
    """The first and last bin of the shortest stretch that has as many."""
    widths: list[tuple[Fraction, int, int]] = []
    for first in range(len(counts)):
        running = 0
        for last in range(first, len(counts)):
            running += counts[last]
            if running >= wanted:
                widths.append((edges[last + 1] - edges[first], first, last))
                break
    _, first, last = min(widths)
    return first, last


def _with_zero(first: int, last: int, edges: Sequence[Fraction]) -> tuple[int, int]:
    """The stretch, from 0 on if its near end is within a quarter of its far end."""
    low, high = edges[first], edges[last + 1]
    if 0 in edges:
        zero = edges.index(Fraction(0))
        if 0 < low <= high / _NEAR:
            return zero, last
        if low / _NEAR <= high < 0:
            return first, zero - 1
    return first, last
