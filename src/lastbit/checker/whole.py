"""Whole intervals of an answer, worked out again from the profile that it quotes.

`release/whole.py` and `release/rows_per_unit.py` have the theorems; this file has none of their
code. Of each column the limits that can have left something out follow from the plan. From the
quoted histogram c_1, c_2 ..., with bins of a_i to b_i rows and its noise, follow for a limit M

    rows lost     at most l, if for every cut k up to B: P[sum of (b_i - m)+ X_i over i <= k > t] <=
                  11/1000 over the number of edges, m being the last end of a bin up to M, for
                  t = l - max(sum of c_i (b_i - M)+, 0) - rounding, by the exact tail of Laplace
                  noise, in fractions, or by that of Gaussian noise (sub-Gaussian)
    rows counted  at least sum of c_i min(a_i, m) - r, bins with a_i <= 4m, for the best edge m <=
                  M, r by Chernoff at 3/1000 over the number of edges
    share         at least counted/(counted + lost)

Where `spread_evenly` is named, m_i = (a_i + b_i)/2 is in the place of b_i and a_i, and M begins a
bin, or is not below B. Then the chance is 22/1000 p, p being 1/10 for sums of up to 6 bins, and for
longer ones 2/5 over the number of the edges that are left.

What units beyond B may lose besides (`hidden`) is an estimate of the writer's, and only widens. So
is what chosen bounds may clamp (`values_thin_out`).
An interval is rejected if it is narrower than these numbers make it, or says less of what is
assumed than they need. Looser ones are accepted, and any B beyond which no bin stands out of the
noise.

Records of before `rows_alike` lack it, and have the wider intervals of `_mixed`.

Counts of units of which some groups are left out have 2 sqrt((1 - share) high) more above: which
groups count is by chance. Quotients of two columns over the same rows go as far beyond the noise
as `rows_alike` lets them; other formulas are enclosed (`enclosed.py`) over the whole intervals of
their k parts, whose noise is widened by 1 + ln(k)/ln(20) beforehand, so that all hold at once.
Unknown they are where a part is, where a total is (of other groups, whose losses are not in the
row), and where several parts are not all counts and sums.

Differs  that the histogram is the one that the ledger has for these data, and of the question's own
         rows where it says so, is not seen here (`lastbit ledger verify` shows the entry that is
         named). Of a share only its lower end is worked out
Checked  tests/release/test_whole.py, tests/release/test_whole_forgeries.py
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any, TypeAlias

from .enclosed import enclosure
from .numbers import Json, exp_bounds, ln_bounds, ratio, require, sqrt_bounds
from .shown import ShownQuestion

_EDGES = (*sorted({n << k >> h for k in range(16) for n, h in ((1, 0), (3, 1))}), 1 << 16)
_BINS = tuple((a, b - 1) for a, b in pairwise(_EDGES))
_NAME = "halves of octaves to 2**16"
_ASSUMED = frozenset(
    {
        *("nobody_beyond", "group_like_table", "spread_evenly"),
        *("values_alike", "rows_alike", "within_bounds", "values_thin_out"),
    }
)
_COLUMN = frozenset({"limits", "share", "lost", "hidden", "about", "beyond", "of"})
_PROFILE = frozenset({"question", "entry", "of", "counts", "edges", "noise", "at_most"})
_LOST, _COUNTED = Fraction(11, 1000) / len(_EDGES), Fraction(3, 1000) / len(_EDGES)
_NEXT, _OTHERS = Fraction(22, 10_000), Fraction(22, 1000) * Fraction(2, 5) / (len(_EDGES) - 6)
_CLEAR = Fraction(169, 4) * (1 + Fraction(1, 10**6))  # 6.5 deviations
_WITHIN = ("sum", "mean", "variance", "std", "quantile", "min", "max", "cdf")
_OF = ("mean", "variance", "std", "quantile", "cdf")
_ROWS = frozenset({"max_rows", "max_groups"})
_ADDED = ("count", "count_units", "sum")
_FAR, _ODDS = Fraction(1300), Fraction(20)

_Ends: TypeAlias = tuple[Fraction | None, Fraction | None]


def check_whole(record: Json, question: ShownQuestion, plan: Json, query: Json) -> None:
    """Raise `Rejected` unless whole intervals are as wide as the profile makes them."""
    whole = record["whole"]
    known = isinstance(whole, Mapping) and set(whole) == {"profile", "groups", "columns"}
    require(known, "the whole intervals lack a part")
    derivation = _Derivation(whole, question, plan, query)
    columns = [one for one in record["columns"] if one["role"] == "value"]
    shown = [str(one.get("aggregate", one["name"])) for one in columns]
    hidden = [part.name for part in question.aggregates if part.name not in question.selected]
    require(set(whole["columns"]) == {*shown, *hidden}, "whole intervals are of other columns")
    for name, said in whole["columns"].items():
        derivation.check_column(name, said)
    for row in record.get("before", record["rows"]):
        cells = list(zip(shown, row["cells"], strict=True))
        cells += zip(hidden, row.get("parts", ()), strict=True)
        for name, cell in cells:
            derivation.check_cell(name, cell, dict(cells))


class _Derivation:
    """All that the whole intervals of one answer rest on."""

    def __init__(self, whole: Json, question: ShownQuestion, plan: Json, query: Json) -> None:
        self.said, self.plan = whole["columns"], plan
        self.parts = {part.name: part for part in question.aggregates}
        self.derived = dict(question.derived)
        self.formulas = {
            name: list(dict.fromkeys(_columns_in(formula))) for name, formula in question.derived
        }
        self.products = {name: _powers_of(formula) for name, formula in question.derived}
        inner, joins, keys = query.get("per_unit"), query["joins"], query["keys"]
        single = inner is not None and not inner["keys"] and not joins  # each unit has one row
        self.by_row = plan["unit"] is not None and not single
        most, groups = plan["max_groups"], plan["groups"]
        limited = most is not None and (groups is None or groups > most)
        self.by_group = self.by_row and bool(keys) and limited
        self.rows, self.groups = (_histogram(whole[one]) for one in ("profile", "groups"))
        # rows of a sub-query are others, and a join may leave out or repeat some
        known = self.by_row and inner is None and not any(join.get("private") for join in joins)
        repeated = self.rows is not None and not (self.rows.own and self.rows.at_most is None)
        fits = self.rows is None or (known and not (joins and repeated))
        fits &= self.groups is None or (known and self.by_group and not joins)
        require(fits, "a profile bounds nothing here")
        every = self.rows is not None and (self.rows.own or query["where"] is None)
        self.own = every and not keys and "marginals" not in plan

    def limits(self, name: str) -> list[str]:
        """The limits that can have left something out of a column."""
        if name in self.formulas:
            return sorted({limit for one in self.formulas[name] for limit in self.limits(one)})
        function = self.parts[name].function
        if function == "count_units":
            return ["max_groups"] if self.by_group else []
        if function == "count_distinct":
            return ["max_values"] if self.by_row else []
        bounded = ["bounds"] if function in _WITHIN else []
        return bounded + (["max_rows"] if self.by_row and function not in ("min", "max") else [])

    def check_column(self, name: str, said: Json) -> None:
        """Limits, share, rows lost and what is assumed are those that follow, or say more."""
        require(isinstance(said, Mapping) and set(said) == _COLUMN, "a column says too little")
        limits, about, far = self.limits(name), said["about"], said["beyond"]
        require(said["limits"] == limits, "a limit is not named, or one too many")
        listed = isinstance(about, list) and set(about) <= _ASSUMED and about == sorted(set(about))
        require(listed, "an assumption is unknown")
        function = self.parts[name].function if name in self.parts else "derived"
        of = "limited_rows" if function in _OF and "max_rows" in limits else None
        require(said["of"] == of, "what a number is of is not said")
        bounded = "bounds" not in limits or "within_bounds" in about
        require(bounded, "the assumption of bounds is not named")
        assumed = "nobody_beyond" in about
        require(assumed == (far is not None), "the farthest unit is not named")
        if name in self.formulas:
            others = [self.said[one] for one in self.formulas[name]]
            beyond = [one["beyond"] for one in others if one["beyond"] is not None]
            require(far == max(beyond, default=None), "the farthest unit is another")
            codes = {code for one in others for code in one["about"]}
            require(codes <= set(about), "an assumption is not named")
        units = function == "count_units"
        histogram = self.groups if units else self.rows
        if name in self.formulas or not _ROWS & set(limits):
            histogram = None
        unknown = [said[part] is None for part in ("share", "lost", "hidden")]
        require(unknown == [histogram is None] * 3, "a share comes from nowhere, or is missing")
        if histogram is not None:
            share, lost = _share_and_lost(said)
            pairs = zip(histogram.counts, histogram.bins, strict=False)
            clear = [end for count, (_, end) in pairs if histogram.is_clear(count)]
            reached = not assumed or far == histogram.at_most or far >= max(clear, default=1)
            require(reached, "a bin beyond the farthest unit stands out of the noise")
            far = far if assumed else histogram.at_most
            require(far is not None, "nobody knows that nobody has more rows")
            most = self.plan["max_groups" if units else "max_rows"]
            proved = lost - Fraction(said["hidden"])
            even = "spread_evenly" in about
            _check_proved(histogram, most, far, proved, share, even=even)

    def check_cell(self, name: str, cell: Json, others: Mapping[str, Json]) -> None:
        """A whole interval is not narrower than what follows."""
        ends = cell["whole_low"], cell["whole_high"]
        low, high = (None if cell[x] is None else Fraction(cell[x]) for x in ("low", "high"))
        _check_wider(ends, (low, high))
        if name in self.formulas:
            if {"max_values", *_ROWS} & set(self.limits(name)):
                _check_wider(ends, self._formula(name, (low, high), others))
        elif low is not None and high is not None:
            about = self.said[name]["about"]
            _check_wider(ends, self._ends(name, low, high, about))

    def _ends(self, name: str, low: Fraction, high: Fraction, about: Sequence[str]) -> _Ends:
        """The narrowest interval that the profile and the named assumptions allow."""
        part, said, limits = self.parts[name], self.said[name], self.limits(name)
        if "max_values" in limits:
            return low, None
        if not _ROWS & set(limits):
            return low, high
        some = part.expression is not None and part.nullable and part.function != "sum"
        some |= part.function == "histogram"
        own = self.own and not some and part.function != "count_units"
        alike = own or "group_like_table" in about
        unknown, rows_alike = said["share"] is None, "rows_alike" in about
        share, lost = (Fraction(0), Fraction(0)) if unknown else _share_and_lost(said)
        if part.function in ("count", "histogram", "count_units"):
            most = max(high, Fraction(0))
            if part.function == "count_units":  # which of their groups count is by chance
                most += 2 * sqrt_bounds(most * (1 - share))[0]
            share = share if alike else Fraction(0)
            return low, _upper_end(most, Fraction(1), lost, share, unknown)
        assert part.bounds is not None
        if part.function == "sum":
            alike &= not part.bounds[0] < 0 < part.bounds[1]  # what cancels out has no share
            share = share if alike and "values_alike" in about else Fraction(0)
            up = _upper_end(high, part.bounds[1], lost, share, unknown)
            down = _upper_end(-low, -part.bounds[0], lost, share, unknown)
            return None if down is None else -down, up
        if part.function == "quantile":
            aims = not unknown and alike and _aims_beyond(part, share, alike=rows_alike)
            return (low, high) if aims else part.bounds
        require(unknown or alike, "that a group is like the table is assumed, and not named")
        if unknown:
            return None, None
        mixed = _mixed_alike if rows_alike else _mixed
        return mixed(part.function, (low, high), part.bounds, share)

    def _formula(self, name: str, ends: _Ends, others: Mapping[str, Json]) -> _Ends:
        """The narrowest interval of a formula whose parts lie in theirs at once."""
        stray = self._stray(name)
        if stray is not None:
            low, high = ends
            if low is None or high is None:
                return None, None
            return low - stray * abs(low), high + stray * abs(high)
        names, about, row = self.formulas[name], self.said[name]["about"], {}
        if len(names) > 1 and any(self.parts[one].function not in _ADDED for one in names):
            return None, None
        for one in names:
            known = _widened(others[one], len(names))
            low, high = (None, None) if known is None else self._ends(one, *known, about)
            if low is None or high is None:
                return None, None
            row[one.lower()] = float(low), float(high)
        interval = enclosure(self.derived[name], row)
        if not isinstance(interval, tuple) or not all(map(math.isfinite, interval)):
            return None, None
        return Fraction(interval[0]), Fraction(interval[1])

    def _stray(self, name: str) -> Fraction | None:
        """How far the rows that are lost may move a quotient over the same rows; None: no such."""
        powers = self.products[name] or {}
        if sorted(powers.values()) != [-1, 1]:
            return None
        above, below = sorted(powers, key=powers.__getitem__, reverse=True)
        parts, about = [self.parts[one] for one in (above, below)], self.said[name]["about"]
        of_values = parts[1].function == "sum"
        some = not of_values and parts[1].expression is not None and parts[1].nullable
        alike = "rows_alike" in about and all(map(_loses_a_share, parts))
        alike &= (self.own and not some) or "group_like_table" in about
        known = self.said[below]["share"] is not None
        if not (known and alike and (not of_values or "values_alike" in about)):
            return None
        return (1 - _share_and_lost(self.said[below])[0]) / 3


def _widened(cell: Json, parts: int) -> tuple[Fraction, Fraction] | None:
    """The noise interval of one of so many parts that all theirs hold at once."""
    if cell["low"] is None or cell["high"] is None:
        return None
    low, high = Fraction(cell["low"]), Fraction(cell["high"])
    if parts == 1:
        return low, high
    value, times = Fraction(cell["value"]), 1 + ln_bounds(Fraction(parts))[0] / ln_bounds(_ODDS)[1]
    low, high = value + times * (low - value), value + times * (high - value)
    if type(cell["low"]) is int:
        return Fraction(math.floor(low - times + 1)), Fraction(math.ceil(high + times - 1))
    return low, high


def _loses_a_share(part: Any) -> bool:
    """Whether it counts rows, or adds values of one sign."""
    signs = part.function == "sum" and not part.bounds[0] < 0 < part.bounds[1]
    return signs or part.function == "count"


def _aims_beyond(part: Any, share: Fraction, *, alike: bool) -> bool:
    """Whether the interval of a quantile holds it wherever the values of lost rows are.

    Or else whichever rows are lost, if their share of values up to any point is alike.
    """
    if part.ends is None:
        return False
    low, high = part.ends
    if alike:
        stray = (1 - share) / 3
        below, above = low + stray * min(low, 1 - low), high - stray * min(high, 1 - high)
        return bool(below <= part.level <= above)
    return bool(share and low * share <= part.level - 1 + share and high * share >= part.level)


def _share_and_lost(said: Json) -> tuple[Fraction, Fraction]:
    share, lost, hidden = said["share"], said["lost"], said["hidden"]
    require(
        isinstance(share, Mapping) and set(share) == {"value", "low", "high"}, "a share is none"
    )
    ends = [share["low"], share["value"], share["high"], 1]
    numbers = all(type(one) in (int, float) for one in (*ends, lost, hidden))
    known = numbers and math.isfinite(lost) and math.isfinite(hidden)
    require(known and ends[0] >= 0 and ends == sorted(ends), "a share is none")
    require(lost >= 0 and hidden >= 0, "rows lost are none")
    return Fraction(share["low"]), Fraction(lost) + Fraction(hidden)


def _check_wider(ends: tuple[Any, Any], wanted: _Ends) -> None:
    """That an interval holds another; what is unknown in that is unknown in it."""
    for end, least, sign in zip(ends, wanted, (1, -1), strict=True):
        wide = end is None or (least is not None and sign * Fraction(end) <= sign * least)
        require(wide, "a whole interval is narrower than what is known")


def _upper_end(
    high: Fraction, most: Fraction, lost: Fraction, share: Fraction, unknown: bool
) -> Fraction | None:
    """The upper end of a sum whose values are at most `most`; share 0: it is of no use."""
    if most <= 0 or unknown:
        return high if most <= 0 else None
    return min([high + lost * most, *([max(high, high / share)] if share else [])])


def _mixed(
    function: str,
    ends: tuple[Fraction, Fraction],
    bounds: tuple[Fraction, Fraction],
    share: Fraction,
) -> tuple[Fraction, Fraction]:
    """A mean, variance, deviation or share, the part 1 - share being anything within bounds."""
    (low, high), (least, most) = ends, bounds
    rest, wide = 1 - share, (most - least) ** 2
    if function == "mean":
        return min(share * low + rest * least, low), max(share * high + rest * most, high)
    if function == "cdf":
        return share * low, max(share * high + rest, high)
    if function == "variance":
        return share * low, max(min(share * high + rest * wide, wide / 4), high)
    require(function == "std", "an aggregate is unknown")
    root = sqrt_bounds(min(share * high**2 + rest * wide, wide / 4))[0]
    return sqrt_bounds(share * low**2)[1], max(root, high)


def _mixed_alike(
    function: str,
    ends: tuple[Fraction, Fraction],
    bounds: tuple[Fraction, Fraction],
    share: Fraction,
) -> tuple[Fraction, Fraction]:
    """The same, where the part 1 - share is like the other, as `rows_alike` says."""
    (low, high), (least, most), lost = ends, bounds, 1 - share
    if function in ("mean", "cdf"):
        least, most = bounds if function == "mean" else (Fraction(0), Fraction(1))
        near = [max(min(x - least, most - x), Fraction(0)) for x in ends]
        return low - lost * near[0] / 3, high + lost * near[1] / 3
    wide = (most - least) ** 2 / 4
    if function == "variance":
        return (1 - lost / 2) * low, max(min((1 + lost) * high, wide), high)
    require(function == "std", "an aggregate is unknown")
    root = sqrt_bounds(min((1 + lost) * high**2, wide))[0]
    return sqrt_bounds((1 - lost / 2) * low**2)[1], max(root, high)


def _powers_of(formula: Any) -> dict[str, int] | None:
    """The exponents of columns in a product of them and of constants other than 0."""
    if not isinstance(formula, list):
        if "column" in formula:
            return {formula["column"]: 1}
        known = formula["type"] in ("integer", "number") and ratio(str(formula["value"]))
        return {} if known else None
    function, *arguments = formula
    if function not in ("*", "/", "to_number"):
        return None
    powers = dict[str, int]()
    for place, one in enumerate(map(_powers_of, arguments)):
        if one is None or powers.keys() & one.keys():
            return None
        turned = -1 if function == "/" and place else 1
        powers |= {name: turned * power for name, power in one.items()}
    return powers


def _columns_in(expression: Any) -> list[str]:
    if isinstance(expression, list):
        return [name for part in expression[1:] for name in _columns_in(part)]
    return [expression["column"]] if "column" in expression else []


# ---------------------------------------------------------------- the profile


@dataclass(frozen=True, slots=True, kw_only=True)
class _Histogram:
    """A quoted histogram of rows, or groups, per unit."""

    counts: tuple[int, ...]
    at_most: int | None
    scale: Fraction | None
    """Of Laplace noise; None: it is Gaussian."""
    variance: Fraction
    rounding: Fraction
    """By how much counts are rounded."""
    nearest: Fraction
    """By how much noise can be above continuous noise."""
    own: bool

    @property
    def bins(self) -> list[tuple[int, int]]:
        """All that are not open; up to what is publicly known."""
        most = _EDGES[-1] if self.at_most is None else self.at_most
        return [(a, min(b, most)) for a, b in _BINS if a <= most]

    def is_clear(self, count: int) -> bool:
        """Whether a count stands out of the noise."""
        return count > 0 and count**2 > _CLEAR * self.variance

    def check_even_lost(self, most: int, far: int, lost: Fraction) -> None:
        """The same for a limit at which a bin begins, where units have the middles of bins."""
        require(any(b == far for _, b in self.bins), "a profile has no bin that ends there")
        require(most in _EDGES or most >= far, "a limit is within a bin, and middles say nothing")
        running, weights = Fraction(0), list[Fraction]()
        for count, (a, b) in zip(self.counts, self.bins, strict=False):
            if b > far or a < most or b == most:
                continue
            weights.append(Fraction(a + b, 2) - most)
            running += count * weights[-1]
            part = _NEXT if len(weights) <= 6 else _OTHERS
            beyond = lost - max(running, Fraction(0))
            beyond -= (self.rounding + self.nearest) * sum(weights)
            likely = beyond > 0 and self._tail(tuple(weights), beyond) <= part
            require(likely, "more rows may be lost")

    def check_lost(self, most: int, far: int, lost: Fraction) -> None:
        """That at most so many rows are lost, if nobody has more than `far` rows."""
        ends = [b for _, b in self.bins if b <= far]
        require(bool(ends) and ends[-1] == far, "a profile has no bin that ends there")
        running, last = 0, max(end for _, end in _BINS if end <= most)
        for place, end in enumerate(ends):
            running += self.counts[place] * max(end - most, 0)
            weights = tuple(Fraction(one - last) for one in ends[: place + 1] if one > last)
            if not weights:
                continue
            beyond = lost - max(running, 0) - (self.rounding + self.nearest) * sum(weights)
            require(beyond > 0 and self._tail(weights, beyond) <= _LOST, "more rows may be lost")

    def _tail(self, weights: tuple[Fraction, ...], far: Fraction) -> Fraction:
        """Above the chance that the sum of weights times noises exceeds this."""
        if self.scale is None:
            squares = sum(weight**2 for weight in weights)
            return exp_bounds(max(-(far**2) / (2 * self.variance * squares), -_FAR))[1]
        total = Fraction(0)
        for factor, weight in _partial_fractions(weights):
            rate = -far / (self.scale * weight)
            low, high = exp_bounds(max(rate, -_FAR))
            total += factor * (high if factor > 0 else low if rate > -_FAR else 0)
        return total / 2

    def least_counted(self, most: int, *, even: bool) -> Fraction:
        """Not above the rows that count, by the best edge; `even`: with the middles of bins."""
        bins = [Fraction(a + b, 2) if even else Fraction(a) for a, b in self.bins]
        return max(Fraction(0), *(self._counted(edge, bins) for edge in _EDGES if edge <= most))

    def _counted(self, edge: int, sizes: Sequence[Fraction]) -> Fraction:
        """Counts times weights, less the reach of their noise: by Chernoff, any x being sound."""
        pairs = zip(self.bins, sizes, strict=True)
        weights = [min(size, Fraction(edge)) for (a, _), size in pairs if a <= 4 * edge]
        largest = max(weights)
        squares = [(weight / largest) ** 2 for weight in weights]
        if self.scale is None:
            inner = 2 * self.variance * sum(squares) * ln_bounds(1 / _COUNTED)[1]
            reach = largest * sqrt_bounds(inner)[1]
        else:
            best = min(math.sqrt(-math.log(_COUNTED) / sum(squares)), 0.95)
            x = Fraction(
                min((0.1, 0.25, 0.5, 0.75, 0.9, best), key=lambda x: _chernoff(x, squares))
            )
            left = math.prod((1 - x * x * square for square in squares), start=Fraction(1))
            reach = self.scale * largest * ln_bounds(1 / (_COUNTED * left))[1] / x
        counted = sum(count * weight for count, weight in zip(self.counts, weights, strict=False))
        return counted - reach - self.rounding * sum(weights)


def _histogram(quoted: Any) -> _Histogram | None:
    if quoted is None:
        return None
    require(isinstance(quoted, Mapping) and set(quoted) == _PROFILE, "a profile is malformed")
    require(quoted["edges"] == _NAME, "the bins of a profile are unknown")
    counts, most, entry, noise = (quoted[x] for x in ("counts", "at_most", "entry", "noise"))
    whole = isinstance(counts, list) and all(type(count) is int for count in counts)
    require(whole and len(counts) == len(_EDGES), "the counts of a profile are malformed")
    require(entry is None or (type(entry) is int and entry >= 3), "an entry is malformed")
    require(quoted["of"] in ("table", "question"), "a profile is of nothing")
    require(most is None or (type(most) is int and most >= 1), "at_most is no number of rows")
    kind = {"laplace": "scale", "gaussian": "variance"}.get(noise["mechanism"], "")
    require(set(noise) == {"mechanism", kind, "one"}, "the noise of a profile is malformed")
    one, size = noise["one"], ratio(noise[kind])
    require(type(one) is int and one >= 1 and size > 0, "the noise of a profile is malformed")
    laplace, half = kind == "scale", Fraction(one > 1, 2)
    histogram = _Histogram(
        counts=tuple(counts),
        at_most=most,
        scale=size / one if laplace else None,
        variance=2 * (size / one) ** 2 if laplace else size / one**2,
        rounding=half,
        nearest=Fraction(3, 2 * one) if laplace else Fraction(0),
        own=quoted["of"] == "question",
    )
    last = _EDGES[-1] - 1 if most is None else most  # beyond it bins have no end, or no unit
    farther = [c for a, c in zip(_EDGES, counts, strict=True) if a > last]
    surely = not any(map(histogram.is_clear, farther))
    require(surely, "a bin beyond at_most, or without end, stands out of the noise")
    return histogram


def _chernoff(x: float, squares: Sequence[Fraction]) -> float:
    """About what the bound is with this x."""
    return (-math.log(_COUNTED) - math.fsum(math.log1p(-x * x * one) for one in squares)) / x


@lru_cache(maxsize=256)
def _check_proved(
    histogram: _Histogram, most: int, far: int, lost: Fraction, share: Fraction, *, even: bool
) -> None:
    """The derivation itself; many answers quote one profile."""
    (histogram.check_even_lost if even else histogram.check_lost)(most, far, lost)
    counted = histogram.least_counted(most, even=even)
    require(share * (counted + lost) <= counted, "a share is larger than the profile says")


@lru_cache(maxsize=64)
def _partial_fractions(weights: tuple[Fraction, ...]) -> tuple[tuple[Fraction, Fraction], ...]:
    """The factors of exp(-t/w) in the tail of Laplace noises times weights, all different."""
    require(len(set(weights)) == len(weights), "two bins end alike")
    factors = []
    for one in weights:
        terms = (one * one / (one * one - w * w) for w in weights if w != one)
        factors.append((math.prod(terms, start=Fraction(1)), one))
    return tuple(factors)


def check_ends(cell: Json, *, whole: bool) -> None:
    """That a cell has whole ends exactly if it should, and that all in it are numbers."""
    ends = {"whole_low", "whole_high"} if whole else set()
    fields = {"value", "standard_error", "low", "high"} | ends
    require(set(cell) == fields, "a cell is malformed")
    for value in cell.values():
        finite = type(value) is int or (type(value) is float and math.isfinite(value))
        require(value is None or finite, "a cell holds no number")
