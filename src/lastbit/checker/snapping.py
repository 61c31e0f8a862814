"""Re-derives the loss of the snapping mechanism from epsilon and the bound alone.

The checker believes the theorem of docs/theory/snapping.md: the eight cases, and what each rule
concludes from its premises (`loss_rules.py`, here for ln(u)/epsilon). It believes no number. A
claim may be looser than what is proved, never tighter. CLAMP: inputs lie within the bound, at most
1 apart; MONOTONE: edges are odd multiples of grid/2, rounding moves each by half an ulp, for all
inputs alike.
"""

from __future__ import annotations

import math
from fractions import Fraction

from .intervals import exponent_of, power
from .loss_rules import Node, Noise, case, node, of, require_same
from .numbers import Json, number, require

_CLAIM = frozenset({"mechanism", "format", "epsilon", "bound", "distance", "loss", "delta"})


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
        whole = (value / power(exponent_of(value) - significand + 1)).denominator == 1
        require(whole, "a parameter is not a number of the format")
    small = epsilon <= 256 and bound * epsilon <= power(significand - 7)
    require(small, "epsilon or the bound is too large")
    step = power(-exponent_of(epsilon))
    require(power(least + significand + 2) <= step, "the noise can underflow")
    require(-2 * least * step <= power(-least), "the noise can overflow")
    chain, half = [("DIV", epsilon)], Fraction(1, 2)
    noise = Noise(epsilon, chain, significand, half, significand, least, [None], "NEXT")
    expected = _snapping(noise, bound)
    require_same(body["derivation"], expected)
    loss, delta = epsilon + of(expected, "excess"), of(expected, "delta")
    require(number(claim["loss"]) >= loss, "the loss is not proved")
    require(number(claim["delta"]) >= delta, "the delta is not proved")


def _snapping(noise: Noise, bound: Fraction) -> Node:
    epsilon = noise.rate
    step = power(-exponent_of(epsilon))  # the least power of two >= 1/epsilon
    edge = (math.ceil(bound / step) - Fraction(1, 2)) * step
    shift = noise.half_ulp(edge)
    q = noise.growth(step - 2 * shift)
    reach, wide = edge + shift + bound, step + 2 * shift
    far, over = noise.cell(reach, q), noise.over(min(wide, reach), q)
    beside, between = (noise.cell(min(d, reach), q) for d in (1 + wide, Fraction(1)))
    end = [noise.tail(reach), noise.half(min(step / 2 + shift, reach))]
    cases = [
        case("LOWER END", end),
        case("BELOW", [far]),
        case("OVER LEFT", [over, beside]),
        case("BETWEEN", [between]),
        case("OVER RIGHT", [over, beside]),
        case("ABOVE", [far]),
        case("UPPER END", end),
        case("OVER BOTH", [over]),
    ]
    excess = max(of(one, "excess") for one in cases)
    clamp = node("CLAMP", [], bound=bound, distance=Fraction(1))
    edges = node("MONOTONE", [], grid=step, edge=edge, shift=shift, growth=q)
    last = noise.range(reach, epsilon + excess)
    return node("SNAPPING", [clamp, edges, *cases, last], excess=excess, delta=of(last, "delta"))
