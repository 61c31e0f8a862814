"""Noise of one's own: a density tested for sliding and dilation, and what it certainly promises."""

from __future__ import annotations

import operator
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeAlias

from flint import arb, arb_series

from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import (
    Ball,
    Number,
    arb_of,
    ends,
    nonnegative,
    positive,
    rational,
    upper,
    whole,
    working_precision,
)
from lastbit.mechanisms.admissible_noise import worst_excess
from lastbit.mechanisms.mechanism import set_fields
from lastbit.privacy import AS_DECLARED, ApproxDP, Neighbours

LogDensity: TypeAlias = Callable[[Any], Any]
"""ln h of z >= 0, up to a constant: + - * /, whole powers, z.exp(), z.log(), z.sqrt()."""

_PRECISION = 192
_FIRST_CELLS = 16  # a piece, before any of them is cut
_MOST_CELLS = 2048
_FINE = 2.0**-12  # cells on which the loss passes epsilon are cut until it moves by no more
_WIDTHS = 24
_TERMS = 5
_ORDERS = 9  # one more than the derivatives that may prove that L falls, for L as flat as -z**8
_Piece: TypeAlias = tuple[Fraction, LogDensity]


@dataclass(frozen=True, slots=True)
class _Cell:
    """A cell on one side of 0: the integral of exp(L), L at the centre, the slopes of L(abs(z))."""

    left: Fraction
    right: Fraction
    mass: arb
    log_h: arb
    slope: arb


@dataclass(frozen=True, slots=True, init=False, repr=False, eq=False)
class SymmetricDensity:
    """A density of one's own, the same on both sides of 0 and falling from there.

    Law      h(z) = exp(L(abs(z)))/M for abs(z) <= reach, M what makes it a density. L is a function
             of z >= 0, or a list of pairs (end, function) whose ends rise to the reach.
             Beyond the reach h is 0; with a `tail` > 0 it goes on falling there, and exp(L) has an
             integral of at most `tail` on either side: that is the caller's promise
    Theorem  L is evaluated on balls, so everything below holds for all numbers. That h falls is
             proved cell by cell: some derivative of L is at most 0 on the cell, and all before it
             (the slope is the first) are so at its nearer end: by Taylor's formula the slope is,
             too. Cells are cut until that is certain, and until L moves by at most 1/2 on each.
             The integral over a cell with centre c and radius r is 2 (h_0 r + h_2 r**3/3) +
             2 h_4 r**5/5, h_k the Taylor coefficients at c, h_4 somewhere on the cell (Taylor's
             formula; odd terms cancel)
    Checked  tests/mechanisms/test_density.py

    >>> SymmetricDensity(lambda z: -3 * z, reach=6)          # Laplace noise of rate 3, cut at 6
    SymmetricDensity(reach=6)
    """

    pieces: tuple[_Piece, ...]
    reach: Fraction
    tail: Fraction
    cells: tuple[_Cell, ...]
    finest: Fraction

    def __init__(
        self,
        log_density: LogDensity | Sequence[tuple[Number, LogDensity]],
        *,
        reach: Number | None = None,
        tail: Number = 0,
    ) -> None:
        pieces = _pieces(log_density, reach)
        set_fields(self, pieces=pieces, reach=pieces[-1][0], tail=nonnegative(tail, "tail"))
        with working_precision(_PRECISION):
            right = [self._cell(*cell) for cell in _falling_cells(pieces)]
            left = [_Cell(-c.right, -c.left, c.mass, c.log_h, -c.slope) for c in reversed(right)]
        set_fields(self, cells=(*left, *right), finest=self.reach / (1 << 40))

    def __repr__(self) -> str:
        tail = f", tail={self.tail}" if self.tail else ""
        return f"SymmetricDensity(reach={self.reach}{tail})"

    def excess(self, moved: arb, dilated: arb, epsilon: arb) -> arb:
        """At least the integral of max(0, h - exp(epsilon) q), q moved and wider by exp(dilated).

        Theorem  p - exp(epsilon) q = p (1 - exp(epsilon - l)), l = ln p/q. On a cell l lies within
                 r times the greatest slope of its value at the centre (mean value). So the integral
                 over a cell is at most that of p times 1 - exp(epsilon - the greatest l); and where
                 l >= epsilon on all of it, it is that of p less exp(epsilon) times that of q.
                 Cells on which l passes epsilon are cut further.
                 Cells end where p or q has an end of a piece; where such an end is irrational, a
                 cell as small as the precision allows is counted in full, as is all that lies
                 beyond q's reach, and p's tail. M cancels in l, and is bounded below by the cells
        """
        image, factor = (moved, dilated.exp()), epsilon.exp()
        rims = [moved + sign * image[1] * arb_of(end) for end, _ in self.pieces for sign in (-1, 1)]
        total, waiting = 2 * arb_of(self.tail), list(self._cut([ends(r) for r in (moved, *rims)]))
        while waiting:
            cell, certain = waiting.pop()
            place = self._place(cell, image) if certain else None
            if place is None:
                total += cell.mass.upper()
                continue
            function, side, centre, hull = place
            log_q = _series(function, centre, 1)[0]
            slope_q = side * _series(function, hull, 2)[1] / image[1]
            radius = arb_of((cell.right - cell.left) / 2)
            loss = cell.log_h - log_q + dilated
            off = (radius * (cell.slope - slope_q)).abs_upper()
            if loss + off <= epsilon:
                continue
            if off > _FINE and not loss - off >= epsilon and cell.right - cell.left > self.finest:
                middle = (cell.left + cell.right) / 2
                waiting += [(self._cell(cell.left, middle), True)]
                waiting += [(self._cell(middle, cell.right), True)]
                continue
            most = cell.mass * (1 - (epsilon - loss - off).exp())
            if loss - off >= epsilon:
                mass_q = _integral(function, centre, hull, radius / image[1])
                most = most.upper().min((cell.mass - factor * mass_q).upper())
            total += most.upper() if most.is_finite() else cell.mass.upper()
        everything = sum((cell.mass.lower() for cell in self.cells), arb(0)).lower()
        return (total / everything).upper().max(arb(0)).min(arb(1))

    def _cut(self, rims: list[tuple[Fraction, Fraction]]) -> Iterator[tuple[_Cell, bool]]:
        """The cells, cut at the rims; False for those that hold one."""
        starts = [cell.left for cell in self.cells]
        cuts: dict[int, set[Fraction]] = {}
        for x in {x for rim in rims for x in rim if -self.reach < x < self.reach}:
            cuts.setdefault(bisect_right(starts, x) - 1, set()).add(x)
        for at, cell in enumerate(self.cells):
            if at not in cuts:
                yield cell, True
                continue
            for left, right in pairwise(sorted(cuts[at] | {cell.left, cell.right})):
                certain = not any(low < right and left < high for low, high in rims)
                yield self._cell(left, right), certain

    def _place(
        self, cell: _Cell, image: tuple[arb, arb]
    ) -> tuple[LogDensity, int, arb, arb] | None:
        """The piece of q that a cell lies in, its side, and the cell there; None if in none."""
        moved, width = image
        centre = (arb_of((cell.left + cell.right) / 2) - moved) / width
        side = 1 if centre > 0 else -1
        starts = [Fraction(0), *(end for end, _ in self.pieces)]
        for start, (end, function) in zip(starts, self.pieces, strict=False):
            if arb_of(start) < side * centre < arb_of(end):
                hull = side * (arb_of(cell.left).union(arb_of(cell.right)) - moved) / width
                return function, side, side * centre, hull
        return None

    def _cell(self, left: Fraction, right: Fraction) -> _Cell:
        side = 1 if right > 0 else -1
        near, far = sorted((side * left, side * right))
        function = next(function for end, function in self.pieces if far <= end)
        centre, hull = arb_of((near + far) / 2), arb_of(near).union(arb_of(far))
        mass = _integral(function, centre, hull, arb_of((far - near) / 2))
        log_h, slope = _series(function, centre, 1)[0], _series(function, hull, 2)[1]
        if not (mass.is_finite() and log_h.is_finite() and slope.is_finite()):
            raise InvalidParameter(
                "log_density", problem="is not finite", remedy="pass one that is, up to the reach"
            )
        return _Cell(left, right, mass, log_h, side * slope)


def _falling_cells(pieces: tuple[_Piece, ...]) -> Iterator[tuple[Fraction, Fraction]]:
    """Cells on each of which L is proved to fall, from 0 to the reach."""
    start, last, made = Fraction(0), pieces[0][1], 0
    for end, function in pieces:
        step = (end - start) / _FIRST_CELLS
        waiting = [(start + k * step, start + (k + 1) * step) for k in range(_FIRST_CELLS)][::-1]
        falls = last is function or _not_above(function, last, start)
        while waiting and falls:
            left, right = waiting.pop()
            here = _series(function, arb_of(left).union(arb_of(right)), _ORDERS)
            near = _series(function, arb_of(left), _ORDERS)
            first = next((k for k in range(1, _ORDERS) if not near[k] <= 0), _ORDERS)
            certain = any(here[k] <= 0 for k in range(1, min(first + 1, _ORDERS)))
            if certain and abs(here[1]) * arb_of(right - left) <= arb(1) / 2:
                yield left, right
                continue
            middle = (left + right) / 2
            waiting += [(middle, right), (left, middle)]
            made += 1
            falls = made < _MOST_CELLS
        if not falls:
            raise InvalidParameter(
                "log_density",
                problem="is not certain to fall from 0 on, or is too steep for its reach",
                remedy="pass ln h for z >= 0, flat or falling, or its pieces as (end, function)",
            )
        start, last = end, function


def _not_above(one: LogDensity, other: LogDensity, at: Fraction) -> bool:
    """Whether a piece begins no higher than the last one ended; exactly where that is rational."""
    try:
        begins, ended = one(at), other(at)
    except Exception:  # it has a logarithm, say
        begins = ended = None
    if isinstance(begins, int | Fraction) and isinstance(ended, int | Fraction):
        return begins <= ended
    return bool(_series(one, arb_of(at), 1)[0] <= _series(other, arb_of(at), 1)[0])


def _pieces(log_density: object, reach: object) -> tuple[_Piece, ...]:
    remedy = "pass a function of z with reach=, or pairs (end, function) whose ends rise"
    if callable(log_density):
        if reach is None:
            raise InvalidParameter("reach", problem="is missing", remedy=remedy)
        return ((positive(reach, "reach"), log_density),)
    if reach is not None or isinstance(log_density, str) or not isinstance(log_density, Sequence):
        raise WrongType("log_density", problem="is not a function or its pieces", remedy=remedy)
    try:
        given = [(positive(end, "log_density"), function) for end, function in log_density]
    except (TypeError, ValueError):
        given = []
    if not given or not all(callable(function) for _, function in given):
        raise WrongType("log_density", problem="is not a list of pairs", remedy=remedy)
    if any(a[0] >= b[0] for a, b in pairwise(given)):
        raise InvalidParameter("log_density", problem="has ends that do not rise", remedy=remedy)
    return tuple(given)


def _series(function: LogDensity, at: arb, terms: int) -> arb_series:
    """L about a number or a ball, to some terms."""
    try:
        return _power_series(function(_Variable(arb_series([at, 1], terms))), terms)
    except Exception:
        pass
    raise InvalidParameter(
        "log_density",
        problem="fails, asks whether z is large or small, or is no power series",
        remedy="write it with + - * /, numbers, z.exp(), z.log(), z.sqrt(); give cases as pieces",
    )


def _power_series(value: object, terms: int) -> arb_series:
    if not isinstance(value, _Variable):
        return arb_series([arb_of(rational(value))], terms)
    if value.series.prec < terms:  # terms were lost, and would be read as 0
        raise ArithmeticError
    return value.series


def _forwards(operation: Callable[[Any, Any], Any]) -> Callable[[Any, object], Any]:
    return lambda one, other: _Variable(
        operation(one.series, _power_series(other, one.series.prec))
    )


def _backwards(operation: Callable[[Any, Any], Any]) -> Callable[[Any, object], Any]:
    return _forwards(lambda one, other: operation(other, one))


class _Variable:
    """A power series that cannot be looked at: a branch on a ball would be taken for all of it."""

    __slots__ = ("series",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, series: arb_series) -> None:
        self.series = series

    __add__, __sub__, __mul__, __truediv__ = map(
        _forwards, (operator.add, operator.sub, operator.mul, operator.truediv)
    )
    __radd__, __rsub__, __rmul__, __rtruediv__ = map(
        _backwards, (operator.add, operator.sub, operator.mul, operator.truediv)
    )

    def __neg__(self) -> _Variable:
        return _Variable(-self.series)

    def __pow__(self, power: int) -> _Variable:
        return _Variable(self.series ** whole(power, "power"))

    def exp(self) -> _Variable:
        return _Variable(self.series.exp())

    def log(self) -> _Variable:
        return _Variable(self.series.log())

    def sqrt(self) -> _Variable:
        return _Variable(self.series.sqrt())

    def __eq__(self, other: object) -> bool:
        raise TypeError

    def __bool__(self) -> bool:
        raise TypeError


def _integral(function: LogDensity, centre: arb, hull: arb, radius: arb) -> arb:
    """The integral of exp(L) over a cell."""
    h, rest = _series(function, centre, _TERMS).exp(), _series(function, hull, _TERMS).exp()[4]
    return 2 * (h[0] * radius + h[2] * radius**3 / 3 + rest * radius**5 / 5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Admissibility:
    """What a density of one's own costs when it slides by alpha and dilates by exp(beta).

    Theorem  `sliding` and `dilation` are at least the delta of either step at epsilon/2
             (`SymmetricDensity.excess`): of all slides up to alpha the farthest is worst, and a few
             widths prove it for all up to exp(beta), both as in `joint_delta`, whose proof uses of
             h that it is symmetric and falls. `delta` is at least that of f + (S/alpha) Z at
             epsilon, both changes at once; or that of two steps, dilation + exp(epsilon/2) sliding,
             if it is less. `claimed` is the delta that Lemma 2.6 would promise, twice the larger
    Source   paper 004, Definition 2.5 and Lemma 2.6
    Differs  Lemma 2.6's delta is not enough: see correction 23 in docs/theory/corrections.md
    Checked  tests/mechanisms/test_density.py
    """

    alpha: Fraction
    beta: Fraction
    epsilon: Fraction
    sliding: Fraction
    dilation: Fraction
    delta: Fraction

    @property
    def claimed(self) -> Fraction:
        """The delta for which the density is (alpha, beta)-admissible by Definition 2.5."""
        return 2 * max(self.sliding, self.dilation)

    def guarantee(self, neighbours: Neighbours = AS_DECLARED) -> ApproxDP:
        """What f + (S/alpha) Z certainly promises, if it is drawn exactly."""
        return ApproxDP(self.epsilon, self.delta, neighbours=neighbours)


def admissibility(
    density: SymmetricDensity, *, alpha: Number, beta: Number, epsilon: Number
) -> Admissibility:
    """Whether a density of one's own is admissible, and the (epsilon, delta) that it promises.

    >>> cut = SymmetricDensity(lambda z: -3 * z, reach=6)
    >>> found = admissibility(cut, alpha=1, beta="0.139", epsilon=6)
    >>> f"{float(found.claimed):.3g} is claimed, {float(found.delta):.3g} is certain"
    '2.91e-07 is claimed, 1.07e-06 is certain'
    """
    if not isinstance(density, SymmetricDensity):
        raise WrongType(
            "density", problem="is not a density", remedy="pass SymmetricDensity(ln h, reach=)"
        )
    a, b = positive(alpha, "alpha"), nonnegative(beta, "beta")
    loss = positive(epsilon, "epsilon")
    with working_precision(_PRECISION):
        half = arb_of(loss / 2)
        sliding = density.excess(arb_of(a), arb(0), half)
        dilation = worst_excess(density.excess, Fraction(0), b, loss / 2, _WIDTHS)
        joint = worst_excess(density.excess, a, b, loss, _WIDTHS)
        delta = joint.min(dilation + half.exp() * sliding).min(arb(1))
        rounded = [min(Fraction(upper(Ball(x))), Fraction(1)) for x in (sliding, dilation, delta)]
    return Admissibility(
        alpha=a,
        beta=b,
        epsilon=loss,
        sliding=rounded[0],
        dilation=rounded[1],
        delta=rounded[2],
    )
