"""The loss of the snapping mechanism in floats, for every input of its domain."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any, TypeAlias

from flint import arb

from lastbit.errors import InvalidParameter
from lastbit.exact import Number, arb_of, ends, floor_log2, positive, shown, working_precision
from lastbit.privacy import ApproxDP, PureDP
from lastbit.verify.certificate import certify
from lastbit.verify.error_bounds.formats import power_of_two

# significand p, and the exponent e of the least normal number and least uniform, 2**e
FORMATS = MappingProxyType({"binary16": (11, -14), "binary32": (24, -126), "binary64": (53, -1022)})
CASES = (
    "LOWER END",
    "BELOW",
    "OVER LEFT",
    "BETWEEN",
    "OVER RIGHT",
    "ABOVE",
    "UPPER END",
    "OVER BOTH",
)
_PRECISION = 320
_GUARD, _GROWTH_BITS = 24, 40
_LARGEST_EPSILON = 256
_PIECES = Fraction(1, 1000)

Values: TypeAlias = tuple[tuple[str, Fraction], ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One application of a rule: its name, the numbers it concludes, and what it rests on."""

    rule: str
    values: Values
    premises: tuple[Step, ...] = ()

    def __getitem__(self, name: str) -> Fraction:
        return dict(self.values)[name]

    def as_json(self) -> dict[str, Any]:
        return {
            "rule": self.rule,
            "values": {name: str(value) for name, value in self.values},
            "premises": [premise.as_json() for premise in self.premises],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SnappingBound:
    """What the snapping mechanism loses at most: `epsilon + excess`, with `delta`.

    `cases` gives the excess of each case of the proof; `text`, `latex` and `certificate` the proof.
    """

    epsilon: Fraction
    bound: Fraction
    format: str
    derivation: Step

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

    def tree(self) -> str:
        return "\n".join(_lines(self.derivation, self.format, depth=0))

    text = tree

    def latex(self) -> str:
        """The derivation as inference rules, one displayed formula for each case."""
        head = _conclusion(self.derivation, self.format)
        formulas = (_inference(step, self.format) for step in self.derivation.premises)
        return "\n".join(f"\\[ {formula} \\]" for formula in (*formulas, _in_latex(head)))

    def certificate(self) -> dict[str, Any]:
        claim = {
            "mechanism": "snapping",
            "format": self.format,
            "epsilon": str(self.epsilon),
            "bound": str(self.bound),
            "distance": "1",
            "loss": str(self.loss),
            "delta": str(self.delta),
        }
        return certify("snapping", claim, {"derivation": self.derivation.as_json()})


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
    exact_epsilon, exact_bound = positive(epsilon, "epsilon"), positive(bound, "bound")
    if not isinstance(format, str) or format not in FORMATS:
        raise InvalidParameter(
            "format", problem="is unknown", remedy=f"pass one of {', '.join(FORMATS)}"
        )
    _refuse_unproved(exact_epsilon, exact_bound, format)
    derivation = _Derivation(exact_epsilon, exact_bound, *FORMATS[format]).whole()
    found = SnappingBound(
        epsilon=exact_epsilon, bound=exact_bound, format=format, derivation=derivation
    )
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
            raise InvalidParameter(
                name,
                problem=f"is not a normal number of {format}, or beyond 2**{-least}",
                remedy=f"pass the float that the mechanism computes with, not {shown(number)[:40]}",
            )
    step = grid(epsilon)
    if not power_of_two(least + significand + 2) <= step <= power_of_two(-least) / (-2 * least):
        raise InvalidParameter(
            "epsilon", problem="makes the noise underflow or overflow", remedy="scale the query"
        )
    if epsilon > _LARGEST_EPSILON:
        raise InvalidParameter(
            "epsilon", problem=f"is above {_LARGEST_EPSILON}", remedy="that hides nothing: lower it"
        )
    if bound * epsilon > power_of_two(significand - 7):
        raise InvalidParameter(
            "bound",
            problem=f"times epsilon is above 2**{significand - 7}",
            remedy="lower the bound: rounding errors would be as large as the noise",
        )


@dataclass(frozen=True, slots=True)
class _Derivation:
    """Applies the rules of docs/theory/snapping.md; transcendental conclusions are rounded up."""

    epsilon: Fraction
    bound: Fraction
    significand: int
    least: int

    def whole(self) -> Step:
        clamp = Step("CLAMP", (("bound", self.bound), ("distance", Fraction(1))))
        edges = self._edges()
        step, shift, growth = edges["grid"], edges["shift"], edges["growth"]
        reach, wide = edges["edge"] + shift + self.bound, step + 2 * shift
        far, over = self._cell(reach, growth), self._over(min(wide, reach), growth)
        beside = self._cell(min(1 + wide, reach), growth)
        end = (self._tail(reach), self._half(min(step / 2 + shift, reach)))
        cases = (
            _case("LOWER END", *end),
            _case("BELOW", far),
            _case("OVER LEFT", over, beside),
            _case("BETWEEN", self._cell(min(Fraction(1), reach), growth)),
            _case("OVER RIGHT", over, beside),
            _case("ABOVE", far),
            _case("UPPER END", *end),
            _case("OVER BOTH", over),
        )
        excess = max(case["excess"] for case in cases)
        range_ = self._range(reach, excess)
        conclusion = (("excess", excess), ("delta", range_["delta"]))
        return Step("SNAPPING", conclusion, (clamp, edges, *cases, range_))

    def _edges(self) -> Step:
        """MONOTONE: the edges are odd multiples of half the grid; rounding moves each by `shift`.

        The shift is common to all inputs. `growth` is exp(epsilon times the narrowest cell), down.
        """
        step = grid(self.epsilon)
        edge = (math.ceil(self.bound / step) - Fraction(1, 2)) * step
        shift = self._half_ulp(edge)
        with working_precision(_PRECISION):
            growth, _ = ends(arb_of(self.epsilon * (step - 2 * shift)).exp())
        down = Fraction(math.floor(growth * 2**_GROWTH_BITS), 2**_GROWTH_BITS)
        values = (("grid", step), ("edge", edge), ("shift", shift), ("growth", down))
        return Step("MONOTONE", values)

    def _least_uniform(self, reach: Fraction) -> Step:
        """NEXT: for |c| <= reach, -low <= ln G(c) - epsilon c <= high."""
        exact_quotient = power_of_two(floor_log2(self.epsilon)) == self.epsilon
        moved = Fraction(0) if exact_quotient else self._half_ulp(reach)
        add = Step("ADD", (("reach", reach),))
        quotient = self.epsilon * moved
        logarithm = self.epsilon * (reach + moved)
        div = Step("DIV", (("error", quotient), ("reach", logarithm)), (add,))
        low = quotient + self._half_ulp(logarithm)
        ln = Step("LN", (("error", low),), (div,))
        with working_precision(_PRECISION):
            next_float = self._up(arb_of(power_of_two(1 - self.significand)).log1p())
        return Step("NEXT", (("low", low), ("high", low + next_float)), (ln,))

    def _tail(self, reach: Fraction) -> Step:
        """TAIL: P = G(c)/2, so the errors count once."""
        least = self._least_uniform(reach)
        return Step("TAIL", (("up", least["high"]), ("down", least["low"])), (least,))

    def _cell(self, reach: Fraction, growth: Fraction) -> Step:
        """CELL: P = (G(c) - G(c - step))/2; the difference amplifies the errors."""
        least = self._least_uniform(reach)
        with working_precision(_PRECISION):
            raised, lowered, q = *_factors(least), arb_of(growth)
            up = self._up(((q * raised + lowered) / (q - 1)).log1p())
            down = self._up(-(-(q * lowered + raised) / (q - 1)).log1p())
        return Step("CELL", (("up", up), ("down", down)), (least,))

    def _over(self, reach: Fraction, growth: Fraction) -> Step:
        """OVER: P = 1 - (G(a) + G(b))/2, the cell around the input; at least (1 - 1/q)/2."""
        least = self._least_uniform(reach)
        with working_precision(_PRECISION):
            raised, lowered, q = *_factors(least), arb_of(growth)
            up = self._up((lowered * (q + 1) / (q - 1)).log1p())
            down = self._up(-(-raised * (q + 1) / (q - 1)).log1p())
        return Step("OVER", (("up", up), ("down", down)), (least,))

    def _half(self, reach: Fraction) -> Step:
        """HALF: P = 1 - G(a)/2, an end cell with the input inside; at least one half."""
        least = self._least_uniform(reach)
        with working_precision(_PRECISION):
            raised, lowered = _factors(least)
            up, down = self._up(lowered.log1p()), self._up(-(-raised).log1p())
        return Step("HALF", (("up", up), ("down", down)), (least,))

    def _range(self, reach: Fraction, excess: Fraction) -> Step:
        """RANGE: every edge is above the least uniform, or the least uniform's mass is paid for."""
        least = self._least_uniform(reach)
        with working_precision(_PRECISION):
            lowest, _ = ends(arb(2).log() * -self.least)
            _, factor = ends(arb_of(self.epsilon + excess).exp())
        reached = self.epsilon * reach + least["low"] < lowest
        delta = Fraction(0) if reached else power_of_two(floor_log2(1 + factor) + 1 + self.least)
        return Step("RANGE", (("delta", delta),), (least,))

    def _half_ulp(self, number: Fraction) -> Fraction:
        return power_of_two(floor_log2(number) - self.significand)

    def _up(self, ball: arb) -> Fraction:
        """The least multiple of 2**-24 unit round-offs that is not below a ball."""
        unit = 2 ** (self.significand + _GUARD)
        return Fraction(math.ceil(ends(ball)[1] * unit), unit)


def _case(name: str, *kinds: Step) -> Step:
    """The excess if each input meets the output in one of these ways."""
    excess = max(kind["up"] for kind in kinds) + max(kind["down"] for kind in kinds)
    return Step(name, (("excess", excess),), kinds)


def _factors(least: Step) -> tuple[arb, arb]:
    """By which parts G can be raised and lowered: exp(high) - 1 and 1 - exp(-low)."""
    return arb_of(least["high"]).expm1(), -arb_of(-least["low"]).expm1()


def _lines(step: Step, format: str, *, depth: int) -> Iterator[str]:
    yield f"{'  ' * depth}{step.rule}: {_conclusion(step, format)}"
    for premise in step.premises:
        yield from _lines(premise, format, depth=depth + 1)


def _conclusion(step: Step, format: str) -> str:
    unit = power_of_two(-FORMATS[format][0])
    parts = (f"{name} {_shown(name, value, unit)}" for name, value in step.values)
    return ", ".join(parts)


def _shown(name: str, value: Fraction, unit: Fraction) -> str:
    if name in {"excess", "up", "down", "low", "high", "error"}:
        return f"<= {float(math.ceil(value / unit / _PIECES) * _PIECES):.3f} eta"
    if name == "delta":
        return "0" if value == 0 else f"<= 2**{floor_log2(value) + 1}"
    return f"{float(value):.6g}"


def _inference(step: Step, format: str) -> str:
    conclusion = _in_latex(_conclusion(step, format))
    if not step.premises:
        return f"{conclusion}\\;\\textsc{{{step.rule.title()}}}"
    above = r" \qquad ".join(_inference(premise, format) for premise in step.premises)
    return f"\\dfrac{{{above}}}{{{conclusion}}}\\;\\textsc{{{step.rule.title()}}}"


def _in_latex(text: str) -> str:
    return "\\text{" + text.replace("<=", r"$\le$").replace(" eta", r"\,$\eta$") + "}"
