"""Rules for noise by ln u that is cut at edges: what each concludes, in fractions.

A step has a rule, numbers and premises, and every number is determined by the rules: exact ones
must be met exactly, others must be this checker's own upper bound, rounded up to the same public
step of 2**-24 unit round-offs. Believed are the theorems, not the numbers.

| rule | concludes |
|---|---|
| ADD | x + z passes an edge iff the noise z passes c = edge - x, which is within `reach` |
| MUL, DIV | the rounded product of y and a number passes c iff y passes c1 over the number, c1 within half an ulp of c (exactly c for a power of two): `error` in all, and the `reach` of y |
| LN | the same for a correctly rounded logarithm (1/2 ulp). One within k ulps and monotone: k ulps of a number beyond |
| AXUNIF, NEXT | -low <= ln G(c) + |c|/scale <= high, G(c) the probability of noise beyond c on its side: of every float drawn, the next one is 1 + 2**(1-p) times as large; of other draws the cut is off by `stray` |
| TAIL, CELL, OVER, HALF | by which factors exp(up), exp(-down) the probability of a cell can move: a half-line; a difference, which amplifies the errors; the cell around the input; an end cell around it |
| RANGE | noise reaches every edge with the least float drawn, or delta pays for it |
"""  # noqa: E501

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from .intervals import exponent_of, is_power_of_two, power
from .numbers import Json, Rejected, exp_bounds, ln_bounds, number, require, spelled

Node: TypeAlias = dict[str, Any]
_GUARD, _GROWTH = 24, 40
_HALF = Fraction(1, 2)


@dataclass(frozen=True)
class Noise:
    """What is known of the noise: its rate and the steps that make it, from the sum down to ln.

    A stray of None stands for draws of every float, of `drawn` bits down to 2**least.
    """

    rate: Fraction
    chain: Sequence[tuple[str, Fraction]]
    bits: int
    ulps: Fraction
    drawn: int
    least: int
    strays: Sequence[Fraction | None]
    axiom: str = "AXUNIF"

    def up(self, value: Fraction) -> Fraction:
        unit = 2 ** (self.bits + _GUARD)
        return Fraction(math.ceil(value * unit), unit)

    def half_ulp(self, value: Fraction) -> Fraction:
        return power(exponent_of(value) - self.bits)

    def growth(self, width: Fraction) -> Fraction:
        """By which factor the law falls over a cell, down to 40 bits."""
        return Fraction(math.floor(exp_bounds(self.rate * width)[0] * 2**_GROWTH), 2**_GROWTH)

    def uniforms(self, reach: Fraction) -> Node:
        below, error, far = node("ADD", [], reach=reach), Fraction(0), reach
        for rule, factor in self.chain:
            rounding = Fraction(0) if is_power_of_two(factor) else self.half_ulp(far)
            error, far = error + rounding, far + rounding
            if rule == "DIV":
                error, far = error * factor, far * factor
            else:
                error, far = error / factor, far / factor
            below = node(rule, [below], error=error, reach=far)
        if self.ulps == _HALF:
            error += self.half_ulp(far)
        else:  # the logarithm may lie in the next binade
            error += 2 * self.ulps * self.half_ulp(far + 8 * self.ulps * self.half_ulp(far))
        low, high = Fraction(0), Fraction(0)
        for stray in self.strays:
            if stray is None:
                one = error, error + self.up(ln_bounds(1 + power(1 - self.drawn))[1])
            else:
                off = stray * exp_bounds(far)[1]
                left = exp_bounds(-error)[0] - off
                require(left > 0, "AXUNIF: the uniform is too coarse")
                one = (
                    self.up(-ln_bounds(left)[0]),
                    self.up(ln_bounds(exp_bounds(error)[1] + off)[1]),
                )
            low, high = max(low, one[0]), max(high, one[1])
        return node(self.axiom, [node("LN", [below], error=error)], low=low, high=high)

    def tail(self, reach: Fraction) -> Node:
        least = self.uniforms(reach)
        return node("TAIL", [least], up=of(least, "high"), down=of(least, "low"))

    def cell(self, reach: Fraction, q: Fraction) -> Node:
        raised, lowered = _factors(least := self.uniforms(reach))
        return self._moved("CELL", least, q * raised + lowered, q * lowered + raised, q - 1)

    def over(self, reach: Fraction, q: Fraction) -> Node:
        raised, lowered = _factors(least := self.uniforms(reach))
        return self._moved("OVER", least, lowered * (q + 1), raised * (q + 1), q - 1)

    def half(self, reach: Fraction) -> Node:
        raised, lowered = _factors(least := self.uniforms(reach))
        return self._moved("HALF", least, lowered, raised, Fraction(1))

    def _moved(
        self, rule: str, least: Node, more: Fraction, less: Fraction, whole: Fraction
    ) -> Node:
        """A probability of at least `whole` parts gains at most `more` or loses at most `less`."""
        require(whole > 0 and less < whole, f"{rule}: the errors are as large as a probability")
        up, down = ln_bounds(1 + more / whole)[1], -ln_bounds(1 - less / whole)[0]
        return node(rule, [least], up=self.up(up), down=self.up(down))

    def range(self, reach: Fraction, loss: Fraction) -> Node:
        least, delta = self.uniforms(reach), Fraction(0)
        lowest = -self.least * ln_bounds(Fraction(2))[0]
        if None in self.strays and self.rate * reach + of(least, "low") >= lowest:
            delta = power(exponent_of(1 + exp_bounds(loss)[1]) + 1 + self.least)
        return node("RANGE", [least], delta=delta)


def _factors(least: Node) -> tuple[Fraction, Fraction]:
    """Upper bounds of exp(high) - 1 and 1 - exp(-low)."""
    return exp_bounds(of(least, "high"))[1] - 1, 1 - exp_bounds(-of(least, "low"))[0]


def case(name: str, kinds: Sequence[Node]) -> Node:
    """The greatest `up` and the greatest `down` that can meet."""
    excess = sum(max(of(kind, which) for kind in kinds) for which in ("up", "down"))
    return node(name, kinds, excess=Fraction(excess))


def node(rule: str, premises: Sequence[Node], **values: Fraction) -> Node:
    """A step as a derivation writes it."""
    texts = {name: spelled(value) for name, value in values.items()}
    return {"rule": rule, "values": texts, "premises": list(premises)}


def of(step: Json, name: str) -> Fraction:
    """A number of a step."""
    return number(step["values"][name])


def require_same(given: object, expected: Json) -> None:
    """Reject unless a step has the rule, the numbers and the premises that the theorem gives it."""
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
        require_same(one, other)
