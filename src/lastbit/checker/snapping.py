"""Re-derives the loss of the snapping mechanism from epsilon and the bound alone.

The checker believes the theorem of docs/theory/snapping.md: the eight cases, and what each rule
concludes from its premises. It believes no number. Every number of the derivation is determined by
the rules: exact ones must be met exactly, others must be this checker's own upper bound, rounded up
to the same public step. A claim may be looser than what is proved, never tighter.

| rule | concludes |
|---|---|
| CLAMP | inputs lie within the bound, at most 1 apart |
| MONOTONE | edges are odd multiples of grid/2, rounding moves each by half an ulp, for all inputs |
| ADD | the noise must reach c = edge - input, not above `reach` in size |
| DIV | the quotient moves epsilon c by `error`; nothing if epsilon is a power of two |
| LN | the logarithm adds half an ulp to that |
| NEXT | the least uniform G(c) is within exp(-low), exp(high) of exp(epsilon c) |
| TAIL, CELL, OVER, HALF | by which factors exp(up), exp(-down) a probability can move |
| the eight cases | excess: the greatest `up` and the greatest `down` that can meet |
| RANGE | the edges are above the least uniform, or delta pays for it |
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from .intervals import exponent_of, power
from .numbers import Json, Rejected, exp_bounds, ln_bounds, number, require, spelled

_CLAIM = frozenset({"mechanism", "format", "epsilon", "bound", "distance", "loss", "delta"})
_GUARD, _GROWTH = 24, 40


def check_snapping(claim: Json, body: Json) -> None:
    """Raise `Rejected` unless the derivation proves the claimed loss and delta."""
    require(set(claim) == _CLAIM, "the claim lacks a part, or has one too many")
    require(claim["mechanism"] == "snapping", "the mechanism is not snapping")
    require(set(body) == {"derivation"}, "the body is not one derivation")
    require(claim["distance"] == "1", "the theorem is for inputs at most 1 apart")
    known = {"binary16": (11, -14), "binary32": (24, -126), "binary64": (53, -1022)}
    known |= {"extended80": (64, -16382), "binary128": (113, -16382)}
    form = claim["format"]
    require(isinstance(form, str) and form in known, "the format is unknown")
    significand, least = known[form]
    epsilon, bound = number(claim["epsilon"]), number(claim["bound"])
    # both are normal floats; nothing under- or overflows; errors stay far below the noise
    for value in (epsilon, bound):
        require(power(least) <= value <= power(-least), "a parameter is out of the normal range")
        whole = (value / _half_ulp(value, significand) / 2).denominator == 1
        require(whole, "a parameter is not a number of the format")
    small = epsilon <= 256 and bound * epsilon <= power(significand - 7)
    require(small, "epsilon or the bound is too large")
    step = power(-exponent_of(epsilon))
    require(power(least + significand + 2) <= step, "the noise can underflow")
    require(-2 * least * step <= power(-least), "the noise can overflow")
    expected = _Rules(epsilon, bound, significand, least).snapping()
    _same(body["derivation"], expected)
    loss, delta = epsilon + _of(expected, "excess"), _of(expected, "delta")
    require(number(claim["loss"]) >= loss, "the loss is not proved")
    require(number(claim["delta"]) >= delta, "the delta is not proved")


def _same(given: object, expected: Json) -> None:
    """A step has the rule, the numbers and the premises, in order, that the theorem gives it."""
    if not isinstance(given, Mapping):
        raise Rejected("a step of the derivation is not an object")
    rule = expected["rule"]
    require(set(given) == {"rule", "values", "premises"}, "a step lacks a part")
    require(given["rule"] == rule, f"a step is not {rule} where the theorem needs it")
    require(isinstance(given["values"], Mapping), f"{rule} concludes nothing")
    require(dict(given["values"]) == expected["values"], f"a number of {rule} does not follow")
    premises, needed = given["premises"], expected["premises"]
    require(isinstance(premises, list), f"{rule} has no premises")
    require(len(premises) == len(needed), f"{rule} has not its premises")
    for one, other in zip(premises, needed, strict=True):
        _same(one, other)


class _Rules:
    """The theorem's rules, in fractions; each method gives a node of the derivation."""

    def __init__(self, epsilon: Fraction, bound: Fraction, significand: int, least: int) -> None:
        self.epsilon, self.bound = epsilon, bound
        self.significand, self.least = significand, least

    def snapping(self) -> dict[str, Any]:
        step = power(-exponent_of(self.epsilon))  # the least power of two >= 1/epsilon
        edge = (math.ceil(self.bound / step) - Fraction(1, 2)) * step
        shift = _half_ulp(edge, self.significand)
        growth = math.floor(exp_bounds(self.epsilon * (step - 2 * shift))[0] * 2**_GROWTH)
        q = Fraction(growth, 2**_GROWTH)
        reach, wide = edge + shift + self.bound, step + 2 * shift
        far, over = self.cell(reach, q), self.over(min(wide, reach), q)
        beside, between = (self.cell(min(d, reach), q) for d in (1 + wide, Fraction(1)))
        end = [self.tail(reach), self.half(min(step / 2 + shift, reach))]
        cases = [
            _case("LOWER END", end),
            _case("BELOW", [far]),
            _case("OVER LEFT", [over, beside]),
            _case("BETWEEN", [between]),
            _case("OVER RIGHT", [over, beside]),
            _case("ABOVE", [far]),
            _case("UPPER END", end),
            _case("OVER BOTH", [over]),
        ]
        excess = max(_of(case, "excess") for case in cases)
        clamp = _node("CLAMP", [], bound=self.bound, distance=Fraction(1))
        edges = _node("MONOTONE", [], grid=step, edge=edge, shift=shift, growth=q)
        last = self.range(reach, excess)
        premises = [clamp, edges, *cases, last]
        return _node("SNAPPING", premises, excess=excess, delta=_of(last, "delta"))

    def next(self, reach: Fraction) -> dict[str, Any]:
        exact = power(exponent_of(self.epsilon)) == self.epsilon
        moved = Fraction(0) if exact else _half_ulp(reach, self.significand)
        error, target = self.epsilon * moved, self.epsilon * (reach + moved)
        low = error + _half_ulp(target, self.significand)
        high = low + self.up(ln_bounds(1 + power(1 - self.significand))[1])
        add = _node("ADD", [], reach=reach)
        div = _node("DIV", [add], error=error, reach=target)
        return _node("NEXT", [_node("LN", [div], error=low)], low=low, high=high)

    def tail(self, reach: Fraction) -> dict[str, Any]:
        least = self.next(reach)
        return _node("TAIL", [least], up=_of(least, "high"), down=_of(least, "low"))

    def cell(self, reach: Fraction, q: Fraction) -> dict[str, Any]:
        raised, lowered = _factors(least := self.next(reach))
        return self.moved("CELL", least, q * raised + lowered, q * lowered + raised, q - 1)

    def over(self, reach: Fraction, q: Fraction) -> dict[str, Any]:
        raised, lowered = _factors(least := self.next(reach))
        return self.moved("OVER", least, lowered * (q + 1), raised * (q + 1), q - 1)

    def half(self, reach: Fraction) -> dict[str, Any]:
        raised, lowered = _factors(least := self.next(reach))
        return self.moved("HALF", least, lowered, raised, Fraction(1))

    def moved(
        self, rule: str, least: dict[str, Any], more: Fraction, less: Fraction, of: Fraction
    ) -> dict[str, Any]:
        """A probability of at least `of` parts gains at most `more` or loses at most `less`."""
        require(less < of, "the errors are as large as a probability")
        up, down = ln_bounds(1 + more / of)[1], -ln_bounds(1 - less / of)[0]
        return _node(rule, [least], up=self.up(up), down=self.up(down))

    def range(self, reach: Fraction, excess: Fraction) -> dict[str, Any]:
        least = self.next(reach)
        lowest = -self.least * ln_bounds(Fraction(2))[0]
        paid = power(exponent_of(1 + exp_bounds(self.epsilon + excess)[1]) + 1 + self.least)
        reached = self.epsilon * reach + _of(least, "low") < lowest
        return _node("RANGE", [least], delta=Fraction(0) if reached else paid)

    def up(self, value: Fraction) -> Fraction:
        unit = 2 ** (self.significand + _GUARD)
        return Fraction(math.ceil(value * unit), unit)


def _case(name: str, kinds: list[dict[str, Any]]) -> dict[str, Any]:
    excess = sum(max(_of(kind, which) for kind in kinds) for which in ("up", "down"))
    return _node(name, kinds, excess=Fraction(excess))


def _factors(least: dict[str, Any]) -> tuple[Fraction, Fraction]:
    """Upper bounds of exp(high) - 1 and 1 - exp(-low)."""
    return exp_bounds(_of(least, "high"))[1] - 1, 1 - exp_bounds(-_of(least, "low"))[0]


def _node(rule: str, premises: list[dict[str, Any]], **values: Fraction) -> dict[str, Any]:
    texts = {name: spelled(value) for name, value in values.items()}
    return {"rule": rule, "values": texts, "premises": premises}


def _of(node: Json, name: str) -> Fraction:
    return number(node["values"][name])


def _half_ulp(value: Fraction, significand: int) -> Fraction:
    return power(exponent_of(value) - significand)
