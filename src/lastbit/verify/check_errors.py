"""Checks certificates of kind "error-bound": how far float code strays from its real meaning.

The claim is an expression as a table of steps, the ranges and errors of its inputs, a format, the
library's ulps, and three bounds: where the real value lies, where the machine's, how far apart they
are. The body is a list of judgements, each about one step of the expression over one box of inputs,
each after its premises. A judgement is accepted if its premises prove it by the rule it names
(`check_rules.py`), or by one of these three:

* MEAN: the premises are all steps below, over the same box. Each step's machine value is its
  operation on the machine's operands plus its rounding, and differences pass on with slopes; so the
  error is the sum of all roundings, each times the sum over its ways up of the products of slopes.
* SPLIT: two boxes whose union is the whole.
* CASES: each branch over the part of the box where it may be taken; the compared input is exact.

A judgement may be looser than what its premises prove, never tighter.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from lastbit.verify.arithmetic import number, require
from lastbit.verify.check_formats import Interval, NumberFormat, number_format
from lastbit.verify.check_intervals import times
from lastbit.verify.check_rules import Proved, derived, slopes
from lastbit.verify.check_tables import (
    INPUTS,
    SHAPES,
    below,
    box_of,
    interval_of,
    rows_of,
    ulps_of,
    within,
)

__all__ = ["check_error_bound"]

BOUNDS = frozenset({"real", "computed", "error"})
CLAIM = BOUNDS | {"expression", "ranges", "errors", "format", "ulps"}
STEP = BOUNDS | {"rule", "expression", "box", "premises"}


def check_error_bound(claim: Mapping[str, Any], body: Mapping[str, Any]) -> None:
    """Raise `Rejected` unless the body proves the claim."""
    require(set(claim) == CLAIM and set(body) == {"boxes", "steps"}, "a part is missing")
    proof = _Proof(claim, body)
    require(bool(body["steps"]), "there is no step")
    for step in body["steps"]:
        proof.add(step)
    last = body["steps"][-1]
    require(last["expression"] == len(proof.rows) - 1, "the last step is about another expression")
    whole = box_of(claim["ranges"])
    require(proof.boxes[last["box"]] == whole, "the last step is over another box")
    proof.require_looser(claim, proof.done[-1][2], "the claim")


class _Proof:
    """The judgements accepted so far: (expression, box, what was stated)."""

    def __init__(self, claim: Mapping[str, Any], body: Mapping[str, Any]) -> None:
        self.rows = rows_of(claim["expression"])
        self.form: NumberFormat = number_format(claim["format"])
        self.ulps = ulps_of(claim["ulps"], self.form)
        names = {row[1] for row in self.rows if row[0] in INPUTS}
        names |= {row[3] for row in self.rows if row[0] == "CASES"}
        require(all(map(str.isidentifier, names)), "an input has a name that is no name")
        self.errors = {
            name: None if text == "rounded" else number(text)
            for name, text in claim["errors"].items()
        }
        require(all(e is None or e >= 0 for e in self.errors.values()), "an error is negative")
        self.boxes = [box_of(box) for box in body["boxes"]]
        for box in (*self.boxes, claim["ranges"], self.errors):
            require(set(box) == names, "a box or the errors name other inputs than the expression")
        self.done: list[tuple[int, int, Proved]] = []

    def add(self, step: Mapping[str, Any]) -> None:
        require(set(step) == STEP, "a step lacks a part, or has one too many")
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
        self.done.append((index, box, self.require_looser(step, proved, f"a step by {rule}")))

    def require_looser(self, step: Mapping[str, Any], proved: Proved, where: str) -> Proved:
        """What a step states, if the proof justifies it."""
        real, computed = interval_of(step["real"]), interval_of(step["computed"])
        error = number(step["error"])
        for stated, known in ((real, proved.real), (computed, proved.computed)):
            require(stated[0] <= known[0] and known[1] <= stated[1], f"{where} is too narrow")
        require(error >= proved.error, f"{where} claims too small an error")
        return Proved(real, computed, error)

    def _step(self, row: list[Any], box: int, premises: list[tuple[int, int, Proved]]) -> Proved:
        if row[0] in INPUTS:
            require(not premises, "an input has premises")
            return self._input(self.boxes[box][row[1]], self.errors[row[1]])
        if row[0] == "CASES":
            return self._cases(row, box, premises)
        self._fit(premises, [(place, box) for place in row[1 : 1 + SHAPES[row[0]][0]]])
        return derived(row, [known for _, _, known in premises], self.form, self.ulps)

    def _fit(self, premises: list[tuple[int, int, Proved]], wanted: list[tuple[int, int]]) -> None:
        """The premises must be about exactly these expressions and boxes, in this order."""
        require([(e, b) for e, b, _ in premises] == wanted, "the premises do not fit")

    def _input(self, ends: Interval, error: Fraction | None) -> Proved:
        if error is None:
            near = (self.form.nearest(ends[0]), self.form.nearest(ends[1]))
            return Proved(ends, near, self.form.half(ends), self.form.half(ends))
        computed = (ends[0] - error, ends[1] + error)
        require(max(-computed[0], computed[1]) <= self.form.largest, "an input is too large")
        return Proved(ends, computed, error, error)

    def _split(self, index: int, box: int, premises: list[tuple[int, int, Proved]]) -> Proved:
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

    def _cases(self, row: list[Any], box: int, premises: list[tuple[int, int, Proved]]) -> Proved:
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

    def _mean(self, index: int, box: int, premises: list[tuple[int, int, Proved]]) -> Proved:
        needed = {index}
        for place in range(index, -1, -1):
            if place in needed and self.rows[place][0] != "CASES":
                needed.update(below(self.rows[place]))
        self._fit(premises, [(place, box) for place in sorted(needed)])
        known = {place: proved for place, _, proved in premises}
        weights: dict[int, Interval] = {index: (Fraction(1), Fraction(1))}
        total = Fraction(0)
        for place in sorted(needed, reverse=True):
            row, weight = self.rows[place], _short(weights.get(place, (Fraction(0), Fraction(0))))
            parts = [known[other] for other in below(row)] if row[0] != "CASES" else []
            ways = slopes(row, parts, known[place])
            lost = known[place].error
            if ways is not None and row[0] in INPUTS:
                lost = self._input(self.boxes[box][row[1]], self.errors[row[1]]).rounding
            elif ways is not None:
                lost = derived(row, parts, self.form, self.ulps).rounding
            total += max(-weight[0], weight[1]) * lost
            for other, slope in zip(below(row) if ways else (), ways or (), strict=True):
                share, before = times(weight, slope), weights.get(other, (Fraction(0), Fraction(0)))
                weights[other] = (before[0] + share[0], before[1] + share[1])
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
    most = max(-x[0], x[1])
    if most == 0:
        return x
    step = Fraction(2) ** (most.numerator.bit_length() - most.denominator.bit_length() - 200)
    return x[0] // step * step, -(-x[1] // step) * step
