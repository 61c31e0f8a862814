"""The loss of the snapping mechanism in floats, for every input of its domain."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import Any, TypeAlias

from flint import arb

from lastbit.errors import InvalidParameter
from lastbit.exact import Number, arb_of, ends, floor_log2, positive, shown, working_precision
from lastbit.privacy import ApproxDP, PureDP
from lastbit.verify.certificate import Certified, written
from lastbit.verify.error_bounds.formats import is_power, power_of_two

# significand p, and the exponent e of the least normal number and least uniform, 2**e
FORMATS = MappingProxyType({
    "binary16": (11, -14), "binary32": (24, -126), "binary64": (53, -1022),
    "extended80": (64, -16382), "binary128": (113, -16382),
})  # fmt: skip
CASES = (
    *("LOWER END", "BELOW", "OVER LEFT", "BETWEEN"),
    *("OVER RIGHT", "ABOVE", "UPPER END", "OVER BOTH"),
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
        values = {name: written(value) for name, value in self.values}
        premises = [premise.as_json() for premise in self.premises]
        return {"rule": self.rule, "values": values, "premises": premises}


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

    def tree(self) -> str:
        """The derivation, conclusions first, one rule a line."""

        def lines(step: Step, depth: int) -> Iterator[str]:
            yield f"{'  ' * depth}{step.rule}: {_conclusion(step, self.format)}"
            for premise in step.premises:
                yield from lines(premise, depth + 1)

        return "\n".join(lines(self.derivation, 0))

    text = tree

    def latex(self) -> str:
        """The derivation as inference rules, one displayed formula for each case."""

        def conclusion(step: Step) -> str:
            text = _conclusion(step, self.format)
            return "\\text{" + text.replace("<=", r"$\le$").replace(" eta", r"\,$\eta$") + "}"

        def inference(step: Step) -> str:
            above = r" \qquad ".join(map(inference, step.premises))
            own = f"\\dfrac{{{above}}}{{{conclusion(step)}}}" if above else conclusion(step)
            return f"{own}\\;\\textsc{{{step.rule.title()}}}"

        formulas = [*map(inference, self.derivation.premises), conclusion(self.derivation)]
        return "\n".join(f"\\[ {formula} \\]" for formula in formulas)

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
    derivation = _Derivation(*exact, *FORMATS[format]).whole()
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
        return Step(
            "MONOTONE", (("grid", step), ("edge", edge), ("shift", shift), ("growth", down))
        )

    def _least_uniform(self, reach: Fraction) -> Step:
        """NEXT: for |c| <= reach, -low <= ln G(c) - epsilon c <= high."""
        moved = Fraction(0) if is_power(self.epsilon) else self._half_ulp(reach)
        quotient, logarithm = self.epsilon * moved, self.epsilon * (reach + moved)
        add = Step("ADD", (("reach", reach),))
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

    def _moved(
        self,
        rule: str,
        reach: Fraction,
        growth: Fraction,
        moves: Callable[[arb, arb, arb], tuple[arb, arb]],
    ) -> Step:
        """A probability that gains or loses these parts of itself.

        `moves` takes q and by which parts G can rise and fall: exp(high) - 1 and 1 - exp(-low).
        """
        least = self._least_uniform(reach)
        with working_precision(_PRECISION):
            rise, fall = arb_of(least["high"]).expm1(), -arb_of(-least["low"]).expm1()
            more, less = moves(arb_of(growth), rise, fall)
            up, down = self._up(more.log1p()), self._up(-(-less).log1p())
        return Step(rule, (("up", up), ("down", down)), (least,))

    def _cell(self, reach: Fraction, growth: Fraction) -> Step:
        """CELL: P = (G(c) - G(c - step))/2; the difference amplifies the errors."""

        def moves(q: arb, rise: arb, fall: arb) -> tuple[arb, arb]:
            return (q * rise + fall) / (q - 1), (q * fall + rise) / (q - 1)

        return self._moved("CELL", reach, growth, moves)

    def _over(self, reach: Fraction, growth: Fraction) -> Step:
        """OVER: P = 1 - (G(a) + G(b))/2, the cell around the input; at least (1 - 1/q)/2."""

        def moves(q: arb, rise: arb, fall: arb) -> tuple[arb, arb]:
            return fall * (q + 1) / (q - 1), rise * (q + 1) / (q - 1)

        return self._moved("OVER", reach, growth, moves)

    def _half(self, reach: Fraction) -> Step:
        """HALF: P = 1 - G(a)/2, an end cell with the input inside; at least one half."""
        return self._moved("HALF", reach, Fraction(1), lambda _, rise, fall: (fall, rise))

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


def _conclusion(step: Step, format: str) -> str:
    """What a step says, errors in units of eta and rounded up."""
    unit, parts = power_of_two(-FORMATS[format][0]) * _PIECES, []
    for name, value in step.values:
        if name in {"excess", "up", "down", "low", "high", "error"}:
            shown = f"<= {float(math.ceil(value / unit) * _PIECES):.3f} eta"
        elif name == "delta":
            shown = "0" if value == 0 else f"<= 2**{floor_log2(value) + 1}"
        else:
            shown = f"{float(value):.6g}"
        parts.append(f"{name} {shown}")
    return ", ".join(parts)
