"""Ideal, then rounded: exact draws of location + scale * Z on a grid, for real-valued laws."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import Any, NamedTuple, overload

import numpy as np
from flint import arb
from numpy.typing import NDArray

from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import Number, Real, arb_of, enclosure_of, working_precision
from lastbit.laws import (
    Gumbel,
    Ideal,
    IdealCauchy,
    IdealGaussian,
    IdealLaplace,
    Logistic,
    Rounded,
    enclosed,
    least,
)
from lastbit.sampling.bits import Bits, words
from lastbit.sampling.draw import Shape, Size, drawn_fresh
from lastbit.sampling.lazy import LazyUniform
from lastbit.sampling.middle import Middle, gaussian_middle
from lastbit.sampling.pieces import Pieces, quantile_pieces, rough_quantile

_NAMES: Mapping[str, Callable[[], Ideal]] = MappingProxyType(
    {
        "cauchy": IdealCauchy,
        "gaussian": IdealGaussian,
        "gumbel": Gumbel,
        "laplace": IdealLaplace,
        "logistic": Logistic,
    }
)
_MANY = 1 << 12  # from here on a table of parabolas is worth its making
_MOST_SLOPE = 2.0**27  # beyond it parabolas leave too many draws to the other ways
_SMALL = 64  # below it, making the tables is not worth while
_CHUNK = 1 << 13
_WORD_BITS = 64
_GUESS_PRECISION = 64
_EASY_BITS = 48  # beyond 2**48 steps the first word would leave a long search
_INT64_SAFE = 1 << 62
_SLACK = 1 + 2.0**-40
_PRECISIONS = (192, 1024, 4096)


@overload
def rounded(
    law: Ideal | str,
    *,
    location: Number | Real = 0,
    scale: Number | Real = 1,
    grid: Number = 1,
    size: None = None,
) -> int: ...
@overload
def rounded(
    law: Ideal | str,
    *,
    location: Number | Real = 0,
    scale: Number | Real = 1,
    grid: Number = 1,
    size: Shape,
) -> NDArray[Any]: ...
def rounded(
    law: Ideal | str,
    *,
    location: Number | Real = 0,
    scale: Number | Real = 1,
    grid: Number = 1,
    size: Size = None,
) -> int | NDArray[Any]:
    """Exact draws of a real-valued ideal that is rounded to a grid, in steps of the grid.

    Law      K = round((location + scale Z)/grid), Z of the ideal law; `laws.Rounded`
    Theorem  see `RoundedSampler`
    Source   paper 000, section 4, asks for this order: ideal first, then rounded
    Differs  no float error is left to account for. Python integers where int64 would overflow
    Checked  tests/sampling/test_rounded.py

    >>> rounded("laplace", scale=100, grid="0.01", size=3).dtype
    dtype('int64')
    >>> rounded("gaussian", location=7, scale="1e-9")
    7
    """
    return drawn_fresh(rounded_sampler(_named(law), location, scale, grid), size)  # type: ignore[no-any-return]


def rounded_sampler(
    ideal: Ideal, location: Number | Real = 0, scale: Number | Real = 1, grid: Number = 1
) -> RoundedSampler:
    """A sampler for mechanisms; nothing of it is kept, as location and scale may be private."""
    return RoundedSampler(Rounded(ideal, location, scale, grid))


def _named(law: Ideal | str) -> Ideal:
    if isinstance(law, Ideal):
        return law
    remedy = f"pass one of {', '.join(_NAMES)}, or an ideal law such as StudentT(3)"
    if isinstance(law, str):
        if law in _NAMES:
            return _NAMES[law]()
        raise InvalidParameter("law", problem="is none of the known names", remedy=remedy)
    raise WrongType("law", problem=f"is of type {type(law).__name__}", remedy=remedy)


class _Line(NamedTuple):
    """(location + scale Z)/grid = whole + shift + slope Z in floats: |error| in the docstring."""

    whole: int
    shift: float
    slope: float
    slack: float


@dataclass(frozen=True, slots=True, eq=False)
class RoundedSampler:
    """Draws by inversion: K is the step of Q(U), U a uniform real known as far as needed.

    Law      that of `Rounded`: K <= k if and only if U < F(e(k)), e(k) the upper edge of cell k
    Theorem  *Exact path.* U is known to 64 bits, and finer on demand (`LazyUniform`); if K has
             more than 48 bits, as many more are drawn at once. A guess of k is checked by asking
             whether U < F(e(k)), by balls; galloping and bisection find the least k for which it
             holds. The guess changes the time, never the answer.
             *Fast path.* K = W + round(M + S Q(U)), where S = scale/grid, W is an integer and
             W + M = location/grid. For the word's 64 bits the table gives q
             with abs(Q(U) - q) <= error, abs(q) <= size (`Pieces`), whatever the other bits of U
             are. Floats m, s with abs(M - m) <= d and abs(S - s) <= 2us, u = 2**-53, are taken from
             balls. Then p = fl(sq), y = fl(m + p) and
             abs(M + S Q - y) <= d + 2us(size + error) + s error + u abs(p) + u abs(y)
             <= s (error (1 + 2u) + 5u size) + d + 2u abs(m) =: r, with abs(p) <= s size (1 + u) and
             abs(y) <= (abs(m) + abs(p))(1 + u). r is computed from positive floats in a few
             operations and enlarged by 2**-40; 2**-900 is added for underflow.
             k = rint(y) and y - k are exact (abs(y - k) <= 1/2 <= abs(y) unless k = 0). If
             fl(abs(y - k) + r) < 1/2 then, rounding being monotone, abs(y - k) + r < 1/2: the whole
             interval of U lies strictly inside the cell k. Otherwise, also if anything
             overflowed or is not a number, the exact path decides with the same 64 bits. A decided
             y is below 2**52 in size, since r >= u abs(y), so it fits int64.
             *Quick path*, many draws of a Gaussian: the same with q, error and size of `Middle`,
             which are one for all; abs(y - k) < 1/2 - r is asked for. What is left takes the fast
             path with the same word: the same step of the same U, by whatever path
    Differs  what is constant: one word a draw, in requests that depend on the size alone. Not
             constant: about 2**-17 + 2**-49 scale/grid of the draws take the exact path, a
             thousand times as long, and a few of these take further words. It is more for heavy
             tails: with gamma = 11/10 nearly all, as Z itself is astronomic. Their number depends
             on location and scale: where those are private and a clock is near, draw once and
             not in batches. Fewer than 64 draws take the exact path only
    Checked  tests/sampling/test_rounded.py

    >>> rounded_sampler(IdealLaplace(), "0.3", 2)
    RoundedSampler(law=Rounded(ideal=IdealLaplace(), grid=Fraction(1, 1)))
    """

    law: Rounded
    pieces: Pieces | None = field(default=None, repr=False)

    def draw(self, bits: Bits, size: int) -> NDArray[Any]:
        if size < _SMALL:
            word = words(bits, size, np.uint64).tolist()
            return _array([self.exact(bits, w) for w in word])
        line = _line(self.law)
        fits = abs(line.whole) < _INT64_SAFE
        out: NDArray[Any] = np.empty(size, np.int64 if fits else np.object_)
        middle = self._middle(size, line)
        if middle is not None and fits:
            self._fill(bits, out, line, middle)
            return out
        for start in range(0, size, _CHUNK):
            word = words(bits, min(_CHUNK, size - start), np.uint64)
            steps, sure = self.decided(word, line)
            here = out[start : start + _CHUNK]
            here[:] = steps if fits else steps.astype(np.object_)
            here += line.whole
            for i in np.flatnonzero(~sure):
                value = self.exact(bits, int(word[i]))
                if out.dtype != np.object_ and not -_INT64_SAFE < value < _INT64_SAFE:
                    out = out.astype(np.object_)
                out[start + i] = value
        return out

    def decided(
        self, word: NDArray[np.uint64], line: _Line | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The steps beyond `whole` that floats find, and where these are certain."""
        line = _line(self.law) if line is None else line
        table = quantile_pieces(self.law.ideal) if self.pieces is None else self.pieces
        index, position = table.place(word.view(np.int64))
        with np.errstate(all="ignore"):
            y = table.value(index, position)
            y *= line.slope
            y += line.shift
            reach = (table.error + 5 * 2.0**-53 * table.size) * (line.slope * _SLACK)
            radius = reach.take(index)
            radius += line.slack
            nearest = np.rint(y)
            y -= nearest
            np.abs(y, out=y)
            y += radius
            sure = y < 0.5
            nearest[~sure] = 0.0
            return nearest.astype(np.int64), sure

    def _middle(self, size: int, line: _Line) -> Middle | None:
        """The table of parabolas, where it is of use: by the size and public parts of the law."""
        many = size >= _MANY and self.pieces is None and isinstance(self.law.ideal, IdealGaussian)
        return gaussian_middle() if many and line.slope <= _MOST_SLOPE else None

    def _fill(self, bits: Bits, out: NDArray[np.int64], line: _Line, middle: Middle) -> None:
        """Draw into an array: by parabolas, and all that these leave at once by the fast path."""
        left, places = [], []
        for start in range(0, out.size, _CHUNK):
            here = out[start : start + _CHUNK]
            word = words(bits, here.size, np.uint64)
            place = np.flatnonzero(self.guess(word, line, middle, here))
            left.append(word[place])
            places.append(place + start)
        rest, place = np.concatenate(left), np.concatenate(places)
        for start in range(0, rest.size, _CHUNK):
            word = rest[start : start + _CHUNK]
            steps, sure = self.decided(word, line)
            for i in np.flatnonzero(~sure):  # a Gaussian's step fits: it is below 64 deviations
                steps[i] = self.exact(bits, int(word[i])) - line.whole
            out[place[start : start + _CHUNK]] = steps
        if line.whole:
            out += line.whole

    def guess(
        self, word: NDArray[np.uint64], line: _Line, middle: Middle, out: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Write steps beyond `whole` by parabolas; the answer is where they are *not* certain."""
        reach = (middle.error + 5 * 2.0**-53 * middle.size) * (line.slope * _SLACK)
        most = math.nextafter(0.5 - (reach + line.slack) * _SLACK, 0)
        with np.errstate(all="ignore"):
            y = middle.value(word)
            y *= line.slope
            if line.shift:
                y += line.shift
            nearest = np.rint(y)
            np.copyto(out, nearest, casting="unsafe")  # anything where it is not certain
            y -= nearest
            np.abs(y, out=y)
            return ~(y < most)  # also where it is not a number

    def exact(self, bits: Bits, word: int) -> int:
        """The step of the uniform real that starts with these 64 bits."""
        uniform = LazyUniform(bits, word, _WORD_BITS)

        def reaches(k: int) -> bool:
            return uniform.below(enclosure_of(lambda: self.law.cumulative(k)))

        high = _rough(self.law, word)
        if high is not None and reaches(high) and not reaches(high - 1):
            return high
        high = _guess(self.law, word)
        length = _length(self.law, high)
        if length > _EASY_BITS:
            for more in words(bits, -(-length // _WORD_BITS) + 1, np.uint64).tolist():
                uniform.word = uniform.word << _WORD_BITS | more
                uniform.count += _WORD_BITS
            high = _guess(self.law, uniform.word, uniform.count)
        return least(reaches, (None, None), near=high)


def _rough(law: Rounded, word: int) -> int | None:
    """The likely step of a word, by floats, where they are of use."""
    z = rough_quantile(law.ideal, word)
    if z is None or isinstance(law.location, Real) or isinstance(law.scale, Real):
        return None
    step = round((law.location + law.scale * Fraction(z)) / law.grid)
    return None if _length(law, step) > _EASY_BITS else step


def _guess(law: Rounded, word: int, count: int = _WORD_BITS) -> int:
    """The likely step of the first `count` bits of U."""
    with working_precision(_GUESS_PRECISION + count - _WORD_BITS):
        if word >> (count - 1):
            z = law.ideal.near_above((arb((1 << count) - word) - 0.5) / 2**count)
        else:
            z = law.ideal.near_below((arb(word) + 0.5) / 2**count)
        whole, rest = _split(law)
        return whole + _nearest(rest + z * enclosed(law.scale) / arb_of(law.grid))


def _length(law: Rounded, step: int) -> int:
    """How many bits the step's distance from the location has; of a real location, the step."""
    if isinstance(law.location, Fraction):
        step -= law.location // law.grid
    return step.bit_length()


def _nearest(value: arb) -> int:
    """An integer near the middle of a ball; 0 if there is none."""
    middle = (arb(value.mid()) + 0.5).mid().floor()
    whole = middle.mid().unique_fmpz() if middle.is_finite() else None
    return 0 if whole is None else int(whole)


def _line(law: Rounded) -> _Line:
    """Floats for location and scale, counted in steps, with the bounds of the theorem."""
    for precision in _PRECISIONS:
        with working_precision(precision):
            whole, rest = _split(law)
            ratio = enclosed(law.scale) / arb_of(law.grid)
            shift, slope = float(rest.mid()), float(ratio.mid())
            if not (math.isfinite(shift) and math.isfinite(slope)):
                continue
            off = float(abs(rest - arb(shift)).upper()) * _SLACK
            if abs(ratio - arb(slope)) <= arb(slope) * arb(2) ** -52 and off < 2.0**-32:
                slack = (off + 2.0**-52 * abs(shift)) * _SLACK + 2.0**-900
                return _Line(whole, shift, slope, slack)
    return _Line(0, 0.0, 0.0, math.inf)  # floats decide nothing


def _split(law: Rounded) -> tuple[int, arb]:
    """location/grid as an integer and a rest, which is small if the precision allows."""
    if isinstance(law.location, Fraction):
        place = law.location / law.grid
        whole = math.floor(place + Fraction(1, 2))
        return whole, arb_of(place - whole)
    ball = enclosed(law.location) / arb_of(law.grid)
    whole = _nearest(ball)
    return whole, ball - whole


def _array(values: list[int]) -> NDArray[Any]:
    """Integers in int64, or as they are where one does not fit."""
    if all(-_INT64_SAFE < value < _INT64_SAFE for value in values):
        return np.array(values, np.int64)
    out = np.empty(len(values), np.object_)
    out[:] = values
    return out
