"""Whole intervals of an answer, worked out again from the profile that it quotes.

`release/whole.py` and `release/rows_per_unit.py` have the theorems; this file has none of their
code. Of each column the limits that can have left something out follow from the plan. From the
quoted histogram c_1, c_2 ..., with bins of a_i to b_i rows and its noise, follow for a limit M

    rows lost     at most l, if for every cut k up to B: P[sum of b_i X_i over i <= k > t] <=
                  11/1000 for t = l - max(sum of c_i (b_i - M)+, 0) - rounding, by the exact tail of
                  Laplace noise, in fractions, or by that of Gaussian noise (sub-Gaussian)
    rows counted  at least sum of c_i min(a_i, m) - r, bins with a_i <= 4m, for the best edge m <=
                  M, r by Chernoff at 3/1000 over the number of edges
    share         at least counted/(counted + lost)

An interval is rejected if it is narrower than these numbers make it, or says less of what is
assumed than they need. Looser ones are accepted, and any B beyond which no bin stands out of the
noise.

Differs  that the histogram is the one that the ledger has for these data, and of the question's own
         rows where it says so, is not seen here (`lastbit ledger verify` shows the entry that is
         named). Of a share only its lower end is worked out; of formulas that their whole interval
         holds the other one, is unknown where one of their parts is, and assumes what they assume
Checked  tests/release/test_whole.py
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any

from .numbers import Json, Rejected, exp_bounds, ln_bounds, ratio, require, sqrt_bounds
from .shown import ShownQuestion

_EDGES = (*sorted({n << k >> h for k in range(16) for n, h in ((1, 0), (3, 1))}), 1 << 16)
_BINS = tuple((a, b - 1) for a, b in pairwise(_EDGES))
_NAME = "halves of octaves to 2**16"
_ASSUMED = {"nobody_beyond", "group_like_table", "values_alike", "within_bounds"}
_COLUMN = {"limits", "share", "lost", "about", "beyond", "of"}
_PROFILE = {"question", "entry", "of", "counts", "edges", "noise", "at_most"}
_LOST, _COUNTED = Fraction(11, 1000), Fraction(3, 1000) / len(_EDGES)
_CLEAR = Fraction(169, 4) * (1 + Fraction(1, 10**6))  # 6.5 deviations
_WITHIN = ("sum", "mean", "variance", "std", "quantile", "min", "max", "cdf")
_OF = ("mean", "variance", "std", "quantile", "cdf")
_ROWS = {"max_rows", "max_groups"}
_FAR = Fraction(1300)


def check_whole(record: Json, question: ShownQuestion, plan: Json, query: Json) -> None:
    """Raise `Rejected` unless whole intervals are as wide as the profile makes them."""
    whole = record["whole"]
    known = isinstance(whole, Mapping) and set(whole) == {"profile", "groups", "columns"}
    require(known, "the whole intervals lack a part")
    derivation = _Derivation(whole, question, plan, query)
    columns = [one for one in record["columns"] if one["role"] == "value"]
    named = [str(one.get("aggregate", one["name"])) for one in columns]
    shown = set(question.selected)
    hidden = [part.name for part in question.aggregates if part.name not in shown]
    require(set(whole["columns"]) == {*named, *hidden}, "whole intervals are of other columns")
    for name, said in whole["columns"].items():
        derivation.check_column(name, said)
    for row in record.get("before", record["rows"]):
        pairs = [
            *zip(named, row["cells"], strict=True),
            *zip(hidden, row.get("parts", ()), strict=True),
        ]
        cells = dict(pairs)
        for name, cell in pairs:
            derivation.check_cell(name, cell, cells)


def needs_rows(plan: Json, query: Json) -> bool:
    """Whether max_rows can have left out something: not where each unit has one row."""
    inner = query.get("per_unit")
    single = inner is not None and not inner["keys"] and not query["joins"]
    return plan["unit"] is not None and not single


class _Derivation:
    """All that the whole intervals of one answer rest on."""

    def __init__(self, whole: Json, question: ShownQuestion, plan: Json, query: Json) -> None:
        self.said, self.plan, self.query = whole["columns"], plan, query
        self.parts = {part.name: part for part in question.aggregates}
        self.formulas = dict(question.derived)
        self.by_row = needs_rows(plan, query)
        most, groups = plan["max_groups"], plan["groups"]
        limited = most is not None and (groups is None or groups > most)
        self.by_group = self.by_row and bool(query["keys"]) and limited
        self.rows, self.groups = (_histogram(whole[one]) for one in ("profile", "groups"))
        usable = self.by_row and query.get("per_unit") is None
        private = any(join.get("private") for join in query["joins"])
        require(usable or self.rows is self.groups is None, "a profile bounds nothing here")
        require(
            not private or self.rows is None, "a profile does not know rows that a join left out"
        )
        own = self.rows is None or self.rows.of == "question"
        require(own or not query["joins"], "a profile of the table does not bound joined rows")
        require(self.groups is None or self.by_group, "a profile of groups bounds nothing here")
        single = not query["keys"] and "marginals" not in plan
        every = query["where"] is None and not query["joins"]
        self.own = self.rows is not None and single and (every or self.rows.of == "question")

    def limits(self, name: str) -> list[str]:
        """The limits that can have left something out of a column."""
        if name in self.formulas:
            return sorted({limit for one in self._names(name) for limit in self.limits(one)})
        function = self.parts[name].function
        if function == "count_units":
            return ["max_groups"] if self.by_group else []
        if function == "count_distinct":
            return ["max_values"] if self.by_row else []
        bounded = ["bounds"] if function in _WITHIN else []
        return bounded + (["max_rows"] if self.by_row and function not in ("min", "max") else [])

    def _names(self, formula: str) -> list[str]:
        return list(dict.fromkeys(_columns_in(self.formulas[formula])))

    def histogram(self, name: str) -> _Histogram | None:
        """The profile that bounds what a column lost, if it is in the answer."""
        if name in self.formulas or not _ROWS & set(self.limits(name)):
            return None
        units = self.parts[name].function == "count_units"
        return self.groups if units else self.rows

    def check_column(self, name: str, said: Json) -> None:
        """Limits, share, rows lost and what is assumed are those that follow, or say more."""
        require(isinstance(said, Mapping) and set(said) == _COLUMN, "a column says too little")
        limits, about = self.limits(name), said["about"]
        require(said["limits"] == limits, "a limit is not named, or one too many")
        listed = isinstance(about, list) and set(about) <= _ASSUMED and about == sorted(set(about))
        require(listed, "an assumption is unknown")
        function = self.parts[name].function if name in self.parts else "derived"
        kind = "limited_rows" if function in _OF and "max_rows" in limits else None
        require(said["of"] == kind, "what a number is of is not said")
        bounded = function in _WITHIN or ("bounds" in limits)
        require(not bounded or "within_bounds" in about, "the assumption of bounds is not named")
        histogram = self.histogram(name)
        require((said["share"] is None) == (histogram is None), "a share comes from nowhere")
        require((said["lost"] is None) == (histogram is None), "lost rows come from nowhere")
        beyond = said["beyond"]
        require(
            ("nobody_beyond" in about) == (beyond is not None), "the farthest unit is not named"
        )
        if histogram is not None:
            group = self.parts[name].function == "count_units"
            most = self.plan["max_groups" if group else "max_rows"]
            far = histogram.at_most if beyond is None else beyond
            require(far is not None, "nobody knows that nobody has more rows")
            histogram.check(most, far, said["share"], said["lost"], assumed=beyond is not None)

    def check_cell(self, name: str, cell: Json, others: Mapping[str, Json]) -> None:
        """A whole interval is not narrower than what follows."""
        low, high, least, most = (cell[end] for end in ("low", "high", "whole_low", "whole_high"))
        if name in self.formulas:
            parts = [others[one] for one in self._names(name)]
            open_end = [one["whole_low"] is None or one["whole_high"] is None for one in parts]
            if {"max_values", *_ROWS} & set(self.limits(name)) and any(open_end):
                require(least is most is None, "a formula knows more than its parts")
            said = {code for one in self._names(name) for code in self.said[one]["about"]}
            known = least is None and most is None
            require(known or said <= set(self.said[name]["about"]), "an assumption is not named")
            limits = [self.said[one]["beyond"] for one in self._names(name)]
            least_far = max((one for one in limits if one is not None), default=None)
            far = self.said[name]["beyond"]
            require(far is None or far == least_far, "the farthest unit is another")
        for end, other, sign in ((least, low, 1), (most, high, -1)):
            if end is not None:
                require(
                    other is not None and sign * end <= sign * other, "a whole interval is narrower"
                )
        if name in self.parts and low is not None:
            wanted = self._ends(name, Fraction(low), Fraction(high))
            for end, other, sign in zip((least, most), wanted, (1, -1), strict=True):
                if end is not None:
                    require(other is not None, "a whole interval is known without a profile")
                    assert other is not None
                    require(sign * Fraction(end) <= sign * other, "a whole interval is too narrow")

    def _ends(
        self, name: str, low: Fraction, high: Fraction
    ) -> tuple[Fraction | None, Fraction | None]:
        """The narrowest interval that the profile and the named assumptions allow."""
        part, said = self.parts[name], self.said[name]
        limits, about = self.limits(name), set(said["about"])
        if "max_values" in limits:
            return low, None
        if not _ROWS & set(limits):
            return low, high
        if part.function == "quantile":
            return part.bounds[0], part.bounds[1]  # type: ignore[index]
        unknown = said["share"] is None
        share = Fraction(0) if unknown else Fraction(said["share"]["low"])
        lost = Fraction(0) if unknown else Fraction(said["lost"])
        some = part.expression is not None and part.nullable and part.function != "sum"
        own = self.own and not some and part.function != "count_units"
        alike = own or "group_like_table" in about
        if part.function in ("count", "histogram", "count_units"):
            top = max(high, Fraction(0))
            ends = [top + lost, *([top / share] if alike and share else [])]
            return low, None if unknown else min(ends)
        least, most = part.bounds  # type: ignore[misc]
        if part.function == "sum":
            share = share if alike and "values_alike" in about else Fraction(0)
            up = _sum_end(high, most, lost, share, unknown=unknown)
            down = _sum_end(-low, -least, lost, share, unknown=unknown)
            return None if down is None else -down, up
        if unknown:
            return None, None
        require(alike, "that a group is like the table is assumed, and not named")
        return _mixed(part.function, (low, high), (least, most), share)


def _sum_end(
    high: Fraction, most: Fraction, lost: Fraction, share: Fraction, *, unknown: bool
) -> Fraction | None:
    """The upper end of a sum whose values are at most `most`."""
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


def _columns_in(expression: Any) -> list[str]:
    if isinstance(expression, list):
        return [name for part in expression[1:] for name in _columns_in(part)]
    return [expression["column"]] if "column" in expression else []


# ---------------------------------------------------------------- the profile


def _histogram(quoted: Any) -> _Histogram | None:
    return None if quoted is None else _Histogram(quoted)


class _Histogram:
    """A quoted histogram of rows, or groups, per unit."""

    def __init__(self, quoted: Json) -> None:
        require(isinstance(quoted, Mapping) and set(quoted) == _PROFILE, "a profile is malformed")
        require(quoted["edges"] == _NAME, "the bins of a profile are unknown")
        counts, most, entry = quoted["counts"], quoted["at_most"], quoted["entry"]
        whole = isinstance(counts, list) and all(type(count) is int for count in counts)
        require(whole and len(counts) == len(_BINS) + 1, "the counts of a profile are malformed")
        require(entry is None or (type(entry) is int and entry >= 3), "an entry is malformed")
        require(quoted["of"] in ("table", "question"), "a profile is of nothing")
        require(most is None or (type(most) is int and most >= 1), "at_most is no number of rows")
        self.counts, self.at_most, self.of = tuple(counts), most, quoted["of"]
        noise = quoted["noise"]
        kind = {"laplace": "scale", "gaussian": "variance"}.get(noise["mechanism"], "")
        require(set(noise) == {"mechanism", kind, "one"}, "the noise of a profile is malformed")
        one, size = noise["one"], ratio(noise[kind])
        require(type(one) is int and one >= 1 and size > 0, "the noise of a profile is malformed")
        self.scale = size / one if kind == "scale" else None
        self.variance = size / one**2 if kind == "variance" else 2 * (size / one) ** 2
        self.rounding = Fraction(1, 2) if one > 1 else Fraction(0)
        self.nearest = Fraction(3, 2 * one)
        farther = [c for a, c in zip(_EDGES, counts, strict=True) if most is not None and a > most]
        require(
            not any(map(self._is_clear, farther)), "a bin beyond at_most stands out of the noise"
        )

    def bins(self, far: int) -> tuple[tuple[int, int], ...]:
        """The bins up to those that end with this number of rows."""
        most = self.at_most
        every = [(a, b if most is None else min(b, most)) for a, b in _BINS]
        kept = tuple((a, b) for a, b in every if a <= b <= far)
        require(bool(kept) and kept[-1][1] == far, "a profile has no bin that ends there")
        return kept

    @property
    def farthest(self) -> int:
        """The end of the last bin that stands out of the noise."""
        clear = [i for i, count in enumerate(self.counts[:-1]) if self._is_clear(count)]
        end = _BINS[max(clear, default=0)][1]
        return end if self.at_most is None else min(end, self.at_most)

    def _is_clear(self, count: int) -> bool:
        return count > 0 and count**2 > _CLEAR * self.variance

    def check(self, most: int, far: int, share: Any, lost: Any, *, assumed: bool) -> None:
        """That at most so many rows are lost, and at least this share counts."""
        require(set(share) == {"value", "low", "high"}, "a share is malformed")
        ends = [share["low"], share["value"], share["high"]]
        numbers = all(type(one) in (int, float) and 0 <= one <= 1 for one in ends)
        require(numbers and ends == sorted(ends), "a share is none")
        require(
            type(lost) in (int, float) and math.isfinite(lost) and lost >= 0, "lost rows are none"
        )
        if assumed:
            require(far >= self.farthest, "a bin beyond the farthest unit stands out of the noise")
        _check_proved(self, most, far, Fraction(lost), Fraction(share["low"]))

    def __hash__(self) -> int:
        return hash(self._facts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Histogram) and self._facts == other._facts

    @property
    def _facts(self) -> tuple[object, ...]:
        return self.counts, self.at_most, self.scale, self.variance, self.rounding, self.nearest

    def check_lost(self, most: int, bins: Sequence[tuple[int, int]], lost: Fraction) -> None:
        running = 0
        for place, (_, end) in enumerate(bins):
            running += self.counts[place] * max(end - most, 0)
            weights = tuple(b for _, b in bins[: place + 1])
            rounded = (self.rounding + self.nearest) * sum(weights)
            far = lost - max(running, 0) - rounded
            require(far > 0 and self._tail(weights, far) <= _LOST, "more rows may be lost")

    def _tail(self, weights: tuple[int, ...], far: Fraction) -> Fraction:
        """Above the chance that the sum of weights times noises exceeds this."""
        if self.scale is None:
            squares = sum(weight**2 for weight in weights)
            return exp_bounds(max(-(far**2) / (2 * self.variance * squares), -_FAR))[1]
        total = Fraction(0)
        for factor, weight in _partial_fractions(weights):
            low, high = exp_bounds(max(-far / (self.scale * weight), -_FAR))
            total += factor * (high if factor > 0 else low)
        return total / 2

    def least_counted(self, most: int) -> Fraction:
        """Not above the rows that count: of all edges the best by doubles, then in fractions."""
        tried = [(self._counted(m, x), m, x) for m in _EDGES if m <= most for x in _tried(self, m)]
        estimate, edge, x = max(tried)
        return max(self._counted(edge, x, exact=True), Fraction(0)) if estimate > 0 else Fraction(0)

    def weights(self, edge: int) -> list[int]:
        every = _BINS if self.at_most is None else [one for one in _BINS if one[0] <= self.at_most]
        return [min(a, edge) for a, _ in every if a <= 4 * edge]

    def _counted(self, edge: int, x: Fraction, *, exact: bool = False) -> Fraction:
        """Counts times weights, less the reach of their noise by Chernoff with this x."""
        weights = self.weights(edge)
        largest, squares = max(weights), [Fraction(w, max(weights)) ** 2 for w in weights]
        counted = Fraction(sum(c * w for c, w in zip(self.counts, weights, strict=False)))
        rounded = self.rounding * sum(weights)
        if self.scale is None:
            inner = 2 * self.variance * sum(squares) * ln_bounds(1 / _COUNTED)[1]
            reach = largest * sqrt_bounds(inner)[1]
        elif exact:
            left = (1 - x * x * square for square in squares)
            chance = _COUNTED * math.prod(left, start=Fraction(1))
            reach = self.scale * largest * ln_bounds(1 / chance)[1] / x
        else:
            logs = math.fsum(math.log1p(-float(x * x * square)) for square in squares)
            reach = self.scale * largest * Fraction((-math.log(_COUNTED) - logs) / float(x))
        return counted - reach - rounded


def _tried(histogram: _Histogram, edge: int) -> list[Fraction]:
    """Some x at which Chernoff's bound may be good; any would be sound."""
    weights = histogram.weights(edge)
    squares = sum((w / max(weights)) ** 2 for w in weights)
    best = min(math.sqrt(-math.log(_COUNTED) / squares), 0.95)
    return [Fraction(x) for x in (0.1, 0.25, 0.5, 0.75, 0.9, best)]


@lru_cache(maxsize=256)
def _check_proved(
    histogram: _Histogram, most: int, far: int, lost: Fraction, share: Fraction
) -> None:
    """The derivation itself; many answers quote one profile."""
    histogram.check_lost(most, histogram.bins(far), lost)
    counted = histogram.least_counted(most)
    require(share * (counted + lost) <= counted, "a share is larger than the profile says")


@lru_cache(maxsize=64)
def _partial_fractions(weights: tuple[int, ...]) -> tuple[tuple[Fraction, int], ...]:
    """The factors of exp(-t/w) in the tail of Laplace noises times weights, all different."""
    require(len(set(weights)) == len(weights), "two bins end alike")
    return tuple(
        (
            math.prod(
                (Fraction(w * w, w * w - v * v) for v in weights if v != w), start=Fraction(1)
            ),
            w,
        )
        for w in weights
    )


def check_ends(cell: Json, *, whole: bool) -> None:
    """That a cell has whole ends exactly if it should."""
    ends = {"whole_low", "whole_high"} if whole else set()
    if set(cell) != {"value", "standard_error", "low", "high"} | ends:
        raise Rejected("a cell is malformed")
