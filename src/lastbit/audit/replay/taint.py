"""Taint tracking of noise: from the draw until it is added to a value.

Most code does not call a mechanism: it writes `total + rng.laplace(0, scale)`. The draw itself has
no input. So while a program is recorded, such a draw is a number (or an array) that can do all that
a number can, and reports when it is added to, or subtracted from, a value: then that value is the
input, and the sum is the release. Multiplied or divided by a constant it remains noise, with
another scale; any other use makes it a plain number again, and it is no longer tracked.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partialmethod
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lastbit.audit.replay.distance import Observed, shifts
from lastbit.errors import LastbitError
from lastbit.exact import rational
from lastbit.privacy import ZCDP, Guarantee, PureDP

Law: TypeAlias = Literal["laplace", "gaussian", "one-sided", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The law of additive noise: which, and how wide, for all entries alike or one by one.

    Theorem  if the logarithm of a density has slope at most 1/scale, a shift by d costs d/scale
             ("laplace", logistic and Cauchy noise among them); Gaussian noise costs
             d**2/(2 scale**2) in concentrated terms; noise on one side of 0 alone costs everything
             Noise on the integers (`whole`), drawn there or rounded, covers shifts by integers at
             the same price, since x + round(n) = round(x + n) there, and no others
    Source   Dwork, McSherry, Nissim, Smith 2006; Bun, Steinke 2016
    Differs  it is said of real numbers. What floats add to that is the business of the attacks
    """

    law: Law
    scale: Fraction | tuple[Fraction, ...]
    whole: bool = False

    def at(self, index: int) -> Fraction:
        return self.scale[index] if isinstance(self.scale, tuple) else self.scale

    def cost(self, shifts: Mapping[int, Fraction]) -> tuple[Guarantee, ...] | None:
        """What these shifts of entries cost; None if that is not known."""
        moved = {index: abs(shift) for index, shift in shifts.items() if shift}
        if not moved:
            return ()
        if self.law == "unknown":
            return None
        between = self.whole and any(shift.denominator != 1 for shift in moved.values())
        if between or self.law == "one-sided" or any(self.at(index) == 0 for index in moved):
            return (PureDP(float("inf")),)
        parts = [shift / self.at(index) for index, shift in moved.items()]
        if self.law == "laplace":
            return (PureDP(sum(parts, Fraction(0))),)
        return (ZCDP(sum((part * part for part in parts), Fraction(0)) / 2),)


@dataclass(frozen=True, slots=True)
class SpreadRule:
    """The rule of noise that was given its centre: `rng.laplace(total, scale)`.

    `shape` is that of the draw: a centre that is spread over it is released as many times.
    """

    spread: Spread
    shape: tuple[int, ...] = ()

    def observed(self, here: Any, there: Any) -> Observed:
        """No sensitivity was declared, so nothing is beyond it; but everything has its price."""
        apart = shifts(here, there, self.shape)
        if apart is None:
            return Observed(distance=float("inf"), costs=(PureDP(float("inf")),))
        distance = sum(map(abs, apart.values()), Fraction(0))
        return Observed(distance=distance, costs=self.spread.cost(apart))


class TaintListener(Protocol):
    """Somebody who is told when noise meets a value."""

    def added(self, source: Source, index: Any, value: Any, output: Any) -> Any:
        """What the caller gets for value + noise."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Source:
    """Where noise comes from: the number of its draw, its law, and what it was multiplied by.

    `others` are draws that were added to it: they are part of the sum and cover nothing more.
    """

    listener: TaintListener
    draw: int
    spread: Spread
    factor: Fraction = Fraction(1)
    others: frozenset[int] = frozenset()

    def times(self, factor: Fraction) -> Source:
        return replace(self, factor=self.factor * factor)


def tainted(value: Any, source: Source, index: Any = None) -> Any:
    """A draw that is tracked; `index` counts the entries of its draw."""
    if isinstance(value, np.ndarray) and value.ndim:
        if value.dtype.kind not in "iuf":
            return value
        entries = np.arange(value.size).reshape(value.shape) if index is None else index
        out = np.asarray(value).view(_Array)
        out.source, out.index = source, np.broadcast_to(entries, value.shape)
        out.drawn = np.array(value, subok=False)
        return out
    entry = 0 if index is None else int(np.asarray(index))
    if isinstance(value, float | np.floating) or (
        isinstance(value, np.ndarray) and value.dtype.kind == "f"
    ):
        return _Float.of(float(value), source, entry)
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return _Int.of(int(value), source, entry)
    return value


def plain(value: Any) -> Any:
    """A value without anything that is tracked, inside containers too."""
    match value:
        case _Float():
            return float(value)
        case _Int():
            return int(value)
        case _Array():
            return np.array(value, subok=False)
        case dict() if type(value) is dict:
            return {plain(key): plain(item) for key, item in value.items()}
        case list() if type(value) is list:
            return [plain(item) for item in value]
        case tuple() if type(value) is tuple:
            return tuple(plain(item) for item in value)
    return value


# ---------------------------------------------------------------- arithmetic


def _added(one: Any, other: Any, operation: Callable[[Any, Any], Any]) -> Any:
    """A sum or a difference, at least one side of it noise."""
    output = operation(plain(one), plain(other))
    sign = 1 if operation is operator.add else -1
    if _is_noise(one) and _is_noise(other):
        return _merged(one, other, sign, output)
    noise, value = (one, other) if _is_noise(one) else (other, one)
    if not isinstance(value, int | float | np.generic | np.ndarray | Fraction):
        return output
    # noise - value hides value as value - noise does
    source: Source = noise.source.times(Fraction(sign))
    shape = np.shape(output)
    index = np.broadcast_to(noise.index, shape)
    return source.listener.added(source, index, np.broadcast_to(plain(value), shape), output)


def _merged(one: Any, other: Any, sign: int, output: Any) -> Any:
    """Two noises: the sum protects what either protects; two of one side make one of both."""
    first, second = one.source, other.source
    if first.draw == second.draw:  # they may cancel
        return output
    chosen, index = first, one.index
    if first.spread.whole and not second.spread.whole:
        chosen, index = second.times(Fraction(sign)), other.index
    elif first.spread.law in ("one-sided", "unknown"):
        if first.spread == second.spread and first.factor == -sign * second.factor:
            if first.spread.law == "one-sided":
                chosen = replace(first, spread=replace(first.spread, law="laplace"))
        else:
            chosen, index = second.times(Fraction(sign)), other.index
    both = {first.draw, second.draw, *first.others, *second.others}
    chosen = replace(chosen, others=frozenset(both - {chosen.draw}))
    return tainted(output, chosen, np.broadcast_to(index, np.shape(output)))


def _stretched(noise: Any, factor: Any, operation: Callable[[Any, Any], Any]) -> Any:
    """Noise times or by a factor: noise still, if the factor is one number and not 0."""
    output = operation(plain(noise), plain(factor))
    if _is_noise(factor) or np.ndim(factor):
        return output
    try:
        number = rational(factor)
    except LastbitError:
        return output
    if number == 0:
        return output
    source = noise.source.times(number if operation is operator.mul else 1 / number)
    return tainted(output, source, noise.index)


def _rounded(noise: Any, output: Any) -> Any:
    """Noise rounded to integers: symmetric noise stays noise, of the scale it has by now."""
    source, spread = noise.source, noise.source.spread
    if spread.law not in ("laplace", "gaussian") or isinstance(spread.scale, tuple):
        return output
    wide = replace(spread, scale=spread.scale * abs(source.factor), whole=True)
    return tainted(output, replace(source, spread=wide, factor=Fraction(1)), noise.index)


def _is_noise(value: Any) -> bool:
    return isinstance(value, _Float | _Int) or (isinstance(value, _Array) and value.is_tainted())


class _Scalar:
    """What a number does once it is noise."""

    __array_priority__ = 1e6  # numpy's own numbers and arrays ask us first
    source: Source
    index: int

    @classmethod
    def of(cls, value: Any, source: Source, index: int) -> Any:
        noise = cls.__new__(cls, value)  # type: ignore[call-arg]
        noise.source, noise.index = source, index
        return noise

    def _sum(self, other: Any, operation: Any, *, reflected: bool = False) -> Any:
        one, two = (other, self) if reflected else (self, other)
        return _added(one, two, operation)

    __add__ = partialmethod(_sum, operation=operator.add)
    __radd__ = partialmethod(_sum, operation=operator.add, reflected=True)
    __sub__ = partialmethod(_sum, operation=operator.sub)
    __rsub__ = partialmethod(_sum, operation=operator.sub, reflected=True)

    def __mul__(self, other: Any) -> Any:
        return _stretched(self, other, operator.mul)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return _stretched(self, other, operator.truediv)

    def __neg__(self) -> Any:
        return _stretched(self, -1, operator.mul)

    def __pos__(self) -> Any:
        return self

    def __reduce__(self) -> Any:
        return type(plain(self)), (plain(self),)

    def __deepcopy__(self, memo: Any) -> Any:
        return self  # as immutable as the number it is


class _Float(_Scalar, float):
    def __round__(self, digits: Any = None) -> Any:
        output = round(plain(self), digits)
        return _rounded(self, output) if digits is None else output


class _Int(_Scalar, int):
    pass


class _Array(np.ndarray[Any, Any]):
    """An array that does the same, entry by entry."""

    source: Source
    index: NDArray[np.int64]
    drawn: NDArray[Any]

    def __array_finalize__(self, origin: Any) -> None:
        """Views made by numpy itself are not tracked unless `__getitem__` made them."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
        known: dict[Any, Callable[..., Any]] = {
            np.add: lambda a, b: _added(a, b, operator.add),
            np.subtract: lambda a, b: _added(a, b, operator.sub),
            np.multiply: lambda a, b: _stretched(*_noise_first(a, b), operator.mul),
            np.true_divide: lambda a, b: (
                _stretched(a, b, operator.truediv)
                if isinstance(a, _Array)
                else operator.truediv(plain(a), plain(b))
            ),
            np.negative: lambda a: _stretched(a, -1, operator.mul),
            np.rint: lambda a: _rounded(a, np.rint(plain(a))),
        }
        into = named.pop("out", None)
        lost = any(isinstance(item, _Array) and not item.is_tainted() for item in inputs)
        if method == "__call__" and ufunc in known and not named and not lost:
            result = known[ufunc](*inputs)
            if into is None:
                return result
            np.copyto(plain_view(into[0]), plain(result))
            if isinstance(into[0], _Array) and isinstance(result, _Array):  # noise *= 2
                into[0].source, into[0].index = result.source, result.index
                into[0].drawn = np.array(into[0], subok=False)
            return into[0]
        if into is not None:
            named["out"] = tuple(plain_view(item) for item in into)
        return getattr(ufunc, method)(*(plain(item) for item in inputs), **named)

    def is_tainted(self) -> bool:
        """Whether this is a draw or a part of one, and nothing was written into it since."""
        if getattr(self, "source", None) is None or self.index.shape != self.shape:
            return False
        return np.array_equal(plain_view(self), self.drawn)

    def __getitem__(self, key: Any) -> Any:
        part = np.asarray(self)[key]
        return tainted(part, self.source, self.index[key]) if self.is_tainted() else part

    def __iter__(self) -> Iterator[Any]:
        return (self[entry] for entry in range(len(self)))

    def tolist(self) -> Any:
        return [part.tolist() if isinstance(part, _Array) else part for part in self]

    def round(self, decimals: Any = 0, out: Any = None) -> Any:
        """Rounded to integers, it is noise still."""
        return np.rint(self) if decimals == 0 and out is None else plain(self).round(decimals, out)

    def astype(self, dtype: Any, *args: Any, **named: Any) -> Any:
        """The same in another type; cutting off decimals is no shift any more."""
        part = plain(self).astype(dtype, *args, **named)
        exact = part.dtype.kind == "f" or (self.is_tainted() and self.source.spread.whole)
        return tainted(part, self.source, self.index) if exact and self.is_tainted() else part

    def _arranged(self, method: str, *args: Any, **named: Any) -> Any:
        part = getattr(np.asarray(self), method)(*args, **named)
        if not self.is_tainted():
            return part
        return tainted(part, self.source, getattr(self.index, method)(*args, **named))

    copy = partialmethod(_arranged, "copy")
    flatten = partialmethod(_arranged, "flatten")
    ravel = partialmethod(_arranged, "ravel")
    reshape = partialmethod(_arranged, "reshape")
    squeeze = partialmethod(_arranged, "squeeze")
    transpose = partialmethod(_arranged, "transpose")

    @property
    def T(self) -> Any:  # noqa: N802 (numpy's name)
        return self.transpose()

    def __reduce__(self) -> Any:
        return plain(self).__reduce__()


def plain_view(value: Any) -> Any:
    """The same memory, without being tracked."""
    return value.view(np.ndarray) if isinstance(value, _Array) else value


def _noise_first(one: Any, other: Any) -> tuple[Any, Any]:
    return (one, other) if _is_noise(one) else (other, one)
