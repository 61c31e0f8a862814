"""Gaussian noise of two uniforms in floats, rounded and truncated: its epsilon and delta."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

from flint import arb

from lastbit.errors import InvalidParameter, NotCertified
from lastbit.exact import Number, arb_of, ends, positive, root_bounds, upper, working_precision
from lastbit.privacy import ApproxDP
from lastbit.verify.certificate import Certified, written
from lastbit.verify.error_bounds.formats import BINARY64, Format, Interval, power_of_two
from lastbit.verify.error_bounds.rules import Derivation
from lastbit.verify.error_bounds.semantics import Errors
from lastbit.verify.language import expressions as ex
from lastbit.verify.language.expressions import Expression, Variable, expression_to_json
from lastbit.verify.language.products import linear_form
from lastbit.verify.noise_shape import library_grid
from lastbit.verify.rounding import Setting, followed_code, setting_of
from lastbit.verify.running.uniforms import FullPrecision, Generator, draw_error

_PRECISION = 192
_ROOT_BITS = 160
_FINE = 8  # how often the first two pieces are halved: the code is steepest there
_HALF, _ONE = Fraction(1, 2), Fraction(1)
_MARGIN = Fraction(4097, 4096)  # the checker bounds the normal tail by a continued fraction
_LEAST_TAIL = 1.001  # from where on the checker bounds the normal tail
_NOTHING = (
    "the floats stray too far, or epsilon is too small; pass a larger cell or epsilon, or more "
    "noise"
)
_UNKNOWN = (
    "the noise is not normal by Box and Muller or by the polar method; docs/theory/"
    "gaussian-floats.md has the known forms"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Normal:
    """How two uniforms become a normal number: its variance and what its radius is made of.

    Law      value + noise, where noise is sqrt(2 variance L) times a cosine, or a coordinate over
             sqrt(t), and L = -ln t; `program` is that in its own variables. `radial` names the
             variable that t is, or that 1 - t is if `backward`; `coordinates` are x, y and t in x
             and y of the polar method
    """

    variance: Fraction
    program: Expression
    radial: str
    backward: bool = False
    turned: Fraction = Fraction(0)
    coordinates: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """The sum over a range of t: its derivation, what its inputs are off, and the test of pairs."""

    t: Interval
    sum: Derivation
    errors: Errors
    test: tuple[Derivation, Errors] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianAnalysis(Setting, Certified):
    """What rounded and truncated Gaussian float noise loses at most; every figure rounded up.

    Law      (`epsilon`, `delta`) for every two values of the region at most `sensitivity` apart
    Theorem  given up is a set of draws of probability `missed`; elsewhere the float sum is within
             `delta_t` of value + N, N normal; a cell grown by that has at most 1 + `growth` times
             the probability of the cell shrunk by it. So with the normal law's own `ideal_epsilon`
             and `ideal_delta`: epsilon = ideal_epsilon + ln(1 + growth), and delta =
             (1 + growth) (ideal_delta + exp(ideal_epsilon) missed) + missed
    Source   paper 000, section 4, for a noise with a delta, which the paper leaves open
    Differs  nothing need be monotone: what is far out is given up; proof: `checker/gaussian.py`
             and docs/theory/gaussian-floats.md
    Checked  tests/verify/test_gaussian_floats.py, against all draws of binary16
    """

    sampler: Normal
    accepted: Expression | None
    sum: Expression
    sensitivity: Fraction
    epsilon: Fraction
    inputs: tuple[tuple[Derivation, Errors], ...]
    parts: tuple[Part, ...]
    code: tuple[Mapping[str, Any], ...] = ()

    @property
    def cuts(self) -> Interval:
        """Between which numbers t must lie for anything to be said."""
        return self.parts[0].t[0], self.parts[-1].t[1]

    @property
    def reach(self) -> Fraction:
        """The noise between the cuts is at most this."""
        with working_precision(_PRECISION):
            far = -2 * arb_of(self.cuts[0]).log() * arb_of(self.sampler.variance)
            return Fraction(upper(far.sqrt()))

    @property
    def delta_n(self) -> Fraction:
        worst = max(part.sum.error for part in self.parts)
        return worst + self.reach * self.sampler.turned

    @property
    def delta_t(self) -> Fraction:
        return self.delta_n + self.delta_round

    @property
    def missed(self) -> Fraction:
        low, high = self.cuts
        return low + 1 - high + (self.inputs[2][0].error if self.inputs else 0)

    @property
    def growth(self) -> Fraction:
        """By what part a grown cell is more likely than a shrunk one."""
        wide = self.region[1] - self.region[0] + self.cell / 2
        slope = (min(wide, self.reach + self.cell) + self.delta_t) / self.sampler.variance
        with working_precision(_PRECISION):
            rim = arb_of(2 * slope * self.delta_t).expm1()
            inside = -arb_of(slope * (self.delta_t - self.cell / 2)).expm1()
            return Fraction(upper(rim / inside)) * _MARGIN

    @property
    def ideal_epsilon(self) -> Fraction:
        with working_precision(_PRECISION):
            left = arb_of(self.epsilon) - arb_of(self.growth).log1p()
            return ends(left)[0] - Fraction(1, 1 << 100)

    @property
    def ideal_delta(self) -> Fraction:
        """That of normal noise at `ideal_epsilon`: Q(a) - exp(epsilon) Q(b)."""
        with working_precision(_PRECISION):
            epsilon = arb_of(self.ideal_epsilon)
            mu = arb_of(self.sensitivity) / arb_of(self.sampler.variance).sqrt()
            one, two = (
                ((epsilon / mu + side * mu / 2) / arb(2).sqrt()).erfc() / 2 for side in (-1, 1)
            )
            return Fraction(upper(one - epsilon.exp() * two)) * _MARGIN

    @property
    def delta(self) -> Fraction:
        with working_precision(_PRECISION):
            given_up = arb_of(self.missed)
            each = arb_of(self.ideal_delta) + arb_of(self.ideal_epsilon).exp() * given_up
            return Fraction(upper((1 + arb_of(self.growth)) * each + given_up)) * _MARGIN

    @property
    def is_useful(self) -> bool:
        """Whether anything is proved, by means that the checker has too."""
        if 2 * self.delta_t >= self.cell:
            return False
        mu = float(self.sensitivity) / math.sqrt(self.sampler.variance)
        return float(self.ideal_epsilon) / mu - mu / 2 > _LEAST_TAIL and self.delta < 1

    @property
    def guarantee(self) -> ApproxDP:
        return ApproxDP(self.epsilon, self.delta)

    def statement(self) -> tuple[str, dict[str, Any], dict[str, Any]]:
        accepted = self.accepted
        wanted = 1 if accepted is None else 2
        named = self.code if len(self.code) == wanted else ()
        figures = {"sensitivity": self.sensitivity, "epsilon": self.epsilon, "delta": self.delta}
        claim = self.claim((self.sum,), named, **figures)
        claim["accepted"] = None if accepted is None else expression_to_json(accepted)
        proofs = (self.bounded(*one) for one in self.inputs)
        names = ("delta_n", "delta_round", "delta_t", "missed", "growth")
        body = {
            name: written(getattr(self, name)) for name in (*names, "ideal_epsilon", "ideal_delta")
        }
        more = {
            "variance": written(self.sampler.variance),
            "inputs": dict(zip("xys", proofs, strict=True)) if self.inputs else None,
            "pieces": [
                {
                    "t": [*map(written, part.t)],
                    "x": _side(part.sum),
                    "test": None if part.test is None else self.bounded(*part.test),
                    **self.bounded(part.sum, part.errors),
                }
                for part in self.parts
            ],
        }
        return "gaussian", claim, {**body, **more}


def _side(part: Derivation) -> list[str] | None:
    """The range of the coordinate, where there is one."""
    return next(([written(a), written(b)] for name, a, b in part.box if name == "x"), None)


def gaussian_certificate(
    noise: Callable[..., Any],
    *,
    sensitivity: Number,
    epsilon: Number,
    cell: Number,
    region: tuple[Number, Number],
    accepted: Callable[..., Any] | None = None,
    uniform: Generator | None = None,
    parameters: Mapping[str, Any] | None = None,
    format: Format = BINARY64,
    ulps: Mapping[str, Number] | None = None,
) -> GaussianAnalysis:
    """The delta at an epsilon if this noise is added, rounded to the cell and kept in the region.

    `noise` is ordinary code of two uniforms u and v: by Box and Muller, or by the polar method with
    `accepted`, the code of the number that a pair must have between 0 and 1, or be drawn again.
    ln, sqrt and cos of the library are taken to be within `ulps` (1, 1/2 and 1 by default): the
    certificate says so, and for code with a name the checker tries ln and cos of its machine
    against its own, at some hundred numbers.

    Theorem  `GaussianAnalysis`. `NotCertified` where it says nothing
    Checked  tests/verify/test_gaussian_floats.py

    >>> def noise(u, v):
    ...     return 10.0 * math.sqrt(-2.0 * math.log(1.0 - u)) * math.cos(2.0 * math.pi * v)
    >>> found = gaussian_certificate(noise, sensitivity=1, epsilon=1, cell=1, region=(-100, 100))
    >>> found.sampler.variance, found.delta < 10**-8
    (Fraction(100, 1), True)
    """
    if not isinstance(region, tuple | list) or len(region) != 2:
        raise InvalidParameter("region", problem="is not a pair", remedy="pass (low, high)")
    code = followed_code(noise, "u", "v", parameters=parameters)
    test = () if accepted is None else followed_code(accepted, "u", "v", parameters=parameters)
    if len(code) != 1 or len(test) > 1:
        problem, remedy = "takes a sign", "pass code of u and v alone: a normal number has its sign"
        raise InvalidParameter("noise", problem=problem, remedy=remedy)
    total = ex.Add(Variable("value"), code[0].expression)
    accuracy = dict(ulps or {})
    if accepted is None:
        accuracy.setdefault("cos", 1)
    setting = setting_of(cell, region, uniform, format, accuracy, default=library_grid)
    asked, distance = positive(epsilon, "epsilon"), positive(sensitivity, "sensitivity")
    sampler = recognised(total, test[0].expression if test else None)
    inputs = tuple(_coordinates(sampler, setting))
    found = None
    for caution in (1.0, 2.0, 4.0):  # the cuts are guessed, and may turn out too far out
        low, high = _cuts(sampler, setting, asked, distance, caution)
        found = GaussianAnalysis(
            **setting.fields(),
            sampler=sampler,
            accepted=test[0].expression if test else None,
            sum=total,
            sensitivity=distance,
            epsilon=asked,
            inputs=inputs,
            parts=tuple(_parts(sampler, setting, inputs, low, high)),
        )
        if found.is_useful:
            break
    if found is None or not found.is_useful:
        raise NotCertified(_NOTHING)
    records = tuple(setting.held("normal", code))
    if test:
        records += setting.held("accepted", test)
    analysis = replace(found, code=records)
    analysis.certificate()  # the checker is asked before any figure is seen
    return analysis


# ---------------------------------------------------------------- what the code means


def recognised(total: Expression, accepted: Expression | None) -> Normal:
    """The normal number that value + noise holds, or a refusal."""
    match total:
        case ex.Add(left=Variable(name="value"), right=noise):
            if accepted is None:
                return _box_muller(total, noise)
            return _polar(total, noise, accepted)
    raise NotCertified(_UNKNOWN)


def _box_muller(total: Expression, noise: Expression) -> Normal:
    nodes = ex.table(noise).expressions
    logs = [node.argument for node in nodes if isinstance(node, ex.Ln)]
    angles = [node.argument for node in nodes if isinstance(node, ex.Cos)]
    if len(logs) != 1 or len(angles) != 1:
        raise NotCertified(_UNKNOWN)
    square, powers = _product(noise, {ex.Ln(logs[0]): "L", ex.Cos(angles[0]): "C"})
    if powers != {"L": _HALF, "C": _ONE}:
        raise NotCertified(_UNKNOWN)
    inside, angle = _linear(logs[0]), _linear(angles[0])
    radial, turning = ({*form} - {""} for form in (inside, angle))
    if {*radial, *turning} != {"u", "v"} or len(radial) != 1 or len(turning) != 1:
        raise NotCertified(_UNKNOWN)
    (name,), (other,) = radial, turning
    backward = inside == {"": 1, name: -1}
    if not backward and inside != {name: 1}:
        raise NotCertified(_UNKNOWN)
    with working_precision(_PRECISION):
        turned = Fraction(upper(abs(abs(arb_of(angle[other])) - 2 * arb.pi()))) * _MARGIN
    return Normal(
        variance=abs(square) / 2, program=total, radial=name, backward=backward, turned=turned
    )


def _polar(total: Expression, noise: Expression, accepted: Expression) -> Normal:
    match accepted:
        case ex.Add(left=ex.Multiply(left=x, right=a), right=ex.Multiply(left=y, right=b)):
            if a != x or b != y:
                raise NotCertified(_UNKNOWN)
        case _:
            raise NotCertified(_UNKNOWN)
    seen = set()
    for coordinate in (x, y):
        form = _linear(coordinate)
        name = next(iter({*form} - {""}), "")
        if len(form) != 2 or abs(form.get("", _ONE / 2)) != 1 or form[name] != -2 * form[""]:
            raise NotCertified(_UNKNOWN)
        seen.add(name)
    if seen != {"u", "v"}:
        raise NotCertified(_UNKNOWN)
    for one, other in ((x, y), (y, x)):
        named: dict[Expression, str] = {accepted: "s", one: "x", other: "y"}
        named[ex.Ln(accepted)] = "L"
        square, powers = _product(noise, named)
        if powers == {"L": _HALF, "s": -_HALF, "x": _ONE}:
            s, x_, y_ = Variable("s"), Variable("x"), Variable("y")
            return Normal(
                variance=abs(square) / 2,
                program=_renamed(total, {accepted: s, one: x_}),
                radial="s",
                coordinates=(one, other, _renamed(accepted, {one: x_, other: y_})),
            )
    raise NotCertified(_UNKNOWN)


def _product(node: Expression, named: Mapping[Expression, str]) -> tuple[Fraction, dict[str, Any]]:
    """The coefficient squared, with its sign, and powers of what has a name; L is -ln t."""
    if node in named:
        name = named[node]
        return Fraction(-1 if name == "L" else 1), {name: _ONE}
    match node:
        case ex.Constant(value=value) if value:
            return value * abs(value), {}
        case ex.Negate(argument=below):
            square, powers = _product(below, named)
            return -square, powers
        case ex.Sqrt(argument=below):
            square, powers = _product(below, named)
            if square > 0 and {*powers} <= {"L", "s"}:
                top, bottom = math.isqrt(square.numerator), math.isqrt(square.denominator)
                if Fraction(top, bottom) ** 2 == square:
                    return Fraction(top, bottom), {name: p / 2 for name, p in powers.items()}
        case ex.Multiply(left=left, right=right) | ex.Divide(left=left, right=right):
            way = 1 if isinstance(node, ex.Multiply) else -1
            (a, one), (b, two) = _product(left, named), _product(right, named)
            both = {n: one.get(n, 0) + way * two.get(n, 0) for n in {**one, **two}}
            return a * b**way, {name: power for name, power in both.items() if power}
    raise NotCertified(_UNKNOWN)


def _linear(node: Expression) -> dict[str, Fraction]:
    form = linear_form(node)
    if form is None:
        raise NotCertified(_UNKNOWN)
    return form


def _renamed(node: Expression, named: Mapping[Expression, Variable]) -> Expression:
    """The expression with some of its parts as inputs."""
    if node in named:
        return named[node]
    below = {"left", "right", "argument"} & {*getattr(node, "__match_args__", ())}
    parts: dict[str, Any] = {name: _renamed(getattr(node, name), named) for name in below}
    return replace(node, **parts) if parts else node


# ---------------------------------------------------------------- how far it strays


def _relative(sampler: Normal, uniform: Generator) -> bool:
    """Whether draws are relatively near to t, however small it is."""
    return isinstance(uniform, FullPrecision) and sampler.radial != "s" and not sampler.backward


def _cuts(
    sampler: Normal, setting: Setting, epsilon: Fraction, distance: Fraction, caution: float
) -> Interval:
    """Cuts 2**-k and 1 - 2**-j with about the least delta, judged in floats; proved afterwards."""
    deviation = math.sqrt(sampler.variance)
    off = float(draw_error(setting.uniform)) + float(setting.format.unit_roundoff)
    mu, cell, wide = float(distance) / deviation, float(setting.cell), float(setting.region[1])
    wide -= float(setting.region[0])
    polar = sampler.radial == "s"
    if polar:
        off *= 2  # a coordinate is twice a draw
    fixed = float(setting.delta_round) + wide * float(setting.format.unit_roundoff) * 4

    def promised(k: int, j: int) -> float:
        low, high = 2.0**-k, 2.0**-j
        radius = math.sqrt(-2 * math.log(low))
        near = off * (low if _relative(sampler, setting.uniform) else 1.0)
        stray = near / low * 2 / radius + radius * off * 7
        if polar:
            stray = 4 * off * radius / math.sqrt(low)
        stray += radius * float(sampler.turned)
        stray = fixed + deviation * caution * max(
            stray, (4 if polar else 2) * off / math.sqrt(2 * high)
        )
        if 2.2 * stray >= cell or low < 6 * off * math.sqrt(low) * polar or high < 6 * off:
            return math.inf
        slope = (min(wide, radius * deviation) + cell) / float(sampler.variance)
        grown = math.expm1(min(2 * slope * stray, 600.0)) / -math.expm1(slope * (stray - cell / 2))
        left = float(epsilon) - math.log1p(grown)
        if left / mu - mu / 2 < _LEAST_TAIL:
            return math.inf
        a, b = ((left / mu + side * mu / 2) / math.sqrt(2) for side in (-1, 1))
        ideal = max(math.erfc(a) - math.exp(left) * math.erfc(b), 0.0) / 2
        lost = low + high + 4 * off * polar
        return (1 + grown) * (ideal + math.exp(left) * lost) + lost

    bits = 60
    if isinstance(setting.uniform, FullPrecision) and _relative(sampler, setting.uniform):
        bits = min(400, -setting.uniform.least_exponent)
    places = [(promised(k, j), k, j) for k in range(2, bits) for j in range(2, 52)]
    best, k, j = min(places)
    if best == math.inf:
        raise NotCertified(_NOTHING)
    return power_of_two(-k), 1 - power_of_two(-j)


def _coordinates(sampler: Normal, setting: Setting) -> Iterator[tuple[Derivation, Errors]]:
    """How far x, y and their test are off, for all draws."""
    off: dict[str, Fraction] = {}
    for name, expression in zip("xys", sampler.coordinates, strict=False):
        used = ex.names(expression)
        ranges = {n: (-1, 1) if n in ("x", "y") else (0, 1) for n in used}
        errors: Errors = {n: off.get(n, draw_error(setting.uniform)) for n in used}
        found = setting.analysed(expression, ranges, errors)
        off[name] = found.error
        yield found, errors


def _parts(
    sampler: Normal,
    setting: Setting,
    inputs: tuple[tuple[Derivation, Errors], ...],
    low: Fraction,
    high: Fraction,
) -> Iterator[Part]:
    """The error of the sum, piece by piece: each half as far from 0, or from 1, as the last."""
    places = [low]
    while places[-1] < _HALF:
        places.append(min(2 * places[-1], _HALF))
    while places[-1] < high:
        places.append(min((1 + places[-1]) / 2, high))
    for place, t in enumerate(pairwise(places)):
        ranges: dict[str, tuple[Number, Number]] = {}
        errors: dict[str, Number] = {"value": 0}
        test: tuple[Derivation, Errors] | None = None
        if sampler.radial == "s":
            root = root_bounds(t[1], _ROOT_BITS)[1]
            around: dict[str, tuple[Number, Number]] = dict.fromkeys("xy", (-root, root))
            moved: dict[str, Number] = {n: inputs[k][0].error for k, n in enumerate("xy")}
            found = setting.analysed(sampler.coordinates[2], around, moved)
            test = found, moved
            ranges |= {"s": t, "x": (-root, root)}
            errors |= {"s": found.error, "x": moved["x"]}
        else:
            inside = (1 - t[1], 1 - t[0]) if sampler.backward else t
            other = "v" if sampler.radial == "u" else "u"
            ranges |= {sampler.radial: inside, other: (0, 1)}
            errors |= {sampler.radial: _drawn(setting.uniform, inside)}
            errors |= {other: draw_error(setting.uniform)}
        fine = _FINE if place < 2 else 1
        part = setting.analysed(sampler.program, ranges, errors, pieces=fine)
        yield Part(t, part, errors, test)


def _drawn(uniform: Generator, inside: Interval) -> Fraction:
    """How far draws are off that stand for uniforms of an interval."""
    off = draw_error(uniform)
    if isinstance(uniform, FullPrecision) and inside[0] >= power_of_two(uniform.least_exponent):
        return min(off, inside[1] * power_of_two(1 - uniform.significand))
    return off
