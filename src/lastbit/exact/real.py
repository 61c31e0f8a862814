"""Computable reals, and raising the precision until a question is decided."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from flint import arb

from lastbit.errors import PrecisionExhausted, Undecidable
from lastbit.exact.ball import Ball, arb_of, working_precision
from lastbit.exact.rational import Number, rational

Answer = TypeVar("Answer")
Operand: TypeAlias = "Real | Number"


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
        f"still undecided at {limit} bits; if the two sides may be equal decide that case by "
        "algebra first, otherwise raise limit="
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

    def __add__(self, other: Operand) -> Real:
        right = _real(other).enclosure
        return Real(lambda: self.enclosure() + right())

    def __sub__(self, other: Operand) -> Real:
        return self + -_real(other)

    def __mul__(self, other: Operand) -> Real:
        right = _real(other).enclosure
        return Real(lambda: self.enclosure() * right())

    def __truediv__(self, other: Operand) -> Real:
        right = _real(other).enclosure
        return Real(lambda: self.enclosure() / right())

    def __radd__(self, other: Operand) -> Real:
        return self + other

    def __rsub__(self, other: Operand) -> Real:
        return -self + other

    def __rmul__(self, other: Operand) -> Real:
        return self * other

    def __rtruediv__(self, other: Operand) -> Real:
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


def _real(operand: Operand) -> Real:
    return operand if isinstance(operand, Real) else Real(operand)
