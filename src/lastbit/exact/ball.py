"""Enclosures of real numbers: balls, whose undecidable comparisons raise, and computable reals."""

from __future__ import annotations

import operator
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import NoReturn, TypeAlias, TypeVar

from flint import arb, ctx, fmpq

from lastbit.errors import InvalidParameter, PrecisionExhausted, Undecidable
from lastbit.exact.fixed_point import Enclosure, Pair
from lastbit.exact.rational import Number, rational

DEFAULT_PRECISION = 128
# Writing out a number with more binary places than this is refused.
_MOST_PLACES = 1 << 24


class _Precision:
    """Who may set the working precision, which is one variable of the whole process in flint.

    Balls are right at any precision, but a race could leave them wider than asked for: the
    thread that computes holds the lock. A child process starts with a copy of the lock as it was;
    if another thread held it, it would never be released there.
    """

    __slots__ = ("before", "lock")

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.before = ctx.prec
        os.register_at_fork(after_in_child=self.after_fork)

    def after_fork(self) -> None:
        if not self.lock._is_owned():  # type: ignore[attr-defined]
            self.lock = threading.RLock()
            ctx.prec = self.before


_PRECISION = _Precision()


@contextmanager
def working_precision(bits: int) -> Iterator[None]:
    """Compute with `bits` bits inside the block, and put the old precision back afterwards."""
    with _PRECISION.lock:
        before = ctx.prec
        _PRECISION.before = before
        try:
            ctx.prec = bits
            yield
        finally:
            ctx.prec = before
            _PRECISION.before = before


def arb_of(number: Fraction | int) -> arb:
    """An enclosure of a rational at the working precision (exact if it fits)."""
    if isinstance(number, int):
        return arb(number)
    return arb(fmpq(number.numerator, number.denominator))


def ends(ball: arb) -> tuple[Fraction, Fraction]:
    """The two ends of a ball, exactly: midpoint and radius are dyadic numbers."""
    middle, radius = _dyadic(ball.mid()), _dyadic(ball.rad())
    return middle - radius, middle + radius


def floor_ceil(ball: arb) -> tuple[int, int]:
    """Integers not above and not below everything in the ball, as close as the ball allows."""
    return (
        int(ball.lower().floor().unique_fmpz()),  # type: ignore[arg-type]
        int(ball.upper().ceil().unique_fmpz()),  # type: ignore[arg-type]
    )


def _dyadic(number: arb) -> Fraction:
    if not number.is_finite():
        raise InvalidParameter(
            "ball", problem="is not finite", remedy="check the expression for overflow or 0/0"
        )
    mantissa, exponent = number.man_exp()
    shift = int(exponent)
    if mantissa != 0 and abs(shift) > _MOST_PLACES:
        raise InvalidParameter(
            "ball", problem="has too many places to write out", remedy="round it: upper(), lower()"
        )
    if shift >= 0:
        return Fraction(int(mantissa) << shift)
    return Fraction(int(mantissa), 1 << -shift)


Operand: TypeAlias = "Ball | int | Fraction | Decimal | float | str"


@dataclass(frozen=True, slots=True, eq=False)
class Ball:
    """A real number known to lie within a radius of a midpoint.

    Arithmetic gives balls that hold every possible result. A comparison is answered only if it is
    true of *every* number in the ball, or of none; otherwise `Undecidable` is raised.

    >>> third = Ball.of("1/3")
    >>> third
    Ball(0.33333333333333333333 ± 3.34e-21)
    >>> third < "0.34"
    True
    >>> third * 3 == 1
    Traceback (most recent call last):
        ...
    lastbit.errors.Undecidable: the ball 1.0000000000000000000 ± ... does not decide == 1; ...
    """

    enclosure: arb

    @classmethod
    def of(cls, number: object, *, precision: int = DEFAULT_PRECISION) -> Ball:
        """The ball of a rational, in everything `rational` takes."""
        exact = rational(number)
        with working_precision(precision):
            return cls(arb_of(exact))

    # -- arithmetic, at the precision of the finer operand and a margin --
    def __add__(self, other: Operand) -> Ball:
        return self._combine(other, operator.add)

    def __sub__(self, other: Operand) -> Ball:
        return self._combine(other, operator.sub)

    def __mul__(self, other: Operand) -> Ball:
        return self._combine(other, operator.mul)

    def __truediv__(self, other: Operand) -> Ball:
        return self._combine(other, operator.truediv)

    __radd__ = __add__
    __rmul__ = __mul__

    def __rsub__(self, other: Operand) -> Ball:
        return -self + other

    def __rtruediv__(self, other: Operand) -> Ball:
        return Ball.of(other, precision=self._precision()) / self

    def __neg__(self) -> Ball:
        return Ball(self.enclosure.neg(exact=True))

    def __abs__(self) -> Ball:
        with working_precision(self._precision()):
            return Ball(abs(self.enclosure))

    def exp(self) -> Ball:
        """The exponential."""
        with working_precision(self._precision()):
            return Ball(self.enclosure.exp())

    def log(self) -> Ball:
        """The natural logarithm; `Undecidable` unless the sign of the ball is certain."""
        if self <= 0:
            raise ArithmeticError("the logarithm of a number that is not above 0")
        with working_precision(self._precision()):
            return Ball(self.enclosure.log())

    def sqrt(self) -> Ball:
        """The square root; `Undecidable` unless the sign of the ball is certain."""
        if self < 0:
            raise ArithmeticError("the square root of a number below 0")
        with working_precision(self._precision()):
            return Ball(self.enclosure.sqrt())

    # -- questions --
    @property
    def ends(self) -> tuple[Fraction, Fraction]:
        """The least and the greatest number of the ball, exactly."""
        return ends(self.enclosure)

    def contains(self, number: object) -> bool:
        """Whether a rational lies in the ball."""
        low, high = self.ends
        return low <= rational(number) <= high

    def __lt__(self, other: Operand) -> bool:
        return self._decide(other, "<", operator.lt, operator.ge)

    def __le__(self, other: Operand) -> bool:
        return self._decide(other, "<=", operator.le, operator.gt)

    def __gt__(self, other: Operand) -> bool:
        return self._decide(other, ">", operator.gt, operator.le)

    def __ge__(self, other: Operand) -> bool:
        return self._decide(other, ">=", operator.ge, operator.lt)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ball | int | Fraction | Decimal | float | str):
            return NotImplemented
        return self._decide(other, "==", operator.eq, operator.ne)

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> NoReturn:
        raise TypeError("a ball has no truth value; compare it")

    def __float__(self) -> NoReturn:
        raise TypeError("a ball is not a float; round it with lastbit.exact.upper or lower")

    def __repr__(self) -> str:
        return f"Ball({self})"

    def __str__(self) -> str:
        # at most 20 digits; what they leave out is counted in the radius shown
        text = self.enclosure.str(20).strip("[]").replace("+/-", "±")
        plain = "." in text and "e" not in text and "±" not in text
        return text.rstrip("0").rstrip(".") if plain else text

    def _precision(self) -> int:
        known = max(int(self.enclosure.rel_accuracy_bits()), 0)
        return max(DEFAULT_PRECISION, min(self.enclosure.bits(), known) + 32)

    def _meet(self, other: Operand) -> tuple[int, arb]:
        """The precision to work at, and the other operand as a ball of that precision."""
        precision = self._precision()
        if isinstance(other, Ball):
            return max(precision, other._precision()), other.enclosure
        number = rational(other)
        with working_precision(precision):
            return precision, arb_of(number)

    def _combine(self, other: Operand, operation: Callable[[arb, arb], arb]) -> Ball:
        precision, right = self._meet(other)
        with working_precision(precision):
            return Ball(operation(self.enclosure, right))

    def _decide(
        self,
        other: Operand,
        sign: str,
        surely: Callable[[arb, arb], bool],
        surely_not: Callable[[arb, arb], bool],
    ) -> bool:
        # arb's own comparisons are True only if they hold for all numbers of both balls
        _, right = self._meet(other)
        if surely(self.enclosure, right):
            return True
        if surely_not(self.enclosure, right):
            return False
        raise Undecidable(
            f"the ball {self} does not decide {sign} {other}; "
            "compute it with more precision (lastbit.exact.refine does so by itself)"
        )


def at_most(left: Callable[[], arb], right: Callable[[], arb]) -> bool:
    """Whether left <= right, with as much precision as it takes: the two must not be equal."""

    def at(precision: int) -> bool:
        with working_precision(precision):
            return Ball(left()) <= Ball(right())

    return refine(at)


Answer = TypeVar("Answer")
RealOperand: TypeAlias = "Real | Number"


def refine(question: Callable[[int], Answer], *, start: int = 64, limit: int = 1 << 16) -> Answer:
    """Ask a question at 64, 128, 256, ... bits until its answer is certain.

    `question(precision)` computes with balls of that precision and either returns its answer or
    lets an `Undecidable` escape. Beyond `limit` bits `PrecisionExhausted` is raised: two numbers
    that are equal cannot be told apart at any precision.

    >>> root = Real(2).sqrt()
    >>> refine(lambda precision: root.ball(precision) > "1.41421356237309504880168872420969807856")
    True
    >>> refine(lambda precision: root.ball(precision) * root.ball(precision) > 2, limit=512)
    Traceback (most recent call last):
        ...
    lastbit.errors.PrecisionExhausted: still undecided at 512 bits; ...
    """
    precision = start
    while precision <= limit:
        try:
            return question(precision)
        except Undecidable:
            precision *= 2
    raise PrecisionExhausted(
        f"still undecided at {limit} bits; if both sides may be equal, decide that by algebra; "
        f"otherwise raise limit="
    )


@dataclass(frozen=True, slots=True, eq=False)
class Real:
    """A real number that can be enclosed as tightly as one likes.

    `Real(x)` for everything `rational` takes; then + - * /, `exp`, `log`, `sqrt`. Nothing is
    computed until `ball(precision)` is asked for.

    >>> Real(2).log().ball(128)
    Ball(0.69314718055994530942 ± 2.77e-21)
    """

    enclosure: Callable[[], arb]

    def __init__(self, number: Number | Callable[[], arb]) -> None:
        if callable(number):
            object.__setattr__(self, "enclosure", number)
        else:
            exact = rational(number)
            object.__setattr__(self, "enclosure", lambda: arb_of(exact))

    def ball(self, precision: int) -> Ball:
        """The number, enclosed by working with `precision` bits."""
        with working_precision(precision):
            return Ball(arb(self.enclosure()))

    def __add__(self, other: RealOperand) -> Real:
        right = _real(other).enclosure
        return Real(lambda: self.enclosure() + right())

    def __sub__(self, other: RealOperand) -> Real:
        return self + -_real(other)

    def __mul__(self, other: RealOperand) -> Real:
        right = _real(other).enclosure
        return Real(lambda: self.enclosure() * right())

    def __truediv__(self, other: RealOperand) -> Real:
        right = _real(other).enclosure
        return Real(lambda: self.enclosure() / right())

    __radd__ = __add__
    __rmul__ = __mul__

    def __rsub__(self, other: RealOperand) -> Real:
        return -self + other

    def __rtruediv__(self, other: RealOperand) -> Real:
        return _real(other) / self

    def __neg__(self) -> Real:
        return Real(lambda: -self.enclosure())

    def exp(self) -> Real:
        """The exponential."""
        return Real(lambda: self.enclosure().exp())

    def log(self) -> Real:
        """The natural logarithm."""
        return Real(lambda: self.enclosure().log())

    def sqrt(self) -> Real:
        """The square root."""
        return Real(lambda: self.enclosure().sqrt())


def _real(operand: RealOperand) -> Real:
    return operand if isinstance(operand, Real) else Real(operand)


def enclosure_of(probability: Callable[[], arb]) -> Enclosure:
    """A number from 0 to 1, given at the working precision, enclosed to any number of places."""

    def at(places: int) -> Pair:
        one = 1 << places
        with working_precision(places + 8):
            ball = probability()
            if not (ball.is_finite() and abs(ball) < 2):  # this says nothing of such a number
                return 0, one
            low, high = floor_ceil(ball * arb(2) ** places)
        return min(max(low, 0), one), min(max(high, 0), one)

    return at
