"""Draws by a logarithm inside programs: noise that is rounded, or a sum of inputs and noise.

A draw of the law "rounded" has the numbers of its noise, from the sum down to ln(u), each with MUL
or DIV; the step to which it is rounded, a power of two; and, if noise is added to it first, a sum
of inputs, clamped or not. Believed is the theorem: let b be the scale, the numbers multiplied, and
let the noise be at most 640 b, but for a probability that delta pays for. Then

* DRAW. Noise alone may be shifted by a multiple m of its step, at most 32 b, at the cost
  |m|/b + excess, and for nothing if it is left alone: both cells belong to one Laplace law, cut at
  odd multiples of half the step; the computed one is within the factors of CELL or OVER of it.
* RELEASE. A sum v of inputs, rounded with its noise, is kept as it is at the cost |v - v'|/b +
  excess, and for nothing if v does not move. Its edges are moved by the addition's rounding, for
  all v alike.

The least float drawn, 2**-1022, goes beyond every edge that occurs here (RANGE).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from .intervals import is_power_of_two, power
from .loss_rules import Node, Noise, case, of
from .numbers import exp_bounds, number, require
from .shape import noise_chain

FIELDS = frozenset({"name", "law", "chain", "step", "value"})
MOST_SHIFT = 32


@dataclass(frozen=True)
class Rounded:
    """A draw by a logarithm: its numbers, its step, and the rows and the clamp of its value."""

    chain: Sequence[tuple[str, Fraction]]
    scale: Fraction
    step: Fraction
    rows: Any
    clamp: tuple[Fraction, Fraction] | None

    def cap(self, cap: Fraction) -> Fraction:
        """How large the noise may be: a multiple of the step."""
        return min(cap, 640 * self.scale) // self.step * self.step

    def loss(self, cap: Fraction, size: Fraction) -> Node:
        """The excess, for a value of at most this size."""
        noise = Noise(1 / self.scale, self.chain, 53, Fraction(1, 2), 53, -1022, [None])
        far = self.cap(cap) + 2 * self.step
        shift = Fraction(0) if self.rows is None else noise.half_ulp(size + far)
        reach = far + MOST_SHIFT * self.scale + shift
        require(of(noise.range(reach, Fraction(1)), "delta") == 0, "RANGE: noise ends too early")
        q = noise.growth(self.step - 2 * shift)
        kinds = [noise.cell(reach, q), noise.over(self.step + 2 * shift, q)]
        return case("DRAW" if self.rows is None else "RELEASE", kinds)

    def beyond(self, cap: Fraction, loss: Node) -> Fraction:
        """An upper bound on the probability that the noise exceeds its cap."""
        high = of(loss["premises"][0]["premises"][0], "high")
        return 2 * exp_bounds(high - self.cap(cap) / self.scale)[1]


def rounded_draw(draw: Mapping[str, Any], cap: Fraction) -> Rounded:
    """A draw as a certificate writes it; rejected if its numbers are not usual floats."""
    require(set(draw) == FIELDS, "a draw has a part too many or too few")
    chain: list[tuple[str, Fraction]] = []
    scale = Fraction(1)
    require(isinstance(draw["chain"], list), "a draw has no numbers")
    for rule, text in reversed(draw["chain"]):
        factor = number(text)
        require(rule in ("MUL", "DIV") and factor > 0, "MUL: a step of noise is unknown")
        require(Fraction(float(factor)) == factor, "MUL: a number of noise is not a float")
        scale = scale * factor if rule == "MUL" else scale / factor
        require(power(-300) <= scale <= power(300), "MUL: noise may underflow or overflow")
        chain.insert(0, (rule, factor))
    step = number(draw["step"])
    fine = step > 0 and is_power_of_two(step) and step <= 16 * scale
    require(fine, "ROUND: a step is no power of two, or wider than 16 scales")
    rows, clamp = None, None
    if draw["value"] is not None:
        require(set(draw["value"]) == {"rows", "clamp"}, "a value has a part too many or too few")
        rows, ends = draw["value"]["rows"], draw["value"]["clamp"]
        if ends is not None:
            low, high = (number(end) for end in ends)
            floats = all(Fraction(float(end)) == end for end in (low, high))
            require(floats and low <= high, "a clamp of a value has no ends")
            clamp = low, high
    found = Rounded(chain, scale, step, rows, clamp)
    require(found.cap(cap) >= 16 * step, "ROUND: the scale is too small for its step")
    return found


def chain_in(rows: Sequence[Sequence[Any]], signs: Sequence[str], uniforms: Sequence[str]) -> Any:
    """Whether there is a value, and the numbers, the sign and the uniform of its noise."""

    def logarithmic(place: int) -> bool:
        rule, *parts = rows[place]
        return rule == "LN" or any(logarithmic(part) for part in parts if type(part) is int)

    at, has_value = len(rows) - 1, False
    require(logarithmic(at), "the code rounds a sum without noise by a logarithm")
    rule, *parts = rows[at]
    if rule in ("ADD", "SUB"):
        value, at = parts
        if rule == "ADD" and logarithmic(value):
            value, at = at, value
        sums = not logarithmic(value) and logarithmic(at)
        require(sums, "the code rounds something else than a value plus noise")
        has_value = True
    chain, sign, drawn = noise_chain(rows, at, lambda place: place, signs)
    fresh = rows[drawn][0] == "VAR" and rows[drawn][1] in uniforms
    require(fresh and len(sign) == 1, "noise has not one sign and uniform")
    return has_value, [[rule, str(factor)] for rule, factor in chain], sign[0], rows[drawn][1]
