"""Limits that nobody has declared, chosen from a profile: max_rows, max_groups, bounds.

Law      of the public candidates those are taken for which the whole intervals of this question at
         this price are likely to be narrowest: noise, by the plan that it would have, and what may
         be lost, by the profile. Errors are relative to the size of a column, and added up. With
         max_rows = M, of T rows the part k counts, at least the share s (`rows_per_unit.py`) and at
         most l are lost; h is the noise, in parts of T, G groups there being. The error is
             (min((k + h)/s, k + h + l z/T) - (k - h))/2    of a count (z = 1) or of a sum,
             h/k + (1 - s) d/3                              of a mean, or quotient of two columns,
             20 h/k + (1 - s)/3                             of a quantile,
         z being the size of the bounds b over typ, the mean of abs(values), and d the distance of
         the mean from the nearer bound, over typ. With max_groups = g the
         same holds of counts of units, with pairs of units and groups for rows. Of a sum or mean h
         has z as a factor, and 3 c(b)/typ is added, c(b) the mean distance of values from b
Theorem  what is chosen is a function of the profile, the question, the card and the price: it is
         post-processing of released answers, and costs nothing. Whatever is chosen, the answer is
         as private as its price says: weights, choices and clamps hold for any limit
Differs  T, P and the values are estimates by the profile's counts, so the limits are good ones and
         not the best. Where a profile is of the whole table and a question looks at a part of it,
         units have no more rows there: noise is larger than it need be, and bias smaller
Checked  tests/release/test_limits.py
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise, product
from typing import Any, TypeVar

from lastbit.errors import QueryRefused
from lastbit.exact import exact_text
from lastbit.release.clamped import hidden_cells, visible_cells, within_reach
from lastbit.release.intervals import errors_of
from lastbit.release.profile import (
    Keys,
    Profile,
    ProfileQuestion,
    Values,
    groups_question,
    rows_question,
    standing_out,
    values_question,
)
from lastbit.release.question import Question
from lastbit.release.rows_per_unit import CANDIDATES, EDGES, RowsPerUnit
from lastbit.release.whole import ALIKE, quotient_parts
from lastbit.tables import Aggregate, DataCard, Query, columns_in, planned, unit_name

Bounds = tuple[Fraction, Fraction]
AnyQuestion = TypeVar("AnyQuestion", bound=Question)
_SUMMED = ("sum", "mean", "variance", "std")
_MIXED = ("mean", "variance", "std", "cdf")
_ADDED = ("count", "count_distinct", "sum", "histogram")
_SOME_GROUPS = 12  # of undeclared keys nobody knows how many there are
_TYPICAL = 3
"""Where bounds are all that is known, values are about one in so many parts of the greatest."""
_PART = 3
"""A WHERE leaves about one row in so many, where nobody knows."""
_NEAR, _FAR = 4, 32
_CLAMPED = 3
"""What is clamped counts for so much of noise, which varies around it; what noise may hide, for a
half: it widens one side of whole intervals.
"""
_BINS_MORE = 4
_GUESS = 10
_RANKS = 20
"""A quantile is off by so many times what a count is: by about ten times in rank, of 9 to 11 that
plans say, and by twice that in its value where values are spread evenly from 0 up.
"""


# ---------------------------------------------------------------- what is left out


def open_columns(question: Question) -> tuple[str, ...]:
    """The columns whose bounds the question needs, and nobody has declared."""
    draft = question.draft
    if draft is question:
        return ()
    inner = draft.query.per_unit
    read = draft.query.aggregates if inner is None else inner.columns
    parts = (part.expression for part in read if part.expression is not None)
    named = {one.name for part in parts for one in columns_in(part) if one.table is None}
    without = [name for name in sorted(question.unbounded_columns) if name in named]
    return tuple(name for name in without if _is_needed(question, name, without))


def _is_needed(question: Question, column: str, without: Sequence[str]) -> bool:
    others = {name: (Fraction(0), Fraction(1)) for name in without if name != column}
    try:
        question.with_bounds(others).query  # noqa: B018
    except QueryRefused:
        return True
    return False


def open_questions(question: Question) -> tuple[ProfileQuestion, ...]:
    """The histograms from which the limits of this question are chosen; none: all is declared."""
    card, query = question.card, question.draft.query
    wanted: list[ProfileQuestion] = []
    if card.max_rows_open:
        # rows that meet in a join are no rows of the table: the question has its own histogram
        wanted.append(rows_question(card, query if query.joins else None))
    keys = _keys_to_count(query, card)
    if keys is not None:
        wanted.append(groups_question(card, keys))
    return (*wanted, *(values_question(card, column) for column in open_columns(question)))


def _keys_to_count(query: Query, card: DataCard) -> Keys | None:
    """The keys by which units are counted, where max_groups is left out."""
    by_unit = any(part.function == "count_units" for part in query.aggregates)
    if card.unit is None or not by_unit or not query.keys or query.joins or query.per_unit:
        return None
    if card.max_groups is not None or not (card.max_rows_open or query.groups is None):
        return None
    return tuple(key.expression for key in query.keys)


# ---------------------------------------------------------------- choosing


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    """One max_rows with the bounds that are best beside it, and the error of both."""

    error: float
    max_rows: int
    bounds: Mapping[str, Bounds]


def with_limits(
    question: AnyQuestion, profile: Profile, price: Mapping[str, Any]
) -> tuple[AnyQuestion, tuple[str, ...]]:
    """The question with all limits, those that were left out chosen by a profile; and its words."""
    columns, card = open_columns(question), question.card
    if not open_questions(question):
        return question, ()
    draft = question.draft  # read once: SQL is parsed each time
    groups = _best_groups(question, draft, profile, price)
    sizes = None if profile.rows is None else _Sizes(profile.rows)
    tried = [card.max_rows] if sizes is None or not card.max_rows_open else sizes.candidates
    choices = [
        _choice(question, draft, profile, price, columns, sizes, most, groups) for most in tried
    ]
    best = min(choices, key=lambda choice: (choice.error, choice.max_rows))
    chosen = _with_numbers(question, best.max_rows, groups).with_bounds(best.bounds)
    return chosen, tuple(_words(card, chosen.card, best.bounds, "From the profile, lastbit chose"))


def with_guess(question: AnyQuestion) -> tuple[AnyQuestion, tuple[str, ...]]:
    """The question with stated guesses for limits that were left out, before there is a profile."""
    one = Fraction(1)
    steps = {name: question.card.column(name).step or one for name in open_columns(question)}
    bounds = {name: (Fraction(0), 100 * max(step, one)) for name, step in steps.items()}
    guessed = _with_numbers(question, _GUESS, _GUESS).with_bounds(bounds)
    return guessed, tuple(
        _words(question.card, guessed.card, bounds, "Until then, lastbit assumes")
    )


def _with_numbers(question: AnyQuestion, most: int, groups: int | None) -> AnyQuestion:
    """The question by its card with these limits in place of those that were left out."""
    card, query = question.card, question.draft.query
    if card.unit is None:
        return question
    needs_groups = _keys_to_count(query, card) is not None
    if card.max_rows_open:
        assumed = card.max_groups is None and not needs_groups and query.groups is None
        own = groups if needs_groups else most if assumed else card.max_groups
        numbers: dict[str, Any] = {"max_rows": most, "max_rows_open": False, "max_groups": own}
        return question.by_card(replace(card, **numbers, max_groups_assumed=assumed))
    return question.by_card(replace(card, max_groups=groups)) if needs_groups else question


def _words(
    open_card: DataCard, card: DataCard, bounds: Mapping[str, Bounds], how: str
) -> Iterator[str]:
    unit = unit_name(card.unit or "row")
    if open_card.max_rows_open:
        rows = "1 row" if card.max_rows == 1 else f"{card.max_rows:,} rows"
        yield f"{how} at most {rows} of each {unit}."
    if card.max_groups != open_card.max_groups and not card.max_groups_assumed:
        groups = "1 group" if card.max_groups == 1 else f"{card.max_groups:,} groups"
        yield f"{how} at most {groups} of each {unit}."
    for column, (low, high) in bounds.items():
        ends = f"{exact_text(low)} to {exact_text(high)}"
        yield f"{how} bounds of {unit_name(column)}: {ends}."


class _Sizes:
    """How many rows, or groups, units have: the likely numbers of units by the middles of bins."""

    def __init__(self, numbers: RowsPerUnit) -> None:
        self.numbers = numbers
        counts = numbers.counts[:-1]  # the last bin has no end
        units = standing_out(counts, numbers.noise, range(len(counts)))
        bins = list(pairwise(EDGES[:-1]))
        self.sizes = [((a + b - 1) / 2, n) for (a, b), n in zip(bins, units, strict=True) if n]
        most = max(b - 1 for (_, b), n in zip(bins, units, strict=True) if n)
        clear, most = min(numbers.limit, numbers.farthest), max(most, numbers.farthest)
        self.candidates = sorted({*(one for one in CANDIDATES if one < most), clear, most})
        """Limits to compare: the last one loses nothing that stands out of the noise."""
        self.total = max(self.count(most), 1.0)

    def count(self, most: int) -> float:
        """About how many rows count with this limit."""
        return math.fsum(n * min(size, most) for size, n in self.sizes)

    def counted(self, most: int) -> float:
        """About which part of all rows counts with this limit."""
        return min(self.count(most) / self.total, 1.0)

    def missing(self, most: int) -> float:
        """The largest part of the rows that may be missing, by the profile."""
        return 1 - self.numbers.loss(most).share.low

    def whole_half(self, most: int | None, noise: float, greatest: float = 1.0) -> float:
        """Half the whole interval of a count, or sum, whose noise is this part of all.

        `greatest` is the greatest value of a row in a sum; their mean is 1.
        """
        if most is None:
            return noise
        counted, loss = self.counted(most), self.numbers.loss(most)
        share, lost = loss.share.low, loss.lost + self.numbers.hidden(most)
        highs = [counted + noise + lost / self.total * greatest]
        highs += [(counted + noise) / share] if share else []
        return (min(highs) - counted + noise) / 2


def _best_groups(
    question: Question, draft: Question, profile: Profile, price: Mapping[str, Any]
) -> int | None:
    """The max_groups for which counts of units are least off; None: all groups."""
    query, card = draft.query, question.card
    keys = _keys_to_count(query, card)
    if keys is None:
        return card.max_groups
    numbers = profile.groups.get(keys) or profile.rows
    if numbers is None:
        return _GUESS
    known, sizes = query.groups, _Sizes(numbers)
    own: list[int | None] = list(sizes.candidates)
    if known is not None:
        own = [*(most for most in own if most is not None and most < known), None]
    units = [part.name for part in query.aggregates if part.function == "count_units"]
    errors = []
    for most in own:
        limited = _with_numbers(draft, card.max_rows, most)
        halves = _halves(limited.query, limited.card, price)
        off = sum(float(halves[name]) for name in units) / len(units)
        errors.append(sizes.whole_half(most, off * (known or _SOME_GROUPS) / sizes.total))
    return own[errors.index(min(errors))]


def _choice(
    question: Question,
    draft: Question,
    profile: Profile,
    price: Mapping[str, Any],
    columns: Sequence[str],
    sizes: _Sizes | None,
    most: int,
    groups: int | None,
) -> _Choice:
    limited = _with_numbers(draft, most, groups)
    query = limited.query
    halves = _halves(query, limited.card, price)
    total = _rows_there(profile, columns, question.card) if sizes is None else sizes.total
    stray = 0.0 if sizes is None else sizes.missing(most) * float(ALIKE)
    counted = 1.0 if sizes is None else sizes.counted(most)
    each = (query.groups or _SOME_GROUPS) / total
    if query.where is not None and (profile.whole_table or sizes is None):
        each *= _PART
    bounds: dict[str, Bounds] = {}
    ratios: dict[str, float] = {}
    stretches: dict[str, _Stretch] = {}
    quotients, error = quotient_parts(query), 0.0
    for column in columns:
        users = [part for part in query.aggregates if _reads(part, column)]
        _, one = draft.card.column(column).number_bounds or (0, 1)  # the stand-in
        off = sum(float(halves[part.name] / one) for part in users if part.function in _SUMMED)
        centred = all(part.function != "sum" for part in users)
        step, values = question.card.column(column).step, profile.values[column.lower()]
        off = off * each / (max(counted, 1e-3) if centred else 1)
        strays = stray * sum(part.function in _MIXED for part in users)
        stretch = _best_bounds(values, off, strays, centred=centred, step=step)
        bounds[column], ratios[column] = stretch.bounds, stretch.size / float(one)
        stretches[column] = stretch
        error += _CLAMPED * stretch.clamped
    for part in query.aggregates:
        if part.function == "count_units":
            continue
        scale = 1.0
        if part.function in _SUMMED and part.bounds is not None:
            inside = [ratios[column] for column in columns if _reads(part, column)]
            declared = float(max(map(abs, part.bounds))) / _TYPICAL or 1.0
            scale = math.prod(inside) if inside else 1 / declared
        noise = float(halves[part.name]) * each * scale
        read = [stretches[column] for column in columns if _reads(part, column)]
        if part.function in _ADDED and part.name not in quotients:
            size = math.prod(one.size for one in read)
            error += noise if sizes is None else sizes.whole_half(most, noise, size)
            continue
        near = 1.0 if part.function in ("quantile", *_ADDED) else math.prod(o.near for o in read)
        times = _RANKS if part.function == "quantile" else 1
        error += times * noise / max(counted, 1e-3) + stray * near
    return _Choice(error=error, max_rows=most, bounds=bounds)


def _reads(part: Aggregate, column: str) -> bool:
    named = () if part.expression is None else columns_in(part.expression)
    return any(one.table is None and one.name == column for one in named)


def _rows_there(profile: Profile, columns: Sequence[str], card: DataCard) -> float:
    """About how many rows there are, where nobody has counted those of units: as many as units."""
    units = [sum(profile.values[column.lower()].counts) for column in columns]
    return max(float(max(units, default=0)), float(card.rows or 0), 1.0)


def _halves(query: Query, card: DataCard, price: Mapping[str, Any]) -> Mapping[str, Fraction]:
    """The ± of each column: of quantiles that of a count, of means that of the sum."""
    parts = tuple(map(_as_sum_or_count, query.aggregates))
    bare: dict[str, Any] = {
        "derived": (),
        "shown": None,
        "having": None,
        "order": (),
        "limit": None,
    }
    return errors_of(planned(replace(query, aggregates=parts, **bare), card, **price))


def _as_sum_or_count(part: Aggregate) -> Aggregate:
    if part.function in ("count", "count_units", "count_distinct", "sum"):
        return part
    if part.function in _SUMMED:
        return replace(part, function="sum")
    return Aggregate(
        name=part.name, function="count", expression=part.expression, nullable=part.nullable
    )


# ---------------------------------------------------------------- bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stretch:
    """Bounds; their size, and how far values lie outside of them, relative to the mean value."""

    bounds: Bounds
    size: float
    clamped: float
    near: float
    """How far their mean is from the nearer bound."""


def _best_bounds(
    values: Values, off: float, stray: float, *, centred: bool, step: Fraction | None
) -> _Stretch:
    """The bounds for which noise, off times their size, and what is clamped are least together.

    Stray times the distance of the mean from the nearer bound is what lost rows add to it.

    Where width costs nothing, as of quantiles, they are as wide as values may be.
    """
    edges, grid, cells = values.edges, step or Fraction(0), visible_cells(values, step)
    there = [place for place, count in enumerate(values.likely) if count]
    units = math.fsum(count for _, count in cells)
    middles, weights = [value for value, _ in cells], [count / units for _, count in cells]
    hidden = [(value, count / units) for value, count in hidden_cells(values)]
    typical = math.fsum(w * abs(m) for w, m in zip(weights, middles, strict=True)) or 1.0
    mean = math.fsum(w * m for w, m in zip(weights, middles, strict=True))
    # some bins more on the outer sides, where noise may hide values; ranks are finer with few
    more = _BINS_MORE if off else 1
    first = max(there[0] - more * (edges[there[0]] < 0), 0)
    last = there[-1] + 1 + more * (edges[there[-1] + 1] > 0)
    ends = {within_reach(edge) for edge in edges[first : last + 1]} | {Fraction(0)}
    if grid:  # the last value of a bin is as good an end as the first of the next
        ends |= {within_reach(edges[i + 1]) - grid for i in there if edges[i] >= grid}
    widest = max(ends)
    ends |= {widest + 4 * grid}
    stretches = []
    for low, high in product(sorted(ends), repeat=2):
        # what lies between 0 and a near end is lost in noise, bin by bin; one bin would be seen
        near = grid < low <= high / _NEAR or low / _NEAR <= high < -grid
        tiny = -high <= _FAR * low < 0 or 0 < _FAR * high <= -low
        on_grid = grid and low % grid == high % grid == 0
        if high - low <= (0 if not grid else grid / 2 if on_grid else 2 * grid) or near or tiny:
            continue
        if high > widest and 2 * grid < widest:
            continue
        far = (max(float(low) - m, m - float(high), 0.0) for m in middles)
        clamped = math.fsum(w * d for w, d in zip(weights, far, strict=True)) / typical
        unseen = (w * max(float(low) - m, m - float(high), 0.0) for m, w in hidden)
        clamped += math.fsum(unseen) / typical / (2 * _CLAMPED)
        size = float((high - low) / 2 if centred else max(abs(low), abs(high))) / typical
        apart = max(min(mean - float(low), float(high) - mean), 0.0) / typical
        stretches.append(_Stretch(bounds=(low, high), size=size, clamped=clamped, near=apart))
    wide = 1.0 if off else -1.0

    def cost(one: _Stretch) -> tuple[float, float]:
        low, high = one.bounds
        return _CLAMPED * one.clamped + off * one.size + stray * one.near, wide * float(high - low)

    return min(stretches, key=cost)
