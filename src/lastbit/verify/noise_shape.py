"""The sides of a noise function, where each is cut off, and how far the generator moves it there.

The noise is followed on intervals of the uniform u until each is `k ln t`, t = alpha + beta u going
from 0 (far noise) to 1 (none). Between the cut and the middle the code is analysed; beyond the cut
nothing is known but the direction, which is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeAlias

from lastbit.checker import (
    Interval,
    Rejected,
    Rows,
    SignChange,
    check_quotient,
    check_uniform,
    holds,
    shape,
    spread,
    steady,
)
from lastbit.errors import InvalidParameter, NotCertified, WrongType
from lastbit.exact import arb_of, ends, floor_log2, working_precision
from lastbit.verify.error_bounds.formats import Binary, Fixed, Format, power_of_two
from lastbit.verify.running.uniforms import FullPrecision, Grid

Generator: TypeAlias = FullPrecision | Grid

_PRECISION = 192
_BITS = 6  # of a cut: a rounder number costs nothing
_MOST_PIECES = 5
_HALF = Fraction(1, 2)
_SIDES = ((Fraction(0), _HALF), (_HALF, Fraction(1)))


def every_float(format: Format) -> Generator:
    """The generator that draws every float of a format; a grid where there are none."""
    if isinstance(format, Binary):
        return FullPrecision(min(format.significand, 53), max(format.least_exponent, -1022))
    return library_grid(format)


def library_grid(format: Format) -> Grid:
    """The grid of most libraries: as many bits as the format's numbers near 1 have."""
    return Grid(min(_significand(format.json()), 53))


def generator_of(
    uniform: object, format: object, *, default: Callable[[Format], Generator]
) -> Generator:
    """The model that was passed, or the default; refused if the format lacks what it draws."""
    if not isinstance(format, Binary | Fixed):
        raise WrongType("format", problem="is no number format", remedy="pass BINARY64")
    found = default(format) if uniform is None else uniform
    if not isinstance(found, FullPrecision | Grid):
        raise WrongType("uniform", problem="is no model", remedy="pass FullPrecision() or Grid(53)")
    try:
        check_uniform(found.written(), format.json())
    except Rejected:
        problem, remedy = "draws numbers that the format lacks", f"pass {default(format)}, say"
        raise InvalidParameter("uniform", problem=problem, remedy=remedy) from None
    return found


def check_cell(format: Format, region: Interval, cell: Fraction) -> None:
    """Refuse a cell so small that quotients by it overflow."""
    try:
        check_quotient(format.json(), region, cell)
    except Rejected:
        problem, remedy = "is so small that quotients by it overflow", "pass a larger one"
        raise InvalidParameter("cell", problem=problem, remedy=remedy) from None


@dataclass(frozen=True, slots=True)
class Side:
    """value + k ln(alpha + beta u) for u in the interval: the meaning of a program there."""

    program: int
    rows: Rows
    interval: Interval
    log: tuple[Fraction, Fraction, Fraction]

    @property
    def slope(self) -> Fraction:
        """beta: how fast t moves with u."""
        return self.log[2]

    def u(self, t: Fraction) -> Fraction:
        """The uniform at which alpha + beta u = t."""
        return (t - self.log[1]) / self.slope

    @property
    def has_signs(self) -> bool:
        """Whether the code takes an absolute value or a sign."""
        return any(row[0] in ("ABS", "SGN") for row in self.rows)


def sides(programs: Sequence[Rows], region: Interval) -> tuple[tuple[Side, ...], Fraction]:
    """The two sides of the noise and its scale; `NotCertified` unless it is Laplace noise.

    Theorem  -ln t is exponential of scale 1 if t is uniform on (0, 1). So value + k ln t with k = b
             on one half of the probability and -b on the other is value plus Laplace noise of
             scale b: the density of the noise is exp(-abs(x)/b)/2b. The halves are (0, 1/2) and
             (1/2, 1) for one program, the two signs for two
    Checked  tests/verify/test_rounding.py, tests/verify/test_check_rounding.py
    """
    try:
        found = [
            Side(k, rows, interval, _log(rows, interval, region))
            for k, rows in enumerate(programs)
            for interval in _followed(rows, (Fraction(0), Fraction(1)), region)
        ]
    except Rejected as problem:
        raise NotCertified(f"the noise cannot be recognised: {problem}") from None
    wanted = _SIDES if len(programs) == 1 else ((Fraction(0), Fraction(1)),) * 2
    scale = abs(found[0].log[0])
    laplace = sorted(side.log[0] for side in found) == [-scale, scale]
    if tuple(side.interval for side in found) != wanted or not laplace:
        raise NotCertified(
            "the noise cannot be recognised: its two halves are not those of Laplace noise"
        )
    return tuple(found), scale


def _followed(rows: Rows, interval: Interval, region: Interval) -> list[Interval]:
    """The interval, cut wherever a sign or a case changes."""
    try:
        shape(rows, interval, region)
    except SignChange as change:
        low, high = interval
        if not low < change.point < high:
            raise
        parts = ((low, change.point), (change.point, high))
        return [piece for part in parts for piece in _followed(rows, part, region)]
    return [interval]


def _log(rows: Rows, interval: Interval, region: Interval) -> tuple[Fraction, Fraction, Fraction]:
    whole = shape(rows, interval, region)
    if whole.log is None or whole.value != 1 or whole.constant or whole.slope:
        raise Rejected("it is not the value plus a multiple of one logarithm")
    factor, alpha, beta = whole.log
    if {alpha + beta * end for end in interval} != {0, 1}:
        raise Rejected("the argument of its logarithm does not go from 0 to 1")
    if whole.direction != (1 if factor * beta > 0 else -1):
        raise Rejected("the computed sum is not monotone in the uniform (Condition 2)")
    return whole.log


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


def cut_beyond(
    side: Side, far: Fraction, *, region: Interval, uniform: Generator, form: Mapping[str, Any]
) -> Cut | None:
    """A cut beyond which the ideal noise exceeds `far`; None if the generator is too coarse there.

    Theorem  let the draw be off by a step s of u. If t is proportional to u and s is relative, the
             modulus is b ln(1 + 2s) everywhere. Else ln is steepest at the cut c, where t and t'
             are |beta| s apart: b ln((c + |beta| s)/c), which grows like exp(far/b) s
    """
    factor = abs(side.log[0])
    model = uniform.written()
    with working_precision(_PRECISION):
        edge = ends((-arb_of(far / factor)).exp())[0]
    if edge <= 0:
        return None
    one, _ = spread(model, side.log[1], side.slope, Fraction(1))
    proportional = isinstance(uniform, FullPrecision) and side.log[1] == 0
    most = edge / one if proportional else edge - (one - 1)
    if most <= 0:
        return None
    fine = power_of_two(floor_log2(most) - _BITS + 1)
    coarse = power_of_two(2 - _significand(form))
    for step in (fine, max(fine, coarse)):
        t = (-(-most // step) - 1) * step  # strictly below
        if t > 0 and _is_steady(side, side.u(t), region, form):
            return _cut(side, t, model)
    return None


def _cut(side: Side, t: Fraction, model: Mapping[str, Any]) -> Cut | None:
    try:
        boundary, ratio = spread(model, side.log[1], side.slope, t)
    except Rejected:  # below the least number that the generator draws
        return None
    return Cut(side.u(t), t, boundary, _modulus(abs(side.log[0]), ratio))


def _is_steady(side: Side, u: Fraction, region: Interval, form: Mapping[str, Any]) -> bool:
    try:
        tail = (u, side.u(Fraction(0)))
        steady(side.rows, side.interval, region, tail, lambda x: holds(form, x))
    except Rejected:
        return False
    return True


def _modulus(factor: Fraction, ratio: Fraction) -> Fraction:
    """Factor ln(ratio), rounded up to 40 bits and a margin that the checker's arithmetic needs."""
    with working_precision(_PRECISION):
        high = ends(arb_of(factor) * arb_of(ratio - 1).log1p())[1]
    step = power_of_two(floor_log2(high) - 40)
    return (high // step + 1) * step


def pieces(side: Side, cut: Cut, form: Mapping[str, Any]) -> list[Interval]:
    """The range of the uniform from the cut to the middle, finer where the logarithm is steep."""
    points = [cut.t]
    while len(points) < _MOST_PIECES and points[-1] * 16 < _HALF:
        points.append(points[-1] * 16)
    if points[-1] < _HALF:
        points.append(_HALF)
    if side.has_signs:  # next to the middle the code cannot tell the side, nor need it
        points.append(1 - power_of_two(2 - _significand(form)))
    ends_of = sorted(side.u(t) for t in (*points, Fraction(1)))
    return list(pairwise(ends_of))


def _significand(form: Mapping[str, Any]) -> int:
    bits: int = form["fixed"][0] if "fixed" in form else form["binary"][0]
    return bits
