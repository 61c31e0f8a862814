"""Checks certificates of kind "error-bound": how far float code strays from its real meaning.

The claim is an expression as a table of steps, the ranges and errors of its inputs, a format, the
library's ulps, and three bounds: where the real value lies, where the machine's, how far apart they
are. The body is a list of judgements, each about one step of the expression over one box of inputs,
each after its premises. A judgement may be looser than what its premises prove, never tighter. It
is accepted if they prove it by the rule of its step (`derived`), or by one of these three:

* MEAN: the premises are all steps below, over the same box. Each step's machine value is its
  operation on the machine's operands plus its rounding, and differences pass on with slopes; so the
  error is the sum of all roundings, each times the sum over its ways up of the products of slopes.
* SPLIT: two boxes whose union is the whole.
* CASES: each branch over the part of the box where it may be taken; the compared input is exact.

For real values a, b, the machine's a', b', and errors e_a >= abs(a' - a), e_b alike, a rule gives
an interval for the real result, one for the machine's, and a bound on their distance: what the
operands' errors become, plus this step's rounding. Each rule is the line of algebra next to it.
Believed: + - * / are correctly rounded; ln, exp, sqrt, cos and sin are within the stated ulps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from .intervals import (
    ONE,
    ZERO,
    NumberFormat,
    each,
    exp,
    hull_distance,
    interval_of,
    inverse,
    is_power_of_two,
    ln,
    minus,
    number_format,
    plus,
    power,
    size,
    sqrt,
    times,
)
from .numbers import Interval, Json, Rejected, number, require

INPUTS = ("VAR", "SAMPLE")
# rule: how many steps it uses, and how many other parts it is written with
SHAPES: Mapping[str, tuple[int, int]] = MappingProxyType({
    "CONST": (0, 1), "VAR": (0, 1), "ADD": (2, 0), "SUB": (2, 0), "MUL": (2, 0), "DIV": (2, 0),
    "NEG": (1, 0), "LN": (1, 0), "EXP": (1, 0), "SQRT": (1, 0), "COS": (1, 0), "SIN": (1, 0),
    "ABS": (1, 0), "SGN": (1, 0), "CLAMP": (1, 2), "ROUND": (1, 1), "CASES": (2, 3),
})  # fmt: skip

Box = dict[str, Interval]
_WITHIN_ONE: Interval = (Fraction(-1), Fraction(1))


def rows_of(written: Any) -> list[list[Any]]:
    """The expression's table: every step uses only steps before it."""
    require(isinstance(written, list) and bool(written), "there is no expression")
    for index, row in enumerate(written):
        require(isinstance(row, list) and bool(row), "a row of the expression is empty")
        if row[0] == "SAMPLE":
            require(all(isinstance(part, str) for part in row[1:]) and len(row) > 2, "bad sample")
            _check_parts(["VAR", row[1]])
            continue
        uses, others = SHAPES[row[0]]
        require(len(row) == 1 + uses + others, "a row of the expression has the wrong length")
        for place in row[1 : 1 + uses]:
            require(type(place) is int and 0 <= place < index, "a row uses one not before it")
        _check_parts(row)
    return list(written)


def _check_parts(row: list[Any]) -> None:
    """What a row is written with, whether the proof comes to it or not."""
    match row:
        case ["VAR", name]:
            require(isinstance(name, str) and name.isidentifier(), "an input has no name")
        case ["CONST", value]:
            number(value)
        case ["ROUND", _, step]:
            require(number(step) > 0, "a grid has no step")
        case ["CLAMP", _, low, high]:
            ends = [number(end) for end in (low, high) if end is not None]
            require(ends == sorted(ends), "a clamp has its ends in the wrong order")
        case ["CASES", _, _, name, relation, bound]:
            _check_parts(["VAR", name])
            number(bound)
            require(relation in ("<", "<=", "=="), "a condition is unknown")


def below(row: list[Any]) -> list[int]:
    """The steps that a step uses; branches of cases have boxes of their own."""
    return row[1 : 1 + SHAPES[row[0]][0]] if row[0] not in ("SAMPLE", "CASES") else []


def within(place: Any, among: list[Any]) -> int:
    """A place in a list, from its start."""
    require(type(place) is int and 0 <= place < len(among), "a step names what is not there")
    return int(place)


def box_of(written: Any) -> Box:
    """The range of every input."""
    require(isinstance(written, Mapping), "a box is not a table of ranges")
    return {name: interval_of(ends) for name, ends in written.items()}


@dataclass(frozen=True)
class Proved:
    """What holds of a step, and the bound on its own rounding."""

    real: Interval
    computed: Interval
    error: Fraction
    rounding: Fraction = Fraction(0)


def derived(
    row: list[Any], below: list[Proved], form: NumberFormat, ulps: Mapping[str, Fraction]
) -> Proved:
    """What the premises prove of a step of the expression."""
    rule = row[0]
    if rule == "CONST":
        value = number(row[1])
        near = form.nearest(value)
        return Proved((value,) * 2, (near,) * 2, abs(near - value), abs(near - value))
    a = below[0]
    match rule:
        case "ADD" | "SUB":
            b = below[1]
            if rule == "SUB":
                b = Proved(minus(b.real), minus(b.computed), b.error)
            exact = plus(a.computed, b.computed)
            lost = Fraction(0) if exact_sum(a.computed, b.computed, form) else form.half(exact)
            return rounded(plus(a.real, b.real), exact, a.error + b.error, lost, form)
        case "MUL":
            b = below[1]
            real, exact = (
                each(lambda s: s * s, size(x)) if row[1] == row[2] else times(x, y)
                for x, y in ((a.real, b.real), (a.computed, b.computed))
            )
            # a'b' - ab = b'(a' - a) + a(b' - b) = b(a' - a) + a'(b' - b)
            carried = min(
                size(b.computed)[1] * a.error + size(a.real)[1] * b.error,
                size(b.real)[1] * a.error + size(a.computed)[1] * b.error,
            )
            lost = scaled(exact, (a.computed, b.computed), form)
            return rounded(real, exact, carried, lost, form)
        case "DIV":
            b, turned = below[1], inverse(below[1].computed)
            real, exact = times(a.real, inverse(b.real)), times(a.computed, turned)
            # a'/b' - a/b = ((a' - a) - (a/b)(b' - b)) / b'
            carried = (a.error + size(real)[1] * b.error) / size(b.computed)[0]
            return rounded(real, exact, carried, scaled(exact, (turned,), form), form)
        case "LN" | "EXP" | "SQRT":
            return library(rule, a, form, ulps)
        case "COS" | "SIN":  # abs(cos a' - cos a) <= abs(a' - a), and both lie within 1; so of sin
            require(rule.lower() in ulps, "nothing is known of the library's cosine or sine")
            lost = ulps[rule.lower()] * form.step(Fraction(1))
            return _proved(_WITHIN_ONE, (-1 - lost, 1 + lost), a.error + lost, lost)
        case "NEG":
            return Proved(minus(a.real), minus(a.computed), a.error)
        case "ABS":
            return Proved(size(a.real), size(a.computed), a.error)
        case "SGN":
            real, exact = (each(lambda e: (e > 0) - (e < 0), x) for x in (a.real, a.computed))
            return Proved(real, exact, hull_distance(real, exact) if a.error else Fraction(0))
        case "CLAMP":
            return clamped(row[2:], a, form)
        case "ROUND":
            return gridded(number(row[2]), a, form)
    raise Rejected("a rule is unknown")


def rounded(
    real: Interval, exact: Interval, carried: Fraction, lost: Fraction, form: NumberFormat
) -> Proved:
    """A step that is exact on the machine's operands, then rounded to the nearest."""
    near = each(form.nearest, exact)
    return _proved(real, exact if lost == 0 and not form.fixed else near, carried + lost, lost)


def _proved(real: Interval, computed: Interval, error: Fraction, lost: Fraction) -> Proved:
    return Proved(real, computed, min(error, hull_distance(real, computed)), lost)


def exact_sum(x: Interval, y: Interval, form: NumberFormat) -> bool:
    """Whether a sum needs no rounding: multiples of the least number, or Sterbenz's lemma."""
    if form.fixed or ZERO in (x, y):
        return True
    if size(plus(x, y))[1] <= 2 * form.least_normal:
        return True
    up, down = (x, y) if x[0] >= 0 else (y, x)
    return up[0] > 0 > down[1] and -down[0] <= 2 * up[0] and up[1] <= -2 * down[1]


def scaled(exact: Interval, factors: tuple[Interval, ...], form: NumberFormat) -> Fraction:
    """The rounding of a product; a power of two only moves the point."""
    for low, high in factors:
        if low == high == 0 or (low == high and is_power_of_two(low) and abs(low) >= 1):
            return Fraction(0)
        if low == high and is_power_of_two(low) and not form.fixed:
            return Fraction(0) if size(exact)[0] >= form.least_normal else form.least / 2
    return form.half(exact)


def library(rule: str, a: Proved, form: NumberFormat, ulps: Mapping[str, Fraction]) -> Proved:
    """ln, exp, sqrt: what the argument's error becomes, and the function's own error in ulps."""
    function = {"LN": ln, "EXP": exp, "SQRT": sqrt}[rule]
    real, exact = function(a.real), function(a.computed)
    if rule == "LN":  # abs(ln a' - ln a) <= abs(a' - a) / min(a, a')
        carried = a.error / min(a.real[0], a.computed[0])
    elif rule == "EXP":  # abs(exp a' - exp a) <= abs(a' - a) exp(max(a, a'))
        carried = a.error * max(real[1], exact[1])
    else:  # abs(√a' - √a) = abs(a' - a) / (√a + √a'), and at most √abs(a' - a)
        carried = sqrt((a.error, a.error))[1]
        if real[0] + exact[0] > 0:
            carried = min(carried, a.error / (real[0] + exact[0]))
    units = ulps[rule.lower()]
    if units == Fraction(1, 2):
        return rounded(real, exact, carried, form.half(exact), form)
    lost = units * form.step(size(exact)[1])
    computed = lowest(exact[0], units, form), -lowest(-exact[1], units, form)
    require(size(computed)[1] <= form.largest, "a step may overflow")
    return _proved(real, computed, carried + lost, lost)


def lowest(low: Fraction, units: Fraction, form: NumberFormat) -> Fraction:
    """The least y - units step(y) over y >= low: at low, or at the next power of two above 0."""
    step = form.step(low)
    if low <= 0 or form.fixed:
        return low - units * step
    return min(low - units * step, step * (1 << form.bits) - 2 * units * step)


def clamped(ends: list[Any], a: Proved, form: NumberFormat) -> Proved:
    """The middle one of three numbers is no farther off than the farthest of them."""
    real, computed, lost = a.real, a.computed, Fraction(0)
    for text, pick in zip(ends, (max, min), strict=True):
        if text is not None:
            end = number(text)
            near = form.nearest(end)
            lost = max(lost, abs(near - end))
            real = (pick(real[0], end), pick(real[1], end))
            computed = (pick(computed[0], near), pick(computed[1], near))
    return _proved(real, computed, max(a.error, lost), lost)


def gridded(grid: Fraction, a: Proved, form: NumberFormat) -> Proved:
    """The nearest multiples of two numbers e apart are at most e and one more step apart."""
    require(grid > 0, "a grid has no step")
    real, exact = (each(lambda e: round(e / grid) * grid, x) for x in (a.real, a.computed))
    carried = (a.error // grid + 1) * grid if a.error else Fraction(0)
    kept = not form.fixed and is_power_of_two(grid) and grid >= form.least
    lost = Fraction(0) if kept else form.half(exact)
    return _proved(real, each(form.nearest, exact), carried + lost, lost)


def slopes(row: list[Any], below: list[Proved], own: Proved) -> list[Interval] | None:
    """op(a', b') - op(a, b) = s (a' - a) + t (b' - b): intervals for s and t; None if it jumps."""
    rule = row[0]
    if rule in ("CONST", "VAR", "SAMPLE"):
        return []
    if rule in ("SGN", "ROUND", "CASES"):
        return None
    a = below[0]
    both = (min(a.real[0], a.computed[0]), max(a.real[1], a.computed[1]))
    match rule:
        case "ADD":
            return [ONE, ONE]
        case "SUB":
            return [ONE, minus(ONE)]
        case "MUL":
            return [below[1].computed, a.real]
        case "DIV":
            turned = inverse(below[1].computed)
            return [turned, minus(times(own.real, turned))]
        case "NEG":
            return [minus(ONE)]
        case "ABS" if both[0] >= 0:
            return [ONE]
        case "ABS":
            return [minus(ONE) if both[1] <= 0 else _WITHIN_ONE]
        case "COS" | "SIN":
            return [_WITHIN_ONE]
        case "CLAMP":
            return [(Fraction(0), Fraction(1))]
        case "LN":
            return [inverse(both)]
        case "EXP":
            return [exp(both)]
        case "SQRT":
            low, high = plus(sqrt(a.real), sqrt(a.computed))
            return [(1 / high, 1 / low)] if low > 0 else None
    raise Rejected("a rule is unknown")


_BOUNDS = frozenset({"real", "computed", "error"})
_CLAIM = _BOUNDS | {"expression", "ranges", "errors", "format", "ulps"}
_STEP = _BOUNDS | {"rule", "expression", "box", "premises"}
_Known = tuple[int, int, Proved]
_MOST_BITS = 1 << 31  # of all that is kept of one proof: 256 megabytes


def check_error_bound(claim: Json, body: Json) -> None:
    """Raise `Rejected` unless the body proves the claim."""
    require(set(claim) == _CLAIM and set(body) == {"boxes", "steps"}, "a part is missing")
    proof = _Proof(claim, body)
    require(bool(body["steps"]), "there is no step")
    for step in body["steps"]:
        proof.add(step)
    index, box, proved = proof.done[-1]
    require(index == len(proof.rows) - 1, "the last step is about another expression")
    require(proof.boxes[box] == box_of(claim["ranges"]), "the last step is over another box")
    proof.require_looser(claim, proved, "the claim")


class _Proof:
    """The judgements accepted so far: (expression, box, what was stated)."""

    def __init__(self, claim: Json, body: Json) -> None:
        self.rows = rows_of(claim["expression"])
        self.form: NumberFormat = number_format(claim["format"])
        self.ulps = {name: number(text) for name, text in claim["ulps"].items()}
        known = set(self.ulps) - {"cos", "sin"} == {"exp", "ln", "sqrt"}
        require(known, "the library's ulps are incomplete")
        most = Fraction(2**20) if self.form.fixed else power(self.form.bits - 2)
        fair = all(Fraction(1, 2) <= units <= most for units in self.ulps.values())
        require(fair, "the library's ulps are absurd")
        names = {row[1] for row in self.rows if row[0] in INPUTS}
        names |= {row[3] for row in self.rows if row[0] == "CASES"}
        errors = claim["errors"].items()
        self.errors = {name: None if e == "rounded" else number(e) for name, e in errors}
        require(all(e is None or e >= 0 for e in self.errors.values()), "an error is negative")
        self.bits = 0
        self.boxes: list[dict[str, Interval]] = []
        for written in body["boxes"]:
            self.boxes.append(box_of(written))
            self._count(end for ends in self.boxes[-1].values() for end in ends)
        for box in (*self.boxes, claim["ranges"], self.errors):
            require(set(box) == names, "a box or the errors name other inputs than the expression")
        self.done: list[_Known] = []

    def _count(self, numbers: Iterable[Fraction]) -> None:
        """Reject a proof that takes too much memory: 1p99999 is short, and its bits are not."""
        self.bits += sum(x.numerator.bit_length() + x.denominator.bit_length() for x in numbers)
        require(self.bits <= _MOST_BITS, "the numbers of a proof are too long")

    def add(self, step: Json) -> None:
        require(set(step) == _STEP, "a step lacks a part, or has one too many")
        index, box = within(step["expression"], self.rows), within(step["box"], self.boxes)
        premises = [self.done[within(place, self.done)] for place in step["premises"]]
        rule, row = step["rule"], self.rows[index]
        if rule == "SPLIT":
            proved = self._split(index, box, premises)
        elif rule == "MEAN":
            proved = self._mean(index, box, premises)
        else:
            require(rule == row[0], "a rule does not fit its expression")
            proved = self._step(row, box, premises)
        known = self.require_looser(step, proved, f"a step by {rule}")
        self._count((*known.real, *known.computed, known.error))
        self.done.append((index, box, known))

    def require_looser(self, step: Json, proved: Proved, where: str) -> Proved:
        """What a step states, if the proof justifies it."""
        real, computed = interval_of(step["real"]), interval_of(step["computed"])
        error = number(step["error"])
        for stated, known in ((real, proved.real), (computed, proved.computed)):
            require(stated[0] <= known[0] and known[1] <= stated[1], f"{where} is too narrow")
        require(error >= proved.error, f"{where} claims too small an error")
        return Proved(real, computed, error)

    def _step(self, row: list[Any], box: int, premises: list[_Known]) -> Proved:
        if row[0] in INPUTS:
            require(not premises, "an input has premises")
            return self._input(row[1], box)
        if row[0] == "CASES":
            return self._cases(row, box, premises)
        self._fit(premises, [(place, box) for place in row[1 : 1 + SHAPES[row[0]][0]]])
        return derived(row, [known for _, _, known in premises], self.form, self.ulps)

    def _fit(self, premises: list[_Known], wanted: list[tuple[int, int]]) -> None:
        """The premises must be about exactly these expressions and boxes, in this order."""
        require([(e, b) for e, b, _ in premises] == wanted, "the premises do not fit")

    def _input(self, name: str, box: int) -> Proved:
        ends, error = self.boxes[box][name], self.errors[name]
        if error is None:
            half = self.form.half(ends)
            return Proved(ends, each(self.form.nearest, ends), half, half)
        computed = (ends[0] - error, ends[1] + error)
        require(size(computed)[1] <= self.form.largest, "an input is too large")
        return Proved(ends, computed, error, error)

    def _split(self, index: int, box: int, premises: list[_Known]) -> Proved:
        require([e for e, _, _ in premises] == [index, index], "the premises do not fit")
        low, high = (self.boxes[b] for _, b, _ in premises)
        whole = self.boxes[box]
        changed = [name for name in whole if not low[name] == high[name] == whole[name]]
        require(len(changed) == 1, "a split does not cut one input")
        (name,) = changed
        require(low[name][1] >= high[name][0], "a split leaves a gap")
        begins, ends = low[name][0] <= whole[name][0], whole[name][1] <= high[name][1]
        require(begins and ends, "a split leaves a rest")
        return _union([known for _, _, known in premises])

    def _cases(self, row: list[Any], box: int, premises: list[_Known]) -> Proved:
        name, relation, at = row[3], row[4], number(row[5])
        require(self.errors[name] == 0 and self.form.holds(at), "a branch may go two ways")
        low, high = self.boxes[box][name]
        then = {"<": low < at, "<=": low <= at, "==": low <= at <= high}[relation]
        other = {"<": high >= at, "<=": high > at, "==": not low == at == high}[relation]
        parts = []
        if then:
            parts.append((row[1], (at, at) if relation == "==" else (low, min(high, at))))
        if other:
            parts.append((row[2], (low, high) if relation == "==" else (max(low, at), high)))
        require([e for e, _, _ in premises] == [e for e, _ in parts], "a case is missing")
        for (_, b, _), (_, ends) in zip(premises, parts, strict=True):
            require(self.boxes[b] == {**self.boxes[box], name: ends}, "a case is over another box")
        return _union([known for _, _, known in premises])

    def _mean(self, index: int, box: int, premises: list[_Known]) -> Proved:
        needed = {index}
        for place in range(index, -1, -1):
            if place in needed:
                needed.update(below(self.rows[place]))
        self._fit(premises, [(place, box) for place in sorted(needed)])
        known = {place: proved for place, _, proved in premises}
        weights: dict[int, Interval] = {index: ONE}
        total = Fraction(0)
        for place in sorted(needed, reverse=True):
            row, weight = self.rows[place], _short(weights.get(place, ZERO))
            parts = [known[other] for other in below(row)]
            ways = slopes(row, parts, known[place])
            lost = known[place].error
            if ways is not None and row[0] in INPUTS:
                lost = self._input(row[1], box).rounding
            elif ways is not None:
                lost = derived(row, parts, self.form, self.ulps).rounding
            total += size(weight)[1] * lost
            for other, slope in zip(below(row) if ways else (), ways or (), strict=True):
                weights[other] = plus(weights.get(other, ZERO), times(weight, slope))
        return Proved(known[index].real, known[index].computed, total)


def _union(parts: list[Proved]) -> Proved:
    require(bool(parts), "a case is missing")
    return Proved(
        (min(p.real[0] for p in parts), max(p.real[1] for p in parts)),
        (min(p.computed[0] for p in parts), max(p.computed[1] for p in parts)),
        max(p.error for p in parts),
    )


def _short(x: Interval) -> Interval:
    """The interval with ends of about 200 bits, outward: exact fractions would grow and grow."""
    most = size(x)[1]
    if most == 0:
        return x
    step = power(most.numerator.bit_length() - most.denominator.bit_length() - 200)
    return x[0] // step * step, -(-x[1] // step) * step
