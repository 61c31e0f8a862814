"""Rules for the loss of float programs with noise by ln u: from an edge of a cell down to u.

Law      a computed noise z is a chain of correctly rounded products and quotients of LN(t) with
         numbers; t is uniform on (0, 1), computed without rounding from a draw u. G(c) is the
         conditional probability that z lies beyond a real c, on its side of 0; b is the scale
Theorem  -low <= ln G(c) + |c|/b <= high for 0 < |c| <= reach, low and high by the rules
         ADD     x + z lies beyond a real edge t iff z lies beyond c = t - x: no error
         MUL DIV the float of y f lies beyond c iff y f lies beyond a real c1, |c1 - c| <= h(reach),
                 half an ulp, since rounding is monotone and c1 is the middle between two floats
                 around c; none if f is a power of two. Then y lies beyond c1/f
         LN      a correctly rounded LN(t) lies beyond d iff ln t does beyond d1, |d1 - d| <= h(d).
                 One that is monotone and within k ulps of ln t does so by k ulps of a number a
                 little beyond d: if it lies beyond and ln t does not, |d| - |ln t| <= k ulp(d), and
                 if ln t lies beyond and it does not, |ln t| - |d| <= k ulp(ln t)
         AXUNIF  let t* be the last draw that lies beyond, t+ the next: t* <= exp(-|c|/b + low) and
                 t+ >= exp(-|c|/b - low). Of full precision G = t+ <= t* (1 + 2**(1-p)); the sides
                 of other draws end within a = |beta| (the draw's error) of both t* and t+
         TAIL, CELL, OVER, HALF: by which factors exp(up), exp(-down) the probability of a cell
                 moves from that of Laplace noise cut at the same edges; docs/theory/snapping.md
Source   paper 002, Figure 1 (op, LN) and its rule AxUnif; Mironov 2012
Differs  sign-aware; by steps of the format and not by 1 + eta; any chain and generator
Checked  tests/verify/test_derived_loss.py; the checker has its own, `checker/loss_rules.py`
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any, TypeAlias

from flint import arb

from lastbit.errors import NotCertified
from lastbit.exact import arb_of, ends, floor_log2, working_precision
from lastbit.verify.certificate import written
from lastbit.verify.error_bounds.formats import is_power, power_of_two

_PRECISION = 320
_GUARD, _GROWTH_BITS = 24, 40
_ZERO, _HALF = Fraction(0), Fraction(1, 2)

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
class LossRules:
    """The rules for noise of this rate, 1/b, through these steps, from the sum down to ln.

    `strays` has for each side of the noise what its draw is off: None where every float is drawn
    and t is a multiple of u, else a of the theorem.
    """

    rate: Fraction
    chain: tuple[tuple[str, Fraction], ...]
    significand: int
    least: int
    ulps: Fraction = _HALF
    drawn: int
    strays: tuple[Fraction | None, ...] = (None,)
    axiom: str = "AXUNIF"

    def least_uniform(self, reach: Fraction) -> Step:
        """AXUNIF: for |c| <= reach, -low <= ln G(c) + |c|/b <= high."""
        error, step = _ZERO, Step("ADD", (("reach", reach),))
        for rule, factor in self.chain:
            moved = _ZERO if is_power(abs(factor)) else self.half_ulp(reach)
            size = abs(factor) if rule == "DIV" else 1 / abs(factor)
            error, reach = (error + moved) * size, (reach + moved) * size
            step = Step(rule, (("error", error), ("reach", reach)), (step,))
        low = error + self._ln_error(reach)
        step = Step("LN", (("error", low),), (step,))
        sides = [self._side(reach, low, stray) for stray in self.strays]
        worst = tuple(max(numbers) for numbers in zip(*sides, strict=True))
        return Step(self.axiom, (("low", worst[0]), ("high", worst[1])), (step,))

    def _ln_error(self, reach: Fraction) -> Fraction:
        if self.ulps == _HALF:
            return self.half_ulp(reach)
        beyond = reach + 4 * self.ulps * 2 * self.half_ulp(reach)
        return 2 * self.ulps * self.half_ulp(beyond)

    def _side(
        self, reach: Fraction, low: Fraction, stray: Fraction | None
    ) -> tuple[Fraction, Fraction]:
        with working_precision(_PRECISION):
            if stray is None:
                return low, low + self._up(arb_of(power_of_two(1 - self.drawn)).log1p())
            off = arb_of(stray) * arb_of(reach).exp()
            left = (-arb_of(low)).exp() - off
            if not left > 0:
                raise NotCertified(
                    "AXUNIF: the uniform is too coarse for this region; pass a smaller one, "
                    "or a finer uniform, such as full"
                )
            return self._up(-left.log()), self._up((arb_of(low).exp() + off).log())

    def growth(self, width: Fraction) -> Fraction:
        """The factor by which the law falls over the narrowest cell, rounded down."""
        with working_precision(_PRECISION):
            low, _ = ends(arb_of(self.rate * width).exp())
        return Fraction(math.floor(low * 2**_GROWTH_BITS), 2**_GROWTH_BITS)

    def tail(self, reach: Fraction) -> Step:
        """TAIL: P = G(c)/2, so the errors count once."""
        least = self.least_uniform(reach)
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
        least = self.least_uniform(reach)
        with working_precision(_PRECISION):
            rise, fall = arb_of(least["high"]).expm1(), -arb_of(-least["low"]).expm1()
            q = arb_of(growth)
            if rule != "HALF" and not q > 1:
                raise NotCertified(f"{rule}: the cells are too small for this scale; pass larger")
            more, less = moves(q, rise, fall)
            if not less < 1:
                raise NotCertified(
                    f"{rule}: the errors are as large as a cell's probability; pass a larger cell, "
                    "smaller region or finer uniform"
                )
            up, down = self._up(more.log1p()), self._up(-(-less).log1p())
        return Step(rule, (("up", up), ("down", down)), (least,))

    def cell(self, reach: Fraction, growth: Fraction) -> Step:
        """CELL: P = (G(c) - G(c - step))/2; the difference amplifies the errors."""

        def moves(q: arb, rise: arb, fall: arb) -> tuple[arb, arb]:
            return (q * rise + fall) / (q - 1), (q * fall + rise) / (q - 1)

        return self._moved("CELL", reach, growth, moves)

    def over(self, reach: Fraction, growth: Fraction) -> Step:
        """OVER: P = 1 - (G(a) + G(b))/2, the cell around the input; at least (1 - 1/q)/2."""

        def moves(q: arb, rise: arb, fall: arb) -> tuple[arb, arb]:
            return fall * (q + 1) / (q - 1), rise * (q + 1) / (q - 1)

        return self._moved("OVER", reach, growth, moves)

    def half(self, reach: Fraction) -> Step:
        """HALF: P = 1 - G(a)/2, an end cell with the input inside; at least one half."""
        return self._moved("HALF", reach, Fraction(1), lambda _, rise, fall: (fall, rise))

    def range(self, reach: Fraction, loss: Fraction) -> Step:
        """RANGE: every edge is above the least uniform, or the least uniform's mass is paid for.

        Only where every float is drawn: other draws are counted by AXUNIF.
        """
        least = self.least_uniform(reach)
        delta = _ZERO
        with working_precision(_PRECISION):
            lowest, _ = ends(arb(2).log() * -self.least)
            if None in self.strays and self.rate * reach + least["low"] >= lowest:
                _, factor = ends(arb_of(loss).exp())
                delta = power_of_two(floor_log2(1 + factor) + 1 + self.least)
        return Step("RANGE", (("delta", delta),), (least,))

    def half_ulp(self, number: Fraction) -> Fraction:
        return power_of_two(floor_log2(number) - self.significand)

    def _up(self, ball: arb) -> Fraction:
        """The least multiple of 2**-24 unit round-offs that is not below a ball."""
        unit = 2 ** (self.significand + _GUARD)
        return Fraction(math.ceil(ends(ball)[1] * unit), unit)


def case_step(name: str, *kinds: Step) -> Step:
    """The excess if each input meets the output in one of these ways."""
    excess = max(kind["up"] for kind in kinds) + max(kind["down"] for kind in kinds)
    return Step(name, (("excess", excess),), kinds)


# ---------------------------------------------------------------- the derivation, printed

_BELOW = "{u} ∈ [G({x} - a), G({x} - b)) ∧ {down}"
_ABOVE = "{u} ∈ [G(b - {x}), G(a - {x})) ∧ {up}"
_OVER = "({u} ∈ [G({x} - a), 1) ∧ {down} ∨ {u} ∈ [G(b - {x}), 1) ∧ {up})"
_LOWER = "({u} ∈ (0, G({x} - b)) ∧ {down}, or {u} ∈ (0, 1) ∧ {down} ∨ {u} ∈ [G(b - {x}), 1) ∧ {up})"
_UPPER = "({u} ∈ (0, G(a - {x})) ∧ {up}, or {u} ∈ (0, 1) ∧ {up} ∨ {u} ∈ [G({x} - a), 1) ∧ {down})"
JUDGEMENTS: Mapping[str, tuple[str, str]] = MappingProxyType({
    "LOWER END": (_LOWER, _LOWER), "BELOW": (_BELOW, _BELOW), "OVER LEFT": (_OVER, _BELOW),
    "BETWEEN": (_ABOVE, _BELOW), "OVER RIGHT": (_ABOVE, _OVER), "ABOVE": (_ABOVE, _ABOVE),
    "UPPER END": (_UPPER, _UPPER), "OVER BOTH": (_OVER, _OVER),
})  # fmt: skip
"""For each case which u give an output between its edges a and b, for x and for x' >= x. G(d) is
the u below which the noise goes farther than d: exp(-d/scale), up to the errors of AXUNIF."""


_DRAWS: Mapping[str, str] = MappingProxyType({
    "DRAW": "u ∈ [G(b), G(a)) ∧ s ∼ u′ ∈ [G(b + m), G(a + m)) ∧ s",
    "RELEASE": "u ∈ [G(b - v), G(a - v)) ∧ s ∼ u′ ∈ [G(b - v′), G(a - v′)) ∧ s",
})  # fmt: skip


def judgement(rule: str, names: Sequence[str]) -> str:
    """A case as it is on paper, with the names of its sides, downward and upward; or nothing."""
    if rule not in JUDGEMENTS:
        return _DRAWS.get(rule, "")
    one, other = JUDGEMENTS[rule]
    said = {"down": names[0], "up": names[1]}
    return f"{one.format(u='u', x='x', **said)} ∼ {other.format(u='u′', x='x′', **said)}"


def side_names(programs: int, down: int) -> tuple[str, str]:
    """How the sides of the noise are told apart, the downward one first."""
    both = ("s = 1", "s = -1") if programs == 2 else ("u < 1/2", "u > 1/2")
    return both[down], both[1 - down]


_PIECES = Fraction(1, 1000)
_ERRORS = frozenset({"excess", "up", "down", "low", "high", "error"})
_LATEX = (
    ("<=", r"$\le$"), (" eta", r"\,$\eta$"), ("∈", r"$\in$"), ("∼", r"$\sim$"),
    ("∧", r"$\wedge$"), ("∨", r"$\vee$"), ("′", r"$'$"), (" < ", " $<$ "), (" > ", " $>$ "),
)  # fmt: skip


def _conclusion(step: Step, significand: int, sides: Sequence[str]) -> str:
    """What a step says, errors in units of eta and rounded up; of a case, what it relates."""
    unit, parts = power_of_two(-significand) * _PIECES, []
    for name, value in step.values:
        if name in _ERRORS:
            shown = f"<= {float(math.ceil(value / unit) * _PIECES):.3f} eta"
        elif name == "delta":
            shown = "0" if value == 0 else f"<= 2**{floor_log2(value) + 1}"
        else:
            shown = f"{float(value):.6g}"
        parts.append(f"{name} {shown}")
    related = [said] if (said := judgement(step.rule, sides)) else []
    return "; ".join([*related, ", ".join(parts)])


def text_of_steps(root: Step, significand: int, sides: Sequence[str]) -> str:
    """A derivation, conclusions first, one rule a line."""

    def lines(step: Step, depth: int) -> list[str]:
        own = f"{'  ' * depth}{step.rule}: {_conclusion(step, significand, sides)}"
        return [own, *(line for below in step.premises for line in lines(below, depth + 1))]

    return "\n".join(lines(root, 0))


def latex_of_steps(root: Step, significand: int, sides: Sequence[str]) -> str:
    """A derivation as inference rules, one displayed formula for each premise of the last."""

    def words(step: Step) -> str:
        spelled = _conclusion(step, significand, sides)
        for letters, command in _LATEX:
            spelled = spelled.replace(letters, command)
        return "\\text{" + spelled + "}"

    def inference(step: Step) -> str:
        above = r" \qquad ".join(map(inference, step.premises))
        own = f"\\dfrac{{{above}}}{{{words(step)}}}" if above else words(step)
        return f"{own}\\;\\textsc{{{step.rule.title()}}}"

    formulas = [*map(inference, root.premises), words(root)]
    return "\n".join(f"\\[ {formula} \\]" for formula in formulas)
