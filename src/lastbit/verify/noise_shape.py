"""What noise means on each side of its law, and in which direction its floats move.

Law      a sum that is built of +, -, factors, absolute values and signs is linear in `value`, u
         and its logarithms wherever no sign and no case changes: value + k ln(alpha + beta u)
Theorem  the weight of a step in the sum is the sum over all ways up of the products of the factors
         on the way (the chain rule, from the sum down). A correctly rounded operation is monotone
         in each operand and the library's logarithm is assumed to be, so if the products of all
         ways up from u have one sign, the computed sum moves with u in that direction
Differs  the checker works forward from the inputs, on tables of steps; nothing here is used there
Checked  tests/verify/test_rounding.py, tests/verify/test_two_sides.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise

from lastbit.errors import InvalidParameter, LastbitError, NotCertified, WrongType
from lastbit.exact import arb_of, ends, floor_log2, working_precision
from lastbit.verify.error_bounds.formats import Binary, Fixed, Format, Interval, power_of_two
from lastbit.verify.language import expressions as ex
from lastbit.verify.language.evaluation import machine_value
from lastbit.verify.language.expressions import Expression, Table, table
from lastbit.verify.running.uniforms import (
    FullPrecision,
    Generator,
    Grid,
    Uniform,
    Within,
    draw_error,
    model_of,
)

_PRECISION = 192
_BITS = 6  # of a cut: a rounder number costs nothing
_MOST_PIECES = 5


# ---------------------------------------------------------------- generators


def every_float(format: Format) -> Uniform:
    """The generator that draws every float of a format; a grid where there are none."""
    if isinstance(format, Binary):
        return FullPrecision(min(format.significand, 53), max(format.least_exponent, -1022))
    return library_grid(format)


def library_grid(format: Format) -> Grid:
    """The grid of most libraries: as many bits as the format's numbers near 1 have."""
    return Grid(min(_significand(format), 53))


def generator_of(
    uniform: object, format: object, *, default: Callable[[Format], Uniform]
) -> Generator:
    """The model that was passed, or the default; refused if the format lacks what it draws."""
    if not isinstance(format, Binary | Fixed):
        raise WrongType("format", problem="is not a number format", remedy="pass BINARY64")
    if isinstance(uniform, Within):
        if uniform.delta_0 < power_of_two(-_significand(format) - 1):
            problem = "is nearer to the reals than numbers of this format are"
            remedy = f"pass a delta_0 of 2**-{_significand(format) + 1} or more"
            raise InvalidParameter("uniform", problem=problem, remedy=remedy)
        return uniform
    found = model_of(default(format) if uniform is None else uniform)
    last = found.size - 1  # its finest numbers are those next to 0 and to 1
    drawn = {Fraction(found.point(k)) for k in (0, min(1, last), max(last - 1, 0), last)}
    held = all(format.holds(u) for u in drawn)
    if isinstance(found, FullPrecision):
        held = held and isinstance(format, Binary) and min(drawn) >= format.least_normal
    if not held:
        problem, remedy = "draws numbers that the format lacks", f"pass {default(format)}, say"
        raise InvalidParameter("uniform", problem=problem, remedy=remedy)
    return found


def _significand(format: Format) -> int:
    return format.significand if isinstance(format, Binary) else format.fraction_bits


_ZERO, _HALF, _ONE = Fraction(0), Fraction(1, 2), Fraction(1)


# ---------------------------------------------------------------- linear forms


class Unrecognised(Exception):
    """Why a sum is not a value plus noise of a known form."""


class _Turn(Exception):
    """A sign or a case changes inside the interval, at the uniform given."""


@dataclass(frozen=True, slots=True)
class Linear:
    """share * value + constant + slope * u + the logarithms, each k ln(alpha + beta u).

    `ways` holds 1 where the computed number rises with u along some way down to u, -1 where it
    falls; a number that does not depend on u has none.
    """

    share: Fraction
    constant: Fraction
    slope: Fraction
    logs: tuple[tuple[Fraction, Fraction, Fraction], ...]
    ways: frozenset[int]

    @property
    def is_line(self) -> bool:
        return not self.share and not self.logs

    def at(self, u: Fraction) -> Fraction:
        return self.constant + self.slope * u

    @property
    def fixed(self) -> Fraction | None:
        """The number that it is, for every value and u; None if it varies."""
        varies = self.share or self.logs or self.slope or self.ways
        return None if varies else self.constant


@dataclass(slots=True)
class _Weights:
    """By how much each step counts in one of them, and the signs of the products on the ways."""

    of: dict[int, Fraction]
    signs: dict[int, set[int]]

    def pass_on(self, place: int, below: int, factor: Fraction) -> None:
        self.of[below] = self.of.get(below, _ZERO) + self.of[place] * factor
        turned = {sign * _sign(factor) for sign in self.signs[place]}
        self.signs.setdefault(below, set()).update(turned)


@dataclass(slots=True)
class Following:
    """The steps of a sum on one open interval of u, on which no sign and no case changes.

    `turning` holds the operands of absolute values and signs: their own signs must not change;
    `clamps` the ends to which the value is clamped: it is followed for values between them.
    """

    steps: Table
    interval: Interval
    clamps: set[tuple[Fraction | None, Fraction | None]] = field(default_factory=set)
    turning: set[int] = field(default_factory=set)
    _known: dict[int, Linear] = field(default_factory=dict)

    def whole(self) -> Linear:
        return self.linear(len(self.steps.expressions) - 1)

    def linear(self, root: int) -> Linear:
        if root not in self._known:
            self._known[root] = self._weighed(root)
        return self._known[root]

    def _weighed(self, root: int) -> Linear:
        weights = _Weights({root: _ONE}, {root: {1}})
        totals = {"value": _ZERO, "u": _ZERO, "": _ZERO}
        logs: dict[tuple[Fraction, Fraction], Fraction] = {}
        ways: set[int] = set()
        for place in range(root, -1, -1):
            if place not in weights.of:
                continue
            weight, signs = weights.of[place], weights.signs[place]
            node, below = self.steps.expressions[place], self.steps.below[place]
            match node:
                case ex.Constant():
                    totals[""] += weight * node.value
                case ex.Variable(name="u" | "value"):
                    totals[node.name] += weight
                    ways |= signs if node.name == "u" else set()
                case ex.Sign():
                    self.turning.add(below[0])
                    totals[""] += weight * self._sign_of(below[0])
                case ex.Ln():
                    if 0 in signs:
                        raise Unrecognised("nothing times a logarithm, which may be infinite")
                    inner = self.linear(below[0])
                    if not inner.is_line:
                        raise Unrecognised("a logarithm of something else than the uniform")
                    if not inner.slope or self._sign_of(below[0]) < 0:
                        raise Unrecognised("a logarithm of a number not above 0")
                    line = inner.constant, inner.slope
                    logs[line] = logs.get(line, _ZERO) + weight
                    ways |= {sign * way for sign in signs for way in inner.ways}
                case _:
                    for under, factor in self._factors(node, below):
                        weights.pass_on(place, under, factor)
        kept = tuple((weight, *line) for line, weight in logs.items() if weight)
        return Linear(totals["value"], totals[""], totals["u"], kept, frozenset(ways - {0}))

    def _factors(self, node: Expression, below: tuple[int, ...]) -> Iterable[tuple[int, Fraction]]:
        """The steps below with the factor by which each enters this one."""
        match node:
            case ex.Add():
                return ((below[0], _ONE), (below[1], _ONE))
            case ex.Subtract():
                return ((below[0], _ONE), (below[1], -_ONE))
            case ex.Negate():
                return ((below[0], -_ONE),)
            case ex.Absolute():
                self.turning.add(below[0])
                return ((below[0], self._sign_of(below[0])),)
            case ex.Clamp():
                if self.linear(below[0]) != Linear(_ONE, _ZERO, _ZERO, (), frozenset()):
                    raise Unrecognised("something else than the value is clamped")
                self.clamps.add((node.low, node.high))
                return ((below[0], _ONE),)
            case ex.Piecewise(condition=condition):
                if condition.name != "u":
                    raise Unrecognised("a case depends on something else than the uniform")
                low, high = self.interval
                if low < condition.bound < high:
                    raise _Turn(condition.bound)
                return ((below[0] if condition.holds((low + high) / 2) else below[1], _ONE),)
            case ex.Multiply():
                # constants first: what multiplies them need not be followed to know that
                order = -1 if isinstance(node.right, ex.Constant) else 1
                for factor, other in (below, below[::-1])[::order]:
                    fixed = self.linear(factor).fixed
                    if fixed is not None:
                        return ((other, fixed),)
                raise Unrecognised("a product of two things that both vary")
            case ex.Divide():
                divisor = self.linear(below[1]).fixed
                if not divisor:
                    raise Unrecognised("a quotient by something that varies")
                return ((below[0], 1 / divisor),)
            case ex.RoundTo():
                raise Unrecognised(
                    "a part of the sum is rounded; round the whole sum once, at the end"
                )
        raise Unrecognised("a step is not of the kind that can be followed")

    def _sign_of(self, place: int) -> Fraction:
        """The sign of a step on the interval; of c ln t it is that of c (t - 1)."""
        found = self.linear(place)
        if found.share:
            raise Unrecognised("a sign that depends on the value")
        line, factor = (found.constant, found.slope), _ONE
        if found.logs:
            if len(found.logs) > 1 or found.constant or found.slope:
                raise Unrecognised("a sign that cannot be seen")
            factor, alpha, beta = found.logs[0]
            line = alpha - 1, beta
        values = [line[0] + line[1] * end for end in self.interval]
        if not any(values):
            raise Unrecognised("a step is 0 throughout")
        if values[0] * values[1] < 0:
            raise _Turn(-line[0] / line[1])
        return Fraction(_sign(sum(values) * factor))


def _sign(x: Fraction) -> int:
    return (x > 0) - (x < 0)


def noise_direction(noise: Expression) -> int:
    """1 or -1: how monotone noise of any law moves with u; `Unrecognised` if it may turn.

    The signs of all ways from the noise down to u: increasing functions keep them, a minus and a
    negative factor turn them.
    """
    steps = table(noise)
    root = len(steps.expressions) - 1
    weights, ways = _Weights({root: _ONE}, {root: {1}}), set[int]()
    for place in range(root, -1, -1):
        if place not in weights.of:
            continue
        factors: tuple[Fraction, ...] = ()
        match steps.expressions[place]:
            case ex.Constant():
                pass
            case ex.Variable(name="u"):
                ways |= weights.signs[place]
            case ex.Negate():
                factors = (-_ONE,)
            case ex.Ln() | ex.Exp() | ex.Sqrt() | ex.RoundTo() | ex.Clamp():
                factors = (_ONE,)
            case ex.Add():
                factors = (_ONE, _ONE)
            case ex.Subtract():
                factors = (_ONE, -_ONE)
            case ex.Multiply(left=ex.Constant(value=factor)):
                factors = (_ZERO, factor)
            case (
                ex.Multiply(right=ex.Constant(value=factor))
                | ex.Divide(right=ex.Constant(value=factor))
            ):
                factors = (factor, _ZERO)
            case ex.Multiply() | ex.Divide():
                raise Unrecognised("a product of two things that both vary")
            case _:
                raise Unrecognised("a step is not of the kind that can be followed")
        for under, factor in zip(steps.below[place], factors, strict=False):
            weights.pass_on(place, under, factor)
    ways -= {0}
    if len(ways) != 1:
        raise Unrecognised("the noise is not monotone in the uniform")
    return ways.pop()


def noise_chain(
    noise: Expression, taken: Callable[[Expression], Expression] = lambda node: node
) -> tuple[list[tuple[str, Fraction]], list[Expression], Expression]:
    """Noise as a chain: products and quotients with numbers, from the sum down to one logarithm.

    With them come the draws that multiply it, signs, and the argument of the logarithm; minus signs
    and factors of size 1 are left out. `taken` leads through cases.
    """
    chain: list[tuple[str, Fraction]] = []
    signs: list[Expression] = []
    noise = taken(noise)
    while not isinstance(noise, ex.Ln):
        match noise:
            case ex.Negate(argument=below):
                pass
            case ex.Multiply(left=ex.Variable() as sign, right=below):
                signs.append(sign)
            case ex.Multiply(left=below, right=ex.Variable() as sign):
                signs.append(sign)
            case (
                ex.Multiply(left=ex.Constant(value=factor), right=below)
                | ex.Multiply(left=below, right=ex.Constant(value=factor))
            ) if factor:
                chain += [("MUL", abs(factor))] if abs(factor) != 1 else []
            case ex.Divide(left=below, right=ex.Constant(value=factor)) if factor:
                chain.append(("DIV", abs(factor)))
            case _:
                raise Unrecognised("noise that is no logarithm times numbers and a sign")
        noise = taken(below)
    return chain, signs, noise.argument


# ---------------------------------------------------------------- the two sides


class Side:
    """share * value + constant + k ln(alpha + beta u): what a program means on the interval."""

    def __init__(self, program: int, following: Following) -> None:
        self.program, self.following, self.interval = program, following, following.interval
        whole = following.whole()
        if len(whole.logs) != 1 or not whole.share or whole.slope:
            raise Unrecognised("it is not the value plus a multiple of one logarithm")
        self.share, self.constant, self.log = whole.share, whole.constant, whole.logs[0]
        factor, alpha, beta = self.log
        self.slope: Fraction = beta
        if {alpha + beta * end for end in self.interval} != {0, 1}:
            raise Unrecognised("the argument of its logarithm does not go from 0 to 1")
        if whole.ways != {_sign(factor * beta)}:
            raise Unrecognised("the computed sum is not monotone in the uniform (Condition 2)")

    def u(self, t: Fraction) -> Fraction:
        """The uniform at which alpha + beta u = t."""
        return (t - self.log[1]) / self.slope


def sides(programs: Sequence[Expression]) -> tuple[tuple[Side, ...], Fraction]:
    """The two sides of the noise and its scale; `NotCertified` unless it is Laplace noise.

    It is around a multiple of the value and a number, the same ones on both sides.

    Theorem  -ln t is exponential of scale 1 if t is uniform on (0, 1). So value + k ln t with k = b
             on one half of the probability and -b on the other is value plus Laplace noise of
             scale b: the density of the noise is exp(-abs(x)/b)/2b. The halves are (0, 1/2) and
             (1/2, 1) for one program, the two signs for two
    Checked  tests/verify/test_rounding.py, tests/verify/test_check_rounding.py
    """
    halves = ((_ZERO, _HALF), (_HALF, _ONE)) if len(programs) == 1 else ((_ZERO, _ONE),) * 2
    why = "its two halves are not those of Laplace noise"
    try:
        found = [
            Side(index, following)
            for index, program in enumerate(programs)
            for following in _followed(table(program))
        ]
        scale = abs(found[0].log[0])
        laplace = sorted(side.log[0] for side in found) == [-scale, scale]
        laplace = laplace and len({(side.share, side.constant) for side in found}) == 1
        if tuple(side.interval for side in found) == halves and laplace:
            return tuple(found), scale
    except Unrecognised as problem:
        why = str(problem)
    except RecursionError:
        why = "its steps are nested too deeply; write fewer"
    raise NotCertified(
        f"the noise cannot be recognised: {why}; write, say, value + sign * scale * math.log(u)"
    ) from None


def _followed(steps: Table) -> list[Following]:
    """The steps on (0, 1), cut wherever a sign or a case changes; at most twice."""
    found: list[Following] = []
    todo: list[Interval] = [(_ZERO, _ONE)]
    while todo:
        low, high = todo.pop()
        following = Following(steps, (low, high))
        try:
            following.whole()
        except _Turn as turn:
            (point,) = turn.args
            if not low < point < high or len(found) + len(todo) > 1:
                raise Unrecognised("its sign or its case changes too often") from None
            todo += [(point, high), (low, point)]  # what is popped next comes first
            continue
        _check_ends(following)
        found.append(following)
    return found


def _check_ends(following: Following) -> None:
    """Refuse code that takes other steps at an end of the interval than on either side of it."""
    steps = following.steps
    cases = [node for node in steps.expressions if isinstance(node, ex.Piecewise)]
    marks = {_ZERO, _ONE, *(node.condition.bound for node in cases)}
    for end in following.interval:
        below = max((mark for mark in marks if mark < end), default=end)
        above = min((mark for mark in marks if mark > end), default=end)
        inside = [u for u in ((end + below) / 2, (end + above) / 2) if 0 < u < 1 and u != end]
        if _taken(steps, end) not in [_taken(steps, u) for u in inside]:
            raise Unrecognised("the code singles out one uniform")


def _taken(steps: Table, u: Fraction) -> list[int]:
    """The steps that are taken at u."""

    def into(place: int) -> tuple[int, ...]:
        node, below = steps.expressions[place], steps.below[place]
        if not isinstance(node, ex.Piecewise):
            return below
        return below[:1] if node.condition.holds(u) else below[1:]

    return steps.reached(len(steps.expressions) - 1, into)


# ---------------------------------------------------------------- cuts


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a side is cut, as u and as t; from which real t on the draw reaches it; the modulus.

    Law      t >= boundary implies t' >= t_cut, and then abs(k ln t - k ln t') <= omega, for every
             real t and its draw t'
    """

    u: Fraction
    t: Fraction
    boundary: Fraction
    omega: Fraction


def cut_beyond(side: Side, far: Fraction, *, uniform: Generator, format: Format) -> Cut | None:
    """A cut beyond which the ideal noise exceeds `far`; None if the generator is too coarse there.

    Theorem  let the draw be off by a step s of u. If t is proportional to u and s is relative, the
             modulus is b ln(1 + s) everywhere. Else ln is steepest at the cut c, where t and t'
             are |beta| s apart: b ln((c + |beta| s)/c), which grows like exp(far/b) s. A generator
             that is not monotone may draw the cut for a smaller t: b ln(c/(c - |beta| s)), and the
             cut is a number of the format
    """
    factor = abs(side.log[0])
    with working_precision(_PRECISION):
        edge = ends((-arb_of(far / factor)).exp())[0]
    if edge <= 0:
        return None
    grown, moved = _ONE, abs(side.slope) * draw_error(uniform)
    least = _ZERO
    if isinstance(uniform, FullPrecision) and side.log[1] == 0:  # t' is relatively near to t
        lowest = Fraction(uniform.point(0))
        grown, moved, least = uniform.below(1) / lowest, _ZERO, lowest * side.slope
    most = (edge - moved) / grown
    if most <= 0:
        return None
    fine = power_of_two(floor_log2(most) - _BITS + 1)
    coarse = power_of_two(2 - _significand(format))
    for step in (fine, max(fine, coarse)):
        t = (-(-most // step) - 1) * step  # strictly below
        if t > 0 and _is_steady(side, side.u(t), format):
            boundary = t * grown + moved
            ratio = boundary / t
            if isinstance(uniform, Within):
                if t <= moved or not format.holds(side.u(t)):
                    continue
                ratio = t / (t - moved)
            omega = _modulus(factor, ratio)
            # the generator may draw nothing as small as the cut
            return Cut(side.u(t), t, boundary, omega) if t >= least else None
    return None


def _is_steady(side: Side, u: Fraction, format: Format) -> bool:
    """Whether the signs that floats have at u stay the same from there to the far end of the side.

    Theorem  if the machine computes the operand of each sign at u without any rounding, and not as
             0, and the operand is monotone and moves away from 0, then its float keeps that sign
    """
    following = side.following
    steps, far = following.steps, side.u(_ZERO)
    for operand in following.turning:
        line = following.linear(operand)
        moves_away = line.slope * (far - u) * line.at(u) > 0
        if not line.is_line or len(line.ways) != 1 or not moves_away:
            return False
        for place in steps.reached(operand):
            step, exact = steps.expressions[place], following.linear(place).at(u)
            if isinstance(step, ex.Piecewise | ex.Sign):
                return False
            try:
                if machine_value(step, {"u": u}, format) != exact:
                    return False
            except LastbitError:
                return False
    return True


def _modulus(factor: Fraction, ratio: Fraction) -> Fraction:
    """Factor ln(ratio), rounded up to 40 bits and a margin that the checker's arithmetic needs."""
    with working_precision(_PRECISION):
        high = ends(arb_of(factor) * arb_of(ratio - 1).log1p())[1]
    step = power_of_two(floor_log2(high) - 40)
    return (high // step + 1) * step


def pieces(side: Side, cut: Cut, format: Format) -> list[Interval]:
    """The range of the uniform from the cut to the middle, finer where the logarithm is steep."""
    points = [cut.t]
    while len(points) < _MOST_PIECES and points[-1] * 16 < _HALF:
        points.append(points[-1] * 16)
    if points[-1] < _HALF:
        points.append(_HALF)
    steps = side.following.steps.expressions
    if any(isinstance(step, ex.Absolute | ex.Sign) for step in steps):
        # next to the middle the code cannot tell the side, nor need it
        points.append(1 - power_of_two(2 - _significand(format)))
    return list(pairwise(sorted(side.u(t) for t in (*points, _ONE))))
