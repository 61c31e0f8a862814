"""Columns made of released ones: SUM(a) / SUM(b), 100 * AVG(late), MAX(x) - MIN(x).

Law      a derived column is an expression over aggregates of the same query, evaluated on the
         values released for a group (`release/derived.py`)
Theorem  it is post-processing: it sees released numbers alone, so it costs nothing beyond its
         parts. A part that is not selected itself is released all the same, and recorded
Checked  tests/release/test_derived.py

Only functions of `DERIVING` may be used: each is total on doubles, and takes a bounded time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from lastbit.errors import WrongType
from lastbit.exact import Number, rational, shown
from lastbit.tables.limits import refused
from lastbit.tables.query.expression import (
    Call,
    ColumnName,
    Constant,
    Expression,
)
from lastbit.tables.query.writing import to_json

DERIVING = frozenset(
    {"+", "-", "*", "/", "negate", "abs", "floor", "ceil", "round", "sqrt", "clamp"}
    | {"ln", "exp", "log", "power"}
    | {"least", "greatest", "coalesce", "case", "to_number", "to_integer", "total"}
    | {"=", "<>", "<", "<=", ">", ">=", "and", "or", "not", "is_missing"}
)
"""What may be done with released numbers: `log` takes its base first, `total` sums all rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """A column of the answer; its expression names aggregates of the query."""

    name: str
    expression: Expression

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {"name": self.name, "expression": to_json(self.expression)}


def columns_in(expression: Expression) -> Iterator[ColumnName]:
    """Every column that is mentioned, as often as it is."""
    match expression:
        case ColumnName():
            yield expression
        case Call(arguments=arguments):
            for argument in arguments:
                yield from columns_in(argument)
        case Constant():
            return


def check_derived(derived: Derived, released: Collection[str]) -> None:
    """That it is made of released columns by functions that are known for them."""
    for part in _parts(derived.expression):
        match part:
            case Call("total", (ColumnName(),)):
                pass
            case Call(function) if function not in DERIVING or function == "total":
                raise refused(
                    derived.name,
                    f"uses {function[:40]} on released numbers",
                    f"use {', '.join(sorted(DERIVING - {'total'}))}; see `lastbit help queries`",
                )
            case Constant(value) if not isinstance(value, int | Fraction | None):
                raise refused(
                    derived.name, "mixes released numbers with texts or dates", "leave them out"
                )
            case ColumnName(name, table) if table is not None or name not in released:
                raise refused(
                    derived.name, "is made of something that is not released", "aggregate it"
                )
    if not any(True for _ in columns_in(derived.expression)):
        raise refused(derived.name, "is the same in every row", "leave it out")


def _parts(expression: Expression) -> Iterator[Expression]:
    waiting = [expression]
    while waiting:
        part = waiting.pop()
        yield part
        if isinstance(part, Call):
            waiting += part.arguments


class Arithmetic:
    """What the specifications of aggregates share: +, -, *, / and rounding make derived columns."""

    __slots__ = ()

    def __add__(self, other: Operand) -> DerivedSpec:
        return _spec("+", self, other)

    def __radd__(self, other: Operand) -> DerivedSpec:
        return _spec("+", other, self)

    def __sub__(self, other: Operand) -> DerivedSpec:
        return _spec("-", self, other)

    def __rsub__(self, other: Operand) -> DerivedSpec:
        return _spec("-", other, self)

    def __mul__(self, other: Operand) -> DerivedSpec:
        return _spec("*", self, other)

    def __rmul__(self, other: Operand) -> DerivedSpec:
        return _spec("*", other, self)

    def __truediv__(self, other: Operand) -> DerivedSpec:
        return _spec("/", self, other)

    def __rtruediv__(self, other: Operand) -> DerivedSpec:
        return _spec("/", other, self)

    def __neg__(self) -> DerivedSpec:
        return _spec("negate", self)

    def __abs__(self) -> DerivedSpec:
        return _spec("abs", self)

    def __round__(self, digits: int = 0) -> DerivedSpec:
        return _spec("round", self, digits)


@dataclass(frozen=True, slots=True)
class DerivedSpec(Arithmetic):
    """A formula over aggregates, as `100 * lb.sum("late", 0, 1) / lb.count()` gives it."""

    function: str
    arguments: tuple[Any, ...]

    def __str__(self) -> str:
        if self.function in ("+", "-", "*", "/"):
            return "(" + f" {self.function} ".join(map(_argument, self.arguments)) + ")"
        return f"{self.function}({', '.join(map(_argument, self.arguments))})"


Operand: TypeAlias = "Arithmetic | Number"


def _argument(part: Any) -> str:
    return shown(Fraction(part)) if isinstance(part, int | Fraction) else str(part)


def _spec(function: str, *arguments: Any) -> DerivedSpec:
    parts: list[Any] = []
    for part in arguments:
        if isinstance(part, Arithmetic):
            # a + b + c is one sum, as in SQL
            chain = isinstance(part, DerivedSpec) and part.function == function and not parts
            flat = chain and function in ("+", "*")
            parts += part.arguments if flat else (part,)  # type: ignore[attr-defined]
            continue
        if isinstance(part, bool):
            remedy = "combine aggregates and numbers"
            raise WrongType("formula", problem="holds a truth value", remedy=remedy)
        number = rational(part, "a number of the formula")
        parts.append(int(number) if number.denominator == 1 else number)
    return DerivedSpec(function, tuple(parts))


def hidden_name(function: str, expression: Expression | None, used: Collection[str]) -> str:
    """The name of a part that has none: its function and its first column, as in SELECT."""
    column = next(iter(columns_in(expression)), None) if expression is not None else None
    plain = function if column is None else f"{function}_{column.name}"
    lowered = {name.lower() for name in used}
    options = (plain, *(f"{plain}_{i}" for i in range(2, len(lowered) + 3)))
    return next(option for option in options if option.lower() not in lowered)
