"""Whole intervals: where a number of the whole table lies, rows and values beyond limits included.

The interval of an answer is about noise: it holds the number with limits and without noise.
max_rows makes the rows of heavy units count for less, max_groups leaves groups out, bounds move
values. What they do is bounded by the profile of the data (`rows_per_unit.py`): of all rows at
least the share s counts and at most l are lost, unless somebody has more than B rows.

Law      for a number with the noise interval [low, high]; h = max(high, 0); bounds [a, b]
         count, bin        low to the lesser of h/s and h + l
         count of units    the same with the profile of groups per unit where max_groups is in
                           play, h being 2 sqrt((1-s) h) more: which groups count is by chance
         sum               upper end: the lesser of high + l max(b, 0) and, unless a < 0 < b,
                           max(high, high/s); the lower one is that of the negated values. So
                           [low, ...] where a >= 0
         mean              low - c d(low) to high + c d(high), where c = (1-s)/3 and
                           d(m) = max(0, min(m-a, b-m)), the distance to the nearer bound
         variance          (1+s)/2 low to the lesser of (2-s) high and (b-a)**2/4, or high; the
                           deviation has the roots
         share up to x     as a mean of numbers from 0 to 1
         quantile          [low, high] where these aim at levels u and v with u + c min(u, 1-u) <= q
                           and v - c min(v, 1-v) >= q (`with_ends`); else a to b
         least, greatest   low to high: rows that count for less are looked at all the same
         distinct values   low to unknown
         k x/y             of counts, and sums of values of one sign, over the same rows:
                           low - c abs(low) to high + c abs(high)
         other formulas    interval arithmetic over the whole intervals of their parts,
                           widened by 1 + ln(k)/ln(20) beforehand where there are k of them
         bounds by lastbit  where a column's bounds were chosen from its profile, sums, means,
                           deviations and what is made of them go as much farther as `clamped.py`
                           estimates that values lie beyond; unknown where no histogram says it
         What no profile bounds is unknown (null): the upper end of counts, both ends of means
Theorem  the number of the whole table lies in it if that of the limited table lies in the noise
         interval and the bounds of the profile hold, under the assumptions that are named: the
         noise interval fails in 1/20 of releases at most, the profile in 1/20 (1/40 by its
         ends of bins, 1/40 by their middles), for all questions and limits at once. So all of it
         holds in 90 % of releases at least
Proof    A unit with n rows has the weight w = min(1, M/n) for each. Rows lost, the sum of (1 - w)
         over rows, are at most l over the table, so in any group and under any WHERE: a unit has no
         more rows there than in the table. So T <= counted + l. With the share s' of the group
         counted, T = counted/s', and s' >= s where the group is the whole (or is assumed to lose no
         larger share: `group_like_table`). Values of lost rows are in [a, b] (`within_bounds`), so
         the sum lost is at most l max(b, 0); or the sum loses no larger share than the rows do
         (`values_alike`), and T = sum/s'; values of both signs cancel out by chance in what counts
         and in what is lost, each by itself, so of them it is not assumed. Of what is lost
         `rows_alike` says: its mean r is at most d(m)/3 from the mean m of what counts; its
         variance is at least half of V, that of what counts, and its mean square distance from m
         at most 2 V; of its ratio y to x the same as of means that are not negative; its share of
         values up to any x is at most min(F, 1-F)/3 from the share F of what counts. Then
         - a mean of the whole is s' m + (1-s') r, so at most c d(m) from m, and m - c d(m) and
           m + c d(m) rise with m, as c < 1 and d has slopes from -1 to 1;
         - the variance of the whole is s' V + (1-s') V_r + s' (1-s') (m-r)**2 for the variance V_r
           of what is lost: at least s' V + (1-s') V/2, at most s' V + (1-s') 2 V;
         - x/y of the whole is (1-t) R + t R_r for the ratios R and R_r of what counts and what is
           lost, t being the share of y that is lost: at most 1-s by `values_alike`, or of counts
           by the profile. So it is at most c abs(R) from R;
         - the q-quantile v of the whole has F(v) + c min(F(v), 1-F(v)) >= q: so F(v) >= u, as that
           rises with F; and likewise the share below v is at most the level above.
         A formula: halves of intervals of counts and sums are
         so that P[abs(X) > half] <= 1/20, with log-concave tails, so P[abs(X) > r half] <= 20**-r =
         1/(20 k) for r = 1 + ln(k)/ln(20).
         Of whole numbers X it is P[abs(X) >= j] that is log-concave from j = 0 on, j = half + 1: so
         these get r - 1 more, and whole ends
Differs  the share of a group is not measured: that it is like the table's is an assumption, and
         named (`about`). A count of values that are there, not missing, loses a share of its own.
         Earlier records lack `rows_alike`, and allow for any values of lost rows: the checker has
         the law of both
Checked  tests/release/test_whole.py; the independent checker works it out again
         (`checker/whole.py`)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias

from lastbit.errors import QueryRefused
from lastbit.exact import lower, root_above, upper
from lastbit.ledger import Ledger
from lastbit.release.answer import Answer
from lastbit.release.clamped import Clamped, clamps_of
from lastbit.release.enclosures import INTERVALS, for_intervals
from lastbit.release.formulas import evaluate
from lastbit.release.profile import (
    Profile,
    groups_query,
    groups_question,
    recorded_profile,
    rows_question,
    values_question,
)
from lastbit.release.rows_per_unit import RowsPerUnit, Share
from lastbit.tables import (
    Aggregate,
    Call,
    ColumnName,
    Constant,
    DataCard,
    Expression,
    MarginalsPlan,
    Plan,
    Query,
    UnitJoin,
    columns_in,
)

Json: TypeAlias = Mapping[str, Any]
Ends: TypeAlias = tuple[float | int | None, float | int | None]
AnyPlan: TypeAlias = Plan | MarginalsPlan

EDGES_NAME = "halves of octaves to 2**16"
_UNKNOWN: Ends = (None, None)
ALIKE = Fraction(1, 3)
"""How far the mean of lost rows is, in parts of the way from the counted one to the nearer bound.

Of 285 means of groups of six real tables, with three limits each, 87 % are within a third, 19 of 20
within a half and 79 % within a quarter: hardly anything is lost where it is more.
"""
_LEVELS = 200
"""Levels of quantiles' ends are parts of this: finer ones gain little."""
_WITHIN = ("sum", "mean", "variance", "std", "quantile", "min", "max", "cdf")
_OF = ("mean", "variance", "std", "quantile", "cdf")
_ADDED = ("count", "count_units", "sum")
_ROWS = frozenset({"max_rows", "max_groups"})


def rows_in_play(query: Query, card: DataCard) -> bool:
    """Whether max_rows can have left out something: not where each unit has one row."""
    single = query.per_unit is not None and not query.per_unit.keys and not query.joins
    return card.unit is not None and not single


def groups_in_play(plan: AnyPlan) -> bool:
    """Whether a unit may be in more groups than max_groups lets it be counted in."""
    most, groups = plan.card.max_groups, plan.groups
    limited = most is not None and (groups is None or groups > most)
    return rows_in_play(plan.query, plan.card) and bool(plan.query.keys) and limited


def profile_of(plan: AnyPlan, *, books: Ledger, data: str | None) -> Profile | None:
    """What the ledger has of the data by which the limits of this plan are judged; no charge."""
    query, card = plan.query, plan.card
    if data is None:
        return None
    chosen = [one.name for one in card.columns.values() if one.bounds_chosen]
    wanted = [values_question(_with_open_bounds(card), name) for name in chosen]
    if query.per_unit is not None:
        wanted += [rows_question(card)] if card.unit is not None and not query.joins else []
    elif rows_in_play(query, card):
        wanted += [] if query.joins else [rows_question(card)]
        with suppress(QueryRefused):  # larger than questions may be, so on no record
            own = rows_question(card, query)
            wanted = [own] + [one for one in wanted if one.query != own.query]
            if groups_in_play(plan) and not query.joins:
                keys = tuple(key.expression for key in query.keys)
                wanted.append(groups_question(card, keys))
    return recorded_profile(wanted, card, books=books, data=data) if wanted else None


def _with_open_bounds(card: DataCard) -> DataCard:
    """The card before bounds were chosen, by which their histograms were bought."""
    columns = {
        name: replace(one, bounds=None, bounds_chosen=False) if one.bounds_chosen else one
        for name, one in card.columns.items()
    }
    return replace(card, columns=columns)


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
    """What a limit leaves of the rows, or of the groups of units, by a recorded histogram."""

    share: Share
    lost: float
    hidden: float
    """About how many rows units beyond lose besides, whom noise may hide."""
    evenly: bool
    """Whether units are assumed to have the middles of their bins on average."""
    beyond: int | None
    """That nobody has more is assumed; None: it is known."""
    like_table: bool
    """Whether a group is assumed to be like all rows of the profile."""
    quoted: dict[str, Any]
    """The histogram, as the record quotes it."""


def _loss(answer: Answer, numbers: RowsPerUnit, most: int, *, own: bool, single: bool) -> _Loss:
    record = answer.record
    (part,) = (one for one in record["plan"]["parts"] if one["part"] == "noise")
    noise = {name: part[name] for name in ("mechanism", "scale", "variance") if name in part}
    entry, loss = record.get("entry"), numbers.loss(most)
    return _Loss(
        share=loss.share,
        lost=loss.lost,
        evenly=loss.evenly,
        hidden=numbers.hidden(most),
        beyond=numbers.farthest if numbers.assumed else None,
        like_table=not single,
        quoted={
            "question": record["question"],
            "entry": None if entry is None else entry["sequence"],
            "of": "question" if own else "table",
            "counts": list(numbers.counts),
            "edges": EDGES_NAME,
            "noise": {**noise, "one": record["plan"]["weight_one"]},
            "at_most": numbers.at_most,
        },
    )


def _losses(plan: AnyPlan, profile: Profile | None) -> tuple[_Loss | None, _Loss | None]:
    """Of rows and of groups, where the profile has them and they bound this question."""
    query, card = plan.query, plan.card
    # joins of private tables may have left out rows before they were counted
    left_out = any(isinstance(join, UnitJoin) for join in query.joins) or query.per_unit is not None
    if profile is None or left_out or not rows_in_play(plan.query, plan.card):
        return None, None
    rows = groups = None
    own, single = not profile.whole_table, not query.keys and not isinstance(plan, MarginalsPlan)
    single &= own or query.where is None
    if profile.rows is not None and profile.rows_answer is not None and (own or not query.joins):
        # at_most is of the table's rows, which a join may repeat
        numbers = profile.rows if query.joins else profile.rows.capped(card.at_most)
        if not numbers.is_open:
            rows = _loss(profile.rows_answer, numbers, card.max_rows, own=own, single=single)
    if groups_in_play(plan) and not query.joins:
        keys = tuple(key.expression for key in query.keys)
        known, asked = profile.groups.get(keys), groups_query(keys, card).to_json()
        for answer in profile.answers:
            if known is not None and not known.is_open and answer.record["asked"]["query"] == asked:
                numbers = known.capped(card.at_most)  # no more groups than rows
                groups = _loss(answer, numbers, card.max_groups or 1, own=False, single=False)
    return rows, groups


def with_whole(
    plan: AnyPlan, columns: Sequence[Json], rows: Sequence[Json], profile: Profile | None
) -> tuple[list[Json], dict[str, Any] | None]:
    """The rows with whole intervals, and what they rest on; None where no limit is in play."""
    whole = _Whole(plan, profile)
    shown = [
        column.get("aggregate", column["name"]) for column in columns if column["role"] == "value"
    ]
    hidden = [part.name for part in plan.query.hidden]
    if not any(whole.limits[name] for name in shown):
        return list(rows), None
    made: list[Json] = []
    for row in rows:
        places = {"cells": shown, **({"parts": hidden} if "parts" in row else {})}
        pairs = {
            place: list(zip(names, row[place], strict=True)) for place, names in places.items()
        }
        # of a histogram this has one bin, and no formula is made of it
        cells = dict(pair for some in pairs.values() for pair in some)
        ends = {place: [whole.cell(*pair, cells) for pair in some] for place, some in pairs.items()}
        made.append({**row, **ends})
    return made, whole.to_json(dict.fromkeys((*shown, *hidden)))


class _Whole:
    """All that the whole intervals of one answer share."""

    def __init__(self, plan: AnyPlan, profile: Profile | None) -> None:
        self.parts = {part.name: part for part in plan.query.aggregates}
        self.formulas = {one.name: one.expression for one in plan.query.derived}
        self.of_rows, self.of_groups = _losses(plan, profile)
        self.about: dict[str, set[str]] = {name: set() for name in (*self.parts, *self.formulas)}
        rows, groups = rows_in_play(plan.query, plan.card), groups_in_play(plan)
        self.limits = {name: _limits(part, rows, groups) for name, part in self.parts.items()}
        for name in self.formulas:
            inner = (limit for one in self.names(name) for limit in self.limits[one])
            self.limits[name] = sorted(set(inner))
        self.clamps = clamps_of(plan.query, plan.card, profile or Profile())
        rows_there = None if profile is None or profile.rows is None else profile.rows.total
        self.rows_there, self.has_groups = rows_there, bool(plan.query.keys)

    def names(self, name: str) -> list[str]:
        """The columns that a formula is made of; of an aggregate itself."""
        if name not in self.formulas:
            return [name]
        return list(dict.fromkeys(column.name for column in columns_in(self.formulas[name])))

    def loss(self, name: str) -> _Loss | None:
        """What is known of what a column lost; None: nothing, or it lost nothing."""
        if name in self.formulas or not _ROWS & set(self.limits[name]):
            return None
        return self.of_groups if self.parts[name].function == "count_units" else self.of_rows

    def cell(self, name: str, cell: Json, others: Mapping[str, Json]) -> Json:
        """The cell with its whole interval; `others` are the cells of its row."""
        if name in self.formulas:
            low, high = self._formula(name, others)
        else:
            low, high = self._ends(self.parts[name], cell, self.about[name])
        return {**cell, "whole_low": low, "whole_high": high}

    def _ends(self, part: Aggregate, cell: Json, about: set[str]) -> Ends:
        """What the limits on rows leave out, and then what chosen bounds clamp."""
        low, high = self._ends_of_rows(part, cell, about)
        if part.name not in self.clamps or (low is None and high is None):
            return low, high
        clamp = self.clamps[part.name]
        if clamp is None:
            return _UNKNOWN
        about |= {"values_thin_out"} | ({"group_like_table"} if self.has_groups else set())
        if low is None or high is None:
            return _beyond_one_bound(part, (low, high), clamp)
        return _beyond_bounds(part, (low, high), clamp, self.rows_there)

    def _ends_of_rows(self, part: Aggregate, cell: Json, about: set[str]) -> Ends:
        limits, loss = self.limits[part.name], self.loss(part.name)
        if "max_values" in limits:
            return cell["low"], None
        if not _ROWS & set(limits) or cell["low"] is None:
            return cell["low"], cell["high"]
        # rows without a value are not among those that a mean is of, and a bin has but some rows
        some = part.expression is not None and part.nullable and part.function != "sum"
        some |= part.function == "histogram"
        alike = {"group_like_table"} if loss is not None and (loss.like_table or some) else set()
        if part.function in ("count", "histogram", "count_units"):
            high = _upper_end(_most_counted(part, cell, loss), Fraction(1), loss, about, alike)
            return cell["low"], None if high is None else math.ceil(high)
        assert part.bounds is not None
        least, greatest = part.bounds
        if part.function == "sum":
            alike |= {"values_alike"}
            if loss is not None and least < 0 < greatest:  # what cancels out has no share
                loss = replace(loss, share=replace(loss.share, low=0.0))
            up = _upper_end(Fraction(cell["high"]), greatest, loss, about, alike)
            down = _upper_end(-Fraction(cell["low"]), -least, loss, about, alike)
            return None if down is None else lower(-down), None if up is None else upper(up)
        alike |= {"rows_alike"}
        if part.function == "quantile":
            if loss is None or not aims_beyond(part, loss.share.low):
                return lower(least), upper(greatest)
            about |= alike
            return cell["low"], cell["high"]
        if loss is None:
            return _UNKNOWN
        about |= alike
        return _mixed(part.function, cell, loss.share.low, (least, greatest))

    def _formula(self, name: str, others: Mapping[str, Json]) -> Ends:
        """The formula over the whole intervals of its parts."""
        own, names, row = others[name], self.names(name), {}
        clamped = not self.clamps.keys().isdisjoint(names)
        if not clamped and not {"max_values", *_ROWS} & set(self.limits[name]):
            return own["low"], own["high"]
        if self._is_ratio(name):
            ends = self._ratio(own, names, self.about[name])
            return self._ratio_beyond_bounds(ends, names, self.about[name]) if clamped else ends
        several = len(names) > 1
        if several and any(self.parts[one].function not in _ADDED for one in names):
            return _UNKNOWN  # their intervals cannot be widened to hold together
        wide = Fraction(1 + math.log(len(names)) / math.log(20)) * (1 + Fraction(several, 1 << 40))
        for one in names:
            ends = self._ends(self.parts[one], _widened(others[one], wide), self.about[name])
            if ends[0] is None or ends[1] is None:
                return _UNKNOWN
            row[one.lower()] = lower(Fraction(ends[0])), upper(Fraction(ends[1]))
        found = evaluate(for_intervals(self.formulas[name]), row, INTERVALS)
        if not isinstance(found, tuple) or not all(map(math.isfinite, found)):
            return _UNKNOWN
        inside = [own[end] for end in ("value", "low", "high") if own[end] is not None]
        return min([found[0], *inside]), max([found[1], *inside])

    def _is_ratio(self, name: str) -> bool:
        """Whether a formula is the quotient of two sums or counts over the same rows."""
        names = self.names(name)
        if self.of_rows is None or not _is_quotient(self.formulas[name], names):
            return False
        parts = [self.parts[one] for one in names]
        return all(part.function == "count" or _has_one_sign(part) for part in parts)

    def _ratio(self, cell: Json, names: Sequence[str], about: set[str]) -> Ends:
        """A quotient of which the rows that are lost have another one, by a half at most."""
        assert self.of_rows is not None
        if cell["low"] is None:
            return _UNKNOWN
        below = self.parts[names[1]]
        about |= {"rows_alike"} | ({"values_alike"} if below.function == "sum" else set())
        some = below.function == "count" and below.expression is not None and below.nullable
        about |= {"group_like_table"} if self.of_rows.like_table or some else set()
        low, high = Fraction(cell["low"]), Fraction(cell["high"])
        stray = _stray(self.of_rows.share.low)
        return lower(low - stray * abs(low)), upper(high + stray * abs(high))

    def _ratio_beyond_bounds(self, ends: Ends, names: Sequence[str], about: set[str]) -> Ends:
        """A quotient whose parts are each as far off as chosen bounds may make them."""
        low, high = ends
        if low is None or high is None:
            return ends
        about |= {"values_thin_out"} | ({"group_like_table"} if self.has_groups else set())
        factors = [[Fraction(1)] * 2 for _ in names]
        for place, name in enumerate(names):
            if name in self.clamps:
                if (clamp := self.clamps[name]) is None:
                    return _UNKNOWN
                factors[place] = _factors(self.parts[name], clamp)
        above, below = factors
        if below[0] <= 0:
            return _UNKNOWN
        times = above[0] / below[1], above[1] / below[0]
        corners = [Fraction(end) * one for end in (low, high) for one in times]
        return lower(min(corners)), upper(max(corners))

    def to_json(self, names: Iterable[str]) -> dict[str, Any]:
        """What the record says of the limits, by column."""
        said: dict[str, Any] = {}
        for name in names:
            limits, loss, parts = self.limits[name], self.loss(name), self.names(name)
            about = self.about[name].union(*(self.about[one] for one in parts))
            losses = [one for one in map(self.loss, parts) if one is not None]
            far = [one.beyond for one in losses if one.beyond is not None]
            about |= {"spread_evenly"} if any(one.evenly for one in losses) else set()
            about |= {"within_bounds"} if "bounds" in limits else set()
            about |= {"nobody_beyond"} if far else set()
            means = name in self.parts and self.parts[name].function in _OF
            said[name] = {
                "limits": limits,
                "share": None if loss is None else asdict(loss.share),
                "lost": None if loss is None else loss.lost,
                "hidden": None if loss is None else loss.hidden,
                "about": sorted(about),
                "beyond": max(far, default=None),
                "of": "limited_rows" if means and "max_rows" in limits else None,
            }
        quoted = {"profile": self.of_rows, "groups": self.of_groups}
        return {
            **{k: None if one is None else one.quoted for k, one in quoted.items()},
            "columns": said,
        }


def _factors(part: Aggregate, clamp: Clamped) -> list[Fraction]:
    """How much smaller and larger a sum of one sign may be than what is clamped makes it."""
    less, more = map(Fraction, clamp.parts)
    if part.bounds is not None and part.bounds[0] < 0:  # of these the lower ones are the larger
        less, more = more, less
    return [1 - less, 1 + more]


def _beyond_one_bound(part: Aggregate, ends: Ends, clamp: Clamped) -> Ends:
    """The same of a sum of one sign whose farther end is unknown: the other moves by its part."""
    if not _has_one_sign(part) or _factors(part, clamp)[0] < 0:
        return _UNKNOWN
    low, high = ends
    below, above = map(Fraction, clamp.parts)
    if low is not None:
        return lower(Fraction(low) - below * abs(Fraction(low))), None
    assert high is not None
    return None, upper(Fraction(high) + above * abs(Fraction(high)))


def _beyond_bounds(
    part: Aggregate, ends: tuple[float | int, float | int], clamp: Clamped, rows: float | None
) -> Ends:
    """The ends, as much farther out as values that are clamped may take them."""
    low, high = Fraction(ends[0]), Fraction(ends[1])
    if part.function in ("variance", "std"):
        squared = high**2 if part.function == "std" else high
        most = upper(squared + Fraction(clamp.squares))
        return ends[0], math.nextafter(
            math.sqrt(most), math.inf
        ) if part.function == "std" else most
    if part.function == "mean":
        below, above = clamp.strays(float(low), float(high))
    else:
        assert part.bounds is not None
        largest = float(max(abs(low), abs(high)))
        if part.bounds[0] < 0 < part.bounds[1]:  # the sum may be small, and what is clamped not
            if rows is None:
                return _UNKNOWN
            largest = max(largest, clamp.size * rows)
        below, above = (one * largest for one in clamp.parts)
    return lower(low - Fraction(below)), upper(high + Fraction(above))


def _most_counted(part: Aggregate, cell: Json, loss: _Loss | None) -> Fraction:
    """The upper end of what is counted; of units, two deviations of which groups are left out."""
    high = Fraction(max(cell["high"], 0))
    if part.function != "count_units" or loss is None:
        return high
    return high + 2 * root_above(high * (1 - Fraction(loss.share.low)))


def aims_beyond(part: Aggregate, share: float) -> bool:
    """Whether the interval of a quantile holds it, whichever rows alike are lost."""
    if part.ends is None or part.level is None:
        return False
    (low, high), stray = part.ends, _stray(share)
    below, above = low + stray * min(low, 1 - low), high - stray * min(high, 1 - high)
    return below <= part.level <= above


def with_ends(query: Query, share: float) -> Query:
    """The query whose quantiles have intervals that hold, whichever rows alike are lost."""
    parts = (_with_ends(part, Fraction(share)) for part in query.aggregates)
    return replace(query, aggregates=tuple(parts))


def _with_ends(part: Aggregate, share: Fraction) -> Aggregate:
    if part.function != "quantile" or part.level is None or not part.intervals:
        return part
    stray = _stray(share)
    low = math.floor(_level_below(part.level, stray) * _LEVELS)
    high = math.ceil((1 - _level_below(1 - part.level, stray)) * _LEVELS)
    known = low > 0 and high < _LEVELS and share < 1  # else they would be the bounds
    return replace(part, ends=(Fraction(low, _LEVELS), Fraction(high, _LEVELS))) if known else part


def _level_below(level: Fraction, stray: Fraction) -> Fraction:
    """The u for which u + stray min(u, 1-u) is this level."""
    half = level / (1 + stray)
    return half if 2 * half <= 1 else (level - stray) / (1 - stray)


def _limits(part: Aggregate, rows: bool, groups: bool) -> list[str]:
    """Which limits can have left something out, where those on rows and groups are in play."""
    match part.function:
        case "count_units":
            return ["max_groups"] if groups else []
        case "count_distinct":
            return ["max_values"] if rows else []
        case "min" | "max":
            return ["bounds"]
    bounds = ["bounds"] if part.function in _WITHIN else []
    return [*bounds, *(["max_rows"] if rows else [])]


def _widened(cell: Json, times: Fraction) -> Json:
    """The cell with its interval so many times as wide on both sides, rounded outwards."""
    if times == 1 or cell["low"] is None:
        return cell
    value = Fraction(cell["value"])
    low, high = (value + times * (Fraction(cell[end]) - value) for end in ("low", "high"))
    if isinstance(cell["low"], int):
        return {**cell, "low": math.floor(low - times + 1), "high": math.ceil(high + times - 1)}
    return {**cell, "low": lower(low), "high": upper(high)}


def _upper_end(
    high: Fraction, greatest: Fraction, loss: _Loss | None, about: set[str], alike: set[str]
) -> Fraction | None:
    """The upper end of a sum of values that are at most `greatest`; counts are sums of ones."""
    if greatest <= 0:
        return high
    if loss is None:
        return None
    lost, share = Fraction(loss.lost) + Fraction(loss.hidden), Fraction(loss.share.low)
    most = high + lost * greatest
    if share and max(high, high / share) < most:
        most = max(high, high / share)
        about |= alike
    return most


def _stray(share: float | Fraction) -> Fraction:
    """How far the whole may be from what counts, in parts of what `rows_alike` measures by."""
    return (1 - Fraction(share)) * ALIKE


def _mixed(
    function: str, cell: Json, share: float, bounds: tuple[Fraction, Fraction]
) -> tuple[float, float]:
    """A mean, variance, deviation or share up to a point, where lost rows are like the others."""
    low, high, lost = Fraction(cell["low"]), Fraction(cell["high"]), 1 - Fraction(share)
    if function in ("mean", "cdf"):
        stray = _stray(share)
        least, greatest = bounds if function == "mean" else (Fraction(0), Fraction(1))
        before, after = (max(min(x - least, greatest - x), Fraction(0)) for x in (low, high))
        return lower(low - stray * before), upper(high + stray * after)
    root, most = function == "std", (bounds[1] - bounds[0]) ** 2 / 4
    low, high = (low**2, high**2) if root else (low, high)
    start = lower((1 - lost / 2) * low)
    end = upper(max(min((1 + lost) * high, most), high))
    if not root:
        return start, end
    outer = math.nextafter(math.sqrt(start), 0.0), math.nextafter(math.sqrt(end), math.inf)
    return min(outer[0], cell["low"]), max(outer[1], cell["high"])


def _has_one_sign(part: Aggregate) -> bool:
    """Whether it is a sum of values of which none is above 0, or none below."""
    bounds = part.bounds
    return part.function == "sum" and bounds is not None and not bounds[0] < 0 < bounds[1]


def quotient_parts(query: Query) -> frozenset[str]:
    """The columns that an answer shows in quotients of two of them alone."""
    seen, used = set(query.selected), set[str]()
    for one in query.derived:
        names = [column.name for column in columns_in(one.expression)]
        (used if _is_quotient(one.expression, names) else seen).update(names)
    return frozenset(used - seen)


def _is_quotient(formula: Expression, names: Sequence[str]) -> bool:
    """Whether it is a multiple of the first of two columns by the second."""
    return len(names) == 2 and _powers(formula) == {names[0]: 1, names[1]: -1}


def _powers(formula: Expression) -> dict[str, int] | None:
    """Of a product of columns and constants the exponents, columns in their order; else None."""
    match formula:
        case ColumnName(name):
            return {name: 1}
        case Constant(value) if isinstance(value, int | Fraction) and value:
            return {}
        case Call("to_number", (inner,)):
            return _powers(inner)
        case Call("*" | "/" as sign, parts):
            every = [_powers(part) for part in parts]
            powers: dict[str, int] = {}
            for place, one in enumerate(every):
                if one is None or powers.keys() & one.keys():
                    return None
                turned = -1 if sign == "/" and place else 1
                powers |= {name: turned * power for name, power in one.items()}
            return powers
    return None
