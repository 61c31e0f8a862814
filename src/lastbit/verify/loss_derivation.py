"""The loss of float code with rounded noise, derived case by case: where does each output lie?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

from lastbit.errors import NotCertified
from lastbit.exact import Number, positive
from lastbit.privacy import ApproxDP, PureDP
from lastbit.verify.certificate import Certified, written
from lastbit.verify.error_bounds.formats import (
    BINARY64,
    Binary,
    Format,
    Interval,
    is_power,
    power_of_two,
)
from lastbit.verify.error_bounds.semantics import DEFAULT_ULPS
from lastbit.verify.language import expressions as ex
from lastbit.verify.language.expressions import Expression, table
from lastbit.verify.loss_rules import (
    JUDGEMENTS,
    LossRules,
    Step,
    case_step,
    latex_of_steps,
    side_names,
    text_of_steps,
)
from lastbit.verify.noise_shape import (
    Following,
    Side,
    Unrecognised,
    every_float,
    noise_chain,
    sides,
)
from lastbit.verify.rounding import Setting, Ulps, setting_of, values_of
from lastbit.verify.running.uniforms import FullPrecision, Uniform, draw_error, listed_uniform
from lastbit.verify.tracing.trace import Followed

_MOST_RUNS = 8
_MOST_ULPS = 1 << 10
_LARGEST_LN = 746  # no float above 0 has a logarithm beyond this
_ZERO, _HALF, _ONE = Fraction(0), Fraction(1, 2), Fraction(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivedLoss(Setting, Certified):
    """What rounded float noise loses, derived from the text of its program, case by case.

    Law      `epsilon` = `ideal` + `excess` is the worst of all outputs, `outputs` has the loss of
             each run of outputs; `delta` pays for draws that end too early; `derivation` is the
             proof; `text`, `latex` and `certificate` show it
    Theorem  for values at most `declared` apart and every output o that is named there,
             P[x] <= exp(loss(o)) P[x'] + delta. Proof: MONOTONE. K = round(q) passes k + 1/2 iff q
             passes the float there or the next, iff the quotient does a real number, iff x + z does
             another, t: rounding is monotone, and t does not depend on x. It is within `shift` of
             the odd multiple of half the cell. Hence the law of K is that of z cut at t - x, and
             the cases of docs/theory/snapping.md go through with the distances of this output and
             the rules of `loss_rules`: ln P[x]/P[x'] <= |x - x'|/scale + up + down
    Source   paper 002, Theorem 2 and its cases; Figure 1
    Differs  for programs, not for one mechanism; each output has a bound of its own; eight cases
    Checked  tests/verify/test_derived_loss.py; the checker, `checker/loss_derivation.py`
    """

    programs: tuple[Expression, ...]
    scale: Fraction
    declared: Fraction
    down: int
    derivation: Step
    code: tuple[Mapping[str, Any], ...] = ()

    @property
    def ideal(self) -> Fraction:
        return self.declared / self.scale

    @property
    def excess(self) -> Fraction:
        return self.derivation["excess"]

    @property
    def delta(self) -> Fraction:
        return self.derivation["delta"]

    @property
    def epsilon(self) -> Fraction:
        return self.ideal + self.excess

    @property
    def guarantee(self) -> PureDP | ApproxDP:
        return ApproxDP(self.epsilon, self.delta) if self.delta else PureDP(self.epsilon)

    @property
    def units(self) -> Fraction:
        """The excess in units of eta, half the distance from 1 to the next float."""
        return self.excess / self.format.unit_roundoff

    @property
    def outputs(self) -> tuple[tuple[Fraction, Fraction, Fraction], ...]:
        """Runs of rounded sums, each with its first, its last and what each of them loses."""
        runs = (step for step in self.derivation.premises if step.rule == "OUTPUT")
        return tuple((run["first"], run["last"], self.ideal + run["excess"]) for run in runs)

    @property
    def cases(self) -> dict[str, Fraction]:
        """The worst excess of each case over all outputs."""
        worst: dict[str, Fraction] = {}
        for run in self.derivation.premises:
            for case in run.premises if run.rule == "OUTPUT" else ():
                worst[case.rule] = max(worst.get(case.rule, _ZERO), case["excess"])
        return {name: worst[name] for name in JUDGEMENTS if name in worst}

    @property
    def sides(self) -> tuple[str, str]:
        """How the sides of the noise are told apart, the downward one first."""
        return side_names(len(self.programs), self.down)

    def text(self) -> str:
        """The derivation, conclusions first, one rule a line."""
        return text_of_steps(self.derivation, self._bits, self.sides)

    def latex(self) -> str:
        """The derivation as inference rules, one displayed formula for each run of outputs."""
        return latex_of_steps(self.derivation, self._bits, self.sides)

    @property
    def _bits(self) -> int:
        assert isinstance(self.format, Binary)
        return self.format.significand

    def statement(self) -> tuple[str, dict[str, Any], dict[str, Any]]:
        figures = {"sensitivity": self.declared, "epsilon": self.epsilon, "delta": self.delta}
        claim = self.claim(self.programs, self.code, **figures)
        claim["outputs"] = [[written(part) for part in run] for run in self.outputs]
        body = {"scale": written(self.scale), "down": self.down}
        return "derivation", claim, {**body, "derivation": self.derivation.as_json()}


def derived_sums(
    programs: tuple[Expression, ...],
    *,
    sensitivity: Number,
    cell: Number,
    region: tuple[Number, Number],
    uniform: Uniform | None = None,
    wanted: Interval | None = None,
    format: Format = BINARY64,
    ulps: Ulps | None = None,
    code: tuple[Followed, ...] = (),
    role: str = "sum",
    refuse: Callable[[DerivedLoss], None] = lambda found: None,
) -> DerivedLoss:
    """The loss of sums of `value` and noise that are rounded to the cell and kept in the region.

    As `certified_sums`, for sums of one addition: a value, clamped or not, and a chain of products
    and quotients of one logarithm.
    """
    setting = setting_of(cell, region, uniform, format, ulps, default=every_float)
    if not isinstance(format, Binary):
        raise NotCertified("MONOTONE: the rules are for binary floats; use certified_code")
    found, scale = sides(programs)
    setting = replace(setting, values=values_of(found, setting, wanted))
    share, constant = found[0].share, found[0].constant
    if share != 1 or constant:
        raise NotCertified(
            "ADD: the sum is not the value plus noise around 0; scale and move the value before, "
            "or use certified_code"
        )
    distance = positive(sensitivity, "sensitivity")
    rules = _rules(programs, found, setting, format)
    down = next(place for place, side in enumerate(found) if side.log[0] > 0)
    analysis = DerivedLoss(
        **setting.fields(),
        programs=programs,
        scale=scale,
        declared=distance,
        down=down,
        derivation=_derivation(rules, setting, distance),
    )
    refuse(analysis)
    if code:
        analysis = replace(analysis, code=analysis.held(role, code))
    analysis.certificate()  # no number leaves that the checker rejects
    return analysis


# ---------------------------------------------------------------- the steps of a program


def _rules(
    programs: tuple[Expression, ...], found: Sequence[Side], setting: Setting, format: Binary
) -> LossRules:
    uniform = listed_uniform(setting.uniform)
    chains = {_chain(programs[side.program], side, uniform, format) for side in found}
    if len(chains) != 1:
        raise NotCertified("AXUNIF: the two sides compute their noise by other steps; use the same")
    (chain,) = chains
    ulps = (DEFAULT_ULPS | dict(setting.ulps))["ln"]
    if not _HALF <= ulps <= _MOST_ULPS:
        raise NotCertified("LN: the rule is for logarithms within 1/2 to 1024 ulps; pass ulps")
    size = _ONE
    for rule, factor in reversed(chain):
        size *= abs(factor) if rule == "MUL" else 1 / abs(factor)
        # the least noise is that of the u next to 1, some 2**-significand
        least = size * power_of_two(-format.significand - 1)
        if least < format.least_normal or size * _LARGEST_LN > format.largest / 4:
            raise NotCertified(f"{rule}: the noise may underflow or overflow; change the unit")
    if max(map(abs, setting.values)) > format.largest / 4:
        raise NotCertified("ADD: a sum may overflow; change the unit")
    full = isinstance(uniform, FullPrecision)
    strays = tuple(
        None if full and side.log[1] == 0 else abs(side.slope) * draw_error(uniform)
        for side in found
    )
    return LossRules(
        rate=1 / abs(found[0].log[0]),
        chain=chain,
        significand=format.significand,
        least=uniform.least_exponent if isinstance(uniform, FullPrecision) else 0,
        ulps=ulps,
        drawn=uniform.significand if isinstance(uniform, FullPrecision) else 0,
        strays=strays,
    )


def _chain(
    program: Expression, side: Side, uniform: Uniform, format: Binary
) -> tuple[tuple[str, Fraction], ...]:
    """The steps from the sum down to the logarithm, each with its number; signs left out."""

    def taken(node: Expression) -> Expression:
        while isinstance(node, ex.Piecewise):
            middle = (side.interval[0] + side.interval[1]) / 2
            node = node.then if node.condition.holds(middle) else node.otherwise
        return node

    total = taken(program)
    if not isinstance(total, ex.Add | ex.Subtract):
        raise NotCertified("ADD: the last step before the rounding adds no noise to the value")
    parts = [taken(part) for part in (total.left, total.right)]
    value, noise = sorted(parts, key=lambda part: "u" in ex.names(part))
    while isinstance(value, ex.Clamp):
        value = taken(value.argument)
    if not isinstance(value, ex.Variable) or "value" in ex.names(noise):
        raise NotCertified(
            "ADD: the code changes the value before it adds noise; add the noise to the plain "
            "value, or use certified_code"
        )
    try:
        chain, signs, argument = noise_chain(noise, taken)
    except Unrecognised:
        signs = [noise]
    if signs:
        raise NotCertified(
            "MUL: the noise is not a product or quotient of ln(u) with numbers; write "
            "scale * math.log(u), or use certified_code"
        )
    if not all(format.holds(factor) for _, factor in chain):
        raise NotCertified("MUL: a number of the noise is not a float; write it as one")
    _check_argument(argument, side, uniform, format)
    return tuple(chain)


def _check_argument(argument: Expression, side: Side, uniform: Uniform, format: Binary) -> None:
    """Refuse unless the argument of the logarithm is computed without rounding, for every draw.

    Theorem  a step alpha + beta u is a float if alpha and beta times the grid of the draws on its
             side are multiples of one power of two, and no more than 2**significand of it. A power
             of two times u is one for every float
    """
    following = Following(table(argument), side.interval)
    grid = _grid(uniform, side.interval)
    for index in range(len(following.steps.expressions)):
        line = following.linear(index)
        if not line.slope and format.holds(line.constant):
            continue
        usual = _ONE <= abs(line.slope) <= power_of_two(64)  # nothing underflows
        if usual and line.constant == 0 and is_power(abs(line.slope)):
            continue
        unit = _common_unit(line.constant, line.slope * grid) if grid else _ZERO
        most = max(abs(line.at(end)) for end in side.interval)
        if not usual or not unit or most > unit * power_of_two(format.significand):
            raise NotCertified(
                "LN: the argument of the logarithm is rounded for some draws; write log(u), or "
                "draw from a grid"
            )


def _grid(uniform: Uniform, interval: Interval) -> Fraction:
    """A number of which all draws of the interval are multiples; 0 where there is none of use."""
    if isinstance(uniform, FullPrecision):
        return power_of_two(-uniform.significand) if interval[0] >= _HALF else _ZERO
    return power_of_two(-uniform.bits - (uniform.offset.denominator - 1))


def _common_unit(one: Fraction, two: Fraction) -> Fraction:
    """The greatest power of two of which both are multiples; 0 if there is none."""
    if any(x.denominator & (x.denominator - 1) for x in (one, two)):
        return _ZERO
    lowest = [Fraction(x.numerator & -x.numerator, x.denominator) for x in (one, two) if x]
    return min(lowest)


# ---------------------------------------------------------------- outputs and cases


def _derivation(rules: LossRules, setting: Setting, distance: Fraction) -> Step:
    cell, (low, high) = setting.cell, setting.values
    first, last = (int(end / cell) for end in setting.region)
    farthest = max(abs(first + _HALF), abs(last - _HALF)) * cell + setting.delta_round
    shift = setting.delta_round + rules.half_ulp(farthest)
    if 4 * shift >= cell:
        raise NotCertified("MONOTONE: rounding moves edges by a quarter cell; pass a larger cell")
    growth = rules.growth(cell - 2 * shift)
    outputs = _Outputs(rules, low, high, distance, cell, shift, growth)
    runs = [outputs.lowest(first), *outputs.inner(first + 1, last - 1), outputs.highest(last)]
    excess = max(run["excess"] for run in runs)
    reach = max(high - (first + _HALF) * cell, (last - _HALF) * cell - low) + shift
    range_ = rules.range(reach, distance * rules.rate + excess)
    values = Step("VALUES", (("least", low), ("greatest", high), ("distance", distance)))
    edges = Step("MONOTONE", (("cell", cell), ("shift", shift), ("growth", growth)))
    concluded = (("excess", excess), ("delta", range_["delta"]))
    return Step("PROGRAM", concluded, (values, edges, *runs, range_))


@dataclass(frozen=True, slots=True)
class _Outputs:
    """Cases of outputs, by the distances of values from their edges."""

    rules: LossRules
    low: Fraction
    high: Fraction
    distance: Fraction
    cell: Fraction
    shift: Fraction
    growth: Fraction

    def lowest(self, index: int) -> Step:
        edge = (index + _HALF) * self.cell
        kinds = self._end(self.high - edge, edge - self.low)
        return self._output(index, index, [case_step("LOWER END", *kinds)])

    def highest(self, index: int) -> Step:
        edge = (index - _HALF) * self.cell
        kinds = self._end(edge - self.low, self.high - edge)
        return self._output(index, index, [case_step("UPPER END", *kinds)])

    def _end(self, outside: Fraction, inside: Fraction) -> list[Step]:
        """An end cell with values as far outside as this, and inside; none if below 0."""
        kinds = []
        if outside + self.shift > 0:
            kinds.append(self.rules.tail(outside + self.shift))
        if inside + self.shift > 0:
            kinds.append(self.rules.half(inside + self.shift))
        return kinds

    def inner(self, first: int, last: int) -> list[Step]:
        """The outputs between the ends, in runs of nearly equal length; equal ones are one."""
        count = last - first + 1
        parts = min(count, _MOST_RUNS)
        starts = [first + count * k // parts for k in range(parts)] + [last + 1] if count else []
        runs: list[Step] = []
        for start, after in pairwise(starts):
            run = self._run(start, after - 1)
            if runs and runs[-1]["excess"] == run["excess"]:
                run = self._run(int(runs.pop()["first"] / self.cell), after - 1)
            runs.append(run)
        return runs

    def _run(self, first: int, last: int) -> Step:
        rules, growth, wide = self.rules, self.growth, self.cell + 2 * self.shift
        below = self.high - (first - _HALF) * self.cell + self.shift
        above = (last + _HALF) * self.cell - self.low + self.shift
        reach = max(below, above)
        over = rules.over(min(wide, reach), growth)
        beside = rules.cell(min(self.distance + wide, reach), growth)
        cases = [
            case_step("OVER LEFT", over, beside),
            case_step("BETWEEN", rules.cell(min(self.distance, reach), growth)),
            case_step("OVER RIGHT", over, beside),
            case_step("OVER BOTH", over),
        ]
        if below > 0:
            cases.insert(0, case_step("BELOW", rules.cell(below, growth)))
        if above > 0:
            cases.insert(-1, case_step("ABOVE", rules.cell(above, growth)))
        return self._output(first, last, cases)

    def _output(self, first: int, last: int, cases: list[Step]) -> Step:
        excess = max(case["excess"] for case in cases)
        ends = (("first", first * self.cell), ("last", last * self.cell))
        return Step("OUTPUT", (*ends, ("excess", excess)), tuple(cases))
