"""Float noise that is rounded and truncated: what it truly costs, for code as it is written."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import Any, TypeAlias, TypeVar

from lastbit.errors import InvalidParameter, NoBound, NotCertified, WrongType
from lastbit.exact import Number, arb_of, positive, rational, upper, working_precision
from lastbit.privacy import PureDP
from lastbit.verify.certificate import Certified, written
from lastbit.verify.error_bounds.formats import BINARY64, Binary, Format, Interval, is_power
from lastbit.verify.error_bounds.rules import Derivation
from lastbit.verify.error_bounds.semantics import DEFAULT_ULPS, Errors, analyse, error_proof
from lastbit.verify.language.cases import without_failures
from lastbit.verify.language.expressions import Add, Expression, Variable, expression_to_json, names
from lastbit.verify.noise_shape import (
    Cut,
    Side,
    cut_beyond,
    every_float,
    generator_of,
    pieces,
    sides,
)
from lastbit.verify.running.code import Code as NamedCode
from lastbit.verify.running.uniforms import FullPrecision, Generator, Uniform, draw_error
from lastbit.verify.tracing.agreement import beside, noise_points
from lastbit.verify.tracing.binding import record
from lastbit.verify.tracing.trace import Followed, arguments_of, followed

Code: TypeAlias = Callable[..., Any]
Ulps: TypeAlias = Mapping[str, Number]

_PRECISION = 192
_MOST_ROUNDS = 20
_OF_THE_REGION: Interval = (Fraction(0), Fraction(0))


Found = TypeVar("Found")


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A query in floats: its code, and the ranges of its inputs. The error is worked out."""

    function: Code
    ranges: Mapping[str, tuple[Number, Number]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """How a sum is computed and rounded; `delta_round` is how far that moves the edge of a cell.

    `region` is of sums and `values` of values: two regions where the code scales or moves a value.
    """

    format: Format
    ulps: tuple[tuple[str, Fraction], ...]
    uniform: Generator
    cell: Fraction
    region: Interval
    values: Interval = _OF_THE_REGION
    delta_round: Fraction
    _text: list[str] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.values is _OF_THE_REGION:
            object.__setattr__(self, "values", self.region)

    def fields(self) -> dict[str, Any]:
        """What an analysis in this setting has of it."""
        return {one.name: getattr(self, one.name) for one in fields(Setting) if one.init}

    def analysed(
        self,
        program: Expression,
        ranges: Mapping[str, tuple[Number, Number]],
        errors: Errors = None,
        *,
        pieces: int = 1,
    ) -> Derivation:
        """How far the program strays for inputs of these ranges and all values of the region."""
        inside = dict(ranges)
        if "value" in names(program):
            inside["value"] = self.values
        how: dict[str, Any] = {"format": self.format, "ulps": dict(self.ulps), "pieces": pieces}
        try:
            return analyse(program, inside, errors=errors, **how)
        except ArithmeticError as problem:
            raise NotCertified(f"the code has no error bound there: {problem}") from None

    def stable(self, cut: Callable[[Fraction], tuple[Found, Fraction]]) -> Found:
        """What is found where all noise beyond the cuts leads to an end (Condition 3).

        Theorem  the cuts must lie beyond diameter - cell/2 + delta_t, and delta_t grows with them.
                 A round takes the delta_t of the last one; it is done when its own is no greater
        """
        stray = Fraction(0)
        for _ in range(_MOST_ROUNDS):
            found, off = cut(self.region[1] - self.region[0] - self.cell / 2 + stray)
            delta_t = off + self.delta_round
            if 2 * delta_t >= self.cell:
                raise NotCertified(
                    "the floats stray by half a cell or more; pass a larger cell, a smaller region "
                    "or a finer uniform"
                )
            if delta_t <= stray:
                return found
            stray = delta_t * Fraction(1025, 1024)
        raise NotCertified("the region grows with its own error (Condition 3); pass a smaller one")

    def held(self, role: str, code: tuple[Followed, ...]) -> tuple[Mapping[str, Any], ...]:
        """What a certificate says of code, after calls at edges of cells, ends and bounds.

        Code in Python runs in binary64: a claim about another format is one about its steps.
        """
        extra = noise_points(self.cell, self.values, self.uniform)
        for one in code:
            one.agree(extra, rounds=2, seed=f"{role} {self.cell} {self.region}")
        written = record(role, code) if self.format == BINARY64 else None
        return () if written is None else (written,)

    def proof(self, derivation: Derivation, errors: Errors = None) -> dict[str, Any]:
        ulps = dict(self.ulps)
        claim, body = error_proof(derivation, errors=errors, format=self.format, ulps=ulps)
        return {"claim": claim, "body": body}

    def bounded(self, derivation: Derivation, errors: Errors = None) -> dict[str, Any]:
        """An error bound and its proof, as parts of certificates have them."""
        proof = self.proof(derivation, errors)
        return {"error": proof["claim"]["error"], "proof": proof["body"]}

    def piece(self, derivation: Derivation, errors: Errors = None) -> dict[str, Any]:
        u = next([written(low), written(high)] for name, low, high in derivation.box if name == "u")
        return {"u": u, **self.bounded(derivation, errors)}

    def claim(
        self,
        programs: Sequence[Expression],
        code: tuple[Mapping[str, Any], ...],
        **figures: Fraction,
    ) -> dict[str, Any]:
        ulps = DEFAULT_ULPS | dict(self.ulps)
        values = {"values": [*map(written, self.values)]}
        return {
            **(values if self.values != self.region else {}),
            "code": [dict(one) for one in code],
            "programs": [expression_to_json(program) for program in programs],
            "format": self.format.json(),
            "ulps": {name: str(most) for name, most in ulps.items()},
            "uniform": self.uniform.written(),
            "cell": written(self.cell),
            "region": [*map(written, self.region)],
            **{name: written(figure) for name, figure in figures.items()},
        }


def setting_of(
    cell: Number,
    region: tuple[Number, Number],
    uniform: Generator | None,
    format: Format,
    ulps: Ulps | None,
    *,
    default: Callable[[Format], Uniform],
) -> Setting:
    """The setting that was asked for, or a refusal that names what has no meaning."""
    size = rational(cell, "cell")
    if size == 0:
        raise NotCertified(
            "without rounding the last bits of float noise tell the value; pass a cell above 0"
        )
    size = positive(size, "cell")
    if not isinstance(region, tuple | list) or len(region) != 2:
        raise WrongType("region", problem="is not a pair", remedy="pass (low, high)")
    low, high = (rational(end, "region") for end in region)
    if low >= high:
        raise InvalidParameter("region", problem="is empty", remedy="pass low < high")
    if any((end / size).denominator != 1 for end in (low, high)):
        problem = "has an end that is not a multiple of the cell"
        raise InvalidParameter("region", problem=problem, remedy="round it to one")
    generator = generator_of(uniform, format, default=default)
    if max(abs(low), abs(high)) / size + 2 > format.largest:  # the machine's cell may be smaller
        problem, remedy = "is so small that quotients by it overflow", "pass a larger one"
        raise InvalidParameter("cell", problem=problem, remedy=remedy)
    accuracy = {name: positive(error, "ulps") for name, error in (ulps or {}).items()}
    return Setting(
        format=format,
        ulps=tuple(sorted(accuracy.items())),
        uniform=generator,
        cell=size,
        region=(low, high),
        values=(low, high),
        delta_round=quotient_error(format, (low, high), size),
    )


@dataclass(frozen=True, slots=True)
class _Branch:
    """A side of the noise with its cut and the derivations of all pieces between."""

    side: Side
    cut: Cut
    pieces: tuple[Derivation, ...]

    @property
    def error(self) -> Fraction:
        return max(piece.error for piece in self.pieces)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundingAnalysis(Setting, Certified):
    """What rounded and truncated float noise loses at most; every figure rounded up.

    Law      `epsilon` = `ideal` + `excess`: the ideal noise loses `ideal`, the share of the value
             in the sum times sensitivity/scale, the floats the rest. The generator is off by
             `delta_0` in u (relatively, if the model is), which moves the noise by `omega`; the
             computed sum is off by `delta_n`, its addition included; the quotient by the cell moves
             an edge by `delta_round`; together `delta_t`. `lipschitz` is the greatest
             slope of the noise in u, `ratio` is R of paper 000, `general` the excess by its
             corrected theorem, `excess` the better one; `code` what is known of named code
    Theorem  docs/theory/rounding.md
    Source   paper 000, Theorem 4.5 and section 5, corrected
    Checked  tests/verify/test_rounding.py; the independent checker, `checker/rounding.py`
    """

    programs: tuple[Expression, ...]
    scale: Fraction
    declared: Fraction
    query: Derivation | None
    branches: tuple[_Branch, ...]
    code: tuple[Mapping[str, Any], ...] = ()

    @property
    def query_error(self) -> Fraction:
        return Fraction(0) if self.query is None else self.query.error

    @property
    def sensitivity(self) -> Fraction:
        """How far apart two computed values can be: the declared distance, the error twice."""
        return self.declared + 2 * self.query_error

    @property
    def share(self) -> Fraction:
        """By how much a sum moves where the value moves by 1."""
        return abs(self.branches[0].side.share)

    @property
    def ideal(self) -> Fraction:
        return self.share * self.sensitivity / self.scale

    @property
    def delta_0(self) -> Fraction:
        """How far a draw is from the real number it stands for; relative for full precision."""
        if isinstance(self.uniform, FullPrecision):
            return Fraction(1, 1 << (self.uniform.significand - 1))
        return draw_error(self.uniform)

    @property
    def omega(self) -> Fraction:
        return max(branch.cut.omega for branch in self.branches)

    @property
    def lipschitz(self) -> Fraction:
        """The greatest slope of the noise between the cuts: about 2 scale exp(diameter/scale)."""
        slopes = (abs(b.side.log[0] * b.side.slope) / b.cut.t for b in self.branches)
        return max(slopes)

    @property
    def delta_n(self) -> Fraction:
        return max(branch.error for branch in self.branches)

    @property
    def delta_t(self) -> Fraction:
        return self.omega + self.delta_n + self.delta_round

    @property
    def ratio(self) -> Fraction:
        return 4 * self.delta_t / (self.cell - 2 * self.delta_t)

    @property
    def general(self) -> Fraction:
        return general_excess(self.cell / self.scale, self.ratio)

    @property
    def excess(self) -> Fraction:
        return laplace_excess(self.cell / self.scale, self.delta_t / self.scale)

    @property
    def epsilon(self) -> Fraction:
        return self.ideal + self.excess

    @property
    def guarantee(self) -> PureDP:
        return PureDP(self.epsilon)

    @property
    def named(self) -> tuple[Mapping[str, Any], ...]:
        """The code that a certificate is about: all of it, or none where a part has no name."""
        wanted = 1 if self.query is None else 2
        return self.code if len(self.code) == wanted else ()

    def statement(self) -> tuple[str, dict[str, Any], dict[str, Any]]:
        claim = self.claim(
            self.programs,
            self.named,
            sensitivity=self.declared,
            query_error=self.query_error,
            epsilon=self.epsilon,
        )
        branches = [
            {
                "program": branch.side.program,
                "interval": [*map(written, branch.side.interval)],
                "cut": written(branch.cut.u),
                "omega": written(branch.cut.omega),
                "pieces": [self.piece(piece) for piece in branch.pieces],
            }
            for branch in self.branches
        ]
        query = None if self.query is None else self.proof(self.query)
        figures = ("scale", "delta_n", "delta_round", "delta_t", "excess")
        body = {name: written(getattr(self, name)) for name in figures}
        return "rounding", claim, {**body, "branches": branches, "query": query}


def rounding_certificate(
    noise: Code,
    *,
    sensitivity: Number,
    cell: Number,
    region: tuple[Number, Number],
    uniform: Generator | None = None,
    parameters: Mapping[str, Any] | None = None,
    query: Query | None = None,
    format: Format = BINARY64,
    ulps: Ulps | None = None,
) -> RoundingAnalysis:
    """How much privacy is left if this noise is added, rounded to the cell and kept in the region.

    `noise` is ordinary code of a uniform u, or of u and a fair sign. Inputs lie in the region.

    Theorem  for two inputs at most `sensitivity` apart every result is at most exp(epsilon) times
             as likely from one as from the other. `NotCertified` where that cannot be proved
    Source   paper 000, section 4: Condition 1 (the ideal law), 2 (monotone code) and 3 (the code is
             close to its meaning wherever the result can lie in the region) are checked
    Checked  tests/verify/test_rounding.py

    >>> import math
    >>> def noise(u, sign):
    ...     return sign * 2.0 * math.log(u)
    >>> found = rounding_certificate(noise, sensitivity=1, cell="1/16", region=(-100, 100))
    >>> found.scale, found.epsilon > Fraction(1, 2), found.epsilon < Fraction(1, 2) + 10**-10
    (Fraction(2, 1), True, True)
    """
    code = followed_code(noise, "u", parameters=parameters, may_fail=True)
    drawn = generator_of(uniform, format, default=every_float)
    return certified_sums(
        tuple(Add(Variable("value"), without_failures(one.expression, drawn)) for one in code),
        sensitivity=sensitivity,
        cell=cell,
        region=region,
        uniform=uniform,
        query=query,
        format=format,
        ulps=ulps,
        code=code,
        role="noise",
        refuse=_refuse_moved,
    )


def _refuse_moved(found: RoundingAnalysis) -> None:
    if found.values != found.region:
        raise NotCertified(
            "the noise cannot be recognised: it is not around 0; add the number to the value"
        )


def certified_sums(
    programs: tuple[Expression, ...],
    *,
    sensitivity: Number,
    cell: Number,
    region: tuple[Number, Number],
    uniform: Generator | None = None,
    wanted: Interval | None = None,
    query: Query | None = None,
    format: Format = BINARY64,
    ulps: Ulps | None = None,
    code: tuple[Followed, ...] = (),
    role: str = "sum",
    refuse: Callable[[RoundingAnalysis], None] = lambda found: None,
) -> RoundingAnalysis:
    """The same for the whole sum of `value` and noise: one expression, or one for each sign.

    The sum may be a multiple of the value, and a number, and noise. The values of the promise are
    those that lead into the region and that the code does not clamp; `wanted` ones, if these are
    the same but for a cell. `code` is what computes it, as part of which `role`: it is called where
    its results turn, and must agree. `refuse` looks at the analysis before the checker does.
    """
    infinite = any(row[1:] in (["inf"], ["-inf"]) for one in code for row in one.rows)
    if infinite and role != "mechanism":
        raise NotCertified(
            "the code returns an infinity and does not round; return it beside a rounded result"
        )
    setting = setting_of(cell, region, uniform, format, ulps, default=every_float)
    distance = positive(sensitivity, "sensitivity")
    found, scale = sides(programs)
    setting = replace(setting, values=values_of(found, setting, wanted))
    asked, about = (None, ()) if query is None else _query(query, setting)

    def branch(side: Side, far: Fraction) -> _Branch:
        cut = cut_beyond(side, far, uniform=setting.uniform, format=format)
        if cut is None:
            raise NotCertified(
                "the uniform is too coarse for this region; pass a smaller one, or a finer "
                "uniform, such as full"
            )
        program = programs[side.program]
        parts = (setting.analysed(program, {"u": part}) for part in pieces(side, cut, format))
        return _Branch(side, cut, tuple(parts))

    def cut_off(far: Fraction) -> tuple[tuple[_Branch, ...], Fraction]:
        both = tuple(branch(side, far) for side in found)
        return both, max(one.cut.omega for one in both) + max(one.error for one in both)

    analysis = RoundingAnalysis(
        **setting.fields(),
        programs=programs,
        scale=scale,
        declared=distance,
        query=asked,
        branches=setting.stable(cut_off),
        code=about,
    )
    refuse(analysis)
    if code:
        analysis = replace(analysis, code=(*analysis.held(role, code), *about))
    analysis.certificate()  # no number leaves that the checker rejects
    return analysis


def values_of(found: Sequence[Side], setting: Setting, wanted: Interval | None) -> Interval:
    """The values that the code takes into the region without clamping them."""
    share, constant = found[0].share, found[0].constant
    low, high = sorted((end - constant) / share for end in setting.region)
    for side in found:
        low = max([low, *(end for end, _ in side.following.clamps if end is not None)])
        high = min([high, *(end for _, end in side.following.clamps if end is not None)])
    if low >= high:
        raise NotCertified("the code takes no values into the region; widen its clamps")
    if wanted is not None:
        near = all(abs(x - y) < setting.cell for x, y in zip(wanted, (low, high), strict=True))
        if near and low <= wanted[0] < wanted[1] <= high:
            return wanted
    return low, high


def quotient_error(format: Format, region: Interval, cell: Fraction) -> Fraction:
    """How far the machine's quotient of a sum by the cell can move the edge of a cell.

    Theorem  the machine divides by the number of its format nearest to the cell. A quotient q times
             what that differs by is how far its edges move, and q is rounded by its unit
             round-off: relatively for floats, not at all by a power of two; else absolutely
    """
    divisor = format.rounded(cell)
    if divisor == 0:
        raise InvalidParameter("cell", problem="is 0 in this format", remedy="pass a larger one")
    quotient = (max(map(abs, region)) + cell) / divisor
    moved = quotient * abs(cell - divisor)
    if not isinstance(format, Binary):
        return moved + cell * format.unit_roundoff
    return moved if is_power(cell) else moved + cell * quotient * format.unit_roundoff


def general_excess(cell: Fraction, ratio: Fraction) -> Fraction:
    """ln(1 + ratio exp(cell)) for scale 1, rounded up; by another spelling where cell is large."""
    with working_precision(_PRECISION):
        rim, exponent = arb_of(ratio), arb_of(cell)
        if cell > 40:
            return Fraction(upper(exponent + (rim + (-exponent).exp()).log()))
        return Fraction(upper((rim * exponent.exp()).log1p()))


def laplace_excess(cell: Fraction, stray: Fraction) -> Fraction:
    """ln(sinh((cell + 2 stray)/2) / sinh((cell - 2 stray)/2)) for scale 1, rounded up.

    Theorem  what a cell grown by the stray holds of a Laplace law is at most this much, as a
             logarithm, above what the shrunk cell holds. Cells beside the mode attain it; the mass
             of [c-w, c+w] over sinh w does not grow with w, so the cell over the mode costs no
             more; a half-line costs 2 stray, which is less. Proof: docs/theory/rounding.md
    """
    with working_precision(_PRECISION):
        wide, narrow = (-(-arb_of(cell + s * stray)).expm1() for s in (2, -2))
        return Fraction(upper(arb_of(2 * stray) + (wide / narrow).log()))


def followed_code(
    code: object,
    *data: str,
    parameters: Mapping[str, Any] | None = None,
    may_fail: bool = False,
    part: int | None = None,
) -> tuple[Followed, ...]:
    """Code of these inputs, followed once, or once for each value of its input `sign`.

    Of code that returns a pair, `part` says which number is followed.

    The inputs of a plain function are known by their names, those of a named `Code` by their
    places: first the data in this order, then the sign. Where names and places say different
    things, callers by name and by place would mix up the data and the draw: that is refused.
    """
    given = dict(parameters or {})
    if not callable(code):
        raise WrongType("code", problem="is not a function", remedy="pass a plain function")
    function: Any = code
    name = None
    if isinstance(code, NamedCode):
        function, name, given = code.function, code.name, {**dict(code.parameters), **given}
    arguments = arguments_of(function)
    inputs = [n for n, a in arguments.items() if n not in given and a.default is a.empty]
    wanted = [*data, "sign"]
    roles = {argument: argument for argument in inputs}
    if isinstance(code, NamedCode) and len(inputs) in (len(data), len(wanted)):
        roles = dict(zip(inputs, wanted, strict=False))
    by_name = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)
    placed = [
        n for n in inputs if arguments[n].kind not in (*by_name, inspect.Parameter.VAR_POSITIONAL)
    ]
    order = [wanted.index(roles[n]) for n in placed if roles[n] in wanted]
    moved = any(role != n for n, role in roles.items() if n in wanted or n not in placed)
    if order != sorted(order) or moved:
        problem = "has its arguments in another order than their names say"
        remedy = f"write them in the order {', '.join(wanted)}"
        raise InvalidParameter("code", problem=problem, remedy=remedy)
    if set(roles.values()) == set(data):
        return (followed(function, roles, given, name=name, may_fail=may_fail, part=part),)
    if set(roles.values()) == set(wanted):
        (sign,) = (argument for argument, role in roles.items() if role == "sign")
        rest = {argument: role for argument, role in roles.items() if argument != sign}
        return tuple(
            followed(function, rest, {**given, sign: s}, sign, name, may_fail=may_fail, part=part)
            for s in (1.0, -1.0)
        )
    names = ", ".join(data)
    problem = f"takes other inputs than {names}, or {names} and sign"
    raise InvalidParameter("code", problem=problem, remedy="name them so, or bind the others")


def _query(query: Query, setting: Setting) -> tuple[Derivation, tuple[Mapping[str, Any], ...]]:
    names = tuple(query.ranges)
    code = followed(query.function, {name: name for name in names}, {})
    code.typed(rounded=True)
    extra = {
        name: [float(x) for end in query.ranges[name] for x in beside(rational(end, name))]
        for name in names
    }
    code.agree(extra, rounds=2, seed="query")
    try:
        ulps = dict(setting.ulps)
        found = analyse(code.expression, query.ranges, format=setting.format, ulps=ulps)
    except NoBound as problem:
        raise NotCertified(f"the query has no error bound: {problem}") from None
    written = record("query", (code,)) if setting.format == BINARY64 else None
    return found, () if written is None else (written,)
