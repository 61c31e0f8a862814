"""The loss of the snapping mechanism in floats, for every input of its domain."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from lastbit.errors import InvalidParameter
from lastbit.exact import Number, floor_log2, positive, shown
from lastbit.privacy import ApproxDP, PureDP
from lastbit.verify.certificate import Certified, written
from lastbit.verify.error_bounds.formats import power_of_two
from lastbit.verify.loss_rules import (
    JUDGEMENTS,
    LossRules,
    Step,
    case_step,
    latex_of_steps,
    side_names,
    text_of_steps,
)

# significand p, and the exponent e of the least normal number and least uniform, 2**e
FORMATS = MappingProxyType({
    "binary16": (11, -14), "binary32": (24, -126), "binary64": (53, -1022),
    "extended80": (64, -16382), "binary128": (113, -16382),
})  # fmt: skip
CASES = tuple(JUDGEMENTS)
_LARGEST_EPSILON = 256
_SIDES = side_names(2, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SnappingBound(Certified):
    """What the snapping mechanism loses at most: `epsilon + excess`, with `delta`.

    `cases` gives the excess of each case of the proof; `text`, `latex` and `certificate` the proof.
    """

    epsilon: Fraction
    bound: Fraction
    format: str
    derivation: Step
    _text: list[str] = field(default_factory=list, init=False, repr=False, compare=False)

    @property
    def grid(self) -> Fraction:
        return grid(self.epsilon)

    @property
    def excess(self) -> Fraction:
        return self.derivation["excess"]

    @property
    def delta(self) -> Fraction:
        return self.derivation["delta"]

    @property
    def loss(self) -> Fraction:
        return self.epsilon + self.excess

    @property
    def guarantee(self) -> PureDP | ApproxDP:
        return PureDP(self.loss) if self.delta == 0 else ApproxDP(self.loss, self.delta)

    @property
    def cases(self) -> dict[str, Fraction]:
        steps = self.derivation.premises
        return {step.rule: step["excess"] for step in steps if step.rule in CASES}

    @property
    def units(self) -> Fraction:
        return self.excess / power_of_two(-FORMATS[self.format][0])

    @property
    def published(self) -> Fraction:
        """What paper 002 states in the same units, 12 B epsilon + 2 (its B printed as x)."""
        return 12 * self.bound * self.epsilon + 2

    def text(self) -> str:
        """The derivation, conclusions first, one rule a line."""
        return text_of_steps(self.derivation, FORMATS[self.format][0], _SIDES)

    tree = text

    def latex(self) -> str:
        """The derivation as inference rules, one displayed formula for each case."""
        return latex_of_steps(self.derivation, FORMATS[self.format][0], _SIDES)

    def statement(self) -> tuple[str, dict[str, Any], dict[str, Any]]:
        claim = {
            "mechanism": "snapping",
            "format": self.format,
            "epsilon": written(self.epsilon),
            "bound": written(self.bound),
            "distance": "1",
            "loss": written(self.loss),
            "delta": written(self.delta),
        }
        return "snapping", claim, {"derivation": self.derivation.as_json()}


def snapping_bound(*, epsilon: Number, bound: Number, format: str = "binary64") -> SnappingBound:
    """The loss of the snapping mechanism, proved for all inputs in [-bound, bound] and all outputs.

    Law      u uniform on the floats of (0, 1), P(u < a) = a; s = 1 or -1; y = LN(u) / epsilon;
             w = x + s y; released: w rounded to the grid of step 2**k >= 1/epsilon, and clamped
    Theorem  for x, x' at most 1 apart each output has P[x] <= exp(epsilon + excess) P[x'] + delta
             Proof. The output reaches a cell iff x + s y reaches an edge t', a real number that
             does not depend on x (rounding is monotone). So iff y reaches c = t' - x, iff u is not
             below a float G(c) = exp(epsilon c + error), where the error is at most half an ulp
             each for the quotient and the logarithm, and an ulp of u. With no error the law
             is that of Laplace noise cut at the t', and costs epsilon. The errors change a tail by
             their own size, a cell by (q+1)/(q-1) of it, q = exp(epsilon step)
    Source   paper 002, Theorem 2 and its seven cases; Mironov 2012
    Differs  sign-aware; an eighth case (one cell over both inputs) and inputs inside the end cells,
             which the paper leaves out; B in place of the output; the least uniform is counted
    Checked  tests/verify/test_snapping.py, against exact laws; proof: docs/theory/snapping.md

    >>> proved = snapping_bound(epsilon=1, bound=64)
    >>> float(round(proved.units, 1)), int(proved.published)      # in units of 2**-53
    (281.3, 770)
    >>> max(proved.cases, key=proved.cases.get), int(proved.delta)
    ('BELOW', 0)
    """
    exact = positive(epsilon, "epsilon"), positive(bound, "bound")
    if not isinstance(format, str) or format not in FORMATS:
        remedy = f"pass one of {', '.join(FORMATS)}"
        raise InvalidParameter("format", problem="is unknown", remedy=remedy)
    _refuse_unproved(*exact, format)
    derivation = _derivation(*exact, format)
    found = SnappingBound(epsilon=exact[0], bound=exact[1], format=format, derivation=derivation)
    found.certificate()  # no number leaves that the checker rejects
    return found


def grid(epsilon: Fraction) -> Fraction:
    """The least power of two that is not below 1/epsilon."""
    return power_of_two(-floor_log2(epsilon))


def _refuse_unproved(epsilon: Fraction, bound: Fraction, format: str) -> None:
    significand, least = FORMATS[format]
    for name, number in (("epsilon", epsilon), ("bound", bound)):
        odd = number.numerator >> ((number.numerator & -number.numerator).bit_length() - 1)
        dyadic = number.denominator & (number.denominator - 1) == 0
        in_range = power_of_two(least) <= number <= power_of_two(-least)
        if not (dyadic and odd.bit_length() <= significand and in_range):
            problem = f"is not a normal number of {format}, or beyond 2**{-least}"
            remedy = f"pass the float that the mechanism computes with, not {shown(number)[:40]}"
            raise InvalidParameter(name, problem=problem, remedy=remedy)
    lowest, highest = power_of_two(least + significand + 2), power_of_two(-least) / (-2 * least)
    if not lowest <= grid(epsilon) <= highest:
        problem = "makes the noise underflow or overflow"
        raise InvalidParameter("epsilon", problem=problem, remedy="scale the query")
    if epsilon > _LARGEST_EPSILON:
        problem, remedy = f"is above {_LARGEST_EPSILON}", "that hides nothing: lower it"
        raise InvalidParameter("epsilon", problem=problem, remedy=remedy)
    if bound * epsilon > power_of_two(significand - 7):
        problem = f"times epsilon is above 2**{significand - 7}"
        remedy = "lower the bound: rounding errors would be as large as the noise"
        raise InvalidParameter("bound", problem=problem, remedy=remedy)


def _derivation(epsilon: Fraction, bound: Fraction, format: str) -> Step:
    """The rules of docs/theory/snapping.md, which are those of `loss_rules` for ln(u)/epsilon."""
    significand, least = FORMATS[format]
    rules = LossRules(
        rate=epsilon,
        chain=(("DIV", epsilon),),
        significand=significand,
        least=least,
        drawn=significand,
        axiom="NEXT",
    )
    step = grid(epsilon)
    edge = (math.ceil(bound / step) - Fraction(1, 2)) * step
    shift = rules.half_ulp(edge)
    growth = rules.growth(step - 2 * shift)
    reach, wide = edge + shift + bound, step + 2 * shift
    far, over = rules.cell(reach, growth), rules.over(min(wide, reach), growth)
    beside = rules.cell(min(1 + wide, reach), growth)
    end = (rules.tail(reach), rules.half(min(step / 2 + shift, reach)))
    cases = (
        case_step("LOWER END", *end),
        case_step("BELOW", far),
        case_step("OVER LEFT", over, beside),
        case_step("BETWEEN", rules.cell(min(Fraction(1), reach), growth)),
        case_step("OVER RIGHT", over, beside),
        case_step("ABOVE", far),
        case_step("UPPER END", *end),
        case_step("OVER BOTH", over),
    )
    excess = max(case["excess"] for case in cases)
    range_ = rules.range(reach, epsilon + excess)
    clamp = Step("CLAMP", (("bound", bound), ("distance", Fraction(1))))
    values = (("grid", step), ("edge", edge), ("shift", shift), ("growth", growth))
    concluded = (("excess", excess), ("delta", range_["delta"]))
    return Step("SNAPPING", concluded, (clamp, Step("MONOTONE", values), *cases, range_))
