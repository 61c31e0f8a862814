"""Whole intervals: where a number of the whole table lies, rows and values beyond limits included.

The interval of an answer is about noise: it holds the number with limits and without noise.
max_rows makes the rows of heavy units count for less, max_groups leaves groups out, bounds move
values. What they do is bounded by the profile of the data (`rows_per_unit.py`): of all rows at
least the share s counts and at most l are lost, unless somebody has more than B rows.

Law      for a number with the noise interval [low, high]; h = max(high, 0); bounds [a, b]
         count, bin        low to the lesser of h/s and h + l
         count of units    the same with the profile of groups per unit, where max_groups is in play
         sum               upper end: the lesser of high + l max(b, 0) and max(high, high/s); the
                           lower one is that of the negated values. So [low, ...] where a >= 0
         mean              s low + (1-s) a to s high + (1-s) b
         variance          s low to the lesser of s high + (1-s) (b-a)**2 and (b-a)**2/4; the
                           deviation has the roots
         share up to x     s low to s high + 1 - s
         quantile          a to b: its rank moves by up to 1 - s, and no noise was bought for that
         least, greatest   low to high: rows that count for less are looked at all the same
         distinct values   low to unknown
         formula           interval arithmetic over the whole intervals of its parts (`derived.py`),
                           widened by 1 + ln(k)/ln(20) beforehand where there are k of them
         What no profile bounds is unknown (null): the upper end of counts, both ends of means
Theorem  the number of the whole table lies in it if that of the limited table lies in the noise
         interval and the bounds of the profile hold, under the assumptions that are named: the
         noise interval fails in 1/20 of releases at most, the profile in 1/40, for all questions
         and limits at once. So all of it holds in 92.5 % of releases at least
Proof    A unit with n rows has the weight w = min(1, M/n) for each. Rows lost, the sum of (1 - w)
         over rows, are at most l over the table, so in any group and under any WHERE: a unit has no
         more rows there than in the table. So T <= counted + l. With the share s' of the group
         counted, T = counted/s', and s' >= s where the group is the whole (or is assumed to lose no
         larger share: `group_like_table`). Values of lost rows are in [a, b] (`within_bounds`), so
         the sum lost is at most l max(b, 0); or the sum loses no larger share than the rows do
         (`values_alike`), and T = sum/s'. A mean of the whole is s' mean + (1-s') (mean of what is
         lost), which is in [a, b]: widest at the least s'. The variance of a mixture is at least s'
         times that of a part, and at most the mean square distance from the mean of that part. A
         formula: halves of intervals of counts and sums are so that P[abs(X) > half] <= 1/20, with
         log-concave tails, so P[abs(X) > r half] <= 20**-r = 1/(20 k) for r = 1 + ln(k)/ln(20)
Differs  the share of a group is not measured: that it is like the table's is an assumption, and
         named (`about`). A count of values that are there, not missing, loses a share of its own
Checked  tests/release/test_whole.py; the independent checker works it out again
         (`checker/whole.py`)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any, TypeAlias

from lastbit.errors import QueryRefused
from lastbit.exact import lower, upper
from lastbit.ledger import Ledger
from lastbit.release.answer import Answer
from lastbit.release.derived import INTERVALS, for_intervals
from lastbit.release.formulas import evaluate
from lastbit.release.profile import (
    Profile,
    ProfileQuestion,
    groups_query,
    groups_question,
    recorded_profile,
    rows_question,
)
from lastbit.release.rows_per_unit import RowsPerUnit, Share
from lastbit.tables import Aggregate, MarginalsPlan, Plan, UnitJoin, columns_in

Json: TypeAlias = Mapping[str, Any]
Ends: TypeAlias = tuple[float | int | None, float | int | None]
AnyPlan: TypeAlias = Plan | MarginalsPlan

EDGES_NAME = "halves of octaves to 2**16"
_UNKNOWN: Ends = (None, None)
_COUNTED = ("count", "histogram")
_WITHIN = ("sum", "mean", "variance", "std", "quantile", "min", "max", "cdf")
_ADDED = ("count", "count_units", "sum")


def rows_in_play(plan: AnyPlan) -> bool:
    """Whether max_rows can have left out something: not where each unit has one row."""
    query = plan.query
    single = query.per_unit is not None and not query.per_unit.keys and not query.joins
    return plan.card.unit is not None and not single


def groups_in_play(plan: AnyPlan) -> bool:
    """Whether a unit may be in more groups than max_groups lets it be counted in."""
    most, groups = plan.card.max_groups, plan.groups
    limited = most is not None and (groups is None or groups > most)
    return rows_in_play(plan) and bool(plan.query.keys) and limited


def profile_of(plan: AnyPlan, *, books: Ledger, data: str | None) -> Profile | None:
    """What the ledger has of the data by which the limits of this plan are judged; no charge."""
    query, card = plan.query, plan.card
    if data is None or not rows_in_play(plan) or query.per_unit is not None:
        return None
    every: list[ProfileQuestion] = [rows_question(card)]
    wanted = [] if query.joins else list(every)
    try:
        own = rows_question(card, query)
        wanted = [own] + [one for one in wanted if one.query != own.query]
        if groups_in_play(plan) and not query.joins:
            wanted.append(groups_question(card, tuple(key.expression for key in query.keys)))
    except QueryRefused:  # larger than questions may be, so on no record
        pass
    return recorded_profile(wanted, card, books=books, data=data)


def shown_with_profile(record: Json, plan: AnyPlan, *, books: Ledger) -> dict[str, Any] | None:
    """A recorded answer with the whole intervals of a profile that was bought later, if one was."""
    whole, entry = record.get("whole"), record.get("entry")
    if whole is None or entry is None or whole["profile"] is not None:
        return None
    profile = profile_of(plan, books=books, data=books.entry(entry["sequence"]).fingerprint)
    if profile is None:
        return None
    rows, newer = with_whole(plan, record["columns"], record["rows"], profile)
    return {**record, "rows": rows, "whole": newer}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Loss:
    """What a limit leaves of the rows, or of the groups of units."""

    share: Share
    lost: float
    beyond: int | None
    """That nobody has more is assumed; None: it is known."""
    like_table: bool
    """Whether a group is assumed to be like all rows of the profile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Histogram:
    """A recorded histogram of the profile, as the record quotes it."""

    answer: Answer
    numbers: RowsPerUnit
    own: bool
    """Whether it is of the rows that the question looks at, and not of the table's."""

    def to_json(self) -> dict[str, Any]:
        record = self.answer.record
        (part,) = (one for one in record["plan"]["parts"] if one["part"] == "noise")
        size = "scale" if part["mechanism"] == "laplace" else "variance"
        entry = record.get("entry")
        return {
            "question": record["question"],
            "entry": None if entry is None else entry["sequence"],
            "of": "question" if self.own else "table",
            "counts": list(self.numbers.counts),
            "edges": EDGES_NAME,
            "noise": {
                "mechanism": part["mechanism"],
                size: part[size],
                "one": record["plan"]["weight_one"],
            },
            "at_most": self.numbers.at_most,
        }

    def loss(self, most: int, *, single: bool) -> _Loss:
        numbers = self.numbers
        return _Loss(
            share=numbers.share(most),
            lost=numbers.most_lost(most),
            beyond=numbers.limit - 1 if numbers.assumed else None,
            like_table=not (self.own and single),
        )


def with_whole(
    plan: AnyPlan,
    columns: Sequence[Json],
    rows: Sequence[Json],
    profile: Profile | None,
) -> tuple[list[Json], dict[str, Any] | None]:
    """The rows with whole intervals, and what they rest on; None where no limit is in play."""
    whole = _Whole(plan, profile)
    named = [_aggregate_name(column) for column in columns if column["role"] == "value"]
    if not any(whole.limits(name) for name in whole.query.selected):
        return list(rows), None
    hidden = [part.name for part in whole.query.hidden]
    made: list[Json] = []
    for row in rows:
        cells = {
            name: cell
            for names, own in ((hidden, row.get("parts", ())), (named, row["cells"]))
            for name, cell in zip(names, own, strict=True)
            if whole.function(name) != "histogram"
        }
        new = {**row, "cells": [whole.cell(n, c, cells) for n, c in _pairs(named, row["cells"])]}
        if "parts" in row:
            new["parts"] = [whole.cell(n, c, cells) for n, c in _pairs(hidden, row["parts"])]
        made.append(new)
    return made, whole.to_json(dict.fromkeys((*named, *hidden)))


def _pairs(names: Sequence[str], cells: Sequence[Json]) -> list[tuple[str, Json]]:
    return list(zip(names, cells, strict=True))


def _aggregate_name(column: Json) -> str:
    return str(column.get("aggregate", column["name"]))


class _Whole:
    """All that the whole intervals of one answer share."""

    def __init__(self, plan: AnyPlan, profile: Profile | None) -> None:
        self.plan, self.query = plan, plan.query
        self.parts = {part.name: part for part in plan.query.aggregates}
        self.formulas = {one.name: one.expression for one in plan.query.derived}
        self.rows, self.groups = _histograms(plan, profile)
        self.about: dict[str, set[str]] = {}
        self.known_limits: dict[str, list[str]] = {}
        single = not self.query.keys and not isinstance(plan, MarginalsPlan)
        self.single = single
        self.of_rows = None
        if self.rows is not None:
            self.of_rows = self.rows.loss(plan.card.max_rows, single=single)
        self.of_groups = None
        if self.groups is not None and plan.card.max_groups is not None:
            self.of_groups = self.groups.loss(plan.card.max_groups, single=False)

    def function(self, name: str) -> str:
        return self.parts[name].function if name in self.parts else "derived"

    def limits(self, name: str) -> list[str]:
        """Which limits can have left something out of a column."""
        if name not in self.known_limits:
            self.known_limits[name] = self._limits(name)
        return self.known_limits[name]

    def _limits(self, name: str) -> list[str]:
        if name in self.formulas:
            inner = [self.limits(column.name) for column in columns_in(self.formulas[name])]
            return sorted({limit for limits in inner for limit in limits})
        function = self.parts[name].function
        if function == "count_units":
            return ["max_groups"] if groups_in_play(self.plan) else []
        if function == "count_distinct":
            return ["max_values"] if rows_in_play(self.plan) else []
        found = ["bounds"] if function in _WITHIN else []
        rows = rows_in_play(self.plan) and function not in ("min", "max")
        return [*found, *(["max_rows"] if rows else [])]

    def loss(self, name: str) -> _Loss | None:
        units = self.function(name) == "count_units"
        return self.of_groups if units else self.of_rows

    def cell(self, name: str, cell: Json, others: Mapping[str, Json]) -> Json:
        about = self.about.setdefault(name, set())
        if name in self.formulas:
            low, high = self._formula(name, others)
        else:
            low, high = self._ends(self.parts[name], cell, about)
        return {**cell, "whole_low": low, "whole_high": high}

    def _ends(self, part: Aggregate, cell: Json, about: set[str]) -> Ends:
        limits, loss = self.limits(part.name), self.loss(part.name)
        if part.function in _WITHIN:
            about.add("within_bounds")
        if "max_values" in limits:
            return cell["low"], None
        if not {"max_rows", "max_groups"} & set(limits) or cell["low"] is None:
            return cell["low"], cell["high"]
        if loss is not None and loss.beyond is not None:
            about.add("nobody_beyond")
        # rows without a value are not among those that a mean is of
        some = part.expression is not None and part.nullable and part.function != "sum"
        like_table = loss is not None and (loss.like_table or some)
        alike = {"group_like_table"} if like_table else set()
        if part.function in (*_COUNTED, "count_units"):
            return _count(cell, loss, about, alike)
        if part.function == "sum":
            return _sum(cell, loss, part, about, alike | {"values_alike"})
        if part.function == "quantile":
            assert part.bounds is not None
            return lower(part.bounds[0]), upper(part.bounds[1])
        if loss is None:
            return _UNKNOWN
        about |= alike
        return _MIXED[part.function](cell, Fraction(loss.share.low), part)

    def _formula(self, name: str, others: Mapping[str, Json]) -> Ends:
        """The formula over the whole intervals of its parts."""
        expression, about, own = self.formulas[name], self.about[name], others[name]
        if not {"max_rows", "max_groups", "max_values"} & set(self.limits(name)):
            about |= {"within_bounds"} if self.limits(name) else set()
            return own["low"], own["high"]
        names = list(dict.fromkeys(column.name for column in columns_in(expression)))
        wide = 1 + math.log(len(names)) / math.log(20) if len(names) > 1 else 1.0
        if len(names) > 1 and any(self.function(one) not in _ADDED for one in names):
            return _UNKNOWN  # their intervals cannot be widened to hold together
        row: dict[str, Any] = {}
        for one in names:
            mine: set[str] = set()
            low, high = self._ends(self.parts[one], _widened(others[one], wide), mine)
            about |= mine
            row[one.lower()] = None if low is None or high is None else (float(low), float(high))
        found = evaluate(for_intervals(expression), row, INTERVALS)
        if not isinstance(found, tuple) or not all(map(math.isfinite, found)):
            return _UNKNOWN
        ends = [own[end] for end in ("value", "low", "high") if own[end] is not None]
        return min([found[0], *ends]), max([found[1], *ends])

    def to_json(self, names: Mapping[str, Any]) -> dict[str, Any]:
        """What the record says of the limits, by column."""
        said: dict[str, Any] = {}
        for name in names:
            limits, about = self.limits(name), set(self.about.get(name, ()))
            for column in columns_in(self.formulas[name]) if name in self.formulas else ():
                about |= self.about.get(column.name, set())
            loss = None if name in self.formulas else self.loss(name)
            if not {"max_rows", "max_groups"} & set(limits):
                loss = None
            beyond = [one.beyond for one in (self.of_rows, self.of_groups) if one is not None]
            assumed = [one for one in ((loss.beyond,) if loss else beyond) if one is not None]
            share = None if loss is None else loss.share
            said[name] = {
                "limits": limits,
                "share": None if share is None else {k: getattr(share, k) for k in _SHARE},
                "lost": None if loss is None else loss.lost,
                "about": sorted(about),
                "beyond": max(assumed) if "nobody_beyond" in about else None,
                "of": "limited_rows"
                if self.function(name) in _OF and "max_rows" in limits
                else None,
            }
        histograms = {"profile": self.rows, "groups": self.groups}
        quoted = {key: None if one is None else one.to_json() for key, one in histograms.items()}
        return {**quoted, "columns": said}


_SHARE = ("value", "low", "high")
_OF = ("mean", "variance", "std", "quantile", "cdf")


def _histograms(
    plan: AnyPlan, profile: Profile | None
) -> tuple[_Histogram | None, _Histogram | None]:
    """Of rows and of groups per unit, where the profile has them and they bound this question."""
    query = plan.query
    usable = rows_in_play(plan) and query.per_unit is None
    # joins of private tables may have left out rows before they were counted
    left_out = any(isinstance(join, UnitJoin) for join in query.joins)
    if profile is None or not usable or left_out or (query.joins and profile.whole_table):
        return None, None
    rows = groups = None
    if profile.rows is not None and profile.rows_answer is not None:
        own = not profile.whole_table
        numbers = profile.rows.capped(plan.card.at_most)
        rows = _Histogram(answer=profile.rows_answer, numbers=numbers, own=own)
    if groups_in_play(plan) and not query.joins:
        keys = tuple(key.expression for key in plan.query.keys)
        known, asked = profile.groups.get(keys), groups_query(keys, plan.card).to_json()
        for answer in profile.answers:
            if known is not None and answer.record["asked"]["query"] == asked:
                numbers = known.capped(plan.card.at_most)  # no more groups than rows
                groups = _Histogram(answer=answer, numbers=numbers, own=False)
    return rows, groups


def _widened(cell: Json, times: float) -> Json:
    """The cell with its interval wider on both sides; ends are rounded outwards."""
    if times == 1.0 or cell["low"] is None:
        return cell
    low, high, value = (Fraction(cell[end]) for end in ("low", "high", "value"))
    factor = Fraction(times) * (1 + Fraction(1, 1 << 40))
    return {
        **cell,
        "low": lower(value - factor * (value - low)),
        "high": upper(value + factor * (high - value)),
    }


def _count(cell: Json, loss: _Loss | None, about: set[str], alike: set[str]) -> Ends:
    if loss is None:
        return cell["low"], None
    high, share = Fraction(max(cell["high"], 0)), Fraction(loss.share.low)
    most = high + Fraction(loss.lost)
    if share and high / share < most:
        most = high / share
        about |= alike
    return cell["low"], math.ceil(most)


def _sum(cell: Json, loss: _Loss | None, part: Aggregate, about: set[str], alike: set[str]) -> Ends:
    assert part.bounds is not None
    least, greatest = part.bounds
    up = _sum_end(Fraction(cell["high"]), greatest, loss, about, alike)
    down = _sum_end(-Fraction(cell["low"]), -least, loss, about, alike)
    return None if down is None else lower(-down), None if up is None else upper(up)


def _sum_end(
    high: Fraction, greatest: Fraction, loss: _Loss | None, about: set[str], alike: set[str]
) -> Fraction | None:
    """The upper end of a sum of values that are at most `greatest`."""
    if greatest <= 0:
        return high
    if loss is None:
        return None
    most, share = high + Fraction(loss.lost) * greatest, Fraction(loss.share.low)
    if share and max(high, high / share) < most:
        most = max(high, high / share)
        about |= alike
    return most


def _mean(cell: Json, share: Fraction, part: Aggregate) -> Ends:
    assert part.bounds is not None
    low, high = Fraction(cell["low"]), Fraction(cell["high"])
    least, greatest = part.bounds
    ends = share * low + (1 - share) * least, share * high + (1 - share) * greatest
    return lower(min(ends[0], low)), upper(max(ends[1], high))


def _variance(cell: Json, share: Fraction, part: Aggregate) -> Ends:
    assert part.bounds is not None
    low, high, wide = Fraction(cell["low"]), Fraction(cell["high"]), part.bounds[1] - part.bounds[0]
    most = min(share * high + (1 - share) * wide**2, wide**2 / 4)
    return lower(share * low), upper(max(most, high))


def _deviation(cell: Json, share: Fraction, part: Aggregate) -> Ends:
    squares = {**cell, "low": Fraction(cell["low"]) ** 2, "high": Fraction(cell["high"]) ** 2}
    low, high = _variance(squares, share, part)
    assert low is not None and high is not None
    start, end = math.nextafter(math.sqrt(low), 0.0), math.nextafter(math.sqrt(high), math.inf)
    return min(start, cell["low"]), max(end, cell["high"])


def _fraction(cell: Json, share: Fraction, part: Aggregate) -> Ends:
    low, high = Fraction(cell["low"]), Fraction(cell["high"])
    return lower(share * low), upper(max(share * high + 1 - share, high))


_MIXED: Mapping[str, Callable[[Json, Fraction, Aggregate], Ends]] = MappingProxyType(
    {"mean": _mean, "variance": _variance, "std": _deviation, "cdf": _fraction}
)
