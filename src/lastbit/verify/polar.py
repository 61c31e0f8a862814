"""Planar Laplace noise in floats, of a radius and an angle, rounded to squares of a region."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from types import MappingProxyType
from typing import Any, NoReturn, TypeAlias

from flint import arb

from lastbit.errors import InvalidParameter, NotCertified, WrongType
from lastbit.exact import Number, arb_of, ends, positive, rational, root_above, working_precision
from lastbit.mechanisms import PlanarStray, PolarLaplace, planar_stray, radius_modulus
from lastbit.privacy import MetricDP
from lastbit.sampling import PLACES, RADIUS_ERROR, least, survival
from lastbit.verify.certificate import Certified, written
from lastbit.verify.error_bounds.formats import BINARY64, Format, Interval, power_of_two
from lastbit.verify.error_bounds.rules import Derivation
from lastbit.verify.error_bounds.semantics import DEFAULT_ULPS, Errors
from lastbit.verify.language import expressions as ex
from lastbit.verify.language.expressions import Expression, Variable, expression_to_json, table
from lastbit.verify.language.products import Polynomial, polynomials
from lastbit.verify.noise_shape import library_grid
from lastbit.verify.one_rounding import parts_of, zero_signs
from lastbit.verify.rounding import Setting, followed_code, setting_of
from lastbit.verify.running.uniforms import FullPrecision, Uniform, draw_error, listed_uniform
from lastbit.verify.tracing.agreement import noise_points
from lastbit.verify.tracing.binding import record
from lastbit.verify.tracing.steps import passes_whole_to_numpy
from lastbit.verify.tracing.trace import Followed

Rectangle: TypeAlias = tuple[Interval, Interval]
Sums: TypeAlias = tuple[Expression, Expression]

_PRECISION = 256
_MARGIN = 1 + power_of_two(-50)  # the checker knows fewer digits of pi
_ONE = Fraction(1)
_TURN_ERROR = power_of_two(-51)  # 4u, of `cos_sin_turn`
_STANDS_FOR = (
    "PolarLaplace takes these steps, point by point. Its radius, cosine and sine are within the "
    "stated errors: docs/theory/polar.md proves that; it is not checked here."
)
_TRIG = MappingProxyType({"cos": 1, "sin": 1})


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """Draws that are words of bits: a radius, a cosine and a sine, each within an error.

    Law      for two words k, m of `bits` bits: `r` is C**-1((k + 1/2)/2**bits), C(x) = 1 - (1 + x)
             e**-x, and `c`, `s` are cosine and sine of (m + 1/2)/2**bits of a turn
    """

    bits: int
    radius_error: Fraction
    turn_error: Fraction

    @property
    def farthest(self) -> Fraction:
        """No radius exceeds it."""
        with working_precision(_PRECISION):
            return least(lambda x: survival(x) < arb_of(draws_off(self)), places=8)

    def written(self) -> dict[str, Any]:
        errors = {"radius": written(self.radius_error), "turn": written(self.turn_error)}
        return {"model": "words", "bits": self.bits, **errors}


@dataclass(frozen=True, slots=True)
class Planar:
    """What two sums mean: a point, and noise of this rate in polar coordinates.

    Law      x + r cos(a), y + r sin(a), or with sine and cosine exchanged: r is the sum of the
             `radial` steps over the rate, up to its sign. Each is the logarithm of a draw t, or of
             1 - t if `backward`; or r itself is drawn, and so are the `turns`. The angle is a
             number and a draw times 2 pi, but for `turned`
    """

    steps: ex.Table
    rate: Fraction
    radial: tuple[int, ...]
    turns: tuple[int, ...]
    backward: tuple[bool, ...] = ()
    turned: Fraction = Fraction(0)

    def renamed(self, which: int, named: Mapping[int, str]) -> Expression:
        """One of the sums, with some of its steps as inputs."""
        made: list[Expression] = []
        for place, (node, below) in enumerate(
            zip(self.steps.expressions[:-1], self.steps.below, strict=False)
        ):
            under: Any = [made[k] for k in below]
            if place in named:
                made.append(Variable(named[place]))
            else:
                made.append(type(node)(*under) if under else node)
        return made[self.steps.below[-1][which]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolarAnalysis(Certified):
    """What planar Laplace noise in floats loses at most; every figure rounded up.

    Law      inputs of `values` at distance d > 0 lose at most `rate` d + `excess`, "outside" being
             one of the results; `epsilon` is that for d = `sensitivity`
    Theorem  that of `planar_stray`: computed sums are within `delta_n` in each coordinate, for all
             draws, and the quotient by the cell moves an edge by delta_round. Two logarithms move
             by ln(1 + delta_0/c) each, c = exp(-rate reach), or relatively little for a generator
             of full precision. Proof: docs/theory/polar.md
    Source   paper 000, Theorem 4.5 and section 6, corrected
    Differs  for code as it is, the radius also as a sum of two logarithms; C**-1 by its modulus of
             continuity; floats are close at all draws, so that no code need be monotone
    Checked  tests/verify/test_polar.py, against all draws of binary16; the independent checker,
             `checker/polar.py`
    """

    setting: Setting
    uniform: Uniform | Words
    region: Rectangle
    values: Rectangle
    planar: Planar
    sensitivity: Fraction
    logs: tuple[Derivation, ...]
    turns: tuple[Derivation, ...]
    sums: tuple[tuple[Derivation, Errors], ...]
    stray: PlanarStray
    delta_n: Fraction
    excess: Fraction
    code: tuple[Mapping[str, Any], ...] = ()
    beyond: tuple[str, ...] = ()
    _text: list[str] = field(default_factory=list, init=False, repr=False, compare=False)

    @property
    def rate(self) -> Fraction:
        return self.planar.rate

    @property
    def cell(self) -> Fraction:
        return self.setting.cell

    @property
    def epsilon(self) -> Fraction:
        return self.rate * self.sensitivity + self.excess

    @property
    def guarantee(self) -> MetricDP:
        return MetricDP(self.rate, slack=self.excess / self.rate)

    def statement(self) -> tuple[str, dict[str, Any], dict[str, Any]]:
        ulps, bounded = DEFAULT_ULPS | dict(self.setting.ulps), self.setting.bounded
        figures = ("cell", "sensitivity", "rate", "excess", "epsilon")
        claim = {
            "code": [dict(one) for one in self.code],
            "programs": [expression_to_json(self.planar.renamed(k, {})) for k in (0, 1)],
            "format": self.setting.format.json(),
            "ulps": {name: written(most) for name, most in ulps.items()},
            "uniform": self.uniform.written(),
            "region": [[*map(written, side)] for side in self.region],
            "values": [[*map(written, side)] for side in self.values],
            **{name: written(getattr(self, name)) for name in figures},
        }
        strays = ("reach", "omega", "moved", "delta_t")
        body = {
            **{name: written(getattr(self.stray, name)) for name in strays},
            "delta_n": written(self.delta_n),
            "delta_round": written(self.setting.delta_round),
            "logs": [
                {"real": [*map(written, one.conclusion.real)], **bounded(one)} for one in self.logs
            ],
            "turns": [bounded(one) for one in self.turns],
            "sums": [bounded(*one) for one in self.sums],
            "farthest": written(self.uniform.farthest) if isinstance(self.uniform, Words) else None,
        }
        return "polar", claim, body


def polar_certificate(
    noise: Callable[..., Any],
    *,
    sensitivity: Number,
    cell: Number,
    region: Sequence[Sequence[Number]],
    values: Sequence[Sequence[Number]] | None = None,
    uniform: Uniform | None = None,
    parameters: Mapping[str, Any] | None = None,
    format: Format = BINARY64,
    ulps: Mapping[str, Number] | None = None,
) -> PolarAnalysis:
    """What is lost if this noise is added to a point, rounded to squares, and outside is told.

    `noise` is ordinary code of three uniforms u, v and w, and returns two numbers: r cos(a) and
    r sin(a), where r is minus the sum of two logarithms of uniforms over the rate, and the angle a
    is 2 pi times the third. Points are added, rounded to the nearest multiples of the cell, and
    reported as outside unless they lie in the region, ((low, high), (low, high)); `values` are the
    points that the promise is about (the region by default), `sensitivity` is how far apart two of
    them are. ln, cos and sin of the library are taken to be within `ulps` (1 by default): the
    certificate says so, and for code with a name the checker tries those of its machine.

    Theorem  `PolarAnalysis`; `NotCertified` with a reason where it says nothing
    Checked  tests/verify/test_polar.py

    >>> import math
    >>> def noise(u, v, w):
    ...     r = -200.0 * (math.log(1.0 - u) + math.log(1.0 - v))
    ...     return r * math.cos(2.0 * math.pi * w), r * math.sin(2.0 * math.pi * w)
    >>> found = polar_certificate(noise, sensitivity=200, cell=4, region=[(-1000, 1000)] * 2)
    >>> found.rate, 1 < found.epsilon < 1 + 1e-3
    (Fraction(1, 200), True)
    """
    code = _followed(noise, ("u", "v", "w"), parameters)
    x, y = (ex.Add(Variable(n), one.expression) for n, one in zip("xy", code, strict=True))
    setting, area, inside = _setting(cell, region, values, uniform, format, ulps)
    found = _analysed(setting, area, inside, (x, y), positive(sensitivity, "sensitivity"))
    return _held(found, "planar noise", code)


def certified_planar_code(
    code: Callable[..., Any],
    *,
    sensitivity: Number,
    region: Sequence[Sequence[Number]],
    values: Sequence[Sequence[Number]] | None = None,
    uniform: Uniform | None = None,
    parameters: Mapping[str, Any] | None = None,
    ulps: Mapping[str, Number] | None = None,
) -> PolarAnalysis:
    """The same for code of a point x, y and of u, v, w that rounds both sums itself.

    What it returns beyond the region must be reported as outside. Code that clamps is refused: far
    out draws are not near to what they stand for, and nothing is known of the edge they lead to.

    >>> import math
    >>> def release(x, y, u, v, w):
    ...     r = -200.0 * (math.log(1.0 - u) + math.log(1.0 - v))
    ...     east = x + r * math.cos(2.0 * math.pi * w)
    ...     north = y + r * math.sin(2.0 * math.pi * w)
    ...     return 4.0 * round(east / 4.0), 4.0 * round(north / 4.0)
    >>> certified_planar_code(release, sensitivity=200, region=[(-1000, 1000)] * 2).cell
    Fraction(4, 1)
    """
    both = _followed(code, ("x", "y", "u", "v", "w"), parameters)
    try:
        parts = [parts_of(one.expression) for one in both]
    except NotCertified:
        raise NotCertified(
            "a coordinate that is not rounded last tells the point by its last bits; "
            "return step * round(x / step) for both"
        ) from None
    if any(link[0] == "CLAMP" for part in parts for link in part.links):
        raise NotCertified(
            "the code clamps a coordinate; return the rounded point, and report what lies beyond "
            "the region as outside"
        )
    if parts[0][1:] != parts[1][1:] or not parts[0].is_plain:
        raise NotCertified(
            "the code rounds its coordinates in two ways, or changes them afterwards; write "
            "step * round(x / step) for both"
        )
    for one in both:
        types = one.typed()
        if len(zero_signs(one.rows, types)) > 1:
            raise NotCertified(
                "the code gives -0.0, which tells on which side of 0 a coordinate lay; add 0.0"
            )
        if len(types[-1].kinds) > 1 or passes_whole_to_numpy(one.rows, types):
            raise NotCertified(
                "the code computes with whole numbers in numpy, or returns two types; write floats"
            )
    setting, area, inside = _setting(parts[0].cell, region, values, uniform, BINARY64, ulps)
    totals = parts[0].total, parts[1].total
    found = _analysed(setting, area, inside, totals, positive(sensitivity, "sensitivity"))
    return _held(found, "planar mechanism", both)


def _followed(
    code: object, data: tuple[str, ...], parameters: Mapping[str, Any] | None
) -> tuple[Followed, ...]:
    """Both coordinates of code that returns a pair."""
    both = [followed_code(code, *data, parameters=parameters, part=part) for part in (0, 1)]
    if any(len(one) != 1 for one in both):
        problem, remedy = "takes a sign", "pass code of its draws alone: the angle has the sign"
        raise InvalidParameter("noise", problem=problem, remedy=remedy)
    return both[0][0], both[1][0]


def _setting(
    cell: Number,
    region: object,
    values: object,
    uniform: Uniform | None,
    format: Format,
    ulps: Mapping[str, Number] | None,
) -> tuple[Setting, Rectangle, Rectangle]:
    """How sums are computed and rounded, and the two rectangles, or what has no meaning."""
    area = _rectangle(region, "region")
    inside = area if values is None else _rectangle(values, "values")
    accuracy = {**_TRIG, **(ulps or {})}
    one, two = (
        setting_of(cell, side, uniform, format, accuracy, default=library_grid) for side in area
    )
    rounding = max(one.delta_round, two.delta_round)
    return replace(one, delta_round=rounding), area, inside


def _rectangle(given: object, name: str) -> Rectangle:
    sides = list(given) if isinstance(given, list | tuple) else []
    if len(sides) != 2 or not all(isinstance(s, list | tuple) and len(s) == 2 for s in sides):
        remedy = "pass ((low, high), (low, high)), of x and of y"
        raise WrongType(name, problem="is not a pair of intervals", remedy=remedy)
    first, second = ((rational(s[0], name), rational(s[1], name)) for s in sides)
    if any(low >= high for low, high in (first, second)):
        raise InvalidParameter(name, problem="is empty", remedy="pass low < high twice")
    return first, second


def _held(analysis: PolarAnalysis, role: str, code: tuple[Followed, ...]) -> PolarAnalysis:
    """The analysis with what a certificate says of its code, which is called at many points."""
    setting = analysis.setting
    extra: dict[str, list[float]] = {}
    for name, side in zip("xy", analysis.values, strict=True):
        points = noise_points(analysis.cell, side, setting.uniform)
        extra |= {name: points["value"], **dict.fromkeys("uvw", points["u"])}
    for one in code:
        one.agree(extra, rounds=3, seed=f"{role} {analysis.cell} {analysis.region}")
    named = record(role, code) if setting.format == BINARY64 else None
    found = replace(analysis, code=() if named is None else (named,))
    found.certificate()  # no number leaves that the checker rejects
    return found


def polar_laplace_certificate(mechanism: PolarLaplace) -> PolarAnalysis:
    """The same for the mechanism that lastbit ships, at the excess that it promises.

    Its radius is C**-1 of one uniform, as in paper 000. That radius, cosine and sine are within
    their errors is proved in docs/theory/polar.md and stated in the certificate, which names no
    code: they are tables and steps of numpy that cannot be followed.

    >>> noise = PolarLaplace(epsilon=1, within=200, cell=4, half_width=2000, inputs=1000)
    >>> found = polar_laplace_certificate(noise)
    >>> found.guarantee.at(200).epsilon <= 1, found.certificate()["kind"]
    (True, 'polar')
    """
    if not isinstance(mechanism, PolarLaplace):
        problem = f"is a {type(mechanism).__name__}"
        raise WrongType("mechanism", problem=problem, remedy="pass a PolarLaplace")
    radius = ex.Multiply(Variable("r"), ex.Constant(1 / mechanism.rate))
    sums = (
        ex.Add(Variable("x"), ex.Multiply(radius, Variable("c"))),
        ex.Add(Variable("y"), ex.Multiply(radius, Variable("s"))),
    )
    area, inside = (
        [(middle - wide, middle + wide) for middle in mechanism.centre]
        for wide in (mechanism.half_width, mechanism.inputs)
    )
    setting = _setting(mechanism.cell, area, inside, None, BINARY64, None)
    words = Words(bits=PLACES, radius_error=RADIUS_ERROR, turn_error=_TURN_ERROR)
    found = _analysed(*setting, sums, mechanism.within, words)
    if found.excess > mechanism.bounds.excess:
        raise NotCertified("the mechanism promises less than is proved of it; report this")
    found = replace(found, excess=mechanism.bounds.excess, beyond=(_STANDS_FOR,))
    found.certificate()
    return found


# ---------------------------------------------------------------- what the code means


def _refuse(why: str) -> NoReturn:
    raise NotCertified(f"this is not planar Laplace noise: {why}")


def recognised_plane(sums: Sums) -> Planar:
    """The point and the noise that two sums hold, or a refusal that says what is wrong."""
    steps = table(ex.Add(*sums))
    known, nodes = polynomials(steps), steps.expressions
    radii: list[dict[int, Fraction]] = []
    turns: list[int] = []
    for name, place in zip("xy", steps.below[-1], strict=True):
        form = known[place]
        if form is None:
            _refuse(
                "a coordinate is more than sums and products of logarithms, cosine, sine and "
                "numbers; return r * cos(a) and r * sin(a)"
            )
        value = {t: share for t, share in form.items() if any(_is_value(nodes[k]) for k in t)}
        noise = {t: share for t, share in form.items() if t not in value}
        if [([nodes[k] for k in t], share) for t, share in value.items()] != [
            ([Variable(name)], _ONE)
        ]:
            _refuse(f"the sum of {name} is not its value and noise")
        found = {k for t in noise for k in t if _is_turn(nodes[k])}
        if len(found) != 1 or any(len(t) != 2 or len(found & {*t}) != 1 for t in noise):
            _refuse(
                "a coordinate is not a radius times one cosine or one sine; return r * cos(a) and "
                "r * sin(a)"
            )
        turns.append(*found)
        radii.append({k: share for t, share in noise.items() for k in t if k not in found})
    shares = {abs(share) for radius in radii for share in radius.values()}
    if {*radii[0]} != {*radii[1]} or len(shares) != 1:
        _refuse("the two coordinates have two radii, or the logarithms different factors")
    if any(len({*radius.values()}) != 1 for radius in radii):
        _refuse("one logarithm is subtracted from the other; add them")
    planar = Planar(steps, 1 / shares.pop(), tuple(sorted(radii[0])), tuple(turns))
    if [nodes[k] for k in planar.radial] == [Variable("r")]:
        if {ex.names(nodes[k]) for k in turns} != {("c",), ("s",)}:
            _refuse("a drawn radius needs a drawn cosine and a drawn sine")
        return planar
    return _of_logarithms(planar, known)


def _of_logarithms(planar: Planar, known: Sequence[Polynomial | None]) -> Planar:
    """The same, with the draws that its logarithms and its angle are of."""
    nodes, below = planar.steps.expressions, planar.steps.below
    radial, turns = ([nodes[k] for k in places] for places in (planar.radial, planar.turns))
    if {type(turn) for turn in turns} != {ex.Cos, ex.Sin}:
        _refuse("of the coordinates one has the cosine of the angle, and the other its sine")
    if not all(isinstance(part, ex.Ln) for part in radial):
        _refuse("its radius is made of something else than logarithms of uniforms")
    if len(radial) != 2:
        _refuse(
            "its radius is made of one logarithm, or more than two. In the plane, the density of a "
            "radius is r exp(-rate r). Add two, of two uniforms: -(log(u) + log(v)) / rate"
        )
    (angle,), (other,) = (below[k] for k in planar.turns)
    if angle != other:
        _refuse("cosine and sine are of two angles; use one")
    draws = [_draw(nodes, known[below[k][0]]) for k in planar.radial]
    free = {term: share for term, share in (known[angle] or {}).items() if term}
    turning = [nodes[k] for term in free for k in term]
    if len(turning) != 1 or turning[0] not in [Variable(name) for name in "uvw"]:
        _refuse("the angle is not 2 pi times a uniform, and a number")
    if len({*(name for name, _ in draws), *ex.names(turning[0])}) != 3:
        _refuse(
            "radius and angle share a uniform, or the two logarithms do; draw three, one for each"
        )
    with working_precision(_PRECISION):
        turned = ends(abs(abs(arb_of(*free.values())) - 2 * arb.pi()))[1] * _MARGIN
    if turned > power_of_two(-20):
        _refuse("the angle does not turn once, by 2 pi, as cos and sin count it; use radians")
    return replace(planar, backward=tuple(back for _, back in draws), turned=turned)


def _draw(nodes: Sequence[Expression], form: Polynomial | None) -> tuple[str, bool]:
    """The draw that a logarithm is of, and whether it is of 1 minus it."""
    for term in form or {}:
        drawn = len(term) == 1 and nodes[term[0]] in [Variable(name) for name in "uvw"]
        if drawn and form in ({term: _ONE}, {(): _ONE, term: -_ONE}):
            return ex.names(nodes[term[0]])[0], form != {term: _ONE}
    _refuse(
        "a logarithm is of something else than a uniform u or 1 - u; for a product write "
        "log(u) + log(v)"
    )


def _is_value(node: Expression) -> bool:
    return node in (Variable("x"), Variable("y"))


def _is_turn(node: Expression) -> bool:
    return isinstance(node, ex.Cos | ex.Sin) or node in (Variable("c"), Variable("s"))


# ---------------------------------------------------------------- how far it strays


def draws_off(uniform: Uniform | Words) -> Fraction:
    """How far a draw is from the real that it stands for."""
    if isinstance(uniform, Words):
        return power_of_two(-uniform.bits - 1)
    return draw_error(uniform)


def _analysed(
    setting: Setting,
    region: Rectangle,
    values: Rectangle,
    programs: Sums,
    sensitivity: Fraction,
    words: Words | None = None,
) -> PolarAnalysis:
    """The errors at all draws, and the reach from where on everything lies outside."""
    planar = recognised_plane(programs)
    logs: tuple[Derivation, ...] = ()
    turns: tuple[Derivation, ...] = ()
    if words is None:
        listed = listed_uniform(setting.uniform)
        drawn = Fraction(listed.point(0)), Fraction(listed.point(listed.size - 1))

        def over_draws(place: int, pieces: int) -> Derivation:
            step = planar.steps.expressions[place]
            return setting.analysed(step, {ex.names(step)[0]: drawn}, pieces=pieces)

        pieces = 16 if drawn[0] else 4  # from above 0 they go by exponents, and 1 - u is late exact
        try:
            logs = tuple(over_draws(place, pieces) for place in planar.radial)
        except NotCertified as problem:
            raise NotCertified(
                f"{problem}; pass a uniform without 0, as Grid(53, first=1), or write 1.0 - u"
            ) from None
        turns = tuple(over_draws(place, 1) for place in planar.turns)
    uniform: Uniform | Words = words or listed_uniform(setting.uniform)
    sums = tuple(_sums(setting, values, planar, logs, turns, uniform))
    wide = Fraction(0)
    for (low, high), (first, final) in zip(region, values, strict=True):
        wide += (max(high - first, final - low) + setting.cell / 2) ** 2
    delta_n = max(found.error for found, _ in sums)
    stray = planar_stray(
        partial(_radius_moves, planar, uniform),
        rate=planar.rate,
        delta_0=draws_off(uniform),
        floats=delta_n + setting.delta_round,
        cell=setting.cell,
        diameter=root_above(wide, _PRECISION),
    )
    if stray is None:
        raise NotCertified(
            "the floats stray by half a cell or more; pass a larger cell, a smaller region or a "
            "finer uniform"
        )
    return PolarAnalysis(
        stray=stray,
        delta_n=delta_n,
        excess=stray.excess,
        setting=setting,
        uniform=uniform,
        region=region,
        values=values,
        planar=planar,
        sensitivity=sensitivity,
        logs=logs,
        turns=turns,
        sums=sums,
    )


def _radius_moves(planar: Planar, uniform: Uniform | Words, reach: Fraction) -> Fraction:
    """How far apart the radii of draws and of reals are, if both are within the reach."""
    rate, off = planar.rate, draws_off(uniform)
    if isinstance(uniform, Words):
        return radius_modulus(rate * reach, off) / rate
    nearest, total = (-arb_of(rate * reach)).exp(), arb(0)
    for backward in planar.backward:
        share = arb_of(off) / nearest
        if isinstance(uniform, FullPrecision) and not backward:
            if not nearest > arb_of(power_of_two(uniform.least_exponent)):
                raise NotCertified("the region is too wide for the least uniform; pass a smaller")
            share = arb_of(power_of_two(1 - uniform.significand))
        total += share.log1p()
    return ends(total / arb_of(rate))[1]


def _sums(
    setting: Setting,
    values: Rectangle,
    planar: Planar,
    logs: Sequence[Derivation],
    turns: Sequence[Derivation],
    uniform: Uniform | Words,
) -> Iterator[tuple[Derivation, Errors]]:
    """The error of each sum, of inputs that are off by what their own proofs say."""
    for which, name in enumerate("xy"):
        ranges: dict[str, tuple[Number, Number]] = {name: values[which]}
        errors: dict[str, Number] = {name: 0}
        turn, named = planar.turns[which], dict[int, str]()
        if isinstance(uniform, Words):
            letter = ex.names(planar.steps.expressions[turn])[0]
            ranges |= {"r": (0, uniform.farthest), letter: (-1, 1)}
            errors |= {"r": uniform.radius_error, letter: uniform.turn_error}
        else:
            named[turn] = "t"
            ranges["t"], errors["t"] = (-1, 1), turns[which].error + planar.turned
            for letter, log, found in zip("pq", planar.radial, logs, strict=True):
                named[log] = letter
                ranges[letter], errors[letter] = found.conclusion.real, found.error
        program = planar.renamed(which, named)
        if {*ex.names(program)} != {*ranges}:
            _refuse("something is added that is taken away again; leave it out")
        yield setting.analysed(program, ranges, errors), errors
